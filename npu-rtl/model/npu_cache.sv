// SPDX-License-Identifier: Apache-2.0
// npu_cache: model of a channel's cache: which lines are there, and which goes for a new one; a
// part of the bench.
//
// What is read is kept; what is written goes through and changes nothing here.  In a full set
// the oldest line goes or, one time in four, any: drawn from the seed, the set and how many lines
// this set has taken, so that what one set does says nothing of the others.
module npu_cache #(
    parameter  int unsigned Channel = 0,
    localparam int unsigned SetBits = 8,  // as many sets, and ways, as there can be: 2^
    localparam int unsigned WayBits = 3
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic [3:0]  sets_i,   // in use: 2^
    input  logic [3:0]  ways_i,   // in use, a power of two; 0: there is no cache
    input  logic [15:0] seed_i,
    input  logic        read_i,   // a line is read
    input  logic [25:0] lline_i,
    output logic        hit_o
);
  localparam int unsigned Sets = 1 << SetBits, Ways = 1 << WayBits;
  typedef struct packed {
    logic [Ways-1:0]    v;
    logic [WayBits-1:0] oldest;
    logic [15:0]        taken;
  } set_t;
  logic [25:0]     line_q [Sets * Ways];
  set_t            set_q [Sets];
  logic [Sets-1:0] used_q;  // what the others have is from before the reset
  set_t            now, then;

  logic [SetBits-1:0] set;
  logic [Ways-1:0]    found;
  logic [WayBits-1:0] way, last;
  logic [31:0]        draw;
  logic               look, full;
  assign look  = read_i && ways_i != '0;
  assign set   = SetBits'(lline_i) & SetBits'((32'd1 << sets_i) - 32'd1);
  assign last  = WayBits'(ways_i - 4'd1);
  assign hit_o = |found;
  always_comb begin
    found = '0;
    full  = 1'b1;
    now   = used_q[set] ? set_q[set] : '0;
    way   = now.oldest;
    draw  = '0;
    if (look) begin
      draw = {seed_i, now.taken} ^ 32'(set) << 12 ^ 32'(Channel) << 24;
      draw = draw * 32'h2C1B3C6D;
      draw = (draw ^ draw >> 15) * 32'h297A2D39;
      draw = draw ^ draw >> 13;
      for (int w = 0; w < int'(Ways); w++)
        if (4'(w) < ways_i) found[w] = now.v[w] && line_q[{set, WayBits'(w)}] == lline_i;
      if (draw[1:0] == '0) way = draw[2+:WayBits] & last;
      for (int w = int'(Ways) - 1; w >= 0; w--)
        if (4'(w) < ways_i && !now.v[w]) begin
          full = 1'b0;
          way  = WayBits'(w);
        end
    end
    then        = now;
    then.v[way] = 1'b1;
    then.taken  = now.taken + 16'd1;
    if (full && draw[1:0] != '0) then.oldest = (now.oldest + 1'b1) & last;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) used_q <= '0;
    else if (look && !hit_o) begin
      used_q[set]        <= 1'b1;
      set_q[set]         <= then;
      line_q[{set, way}] <= lline_i;
    end
  end

  OncePerSet: assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0(found));
  WaysAreAPower: assert property (@(posedge clk_i) disable iff (!rst_ni)
      (ways_i & (ways_i - 4'd1)) == '0 && 32'(ways_i) <= Ways && 32'(sets_i) <= SetBits);
endmodule
