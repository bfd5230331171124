// SPDX-License-Identifier: Apache-2.0
// npu_port: the NPU's side of one memory channel: a FIFO a slot, and who of them goes next.
//
// The request on offer is chosen anew in each cycle and counts only when the memory takes it
// (ready_i), so that what is granted late is shared fairly.  A slot is on offer only while there
// is room for its response, and while it may use the channel: what is still waiting when it no
// longer may is answered without the memory.
module npu_port #(
    parameter  int unsigned S        = 4,
    parameter  int unsigned BankBits = 3,
    localparam int unsigned FifoBits = 4  // requests a slot may have waiting here
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic [S-1:0]        push_i,      // take req_i[s]; only where full_o is low
    input  npu_pkg::mem_req_t [S-1:0] req_i,
    input  npu_pkg::line_t [S-1:0] wdata_i,
    output logic [S-1:0]        full_o,
    input  logic [S-1:0]        allow_i,     // slot s may use the channel (CH_MASK)
    input  logic [27:0]         timing_i,    // register TIMING
    input  npu_pkg::arb_cfg_t   arb_i,
    input  npu_pkg::turn_t      turn_i,
    input  logic [S-1:0]        room_i,      // for a response of slot s
    input  logic [S-1:0]        answer_i,    // the memory has one for slot s in this cycle
    output npu_pkg::port_req_t  denied_o,    // a request that is dropped
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
  if (BankBits < 1 || BankBits > 8) $fatal(1, "npu_port: BankBits is %0d, not 1..8", BankBits);

  import npu_regs_pkg::*;
  localparam int unsigned Fifo = 1 << FifoBits;
  localparam int unsigned SW = S > 1 ? $clog2(S) : 1;

  typedef logic [FifoBits:0] ptr_t;

  npu_pkg::port_req_t head [S];          // the oldest request of each slot that has one
  npu_pkg::line_t     wdata [S];         // of the write that was taken, where it was the slot's
  ptr_t               wp_q [S], rp_q [S], rp_d [S];
  logic [S-1:0]       pop;
  logic [SW-1:0]      who_q;             // of the last write
  logic [Fifo-1:0]    walk_q [S];        // entries that CH_MASK says nothing of
  logic [S-1:0]       pend_q;             // FIFO not empty
  logic [31:0]        cnt_q [16], shadow_q [16];

  for (genvar s = 0; s < S; s++) begin : g_full
    assign full_o[s] = wp_q[s] == {~rp_q[s][FifoBits], rp_q[s][FifoBits-1:0]};
  end

  logic [25:0]   head_lline [S];
  logic [2:0]    head_beats [S];
  logic [S-1:0]  ok, gone, last_one;
  logic [SW-1:0] who, out;
  logic          any, take;
  npu_pkg::row_e row;
  always_comb
    for (int s = 0; s < int'(S); s++) begin
      ok[s]         = allow_i[s] || walk_q[s][rp_q[s][FifoBits-1:0]];
      head_lline[s] = '0;
      head_beats[s] = '0;
      if (pend_q[s]) begin
        head_lline[s] = head[s].lline;
        head_beats[s] = head[s].beats;
      end
    end

  npu_arb #(
      .S(S),
      .BankBits(BankBits)
  ) u_arb (
      .clk_i,
      .rst_ni,
      .timing_i,
      .cfg_i(arb_i),
      .turn_i,
      .may_i(pend_q & room_i & ok),
      .lline_i(head_lline),
      .beats_i(head_beats),
      .any_o(any),
      .who_o(who),
      .take_i(take),
      .row_o(row)
  );

  always_comb begin
    req_o    = head[who];
    req_o.v  = any;
    take     = any && ready_i;
    pop      = '0;
    last_one = '0;
    if (take) pop[who] = 1'b1;
    if (take) last_one[who] = wp_q[who] - rp_q[who] == ptr_t'(1);
    gone     = pend_q & room_i & ~ok & ~answer_i;
    out      = '0;
    denied_o = '0;
    if (|gone) begin
      for (int s = int'(S) - 1; s >= 0; s--) if (gone[s]) out = SW'(s);
      denied_o      = head[out];
      pop[out]      = 1'b1;
      last_one[out] = wp_q[out] - rp_q[out] == ptr_t'(1);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int s = 0; s < int'(S); s++) begin
        wp_q[s] <= '0;
        rp_q[s] <= '0;
      end
      pend_q <= '0;
    end else begin
      if (take && req_o.we) who_q <= who;
      for (int s = 0; s < int'(S); s++) begin
        rp_q[s] <= rp_d[s];
        if (push_i[s]) begin
          walk_q[s][wp_q[s][FifoBits-1:0]] <= req_i[s].walk;
          wp_q[s] <= wp_q[s] + ptr_t'(1);
        end
      end
      pend_q <= (pend_q & ~last_one) | push_i;
    end
  end

  assign wdata_o = wdata[who_q];

  // A slot's FIFO: read ahead at the place that will be its head; what was written there in the
  // same cycle is handed on.
  for (genvar s = 0; s < S; s++) begin : g_fifo
    npu_pkg::port_req_t in, in_q, read;
    logic               new_q;
    assign in = '{v: 1'b1, slot: 3'(s), we: req_i[s].we, lline: req_i[s].lline,
                  beats: req_i[s].beats, len: req_i[s].len, tag: req_i[s].tag, pa: req_i[s].pa};
    assign rp_d[s] = rp_q[s] + ptr_t'(pop[s]);
    npu_ram_1r1w #(.Width($bits(in)), .Depth(Fifo)) u_requests (
        .clk_i, .we_i(push_i[s]), .waddr_i(wp_q[s][FifoBits-1:0]), .wdata_i(in), .re_i(1'b1),
        .raddr_i(rp_d[s][FifoBits-1:0]), .rdata_o(read));
    npu_ram_1r1w #(.Width(512), .Depth(Fifo)) u_data (
        .clk_i, .we_i(push_i[s] && req_i[s].we), .waddr_i(wp_q[s][FifoBits-1:0]),
        .wdata_i(wdata_i[s]), .re_i(take && req_o.we && 32'(who) == s),
        .raddr_i(rp_q[s][FifoBits-1:0]), .rdata_o(wdata[s]));
    always_ff @(posedge clk_i) begin
      new_q <= push_i[s] && wp_q[s] == rp_d[s];
      if (push_i[s]) in_q <= in;
    end
    assign head[s] = new_q ? in_q : read;
  end

  // ---- counters ------------------------------------------------------------------------------
  logic [3:0] kind;
  always_comb begin
    unique case (row)
      npu_pkg::RowHit:    kind = 4'(CHAN_CH_HITS_OFF >> 2);
      npu_pkg::RowClosed: kind = 4'(CHAN_CH_CLOSED_OFF >> 2);
      default:            kind = 4'(CHAN_CH_CONFLICTS_OFF >> 2);
    endcase
  end
  assign busy_o = |pend_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni)
      for (int i = 0; i < 16; i++) begin
        cnt_q[i]    <= '0;
        shadow_q[i] <= '0;
      end
    else begin
      if (take) begin
        cnt_q[4'(req_o.we)]               <= cnt_q[4'(req_o.we)] + 32'd1;
        cnt_q[kind]                       <= cnt_q[kind] + 32'd1;
        cnt_q[4'(CHAN_CH_BEATS_OFF >> 2)] <= cnt_q[4'(CHAN_CH_BEATS_OFF >> 2)] + 32'(req_o.beats);
        cnt_q[4'd8 + 4'(who)]             <= cnt_q[4'd8 + 4'(who)] + 32'(req_o.beats);
      end
      if (snap_i) shadow_q <= cnt_q;
    end
  end
  assign cnt_rdata_o = shadow_q[cnt_addr_i];

  // ---- what always holds ---------------------------------------------------------------------
  logic pend_ok;
  always_comb begin
    pend_ok = 1'b1;
    for (int s = 0; s < int'(S); s++) if (pend_q[s] != (wp_q[s] != rp_q[s])) pend_ok = 1'b0;
  end
  NoOverflow:    assert property (@(posedge clk_i) disable iff (!rst_ni) (push_i & full_o) == '0);
  NoUnderflow:   assert property (@(posedge clk_i) disable iff (!rst_ni) take |-> pend_q[who]);
  PendingIsThere: assert property (@(posedge clk_i) disable iff (!rst_ni) pend_ok);
  TakenMayGo:    assert property (@(posedge clk_i) disable iff (!rst_ni) take |-> ok[who] &&
      room_i[who]);
  DeniedMayNot:  assert property (@(posedge clk_i) disable iff (!rst_ni)
                                  denied_o.v |-> pend_q[out] && !ok[out] && room_i[out]);
  OnePop:        assert property (@(posedge clk_i) disable iff (!rst_ni) take && denied_o.v |->
      who != out);
  OwnSlot:       assert property (@(posedge clk_i) disable iff (!rst_ni) req_o.v |->
      32'(req_o.slot) == 32'(who));
endmodule
