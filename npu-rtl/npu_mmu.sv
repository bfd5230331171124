// SPDX-License-Identifier: Apache-2.0
// npu_mmu: one slot's two ways to memory: picks among those that load, translates by TLB or page
// walk, checks, holds the requests.
//
// Loads and stores do not wait for each other, but for a walk: there is one at a time, and its
// requests go by the loads' way.  What loads is served one request a cycle: who is waited for
// first, then in bursts of at most eight so that DRAM rows stay open, round robin.  Translations
// belong to a context: those of several are kept side by side.
module npu_mmu
  import npu_mmu_pkg::*;
#(
    localparam int unsigned NC = 3  // that load: fetch FIFO, activation loader, sequencer
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               kill_i,     // forget requests not yet accepted and a walk under way
    input  logic               flush_i,    // forget translations
    input  logic               pending_i,  // requests accepted are not answered
    output logic               hold_o,     // some go by what was forgotten: none behind them
    input  logic               idle_i,     // the slot has nothing to do
    input  logic [31:0]        pt_base_i,
    input  logic [31:0]        pt_count_i,
    input  logic [7:0]         context_i,  // whose page tables these are
    input  logic [15:0]        ch_mask_i,
    input  npu_pkg::hash_cfg_t hash_i,
    // loads
    input  logic [NC-1:0]      v_i,
    // the slot stands still for want of this one: it goes first
    input  logic [NC-1:0]      urgent_i,
    input  ask_t               ask_i [NC],
    output logic [NC-1:0]      gnt_o,
    // stores
    input  logic               store_v_i,
    input  ask_t               store_i,
    input  npu_pkg::piece_t    wdata_i,
    output logic               store_gnt_o,
    // memory
    output npu_pkg::ways_req_t req_o,
    output npu_pkg::piece_t    wdata_o,
    input  npu_pkg::ways_t     acc_i,
    input  npu_pkg::mem_rsp_t  rsp_i,
    output logic               busy_o,     // a request has been granted and not yet accepted
    // events
    output npu_pkg::ways_t     fault_o,
    output ask_t               load_o, store_o,  // the requests that fault
    output logic [3:0]         load_kind_o, store_kind_o,
    input  logic               drop_i,     // with fault_o.load: forget this load and go on
    output logic               miss_o
);
  localparam int unsigned TlbLog2 = npu_pkg::TlbLog2, NT = 1 << TlbLog2;

  // ---- choice of a load -------------------------------------------------------------------------
  logic [1:0] sel, rr_q, rr_d;
  logic [2:0] burst_q, burst_d;
  logic       any, next;
  function automatic logic [1:0] after(input logic [1:0] client);
    return client == 2'(NC - 1) ? '0 : client + 2'd1;
  endfunction
  always_comb begin
    any = |v_i;
    sel = rr_q;
    if (|(v_i & urgent_i)) begin
      for (int i = NC - 1; i >= 0; i--) if (v_i[i] && urgent_i[i]) sel = 2'(i);
    end else if (any && !v_i[sel]) begin
      sel = after(rr_q);
      if (!v_i[sel]) sel = after(sel);
    end
    gnt_o   = '0;
    rr_d    = rr_q;
    burst_d = burst_q;
    if (any && next) begin
      gnt_o[sel] = 1'b1;
      // stay with a client for eight requests, unless it pauses
      burst_d = sel == rr_q ? burst_q + 3'd1 : 3'd1;
      rr_d    = sel == rr_q && burst_q == 3'd7 ? after(sel) : sel;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {rr_q, burst_q} <= '0;
    else {rr_q, burst_q} <= {rr_d, burst_d};
  end

  // ---- translation ------------------------------------------------------------------------------
  logic               hold_q, hold_d;
  logic               load_miss, store_miss, load_busy, store_busy, store_next, store_gone;
  logic               walk_gnt, fill_v, bad;
  npu_pkg::ways_t     walk_for;
  logic [3:0]         bad_kind;
  logic [NT-1:0]      valid_q;
  logic [TlbLog2-1:0] fill_at;
  tlb_t               fill;
  npu_pkg::mem_req_t  walk_req;
  npu_translate u_loads (
      .clk_i, .rst_ni, .kill_i, .flush_i, .hold_i(hold_o), .pt_count_i, .context_i, .ch_mask_i,
      .gran_i(hash_i.gran), .v_i(any), .ask_i(ask_i[sel]), .next_o(next), .ask_o(load_o),
      .miss_o(load_miss),
      .valid_i(valid_q), .fill_v_i(fill_v), .fill_i(fill), .fill_at_o(fill_at),
      .bad_i(bad && walk_for.load), .bad_kind_i(bad_kind),
      .walk_i(walk_req), .walk_gnt_o(walk_gnt), .req_o(req_o.load), .gone_o(), .acc_i(acc_i.load),
      .busy_o(load_busy), .fault_o(fault_o.load), .fault_kind_o(load_kind_o), .drop_i);
  npu_translate #(.Stores(1'b1)) u_stores (
      .clk_i, .rst_ni, .kill_i, .flush_i, .hold_i(hold_o), .pt_count_i, .context_i, .ch_mask_i,
      .gran_i(hash_i.gran), .v_i(store_v_i), .ask_i(store_i), .next_o(store_next),
      .ask_o(store_o), .miss_o(store_miss),
      .valid_i(valid_q), .fill_v_i(fill_v), .fill_i(fill), .fill_at_o(),
      .bad_i(bad && walk_for.store), .bad_kind_i(bad_kind), .walk_i('0), .walk_gnt_o(),
      .req_o(req_o.store), .gone_o(store_gone),
      .acc_i(acc_i.store), .busy_o(store_busy), .fault_o(fault_o.store),
      .fault_kind_o(store_kind_o), .drop_i(1'b0));
  assign store_gnt_o = store_v_i && store_next;
  assign busy_o      = load_busy || store_busy;

  // A flush is over when all that was translated before it has been answered.
  assign hold_o = hold_q && (pending_i || req_o.load.v || req_o.store.v);
  assign hold_d = flush_i || hold_o;
  always_ff @(posedge clk_i)
    if (!rst_ni) hold_q <= 1'b0;
    else hold_q <= hold_d;

  // ---- walks: one at a time ---------------------------------------------------------------------
  npu_walk u_walk (
      .clk_i, .rst_ni, .kill_i, .flush_i, .pt_base_i, .context_i, .ch_mask_i, .hash_i, .pt_count_i,
      .idle_i, .miss_i('{store: store_miss, load: load_miss}),
      .load_vpn_i(24'(load_o.va >> hash_i.gran)), .store_vpn_i(24'(store_o.va >> hash_i.gran)),
      .for_o(walk_for), .req_o(walk_req), .gnt_i(walk_gnt), .rsp_i, .done_o(miss_o),
      .fill_v_o(fill_v), .fill_o(fill), .bad_o(bad), .bad_kind_o(bad_kind));

  npu_pkg::piece_t wdata_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || flush_i) valid_q <= '0;
    else if (fill_v) valid_q[fill_at] <= 1'b1;
    if (store_gnt_o) wdata_q <= wdata_i;
    if (store_gone) wdata_o <= wdata_q;
  end

  // ---- what always holds ------------------------------------------------------------------------
  OneGrant:     assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0(gnt_o));
  GrantAsked:   assert property (@(posedge clk_i) disable iff (!rst_ni) (gnt_o & ~v_i) == '0);
  NoneWhileHeld: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(hold_o) && req_o.store.v |-> $past(req_o.store.v));
  DataHeld:     assert property (@(posedge clk_i) disable iff (!rst_ni)
                                 $past(rst_ni) && $past(req_o.store.v) && !$past(acc_i.store)
                                 |-> $stable(wdata_o));
  // A walk that was killed is answered before the next one asks: its line would be taken for the
  // other's.
  logic [1:0] walks_q, walks_d;  // asked of the memory and not answered
  assign walks_d = walks_q + 2'(req_o.load.v && acc_i.load && req_o.load.walk)
                   - 2'(rsp_i.v && rsp_i.tag == WalkTag);
  always_ff @(posedge clk_i)
    if (!rst_ni) walks_q <= '0;
    else walks_q <= walks_d;
  OneWalk:      assert property (@(posedge clk_i) disable iff (!rst_ni)
                                 walk_gnt || req_o.load.v && req_o.load.walk |-> walks_q == '0);
  Awaited:      assert property (@(posedge clk_i) disable iff (!rst_ni)
                                 rsp_i.v && rsp_i.tag == WalkTag |-> walks_q == 2'd1);
  ClientKnown:  assert property (@(posedge clk_i) disable iff (!rst_ni) 32'(rr_q) < NC);
endmodule
