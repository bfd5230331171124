/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token: limit the rate of each queue with a token bucket.
 *
 * Promise: a queue gets at most token_rate tokens per second times its weight, plus one
 * burst of token_burst tokens.  A command takes its price out of the bucket or waits
 * until the bucket contains the price; a full bucket suffices for a command that costs
 * more.  A queue waits even if the device is idle.  Queues that may be served are served
 * by class, then in order of arrival.
 *
 * Options: token_rate, token_burst, token_price (a command costs one token, or one token
 * per million multiply-accumulates), token_unknown (price if the work is not known).
 *
 * Follows the token bucket (Turner 1986), which FaST-GShare uses to limit launches.  It
 * stores the time at which the bucket is full again (GCRA, ITU-T I.371), so no timer
 * refills it.  Difference: in FaST-GShare tokens are time, and a kernel returns what it
 * did not use.  Here the price is known in advance and nothing is returned.
 *
 * Good where a tenant's rate must be limited and its bursts are small: they pass at once.
 * Bad for bursts that exceed the bucket: they wait on an idle device (fifo serves them).
 * With token_price = command it does not limit time: long commands cost as much as short
 * ones (quota measures time).
 */
#include <errno.h>
#include <stdlib.h>

#include <hal/policy.h>

/* Index into hal_policy_queue.own: the device time at which the bucket is full again. */
enum { FULL_AT };

#define MILLION  UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define WORK_MAX (UINT64_C(1) << 52) /* WORK_MAX * 1,000 fits in 64 bits */

enum price { COMMAND, WORK };

struct token {
	enum price price;
	uint64_t rate; /* tokens per second for weight 1 */
	uint64_t burst;
	uint64_t unknown; /* tokens for a command whose work is not known */
};

static const struct hal_option_def options[] = {
	{"token_rate", HAL_OPTION_INT, 1, 1000000000, NULL, "1000",
	 "token: tokens per second of device time for weight 1"},
	{"token_burst", HAL_OPTION_INT, 1, 1000000, NULL, "10",
	 "token: size of the bucket: most tokens that a queue can save"},
	{"token_price", HAL_OPTION_ENUM, 0, 0, "command|work", "command",
	 "token: what one token pays for: a command, or a million multiply-accumulates"},
	{"token_unknown", HAL_OPTION_INT, 1, 1000000, NULL, "1",
	 "token: tokens for a command of unknown work if token_price=work"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct token *token = malloc(sizeof(*token));

	(void)device;
	if (token == NULL)
		return host->fail(ENOMEM, "token: no memory");
	token->rate = (uint64_t)host->option_int(cfg, "token_rate");
	token->burst = (uint64_t)host->option_int(cfg, "token_burst");
	token->price = (enum price)host->option_int(cfg, "token_price");
	token->unknown = (uint64_t)host->option_int(cfg, "token_unknown");
	*state = token;
	return 0;
}

/* Return how long the bucket takes to receive that many millionths of a token; at least
 * 1 ns. */
static uint64_t refill_ns(const struct token *token, const struct hal_policy_queue *queue,
			  uint64_t millionths)
{
	uint64_t ns = millionths * (NS_PER_S / MILLION) / (token->rate * queue->weight);

	return ns != 0 ? ns : 1;
}

/* Return the price of the queue's head, as the time in which the bucket receives it. */
static uint64_t price(const struct token *token, const struct hal_policy_queue *queue)
{
	uint64_t work = queue->head.work;

	if (token->price == COMMAND)
		return refill_ns(token, queue, MILLION);
	if (work == 0)
		return refill_ns(token, queue, token->unknown * MILLION);
	return refill_ns(token, queue, work < WORK_MAX ? work : WORK_MAX);
}

/* Return when the bucket contains the price of the queue's head, or is full. */
static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	const struct token *token = state;
	uint64_t price_ns = price(token, queue);
	uint64_t full_ns = refill_ns(token, queue, token->burst * MILLION);
	uint64_t spare_ns = full_ns > price_ns ? full_ns - price_ns : 0;

	(void)part;
	if (queue->own[FULL_AT] <= now_ns || queue->own[FULL_AT] - now_ns <= spare_ns)
		return now_ns;
	return queue->own[FULL_AT] - spare_ns;
}

static uint64_t turn(void *state, struct hal_policy_partition *part,
		     struct hal_policy_queue *queue, uint64_t asked_ns, uint64_t now_ns)
{
	const struct token *token = state;

	(void)part, (void)asked_ns;
	if (queue->own[FULL_AT] < now_ns)
		queue->own[FULL_AT] = now_ns;
	queue->own[FULL_AT] += price(token, queue);
	return 0;
}

extern const struct hal_policy hal_policy_token;
const struct hal_policy hal_policy_token = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "token",
	.summary = "limits the rate of each queue with a token bucket, filled by weight",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS | HAL_POLICY_TIMES | HAL_POLICY_KEEPS,
	.create = create,
	.destroy = free,
	.key = key,
	.turn = turn,
};
