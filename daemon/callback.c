/* SPDX-License-Identifier: Apache-2.0 */
/* callback.c - host functions, which a client calls, and its trace; see hald.h. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "command/callback.h"
#include "hald.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/log.h"

/* ---- host functions ---------------------------------------------------------------- */

static void callback_remove(struct client *c, const struct callback *cb)
{
	struct callback **at = &c->callbacks;

	while (*at != cb)
		at = &(*at)->next;
	*at = cb->next;
}

struct callback *callback_new(struct client *c, uint64_t fn, uint64_t user)
{
	struct callback *cb = calloc(1, sizeof(*cb));

	if (cb == NULL) {
		(void)fail(ENOMEM, "hald has no memory for a host function");
		return NULL;
	}
	cb->client = c;
	cb->fn = fn;
	cb->user = user;
	pthread_mutex_lock(&c->lock);
	cb->next_made = c->made;
	cb->made = &c->made;
	if (c->made != NULL)
		c->made->made = &cb->next_made;
	c->made = cb;
	pthread_mutex_unlock(&c->lock);
	return cb;
}

void callback_free(struct callback *cb)
{
	struct client *c = cb->client;

	pthread_mutex_lock(&c->lock);
	*cb->made = cb->next_made;
	if (cb->next_made != NULL)
		cb->next_made->made = cb->made;
	pthread_mutex_unlock(&c->lock);
	free(cb);
}

void callbacks_forget(struct client *c)
{
	struct callback *next;

	for (struct callback *cb = c->made; cb != NULL; cb = next) {
		next = cb->next_made;
		free(cb);
	}
	c->made = NULL;
}

/* Longest time for which hald waits for a host function under the virtual clock, where
 * all others wait, too. */
#define PATIENCE_S 10

/* Wait until cb has returned, or the client ends.  The caller holds the lock. */
static void wait_for(struct client *c, const struct callback *cb)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	while (!cb->returned && !c->closing)
		if (pthread_cond_timedwait(&c->changed, &c->lock, &until) == ETIMEDOUT) {
			LOG(HAL_LOG_WARNING,
			    "client %llu is ended: its host function has not returned "
			    "within %d s, in which nobody's virtual time passes",
			    U64(c->number), PATIENCE_S);
			client_ends(c, ENDED_PROTOCOL);
			client_end_locked(c);
		}
}

void callback_run(void *user)
{
	struct callback *cb = user, **at;
	struct client *c = cb->client;
	bool real = (c->server->info.caps & HAL_CAP_VIRTUAL_CLOCK) == 0;

	pthread_mutex_lock(&c->lock);
	if (!c->closing) {
		cb->number = ++c->called;
		cb->next = NULL;
		for (at = &c->callbacks; *at != NULL; at = &(*at)->next)
			;
		*at = cb;
		pthread_cond_broadcast(&c->changed);
		if (real) {
			/* The functions of others are called meanwhile. */
			cb->queue = callback_keep();
			pthread_mutex_unlock(&c->lock);
			return;
		}
		wait_for(c, cb);
		callback_remove(c, cb);
	}
	pthread_mutex_unlock(&c->lock);
	callback_free(cb);
}

/* Take a host function that runs from c: the one of that number, or the first if it is 0.
 * Return NULL if there is none, or if another thread waits for it. */
static struct callback *callback_take(struct client *c, uint64_t number)
{
	struct callback *cb;

	pthread_mutex_lock(&c->lock);
	cb = c->callbacks;
	while (cb != NULL && number != 0 && cb->number != number)
		cb = cb->next;
	if (cb != NULL && cb->queue != NULL) {
		callback_remove(c, cb);
	} else if (cb != NULL) {
		cb->returned = true;
		pthread_cond_broadcast(&c->changed);
		cb = NULL;
	}
	pthread_mutex_unlock(&c->lock);
	return cb;
}

static void callback_ended(struct callback *cb)
{
	struct hal_queue *q = cb->queue;

	callback_free(cb);
	callback_over(q);
}

void callback_returned(struct client *c, uint64_t number)
{
	struct callback *cb = number != 0 ? callback_take(c, number) : NULL;

	if (cb != NULL)
		callback_ended(cb);
}

void callbacks_release(struct client *c)
{
	struct callback *cb;

	while ((cb = callback_take(c, 0)) != NULL)
		callback_ended(cb);
}
