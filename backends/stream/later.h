/* SPDX-License-Identifier: Apache-2.0 */
/*
 * later.h - give objects back to a driver that may wait for the device to do so.
 *
 * A driver may free memory or unload code only after all work of the device has ended:
 * also work of other opens of the device and of the application itself.  The engine must
 * not make such a call, because all tenants would wait with it.
 *   Real clock: a thread of the list makes these calls.  The first object starts it.
 *   Virtual clock: the engine makes them while nothing runs on the device, so that runs
 *   are reproducible.
 * An object that cannot be given back is tried again with the next one and by
 * stream_later_finish.
 */
#ifndef BACKENDS_STREAM_LATER_H
#define BACKENDS_STREAM_LATER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stream_later_when {
	STREAM_LATER_NOW,  /* the driver does not wait: the calling thread makes the call
			    */
	STREAM_LATER_WAIT, /* the driver may wait for the device */
	STREAM_LATER_IDLE, /* the same; and commands that this open has submitted before
			    * may still use the object */
};

struct stream_later_list {
	char *items;       /* oldest first */
	atomic_uint count; /* also read without the lock */
	uint32_t room;
};

struct stream_later_ops {
	/* Let the calling thread call the driver for the device.  0 or -errno. */
	int (*enter)(void *device);
	/* Undo enter: the thread ends. */
	void (*leave)(void *device);
	/* Give an object back.  0, or -errno with the error text set. */
	int (*end)(void *device, const void *item);
	/* Return whether the device is lost: its objects go with the process. */
	bool (*lost)(const void *device);
	/* Virtual clock: return whether anything runs on the device, of any open. */
	bool (*busy)(const void *device);
	/* Real clock: return whether commands that this open has submitted may still use
	 * an object given back as STREAM_LATER_IDLE.  Any thread.  NULL: none is. */
	bool (*running)(const void *device);
};

struct stream_later {
	const struct stream_later_ops *ops;
	void *device;
	size_t item_bytes;
	bool threaded;
	char name[16];        /* of the thread */
	pthread_mutex_t lock; /* of the rest */
	pthread_cond_t wake, attempted;
	struct stream_later_list list, idle; /* idle: not before this open's work ends */
	atomic_ullong done; /* rounds: attempts at all objects that there were */
	uint32_t working;   /* threads that make one */
	bool started, stop;
	bool again; /* the thread is to make a round */
	bool held;  /* changed by the engine alone */
	pthread_t thread;
	struct stream_later
		*older; /* of those whose thread stays until the process ends */
};

/* Initialize l, a list of objects of item_bytes each.  name: of the thread, at most 15
 * characters; NULL: virtual clock. */
void stream_later_init(struct stream_later *l, const struct stream_later_ops *ops,
		       void *device, size_t item_bytes, const char *name);

/* Give *item back.  Any thread.  Virtual clock: running says whether this open has
 * commands in flight; the real clock ignores it.  Return 0, or -errno of an attempt that
 * the calling thread made; the object is then tried again. */
int stream_later_give(struct stream_later *l, const void *item,
		      enum stream_later_when when, bool running);

/* Engine, once a poll.  running: as above.  hangs: the device has work that was given up
 * and may still use the objects: give none back, also not by the thread. */
void stream_later_poll(struct stream_later *l, bool running, bool hangs);

/* Return a mark for stream_later_settle: get it before the allocation. */
uint64_t stream_later_mark(struct stream_later *l);
/* Wait until all objects have been given back or could not be.  Return false if none has
 * been tried since the mark, or if work hangs: the allocation cannot succeed now.
 * Application threads only, with the device entered. */
bool stream_later_settle(struct stream_later *l, uint64_t mark);

/* End the thread; it starts no more.  hangs: as above.  Return false if work hangs and
 * the thread is in a call of the driver, where it may stay for ever: l and its device
 * must then not be freed. */
bool stream_later_stop(struct stream_later *l, bool hangs);
/* Give back what is left, with the device entered.  After stream_later_stop. */
void stream_later_finish(struct stream_later *l);

/* Call fn for each object that is left.  After stream_later_stop. */
void stream_later_each(const struct stream_later *l, void (*fn)(const void *item));
void stream_later_fini(struct stream_later *l);

#endif
