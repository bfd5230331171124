/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wake.h - the engine's inbox, and the protocol that wakes a sleeping engine.
 *
 * A thread that needs the engine puts a message into the engine's inbox.  A queue has one
 * message of its own, which is in the inbox at most once.  It announces all new records
 * of the queue's ring.  A timeline's message announces a new value in the same way.
 *
 *   sender                                engine
 *   W1  write the records                 E1  sleeping = 1
 *   W2  tail = end of the records         E2  ---- full barrier
 *   W3  announced is 2? then return       E3  if the inbox is empty, sleep until woken
 *       ---- full barrier                 E4  sleeping = 0
 *   W4  announced: 0 -> 1, or return      E5  take all messages
 *   W5  add the message to the inbox      E6  announced = 0
 *   W6  ---- full barrier                 E7  ---- full barrier
 *   W7  sleeping: 1 -> 0? then wake       E8  read tail, take the records
 *
 * Messages of other senders start at W5 and have no "announced".
 *
 * No wake-up is lost.  The sender publishes, then reads "sleeping"; the engine sets
 * "sleeping", then reads the inbox.  A full barrier lies between the two steps on each
 * side, so at least one side sees what the other has written.
 *
 * If a queue's messages come turn after turn, the engine watches the queue (watch.h):
 * instead of E6 and E7 it sets "announced" to 2, and then reads the tail in every turn.
 * The sender needs no barrier while it finds 2.  In exchange the engine pays for one in
 * every thread of the process, by membarrier(2), when it ends the watch:
 *
 *   V1  announced = 0
 *   V2  ---- full barrier in all threads
 *   V3  read tail, take the records
 *
 * While the engine's thread sleeps, a caller may be the engine in its place (lend.h):
 *
 *   caller                                engine's thread, at the end of its sleep
 *   C1  sleeping: 1 or owed -> lent       R1  sleeping: 1 or owed -> 0, or
 *   C2  turns                                 lent -> recalled, then sleep until 0
 *   C3  sleeping: lent -> 1 or owed, or
 *       recalled -> 0, wake, and return
 *   C4  ---- full barrier
 *   C5  if the inbox is not empty, go on at C1
 *   C6  owed, and the thread does not nap? then wake
 *
 * Instead of C3 a caller may set "sleeping" to 0 at any time, and then wake the thread.
 *
 * C3 to C5 are E1 to E3.  Senders that find "lent" or "recalled" at W7 need not wake
 * anyone.  The caller leaves "owed" if the device still has a command of it that nobody
 * else needs; the engine's thread then looks after the device within a nap's time.
 *
 * tests/wakeup runs these functions in all interleavings of two senders and an engine,
 * with store buffers.  For that purpose every access to shared words goes through a
 * WAKE_ macro.
 */
#ifndef HAL_LOOP_WAKE_H
#define HAL_LOOP_WAKE_H

#include <stdbool.h>
#include <stddef.h>

#ifndef WAKE_WORD
#include <stdatomic.h>

#define WAKE_WORD          atomic_uint
#define WAKE_POINTER(type) _Atomic(type *)
#define WAKE_LOAD(p)       atomic_load_explicit((p), memory_order_acquire)
#define WAKE_STORE(p, v)   atomic_store_explicit((p), (v), memory_order_release)
/* For message.next.  Plain accesses suffice, since one thread at a time owns a message.
 */
#define WAKE_GET(p)         (*(p))
#define WAKE_SET(p, v)      ((void)(*(p) = (v)))
#define WAKE_EXCHANGE(p, v) atomic_exchange((p), (v))
#define WAKE_CAS(p, e, v)   atomic_compare_exchange_weak((p), (e), (v))
/* Exchange *p, a WAKE_WORD, if it is e.  Return whether it was. */
static inline bool wake_change(atomic_uint *p, unsigned int e, unsigned int v)
{
	return atomic_compare_exchange_strong(p, &e, v);
}
#define WAKE_CHANGE(p, e, v) wake_change((p), (e), (v))
/* Load that the compiler does not move before an earlier store.  The processor may. */
#define WAKE_GLANCE(p)                                                                   \
	(atomic_signal_fence(memory_order_seq_cst),                                      \
	 atomic_load_explicit((p), memory_order_relaxed))
/* Full barrier before an atomic read-modify-write.  On x86 that instruction is a full
 * barrier itself, so only the compiler must be kept from reordering. */
#if defined(__x86_64__)
#define WAKE_FENCE_RMW() atomic_signal_fence(memory_order_seq_cst)
#else
#define WAKE_FENCE_RMW() atomic_thread_fence(memory_order_seq_cst)
#endif
#define WAKE_FENCE() atomic_thread_fence(memory_order_seq_cst)
#endif

/* The thread sanitizer warns about fences, which it does not model.  It still sees every
 * handover, because the data is published by the atomics next to the fences. */
#ifdef __SANITIZE_THREAD__
#pragma GCC diagnostic ignored "-Wtsan"
#endif

struct hal_device;
struct message;

/* Handle msg.  Called by the engine; from then on the sender may use msg again. */
typedef void (*message_fn)(struct hal_device *dev, struct message *msg);

/* Values of "announced". */
enum {
	ANNOUNCED_NOT,
	ANNOUNCED_BY_MESSAGE,
	ANNOUNCED_WATCHED,
};

/* Belongs to the sender until it is in the inbox, then to the engine. */
struct message {
	struct message *next;
	message_fn fn;
};

struct inbox {
	WAKE_POINTER(struct message) last; /* newest; .next leads to older ones */
	WAKE_WORD sleeping;                /* ENGINE_*: who the engine is */
};

/* Values of "sleeping". */
enum {
	ENGINE_AWAKE,
	ENGINE_ASLEEP,   /* the engine's thread sleeps or is about to */
	ENGINE_OWED,     /* so it does, and the device has a command of a caller */
	ENGINE_LENT,     /* so it does, and a caller is the engine */
	ENGINE_RECALLED, /* the engine's thread waits until that caller leaves */
};

/* Add msg to the inbox (W5).  Return true if the inbox was empty. */
static inline bool inbox_add(struct inbox *box, struct message *msg)
{
	struct message *last = WAKE_LOAD(&box->last);

	do
		WAKE_SET(&msg->next, last);
	while (!WAKE_CAS(&box->last, &last, msg));
	return last == NULL;
}

/* Return whether the engine's thread sleeps and no caller is the engine. */
static inline bool inbox_asleep(struct inbox *box)
{
	return WAKE_LOAD(&box->sleeping) - ENGINE_ASLEEP <= ENGINE_OWED - ENGINE_ASLEEP;
}

/* End the sleep of the engine's thread (W7).  Return true if the caller must wake it. */
static inline bool inbox_rouse(struct inbox *box)
{
	unsigned int state;

	while ((state = WAKE_LOAD(&box->sleeping)) == ENGINE_ASLEEP ||
	       state == ENGINE_OWED)
		if (WAKE_CHANGE(&box->sleeping, state, ENGINE_AWAKE))
			return true;
	return false;
}

/* Add msg to the inbox (W5 to W7).  Return true if the sender must wake the engine. */
static inline bool inbox_put(struct inbox *box, struct message *msg)
{
	(void)inbox_add(box, msg);
#if !defined(__x86_64__) || defined(WAKE_EXPLORED)
	WAKE_FENCE();
#endif
	return inbox_rouse(box);
}

/* Find out whether a queue's or timeline's message must be sent (W3, W4).  Call after the
 * tail or value was written.  Return false if that message is in the inbox, if the engine
 * has taken it and has not reached E6, or if the engine watches the queue; the engine
 * then sees the change. */
static inline bool announce_first(WAKE_WORD *announced)
{
	if (WAKE_GLANCE(announced) == ANNOUNCED_WATCHED)
		return false;
	WAKE_FENCE_RMW();
	return WAKE_CHANGE(announced, ANNOUNCED_NOT, ANNOUNCED_BY_MESSAGE);
}

static inline bool inbox_empty(struct inbox *box)
{
	return WAKE_LOAD(&box->last) == NULL;
}

/* Prepare the engine's sleep (E1 to E3).  Return true if the engine may sleep until it is
 * woken.  In either case the engine must call inbox_awake() afterwards. */
static inline bool inbox_may_sleep(struct inbox *box)
{
	WAKE_STORE(&box->sleeping, ENGINE_ASLEEP);
	WAKE_FENCE();
	return inbox_empty(box);
}

/* End the engine's sleep (E4, R1).  Return false if a caller is the engine: the thread
 * must then sleep while .sleeping is ENGINE_RECALLED, and call this again. */
static inline bool inbox_awake(struct inbox *box)
{
	for (;;) {
		unsigned int state = WAKE_LOAD(&box->sleeping);

		if (state == ENGINE_AWAKE || state == ENGINE_RECALLED)
			return state == ENGINE_AWAKE;
		if (WAKE_CHANGE(&box->sleeping, state,
				state == ENGINE_LENT ? ENGINE_RECALLED : ENGINE_AWAKE))
			return state != ENGINE_LENT;
	}
}

/* Become the engine while its thread sleeps (C1).  Return whether that succeeded. */
static inline bool inbox_borrow(struct inbox *box)
{
	unsigned int state;

	while ((state = WAKE_LOAD(&box->sleeping)) == ENGINE_ASLEEP ||
	       state == ENGINE_OWED)
		if (WAKE_CHANGE(&box->sleeping, state, ENGINE_LENT))
			return true;
	return false;
}

/* Results of inbox_return. */
enum {
	RETURNED,       /* the caller is no longer the engine */
	RETURNED_WAKES, /* so it is, and must wake the engine's thread */
	RETURNED_NOT,   /* it is still the engine: the inbox has messages */
};

/* End inbox_borrow, leaving the engine ENGINE_ASLEEP or ENGINE_OWED (C3 to C5).  Return
 * RETURNED*. */
static inline unsigned int inbox_return(struct inbox *box, unsigned int state)
{
	if (!WAKE_CHANGE(&box->sleeping, ENGINE_LENT, state)) {
		WAKE_STORE(&box->sleeping, ENGINE_AWAKE);
		return RETURNED_WAKES;
	}
	WAKE_FENCE();
	if (inbox_empty(box) || !WAKE_CHANGE(&box->sleeping, state, ENGINE_LENT))
		return RETURNED;
	return RETURNED_NOT;
}

/* End inbox_borrow and hand the engine to its thread, which the caller must then wake. */
static inline void inbox_hand_over(struct inbox *box)
{
	WAKE_STORE(&box->sleeping, ENGINE_AWAKE);
}

/* Take all messages out of the inbox (E5).  Return them as a list, oldest first; NULL if
 * the inbox is empty. */
static inline struct message *inbox_take(struct inbox *box)
{
	struct message *msg = WAKE_EXCHANGE(&box->last, NULL), *list = NULL;

	while (msg != NULL) {
		struct message *next = WAKE_GET(&msg->next);

		WAKE_SET(&msg->next, list);
		list = msg;
		msg = next;
	}
	return list;
}

/* Have the next change send the message again (E6, E7).  The engine calls this before it
 * reads the tail or value. */
static inline void announce_again(WAKE_WORD *announced)
{
	WAKE_STORE(announced, ANNOUNCED_NOT);
	WAKE_FENCE();
}

/* Begin to watch a queue whose message the engine has taken. */
static inline void announce_watch(WAKE_WORD *announced)
{
	WAKE_STORE(announced, ANNOUNCED_WATCHED);
}

/* End the watch of a queue (V1).  V2 and V3 must follow. */
static inline void announce_unwatch(WAKE_WORD *announced)
{
	WAKE_STORE(announced, ANNOUNCED_NOT);
}

#endif
