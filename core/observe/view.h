/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.h - a device as its engine sees it at one moment, copied for whoever looks
 * (hal.monitor).
 */
#ifndef HAL_OBSERVE_VIEW_H
#define HAL_OBSERVE_VIEW_H

#include "sched/decisions.h"
#include "space/partition.h"

/* So many are shown, the first of each; the rest is counted.  They bound what a look
 * costs the engine. */
#define VIEW_PARTITIONS 256u
#define VIEW_GUESTS     256u
#define VIEW_QUEUES     512u
#define VIEW_LEARNED    512u

enum view_state {
	VIEW_IDLE,    /* has nothing to do */
	VIEW_READY,   /* the policy's, or alone */
	VIEW_RUNNING, /* the device has commands of it */
	VIEW_WAITING, /* at a point, or for room */
	VIEW_STOPPING,
	VIEW_STOPPED,
	VIEW_FAILED,
};

struct view_partition {
	uint32_t index;
	uint32_t row, col, rows, cols, units;
	uint32_t floor, ceiling;
	uint32_t running,
		runnable; /* commands on the device; queues in the policy's hands */
	bool moving, held;
	char name[32];
	struct hal_stats stats; /* not the engine's: who looks adds them */
	uint64_t memory_used, memory_quota;
};

/* It has no units: host is the partition that has them. */
struct view_guest {
	uint32_t index, host, queues;
	char name[32];
	struct hal_stats stats; /* as above */
	uint64_t memory_used, memory_quota;
};

struct view_queue {
	uint32_t id;
	uint32_t partition,
		home; /* on whose units it runs; a guest of that, or the same */
	uint32_t service_class;
	int32_t priority;
	uint64_t deadline_ns; /* of a submission that says none; 0: none */
	uint32_t weight, running;
	uint32_t state; /* enum view_state */
	struct hal_stats stats;
};

enum view_of {
	VIEW_PAIR,   /* of a program beside another */
	VIEW_KERNEL, /* of a kernel of a profile, on so many units */
	VIEW_QUEUE,  /* of a queue's commands, on so many units */
	VIEW_WORK,   /* the same, of whose work it is known, for VIEW_WORK_OF of it */
};

#define VIEW_WORK_OF 1000000u /* multiply-accumulates */

/* What has been learned while it runs: what policies are told, and how sure. */
struct view_learned {
	enum view_of of;
	uint32_t id, other; /* programs, from 1; else .id alone, of a program, a queue */
	uint32_t units;
	uint32_t commands, sure_permille;
	uint64_t takes; /* ns; of pairs, so many thousandths longer */
	char kernel[32];
};

struct view {
	uint64_t now_ns;
	int lost;
	struct hal_policy_info policy;
	uint32_t partitions_all, guests_all, queues_all; /* that there are */
	uint32_t partition_count, guest_count, queue_count, learned_count;
	bool learned_cut; /* there is more of it */
	struct view_partition partitions[VIEW_PARTITIONS];
	struct view_guest guests[VIEW_GUESTS];
	struct view_queue queues[VIEW_QUEUES];
	struct view_learned learned[VIEW_LEARNED];
	struct decisions decisions;
};

/* By the engine: a struct view, but for the statistics. */
int view_take(struct hal_device *dev, void *to);

#endif
