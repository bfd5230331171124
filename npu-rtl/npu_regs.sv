// SPDX-License-Identifier: Apache-2.0
// npu_regs: the privileged register page: identity, map, memory system, slots' modes, time,
// interrupts.
module npu_regs #(
    parameter  int unsigned R         = 16,
    parameter  int unsigned C         = 16,
    parameter  int unsigned S         = 4,
    parameter  int unsigned N         = 8,
    parameter  int unsigned DepthLog2 = 9,
    parameter  int unsigned SpadLog2  = 17,
    parameter  int unsigned BankBits  = 3,
    parameter  int unsigned TlbLog2   = 10,
    localparam int unsigned RW        = $clog2(R + 1),
    localparam int unsigned CW        = $clog2(C + 1)
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
  if (R < 1 || R > npu_pkg::MaxRows)
    $fatal(1, "npu_regs: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > npu_pkg::MaxCols)
    $fatal(1, "npu_regs: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_regs: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);
  if (N < 1 || N > npu_pkg::MaxChannels)
    $fatal(1, "npu_regs: N is %0d, not 1..%0d", N, npu_pkg::MaxChannels);
  if (DepthLog2 < 1 || DepthLog2 > (1 << CAPS_DEPTH_LOG2_W) - 1)
    $fatal(1, "npu_regs: DepthLog2 is %0d, not 1..%0d", DepthLog2, (1 << CAPS_DEPTH_LOG2_W) - 1);
  if (SpadLog2 < 1 || SpadLog2 > (1 << CAPS_SPAD_LOG2_W) - 1)
    $fatal(1, "npu_regs: SpadLog2 is %0d, not 1..%0d", SpadLog2, (1 << CAPS_SPAD_LOG2_W) - 1);
  if (BankBits < 1 || BankBits > (1 << CAPS_BANKS_LOG2_W) - 1)
    $fatal(1, "npu_regs: BankBits is %0d, not 1..%0d", BankBits, (1 << CAPS_BANKS_LOG2_W) - 1);
  if (TlbLog2 < 1 || TlbLog2 > (1 << CAPS_TLB_LOG2_W) - 1)
    $fatal(1, "npu_regs: TlbLog2 is %0d, not 1..%0d", TlbLog2, (1 << CAPS_TLB_LOG2_W) - 1);

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
  localparam logic [31:0] Caps = 32'(DepthLog2) << CAPS_DEPTH_LOG2_LSB |
      32'(SpadLog2) << CAPS_SPAD_LOG2_LSB |
                                 32'(BankBits) << CAPS_BANKS_LOG2_LSB |
                                     32'(TlbLog2) << CAPS_TLB_LOG2_LSB;
  localparam logic [31:0] IrqBits = 32'((1 << S) - 1) << IRQ_PEND_SIGNAL_LSB |
                                    32'((1 << S) - 1) << IRQ_PEND_FAULT_LSB |
                                    32'((1 << S) - 1) << IRQ_PEND_QUIET_LSB;
  localparam logic [10:0] HashReset = {4'd12, hash_all()};

  // ---- decode ------------------------------------------------------------------------------
  function automatic logic is_in(input logic [11:0] addr, input logic [15:0] base,
      input int unsigned n);
    return addr >= base[11:0] && 32'(addr) < 32'(base) + 4 * n;
  endfunction

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
  logic [3:0]  odd;    // Q of the HASH value being written
  logic [7:0]  named;  // channels that it names

  always_comb begin
    event_d = '0;
    event_d[IRQ_PEND_SIGNAL_LSB+:S] = irq_signal_i;
    event_d[IRQ_PEND_FAULT_LSB+:S]  = irq_fault_i;
    event_d[IRQ_PEND_QUIET_LSB+:S]  = irq_quiet_i;
  end

  logic bucket_bad;
  assign bucket_bad = 32'(wdata_i[BUCKET_SET_SLOT_LSB+:BUCKET_SET_SLOT_W]) >= S ||
                      (bucket_o.window != '0 && (bucket_o.budget == '0 || bucket_o.burst < 28'd4 ||
                                                 bucket_o.budget > bucket_o.burst));

  // Only what was built can be named: an impossible HASH leaves the old one.
  logic hash_ok;
  assign odd     = {wdata_i[HASH_QH_LSB], wdata_i[HASH_Q_LSB+:HASH_Q_W]};
  assign named   = 8'(odd) << wdata_i[HASH_K_LSB+:HASH_K_W];
  assign hash_ok = odd[0] && wdata_i[HASH_K_LSB+:HASH_K_W] <= 3'd4 && 32'(named) <= N &&
                   wdata_i[HASH_GRAN_LSB+:HASH_GRAN_W] >= 4'd8 &&
                       wdata_i[HASH_GRAN_LSB+:HASH_GRAN_W] <= 4'd12;

  // ---- modes -------------------------------------------------------------------------------
  // A write to a mode that something at work stands on is not taken, and says so.
  logic [1:0] mode_status_d, mode_status_q;
  logic       is_arb, is_shared, is_hash, is_machine, is_ctrl, is_slot, take_machine, take_slot;
  logic       serial_d, slot_serial, slot_idle;  // of the slot at idx
  always_comb begin
    slot_idle   = 1'b0;
    slot_serial = 1'b0;
    for (int s = 0; s < int'(S); s++)
      if (32'(idx) == s) begin
        slot_idle   = idle_i[s];
        slot_serial = serial_o[s];
      end
  end
  assign serial_d   = wdata_i[SLOT_CTRL_SERIAL_LSB];
  assign is_arb     = is_in(addr_i, GLB_ARB_ADDR, GLB_ARB_N);
  assign is_shared  = is_arb || addr_i == GLB_TURNS_ADDR[11:0] ||
                      addr_i == GLB_TURN_ORDER_ADDR[11:0] || addr_i == GLB_CH_GROUP_ADDR[11:0];
  assign is_hash    = addr_i == GLB_HASH_ADDR[11:0] || is_in(addr_i, GLB_XMASK_ADDR, GLB_XMASK_N);
  assign is_machine = is_shared || is_hash || addr_i == GLB_CTRL_ADDR[11:0] ||
                      addr_i == GLB_TIMING_ADDR[11:0];
  assign is_ctrl    = is_in(addr_i, GLB_SLOT_CTRL_ADDR, GLB_SLOT_CTRL_N);
  assign is_slot    = is_ctrl || is_in(addr_i, GLB_PT_BASE_ADDR, GLB_PT_BASE_N) ||
                      is_in(addr_i, GLB_PT_CONTEXT_ADDR, GLB_PT_CONTEXT_N);
  always_comb begin
    mode_status_d = mode_status_q;
    if (we_i && is_machine) begin
      mode_status_d = 2'(MODE_OK);
      if (!mem_idle_i) mode_status_d = 2'(MODE_BUSY);
      else if (is_hash && lock_q) mode_status_d = 2'(MODE_LOCKED);
      else if ((is_arb && wdata_i[ARB_MODE_LSB+:ARB_MODE_W] > 2'(ARB_TURNS)) ||
               (addr_i == GLB_HASH_ADDR[11:0] && !hash_ok))
        mode_status_d = 2'(MODE_RANGE);
    end else if (we_i && is_slot) begin
      mode_status_d = 2'(MODE_OK);
      if (32'(idx) >= S) mode_status_d = 2'(MODE_RANGE);
      else if (!slot_idle && !(is_ctrl && serial_d == slot_serial)) mode_status_d = 2'(MODE_BUSY);
    end else if (we_i && addr_i == GLB_BUCKET_SET_ADDR[11:0])
      mode_status_d = bucket_bad ? 2'(MODE_RANGE) : 2'(MODE_OK);
  end
  assign take_machine = we_i && is_machine && mode_status_d == 2'(MODE_OK);
  assign take_slot    = we_i && is_slot && mode_status_d == 2'(MODE_OK);
  always_ff @(posedge clk_i) begin
    mode_status_q <= rst_ni ? mode_status_d : 2'(MODE_OK);
  end

  // ---- shares of memory --------------------------------------------------------------------
  npu_pkg::arb_cfg_t    arb_d [2];
  npu_pkg::turns_cfg_t  turns_d;
  npu_pkg::bucket_set_t bucket_d;
  logic [N-1:0]         ch_group_d;
  logic [S-1:0]         bucket_set_d;
  logic                 turns_restart_d;
  always_comb begin
    for (int i = 0; i < 2; i++) arb_d[i] = arb_o[i];
    turns_d         = turns_o;
    bucket_d        = bucket_o;
    ch_group_d      = ch_group_o;
    bucket_set_d    = '0;
    turns_restart_d = 1'b0;
    if (take_machine && is_shared) begin
      turns_restart_d = 1'b1;
      unique case (addr_i)
        GLB_TURNS_ADDR[11:0]: begin
          turns_d.cycles = wdata_i[TURNS_CYCLES_LSB+:TURNS_CYCLES_W];
          turns_d.last   = wdata_i[TURNS_LAST_LSB+:TURNS_LAST_W];
        end
        GLB_TURN_ORDER_ADDR[11:0]: turns_d.order = wdata_i;
        GLB_CH_GROUP_ADDR[11:0]:   ch_group_d    = N'(wdata_i);
        default: begin
          arb_d[addr_i[2] ^ GLB_ARB_ADDR[2]].mode = wdata_i[ARB_MODE_LSB+:ARB_MODE_W];
          arb_d[addr_i[2] ^ GLB_ARB_ADDR[2]].pass = wdata_i[ARB_PASS_LSB+:ARB_PASS_W];
        end
      endcase
    end else if (we_i)
      unique case (addr_i)
        GLB_PRIO_ADDR[11:0]:          for (int i = 0; i < 2; i++) arb_d[i].prio = wdata_i;
        GLB_BUCKET_WINDOW_ADDR[11:0]: bucket_d.window = wdata_i[23:0];
        GLB_BUCKET_BUDGET_ADDR[11:0]: bucket_d.budget = wdata_i[27:0];
        GLB_BUCKET_BURST_ADDR[11:0]:  bucket_d.burst  = wdata_i[27:0];
        GLB_BUCKET_SET_ADDR[11:0]: begin
          bucket_d.group = wdata_i[BUCKET_SET_GROUP_LSB];
          for (int s = 0; s < int'(S); s++)
            bucket_set_d[s] = !bucket_bad &&
                              32'(wdata_i[BUCKET_SET_SLOT_LSB+:BUCKET_SET_SLOT_W]) == s;
        end
        default: ;
      endcase
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int i = 0; i < 2; i++) arb_o[i] <= '0;
      turns_o         <= '{cycles: 12'd128, last: 3'(S - 1), order: GLB_TURN_ORDER_RESET};
      turns_restart_o <= 1'b0;
      ch_group_o      <= '0;
      bucket_o        <= '0;
      bucket_set_o    <= '0;
    end else begin
      arb_o           <= arb_d;
      turns_o         <= turns_d;
      turns_restart_o <= turns_restart_d;
      ch_group_o      <= ch_group_d;
      bucket_o        <= bucket_d;
      bucket_set_o    <= bucket_set_d;
    end
  end

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
            hash_o.q    <= odd;
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
              if (take_slot) serial_o[s] <= serial_d;
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
        GLB_ARB_ADDR[11:0], GLB_ARB_ADDR[11:0] + 12'd4:
        rdata_o = 32'(arb_o[addr_i[2] ^ GLB_ARB_ADDR[2]].mode) << ARB_MODE_LSB |
                  32'(arb_o[addr_i[2] ^ GLB_ARB_ADDR[2]].pass) << ARB_PASS_LSB;
        GLB_TURNS_ADDR[11:0]:
        rdata_o = 32'(turns_o.cycles) << TURNS_CYCLES_LSB | 32'(turns_o.last) << TURNS_LAST_LSB;
        GLB_TURN_ORDER_ADDR[11:0]:    rdata_o = turns_o.order;
        GLB_PRIO_ADDR[11:0]:          rdata_o = arb_o[0].prio;
        GLB_CH_GROUP_ADDR[11:0]:      rdata_o = 32'(ch_group_o);
        GLB_MODE_STATUS_ADDR[11:0]:   rdata_o = 32'(mode_status_q);
        GLB_BUCKET_WINDOW_ADDR[11:0]: rdata_o = 32'(bucket_o.window);
        GLB_BUCKET_BUDGET_ADDR[11:0]: rdata_o = 32'(bucket_o.budget);
        GLB_BUCKET_BURST_ADDR[11:0]:  rdata_o = 32'(bucket_o.burst);
        default: ;
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
