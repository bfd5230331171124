// SPDX-License-Identifier: Apache-2.0
// npu_requant: a sum a cycle becomes an output byte RequantCycles later: TensorFlow Lite's fixed
// point (a high multiply, then a shift, each rounded), the same product rounded once, half away
// from zero, or ONNX's binary32 product, rounded half to even; zero point; clamp.  No stage is
// deeper than its multiplier's.
//
//   magnitude -> normalise -> multiply -> narrow -> place -> clamp
//
//   stage       x * mult * 2^(shift - 31)           x * mult, the bits of a positive binary32
//   magnitude   x to the left if shift is positive  |x|
//   normalise                                       24 bits of it, rounded, and an exponent
//   multiply    32 x 32 bits, signed                24 x 24 bits
//   narrow      upper 32 bits, rounded, saturated   24 bits, rounded
//   place       to the right, rounded               an integer, rounded, 2^30 at most; the sign
//   clamp       + zero point, not below lo, not above hi; lo where these cross
//
// once_i: a shift to the left saturates; narrow keeps the bit behind the point and whether any is
// set behind that one, instead of rounding.
module npu_requant (
    input  logic               clk_i, rst_ni,
    input  logic               clear_i,      // what is under way never comes out
    input  logic               v_i,
    input  logic signed [31:0] x_i,
    input  logic        [31:0] mult_i,
    input  logic signed [6:0]  shift_i,      // above 0 to the left
    // the same as long as anything is under way
    input  logic               float_i,
    input  logic               once_i,       // not with float_i: rounded once
    input  logic        [7:0]  zp_i, lo_i, hi_i,
    input  logic               unsigned_i,   // these three and y_o
    output logic               v_o,
    output logic signed [31:0] rescaled_o,   // without zero point and clamp
    output logic        [7:0]  y_o
);
  import npu_math_pkg::*;
  typedef struct packed {
    logic               neg, zero;         // x is, binary32 only
    logic [31:0]        x, mult;
    logic [4:0]         right;
  } magnitude_t;
  typedef struct packed {
    logic               neg, zero;
    logic [31:0]        a, b;
    logic signed [9:0]  e;                 // binary32: a * b * 2^e
    logic [4:0]         right;
  } normal_t;
  typedef struct packed {
    logic               neg, zero;
    logic signed [63:0] p;
    logic signed [9:0]  e;
    logic [4:0]         right;
  } product_t;
  typedef struct packed {
    logic               neg, zero;
    logic signed [31:0] x;                 // binary32: 25 bits
    logic               half, rest;        // once: behind x
    logic signed [9:0]  e;
    logic [4:0]         right;
  } narrow_t;

  function automatic magnitude_t magnitude(input logic signed [31:0] x, input logic [31:0] mult,
                                           input logic signed [6:0] shift, input logic is_float,
                                           input logic is_once);
    magnitude_t  r;
    logic [31:0] lost;                     // bits that are not the sign's, beyond 31
    r.neg   = x < 0;
    r.zero  = x == 0;
    r.mult  = mult;
    r.right = shift > 0 ? '0 : 5'(-shift);
    if (is_float) r.x = x < 0 ? -x : x;
    else r.x = shift > 0 ? x << shift[4:0] : x;
    lost = (x ^ {32{x[31]}}) >> (5'd31 - shift[4:0]);
    if (is_once && !is_float && shift > 0 && lost != 0) r.x = {x[31], {31{!x[31]}}};
    return r;
  endfunction

  function automatic normal_t normalise(input magnitude_t i, input logic is_float);
    normal_t     r;
    logic [4:0]  zeros;                    // above the first one
    logic [31:0] left;
    logic [24:0] m;
    r = '{neg: i.neg, zero: i.zero, a: i.x, b: i.mult, e: '0, right: i.right};
    if (is_float) begin
      zeros = '0;
      left  = i.x;
      for (int s = 4; s >= 0; s--)
        if (left >> (32 - (1 << s)) == 0) begin
          left     = left << (1 << s);
          zeros[s] = 1'b1;
        end
      m   = 25'(left[31:8]) + 25'(left[7] && (left[8] || left[6:0] != 0));
      r.a = m[24] ? 32'h00800000 : 32'(m);
      r.b = {8'd0, 1'b1, i.mult[22:0]};
      r.e = 10'sd8 - 10'(zeros) + 10'(m[24]) + 10'(i.mult[30:23]) - 10'sd150;
    end
    return r;
  endfunction

  function automatic product_t multiply(input normal_t i);
    return '{neg: i.neg, zero: i.zero, p: 64'(signed'(i.a)) * 64'(signed'(i.b)), e: i.e,
             right: i.right};
  endfunction

  function automatic narrow_t narrow(input product_t i, input logic is_float,
                                     input logic is_once);
    narrow_t            r;
    logic signed [32:0] high;
    logic [46:0]        p;                 // the product's first one is at 46
    r    = '{neg: i.neg, zero: i.zero, x: '0, half: 1'b0, rest: 1'b0, e: i.e, right: i.right};
    high = i.p[63:31] + 33'(i.p[30] && !is_once);
    p    = i.p[47] ? {i.p[47:2], i.p[1] | i.p[0]} : i.p[46:0];
    if (is_float) begin
      r.x = 32'(p[46:23]) + 32'(p[22] && (p[23] || p[21:0] != 0));
      r.e = i.e + (i.p[47] ? 10'sd24 : 10'sd23);
    end else begin
      // 2^31 can only come of the least number by itself
      r.x    = !high[32] && high[31] ? 32'h7fffffff : high[31:0];
      r.half = is_once && i.p[30];
      r.rest = is_once && i.p[29:0] != 0;
    end
    return r;
  endfunction

  function automatic logic signed [31:0] place(input narrow_t i, input logic is_float);
    logic [4:0]         right;
    logic signed [32:0] shifted;           // and the bit behind the point
    logic [31:0]        lost, r;
    logic               above, sticky;
    // binary32: 25 bits, so that a scale near 0 makes 0
    right   = !is_float ? i.right : i.e >= 0 ? 5'd0 : i.e < -10'sd31 ? 5'd31 : 5'(-i.e);
    shifted = $signed({i.x, i.half}) >>> right;
    lost    = i.x & (((32'd1 << right) - 32'd1) >> 1);
    sticky  = lost != 0 || i.rest || (i.half && right != 0);
    above   = shifted[0] && (is_float ? sticky || shifted[1] : sticky || !i.x[31]);
    r       = shifted[32:1] + 32'(above);
    if (!is_float) return r;
    if (i.e >= 10'sd7) r = 32'h40000000;
    else if (i.e > 0) r = r << i.e[2:0];
    if (i.zero) r = '0;
    return i.neg ? -r : r;
  endfunction

  function automatic logic [7:0] clamp(input logic signed [31:0] x, input logic [7:0] zp, lo, hi,
                                       input logic is_unsigned);
    logic signed [31:0] v, l, h;
    v = x + 32'(value8(zp, is_unsigned));
    l = 32'(value8(lo, is_unsigned));
    h = 32'(value8(hi, is_unsigned));
    return v < l || h < l ? lo : v > h ? hi : v[7:0];
  endfunction

  // ---- the pipeline: a stage without a sum stands still -----------------------------------------
  magnitude_t         magnitude_q, magnitude_d;
  normal_t            normal_q, normal_d;
  product_t           product_q, product_d;
  narrow_t            narrow_q, narrow_d;
  logic signed [31:0] placed_q, placed_d, rescaled_q, rescaled_d;
  logic [7:0]         y_q, y_d;
  logic [RequantCycles-1:0] v_d, v_q;      // a bit a stage

  assign v_d = clear_i ? '0 : {v_q[RequantCycles-2:0], v_i};
  always_ff @(posedge clk_i) v_q <= rst_ni ? v_d : '0;

  always_comb begin
    magnitude_d = magnitude_q;
    normal_d    = normal_q;
    product_d   = product_q;
    narrow_d    = narrow_q;
    placed_d    = placed_q;
    rescaled_d  = rescaled_q;
    y_d         = y_q;
    if (v_i) magnitude_d = magnitude(x_i, mult_i, shift_i, float_i, once_i);
    if (v_q[0]) normal_d = normalise(magnitude_q, float_i);
    if (v_q[1]) product_d = multiply(normal_q);
    if (v_q[2]) narrow_d = narrow(product_q, float_i, once_i);
    if (v_q[3]) placed_d = place(narrow_q, float_i);
    if (v_q[4]) begin
      rescaled_d = placed_q;
      y_d        = clamp(placed_q, zp_i, lo_i, hi_i, unsigned_i);
    end
  end
  always_ff @(posedge clk_i) begin
    magnitude_q <= magnitude_d;
    normal_q    <= normal_d;
    product_q   <= product_d;
    narrow_q    <= narrow_d;
    placed_q    <= placed_d;
    rescaled_q  <= rescaled_d;
    y_q         <= y_d;
  end
  assign v_o        = v_q[RequantCycles-1];
  assign rescaled_o = rescaled_q;
  assign y_o        = y_q;

  mode_held: assert property (@(posedge clk_i) disable iff (!rst_ni)
      v_q[RequantCycles-2:0] != 0
      |-> $stable({float_i, once_i, zp_i, lo_i, hi_i, unsigned_i}))
      else $error("changed under way");
endmodule
