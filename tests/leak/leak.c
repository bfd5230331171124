/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leak.c - what a tenant that times its own work learns of its neighbour's secret.
 *
 *   leak [MORE [TRIALS [SEED]]]           a line a setting; fails where one that should
 *                                         tell nothing does, or a control tells nothing
 *   leak figures [MORE [TRIALS [SEED]]]   figures of it
 *   leak compare MORE TRIALS SEED OTHER   the spy's times on two devices: by how much
 *                                         they differ; fails above 1 %
 *
 * MORE: of the device's target, such as engine=fast; OTHER the same.
 *
 * Victim and spy have units of their own, side by side.  In each trial the victim does
 * one of two things, by a bit drawn for it: much work in memory and in the array, or
 * little of both.  Beside it the spy loads lines, runs folds, walks over more pages than
 * its TLB has, and gives many small commands; long after both it loads its lines once
 * more.  It sees how long each took, by its own timestamps, and how late its first
 * command began.  When it begins is drawn, too; it never waits for the victim, and knows
 * nothing else.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/memory.h>
#include <hal/npu.h>

#include "information.h"

#define TRIALS   400u
#define SHUFFLES 1000u
#define ALLOWED  0.01
#define COLUMNS  6u
#define STAMPS   8u
#define LINES    128u /* that the spy loads: 8 KiB */
#define PAGE     1024u
#define PAGES    1600u /* of its buffer; its TLB has 1,024 */
#define STEPS    64u   /* of these in a trial */
#define HEAVY    32768u
#define LIGHT    256u
#define SMALL    6u
#define PERIOD   200000u /* ns of a trial: the second half is for what is left */
#define JITTER   2000u

static const char *const columns[COLUMNS] = {"loads", "folds", "TLB",
					     "queue", "start", "lines left"};

/* Where the tenants are, and whether the spy is to learn anything. */
static const struct setting {
	const char *name, *target;
	uint64_t victim, spy; /* colours */
	bool leaks;
	bool halves;  /* of the bandwidth, as limits */
	bool bimodal; /* the spy's memory */
} settings[] = {
	{.name = "disjoint", .target = "channels=2", .victim = 1, .spy = 2},
	{.name = "timeslot", .target = "channels=1&turns=128"},
	{.name = "shared", .target = "channels=1", .leaks = true},
	{.name = "cache_disjoint",
	 .target = "channels=2&cache=64&refresh=3900",
	 .victim = 1,
	 .spy = 2},
	{.name = "cache_timeslot",
	 .target = "channels=1&turns=400&cache=64&refresh=3900",
	 .leaks = true},
	{.name = "cache_own_sets",
	 .target = "channels=1&turns=400&cache=64&refresh=3900&colors=sets",
	 .victim = 3,
	 .spy = 12},
	{.name = "limited", .target = "channels=1", .leaks = true, .halves = true},
	{.name = "bimodal",
	 .target = "channels=4",
	 .victim = 1,
	 .spy = 2,
	 .leaks = true,
	 .bimodal = true},
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

struct tenant {
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *in, *out, *stamps;
};

struct bench {
	struct hal_device *dev;
	struct hal_program *program;
	struct hal_kernel *heavy, *light, *loads, *folds, *walk, *small;
	struct tenant victim, spy;
	uint64_t begin; /* of the first trial; the next begin a period later each */
	uint64_t random;
};

static _Noreturn void die(const char *what)
{
	(void)fflush(stdout);
	fprintf(stderr, "leak: %s: %s\n", what, hal_last_error());
	_Exit(2);
}

static void ok(int rc, const char *what)
{
	if (rc != 0)
		die(what);
}

/* ---- programs ---------------------------------------------------------------------- */

static void copy(struct hal_npu_builder *b, const char *name, uint32_t rows,
		 uint32_t bytes, uint32_t stride)
{
	struct hal_npu_copy op = HAL_INIT(hal_npu_copy);

	ok(hal_npu_kernel(b, name), name);
	op.rows = rows;
	op.bytes = bytes;
	op.a_stride = stride;
	ok(hal_npu_arg(b, (uint64_t)(rows - 1) * stride + bytes, &op.a.id), name);
	ok(hal_npu_arg(b, (uint64_t)rows * bytes, &op.d.id), name);
	ok(hal_npu_copy(b, &op), name);
}

static void gemm(struct hal_npu_builder *b, uint32_t m, uint32_t k, uint32_t in,
		 uint32_t out)
{
	static const int32_t mult = 1 << 30, shift = 0;
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);

	op.m = m;
	op.k = k;
	op.n = 8;
	op.a.id = op.b.id = in;
	op.d.id = out;
	op.out.mult = &mult;
	op.out.shift = &shift;
	op.out.min = -128;
	op.out.max = 127;
	ok(hal_npu_gemm(b, &op), "gemm");
}

/* Lots of lines, then lots of folds; or next to nothing. */
static void victims(struct hal_npu_builder *b, const char *name, uint32_t bytes,
		    uint32_t m)
{
	struct hal_npu_copy op = HAL_INIT(hal_npu_copy);

	ok(hal_npu_kernel(b, name), name);
	op.rows = bytes / LIGHT;
	op.bytes = LIGHT;
	ok(hal_npu_arg(b, HEAVY, &op.a.id), name);
	ok(hal_npu_arg(b, HEAVY, &op.d.id), name);
	ok(hal_npu_copy(b, &op), name);
	gemm(b, m, 64, op.a.id, op.d.id);
}

static void load_program(struct bench *b)
{
	struct hal_npu_builder *builder;
	uint32_t in, out;
	void *image;
	size_t size;

	ok(hal_npu_builder_create(&builder), "builder");
	victims(builder, "heavy", HEAVY, 128);
	victims(builder, "light", LIGHT, 8);
	copy(builder, "loads", LINES, 64, 64);
	copy(builder, "walk", STEPS, 64, PAGE);
	copy(builder, "small", 1, 64, 64);
	ok(hal_npu_kernel(builder, "folds"), "folds");
	ok(hal_npu_arg(builder, 4096, &in), "folds");
	ok(hal_npu_arg(builder, 4096, &out), "folds");
	gemm(builder, 32, 128, in, out);
	ok(hal_npu_build(builder, &image, &size), "build");
	ok(hal_program_load(b->dev, image, size, &b->program), "program");
	hal_npu_image_free(image);
	hal_npu_builder_destroy(builder);
	ok(hal_kernel_find(b->program, "heavy", &b->heavy), "heavy");
	ok(hal_kernel_find(b->program, "light", &b->light), "light");
	ok(hal_kernel_find(b->program, "loads", &b->loads), "loads");
	ok(hal_kernel_find(b->program, "folds", &b->folds), "folds");
	ok(hal_kernel_find(b->program, "walk", &b->walk), "walk");
	ok(hal_kernel_find(b->program, "small", &b->small), "small");
}

/* ---- tenants ------------------------------------------------------------------------ */

static void add_tenant(struct bench *b, struct tenant *t, uint16_t col, uint64_t colors,
		       uint64_t bytes, uint64_t bandwidth, bool bimodal)
{
	struct hal_partition_desc part = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc buffer = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);

	part.rows = 8;
	part.cols = 4;
	part.col = col;
	part.color_mask = colors;
	part.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .bandwidth = bandwidth};
	part.flags = bimodal ? HAL_PARTITION_BIMODAL : 0;
	ok(hal_partition_create(b->dev, &part, &t->part), "partition");
	ok(hal_queue_create(t->part, &queue, &t->queue), "queue");
	buffer.bytes = bytes;
	buffer.flags = bimodal ? HAL_BUFFER_BIMODAL : 0;
	ok(hal_buffer_create(t->part, &buffer, &t->in), "memory");
	buffer.flags = 0;
	buffer.bytes = HEAVY;
	ok(hal_buffer_create(t->part, &buffer, &t->out), "memory");
	buffer.bytes = STAMPS * UINT64_C(8);
	ok(hal_buffer_create(t->part, &buffer, &t->stamps), "memory");
}

static void drop_tenant(struct tenant *t)
{
	ok(hal_queue_destroy(t->queue), "queue");
	ok(hal_buffer_destroy(t->in), "memory");
	ok(hal_buffer_destroy(t->out), "memory");
	ok(hal_buffer_destroy(t->stamps), "memory");
}

static void open_bench(struct bench *b, const struct setting *s, const char *more)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	char target[512];
	uint64_t share;

	(void)snprintf(target, sizeof(target),
		       "npu:0?rows=8&cols=8&slots=4&memory_size=16M&%s%s%s", s->target,
		       more[0] ? "&" : "", more);
	ok(hal_open(target, NULL, &b->dev), target);
	load_program(b);
	ok(hal_device_get_info(b->dev, &info), "info");
	share = s->halves ? info.bandwidth / 2 : 0;
	add_tenant(b, &b->victim, 0, s->victim, HEAVY, share, false);
	add_tenant(b, &b->spy, 4, s->spy, (uint64_t)PAGES * PAGE, share, s->bimodal);
}

static void close_bench(struct bench *b)
{
	drop_tenant(&b->victim);
	drop_tenant(&b->spy);
	ok(hal_program_unload(b->program), "program");
	ok(hal_partition_destroy(b->victim.part), "partition");
	ok(hal_partition_destroy(b->spy.part), "partition");
	ok(hal_close(b->dev), "device");
}

/* ---- trials -------------------------------------------------------------------------- */

/* What a submit is made of; arguments stay until then. */
struct list {
	struct hal_cmd cmd[32];
	struct hal_arg arg[32][2];
	uint32_t count;
};

static void launch(struct list *l, struct hal_kernel *kernel, const struct tenant *t,
		   uint64_t offset)
{
	struct hal_arg *a = l->arg[l->count];

	a[0] = (struct hal_arg){.buffer = t->in, .offset = offset};
	a[1] = (struct hal_arg){.buffer = t->out};
	l->cmd[l->count++] = hal_cmd_launch(kernel, a, 2);
}

static void stamp(struct list *l, const struct tenant *t, uint32_t number)
{
	l->cmd[l->count++] = hal_cmd_timestamp(t->stamps, number * UINT64_C(8));
}

/* Held until that device time. */
static struct hal_point submit(const struct tenant *t, const struct list *l, uint64_t ns)
{
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_point done;

	s.cmds = l->cmd;
	s.cmd_count = l->count;
	s.not_before_ns = ns;
	ok(hal_submit(t->queue, &s, &done), "submit");
	return done;
}

/* What the spy sees beside the victim: stamps 0 to 4. */
static struct hal_point spy_beside(struct bench *b, uint32_t trial, uint64_t ns)
{
	uint32_t last = PAGES - STEPS;
	struct list l = {.count = 0};

	stamp(&l, &b->spy, 0);
	launch(&l, b->loads, &b->spy, 0);
	stamp(&l, &b->spy, 1);
	launch(&l, b->folds, &b->spy, 0);
	stamp(&l, &b->spy, 2);
	launch(&l, b->walk, &b->spy, (uint64_t)(trial * STEPS % last) * PAGE);
	stamp(&l, &b->spy, 3);
	for (uint32_t i = 0; i < SMALL; i++)
		launch(&l, b->small, &b->spy, 0);
	stamp(&l, &b->spy, 4);
	return submit(&b->spy, &l, ns);
}

static void one_trial(struct bench *b, uint32_t trial, bool secret, uint64_t *seen)
{
	struct list work = {.count = 0}, after = {.count = 0};
	uint64_t at = b->begin + trial * (uint64_t)PERIOD, t[STAMPS];
	uint64_t begin = at + information_random(&b->random) % JITTER;
	struct hal_point done[3];

	launch(&work, secret ? b->heavy : b->light, &b->victim, 0);
	done[0] = submit(&b->victim, &work, at);
	done[1] = spy_beside(b, trial, begin);
	stamp(&after, &b->spy, 5);
	launch(&after, b->loads, &b->spy, 0);
	stamp(&after, &b->spy, 6);
	done[2] = submit(&b->spy, &after, at + PERIOD / 2);
	ok(hal_wait(done, 2, 0, HAL_FOREVER), "wait");
	if (hal_device_get_time(b->dev) >= at + PERIOD / 2)
		die("a trial takes more than half a period");
	ok(hal_wait(&done[2], 1, 0, HAL_FOREVER), "wait");
	ok(hal_buffer_read(b->spy.stamps, 0, t, sizeof(t)), "read");
	for (uint32_t i = 0; i < 4; i++)
		seen[i] = t[i + 1] - t[i];
	seen[4] = t[0] - begin;
	seen[5] = t[6] - t[5];
}

/* All trials: what the spy saw, and the secrets.  The first is not counted: nothing is
 * translated yet. */
static void run(const struct setting *s, const char *more, uint32_t trials, uint64_t seed,
		uint64_t *seen, uint8_t *secret)
{
	uint64_t secrets = seed * 2 + 1, scrap[COLUMNS];
	struct bench b = {.random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1};

	open_bench(&b, s, more);
	b.begin = hal_device_get_time(b.dev) + PERIOD;
	one_trial(&b, 0, true, scrap);
	for (uint32_t i = 0; i < trials; i++) {
		secret[i] = (uint8_t)(information_random(&secrets) >> 63);
		one_trial(&b, i + 1, secret[i], seen + (size_t)i * COLUMNS);
	}
	close_bench(&b);
}

/* ---- what comes of it ------------------------------------------------------------------ */

static int measure(const char *more, uint32_t trials, uint64_t seed, bool figures)
{
	uint64_t *seen = malloc((size_t)trials * COLUMNS * sizeof(*seen));
	uint64_t *one = malloc(trials * sizeof(*one));
	uint8_t *secret = malloc(trials);
	double error = 0;
	int wrong = 0;

	for (uint32_t i = 0; seen && one && secret && i < SETTINGS; i++) {
		const struct setting *s = &settings[i];
		struct information all, each;
		bool leaks;

		run(s, more, trials, seed + i, seen, secret);
		if (information_of(seen, secret, trials, COLUMNS, SHUFFLES, seed, &all))
			break;
		leaks = all.bits > all.error;
		wrong += leaks != s->leaks;
		error = all.error > error ? all.error : error;
		if (figures) {
			printf("figure leak.%s_bits %.3f\n", s->name,
			       leaks ? all.bits : 0.0);
			continue;
		}
		printf("%-15s %6.3f bits, error %.3f, by %s;%s", s->name, all.bits,
		       all.error, columns[all.column],
		       leaks == s->leaks ? "" : " NOT AS IT SHOULD BE;");
		for (uint32_t c = 0; c < COLUMNS; c++) {
			for (uint32_t k = 0; k < trials; k++)
				one[k] = seen[(size_t)k * COLUMNS + c];
			if (information_of(one, secret, trials, 1, SHUFFLES, seed, &each))
				break;
			printf(" %s %.3f", columns[c], each.bits);
		}
		printf("\n");
	}
	if (figures)
		printf("figure leak.error_bits %.3f\n", error);
	free(seen);
	free(one);
	free(secret);
	return wrong;
}

static int compare(const char *one, const char *other, uint32_t trials, uint64_t seed)
{
	size_t count = (size_t)trials * COLUMNS;
	uint64_t *a = malloc(count * sizeof(*a)), *b = malloc(count * sizeof(*b));
	uint8_t *secret = malloc(trials);
	int wrong = 0;

	for (uint32_t i = 0; a && b && secret && i < SETTINGS; i++) {
		uint64_t differ = 0;
		double most = 0, sum[2] = {0};

		run(&settings[i], one, trials, seed, a, secret);
		run(&settings[i], other, trials, seed, b, secret);
		for (size_t k = 0; k < count; k++) {
			double d = a[k] > b[k] ? (double)(a[k] - b[k])
					       : (double)(b[k] - a[k]);

			differ += a[k] != b[k];
			d /= (double)(a[k] > 100 ? a[k] : 100);
			most = d > most ? d : most;
			sum[0] += (double)a[k];
			sum[1] += (double)b[k];
		}
		printf("%-15s %llu of %zu times differ, most by %.2f %%; all of them "
		       "%.0f, "
		       "%.0f\n",
		       settings[i].name, (unsigned long long)differ, count, 100 * most,
		       sum[0], sum[1]);
		wrong += most > ALLOWED;
	}
	free(a);
	free(b);
	free(secret);
	return wrong;
}

int main(int argc, char **argv)
{
	bool figures = argc > 1 && strcmp(argv[1], "figures") == 0;
	char **arg = argv + figures;
	int args = argc - figures, wrong;
	uint32_t trials = args > 2 ? (uint32_t)strtoul(arg[2], NULL, 0) : TRIALS;
	uint64_t seed = args > 3 ? strtoull(arg[3], NULL, 0) : 1;

	if (argc == 6 && strcmp(argv[1], "compare") == 0)
		wrong = compare(argv[2], argv[5], (uint32_t)strtoul(argv[3], NULL, 0),
				strtoull(argv[4], NULL, 0));
	else
		wrong = measure(args > 1 ? arg[1] : "engine=fast", trials, seed, figures);
	return wrong ? 1 : 0;
}
