// SPDX-License-Identifier: Apache-2.0
// npu_ring: a slot's ring of descriptors: its registers; the descriptor at HEAD; and the next,
// fetched while that one runs.
module npu_ring
  import npu_slot_pkg::*;
  import npu_regs_pkg::*;
(
    input  logic         clk_i, rst_ni,
    input  logic         kill_i,             // what is fetched is dropped
    input  logic         reg_we_i,
    input  logic [11:0]  reg_addr_i,
    input  logic [31:0]  reg_wdata_i,
    output logic [31:0]  reg_rdata_o,        // 0 where it is another's register
    output logic         restart_o,          // the ring is set anew
    input  state_e       state_i,
    input  logic [31:0]  head_i,
    input  logic         quiet_i,            // nothing more is fetched
    input  logic [1:0]   under_way_i,        // descriptors from HEAD on that have begun, at least 1
    input  logic         ahead_i,            // the next one begins
    output logic         empty_o,            // HEAD has come to TAIL
    output logic [511:0] desc_o, next_o,     // at HEAD, from SDecode on; the next
    output logic         next_v_o,
    // memory
    output logic         busy_o,             // one is asked for, and has not come
    output logic         ask_v_o,
    output logic [31:0]  ask_va_o,
    input  logic         ask_gnt_i, ask_lost_i,  // granted, or none will come
    input  logic         back_i,
    input  logic [511:0] data_i
);
  logic [31:0] tail_d, tail_q;
  logic [3:0]  log2_d, log2_q;
  logic [31:6] base_d, base_q;
  assign restart_o = reg_we_i && reg_addr_i == SLOT_RING_BASE_OFF;
  assign base_d    = restart_o ? reg_wdata_i[31:6] : base_q;
  assign log2_d    = reg_we_i && reg_addr_i == SLOT_RING_LOG2_OFF ? reg_wdata_i[3:0] : log2_q;
  assign tail_d    = restart_o ? '0 : reg_we_i && reg_addr_i == SLOT_TAIL_OFF ? reg_wdata_i
                                                                              : tail_q;
  always_ff @(posedge clk_i)
    if (!rst_ni) begin
      tail_q <= '0;
      base_q <= '0;
      log2_q <= '0;
    end else begin
      tail_q <= tail_d;
      base_q <= base_d;
      log2_q <= log2_d;
    end
  always_comb
    unique case (reg_addr_i)
      SLOT_RING_BASE_OFF: reg_rdata_o = {base_q, 6'd0};
      SLOT_RING_LOG2_OFF: reg_rdata_o = 32'(log2_q);
      SLOT_HEAD_OFF:      reg_rdata_o = head_i;
      SLOT_TAIL_OFF:      reg_rdata_o = tail_q;
      default:            reg_rdata_o = '0;
    endcase

  logic       v_d, v_q, ask_d, ask_q, sent_d, sent_q, take, ask;
  logic [1:0] off;                           // the one asked for: at HEAD, or so many after it
  assign empty_o  = head_i == tail_q;
  assign off      = state_i == SIdle || state_i == SFetch ? 2'd0 : under_way_i;
  assign take     = state_i == SFetch && v_q;
  assign ask      = !ask_q && !v_q && !quiet_i && ((state_i == SIdle && !empty_o) ||
                    (state_i == SRun && head_i + 32'(off) != tail_q));
  assign ask_v_o  = ask_q && !sent_q;
  assign ask_va_o = {base_q, 6'd0} + (((head_i + 32'(off)) & ~(32'hFFFFFFFF << log2_q)) << 6);
  assign busy_o   = ask_q;
  assign next_v_o = v_q;
  always_comb begin
    v_d    = v_q;
    ask_d  = ask_q;
    sent_d = sent_q;
    if (ask) {ask_d, sent_d} = 2'b10;
    if (ask_gnt_i && ask_v_o) sent_d = 1'b1;
    if (ask_lost_i) ask_d = 1'b0;
    if (ahead_i || take) v_d = 1'b0;
    if (back_i) {v_d, ask_d} = 2'b10;
    if (kill_i) {v_d, ask_d, sent_d} = '0;
    // what lies in the ring may be another by then
    if (state_i == SStopped) v_d = 1'b0;
  end
  always_ff @(posedge clk_i) begin
    v_q    <= v_d;
    ask_q  <= ask_d;
    sent_q <= sent_d;
    if (back_i) next_o <= data_i;
    if (take) desc_o <= next_o;
  end

  // ---- what always holds ------------------------------------------------------------------------
  DescAwaited: assert property (@(posedge clk_i) disable iff (!rst_ni)
      back_i |-> ask_q && sent_q);
  OneAtATime: assert property (@(posedge clk_i) disable iff (!rst_ni) !(v_q && ask_q));
  TakenWhenThere: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      ahead_i |-> v_q);
endmodule
