// SPDX-License-Identifier: Apache-2.0
// dut_hash: npu_hash_pkg behind ports, one granule and one address a step.
module dut_hash (
    input  logic [23:0]       granule_i,
    input  logic [31:0]       pa_i,
    input  logic [2:0]        k_i,
    input  logic [3:0]        q_i, gran_i,
    input  logic [3:0][23:0]  xmask_i,
    output logic [3:0]        ch_o, line_ch_o,
    output logic [25:0]       lgran_o, lline_o
);
  npu_pkg::hash_cfg_t   cfg;
  npu_hash_pkg::place_t g, l;
  assign cfg = '{k: k_i, q: q_i, gran: gran_i, xmask: xmask_i};
  assign g = npu_hash_pkg::map(granule_i, cfg);
  assign l = npu_hash_pkg::line(pa_i, cfg);
  assign {ch_o, lgran_o} = g;
  assign {line_ch_o, lline_o} = l;
endmodule
