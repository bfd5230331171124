// SPDX-License-Identifier: Apache-2.0
// npu_translate: one of a slot's two ways to memory: a request's translation, what it may do, and
// the request until the ports accept it.
//
// A request taken in one cycle has its translation in the next, when it is checked and, if the
// entry is another page's, waits for a walk.  Either way has the translations in a memory of its
// own, with the same in both.
module npu_translate
  import npu_mmu_pkg::*;
  import npu_regs_pkg::*;
#(
    parameter  bit          Stores  = 1'b0,
    localparam int unsigned TlbLog2 = npu_pkg::TlbLog2,
    localparam int unsigned NT      = 1 << TlbLog2
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               kill_i,     // forget requests not yet accepted
    input  logic               flush_i,    // forget the translation of the one at hand
    input  logic               hold_i,     // let no request out
    input  logic [31:0]        pt_count_i,
    input  logic [7:0]         context_i,
    input  logic [15:0]        ch_mask_i,
    input  logic [3:0]         gran_i,     // a page is 2^gran bytes
    input  logic               v_i,        // a request; taken where next_o is high
    input  ask_t               ask_i,
    output logic               next_o,
    output ask_t               ask_o,      // the one at hand,
    output logic               miss_o,     // which waits for a translation
    // translations
    input  logic [NT-1:0]      valid_i,
    input  logic               fill_v_i,
    input  tlb_t               fill_i,
    output logic [TlbLog2-1:0] fill_at_o,
    input  logic               bad_i,      // there is none for the request at hand
    input  logic [3:0]         bad_kind_i,
    // a walk's request, which goes by this way, and first
    input  npu_pkg::mem_req_t  walk_i,
    output logic               walk_gnt_o,
    // memory
    output npu_pkg::mem_req_t  req_o,
    output logic               gone_o,     // the one at hand becomes req_o
    input  logic               acc_i,
    output logic               busy_o,
    // events
    output logic               fault_o,
    output logic [3:0]         fault_kind_o,
    input  logic               drop_i      // with fault_o: forget this request and go on
);
  // index() folds a page's number once, and needs more bits than the four of the context it turns
  // round

  function automatic logic [TlbLog2-1:0] index(input logic [23:0] vpn, input logic [7:0] ctx);
    // small spaces of contexts that follow each other do not meet
    return vpn[TlbLog2-1:0] ^ vpn[2*TlbLog2-1:TlbLog2]
           ^ {ctx[0], ctx[1], ctx[2], ctx[3], (TlbLog2 - 4)'(ctx >> 4)};
  endfunction

  tlb_t               entry, fill_q, old;
  logic               filled_q;        // the entry is what was just filled in, not read
  logic               have_q;          // the entry is valid
  logic               ask_v_d, ask_v_q;
  ask_t               ask_q;
  logic [23:0]        vpn;
  logic [31:0]        off;
  logic               take, free, hit, ok;
  logic [3:0]         kind;
  logic [TlbLog2-1:0] at;
  assign take  = v_i && next_o;
  assign at    = index(24'(ask_i.va >> gran_i), context_i);
  assign entry = filled_q ? fill_q : old;
  assign fill_at_o = index(fill_i.vpn, context_i);
  npu_ram_1r1w #(.Width($bits(tlb_t)), .Depth(NT)) u_tlb (
      .clk_i, .we_i(fill_v_i), .waddr_i(fill_at_o), .wdata_i(fill_i), .re_i(take),
      .raddr_i(at), .rdata_o(old));

  always_comb begin
    vpn  = 24'(ask_q.va >> gran_i);
    off  = ask_q.va & ~(32'hFFFFFFFF << gran_i);
    hit  = have_q && entry.vpn == vpn && entry.ctx == context_i;
    kind = 4'(FAULT_NONE);
    // an entry is held against the mask at each use: the mask may have changed
    if (ask_v_q) begin
      if (32'(vpn) >= pt_count_i) kind = 4'(FAULT_BOUNDS);
      else if (hit && !ch_mask_i[entry.ch]) kind = 4'(FAULT_CHANNEL);
      else if (hit && Stores && !entry.w) kind = 4'(FAULT_WRITE);
    end
    ok = ask_v_q && hit && kind == 4'(FAULT_NONE);
  end
  assign free         = (!req_o.v || acc_i) && !hold_i;
  assign gone_o       = ok && free && !walk_i.v;
  assign next_o       = !ask_v_q || gone_o || drop_i;
  assign ask_v_d      = take || (ask_v_q && !next_o);
  assign ask_o        = ask_q;
  assign miss_o       = ask_v_q && !hit && kind == 4'(FAULT_NONE);
  assign walk_gnt_o   = walk_i.v && free;
  assign busy_o       = ask_v_q || req_o.v;
  assign fault_o      = kind != 4'(FAULT_NONE) || bad_i;
  assign fault_kind_o = bad_i ? bad_kind_i : kind;

  npu_pkg::mem_req_t req_d;
  always_comb begin
    req_d   = req_o;
    req_d.v = req_o.v && !acc_i;
    if (walk_gnt_o) req_d = walk_i;
    else if (gone_o)
      req_d = '{v: 1'b1, ch: entry.ch,
                lline: (entry.lgran << (gran_i - 4'd6)) | 26'(off >> 6),
                beats: 3'((7'(ask_q.va[3:0]) + ask_q.len + 7'd15) >> 4), len: ask_q.len,
                tag: ask_q.tag, pa: {entry.pfn, 8'h0} | off, walk: 1'b0};
    if (kill_i) req_d.v = 1'b0;  // and what is granted in this cycle
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) req_o <= '0;
    else req_o <= req_d;
    if (!rst_ni || kill_i) ask_v_q <= 1'b0;
    else ask_v_q <= ask_v_d;
    if (take) begin
      ask_q    <= ask_i;
      filled_q <= 1'b0;
      have_q   <= valid_i[at];
    end else if (fill_v_i && fill_i.vpn == vpn) begin
      fill_q   <= fill_i;
      filled_q <= 1'b1;
      have_q   <= 1'b1;
    end
    if (flush_i) have_q <= 1'b0;
  end

  // ---- what always holds ------------------------------------------------------------------------
  InOneLine:    assert property (@(posedge clk_i) disable iff (!rst_ni || kill_i)
                                 take |-> ask_i.len != '0 && 7'(ask_i.va[5:0]) +
                                     ask_i.len <= 7'd64);
  RequestHeld:  assert property (@(posedge clk_i) disable iff (!rst_ni)
                                 $past(rst_ni) && $past(req_o.v) && !$past(acc_i) && !$past(kill_i)
                                 |-> $stable(req_o));
  NoneAfterKill: assert property (@(posedge clk_i) disable iff (!rst_ni)
                                  $past(rst_ni) && $past(kill_i) |-> !req_o.v && !ask_v_q);
  Translated:   assert property (@(posedge clk_i) disable iff (!rst_ni)
                                 $past(rst_ni) && $past(gone_o) && !$past(kill_i)
                                 |-> req_o.v && !req_o.walk &&
                                     req_o.pa[31:8] >= $past(entry.pfn));
  BadIsMine:    assert property (@(posedge clk_i) disable iff (!rst_ni) bad_i |-> ask_v_q && !ok);
endmodule
