// SPDX-License-Identifier: Apache-2.0
// npu_array: R x C weight-stationary PEs shared by S slots as edge-tap rectangles.
//
// A PE takes its activation from its west neighbour, or on its rectangle's west edge from the
// slot's feeder, or, in a grouped convolution, from the feeder's row bus; its partial sum from the
// north neighbour, or zero on the north edge.  Column sums are tapped at the south edge. Weights
// are double-buffered: the load token (ld) captures a new weight into the shadow, the swap token
// (sw) makes the shadow the one that multiplies; both ride the west-to-east wavefront.  The array
// never stalls.
module npu_array #(
    parameter int R = 16, C = 16, S = 4,
    localparam int AW = 9, RW = $clog2(R + 1), CW = $clog2(C + 1)
) (
    input  logic                 clk_i,
    input  logic [RW-1:0]        r0_i [S], h_i [S],
    input  logic [CW-1:0]        c0_i [S], w_i [S],
    input  logic signed [AW-1:0] a_i [S][R],       // activation for slot row i, already skewed by i
    input  logic                 group_i [S],      // the slot's PEs take their activations from g_i
    input  logic [AW*R*C-1:0]    g_i [S],          // by slot row and column, already skewed by both
    input  logic [R-1:0]         sw_i [S],         // swap token into slot row i
    input  logic [R-1:0]         ld_i [S],         // load token into slot row i
    // weight bus of slot column j, already skewed by j
    input  logic signed [AW-1:0] w_data_i [S][C],
    output logic signed [31:0]   p_o [S][C]        // south-edge taps
);
  if (R < 1 || R > npu_pkg::MaxRows)
    $fatal(1, "npu_array: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > npu_pkg::MaxCols)
    $fatal(1, "npu_array: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_array: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);

  localparam int RI = R > 1 ? $clog2(R) : 1, CI = C > 1 ? $clog2(C) : 1;
  // From a PE to the next in the row, and to the one below:
  localparam int East = C > 1 ? 1 : 0, South = R > 1 ? 1 : 0;

  logic signed [AW-1:0] a_q [R][C], a_d [R][C], w_q [R][C], w_d [R][C], wn_q [R][C], wn_d [R][C];
  logic signed [31:0]   p_q [R][C], p_d [R][C], pn [R][C];
  logic [C-1:0]         sw_q [R], sw_d [R], ld_q [R], ld_d [R];

  // ---- where the slots are ---------------------------------------------------------------------
  // Which rows and columns are a slot's.  What a PE gets of it is looked up by its row first, which
  // is the same for a whole row of PEs, then by its column.
  logic [R-1:0] rows [S];
  logic [C-1:0] cols [S];
  always_comb
    for (int s = 0; s < S; s++) begin
      rows[s] = ~(~R'(0) << h_i[s]) << r0_i[s];
      cols[s] = ~(~C'(0) << w_i[s]) << c0_i[s];
    end

  // ---- activations go east ---------------------------------------------------------------------
  logic [AW*C-1:0] g;  // of a row of PEs
  always_comb begin
    g = '0;
    for (int r = 0; r < R; r++) begin
      a_d[r][East:C-1] = a_q[r][0:C-1-East];
      a_d[r][0] = '0;
    end
    for (int s = 0; s < S; s++)
      for (int r = 0; r < R; r++)
        if (rows[s][r]) begin
          if (!group_i[s]) a_d[r][CI'(c0_i[s])] = a_i[s][RI'(RW'(r) - r0_i[s])];
          else begin
            g = g_i[s][32'(RI'(RW'(r) - r0_i[s])) * AW * C +: AW*C];
            for (int c = 0; c < C; c++)
              if (cols[s][c]) a_d[r][c] = g[32'(CI'(CW'(c) - c0_i[s])) * AW +: AW];
          end
        end
  end

  // ---- tokens with them ------------------------------------------------------------------------
  always_comb begin
    for (int r = 0; r < R; r++) begin
      sw_d[r] = C'({sw_q[r], 1'b0});
      ld_d[r] = C'({ld_q[r], 1'b0});
    end
    for (int s = 0; s < S; s++)
      for (int r = 0; r < R; r++)
        if (rows[s][r]) begin
          sw_d[r][CI'(c0_i[s])] = sw_i[s][RI'(RW'(r) - r0_i[s])];
          ld_d[r][CI'(c0_i[s])] = ld_i[s][RI'(RW'(r) - r0_i[s])];
        end
  end

  // ---- weights come down -----------------------------------------------------------------------
  always_comb begin
    wn_d = wn_q;
    for (int s = 0; s < S; s++)
      for (int r = 0; r < R; r++)
        if (rows[s][r] && ld_d[r] != '0)
          for (int c = 0; c < C; c++)
            if (cols[s][c] && ld_d[r][c]) wn_d[r][c] = w_data_i[s][CI'(CW'(c) - c0_i[s])];
  end

  always_comb begin
    w_d = w_q;
    for (int r = 0; r < R; r++)
      if (sw_d[r] != '0)
        for (int c = 0; c < C; c++)
          if (sw_d[r][c]) w_d[r][c] = wn_q[r][c];
  end

  // ---- sums go south ---------------------------------------------------------------------------
  always_comb begin
    pn[South:R-1] = p_q[0:R-1-South];
    for (int c = 0; c < C; c++) pn[0][c] = '0;
    for (int s = 0; s < S; s++)
      for (int r = 0; r < R; r++)
        if (RW'(r) == r0_i[s])
          for (int c = 0; c < C; c++)
            if (cols[s][c]) pn[r][c] = '0;
  end

  for (genvar r = 0; r < R; r++) begin : g_row
    for (genvar c = 0; c < C; c++) begin : g_pe
      assign p_d[r][c] = pn[r][c] + 32'(a_d[r][c] * w_d[r][c]);
    end
  end

  always_ff @(posedge clk_i) begin
    a_q  <= a_d;
    sw_q <= sw_d;
    ld_q <= ld_d;
    w_q  <= w_d;
    wn_q <= wn_d;
    p_q  <= p_d;
  end

  always_comb
    for (int s = 0; s < S; s++)
      for (int j = 0; j < C; j++)
        p_o[s][j] = p_q[RI'(r0_i[s] + h_i[s] - RW'(1))][CI'(c0_i[s] + CW'(j))];

  // ---- what the slots keep to; there is no reset here, and nothing to hold before one ----------
  logic one_load, in_array;
  always_comb begin
    one_load = 1'b1;
    in_array   = 1'b1;
    for (int s = 0; s < S; s++) begin
      if ((ld_i[s] & (ld_i[s] - R'(1))) != '0) one_load = 1'b0;
      if (32'(r0_i[s]) + 32'(h_i[s]) > R || 32'(c0_i[s]) + 32'(w_i[s]) > C) in_array = 1'b0;
    end
  end
  OneLoadToken: assert property (@(posedge clk_i) one_load);
  RectanglesInside: assert property (@(posedge clk_i) in_array);
endmodule
