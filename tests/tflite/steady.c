/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady.c - a policy that gives each partition so many bytes in so many nanoseconds, no
 * more and for ever: a memory that is slower than the device's, for bench_nets.
 */
#include <errno.h>
#include <stdlib.h>

#include <hal/policy.h>

HAL_API const struct hal_policy *hal_policy_entry(const struct hal_host *host);

struct steady {
	const struct hal_policy_host *device;
	uint64_t bytes, window_ns;
};

static const struct hal_option_def options[] = {
	{"steady_bytes", HAL_OPTION_INT, 1, 1 << 24, NULL, "64",
	 "steady: bytes that a partition moves at most in each window"},
	{"steady_window", HAL_OPTION_INT, 1, 1 << 24, NULL, "8", "steady: ns"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct steady *s = malloc(sizeof(*s));

	if (s == NULL)
		return host->fail(ENOMEM, "steady: no memory");
	s->device = device;
	s->bytes = (uint64_t)host->option_int(cfg, "steady_bytes");
	s->window_ns = (uint64_t)host->option_int(cfg, "steady_window");
	*state = s;
	return 0;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	const struct steady *s = state;

	(void)queue;
	return s->device->limit(s->device->device, part, s->bytes, s->window_ns);
}

static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	(void)state, (void)part, (void)now_ns;
	return queue->head.submit_ns;
}

static const struct hal_policy steady = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "steady",
	.summary = "no more than so many bytes a window",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.create = create,
	.destroy = free,
	.attach = attach,
	.key = key,
};

const struct hal_policy *hal_policy_entry(const struct hal_host *host)
{
	(void)host;
	return &steady;
}
