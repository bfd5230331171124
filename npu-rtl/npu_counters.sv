// SPDX-License-Identifier: Apache-2.0
// npu_counters: a slot's counters, 64 bits each, in the order of the table of registers, and what
// they were at the last snapshot.
module npu_counters (
    input  logic        clk_i, rst_ni,      // a clock that never stops
    input  logic        snap_i,
    // what the cycle is counted as: the first of these that is set, else STALL_SEQ
    input  logic        active_i, stall_bank_i, stall_a_i, stall_w_i, stall_out_i, idle_i,
    input  logic        row_i, fold_i, done_i, walk_i,
    input  logic [15:0] macs_i,             // of the row
    input  npu_pkg::ways_t acc_i,           // requests were taken
    input  logic [2:0]  load_beats_i, store_beats_i,
    input  logic [11:0] reg_addr_i,
    output logic [31:0] reg_rdata_o         // 0 where it is another register
);
  import npu_regs_pkg::*;
  typedef logic [$clog2(SLOT_CNT_COUNT)-1:0] index_t;
  logic [63:0] cnt_q [SLOT_CNT_COUNT], cnt_d [SLOT_CNT_COUNT], shadow_q [SLOT_CNT_COUNT];

  index_t class_now;
  always_comb begin
    class_now = index_t'(SLOT_CNT_STALL_SEQ_INDEX);
    if (active_i) class_now = index_t'(SLOT_CNT_ACTIVE_INDEX);
    else if (stall_bank_i) class_now = index_t'(SLOT_CNT_STALL_BANK_INDEX);
    else if (stall_a_i) class_now = index_t'(SLOT_CNT_STALL_A_INDEX);
    else if (stall_w_i) class_now = index_t'(SLOT_CNT_STALL_W_INDEX);
    else if (stall_out_i) class_now = index_t'(SLOT_CNT_STALL_OUT_INDEX);
    else if (idle_i) class_now = index_t'(SLOT_CNT_IDLE_INDEX);
  end

  always_comb begin
    for (int i = 0; i < int'(SLOT_CNT_COUNT); i++)
      cnt_d[i] = cnt_q[i] + 64'(class_now == index_t'(i));
    cnt_d[SLOT_CNT_CYCLES_INDEX] += 64'd1;
    if (row_i) begin
      cnt_d[SLOT_CNT_MACS_INDEX] += 64'(macs_i);
      cnt_d[SLOT_CNT_ROWS_INDEX] += 64'd1;
    end
    if (fold_i) cnt_d[SLOT_CNT_FOLDS_INDEX] += 64'd1;
    if (done_i) cnt_d[SLOT_CNT_DESCS_INDEX] += 64'd1;
    if (acc_i.load) cnt_d[SLOT_CNT_READ_BEATS_INDEX] += 64'(load_beats_i);
    if (acc_i.store) cnt_d[SLOT_CNT_WRITE_BEATS_INDEX] += 64'(store_beats_i);
    if (walk_i) cnt_d[SLOT_CNT_TLB_MISSES_INDEX] += 64'd1;
  end

  always_ff @(posedge clk_i)
    for (int i = 0; i < int'(SLOT_CNT_COUNT); i++)
      if (!rst_ni) begin
        cnt_q[i]    <= '0;
        shadow_q[i] <= '0;
      end else begin
        cnt_q[i] <= cnt_d[i];
        if (snap_i) shadow_q[i] <= cnt_q[i];
      end

  logic conserved;                          // apart: Verilator 5.006 takes no array in a property
  assign conserved = cnt_q[SLOT_CNT_CYCLES_INDEX]
                     == cnt_q[SLOT_CNT_ACTIVE_INDEX] + cnt_q[SLOT_CNT_STALL_A_INDEX]
                        + cnt_q[SLOT_CNT_STALL_W_INDEX] + cnt_q[SLOT_CNT_STALL_OUT_INDEX]
                        + cnt_q[SLOT_CNT_STALL_SEQ_INDEX] + cnt_q[SLOT_CNT_STALL_BANK_INDEX]
                        + cnt_q[SLOT_CNT_IDLE_INDEX];
  Conservation: assert property (@(posedge clk_i) disable iff (!rst_ni) conserved);

  logic        hit;
  index_t      at;
  logic [63:0] was;
  assign hit = reg_addr_i >= SLOT_CNT_CYCLES_OFF &&
      reg_addr_i < SLOT_CNT_CYCLES_OFF + 12'(8 * SLOT_CNT_COUNT);
  assign at  = index_t'((reg_addr_i - SLOT_CNT_CYCLES_OFF) >> 3);
  assign was = hit ? shadow_q[at] : '0;
  assign reg_rdata_o = reg_addr_i[2] ? was[63:32] : was[31:0];
endmodule
