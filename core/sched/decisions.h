/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decisions.h - the latest scheduling decisions of an engine and their reasons, for
 * hal.monitor.
 *
 * The engine records the decisions, and copies the records for other threads.  Without
 * hal.monitor nothing is recorded.  A queue without competitors is served without a
 * decision.
 */
#ifndef HAL_SCHED_DECISIONS_H
#define HAL_SCHED_DECISIONS_H

#include "command/queue.h"
#include "space/partition.h"

enum decision_kind {
	/* Why the recorded queue is served next: */
	DECIDED_KEY,    /* chosen by its key */
	DECIDED_POLICY, /* chosen by the policy's pick */
	DECIDED_OLDEST, /* became runnable first; the policy's choice is not used */
	/* All other decisions: */
	/* The policy chose no queue of a partition; n: end time, runnable queues. */
	DECIDED_HOLD,
	DECIDED_OVERRULED, /* a queue is served against the policy; text: reason */
	DECIDED_FAULT,     /* the policy made a fault; text: reason */
	DECIDED_FALLBACK,  /* the policy is no longer asked; text: reason */
	DECIDED_STOP,      /* the policy requested to stop a queue; n: mode, error */
	DECIDED_START,     /* the policy requested to resume a queue; n: error */
	/* A queue is preempted; n: mode, urgent queue, wait, loss, slack. */
	DECIDED_PREEMPT,
	DECIDED_RESUME, /* a preempted queue resumes */
	/* The policy requested to resize a partition; n: old units, new units, error. */
	DECIDED_UNITS,
	DECIDED_LIMIT,   /* the policy requested a limit; n: bytes, window, error */
	DECIDED_INSTALL, /* a policy is installed; text: its name */
};

#define DECISION_NUMBERS 6u
#define DECISION_NONE    UINT32_MAX /* no queue or no partition */

struct decision {
	uint64_t at_ns; /* device time */
	uint32_t kind;
	uint32_t queue, partition;
	uint64_t n[DECISION_NUMBERS]; /* values; their meaning depends on .kind */
	const char *text;             /* never freed */
};

#define DECISIONS_KEPT 64u /* size of each array in struct decisions */

struct decisions {
	uint64_t turn_count, other_count; /* number of decisions made since the start */
	struct decision turns[DECISIONS_KEPT], others[DECISIONS_KEPT];
	bool overruled; /* the watchdog made the choice that is recorded next */
};

/* Record that q was picked.  The longest wait of a runnable queue in its partition is
 * waited_ns. */
void decided_turn(struct hal_queue *q, enum decision_kind kind, uint64_t waited_ns);
/* Record any other decision.  The pointers part, q and text may be NULL. */
void decided_other(struct hal_device *dev, enum decision_kind kind,
		   const struct hal_partition *part, const struct hal_queue *q,
		   const char *text, const uint64_t *n, uint32_t count);

/* Record a decision with the values in the last arguments, if hal.monitor is on. */
#define DECIDED(dev, kind, part, q, text, ...)                                           \
	do {                                                                             \
		if (UNLIKELY((dev)->observe.decisions != NULL)) {                        \
			const uint64_t decided_n[] = {__VA_ARGS__};                      \
                                                                                         \
			decided_other((dev), (kind), (part), (q), (text), decided_n,     \
				      (uint32_t)ARRAY_LENGTH(decided_n));                \
		}                                                                        \
	} while (0)

/* Describe d in words. */
#define DECISION_TEXT 400u
void decision_text(const struct decision *d, char *text, size_t size);

#endif
