// SPDX-License-Identifier: Apache-2.0
// npu_conv_out: the output tiles, two, or four half as deep; a complete one, or two that are
// neighbours in N side by side, is stored row by row.
module npu_conv_out
  import npu_conv_pkg::*;
#(
    parameter int C = 16, DepthLog2 = 9,
    localparam int D = 1 << DepthLog2, DW = DepthLog2, OW = $clog2(2 * D * C)
) (
    input  logic         clk_i, rst_ni, kill_i,
    input  logic         start_i,           // op_i is about to change
    input  conv_op_t     op_i,
    input  dim_t         w_i,
    // a tile begins
    input  logic         tile_v_i,
    input  tile_t        tile_i,
    output logic         full_o,            // none may
    output logic         busy_o,            // some are not yet stored
    // its outputs, in any order; after the last one it is done
    input  result_t      result_i [C],
    input  logic         tile_done_i,
    // stores: up to 32 bytes anywhere
    output logic         st_v_o,
    output logic [31:0]  st_va_o,
    output logic [5:0]   st_len_o,
    output logic [255:0] st_data_o,
    input  logic         st_rdy_i
);
  tile_t       tile_q [4];
  logic [1:0]  tid_d, tid_q, next;         // next tile to store, and the one after it
  logic [2:0]  live_d, live_q;             // tiles from their first fold to the end of their store
  logic [2:0]  done_d, done_q;             // complete tiles not yet stored
  logic        on_d, on_q;                 // storing; where:
  rows_t       t_d, t_q;
  logic [31:0] row_d, row_q;               // address of the tile row
  logic [7:0]  at_d, at_q, bytes;          // bytes of the row already handed over, of a row
  logic [5:0]  len;
  logic        two, row_end, stored;

  // ---- output tiles: [tile][row][column] -----------------------------------------------------
  logic [7:0]  mem [2*D*C];
  function automatic logic [OW-1:0] place(input logic [1:0] tid, input row_t t);
    return (op_i.pair ? OW'({tid, (DW - 1)'(t)}) : OW'({tid[0], DW'(t)})) * OW'(C);
  endfunction

  /* verilator lint_off BLKSEQ */
  // nobody reads a tile before it is done
  always_ff @(posedge clk_i)
    for (int j = 0; j < C; j++)
      if (result_i[j].v) begin
        if (op_i.out32)
          for (int b = 0; b < 4; b++)
            mem[place(result_i[j].tid, {result_i[j].t[7:0], 2'(b)}) + OW'(j)]
                = result_i[j].data[8*b +: 8];
        else mem[place(result_i[j].tid, result_i[j].t) + OW'(j)] = result_i[j].data[7:0];
      end
  /* verilator lint_on BLKSEQ */

  // ---- stores --------------------------------------------------------------------------------
  assign next      = tid_q + 2'd1;
  assign two       = tile_q[tid_q].pair;
  assign bytes     = op_i.out32 ? 8'({tile_q[tid_q].nc, 2'd0})
                                : 8'(tile_q[tid_q].nc) + (two ? 8'(tile_q[next].nc) : 8'd0);
  assign len       = bytes - at_q > 8'd32 ? 6'd32 : 6'(bytes - at_q);
  assign st_v_o    = on_q;
  assign st_va_o   = row_q + 32'(at_q);
  assign st_len_o  = len;
  assign row_end   = st_rdy_i && at_q + 8'(len) == bytes;
  assign stored    = on_q && row_end && t_q + 1'b1 == tile_q[tid_q].t;
  assign full_o    = live_q >= (op_i.pair ? 3'd4 : 3'd2);
  assign busy_o    = live_q != 0;

  always_comb begin
    st_data_o = '0;
    if (on_q)
      for (int b = 0; b < 32; b++)
        if (6'(b) < len)
          st_data_o[8*b +: 8] = op_i.out32
              ? mem[place(tid_q, {t_q[7:0], 2'(b)}) + OW'(at_q[7:2]) + OW'(b >> 2)]
              : two && dim_t'(b) >= w_i ? mem[place(next, row_t'(t_q)) + OW'(b) - OW'(w_i)]
              : mem[place(tid_q, row_t'(t_q)) + OW'(at_q) + OW'(b)];
  end

  always_comb begin
    on_d   = on_q && !stored;
    tid_d  = stored ? next + 2'(two) : tid_q;
    t_d    = t_q;
    row_d  = row_q;
    at_d   = at_q;
    live_d = live_q + 3'(tile_v_i) - (stored ? 3'd1 + 3'(two) : '0);
    done_d = done_q + 3'(tile_done_i) - (stored ? 3'd1 + 3'(two) : '0);
    if (!on_q) begin
      on_d  = done_q > 3'(two);
      t_d   = '0;
      row_d = tile_q[tid_q].addr;
      at_d  = '0;
    end else if (row_end) begin
      t_d   = t_q + 1'b1;
      row_d = row_q + op_i.ldd;
      at_d  = '0;
    end else if (st_rdy_i) at_d = at_q + 8'(len);
    if (kill_i || start_i) begin
      on_d   = 1'b0;
      tid_d  = '0;
      live_d = '0;
      done_d = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (tile_v_i) tile_q[tile_i.tid] <= tile_i;
    on_q   <= rst_ni && on_d;
    tid_q  <= rst_ni ? tid_d : '0;
    live_q <= rst_ni ? live_d : '0;
    done_q <= rst_ni ? done_d : '0;
    t_q    <= t_d;
    row_q  <= row_d;
    at_q   <= at_d;
  end

  no_tile_too_many: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i || start_i)
      tile_v_i |-> !full_o) else $error("a tile begins where none may");
  no_tile_undone_stored: assert property (@(posedge clk_i) disable iff (!rst_ni)
      st_v_o |-> done_q > 3'(two)) else $error("a tile is stored that is not done");
  no_tile_lost: assert property (@(posedge clk_i) disable iff (!rst_ni)
      done_q <= live_q) else $error("more tiles are done than were begun");
  no_store_after_kill: assert property (@(posedge clk_i) disable iff (!rst_ni)
      kill_i |=> !st_v_o) else $error("a store after a kill");
endmodule
