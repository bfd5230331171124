// SPDX-License-Identifier: Apache-2.0
// dut_axi: npu_axi with the fields of its port apart, for bench_axi.
module dut_axi #(
    parameter int unsigned S = 4
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         v_i,
    input  logic         we_i,
    input  logic [2:0]   slot_i,
    input  logic [25:0]  lline_i,
    input  logic [2:0]   beats_i,
    input  logic [6:0]   len_i,
    input  logic [5:0]   at_i,
    input  logic [511:0] line_i,
    output logic         ready_o,
    output logic         rsp_v_o,
    output logic         rsp_we_o,
    output logic [2:0]   rsp_slot_o,
    output logic [511:0] line_o,
    output logic         err_o,
    output logic         awvalid_o,
    input  logic         awready_i,
    output logic [2:0]   awid_o,
    output logic [31:0]  awaddr_o,
    output logic [7:0]   awlen_o,
    output logic [2:0]   awsize_o,
    output logic [1:0]   awburst_o,
    output logic         wvalid_o,
    input  logic         wready_i,
    output logic [127:0] wdata_o,
    output logic [15:0]  wstrb_o,
    output logic         wlast_o,
    input  logic         bvalid_i,
    output logic         bready_o,
    input  logic [2:0]   bid_i,
    input  logic [1:0]   bresp_i,
    output logic         arvalid_o,
    input  logic         arready_i,
    output logic [2:0]   arid_o,
    output logic [31:0]  araddr_o,
    output logic [7:0]   arlen_o,
    output logic [2:0]   arsize_o,
    output logic [1:0]   arburst_o,
    input  logic         rvalid_i,
    output logic         rready_o,
    input  logic [2:0]   rid_i,
    input  logic [127:0] rdata_i,
    input  logic [1:0]   rresp_i,
    input  logic         rlast_i
);
  npu_pkg::port_req_t req;
  npu_pkg::port_rsp_t rsp;
  assign req = '{v: v_i, slot: slot_i, we: we_i, lline: lline_i, beats: beats_i, len: len_i,
                 tag: '0, pa: {26'd0, at_i}};
  assign rsp_v_o    = rsp.v;
  assign rsp_we_o   = rsp.we;
  assign rsp_slot_o = rsp.slot;

  npu_axi #(
      .S(S)
  ) u_axi (
      .clk_i,
      .rst_ni,
      .req_i(req),
      .wdata_i(line_i),
      .ready_o,
      .rsp_o(rsp),
      .rdata_o(line_o),
      .err_o,
      .awvalid_o,
      .awready_i,
      .awid_o,
      .awaddr_o,
      .awlen_o,
      .awsize_o,
      .awburst_o,
      .wvalid_o,
      .wready_i,
      .wdata_o,
      .wstrb_o,
      .wlast_o,
      .bvalid_i,
      .bready_o,
      .bid_i,
      .bresp_i,
      .arvalid_o,
      .arready_i,
      .arid_o,
      .araddr_o,
      .arlen_o,
      .arsize_o,
      .arburst_o,
      .rvalid_i,
      .rready_o,
      .rid_i,
      .rdata_i,
      .rresp_i,
      .rlast_i
  );
endmodule
