// SPDX-License-Identifier: Apache-2.0
// npu_math_pkg: TensorFlow Lite's fixed-point rescaling, as its reference kernels round (high multiply, then shift).
package npu_math_pkg;
  // MultiplyByQuantizedMultiplier: x * mult * 2^(shift - 31); shift > 0 is to the left.
  function automatic logic signed [31:0] requant(input logic signed [31:0] x, input logic signed [31:0] mult,
                                                 input logic signed [6:0] shift);
    logic signed [31:0] xs, r, mask, rem, thr;
    logic signed [63:0] ab;
    logic [5:0] right;
    xs    = shift > 0 ? x <<< shift[4:0] : x;
    right = shift > 0 ? 6'd0 : 6'(-shift);
    ab    = 64'(xs) * 64'(mult);
    // saturating rounding doubling high multiply: half away from zero, division truncates
    ab    = ab + (ab >= 0 ? 64'sd1073741824 : -64'sd1073741823);
    r     = ab >= 0 ? 32'(ab >>> 31) : -32'((-ab) >>> 31);
    if (xs == 32'sh80000000 && mult == 32'sh80000000) r = 32'sh7fffffff;
    mask  = 32'((33'd1 << right) - 33'd1);
    rem   = r & mask;
    thr   = $signed({1'b0, mask[31:1]}) + (r < 0 ? 32'sd1 : 32'sd0);
    return (r >>> right) + (rem > thr ? 32'sd1 : 32'sd0);
  endfunction

  function automatic logic [7:0] clamp8(input logic signed [31:0] x, input logic [7:0] zp, lo, hi,
                                        input logic is_unsigned);
    logic signed [31:0] v, l, h;
    v = x + 32'(signed'({!is_unsigned & zp[7], zp}));
    l = 32'(signed'({!is_unsigned & lo[7], lo}));
    h = 32'(signed'({!is_unsigned & hi[7], hi}));
    return v < l ? lo : v > h ? hi : v[7:0];
  endfunction
endpackage
