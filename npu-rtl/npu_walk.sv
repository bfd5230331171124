// SPDX-License-Identifier: Apache-2.0
// npu_walk: looks a translation up in a slot's page tables.
//
// A page is a granule, so a page lies on one channel: its channel and channel-local place are
// hashed once, here.  Page tables have two levels, a page each: a root of tables, a table of pages.
// Sixteen tables and eight lines of tables are kept, so that most walks read nothing; and while
// nobody waits, the translations behind the one that was looked for, up to the end of its line, are
// filled in as well, so that streams seldom wait.
module npu_walk
  import npu_mmu_pkg::*;
  import npu_regs_pkg::*;
(
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               kill_i,     // forget the walk under way
    input  logic               flush_i,    // forget what is kept
    input  logic [31:0]        pt_base_i,
    input  logic [7:0]         context_i,
    input  logic [15:0]        ch_mask_i,
    input  npu_pkg::hash_cfg_t hash_i,
    input  logic [31:0]        pt_count_i,
    input  logic               idle_i,     // the slot has nothing to do: its context may change
    input  npu_pkg::ways_t     miss_i,     // a translation is missing; held until it has come
    input  logic [23:0]        load_vpn_i, store_vpn_i,
    output npu_pkg::ways_t     for_o,      // whose is looked for
    output npu_pkg::mem_req_t  req_o,
    input  logic               gnt_i,
    input  npu_pkg::mem_rsp_t  rsp_i,
    output logic               done_o,     // the table has been read: it is there, or it is not
    output logic               fill_v_o,
    output tlb_t               fill_o,
    output logic               bad_o,
    output logic [3:0]         bad_kind_o
);
  // A line of a table that is kept is read, as memories are, a cycle behind its address.
  typedef enum logic [2:0] {WIdle, WTable, WLine, WAsk, WWait, WCheck} walk_e;
  typedef struct packed {
    logic [7:0]  ctx;
    logic [23:0] idx;   // place in the root
    logic [23:0] pa;    // physical address >> 8
  } table_t;

  function automatic logic [2:0] line_index(input logic [25:0] line);
    return line[2:0] ^ line[5:3] ^ line[8:6] ^ line[11:9];
  endfunction

  walk_e                walk_q, walk_d;
  logic                 leaf_q, leaf_d;            // at its second level
  logic                 stores_q, stores_d;        // for a store
  logic                 more_q, more_d;            // for nobody: the rest of a line
  logic                 stale_q, stale_d;          // flushed since it was asked for
  logic [23:0]          vpn_q, vpn_d;              // whose entry is looked for
  logic [31:0]          pte_q, pte_d, pte_pa;
  table_t               tables [16];
  logic [15:0]          table_v_d, table_v_q;
  npu_pkg::line_t       ptl [8];                   // lines of second-level tables
  npu_pkg::line_t       ptl_q;
  logic [25:0]          ptl_addr [8];
  logic [7:0]           ptl_v_d, ptl_v_q;
  npu_hash_pkg::place_t place, pt_place;
  logic [23:0]          root_idx;
  logic [31:0]          leaf_off;
  logic [3:0]           ti;
  logic [2:0]           li;
  logic                 table_hit, line_hit, came, right, mine;
  assign came   = walk_q == WWait && rsp_i.v && rsp_i.tag == WalkTag;
  assign for_o  = '{store: walk_q != WIdle && !more_q && stores_q,
                    load: walk_q != WIdle && !more_q && !stores_q};
  // The request may have gone: PT_COUNT has been written.
  assign mine   = stores_q ? miss_i.store && store_vpn_i == vpn_q
                           : miss_i.load && load_vpn_i == vpn_q;
  // where the entry is, and what it says
  always_comb begin
    root_idx   = vpn_q >> (hash_i.gran - 4'd2);
    ti         = root_idx[3:0] ^ root_idx[7:4];
    leaf_off   = (32'(vpn_q) << 2) & ~(32'hFFFFFFFF << hash_i.gran);
    pte_pa     = '0;
    li         = '0;
    if (walk_q != WIdle) begin
      pte_pa = leaf_q ? {tables[ti].pa, 8'd0} + leaf_off : pt_base_i + {6'd0, root_idx, 2'd0};
      li     = line_index(pte_pa[31:6]);
    end
    table_hit  = table_v_q[ti] && tables[ti].idx == root_idx && tables[ti].ctx == context_i;
    line_hit   = leaf_q && ptl_v_q[li] && ptl_addr[li] == pte_pa[31:6];
    pt_place   = '0;
    req_o      = '0;
    if (walk_q == WAsk) begin
      pt_place = npu_hash_pkg::line(pte_pa, hash_i);
      req_o    = '{v: 1'b1, ch: pt_place.ch, lline: pt_place.lgran, beats: 3'd4, len: 7'd64,
                   tag: WalkTag, pa: {pte_pa[31:6], 6'd0}, walk: 1'b1};
    end
    place      = '0;
    bad_kind_o = 4'(FAULT_NONE);
    if (walk_q == WCheck) begin
      place = npu_hash_pkg::map(24'({pte_q[31:8], 8'h0} >> hash_i.gran), hash_i);
      if (!pte_q[0]) bad_kind_o = 4'(FAULT_UNMAPPED);
      else if (leaf_q && !ch_mask_i[place.ch]) bad_kind_o = 4'(FAULT_CHANNEL);
    end
  end
  assign right = bad_kind_o == 4'(FAULT_NONE);
  assign bad_o = !right && !more_q && mine;

  always_comb begin
    walk_d     = walk_q;
    leaf_d     = leaf_q;
    stores_d   = stores_q;
    more_d     = more_q;
    vpn_d      = vpn_q;
    pte_d      = pte_q;
    unique case (walk_q)
      WIdle: begin
        stores_d = miss_i.store;
        vpn_d    = miss_i.store ? store_vpn_i : load_vpn_i;
        if (miss_i.load || miss_i.store) walk_d = WTable;
      end
      WTable:
        if (more_q) walk_d = WLine;
        else if (!leaf_q && table_hit) leaf_d = 1'b1;
        else walk_d = line_hit ? WLine : WAsk;
      WLine: begin
        pte_d  = ptl_q[9'({pte_pa[5:2], 5'd0}) +: 32];
        // an entry that was not valid then is read again, if somebody waits for it
        walk_d = pte_d[0] || more_q ? WCheck : WAsk;
      end
      WAsk: if (gnt_i) walk_d = WWait;
      WWait:
        if (came) begin
          pte_d  = rsp_i.data[9'({pte_pa[5:2], 5'd0}) +: 32];
          walk_d = WCheck;
        end
      WCheck:
        if (leaf_q) begin
          vpn_d      = vpn_q + 24'd1;
          more_d     = vpn_d[3:0] != '0 && 32'(vpn_d) < pt_count_i &&
              !(more_q && (miss_i.load || miss_i.store));
          walk_d     = !more_d ? WIdle : more_q ? WLine : WTable;
          leaf_d     = more_d;
        end else begin
          walk_d = WTable;
          leaf_d = 1'b1;
        end
      default: walk_d = WIdle;
    endcase
    // What was read before a flush is read again; what has been asked for is waited for first.
    if (kill_i || (!right && !more_q) || (flush_i && walk_d != WWait) || (came && stale_q) ||
        ((more_q || more_d) && idle_i)) {walk_d, leaf_d, more_d} = {WIdle, 2'b00};
    stale_d = (flush_i || stale_q) && walk_d == WWait;
  end
  assign done_o   = walk_q == WCheck && leaf_q && !more_q;
  assign fill_v_o = walk_q == WCheck && leaf_q && right;
  assign fill_o   = '{w: pte_q[1], ch: place.ch, ctx: context_i, vpn: vpn_q, pfn: pte_q[31:8],
                      lgran: place.lgran};

  always_comb begin
    ptl_v_d   = ptl_v_q;
    table_v_d = table_v_q;
    if (came && leaf_q && !stale_q) ptl_v_d[li] = 1'b1;
    if (walk_q == WCheck && !leaf_q && right) table_v_d[ti] = 1'b1;
    if (flush_i || (!right && !more_q)) ptl_v_d = '0;
    if (flush_i) table_v_d = '0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      walk_q    <= WIdle;
      leaf_q    <= 1'b0;
      more_q    <= 1'b0;
      stale_q   <= 1'b0;
      ptl_v_q   <= '0;
      table_v_q <= '0;
    end else begin
      walk_q    <= walk_d;
      leaf_q    <= leaf_d;
      more_q    <= more_d;
      stale_q   <= stale_d;
      ptl_v_q   <= ptl_v_d;
      table_v_q <= table_v_d;
    end
    pte_q      <= pte_d;
    stores_q   <= stores_d;
    vpn_q      <= vpn_d;
    if (walk_q == WTable) ptl_q <= ptl[li];
    if (came && leaf_q && !stale_q) begin
      ptl[li]      <= rsp_i.data;
      ptl_addr[li] <= pte_pa[31:6];
    end
    if (walk_q == WCheck && !leaf_q && right)
      tables[ti] <= '{ctx: context_i, idx: root_idx, pa: pte_q[31:8]};
  end

  // ---- what always holds ------------------------------------------------------------------------
  ForAMiss:     assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $stable(pt_count_i) && walk_q == WTable && !leaf_q && !more_q |-> mine);
  NoneAfterKill: assert property (@(posedge clk_i) disable iff (!rst_ni)
                                  $past(rst_ni) && $past(kill_i) |-> walk_q == WIdle);
  StateKnown:   assert property (@(posedge clk_i) disable iff (!rst_ni)
                                 walk_q inside {WIdle, WTable, WLine, WAsk, WWait, WCheck});
  RequestHeld:  assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && $past(req_o.v) && !$past(gnt_i) && !$past(kill_i) && !$past(flush_i) &&
      $stable(pt_base_i) |-> $stable(req_o));
endmodule
