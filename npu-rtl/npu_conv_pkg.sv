// SPDX-License-Identifier: Apache-2.0
// npu_conv_pkg: what the blocks of npu_conv hand to each other.  Widths are those of the largest
// machine; a smaller one leaves the upper bits alone.  Scratchpad addresses wrap: at 2^18 here, at
// the scratchpad's size where it is indexed.
package npu_conv_pkg;
  localparam int MaxDim = 64;               // PE rows, PE columns
  localparam int MaxDepthLog2 = 10;         // rows of an accumulator tile
  localparam int MaxSpadLog2 = 18;          // bytes of the scratchpad

  typedef logic [$clog2(MaxDim + 1)-1:0] dim_t;  // number of PE rows or columns
  typedef logic [MaxDepthLog2:0]   rows_t;  // number of rows of a tile
  typedef logic [MaxDepthLog2-1:0] row_t;   // index of a row in a tile
  typedef logic [MaxSpadLog2-1:0]  spad_t;  // byte address in the scratchpad
  typedef logic [11:0]             reach_t; // input rows or columns from a window's first on

  // An operation's number, modulo 4: three can be under way, in order.
  typedef logic [1:0] seq_t;

  // A tile's number, modulo 8.
  typedef logic [2:0] tid_t;

  // Sums of a tile of nc columns: products of the k before k; of kr more the first r rows have,
  // too.  nc 0: none.
  typedef struct packed {
    dim_t               nc, kr;
    logic [15:0]        k;
    rows_t              r;
  } sums_t;

  // A place in a kernel: (ky, kx, c) of a k, but ky as what is made of it; in the scratchpad: of
  // the element, of its pixel in the row, of the row; in the image.
  typedef struct packed {
    logic [15:0]        c;
    logic [7:0]         kx;
    spad_t              off, x_off, y_off;
    reach_t             dx, dy;
  } kernel_t;

  // Outputs that are stored: all of the rows before m; of t rows from m on, a panel that has been
  // begun, those of the columns before n; sums of the next tile.  Panels go on as they were cut:
  // half as deep, if half.
  typedef struct packed {
    logic               half;
    logic [19:0]        m;
    rows_t              t;
    logic [15:0]        n;
    sums_t              sums;
  } progress_t;

  // Where an operation begins that goes on from there: the first window's line and column of
  // outputs, and the input row that it begins at; the first input row needed, where that lies, and
  // where output row m does; (ky, kx, c) of the sums' k.
  typedef struct packed {
    progress_t          at;
    logic [15:0]        ox;
    logic signed [20:0] iy;
    logic [19:0]        row;
    logic [31:0]        addr_a, addr_m;
    logic [15:0]        c;
    logic [7:0]         kx, ky;
  } from_t;

  // An operation, decoded: valid until all of its results have left the array.
  typedef struct packed {
    logic               out32, a_u8, b_u8, d_u8, noparam, block, group, onnx, once;
    logic               pair;              // two tiles, neighbours in N, are stored side by side
    progress_t          at;                // it begins there; t 0: at its beginning
    kernel_t            at_k;              // the lane of at.sums.k, and how far behind a column's
    logic [31:0]        at_b;              // first weight that one's lies
    logic [19:0]        row;               // first input row that is loaded
    logic [31:0]        addr_a, addr_m;    // of that; of output row at.m
    logic [31:0]        addr_b, addr_p, addr_d, lda, ldd;
    logic [31:0]        row_bytes;         // bytes of an input row that are used
    logic [31:0]        qmult;
    logic signed [6:0]  qshift;
    logic [7:0]         zpa, zpb, zpo, amin, amax;
    logic [19:0]        m, h;              // output rows; input rows
    logic [15:0]        n, k, kcin;        // kcin: input channels a kernel position
    logic [15:0]        last_group;        // F_GROUP: where in a pixel the last group may begin
    logic [15:0]        w, ow, ldb;
    // K is taken in parts (cut), of all rows each, which make one panel: the bits of a k inside
    // its part, all if it is not
    logic               cut;
    logic [15:0]        part;
    logic [7:0]         kw, pl;
    logic [3:0]         sx, sy, dx, dy;
    // distances in the scratchpad: input rows; one step of a window; one step in the kernel
    spad_t              sps, step_x, step_y, kstep_x, kstep_y;
    rows_t              depth;             // most rows of a tile
  } conv_op_t;

  // The window of an activation row: its output column, its first element's place in the image and
  // in the scratchpad, and the place of the output line's first window.  Where K is cut a part's
  // rows follow those of the part before, iy counts them, modulo 2^20, and a row begins in its line
  // where it does in memory: low behind its place.
  typedef struct packed {
    logic [5:0]         low;
    logic [15:0]        ox;
    logic signed [20:0] iy;
    logic signed [17:0] ix;
    spad_t              ad, row;
  } walk_t;

  // A fold: kr x nc weights under t activation rows of tile tid.
  typedef struct packed {
    logic               first, last;       // of its tile
    progress_t          at;                // where that is, or the first of two stored together;
                                           // in at.sums.k and .kr what it adds, to all rows but the
                                           // first at.sums.r: those have it
    logic               new_panel;         // first of a panel, or of a part, other than the first
    logic               new_op, ends;      // first, last of its operation
    seq_t               seq;
    tid_t               tid;
  } fold_t;

  // A tile: t rows of nc output columns.
  typedef struct packed {
    tid_t               tid;
    logic               pair;              // stored together with the next
    dim_t               nc;
    rows_t              t;
    logic [31:0]        addr;              // of its first output
    logic [31:0]        ldd;
    logic               out32, quad;       // quad: of four banks it has one to itself
    logic               ends;              // last of its operation
    logic               panel;             // last of its panel,
    logic [31:0]        upto;              // behind which the next one's first output lies
    seq_t               seq;
  } tile_t;

  // What a PE row is fed from: an element's place from the window's first on, in the scratchpad
  // and in the image.
  typedef struct packed {
    spad_t              off;
    reach_t             dy, dx;
  } lane_t;

  // What travels with a row's results: they are real only where v is set.
  typedef struct packed {
    logic               v;
    logic               first, last;       // fold of the tile: begin with zero; requantize
    logic               again;             // the sum has this fold's products
    logic               eof, eot;          // last row of its fold, of its tile
    seq_t               op;                // its operation's number
    tid_t               tid;
    row_t               t;
  } tag_t;

  // How a column's sums become outputs.
  typedef struct packed {
    logic signed [31:0] bias, mult;
    logic signed [6:0]  shift;
  } param_t;

  // F_GROUP: lanes that a window moves on by from row to row, if it does so by whole lanes and not
  // far.
  function automatic logic [1:0] lanes(input conv_op_t of);
    return of.kcin == 16'd1 && of.dx == 4'd1 && of.sx <= 4'd2 ? of.sx[1:0] : 2'd0;
  endfunction

  // Rows of the next panel, of those left, after one of prev rows (0: it is the first).  Panels
  // begin short and double, so that the array starts while the rest of the input is still being
  // loaded; a long operation also ends with a short one, so that little is left to store; and no
  // panel is shorter than the array is high, unless the operation or depth is.
  localparam int Short = 32;               // at 16 rows, weights are then 8 bytes a cycle
  function automatic rows_t panel(input logic [19:0] left, input rows_t depth, input rows_t prev);
    logic [11:0] want;
    logic [19:0] cap;
    want = prev == 0 ? 12'(Short) : {prev, 1'b0};
    cap  = want < 12'(depth) ? 20'(want) : 20'(depth);
    if (left >= cap + 20'(Short)) return rows_t'(cap);
    else if (left <= 20'(depth)) return rows_t'(left >= 20'(2 * Short) ? left - 20'(Short) : left);
    else if (left < cap << 1) return rows_t'((left + 20'd1) >> 1);
    else return rows_t'(cap);
  endfunction
endpackage
