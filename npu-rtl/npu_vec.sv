// SPDX-License-Identifier: Apache-2.0
// npu_vec: element-wise operations, pooling, table look-up, softmax, copies and fills of one slot, on pieces from the fetch FIFO.
//
// Copies, fills and look-ups move up to 32 bytes a piece; ADD, MUL and RELU compute 16 lanes a cycle; pooling takes 32
// channels of a pixel a cycle, padding left out, and an average 8 cycles of division; softmax reads each row three times.
module npu_vec (
    input  logic         clk_i, rst_ni,
    input  logic         kill_i, start_i,
    input  logic [511:0] desc_i,         // stays for the whole operation
    output logic         busy_o, work_o,
    output logic         empty_o,        // a pooling window without a pixel
    // fetch FIFO
    output logic         push_o,
    output logic [31:0]  push_va_o,
    output logic [5:0]   push_len_o,
    output logic [8:0]   push_meta_o,    // {table, ..., last pixel of its window}
    input  logic         push_rdy_i,
    input  logic         pop_v_i,
    input  logic [255:0] data_i,
    input  logic [8:0]   meta_i,
    output logic         pop_o,
    // stores
    output logic         st_v_o,
    output logic [31:0]  st_va_o,
    output logic [5:0]   st_len_o,
    output logic [255:0] st_data_o,
    input  logic         st_rdy_i
);
  import npu_regs_pkg::*;
  import npu_math_pkg::*;

  // fields; wires: a descriptor does not change under way
  logic [7:0]  vop;
  logic [19:0] rows;
  logic [15:0] cols, ow, h_in, w_in, pix;
  logic [31:0] lda, ldb, ldd;
  logic [7:0]  kh, kw, pt, pl;
  logic [3:0]  sy, sx;
  logic        is_pool, is_avg, two, is_fill, is_lut, is_soft, au8, bu8, ou8;
  logic [5:0]  step, tab_end;             // pieces of a table: LUT 8, SOFTMAX 32
  assign vop  = desc_i[DESC_VOP_BIT +: 8];
  assign rows = desc_i[DESC_DM_BIT +: 20];
  assign cols = is_pool ? desc_i[DESC_CIN_BIT +: 16] : desc_i[DESC_VCOLS_BIT +: 16];
  assign ow   = desc_i[DESC_OW_BIT +: 16];
  assign h_in = desc_i[DESC_H_BIT +: 16];
  assign w_in = desc_i[DESC_W_BIT +: 16];
  assign pix  = desc_i[DESC_PIX_BIT +: 16];
  assign lda  = desc_i[DESC_LDA_BIT +: 32];
  assign ldb  = desc_i[DESC_VLDB_BIT +: 32];
  assign ldd  = desc_i[DESC_LDD_BIT +: 32];
  assign kh   = desc_i[DESC_KH_BIT +: 8];
  assign kw   = desc_i[DESC_KW_BIT +: 8];
  assign pt   = desc_i[DESC_PT_BIT +: 8];
  assign pl   = desc_i[DESC_PL_BIT +: 8];
  assign sy   = desc_i[DESC_SY_BIT +: 4];
  assign sx   = desc_i[DESC_SX_BIT +: 4];
  assign au8  = desc_i[DESC_F_AU8_BIT];
  assign bu8  = desc_i[DESC_F_BU8_BIT];
  assign ou8  = desc_i[DESC_F_OU8_BIT];
  assign is_avg  = vop == 8'(VOP_AVGPOOL);
  assign is_pool = is_avg || vop == 8'(VOP_MAXPOOL);
  assign two     = vop == 8'(VOP_ADD) || vop == 8'(VOP_MUL);
  assign is_fill = vop == 8'(VOP_FILL);
  assign is_lut  = vop == 8'(VOP_LUT);
  assign is_soft = vop == 8'(VOP_SOFTMAX);
  assign step    = two || vop == 8'(VOP_RELU) ? 6'd16 : 6'd32;
  assign tab_end = is_lut ? 6'd8 : is_soft ? 6'd32 : 6'd0;

  // ---- generator: what to fetch ---------------------------------------------------------------------------------------
  logic        f_act_q, f_b_q, f_some_q, start_q;
  logic [19:0] f_row_q;
  logic [15:0] f_col_q, f_ox_q;
  logic [31:0] f_a_q, f_bb_q;             // row addresses of A, B
  logic signed [20:0] f_iy_q;
  logic signed [17:0] f_ix_q;
  logic [7:0]  f_ky_q, f_kx_q;
  logic [5:0]  f_tab_q;                   // pieces of the table asked for
  logic [1:0]  f_pass_q;                  // softmax: the row's reading
  logic signed [20:0] iy;
  logic signed [17:0] ix;
  logic        in_img, k_last, col_last, last_in, f_table, f_again;
  logic [5:0]  len;
  logic        f_adv;
  always_comb begin
    iy = f_iy_q + 21'(signed'({1'b0, f_ky_q}));
    ix = f_ix_q + 18'(signed'({1'b0, f_kx_q}));
    in_img   = 21'(unsigned'(iy)) < 21'(h_in) && 18'(unsigned'(ix)) < 18'(w_in);
    k_last   = f_ky_q + 8'd1 == kh && f_kx_q + 8'd1 == kw;
    // the last pixel of the window that lies in the image
    last_in  = in_img && (f_ky_q + 8'd1 == kh || iy + 21'sd1 == 21'(signed'({1'b0, h_in})))
                      && (f_kx_q + 8'd1 == kw || ix + 18'sd1 == 18'(signed'({1'b0, w_in})));
    len      = 17'(f_col_q) + 17'(step) > 17'(cols) ? 6'(cols - f_col_q) : step;
    col_last = 17'(f_col_q) + 17'(step) >= 17'(cols);
    f_table  = f_tab_q != tab_end;
    f_again  = is_soft && f_pass_q != 2'd2;
  end
  assign push_o      = f_act_q && (!is_pool || in_img);
  assign push_va_o   = f_table ? desc_i[DESC_ADDR_P_BIT +: 32] + {21'd0, f_tab_q, 5'd0}
                     : is_pool ? desc_i[DESC_ADDR_A_BIT +: 32] + 32'(iy) * lda + 32'(ix) * 32'(pix) + 32'(f_col_q)
                     : f_b_q ? f_bb_q + 32'(f_col_q) : f_a_q + 32'(f_col_q);
  assign push_len_o  = f_table ? 6'd32 : len;
  assign push_meta_o = {f_table, 7'd0, last_in};
  assign f_adv       = f_act_q && (push_rdy_i || (is_pool && !in_img));
  assign empty_o     = f_act_q && is_pool && k_last && !in_img && !f_some_q;
  always_ff @(posedge clk_i) begin
    start_q <= start_i && !kill_i && rst_ni;
    if (start_q) begin
      f_act_q  <= !is_fill;
      f_b_q    <= 1'b0;
      f_some_q <= 1'b0;
      f_row_q  <= '0;
      f_col_q  <= '0;
      f_ox_q   <= '0;
      f_a_q    <= desc_i[DESC_ADDR_A_BIT +: 32];
      f_bb_q   <= desc_i[DESC_ADDR_B_BIT +: 32];
      f_iy_q   <= -21'(signed'({1'b0, pt}));
      f_ix_q   <= -18'(signed'({1'b0, pl}));
      f_ky_q   <= '0;
      f_kx_q   <= '0;
      f_tab_q  <= '0;
      f_pass_q <= '0;
    end else if (f_adv) begin
      if (f_table) f_tab_q <= f_tab_q + 6'd1;
      else if (is_pool && !k_last) begin
        f_some_q <= f_some_q || in_img;
        f_kx_q   <= f_kx_q + 8'd1;
        if (f_kx_q + 8'd1 == kw) begin
          f_kx_q <= '0;
          f_ky_q <= f_ky_q + 8'd1;
        end
      end else if (two && !f_b_q) f_b_q <= 1'b1;
      else begin
        f_b_q    <= 1'b0;
        f_some_q <= 1'b0;
        f_ky_q   <= '0;
        f_kx_q   <= '0;
        f_col_q  <= f_col_q + 16'(step);
        if (col_last) begin
          f_col_q  <= '0;
          f_pass_q <= f_again ? f_pass_q + 2'd1 : '0;
          if (!f_again) begin
            f_row_q <= f_row_q + 20'd1;
            f_a_q   <= f_a_q + lda;
            f_bb_q  <= f_bb_q + ldb;
            f_ox_q  <= f_ox_q + 16'd1;
            f_ix_q  <= f_ix_q + 18'(signed'({1'b0, sx}));
            if (f_ox_q + 16'd1 == ow) begin
              f_ox_q <= '0;
              f_ix_q <= -18'(signed'({1'b0, pl}));
              f_iy_q <= f_iy_q + 21'(signed'({1'b0, sy}));
            end
            if (f_row_q + 20'd1 == rows) f_act_q <= 1'b0;
          end
        end
      end
    end
    if (kill_i || !rst_ni) f_act_q <= 1'b0;
  end

  // ---- consumer: compute and hand over -----------------------------------------------------------------------------------
  logic         c_act_q, have_a_q, out_v_q;
  logic [19:0]  c_row_q;
  logic [15:0]  c_col_q;
  logic [31:0]  c_d_q, out_va_q;
  logic [5:0]   c_len, out_len_q;
  logic [4:0]   c_tab_q;                  // table pieces taken
  logic [1:0]   c_pass_q;
  logic [255:0] first_q, out_q, res;
  logic         room, table_in, take, emit, c_last, pooled;
  // averages
  logic [3:0]   div_q;                    // quotient bits still to come, and one
  logic [15:0]  count_q;
  logic signed [24:0] acc_q [32];
  logic [24:0]  rem_q [32];
  logic [7:0]   quo_q [32];
  // softmax
  logic         s_done, s_emit;
  logic [255:0] s_res;
  assign room     = !out_v_q || st_rdy_i;
  assign table_in = c_act_q && pop_v_i && meta_i[8];
  assign pooled   = is_pool && meta_i[0];
  assign take     = c_act_q && !is_fill && pop_v_i && !meta_i[8] && (is_soft ? s_done : room && div_q == 0);
  always_comb begin
    if (is_fill) emit = c_act_q && room;
    else if (is_soft) emit = s_emit;
    else if (is_avg) emit = div_q == 4'd1 && room;
    else emit = take && (is_pool ? pooled : !two || have_a_q);
  end
  assign pop_o  = take || table_in;
  assign work_o = take || emit || div_q != 0 || (is_soft && c_act_q && pop_v_i);
  assign c_len  = 17'(c_col_q) + 17'(step) > 17'(cols) ? 6'(cols - c_col_q) : step;
  assign c_last = 17'(c_col_q) + 17'(step) >= 17'(cols);
  // the fetcher may still be walking a window's padding when the last output has gone
  assign busy_o = start_q || f_act_q || c_act_q || out_v_q;
  assign st_v_o    = out_v_q;
  assign st_va_o   = out_va_q;
  assign st_len_o  = out_len_q;
  assign st_data_o = out_q;

  npu_softmax u_softmax (
      .clk_i, .rst_ni, .clear_i(start_q || kill_i), .data_i, .tab_v_i(table_in && is_soft), .tab_at_i(c_tab_q),
      .v_i(c_act_q && is_soft && pop_v_i && !meta_i[8]), .pass_i(c_pass_q), .len_i(c_len), .last_i(c_last), .au8_i(au8), .ou8_i(ou8),
      .room_i(room), .done_o(s_done), .emit_o(s_emit), .res_o(s_res));

  logic [7:0] lut [256];
  logic [7:0] zpo, amin, amax;
  assign zpo  = desc_i[DESC_ZPO_BIT +: 8];
  assign amin = desc_i[DESC_AMIN_BIT +: 8];
  assign amax = desc_i[DESC_AMAX_BIT +: 8];
  function automatic logic signed [31:0] less_zp(input logic [7:0] b, zp, input logic is_unsigned);
    return 32'(value8(b, is_unsigned)) - 32'(value8(zp, is_unsigned));
  endfunction

  always_comb begin
    res = data_i;
    if (take || emit)
      unique case (vop)
        8'(VOP_FILL): res = {8{desc_i[DESC_VPATTERN_BIT +: 32]}};
        8'(VOP_ADD):
          if (have_a_q)
            for (int i = 0; i < 16; i++)
              res[8*i +: 8] = clamp8(requant(
                  requant(less_zp(first_q[8*i +: 8], desc_i[DESC_VZP1_BIT +: 8], au8) <<< desc_i[DESC_VLSHIFT_BIT +: 5],
                          desc_i[DESC_VMULT1_BIT +: 32], desc_i[DESC_VSHIFT1_BIT +: 7])
                  + requant(less_zp(data_i[8*i +: 8], desc_i[DESC_VZP2_BIT +: 8], bu8) <<< desc_i[DESC_VLSHIFT_BIT +: 5],
                            desc_i[DESC_VMULT2_BIT +: 32], desc_i[DESC_VSHIFT2_BIT +: 7]),
                  desc_i[DESC_VMULTO_BIT +: 32], desc_i[DESC_VSHIFTO_BIT +: 7]), zpo, amin, amax, ou8);
        8'(VOP_MUL):
          if (have_a_q)
            for (int i = 0; i < 16; i++)
              res[8*i +: 8] = clamp8(requant(
                  less_zp(first_q[8*i +: 8], desc_i[DESC_VZP1_BIT +: 8], au8)
                  * less_zp(data_i[8*i +: 8], desc_i[DESC_VZP2_BIT +: 8], bu8),
                  desc_i[DESC_VMULTO_BIT +: 32], desc_i[DESC_VSHIFTO_BIT +: 7]), zpo, amin, amax, ou8);
        8'(VOP_RELU):
          for (int i = 0; i < 16; i++)
            res[8*i +: 8] = clamp8(requant(less_zp(data_i[8*i +: 8], desc_i[DESC_VZP1_BIT +: 8], au8),
                desc_i[DESC_VMULT1_BIT +: 32], desc_i[DESC_VSHIFT1_BIT +: 7]), zpo, amin, amax, ou8);
        8'(VOP_MAXPOOL):
          for (int i = 0; i < 32; i++) begin
            logic [7:0] m;
            m = data_i[8*i +: 8];
            if (have_a_q && value8(first_q[8*i +: 8], au8) > value8(m, au8)) m = first_q[8*i +: 8];
            res[8*i +: 8] = meta_i[0] ? clamp8(32'(value8(m, au8)), 8'd0, amin, amax, ou8) : m;
          end
        8'(VOP_AVGPOOL):
          for (int i = 0; i < 32; i++)
            res[8*i +: 8] = clamp8(acc_q[i] < 0 ? -32'(quo_q[i]) : 32'(quo_q[i]), 8'd0, amin, amax, ou8);
        8'(VOP_LUT):
          for (int i = 0; i < 32; i++) res[8*i +: 8] = lut[data_i[8*i +: 8]];
        8'(VOP_SOFTMAX): res = s_res;
        default: ;
      endcase
  end

  always_ff @(posedge clk_i) begin
    if (st_rdy_i) out_v_q <= 1'b0;
    if (start_q) begin
      c_act_q  <= 1'b1;
      have_a_q <= 1'b0;
      c_row_q  <= '0;
      c_col_q  <= '0;
      c_tab_q  <= '0;
      c_pass_q <= '0;
      c_d_q    <= desc_i[DESC_ADDR_D_BIT +: 32];
    end else begin
      if (table_in) c_tab_q <= c_tab_q + 5'd1;
      if (take && !emit) begin
        first_q  <= two ? data_i : res;
        have_a_q <= 1'b1;
        if (is_soft && c_last) c_pass_q <= c_pass_q + 2'd1;
        if (is_soft) c_col_q <= c_last ? '0 : c_col_q + 16'(step);
      end
      if (emit) begin
        have_a_q  <= 1'b0;
        out_v_q   <= 1'b1;
        out_va_q  <= c_d_q + 32'(c_col_q);
        out_len_q <= c_len;
        out_q     <= res;
        c_col_q   <= c_col_q + 16'(step);
        if (c_last) begin
          c_col_q  <= '0;
          c_pass_q <= '0;
          c_d_q    <= c_d_q + ldd;
          c_row_q  <= c_row_q + 20'd1;
          if (c_row_q + 20'd1 == rows) c_act_q <= 1'b0;
        end
      end
    end
    if (kill_i || !rst_ni) begin
      c_act_q <= 1'b0;
      out_v_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i)
    if (table_in && is_lut) for (int i = 0; i < 32; i++) lut[{c_tab_q[2:0], 5'(i)}] <= data_i[8*i +: 8];

  // Sums of the window, then (|sum| + count / 2) / count: a bit of all lanes' quotients a cycle.
  always_ff @(posedge clk_i) begin
    if (is_avg && take) begin
      for (int i = 0; i < 32; i++) acc_q[i] <= (have_a_q ? acc_q[i] : '0) + 25'(value8(data_i[8*i +: 8], au8));
      count_q <= (have_a_q ? count_q : '0) + 16'd1;
      if (pooled) div_q <= 4'd10;
    end
    if (div_q == 4'd10)
      for (int i = 0; i < 32; i++) rem_q[i] <= (acc_q[i] < 0 ? 25'(-acc_q[i]) : 25'(acc_q[i])) + 25'(count_q[15:1]);
    else if (div_q > 4'd1)
      for (int i = 0; i < 32; i++) begin
        rem_q[i] <= rem_q[i] >= 25'(count_q) << (div_q - 4'd2) ? rem_q[i] - (25'(count_q) << (div_q - 4'd2)) : rem_q[i];
        quo_q[i] <= {quo_q[i][6:0], rem_q[i] >= 25'(count_q) << (div_q - 4'd2)};
      end
    if (div_q > 4'd1 || emit) div_q <= div_q == 0 ? '0 : div_q - 4'd1;
    if (start_q || kill_i || !rst_ni) div_q <= '0;
  end
endmodule
