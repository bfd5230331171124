// SPDX-License-Identifier: Apache-2.0
// npu_modes: whether a write to a mode is taken: not where something at work stands on it, and not
// what was not built.  MODE_STATUS says which.
module npu_modes
  import npu_pkg::is_in;
  import npu_regs_pkg::*;
#(
    parameter int unsigned S = 4,
    parameter int unsigned N = 8,
    parameter bit Ideal = 1'b1  // CTRL.IDEAL is there
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         we_i,
    input  logic [11:0]  addr_i,
    input  logic [31:0]  wdata_i,
    input  logic         mem_idle_i,      // memory, and every slot
    input  logic [S-1:0] idle_i,          // a slot by itself
    input  logic [S-1:0] serial_i,        // SLOT_CTRL as it is
    input  logic         lock_i,          // HASH stays
    input  logic         bucket_bad_i,    // a bucket that is written cannot be
    output logic         take_machine_o,  // a mode of the machine is written, and taken:
    output logic         shared_o,        // who gets how much of memory,
    output logic         hash_o,          // or where it lies
    output logic         take_slot_o,     // a slot's is
    output logic [1:0]   status_o
);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_modes: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);
  if (N < 1 || N > npu_pkg::MaxChannels)
    $fatal(1, "npu_modes: N is %0d, not 1..%0d", N, npu_pkg::MaxChannels);

  // Only what was built can be named: an impossible HASH leaves the old one.
  logic [3:0] odd;    // Q of the HASH value being written
  logic [7:0] named;  // channels that it names
  logic       hash_ok;
  assign odd     = {wdata_i[HASH_QH_LSB], wdata_i[HASH_Q_LSB+:HASH_Q_W]};
  assign named   = 8'(odd) << wdata_i[HASH_K_LSB+:HASH_K_W];
  assign hash_ok = odd[0] && wdata_i[HASH_K_LSB+:HASH_K_W] <= 3'd4 && 32'(named) <= N &&
                   wdata_i[HASH_GRAN_LSB+:HASH_GRAN_W] >= 4'd8 &&
                   wdata_i[HASH_GRAN_LSB+:HASH_GRAN_W] <= 4'd12;

  logic [1:0] status_d, status_q;
  logic       arb, machine, ctrl, slot, slot_serial, slot_idle;  // of the slot at idx
  logic [2:0] idx;
  assign idx = addr_i[4:2];
  always_comb begin
    slot_idle   = 1'b0;
    slot_serial = 1'b0;
    for (int s = 0; s < int'(S); s++)
      if (32'(idx) == s) begin
        slot_idle   = idle_i[s];
        slot_serial = serial_i[s];
      end
  end
  assign arb      = is_in(addr_i, GLB_ARB_ADDR, GLB_ARB_N);
  assign shared_o = arb || addr_i == GLB_TURNS_ADDR[11:0] ||
                    addr_i == GLB_TURN_ORDER_ADDR[11:0] || addr_i == GLB_CH_GROUP_ADDR[11:0];
  assign hash_o   = addr_i == GLB_HASH_ADDR[11:0] || is_in(addr_i, GLB_XMASK_ADDR, GLB_XMASK_N);
  assign machine  = shared_o || hash_o || addr_i == GLB_CTRL_ADDR[11:0] ||
                    addr_i == GLB_TIMING_ADDR[11:0];
  assign ctrl     = is_in(addr_i, GLB_SLOT_CTRL_ADDR, GLB_SLOT_CTRL_N);
  assign slot     = ctrl || is_in(addr_i, GLB_PT_BASE_ADDR, GLB_PT_BASE_N) ||
                    is_in(addr_i, GLB_PT_CONTEXT_ADDR, GLB_PT_CONTEXT_N);
  always_comb begin
    status_d = status_q;
    if (we_i && machine) begin
      status_d = 2'(MODE_OK);
      if (!mem_idle_i) status_d = 2'(MODE_BUSY);
      else if (hash_o && lock_i) status_d = 2'(MODE_LOCKED);
      else if ((arb && wdata_i[ARB_MODE_LSB+:ARB_MODE_W] > 2'(ARB_TURNS)) ||
               (addr_i == GLB_HASH_ADDR[11:0] && !hash_ok) ||
               (addr_i == GLB_CTRL_ADDR[11:0] && wdata_i[CTRL_IDEAL_LSB] && !Ideal))
        status_d = 2'(MODE_RANGE);
    end else if (we_i && slot) begin
      status_d = 2'(MODE_OK);
      if (32'(idx) >= S) status_d = 2'(MODE_RANGE);
      else if (!slot_idle && !(ctrl && wdata_i[SLOT_CTRL_SERIAL_LSB] == slot_serial))
        status_d = 2'(MODE_BUSY);
    end else if (we_i && addr_i == GLB_BUCKET_SET_ADDR[11:0])
      status_d = bucket_bad_i ? 2'(MODE_RANGE) : 2'(MODE_OK);
  end
  assign take_machine_o = we_i && machine && status_d == 2'(MODE_OK);
  assign take_slot_o    = we_i && slot && status_d == 2'(MODE_OK);
  assign status_o       = status_q;
  always_ff @(posedge clk_i) begin
    status_q <= rst_ni ? status_d : 2'(MODE_OK);
  end

  // ---- what always holds -----------------------------------------------------------------------
  OneKind: assert property (@(posedge clk_i) disable iff (!rst_ni) !(machine && slot));
  MachineAtRest: assert property (@(posedge clk_i) disable iff (!rst_ni)
      take_machine_o |-> mem_idle_i && !(hash_o && lock_i));
endmodule
