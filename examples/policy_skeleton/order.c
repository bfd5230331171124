/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - show the order in which a policy serves commands: order [POLICY]
 *
 * Submit long, middling and short commands at once, to three queues of one partition.
 * Print the order in which they run, and the mean latency. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <hal/ref.h>

#define TRY(call)                                                                        \
	((call) < 0 ? (fprintf(stderr, "%s\n", hal_last_error()), exit(1)) : (void)0)

enum { KINDS = 3, EACH = 3 };

static int run(const struct hal_ref_call *call)
{
	printf(" %s", call->kernel);
	return 0;
}

static const struct hal_ref_kernel kernels[] = {
	{.name = "long", .fn = run, .work = 900},
	{.name = "middling", .fn = run, .work = 300},
	{.name = "short", .fn = run, .work = 30}};

int main(int argc, char **argv)
{
	static const char *const options[] = {"hal.partition_inflight=1", NULL};
	struct hal_partition_desc some = {.size = sizeof(some), .units_floor = 1};
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct hal_stats stats = {.size = sizeof(stats)};
	struct hal_queue *queues[KINDS];
	struct hal_partition *part;
	struct hal_program *prog;
	struct hal_device *dev;
	uint64_t sum = 0;

	TRY(hal_open("ref?clock=virtual", options, &dev));
	TRY(hal_device_set_policy(dev, argc > 1 ? argv[1] : "fifo", NULL));
	TRY(hal_partition_create(dev, &some, &part));
	TRY(hal_ref_load(dev, kernels, KINDS, &prog));
	for (int i = 0; i < KINDS; i++) {
		struct hal_submit_desc work = {.size = sizeof(work), .cmd_count = 1};
		struct hal_kernel *kernel;
		struct hal_cmd cmd;

		TRY(hal_queue_create(part, &plain, &queues[i]));
		TRY(hal_kernel_find(prog, kernels[i].name, &kernel));
		cmd = hal_cmd_launch(kernel, NULL, 0);
		work.cmds = &cmd;
		for (int n = 0; n < EACH; n++)
			TRY(hal_submit(queues[i], &work, NULL));
	}
	printf("%s:", argc > 1 ? argv[1] : "fifo");
	TRY(hal_device_poll(dev, UINT64_MAX));
	for (int i = 0; i < KINDS; i++) {
		TRY(hal_queue_get_stats(queues[i], &stats));
		sum += stats.queueing_ns + stats.busy_ns;
		TRY(hal_queue_destroy(queues[i]));
	}
	printf("\nmean: %" PRIu64 " ns\n", sum / (KINDS * EACH));
	TRY(hal_program_unload(prog));
	TRY(hal_partition_destroy(part));
	TRY(hal_close(dev));
	return 0;
}
