// SPDX-License-Identifier: Apache-2.0
// npu_vec_scale: a row of numbers a cycle, each times mult * 2^(shift - 31) as TensorFlow Lite's
// reference kernels round it, four cycles later: shift to the left, multiply, upper half rounded,
// shift to the right rounded.
module npu_vec_scale #(
    parameter int unsigned Lanes = 16
) (
    input  logic               clk_i, rst_ni,
    input  logic               clear_i,      // what is under way never comes out
    input  logic               v_i,
    input  logic signed [31:0] x_i [Lanes],
    input  logic signed [31:0] mult_i,
    input  logic signed [6:0]  shift_i,      // above 0 to the left
    output logic               v_o,
    output logic signed [31:0] x_o [Lanes]
);
  if (Lanes < 1 || Lanes > 32) $fatal(1, "npu_vec_scale: Lanes is %0d, not 1..32", Lanes);
  import npu_math_pkg::*;

  logic signed [31:0] left_q [Lanes], high_q [Lanes], y_q [Lanes];
  logic signed [31:0] left_d [Lanes], high_d [Lanes], y_d [Lanes];
  logic signed [63:0] product_q [Lanes], product_d [Lanes];
  logic signed [31:0] mult_q;
  logic        [4:0]  right_q [3], right_d;  // of the three stages
  logic        [3:0]  v_q, v_d;

  assign v_d = clear_i ? '0 : {v_q[2:0], v_i};
  always_ff @(posedge clk_i) v_q <= rst_ni ? v_d : '0;

  assign right_d = shift_i > 0 ? 5'd0 : 5'(-shift_i);
  always_comb
    for (int i = 0; i < int'(Lanes); i++) begin
      left_d[i]    = left_q[i];
      product_d[i] = product_q[i];
      high_d[i]    = high_q[i];
      y_d[i]       = y_q[i];
      if (v_i) left_d[i] = shift_i > 0 ? x_i[i] <<< shift_i[4:0] : x_i[i];
      if (v_q[0]) product_d[i] = 64'(left_q[i]) * 64'(mult_q);
      if (v_q[1]) high_d[i] = high_half(product_q[i]);
      if (v_q[2]) y_d[i] = round_shift(high_q[i], right_q[2]);
    end
  always_ff @(posedge clk_i) begin
    left_q    <= left_d;
    product_q <= product_d;
    high_q    <= high_d;
    y_q       <= y_d;
    if (v_i) begin
      mult_q     <= mult_i;
      right_q[0] <= right_d;
    end
    if (v_q[0]) right_q[1] <= right_q[0];
    if (v_q[1]) right_q[2] <= right_q[1];
  end
  assign v_o = v_q[3];
  assign x_o = y_q;

  NothingAfterClear: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(clear_i) |-> v_q == '0);
endmodule
