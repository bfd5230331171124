// SPDX-License-Identifier: Apache-2.0
// npu_shares: registers that say who gets how much of memory: arbiters, turns, token buckets,
// groups of channels.
module npu_shares
  import npu_regs_pkg::*;
#(
    parameter int unsigned S = 4,
    parameter int unsigned N = 8
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic                 we_i,
    input  logic                 take_i,      // with it: a mode that is taken
    input  logic [11:0]          addr_i,
    input  logic [31:0]          wdata_i,
    output logic [31:0]          rdata_o,     // 0 where it is another's register
    output npu_pkg::arb_cfg_t    arb_o [2],
    output npu_pkg::turns_cfg_t  turns_o,
    output logic                 turns_restart_o,
    output logic [N-1:0]         ch_group_o,
    output logic [S-1:0]         bucket_set_o,
    output npu_pkg::bucket_set_t bucket_o,
    output logic                 bucket_bad_o // what is written to BUCKET_SET, with what is staged
);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_shares: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);
  if (N < 1 || N > npu_pkg::MaxChannels)
    $fatal(1, "npu_shares: N is %0d, not 1..%0d", N, npu_pkg::MaxChannels);
  npu_pkg::arb_cfg_t    arb_d [2];
  npu_pkg::turns_cfg_t  turns_d;
  npu_pkg::bucket_set_t bucket_d;
  logic [N-1:0]         ch_group_d;
  logic [S-1:0]         bucket_set_d;
  logic                 group;  // which of the two ARB registers
  assign group        = addr_i[2] ^ GLB_ARB_ADDR[2];
  assign bucket_bad_o = 32'(wdata_i[BUCKET_SET_SLOT_LSB+:BUCKET_SET_SLOT_W]) >= S ||
                        (bucket_o.window != '0 &&
                         (bucket_o.budget == '0 || bucket_o.burst < 28'd4 ||
                          bucket_o.budget > bucket_o.burst));
  always_comb begin
    for (int i = 0; i < 2; i++) arb_d[i] = arb_o[i];
    turns_d      = turns_o;
    bucket_d     = bucket_o;
    ch_group_d   = ch_group_o;
    bucket_set_d = '0;
    if (take_i)
      unique case (addr_i)
        GLB_TURNS_ADDR[11:0]: begin
          turns_d.cycles = wdata_i[TURNS_CYCLES_LSB+:TURNS_CYCLES_W];
          turns_d.last   = wdata_i[TURNS_LAST_LSB+:TURNS_LAST_W];
        end
        GLB_TURN_ORDER_ADDR[11:0]: turns_d.order = wdata_i;
        GLB_CH_GROUP_ADDR[11:0]:   ch_group_d    = N'(wdata_i);
        default: begin
          arb_d[group].mode = wdata_i[ARB_MODE_LSB+:ARB_MODE_W];
          arb_d[group].pass = wdata_i[ARB_PASS_LSB+:ARB_PASS_W];
        end
      endcase
    else if (we_i)
      unique case (addr_i)
        GLB_PRIO_ADDR[11:0]:          for (int i = 0; i < 2; i++) arb_d[i].prio = wdata_i;
        GLB_BUCKET_WINDOW_ADDR[11:0]: bucket_d.window = wdata_i[23:0];
        GLB_BUCKET_BUDGET_ADDR[11:0]: bucket_d.budget = wdata_i[27:0];
        GLB_BUCKET_BURST_ADDR[11:0]:  bucket_d.burst  = wdata_i[27:0];
        GLB_BUCKET_SET_ADDR[11:0]: begin
          bucket_d.group = wdata_i[BUCKET_SET_GROUP_LSB];
          for (int s = 0; s < int'(S); s++)
            bucket_set_d[s] = !bucket_bad_o &&
                              32'(wdata_i[BUCKET_SET_SLOT_LSB+:BUCKET_SET_SLOT_W]) == s;
        end
        default: ;
      endcase
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int i = 0; i < 2; i++) arb_o[i] <= '0;
      turns_o         <= '{cycles: 12'd128, last: 3'(S - 1), order: GLB_TURN_ORDER_RESET};
      turns_restart_o <= 1'b0;
      ch_group_o      <= '0;
      bucket_o        <= '0;
      bucket_set_o    <= '0;
    end else begin
      arb_o           <= arb_d;
      turns_o         <= turns_d;
      turns_restart_o <= take_i;
      ch_group_o      <= ch_group_d;
      bucket_o        <= bucket_d;
      bucket_set_o    <= bucket_set_d;
    end
  end
  always_comb
    unique case (addr_i)
      GLB_ARB_ADDR[11:0], GLB_ARB_ADDR[11:0] + 12'd4:
      rdata_o = 32'(arb_o[group].mode) << ARB_MODE_LSB | 32'(arb_o[group].pass) << ARB_PASS_LSB;
      GLB_TURNS_ADDR[11:0]:
      rdata_o = 32'(turns_o.cycles) << TURNS_CYCLES_LSB | 32'(turns_o.last) << TURNS_LAST_LSB;
      GLB_TURN_ORDER_ADDR[11:0]:    rdata_o = turns_o.order;
      GLB_PRIO_ADDR[11:0]:          rdata_o = arb_o[0].prio;
      GLB_CH_GROUP_ADDR[11:0]:      rdata_o = 32'(ch_group_o);
      GLB_BUCKET_WINDOW_ADDR[11:0]: rdata_o = 32'(bucket_o.window);
      GLB_BUCKET_BUDGET_ADDR[11:0]: rdata_o = 32'(bucket_o.budget);
      GLB_BUCKET_BURST_ADDR[11:0]:  rdata_o = 32'(bucket_o.burst);
      default:                      rdata_o = '0;
    endcase

  // ---- what always holds -----------------------------------------------------------------------
  BucketSound: assert property (@(posedge clk_i) disable iff (!rst_ni)
      bucket_set_o != '0 && bucket_o.window != '0 |->
      bucket_o.budget != '0 && bucket_o.budget <= bucket_o.burst && bucket_o.burst >= 28'd4);
  OneBucket: assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0(bucket_set_o));
  ModesStay: assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) && !$past(take_i) |-> $stable({turns_o, ch_group_o}));
endmodule
