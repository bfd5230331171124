// SPDX-License-Identifier: Apache-2.0
// npu_conv_spread: the bytes of a beat's runs to PE rows, less their zero point; with F_GROUP to
// PEs, each column its own byte of a lane's vector.
module npu_conv_spread
  import npu_conv_pkg::*;
  import npu_spad_pkg::*;
#(
    parameter int R = 16, C = 16,
    localparam int RI = R > 1 ? $clog2(R) : 1, CI = C > 1 ? $clog2(C) : 1
) (
    input  logic           clk_i,
    input  conv_op_t       op_i,           // the row's
    input  logic           row_i,          // a beat of one leaves,
    input  logic           first_i,        // its first,
    input  run_t           runs_i,         // of so many runs,
    input  run_t           head_i,         // from this port on
    input  logic [127:0]   data_i [Ports],
    input  logic [R-1:0]   starts_i,       // lanes at which they begin; F_GROUP: lanes read
    input  logic [R-1:0]   in_i, keep_i,
    input  logic [CI-1:0]  win_i,
    input  logic [CI-1:0]  col_win_i [C],  // F_GROUP: where a column's byte is
    input  logic [3:0]     col_at_i [C],
    output logic [9*R-1:0] a_o,            // with the row's last beat
    output logic [9*C-1:0] g_o [R]
);
  if (R < 1 || R > int'(npu_pkg::MaxRows))
    $fatal(1, "npu_conv_spread: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_spread: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  function automatic logic [8:0] element(input logic [7:0] b);
    return {!op_i.a_u8 & b[7], b} - {!op_i.a_u8 & op_i.zpa[7], op_i.zpa};
  endfunction

  // One element a lane, from the run that the lane lies in.  Lanes behind the last run of a beat
  // get theirs with a later one.
  logic [9*R-1:0] part_q;
  always_comb begin
    run_t n;
    logic hit;
    n   = head_i;
    hit = 1'b0;
    a_o = first_i ? '0 : part_q;
    if (row_i && !op_i.group)
      for (int i = 0; i < R; i++) begin
        if (starts_i[i]) begin
          n   = hit ? port(n, 3'd1) : n;
          hit = 1'b1;
        end
        if (hit && in_i[i]) a_o[9*i +: 9] = element(data_i[n][8*(i%16) +: 8]);
      end
  end
  always_ff @(posedge clk_i) if (row_i && !op_i.group) part_q <= a_o;

  // F_GROUP: the rows' windows overlap.  What the last row had moves on to the lane that has it
  // now; the rest is read, a vector a lane, and each column takes its byte.
  logic [9*C-1:0] window_q [R], window [R], vector [Ports], mine;
  logic [1:0]     shift;
  assign shift = lanes(op_i);
  always_comb begin
    run_t n;
    mine = '0;
    n    = '0;
    for (int k = 0; k < Ports; k++) vector[k] = '0;
    for (int i = 0; i < R; i++) window[i] = '0;
    if (row_i && op_i.group) begin
      for (int j = 0; j < C; j++) if (col_win_i[j] == win_i) mine[9*j +: 9] = '1;
      for (int k = 0; k < Ports; k++)
        if (run_t'(k) < runs_i)
          for (int j = 0; j < C; j++)
            vector[k][9*j +: 9] =
                element(data_i[port(head_i, run_t'(k))][{col_at_i[j], 3'd0} +: 8]);
      for (int i = 0; i < R; i++) begin
        if (!first_i) window[i] = window_q[i];
        else
          for (int s = 1; s <= 2; s++)
            if (shift == 2'(s) && i + s < R && keep_i[i])
              window[i] = window_q[RI'(unsigned'(i + s))];
        if (starts_i[i]) begin
          window[i] = (window[i] & ~mine) | (vector[n] & mine);
          n         = n + 3'd1;
        end
      end
    end
  end
  always_ff @(posedge clk_i) if (row_i && op_i.group) window_q <= window;
  assign g_o = window;

  // ---- what always holds ------------------------------------------------------------------------
  RunsOfLanes: assert property (@(posedge clk_i) disable iff (!row_i)
      32'(runs_i) == $countones(starts_i));
  NotReadTwice: assert property (@(posedge clk_i) disable iff (!row_i)
      (starts_i & keep_i) == '0);
endmodule
