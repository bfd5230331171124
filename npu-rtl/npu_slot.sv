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
    output logic                tlb_held_o, // the flush is not over
    input  npu_pkg::hash_cfg_t  hash_i,
    input  logic [63:0]         time_i,
    input  logic                reg_we_i,
    input  logic [11:0]         reg_addr_i,
    input  logic [31:0]         reg_wdata_i,
    output logic [31:0]         reg_rdata_o,
    input  logic                snap_i,
    output npu_pkg::ways_req_t  req_o,
    output npu_pkg::piece_t     wdata_o,
    input  npu_pkg::ways_t      acc_i,
    input  npu_pkg::mem_rsp_t   rsp_i,
    input  npu_pkg::mem_ack_t   ack_i,
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
  import npu_slot_pkg::*;

  state_e      state;
  logic        restart, drain, fold_asked, from_v, stopped;
  logic [31:0] head, save;
  logic [31:0] seq_rdata, cnt_rdata, fault_rdata;

  // ---- kill, fault ------------------------------------------------------------------------------
  logic        kill, dec_fault, stuck, stray, empty;
  logic [3:0]  load_kind, store_kind, dec_kind;
  logic [31:0] dec_addr;
  npu_pkg::ways_t    mmu_fault;
  npu_mmu_pkg::ask_t load_bad, store_bad;     // what faults
  logic        fault_now, kill_now, denied, from_fault;
  assign denied    = ((rsp_i.v && rsp_i.denied) || ack_i.denied) && state != SStopping &&
      state != SStopped;
  logic        late_waits, mmu_desc, mmu_late;
  logic        flush;                       // what is ahead, or not begun, when a drain ends
  assign kill      = kill_now || fault_now || restart || flush || !rst_ni;

  // ---- the current descriptor and the next ------------------------------------------------------
  logic [511:0] desc, next_desc;
  logic         next_v, is_array, is_vec;
  assign is_vec = desc[DESC_OPCODE_BIT +: 8] == 8'(OP_VEC);

  // Field checks, while the descriptor waits or is taken; whether there are PEs, when it begins.
  logic [3:0] check_kind, check_word, bad_kind_q, bad_word_q;
  npu_check u_check (
      .v_i(next_v && (state == SFetch || (state == SRun && is_array))), .desc_i(next_desc),
      .kind_o(check_kind), .word_o(check_word));
  always_ff @(posedge clk_i) begin
    bad_kind_q <= check_kind;
    bad_word_q <= check_word;
  end
  assign dec_kind  = bad_kind_q != 4'(FAULT_NONE) ? bad_kind_q : 4'(FAULT_NO_UNITS);
  assign dec_addr  = 32'(bad_word_q);
  assign dec_fault = state == SDecode && (bad_kind_q != 4'(FAULT_NONE) || (is_array && h_i == 0));

  // ---- units ------------------------------------------------------------------------------------
  logic         conv_quiet;
  logic         conv_start, vec_start, conv_busy, vec_busy, vec_work, row, fold, stall_a,
      stall_bank, stall_w, stall_out;
  logic [15:0]  macs;
  logic         c_push, v_push, c_pop, v_pop, f_rdy, f_pop_v;
  logic         c_cut;
  logic [31:0]  c_push_va, v_push_va, c_jump;
  logic [5:0]   c_push_len, v_push_len;
  logic [9:0]   c_push_meta, v_push_meta, f_meta;
  logic [6:0]   f_ready;
  logic [255:0] f_data;
  logic         f_req, f_empty, a_req, cst_v, vst_v, cst_rdy, vst_rdy;
  logic [31:0]  f_va, a_va, cst_va, vst_va;
  logic [6:0]   f_len;
  logic [8:0]   f_tag, a_tag;
  logic [5:0]   cst_len, vst_len;
  logic [255:0] cst_data, vst_data;
  logic [2:0]   m_gnt;                    // loads: fetch FIFO, activation loader, sequencer
  npu_mmu_pkg::ask_t m_ask [3], st_ask;
  logic         st_gnt, walk, m_busy;     // m_busy: a request granted and not yet accepted
  // Operations of the array under way: the oldest, how many, whether another may come, whether the
  // oldest's stores have been handed over, and all been done.
  npu_conv_pkg::seq_t conv_head, conv_in, conv_count, push_seq, a_seq;
  logic         conv_ready, conv_end, conv_behind, retire;
  logic         ahead_v, ahead_bad, ahead_behind, ahead_start;
  logic         stores;                   // some are granted and not yet answered
  logic         st_last, st_mark;       // the store at hand: its last piece; the last of a panel,
  logic [31:0]  st_upto;                // behind which the next panel's first output lies
  logic         store_epoch, acked_v, a_behind, a_held, cst_mark;
  logic [31:0]  acked, cst_upto;
  npu_conv_pkg::from_t begin_at;
  npu_vec_pkg::from_t  vec_begin_at;
  logic         vec_halted, vec_begun, from_start;
  logic [255:0] vec_context;
  logic         conv_halted, conv_begun, conv_frozen, fold_stop, from_ready, freeze;
  logic [255:0] conv_context;
  npu_conv_pkg::sums_t conv_sums, from_sums;
  npu_conv_pkg::rows_t conv_rows, from_rows;
  // sums of a tile on their way to the save area, or from there
  localparam int Lines = (C + 15) / 16;
  logic         put_sums, get_sums, sums_done, from_use, sst_v, sst_rdy, sums_ask, sums_back;
  logic         sums_re;
  logic [Lines-1:0] sums_we;
  logic [31:0]  sst_va, sums_va;
  logic [5:0]   sst_len;
  logic [255:0] sst_data;
  logic [3:0]   sums_tag;
  npu_conv_pkg::row_t sums_row;
  localparam int SumBits = C < 16 ? 32 * C : 512;
  logic [SumBits-1:0] sums_in, sums_out [Lines];
  assign conv_count = conv_in - conv_head;
  assign retire     = state == SDone && is_array;
  // Nothing begins any more: a slot that was asked to stop and is quiet stays so.
  assign flush      = (retire && drain && (conv_count > 2'd1 || conv_frozen)) || fold_stop ||
      (state == SFetch && drain);
  // The next descriptor's operation begins while this one runs, if both are the array's, it reads
  // no weights or parameters that one under way writes, and nothing is wrong with it.
  assign ahead_start = state == SRun && is_array && next_v && ahead_v && !ahead_bad &&
      conv_ready
                       && bad_kind_q == 4'(FAULT_NONE) && !drain && !late_waits && !kill;
  assign from_start = state == SFromWork && from_ready && !fold_asked;
  assign conv_start = (state == SDecode && !dec_fault && is_array && !from_v) ||
      (from_start && is_array) || ahead_start;
  assign conv_behind = ahead_start && ahead_behind;
  assign vec_start  = is_vec && ((state == SDecode && !dec_fault && !from_v) || from_start);

  npu_conv #(.R(R), .C(C)) u_conv (
      .clk_i, .rst_ni, .id_i, .kill_i(kill), .start_i(conv_start),
      .desc_i(ahead_start ? next_desc : desc),
      .behind_i(conv_behind), .from_v_i(state == SFromWork), .from_i(begin_at),
      .ready_o(conv_ready), .end_o(conv_end), .retire_i(retire), .halt_i(fold_asked),
      .freeze_i(freeze), .frozen_o(conv_frozen), .halted_o(conv_halted), .begun_o(conv_begun),
      .context_o(conv_context), .sums_o(conv_sums), .sums_t_o(conv_rows),
      .sums_re_i(sums_re), .sums_we_i(sums_we),
      .sums_at_i(sums_row), .sums_line_i(sums_in), .sums_line_o(sums_out), .head_o(conv_head),
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
      .clk_i, .rst_ni, .kill_i(kill), .start_i(vec_start), .desc_i(desc), .from_v_i(from_start),
      .from_i(vec_begin_at), .halt_i(fold_asked), .halted_o(vec_halted), .begun_o(vec_begun),
      .context_o(vec_context), .busy_o(vec_busy), .work_o(vec_work), .empty_o(empty),
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
      .clk_i, .clear_i(kill), .start_i(conv_start && !ahead_start), .desc_i(desc),
      .at_i(conv_in), .head_i(conv_head),
      .next_v_i(next_v && state == SRun && is_array), .next_i(next_desc), .take_i(ahead_start),
      .v_o(ahead_v), .bad_o(ahead_bad), .behind_o(ahead_behind),
      .behind_i(a_behind), .line_i(a_va[31:6]), .acked_v_i(acked_v), .acked_i(acked),
      .held_o(a_held));

  // How far the oldest operation's stores have been answered.
  npu_acked u_acked (
      .clk_i, .clear_i(kill || state == SStopping || state == SStopped), .retire_i(retire),
      .store_i(st_gnt),
      .mark_i(st_mark && st_last), .upto_i(st_upto), .back_i(ack_i.n),
      .epoch_o(store_epoch), .any_o(stores), .v_o(acked_v), .upto_o(acked));

  // Between two folds, and when it is about to begin, an operation counts on its rectangle.
  assign quiet_o = conv_quiet && (!conv_busy || conv_frozen) && !conv_start &&
      state != SFromAsk && state != SFromRsp && state != SFromSums && state != SFromWork;

  // ---- stores: from either unit or the sequencer ------------------------------------------------
  logic         st_v, st_rdy, word_v, kept_v;
  logic [31:0]  st_va;
  logic [6:0]   st_len;
  logic [255:0] st_data;
  logic [63:0]  word;
  assign word = desc[DESC_OPCODE_BIT +: 8] == 8'(OP_TIMESTAMP) ? time_i
                : {desc[DESC_SVALUE_HI_BIT +: 32], desc[DESC_SVALUE_LO_BIT +: 32]};
  logic [255:0] kept;                     // a context: where the unit stands, and whose it is
  always_comb begin
    kept = is_array ? conv_context : vec_context;
    kept[DESC_FOLD_SPACE_BIT +: 8] = context_i;
  end
  npu_stores u_stores (
      .clk_i, .kill_i(kill),
      .c_v_i(cst_v), .c_va_i(cst_va), .c_len_i(cst_len), .c_data_i(cst_data),
      .c_mark_i(cst_mark), .c_upto_i(cst_upto), .c_rdy_o(cst_rdy),
      .v_v_i(vst_v), .v_va_i(vst_va), .v_len_i(vst_len), .v_data_i(vst_data), .v_rdy_o(vst_rdy),
      .m_v_i(sst_v), .m_va_i(sst_va), .m_len_i(sst_len), .m_data_i(sst_data), .m_rdy_o(sst_rdy),
      .word_v_i(word_v), .kept_v_i(kept_v), .word_va_i(desc[DESC_ADDR_D_BIT +: 32]),
      .word_i(word), .s_rdy_o(st_rdy),
      .keep_i(fold_stop), .keep_va_i(save), .keep_data_i(kept),
      .v_o(st_v), .last_o(st_last), .mark_o(st_mark), .va_o(st_va), .upto_o(st_upto),
      .len_o(st_len), .data_o(st_data), .gnt_i(st_gnt));

  // ---- memory ports -----------------------------------------------------------------------------
  // Requests accepted and not yet answered: as many stores as npu_acked counts, and loads for which
  // the units have 130 places, three parts each at most.
  logic [10:0] pending_q, pending_d;
  logic        ask_v;
  logic [31:0] ask_va;
  logic [6:0]  ask_len;
  tag_t        ask_tag;
  assign pending_d = pending_q + 11'(acc_i.load) + 11'(acc_i.store) - 11'(rsp_i.v)
                     - 11'(ack_i.n[0]) - 11'(ack_i.n[1]);
  always_ff @(posedge clk_i)
    if (!rst_ni) pending_q <= '0;
    else pending_q <= pending_d;
  assign m_ask  = '{'{va: f_va, len: f_len, tag: f_tag, seq: push_seq},
                    '{va: a_va, len: 7'd64, tag: a_tag, seq: a_seq},
                    sums_ask ? '{va: sums_va, len: 7'd64, tag: TagSums | {3'd0, sums_tag, 2'd0},
                                 seq: conv_head}
                             : '{va: ask_va, len: ask_len, tag: ask_tag, seq: conv_head}};
  assign st_ask = '{va: st_va, len: st_len, tag: 9'(store_epoch), seq: conv_head};

  npu_faults u_faults (
      .clk_i, .rst_ni, .kill_i(kill), .kill_now_i(kill_now), .restart_i(restart), .state_i(state),
      .head_i(head), .save_i(save), .oldest_i(conv_head), .mmu_i(mmu_fault), .load_i(load_bad),
      .store_i(store_bad), .load_kind_i(load_kind), .store_kind_i(store_kind), .denied_i(denied),
      .desc_i(dec_fault), .desc_kind_i(dec_kind), .desc_addr_i(dec_addr), .from_i(from_fault),
      .stuck_i(stuck), .stray_i(stray), .empty_i(empty), .fault_o(fault_now), .late_o(mmu_late),
      .waiting_o(late_waits), .lost_o(mmu_desc), .reg_addr_i, .reg_rdata_o(fault_rdata));

  npu_mmu u_mmu (
      .clk_i, .rst_ni, .kill_i(kill), .flush_i(tlb_flush_i),
      .pending_i(pending_q != 0), .hold_o(tlb_held_o), .idle_i(idle_o), .pt_base_i,
      .pt_count_i, .context_i, .ch_mask_i, .hash_i,
      .v_i({ask_v || sums_ask, a_req, f_req}),
      .urgent_i({1'b0, stall_a, conv_busy && push_seq == conv_head &&
      32'(f_ready) < R}), .ask_i(m_ask), .gnt_o(m_gnt), .store_v_i(st_v), .store_i(st_ask),
      .wdata_i(st_data), .store_gnt_o(st_gnt),
      .req_o, .wdata_o, .acc_i, .rsp_i, .busy_o(m_busy), .fault_o(mmu_fault), .load_o(load_bad),
      .store_o(store_bad), .load_kind_o(load_kind), .store_kind_o(store_kind), .drop_i(mmu_late),
      .miss_o(walk));

  // ---- sequencer --------------------------------------------------------------------------------
  // FOLD: no tile begins; when those that have are stored, the context of the oldest operation says
  // how far it has come.  SAVE: no row goes into the array; its tile's sums go with that.  Both: a
  // vector operation hands over no further store; when those that it has are answered, its context
  // says the next output.
  logic from_back, from_ok;
  assign fold_stop = state == SRun && (is_array ? conv_halted : vec_halted) && !st_v && !stores;
  npu_resume u_resume (
      .clk_i, .rst_ni, .desc_i(desc), .back_i(from_back), .context_i(rsp_i.data),
      .space_i(context_i),
      .h_i(npu_conv_pkg::dim_t'(h_i)), .w_i(npu_conv_pkg::dim_t'(w_i)), .use_o(from_use),
      .sums_o(from_sums), .rows_o(from_rows), .ok_o(from_ok), .ready_o(from_ready),
      .from_o(begin_at), .vec_o(vec_begin_at));
  assign sums_back = rsp_i.v && rsp_i.tag[8:6] == 3'd6 && rsp_i.tag[1:0] == TagSums[1:0];
  npu_sums #(.C(C)) u_sums (
      .clk_i, .rst_ni, .save_i(save), .keep_i(fold_stop || from_back),
      .sums_i(from_back ? from_sums : conv_sums), .rows_i(from_back ? from_rows : conv_rows),
      .put_i(put_sums), .get_i(get_sums),
      .done_o(sums_done), .st_v_o(sst_v), .st_va_o(sst_va), .st_len_o(sst_len),
      .st_data_o(sst_data), .st_rdy_i(sst_rdy), .ask_v_o(sums_ask), .ask_va_o(sums_va),
      .ask_tag_o(sums_tag), .ask_gnt_i(m_gnt[2] && sums_ask), .back_i(sums_back),
      .back_tag_i(rsp_i.tag[5:2]), .data_i(rsp_i.data[SumBits-1:0]), .re_o(sums_re), .we_o(sums_we),
      .at_o(sums_row), .line_o(sums_in), .line_i(sums_out));
  npu_seq u_seq (
      .clk_i, .rst_ni, .reg_we_i, .reg_addr_i, .reg_wdata_i, .reg_rdata_o(seq_rdata),
      .state_o(state), .restart_o(restart), .kill_now_o(kill_now), .fault_i(fault_now),
      .kill_i(kill), .flush_i(flush),
      .head_o(head), .desc_o(desc), .next_o(next_desc), .array_o(is_array), .next_v_o(next_v),
      .late_i(late_waits), .ask_v_o(ask_v), .ask_va_o(ask_va), .ask_len_o(ask_len),
      .ask_tag_o(ask_tag), .ask_gnt_i(m_gnt[2] && !sums_ask), .ask_lost_i(mmu_late && mmu_desc),
      .rsp_i, .pending_i(pending_q != 0), .mem_busy_i(m_busy),
      .word_v_o(word_v), .kept_v_o(kept_v), .store_rdy_i(st_rdy), .store_v_i(st_v),
      .stores_i(stores), .save_o(save),
      .conv_busy_i(conv_busy), .conv_end_i(conv_end), .begun_i(is_array ? conv_begun : vec_begun),
      .vec_busy_i(vec_busy), .conv_count_i(conv_count), .ahead_start_i(ahead_start),
      .frozen_i(conv_frozen), .fold_stop_i(fold_stop), .drain_o(drain), .fold_o(fold_asked),
      .freeze_o(freeze), .put_sums_o(put_sums), .get_sums_o(get_sums),
      .sums_v_i(from_back ? from_use : is_array && conv_sums.nc != 0), .sums_done_i(sums_done),
      .from_o(from_v), .from_back_o(from_back), .from_fault_o(from_fault), .from_ok_i(from_ok),
      .from_ready_i(from_ready), .quiet_i(quiet_o), .idle_o, .stopped_o(stopped),
      .irq_signal_o, .irq_fault_o, .irq_quiet_o);

  // ---- counters -------------------------------------------------------------------------
  npu_counters u_counters (
      .clk_i(clk_free_i), .rst_ni, .snap_i, .active_i(row || vec_work), .stall_bank_i(stall_bank),
      .stall_a_i(stall_a), .stall_w_i(stall_w), .stall_out_i(stall_out), .idle_i(stopped),
      .row_i(row), .fold_i(fold), .done_i(state == SDone), .walk_i(walk), .macs_i(macs), .acc_i,
      .load_beats_i(req_o.load.beats), .store_beats_i(req_o.store.beats), .reg_addr_i,
      .reg_rdata_o(cnt_rdata));
  assign reg_rdata_o = seq_rdata | cnt_rdata | fault_rdata;

  // ---- what always holds ------------------------------------------------------------------------
  NoStoreAfterKill: assert property (@(posedge clk_i) disable iff (!rst_ni)
      state == SStopping || state == SStopped |-> !st_gnt && !req_o.store.v);
  // The two that ask by way 2 take turns: whose a grant is, is known by who asks.
  OneAsks: assert property (@(posedge clk_i) disable iff (!rst_ni) !(ask_v && sums_ask));
  AnswersAsked: assert property (@(posedge clk_i) disable iff (!rst_ni)
      11'(rsp_i.v) + 11'(ack_i.n[0]) + 11'(ack_i.n[1]) <= pending_q);
  PendingRoom: assert property (@(posedge clk_i) disable iff (!rst_ni) pending_q < 11'd2046);
  CheckKnown: assert property (@(posedge clk_i) disable iff (!rst_ni)
      check_kind == 4'(FAULT_FIELD) || (check_word == '0 &&
      (check_kind == 4'(FAULT_NONE) || check_kind == 4'(FAULT_OPCODE))));
  // What begins has been checked in the cycle before.
  Checked: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && state == SDecode |-> $past(next_v && state == SFetch) &&
      desc == $past(next_desc));
  AheadChecked: assert property (@(posedge clk_i) disable iff (!rst_ni)
      ahead_start |-> $past(next_v && state == SRun && is_array) && $stable(next_desc));
endmodule
