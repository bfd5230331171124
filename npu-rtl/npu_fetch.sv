// SPDX-License-Identifier: Apache-2.0
// npu_fetch: a FIFO of memory pieces (weights, parameters, vector operands) asked for in order, delivered in order.
//
// A piece is 1..32 bytes: anywhere, and then one that crosses a line is asked for in two parts; or cut at multiples of
// 16 bytes with a jump between the cuts (weights in blocks of 16 columns), in up to three.  Parts arrive in any order.
module npu_fetch #(
    parameter int DepthLog2 = 6
) (
    input  logic               clk_i, rst_ni, clear_i,
    // pieces asked for
    input  logic               push_i,
    input  logic [31:0]        va_i,
    input  logic [5:0]         len_i,
    input  logic [8:0]         meta_i,
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
    output logic [8:0]         meta_o,
    input  logic               pop_i
);
  localparam int D = 1 << DepthLog2;

  logic [DepthLog2:0] head_q, ready_q, tail_q;  // head <= ready <= tail
  logic [D-1:0]       pend_q [3];
  logic [255:0]       mem [D];
  logic [5:0]         len0 [D];                 // bytes of the first part
  logic [8:0]         meta_q [D];
  logic [D-1:0]       cut_q;
  logic [1:0]         part_q;                   // the part asked for now
  logic               full, last;
  logic [6:0]         first, gone, left, piece;
  logic [DepthLog2-1:0] ti, ri, hi;

  assign ti    = tail_q[DepthLog2-1:0];
  assign ri    = ready_q[DepthLog2-1:0];
  assign hi    = head_q[DepthLog2-1:0];
  assign full  = tail_q[DepthLog2] != head_q[DepthLog2] && ti == hi;
  assign first = cut_i ? 7'd16 - 7'(va_i[3:0]) : 7'd64 - 7'(va_i[5:0]);
  assign gone  = part_q == 0 ? '0 : part_q == 2'd1 ? first : first + 7'd16;  // bytes of earlier parts
  assign left  = 7'(len_i) - gone;
  assign piece = part_q == 0 ? (left < first ? left : first) : (cut_i && left > 7'd16 ? 7'd16 : left);
  assign last  = piece == left;
  assign req_o      = push_i && !full;
  assign req_va_o   = part_q == 0 ? va_i
                    : cut_i ? {va_i[31:4], 4'd0} + (part_q == 2'd1 ? jump_i : jump_i << 1) : {va_i[31:6] + 26'd1, 6'd0};
  assign req_len_o  = piece;
  assign req_tag_o  = {1'b0, part_q, ti};
  assign push_rdy_o = req_o && gnt_i && last;
  assign pop_v_o    = ready_q != head_q;
  assign empty_o    = tail_q == head_q && part_q == 0;
  assign ready_o    = ready_q - head_q;
  assign data_o     = mem[hi];
  assign meta_o     = meta_q[hi];

  // Bytes [at, 32) of an entry are replaced by what came; later parts come to lie behind, whatever the order of arrival.
  function automatic logic [255:0] merge(input logic [255:0] old, input logic [511:0] line, input logic [5:0] from,
                                         input logic [5:0] at, input logic [5:0] n);
    logic [255:0] mask;
    mask = (~256'd0 >> {9'd32 - 9'(n), 3'd0}) << {at, 3'd0};
    return (old & ~mask) | ((256'(line >> {from, 3'd0}) << {at, 3'd0}) & mask);
  endfunction

  logic                 in_v;                   // a part has come
  logic [1:0]           in_part;
  logic [DepthLog2-1:0] in_i;
  assign in_v    = rsp_i.v && !rsp_i.tag[8] && rsp_i.tag[7:6] != 2'd3;
  assign in_part = rsp_i.tag[7:6];
  assign in_i    = rsp_i.tag[DepthLog2-1:0];
  /* verilator lint_off BLKSEQ */
  always_ff @(posedge clk_i) begin
    if (in_v) begin
      // An entry is read only after all its parts are in: order inside this block does not matter.
      unique case (in_part)
        2'd0:    mem[in_i] = merge(mem[in_i], rsp_i.data, rsp_i.at, 6'd0, len0[in_i]);
        2'd1:    mem[in_i] = merge(mem[in_i], rsp_i.data, rsp_i.at, len0[in_i], cut_q[in_i] ? 6'd16 : 6'd32);
        default: mem[in_i] = merge(mem[in_i], rsp_i.data, rsp_i.at, len0[in_i] + 6'd16, 6'd16);
      endcase
      pend_q[in_part][in_i] <= 1'b0;
    end
    if (req_o && gnt_i) begin
      meta_q[ti]  <= meta_i;
      if (part_q == 0) begin
        len0[ti]      <= 6'(piece);
        cut_q[ti]     <= cut_i;
        pend_q[1][ti] <= 1'b0;
        pend_q[2][ti] <= 1'b0;
      end
      pend_q[part_q][ti] <= 1'b1;
      part_q <= last ? '0 : part_q + 2'd1;
      if (last) tail_q <= tail_q + 1'b1;
    end
    if (ready_q != tail_q && !pend_q[0][ri] && !pend_q[1][ri] && !pend_q[2][ri]) ready_q <= ready_q + 1'b1;
    if (pop_i) head_q <= head_q + 1'b1;
    if (clear_i || !rst_ni) begin
      head_q  <= '0;
      ready_q <= '0;
      tail_q  <= '0;
      part_q  <= '0;
    end
  end
  /* verilator lint_on BLKSEQ */
endmodule
