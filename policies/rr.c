/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rr: queues in turn, some commands each (Kleinrock 1964: a time-shared processor).
 *
 * Good where commands are alike: everybody has the same share, and nobody waits for more
 * than one turn of the others.  Bad where they are not: who submits long commands has
 * more of the device (wfq counts time).  A queue that comes back goes to the end.
 * Kleinrock's turns are of time, after which a job is interrupted; here a turn is whole
 * commands, and nothing is.
 */
#include <errno.h>
#include <stdlib.h>

#include <hal/policy.h>

enum { TURN, LEFT }; /* hal_policy_queue.own: of its turn the number, and what is left */

struct rr {
	uint64_t commands;
	uint64_t turns;
};

static const struct hal_option_def options[] = {
	{"rr_commands", HAL_OPTION_INT, 1, 1000000, NULL, "1",
	 "rr: commands of a queue before the next one's turn"},
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

/* Turns are numbered; a queue keeps its number until it has had its commands. */
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
	.summary = "queues in turn, rr_commands commands each",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.create = create,
	.destroy = free,
	.key = key,
	.turn = turn,
};
