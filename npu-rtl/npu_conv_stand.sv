// SPDX-License-Identifier: Apache-2.0
// npu_conv_stand: where the oldest operation stands, if it is to.
//
// Halted it does so between two folds, or where a row would wait for its input; frozen anywhere: of
// what is in the array all goes through it, and then the blocks before it, and what they have of
// younger operations, are cut off.  Tiles that are stored two and two are short: halted it ends
// both, frozen they begin anew.
module npu_conv_stand
  import npu_conv_pkg::*;
(
    input  logic         clk_i, rst_ni, kill_i,
    input  logic         halt_i,           // behind the fold that is streamed,
    input  logic         freeze_i,         // with halt_i: now
    input  conv_op_t     op_i [4],         // by number
    input  seq_t         head_i,           // the oldest's
    input  logic         busy_i,           // there is one
    input  logic         more_i,           // and of it more for the array than has been streamed
    // the fold that is streamed, so many of its rows gone; the loaded; the next
    input  logic         stream_v_i, load_v_i, next_v_i,
    input  fold_t        stream_i, load_i, next_i,
    input  rows_t        stream_t_i,
    input  logic         wait_i,           // the next row waits for its input,
    input  logic         offer_i,          // for the array
    input  logic         flight_i,         // rows are on their way through it
    input  logic         between_i,        // the next fold begins a tile, or two
    // the blocks behind the array: their last row has come out, all that has come is stored
    input  logic         out_i, even_i,
    output logic         hold_o,           // no fold may be streamed
    output logic         freeze_o,         // nor row: to be frozen, and not yet
    output logic         frozen_o,
    output logic         cut_o,            // all blocks but those behind the array
    output logic         halted_o,         // it stands,
    output logic         begun_o,          // with outputs stored, or sums;
    output logic [255:0] context_o,
    output sums_t        sums_o,
    output rows_t        sums_t_o          // of so many rows
);
  import npu_regs_pkg::*;
  logic      there;                        // it is known where it goes on
  logic      still, still_q, cut, frozen_d, frozen_q;
  progress_t at_fold, at, at_q;
  seq_t      at_seq;
  rows_t     gone;                         // rows of that fold, the sums have it
  assign there    = stream_v_i || load_v_i || next_v_i;
  // What the oldest still streams, or is to, when it is halted; stalled: it is no more to.
  logic      stream_on, load_on, next_on, stalled_d, stalled_q;
  assign stream_on = stream_v_i && stream_i.seq == head_i;
  assign load_on   = load_v_i && load_i.seq == head_i && op_i[head_i].pair;
  assign next_on   = next_v_i && next_i.seq == head_i && op_i[head_i].pair && !between_i;
  assign stalled_d = !kill_i && busy_i
                     && (stalled_q || (halt_i && stream_on && wait_i && !op_i[head_i].pair));
  assign hold_o    = freeze_o || (halt_i && !load_on);
  assign freeze_o  = busy_i && !frozen_q
                     && (freeze_i || stalled_q
                         || (halt_i && !stream_on && !load_on && !next_on));
  assign at_fold  = stream_v_i ? stream_i.at : load_v_i ? load_i.at : next_i.at;
  assign at_seq   = stream_v_i ? stream_i.seq : load_v_i ? load_i.seq : next_i.seq;
  assign gone     = stream_v_i && stream_t_i > at_fold.sums.r ? stream_t_i : at_fold.sums.r;
  always_comb begin
    at = at_fold;
    at.sums.r = gone;
    if ((at.sums.k == 0 && gone == 0) || op_i[at_seq].pair) at.sums = '0;
  end
  assign still    = freeze_o && !flight_i && !offer_i;
  assign cut      = still && still_q && (there || !more_i);
  assign cut_o    = kill_i || cut;
  assign frozen_d = !kill_i && (frozen_q || cut);
  always_ff @(posedge clk_i) begin
    still_q   <= still;
    stalled_q <= rst_ni && stalled_d;
    frozen_q  <= rst_ni && frozen_d;
    if (cut) at_q <= at;
    if (!rst_ni) at_q <= '0;
  end
  assign frozen_o = frozen_q;
  assign sums_o   = at_q.sums;
  assign sums_t_o = at_q.t;
  assign halted_o = frozen_q && more_i && out_i && even_i;
  assign begun_o  = at_q.m != 0 || at_q.n != 0 || at_q.sums.nc != 0;
  always_comb begin
    context_o = '0;
    context_o[DESC_FOLD_M_BIT +: 32] = 32'(at_q.m);
    context_o[DESC_FOLD_N_BIT +: 16] = at_q.n;
    context_o[DESC_FOLD_T_BIT +: 14] = 14'(at_q.t);
    context_o[DESC_FOLD_SUMS_BIT]    = at_q.sums.nc != 0;
    context_o[DESC_FOLD_HALF_BIT]    = at_q.half;
    context_o[DESC_ADDR_B_BIT +: 32] = op_i[head_i].addr_b;
    context_o[DESC_ADDR_P_BIT +: 32] = op_i[head_i].addr_p;
    context_o[DESC_ADDR_D_BIT +: 32] = op_i[head_i].addr_d;
    context_o[DESC_DM_BIT +: 32]     = 32'(op_i[head_i].m);
    context_o[DESC_DN_BIT +: 16]     = op_i[head_i].n;
  end

  // ---- what always holds ------------------------------------------------------------------------
  whole_folds: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      cut && !freeze_i && !stalled_q |-> !stream_on)
      else $error("a fold that has begun does not end, though its rows are there");
  nothing_in_the_array: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      frozen_q |-> !flight_i && !stream_v_i && !load_v_i)
      else $error("a frozen operation has rows in the array");
  place_kept: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      $past(rst_ni) && $past(frozen_q && halted_o) && frozen_q
      |-> halted_o && $stable({sums_o, sums_t_o, context_o}))
      else $error("an operation that stands moves");
endmodule
