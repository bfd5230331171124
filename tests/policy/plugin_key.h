/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_key.h - a policy of keys that does what a test tells it, right or wrong. */
#ifndef TESTS_POLICY_PLUGIN_KEY_H
#define TESTS_POLICY_PLUGIN_KEY_H

#include <hal/policy.h>

enum { HEADS = 64 };

/* The symbol plugin_control of the shared object. */
struct plugin_key_control {
	uint64_t key_ns;      /* of each queue, from when it is asked; NEVER is that */
	uint64_t again_ns;    /* turn: so much later; 0: now */
	uint32_t again_count; /* so often */
	uint64_t own; /* attach adds it to own[0] of the queue and the partition */
	/* What it was told. */
	const struct hal_policy_partition *part; /* at the last attach */
	uint64_t turns;
	uint64_t queue_own, part_own; /* at the last attach, before that */
	uint64_t heads;
	struct {
		uint64_t expected_ns, rest_ns, whole_ns, expected_bytes;
	} head[HEADS]; /* of queue 0, with each key */
};

#endif
