/* SPDX-License-Identifier: Apache-2.0 */
/* callback.c - host functions, which a client calls, and its trace; see hald.h. */
#include <errno.h>
#include <stdlib.h>

#include "hald.h"
#include "util/error.h"

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

void callback_run(void *user)
{
	struct callback *cb = user, **at;
	struct client *c = cb->client;

	pthread_mutex_lock(&c->lock);
	cb->number = ++c->called;
	cb->next = NULL;
	for (at = &c->callbacks; *at != NULL; at = &(*at)->next)
		;
	*at = cb;
	pthread_cond_broadcast(&c->changed);
	while (!cb->returned && !c->closing)
		pthread_cond_wait(&c->changed, &c->lock);
	callback_remove(c, cb);
	pthread_mutex_unlock(&c->lock);
	callback_free(cb);
}

/* ---- traces ------------------------------------------------------------------------- */

int client_trace_stop(struct client *c)
{
	struct server *s = c->server;
	bool own;

	pthread_mutex_lock(&s->lock);
	own = s->tracer == c->number;
	if (own)
		s->tracer = 0;
	pthread_mutex_unlock(&s->lock);
	return own ? hal_trace_stop(s->dev)
		   : fail(EINVAL, "hal_trace_stop: this client writes no trace");
}
