// SPDX-License-Identifier: Apache-2.0
// npu_vec_fetch: what a vector operation reads, in order: its table, then pieces of A and B row by
// row, or the pixels of each pooling window, or each row three times (softmax).  FILL reads
// nothing: its pieces are handed over themselves.
module npu_vec_fetch (
    input  logic         clk_i, rst_ni,
    input  logic         clear_i, start_i,   // start_i: the descriptor is there
    input  logic [511:0] desc_i,             // stays for the whole operation
    input  npu_vec_pkg::op_t op_i,
    input  npu_vec_pkg::from_t from_i,       // with start_i: it begins there
    output logic         busy_o,
    output logic         empty_o,            // a pooling window without a pixel
    output logic         push_o,
    output logic [31:0]  push_va_o,
    output logic [5:0]   push_len_o,
    output logic [9:0]   push_meta_o,        // {table, ..., last pixel of its window}
    input  logic         push_rdy_i,
    output logic         fill_o,             // a piece that is not read
    input  logic         fill_rdy_i
);
  import npu_regs_pkg::*;

  // fields; wires: a descriptor does not change under way
  logic [19:0] rows;
  logic [15:0] ow, h_in, w_in, pix;
  logic [31:0] lda, ldb;
  logic [7:0]  kh, kw, pt, pl;
  logic [3:0]  sy, sx;
  assign rows = desc_i[DESC_DM_BIT +: 20];
  assign ow   = desc_i[DESC_OW_BIT +: 16];
  assign h_in = desc_i[DESC_H_BIT +: 16];
  assign w_in = desc_i[DESC_W_BIT +: 16];
  assign pix  = desc_i[DESC_PIX_BIT +: 16];
  assign lda  = desc_i[DESC_LDA_BIT +: 32];
  assign ldb  = desc_i[DESC_VLDB_BIT +: 32];
  assign kh   = desc_i[DESC_KH_BIT +: 8];
  assign kw   = desc_i[DESC_KW_BIT +: 8];
  assign pt   = desc_i[DESC_PT_BIT +: 8];
  assign pl   = desc_i[DESC_PL_BIT +: 8];
  assign sy   = desc_i[DESC_SY_BIT +: 4];
  assign sx   = desc_i[DESC_SX_BIT +: 4];

  typedef struct packed {
    logic               act, b, some;      // B is next; the window has had a pixel
    logic [19:0]        row;
    logic [15:0]        col, ox;
    // rows of A and B; pooling: first window of the output row
    logic [31:0]        a_va, b_va;
    logic [31:0]        win_va;            // pooling: pixel (iy, ix)
    logic [31:0]        line_va, pixel_va; // ... of the window's present line; now
    logic signed [20:0] iy;
    logic signed [17:0] ix;
    logic [7:0]         ky, kx;
    logic [5:0]         tab;               // pieces of the table asked for
    logic [1:0]         pass;              // softmax: the row's reading
  } state_t;
  state_t q, d;

  logic signed [20:0] iy;
  logic signed [17:0] ix;
  logic               in_img, k_last, last_in, col_last, table_left, again, adv;
  assign iy       = q.iy + 21'(signed'({1'b0, q.ky}));
  assign ix       = q.ix + 18'(signed'({1'b0, q.kx}));
  assign in_img   = 21'(unsigned'(iy)) < 21'(h_in) && 18'(unsigned'(ix)) < 18'(w_in);
  assign k_last   = q.ky + 8'd1 == kh && q.kx + 8'd1 == kw;
  // the last pixel of the window that lies in the image
  assign last_in  = in_img && (q.ky + 8'd1 == kh || iy + 21'sd1 == 21'(signed'({1'b0, h_in})))
                           && (q.kx + 8'd1 == kw || ix + 18'sd1 == 18'(signed'({1'b0, w_in})));
  assign col_last   = 17'(q.col) + 17'(op_i.step) >= 17'(op_i.cols);
  assign table_left = q.tab != op_i.table_pieces;
  assign again      = op_i.softmax && q.pass != 2'd2;

  assign busy_o      = q.act;
  assign fill_o      = q.act && op_i.fill;
  assign push_o      = q.act && !op_i.fill && (table_left || !op_i.pool || in_img);
  assign push_len_o  = table_left ? 6'd32 : col_last ? 6'(op_i.cols - q.col) : op_i.step;
  assign push_meta_o = {table_left, 8'd0, last_in};
  assign empty_o     = q.act && op_i.pool && k_last && !in_img && !q.some;
  assign adv         = fill_o ? fill_rdy_i : push_o ? push_rdy_i : q.act;
  always_comb begin
    if (table_left) push_va_o = desc_i[DESC_ADDR_P_BIT +: 32] + {21'd0, q.tab, 5'd0};
    else push_va_o = (op_i.pool ? q.pixel_va : q.b ? q.b_va : q.a_va) + 32'(q.col);
  end

  always_comb begin
    d = q;
    if (adv) begin
      if (table_left) d.tab = q.tab + 6'd1;
      else if (op_i.pool && !k_last) begin
        d.some     = q.some || in_img;
        d.kx       = q.kx + 8'd1;
        d.pixel_va = q.pixel_va + 32'(pix);
        if (q.kx + 8'd1 == kw) begin
          d.kx       = '0;
          d.ky       = q.ky + 8'd1;
          d.line_va  = q.line_va + lda;
          d.pixel_va = d.line_va;
        end
      end else if (op_i.two && !q.b) d.b = 1'b1;
      else begin
        d.b    = 1'b0;
        d.some = 1'b0;
        d.ky   = '0;
        d.kx   = '0;
        d.col  = q.col + 16'(op_i.step);
        if (col_last) begin
          d.col  = '0;
          d.pass = again ? q.pass + 2'd1 : '0;
          if (!again) begin
            d.row    = q.row + 20'd1;
            d.b_va   = q.b_va + ldb;
            d.ox     = q.ox + 16'd1;
            d.ix     = q.ix + 18'(signed'({1'b0, sx}));
            d.win_va = q.win_va + 32'(sx) * 32'(pix);
            if (!op_i.pool) d.a_va = q.a_va + lda;
            else if (q.ox + 16'd1 == ow) begin
              d.ox     = '0;
              d.ix     = -18'(signed'({1'b0, pl}));
              d.iy     = q.iy + 21'(signed'({1'b0, sy}));
              d.a_va   = q.a_va + 32'(sy) * lda;
              d.win_va = d.a_va;
            end
            if (q.row + 20'd1 == rows) d.act = 1'b0;
          end
        end
        d.line_va  = d.win_va;
        d.pixel_va = d.win_va;
      end
    end
    if (start_i) begin
      d          = '0;
      d.act      = 1'b1;
      d.row      = from_i.m;
      d.col      = from_i.n;
      d.ox       = from_i.ox;
      d.a_va     = desc_i[DESC_ADDR_A_BIT +: 32] + from_i.a;
      if (op_i.pool) d.a_va = d.a_va - 32'(pt) * lda - 32'(pl) * 32'(pix);
      d.b_va     = desc_i[DESC_ADDR_B_BIT +: 32] + from_i.b;
      d.win_va   = d.a_va + 32'(from_i.ox) * 32'(sx) * 32'(pix);
      d.line_va  = d.win_va;
      d.pixel_va = d.win_va;
      d.iy       = from_i.iy;
      d.ix       = 18'(from_i.ox) * 18'(sx) - 18'(signed'({1'b0, pl}));
    end
    if (clear_i) d.act = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) q <= '0;
    else q <= d;
  end

  KernelInside: assert property (@(posedge clk_i) disable iff (!rst_ni)
      q.act && op_i.pool |-> (q.ky < kh && q.kx < kw));
  RowsInside: assert property (@(posedge clk_i) disable iff (!rst_ni)
      q.act |-> q.row < rows);
  TableBounded: assert property (@(posedge clk_i) disable iff (!rst_ni)
      q.act |-> q.tab <= op_i.table_pieces);
  PassKnown: assert property (@(posedge clk_i) disable iff (!rst_ni)
      q.act |-> q.pass <= (op_i.softmax ? 2'd2 : 2'd0));
endmodule
