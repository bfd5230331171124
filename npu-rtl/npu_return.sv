// SPDX-License-Identifier: Apache-2.0
// npu_return: one slot's way back from N channels: keeps what its loads wait for, gives one
// response a cycle.
//
// Room for a response is set aside when the memory takes the request, so that a response never
// waits inside a channel, where another slot's might be behind it.
module npu_return #(
    parameter  int unsigned N         = 8,
    localparam int unsigned DepthLog2 = npu_pkg::FlightLog2,
    localparam int unsigned NW        = N > 1 ? $clog2(N) : 1
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic [N-1:0]        took_i,     // the channel's memory takes a load of this slot
    input  npu_pkg::port_req_t [N-1:0] req_i,
    input  logic [N-1:0]        mine_i,     // the channel's response is one of them
    input  npu_pkg::line_t [N-1:0] rdata_i,
    input  logic [N-1:0]        deny_i,     // a load of this slot is dropped; not beside mine_i
    input  npu_pkg::port_req_t [N-1:0] denied_i,
    output logic [N-1:0]        room_o,
    input  logic                hold_i,     // no response in the next cycle
    output npu_pkg::mem_rsp_t   rsp_o,
    output logic                busy_o
);
  if (N < 1 || N > npu_pkg::MaxChannels)
    $fatal(1, "npu_return: N is %0d, not 1..%0d", N, npu_pkg::MaxChannels);

  localparam int unsigned Depth = 1 << DepthLog2;
  typedef logic [DepthLog2-1:0] ptr_t;
  typedef logic [DepthLog2:0]   cnt_t;
  typedef struct packed {
    logic [8:0] tag;
    logic [5:0] at;
  } ask_t;
  typedef struct packed {
    logic denied;
    ask_t ask;
  } head_t;

  logic [N-1:0]   have_q, have_d;   // channels with an answer
  cnt_t           out_q [N];        // taken and not yet given to the slot
  ptr_t           wp_q [N], rp_q [N];
  logic [NW-1:0]  last_q, sel;
  logic [N-1:0]   above, pick, pop, pop_q;
  logic           any;
  head_t          head [N];
  npu_pkg::line_t data [N];

  // The next channel after the last one served.
  always_comb begin
    above = have_q & ~((N'(2) << last_q) - N'(1));
    pick  = |above ? above : have_q;
    any   = |have_q && !hold_i;
    sel   = '0;
    for (int c = int'(N) - 1; c >= 0; c--) if (pick[c]) sel = NW'(c);
    pop    = '0;
    have_d = have_q | mine_i | deny_i;
    if (any) begin
      pop[sel] = 1'b1;
      if (ptr_t'(rp_q[sel] + ptr_t'(1)) == wp_q[sel]) have_d[sel] = mine_i[sel] || deny_i[sel];
    end
  end

  // Memories of a channel's own: written at one end, read at the other a cycle ahead.
  for (genvar c = 0; c < N; c++) begin : g_chan
    ask_t           ask_q [Depth];  // taken
    head_t          head_q [Depth], now_q, in;
    npu_pkg::line_t data_q [Depth], line_q;
    ptr_t           ask_wp_q, ask_rp_q, ask_wp_d, ask_rp_d, wp_d, rp_d;
    cnt_t           out_d;

    assign room_o[c] = !out_q[c][DepthLog2];
    assign head[c]   = now_q;
    assign data[c]   = line_q;
    always_comb begin
      in = '{denied: 1'b1, ask: '{tag: denied_i[c].tag, at: denied_i[c].pa[5:0]}};
      if (mine_i[c]) in = '{denied: 1'b0, ask: ask_q[ask_rp_q]};
      ask_wp_d = ask_wp_q + ptr_t'(took_i[c]);
      ask_rp_d = ask_rp_q + ptr_t'(mine_i[c]);
      wp_d     = wp_q[c] + ptr_t'(mine_i[c] || deny_i[c]);
      rp_d     = rp_q[c] + ptr_t'(pop[c]);
      out_d    = out_q[c] + cnt_t'(took_i[c] || deny_i[c]) - cnt_t'(pop[c]);
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        ask_wp_q <= '0;
        ask_rp_q <= '0;
        wp_q[c]  <= '0;
        rp_q[c]  <= '0;
        out_q[c] <= '0;
      end else if (took_i[c] || mine_i[c] || deny_i[c] || pop[c]) begin
        ask_wp_q <= ask_wp_d;
        ask_rp_q <= ask_rp_d;
        wp_q[c]  <= wp_d;
        rp_q[c]  <= rp_d;
        out_q[c] <= out_d;
      end
      if (took_i[c]) ask_q[ask_wp_q] <= '{tag: req_i[c].tag, at: req_i[c].pa[5:0]};
      if (mine_i[c] || deny_i[c]) head_q[wp_q[c]] <= in;
      if (mine_i[c]) data_q[wp_q[c]] <= rdata_i[c];
      if (pop[c]) begin
        now_q  <= head_q[rp_q[c]];
        line_q <= data_q[rp_q[c]];
      end
    end

    // apart: Verilator 5.006 takes no array in a property
    logic took, mine, deny, asked, room, given, there;
    assign took  = took_i[c];
    assign mine  = mine_i[c];
    assign deny  = deny_i[c];
    assign room  = !out_q[c][DepthLog2];
    assign given = pop[c];
    assign there = have_q[c] && out_q[c] != '0;
    assign asked = ask_wp_q != ask_rp_q || !room;
    Asked: assert property (@(posedge clk_i) disable iff (!rst_ni) mine |-> asked);
    Room: assert property (@(posedge clk_i) disable iff (!rst_ni) took || deny |-> room);
    There: assert property (@(posedge clk_i) disable iff (!rst_ni) given |-> there);
    OneOut: assert property (@(posedge clk_i) disable iff (!rst_ni) !(took && deny));
    OneIn: assert property (@(posedge clk_i) disable iff (!rst_ni) !(mine && deny));
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      have_q <= '0;
      last_q <= '0;
      pop_q  <= '0;
    end else begin
      have_q <= have_d;
      pop_q  <= pop;
      if (any) last_q <= sel;
    end
  end
  always_comb begin
    rsp_o = '0;
    for (int c = 0; c < int'(N); c++) if (pop_q[c]) rsp_o = {1'b1, head[c], data[c]};
  end

  always_comb begin
    busy_o = |pop_q;
    for (int c = 0; c < int'(N); c++) busy_o |= out_q[c] != '0;
  end
endmodule
