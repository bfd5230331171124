// SPDX-License-Identifier: Apache-2.0
// npu_conv: GEMM and CONV of one slot, tiled by hardware onto whatever rectangle the slot has.
//
//   g fold generator -> l weight loader -> x row streamer -> array -> ct tags -> accumulators -> requantizers -> output tile -> stores
//
// Order of folds: k inside n inside m.  A fold is one h x w block of weights under T activation rows; it costs max(T, h)
// cycles because the next fold's weights load behind the swap front of the one being streamed.  Activations sit in a
// scratchpad that is a sliding window over the input's rows; the feeder gathers one lane a PE row (im2col), so that CONV
// needs no copy; with F_GROUP a lane is a vector, one byte a PE, since each column works on channels of its own.  GEMM is
// CONV with 1 x 1 kernel whose every input row is one output row.
module npu_conv #(
    parameter int R = 16, C = 16, N = 8, Id = 0, DepthLog2 = 9, SpadLog2 = 17,
    localparam int RW = $clog2(R + 1), CW = $clog2(C + 1), DW = DepthLog2, SW = SpadLog2
) (
    input  logic               clk_i, rst_ni,
    input  logic               kill_i, start_i,
    input  logic [511:0]       desc_i,      // with start_i
    input  logic [RW-1:0]      h_i,
    input  logic [CW-1:0]      w_i,
    input  logic               serial_i,
    input  logic [63:0]        time_i,
    output logic               busy_o, quiet_o, stuck_o,
    // fetch FIFO: weights and parameters
    output logic               push_o,
    output logic [31:0]        push_va_o,
    output logic [5:0]         push_len_o,
    output logic [8:0]         push_meta_o,
    output logic               push_cut_o,
    output logic [31:0]        push_jump_o,
    input  logic               push_rdy_i,
    input  logic               pop_v_i,
    input  logic [6:0]         ready_i,
    input  logic [255:0]       data_i,
    input  logic [8:0]         meta_i,
    output logic               pop_o,
    // activation lines
    output logic               a_req_o,
    output logic [31:0]        a_va_o,
    output logic [8:0]         a_tag_o,
    input  logic               a_gnt_i,
    input  logic               any_rsp_i,
    input  npu_pkg::mem_rsp_t  rsp_i [N+1],
    // stores: up to 32 bytes anywhere
    output logic               st_v_o,
    output logic [31:0]        st_va_o,
    output logic [5:0]         st_len_o,
    output logic [255:0]       st_data_o,
    input  logic               st_rdy_i,
    // array
    output logic signed [8:0]  a_o [R],
    output logic [R-1:0]       sw_o, ld_o,
    output logic signed [8:0]  w_o [C],
    // F_GROUP: each PE's own activation, skewed as if it had come from the west
    output logic               group_o,
    output logic [9*R*C-1:0]   g_o,
    input  logic signed [31:0] p_i [C],
    // what happened this cycle
    output logic               row_o, fold_o, stall_a_o, stall_w_o, stall_out_o,
    output logic [15:0]        macs_o
);
  import "DPI-C" function void npu_dpi_read(input int unsigned pa, output bit [511:0] d);
  import "DPI-C" function void npu_dpi_fold(input int slot, input int rows, input int cols, input int t,
                                            input longint start, input longint end_);
  import npu_regs_pkg::*;
  localparam int D = 1 << DW, RB = R > 1 ? $clog2(R) : 1, CB = C > 1 ? $clog2(C) : 1;
  localparam int PI = $clog2(4*C), AI = $clog2(C*D);
  localparam int NRing = 64;  // activation lines in flight
  localparam int GB = $clog2(R + C);     // skew of PE (i, j) is i + j
  localparam int FI = $clog2(R + C + 2) + 1;  // folds in flight, for the fold report only

  // ---- the operation, decoded once ---------------------------------------------------------------------------------
  logic               on_q;
  logic               out32_q, au8_q, bu8_q, ou8_q, nop_q, block_q, group_q, float_q;
  logic               pair_q;             // tiles of two neighbours' columns are stored side by side
  logic [31:0]        b_q, p_q, lda_q, ldd_q, qmult_q;
  logic [19:0]        m_q, h_in_q;
  logic [15:0]        ow_q, n_q, k_q, kcin_q, w_in_q, ldb_q;  // kcin: input channels a kernel position
  logic [7:0]         kw_q, pl_q, zpa_q, zpb_q, zpo_q, amin_q, amax_q;
  logic signed [6:0]  qshift_q;
  logic [3:0]         sx_q, sy_q, dx_q, dy_q;
  logic [31:0]        rowbytes_q;         // bytes of an input row
  logic [SW-1:0]      sps_q, stepx_q, stepy_q, kstepx_q, kstepy_q;
  logic [DW:0]        depth_q;

  logic               gemm;
  logic [19:0]        d_m;
  logic [15:0]        d_ow, d_w, d_cin, d_kcin, d_pix, d_panel;
  logic [19:0]        d_h;
  logic [7:0]         d_kh, d_kw, d_pt, d_pl;
  logic [3:0]         d_sy, d_sx, d_dy, d_dx;
  logic [SW-1:0]      d_sps, d_base;
  logic [15:0]        d_k;
  logic               d_pair;
  logic [DW:0]        d_depth;
  always_comb begin
    gemm    = desc_i[DESC_OPCODE_BIT +: 8] == 8'(OP_GEMM);
    d_m     = desc_i[DESC_DM_BIT +: 20];
    d_cin   = desc_i[DESC_CIN_BIT +: 16];
    d_kcin  = desc_i[DESC_F_GROUP_BIT] ? desc_i[DESC_GC_BIT +: 16] : d_cin;
    d_panel = desc_i[DESC_PANEL_BIT +: 16];
    d_ow    = gemm ? 16'd1 : desc_i[DESC_OW_BIT +: 16];
    d_w     = gemm ? 16'd1 : desc_i[DESC_W_BIT +: 16];
    // an image without columns has no rows either: all padding
    d_h     = gemm ? d_m : d_w == 0 ? '0 : 20'(desc_i[DESC_H_BIT +: 16]);
    d_pix   = gemm ? 16'd0 : desc_i[DESC_PIX_BIT +: 16];
    d_kh    = gemm ? 8'd1 : desc_i[DESC_KH_BIT +: 8];
    d_kw    = gemm ? 8'd1 : desc_i[DESC_KW_BIT +: 8];
    d_sy    = gemm ? 4'd1 : desc_i[DESC_SY_BIT +: 4];
    d_sx    = gemm ? 4'd1 : desc_i[DESC_SX_BIT +: 4];
    d_dy    = gemm ? 4'd1 : desc_i[DESC_DY_BIT +: 4];
    d_dx    = gemm ? 4'd1 : desc_i[DESC_DX_BIT +: 4];
    d_pt    = gemm ? 8'd0 : desc_i[DESC_PT_BIT +: 8];
    d_pl    = gemm ? 8'd0 : desc_i[DESC_PL_BIT +: 8];
    d_sps   = SW'(desc_i[DESC_SPS_BIT +: 18]);
    d_k     = 16'(d_kh) * 16'(d_kw) * d_kcin;
    // With so few folds a tile, stores would be what the array waits for: then there are four tiles, half as deep.
    d_pair  = !desc_i[DESC_F_OUT32_BIT] && 32'(w_i) <= 16 && 32'(d_k) <= 2 * 32'(h_i);
    d_depth = (DW + 1)'(desc_i[DESC_F_OUT32_BIT] ? D / 4 : d_pair ? D / 2 : D);
    // scratchpad address of the first window's first element; wraps, as every scratchpad address does
    d_base  = SW'(desc_i[DESC_ADDR_A_BIT +: 6]) - SW'(d_pt) * d_sps - SW'(d_pl) * SW'(d_pix);
  end

  // Rows of the next panel, of those left, after one of prev rows (0: it is the first).  Panels begin short and double, so
  // that the array starts while the rest of the input is still being loaded; a long operation also ends with a short one,
  // so that little is left to store; and no panel is shorter than the array is high, unless the operation or depth is.
  localparam int Short = 32;               // at 16 rows, weights then take half of the memory port
  function automatic logic [DW:0] panel(input logic [19:0] left, input logic [DW:0] depth, input logic [DW:0] prev);
    logic [DW+1:0] want;
    logic [19:0]   cap;
    want = prev == 0 ? (DW + 2)'(Short) : {prev, 1'b0};
    cap  = want < (DW + 2)'(depth) ? 20'(want) : 20'(depth);
    if (left >= cap + 20'(Short)) return (DW + 1)'(cap);
    else if (left <= 20'(depth)) return (DW + 1)'(left >= 20'(2 * Short) ? left - 20'(Short) : left);
    else if (left < cap << 1) return (DW + 1)'((left + 20'd1) >> 1);
    else return (DW + 1)'(cap);
  endfunction

  // ---- fold generator ------------------------------------------------------------------------------------------------
  logic         gv_q;
  logic [19:0]  g_m0_q;
  logic [15:0]  g_n0_q, g_k0_q;
  logic [DW:0]  g_t_q;
  logic [31:0]  g_d_q;                    // address of output row m0
  logic [1:0]   g_tid_q;
  logic         g_newp_q;                 // first fold of a panel other than the first
  logic         g_odd_q;                  // second tile of a pair
  // ---- l: the fold in, or going into, the shadow weights ---------------------------------------------------------------
  logic         lv_q, lact_q, l_first_q, l_last_q, l_newp_q, l_bank_q;
  logic [RW-1:0] li_q, l_kr_q;
  logic [DW:0]  l_t_q;
  logic [CW-1:0] l_nc_q;
  logic [1:0]   l_tid_q;
  logic [63:0]  l_start_q;
  // k walker: (ky, kx, c) of the weight row being loaded, as scratchpad and image offsets
  logic [15:0]  kc_q;
  logic [7:0]   kx_q;
  logic [SW-1:0] koff_q, kxo_q, kyo_q;
  logic [11:0]  kdx_q, kdy_q;
  logic [11:0]  l_reach_q, l_reach, x_reach_q;  // input rows from a window's first to the last that the fold's lanes touch
  logic [SW-1:0] lane_off [2<<RB];
  logic [11:0]  lane_dx [2<<RB], lane_dy [2<<RB];
  logic [R-1:0] lane_v_q [2];
  // ---- x: the fold being streamed ----------------------------------------------------------------------------------------
  logic         xact_q, x_first_q, x_last_q, x_bank_q;
  logic [DW:0]  xt_q, x_t_q;
  logic [1:0]   x_tid_q;
  logic [CW-1:0] x_nc_q;
  logic [15:0]  x_macs_q;
  // row walker: the window of activation row xt; and where the panel's first row began
  typedef struct packed {
    logic [15:0]        ox;
    logic signed [20:0] iy;
    logic signed [17:0] ix;
    logic [SW-1:0]      ad, row;
  } walk_t;
  walk_t        cur_q, cur_n, base, pst_q;
  // ---- tiles ---------------------------------------------------------------------------------------------------------------
  logic [CW-1:0] t_nc [4];
  logic [DW:0]  t_t [4];
  logic [31:0]  t_d [4];                  // address of the tile's first output
  logic [3:0]   t_pair_q;                 // stored together with the next
  logic [1:0]   st_tid_q;                 // next tile to store
  logic [2:0]   live_q;                   // tiles between first load and end of their store
  logic [2:0]   full_q;                   // complete tiles not yet stored
  logic [6:0]   inflight_q;               // rows between issue and the last column
  // ---- activation loader ----------------------------------------------------------------------------------------------------
  logic         al_act_q, al_last_v_q;
  logic [19:0]  al_row_q, done_rows_q, lo_q;
  logic [31:0]  al_rva_q, al_va_q, al_end_q;
  logic [SW-1:0] al_rsp_q;
  logic [SW-7:0] al_ln_q;
  logic [31:0]  al_lastline_q;
  logic [SW+2:0] occ_q;                   // scratchpad bytes between the oldest row kept and the next to load
  logic [5:0]   ah_q, at_q;
  logic [6:0]   acnt_q;
  logic [NRing-1:0] apend_q;
  logic [SW-7:0] al_line [NRing];
  logic [19:0]  rowmark [NRing];
  logic [511:0] spad [1 << (SW - 6)];

  logic row_ok, base_ok, x_issue, x_end, x_start, l_issue, l_end, l_start, g_first, g_lastk, g_lastn, out_full, tile_done, store_done;
  logic resident, a_settled, row_fits;
  // declared here because several blocks below share them
  logic         start_q;                  // the cycle after start_i: the decoded fields are in
  walk_t        base0_q;
  logic [31:0]  d_addr_q, a_addr_q;
  logic signed [20:0] lo_iy;
  logic [19:0]  lo_target;

  function automatic logic have(input logic signed [20:0] iy, input logic [11:0] reach, input logic [19:0] done,
                                input logic [19:0] all);
    logic signed [21:0] last;
    last = 22'(iy) + 22'(signed'({1'b0, reach}));
    return last < 0 || last < 22'(signed'({2'b0, done})) || done == all;
  endfunction

  always_comb begin
    cur_n = cur_q;
    if (cur_q.ox + 16'd1 == ow_q) begin
      cur_n.ox  = '0;
      cur_n.ix  = -18'(signed'({1'b0, pl_q}));
      cur_n.iy  = cur_q.iy + 21'(signed'({1'b0, sy_q}));
      cur_n.row = cur_q.row + stepy_q;
      cur_n.ad  = cur_n.row;
    end else begin
      cur_n.ox = cur_q.ox + 16'd1;
      cur_n.ix = cur_q.ix + 18'(signed'({1'b0, sx_q}));
      cur_n.ad = cur_q.ad + stepx_q;
    end
  end

  assign row_ok   = have(cur_q.iy, x_reach_q, done_rows_q, h_in_q);
  assign x_issue  = xact_q && row_ok;
  assign x_end    = x_issue && xt_q == x_t_q - 1'b1;
  assign base     = !l_newp_q ? pst_q : x_issue ? cur_n : cur_q;
  assign l_reach  = l_issue && li_q < l_kr_q ? kdy_q : l_reach_q;
  assign base_ok  = have(base.iy, l_reach, done_rows_q, h_in_q);
  assign g_first  = g_k0_q == 0;
  assign g_lastk  = 17'(g_k0_q) + 17'(h_i) >= 17'(k_q);
  assign g_lastn  = 17'(g_n0_q) + 17'(w_i) >= 17'(n_q);
  assign out_full = live_q >= (pair_q ? 3'd4 : 3'd2);
  assign l_issue  = lact_q && (li_q >= l_kr_q || (pop_v_i && meta_i[8]));
  assign l_end    = l_issue && li_q == h_i - 1'b1;
  assign x_start  = lv_q && (!lact_q || l_end) && (!xact_q || x_end) && base_ok;
  // SERIAL: nothing in flight, and all that the fold needs already on chip, so that its length is exact
  assign a_settled = acnt_q == 0 && (!al_act_q || (!row_fits && lo_q == lo_target));
  assign resident = a_settled && pop_v_i && meta_i[8] && 17'(ready_i) >= (17'(k_q) - 17'(g_k0_q) < 17'(h_i) ? 17'(k_q) - 17'(g_k0_q) : 17'(h_i));
  assign l_start  = gv_q && (!lv_q || x_start) && (!lact_q || l_end) && !(g_first && out_full)
                    && (!serial_i || (!lv_q && !xact_q && inflight_q == 0 && resident));
  assign quiet_o  = !lv_q && !lact_q && !xact_q && inflight_q == 0;
  assign busy_o   = on_q;
  assign row_o    = x_issue;
  assign fold_o   = l_start;
  assign macs_o   = x_issue ? x_macs_q : '0;
  assign stall_a_o   = (xact_q && !row_ok) || (!xact_q && lv_q && !lact_q && !base_ok);
  assign stall_w_o   = !xact_q && lact_q && !l_issue;
  assign stall_out_o = !xact_q && gv_q && !lv_q && !lact_q && g_first && out_full;
  // A panel whose input can never fit: tell the slot rather than wait for ever.
  assign stuck_o  = on_q && stall_a_o && al_act_q && !row_fits && acnt_q == 0 && lo_q == lo_target;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      on_q     <= 1'b1;
      out32_q  <= desc_i[DESC_F_OUT32_BIT];
      au8_q    <= desc_i[DESC_F_AU8_BIT];
      bu8_q    <= desc_i[DESC_F_BU8_BIT];
      ou8_q    <= desc_i[DESC_F_OU8_BIT];
      nop_q    <= desc_i[DESC_F_NOPARAM_BIT];
      block_q  <= desc_i[DESC_F_BLOCK_BIT];
      group_q  <= desc_i[DESC_F_GROUP_BIT];
      float_q  <= desc_i[DESC_F_FLOAT_BIT];
      b_q      <= desc_i[DESC_ADDR_B_BIT +: 32];
      p_q      <= desc_i[DESC_ADDR_P_BIT +: 32];
      qmult_q  <= desc_i[DESC_QMULT_BIT +: 32];
      qshift_q <= desc_i[DESC_QSHIFT_BIT +: 7];
      lda_q    <= desc_i[DESC_LDA_BIT +: 32];
      ldb_q    <= desc_i[DESC_LDB_BIT +: 16];
      ldd_q    <= desc_i[DESC_LDD_BIT +: 32];
      m_q      <= d_m;
      n_q      <= desc_i[DESC_DN_BIT +: 16];
      kcin_q   <= d_kcin;
      k_q      <= d_k;
      pair_q   <= d_pair;
      ow_q     <= d_ow;
      h_in_q   <= d_h;
      w_in_q   <= d_w;
      kw_q     <= d_kw;
      sy_q     <= d_sy;
      sx_q     <= d_sx;
      dy_q     <= d_dy;
      dx_q     <= d_dx;
      pl_q     <= d_pl;
      zpa_q    <= desc_i[DESC_ZPA_BIT +: 8];
      zpb_q    <= desc_i[DESC_ZPB_BIT +: 8];
      zpo_q    <= desc_i[DESC_ZPO_BIT +: 8];
      amin_q   <= desc_i[DESC_AMIN_BIT +: 8];
      amax_q   <= desc_i[DESC_AMAX_BIT +: 8];
      rowbytes_q <= (32'(d_w) - 32'd1) * 32'(d_pix) + 32'(d_cin);
      sps_q    <= d_sps;
      stepx_q  <= SW'(d_sx) * SW'(d_pix);
      stepy_q  <= SW'(d_sy) * d_sps;
      kstepx_q <= SW'(d_dx) * SW'(d_pix);
      kstepy_q <= SW'(d_dy) * d_sps;
      depth_q  <= d_panel > 16'(d_depth) ? d_depth : (DW + 1)'(d_panel);
    end else if (on_q && !gv_q && !lv_q && !xact_q && inflight_q == 0 && live_q == 0 && !start_q) on_q <= 1'b0;
    if (kill_i || !rst_ni) on_q <= 1'b0;
  end

  always_ff @(posedge clk_i) start_q <= start_i && !kill_i && rst_ni;

  // ---- g, l, x -------------------------------------------------------------------------------------------------------------
  logic [DW:0]   g_t_next;
  logic [19:0]   g_m_next;
  logic [CW-1:0] g_nc;
  logic [RW-1:0] g_kr;
  assign g_m_next = g_m0_q + 20'(g_t_q);
  assign g_nc = 17'(n_q) - 17'(g_n0_q) < 17'(w_i) ? CW'(n_q - g_n0_q) : w_i;
  assign g_kr = 17'(k_q) - 17'(g_k0_q) < 17'(h_i) ? RW'(k_q - g_k0_q) : h_i;
  assign g_t_next = panel(m_q - g_m_next, depth_q, g_t_q);

  always_ff @(posedge clk_i) begin
    if (start_q) begin
      gv_q     <= 1'b1;
      g_m0_q   <= '0;
      g_n0_q   <= '0;
      g_k0_q   <= '0;
      g_t_q    <= panel(m_q, depth_q, '0);
      g_d_q    <= d_addr_q;
      g_tid_q  <= '0;
      g_newp_q <= 1'b0;
      g_odd_q  <= 1'b0;
    end
    if (l_start) begin
      g_newp_q <= 1'b0;
      if (!g_lastk) g_k0_q <= g_k0_q + 16'(h_i);
      else begin
        g_k0_q  <= '0;
        g_tid_q <= g_tid_q + 2'd1;
        g_odd_q <= pair_q && !g_odd_q && !g_lastn;
        if (!g_lastn) g_n0_q <= g_n0_q + 16'(w_i);
        else begin
          g_n0_q <= '0;
          if (g_m_next >= m_q) gv_q <= 1'b0;
          g_m0_q   <= g_m_next;
          g_t_q    <= g_t_next;
          g_d_q    <= g_d_q + 32'(g_t_q) * ldd_q;
          g_newp_q <= 1'b1;
        end
      end
      if (g_first) begin
        t_nc[g_tid_q] <= g_nc;
        t_t[g_tid_q]  <= g_t_q;
        t_pair_q[g_tid_q] <= pair_q && !g_odd_q && !g_lastn;
        t_d[g_tid_q]  <= g_d_q + (out32_q ? {14'd0, g_n0_q, 2'd0} : {16'd0, g_n0_q});
      end
    end

    // weight loader: one row a cycle when it is there; the lane table of the fold fills alongside
    if (l_start) begin
      lv_q      <= 1'b1;
      lact_q    <= 1'b1;
      li_q      <= '0;
      l_first_q <= g_first;
      l_last_q  <= g_lastk;
      l_newp_q  <= g_newp_q;
      l_t_q     <= g_t_q;
      l_nc_q    <= g_nc;
      l_kr_q    <= g_kr;
      l_tid_q   <= g_tid_q;
      l_bank_q  <= !l_bank_q;
      l_start_q <= time_i;
    end else begin
      if (x_start) lv_q <= 1'b0;
      if (l_issue) li_q <= li_q + 1'b1;
      if (l_end) lact_q <= 1'b0;
    end
    if (l_start && g_first) begin
      kc_q   <= '0;
      kx_q   <= '0;
      koff_q <= '0;
      kxo_q  <= '0;
      kyo_q  <= '0;
      kdx_q  <= '0;
      kdy_q  <= '0;
    end else if (l_issue && li_q < l_kr_q) begin
      if (kc_q + 16'd1 != kcin_q) begin
        kc_q   <= kc_q + 16'd1;
        koff_q <= koff_q + 1'b1;
      end else begin
        kc_q <= '0;
        if (kx_q + 8'd1 != kw_q) begin
          kx_q   <= kx_q + 8'd1;
          kdx_q  <= kdx_q + 12'(dx_q);
          kxo_q  <= kxo_q + kstepx_q;
          koff_q <= kyo_q + kxo_q + kstepx_q;
        end else begin
          kx_q   <= '0;
          kdx_q  <= '0;
          kxo_q  <= '0;
          kdy_q  <= kdy_q + 12'(dy_q);
          kyo_q  <= kyo_q + kstepy_q;
          koff_q <= kyo_q + kstepy_q;
        end
      end
    end
    if (l_start) lane_v_q[!l_bank_q] <= '0;
    if (l_issue) begin
      lane_off[{l_bank_q, RB'(li_q)}] <= koff_q;
      lane_dx[{l_bank_q, RB'(li_q)}]  <= kdx_q;
      lane_dy[{l_bank_q, RB'(li_q)}]  <= kdy_q;
      lane_v_q[l_bank_q][RB'(li_q)]   <= li_q < l_kr_q;
    end

    l_reach_q <= l_reach;

    // row streamer
    if (x_issue) begin
      xt_q  <= xt_q + 1'b1;
      cur_q <= cur_n;
      if (x_end) xact_q <= 1'b0;
    end
    if (x_start) begin
      xact_q    <= 1'b1;
      xt_q      <= '0;
      cur_q     <= base;
      pst_q     <= base;
      x_first_q <= l_first_q;
      x_last_q  <= l_last_q;
      x_t_q     <= l_t_q;
      x_tid_q   <= l_tid_q;
      x_nc_q    <= l_nc_q;
      x_bank_q  <= l_bank_q;
      x_reach_q <= l_reach;
      x_macs_q  <= 16'(l_kr_q) * 16'(l_nc_q);
    end
    if (start_q) begin
      cur_q <= base0_q;
      pst_q <= base0_q;
    end
    if (kill_i || !rst_ni || start_i) begin
      gv_q     <= 1'b0;
      lv_q     <= 1'b0;
      lact_q   <= 1'b0;
      xact_q   <= 1'b0;
      l_bank_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i)
    if (start_i) begin
      d_addr_q <= desc_i[DESC_ADDR_D_BIT +: 32];
      a_addr_q <= desc_i[DESC_ADDR_A_BIT +: 32];
      base0_q  <= '{ox: '0, iy: -21'(signed'({1'b0, d_pt})), ix: -18'(signed'({1'b0, d_pl})), ad: d_base, row: d_base};
    end

  // ---- weight and parameter generator: for each tile w parameter rows, then K weight rows -----------------------------------
  logic          p_act_q, p_rows_q;
  logic [19:0]   p_m0_q;
  logic [DW:0]   p_t_q;
  logic [15:0]   p_n0_q, p_k_q;
  logic [CW-1:0] p_j_q, p_nc;
  logic [31:0]   p_va_q;
  logic [15:0]   p_n0_next;
  logic [1:0]    p_tid_q;
  logic [2:0]    p_ahead_q;               // tiles whose parameters have been asked for and are still in use
  logic          p_last_row, p_tile_end;
  assign p_nc       = 17'(n_q) - 17'(p_n0_q) < 17'(w_i) ? CW'(n_q - p_n0_q) : w_i;
  assign push_o     = p_act_q && (p_rows_q || p_ahead_q < 3'd3);
  assign push_va_o  = p_va_q;
  // parameters come two rows a piece
  logic p_two;
  assign p_two      = p_j_q + 1'b1 != p_nc;
  assign push_len_o = p_rows_q ? 6'(p_nc) : p_two ? 6'd32 : 6'd16;
  assign push_meta_o = {p_rows_q, p_tid_q, 6'(p_j_q)};
  assign p_last_row = p_k_q + 16'd1 == k_q;
  assign p_tile_end = push_rdy_i && p_rows_q && p_last_row;
  assign p_n0_next  = 17'(p_n0_q) + 17'(w_i) >= 17'(n_q) ? '0 : p_n0_q + 16'(w_i);
  assign push_cut_o  = p_rows_q && block_q;
  assign push_jump_o = {12'd0, k_q, 4'd0};
  // where row 0 of output channel n begins
  function automatic logic [31:0] b_row(input logic [15:0] n);
    return b_q + (block_q ? (32'(n[15:4]) * 32'(k_q) << 4) + 32'(n[3:0]) : 32'(n));
  endfunction
  always_ff @(posedge clk_i) begin
    if (start_q) begin
      p_act_q  <= 1'b1;
      p_rows_q <= nop_q;
      p_m0_q   <= '0;
      p_t_q    <= panel(m_q, depth_q, '0);
      p_n0_q   <= '0;
      p_k_q    <= '0;
      p_j_q    <= '0;
      p_va_q   <= nop_q ? b_q : p_q;
      p_tid_q  <= '0;
    end else if (push_rdy_i) begin
      if (!p_rows_q) begin
        p_j_q  <= p_j_q + CW'(2);
        p_va_q <= p_va_q + 32'd32;
        if (!p_two || p_j_q + CW'(2) == p_nc) begin
          p_rows_q <= 1'b1;
          p_j_q    <= '0;
          p_va_q   <= b_row(p_n0_q);
        end
      end else begin
        p_k_q  <= p_k_q + 16'd1;
        p_va_q <= p_va_q + (block_q ? 32'd16 : 32'(ldb_q));
        if (p_last_row) begin
          p_k_q    <= '0;
          p_rows_q <= nop_q;
          p_tid_q  <= p_tid_q + 2'd1;
          p_n0_q   <= p_n0_next;
          p_va_q   <= nop_q ? b_row(p_n0_next) : p_q + {12'd0, p_n0_next, 4'd0};
          if (p_n0_next == 0) begin
            p_m0_q <= p_m0_q + 20'(p_t_q);
            p_t_q  <= panel(m_q - p_m0_q - 20'(p_t_q), depth_q, p_t_q);
            if (p_m0_q + 20'(p_t_q) >= m_q) p_act_q <= 1'b0;
          end
        end
      end
    end
    p_ahead_q <= p_ahead_q + 3'(p_tile_end) - 3'(tile_done);
    if (kill_i || !rst_ni || start_i) begin
      p_act_q   <= 1'b0;
      p_ahead_q <= '0;
    end
  end

  // parameters go to their table as they come to the FIFO's head; weights wait for the loader
  logic signed [31:0] pb_bias [4*C], pb_mult [4*C];
  logic signed [6:0]  pb_shift [4*C];
  logic [SW-1:0]      pb_at [4*C];
  logic pop_par;
  assign pop_par = on_q && pop_v_i && !meta_i[8];
  assign pop_o   = pop_par || (l_issue && li_q < l_kr_q);
  always_ff @(posedge clk_i)
    if (pop_par)
      for (int b = 0; b < 2; b++)
        if (32'(meta_i[5:0]) + b < C) begin  // the second may be none: then nobody looks
          pb_bias[PI'(32'(meta_i[7:6]) * C + 32'(meta_i[5:0]) + b)]  <= data_i[128*b +: 32];
          pb_mult[PI'(32'(meta_i[7:6]) * C + 32'(meta_i[5:0]) + b)]  <= data_i[128*b + 32 +: 32];
          pb_shift[PI'(32'(meta_i[7:6]) * C + 32'(meta_i[5:0]) + b)] <= data_i[128*b + 64 +: 7];
          pb_at[PI'(32'(meta_i[7:6]) * C + 32'(meta_i[5:0]) + b)]    <= data_i[128*b + 96 +: SW];
        end

  // ---- activation loader: input rows, in order, line by line, into the sliding window -----------------------------------------
  logic al_dup, al_need, al_adv, al_rowend, al_retire;
  logic [31:0] al_nrva;
  logic [SW-1:0] al_nrsp;
  assign row_fits  = 32'(occ_q) + rowbytes_q + 32'd128 <= 32'(1 << SW);
  assign al_dup    = al_last_v_q && al_lastline_q == {al_va_q[31:6], al_ln_q[5:0]};
  assign al_need   = al_act_q && row_fits && !al_dup;
  assign a_req_o   = al_need && acnt_q != 7'(NRing);
  assign a_va_o    = {al_va_q[31:6], 6'd0};
  assign a_tag_o   = {3'd3, at_q};
  assign al_adv    = al_act_q && row_fits && (al_dup || a_gnt_i);
  assign al_rowend = al_adv && al_va_q[31:6] == al_end_q[31:6];
  assign al_retire = acnt_q != 0 && !apend_q[ah_q];
  assign al_nrva   = al_rva_q + lda_q;
  assign al_nrsp   = al_rsp_q + sps_q;
  always_ff @(posedge clk_i) begin
    if (a_gnt_i) begin
      al_line[at_q] <= al_ln_q;
      apend_q[at_q] <= 1'b1;
      at_q          <= at_q + 1'b1;
      rowmark[at_q] <= al_row_q + 20'(al_rowend);
      al_last_v_q   <= 1'b1;
      al_lastline_q <= {al_va_q[31:6], al_ln_q[5:0]};
    end else if (al_rowend) rowmark[at_q - 6'd1] <= al_row_q + 20'd1;
    if (al_adv) begin
      al_va_q <= al_va_q + 32'd64;
      al_ln_q <= al_ln_q + 1'b1;
    end
    if (al_rowend) begin
      al_row_q <= al_row_q + 20'd1;
      al_rva_q <= al_nrva;
      al_va_q  <= al_nrva;
      al_end_q <= al_nrva + rowbytes_q - 32'd1;
      al_rsp_q <= al_nrsp;
      al_ln_q  <= al_nrsp[SW-1:6];
      if (al_row_q + 20'd1 == h_in_q) al_act_q <= 1'b0;
    end
    // the window's lower end follows the panel being streamed, a row a cycle
    occ_q <= occ_q + (al_rowend ? (SW + 3)'(sps_q) : '0)
             - (lo_q != lo_target && lo_q < al_row_q ? (SW + 3)'(sps_q) : '0);
    if (lo_q != lo_target && lo_q < al_row_q) lo_q <= lo_q + 20'd1;
    // rows complete, in order
    if (al_retire) begin
      ah_q        <= ah_q + 1'b1;
      done_rows_q <= rowmark[ah_q];
    end else if (acnt_q == 0) done_rows_q <= al_row_q;
    acnt_q <= acnt_q + 7'(a_gnt_i) - 7'(al_retire);
    if (any_rsp_i)
      for (int r = 0; r <= N; r++)
        if (rsp_i[r].v && rsp_i[r].tag[8:6] == 3'd3) apend_q[rsp_i[r].tag[5:0]] <= 1'b0;
    if (start_q) begin
      al_act_q    <= h_in_q != 0;
      al_rva_q    <= a_addr_q;
      al_va_q     <= a_addr_q;
      al_end_q    <= a_addr_q + rowbytes_q - 32'd1;
      al_rsp_q    <= SW'(a_addr_q[5:0]);
      al_ln_q     <= '0;
    end
    // all rows streamed: the rest of the image is not needed
    if (on_q && !start_q && !gv_q && !lv_q && !xact_q) al_act_q <= 1'b0;
    if (kill_i || !rst_ni || start_i) begin
      al_act_q    <= 1'b0;
      al_last_v_q <= 1'b0;
      al_row_q    <= '0;
      done_rows_q <= '0;
      lo_q        <= '0;
      occ_q       <= '0;
      ah_q        <= '0;
      at_q        <= '0;
      acnt_q      <= '0;
    end
  end
  // Oldest input row still needed: the panel's being streamed, or the next one's once this has been streamed.
  assign lo_iy     = !xact_q && (lv_q ? l_newp_q : gv_q && g_newp_q) ? cur_q.iy : pst_q.iy;
  assign lo_target = lo_iy < 0 ? '0 : 20'(lo_iy);

  /* verilator lint_off BLKSEQ */
  always_ff @(posedge clk_i) begin
    bit [511:0] line;
    if (any_rsp_i)
      for (int r = 0; r <= N; r++)
        if (rsp_i[r].v && rsp_i[r].tag[8:6] == 3'd3) begin
          // nobody reads a line before its row counts as done
          npu_dpi_read(rsp_i[r].pa, line);
          spad[al_line[rsp_i[r].tag[5:0]]] = line;
        end
  end
  /* verilator lint_on BLKSEQ */

  // ---- feeder: gathered rows and weight rows, skewed by rings that are read i rows, j rows behind ------------------------------
  logic [9*R-1:0] abuf [1 << RB], av;
  logic [9*C-1:0] wbuf [1 << CB], wv;
  logic [RB-1:0]  ap_q;
  logic [CB-1:0]  wp_q;
  logic [R-1:0]   tok_q, ld_q;
  // One lane: element (iy, ix) of the image less the zero point, or 0 outside.  A negative coordinate is a huge unsigned one.
  function automatic logic inside_image(input logic signed [20:0] iy, input logic signed [17:0] ix);
    return 21'(unsigned'(iy)) < 21'(h_in_q) && 18'(unsigned'(ix)) < 18'(w_in_q);
  endfunction
  function automatic logic [8:0] element(input logic [SW-1:0] ad);
    logic [7:0] b;
    b = spad[ad[SW-1:6]][{ad[5:0], 3'd0} +: 8];
    return {!au8_q & b[7], b} - {!au8_q & zpa_q[7], zpa_q};
  endfunction
  function automatic logic [8:0] gather(input logic [SW-1:0] ad, input logic signed [20:0] iy, input logic signed [17:0] ix);
    return inside_image(iy, ix) ? element(ad) : '0;
  endfunction
  always_comb begin
    av = '0;
    if (x_issue && !group_q)
      for (int i = 0; i < R; i++)
        if (lane_v_q[x_bank_q][i])
          av[9*i +: 9] = gather(cur_q.ad + lane_off[{x_bank_q, RB'(i)}],
                                cur_q.iy + 21'(signed'({1'b0, lane_dy[{x_bank_q, RB'(i)}]})),
                                cur_q.ix + 18'(signed'({1'b0, lane_dx[{x_bank_q, RB'(i)}]})));
  end
  always_comb begin
    wv = '0;
    if (l_issue && li_q < l_kr_q)
      for (int j = 0; j < C; j++)
        wv[9*j +: 9] = {!bu8_q & data_i[8*j+7], data_i[8*j +: 8]} - {!bu8_q & zpb_q[7], zpb_q};
  end
  always_ff @(posedge clk_i) begin
    if (x_issue) abuf[ap_q] <= av;
    if (l_issue) wbuf[wp_q] <= wv;
    ap_q  <= ap_q + 1'b1;
    wp_q  <= wp_q + 1'b1;
    tok_q <= R'({tok_q, x_issue && xt_q == 0});
    ld_q  <= l_issue ? R'(1) << li_q : '0;
    if (kill_i || !rst_ni) begin
      tok_q <= '0;
      ld_q  <= '0;
    end
    if (!rst_ni) begin
      ap_q <= '0;
      wp_q <= '0;
    end
  end
  // F_GROUP: lane i reads for each column the channels of that column's group: a vector a lane, whose bytes reach PE (i, j)
  // when a byte handed from the west would.
  logic [8:0]    gbuf [(1 << GB) * R * C];
  logic [GB-1:0] gp_q;
  /* verilator lint_off BLKSEQ */
  always_ff @(posedge clk_i) begin
    if (group_q && on_q) begin
      if (x_issue)
        for (int i = 0; i < R; i++)
          if (lane_v_q[x_bank_q][i]) begin
            logic          in;
            logic [SW-1:0] ad;
            in = inside_image(cur_q.iy + 21'(signed'({1'b0, lane_dy[{x_bank_q, RB'(i)}]})),
                              cur_q.ix + 18'(signed'({1'b0, lane_dx[{x_bank_q, RB'(i)}]})));
            ad = cur_q.ad + lane_off[{x_bank_q, RB'(i)}];
            for (int j = 0; j < C; j++)
              if (CW'(j) < x_nc_q)
                gbuf[(32'(gp_q) * R + i) * C + j] = in ? element(ad + pb_at[PI'(32'(x_tid_q) * C + j)]) : '0;
          end
      for (int i = 0; i < R; i++)
        for (int j = 0; j < C; j++) g_o[9*(i*C+j) +: 9] <= gbuf[(32'(GB'(gp_q - GB'(i + j))) * R + i) * C + j];
      gp_q <= gp_q + 1'b1;
    end
    if (!rst_ni) gp_q <= '0;
  end
  /* verilator lint_on BLKSEQ */
  assign group_o = group_q;
  assign sw_o = tok_q;
  assign ld_o = ld_q;
  always_comb begin
    for (int i = 0; i < R; i++) a_o[i] = abuf[RB'(ap_q - RB'(1) - RB'(i))][9*i +: 9];
    for (int j = 0; j < C; j++) w_o[j] = wbuf[CB'(wp_q - CB'(1) - CB'(j))][9*j +: 9];
  end

  // ---- tags: the only thing that says a result is real; they die at the rectangle's edges --------------------------------------
  typedef struct packed {
    logic          v, first, last, eof, eot;  // eof: last row of its fold, eot: of its tile
    logic [1:0]    tid;
    logic [DW-1:0] t;
  } tag_t;
  tag_t tg_q [R], ct_q [C];
  logic row_done, fold_done;              // a row, a fold's last row has left the last column
  assign row_done  = ct_q[CB'(w_i - CW'(1))].v;
  assign fold_done = row_done && ct_q[CB'(w_i - CW'(1))].eof;
  assign tile_done = row_done && ct_q[CB'(w_i - CW'(1))].eot;
  always_ff @(posedge clk_i) begin
    if (x_issue || inflight_q != 0) begin
      tg_q[0] <= '{v: x_issue, first: x_first_q, last: x_last_q, eof: x_end, eot: x_last_q && x_end, tid: x_tid_q,
                   t: DW'(xt_q)};
      for (int i = 1; i < R; i++) begin
        tg_q[i]   <= tg_q[i-1];
        tg_q[i].v <= tg_q[i-1].v && RW'(i) < h_i;
      end
      ct_q[0] <= tg_q[RB'(h_i - RW'(1))];
      for (int j = 1; j < C; j++) begin
        ct_q[j]   <= ct_q[j-1];
        ct_q[j].v <= ct_q[j-1].v && CW'(j) < w_i;
      end
    end
    inflight_q <= inflight_q + 7'(x_issue) - 7'(row_done);
    if (kill_i || !rst_ni) begin
      for (int i = 0; i < R; i++) tg_q[i].v <= 1'b0;
      for (int j = 0; j < C; j++) ct_q[j].v <= 1'b0;
      inflight_q <= '0;
    end
  end

  // ---- accumulators, requantizers, output tile -----------------------------------------------------------------------------------
  logic signed [31:0] acc [C*D];
  logic [7:0]         obuf [2*D*C];       // two tiles, or four half as deep: [tile][row][column]
  localparam int OW = $clog2(2*D*C);
  function automatic logic [OW-1:0] out_row(input logic [1:0] tid, input logic [DW-1:0] t);
    return (pair_q ? OW'({tid, (DW - 1)'(t)}) : OW'({tid[0], t})) * OW'(C);
  endfunction
  /* verilator lint_off BLKSEQ */
  always_ff @(posedge clk_i)
    if (inflight_q != 0)
      for (int j = 0; j < C; j++)
        if (ct_q[j].v) begin
          logic signed [31:0] sum, v;
          logic [PI-1:0] pi;
          sum = p_i[j] + (ct_q[j].first ? 32'sd0 : acc[AI'(j * D) + AI'(ct_q[j].t)]);
          if (!ct_q[j].last) acc[AI'(j * D) + AI'(ct_q[j].t)] = sum;
          else begin
            pi = PI'(32'(ct_q[j].tid) * C + j);
            if (!nop_q) sum = sum + pb_bias[pi];
            if (out32_q) begin
              for (int b = 0; b < 4; b++)
                obuf[out_row(ct_q[j].tid, DW'({ct_q[j].t, 2'(b)})) + OW'(j)] = sum[8*b +: 8];
            end else begin
              v = float_q ? npu_math_pkg::requant_float(sum, nop_q ? qmult_q[30:0] : pb_mult[pi][30:0])
                          : npu_math_pkg::requant(sum, nop_q ? qmult_q : pb_mult[pi], nop_q ? qshift_q : pb_shift[pi]);
              obuf[out_row(ct_q[j].tid, ct_q[j].t) + OW'(j)] =
                  npu_math_pkg::clamp8(v, zpo_q, amin_q, amax_q, ou8_q);
            end
          end
        end
  /* verilator lint_on BLKSEQ */

  // ---- stores: a complete tile, or two side by side, row by row ---------------------------------------------------------------------------------------
  logic [DW:0]  s_t_q;
  logic [31:0]  s_row_q;                  // address of the tile row
  logic [7:0]   s_b_q, s_bytes;           // bytes of the row already handed over, of a row
  logic         s_on_q;
  logic [5:0]   s_len;
  logic         s_two;
  logic [1:0]   s_next;
  assign s_two     = t_pair_q[st_tid_q];
  assign s_next    = st_tid_q + 2'd1;
  assign s_bytes   = out32_q ? 8'({t_nc[st_tid_q], 2'd0}) : 8'(t_nc[st_tid_q]) + (s_two ? 8'(t_nc[s_next]) : 8'd0);
  assign s_len     = s_bytes - s_b_q > 8'd32 ? 6'd32 : 6'(s_bytes - s_b_q);
  assign st_v_o    = s_on_q;
  assign st_va_o   = s_row_q + 32'(s_b_q);
  assign st_len_o  = s_len;
  assign store_done = s_on_q && st_rdy_i && s_b_q + 8'(s_len) == s_bytes && s_t_q + 1'b1 == t_t[st_tid_q];
  always_comb begin
    st_data_o = '0;
    if (s_on_q)
      for (int b = 0; b < 32; b++)
        if (6'(b) < s_len)
          st_data_o[8*b +: 8] = out32_q
              ? obuf[out_row(st_tid_q, DW'({s_t_q, 2'(b)})) + OW'(s_b_q[7:2]) + OW'(b >> 2)]
              : s_two && 6'(b) >= 6'(w_i) ? obuf[out_row(s_next, DW'(s_t_q)) + OW'(b) - OW'(w_i)]
              : obuf[out_row(st_tid_q, DW'(s_t_q)) + OW'(s_b_q) + OW'(b)];
  end
  always_ff @(posedge clk_i) begin
    if (!s_on_q && full_q > 3'(s_two)) begin
      s_on_q  <= 1'b1;
      s_t_q   <= '0;
      s_b_q   <= '0;
      s_row_q <= t_d[st_tid_q];
    end else if (s_on_q && st_rdy_i) begin
      if (s_b_q + 8'(s_len) != s_bytes) s_b_q <= s_b_q + 8'(s_len);
      else begin
        s_b_q   <= '0;
        s_t_q   <= s_t_q + 1'b1;
        s_row_q <= s_row_q + ldd_q;
        if (store_done) begin
          s_on_q   <= 1'b0;
          st_tid_q <= s_next + 2'(s_two);
        end
      end
    end
    live_q <= live_q + 3'(l_start && g_first) - (store_done ? 3'd1 + 3'(s_two) : '0);
    full_q <= full_q + 3'(tile_done) - (store_done ? 3'd1 + 3'(s_two) : '0);
    if (kill_i || !rst_ni || start_i) begin
      s_on_q   <= 1'b0;
      st_tid_q <= '0;
      live_q   <= '0;
      full_q   <= '0;
    end
  end

  // ---- fold reports: seen by traces and benches, not part of the machine -----------------------------------------------------------
  logic [63:0]   f_start [1 << FI];
  logic [15:0]   f_shape [1 << FI];
  logic [DW:0]   f_t [1 << FI];
  logic [FI-1:0] fh_q, ft_q;
  always_ff @(posedge clk_i) begin
    if (x_start) begin
      f_start[ft_q] <= l_start_q;
      f_shape[ft_q] <= {8'(l_kr_q), 8'(l_nc_q)};
      f_t[ft_q]     <= l_t_q;
      ft_q          <= ft_q + 1'b1;
    end
    if (fold_done) begin
      npu_dpi_fold(Id, 32'(f_shape[fh_q][15:8]), 32'(f_shape[fh_q][7:0]), 32'(f_t[fh_q]), f_start[fh_q], time_i);
      fh_q <= fh_q + 1'b1;
    end
    if (kill_i || !rst_ni || start_i) begin
      fh_q <= '0;
      ft_q <= '0;
    end
  end
endmodule
