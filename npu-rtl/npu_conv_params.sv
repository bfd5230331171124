// SPDX-License-Identifier: Apache-2.0
// npu_conv_params: the parameter table: bias, multiplier and shift of each column,
// for the eight tiles that can be under way.  Two columns come at once; a tile's are read at once.
module npu_conv_params
  import npu_conv_pkg::*;
#(
    parameter int C = 16
) (
    input  logic         clk_i,
    // parameters come, of columns 2 pair_i and 2 pair_i + 1 of a tile
    input  logic         v_i,
    input  tid_t         tid_i,
    input  logic [4:0]   pair_i,
    input  param_t       param_i [2],
    input  logic         read_i,
    input  tid_t         read_tid_i,
    output param_t       param_o [C]         // the cycle after read_i
);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_params: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  for (genvar j = 0; j < C; j++) begin : g_col
    npu_ram_1r1w #(.Width($bits(param_t)), .Depth(8)) u_ram (
        .clk_i, .we_i(v_i && pair_i == 5'(j / 2)), .waddr_i(tid_i), .wdata_i(param_i[j%2]),
        .re_i(read_i), .raddr_i(read_tid_i), .rdata_o(param_o[j]));
  end

  // ---- what always holds ------------------------------------------------------------------------
  column_of_the_array: assert property (@(posedge clk_i)
      v_i |-> 32'(pair_i) * 2 < C) else $error("parameters of a column that is not there");
endmodule
