// SPDX-License-Identifier: Apache-2.0
// npu_slot_pkg: what the parts of a slot engine share.
package npu_slot_pkg;
  typedef enum logic [4:0] {
    SIdle,
    SFetch,      // the descriptor at HEAD has been asked for
    SDecode,
    SRun,        // in the array or the vector unit
    SFlush,      // until all is settled, in memory too
    SWrite,      // SIGNAL, TIMESTAMP
    SWaitAsk, SWaitRsp, SWaitPause,
    SDone,
    SStopping,   // until nothing is under way
    SStopped,
    SFromAsk, SFromRsp, SFromWork,  // where the operation goes on: read, checked, worked out
    SFromSums,   // its sums, read
    SSave,       // how far it has come, stored;
    SSums        // its sums
  } state_e;

  // Requests of the slot by what they are for.  Bits 8:7 are 3 where the sequencer asks.
  typedef logic [8:0] tag_t;
  localparam tag_t TagDesc = 9'h180, TagWait = 9'h181, TagFrom = 9'h182,
                   TagSums = 9'h183;  // bits 5:2: which
endpackage
