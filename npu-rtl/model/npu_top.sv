// SPDX-License-Identifier: Apache-2.0
// npu_top: the NPU with memory behind its ports, as the simulation's programs see it; a part of the
// bench.
module npu_top #(
    parameter int unsigned R = 16,
    parameter int unsigned C = 16,
    parameter int unsigned S = 4,
    parameter int unsigned N = 8
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        reg_we_i,
    input  logic        reg_re_i,
    input  logic [15:0] reg_addr_i,
    input  logic [31:0] reg_wdata_i,
    input  logic [15:0] refresh_i,     // what the memory does besides; see npu_dram
    input  logic [15:0] refreshing_i,
    input  logic [3:0]  cache_sets_i,
    input  logic [3:0]  cache_ways_i,
    input  logic [15:0] cache_seed_i,
    output logic [31:0] reg_rdata_o,
    output logic        irq_o,
    output logic        idle_o
);
  npu_pkg::port_req_t [N-1:0] req;
  npu_pkg::line_t     [N-1:0] wdata, rdata;
  logic               [N-1:0] ready;
  npu_pkg::port_rsp_t [N-1:0] rsp;
  logic               [N-1:0] close;
  logic               [27:0]  timing;
  npu_pkg::ways_t     [S-1:0] ideal_take;
  npu_pkg::ways_req_t [S-1:0] ideal_req;
  npu_pkg::piece_t    [S-1:0] ideal_wdata;
  npu_pkg::mem_rsp_t          ideal_rsp [S];

  npu_core #(
      .R(R),
      .C(C),
      .S(S),
      .N(N)
  ) u_core (
      .clk_i,
      .rst_ni,
      .reg_we_i,
      .reg_re_i,
      .reg_addr_i,
      .reg_wdata_i,
      .reg_rdata_o,
      .irq_o,
      .idle_o,
      .port_req_o(req),
      .port_wdata_o(wdata),
      .port_ready_i(ready),
      .port_rsp_i(rsp),
      .port_rdata_i(rdata),
      .port_close_o(close),
      .timing_o(timing),
      .ideal_take_o(ideal_take),
      .ideal_req_o(ideal_req),
      .ideal_wdata_o(ideal_wdata),
      .ideal_rsp_i(ideal_rsp)
  );

  npu_memory #(
      .N(N),
      .S(S)
  ) u_memory (
      .clk_i,
      .rst_ni,
      .timing_i(timing),
      .refresh_i,
      .refreshing_i,
      .cache_sets_i,
      .cache_ways_i,
      .cache_seed_i,
      .req_i(req),
      .wdata_i(wdata),
      .ready_o(ready),
      .rsp_o(rsp),
      .rdata_o(rdata),
      .close_i(close),
      .ideal_take_i(ideal_take),
      .ideal_req_i(ideal_req),
      .ideal_wdata_i(ideal_wdata),
      .ideal_rsp_o(ideal_rsp)
  );
endmodule
