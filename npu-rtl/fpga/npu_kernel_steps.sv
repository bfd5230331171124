// SPDX-License-Identifier: Apache-2.0
// npu_kernel_steps: carries out a run: its steps (npu_kernel.h), one after the other, from memory.
//
// They are read in bursts, a 64-byte line of four at a time, before the first of these is carried
// out.
//
// Between runs, and while the machine is reset, its ports are closed: a run begins and ends with
// nothing of the machine's in flight, so that its memory is nobody's business outside a run.
module npu_kernel_steps
  import npu_kernel_pkg::*;
#(
    parameter int unsigned R = 16,
    parameter int unsigned C = 16,
    parameter int unsigned S = 4,
    parameter int unsigned N = 8
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic        start_i,
    output logic        done_o,   // in the run's last cycle
    input  args_t       args_i,
    // the machine
    output logic        core_rst_no,
    output logic        reg_we_o,
    output logic        reg_re_o,
    output logic [15:0] reg_addr_o,
    output logic [31:0] reg_wdata_o,
    input  logic [31:0] reg_rdata_i,
    input  logic        irq_i,
    input  logic        idle_i,
    // its memory
    output logic        open_o,   // its requests may be taken
    output logic [63:0] base_o,   // where its address 0 is
    output logic [26:0] lines_o,  // how many 64-byte lines it has
    input  logic        busy_i,   // something is in flight
    input  logic        error_i,  // an answer was an error
    // the bus
    output ask_t        ask_o,
    input  told_t       told_i,
    input  logic        rvalid_i,
    input  logic [127:0] rdata_i,
    input  logic        rerror_i,
    input  logic        bvalid_i,
    input  logic        berror_i
);
  if (R < 1 || R > npu_pkg::MaxRows)
    $fatal(1, "npu_kernel_steps: R is %0d, not 1..%0d", R, npu_pkg::MaxRows);
  if (C < 1 || C > npu_pkg::MaxCols)
    $fatal(1, "npu_kernel_steps: C is %0d, not 1..%0d", C, npu_pkg::MaxCols);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_kernel_steps: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);
  if (N < 1 || N > npu_pkg::MaxChannels)
    $fatal(1, "npu_kernel_steps: N is %0d, not 1..%0d", N, npu_pkg::MaxChannels);
  localparam logic [63:0] Shape = {32'd0, 8'(N), 8'(S), 8'(C), 8'(R)};
  typedef enum logic [3:0] {
    Idle, Ask, Take, Load, Do, Access, Answer, Run, Close, Reset, Put, Ack, Drain
  } state_e;
  typedef logic [1:0] at_t;  // a step's place in its line
  state_e      state_q, state_d;
  step_t       step_q, step_d, line_q [4];
  logic [3:0]  bad_q;         // of these: could not be read
  at_t         at, rest, last;  // this one's; so many behind it; the burst's last
  at_t         came_q, came_d, last_q;  // the next beat's; the last of the burst that was asked for
  logic [63:0] steps_q, steps_d, base_q, ran_q, ran_d;
  logic [26:0] lines_q, lines_d;
  logic [31:0] left_q, left_d;  // steps, this one counted
  logic [2:0]  wait_q, wait_d;
  logic        begins, over, error_q, error_d, aw_v_q, aw_v_d, w_v_q, w_v_d, refuse, shape_ok;

  assign begins   = state_q == Idle && start_i;
  assign at       = steps_q[5:4];
  assign rest     = ~at;
  assign last     = left_q > 32'(rest) ? 2'd3 : at + at_t'(left_q - 32'd1);
  assign shape_ok = step_q.value[63:32] == '0 && step_q.value[23:0] == Shape[23:0]
                    && step_q.value[31:24] != '0 && step_q.value[31:24] <= Shape[31:24];

  always_comb begin
    state_d = state_q;
    step_d  = step_q;
    ran_d   = ran_q;
    wait_d  = wait_q;
    aw_v_d  = aw_v_q && !told_i.awready;
    w_v_d   = w_v_q && !told_i.wready;
    refuse  = 1'b0;
    over    = 1'b0;
    unique case (state_q)
      Idle: if (start_i) state_d = args_i.count == '0 ? Drain : Ask;
      Ask:  if (told_i.arready) state_d = Take;
      Take: if (rvalid_i && came_q == last_q) state_d = Load;
      Load: begin
        step_d  = line_q[at];
        state_d = Do;
        refuse  = bad_q[at];
      end
      Do: begin
        ran_d  = '0;
        wait_d = '0;
        unique case (step_q.op)
          OpWrite, OpRead: state_d = Access;
          OpRun:           state_d = Run;
          OpReset: begin
            state_d = Close;
            refuse  = !shape_ok;
          end
          default:         refuse  = 1'b1;
        endcase
      end
      // taken in this cycle, acts in the next; an answer is there behind that
      Access:
      if (step_q.op == OpRead) state_d = Answer;
      else over = 1'b1;
      Answer: begin
        wait_d = wait_q + 3'd1;
        if (wait_q == 3'd1) begin
          step_d.value = 64'(reg_rdata_i);
          state_d      = Put;
        end
      end
      Run:
      if (irq_i || ran_q == step_q.value) begin
        step_d.value   = ran_q;
        step_d.address = {29'd0, error_q, idle_i, irq_i};
        state_d        = Put;
      end else ran_d = ran_q + 64'd1;
      Close: if (!busy_i) state_d = Reset;
      Reset: begin
        wait_d = wait_q + 3'd1;
        over   = &wait_q;
      end
      Put: if (!aw_v_d && !w_v_d) state_d = Ack;
      Ack:
      if (bvalid_i) begin
        if (step_q.op == OpRefused) state_d = Drain;
        else over = 1'b1;
      end
      Drain: if (!busy_i) state_d = Idle;
      default: state_d = Idle;
    endcase
    if (refuse) begin
      step_d.op = OpRefused;
      state_d   = Put;
    end
    if (over) state_d = left_q == 32'd1 ? Drain : at == last_q ? Ask : Load;
    if (state_d == Put && state_q != Put) begin
      aw_v_d = 1'b1;
      w_v_d  = 1'b1;
    end
  end
  assign error_d = state_q != Reset && (error_q || error_i || (bvalid_i && berror_i));
  assign came_d  = came_q + 2'd1;
  assign lines_d = |args_i.bytes[63:32] ? 27'h400_0000 : {1'b0, args_i.bytes[31:6]};
  assign steps_d = steps_q + 64'd16;
  assign left_d  = left_q - 32'd1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Idle;
      aw_v_q  <= 1'b0;
      w_v_q   <= 1'b0;
      error_q <= 1'b0;
    end else begin
      state_q <= state_d;
      aw_v_q  <= aw_v_d;
      w_v_q   <= w_v_d;
      error_q <= error_d;
    end
    step_q <= step_d;
    ran_q  <= ran_d;
    wait_q <= wait_d;
    if (state_q == Ask) begin
      came_q <= at;
      last_q <= last;
    end
    if (rvalid_i) begin
      line_q[came_q] <= rdata_i;
      bad_q[came_q]  <= rerror_i;
      came_q         <= came_d;
    end
    if (begins) begin
      base_q  <= {args_i.memory[63:6], 6'd0};
      lines_q <= lines_d;
      steps_q <= {args_i.steps[63:4], 4'd0};
      left_q  <= args_i.count;
    end else if (over) begin
      steps_q <= steps_d;
      left_q  <= left_d;
    end
  end

  assign done_o      = state_q == Drain && !busy_i;
  assign core_rst_no = rst_ni && state_q != Reset;
  assign reg_we_o    = state_q == Access && step_q.op == OpWrite;
  assign reg_re_o    = state_q == Access && step_q.op == OpRead;
  assign reg_addr_o  = step_q.address[15:0];
  assign reg_wdata_o = step_q.value[31:0];
  assign open_o      = !(state_q inside {Idle, Close, Reset, Drain});
  assign base_o      = base_q;
  assign lines_o     = lines_q;

  always_comb begin
    ask_o.ar = '{v: state_q == Ask, source: 5'(N), slot: '0, addr: steps_q,
        len: {6'd0, at_t'(last - at)}};
    ask_o.aw = '{v: aw_v_q, source: 5'(N), slot: '0, addr: steps_q, len: '0};
    ask_o.w  = '{v: w_v_q, data: step_q, strb: '1, last: 1'b1};
  end

  ClosedIsQuiet: assert property (@(posedge clk_i) disable iff (!rst_ni)
      state_q == Reset || state_q == Idle |-> !busy_i);
  AnswerOfRead: assert property (@(posedge clk_i) disable iff (!rst_ni)
      rvalid_i |-> state_q == Take);
  AnswerOfWrite: assert property (@(posedge clk_i) disable iff (!rst_ni)
      bvalid_i |-> state_q == Ack);
  StateKnown: assert property (@(posedge clk_i) disable iff (!rst_ni)
      state_q inside {[Idle:Drain]});
endmodule
