/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - what the functions of requests share; see requests.h. */
#include "requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/compiler.h"
#include "util/error.h"

/* ---- what requests have in common -------------------------------------------------- */

int broken(struct request *r, const char *what)
{
	r->broken = true;
	return fail(EPROTO, "request %u: %s", r->m.op, what);
}

void *answer_room(struct request *r, uint64_t bytes)
{
	r->out = calloc(1, bytes != 0 ? bytes : 1);
	if (r->out == NULL)
		(void)fail(ENOMEM, "hald has no memory for %llu bytes", U64(bytes));
	r->out_bytes = bytes;
	return r->out;
}

int struct_in(struct request *r, uint64_t at, uint64_t end, void *to, size_t room,
	      void **in)
{
	uint32_t size;

	*in = NULL;
	if (at == end)
		return 0; /* a NULL pointer */
	if (end - at < sizeof(size))
		return broken(r, "a struct is cut off");
	memcpy(&size, r->data + at, sizeof(size));
	if (size < sizeof(size) || size > end - at || size > room)
		return broken(r, "the size of a struct is wrong");
	memset(to, 0, room);
	memcpy(to, r->data + at, size);
	*in = to;
	return 0;
}

const char *text_in(struct request *r)
{
	if (r->m.bytes == 0 ||
	    memchr(r->data, 0, r->m.bytes) != r->data + r->m.bytes - 1) {
		(void)broken(r, "a text does not end");
		return NULL;
	}
	return r->data;
}

int point_out(struct request *r, const struct hal_point *p, uint64_t parent)
{
	uint64_t handle;

	if (p->timeline == NULL)
		return fail(EIO, "hald has no point for this call");
	handle = handle_add(&r->client->handles, KIND_TIMELINE, p->timeline, false,
			    parent);
	if (handle == 0)
		return -ENOMEM;
	r->m.a[0] = handle;
	r->m.a[1] = p->value;
	return 0;
}

int made(struct request *r, enum far_kind kind, void *object)
{
	r->m.a[0] = handle_add(&r->client->handles, kind, object, true, 0);
	return r->m.a[0] != 0 ? 0 : -ENOMEM;
}

struct hal_device *device_of(const struct request *r)
{
	return r->client->server->dev;
}

struct entry *hold(struct request *r, uint32_t which, enum far_kind kind)
{
	return handle_hold(&r->client->handles, r->m.a[which], kind);
}

void release(struct request *r, struct entry *e)
{
	handle_release(&r->client->handles, e);
}

/* ---- points ------------------------------------------------------------------------ */

int points_hold(struct request *r, const char *from, uint32_t count,
		struct held_points *held)
{
	int err = 0;

	held->count = 0;
	held->points = calloc((size_t)count + 1, sizeof(*held->points));
	held->entries = calloc((size_t)count + 1, sizeof(void *));
	if (held->points == NULL || held->entries == NULL) {
		points_release(r, held);
		return fail(ENOMEM, "hald has no memory for %u points", count);
	}
	for (uint32_t i = 0; err == 0 && i < count; i++) {
		struct hal_point *p = &held->points[i];
		uint64_t handle;

		memcpy(p, from + i * sizeof(*p), sizeof(*p));
		memcpy(&handle, &p->timeline, sizeof(handle));
		held->entries[i] =
			handle_hold(&r->client->handles, handle, KIND_TIMELINE);
		if (held->entries[i] == NULL) {
			err = -EINVAL;
			break;
		}
		held->count++;
		p->timeline = held->entries[i]->object;
	}
	if (err != 0)
		points_release(r, held);
	return err;
}

void points_release(struct request *r, struct held_points *held)
{
	for (uint32_t i = 0; i < held->count; i++)
		handle_release(&r->client->handles, held->entries[i]);
	free((void *)held->entries);
	free(held->points);
	*held = (struct held_points){0};
}
