// SPDX-License-Identifier: Apache-2.0
// npu_vec_pkg: a vector operation, decoded.
package npu_vec_pkg;
  typedef struct packed {
    logic        add, mul, relu, maxpool, avgpool, fill, lut, softmax;
    logic        two, pool;                // reads A and B; a window a piece
    logic        au8, bu8, ou8;
    logic [5:0]  step;                     // bytes of a piece
    logic [5:0]  table_pieces;             // of 32 bytes
    logic [15:0] cols;                     // bytes of a row
  } op_t;

  // Where an operation begins that goes on: its first output's row and column; pooling: that
  // output's column in its line, and its window's first input row; in bytes, how far behind the
  // operation's beginning that row of A lies, of B, of D.
  typedef struct packed {
    logic [19:0]        m;
    logic [15:0]        n, ox;
    logic signed [20:0] iy;
    logic [31:0]        a, b, d;
  } from_t;
endpackage
