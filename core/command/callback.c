/* SPDX-License-Identifier: Apache-2.0 */
/* callback.c - call host functions; refuse calls that would wait for their own caller. */
#include "command/callback.h"

#include <errno.h>
#include <signal.h>

#include "loop/engine.h"
#include "replay/journal.h"
#include "util/error.h"
#include "util/futex.h"

/* The host functions that this thread is inside, innermost first.  There can be several:
 * under the virtual clock a host function may wait for another device, whose engine this
 * thread then is. */
struct frame {
	const struct hal_device *dev;
	const struct frame *outer;
};

static _Thread_local const struct frame *frames;

bool callback_inside(const struct hal_device *dev)
{
	for (const struct frame *f = frames; f != NULL; f = f->outer)
		if (f->dev == dev)
			return true;
	return false;
}

int callback_refuse(const struct hal_device *dev, const char *what)
{
	if (LIKELY(frames == NULL) || !callback_inside(dev))
		return 0;
	return fail(EDEADLK,
		    "%s was called from a host callback of %s and would wait for that "
		    "callback; call it from another thread",
		    what, dev->name);
}

int sleep_refuse(const struct hal_device *dev, const char *what)
{
	if (!dev->virtual_clock ||
	    atomic_load_explicit(&dev->polled, memory_order_relaxed))
		return 0;
	return fail(
		ENOTSUP,
		"%s: time on %s is simulated and stops while the program sleeps in "
		"poll(); open it with ?clock=real, or call hal_device_poll(dev, 0) now "
		"and between calls of poll()",
		what, dev->name);
}

/* Call the host function at q->issue.  The engine keeps the record there until the
 * function has returned. */
static void call_function(struct hal_queue *q)
{
	const struct record *r = cursor_record(q, q->issue);
	const struct frame here = {.dev = q->dev, .outer = frames};

	frames = &here;
	r->host.fn(r->host.user);
	frames = here.outer;
}

/* Set while the host function that this thread is inside is not over when it returns. */
static _Thread_local bool kept;
static _Thread_local struct hal_queue *calling;

struct hal_queue *callback_keep(void)
{
	kept = true;
	return calling;
}

void callback_over(struct hal_queue *q)
{
	engine_post(q->dev, &q->callback);
}

/* ---- clock=real -------------------------------------------------------------------- */

/* Take the submitted callbacks off the list.  Return them linked by .callback_next,
 * oldest first. */
static struct hal_queue *take_all(struct callbacks *c)
{
	struct hal_queue *q = atomic_exchange(&c->list, NULL), *list = NULL;

	while (q != NULL) {
		struct hal_queue *next = q->callback_next;

		q->callback_next = list;
		list = q;
		q = next;
	}
	return list;
}

static void *callbacks_main(void *arg)
{
	struct hal_device *dev = arg;
	struct callbacks *c = &dev->command.callbacks;

	while (!atomic_load(&c->stop)) {
		unsigned int seen = atomic_load(&c->wake);
		struct hal_queue *q = take_all(c);

		if (q == NULL) {
			futex_wait(&c->wake, seen, NULL);
			continue;
		}
		while (q != NULL) {
			struct hal_queue *next = q->callback_next;

			calling = q;
			kept = false;
			call_function(q);
			if (!kept)
				callback_over(q);
			q = next;
		}
	}
	return NULL;
}

void callbacks_init(struct hal_device *dev)
{
	(void)pthread_mutex_init(&dev->command.callbacks.start, NULL);
}

int callbacks_start(struct hal_device *dev)
{
	struct callbacks *c = &dev->command.callbacks;
	sigset_t all, old;
	int err = 0;

	if (dev->virtual_clock || atomic_load_explicit(&c->running, memory_order_acquire))
		return 0;
	pthread_mutex_lock(&c->start);
	if (!atomic_load(&c->running)) {
		(void)sigfillset(&all);
		(void)pthread_sigmask(SIG_SETMASK, &all, &old);
		err = pthread_create(&c->thread, NULL, callbacks_main, dev);
		(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (err == 0) {
			(void)pthread_setname_np(c->thread, "hal-callbacks");
			atomic_store_explicit(&c->running, true, memory_order_release);
		}
	}
	pthread_mutex_unlock(&c->start);
	if (err != 0)
		return fail(err, "%s: cannot start the thread for host callbacks: %s",
			    dev->name, hal_strerror(err));
	return 0;
}

void callbacks_stop(struct hal_device *dev)
{
	struct callbacks *c = &dev->command.callbacks;

	if (atomic_load(&c->running)) {
		atomic_store(&c->stop, true);
		atomic_fetch_add(&c->wake, 1);
		futex_wake(&c->wake, 1);
		(void)pthread_join(c->thread, NULL);
		atomic_store(&c->running, false);
	}
	(void)pthread_mutex_destroy(&c->start);
}

/* Have the callbacks thread call the host function of q. */
static void push(struct hal_queue *q)
{
	struct callbacks *c = &q->dev->command.callbacks;
	struct hal_queue *head = atomic_load_explicit(&c->list, memory_order_relaxed);

	do
		q->callback_next = head;
	while (!atomic_compare_exchange_weak(&c->list, &head, q));
	/* The thread reads .wake before the list.  If it found the list empty, this keeps
	 * it from sleeping. */
	atomic_fetch_add(&c->wake, 1);
	if (head == NULL)
		futex_wake(&c->wake, 1);
}

/* ---- both clocks ------------------------------------------------------------------- */

void callback_begin(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;
	int cancel;

	q->in_callback = true;
	atomic_fetch_add(&dev->command.callbacks_begun, 1);
	dev->work |= WORK_CALLBACKS;
	journal_called(q);
	if (UNLIKELY(dev->replay.player != NULL)) {
		if (dev->replay.player->call(q))
			q->callback.fn(dev, &q->callback);
		return;
	}
	if (!dev->virtual_clock) {
		push(q);
		return;
	}
	/* Release the engine lock during the call.  Another thread may be the engine
	 * meanwhile, but virtual time does not pass.  This thread must not be cancelled
	 * inside the function, since it continues the turn afterwards. */
	cancel = dev->cancel_state;
	dev->cancel_state = PTHREAD_CANCEL_DISABLE;
	engine_leave(dev);
	call_function(q);
	engine_enter(dev);
	dev->cancel_state = cancel;
	q->callback.fn(dev, &q->callback);
}
