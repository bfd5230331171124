/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decisions.h - the last decisions of a device's engine and why they were taken, for
 * whoever looks (hal.monitor).
 *
 * The engine writes, and copies them for others; nothing happens while nobody is to look.
 * A queue that nobody competes with is served without a decision.
 */
#ifndef HAL_SCHED_DECISIONS_H
#define HAL_SCHED_DECISIONS_H

#include "command/queue.h"
#include "space/partition.h"

enum decision_kind {
	/* Whose command is next, of a queue: */
	DECIDED_KEY,    /* by its key: key */
	DECIDED_POLICY, /* by the policy, which keeps them itself */
	DECIDED_OLDEST, /* by arrival: the policy is not followed */
	/* What else has been decided: */
	DECIDED_HOLD,      /* of a partition, until: time */
	DECIDED_OVERRULED, /* of a queue: text */
	DECIDED_FAULT,     /* text */
	DECIDED_FALLBACK,  /* text */
	DECIDED_STOP,      /* by the policy, of a queue: mode, error */
	DECIDED_START,     /* the same: error */
	DECIDED_PREEMPT,   /* a queue makes way: mode, for which, wait, loss, slack */
	DECIDED_RESUME,    /* of a queue that has made way */
	DECIDED_UNITS,     /* of a partition: from, to, error */
	DECIDED_LIMIT,     /* of a partition: bytes, window, error */
	DECIDED_INSTALL,   /* text: the policy */
};

#define DECISION_NUMBERS 6u
#define DECISION_NONE    UINT32_MAX /* no queue, no partition */

struct decision {
	uint64_t at_ns; /* device time */
	uint32_t kind;
	uint32_t queue, partition;
	uint64_t n[DECISION_NUMBERS];
	const char *text; /* stays for good */
};

#define DECISIONS_KEPT 64u /* of whose turn it is, and as many others */

struct decisions {
	uint64_t turn_count, other_count; /* that there were */
	struct decision turns[DECISIONS_KEPT], others[DECISIONS_KEPT];
	bool overruled; /* whose turn it is has just been decided by the net */
};

/* q has been picked, out of so many; it has waited for so long. */
void decided_turn(struct hal_queue *q, enum decision_kind kind, uint64_t waited_ns);
/* part or q may be NULL; text, too. */
void decided_other(struct hal_device *dev, enum decision_kind kind,
		   const struct hal_partition *part, const struct hal_queue *q,
		   const char *text, const uint64_t *n, uint32_t count);

#define DECIDED(dev, kind, part, q, text, ...)                                           \
	do {                                                                             \
		if (UNLIKELY((dev)->observe.decisions != NULL)) {                        \
			const uint64_t decided_n[] = {__VA_ARGS__};                      \
                                                                                         \
			decided_other((dev), (kind), (part), (q), (text), decided_n,     \
				      (uint32_t)ARRAY_LENGTH(decided_n));                \
		}                                                                        \
	} while (0)

/* d in words. */
#define DECISION_TEXT 400u
void decision_text(const struct decision *d, char *text, size_t size);

#endif
