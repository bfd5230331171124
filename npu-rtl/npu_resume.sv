// SPDX-License-Identifier: Apache-2.0
// npu_resume: holds a context, which FOLD has stored, against the descriptor that is to go on from
// it, and works out where its operation begins.
module npu_resume (
    input  logic                clk_i, rst_ni,
    input  logic [511:0]        desc_i,      // until ready_o
    input  logic                back_i,      // the context has come
    input  logic [511:0]        context_i,
    output logic                ok_o,        // with back_i: it is of that descriptor
    output logic                ready_o,
    output npu_conv_pkg::from_t from_o
);
  import npu_regs_pkg::*;
  localparam int Most = 1 << npu_pkg::DepthLog2;  // rows of a tile

  npu_conv_pkg::progress_t at;
  logic [14:0] rows, most;
  logic [19:0] dm;
  logic [15:0] dn;
  logic        array, same, fits;
  assign dm   = desc_i[DESC_DM_BIT +: 20];
  assign dn   = desc_i[DESC_DN_BIT +: 16];
  assign rows = context_i[DESC_FOLD_T_BIT +: 15];
  assign most = 15'(Most) >> (desc_i[DESC_F_OUT32_BIT] ? 2'd2 : 2'(at.half));
  assign at   = '{half: context_i[DESC_FOLD_HALF_BIT], m: context_i[DESC_FOLD_M_BIT +: 20],
                  t: npu_conv_pkg::rows_t'(rows), n: context_i[DESC_FOLD_N_BIT +: 16]};

  // What it has of the descriptor's own makes it of use to that one alone.
  assign array  = desc_i[DESC_OPCODE_BIT +: 8] == 8'(OP_GEMM) ||
      desc_i[DESC_OPCODE_BIT +: 8] == 8'(OP_CONV);
  assign same   = context_i[DESC_ADDR_B_BIT +: 96] == desc_i[DESC_ADDR_B_BIT +: 96] &&
      context_i[DESC_DM_BIT +: 20] == dm && context_i[DESC_DN_BIT +: 16] == dn;
  assign fits   = at.n < dn && rows != 0 && rows <= most &&
      16'(rows) <= desc_i[DESC_PANEL_BIT +: 16] &&
      33'(context_i[DESC_FOLD_M_BIT +: 32]) + 33'(rows) <= 33'(dm);
  assign ok_o   = array && same && fits;

  npu_conv_from u_from (
      .clk_i, .rst_ni, .start_i(back_i), .progress_i(at), .desc_i, .done_o(ready_o), .from_o);
endmodule
