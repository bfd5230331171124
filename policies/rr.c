/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rr: serve the queues in turn, a fixed number of commands each (round robin).
 *
 * Promise: busy queues of one class get the same number of commands, and a queue waits
 * for at most one turn of every other queue.  A queue that becomes runnable after its
 * turn goes to the end.  Classes come first: class latency before normal, best effort
 * last.
 *
 * Option: rr_commands, the number of commands in a turn.
 *
 * Follows Kleinrock 1964 (analysis of a time-shared processor).  Difference: there a turn
 * is a slice of time, and the job is interrupted at its end.  Here a turn is a number of
 * whole commands.
 *
 * Good where commands have similar lengths.  Bad where they do not: a queue with long
 * commands gets more device time (wfq counts time).
 */
#include <errno.h>
#include <stdlib.h>

#include <hal/policy.h>

/* Indices into hal_policy_queue.own: the number of the queue's turn, and the commands
 * left in it. */
enum { TURN, LEFT };

struct rr {
	uint64_t commands;
	uint64_t turns; /* turns numbered so far */
};

static const struct hal_option_def options[] = {
	{"rr_commands", HAL_OPTION_INT, 1, 1000000, NULL, "1",
	 "rr: number of commands of a queue before the next queue is served"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct rr *rr = calloc(1, sizeof(*rr));

	(void)device;
	if (rr == NULL)
		return host->fail(ENOMEM, "rr: no memory");
	rr->commands = (uint64_t)host->option_int(cfg, "rr_commands");
	*state = rr;
	return 0;
}

/* Return the number of the queue's turn.  The queue keeps it until all commands of the
 * turn have been served. */
static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	struct rr *rr = state;

	(void)part, (void)now_ns;
	if (queue->own[LEFT] == 0) {
		queue->own[LEFT] = rr->commands;
		queue->own[TURN] = ++rr->turns;
	}
	return queue->own[TURN];
}

static uint64_t turn(void *state, struct hal_policy_partition *part,
		     struct hal_policy_queue *queue, uint64_t number, uint64_t now_ns)
{
	(void)state, (void)part, (void)number, (void)now_ns;
	queue->own[LEFT]--;
	return 0;
}

extern const struct hal_policy hal_policy_rr;
const struct hal_policy hal_policy_rr = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "rr",
	.summary = "round robin: queues in turn, rr_commands commands each",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.create = create,
	.destroy = free,
	.key = key,
	.turn = turn,
};
