/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each kernel of kernels.list runs as it is and rewritten, in the interpreter: all bytes
 * of the result are the same, whenever it is stopped and however often, and in whatever
 * order its blocks run; what is outside the range is neither read nor written.
 *
 * test_kernels [figures|KERNEL]: prints ptx.kernels.*
 * test_kernels -d LIST FOLDER: the same of other kernels, ptx.cccl.*
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp.h"
#include "list.h"

#define KERNELS_MAX  256u
#define BUFFER_BYTES 16384u
#define BLOCKS_MAX   4096u
#define OUT          UINT64_C(0x7f0000000000)
#define A            (OUT + BUFFER_BYTES)
#define B            (A + BUFFER_BYTES)
#define CONTROL      UINT64_C(0x7e0000000000)
#define LISTS        UINT64_C(0x7d0000000000)

static uint8_t memory[3 * BUFFER_BYTES], before[3 * BUFFER_BYTES],
	expected[3 * BUFFER_BYTES];
static struct ptx_control control;
static uint32_t lists[2][BLOCKS_MAX];
static char why[PTX_WHY];
static uint32_t mismatches, rewritten, refused;

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
	uint64_t more[3];
};

static void raise_stop(void *arg)
{
	(void)arg;
	control.stop = 1;
}

static struct interp_launch launch_of(const struct ptx *m, const struct list_kernel *k,
				      struct params *p, uint32_t more)
{
	static const struct interp_region regions[] = {
		{OUT, memory, sizeof(memory)},
		{CONTROL, &control, sizeof(control)},
		{LISTS, lists, sizeof(lists)},
	};
	struct interp_launch l = {.shared_bytes = k->shared_bytes,
				  .params = p,
				  .regions = regions,
				  .region_count = 3};
	uint32_t i, n;

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
	mismatches++;
}

static bool ran(const struct list_kernel *k, const struct ptx *m, struct interp_launch *l,
		const char *how)
{
	if (interp_run(m, l, why) == 0)
		return true;
	wrong(k, "%s: %s", how, why);
	return false;
}

static void same(const struct list_kernel *k, const char *how)
{
	size_t i;

	for (i = 0; i < sizeof(memory) && memory[i] == expected[i]; i++)
		;
	if (i < sizeof(memory))
		wrong(k, "%s: byte %zu is other than without", how, i);
}

static uint64_t blocks_of(const struct list_kernel *k)
{
	return (uint64_t)k->grid[0] * k->grid[1] * k->grid[2];
}

/* more: which of the parameters is the control's. */
static void run_entry(const struct ptx *m, const struct list_kernel *k, uint32_t more,
		      uint64_t tick, uint64_t seed, const char *how)
{
	struct params p;
	uint32_t round, to = 0;

	memcpy(memory, before, sizeof(memory));
	memset(lists, 0xee, sizeof(lists));
	control = (struct ptx_control){.grid = {k->grid[0], k->grid[1], k->grid[2]},
				       .to = LISTS,
				       .stop = tick == 1};
	for (round = 0;; round++) {
		struct interp_launch l = launch_of(m, k, &p, more + 1);

		p.more[0] = OUT;
		p.more[1] = sizeof(memory);
		p.more[more] = CONTROL;
		l.seed = seed + round;
		l.tick = tick;
		l.at_tick = raise_stop;
		if (control.resumed) {
			l.grid[0] = control.resumed;
			l.grid[1] = l.grid[2] = 1;
		}
		if (!ran(k, m, &l, how))
			return;
		if (!control.stopped)
			break;
		if (control.stopped >
		    (control.resumed ? control.resumed : blocks_of(k))) {
			wrong(k, "%s: %u blocks stopped", how, control.stopped);
			return;
		}
		/* A later round is stopped later; it gets somewhere. */
		tick = tick == 1 ? 0 : 2 * tick;
		control.resumed = control.stopped;
		control.from = LISTS + sizeof(lists[0]) * to;
		to = 1 - to;
		control.to = LISTS + sizeof(lists[0]) * to;
		control.stopped = control.stop = 0;
	}
	if (tick && !round && seed)
		wrong(k, "%s: nothing was stopped", how);
	same(k, how);
}

static void run_loop(const struct ptx *m, const struct list_kernel *k, uint64_t tick,
		     const char *how)
{
	struct params p;
	uint32_t round;

	memcpy(memory, before, sizeof(memory));
	control = (struct ptx_control){.grid = {k->grid[0], k->grid[1], k->grid[2]}};
	for (round = 0; control.stopped < blocks_of(k); round++) {
		struct interp_launch l = launch_of(m, k, &p, 1);

		p.more[0] = CONTROL;
		l.grid[0] = 3;
		l.grid[1] = l.grid[2] = 1;
		l.tick = tick;
		l.at_tick = raise_stop;
		control.stop = 0;
		if (!ran(k, m, &l, how))
			return;
		tick *= 2;
	}
	if (tick && round < 2)
		wrong(k, "%s: nothing was stopped", how);
	same(k, how);
}

/* ---- a kernel --------------------------------------------------------------------------- */

static bool expects(const struct list_kernel *k, enum ptx_pass pass)
{
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
		refused++;
		return NULL;
	}
	rewritten++;
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
	struct interp_launch l = launch_of(m, k, &p, 2);

	p.more[0] = OUT;
	p.more[1] = sizeof(memory);
	memcpy(memory, before, sizeof(memory));
	if (ran(k, m, &l, "bounds"))
		same(k, "bounds");

	/* B is outside: it reads as 0. */
	memcpy(memory, before, sizeof(memory));
	memset(memory + (B - OUT), 0, BUFFER_BYTES);
	l = launch_of(old, k, &p, 0);
	if (!ran(k, old, &l, "with zeros"))
		return;
	memcpy(expected, memory, sizeof(memory));
	memcpy(expected + (B - OUT), before + (B - OUT), BUFFER_BYTES);
	memcpy(memory, before, sizeof(memory));
	l = launch_of(m, k, &p, 2);
	p.more[0] = OUT;
	p.more[1] = B - OUT;
	if (ran(k, m, &l, "bounds, b outside"))
		same(k, "bounds, b outside");

	/* The result is outside: it stays. */
	memcpy(expected, before, sizeof(memory));
	memcpy(memory, before, sizeof(memory));
	l = launch_of(m, k, &p, 2);
	p.more[0] = A;
	p.more[1] = 2 * BUFFER_BYTES;
	if (ran(k, m, &l, "bounds, out outside"))
		same(k, "bounds, out outside");
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
	return l.instructions;
}

static void run_kernel(const struct ptx *m, const struct list_kernel *k)
{
	struct ptx *entry = pass_over(m, k, PTX_ENTRY), *loop = pass_over(m, k, PTX_LOOP);
	struct ptx *bounds = pass_over(m, k, PTX_BOUNDS), *both = NULL;
	const uint64_t steps = run_plain(m, k);
	uint64_t tick;

	if (bounds && !expects(k, PTX_ENTRY)) {
		both = pass_over(bounds, k, PTX_ENTRY);
		rewritten--; /* counted already */
	}
	if (steps && entry) {
		run_entry(entry, k, 0, 0, 0, "entry");
		run_entry(entry, k, 0, 1, 1, "entry, stopped at once");
		/* While a block looks: some of its threads see the flag. */
		for (tick = 5; tick < 200; tick += 37)
			run_entry(entry, k, 0, tick, 1, "entry, stopped as it begins");
		run_entry(entry, k, 0, steps / 3 + 1, 3, "entry, stopped");
		run_entry(entry, k, 0, steps / 7 + 1, 11, "entry, stopped more often");
	}
	if (steps && loop) {
		run_loop(loop, k, 0, "loop");
		run_loop(loop, k, steps / 3 + 1, "loop, stopped");
		run_loop(loop, k, steps / 7 + 1, "loop, stopped more often");
	}
	if (steps && both)
		run_entry(both, k, 2, steps / 5 + 1, 7, "bounds and entry, stopped");
	if (steps && bounds)
		run_bounds(bounds, m, k);
	ptx_free(entry);
	ptx_free(loop);
	ptx_free(bounds);
	ptx_free(both);
}

int main(int argc, char **argv)
{
	static struct list_kernel kernels[KERNELS_MAX];
	const bool others = argc == 4 && strcmp(argv[1], "-d") == 0;
	const char *list = others ? argv[2] : PTX_TESTS "/kernels.list";
	const char *folder = others ? argv[3] : PTX_TESTS "/kernels";
	const char *figure = others ? "ptx.cccl" : "ptx.kernels";
	const uint32_t count = list_read(list, kernels, KERNELS_MAX);
	const char *only = argc == 2 && strcmp(argv[1], "figures") != 0 ? argv[1] : NULL;
	struct ptx *m = NULL;
	const char *loaded = "";
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(loaded, kernels[i].module) != 0) {
			char path[512];
			size_t bytes;
			char *text;

			loaded = kernels[i].module;
			snprintf(path, sizeof(path), "%s/%s.ptx", folder, loaded);
			text = list_file(path, &bytes);
			ptx_free(m);
			if (ptx_parse(text, bytes, &m, why)) {
				printf("%s: %s\n", path, why);
				return 1;
			}
			free(text);
		}
		if (only && strcmp(only, kernels[i].name) != 0)
			continue;
		fill(&kernels[i]);
		run_kernel(m, &kernels[i]);
	}
	ptx_free(m);
	printf("figure %s%s %u\n", figure, others ? ".kernels" : "", count);
	printf("figure %s.rewritten %u\n", figure, rewritten);
	printf("figure %s.refused %u\n", figure, refused);
	printf("figure %s.mismatches %u\n", figure, mismatches);
	return mismatches != 0;
}
