/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_tenants - what a command costs among many tenants, in instructions.
 *
 *   bench_tenants run [N [POLICY...]]   N tenants (256) on `ref` with 512 units, under
 * all policies or these
 *
 * A tenant is a queue.  Under a policy that sizes partitions each has a partition of its
 * own, of one unit or more; under the others all share one partition.  Each tenant
 * submits COMMANDS launches, of which every second one can use few units and the others
 * many.  Then the device runs until all have completed.
 *
 * The figure policy.tenants.instructions.POLICY.N is the number of instructions from the
 * first submission to the last completion, divided by the number of commands.  Run it by
 * tools/figures/count_instructions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "bench.h"

enum { UNITS = 512, COMMANDS = 16, STATIC_MAX = 64 };

/* So that static has a slot for each tenant, and no tenant waits for long. */
#define LIMITS                                                                           \
	"policy.static_slot_us=1", "policy.quota_window_us=10",                          \
		"policy.token_rate=1000000", "policy.tgs_period_us=1"

struct world {
	struct hal_device *dev;
	struct hal_program *program;
	struct hal_cmd launch[2]; /* of few units, of many */
	struct hal_partition *parts[UNITS];
	struct hal_queue *queues[UNITS];
	unsigned int part_count, queue_count;
};

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

static int load_kernels(struct world *w)
{
	static const char *const names[] = {"few", "many"};
	static const struct hal_ref_kernel kernels[] = {
		{.name = "few", .fn = nothing, .work = 16000, .span_ns = 8000},
		{.name = "many", .fn = nothing, .work = 16000, .span_ns = 500},
	};
	struct hal_kernel *kernel;

	if (hal_ref_load(w->dev, kernels, 2, &w->program) != 0)
		return bench_die("hal_ref_load");
	for (unsigned int i = 0; i < 2; i++) {
		if (hal_kernel_find(w->program, names[i], &kernel) != 0)
			return bench_die("hal_kernel_find");
		w->launch[i] = hal_cmd_launch(kernel, NULL, 0);
	}
	return 0;
}

static int sizes_partitions(const char *policy)
{
	return strcmp(policy, "tidal") == 0 || strcmp(policy, "krisp") == 0 ||
	       strcmp(policy, "fission") == 0 || strcmp(policy, "v10") == 0;
}

static int open_world(struct world *w, const char *policy, unsigned int tenants)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	unsigned int parts = sizes_partitions(policy) ? tenants : 1;
	char name[64], slots[64];
	const char *const options[] = {name, slots, LIMITS, NULL};

	memset(w, 0, sizeof(*w));
	(void)snprintf(name, sizeof(name), "policy.name=%s", policy);
	(void)snprintf(slots, sizeof(slots), "policy.static_slots=%u",
		       tenants < STATIC_MAX ? tenants : STATIC_MAX);
	if (hal_open("ref?clock=virtual&units=512", options, &w->dev) != 0)
		return bench_die("hal_open");
	/* fgpu divides the units in two. */
	pd.units_floor = parts == 1 ? UNITS / 2 : 1;
	pd.units_ceiling = parts == 1 ? UNITS / 2 : UNITS - parts + 1;
	for (; w->part_count < parts; w->part_count++)
		if (hal_partition_create(w->dev, &pd, &w->parts[w->part_count]) != 0)
			return bench_die("hal_partition_create");
	for (; w->queue_count < tenants; w->queue_count++) {
		qd.priority = (int32_t)(w->queue_count % 2);
		qd.deadline_ns = qd.priority != 0 ? 1000000 : 0;
		if (hal_queue_create(w->parts[w->queue_count % parts], &qd,
				     &w->queues[w->queue_count]) != 0)
			return bench_die("hal_queue_create");
	}
	return load_kernels(w);
}

static int close_world(struct world *w)
{
	int err = 0;

	while (w->queue_count > 0)
		err |= hal_queue_destroy(w->queues[--w->queue_count]);
	err |= hal_program_unload(w->program);
	while (w->part_count > 0)
		err |= hal_partition_destroy(w->parts[--w->part_count]);
	err |= hal_close(w->dev);
	return err != 0 ? bench_die("closing") : 0;
}

static int run_commands(struct world *w)
{
	struct hal_submit_desc desc = HAL_INIT(hal_submit_desc);

	desc.cmd_count = 1;
	for (unsigned int i = 0; i < COMMANDS; i++) {
		desc.cmds = &w->launch[i % 2];
		for (unsigned int k = 0; k < w->queue_count; k++)
			if (hal_submit(w->queues[k], &desc, NULL) != 0)
				return bench_die("hal_submit");
	}
	return hal_device_poll(w->dev, UINT64_MAX) < 0 ? bench_die("hal_device_poll") : 0;
}

static int measure(const char *policy, unsigned int tenants)
{
	static struct world w;
	int err = open_world(&w, policy, tenants);

	if (err != 0)
		return err;
	CALLGRIND_START_INSTRUMENTATION;
	CALLGRIND_ZERO_STATS;
	err = run_commands(&w);
	CALLGRIND_STOP_INSTRUMENTATION;
	CALLGRIND_DUMP_STATS_AT(policy);
	printf("figure_is policy.tenants.instructions.%s.%u %u %s\n", policy, tenants,
	       tenants * COMMANDS, policy);
	return close_world(&w) != 0 ? TOOL_FAILED : err;
}

/* Run under the policies named in only[0..count), or under all if count is 0. */
static int run(unsigned int tenants, char *const *only, int count)
{
	for (size_t i = 0; i < BENCH_POLICY_COUNT; i++) {
		const char *policy = bench_policies[i];
		int named = count == 0;

		for (int k = 0; k < count; k++)
			named |= strcmp(policy, only[k]) == 0;
		if (!named)
			continue;
		if (tenants > STATIC_MAX && strcmp(policy, "static") == 0)
			continue; /* it has no slot for each */
		if (measure(policy, tenants) != 0)
			return TOOL_FAILED;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 256;

	if (argc < 2 || strcmp(argv[1], "run") != 0 || n < 2 || n > UNITS) {
		fprintf(stderr, "usage: bench_tenants run [N [POLICY...]]\n");
		return 2;
	}
	bench_within(RUNNING_ON_VALGRIND ? 300 : 20);
	return tool_end(run((unsigned int)n, argv + 3, argc > 3 ? argc - 3 : 0));
}
