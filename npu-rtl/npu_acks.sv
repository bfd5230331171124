// SPDX-License-Identifier: Apache-2.0
// npu_acks: a slot's stores that N channels' memories have taken, and their answers, counted: an
// answer carries nothing but which epoch its store was of.
module npu_acks #(
    parameter  int unsigned N         = 8,
    localparam int unsigned DepthLog2 = npu_pkg::FlightLog2
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic [N-1:0]        took_i,     // the channel's memory takes a store of this slot
    input  npu_pkg::port_req_t [N-1:0] req_i,
    input  logic [N-1:0]        mine_i,     // the channel's answer is to one of them
    input  logic [N-1:0]        deny_i,     // a store of this slot is dropped
    input  npu_pkg::port_req_t [N-1:0] denied_i,
    output logic [N-1:0]        room_o,
    input  logic                ideal_i,    // one that is answered in the next cycle
    input  logic                ideal_epoch_i,
    output npu_pkg::mem_ack_t   ack_o,
    output logic                busy_o
);
  if (N < 1 || N > npu_pkg::MaxChannels)
    $fatal(1, "npu_acks: N is %0d, not 1..%0d", N, npu_pkg::MaxChannels);

  localparam int unsigned Depth = 1 << DepthLog2;
  typedef logic [DepthLog2:0] ptr_t;

  npu_pkg::mem_ack_t ack_d;
  ptr_t              wp_q [N], rp_q [N], wp_d [N], rp_d [N];
  logic [Depth-1:0]  epoch_q [N];           // of those in flight
  logic [N-1:0]      some_q, full_q, some_d, full_d;
  logic              answered;
  assign answered = |mine_i || |deny_i || ideal_i;
  always_comb begin
    ack_d = '0;
    if (ideal_i) ack_d.n[ideal_epoch_i] = 6'd1;
    if (|mine_i || |deny_i)
      for (int c = 0; c < int'(N); c++) begin
        if (mine_i[c]) ack_d.n[epoch_q[c][rp_q[c][DepthLog2-1:0]]] += 6'd1;
        if (deny_i[c]) begin
          ack_d.n[denied_i[c].tag[0]] += 6'd1;
          ack_d.denied                 = 1'b1;
        end
      end
    for (int c = 0; c < int'(N); c++) begin
      wp_d[c]   = wp_q[c] + ptr_t'(took_i[c]);
      rp_d[c]   = rp_q[c] + ptr_t'(mine_i[c]);
      some_d[c] = wp_d[c] != rp_d[c];
      full_d[c] = wp_d[c] - rp_d[c] == ptr_t'(Depth);
    end
  end

  always_ff @(posedge clk_i) begin
    if (answered || ack_o.n != '0) ack_o <= ack_d;
    if (|took_i || |mine_i)
      for (int c = 0; c < int'(N); c++) begin
        if (took_i[c]) epoch_q[c][wp_q[c][DepthLog2-1:0]] <= req_i[c].tag[0];
        wp_q[c]   <= wp_d[c];
        rp_q[c]   <= rp_d[c];
        some_q[c] <= some_d[c];
        full_q[c] <= full_d[c];
      end
    if (!rst_ni) begin
      for (int c = 0; c < int'(N); c++) {wp_q[c], rp_q[c]} <= '0;
      ack_o  <= '0;
      some_q <= '0;
      full_q <= '0;
    end
  end
  assign room_o = ~full_q;
  assign busy_o = |some_q || ack_o.n != '0;

  Asked: assert property (@(posedge clk_i) disable iff (!rst_ni) (mine_i & ~some_q) == '0);
  Room:  assert property (@(posedge clk_i) disable iff (!rst_ni) (took_i & ~room_o) == '0);
endmodule
