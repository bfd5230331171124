// SPDX-License-Identifier: Apache-2.0
// npu_conv_port: a gather port: one run of at most 16 bytes at a time, wherever it begins, out of
// one word or two neighbours; and a FIFO of what has come.
//
//   run -> requests, until banks are given -> words, the next cycle -> merged, rotated -> FIFO
module npu_conv_port
  import npu_spad_pkg::*;
#(
    localparam int SW = npu_pkg::SpadLog2, AI = SW - 7
) (
    input  logic          clk_i, clear_i,
    input  logic          run_i,          // only when free_o
    input  logic [SW-1:0] ad_i,
    input  logic [3:0]    more_i,         // bytes behind the first
    input  logic [3:0]    place_i,        // byte of data_o that the first goes to; modulo 16
    output logic          free_o,
    // banks
    output logic          req_o,
    output logic [7:0]    banks_o,        // one or two
    output logic [2:0]    bank_o,         // of the first word
    output logic [AI-1:0] row_o, next_row_o,  // of the first word, of its neighbour
    output logic [2:0]    ahead_o,        // runs before it that are not out yet
    input  logic          gnt_i,
    input  logic [Banks-1:0][127:0] word_i,
    // what has come, in order
    output logic          v_o,
    output logic [127:0]  data_o,
    input  logic          pop_i
);
  localparam int Places = 4, PI = $clog2(Places);
  typedef struct packed {
    logic [SW-1:0] ad;
    logic [3:0]    more, place;
  } run_t;
  run_t          run_q, run_d, next_run_q; // two wait at most, so that free_o need not see gnt_i
  logic [1:0]    runs_q, runs_d;
  logic          got_q, shift;
  logic [3:0]    from_q, to_q;
  logic [2:0]    bank_q, next_bank_q, next_bank;
  logic [SW-5:0] next;
  logic          two;
  logic [127:0]  fifo_q [Places], keep, merged, turned;
  logic [3:0]    turn;
  logic [PI-1:0] head_q, head_d, tail_q, tail_d;
  logic [PI:0]   claimed_q, claimed_d;    // places promised
  logic [PI:0]   filled_q, filled_d;      // places with data

  assign free_o     = !runs_q[1];
  assign req_o      = runs_q != 0 && claimed_q != (PI + 1)'(Places);
  assign ahead_o    = 3'(claimed_q);
  assign next       = run_q.ad[SW-1:4] + 1'b1;
  assign two        = 5'(run_q.ad[3:0]) + 5'(run_q.more) > 5'd15;
  assign bank_o     = bank(12'(run_q.ad[SW-1:4]));
  assign next_bank  = bank(12'(next));
  assign banks_o    = 8'd1 << bank_o | (two ? 8'd1 << next_bank : '0);
  assign row_o      = run_q.ad[SW-1:7];
  assign next_row_o = next[SW-5:3];
  assign shift      = gnt_i || runs_q == 0;

  // bytes from the run's first on are the first word's, those before it its neighbour's
  always_comb begin
    keep   = '0;
    merged = '0;
    turned = '0;
    if (got_q) begin
      keep   = ~128'd0 << {from_q, 3'd0};
      merged = (word_i[bank_q] & keep) | (word_i[next_bank_q] & ~keep);
      turned = 128'({merged, merged} >> {turn, 3'd0});
    end
  end
  assign turn   = from_q - to_q;
  assign v_o    = filled_q != 0;
  assign data_o = fifo_q[head_q];

  always_comb begin
    run_d     = runs_q[1] ? next_run_q : '{ad: ad_i, more: more_i, place: place_i};
    runs_d    = runs_q + 2'(run_i) - 2'(gnt_i);
    head_d    = head_q + PI'(pop_i);
    tail_d    = tail_q + PI'(got_q);
    claimed_d = claimed_q + (PI + 1)'(gnt_i) - (PI + 1)'(pop_i);
    filled_d  = filled_q + (PI + 1)'(got_q) - (PI + 1)'(pop_i);
  end

  always_ff @(posedge clk_i) begin
    if (shift) run_q <= run_d;
    if (run_i) next_run_q <= '{ad: ad_i, more: more_i, place: place_i};
    if (gnt_i) begin
      bank_q      <= bank_o;
      next_bank_q <= next_bank;
      from_q      <= run_q.ad[3:0];
      to_q        <= run_q.place;
    end
    if (got_q) fifo_q[tail_q] <= turned;
    if (clear_i) begin
      runs_q    <= '0;
      got_q     <= 1'b0;
      head_q    <= '0;
      tail_q    <= '0;
      claimed_q <= '0;
      filled_q  <= '0;
    end else begin
      runs_q    <= runs_d;
      got_q     <= gnt_i;
      head_q    <= head_d;
      tail_q    <= tail_d;
      claimed_q <= claimed_d;
      filled_q  <= filled_d;
    end
  end

  Taken:    assert property (@(posedge clk_i) disable iff (clear_i) run_i |-> free_o);
  Granted:  assert property (@(posedge clk_i) disable iff (clear_i) gnt_i |-> req_o);
  NotEmpty: assert property (@(posedge clk_i) disable iff (clear_i) pop_i |-> v_o);
  NotFull:  assert property (@(posedge clk_i) disable iff (clear_i)
                             got_q |-> filled_q != (PI + 1)'(Places) || pop_i);
endmodule
