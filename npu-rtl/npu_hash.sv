// SPDX-License-Identifier: Apache-2.0
// npu_hash_pkg: which memory channel a granule lives on, and where inside that channel (bijective,
// exactly balanced).
package npu_hash_pkg;
  // bits of a granule number: 32-bit addresses, granules of 256 B or more
  localparam int unsigned GW = 24;

  typedef struct packed {
    logic [3:0]  ch;
    logic [25:0] lgran;  // granule number inside the channel
  } place_t;

  // u mod q by sums of digits in a base that is 1 or -1 modulo q: 16 = 1 modulo 3, 5 and 15;
  // 64 = 1 modulo 7 and 9, and 8 = 1 and -1; 32 = -1 modulo 11; 64 = -1 modulo 13.
  function automatic logic [3:0] mod_q(input logic [GW-1:0] u, input logic [3:0] q);
    logic [6:0] s16;
    logic [4:0] t16;
    logic [3:0] n16, n5, m5, n9, n11;
    logic [2:0] n3;
    logic [7:0] s64, d32, e32;
    logic [6:0] t64;
    logic [5:0] n64;
    logic [3:0] n7;
    logic [8:0] d64;
    logic [6:0] n13;
    logic [4:0] m13;
    s16 = '0;
    s64 = '0;
    for (int i = 0; i < int'(GW); i += 4) s16 += 7'(u[i+:4]);       // <= 90
    for (int i = 0; i < int'(GW); i += 6) s64 += 8'(u[i+:6]);       // <= 252
    t16 = 5'(s16[3:0]) + 5'(s16[6:4]);                              // <= 20
    n16 = t16[4] ? t16[3:0] + 4'd1 : t16[3:0];                      // <= 15
    n3  = 3'(n16[1:0]) + 3'(n16[3:2]);                              // 4 = 1 modulo 3; <= 6
    n5  = 4'd5 + 4'(n16[1:0]) - 4'(n16[3:2]);                       // 4 = -1 modulo 5; 2..8
    m5  = n5 >= 4'd5 ? n5 - 4'd5 : n5;
    t64 = 7'(s64[5:0]) + 7'(s64[7:6]);                              // <= 66
    n64 = t64[6] ? t64[5:0] + 6'd1 : t64[5:0];                      // <= 63
    n7  = 4'(n64[2:0]) + 4'(n64[5:3]);                              // <= 14
    n9  = n64[2:0] >= n64[5:3] ? 4'(n64[2:0] - n64[5:3]) : 4'd9 + 4'(n64[2:0]) - 4'(n64[5:3]);
    // What is taken off is made good by a multiple of q.
    d32 = 8'd66 + 8'(u[4:0]) + 8'(u[14:10]) + 8'(u[23:20]) - 8'(u[9:5]) - 8'(u[19:15]);  // 4..143
    e32 = 8'd11 + 8'(d32[4:0]) - 8'(d32[7:5]);                      // 7..42
    n11 = 4'(e32 >= 8'd33 ? e32 - 8'd33 : e32 >= 8'd22 ? e32 - 8'd22 : e32 >= 8'd11 ? e32 - 8'd11 :
        e32);
    d64 = 9'd130 + 9'(u[5:0]) + 9'(u[17:12]) - 9'(u[11:6]) - 9'(u[23:18]);               // 4..256
    n13 = 7'd13 + 7'(d64[5:0]) - 7'(d64[8:6]);                      // 9..76
    m13 = 5'(n13[3:0]) + 5'(n13[6:4]) + 5'({n13[6:4], 1'b0});       // 16 = 3 modulo 13; <= 27
    unique case (q)
      4'd3:    return n3 == 3'd6 ? 4'd0 : n3 >= 3'd3 ? 4'(n3 - 3'd3) : 4'(n3);
      4'd5:    return m5;
      4'd7:    return n7 == 4'd14 ? 4'd0 : n7 >= 4'd7 ? n7 - 4'd7 : n7;
      4'd9:    return n9;
      4'd11:   return n11;
      4'd13:   return 4'(m13 >= 5'd26 ? m13 - 5'd26 : m13 >= 5'd13 ? m13 - 5'd13 : m13);
      4'd15:   return n16 == 4'd15 ? 4'd0 : n16;
      default: return '0;
    endcase
  endfunction

  // (u - u mod q) / q: the division is exact, so it is a product with q's inverse modulo 2^24.
  function automatic logic [GW-1:0] div_q(input logic [GW-1:0] u, input logic [3:0] q);
    logic [GW-1:0] e;
    e = u - GW'(mod_q(u, q));
    unique case (q)
      4'd3:    return e * 24'hAAAAAB;
      4'd5:    return e * 24'hCCCCCD;
      4'd7:    return e * 24'hDB6DB7;
      4'd9:    return e * 24'hE38E39;
      4'd11:   return e * 24'h2E8BA3;
      4'd13:   return e * 24'hEC4EC5;
      4'd15:   return e * 24'hEEEEEF;
      default: return e;
    endcase
  endfunction

  // Mask bits below i count as clear in mask i and bit i as set: unit triangular, so any masks give
  // a bijection.
  function automatic place_t map(input logic [GW-1:0] g, input npu_pkg::hash_cfg_t cfg);
    logic [3:0]    low;
    logic [GW-1:0] u, d;
    logic [4:0]    f;
    low = '0;
    for (int i = 0; i < 4; i++)
      if (3'(i) < cfg.k)
        low[i] = ^(g & ((cfg.xmask[i] >> (i + 1) << (i + 1)) | (GW'(1) << i)));
    u = g >> cfg.k;
    d = div_q(u, cfg.q);
    f = 5'(mod_q(u, cfg.q)) + 5'(mod_q(d, cfg.q));
    if (f >= 5'(cfg.q)) f -= 5'(cfg.q);
    return '{ch: low | (cfg.q[3:1] == '0 ? 4'd0 : f[3:0] << cfg.k), lgran: 26'(d)};
  endfunction

  // The same for an address: channel and channel-local 64-byte line.
  function automatic place_t line(input logic [31:0] pa, input npu_pkg::hash_cfg_t cfg);
    place_t p;
    logic [3:0] s;
    s = cfg.gran - 4'd6;
    p = map(GW'(pa >> cfg.gran), cfg);
    p.lgran = (p.lgran << s) | 26'((pa >> 6) & ~(32'hFFFFFFFF << s));
    return p;
  endfunction
endpackage
