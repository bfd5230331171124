// SPDX-License-Identifier: Apache-2.0
// npu_softmax: TensorFlow Lite's fixed-point softmax of a row that is read three times: largest, sum of exps, outputs.
//
// exp comes from a table by distance from the largest.  The reciprocal of the sum is its three Newton-Raphson steps
// (gemmlowp's one_over_one_plus_x_for_x_in_0_1), a multiplication a cycle.  The largest is found 32 elements a cycle, the
// other two passes take one.
module npu_softmax (
    input  logic         clk_i, rst_ni, clear_i,
    input  logic [255:0] data_i,
    input  logic         tab_v_i,          // data_i is eight entries of the table
    input  logic [4:0]   tab_at_i,
    input  logic         v_i,              // data_i is a piece of the row
    input  logic [1:0]   pass_i,
    input  logic [5:0]   len_i,
    input  logic         last_i, au8_i, ou8_i, room_i,
    output logic         done_o,           // the piece is dealt with
    output logic         emit_o,           // and these are its outputs
    output logic [255:0] res_o
);
  import npu_math_pkg::*;

  logic signed [31:0] tab [256];
  logic [7:0]         max_q, top, key;     // order of keys is the order of values
  logic [5:0]         idx_q;
  logic signed [31:0] sum_q, half_q, x_q, t_q, e;
  logic [255:0]       out_q;
  logic [3:0]         step_q;              // of the reciprocal; 0: none under way
  logic [4:0]         exp_q;
  logic               at_end, go;
  logic [7:0]         flip, y;

  // x * 2^n, saturating.
  function automatic logic signed [31:0] shl_sat(input logic signed [31:0] x, input logic [1:0] n);
    logic signed [31:0] thr;
    thr = 32'sh7fffffff >>> n;
    return x > thr ? 32'sh7fffffff : x < -thr ? 32'sh80000000 : x <<< n;
  endfunction

  assign flip = au8_i ? 8'd0 : 8'h80;
  always_comb begin
    top = max_q;
    if (v_i && pass_i == 0)
      for (int i = 0; i < 32; i++)
        if (6'(i) < len_i && (data_i[8*i +: 8] ^ flip) > top) top = data_i[8*i +: 8] ^ flip;
  end
  assign key    = data_i[{idx_q[4:0], 3'd0} +: 8] ^ flip;
  assign e      = tab[max_q - key];
  assign at_end = idx_q + 6'd1 == len_i;
  assign go     = v_i && step_q == 0 && (pass_i != 2'd2 || !at_end || room_i);
  assign done_o = go && (pass_i == 0 || at_end);
  assign emit_o = done_o && pass_i == 2'd2;
  assign y      = clamp8(round_shift(high_mul(x_q, e), exp_q), ou8_i ? 8'd0 : 8'h80, ou8_i ? 8'd0 : 8'h80,
                         ou8_i ? 8'hff : 8'h7f, ou8_i);
  always_comb begin
    res_o = out_q;
    res_o[{idx_q[4:0], 3'd0} +: 8] = y;
  end

  logic [5:0]         zeros;               // in front of the sum's first one
  logic signed [31:0] a;
  logic signed [33:0] s;
  always_comb begin
    zeros = 6'd32;
    for (int i = 0; i < 32; i++) if (sum_q[i]) zeros = 6'(31 - i);
    a = (sum_q << zeros[4:0]) - 32'sh80000000;
    s = 34'(a) + 34'sd2147483647;
  end

  always_ff @(posedge clk_i) begin
    if (tab_v_i) for (int i = 0; i < 8; i++) tab[{tab_at_i, 3'(i)}] <= data_i[32*i +: 32];
    if (go) begin
      max_q <= top;
      if (pass_i != 0) idx_q <= at_end ? '0 : idx_q + 6'd1;
      if (pass_i == 2'd1) begin
        sum_q <= sum_q + round_shift(e, 5'd12);
        if (done_o && last_i) step_q <= 4'd1;
      end
      if (pass_i == 2'd2) begin
        out_q <= res_o;
        if (done_o && last_i) begin
          max_q <= '0;
          sum_q <= '0;
        end
      end
    end
    unique case (step_q)
      4'd0: ;
      4'd1: begin
        half_q <= 32'((s >= 0 ? s + 34'sd1 : s - 34'sd1) / 34'sd2);
        exp_q  <= 5'(6'd35 - zeros);
        step_q <= 4'd2;
      end
      4'd2: begin
        x_q    <= 32'sd1515870810 + high_mul(half_q, -32'sd1010580540);
        step_q <= 4'd3;
      end
      4'd3, 4'd5, 4'd7: begin
        t_q    <= high_mul(half_q, x_q);
        step_q <= step_q + 4'd1;
      end
      4'd4, 4'd6, 4'd8: begin
        x_q    <= x_q + shl_sat(high_mul(x_q, 32'sh20000000 - t_q), 2'd2);
        step_q <= step_q + 4'd1;
      end
      default: begin
        // a sum so large would want a shift beyond 31 bits: every output rounds to nothing
        x_q    <= sum_q[31:28] != 0 ? '0 : shl_sat(x_q, 2'd1);
        step_q <= '0;
      end
    endcase
    if (clear_i || !rst_ni) begin
      max_q  <= '0;
      sum_q  <= '0;
      idx_q  <= '0;
      step_q <= '0;
    end
  end
endmodule
