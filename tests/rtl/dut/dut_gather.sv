// SPDX-License-Identifier: Apache-2.0
// dut_gather: npu_conv_gather over npu_conv_spad, for bench_gather.
module dut_gather
  import npu_conv_pkg::*;
  import npu_spad_pkg::*;
#(
    parameter int R = 16, C = 16,
    localparam int SW = npu_pkg::SpadLog2, CI = $clog2(C), RI = $clog2(R)
) (
    input  logic               clk_i, rst_ni, kill_i,
    input  logic               we_i,
    input  logic [SW-7:0]      line_i,
    input  logic [511:0]       data_i,
    input  logic               group_i, u8_i,
    input  logic [7:0]         zp_i,
    input  logic [19:0]        rows_i,
    input  logic [15:0]        cols_i, kcin_i,
    input  logic [3:0]         sx_i, dx_i,
    input  logic               row_i, fresh_i,
    input  logic signed [20:0] iy_i,
    input  logic signed [17:0] ix_i,
    input  spad_t              ad_i,
    input  logic [9:0]         tag_i,
    input  logic [R-1:0]       lane_v_i, lane_start_i, lane_again_i,
    input  spad_t              lane_off_i [R],
    input  reach_t             lane_dx_i [R], lane_dy_i [R],
    input  logic [3:0]         lane_more_i [R],
    output logic               take_o,
    input  logic [CI-1:0]      wins_i,
    input  logic [SW-1:0]      win_i [C],
    input  logic [3:0]         win_more_i [C],
    input  logic [CI-1:0]      col_win_i [C],
    input  logic [3:0]         col_at_i [C],
    output logic               ready_o,
    input  logic               load_i,
    input  logic [RI-1:0]      at_i,
    input  logic [9*C-1:0]     w_i,
    output logic               row_o, load_o, passed_o, busy_o,
    output logic [9:0]         tag_o,
    output logic [9*R-1:0]     a_o,
    output logic [9*C-1:0]     g_o [R],
    output logic [RI-1:0]      at_o,
    output logic [9*C-1:0]     w_o,
    input  logic [11:0]        word_i,     // the mapping, alone
    output logic [2:0]         bank_o
);
  logic [7:0]      re;
  logic [SW-8:0]   bank_row [Banks];
  logic [Banks-1:0][127:0]  word;
  npu_conv_spad u_spad (
      .clk_i, .we_i, .line_i, .data_i, .re_i(re), .row_i(bank_row), .word_o(word));
  conv_op_t op;
  walk_t    window;
  tag_t     tag_in, tag_out;
  always_comb begin
    op          = '0;
    op.group    = group_i;
    op.a_u8     = u8_i;
    op.zpa      = zp_i;
    op.h        = rows_i;
    op.w        = cols_i;
    op.kcin     = kcin_i;
    op.sx       = sx_i;
    op.dx       = dx_i;
    window      = '0;
    window.iy   = iy_i;
    window.ix   = ix_i;
    window.ad   = ad_i;
    tag_in      = '0;
    tag_in.t    = tag_i;
  end
  assign tag_o = tag_out.t;
  npu_conv_gather #(.R(R), .C(C)) u_gather (
      .clk_i, .rst_ni, .kill_i, .op_i(op), .out_op_i(op), .row_i, .fresh_i, .window_i(window), .tag_i(tag_in),
      .lane_v_i, .lane_start_i, .lane_again_i, .lane_off_i, .lane_dx_i, .lane_dy_i, .lane_more_i,
      .take_o, .wins_i, .win_i, .win_more_i, .col_win_i, .col_at_i, .ready_o, .load_i, .at_i, .w_i,
      .re_o(re), .bank_row_o(bank_row), .word_i(word), .row_o, .tag_o(tag_out), .a_o, .g_o, .load_o,
      .at_o, .w_o, .mark_i(row_i && take_o), .passed_o, .busy_o);
  assign bank_o = bank(word_i);
endmodule
