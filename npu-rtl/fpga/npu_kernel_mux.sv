// SPDX-License-Identifier: Apache-2.0
// npu_kernel_mux: M sources on one AXI4 manager: addresses in turn, data in the order of their
// addresses.
module npu_kernel_mux
  import npu_kernel_pkg::*;
#(
    parameter  int unsigned M         = 9,
    localparam int unsigned OwedLog2 = 4   // bursts whose data have not all gone
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    // sources
    input  ask_t [M-1:0] ask_i,
    output told_t [M-1:0] told_o,
    output logic [M-1:0] rvalid_o,
    input  logic [M-1:0] rready_i,
    output logic [M-1:0] bvalid_o,
    input  logic [M-1:0] bready_i,
    // the bus; what comes back goes to whom its ID says, when all are ready, so that nothing goes
    // from an input to an output in a cycle
    output burst_t       aw_o,
    input  logic         awready_i,
    output wbeat_t       w_o,
    input  logic         wready_i,
    input  logic         bvalid_i,
    output logic         bready_o,
    input  logic [4:0]   bsource_i,
    output burst_t       ar_o,
    input  logic         arready_i,
    input  logic         rvalid_i,
    output logic         rready_o,
    input  logic [4:0]   rsource_i
);
  if (M < 2 || M > npu_pkg::MaxChannels + 1)
    $fatal(1, "npu_kernel_mux: M is %0d, not 2..%0d", M, npu_pkg::MaxChannels + 1);

  localparam int unsigned MW = $clog2(M);
  typedef logic [MW-1:0] who_t;
  typedef logic [OwedLog2:0] ptr_t;

  // The next source behind the last one that went.
  function automatic who_t next_of(input logic [M-1:0] v, input who_t last);
    logic [M-1:0] above;
    above   = v & ~((M'(2) << last) - M'(1));
    next_of = '0;
    for (int i = int'(M) - 1; i >= 0; i--)
      if (|above ? above[i] : v[i]) next_of = who_t'(i);
  endfunction

  logic [M-1:0] ar_v, aw_v, wv;
  burst_t       ar_q, aw_q;
  wbeat_t       w_q;
  who_t         ar_who, aw_who, ar_last_q, aw_last_q, w_who;
  who_t         owed_q [1 << OwedLog2];
  ptr_t         wp_q, wp_d, rp_q, rp_d;
  logic         ar_take, aw_take, w_take, full, some;

  always_comb
    for (int i = 0; i < int'(M); i++) begin
      ar_v[i] = ask_i[i].ar.v;
      aw_v[i] = ask_i[i].aw.v;
      wv[i]   = ask_i[i].w.v;
    end
  assign ar_who  = next_of(ar_v, ar_last_q);
  assign aw_who  = next_of(aw_v, aw_last_q);
  assign wp_d    = wp_q + ptr_t'(1);
  assign rp_d    = rp_q + ptr_t'(1);
  assign full    = wp_q == {~rp_q[OwedLog2], rp_q[OwedLog2-1:0]};
  assign some    = wp_q != rp_q;
  assign w_who   = owed_q[rp_q[OwedLog2-1:0]];
  assign ar_take = |ar_v && (!ar_q.v || arready_i);
  assign aw_take = |aw_v && (!aw_q.v || awready_i) && !full;
  assign w_take  = some && wv[w_who] && (!w_q.v || wready_i);

  always_comb begin
    told_o = '0;
    for (int i = 0; i < int'(M); i++) begin
      told_o[i].arready = ar_take && ar_who == who_t'(i);
      told_o[i].awready = aw_take && aw_who == who_t'(i);
      told_o[i].wready  = w_take && w_who == who_t'(i);
    end
  end
  assign rready_o = &rready_i;
  assign bready_o = &bready_i;
  always_comb
    for (int i = 0; i < int'(M); i++) begin
      rvalid_o[i] = rvalid_i && rready_o && rsource_i == 5'(i);
      bvalid_o[i] = bvalid_i && bready_o && bsource_i == 5'(i);
    end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_q      <= '0;
      aw_q      <= '0;
      w_q       <= '0;
      ar_last_q <= '0;
      aw_last_q <= '0;
      wp_q      <= '0;
      rp_q      <= '0;
    end else begin
      if (ar_take) begin
        ar_q      <= ask_i[ar_who].ar;
        ar_last_q <= ar_who;
      end else if (arready_i) ar_q.v <= 1'b0;
      if (aw_take) begin
        aw_q      <= ask_i[aw_who].aw;
        aw_last_q <= aw_who;
        wp_q      <= wp_d;
      end else if (awready_i) aw_q.v <= 1'b0;
      if (w_take) begin
        w_q <= ask_i[w_who].w;
        if (ask_i[w_who].w.last) rp_q <= rp_d;
      end else if (wready_i) w_q.v <= 1'b0;
    end
    if (aw_take) owed_q[wp_q[OwedLog2-1:0]] <= aw_who;
  end
  assign ar_o = ar_q;
  assign aw_o = aw_q;
  assign w_o  = w_q;

  // ---- the rules of the bus that this end has to keep -------------------------------------------
  ArStable: assert property (@(posedge clk_i) disable iff (!rst_ni)
      ar_o.v && !arready_i |=> ar_o.v && $stable(ar_o));
  AwStable: assert property (@(posedge clk_i) disable iff (!rst_ni)
      aw_o.v && !awready_i |=> aw_o.v && $stable(aw_o));
  WStable: assert property (@(posedge clk_i) disable iff (!rst_ni)
      w_o.v && !wready_i |=> w_o.v && $stable(w_o));
  OwedRoom: assert property (@(posedge clk_i) disable iff (!rst_ni)
      ptr_t'(wp_q - rp_q) <= ptr_t'(1 << OwedLog2));
  DataOwed: assert property (@(posedge clk_i) disable iff (!rst_ni)
      |wv |-> some || |aw_v || aw_o.v);
  RKnown: assert property (@(posedge clk_i) disable iff (!rst_ni) rvalid_i |-> 32'(rsource_i) < M);
  BKnown: assert property (@(posedge clk_i) disable iff (!rst_ni) bvalid_i |-> 32'(bsource_i) < M);
  ArInside: assert property (@(posedge clk_i) disable iff (!rst_ni)
      ar_o.v |-> 13'(ar_o.addr[11:0]) + {1'b0, ar_o.len, 4'd0} < 13'h1000);
  AwInside: assert property (@(posedge clk_i) disable iff (!rst_ni)
      aw_o.v |-> 13'(aw_o.addr[11:0]) + {1'b0, aw_o.len, 4'd0} < 13'h1000);
endmodule
