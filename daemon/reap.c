/* SPDX-License-Identifier: Apache-2.0 */
/* reap.c - what becomes of the objects of a client that has ended. */
#include <errno.h>
#include <time.h>

#include "hald.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/log.h"

/* Times that the objects are gone through, and the longest wait for a queue in each. */
enum { PASSES = 100, PASS_NS = 100000000 };

static int64_t in_a_while(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + PASS_NS;
}

/* Stop q for good, in the strongest mode that the device has. */
static void stop_queue(const struct client *c, struct hal_queue *q)
{
	static const uint32_t modes[] = {HAL_SUSPEND_KILL, HAL_SUSPEND_SAVE,
					 HAL_SUSPEND_FOLD, HAL_SUSPEND_DRAIN};

	for (uint32_t i = 0; i < ARRAY_LENGTH(modes); i++)
		if ((c->server->info.suspend_modes & 1u << modes[i]) != 0 &&
		    hal_queue_suspend(q, modes[i] | HAL_SUSPEND_FINAL, NULL) == 0)
			return;
}

/* Destroy one object.  Return 0 or -errno. */
static int destroy(enum far_kind kind, void *object)
{
	switch (kind) {
	case KIND_QUEUE:
		return hal_queue_destroy(object);
	case KIND_SEQUENCE:
		return hal_sequence_destroy(object);
	case KIND_BUFFER:
		return hal_buffer_destroy(object);
	case KIND_COMPLETIONS:
		return hal_completions_destroy(object);
	case KIND_PROGRAM:
		return hal_program_unload(object);
	case KIND_TIMELINE:
		return hal_timeline_destroy(object);
	case KIND_PARTITION:
		return hal_partition_destroy(object);
	default:
		return 0;
	}
}

/* Destroy a partition of c, and keep what it has done.  Return 0 or -errno. */
static int destroy_partition(struct client *c, struct entry *e, void *object)
{
	struct tally done;
	int err;

	tally_settle(c, e, &done);
	err = destroy(KIND_PARTITION, object);
	if (err != 0)
		tally_unsettle(c, e, &done);
	return err;
}

/* Destroy all objects of kind that let themselves be destroyed.  *why: what the first of
 * the others says, unless it is set. */
static void destroy_all(struct client *c, enum far_kind kind, char why[256])
{
	for (uint32_t i = c->handles.count; i-- > 0;) {
		void *object = handle_at(&c->handles, i, kind);
		struct entry *e = entry_at(&c->handles, i);

		if (object == NULL)
			continue;
		if ((kind == KIND_PARTITION ? destroy_partition(c, e, object)
					    : destroy(kind, object)) != 0) {
			if (why[0] == '\0')
				format_text(why, 256, "%s", hal_last_error());
			continue;
		}
		handle_end_destroy(&c->handles, e, true);
		if (e->ring != NULL)
			ring_free(c, e->ring);
		e->ring = NULL;
	}
}

void client_sweep(struct client *c)
{
	struct handles *t = &c->handles;

	for (uint32_t i = 0; i < t->count; i++) {
		struct entry *doomed = NULL;

		pthread_mutex_lock(&t->lock);
		if (entry_at(t, i)->doomed) {
			doomed = entry_at(t, i);
			doomed->doomed = false; /* no other thread takes it */
		}
		pthread_mutex_unlock(&t->lock);
		if (doomed == NULL)
			continue;
		if (hal_buffer_destroy(doomed->object) == 0)
			handle_end_destroy(t, doomed, true);
		else
			handle_doom(t, doomed);
	}
}

static bool has_failed(void *arg)
{
	int failed = 0;

	(void)hal_timeline_get_value(arg, &failed);
	return failed != 0;
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

/* Let the engine do what is left of a queue that is quiet: it drops the rest of its work.
 */
static void let_engine_work(const struct client *c)
{
	const struct timespec short_time = {.tv_nsec = PASS_NS / 1000};
	struct hal_device *dev = c->server->dev;

	/* A virtual clock's engine works only for who asks it to. */
	if ((c->server->info.caps & HAL_CAP_VIRTUAL_CLOCK) != 0)
		(void)inlet_run(dev, never, NULL, hal_device_get_time(dev) + 1);
	else
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, NULL);
}

/* Wait until a queue of c, which has been stopped, is quiet. */
static void wait_for_queue(struct client *c)
{
	for (uint32_t i = 0; i < c->handles.count; i++) {
		struct hal_queue *q = handle_at(&c->handles, i, KIND_QUEUE);
		struct hal_point never = {NULL, UINT64_MAX};

		if (q == NULL)
			continue;
		/* The queue's timeline fails once it is quiet. */
		never.timeline = hal_queue_get_timeline(q);
		(void)lockstep_wait(c, has_failed, never.timeline, UINT64_MAX);
		(void)hal_wait(&never, 1, 0, in_a_while());
		return;
	}
}

void client_reap(struct client *c)
{
	static const enum far_kind order[] = {
		KIND_QUEUE,   KIND_SEQUENCE, KIND_BUFFER,   KIND_COMPLETIONS,
		KIND_PROGRAM, KIND_TIMELINE, KIND_PARTITION};

	char why[256] = "";

	client_trace_end(c);
	rings_close(c);
	callbacks_release(c);
	for (uint32_t i = 0; i < c->handles.count; i++) {
		struct hal_queue *q = handle_at(&c->handles, i, KIND_QUEUE);

		if (q != NULL)
			stop_queue(c, q);
	}
	for (uint32_t pass = 0; c->handles.living > 0 && pass < PASSES; pass++) {
		why[0] = '\0';
		for (uint32_t i = 0; i < ARRAY_LENGTH(order); i++)
			destroy_all(c, order[i], why);
		if (c->handles.living > 0)
			wait_for_queue(c);
		if (c->handles.living > 0 && pass > 0)
			let_engine_work(c);
	}
	if (c->handles.living == 0) {
		callbacks_forget(c);
		return;
	}
	for (uint32_t i = 0; i < c->handles.count; i++) {
		struct tally done;

		if (handle_at(&c->handles, i, KIND_PARTITION) != NULL)
			tally_settle(c, entry_at(&c->handles, i), &done);
	}
	LOG(HAL_LOG_ERROR, "client %llu: %u objects cannot be destroyed: %s",
	    U64(c->number), c->handles.living, why);
}
