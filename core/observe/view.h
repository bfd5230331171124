/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.h - a copy of a device's state at one moment, for the monitor (hal.monitor).
 *
 * The engine fills it in one message (view_take).  The monitor's thread adds statistics.
 */
#ifndef HAL_OBSERVE_VIEW_H
#define HAL_OBSERVE_VIEW_H

#include "sched/decisions.h"
#include "space/partition.h"

/* Maximum number of entries of each kind in a view.  The device's first ones are copied,
 * the others only counted.  This bounds the time that the engine needs for a copy. */
#define VIEW_PARTITIONS 256u
#define VIEW_GUESTS     256u
#define VIEW_QUEUES     512u
#define VIEW_LEARNED    512u

enum view_state {
	VIEW_IDLE,     /* has no commands */
	VIEW_READY,    /* its next command may be submitted to the device */
	VIEW_RUNNING,  /* has commands on the device */
	VIEW_WAITING,  /* waits for a point, for a time or for memory */
	VIEW_STOPPING, /* is being suspended */
	VIEW_STOPPED,  /* is suspended */
	VIEW_FAILED,
};

struct view_partition {
	uint32_t index;
	uint32_t row, col, rows, cols, units;
	uint32_t floor, ceiling;
	uint32_t running;  /* commands on the device */
	uint32_t runnable; /* queues that may be served next */
	bool moving;       /* is being resized or moved */
	bool held;         /* the policy names none of its queues for now */
	char name[32];
	/* Added by the monitor's thread, not by the engine. */
	struct hal_stats stats;
	uint64_t memory_used, memory_quota;
};

/* A guest partition, which runs on the units of partition host. */
struct view_guest {
	uint32_t index, host, queues;
	char name[32];
	/* Added by the monitor's thread. */
	struct hal_stats stats;
	uint64_t memory_used, memory_quota;
};

struct view_queue {
	uint32_t id;
	uint32_t partition; /* partition on whose units it runs */
	uint32_t home; /* partition in which it was created: .partition or its guest */
	uint32_t service_class;
	int32_t priority;
	uint64_t deadline_ns; /* default deadline of its submissions; 0: none */
	uint32_t weight;
	uint32_t running; /* commands on the device */
	uint32_t state;   /* enum view_state */
	char name[32];
	struct hal_stats stats; /* added by the monitor's thread */
};

/* What a learned time is about. */
enum view_of {
	VIEW_PAIR,   /* slowdown of a program while another one runs */
	VIEW_KERNEL, /* a kernel of a profile */
	VIEW_QUEUE,  /* a queue's commands of unknown work */
	VIEW_WORK,   /* a queue's commands of known work, per VIEW_WORK_OF */
};

#define VIEW_WORK_OF 1000000u /* multiply-accumulates */

/* A time that was learned while commands ran, as policies get it. */
struct view_learned {
	enum view_of of;
	/* VIEW_PAIR: numbers of the two programs in the profile, from 1.  VIEW_KERNEL:
	 * .id is the kernel's program.  Otherwise .id is the queue. */
	uint32_t id, other;
	uint32_t units;    /* number of units on which the commands ran */
	uint32_t commands; /* commands observed */
	uint32_t sure_permille;
	uint64_t takes;  /* ns; for a pair, slowdown in thousandths */
	char kernel[32]; /* name, for VIEW_KERNEL */
};

struct view {
	uint64_t now_ns;
	int lost;
	struct hal_policy_info policy;
	uint32_t partitions_all, guests_all, queues_all; /* how many the device has */
	/* Number of entries used in the arrays below. */
	uint32_t partition_count, guest_count, queue_count, learned_count;
	bool learned_cut; /* .learned was too small */
	struct view_partition partitions[VIEW_PARTITIONS];
	struct view_guest guests[VIEW_GUESTS];
	struct view_queue queues[VIEW_QUEUES];
	struct view_learned learned[VIEW_LEARNED];
	struct decisions decisions;
};

/* Fill *to, a struct view, except for the statistics.  Engine only; a function for
 * engine_call. */
int view_take(struct hal_device *dev, void *to);

#endif
