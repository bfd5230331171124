// SPDX-License-Identifier: Apache-2.0
// npu_conv_acc: the sums of a tile, a row a cycle: read one cycle ahead, and written back unless
// the fold is the tile's last.
module npu_conv_acc
  import npu_conv_pkg::*;
#(
    parameter int C = 16
) (
    input  logic               clk_i,
    input  tag_t               early_i, tag_i,  // of the next row, of this one
    input  logic signed [31:0] row_i [C],
    output logic [32*C-1:0]    sum_o            // of the row before
);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_acc: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  typedef logic [npu_pkg::DepthLog2-1:0] at_t;
  logic [32*C-1:0] sum, sum_q, old;
  logic            again_q;                     // the same row as before: not read back yet

  npu_ram_1r1w #(.Width(32 * C), .Depth(1 << npu_pkg::DepthLog2)) u_ram (
      .clk_i, .we_i(tag_i.v && !tag_i.last), .waddr_i(at_t'(tag_i.t)), .wdata_i(sum),
      .re_i(early_i.v && !early_i.first), .raddr_i(at_t'(early_i.t)), .rdata_o(old));

  always_comb begin
    sum = '0;
    if (tag_i.v)
      for (int j = 0; j < C; j++)
        sum[32*j +: 32] = row_i[j] + (tag_i.first ? '0 : again_q ? sum_q[32*j +: 32]
                                                                 : old[32*j +: 32]);
  end
  always_ff @(posedge clk_i) begin
    again_q <= early_i.v && tag_i.v && early_i.t == tag_i.t;
    if (tag_i.v) sum_q <= sum;
  end
  assign sum_o = sum_q;
endmodule
