// SPDX-License-Identifier: Apache-2.0
// npu_conv_folds: the folds of an operation, one after the other: k inside n inside m; then those
// of the next.  Tiles are numbered on.
module npu_conv_folds
  import npu_conv_pkg::*;
(
    input  logic     clk_i, rst_ni, kill_i,
    input  logic     start_i,              // op_i's folds are next
    input  conv_op_t op_i,                 // until its last fold is taken
    input  seq_t     seq_i,
    input  dim_t     h_i, w_i,
    output logic     v_o,
    output fold_t    fold_o,
    output tile_t    tile_o,               // the fold's tile
    input  logic     take_i,
    output logic     between_o             // it is the first of a tile, or of two stored together
);
  logic        v_d, v_q;
  logic [19:0] m0_d, m0_q;
  logic [15:0] n0_d, n0_q, k0_d, k0_q;
  rows_t       t_d, t_q;
  logic [31:0] row_d, row_q;               // address of output row m0
  tid_t        tid_d, tid_q;
  logic        new_panel_d, new_panel_q, new_op_d, new_op_q;
  logic        odd_d, odd_q;               // second tile of a pair
  logic        first_d, first_q;           // first of its tile
  logic        kept_d, kept_q;             // sums of the tile are there: it is as wide as they are
  dim_t        h, w;
  logic [16:0] part_end;                   // k behind the part that k0 is in
  logic        ends_part, last_k, last_n, last_m;
  logic [19:0] m_next;
  logic [31:0] row_next;

  assign h         = kept_q && first_q && op_i.at.sums.r != 0 ? op_i.at.sums.kr : h_i;
  assign w         = kept_q ? op_i.at.sums.nc : w_i;
  assign part_end  = {1'b0, k0_q | op_i.part} + 17'd1;
  assign ends_part = 17'(k0_q) + 17'(h) >= (part_end < 17'(op_i.k) ? part_end : 17'(op_i.k));
  assign last_k    = ends_part && part_end >= 17'(op_i.k);
  assign last_n    = 17'(n0_q) + 17'(w) >= 17'(op_i.n);
  assign m_next    = m0_q + 20'(t_q);
  assign row_next  = row_q + 32'(t_q) * op_i.ldd;
  assign last_m    = m_next >= op_i.m;

  assign v_o              = v_q;
  assign between_o        = v_q && first_q && k0_q == 0 && !odd_q;
  assign fold_o.first     = first_q;
  assign fold_o.at.half      = op_i.at.half;
  assign fold_o.at.m         = m0_q;
  assign fold_o.at.t         = t_q;
  assign fold_o.at.n         = odd_q ? n0_q - 16'(w_i) : n0_q;
  assign fold_o.at.sums.k    = k0_q;
  assign fold_o.at.sums.kr   = last_k ? dim_t'(op_i.k - k0_q) :
      ends_part ? dim_t'(part_end - 17'(k0_q)) : h;
  assign fold_o.at.sums.nc   = last_n ? dim_t'(op_i.n - n0_q) : w;
  assign fold_o.at.sums.r    = kept_q && first_q ? op_i.at.sums.r : '0;
  assign fold_o.last      = last_k;
  assign fold_o.new_panel = new_panel_q;
  assign fold_o.new_op    = new_op_q;
  assign fold_o.ends      = last_k && last_n && last_m;
  assign fold_o.seq       = seq_i;
  assign fold_o.tid       = tid_q;
  assign tile_o.tid       = tid_q;
  assign tile_o.pair      = op_i.pair && !odd_q && !last_n;
  assign tile_o.nc        = fold_o.at.sums.nc;
  assign tile_o.t         = t_q;
  assign tile_o.ldd       = op_i.ldd;
  assign tile_o.out32     = op_i.out32;
  assign tile_o.quad      = op_i.pair;
  assign tile_o.ends      = last_n && last_m;
  assign tile_o.panel     = last_n;
  assign tile_o.upto      = row_next;
  assign tile_o.seq       = seq_i;
  assign tile_o.addr      = row_q + (op_i.out32 ? {14'd0, n0_q, 2'd0} : {16'd0, n0_q});

  always_comb begin
    v_d         = v_q;
    m0_d        = m0_q;
    n0_d        = n0_q;
    k0_d        = k0_q;
    t_d         = t_q;
    row_d       = row_q;
    tid_d       = tid_q;
    new_panel_d = new_panel_q;
    new_op_d    = new_op_q;
    odd_d       = odd_q;
    first_d     = first_q;
    kept_d      = kept_q;
    if (start_i) begin
      v_d         = 1'b1;
      m0_d        = op_i.at.m;
      n0_d        = op_i.at.n;
      k0_d        = op_i.at.sums.k;
      t_d         = op_i.at.t != 0 ? op_i.at.t : panel(op_i.m, op_i.depth, '0);
      row_d       = op_i.addr_m;
      new_panel_d = 1'b0;
      new_op_d    = 1'b1;
      odd_d       = 1'b0;
      first_d     = 1'b1;
      kept_d      = op_i.at.sums.nc != 0;
    end else if (take_i) begin
      new_panel_d = 1'b0;
      new_op_d    = 1'b0;
      first_d     = last_k;
      k0_d        = k0_q + 16'(fold_o.at.sums.kr);
      if (op_i.cut) new_panel_d = ends_part;
      if (last_k) begin
        k0_d  = '0;
        tid_d = tid_q + 1'b1;
        odd_d = tile_o.pair;
        n0_d  = n0_q + 16'(w);
        kept_d = 1'b0;
        if (last_n) begin
          n0_d        = '0;
          m0_d        = m_next;
          t_d         = panel(op_i.m - m_next, op_i.depth, t_q);
          row_d       = row_next;
          new_panel_d = 1'b1;
          v_d         = !last_m;
        end
      end
    end
    if (kill_i) begin
      v_d   = 1'b0;
      tid_d = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    v_q         <= rst_ni && v_d;
    m0_q        <= m0_d;
    n0_q        <= n0_d;
    k0_q        <= k0_d;
    t_q         <= t_d;
    row_q       <= row_d;
    tid_q       <= rst_ni ? tid_d : '0;
    new_panel_q <= new_panel_d;
    new_op_q    <= new_op_d;
    odd_q       <= odd_d;
    first_q     <= first_d;
    kept_q      <= kept_d;
  end

  FoldInOnePart: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      v_q |-> {1'b0, k0_q & op_i.part} + 17'(fold_o.at.sums.kr) <= {1'b0, op_i.part} + 17'd1);
  PartsOfOnePanel: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      v_q && op_i.cut |-> m0_q == 0 && 20'(t_q) == op_i.m);
endmodule
