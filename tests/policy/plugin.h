/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - a policy that does what a test tells it, right or wrong. */
#ifndef TESTS_POLICY_PLUGIN_H
#define TESTS_POLICY_PLUGIN_H

#include <hal/policy.h>

enum plugin_mode {
	PLUGIN_FIFO,
	PLUGIN_STRANGER, /* names .stranger */
	PLUGIN_NOBODY,   /* nobody, and no time */
	PLUGIN_PAST,     /* nobody, until a time that has passed */
	PLUGIN_HOLD,     /* nobody until .hold_ns */
	PLUGIN_STARVE,   /* never the queue .victim */
	PLUGIN_BEHIND,   /* nobody of .behind until .enough of others have ended */
	PLUGIN_PREEMPT,  /* stops .victim while a queue of priority above 0 has work */
};

/* The symbol plugin_control of the shared object. */
struct plugin_control {
	enum plugin_mode mode;
	uint32_t lease;                /* commands, with each order */
	struct hal_policy_queue *last; /* attached last */
	struct hal_policy_queue *stranger, *victim, *watched;
	struct hal_policy_partition *part; /* of the last attached */
	struct hal_policy_partition *behind;
	uint64_t enough; /* of others have to end before anybody of it is named */
	char label[32];  /* option plugin_label of the last create */
	uint32_t skips;  /* times that nobody of .behind is named, whoever has ended */
	uint32_t asks;   /* .behind, as others end */
	uint32_t asks_in_pick; /* .behind, whoever is asked for */
	uint64_t hold_ns;
	uint64_t create_alarm_ns; /* set in create; 0: none */
	uint64_t again_ns;        /* .alarm sets the next one to so much from then */
	uint32_t stop_mode;
	int attach_err;
	uint32_t shrinks; /* pick asks for no units at all */
	/* pick moves its partition and that of .behind to their floor and ceiling, and
	 * back. */
	uint32_t tides;
	uint32_t limits; /* 1: attach limits the partition to ... */
	uint64_t limit_bytes, limit_window_ns;
	/* What it was told. */
	uint64_t attached, detached, enqueued, dequeued[4], picked, ended, changed;
	_Atomic uint64_t moved;         /* read while the engine goes on */
	struct hal_policy_command head; /* of .watched, when it was enqueued last */
	uint64_t alarms, alarm_at_ns;
	uint64_t overruns;            /* enqueued twice, or dequeued without */
	uint64_t now_ns;              /* of the last pick */
	int status;                   /* of the last that did not end well */
	struct hal_policy_end folded; /* the last that was stopped inside */
	int stopped, started;         /* what the last ones answered */
	int limited;
	const struct hal_policy_host *host;
};

#endif
