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
  localparam int Ports = 6, Beats = 8;
  typedef logic [2:0] port_t;

  function automatic port_t port(input port_t from, input port_t n);
    logic [3:0] p;
    p = 4'(from) + 4'(n);
    return port_t'(p >= 4'(Ports) ? p - 4'(Ports) : p);
  endfunction

  // A beat: what goes in in one cycle.
  typedef struct packed {
    logic               row, first, last;  // part of a row: its first, its last
    port_t              runs;
    logic [R-1:0]       starts;            // lanes at which the runs begin; F_GROUP: lanes read
    logic [R-1:0]       in, keep;          // lanes in the image; lanes of the last row used again
    logic [CI-1:0]      win;
    logic               load;
    logic [RI-1:0]      at;
    tag_t               tag;
  } beat_t;

  // ---- a row's runs, and what of them goes now ------------------------------------------------
  logic [R-1:0]  in, keep, want, done_q, done_d, pick;
  logic [CI-1:0] win_q, win_d;
  logic          all, fits, go, last_win;
  logic [RI-1:0] lane [Ports];
  port_t         runs, tail_q, tail_d, head_q, head_d;
  logic          free [Ports];

  // Lanes that a window moves on by from row to row, if it does so by whole lanes and not far.
  logic [1:0] shift, out_shift;
  function automatic logic [1:0] lanes(input conv_op_t of);
    return of.kcin == 16'd1 && of.dx == 4'd1 && of.sx <= 4'd2 ? of.sx[1:0] : 2'd0;
  endfunction
  assign shift     = lanes(op_i);
  assign out_shift = lanes(out_op_i);

  logic [20:0] y;
  logic [17:0] x;
  always_comb begin
    in   = '0;
    keep = '0;
    y    = '0;
    x    = '0;
    if (row_i)
      for (int i = 0; i < R; i++) begin
        // a negative coordinate is a huge unsigned one
        y     = 21'(unsigned'(window_i.iy + 21'(signed'({1'b0, lane_dy_i[i]}))));
        x     = 18'(unsigned'(window_i.ix + 18'(signed'({1'b0, lane_dx_i[i]}))));
        in[i] = lane_v_i[i] && (op_i.cut || (y < 21'(op_i.h) && x < 18'(op_i.w)));
        for (int s = 1; s <= 2; s++)
          if (op_i.group && !fresh_i && shift == 2'(s) && lane_again_i[i] && i + s < R)
            keep[i] = lane_v_i[RI'(unsigned'(i + s))];
      end
  end

  always_comb begin
    logic any;
    any  = 1'b0;
    want = '0;
    if (op_i.group) want = in & ~keep;
    else
      for (int i = R - 1; i >= 0; i--) begin
        any |= in[i];
        if (lane_start_i[i]) begin
          want[i] = any;
          any     = 1'b0;
        end
      end
  end

  always_comb begin
    pick = '0;
    runs = '0;
    all  = 1'b1;
    for (int k = 0; k < Ports; k++) lane[k] = '0;
    if (row_i)
      for (int i = 0; i < R; i++)
        if (want[i] && !done_q[i]) begin
          if (runs != port_t'(Ports)) begin
            pick[i]    = 1'b1;
            lane[runs] = RI'(i);
            runs       = runs + 3'd1;
          end else all = 1'b0;
        end
  end

  always_comb begin
    fits = 1'b1;
    for (int k = 0; k < Ports; k++)
      if (port_t'(k) < runs && !free[port(tail_q, port_t'(k))]) fits = 1'b0;
  end
  assign last_win = !op_i.group || win_q == wins_i;
  assign go       = row_i && ready_o && fits;
  assign take_o   = go && all && last_win;

  always_comb begin
    done_d = all ? '0 : done_q | pick;
    win_d  = !all ? win_q : last_win ? '0 : win_q + 1'b1;
    tail_d = port(tail_q, runs);
  end
  always_ff @(posedge clk_i) begin
    if (go) begin
      done_q <= done_d;
      win_q  <= win_d;
      tail_q <= tail_d;
    end
    if (kill_i || !rst_ni) begin
      done_q <= '0;
      win_q  <= '0;
      tail_q <= '0;
    end
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
    in_beat.first  = done_q == '0 && win_q == '0;
    in_beat.last   = take_o;
    in_beat.runs   = go ? runs : '0;
    in_beat.starts = go ? pick : '0;
    in_beat.in     = in;
    in_beat.keep   = keep & in;
    in_beat.win    = win_q;
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
    port_t p;
    p = '0;
    for (int q = 0; q < Ports; q++) begin
      run[q]       = 1'b0;
      run_ad[q]    = '0;
      run_more[q]  = '0;
      run_place[q] = '0;
    end
    if (go)
      for (int k = 0; k < Ports; k++)
        if (port_t'(k) < runs) begin
          p            = port(tail_q, port_t'(k));
          run[p]       = 1'b1;
          run_ad[p]    = SW'(window_i.ad + lane_off_i[lane[k]]) + (op_i.group ? win_i[win_q] : '0);
          run_more[p]  = op_i.group ? win_more_i[win_q] : lane_more_i[lane[k]];
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

  // A bank serves the oldest of the runs that ask for it; one that waits for its other bank keeps
  // it from the younger. On more than 16 PE rows a row of bytes side by side is several runs, each
  // beginning in the word that the one before ends in: there a read is for all that want its word.
  localparam bit Shared = R > 16;
  logic [5:0]    age [Ports];
  logic [AI-1:0] bank_row [Ports][Banks];
  function automatic logic meet(input port_t p, input port_t q);
    meet = 1'b0;
    for (int b = 0; b < Banks; b++)
      if (banks[p][b] && banks[q][b] && !(Shared && bank_row[p][b] == bank_row[q][b])) meet = 1'b1;
  endfunction
  for (genvar p = 0; p < Ports; p++) begin : g_bank_row
    for (genvar b = 0; b < Banks; b++) begin : g_bank
      assign bank_row[p][b] = 3'(b) == bank_at[p] ? row_at[p] : next_row_at[p];
    end
  end
  always_comb begin
    for (int p = 0; p < Ports; p++)
      age[p] = {ahead[p], port(3'(p), head_q == 0 ? '0 : port_t'(Ports) - head_q)};
    for (int p = 0; p < Ports; p++) begin
      gnt[p] = req[p];
      for (int q = 0; q < Ports; q++)
        if (q != p && req[q] && age[q] < age[p] && meet(port_t'(p), port_t'(q))) gnt[p] = 1'b0;
    end
  end
  always_comb begin
    re_o = '0;
    for (int b = 0; b < Banks; b++) bank_row_o[b] = '0;
    for (int p = 0; p < Ports; p++)
      if (gnt[p]) begin
        re_o |= banks[p];
        for (int b = 0; b < Banks; b++)
          if (banks[p][b]) bank_row_o[b] |= bank_row[p][b];
      end
  end

  // ---- the oldest beat leaves once its runs have come -----------------------------------------
  always_comb begin
    pop = ripe_q != 0;
    for (int k = 0; k < Ports; k++)
      if (port_t'(k) < beat.runs && !have[port(head_q, port_t'(k))]) pop = 1'b0;
    for (int p = 0; p < Ports; p++) take[p] = 1'b0;
    if (pop)
      for (int k = 0; k < Ports; k++)
        if (port_t'(k) < beat.runs) take[port(head_q, port_t'(k))] = 1'b1;
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

  function automatic logic [8:0] element(input logic [7:0] b);
    return {!out_op_i.a_u8 & b[7], b} - {!out_op_i.a_u8 & out_op_i.zpa[7], out_op_i.zpa};
  endfunction

  // One element a lane, from the run that the lane lies in.  Lanes behind the last run of a beat
  // get theirs with a later one.
  logic [9*R-1:0] part_q;
  always_comb begin
    port_t n;
    logic  hit;
    n   = head_q;
    hit = 1'b0;
    a_o = beat.first ? '0 : part_q;
    if (pop && !out_op_i.group)
      for (int i = 0; i < R; i++) begin
        if (beat.starts[i]) begin
          n   = hit ? port(n, 3'd1) : n;
          hit = 1'b1;
        end
        if (hit && beat.in[i]) a_o[9*i +: 9] = element(data[n][8*(i%16) +: 8]);
      end
  end
  always_ff @(posedge clk_i) if (pop && beat.row && !out_op_i.group) part_q <= a_o;

  // F_GROUP: the rows' windows overlap.  What the last row had moves on to the lane that has it
  // now; the rest is read, a vector a lane, and each column takes its byte.
  logic [9*C-1:0] window_q [R], window [R], vector [Ports], mine;
  always_comb begin
    port_t n;
    n    = head_q;
    mine = '0;
    for (int k = 0; k < Ports; k++) vector[k] = '0;
    for (int i = 0; i < R; i++) window[i] = '0;
    if (pop && beat.row && out_op_i.group) begin
      for (int j = 0; j < C; j++) if (col_win_i[j] == beat.win) mine[9*j +: 9] = '1;
      for (int k = 0; k < Ports; k++)
        if (port_t'(k) < beat.runs)
          for (int j = 0; j < C; j++)
            vector[k][9*j +: 9] = element(data[port(head_q, port_t'(k))][{col_at_i[j], 3'd0} +: 8]);
      n = '0;
      for (int i = 0; i < R; i++) begin
        if (!beat.first) window[i] = window_q[i];
        else
          for (int s = 1; s <= 2; s++)
            if (out_shift == 2'(s) && i + s < R && beat.keep[i])
              window[i] = window_q[RI'(unsigned'(i + s))];
        if (beat.starts[i]) begin
          window[i] = (window[i] & ~mine) | (vector[n] & mine);
          n         = n + 3'd1;
        end
      end
    end
  end
  always_ff @(posedge clk_i) if (pop && beat.row && out_op_i.group) window_q <= window;
  assign g_o = window;

  logic clash;                            // two reads of a bank in one cycle
  always_comb begin
    clash = 1'b0;
    for (int p = 0; p < Ports; p++)
      for (int q = 0; q < p; q++)
        clash |= gnt[p] && gnt[q] && meet(port_t'(p), port_t'(q));
  end
  OneRead:  assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i) !clash);
  Room:     assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i) push |-> ready_o);
  Ripe:     assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i) ripe_q <= count_q);
  Steady:   assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
                             row_i && !take_o |=> row_i);
endmodule
