// SPDX-License-Identifier: Apache-2.0
// npu_conv_decode: a GEMM's or CONV's descriptor as fields that the blocks of npu_conv use, GEMM
// being CONV with a 1 x 1 kernel whose every input row is one output row.  Four are kept, by their
// numbers.
module npu_conv_decode
  import npu_conv_pkg::*;
(
    input  logic         clk_i,
    input  logic         start_i,
    input  seq_t         at_i,             // its number: where the fields are kept
    input  logic [511:0] desc_i,           // with start_i
    input  logic         from_v_i,         // it goes on from from_i
    input  from_t        from_i,
    input  dim_t         h_i, w_i,
    output conv_op_t     op_o [4],
    output walk_t        origin_o [4]      // window that it begins with
);
  import npu_regs_pkg::*;
  localparam int Depth = 1 << npu_pkg::DepthLog2;

  conv_op_t    op_d, op_q [4];
  walk_t       origin_d, origin_q [4];
  logic        gemm;
  logic [15:0] cin, pix, panel_rows;
  logic [7:0]  kh, pt, above;              // above: rows of the first window above op_d.row
  logic [20:0] ix;
  rows_t       most;
  logic        few;

  always_comb begin
    gemm       = 1'b0;
    cin        = '0;
    pix        = '0;
    panel_rows = '0;
    kh         = '0;
    pt         = '0;
    above      = '0;
    ix         = '0;
    most       = '0;
    few        = 1'b0;
    op_d       = '0;
    origin_d   = '0;
    if (start_i) begin                     // quiet otherwise
      gemm            = desc_i[DESC_OPCODE_BIT +: 8] == OP_GEMM;
      cin             = desc_i[DESC_CIN_BIT +: 16];
      pix             = gemm ? 16'd0 : desc_i[DESC_PIX_BIT +: 16];
      panel_rows      = desc_i[DESC_PANEL_BIT +: 16];
      kh              = gemm ? 8'd1 : desc_i[DESC_KH_BIT +: 8];
      pt              = gemm ? 8'd0 : desc_i[DESC_PT_BIT +: 8];

      op_d.out32      = desc_i[DESC_F_OUT32_BIT];
      op_d.a_u8       = desc_i[DESC_F_AU8_BIT];
      op_d.b_u8       = desc_i[DESC_F_BU8_BIT];
      op_d.d_u8       = desc_i[DESC_F_OU8_BIT];
      op_d.noparam    = desc_i[DESC_F_NOPARAM_BIT];
      op_d.block      = desc_i[DESC_F_BLOCK_BIT];
      op_d.group      = desc_i[DESC_F_GROUP_BIT];
      op_d.onnx       = desc_i[DESC_F_FLOAT_BIT];
      op_d.once       = desc_i[DESC_F_ONCE_BIT];
      op_d.row        = from_v_i ? from_i.row : '0;
      op_d.addr_a     = from_v_i ? from_i.addr_a : desc_i[DESC_ADDR_A_BIT +: 32];
      op_d.addr_b     = desc_i[DESC_ADDR_B_BIT +: 32];
      op_d.addr_p     = desc_i[DESC_ADDR_P_BIT +: 32];
      op_d.addr_d     = desc_i[DESC_ADDR_D_BIT +: 32];
      op_d.addr_m     = from_v_i ? from_i.addr_m : op_d.addr_d;
      op_d.lda        = desc_i[DESC_LDA_BIT +: 32];
      op_d.ldb        = desc_i[DESC_LDB_BIT +: 16];
      op_d.ldd        = desc_i[DESC_LDD_BIT +: 32];
      op_d.qmult      = desc_i[DESC_QMULT_BIT +: 32];
      op_d.qshift     = desc_i[DESC_QSHIFT_BIT +: 7];
      op_d.zpa        = desc_i[DESC_ZPA_BIT +: 8];
      op_d.zpb        = desc_i[DESC_ZPB_BIT +: 8];
      op_d.zpo        = desc_i[DESC_ZPO_BIT +: 8];
      op_d.amin       = desc_i[DESC_AMIN_BIT +: 8];
      op_d.amax       = desc_i[DESC_AMAX_BIT +: 8];
      op_d.m          = desc_i[DESC_DM_BIT +: 20];
      op_d.n          = desc_i[DESC_DN_BIT +: 16];
      op_d.ow         = gemm ? 16'd1 : desc_i[DESC_OW_BIT +: 16];
      op_d.w          = gemm ? 16'd1 : desc_i[DESC_W_BIT +: 16];
      // an image without columns has no rows either: all padding
      op_d.h          = gemm ? op_d.m : op_d.w == 0 ? '0 : 20'(desc_i[DESC_H_BIT +: 16]);
      op_d.kw         = gemm ? 8'd1 : desc_i[DESC_KW_BIT +: 8];
      op_d.pl         = gemm ? 8'd0 : desc_i[DESC_PL_BIT +: 8];
      op_d.sy         = gemm ? 4'd1 : desc_i[DESC_SY_BIT +: 4];
      op_d.sx         = gemm ? 4'd1 : desc_i[DESC_SX_BIT +: 4];
      op_d.dy         = gemm ? 4'd1 : desc_i[DESC_DY_BIT +: 4];
      op_d.dx         = gemm ? 4'd1 : desc_i[DESC_DX_BIT +: 4];
      op_d.kcin       = desc_i[DESC_F_GROUP_BIT] ? desc_i[DESC_GC_BIT +: 16] : cin;
      op_d.cut        = gemm && desc_i[DESC_KCUT_BIT +: 4] != 0;
      op_d.part       = op_d.cut ? ~(16'hFFFF << desc_i[DESC_KCUT_BIT +: 4]) : '1;
      op_d.last_group = cin - op_d.kcin;
      op_d.k          = 16'(kh) * 16'(op_d.kw) * op_d.kcin;
      op_d.row_bytes  = op_d.cut ? 32'(op_d.part) + 32'd1
                                 : (32'(op_d.w) - 32'd1) * 32'(pix) + 32'(cin);
      op_d.sps        = desc_i[DESC_SPS_BIT +: 18];
      op_d.step_x     = spad_t'(op_d.sx) * spad_t'(pix);
      op_d.step_y     = spad_t'(op_d.sy) * op_d.sps;
      op_d.kstep_x    = spad_t'(op_d.dx) * spad_t'(pix);
      op_d.kstep_y    = spad_t'(op_d.dy) * op_d.sps;
      // With so few folds a tile, stores would be what the array waits for: then there are four
      // tiles, half as deep.  One that goes on keeps to the panels that it began with.
      few             = !op_d.out32 && w_i <= 7'd16 && 32'(op_d.k) <= 2 * 32'(h_i);
      if (from_v_i) op_d.at = from_i.at;
      else begin
        op_d.at.half = few;
        if (op_d.cut) op_d.at.t = rows_t'(op_d.m);
      end
      op_d.at_k       = '{c: from_i.c, kx: from_i.kx, dx: reach_t'(from_i.kx) * reach_t'(op_d.dx),
                          dy: reach_t'(from_i.ky) * reach_t'(op_d.dy),
                          x_off: spad_t'(from_i.kx) * op_d.kstep_x,
                          y_off: spad_t'(from_i.ky) * op_d.kstep_y, off: '0};
      op_d.at_k.off   = op_d.at_k.y_off + op_d.at_k.x_off + spad_t'({from_i.c & op_d.part});
      op_d.at_b       = op_d.block ? {12'd0, op_d.at.sums.k, 4'd0}
                                   : 32'(op_d.at.sums.k) * 32'(op_d.ldb);
      op_d.pair       = few && (op_d.at.half || panel_rows <= 16'(Depth / 2));
      most            = rows_t'(op_d.out32 ? Depth / 4 : op_d.at.half ? Depth / 2 : Depth);
      op_d.depth      = panel_rows > 16'(most) ? most : rows_t'(panel_rows);

      origin_d.ox     = from_v_i ? from_i.ox : '0;
      origin_d.iy     = from_v_i ? from_i.iy : -21'(signed'({1'b0, pt}));
      ix              = 21'(origin_d.ox) * 21'(op_d.sx);
      if (ix > 21'(op_d.w) + 21'(op_d.pl)) ix = 21'(op_d.w) + 21'(op_d.pl);
      origin_d.ix     = 18'(ix) - 18'(op_d.pl);
      above           = 8'(21'(op_d.row) - origin_d.iy);
      origin_d.low    = op_d.cut ? op_d.addr_a[5:0] : '0;
      if (!op_d.cut) origin_d.row = spad_t'(op_d.addr_a[5:0]);
      origin_d.row    = origin_d.row - spad_t'(above) * op_d.sps
                        - spad_t'(op_d.pl) * spad_t'(pix);
      origin_d.ad     = origin_d.row + spad_t'(origin_d.ox) * op_d.step_x
                        + spad_t'(origin_d.low);
    end
  end

  always_ff @(posedge clk_i)
    if (start_i) begin
      op_q[at_i]     <= op_d;
      origin_q[at_i] <= origin_d;
    end

  assign op_o     = op_q;
  assign origin_o = origin_q;
endmodule
