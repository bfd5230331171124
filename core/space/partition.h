/* SPDX-License-Identifier: Apache-2.0 */
/* partition.h - the objects of a device: partitions, buffers, programs and kernels. */
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
	struct hal_partition *host; /* the partition itself, unless it is a guest */
	void *bk;
	char name[32];
	counter sequences;
	/* Values for fields that a queue's descriptor leaves out; constant. */
	struct hal_queue_desc queue_defaults;

	/* Only the engine changes the fields from here on, unless a comment says
	 * otherwise.  A thread that changes the lists holds .dev->shape. */
	struct list on_device;
	struct list queues;
	uint32_t queue_count, guest_count;
	struct hal_bk_partition_desc desc;
	/* The place to which the partition is moving; .units is 0 if no resize is under
	 * way. */
	struct hal_bk_partition_desc moving;
	/* The limits after that resize; .sched.policy_view has the present ones. */
	uint32_t floor_next, ceiling_next;
	/* Whether the application requested the exact rectangle: the present one, and the
	 * one after that resize. */
	bool pinned, pinned_next;
	bool policy_moves;            /* the policy or a plan began the resize */
	bool arranged;                /* hal_partitions_move is under way (arrange.h) */
	uint64_t quota_before;        /* quota to restore if the resize fails */
	uint64_t moved_ns;            /* device time of the last move */
	struct hal_timeline *control; /* counts completed resizes */
	uint64_t resize_count;

	struct {
		struct list runnable; /* on device.command.runnable */
		struct list busy;     /* queues that are not empty */
		/* In-flight commands, and their limit, which is 0 while the partition
		 * must not issue commands. */
		uint32_t inflight, inflight_max;
		/* The partition, or a guest of it, has host memory. */
		bool copies_host;
	} command;

	struct {
		struct hal_policy_partition policy_view;
		/* Queues passed to the policy, plus 1 if the policy wants to see even a
		 * single runnable queue, plus 1 if .classes is set.  If 0, a single
		 * runnable queue becomes .sole and the policy is not called. */
		uint32_t enqueued;
		union {
			struct {
				bool held; /* the policy picks no queue of the partition
					      now */
				bool deferred; /* call pick for this partition after the
						  others */
				bool watched;  /* picks go to .observe.decisions */
			};
			uint32_t unusual; /* the flags above; 0: none is set */
		};
		struct list waiting; /* queues passed to the policy, oldest first */
		/* The same queues by key, if the policy uses keys. */
		struct heap order[HAL_CLASSES];
		/* Set if the partition may have a queue that preempts others or is not of
		 * class NORMAL. */
		bool classes;
		uint32_t urgent; /* runnable queues for which others may be preempted */
		/* Queues that are preempted for urgent ones, oldest first. */
		struct list preempted;
		struct hal_queue *sole; /* runnable queue not passed to the policy */
		struct hal_queue
			*leased; /* queue that may issue .lease commands without a pick */
		uint64_t plan_number; /* device.sched.plan_number of its last plan */
		uint64_t bandwidth;   /* requested limit in bytes/s; constant */
		/* At most limit_bytes per limit_window_ns; 0: no limit. */
		uint64_t limit_bytes, limit_window_ns;
		/* The latest run of consecutive commands of one program (beside.c). */
		/* Urgency is inherited only between queues of one owner (inherit.c). */
		uint64_t owner;
		struct stretch {
			uint32_t program;
			uint64_t since_ns, until_ns;
			uint64_t recent_ns; /* average run time of about the last 8
					       commands */
		} stretch;
	} sched;

	struct {
		bool own_colors; /* the partition requested its channels and owns them
				    alone */
		bool bimodal;    /* HAL_PARTITION_BIMODAL */
		counter quota;   /* bytes; 0: none */
		counter used;    /* bytes charged by the partition's buffers and programs;
				    any thread */
		counter buffer_count; /* buffers that are not freed yet */
		struct evict *evict;  /* NULL: buffers are never evicted; constant */
		/* Switches of the bimodal memory; odd: the placement is wide. */
		counter switches;
		bool ends_wanted;   /* queues wait for memory; wake them when a command
				       completes or memory is freed (bimodal_look) */
		uint32_t copying;   /* host copies to and from bimodal memory under way */
		bool switch_failed; /* a switch failed; no more are tried */
	} memory;

	struct {
		struct busy ran;
		struct account past; /* sums over destroyed queues of the partition */
		/* Whose it is, for traces that show one tenant; 0: not known. */
		uint64_t tenant;
	} observe;
};

/* A destroyed object that submitted work may still use (deferred.h). */
struct deferred {
	struct list node; /* on hal_queue.deferred */
	struct hal_device *dev;
	const struct hal_partition *home; /* only queues of this partition may use the
					     object; NULL: any queue */
	uint64_t at_ns;                   /* device time when it was destroyed */
	void (*free)(struct deferred *d);
};

struct hal_buffer {
	struct object obj;
	/* The partition whose queues may use the buffer; NULL once the buffer is
	 * destroyed, and if it is host memory. */
	const struct hal_partition *user;
	/* The partition whose queues may copy to and from host memory; NULL once that is
	 * destroyed, and for all other buffers. */
	const struct hal_partition *host_user;
	uint64_t bytes, charge; /* .charge counts towards the quota */
	char name[32];
	void *bk;
	struct hal_partition *part;
	struct hal_device *dev;
	void *address;   /* of a mapped buffer, or of host memory */
	uint32_t maps;   /* number of maps; only the engine uses it */
	uint32_t flags;  /* HAL_BUFFER_*, HAL_BK_MEM_HOST */
	bool registered; /* the program's own memory (hal_host_register) */
	bool imported;   /* another device's or process's memory (hal_buffer_import) */
	int import_fd;   /* of an imported buffer, while it is created */
	/* .recolored is set while the buffer moves to other channels.  .copies counts
	 * host copies under way.  To begin a move, set .recolored, then check .copies. To
	 * begin a copy, increment .copies, then check .recolored.  So a copy and a move
	 * never overlap. */
	atomic_bool recolored;
	atomic_uint copies;
	atomic_uint pins; /* sequences that use the buffer, plus one for its handle */
	struct evictable *evict; /* NULL: the buffer cannot be evicted; constant */
	struct deferred deferred;
	/* Set while the engine handles the destruction of the buffer for a thread that
	 * frees the memory itself; else NULL.  Only the engine uses it. */
	struct buffer_release *release;
};

struct hal_kernel {
	struct object obj;
	const struct hal_device *user; /* NULL: unloaded */
	struct hal_program *prog;
	struct known *known; /* run times in the device's profile; NULL: none */
	void *bk;
	const _Atomic uint64_t *bound; /* prog->bound */
	/* Number of arguments, or UINT32_MAX if they do not fit into a ring record. */
	uint32_t inline_args;
	uint32_t slots;   /* ring slots of a launch record of this kernel */
	uint32_t flags;   /* cmd.flags of that launch record, without HAL_CMD_* */
	uint32_t program; /* number in the device's profile; 0: none */
	struct hal_bk_kernel_info info;
};

struct hal_program {
	struct object obj;
	struct hal_device *dev;
	struct list on_device; /* only the engine uses it */
	void *bk;
	char name[32]; /* for traces; only the engine uses it */
	void *image;
	bool loaded; /* the backend has it, even if its kernels could not be listed */
	uint32_t kernel_count;
	struct hal_kernel **kernels;
	atomic_uint pins; /* sequences that use its kernels, plus one for its handle */
	struct deferred deferred;
	uint64_t *bound_bytes;    /* charged to the quota, by partition index; only the
				     engine uses it */
	_Atomic uint64_t bound[]; /* bitmap: indices of the partitions to which the
				     program is bound */
};

/* Return how many partition indices the device has, guests included. */
static inline uint32_t partition_numbers(const struct hal_device *dev)
{
	return dev->info.partitions_max + dev->info.guests_max;
}

/* Have the engine try to issue a command of part in this turn. */
static inline void partition_runnable(struct hal_partition *part)
{
	if (list_empty(&part->command.runnable))
		list_add_before(&part->dev->command.runnable, &part->command.runnable);
	part->dev->work |= WORK_TODO;
}

/* Return .inflight_max of a partition that may issue commands.  Copies between host
 * memory and buffers run beside commands on the units, in two directions.  They are not
 * counted apart, so allow as many commands again for each. */
static inline uint32_t partition_inflight_max(const struct hal_partition *part)
{
	return part->dev->partition_inflight * (part->command.copies_host ? 3 : 1);
}

/* Note that part has host memory.  Engine only. */
void partition_copies_host(const struct hal_partition *part);

/* Write the name of p into text, for an error message. */
void partition_describe(const struct hal_partition *p, char *text, size_t size);

/* Room for the text of buffer_describe. */
#define BUFFER_DESCRIPTION 48
/* Return what to call buf in a message: its name, which is written into text, or without
 * a name `none`. */
const char *buffer_describe(const struct hal_buffer *buf, const char *none,
			    char text[BUFFER_DESCRIPTION]);

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
