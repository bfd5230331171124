// SPDX-License-Identifier: Apache-2.0
// npu_times: two times of a slot: from a PREEMPT until its PEs were free, and how long it has been
// at the descriptor at HEAD, until it stopped.
module npu_times
  import npu_slot_pkg::*;
  import npu_regs_pkg::*;
(
    input  logic        clk_i, rst_ni,
    input  state_e      state_i,
    input  logic        preempt_i,           // PREEMPT is written
    input  logic        restart_i,           // the ring is set anew
    input  logic        empty_i,             // and has no descriptor
    input  logic        quiet_i,             // nothing is in the array
    input  logic        drain_i, frozen_i,   // it is to stop; and stands
    input  logic        array_i,             // the descriptor at HEAD is the array's
    input  logic [11:0] reg_addr_i,
    output logic [31:0] reg_rdata_o          // 0 where it is another's register
);
  logic        timing_d, timing_q, over, alone;
  logic [31:0] preempt_d, preempt_q, desc_d, desc_q;
  // the array's next operation would come after what stops it
  assign alone = !array_i && state_i != SIdle && state_i != SFetch && state_i != SDecode;
  assign over  = quiet_i && (!drain_i || frozen_i || alone ||
      state_i == SStopping || state_i == SStopped);
  always_comb begin
    timing_d  = timing_q;
    preempt_d = preempt_q;
    if (preempt_i && state_i != SStopped) begin
      timing_d  = 1'b1;
      preempt_d = '0;
    end else if (timing_q) begin
      timing_d  = !over;
      preempt_d = preempt_q + 32'd1;
    end
    desc_d = desc_q;
    if (restart_i || state_i == SDone || (state_i == SIdle && empty_i)) desc_d = '0;
    else if (state_i != SStopping && state_i != SSave && state_i != SSums && state_i != SStopped)
      desc_d = desc_q + 32'd1;
  end
  always_ff @(posedge clk_i)
    if (!rst_ni) begin
      timing_q  <= 1'b0;
      preempt_q <= '0;
      desc_q    <= '0;
    end else begin
      timing_q  <= timing_d;
      preempt_q <= preempt_d;
      desc_q    <= desc_d;
    end
  always_comb
    unique case (reg_addr_i)
      SLOT_PREEMPT_CYCLES_OFF: reg_rdata_o = preempt_q;
      SLOT_DESC_CYCLES_OFF:    reg_rdata_o = desc_q;
      default:                 reg_rdata_o = '0;
    endcase

  // ---- what always holds ------------------------------------------------------------------------
  StoppedStands: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(state_i == SStopped && !restart_i) |-> $stable(desc_q));
endmodule
