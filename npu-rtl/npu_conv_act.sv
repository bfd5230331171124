// SPDX-License-Identifier: Apache-2.0
// npu_conv_act: activation loader of npu_conv: the input's rows, in order, line by line, into the
// scratchpad's sliding window; and how many of them are complete.  An operation's rows come to lie
// behind those of the one before it, which keep their place until they have been used.
module npu_conv_act
  import npu_conv_pkg::*;
#(
    localparam int SW = npu_pkg::SpadLog2,
    localparam int Lines = 64, LI = $clog2(Lines)  // in flight
) (
    input  logic          clk_i, rst_ni,
    input  logic          clear_i,        // KILL
    input  logic          start_i,        // begin, when idle_o, with the operation start_op_i,
    input  conv_op_t      start_op_i,
    input  logic          used_i,         // all rows of it have been gathered,
    input  logic          old_used_i,     // and of the operation before
    input  logic          stop_i,         // all rows have been streamed: the rest is not needed
    input  conv_op_t      op_i,
    input  dim_t          w_i,
    output logic          idle_o,
    output logic [SW-7:0] base_o,         // line at which a row that begins now would
    // window
    input  logic [19:0]   lo_i,           // oldest row still needed
    input  logic          lo_hold_i,      // rows before it are still being read
    output logic [19:0]   done_o,         // rows complete, in order
    output logic          settled_o,      // nothing more comes before lo_i moves
    output logic          full_o,         // settled, and rows are left that do not fit
    // lines asked for, and back
    output logic          req_o,
    output logic [31:0]   va_o,
    output logic [LI-1:0] tag_o,
    input  logic          gnt_i,
    input  logic          back_i,
    input  logic [LI-1:0] back_tag_i,
    output logic [SW-7:0] back_line_o     // its line in the scratchpad
);
  logic             act_q, act_d, last_v_q, last_v_d;
  logic [19:0]      row_q, row_d, done_q, done_d, lo_q, lo_d;
  logic [31:0]      rva_q, rva_d, va_q, va_d, end_q, end_d, nrva;
  logic [25:0]      last_q;               // line asked for last,
  logic [SW-7:0]    last_ln_q;            // and where it goes
  logic [SW-1:0]    rsp_q, rsp_d, nrsp;
  logic [SW-7:0]    ln_q, ln_d;
  logic [SW+2:0]    sps;                  // bytes between rows
  logic [SW+2:0]    occ_q, occ_d;         // bytes between the oldest row kept and the next to load
  logic [SW+2:0]    old_q, old_d;         // bytes that the operation before may still use
  logic [SW-7:0]    top_q, top_d;         // line behind the last one used
  logic [LI-1:0]    head_q, head_d, tail_q, tail_d;
  logic [LI:0]      cnt_q, cnt_d;
  logic [Lines-1:0] pend_q;
  logic [Lines-1:0][SW-7:0] line_q;
  logic [19:0]      mark, old_mark;       // rows complete once the line at head is
  // of the line asked for last, which may yet change; before
  logic [19:0]      mark_q, mark_d, mark2_q;
  logic             fits, dup, adv, row_end, retire, lo_step;
  // Where K is cut: the row in its part, the part's first k, the tile's first column; and the
  // next row's.
  rows_t            t_q, t_d;
  logic [15:0]      k_q, k_d, n_q, n_d, k_next;
  logic [16:0]      part_end, tile_end;
  logic             kept_q, kept_d;       // the tile is one of which there are sums
  dim_t             cols;
  logic             part_last, tile_last, last;
  logic [31:0]      row_bytes;

  // Bytes of a row, of which a part of K has so many at most: of that in which left of K are.
  function automatic logic [31:0] bytes(input logic cut, input logic [15:0] left,
                                        input logic [31:0] most);
    return cut && 32'(left) < most ? 32'(left) : most;
  endfunction

  assign sps       = (SW + 3)'(SW'(op_i.sps));
  assign idle_o    = !act_q && cnt_q == 0;
  assign base_o    = top_q;
  assign fits      = 32'(old_q) + 32'(occ_q) + op_i.row_bytes + 32'd128 <= 32'(1 << SW);
  // two rows may share a line
  assign dup       = last_v_q && last_q == va_q[31:6] && last_ln_q == ln_q;
  assign req_o     = act_q && fits && !dup && cnt_q != (LI + 1)'(Lines);
  assign va_o      = {va_q[31:6], 6'd0};
  assign tag_o     = tail_q;
  assign adv       = act_q && fits && (dup || gnt_i);
  assign row_end   = adv && va_q[31:6] == end_q[31:6];
  assign retire    = cnt_q != 0 && !pend_q[head_q];
  assign part_last = op_i.cut && t_q == rows_t'(op_i.m - 20'd1);
  assign part_end  = {1'b0, k_q | op_i.part} + 17'd1;
  assign tile_last = part_end >= 17'(op_i.k);
  assign cols      = kept_q ? op_i.at.sums.nc : w_i;
  assign tile_end  = 17'(n_q) + 17'(cols);
  assign k_next    = !part_last ? k_q : tile_last ? '0 : 16'(part_end);
  assign last      = op_i.cut ? part_last && tile_last && tile_end >= 17'(op_i.n)
                              : row_q + 20'd1 == op_i.h;
  assign nrva      = part_last ? op_i.addr_a + 32'(k_next) : rva_q + op_i.lda;
  assign row_bytes = bytes(op_i.cut, op_i.k - k_next, op_i.row_bytes);
  assign nrsp      = rsp_q + SW'(op_i.sps);
  // The window's lower end follows the panel being streamed, a row a cycle; a row on its way keeps
  // its place, or it would come down on another's.
  assign lo_step   = lo_q != lo_i && lo_q != done_q && !lo_hold_i;
  assign done_o    = done_q;
  assign settled_o = cnt_q == 0 && (!act_q || (!fits && lo_q == lo_i));
  assign full_o    = cnt_q == 0 && act_q && !fits && lo_q == lo_i && old_q == 0;
  assign back_line_o = line_q[back_tag_i];

  logic [15:0]      start_k;
  logic [31:0]      start_a, start_bytes;
  assign start_bytes = bytes(start_op_i.cut, start_op_i.k - start_k, start_op_i.row_bytes);
  assign start_k   = start_op_i.cut ? start_op_i.at.sums.k & ~start_op_i.part : '0;
  assign start_a   = start_op_i.addr_a + 32'(start_k);

  npu_ram_1r1w #(.Width(20), .Depth(Lines)) u_marks (
      .clk_i, .we_i(gnt_i), .waddr_i(tail_q - LI'(1)), .wdata_i(mark_q), .re_i(1'b1),
      .raddr_i(head_d), .rdata_o(old_mark));
  assign head_d = head_q + LI'(retire);
  assign mark   = head_q == tail_q - LI'(1) ? mark_q : head_q == tail_q - LI'(2) ? mark2_q :
      old_mark;

  always_comb begin
    act_d    = act_q;
    last_v_d = last_v_q;
    row_d    = row_q;
    done_d   = done_q;
    lo_d     = lo_q;
    rva_d    = rva_q;
    va_d     = va_q;
    end_d    = end_q;
    rsp_d    = rsp_q;
    ln_d     = ln_q;
    old_d    = old_q;
    top_d    = top_q;
    mark_d   = mark_q;
    t_d      = t_q;
    k_d      = k_q;
    n_d      = n_q;
    kept_d   = kept_q;
    occ_d    = occ_q + (row_end ? sps : '0) - (lo_step ? sps : '0);
    tail_d   = tail_q + LI'(gnt_i);
    cnt_d    = cnt_q + (LI + 1)'(gnt_i) - (LI + 1)'(retire);
    if (gnt_i || row_end) mark_d = row_q + 20'(row_end);
    if (gnt_i) last_v_d = 1'b1;
    if (adv) begin
      va_d  = va_q + 32'd64;
      ln_d  = ln_q + 1'b1;
      top_d = ln_q + 1'b1;
    end
    if (row_end) begin
      row_d = row_q + 20'd1;
      rva_d = nrva;
      va_d  = nrva;
      end_d = nrva + row_bytes - 32'd1;
      rsp_d = nrsp;
      ln_d  = nrsp[SW-1:6];
      t_d   = part_last ? '0 : t_q + 1'b1;
      k_d   = k_next;
      if (part_last && tile_last) begin
        n_d    = 16'(tile_end);
        kept_d = 1'b0;
      end
      if (last) act_d = 1'b0;
    end
    if (lo_step) lo_d = lo_q + 20'd1;
    if (retire) done_d = mark;
    else if (cnt_q == 0) done_d = row_q;
    if (stop_i) act_d = 1'b0;
    if (old_used_i) old_d = '0;
    if (start_i) begin
      act_d    = start_op_i.h != start_op_i.row;
      rva_d    = start_a;
      va_d     = start_a;
      end_d    = start_a + start_bytes - 32'd1;
      rsp_d    = {top_q, start_op_i.cut ? 6'd0 : start_a[5:0]};
      t_d      = '0;
      k_d      = start_k;
      n_d      = start_op_i.at.n;
      kept_d   = start_op_i.at.sums.nc != 0;
      ln_d     = top_q;
      old_d    = (old_used_i ? '0 : old_q)
                 + (used_i ? '0 : occ_q + (SW + 3)'(op_i.row_bytes) + (SW + 3)'(128));
      last_v_d = 1'b0;
      row_d    = start_op_i.row;
      done_d   = start_op_i.row;
      lo_d     = start_op_i.row;
      occ_d    = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (clear_i || !rst_ni) begin
      act_q    <= 1'b0;
      last_v_q <= 1'b0;
      row_q    <= '0;
      done_q   <= '0;
      lo_q     <= '0;
      occ_q    <= '0;
      old_q    <= '0;
      top_q    <= '0;
      head_q   <= '0;
      tail_q   <= '0;
      cnt_q    <= '0;
    end else begin
      act_q    <= act_d;
      last_v_q <= last_v_d;
      row_q    <= row_d;
      done_q   <= done_d;
      lo_q     <= lo_d;
      occ_q    <= occ_d;
      old_q    <= old_d;
      top_q    <= top_d;
      head_q   <= head_d;
      tail_q   <= tail_d;
      cnt_q    <= cnt_d;
    end
    rva_q  <= rva_d;
    va_q   <= va_d;
    end_q  <= end_d;
    rsp_q  <= rsp_d;
    ln_q   <= ln_d;
    t_q    <= t_d;
    k_q    <= k_d;
    n_q    <= n_d;
    kept_q <= kept_d;
    mark_q <= mark_d;
    if (gnt_i) begin
      line_q[tail_q] <= ln_q;
      pend_q[tail_q] <= 1'b1;
      mark2_q        <= mark_q;
      last_q         <= va_q[31:6];
      last_ln_q      <= ln_q;
    end
    if (back_i) pend_q[back_tag_i] <= 1'b0;
  end

  one_at_a_time: assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
                                  start_i |-> idle_o)
      else $error("rows of two operations are asked for at once");
  // No row is loaded over one that is kept.
  Window: assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
                           occ_q == 0 || 32'(old_q) + 32'(occ_q) + op_i.row_bytes + 32'd128
                                         <= 32'(1 << SW) + 32'(sps));
  RowOfTheOperation: assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
      act_q && op_i.cut |-> 20'(t_q) < op_i.m && k_q < op_i.k && n_q < op_i.n);
  request_held: assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
      $past(rst_ni) && $past(req_o) && !$past(gnt_i) && !$past(stop_i) && !$past(clear_i)
      |-> req_o && $stable({va_o, tag_o}))
      else $error("a line changes before it is asked for");
  no_line_too_many: assert property (@(posedge clk_i) disable iff (!rst_ni || clear_i)
      gnt_i |-> req_o) else $error("a line is on its way that has no place");
  lines_counted: assert property (@(posedge clk_i) disable iff (!rst_ni)
      cnt_q <= (LI + 1)'(Lines) && tail_q - head_q == LI'(cnt_q))
      else $error("the lines on their way are not those between head and tail");
  logic stray;                            // a line comes that was not asked for
  assign stray = back_i && !pend_q[back_tag_i];
  line_awaited: assert property (@(posedge clk_i) disable iff (!rst_ni) !stray)
      else $error("a line comes that nobody asked for");
endmodule
