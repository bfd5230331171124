// SPDX-License-Identifier: Apache-2.0
// npu_regs: the privileged register page: identity, map, memory system, slots' modes, time,
// interrupts.
module npu_regs #(
    parameter  int unsigned R  = 16,
    parameter  int unsigned C  = 16,
    parameter  int unsigned S  = 4,
    parameter  int unsigned N  = 8,
    parameter  bit Ideal       = 1'b1,  // CTRL.IDEAL is there
    localparam int unsigned RW = $clog2(R + 1),
    localparam int unsigned CW = $clog2(C + 1)
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               we_i,
    input  logic               re_i,          // reading TIME_LO has an effect
    input  logic [11:0]        addr_i,
    input  logic [31:0]        wdata_i,
    output logic [31:0]        rdata_o,
    // memory system
    output logic               ideal_o,
    output logic [27:0]        timing_o,
    output npu_pkg::hash_cfg_t hash_o,
    output logic               snap_o,
    output logic [7:0]         cnt_addr_o,
    input  logic [31:0]        cnt_rdata_i,
    // who gets how much of it
    input  logic               mem_idle_i,    // and every slot
    input  logic [S-1:0]       idle_i,        // a slot by itself
    output npu_pkg::arb_cfg_t  arb_o [2],
    output npu_pkg::turns_cfg_t turns_o,
    output logic               turns_restart_o,
    output logic [N-1:0]       ch_group_o,
    output logic [S-1:0]       bucket_set_o,
    output npu_pkg::bucket_set_t bucket_o,
    input  logic [31:0]        held_i [S],
    // slots
    output logic [31:0]        pt_base_o [S],
    output logic [31:0]        pt_count_o [S],
    output logic [7:0]         context_o [S],
    output logic [15:0]        ch_mask_o [S],
    output logic [S-1:0]       serial_o,
    output logic [S-1:0]       tlb_flush_o,
    input  logic [S-1:0]       tlb_held_i,
    input  logic [S-1:0]       quiet_i,
    output logic [RW-1:0]      r0_o [S],
    output logic [RW-1:0]      h_o [S],
    output logic [CW-1:0]      c0_o [S],
    output logic [CW-1:0]      w_o [S],
    // time and interrupts
    output logic [63:0]        time_o,
    input  logic [S-1:0]       irq_signal_i,
    input  logic [S-1:0]       irq_fault_i,
    input  logic [S-1:0]       irq_quiet_i,
    output logic               irq_o
);
  import npu_regs_pkg::*;
  import npu_pkg::is_in;
  if (R < 1 || R > npu_pkg::MaxRows)
    $fatal(1, "npu_regs: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > npu_pkg::MaxCols)
    $fatal(1, "npu_regs: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_regs: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);
  if (N < 1 || N > npu_pkg::MaxChannels)
    $fatal(1, "npu_regs: N is %0d, not 1..%0d", N, npu_pkg::MaxChannels);

  // After reset the hash spreads over as many of the channels as it can.
  function automatic logic [6:0] hash_all();
    logic [6:0]  best;
    int unsigned most;
    best = '0;
    most = 0;
    for (int unsigned k = 0; k <= 4; k++)
      for (int unsigned q = 1; q <= 15; q += 2)
        if ((q << k) <= N && (q << k) > most) begin
          most = q << k;
          best = {4'(q), 3'(k)};
        end
    return best;
  endfunction

  localparam logic [31:0] Shape = 32'(R) << SHAPE_ROWS_LSB | 32'(C) << SHAPE_COLS_LSB |
                                  32'(S) << SHAPE_SLOTS_LSB | 32'(N) << SHAPE_CHANNELS_LSB;
  localparam logic [31:0] Caps = 32'(npu_pkg::DepthLog2) << CAPS_DEPTH_LOG2_LSB |
                                 32'(npu_pkg::SpadLog2) << CAPS_SPAD_LOG2_LSB |
                                 32'(npu_pkg::BankBits) << CAPS_BANKS_LOG2_LSB |
                                 32'(npu_pkg::TlbLog2) << CAPS_TLB_LOG2_LSB;
  localparam logic [31:0] IrqBits = 32'((1 << S) - 1) << IRQ_PEND_SIGNAL_LSB |
                                    32'((1 << S) - 1) << IRQ_PEND_FAULT_LSB |
                                    32'((1 << S) - 1) << IRQ_PEND_QUIET_LSB;
  localparam logic [10:0] HashReset = {4'd12, hash_all()};

  // ---- decode ------------------------------------------------------------------------------
  logic [2:0] idx;  // element of an array of eight
  logic [1:0] mask;
  assign idx  = addr_i[4:2];
  assign mask = addr_i[3:2];

  logic we_rect;
  assign we_rect = we_i && is_in(addr_i, GLB_RECT_ADDR, GLB_RECT_N);

  // ---- state -------------------------------------------------------------------------------
  logic [23:0] pend_q, enable_q, event_d;
  logic [31:0] time_hi_q;
  logic        opaque_q, lock_q;

  always_comb begin
    event_d = '0;
    event_d[IRQ_PEND_SIGNAL_LSB+:S] = irq_signal_i;
    event_d[IRQ_PEND_FAULT_LSB+:S]  = irq_fault_i;
    event_d[IRQ_PEND_QUIET_LSB+:S]  = irq_quiet_i;
  end

  // ---- modes, shares of memory -------------------------------------------------------------
  logic        take_machine, take_slot, is_shared, is_hash, bucket_bad;
  logic [1:0]  mode_status;
  logic [31:0] shares_rdata;
  npu_modes #(
      .S(S),
      .N(N),
      .Ideal(Ideal)
  ) u_modes (
      .clk_i,
      .rst_ni,
      .we_i,
      .addr_i,
      .wdata_i,
      .mem_idle_i,
      .idle_i,
      .serial_i(serial_o),
      .lock_i(lock_q),
      .bucket_bad_i(bucket_bad),
      .take_machine_o(take_machine),
      .shared_o(is_shared),
      .hash_o(is_hash),
      .take_slot_o(take_slot),
      .status_o(mode_status)
  );
  npu_shares #(
      .S(S),
      .N(N)
  ) u_shares (
      .clk_i,
      .rst_ni,
      .we_i,
      .take_i(take_machine && is_shared),
      .addr_i,
      .wdata_i,
      .rdata_o(shares_rdata),
      .arb_o,
      .turns_o,
      .turns_restart_o,
      .ch_group_o,
      .bucket_set_o,
      .bucket_o,
      .bucket_bad_o(bucket_bad)
  );

  // ---- the others --------------------------------------------------------------------------
  logic [63:0] time_d;
  logic [23:0] pend_d, enable_d;
  assign time_d   = time_o + 64'd1;
  assign pend_d   = (we_i && addr_i == GLB_IRQ_PEND_ADDR[11:0] ? pend_q & ~wdata_i[23:0] : pend_q)
                    | event_d;
  assign enable_d = wdata_i[23:0] & IrqBits[23:0];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ideal_o     <= 1'b0;
      timing_o    <= GLB_TIMING_RESET[27:0];
      hash_o      <= '{k: HashReset[2:0], q: HashReset[6:3], gran: HashReset[10:7], xmask: '0};
      opaque_q    <= 1'b0;
      lock_q      <= 1'b0;
      serial_o    <= '0;
      tlb_flush_o <= '0;
      snap_o      <= 1'b0;
      pend_q      <= '0;
      enable_q    <= '0;
      time_o      <= '0;
      time_hi_q   <= '0;
      for (int s = 0; s < int'(S); s++) begin
        pt_base_o[s]  <= '0;
        pt_count_o[s] <= '0;
        context_o[s]  <= '0;
        ch_mask_o[s]  <= '0;
      end
    end else begin
      time_o      <= time_d;
      tlb_flush_o <= '0;
      snap_o      <= 1'b0;
      pend_q      <= pend_d;
      if (re_i && addr_i == GLB_TIME_LO_ADDR[11:0]) time_hi_q <= time_o[63:32];
      if (we_i) begin
        unique case (addr_i)
          GLB_CTRL_ADDR[11:0]:          if (take_machine) ideal_o <= wdata_i[CTRL_IDEAL_LSB];
          GLB_IRQ_MASK_ADDR[11:0]:      enable_q <= enable_d;
          GLB_PERF_SNAPSHOT_ADDR[11:0]: snap_o   <= 1'b1;
          GLB_TIMING_ADDR[11:0]:        if (take_machine) timing_o <= wdata_i[27:0];
          GLB_HASH_ADDR[11:0]:
          if (take_machine) begin
            hash_o.k    <= wdata_i[HASH_K_LSB+:HASH_K_W];
            hash_o.q    <= {wdata_i[HASH_QH_LSB], wdata_i[HASH_Q_LSB+:HASH_Q_W]};
            hash_o.gran <= wdata_i[HASH_GRAN_LSB+:HASH_GRAN_W];
            lock_q      <= wdata_i[HASH_LOCK_LSB];
            if (wdata_i[HASH_OPAQUE_LSB]) opaque_q <= 1'b1;
          end
          default: ;
        endcase
        if (take_machine && is_in(addr_i, GLB_XMASK_ADDR, GLB_XMASK_N))
          hash_o.xmask[mask] <= wdata_i[23:0];
        // translations have the channel with them
        if (take_machine && is_hash) tlb_flush_o <= '1;
        for (int s = 0; s < int'(S); s++)
          if (32'(idx) == s) begin
            if (take_slot && is_in(addr_i, GLB_PT_BASE_ADDR, GLB_PT_BASE_N))
              pt_base_o[s] <= {wdata_i[31:6], 6'd0};
            if (is_in(addr_i, GLB_PT_COUNT_ADDR, GLB_PT_COUNT_N)) pt_count_o[s] <= wdata_i;
            if (is_in(addr_i, GLB_CH_MASK_ADDR, GLB_CH_MASK_N)) ch_mask_o[s] <= wdata_i[15:0];
            if (take_slot && is_in(addr_i, GLB_PT_CONTEXT_ADDR, GLB_PT_CONTEXT_N))
              context_o[s] <= wdata_i[7:0];
            if (is_in(addr_i, GLB_SLOT_CTRL_ADDR, GLB_SLOT_CTRL_N)) begin
              if (take_slot) serial_o[s] <= wdata_i[SLOT_CTRL_SERIAL_LSB];
              tlb_flush_o[s] <= wdata_i[SLOT_CTRL_TLB_FLUSH_LSB];
            end
          end
      end
    end
  end
  assign irq_o = |(pend_q & enable_q);

  logic [31:0] rect_rdata;
  logic [1:0]  map_result;
  logic [3:0]  map_slot;
  npu_map #(
      .R(R),
      .C(C),
      .S(S)
  ) u_map (
      .clk_i,
      .rst_ni,
      .stage_we_i(we_rect),
      .stage_idx_i(idx),
      .stage_wdata_i(wdata_i),
      .stage_rdata_o(rect_rdata),
      .commit_i(we_i && addr_i == GLB_MAP_COMMIT_ADDR[11:0]),
      .quiet_i,
      .result_o(map_result),
      .slot_o(map_slot),
      .r0_o,
      .h_o,
      .c0_o,
      .w_o
  );

  // ---- readout -----------------------------------------------------------------------------
  assign cnt_addr_o = addr_i[9:2];
  always_comb begin
    rdata_o = '0;
    if (re_i) begin
      unique case (addr_i)
        GLB_ID_ADDR[11:0]:         rdata_o = GLB_ID_RESET;
        GLB_VERSION_ADDR[11:0]:    rdata_o = GLB_VERSION_RESET;
        GLB_SHAPE_ADDR[11:0]:      rdata_o = Shape;
        GLB_CAPS_ADDR[11:0]:       rdata_o = Caps;
        GLB_CTRL_ADDR[11:0]:       rdata_o = 32'(ideal_o) << CTRL_IDEAL_LSB;
        GLB_IRQ_PEND_ADDR[11:0]:   rdata_o = 32'(pend_q);
        GLB_IRQ_MASK_ADDR[11:0]:   rdata_o = 32'(enable_q);
        GLB_TIME_LO_ADDR[11:0]:    rdata_o = time_o[31:0];
        GLB_TIME_HI_ADDR[11:0]:    rdata_o = time_hi_q;
        GLB_MAP_STATUS_ADDR[11:0]: rdata_o = 32'(map_result) << MAP_STATUS_RESULT_LSB |
            32'(map_slot) << MAP_STATUS_SLOT_LSB;
        GLB_TIMING_ADDR[11:0]:     rdata_o = 32'(timing_o);
        GLB_HASH_ADDR[11:0]:
        if (!opaque_q)
          rdata_o = 32'(hash_o.k) << HASH_K_LSB | 32'(hash_o.q[2:0]) << HASH_Q_LSB |
                    32'(hash_o.gran) << HASH_GRAN_LSB | 32'(hash_o.q[3]) << HASH_QH_LSB |
                        32'(lock_q) << HASH_LOCK_LSB;
        GLB_MODE_STATUS_ADDR[11:0]: rdata_o = 32'(mode_status);
        default: rdata_o = shares_rdata;
      endcase
      if (is_in(addr_i, GLB_XMASK_ADDR, GLB_XMASK_N) && !opaque_q) rdata_o =
          32'(hash_o.xmask[mask]);
      if (is_in(addr_i, GLB_RECT_ADDR, GLB_RECT_N)) rdata_o = rect_rdata;
      if (addr_i >= CHAN_BASE[11:0] && 32'(addr_i) < 32'(CHAN_BASE) +
          CHAN_STRIDE * CHAN_COUNT) rdata_o = cnt_rdata_i;
      for (int s = 0; s < int'(S); s++)
        if (32'(idx) == s) begin
          if (is_in(addr_i, GLB_PT_BASE_ADDR, GLB_PT_BASE_N)) rdata_o = pt_base_o[s];
          if (is_in(addr_i, GLB_PT_COUNT_ADDR, GLB_PT_COUNT_N)) rdata_o = pt_count_o[s];
          if (is_in(addr_i, GLB_CH_MASK_ADDR, GLB_CH_MASK_N)) rdata_o = 32'(ch_mask_o[s]);
          if (is_in(addr_i, GLB_PT_CONTEXT_ADDR, GLB_PT_CONTEXT_N)) rdata_o = 32'(context_o[s]);
          if (is_in(addr_i, GLB_SLOT_CTRL_ADDR, GLB_SLOT_CTRL_N)) rdata_o =
              32'(serial_o[s]) << SLOT_CTRL_SERIAL_LSB |
              32'(tlb_flush_o[s] || tlb_held_i[s]) << SLOT_CTRL_TLB_FLUSH_LSB;
          if (is_in(addr_i, GLB_HELD_ADDR, GLB_HELD_N)) rdata_o = held_i[s];
        end
    end
  end

  // ---- what always holds -----------------------------------------------------------------------
  OneAccess: assert property (@(posedge clk_i) disable iff (!rst_ni)
      !(we_i && re_i));
  HashOdd: assert property (@(posedge clk_i) disable iff (!rst_ni)
      hash_o.q[0]);
  HashBuilt: assert property (@(posedge clk_i) disable iff (!rst_ni)
      32'(hash_o.q) << hash_o.k <= N && hash_o.k <= 3'd4);
  GranuleInRange: assert property (@(posedge clk_i) disable iff (!rst_ni)
      hash_o.gran >= 4'd8 && hash_o.gran <= 4'd12);
  LockStays: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(lock_q) |-> lock_q && $stable(hash_o));
  OpaqueStays: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(opaque_q) |-> opaque_q);
  OpaqueHides: assert property (@(posedge clk_i) disable iff (!rst_ni)
      opaque_q && (addr_i == GLB_HASH_ADDR[11:0] || is_in(addr_i, GLB_XMASK_ADDR, GLB_XMASK_N))
      |-> rdata_o == '0);
  EventKept: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) |-> ($past(event_d) & ~pend_q) == '0);
  PendingOfSlots: assert property (@(posedge clk_i) disable iff (!rst_ni)
      (pend_q & ~IrqBits[23:0]) == '0);
  TimeCounts: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) |-> time_o == $past(time_o) + 64'd1);
  ReadsNeedRead: assert property (@(posedge clk_i) disable iff (!rst_ni)
      !re_i |-> rdata_o == '0);
endmodule
