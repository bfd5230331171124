// SPDX-License-Identifier: Apache-2.0
// npu_conv_order: numbers of the operations under way: which one each block of npu_conv works on,
// and when it goes on to the next.
module npu_conv_order
  import npu_conv_pkg::*;
(
    input  logic clk_i, rst_ni, kill_i,
    input  logic serial_i,                 // one at a time
    input  logic frozen_i,                 // none begins
    input  logic start_i,                  // another comes,
    input  logic behind_i,                 // which reads what an older one writes
    input  logic retire_i,                 // the oldest is over
    output logic ready_o,                  // there is a place for another
    // each block: its last of an operation comes now, or it has none
    input  logic weights_on_i, weights_last_i, rows_idle_i, folds_on_i, folds_end_i, streamed_i,
    input  logic computed_i,
    output logic weights_start_o, rows_start_o, folds_start_o,
    // the next to come in; the next whose weights are asked for, whose rows are asked for, that is
    // cut into folds; the first that is not all streamed, not over; whose rows are being loaded
    output seq_t in_o, weights_o, rows_o, folds_o, streamed_o, head_o, loading_o,
    output logic behind_o                  // that one reads what an older one has yet to write
);
  seq_t       in_q, weights_q, rows_q, folds_q, streamed_q, computed_q, head_q;
  seq_t       in_d, weights_d, rows_d, folds_d, streamed_d, computed_d, head_d;
  logic [3:0] behind_q;

  // What is ahead in SERIAL mode would make folds longer.
  assign ready_o         = serial_i ? in_q == head_q : seq_t'(in_q - head_q) < 2'd3;
  assign weights_start_o = weights_q != in_q && !weights_on_i && !frozen_i;
  assign rows_start_o    = rows_q != in_q && rows_idle_i && !frozen_i
                           && !(behind_q[rows_q] && seq_t'(rows_q - head_q) > 2'd1);
  assign folds_start_o   = folds_q != in_q && !folds_on_i && !frozen_i;
  assign in_o            = in_q;
  assign weights_o       = weights_q;
  assign rows_o          = rows_q;
  assign folds_o         = folds_q;
  assign streamed_o      = streamed_q;
  assign head_o          = head_q;
  assign loading_o       = rows_q - 2'd1;
  assign behind_o        = behind_q[loading_o] && loading_o != head_q;

  always_comb begin
    in_d       = in_q + 2'(start_i);
    weights_d  = weights_q + 2'(weights_last_i);
    rows_d     = rows_q + 2'(rows_start_o);
    folds_d    = folds_q + 2'(folds_end_i);
    streamed_d = streamed_q + 2'(streamed_i);
    computed_d = computed_q + 2'(computed_i);
    head_d     = head_q + 2'(retire_i);
  end
  always_ff @(posedge clk_i) begin
    if (start_i) behind_q[in_q] <= behind_i;
    if (kill_i || !rst_ni) begin
      in_q       <= '0;
      weights_q  <= '0;
      rows_q     <= '0;
      folds_q    <= '0;
      streamed_q <= '0;
      computed_q <= '0;
      head_q     <= '0;
    end else begin
      in_q       <= in_d;
      weights_q  <= weights_d;
      rows_q     <= rows_d;
      folds_q    <= folds_d;
      streamed_q <= streamed_d;
      computed_q <= computed_d;
      head_q     <= head_d;
    end
  end

  // ---- what always holds ------------------------------------------------------------------------
  // Each number is at most what the one before it in the order of work is.
  logic ordered;
  assign ordered = seq_t'(computed_q - head_q) <= seq_t'(streamed_q - head_q)
                   && seq_t'(streamed_q - head_q) <= seq_t'(rows_q - head_q)
                   && seq_t'(streamed_q - head_q) <= seq_t'(folds_q - head_q)
                   && seq_t'(folds_q - head_q) <= seq_t'(in_q - head_q)
                   && seq_t'(rows_q - head_q) <= seq_t'(in_q - head_q)
                   && seq_t'(weights_q - head_q) <= seq_t'(in_q - head_q);
  operations_in_order: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i) ordered)
      else $error("a block is ahead of the one it gets its work from");
  no_operation_too_many: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      start_i |-> ready_o) else $error("an operation comes where there is no place for it");
  retired_when_computed: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      retire_i |-> computed_q != head_q)
      else $error("an operation is over that has not been computed");
  ended_when_begun: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      !(weights_last_i && !weights_on_i) && !(folds_end_i && !folds_on_i))
      else $error("a block ends an operation that it has not begun");
endmodule
