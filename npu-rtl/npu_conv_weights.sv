// SPDX-License-Identifier: Apache-2.0
// npu_conv_weights: what the array and the requantizers need from memory beside activations, in the
// order of use: for each tile w parameter rows, then K weight rows; then those of the next
// operation.  Where weights are in blocks, two rows are neighbours in half a line: one piece.
module npu_conv_weights
  import npu_conv_pkg::*;
(
    input  logic        clk_i, rst_ni, kill_i,
    input  logic        start_i,           // op_i's are next
    input  conv_op_t    op_i,              // until last_o
    output logic        v_o, last_o,       // some are left; the last piece is taken
    output tid_t        tid_o,             // the tile asked for
    input  dim_t        w_i,
    input  logic        serial_i,          // a row a piece
    input  logic        tile_done_i,       // a tile's number is no longer needed
    input  logic        a_line_i,          // a line of input is asked for, too
    output logic        push_o,
    output logic [31:0] push_va_o,
    output logic [5:0]  push_len_o,
    // {weights, tile, first column}; bit 0: two rows; of weights the second one's are bytes 16 on
    output logic [9:0]  push_meta_o,
    output logic        push_cut_o,
    output logic [31:0] push_jump_o,
    input  logic        push_rdy_i
);
  logic        v_d, v_q;
  logic        rows_d, rows_q;             // weight rows, not parameters
  logic [19:0] m0_d, m0_q;
  rows_t       t_d, t_q;
  logic [15:0] n0_d, n0_q, k_d, k_q;
  dim_t        j_d, j_q;                   // column of the next parameter row
  logic [31:0] va_d, va_q;
  tid_t        tid_d, tid_q;
  logic [2:0]  ahead_d, ahead_q;           // tiles asked for whose numbers are still in use
  logic        kept_d, kept_q;             // sums of the tile are there: it is as wide as they
                                           // are, and begins at their k
  dim_t        nc, w;
  logic [15:0] n0_next;
  logic [19:0] m_next;
  logic        two, last_n, last_row, tile_end, room;
  logic        held_d, held_q;             // a piece is asked for and not taken
  logic [15:0] k_next;

  // where row 0 of output channel n begins
  function automatic logic [31:0] weights(input logic [15:0] n);
    return op_i.addr_b + (op_i.block ? (32'(n[15:4]) * 32'(op_i.k) << 4) + 32'(n[3:0]) : 32'(n));
  endfunction

  assign w           = kept_q ? op_i.at.sums.nc : w_i;
  assign last_n      = 17'(n0_q) + 17'(w) >= 17'(op_i.n);
  assign nc          = last_n ? dim_t'(op_i.n - n0_q) : w;
  assign n0_next     = last_n ? '0 : n0_q + 16'(w);
  assign m_next      = m0_q + 20'(t_q);
  assign two         = !rows_q ? j_q + 1'b1 != nc
      : op_i.block && !serial_i && !va_q[4] && 7'(va_q[3:0]) + nc <= 7'd16 && k_q + 16'd1 != op_i.k;
  assign k_next      = k_q + (two ? 16'd2 : 16'd1);
  assign last_row    = k_next == op_i.k;
  assign tile_end    = push_rdy_i && rows_q && last_row;
  assign v_o         = v_q;
  assign last_o      = tile_end && last_n && m_next >= op_i.m;
  assign tid_o       = tid_q;
  // A tile begins, with parameters or without, when one of the eight numbers is free; grouped, one
  // of four (npu_conv_cols).  Input goes before the last four.
  assign room        = ahead_q < 3'd3 || (ahead_q < 3'd7 && !op_i.group && !a_line_i);
  assign push_o      = v_q && (room || held_q || (rows_q && k_q != 0));
  assign held_d      = push_o && !push_rdy_i && !kill_i;
  assign push_va_o   = va_q;
  assign push_len_o  = (rows_q ? 6'(nc) : 6'd16) + (two ? 6'd16 : 6'd0);
  assign push_meta_o = {rows_q, tid_q, 6'(j_q) | 6'(two)};
  assign push_cut_o  = rows_q && op_i.block && !two;
  assign push_jump_o = {12'd0, op_i.k, 4'd0};

  always_comb begin
    v_d     = v_q;
    rows_d  = rows_q;
    m0_d    = m0_q;
    t_d     = t_q;
    n0_d    = n0_q;
    k_d     = k_q;
    j_d     = j_q;
    va_d    = va_q;
    tid_d   = tid_q;
    kept_d  = kept_q;
    ahead_d = ahead_q + 3'(tile_end) - 3'(tile_done_i);
    if (start_i) begin
      v_d     = 1'b1;
      rows_d  = op_i.noparam;
      m0_d    = op_i.at.m;
      t_d     = op_i.at.t != 0 ? op_i.at.t : panel(op_i.m, op_i.depth, '0);
      n0_d    = op_i.at.n;
      kept_d  = op_i.at.sums.nc != 0;
      k_d     = op_i.at.sums.k;
      j_d     = '0;
      va_d    = op_i.noparam ? weights(n0_d) + op_i.at_b : op_i.addr_p + {12'd0, n0_d, 4'd0};
    end else if (push_rdy_i && !rows_q) begin
      j_d  = j_q + dim_t'(2);
      va_d = va_q + 32'd32;
      if (!two || j_d == nc) begin
        rows_d = 1'b1;
        j_d    = '0;
        va_d   = weights(n0_q) + (kept_q ? op_i.at_b : '0);
      end
    end else if (push_rdy_i) begin
      k_d  = k_next;
      va_d = va_q + (two ? 32'd32 : op_i.block ? 32'd16 : 32'(op_i.ldb));
      if (last_row) begin
        k_d    = '0;
        kept_d = 1'b0;
        rows_d = op_i.noparam;
        tid_d  = tid_q + 1'b1;
        n0_d   = n0_next;
        va_d   = op_i.noparam ? weights(n0_next) : op_i.addr_p + {12'd0, n0_next, 4'd0};
        if (last_n) begin
          m0_d = m_next;
          t_d  = panel(op_i.m - m_next, op_i.depth, t_q);
          v_d  = !last_o;
        end
      end
    end
    if (kill_i) begin
      v_d     = 1'b0;
      tid_d   = '0;
      ahead_d = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    v_q     <= rst_ni && v_d;
    rows_q  <= rows_d;
    m0_q    <= m0_d;
    t_q     <= t_d;
    n0_q    <= n0_d;
    k_q     <= k_d;
    j_q     <= j_d;
    kept_q  <= kept_d;
    va_q    <= va_d;
    tid_q   <= rst_ni ? tid_d : '0;
    ahead_q <= rst_ni ? ahead_d : '0;
    held_q  <= rst_ni && held_d;
  end

  // ---- what always holds ------------------------------------------------------------------------
  // Eight tiles have a number: seven that are asked for, and the one that is being asked for.
  NumbersLast: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
                                tile_end |-> ahead_q != 3'd7);
  DoneWasAsked: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
                                 tile_done_i |-> ahead_q != 0);
  RequestHeld: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(push_o) && !$past(push_rdy_i) && !$past(kill_i) && $stable(serial_i)
      |-> push_o && $stable({push_va_o, push_len_o, push_meta_o, push_cut_o, push_jump_o}));
endmodule
