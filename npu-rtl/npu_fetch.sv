// SPDX-License-Identifier: Apache-2.0
// npu_fetch: a FIFO of memory pieces (weights, parameters, vector operands) asked for in order,
// delivered in order.
//
// A piece is 1..32 bytes: anywhere, and then one that crosses a line is asked for in two parts; or
// cut at multiples of 16 bytes with a jump between the cuts (weights in blocks of 16 columns), in
// up to three.  Parts arrive in any order, each to its bytes of the piece's word.
module npu_fetch #(
    localparam int DepthLog2 = 6          // of the places that a tag has bits for
) (
    input  logic               clk_i, rst_ni, clear_i,
    // pieces asked for
    input  logic               push_i,
    input  logic [31:0]        va_i,
    input  logic [5:0]         len_i,
    input  logic [9:0]         meta_i,
    input  logic               cut_i,     // blocks of 16 bytes, jump_i apart
    input  logic [31:0]        jump_i,
    output logic               push_rdy_o,
    // memory port
    output logic               req_o,
    output logic [31:0]        req_va_o,
    output logic [6:0]         req_len_o,
    output logic [8:0]         req_tag_o,
    input  logic               gnt_i,
    input  npu_pkg::mem_rsp_t  rsp_i,
    // pieces delivered
    output logic               pop_v_o,
    output logic               empty_o,   // nothing is asked for or delivered
    output logic [DepthLog2:0] ready_o,   // pieces ready, in order
    output logic [255:0]       data_o,
    output logic [9:0]         meta_o,
    input  logic               pop_i
);
  localparam int D = 1 << DepthLog2;
  typedef logic [DepthLog2-1:0] at_t;
  typedef logic [DepthLog2:0]   count_t;

  count_t              head_d, head_q, ready_d, ready_q, tail_d, tail_q;  // head <= ready <= tail
  at_t                 ti, ri;
  logic [2:0][D-1:0]   pend_d, pend_q;            // parts asked for that have not come
  logic [D-1:0][5:0]   len0_d, len0_q;            // bytes of the first part
  logic [D-1:0]        cut_d, cut_q;
  logic [1:0]          part_d, part_q;            // the part asked for now
  logic                ask, full, last, show;
  logic [6:0]          first, gone, left, piece;

  // ---- parts asked for -------------------------------------------------------------------------
  assign ti    = at_t'(tail_q);
  assign ri    = at_t'(ready_q);
  assign full  = tail_q[DepthLog2] != head_q[DepthLog2] && ti == at_t'(head_q);
  assign first = cut_i ? 7'd16 - 7'(va_i[3:0]) : 7'd64 - 7'(va_i[5:0]);
  assign gone  = part_q == 0 ? '0 : part_q == 2'd1 ? first : first + 7'd16;  // of earlier parts
  assign left  = 7'(len_i) - gone;
  assign last  = piece == left;
  always_comb begin
    piece    = left;
    req_va_o = va_i;
    if (part_q == 0) begin
      if (first < left) piece = first;
    end else if (cut_i) begin
      if (left > 7'd16) piece = 7'd16;
      req_va_o = {va_i[31:4], 4'd0} + (part_q == 2'd1 ? jump_i : jump_i << 1);
    end else req_va_o = {va_i[31:6] + 26'd1, 6'd0};
  end
  assign req_o      = push_i && !full;
  assign req_len_o  = piece;
  assign req_tag_o  = {1'b0, part_q, ti};
  assign ask        = req_o && gnt_i;
  assign push_rdy_o = ask && last;

  // ---- parts that come -------------------------------------------------------------------------
  logic         in_v;
  logic [1:0]   in_part;
  at_t          in_i;
  logic [5:0]   to;                               // where in the piece the part begins
  logic [255:0] in_data;
  logic [31:0]  in_bytes;
  assign in_v    = rsp_i.v && !rsp_i.tag[8] && rsp_i.tag[7:6] != 2'd3;
  assign in_part = rsp_i.tag[7:6];
  assign in_i    = at_t'(rsp_i.tag);
  always_comb begin
    to       = '0;
    in_data  = '0;
    in_bytes = '0;
    if (in_v) begin                               // quiet otherwise
      if (in_part != 0) to = len0_q[in_i] + (in_part == 2'd2 ? 6'd16 : 6'd0);
      in_data  = 256'(rsp_i.data >> {rsp_i.at, 3'd0}) << {to, 3'd0};
      // what lies behind a part is the next one's, or nobody's
      in_bytes = in_part == 0 ? ~(32'hffffffff << len0_q[in_i])
                 : in_part == 2'd1 && cut_q[in_i] ? 32'h0000ffff << to : 32'hffffffff << to;
    end
  end

  // ---- pieces ----------------------------------------------------------------------------------
  assign show = head_d != ready_d;
  npu_ram_1r1w_be #(.Width(256), .Depth(D)) u_data (
      .clk_i, .we_i(in_v), .be_i(in_bytes), .waddr_i(in_i), .wdata_i(in_data), .re_i(show),
      .raddr_i(at_t'(head_d)), .rdata_o(data_o));
  npu_ram_1r1w #(.Width(10), .Depth(D)) u_meta (
      .clk_i, .we_i(ask), .waddr_i(ti), .wdata_i(meta_i), .re_i(show), .raddr_i(at_t'(head_d)),
      .rdata_o(meta_o));
  assign pop_v_o = ready_q != head_q;
  assign empty_o = tail_q == head_q && part_q == 0;
  assign ready_o = ready_q - head_q;

  always_comb begin
    pend_d  = pend_q;
    len0_d  = len0_q;
    cut_d   = cut_q;
    part_d  = part_q;
    tail_d  = tail_q;
    head_d  = head_q + count_t'(pop_i);
    ready_d = ready_q;
    if (ready_q != tail_q && !pend_q[0][ri] && !pend_q[1][ri] && !pend_q[2][ri])
      ready_d = ready_q + 1'b1;
    if (in_v) pend_d[in_part][in_i] = 1'b0;
    if (ask) begin
      if (part_q == 0) begin
        len0_d[ti]    = 6'(piece);
        cut_d[ti]     = cut_i;
        pend_d[1][ti] = 1'b0;
        pend_d[2][ti] = 1'b0;
      end
      pend_d[part_q][ti] = 1'b1;
      part_d             = last ? '0 : part_q + 2'd1;
      tail_d             = tail_q + count_t'(last);
    end
    if (clear_i) begin
      head_d  = '0;
      ready_d = '0;
      tail_d  = '0;
      part_d  = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    pend_q  <= pend_d;
    len0_q  <= len0_d;
    cut_q   <= cut_d;
    part_q  <= rst_ni ? part_d : '0;
    head_q  <= rst_ni ? head_d : '0;
    ready_q <= rst_ni ? ready_d : '0;
    tail_q  <= rst_ni ? tail_d : '0;
  end

  // ---- what always holds -----------------------------------------------------------------------
  in_order: assert property (@(posedge clk_i) disable iff (!rst_ni)
      ready_q - head_q <= tail_q - head_q && tail_q - head_q <= count_t'(D))
      else $error("pieces ready that nobody asked for, or more than there is room for");
  no_pop_of_nothing: assert property (@(posedge clk_i) disable iff (!rst_ni)
      pop_i |-> pop_v_o) else $error("a piece is taken that is not there");
  part_known: assert property (@(posedge clk_i) disable iff (!rst_ni)
      part_q != 2'd3) else $error("a piece has a fourth part");
  request_held: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(req_o) && !$past(gnt_i) && !$past(clear_i) && push_i &&
      $stable({va_i, len_i, cut_i, jump_i})
      |-> req_o && $stable({req_va_o, req_len_o, req_tag_o}))
      else $error("a request changes before it is granted");
  logic stray;                            // a part comes that was not asked for
  assign stray = in_v && !pend_q[in_part][in_i];
  part_awaited: assert property (@(posedge clk_i) disable iff (!rst_ni)
      !stray) else $error("a part comes that nobody asked for");
endmodule
