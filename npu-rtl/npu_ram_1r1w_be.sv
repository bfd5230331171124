// SPDX-License-Identifier: Apache-2.0
// npu_ram_1r1w_be: npu_ram_1r1w that writes some bytes of a word.
module npu_ram_1r1w_be #(
    parameter int Width = 256, Depth = 64,
    localparam int AI = Depth > 1 ? $clog2(Depth) : 1
) (
    input  logic               clk_i,
    input  logic               we_i,
    input  logic [Width/8-1:0] be_i,
    input  logic [AI-1:0]      waddr_i,
    input  logic [Width-1:0]   wdata_i,
    input  logic               re_i,
    input  logic [AI-1:0]      raddr_i,
    output logic [Width-1:0]   rdata_o
);
  if (Width < 8 || Width % 8 != 0)
    $fatal(1, "npu_ram_1r1w_be: Width is %0d, not a multiple of 8", Width);
  if (Depth < 1) $fatal(1, "npu_ram_1r1w_be: Depth is %0d, not 1 or more", Depth);
  logic [Width-1:0] mem [Depth];
  always_ff @(posedge clk_i) begin
    if (we_i)
      for (int b = 0; b < Width / 8; b++) if (be_i[b]) mem[waddr_i][8*b +: 8] <= wdata_i[8*b +: 8];
    if (re_i) rdata_o <= mem[raddr_i];
  end
endmodule
