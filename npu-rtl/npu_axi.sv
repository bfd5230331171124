// SPDX-License-Identifier: Apache-2.0
// npu_axi: one of the NPU's memory ports as an AXI4 manager: 128-bit data, INCR bursts inside a
// line, ID = slot.
//
// The address is the channel's own: its first line is at 0.  A slot's requests are answered in
// order for each direction, as AXI keeps them with one ID; nothing is assumed between IDs or
// directions, and read data of several IDs may come mixed.
module npu_axi #(
    parameter  int unsigned S         = 4,
    // reads of a slot in flight: what npu_return has room for
    localparam int unsigned DepthLog2 = npu_pkg::FlightLog2
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    // the port
    input  npu_pkg::port_req_t req_i,
    input  npu_pkg::line_t     wdata_i,  // of the write taken one cycle ago
    output logic               ready_o,
    output npu_pkg::port_rsp_t rsp_o,
    output npu_pkg::line_t     rdata_o,
    output logic               err_o,    // a response says SLVERR or DECERR
    // AXI4
    output logic               awvalid_o,
    input  logic               awready_i,
    output logic [2:0]         awid_o,
    output logic [31:0]        awaddr_o,
    output logic [7:0]         awlen_o,
    output logic [2:0]         awsize_o,
    output logic [1:0]         awburst_o,
    output logic               wvalid_o,
    input  logic               wready_i,
    output logic [127:0]       wdata_o,
    output logic [15:0]        wstrb_o,
    output logic               wlast_o,
    input  logic               bvalid_i,
    output logic               bready_o,
    input  logic [2:0]         bid_i,
    input  logic [1:0]         bresp_i,
    output logic               arvalid_o,
    input  logic               arready_i,
    output logic [2:0]         arid_o,
    output logic [31:0]        araddr_o,
    output logic [7:0]         arlen_o,
    output logic [2:0]         arsize_o,
    output logic [1:0]         arburst_o,
    input  logic               rvalid_i,
    output logic               rready_o,
    input  logic [2:0]         rid_i,
    input  logic [127:0]       rdata_i,
    input  logic [1:0]         rresp_i,
    input  logic               rlast_i
);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_axi: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);

  localparam int unsigned SW = S > 1 ? $clog2(S) : 1;
  localparam logic [2:0] Size16 = 3'd4;
  localparam logic [1:0] Incr = 2'd1;
  typedef logic [DepthLog2-1:0] ptr_t;
  typedef struct packed {
    logic [2:0]  id;
    logic [31:0] addr;
    logic [1:0]  last;  // beats less one
  } burst_t;
  typedef struct packed {
    logic [3:0][127:0] data;
    logic [3:0][15:0]  strb;
    logic [1:0]        last;
  } write_t;

  logic   ar_v_q, ar_v_d, aw_v_q, aw_v_d;
  burst_t ar_q, ar_d, aw_q, aw_d, burst;

  // ---- requests -------------------------------------------------------------------------------
  logic   ar_free, aw_free, take_r, take_w;
  logic   fresh_q;           // a write was taken one cycle ago: its data are here
  logic   next_v_q, next_v_d, w_v_q, w_v_d, w_end;
  write_t next_q, next_d, w_q, w_d, aligned;
  logic [3:0] at_q;          // of that write: byte in its first beat, bytes, beats less one
  logic [6:0] len_q;
  logic [1:0] last_q;

  assign ar_free = !ar_v_q || arready_i;
  assign aw_free = (!aw_v_q || awready_i) && !fresh_q && !next_v_q;
  assign ready_o = req_i.we ? aw_free : ar_free;
  assign take_r  = req_i.v && !req_i.we && ar_free;
  assign take_w  = req_i.v && req_i.we && aw_free;
  assign burst   = '{id: req_i.slot, addr: {req_i.lline, req_i.pa[5:4], 4'd0},
                     last: 2'(req_i.beats - 3'd1)};
  assign w_end   = w_v_q && wready_i && w_q.last == '0;

  // From the first byte on to where it lies in its beats.
  assign aligned = '{data: wdata_i << {at_q, 3'd0},
      strb: (64'hFFFF_FFFF_FFFF_FFFF >> (7'd64 - len_q)) << at_q,
                     last: last_q};

  always_comb begin
    ar_v_d = take_r || (ar_v_q && !arready_i);
    ar_d   = take_r ? burst : ar_q;
    aw_v_d = take_w || (aw_v_q && !awready_i);
    aw_d   = take_w ? burst : aw_q;

    // Two writes' data: one on the bus, one behind it.
    w_v_d    = w_v_q && !w_end;
    w_d      = w_q;
    next_v_d = next_v_q;
    next_d   = next_q;
    if (w_v_q && wready_i) begin
      w_d.data = w_q.data >> 128;
      w_d.strb = w_q.strb >> 16;
      w_d.last = w_q.last - 2'd1;
    end
    if (!w_v_d) begin
      w_v_d    = next_v_q || fresh_q;
      w_d      = next_v_q ? next_q : aligned;
      next_v_d = 1'b0;
    end else if (fresh_q) begin
      next_v_d = 1'b1;
      next_d   = aligned;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_v_q   <= 1'b0;
      aw_v_q   <= 1'b0;
      fresh_q  <= 1'b0;
      w_v_q    <= 1'b0;
      next_v_q <= 1'b0;
    end else begin
      ar_v_q   <= ar_v_d;
      aw_v_q   <= aw_v_d;
      fresh_q  <= take_w;
      w_v_q    <= w_v_d;
      next_v_q <= next_v_d;
    end
    ar_q   <= ar_d;
    aw_q   <= aw_d;
    w_q    <= w_d;
    next_q <= next_d;
    if (take_w) begin
      at_q   <= req_i.pa[3:0];
      len_q  <= req_i.len;
      last_q <= burst.last;
    end
  end

  assign arvalid_o = ar_v_q;
  assign arid_o    = ar_q.id;
  assign araddr_o  = ar_q.addr;
  assign arlen_o   = 8'(ar_q.last);
  assign arsize_o  = Size16;
  assign arburst_o = Incr;
  assign awvalid_o = aw_v_q;
  assign awid_o    = aw_q.id;
  assign awaddr_o  = aw_q.addr;
  assign awlen_o   = 8'(aw_q.last);
  assign awsize_o  = Size16;
  assign awburst_o = Incr;
  assign wvalid_o  = w_v_q;
  assign wdata_o   = w_q.data[0];
  assign wstrb_o   = w_q.strb[0];
  assign wlast_o   = w_q.last == '0;

  // ---- responses: a read's as its last beat comes; a write's when there is none -----------------
  // One that comes with a read's waits for the next cycle, in which no beat is taken: so none waits
  // for long, and nothing goes from an input to an output in a cycle.
  logic [1:0]         first_q [1 << (SW + DepthLog2)];  // beat of the line that a read begins with
  ptr_t               wp_q [S], rp_q [S];
  logic [1:0]         got_q [S];                 // beats of a slot's oldest read that have come
  logic [3:0][127:0]  part_q [S];
  logic [3:0][127:0]  line;
  logic [SW-1:0]      rs, ts;
  logic [1:0]         beat, got_d;
  ptr_t               wp_d, rp_d;
  logic               r_v, r_end, b_v, err_d;
  logic               b_q, b_d;                  // one waits,
  logic [2:0]         bid_q;                     // of that slot
  npu_pkg::port_rsp_t rsp_d;
  assign rready_o = !b_q;
  assign bready_o = !b_q;
  assign r_v      = rvalid_i && rready_o;
  assign b_v      = bvalid_i && bready_o;
  assign b_d      = b_v && r_end;
  assign rs       = SW'(rid_i);
  assign ts       = SW'(req_i.slot);
  assign beat     = first_q[{rs, rp_q[rs]}] + got_q[rs];
  assign r_end    = r_v && rlast_i;
  always_comb begin
    line       = part_q[rs];
    line[beat] = rdata_i;
    wp_d       = wp_q[ts] + ptr_t'(1);
    rp_d       = rp_q[rs] + ptr_t'(1);
    got_d      = rlast_i ? '0 : got_q[rs] + 2'd1;
    rsp_d      = '{v: r_end || b_v || b_q, slot: r_end ? rid_i : b_q ? bid_q : bid_i, we: !r_end};
    err_d      = (r_v && rresp_i[1]) || (b_v && bresp_i[1]);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int s = 0; s < int'(S); s++) begin
        wp_q[s]  <= '0;
        rp_q[s]  <= '0;
        got_q[s] <= '0;
      end
      b_q   <= 1'b0;
      rsp_o <= '0;
      err_o <= 1'b0;
    end else begin
      if (take_r) begin
        first_q[{ts, wp_q[ts]}] <= req_i.pa[5:4];
        wp_q[ts]                <= wp_d;
      end
      if (r_v) begin
        part_q[rs] <= line;
        got_q[rs]  <= got_d;
      end
      if (r_end) rp_q[rs] <= rp_d;
      b_q   <= b_d;
      rsp_o <= rsp_d;
      err_o <= err_d;
    end
    bid_q <= bid_i;
    if (r_end) rdata_o <= line;
  end

  // ---- the rules of the bus that this end has to keep -------------------------------------------
  ArStable: assert property (@(posedge clk_i) disable iff (!rst_ni)
      arvalid_o && !arready_i |=> arvalid_o && $stable({arid_o, araddr_o, arlen_o}));
  AwStable: assert property (@(posedge clk_i) disable iff (!rst_ni)
      awvalid_o && !awready_i |=> awvalid_o && $stable({awid_o, awaddr_o, awlen_o}));
  InLine: assert property (@(posedge clk_i) disable iff (!rst_ni)
      take_r || take_w |-> 4'(req_i.pa[5:4]) + 4'(req_i.beats) <= 4'd4 && req_i.beats != '0);
  WStable: assert property (@(posedge clk_i) disable iff (!rst_ni)
      wvalid_o && !wready_i |=> wvalid_o && $stable({wdata_o, wstrb_o, wlast_o}));

  // ---- and those that it relies on --------------------------------------------------------------
  // Asked for by each slot and not answered.
  logic [DepthLog2:0] reads_q [S], reads_d [S];
  logic [7:0]         writes_q [S], writes_d [S];
  logic               room, r_open, b_open, in_line;
  always_comb
    for (int s = 0; s < int'(S); s++) begin
      reads_d[s]  = reads_q[s] + (DepthLog2 + 1)'(take_r && ts == SW'(s))
                    - (DepthLog2 + 1)'(r_end && rs == SW'(s));
      writes_d[s] = writes_q[s] + 8'(take_w && ts == SW'(s))
                    - 8'(b_v && SW'(bid_i) == SW'(s));
    end
  always_ff @(posedge clk_i)
    for (int s = 0; s < int'(S); s++)
      if (!rst_ni) begin
        reads_q[s]  <= '0;
        writes_q[s] <= '0;
      end else begin
        reads_q[s]  <= reads_d[s];
        writes_q[s] <= writes_d[s];
      end
  assign room    = !reads_q[ts][DepthLog2];
  assign r_open  = 32'(rid_i) < S && reads_q[rs] != '0;
  assign b_open  = 32'(bid_i) < S && writes_q[SW'(bid_i)] != '0;
  assign in_line = beat >= got_q[rs];
  ReadsRoom: assert property (@(posedge clk_i) disable iff (!rst_ni) take_r |-> room);
  RAwaited: assert property (@(posedge clk_i) disable iff (!rst_ni) rvalid_i |-> r_open);
  BAwaited: assert property (@(posedge clk_i) disable iff (!rst_ni) bvalid_i |-> b_open);
  RInLine: assert property (@(posedge clk_i) disable iff (!rst_ni) rvalid_i |-> in_line);
endmodule
