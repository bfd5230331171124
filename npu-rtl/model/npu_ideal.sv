// SPDX-License-Identifier: Apache-2.0
// npu_ideal: model of a memory that makes no slot wait and answers in the next cycle; a part of the
// bench.
module npu_ideal #(
    parameter int unsigned S = 4
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  npu_pkg::ways_t [S-1:0] take_i,  // this cycle's requests, all of them served
    input  npu_pkg::ways_req_t [S-1:0] req_i,
    input  npu_pkg::piece_t [S-1:0] wdata_i,
    output npu_pkg::mem_rsp_t  rsp_o [S]  // of loads
);
  if (S < 1 || S > npu_pkg::MaxSlots)
    $fatal(1, "npu_ideal: S is %0d, not 1..%0d", S, npu_pkg::MaxSlots);
  import "DPI-C" function void npu_dpi_read(input int unsigned pa, output bit [511:0] d);
  import "DPI-C" function void npu_dpi_write(input int unsigned pa, input int unsigned len,
                                             input bit [511:0] d);

  for (genvar s = 0; s < S; s++) begin : g_slot
    always_ff @(posedge clk_i) begin
      bit [511:0] line;
      if (!rst_ni) rsp_o[s] <= '0;
      else begin
        rsp_o[s].v <= take_i[s].load;
        if (take_i[s].load) begin
          npu_dpi_read(req_i[s].load.pa, line);
          rsp_o[s].denied <= 1'b0;
          rsp_o[s].tag    <= req_i[s].load.tag;
          rsp_o[s].at     <= req_i[s].load.pa[5:0];
          rsp_o[s].data   <= line;
        end
        if (take_i[s].store)
          npu_dpi_write(req_i[s].store.pa, 32'(req_i[s].store.len), 512'(wdata_i[s]));
      end
    end
  end
endmodule
