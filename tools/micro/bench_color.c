/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_color - what channels of one's own are worth on an NPU, and what a move to others
 * costs.
 *
 *   bench_color corun [TARGET [FILE.tflite ...]]    cycles of a network beside another
 * one and a hog that copies, each with units of its own: with channels of its own as
 * well, and with all channels shared, as ratios to its cycles alone; every pair of the
 * files bench_color p99 [TARGET [FILE.tflite ...]]      the 99th percentile of a
 * network's times beside a hog, units split in both: channels split against shared
 *   bench_color recolor [TARGET [FILE.tflite]]      a tenant's command on a buffer, given
 *               just behind the move of that buffer: how long it waits; what else the
 *               tenant does meanwhile; and its neighbour's cycles, beside a move in
 *               channels of the tenant's own, and in channels shared with it
 *   bench_color evict [TARGET [FILE.tflite]]        a tenant with twice its quota in
 *               buffers, each of which is away when it is used: what a command on such a
 *               one takes more than on one that is there; and its neighbour's cycles
 *   bench_color bimodal [TARGET [FILE.tflite ...]]  a network in a bimodal partition: its
 *               memory over that of a plain one, and over that of two plain ones, on its
 *               own channels and on all; its cycles alone; and those of a neighbour on
 *               the rest, which must not change
 *
 * Without a file the digit network of data/digits.  Virtual time; ratios are exact.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/memory.h>

#include "bench.h"
#include "npuc.h"

enum { NETS = 8, JOBS = 3, SAMPLES = 200, HOG_BYTES = 64 << 10, MOVED = 128 << 10 };

struct net {
	const char *path;
	struct npuc_program program;
};

static struct net nets[NETS];
static uint32_t net_count;

/* One partition of the device, with a queue. */
struct side {
	struct hal_partition *part;
	struct hal_queue *queue;
	/* A network. */
	struct hal_program *program;
	struct hal_kernel *kernel;
	struct hal_buffer *in, *out;
	/* A hog. */
	struct hal_buffer *from, *to;
	struct hal_point last;
};

struct world {
	struct hal_device *dev;
	struct hal_device_info info;
};

static int open_world(struct world *w, const char *target)
{
	static const char *const options[] = {"hal.oversubscribe=yes", NULL};
	int err = hal_open(target, options, &w->dev);

	if (err == -ENODEV)
		return BENCH_SKIP;
	w->info = (struct hal_device_info)HAL_INIT(hal_device_info);
	if (err != 0 || hal_device_get_info(w->dev, &w->info) != 0)
		return bench_die("a device");
	if (w->info.colors < 4 || w->info.unit_cols < 8 ||
	    (w->info.caps & HAL_CAP_RECOLOR) == 0) {
		fprintf(stderr,
			"bench_color: %s: four channels and eight columns are needed\n",
			target);
		return BENCH_SKIP;
	}
	return 0;
}

/* The i-th of n columns of the device. */
static int open_side_as(const struct world *w, struct side *s, uint32_t i, uint32_t n,
			uint64_t colors, uint32_t flags)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	uint32_t width = w->info.unit_cols / n;

	memset(s, 0, sizeof(*s));
	pd.rows = (uint16_t)w->info.unit_rows;
	pd.cols = (uint16_t)width;
	pd.col = (uint16_t)(i * width);
	pd.color_mask = colors;
	pd.flags = flags;
	if (hal_partition_create(w->dev, &pd, &s->part) != 0 ||
	    hal_queue_create(s->part, &qd, &s->queue) != 0)
		return bench_die("a partition");
	return 0;
}

static int open_side(const struct world *w, struct side *s, uint32_t i, uint32_t n,
		     uint64_t colors)
{
	return open_side_as(w, s, i, n, colors, 0);
}

static int buffer_as(struct side *s, uint64_t bytes, uint64_t colors, uint32_t flags,
		     struct hal_buffer **out)
{
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);

	bd.bytes = bytes;
	bd.color_mask = colors;
	bd.flags = flags;
	return hal_buffer_create(s->part, &bd, out) != 0 ? bench_die("a buffer") : 0;
}

static int buffer(struct side *s, uint64_t bytes, uint64_t colors,
		  struct hal_buffer **out)
{
	return buffer_as(s, bytes, colors, 0, out);
}

/* flags: of its input, which the host writes. */
static int load_as(const struct world *w, struct side *s, const struct net *n,
		   uint32_t flags)
{
	if (hal_program_load(w->dev, n->program.image, n->program.image_size,
			     &s->program) != 0 ||
	    hal_kernel_find(s->program, "run", &s->kernel) != 0)
		return bench_die("a program");
	if (buffer_as(s, n->program.input_bytes, 0, flags, &s->in) != 0 ||
	    buffer(s, n->program.output_bytes, 0, &s->out) != 0)
		return TOOL_FAILED;
	return 0;
}

static int load(const struct world *w, struct side *s, const struct net *n)
{
	return load_as(w, s, n, 0);
}

static void close_side(struct side *s)
{
	struct hal_point quiet;

	if (s->queue != NULL && s->from != NULL &&
	    hal_queue_suspend(s->queue, HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL, &quiet) ==
		    0)
		(void)hal_wait(&quiet, 1, 0, HAL_FOREVER);
	(void)hal_queue_destroy(s->queue);
	(void)hal_buffer_destroy(s->in);
	(void)hal_buffer_destroy(s->out);
	(void)hal_buffer_destroy(s->from);
	(void)hal_buffer_destroy(s->to);
	if (s->program != NULL)
		(void)hal_program_unload(s->program);
	(void)hal_partition_destroy(s->part);
}

static int submit(struct side *s, struct hal_cmd cmd, struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	cmd.flags |= HAL_CMD_REPLAYABLE;
	d.cmds = &cmd;
	d.cmd_count = 1;
	return hal_submit(s->queue, &d, done);
}

static int launch(struct side *s, struct hal_point *done)
{
	struct hal_arg args[2] = {{.buffer = s->out}, {.buffer = s->in}};
	int err = submit(s, hal_cmd_launch(s->kernel, args, 2), done);

	return err != 0 ? bench_die("a launch") : 0;
}

/* A hog always has something to do. */
static int feed(struct side *s)
{
	int err;

	if (s->from == NULL && (buffer(s, HOG_BYTES, 0, &s->from) != 0 ||
				buffer(s, HOG_BYTES, 0, &s->to) != 0))
		return TOOL_FAILED;
	while ((err = submit(s, hal_cmd_copy(s->to, 0, s->from, 0, HOG_BYTES),
			     &s->last)) == 0)
		;
	return err == -EAGAIN ? 0 : bench_die("a copy");
}

static uint64_t busy(const struct side *s)
{
	struct hal_stats t = HAL_INIT(hal_stats);

	(void)hal_queue_get_stats(s->queue, &t);
	return t.busy_ns;
}

/* One more job of s; hogs of all others are fed before it.  *ns: its time. */
static int job(struct side *s, struct side *hog, struct side *other, uint64_t *ns)
{
	uint64_t before = busy(s);
	struct hal_point done, beside = {0};

	if ((hog != NULL && feed(hog) != 0) ||
	    (other != NULL && launch(other, &beside) != 0) || launch(s, &done) != 0)
		return TOOL_FAILED;
	if (hal_wait(&done, 1, 0, HAL_FOREVER) != 0)
		return bench_die("hal_wait");
	*ns = busy(s) - before;
	if (other != NULL && hal_wait(&beside, 1, 0, HAL_FOREVER) != 0)
		return bench_die("hal_wait");
	return 0;
}

/* Times of JOBS jobs of network a in a fresh world; beside b and a hog, unless b is NULL.
 * mask: its channels; others: theirs. */
static int times(const char *target, const struct net *a, const struct net *b,
		 const uint64_t *mask, uint64_t *ns)
{
	struct side s[3] = {{0}};
	struct world w = {0};
	int err = open_world(&w, target);

	for (uint32_t i = 0; err == 0 && i < 3; i++)
		err = open_side(&w, &s[i], i, 4, mask[i]);
	if (err == 0)
		err = load(&w, &s[0], a);
	if (err == 0 && b != NULL)
		err = load(&w, &s[1], b);
	for (uint32_t i = 0; err == 0 && i < JOBS; i++)
		err = job(&s[0], b != NULL ? &s[2] : NULL, b != NULL ? &s[1] : NULL,
			  &ns[i]);
	for (uint32_t i = 0; i < 3; i++)
		close_side(&s[i]);
	if (w.dev != NULL && hal_close(w.dev) != 0)
		return bench_die("closing");
	return err;
}

static double worst(const uint64_t *ns, const uint64_t *alone)
{
	double most = 0;

	for (uint32_t i = 0; i < JOBS; i++)
		if ((double)ns[i] / (double)alone[i] > most)
			most = (double)ns[i] / (double)alone[i];
	return most;
}

static int corun(const char *target)
{
	static const uint64_t own[3] = {1, 2, 12}, all[3] = {0, 0, 0};
	double disjoint = 0, shared = 0, least = 1e9, ratio;
	uint64_t alone[JOBS] = {0}, free_alone[JOBS] = {0}, ns[JOBS] = {0};
	uint32_t pairs = 0, changed = 0;
	int err = 0;

	for (uint32_t a = 0; err == 0 && a < net_count; a++) {
		err = times(target, &nets[a], NULL, own, alone);
		if (err == 0)
			err = times(target, &nets[a], NULL, all, free_alone);
		for (uint32_t b = 0; err == 0 && b < net_count; b++) {
			err = times(target, &nets[a], &nets[b], own, ns);
			if (err != 0)
				break;
			ratio = worst(ns, alone);
			disjoint = ratio > disjoint ? ratio : disjoint;
			changed += memcmp(ns, alone, sizeof(ns)) != 0;
			err = times(target, &nets[a], &nets[b], all, ns);
			ratio = worst(ns, free_alone);
			shared = ratio > shared ? ratio : shared;
			least = ratio < least ? ratio : least;
			pairs++;
		}
	}
	if (err != 0)
		return err;
	printf("%u pairs of networks and a hog, each job's cycles beside them over "
	       "alone: "
	       "own channels at most %.6f (%u of the pairs differ), all channels shared "
	       "%.3f to %.3f\n",
	       pairs, disjoint, changed, least, shared);
	printf("figure color.corun.slowdown_disjoint_max %.6f\n", disjoint);
	printf("figure color.corun.slowdown_shared_max %.6f\n", shared);
	printf("figure color.corun.slowdown_shared_min %.6f\n", least);
	printf("figure color.corun.pairs %u\n", pairs);
	return 0;
}

/* ---- p99 --------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Jobs that come at odd times beside a hog: what 99 of 100 take at most. */
static int percentile(const char *target, const struct net *n, uint64_t mine,
		      uint64_t theirs, uint64_t *p99)
{
	uint64_t ns[SAMPLES], random = 12345;
	struct side s[2] = {{0}};
	struct world w = {0};
	int err = open_world(&w, target);

	if (err == 0)
		err = open_side(&w, &s[0], 0, 2, mine);
	if (err == 0)
		err = open_side(&w, &s[1], 1, 2, theirs);
	if (err == 0)
		err = load(&w, &s[0], n);
	for (uint32_t i = 0; err == 0 && i < SAMPLES; i++) {
		err = job(&s[0], &s[1], NULL, &ns[i]);
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		if (err == 0 && hal_device_poll(w.dev, random >> 33 & 4095) < 0)
			err = bench_die("hal_device_poll");
	}
	for (uint32_t i = 0; i < 2; i++)
		close_side(&s[i]);
	if (w.dev != NULL && hal_close(w.dev) != 0)
		return bench_die("closing");
	if (err == 0)
		qsort(ns, SAMPLES, sizeof(*ns), compare);
	*p99 = err == 0 ? ns[SAMPLES * 99 / 100 - 1] : 0;
	return err;
}

static int tails(const char *target)
{
	double sum = 0, most = -1e9;
	uint64_t own = 0, shared = 1;
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < net_count; i++) {
		double less;

		err = percentile(target, &nets[i], 3, 12, &own);
		if (err == 0)
			err = percentile(target, &nets[i], 0, 0, &shared);
		if (err != 0)
			return err;
		less = 1 - (double)own / (double)shared;
		printf("%s: p99 beside a hog %llu with two of four channels, %llu with "
		       "all "
		       "four shared\n",
		       nets[i].path, (unsigned long long)own, (unsigned long long)shared);
		sum += less;
		most = less > most ? less : most;
	}
	printf("figure color.p99_reduction.mean %.4f\n", sum / net_count);
	printf("figure color.p99_reduction.max %.4f\n", most);
	return 0;
}

/* ---- moves ------------------------------------------------------------------------- */

struct pause {
	uint64_t waits, others, neighbour;
};

/* A tenant, with a queue for moves, one whose command uses what moves, and one that uses
 * something else; and its neighbour, which runs a network. */
static int one_move(const char *target, const struct net *n, bool moves,
		    const uint64_t *mask, struct pause *out)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct side s[2] = {{0}}, user = {0}, third = {0};
	struct hal_point moved = {0}, used, done, ran;
	struct world w = {0};
	uint64_t begin, first = mask[0] & -mask[0];
	int err = open_world(&w, target);

	for (uint32_t i = 0; err == 0 && i < 2; i++)
		err = open_side(&w, &s[i], i, 2, mask[i]);
	if (err == 0)
		err = load(&w, &s[1], n);
	if (err == 0 && (hal_queue_create(s[0].part, &qd, &user.queue) != 0 ||
			 hal_queue_create(s[0].part, &qd, &third.queue) != 0))
		err = bench_die("a queue");
	if (err == 0)
		err = buffer(&s[0], MOVED, first, &s[0].in);
	if (err == 0)
		err = buffer(&s[0], 4096, 0, &s[0].out);
	if (err == 0)
		err = launch(&s[1], &ran);
	if (err == 0 && hal_device_poll(w.dev, 500) < 0)
		err = bench_die("hal_device_poll");
	if (err == 0 && moves &&
	    hal_buffer_recolor(s[0].in, s[0].queue, mask[0] & ~first, NULL, &moved) != 0)
		err = bench_die("hal_buffer_recolor");
	if (err == 0 && hal_device_poll(w.dev, 1) < 0)
		err = bench_die("hal_device_poll");
	begin = err == 0 ? hal_device_get_time(w.dev) : 0;
	if (err == 0 && (submit(&user, hal_cmd_fill(s[0].in, 0, 64, 1), &used) != 0 ||
			 submit(&third, hal_cmd_fill(s[0].out, 0, 64, 1), &done) != 0 ||
			 hal_wait(&done, 1, 0, HAL_FOREVER) != 0))
		err = bench_die("a fill");
	out->others = err == 0 ? hal_device_get_time(w.dev) - begin : 0;
	if (err == 0 && hal_wait(&used, 1, 0, HAL_FOREVER) != 0)
		err = bench_die("a fill");
	out->waits = err == 0 ? hal_device_get_time(w.dev) - begin : 0;
	if (err == 0 && (hal_wait(&ran, 1, 0, HAL_FOREVER) != 0 ||
			 (moves && hal_wait(&moved, 1, 0, HAL_FOREVER) != 0)))
		err = bench_die("hal_wait");
	out->neighbour = err == 0 ? busy(&s[1]) : 0;
	(void)hal_queue_destroy(user.queue);
	(void)hal_queue_destroy(third.queue);
	for (uint32_t i = 0; i < 2; i++)
		close_side(&s[i]);
	if (w.dev != NULL && hal_close(w.dev) != 0)
		return bench_die("closing");
	return err;
}

static int recolor(const char *target)
{
	static const uint64_t own[2] = {3, 12}, shared[2] = {0, 0};
	struct pause none, moving, control_none, control;
	int err = one_move(target, &nets[0], false, own, &none);

	if (err == 0)
		err = one_move(target, &nets[0], true, own, &moving);
	/* Of four channels that it shares the tenant uses two. */
	if (err == 0)
		err = one_move(target, &nets[0], false, shared, &control_none);
	if (err == 0)
		err = one_move(target, &nets[0], true, shared, &control);
	if (err != 0)
		return err;
	printf("%d bytes from one channel to another: a command that uses them waits "
	       "%llu "
	       "cycles (%llu without a move), one that does not %llu (%llu); the "
	       "neighbour's "
	       "network takes %llu (%llu), with shared channels %llu (%llu)\n",
	       MOVED, (unsigned long long)moving.waits, (unsigned long long)none.waits,
	       (unsigned long long)moving.others, (unsigned long long)none.others,
	       (unsigned long long)moving.neighbour, (unsigned long long)none.neighbour,
	       (unsigned long long)control.neighbour,
	       (unsigned long long)control_none.neighbour);
	printf("figure recolor.pause_cycles %llu\n",
	       (unsigned long long)(moving.waits - none.waits));
	printf("figure recolor.cycles_per_byte %.4f\n",
	       (double)(moving.waits - none.waits) / MOVED);
	printf("figure recolor.neighbour_cycle_changes %d\n",
	       moving.neighbour != none.neighbour);
	printf("figure recolor.shared_cycle_changes %d\n",
	       control.neighbour != control_none.neighbour);
	return 0;
}

/* ---- bimodal partitions ------------------------------------------------------------ */

struct bimodal {
	uint64_t bytes, alone, neighbour, switches;
};

/* A network's jobs in a fresh world, in the left half on two of four channels, or on all;
 * first alone; then the same network's on the rest, which begin first, and more of its
 * own beside them or none. */
static int one_bimodal(const char *target, const struct net *n, uint64_t colors,
		       uint32_t flags, bool beside, struct bimodal *out)
{
	struct hal_partition_memory_info m = HAL_INIT(hal_partition_memory_info);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_point last[2];
	struct side s[2] = {{0}};
	struct world w = {0};
	int err = open_world(&w, target);

	memset(out, 0, sizeof(*out));
	if (err == 0)
		err = open_side_as(&w, &s[0], 0, 2, colors, flags);
	if (err == 0)
		err = open_side(&w, &s[1], 1, 2, 0);
	if (err == 0)
		err = load_as(&w, &s[0], n, flags != 0 ? HAL_BUFFER_BIMODAL : 0);
	if (err == 0)
		err = load(&w, &s[1], n);
	/* Each the second in a row: the first fills the TLB. */
	for (int k = 0; err == 0 && k < 2; k++)
		err = job(&s[0], NULL, NULL, &out->alone);
	for (int k = 0; err == 0 && k < 2; k++)
		err = launch(&s[1], &last[0]);
	for (int k = 0; err == 0 && beside && k < 2; k++)
		err = launch(&s[0], &last[1]);
	if (err == 0 && hal_wait(last, beside ? 2 : 1, 0, HAL_FOREVER) != 0)
		err = bench_die("hal_wait");
	out->neighbour = err == 0 ? busy(&s[1]) : 0;
	if (err == 0 && (hal_partition_get_info(s[0].part, &i) != 0 ||
			 hal_partition_get_memory_info(s[0].part, &m) != 0))
		err = bench_die("a partition");
	out->bytes = i.memory_used;
	out->switches = m.switches;
	for (int k = 0; k < 2; k++)
		close_side(&s[k]);
	if (w.dev != NULL && hal_close(w.dev) != 0)
		return bench_die("closing");
	return err;
}

static int bimodal(const char *target)
{
	double most = 0, twice = 0, gain = 0;
	uint32_t changed = 0, differ = 0;

	for (uint32_t i = 0; i < net_count; i++) {
		struct bimodal plain, wide, met, both, idle;
		double ratio, two, speedup;
		int err = one_bimodal(target, &nets[i], 3, 0, false, &plain);

		if (err == 0)
			err = one_bimodal(target, &nets[i], 0, 0, false, &wide);
		if (err == 0)
			err = one_bimodal(target, &nets[i], 0, 0, true, &met);
		if (err == 0)
			err = one_bimodal(target, &nets[i], 3, HAL_PARTITION_BIMODAL,
					  false, &idle);
		if (err == 0)
			err = one_bimodal(target, &nets[i], 3, HAL_PARTITION_BIMODAL,
					  true, &both);
		if (err != 0)
			return err;
		if (both.switches != 2)
			return tool_fail("%s: %llu changes of placement, not 2",
					 nets[i].path, (unsigned long long)both.switches);
		ratio = (double)both.bytes / (double)plain.bytes;
		two = (double)(plain.bytes + wide.bytes) / (double)plain.bytes;
		speedup = (double)plain.alone / (double)both.alone;
		printf("%s: %llu bytes, bimodal %llu, twice %llu; cycles alone %llu on "
		       "two "
		       "channels, %llu on all, bimodal %llu; a neighbour's %llu "
		       "beside it, %llu without\n",
		       nets[i].path, (unsigned long long)plain.bytes,
		       (unsigned long long)both.bytes,
		       (unsigned long long)plain.bytes + wide.bytes,
		       (unsigned long long)plain.alone, (unsigned long long)wide.alone,
		       (unsigned long long)both.alone, (unsigned long long)both.neighbour,
		       (unsigned long long)idle.neighbour);
		most = ratio > most ? ratio : most;
		twice = two > twice ? two : twice;
		gain = speedup > gain ? speedup : gain;
		changed += both.neighbour != idle.neighbour;
		differ += met.neighbour != wide.neighbour;
	}
	printf("figure color.bimodal.memory_ratio %.4f\n", most);
	printf("figure color.bimodal.memory_ratio.no_reuse %.4f\n", twice);
	printf("figure color.bimodal.speedup_alone_max %.4f\n", gain);
	printf("figure color.bimodal.neighbour_cycle_changes %u\n", changed);
	printf("figure color.bimodal.shared_differ %u\n", differ);
	return 0;
}

/* ---- all of it --------------------------------------------------------------------- */

static int add_net(const char *path)
{
	struct net *n = &nets[net_count];
	char why[NPUC_WHY];

	n->path = path;
	if (npuc_program_open(path, NULL, &n->program, why) != 0)
		return tool_fail("%s", why);
	net_count++;
	return 0;
}

/* ---- evictions ---------------------------------------------------------------------- */

enum { AWAY = 8 };

/* Half the columns, channels and memory of AWAY buffers, for half of which there is room.
 */
static int open_tight(const struct world *w, struct side *s, uint64_t colors,
		      struct hal_buffer **b)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	int err = 0;

	memset(s, 0, sizeof(*s));
	pd.rows = (uint16_t)w->info.unit_rows;
	pd.cols = (uint16_t)(w->info.unit_cols / 2);
	pd.color_mask = colors;
	pd.memory_bytes = (uint64_t)AWAY / 2 * MOVED;
	pd.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits),
		.memory_limit = (uint64_t)AWAY * MOVED};
	if (hal_partition_create(w->dev, &pd, &s->part) != 0 ||
	    hal_queue_create(s->part, &qd, &s->queue) != 0)
		return bench_die("a partition");
	for (uint32_t i = 0; err == 0 && i < AWAY; i++)
		err = buffer(s, MOVED, 0, &b[i]);
	return err;
}

/* Device time of a fill of b. */
static int touch(const struct world *w, struct side *s, struct hal_buffer *b,
		 uint64_t *ns)
{
	uint64_t begin = hal_device_get_time(w->dev);
	struct hal_point done;

	if (submit(s, hal_cmd_fill(b, 0, 64, 1), &done) != 0 ||
	    hal_wait(&done, 1, 0, HAL_FOREVER) != 0)
		return bench_die("a fill");
	*ns = hal_device_get_time(w->dev) - begin;
	return 0;
}

struct cost {
	uint64_t here, away, neighbour, fetches;
};

static int evictions(const char *target, const struct net *n, bool evicts, bool shared,
		     struct cost *out)
{
	struct hal_partition_memory_info i = HAL_INIT(hal_partition_memory_info);
	struct hal_buffer *b[AWAY] = {NULL};
	struct side s[2] = {{0}};
	struct world w = {0};
	struct hal_point ran;
	int err = open_world(&w, target);

	memset(out, 0, sizeof(*out));
	if (err == 0)
		err = open_tight(&w, &s[0], shared ? 0 : 3, b);
	if (err == 0)
		err = open_side(&w, &s[1], 1, 2, shared ? 0 : 12);
	if (err == 0)
		err = load(&w, &s[1], n);
	if (err == 0)
		err = launch(&s[1], &ran);
	/* The last ones are there; in order none ever is. */
	for (uint32_t k = 0; err == 0 && evicts && k < AWAY; k++) {
		err = touch(&w, &s[0], b[k], &out->away);
		if (err == 0)
			err = touch(&w, &s[0], b[k], &out->here);
	}
	if (err == 0 && hal_wait(&ran, 1, 0, HAL_FOREVER) != 0)
		err = bench_die("hal_wait");
	out->neighbour = err == 0 ? busy(&s[1]) : 0;
	if (err == 0 && hal_partition_get_memory_info(s[0].part, &i) != 0)
		err = bench_die("hal_partition_get_memory_info");
	out->fetches = i.fetches;
	for (uint32_t k = 0; k < AWAY; k++)
		(void)hal_buffer_destroy(b[k]);
	for (uint32_t k = 0; k < 2; k++)
		close_side(&s[k]);
	if (w.dev != NULL && hal_close(w.dev) != 0)
		return bench_die("closing");
	return err;
}

static int evict(const char *target)
{
	struct cost none, some, idle, beside;
	int err = evictions(target, &nets[0], false, false, &none);

	if (err == 0)
		err = evictions(target, &nets[0], true, false, &some);
	if (err == 0)
		err = evictions(target, &nets[0], false, true, &idle);
	if (err == 0)
		err = evictions(target, &nets[0], true, true, &beside);
	if (err != 0)
		return err;
	if (some.fetches != AWAY)
		return bench_die("a buffer was there that should have been away");
	printf("a fill of a buffer of %u KiB: %llu cycles, %llu when it was away and "
	       "another had to go; the neighbour's network: %llu cycles, beside %llu "
	       "such fills %llu\n",
	       (unsigned int)(MOVED >> 10), (unsigned long long)some.here,
	       (unsigned long long)some.away, (unsigned long long)none.neighbour,
	       (unsigned long long)some.fetches, (unsigned long long)some.neighbour);
	printf("figure evict.fetch_cycles_per_kib %.4f\n",
	       ((double)some.away - (double)some.here) / (MOVED >> 10));
	printf("figure evict.neighbour_cycle_changes %d\n",
	       some.neighbour != none.neighbour);
	printf("where they share channels: %llu cycles, %llu\n",
	       (unsigned long long)idle.neighbour, (unsigned long long)beside.neighbour);
	printf("figure evict.shared_differ %d\n", beside.neighbour != idle.neighbour);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*fn)(const char *target);
	} modes[] = {{"corun", corun},
		     {"p99", tails},
		     {"recolor", recolor},
		     {"evict", evict},
		     {"bimodal", bimodal}};
	const char *target =
		argc > 2 && argv[2][0] != '\0' ? argv[2] : "npu:0?clock=virtual";
	int rc = 0;

	bench_within(1800);
	for (int i = 3; rc == 0 && i < argc && net_count < NETS; i++)
		rc = add_net(argv[i]);
	if (rc == 0 && net_count == 0)
		rc = add_net(BENCH_DIGITS);
	for (size_t i = 0; rc == 0 && i < sizeof(modes) / sizeof(*modes); i++)
		if (argc > 1 && strcmp(argv[1], modes[i].name) == 0) {
			rc = modes[i].fn(target);
			for (uint32_t n = 0; n < net_count; n++)
				npuc_program_free(&nets[n].program);
			return tool_end(rc);
		}
	if (rc != 0)
		return tool_end(rc);
	fprintf(stderr, "usage: bench_color corun|p99|recolor|evict|bimodal [TARGET "
			"[FILE.tflite ...]]\n");
	return 2;
}
