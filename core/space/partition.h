/* SPDX-License-Identifier: Apache-2.0 */
/* partition.h - a partition, and the objects that live in it or on a device. */
#ifndef HAL_SPACE_PARTITION_H
#define HAL_SPACE_PARTITION_H

#include <hal/policy.h>

#include "command/timeline.h"
#include "loop/device.h"
#include "observe/account.h"
#include "util/list.h"

/* Cookies of HAL_BK_QUIET: a queue, or a partition with the lowest bit set. */
#define COOKIE_PARTITION UINT64_C(1)

struct evict;
struct evictable;
struct hal_queue;
struct known;

/* A guest has memory, colours, programs bound and queues that are destroyed with it; what
 * has to do with units and turns is its host's. */
struct hal_partition {
	struct object obj;
	struct hal_device *dev;
	struct hal_partition
		*host; /* whose units it uses: itself, unless it is a guest */
	void *bk;
	char name[32];
	bool own_colors;      /* named them; nobody else may */
	bool bimodal;         /* HAL_PARTITION_BIMODAL */
	counter quota;        /* bytes; 0: none */
	counter memory_used;  /* any thread charges and releases */
	counter buffer_count; /* alive, or not freed yet */
	counter sequences;
	struct evict *evict;         /* NULL: its buffers stay on the device; constant */
	struct hal_queue_desc usual; /* what its queues do not say themselves; constant */

	/* The engine's; the lists change only while their changer has .dev->shape. */
	struct list on_device;
	struct list queues;
	uint32_t queue_count, guest_count;
	struct list runnable; /* on device.runnable: may be able to take a command */
	struct list busy;     /* queues with anything in them */
	struct hal_bk_partition_desc desc;
	struct hal_bk_partition_desc moving; /* resize under way: units > 0 */
	uint32_t floor_next, ceiling_next;   /* that; .view has those in force */
	bool pinned, pinned_next;            /* it asked for this place; that */
	bool policy_moves;                   /* that, for the policy or for others */
	uint64_t quota_before;               /* that */
	uint64_t moved_ns;                   /* when it has moved last */
	/* Of the commands that have ended there, the last that were of one program and
	 * behind each other; beside.c's. */
	struct stretch {
		uint32_t program;
		uint64_t since_ns, until_ns;
		uint64_t recent_ns; /* the last eight or so of them */
	} stretch;
	uint32_t inflight, inflight_max; /* 0 while it has to stand still */
	struct hal_policy_partition view;
	/* Queues the policy has, one more when it wants to see even one that is alone
	 * (without that, sole is runnable and the policy has not been told yet), and one
	 * more for .classes: then none passes policy_enqueue by. */
	uint32_t enqueued;
	union {
		struct {
			bool held;    /* nobody of it is named for now */
			bool put_off; /* to be asked behind the others */
			bool watched; /* whose turn it is is kept in .decisions */
		};
		uint32_t unusual; /* 0: none of these */
	};
	struct list waiting;            /* those the policy has, as they came */
	struct heap order[HAL_CLASSES]; /* the same, under a policy that gives keys */
	bool classes;    /* not only HAL_CLASS_NORMAL, or somebody preempts */
	uint32_t urgent; /* queues at hand that others may make way for */
	/* Of its bimodal memory; odd: it is on all of desc.wide_mask. */
	counter switches;
	bool ends_wanted;         /* queues of it are parked until something of it ends:
				     bimodal.h, evict.h */
	uint32_t copying;         /* copies by the host to and from that, under way */
	bool switch_failed;       /* the device has refused to: it stays where it is */
	struct list made_way;     /* those that were stopped for it, oldest first */
	struct hal_queue *sole;   /* runnable, and the policy has not been told */
	struct hal_queue *leased; /* may go on without asking, while .lease lasts */
	struct hal_timeline *control; /* resizes that are done */
	uint64_t resize_count;
	uint64_t bandwidth;                    /* that it asked for; constant */
	uint64_t limit_bytes, limit_window_ns; /* that; 0: none */
	struct busy ran;
	struct account past; /* of its destroyed queues */
};

/* Something destroyed that submitted work may still use (deferred.h). */
struct deferred {
	struct list node; /* at a queue */
	struct hal_device *dev;
	const struct hal_partition *home; /* whose queues may use it; NULL: all */
	uint64_t at_ns;                   /* device time when it was destroyed */
	void (*free)(struct deferred *d);
};

struct hal_buffer {
	struct object obj;
	/* Whose queues may use it; NULL: nobody's any more. */
	const struct hal_partition *user;
	uint64_t bytes, charge; /* to the quota */
	void *bk;
	struct hal_partition *part;
	struct hal_device *dev;
	void *address;
	uint32_t maps; /* the engine's */
	uint32_t flags;
	/* It is going to other channels; and copies to and from the host under way.  Who
	 * begins one of these sets or counts it, then looks at the other. */
	atomic_bool recolored;
	atomic_uint copies;
	atomic_uint pins;        /* sequences that name it, and its handle */
	struct evictable *evict; /* NULL: it stays on the device; constant */
	struct deferred deferred;
};

struct hal_kernel {
	struct object obj;
	const struct hal_device *user; /* NULL: unloaded */
	struct hal_program *prog;
	struct known *known; /* of the device's profile; NULL: nothing */
	void *bk;
	const _Atomic uint64_t *bound; /* prog->bound */
	uint32_t inline_args; /* how many, if they may lie in a ring, else UINT32_MAX */
	uint32_t slots;       /* of a record there */
	uint32_t flags;       /* cmd.flags of a record of its own, but for HAL_CMD_* */
	uint32_t program;     /* its number in the device's profile; 0: none */
	struct hal_bk_kernel_info info;
};

struct hal_program {
	struct object obj;
	struct hal_device *dev;
	struct list on_device; /* the engine's */
	void *bk;
	char name[32]; /* for traces; the engine's */
	void *image;
	bool loaded; /* the backend has it, though its kernels could not be listed */
	uint32_t kernel_count;
	struct hal_kernel **kernels;
	atomic_uint pins; /* sequences that name its kernels, and its handle */
	struct deferred deferred;
	uint64_t *bound_bytes;    /* a partition, the engine's; charged to its quota */
	_Atomic uint64_t bound[]; /* bit a partition index */
};

/* Numbers that partitions of a device have. */
static inline uint32_t partition_numbers(const struct hal_device *dev)
{
	return dev->info.partitions_max + dev->info.guests_max;
}

/* part may be able to take a command. */
static inline void partition_runnable(struct hal_partition *part)
{
	if (list_empty(&part->runnable))
		list_add_before(&part->dev->runnable, &part->runnable);
	part->dev->work |= WORK_TODO;
}

void partition_describe(const struct hal_partition *p, char *text, size_t size);

/* What place.h calls its owner. */
static inline uint32_t partition_holder(const struct hal_partition *p)
{
	return p->desc.index + 1;
}

/* Of .desc, or of .moving. */
static inline struct place_rect rect_of(const struct hal_bk_partition_desc *d)
{
	return (struct place_rect){d->row, d->col, d->rows, d->cols};
}

#endif
