// SPDX-License-Identifier: Apache-2.0
// npu_arb: which of a channel's slots goes next: fair in bus time, row hits first, by turns.
//
// Fair is virtual time: a slot is charged the bus cycles of what it is given - beats, and those
// that stay empty while a bank changes rows - and the one charged least goes next.  A change that
// a slot alone would not need, as it asks for a row that it used lately, is charged to whoever
// opened the other row; of each slot two rows are known, of different banks.  Two numbers bend
// what is fair, both in units of the longest row change:
//   - who was served last stays until it is Stay ahead, so that a row is opened for many requests;
//   - who had nothing to ask for is at most Credit behind when it asks again: enough to go before
//     whoever stays, so that one request at a time does not wait for turns of many.
// Requests are served in order of being taken, so the rows that are open are known here.
module npu_arb #(
    parameter  int unsigned S  = 4,
    localparam int unsigned SW = S > 1 ? $clog2(S) : 1
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic [27:0]        timing_i,     // register TIMING
    input  npu_pkg::arb_cfg_t  cfg_i,
    input  npu_pkg::turn_t     turn_i,
    input  logic [S-1:0]       may_i,        // has a request that could go now
    input  logic [25:0]        lline_i [S],  // of that request
    input  logic [2:0]         beats_i [S],
    output logic               any_o,
    output logic [SW-1:0]      who_o,
    input  logic               take_i,       // it goes, in this cycle
    output npu_pkg::row_e      row_o         // what it finds; RowNone where none goes
);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_arb: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);

  import npu_regs_pkg::*;
  localparam int unsigned BankBits = npu_pkg::BankBits, Banks = 1 << BankBits;
  localparam int unsigned Stay = 4, Credit = 8;  // times nRP + nRCD + nCL
  typedef logic [BankBits-1:0] bankno_t;
  typedef logic [25-BankBits:0] row_t;

  // Charges are cycles: a request costs at most 2 * 255 + 4, who stays has at most Stay * 765 more;
  // row hits that go first, and changes of rows that another needs, add to that up to Ahead.
  typedef logic signed [15:0] charge_t;
  typedef logic [10:0] cost_t;
  localparam charge_t Ahead = 16'sd8191;
  typedef struct packed {
    logic          open;
    row_t          row;
    logic [SW-1:0] who;  // opened it
    cost_t         ago;  // bus cycles charged since its last request, as many as matter
  } bank_t;
  typedef struct packed {
    logic    v;
    bankno_t bank;
    row_t    row;
  } had_t;

  charge_t       charge_q [S], charge_d [S];
  logic [SW-1:0] last_q;     // served last
  logic [3:0]    passed_q;   // row hits that went before another slot's miss, in a row
  bank_t         bank_q [Banks];
  had_t [1:0]    had_q [S];  // rows that each used last

  // ---- timing ------------------------------------------------------------------------------
  cost_t      ncl, nrcd, nrp;
  logic [3:0] rowbits;
  charge_t    unit, stay, credit;
  assign ncl     = cost_t'(timing_i[TIMING_NCL_LSB+:TIMING_NCL_W]);
  assign nrcd    = cost_t'(timing_i[TIMING_NRCD_LSB+:TIMING_NRCD_W]);
  assign nrp     = cost_t'(timing_i[TIMING_NRP_LSB+:TIMING_NRP_W]);
  assign rowbits = timing_i[TIMING_ROWBITS_LSB+:TIMING_ROWBITS_W];
  assign unit    = charge_t'({1'b0, nrp + nrcd + ncl});
  assign stay    = charge_t'(Stay * 32'(unit));
  assign credit  = charge_t'(Credit * 32'(unit));

  function automatic row_t row_of(input logic [25:0] lline, input logic [3:0] bits);
    return row_t'(lline >> bits >> BankBits);
  endfunction
  function automatic bankno_t bank_of(input logic [25:0] lline, input logic [3:0] bits);
    return bankno_t'(lline >> bits) ^ bankno_t'(row_of(lline, bits));
  endfunction

  // Trees of 2 P places, of which those of slots are from P on: the least, and of equal ones the
  // first; the highest priority.
  localparam int unsigned P = 1 << SW;
  typedef struct packed {
    logic          v;
    charge_t       key;
    logic [SW-1:0] who;
  } place_t;
  function automatic place_t lesser(input place_t a, input place_t b);
    return b.v && (!a.v || b.key < a.key) ? b : a;
  endfunction
  function automatic place_t least(input place_t [S-1:0] of);
    place_t [2*P-1:0] tree;
    tree = '0;
    for (int s = 0; s < int'(S); s++) tree[int'(P)+s] = of[s];
    for (int i = int'(P) - 1; i >= 1; i--) tree[i] = lesser(tree[2*i], tree[2*i+1]);
    return tree[1];
  endfunction
  function automatic logic [3:0] highest(input logic [S-1:0] may, input logic [S-1:0][3:0] prio);
    logic [2*P-1:0][3:0] tree;
    tree = '0;
    for (int s = 0; s < int'(S); s++) if (may[s]) tree[int'(P)+s] = prio[s];
    for (int i = int'(P) - 1; i >= 1; i--)
      tree[i] = tree[2*i] > tree[2*i+1] ? tree[2*i] : tree[2*i+1];
    return tree[1];
  endfunction

  // ---- what each would find, and cost --------------------------------------------------------
  bankno_t       bank [S];
  row_t          row [S];
  npu_pkg::row_e finds [S];
  cost_t         change [S], empty [S], cost [S];
  logic [S-1:0]  hit, lost;     // lost: alone it would be a hit
  logic [SW-1:0] opener [S];    // of the row that is there
  cost_t         pays [S] [S];  // [s][p]: what p pays of it
  always_comb
    for (int s = 0; s < int'(S); s++) begin
      bank[s]   = '0;
      row[s]    = '0;
      finds[s]  = npu_pkg::RowHit;
      change[s] = '0;
      empty[s]  = '0;
      cost[s]   = '0;
      opener[s] = '0;
      for (int p = 0; p < int'(S); p++) pays[s][p] = '0;
      hit[s]    = 1'b0;
      lost[s]   = 1'b0;
      if (may_i[s]) begin
        bank[s] = bank_of(lline_i[s], rowbits);
        row[s]  = row_of(lline_i[s], rowbits);
        if (!bank_q[bank[s]].open) begin
          finds[s]  = npu_pkg::RowClosed;
          change[s] = nrcd;
        end else if (bank_q[bank[s]].row != row[s]) begin
          finds[s]  = npu_pkg::RowConflict;
          change[s] = nrp + nrcd;
          for (int i = 0; i < 2; i++)
            if (had_q[s][i] == had_t'{v: 1'b1, bank: bank[s], row: row[s]}) lost[s] = 1'b1;
        end
        hit[s] = finds[s] == npu_pkg::RowHit;
        // the change goes on beside what is on the bus since the bank was used last
        if (change[s] > bank_q[bank[s]].ago) empty[s] = change[s] - bank_q[bank[s]].ago;
        cost[s]   = cost_t'(beats_i[s]) + empty[s];
        opener[s] = bank_q[bank[s]].who;
        for (int p = 0; p < int'(S); p++)
          if (p == s) pays[s][p] = lost[s] ? cost_t'(beats_i[s]) : cost[s];
          else if (lost[s] && opener[s] == SW'(p)) pays[s][p] = empty[s];
      end
    end

  // ---- who ---------------------------------------------------------------------------------
  logic [S-1:0]   top, hits;
  logic [3:0]     most;
  place_t [S-1:0] can;
  place_t         first;
  always_comb begin
    most  = '0;
    top   = '0;
    hits  = '0;
    can   = '0;
    first = '0;
    if (|may_i) begin
      // by mode: the owner of the turn, or the highest priority that asks
      most = highest(may_i, cfg_i.prio[S-1:0]);
      for (int s = 0; s < int'(S); s++)
        top[s] = may_i[s] && (cfg_i.mode == 2'(ARB_TURNS)
                              ? turn_i.open && 32'(turn_i.slot) == s : cfg_i.prio[s] == most);
      hits = cfg_i.mode == 2'(ARB_HITS) && passed_q < cfg_i.pass ? top & hit : '0;
      // of these, who has been charged least
      for (int s = 0; s < int'(S); s++) begin
        can[s] = '{v: |hits ? hits[s] : top[s], key: charge_q[s], who: SW'(s)};
        if (SW'(s) == last_q) can[s].key = charge_q[s] - stay;
      end
      first = least(can);
    end
    any_o = first.v;
    who_o = first.who;
  end
  assign row_o = take_i ? finds[who_o] : npu_pkg::RowNone;

  // ---- what is charged ---------------------------------------------------------------------
  place_t [S-1:0] sum;
  place_t         low;
  charge_t        base;
  always_comb begin
    base = '0;
    low  = '0;
    sum  = '0;
    for (int s = 0; s < int'(S); s++) charge_d[s] = charge_q[s];
    if (take_i) begin
      for (int s = 0; s < int'(S); s++)
        charge_d[s] = charge_q[s] + charge_t'({1'b0, pays[who_o][s]});
      // zero is the least charge of those that could have gone
      for (int s = 0; s < int'(S); s++) sum[s] = '{v: top[s], key: charge_d[s], who: '0};
      low  = least(sum);
      base = low.key;
      if (base > 0)
        for (int s = 0; s < int'(S); s++) begin
          charge_d[s] = charge_d[s] - base;
          if (charge_d[s] < -credit) charge_d[s] = -credit;
        end
      for (int s = 0; s < int'(S); s++)
        if (!charge_d[s][15] && |charge_d[s][14:13]) charge_d[s] = Ahead;  // above it
    end
  end

  logic [3:0]        passed_d;
  cost_t [Banks-1:0] ago_d;
  always_comb begin
    passed_d = passed_q;
    for (int b = 0; b < int'(Banks); b++) ago_d[b] = bank_q[b].ago;
    if (take_i) begin
      passed_d = |hits && top != hits ? passed_q + 4'd1 : '0;
      for (int b = 0; b < int'(Banks); b++)
        if (bank_q[b].ago < cost_t'(512)) ago_d[b] = bank_q[b].ago + cost[who_o];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int s = 0; s < int'(S); s++) charge_q[s] <= '0;
      for (int b = 0; b < int'(Banks); b++) bank_q[b] <= '{ago: '1, default: '0};
      for (int s = 0; s < int'(S); s++) had_q[s] <= '0;
      last_q   <= '0;
      passed_q <= '0;
    end else begin
      if (take_i) begin
        charge_q <= charge_d;
        last_q   <= who_o;
        passed_q <= passed_d;
        for (int b = 0; b < int'(Banks); b++) bank_q[b].ago <= ago_d[b];
        bank_q[bank[who_o]] <= '{open: 1'b1, row: row[who_o], who: who_o, ago: '0};
        had_q[who_o][0]     <= '{v: 1'b1, bank: bank[who_o], row: row[who_o]};
        if (!had_q[who_o][0].v || had_q[who_o][0].bank != bank[who_o])
          had_q[who_o][1] <= had_q[who_o][0];
      end
      if (turn_i.close) begin
        for (int b = 0; b < int'(Banks); b++) bank_q[b] <= '{ago: '1, default: '0};
        for (int s = 0; s < int'(S); s++) had_q[s] <= '0;
      end
    end
  end

  logic bounded, another;
  always_comb begin
    bounded = 1'b1;
    another = !take_i || !lost[who_o] || opener[who_o] != who_o;
    for (int s = 0; s < int'(S); s++)
      bounded &= charge_q[s] <= 16'sd8192 && charge_q[s] >= -16'sd8192;
  end
  WhoMayGo: assert property (@(posedge clk_i) disable iff (!rst_ni) !any_o || may_i[who_o]);
  TakenIsOffered: assert property (@(posedge clk_i) disable iff (!rst_ni) !take_i || any_o);
  ChargeBounded: assert property (@(posedge clk_i) disable iff (!rst_ni) bounded);
  AnotherPays: assert property (@(posedge clk_i) disable iff (!rst_ni) another);
  NoneBetweenTurns:
  assert property (@(posedge clk_i) disable iff (!rst_ni) !turn_i.close || !take_i);
endmodule
