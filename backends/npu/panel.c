/* SPDX-License-Identifier: Apache-2.0 */
/* panel.c - panels, cut as the machine cuts them, with what each waits for. */
#include "panel.h"

#include "npu_regs.h"

#define PES        16u  /* rows and columns of PEs */
#define PRICE      8u   /* a cycle for so many folds: others wait behind weights, too */
#define LATE       3u   /* cycles of a line that the array waits for */
#define WORTH      512u /* shorter panels spare at least this part */
#define NEVER      UINT64_MAX /* a panel does not fit */
#define GAIN       32u        /* K is cut where that spares such a part, */
#define LONGER     128u       /* into shorter parts where that spares such a one */
#define ROW_OPEN   16u        /* cycles of a channel that another row of memory takes */
#define PAGE       1024u      /* bytes that a translation is of, where none are chosen */
#define KEPT       1024u      /* translations that a slot keeps */
#define LINE_PAGES 16u        /* that a walk brings, at most */
#define WALK       30u        /* cycles that a walk which reads its table holds one up */
#define WALK_B     64u        /* the same of weights, for which the array waits */

uint32_t npu_panel_skip(struct npu_windows *in, uint64_t *lda)
{
	uint32_t above, first;

	if (in->reach != 1 || in->sy == 1 || *lda > UINT32_MAX / in->sy)
		return 0;
	above = (in->pt + in->sy - 1) / in->sy;
	first = above * in->sy - in->pt;
	in->h = in->h > first ? (in->h - first - 1) / in->sy + 1 : 0;
	in->pt = above;
	*lda *= in->sy;
	in->sy = 1;
	return first;
}

static uint32_t tiles(uint32_t a)
{
	return (a + PES - 1) / PES;
}

static uint64_t at_least(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Input rows that the scratchpad holds at a time. */
static uint32_t held(const struct npu_panel_op *o, uint32_t sps)
{
	uint64_t row = o->pitch.row_bytes, rows;

	if (row > NPU_SPAD_USE)
		return 0;
	rows = (NPU_SPAD_USE - row) / sps + 1;
	return rows < o->in.h ? (uint32_t)rows : o->in.h;
}

static bool fits(const struct npu_panel_op *o, uint32_t depth, uint32_t room)
{
	for (uint32_t m0 = 0, t = 0; m0 < o->m; m0 += t) {
		t = npu_panel_next(o->m - m0, depth, t);
		if (npu_panel_rows(&o->in, m0, t).count > room)
			return false;
	}
	return true;
}

/* Input rows on their way into the scratchpad. */
struct loader {
	uint64_t row, at; /* time a row takes; when the last of them was there */
	uint32_t rows;
};

static void load(struct loader *l, uint32_t rows, uint64_t not_before, uint32_t line)
{
	if (rows <= l->rows)
		return;
	l->at = at_least(l->at, not_before) + (rows - l->rows) * l->row * line;
	l->rows = rows;
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Whether tiles are of so few folds that two are stored side by side. */
static bool pairs(const struct npu_panel_op *o)
{
	return o->depth != NPU_DEPTH_OUT32 && o->k <= 2 * PES;
}

/* Cycles that a panel's tiles have memory for: a row of weights in each, which is a beat,
 * a sixteenth more for changes of rows; parameters, two columns' each; outputs of up to
 * 32 bytes.  (By requests, two rows of weights each, panels are longer, and memory of
 * half a beat a cycle slower by a tenth.) */
static uint64_t busy_port(const struct npu_panel_op *o, uint32_t t)
{
	uint64_t stores = t;

	if (o->depth == NPU_DEPTH_OUT32)
		stores = 2 * (uint64_t)t;
	else if (pairs(o))
		stores = (t + 1) / 2;
	return tiles(o->n) * (o->k + o->k / 16 + PES / 2 + stores);
}

/* Tiles, or two that are stored side by side: when the array has done the last, when that
 * and the one before it are stored. */
struct outputs {
	uint64_t end, stored, before;
};

/* So many more, each of which the array has for so long and stores for so long.  A tile
 * has its place when the one before the last is stored. */
static void compute(struct outputs *out, uint32_t count, uint64_t array, uint64_t store)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t left = count - i;

		if (i == 2) { /* from here on all are like this */
			uint64_t each = at_least(array, store);

			out->end += left * each;
			out->stored += left * each;
			out->before = out->stored - each;
			return;
		}
		out->end = at_least(out->end, out->before) + array;
		out->before = out->stored;
		out->stored = at_least(out->stored, out->end) + store;
	}
}

/* Cycles of the walks where a piece of each of so many rows is loaded or stored, and then
 * the next of each.  Each row has pages of its own until all have been passed, and a walk
 * brings what lies behind them, too; rows further apart than that meet in twice as many
 * places. */
static uint64_t walks(uint64_t rows, uint64_t stride)
{
	uint64_t far = (uint64_t)LINE_PAGES * PAGE;
	uint64_t wanted = rows * (stride > far ? 2 * far : stride) / PAGE;

	return wanted > KEPT ? rows * WALK * (wanted - KEPT) / wanted : 0;
}

/* Return the cycles in which the array waits for walks while a tile's weights are loaded
 * row by row.  Each tile of columns touches the pages of all k rows.  If these are more
 * than a slot keeps, each tile walks for them again, once for the pages of a line. */
static uint64_t weight_walks(const struct npu_panel_op *o)
{
	uint64_t far = (uint64_t)LINE_PAGES * PAGE;
	uint64_t pages = o->k * o->ldb / PAGE;
	uint64_t lines = o->ldb > far ? o->k : pages / LINE_PAGES;

	return pages > KEPT ? lines * WALK_B : 0;
}

/* Cycles in which a tile's rows are stored. */
static uint64_t store_cycles(const struct npu_panel_op *o, uint32_t t)
{
	return t * (o->depth == NPU_DEPTH_OUT32 ? UINT64_C(2) : 1) + walks(t, o->ldd);
}

/* When the last of the panels of at most depth rows leaves the array, in cycles times
 * read.rows.  A row is loaded when the panel from whose first row on it has room begins.
 * Gives up at limit. */
static uint64_t cost(const struct npu_panel_op *o, uint32_t depth, uint32_t room,
		     struct npu_pitch_cost read, uint64_t limit)
{
	uint64_t folds = (uint64_t)tiles(o->k) * tiles(o->n), begin = 0;
	uint32_t units = pairs(o) ? (tiles(o->n) + 1) / 2 : tiles(o->n);
	struct outputs out = {0};
	uint64_t lines = (o->pitch.row_bytes + 63) / 64;
	struct loader l = {.row = lines * read.rows};
	uint32_t before = 0, now = room; /* rows that have room */

	for (uint32_t m0 = 0, t = 0; m0 < o->m; m0 += t) {
		struct npu_rows in;
		uint64_t stream, port, busy;

		t = npu_panel_next(o->m - m0, depth, t);
		in = npu_panel_rows(&o->in, m0, t);
		port = busy_port(o, t) * read.rows;
		if (in.count) {
			uint32_t need = in.first + in.count;

			if (m0 && need > l.rows)
				port += (need - l.rows) * l.row;
			load(&l, lesser(need, before), 0, 1);
			load(&l, lesser(need, now), begin, 1);
			load(&l, need, out.end, LATE);
			before = now;
			now = in.first + room;
		}
		stream = t * (uint64_t)read.cycles;
		begin = out.end;
		if (l.at > begin + stream) /* its first rows need not wait for its last */
			begin = l.at - stream;
		busy = at_least(folds * stream, port) + folds * read.rows / PRICE +
		       tiles(o->n) * weight_walks(o) * read.rows;
		out.end = begin;
		compute(&out, units, busy / units, store_cycles(o, t) * read.rows);
		if (out.end >= limit)
			return NEVER;
	}
	return out.end;
}

/* The best panels at this distance, if better than best: the longest are tried first. */
static void try_distance(const struct npu_panel_op *o, uint32_t sps,
			 struct npu_panel *best)
{
	const struct npu_pitch_cost read = npu_pitch_cost(&o->pitch, sps);
	uint64_t folds = (uint64_t)tiles(o->k) * tiles(o->n);
	uint64_t least = folds * o->m * read.cycles;
	uint64_t limit = best->cost - best->cost / WORTH;
	uint32_t room = held(o, sps);
	uint32_t depth = lesser(o->depth, o->m);

	for (; depth && least < limit; depth -= 1 + depth / 64) {
		uint32_t half = lesser(depth, NPU_DEPTH_PAIR);
		uint64_t end;

		if (depth < NPU_PANEL_SHORT && best->rows >= NPU_PANEL_SHORT)
			break; /* weights again and again */
		/* Some rectangles take half the depth. */
		if (!fits(o, depth, room) || (half < depth && !fits(o, half, room)))
			continue;
		end = cost(o, pairs(o) ? half : depth, room, read, limit);
		if (end == NEVER)
			continue;
		*best = (struct npu_panel){.rows = depth, .sps = sps, .cost = end};
		limit = end - end / WORTH;
	}
}

struct npu_panel npu_panel_choose(const struct npu_panel_op *o)
{
	uint64_t least = npu_pitch_least(o->pitch.row_bytes, o->pitch.lda);
	uint32_t mask = (1u << NPU_DESC_SPS_W) - 1; /* more than that never fits */
	uint32_t tries = o->in.h > 1 ? npu_pitch_tries(&o->pitch) : 1;
	struct npu_panel best = {.cost = NEVER};

	for (uint32_t i = 0; i < tries; i++) {
		uint32_t sps = (uint32_t)(least + i * UINT64_C(64)) & mask;

		if (!fits(o, 1, held(o, sps)))
			break;
		try_distance(o, sps, &best);
	}
	return best;
}

/* ---- K in parts -------------------------------------------------------------------------- */

/* Cycles of a row of a part: of four channels two are at work with such rows, each in
 * another row of the memory, which it partly opens while the other is at work. */
static uint64_t piece(uint32_t kcut)
{
	return ((UINT64_C(1) << kcut) / 16 + ROW_OPEN) / 2;
}

/* Cycles of a GEMM that becomes operations of so many rows each, all of whose parts of K
 * are loaded for each tile: while one part is worked at there is room for the next, and
 * the weights lie on other channels than most of its rows. */
static uint64_t cut_cost(const struct npu_panel_op *o, uint32_t rows, uint32_t kcut)
{
	uint64_t part = UINT64_C(1) << kcut, parts = (o->k + part - 1) / part;
	uint64_t lines = part / 64; /* of a row */
	uint64_t folds = tiles(o->k), array = folds * at_least(rows, PES);
	uint64_t loads = parts * (rows * piece(kcut) + walks(rows, o->pitch.lda));
	uint64_t port = busy_port(o, rows) / tiles(o->n);
	uint64_t each = at_least(array, at_least(port, loads));

	return rows * lines + tiles(o->n) * (each + folds / PRICE + weight_walks(o));
}

struct npu_panel npu_panel_gemm(const struct npu_panel_op *o)
{
	struct npu_panel best = npu_panel_choose(o);
	uint64_t limit = best.rows ? best.cost - best.cost / GAIN : NEVER;

	for (uint32_t kcut = 15; kcut >= NPU_KCUT_LEAST; kcut--) {
		uint32_t sps = npu_panel_cut_sps(kcut);
		uint32_t most = lesser(NPU_SPAD_USE / 2 / sps, o->depth), count, rows;
		uint64_t all;

		if (1u << kcut >= o->k || !most || !o->m)
			continue;
		count = (o->m - 1) / most + 1;
		rows = (o->m + count - 1) / count;
		all = count * cut_cost(o, rows, kcut);
		if (all >= limit)
			continue;
		limit = all - all / LONGER;
		best = (struct npu_panel){
			.rows = rows, .sps = sps, .kcut = kcut, .cost = all};
	}
	return best;
}
