// SPDX-License-Identifier: Apache-2.0
// npu_ideal: model of a memory that makes no slot wait and answers in the next cycle; a part of the
// bench.
module npu_ideal #(
    parameter int unsigned S = 4
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic [S-1:0]       take_i,    // this cycle's requests, all of them served
    input  npu_pkg::mem_req_t [S-1:0] req_i,
    input  npu_pkg::line_t [S-1:0] wdata_i,
    output npu_pkg::mem_rsp_t  rsp_o [S]
);
  import "DPI-C" function void npu_dpi_read(input int unsigned pa, output bit [511:0] d);
  import "DPI-C" function void npu_dpi_write(input int unsigned pa, input int unsigned len,
                                             input bit [511:0] d);

  for (genvar s = 0; s < S; s++) begin : g_slot
    always_ff @(posedge clk_i) begin
      bit [511:0] line;
      if (!rst_ni) rsp_o[s] <= '0;
      else begin
        rsp_o[s].v <= take_i[s];
        if (take_i[s]) begin
          rsp_o[s].denied <= 1'b0;
          rsp_o[s].we  <= req_i[s].we;
          rsp_o[s].tag <= req_i[s].tag;
          rsp_o[s].at  <= req_i[s].pa[5:0];
          if (req_i[s].we) npu_dpi_write(req_i[s].pa, 32'(req_i[s].len), wdata_i[s]);
          else begin
            npu_dpi_read(req_i[s].pa, line);
            rsp_o[s].data <= line;
          end
        end
      end
    end
  end
endmodule
