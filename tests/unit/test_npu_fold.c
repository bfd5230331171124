/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues of the NPU suspended by FOLD, SAVE, KILL and DRAIN at random moments, several of
 * them inside a network at the same time, while their partitions move: every network
 * computes what it does undisturbed.  Networks of a program share its scratch memory in a
 * partition, so one that stands still inside must not lose its own to those that run.  On
 * the golden model and the fast one, on the RTL where its 16 x 16 model is built.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npu_test.h"
#include "tier.h"

enum { PARTS = 2, TENANTS = 6, NETS = 4, MOST = 32768, WEIGHTS = 16384 };

/* m rows of k, through n columns, to o columns. */
static const struct shape {
	uint32_t m, k, n, o;
} shapes[NETS] = {
	{600, 20, 24, 17}, {256, 96, 48, 40}, {40, 300, 33, 70}, {300, 8, 100, 16}};

struct tenant {
	struct hal_queue *queue;
	struct hal_partition *part;
	struct hal_buffer *a, *b, *d;
	uint8_t want[NETS][MOST];
	struct hal_point done, quiet;
	int net; /* that runs; -1: none */
	bool suspended, replayable;
	uint32_t mode;
};

struct world {
	struct hal_device *dev;
	struct hal_partition *part[PARTS];
	struct hal_program *prog;
	struct hal_kernel *net[NETS];
	struct tenant tenant[TENANTS];
	uint64_t seed;
	bool saves; /* half of the stops inside are by SAVE */
	uint32_t folds, runs;
	uint8_t got[MOST];
};

static uint32_t below(struct world *w, uint32_t n)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return (uint32_t)((w->seed >> 16) % n);
}

/* ---- the networks ----------------------------------------------------------------- */

static void add_gemm(struct hal_npu_builder *b, struct hal_npu_place a,
		     struct hal_npu_place weights, struct hal_npu_place d, uint32_t m,
		     uint32_t k, uint32_t n)
{
	static const int32_t mult = 1431655765, shift = -7;
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);

	op.a = a;
	op.b = weights;
	op.d = d;
	op.m = m;
	op.n = n;
	op.k = k;
	op.a_zero = 5;
	op.out.mult = &mult;
	op.out.shift = &shift;
	op.out.zero_point = -3;
	op.out.min = -128;
	op.out.max = 127;
	OK(hal_npu_gemm(b, &op));
}

static void add_net(struct hal_npu_builder *b, const struct shape *s, const char *name)
{
	struct hal_npu_place a = {0}, weights = {0}, d = {0}, hidden = {0}, sharp = {0};
	struct hal_npu_relu relu = HAL_INIT(hal_npu_relu);

	OK(hal_npu_kernel(b, name));
	OK(hal_npu_arg(b, MOST, &a.id));
	OK(hal_npu_arg(b, WEIGHTS, &weights.id));
	OK(hal_npu_arg(b, MOST, &d.id));
	OK(hal_npu_scratch(b, s->m * s->n, &hidden.id));
	OK(hal_npu_scratch(b, s->m * s->n, &sharp.id));
	add_gemm(b, a, weights, hidden, s->m, s->k, s->n);
	relu.bytes = s->m * s->n;
	relu.a = hidden;
	relu.d = sharp;
	relu.mult = 1610612736;
	relu.shift = 1;
	relu.min = -50;
	relu.max = 127;
	OK(hal_npu_relu(b, &relu));
	add_gemm(b, sharp, weights, d, s->m, s->n, s->o);
}

static void load(struct world *w)
{
	struct hal_npu_builder *b;
	void *image;
	size_t size;

	OK(hal_npu_builder_create(&b));
	for (uint32_t i = 0; i < NETS; i++)
		add_net(b, &shapes[i], (const char *[]){"a", "b", "c", "d"}[i]);
	OK(hal_npu_build(b, &image, &size));
	OK(hal_npu_builder_destroy(b));
	OK(hal_program_load(w->dev, image, size, &w->prog));
	hal_npu_image_free(image);
	for (uint32_t i = 0; i < NETS; i++)
		OK(hal_kernel_find(w->prog, (const char *[]){"a", "b", "c", "d"}[i],
				   &w->net[i]));
}

static void launch(struct world *w, struct tenant *t, int net)
{
	struct hal_arg args[] = {{t->a, 0, 0}, {t->b, 0, 0}, {t->d, 0, 0}};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd[2];

	t->net = net;
	t->replayable = below(w, 2) != 0;
	cmd[0] = hal_cmd_fill(t->d, 0, MOST, 0xa5a5a5a5);
	cmd[1] = hal_cmd_launch(w->net[net], args, 3);
	cmd[0].flags = HAL_CMD_REPLAYABLE;
	cmd[1].flags = t->replayable ? HAL_CMD_REPLAYABLE : 0;
	d.cmds = cmd;
	d.cmd_count = 2;
	OK(hal_submit(t->queue, &d, &t->done));
}

/* ---- the world -------------------------------------------------------------------- */

static void add_tenant(struct world *w, uint32_t i)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc q = HAL_INIT(hal_queue_desc);
	struct tenant *t = &w->tenant[i];
	uint8_t data[MOST];

	t->part = w->part[i % PARTS];
	t->net = -1;
	OK(hal_queue_create(t->part, &q, &t->queue));
	d.bytes = MOST;
	OK(hal_buffer_create(t->part, &d, &t->a));
	OK(hal_buffer_create(t->part, &d, &t->d));
	d.bytes = WEIGHTS;
	OK(hal_buffer_create(t->part, &d, &t->b));
	for (uint32_t n = 0; n < MOST; n++)
		data[n] = (uint8_t)below(w, 256);
	OK(hal_buffer_write(t->a, 0, data, MOST));
	OK(hal_buffer_write(t->b, 0, data + 77, WEIGHTS));
	for (int net = 0; net < NETS; net++) {
		launch(w, t, net);
		OK(hal_wait(&t->done, 1, 0, HAL_FOREVER));
		OK(hal_buffer_read(t->d, 0, t->want[net], MOST));
	}
	t->net = -1;
}

static struct world *open_world(const char *options, uint64_t seed)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct world *w = calloc(1, sizeof(*w));
	char target[512];

	assert_non_null(w);
	w->seed = seed;
	snprintf(target, sizeof(target), "npu:0?%s", options);
	OK(hal_open(target, NULL, &w->dev));
	d.rows = 16;
	d.cols = 8;
	for (uint32_t i = 0; i < PARTS; i++) {
		d.col = (uint16_t)(8 * i);
		OK(hal_partition_create(w->dev, &d, &w->part[i]));
	}
	load(w);
	for (uint32_t i = 0; i < TENANTS; i++)
		add_tenant(w, i);
	return w;
}

static void close_world(struct world *w)
{
	for (uint32_t i = 0; i < TENANTS; i++) {
		struct tenant *t = &w->tenant[i];

		OK(hal_queue_destroy(t->queue));
		OK(hal_buffer_destroy(t->a));
		OK(hal_buffer_destroy(t->b));
		OK(hal_buffer_destroy(t->d));
	}
	OK(hal_program_unload(w->prog));
	for (uint32_t i = 0; i < PARTS; i++)
		OK(hal_partition_destroy(w->part[i]));
	OK(hal_close(w->dev));
	free(w);
}

/* ---- random steps ----------------------------------------------------------------- */

static void look(struct world *w, struct tenant *t)
{
	if (t->net < 0 || hal_wait(&t->done, 1, 0, 0) == -ETIMEDOUT)
		return;
	OK(hal_wait(&t->done, 1, 0, 0));
	OK(hal_buffer_read(t->d, 0, w->got, MOST));
	for (uint32_t i = 0; i < MOST; i++)
		if (w->got[i] != t->want[t->net][i])
			fail_msg("tenant %d, network %d: byte %u is 0x%02x, not 0x%02x",
				 (int)(t - w->tenant), t->net, i, w->got[i],
				 t->want[t->net][i]);
	t->net = -1;
	w->runs++;
}

static void suspend(struct world *w, struct tenant *t)
{
	int rc;

	t->mode = below(w, 4)
			  ? w->saves && below(w, 2) ? HAL_SUSPEND_SAVE : HAL_SUSPEND_FOLD
		  : below(w, 2) ? HAL_SUSPEND_KILL
				: HAL_SUSPEND_DRAIN;
	rc = hal_queue_suspend(t->queue, t->mode, &t->quiet);
	if (rc == -EBUSY || (rc == -ENOTSUP && t->mode == HAL_SUSPEND_KILL))
		return; /* the resume has not happened yet; not replayable */
	OK(rc);
	t->suspended = true;
	w->folds += t->mode == HAL_SUSPEND_FOLD || t->mode == HAL_SUSPEND_SAVE;
	if (below(w, 2))
		OK(hal_wait(&t->quiet, 1, 0, HAL_FOREVER));
}

static void move(struct world *w, uint32_t i)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point moved;
	int rc;

	d.rows = (uint16_t)(1 + below(w, 16));
	d.cols = (uint16_t)(1 + below(w, 8));
	d.row = (uint16_t)below(w, 17u - d.rows);
	d.col = (uint16_t)(8 * i + below(w, 9u - d.cols));
	rc = hal_partition_resize(w->part[i], &d, &moved);
	if (rc == -EBUSY)
		return;
	OK(rc);
	if (below(w, 2))
		OK(hal_wait(&moved, 1, 0, HAL_FOREVER));
}

static void step(struct world *w)
{
	struct tenant *t = &w->tenant[below(w, TENANTS)];
	uint32_t what = below(w, 100);

	if (what < 30) {
		if (t->net < 0)
			launch(w, t, (int)below(w, NETS));
	} else if (what < 55) {
		if (!t->suspended)
			suspend(w, t);
	} else if (what < 75) {
		if (t->suspended)
			OK(hal_queue_resume(t->queue));
		t->suspended = false;
	} else if (what < 80) {
		move(w, below(w, PARTS));
	} else {
		assert_true(hal_device_poll(w->dev, below(w, 8000)) >= 0);
	}
	for (uint32_t i = 0; i < TENANTS; i++)
		look(w, &w->tenant[i]);
}

static void finish(struct world *w)
{
	for (uint32_t i = 0; i < TENANTS; i++)
		if (w->tenant[i].suspended)
			OK(hal_queue_resume(w->tenant[i].queue));
	for (uint32_t i = 0; i < TENANTS; i++) {
		if (w->tenant[i].net >= 0)
			OK(hal_wait(&w->tenant[i].done, 1, 0, HAL_FOREVER));
		look(w, &w->tenant[i]);
	}
}

static void trials(const char *options, bool saves, uint32_t worlds, uint32_t steps)
{
	uint32_t folds = 0, runs = 0;
	uint64_t saved = 0;

	for (uint32_t i = 0; i < worlds; i++) {
		struct world *w = open_world(options, 7919 + i);
		struct hal_stats s = HAL_INIT(hal_stats);

		w->saves = saves;
		for (uint32_t n = 0; n < steps; n++)
			step(w);
		finish(w);
		OK(hal_device_get_stats(w->dev, &s));
		assert_int_equal(s.failed + s.dropped, 0);
		assert_int_equal(s.completed, s.submitted);
		saved += s.saved_bytes;
		folds += w->folds;
		runs += w->runs;
		close_world(w);
	}
	printf("%s: %u networks, %u stops by FOLD%s, %llu bytes saved\n", options, runs,
	       folds, saves ? " or SAVE" : "", (unsigned long long)saved);
	/* Enough of them stood inside, and sums were kept. */
	assert_true(saved >= (saves ? 320 : 32) * steps * worlds / 100);
	assert_true(runs >= steps * worlds / 50);
}

/* ---- inside a copy ------------------------------------------------------------------- */

enum { LONG = 262144, COPY_STOPS = 12, COPY_QUIET = 1000 };

/* One VEC descriptor, stopped often, at once each time. */
static void stopped_copy(const char *options)
{
	struct world *w = open_world(options, 3);
	struct tenant *t = &w->tenant[0];
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	uint8_t *data = malloc(LONG), *got = malloc(LONG);
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_buffer *from, *to;
	struct hal_cmd cmd;

	assert_true(data && got);
	b.bytes = LONG;
	OK(hal_buffer_create(t->part, &b, &from));
	OK(hal_buffer_create(t->part, &b, &to));
	for (uint32_t i = 0; i < LONG; i++)
		data[i] = (uint8_t)below(w, 256);
	OK(hal_buffer_write(from, 0, data, LONG));
	cmd = hal_cmd_copy(to, 0, from, 0, LONG);
	cmd.flags = 0; /* it may not be run again */
	d.cmds = &cmd;
	d.cmd_count = 1;
	OK(hal_submit(t->queue, &d, &t->done));
	for (uint32_t i = 0; i < COPY_STOPS; i++) {
		assert_true(hal_device_poll(w->dev, 400 + below(w, 300)) >= 0);
		OK(hal_queue_suspend(t->queue,
				     i % 2 ? HAL_SUSPEND_SAVE : HAL_SUSPEND_FOLD,
				     &t->quiet));
		OK(hal_wait(&t->quiet, 1, 0, HAL_FOREVER));
		OK(hal_queue_resume(t->queue));
	}
	OK(hal_wait(&t->done, 1, 0, HAL_FOREVER));
	OK(hal_buffer_read(to, 0, got, LONG));
	assert_memory_equal(got, data, LONG);
	OK(hal_device_get_stats(w->dev, &s));
	printf("%s: a copy stopped %u times, quiet within %llu ns\n", options, COPY_STOPS,
	       (unsigned long long)s.suspend_max_ns);
	assert_int_equal(s.saved_bytes, 32 * COPY_STOPS);
	assert_true(s.suspend_max_ns < COPY_QUIET);
	OK(hal_buffer_destroy(from));
	OK(hal_buffer_destroy(to));
	free(data);
	free(got);
	close_world(w);
}

static void copies(void **state)
{
	(void)state;
	stopped_copy("model=" GOLDEN);
	stopped_copy("model=" FAST);
	stopped_copy("model=" FAST "&memory=ideal");
}

/* ---- engines -------------------------------------------------------------------------- */

static void golden(void **state)
{
	(void)state;
	trials("model=" GOLDEN, false, 4, 1000);
	trials("model=" GOLDEN, true, 4, 1000);
}

static void fast(void **state)
{
	(void)state;
	trials("model=" FAST, false, 1, 400);
	trials("model=" FAST, true, 2, 400);
	trials("model=" FAST "&memory=ideal", true, 1, 300);
}

static void rtl(void **state)
{
	struct hal_device *dev;
	int rc;

	(void)state;
	IN_FULL_TIER();
	rc = getenv("LD_PRELOAD") ? -ENODEV : hal_open("npu:0", NULL, &dev);
	if (rc == -ENODEV)
		skip();
	OK(rc);
	OK(hal_close(dev));
	trials("clock=virtual", true, 1, 200);
	stopped_copy("clock=virtual");
}

/* One that stands inside and has been resumed waits for the ring to be empty.  Who runs
 * until then is to stop after so long, in its last entry: the one that waits goes on
 * where it stood.  after 0: nobody stops; how long that one runs. */
static uint64_t wait_inside(const char *options, uint64_t after)
{
	struct world *w = open_world(options, 300);
	struct tenant *t = &w->tenant[0], *u = &w->tenant[2], *v = &w->tenant[4];
	struct hal_stats s = HAL_INIT(hal_stats);
	uint64_t start;

	launch(w, t, 0);
	assert_true(hal_device_poll(w->dev, 2500) >= 0);
	OK(hal_queue_suspend(t->queue, HAL_SUSPEND_SAVE, &t->quiet));
	OK(hal_wait(&t->quiet, 1, 0, HAL_FOREVER));
	launch(w, v, 2);
	assert_true(hal_device_poll(w->dev, 1500) >= 0);
	OK(hal_queue_suspend(v->queue, HAL_SUSPEND_FOLD, &v->quiet));
	OK(hal_wait(&v->quiet, 1, 0, HAL_FOREVER));
	launch(w, u, 3);
	assert_true(hal_device_poll(w->dev, 100) >= 0);
	OK(hal_queue_resume(t->queue));
	start = hal_device_get_time(w->dev);
	if (after) {
		assert_true(hal_device_poll(w->dev, after) >= 0);
		OK(hal_queue_suspend(u->queue, HAL_SUSPEND_FOLD, &u->quiet));
		OK(hal_wait(&u->quiet, 1, 0, HAL_FOREVER));
		OK(hal_queue_resume(u->queue));
	}
	OK(hal_wait(&u->done, 1, 0, HAL_FOREVER));
	start = hal_device_get_time(w->dev) - start;
	OK(hal_queue_resume(v->queue));
	OK(hal_wait(&t->done, 1, 0, HAL_FOREVER));
	OK(hal_wait(&v->done, 1, 0, HAL_FOREVER));
	look(w, t);
	look(w, u);
	look(w, v);
	OK(hal_device_get_stats(w->dev, &s));
	assert_int_equal(s.failed + s.dropped, 0);
	assert_true(s.saved_bytes >= 64);
	close_world(w);
	return start;
}

static void waits_inside(const char *options)
{
	uint64_t runs = wait_inside(options, 0);

	assert_true(runs > 200);
	for (uint32_t i = 0; i < 60; i++)
		wait_inside(options, runs - 55 + i);
}

static void waits(void **state)
{
	(void)state;
	IN_FULL_TIER();
	waits_inside("model=" GOLDEN);
	waits_inside("model=" FAST);
}

/* What is stopped inside goes with its queue, and its scratch memory. */
static void destroyed(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		struct world *w = open_world("model=" GOLDEN, 100 + i);
		struct tenant *t = &w->tenant[0], *u = &w->tenant[2];
		struct hal_queue_desc q = HAL_INIT(hal_queue_desc);

		launch(w, t, 1);
		launch(w, u, 1);
		assert_true(hal_device_poll(w->dev, 500 + 200 * i) >= 0);
		OK(hal_queue_suspend(t->queue, HAL_SUSPEND_FOLD, &t->quiet));
		OK(hal_wait(&t->quiet, 1, 0, HAL_FOREVER));
		OK(hal_queue_destroy(t->queue));
		OK(hal_wait(&u->done, 1, 0, HAL_FOREVER));
		look(w, u);
		OK(hal_queue_create(t->part, &q, &t->queue));
		launch(w, t, 1);
		OK(hal_wait(&t->done, 1, 0, HAL_FOREVER));
		look(w, t);
		close_world(w);
	}
}

/* A partition without room for what it would keep is not stopped inside, and goes on. */
static void no_room(void **state)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *rest[64];
	struct world *w = open_world("model=" GOLDEN "&memory_size=1M", 5);
	struct tenant *t = &w->tenant[0];
	uint32_t n = 0;

	(void)state;
	launch(w, t, 1);
	assert_true(hal_device_poll(w->dev, 500) >= 0);
	for (d.bytes = 16384; d.bytes >= 1024; d.bytes /= 2)
		while (n < 64 && hal_buffer_create(t->part, &d, &rest[n]) == 0)
			n++;
	assert_int_not_equal(n, 64);
	assert_int_equal(hal_queue_suspend(t->queue, HAL_SUSPEND_FOLD, NULL), -ENOSPC);
	OK(hal_wait(&t->done, 1, 0, HAL_FOREVER));
	look(w, t);
	while (n)
		OK(hal_buffer_destroy(rest[--n]));
	close_world(w);
}

/* Memory but for so many buffers of a page is taken; suspends by FOLD, and by SAVE. Where
 * neither is possible the partition is moved all the same, behind a descriptor. */
static int fold_where_there_are(uint32_t pages)
{
	struct hal_partition_desc to = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_buffer *rest[300];
	struct world *w = open_world("model=" GOLDEN "&memory_size=1M", 6);
	struct tenant *t = &w->tenant[0];
	struct hal_point moved;
	uint32_t n = 0;
	int rc = 0, save = 0;

	d.bytes = 4096;
	while (n < 300 && hal_buffer_create(t->part, &d, &rest[n]) == 0)
		n++;
	assert_in_range(n, pages + 1, 299);
	for (uint32_t i = 0; i < pages; i++)
		OK(hal_buffer_destroy(rest[--n]));
	launch(w, t, 1);
	assert_true(hal_device_poll(w->dev, 500) >= 0);
	for (uint32_t i = 0; i < 2; i++) {
		save = hal_queue_suspend(
			t->queue, i ? HAL_SUSPEND_SAVE : HAL_SUSPEND_FOLD, &t->quiet);
		if (!save) {
			OK(hal_wait(&t->quiet, 1, 0, HAL_FOREVER));
			OK(hal_queue_resume(t->queue));
		}
		rc = i ? rc : save;
	}
	assert_int_equal(save, rc);
	to.rows = 3;
	to.cols = 5;
	OK(hal_partition_resize(t->part, &to, &moved));
	OK(hal_wait(&moved, 1, 0, HAL_FOREVER));
	OK(hal_wait(&t->done, 1, 0, HAL_FOREVER));
	look(w, t);
	OK(hal_device_get_stats(w->dev, &s));
	assert_int_equal(s.saved_bytes != 0, !rc);
	while (n)
		OK(hal_buffer_destroy(rest[--n]));
	close_world(w);
	return rc;
}

/* What both keep is a context and a tile's sums. */
static void no_room_to_save(void **state)
{
	uint32_t refused = 0;
	int rc = -ENOSPC;

	(void)state;
	for (uint32_t pages = 0; rc && pages < 60; pages++) {
		rc = fold_where_there_are(pages);
		if (rc && rc != -ENOSPC)
			fail_msg("%u pages: %s", pages, hal_last_error());
		refused += !!rc;
	}
	assert_int_equal(rc, 0);
	/* a save area is nine pages */
	assert_true(refused >= 9);
}

/* ---- as a profile says -------------------------------------------------------------- */

/* Of the second network on w's partitions: how long it runs there, and what FOLD costs.
 */
static void write_profile(const struct world *w, const char *path, uint64_t ns)
{
	struct hal_device_info i = HAL_INIT(hal_device_info);
	struct hal_kernel_info k = HAL_INIT(hal_kernel_info);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	OK(hal_device_get_info(w->dev, &i));
	OK(hal_kernel_get_info(w->net[1], &k));
	fprintf(f,
		"{\"accelhal_profile\": 1, \"device\": {\"backend\": \"npu\",\n"
		"\"name\": \"%s\", \"unit_rows\": %u, \"unit_cols\": %u,\n"
		"\"colors\": %u, \"clock_hz\": %" PRIu64 ", \"bandwidth\": %" PRIu64
		",\n\"clock\": \"virtual\"}, \"runs\": 3,\n",
		i.name, i.unit_rows, i.unit_cols, i.colors, i.clock_hz, i.bandwidth);
	fprintf(f,
		"\"programs\": [{\"name\": \"nets\", \"kernels\": [{\"name\": \"b\",\n"
		"\"work\": %" PRIu64 ", \"arg_bytes\": [%d, %d, %d],\n"
		"\"class\": \"array\", \"bytes\": 0,\n"
		"\"units\": [{\"units\": 128, \"ns\": %" PRIu64 ", \"spread_ns\": 0}],\n"
		"\"stops\": [{\"mode\": \"fold\", \"quiet_ns\": 700,\n"
		"\"cost_ns\": 500, \"saved_bytes\": 0}]}]}]}\n",
		k.work, MOST, WEIGHTS, MOST, ns);
	assert_int_equal(fclose(f), 0);
}

/* The second network of t's, which may not run twice, by a queue of that class. */
static struct hal_queue *run_as(struct world *w, struct tenant *t, uint16_t class)
{
	struct hal_arg args[] = {{t->a, 0, 0}, {t->b, 0, 0}, {t->d, 0, 0}};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_queue_desc desc = HAL_INIT(hal_queue_desc);
	struct hal_cmd cmd = hal_cmd_launch(w->net[1], args, 3);
	struct hal_queue *q;

	desc.service_class = class;
	OK(hal_queue_create(t->part, &desc, &q));
	d.cmds = &cmd;
	d.cmd_count = 1;
	OK(hal_submit(q, &d, &t->done));
	t->net = 1;
	return q;
}

/* Best effort runs when latency-critical work comes; true: that ends first. */
static bool makes_way(const char *profile, const char *written)
{
	char options[256];
	struct hal_queue *effort, *urgent;
	struct hal_stats s = HAL_INIT(hal_stats);
	struct tenant *t, *u;
	struct world *w;
	bool first;

	snprintf(options, sizeof(options), "model=" GOLDEN "%s%s",
		 profile ? "&hal.profile=" : "", profile ? profile : "");
	w = open_world(options, 11);
	t = &w->tenant[0];
	u = &w->tenant[PARTS];
	effort = run_as(w, t, HAL_CLASS_BEST_EFFORT);
	assert_true(hal_device_poll(w->dev, 1000) >= 0);
	urgent = run_as(w, u, HAL_CLASS_LATENCY);
	OK(hal_wait(&u->done, 1, 0, HAL_FOREVER));
	first = hal_timeline_get_value(t->done.timeline, NULL) < t->done.value;
	OK(hal_wait(&t->done, 1, 0, HAL_FOREVER));
	look(w, t);
	look(w, u);
	OK(hal_queue_get_stats(effort, &s));
	assert_int_equal(s.replayed, 0);
	assert_int_equal(s.suspends, 1);
	if (written)
		write_profile(w, written, s.busy_ns);
	OK(hal_queue_destroy(effort));
	OK(hal_queue_destroy(urgent));
	close_world(w);
	return first;
}

/* Best effort is stopped inside its command, without a profile and with one that has
 * measured FOLD. */
static void by_profile(void **state)
{
	char path[] = "/tmp/hal-profile-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	assert_true(makes_way(NULL, path));
	assert_true(makes_way(path, NULL));
	assert_int_equal(unlink(path), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),     cmocka_unit_test(fast),
		cmocka_unit_test(rtl),        cmocka_unit_test(destroyed),
		cmocka_unit_test(no_room),    cmocka_unit_test(no_room_to_save),
		cmocka_unit_test(by_profile), cmocka_unit_test(copies),
		cmocka_unit_test(waits),
	};

	tier_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
