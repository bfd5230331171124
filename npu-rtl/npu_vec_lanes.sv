// SPDX-License-Identifier: Apache-2.0
// npu_vec_lanes: ADD, MUL and RELU of 16 elements a piece: operands less their zero points, each
// scaled (ADD) or multiplied with the other (MUL); the sum or product scaled, + zero point,
// clamped.
module npu_vec_lanes
  import npu_regs_pkg::*;
  import npu_math_pkg::*;
#(
    localparam int Lanes = 16
) (
    input  logic               clk_i, rst_ni, clear_i,
    input  logic [511:0]       desc_i,     // stays for the whole operation
    input  npu_vec_pkg::op_t   op_i,
    input  logic               v_i,        // a piece:
    input  logic               second_i,   // of the second operand,
    input  logic               output_i,   // the last that an output needs
    input  logic [8*Lanes-1:0] data_i,
    output logic               v_o,
    output logic [8*Lanes-1:0] res_o       // '0 unless v_o
);
  logic signed [31:0] x_d [Lanes], x_q [Lanes], scaled [Lanes], out_x [Lanes];
  logic signed [31:0] sum_d [Lanes], sum_q [Lanes];
  logic signed [31:0] y [Lanes];
  logic [8*Lanes-1:0] first_q;              // operand A
  logic               x_v_q, x_v_d, x_second_q, scaled_v;
  logic               scaled_second_q, scaled_second_d, sum_v_q, sum_v_d;
  logic [7:0]         zp_a, zp_b;
  assign zp_a = desc_i[DESC_VZP1_BIT +: 8];
  assign zp_b = desc_i[DESC_VZP2_BIT +: 8];
  function automatic logic signed [31:0] less_zp(input logic [7:0] b, zp, input logic is_unsigned);
    return 32'(value8(b, is_unsigned)) - 32'(value8(zp, is_unsigned));
  endfunction
  always_comb begin
    for (int i = 0; i < Lanes; i++) x_d[i] = '0;
    if (v_i)
      for (int i = 0; i < Lanes; i++) begin
        x_d[i] = less_zp(data_i[8*i +: 8], second_i ? zp_b : zp_a, second_i ? op_i.bu8 : op_i.au8);
        if (op_i.add) x_d[i] = x_d[i] <<< desc_i[DESC_VLSHIFT_BIT +: 5];
        if (op_i.mul) x_d[i] = x_d[i] * less_zp(first_q[8*i +: 8], zp_a, op_i.au8);
      end
  end
  assign x_v_d           = v_i && (op_i.add || output_i);
  assign scaled_second_d = scaled_second_q ^ scaled_v;
  assign sum_v_d         = scaled_v && scaled_second_q;
  always_comb begin
    for (int i = 0; i < Lanes; i++) sum_d[i] = sum_q[i];
    if (scaled_v)
      for (int i = 0; i < Lanes; i++) sum_d[i] = scaled[i] + (scaled_second_q ? sum_q[i] : '0);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      x_v_q           <= 1'b0;
      scaled_second_q <= 1'b0;
      sum_v_q         <= 1'b0;
    end else begin
      x_v_q           <= x_v_d;
      scaled_second_q <= scaled_second_d;
      sum_v_q         <= sum_v_d;
    end
    x_second_q <= second_i;
    if (v_i) begin
      x_q     <= x_d;
      first_q <= data_i;
    end
    sum_q <= sum_d;
  end
  npu_vec_scale #(.Lanes(Lanes)) u_scale_in (
      .clk_i, .rst_ni, .clear_i, .v_i(x_v_q && op_i.add), .x_i(x_q),
      .mult_i(x_second_q ? desc_i[DESC_VMULT2_BIT +: 32] : desc_i[DESC_VMULT1_BIT +: 32]),
      .shift_i(x_second_q ? desc_i[DESC_VSHIFT2_BIT +: 7] : desc_i[DESC_VSHIFT1_BIT +: 7]),
      .v_o(scaled_v), .x_o(scaled));
  assign out_x = op_i.add ? sum_q : x_q;
  npu_vec_scale #(.Lanes(Lanes)) u_scale_out (
      .clk_i, .rst_ni, .clear_i, .v_i(op_i.add ? sum_v_q : x_v_q), .x_i(out_x),
      .mult_i(op_i.relu ? desc_i[DESC_VMULT1_BIT +: 32] : desc_i[DESC_VMULTO_BIT +: 32]),
      .shift_i(op_i.relu ? desc_i[DESC_VSHIFT1_BIT +: 7] : desc_i[DESC_VSHIFTO_BIT +: 7]),
      .v_o, .x_o(y));
  always_comb begin
    res_o = '0;
    if (v_o)
      for (int i = 0; i < Lanes; i++)
        res_o[8*i +: 8] = clamp8(y[i], desc_i[DESC_ZPO_BIT +: 8], desc_i[DESC_AMIN_BIT +: 8],
                                 desc_i[DESC_AMAX_BIT +: 8], op_i.ou8);
  end

  // ---- what always holds ------------------------------------------------------------------------
  OneOperation: assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
      v_i || x_v_q || scaled_v || sum_v_q || v_o |-> $onehot({op_i.add, op_i.mul, op_i.relu}));
  SecondLast: assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
      v_i |-> output_i == (second_i || op_i.relu));
endmodule
