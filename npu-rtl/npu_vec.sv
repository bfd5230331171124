// SPDX-License-Identifier: Apache-2.0
// npu_vec: element-wise operations, max pooling, copies and fills of one slot, on pieces from the fetch FIFO.
//
// Copies and fills move up to 32 bytes a piece; ADD and RELU compute 16 lanes a cycle; MAXPOOL takes the maximum of 32
// channels a cycle over the window's pixels, padding left out.
module npu_vec (
    input  logic         clk_i, rst_ni,
    input  logic         kill_i, start_i,
    input  logic [511:0] desc_i,         // stays for the whole operation
    output logic         busy_o, work_o,
    // fetch FIFO
    output logic         push_o,
    output logic [31:0]  push_va_o,
    output logic [5:0]   push_len_o,
    output logic [8:0]   push_meta_o,
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

  // fields; wires: a descriptor does not change under way
  logic [7:0]  vop;
  logic [19:0] rows;
  logic [15:0] cols, ow, h_in, w_in, pix;
  logic [31:0] lda, ldb, ldd;
  logic [7:0]  kh, kw, pt, pl;
  logic [3:0]  sy, sx;
  logic        is_pool, is_add, is_fill;
  logic [5:0]  step;
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
  assign is_pool = vop == 8'(VOP_MAXPOOL);
  assign is_add  = vop == 8'(VOP_ADD);
  assign is_fill = vop == 8'(VOP_FILL);
  assign step    = is_add || vop == 8'(VOP_RELU) ? 6'd16 : 6'd32;

  // ---- generator: what to fetch ---------------------------------------------------------------------------------------
  logic        f_act_q, f_b_q, start_q;
  logic [19:0] f_row_q;
  logic [15:0] f_col_q, f_ox_q;
  logic [31:0] f_a_q, f_bb_q;             // row addresses of A, B
  logic signed [20:0] f_iy_q;
  logic signed [17:0] f_ix_q;
  logic [7:0]  f_ky_q, f_kx_q;
  logic signed [20:0] iy;
  logic signed [17:0] ix;
  logic        in_img, k_last, col_last, last_in;
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
  end
  assign push_o      = f_act_q && (!is_pool || in_img);
  assign push_va_o   = is_pool ? desc_i[DESC_ADDR_A_BIT +: 32] + 32'(iy) * lda + 32'(ix) * 32'(pix) + 32'(f_col_q)
                     : f_b_q ? f_bb_q + 32'(f_col_q) : f_a_q + 32'(f_col_q);
  assign push_len_o  = len;
  assign push_meta_o = {8'd0, last_in};
  assign f_adv       = f_act_q && (push_rdy_i || (is_pool && !in_img));
  always_ff @(posedge clk_i) begin
    start_q <= start_i && !kill_i && rst_ni;
    if (start_q) begin
      f_act_q <= !is_fill;
      f_b_q   <= 1'b0;
      f_row_q <= '0;
      f_col_q <= '0;
      f_ox_q  <= '0;
      f_a_q   <= desc_i[DESC_ADDR_A_BIT +: 32];
      f_bb_q  <= desc_i[DESC_ADDR_B_BIT +: 32];
      f_iy_q  <= -21'(signed'({1'b0, pt}));
      f_ix_q  <= -18'(signed'({1'b0, pl}));
      f_ky_q  <= '0;
      f_kx_q  <= '0;
    end else if (f_adv) begin
      if (is_pool && !k_last) begin
        f_kx_q <= f_kx_q + 8'd1;
        if (f_kx_q + 8'd1 == kw) begin
          f_kx_q <= '0;
          f_ky_q <= f_ky_q + 8'd1;
        end
      end else if (is_add && !f_b_q) f_b_q <= 1'b1;
      else begin
        f_b_q   <= 1'b0;
        f_ky_q  <= '0;
        f_kx_q  <= '0;
        f_col_q <= f_col_q + 16'(step);
        if (col_last) begin
          f_col_q <= '0;
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
    if (kill_i || !rst_ni) f_act_q <= 1'b0;
  end

  // ---- consumer: compute and hand over -----------------------------------------------------------------------------------
  logic         c_act_q, have_a_q, out_v_q;
  logic [19:0]  c_row_q;
  logic [15:0]  c_col_q;
  logic [31:0]  c_d_q, out_va_q;
  logic [5:0]   c_len, out_len_q;
  logic [255:0] first_q, out_q, res;
  logic         room, take, emit, c_last;
  assign room   = !out_v_q || st_rdy_i;
  assign take   = c_act_q && !is_fill && pop_v_i && room;
  assign emit   = is_fill ? c_act_q && room : take && (is_pool ? meta_i[0] : !is_add || have_a_q);
  assign pop_o  = take;
  assign work_o = take || emit;
  assign c_len  = 17'(c_col_q) + 17'(step) > 17'(cols) ? 6'(cols - c_col_q) : step;
  assign c_last = 17'(c_col_q) + 17'(step) >= 17'(cols);
  assign busy_o = start_q || c_act_q || out_v_q;
  assign st_v_o    = out_v_q;
  assign st_va_o   = out_va_q;
  assign st_len_o  = out_len_q;
  assign st_data_o = out_q;

  always_comb begin
    res = data_i;
    if (take || emit)
      unique case (vop)
        8'(VOP_FILL): res = {8{desc_i[DESC_VPATTERN_BIT +: 32]}};
        8'(VOP_ADD):
          if (have_a_q)
            for (int i = 0; i < 16; i++) begin
              logic signed [31:0] a, b, s;
              a = (32'(signed'({first_q[8*i+7], first_q[8*i +: 8]})) - 32'(signed'({desc_i[DESC_VZP1_BIT + 7], desc_i[DESC_VZP1_BIT +: 8]})))
                  <<< desc_i[DESC_VLSHIFT_BIT +: 5];
              b = (32'(signed'({data_i[8*i+7], data_i[8*i +: 8]})) - 32'(signed'({desc_i[DESC_VZP2_BIT + 7], desc_i[DESC_VZP2_BIT +: 8]})))
                  <<< desc_i[DESC_VLSHIFT_BIT +: 5];
              s = npu_math_pkg::requant(a, desc_i[DESC_VMULT1_BIT +: 32], desc_i[DESC_VSHIFT1_BIT +: 7])
                  + npu_math_pkg::requant(b, desc_i[DESC_VMULT2_BIT +: 32], desc_i[DESC_VSHIFT2_BIT +: 7]);
              res[8*i +: 8] = npu_math_pkg::clamp8(npu_math_pkg::requant(s, desc_i[DESC_VMULTO_BIT +: 32],
                  desc_i[DESC_VSHIFTO_BIT +: 7]), desc_i[DESC_ZPO_BIT +: 8], desc_i[DESC_AMIN_BIT +: 8],
                  desc_i[DESC_AMAX_BIT +: 8], 1'b0);
            end
        8'(VOP_RELU):
          for (int i = 0; i < 16; i++)
            res[8*i +: 8] = npu_math_pkg::clamp8(npu_math_pkg::requant(
                32'(signed'({data_i[8*i+7], data_i[8*i +: 8]})) - 32'(signed'({desc_i[DESC_VZP1_BIT + 7], desc_i[DESC_VZP1_BIT +: 8]})),
                desc_i[DESC_VMULT1_BIT +: 32], desc_i[DESC_VSHIFT1_BIT +: 7]), desc_i[DESC_ZPO_BIT +: 8],
                desc_i[DESC_AMIN_BIT +: 8], desc_i[DESC_AMAX_BIT +: 8], 1'b0);
        8'(VOP_MAXPOOL):
          for (int i = 0; i < 32; i++) begin
            logic [7:0] m;
            m = data_i[8*i +: 8];
            if (have_a_q && (first_q[8*i +: 8] ^ 8'h80) > (m ^ 8'h80)) m = first_q[8*i +: 8];
            res[8*i +: 8] = meta_i[0] ? npu_math_pkg::clamp8(32'(signed'({m[7], m})), 8'd0,
                desc_i[DESC_AMIN_BIT +: 8], desc_i[DESC_AMAX_BIT +: 8], 1'b0) : m;
          end
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
      c_d_q    <= desc_i[DESC_ADDR_D_BIT +: 32];
    end else begin
      if (take && !emit) begin
        first_q  <= is_add ? data_i : res;
        have_a_q <= 1'b1;
      end
      if (emit) begin
        have_a_q  <= 1'b0;
        out_v_q   <= 1'b1;
        out_va_q  <= c_d_q + 32'(c_col_q);
        out_len_q <= c_len;
        out_q     <= res;
        c_col_q   <= c_col_q + 16'(step);
        if (c_last) begin
          c_col_q <= '0;
          c_d_q   <= c_d_q + ldd;
          c_row_q <= c_row_q + 20'd1;
          if (c_row_q + 20'd1 == rows) c_act_q <= 1'b0;
        end
      end
    end
    if (kill_i || !rst_ni) begin
      c_act_q <= 1'b0;
      out_v_q <= 1'b0;
    end
  end
endmodule
