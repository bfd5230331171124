// SPDX-License-Identifier: Apache-2.0
// npu_kernel_port: one of the NPU's ports on the slot's bus: in the buffer that is its memory, and
// nowhere else.
//
// All channels share one flat memory: a request goes to its physical address.  What lies beyond
// the buffer reads as 0, and a write to it has no byte.
module npu_kernel_port
  import npu_kernel_pkg::*;
#(
    parameter  int unsigned S         = 4,
    parameter  int unsigned Channel   = 0,
    // reads of a slot in flight: what npu_return has room for
    localparam int unsigned DepthLog2 = npu_pkg::FlightLog2
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               open_i,   // requests may be taken
    input  logic [63:0]        base_i,
    input  logic [26:0]        lines_i,
    output logic               busy_o,   // something is in flight
    output logic               error_o,
    // the port
    input  npu_pkg::port_req_t req_i,
    input  npu_pkg::line_t     wdata_i,
    output logic               ready_o,
    output npu_pkg::port_rsp_t rsp_o,
    output npu_pkg::line_t     rdata_o,
    // the bus
    output ask_t               ask_o,
    input  told_t              told_i,
    input  logic               rvalid_i,
    output logic               rready_o,
    input  logic [2:0]         rid_i,
    input  logic [127:0]       rdata_i,
    input  logic [1:0]         rresp_i,
    input  logic               rlast_i,
    input  logic               bvalid_i,
    output logic               bready_o,
    input  logic [2:0]         bid_i,
    input  logic [1:0]         bresp_i
);
  if (Channel >= npu_pkg::MaxChannels)
    $fatal(1, "npu_kernel_port: Channel is %0d, not 0..%0d", Channel, npu_pkg::MaxChannels - 1);

  localparam int unsigned SW = S > 1 ? $clog2(S) : 1;
  localparam int unsigned CW = SW + DepthLog2 + 2;  // both directions' requests in flight
  typedef logic [DepthLog2-1:0] ptr_t;

  npu_pkg::port_req_t req;
  npu_pkg::line_t     line;
  logic               ready, beyond, take;
  logic               beyond_q [1 << (SW + DepthLog2)];  // of the reads in flight, by slot
  ptr_t               wp_q [S], rp_q [S], wp_d, rp_d;
  logic [CW-1:0]      out_q, out_d;
  logic [SW-1:0]      ts, rs;
  logic [31:0]        araddr, awaddr;

  assign beyond  = {1'b0, req_i.pa[31:6]} >= lines_i;
  assign take    = req.v && ready;
  assign ready_o = ready && open_i;
  assign ts      = SW'(req_i.slot);
  assign rs      = SW'(rsp_o.slot);
  assign wp_d    = wp_q[ts] + ptr_t'(1);
  assign rp_d    = rp_q[rs] + ptr_t'(1);
  assign out_d   = out_q + CW'(take) - CW'(rsp_o.v);
  assign busy_o  = out_q != '0;
  assign rdata_o = beyond_q[{rs, rp_q[rs]}] ? '0 : line;
  always_comb begin
    req       = req_i;
    req.v     = req_i.v && open_i;
    req.lline = beyond ? '0 : req_i.pa[31:6];
    req.len   = beyond ? '0 : req_i.len;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int s = 0; s < int'(S); s++) begin
        wp_q[s] <= '0;
        rp_q[s] <= '0;
      end
      out_q <= '0;
    end else begin
      if (take && !req.we) wp_q[ts] <= wp_d;
      if (rsp_o.v && !rsp_o.we) rp_q[rs] <= rp_d;
      out_q <= out_d;
    end
    if (take && !req.we) beyond_q[{ts, wp_q[ts]}] <= beyond;
  end

  npu_axi #(
      .S(S)
  ) u_axi (
      .clk_i,
      .rst_ni,
      .req_i(req),
      .wdata_i,
      .ready_o(ready),
      .rsp_o,
      .rdata_o(line),
      .err_o(error_o),
      .awvalid_o(ask_o.aw.v),
      .awready_i(told_i.awready),
      .awid_o(ask_o.aw.slot),
      .awaddr_o(awaddr),
      .awlen_o(ask_o.aw.len),
      .awsize_o(),
      .awburst_o(),
      .wvalid_o(ask_o.w.v),
      .wready_i(told_i.wready),
      .wdata_o(ask_o.w.data),
      .wstrb_o(ask_o.w.strb),
      .wlast_o(ask_o.w.last),
      .bvalid_i,
      .bready_o,
      .bid_i,
      .bresp_i,
      .arvalid_o(ask_o.ar.v),
      .arready_i(told_i.arready),
      .arid_o(ask_o.ar.slot),
      .araddr_o(araddr),
      .arlen_o(ask_o.ar.len),
      .arsize_o(),
      .arburst_o(),
      .rvalid_i,
      .rready_o,
      .rid_i,
      .rdata_i,
      .rresp_i,
      .rlast_i
  );
  assign ask_o.ar.source = 5'(Channel);
  assign ask_o.aw.source = 5'(Channel);
  assign ask_o.ar.addr   = base_i + 64'(araddr);
  assign ask_o.aw.addr   = base_i + 64'(awaddr);

  Asked: assert property (@(posedge clk_i) disable iff (!rst_ni) rsp_o.v |-> out_q != '0);
  ClosedTakesNone: assert property (@(posedge clk_i) disable iff (!rst_ni) take |-> open_i);
endmodule
