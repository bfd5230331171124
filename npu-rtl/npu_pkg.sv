// SPDX-License-Identifier: Apache-2.0
// npu_pkg: types that slots, memory system and top level share.
package npu_pkg;
  // The largest machine: what widths and the register page hold.  Modules refuse more when they
  // are elaborated.
  localparam int unsigned MaxRows = 32, MaxCols = 32, MaxSlots = 8, MaxChannels = 16;
  // What is the same in every machine: bytes of a slot's scratchpad, rows of an accumulator tile,
  // translations of a slot; banks of a channel, loads and stores of a slot that it may have in
  // flight, of each.
  localparam int unsigned SpadLog2 = 17, DepthLog2 = 9, TlbLog2 = 10;
  localparam int unsigned BankBits = 3, FlightLog2 = 4;

  typedef logic [511:0] line_t;
  typedef logic [255:0] piece_t;  // what a store carries at most

  // A slot's memory request.
  typedef struct packed {
    logic        v;
    logic [3:0]  ch;     // channel of the page (hashed when its translation was fetched)
    logic [25:0] lline;  // channel-local 64-byte line: what banks and rows are made of
    logic [2:0]  beats;  // 16-byte beats, 1..4, inside one line
    logic [6:0]  len;    // bytes from pa on, 1..64, inside one line; of a store to 32
    logic [8:0]  tag;    // the slot's own; a load's comes back with the response
    logic [31:0] pa;     // physical byte address
    logic        walk;   // a page table's line, which CH_MASK says nothing of
  } mem_req_t;

  // A slot has two ways to memory: one loads, the other stores.  Each shows one request a cycle,
  // held until accepted; with a store comes a piece_t, the byte at pa first.
  typedef struct packed {
    mem_req_t store, load;
  } ways_req_t;
  typedef struct packed {
    logic store, load;
  } ways_t;

  // A load's answer: at most one a cycle, and there is no way to refuse it.
  typedef struct packed {
    logic       v;
    logic       denied;  // CH_MASK took the channel away before the request's turn came
    logic [8:0] tag;
    logic [5:0] at;      // where in the line the request began
    line_t      data;    // the line
  } mem_rsp_t;

  // Answers to stores that come in one cycle: how many, by their tag's lowest bit.
  typedef struct packed {
    logic            denied;  // one at least
    logic [1:0][5:0] n;
  } mem_ack_t;

  // A channel's port to its memory.  A request is taken where v and the memory's ready meet;
  // until then it may give way to another.  Its write data follow one cycle behind.
  typedef struct packed {
    logic        v;
    logic [2:0]  slot;
    logic        we;
    logic [25:0] lline;
    logic [2:0]  beats;
    logic [6:0]  len;
    logic [8:0]  tag;
    logic [31:0] pa;
  } port_req_t;

  // The memory's response, in order for each slot and direction; always taken.  With a read's
  // comes a line_t.
  typedef struct packed {
    logic       v;
    logic [2:0] slot;
    logic       we;
  } port_rsp_t;

  // What a request finds in its bank.
  typedef enum logic [1:0] {RowNone, RowHit, RowClosed, RowConflict} row_e;

  // Whether a register is one of the n of an array.
  function automatic logic is_in(input logic [11:0] addr, input logic [15:0] base,
                                 input int unsigned n);
    return addr >= base[11:0] && 32'(addr) < 32'(base) + 4 * n;
  endfunction

  // HASH and XMASK registers, as the slots' translation units use them.
  typedef struct packed {
    logic [2:0]       k;      // power-of-two part 2^k
    logic [3:0]       q;      // odd part 1, 3, 5 ... 15
    logic [3:0]       gran;   // granule = page = 2^gran bytes
    logic [3:0][23:0] xmask;  // over granule numbers (physical address >> gran)
  } hash_cfg_t;

  // How the channels of a group choose between slots: registers ARB and PRIO.
  typedef struct packed {
    logic [1:0]      mode;
    logic [3:0]      pass;
    logic [7:0][3:0] prio;
  } arb_cfg_t;

  // A round of turns: registers TURNS and TURN_ORDER.
  typedef struct packed {
    logic [11:0]     cycles;
    logic [2:0]      last;
    logic [7:0][3:0] order;
  } turns_cfg_t;

  typedef struct packed {
    logic       open;   // requests of the slot may be taken
    logic [3:0] slot;
    logic       close;  // its last cycle: all rows are closed behind it
  } turn_t;

  // A token bucket's values, as staged.
  typedef struct packed {
    logic        group;
    logic [23:0] window;
    logic [27:0] budget, burst;
  } bucket_set_t;
endpackage
