// SPDX-License-Identifier: Apache-2.0
// npu_vec_lut: a function of one byte, for 16 bytes a cycle: a table of 256 bytes, a copy of it a
// lane so that each is a memory of one write and one registered read.  32 bytes take two cycles;
// 32 bytes of table take four to be written.
module npu_vec_lut (
    input  logic         clk_i, rst_ni, clear_i,
    input  logic [255:0] data_i,
    input  logic         tab_v_i,            // data_i is 32 bytes of the table
    input  logic [2:0]   tab_at_i,
    output logic         tab_done_o,
    input  logic         v_i,                // data_i is to be looked up
    output logic         done_o,             // the piece is dealt with
    output logic         emit_o,
    output logic [255:0] res_o
);
  localparam int Lanes = 16, Words = 32;     // of 8 bytes

  logic [1:0]   quarter_q, quarter_d;        // of the piece of table
  logic         half_q, half_d;              // of the piece
  logic         v_q, upper_q;                // what the memories give
  logic [127:0] data, low_q, low_d, found;
  assign quarter_d  = tab_v_i ? quarter_q + 2'd1 : '0;
  assign half_d     = v_i && !half_q;
  assign tab_done_o = tab_v_i && quarter_q == 2'd3;
  assign done_o     = v_i && half_q;
  assign data       = half_q ? data_i[255:128] : data_i[127:0];
  assign low_d      = v_q && !upper_q ? found : low_q;
  assign emit_o     = v_q && upper_q;
  assign res_o      = {found, low_q};

  for (genvar i = 0; i < Lanes; i++) begin : g_copy
    logic [63:0] mem [Words];
    logic [63:0] word_q;
    logic [2:0]  at_q;
    always_ff @(posedge clk_i) begin
      if (tab_v_i) mem[{tab_at_i, quarter_q}] <= data_i[{quarter_q, 6'd0} +: 64];
      if (v_i) word_q <= mem[data[8*i+3 +: 5]];
      if (v_i) at_q <= data[8*i +: 3];
    end
    assign found[8*i +: 8] = word_q[{at_q, 3'd0} +: 8];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      quarter_q <= '0;
      half_q    <= 1'b0;
      v_q       <= 1'b0;
      upper_q   <= 1'b0;
      low_q     <= '0;
    end else begin
      quarter_q <= quarter_d;
      half_q    <= half_d;
      v_q       <= v_i;
      upper_q   <= half_q;
      low_q     <= low_d;
    end
  end

  TableOrData: assert property (@(posedge clk_i) disable iff (!rst_ni)
      !(tab_v_i && v_i));
  UpperBehindLower: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && v_q && upper_q |-> !$past(upper_q));
endmodule
