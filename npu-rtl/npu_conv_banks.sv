// SPDX-License-Identifier: Apache-2.0
// npu_conv_banks: which of the gather's ports read their banks now.
//
// A bank serves the oldest of the runs that ask for it; one that waits for its other bank keeps it
// from the younger.  On more than 16 PE rows a row of bytes side by side is several runs, each
// beginning in the word that the one before ends in: there a read is for all that want its word.
module npu_conv_banks
  import npu_spad_pkg::*;
#(
    parameter bit Shared = 1'b0,
    localparam int AI = npu_pkg::SpadLog2 - 7
) (
    input  logic          clk_i, rst_ni,
    input  logic          req_i [Ports],
    input  logic [2:0]    ahead_i [Ports],   // runs of the port's that have yet to be taken
    input  run_t          head_i,            // port of the oldest beat's first run
    input  logic [7:0]    banks_i [Ports],   // one or two
    input  logic [2:0]    bank_i [Ports],    // the first,
    input  logic [AI-1:0] row_i [Ports], next_row_i [Ports],  // rows in it and in the other
    output logic          gnt_o [Ports],
    output logic [7:0]    re_o,
    output logic [AI-1:0] bank_row_o [Banks]
);
  logic [5:0]    age [Ports];
  logic [AI-1:0] bank_row [Ports][Banks];
  function automatic logic meet(input run_t p, input run_t q);
    meet = 1'b0;
    for (int b = 0; b < Banks; b++)
      if (banks_i[p][b] && banks_i[q][b] && !(Shared && bank_row[p][b] == bank_row[q][b]))
        meet = 1'b1;
  endfunction
  for (genvar p = 0; p < Ports; p++) begin : g_bank_row
    for (genvar b = 0; b < Banks; b++) begin : g_bank
      assign bank_row[p][b] = 3'(b) == bank_i[p] ? row_i[p] : next_row_i[p];
    end
  end
  always_comb begin
    for (int p = 0; p < Ports; p++)
      age[p] = {ahead_i[p], port(3'(p), head_i == 0 ? '0 : run_t'(Ports) - head_i)};
    for (int p = 0; p < Ports; p++) begin
      gnt_o[p] = req_i[p];
      for (int q = 0; q < Ports; q++)
        if (q != p && req_i[q] && age[q] < age[p] && meet(run_t'(p), run_t'(q))) gnt_o[p] = 1'b0;
    end
  end
  always_comb begin
    re_o = '0;
    for (int b = 0; b < Banks; b++) bank_row_o[b] = '0;
    for (int p = 0; p < Ports; p++)
      if (gnt_o[p]) begin
        re_o |= banks_i[p];
        for (int b = 0; b < Banks; b++)
          if (banks_i[p][b]) bank_row_o[b] |= bank_row[p][b];
      end
  end

  // ---- what always holds ------------------------------------------------------------------------
  logic clash, wanted;                       // two reads of a bank in one cycle
  always_comb begin
    clash  = 1'b0;
    wanted = 1'b0;
    for (int p = 0; p < Ports; p++) begin
      wanted |= req_i[p];
      for (int q = 0; q < p; q++)
        clash |= gnt_o[p] && gnt_o[q] && meet(run_t'(p), run_t'(q));
    end
  end
  OneRead: assert property (@(posedge clk_i) disable iff (!rst_ni) !clash);
  OneGoes: assert property (@(posedge clk_i) disable iff (!rst_ni) wanted |-> |re_o);
endmodule
