// SPDX-License-Identifier: Apache-2.0
// npu_memory: model of what is behind the NPU's ports: N channels of DRAM, and the ideal memory; a
// part of the bench.
module npu_memory #(
    parameter int unsigned N = 8,
    parameter int unsigned S = 4
) (
    input  logic                       clk_i,
    input  logic                       rst_ni,
    input  logic [27:0]                timing_i,  // register TIMING
    input  logic [15:0]                refresh_i,  // see npu_dram
    input  logic [15:0]                refreshing_i,
    input  logic [3:0]                 cache_sets_i,
    input  logic [3:0]                 cache_ways_i,
    input  logic [15:0]                cache_seed_i,
    input  npu_pkg::port_req_t [N-1:0] req_i,
    input  npu_pkg::line_t [N-1:0]     wdata_i,
    output logic [N-1:0]               ready_o,
    output npu_pkg::port_rsp_t [N-1:0] rsp_o,
    output npu_pkg::line_t [N-1:0]     rdata_o,
    input  logic [N-1:0]               close_i,
    input  npu_pkg::ways_t [S-1:0]     ideal_take_i,
    input  npu_pkg::ways_req_t [S-1:0] ideal_req_i,
    input  npu_pkg::piece_t [S-1:0]     ideal_wdata_i,
    output npu_pkg::mem_rsp_t          ideal_rsp_o [S]
);
  if (N < 1 || N > npu_pkg::MaxChannels)
    $fatal(1, "npu_memory: N is %0d, not 1..%0d", N, npu_pkg::MaxChannels);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_memory: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);
  logic [63:0] now_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) now_q <= '0;
    else now_q <= now_q + 64'd1;
  end

  // Registered: what depends on an input at once, a model works out anew in each evaluation.
  logic [3:0]  cache_sets_q, cache_ways_q;
  logic [15:0] cache_seed_q;
  always_ff @(posedge clk_i) begin
    cache_sets_q <= cache_sets_i;
    cache_ways_q <= cache_ways_i;
    cache_seed_q <= cache_seed_i;
  end

  for (genvar c = 0; c < N; c++) begin : g_chan
    npu_dram #(
        .Channel(c)
    ) u_dram (
        .clk_i,
        .rst_ni,
        .now_i(now_q),
        .timing_i,
        .refresh_i,
        .refreshing_i,
        .cache_sets_i(cache_sets_q),
        .cache_ways_i(cache_ways_q),
        .cache_seed_i(cache_seed_q),
        .req_i(req_i[c]),
        .ready_o(ready_o[c]),
        .wdata_i(wdata_i[c]),
        .close_i(close_i[c]),
        .rsp_o(rsp_o[c]),
        .rdata_o(rdata_o[c])
    );
  end

  npu_ideal #(
      .S(S)
  ) u_ideal (
      .clk_i,
      .rst_ni,
      .take_i(ideal_take_i),
      .req_i(ideal_req_i),
      .wdata_i(ideal_wdata_i),
      .rsp_o(ideal_rsp_o)
  );
endmodule
