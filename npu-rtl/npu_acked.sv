// SPDX-License-Identifier: Apache-2.0
// npu_acked: how much of what the oldest operation stores is in memory, panel by panel.  Stores
// belong to one of two epochs, which their responses tell apart; at the end of a panel the epoch
// changes if the one before is over, and when it is, all up to there has been answered.
module npu_acked (
    input  logic        clk_i, clear_i,    // no stores are out whose responses count
    input  logic        retire_i,          // the oldest operation is over: all of its stores are
    input  logic        store_i,           // one goes out, of epoch_o
    input  logic        mark_i,            // with store_i: the last of a panel,
    input  logic [31:0] upto_i,            // behind which the next panel's first output lies
    input  logic [1:0][5:0] back_i,        // answers, by epoch
    output logic        epoch_o,
    output logic        any_o,             // some are out
    output logic        v_o,               // every output that lies before upto_o is in memory
    output logic [31:0] upto_o
);
  logic        epoch_q, epoch_d, wait_q, wait_d, v_q, v_d, over;
  logic        turn;                     // the epoch changes
  logic [31:0] wait_upto_q, upto_q;
  // At each of 16 channels 32 stores may wait and 16 be in its memory; three are on their way.
  logic [9:0]  out_q [2], out_d [2];
  assign epoch_o = epoch_q;
  assign any_o   = out_q[0] != 0 || out_q[1] != 0;
  assign over    = wait_q && out_q[!epoch_q] == 0;
  assign v_o     = v_q;
  assign upto_o  = upto_q;

  assign turn    = store_i && mark_i && !wait_q;

  always_comb begin
    for (int e = 0; e < 2; e++)
      out_d[e] = clear_i ? '0
                         : out_q[e] + 10'(store_i && epoch_q == 1'(e)) - 10'(back_i[e]);
    wait_d  = wait_q;
    v_d     = v_q;
    epoch_d = epoch_q ^ turn;
    if (over) begin
      wait_d = 1'b0;
      v_d    = 1'b1;
    end
    if (turn) wait_d = 1'b1;
    if (retire_i || clear_i) begin
      wait_d = 1'b0;
      v_d    = 1'b0;
    end
    if (clear_i) epoch_d = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    for (int e = 0; e < 2; e++) out_q[e] <= out_d[e];
    wait_q  <= wait_d;
    v_q     <= v_d;
    epoch_q <= epoch_d;
    if (over) upto_q <= wait_upto_q;
    if (turn) wait_upto_q <= upto_i;
  end

  logic none, left, full;                 // apart: Verilator 5.006 takes no array in a property
  assign none = 10'(back_i[0]) > out_q[0] || 10'(back_i[1]) > out_q[1];
  assign full = &out_q[epoch_q];
  assign left = out_q[!epoch_q] != 0;
  none_too_many: assert property (@(posedge clk_i) disable iff (clear_i)
      !none) else $error("an answer to no store");
  counted: assert property (@(posedge clk_i) disable iff (clear_i)
      !(store_i && full)) else $error("more stores are out than are counted");
  acked_when_said: assert property (@(posedge clk_i) disable iff (clear_i)
      over |-> wait_q && !left)
      else $error("stores of a panel are out that is said to be in memory");
  over_when_retired: assert property (@(posedge clk_i) disable iff (clear_i)
      retire_i |-> !any_o) else $error("an operation is over with stores out");
endmodule
