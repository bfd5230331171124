// SPDX-License-Identifier: Apache-2.0
// npu_conv_out: the output tiles, two, or up to eight short ones, in four banks; their rows, or
// those of two that are neighbours in N side by side, are stored as they come; those of an
// operation behind the oldest, when it is the oldest.
//
// Row t of a tile is a word in bank {tile, t} modulo 2; of int32, a word in each.  A short tile's
// rows are in bank tile modulo 4, behind those of the tile four before it, round and round, so that
// neighbours are read together: eight tiles are under way, or as many as have room there.
module npu_conv_out
  import npu_conv_pkg::*;
#(
    parameter int C = 16,
    localparam int AI = npu_pkg::DepthLog2 - 1
) (
    input  logic            clk_i, rst_ni, kill_i,
    input  seq_t            head_i,         // the oldest operation
    input  logic            retire_i,       // it is over
    // a tile begins
    input  logic            tile_v_i,
    input  tile_t           tile_i,
    output logic            full_o,         // this one may not
    // the next row of outputs, tiles in their order
    input  logic            row_v_i,
    input  logic [32*C-1:0] row_i,
    output logic            op_done_o,      // it is its operation's last
    output logic            end_o,          // the oldest operation's stores are handed over
    output logic            empty_o,        // the stores of all tiles begun are,
    output logic            even_o,         // of all rows that can be stored
    // stores: up to 32 bytes anywhere
    output logic            st_v_o,
    output logic [31:0]     st_va_o,
    output logic [5:0]      st_len_o,
    output logic [255:0]    st_data_o,
    output logic            st_mark_o,      // the last of a panel,
    output logic [31:0]     st_upto_o,      // behind which the next panel's first output lies
    input  logic            st_rdy_i
);
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_conv_out: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  tile_t       tile_q [8], in, out;        // in: that rows come to; out: that rows are read from
  logic [3:0]  live_d, live_q;             // tiles from their first fold to the last row's reading
  logic [3:0]  done_d, done_q;             // complete tiles of which rows are not yet read
  tid_t        in_tid_d, in_tid_q, out_tid_d, out_tid_q, next;
  // of short tiles, by bank: where the next row is written and read; rows of the live tiles
  logic [3:0][AI-1:0] wp_d, wp_q, rp_d, rp_q;
  logic [3:0][AI:0]   kept_d, kept_q;
  rows_t       in_t_d, in_t_q, out_t_d, out_t_q;
  logic [31:0] va, va_d, va_q;             // of the row to be read, without its tile
  logic        in_last, out_last, two, here, read;
  logic [3:0]  reads;                      // banks that the row to be read is in
  logic        quad_d, quad_q, out32_d, out32_q;  // what the live tiles are, all of them
  logic        end_d, end_q, last, panel_end;
  // the row being stored; whether it is its operation's last
  logic        st_v_d, st_v_q, row_end, st_end_q, st_panel_q;
  logic [31:0] st_upto_q;
  seq_t        st_seq_q;

  function automatic logic [AI-1:0] place(input logic tile, input row_t t, input logic [AI-1:0] p);
    return out32_q ? {tile, (AI - 1)'(t)} : quad_q ? p : AI'(t >> 1);
  endfunction
  function automatic logic [1:0] bank(input logic [1:0] tid, input logic t);
    return quad_q ? tid : {tid[0], t};
  endfunction

  // ---- tiles -----------------------------------------------------------------------------------
  assign in       = tile_q[in_tid_q];
  assign out      = tile_q[out_tid_q];
  assign next     = out_tid_q + 1'b1;
  assign two      = out.pair;
  assign in_last  = row_v_i && in_t_q + 1'b1 == in.t;
  assign out_last = read && out_t_q + 1'b1 == out.t;
  // the row is in memory: all of the last tile that it needs are, or some beyond it
  assign here     = (done_q > 4'(two) || (done_q == 4'(two) && in_t_q > out_t_q))
                    && live_q != 0 && out.seq == head_i;
  assign va       = out_t_q == 0 ? out.addr : va_q;
  assign full_o   = live_q >= (tile_i.quad ? 4'd8 : 4'd2)
                    || (tile_i.quad && 12'(kept_q[tile_i.tid[1:0]]) + 12'(tile_i.t) > 12'(1 << AI))
                    || (live_q != 0 && {tile_i.quad, tile_i.out32} != {quad_q, out32_q});
  assign op_done_o = in_last && in.ends;
  assign end_o    = end_q;
  assign empty_o  = live_q == 0 && !st_v_q;
  assign even_o   = !here && !st_v_q;
  assign last      = out_last && (out.ends || (two && tile_q[next].ends));
  assign panel_end = out_last && (out.panel || (two && tile_q[next].panel));

  always_comb begin
    in_t_d    = in_last ? '0 : in_t_q + rows_t'(row_v_i);
    in_tid_d  = in_tid_q + tid_t'(in_last);
    out_t_d   = out_last ? '0 : out_t_q + rows_t'(read);
    out_tid_d = out_last ? next + tid_t'(two) : out_tid_q;
    va_d      = read ? va + out.ldd : va_q;
    quad_d    = tile_v_i ? tile_i.quad : quad_q;
    out32_d   = tile_v_i ? tile_i.out32 : out32_q;
    end_d     = (end_q && !retire_i) || (st_v_q && row_end && st_end_q);
    live_d    = live_q + 4'(tile_v_i) - (out_last ? 4'd1 + 4'(two) : '0);
    done_d    = done_q + 4'(in_last) - (out_last ? 4'd1 + 4'(two) : '0);
    for (int b = 0; b < 4; b++) begin
      wp_d[b]   = wp_q[b] + AI'(quad_q && row_v_i && in_tid_q[1:0] == 2'(b));
      rp_d[b]   = rp_q[b] + AI'(quad_q && read && reads[b]);
      kept_d[b] = kept_q[b] - (AI + 1)'(quad_q && read && reads[b]);
      if (tile_v_i && tile_i.quad && tile_i.tid[1:0] == 2'(b))
        kept_d[b] = kept_d[b] + (AI + 1)'(tile_i.t);
    end
    if (kill_i) begin
      end_d     = 1'b0;
      in_t_d    = '0;
      in_tid_d  = '0;
      out_t_d   = '0;
      out_tid_d = '0;
      live_d    = '0;
      done_d    = '0;
      wp_d      = '0;
      rp_d      = '0;
      kept_d    = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (tile_v_i) tile_q[tile_i.tid] <= tile_i;
    in_t_q    <= rst_ni ? in_t_d : '0;
    in_tid_q  <= rst_ni ? in_tid_d : '0;
    out_t_q   <= rst_ni ? out_t_d : '0;
    out_tid_q <= rst_ni ? out_tid_d : '0;
    live_q    <= rst_ni ? live_d : '0;
    done_q    <= rst_ni ? done_d : '0;
    wp_q      <= rst_ni ? wp_d : '0;
    rp_q      <= rst_ni ? rp_d : '0;
    kept_q    <= rst_ni ? kept_d : '0;
    va_q      <= va_d;
    quad_q    <= quad_d;
    out32_q   <= out32_d;
    end_q     <= rst_ni && end_d;
  end

  // ---- their rows ------------------------------------------------------------------------------
  logic [8*C-1:0] word [4];
  for (genvar b = 0; b < 4; b++) begin : g_bank
    assign reads[b] = out32_q || bank(out_tid_q[1:0], out_t_q[0]) == 2'(b)
                      || (two && next[1:0] == 2'(b));
    npu_ram_1r1w #(.Width(8 * C), .Depth(1 << AI)) u_ram (
        .clk_i, .we_i(row_v_i && (out32_q || bank(in_tid_q[1:0], in_t_q[0]) == 2'(b))),
        .waddr_i(place(in_tid_q[0], row_t'(in_t_q), wp_q[b])),
        .wdata_i(out32_q ? row_i[8*C*b +: 8*C] : row_i[8*C-1:0]),
        .re_i(read && reads[b]), .raddr_i(place(out_tid_q[0], row_t'(out_t_q), rp_q[b])),
        .rdata_o(word[b]));
  end

  // ---- stores: the row that was read, 32 bytes a piece -----------------------------------------
  localparam int Line = 32 * C > 256 ? 32 * C : 256;
  logic            st_two_q, st_out32_q;
  dim_t            st_nc_q;                     // columns of the row's first tile
  logic [1:0]      st_bank_q, st_bank_d;
  logic [31:0]     st_va_q;
  logic [7:0]      bytes, bytes_q, at_d, at_q;  // of the row; of it, already handed over
  logic [Line-1:0] line;

  assign bytes   = out.out32 ? 8'({out.nc, 2'd0})
                              : 8'(out.nc) + (two ? 8'(tile_q[next].nc) : 8'd0);
  assign row_end = st_rdy_i && at_q + 8'(st_len_o) == bytes_q;
  assign read    = here && (!st_v_q || row_end);
  assign st_bank_d = bank(out_tid_q[1:0], out_t_q[0]);

  always_comb begin
    st_v_d = read || (st_v_q && !row_end);
    at_d   = read ? '0 : at_q + (st_rdy_i ? 8'(st_len_o) : '0);
    if (kill_i) st_v_d = 1'b0;
  end
  always_ff @(posedge clk_i) begin
    st_v_q <= rst_ni && st_v_d;
    at_q   <= at_d;
    if (read) begin
      st_va_q   <= va;
      bytes_q   <= bytes;
      st_two_q  <= two;
      st_nc_q   <= out.nc;
      st_end_q  <= last;
      st_panel_q <= panel_end;
      st_upto_q <= out.upto;
      st_out32_q <= out.out32;
      st_seq_q  <= out.seq;
      st_bank_q <= st_bank_d;
    end
  end

  always_comb begin
    line = '0;
    if (st_v_q) begin
      if (st_out32_q) line = Line'({word[3], word[2], word[1], word[0]});
      else begin
        line = Line'(word[st_bank_q]);
        if (st_two_q)
          line = (line & ~({Line{1'b1}} << {st_nc_q, 3'd0}))
                 | (Line'(word[st_bank_q + 2'd1]) << {st_nc_q, 3'd0});
      end
    end
  end
  assign st_v_o    = st_v_q;
  assign st_va_o   = st_va_q + 32'(at_q);
  assign st_len_o  = bytes_q - at_q > 8'd32 ? 6'd32 : 6'(bytes_q - at_q);
  assign st_data_o = 256'(line >> {at_q, 3'd0});
  assign st_mark_o = st_panel_q && at_q + 8'(st_len_o) == bytes_q;
  assign st_upto_o = st_upto_q;

  no_tile_too_many: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      tile_v_i |-> !full_o) else $error("a tile begins where none may");
  no_row_unwritten_read: assert property (@(posedge clk_i) disable iff (!rst_ni)
      read |-> live_q > 4'(two)) else $error("a row is read of a tile that was not begun");
  no_row_too_many: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      row_v_i |-> done_q < live_q) else $error("a row of a tile that was not begun");
  no_tile_lost: assert property (@(posedge clk_i) disable iff (!rst_ni)
      done_q <= live_q) else $error("more tiles are done than were begun");
  no_store_ahead: assert property (@(posedge clk_i) disable iff (!rst_ni)
      st_v_o |-> st_seq_q == head_i) else $error("an operation stores before its turn");
  no_store_after_kill: assert property (@(posedge clk_i) disable iff (!rst_ni)
      kill_i |=> !st_v_o) else $error("a store after a kill");
  store_held: assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
      $past(rst_ni) && $past(st_v_o) && !$past(st_rdy_i) && !$past(kill_i)
      |-> st_v_o && $stable({st_va_o, st_len_o})) else $error("a store changes before it is taken");
endmodule
