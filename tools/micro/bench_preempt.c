/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_preempt - how often the engine stops best effort in the wrong mode.
 *
 *   bench_preempt figure [N]   N cases (1,000) from a seed: a best-effort command has run
 *                              for a while, of which eight before it are known, when a
 *                              latency-critical one comes, with a deadline or without.
 *                              Each is run with the mode that the engine chooses and
 *                              with each mode that the device has: DRAIN, KILL and a
 *                              FOLD that takes 500 ns at most
 *
 * In hindsight a choice was wrong when another mode was better by more than an eighth of
 * what the two commands run, which is what a mean of lengths that vary by a tenth may be
 * off: it kept a deadline that was missed, lost less and kept it as well, or, where there
 * is none or it was missed anyway, wait and loss were less together.  The controls are
 * one mode for all cases, a FOLD whose bound, 4,000 ns, is twice what it takes on
 * average, and lengths of which a mean says little.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { KNOWN = 8, WAYS = 4 };
static const char *const ways[WAYS] = {"best", "drain", "kill", "fold"};

struct scene {
	uint64_t length[KNOWN + 1], own[KNOWN + 1]; /* the last is what it is about */
	uint64_t mean, own_mean, at_ns, deadline_ns;
};

struct outcome {
	uint64_t took_ns, lost_ns;
};

static uint64_t state;

static uint64_t below(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % n;
}

/* Around mean by so many hundredths. */
static uint64_t around(uint64_t mean, uint64_t hundredths)
{
	uint64_t spread = mean * hundredths / 100;

	return mean - spread + below(2 * spread + 1) + (spread == mean);
}

static struct scene draw(uint64_t hundredths)
{
	struct scene c;

	memset(&c, 0, sizeof(c));
	c.mean = 200 + below(20000);
	c.own_mean = 20 + below(2000);
	for (int i = 0; i <= KNOWN; i++) {
		c.length[i] = around(c.mean, hundredths);
		c.own[i] = around(c.own_mean, hundredths);
	}
	c.at_ns = below(c.length[KNOWN]);
	if (below(2) == 0)
		c.deadline_ns = c.own_mean + below(c.mean * 3 / 2);
	return c;
}

static uint64_t cost(const struct hal_ref_call *call)
{
	return call->args[0].value;
}

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

/* One command of so many ns; *done may be NULL. */
static int submit(struct hal_queue *q, struct hal_kernel *k, uint64_t ns,
		  uint64_t deadline_ns, struct hal_point *done)
{
	const struct hal_arg arg = {.offset = ns};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_launch(k, &arg, 1);

	cmd.flags = HAL_CMD_REPLAYABLE;
	d.cmds = &cmd;
	d.cmd_count = 1;
	d.deadline_ns = deadline_ns;
	return hal_submit(q, &d, done) != 0 ? bench_die("hal_submit") : 0;
}

struct pair {
	struct hal_queue *effort, *critical;
	struct hal_kernel *kernel;
};

static int play(struct hal_device *dev, const struct pair *p, const struct scene *c,
		struct outcome *out)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_point done;
	uint64_t at;

	for (int i = 0; i < KNOWN; i++)
		if (submit(p->effort, p->kernel, c->length[i], 0, NULL) != 0 ||
		    hal_device_poll(dev, UINT64_MAX) < 0 ||
		    submit(p->critical, p->kernel, c->own[i], 0, NULL) != 0 ||
		    hal_device_poll(dev, UINT64_MAX) < 0)
			return TOOL_FAILED;
	if (submit(p->effort, p->kernel, c->length[KNOWN], 0, NULL) != 0 ||
	    hal_device_poll(dev, c->at_ns) < 0)
		return TOOL_FAILED;
	at = hal_device_get_time(dev);
	if (submit(p->critical, p->kernel, c->own[KNOWN], c->deadline_ns, &done) != 0)
		return TOOL_FAILED;
	if (hal_wait(&done, 1, 0, HAL_FOREVER) != 0)
		return bench_die("hal_wait");
	out->took_ns = hal_device_get_time(dev) - at;
	if (hal_device_poll(dev, UINT64_MAX) < 0 ||
	    hal_queue_get_stats(p->effort, &s) != 0)
		return bench_die("the end");
	out->lost_ns = s.replayed_ns;
	return 0;
}

static int run(const struct scene *c, const char *way, unsigned int fold_ns,
	       struct outcome *out)
{
	static const struct hal_ref_kernel kernel = {
		.name = "work", .fn = nothing, .cost = cost, .arg_count = 1};
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	char option[32], target[48];
	const char *const options[] = {option, "hal.partition_inflight=1", NULL};
	struct hal_partition *part;
	struct hal_program *prog;
	struct hal_device *dev;
	struct pair p;
	int err;

	(void)snprintf(option, sizeof(option), "policy.preempt=%s", way);
	(void)snprintf(target, sizeof(target), "ref?clock=virtual&fold_ns=%u", fold_ns);
	pd.units_floor = 1;
	if (hal_open(target, options, &dev) != 0 ||
	    hal_partition_create(dev, &pd, &part) != 0 ||
	    hal_ref_load(dev, &kernel, 1, &prog) != 0 ||
	    hal_kernel_find(prog, "work", &p.kernel) != 0)
		return bench_die("a device");
	qd.service_class = HAL_CLASS_BEST_EFFORT;
	err = hal_queue_create(part, &qd, &p.effort);
	qd.service_class = HAL_CLASS_LATENCY;
	if (err != 0 || hal_queue_create(part, &qd, &p.critical) != 0)
		return bench_die("hal_queue_create");
	err = play(dev, &p, c, out);
	if (err != 0)
		return err;
	err |= hal_queue_destroy(p.effort);
	err |= hal_queue_destroy(p.critical);
	err |= hal_program_unload(prog);
	err |= hal_partition_destroy(part);
	err |= hal_close(dev);
	return err != 0 ? bench_die("closing") : 0;
}

static bool in_time(const struct scene *c, const struct outcome *o, uint64_t spare_ns)
{
	return c->deadline_ns != 0 && o->took_ns + spare_ns <= c->deadline_ns;
}

/* Whether b would have been better than a. */
static bool wrong(const struct scene *c, const struct outcome *a, const struct outcome *b)
{
	uint64_t error_ns = (c->mean + c->own_mean) / 8;

	if (in_time(c, b, error_ns) && (c->deadline_ns + error_ns < a->took_ns ||
					b->lost_ns + error_ns < a->lost_ns))
		return true;
	if (in_time(c, a, 0) || in_time(c, b, 0))
		return false;
	return b->took_ns + b->lost_ns + error_ns < a->took_ns + a->lost_ns;
}

/* Of each way, how many of n cases were wrong. */
static int count(unsigned int n, uint64_t hundredths, unsigned int fold_ns,
		 unsigned int *sums)
{
	state = 88172645463325252u;
	memset(sums, 0, WAYS * sizeof(*sums));
	for (unsigned int i = 0; i < n; i++) {
		struct scene c = draw(hundredths);
		struct outcome o[WAYS] = {{0, 0}};

		for (size_t w = 0; w < WAYS; w++)
			if (run(&c, ways[w], fold_ns, &o[w]) != 0)
				return TOOL_FAILED;
		for (size_t w = 0; w < WAYS; w++) {
			bool bad = false;

			for (size_t other = 1; other < WAYS; other++)
				bad = bad || wrong(&c, &o[w], &o[other]);
			sums[w] += bad;
		}
	}
	return 0;
}

static int figure(unsigned int n)
{
	unsigned int sums[WAYS];

	if (count(n, 10, 500, sums) != 0)
		return TOOL_FAILED;
	printf("figure engine.preempt.wrong_mode %.4f\n", (double)sums[0] / n);
	printf("figure engine.preempt.wrong_mode.drain %.4f\n", (double)sums[1] / n);
	printf("figure engine.preempt.wrong_mode.kill %.4f\n", (double)sums[2] / n);
	printf("figure engine.preempt.wrong_mode.fold %.4f\n", (double)sums[3] / n);
	if (count(n, 10, 4000, sums) != 0)
		return TOOL_FAILED;
	printf("figure engine.preempt.wrong_mode.bound %.4f\n", (double)sums[0] / n);
	if (count(n, 100, 500, sums) != 0)
		return TOOL_FAILED;
	printf("figure engine.preempt.wrong_mode.varied %.4f\n", (double)sums[0] / n);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 1000;

	if (argc < 2 || strcmp(argv[1], "figure") != 0 || n == 0) {
		fprintf(stderr, "usage: bench_preempt figure [N]\n");
		return 2;
	}
	bench_within(300);
	return tool_end(figure(n));
}
