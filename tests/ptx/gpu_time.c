/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the passes cost on a GPU: kernels of kernels/ on much data, as they are and
 * rewritten, in turn; with the same result, and with it also when they are stopped in the
 * midst and go on.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"
#include "list.h"

#define PART         (UINT64_C(64) << 20) /* of the result, and of each source */
#define BLOCKS_MAX   (1u << 18)
#define WARM         3u
#define RUNS         20u
#define STOPS        3u
#define SECONDS      120u
#define CONTROL_STEP 256u

enum variant { PLAIN, ENTRY, LOOP, BOUNDS, BOTH, VARIANTS };

static const char *const names[VARIANTS] = {"plain", "entry", "loop", "bounds",
					    "entry+bounds"};
static const char *const figures[VARIANTS] = {"", "entry", "loop", "bounds",
					      "entry_bounds"};

static const struct timed {
	const char *module, *name;
	int32_t n;
	uint32_t grid[3], block[3];
	bool integers;
} timed[] = {
	{"linear", "axpy", 1 << 24, {65536, 1, 1}, {256, 1, 1}, false},
	{"linear", "gemm_naive", 1024, {64, 64, 1}, {16, 16, 1}, false},
	{"linear", "gemm_tiled", 1024, {128, 128, 1}, {8, 8, 1}, false},
	{"linear", "conv2d", 4096, {128, 512, 1}, {32, 8, 1}, false},
	{"reduce", "softmax_online", 1024, {16384, 1, 1}, {64, 1, 1}, false},
	{"reduce", "layer_norm", 1024, {16384, 1, 1}, {32, 1, 1}, false},
	{"reduce", "sum_shared", 1 << 24, {131072, 1, 1}, {128, 1, 1}, true},
	{"reduce", "attention_tiled", 1024, {16384, 1, 1}, {16, 1, 1}, false},
	{"move", "histogram_shared", 1 << 24, {2112, 1, 1}, {256, 1, 1}, true},
	{"move", "stencil_2d", 4096, {128, 512, 1}, {32, 8, 1}, false},
	{"move", "transpose", 4096, {256, 256, 1}, {16, 16, 1}, false},
	{"move", "n_body", 32768, {128, 1, 1}, {256, 1, 1}, false},
};
#define TIMED (sizeof(timed) / sizeof(timed[0]))

struct params {
	uint64_t out, a, b;
	int32_t n, hole;
	uint64_t more[8];
};

struct launch {
	struct ptx *m;
	void *function;
	struct params params;
	uint32_t param_bytes;
	uint32_t grid[3];
	uint64_t control; /* 0: it has none */
	uint32_t at;      /* where its ptx_launch is among .params.more */
	void *begin[RUNS + WARM], *end[RUNS + WARM];
};

static uint64_t data, controls, lists;
static uint8_t *expected, *seen; /* PART each */
static uint32_t mismatches, stops, partway;
static double shares[VARIANTS][TIMED];
static uint32_t share_count[VARIANTS];

static void wrong(const struct timed *t, enum variant v, const char *what)
{
	printf("%s, %s: %s\n", t->name, names[v], what);
	mismatches++;
}

static int by_size(const void *l, const void *r)
{
	const double a = *(const double *)l, b = *(const double *)r;

	return (a > b) - (a < b);
}

static double median(double *of, uint32_t n)
{
	qsort(of, n, sizeof(*of), by_size);
	return n % 2 ? of[n / 2] : (of[n / 2 - 1] + of[n / 2]) / 2;
}

static uint32_t blocks_of(const struct timed *t)
{
	return t->grid[0] * t->grid[1] * t->grid[2];
}

/* ---- kernels ---------------------------------------------------------------------------- */

static int find(const struct ptx *m, const char *name, uint32_t *kernel,
		char why[PTX_WHY])
{
	uint32_t n;

	for (*kernel = 0; *kernel < ptx_kernels(m); (*kernel)++) {
		const char *is = ptx_kernel_name(m, *kernel, &n);

		if (n == strlen(name) && memcmp(is, name, n) == 0)
			return 0;
	}
	snprintf(why, PTX_WHY, "no kernel %s", name);
	return -1;
}

static int pass_over(const struct ptx *m, const char *name, enum ptx_pass pass,
		     struct ptx **out, char why[PTX_WHY])
{
	bool which[256] = {false};
	uint32_t kernel;
	char *text;
	size_t bytes;
	int err = find(m, name, &kernel, why);

	if (err || kernel >= sizeof(which))
		return -1;
	which[kernel] = true;
	err = ptx_rewrite(m, pass, which, &text, &bytes, why);
	if (err)
		return err;
	err = ptx_parse(text, bytes, out, why);
	free(text);
	return err;
}

static void put_by(struct launch *l, const struct ptx_launch *by)
{
	if (l->control)
		memcpy(&l->params.more[l->at], by, sizeof(*by));
}

/* What a launch of the whole grid has. */
static struct ptx_launch whole(const struct timed *t, enum variant v,
			       const struct launch *l)
{
	return (struct ptx_launch){.control = l->control,
				   .from = lists,
				   .to = v == LOOP ? blocks_of(t) : lists,
				   .grid = {t->grid[0], t->grid[1], t->grid[2]},
				   .count = v == LOOP ? l->grid[0] : 0};
}

static int prepare(const struct ptx *m, const struct timed *t, enum variant v,
		   struct launch *l, char why[PTX_WHY])
{
	static const enum ptx_pass passes[VARIANTS] = {
		[ENTRY] = PTX_ENTRY, [LOOP] = PTX_LOOP, [BOUNDS] = PTX_BOUNDS};
	const bool bounds = v == BOUNDS || v == BOTH;
	struct ptx_launch by;
	struct ptx *fenced = NULL;
	uint32_t kernel, i, more = 0;
	int err = 0, fill = 1;

	*l = (struct launch){.params = {.out = data,
					.a = data + PART,
					.b = data + 2 * PART,
					.n = t->n,
					.hole = -1}};
	memcpy(l->grid, t->grid, sizeof(l->grid));
	if (v == BOTH) {
		err = pass_over(m, t->name, PTX_BOUNDS, &fenced, why);
		if (!err)
			err = pass_over(fenced, t->name, PTX_ENTRY, &l->m, why);
		ptx_free(fenced);
	} else if (v != PLAIN) {
		err = pass_over(m, t->name, passes[v], &l->m, why);
	}
	if (!err)
		err = find(l->m ? l->m : m, t->name, &kernel, why);
	if (!err)
		err = gpu_function(l->m ? l->m : m, kernel, 0, &l->function, why);
	if (err)
		return err;
	if (bounds) {
		l->params.more[more++] = data;
		l->params.more[more++] = 3 * PART;
		l->params.more[more++] = controls; /* PLAIN has none there */
	}
	if (v != PLAIN && v != BOUNDS) {
		l->control = controls + CONTROL_STEP * v;
		l->at = more;
		more += sizeof(struct ptx_launch) / sizeof(uint64_t);
	}
	l->param_bytes = more ? 32 + 8 * more : 28;
	if (v == LOOP) {
		GPU_TRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, &fill, l->function,
			(int)(t->block[0] * t->block[1]), 0);
		i = (uint32_t)(fill * gpu.multiprocessors);
		l->grid[0] = i < blocks_of(t) ? i : blocks_of(t);
		l->grid[1] = l->grid[2] = 1;
	}
	by = whole(t, v, l);
	put_by(l, &by);
	for (i = 0; i < RUNS + WARM; i++) {
		GPU_TRY(cuEventCreate, &l->begin[i], CU_EVENT_TIMED);
		GPU_TRY(cuEventCreate, &l->end[i], CU_EVENT_TIMED);
	}
	return 0;
}

static int end_launch(struct launch *l, char why[PTX_WHY])
{
	uint32_t i;

	ptx_free(l->m);
	l->m = NULL;
	for (i = 0; i < RUNS + WARM; i++) {
		GPU_TRY(cuEventDestroy_v2, l->begin[i]);
		GPU_TRY(cuEventDestroy_v2, l->end[i]);
	}
	return 0;
}

/* ---- launches --------------------------------------------------------------------------- */

/* Nothing is stopped, and LOOP has done nothing. */
static int set_control(const struct launch *l, enum variant v, char why[PTX_WHY])
{
	if (!l->control)
		return 0;
	GPU_TRY(cuMemsetD32Async, l->control, 0, 2, gpu.stream);
	if (v == LOOP)
		GPU_TRY(cuMemsetD32Async, lists, 0, l->grid[0], gpu.stream);
	GPU_TRY(cuStreamSynchronize, gpu.stream);
	return 0;
}

static int launch(const struct timed *t, const struct launch *l, char why[PTX_WHY])
{
	return gpu_launch(l->function, l->grid, t->block, 0, &l->params, l->param_bytes,
			  why);
}

static int clear(char why[PTX_WHY])
{
	GPU_TRY(cuMemsetD32Async, data, 0, PART / 4, gpu.stream);
	return 0;
}

static int result(uint8_t *to, char why[PTX_WHY])
{
	GPU_TRY(cuMemcpyAsync, (uint64_t)(uintptr_t)to, data, PART, gpu.stream);
	GPU_TRY(cuStreamSynchronize, gpu.stream);
	return 0;
}

static int check(const struct timed *t, enum variant v, const struct launch *l,
		 char why[PTX_WHY])
{
	int err = set_control(l, v, why);

	if (!err)
		err = clear(why);
	if (!err)
		err = launch(t, l, why);
	if (!err)
		err = result(v == PLAIN ? expected : seen, why);
	if (!err && v != PLAIN && memcmp(seen, expected, PART) != 0)
		wrong(t, v, "other bytes than without");
	return err;
}

/* All in turn RUNS + WARM times; what comes first in a turn is not counted, and keeps the
 * GPU busy until the others are in the queue. */
static int measure(const struct timed *t, const struct launch l[VARIANTS],
		   const bool has[VARIANTS], char why[PTX_WHY])
{
	uint32_t i, v;
	int err;

	for (v = 0; v < VARIANTS; v++) {
		err = has[v] ? set_control(&l[v], v, why) : 0;
		if (err)
			return err;
	}
	for (i = 0; i < RUNS + WARM; i++) {
		err = launch(t, &l[PLAIN], why);
		if (err)
			return err;
		for (v = 0; v < VARIANTS; v++) {
			if (!has[v])
				continue;
			if (v == LOOP) /* its turns */
				GPU_TRY(cuMemsetD32Async, lists, 0, l[v].grid[0],
					gpu.stream);
			GPU_TRY(cuEventRecord, l[v].begin[i], gpu.stream);
			err = launch(t, &l[v], why);
			if (err)
				return err;
			GPU_TRY(cuEventRecord, l[v].end[i], gpu.stream);
		}
		GPU_TRY(cuStreamSynchronize, gpu.stream);
	}
	return 0;
}

/* Microseconds. */
static int median_of(const struct launch *l, double *us, char why[PTX_WHY])
{
	double runs[RUNS];
	uint32_t i;

	for (i = 0; i < RUNS; i++) {
		float ms = 0;

		GPU_TRY(cuEventElapsedTime, &ms, l->begin[WARM + i], l->end[WARM + i]);
		runs[i] = 1e3 * (double)ms;
	}
	*us = median(runs, RUNS);
	return 0;
}

static int lower(const struct launch *l, char why[PTX_WHY])
{
	GPU_TRY(cuMemsetD32Async, l->control, 0, 2, gpu.stream);
	GPU_TRY(cuStreamSynchronize, gpu.stream);
	return 0;
}

/* Blocks of the grid that LOOP has not run. */
static int turns_left(const struct launch *l, uint32_t blocks, uint32_t *left,
		      char why[PTX_WHY])
{
	static uint32_t turns[BLOCKS_MAX];
	const uint32_t count = l->grid[0];
	uint32_t i, all;

	GPU_TRY(cuMemcpyAsync, (uint64_t)(uintptr_t)turns, lists, 4 * (size_t)count,
		gpu.stream);
	GPU_TRY(cuStreamSynchronize, gpu.stream);
	for (*left = i = 0; i < count; i++) {
		all = (blocks - i + count - 1) / count;
		*left += turns[i] < all ? all - turns[i] : 0;
	}
	return 0;
}

/* Stopped about half way, again and again, and then no more. */
static int stop_and_go(const struct timed *t, enum variant v, const struct launch *l,
		       double us, char why[PTX_WHY])
{
	struct ptx_launch by = whole(t, v, l);
	struct launch part = *l;
	struct ptx_control c;
	const uint32_t blocks = blocks_of(t);
	uint32_t left = blocks, round, to = 0;
	uint64_t at;
	int err = clear(why);

	printf("pass stop | %s | %s |", t->name, names[v]);
	for (round = 0; left && !err; round++) {
		const uint32_t begun = left;
		const double share = (double)left / blocks;

		if (round > STOPS + 1) {
			wrong(t, v, "does not end");
			return 0;
		}
		err = round && v == LOOP ? lower(l, why) : set_control(l, v, why);
		put_by(&part, &by);
		if (!err)
			err = launch(t, &part, why);
		if (err)
			return err;
		at = gpu_now();
		if (round < STOPS) {
			while ((double)(gpu_now() - at) < 500 * us * share + 3000)
				;
			at = gpu_now();
			err = gpu_raise(l->control, why);
			if (err)
				return err;
		}
		GPU_TRY(cuStreamSynchronize, gpu.stream);
		at = gpu_now() - at;
		GPU_TRY(cuStreamSynchronize, gpu.beside);
		GPU_TRY(cuMemcpyAsync, (uint64_t)(uintptr_t)&c, l->control, sizeof(c),
			gpu.stream);
		GPU_TRY(cuStreamSynchronize, gpu.stream);
		left = c.stopped;
		if (v == LOOP)
			err = turns_left(l, blocks, &left, why);
		if (err)
			return err;
		if (left > begun) {
			wrong(t, v, "more blocks are left than were to run");
			return 0;
		}
		if (round < STOPS) {
			printf(" %u of %u left after %.0f us |", left, begun,
			       (double)at / 1e3);
			stops++;
			partway += left && left < begun;
		}
		if (v == LOOP)
			continue;
		by.count = part.grid[0] = left;
		part.grid[1] = part.grid[2] = 1;
		by.from = lists + 4 * (uint64_t)BLOCKS_MAX * to;
		to = 1 - to;
		by.to = lists + 4 * (uint64_t)BLOCKS_MAX * to;
	}
	printf("\n");
	if (!err)
		err = result(seen, why);
	if (!err && memcmp(seen, expected, PART) != 0)
		wrong(t, v, "stopped: other bytes than without");
	return err;
}

static int time_kernel(const struct ptx *m, const struct timed *t, char why[PTX_WHY])
{
	static struct launch l[VARIANTS];
	bool has[VARIANTS] = {false};
	double us[VARIANTS] = {0};
	uint32_t v;
	int err;

	for (v = 0; v < VARIANTS; v++) {
		err = prepare(m, t, v, &l[v], why);
		has[v] = !err;
		if (!err)
			err = check(t, v, &l[v], why);
		if (err && (gpu.lost || v == PLAIN))
			return err;
		if (err)
			wrong(t, v, why);
	}
	err = measure(t, l, has, why);
	for (v = 0; v < VARIANTS && !err; v++)
		err = has[v] ? median_of(&l[v], &us[v], why) : 0;
	if (err)
		return err;
	printf("pass cost | %s | plain %.1f us", t->name, us[PLAIN]);
	for (v = ENTRY; v < VARIANTS; v++) {
		const double share = us[v] / us[PLAIN] - 1;

		if (!has[v])
			continue;
		printf(" | %s %+.1f %%", names[v], 100 * share);
		shares[v][share_count[v]++] = share;
	}
	printf("\n");
	for (v = ENTRY; v < VARIANTS && !err; v++)
		if (has[v] && l[v].control)
			err = stop_and_go(t, v, &l[v], us[PLAIN], why);
	for (v = 0; v < VARIANTS && !err; v++)
		err = has[v] ? end_launch(&l[v], why) : 0;
	return err;
}

/* ---- all of them ------------------------------------------------------------------------ */

static int fill(bool integers, char why[PTX_WHY])
{
	uint32_t i, part;

	for (part = 1; part < 3; part++) {
		for (i = 0; i < PART / 4; i++) {
			uint32_t x = (i + part * 7919u) * 2654435761u;
			const int32_t whole_one = (int32_t)((x ^ x >> 15) % 97) - 48;
			const float f = (float)whole_one / 32;

			memcpy(seen + 4 * (size_t)i,
			       integers ? (const void *)&whole_one : (const void *)&f, 4);
		}
		GPU_TRY(cuMemcpyAsync, data + part * PART, (uint64_t)(uintptr_t)seen,
			PART, gpu.stream);
		GPU_TRY(cuStreamSynchronize, gpu.stream);
	}
	return 0;
}

static int time_all(const char *folder, char why[PTX_WHY])
{
	struct ptx *m = NULL;
	const char *loaded = "";
	bool integers = false;
	uint32_t i;
	int err;

	GPU_TRY(cuMemAlloc_v2, &data, 3 * PART);
	GPU_TRY(cuMemAlloc_v2, &controls, (size_t)CONTROL_STEP * VARIANTS);
	GPU_TRY(cuMemAlloc_v2, &lists, 2 * sizeof(uint32_t) * BLOCKS_MAX);
	err = fill(false, why);
	for (i = 0; i < TIMED && !err; i++) {
		const struct timed *t = &timed[i];

		if (strcmp(loaded, t->module) != 0) {
			char path[512], *text;
			size_t bytes;

			loaded = t->module;
			snprintf(path, sizeof(path), "%s/%s.ptx", folder, loaded);
			text = list_file(path, &bytes);
			ptx_free(m);
			m = NULL;
			err = ptx_parse(text, bytes, &m, why);
			free(text);
		}
		if (!err && t->integers != integers) {
			integers = t->integers;
			err = fill(integers, why);
		}
		if (!err)
			err = time_kernel(m, t, why);
		if (err)
			printf("%s: %s\n", t->name, why);
	}
	ptx_free(m);
	return err;
}

int gpu_time(const char *folder)
{
	char why[PTX_WHY] = "";
	uint32_t v;
	int err;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)alarm(SECONDS);
	err = gpu_open(why);
	if (err) {
		printf("%s\n", why);
		return err == GPU_NONE ? GPU_NONE : 1;
	}
	expected = malloc(PART);
	seen = malloc(PART);
	if (!expected || !seen) {
		printf("no memory\n");
		return 1;
	}
	err = time_all(folder, why);
	for (v = ENTRY; v < VARIANTS; v++)
		if (share_count[v])
			printf("figure ptx.gpu.%s.cost_share %.4f\n", figures[v],
			       median(shares[v], share_count[v]));
	printf("figure ptx.gpu.stops %u\n", stops);
	printf("figure ptx.gpu.stops.partway %u\n", partway);
	printf("figure ptx.gpu.time.mismatches %u\n", mismatches);
	free(expected);
	free(seen);
	return err != 0 || mismatches != 0;
}
