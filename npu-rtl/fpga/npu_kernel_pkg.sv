// SPDX-License-Identifier: Apache-2.0
// npu_kernel_pkg: what the blocks around npu_core in an FPGA's slot share: registers, the bus,
// steps.
package npu_kernel_pkg;
  // Registers of s_axi_control, as ap_ctrl_hs has them, then the arguments.
  localparam logic [11:0] ApCtrl = 12'h000, Gie = 12'h004, Ier = 12'h008, Isr = 12'h00c;
  localparam logic [11:0] ArgMemory = 12'h010, ArgSteps = 12'h01c, ArgBytes = 12'h028;
  localparam logic [11:0] ArgCount = 12'h034;

  // A run's arguments.
  typedef struct packed {
    logic [63:0] memory;
    logic [63:0] steps;
    logic [63:0] bytes;
    logic [31:0] count;
  } args_t;

  // A burst of 16-byte beats.  ID: whose it is, N being the steps', and the slot.
  typedef struct packed {
    logic        v;
    logic [4:0]  source;
    logic [2:0]  slot;
    logic [63:0] addr;
    logic [7:0]  len;  // beats less one
  } burst_t;
  typedef struct packed {
    logic         v;
    logic [127:0] data;
    logic [15:0]  strb;
    logic         last;
  } wbeat_t;
  // What a source asks the bus, and what of it is taken.  Answers are apart: a valid and a ready
  // for each source; ID, data and response are the same for all.  Read data are always taken.
  typedef struct packed {
    burst_t ar;
    burst_t aw;
    wbeat_t w;
  } ask_t;
  typedef struct packed {
    logic arready;
    logic awready;
    logic wready;
  } told_t;

  // struct npu_kernel_step of npu_kernel.h
  typedef struct packed {
    logic [63:0] value;
    logic [31:0] address;
    logic [31:0] op;
  } step_t;
  localparam logic [31:0] OpWrite = 32'd0, OpRead = 32'd1, OpRun = 32'd2, OpReset = 32'd3;
  localparam logic [31:0] OpRefused = 32'hffff_ffff;
endpackage
