// SPDX-License-Identifier: Apache-2.0
// npu_conv_feeder: activation and weight rows on their way into the array, skewed by rings that PE
// row i, PE column j read i, j cycles behind, with the tokens that say what to do with them.
module npu_conv_feeder #(
    parameter int R = 16, C = 16,
    localparam int RI = R > 1 ? $clog2(R) : 1, CI = C > 1 ? $clog2(C) : 1
) (
    input  logic               clk_i, rst_ni, kill_i,
    // a row of activations; the fold's first swaps its weights in
    input  logic               row_i, first_i,
    input  logic [9*R-1:0]     a_i,
    // a row of weights for PE row at_i
    input  logic               load_i,
    input  logic [RI-1:0]      at_i,
    input  logic [9*C-1:0]     w_i,
    // F_GROUP: each PE has an activation of its own, skewed as if it had come from the west
    input  logic               group_i,
    input  logic [9*C-1:0]     g_i [R],     // of a lane, by column; with row_i
    // array
    output logic signed [8:0]  a_o [R],
    output logic [9*R*C-1:0]   g_o,
    output logic signed [8:0]  w_o [C],
    output logic [R-1:0]       sw_o, ld_o
);
  if (R < 1 || R > int'(npu_pkg::MaxRows))
    $fatal(1, "npu_conv_feeder: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_feeder: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  localparam int GI = $clog2(R + C);      // skew of PE (i, j) is i + j

  logic [9*R-1:0] a_q [1 << RI];
  logic [9*C-1:0] w_q [1 << CI];
  logic [RI-1:0]  ap_q, ap_d;
  logic [CI-1:0]  wp_q, wp_d;
  logic [R-1:0]   sw_q, sw_d, ld_q, ld_d;
  always_comb begin
    ap_d = ap_q + 1'b1;
    wp_d = wp_q + 1'b1;
    sw_d = R'({sw_q, row_i && first_i});
    ld_d = load_i ? R'(1) << at_i : '0;
    if (kill_i) begin
      sw_d = '0;
      ld_d = '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (row_i) a_q[ap_q] <= a_i;
    if (load_i) w_q[wp_q] <= w_i;
    ap_q <= rst_ni ? ap_d : '0;
    wp_q <= rst_ni ? wp_d : '0;
    sw_q <= rst_ni ? sw_d : '0;
    ld_q <= rst_ni ? ld_d : '0;
  end
  assign sw_o = sw_q;
  assign ld_o = ld_q;
  always_comb begin
    for (int i = 0; i < R; i++) a_o[i] = a_q[RI'(ap_q - RI'(1) - RI'(i))][9*i +: 9];
    for (int j = 0; j < C; j++) w_o[j] = w_q[CI'(wp_q - CI'(1) - CI'(j))][9*j +: 9];
  end

  // PEs of the same skew share a memory.
  logic [GI-1:0] gp_q, gp_d;
  assign gp_d = gp_q + GI'(group_i);
  always_ff @(posedge clk_i) gp_q <= rst_ni ? gp_d : '0;
  for (genvar d = 0; d < R + C - 1; d++) begin : g_skew
    localparam int First = d < C ? 0 : d - C + 1, Last = d < R ? d : R - 1;  // of their rows
    localparam int Width = 9 * (Last - First + 1);
    logic [Width-1:0] in, out;
    for (genvar i = First; i <= Last; i++) begin : g_pe
      assign in[9*(i-First) +: 9]  = g_i[i][9*(d-i) +: 9];
      assign g_o[9*(i*C+d-i) +: 9] = out[9*(i-First) +: 9];
    end
    if (d == 0) begin : g_reg
      always_ff @(posedge clk_i) if (group_i && row_i) out <= in;
    end else begin : g_ram
      npu_ram_1r1w #(.Width(Width), .Depth(1 << GI)) u_ram (
          .clk_i, .we_i(group_i && row_i), .waddr_i(gp_q), .wdata_i(in), .re_i(group_i),
          .raddr_i(gp_q - GI'(d)), .rdata_o(out));
    end
  end

  // ---- what always holds ------------------------------------------------------------------------
  row_of_the_array: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      load_i |-> 32'(at_i) < R) else $error("weights for a row that is not there");
  rows_in_turn: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      $past(rst_ni) && $past(load_i && !kill_i) && load_i
      |-> at_i == '0 || $past(at_i) + RI'(1) == at_i)
      else $error("weights' rows out of their order");
endmodule
