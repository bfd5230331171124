// SPDX-License-Identifier: Apache-2.0
// npu_faults: what stops a slot by itself: the first of what goes wrong in a cycle, and where.
//
// A fault of what is ahead - a descriptor not yet begun, an operation that is not the oldest -
// waits until that is the current one: only then is it sure to come.  Of several the oldest's
// counts.  An operation that is over may still load: rows of its input that no window has.
module npu_faults
  import npu_regs_pkg::*;
  import npu_slot_pkg::*;
(
    input  logic              clk_i, rst_ni,
    input  logic              kill_i,       // what is under way is dropped
    input  logic              kill_now_i,   // by PREEMPT: no fault
    input  logic              restart_i,    // the ring is set anew
    input  state_e            state_i,
    input  logic [31:0]       head_i, save_i,
    input  npu_conv_pkg::seq_t oldest_i,    // operation
    // of a translation: of a way, who asked, which FAULT_KIND
    input  npu_pkg::ways_t    mmu_i,
    input  npu_mmu_pkg::ask_t load_i, store_i,
    input  logic [3:0]        load_kind_i, store_kind_i,
    input  logic              denied_i,     // CH_MASK took a channel away
    input  logic              desc_i,       // of the descriptor that begins,
    input  logic [3:0]        desc_kind_i,
    input  logic [31:0]       desc_addr_i,
    input  logic              from_i,       // of the context that it goes on from
    input  logic              stuck_i, stray_i, empty_i,  // found as it runs
    output logic              fault_o,
    output logic              late_o,       // a load's is kept until its turn comes; from now on
    output logic              waiting_o,    // one is kept
    output logic              lost_o,       // with late_o: it was the next descriptor's
    input  logic [11:0]       reg_addr_i,
    output logic [31:0]       reg_rdata_o   // 0 where it is another's register
);
  logic        late_v_q, late_desc_q, over, load_now, now, late_now, older;
  logic [1:0]  late_seq_q;
  logic [3:0]  late_kind_q;
  logic [31:0] late_va_q;
  assign lost_o    = load_i.tag == TagDesc;
  assign over      = load_i.seq == oldest_i - 2'd1;
  assign load_now  = lost_o ? state_i == SIdle || state_i == SFetch
                            : load_i.seq == oldest_i || over;
  assign late_o    = mmu_i.load && !load_now;
  assign now       = mmu_i.store || (mmu_i.load && !late_o);
  assign late_now  = late_v_q &&
      (late_desc_q ? state_i == SFetch : state_i == SRun && late_seq_q == oldest_i);
  assign waiting_o = late_v_q;
  assign older     = !lost_o && (late_desc_q ||
      2'(load_i.seq - oldest_i) < 2'(late_seq_q - oldest_i));
  always_ff @(posedge clk_i) begin
    if (late_o && (!late_v_q || older)) begin
      late_v_q    <= 1'b1;
      late_desc_q <= lost_o;
      late_seq_q  <= load_i.seq;
      late_kind_q <= load_kind_i;
      late_va_q   <= load_i.va;
    end
    if (kill_i || state_i == SStopping) late_v_q <= 1'b0;
  end
  assign fault_o   = now || late_now || desc_i || stuck_i || stray_i || empty_i || denied_i ||
      from_i;

  logic [3:0]  kind_d, kind_q;
  logic [31:0] addr_d, addr_q, desc_d, desc_q;
  always_comb begin
    {kind_d, addr_d, desc_d} = {kind_q, addr_q, desc_q};
    if (fault_o && !kill_now_i) begin
      desc_d = head_i + 32'(state_i == SDone);
      if (late_now) {kind_d, addr_d} = {late_kind_q, late_va_q};
      else if (mmu_i.store) {kind_d, addr_d} = {store_kind_i, store_i.va};
      else if (now) {kind_d, addr_d} = {load_kind_i, load_i.va};
      else if (denied_i) {kind_d, addr_d} = {4'(FAULT_CHANNEL), 32'hFFFFFFFF};
      else if (desc_i) {kind_d, addr_d} = {desc_kind_i, desc_addr_i};
      else if (from_i) {kind_d, addr_d} = {4'(FAULT_CONTEXT), save_i};
      else begin                            // the word that says what cannot be
        kind_d = 4'(FAULT_FIELD);
        addr_d = stray_i ? 32'(DESC_ADDR_P_WORD) : stuck_i ? 32'(DESC_SPS_WORD)
                                                           : 32'(DESC_PT_WORD);
      end
    end
    if (restart_i) kind_d = 4'(FAULT_NONE);
  end
  always_ff @(posedge clk_i)
    if (!rst_ni) {kind_q, addr_q, desc_q} <= '0;
    else {kind_q, addr_q, desc_q} <= {kind_d, addr_d, desc_d};
  always_comb
    unique case (reg_addr_i)
      SLOT_FAULT_KIND_OFF: reg_rdata_o = 32'(kind_q);
      SLOT_FAULT_ADDR_OFF: reg_rdata_o = addr_q;
      SLOT_FAULT_DESC_OFF: reg_rdata_o = desc_q;
      default:             reg_rdata_o = '0;
    endcase

  // ---- what always holds ------------------------------------------------------------------------
  KindSaid: assert property (@(posedge clk_i) disable iff (!rst_ni)
      fault_o && !kill_now_i && !restart_i |-> kind_d != 4'(FAULT_NONE));
  LateOfYounger: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      late_v_q && !late_desc_q && state_i == SRun |-> late_seq_q != 2'(oldest_i - 2'd1));
  KeptUntilDue: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(late_v_q) && !$past(kill_i) && $past(state_i) != SStopping
      |-> late_v_q);
endmodule
