// SPDX-License-Identifier: Apache-2.0
// npu_sums: moves the sums of a tile from the accumulators to the save area, behind the context,
// and back: what they are, in 8 bytes, and rows of nc int32, a line apart, two where nc is more
// than 16.
module npu_sums
  import npu_conv_pkg::*;
#(
    parameter int C = 16,
    localparam int Lines = (C + 15) / 16, Bits = C < 16 ? 32 * C : 512
) (
    input  logic         clk_i, rst_ni,
    input  logic [31:0]  save_i,
    input  logic         keep_i,             // these are to be moved,
    input  sums_t        sums_i,
    input  rows_t        rows_i,
    input  logic         put_i, get_i,       // now, until done_o
    output logic         done_o,
    // put: stores
    output logic         st_v_o,
    output logic [31:0]  st_va_o,
    output logic [5:0]   st_len_o,
    output logic [255:0] st_data_o,
    input  logic         st_rdy_i,
    // get: loads, sixteen lines at a time
    output logic         ask_v_o,
    output logic [31:0]  ask_va_o,
    output logic [3:0]   ask_tag_o,
    input  logic         ask_gnt_i,
    input  logic         back_i,
    input  logic [3:0]   back_tag_i,
    input  logic [Bits-1:0] data_i,
    // accumulators
    output logic         re_o,               // a row is read: there a cycle later, until the next
    output logic [Lines-1:0] we_o,           // lines of a row are written
    output row_t         at_o,               // which row
    output logic [Bits-1:0] line_o,
    input  logic [Bits-1:0] line_i [Lines]
);
  import npu_regs_pkg::*;
  if (C < 1 || C > int'(npu_pkg::MaxCols))
    $fatal(1, "npu_sums: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  typedef logic [11:0] index_t;              // of a line

  sums_t       sums_q;
  rows_t       rows_q;
  logic        wide;                         // a row is two lines
  logic        head_d, head_q, have_d, have_q;  // put: what they are is stored; a row has been read
  rows_t       t_d, t_q;                     // put: the row
  logic [6:0]  at_d, at_q;                   // of it, bytes handed over
  index_t      asked_d, asked_q, last, back; // get: lines asked for; the last of them; the answered
  logic [15:0] open_d, open_q;               // by number, modulo 16: not answered
  logic [7:0]  bytes;
  logic [31:0] rows_at;
  logic        row_end;
  assign wide    = sums_q.nc > 7'd16;
  assign rows_at = save_i + 32'd64;
  always_ff @(posedge clk_i)
    if (keep_i) begin
      sums_q <= sums_i;
      rows_q <= rows_i;
    end

  // ---- put --------------------------------------------------------------------------------------
  npu_pkg::line_t line;
  logic [255:0]   what;
  localparam int  Half = 256;                // bits of a context before what has sums
  always_comb begin
    line = 512'(line_i[0]);
    for (int l = 1; l < Lines; l++) if (at_q[6] == 1'(l)) line = 512'(line_i[l]);
    what = '0;
    what[DESC_FOLD_K_BIT-Half +: 16] = sums_q.k;
    what[DESC_FOLD_KR_BIT-Half +: 7] = sums_q.kr;
    what[DESC_FOLD_NC_BIT-Half +: 7] = sums_q.nc;
    what[DESC_FOLD_R_BIT-Half +: 14] = 14'(sums_q.r);
  end
  assign bytes     = {sums_q.nc[5:0], 2'd0};
  assign st_v_o    = put_i && (!head_q || have_q);
  assign st_va_o   = !head_q ? save_i + 32'd32
      : rows_at + (wide ? {14'd0, t_q, 7'd0} : {15'd0, t_q, 6'd0}) + 32'(at_q);
  assign st_len_o  = !head_q ? 6'd8 : bytes - 8'(at_q) > 8'd32 ? 6'd32 : 6'(bytes - 8'(at_q));
  // Rows of a tile's first fold that have not come yet have none.
  assign st_data_o = !head_q ? what : sums_q.k == 0 && t_q >= sums_q.r ? '0
      : at_q[5] ? line[511:256] : line[255:0];
  assign row_end   = st_rdy_i && have_q && 8'(at_q) + 8'(st_len_o) == bytes;
  assign re_o      = put_i && head_q && !have_q && t_q != rows_q;

  always_comb begin
    head_d = put_i && (head_q || st_rdy_i);
    have_d = put_i && (re_o || (have_q && !row_end));
    t_d    = put_i ? t_q + rows_t'(row_end) : '0;
    at_d   = have_q && !row_end ? at_q + (st_rdy_i ? 7'd32 : '0) : '0;
  end

  // ---- get --------------------------------------------------------------------------------------
  index_t total;
  assign total     = wide ? index_t'({rows_q, 1'b0}) : index_t'(rows_q);
  assign ask_v_o   = get_i && asked_q != total && !open_q[asked_q[3:0]];
  assign ask_va_o  = rows_at + {14'd0, asked_q, 6'd0};
  assign ask_tag_o = asked_q[3:0];
  assign last      = asked_q - 1'b1;
  assign back      = {last[11:4] - 8'(back_tag_i > last[3:0]), back_tag_i};
  assign line_o    = data_i;
  always_comb begin
    asked_d = get_i ? asked_q + index_t'(ask_gnt_i) : '0;
    open_d  = open_q;
    if (back_i) open_d[back_tag_i] = 1'b0;
    if (ask_gnt_i) open_d[ask_tag_o] = 1'b1;
    if (!get_i) open_d = '0;
    we_o = '0;
    for (int l = 0; l < Lines; l++) we_o[l] = get_i && back_i && (!wide || back[0] == 1'(l));
  end
  assign at_o   = put_i ? row_t'(t_q) : row_t'(wide ? back >> 1 : back);
  assign done_o = put_i ? head_q && t_q == rows_q : asked_q == total && open_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_q  <= 1'b0;
      have_q  <= 1'b0;
      t_q     <= '0;
      at_q    <= '0;
      asked_q <= '0;
      open_q  <= '0;
    end else begin
      head_q  <= head_d;
      have_q  <= have_d;
      t_q     <= t_d;
      at_q    <= at_d;
      asked_q <= asked_d;
      open_q  <= open_d;
    end
  end

  // ---- what always holds ------------------------------------------------------------------------
  OneWay:    assert property (@(posedge clk_i) disable iff (!rst_ni) !(put_i && get_i));
  Awaited:   assert property (@(posedge clk_i) disable iff (!rst_ni)
                              get_i && back_i |-> open_q[back_tag_i]);
  StoreHeld: assert property (@(posedge clk_i) disable iff (!rst_ni)
                              $past(rst_ni) && $past(st_v_o) && !$past(st_rdy_i) && put_i
                              |-> st_v_o && $stable({st_va_o, st_len_o, st_data_o}));
  AskHeld:   assert property (@(posedge clk_i) disable iff (!rst_ni)
                              $past(rst_ni) && $past(ask_v_o) && !$past(ask_gnt_i) && get_i &&
                              $stable(save_i) |-> ask_v_o && $stable({ask_va_o, ask_tag_o}));
endmodule
