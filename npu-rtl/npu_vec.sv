// SPDX-License-Identifier: Apache-2.0
// npu_vec: element-wise operations, pooling, table look-up, softmax, copies and fills of one slot,
// on pieces from the fetch FIFO.
//
//   npu_vec_fetch --> fetch FIFO --+--> npu_vec_lanes ----------------------------------+
//                                  +--> npu_vec_lut, npu_vec_pool, npu_softmax --------+--> FIFO
//                                  +--> copies, fills ---------------------------------+
//
// Copies, fills and look-ups move up to 32 bytes a piece; ADD, MUL and RELU compute 16 lanes;
// pooling takes 32 channels of a pixel a cycle, padding left out.  Nothing here ever stalls: a
// piece whose output has no place in the FIFO before the stores yet is not taken.
//
// Asked to stop it hands over no further store, but softmax the rest of a row: the next output's
// row and column say where it goes on, and what had been computed beyond is computed again.
module npu_vec (
    input  logic         clk_i, rst_ni,
    input  logic         kill_i, start_i,
    input  logic [511:0] desc_i,         // stays for the whole operation
    input  logic         from_v_i,       // with start_i: it begins there,
    input  npu_vec_pkg::from_t from_i,   // known until the operation has begun
    input  logic         halt_i,         // asked to stop;
    output logic         halted_o,       // it has, with outputs left;
    output logic         begun_o,        // but some are handed over
    output logic [255:0] context_o,
    output logic         busy_o, work_o,
    output logic         empty_o,        // a pooling window without a pixel
    // fetch FIFO
    output logic         push_o,
    output logic [31:0]  push_va_o,
    output logic [5:0]   push_len_o,
    output logic [9:0]   push_meta_o,    // {table, ..., last pixel of its window}
    input  logic         push_rdy_i,
    input  logic         pop_v_i,
    input  logic [255:0] data_i,
    input  logic [9:0]   meta_i,
    output logic         pop_o,
    // stores
    output logic         st_v_o,
    output logic [31:0]  st_va_o,
    output logic [5:0]   st_len_o,
    output logic [255:0] st_data_o,
    input  logic         st_rdy_i
);
  import npu_regs_pkg::*;
  localparam int FifoLog2 = 3;

  // ---- the operation ----------------------------------------------------------------------------
  npu_vec_pkg::op_t op;
  logic [7:0]       vop, amin, amax;
  logic             start_q, from_v_q, clear;
  npu_vec_pkg::from_t at;                 // it begins there
  logic             holds, out_act_q;
  assign vop = desc_i[DESC_VOP_BIT +: 8];
  always_comb begin
    op.add     = vop == 8'(VOP_ADD);
    op.mul     = vop == 8'(VOP_MUL);
    op.relu    = vop == 8'(VOP_RELU);
    op.maxpool = vop == 8'(VOP_MAXPOOL);
    op.avgpool = vop == 8'(VOP_AVGPOOL);
    op.fill    = vop == 8'(VOP_FILL);
    op.lut     = vop == 8'(VOP_LUT);
    op.softmax = vop == 8'(VOP_SOFTMAX);
    op.two     = op.add || op.mul;
    op.pool    = op.maxpool || op.avgpool;
    op.au8     = desc_i[DESC_F_AU8_BIT];
    op.bu8     = desc_i[DESC_F_BU8_BIT];
    op.ou8     = desc_i[DESC_F_OU8_BIT];
    op.step    = op.two || op.relu ? 6'd16 : 6'd32;
    op.cols    = op.pool ? desc_i[DESC_CIN_BIT +: 16] : desc_i[DESC_VCOLS_BIT +: 16];
    op.table_pieces = op.lut ? 6'd8 : op.softmax ? 6'd32 : 6'd0;
  end
  assign amin = desc_i[DESC_AMIN_BIT +: 8];
  assign amax = desc_i[DESC_AMAX_BIT +: 8];
  always_ff @(posedge clk_i)
    if (!rst_ni || kill_i) start_q <= 1'b0;
    else start_q <= start_i;
  assign clear = start_q || kill_i;
  always_ff @(posedge clk_i) from_v_q <= from_v_i;
  always_comb begin
    at = from_i;
    if (!from_v_q) begin
      at    = '0;
      at.iy = -21'(signed'({1'b0, desc_i[DESC_PT_BIT +: 8]}));
    end
  end

  logic fetch_busy, fill, fill_rdy;
  npu_vec_fetch u_fetch (
      .clk_i, .rst_ni, .clear_i(kill_i || (halt_i && !start_q && !out_act_q)),
      .start_i(start_q), .desc_i, .op_i(op), .from_i(at),
      .busy_o(fetch_busy), .empty_o, .push_o, .push_va_o, .push_len_o, .push_meta_o, .push_rdy_i,
      .fill_o(fill), .fill_rdy_i(fill_rdy));

  // ---- pieces: one at a time, table or data -----------------------------------------------------
  // outputs between the taking of their last piece and their store
  logic [FifoLog2:0] taken_q, taken_d;
  logic              room, piece, table_in, tab_done, take, makes_output;
  logic              second_q, second_d;  // of two operands, or a later pixel of the window
  logic              lut_done, lut_emit, pool_rdy, pool_emit, soft_done, soft_emit;
  logic [4:0]        tab_q, tab_d;        // table pieces taken
  logic [1:0]        pass_q, pass_d;      // softmax
  logic [15:0]       col_q, col_d;        // softmax: column of the piece
  logic              col_last;
  logic [5:0]        col_len;
  assign room     = taken_q != (FifoLog2 + 1)'(1 << FifoLog2);
  assign fill_rdy = room;
  assign table_in = pop_v_i && meta_i[9];
  assign piece    = pop_v_i && !meta_i[9] && room && !start_q;
  assign take     = op.lut ? lut_done : op.softmax ? soft_done : piece && pool_rdy;
  assign pop_o    = take || (table_in && (!op.lut || tab_done));
  assign col_last = 17'(col_q) + 17'(op.step) >= 17'(op.cols);
  assign col_len  = col_last ? 6'(op.cols - col_q) : op.step;
  assign makes_output = op.pool ? meta_i[0] : op.two ? second_q : !op.softmax || pass_q == 2'd2;
  always_comb begin
    tab_d    = tab_q + 5'(pop_o && table_in);
    second_d = take ? !makes_output : second_q;
    col_d    = col_q;
    pass_d   = pass_q;
    if (take && op.softmax) begin
      col_d = col_last ? '0 : col_q + 16'(op.step);
      if (col_last) pass_d = pass_q == 2'd2 ? '0 : pass_q + 2'd1;
    end
    taken_d = taken_q + (FifoLog2 + 1)'((take && makes_output) || (fill && room))
              - (FifoLog2 + 1)'(st_v_o && st_rdy_i);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear) begin
      taken_q  <= '0;
      tab_q    <= '0;
      second_q <= 1'b0;
      col_q    <= '0;
      pass_q   <= '0;
    end else begin
      taken_q  <= taken_d;
      tab_q    <= tab_d;
      second_q <= second_d;
      col_q    <= col_d;
      pass_q   <= pass_d;
    end
  end

  // ---- ADD, MUL, RELU ---------------------------------------------------------------------------
  logic         lanes, y_v;
  logic [127:0] y;
  assign lanes = op.two || op.relu;
  npu_vec_lanes u_lanes (
      .clk_i, .rst_ni, .clear_i(clear), .desc_i, .op_i(op), .v_i(take && lanes),
      .second_i(second_q), .output_i(makes_output), .data_i(data_i[127:0]), .v_o(y_v), .res_o(y));

  // ---- LUT, pooling, softmax --------------------------------------------------------------------
  logic [255:0] lut_res, pool_res, soft_res;
  npu_vec_lut u_lut (
      .clk_i, .rst_ni, .clear_i(clear), .data_i, .tab_v_i(op.lut && table_in),
      .tab_at_i(tab_q[2:0]), .tab_done_o(tab_done), .v_i(op.lut && piece), .done_o(lut_done),
      .emit_o(lut_emit), .res_o(lut_res));
  npu_vec_pool u_pool (
      .clk_i, .rst_ni, .clear_i(clear), .avg_i(op.avgpool), .au8_i(op.au8), .ou8_i(op.ou8),
      .amin_i(amin), .amax_i(amax), .v_i(op.pool && take), .first_i(!second_q), .last_i(meta_i[0]),
      .data_i, .rdy_o(pool_rdy), .emit_o(pool_emit), .res_o(pool_res));
  npu_softmax u_softmax (
      .clk_i, .rst_ni, .clear_i(clear), .data_i, .tab_v_i(op.softmax && table_in),
      .tab_at_i(tab_q), .v_i(op.softmax && piece), .pass_i(pass_q), .len_i(col_len),
      .last_i(col_last), .au8_i(op.au8), .ou8_i(op.ou8), .done_o(soft_done), .emit_o(soft_emit),
      .res_o(soft_res));

  // ---- outputs, in order ------------------------------------------------------------------------
  logic [255:0]      fifo [1 << FifoLog2], res;
  logic [FifoLog2:0] wp_q, wp_d, rp_q, rp_d;
  logic              emit, copied, out_act_d;
  logic [19:0]       row_q, row_d;
  logic [15:0]       out_col_q, out_col_d;
  logic [31:0]       va_q, va_d;            // of the row
  logic              row_end;
  assign copied = take && !lanes && !op.pool && !op.lut && !op.softmax;
  assign emit   = y_v || lut_emit || pool_emit || soft_emit || copied || (fill && room);
  always_comb begin
    res = data_i;
    if (lanes) res = 256'(y);
    else if (op.lut) res = lut_res;
    else if (op.pool) res = pool_res;
    else if (op.softmax) res = soft_res;
    else if (op.fill) res = {8{desc_i[DESC_VPATTERN_BIT +: 32]}};
  end

  assign row_end   = 17'(out_col_q) + 17'(op.step) >= 17'(op.cols);
  assign holds     = halt_i && (!op.softmax || out_col_q == 0);
  assign st_v_o    = wp_q != rp_q && !holds;
  assign st_va_o   = va_q + 32'(out_col_q);
  assign st_len_o  = row_end ? 6'(op.cols - out_col_q) : op.step;
  assign st_data_o = fifo[rp_q[FifoLog2-1:0]];
  always_comb begin
    wp_d      = wp_q + (FifoLog2 + 1)'(emit);
    rp_d      = rp_q;
    out_col_d = out_col_q;
    va_d      = va_q;
    row_d     = row_q;
    out_act_d = out_act_q;
    if (st_v_o && st_rdy_i) begin
      rp_d      = rp_q + 1'b1;
      out_col_d = out_col_q + 16'(op.step);
      if (row_end) begin
        out_col_d = '0;
        va_d      = va_q + desc_i[DESC_LDD_BIT +: 32];
        row_d     = row_q + 20'd1;
        if (row_q + 20'd1 == desc_i[DESC_DM_BIT +: 20]) out_act_d = 1'b0;
      end
    end
    if (clear) begin
      wp_d      = '0;
      rp_d      = '0;
      row_d     = at.m;
      out_col_d = at.n;
      va_d      = desc_i[DESC_ADDR_D_BIT +: 32] + at.d;
      out_act_d = !kill_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (emit) fifo[wp_q[FifoLog2-1:0]] <= res;
    va_q <= va_d;
    if (!rst_ni) begin
      wp_q      <= '0;
      rp_q      <= '0;
      row_q     <= '0;
      out_col_q <= '0;
      out_act_q <= 1'b0;
    end else begin
      wp_q      <= wp_d;
      rp_q      <= rp_d;
      row_q     <= row_d;
      out_col_q <= out_col_d;
      out_act_q <= out_act_d;
    end
  end

  assign halted_o = holds && out_act_q;
  assign begun_o  = row_q != 0 || out_col_q != 0;
  always_comb begin
    context_o = '0;
    context_o[DESC_FOLD_M_BIT +: 32] = 32'(row_q);
    context_o[DESC_FOLD_N_BIT +: 16] = out_col_q;
    context_o[DESC_ADDR_B_BIT +: 96] = desc_i[DESC_ADDR_B_BIT +: 96];
    context_o[DESC_DM_BIT +: 32]     = 32'(desc_i[DESC_DM_BIT +: 20]);
    context_o[DESC_DN_BIT +: 16]     = desc_i[DESC_DN_BIT +: 16];
  end

  // the fetcher may still be walking a window's padding when the last output has gone
  assign busy_o = start_q || fetch_busy || out_act_q;
  assign work_o = pop_o || emit || !pool_rdy || (op.softmax && piece) || (lanes && taken_q != 0);

  // ---- what always holds ------------------------------------------------------------------------
  localparam logic [FifoLog2:0] Places = (FifoLog2 + 1)'(1 << FifoLog2);
  OutputsCounted: assert property (@(posedge clk_i) disable iff (!rst_ni)
      wp_q - rp_q <= taken_q);
  PlacesEnough: assert property (@(posedge clk_i) disable iff (!rst_ni)
      taken_q <= Places);
  FifoNoOverflow: assert property (@(posedge clk_i) disable iff (!rst_ni)
      !(emit && wp_q - rp_q == Places));
  FifoNoUnderflow: assert property (@(posedge clk_i) disable iff (!rst_ni)
      wp_q - rp_q <= Places);
  OneOutput: assert property (@(posedge clk_i) disable iff (!rst_ni || clear)
      $onehot0({y_v, lut_emit, pool_emit, soft_emit, copied, fill && room}));
  TakenIsThere: assert property (@(posedge clk_i) disable iff (!rst_ni)
      pop_o |-> pop_v_i);
  BusyTillStored: assert property (@(posedge clk_i) disable iff (!rst_ni)
      taken_q != 0 |-> busy_o);
  DescriptorStays: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(busy_o) && busy_o && !start_q |-> $stable(desc_i));
  NoStoreAfterKill: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(kill_i) |-> !st_v_o);
  NoRequestAfterKill: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(kill_i) |-> !push_o);
  StoreHeld: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(st_v_o) && !$past(st_rdy_i) && !$past(clear) && !holds
      |-> st_v_o && $stable({st_va_o, st_len_o, st_data_o}));
  RequestHeld: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(push_o) && !$past(push_rdy_i) && !$past(kill_i)
      |-> push_o && $stable({push_va_o, push_len_o, push_meta_o}));
  PassKnown: assert property (@(posedge clk_i) disable iff (!rst_ni)
      pass_q <= 2'd2);
endmodule
