// SPDX-License-Identifier: Apache-2.0
// npu_core: the NPU: register pages, S slot engines, the array they share, N ports to memory.
//
// A port is a channel's.  The request on offer may change from cycle to cycle until v and ready
// meet, and ready may depend on it; a write's data follow one cycle behind, its first byte in
// bits 7:0.  Each request is answered once, a read by the line it lies in, of which only the
// bytes asked for count.  Answers are in order for a slot and direction, and as late as the
// memory likes; they are always taken.  Of a read and a write in flight together neither needs
// what the other does: where it matters, the NPU waits for the answer.
module npu_core #(
    parameter int unsigned R = 16,
    parameter int unsigned C = 16,
    parameter int unsigned S = 4,
    parameter int unsigned N = 8,
    parameter bit Ideal = 1'b1  // CTRL.IDEAL is there, and the memory it means
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
    output logic        idle_o,  // nothing changes but time until a register is written
    // Ports.
    output npu_pkg::port_req_t [N-1:0] port_req_o,
    output npu_pkg::line_t [N-1:0]     port_wdata_o,
    input  logic [N-1:0]               port_ready_i,
    input  npu_pkg::port_rsp_t [N-1:0] port_rsp_i,
    input  npu_pkg::line_t [N-1:0]     port_rdata_i,
    output logic [N-1:0]               port_close_o,  // all rows are to be closed: ARB TURNS
    output logic [27:0]                timing_o,      // register TIMING, for who has use for it
    // The ideal memory: what is asked of it in a cycle it answers in the next.
    output npu_pkg::ways_t [S-1:0]     ideal_take_o,
    output npu_pkg::ways_req_t [S-1:0] ideal_req_o,
    output npu_pkg::piece_t [S-1:0]    ideal_wdata_o,
    input  npu_pkg::mem_rsp_t          ideal_rsp_i [S]
);
  if (R < 1 || R > npu_pkg::MaxRows)
    $fatal(1, "npu_core: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > npu_pkg::MaxCols)
    $fatal(1, "npu_core: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_core: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);
  if (N < 1 || N > npu_pkg::MaxChannels)
    $fatal(1, "npu_core: N is %0d, not 1..%0d", N, npu_pkg::MaxChannels);

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
  logic [31:0]   rdata_d;
  always_comb begin
    rdata_d = reg_rdata_o;
    if (re_q) rdata_d = page == '0 ? glb_rdata : 32'(page) <= S ? slot_rdata[page_slot] : '0;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_nq) reg_rdata_o <= '0;
    else reg_rdata_o <= rdata_d;
  end

  // ---- shared between slots ------------------------------------------------------------------
  npu_pkg::hash_cfg_t   hash;
  npu_pkg::arb_cfg_t    arb [2];
  npu_pkg::turns_cfg_t  turns;
  npu_pkg::bucket_set_t bucket;
  logic                 turns_restart;
  logic         [N-1:0] ch_group;
  logic         [S-1:0] bucket_set;
  logic          [31:0] held [S];
  logic                 ideal, snap, mem_busy;
  logic          [63:0] now;
  logic          [7:0]  cnt_addr;
  logic          [31:0] cnt_rdata;
  logic          [31:0] pt_base [S], pt_count [S];
  logic          [15:0] ch_mask [S];
  logic           [7:0] context_id [S];
  logic         [N-1:0] ch_allow [S];
  logic          [S-1:0] serial, tlb_flush, tlb_held, quiet, idle, irq_signal, irq_fault, irq_quiet;
  npu_pkg::ways_req_t [S-1:0] req;
  npu_pkg::ways_t    [S-1:0] acc;
  npu_pkg::piece_t   [S-1:0] wdata;
  npu_pkg::mem_rsp_t rsp [S];
  npu_pkg::mem_ack_t ack [S];

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
      .Ideal(Ideal)
  ) u_regs (
      .clk_i,
      .rst_ni(rst_nq),
      .we_i(we_q && page == '0),
      .re_i(re_q && page == '0),
      .addr_i(addr_q[11:0]),
      .wdata_i(wdata_q),
      .rdata_o(glb_rdata),
      .ideal_o(ideal),
      .timing_o,
      .hash_o(hash),
      .snap_o(snap),
      .cnt_addr_o(cnt_addr),
      .cnt_rdata_i(cnt_rdata),
      .mem_idle_i(&idle && !mem_busy),
      .idle_i(idle),
      .arb_o(arb),
      .turns_o(turns),
      .turns_restart_o(turns_restart),
      .ch_group_o(ch_group),
      .bucket_set_o(bucket_set),
      .bucket_o(bucket),
      .held_i(held),
      .pt_base_o(pt_base),
      .pt_count_o(pt_count),
      .context_o(context_id),
      .ch_mask_o(ch_mask),
      .serial_o(serial),
      .tlb_flush_o(tlb_flush),
      .tlb_held_i(tlb_held),
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

  npu_ports #(
      .N(N),
      .S(S),
      .Ideal(Ideal)
  ) u_ports (
      .clk_i,
      .rst_ni(rst_nq),
      .timing_i(timing_o),
      .arb_i(arb),
      .turns_i(turns),
      .turns_restart_i(turns_restart),
      .ch_group_i(ch_group),
      .bucket_set_i(bucket_set),
      .bucket_i(bucket),
      .held_o(held),
      .req_i(req),
      .wdata_i(wdata),
      .ch_mask_i(ch_allow),
      .acc_o(acc),
      .rsp_o(rsp),
      .ack_o(ack),
      .busy_o(mem_busy),
      .port_req_o,
      .port_wdata_o,
      .port_ready_i,
      .port_rsp_i,
      .port_rdata_i,
      .port_close_o,
      .ideal_i(ideal),
      .ideal_take_o,
      .ideal_rsp_i,
      .snap_i(snap),
      .cnt_addr_i(cnt_addr),
      .cnt_rdata_o(cnt_rdata)
  );
  assign ideal_req_o   = req;
  assign ideal_wdata_o = wdata;

  // ---- clocks ----------------------------------------------------------------------------------
  // A slot that is idle has none once nobody has written a register for as long as all that it set
  // off takes to end; and the array has one while a slot has.
  logic [S-1:0] on, slot_clk;
  logic         array_clk;
  for (genvar s = 0; s < S; s++) begin : g_clock
    logic [6:0] awake_q, awake_d;
    logic       stir;
    assign stir  = !rst_nq || we_q || !idle[s] || rsp[s].v || ack[s].n != '0;
    assign on[s] = stir || awake_q != 0;
    assign awake_d = stir ? '1 : awake_q - 7'(awake_q != 0);
    always_ff @(posedge clk_i) awake_q <= awake_d;
    npu_clock_gate u_gate (.clk_i, .en_i(on[s]), .clk_o(slot_clk[s]));
    // The requests of eight slots are more words than Verilator 5.006 can sample.
    if (S < npu_pkg::MaxSlots) begin : g_still
      Still: assert property (@(posedge clk_i) disable iff (!rst_nq)
          !on[s] |-> !req[s].load.v && !req[s].store.v && acc[s] == '0 && !irq_signal[s] &&
              !irq_fault[s] && !irq_quiet[s]);
    end
  end
  npu_clock_gate u_array_gate (.clk_i, .en_i(|on), .clk_o(array_clk));

  npu_array #(
      .R(R),
      .C(C),
      .S(S)
  ) u_array (
      .clk_i(array_clk),
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
    assign ch_allow[s] = N'(ch_mask[s]);
    npu_slot #(
        .R(R),
        .C(C)
    ) u_slot (
        .clk_i(slot_clk[s]),
        .clk_free_i(clk_i),
        .rst_ni(rst_nq),
        .id_i(3'(s)),
        .h_i(h[s]),
        .w_i(w[s]),
        .pt_base_i(pt_base[s]),
        .pt_count_i(pt_count[s]),
        .context_i(context_id[s]),
        .ch_mask_i(ch_mask[s]),
        .serial_i(serial[s]),
        .tlb_flush_i(tlb_flush[s]),
        .tlb_held_o(tlb_held[s]),
        .hash_i(hash),
        .time_i(now),
        .reg_we_i(we_q && page == 4'(s + 1)),
        .reg_addr_i(addr_q[11:0]),
        .reg_wdata_i(wdata_q),
        .reg_rdata_o(slot_rdata[s]),
        .snap_i(snap),
        .req_o(req[s]),
        .wdata_o(wdata[s]),
        .acc_i(acc[s]),
        .rsp_i(rsp[s]),
        .ack_i(ack[s]),
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
