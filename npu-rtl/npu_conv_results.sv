// SPDX-License-Identifier: Apache-2.0
// npu_conv_results: what leaves the array: tags say which sums are real; they are aligned, added
// up, made outputs of, and stored.
module npu_conv_results
  import npu_conv_pkg::*;
  import npu_math_pkg::RequantCycles;
#(
    parameter int R = 16, C = 16,
    localparam int SumBits = C < 16 ? 32 * C : 512
) (
    input  logic               clk_i, rst_ni, kill_i,
    input  logic               cut_i,      // no row of what is before the array comes
    input  dim_t               h_i, w_i,
    input  conv_op_t           op_i [4],   // by number
    input  tag_t               tag_i,      // of the row that goes into the array now
    input  logic signed [31:0] p_i [C],
    // parameters of a tile's columns, as they come
    input  logic               param_v_i,
    input  tid_t               param_tid_i,
    input  logic [4:0]         param_pair_i,
    input  param_t             param_i [2],
    // sums, while nothing is in the array
    input  logic               sums_re_i,
    input  logic [(C+15)/16-1:0] sums_we_i,
    input  row_t               sums_at_i,
    input  logic [SumBits-1:0] sums_line_i,
    output logic [SumBits-1:0] sums_line_o [(C+15)/16],
    // tiles, as they begin
    input  seq_t               head_i,
    input  logic               retire_i, tile_v_i,
    input  tile_t              tile_i,
    output logic               busy_o,     // rows are in the array, or between it and the sums
    output logic               fold_done_o, tile_done_o,  // its last row of sums comes now
    output logic               sum_v_o,    // a row of sums does, of operation
    output seq_t               sum_seq_o,
    output logic               out_o,      // the last that was whole has become outputs
    output logic               op_done_o,  // an operation's last has
    output logic               full_o,     // no tile may begin
    output logic               even_o,     // all rows that have come out are stored
    output logic               end_o,      // the oldest's stores have been handed over
    // stores: up to 32 bytes anywhere
    output logic               st_v_o,
    output logic [31:0]        st_va_o,
    output logic [5:0]         st_len_o,
    output logic [255:0]       st_data_o,
    output logic               st_mark_o,
    output logic [31:0]        st_upto_o,
    input  logic               st_rdy_i
);
  if (R < 1 || R > int'(npu_pkg::MaxRows))
    $fatal(1, "npu_conv_results: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_results: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  tag_t               early_tag, sum_tag;
  logic signed [31:0] row [C];
  param_t             param [C];
  logic [32*C-1:0]    sum, out_row;
  logic               last, out_v;         // the row of sums that comes is whole
  logic               empty;               // no tile is under way
  logic               finish_v_q, finish_v_d;
  seq_t               finish_op_q;
  logic [3:0]         left_q, left_d;      // cycles until the last whole row has come out
  assign last      = sum_tag.v && sum_tag.last;
  assign sum_v_o   = sum_tag.v;
  assign sum_seq_o = sum_tag.op;
  assign out_o     = left_q == 0;

  npu_conv_tags #(.R(R), .C(C)) u_tags (
      .clk_i, .rst_ni, .kill_i(cut_i), .h_i, .w_i, .tag_i, .early_o(early_tag), .tag_o(sum_tag),
      .busy_o, .fold_done_o, .tile_done_o);
  npu_conv_align #(.C(C)) u_align (
      .clk_i, .move_i(busy_o), .w_i, .v_i(sum_tag.v), .p_i, .row_o(row));
  npu_conv_acc #(.C(C)) u_acc (
      .clk_i, .early_i(early_tag), .tag_i(sum_tag), .row_i(row), .sum_o(sum),
      .re_i(sums_re_i), .we_i(sums_we_i), .at_i(sums_at_i), .line_i(sums_line_i),
      .line_o(sums_line_o));
  npu_conv_params #(.C(C)) u_params (
      .clk_i, .v_i(param_v_i), .tid_i(param_tid_i), .pair_i(param_pair_i), .param_i,
      .read_i(last), .read_tid_i(sum_tag.tid), .param_o(param));
  always_comb begin
    finish_v_d = last && !kill_i;
    left_d     = left_q - 4'(left_q != 0);
    if (last) left_d = 4'(op_i[sum_tag.op].out32 ? 1 : RequantCycles + 1);
  end
  always_ff @(posedge clk_i) begin
    finish_v_q <= rst_ni && finish_v_d;
    left_q     <= rst_ni ? left_d : '0;
    if (last) finish_op_q <= sum_tag.op;
  end
  npu_conv_finish #(.C(C)) u_finish (
      .clk_i, .rst_ni, .clear_i(kill_i), .op_i(op_i[finish_op_q]), .w_i, .v_i(finish_v_q),
      .sum_i(sum), .param_i(param), .v_o(out_v), .row_o(out_row));
  npu_conv_out #(.C(C)) u_out (
      .clk_i, .rst_ni, .kill_i, .head_i, .retire_i, .tile_v_i, .tile_i, .full_o, .row_v_i(out_v),
      .row_i(out_row), .op_done_o, .end_o, .empty_o(empty), .even_o, .st_v_o, .st_va_o, .st_len_o,
      .st_data_o, .st_mark_o, .st_upto_o, .st_rdy_i);

  // ---- what always holds ------------------------------------------------------------------------
  row_of_a_tile: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      out_v |-> !empty) else $error("a row of outputs that no tile is there for");
  none_after_the_last: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      out_v |-> left_q != 0) else $error("a row comes out after the last");
  accumulators_alone: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      sums_re_i || |sums_we_i |-> !busy_o)
      else $error("sums are saved or restored while rows are in the array");
endmodule
