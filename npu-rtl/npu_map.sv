// SPDX-License-Identifier: Apache-2.0
// npu_map: which rectangle of PEs each slot owns: staged in registers, applied all at once or not
// at all.
module npu_map #(
    parameter  int unsigned R  = 16,
    parameter  int unsigned C  = 16,
    parameter  int unsigned S  = 4,
    localparam int unsigned RW = $clog2(R + 1),
    localparam int unsigned CW = $clog2(C + 1)
) (
    input  logic          clk_i,
    input  logic          rst_ni,
    input  logic          stage_we_i,
    input  logic [2:0]    stage_idx_i,   // slot, to write and to read back
    input  logic [31:0]   stage_wdata_i, // register RECT
    output logic [31:0]   stage_rdata_o,
    input  logic          commit_i,
    // nothing of the slot is in the array, nor will be in the next cycle
    input  logic [S-1:0]  quiet_i,
    output logic [1:0]    result_o,      // of the last commit
    output logic [3:0]    slot_o,
    output logic [RW-1:0] r0_o [S],
    output logic [RW-1:0] h_o [S],
    output logic [CW-1:0] c0_o [S],
    output logic [CW-1:0] w_o [S]
);
  import npu_regs_pkg::*;
  if (R < 1 || R > npu_pkg::MaxRows)
    $fatal(1, "npu_map: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > npu_pkg::MaxCols)
    $fatal(1, "npu_map: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_map: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);

  typedef struct packed {
    logic [7:0] cols, rows, col, row;
  } rect_t;

  rect_t [S-1:0] stage_q, stage_d, map_q;
  rect_t [S-1:0] want;    // what a commit asks for,
  logic  [1:0]   verdict; // what it is told,
  logic  [3:0]   who;     // and of which slot

  function automatic logic out_of_range(input rect_t a);
    return a.rows != '0 && (a.cols == '0 || 32'(a.row) + 32'(a.rows) > R || 32'(a.col) +
        32'(a.cols) > C);
  endfunction

  function automatic logic overlap(input rect_t a, input rect_t b);
    return a.rows != '0 && b.rows != '0 &&
           9'(a.row) < 9'(b.row) + 9'(b.rows) && 9'(b.row) < 9'(a.row) + 9'(a.rows) &&
           9'(a.col) < 9'(b.col) + 9'(b.cols) && 9'(b.col) < 9'(a.col) + 9'(a.cols);
  endfunction

  always_comb begin
    stage_d = stage_q;
    for (int s = 0; s < int'(S); s++)
      if (stage_we_i && 32'(stage_idx_i) == s) stage_d[s] = stage_wdata_i;
    want    = '0;
    verdict = MAP_OK;
    who     = '0;
    if (commit_i) begin
      // A height of 0 takes the rectangle away, whatever else is written with it.
      for (int s = 0; s < int'(S); s++) if (stage_q[s].rows != '0) want[s] = stage_q[s];
      // The last finding stands: range before overlap before busy, low slots before high ones.
      for (int s = int'(S) - 1; s >= 0; s--)
        if (!quiet_i[s] && want[s] != map_q[s]) begin
          verdict = MAP_BUSY;
          who     = 4'(s);
        end
      for (int s = int'(S) - 1; s >= 0; s--)
        for (int t = 0; t < int'(S); t++)
          if (t != s && overlap(want[s], want[t])) begin
            verdict = MAP_OVERLAP;
            who     = 4'(s);
          end
      for (int s = int'(S) - 1; s >= 0; s--)
        if (out_of_range(want[s])) begin
          verdict = MAP_RANGE;
          who     = 4'(s);
        end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      stage_q  <= '0;
      map_q    <= '0;
      result_o <= MAP_OK;
      slot_o   <= '0;
    end else begin
      stage_q <= stage_d;
      if (commit_i && verdict == MAP_OK) map_q <= want;
      if (commit_i) begin
        result_o <= verdict;
        slot_o   <= who;
      end
    end
  end

  assign stage_rdata_o = 32'(stage_idx_i) < S ? stage_q[stage_idx_i] : '0;
  for (genvar s = 0; s < S; s++) begin : g_map
    assign r0_o[s] = map_q[s].row[RW-1:0];
    assign h_o[s]  = map_q[s].rows[RW-1:0];
    assign c0_o[s] = map_q[s].col[CW-1:0];
    assign w_o[s]  = map_q[s].cols[CW-1:0];
  end

  // ---- what always holds; arrays apart: Verilator 5.006 takes none in a property --------------
  logic disjoint, in_array, held;
  rect_t [S-1:0] was_q;
  logic  [S-1:0] was_quiet_q;
  always_ff @(posedge clk_i) begin
    was_q       <= map_q;
    was_quiet_q <= quiet_i;
  end
  always_comb begin
    disjoint = 1'b1;
    in_array   = 1'b1;
    held     = 1'b1;
    for (int s = 0; s < int'(S); s++) begin
      for (int t = 0; t < s; t++) if (overlap(map_q[s], map_q[t])) disjoint = 1'b0;
      if (out_of_range(map_q[s])) in_array = 1'b0;
      if (!was_quiet_q[s] && map_q[s] != was_q[s]) held = 1'b0;
    end
  end
  RectanglesDisjoint: assert property (@(posedge clk_i) disable iff (!rst_ni)
      disjoint);
  RectanglesInside: assert property (@(posedge clk_i) disable iff (!rst_ni)
      in_array);
  BusyKeepsRectangle: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) |-> held);
  RefusedChangesNothing: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && result_o != MAP_OK |-> map_q == was_q);
endmodule
