// SPDX-License-Identifier: Apache-2.0
// npu_vec_pool: the largest, or the average, of the pixels of a window, 32 channels side by side.
//
// A pixel a cycle; the largest comes out in the next cycle, an average ten later:
// (|sum| + count / 2) / count, a bit of all lanes' quotients a cycle.
module npu_vec_pool (
    input  logic         clk_i, rst_ni, clear_i,
    input  logic         avg_i, au8_i, ou8_i,
    input  logic [7:0]   amin_i, amax_i,
    input  logic         v_i,                // only while rdy_o
    input  logic         first_i, last_i,    // of the window
    input  logic [255:0] data_i,
    output logic         rdy_o,
    output logic         emit_o,
    output logic [255:0] res_o
);
  import npu_math_pkg::*;
  localparam int Lanes = 32;
  localparam logic [3:0] Begin = 4'd10;      // quotient bits, and one, and the magnitude

  logic [255:0]       max_q, max_d;
  logic               max_v_q, max_v_d;      // max_q is a whole window's
  logic [3:0]         div_q, div_d;          // quotient bits still to come, and one
  logic [15:0]        count_q, count_d;
  logic signed [24:0] sum_q [Lanes], sum_d [Lanes];
  logic [24:0]        rem_q [Lanes], rem_d [Lanes], part;
  logic [7:0]         quo_q [Lanes], quo_d [Lanes];

  assign rdy_o  = div_q == 0;
  assign emit_o = max_v_q || div_q == 4'd1;
  assign part   = 25'(count_q) << (div_q - 4'd2);
  always_comb begin
    div_d = div_q == 0 ? '0 : div_q - 4'd1;
    if (v_i && avg_i && last_i) div_d = Begin;
  end
  always_comb begin
    max_d = max_q;
    if (v_i && !avg_i)
      for (int i = 0; i < Lanes; i++)
        if (first_i || value8(data_i[8*i +: 8], au8_i) > value8(max_q[8*i +: 8], au8_i))
          max_d[8*i +: 8] = data_i[8*i +: 8];
  end
  assign max_v_d = v_i && !avg_i && last_i;
  always_comb begin
    count_d = count_q;
    for (int i = 0; i < Lanes; i++) begin
      sum_d[i] = sum_q[i];
      rem_d[i] = rem_q[i];
      quo_d[i] = quo_q[i];
    end
    if (v_i && avg_i) begin
      for (int i = 0; i < Lanes; i++)
        sum_d[i] = (first_i ? '0 : sum_q[i]) + 25'(value8(data_i[8*i +: 8], au8_i));
      count_d = (first_i ? '0 : count_q) + 16'd1;
    end
    if (div_q == Begin)
      for (int i = 0; i < Lanes; i++)
        rem_d[i] = (sum_q[i] < 0 ? 25'(-sum_q[i]) : 25'(sum_q[i])) + 25'(count_q[15:1]);
    else if (div_q > 4'd1)
      for (int i = 0; i < Lanes; i++) begin
        rem_d[i] = rem_q[i] >= part ? rem_q[i] - part : rem_q[i];
        quo_d[i] = {quo_q[i][6:0], rem_q[i] >= part};
      end
  end
  always_comb begin
    res_o = '0;
    if (emit_o)
      for (int i = 0; i < Lanes; i++)
        res_o[8*i +: 8] = clamp8(!avg_i ? 32'(value8(max_q[8*i +: 8], au8_i))
                                 : sum_q[i] < 0 ? -32'(quo_q[i]) : 32'(quo_q[i]),
                                 8'd0, amin_i, amax_i, ou8_i);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      div_q   <= '0;
      max_v_q <= 1'b0;
    end else begin
      div_q   <= div_d;
      max_v_q <= max_v_d;
    end
    max_q   <= max_d;
    count_q <= count_d;
    sum_q   <= sum_d;
    rem_q   <= rem_d;
    quo_q   <= quo_d;
  end

  TakenWhenReady: assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
      v_i |-> rdy_o);
  WindowHasPixels: assert property (@(posedge clk_i) disable iff (!rst_ni)
      div_q == Begin |-> count_q != 0);
  OneResult: assert property (@(posedge clk_i) disable iff (!rst_ni)
      !(max_v_q && div_q == 4'd1));
  StateKnown: assert property (@(posedge clk_i) disable iff (!rst_ni)
      div_q <= Begin);
endmodule
