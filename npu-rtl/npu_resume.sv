// SPDX-License-Identifier: Apache-2.0
// npu_resume: holds a context, which FOLD or SAVE has stored, against the descriptor that is to go
// on from it, and works out where its operation begins.
module npu_resume
  import npu_conv_pkg::dim_t;
(
    input  logic                clk_i, rst_ni,
    input  logic [511:0]        desc_i,      // until ready_o
    input  logic                back_i,      // the context has come
    input  logic [511:0]        context_i,
    input  logic [7:0]          space_i,     // the address space that goes on
    output logic                ok_o,        // with back_i: it is of that descriptor
    output logic                ready_o,
    // Sums are of use on a rectangle that is as wide as their tile, and as high as the fold that
    // some of its rows have; else the tile begins anew.
    input  dim_t                h_i, w_i,
    output logic                use_o,       // with ok_o: they are
    output npu_conv_pkg::sums_t sums_o,      // with ok_o, if they are: they,
    output npu_conv_pkg::rows_t rows_o,      // of so many rows
    output npu_conv_pkg::from_t from_o,      // of the array's operation,
    output npu_vec_pkg::from_t  vec_o        // of a vector operation
);
  import npu_regs_pkg::*;
  localparam int Most = 1 << npu_pkg::DepthLog2;  // rows of a tile

  npu_conv_pkg::progress_t at;
  logic [13:0] rows, most;
  logic [19:0] dm;
  logic [15:0] dn;
  logic [15:0] k;
  logic [15:0] part;
  logic        array, same, fits, gemm, few, sums, sums_fit, cut_fit;
  logic [7:0]  vop;
  logic [15:0] cols;
  logic        vec, vec_fits;
  npu_conv_pkg::sums_t sums_at;
  assign dm   = desc_i[DESC_DM_BIT +: 20];
  assign dn   = desc_i[DESC_DN_BIT +: 16];
  assign rows = context_i[DESC_FOLD_T_BIT +: 14];
  assign most = 14'(Most) >> (desc_i[DESC_F_OUT32_BIT] ? 2'd2 : 2'(at.half));
  assign at   = '{half: context_i[DESC_FOLD_HALF_BIT], m: context_i[DESC_FOLD_M_BIT +: 20],
                  t: npu_conv_pkg::rows_t'(rows), n: context_i[DESC_FOLD_N_BIT +: 16],
                  sums: use_o ? sums_at : '0};
  assign sums_o = at.sums;
  assign rows_o = at.t;

  // Sums: of the tile that is next, of k that there are.
  assign gemm    = desc_i[DESC_OPCODE_BIT +: 8] == 8'(OP_GEMM);
  assign k       = gemm ? desc_i[DESC_CIN_BIT +: 16]
                        : 16'(desc_i[DESC_KH_BIT +: 8]) * 16'(desc_i[DESC_KW_BIT +: 8])
                          * (desc_i[DESC_F_GROUP_BIT] ? desc_i[DESC_GC_BIT +: 16]
                                                      : desc_i[DESC_CIN_BIT +: 16]);
  assign sums    = context_i[DESC_FOLD_SUMS_BIT];
  assign sums_at = '{nc: context_i[DESC_FOLD_NC_BIT +: 7], kr: context_i[DESC_FOLD_KR_BIT +: 7],
                     k: context_i[DESC_FOLD_K_BIT +: 16],
                     r: npu_conv_pkg::rows_t'(context_i[DESC_FOLD_R_BIT +: 14])};
  assign sums_fit = sums_at.nc != 0 && sums_at.nc <= 7'(npu_pkg::MaxCols) && sums_at.kr != 0
      && sums_at.kr <= 7'(npu_pkg::MaxRows) && 17'(at.n) + 17'(sums_at.nc) <= 17'(dn)
      && 17'(sums_at.k) + 17'(sums_at.kr) <= 17'(k)
      && context_i[DESC_FOLD_R_BIT +: 14] <= rows && (sums_at.k != 0 || sums_at.r != 0);
  // Such tiles are stored two and two, and are short.
  assign few     = !desc_i[DESC_F_OUT32_BIT] && w_i <= 7'd16 && 32'(k) <= 2 * 32'(h_i);
  assign use_o   = sums && sums_at.nc <= w_i && (sums_at.r == 0 || sums_at.kr <= h_i) && !few;

  // Where K is cut there is one panel, and a fold lies in one part.
  assign part     = ~(16'hFFFF << desc_i[DESC_KCUT_BIT +: 4]);
  assign cut_fit  = context_i[DESC_FOLD_M_BIT +: 32] == 0 && 20'(rows) == dm
      && (!sums || {1'b0, sums_at.k & part} + 17'(sums_at.kr) <= 17'(part) + 17'd1);

  // What it has of the descriptor's own makes it of use to that one alone, and to no other space.
  assign array  = gemm || desc_i[DESC_OPCODE_BIT +: 8] == 8'(OP_CONV);
  assign same   = context_i[DESC_ADDR_B_BIT +: 96] == desc_i[DESC_ADDR_B_BIT +: 96] &&
      context_i[DESC_DM_BIT +: 20] == dm && context_i[DESC_DN_BIT +: 16] == dn &&
      context_i[DESC_FOLD_SPACE_BIT +: 8] == space_i;
  assign fits   = at.n < dn && rows != 0 && rows <= most &&
      16'(rows) <= desc_i[DESC_PANEL_BIT +: 16] &&
      33'(context_i[DESC_FOLD_M_BIT +: 32]) + 33'(rows) <= 33'(dm) && (!sums || sums_fit)
      && (!gemm || desc_i[DESC_KCUT_BIT +: 4] == 0 || cut_fit);

  // Of a vector operation there are whole rows and a piece's first column, nothing else; softmax
  // reads a row again, so that of none some outputs are stored.
  assign vec      = desc_i[DESC_OPCODE_BIT +: 8] == 8'(OP_VEC);
  assign vop      = desc_i[DESC_VOP_BIT +: 8];
  assign cols     = vop == 8'(VOP_MAXPOOL) || vop == 8'(VOP_AVGPOOL) ? desc_i[DESC_CIN_BIT +: 16]
                                                                    : desc_i[DESC_VCOLS_BIT +: 16];
  assign vec_fits = context_i[DESC_FOLD_M_BIT +: 32] < 32'(dm) && at.n < cols && at.n[3:0] == 0
      && (vop != 8'(VOP_SOFTMAX) || at.n == 0) && rows == 0 && !sums && !at.half;
  assign ok_o     = same && ((array && fits) || (vec && vec_fits));

  npu_conv_from u_from (
      .clk_i, .rst_ni, .start_i(back_i), .progress_i(at), .desc_i, .done_o(ready_o), .from_o,
      .vec_o);

  // ---- what always holds ------------------------------------------------------------------------
  // Fields are wider in memory than here: nothing is cut off a context that is taken.
  NothingLost: assert property (@(posedge clk_i) disable iff (!rst_ni)
      back_i && ok_o |-> 32'(at.m) == context_i[DESC_FOLD_M_BIT +: 32] && 14'(at.t) == rows);
  SumsOfTheArray: assert property (@(posedge clk_i) disable iff (!rst_ni)
      back_i && ok_o && use_o |-> array && sums_o.r <= rows_o);
endmodule
