// SPDX-License-Identifier: Apache-2.0
// npu_fetch: a FIFO of memory pieces (weights, parameters, vector operands) asked for in order, delivered in order.
//
// A piece is 1..32 bytes anywhere; one that crosses a line is asked for in two parts.  Parts arrive in any order.
module npu_fetch #(
    parameter int N = 8, DepthLog2 = 6
) (
    input  logic               clk_i, rst_ni, clear_i,
    // pieces asked for
    input  logic               push_i,
    input  logic [31:0]        va_i,
    input  logic [5:0]         len_i,
    input  logic [8:0]         meta_i,
    output logic               push_rdy_o,
    // memory port
    output logic               req_o,
    output logic [31:0]        req_va_o,
    output logic [6:0]         req_len_o,
    output logic [8:0]         req_tag_o,
    input  logic               gnt_i,
    input  logic               any_rsp_i,
    input  npu_pkg::mem_rsp_t  rsp_i [N+1],
    // pieces delivered
    output logic               pop_v_o,
    output logic [DepthLog2:0] ready_o,   // pieces ready, in order
    output logic [255:0]       data_o,
    output logic [8:0]         meta_o,
    input  logic               pop_i
);
  import "DPI-C" function void npu_dpi_read(input int unsigned pa, output bit [511:0] d);
  localparam int D = 1 << DepthLog2;

  logic [DepthLog2:0] head_q, ready_q, tail_q;  // head <= ready <= tail
  logic [D-1:0]       pend0_q, pend1_q;
  logic [255:0]       mem [D];
  logic [5:0]         len0 [D];                 // bytes of the first part
  logic [8:0]         meta_q [D];
  logic               half_q;
  logic               full, two, last;
  logic [6:0]         first;
  logic [DepthLog2-1:0] ti, ri, hi;

  assign ti    = tail_q[DepthLog2-1:0];
  assign ri    = ready_q[DepthLog2-1:0];
  assign hi    = head_q[DepthLog2-1:0];
  assign full  = tail_q[DepthLog2] != head_q[DepthLog2] && ti == hi;
  assign first = 7'd64 - 7'(va_i[5:0]);
  assign two   = 7'(len_i) > first;
  assign last  = !two || half_q;
  assign req_o      = push_i && !full;
  assign req_va_o   = half_q ? {va_i[31:6] + 26'd1, 6'd0} : va_i;
  assign req_len_o  = half_q ? 7'(len_i) - first : two ? first : 7'(len_i);
  assign req_tag_o  = {2'd0, half_q, ti};
  assign push_rdy_o = req_o && gnt_i && last;
  assign pop_v_o    = ready_q != head_q;
  assign ready_o    = ready_q - head_q;
  assign data_o     = mem[hi];
  assign meta_o     = meta_q[hi];

  /* verilator lint_off BLKSEQ */
  always_ff @(posedge clk_i) begin
    bit [511:0] line;
    if (any_rsp_i)
      for (int r = 0; r <= N; r++)
        if (rsp_i[r].v && rsp_i[r].tag[8:7] == 2'd0) begin
          // An entry is read only after both its parts are in: order inside this block does not matter.
          npu_dpi_read(rsp_i[r].pa, line);
          if (!rsp_i[r].tag[6]) begin
            mem[rsp_i[r].tag[5:0]] = (mem[rsp_i[r].tag[5:0]] & ~(~256'd0 >> {9'd32 - 9'(len0[rsp_i[r].tag[5:0]]), 3'd0}))
                | (256'(line >> {rsp_i[r].pa[5:0], 3'd0}) & (~256'd0 >> {9'd32 - 9'(len0[rsp_i[r].tag[5:0]]), 3'd0}));
            pend0_q[rsp_i[r].tag[5:0]] <= 1'b0;
          end else begin
            mem[rsp_i[r].tag[5:0]] = (mem[rsp_i[r].tag[5:0]] & (~256'd0 >> {9'd32 - 9'(len0[rsp_i[r].tag[5:0]]), 3'd0}))
                | (line[255:0] << {len0[rsp_i[r].tag[5:0]], 3'd0});
            pend1_q[rsp_i[r].tag[5:0]] <= 1'b0;
          end
        end
    if (req_o && gnt_i) begin
      if (!half_q) begin
        meta_q[ti]  <= meta_i;
        len0[ti]    <= two ? 6'(first) : 6'd32;
        pend0_q[ti] <= 1'b1;
        pend1_q[ti] <= two;
      end
      half_q <= !last;
      if (last) tail_q <= tail_q + 1'b1;
    end
    if (ready_q != tail_q && !pend0_q[ri] && !pend1_q[ri]) ready_q <= ready_q + 1'b1;
    if (pop_i) head_q <= head_q + 1'b1;
    if (clear_i || !rst_ni) begin
      head_q  <= '0;
      ready_q <= '0;
      tail_q  <= '0;
      half_q  <= 1'b0;
    end
  end
  /* verilator lint_on BLKSEQ */
endmodule
