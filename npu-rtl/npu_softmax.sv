// SPDX-License-Identifier: Apache-2.0
// npu_softmax: TensorFlow Lite's fixed-point softmax of a row that is read three times: largest,
// sum of exps, outputs.
//
//   distance from the largest -> table -> word of it -> product -> upper half -> shift -> output
//                                                       +-> sum
//
// exp comes from a table by distance from the largest.  The largest is found 32 elements a cycle,
// the other two passes take one.  The reciprocal of the sum is its three Newton-Raphson steps
// (gemmlowp's one_over_one_plus_x_for_x_in_0_1), on the multiplier of the last pass.
module npu_softmax (
    input  logic         clk_i, rst_ni, clear_i,
    input  logic [255:0] data_i,
    input  logic         tab_v_i,          // data_i is eight entries of the table
    input  logic [4:0]   tab_at_i,
    input  logic         v_i,              // data_i is a piece of the row
    input  logic [1:0]   pass_i,
    input  logic [5:0]   len_i,
    input  logic         last_i, au8_i, ou8_i,
    output logic         done_o,           // the piece is dealt with
    output logic         emit_o,           // outputs of a piece of the last pass
    output logic [255:0] res_o
);
  import npu_math_pkg::*;

  // 48/17 and -32/17 with 29 bits behind the point
  localparam logic signed [31:0] Start = 32'sd1515870810, Slope = -32'sd1010580540;
  localparam logic signed [31:0] One   = 32'sh20000000;

  // A step of the reciprocal is a product (operands named), its upper half, what becomes of it.
  typedef enum logic [3:0] {
    Idle, Drain0, Drain1, Normalise, Half,
    SlopeProduct, SlopeHigh, SlopeAdd, ErrorProduct, ErrorHigh, ErrorSub, StepProduct, StepHigh,
    StepAdd, Double
  } step_e;

  // What travels with an element.
  typedef struct packed {
    logic       sum, out;                  // second pass, third
    logic       last;                      // of its piece
    logic [4:0] at;                        // byte of the piece
  } element_t;

  logic [255:0]       tab [32];            // eight entries a word
  logic [255:0]       word_q;
  logic [2:0]         entry_q;
  logic [7:0]         max_q, max_d, top, key, far, y, least, flip;
  logic [5:0]         idx_q, idx_d;
  element_t           now, s1_q, s2_q, s3_q, s4_q, s5_q;
  logic signed [31:0] e_q, sum_q, sum_d, norm_q, norm_d, half_q, half_d, x_q, x_d, t_q, t_d;
  logic signed [31:0] high_q, high_d, y_q, y_d, mul_a, mul_b;
  logic signed [63:0] product_q, product_d;
  logic [255:0]       out_q;
  step_e              step_q, step_d;
  logic [1:0]         round_q, round_d;
  logic [4:0]         exp_q, exp_d;
  logic               at_end, go;
  logic [63:0][7:0]   tree;                // the larger of 2 n and 2 n + 1 in n; a piece in 32..63

  // ---- an element, or in the first pass 32 ------------------------------------------------------
  assign flip   = au8_i ? 8'd0 : 8'h80;    // order of keys is the order of values
  assign key    = data_i[{idx_q[4:0], 3'd0} +: 8] ^ flip;
  assign far    = max_q - key;
  assign at_end = idx_q + 6'd1 == len_i;
  assign go     = v_i && step_q == Idle;
  assign done_o = go && (pass_i == 0 || at_end);
  assign now    = '{sum: go && pass_i == 2'd1, out: go && pass_i == 2'd2, last: at_end,
                    at: idx_q[4:0]};
  always_comb begin
    tree = '0;
    top  = max_q;
    if (v_i && pass_i == 0) begin
      for (int i = 0; i < 32; i++) if (6'(i) < len_i) tree[32+i] = data_i[8*i +: 8] ^ flip;
      for (int i = 31; i > 0; i--) tree[i] = tree[2*i] > tree[2*i+1] ? tree[2*i] : tree[2*i+1];
      if (tree[1] > top) top = tree[1];
    end
  end
  always_comb begin
    idx_d = idx_q;
    max_d = max_q;
    if (go) begin
      max_d = pass_i == 2'd2 && at_end && last_i ? '0 : top;
      if (pass_i != 0) idx_d = at_end ? '0 : idx_q + 6'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (tab_v_i) tab[tab_at_i] <= data_i;
    if (now.sum || now.out) word_q <= tab[far[7:3]];
    if (now.sum || now.out) entry_q <= far[2:0];
    if (s1_q.sum || s1_q.out) e_q <= word_q[{entry_q, 5'd0} +: 32];
  end

  // ---- sum, and its reciprocal ------------------------------------------------------------------
  function automatic logic [4:0] leading_zeros(input logic [31:0] x);
    logic [31:0] left;
    left          = x;
    leading_zeros = '0;
    for (int s = 4; s >= 0; s--)
      if (left >> (32 - (1 << s)) == 0) begin
        left             = left << (1 << s);
        leading_zeros[s] = 1'b1;
      end
  endfunction

  // x * 2^n, saturating.
  function automatic logic signed [31:0] shl_sat(input logic signed [31:0] x, input logic [1:0] n);
    logic signed [31:0] thr;
    thr = 32'sh7fffffff >>> n;
    return x > thr ? 32'sh7fffffff : x < -thr ? 32'sh80000000 : x <<< n;
  endfunction

  // (norm + 2^31 - 1) / 2, half away from zero: norm is not negative, but where there was no sum.
  function automatic logic signed [31:0] half(input logic signed [31:0] norm);
    logic signed [33:0] s;
    s = 34'(norm) + 34'sd2147483647;
    s = s >= 0 ? s + 34'sd1 : s - 34'sd1;
    return s[32:1];
  endfunction

  always_comb begin
    sum_d = sum_q;
    if (s2_q.sum) sum_d = sum_q + round_shift(e_q, 5'd12);
    if (go && pass_i == 2'd0) sum_d = '0;
  end
  always_comb begin
    mul_a = x_q;
    mul_b = e_q;
    unique case (step_q)
      SlopeProduct: begin
        mul_a = half_q;
        mul_b = Slope;
      end
      ErrorProduct: mul_b = half_q;
      StepProduct:  mul_b = t_q;
      default: ;
    endcase
  end
  always_comb begin
    step_d  = step_q;
    round_d = round_q;
    x_d     = x_q;
    unique case (step_q)
      Idle: begin
        round_d = '0;
        if (done_o && last_i && pass_i == 2'd1) step_d = Drain0;
      end
      StepAdd: begin
        x_d     = x_q + shl_sat(high_q, 2'd2);
        round_d = round_q + 2'd1;
        step_d  = round_q == 2'd2 ? Double : ErrorProduct;
      end
      SlopeAdd: begin
        x_d    = Start + high_q;
        step_d = ErrorProduct;
      end
      Double: begin
        // a sum so large would want a shift beyond 31 bits: every output rounds to nothing
        x_d    = sum_q[31:28] != 0 ? '0 : shl_sat(x_q, 2'd1);
        step_d = Idle;
      end
      default: step_d = step_e'(step_q + 4'd1);
    endcase
  end
  always_comb begin
    norm_d    = norm_q;
    exp_d     = exp_q;
    half_d    = half_q;
    t_d       = t_q;
    product_d = product_q;
    high_d    = high_q;
    y_d       = y_q;
    if (step_q == Normalise) begin
      // 32 zeros are those of no sum at all
      norm_d = (sum_q << leading_zeros(sum_q)) - 32'sh80000000;
      exp_d  = 5'(6'd35 - (sum_q == 0 ? 6'd32 : 6'(leading_zeros(sum_q))));
    end
    if (step_q == Half) half_d = half(norm_q);
    if (step_q == ErrorSub) t_d = One - high_q;
    if (s2_q.out || step_q == SlopeProduct || step_q == ErrorProduct || step_q == StepProduct)
      product_d = 64'(mul_a) * 64'(mul_b);
    if (s3_q.out || step_q == SlopeHigh || step_q == ErrorHigh || step_q == StepHigh)
      high_d = high_half(product_q);
    if (s4_q.out) y_d = round_shift(high_q, exp_q);
  end
  always_ff @(posedge clk_i) begin
    norm_q    <= norm_d;
    exp_q     <= exp_d;
    half_q    <= half_d;
    t_q       <= t_d;
    product_q <= product_d;
    high_q    <= high_d;
    y_q       <= y_d;
    x_q       <= x_d;
  end

  // ---- outputs ----------------------------------------------------------------------------------
  assign least  = ou8_i ? 8'd0 : 8'h80;
  assign y      = clamp8(y_q, least, least, ~least, ou8_i);
  assign emit_o = s5_q.out && s5_q.last;
  always_comb begin
    res_o = out_q;
    if (s5_q.out) res_o[{s5_q.at, 3'd0} +: 8] = y;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      max_q   <= '0;
      sum_q   <= '0;
      idx_q   <= '0;
      step_q  <= Idle;
      round_q <= '0;
      s1_q    <= '0;
      s2_q    <= '0;
      s3_q    <= '0;
      s4_q    <= '0;
      s5_q    <= '0;
      out_q   <= '0;
    end else begin
      max_q   <= max_d;
      sum_q   <= sum_d;
      idx_q   <= idx_d;
      step_q  <= step_d;
      round_q <= round_d;
      s1_q    <= now;
      s2_q    <= s1_q;
      s3_q    <= s2_q;
      s4_q    <= s3_q;
      s5_q    <= s4_q;
      out_q   <= res_o;
    end
  end

  ElementInPiece: assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
      v_i && pass_i != 0 |-> idx_q < len_i);
  PassKnown: assert property (@(posedge clk_i) disable iff (!rst_ni)
      v_i |-> pass_i != 2'd3);
  MultiplierOne: assert property (@(posedge clk_i) disable iff (!rst_ni)
      s2_q.out |-> !(step_q inside {SlopeProduct, ErrorProduct, StepProduct}));
  SumComplete: assert property (@(posedge clk_i) disable iff (!rst_ni)
      step_q inside {[Normalise:Double]} |-> !(now.sum || s1_q.sum || s2_q.sum));
  OutputsAfterReciprocal: assert property (@(posedge clk_i) disable iff (!rst_ni)
      s4_q.out |-> step_q <= Normalise);
  TableOrData: assert property (@(posedge clk_i) disable iff (!rst_ni)
      !(tab_v_i && v_i));
  StateKnown: assert property (@(posedge clk_i) disable iff (!rst_ni)
      step_q inside {[Idle:Double]});
endmodule
