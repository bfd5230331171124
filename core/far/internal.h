/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - far objects, channels and calls; see far.h. */
#ifndef HAL_FAR_INTERNAL_H
#define HAL_FAR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "command/queue.h"
#include "far/far.h"
#include "far/ring.h"
#include "far/wire.h"
#include "loop/device.h"
#include "space/partition.h"
#include "util/error.h"

struct channel;

/* The beginning of every far object.  Functions of core/api that read a field of a local
 * object without a look at its magic number read 0 here, and then find that it is no
 * object of theirs. */
struct far {
	struct object obj;
	union {
		uint64_t zero[3];
		atomic_uint open; /* of a queue: QUEUE_OPEN_FAR */
	};
	struct far_device *dev;
	uint64_t handle;
};

#define READS_ZERO(type, field)                                                          \
	_Static_assert(offsetof(struct type, field) + sizeof(uint64_t) <=                \
			       offsetof(struct far, dev),                                \
		       "a far object is 0 there")
_Static_assert(offsetof(struct hal_queue, open) == offsetof(struct far, open),
	       "hal_submit looks there");
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
	/* Memory that hald writes, and the eventfd that wakes it (ring.h); NULL, -1: this
	 * process cannot map it, and all goes by requests. */
	const struct far_board *board;
	int bell;
	atomic_bool lost; /* hald has ended */
	atomic_uint
		serving; /* FAR_OPEN until then, for submissions; then another value */
	_Atomic uint64_t alive_ns; /* when far_alive has looked last */
	pthread_mutex_t lock;
	/* Channels without a request under way. */
	struct channel *idle;
	/* All that the application has been given: its own, and those of queues and
	 * partitions. */
	struct far_timeline *timelines;
	struct far_program *programs;
	/* The thread that calls host functions; started with the first. */
	pthread_t callback_thread;
	bool has_callback_thread;
};

struct far_buffer {
	struct far far;
	/* Its partition, or NULL: commands of a ring cannot use it. */
	const struct far *part;
	uint64_t bytes;
	bool exportable; /* as the application has asked for */
	int imported;    /* descriptor of imported memory, to map it; -1: it is not */
	/* The mapping, and how often the application has asked for it.  Guarded by the
	 * device's .lock. */
	void *mapped;
	uint32_t maps;
};

struct far_kernel {
	struct far far;
	const struct far_device *user; /* NULL once it is destroyed */
	struct far_program *prog;
	/* Of a launch: the first word of its slot, without flags; its slots. */
	uint64_t head;
	uint32_t slots;
	uint32_t ring_args; /* arguments; UINT32_MAX: too many for a ring */
	struct hal_kernel_info info;
};

/* Partitions whose handles have an index below this may be bound to a program. */
#define FAR_BOUND_MAX 1024u

struct far_program {
	struct far far;
	struct far_program *next; /* in the device's list */
	/* A bit for the index of each partition in which hald has placed it. */
	_Atomic uint64_t bound[FAR_BOUND_MAX / 64];
	uint32_t kernel_count;
	struct far_kernel **kernels;
};

struct far_timeline {
	struct far far;
	struct far_timeline *next; /* in the device's list */
	uint64_t parent;           /* handle of what it goes with; 0: nothing */
	/* Of a queue with a ring: its place on the board.  NULL: it has none. */
	const struct far_told *told;
	bool raised; /* the application may signal it */
	/* Value of the last point for which a descriptor was opened, until a wait by
	 * request has found it reached; 0: none.  Until then waits are requests, since
	 * the descriptor must be readable when they return. */
	_Atomic uint64_t fd_value;
};

/* One thread at a time uses it, as any queue. */
struct far_queue {
	struct far far;
	struct far_timeline *timeline;
	const struct far *part;
	uint32_t part_word; /* of far_program.bound, .part_bit is in it */
	uint64_t part_bit;  /* 0: all launches are requests */
	/* Its ring, and its place on the board.  Without a ring (NULL) all submissions
	 * are requests, and .told says that it is not open. */
	struct far_ring *ring;
	const struct far_told *told;
	uint32_t slot_count, slot_mask;
	unsigned int tail;  /* end of the records that have been written */
	unsigned int limit; /* slots before this position are known to be free */
	unsigned int rung;  /* value of "again" at which the bell was written last */
	uint64_t submissions;
	uint64_t rights; /* FAR_MAY_*, FAR_HAS_*, and the highest priority */
	uint64_t number; /* for messages */
	char name[LAZY_NAME];
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
	int in_fd, in_fd2; /* of the answer; -1: none */
};

/* Carry out c.  Return what the function returned, with its error text; -ENODEV if hald
 * has ended. */
int far_ask(struct far_device *dev, struct far_call *c);
/* The same, for hal_wait: a cancellation point. */
int far_ask_wait(struct far_device *dev, struct far_call *c);
/* Open the first channel.  Return 0 or -errno. */
int far_connect(struct far_device *dev);
void far_disconnect(struct far_device *dev);
/* Find out, at most once a millisecond, whether hald is there.  Return false with -ENODEV
 * as the error if it has ended. */
bool far_alive(struct far_device *dev);
/* Map the board, and take the bell; and end that. */
void far_board_map(struct far_device *dev, int board, int bell);
void far_board_unmap(struct far_device *dev);

/* Of a queue without a ring. */
extern const struct far_told far_not_told;
/* Fill in what launches of k in a ring need. */
void far_ring_kernel(struct far_kernel *k);
/* Map the ring of q, as the answer c to its creation says; and unmap it. */
void far_ring_map(struct far_queue *q, const struct far_call *c);
void far_ring_unmap(struct far_queue *q);
/* Note what a request has submitted to q, of which c is the answer. */
void far_ring_moved(struct far_queue *q, const struct far_call *c);
/* Have hald submit d. */
int far_submit_request(struct far_queue *q, const struct hal_submit_desc *d,
		       struct hal_point *done);
/* Note that hald has submitted d to q, and so has placed its programs. */
void far_ring_bound(const struct far_queue *q, const struct hal_submit_desc *d);

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

/* Return the timeline of dev with that handle, which is made if there is none, and goes
 * with the object parent (0: none); NULL with an error. */
struct far_timeline *far_timeline_of(struct far_device *dev, uint64_t handle,
				     uint64_t parent);
/* Free the timelines that go with parent, which hald has destroyed. */
void far_timelines_free(struct far_device *dev, uint64_t parent);
/* Free t, whose owner hald has destroyed. */
void far_timeline_free(struct far_timeline *t);
/* Write the point in the answer c, of the object parent, to *done, unless that is NULL.
 * Return 0 or -errno. */
int far_point(struct far_device *dev, const struct far_call *c, uint64_t parent,
	      struct hal_point *done);

#endif
