/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completions.c - the reader's side of a completion ring: create, destroy, read.
 *
 * The engine adds an entry when a submission completes or fails (command/completions.c).
 * One thread reads them with hal_completions_read, or polls the fd, which is readable
 * while entries are unread.
 */
#include "command/completions.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/handle.h"
#include "command/callback.h"
#include "command/courier.h"
#include "command/flow.h"
#include "far/far.h"
#include "loop/engine.h"
#include "util/fd.h"
#include "util/futex.h"

#define ENTRIES_MAX 65536u

static int enter(struct hal_device *dev, void *arg)
{
	struct hal_completions *c = arg;

	list_add_before(&dev->command.rings, &c->on_device);
	return 0;
}

static int leave(struct hal_device *dev, void *arg)
{
	struct hal_completions *c = arg;

	(void)dev;
	list_del(&c->on_device);
	return 0;
}

int hal_completions_create(struct hal_device *dev, uint32_t entries,
			   struct hal_completions **out)
{
	struct hal_completions *c;
	int fd[2], err;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE,
				  far_completions_create(dev, entries, out));
	if (out == NULL)
		return fail(EINVAL, "hal_completions_create: ring is NULL");
	if (entries == 0 || entries > ENTRIES_MAX || (entries & (entries - 1)) != 0)
		return fail(
			EINVAL,
			"hal_completions_create: entries is %u; it must be a power of "
			"two, at most %u",
			entries, ENTRIES_MAX);
	c = object_alloc(OBJECT_COMPLETIONS, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->dev = dev;
	c->size = entries;
	c->entries = calloc(entries, sizeof(*c->entries));
	if (c->entries == NULL || fd_pair(fd, dev->for_processes) != 0) {
		err = c->entries == NULL
			      ? fail(ENOMEM, "no memory for %u completions", entries)
			      : fail(errno,
				     "hal_completions_create: cannot make a file "
				     "descriptor: %s",
				     hal_strerror(errno));
		free(c->entries);
		object_free(OBJECT_COMPLETIONS, c);
		return err;
	}
	c->fd = fd[0];
	c->signal_fd = fd[1];
	list_init(&c->on_device);
	(void)engine_call(dev, enter, c);
	atomic_fetch_add(&dev->rings, 1);
	*out = c;
	return 0;
}

int hal_completions_destroy(struct hal_completions *c)
{
	if (c == NULL)
		return 0;
	if (!OBJECT_OK(c, OBJECT_COMPLETIONS))
		return FAR_OR_BAD(c, OBJECT_COMPLETIONS, far_completions_destroy(c));
	if (atomic_load(&c->queues) != 0)
		return fail(EBUSY, "the completion ring is in use by queues (%u)",
			    atomic_load(&c->queues));
	object_retire(&c->obj);
	(void)engine_call(c->dev, leave, c);
	atomic_fetch_sub(&c->dev->rings, 1);
	fd_close(c->fd);
	fd_close(c->signal_fd);
	free(c->entries);
	c->entries = NULL;
	object_free(OBJECT_COMPLETIONS, c);
	return 0;
}

int hal_completions_get_fd(struct hal_completions *c)
{
	int err;

	if (!OBJECT_OK(c, OBJECT_COMPLETIONS))
		return FAR_OR_BAD(c, OBJECT_COMPLETIONS, far_completions_get_fd(c));
	err = sleep_refuse(c->dev, "hal_completions_get_fd");
	return err != 0 ? err : c->fd;
}

/* Move up to max entries to out.  Return their number. */
static uint32_t take_entries(struct hal_completions *c, struct hal_completion *out,
			     uint32_t max)
{
	uint32_t head = atomic_load_explicit(&c->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&c->tail, memory_order_acquire);
	uint32_t n = 0;

	for (; n < max && head != tail; n++)
		out[n] = c->entries[head++ & (c->size - 1)];
	if (n == 0)
		return 0;
	atomic_store_explicit(&c->head, head, memory_order_release);
	atomic_fetch_sub_explicit(&c->taken, n, memory_order_release);
	return n;
}

static bool empty(struct hal_completions *c)
{
	return atomic_load(&c->head) == atomic_load(&c->tail);
}

/* Fail because no entry will come any more. */
static COLD int over(const struct hal_completions *c)
{
	return fail(ENODEV, "%s is lost, and all its completions have been read: %s",
		    c->dev->name, c->dev->lost_why);
}

/* Wait until the engine has signalled the fd for every entry that has been read.  An
 * entry is visible to the reader a moment before the engine signals the fd. */
static void wait_noticed(struct hal_completions *c)
{
	unsigned int head = atomic_load(&c->head), noticed;

	while ((noticed = atomic_load(&c->noticed)) - head > c->size) {
		atomic_store(&c->awaited, 1);
		if (atomic_load(&c->noticed) == noticed)
			futex_wait(&c->noticed, noticed, NULL);
	}
	atomic_store(&c->awaited, 0);
}

/* Make the fd unreadable if no entry is unread and more may come. */
static void silence_fd(struct hal_completions *c)
{
	if (!empty(c))
		return;
	wait_noticed(c);
	if (atomic_load(&c->notified) == 0)
		return;
	fd_silence(c->fd);
	atomic_store(&c->notified, 0);
	/* An entry added, or a loss, before .notified was cleared has not signalled the
	 * fd. */
	if (!empty(c) || completions_over(c))
		completions_notify(c);
}

/* clock=real: sleep until c has an unread entry.  Return 0 or -errno. */
static int read_real(struct hal_completions *c, int64_t until_ns)
{
	while (empty(c) && !completions_over(c)) {
		struct pollfd fd = {.fd = c->fd, .events = POLLIN};
		uint64_t now = monotonic_ns();
		struct timespec t;
		int cancel, err;

		if (until_ns != HAL_FOREVER && (uint64_t)until_ns <= now)
			return fail(ETIMEDOUT, "no submission has completed yet");
		t = timespec_of(until_ns != HAL_FOREVER ? (uint64_t)until_ns - now : 0);
		cancel = cancel_hold();
		err = ppoll(&fd, 1, until_ns != HAL_FOREVER ? &t : NULL, NULL);
		cancel_release(cancel);
		if (err < 0 && errno != EINTR)
			return fail(errno, "hal_completions_read: %s",
				    hal_strerror(errno));
		silence_fd(c); /* the fd may be readable because of old entries */
	}
	return 0;
}

/* Device time that a virtual device runs between two reads of the host's clock, ns. */
#define SLICE_NS UINT64_C(4096)

static bool is_past(int64_t until_ns)
{
	return until_ns != HAL_FOREVER && monotonic_ns() >= (uint64_t)until_ns;
}

/* Return the device time up to which dev may run before until_ns must be checked. */
static uint64_t turn_limit(const struct hal_device *dev, int64_t until_ns)
{
	if (until_ns == HAL_FOREVER)
		return UINT64_MAX;
	return hal_bk_after(dev->now, until_ns != 0 ? SLICE_NS : 0);
}

/* Run engine turns until c has an unread entry or until_ns has passed.  Return false
 * if the device has nothing left to do.  Engine only. */
static bool run_engine(struct hal_completions *c, int64_t until_ns)
{
	struct hal_device *dev = c->dev;

	for (;;) {
		uint64_t until = turn_limit(dev, until_ns);
		bool did = engine_turn(dev, until, false);

		if (!empty(c) || (until_ns == 0 ? !did : is_past(until_ns)))
			return true;
		if (!did && (until_ns == HAL_FOREVER || dev->command.pending == 0 ||
			     dev->now < until))
			return false;
	}
}

/* Sleep until the device of c may have new messages.  Its work waits for a timeline that
 * another process may raise. */
static void sleep_for_process(struct hal_completions *c)
{
	struct hal_device *dev = c->dev;
	unsigned int seen;

	if (engine_message_watch(dev, &seen) && empty(c))
		engine_message_sleep(dev, seen);
	engine_message_over(dev);
}

/* clock=virtual: be the engine until c has an unread entry.  Return 0 or -errno. */
static int read_virtual(struct hal_completions *c, int64_t until_ns)
{
	struct hal_device *dev = c->dev;
	bool busy;

	while (empty(c) && !completions_over(c)) {
		/* What another process raises meanwhile may make work runnable. */
		const unsigned int delivered = courier_deliveries();

		engine_enter(dev);
		busy = empty(c) && run_engine(c, until_ns);
		engine_leave(dev);
		if (!empty(c) || completions_over(c) || until_ns == 0)
			return 0;
		if (is_past(until_ns))
			return fail(ETIMEDOUT, "no submission has completed yet");
		if (busy)
			continue;
		if (atomic_load(&dev->command.callbacks_begun) != 0)
			engine_callback_sleep(dev);
		else if (atomic_load(&dev->share.outside) != 0 &&
			 engine_call(dev, courier_awaited, NULL) != 0)
			sleep_for_process(c);
		else if (courier_deliveries() == delivered)
			return fail(EDEADLK, "no work is left that could complete");
	}
	return 0;
}

int hal_completions_read(struct hal_completions *c, struct hal_completion *out,
			 uint32_t max, int64_t until_ns)
{
	uint32_t n;
	int err = 0;

	if (!OBJECT_OK(c, OBJECT_COMPLETIONS))
		return FAR_OR_BAD(c, OBJECT_COMPLETIONS,
				  far_completions_read(c, out, max, until_ns));
	if (out == NULL || max == 0)
		return fail(EINVAL, "hal_completions_read: out is NULL or max is 0");
	if (until_ns < 0)
		return fail(EINVAL, "hal_completions_read: until_ns %lld is negative",
			    (long long)until_ns);
	if (empty(c)) {
		/* Deadline 0 does not wait, so it is allowed in a host function, too. */
		if (until_ns != 0)
			err = callback_refuse(c->dev, "hal_completions_read");
		if (err == 0 && c->dev->virtual_clock)
			err = read_virtual(c, until_ns);
		else if (err == 0 && until_ns != 0)
			err = read_real(c, until_ns);
	}
	if (err != 0)
		return err;
	if (UNLIKELY(empty(c) && completions_over(c)))
		return over(c);
	n = take_entries(c, out, max < INT32_MAX ? max : INT32_MAX);
	silence_fd(c);
	return (int)n;
}
