// SPDX-License-Identifier: Apache-2.0
// npu_mmu: one slot's memory port: picks a client, translates by TLB or page walk, checks, and holds the request.
//
// Clients are served one request a cycle: who is waited for first, then in bursts of at most eight so that DRAM rows stay open, round robin.  A page is
// a granule, so a page lies on one channel: its channel and channel-local place are hashed once, when the translation is
// fetched, and kept in the TLB.  Page tables have two levels, a page each: a root of tables, a table of pages.  A walk blocks
// the port; sixteen tables and eight lines of tables are kept, so that most walks read nothing.
module npu_mmu #(
    parameter int N = 8, TlbLog2 = 10,
    localparam int NC = 4  // clients: fetch FIFO, activation loader, stores, sequencer
) (
    input  logic                clk_i, rst_ni,
    input  logic                kill_i,     // forget requests not yet accepted and a walk under way
    input  logic                flush_i,    // forget translations
    input  logic [31:0]         pt_base_i, pt_count_i,
    input  logic [15:0]         ch_mask_i,
    input  npu_pkg::hash_cfg_t  hash_i,
    // clients
    input  logic [NC-1:0]       v_i,
    input  logic [NC-1:0]       urgent_i,  // the slot stands still for want of this client: it goes first
    input  logic [31:0]         va_i [NC],
    input  logic [6:0]          len_i [NC],  // bytes, inside one line
    input  logic [8:0]          tag_i [NC],
    input  logic [NC-1:0]       we_i,
    output logic [NC-1:0]       gnt_o,
    input  logic [255:0]        wdata_i,     // of the one client that writes at a time
    // memory
    output npu_pkg::mem_req_t   req_o,
    input  logic                acc_i,
    input  logic                any_rsp_i,
    input  npu_pkg::mem_rsp_t   rsp_i [N+1],
    // events
    output logic                fault_o,
    output logic [3:0]          fault_kind_o,
    output logic [31:0]         fault_va_o,
    output logic                miss_o
);
  import "DPI-C" function void npu_dpi_read(input int unsigned pa, output bit [511:0] d);
  import "DPI-C" function void npu_dpi_write(input int unsigned pa, input int unsigned len, input bit [255:0] d);
  import npu_regs_pkg::*;
  localparam int NT = 1 << TlbLog2;
  localparam logic [8:0] WalkTag = 9'h1C0;

  typedef struct packed {
    logic        w;
    logic [3:0]  ch;
    logic [23:0] vpn;
    logic [23:0] pfn;   // physical address >> 8
    logic [25:0] lgran;
  } tlb_t;

  typedef enum logic [1:0] {WIdle, WAsk, WWait, WCheck} walk_e;

  tlb_t               tlb_q [NT];
  logic [NT-1:0]      tlb_v_q;
  walk_e              walk_q;
  logic [31:0]        walk_va_q, pte_q;
  npu_pkg::mem_req_t  req_q;
  logic [255:0]       wdata_q;
  logic [6:0]         wlen_q;
  logic [1:0]         rr_q;
  logic [2:0]         burst_q;
  logic [511:0]       ptl [8];                  // lines of second-level tables
  logic [25:0]        ptl_addr [8];
  logic [7:0]         ptl_v_q;
  logic [23:0]        table_pa [16], table_idx [16];  // tables: physical address >> 8, place in the root
  logic [15:0]        table_v_q;
  logic               leaf_q;                   // the walk is at its second level

  logic               any, hit, ok, free;
  logic [1:0]         sel;
  logic [31:0]        va, gmask, off;
  logic [23:0]        vpn;
  logic [TlbLog2-1:0] idx;
  tlb_t               e;
  logic [3:0]         fk;

  function automatic logic [TlbLog2-1:0] index(input logic [23:0] v);
    return v[TlbLog2-1:0] ^ v[2*TlbLog2-1:TlbLog2];
  endfunction

  function automatic logic [2:0] line_index(input logic [31:0] pa);
    return pa[8:6] ^ pa[11:9] ^ pa[14:12] ^ pa[17:15];
  endfunction

  assign free = !req_q.v || acc_i;
  // Round robin: the first client at or after rr_q that asks.
  always_comb begin
    any = |v_i && walk_q == WIdle;
    sel = rr_q;
    if (any && |(v_i & urgent_i)) begin
      for (int i = NC - 1; i >= 0; i--) if (v_i[i] && urgent_i[i]) sel = 2'(i);
    end else if (any && !v_i[sel]) begin
      sel = rr_q + 2'd1;
      if (!v_i[sel]) begin
        sel = rr_q + 2'd2;
        if (!v_i[sel]) sel = rr_q + 2'd3;
      end
    end
    va    = '0;
    vpn   = '0;
    gmask = '0;
    idx   = '0;
    e     = '0;
    hit   = 1'b0;
    fk    = 4'(FAULT_NONE);
    if (any) begin
      va    = va_i[sel];
      gmask = ~(32'hFFFFFFFF << hash_i.gran);
      vpn   = 24'(va >> hash_i.gran);
      idx   = index(vpn);
      e     = tlb_q[idx];
      hit   = tlb_v_q[idx] && e.vpn == vpn;
      if (32'(vpn) >= pt_count_i) fk = 4'(FAULT_BOUNDS);
      else if (hit && we_i[sel] && !e.w) fk = 4'(FAULT_WRITE);
    end
    off = va & gmask;
    ok  = any && hit && fk == 4'(FAULT_NONE);
    gnt_o = '0;
    if (ok && free) gnt_o[sel] = 1'b1;
  end

  // A walk: the entry's line is read at its physical address; then valid bit and channel are checked.
  logic [31:0]               pte_pa;
  npu_hash_pkg::place_t      pl, pt_pl;
  logic                      walk_bad, ptl_hit, table_hit;
  logic [23:0]               walk_vpn, root_idx;
  logic [3:0]                ti;
  logic [2:0]                li;
  logic [31:0]               leaf_off;
  logic [3:0]                walk_fk;
  always_comb begin
    pte_pa   = '0;
    pt_pl    = '0;
    ptl_hit  = 1'b0;
    pl       = '0;
    walk_bad = 1'b0;
    walk_fk  = 4'(FAULT_NONE);
    table_hit = 1'b0;
    walk_vpn  = 24'(walk_va_q >> hash_i.gran);
    root_idx  = walk_vpn >> (hash_i.gran - 4'd2);
    ti        = root_idx[3:0] ^ root_idx[7:4];
    li        = '0;
    leaf_off  = (32'(walk_vpn) << 2) & ~(32'hFFFFFFFF << hash_i.gran);
    if (walk_q == WAsk) begin
      table_hit = table_v_q[ti] && table_idx[ti] == root_idx;
      pte_pa = leaf_q ? {table_pa[ti], 8'd0} + leaf_off : pt_base_i + {6'd0, root_idx, 2'd0};
      pt_pl  = npu_hash_pkg::line(pte_pa, hash_i);
      // an entry that was not valid then is read again
      li      = line_index(pte_pa);
      ptl_hit = leaf_q && ptl_v_q[li] && ptl_addr[li] == pte_pa[31:6] && ptl[li][9'({pte_pa[5:2], 5'd0})];
    end
    if (walk_q == WCheck) begin
      pl = npu_hash_pkg::map(24'({pte_q[31:8], 8'h0} >> hash_i.gran), hash_i);
      if (!pte_q[0]) walk_fk = 4'(FAULT_UNMAPPED);
      else if (leaf_q && !ch_mask_i[pl.ch]) walk_fk = 4'(FAULT_CHANNEL);
      walk_bad = walk_fk != 4'(FAULT_NONE);
    end
  end

  assign fault_o      = (any && fk != 4'(FAULT_NONE)) || walk_bad;
  assign fault_kind_o = walk_bad ? walk_fk : fk;
  assign fault_va_o   = walk_bad ? walk_va_q : va;
  assign miss_o       = walk_q == WCheck && leaf_q;
  assign req_o        = req_q;

  /* verilator lint_off BLKSEQ */
  always_ff @(posedge clk_i) begin
    bit [511:0] line;
    if (acc_i && req_q.we) npu_dpi_write(req_q.pa, 32'(wlen_q), wdata_q);
    if (acc_i) req_q.v <= 1'b0;
    unique case (walk_q)
      WIdle:
        if (ok && free) begin
          req_q   <= '{v: 1'b1, we: we_i[sel], ch: e.ch, lline: (e.lgran << (hash_i.gran - 4'd6)) | 26'(off >> 6),
                       beats: 3'((7'(va[3:0]) + len_i[sel] + 7'd15) >> 4), tag: tag_i[sel],
                       pa: {e.pfn, 8'h0} | off};
          if (we_i[sel]) wdata_q <= wdata_i;
          wlen_q  <= len_i[sel];
          // stay with a client for eight requests, unless it pauses
          burst_q <= sel == rr_q ? burst_q + 3'd1 : 3'd1;
          rr_q    <= sel == rr_q && burst_q == 3'd7 ? sel + 2'd1 : sel;
        end else if (any && !hit && fk == 4'(FAULT_NONE)) begin
          walk_q    <= WAsk;
          walk_va_q <= va;
        end
      WAsk:
        if (!leaf_q && table_hit) leaf_q <= 1'b1;
        else if (ptl_hit) begin
          pte_q  <= ptl[li][9'({pte_pa[5:2], 5'd0}) +: 32];
          walk_q <= WCheck;
        end else if (free) begin
          req_q  <= '{v: 1'b1, we: 1'b0, ch: pt_pl.ch, lline: pt_pl.lgran, beats: 3'd4, tag: WalkTag,
                      pa: pte_pa};
          walk_q <= WWait;
        end
      WWait:
        if (any_rsp_i)
          for (int r = 0; r <= N; r++)
            if (rsp_i[r].v && rsp_i[r].tag == WalkTag) begin
              npu_dpi_read(rsp_i[r].pa, line);
              pte_q      <= line[9'({rsp_i[r].pa[5:2], 5'd0}) +: 32];
              if (leaf_q) begin
                ptl[line_index(rsp_i[r].pa)]      <= line;
                ptl_addr[line_index(rsp_i[r].pa)] <= rsp_i[r].pa[31:6];
                ptl_v_q[line_index(rsp_i[r].pa)]  <= 1'b1;
              end
              walk_q     <= WCheck;
            end
      WCheck: begin
        if (!walk_bad && !leaf_q) begin
          table_pa[ti]  <= pte_q[31:8];
          table_idx[ti] <= root_idx;
          table_v_q[ti] <= 1'b1;
        end
        if (!walk_bad && leaf_q) begin
          tlb_q[index(24'(walk_va_q >> hash_i.gran))] <=
              '{w: pte_q[1], ch: pl.ch, vpn: 24'(walk_va_q >> hash_i.gran),
                pfn: pte_q[31:8], lgran: pl.lgran};
          tlb_v_q[index(24'(walk_va_q >> hash_i.gran))] <= 1'b1;
        end
        walk_q <= walk_bad || leaf_q ? WIdle : WAsk;
        leaf_q <= !walk_bad && !leaf_q;
      end
      default: walk_q <= WIdle;
    endcase
    if (kill_i) begin
      walk_q  <= WIdle;
      leaf_q  <= 1'b0;
      req_q.v <= 1'b0;  // and what is granted in this cycle
    end
    if (flush_i || (walk_q == WCheck && walk_bad)) ptl_v_q <= '0;
    if (flush_i) tlb_v_q <= '0;
    if (flush_i) table_v_q <= '0;
    if (!rst_ni) begin
      walk_q  <= WIdle;
      req_q   <= '0;
      tlb_v_q <= '0;
      rr_q    <= '0;
      burst_q <= '0;
      ptl_v_q <= '0;
      table_v_q <= '0;
      leaf_q  <= 1'b0;
    end
  end
  /* verilator lint_on BLKSEQ */
endmodule
