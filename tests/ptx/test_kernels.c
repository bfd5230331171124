/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each kernel of kernels.list runs as it is and rewritten, in the interpreter: all bytes
 * of the result are the same, whenever it is stopped and however often, and in whatever
 * order its blocks run; what is outside the range is neither read nor written.
 *
 * test_kernels [figures|KERNEL]: prints ptx.kernels.*
 * test_kernels -d LIST FOLDER [KERNEL]: the same of other kernels, ptx.cccl.*
 *
 * test_kernels -c [KERNEL]: what the passes cost, counted; cuda.ptx.*
 *
 * With PTX_GPU it is test_ptx_gpu, and they run on a GPU, where a stop comes at any time:
 * ptx.gpu.*; -t [FOLDER]: what the passes cost.  Exit status 77: there is no GPU.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "color.h"
#include "interp.h"
#include "list.h"
#ifdef PTX_GPU
#include "gpu_watch.h"
#define PTX_RUN   gpu_run
#define PTX_EXACT false
#else
#define PTX_RUN   interp_run
#define PTX_EXACT true /* it stops after so many instructions */
#endif

#define KERNELS_MAX  256u
#define BUFFER_BYTES 16384u
#define BLOCKS_MAX   4096u
#define BASE         UINT64_C(0x7f0000000000)
#define OUT          base
#define A            (OUT + BUFFER_BYTES)
#define B            (A + BUFFER_BYTES)
#define CONTROL      (OUT + (1u << 20))
#define LISTS        (OUT + (2u << 20))
#define ASTRAY       (OUT + (3u << 20))
#define FENCED       3u         /* words of parameters that bounds adds */
#define COLORED      4u         /* color */
#define STOPS        5u         /* and entry or loop */
#define EXTENT_MAX   (2u << 20) /* bytes of coloured memory, of all channels */
#define GROUPS       (OUT + (16u << 20))
#define ROUNDS_MAX   20u /* that are stopped */

static uint8_t memory[3 * BUFFER_BYTES], before[3 * BUFFER_BYTES],
	expected[3 * BUFFER_BYTES];
static struct ptx_control control;
static uint32_t lists[2][BLOCKS_MAX], astray;
#define TURNS lists[0] /* of loop */
static char why[PTX_WHY];
static uint64_t base = BASE;
static struct list_kernel kernels[KERNELS_MAX];
static uint32_t count;

/* With .color memory is a window that has nothing but addresses: kernels reach pieces. */
static struct {
	const struct ptx_color *color;
	struct ptx_colors colors;
	uint8_t pieces[EXTENT_MAX];
} colored;

struct totals {
	uint32_t next; /* kernel */
	uint32_t mismatches, rewritten, refused, partway, equal, inside;
	bool differs[KERNELS_MAX];
};
static struct totals here, *total = &here;

/* ---- what kernels work on -------------------------------------------------------------- */

static uint32_t mixed(uint32_t i)
{
	i *= 2654435761u;
	return i ^ i >> 15;
}

static void fill(const struct list_kernel *k)
{
	uint32_t i;

	memset(before, 0, sizeof(before));
	for (i = 0; i < 2 * BUFFER_BYTES / 4; i++) {
		const uint32_t m = mixed(i + 17);
		const float f = (float)((int)(m % 97) - 48) / 32;
		const double d = f;
		int32_t v = (int32_t)(m % 256) - 100;
		uint8_t *p = before + BUFFER_BYTES + 4 * (size_t)i;
		const bool is_b = i >= BUFFER_BYTES / 4;

		if (k->values == 's' && is_b)
			v = (int32_t)(i - BUFFER_BYTES / 4) / 2 - 100;
		if (k->values == 'd' && i < BUFFER_BYTES / 4)
			memcpy(before + BUFFER_BYTES + 8 * (size_t)i, &d, 8);
		else if (k->values == 'h')
			memcpy(p, &(uint16_t){(uint16_t)(m % 0x7000)}, 2);
		else if (k->values == 'f' || (k->values == 'e' && !is_b))
			memcpy(p, &f, 4);
		else if (k->values != 'd')
			memcpy(p, &v, 4);
	}
}

/* ---- launches --------------------------------------------------------------------------- */

struct params {
	uint64_t out, a, b;
	int32_t n, hole;
	uint64_t more[FENCED + COLORED + STOPS];
};

static void raise_stop(void *arg)
{
	(void)arg;
	control.stop = 1;
}

static struct interp_launch launch_of(const struct ptx *m, const struct list_kernel *k,
				      struct params *p, uint32_t more)
{
	static struct interp_region regions[4];
	struct interp_launch l = {.shared_bytes = k->shared_bytes,
				  .params = p,
				  .regions = regions,
				  .region_count = 4,
				  .stop = CONTROL};
	uint32_t i, n;

	regions[0] = (struct interp_region){OUT, memory, sizeof(memory)};
	if (colored.color)
		regions[0] = (struct interp_region){
			GROUPS, colored.pieces,
			ptx_color_extent(colored.color, sizeof(memory))};
	regions[1] = (struct interp_region){CONTROL, &control, sizeof(control)};
	regions[2] = (struct interp_region){LISTS, lists, sizeof(lists)};
	regions[3] = (struct interp_region){ASTRAY, &astray, sizeof(astray)};
	memcpy(l.grid, k->grid, sizeof(l.grid));
	memcpy(l.block, k->block, sizeof(l.block));
	*p = (struct params){.out = OUT, .a = A, .b = B, .n = k->n, .hole = -1};
	l.param_bytes = 32 + 8 * more - (more ? 0 : 4);
	for (i = 0; i < ptx_kernels(m); i++) {
		const char *name = ptx_kernel_name(m, i, &n);

		if (n == strlen(k->name) && memcmp(name, k->name, n) == 0)
			l.kernel = i;
	}
	return l;
}

static void wrong(const struct list_kernel *k, const char *fmt, ...)
{
	va_list ap;

	printf("%s: ", k->name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	total->mismatches++;
}

static bool ran(const struct list_kernel *k, const struct ptx *m, struct interp_launch *l,
		const char *how)
{
	if (PTX_RUN(m, l, why) == 0)
		return true;
	wrong(k, "%s: %s", how, why);
#ifdef PTX_GPU
	gpu_end_if_lost();
#endif
	return false;
}

#define OTHERS 0xc5 /* bytes of other channels */

static void set_memory(void)
{
	size_t i;

	memcpy(memory, before, sizeof(memory));
	if (!colored.color)
		return;
	memset(colored.pieces, OTHERS, sizeof(colored.pieces));
	for (i = 0; i < sizeof(memory); i++)
		colored.pieces[ptx_color_place(colored.color, &colored.colors, i)] =
			memory[i];
}

/* What is in memory now.  It leaves pieces without that. */
static void get_memory(const struct list_kernel *k, const char *how)
{
	static uint8_t rest[EXTENT_MAX];
	size_t i;

	if (!colored.color)
		return;
	memcpy(rest, colored.pieces, sizeof(rest));
	for (i = 0; i < sizeof(memory); i++) {
		const uint64_t at = ptx_color_place(colored.color, &colored.colors, i);

		memory[i] = rest[at];
		rest[at] = OTHERS;
	}
	for (i = 0; i < sizeof(rest) && rest[i] == OTHERS; i++)
		;
	if (i < sizeof(rest))
		wrong(k, "%s: byte %zu of other channels is written", how, i);
}

static void same(const struct list_kernel *k, const char *how)
{
	size_t i;

	get_memory(k, how);
	for (i = 0; i < sizeof(memory) && memory[i] == expected[i]; i++)
		;
	if (i < sizeof(memory))
		wrong(k, "%s: byte %zu is other than without", how, i);
}

static uint64_t blocks_of(const struct list_kernel *k)
{
	return (uint64_t)k->grid[0] * k->grid[1] * k->grid[2];
}

/* Nothing has gone astray yet. */
static void put_range(struct params *p, uint64_t from, uint64_t bytes)
{
	p->more[0] = from;
	p->more[1] = bytes;
	p->more[2] = ASTRAY;
	astray = 0;
}

/* more: which of the words are entry's or loop's. */
static void put_launch(const struct list_kernel *k, struct params *p, uint32_t more,
		       const struct ptx_launch *launch)
{
	struct ptx_launch l = *launch;

	l.control = CONTROL;
	memcpy(l.grid, k->grid, sizeof(l.grid));
	memcpy(&p->more[more], &l, sizeof(l));
}

/* They are in front of entry's or loop's. */
static void put_colors(struct params *p, uint32_t more)
{
	if (!colored.color || more < COLORED)
		return;
	ptx_color_window(colored.color, &colored.colors, OUT, sizeof(memory), GROUPS);
	memcpy(&p->more[more - COLORED], &colored.colors, sizeof(colored.colors));
}

static void told(const struct list_kernel *k, uint32_t want, const char *how)
{
	if (astray != want)
		wrong(k, "%s: that it went astray is %u, not %u", how, astray, want);
}

static void run_entry(const struct ptx *m, const struct list_kernel *k, uint32_t more,
		      uint64_t tick, uint64_t seed, const char *how)
{
	struct ptx_launch launch = {.to = LISTS};
	struct params p;
	uint32_t round, to = 0;

	set_memory();
	memset(lists, 0xee, sizeof(lists));
	control = (struct ptx_control){.stop = tick == 1};
	for (round = 0;; round++) {
		struct interp_launch l = launch_of(m, k, &p, more + STOPS);

		put_range(&p, OUT, sizeof(memory));
		put_colors(&p, more);
		put_launch(k, &p, more, &launch);
		l.seed = seed + round;
		l.tick = tick;
		l.at_tick = raise_stop;
		if (launch.count) {
			l.grid[0] = launch.count;
			l.grid[1] = l.grid[2] = 1;
		}
		if (!ran(k, m, &l, how))
			return;
		if (!control.stopped)
			break;
		if (control.stopped > (launch.count ? launch.count : blocks_of(k))) {
			wrong(k, "%s: %u blocks stopped", how, control.stopped);
			return;
		}
		total->partway += control.stopped < l.grid[0] * l.grid[1] * l.grid[2];
		/* A later round is stopped later; it gets somewhere. */
		tick = tick == 1 || round == ROUNDS_MAX ? 0 : 2 * tick;
		launch.count = control.stopped;
		launch.from = LISTS + sizeof(lists[0]) * to;
		to = 1 - to;
		launch.to = LISTS + sizeof(lists[0]) * to;
		control.stopped = control.stop = 0;
	}
	if (tick && !round && seed && PTX_EXACT)
		wrong(k, "%s: nothing was stopped", how);
	same(k, how);
}

/* Stopped in the middle of the first block each time: blocks get to their ends all the
 * same. */
static void run_restarts(const struct ptx *m, const struct list_kernel *k, uint64_t tick,
			 const char *how)
{
	struct ptx_launch launch = {.to = LISTS};
	const uint64_t blocks = blocks_of(k);
	struct params p;
	uint32_t round, to = 0;

	set_memory();
	control.stopped = 1;
	for (round = 0; control.stopped; round++) {
		struct interp_launch l = launch_of(m, k, &p, STOPS);

		put_launch(k, &p, 0, &launch);
		control = (struct ptx_control){0};
		l.tick = tick;
		l.at_tick = raise_stop;
		if (launch.count) {
			l.grid[0] = launch.count;
			l.grid[1] = l.grid[2] = 1;
		}
		if (!ran(k, m, &l, how))
			return;
		launch.count = control.stopped;
		launch.from = LISTS + sizeof(lists[0]) * to;
		to = 1 - to;
		launch.to = LISTS + sizeof(lists[0]) * to;
		if (round > blocks + 1) {
			wrong(k, "%s: %u of %u blocks are left after %u launches", how,
			      control.stopped, (uint32_t)blocks, round);
			return;
		}
	}
	same(k, how);
}

/* All are stopped; two launches run what is left. */
static void run_halves(const struct ptx *m, const struct list_kernel *k, uint32_t more,
		       const char *how)
{
	static bool seen[BLOCKS_MAX];
	const uint32_t blocks = (uint32_t)blocks_of(k), half = (blocks + 1) / 2;
	const uint32_t first[] = {0, 0, half}, end[] = {blocks, half, blocks};
	struct ptx_launch launch = {.to = LISTS};
	struct params p;
	uint32_t i, part;

	set_memory();
	memset(lists, 0xee, sizeof(lists));
	memset(seen, 0, sizeof(seen));
	control = (struct ptx_control){.stop = 1};
	for (part = 0; part < 3; part++) {
		struct interp_launch l = launch_of(m, k, &p, more + STOPS);
		const uint32_t n = end[part] - first[part];

		put_range(&p, OUT, sizeof(memory));
		put_colors(&p, more);
		l.seed = 3 + part;
		if (part && !n)
			continue;
		if (part) {
			control.stop = control.stopped = 0;
			launch.from = LISTS + sizeof(uint32_t) * first[part];
			launch.count = l.grid[0] = n;
			l.grid[1] = l.grid[2] = 1;
		}
		put_launch(k, &p, more, &launch);
		if (!ran(k, m, &l, how))
			return;
		if (control.stopped != (part ? 0 : blocks)) {
			wrong(k, "%s: %u blocks stopped in launch %u", how,
			      control.stopped, part);
			return;
		}
		if (part)
			continue;
		get_memory(k, how);
		if (memcmp(memory, before, sizeof(memory)) != 0)
			wrong(k, "%s: a stopped block has written", how);
	}
	for (i = 0; i < blocks; i++) {
		if (lists[0][i] >= blocks || seen[lists[0][i]]) {
			wrong(k, "%s: the list has %u", how, lists[0][i]);
			return;
		}
		seen[lists[0][i]] = true;
	}
	same(k, how);
}

/* Launches of some blocks in a row each; what of them is stopped, then as a list.  Return
 * how many that were. */
static uint32_t run_slices(const struct ptx *m, const struct list_kernel *k,
			   uint32_t more, uint64_t tick, const char *how)
{
	const uint32_t blocks = (uint32_t)blocks_of(k), size = (blocks + 2) / 3;
	uint32_t first, listed = 0;
	struct ptx_launch launch;
	struct params p;

	set_memory();
	memset(lists, 0xee, sizeof(lists));
	for (first = 0; first < blocks + size; first += size) {
		struct interp_launch l = launch_of(m, k, &p, more + STOPS);
		const uint32_t n = size < blocks - first ? size : blocks - first;

		if (first < blocks)
			launch = (struct ptx_launch){.from = first,
						     .count = n | PTX_LAUNCH_RUN,
						     .to = LISTS +
							   sizeof(uint32_t) * listed};
		else if (listed)
			launch = (struct ptx_launch){.from = LISTS,
						     .count = listed,
						     .to = LISTS + sizeof(lists[0])};
		else
			break;
		put_range(&p, OUT, sizeof(memory));
		put_colors(&p, more);
		put_launch(k, &p, more, &launch);
		control = (struct ptx_control){0};
		l.grid[0] = launch.count & ~PTX_LAUNCH_RUN;
		l.grid[1] = l.grid[2] = 1;
		l.seed = first;
		l.tick = first < blocks ? tick : 0;
		l.at_tick = raise_stop;
		if (!ran(k, m, &l, how))
			return listed;
		if (control.stopped > l.grid[0] || (!l.tick && control.stopped)) {
			wrong(k, "%s: %u blocks stopped", how, control.stopped);
			return listed;
		}
		listed += control.stopped;
	}
	total->partway += listed != 0;
	same(k, how);
	return listed;
}

/* A launch in front has been stopped, and has not written what this one reads: all of it
 * is stopped, too, does nothing, and reaches for nothing that is not there. */
static void run_stale(const struct ptx *m, const struct list_kernel *k, uint32_t more,
		      const char *how)
{
	const struct ptx_launch launch = {.to = LISTS};
	static const uint8_t bytes[] = {0x00, 0xff, 0x7f};
	struct params p;
	struct interp_launch l;
	uint32_t i;
	size_t j;

	for (i = 0; i < sizeof(bytes); i++) {
		memset(memory, bytes[i], sizeof(memory));
		control = (struct ptx_control){.stop = 1};
		l = launch_of(m, k, &p, more + STOPS);
		put_range(&p, OUT, sizeof(memory));
		put_colors(&p, more);
		put_launch(k, &p, more, &launch);
		if (!ran(k, m, &l, how))
			return;
		for (j = 0; j < sizeof(memory) && memory[j] == bytes[i]; j++)
			;
		if (control.stopped != blocks_of(k) || j < sizeof(memory))
			wrong(k, "%s: %u of the blocks have stopped, byte %zu is written",
			      how, control.stopped, j);
	}
}

/* turns: how many blocks of the grid are run in turns.  Each launch has another number of
 * blocks that share them. */
static void run_loop(const struct ptx *m, const struct list_kernel *k, uint32_t more,
		     uint32_t turns, uint64_t tick, const char *how)
{
	struct params p;
	uint32_t round, i;

	set_memory();
	memset(lists, 0, sizeof(lists));
	for (round = 0;; round++) {
		const struct ptx_launch launch = {
			.from = LISTS, .to = blocks_of(k), .count = turns};
		struct interp_launch l = launch_of(m, k, &p, more + STOPS);

		put_range(&p, OUT, sizeof(memory));
		put_colors(&p, more);
		put_launch(k, &p, more, &launch);
		l.grid[0] = round ? 1 + round % 4 : turns;
		l.grid[1] = l.grid[2] = 1;
		l.seed = round;
		l.tick = tick;
		l.at_tick = raise_stop;
		control = (struct ptx_control){.stop = tick == 1 && !round};
		if (!ran(k, m, &l, how))
			return;
		get_memory(k, how);
		if (!round && tick == 1 &&
		    (control.stopped != turns ||
		     memcmp(memory, before, sizeof(memory)) != 0))
			wrong(k, "%s: %u blocks have stopped", how, control.stopped);
		if (!control.stopped)
			break;
		total->partway += round > 0;
		tick = tick == 1 || round == ROUNDS_MAX ? 0 : 2 * tick;
	}
	if (tick && !round && PTX_EXACT)
		wrong(k, "%s: nothing was stopped", how);
	for (i = 0; i < turns; i++)
		if (TURNS[i] != (blocks_of(k) - i + turns - 1) / turns)
			wrong(k, "%s: %u turns of %u done", how, TURNS[i], i);
	same(k, how);
}

/* ---- a kernel --------------------------------------------------------------------------- */

static bool expects(const struct list_kernel *k, enum ptx_pass pass)
{
	if (pass == PTX_RESTART)
		pass = PTX_ENTRY;
	return strstr(k->refused, ptx_pass_name(pass)) != NULL;
}

static struct ptx *pass_over(const struct ptx *m, const struct list_kernel *k,
			     enum ptx_pass pass)
{
	struct params p;
	const uint32_t kernel = launch_of(m, k, &p, 0).kernel;
	struct ptx *out = NULL;
	char *text = NULL;
	size_t bytes = 0;
	bool which[KERNELS_MAX] = {false};

	which[kernel] = true;
	if (ptx_rewrite(m, pass, which, &text, &bytes, why)) {
		if (!expects(k, pass))
			wrong(k, "%s: refused: %s", ptx_pass_name(pass), why);
		total->refused++;
		return NULL;
	}
	total->rewritten++;
	if (expects(k, pass))
		wrong(k, "%s: was to be refused", ptx_pass_name(pass));
	if (ptx_parse(text, bytes, &out, why)) {
		wrong(k, "%s: what came out is no PTX: %s", ptx_pass_name(pass), why);
		out = NULL;
	}
	free(text);
	return out;
}

static void run_bounds(const struct ptx *m, const struct ptx *old,
		       const struct list_kernel *k)
{
	struct params p;
	struct interp_launch l = launch_of(m, k, &p, FENCED);
	bool needs_b;

	put_range(&p, OUT, sizeof(memory));
	memcpy(memory, before, sizeof(memory));
	if (ran(k, m, &l, "bounds"))
		same(k, "bounds");
	told(k, 0, "bounds");

	/* B is outside: it reads as 0. */
	memcpy(memory, before, sizeof(memory));
	memset(memory + (B - OUT), 0, BUFFER_BYTES);
	l = launch_of(old, k, &p, 0);
	if (!ran(k, old, &l, "with zeros"))
		return;
	needs_b = memcmp(memory, expected, BUFFER_BYTES) != 0;
	memcpy(expected, memory, sizeof(memory));
	memcpy(expected + (B - OUT), before + (B - OUT), BUFFER_BYTES);
	memcpy(memory, before, sizeof(memory));
	l = launch_of(m, k, &p, FENCED);
	put_range(&p, OUT, B - OUT);
	if (ran(k, m, &l, "bounds, b outside"))
		same(k, "bounds, b outside");
	if (needs_b)
		told(k, 1, "bounds, b outside");

	/* The result is outside: it stays. */
	memcpy(expected, before, sizeof(memory));
	memcpy(memory, before, sizeof(memory));
	l = launch_of(m, k, &p, FENCED);
	put_range(&p, A, 2 * BUFFER_BYTES);
	if (ran(k, m, &l, "bounds, out outside"))
		same(k, "bounds, out outside");
	told(k, 1, "bounds, out outside");
}

/* What the interpreter makes of it: its approximate instructions are not a GPU's. */
static void compare(const struct ptx *m, const struct list_kernel *k)
{
#ifdef PTX_GPU
	const uint64_t there = base;
	struct params p;
	struct interp_launch l;
	size_t i, words = 0;
	double most = 0;

	base = BASE;
	l = launch_of(m, k, &p, 0);
	memcpy(memory, before, sizeof(memory));
	if (interp_run(m, &l, why))
		wrong(k, "in the interpreter: %s", why);
	base = there;
	for (i = 0; i < sizeof(memory); i += 4) {
		float x, y;

		if (memcmp(memory + i, expected + i, 4) == 0)
			continue;
		words++;
		memcpy(&x, memory + i, 4);
		memcpy(&y, expected + i, 4);
		most = fmax(most, fabs(x - y) / fmax(fabs(x), fabs(y)));
	}
	total->equal += words == 0;
	total->differs[k - kernels] = words != 0;
	if (words)
		printf("%s: %zu words are not the interpreter's", k->name, words);
	if (words && strchr("fe", k->values))
		printf(", floats by at most %.2g of them", most);
	if (words)
		printf("\n");
#else
	(void)m;
	(void)k;
#endif
}

static uint64_t run_plain(const struct ptx *m, const struct list_kernel *k)
{
	struct params p;
	struct interp_launch l = launch_of(m, k, &p, 0);

	memcpy(memory, before, sizeof(memory));
	if (!ran(k, m, &l, "as it is"))
		return 0;
	if (memcmp(memory, before, BUFFER_BYTES) == 0)
		wrong(k, "has no result");
	memcpy(expected, memory, sizeof(memory));
	l = launch_of(m, k, &p, 0);
	l.seed = 5;
	memcpy(memory, before, sizeof(memory));
	if (!ran(k, m, &l, "in another order"))
		return 0;
	same(k, "in another order");
	compare(m, k);
	return l.steps;
}

static uint32_t turns_of(const struct list_kernel *k, uint32_t most)
{
	return blocks_of(k) < most ? (uint32_t)blocks_of(k) : most;
}

/* ---- colours ---------------------------------------------------------------------------- */

/* Maps: one channel of two by a parity of many bits, as the sides of a cache are; of
 * eight, one and four together; pieces at the same place in each group; a sum modulo 5
 * and modulo 3 as well. */
static const struct {
	struct ptx_color_map map;
	uint32_t first, count;
} maps[] = {
	{{.granule = 4096, .mask_count = 1, .mask = {0xb3}}, 1, 1},
	{{.granule = 1024, .mask_count = 3, .mask = {0x59, 0x2e, 0x74}}, 5, 1},
	{{.granule = 512, .mask_count = 3, .mask = {0x59, 0x2e, 0x74}}, 4, 4},
	{{.granule = 1024, .mask_count = 2, .mask = {1, 2}}, 2, 2},
	{{.granule = 256, .mask_count = 2, .mask = {1, 2}}, 3, 1},
	{{.granule = 1024,
	  .mask_count = 1,
	  .mask = {0x29},
	  .q = 5,
	  .shift = 1,
	  .digits = 4,
	  .weight = {3, 1, 4, 2}},
	 7,
	 1},
	{{.granule = 256,
	  .mask_count = 2,
	  .mask = {0x15, 0x2a},
	  .q = 3,
	  .shift = 2,
	  .digits = 5,
	  .weight = {2, 1, 1, 2, 1}},
	 6,
	 2},
};
#define MAPS (sizeof(maps) / sizeof(maps[0]))

/* NULL: refused. */
static struct ptx *color_over(const struct ptx *m, const struct list_kernel *k)
{
	struct params p;
	struct ptx *out = NULL;
	char *text = NULL;
	size_t bytes = 0;
	bool which[KERNELS_MAX] = {false};

	which[launch_of(m, k, &p, 0).kernel] = true;
	if (ptx_rewrite_color(m, colored.color, which, &text, &bytes, why)) {
		if (!expects(k, PTX_COLOR))
			wrong(k, "color: refused: %s", why);
		return NULL;
	}
	if (expects(k, PTX_COLOR))
		wrong(k, "color: was to be refused");
	if (ptx_parse(text, bytes, &out, why)) {
		wrong(k, "color: what came out is no PTX: %s", why);
		out = NULL;
	}
	free(text);
	return out;
}

static void run_colored(const struct ptx *m, const struct list_kernel *k)
{
	struct params p;
	struct interp_launch l = launch_of(m, k, &p, COLORED);

	set_memory();
	put_colors(&p, COLORED);
	if (ran(k, m, &l, "color"))
		same(k, "color");
}

/* With each map; with other passes by one of them. */
static void run_colors(const struct ptx *m, const struct ptx *bounds,
		       const struct list_kernel *k, uint64_t steps)
{
	struct ptx_color color;
	struct ptx *c, *fenced, *over;
	uint32_t i;

	for (i = 0; i < MAPS; i++) {
		colored.color = &color;
		if (ptx_color_make(&maps[i].map, maps[i].first, maps[i].count, &color,
				   &colored.colors, why)) {
			wrong(k, "map %u: %s", i, why);
			break;
		}
		c = color_over(m, k);
		if (!i) {
			total->refused += !c;
			total->rewritten += c != NULL;
		}
		if (c && ptx_color_extent(&color, sizeof(memory)) <= EXTENT_MAX)
			run_colored(c, k);
		if (c && i == (uint32_t)(k - kernels) % MAPS) {
			fenced = bounds ? color_over(bounds, k) : NULL;
			over = fenced && !expects(k, PTX_ENTRY)
				       ? pass_over(fenced, k, PTX_ENTRY)
				       : NULL;
			if (over) {
				total->rewritten--;
				run_entry(over, k, FENCED + COLORED, 2 * steps / 5 + 1, 7,
					  "bounds, color and entry, stopped");
				run_halves(over, k, FENCED + COLORED,
					   "bounds, color and entry, the list in two");
			}
			ptx_free(over);
			over = expects(k, PTX_LOOP) ? NULL : pass_over(c, k, PTX_LOOP);
			if (over) {
				total->rewritten--;
				run_loop(over, k, COLORED, turns_of(k, 2),
					 2 * steps / 5 + 1, "color and loop, stopped");
			}
			ptx_free(over);
			ptx_free(fenced);
		}
		ptx_free(c);
	}
	colored.color = NULL;
}

static void run_kernel(const struct ptx *m, const struct list_kernel *k)
{
	struct ptx *entry = pass_over(m, k, PTX_ENTRY), *loop = pass_over(m, k, PTX_LOOP);
	struct ptx *restart = pass_over(m, k, PTX_RESTART);
	struct ptx *bounds = pass_over(m, k, PTX_BOUNDS), *both = NULL, *looped = NULL;
	const uint64_t steps = run_plain(m, k);
	uint64_t tick;

	if (bounds && !expects(k, PTX_ENTRY)) {
		both = pass_over(bounds, k, PTX_ENTRY);
		total->rewritten--; /* counted already */
	}
	if (steps && entry) {
		run_entry(entry, k, 0, 0, 0, "entry");
		run_entry(entry, k, 0, 1, 1, "entry, stopped at once");
		/* While a block looks: some of its threads see the flag. */
		for (tick = 5; tick < 200; tick += 37)
			run_entry(entry, k, 0, tick, 1, "entry, stopped as it begins");
		run_entry(entry, k, 0, steps / 3 + 1, 3, "entry, stopped");
		run_entry(entry, k, 0, steps / 7 + 1, 11, "entry, stopped more often");
		run_halves(entry, k, 0, "entry, the list in two");
		run_slices(entry, k, 0, 0, "entry, in slices");
		run_slices(entry, k, 0, steps / 5 + 1, "entry, slices stopped");
		run_stale(entry, k, 0, "entry, behind one that was stopped");
	}
	if (steps && restart) {
		run_entry(restart, k, 0, 0, 0, "restart");
		run_entry(restart, k, 0, steps / 3 + 1, 3, "restart, stopped");
		/* In the middle of blocks. */
		for (tick = steps / 40 + 7; tick < 2 * steps / 5; tick += steps / 11 + 3)
			run_entry(restart, k, 0, tick, 5, "restart, stopped anywhere");
		run_restarts(restart, k, steps / blocks_of(k) / 4 + 1,
			     "restart, stopped each time");
		run_halves(restart, k, 0, "restart, the list in two");
		run_slices(restart, k, 0, 0, "restart, in slices");
		total->inside +=
			run_slices(restart, k, 0, steps / 9 + 1,
				   "restart, slices stopped") >
			(entry ? run_slices(entry, k, 0, steps / 9 + 1, "entry, slices")
			       : UINT32_MAX);
		run_stale(restart, k, 0, "restart, behind one that was stopped");
	}
	if (steps && loop) {
		run_loop(loop, k, 0, turns_of(k, 3), 0, "loop");
		run_loop(loop, k, 0, turns_of(k, 2), 1, "loop, stopped at once");
		run_loop(loop, k, 0, turns_of(k, 3), steps / 3 + 1, "loop, stopped");
		run_loop(loop, k, 0, turns_of(k, 2), steps / 7 + 1,
			 "loop, stopped more often");
	}
	if (steps && bounds && !expects(k, PTX_LOOP)) {
		looped = pass_over(bounds, k, PTX_LOOP);
		total->rewritten--;
	}
	if (looped)
		run_loop(looped, k, FENCED, turns_of(k, 2), steps / 5 + 1,
			 "bounds and loop, stopped");
	if (steps && both) {
		run_entry(both, k, FENCED, steps / 5 + 1, 7, "bounds and entry, stopped");
		run_halves(both, k, FENCED, "bounds and entry, the list in two");
		run_slices(both, k, FENCED, steps / 8 + 1, "bounds and entry, in slices");
		run_stale(both, k, FENCED, "bounds and entry, behind a stopped one");
	}
	if (steps && PTX_EXACT)
		run_colors(m, bounds, k, steps);
	if (steps && bounds)
		run_bounds(bounds, m, k);
	ptx_free(entry);
	ptx_free(loop);
	ptx_free(bounds);
	ptx_free(both);
	ptx_free(looped);
	ptx_free(restart);
}

#ifndef PTX_GPU
/* ---- what a pass costs ------------------------------------------------------------------ */

/* Of kernels that nothing stops. */
struct costs {
	double instructions; /* of a thread for each of its blocks, the sum over kernels
			      */
	double accesses;     /* of global memory, of a block, the sum over kernels */
	uint32_t kernels;
};
static struct costs entry_costs, loop_costs, restart_costs;
static bool counts;

static void add_cost(const struct list_kernel *k, const char *pass, struct costs *c,
		     const struct interp_launch *with,
		     const struct interp_launch *without)
{
	const double blocks = (double)blocks_of(k);
	const double threads = blocks * k->block[0] * k->block[1] * k->block[2];
	const double more =
		(double)(with->instructions - without->instructions) / threads;

	printf("%s %s: %.2f instructions a thread and block, %.3f times; %.1f accesses a "
	       "block\n",
	       k->name, pass, more,
	       (double)with->instructions / (double)without->instructions,
	       (double)(with->accesses - without->accesses) / blocks);
	if (strcmp(k->name, "axpy") == 0 || strcmp(k->name, "gemm_tiled") == 0)
		printf("figure cuda.ptx.%s.%s_ratio %.3f\n", pass, k->name,
		       (double)with->instructions / (double)without->instructions);
	c->instructions += more;
	c->accesses += (double)(with->accesses - without->accesses) / blocks;
	c->kernels++;
}

/* How much of a block runs after the flag was set at a fifth of it; only of kernels in
 * which that is less than the rest. */
static double restart_shares;

static void count_restart(const struct ptx *restart, const struct list_kernel *k,
			  const struct interp_launch *plain)
{
	struct params p;
	struct interp_launch l = launch_of(restart, k, &p, STOPS);
	uint64_t steps;
	double share;

	put_launch(k, &p, 0, &(struct ptx_launch){.to = LISTS});
	control = (struct ptx_control){0};
	memcpy(memory, before, sizeof(memory));
	l.only = 1;
	if (!ran(k, restart, &l, "restart"))
		return;
	steps = l.steps;
	l.tick = steps / 5 + 1;
	l.at_tick = raise_stop;
	memcpy(memory, before, sizeof(memory));
	if (!ran(k, restart, &l, "restart"))
		return;
	share = (double)(l.steps - l.tick) / (double)steps;
	if (!control.stopped)
		return;
	printf("%s restart: %.3f of a block runs after the flag\n", k->name, share);
	if (strcmp(k->name, "gemm_tiled") == 0)
		printf("figure cuda.ptx.restart.gemm_tiled_share %.3f\n", share);
	restart_shares += share;
	control = (struct ptx_control){0};
	memcpy(memory, before, sizeof(memory));
	l = launch_of(restart, k, &p, STOPS);
	put_launch(k, &p, 0, &(struct ptx_launch){.to = LISTS});
	if (ran(k, restart, &l, "restart"))
		add_cost(k, "restart", &restart_costs, &l, plain);
}

static void count_kernel(const struct ptx *m, const struct list_kernel *k)
{
	struct ptx *entry = pass_over(m, k, PTX_ENTRY), *loop = pass_over(m, k, PTX_LOOP);
	struct ptx *restart = pass_over(m, k, PTX_RESTART);
	struct params p;
	struct interp_launch plain = launch_of(m, k, &p, 0), l;

	memcpy(memory, before, sizeof(memory));
	if (!ran(k, m, &plain, "as it is"))
		return;
	control = (struct ptx_control){0};
	if (entry) {
		memcpy(memory, before, sizeof(memory));
		l = launch_of(entry, k, &p, STOPS);
		put_launch(k, &p, 0, &(struct ptx_launch){.to = LISTS});
		if (ran(k, entry, &l, "entry"))
			add_cost(k, "entry", &entry_costs, &l, &plain);
	}
	if (loop) {
		memcpy(memory, before, sizeof(memory));
		memset(lists, 0, sizeof(lists));
		l = launch_of(loop, k, &p, STOPS);
		put_launch(k, &p, 0,
			   &(struct ptx_launch){
				   .from = LISTS, .to = blocks_of(k), .count = 1});
		l.grid[0] = 1;
		l.grid[1] = l.grid[2] = 1;
		if (ran(k, loop, &l, "loop"))
			add_cost(k, "loop", &loop_costs, &l, &plain);
	}
	if (restart)
		count_restart(restart, k, &plain);
	ptx_free(restart);
	ptx_free(entry);
	ptx_free(loop);
}

static void say_costs(const char *pass, const struct costs *c)
{
	printf("figure cuda.ptx.%s_instructions %.2f\n", pass,
	       c->instructions / c->kernels);
	printf("figure cuda.ptx.%s_accesses %.2f\n", pass, c->accesses / c->kernels);
}
#endif

/* From total->next on. */
static int run_kernels(const char *folder, const char *only)
{
	struct ptx *m = NULL;
	const char *loaded = "";

	for (; total->next < count; total->next++) {
		const struct list_kernel *k = &kernels[total->next];

		if (strcmp(loaded, k->module) != 0) {
			char path[512];
			size_t bytes;
			char *text;

			loaded = k->module;
			snprintf(path, sizeof(path), "%s/%s.ptx", folder, loaded);
			text = list_file(path, &bytes);
			ptx_free(m);
			if (ptx_parse(text, bytes, &m, why)) {
				printf("%s: %s\n", path, why);
				return 1;
			}
			free(text);
		}
		if (only && strcmp(only, k->name) != 0)
			continue;
#ifdef PTX_GPU
		gpu_mark(k->name);
#endif
		fill(k);
#ifndef PTX_GPU
		if (counts) {
			count_kernel(m, k);
			continue;
		}
#endif
		run_kernel(m, k);
	}
	ptx_free(m);
	return 0;
}

#ifdef PTX_GPU
struct task {
	const char *folder, *only;
};

static int run_there(void *arg)
{
	const struct task *t = arg;

	if (gpu.cuMemAlloc_v2(&base, ASTRAY - OUT + sizeof(astray))) {
		printf("no memory\n");
		return 1;
	}
	return run_kernels(t->folder, t->only);
}

static int run_on_gpu(const char *folder, const char *only)
{
	struct task t = {folder, only};
	uint32_t lost = 0, i;
	int rc;

	total = gpu_shared(sizeof(*total));
	/* Where one ends the process, another goes on behind it. */
	for (;;) {
		rc = gpu_watch(run_there, &t);
		if (rc == 0 || rc == GPU_NONE || total->next >= count ||
		    ++lost == GPU_LOST_MAX)
			break;
		wrong(&kernels[total->next], "nothing more can be run");
		total->next++;
	}
	if (rc == GPU_NONE && !lost)
		return rc;
	printf("equal to the interpreter: %u of %u; differing kernels:", total->equal,
	       only ? 1 : count);
	for (i = 0; i < count; i++)
		if (total->differs[i])
			printf(" %s", kernels[i].name);
	printf("\nfigure ptx.gpu.kernels %u\n", only ? 1 : count);
	printf("figure ptx.gpu.rewritten %u\n", total->rewritten);
	printf("figure ptx.gpu.refused %u\n", total->refused);
	printf("figure ptx.gpu.partway %u\n", total->partway);
	printf("figure ptx.gpu.equal_to_interpreter %u\n", total->equal);
	printf("figure ptx.gpu.mismatches %u\n", total->mismatches);
	return rc != 0 || total->mismatches != 0;
}
#endif

int main(int argc, char **argv)
{
	const bool others = argc >= 4 && strcmp(argv[1], "-d") == 0;
	const char *list = others ? argv[2] : PTX_TESTS "/kernels.list";
	const char *folder = others ? argv[3] : PTX_TESTS "/kernels";
	const char *figure = others ? "ptx.cccl" : "ptx.kernels";
	const char *only =
		argc == 3 && strcmp(argv[1], "-c") == 0 ? argv[2]
		: argc == 2 && argv[1][0] != '-' && strcmp(argv[1], "figures") != 0
			? argv[1]
		: argc == 5 && others ? argv[4]
				      : NULL;
	int rc;

#ifdef PTX_GPU
	if (argc >= 2 && strcmp(argv[1], "-t") == 0)
		return gpu_time(argc == 3 ? argv[2] : folder);
#endif
	count = list_read(list, kernels, KERNELS_MAX);
#ifdef PTX_GPU
	(void)figure;
	rc = run_on_gpu(folder, only);
#else
	counts = argc >= 2 && strcmp(argv[1], "-c") == 0;
	rc = run_kernels(folder, only);
	if (rc)
		return rc;
	if (counts) {
		say_costs("entry", &entry_costs);
		say_costs("loop", &loop_costs);
		say_costs("restart", &restart_costs);
		printf("figure cuda.ptx.restart_kernels %u\n", restart_costs.kernels);
		printf("figure cuda.ptx.restart_share %.3f\n",
		       restart_shares / restart_costs.kernels);
		return total->mismatches != 0;
	}
	/* Of slices blocks are stopped in loops, too. */
	if (!others && !only && !total->inside) {
		printf("restart: no block of a slice was stopped in a loop\n");
		total->mismatches++;
	}
	printf("figure %s%s %u\n", figure, others ? ".kernels" : "", count);
	printf("figure %s.rewritten %u\n", figure, total->rewritten);
	printf("figure %s.refused %u\n", figure, total->refused);
	printf("figure %s.mismatches %u\n", figure, total->mismatches);
	rc = total->mismatches != 0;
#endif
	return rc;
}
