// SPDX-License-Identifier: Apache-2.0
// npu_spad_pkg: how the scratchpad's bytes lie in its banks.
//
// Word u, bytes 16 u .. 16 u + 15, is row u / 8 of bank (sum of u's four lowest octal digits)
// mod 8.  That is a bijection; the four words of a line, and any word and the next two, wrap
// included, are in different banks; and rows of 2^n bytes do not all begin in one bank.
package npu_spad_pkg;
  localparam int Banks = 8, Ports = 6;  // and ports that read from them
  typedef logic [2:0] run_t;            // number of runs, 0..Ports, or of a port

  function automatic logic [2:0] bank(input logic [11:0] word);
    return word[2:0] + word[5:3] + word[8:6] + word[11:9];
  endfunction

  // The n-th port from that one on.
  function automatic run_t port(input run_t from, input run_t n);
    logic [3:0] p;
    p = 4'(from) + 4'(n);
    return run_t'(p >= 4'(Ports) ? p - 4'(Ports) : p);
  endfunction
endpackage
