// SPDX-License-Identifier: Apache-2.0
// npu_report: tells benches and traces of each fold: its slot, its shape, and from the first cycle
// of its weight load to the last of its accumulation.  Bound to npu_conv in a model; no part of it.
module npu_report
  import npu_conv_pkg::*;
#(
    parameter int R = 16, C = 16,
    localparam int FI = $clog2(R + C + 2) + 1  // folds in flight
) (
    input logic        clk_i, rst_ni, clear_i,
    input logic [2:0]  id_i,               // the slot
    input logic [63:0] time_i,
    input logic        load_i,             // a fold's weights begin to load
    input logic        stream_i,           // its rows begin to stream
    input fold_t       fold_i,
    input logic        done_i              // its last result is accumulated
);
  import "DPI-C" function void npu_dpi_fold(input int slot, input int rows, input int cols,
                                            input int t, input longint start, input longint end_);
  typedef struct packed {
    logic [63:0] start;
    dim_t        kr, nc;
    rows_t       t;
  } report_t;
  report_t       fold_q [1 << FI];
  logic [63:0]   start_q;
  logic [FI-1:0] head_q, tail_q;

  always_ff @(posedge clk_i) begin
    if (load_i) start_q <= time_i;
    if (stream_i) begin
      fold_q[tail_q] <= '{start: start_q, kr: fold_i.at.sums.kr, nc: fold_i.at.sums.nc,
                          t: fold_i.at.t};
      tail_q         <= tail_q + 1'b1;
    end
    if (done_i) begin
      npu_dpi_fold(32'(id_i), 32'(fold_q[head_q].kr), 32'(fold_q[head_q].nc), 32'(fold_q[head_q].t),
                   fold_q[head_q].start, time_i);
      head_q <= head_q + 1'b1;
    end
    if (clear_i || !rst_ni) begin
      head_q <= '0;
      tail_q <= '0;
    end
  end

  no_end_without_start: assert property (@(posedge clk_i) disable iff (!rst_ni)
      done_i |-> head_q != tail_q) else $error("a fold ends that never began");
endmodule

bind npu_conv npu_report #(.R(R), .C(C)) u_report (
    .clk_i, .rst_ni, .id_i, .clear_i(cut), .time_i, .load_i(next_take),
    .stream_i(load_take), .fold_i(loaded), .done_i(fold_done));
