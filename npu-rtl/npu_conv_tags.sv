// SPDX-License-Identifier: Apache-2.0
// npu_conv_tags: a tag goes with each streamed row, as long as it takes down the rectangle's rows
// and along its columns.  It alone says that a row of sums is real, and dies behind the last
// column.
module npu_conv_tags
  import npu_conv_pkg::*;
#(
    parameter int R = 16, C = 16,
    localparam int Stages = R + C - 1, SI = Stages > 1 ? $clog2(Stages) : 1
) (
    input  logic clk_i, rst_ni, kill_i,
    input  dim_t h_i, w_i,
    input  tag_t tag_i,                    // of the row that is streamed now
    output tag_t early_o,                  // of the row that leaves the last column next
    output tag_t tag_o,                    // of the row that leaves the last column now
    output logic busy_o,                   // rows are on their way
    output logic fold_done_o, tile_done_o  // a fold's, a tile's last row leaves
);
  if (R < 1 || R > int'(npu_pkg::MaxRows))
    $fatal(1, "npu_conv_tags: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_tags: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  tag_t          stage_q [Stages], tag_q;
  logic [SI-1:0] end_at;                   // stage before the last: h + w - 2
  logic [6:0]    count_d, count_q;

  assign end_at      = SI'(h_i + w_i - dim_t'(2));
  assign early_o     = stage_q[end_at];
  assign tag_o       = tag_q;
  assign busy_o      = count_q != 0;
  assign fold_done_o = tag_q.v && tag_q.eof;
  assign tile_done_o = tag_q.v && tag_q.eot;
  assign count_d     = kill_i ? '0 : count_q + 7'(tag_i.v) - 7'(tag_q.v);

  logic [Stages-1:0] on_d;                 // a row goes on to the stage
  always_comb begin
    on_d = '0;
    for (int i = 1; i < Stages; i++) on_d[i] = stage_q[i-1].v && SI'(i - 1) != end_at;
  end
  always_ff @(posedge clk_i) begin
    if (tag_i.v || busy_o) begin
      stage_q[0] <= tag_i;
      for (int i = 1; i < Stages; i++) begin
        stage_q[i]   <= stage_q[i-1];
        stage_q[i].v <= on_d[i];
      end
      tag_q <= early_o;
    end
    if (kill_i || !rst_ni) begin
      for (int i = 0; i < Stages; i++) stage_q[i].v <= 1'b0;
      tag_q.v <= 1'b0;
    end
    count_q <= rst_ni ? count_d : '0;
  end

  no_row_from_nowhere: assert property (@(posedge clk_i) disable iff (!rst_ni)
      tag_q.v |-> busy_o) else $error("a row leaves that never entered");
  no_row_too_many: assert property (@(posedge clk_i) disable iff (!rst_ni)
      32'(count_q) <= R + C) else $error("more rows under way than the rectangle is long");
endmodule
