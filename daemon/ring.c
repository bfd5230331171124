/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c - the memory that clients share with hald, and their bells; see hald.h and
 * far/ring.h.
 *
 * A client may do with its ring and its bell what it likes.  So hald reads a ring only
 * through its inlet, and never reads a bell, which the client could make block: epoll
 * tells of each write to it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command/queue.h"
#include "hald.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"

/* ---- memory ------------------------------------------------------------------------ */

/* Of a board, what most clients use: allocated at once. */
#define FIRST_BYTES 4096u

/* Make memory of bytes bytes that nobody can shorten or lengthen, and map it.  If held,
 * nobody but hald can write it.  Return the address, or NULL with an error. */
static void *sealed_memory(const char *name, uint64_t bytes, bool held, int *fd)
{
	const unsigned int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL |
				   (held ? F_SEAL_FUTURE_WRITE : 0);
	void *at = MAP_FAILED;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd >= 0 && ftruncate(*fd, (off_t)bytes) == 0 &&
	    fallocate(*fd, 0, 0, (off_t)(held ? FIRST_BYTES : bytes)) == 0)
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (at != MAP_FAILED && fcntl(*fd, F_ADD_SEALS, seals) == 0)
		return at;
	(void)fail(errno, "hald has no memory for %s: %s", name, hal_strerror(errno));
	if (at != MAP_FAILED)
		(void)munmap(at, bytes);
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	return NULL;
}

int board_make(struct client *c)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	struct server *s = c->server;
	int err = 0;

	c->board = sealed_memory("hal-board", sizeof(*c->board), true, &c->board_fd);
	if (c->board == NULL)
		return -ENOMEM;
	c->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->bell < 0)
		return fail(errno, "eventfd: %s", hal_strerror(errno));
	e.data.ptr = c;
	pthread_mutex_lock(&s->bell_lock);
	c->next_bell = s->bell_clients;
	s->bell_clients = c;
	if (epoll_ctl(s->bells, EPOLL_CTL_ADD, c->bell, &e) != 0)
		err = fail(errno, "epoll_ctl: %s", hal_strerror(errno));
	pthread_mutex_unlock(&s->bell_lock);
	return err;
}

void board_free(struct client *c)
{
	struct server *s = c->server;
	struct client **at = &s->bell_clients;

	if (c->bell >= 0) {
		pthread_mutex_lock(&s->bell_lock);
		while (*at != NULL && *at != c)
			at = &(*at)->next_bell;
		if (*at != NULL)
			*at = c->next_bell;
		/* The client has the same eventfd, so that closing it is not enough. */
		(void)epoll_ctl(s->bells, EPOLL_CTL_DEL, c->bell, NULL);
		pthread_mutex_unlock(&s->bell_lock);
		(void)close(c->bell);
	}
	if (c->board_fd >= 0)
		(void)close(c->board_fd);
	if (c->board != NULL)
		(void)munmap(c->board, sizeof(*c->board));
}

/* ---- rings ------------------------------------------------------------------------- */

/* Return an unused place on the board of c, which is used from now on; NULL: there is
 * none. */
static struct far_told *told_take(struct client *c)
{
	struct far_told *told = NULL;

	pthread_mutex_lock(&c->lock);
	for (uint32_t i = 0; told == NULL && i < FAR_RINGS_MAX; i++)
		if ((c->told[i / 64] >> i % 64 & 1) == 0) {
			c->told[i / 64] |= UINT64_C(1) << i % 64;
			told = &c->board->told[i];
		}
	pthread_mutex_unlock(&c->lock);
	return told;
}

static void told_give(struct client *c, const struct far_told *told)
{
	uint32_t i = (uint32_t)(told - c->board->told);

	pthread_mutex_lock(&c->lock);
	c->told[i / 64] &= ~(UINT64_C(1) << i % 64);
	pthread_mutex_unlock(&c->lock);
}

struct ring *ring_make(struct client *c, struct hal_queue *q, int *fd)
{
	/* In lockstep each submission is a request, which has its turn; and with ticks
	 * one, which is told only then how far it is. */
	struct ring *ring = c->server->lockstep == NULL && c->server->tick_ns == 0
				    ? calloc(1, sizeof(*ring))
				    : NULL;
	struct far_told *told = ring != NULL ? told_take(c) : NULL;

	if (told == NULL) {
		free(ring);
		return NULL;
	}
	ring->bytes = far_ring_bytes(q->slot_count);
	ring->shared = sealed_memory("hal-ring", ring->bytes, false, fd);
	if (ring->shared == NULL) {
		told_give(c, told);
		free(ring);
		return NULL;
	}
	ring->inlet = (struct inlet){
		.queue = q,
		.ring = ring->shared,
		.told = told,
		.names = &c->handles.names,
		.priority_max = c->tenant->priority_max,
		.deadlines = c->tenant->deadlines &&
			     q->sched.own_class != HAL_CLASS_BEST_EFFORT,
		.fd = c->server->wrong_fd,
	};
	atomic_store(&c->had_rings, true);
	(void)inlet_open(&ring->inlet);
	ring_put_back(c, ring);
	return ring;
}

void ring_free(struct client *c, struct ring *ring)
{
	told_give(c, ring->inlet.told);
	(void)munmap(ring->shared, ring->bytes);
	free(ring);
}

void ring_put_back(struct client *c, struct ring *ring)
{
	pthread_mutex_lock(&c->lock);
	ring->next = c->rings;
	c->rings = ring;
	c->ring_count++;
	pthread_mutex_unlock(&c->lock);
	/* The bell may have rung meanwhile, or something have been refused. */
	inlet_rung(&ring->inlet);
	if (atomic_load(&ring->inlet.wrong) != NULL)
		fd_signal(c->server->wrong_fd);
}

void ring_withdraw(struct client *c, struct ring *ring)
{
	struct ring **at = &c->rings;

	pthread_mutex_lock(&c->lock);
	while (*at != NULL && *at != ring)
		at = &(*at)->next;
	if (*at != NULL) {
		*at = ring->next;
		c->ring_count--;
	}
	while (ring->users > 0)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

/* Write the rings of c that have records to in, which has room for all, and use them.
 * Return their number. */
static uint32_t rings_use(struct client *c, struct inlet **in)
{
	uint32_t count = 0;

	for (struct ring *r = c->rings; r != NULL; r = r->next)
		if (inlet_has(&r->inlet)) {
			r->users++;
			in[count++] = &r->inlet;
		}
	return count;
}

/* Rings of which no memory has to be allocated. */
enum { FEW_RINGS = 64 };

void rings_take(struct client *c)
{
	struct inlet *few[FEW_RINGS], **in = few;
	uint32_t count;

	pthread_mutex_lock(&c->lock);
	if (c->ring_count > FEW_RINGS)
		in = calloc(c->ring_count, sizeof(struct inlet *));
	count = in != NULL ? rings_use(c, in) : 0;
	pthread_mutex_unlock(&c->lock);
	if (in == NULL) { /* as if its process had ended */
		client_end(c);
		return;
	}
	if (count > 0) {
		inlets_take(in, count);
		pthread_mutex_lock(&c->lock);
		for (uint32_t i = 0; i < count; i++)
			container_of(in[i], struct ring, inlet)->users--;
		pthread_cond_broadcast(&c->changed);
		pthread_mutex_unlock(&c->lock);
	}
	if (in != few)
		free((void *)in);
}

void rings_close(struct client *c)
{
	struct ring *ring;

	for (;;) {
		pthread_mutex_lock(&c->lock);
		ring = c->rings;
		pthread_mutex_unlock(&c->lock);
		if (ring == NULL)
			return;
		ring_withdraw(c, ring);
		inlet_close(&ring->inlet);
	}
}

/* ---- bells ------------------------------------------------------------------------- */

/* Have the engine take what c has submitted. */
static void rung(struct client *c)
{
	pthread_mutex_lock(&c->lock);
	for (struct ring *r = c->rings; r != NULL; r = r->next)
		inlet_rung(&r->inlet);
	pthread_mutex_unlock(&c->lock);
}

/* Return what c has submitted that no correct library submits; NULL: nothing. */
static const char *wrong_of(struct client *c)
{
	const char *why = NULL;

	pthread_mutex_lock(&c->lock);
	for (struct ring *r = c->rings; why == NULL && r != NULL; r = r->next)
		why = atomic_load(&r->inlet.wrong);
	pthread_mutex_unlock(&c->lock);
	return why;
}

/* End the clients of which an inlet has refused something.  The caller holds the lock of
 * bells. */
static void end_wrong(struct server *s)
{
	fd_silence(s->wrong_fd);
	for (struct client *c = s->bell_clients; c != NULL; c = c->next_bell) {
		const char *why = wrong_of(c);

		if (why == NULL)
			continue;
		LOG(HAL_LOG_WARNING, "client %llu is ended: %s", U64(c->number), why);
		client_ends(c, ENDED_PROTOCOL);
		client_end(c);
	}
}

void rings_take_all(struct server *s)
{
	pthread_mutex_lock(&s->bell_lock);
	for (struct client *c = s->bell_clients; c != NULL; c = c->next_bell)
		rung(c);
	pthread_mutex_unlock(&s->bell_lock);
}

static void *bells_main(void *arg)
{
	struct server *s = arg;
	struct pollfd rings = {.fd = s->bells, .events = POLLIN};
	struct epoll_event e[32];

	while (!atomic_load(&s->bells_stop)) {
		int n;

		/* Clients of events that have been fetched go only when the lock is free.
		 */
		(void)poll(&rings, 1, -1);
		pthread_mutex_lock(&s->bell_lock);
		n = epoll_wait(s->bells, e, ARRAY_LENGTH(e), 0);
		for (int i = 0; i < n; i++)
			if (e[i].data.ptr != NULL)
				rung(e[i].data.ptr);
			else
				end_wrong(s);
		pthread_mutex_unlock(&s->bell_lock);
	}
	return NULL;
}

int bells_start(struct server *s)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
	int err = 0;

	s->bells = epoll_create1(EPOLL_CLOEXEC);
	s->wrong_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->bells < 0 || s->wrong_fd < 0 ||
	    epoll_ctl(s->bells, EPOLL_CTL_ADD, s->wrong_fd, &e) != 0)
		return fail(errno, "hald cannot watch bells: %s", hal_strerror(errno));
	err = pthread_create(&s->bell_thread, NULL, bells_main, s);
	return err == 0 ? 0 : fail(err, "hald cannot watch bells: %s", hal_strerror(err));
}

void bells_stop(struct server *s)
{
	atomic_store(&s->bells_stop, true);
	fd_signal(s->wrong_fd);
	(void)pthread_join(s->bell_thread, NULL);
	(void)close(s->wrong_fd);
	(void)close(s->bells);
}
