// SPDX-License-Identifier: Apache-2.0
// npu_mem: N memory channels shared by S slots, or an ideal memory that answers in the next cycle.
module npu_mem #(
    parameter int unsigned N        = 8,
    parameter int unsigned S        = 4,
    parameter int unsigned BankBits = 3
) (
    input  logic              clk_i,
    input  logic              rst_ni,
    input  logic              ideal_i,
    input  logic [27:0]       timing_i,
    input  npu_pkg::mem_req_t req_i [S],      // held until accepted
    output logic [S-1:0]      acc_o,          // accepted in this cycle
    output npu_pkg::mem_rsp_t ch_rsp_o [N],   // for the slot that is named in it
    output npu_pkg::mem_rsp_t id_rsp_o [S],
    output logic              busy_o,
    input  logic              snap_i,         // copy the counters to where they are read
    input  logic [7:0]        cnt_addr_i,     // channel, word of its block in the CHAN page
    output logic [31:0]       cnt_rdata_o
);
  localparam int unsigned NW = N > 1 ? $clog2(N) : 1;

  logic [S-1:0] full [N], push [N];
  logic [N-1:0] busy;
  logic [31:0]  cnt_rdata [N];
  logic [63:0]  now_q;

  // One FIFO a slot a channel: what a slot sees of a channel depends on who else uses that
  // channel, and on nothing else.
  always_comb begin
    acc_o = '0;
    for (int c = 0; c < int'(N); c++) push[c] = '0;
    for (int s = 0; s < int'(S); s++)
      if (req_i[s].v) begin
        acc_o[s] = ideal_i || !full[NW'(req_i[s].ch)][s];
        push[NW'(req_i[s].ch)][s] = !ideal_i && !full[NW'(req_i[s].ch)][s];
      end
  end

  for (genvar c = 0; c < N; c++) begin : g_chan
    npu_chan #(
        .S(S),
        .BankBits(BankBits)
    ) u_chan (
        .clk_i,
        .rst_ni,
        .now_i(now_q),
        .timing_i,
        .push_i(push[c]),
        .req_i,
        .full_o(full[c]),
        .rsp_o(ch_rsp_o[c]),
        .busy_o(busy[c]),
        .snap_i,
        .cnt_addr_i(cnt_addr_i[3:0]),
        .cnt_rdata_o(cnt_rdata[c])
    );
  end

  for (genvar s = 0; s < S; s++) begin : g_ideal
    always_ff @(posedge clk_i) begin
      if (!rst_ni) id_rsp_o[s] <= '0;
      else if (ideal_i && req_i[s].v)
        id_rsp_o[s] <= '{v: 1'b1, slot: 3'(s), we: req_i[s].we, tag: req_i[s].tag, pa: req_i[s].pa};
      else id_rsp_o[s].v <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) now_q <= '0;
    else now_q <= now_q + 64'd1;
  end

  logic id_busy;
  always_comb begin
    id_busy = 1'b0;
    for (int s = 0; s < int'(S); s++) id_busy |= id_rsp_o[s].v;
  end
  assign busy_o      = (|busy) | id_busy;
  assign cnt_rdata_o = 32'(cnt_addr_i[7:4]) < N ? cnt_rdata[NW'(cnt_addr_i[7:4])] : '0;
endmodule
