// SPDX-License-Identifier: Apache-2.0
// dut_mem: the NPU's ports with their memory behind them, for bench_mem.
module dut_mem #(
    parameter int unsigned N = 8,
    parameter int unsigned S = 4
) (
    input  logic                      clk_i,
    input  logic                      rst_ni,
    input  logic                      ideal_i,
    input  logic [27:0]               timing_i,
    input  npu_pkg::arb_cfg_t         arb_i [2],
    input  npu_pkg::turns_cfg_t       turns_i,
    input  logic                      turns_restart_i,
    input  logic [N-1:0]              ch_group_i,
    input  logic [S-1:0]              bucket_set_i,
    input  npu_pkg::bucket_set_t      bucket_i,
    output logic [31:0]               held_o [S],
    input  npu_pkg::ways_req_t [S-1:0] req_i,
    input  npu_pkg::piece_t [S-1:0]    wdata_i,
    input  logic [N-1:0]              ch_mask_i [S],
    output npu_pkg::ways_t [S-1:0]    acc_o,
    output npu_pkg::mem_rsp_t         rsp_o [S],
    output npu_pkg::mem_ack_t         ack_o [S],
    output logic                      busy_o,
    input  logic                      snap_i,
    input  logic [7:0]                cnt_addr_i,
    output logic [31:0]               cnt_rdata_o
);
  npu_pkg::port_req_t [N-1:0] req;
  npu_pkg::line_t     [N-1:0] wdata, rdata;
  logic               [N-1:0] ready;
  npu_pkg::port_rsp_t [N-1:0] rsp;
  logic               [N-1:0] close;
  npu_pkg::ways_t     [S-1:0] ideal_take;
  npu_pkg::mem_rsp_t          ideal_rsp [S];

  npu_ports #(
      .N(N),
      .S(S)
  ) u_ports (
      .clk_i,
      .rst_ni,
      .timing_i,
      .arb_i,
      .turns_i,
      .turns_restart_i,
      .ch_group_i,
      .bucket_set_i,
      .bucket_i,
      .held_o,
      .req_i,
      .wdata_i,
      .ch_mask_i,
      .acc_o,
      .rsp_o,
      .ack_o,
      .busy_o,
      .port_req_o(req),
      .port_wdata_o(wdata),
      .port_ready_i(ready),
      .port_rsp_i(rsp),
      .port_rdata_i(rdata),
      .port_close_o(close),
      .ideal_i,
      .ideal_take_o(ideal_take),
      .ideal_rsp_i(ideal_rsp),
      .snap_i,
      .cnt_addr_i,
      .cnt_rdata_o
  );

  npu_memory #(
      .N(N),
      .S(S)
  ) u_memory (
      .clk_i,
      .rst_ni,
      .timing_i,
      .refresh_i('0),
      .refreshing_i('0),
      .cache_sets_i('0),
      .cache_ways_i('0),
      .cache_seed_i('0),
      .req_i(req),
      .wdata_i(wdata),
      .ready_o(ready),
      .rsp_o(rsp),
      .rdata_o(rdata),
      .close_i(close),
      .ideal_take_i(ideal_take),
      .ideal_req_i(req_i),
      .ideal_wdata_i(wdata_i),
      .ideal_rsp_o(ideal_rsp)
  );
endmodule
