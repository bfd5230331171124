/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota: limit each queue to a share of the device time in each window.
 *
 * Promise: averaged over windows, no queue runs longer than its budget
 * (hal_queue_desc.budget_permille).  A queue without a budget has weight times
 * quota_permille.  A queue that has used its share waits for the next window, even if the
 * device is idle.  Queues within their share are served by class, then in order of
 * arrival.  No queue is guaranteed a minimum: the shares may add up to more than a
 * window.
 *
 * Options: quota_window_us (length of a window), quota_permille (share for weight 1),
 * quota_unknown_us (assumed run time of commands whose run time is not known yet).
 *
 * Follows the limits of KubeShare (Yeh, Chen, Chou 2020) and Gemini (Chen, Lin, Chou,
 * Chou 2021).  Time is charged when a command completes.  Time in excess of the share is
 * deducted from the following windows.  Differences: there a client holds a time token
 * for several kernels, and predicted bursts give its length.  Here the policy decides on
 * each command, and running commands count with their expected run time.
 *
 * Good where a tenant must not use more than it pays for, whatever its commands are like.
 * Bad for utilization and for the latency of a queue that has reached its limit (wfq and
 * fifo serve it at once).
 */
#include <errno.h>
#include <stdlib.h>

#include <hal/policy.h>

/* Indices into hal_policy_queue.own: device time used, in ns, and the number of the
 * window that it counts for, plus 1; 0 if no window has been counted yet. */
enum { USED, WINDOW };

struct quota {
	uint64_t window_ns;
	uint64_t share_ns; /* device time per window for weight 1 */
	uint64_t unknown_ns;
};

static const struct hal_option_def options[] = {
	{"quota_window_us", HAL_OPTION_INT, 1, 10000000, NULL, "10000",
	 "quota: length of a window of device time"},
	{"quota_permille", HAL_OPTION_INT, 1, 1000, NULL, "100",
	 "quota: thousandths of a window for weight 1, for queues without a budget"},
	{"quota_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "quota: assumed run time of a command until its queue has completed one"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct quota *quota = malloc(sizeof(*quota));

	(void)device;
	if (quota == NULL)
		return host->fail(ENOMEM, "quota: no memory");
	quota->window_ns = (uint64_t)host->option_int(cfg, "quota_window_us") * 1000;
	quota->share_ns = quota->window_ns / 1000 *
			  (uint64_t)host->option_int(cfg, "quota_permille");
	quota->unknown_ns = (uint64_t)host->option_int(cfg, "quota_unknown_us") * 1000;
	*state = quota;
	return 0;
}

/* Return the device time that queue may use per window. */
static uint64_t budget(const struct quota *quota, const struct hal_policy_queue *queue)
{
	if (queue->budget_permille != 0)
		return quota->window_ns / 1000 * queue->budget_permille;
	if (queue->weight >= quota->window_ns / quota->share_ns)
		return quota->window_ns;
	return queue->weight * quota->share_ns;
}

/* Enter the window of now_ns: reduce the used time by the budget of each window that has
 * passed since the last call. */
static void advance_window(const struct quota *quota, struct hal_policy_queue *queue,
			   uint64_t now_ns)
{
	uint64_t window = now_ns / quota->window_ns + 1, budget_ns = budget(quota, queue);
	uint64_t passed = window - queue->own[WINDOW];

	if (queue->own[WINDOW] == 0)
		passed = 0;
	else if (window < queue->own[WINDOW])
		passed = 1; /* own[WINDOW] counts windows of an old quota_window_us */
	queue->own[WINDOW] = window;
	if (passed == 0)
		return;
	if (queue->own[USED] / budget_ns < passed)
		queue->own[USED] = 0;
	else
		queue->own[USED] -= passed * budget_ns;
}

/* Return the device time from which the queue may be served. */
static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	const struct quota *quota = state;
	uint64_t budget_ns = budget(quota, queue), left, next, expected, least;

	(void)part;
	advance_window(quota, queue, now_ns);
	if (queue->own[USED] >= budget_ns)
		return hal_bk_after((queue->own[WINDOW] - 1) * quota->window_ns,
				    queue->own[USED] / budget_ns * quota->window_ns);
	left = budget_ns - queue->own[USED];
	expected = queue->head.expected_ns;
	if (expected == HAL_POLICY_NEVER)
		expected = quota->unknown_ns;
	if (queue->running == 0 || left / queue->running > expected)
		return now_ns;
	/* The running commands may use up the rest of the budget.  Decide again when one
	 * is expected to complete, but not more often than 64 times per window. */
	next = hal_bk_after((queue->own[WINDOW] - 1) * quota->window_ns,
			    quota->window_ns);
	least = quota->window_ns / 64 + 1;
	expected = expected > least ? expected : least;
	expected = hal_bk_after(now_ns, expected);
	return expected < next ? expected : next;
}

static uint64_t turn(void *state, struct hal_policy_partition *part,
		     struct hal_policy_queue *queue, uint64_t asked_ns, uint64_t now_ns)
{
	uint64_t at_ns = key(state, part, queue, now_ns);

	(void)asked_ns;
	return at_ns > now_ns ? at_ns : 0;
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	(void)state, (void)part;
	queue->own[USED] += end->ran_ns;
}

extern const struct hal_policy hal_policy_quota;
const struct hal_policy hal_policy_quota = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "quota",
	.summary = "limits the device time of each queue per window",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS | HAL_POLICY_TIMES | HAL_POLICY_EXPECTS |
		 HAL_POLICY_KEEPS | HAL_POLICY_BUDGETS,
	.create = create,
	.destroy = free,
	.key = key,
	.turn = turn,
	.ended = ended,
};
