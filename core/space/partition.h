/* SPDX-License-Identifier: Apache-2.0 */
/* partition.h - a partition, and the objects that belong to it or to a device. */
#ifndef HAL_SPACE_PARTITION_H
#define HAL_SPACE_PARTITION_H

#include <hal/policy.h>

#include "command/timeline.h"
#include "loop/device.h"
#include "observe/account.h"
#include "util/list.h"

/* The cookie of HAL_BK_QUIET is a queue, or a partition with its lowest bit set. */
#define COOKIE_PARTITION UINT64_C(1)

struct evict;
struct evictable;
struct hal_queue;
struct known;

/* A guest partition has memory, colours, bound programs and queues, which are destroyed
 * with it.  Its host has the units and schedules the guest's queues with its own.
 *
 * Fields are grouped by the module that owns them.  Those outside of a group belong to
 * core/space.  docs/state.md lists the states of a partition that moves. */
struct hal_partition {
	struct object obj;
	struct hal_device *dev;
	struct hal_partition *host; /* itself, unless it is a guest */
	void *bk;
	char name[32];
	counter sequences;
	struct hal_queue_desc
		queue_defaults; /* for what its queues leave out; constant */

	/* The engine's, from here on.  A thread that changes the lists holds .dev->shape.
	 */
	struct list on_device;
	struct list queues;
	uint32_t queue_count, guest_count;
	struct hal_bk_partition_desc desc;
	struct hal_bk_partition_desc
		moving; /* where it goes; units > 0 during a resize */
	uint32_t floor_next,
		ceiling_next; /* with .moving; .sched.policy_view has today's */
	bool pinned,
		pinned_next; /* the application named its place; the same with .moving */
	bool policy_moves;   /* .moving is the policy's or a plan's, not the owner's */
	uint64_t quota_before;        /* to restore should .moving fail */
	uint64_t moved_ns;            /* when it last moved */
	struct hal_timeline *control; /* counts completed resizes */
	uint64_t resize_count;

	struct {
		struct list runnable; /* on device.command.runnable */
		struct list busy;     /* queues that are not empty */
		uint32_t inflight,
			inflight_max; /* .inflight_max is 0 while it may not issue */
	} command;

	struct {
		struct hal_policy_partition policy_view;
		/* Queues that the policy has.  One more if the policy wants to see even a
		 * lone queue: without that, .sole is runnable and the policy has not been
		 * told.  One more for .classes.  Not 0: every queue goes by
		 * policy_enqueue. */
		uint32_t enqueued;
		union {
			struct {
				bool held; /* the policy names none of its queues for now
					    */
				bool deferred; /* ask for it after the other partitions */
				bool watched;  /* its picks are kept in .observe.decisions
						*/
			};
			uint32_t unusual; /* all of the above; 0: none is set */
		};
		struct list waiting; /* queues that the policy has, in order of arrival */
		struct heap
			order[HAL_CLASSES]; /* the same, under a policy that uses keys */
		bool classes;    /* it has a queue whose class is not NORMAL, or that
				    preempts */
		uint32_t urgent; /* runnable queues for which others may be preempted */
		struct list
			preempted; /* queues preempted for urgent ones, oldest first */
		struct hal_queue *sole;   /* runnable, and unknown to the policy */
		struct hal_queue *leased; /* may issue without asking, up to its .lease */
		uint64_t bandwidth;       /* promised to it, bytes a second; constant */
		uint64_t limit_bytes,
			limit_window_ns; /* at most N bytes a window; 0: no limit */
		/* The latest run of commands of one program without another between them
		 * (beside.c). */
		struct stretch {
			uint32_t program;
			uint64_t since_ns, until_ns;
			uint64_t recent_ns; /* average of the last eight or so */
		} stretch;
	} sched;

	struct {
		bool own_colors; /* it named its channels; no other partition gets them */
		bool bimodal;    /* HAL_PARTITION_BIMODAL */
		counter quota;   /* bytes; 0: none */
		counter used;    /* bytes; any thread charges and releases */
		counter buffer_count; /* alive, or not freed yet */
		struct evict *evict;  /* NULL: its buffers stay on the device; constant */
		/* Moves of its bimodal memory; odd: it is on all of desc.wide_mask. */
		counter switches;
		bool ends_wanted;   /* queues wait for memory until a command of it
				       completes */
		uint32_t copying;   /* host copies to and from bimodal memory under way */
		bool switch_failed; /* the device refused a switch: no more are tried */
	} memory;

	struct {
		struct busy ran;
		struct account past; /* of its destroyed queues */
	} observe;
};

/* A destroyed object that submitted work may still use (deferred.h). */
struct deferred {
	struct list node; /* on hal_queue.deferred */
	struct hal_device *dev;
	const struct hal_partition *home; /* whose queues may use it; NULL: all */
	uint64_t at_ns;                   /* device time when it was destroyed */
	void (*free)(struct deferred *d);
};

struct hal_buffer {
	struct object obj;
	/* The partition whose queues may use it; NULL once it is destroyed. */
	const struct hal_partition *user;
	uint64_t bytes, charge; /* .charge counts towards the quota */
	void *bk;
	struct hal_partition *part;
	struct hal_device *dev;
	void *address;
	uint32_t maps; /* the engine's */
	uint32_t flags;
	/* .recolored is set while it moves to other channels, .copies counts host copies
	 * under way.  A thread that starts either first sets or counts its own, then
	 * reads the other, so that the two never overlap. */
	atomic_bool recolored;
	atomic_uint copies;
	atomic_uint pins;        /* sequences that use it, plus one for its handle */
	struct evictable *evict; /* NULL: it stays on the device; constant */
	struct deferred deferred;
};

struct hal_kernel {
	struct object obj;
	const struct hal_device *user; /* NULL: unloaded */
	struct hal_program *prog;
	struct known *known; /* run times in the device's profile; NULL: none */
	void *bk;
	const _Atomic uint64_t *bound; /* prog->bound */
	uint32_t inline_args; /* argument count if they fit a ring record, else UINT32_MAX
			       */
	uint32_t slots;       /* of such a record */
	uint32_t flags;       /* cmd.flags of such a record, without HAL_CMD_* */
	uint32_t program;     /* number in the device's profile; 0: none */
	struct hal_bk_kernel_info info;
};

struct hal_program {
	struct object obj;
	struct hal_device *dev;
	struct list on_device; /* the engine's */
	void *bk;
	char name[32]; /* for traces; the engine's */
	void *image;
	bool loaded; /* the backend has it, even if its kernels could not be listed */
	uint32_t kernel_count;
	struct hal_kernel **kernels;
	atomic_uint pins; /* sequences that use its kernels, plus one for its handle */
	struct deferred deferred;
	uint64_t *bound_bytes;    /* per partition, charged to its quota; the engine's */
	_Atomic uint64_t bound[]; /* a bit per partition index */
};

/* Return how many partition indices the device has, guests included. */
static inline uint32_t partition_numbers(const struct hal_device *dev)
{
	return dev->info.partitions_max + dev->info.guests_max;
}

/* Have the engine try to issue a command of part. */
static inline void partition_runnable(struct hal_partition *part)
{
	if (list_empty(&part->command.runnable))
		list_add_before(&part->dev->command.runnable, &part->command.runnable);
	part->dev->work |= WORK_TODO;
}

/* Write the name of p into text, for an error message. */
void partition_describe(const struct hal_partition *p, char *text, size_t size);

/* Return the owner number of p in place.h. */
static inline uint32_t partition_holder(const struct hal_partition *p)
{
	return p->desc.index + 1;
}

/* Return the rectangle of .desc or .moving. */
static inline struct place_rect rect_of(const struct hal_bk_partition_desc *d)
{
	return (struct place_rect){d->row, d->col, d->rows, d->cols};
}

#endif
