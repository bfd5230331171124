// SPDX-License-Identifier: Apache-2.0
// npu_check: whether the machine can do what a descriptor says, from its fields alone.  Everything
// behind it relies on that; npu_golden_check is the same in C.  Combinational: npu_slot keeps the
// answer, so that it has a cycle of its own.
module npu_check (
    input  logic         v_i,
    input  logic [511:0] desc_i,           // with v_i
    output logic [3:0]   kind_o,           // FAULT_NONE, FAULT_OPCODE or FAULT_FIELD
    output logic [3:0]   word_o            // of FAULT_FIELD: the lowest with a field that is wrong
);
  import npu_regs_pkg::*;
  import npu_math_pkg::*;
  // rows may begin and end anywhere in a line
  localparam int Room = (1 << npu_pkg::SpadLog2) - 128;
  localparam int Depth = 1 << npu_pkg::DepthLog2;

  logic        known, gemm, conv, array, vec, pool, group, out32, float_q, own_q, clamped;
  logic        ou8, image, cut;
  logic [3:0]  kcut;
  logic [31:0] part;
  logic [7:0]  op, vop, kh, kw, pt, pl;
  logic [3:0]  sy, sx, dy, dx;
  logic [15:0] ow, panel, cin, gc, depth, w, pix;
  logic [19:0] m, h, cols;
  logic [31:0] lda, row_bytes;
  logic [17:0] sps;
  logic [15:0] bad;                        // words with a field that is wrong

  // a shift that can be done in 32 bits
  function automatic logic shifts(input logic signed [7:0] n);
    return n >= -8'sd31 && n <= 8'sd30;
  endfunction

  always_comb begin
    op        = desc_i[DESC_OPCODE_BIT +: 8];
    vop       = desc_i[DESC_VOP_BIT +: 8];
    gemm      = op == 8'(OP_GEMM);
    conv      = op == 8'(OP_CONV);
    vec       = op == 8'(OP_VEC);
    array     = gemm || conv;
    known     = op <= 8'(OP_TIMESTAMP) && !(vec && vop > 8'(VOP_SOFTMAX));
    pool      = vec && (vop == 8'(VOP_MAXPOOL) || vop == 8'(VOP_AVGPOOL));
    group     = array && desc_i[DESC_F_GROUP_BIT];
    out32     = desc_i[DESC_F_OUT32_BIT];
    ou8       = desc_i[DESC_F_OU8_BIT];
    float_q   = desc_i[DESC_F_FLOAT_BIT];
    own_q     = array && desc_i[DESC_F_NOPARAM_BIT] && !out32 && !float_q;
    clamped   = (array && !out32) || pool
                || (vec && (vop == 8'(VOP_ADD) || vop == 8'(VOP_MUL) || vop == 8'(VOP_RELU)));
    m         = desc_i[DESC_DM_BIT +: 20];
    ow        = gemm ? 16'd1 : desc_i[DESC_OW_BIT +: 16];    // VCOLS has the same place
    cols      = m < 20'(ow) ? m : 20'(ow);
    panel     = desc_i[DESC_PANEL_BIT +: 16];
    cin       = desc_i[DESC_CIN_BIT +: 16];
    gc        = desc_i[DESC_GC_BIT +: 16];
    h         = gemm ? m : 20'(desc_i[DESC_H_BIT +: 16]);
    w         = gemm ? 16'd1 : desc_i[DESC_W_BIT +: 16];
    lda       = desc_i[DESC_LDA_BIT +: 32];
    pix       = desc_i[DESC_PIX_BIT +: 16];
    kh        = gemm ? 8'd1 : desc_i[DESC_KH_BIT +: 8];
    kw        = gemm ? 8'd1 : desc_i[DESC_KW_BIT +: 8];
    sy        = gemm ? 4'd1 : desc_i[DESC_SY_BIT +: 4];
    sx        = desc_i[DESC_SX_BIT +: 4];
    dy        = gemm ? 4'd1 : desc_i[DESC_DY_BIT +: 4];
    dx        = desc_i[DESC_DX_BIT +: 4];
    pt        = desc_i[DESC_PT_BIT +: 8];
    pl        = desc_i[DESC_PL_BIT +: 8];
    sps       = desc_i[DESC_SPS_BIT +: 18];
    image     = h != 0 && w != 0;          // else all is padding
    depth     = group ? gc : cin;
    kcut      = desc_i[DESC_KCUT_BIT +: 4];
    cut       = gemm && kcut != 0;
    part      = 32'd1 << kcut;
    row_bytes = cut ? part : (32'(w) - 32'd1) * 32'(pix) + 32'(cin);
  end

  always_comb begin
    bad = '0;
    if (v_i) begin
      bad[0]  = group && (!conv || !desc_i[DESC_F_BLOCK_BIT] || desc_i[DESC_F_NOPARAM_BIT]);
      bad[1]  = op == 8'(OP_WAIT) && desc_i[DESC_ADDR_A_BIT +: 3] != 0;
      bad[2]  = array && desc_i[DESC_F_BLOCK_BIT] && desc_i[DESC_ADDR_B_BIT +: 4] != 0;
      bad[4]  = (op == 8'(OP_SIGNAL) || op == 8'(OP_TIMESTAMP))
                && desc_i[DESC_ADDR_D_BIT +: 3] != 0;
      bad[5]  = (array || vec) && m == 0;
      bad[6]  = ((array || vec) && ow == 0) || (array && panel == 0);
      bad[7]  = ((array || pool) && cin == 0) || (array && desc_i[DESC_DN_BIT +: 16] == 0);
      bad[10] = group && (gc == 0 || gc > cin);
      if (conv || pool)
        bad[12] = kh == 0 || kw == 0 || sy == 0 || sx == 0 || dy == 0 || dx == 0
                  || (conv && 32'(kh) * 32'(kw) * 32'(depth) > 32'd65535);
      if (cut)
        bad[12] = kcut < 4'd8 || 32'(cin) <= part || m > 20'(panel)
                  || m > 20'(out32 ? Depth / 4 : Depth);
      // a window without a pixel; those below the image are found on the way
      if (pool)
        bad[13] = !image || pt >= kh || pl >= kw
                  || (cols - 20'd1) * 20'(sx) >= 20'(w) + 20'(pl);
      if (vec && vop == 8'(VOP_ADD))
        bad[13] = !shifts(desc_i[DESC_VSHIFT1_BIT +: 8]) || !shifts(desc_i[DESC_VSHIFT2_BIT +: 8])
                  || !shifts(desc_i[DESC_VSHIFTO_BIT +: 8])
                  || desc_i[DESC_VLSHIFT_BIT + 5 +: 3] != 0;
      if (vec && vop == 8'(VOP_MUL)) bad[13] = !shifts(desc_i[DESC_VSHIFTO_BIT +: 8]);
      if (vec && vop == 8'(VOP_RELU)) bad[13] = !shifts(desc_i[DESC_VSHIFT1_BIT +: 8]);
      bad[14] = (clamped && value8(desc_i[DESC_AMIN_BIT +: 8], ou8)
                            > value8(desc_i[DESC_AMAX_BIT +: 8], ou8))
                || (own_q && !shifts(desc_i[DESC_QSHIFT_BIT +: 8]));
      // An input row fits; whether all of a panel's do is found on the way.  Rows keep their place
      // in a line, and two share one only where they do in memory, too.
      if (cut)
        bad[15] = 32'(sps) >= 32'(1 << npu_pkg::SpadLog2) || sps[5:0] != 0
                  || 32'(sps) < part + 32'd64;
      else if (array && image)
        bad[15] = row_bytes > 32'(Room)
                  || (h != 20'd1 && (32'(sps) >= 32'(1 << npu_pkg::SpadLog2) || sps[5:0] != lda[5:0]
                                     || (32'(sps) != lda && 32'(sps) < row_bytes + 32'd63)));
    end
  end

  always_comb begin
    kind_o = 4'(FAULT_NONE);
    word_o = '0;
    if (v_i && !known) kind_o = 4'(FAULT_OPCODE);
    else if (bad != '0) begin
      kind_o = 4'(FAULT_FIELD);
      for (int i = 15; i >= 0; i--) if (bad[i]) word_o = 4'(i);
    end
  end
endmodule
