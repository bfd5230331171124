// SPDX-License-Identifier: Apache-2.0
// npu_conv_gather: activation rows out of the scratchpad, one element a PE row (im2col), or with
// F_GROUP a vector a PE row, one element a column.
//
//   row -> runs (bytes side by side), at most 6 a beat -> a port each -> banks -> FIFOs -> lanes
//
// A row whose runs are more than the ports, or whose ports still wait for a bank, is taken later.
// Rows, weight rows and tags leave in the order they came in, 3 cycles later or, behind a conflict
// of banks, more; so what follows need not know of banks.
module npu_conv_gather
  import npu_conv_pkg::*;
  import npu_spad_pkg::*;
#(
    parameter int R = 16, C = 16,
    localparam int SW = npu_pkg::SpadLog2, AI = SW - 7, RI = R > 1 ? $clog2(R) : 1,
    localparam int CI = C > 1 ? $clog2(C) : 1
) (
    input  logic                clk_i, rst_ni, kill_i,
    input  conv_op_t            op_i,      // of the row that comes
    input  conv_op_t            out_op_i,  // of the one that leaves, tag_o's
    // a row: its window, and each lane's place in the window
    input  logic                row_i,
    input  logic                fresh_i,   // its window does not follow the last row's
    input  walk_t               window_i,
    input  tag_t                tag_i,
    input  logic [R-1:0]        lane_v_i,
    input  logic [R-1:0]        lane_start_i,      // lane begins a run
    input  logic [R-1:0]        lane_again_i,      // what it holds a later lane held a row before
    input  spad_t               lane_off_i [R],
    input  reach_t              lane_dx_i [R], lane_dy_i [R],
    input  logic [3:0]          lane_more_i [R],   // bytes of the run behind the first
    output logic                take_o,
    // F_GROUP: windows of 16 bytes that the columns' elements lie in
    input  logic [CI-1:0]       wins_i,    // how many, less one
    input  logic [SW-1:0]       win_i [C],
    input  logic [3:0]          win_more_i [C],
    input  logic [CI-1:0]       col_win_i [C],  // of tag_o
    input  logic [3:0]          col_at_i [C],
    // a weight row for PE row at_i; only when ready_o
    output logic                ready_o,
    input  logic                load_i,
    input  logic [RI-1:0]       at_i,
    input  logic [9*C-1:0]      w_i,
    // banks
    output logic [7:0]          re_o,
    output logic [AI-1:0]       bank_row_o [Banks],
    input  logic [Banks-1:0][127:0] word_i,
    // delivered
    output logic                row_o,
    output tag_t                tag_o,
    output logic [9*R-1:0]      a_o,
    output logic [9*C-1:0]      g_o [R],   // of a lane, by column
    output logic                load_o,
    output logic [RI-1:0]       at_o,
    output logic [9*C-1:0]      w_o,
    output logic                busy_o,
    // all that was taken up to the last mark_i has left
    input  logic                mark_i,
    output logic                passed_o
);
  if (R < 1 || R > int'(npu_pkg::MaxRows))
    $fatal(1, "npu_conv_gather: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_gather: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  localparam int Beats = 8;

  // A beat: what goes in in one cycle.
  typedef struct packed {
    logic               row, first, last;  // part of a row: its first, its last
    run_t               runs;
    logic [R-1:0]       starts;            // lanes at which the runs begin; F_GROUP: lanes read
    logic [R-1:0]       in, keep;          // lanes in the image; lanes of the last row used again
    logic [CI-1:0]      win;
    logic               load;
    logic [RI-1:0]      at;
    tag_t               tag;
  } beat_t;

  // ---- a row's runs, and what of them goes now ------------------------------------------------
  logic [R-1:0]  in, keep, pick;
  logic [CI-1:0] win;
  logic          fits, go, first, last;
  logic [RI-1:0] lane [Ports];
  run_t          runs, tail_q, tail_d, head_q, head_d;
  logic          free [Ports];
  npu_conv_runs #(.R(R), .C(C)) u_runs (
      .clk_i, .rst_ni, .kill_i, .op_i, .row_i, .fresh_i, .window_i, .lane_v_i, .lane_start_i,
      .lane_again_i, .lane_dx_i, .lane_dy_i, .wins_i, .go_i(go), .first_o(first), .last_o(last),
      .runs_o(runs), .lane_o(lane), .pick_o(pick), .in_o(in), .keep_o(keep), .win_o(win));
  always_comb begin
    fits = 1'b1;
    for (int k = 0; k < Ports; k++)
      if (run_t'(k) < runs && !free[port(tail_q, run_t'(k))]) fits = 1'b0;
  end
  assign go     = row_i && ready_o && fits;
  assign take_o = go && last;
  assign tail_d = port(tail_q, runs);
  always_ff @(posedge clk_i) begin
    if (go) tail_q <= tail_d;
    if (kill_i || !rst_ni) tail_q <= '0;
  end

  // ---- beats on their way ---------------------------------------------------------------------
  beat_t          in_beat, beat, beats [Beats];
  logic [9*C-1:0] weights [Beats];
  logic [2:0]     bt_q, bt_d, bh_q, bh_d;
  logic [3:0]     count_q, count_d;        // beats in;
  logic [3:0]     ripe_q, ripe_d;          // of them those old enough to leave
  logic [1:0]     young_q;
  logic           push, pop;
  always_comb begin
    in_beat        = '0;
    in_beat.row    = go;
    in_beat.first  = first;
    in_beat.last   = take_o;
    in_beat.runs   = go ? runs : '0;
    in_beat.starts = go ? pick : '0;
    in_beat.in     = in;
    in_beat.keep   = keep;
    in_beat.win    = win;
    in_beat.load   = load_i;
    in_beat.at     = at_i;
    in_beat.tag    = tag_i;
  end
  assign push    = go || load_i;
  assign ready_o = count_q != 4'(Beats);
  assign beat    = beats[bh_q];
  always_comb begin
    bt_d    = bt_q + 3'(push);
    bh_d    = bh_q + 3'(pop);
    count_d = count_q + 4'(push) - 4'(pop);
    ripe_d  = ripe_q + 4'(young_q[1]) - 4'(pop);
  end
  always_ff @(posedge clk_i) begin
    if (push) beats[bt_q] <= in_beat;
    if (load_i) weights[bt_q] <= w_i;
    if (kill_i || !rst_ni) begin
      bt_q    <= '0;
      bh_q    <= '0;
      young_q <= '0;
      count_q <= '0;
      ripe_q  <= '0;
    end else begin
      bt_q    <= bt_d;
      bh_q    <= bh_d;
      young_q <= {young_q[0], push};
      count_q <= count_d;
      ripe_q  <= ripe_d;
    end
  end

  // ---- ports ----------------------------------------------------------------------------------
  logic          run [Ports], req [Ports], gnt [Ports], have [Ports], take [Ports];
  logic [SW-1:0] run_ad [Ports];
  logic [3:0]    run_more [Ports], run_place [Ports];
  logic [7:0]    banks [Ports];
  logic [2:0]    bank_at [Ports];
  logic [2:0]    ahead [Ports];
  logic [AI-1:0] row_at [Ports], next_row_at [Ports];
  logic [127:0]  data [Ports];
  always_comb begin
    run_t p;
    p = '0;
    for (int q = 0; q < Ports; q++) begin
      run[q]       = 1'b0;
      run_ad[q]    = '0;
      run_more[q]  = '0;
      run_place[q] = '0;
    end
    if (go)
      for (int k = 0; k < Ports; k++)
        if (run_t'(k) < runs) begin
          p            = port(tail_q, run_t'(k));
          run[p]       = 1'b1;
          run_ad[p]    = SW'(window_i.ad + lane_off_i[lane[k]]) + (op_i.group ? win_i[win] : '0);
          run_more[p]  = op_i.group ? win_more_i[win] : lane_more_i[lane[k]];
          run_place[p] = op_i.group ? '0 : 4'(lane[k]);
        end
  end

  for (genvar p = 0; p < Ports; p++) begin : g_port
    npu_conv_port u_port (
        .clk_i, .clear_i(kill_i || !rst_ni), .run_i(run[p]), .ad_i(run_ad[p]),
        .more_i(run_more[p]), .place_i(run_place[p]), .free_o(free[p]), .req_o(req[p]),
        .banks_o(banks[p]), .bank_o(bank_at[p]), .row_o(row_at[p]), .next_row_o(next_row_at[p]),
        .ahead_o(ahead[p]), .gnt_i(gnt[p]), .word_i, .v_o(have[p]), .data_o(data[p]),
        .pop_i(take[p]));
  end

  npu_conv_banks #(.Shared(R > 16)) u_banks (
      .clk_i, .rst_ni, .req_i(req), .ahead_i(ahead), .head_i(head_q), .banks_i(banks),
      .bank_i(bank_at), .row_i(row_at), .next_row_i(next_row_at), .gnt_o(gnt), .re_o, .bank_row_o);

  // ---- the oldest beat leaves once its runs have come -----------------------------------------
  always_comb begin
    pop = ripe_q != 0;
    for (int k = 0; k < Ports; k++)
      if (run_t'(k) < beat.runs && !have[port(head_q, run_t'(k))]) pop = 1'b0;
    for (int p = 0; p < Ports; p++) take[p] = 1'b0;
    if (pop)
      for (int k = 0; k < Ports; k++)
        if (run_t'(k) < beat.runs) take[port(head_q, run_t'(k))] = 1'b1;
  end
  assign head_d = port(head_q, beat.runs);
  always_ff @(posedge clk_i) begin
    if (pop) head_q <= head_d;
    if (kill_i || !rst_ni) head_q <= '0;
  end
  assign row_o  = pop && beat.row && beat.last;
  assign tag_o  = beat.tag;
  assign load_o = pop && beat.load;
  assign at_o   = beat.at;
  assign w_o    = weights[bh_q];

  // What was in at the last mark.
  logic [3:0] old_q, old_d;
  assign passed_o = old_q == 0;
  assign busy_o   = count_q != 0;
  assign old_d    = mark_i ? count_d : old_q - 4'(pop && old_q != 0);
  always_ff @(posedge clk_i)
    if (kill_i || !rst_ni) old_q <= '0;
    else old_q <= old_d;

  npu_conv_spread #(.R(R), .C(C)) u_spread (
      .clk_i, .op_i(out_op_i), .row_i(pop && beat.row), .first_i(beat.first), .runs_i(beat.runs),
      .head_i(head_q), .data_i(data), .starts_i(beat.starts), .in_i(beat.in), .keep_i(beat.keep),
      .win_i(beat.win), .col_win_i, .col_at_i, .a_o, .g_o);

  // ---- what always holds ------------------------------------------------------------------------
  Room:   assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i) push |-> ready_o);
  Ripe:   assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i) ripe_q <= count_q);
  Young:  assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
                           pop |-> count_q != 0 && (beat.row || beat.load));
  Behind: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
                           old_q <= count_q);
endmodule
