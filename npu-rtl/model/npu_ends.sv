// SPDX-License-Identifier: Apache-2.0
// npu_ends: tells who records durations of each descriptor that a slot has completed.
module npu_ends (
    input logic        clk_i, rst_ni,
    input logic [2:0]  id_i,               // the slot
    input logic        done_i,
    input logic [31:0] head_i              // its number
);
  import "DPI-C" function void npu_dpi_desc(input int slot, input int head);
  always_ff @(posedge clk_i) if (done_i && rst_ni) npu_dpi_desc(32'(id_i), head_i);
endmodule

bind npu_slot npu_ends u_ends (
    .clk_i, .rst_ni, .id_i, .done_i(state == npu_slot_pkg::SDone), .head_i(head));
