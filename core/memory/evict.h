/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evict.h - let the buffers of a partition exceed its quota: evict unused ones to the
 * host.
 *
 * Each buffer of such a partition is in one of three states:
 *
 *   HERE   on the device, and charged to the quota
 *   MOVES  being copied to the host or back by the partition's copy thread; with
 *          clock=virtual the engine copies at once
 *   AWAY   evicted: the contents are in host memory; handle and device address stay valid
 *
 * If a new buffer, a program or a command needs device memory, the buffer of the
 * partition is evicted that pending commands use last, as far as they are known; of those
 * that none uses, the least recently used.  These buffers are never evicted: one that an
 * in-flight command or the next command of a runnable queue uses, one that is mapped, one
 * that moves to other channels, and one that the host is copying.
 *
 * A command is issued only when all its buffers are HERE.  Until then its queue is parked
 * and checked again when a command of the partition completes or a move ends.  Queues get
 * their buffers one queue at a time, in order of arrival.  So two queues never hold
 * buffers that the other one waits for.
 *
 * A buffer that moves to other channels (recolor.h) takes up twice its size from the
 * beginning to the end of that move.  Nothing is reserved before the move begins.
 */
#ifndef HAL_MEMORY_EVICT_H
#define HAL_MEMORY_EVICT_H

#include "command/queue.h"
#include "space/partition.h"

/* Where a buffer is. */
enum place_of { PLACE_HERE, PLACE_MOVES, PLACE_AWAY };

/* The eviction state of a partition whose memory_limit is above its quota. */
struct evict {
	struct hal_device *dev;
	struct hal_partition *part;
	uint64_t limit; /* maximum of the partition's buffers in bytes, on the device or
			   not */
	counter all;    /* bytes charged to .limit; any thread */
	counter away;   /* bytes of its buffers in state AWAY */
	counter evictions, evicted_bytes, fetches, fetched_bytes, wait_ns;
	atomic_uint changed; /* futex: number of events after which waiters try again */
	/* The engine's. */
	struct list cold;   /* its buffers, least recently used first */
	struct list turns;  /* queues that wait for buffers, in order of arrival */
	struct list *slots; /* hash table of its buffers by backend handle */
	uint64_t mark_base; /* marks of the latest search begin here (mark_used) */
	uint32_t moves;     /* copies under way */
	uint32_t holds;     /* threads that allocate or free its memory (evict_hold) */
	/* The copy thread, with clock=real. */
	pthread_t thread;
	bool has_thread;
	_Atomic(struct evictable *) next; /* buffers to be copied */
	atomic_uint wake;                 /* futex */
	atomic_bool stop;
};

/* A buffer that can be evicted. */
struct evictable {
	struct hal_buffer *buf;
	struct evict *of;
	uint8_t weights[HAL_BK_COLORS_MAX];
	struct hal_bk_colors colors; /* its channels; .mask 0: the device has none */
	/* enum place_of, futex.  The engine sets MOVES, then checks the buffer's .copies.
	 * A thread that copies increments .copies, then checks .place.  So a buffer never
	 * moves during a host copy. */
	atomic_uint place;
	atomic_bool awaited; /* wake the waiters when a host copy ends */
	/* Used by the copy thread between queue_copy and end_copy, otherwise by the
	 * engine. */
	struct list cold, slot;
	uint64_t mark;     /* USED or WANTED of a search (mark_used) */
	uint64_t use_mark; /* of the search for which .next_use is valid */
	uint32_t next_use; /* pending records of a queue before one that uses it */
	uint8_t *bytes;    /* contents in host memory; NULL if HERE */
	bool out;          /* the copy is to the host, not back to the device */
	bool unevictable;  /* the device failed to evict the buffer, which stays there */
	bool destroyed;    /* destroyed during a copy, which ends with freeing it */
	bool pinned;       /* it is moving to other channels */
	struct message message;
	struct evictable *next; /* next buffer to be copied */
	int err;       /* error of the move under way, or of the last failed fetch */
	bool unplaced; /* .err: the device had no memory for it */
	char why[256]; /* text of .err */
};

/* ---- any thread -------------------------------------------------------------------- */

/* Create part->memory.evict for a new partition.  Return 0 or -errno. */
int evict_open(struct hal_partition *part, uint64_t limit);
/* Free e and end its copy thread.  No copy may be under way.  NULL is allowed. */
void evict_close(struct evict *e);

/* Allocate the eviction state of a new buffer, for buf->evict.  Return NULL with the
 * error text if memory is short. */
struct evictable *evictable_make(struct hal_buffer *buf, const struct hal_bk_colors *c);

/* Begin a host copy to or from buf: wait until buf does not move, and prevent moves until
 * evict_copied.  Return PLACE_HERE or PLACE_AWAY. */
enum place_of evict_copies(struct hal_buffer *buf);
void evict_copied(struct hal_buffer *buf);
/* Have the engine call fn(dev, arg).  While fn returns -EAGAIN, call it again after the
 * next event in e.  If e is NULL, call it once. */
int evict_call(struct hal_device *dev, struct evict *e,
	       int (*fn)(struct hal_device *, void *), void *arg);
/* The parts of evict_call, for a caller that must not wait while it holds a lock: read
 * the count of events with evict_ended, call the engine, and after -EAGAIN release the
 * lock and wait with evict_wait until the count has changed. */
unsigned int evict_ended(struct evict *e);
void evict_wait(struct evict *e, unsigned int ended);

/* Have the backend allocate device memory of buf's size on the channels of c in *mem.
 * Return 0 or -errno.  By the engine, or as device_beside allows. */
int evict_allocate(struct hal_buffer *buf, const struct hal_bk_colors *c, void **mem);

/* ---- by the engine ----------------------------------------------------------------- */

/* Add buf, whose device memory has been allocated, to its partition's state. */
void evict_enter(struct hal_buffer *buf);
/* Return whether buf is being copied to or from the host by an eviction or a fetch. */
static inline bool evict_moving(const struct hal_buffer *buf)
{
	return buf->evict != NULL && atomic_load(&buf->evict->place) == PLACE_MOVES;
}

/* Remove buf, which is being freed, from its partition's state.  Return false if buf
 * MOVES: the end of the copy then calls buf->deferred.free. */
bool evict_leave(struct hal_buffer *buf);
/* Release the quota and the eviction state of buf, whose device memory has been freed
 * after evict_leave. */
void evict_left(struct hal_buffer *buf);
/* Have evict_room of part return -EAGAIN until evict_unhold, because an application
 * thread allocates or frees memory that is charged to part.  Otherwise evict_room would
 * report that no buffer can be evicted.  part may be one without eviction. */
void evict_hold(struct hal_partition *part);
/* Undo evict_hold, and have those that wait for memory of part try again. */
void evict_unhold(struct hal_partition *part);
/* Record that ev's buffer is on the channels of c now. */
void evict_recolored(struct evictable *ev, const struct hal_bk_colors *c);

/* Make space after an allocation of `bytes` for part has failed with err.  If err is
 * -ENOSPC, evict a buffer.  Return 0 if the caller is to try again at once, or -EAGAIN if
 * it is to try again after a move has ended (evict_call).  Otherwise return -errno with
 * the reason appended to the error text, and set *busy if a buffer could be evicted, but
 * is in use. */
int evict_room(struct hal_partition *part, uint64_t bytes, int err, bool *busy);
/* Charge buf to its partition.  Evict other buffers if needed.  Return 0, or an error as
 * evict_room.  The partition may be one without eviction. */
int evict_charge(struct hal_buffer *buf, bool *busy);
/* Allocate device memory of buf's size on the channels of c in *mem, and charge it to the
 * partition.  Evict other buffers if needed.  Return 0, or an error as evict_room.  The
 * partition may be one without eviction. */
int evict_place(struct hal_buffer *buf, const struct hal_bk_colors *c, void **mem,
		bool *busy);
/* Bring buf back to the device.  Return 0 if it is HERE, -EAGAIN if a move has to end
 * first, or another error as evict_room. */
int evict_fetch(struct hal_buffer *buf, bool *busy);
/* Bring the buffers of r, the next command of q, to the device.  Return 1 if r may be
 * issued, 0 if q was parked, or -errno if its buffers cannot all be on the device. */
int evict_lets(struct hal_queue *q, const struct record *r);
/* Bring m's buffer to the device and allocate its new place, m->to.  Return 1 if the move
 * to other channels may begin, 0 if q, the queue of m, was parked, or -errno if there is
 * no memory for both places. */
int evict_lets_move(struct hal_queue *q, struct recolor *m);
/* Return whether a buffer of part is being copied to or from the host, or is held
 * (evict_hold). */
bool evict_moves(const struct hal_partition *part);
/* Fill in the fields of i that concern eviction. */
void evict_describe(const struct hal_partition *part,
		    struct hal_partition_memory_info *i);
/* Remove q, which is being destroyed, from the queues that wait for buffers. */
void evict_forget(struct hal_queue *q);

#endif
