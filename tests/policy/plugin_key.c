/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_key.c - see plugin_key.h; NAME and FLAGS make others of it. */
#include "plugin_key.h"

#define EXPORT __attribute__((visibility("default")))

extern struct plugin_key_control plugin_control;
EXPORT struct plugin_key_control plugin_control;
EXPORT const struct hal_policy *hal_policy_entry(const struct hal_host *host);

static struct plugin_key_control *const c = &plugin_control;

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	(void)state;
	c->part = part;
	c->queue_own = queue->own[0];
	c->part_own = part->own[0];
	queue->own[0] += c->own;
	part->own[0] += c->own;
	return 0;
}

static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	(void)state, (void)part;
	if (queue->id == 0 && c->heads < HEADS) {
		c->head[c->heads].expected_ns = queue->head.expected_ns;
		c->head[c->heads].whole_ns = queue->head.whole_ns;
		c->head[c->heads].expected_bytes = queue->head.expected_bytes;
		c->head[c->heads++].rest_ns = queue->head.rest_ns;
	}
	return c->key_ns != HAL_POLICY_NEVER ? now_ns + c->key_ns : c->key_ns;
}

static uint64_t turn(void *state, struct hal_policy_partition *part,
		     struct hal_policy_queue *queue, uint64_t asked_ns, uint64_t now_ns)
{
	(void)state, (void)part, (void)queue, (void)asked_ns;
	c->turns++;
	if (c->again_count == 0)
		return 0;
	c->again_count--;
	return asked_ns + c->again_ns > now_ns ? asked_ns + c->again_ns : now_ns;
}

static const struct hal_policy policy = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = NAME,
	.summary = "does what a test tells it",
	.flags = FLAGS,
	.attach = attach,
	.key = key,
	.turn = turn,
};

const struct hal_policy *hal_policy_entry(const struct hal_host *host)
{
	(void)host;
	return &policy;
}
