/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token: a bucket of tokens a queue; a command takes its price out, or waits until it is
 * in.
 *
 * The token bucket (Turner 1986), as DISC and FaST-GShare limit launches with it;
 * reckoned by the time at which what was taken is paid for (GCRA, ITU-T I.371), so that
 * nothing has to be filled up.  There tokens are time that is given back when a kernel
 * was shorter; here the price is known before, a command or its work, and nothing is
 * corrected.  Who may be served is, in the order in which they came.
 *
 * Good where a tenant's rate has to be bounded and its bursts are small: they pass at
 * once. Bad for bursts longer than the bucket, which wait on an idle device (fifo does
 * not), and, where a command is one token, for time: long commands cost what short ones
 * do (quota measures).
 */
#include <errno.h>
#include <stdlib.h>

#include <hal/policy.h>

enum { PAID }; /* hal_policy_queue.own: device time when all that was taken is in again */

#define MILLION  UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define WORK_MAX (UINT64_C(1) << 52) /* times 1,000 it is a time still */

enum price { COMMAND, WORK };

struct token {
	enum price price;
	uint64_t rate; /* tokens a second, weight 1 */
	uint64_t burst;
	uint64_t unknown; /* price of work that is not known */
};

static const struct hal_option_def options[] = {
	{"token_rate", HAL_OPTION_INT, 1, 1000000000, NULL, "1000",
	 "token: tokens a second of device time for weight 1"},
	{"token_burst", HAL_OPTION_INT, 1, 1000000, NULL, "10",
	 "token: tokens that a queue can have at most"},
	{"token_price", HAL_OPTION_ENUM, 0, 0, "command|work", "command",
	 "token: a token is a command, or a million multiply-accumulates"},
	{"token_unknown", HAL_OPTION_INT, 1, 1000000, NULL, "1",
	 "token: price under token_price=work of a command whose work is not known"},
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

/* How long so much takes to come in again; never 0. */
static uint64_t pays(const struct token *token, const struct hal_policy_queue *queue,
		     uint64_t millionths)
{
	uint64_t ns = millionths * (NS_PER_S / MILLION) / (token->rate * queue->weight);

	return ns != 0 ? ns : 1;
}

static uint64_t price(const struct token *token, const struct hal_policy_queue *queue)
{
	uint64_t work = queue->head.work;

	if (token->price == COMMAND)
		return pays(token, queue, MILLION);
	if (work == 0)
		return pays(token, queue, token->unknown * MILLION);
	return pays(token, queue, work < WORK_MAX ? work : WORK_MAX);
}

/* When its price is in; a full bucket has to do for what costs more than that. */
static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	const struct token *token = state;
	uint64_t costs = price(token, queue);
	uint64_t full = pays(token, queue, token->burst * MILLION);
	uint64_t spare = full > costs ? full - costs : 0;

	(void)part;
	if (queue->own[PAID] <= now_ns || queue->own[PAID] - now_ns <= spare)
		return now_ns;
	return queue->own[PAID] - spare;
}

static uint64_t turn(void *state, struct hal_policy_partition *part,
		     struct hal_policy_queue *queue, uint64_t asked_ns, uint64_t now_ns)
{
	const struct token *token = state;

	(void)part, (void)asked_ns;
	if (queue->own[PAID] < now_ns)
		queue->own[PAID] = now_ns;
	queue->own[PAID] += price(token, queue);
	return 0;
}

extern const struct hal_policy hal_policy_token;
const struct hal_policy hal_policy_token = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "token",
	.summary = "a bucket of tokens a queue, filled by weight",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS | HAL_POLICY_TIMES | HAL_POLICY_KEEPS,
	.create = create,
	.destroy = free,
	.key = key,
	.turn = turn,
};
