// SPDX-License-Identifier: Apache-2.0
// npu_conv_acc: the sums of a tile, a row a cycle: read one cycle ahead, and written back.  While
// nothing comes from the array they can be read and written from outside, a line of 16 at a time.
module npu_conv_acc
  import npu_conv_pkg::*;
#(
    parameter int C = 16,
    localparam int Lines = (C + 15) / 16, Bits = C < 16 ? 32 * C : 512
) (
    input  logic               clk_i,
    input  tag_t               early_i, tag_i,  // of the next row, of this one
    input  logic signed [31:0] row_i [C],
    output logic [32*C-1:0]    sum_o,           // of the row before
    input  logic               re_i,            // a row is read: there a cycle later, till the next
    input  logic [Lines-1:0]   we_i,            // lines of a row are written
    input  row_t               at_i,            // which row
    input  logic [Bits-1:0]    line_i,
    output logic [Bits-1:0]    line_o [Lines]
);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_acc: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  typedef logic [npu_pkg::DepthLog2-1:0] at_t;
  logic [32*C-1:0] sum, sum_q, old;
  logic            again_q, again_d;            // the same row as before: not read back yet

  for (genvar l = 0; l < Lines; l++) begin : g_line
    localparam int N = l + 1 < Lines ? 512 : 32 * C - 512 * l;
    npu_ram_1r1w #(.Width(N), .Depth(1 << npu_pkg::DepthLog2)) u_ram (
        .clk_i, .we_i(tag_i.v || we_i[l]), .waddr_i(at_t'(tag_i.v ? tag_i.t : at_i)),
        .wdata_i(tag_i.v ? sum[512*l +: N] : N'(line_i)),
        .re_i((early_i.v && (!early_i.first || early_i.again)) || re_i),
        .raddr_i(at_t'(early_i.v ? early_i.t : at_i)), .rdata_o(old[512*l +: N]));
    assign line_o[l] = Bits'(old[512*l +: N]);
  end

  always_comb begin
    sum = '0;
    if (tag_i.v)
      for (int j = 0; j < C; j++)
        sum[32*j +: 32] = (tag_i.again ? '0 : row_i[j])
            + (tag_i.first && !tag_i.again ? '0 : again_q ? sum_q[32*j +: 32]
                                                          : old[32*j +: 32]);
  end
  assign again_d = early_i.v && tag_i.v && early_i.t == tag_i.t;
  always_ff @(posedge clk_i) begin
    again_q <= again_d;
    if (tag_i.v) sum_q <= sum;
  end
  assign sum_o = sum_q;

  RowsFirst: assert property (@(posedge clk_i) re_i || we_i != '0 |-> !tag_i.v && !early_i.v);
endmodule
