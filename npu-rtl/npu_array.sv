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
    parameter int R = 16, C = 16, S = 4, AW = 9,
    localparam int RW = $clog2(R + 1), CW = $clog2(C + 1)
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
  if (AW < 2 || AW > 16) $fatal(1, "npu_array: AW is %0d, not 2..16", AW);

  localparam int NP = R * C, IW = NP > 1 ? $clog2(NP) : 1;
  localparam int RI = R > 1 ? $clog2(R) : 1, CI = C > 1 ? $clog2(C) : 1;

  // Flat [R*C] arrays, moved as a whole: what Verilator turns into short code.  From a PE to the
  // next in the row, and to the one below:
  localparam int East = NP > 1 ? 1 : 0, South = R > 1 ? C : 0;
  logic signed [AW-1:0] a_q [NP], a_d [NP], w_q [NP], w_d [NP], wn_q [NP], wn_d [NP];
  logic signed [31:0]   p_q [NP], p_d [NP], pn [NP];
  logic [C-1:0]         sw_q [R], sw_d [R], ld_q [R], ld_d [R];

  always_comb begin
    a_d[East:NP-1] = a_q[0:NP-1-East];
    a_d[0] = '0;
    for (int s = 0; s < S; s++)
      for (int i = 0; i < R; i++)
        if (RW'(i) < h_i[s]) begin
          if (!group_i[s]) a_d[IW'((32'(r0_i[s]) + i) * C + 32'(c0_i[s]))] = a_i[s][i];
          else
            for (int j = 0; j < C; j++)
              if (CW'(j) < w_i[s]) a_d[IW'((32'(r0_i[s]) + i) * C + 32'(c0_i[s]) + j)] =
                  g_i[s][AW*(i*C+j) +: AW];
        end
  end

  always_comb begin
    for (int r = 0; r < R; r++) begin
      sw_d[r] = C'({sw_q[r], 1'b0});
      ld_d[r] = C'({ld_q[r], 1'b0});
    end
    for (int s = 0; s < S; s++)
      for (int i = 0; i < R; i++)
        if (RW'(i) < h_i[s]) begin
          sw_d[RI'(r0_i[s] + RW'(i))][CI'(c0_i[s])] = sw_i[s][i];
          ld_d[RI'(r0_i[s] + RW'(i))][CI'(c0_i[s])] = ld_i[s][i];
        end
  end

  always_comb begin
    pn[South:NP-1] = p_q[0:NP-1-South];
    for (int n = 0; n < C; n++) pn[n] = '0;
    for (int s = 0; s < S; s++)
      for (int j = 0; j < C; j++)
        if (CW'(j) < w_i[s]) pn[IW'(32'(r0_i[s]) * C + 32'(c0_i[s]) + j)] = '0;
  end

  always_comb begin
    wn_d = wn_q;
    for (int s = 0; s < S; s++)
      for (int i = 0; i < R; i++)
        if (RW'(i) < h_i[s] && |ld_d[RI'(r0_i[s] + RW'(i))])
          for (int j = 0; j < C; j++)
            if (CW'(j) < w_i[s] && ld_d[RI'(r0_i[s] + RW'(i))][CI'(c0_i[s] + CW'(j))])
              wn_d[IW'((32'(r0_i[s]) + i) * C + 32'(c0_i[s]) + j)] = w_data_i[s][j];
  end

  always_comb begin
    w_d = w_q;
    for (int r = 0; r < R; r++)
      if (|sw_d[r])
        for (int c = 0; c < C; c++)
          if (sw_d[r][c]) w_d[IW'(r * C + c)] = wn_q[IW'(r * C + c)];
  end

  for (genvar n = 0; n < NP; n++) begin : g_pe
    assign p_d[n] = pn[n] + 32'(a_d[n] * w_d[n]);
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
        p_o[s][j] = p_q[IW'((32'(r0_i[s]) + 32'(h_i[s]) - 1) * C + 32'(c0_i[s]) + j)];

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
