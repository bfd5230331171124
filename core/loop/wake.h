/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wake.h - how work reaches an engine, and how it is woken: the one protocol.
 *
 * Whoever has something for the engine puts a message into its inbox; a queue's message
 * stands for all that lies in its ring, and is in the box at most once.
 *
 *   sender                                engine
 *   W1  write the records                 E1  sleeping = 1
 *   W2  tail = end of them                E2  ---- full barrier
 *   W3  ---- full barrier                 E3  inbox empty? -> sleep until woken
 *   W4  announced: 0 -> 1, else done      E4  sleeping = 0
 *   W5  message -> inbox (CAS)             E5  take all messages
 *   W6  ---- full barrier                 E6  announced = 0, of a queue's
 *   W7  sleeping: 1 -> 0? then wake       E7  ---- full barrier
 *                                         E8  read tail, take the records
 *
 * Publish, full barrier, look at the flag; set the flag, full barrier, look at the
 * inputs.  Had both looks missed, each would have come before the other's publishing.
 * tests/wakeup explores these very functions in all interleavings of two senders and an
 * engine with store buffers: to that end what touches shared words goes through the
 * WAKE_ macros.
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
/* Of a message's .next: plain, for the message is one thread's at a time. */
#define WAKE_GET(p)         (*(p))
#define WAKE_SET(p, v)      ((void)(*(p) = (v)))
#define WAKE_EXCHANGE(p, v) atomic_exchange((p), (v))
#define WAKE_CAS(p, e, v)   atomic_compare_exchange_weak((p), (e), (v))
/* Before an atomic read-modify-write: on x86 that is the barrier itself. */
#if defined(__x86_64__)
#define WAKE_FENCE_RMW() atomic_signal_fence(memory_order_seq_cst)
#else
#define WAKE_FENCE_RMW() atomic_thread_fence(memory_order_seq_cst)
#endif
#define WAKE_FENCE() atomic_thread_fence(memory_order_seq_cst)
#endif

/* The thread sanitizer passes fences on but does not understand them.  It need not: what
 * is handed over goes by the atomics beside them. */
#ifdef __SANITIZE_THREAD__
#pragma GCC diagnostic ignored "-Wtsan"
#endif

struct hal_device;
struct message;

/* What the engine does with a message; the sender's until it is in the box. */
typedef void (*message_fn)(struct hal_device *dev, struct message *l);

struct message {
	struct message *next;
	message_fn fn;
};

struct inbox {
	WAKE_POINTER(struct message) last; /* the others behind it */
	WAKE_WORD sleeping;
};

/* W5.  True: it was empty. */
static inline bool inbox_add(struct inbox *box, struct message *l)
{
	struct message *last = WAKE_LOAD(&box->last);

	do
		WAKE_SET(&l->next, last);
	while (!WAKE_CAS(&box->last, &last, l));
	return last == NULL;
}

/* W5 to W7.  True: the sender has to wake the engine. */
static inline bool inbox_put(struct inbox *box, struct message *l)
{
	(void)inbox_add(box, l);
#if !defined(__x86_64__) || defined(WAKE_EXPLORED)
	WAKE_FENCE();
#endif
	return WAKE_LOAD(&box->sleeping) != 0 && WAKE_EXCHANGE(&box->sleeping, 0) != 0;
}

/* W3 and W4, between the tail and the message.  False: it is in the box, or in the
 * engine's hands before E6. */
static inline bool announce_first(WAKE_WORD *announced)
{
	WAKE_FENCE_RMW();
	return WAKE_EXCHANGE(announced, 1) == 0;
}

static inline bool inbox_empty(struct inbox *box)
{
	return WAKE_LOAD(&box->last) == NULL;
}

/* E1 to E3.  True: it may sleep now, until woken; then inbox_awake(). */
static inline bool inbox_may_sleep(struct inbox *box)
{
	WAKE_STORE(&box->sleeping, 1);
	WAKE_FENCE();
	return inbox_empty(box);
}

/* E4 */
static inline void inbox_awake(struct inbox *box)
{
	WAKE_STORE(&box->sleeping, 0);
}

/* E5: all there is, oldest first; NULL: nothing. */
static inline struct message *inbox_take(struct inbox *box)
{
	struct message *l = WAKE_EXCHANGE(&box->last, NULL), *list = NULL;

	while (l != NULL) {
		struct message *next = WAKE_GET(&l->next);

		WAKE_SET(&l->next, list);
		list = l;
		l = next;
	}
	return list;
}

/* E6 and E7: whoever writes more from here on sends the message again. */
static inline void announce_again(WAKE_WORD *announced)
{
	WAKE_STORE(announced, 0);
	WAKE_FENCE();
}

#endif
