// SPDX-License-Identifier: Apache-2.0
// npu_mmu_pkg: what a slot asks of its memory, and a translation.
package npu_mmu_pkg;
  typedef struct packed {
    logic [31:0] va;
    logic [6:0]  len;  // bytes, inside one line
    logic [8:0]  tag;
    logic [1:0]  seq;  // number of the operation it is for
  } ask_t;

  typedef struct packed {
    logic        w;      // may be written
    logic [3:0]  ch;
    logic [7:0]  ctx;
    logic [23:0] vpn;
    logic [23:0] pfn;    // physical address >> 8
    logic [25:0] lgran;  // granule inside the channel
  } tlb_t;

  localparam logic [8:0] WalkTag = 9'h1C0;
endpackage
