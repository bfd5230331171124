// SPDX-License-Identifier: Apache-2.0
// npu_ports: S slots on N memory ports: a FIFO a slot a channel there, a FIFO a channel a slot
// back.
//
// What a slot sees of a channel depends on who else uses that channel, and on nothing else.
module npu_ports #(
    parameter int unsigned N     = 8,
    parameter int unsigned S     = 4,
    parameter bit          Ideal = 1'b1  // there is a way around the ports
) (
    input  logic                       clk_i,
    input  logic                       rst_ni,
    // who gets how much: registers ARB and PRIO of each group of channels, TURNS, buckets
    input  logic [27:0]                timing_i,    // register TIMING
    input  npu_pkg::arb_cfg_t          arb_i [2],
    input  npu_pkg::turns_cfg_t        turns_i,
    input  logic                       turns_restart_i,
    input  logic [N-1:0]               ch_group_i,
    input  logic [S-1:0]               bucket_set_i,
    input  npu_pkg::bucket_set_t       bucket_i,
    output logic [31:0]                held_o [S],  // cycles a slot's bucket held it back
    // slots
    input  npu_pkg::mem_req_t [S-1:0]  req_i,       // held until accepted
    input  npu_pkg::line_t [S-1:0]     wdata_i,
    input  logic [N-1:0]               ch_mask_i [S],  // channels a slot may use
    output logic [S-1:0]               acc_o,       // accepted in this cycle
    output npu_pkg::mem_rsp_t          rsp_o [S],
    output logic                       busy_o,
    // memory, one port a channel
    output npu_pkg::port_req_t [N-1:0] port_req_o,
    output npu_pkg::line_t [N-1:0]     port_wdata_o,
    input  logic [N-1:0]               port_ready_i,
    input  npu_pkg::port_rsp_t [N-1:0] port_rsp_i,
    input  npu_pkg::line_t [N-1:0]     port_rdata_i,
    output logic [N-1:0]               port_close_o,
    // a memory that takes every request at once and answers in the next cycle
    input  logic                       ideal_i,
    output logic [S-1:0]               ideal_take_o,
    input  npu_pkg::mem_rsp_t          ideal_rsp_i [S],
    // counters
    input  logic                       snap_i,      // copy them to where they are read
    input  logic [7:0]                 cnt_addr_i,  // channel, word of its block in the CHAN page
    output logic [31:0]                cnt_rdata_o
);
  if (N < 1 || N > npu_pkg::MaxChannels)
    $fatal(1, "npu_ports: N is %0d, not 1..%0d", N, npu_pkg::MaxChannels);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_ports: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);

  import npu_regs_pkg::*;
  localparam int unsigned NW = N > 1 ? $clog2(N) : 1;
  localparam int unsigned SW = S > 1 ? $clog2(S) : 1;

  npu_pkg::mem_rsp_t ch_rsp [S];
  npu_pkg::port_req_t [N-1:0] denied;
  logic [S-1:0]      full [N], push [N], room [N], allow [N], answer [N];
  logic [N-1:0]      took [S], mine [S], deny [S], room_of [S];
  logic [N-1:0]      port_busy;
  logic [S-1:0]      return_busy, ideal_busy;
  logic [31:0]       cnt_rdata [N];
  npu_pkg::turn_t    turn, turn_of [N];
  logic [S-1:0]      bucket_ok;

  // ---- turns, the same on all channels that have them, and buckets -----------------------------
  npu_turns u_turns (
      .clk_i,
      .rst_ni,
      .timing_i(timing_i[23:0]),
      .cfg_i(turns_i),
      .restart_i(turns_restart_i),
      .turn_o(turn)
  );
  always_comb
    for (int c = 0; c < int'(N); c++) begin
      turn_of[c]       = turn;
      turn_of[c].close = turn.close && arb_i[ch_group_i[c]].mode == 2'(ARB_TURNS);
      port_close_o[c]  = turn_of[c].close;
    end

  for (genvar s = 0; s < S; s++) begin : g_bucket
    npu_bucket u_bucket (
        .clk_i,
        .rst_ni,
        .set_i(bucket_set_i[s]),
        .value_i(bucket_i),
        .v_i(req_i[s].v),
        .group_i(ch_group_i[NW'(req_i[s].ch)]),
        .beats_i(req_i[s].beats),
        .take_i(acc_o[s]),
        .ok_o(bucket_ok[s]),
        .held_o(held_o[s])
    );
  end

  // ---- requests and responses ------------------------------------------------------------------

  always_comb begin
    acc_o        = '0;
    ideal_take_o = '0;
    for (int c = 0; c < int'(N); c++) push[c] = '0;
    for (int s = 0; s < int'(S); s++)
      if (req_i[s].v && bucket_ok[s]) begin
        if (Ideal && ideal_i) begin
          acc_o[s]        = 1'b1;
          ideal_take_o[s] = 1'b1;
        end else begin
          acc_o[s] = !full[NW'(req_i[s].ch)][s];
          push[NW'(req_i[s].ch)][s] = acc_o[s];
        end
      end
  end

  always_comb begin
    for (int s = 0; s < int'(S); s++) begin
      took[s] = '0;
      mine[s] = '0;
      deny[s] = '0;
    end
    for (int c = 0; c < int'(N); c++) begin
      for (int s = 0; s < int'(S); s++) begin
        room[c][s]   = room_of[s][c];
        allow[c][s]  = ch_mask_i[s][c];
        answer[c][s] = port_rsp_i[c].v && port_rsp_i[c].slot == 3'(s);
      end
      if (port_req_o[c].v && port_ready_i[c]) took[SW'(port_req_o[c].slot)][c] = 1'b1;
      if (port_rsp_i[c].v) mine[SW'(port_rsp_i[c].slot)][c] = 1'b1;
      if (denied[c].v) deny[SW'(denied[c].slot)][c] = 1'b1;
    end
  end

  for (genvar c = 0; c < N; c++) begin : g_port
    npu_port #(
        .S(S)
    ) u_port (
        .clk_i,
        .rst_ni,
        .push_i(push[c]),
        .req_i,
        .wdata_i,
        .full_o(full[c]),
        .allow_i(allow[c]),
        .timing_i,
        .arb_i(arb_i[ch_group_i[c]]),
        .turn_i(turn_of[c]),
        .room_i(room[c]),
        .answer_i(answer[c]),
        .denied_o(denied[c]),
        .req_o(port_req_o[c]),
        .ready_i(port_ready_i[c]),
        .wdata_o(port_wdata_o[c]),
        .busy_o(port_busy[c]),
        .snap_i,
        .cnt_addr_i(cnt_addr_i[3:0]),
        .cnt_rdata_o(cnt_rdata[c])
    );
  end

  for (genvar s = 0; s < S; s++) begin : g_return
    npu_return #(
        .N(N)
    ) u_return (
        .clk_i,
        .rst_ni,
        .took_i(took[s]),
        .req_i(port_req_o),
        .mine_i(mine[s]),
        .rsp_i(port_rsp_i),
        .rdata_i(port_rdata_i),
        .deny_i(deny[s]),
        .denied_i(denied),
        .room_o(room_of[s]),
        .hold_i(ideal_take_o[s]),
        .rsp_o(ch_rsp[s]),
        .busy_o(return_busy[s])
    );
    assign ideal_busy[s] = Ideal && ideal_rsp_i[s].v;
    assign rsp_o[s]      = ideal_busy[s] ? ideal_rsp_i[s] : ch_rsp[s];
  end

  assign busy_o      = (|port_busy) || (|return_busy) || (|ideal_busy);
  assign cnt_rdata_o = 32'(cnt_addr_i[7:4]) < N ? cnt_rdata[NW'(cnt_addr_i[7:4])] : '0;
endmodule
