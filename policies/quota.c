/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota: so much device time in each window, by budget or weight; who has had it waits
 * for the next.
 *
 * The limit of KubeShare (Yeh, Chen, Chou 2020) and Gemini (Chen, Lin, Chou 2021): time
 * is measured when a command ends, what was had too much is taken from the windows that
 * follow, and queues with something left are served in the order in which they came.
 * There a client holds a token of time for several kernels, its length from predicted
 * bursts; here each command is decided on, and what the device has of a queue counts as
 * what is expected of it.  There is no guaranteed least share: shares may add up to more
 * than a window.
 *
 * Good where a tenant must not have more than it pays for, whatever its commands are
 * like. Bad for use: a queue at its limit waits even if nobody else wants the device, and
 * a request that comes then waits for the window's end (wfq and fifo serve it at once).
 */
#include <errno.h>
#include <stdlib.h>

#include <hal/policy.h>

/* hal_policy_queue.own: ns, and the number of the window after that in which they were
 * had; 0: none yet. */
enum { USED, WINDOW };

struct quota {
	uint64_t window_ns;
	uint64_t share_ns; /* of a window, weight 1 */
	uint64_t unknown_ns;
};

static const struct hal_option_def options[] = {
	{"quota_window_us", HAL_OPTION_INT, 1, 10000000, NULL, "10000",
	 "quota: length of a window, device time"},
	{"quota_permille", HAL_OPTION_INT, 1, 1000, NULL, "100",
	 "quota: what weight 1 may have of a window, in thousandths, without a budget"},
	{"quota_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "quota: what a command is taken to run while none of its queue has ended"},
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

static uint64_t budget(const struct quota *quota, const struct hal_policy_queue *queue)
{
	if (queue->budget_permille != 0)
		return quota->window_ns / 1000 * queue->budget_permille;
	if (queue->weight >= quota->window_ns / quota->share_ns)
		return quota->window_ns;
	return queue->weight * quota->share_ns;
}

/* Windows that have passed pay for what was had. */
static void forward(const struct quota *quota, struct hal_policy_queue *queue,
		    uint64_t now_ns)
{
	uint64_t window = now_ns / quota->window_ns + 1, each = budget(quota, queue);
	uint64_t passed = window - queue->own[WINDOW];

	if (queue->own[WINDOW] == 0)
		passed = 0;
	else if (window < queue->own[WINDOW])
		passed = 1; /* of other windows, under other options */
	queue->own[WINDOW] = window;
	if (passed == 0)
		return;
	if (queue->own[USED] / each < passed)
		queue->own[USED] = 0;
	else
		queue->own[USED] -= passed * each;
}

/* When the queue may be served. */
static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	const struct quota *quota = state;
	uint64_t each = budget(quota, queue), left, next, expected, least;

	(void)part;
	forward(quota, queue, now_ns);
	if (queue->own[USED] >= each)
		return hal_bk_after((queue->own[WINDOW] - 1) * quota->window_ns,
				    queue->own[USED] / each * quota->window_ns);
	left = each - queue->own[USED];
	expected = queue->head.expected_ns;
	if (expected == HAL_POLICY_NEVER)
		expected = quota->unknown_ns;
	if (queue->running == 0 || left / queue->running > expected)
		return now_ns;
	/* What runs may have it all: seen when that has ended, but not looked for all the
	 * time. */
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
	.summary = "so much device time a window, by budget or weight",
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
