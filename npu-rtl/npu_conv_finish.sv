// SPDX-License-Identifier: Apache-2.0
// npu_conv_finish: rows of complete sums become rows of outputs: + bias, then int32 as they are, or
// through a requantizer a column.
module npu_conv_finish
  import npu_conv_pkg::*;
#(
    parameter int C = 16
) (
    input  logic            clk_i, rst_ni,
    input  logic            clear_i,       // what is under way never comes out
    input  conv_op_t        op_i,          // of the row that comes
    input  dim_t            w_i,
    input  logic            v_i,
    input  logic [32*C-1:0] sum_i,
    input  param_t          param_i [C],
    output logic            v_o,
    output logic [32*C-1:0] row_o          // a byte a column in the lower quarter, or all int32
);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_finish: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  logic [32*C-1:0] biased;
  logic [8*C-1:0]  y;
  logic [C-1:0]    y_v;

  for (genvar j = 0; j < C; j++) begin : g_col
    // noparam: the operation has one multiplier and shift, and no bias
    param_t      p;
    logic [31:0] unused;
    always_comb begin
      p                  = '0;
      biased[32*j +: 32] = '0;
      if (v_i) begin
        p = op_i.noparam ? '{bias: '0, mult: op_i.qmult, shift: op_i.qshift} : param_i[j];
        biased[32*j +: 32] = sum_i[32*j +: 32] + p.bias;
      end
    end
    npu_requant u_requant (
        .clk_i, .rst_ni, .clear_i, .v_i(v_i && !op_i.out32 && dim_t'(j) < w_i),
        .x_i(biased[32*j +: 32]), .mult_i(p.mult), .shift_i(p.shift), .float_i(op_i.onnx),
        .once_i(op_i.once), .zp_i(op_i.zpo), .lo_i(op_i.amin), .hi_i(op_i.amax),
        .unsigned_i(op_i.d_u8), .v_o(y_v[j]), .rescaled_o(unused), .y_o(y[8*j +: 8]));
  end

  assign v_o   = y_v != 0 || (v_i && op_i.out32);
  assign row_o = y_v != 0 ? {{24 * C{1'b0}}, y} : biased;

  // ---- what always holds ------------------------------------------------------------------------
  one_row: assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
      y_v != 0 |-> !(v_i && op_i.out32)) else $error("two rows of outputs in one cycle");
  whole_row: assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
      (y_v & (y_v + C'(1))) == '0) else $error("a row of outputs has a hole");
endmodule
