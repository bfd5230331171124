/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - what the benchmarks of this folder share; see bench.h. */
#define _GNU_SOURCE
#include "bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *const bench_policies[BENCH_POLICY_COUNT] = {
	"fifo",    "priority", "wfq",   "edf", /* BENCH_BASIC */
	"rr",      "quota",    "token", "static", "tgs",   "laxity",
	"prema",   "reef",     "orion", "themis", "tidal", "krisp",
	"fission", "weave",    "v10",   "moca",   "fgpu",  "slots",
};

int bench_die(const char *what)
{
	return tool_fail("%s: %s", what, hal_last_error());
}

static void too_late(int signal)
{
	static const char text[] = "benchmark: time limit exceeded, it hangs\n";

	(void)signal;
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

void bench_within(unsigned int seconds)
{
	struct sigaction act;

	memset(&act, 0, sizeof(act));
	act.sa_handler = too_late;
	(void)sigaction(SIGALRM, &act, NULL);
	/* By the clock on the wall: a busy machine needs longer. */
	(void)alarm(10 * seconds);
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t bench_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t bench_cpu(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

int bench_load(struct hal_device *dev, uint64_t span_ns, struct hal_program **prog)
{
	const struct {
		struct hal_ref_image head;
		char name[HAL_REF_NAME];
	} image = {{HAL_REF_MAGIC, HAL_REF_VERSION, HAL_REF_NAME, 1}, "nothing"};
	const struct hal_ref_kernel kernel = {.name = "nothing",
					      .fn = nothing,
					      .span_ns = span_ns,
					      .arg_count = 2,
					      .arg_bytes = {64, 64}};

	if (hal_device_get_native(dev) == NULL) /* hald serves it, and has the kernel */
		return hal_program_load(dev, &image, sizeof(image), prog) == 0
			       ? 0
			       : bench_die("hal_program_load");
	if (hal_ref_load(dev, &kernel, 1, prog) != 0)
		return bench_die("hal_ref_load");
	return 0;
}

int bench_open(struct bench *b, const char *target, const char *const *options,
	       uint64_t span_ns)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);

	memset(b, 0, sizeof(*b));
	if (hal_open(target, options, &b->dev) != 0)
		return bench_die("hal_open");
	pd.units_floor = 1;
	bd.bytes = 4096;
	if (hal_partition_create(b->dev, &pd, &b->part) != 0)
		return bench_die("hal_partition_create");
	if (hal_buffer_create(b->part, &bd, &b->in) != 0 ||
	    hal_buffer_create(b->part, &bd, &b->out) != 0)
		return bench_die("hal_buffer_create");
	if (bench_load(b->dev, span_ns, &b->prog) != 0)
		return TOOL_FAILED;
	if (hal_kernel_find(b->prog, "nothing", &b->kernel) != 0)
		return bench_die("hal_kernel_find");
	b->args[0] = (struct hal_arg){b->out, 0, 0};
	b->args[1] = (struct hal_arg){b->in, 0, 0};
	b->launch = hal_cmd_launch(b->kernel, b->args, 2);
	b->desc = sd;
	b->desc.cmds = &b->launch;
	b->desc.cmd_count = 1;
	return 0;
}

int bench_add_queues(struct bench *b, unsigned int count, int32_t priority_step)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);

	b->queues = calloc(count, sizeof(struct hal_queue *));
	if (b->queues == NULL)
		return TOOL_FAILED;
	for (; b->queue_count < count; b->queue_count++) {
		if (hal_queue_create(b->part, &qd, &b->queues[b->queue_count]) != 0)
			return bench_die("hal_queue_create");
		qd.priority += priority_step;
	}
	return 0;
}

int bench_close(struct bench *b)
{
	int err = 0;

	while (b->queue_count > 0)
		err |= hal_queue_destroy(b->queues[--b->queue_count]);
	free(b->queues);
	b->queues = NULL;
	err |= hal_program_unload(b->prog);
	err |= hal_buffer_destroy(b->in);
	err |= hal_buffer_destroy(b->out);
	err |= hal_partition_destroy(b->part);
	err |= hal_close(b->dev);
	return err != 0 ? bench_die("closing") : 0;
}
