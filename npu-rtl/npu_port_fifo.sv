// SPDX-License-Identifier: Apache-2.0
// npu_port_fifo: requests of one slot, of one way, that wait for a channel.
//
// Memories are read ahead, at the place that will be the head; what was written there in the same
// cycle is handed on.  A store's data are read when it is taken.
module npu_port_fifo #(
    parameter  bit          Stores   = 1'b0,
    localparam int unsigned FifoBits = Stores ? 5 : 4
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               push_i,   // only where full_o is low
    input  logic [2:0]         slot_i,
    input  npu_pkg::mem_req_t  req_i,
    input  npu_pkg::piece_t    wdata_i,
    output logic               full_o,
    output logic               half_o,   // no more than half of it waits
    output npu_pkg::port_req_t head_o,   // the oldest; .v: there is one
    output logic               walk_o,   // it is a walk's
    input  logic               pop_i,
    output npu_pkg::piece_t    wdata_o   // of the one that was popped a cycle ago
);

  localparam int unsigned Depth = 1 << FifoBits;
  typedef logic [FifoBits:0]   ptr_t;
  typedef logic [FifoBits-1:0] at_t;
  typedef struct packed {
    logic               walk;
    npu_pkg::port_req_t req;
  } entry_t;

  ptr_t   wp_d, wp_q, rp_d, rp_q, count;
  entry_t in, in_q, read, head;
  logic   moves, new_q, v_q, full_q, half_q, new_d, v_d, full_d, half_d;
  assign moves  = push_i || pop_i;
  assign wp_d   = wp_q + ptr_t'(push_i);
  assign rp_d   = rp_q + ptr_t'(pop_i);
  assign count  = wp_d - rp_d;
  assign v_d    = count != '0;
  assign full_d = count == ptr_t'(Depth);
  assign half_d = count <= ptr_t'(Depth / 2);
  assign new_d  = push_i && wp_q == rp_d;
  assign full_o = full_q;
  assign half_o = half_q;
  assign in     = '{walk: req_i.walk,
                    req: '{v: 1'b1, slot: slot_i, we: Stores, lline: req_i.lline,
                           beats: req_i.beats, len: req_i.len, tag: req_i.tag, pa: req_i.pa}};
  npu_ram_1r1w #(.Width($bits(entry_t)), .Depth(Depth)) u_requests (
      .clk_i, .we_i(push_i), .waddr_i(at_t'(wp_q)), .wdata_i(in), .re_i(moves),
      .raddr_i(at_t'(rp_d)), .rdata_o(read));
  assign head = new_q ? in_q : read;
  always_comb begin
    head_o   = head.req;
    head_o.v = v_q;
    walk_o   = head.walk;
  end

  if (Stores) begin : g_data
    npu_ram_1r1w #(.Width($bits(npu_pkg::piece_t)), .Depth(Depth)) u_data (
        .clk_i, .we_i(push_i), .waddr_i(at_t'(wp_q)), .wdata_i, .re_i(pop_i),
        .raddr_i(at_t'(rp_q)), .rdata_o(wdata_o));
  end else begin : g_none
    assign wdata_o = '0;
  end

  always_ff @(posedge clk_i) begin
    if (moves) begin
      wp_q   <= wp_d;
      rp_q   <= rp_d;
      v_q    <= v_d;
      full_q <= full_d;
      half_q <= half_d;
      new_q  <= new_d;
    end
    if (push_i) in_q <= in;
    if (!rst_ni) begin
      wp_q   <= '0;
      rp_q   <= '0;
      v_q    <= 1'b0;
      full_q <= 1'b0;
      half_q <= 1'b1;
    end
  end

  NoOverflow:  assert property (@(posedge clk_i) disable iff (!rst_ni) !(push_i && full_o));
  NoUnderflow: assert property (@(posedge clk_i) disable iff (!rst_ni) !(pop_i && !v_q));
  ThereIsOne:  assert property (@(posedge clk_i) disable iff (!rst_ni) v_q == (wp_q != rp_q));
endmodule
