/* SPDX-License-Identifier: Apache-2.0 */
/* region.c - memory of the application that a driver has registered. */
#define _GNU_SOURCE
#include "region.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void stream_regions_init(struct stream_regions *l, const struct hal_host *host,
			 const char *backend, uint32_t device)
{
	l->host = host;
	l->backend = backend;
	l->device = device;
	l->page = (uint64_t)sysconf(_SC_PAGESIZE);
	l->first = NULL;
	(void)pthread_mutex_init(&l->lock, NULL);
	(void)pthread_cond_init(&l->made, NULL);
}

void stream_regions_fini(struct stream_regions *l)
{
	struct stream_region *next, *r;

	for (r = l->first; r; r = next) {
		next = r->next;
		free(r);
	}
	l->first = NULL;
	pthread_cond_destroy(&l->made);
	pthread_mutex_destroy(&l->lock);
}

/* ---- the process's memory ----------------------------------------------------------- */

/* Advance *at over one mapping of the process if it lies there.  Return NULL, or what is
 * wrong with the memory at *at. */
static const char *step_over(const char *line, uint64_t *at)
{
	uint64_t start, end;
	char may[5];

	/* NOLINTNEXTLINE(cert-err34-c): the kernel has written the line */
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, may) != 3 ||
	    end <= *at)
		return NULL;
	if (start > *at)
		return "is not mapped";
	if (may[0] != 'r' || may[1] != 'w')
		return "cannot be both read and written";
	*at = end;
	return NULL;
}

/* A driver's own answer does not say what is wrong, and some drivers find out only when
 * the device copies.  Without /proc the driver decides. */
int stream_memory_check(const struct hal_host *host, const char *backend, uint32_t device,
			const void *address, uint64_t bytes)
{
	const uint64_t end = (uintptr_t)address + bytes;
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t at = (uintptr_t)address;
	const char *wrong = NULL;
	char *line = NULL;
	size_t room = 0;

	if (!maps)
		return 0;
	while (!wrong && at < end && getline(&line, &room, maps) > 0)
		wrong = step_over(line, &at);
	free(line);
	(void)fclose(maps);
	if (!wrong && at >= end)
		return 0;
	return host->fail(EFAULT,
			  "%s:%u: cannot register %" PRIu64 " bytes at %p: at 0x%" PRIx64
			  " the memory of this process %s",
			  backend, device, bytes, address, at,
			  wrong ? wrong : "is not mapped");
}

/* ---- regions ------------------------------------------------------------------------ */

int stream_region_refuse(const struct stream_regions *l, const void *address,
			 uint64_t bytes)
{
	return l->host->fail(
		EBUSY,
		"%s:%u: pages of the %" PRIu64 " bytes at %p are registered already: by "
		"the application, by another device or as part of another buffer; let "
		"each buffer begin on a page of its own, or register all of them as one",
		l->backend, l->device, bytes, address);
}

/* Return the first region that has pages of base to end.  l->lock is held. */
static struct stream_region *find(const struct stream_regions *l, uint64_t base,
				  uint64_t end)
{
	struct stream_region *r = l->first;

	while (r && (end <= r->base || base >= r->base + r->bytes))
		r = r->next;
	return r;
}

/* Add a region, which the calling thread registers.  l->lock is held. */
static int add(struct stream_regions *l, uint64_t base, uint64_t end,
	       struct stream_region **out)
{
	struct stream_region *r = calloc(1, sizeof(*r));

	if (!r)
		return l->host->fail(ENOMEM, "%s:%u: no memory to register memory",
				     l->backend, l->device);
	r->base = base;
	r->bytes = end - base;
	r->users = 1;
	r->making = true;
	r->next = l->first;
	l->first = r;
	*out = r;
	return 0;
}

int stream_region_take(struct stream_regions *l, const void *address, uint64_t bytes,
		       struct stream_region **out, bool *fresh)
{
	const uint64_t from = (uintptr_t)address, to = from + bytes + l->page - 1;
	const uint64_t base = from - from % l->page, end = to - to % l->page;
	struct stream_region *r;
	int err = stream_memory_check(l->host, l->backend, l->device, address, bytes);

	if (err)
		return err;
	*fresh = false;
	pthread_mutex_lock(&l->lock);
	while ((r = find(l, base, end)) && r->making)
		(void)pthread_cond_wait(&l->made, &l->lock);
	if (!r) {
		err = add(l, base, end, out);
		*fresh = !err;
	} else if (!r->users) {
		err = -EAGAIN;
	} else if (base < r->base || end > r->base + r->bytes) {
		err = stream_region_refuse(l, address, bytes);
	} else {
		r->users++;
		*out = r;
	}
	pthread_mutex_unlock(&l->lock);
	return err;
}

/* Remove r from the list.  l->lock is held. */
static void take_out(struct stream_regions *l, struct stream_region *r)
{
	struct stream_region **at = &l->first;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	free(r);
}

void stream_region_made(struct stream_regions *l, struct stream_region *r, int err)
{
	pthread_mutex_lock(&l->lock);
	r->making = false;
	if (err)
		take_out(l, r);
	pthread_cond_broadcast(&l->made);
	pthread_mutex_unlock(&l->lock);
}

bool stream_region_drop(struct stream_regions *l, struct stream_region *r)
{
	bool last;

	pthread_mutex_lock(&l->lock);
	last = !--r->users;
	pthread_mutex_unlock(&l->lock);
	return last;
}

void stream_region_gone(struct stream_regions *l, struct stream_region *r)
{
	pthread_mutex_lock(&l->lock);
	take_out(l, r);
	pthread_mutex_unlock(&l->lock);
}

/* ---- drivers that may wait for the device -------------------------------------------- */

int stream_region_find(struct stream_regions *l, const struct stream_region_ops *ops,
		       struct stream_later *later, const void *address, uint64_t bytes,
		       struct stream_region **out)
{
	const uint64_t mark = stream_later_mark(later);
	bool fresh;
	int err = stream_region_take(l, address, bytes, out, &fresh);

	if (err == -EAGAIN && ops->make_room(later->device, mark))
		err = stream_region_take(l, address, bytes, out, &fresh);
	if (err == -EAGAIN)
		return stream_region_refuse(l, address, bytes);
	if (err || !fresh)
		return err;
	err = ops->enroll(later->device, *out, address, bytes);
	stream_region_made(l, *out, err);
	return err;
}

/* The application may unmap the memory next, so its thread waits. */
void stream_region_leave(struct stream_regions *l, const struct stream_region_ops *ops,
			 struct stream_later *later, struct stream_region *r, int *err)
{
	const uint64_t mark = stream_later_mark(later);

	if (!stream_region_drop(l, r))
		return;
	ops->give_back(later->device, r, err);
	if (later->threaded)
		ops->settle(later->device, mark);
}
