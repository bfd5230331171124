// SPDX-License-Identifier: Apache-2.0
// npu_conv_stream: the fold being streamed: an activation row a cycle while its input is there, and
// where each row's window lies.
module npu_conv_stream
  import npu_conv_pkg::*;
(
    input  logic     clk_i, rst_ni, kill_i,
    input  conv_op_t op_i,                 // the streamed fold's
    input  logic [19:0] rows_i,            // input rows complete, from the first on, of who loads
    input  logic     all_i,                // all of the streamed fold's operation are
    input  logic     hold_i,               // no fold begins,
    input  logic     freeze_i,             // with hold_i: no row is offered
    // the loaded fold
    input  logic     load_done_i,
    input  fold_t    load_i,
    input  conv_op_t load_op_i,            // its operation, the window that begins with,
    input  walk_t    load_origin_i,
    input  logic     load_all_i,           // all of its input rows are complete
    input  logic     load_ok_i,            // nothing else holds it up
    input  reach_t   load_reach_i,
    input  logic     load_bank_i,
    output logic     load_here_o,          // its first row's input is there
    output logic     load_take_o,
    // the streamed fold
    output logic     v_o,
    output logic     wait_o,               // its next row's input is not there
    output logic     offer_o,              // a row can go
    output logic     fresh_o,              // its window does not follow the last row's
    input  logic     take_i,               // it does
    output logic     row_o,                // a row goes
    output logic     first_o, last_o,      // the fold's first is offered; its last goes
    output tag_t     tag_o,                // its tag
    output walk_t    window_o,             // and its window
    output logic signed [20:0] panel_iy_o, // input row that its panel's first window begins at
    output fold_t    fold_o,
    output rows_t    t_o,                  // of it: rows gone
    output logic     bank_o,               // of its lanes
    output logic [15:0] macs_o             // useful multiplications a row
);
  logic        v_d, v_q;
  fold_t       fold_d, fold_q;
  logic        bank_d, bank_q;
  reach_t      reach_d, reach_q;
  logic [15:0] macs_d, macs_q;
  rows_t       t_d, t_q;
  walk_t       window_d, window_q, window_next, panel_d, panel_q, base;
  logic        row_here, last;
  logic        held_q, held_d;            // a row was offered and is still

  // Whether the input rows from row iy on, as far as it reaches, are there.
  function automatic logic here(input logic signed [20:0] iy, input reach_t reach,
                                input logic [19:0] rows, input logic cut, all);
    logic signed [21:0] bottom;
    logic [19:0]        left;
    bottom = 22'(iy) + 22'(signed'({1'b0, reach}));
    left   = rows - 20'(iy);
    return all || (cut ? left != 0 && !left[19]
                       : bottom < 0 || bottom < 22'(signed'({2'b0, rows})));
  endfunction

  // Beyond the image's last row or column windows stand still, so that coordinates do not wrap.
  always_comb begin
    window_next = window_q;
    if (window_q.ox + 16'd1 == op_i.ow) begin
      window_next.ox  = '0;
      window_next.ix  = -18'(signed'({1'b0, op_i.pl}));
      if (op_i.cut || window_q.iy < 21'(signed'({1'b0, op_i.h})))
        window_next.iy = window_q.iy + 21'(signed'({1'b0, op_i.sy}));
      if (op_i.cut) begin
        window_next.iy[20] = 1'b0;
        window_next.low    = window_q.low + op_i.lda[5:0];
      end
      window_next.row = window_q.row + op_i.step_y;
      window_next.ad  = window_next.row + spad_t'(window_next.low);
    end else begin
      window_next.ox = window_q.ox + 16'd1;
      if (window_q.ix < 18'(signed'({1'b0, op_i.w})))
        window_next.ix = window_q.ix + 18'(signed'({1'b0, op_i.sx}));
      window_next.ad = window_q.ad + op_i.step_x;
    end
  end

  assign row_here    = here(window_q.iy, reach_q, rows_i, op_i.cut, all_i);
  assign wait_o      = v_q && !row_here;
  assign offer_o     = v_q && (!freeze_i || held_q) && row_here;
  assign fresh_o     = t_q == 0 || window_q.ox == 0;
  assign row_o       = offer_o && take_i;
  assign first_o     = v_q && t_q == 0;
  assign last_o      = last;
  assign last        = row_o && t_q == fold_q.at.t - 1'b1;
  always_comb begin
    base = load_i.new_op ? load_origin_i : !load_i.new_panel ? panel_q
           : row_o ? window_next : window_q;
    if (load_i.new_panel && load_op_i.cut) begin
      base.low = load_origin_i.low;
      base.ad  = base.row + spad_t'(base.low);
    end
  end
  assign load_here_o = load_ok_i
                       && here(base.iy, load_reach_i, rows_i, load_op_i.cut, load_all_i);
  assign load_take_o = load_done_i && !hold_i && (!v_q || last) && load_here_o;
  assign v_o         = v_q;
  assign tag_o       = '{v: row_o, first: fold_q.at.sums.k == 0, last: fold_q.last,
                         again: t_q < fold_q.at.sums.r, eof: last,
                         eot: fold_q.last && last, op: fold_q.seq,
                         tid: fold_q.tid, t: row_t'(t_q)};
  assign window_o    = window_q;
  assign panel_iy_o  = panel_q.iy;
  assign fold_o      = fold_q;
  assign t_o         = t_q;
  assign bank_o      = bank_q;
  assign macs_o      = tag_o.again ? '0 : macs_q;

  always_comb begin
    v_d      = v_q && !last;
    held_d   = offer_o && !row_o && !kill_i;
    fold_d   = fold_q;
    bank_d   = bank_q;
    reach_d  = reach_q;
    macs_d   = macs_q;
    t_d      = t_q;
    window_d = window_q;
    panel_d  = panel_q;
    if (row_o) begin
      t_d      = t_q + 1'b1;
      window_d = window_next;
    end
    if (load_take_o) begin
      v_d      = 1'b1;
      fold_d   = load_i;
      bank_d   = load_bank_i;
      reach_d  = load_reach_i;
      macs_d   = 16'(load_i.at.sums.kr) * 16'(load_i.at.sums.nc);
      t_d      = '0;
      window_d = base;
      panel_d  = base;
    end
    if (kill_i) v_d = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    v_q      <= rst_ni && v_d;
    held_q   <= rst_ni && held_d;
    fold_q   <= fold_d;
    bank_q   <= bank_d;
    reach_q  <= reach_d;
    macs_q   <= macs_d;
    t_q      <= t_d;
    window_q <= window_d;
    panel_q  <= panel_d;
  end

  // ---- what always holds ------------------------------------------------------------------------
  RowOfTheFold: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      v_q |-> t_q < fold_q.at.t);
  ColumnInLine: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      v_q |-> window_q.ox < op_i.ow);
endmodule
