// SPDX-License-Identifier: Apache-2.0
// npu_conv_params: the parameter table: bias, multiplier and shift of each column,
// for the four tiles that can be under way.  Two columns come at once.
module npu_conv_params
  import npu_conv_pkg::*;
#(
    parameter int C = 16
) (
    input  logic               clk_i,
    input  logic               v_i,          // parameters come: tile, first column, their bytes
    input  logic [1:0]         tid_i,
    input  logic [5:0]         col_i,
    input  logic [255:0]       data_i,
    // for the results that leave the array
    input  tag_t               tag_i [C],
    output param_t             param_o [C]   // of a result that is a tile's last
);
  localparam int PI = $clog2(4 * C);
  param_t par_q [4*C];

  always_ff @(posedge clk_i)
    if (v_i)
      for (int b = 0; b < 2; b++)
        if (32'(col_i) + b < C)        // the second may be none: then nobody looks
          par_q[PI'(32'(tid_i) * C + 32'(col_i) + b)] <=
              '{bias: data_i[128*b +: 32], mult: data_i[128*b+32 +: 32],
                shift: data_i[128*b+64 +: 7]};

  always_comb
    for (int j = 0; j < C; j++) begin
      param_o[j] = '0;
      if (tag_i[j].v && tag_i[j].last) param_o[j] = par_q[PI'(32'(tag_i[j].tid) * C + j)];
    end
endmodule
