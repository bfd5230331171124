// SPDX-License-Identifier: Apache-2.0
// What scripts/synth is to find, one thing a module, and a memory that is right.
module planted_latch (
    input  logic a_i, en_i,
    output logic q_o
);
  always_latch if (en_i) q_o = a_i;
endmodule

module planted_ports (
    input  logic        clk_i, we_i,
    input  logic [5:0]  w_i, r0_i, r1_i,
    input  logic [31:0] d_i,
    output logic [31:0] q0_o, q1_o
);
  logic [31:0] mem [64];
  always_ff @(posedge clk_i) begin
    if (we_i) mem[w_i] <= d_i;
    q0_o <= mem[r0_i];
    q1_o <= mem[r1_i];
  end
endmodule

module planted_read (
    input  logic        clk_i, we_i,
    input  logic [5:0]  w_i, r_i,
    input  logic [31:0] d_i,
    output logic [31:0] q_o
);
  logic [31:0] mem [64];
  always_ff @(posedge clk_i) if (we_i) mem[w_i] <= d_i;
  assign q_o = mem[r_i];
endmodule

module planted_none (
    input  logic        clk_i, we_i,
    input  logic [5:0]  w_i, r_i,
    input  logic [31:0] d_i,
    output logic [31:0] q_o
);
  logic [31:0] mem [64];
  always_ff @(posedge clk_i) begin
    if (we_i) mem[w_i] <= d_i;
    q_o <= mem[r_i];
  end
endmodule

// Two levels a half, of which abc can spare none, and one more in between; d_i passes through.
module planted_half (
    input  logic a_i, b_i, c_i, d_i,
    output logic q_o, d_o
);
  assign q_o = (a_i & b_i) ^ c_i;
  assign d_o = d_i;
endmodule

module planted_levels (
    input  logic       clk_i,
    input  logic [6:0] d_i,
    output logic       q_o, d_o
);
  logic       first, second, passed;
  logic [6:0] d_q;
  planted_half u_first (.a_i(d_q[0]), .b_i(d_q[1]), .c_i(d_q[2]), .d_i(d_q[3]), .q_o(first),
      .d_o(passed));
  planted_half u_second (.a_i(first ^ passed), .b_i(d_q[4]), .c_i(d_q[5]), .d_i(d_q[6]),
      .q_o(second), .d_o);
  always_ff @(posedge clk_i) begin
    d_q <= d_i;
    q_o <= second;
  end
endmodule
