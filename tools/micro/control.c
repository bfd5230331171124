/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - two threads and two bare rings; see control.h. */
#define _GNU_SOURCE
#include "control.h"

#include <ck_pr.h>
#include <ck_ring.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bench.h"

#define SPIN_NS           UINT64_C(50000)
#define LOOKS_A_CLOCK     64 /* at the ring between two looks at the clock */
#define WORDS_OF_A_RECORD 8
#define STOP              UINT64_MAX

struct record {
	uint64_t words[WORDS_OF_A_RECORD];
};

CK_RING_PROTOTYPE(record, record)

/* One direction; the flag and the fd are the reader's. */
struct way {
	_Alignas(64) _Atomic unsigned int sleeping;
	int fd;
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
	uint64_t one = 1;

	/* Never full: no more than fit are under way. */
	(void)ck_ring_enqueue_spsc_record(&w->ring, w->records, r);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&w->sleeping, memory_order_relaxed) != 0 &&
	    atomic_exchange(&w->sleeping, 0) != 0)
		(void)!write(w->fd, &one, sizeof(one));
}

static int take(struct way *w, struct record *r)
{
	return ck_ring_dequeue_spsc_record(&w->ring, w->records, r);
}

static int spin(struct way *w, struct record *r)
{
	uint64_t end = 0;

	do {
		for (int i = 0; i < LOOKS_A_CLOCK; i++) {
			if (take(w, r))
				return 1;
			ck_pr_stall();
		}
		if (end == 0)
			end = bench_now() + SPIN_NS;
	} while (bench_now() < end);
	return 0;
}

static void get(struct way *w, struct record *r)
{
	uint64_t count;

	while (!spin(w, r)) {
		atomic_store_explicit(&w->sleeping, 1, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		if (take(w, r)) {
			atomic_store_explicit(&w->sleeping, 0, memory_order_relaxed);
			return;
		}
		(void)!read(w->fd, &count, sizeof(count));
	}
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

static void free_control(struct control *c)
{
	(void)close(c->out.fd);
	(void)close(c->back.fd);
	free(c);
}

struct control *control_open(void)
{
	struct control *c = aligned_alloc(64, sizeof(*c));

	if (c == NULL)
		return NULL;
	ck_ring_init(&c->out.ring, CONTROL_RECORDS_MAX + 1);
	ck_ring_init(&c->back.ring, CONTROL_RECORDS_MAX + 1);
	atomic_init(&c->out.sleeping, 0);
	atomic_init(&c->back.sleeping, 0);
	c->count = 0;
	c->out.fd = eventfd(0, EFD_CLOEXEC);
	c->back.fd = eventfd(0, EFD_CLOEXEC);
	if (c->out.fd < 0 || c->back.fd < 0 ||
	    pthread_create(&c->thread, NULL, hand_back, c) != 0) {
		free_control(c);
		return NULL;
	}
	return c;
}

void control_close(struct control *c)
{
	struct record r = {{STOP}};

	put(&c->out, &r);
	(void)pthread_join(c->thread, NULL);
	free_control(c);
}
