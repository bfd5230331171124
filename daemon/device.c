/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - requests about the device, its trace and host functions. */
#include "requests.h"

#include <errno.h>
#include <string.h>

#include "loop/device.h"
#include "util/compiler.h"
#include "util/error.h"

/* ---- the device -------------------------------------------------------------------- */

/* hald registers the host memory that it allocates. */
uint64_t caps_of_clients(const struct server *s, uint64_t caps)
{
	if ((caps & HAL_CAP_HOST_REGISTER) == 0)
		caps &= ~HAL_CAP_HOST_COPY;
	if (s->tick_ns != 0)
		caps &= ~CAPS_OF_TIME;
	return caps & ~CAPS_OF_ONE_PROCESS;
}

int do_close(struct request *r)
{
	struct client *c = r->client;
	static const struct {
		enum far_kind kind;
		const char *one;
	} kinds[] = {{KIND_PARTITION, "partition"},
		     {KIND_PROGRAM, "program"},
		     {KIND_TIMELINE, "timeline"},
		     {KIND_COMPLETIONS, "completion ring"}};
	struct counted has[ARRAY_LENGTH(kinds)] = {{0}};
	char counts[128];

	for (uint32_t k = 0; k < ARRAY_LENGTH(kinds); k++) {
		has[k].one = kinds[k].one;
		for (uint32_t i = 0; i < c->handles.count; i++)
			has[k].count += handle_at(&c->handles, i, kinds[k].kind) != NULL;
	}
	format_counts(counts, sizeof(counts), has, ARRAY_LENGTH(has));
	if (counts[0] != '\0')
		return fail(EBUSY, "hald:%s still has %s", c->server->name, counts);
	(void)client_trace_stop(c, NULL);
	client_ends(c, ENDED_EXIT);
	pthread_mutex_lock(&c->lock);
	c->closing = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

enum { POLICY_OPTIONS_MAX = 64 };

int do_set_policy(struct request *r)
{
	const char *options[POLICY_OPTIONS_MAX + 1], *at = r->data;
	uint32_t count = 0;

	if (!r->client->tenant->admin)
		return fail(
			EPERM,
			"the policy of hald:%s is its operator's: section [policy] of "
			"its configuration names it, and tenants with admin = yes may "
			"set it",
			r->client->server->name);
	/* The payload is the policy's name and its options, each with its end. */
	if (r->m.bytes == 0 || r->data[r->m.bytes - 1] != '\0')
		return broken(r, "a text does not end");
	for (at += strlen(at) + 1; at < r->data + r->m.bytes; at += strlen(at) + 1) {
		if (count == POLICY_OPTIONS_MAX)
			return fail(EINVAL, "hal_device_set_policy: more than %d options",
				    POLICY_OPTIONS_MAX);
		options[count++] = at;
	}
	options[count] = NULL;
	return hal_device_set_policy(device_of(r), r->data, options);
}

/* ---- tenants -------------------------------------------------------------------------- */

int operator_check(const struct request *r, const char *what)
{
	const struct client *c = r->client;

	return c->tenant->admin || c->is_operator
		       ? 0
		       : fail(EPERM,
			      "%s of hald:%s are its operator's: its own user and root "
			      "by the device's socket, and tenants with admin = yes",
			      what, c->server->name);
}

int do_tenant_add(struct request *r)
{
	const char *text = text_in(r);
	char *path;
	int err;

	if (text == NULL)
		return -EPROTO;
	err = operator_check(r, "tenants");
	path = err == 0 ? answer_room(r, 256) : NULL;
	if (path == NULL)
		return err != 0 ? err : -ENOMEM;
	return tenant_add(r->client->server, text, path);
}

int do_tenant_remove(struct request *r)
{
	const char *name = text_in(r);
	int err;

	if (name == NULL)
		return -EPROTO;
	err = operator_check(r, "tenants");
	return err != 0 ? err : tenant_remove(r->client->server, r->client, name);
}

int do_tenant_list(struct request *r)
{
	const size_t room = 65536;
	char *text;
	int err = operator_check(r, "tenants");

	text = err == 0 ? answer_room(r, room) : NULL;
	if (text == NULL)
		return err != 0 ? err : -ENOMEM;
	return tenants_text(r->client->server, text, room);
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

/* Let device time pass up to until_ns in lockstep.  Return what hal_device_poll does. */
static int poll_in_step(struct request *r, uint64_t until_ns)
{
	struct hal_device *dev = device_of(r);
	const uint64_t before = counter_get(&dev->command.ended);
	uint64_t ended;
	int err;

	if (!lockstep_wait(r->client, never, NULL, until_ns))
		return fail(ECANCELED, "the client has ended");
	err = hal_device_poll(dev, 0);
	ended = counter_get(&dev->command.ended) - before;
	return err < 0 ? err : (int)(ended < INT32_MAX ? ended : INT32_MAX);
}

int do_poll(struct request *r)
{
	if (r->client->server->lockstep != NULL && r->m.a[0] != 0)
		return poll_in_step(
			r, hal_bk_after(hal_device_get_time(device_of(r)), r->m.a[0]));
	if ((r->client->server->info.caps & HAL_CAP_VIRTUAL_CLOCK) != 0)
		rings_take_all(r->client->server);
	return hal_device_poll(device_of(r), r->m.a[0]);
}

int do_time(struct request *r)
{
	r->m.a[0] = tick_round(r->client->server, hal_device_get_time(device_of(r)));
	return 0;
}

/* ---- host functions ---------------------------------------------------------------- */

int do_callback(struct request *r)
{
	struct client *c = r->client;
	struct callback *cb = NULL;

	pthread_mutex_lock(&c->lock);
	while (!c->closing) {
		for (cb = c->callbacks; cb != NULL && cb->number <= c->taken;)
			cb = cb->next;
		if (cb != NULL)
			break;
		pthread_cond_wait(&c->changed, &c->lock);
	}
	if (cb != NULL) {
		c->taken = cb->number;
		r->m.a[0] = cb->number;
		r->m.a[1] = cb->fn;
		r->m.a[2] = cb->user;
	}
	pthread_mutex_unlock(&c->lock);
	return cb != NULL ? 0 : fail(ECANCELED, "the device is closed");
}

int do_called(struct request *r)
{
	callback_returned(r->client, r->m.a[0]);
	return 0;
}
