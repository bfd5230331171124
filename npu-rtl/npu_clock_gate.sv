// SPDX-License-Identifier: Apache-2.0
// npu_clock_gate: a clock that stands still while en_i is low.  en_i is taken while clk_i is low,
// so that no pulse is cut.  A technology has a cell for it.
module npu_clock_gate (
    input  logic clk_i,
    input  logic en_i,
    output logic clk_o
);
  logic en_q;
  always_ff @(negedge clk_i) en_q <= en_i;
  assign clk_o = clk_i & en_q;
endmodule
