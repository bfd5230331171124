// SPDX-License-Identifier: Apache-2.0
// npu_port: the NPU's side of one memory channel: two FIFOs a slot, and who of them goes next.
//
// Of a slot's two, loads go first, but from when there is no more room for its stores until half of
// them are gone.  The request on offer is chosen anew in each cycle and counts only when the memory
// takes it (ready_i), so that what is granted late is shared fairly.  A request is on offer only
// while there is room for its response, and while the slot may use the channel: what is still
// waiting when it no longer may is answered without the memory.
module npu_port #(
    parameter int unsigned S = 4
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  npu_pkg::ways_t [S-1:0] push_i,   // take req_i[s]; only where full_o is low
    input  npu_pkg::ways_req_t [S-1:0] req_i,
    input  npu_pkg::piece_t [S-1:0] wdata_i,
    output npu_pkg::ways_t [S-1:0] full_o,
    input  logic [S-1:0]        allow_i,     // slot s may use the channel (CH_MASK)
    input  logic [27:0]         timing_i,    // register TIMING
    input  npu_pkg::arb_cfg_t   arb_i,
    input  npu_pkg::turn_t      turn_i,
    input  npu_pkg::ways_t [S-1:0] room_i,   // for a response of slot s
    input  logic [S-1:0]        answer_i,    // the memory answers a load of slot s in this cycle
    output npu_pkg::port_req_t  denied_load_o, denied_store_o,  // that are dropped
    output npu_pkg::port_req_t  req_o,
    input  logic                ready_i,
    output npu_pkg::line_t      wdata_o,     // of the write taken one cycle ago
    output logic                busy_o,
    input  logic                snap_i,
    input  logic [3:0]          cnt_addr_i,  // word of the CHAN page
    output logic [31:0]         cnt_rdata_o
);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_port: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);

  import npu_regs_pkg::*;
  localparam int unsigned SW = S > 1 ? $clog2(S) : 1;

  npu_pkg::port_req_t load [S], store [S], offer [S];  // the oldest of each
  npu_pkg::piece_t    wdata [S];                       // of the store that was taken
  logic [S-1:0]       pop_load, pop_store, walk, half, load_v, store_v;
  logic [S-1:0]       load_ok, load_may, store_may, stores, first_d, first_q;
  logic [S-1:0]       load_gone, store_gone;
  logic [SW-1:0]      who, who_q, out_load, out_store;  // who_q: of the last store
  logic [25:0]        at_line [S];
  logic [2:0]         beats [S];
  logic               any, take;
  npu_pkg::row_e      row;
  logic [31:0]        cnt_q [16], shadow_q [16];

  for (genvar s = 0; s < S; s++) begin : g_slot
    npu_port_fifo u_loads (
        .clk_i, .rst_ni, .push_i(push_i[s].load), .slot_i(3'(s)), .req_i(req_i[s].load),
        .wdata_i('0), .full_o(full_o[s].load), .half_o(), .head_o(load[s]), .walk_o(walk[s]),
        .pop_i(pop_load[s]), .wdata_o());
    npu_port_fifo #(.Stores(1'b1)) u_stores (
        .clk_i, .rst_ni, .push_i(push_i[s].store), .slot_i(3'(s)), .req_i(req_i[s].store),
        .wdata_i(wdata_i[s]), .full_o(full_o[s].store), .half_o(half[s]), .head_o(store[s]),
        .walk_o(), .pop_i(pop_store[s]), .wdata_o(wdata[s]));
  end

  // ---- what each slot offers --------------------------------------------------------------------
  logic some;
  always_comb begin
    for (int s = 0; s < int'(S); s++) begin
      load_v[s]  = load[s].v;
      store_v[s] = store[s].v;
      first_d[s] = full_o[s].store || (first_q[s] && !half[s]);
      offer[s]   = '0;
      at_line[s] = '0;
      beats[s]   = '0;
    end
    some      = |load_v || |store_v;
    load_ok   = '0;
    load_may  = '0;
    store_may = '0;
    stores    = '0;
    if (some)
      for (int s = 0; s < int'(S); s++) begin
        load_ok[s]   = allow_i[s] || walk[s];
        load_may[s]  = load_v[s] && room_i[s].load && load_ok[s];
        store_may[s] = store_v[s] && room_i[s].store && allow_i[s];
        stores[s]    = store_may[s] && (first_q[s] || !load_may[s]);
        offer[s]     = stores[s] ? store[s] : load[s];
        if (load_may[s] || store_may[s]) begin
          at_line[s] = offer[s].lline;
          beats[s]   = offer[s].beats;
        end
      end
  end

  npu_arb #(
      .S(S)
  ) u_arb (
      .clk_i,
      .rst_ni,
      .timing_i,
      .cfg_i(arb_i),
      .turn_i,
      .may_i(load_may | store_may),
      .lline_i(at_line),
      .beats_i(beats),
      .any_o(any),
      .who_o(who),
      .take_i(take),
      .row_o(row)
  );

  always_comb begin
    req_o     = offer[who];
    req_o.v   = any;
    take      = any && ready_i;
    pop_load  = '0;
    pop_store = '0;
    if (take) begin
      pop_load[who]  = !stores[who];
      pop_store[who] = stores[who];
    end
    // of what must not go any more, one of each way
    denied_load_o  = '0;
    denied_store_o = '0;
    load_gone      = '0;
    store_gone     = '0;
    out_load       = '0;
    out_store      = '0;
    if (some)
      for (int s = int'(S) - 1; s >= 0; s--) begin
        load_gone[s]  = load_v[s] && room_i[s].load && !load_ok[s] && !answer_i[s];
        store_gone[s] = store_v[s] && room_i[s].store && !allow_i[s];
        if (load_gone[s]) out_load = SW'(s);
        if (store_gone[s]) out_store = SW'(s);
      end
    if (|load_gone) begin
      denied_load_o      = load[out_load];
      pop_load[out_load] = 1'b1;
    end
    if (|store_gone) begin
      denied_store_o       = store[out_store];
      pop_store[out_store] = 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    first_q <= rst_ni ? first_d : '0;
    if (take && req_o.we) who_q <= who;
  end

  assign wdata_o = 512'(wdata[who_q]);
  assign busy_o  = some;

  // ---- counters ------------------------------------------------------------------------------
  localparam logic [3:0] Beats = 4'(CHAN_CH_BEATS_OFF >> 2);
  logic [3:0]  way, kind, slot;
  logic [31:0] way_d, kind_d, beats_d, slot_d;
  assign way  = req_o.we ? 4'(CHAN_CH_WRITES_OFF >> 2) : 4'(CHAN_CH_READS_OFF >> 2);
  assign slot = 4'(CHAN_CH_SLOT_BEATS_OFF >> 2) + 4'(who);
  always_comb begin
    unique case (row)
      npu_pkg::RowHit:    kind = 4'(CHAN_CH_HITS_OFF >> 2);
      npu_pkg::RowClosed: kind = 4'(CHAN_CH_CLOSED_OFF >> 2);
      default:            kind = 4'(CHAN_CH_CONFLICTS_OFF >> 2);
    endcase
    way_d   = cnt_q[way] + 32'd1;
    kind_d  = cnt_q[kind] + 32'd1;
    beats_d = cnt_q[Beats] + 32'(req_o.beats);
    slot_d  = cnt_q[slot] + 32'(req_o.beats);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni)
      for (int i = 0; i < 16; i++) begin
        cnt_q[i]    <= '0;
        shadow_q[i] <= '0;
      end
    else begin
      if (take) begin
        cnt_q[way]   <= way_d;
        cnt_q[kind]  <= kind_d;
        cnt_q[Beats] <= beats_d;
        cnt_q[slot]  <= slot_d;
      end
      if (snap_i) shadow_q <= cnt_q;
    end
  end
  assign cnt_rdata_o = shadow_q[cnt_addr_i];

  // ---- what always holds ---------------------------------------------------------------------
  logic may_go;                             // apart: Verilator 5.006 takes no array in a property
  assign may_go = stores[who] ? store_may[who] : load_may[who];
  TakenMayGo:    assert property (@(posedge clk_i) disable iff (!rst_ni) take |-> may_go);
  DeniedMayNot:  assert property (@(posedge clk_i) disable iff (!rst_ni)
      (!denied_load_o.v || (load_gone[out_load] && !load_may[out_load])) &&
      (!denied_store_o.v || (store_gone[out_store] && !store_may[out_store])));
  OwnSlot:       assert property (@(posedge clk_i) disable iff (!rst_ni) req_o.v |->
      32'(req_o.slot) == 32'(who));
endmodule
