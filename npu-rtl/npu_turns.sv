// SPDX-License-Identifier: Apache-2.0
// npu_turns: whose turn it is where channels are shared in fixed turns (ARB TURNS).
//
// A turn is open as long as what is begun in it is sure to be over, rows closed, when it ends:
// so nothing of it can be seen in the next.  Turns go by the clock and by nothing else.
module npu_turns (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic [23:0]          timing_i,   // register TIMING, but for ROWBITS
    input  npu_pkg::turns_cfg_t  cfg_i,
    input  logic                 restart_i,  // begin with the first turn, memory being idle
    output npu_pkg::turn_t       turn_o
);
  import npu_regs_pkg::*;
  typedef logic [11:0] cycles_t;

  // A request taken now has its data on the bus after a change of rows behind what is there,
  // at most another one ahead; then the row is closed.
  cycles_t ncl, nrcd, nrp, guard_d, guard_q, length;
  assign ncl     = timing_i[TIMING_NCL_LSB+:TIMING_NCL_W] == '0 ? cycles_t'(1) :
                   cycles_t'(timing_i[TIMING_NCL_LSB+:TIMING_NCL_W]);
  assign nrcd    = cycles_t'(timing_i[TIMING_NRCD_LSB+:TIMING_NRCD_W]);
  assign nrp     = cycles_t'(timing_i[TIMING_NRP_LSB+:TIMING_NRP_W]);
  assign guard_d = nrp + nrp + nrp + nrcd + nrcd + ncl + cycles_t'(4);
  assign length  = cfg_i.cycles < guard_q ? guard_q : cfg_i.cycles;

  cycles_t    left_q, left_d;  // cycles of this turn that remain, this one included
  logic [2:0] turn_q, turn_d;
  logic       over;
  assign over = left_q <= cycles_t'(1);
  always_comb begin
    left_d = left_q - cycles_t'(1);
    turn_d = turn_q;
    if (over) begin
      left_d = length;
      turn_d = turn_q == cfg_i.last ? '0 : turn_q + 3'd1;
    end
    if (restart_i) begin  // rows are closed first
      left_d = nrp + cycles_t'(2);
      turn_d = cfg_i.last;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      left_q  <= cycles_t'(1);
      turn_q  <= '0;
      guard_q <= '1;
    end else begin
      left_q  <= left_d;
      turn_q  <= turn_d;
      guard_q <= guard_d;
    end
  end

  assign turn_o.slot  = cfg_i.order[turn_q];
  assign turn_o.open  = left_q >= guard_q;
  assign turn_o.close = over;

  // ---- what always holds ------------------------------------------------------------------------
  OpenEnds: assert property (@(posedge clk_i) disable iff (!rst_ni)
      !(turn_o.open && turn_o.close));
  OpenOnce: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && turn_o.open && !$past(turn_o.open) && $stable(guard_q) |-> $past(over));
  TurnHeld: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && !$past(turn_o.close) && !$past(restart_i) |-> $stable(turn_q));
endmodule
