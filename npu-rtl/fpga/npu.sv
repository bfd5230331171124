// SPDX-License-Identifier: Apache-2.0
// npu: the NPU as a kernel of an FPGA's slot: what a run of it does is in npu_kernel.h.
//
// The names of its pins are those that the vendor's tools know buses by.  Bursts are INCR, of whole
// 16-byte beats, and leave no 64-byte line.  An ID is {channel, slot}; channel N are the steps.
module npu
  import npu_kernel_pkg::*;
#(
    parameter int unsigned R = 16,
    parameter int unsigned C = 16,
    parameter int unsigned S = 4,
    parameter int unsigned N = 8
) (
    input  logic         ap_clk,
    input  logic         ap_rst_n,
    output logic         interrupt,
    // AXI4-Lite subordinate: registers
    input  logic         s_axi_control_awvalid,
    output logic         s_axi_control_awready,
    input  logic [11:0]  s_axi_control_awaddr,
    input  logic         s_axi_control_wvalid,
    output logic         s_axi_control_wready,
    input  logic [31:0]  s_axi_control_wdata,
    input  logic [3:0]   s_axi_control_wstrb,
    output logic         s_axi_control_bvalid,
    input  logic         s_axi_control_bready,
    output logic [1:0]   s_axi_control_bresp,
    input  logic         s_axi_control_arvalid,
    output logic         s_axi_control_arready,
    input  logic [11:0]  s_axi_control_araddr,
    output logic         s_axi_control_rvalid,
    input  logic         s_axi_control_rready,
    output logic [31:0]  s_axi_control_rdata,
    output logic [1:0]   s_axi_control_rresp,
    // AXI4 manager: memory and steps
    output logic         m_axi_gmem_awvalid,
    input  logic         m_axi_gmem_awready,
    output logic [7:0]   m_axi_gmem_awid,
    output logic [63:0]  m_axi_gmem_awaddr,
    output logic [7:0]   m_axi_gmem_awlen,
    output logic [2:0]   m_axi_gmem_awsize,
    output logic [1:0]   m_axi_gmem_awburst,
    output logic [3:0]   m_axi_gmem_awcache,
    output logic [2:0]   m_axi_gmem_awprot,
    output logic         m_axi_gmem_wvalid,
    input  logic         m_axi_gmem_wready,
    output logic [127:0] m_axi_gmem_wdata,
    output logic [15:0]  m_axi_gmem_wstrb,
    output logic         m_axi_gmem_wlast,
    input  logic         m_axi_gmem_bvalid,
    output logic         m_axi_gmem_bready,
    input  logic [7:0]   m_axi_gmem_bid,
    input  logic [1:0]   m_axi_gmem_bresp,
    output logic         m_axi_gmem_arvalid,
    input  logic         m_axi_gmem_arready,
    output logic [7:0]   m_axi_gmem_arid,
    output logic [63:0]  m_axi_gmem_araddr,
    output logic [7:0]   m_axi_gmem_arlen,
    output logic [2:0]   m_axi_gmem_arsize,
    output logic [1:0]   m_axi_gmem_arburst,
    output logic [3:0]   m_axi_gmem_arcache,
    output logic [2:0]   m_axi_gmem_arprot,
    input  logic         m_axi_gmem_rvalid,
    output logic         m_axi_gmem_rready,
    input  logic [7:0]   m_axi_gmem_rid,
    input  logic [127:0] m_axi_gmem_rdata,
    input  logic [1:0]   m_axi_gmem_rresp,
    input  logic         m_axi_gmem_rlast
);
  localparam logic [2:0] Size16 = 3'd4;
  localparam logic [1:0] Incr = 2'd1;
  localparam logic [3:0] Cache = 4'd3;  // normal, bufferable

  logic        rst_nq, start, done, core_rst_n, open;
  args_t       args;
  logic        reg_we, reg_re, irq, idle;
  logic [15:0] reg_addr;
  logic [31:0] reg_wdata, reg_rdata;
  logic [63:0] base;
  logic [26:0] lines;
  logic [N-1:0] busy, error;
  ask_t  [N:0] ask;
  told_t [N:0] told;
  logic  [N:0] rvalid, rready, bvalid, bready;
  burst_t      aw, ar;
  wbeat_t      w;
  npu_pkg::port_req_t [N-1:0] req;
  npu_pkg::line_t     [N-1:0] wdata, rdata;
  logic               [N-1:0] ready;
  npu_pkg::port_rsp_t [N-1:0] rsp;
  npu_pkg::mem_rsp_t          none [S];

  always_ff @(posedge ap_clk) rst_nq <= ap_rst_n;

  npu_kernel_regs u_regs (
      .clk_i(ap_clk),
      .rst_ni(rst_nq),
      .awvalid_i(s_axi_control_awvalid),
      .awready_o(s_axi_control_awready),
      .awaddr_i(s_axi_control_awaddr),
      .wvalid_i(s_axi_control_wvalid),
      .wready_o(s_axi_control_wready),
      .wdata_i(s_axi_control_wdata),
      .wstrb_i(s_axi_control_wstrb),
      .bvalid_o(s_axi_control_bvalid),
      .bready_i(s_axi_control_bready),
      .arvalid_i(s_axi_control_arvalid),
      .arready_o(s_axi_control_arready),
      .araddr_i(s_axi_control_araddr),
      .rvalid_o(s_axi_control_rvalid),
      .rready_i(s_axi_control_rready),
      .rdata_o(s_axi_control_rdata),
      .start_o(start),
      .done_i(done),
      .args_o(args),
      .interrupt_o(interrupt)
  );
  assign s_axi_control_bresp = '0;
  assign s_axi_control_rresp = '0;

  npu_kernel_steps #(
      .R(R),
      .C(C),
      .S(S),
      .N(N)
  ) u_steps (
      .clk_i(ap_clk),
      .rst_ni(rst_nq),
      .start_i(start),
      .done_o(done),
      .args_i(args),
      .core_rst_no(core_rst_n),
      .reg_we_o(reg_we),
      .reg_re_o(reg_re),
      .reg_addr_o(reg_addr),
      .reg_wdata_o(reg_wdata),
      .reg_rdata_i(reg_rdata),
      .irq_i(irq),
      .idle_i(idle),
      .open_o(open),
      .base_o(base),
      .lines_o(lines),
      .busy_i(|busy),
      .error_i(|error),
      .ask_o(ask[N]),
      .told_i(told[N]),
      .rvalid_i(rvalid[N]),
      .rdata_i(m_axi_gmem_rdata),
      .rerror_i(m_axi_gmem_rresp[1]),
      .bvalid_i(bvalid[N]),
      .berror_i(m_axi_gmem_bresp[1])
  );

  assign rready[N] = 1'b1;
  assign bready[N] = 1'b1;

  always_comb for (int s = 0; s < int'(S); s++) none[s] = '0;
  npu_core #(
      .R(R),
      .C(C),
      .S(S),
      .N(N),
      .Ideal(1'b0)
  ) u_core (
      .clk_i(ap_clk),
      .rst_ni(core_rst_n),
      .reg_we_i(reg_we),
      .reg_re_i(reg_re),
      .reg_addr_i(reg_addr),
      .reg_wdata_i(reg_wdata),
      .reg_rdata_o(reg_rdata),
      .irq_o(irq),
      .idle_o(idle),
      .port_req_o(req),
      .port_wdata_o(wdata),
      .port_ready_i(ready),
      .port_rsp_i(rsp),
      .port_rdata_i(rdata),
      .port_close_o(),
      .timing_o(),
      .ideal_take_o(),
      .ideal_req_o(),
      .ideal_wdata_o(),
      .ideal_rsp_i(none)
  );

  for (genvar c = 0; c < N; c++) begin : g_port
    npu_kernel_port #(
        .S(S),
        .Channel(c)
    ) u_port (
        .clk_i(ap_clk),
        .rst_ni(rst_nq),
        .open_i(open),
        .base_i(base),
        .lines_i(lines),
        .busy_o(busy[c]),
        .error_o(error[c]),
        .req_i(req[c]),
        .wdata_i(wdata[c]),
        .ready_o(ready[c]),
        .rsp_o(rsp[c]),
        .rdata_o(rdata[c]),
        .ask_o(ask[c]),
        .told_i(told[c]),
        .rvalid_i(rvalid[c]),
        .rready_o(rready[c]),
        .rid_i(m_axi_gmem_rid[2:0]),
        .rdata_i(m_axi_gmem_rdata),
        .rresp_i(m_axi_gmem_rresp),
        .rlast_i(m_axi_gmem_rlast),
        .bvalid_i(bvalid[c]),
        .bready_o(bready[c]),
        .bid_i(m_axi_gmem_bid[2:0]),
        .bresp_i(m_axi_gmem_bresp)
    );
  end

  npu_kernel_mux #(
      .M(N + 1)
  ) u_mux (
      .clk_i(ap_clk),
      .rst_ni(rst_nq),
      .ask_i(ask),
      .told_o(told),
      .rvalid_o(rvalid),
      .rready_i(rready),
      .bvalid_o(bvalid),
      .bready_i(bready),
      .aw_o(aw),
      .awready_i(m_axi_gmem_awready),
      .w_o(w),
      .wready_i(m_axi_gmem_wready),
      .bvalid_i(m_axi_gmem_bvalid),
      .bready_o(m_axi_gmem_bready),
      .bsource_i(m_axi_gmem_bid[7:3]),
      .ar_o(ar),
      .arready_i(m_axi_gmem_arready),
      .rvalid_i(m_axi_gmem_rvalid),
      .rready_o(m_axi_gmem_rready),
      .rsource_i(m_axi_gmem_rid[7:3])
  );

  assign m_axi_gmem_awvalid = aw.v;
  assign m_axi_gmem_awid    = {aw.source, aw.slot};
  assign m_axi_gmem_awaddr  = aw.addr;
  assign m_axi_gmem_awlen   = aw.len;
  assign m_axi_gmem_awsize  = Size16;
  assign m_axi_gmem_awburst = Incr;
  assign m_axi_gmem_awcache = Cache;
  assign m_axi_gmem_awprot  = '0;
  assign m_axi_gmem_wvalid  = w.v;
  assign m_axi_gmem_wdata   = w.data;
  assign m_axi_gmem_wstrb   = w.strb;
  assign m_axi_gmem_wlast   = w.last;
  assign m_axi_gmem_arvalid = ar.v;
  assign m_axi_gmem_arid    = {ar.source, ar.slot};
  assign m_axi_gmem_araddr  = ar.addr;
  assign m_axi_gmem_arlen   = ar.len;
  assign m_axi_gmem_arsize  = Size16;
  assign m_axi_gmem_arburst = Incr;
  assign m_axi_gmem_arcache = Cache;
  assign m_axi_gmem_arprot  = '0;
endmodule
