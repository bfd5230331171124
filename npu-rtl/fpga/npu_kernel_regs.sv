// SPDX-License-Identifier: Apache-2.0
// npu_kernel_regs: the kernel's registers, an AXI4-Lite subordinate: ap_ctrl_hs and the arguments.
//
// 0x00 AP_CTRL: bit 0 ap_start, set by a write and held until the run is over; 1 ap_done and 3
// ap_ready, cleared by being read; 2 ap_idle.  0x04 GIE, 0x08 IER and 0x0c ISR: bit 0 ap_done, bit
// 1 ap_ready; what is written to ISR as 1 is toggled.  A register that is none reads as 0.
module npu_kernel_regs
  import npu_kernel_pkg::*;
(
    input  logic        clk_i,
    input  logic        rst_ni,
    // AXI4-Lite
    input  logic        awvalid_i,
    output logic        awready_o,
    input  logic [11:0] awaddr_i,
    input  logic        wvalid_i,
    output logic        wready_o,
    input  logic [31:0] wdata_i,
    input  logic [3:0]  wstrb_i,
    output logic        bvalid_o,
    input  logic        bready_i,
    input  logic        arvalid_i,
    output logic        arready_o,
    input  logic [11:0] araddr_i,
    output logic        rvalid_o,
    input  logic        rready_i,
    output logic [31:0] rdata_o,
    // the run
    output logic        start_o,  // until done_i
    input  logic        done_i,
    output args_t       args_o,
    output logic        interrupt_o
);
  logic        aw_v_q, w_v_q, b_v_q, r_v_q, aw_v_d, w_v_d, b_v_d, r_v_d, write, read;
  logic [11:0] aw_q, at;
  logic [31:0] w_q, mask, rdata;
  logic [3:0]  strb_q;
  logic        start_q, done_q, ready_q, start_d, done_d, ready_d, gie_q;
  logic [1:0]  ier_q, isr_q, isr_d;
  args_t       args_q, args_d;

  assign awready_o = !aw_v_q;
  assign wready_o  = !w_v_q;
  assign write     = aw_v_q && w_v_q && !b_v_q;
  assign bvalid_o  = b_v_q;
  assign arready_o = !r_v_q;
  assign read      = arvalid_i && arready_o;
  assign rvalid_o  = r_v_q;
  assign mask      = {{8{strb_q[3]}}, {8{strb_q[2]}}, {8{strb_q[1]}}, {8{strb_q[0]}}};
  assign at        = {araddr_i[11:2], 2'd0};

  function automatic logic [31:0] merge(input logic [31:0] old, fresh, which);
    return (old & ~which) | (fresh & which);
  endfunction

  always_comb begin
    args_d = args_q;
    unique case (aw_q)
      ArgMemory:         args_d.memory[31:0]  = merge(args_q.memory[31:0], w_q, mask);
      ArgMemory + 12'd4: args_d.memory[63:32] = merge(args_q.memory[63:32], w_q, mask);
      ArgSteps:          args_d.steps[31:0]   = merge(args_q.steps[31:0], w_q, mask);
      ArgSteps + 12'd4:  args_d.steps[63:32]  = merge(args_q.steps[63:32], w_q, mask);
      ArgBytes:          args_d.bytes[31:0]   = merge(args_q.bytes[31:0], w_q, mask);
      ArgBytes + 12'd4:  args_d.bytes[63:32]  = merge(args_q.bytes[63:32], w_q, mask);
      ArgCount:          args_d.count         = merge(args_q.count, w_q, mask);
      default:           ;
    endcase
    isr_d = isr_q;
    if (write && aw_q == Isr) isr_d = isr_q ^ (w_q[1:0] & mask[1:0]);
    if (done_i) isr_d |= ier_q;
  end
  assign aw_v_d  = !write && (aw_v_q || awvalid_i);
  assign w_v_d   = !write && (w_v_q || wvalid_i);
  assign b_v_d   = write || (b_v_q && !bready_i);
  assign r_v_d   = read || (r_v_q && !rready_i);
  assign start_d = !done_i && (start_q || (write && aw_q == ApCtrl && strb_q[0] && w_q[0]));
  assign done_d  = done_i || (done_q && !(read && at == ApCtrl));
  assign ready_d = done_i || (ready_q && !(read && at == ApCtrl));

  always_comb begin
    rdata = '0;
    unique case (at)
      ApCtrl:            rdata[3:0] = {ready_q, !start_q, done_q, start_q};
      Gie:               rdata[0]   = gie_q;
      Ier:               rdata[1:0] = ier_q;
      Isr:               rdata[1:0] = isr_q;
      ArgMemory:         rdata      = args_q.memory[31:0];
      ArgMemory + 12'd4: rdata      = args_q.memory[63:32];
      ArgSteps:          rdata      = args_q.steps[31:0];
      ArgSteps + 12'd4:  rdata      = args_q.steps[63:32];
      ArgBytes:          rdata      = args_q.bytes[31:0];
      ArgBytes + 12'd4:  rdata      = args_q.bytes[63:32];
      ArgCount:          rdata      = args_q.count;
      default:           ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_v_q  <= 1'b0;
      w_v_q   <= 1'b0;
      b_v_q   <= 1'b0;
      r_v_q   <= 1'b0;
      start_q <= 1'b0;
      done_q  <= 1'b0;
      ready_q <= 1'b0;
      gie_q   <= 1'b0;
      ier_q   <= '0;
      isr_q   <= '0;
      args_q  <= '0;
    end else begin
      aw_v_q  <= aw_v_d;
      w_v_q   <= w_v_d;
      b_v_q   <= b_v_d;
      r_v_q   <= r_v_d;
      start_q <= start_d;
      done_q  <= done_d;
      ready_q <= ready_d;
      isr_q   <= isr_d;
      if (write) begin
        args_q <= args_d;
        if (aw_q == Gie && strb_q[0]) gie_q <= w_q[0];
        if (aw_q == Ier && strb_q[0]) ier_q <= w_q[1:0];
      end
    end
    if (awvalid_i && awready_o) aw_q <= {awaddr_i[11:2], 2'd0};
    if (wvalid_i && wready_o) begin
      w_q    <= wdata_i;
      strb_q <= wstrb_i;
    end
    if (read) rdata_o <= rdata;
  end

  assign start_o     = start_q;
  assign args_o      = args_q;
  assign interrupt_o = gie_q && |isr_q;

  BStays: assert property (@(posedge clk_i) disable iff (!rst_ni) bvalid_o &&
      !bready_i |=> bvalid_o);
  RStays: assert property (@(posedge clk_i) disable iff (!rst_ni)
      rvalid_o && !rready_i |=> rvalid_o && $stable(rdata_o));
  DoneOfARun: assert property (@(posedge clk_i) disable iff (!rst_ni) done_i |-> start_q);
endmodule
