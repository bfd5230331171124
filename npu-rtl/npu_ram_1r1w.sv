// SPDX-License-Identifier: Apache-2.0
// npu_ram_1r1w: a memory with one read and one write port.  What is asked for comes in the next
// cycle and stays; a read beside a write of the same address gives what was there before.
module npu_ram_1r1w #(
    parameter int Width = 128, Depth = 1024,
    localparam int AI = Depth > 1 ? $clog2(Depth) : 1
) (
    input  logic             clk_i,
    input  logic             we_i,
    input  logic [AI-1:0]    waddr_i,
    input  logic [Width-1:0] wdata_i,
    input  logic             re_i,
    input  logic [AI-1:0]    raddr_i,
    output logic [Width-1:0] rdata_o
);
  if (Width < 1) $fatal(1, "npu_ram_1r1w: Width is %0d, not 1 or more", Width);
  if (Depth < 1) $fatal(1, "npu_ram_1r1w: Depth is %0d, not 1 or more", Depth);
  logic [Width-1:0] mem [Depth];
  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
    if (re_i) rdata_o <= mem[raddr_i];
  end
endmodule
