/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skeleton.c - a complete policy: shortest command first, with a bound on waiting.
 *
 * It lowers the mean latency when commands differ much in length.  It delays long
 * commands: each lets shorter ones go first, for at most its work times the option
 * shortest_patience (ns).
 */
#include <errno.h>
#include <stdlib.h>

#include <hal/policy.h>

static const struct hal_option_def options[] = {
	{"shortest_patience", HAL_OPTION_INT, 0, 1000, NULL, "10",
	 "shortest: ns that a command waits for shorter ones, for each unit of its work"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	uint64_t *patience = malloc(sizeof(*patience));

	(void)device;
	if (patience == NULL)
		return host->fail(ENOMEM, "shortest: no memory");
	*patience = (uint64_t)host->option_int(cfg, "shortest_patience");
	*state = patience;
	return 0;
}

/* Return the sort key of a queue that became runnable; the lowest is served first. */
static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	const uint64_t *patience = state;

	(void)part, (void)now_ns;
	return queue->head.submit_ns + *patience * queue->head.work;
}

static const struct hal_policy shortest = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "shortest",
	.summary = "shortest command first, with a bound on waiting",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.create = create,
	.destroy = free,
	.key = key,
};

HAL_API const struct hal_policy *hal_policy_entry(const struct hal_host *host)
{
	(void)host;
	return &shortest;
}
