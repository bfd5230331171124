// SPDX-License-Identifier: Apache-2.0
// npu_conv_acc: the sums of a tile, a bank a column; the last fold's go through a requantizer a
// column instead of back.
module npu_conv_acc
  import npu_conv_pkg::*;
#(
    parameter int C = 16, DepthLog2 = 9,
    localparam int D = 1 << DepthLog2, AI = $clog2(C * D)
) (
    input  logic               clk_i,
    input  conv_op_t           op_i,
    input  tag_t               tag_i [C],   // of the sums that leave the array
    input  logic signed [31:0] p_i [C],
    input  param_t             param_i [C],
    output result_t            result_o [C]
);
  logic signed [31:0] acc [C*D], sum [C];

  function automatic logic [AI-1:0] place(input int j, input row_t t);
    return AI'(j * D) + AI'(DepthLog2'(t));
  endfunction

  // noparam: the operation has one multiplier and shift, and no bias
  function automatic logic [31:0] finish(input logic signed [31:0] x, input param_t own);
    param_t             p;
    logic signed [31:0] b, v;
    p = op_i.noparam ? '{bias: '0, mult: op_i.qmult, shift: op_i.qshift} : own;
    b = x + p.bias;
    if (op_i.out32) return b;
    v = op_i.onnx ? npu_math_pkg::requant_float(b, p.mult[30:0])
                  : npu_math_pkg::requant(b, p.mult, p.shift);
    return {24'd0, npu_math_pkg::clamp8(v, op_i.zpo, op_i.amin, op_i.amax, op_i.d_u8)};
  endfunction

  always_comb
    for (int j = 0; j < C; j++) begin
      sum[j]      = '0;
      result_o[j] = '0;
      if (tag_i[j].v) begin
        sum[j] = p_i[j] + (tag_i[j].first ? '0 : acc[place(j, tag_i[j].t)]);
        if (tag_i[j].last)
          result_o[j] = '{v: 1'b1, tid: tag_i[j].tid, t: tag_i[j].t,
                          data: finish(sum[j], param_i[j])};
      end
    end

  /* verilator lint_off BLKSEQ */
  // read by this block's sums alone, and never in the cycle it is written
  always_ff @(posedge clk_i)
    for (int j = 0; j < C; j++)
      if (tag_i[j].v && !tag_i[j].last) acc[place(j, tag_i[j].t)] = sum[j];
  /* verilator lint_on BLKSEQ */
endmodule
