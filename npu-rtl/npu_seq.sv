// SPDX-License-Identifier: Apache-2.0
// npu_seq: a slot's sequencer: its registers, what is done with each descriptor of the ring, and
// how the slot stops and goes on.
module npu_seq
  import npu_slot_pkg::*;
(
    input  logic         clk_i, rst_ni,
    input  logic         reg_we_i,
    input  logic [11:0]  reg_addr_i,
    input  logic [31:0]  reg_wdata_i,
    output logic [31:0]  reg_rdata_o,        // 0 where it is another's register
    output state_e       state_o,
    output logic         restart_o,          // the ring is set anew
    // Stopped at once: by PREEMPT, by a fault; kill: by these or anything else that drops what is
    // under way; flush: such a thing, because a DRAIN, FOLD or SAVE is over
    output logic         kill_now_o,
    input  logic         fault_i, kill_i, flush_i,
    // the descriptor at HEAD, from SDecode on, and the next
    output logic [31:0]  head_o,
    output logic [511:0] desc_o, next_o,
    output logic         array_o, next_v_o,
    input  logic         late_i,             // something ahead is wrong: nothing more is fetched
    // memory: the sequencer's own requests, and whether any of the slot are under way
    output logic         ask_v_o,
    output logic [31:0]  ask_va_o,
    output logic [6:0]   ask_len_o,
    output tag_t         ask_tag_o,
    input  logic         ask_gnt_i, ask_lost_i,
    input  npu_pkg::mem_rsp_t rsp_i,
    input  logic         pending_i,          // some are not answered
    input  logic         mem_busy_i,         // one is granted and not yet accepted
    // stores: a word or the context that was kept, taken when rdy; the one at hand; those that are
    // not answered
    output logic         word_v_o, kept_v_o,
    output logic         put_sums_o, get_sums_o,  // sums are stored, loaded
    input  logic         sums_v_i,                // with fold_stop_i, from_back_o: there are some
    input  logic         sums_done_i,
    input  logic         store_rdy_i, store_v_i, stores_i,
    output logic [31:0]  save_o,
    // the array's and the vector unit's operations
    input  logic         conv_busy_i, conv_end_i, vec_busy_i,
    input  npu_conv_pkg::seq_t conv_count_i,
    input  logic         ahead_start_i,      // the next one begins
    input  logic         frozen_i,           // nothing of it is in the array
    input  logic         fold_stop_i,        // a FOLD or SAVE is over, the context at hand
    input  logic         begun_i,            // with it: something is stored, or saved
    output logic         drain_o, fold_o,    // asked to stop; also between two tiles,
    output logic         freeze_o,           // between two rows
    // where it goes on from
    output logic         from_o, from_back_o, from_fault_o,
    input  logic         from_ok_i, from_ready_i,
    input  logic         quiet_i,            // nothing of it is in the array
    output logic         idle_o, stopped_o,
    output logic         irq_signal_o, irq_fault_o, irq_quiet_o
);
  import npu_regs_pkg::*;
  typedef logic [3:0] stop_t;                // a STATE code

  state_e      state_d, state_q;
  stop_t       stop_d, stop_q;               // what a stop will end in
  logic        drain_d, drain_q, fold_d, fold_q;
  logic        from_d, from_q;               // the descriptor at HEAD goes on from SAVE
  logic        freeze_d, freeze_q;
  logic        from_ok_d, from_ok_q, save_due_d, save_due_q, sums_due_d, sums_due_q;
  logic        wait_ok_d, wait_ok_q, sent_d, sent_q;
  logic [3:0]  pause_d, pause_q;
  logic [31:0] head_d, head_q;
  logic [31:6] save_d, save_q;
  logic        irq_signal_d, irq_fault_d, irq_quiet_d;

  // ---- registers --------------------------------------------------------------------------------
  logic       wr_preempt, wr_drain, wr_resume, saving;
  logic [2:0] preempt;
  assign preempt    = reg_wdata_i[2:0];
  assign wr_preempt = reg_we_i && reg_addr_i == SLOT_PREEMPT_OFF;
  assign wr_drain   = wr_preempt && (preempt == 3'(PREEMPT_DRAIN) || preempt == 3'(PREEMPT_FOLD)
                                     || preempt == 3'(PREEMPT_SAVE));
  assign wr_resume  = reg_we_i && reg_addr_i == SLOT_RESUME_OFF;
  // A stop that has yet to store its context becomes a kill, too.
  assign kill_now_o = wr_preempt && preempt == 3'(PREEMPT_KILL) && state_q != SStopped &&
      (state_q != SStopping || save_due_q);

  // Where a context is being stored is not moved.
  assign saving      = state_q == SSave || state_q == SSums || save_due_q;
  assign save_d      = reg_we_i && reg_addr_i == SLOT_SAVE_OFF && !saving ? reg_wdata_i[31:6]
                                                                          : save_q;

  // ---- the descriptor at HEAD, and the next -----------------------------------------------------
  logic        rsp_mine, desc_asked, ask_desc;
  logic [7:0]  op;
  logic        empty;                        // of descriptors
  logic [31:0] desc_va, ring_rdata;
  assign op       = desc_o[DESC_OPCODE_BIT +: 8];
  assign array_o  = op == 8'(OP_GEMM) || op == 8'(OP_CONV);
  assign rsp_mine = rsp_i.v && rsp_i.tag[8:7] == 2'd3 && !rsp_i.tag[6] && state_q != SStopping;
  npu_ring u_ring (
      .clk_i, .rst_ni, .kill_i, .reg_we_i, .reg_addr_i, .reg_wdata_i, .reg_rdata_o(ring_rdata),
      .restart_o, .state_i(state_q), .head_i(head_q), .quiet_i(drain_q || late_i),
      .under_way_i(conv_busy_i ? conv_count_i : 2'd1), .ahead_i(ahead_start_i), .empty_o(empty),
      .desc_o, .next_o, .next_v_o, .busy_o(desc_asked), .ask_v_o(ask_desc), .ask_va_o(desc_va),
      .ask_gnt_i, .ask_lost_i, .back_i(rsp_mine && rsp_i.tag[1:0] == TagDesc[1:0]),
      .data_i(rsp_i.data));

  // ---- memory -----------------------------------------------------------------------------------
  assign ask_v_o   = ask_desc || state_q == SWaitAsk || state_q == SFromAsk;
  assign ask_va_o  = ask_desc ? desc_va
                     : state_q == SFromAsk ? save_o : {desc_o[DESC_ADDR_A_BIT + 3 +: 29], 3'd0};
  assign ask_len_o = ask_desc ? 7'd64 : state_q == SFromAsk ? 7'd40 : 7'd8;
  assign ask_tag_o = ask_desc ? TagDesc : state_q == SFromAsk ? TagFrom : TagWait;
  assign save_o    = {save_q, 6'd0};

  logic asked, answered, sends, reached;
  assign asked     = ask_gnt_i && !ask_desc;
  assign answered  = !pending_i && !mem_busy_i;
  assign sends     = (state_q == SWrite || state_q == SSave) && !sent_q;
  assign word_v_o  = state_q == SWrite && !sent_q;
  assign kept_v_o  = state_q == SSave && !sent_q;
  assign put_sums_o = state_q == SSums;
  assign get_sums_o = state_q == SFromSums;
  assign reached   = rsp_i.data[9'({rsp_i.at[5:3], 6'd0}) +: 64]
                     >= {desc_o[DESC_SVALUE_HI_BIT +: 32], desc_o[DESC_SVALUE_LO_BIT +: 32]};
  assign sent_d    = (state_q == SWrite || state_q == SSave) && (sent_q || (store_rdy_i && sends));
  assign wait_ok_d = state_q == SDecode ? 1'b0 :
      rsp_mine && rsp_i.tag[1:0] == TagWait[1:0] ? reached : wait_ok_q;

  // Where it goes on from.
  logic from_done;
  assign from_back_o  = rsp_i.v && rsp_i.tag == TagFrom;
  assign from_ok_d    = state_q == SDecode ? 1'b0 :
      from_back_o ? from_ok_i : from_ok_q;
  assign from_done    = state_q == SFromRsp && answered;
  assign from_fault_o = from_done && !from_ok_q;
  assign from_o       = from_q;

  // ---- states -----------------------------------------------------------------------------------
  logic settled, stop_here, stop_over, resumable;
  assign settled   = (!conv_busy_i || (conv_end_i && conv_count_i == 2'd1)) && !vec_busy_i &&
      !store_v_i && answered && !desc_asked;
  assign stop_here = drain_q && (state_q == SIdle || state_q == SWaitPause);
  assign resumable = state_q == SStopped && stop_q != stop_t'(STATE_FAULT);
  // RING_BASE stops and starts the slot anew: no interrupt for that
  assign stop_over = state_q == SStopping && stop_q == stop_t'(STATE_IDLE) && answered;

  always_comb begin
    state_d      = state_q;
    stop_d       = stop_q;
    save_due_d   = save_due_q;
    sums_due_d   = sums_due_q;
    from_d       = from_q;
    head_d       = head_q;
    pause_d      = pause_q;
    irq_signal_d = 1'b0;
    irq_fault_d  = 1'b0;
    irq_quiet_d  = 1'b0;

    unique case (state_q)
      SIdle:
        if (stop_here) begin
          state_d = SStopping;
          stop_d  = from_q ? stop_t'(STATE_FOLDED) : stop_t'(STATE_DRAINED);
        end else if (!empty) state_d = SFetch;
      SFetch:
        if (flush_i) begin
          state_d = SStopping;
          stop_d  = from_q ? stop_t'(STATE_FOLDED) : stop_t'(STATE_DRAINED);
        end else if (next_v_o) state_d = SDecode;
      SDecode:
        if (from_q) state_d = SFromAsk;
        else unique case (op)
          8'(OP_NOP):                      state_d = SDone;
          8'(OP_SIGNAL), 8'(OP_TIMESTAMP): state_d = SWrite;
          8'(OP_WAIT):                     state_d = SWaitAsk;
          default:                         state_d = SRun;
        endcase
      SFromAsk: if (asked) state_d = SFromRsp;
      SFromRsp: if (from_done) state_d = sums_due_q ? SFromSums : SFromWork;
      SFromSums: if (sums_done_i) state_d = SFromWork;
      SFromWork:
        if (from_ready_i) begin
          state_d = SRun;
          from_d  = 1'b0;
        end
      SRun:
        if (fold_stop_i) begin
          state_d    = SStopping;
          save_due_d = begun_i;
          sums_due_d = sums_v_i;
          stop_d     = begun_i ? stop_t'(STATE_FOLDED) : stop_t'(STATE_DRAINED);
        end else if (!array_o) begin
          if (!vec_busy_i && !store_v_i) state_d = SFlush;
        end else if (conv_end_i && !store_v_i && !stores_i)
          state_d = conv_count_i > 2'd1 || ahead_start_i ? SDone : SFlush;
      SWrite: if (sent_q && !store_v_i) state_d = SFlush;
      SFlush: if (settled) state_d = SDone;
      SWaitAsk: if (asked) state_d = SWaitRsp;
      SWaitRsp:
        if (answered) begin
          state_d = wait_ok_q ? SDone : SWaitPause;
          pause_d = '0;
        end
      SWaitPause: begin
        pause_d = pause_q + 4'd1;
        if (stop_here) begin
          state_d = SStopping;
          stop_d  = stop_t'(STATE_DRAINED);
        end else if (&pause_q) state_d = SWaitAsk;
      end
      SDone: begin
        head_d       = head_q + 32'd1;
        irq_signal_d = op == 8'(OP_SIGNAL) && desc_o[DESC_F_IRQ_BIT];
        if (flush_i) begin
          state_d = SStopping;
          stop_d  = stop_t'(STATE_DRAINED);
        end else if (conv_busy_i && array_o && conv_count_i > 2'd1) state_d = SRun;
        else state_d = next_v_o && !drain_q ? SFetch : SIdle;
      end
      SStopping:
        if (answered && save_due_q) begin
          state_d    = SSave;
          save_due_d = 1'b0;
        end else if (answered) begin
          state_d     = SStopped;
          irq_fault_d = stop_q == stop_t'(STATE_FAULT);
          irq_quiet_d = stop_q != stop_t'(STATE_FAULT);
        end
      SSave:
        if (sent_q && !store_v_i && !stores_i) begin
          state_d     = sums_due_q ? SSums : SStopped;
          irq_quiet_d = !sums_due_q;
        end
      SSums:
        if (sums_done_i && !store_v_i && !stores_i) begin
          state_d     = SStopped;
          irq_quiet_d = 1'b1;
        end
      SStopped: if (wr_resume && resumable) state_d = SIdle;
      default: state_d = SIdle;
    endcase

    if (wr_resume && (resumable || (empty && (state_q == SIdle || (state_q == SStopping &&
        stop_q == stop_t'(STATE_IDLE))))))
      from_d = reg_wdata_i[RESUME_CONTEXT_LSB];
    if (from_back_o) sums_due_d = sums_v_i;
    // It is to stop where it stands.
    if (fold_q && (state_q == SFromAsk || state_q == SFromRsp || state_q == SFromSums
                   || state_q == SFromWork)) begin
      state_d    = SStopping;
      stop_d     = stop_t'(STATE_FOLDED);
      save_due_d = 1'b0;
      from_d     = 1'b0;
    end
    if (kill_now_o || fault_i) begin
      state_d    = SStopping;
      stop_d     = kill_now_o ? stop_t'(STATE_KILLED) : stop_t'(STATE_FAULT);
      save_due_d = 1'b0;
      from_d     = 1'b0;
    end
    if (restart_o) begin
      state_d    = SStopping;
      stop_d     = stop_t'(STATE_IDLE);
      save_due_d = 1'b0;
      from_d     = 1'b0;
      head_d     = '0;
    end
    if (stop_over && !restart_o && !kill_now_o) begin
      state_d     = SIdle;
      irq_quiet_d = 1'b0;
    end
  end

  always_comb begin
    drain_d = drain_q || wr_drain;
    freeze_d = freeze_q || (wr_preempt && preempt == 3'(PREEMPT_SAVE));
    fold_d   = fold_q || freeze_d || (wr_preempt && preempt == 3'(PREEMPT_FOLD));
    if ((wr_resume && resumable) || restart_o) {drain_d, fold_d, freeze_d} = '0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q      <= SIdle;
      stop_q       <= '0;
      drain_q      <= 1'b0;
      fold_q       <= 1'b0;
      freeze_q     <= 1'b0;
      from_q       <= 1'b0;
      save_due_q   <= 1'b0;
      sums_due_q   <= 1'b0;
      sent_q       <= 1'b0;
      head_q       <= '0;
      save_q       <= '0;
      irq_signal_o <= 1'b0;
      irq_fault_o  <= 1'b0;
      irq_quiet_o  <= 1'b0;
    end else begin
      state_q      <= state_d;
      stop_q       <= stop_d;
      drain_q      <= drain_d;
      fold_q       <= fold_d;
      freeze_q     <= freeze_d;
      from_q       <= from_d;
      save_due_q   <= save_due_d;
      sums_due_q   <= sums_due_d;
      sent_q       <= sent_d;
      head_q       <= head_d;
      save_q       <= save_d;
      irq_signal_o <= irq_signal_d;
      irq_fault_o  <= irq_fault_d;
      irq_quiet_o  <= irq_quiet_d;
    end
    // set by SDecode or the state before their use
    from_ok_q <= from_ok_d;
    wait_ok_q <= wait_ok_d;
    pause_q   <= pause_d;
  end

  assign state_o   = state_q;
  assign head_o    = head_q;
  assign drain_o   = drain_q;
  assign fold_o    = fold_q;
  assign freeze_o  = freeze_q;
  assign stopped_o = state_q == SStopped || (state_q == SIdle && empty) ||
      state_q == SWaitPause;
  assign idle_o    = (state_q == SStopped || (state_q == SIdle && empty && !drain_q)) && answered;

  logic [31:0] times_rdata;
  npu_times u_times (
      .clk_i, .rst_ni, .state_i(state_q), .preempt_i(wr_preempt), .restart_i(restart_o),
      .empty_i(empty), .quiet_i, .drain_i(drain_q), .frozen_i, .array_i(array_o), .reg_addr_i,
      .reg_rdata_o(times_rdata));

  // ---- register reads ---------------------------------------------------------------------------
  stop_t code;
  logic  waits;
  assign waits = state_q == SWaitPause || state_q == SWaitAsk || state_q == SWaitRsp;
  always_comb begin
    unique case (state_q)
      SIdle:            code = empty ? stop_t'(STATE_IDLE) : stop_t'(STATE_RUN);
      SStopping, SSave, SSums: code = stop_t'(STATE_STOPPING);
      SStopped:         code = stop_q;
      default:          code = stop_t'(STATE_RUN);
    endcase
    unique case (reg_addr_i)
      SLOT_STATUS_OFF: reg_rdata_o = 32'({waits, pending_i, quiet_i, code});
      SLOT_SAVE_OFF:   reg_rdata_o = save_o;
      default:         reg_rdata_o = ring_rdata | times_rdata;
    endcase
  end

  // ---- what always holds ------------------------------------------------------------------------
  // What is asked for may be dropped, or become another thing: killed, to stop where it stands, by
  // a write to a register that says where.
  logic dropped;
  assign dropped = kill_i || reg_we_i || (fold_q && state_q == SFromAsk);
  StateKnown: assert property (@(posedge clk_i) disable iff (!rst_ni)
      state_q inside {SIdle, SFetch, SDecode, SRun, SFlush, SWrite, SWaitAsk, SWaitRsp, SWaitPause,
                      SDone, SStopping, SStopped, SFromAsk, SFromRsp, SFromWork, SFromSums, SSave,
                      SSums});
  StopKnown: assert property (@(posedge clk_i) disable iff (!rst_ni)
      stop_q == stop_t'(STATE_IDLE) || stop_q == stop_t'(STATE_DRAINED) ||
      stop_q == stop_t'(STATE_KILLED) || stop_q == stop_t'(STATE_FAULT) ||
      stop_q == stop_t'(STATE_FOLDED));
  RequestHeld: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(ask_v_o) && !$past(ask_gnt_i) && !$past(dropped)
      |-> ask_v_o && $stable({ask_va_o, ask_len_o, ask_tag_o}));
  WaitAwaited: assert property (@(posedge clk_i) disable iff (!rst_ni)
      rsp_mine && rsp_i.tag[1:0] == TagWait[1:0] |-> state_q == SWaitRsp);
  FromAwaited: assert property (@(posedge clk_i) disable iff (!rst_ni)
      from_back_o |-> state_q == SFromRsp || state_q == SStopping);
endmodule
