// SPDX-License-Identifier: Apache-2.0
// npu_stores: what either unit or the sequencer stores, one at a time, cut at line ends.
module npu_stores (
    input  logic         clk_i, kill_i,
    // the array's; mark: the last of a panel, behind which the next panel's first output lies
    input  logic         c_v_i, c_mark_i,
    input  logic [31:0]  c_va_i, c_upto_i,
    input  logic [5:0]   c_len_i,
    input  logic [255:0] c_data_i,
    output logic         c_rdy_o,
    input  logic         v_v_i,              // the vector unit's
    input  logic [31:0]  v_va_i,
    input  logic [5:0]   v_len_i,
    input  logic [255:0] v_data_i,
    output logic         v_rdy_o,
    input  logic         m_v_i,              // sums that are moved
    input  logic [31:0]  m_va_i,
    input  logic [5:0]   m_len_i,
    input  logic [255:0] m_data_i,
    output logic         m_rdy_o,
    // the sequencer's: a word, or the context that was kept
    input  logic         word_v_i, kept_v_i,
    input  logic [31:0]  word_va_i,
    input  logic [63:0]  word_i,
    output logic         s_rdy_o,
    input  logic         keep_i,             // with kill_i: a context, which goes with that
    input  logic [31:0]  keep_va_i,
    input  logic [255:0] keep_data_i,
    // a piece of the store at hand; last: of it
    output logic         v_o, last_o, mark_o,
    output logic [31:0]  va_o, upto_o,
    output logic [6:0]   len_o,
    output logic [255:0] data_o,
    input  logic         gnt_i
);
  logic         v_q, v_d, mark_q, mark_d, free;
  logic [31:0]  va_q, va_d, upto_q;
  logic [5:0]   len_q, len_d;
  logic [255:0] data_q, data_d;
  logic [6:0]   room;
  assign room   = 7'd64 - 7'(va_q[5:0]);
  assign len_o  = 7'(len_q) < room ? 7'(len_q) : room;
  assign last_o = len_o == 7'(len_q);
  assign free   = !v_q || (gnt_i && last_o);
  assign {v_o, mark_o, va_o, upto_o, data_o} = {v_q, mark_q, va_q, upto_q, data_q};

  assign c_rdy_o = free;
  assign v_rdy_o = free && !c_v_i;
  assign m_rdy_o = free && !c_v_i && !v_v_i;
  assign s_rdy_o = free && !c_v_i && !v_v_i;

  always_comb begin
    v_d    = v_q;
    mark_d = mark_q;
    {va_d, len_d, data_d} = {va_q, len_q, data_q};
    if (gnt_i && !last_o) begin
      va_d   = va_q + 32'(len_o);
      len_d  = len_q - 6'(len_o);
      data_d = data_q >> {len_o, 3'd0};
    end
    if (free) begin
      v_d    = c_v_i || v_v_i || m_v_i || word_v_i || kept_v_i;
      mark_d = c_v_i && c_mark_i;
      if (c_v_i) {va_d, len_d, data_d} = {c_va_i, c_len_i, c_data_i};
      else if (v_v_i) {va_d, len_d, data_d} = {v_va_i, v_len_i, v_data_i};
      else if (m_v_i) {va_d, len_d, data_d} = {m_va_i, m_len_i, m_data_i};
      else if (word_v_i) {va_d, len_d, data_d} = {word_va_i, 6'd8, 256'(word_i)};
    end
    if (keep_i) {va_d, len_d, data_d} = {keep_va_i, 6'd32, keep_data_i};
    if (kill_i) v_d = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    v_q    <= v_d;
    mark_q <= mark_d;
    va_q   <= va_d;
    len_q  <= len_d;
    data_q <= data_d;
    if (free) upto_q <= c_upto_i;
  end

  stable_until_taken: assert property (@(posedge clk_i) disable iff (kill_i)
      v_o && !gnt_i |=> v_o && $stable(va_o) && $stable(len_o) && $stable(data_o))
      else $error("a store changed before it was taken");
endmodule
