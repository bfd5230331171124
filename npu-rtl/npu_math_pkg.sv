// SPDX-License-Identifier: Apache-2.0
// npu_math_pkg: TensorFlow Lite's fixed-point rescaling, as its reference kernels round (high
// multiply, then shift), in steps; and clamps.
package npu_math_pkg;
  localparam int RequantCycles = 6;  // of npu_requant

  // The upper half of twice a product of two 32-bit numbers, half away from zero where it is
  // positive and towards zero where it is not, saturated: 2^31 can only come of the least number by
  // itself.
  function automatic logic signed [31:0] high_half(input logic signed [63:0] p);
    logic signed [32:0] high;
    high = p[63:31] + 33'(p[30]);
    return !high[32] && high[31] ? 32'h7fffffff : high[31:0];
  endfunction

  // x / 2^n, half away from zero.
  function automatic logic signed [31:0] round_shift(input logic signed [31:0] x,
      input logic [4:0] n);
    logic signed [32:0] shifted;           // and the bit behind the point
    logic        [31:0] lost;              // and what is behind that
    shifted = $signed({x, 1'b0}) >>> n;
    lost    = x & (((32'd1 << n) - 32'd1) >> 1);
    return shifted[32:1] + 32'(shifted[0] && (lost != 0 || !x[31]));
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
