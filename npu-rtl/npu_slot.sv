// SPDX-License-Identifier: Apache-2.0
// npu_slot: one tenant's engine: descriptor ring, sequencer, registers, counters, around npu_conv,
// npu_vec and a memory port.
module npu_slot #(
    parameter int R = 16, C = 16,
    localparam int RW = $clog2(R + 1), CW = $clog2(C + 1)
) (
    input  logic                clk_i, rst_ni,
    input  logic                clk_free_i,  // clk_i that never stops
    input  logic [2:0]          id_i,       // its number, for those who watch
    input  logic [RW-1:0]       h_i,
    input  logic [CW-1:0]       w_i,
    input  logic [31:0]         pt_base_i, pt_count_i,
    input  logic [7:0]          context_i,
    input  logic [15:0]         ch_mask_i,
    input  logic                serial_i, tlb_flush_i,
    input  npu_pkg::hash_cfg_t  hash_i,
    input  logic [63:0]         time_i,
    input  logic                reg_we_i,
    input  logic [11:0]         reg_addr_i,
    input  logic [31:0]         reg_wdata_i,
    output logic [31:0]         reg_rdata_o,
    input  logic                snap_i,
    output npu_pkg::mem_req_t   req_o,
    output npu_pkg::line_t      wdata_o,
    input  logic                acc_i,
    input  npu_pkg::mem_rsp_t   rsp_i,
    output logic signed [8:0]   a_o [R],
    output logic [R-1:0]        sw_o, ld_o,
    output logic signed [8:0]   w_o [C],
    output logic                group_o,
    output logic [9*R*C-1:0]    g_o,
    input  logic signed [31:0]  p_i [C],
    output logic                quiet_o, idle_o,
    output logic                irq_signal_o, irq_fault_o, irq_quiet_o
);
  if (R < 1 || R > int'(npu_pkg::MaxRows))
    $fatal(1, "npu_slot: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_slot: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  import npu_regs_pkg::*;
  localparam logic [8:0] TagStore = 9'h100, TagDesc = 9'h180, TagWait = 9'h181, TagFrom = 9'h182;

  typedef enum logic [3:0] {
    SIdle, SFetch, SDecode, SRun, SFlush, SWrite, SWaitAsk, SWaitRsp, SWaitPause, SDone, SStopping,
        SStopped,
    SFromAsk, SFromRsp, SFromWork,        // where the operation goes on: read, checked, worked out
    SSave                                 // how far it has come, stored
  } state_e;

  // ---- registers --------------------------------------------------------------------------------
  logic [31:0] ring_base_q, head_q, tail_q, fault_addr_q, fault_desc_q, preempt_cycles_q;
  logic [31:6] save_q;
  logic [3:0]  ring_log2_q, fault_kind_q;
  state_e      state_q;
  logic [2:0]  stop_q;                    // STATE code a stop will end in
  logic        drain_q, timing_q;
  // with drain_q: the array's operation may stop between two tiles
  logic        fold_q;
  logic        from_q;                    // the descriptor at HEAD goes on from SAVE
  logic        save_due_q;
  logic        wr_ring, wr_preempt, wr_resume;
  assign wr_ring    = reg_we_i && reg_addr_i == SLOT_RING_BASE_OFF;
  assign wr_preempt = reg_we_i && reg_addr_i == SLOT_PREEMPT_OFF;
  assign wr_resume  = reg_we_i && reg_addr_i == SLOT_RESUME_OFF;

  // ---- kill, fault ------------------------------------------------------------------------------
  logic        kill, mmu_fault, dec_fault, stuck, stray, empty;
  logic [3:0]  mmu_kind, dec_kind;
  logic [31:0] mmu_va, dec_addr;
  logic        fault_now, kill_now, reset_now, denied, from_fault;
  assign kill_now  = wr_preempt && reg_wdata_i[2:0] == 3'(PREEMPT_KILL) && state_q != SStopped &&
      state_q != SStopping;
  assign reset_now = wr_ring;
  assign denied    = rsp_i.v && rsp_i.denied && state_q != SStopping && state_q != SStopped;
  logic        late_v_q, late_desc_q, mmu_desc;
  logic [1:0]  late_seq_q;
  logic [3:0]  late_kind_q;
  logic [31:0] late_va_q;
  logic        mmu_now, late_now, flush;  // flush: what is ahead, or not begun, when a drain ends
  assign fault_now = mmu_now || late_now || dec_fault || stuck || stray || empty || denied ||
      from_fault;
  assign kill      = kill_now || fault_now || reset_now || flush || !rst_ni;

  // ---- the current descriptor and the next ------------------------------------------------------
  logic [511:0] desc_q, next_q;
  logic         next_v_q, next_ask_q, next_sent_q;
  logic [7:0]   op;
  assign op = desc_q[DESC_OPCODE_BIT +: 8];

  logic is_array, is_vec;
  assign is_array = op == 8'(OP_GEMM) || op == 8'(OP_CONV);
  assign is_vec   = op == 8'(OP_VEC);

  // Field checks, while the descriptor waits or is taken; whether there are PEs, when it begins.
  logic [3:0] check_kind, check_word, bad_kind_q, bad_word_q;
  npu_check u_check (
      .v_i(next_v_q && (state_q == SFetch || (state_q == SRun && is_array))), .desc_i(next_q),
      .kind_o(check_kind), .word_o(check_word));
  always_ff @(posedge clk_i) begin
    bad_kind_q <= check_kind;
    bad_word_q <= check_word;
  end
  assign dec_kind  = bad_kind_q != 4'(FAULT_NONE) ? bad_kind_q : 4'(FAULT_NO_UNITS);
  assign dec_addr  = 32'(bad_word_q);
  assign dec_fault = state_q == SDecode && (bad_kind_q != 4'(FAULT_NONE) || (is_array && h_i == 0));

  // ---- units ------------------------------------------------------------------------------------
  logic         conv_quiet;
  logic         conv_start, vec_start, conv_busy, vec_busy, vec_work, row, fold, stall_a,
      stall_bank, stall_w, stall_out;
  logic [15:0]  macs;
  logic         c_push, v_push, c_pop, v_pop, f_rdy, f_pop_v;
  logic         c_cut;
  logic [31:0]  c_push_va, v_push_va, c_jump;
  logic [5:0]   c_push_len, v_push_len;
  logic [8:0]   c_push_meta, v_push_meta, f_meta;
  logic [6:0]   f_ready;
  logic [255:0] f_data;
  logic         f_req, f_empty, a_req, cst_v, vst_v, cst_rdy, vst_rdy;
  logic [31:0]  f_va, a_va, cst_va, vst_va;
  logic [6:0]   f_len;
  logic [8:0]   f_tag, a_tag;
  logic [5:0]   cst_len, vst_len;
  logic [255:0] cst_data, vst_data;
  logic [3:0]   m_v, m_gnt;
  logic [31:0]  m_va [4];
  logic [6:0]   m_len [4];
  logic [8:0]   m_tag [4];
  logic [1:0]   m_seq [4], mmu_seq;
  logic [8:0]   mmu_tag;
  logic         walk, m_busy;             // m_busy: a request granted and not yet accepted
  // Operations of the array under way: the oldest, how many, whether another may come, whether the
  // oldest's stores have been handed over, and all been done.
  npu_conv_pkg::seq_t conv_head, conv_in, conv_count, push_seq, a_seq;
  logic         conv_ready, conv_end, conv_behind, retire;
  logic         ahead_v, ahead_bad, ahead_behind, ahead_start;
  logic         stores;                   // some are granted and not yet answered
  logic         st_last, st_mark_q;       // the store at hand: its last piece; the last of a panel,
  logic [31:0]  st_upto_q;                // behind which the next panel's first output lies
  logic         store_epoch, acked_v, a_behind, a_held, cst_mark;
  logic [31:0]  acked, cst_upto;
  npu_conv_pkg::from_t begin_at;
  logic         conv_halted, conv_begun, fold_stop, from_done, from_ready;
  logic [255:0] conv_context;
  assign conv_count = conv_in - conv_head;
  assign retire     = state_q == SDone && is_array;
  assign flush      = (retire && drain_q && conv_count > 2'd1) || fold_stop;
  // The next descriptor's operation begins while this one runs, if both are the array's, it reads
  // no weights or parameters that one under way writes, and nothing is wrong with it.
  assign ahead_start = state_q == SRun && is_array && next_v_q && ahead_v && !ahead_bad &&
      conv_ready
                       && bad_kind_q == 4'(FAULT_NONE) && !drain_q && !late_v_q && !kill;
  assign conv_start = (state_q == SDecode && !dec_fault && is_array && !from_q) ||
      (state_q == SFromWork && from_ready) || ahead_start;
  assign conv_behind = ahead_start && ahead_behind;
  assign vec_start  = state_q == SDecode && !dec_fault && is_vec && !from_q;

  npu_conv #(.R(R), .C(C)) u_conv (
      .clk_i, .rst_ni, .id_i, .kill_i(kill), .start_i(conv_start),
      .desc_i(ahead_start ? next_q : desc_q),
      .behind_i(conv_behind), .from_v_i(state_q == SFromWork), .from_i(begin_at),
      .ready_o(conv_ready), .end_o(conv_end), .retire_i(retire), .halt_i(fold_q),
      .halted_o(conv_halted), .begun_o(conv_begun), .context_o(conv_context), .head_o(conv_head),
      .in_o(conv_in),
      .push_seq_o(push_seq), .a_seq_o(a_seq), .h_i, .w_i, .serial_i, .time_i,
      .busy_o(conv_busy), .quiet_o(conv_quiet), .stuck_o(stuck), .stray_o(stray),
      .push_o(c_push), .push_va_o(c_push_va), .push_len_o(c_push_len), .push_meta_o(c_push_meta),
      .push_cut_o(c_cut), .push_jump_o(c_jump), .push_rdy_i(f_rdy && c_push),
      .pop_v_i(f_pop_v && conv_busy), .ready_i(f_ready), .data_i(f_data), .meta_i(f_meta),
      .pop_o(c_pop),
      .a_held_i(a_held), .a_behind_o(a_behind), .a_req_o(a_req), .a_va_o(a_va), .a_tag_o(a_tag),
      .a_gnt_i(m_gnt[1]), .rsp_i,
      .st_v_o(cst_v), .st_va_o(cst_va), .st_len_o(cst_len), .st_data_o(cst_data),
      .st_mark_o(cst_mark), .st_upto_o(cst_upto), .st_rdy_i(cst_rdy),
      .a_o, .sw_o, .ld_o, .w_o, .group_o, .g_o, .p_i,
      .row_o(row), .fold_o(fold), .stall_a_o(stall_a), .stall_bank_o(stall_bank),
      .stall_w_o(stall_w), .stall_out_o(stall_out), .macs_o(macs));

  npu_vec u_vec (
      .clk_i, .rst_ni, .kill_i(kill), .start_i(vec_start), .desc_i(desc_q), .busy_o(vec_busy),
      .work_o(vec_work), .empty_o(empty),
      .push_o(v_push), .push_va_o(v_push_va), .push_len_o(v_push_len), .push_meta_o(v_push_meta),
      .push_rdy_i(f_rdy && v_push), .pop_v_i(f_pop_v && !conv_busy), .data_i(f_data),
      .meta_i(f_meta), .pop_o(v_pop),
      .st_v_o(vst_v), .st_va_o(vst_va), .st_len_o(vst_len), .st_data_o(vst_data),
      .st_rdy_i(vst_rdy));

  npu_fetch u_fetch (
      .clk_i, .rst_ni, .clear_i(kill), .push_i(c_push || v_push),
      .va_i(conv_busy ? c_push_va : v_push_va),
      .len_i(conv_busy ? c_push_len : v_push_len), .meta_i(conv_busy ? c_push_meta : v_push_meta),
      .cut_i(conv_busy && c_cut), .jump_i(c_jump), .push_rdy_o(f_rdy),
      .req_o(f_req), .req_va_o(f_va), .req_len_o(f_len), .req_tag_o(f_tag), .gnt_i(m_gnt[0]),
      .rsp_i,
      .pop_v_o(f_pop_v), .empty_o(f_empty), .ready_o(f_ready), .data_o(f_data), .meta_o(f_meta),
      .pop_i(c_pop || v_pop));

  // Whoever reads what it wrote may come now.
  Acknowledged: assert property (@(posedge clk_i) disable iff (!rst_ni)
      retire |-> !stores);

  // What an operation left would be the next one's weights.
  QueueEmpty: assert property (@(posedge clk_i) disable iff (!rst_ni)
      (conv_start && !conv_busy) || vec_start |-> f_empty);

  // What operations under way write, and what the next one reads.
  npu_ahead u_ahead (
      .clk_i, .clear_i(kill), .start_i(conv_start && !ahead_start), .desc_i(desc_q),
      .at_i(conv_in), .head_i(conv_head),
      .next_v_i(next_v_q && state_q == SRun && is_array), .next_i(next_q), .take_i(ahead_start),
      .v_o(ahead_v), .bad_o(ahead_bad), .behind_o(ahead_behind),
      .behind_i(a_behind), .line_i(a_va[31:6]), .acked_v_i(acked_v), .acked_i(acked),
      .held_o(a_held));

  // How far the oldest operation's stores have been answered.
  npu_acked u_acked (
      .clk_i, .clear_i(kill || state_q == SStopping || state_q == SStopped), .retire_i(retire),
      .store_i(m_gnt[2]),
      .mark_i(st_mark_q && st_last), .upto_i(st_upto_q), .back_i(rsp_i.v && rsp_i.we),
      .back_epoch_i(rsp_i.tag[0]),
      .epoch_o(store_epoch), .any_o(stores), .v_o(acked_v), .upto_o(acked));

  // Between two folds, and when it is about to begin, an operation counts on its rectangle.
  assign quiet_o = conv_quiet && !conv_busy && !conv_start && state_q != SFromAsk &&
      state_q != SFromRsp && state_q != SFromWork;

  // ---- stores: from either unit or the sequencer, cut at line ends ------------------------------
  logic         st_v_q, st_free, q_v;
  logic [31:0]  st_va_q;
  logic [5:0]   st_len_q;
  logic [255:0] st_data_q;
  logic [6:0]   st_room, st_piece;
  assign st_room  = 7'd64 - 7'(st_va_q[5:0]);
  assign st_piece = 7'(st_len_q) < st_room ? 7'(st_len_q) : st_room;
  assign st_last  = st_piece == 7'(st_len_q);
  assign st_free  = !st_v_q || (m_gnt[2] && st_last);
  assign cst_rdy  = st_free;
  assign vst_rdy  = st_free && !cst_v;
  logic q_sent_q;
  assign q_v      = (state_q == SWrite || state_q == SSave) && !q_sent_q;
  always_ff @(posedge clk_i) begin
    if (m_gnt[2]) begin
      if (st_last) st_v_q <= 1'b0;
      else begin
        st_va_q   <= st_va_q + 32'(st_piece);
        st_len_q  <= st_len_q - 6'(st_piece);
        st_data_q <= st_data_q >> {st_piece, 3'd0};
      end
    end
    if (st_free) begin
      st_mark_q <= cst_v && cst_mark;
      st_upto_q <= cst_upto;
      if (cst_v) begin
        st_v_q    <= 1'b1;
        st_va_q   <= cst_va;
        st_len_q  <= cst_len;
        st_data_q <= cst_data;
      end else if (vst_v) begin
        st_v_q    <= 1'b1;
        st_va_q   <= vst_va;
        st_len_q  <= vst_len;
        st_data_q <= vst_data;
      end else if (q_v) begin
        st_v_q <= 1'b1;
        if (state_q == SWrite) begin
          st_va_q   <= desc_q[DESC_ADDR_D_BIT +: 32];
          st_len_q  <= 6'd8;
          st_data_q <= op == 8'(OP_TIMESTAMP) ? 256'(time_i)
                            : 256'({desc_q[DESC_SVALUE_HI_BIT +: 32],
                                desc_q[DESC_SVALUE_LO_BIT +: 32]});
        end
      end
    end
    if (fold_stop) begin                  // stored in SSave
      st_va_q   <= {save_q, 6'd0};
      st_len_q  <= 6'd32;
      st_data_q <= conv_context;
    end
    q_sent_q <= (state_q == SWrite || state_q == SSave) && (q_sent_q || (st_free && q_v));
    if (kill) st_v_q <= 1'b0;
  end

  // ---- memory port ------------------------------------------------------------------------------
  logic [8:0] pending_q;                  // requests accepted and not yet answered
  logic       desc_ask;
  logic [1:0] next_off;                   // the descriptor asked for: at HEAD, or so many after it
  assign desc_ask = next_ask_q && !next_sent_q;
  assign m_v      = {desc_ask || state_q == SWaitAsk || state_q == SFromAsk, st_v_q, a_req, f_req};
  assign m_va[0]  = f_va;
  assign m_va[1]  = a_va;
  assign m_va[2]  = st_va_q;
  assign m_va[3]  = desc_ask ? ring_base_q +
      (((head_q + 32'(next_off)) & ~(32'hFFFFFFFF << ring_log2_q)) << 6)
                             : state_q == SFromAsk ? {save_q, 6'd0} :
                                 {desc_q[DESC_ADDR_A_BIT + 3 +: 29], 3'd0};
  assign m_len[0] = f_len;
  assign m_len[1] = 7'd64;
  assign m_len[2] = st_piece;
  assign m_len[3] = desc_ask ? 7'd64 : state_q == SFromAsk ? 7'd32 : 7'd8;
  assign m_tag[0] = f_tag;
  assign m_tag[1] = a_tag;
  assign m_tag[2] = TagStore | 9'(store_epoch);
  assign m_tag[3] = desc_ask ? TagDesc : state_q == SFromAsk ? TagFrom : TagWait;
  assign next_off = state_q == SIdle || state_q == SFetch ? 2'd0 : conv_busy ? conv_count : 2'd1;
  assign m_seq[0] = push_seq;
  assign m_seq[1] = a_seq;
  assign m_seq[2] = conv_head;
  assign m_seq[3] = conv_head;

  // A fault of what is ahead - a descriptor not yet begun, an operation that is not the oldest -
  // waits until that is the current one: only then is it sure to come.  Of several the oldest's
  // counts.
  assign mmu_desc = mmu_tag == TagDesc;
  assign mmu_now  = mmu_fault &&
      (mmu_desc ? state_q == SIdle || state_q == SFetch : mmu_seq == conv_head);
  assign late_now = late_v_q &&
      (late_desc_q ? state_q == SFetch : state_q == SRun && late_seq_q == conv_head);
  always_ff @(posedge clk_i) begin
    if (mmu_fault && !mmu_now
        && (!late_v_q || (!mmu_desc &&
            (late_desc_q || 2'(mmu_seq - conv_head) < 2'(late_seq_q - conv_head))))) begin
      late_v_q    <= 1'b1;
      late_desc_q <= mmu_desc;
      late_seq_q  <= mmu_seq;
      late_kind_q <= mmu_kind;
      late_va_q   <= mmu_va;
    end
    if (kill || state_q == SStopping) late_v_q <= 1'b0;
  end

  npu_mmu u_mmu (
      .clk_i, .rst_ni, .kill_i(kill), .flush_i(tlb_flush_i), .pt_base_i, .pt_count_i, .context_i,
      .ch_mask_i, .hash_i,
      .v_i(m_v), .urgent_i({1'b0, stall_out, stall_a, conv_busy && push_seq == conv_head &&
      32'(f_ready) < R}), .va_i(m_va), .len_i(m_len), .tag_i(m_tag), .seq_i(m_seq), .we_i(4'b0100),
      .gnt_o(m_gnt), .wdata_i(512'(st_data_q)),
      .req_o, .wdata_o, .acc_i, .rsp_i, .busy_o(m_busy), .fault_o(mmu_fault),
      .fault_seq_o(mmu_seq), .fault_tag_o(mmu_tag),
      .drop_i(mmu_fault && !mmu_now), .fault_kind_o(mmu_kind), .fault_va_o(mmu_va),
      .miss_o(walk));

  // ---- progress inside the array's operation ----------------------------------------------------
  // FOLD: no tile begins; when those that have are stored, the context of the oldest operation says
  // how far it has come. What it has of the descriptor's own makes it of use to that one alone.
  logic        from_back, from_ok, from_ok_q;
  logic [19:0] dm;
  logic [14:0] from_rows, from_most;
  npu_conv_pkg::progress_t from_at;
  assign fold_stop = state_q == SRun && is_array && conv_halted && !st_v_q && !stores;
  assign dm        = desc_q[DESC_DM_BIT +: 20];
  assign from_rows = rsp_i.data[DESC_FOLD_T_BIT +: 15];
  assign from_most = 15'(1 << npu_pkg::DepthLog2)
                     >> (desc_q[DESC_F_OUT32_BIT] ? 2'd2 : 2'(from_at.half));
  assign from_at   = '{half: rsp_i.data[DESC_FOLD_HALF_BIT], m: rsp_i.data[DESC_FOLD_M_BIT +: 20],
                       t: npu_conv_pkg::rows_t'(from_rows), n: rsp_i.data[DESC_FOLD_N_BIT +: 16]};
  assign from_back = rsp_i.v && rsp_i.tag == TagFrom;
  assign from_ok   = is_array && rsp_i.data[DESC_ADDR_B_BIT +: 96] == desc_q[DESC_ADDR_B_BIT +: 96]
                     && rsp_i.data[DESC_DM_BIT +: 20] == dm
                     && rsp_i.data[DESC_DN_BIT +: 16] == desc_q[DESC_DN_BIT +: 16]
                     && from_at.n < desc_q[DESC_DN_BIT +: 16] && from_rows != 0 &&
                         from_rows <= from_most
                     && 16'(from_rows) <= desc_q[DESC_PANEL_BIT +: 16]
                     && 33'(rsp_i.data[DESC_FOLD_M_BIT +: 32]) + 33'(from_rows) <= 33'(dm);
  assign from_done  = state_q == SFromRsp && pending_q == 0 && !m_busy;
  assign from_fault = from_done && !from_ok_q;
  npu_conv_from u_from (
      .clk_i, .rst_ni, .start_i(from_back), .progress_i(from_at), .desc_i(desc_q),
      .done_o(from_ready), .from_o(begin_at));

  // ---- sequencer --------------------------------------------------------------------------------
  logic [3:0] pause_q;
  logic       wait_ok_q, settled, stop_here;
  assign settled   = (!conv_busy || (conv_end && conv_count == 2'd1)) && !vec_busy && !st_v_q &&
      !m_busy && pending_q == 0 && !next_ask_q;
  assign stop_here = drain_q && (state_q == SIdle || state_q == SWaitPause);

  always_ff @(posedge clk_i) begin
    irq_signal_o <= 1'b0;
    irq_fault_o  <= 1'b0;
    irq_quiet_o  <= 1'b0;
    pending_q    <= pending_q + 9'(acc_i) - 9'(rsp_i.v);

    // the next descriptor is fetched while the current one runs
    if (!next_ask_q && !next_v_q && !drain_q && !late_v_q
        && ((state_q == SIdle && head_q != tail_q) ||
            (state_q == SRun && head_q + 32'(next_off) != tail_q))) begin
      next_ask_q  <= 1'b1;
      next_sent_q <= 1'b0;
    end
    if (m_gnt[3] && desc_ask) next_sent_q <= 1'b1;
    if (mmu_fault && mmu_desc && !mmu_now) next_ask_q <= 1'b0;
    if (ahead_start) next_v_q <= 1'b0;
    if (rsp_i.v && rsp_i.tag[8:7] == 2'd3 && !rsp_i.tag[6] && state_q != SStopping) begin
      if (rsp_i.tag[1]) from_ok_q <= from_ok;
      else if (!rsp_i.tag[0]) begin
        next_q     <= rsp_i.data;
        next_v_q   <= 1'b1;
        next_ask_q <= 1'b0;
      end else wait_ok_q <= rsp_i.data[9'({rsp_i.at[5:3], 6'd0}) +: 64]
                            >= {desc_q[DESC_SVALUE_HI_BIT +: 32], desc_q[DESC_SVALUE_LO_BIT +: 32]};
    end

    unique case (state_q)
      SIdle:
        if (stop_here) begin
          state_q <= SStopping;
          stop_q  <= from_q ? 3'(STATE_FOLDED) : 3'(STATE_DRAINED);
        end else if (head_q != tail_q) state_q <= SFetch;
      SFetch:
        if (next_v_q) begin
          desc_q   <= next_q;
          next_v_q <= 1'b0;
          state_q  <= SDecode;
        end
      SDecode:
        if (from_q) state_q <= SFromAsk;
        else unique case (op)
          8'(OP_NOP):                        state_q <= SDone;
          8'(OP_SIGNAL), 8'(OP_TIMESTAMP):   state_q <= SWrite;
          8'(OP_WAIT):                       state_q <= SWaitAsk;
          default:                           state_q <= SRun;
        endcase
      SFromAsk: if (m_gnt[3] && !desc_ask) state_q <= SFromRsp;
      SFromRsp: if (from_done) state_q <= SFromWork;
      SFromWork:
        if (from_ready) begin
          state_q <= SRun;
          from_q  <= 1'b0;
        end
      SRun:
        if (fold_stop) begin
          state_q    <= SStopping;
          save_due_q <= conv_begun;
          stop_q     <= conv_begun ? 3'(STATE_FOLDED) : 3'(STATE_DRAINED);
        end else if (!is_array) begin
          if (!vec_busy && !st_v_q) state_q <= SFlush;
        end else if (conv_end && !st_v_q && !stores)
          state_q <= conv_count > 2'd1 || ahead_start ? SDone : SFlush;
      SWrite: if (q_sent_q && !st_v_q) state_q <= SFlush;
      SFlush: if (settled) state_q <= SDone;
      SWaitAsk: if (m_gnt[3] && !desc_ask) state_q <= SWaitRsp;
      SWaitRsp:
        if (pending_q == 0 && !m_busy) begin
          state_q <= wait_ok_q ? SDone : SWaitPause;
          pause_q <= '0;
        end
      SWaitPause: begin
        pause_q <= pause_q + 4'd1;
        if (stop_here) begin
          state_q <= SStopping;
          stop_q  <= 3'(STATE_DRAINED);
        end else if (&pause_q) state_q <= SWaitAsk;
      end
      SDone: begin
        head_q       <= head_q + 32'd1;
        irq_signal_o <= op == 8'(OP_SIGNAL) && desc_q[DESC_F_IRQ_BIT];
        state_q      <= conv_busy && is_array && conv_count > 2'd1 ? SRun : next_v_q && !drain_q ?
            SFetch : SIdle;
        if (flush) begin
          state_q <= SStopping;
          stop_q  <= 3'(STATE_DRAINED);
        end
      end
      SStopping:
        if (pending_q == 0 && !m_busy && save_due_q) begin
          state_q    <= SSave;
          save_due_q <= 1'b0;
        end else if (pending_q == 0 && !m_busy) begin
          state_q <= SStopped;
          if (stop_q == 3'(STATE_FAULT)) irq_fault_o <= 1'b1;
          else irq_quiet_o <= 1'b1;
        end
      SSave:
        if (q_sent_q && !st_v_q && !stores) begin
          state_q     <= SStopped;
          irq_quiet_o <= 1'b1;
        end
      SStopped: ;
      default: state_q <= SIdle;
    endcase
    if (state_q == SDecode) begin
      wait_ok_q <= 1'b0;
      from_ok_q <= 1'b0;
    end

    if (reg_we_i) begin
      if (reg_addr_i == SLOT_TAIL_OFF) tail_q <= reg_wdata_i;
      if (reg_addr_i == SLOT_RING_LOG2_OFF) ring_log2_q <= reg_wdata_i[3:0];
      if (reg_addr_i == SLOT_SAVE_OFF) save_q <= reg_wdata_i[31:6];
    end
    if (wr_preempt && (reg_wdata_i[2:0] == 3'(PREEMPT_DRAIN) ||
        reg_wdata_i[2:0] == 3'(PREEMPT_FOLD))) drain_q <= 1'b1;
    if (wr_preempt && reg_wdata_i[2:0] == 3'(PREEMPT_FOLD)) fold_q <= 1'b1;
    if (wr_preempt && state_q != SStopped) begin
      timing_q         <= 1'b1;
      preempt_cycles_q <= '0;
    end else if (timing_q) begin
      preempt_cycles_q <= preempt_cycles_q + 32'd1;
      if (quiet_o && (!drain_q || state_q == SStopping || state_q == SStopped)) timing_q <= 1'b0;
    end
    if (wr_resume && state_q == SStopped && stop_q != 3'(STATE_FAULT)) begin
      state_q <= SIdle;
      drain_q <= 1'b0;
      fold_q  <= 1'b0;
    end
    if (wr_resume && ((state_q == SStopped && stop_q != 3'(STATE_FAULT))
                      || (head_q == tail_q && (state_q == SIdle ||
                          (state_q == SStopping && stop_q == 3'(STATE_IDLE))))))
      from_q <= reg_wdata_i[RESUME_CONTEXT_LSB];
    if (kill_now || fault_now) begin
      from_q     <= 1'b0;
      save_due_q <= 1'b0;
      state_q    <= SStopping;
      stop_q     <= kill_now ? 3'(STATE_KILLED) : 3'(STATE_FAULT);
    end
    if (fault_now && !kill_now) begin
      fault_kind_q <= late_now ? late_kind_q : mmu_now ? mmu_kind : denied ? 4'(FAULT_CHANNEL)
                                : dec_fault ? dec_kind : from_fault ? 4'(FAULT_CONTEXT) :
                                    4'(FAULT_FIELD);
      fault_addr_q <= late_now ? late_va_q : mmu_now ? mmu_va : denied ? '1 : dec_fault ? dec_addr
                                : from_fault ? {save_q, 6'd0} : stray ? 32'd3 : stuck ? 32'd15 :
                                    32'd13;
      fault_desc_q <= head_q;
    end
    if (kill) begin
      next_v_q    <= 1'b0;
      next_ask_q  <= 1'b0;
      next_sent_q <= 1'b0;
    end
    if (wr_ring) begin
      ring_base_q  <= reg_wdata_i;
      head_q       <= '0;
      tail_q       <= '0;
      fault_kind_q <= 4'(FAULT_NONE);
      drain_q      <= 1'b0;
      fold_q       <= 1'b0;
      from_q       <= 1'b0;
      save_due_q   <= 1'b0;
      state_q      <= SStopping;
      stop_q       <= 3'(STATE_IDLE);
    end
    // RING_BASE stops and starts the slot anew: no interrupt for that
    if (state_q == SStopping && stop_q == 3'(STATE_IDLE) && pending_q == 0 && !m_busy &&
        !wr_ring && !kill_now) begin
      state_q     <= SIdle;
      irq_quiet_o <= 1'b0;
    end
    if (!rst_ni) begin
      state_q          <= SIdle;
      stop_q           <= '0;
      drain_q          <= 1'b0;
      fold_q           <= 1'b0;
      from_q           <= 1'b0;
      save_due_q       <= 1'b0;
      save_q           <= '0;
      timing_q         <= 1'b0;
      head_q           <= '0;
      tail_q           <= '0;
      ring_base_q      <= '0;
      ring_log2_q      <= '0;
      pending_q        <= '0;
      fault_kind_q     <= '0;
      fault_addr_q     <= '0;
      fault_desc_q     <= '0;
      preempt_cycles_q <= '0;
    end
  end

  // How long it has been at the descriptor at HEAD, until it stopped.
  logic [31:0] desc_cycles_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || wr_ring || state_q == SDone || (state_q == SIdle && head_q == tail_q))
      desc_cycles_q <= '0;
    else if (state_q != SStopping && state_q != SSave && state_q != SStopped)
      desc_cycles_q <= desc_cycles_q + 32'd1;
  end

  assign idle_o = (state_q == SStopped || (state_q == SIdle && head_q == tail_q && !drain_q)) &&
      pending_q == 0 && !m_busy;

  // ---- counters ---------------------------------------------------------------------------------
  localparam int NCnt = 15;
  logic [63:0] cnt_q [NCnt], shadow_q [NCnt];
  // ACTIVE 1, STALL_A 2, STALL_W 3, STALL_OUT 4, STALL_SEQ 5, IDLE 6: index into cnt_q; 7:
  // STALL_BANK
  logic [2:0]  class_now;
  always_comb begin
    class_now = 3'd5;
    if (row || vec_work) class_now = 3'd1;
    else if (stall_bank) class_now = 3'd7;
    else if (stall_a) class_now = 3'd2;
    else if (stall_w) class_now = 3'd3;
    else if (stall_out) class_now = 3'd4;
    else if (state_q == SStopped || (state_q == SIdle && head_q == tail_q) ||
        state_q == SWaitPause) class_now = 3'd6;
  end
  always_ff @(posedge clk_free_i) begin
    cnt_q[0]         <= cnt_q[0] + 64'd1;
    if (class_now == 3'd1) cnt_q[1] <= cnt_q[1] + 64'd1;
    if (class_now == 3'd2) cnt_q[2] <= cnt_q[2] + 64'd1;
    if (class_now == 3'd3) cnt_q[3] <= cnt_q[3] + 64'd1;
    if (class_now == 3'd4) cnt_q[4] <= cnt_q[4] + 64'd1;
    if (class_now == 3'd5) cnt_q[5] <= cnt_q[5] + 64'd1;
    if (class_now == 3'd6) cnt_q[6] <= cnt_q[6] + 64'd1;
    if (class_now == 3'd7) cnt_q[14] <= cnt_q[14] + 64'd1;
    if (row) begin
      cnt_q[7] <= cnt_q[7] + 64'(macs);
      cnt_q[9] <= cnt_q[9] + 64'd1;
    end
    if (fold) cnt_q[8] <= cnt_q[8] + 64'd1;
    if (state_q == SDone) cnt_q[10] <= cnt_q[10] + 64'd1;
    if (acc_i && !req_o.we) cnt_q[11] <= cnt_q[11] + 64'(req_o.beats);
    if (acc_i && req_o.we) cnt_q[12] <= cnt_q[12] + 64'(req_o.beats);
    if (walk) cnt_q[13] <= cnt_q[13] + 64'd1;
    if (snap_i) for (int i = 0; i < NCnt; i++) shadow_q[i] <= cnt_q[i];
    if (!rst_ni)
      for (int i = 0; i < NCnt; i++) begin
        cnt_q[i]    <= '0;
        shadow_q[i] <= '0;
      end
  end
  logic conserved;                        // apart: Verilator 5.006 takes no array in a property
  assign conserved = cnt_q[0] == cnt_q[1] + cnt_q[2] + cnt_q[3] + cnt_q[4] + cnt_q[5] + cnt_q[6]
                     + cnt_q[14];
  Conservation: assert property (@(posedge clk_free_i) disable iff (!rst_ni) conserved);

  // ---- register reads ---------------------------------------------------------------------------
  logic [3:0] state_code;
  always_comb begin
    unique case (state_q)
      SIdle:     state_code = head_q == tail_q ? 4'(STATE_IDLE) : 4'(STATE_RUN);
      SStopping, SSave: state_code = 4'(STATE_STOPPING);
      SStopped:  state_code = 4'(stop_q);
      default:   state_code = 4'(STATE_RUN);
    endcase
    reg_rdata_o = '0;
    if (reg_addr_i >= SLOT_CNT_CYCLES_OFF && reg_addr_i < SLOT_CNT_CYCLES_OFF + 12'(8 * NCnt))
      reg_rdata_o = reg_addr_i[2] ? shadow_q[4'((reg_addr_i - SLOT_CNT_CYCLES_OFF) >> 3)][63:32]
                                  : shadow_q[4'((reg_addr_i - SLOT_CNT_CYCLES_OFF) >> 3)][31:0];
    else
      unique case (reg_addr_i)
        SLOT_RING_BASE_OFF:      reg_rdata_o = ring_base_q;
        SLOT_RING_LOG2_OFF:      reg_rdata_o = 32'(ring_log2_q);
        SLOT_HEAD_OFF:           reg_rdata_o = head_q;
        SLOT_TAIL_OFF:           reg_rdata_o = tail_q;
        SLOT_STATUS_OFF:         reg_rdata_o =
            32'({state_q == SWaitPause || state_q == SWaitAsk || state_q == SWaitRsp,
                                                    pending_q != 0, quiet_o, state_code});
        SLOT_PREEMPT_CYCLES_OFF: reg_rdata_o = preempt_cycles_q;
        SLOT_FAULT_KIND_OFF:     reg_rdata_o = 32'(fault_kind_q);
        SLOT_FAULT_ADDR_OFF:     reg_rdata_o = fault_addr_q;
        SLOT_FAULT_DESC_OFF:     reg_rdata_o = fault_desc_q;
        SLOT_SAVE_OFF:           reg_rdata_o = {save_q, 6'd0};
        SLOT_DESC_CYCLES_OFF:    reg_rdata_o = desc_cycles_q;
        default:                 reg_rdata_o = '0;
      endcase
  end
endmodule
