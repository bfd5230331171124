// SPDX-License-Identifier: Apache-2.0
// npu_core as yosys has read it: a netlist of one shape, in the place of the RTL.
module npu_core #(
    parameter int unsigned R = 4,
    parameter int unsigned C = 4,
    parameter int unsigned S = 1,
    parameter int unsigned N = 2
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        reg_we_i,
    input  logic        reg_re_i,
    input  logic [15:0] reg_addr_i,
    input  logic [31:0] reg_wdata_i,
    output logic [31:0] reg_rdata_o,
    output logic        irq_o,
    output logic        idle_o,
    output npu_pkg::port_req_t [N-1:0] port_req_o,
    output npu_pkg::line_t [N-1:0]     port_wdata_o,
    input  logic [N-1:0]               port_ready_i,
    input  npu_pkg::port_rsp_t [N-1:0] port_rsp_i,
    input  npu_pkg::line_t [N-1:0]     port_rdata_i,
    output logic [N-1:0]               port_close_o,
    output logic [27:0]                timing_o,
    output npu_pkg::ways_t [S-1:0]     ideal_take_o,
    output npu_pkg::ways_req_t [S-1:0] ideal_req_o,
    output npu_pkg::piece_t [S-1:0]    ideal_wdata_o,
    input  npu_pkg::mem_rsp_t          ideal_rsp_i [S]
);
  // A port of the netlist is a vector; an array's first element is its highest bits.
  localparam int unsigned RspBits = $bits(npu_pkg::mem_rsp_t);
  logic [RspBits*S-1:0] ideal_rsp;
  always_comb for (int s = 0; s < int'(S); s++) ideal_rsp[RspBits*(S-1-s) +: RspBits] = ideal_rsp_i[s];

  npu_core_netlist u_netlist (
      .clk_i,
      .rst_ni,
      .reg_we_i,
      .reg_re_i,
      .reg_addr_i,
      .reg_wdata_i,
      .reg_rdata_o,
      .irq_o,
      .idle_o,
      .port_req_o,
      .port_wdata_o,
      .port_ready_i,
      .port_rsp_i,
      .port_rdata_i,
      .port_close_o,
      .timing_o,
      .ideal_take_o,
      .ideal_req_o,
      .ideal_wdata_o,
      .ideal_rsp_i(ideal_rsp)
  );
endmodule
