// SPDX-License-Identifier: Apache-2.0
// npu_top: the whole NPU: register pages, S slot engines, the array they share, N memory channels.
module npu_top #(
    parameter int unsigned R = 16,
    parameter int unsigned C = 16,
    parameter int unsigned S = 4,
    parameter int unsigned N = 8
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    // Registers: inputs are taken in one cycle, a write acts and a read answers in the next.
    input  logic        reg_we_i,
    input  logic        reg_re_i,
    input  logic [15:0] reg_addr_i,
    input  logic [31:0] reg_wdata_i,
    output logic [31:0] reg_rdata_o,
    output logic        irq_o,
    output logic        idle_o  // nothing changes but time until a register is written
);
  localparam int unsigned BankBits = 3;
  localparam int unsigned DepthLog2 = 9, SpadLog2 = 17, TlbLog2 = 10;
  localparam int unsigned AW = 9;
  localparam int unsigned RW = $clog2(R + 1), CW = $clog2(C + 1);
  localparam int unsigned SW = S > 1 ? $clog2(S) : 1;

  // ---- register bus --------------------------------------------------------------------------
  logic        rst_nq, we_q, re_q;
  logic [15:0] addr_q;
  logic [31:0] wdata_q;
  always_ff @(posedge clk_i) begin
    rst_nq  <= rst_ni;
    we_q    <= reg_we_i;
    re_q    <= reg_re_i;
    addr_q  <= reg_addr_i;
    wdata_q <= reg_wdata_i;
  end

  logic [31:0]   glb_rdata;
  logic [31:0]   slot_rdata [S];
  logic [3:0]    page;
  logic [SW-1:0] page_slot;
  assign page      = addr_q[15:12];
  assign page_slot = SW'(page - 4'd1);
  always_ff @(posedge clk_i) begin
    if (!rst_nq) reg_rdata_o <= '0;
    else if (re_q)
      reg_rdata_o <= page == '0 ? glb_rdata : 32'(page) <= S ? slot_rdata[page_slot] : '0;
  end

  // ---- shared between slots ------------------------------------------------------------------
  npu_pkg::hash_cfg_t   hash;
  logic                 ideal, snap, mem_busy;
  logic          [27:0] timing;
  logic          [63:0] now;
  logic          [7:0]  cnt_addr;
  logic          [31:0] cnt_rdata;
  logic          [31:0] pt_base [S], pt_count [S];
  logic          [15:0] ch_mask [S];
  logic          [S-1:0] serial, tlb_flush, quiet, idle, irq_signal, irq_fault, irq_quiet, acc;
  npu_pkg::mem_req_t    req [S];
  npu_pkg::mem_rsp_t    ch_rsp [N], id_rsp [S];

  logic        [RW-1:0] r0 [S], h [S];
  logic        [CW-1:0] c0 [S], w [S];
  logic signed [AW-1:0] a [S][R], w_data [S][C];
  logic        [R-1:0]  sw [S], ld [S];
  logic                 group [S];
  logic [AW*R*C-1:0]    g [S];
  logic signed [31:0]   p [S][C];

  npu_regs #(
      .R(R),
      .C(C),
      .S(S),
      .N(N),
      .DepthLog2(DepthLog2),
      .SpadLog2(SpadLog2),
      .BankBits(BankBits),
      .TlbLog2(TlbLog2)
  ) u_regs (
      .clk_i,
      .rst_ni(rst_nq),
      .we_i(we_q && page == '0),
      .re_i(re_q && page == '0),
      .addr_i(addr_q[11:0]),
      .wdata_i(wdata_q),
      .rdata_o(glb_rdata),
      .ideal_o(ideal),
      .timing_o(timing),
      .hash_o(hash),
      .snap_o(snap),
      .cnt_addr_o(cnt_addr),
      .cnt_rdata_i(cnt_rdata),
      .pt_base_o(pt_base),
      .pt_count_o(pt_count),
      .ch_mask_o(ch_mask),
      .serial_o(serial),
      .tlb_flush_o(tlb_flush),
      .quiet_i(quiet),
      .r0_o(r0),
      .h_o(h),
      .c0_o(c0),
      .w_o(w),
      .time_o(now),
      .irq_signal_i(irq_signal),
      .irq_fault_i(irq_fault),
      .irq_quiet_i(irq_quiet),
      .irq_o
  );

  npu_mem #(
      .N(N),
      .S(S),
      .BankBits(BankBits)
  ) u_mem (
      .clk_i,
      .rst_ni(rst_nq),
      .ideal_i(ideal),
      .timing_i(timing),
      .req_i(req),
      .acc_o(acc),
      .ch_rsp_o(ch_rsp),
      .id_rsp_o(id_rsp),
      .busy_o(mem_busy),
      .snap_i(snap),
      .cnt_addr_i(cnt_addr),
      .cnt_rdata_o(cnt_rdata)
  );

  npu_array #(
      .R(R),
      .C(C),
      .S(S),
      .AW(AW)
  ) u_array (
      .clk_i,
      .r0_i(r0),
      .h_i(h),
      .c0_i(c0),
      .w_i(w),
      .a_i(a),
      .group_i(group),
      .g_i(g),
      .sw_i(sw),
      .ld_i(ld),
      .w_data_i(w_data),
      .p_o(p)
  );

  for (genvar s = 0; s < S; s++) begin : g_slot
    npu_slot #(
        .R(R),
        .C(C),
        .N(N),
        .Id(s),
        .DepthLog2(DepthLog2),
        .SpadLog2(SpadLog2)
    ) u_slot (
        .clk_i,
        .rst_ni(rst_nq),
        .h_i(h[s]),
        .w_i(w[s]),
        .pt_base_i(pt_base[s]),
        .pt_count_i(pt_count[s]),
        .ch_mask_i(ch_mask[s]),
        .serial_i(serial[s]),
        .tlb_flush_i(tlb_flush[s]),
        .hash_i(hash),
        .time_i(now),
        .reg_we_i(we_q && page == 4'(s + 1)),
        .reg_addr_i(addr_q[11:0]),
        .reg_wdata_i(wdata_q),
        .reg_rdata_o(slot_rdata[s]),
        .snap_i(snap),
        .req_o(req[s]),
        .acc_i(acc[s]),
        .ch_rsp_i(ch_rsp),
        .id_rsp_i(id_rsp[s]),
        .a_o(a[s]),
        .sw_o(sw[s]),
        .ld_o(ld[s]),
        .w_o(w_data[s]),
        .group_o(group[s]),
        .g_o(g[s]),
        .p_i(p[s]),
        .quiet_o(quiet[s]),
        .idle_o(idle[s]),
        .irq_signal_o(irq_signal[s]),
        .irq_fault_o(irq_fault[s]),
        .irq_quiet_o(irq_quiet[s])
    );
  end

  assign idle_o = (&idle) && !mem_busy && !we_q && !re_q && ~|{irq_signal, irq_fault, irq_quiet};
endmodule
