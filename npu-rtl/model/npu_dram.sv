// SPDX-License-Identifier: Apache-2.0
// npu_dram: model of a memory channel: banks with open rows, a 16-byte data bus, the data themselves by DPI.
//
// A part of the bench, not of the NPU.  A request's data are written or read when its last beat
// is due; the slot has the response in the cycle done, after the register here, the FIFO of
// npu_return and its output register.
module npu_dram #(
    parameter  int unsigned BankBits = 3,
    localparam int unsigned FlyBits  = 5  // requests taken and not yet answered
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic [63:0]         now_i,     // cycles since reset
    input  logic [27:0]         timing_i,  // register TIMING
    input  npu_pkg::port_req_t  req_i,
    output logic                ready_o,
    input  npu_pkg::line_t      wdata_i,   // of the request taken one cycle ago
    input  logic                close_i,   // all rows are closed, with nothing under way
    output npu_pkg::port_rsp_t  rsp_o,
    output npu_pkg::line_t      rdata_o
);
  import "DPI-C" function void npu_dpi_read(input int unsigned pa, output bit [511:0] d);
  import "DPI-C" function void npu_dpi_write(input int unsigned pa, input int unsigned len,
                                             input bit [511:0] d);
  import npu_regs_pkg::*;
  localparam int unsigned Fly = 1 << FlyBits, Banks = 1 << BankBits;
  localparam logic [63:0] Back = 64'd3, Least = 64'd5;  // cycles from here to the slot; shortest

  typedef struct packed {
    logic [2:0]  slot;
    logic        we;
    logic [6:0]  len;
    logic [31:0] pa;
  } fly_t;

  fly_t             fly_q [Fly];
  npu_pkg::line_t   wdata_q [Fly];
  logic [63:0]      done_q [Fly];       // cycle of the response
  logic [FlyBits:0] wp_q, rp_q;
  logic [Banks-1:0] open_q;
  logic [25:0]      row_q [Banks];
  logic [63:0]      free_q [Banks];     // first cycle of the bank's next command
  logic [63:0]      bus_free_q;         // first cycle without a beat
  logic             write_q;            // a write was taken one cycle ago

  // TIMING; the data of a column access is never on the bus in the same cycle.
  logic [63:0] ncl, nrcd, nrp;
  logic [3:0]  rowbits;
  assign ncl     = timing_i[TIMING_NCL_LSB+:TIMING_NCL_W] == '0 ? 64'd1 :
                   64'(timing_i[TIMING_NCL_LSB+:TIMING_NCL_W]);
  assign nrcd    = 64'(timing_i[TIMING_NRCD_LSB+:TIMING_NRCD_W]);
  assign nrp     = 64'(timing_i[TIMING_NRP_LSB+:TIMING_NRP_W]);
  assign rowbits = timing_i[TIMING_ROWBITS_LSB+:TIMING_ROWBITS_W];

  // A request is taken no earlier than its data could follow the data before.
  logic any, full, take;
  assign any     = wp_q != rp_q;
  assign full    = wp_q == {~rp_q[FlyBits], rp_q[FlyBits-1:0]};
  assign ready_o = !full && bus_free_q <= now_i + nrp + nrcd + ncl;
  assign take    = req_i.v && ready_o;

  logic [BankBits-1:0] bank;
  logic [25:0]         row;
  logic [63:0]         col, data, done;
  always_comb begin
    row  = '0;
    bank = '0;
    col  = '0;
    data = '0;
    done = '0;
    if (take) begin
      row  = req_i.lline >> rowbits >> BankBits;
      bank = BankBits'(req_i.lline >> rowbits) ^ row[BankBits-1:0];
      col  = free_q[bank] > now_i ? free_q[bank] : now_i;
      if (!open_q[bank]) col = col + nrcd;
      else if (row_q[bank] != row) col = col + nrp + nrcd;
      data = col + ncl > bus_free_q ? col + ncl : bus_free_q;
      done = data + 64'(req_i.beats) > now_i + Least ? data + 64'(req_i.beats) : now_i + Least;
    end
  end

  always_ff @(posedge clk_i) begin
    bit [511:0] line;
    if (!rst_ni) begin
      for (int b = 0; b < int'(Banks); b++) free_q[b] <= '0;
      wp_q       <= '0;
      rp_q       <= '0;
      open_q     <= '0;
      bus_free_q <= '0;
      write_q    <= 1'b0;
      rsp_o      <= '0;
    end else begin
      write_q <= take && req_i.we;
      if (take) begin
        open_q[bank]              <= 1'b1;
        row_q[bank]               <= row;
        free_q[bank]              <= data - ncl + 64'(req_i.beats);
        bus_free_q                <= data + 64'(req_i.beats);
        done_q[wp_q[FlyBits-1:0]] <= done;
        fly_q[wp_q[FlyBits-1:0]]  <= '{slot: req_i.slot, we: req_i.we, len: req_i.len, pa: req_i.pa};
        wp_q                      <= wp_q + (FlyBits + 1)'(1);
      end
      if (write_q) wdata_q[wp_q[FlyBits-1:0]-FlyBits'(1)] <= wdata_i;
      if (close_i) open_q <= '0;
      rsp_o.v <= 1'b0;
      if (any && done_q[rp_q[FlyBits-1:0]] <= now_i + Back) begin
        rp_q       <= rp_q + (FlyBits + 1)'(1);
        rsp_o.v    <= 1'b1;
        rsp_o.slot <= fly_q[rp_q[FlyBits-1:0]].slot;
        rsp_o.we   <= fly_q[rp_q[FlyBits-1:0]].we;
        if (fly_q[rp_q[FlyBits-1:0]].we)
          npu_dpi_write(fly_q[rp_q[FlyBits-1:0]].pa, 32'(fly_q[rp_q[FlyBits-1:0]].len),
                        wdata_q[rp_q[FlyBits-1:0]]);
        else begin
          npu_dpi_read(fly_q[rp_q[FlyBits-1:0]].pa, line);
          rdata_o <= line;
        end
      end
    end
  end

  // Between turns nothing is left of the last: the bus is free and rows have had time to close.
  ClosedAtRest: assert property (@(posedge clk_i) disable iff (!rst_ni)
      !close_i || open_q == '0 || (!take && bus_free_q + nrp <= now_i + 64'd1));
endmodule
