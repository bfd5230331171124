// SPDX-License-Identifier: Apache-2.0
// npu_bucket: what a slot may move: a token bucket for each group of channels, counted in beats.
//
// A bucket begins full.  At the end of each window its budget is added, up to the burst; a request
// passes if all its beats are there.  Of a slot that has a limit, one request passes a cycle: of
// the way that was used last, eight in a row, unless that pauses.  So one that waits holds back
// what is behind it, and the other way's.
module npu_bucket (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    input  logic                  set_i,    // of this slot
    input  npu_pkg::bucket_set_t  value_i,
    input  npu_pkg::ways_t        v_i,      // a request
    input  npu_pkg::ways_t        group_i,  // of its channel
    input  logic [2:0]            load_beats_i, store_beats_i,
    input  npu_pkg::ways_t        take_i,   // and it goes
    output npu_pkg::ways_t        ok_o,     // it may go
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

  // ---- which way's request it is about ---------------------------------------------------------
  logic       limited, store, group, ok, take;
  logic       last_d, last_q;   // a store passed last,
  logic [3:0] run_d, run_q;     // and so many in a row
  logic [2:0] beats;
  assign limited = bucket_q[0].window != '0 || bucket_q[1].window != '0;
  assign store   = v_i.store && (!v_i.load || (run_q == 4'd8) != last_q);
  assign group   = store ? group_i.store : group_i.load;
  assign beats   = store ? store_beats_i : load_beats_i;
  assign take    = store ? take_i.store : take_i.load;
  assign ok      = bucket_q[group].window == '0 || bucket_q[group].tokens >= 28'(beats);
  assign ok_o    = '{store: !limited || (store && ok), load: !limited || (!store && ok)};
  assign held_o  = held_q;

  always_comb begin
    last_d = last_q;
    run_d  = run_q;
    if (take && limited) begin
      last_d = store;
      run_d  = store == last_q ? (run_q == 4'd8 ? 4'd1 : run_q + 4'd1) : 4'd1;
    end
    held_d = held_q + 32'(limited && (v_i.load || v_i.store) && !ok);
    for (int g = 0; g < 2; g++) begin
      automatic logic [28:0] tokens = 29'(bucket_q[g].tokens);
      bucket_d[g] = bucket_q[g];
      if (bucket_q[g].window != '0) begin
        if (take && 32'(group) == g) tokens -= 29'(beats);
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
      last_q <= 1'b0;
      run_q  <= '0;
    end else begin
      bucket_q <= bucket_d;
      held_q   <= held_d;
      last_q   <= last_d;
      run_q    <= run_d;
    end
  end

  logic bounded;
  always_comb begin
    bounded = 1'b1;
    for (int g = 0; g < 2; g++)
      bounded &= bucket_q[g].window == '0 || bucket_q[g].tokens <= bucket_q[g].burst;
  end
  TakenIsAllowed: assert property (@(posedge clk_i) disable iff (!rst_ni) (take_i & ~ok_o) == '0);
  OneAtATime: assert property (@(posedge clk_i) disable iff (!rst_ni)
      !limited || !(take_i.load && take_i.store));
  TokensBounded: assert property (@(posedge clk_i) disable iff (!rst_ni) bounded);
endmodule
