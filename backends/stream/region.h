/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.h - memory of the application that a driver has registered.
 *
 * Drivers register whole pages, and a page at most once in a process.  So a region is
 * whole pages, and buffers that lie inside of one share it.  A buffer that lies only
 * partly in a region is refused.  Any thread may call these functions.
 */
#ifndef BACKENDS_STREAM_REGION_H
#define BACKENDS_STREAM_REGION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <hal/backend.h>

#include "later.h"

struct stream_region {
	struct stream_region *next;
	uint64_t base, bytes; /* whole pages */
	uint64_t address;     /* the device's, of .base; constant once registered */
	uint32_t users;       /* buffers; 0: it is being unregistered */
	bool making;          /* a thread registers it */
};

/* Return 0 if the process can read and write that memory, as far as that can be found
 * out; else -EFAULT with a text that begins with the names of backend and device. */
int stream_memory_check(const struct hal_host *host, const char *backend, uint32_t device,
			const void *address, uint64_t bytes);

/* What a driver that may wait for the device does for the regions of a device. */
struct stream_region_ops {
	/* Have the driver register r for the memory, and set r->address. */
	int (*enroll)(void *device, struct stream_region *r, const void *address,
		      uint64_t bytes);
	/* Give r back to the driver, now or later. */
	void (*give_back)(void *device, struct stream_region *r, int *err);
	/* Wait until all that has been given back is free.  Return false if there has
	 * been none since the mark.  The calling thread has entered the device. */
	bool (*make_room)(void *device, uint64_t mark);
	/* The same of a thread that has not entered the device.  Do nothing on the
	 * engine's thread or if the device is lost. */
	void (*settle)(void *device, uint64_t mark);
};

/* All regions of a device. */
struct stream_regions {
	const struct hal_host *host;
	const char *backend; /* name of it and of the device, for messages */
	uint32_t device;
	uint64_t page;        /* bytes */
	pthread_mutex_t lock; /* of the list; not held while a driver is called */
	pthread_cond_t made;
	struct stream_region *first;
};

void stream_regions_init(struct stream_regions *l, const struct hal_host *host,
			 const char *backend, uint32_t device);
/* Free the regions that are left: the driver does not know them any more. */
void stream_regions_fini(struct stream_regions *l);

/* Find or add a region that the memory lies in, and count the caller as a user.  If
 * *fresh is set, the caller registers the region next and calls stream_region_made.
 * -EFAULT: it is not memory of the process that can be read and written.  -EBUSY: a part
 * of it lies in another region.  -EAGAIN, without a text: a part of it is being
 * unregistered.  -ENOMEM. */
int stream_region_take(struct stream_regions *l, const void *address, uint64_t bytes,
		       struct stream_region **out, bool *fresh);
/* The driver has registered the region (err 0), with .address set, or has refused: then
 * r is gone. */
void stream_region_made(struct stream_regions *l, struct stream_region *r, int err);
/* Count a user less.  Return true if it was the last one: the caller unregisters the
 * region and then calls stream_region_gone. */
bool stream_region_drop(struct stream_regions *l, struct stream_region *r);
/* Free a region that the driver has unregistered. */
void stream_region_gone(struct stream_regions *l, struct stream_region *r);

/* Return the device's address of memory in r. */
static inline uint64_t stream_region_at(const struct stream_region *r,
					const void *address)
{
	return r->address + ((uintptr_t)address - r->base);
}

/* Find or register a region that the memory lies in, with the device entered.  Wait once
 * for what is being unregistered.  Errors: of stream_region_take and of ops->enroll. */
int stream_region_find(struct stream_regions *l, const struct stream_region_ops *ops,
		       struct stream_later *later, const void *address, uint64_t bytes,
		       struct stream_region **out);
/* Count a user of r less.  Without users r is given back, and on the application's thread
 * it is unregistered on return, unless work hangs. */
void stream_region_leave(struct stream_regions *l, const struct stream_region_ops *ops,
			 struct stream_later *later, struct stream_region *r, int *err);

/* Set the text for memory that someone else has registered; -EBUSY. */
int stream_region_refuse(const struct stream_regions *l, const void *address,
			 uint64_t bytes);

#endif
