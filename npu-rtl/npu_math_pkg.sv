// SPDX-License-Identifier: Apache-2.0
// npu_math_pkg: how sums become outputs: TensorFlow Lite's fixed-point rescaling, as its reference kernels round (high
// multiply, then shift), and ONNX's (a binary32 product, rounded half to even).
package npu_math_pkg;
  // The upper half of twice a product of two 32-bit numbers, half away from zero where it is positive and towards
  // zero where it is not, saturated: 2^31 can only come of the least number by itself.
  function automatic logic signed [31:0] high_half(input logic signed [63:0] p);
    logic signed [32:0] high;
    high = p[63:31] + 33'(p[30]);
    return !high[32] && high[31] ? 32'h7fffffff : high[31:0];
  endfunction

  // Saturating rounding doubling high multiply.
  function automatic logic signed [31:0] high_mul(input logic signed [31:0] a, input logic signed [31:0] b);
    return high_half(64'(a) * 64'(b));
  endfunction

  // x / 2^n, half away from zero.
  function automatic logic signed [31:0] round_shift(input logic signed [31:0] x, input logic [4:0] n);
    logic signed [32:0] shifted;           // and the bit behind the point
    logic        [31:0] lost;              // and what is behind that
    shifted = $signed({x, 1'b0}) >>> n;
    lost    = x & (((32'd1 << n) - 32'd1) >> 1);
    return shifted[32:1] + 32'(shifted[0] && (lost != 0 || !x[31]));
  endfunction

  // MultiplyByQuantizedMultiplier: x * mult * 2^(shift - 31); shift > 0 is to the left.
  function automatic logic signed [31:0] requant(input logic signed [31:0] x, input logic signed [31:0] mult,
                                                 input logic signed [6:0] shift);
    return round_shift(high_mul(shift > 0 ? x <<< shift[4:0] : x, mult), shift > 0 ? 5'd0 : 5'(-shift));
  endfunction

  // ONNX: float(x) * scale, both roundings to nearest even, as an integer of at most +-2^30.  Scale is taken as positive;
  // one without an exponent counts as 0.
  function automatic logic signed [31:0] requant_float(input logic signed [31:0] x, input logic [30:0] scale);
    logic [31:0] mag, r;
    logic [24:0] m;                       // float(|x|): m * 2^e, 24 bits and a carry
    logic [47:0] p;
    logic signed [9:0] e, right;
    logic [4:0]  msb, drop;
    logic        half, low;
    mag = x < 0 ? -x : x;
    if (mag == 0 || scale[30:23] == 0) return '0;
    msb = '0;
    for (int i = 1; i < 32; i++) if (mag[i]) msb = 5'(i);
    if (msb <= 5'd23) m = 25'(mag << (5'd23 - msb));
    else begin
      drop = msb - 5'd23;
      m    = 25'(mag >> drop);
      half = mag[5'(drop - 5'd1)];
      low  = (mag & ((32'd1 << (drop - 5'd1)) - 32'd1)) != 0;
      if (half && (low || m[0])) m = m + 25'd1;
    end
    e = 10'(msb) - 10'sd23;
    // product of two numbers of 24 bits: 47 or 48 bits (49 where the first was carried to 2^24), rounded to 24
    if (m[24]) begin
      m = m >> 1;
      e = e + 10'sd1;
    end
    p    = 48'(m[23:0]) * 48'({1'b1, scale[22:0]});
    drop = p[47] ? 5'd24 : 5'd23;
    e    = e + 10'(scale[30:23]) - 10'sd150 + 10'(drop);
    m    = 25'(p >> drop);
    half = p[6'(drop) - 6'd1];
    low  = (p & ((48'd1 << (drop - 5'd1)) - 48'd1)) != 0;
    if (half && (low || m[0])) m = m + 25'd1;
    // to an integer
    right = -e;
    if (e >= 10'sd7) r = 32'h40000000;
    else if (e >= 0) r = 32'(m) << e[2:0];
    else if (right > 10'sd25) r = '0;
    else begin
      r    = 32'(m) >> right[4:0];
      half = m[5'(right) - 5'd1];
      low  = (m & ((25'd1 << (right[4:0] - 5'd1)) - 25'd1)) != 0;
      if (half && (low || r[0])) r = r + 32'd1;
    end
    if (r > 32'h40000000) r = 32'h40000000;
    return x < 0 ? -r : r;
  endfunction

  // A byte's value, 9 bits.
  function automatic logic signed [8:0] value8(input logic [7:0] b, input logic is_unsigned);
    return {!is_unsigned & b[7], b};
  endfunction

  function automatic logic [7:0] clamp8(input logic signed [31:0] x, input logic [7:0] zp, lo, hi,
                                        input logic is_unsigned);
    logic signed [31:0] v, l, h;
    v = x + 32'(value8(zp, is_unsigned));
    l = 32'(value8(lo, is_unsigned));
    h = 32'(value8(hi, is_unsigned));
    return v < l ? lo : v > h ? hi : v[7:0];
  endfunction
endpackage
