// SPDX-License-Identifier: Apache-2.0
// npu_conv_from: where an operation of which some outputs are stored goes on: the first window of
// the panel that it is in, the first input row that it needs, the addresses of that row and of the
// panel's first output.  The panel's first row is divided by the outputs of a line, a bit a cycle;
// and the sums' k by a pixel's channels, and that by the kernel's columns.  The same of a vector
// operation's first row, which pools divide alone.
module npu_conv_from
  import npu_conv_pkg::*;
(
    input  logic         clk_i, rst_ni,
    input  logic         start_i,          // begin with progress_i
    input  progress_t    progress_i,
    input  logic [511:0] desc_i,           // until done_o
    output logic         done_o,
    output from_t        from_o,
    output npu_vec_pkg::from_t vec_o
);
  import npu_regs_pkg::*;
  localparam int Bits = 20;

  progress_t   at_q;
  logic [4:0]  left_q, left_d;             // bits to go
  logic [Bits-1:0] bits_q, bits_d;
  logic [15:0] ox_q, ox_d;                 // of the bits so far: remainder,
  logic [23:0] y_q, y_d;                   // quotient in input rows,
  logic [31:0] a_q, a_d, d_q, d_d;         // in bytes of input; the bits in bytes of output
  logic [31:0] b_q, b_d;                   // and of B

  logic [Bits-1:0] k_q, k_d;
  logic [15:0] c_q, c_d;                   // remainders
  logic [7:0]  kx_q, kx_d, ky_q, ky_d;

  logic        rows;                       // input rows are output rows
  logic [15:0] kcin;
  logic [7:0]  kw;
  logic [15:0] ow, w;
  logic [19:0] h;
  logic [7:0]  pt;
  logic [3:0]  sy;
  logic [31:0] lda, ldd;
  assign rows = desc_i[DESC_OPCODE_BIT +: 8] == 8'(OP_GEMM) ||
      (desc_i[DESC_OPCODE_BIT +: 8] == 8'(OP_VEC)
       && desc_i[DESC_VOP_BIT +: 8] != 8'(VOP_MAXPOOL)
       && desc_i[DESC_VOP_BIT +: 8] != 8'(VOP_AVGPOOL));
  assign ow   = rows ? 16'd1 : desc_i[DESC_OW_BIT +: 16];
  assign w    = rows ? 16'd1 : desc_i[DESC_W_BIT +: 16];
  assign h    = rows ? desc_i[DESC_DM_BIT +: 20] : w == 0 ? '0 : 20'(desc_i[DESC_H_BIT +: 16]);
  assign pt   = rows ? 8'd0 : desc_i[DESC_PT_BIT +: 8];
  assign sy   = rows ? 4'd1 : desc_i[DESC_SY_BIT +: 4];
  assign kw   = rows ? 8'd1 : desc_i[DESC_KW_BIT +: 8];
  assign kcin = desc_i[DESC_F_GROUP_BIT] ? desc_i[DESC_GC_BIT +: 16] : desc_i[DESC_CIN_BIT +: 16];
  assign lda  = desc_i[DESC_LDA_BIT +: 32];
  assign ldd  = desc_i[DESC_LDD_BIT +: 32];

  logic [16:0] rest;
  logic        one;                        // the quotient's next bit
  assign rest = {ox_q, bits_q[Bits-1]};
  assign one  = rest >= 17'(ow);

  logic [16:0] c;
  logic [8:0]  kx;
  logic        pixel, line;                // quotients' next bits
  assign c     = {c_q, k_q[Bits-1]};
  assign pixel = c >= 17'(kcin);
  assign kx    = {kx_q, pixel};
  assign line  = kx >= 9'(kw);

  always_comb begin
    left_d = left_q;
    bits_d = bits_q;
    k_d    = k_q;
    {c_d, kx_d, ky_d} = {c_q, kx_q, ky_q};
    ox_d   = ox_q;
    y_d    = y_q;
    a_d    = a_q;
    d_d    = d_q;
    b_d    = b_q;
    if (start_i) begin
      left_d = 5'(Bits);
      bits_d = progress_i.m;
      k_d    = Bits'(progress_i.sums.k);
      {c_d, kx_d, ky_d} = '0;
      ox_d   = '0;
      y_d    = '0;
      a_d    = '0;
      d_d    = '0;
      b_d    = '0;
    end else if (left_q != 0) begin
      left_d = left_q - 5'd1;
      bits_d = bits_q << 1;
      k_d    = k_q << 1;
      c_d    = 16'(pixel ? c - 17'(kcin) : c);
      kx_d   = 8'(line ? kx - 9'(kw) : kx);
      ky_d   = {ky_q[6:0], line};
      ox_d   = 16'(one ? rest - 17'(ow) : rest);
      y_d    = (y_q << 1) + (one ? 24'(sy) : '0);
      a_d    = (a_q << 1) + (one ? 32'(sy) * lda : '0);
      d_d    = (d_q << 1) + (bits_q[Bits-1] ? ldd : '0);
      b_d    = (b_q << 1) + (bits_q[Bits-1] ? desc_i[DESC_VLDB_BIT +: 32] : '0);
    end
  end

  always_ff @(posedge clk_i) begin
    left_q <= rst_ni ? left_d : '0;
    if (start_i) at_q <= progress_i;
    bits_q <= bits_d;
    k_q    <= k_d;
    c_q    <= c_d;
    kx_q   <= kx_d;
    ky_q   <= ky_d;
    ox_q   <= ox_d;
    y_q    <= y_d;
    a_q    <= a_d;
    d_q    <= d_d;
    b_q    <= b_d;
  end
  assign done_o = left_q == 0;

  // Above the image there is nothing to load, below it nothing more.
  logic above, below;
  assign above = y_q < 24'(pt);
  assign below = !above && y_q - 24'(pt) >= 24'(h);
  always_comb begin
    from_o.at     = at_q;
    from_o.ox     = ox_q;
    {from_o.c, from_o.kx, from_o.ky} = {c_q, kx_q, ky_q};
    from_o.iy     = below ? 21'(h) : 21'(y_q) - 21'(pt);
    from_o.row    = above ? '0 : below ? h : 20'(y_q) - 20'(pt);
    from_o.addr_a = desc_i[DESC_ADDR_A_BIT +: 32] + (above ? '0 : a_q - 32'(pt) * lda);
    from_o.addr_m = desc_i[DESC_ADDR_D_BIT +: 32] + d_q;
  end
  assign vec_o = '{m: at_q.m, n: at_q.n, ox: ox_q, iy: from_o.iy, a: a_q, b: b_q, d: d_q};

  // ---- what always holds ------------------------------------------------------------------------
  BitsLeft: assert property (@(posedge clk_i) disable iff (!rst_ni) left_q <= 5'(Bits));
  // Remainders stay below what they are divided by.
  InLine: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(ox_q < ow) && $stable(ow) |-> ox_q < ow);
  InKernel: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(c_q < kcin && kx_q < kw) && $stable({kcin, kw})
      |-> c_q < kcin && kx_q < kw);
endmodule
