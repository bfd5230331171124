/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tick.c - carry out requests, and answer them, only at fixed times, so that no client
 * learns from the time of its answers what others do; see hald.h.
 *
 * A request that was sent in one interval begins at the next tick, and is answered at the
 * one after that: so its answer depends on nothing but when it was sent, as long as it
 * has been carried out within an interval.  The kernel says when it was sent: when a
 * thread of hald has woken up for it depends on others.  What waits is answered at the
 * first tick after what it has waited for.
 *
 * Clients have ticks of their own, apart from each other's: threads of hald that wake up
 * at the same time delay each other.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "requests.h"
#include "util/error.h"
#include "util/futex.h"

/* Longest time for which a request may have been under way.  More means that the clock
 * was set meanwhile. */
#define UNDER_WAY_NS INT64_C(1000000000)
/* So many clients, and no more, have ticks apart from each other's. */
#define PHASE_BITS 8u

int tick_make(struct server *s, const char *text)
{
	char *end;
	unsigned long us = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || us < TICK_US_MIN || us > TICK_US_MAX)
		return fail(EINVAL, "\"%s\" is no number of microseconds from %d to %d",
			    text, TICK_US_MIN, TICK_US_MAX);
	if ((s->info.caps & HAL_CAP_VIRTUAL_CLOCK) != 0)
		return fail(EINVAL,
			    "%s has a virtual clock, in which nothing takes time; open "
			    "it with ?clock=real",
			    s->info.name);
	s->tick_ns = us * UINT64_C(1000);
	return 0;
}

/* Return CLOCK_MONOTONIC at sent_ns, which is of CLOCK_REALTIME; 0: it is not known. */
static uint64_t sent_at(uint64_t sent_ns)
{
	const uint64_t now = monotonic_ns();
	struct timespec t;
	int64_t ago;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	ago = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - (int64_t)sent_ns;
	return sent_ns != 0 && ago > 0 && ago < UNDER_WAY_NS ? now - (uint64_t)ago : now;
}

/* Return where the ticks of client `number` lie in an interval: those of two clients that
 * came one after the other are far apart. */
static uint64_t phase_of(uint64_t number, uint64_t tick)
{
	uint64_t reversed = 0;

	for (uint32_t bit = 0; bit < PHASE_BITS; bit++)
		reversed |= (number >> bit & 1) << (PHASE_BITS - 1 - bit);
	return (tick * reversed) >> PHASE_BITS;
}

/* Return the first tick of c (NULL: a connection without a client) after ns. */
static uint64_t tick_after(const struct server *s, const struct client *c, uint64_t ns)
{
	const uint64_t tick = s->tick_ns;
	const uint64_t phase = c != NULL ? phase_of(c->number, tick) : 0;

	return ((ns - phase) / tick + 1) * tick + phase;
}

static void sleep_until(uint64_t ns)
{
	const struct timespec until = timespec_of(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

uint64_t tick_begin(const struct server *s, const struct client *c, uint64_t sent_ns)
{
	uint64_t begin;

	if (s->tick_ns == 0)
		return 0;
	begin = tick_after(s, c, sent_at(sent_ns));
	sleep_until(begin);
	return begin;
}

void tick_answer(struct server *s, const struct client *c, uint64_t begin, bool waits)
{
	uint64_t now, answer;

	if (s->tick_ns == 0)
		return;
	now = monotonic_ns();
	answer = begin + s->tick_ns;
	if (now > answer) {
		if (!waits)
			atomic_fetch_add(&s->ticks_late, 1);
		answer = tick_after(s, c, now);
	}
	sleep_until(answer);
}

uint64_t tick_round(const struct server *s, uint64_t ns)
{
	return s->tick_ns != 0 ? (ns + s->tick_ns - 1) / s->tick_ns * s->tick_ns : ns;
}

void tick_blur(const struct server *s, struct hal_stats *stats)
{
	struct hal_stats counts = {.size = stats->size};

	if (s->tick_ns == 0)
		return;
	counts.now_ns = tick_round(s, stats->now_ns);
	counts.submitted = stats->submitted;
	counts.completed = stats->completed;
	counts.failed = stats->failed;
	counts.dropped = stats->dropped;
	counts.suspends = stats->suspends;
	counts.bytes_read = stats->bytes_read;
	counts.bytes_written = stats->bytes_written;
	counts.requests = stats->requests;
	*stats = counts;
}

int tick_refuse(const struct request *r, const char *what)
{
	return r->client->server->tick_ns == 0
		       ? 0
		       : fail(ENOTSUP,
			      "%s: hald answers at ticks (--tick), so that no program "
			      "sees when something happens; this would show it",
			      what);
}
