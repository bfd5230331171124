// SPDX-License-Identifier: Apache-2.0
// npu_conv_load: the fold whose weights go into the shadow weights, a row a cycle while they are
// there, behind the fold being streamed; and its lanes: what each PE row will be fed from, found by
// walking k = (ky, kx, c) alongside.  Lanes have two banks: this fold's, and the streamed fold's.
module npu_conv_load
  import npu_conv_pkg::*;
#(
    parameter int R = 16,
    localparam int RI = R > 1 ? $clog2(R) : 1
) (
    input  logic          clk_i, rst_ni, kill_i,
    input  conv_op_t      op_i,
    input  dim_t          h_i,
    // the next fold
    input  logic          fold_v_i,
    input  fold_t         fold_i,
    input  kernel_t       from_i,          // its first lane, if that is not k = 0
    input  logic          fold_ok_i,       // nothing else holds it up
    input  logic          room_i,          // a weight row may go
    output logic          fold_take_o,
    // weight rows
    input  logic          weights_v_i,
    output logic          weights_take_o,
    output logic          row_o,           // one goes to PE row row_at_o: the row taken, or zeros
    output logic [RI-1:0] row_at_o,
    // the loaded fold, for the streamer
    output logic          busy_o,          // rows are missing
    output logic          v_o,             // a fold is there, perhaps with rows missing
    output logic          done_o,          // it is there, or its last row goes now
    output fold_t         loaded_o,
    output reach_t        reach_o,         // input rows from a window's first to the last needed
    output logic          bank_o,
    input  logic          take_i,
    // lanes of the streamed fold
    input  logic          lanes_bank_i,
    output logic [R-1:0]  lane_v_o,
    output spad_t         lane_off_o [R],
    output reach_t        lane_dx_o [R], lane_dy_o [R],
    // runs: lanes whose bytes follow each other, 16 at most
    output logic [R-1:0]  lane_start_o,
    output logic [R-1:0]  lane_again_o,    // the lane holds next what a later one holds now
    output logic [3:0]    lane_more_o [R]  // of the lane that begins a run: bytes behind the first
);
  if (R < 1 || R > int'(npu_pkg::MaxRows))
    $fatal(1, "npu_conv_load: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  logic        v_d, v_q;
  logic        busy_d, busy_q;
  fold_t       fold_d, fold_q;
  dim_t        i_d, i_q;                   // PE row
  logic        bank_d, bank_q;
  reach_t      reach_d, reach_q;
  logic        last;
  // (ky, kx, c) of the weight row being loaded, as scratchpad and image offsets
  logic [15:0] c_d, c_q;
  logic [7:0]  kx_d, kx_q;
  spad_t       off_d, off_q, x_off_d, x_off_q, y_off_d, y_off_q;
  reach_t      dx_d, dx_q, dy_d, dy_q;
  spad_t       lane_off_q [2 << RI];
  reach_t      lane_dx_q [2 << RI], lane_dy_q [2 << RI];
  logic [R-1:0] lane_v_q [2], lane_start_q [2], lane_again_q [2];
  logic [3:0]  lane_more_q [2 << RI];
  // the run that the last lane was in
  logic [RI-1:0] run_at_d, run_at_q;
  logic [3:0]  run_more_d, run_more_q;
  spad_t       last_off_q;

  assign weights_take_o = busy_q && room_i && i_q < fold_q.at.sums.kr && weights_v_i;
  assign row_o          = busy_q && room_i && (i_q >= fold_q.at.sums.kr || weights_v_i);
  assign row_at_o       = RI'(i_q);
  assign last           = row_o && i_q == h_i - 1'b1;
  assign busy_o         = busy_q;
  assign v_o            = v_q;
  assign done_o         = v_q && (!busy_q || last);
  assign loaded_o       = fold_q;
  assign reach_o        = weights_take_o ? dy_q : reach_q;
  assign bank_o         = bank_q;
  assign fold_take_o    = fold_v_i && fold_ok_i && (!v_q || take_i) && (!busy_q || last);

  always_comb begin
    v_d     = v_q && !take_i;
    busy_d  = busy_q && !last;
    fold_d  = fold_q;
    i_d     = row_o ? i_q + 1'b1 : i_q;
    bank_d  = bank_q;
    reach_d = reach_o;
    if (fold_take_o) begin
      v_d    = 1'b1;
      busy_d = 1'b1;
      fold_d = fold_i;
      i_d    = '0;
      bank_d = !bank_q;
    end
    if (kill_i) begin
      v_d    = 1'b0;
      busy_d = 1'b0;
    end
  end

  always_comb begin
    c_d     = c_q;
    kx_d    = kx_q;
    off_d   = off_q;
    x_off_d = x_off_q;
    y_off_d = y_off_q;
    dx_d    = dx_q;
    dy_d    = dy_q;
    if (fold_take_o && fold_i.first) begin
      c_d     = '0;
      kx_d    = '0;
      off_d   = '0;
      x_off_d = '0;
      y_off_d = '0;
      dx_d    = '0;
      dy_d    = '0;
      if (fold_i.at.sums.k != 0)
        {c_d, kx_d, off_d, x_off_d, y_off_d, dx_d, dy_d} = from_i;
    end else if (weights_take_o) begin
      if (c_q + 16'd1 != op_i.kcin) begin
        c_d   = c_q + 16'd1;
        off_d = off_q + 1'b1;
      end else begin
        c_d = '0;
        if (kx_q + 8'd1 != op_i.kw) begin
          kx_d    = kx_q + 8'd1;
          dx_d    = dx_q + reach_t'(op_i.dx);
          x_off_d = x_off_q + op_i.kstep_x;
        end else begin
          kx_d    = '0;
          dx_d    = '0;
          x_off_d = '0;
          dy_d    = dy_q + reach_t'(op_i.dy);
          y_off_d = y_off_q + op_i.kstep_y;
        end
        off_d = y_off_d + x_off_d;
      end
    end
    if (fold_take_o && fold_i.new_panel) off_d = '0;
  end

  always_ff @(posedge clk_i) begin
    v_q     <= rst_ni && v_d;
    busy_q  <= rst_ni && busy_d;
    bank_q  <= rst_ni && bank_d;
    fold_q  <= fold_d;
    i_q     <= i_d;
    reach_q <= reach_d;
    c_q     <= c_d;
    kx_q    <= kx_d;
    off_q   <= off_d;
    x_off_q <= x_off_d;
    y_off_q <= y_off_d;
    dx_q    <= dx_d;
    dy_q    <= dy_d;
  end

  always_ff @(posedge clk_i) begin
    if (fold_take_o) lane_v_q[bank_d] <= '0;
    if (row_o) begin
      lane_off_q[{bank_q, row_at_o}] <= off_q;
      lane_dx_q[{bank_q, row_at_o}]  <= dx_q;
      lane_dy_q[{bank_q, row_at_o}]  <= dy_q;
      lane_v_q[bank_q][row_at_o]     <= weights_take_o;
    end
  end
  logic start_d, again_d;
  always_comb begin
    run_at_d   = row_at_o;
    run_more_d = '0;
    if (i_q != 0 && off_q == last_off_q + 1'b1 && run_more_q != 4'd15) begin
      run_at_d   = run_at_q;
      run_more_d = run_more_q + 1'b1;
    end
    start_d = run_more_d == 0;
    again_d = 9'(op_i.sx) + 9'(kx_q) < 9'(op_i.kw);
  end
  always_ff @(posedge clk_i)
    if (row_o) begin
      run_at_q   <= run_at_d;
      run_more_q <= run_more_d;
      last_off_q <= off_q;
      lane_start_q[bank_q][row_at_o]    <= start_d;
      lane_again_q[bank_q][row_at_o]    <= again_d;
      lane_more_q[{bank_q, run_at_d}]   <= run_more_d;
    end
  assign lane_v_o     = lane_v_q[lanes_bank_i];
  assign lane_start_o = lane_start_q[lanes_bank_i];
  assign lane_again_o = lane_again_q[lanes_bank_i];
  for (genvar i = 0; i < R; i++) begin : g_lane
    assign lane_off_o[i] = lane_off_q[{lanes_bank_i, RI'(i)}];
    assign lane_dx_o[i]  = lane_dx_q[{lanes_bank_i, RI'(i)}];
    assign lane_dy_o[i]  = lane_dy_q[{lanes_bank_i, RI'(i)}];
    assign lane_more_o[i] = lane_more_q[{lanes_bank_i, RI'(i)}];
  end

  // ---- what always holds ------------------------------------------------------------------------
  RowsOfAFold: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i) busy_q |-> v_q);
  RowOfTheRectangle: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      busy_q |-> i_q < h_i && fold_q.at.sums.kr != 0 && fold_q.at.sums.kr <= h_i);
  TakenWhenDone: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      take_i |-> done_o);
endmodule
