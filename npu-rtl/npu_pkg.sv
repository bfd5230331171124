// SPDX-License-Identifier: Apache-2.0
// npu_pkg: types that slots, memory system and top level share.
package npu_pkg;
  // A slot's memory request: at most one a cycle, held until accepted.
  typedef struct packed {
    logic        v;
    logic        we;
    logic [3:0]  ch;     // channel of the page (hashed when its translation was fetched)
    logic [25:0] lline;  // channel-local 64-byte line: what banks and rows are made of
    logic [2:0]  beats;  // 16-byte beats, 1..4, inside one line
    logic [8:0]  tag;    // the slot's own; comes back with the response
    logic [31:0] pa;     // physical byte address; comes back with the response
  } mem_req_t;

  typedef struct packed {
    logic        v;
    logic [2:0]  slot;
    logic        we;
    logic [8:0]  tag;
    logic [31:0] pa;
  } mem_rsp_t;

  // HASH and XMASK registers, as the slots' translation units use them.
  typedef struct packed {
    logic [2:0]       k;      // power-of-two part 2^k
    logic [2:0]       q;      // odd part 1, 3, 5, 7
    logic [3:0]       gran;   // granule = page = 2^gran bytes
    logic [3:0][23:0] xmask;  // over granule numbers (physical address >> gran)
  } hash_cfg_t;
endpackage
