// SPDX-License-Identifier: Apache-2.0
// npu_chan: one memory channel: a FIFO a slot, round-robin arbiter, banks with open rows, a 16-byte data bus.
module npu_chan #(
    parameter  int unsigned S        = 4,
    parameter  int unsigned BankBits = 3,
    localparam int unsigned FifoBits = 4,   // requests a slot may have waiting here
    localparam int unsigned FlyBits  = 5    // requests granted and not yet answered
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic [63:0]          now_i,       // cycles since reset
    input  logic [27:0]          timing_i,    // register TIMING
    input  logic [S-1:0]         push_i,      // take req_i[s]; only where full_o is low
    input  npu_pkg::mem_req_t    req_i [S],
    output logic [S-1:0]         full_o,
    output npu_pkg::mem_rsp_t    rsp_o,
    output logic                 busy_o,
    input  logic                 snap_i,
    input  logic [3:0]           cnt_addr_i,  // word of the CHAN page
    output logic [31:0]          cnt_rdata_o
);
  import npu_regs_pkg::*;
  localparam int unsigned Fifo = 1 << FifoBits, Fly = 1 << FlyBits, Banks = 1 << BankBits;
  localparam int unsigned SW = S > 1 ? $clog2(S) : 1;

  // What timing needs and what goes back, kept apart: each fits a machine word.
  typedef struct packed {
    logic        we;
    logic [2:0]  beats;
    logic [25:0] lline;
  } cmd_t;
  typedef struct packed {
    logic [2:0]  slot;
    logic        we;
    logic [8:0]  tag;
    logic [31:0] pa;
  } back_t;

  cmd_t                cmd_q [S*Fifo];
  back_t               back_q [S*Fifo];
  logic [FifoBits:0]   wp_q [S], rp_q [S];
  logic [S-1:0]        pend_q;               // FIFO not empty
  logic [SW-1:0]       last_q;               // last slot granted
  back_t               fly_q [Fly];
  logic [63:0]         done_q [Fly];         // cycle of the response
  logic [FlyBits:0]    fly_wp_q, fly_rp_q;
  logic [Banks-1:0]    open_q;
  logic [25:0]         row_q [Banks];
  logic [63:0]         ready_q [Banks];      // first cycle of the bank's next command
  logic [63:0]         bus_free_q;           // first cycle without a beat
  logic [31:0]         cnt_q [16], shadow_q [16];

  // TIMING; the data of a column access is never on the bus in the same cycle.
  logic [63:0] ncl, nrcd, nrp, horizon;
  logic [3:0]  rowbits;
  assign ncl     = timing_i[TIMING_NCL_LSB+:TIMING_NCL_W] == '0 ? 64'd1 :
                   64'(timing_i[TIMING_NCL_LSB+:TIMING_NCL_W]);
  assign nrcd    = 64'(timing_i[TIMING_NRCD_LSB+:TIMING_NRCD_W]);
  assign nrp     = 64'(timing_i[TIMING_NRP_LSB+:TIMING_NRP_W]);
  assign rowbits = timing_i[TIMING_ROWBITS_LSB+:TIMING_ROWBITS_W];
  assign horizon = nrp + nrcd + ncl;

  logic fly_any, fly_full;
  assign fly_any  = fly_wp_q != fly_rp_q;
  assign fly_full = fly_wp_q == {~fly_rp_q[FlyBits], fly_rp_q[FlyBits-1:0]};
  assign busy_o   = (|pend_q) | fly_any | rsp_o.v;
  for (genvar s = 0; s < S; s++) begin : g_full
    assign full_o[s] = wp_q[s] == {~rp_q[s][FifoBits], rp_q[s][FifoBits-1:0]};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int s = 0; s < int'(S); s++) begin
        wp_q[s] <= '0;
        rp_q[s] <= '0;
      end
      for (int i = 0; i < 16; i++) begin
        cnt_q[i]    <= '0;
        shadow_q[i] <= '0;
      end
      for (int b = 0; b < int'(Banks); b++) ready_q[b] <= '0;
      pend_q     <= '0;
      last_q     <= '0;
      fly_wp_q   <= '0;
      fly_rp_q   <= '0;
      open_q     <= '0;
      bus_free_q <= '0;
      rsp_o      <= '0;
    end else if (busy_o || |push_i) begin
      automatic logic [S-1:0]        above, pick, stay;
      automatic logic [SW-1:0]       who;
      automatic logic [FifoBits-1:0] rp;
      automatic cmd_t                cmd;
      automatic logic [BankBits-1:0] bank;
      automatic logic [25:0]         row;
      automatic logic [63:0]         col, data;
      automatic logic [3:0]          kind;
      stay = pend_q;
      // The next slot after the last one granted.  Not earlier than the data could follow
      // the data before: what is granted late is shared fairly.
      if (|pend_q && !fly_full && bus_free_q <= now_i + horizon) begin
        above = pend_q & ~((S'(2) << last_q) - S'(1));
        pick  = |above ? above : pend_q;
        who   = '0;
        for (int s = int'(S) - 1; s >= 0; s--) if (pick[s]) who = SW'(s);
        rp   = rp_q[who][FifoBits-1:0];
        cmd  = cmd_q[{who, rp}];
        row  = cmd.lline >> rowbits >> BankBits;
        bank = BankBits'(cmd.lline >> rowbits) ^ row[BankBits-1:0];
        col  = ready_q[bank] > now_i ? ready_q[bank] : now_i;
        kind = 4'(CHAN_CH_HITS_OFF >> 2);
        if (!open_q[bank]) begin
          kind = 4'(CHAN_CH_CLOSED_OFF >> 2);
          col  = col + nrcd;
        end else if (row_q[bank] != row) begin
          kind = 4'(CHAN_CH_CONFLICTS_OFF >> 2);
          col  = col + nrp + nrcd;
        end
        data = col + ncl > bus_free_q ? col + ncl : bus_free_q;
        last_q                            <= who;
        rp_q[who]                         <= rp_q[who] + (FifoBits + 1)'(1);
        open_q[bank]                      <= 1'b1;
        row_q[bank]                       <= row;
        ready_q[bank]                     <= data - ncl + 64'(cmd.beats);
        bus_free_q                        <= data + 64'(cmd.beats);
        done_q[fly_wp_q[FlyBits-1:0]]     <= data + 64'(cmd.beats);
        fly_q[fly_wp_q[FlyBits-1:0]]      <= back_q[{who, rp}];
        fly_wp_q                          <= fly_wp_q + (FlyBits + 1)'(1);
        cnt_q[4'(cmd.we)]                 <= cnt_q[4'(cmd.we)] + 32'd1;
        cnt_q[kind]                       <= cnt_q[kind] + 32'd1;
        cnt_q[4'(CHAN_CH_BEATS_OFF >> 2)] <= cnt_q[4'(CHAN_CH_BEATS_OFF >> 2)] + 32'(cmd.beats);
        cnt_q[4'd8 + 4'(who)]             <= cnt_q[4'd8 + 4'(who)] + 32'(cmd.beats);
        if (wp_q[who] - rp_q[who] == (FifoBits + 1)'(1)) stay[who] = 1'b0;
      end
      for (int s = 0; s < int'(S); s++)
        if (push_i[s]) begin
          cmd_q[s*Fifo+32'(wp_q[s][FifoBits-1:0])]  <= '{we: req_i[s].we, beats: req_i[s].beats, lline: req_i[s].lline};
          back_q[s*Fifo+32'(wp_q[s][FifoBits-1:0])] <= '{slot: 3'(s), we: req_i[s].we, tag: req_i[s].tag, pa: req_i[s].pa};
          wp_q[s] <= wp_q[s] + (FifoBits + 1)'(1);
          stay[s] = 1'b1;
        end
      pend_q  <= stay;
      rsp_o.v <= 1'b0;
      if (fly_any && done_q[fly_rp_q[FlyBits-1:0]] <= now_i + 64'd1) begin
        rsp_o    <= {1'b1, fly_q[fly_rp_q[FlyBits-1:0]]};
        fly_rp_q <= fly_rp_q + (FlyBits + 1)'(1);
      end
    end
    if (snap_i) shadow_q <= cnt_q;
  end

  assign cnt_rdata_o = shadow_q[cnt_addr_i];
endmodule
