/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lockstep.c - programs under one virtual clock take turns, so that each run is the same;
 * see hald.h.
 *
 * hald acts only while every client is blocked in a request.  Then it serves the client
 * whose turn it is, until that one waits for something that has not happened; then the
 * first that can go on.  If none can, time passes until one can.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hald.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/futex.h"
#include "util/log.h"

/* Longest time for which a client may compute while all others are blocked, and how
 * often they look. */
enum { PATIENCE_S = 60, LOOK_S = 1 };

/* A thread of hald that carries out a request of a client, or waits for that. */
struct turn {
	struct turn *next; /* of its seat */
	pthread_cond_t go;
	/* What it waits for; NULL: it can go on at any time. */
	bool (*over)(void *arg);
	void *arg;
	uint64_t until_ns; /* device time at which it goes on anyway; UINT64_MAX: none */
	bool stuck;        /* nothing is left that could end the wait */
	bool served, advances, dropped;
};

struct lockstep {
	pthread_mutex_t lock;
	struct server *server;
	uint32_t first, came; /* clients that begin together; those that have come */
	bool acting;          /* a turn is served, or time passes */
	struct seat *seats;   /* in the order of tenants, then of clients */
	struct seat *holder;  /* whose turn it is */
};

int lockstep_make(struct server *s, uint32_t clients)
{
	struct lockstep *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return fail(ENOMEM, "no memory for lockstep");
	(void)pthread_mutex_init(&l->lock, NULL);
	l->server = s;
	l->first = clients;
	s->lockstep = l;
	return 0;
}

void lockstep_free(struct server *s)
{
	if (s->lockstep == NULL)
		return;
	(void)pthread_mutex_destroy(&s->lockstep->lock);
	free(s->lockstep);
	s->lockstep = NULL;
}

void lockstep_join(struct client *c)
{
	struct lockstep *l = c->server->lockstep;
	struct seat **at;

	if (l == NULL)
		return;
	c->seat.tenant = -c->tenant->at;
	c->seat.client = c->number;
	c->seat.since_ns = monotonic_ns();
	pthread_mutex_lock(&l->lock);
	for (at = &l->seats; *at != NULL; at = &(*at)->next)
		if ((*at)->tenant > c->seat.tenant ||
		    ((*at)->tenant == c->seat.tenant && (*at)->client > c->seat.client))
			break;
	c->seat.next = *at;
	*at = &c->seat;
	l->came++;
	pthread_mutex_unlock(&l->lock);
}

/* ---- whose turn it is ------------------------------------------------------------------ */

static bool can_go_on(const struct lockstep *l, const struct turn *t)
{
	return t->over == NULL || t->stuck || t->over(t->arg) ||
	       (t->until_ns != UINT64_MAX &&
		hal_device_get_time(l->server->dev) >= t->until_ns);
}

/* Return the first turn of seat whose client has not ended; NULL: it is not blocked. */
static struct turn *blocked(const struct seat *seat)
{
	struct turn *t = seat->turns;

	while (t != NULL && t->dropped)
		t = t->next;
	return t;
}

/* Return the first turn of seat that can go on; NULL: it has none. */
static struct turn *ready(const struct lockstep *l, const struct seat *seat)
{
	struct turn *t = seat != NULL ? seat->turns : NULL;

	while (t != NULL && (t->dropped || !can_go_on(l, t)))
		t = t->next;
	return t;
}

static void serve_turn(struct lockstep *l, struct turn *t)
{
	l->acting = true;
	t->served = true;
	(void)pthread_cond_signal(&t->go);
}

/* Act, if all are blocked.  The caller holds the lock. */
static void act(struct lockstep *l)
{
	struct turn *t;

	if (l->acting || l->came < l->first || l->seats == NULL)
		return;
	for (const struct seat *seat = l->seats; seat != NULL; seat = seat->next)
		if (blocked(seat) == NULL)
			return;
	t = ready(l, l->holder);
	for (struct seat *seat = l->seats; t == NULL && seat != NULL; seat = seat->next) {
		t = ready(l, seat);
		l->holder = t != NULL ? seat : NULL;
	}
	if (t != NULL) {
		t->stuck = false;
		serve_turn(l, t);
		return;
	}
	/* Some thread has to let time pass. */
	t = blocked(l->seats);
	l->acting = true;
	t->advances = true;
	(void)pthread_cond_signal(&t->go);
}

/* ---- time ------------------------------------------------------------------------------ */

/* Return whether time is to stop: somebody can go on, or is to end. */
static bool stop_time(void *arg)
{
	struct lockstep *l = arg;
	bool stop = false;

	pthread_mutex_lock(&l->lock);
	for (const struct seat *seat = l->seats; !stop && seat != NULL; seat = seat->next)
		stop = blocked(seat) == NULL || ready(l, seat) != NULL;
	pthread_mutex_unlock(&l->lock);
	return stop;
}

/* Let time pass until somebody can go on; if that cannot be, all can.  The caller holds
 * the lock. */
static void advance(struct lockstep *l)
{
	uint64_t until = UINT64_MAX;
	bool more;

	for (const struct seat *seat = l->seats; seat != NULL; seat = seat->next)
		for (const struct turn *t = seat->turns; t != NULL; t = t->next)
			until = t->until_ns < until ? t->until_ns : until;
	pthread_mutex_unlock(&l->lock);
	more = inlet_run(l->server->dev, stop_time, l, until);
	pthread_mutex_lock(&l->lock);
	for (const struct seat *seat = l->seats; !more && seat != NULL; seat = seat->next)
		for (struct turn *t = seat->turns; t != NULL; t = t->next)
			t->stuck = true;
	l->acting = false;
	act(l);
}

/* ---- turns ----------------------------------------------------------------------------- */

/* Return the number of a client that computes for too long while others are blocked; 0:
 * there is none.  The caller holds the lock. */
static uint64_t idler(const struct lockstep *l)
{
	const uint64_t now = monotonic_ns();

	if (l->acting || l->came < l->first)
		return 0;
	for (const struct seat *seat = l->seats; seat != NULL; seat = seat->next)
		if (seat->turns == NULL && !seat->ended &&
		    now - seat->since_ns >= (uint64_t)PATIENCE_S * 1000000000)
			return seat->client;
	return 0;
}

/* End such a client.  The caller holds the lock, which is released meanwhile. */
static void look_for_idlers(struct lockstep *l)
{
	const uint64_t number = idler(l);

	if (number == 0)
		return;
	LOG(HAL_LOG_WARNING,
	    "client %llu is ended: it has computed for %d s, in which all others of the "
	    "lockstep are blocked",
	    U64(number), PATIENCE_S);
	pthread_mutex_unlock(&l->lock);
	client_end_number(l->server, number);
	pthread_mutex_lock(&l->lock);
}

/* Wait until t is served.  The caller holds the lock. */
static void wait_for_turn(struct lockstep *l, struct turn *t)
{
	act(l);
	while (t->advances || (!t->served && !t->dropped)) {
		struct timespec until =
			timespec_of(monotonic_ns() + UINT64_C(1000000000) * LOOK_S);

		if (t->advances) {
			t->advances = false;
			advance(l);
		} else if (pthread_cond_timedwait(&t->go, &l->lock, &until) ==
			   ETIMEDOUT) {
			look_for_idlers(l);
		}
	}
}

static void turn_init(struct turn *t)
{
	pthread_condattr_t monotonic;

	memset(t, 0, sizeof(*t));
	t->until_ns = UINT64_MAX;
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&t->go, &monotonic);
}

/* The turn of this thread, and whether it has one. */
static _Thread_local struct turn own;
static _Thread_local bool has_turn;

bool lockstep_enter(struct client *c, bool ends)
{
	struct lockstep *l = c->server->lockstep;
	struct turn **at;
	bool served;

	if (l == NULL)
		return true;
	has_turn = true;
	turn_init(&own);
	pthread_mutex_lock(&l->lock);
	for (at = &c->seat.turns; *at != NULL; at = &(*at)->next)
		;
	*at = &own;
	c->seat.reaped = ends;
	own.dropped = c->seat.ended && !ends;
	wait_for_turn(l, &own);
	served = own.served;
	pthread_mutex_unlock(&l->lock);
	if (!served)
		lockstep_leave(c);
	return served;
}

void lockstep_leave(struct client *c)
{
	struct lockstep *l;
	struct turn **at;

	if (!has_turn)
		return;
	has_turn = false;
	l = c->server->lockstep;
	at = &c->seat.turns;
	pthread_mutex_lock(&l->lock);
	while (*at != &own)
		at = &(*at)->next;
	*at = own.next;
	c->seat.since_ns = monotonic_ns();
	if (own.served)
		l->acting = false;
	act(l);
	pthread_mutex_unlock(&l->lock);
	(void)pthread_cond_destroy(&own.go);
}

bool lockstep_wait(const struct client *c, bool (*over)(void *arg), void *arg,
		   uint64_t until_ns)
{
	struct lockstep *l = c->server->lockstep;
	bool served;

	if (!has_turn)
		return true;
	pthread_mutex_lock(&l->lock);
	own.over = over;
	own.arg = arg;
	own.until_ns = until_ns;
	own.served = false;
	own.dropped = c->seat.ended && !c->seat.reaped;
	l->acting = false;
	wait_for_turn(l, &own);
	served = own.served;
	own.over = NULL;
	own.until_ns = UINT64_MAX;
	pthread_mutex_unlock(&l->lock);
	return served;
}

void lockstep_end(struct client *c)
{
	struct lockstep *l = c->server->lockstep;

	if (l == NULL)
		return;
	pthread_mutex_lock(&l->lock);
	c->seat.ended = true;
	for (struct turn *t = c->seat.turns; t != NULL && !c->seat.reaped; t = t->next) {
		t->dropped = !t->served;
		(void)pthread_cond_signal(&t->go);
	}
	pthread_mutex_unlock(&l->lock);
}

void lockstep_part(struct client *c)
{
	struct lockstep *l = c->server->lockstep;
	struct seat **at = l != NULL ? &l->seats : NULL;

	if (l == NULL)
		return;
	pthread_mutex_lock(&l->lock);
	while (*at != &c->seat)
		at = &(*at)->next;
	*at = c->seat.next;
	if (l->holder == &c->seat)
		l->holder = NULL;
	pthread_mutex_unlock(&l->lock);
}
