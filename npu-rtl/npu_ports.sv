// SPDX-License-Identifier: Apache-2.0
// npu_ports: S slots, two ways each, on N memory ports: a FIFO a way a channel there; for loads a
// FIFO a channel a slot back.
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
    input  npu_pkg::ways_req_t [S-1:0] req_i,       // each held until accepted
    input  npu_pkg::piece_t [S-1:0]    wdata_i,     // of stores
    input  logic [N-1:0]               ch_mask_i [S],  // channels a slot may use
    output npu_pkg::ways_t [S-1:0]     acc_o,       // accepted in this cycle
    output npu_pkg::mem_rsp_t          rsp_o [S],
    output npu_pkg::mem_ack_t          ack_o [S],
    output logic                       busy_o,
    // memory, one port a channel
    output npu_pkg::port_req_t [N-1:0] port_req_o,
    output npu_pkg::line_t [N-1:0]     port_wdata_o,
    input  logic [N-1:0]               port_ready_i,
    input  npu_pkg::port_rsp_t [N-1:0] port_rsp_i,
    input  npu_pkg::line_t [N-1:0]     port_rdata_i,
    output logic [N-1:0]               port_close_o,
    // a memory that takes every request at once and answers loads in the next cycle
    input  logic                       ideal_i,
    output npu_pkg::ways_t [S-1:0]     ideal_take_o,
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
  npu_pkg::port_req_t [N-1:0] denied_load, denied_store;
  npu_pkg::ways_t [S-1:0] full [N], push [N], room [N], bucket_ok;
  logic [S-1:0]      allow [N], answer [N];
  // of a slot, a bit a channel
  logic [N-1:0]      took_load [S], took_store [S], mine_load [S], mine_store [S];
  logic [N-1:0]      deny_load [S], deny_store [S], room_load [S], room_store [S];
  logic [N-1:0]      port_busy;
  logic [S-1:0]      return_busy, acks_busy, ideal_busy;
  logic [31:0]       cnt_rdata [N];
  npu_pkg::turn_t    turn, turn_of [N];

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
        .v_i('{store: req_i[s].store.v, load: req_i[s].load.v}),
        .group_i('{store: ch_group_i[NW'(req_i[s].store.ch)],
                   load: ch_group_i[NW'(req_i[s].load.ch)]}),
        .load_beats_i(req_i[s].load.beats),
        .store_beats_i(req_i[s].store.beats),
        .take_i(acc_o[s]),
        .ok_o(bucket_ok[s]),
        .held_o(held_o[s])
    );
  end

  // ---- requests and responses ------------------------------------------------------------------

  always_comb begin
    ideal_take_o = '0;
    for (int c = 0; c < int'(N); c++) push[c] = '0;
    for (int s = 0; s < int'(S); s++) begin
      acc_o[s] = '{store: req_i[s].store.v && bucket_ok[s].store,
                   load: req_i[s].load.v && bucket_ok[s].load};
      if (Ideal && ideal_i) ideal_take_o[s] = acc_o[s];
      else begin
        acc_o[s].load  = acc_o[s].load && !full[NW'(req_i[s].load.ch)][s].load;
        acc_o[s].store = acc_o[s].store && !full[NW'(req_i[s].store.ch)][s].store;
        push[NW'(req_i[s].load.ch)][s].load   = acc_o[s].load;
        push[NW'(req_i[s].store.ch)][s].store = acc_o[s].store;
      end
    end
  end

  always_comb begin
    for (int s = 0; s < int'(S); s++) begin
      took_load[s]  = '0;
      took_store[s] = '0;
      mine_load[s]  = '0;
      mine_store[s] = '0;
      deny_load[s]  = '0;
      deny_store[s] = '0;
    end
    for (int c = 0; c < int'(N); c++) begin
      for (int s = 0; s < int'(S); s++) begin
        room[c][s]   = '{store: room_store[s][c], load: room_load[s][c]};
        allow[c][s]  = ch_mask_i[s][c];
        answer[c][s] = port_rsp_i[c].v && !port_rsp_i[c].we && port_rsp_i[c].slot == 3'(s);
      end
      if (port_req_o[c].v && port_ready_i[c]) begin
        if (port_req_o[c].we) took_store[SW'(port_req_o[c].slot)][c] = 1'b1;
        else took_load[SW'(port_req_o[c].slot)][c] = 1'b1;
      end
      if (port_rsp_i[c].v) begin
        if (port_rsp_i[c].we) mine_store[SW'(port_rsp_i[c].slot)][c] = 1'b1;
        else mine_load[SW'(port_rsp_i[c].slot)][c] = 1'b1;
      end
      if (denied_load[c].v) deny_load[SW'(denied_load[c].slot)][c] = 1'b1;
      if (denied_store[c].v) deny_store[SW'(denied_store[c].slot)][c] = 1'b1;
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
        .denied_load_o(denied_load[c]),
        .denied_store_o(denied_store[c]),
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
        .took_i(took_load[s]),
        .req_i(port_req_o),
        .mine_i(mine_load[s]),
        .rdata_i(port_rdata_i),
        .deny_i(deny_load[s]),
        .denied_i(denied_load),
        .room_o(room_load[s]),
        .hold_i(ideal_take_o[s].load),
        .rsp_o(ch_rsp[s]),
        .busy_o(return_busy[s])
    );
    npu_acks #(
        .N(N)
    ) u_acks (
        .clk_i,
        .rst_ni,
        .took_i(took_store[s]),
        .req_i(port_req_o),
        .mine_i(mine_store[s]),
        .deny_i(deny_store[s]),
        .denied_i(denied_store),
        .room_o(room_store[s]),
        .ideal_i(ideal_take_o[s].store),
        .ideal_epoch_i(req_i[s].store.tag[0]),
        .ack_o(ack_o[s]),
        .busy_o(acks_busy[s])
    );
    assign ideal_busy[s] = Ideal && ideal_rsp_i[s].v;
    assign rsp_o[s]      = ideal_busy[s] ? ideal_rsp_i[s] : ch_rsp[s];
  end

  assign busy_o      = (|port_busy) || (|return_busy) || (|acks_busy) || (|ideal_busy);
  assign cnt_rdata_o = 32'(cnt_addr_i[7:4]) < N ? cnt_rdata[NW'(cnt_addr_i[7:4])] : '0;
endmodule
