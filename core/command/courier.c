/* SPDX-License-Identifier: Apache-2.0 */
/* courier.c - carry timelines to and from other processes; see courier.h. */
#include "command/courier.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "command/queue.h"
#include "command/wire.h"
#include "loop/engine.h"
#include "space/partition.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/list.h"

struct courier {
	struct hal_device *dev;
	pthread_t thread;
	int epoll_fd;
	int wake_fd;       /* an eventfd */
	atomic_uint woken; /* 1: .wake_fd has been signalled */
	atomic_bool stop;
	struct list links; /* guarded by dev->share.lock */
};

/* One export or import. */
struct link {
	/* Constant. */
	struct courier *courier;
	bool imported;
	bool sends;  /* the other side follows this one's timeline */
	bool brings; /* the other side may raise this one's timeline */

	/* Only the engine uses these, until .over is set. */
	struct waiter waiter;
	/* Last value that the other side has sent.  The courier reads it, between its
	 * calls to the engine. */
	uint64_t known;
	struct wire_state out; /* why the timeline has failed or ended */
	/* Written by the engine. */
	_Atomic uint64_t value;
	/* The timeline has failed, has been destroyed or is at its last value.  From here
	 * on the engine does not use the link, nor the courier the timeline. */
	atomic_bool over;

	/* Guarded by dev->share.lock. */
	struct list on_courier;
	struct wire wire;
	struct wire_state in;
	uint64_t sent;   /* last value that the other side has got, or has sent itself */
	const char *why; /* the other side is gone; NULL: it is not */
};

static void courier_wake(struct courier *c)
{
	if (atomic_exchange(&c->woken, 1) == 0)
		fd_signal(c->wake_fd);
}

/* ---- engine ------------------------------------------------------------------------ */

/* Let go of the timeline of l, which is not over. */
static void detach(struct link *l)
{
	struct courier *c = l->courier;

	if (l->brings) {
		atomic_fetch_sub(&l->waiter.timeline->outside, 1);
		atomic_fetch_sub(&c->dev->share.outside, 1);
	}
	atomic_store(&l->over, true);
	/* From here on the courier may free l. */
	courier_wake(c);
}

/* Write to l->out why t, the timeline of l, has failed or is being destroyed. */
static void explain(struct link *l, const struct hal_timeline *t)
{
	l->out.err = timeline_error(t);
	if (l->out.err != 0)
		format_text(l->out.text, sizeof(l->out.text), "%s", timeline_text(t));
	else
		l->out.end = t->queue != NULL || t->partition != NULL
				     ? WIRE_OWNER_DESTROYED
				     : WIRE_DESTROYED;
}

/* The waiter's function: the timeline has been raised, has failed (err) or is being
 * destroyed. */
static void changed(struct waiter *w, int err)
{
	struct link *l = container_of(w, struct link, waiter);
	struct hal_timeline *t = w->timeline;
	const uint64_t value = atomic_load(&t->value);

	atomic_store(&l->value, value);
	if (err != 0)
		explain(l, t);
	if (err != 0 || value == UINT64_MAX) {
		detach(l);
		return;
	}
	/* An import that only follows has to know of the end alone. */
	timeline_add_waiter(t, w, l->sends ? value + 1 : UINT64_MAX);
	if (value > l->known)
		courier_wake(l->courier);
}

/* The other side of l, whose timeline is t, is gone. */
static void lose(struct link *l, struct hal_timeline *t)
{
	char text[200];

	if (l->imported) {
		format_text(text, sizeof(text), "imported timeline %u: %s", t->obj.id,
			    l->why);
		timeline_fail(t, -ECANCELED, text, t->dev);
	} else {
		timeline_drop_waiter(&l->waiter);
		detach(l);
	}
}

static atomic_uint deliveries;

unsigned int courier_deliveries(void)
{
	return atomic_load(&deliveries);
}

/* Apply l->in and l->why to the timeline of l.  Called by the courier. */
static int deliver(struct hal_device *dev, void *arg)
{
	struct link *l = arg;
	struct hal_timeline *t = l->waiter.timeline;

	atomic_fetch_add(&deliveries, 1);
	if (!atomic_load(&l->over) && l->brings && l->in.value > l->known) {
		l->known = l->in.value;
		timeline_raise(t, l->in.value, dev);
	}
	/* Each step may have ended the link. */
	if (!atomic_load(&l->over) && l->brings && l->in.err != 0)
		timeline_fail(t, l->in.err, l->in.text, dev);
	if (!atomic_load(&l->over) && l->why != NULL)
		lose(l, t);
	atomic_fetch_add(&deliveries, 1);
	return 0;
}

/* Connect l with its timeline. */
static int attach(struct hal_device *dev, void *arg)
{
	struct link *l = arg;
	struct hal_timeline *t = l->waiter.timeline;

	if (l->imported) {
		t->obj.id = dev->next_timeline_id++;
		atomic_fetch_add(&dev->timelines, 1);
	}
	if (l->brings) {
		atomic_fetch_add(&t->outside, 1);
		atomic_fetch_add(&dev->share.outside, 1);
	}
	l->waiter.fn = changed;
	changed(&l->waiter, timeline_error(t));
	return deliver(dev, l);
}

int courier_awaited(struct hal_device *dev, void *arg)
{
	(void)arg;
	hal_list_for_each (p, &dev->space.partitions) {
		const struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &part->queues)
			if (timeline_outside(
				    &container_of(it, struct hal_queue, on_partition)
					     ->waiter))
				return 1;
	}
	return 0;
}

/* ---- the thread -------------------------------------------------------------------- */

/* Say why the other side is gone. */
static const char *why_gone(enum wire_heard heard, uint32_t end)
{
	if (heard == WIRE_BROKEN)
		return "the process of the exported timeline has sent a malformed "
		       "message";
	switch (end) {
	case WIRE_DESTROYED:
		return "the exported timeline has been destroyed";
	case WIRE_OWNER_DESTROYED:
		return "the exported timeline has been destroyed, with its queue or "
		       "partition";
	case WIRE_CLOSED:
		return "the device of the exported timeline has been closed";
	default:
		return "the process of the exported timeline has ended";
	}
}

/* Read the other side's half of l. */
static void read_half(struct link *l)
{
	wire_read(&l->wire, &l->in);
	if (l->brings && l->in.value > l->sent)
		l->sent = l->in.value;
}

/* Find out what has come from the other side of l. */
static void listen_to(struct link *l)
{
	enum wire_heard heard = wire_listen(&l->wire);

	if (heard == WIRE_QUIET)
		return;
	/* Who may not signal has nothing to say. */
	if (heard == WIRE_RUNG && !l->brings)
		heard = WIRE_BROKEN;
	read_half(l);
	if (heard != WIRE_RUNG)
		l->why = why_gone(heard, l->in.end);
}

/* Write the state of l's timeline to the other side, if it has changed. */
static void publish(struct link *l, bool over)
{
	const uint64_t value = atomic_load(&l->value);
	struct wire_state value_only = {.value = value};

	if (!l->sends || (value <= l->sent && !over))
		return;
	l->sent = value;
	if (over)
		l->out.value = value;
	wire_write(&l->wire, over ? &l->out : &value_only);
}

static void end_link(struct link *l)
{
	/* Closing alone does not remove a socket that others have, too. */
	(void)epoll_ctl(l->courier->epoll_fd, EPOLL_CTL_DEL, l->wire.fd, NULL);
	wire_close(&l->wire);
	list_take(&l->on_courier);
	free(l);
}

/* Carry what has changed on either side of l; free l once one of them has ended. */
static void serve(struct link *l)
{
	bool over;

	if (l->why != NULL || l->in.err != 0 || l->in.value > l->known)
		(void)engine_call(l->courier->dev, deliver, l);
	over = atomic_load(&l->over);
	publish(l, over);
	if (over)
		end_link(l);
}

/* The device is being closed, and no import is left. */
static void close_link(struct link *l)
{
	l->why = why_gone(WIRE_GONE, WIRE_CLOSED);
	(void)engine_call(l->courier->dev, deliver, l);
	if (l->out.err == 0 && l->out.end == WIRE_LIVE)
		l->out.end = WIRE_CLOSED;
	serve(l);
}

static void *courier_main(void *arg)
{
	struct courier *c = arg;
	bool stop = false;

	while (!stop) {
		struct epoll_event events[32];
		int n = epoll_wait(c->epoll_fd, events, ARRAY_LENGTH(events), -1);

		pthread_mutex_lock(&c->dev->share.lock);
		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr != NULL) {
				listen_to(events[i].data.ptr);
				continue;
			}
			fd_silence(c->wake_fd);
			/* What changes from here on signals again. */
			(void)atomic_exchange(&c->woken, 0);
		}
		stop = atomic_load(&c->stop);
		hal_list_for_each (it, &c->links) {
			struct link *l = container_of(it, struct link, on_courier);

			if (stop)
				close_link(l);
			else
				serve(l);
		}
		pthread_mutex_unlock(&c->dev->share.lock);
	}
	return NULL;
}

/* ---- start and stop ---------------------------------------------------------------- */

static void courier_free(struct courier *c)
{
	if (c->epoll_fd >= 0)
		fd_close(c->epoll_fd);
	if (c->wake_fd >= 0)
		fd_close(c->wake_fd);
	free(c);
}

/* Make the descriptors of c and start its thread.  Return 0 or errno. */
static int launch(struct courier *c)
{
	struct epoll_event wake = {.events = EPOLLIN};
	sigset_t everything, old;
	int err;

	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->epoll_fd < 0 || c->wake_fd < 0 ||
	    epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, c->wake_fd, &wake) != 0)
		return errno;
	/* Leave signals to the application's threads. */
	(void)sigfillset(&everything);
	(void)pthread_sigmask(SIG_SETMASK, &everything, &old);
	err = pthread_create(&c->thread, NULL, courier_main, c);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err == 0)
		(void)pthread_setname_np(c->thread, "hal-courier");
	return err;
}

/* Start the courier of dev, if it has none.  The caller holds the lock. */
static int courier_start(struct hal_device *dev)
{
	struct courier *c;
	int err;

	if (dev->share.courier != NULL)
		return 0;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return fail(ENOMEM, "%s: no memory to share timelines", dev->name);
	c->dev = dev;
	list_init(&c->links);
	err = launch(c);
	if (err != 0) {
		courier_free(c);
		return fail(err, "%s: cannot start the thread for shared timelines: %s",
			    dev->name, hal_strerror(err));
	}
	dev->share.courier = c;
	return 0;
}

void courier_stop(struct hal_device *dev)
{
	struct courier *c = dev->share.courier;

	if (c == NULL)
		return;
	atomic_store(&c->stop, true);
	courier_wake(c);
	(void)pthread_join(c->thread, NULL);
	courier_free(c);
	dev->share.courier = NULL;
}

/* ---- export and import ------------------------------------------------------------- */

static struct link *link_make(struct courier *c)
{
	struct link *l = calloc(1, sizeof(*l));

	if (l == NULL)
		(void)fail(ENOMEM, "%s: no memory to share a timeline", c->dev->name);
	else
		l->courier = c;
	return l;
}

/* Begin to carry between l and its timeline.  Return 0 or -errno; then the engine does
 * not know l. */
static int link_begin(struct link *l)
{
	struct courier *c = l->courier;
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};

	if (epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, l->wire.fd, &e) != 0)
		return fail(errno, "%s: cannot watch a shared timeline: %s", c->dev->name,
			    hal_strerror(errno));
	/* The courier serves l only after the caller has released the lock. */
	list_add_before(&c->links, &l->on_courier);
	(void)engine_call(c->dev, attach, l);
	publish(l, atomic_load(&l->over));
	return 0;
}

int courier_export(struct hal_timeline *t, uint32_t rights, int *fd)
{
	struct hal_device *dev = t->dev;
	struct link *l = NULL;
	int cancel = cancel_hold(), err, out;

	pthread_mutex_lock(&dev->share.lock);
	err = courier_start(dev);
	if (err == 0 && (l = link_make(dev->share.courier)) == NULL)
		err = -ENOMEM;
	if (err == 0)
		err = wire_export(&l->wire, rights, &out);
	if (err == 0) {
		l->waiter.timeline = t;
		l->sends = true;
		l->brings = (rights & HAL_TIMELINE_SIGNAL) != 0;
		err = link_begin(l);
		if (err == 0) {
			*fd = out;
			l = NULL;
		} else {
			fd_close(out);
			wire_close(&l->wire);
		}
	}
	free(l);
	pthread_mutex_unlock(&dev->share.lock);
	cancel_release(cancel);
	return err;
}

/* Make the timeline of l, whose wire is open, and begin to carry.  Return 0 or -errno. */
static int import_link(struct link *l, struct hal_timeline **timeline)
{
	struct hal_device *dev = l->courier->dev;
	struct hal_timeline *t = timeline_make(dev);
	int err;

	if (t == NULL)
		return -ENOMEM;
	l->waiter.timeline = t;
	l->imported = true;
	l->brings = true;
	l->sends = (l->wire.rights & HAL_TIMELINE_SIGNAL) != 0;
	if (l->sends)
		t->raiser = dev;
	read_half(l);
	err = link_begin(l);
	if (err == 0) {
		*timeline = t;
		return 0;
	}
	object_retire(&t->obj);
	object_free(OBJECT_TIMELINE, t);
	return err;
}

int courier_import(struct hal_device *dev, int fd, struct hal_timeline **timeline)
{
	struct link *l = NULL;
	int cancel = cancel_hold(), err;

	pthread_mutex_lock(&dev->share.lock);
	err = courier_start(dev);
	if (err == 0 && (l = link_make(dev->share.courier)) == NULL)
		err = -ENOMEM;
	if (err == 0)
		err = wire_import(&l->wire, fd);
	if (err == 0) {
		err = import_link(l, timeline);
		if (err == 0)
			l = NULL;
		else
			wire_put_back(&l->wire);
	}
	free(l);
	pthread_mutex_unlock(&dev->share.lock);
	cancel_release(cancel);
	return err;
}
