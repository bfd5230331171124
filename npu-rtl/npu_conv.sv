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
    input  logic               halt_i,      // no fold begins
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
    output logic [9:0]         push_meta_o,
    output logic               push_cut_o,
    output logic [31:0]        push_jump_o,
    input  logic               push_rdy_i,
    input  logic               pop_v_i,
    input  logic [6:0]         ready_i,
    input  logic [255:0]       data_i,
    input  logic [9:0]         meta_i,
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

  // ---- the operations under way ----------------------------------------------------------------
  conv_op_t      op [4];                  // by number, decoded once
  walk_t         origin [4];
  seq_t          in_seq, weights_seq, rows_seq, folds_seq, streamed_seq, head_seq, loading_seq;
  logic          weights_on, weights_last, weights_start, rows_start, rows_idle, folds_start;
  logic          op_done;                 // an operation's last result comes now
  logic          next_v, next_ok, next_take, next_between;
  fold_t         next, loaded, streamed;  // folds
  tile_t         next_tile;
  logic          stream_last;
  logic          hold, freeze, frozen, cut;  // cut: all blocks but those of outputs
  npu_conv_decode u_decode (
      .clk_i, .start_i, .at_i(in_seq), .desc_i, .from_v_i, .from_i, .h_i(dim_t'(h_i)),
      .w_i(dim_t'(w_i)), .op_o(op), .origin_o(origin));
  npu_conv_order u_order (
      .clk_i, .rst_ni, .kill_i, .serial_i, .frozen_i(frozen), .start_i, .behind_i, .retire_i,
      .ready_o, .weights_on_i(weights_on), .weights_last_i(weights_last), .rows_idle_i(rows_idle),
      .folds_on_i(next_v), .folds_end_i(next_take && next.ends),
      .streamed_i(stream_last && streamed.ends), .computed_i(op_done),
      .weights_start_o(weights_start), .rows_start_o(rows_start), .folds_start_o(folds_start),
      .in_o(in_seq), .weights_o(weights_seq), .rows_o(rows_seq), .folds_o(folds_seq),
      .streamed_o(streamed_seq), .head_o(head_seq), .loading_o(loading_seq),
      .behind_o(a_behind_o));
  assign busy_o     = in_seq != head_seq;
  assign in_o       = in_seq;
  assign head_o     = head_seq;
  assign push_seq_o = weights_seq;
  assign a_seq_o    = loading_seq;

  // ---- folds: the next, the loaded, the streamed ------------------------------------------------
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
  logic          stream_wait, stream_offer, stream_fresh, stream_first;
  logic          gather_take, gather_room, gather_passed, gather_busy;
  logic [19:0]   done_rows;               // input rows in the scratchpad, from the first on
  logic          array_busy, in_flight;   // rows are in the array, or on their way
  logic          fold_done, tile_done;    // a fold's, a tile's last result comes now
  logic          out_full;                // no tile may begin
  logic          out_even;                // all rows that have come out are stored
  logic          out_all;                 // and those that are to have
  tid_t          push_tid;
  logic          a_line;                  // a line of input is wanted
  npu_conv_folds u_folds (
      .clk_i, .rst_ni, .kill_i(cut), .start_i(folds_start), .op_i(op[folds_seq]),
      .seq_i(folds_seq), .h_i(dim_t'(h_i)), .w_i(dim_t'(w_i)), .v_o(next_v), .fold_o(next),
      .tile_o(next_tile), .take_i(next_take), .between_o(next_between));
  npu_conv_weights u_weights (
      .clk_i, .rst_ni, .kill_i(cut), .start_i(weights_start), .op_i(op[weights_seq]),
      .v_o(weights_on), .last_o(weights_last), .tid_o(push_tid), .w_i(dim_t'(w_i)), .serial_i,
      .tile_done_i(tile_done), .a_line_i(a_line), .push_o, .push_va_o, .push_len_o, .push_meta_o,
      .push_cut_o, .push_jump_o, .push_rdy_i);
  npu_conv_load #(.R(R)) u_load (
      .clk_i, .rst_ni, .kill_i(cut), .op_i(op[loaded.seq]), .h_i(dim_t'(h_i)), .fold_v_i(next_v),
      .fold_i(next), .from_i(op[folds_seq].at_k),
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
      .all_i(stream_all), .hold_i(hold), .freeze_i(freeze),
      .load_op_i(op[loaded.seq]), .load_origin_i(load_origin), .load_all_i(load_all),
      .load_ok_i(load_ok), .load_done_i(load_done), .load_i(loaded), .load_reach_i(load_reach),
      .load_bank_i(load_bank), .load_here_o(load_here), .load_take_o(load_take), .v_o(stream_v),
      .wait_o(stream_wait),
      .offer_o(stream_offer), .fresh_o(stream_fresh), .take_i(gather_take), .row_o(stream_row),
      .first_o(stream_first), .last_o(stream_last), .tag_o(stream_tag),
      .window_o(window), .panel_iy_o(panel_iy),
      .fold_o(streamed), .t_o(stream_t), .bank_o(stream_bank), .macs_o);
  npu_conv_stand u_stand (
      .clk_i, .rst_ni, .kill_i, .halt_i, .freeze_i, .op_i(op), .head_i(head_seq), .busy_i(busy_o),
      .more_i(streamed_seq == head_seq), .stream_v_i(stream_v), .load_v_i(load_v),
      .next_v_i(next_v), .stream_i(streamed), .load_i(loaded), .next_i(next),
      .stream_t_i(stream_t), .wait_i(stream_wait), .offer_i(stream_offer), .flight_i(in_flight),
      .between_i(next_between), .out_i(out_all), .even_i(out_even), .hold_o(hold),
      .freeze_o(freeze), .frozen_o(frozen), .cut_o(cut), .halted_o, .begun_o, .context_o, .sums_o,
      .sums_t_o);
  assign frozen_o = frozen;

  logic          a_settled, a_full;       // the activation loader rests; for want of space
  logic          resident;
  logic signed [20:0] lo_iy;
  logic [19:0]   lo_target;

  // SERIAL: nothing in flight, and all that the fold needs already on chip, so that its length is
  // exact
  assign resident  = a_settled && weights_v && dim_t'(ready_i) >= next.at.sums.kr;
  assign next_ok   = !(next.first && out_full) && !(halt_i && next_between) && !freeze
                     && (!serial_i || (!load_v && !stream_v && !in_flight && resident));
  assign in_flight = gather_busy || array_busy;
  assign quiet_o   = !load_v && !load_busy && !stream_v && !in_flight;
  assign row_o     = stream_row;
  assign fold_o    = next_take;
  assign stall_a_o   = (stream_v && !stream_offer)
                       || (!stream_v && load_v && !load_busy && !load_here);
  assign stall_bank_o = stream_offer && !stream_row;
  assign stall_w_o   = !stream_v && load_busy && !load_row;
  assign stall_out_o = !stream_v && next_v && !load_v && !load_busy && next.first && out_full;
  // A panel whose input can never fit: tell the slot rather than wait for ever.
  assign stuck_o   = busy_o && !freeze && stall_a_o && a_full && a_seq_o == head_seq
                     && (stream_v ? streamed.seq == head_seq : loaded.seq == head_seq && load_ok);

  // Of the operations before the one that rows are loaded of all rows are there.
  function automatic logic all_rows(input seq_t seq, loading, input logic [19:0] done, h,
                                    input logic parts);
    return seq != loading || (!parts && done == h);
  endfunction
  assign stream_all = all_rows(streamed.seq, loading_seq, done_rows, op[streamed.seq].h,
                               op[streamed.seq].cut);
  assign load_all   = all_rows(loaded.seq, loading_seq, done_rows, op[loaded.seq].h,
                               op[loaded.seq].cut);
  // An operation's rows begin somewhere in the scratchpad; the array has one way to take
  // activations in at a time; and requantizers work as one operation wants it at a time, so that
  // its first row stays as far behind the last one's as those are long.
  logic [2:0]    apart_q, apart_d;
  logic          group_q;                 // of what was taken last
  logic          taken_q;                 // streamed has been
  logic [SW-7:0] base, base_q [4];
  assign load_ok     = loaded.seq != rows_seq && (!loaded.new_op || (!stream_v && apart_q == 0))
                       && (op[loaded.seq].group == group_q || (!stream_v && !in_flight));
  always_comb begin
    apart_d = apart_q - 3'(apart_q != 0);
    if (stream_v || !gather_passed) apart_d = 3'(RequantCycles);
    if (kill_i) apart_d = '0;
    load_origin     = origin[loaded.seq];
    load_origin.row = load_origin.row + spad_t'({base_q[loaded.seq], 6'd0});
    load_origin.ad  = load_origin.ad + spad_t'({base_q[loaded.seq], 6'd0});
  end
  always_ff @(posedge clk_i) begin
    apart_q <= rst_ni ? apart_d : '0;
    if (rows_start) base_q[rows_seq] <= base;
    if (load_take) begin
      group_q <= op[loaded.seq].group;
      taken_q <= 1'b1;
    end
    if (kill_i || !rst_ni) taken_q <= 1'b0;
    if (!rst_ni) group_q <= 1'b0;
  end

  // ---- weights, parameters ----------------------------------------------------------------------
  logic           param_take, param_two, param_group;
  tid_t           param_tid;
  logic [4:0]     param_pair;
  param_t         param [2];
  logic [SW-1:0]  col_begin [2];
  logic [9*C-1:0] weights;
  npu_conv_intake #(.C(C)) u_intake (
      .clk_i, .rst_ni, .kill_i, .cut_i(cut), .op_i(op), .head_i(head_seq), .load_i(loaded.seq),
      .busy_i(busy_o), .tile_v_i(weights_on), .tile_tid_i(push_tid), .tile_seq_i(weights_seq),
      .v_i(pop_v_i), .data_i, .meta_i, .pop_o, .weights_v_o(weights_v),
      .weights_take_i(weights_take), .weights_o(weights), .param_v_o(param_take),
      .param_two_o(param_two), .param_group_o(param_group), .param_tid_o(param_tid),
      .param_pair_o(param_pair), .param_o(param), .group_o(col_begin), .stray_o);

  // ---- activation loader, scratchpad, feeder ---------------------------------------------------
  logic          a_back;
  logic [SW-7:0] a_place;
  // Oldest input row still needed: the panel's being streamed, or the next one's once this has
  // been streamed.
  assign lo_iy     = !stream_v && (load_v ? loaded.new_panel : next_v && next.new_panel)
                     ? window.iy : panel_iy;
  assign lo_target = lo_iy < 0 || !taken_q || streamed.seq != loading_seq
                     ? op[loading_seq].row : 20'(lo_iy);
  assign a_req_o   = a_line && !a_held_i;

  assign a_tag_o[8:6] = 3'd3;
  assign a_back       = rsp_i.v && rsp_i.tag[8:6] == 3'd3;
  npu_conv_act u_act (
      .clk_i, .rst_ni, .clear_i(cut), .start_i(rows_start), .start_op_i(op[rows_seq]),
      .used_i(streamed_seq == rows_seq && gather_passed),
      .old_used_i((streamed_seq == rows_seq || streamed_seq == loading_seq) && gather_passed),
      .stop_i(streamed_seq == rows_seq),
      .op_i(op[loading_seq]), .w_i(dim_t'(w_i)), .idle_o(rows_idle), .base_o(base),
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
  logic [SW-1:0] win [C];
  logic [3:0]    win_more [C], col_at [C];
  tag_t          fed_tag;
  npu_conv_cols #(.C(C)) u_cols (
      .clk_i, .we_i(param_take && param_group), .two_i(param_two), .tid_i(param_tid[1:0]),
      .at_i({param_pair, 1'b0}), .begin_i(col_begin),
      .read_tid_i(streamed.tid[1:0]), .read_nc_i(streamed.at.sums.nc), .wins_o(wins), .win_o(win),
      .more_o(win_more), .leave_tid_i(fed_tag.tid[1:0]), .col_win_o(col_win), .col_at_o(col_at));

  logic          fed_row, fed_load;
  logic [RB-1:0] fed_at;
  logic [9*R-1:0] fed_a;
  logic [9*C-1:0] fed_g [R], fed_w;
  npu_conv_gather #(.R(R), .C(C)) u_gather (
      .clk_i, .rst_ni, .kill_i(cut), .op_i(op[streamed.seq]), .out_op_i(op[fed_tag.op]),
      .row_i(stream_offer), .fresh_i(stream_fresh),
      .window_i(window), .tag_i(stream_tag), .lane_v_i(lane_v), .lane_start_i(lane_start),
      .lane_again_i(lane_again), .lane_off_i(lane_off), .lane_dx_i(lane_dx), .lane_dy_i(lane_dy),
      .lane_more_i(lane_more), .take_o(gather_take), .wins_i(wins), .win_i(win),
      .win_more_i(win_more), .col_win_i(col_win), .col_at_i(col_at), .ready_o(gather_room),
      .load_i(load_row), .at_i(load_at), .w_i(weights), .re_o(bank_re), .bank_row_o(bank_row),
      .word_i(bank_word), .row_o(fed_row), .tag_o(fed_tag), .a_o(fed_a), .g_o(fed_g),
      .load_o(fed_load), .at_o(fed_at), .w_o(fed_w), .mark_i(load_take || stream_last),
      .passed_o(gather_passed), .busy_o(gather_busy));

  npu_conv_feeder #(.R(R), .C(C)) u_feeder (
      .clk_i, .rst_ni, .kill_i(cut), .row_i(fed_row), .first_i(fed_tag.t == 0), .a_i(fed_a),
      .load_i(fed_load), .at_i(fed_at), .w_i(fed_w), .group_i(group_q && busy_o), .g_i(fed_g), .a_o,
      .g_o, .w_o, .sw_o, .ld_o);
  assign group_o = group_q;

  // ---- results ----------------------------------------------------------------------------------
  tag_t row_tag;
  logic sum_v;
  seq_t sum_seq;
  always_comb begin
    row_tag   = fed_tag;
    row_tag.v = fed_row;
  end
  npu_conv_results #(.R(R), .C(C)) u_results (
      .clk_i, .rst_ni, .kill_i, .cut_i(cut), .h_i(dim_t'(h_i)), .w_i(dim_t'(w_i)), .op_i(op),
      .tag_i(row_tag), .p_i, .param_v_i(param_take), .param_tid_i(param_tid),
      .param_pair_i(param_pair), .param_i(param), .sums_re_i, .sums_we_i, .sums_at_i,
      .sums_line_i, .sums_line_o, .head_i(head_seq), .retire_i, .tile_v_i(next_take && next.first),
      .tile_i(next_tile), .busy_o(array_busy), .fold_done_o(fold_done), .tile_done_o(tile_done),
      .sum_v_o(sum_v), .sum_seq_o(sum_seq), .out_o(out_all), .op_done_o(op_done),
      .full_o(out_full), .even_o(out_even), .end_o, .st_v_o, .st_va_o,
      .st_len_o, .st_data_o, .st_mark_o, .st_upto_o, .st_rdy_i);

  // ---- what always holds ------------------------------------------------------------------------
  logic early, other_way;                 // apart: Verilator 5.006 takes no array in a property
  assign early     = a_req_o && a_behind_o && seq_t'(a_seq_o - head_seq) != 2'd1;
  assign other_way = (stream_v && op[streamed.seq].group != group_q)
                     || (sum_v && op[sum_seq].group != group_q);
  retired_when_stored: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      retire_i |-> end_o)
      else $error("an operation is over whose outputs are not stored");
  nothing_under_way: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      halted_o |-> quiet_o && !end_o)
      else $error("an operation stands with a tile under way");
  read_behind_stores: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      !early)
      else $error("an operation reads what an older one has yet to store");
  one_way_in: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      !other_way)
      else $error("a row of the array's other way in");
  line_held: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      $past(rst_ni) && $past(a_req_o) && !$past(a_gnt_i) && !$past(cut) &&
      !$past(streamed_seq == rows_seq) |-> a_req_o && $stable({a_va_o, a_tag_o, a_seq_o}))
      else $error("a line changes before it is asked for");
  // Of the newest: panels that fit, a K, a first window inside its line.
  seq_t newest;
  logic sound;
  assign newest = in_seq - 2'd1;
  assign sound  = op[newest].depth != 0 && 32'(op[newest].depth) <= 1 << npu_pkg::DepthLog2
                  && op[newest].at.t <= op[newest].depth && op[newest].k != 0
                  && origin[newest].ox < op[newest].ow;
  fields_sound: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      busy_o |-> sound) else $error("an operation begins that cannot be done");
endmodule
