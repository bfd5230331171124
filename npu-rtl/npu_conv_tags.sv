// SPDX-License-Identifier: Apache-2.0
// npu_conv_tags: a tag goes with each streamed row, down the rectangle's rows and along its
// columns, in step with the sums.  It alone says that a result is real, and dies at the edges.
module npu_conv_tags
  import npu_conv_pkg::*;
#(
    parameter int R = 16, C = 16,
    localparam int RI = R > 1 ? $clog2(R) : 1, CI = C > 1 ? $clog2(C) : 1
) (
    input  logic clk_i, rst_ni, kill_i,
    input  dim_t h_i, w_i,
    input  tag_t tag_i,                    // of the row that is streamed now
    output tag_t tag_o [C],                // of the results that leave the columns now
    output logic busy_o,                   // rows are on their way
    output logic fold_done_o, tile_done_o  // a fold's, a tile's last row leaves the last column
);
  tag_t       row_q [R], col_q [C], last;
  logic [6:0] count_d, count_q;

  assign last        = col_q[CI'(w_i - 1'b1)];
  assign tag_o       = col_q;
  assign busy_o      = count_q != 0;
  assign fold_done_o = last.v && last.eof;
  assign tile_done_o = last.v && last.eot;
  assign count_d     = kill_i ? '0 : count_q + 7'(tag_i.v) - 7'(last.v);

  always_ff @(posedge clk_i) begin
    if (tag_i.v || busy_o) begin
      row_q[0] <= tag_i;
      for (int i = 1; i < R; i++) begin
        row_q[i]   <= row_q[i-1];
        row_q[i].v <= row_q[i-1].v && dim_t'(i) < h_i;
      end
      col_q[0] <= row_q[RI'(h_i - 1'b1)];
      for (int j = 1; j < C; j++) begin
        col_q[j]   <= col_q[j-1];
        col_q[j].v <= col_q[j-1].v && dim_t'(j) < w_i;
      end
    end
    if (kill_i || !rst_ni) begin
      for (int i = 0; i < R; i++) row_q[i].v <= 1'b0;
      for (int j = 0; j < C; j++) col_q[j].v <= 1'b0;
    end
    count_q <= rst_ni ? count_d : '0;
  end

  no_row_from_nowhere: assert property (@(posedge clk_i) disable iff (!rst_ni)
      last.v |-> busy_o) else $error("a row leaves that never entered");
  no_row_too_many: assert property (@(posedge clk_i) disable iff (!rst_ni)
      32'(count_q) <= R + C) else $error("more rows under way than the rectangle is long");
endmodule
