// SPDX-License-Identifier: Apache-2.0
// npu_conv_intake: pieces from the fetch FIFO's head: parameters to their table as they come;
// weights, less their zero point, when the loader takes them, each row of a piece of two.
module npu_conv_intake
  import npu_conv_pkg::*;
#(
    parameter int C = 16
) (
    input  logic           clk_i, rst_ni, kill_i, cut_i,
    input  conv_op_t       op_i [4],       // by number
    input  seq_t           head_i, load_i, // the oldest's; of the fold that is loaded
    input  logic           busy_i,         // there is an operation
    // a tile's pieces are asked for: whose it is
    input  logic           tile_v_i,
    input  tid_t           tile_tid_i,
    input  seq_t           tile_seq_i,
    // the FIFO's head
    input  logic           v_i,
    input  logic [255:0]   data_i,
    input  logic [9:0]     meta_i,         // weights: {1, ..., two rows}
                                           // parameters: {0, tile, pair of columns, both}
    output logic           pop_o,
    output logic           weights_v_o,    // a row of weights is there
    input  logic           weights_take_i,
    output logic [9*C-1:0] weights_o,      // '0 unless taken
    // parameters of one or two columns
    output logic           param_v_o, param_two_o,
    output logic           param_group_o,  // of a grouped operation
    output tid_t           param_tid_o,
    output logic [4:0]     param_pair_o,
    output param_t         param_o [2],
    output logic [npu_pkg::SpadLog2-1:0] group_o [2],  // where in a pixel the column's group begins
    output logic           stray_o         // the oldest's table: a group that lies beyond its pixel
);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_intake: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  logic second_d, second_q;                // of two rows of weights
  assign weights_v_o = v_i && meta_i[9];
  assign param_v_o   = busy_i && v_i && !meta_i[9];
  assign second_d    = weights_take_i ? meta_i[0] && !second_q : second_q;
  assign pop_o       = param_v_o || (weights_take_i && !second_d);
  always_ff @(posedge clk_i)
    if (!rst_ni || cut_i) second_q <= 1'b0;
    else second_q <= second_d;

  assign param_two_o  = meta_i[0];
  assign param_tid_o  = meta_i[8:6];
  assign param_pair_o = meta_i[5:1];
  for (genvar b = 0; b < 2; b++) begin : g_param
    assign param_o[b] = '{bias: data_i[128*b +: 32], mult: data_i[128*b+32 +: 32],
                          shift: data_i[128*b+64 +: 7]};
    assign group_o[b] = data_i[128*b+96 +: npu_pkg::SpadLog2];
  end

  logic [255:0] row;
  always_comb begin
    weights_o = '0;
    row       = data_i;
    if (second_q) row[127:0] = data_i[255:128];
    if (weights_take_i)
      for (int j = 0; j < C; j++)
        weights_o[9*j +: 9] = {!op_i[load_i].b_u8 & row[8*j+7], row[8*j +: 8]}
                              - {!op_i[load_i].b_u8 & op_i[load_i].zpb[7], op_i[load_i].zpb};
  end

  // What lies beyond a pixel may be another tenant's, left in the scratchpad: the slot is told
  // before anything made of it is stored.
  seq_t seq_q [8], seq, stray_seq_q;       // by tile
  logic stray, stray_d, stray_q;
  assign seq     = seq_q[param_tid_o];
  assign param_group_o = op_i[seq].group;
  assign stray   = param_v_o && param_group_o
                   && (data_i[96 +: 32] > 32'(op_i[seq].last_group)
                       || (param_two_o && data_i[224 +: 32] > 32'(op_i[seq].last_group)));
  assign stray_d = !kill_i && (stray_q || stray);
  assign stray_o = stray_q && stray_seq_q == head_i;
  always_ff @(posedge clk_i) begin
    if (tile_v_i) seq_q[tile_tid_i] <= tile_seq_i;
    if (stray && !stray_q) stray_seq_q <= seq;
    stray_q <= rst_ni && stray_d;
  end

  // ---- what always holds ------------------------------------------------------------------------
  second_of_weights: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      second_q && v_i |-> meta_i[9] && meta_i[0])
      else $error("a second row of weights where there is one, or none");
  taken_is_there: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      !(weights_take_i && !weights_v_o) && !(pop_o && !v_i))
      else $error("a piece is taken that has not come");
  stray_stays: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      $past(rst_ni) && $past(stray_q) && !$past(kill_i) |-> stray_q && $stable(stray_seq_q))
      else $error("a stray group is forgotten");
endmodule
