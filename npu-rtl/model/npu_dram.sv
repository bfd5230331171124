// SPDX-License-Identifier: Apache-2.0
// npu_dram: model of a memory channel: banks with open rows, a 16-byte data bus, the data
// themselves by DPI; refresh, a cache.
//
// A part of the bench, not of the NPU.  A request's data are written or read when its last beat is
// due; the slot has the response in the cycle done, after the register here, the FIFO of npu_return
// and its output register.  Refresh goes by the clock alone: in the last cycles of each period
// nothing is taken, and all rows are closed.  A line in the cache needs neither bank nor bus.
module npu_dram #(
    parameter  int unsigned Channel = 0,
    localparam int unsigned FlyBits = 5  // requests taken and not yet answered
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic [63:0]         now_i,     // cycles since reset
    input  logic [27:0]         timing_i,  // register TIMING
    // cycles from one refresh to the next; 0: there is none
    input  logic [15:0]         refresh_i,
    input  logic [15:0]         refreshing_i,   // of them it takes, fewer than that
    input  logic [3:0]          cache_sets_i,   // see npu_cache
    input  logic [3:0]          cache_ways_i,
    input  logic [15:0]         cache_seed_i,
    input  npu_pkg::port_req_t  req_i,
    output logic                ready_o,
    input  npu_pkg::line_t      wdata_i,   // of the request taken one cycle ago
    input  logic                close_i,   // all rows are closed, with nothing under way
    output npu_pkg::port_rsp_t  rsp_o,
    output npu_pkg::line_t      rdata_o
);
  if (Channel >= npu_pkg::MaxChannels)
    $fatal(1, "npu_dram: Channel is %0d, not 0..%0d", Channel, npu_pkg::MaxChannels - 1);
  import "DPI-C" function void npu_dpi_read(input int unsigned pa, output bit [511:0] d);
  import "DPI-C" function void npu_dpi_write(input int unsigned pa, input int unsigned len,
                                             input bit [511:0] d);
  import npu_regs_pkg::*;
  localparam int unsigned BankBits = npu_pkg::BankBits, Banks = 1 << BankBits;
  localparam int unsigned Fly = 1 << FlyBits;
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

  // Channels are refreshed one after the other.
  logic [15:0] age_q;   // cycles of this period
  logic [15:0] from_q;  // of them those before the refresh
  logic        on_q, refresh;
  assign refresh = on_q && age_q >= from_q;
  always_ff @(posedge clk_i) begin
    on_q   <= rst_ni && refresh_i != '0;
    from_q <= refresh_i - refreshing_i;
    age_q  <= !on_q ? 16'((32'(refresh_i) * Channel) >> 4) : age_q + 16'd1 >= refresh_i ? '0 :
        age_q + 16'd1;
  end

  // A request is taken no earlier than its data could follow the data before.
  logic any, full, take;
  assign any     = wp_q != rp_q;
  assign full    = wp_q == {~rp_q[FlyBits], rp_q[FlyBits-1:0]};
  assign ready_o = !full && !refresh && bus_free_q <= now_i + nrp + nrcd + ncl;
  assign take    = req_i.v && ready_o;

  logic hit;
  npu_cache #(
      .Channel(Channel)
  ) u_cache (
      .clk_i,
      .rst_ni,
      .sets_i(cache_sets_i),
      .ways_i(cache_ways_i),
      .seed_i(cache_seed_i),
      .read_i(take && !req_i.we),
      .lline_i(req_i.lline),
      .hit_o(hit)
  );

  logic [BankBits-1:0] bank;
  logic [25:0]         row;
  logic [63:0]         col, data, done, beats;
  // What a cache takes is the whole line.
  assign beats = cache_ways_i != '0 && !req_i.we ? 64'd4 : 64'(req_i.beats);
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
      done = data + beats > now_i + Least && !hit ? data + beats : now_i + Least;
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
      if (take && !hit) begin
        open_q[bank] <= 1'b1;
        row_q[bank]  <= row;
        free_q[bank] <= data - ncl + beats;
        bus_free_q   <= data + beats;
      end
      if (take) begin
        done_q[wp_q[FlyBits-1:0]] <= done;
        fly_q[wp_q[FlyBits-1:0]]  <= '{slot: req_i.slot, we: req_i.we, len: req_i.len,
            pa: req_i.pa};
        wp_q                      <= wp_q + (FlyBits + 1)'(1);
      end
      if (write_q) wdata_q[wp_q[FlyBits-1:0]-FlyBits'(1)] <= wdata_i;
      if (close_i || refresh) open_q <= '0;
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
  RefreshTakesNothing: assert property (@(posedge clk_i) disable iff (!rst_ni) !refresh || !take);
  RefreshEnds: assert property (@(posedge clk_i) disable iff (!rst_ni)
      refresh_i == '0 || refreshing_i < refresh_i);
endmodule
