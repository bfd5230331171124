// SPDX-License-Identifier: Apache-2.0
// npu_conv_spad: scratchpad of npu_conv: 8 banks of 16-byte words, each with one read and one write
// port.  A line from memory goes into four banks at once; the gather reads a word a bank.
module npu_conv_spad
  import npu_spad_pkg::*;
#(
    localparam int SW = npu_pkg::SpadLog2, AI = SW - 7
) (
    input  logic          clk_i,
    input  logic          we_i,
    input  logic [SW-7:0] line_i,
    input  logic [511:0]  data_i,
    input  logic [7:0]    re_i,
    input  logic [AI-1:0] row_i [Banks],
    output logic [Banks-1:0][127:0] word_o  // the cycle after re_i
);
  logic [2:0] first;                      // bank of the line's first word
  assign first = bank(12'({line_i, 2'd0}));

  for (genvar b = 0; b < Banks; b++) begin : g_bank
    logic [2:0] k;                        // which of the line's words, if below 4
    assign k = 3'(b) - first;
    npu_ram_1r1w #(.Width(128), .Depth(1 << AI)) u_ram (
        .clk_i, .we_i(we_i && !k[2]), .waddr_i(line_i[SW-7:1]), .wdata_i(data_i[128*k[1:0] +: 128]),
        .re_i(re_i[b]), .raddr_i(row_i[b]), .rdata_o(word_o[b]));
  end
endmodule
