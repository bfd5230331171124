// SPDX-License-Identifier: Apache-2.0
// npu_hash_pkg: which memory channel a granule lives on, and where inside that channel (bijective, exactly balanced).
package npu_hash_pkg;
  localparam int unsigned GW = 24;  // bits of a granule number: 32-bit addresses, granules of 256 B or more

  typedef struct packed {
    logic [3:0]  ch;
    logic [25:0] lgran;  // granule number inside the channel
  } place_t;

  // u mod 3, 5 or 7 by digit sums: 16 = 1 modulo 3 and 5, 8 = 1 modulo 7.
  function automatic logic [2:0] mod_q(input logic [GW-1:0] u, input logic [2:0] q);
    logic [6:0] s16;
    logic [4:0] t16;
    logic [3:0] n16;
    logic [5:0] s8;
    logic [3:0] t8;
    logic [2:0] n3;
    logic [3:0] n5;
    s16 = '0;
    s8  = '0;
    for (int i = 0; i < int'(GW); i += 4) s16 += 7'(u[i+:4]);       // <= 90
    for (int i = 0; i < int'(GW); i += 3) s8 += 6'(u[i+:3]);        // <= 56
    t16 = 5'(s16[3:0]) + 5'(s16[6:4]);                              // <= 20
    n16 = t16[4] ? t16[3:0] + 4'd1 : t16[3:0];                      // <= 15
    t8  = 4'(s8[2:0]) + 4'(s8[5:3]);                                // <= 13
    n3  = 3'(n16[1:0]) + 3'(n16[3:2]);                              // 4 = 1 modulo 3; <= 6
    n5  = 4'd5 + 4'(n16[1:0]) - 4'(n16[3:2]);                       // 4 = -1 modulo 5; 2..8
    unique case (q)
      3'd3:    return n3 == 3'd6 ? 3'd0 : n3 >= 3'd3 ? n3 - 3'd3 : n3;
      3'd5:    return n5 >= 4'd5 ? 3'(n5 - 4'd5) : 3'(n5);
      3'd7:    return 3'(t8 >= 4'd7 ? t8 - 4'd7 : t8);
      default: return '0;
    endcase
  endfunction

  // (u - u mod q) / q: the division is exact, so it is a product with q's inverse modulo 2^24.
  function automatic logic [GW-1:0] div_q(input logic [GW-1:0] u, input logic [2:0] q);
    logic [GW-1:0] e;
    e = u - GW'(mod_q(u, q));
    unique case (q)
      3'd3:    return e * 24'hAAAAAB;
      3'd5:    return e * 24'hCCCCCD;
      3'd7:    return e * 24'hDB6DB7;
      default: return e;
    endcase
  endfunction

  // Mask bits below i count as clear in mask i and bit i as set: unit triangular, so any masks give a bijection.
  function automatic place_t map(input logic [GW-1:0] g, input npu_pkg::hash_cfg_t cfg);
    logic [3:0]    low;
    logic [GW-1:0] u, d;
    logic [3:0]    f;
    low = '0;
    for (int i = 0; i < 4; i++)
      if (3'(i) < cfg.k)
        low[i] = ^(g & ((cfg.xmask[i] >> (i + 1) << (i + 1)) | (GW'(1) << i)));
    u = g >> cfg.k;
    d = div_q(u, cfg.q);
    f = 4'(mod_q(u, cfg.q)) + 4'(mod_q(d, cfg.q));
    if (f >= 4'(cfg.q)) f -= 4'(cfg.q);
    return '{ch: low | (cfg.q[2:1] == '0 ? 4'd0 : f << cfg.k), lgran: 26'(d)};
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
