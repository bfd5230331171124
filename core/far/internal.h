/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - far objects, channels and calls; see far.h. */
#ifndef HAL_FAR_INTERNAL_H
#define HAL_FAR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "command/queue.h"
#include "far/far.h"
#include "far/wire.h"
#include "loop/device.h"
#include "space/partition.h"

struct channel;

/* The beginning of every far object.  Functions of core/api that read a field of a local
 * object without a look at its magic number read 0 here, and then find that it is no
 * object of theirs. */
struct far {
	struct object obj;
	uint64_t zero[3];
	struct far_device *dev;
	uint64_t handle;
};

#define READS_ZERO(type, field)                                                          \
	_Static_assert(offsetof(struct type, field) + sizeof(uint64_t) <=                \
			       offsetof(struct far, dev),                                \
		       "a far object is 0 there")
READS_ZERO(hal_queue, open);
READS_ZERO(hal_buffer, user);
READS_ZERO(hal_kernel, user);
READS_ZERO(hal_timeline, user);
READS_ZERO(hal_timeline, raiser);

/* Constant, except for what .lock guards, and .lost. */
struct far_device {
	struct far far; /* .dev is this device, .handle 0 */
	char name[64];
	char path[108];     /* of hald's socket */
	uint64_t client[2]; /* which client the channels belong to; 0: none yet */
	struct hal_device_info info;
	atomic_bool lost; /* hald has ended */
	pthread_mutex_t lock;
	/* Channels without a request under way. */
	struct channel *idle;
	/* All that the application has been given: its own, and those of queues and
	 * partitions. */
	struct far_timeline *timelines;
	/* The thread that calls host functions; started with the first. */
	pthread_t callback_thread;
	bool has_callback_thread;
};

struct far_buffer {
	struct far far;
	uint64_t bytes;
	int imported; /* descriptor of imported memory, to map it; -1: it is not */
	/* The mapping, and how often the application has asked for it.  Guarded by the
	 * device's .lock. */
	void *mapped;
	uint32_t maps;
};

struct far_kernel {
	struct far far;
	struct hal_kernel_info info;
};

struct far_program {
	struct far far;
	uint32_t kernel_count;
	struct far_kernel **kernels;
};

struct far_timeline {
	struct far far;
	struct far_timeline *next; /* in the device's list */
};

struct far_queue {
	struct far far;
	struct far_timeline *timeline;
};

struct far_completions {
	struct far far;
	int fd; /* -1: not asked for yet; guarded by the device's .lock */
};

/* One request and its answer. */
struct far_call {
	uint32_t op;
	uint64_t a[FAR_NUMBERS]; /* of the request, then of the answer */
	const void *out;         /* payload of the request */
	uint64_t out_bytes;
	int out_fd; /* a file descriptor of the request, plus 1; 0: none */
	/* Where the answer's payload goes.  If .in is NULL and .in_any is set, it is
	 * allocated.  .in_bytes is its size. */
	void *in;
	uint64_t in_max, in_bytes;
	bool in_any;
	int in_fd; /* of the answer; -1: none */
};

/* Carry out c.  Return what the function returned, with its error text; -ENODEV if hald
 * has ended. */
int far_ask(struct far_device *dev, struct far_call *c);
/* Open the first channel.  Return 0 or -errno. */
int far_connect(struct far_device *dev);
void far_disconnect(struct far_device *dev);
/* Return whether this thread is in a host function of dev. */
bool far_in_callback(const struct far_device *dev);
/* Start the thread that calls host functions, unless it runs. */
int far_callbacks_start(struct far_device *dev);

/* Return the handle of o, a far object of dev, or 0 if o is NULL.  If it is none, set
 * *err to -EINVAL, with a text in which what names it. */
uint64_t far_handle(const struct far_device *dev, const void *o, enum object_kind kind,
		    const char *what, int *err);
/* Allocate a far object of dev. */
void *far_object(struct far_device *dev, enum object_kind kind, size_t size,
		 uint64_t handle);
/* Free it, and make its handle unusable. */
void far_object_free(enum object_kind kind, void *object);

/* Ask for the destruction of o.  If that succeeds, or hald has ended, return 0: the
 * caller then frees o. */
int far_destroy(uint32_t op, const struct far *o);
/* Ask for a struct that the caller of hal.h describes by its .size. */
int far_get(uint32_t op, const struct far *o, void *out);
/* Return the .size at the beginning of a caller's struct, or FAR_NO_STRUCT. */
uint64_t far_size(const void *in);
/* Copy the struct `in` of .size bytes to at; return the bytes; 0 if it is NULL. */
size_t far_copy_struct(void *at, size_t room, const void *in, int *err);

/* Return the timeline of dev with that handle, which is made if there is none; NULL with
 * an error. */
struct far_timeline *far_timeline_of(struct far_device *dev, uint64_t handle);
/* Free t, whose owner hald has destroyed. */
void far_timeline_free(struct far_timeline *t);
/* Write the point in the answer c to *done, unless that is NULL.  Return 0 or -errno. */
int far_point(struct far_device *dev, const struct far_call *c, struct hal_point *done);

#endif
