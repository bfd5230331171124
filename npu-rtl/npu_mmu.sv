// SPDX-License-Identifier: Apache-2.0
// npu_mmu: one slot's memory port: picks a client, translates by TLB or page walk, checks, holds
// the request.
//
// Clients are served one request a cycle: who is waited for first, then in bursts of at most eight
// so that DRAM rows stay open, round robin.  A request chosen in one cycle has its TLB entry in the
// next, when it is checked and, if the entry is another page's, waits for a walk. A page is a
// granule, so a page lies on one channel: its channel and channel-local place are hashed once, when
// the translation is fetched, and kept in the TLB.  Page tables have two levels, a page each: a
// root of tables, a table of pages.  A walk blocks the port; sixteen tables and eight lines of
// tables are kept, so that most walks read nothing.  Translations belong to a context: those of
// several are kept side by side.
module npu_mmu #(
    parameter  int unsigned TlbLog2 = 10,
    // clients: fetch FIFO, activation loader, stores, sequencer
    localparam int unsigned NC      = 4
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               kill_i,     // forget requests not yet accepted and a walk under way
    input  logic               flush_i,    // forget translations
    input  logic [31:0]        pt_base_i,
    input  logic [31:0]        pt_count_i,
    input  logic [7:0]         context_i,  // whose page tables these are
    input  logic [15:0]        ch_mask_i,
    input  npu_pkg::hash_cfg_t hash_i,
    // clients
    input  logic [NC-1:0]      v_i,
    // the slot stands still for want of this client: it goes first
    input  logic [NC-1:0]      urgent_i,
    input  logic [31:0]        va_i [NC],
    input  logic [6:0]         len_i [NC],  // bytes, inside one line
    input  logic [8:0]         tag_i [NC],
    input  logic [1:0]         seq_i [NC],  // number of the operation it is for
    input  logic [NC-1:0]      we_i,
    output logic [NC-1:0]      gnt_o,
    input  npu_pkg::line_t     wdata_i,    // of the one client that writes at a time
    // memory
    output npu_pkg::mem_req_t  req_o,
    output npu_pkg::line_t     wdata_o,
    input  logic               acc_i,
    input  npu_pkg::mem_rsp_t  rsp_i,
    output logic               busy_o,     // a request has been granted and not yet accepted
    // events
    output logic               fault_o,
    output logic [1:0]         fault_seq_o,
    output logic [8:0]         fault_tag_o,
    input  logic               drop_i,     // with fault_o: forget this request and go on
    output logic [3:0]         fault_kind_o,
    output logic [31:0]        fault_va_o,
    output logic               miss_o
);
  // index() folds a page's number once, and needs more bits than the four of the context it turns
  // round
  if (TlbLog2 < 5 || TlbLog2 > 12) $fatal(1, "npu_mmu: TlbLog2 is %0d, not 5..12", TlbLog2);

  import npu_regs_pkg::*;
  localparam int unsigned NT = 1 << TlbLog2;
  localparam logic [8:0] WalkTag = 9'h1C0;

  typedef struct packed {
    logic        we;
    logic [31:0] va;
    logic [6:0]  len;
    logic [8:0]  tag;
    logic [1:0]  seq;
  } ask_t;
  typedef struct packed {
    logic        w;
    logic [3:0]  ch;
    logic [7:0]  ctx;
    logic [23:0] vpn;
    logic [23:0] pfn;   // physical address >> 8
    logic [25:0] lgran;
  } tlb_t;
  typedef struct packed {
    logic [7:0]  ctx;
    logic [23:0] idx;   // place in the root
    logic [23:0] pa;    // physical address >> 8
  } table_t;

  // A line of a table that is kept is read, as memories are, a cycle behind its address.
  typedef enum logic [2:0] {WIdle, WTable, WLine, WAsk, WWait, WCheck} walk_e;

  function automatic logic [TlbLog2-1:0] index(input logic [23:0] vpn, input logic [7:0] ctx);
    // small spaces of contexts that follow each other do not meet
    return vpn[TlbLog2-1:0] ^ vpn[2*TlbLog2-1:TlbLog2]
           ^ {ctx[0], ctx[1], ctx[2], ctx[3], (TlbLog2 - 4)'(ctx >> 4)};
  endfunction
  function automatic logic [2:0] line_index(input logic [25:0] line);
    return line[2:0] ^ line[5:3] ^ line[8:6] ^ line[11:9];
  endfunction

  // ---- choice of a client ---------------------------------------------------------------------
  logic [1:0] sel, rr_q, rr_d;
  logic [2:0] burst_q, burst_d;
  logic       any, next, free;         // next: the request being checked leaves, or there is none
  ask_t       ask;
  always_comb begin
    any = |v_i;
    sel = rr_q;
    if (|(v_i & urgent_i)) begin
      for (int i = NC - 1; i >= 0; i--) if (v_i[i] && urgent_i[i]) sel = 2'(i);
    end else if (any && !v_i[sel]) begin
      sel = rr_q + 2'd1;
      if (!v_i[sel]) begin
        sel = rr_q + 2'd2;
        if (!v_i[sel]) sel = rr_q + 2'd3;
      end
    end
    ask     = '{we: we_i[sel], va: va_i[sel], len: len_i[sel], tag: tag_i[sel], seq: seq_i[sel]};
    gnt_o   = '0;
    rr_d    = rr_q;
    burst_d = burst_q;
    if (any && next) begin
      gnt_o[sel] = 1'b1;
      // stay with a client for eight requests, unless it pauses
      burst_d = sel == rr_q ? burst_q + 3'd1 : 3'd1;
      rr_d    = sel == rr_q && burst_q == 3'd7 ? sel + 2'd1 : sel;
    end
  end

  // ---- check ------------------------------------------------------------------------------------
  logic [NT-1:0]      tlb_v_q;
  tlb_t               entry_q, fill, fill_q, old;
  logic               filled_q;        // entry_q is what was just filled in, not read
  logic               have_q, filled;  // entry_q is valid
  logic               ask_v_q, ask_v_d;
  ask_t               ask_q;
  npu_pkg::line_t     wdata_q;
  logic [23:0]        vpn;
  logic [31:0]        off;
  logic               hit, ok, miss;
  logic [3:0]         fk;
  logic [TlbLog2-1:0] tlb_at;
  npu_ram_1r1w #(.Width($bits(tlb_t)), .Depth(NT)) u_tlb (
      .clk_i, .we_i(filled), .waddr_i(index(vpn, context_i)), .wdata_i(fill),
      .re_i(any && next), .raddr_i(tlb_at), .rdata_o(old));
  assign entry_q = filled_q ? fill_q : old;
  assign free   = !req_o.v || acc_i;
  assign next   = !ask_v_q || (ok && free) || drop_i;
  assign tlb_at = index(24'(ask.va >> hash_i.gran), context_i);
  always_comb begin
    vpn = 24'(ask_q.va >> hash_i.gran);
    off = ask_q.va & ~(32'hFFFFFFFF << hash_i.gran);
    hit = have_q && entry_q.vpn == vpn && entry_q.ctx == context_i;
    fk  = 4'(FAULT_NONE);
    // an entry is held against the mask at each use: the mask may have changed
    if (ask_v_q) begin
      if (32'(vpn) >= pt_count_i) fk = 4'(FAULT_BOUNDS);
      else if (hit && !ch_mask_i[entry_q.ch]) fk = 4'(FAULT_CHANNEL);
      else if (hit && ask_q.we && !entry_q.w) fk = 4'(FAULT_WRITE);
    end
    ok      = ask_v_q && hit && fk == 4'(FAULT_NONE);
    miss    = ask_v_q && !hit && fk == 4'(FAULT_NONE);
    ask_v_d = any && next ? 1'b1 : ask_v_q && !next;
  end
  assign busy_o = ask_v_q || req_o.v;

  always_ff @(posedge clk_i) begin
    if (any && next) begin
      ask_q   <= ask;
      filled_q <= 1'b0;
      have_q  <= tlb_v_q[tlb_at];
      if (ask.we) wdata_q <= wdata_i;
    end else if (filled) begin
      fill_q   <= fill;
      filled_q <= 1'b1;
      have_q   <= 1'b1;
    end
  end

  // ---- walk: the entry's line is read at its physical address, and its bits are checked ---------
  walk_e                walk_q, walk_d;
  logic                 leaf_q, leaf_d;            // at its second level
  logic [31:0]          pte_q, pte_d, pte_pa;
  table_t               tables [16];
  logic [15:0]          table_v_q;
  npu_pkg::line_t       ptl [8];                   // lines of second-level tables
  npu_pkg::line_t       ptl_q;
  logic [25:0]          ptl_addr [8];
  logic [7:0]           ptl_v_q;
  npu_hash_pkg::place_t place, pt_place;
  logic [23:0]          root_idx;
  logic [31:0]          leaf_off;
  logic [3:0]           ti, walk_fk;
  logic [2:0]           li;
  logic                 table_hit, line_hit, came, walk_bad;
  assign came = walk_q == WWait && rsp_i.v && rsp_i.tag == WalkTag;
  always_comb begin
    root_idx  = vpn >> (hash_i.gran - 4'd2);
    ti        = root_idx[3:0] ^ root_idx[7:4];
    leaf_off  = (32'(vpn) << 2) & ~(32'hFFFFFFFF << hash_i.gran);
    table_hit = 1'b0;
    line_hit  = 1'b0;
    pte_pa    = '0;
    li        = '0;
    pt_place  = '0;
    place     = '0;
    walk_fk   = 4'(FAULT_NONE);
    walk_d    = walk_q;
    leaf_d    = leaf_q;
    pte_d     = pte_q;
    if (walk_q != WIdle) begin
      pte_pa = leaf_q ? {tables[ti].pa, 8'd0} + leaf_off : pt_base_i + {6'd0, root_idx, 2'd0};
      li     = line_index(pte_pa[31:6]);
    end
    unique case (walk_q)
      WIdle: if (miss) walk_d = WTable;
      WTable: begin
        table_hit = table_v_q[ti] && tables[ti].idx == root_idx && tables[ti].ctx == context_i;
        line_hit  = leaf_q && ptl_v_q[li] && ptl_addr[li] == pte_pa[31:6];
        if (!leaf_q && table_hit) leaf_d = 1'b1;
        else walk_d = line_hit ? WLine : WAsk;
      end
      WLine: begin
        pte_d  = ptl_q[9'({pte_pa[5:2], 5'd0}) +: 32];
        // an entry that was not valid then is read again
        walk_d = pte_d[0] ? WCheck : WAsk;
      end
      WAsk: begin
        pt_place = npu_hash_pkg::line(pte_pa, hash_i);
        if (free) walk_d = WWait;
      end
      WWait:
        if (came) begin
          pte_d  = rsp_i.data[9'({pte_pa[5:2], 5'd0}) +: 32];
          walk_d = WCheck;
        end
      WCheck: begin
        place = npu_hash_pkg::map(24'({pte_q[31:8], 8'h0} >> hash_i.gran), hash_i);
        if (!pte_q[0]) walk_fk = 4'(FAULT_UNMAPPED);
        else if (leaf_q && !ch_mask_i[place.ch]) walk_fk = 4'(FAULT_CHANNEL);
        walk_d = leaf_q ? WIdle : WTable;
        leaf_d = !leaf_q;
      end
      default: walk_d = WIdle;
    endcase
    walk_bad = walk_fk != 4'(FAULT_NONE);
  end
  assign filled = walk_q == WCheck && leaf_q && !walk_bad;
  assign fill   = '{w: pte_q[1], ch: place.ch, ctx: context_i, vpn: vpn, pfn: pte_q[31:8],
                    lgran: place.lgran};

  assign fault_o      = fk != 4'(FAULT_NONE) || walk_bad;
  assign fault_kind_o = walk_bad ? walk_fk : fk;
  assign fault_va_o   = ask_q.va;
  assign fault_seq_o  = ask_q.seq;
  assign fault_tag_o  = ask_q.tag;
  assign miss_o       = walk_q == WCheck && leaf_q;

  always_ff @(posedge clk_i) begin
    if (walk_q == WTable) ptl_q <= ptl[li];
    if (came && leaf_q) begin
      ptl[li]      <= rsp_i.data;
      ptl_addr[li] <= pte_pa[31:6];
    end
    if (walk_q == WCheck && !leaf_q && !walk_bad)
      tables[ti] <= '{ctx: context_i, idx: root_idx, pa: pte_q[31:8]};
  end

  // ---- the request ------------------------------------------------------------------------------
  npu_pkg::mem_req_t req_d;
  always_comb begin
    req_d   = req_o;
    req_d.v = req_o.v && !acc_i;
    if (ok && free)
      req_d = '{v: 1'b1, we: ask_q.we, ch: entry_q.ch,
                lline: (entry_q.lgran << (hash_i.gran - 4'd6)) | 26'(off >> 6),
                beats: 3'((7'(ask_q.va[3:0]) + ask_q.len + 7'd15) >> 4), len: ask_q.len,
                tag: ask_q.tag, pa: {entry_q.pfn, 8'h0} | off, walk: 1'b0};
    else if (walk_q == WAsk && free)
      req_d = '{v: 1'b1, we: 1'b0, ch: pt_place.ch, lline: pt_place.lgran, beats: 3'd4, len: 7'd64,
                tag: WalkTag, pa: {pte_pa[31:6], 6'd0}, walk: 1'b1};
    if (kill_i) req_d.v = 1'b0;  // and what is granted in this cycle
  end
  always_ff @(posedge clk_i) if (ok && free && ask_q.we) wdata_o <= wdata_q;

  logic [7:0]    ptl_v_d;
  logic [15:0]   table_v_d;
  always_comb begin
    ptl_v_d   = ptl_v_q;
    table_v_d = table_v_q;
    if (came && leaf_q) ptl_v_d[li] = 1'b1;
    if (walk_q == WCheck && !leaf_q && !walk_bad) table_v_d[ti] = 1'b1;
    if (flush_i || walk_bad) ptl_v_d = '0;
    if (flush_i) table_v_d = '0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      req_o     <= '0;
      ask_v_q   <= 1'b0;
      walk_q    <= WIdle;
      leaf_q    <= 1'b0;
      tlb_v_q   <= '0;
      ptl_v_q   <= '0;
      table_v_q <= '0;
      rr_q      <= '0;
      burst_q   <= '0;
    end else begin
      req_o     <= req_d;
      ask_v_q   <= ask_v_d && !kill_i;
      walk_q    <= kill_i || walk_bad ? WIdle : walk_d;
      leaf_q    <= kill_i || walk_bad ? 1'b0 : leaf_d;
      ptl_v_q   <= ptl_v_d;
      table_v_q <= table_v_d;
      rr_q      <= rr_d;
      burst_q   <= burst_d;
      if (flush_i) tlb_v_q <= '0;
      else if (filled) tlb_v_q[index(vpn, context_i)] <= 1'b1;
    end
    pte_q <= pte_d;
  end

  // ---- what always holds ------------------------------------------------------------------------
  OneGrant:     assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0(gnt_o));
  GrantAsked:   assert property (@(posedge clk_i) disable iff (!rst_ni) (gnt_o & ~v_i) == '0);
  InOneLine:    assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
                                 any && next |-> ask.len != '0 && 7'(ask.va[5:0]) +
                                     ask.len <= 7'd64);
  RequestHeld:  assert property (@(posedge clk_i) disable iff (!rst_ni)
                                 $past(rst_ni) && $past(req_o.v) && !$past(acc_i) && !$past(kill_i)
                                 |-> $stable(req_o) && $stable(wdata_o));
  NoneAfterKill: assert property (@(posedge clk_i) disable iff (!rst_ni)
                                  $past(rst_ni) && $past(kill_i) |-> !req_o.v && !ask_v_q &&
                                      walk_q == WIdle);
  WalkForAsk:   assert property (@(posedge clk_i) disable iff (!rst_ni) walk_q != WIdle |->
      ask_v_q && !ok);
  OneRequest:   assert property (@(posedge clk_i) disable iff (!rst_ni) !(ok && walk_q == WAsk));
  Translated:   assert property (@(posedge clk_i) disable iff (!rst_ni)
                                 $past(rst_ni) && $past(ok && free) && !$past(kill_i)
                                 |-> req_o.v && !req_o.walk &&
                                     req_o.pa[31:8] >= $past(entry_q.pfn));
  // A walk that was killed is answered before the next one asks: its line would be taken for the
  // other's.
  logic [1:0] walks_q;  // asked of the memory and not answered
  always_ff @(posedge clk_i)
    if (!rst_ni) walks_q <= '0;
    else walks_q <= walks_q +
        2'(req_o.v && acc_i && req_o.walk) - 2'(rsp_i.v && rsp_i.tag == WalkTag);
  OneWalk:      assert property (@(posedge clk_i) disable iff (!rst_ni)
                                 walk_q == WAsk || walk_q == WWait && req_o.v |-> walks_q == '0);
  Awaited:      assert property (@(posedge clk_i) disable iff (!rst_ni)
                                 rsp_i.v && rsp_i.tag == WalkTag |-> walks_q == 2'd1);
endmodule
