// SPDX-License-Identifier: Apache-2.0
// npu_bucket: what a slot may move: a token bucket for each group of channels, counted in beats.
//
// A bucket begins full.  At the end of each window its budget is added, up to the burst; a request
// passes if all its beats are there.  A slot has one port, so one that waits holds back those
// behind it.
module npu_bucket (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    input  logic                  set_i,    // of this slot
    input  npu_pkg::bucket_set_t  value_i,
    input  logic                  v_i,      // a request
    input  logic                  group_i,  // of its channel
    input  logic [2:0]            beats_i,
    input  logic                  take_i,   // and it goes
    output logic                  ok_o,     // it may go
    output logic [31:0]           held_o    // cycles one was held back
);
  typedef struct packed {
    logic [23:0] window;  // 0: no limit
    logic [23:0] left;    // cycles of it that remain, this one included
    logic [27:0] budget, burst;
    logic [27:0] tokens;  // at most burst
  } bucket_t;

  bucket_t     bucket_q [2], bucket_d [2];
  logic [31:0] held_q, held_d;

  assign ok_o   = bucket_q[group_i].window == '0 || bucket_q[group_i].tokens >= 28'(beats_i);
  assign held_o = held_q;

  always_comb begin
    held_d = held_q + 32'(v_i && !ok_o);
    for (int g = 0; g < 2; g++) begin
      automatic logic [28:0] tokens = 29'(bucket_q[g].tokens);
      bucket_d[g] = bucket_q[g];
      if (bucket_q[g].window != '0) begin
        if (take_i && 32'(group_i) == g) tokens -= 29'(beats_i);
        bucket_d[g].left = bucket_q[g].left - 24'd1;
        if (bucket_q[g].left == 24'd1) begin
          bucket_d[g].left = bucket_q[g].window;
          tokens += 29'(bucket_q[g].budget);
          if (tokens > 29'(bucket_q[g].burst)) tokens = 29'(bucket_q[g].burst);
        end
        bucket_d[g].tokens = tokens[27:0];
      end
      if (set_i && 32'(value_i.group) == g)
        bucket_d[g] = '{window: value_i.window, left: value_i.window, budget: value_i.budget,
                        burst: value_i.burst, tokens: value_i.burst};
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int g = 0; g < 2; g++) bucket_q[g] <= '0;
      held_q <= '0;
    end else begin
      bucket_q <= bucket_d;
      held_q   <= held_d;
    end
  end

  logic bounded;
  always_comb begin
    bounded = 1'b1;
    for (int g = 0; g < 2; g++)
      bounded &= bucket_q[g].window == '0 || bucket_q[g].tokens <= bucket_q[g].burst;
  end
  TakenIsAllowed: assert property (@(posedge clk_i) disable iff (!rst_ni) !take_i || ok_o);
  TokensBounded: assert property (@(posedge clk_i) disable iff (!rst_ni) bounded);
endmodule
