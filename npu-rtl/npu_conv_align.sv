// SPDX-License-Identifier: Apache-2.0
// npu_conv_align: a row's sums leave the array a column a cycle; here they come together, with that
// of the rectangle's last column.
module npu_conv_align
  import npu_conv_pkg::*;
#(
    parameter int C = 16
) (
    input  logic               clk_i,
    input  logic               move_i,      // rows are on their way
    input  dim_t               w_i,
    input  logic               v_i,         // a row is complete; zeros otherwise
    input  logic signed [31:0] p_i [C],
    output logic signed [31:0] row_o [C]    // w_i of them
);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_align: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  for (genvar j = 0; j < C; j++) begin : g_col
    localparam int Most = C - 1 - j;        // cycles that the column may have to wait
    if (Most == 0) begin : g_last
      assign row_o[j] = v_i ? p_i[j] : '0;
    end else begin : g_wait
      localparam int NI = $clog2(Most + 1), WI = Most > 1 ? $clog2(Most) : 1;
      logic signed [31:0] wait_q [Most];
      logic [NI-1:0]      n;
      always_ff @(posedge clk_i)
        if (move_i) begin
          wait_q[0] <= p_i[j];
          for (int k = 1; k < Most; k++) wait_q[k] <= wait_q[k-1];
        end
      assign n = NI'(w_i - dim_t'(j + 1));
      always_comb begin
        row_o[j] = '0;
        if (v_i) row_o[j] = n == 0 ? p_i[j] : wait_q[WI'(n-1'b1)];
      end
    end
  end
endmodule
