// SPDX-License-Identifier: Apache-2.0
// npu_ahead: whether the next operation of the array may begin before those under way are over:
// where each of them writes is kept, as a range of virtual addresses, and held against what the
// next reads. A range is worked out in two steps, one range a cycle.
module npu_ahead
  import npu_conv_pkg::*;
(
    input  logic         clk_i, clear_i,
    // an operation begins with none under way
    input  logic         start_i,
    input  logic [511:0] desc_i,           // its descriptor, until the next start
    input  seq_t         at_i,             // number of the next one to begin
    input  seq_t         head_i,           // the oldest under way
    // the next descriptor, held until taken
    input  logic         next_v_i,
    input  logic [511:0] next_i,
    input  logic         take_i,           // it begins
    // about it
    output logic         v_o,              // what follows is known
    output logic         bad_o,            // it must wait: not of the array, or weights or
                                           // parameters are written by one under way
    output logic         behind_o,         // its input is
    // a line of input, of the operation next to the oldest
    input  logic         behind_i,         // which reads what the oldest writes
    input  logic [31:6]  line_i,
    input  logic         acked_v_i,        // the oldest's outputs before acked_i are in memory
    input  logic [31:0]  acked_i,
    output logic         held_o            // the line is not, or may not be
);
  import npu_regs_pkg::*;
  typedef struct packed {
    logic        any;                      // there is a range
    logic [31:0] base, pitch, last;        // last: bytes of the last row
    logic [19:0] rows;                     // less one
  } shape_t;
  typedef struct packed {
    logic        any;
    logic        wraps;
    logic [31:0] lo, hi;
  } range_t;
  typedef enum logic [2:0] {RangeNone, RangeA, RangeP, RangeB, RangeD} what_e;

  // ---- what is asked for in which cycle -------------------------------------------------------
  logic         own_q;                     // D of an operation that has begun on its own
  seq_t         own_seq_q;
  logic [2:0]   step_q, step_d;            // of the next: 0..3; 4: asked for, 5: compared
  what_e        what, what_q, what_qq;
  logic         is_own, own_qq, own_qqq;
  logic [511:0] desc;
  assign is_own = own_q;
  assign desc   = own_q ? desc_i : next_i;
  always_comb begin
    what = RangeNone;
    if (own_q) what = RangeD;
    else if (next_v_i)
      unique case (step_q)
        3'd0:    what = RangeA;
        3'd1:    what = RangeP;
        3'd2:    what = RangeB;
        3'd3:    what = RangeD;
        default: what = RangeNone;
      endcase
  end

  // ---- its shape, then its first and last byte -------------------------------------------------
  logic         gemm, block;
  logic [15:0]  taps_q, taps_d, k_q, k_d, n, kcin;
  shape_t       shape_d, shape_q;
  range_t       range_d, range_q;
  logic [52:0]  hi;
  always_comb begin
    gemm    = desc[DESC_OPCODE_BIT +: 8] == 8'(OP_GEMM);
    block   = desc[DESC_F_BLOCK_BIT];
    n       = desc[DESC_DN_BIT +: 16];
    kcin    = desc[DESC_F_GROUP_BIT] ? desc[DESC_GC_BIT +: 16] : desc[DESC_CIN_BIT +: 16];
    taps_d  = gemm ? 16'd1 : 16'(desc[DESC_KH_BIT +: 8]) * 16'(desc[DESC_KW_BIT +: 8]);
    k_d     = taps_q * kcin;
    shape_d = '0;
    unique case (what)
      RangeA: begin
        shape_d.rows  = (gemm ? desc[DESC_DM_BIT +: 20] : 20'(desc[DESC_H_BIT +: 16])) - 20'd1;
        shape_d.any   = gemm || (desc[DESC_H_BIT +: 16] != 0 && desc[DESC_W_BIT +: 16] != 0);
        shape_d.base  = desc[DESC_ADDR_A_BIT +: 32];
        shape_d.pitch = desc[DESC_LDA_BIT +: 32];
        shape_d.last  = 32'(desc[DESC_CIN_BIT +: 16])
                        + (gemm ? '0 : (32'(desc[DESC_W_BIT +: 16]) - 32'd1)
                                       * 32'(desc[DESC_PIX_BIT +: 16]));
      end
      RangeP: begin
        shape_d.any   = !desc[DESC_F_NOPARAM_BIT];
        shape_d.base  = desc[DESC_ADDR_P_BIT +: 32];
        shape_d.last  = {12'd0, n, 4'd0};
      end
      RangeB: begin
        shape_d.any   = 1'b1;
        shape_d.base  = desc[DESC_ADDR_B_BIT +: 32];
        shape_d.rows  = block ? ((20'(n) + 20'd15) >> 4) - 20'd1 : 20'(k_q) - 20'd1;
        shape_d.pitch = block ? {12'd0, k_q, 4'd0} : 32'(desc[DESC_LDB_BIT +: 16]);
        shape_d.last  = block ? {12'd0, k_q, 4'd0} : 32'(n);
      end
      RangeD: begin
        shape_d.any   = 1'b1;
        shape_d.base  = desc[DESC_ADDR_D_BIT +: 32];
        shape_d.rows  = desc[DESC_DM_BIT +: 20] - 20'd1;
        shape_d.pitch = desc[DESC_LDD_BIT +: 32];
        shape_d.last  = desc[DESC_F_OUT32_BIT] ? {14'd0, n, 2'd0} : 32'(n);
      end
      default: ;
    endcase
    hi            = 53'(shape_q.base) + 53'(shape_q.rows) * 53'(shape_q.pitch)
                    + 53'(shape_q.last) - 53'd1;
    range_d.any   = shape_q.any;
    range_d.wraps = hi[52:32] != 0;
    range_d.lo    = shape_q.base;
    range_d.hi    = hi[31:0];
  end

  // ---- held against what is written ------------------------------------------------------------
  range_t writes_q [4], next_d_q;
  logic   meets, bad_q, behind_q;
  always_comb begin
    meets = 1'b0;
    for (int i = 0; i < 4; i++)
      if (seq_t'(seq_t'(i) - head_i) < seq_t'(at_i - head_i) && range_q.any
          && (range_q.wraps || writes_q[i].wraps
              || (range_q.lo <= writes_q[i].hi && writes_q[i].lo <= range_q.hi)))
        meets = 1'b1;
  end

  // ---- a line of input held against what is not yet stored -------------------------------------
  range_t      oldest;
  logic [31:0] from;                       // the oldest's first byte that may yet change
  assign oldest = writes_q[head_i];
  assign from   = acked_v_i ? acked_i : oldest.lo;
  assign held_o = behind_i && oldest.any
                  && (oldest.wraps || ({line_i, 6'd63} >= from && {line_i, 6'd0} <= oldest.hi));

  always_comb begin
    step_d = step_q;
    if (!next_v_i || own_q) step_d = '0;
    else if (step_q != 3'd6) step_d = step_q + 3'd1;
  end

  always_ff @(posedge clk_i) begin
    taps_q  <= taps_d;
    k_q     <= k_d;
    shape_q <= shape_d;
    what_q  <= what;
    own_qq  <= is_own;
    range_q <= range_d;
    what_qq <= what_q;
    own_qqq <= own_qq;
    own_q   <= start_i;
    if (start_i) own_seq_q <= at_i;
    step_q  <= step_d;
    if (what_qq == RangeD && own_qqq) writes_q[own_seq_q] <= range_q;
    if (what_qq == RangeA && !own_qqq) begin
      behind_q <= meets;
      bad_q    <= 1'b0;
    end
    if ((what_qq == RangeP || what_qq == RangeB) && meets) bad_q <= 1'b1;
    if (what_qq == RangeD && !own_qqq) next_d_q <= range_q;
    if (take_i) writes_q[at_i] <= next_d_q;
    if (clear_i) begin
      own_q  <= 1'b0;
      step_q <= '0;
    end
  end
  assign v_o      = next_v_i && step_q == 3'd6;
  assign bad_o    = bad_q || !(next_i[DESC_OPCODE_BIT +: 8] == 8'(OP_GEMM)
                               || next_i[DESC_OPCODE_BIT +: 8] == 8'(OP_CONV));
  assign behind_o = behind_q;

  // What an operation writes is known before the next is held against it.
  known_first: assert property (@(posedge clk_i) disable iff (clear_i)
      what_qq != RangeNone && !own_qqq |-> !own_q && !(own_qq && what_q == RangeD))
      else $error("an operation is held against one whose range is not known");
  step_known: assert property (@(posedge clk_i) disable iff (clear_i) step_q <= 3'd6)
      else $error("a step that there is not");
endmodule
