// SPDX-License-Identifier: Apache-2.0
// npu_conv_cols: F_GROUP: where each column's input channels begin, as windows of at most 16 bytes
// that neighbouring columns share, found while a tile's parameters come in.  In a depthwise
// convolution one window has all columns.
module npu_conv_cols
  import npu_conv_pkg::*;
#(
    parameter int C = 16,
    localparam int SW = npu_pkg::SpadLog2, CI = C > 1 ? $clog2(C) : 1
) (
    input  logic          clk_i,
    // columns at_i and, with two_i, at_i + 1 of a tile, in order
    input  logic          we_i,
    input  logic          two_i,
    input  logic [1:0]    tid_i,
    input  logic [5:0]    at_i,
    input  logic [SW-1:0] begin_i [2],
    // the windows of the tile being read
    input  logic [1:0]    read_tid_i,
    input  dim_t          read_nc_i,      // its columns
    output logic [CI-1:0] wins_o,         // windows less one
    output logic [SW-1:0] win_o [C],
    output logic [3:0]    more_o [C],     // bytes behind the first that are used
    // the columns of the tile whose rows leave: their window, and where in it
    input  logic [1:0]    leave_tid_i,
    output logic [CI-1:0] col_win_o [C],
    output logic [3:0]    col_at_o [C]
);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_cols: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  logic [C-1:0][SW-1:0] win_q [4];
  logic [C-1:0][3:0]    win_more_q [4];
  logic [C-1:0][CI-1:0] col_win_q [4];
  logic [C-1:0][3:0]    col_at_q [4];
  // the window that the last column written is in: its number, where it begins, bytes used
  logic [CI-1:0] n, n_q, n_d [2];
  logic [SW-1:0] first, first_q, first_d [2], off;
  logic [3:0]    more, more_q, more_d [2], at_d [2];

  always_comb begin
    n     = n_q;
    first = first_q;
    more  = more_q;
    for (int b = 0; b < 2; b++) begin
      off = begin_i[b] - first;
      if (b == 0 || two_i) begin
        if (at_i == 0 && b == 0) n = '0;
        else if (off > SW'(15)) n = n + 1'b1;
        if ((at_i == 0 && b == 0) || off > SW'(15)) begin
          first = begin_i[b];
          more  = '0;
          off   = '0;
        end else if (4'(off) > more) more = 4'(off);
      end
      n_d[b]     = n;
      first_d[b] = first;
      more_d[b]  = more;
      at_d[b]    = 4'(off);
    end
  end

  always_ff @(posedge clk_i)
    if (we_i) begin
      n_q     <= n;
      first_q <= first;
      more_q  <= more;
      for (int b = 0; b < 2; b++)
        if (32'(at_i) + b < C) begin       // the second may be none: then nobody looks
          win_q[tid_i][n_d[b]]      <= first_d[b];
          win_more_q[tid_i][n_d[b]] <= more_d[b];
          col_win_q[tid_i][CI'(32'(at_i) + b)] <= n_d[b];
          col_at_q[tid_i][CI'(32'(at_i) + b)]  <= at_d[b];
        end
    end

  assign wins_o = col_win_q[read_tid_i][CI'(read_nc_i - dim_t'(1))];
  for (genvar j = 0; j < C; j++) begin : g_col
    assign win_o[j]     = win_q[read_tid_i][j];
    assign more_o[j]    = win_more_q[read_tid_i][j];
    assign col_win_o[j] = col_win_q[leave_tid_i][j];
    assign col_at_o[j]  = col_at_q[leave_tid_i][j];
  end

  // ---- what always holds ------------------------------------------------------------------------
  column_of_the_array: assert property (@(posedge clk_i)
      we_i |-> 32'(at_i) < C && !at_i[0]) else $error("a column that is not there, or no pair's");
endmodule
