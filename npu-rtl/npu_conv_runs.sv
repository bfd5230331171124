// SPDX-License-Identifier: Apache-2.0
// npu_conv_runs: what of an activation row is read now: runs of bytes side by side, 6 at most, or,
// with F_GROUP, a vector a PE row.  A row of more is taken in several beats.
module npu_conv_runs
  import npu_conv_pkg::*;
  import npu_spad_pkg::*;
#(
    parameter int R = 16, C = 16,
    localparam int RI = R > 1 ? $clog2(R) : 1, CI = C > 1 ? $clog2(C) : 1
) (
    input  logic          clk_i, rst_ni, kill_i,
    input  conv_op_t      op_i,
    input  logic          row_i,           // there is one, which stays until it is taken
    input  logic          fresh_i,         // its window does not follow the last row's
    input  walk_t         window_i,
    input  logic [R-1:0]  lane_v_i,
    input  logic [R-1:0]  lane_start_i,    // lane begins a run
    input  logic [R-1:0]  lane_again_i,    // what it holds a later lane held a row before
    input  reach_t        lane_dx_i [R], lane_dy_i [R],
    input  logic [CI-1:0] wins_i,          // F_GROUP: windows of 16 bytes, less one
    // a beat, if it goes
    input  logic          go_i,
    output logic          first_o, last_o, // of the row
    output run_t          runs_o,          // so many,
    output logic [RI-1:0] lane_o [Ports],  // which begin at these lanes;
    output logic [R-1:0]  pick_o,          // the same; F_GROUP: lanes read
    output logic [R-1:0]  in_o, keep_o,    // lanes in the image; lanes of the last row used again
    output logic [CI-1:0] win_o            // F_GROUP: of that window
);
  if (R < 1 || R > int'(npu_pkg::MaxRows))
    $fatal(1, "npu_conv_runs: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_runs: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  logic [R-1:0]  keep, want, done_q, done_d;
  logic [CI-1:0] win_q, win_d;
  logic          all, last_win;
  logic [1:0]    shift;
  assign shift = lanes(op_i);

  logic [20:0] y;
  logic [17:0] x;
  always_comb begin
    in_o = '0;
    keep = '0;
    y    = '0;
    x    = '0;
    if (row_i)
      for (int i = 0; i < R; i++) begin
        // a negative coordinate is a huge unsigned one
        y       = 21'(unsigned'(window_i.iy + 21'(signed'({1'b0, lane_dy_i[i]}))));
        x       = 18'(unsigned'(window_i.ix + 18'(signed'({1'b0, lane_dx_i[i]}))));
        in_o[i] = lane_v_i[i] && (op_i.cut || (y < 21'(op_i.h) && x < 18'(op_i.w)));
        for (int s = 1; s <= 2; s++)
          if (op_i.group && !fresh_i && shift == 2'(s) && lane_again_i[i] && i + s < R)
            keep[i] = lane_v_i[RI'(unsigned'(i + s))];
      end
  end

  always_comb begin
    logic any;
    any  = 1'b0;
    want = '0;
    if (op_i.group) want = in_o & ~keep;
    else
      for (int i = R - 1; i >= 0; i--) begin
        any |= in_o[i];
        if (lane_start_i[i]) begin
          want[i] = any;
          any     = 1'b0;
        end
      end
  end

  always_comb begin
    pick_o = '0;
    runs_o = '0;
    all    = 1'b1;
    for (int k = 0; k < Ports; k++) lane_o[k] = '0;
    if (row_i)
      for (int i = 0; i < R; i++)
        if (want[i] && !done_q[i]) begin
          if (runs_o != run_t'(Ports)) begin
            pick_o[i]      = 1'b1;
            lane_o[runs_o] = RI'(i);
            runs_o         = runs_o + 3'd1;
          end else all = 1'b0;
        end
  end
  assign last_win = !op_i.group || win_q == wins_i;
  assign first_o  = done_q == '0 && win_q == '0;
  assign last_o   = all && last_win;
  assign keep_o   = keep & in_o;
  assign win_o    = win_q;

  always_comb begin
    done_d = all ? '0 : done_q | pick_o;
    win_d  = !all ? win_q : last_win ? '0 : win_q + 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (go_i) begin
      done_q <= done_d;
      win_q  <= win_d;
    end
    if (kill_i || !rst_ni) begin
      done_q <= '0;
      win_q  <= '0;
    end
  end

  // ---- what always holds ------------------------------------------------------------------------
  Steady: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      row_i && !(go_i && last_o) |=> row_i);
  RowsWhole: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      !row_i |-> first_o);
  Counted: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      32'(runs_o) == $countones(pick_o));
endmodule
