/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evict.h - a partition has more memory than its quota lets lie on the device: what is
 * cold is kept by the host.
 *
 *   HERE   on the device, and charged to the quota
 *   MOVES  being copied to the host or back, by a thread of the partition's beside the
 *          engine; clock=virtual: by the engine, at once
 *   AWAY   the host has its bytes; the device's handle and address stay
 *
 * Somebody needs room (a buffer is made, a command's buffer is away): the buffer that no
 * command has used for longest goes.  Not one that the device has a command of, or that
 * the next command of a queue uses that waits for its turn only; nor one that is mapped,
 * moves to other channels, or is being copied by the host.
 *
 * Before a command of such a partition is given to the device all that it uses is here:
 * else its queue is parked, and looks again whenever something of the partition ends.
 * One queue at a time gets what it needs, in the order in which they have come; so no two
 * wait for what the other has, and all that is waited for ends by itself.  A buffer that
 * is to move to other channels (recolor.h) has both of its places from when that begins
 * until it ends, and nothing before.
 */
#ifndef HAL_MEMORY_EVICT_H
#define HAL_MEMORY_EVICT_H

#include "command/queue.h"
#include "space/partition.h"

enum place_of { PLACE_HERE, PLACE_MOVES, PLACE_AWAY };

/* Of a partition with hal_partition_desc.memory_limit above its quota. */
struct evict {
	struct hal_device *dev;
	struct hal_partition *part;
	uint64_t limit; /* bytes of its buffers, wherever they are */
	counter all;    /* that; any thread charges and releases */
	counter away;   /* of those with the host */
	counter evictions, evicted_bytes, fetches, fetched_bytes, wait_ns;
	atomic_uint changed; /* futex: counts moves that have ended */
	/* The engine's. */
	struct list cold;   /* its buffers, the one used longest ago first */
	struct list turns;  /* queues whose next command needs something, as they came */
	struct list *slots; /* the buffers by the backend's handle */
	uint64_t marks;     /* looks for what is in use */
	uint32_t moves;     /* under way */
	/* clock=real: who copies. */
	pthread_t thread;
	bool has_thread;
	_Atomic(struct evictable *) next;
	atomic_uint wake; /* futex */
	atomic_bool stop;
};

/* A buffer of such a partition. */
struct evictable {
	struct hal_buffer *buf;
	struct evict *of;
	uint8_t weights[HAL_BK_COLORS_MAX];
	struct hal_bk_colors colors; /* .mask 0: the device has none */
	/* Who changes .place to MOVES looks at the buffer's .copies then; who counts
	 * there looks at .place then.  futex */
	atomic_uint place;
	atomic_bool awaited; /* the engine wants to know when .copies is 0 */
	/* The engine's, and who copies'. */
	struct list cold, slot;
	uint64_t mark;
	uint8_t *bytes; /* the host's; NULL: HERE */
	bool out;       /* MOVES: to the host */
	bool stuck;     /* the device did not give its bytes: it stays */
	bool gone;      /* destroyed while it moves */
	bool pinned;    /* it is moving to other channels */
	struct message message;
	struct evictable *next; /* to be copied */
	int err;                /* of the copy, or of the last way back */
	char why[128];
};

/* ---- any thread -------------------------------------------------------------------- */

/* part is new, and .evict is made. */
int evict_open(struct hal_partition *part, uint64_t limit);
/* Nothing of it moves any more; NULL is let pass. */
void evict_close(struct evict *e);

/* For a new buffer, which is .evict then; NULL: -ENOMEM. */
struct evictable *evictable_make(struct hal_buffer *buf, const struct hal_bk_colors *c);

/* buf, of such a partition, is at rest and stays there until evict_copied: where. */
enum place_of evict_copies(struct hal_buffer *buf);
void evict_copied(struct hal_buffer *buf);
/* Has fn(dev, arg) done by the engine, again as long as it answers -EAGAIN, which is when
 * something has begun to move.  e NULL: once. */
int evict_call(struct hal_device *dev, struct evict *e,
	       int (*fn)(struct hal_device *, void *), void *arg);
/* The same for a caller that holds a lock while it asks, and must not while it waits:
 * read the count, ask, and after -EAGAIN wait until it has changed. */
unsigned int evict_ended(struct evict *e);
void evict_wait(struct evict *e, unsigned int ended);

/* ---- by the engine ----------------------------------------------------------------- */

/* Its memory is there. */
void evict_enter(struct hal_buffer *buf);
static inline bool evict_moving(const struct hal_buffer *buf)
{
	return buf->evict != NULL && atomic_load(&buf->evict->place) == PLACE_MOVES;
}

/* It is being freed, and is not charged to the quota any more.  False: it moves, and is
 * freed (.deferred) when it has. */
bool evict_leave(struct hal_buffer *buf);
/* It is on these channels now; mask 0: the device has none. */
void evict_recolored(struct evictable *ev, const struct hal_bk_colors *c);

/* bytes of part could not be had: -ENOSPC, err.  Room is made for them, if that can be.
 * 0: try again; -EAGAIN: something moves, try then (evict_call).  Else err, with a text
 * that says more; *busy: what could have gone is in use. */
int evict_room(struct hal_partition *part, uint64_t bytes, int err, bool *busy);
/* Memory for buf, or for it to go to, charged to its partition; what is cold makes room
 * where it may.  Else as evict_room. */
int evict_place(struct hal_buffer *buf, const struct hal_bk_colors *c, void **mem,
		bool *busy);
/* 0: buf is here.  -EAGAIN: something moves.  -ENOSPC as evict_room, or what the device
 * answered. */
int evict_fetch(struct hal_buffer *buf, bool *busy);
/* The next command, r, of q may be given to the device: 1.  0: q is parked; -errno: all
 * that it uses cannot be on the device. */
int evict_lets(struct hal_queue *q, const struct record *r);
/* q, whose turn it is to, may begin to move m's buffer: 1, and that has both places.  0:
 * q is parked; -errno: they cannot both be on the device. */
int evict_lets_move(struct hal_queue *q, struct recolor *m);
/* Something of part is on its way. */
bool evict_moves(const struct hal_partition *part);
void evict_tell(const struct hal_partition *part, struct hal_partition_info *i);
/* q is being destroyed. */
void evict_forget(struct hal_queue *q);

#endif
