/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - two threads and two bare rings; see control.h. */
#define _GNU_SOURCE
#include "control.h"

#include <ck_pr.h>
#include <ck_ring.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

/* The rule of the library's engine: hal.spin_us, and what it learns from when something
 * came. */
#define SPIN_NS           UINT64_C(8000)
#define LOOKS_A_CLOCK     16 /* at the ring between two looks at the clock */
#define WORDS_OF_A_RECORD 8
#define STOP              UINT64_MAX

struct record {
	uint64_t words[WORDS_OF_A_RECORD];
};

CK_RING_PROTOTYPE(record, record)

/* One direction; the flag, which it sleeps on, and the patience are the reader's. */
struct way {
	_Alignas(64) _Atomic unsigned int sleeping;
	_Atomic uint64_t woken_ns;
	uint64_t patience_ns, least_ns;
	_Alignas(64) ck_ring_t ring;
	_Alignas(64) struct record records[CONTROL_RECORDS_MAX + 1];
};

struct control {
	struct way out, back;
	pthread_t thread;
	uint64_t count;
};

static void put(struct way *w, struct record *r)
{
	/* Never full: no more than fit are under way. */
	(void)ck_ring_enqueue_spsc_record(&w->ring, w->records, r);
	if (w->least_ns == CONTROL_BARE)
		return;
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&w->sleeping, memory_order_relaxed) != 0 &&
	    atomic_exchange(&w->sleeping, 0) != 0) {
		atomic_store_explicit(&w->woken_ns, bench_now(), memory_order_relaxed);
		(void)syscall(SYS_futex, &w->sleeping, FUTEX_WAKE_PRIVATE, 1, NULL, NULL,
			      0);
	}
}

static int take(struct way *w, struct record *r)
{
	return ck_ring_dequeue_spsc_record(&w->ring, w->records, r);
}

static void learn(struct way *w, uint64_t from, uint64_t came)
{
	uint64_t took = came - from, twice = 2 * took < SPIN_NS ? 2 * took : SPIN_NS;

	if (came < from || took > SPIN_NS)
		w->patience_ns /= 2;
	else if (w->patience_ns < twice)
		w->patience_ns = twice;
}

static int look_for(struct way *w, struct record *r, uint64_t from)
{
	uint64_t most = w->patience_ns > w->least_ns ? w->patience_ns : w->least_ns;
	uint64_t now = from;

	while (now < from + most) {
		for (int i = 0; i < LOOKS_A_CLOCK; i++) {
			if (take(w, r))
				return 1;
			ck_pr_stall();
		}
		now = bench_now();
	}
	return 0;
}

static void get(struct way *w, struct record *r)
{
	uint64_t from;

	if (take(w, r))
		return;
	if (w->least_ns == CONTROL_BARE) {
		while (!take(w, r))
			ck_pr_stall();
		return;
	}
	from = bench_now();
	if (look_for(w, r, from)) {
		learn(w, from, bench_now());
		return;
	}
	for (;;) {
		atomic_store_explicit(&w->sleeping, 1, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		if (take(w, r))
			break;
		(void)syscall(SYS_futex, &w->sleeping, FUTEX_WAIT_PRIVATE, 1, NULL, NULL,
			      0);
	}
	atomic_store_explicit(&w->sleeping, 0, memory_order_relaxed);
	learn(w, from, atomic_load_explicit(&w->woken_ns, memory_order_relaxed));
}

static void *hand_back(void *arg)
{
	struct control *c = arg;
	struct record r;

	do {
		get(&c->out, &r);
		put(&c->back, &r);
	} while (r.words[0] != STOP);
	return NULL;
}

void control_hand(struct control *c, unsigned int records)
{
	struct record r = {{0}};

	for (unsigned int i = 0; i < records; i++) {
		r.words[0] = c->count++;
		put(&c->out, &r);
	}
	for (unsigned int i = 0; i < records; i++)
		get(&c->back, &r);
}

static void way_init(struct way *w, uint64_t least_ns)
{
	ck_ring_init(&w->ring, CONTROL_RECORDS_MAX + 1);
	atomic_init(&w->sleeping, 0);
	w->patience_ns = SPIN_NS;
	w->least_ns = least_ns;
	atomic_init(&w->woken_ns, 0);
}

struct control *control_open(uint64_t least_ns)
{
	struct control *c = aligned_alloc(64, sizeof(*c));

	if (c == NULL)
		return NULL;
	way_init(&c->out, least_ns);
	way_init(&c->back, least_ns);
	c->count = 0;
	if (pthread_create(&c->thread, NULL, hand_back, c) != 0) {
		free(c);
		return NULL;
	}
	return c;
}

void control_close(struct control *c)
{
	struct record r = {{STOP}};

	put(&c->out, &r);
	(void)pthread_join(c->thread, NULL);
	free(c);
}
