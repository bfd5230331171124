// SPDX-License-Identifier: Apache-2.0
// npu_conv: GEMM and CONV of one slot, tiled by hardware onto whatever rectangle the slot has.
//
//   folds -> load: weights  -> gather -> feeder -> array -> align -> acc -> finish -> out -> stores
//         -> stream: rows   ->   ^                   tags ...
//                      act -> spad
//
// Order of folds: k inside n inside m.  A fold is one h x w block of weights under T activation
// rows; it costs max(T, h) cycles because the next fold's weights load behind the swap front of the
// one being streamed.  Activations sit in a scratchpad that is a sliding window over the input's
// rows; one lane a PE row is gathered from it (im2col), so that CONV needs no copy; with F_GROUP a
// lane is a vector, one byte a PE, since each column works on channels of its own.  GEMM is CONV
// with a 1 x 1 kernel whose every input row is one output row.
//
// Up to three operations are under way: each block goes on to the next one's work when it has done
// this one's, and asks for its fields by number.  The oldest alone stores.
module npu_conv
  import npu_conv_pkg::*;
  import npu_math_pkg::RequantCycles;
  import npu_regs_pkg::*;
#(
    parameter int R = 16, C = 16,
    localparam int RW = $clog2(R + 1), CW = $clog2(C + 1),
    localparam int SW = npu_pkg::SpadLog2, SumBits = C < 16 ? 32 * C : 512
) (
    input  logic               clk_i, rst_ni,
    input  logic [2:0]         id_i,        // its slot, for those who watch
    input  logic               kill_i,
    input  logic               start_i,     // only when ready_o
    input  logic [511:0]       desc_i,      // with start_i
    input  logic               behind_i,    // with start_i: it reads what an older one writes
    input  logic               from_v_i,    // with start_i: it goes on from from_i
    input  npu_conv_pkg::from_t from_i,
    output logic               ready_o,     // for another operation
    output logic               end_o,       // the oldest's stores have been handed over
    input  logic               retire_i,    // it is over
    input  logic               halt_i,      // no tile begins
    input  logic               freeze_i,    // with halt_i: and no row goes into the array
    output logic               frozen_o,    // so nothing is in it: the rectangle may change
    output logic               halted_o,    // so the oldest stands; the stores of what has come
                                            // out of the array have been handed over,
    output logic               begun_o,     // and there are some, or sums;
    output logic [255:0]       context_o,   // and that is what is stored, of it,
    output sums_t              sums_o,      // and what sums there are,
    output rows_t              sums_t_o,    // of so many rows
    // sums, while nothing is in the array
    input  logic               sums_re_i,   // a row is read: there a cycle later, until the next
    input  logic [(C+15)/16-1:0] sums_we_i, // lines of a row are written
    input  row_t               sums_at_i,   // which row
    input  logic [SumBits-1:0] sums_line_i,
    output logic [SumBits-1:0] sums_line_o [(C+15)/16],
    // numbers: the oldest, the next to come, those that push_o and a_req_o are for
    output npu_conv_pkg::seq_t head_o, in_o, push_seq_o, a_seq_o,
    input  logic [RW-1:0]      h_i,
    input  logic [CW-1:0]      w_i,
    input  logic               serial_i,
    input  logic [63:0]        time_i,
    output logic               busy_o, quiet_o, stuck_o,
    output logic               stray_o,     // table P: a group that lies beyond its pixel
    // fetch FIFO: weights and parameters
    output logic               push_o,
    output logic [31:0]        push_va_o,
    output logic [5:0]         push_len_o,
    output logic [8:0]         push_meta_o,
    output logic               push_cut_o,
    output logic [31:0]        push_jump_o,
    input  logic               push_rdy_i,
    input  logic               pop_v_i,
    input  logic [6:0]         ready_i,
    input  logic [255:0]       data_i,
    input  logic [8:0]         meta_i,
    output logic               pop_o,
    // activation lines
    input  logic               a_held_i,    // it lies where an older one has yet to store
    // it is of an operation that reads what the oldest writes
    output logic               a_behind_o,
    output logic               a_req_o,
    output logic [31:0]        a_va_o,
    output logic [8:0]         a_tag_o,
    input  logic               a_gnt_i,
    input  npu_pkg::mem_rsp_t  rsp_i,
    // stores: up to 32 bytes anywhere
    output logic               st_v_o,
    output logic [31:0]        st_va_o,
    output logic [5:0]         st_len_o,
    output logic [255:0]       st_data_o,
    output logic               st_mark_o,   // the last of a panel, behind which the next one's
    output logic [31:0]        st_upto_o,   // first output lies
    input  logic               st_rdy_i,
    // array
    output logic signed [8:0]  a_o [R],
    output logic [R-1:0]       sw_o, ld_o,
    output logic signed [8:0]  w_o [C],
    // F_GROUP: each PE's own activation, skewed as if it had come from the west
    output logic               group_o,
    output logic [9*R*C-1:0]   g_o,
    input  logic signed [31:0] p_i [C],
    // what happened this cycle
    output logic               row_o, fold_o, stall_a_o, stall_bank_o, stall_w_o, stall_out_o,
    output logic [15:0]        macs_o
);
  if (R < 1 || R > int'(npu_pkg::MaxRows))
    $fatal(1, "npu_conv: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  localparam int RB = R > 1 ? $clog2(R) : 1, CB = C > 1 ? $clog2(C) : 1;

  // ---- the operation, decoded once -----------------------------------------------------------
  conv_op_t      op [4];                  // by number
  walk_t         origin [4];
  // Numbers of operations: the next to come in; the next whose weights are asked for, whose rows
  // are asked for, that is cut into folds; the first that is not all streamed, not all computed,
  // not over.
  logic          a_line;                  // one of input is wanted
  seq_t          in_q, weights_q, rows_q, folds_q, streamed_q, computed_q, head_q;
  seq_t          in_d, weights_d, rows_d, folds_d, streamed_d, computed_d, head_d;
  logic [3:0]    behind_q;
  npu_conv_decode u_decode (
      .clk_i, .start_i, .at_i(in_q), .desc_i, .from_v_i, .from_i, .h_i(dim_t'(h_i)),
      .w_i(dim_t'(w_i)), .op_o(op), .origin_o(origin));

  // ---- folds: the next, the loaded, the streamed ---------------------------------------------
  fold_t         next, loaded, streamed;
  tile_t         next_tile;
  logic          next_v, next_ok, next_take, next_between;
  logic          load_v, load_busy, load_done, load_take, load_bank, load_here;
  logic          load_row, load_room, weights_v, weights_take;
  logic [RB-1:0] load_at;
  reach_t        load_reach;
  logic          stream_v, stream_row, stream_bank;
  tag_t          stream_tag;
  walk_t         window;
  logic signed [20:0] panel_iy;           // input row that the streamed panel begins at
  logic [R-1:0]  lane_v;
  spad_t         lane_off [R];
  reach_t        lane_dx [R], lane_dy [R];
  logic [R-1:0]  lane_start, lane_again;
  logic [3:0]    lane_more [R];
  logic          stream_offer, stream_fresh, stream_first, stream_last;
  logic          gather_take, gather_room, gather_passed, gather_busy;
  logic [19:0]   done_rows;               // input rows in the scratchpad, from the first on
  logic          weights_on, weights_last, weights_start, rows_start, rows_idle, folds_start;
  logic          op_done;                 // an operation's last result comes now
  logic          in_flight;               // rows are on their way through the array
  logic          fold_done, tile_done;    // a fold's, a tile's last result comes now
  logic          out_full;                // no tile may begin
  logic          out_empty;               // none is under way
  logic          freeze, frozen_q, frozen_d, cut;  // cut: all blocks but those of outputs
  logic          out_even;                // all rows that have come out are stored

  logic [1:0]    push_tid;
  npu_conv_folds u_folds (
      .clk_i, .rst_ni, .kill_i(cut), .start_i(folds_start), .op_i(op[folds_q]), .seq_i(folds_q),
      .h_i(dim_t'(h_i)), .w_i(dim_t'(w_i)), .v_o(next_v), .fold_o(next), .tile_o(next_tile),
      .take_i(next_take),
      .between_o(next_between));
  npu_conv_weights u_weights (
      .clk_i, .rst_ni, .kill_i(cut), .start_i(weights_start), .op_i(op[weights_q]),
      .v_o(weights_on),
      .last_o(weights_last), .tid_o(push_tid), .w_i(dim_t'(w_i)), .serial_i,
      .tile_done_i(tile_done), .push_o,
      .push_va_o, .push_len_o, .push_meta_o, .push_cut_o,
      .push_jump_o, .push_rdy_i);
  npu_conv_load #(.R(R)) u_load (
      .clk_i, .rst_ni, .kill_i(cut), .op_i(op[loaded.seq]), .h_i(dim_t'(h_i)), .fold_v_i(next_v),
      .fold_i(next), .from_i(op[folds_q].at_k),
      .fold_ok_i(next_ok), .room_i(load_room), .fold_take_o(next_take), .weights_v_i(weights_v),
      .weights_take_o(weights_take), .row_o(load_row), .row_at_o(load_at), .busy_o(load_busy),
      .v_o(load_v), .done_o(load_done), .loaded_o(loaded), .reach_o(load_reach),
      .bank_o(load_bank), .take_i(load_take), .lanes_bank_i(stream_bank), .lane_v_o(lane_v),
      .lane_off_o(lane_off), .lane_dx_o(lane_dx), .lane_dy_o(lane_dy),
      .lane_start_o(lane_start), .lane_again_o(lane_again), .lane_more_o(lane_more));
  rows_t         stream_t;
  logic          stream_all, load_all;    // all input rows of that operation are complete
  walk_t         load_origin;
  logic          load_ok;
  npu_conv_stream u_stream (
      .clk_i, .rst_ni, .kill_i(cut), .op_i(op[streamed.seq]), .rows_i(done_rows),
      .all_i(stream_all), .freeze_i(freeze),
      .load_op_i(op[loaded.seq]), .load_origin_i(load_origin), .load_all_i(load_all),
      .load_ok_i(load_ok), .load_done_i(load_done), .load_i(loaded), .load_reach_i(load_reach),
      .load_bank_i(load_bank), .load_here_o(load_here), .load_take_o(load_take), .v_o(stream_v),
      .offer_o(stream_offer), .fresh_o(stream_fresh), .take_i(gather_take), .row_o(stream_row),
      .first_o(stream_first), .last_o(stream_last), .tag_o(stream_tag),
      .window_o(window), .panel_iy_o(panel_iy),
      .fold_o(streamed), .t_o(stream_t), .bank_o(stream_bank), .macs_o);

  logic          a_settled, a_full;       // the activation loader rests; for want of space
  logic          resident;
  logic signed [20:0] lo_iy;
  logic [19:0]   lo_target;

  assign weights_v = pop_v_i && meta_i[8];
  // SERIAL: nothing in flight, and all that the fold needs already on chip, so that its length is
  // exact
  assign resident  = a_settled && weights_v && dim_t'(ready_i) >= next.at.sums.kr;
  assign next_ok   = !(next.first && out_full) && !(halt_i && next_between) && !freeze
                     && (!serial_i || (!load_v && !stream_v && !in_flight && resident));
  assign quiet_o   = !load_v && !load_busy && !stream_v && !in_flight;

  // ---- where the oldest stands, if it is to --------------------------------------------------
  // Frozen it does so anywhere: of what is in the array all goes through it, and then the blocks
  // before it, and what they have of younger ones, are cut off.  Tiles that are stored two and two
  // are short: they begin anew.
  logic       oldest_in;                  // there is more of the oldest for the array,
  logic       there;                      // and it is known where it begins
  logic       still, still_q, cut_here;
  progress_t  at_fold, at, at_q, at_now;
  seq_t       at_seq;
  rows_t      gone;                       // rows of that fold, the sums have it
  logic [3:0] finish_left_q, finish_left_d; // until the last row of sums has come out
  assign oldest_in = streamed_q == head_q;
  assign there     = stream_v || load_v || next_v;
  assign freeze    = freeze_i && busy_o && !frozen_q;
  assign at_fold   = stream_v ? streamed.at : load_v ? loaded.at : next.at;
  assign at_seq    = stream_v ? streamed.seq : load_v ? loaded.seq : next.seq;
  assign gone      = stream_v && stream_t > at_fold.sums.r ? stream_t : at_fold.sums.r;
  always_comb begin
    at = at_fold;
    at.sums.r = gone;
    if ((at.sums.k == 0 && gone == 0) || op[at_seq].pair) at.sums = '0;
    if (!cut_here) at.sums = '0;          // a tile that has not begun
  end
  assign still     = freeze && !in_flight && !stream_offer;
  assign cut_here  = still && still_q && (there || !oldest_in);
  assign cut       = kill_i || cut_here;
  assign frozen_d  = !kill_i && (frozen_q || cut_here);
  always_ff @(posedge clk_i) begin
    still_q  <= still;
    frozen_q <= rst_ni && frozen_d;
    if (cut_here) at_q <= at;
    if (!rst_ni) at_q <= '0;
  end
  assign frozen_o  = frozen_q;
  assign at_now    = frozen_q ? at_q : at;
  assign sums_o    = at_now.sums;
  assign sums_t_o  = at_now.t;
  assign halted_o  = frozen_q ? oldest_in && finish_left_q == 0 && out_even
                              : halt_i && next_between && folds_q == head_q && out_empty;
  assign begun_o   = at_now.m != 0 || at_now.n != 0 || at_now.sums.nc != 0;
  always_comb begin
    context_o = '0;
    context_o[DESC_FOLD_M_BIT +: 32] = 32'(at_now.m);
    context_o[DESC_FOLD_N_BIT +: 16] = at_now.n;
    context_o[DESC_FOLD_T_BIT +: 14] = 14'(at_now.t);
    context_o[DESC_FOLD_SUMS_BIT]    = at_now.sums.nc != 0;
    context_o[DESC_FOLD_HALF_BIT]    = at_now.half;
    context_o[DESC_ADDR_B_BIT +: 32] = op[head_q].addr_b;
    context_o[DESC_ADDR_P_BIT +: 32] = op[head_q].addr_p;
    context_o[DESC_ADDR_D_BIT +: 32] = op[head_q].addr_d;
    context_o[DESC_DM_BIT +: 32]     = 32'(op[head_q].m);
    context_o[DESC_DN_BIT +: 16]     = op[head_q].n;
  end
  assign busy_o    = in_q != head_q;
  assign row_o     = stream_row;
  assign fold_o    = next_take;
  assign stall_a_o   = (stream_v && !stream_offer)
                       || (!stream_v && load_v && !load_busy && !load_here);
  assign stall_bank_o = stream_offer && !stream_row;
  assign stall_w_o   = !stream_v && load_busy && !load_row;
  assign stall_out_o = !stream_v && next_v && !load_v && !load_busy && next.first && out_full;
  // A panel whose input can never fit: tell the slot rather than wait for ever.
  assign stuck_o   = busy_o && !freeze && stall_a_o && a_full && a_seq_o == head_q
                     && (stream_v ? streamed.seq == head_q : loaded.seq == head_q && load_ok);

  // ---- operations: each block's next -----------------------------------------------------------
  // What is ahead in SERIAL mode would make folds longer.
  assign ready_o       = serial_i ? in_q == head_q : seq_t'(in_q - head_q) < 2'd3;
  assign head_o        = head_q;
  assign in_o          = in_q;
  assign push_seq_o    = weights_q;
  assign a_seq_o       = rows_q - 2'd1;
  assign weights_start = weights_q != in_q && !weights_on && !frozen_q;
  assign rows_start    = rows_q != in_q && rows_idle && !frozen_q
                         && !(behind_q[rows_q] && seq_t'(rows_q - head_q) > 2'd1);
  assign a_behind_o    = behind_q[a_seq_o] && a_seq_o != head_q;
  assign a_req_o       = a_line && !a_held_i;
  assign folds_start   = folds_q != in_q && !next_v && !frozen_q;
  always_comb begin
    in_d       = in_q + 2'(start_i);
    weights_d  = weights_q + 2'(weights_last);
    rows_d     = rows_q + 2'(rows_start);
    folds_d    = folds_q + 2'(next_take && next.ends);
    streamed_d = streamed_q + 2'(stream_last && streamed.ends);
    computed_d = computed_q + 2'(op_done);
    head_d     = head_q + 2'(retire_i);
  end
  always_ff @(posedge clk_i) begin
    if (start_i) behind_q[in_q] <= behind_i;
    if (kill_i || !rst_ni) begin
      in_q       <= '0;
      weights_q  <= '0;
      rows_q     <= '0;
      folds_q    <= '0;
      streamed_q <= '0;
      computed_q <= '0;
      head_q     <= '0;
    end else begin
      in_q       <= in_d;
      weights_q  <= weights_d;
      rows_q     <= rows_d;
      folds_q    <= folds_d;
      streamed_q <= streamed_d;
      computed_q <= computed_d;
      head_q     <= head_d;
    end
  end

  // The loader is at operation rows_q - 1: of those before it all rows are there.
  function automatic logic all_rows(input seq_t seq, loading, input logic [19:0] done, h,
                                    input logic parts);
    return seq_t'(seq + 2'd1) != loading || (!parts && done == h);
  endfunction
  assign stream_all = all_rows(streamed.seq, rows_q, done_rows, op[streamed.seq].h,
                               op[streamed.seq].cut);
  assign load_all   = all_rows(loaded.seq, rows_q, done_rows, op[loaded.seq].h,
                               op[loaded.seq].cut);
  // An operation's rows begin somewhere in the scratchpad; the array has one way to take
  // activations in at a time; and requantizers work as one operation wants it at a time, so that
  // its first row stays as far behind the last one's as those are long.
  logic [2:0]    apart_q, apart_d;
  logic          group_q;                 // of what was taken last
  assign load_ok     = loaded.seq != rows_q && (!loaded.new_op || (!stream_v && apart_q == 0))
                       && (op[loaded.seq].group == group_q || (!stream_v && !in_flight));
  always_comb begin
    apart_d = apart_q - 3'(apart_q != 0);
    if (stream_v || !gather_passed) apart_d = 3'(RequantCycles);
    if (kill_i) apart_d = '0;
  end
  always_ff @(posedge clk_i) apart_q <= rst_ni ? apart_d : '0;
  logic          taken_q;                 // streamed has been
  logic [SW-7:0] base, base_q [4];
  always_comb begin
    load_origin     = origin[loaded.seq];
    load_origin.row = load_origin.row + spad_t'({base_q[loaded.seq], 6'd0});
    load_origin.ad  = load_origin.ad + spad_t'({base_q[loaded.seq], 6'd0});
  end
  always_ff @(posedge clk_i) begin
    if (rows_start) base_q[rows_q] <= base;
    if (load_take) begin
      group_q <= op[loaded.seq].group;
      taken_q <= 1'b1;
    end
    if (kill_i || !rst_ni) taken_q <= 1'b0;
    if (!rst_ni) group_q <= 1'b0;
  end

  // parameters go to their table as they come to the FIFO's head; weights wait for the loader, each
  // row of a piece of two
  logic       param_take, second_d, second_q, stray_q;
  logic [5:0] param_col;
  assign param_col  = {meta_i[5:1], 1'b0};
  assign param_take = busy_o && pop_v_i && !meta_i[8];
  assign second_d   = weights_take ? meta_i[0] && !second_q : second_q;
  assign pop_o      = param_take || (weights_take && !second_d);
  always_ff @(posedge clk_i)
    if (!rst_ni || cut) second_q <= 1'b0;
    else second_q <= second_d;

  // What lies beyond a pixel may be another tenant's, left in the scratchpad: the slot is told
  // before anything made of it is stored.
  seq_t       tile_seq_q [4], stray_seq_q, param_seq;
  logic       stray, stray_d;
  assign param_seq = tile_seq_q[meta_i[7:6]];
  assign stray     = param_take && op[param_seq].group
                     && (data_i[96 +: 32] > 32'(op[param_seq].last_group)
                         || (meta_i[0] && data_i[224 +: 32] > 32'(op[param_seq].last_group)));
  assign stray_d   = !kill_i && (stray_q || stray);
  assign stray_o   = stray_q && stray_seq_q == head_q;
  always_ff @(posedge clk_i) begin
    if (weights_on) tile_seq_q[push_tid] <= weights_q;
    if (stray && !stray_q) stray_seq_q <= param_seq;
    stray_q <= rst_ni && stray_d;
  end

  // ---- activation loader, scratchpad, feeder ---------------------------------------------------
  logic          a_back;
  logic [SW-7:0] a_place;
  // Oldest input row still needed: the panel's being streamed, or the next one's once this has
  // been streamed.
  assign lo_iy     = !stream_v && (load_v ? loaded.new_panel : next_v && next.new_panel)
                     ? window.iy : panel_iy;
  assign lo_target = lo_iy < 0 || !taken_q || seq_t'(streamed.seq + 2'd1) != rows_q
                     ? op[a_seq_o].row : 20'(lo_iy);

  assign a_tag_o[8:6] = 3'd3;
  assign a_back       = rsp_i.v && rsp_i.tag[8:6] == 3'd3;
  npu_conv_act u_act (
      .clk_i, .rst_ni, .clear_i(cut), .start_i(rows_start), .start_op_i(op[rows_q]),
      .used_i(streamed_q == rows_q && gather_passed),
      .old_used_i((streamed_q == rows_q || streamed_q == a_seq_o) && gather_passed),
      .stop_i(streamed_q == rows_q),
      .op_i(op[a_seq_o]), .w_i(dim_t'(w_i)), .idle_o(rows_idle), .base_o(base),
      .lo_i(lo_target), .lo_hold_i(!gather_passed), .done_o(done_rows), .settled_o(a_settled),
      .full_o(a_full), .req_o(a_line), .va_o(a_va_o),
      .tag_o(a_tag_o[5:0]), .gnt_i(a_gnt_i), .back_i(a_back), .back_tag_i(rsp_i.tag[5:0]),
      .back_line_o(a_place));

  // Until its fold's first row has gone, none of the next fold's weights may: they would overtake
  // the swap token.
  assign load_room = gather_room && !freeze && !(stream_first && !stream_row);

  localparam int BankRowBits = SW - 7;
  logic [7:0]    bank_re;
  logic [BankRowBits-1:0] bank_row [npu_spad_pkg::Banks];
  logic [npu_spad_pkg::Banks-1:0][127:0] bank_word;
  npu_conv_spad u_spad (
      .clk_i, .we_i(a_back), .line_i(a_place), .data_i(rsp_i.data), .re_i(bank_re),
      .row_i(bank_row), .word_o(bank_word));

  logic [CB-1:0] wins, col_win [C];
  logic [SW-1:0] win [C], col_begin [2];
  logic [3:0]    win_more [C], col_at [C];
  tag_t          fed_tag;
  assign col_begin[0] = data_i[96 +: SW];
  assign col_begin[1] = data_i[224 +: SW];
  npu_conv_cols #(.C(C)) u_cols (
      .clk_i, .we_i(param_take), .two_i(meta_i[0]), .tid_i(meta_i[7:6]), .at_i(param_col),
      .begin_i(col_begin),
      .read_tid_i(streamed.tid), .read_nc_i(streamed.at.sums.nc), .wins_o(wins), .win_o(win),
      .more_o(win_more), .leave_tid_i(fed_tag.tid), .col_win_o(col_win), .col_at_o(col_at));

  logic          fed_row, fed_load;
  logic [RB-1:0] fed_at;
  logic [9*R-1:0] fed_a;
  logic [9*C-1:0] fed_g [R], fed_w, wv;
  logic [255:0]   weights;
  npu_conv_gather #(.R(R), .C(C)) u_gather (
      .clk_i, .rst_ni, .kill_i(cut), .op_i(op[streamed.seq]), .out_op_i(op[fed_tag.op]),
      .row_i(stream_offer), .fresh_i(stream_fresh),
      .window_i(window), .tag_i(stream_tag), .lane_v_i(lane_v), .lane_start_i(lane_start),
      .lane_again_i(lane_again), .lane_off_i(lane_off), .lane_dx_i(lane_dx), .lane_dy_i(lane_dy),
      .lane_more_i(lane_more), .take_o(gather_take), .wins_i(wins), .win_i(win),
      .win_more_i(win_more), .col_win_i(col_win), .col_at_i(col_at), .ready_o(gather_room),
      .load_i(load_row), .at_i(load_at), .w_i(wv), .re_o(bank_re), .bank_row_o(bank_row),
      .word_i(bank_word), .row_o(fed_row), .tag_o(fed_tag), .a_o(fed_a), .g_o(fed_g),
      .load_o(fed_load), .at_o(fed_at), .w_o(fed_w), .mark_i(load_take || stream_last),
      .passed_o(gather_passed), .busy_o(gather_busy));

  always_comb begin
    wv      = '0;
    weights = data_i;
    if (second_q) weights[127:0] = data_i[255:128];
    if (weights_take)
      for (int j = 0; j < C; j++)
        wv[9*j +: 9] = {!op[loaded.seq].b_u8 & weights[8*j+7], weights[8*j +: 8]}
                       - {!op[loaded.seq].b_u8 & op[loaded.seq].zpb[7],
                           op[loaded.seq].zpb};
  end
  npu_conv_feeder #(.R(R), .C(C)) u_feeder (
      .clk_i, .rst_ni, .kill_i(cut), .row_i(fed_row), .first_i(fed_tag.t == 0), .a_i(fed_a),
      .load_i(fed_load), .at_i(fed_at), .w_i(fed_w), .group_i(group_q && busy_o), .g_i(fed_g), .a_o,
      .g_o, .w_o, .sw_o, .ld_o);
  assign group_o = group_q;

  // ---- results: tags say which are real; sums, outputs, stores ---------------------------------
  tag_t            row_tag, early_tag, sum_tag;
  logic            sum_last;              // the row of sums that comes is whole
  logic            tags_busy, finish_v_q, finish_v_d, out_v;
  seq_t            finish_op_q;
  always_comb begin
    row_tag   = fed_tag;
    row_tag.v = fed_row;
  end
  assign in_flight = gather_busy || tags_busy;
  logic signed [31:0] row [C];
  param_t          param [C], param_in [2];
  logic [32*C-1:0] sum, out_row;
  npu_conv_tags #(.R(R), .C(C)) u_tags (
      .clk_i, .rst_ni, .kill_i(cut), .h_i(dim_t'(h_i)), .w_i(dim_t'(w_i)), .tag_i(row_tag),
      .early_o(early_tag), .tag_o(sum_tag), .busy_o(tags_busy), .fold_done_o(fold_done),
      .tile_done_o(tile_done));
  npu_conv_align #(.C(C)) u_align (
      .clk_i, .move_i(tags_busy), .w_i(dim_t'(w_i)), .v_i(sum_tag.v), .p_i, .row_o(row));
  npu_conv_acc #(.C(C)) u_acc (
      .clk_i, .early_i(early_tag), .tag_i(sum_tag), .row_i(row), .sum_o(sum),
      .re_i(sums_re_i), .we_i(sums_we_i), .at_i(sums_at_i), .line_i(sums_line_i),
      .line_o(sums_line_o));
  for (genvar b = 0; b < 2; b++) begin : g_param
    assign param_in[b] = '{bias: data_i[128*b +: 32], mult: data_i[128*b+32 +: 32],
                           shift: data_i[128*b+64 +: 7]};
  end
  npu_conv_params #(.C(C)) u_params (
      .clk_i, .v_i(param_take), .tid_i(meta_i[7:6]), .pair_i(meta_i[5:1]), .param_i(param_in),
      .read_i(sum_last), .read_tid_i(sum_tag.tid), .param_o(param));
  assign sum_last = sum_tag.v && sum_tag.last;
  always_comb begin
    finish_v_d    = sum_last && !kill_i;
    finish_left_d = finish_left_q - 4'(finish_left_q != 0);
    if (sum_last) finish_left_d = 4'(op[sum_tag.op].out32 ? 1 : RequantCycles + 1);
  end
  always_ff @(posedge clk_i) begin
    finish_v_q    <= rst_ni && finish_v_d;
    finish_left_q <= rst_ni ? finish_left_d : '0;
    if (sum_last) finish_op_q <= sum_tag.op;
  end
  npu_conv_finish #(.C(C)) u_finish (
      .clk_i, .rst_ni, .clear_i(kill_i), .op_i(op[finish_op_q]), .w_i(dim_t'(w_i)),
      .v_i(finish_v_q),
      .sum_i(sum), .param_i(param), .v_o(out_v), .row_o(out_row));
  npu_conv_out #(.C(C)) u_out (
      .clk_i, .rst_ni, .kill_i, .head_i(head_q), .retire_i,
      .tile_v_i(next_take && next.first), .tile_i(next_tile), .full_o(out_full),
      .row_v_i(out_v), .row_i(out_row), .op_done_o(op_done), .end_o, .empty_o(out_empty),
      .even_o(out_even), .st_v_o,
      .st_va_o,
      .st_len_o, .st_data_o, .st_mark_o, .st_upto_o, .st_rdy_i);

  // Each number is at most what the one before it in the order of work is.
  logic ordered;
  assign ordered = seq_t'(computed_q - head_q) <= seq_t'(streamed_q - head_q)
                   && seq_t'(streamed_q - head_q) <= seq_t'(rows_q - head_q)
                   && seq_t'(streamed_q - head_q) <= seq_t'(folds_q - head_q)
                   && seq_t'(folds_q - head_q) <= seq_t'(in_q - head_q)
                   && seq_t'(rows_q - head_q) <= seq_t'(in_q - head_q)
                   && seq_t'(weights_q - head_q) <= seq_t'(in_q - head_q);
  logic early, other_way;                 // apart: Verilator 5.006 takes no array in a property
  assign early     = a_req_o && a_behind_o && seq_t'(a_seq_o - head_q) != 2'd1;
  assign other_way = (stream_v && op[streamed.seq].group != group_q)
                     || (sum_tag.v && op[sum_tag.op].group != group_q);
  operations_in_order: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i) ordered)
      else $error("a block is ahead of the one it gets its work from");
  no_operation_too_many: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      start_i |-> ready_o) else $error("an operation comes where there is no place for it");
  retired_when_stored: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      retire_i |-> end_o && computed_q != head_q)
      else $error("an operation is over whose outputs are not stored");
  nothing_under_way: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      halted_o |-> quiet_o && !end_o)
      else $error("an operation stands with a tile under way");
  read_behind_stores: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      !early)
      else $error("an operation reads what an older one has yet to store");
  second_of_weights: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      second_q && pop_v_i |-> meta_i[8] && meta_i[0])
      else $error("a second row of weights where there is one, or none");
  one_way_in: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      !other_way)
      else $error("a row of the array's other way in");
  line_held: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      $past(rst_ni) && $past(a_req_o) && !$past(a_gnt_i) && !$past(cut) &&
      !$past(streamed_q == rows_q) |-> a_req_o && $stable({a_va_o, a_tag_o, a_seq_o}))
      else $error("a line changes before it is asked for");
  // Of the newest: panels that fit, a K, a first window inside its line.
  seq_t newest;
  logic sound;
  assign newest = in_q - 2'd1;
  assign sound  = op[newest].depth != 0 && 32'(op[newest].depth) <= 1 << npu_pkg::DepthLog2
                  && op[newest].at.t <= op[newest].depth && op[newest].k != 0
                  && origin[newest].ox < op[newest].ow;
  fields_sound: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      busy_o |-> sound) else $error("an operation begins that cannot be done");
endmodule
