/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - what a sharing policy sees of a device and what it decides.
 *
 *   engine --ready--> policy: this queue's next command could run
 *   engine --pick---> policy: this partition can take one more command; whose?
 *   engine --gone---> policy: this queue's command can not run any more
 *
 * A queue is in the policy's hands from ready until pick returns it or gone takes it
 * away.  After a pick the engine gives one command to the device and calls ready again
 * when the queue has another.  A policy can be replaced at any moment: the engine takes
 * every queue away from the old one and shows it to the new one.
 *
 * Threads: all calls of one device come under its lock, one at a time; none may block,
 *          allocate in ready, gone or pick, or look at a wall clock.  Same calls, same
 *          answers: schedules are reproducible.
 */
#ifndef HAL_POLICY_H
#define HAL_POLICY_H

#include <hal/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_POLICY_ABI 1u

/* A queue as a policy sees it.  The engine fills what is above .next. */
struct hal_policy_queue {
	uint32_t id;
	int32_t priority;     /* hal_queue_desc */
	uint64_t deadline_ns; /* relative; 0: none */
	uint64_t ready_ns;    /* device time since when its next command could run */
	uint64_t served_ns;   /* device time its commands have run */
	/* The policy's own. */
	struct hal_policy_queue *next, *prev;
	uint64_t own;
};

struct hal_policy_partition {
	uint32_t index;
	uint32_t units;
	void *own[2]; /* the policy's; NULL at first */
};

/* hal_policy.flags */
/* Never answers NULL while it has a queue, and keeps no account in ready, gone and pick:
 * the engine may serve a queue that nobody else of its partition competes with without
 * asking, and calls ready for it only when another comes. */
#define HAL_POLICY_LONE 1u

struct hal_policy {
	uint32_t size; /* sizeof(struct hal_policy) */
	uint32_t abi;  /* HAL_POLICY_ABI */
	const char *name;
	const char *summary;
	/* Parameters, section [policy]; read them with host->option_int. */
	const struct hal_option_def *options;
	uint32_t option_count;
	uint32_t flags; /* HAL_POLICY_* */
	/* State of one device; may be NULL: there is none. */
	int (*create)(const struct hal_host *host, const struct hal_bk_config *cfg,
		      void **state);
	void (*destroy)(void *state);
	void (*ready)(void *state, struct hal_policy_partition *part,
		      struct hal_policy_queue *queue);
	void (*gone)(void *state, struct hal_policy_partition *part,
		     struct hal_policy_queue *queue);
	/* Takes one queue out and returns it; NULL: nothing should run now. */
	struct hal_policy_queue *(*pick)(void *state, struct hal_policy_partition *part,
					 uint64_t now_ns);
};

#ifdef __cplusplus
}
#endif
#endif
