/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - open and close a far device; waits, completions and host functions. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ck_pr.h>

#include "far/internal.h"
#include "util/caller.h"
#include "util/error.h"
#include "util/futex.h"
#include "util/log.h"
#include "util/spin.h"

#define SCHEME "hald:"

/* ---- opening ----------------------------------------------------------------------- */

bool far_is_target(const char *target)
{
	return strncmp(target, SCHEME, sizeof(SCHEME) - 1) == 0;
}

/* Write the path of the socket of target to dev. */
static int set_path(struct far_device *dev, const char *target, const char *folder)
{
	const char *name = target + sizeof(SCHEME) - 1;

	if (name[0] == '\0' || strchr(name, '/') != NULL || strchr(name, '?') != NULL)
		return fail(
			EINVAL,
			"target \"%s\" is not of the form hald:NAME, without options: "
			"hald has them",
			target);
	if (strlen(folder) + strlen(name) + sizeof("/.sock") > sizeof(dev->path) ||
	    strlen(target) >= sizeof(dev->name))
		return fail(EINVAL, "%s: the path of its socket is longer than %zu bytes",
			    target, sizeof(dev->path) - 1);
	format_text(dev->name, sizeof(dev->name), "%s", target);
	format_text(dev->path, sizeof(dev->path), "%s/%s.sock", folder, name);
	return 0;
}

int far_open(const char *target, const char *folder, struct hal_device **out)
{
	struct far_device *dev = far_object(NULL, OBJECT_DEVICE, sizeof(*dev), 0);
	int err;

	if (dev == NULL)
		return -ENOMEM;
	dev->far.dev = dev;
	dev->bell = -1;
	atomic_init(&dev->serving, FAR_OPEN);
	(void)pthread_mutex_init(&dev->lock, NULL);
	err = set_path(dev, target, folder);
	if (err == 0)
		err = far_connect(dev);
	if (err != 0) {
		far_board_unmap(dev);
		pthread_mutex_destroy(&dev->lock);
		far_object_free(OBJECT_DEVICE, dev);
		return err;
	}
	LOG(HAL_LOG_INFO, "%s: opened %s, client %llu", dev->name, dev->info.name,
	    U64(dev->client[0]));
	*out = (struct hal_device *)dev;
	return 0;
}

int far_close(struct hal_device *device)
{
	struct far_device *dev = (struct far_device *)device;
	struct far_call c = {.op = FAR_CLOSE};
	int err;

	if (far_in_callback(dev))
		return fail(EDEADLK, "hal_close: the caller is a host function of %s",
			    dev->name);
	err = far_ask(dev, &c);
	if (err != 0 && !atomic_load(&dev->lost))
		return err;
	/* hald has answered the request for the next host function. */
	if (dev->has_callback_thread)
		(void)pthread_join(dev->callback_thread, NULL);
	far_disconnect(dev);
	while (dev->timelines != NULL)
		far_timeline_free(dev->timelines);
	far_board_unmap(dev);
	pthread_mutex_destroy(&dev->lock);
	far_object_free(OBJECT_DEVICE, dev);
	return 0;
}

/* ---- the device -------------------------------------------------------------------- */

int far_device_get_info(struct hal_device *dev, struct hal_device_info *info)
{
	struct far_device *far = (struct far_device *)dev;
	const size_t size = far_size(info);
	int err = far_get(FAR_DEVICE_INFO, &far->far, info);

	if (err == 0 || size < sizeof(info->size) || !atomic_load(&far->lost))
		return err;
	/* As of a device of this process that is lost. */
	memcpy(info, &far->info, size < sizeof(far->info) ? size : sizeof(far->info));
	info->size = (uint32_t)size;
	if (size >= offsetof(struct hal_device_info, lost) + sizeof(info->lost))
		info->lost = -ENODEV;
	return 0;
}

int far_device_get_stats(struct hal_device *dev, struct hal_stats *stats)
{
	return far_get(FAR_DEVICE_STATS, (const struct far *)dev, stats);
}

int far_device_get_policy(struct hal_device *dev, struct hal_policy_info *info)
{
	return far_get(FAR_GET_POLICY, (const struct far *)dev, info);
}

/* Refuse what would wait for the host function that calls it. */
static int wait_refuse(const struct far_device *dev, const char *what)
{
	return far_in_callback(dev)
		       ? fail(EDEADLK,
			      "%s: the caller is a host function of %s, which the device "
			      "waits for",
			      what, dev->name)
		       : 0;
}

int far_device_poll(struct hal_device *device, uint64_t ns)
{
	struct far_device *dev = (struct far_device *)device;
	struct far_call c = {.op = FAR_DEVICE_POLL, .a = {ns}};
	int err = wait_refuse(dev, "hal_device_poll");

	return err != 0 ? err : far_ask(dev, &c);
}

uint64_t far_device_get_time(struct hal_device *device)
{
	struct far_device *dev = (struct far_device *)device;
	struct far_call c = {.op = FAR_DEVICE_TIME};

	return far_ask(dev, &c) == 0 ? c.a[0] : 0;
}

int far_device_set_policy(struct hal_device *device, const char *name,
			  const char *const *options)
{
	struct far_device *dev = (struct far_device *)device;
	char texts[4096];
	struct far_call c = {.op = FAR_SET_POLICY, .out = texts};

	if (name == NULL)
		return fail(EINVAL, "hal_device_set_policy: name is NULL");
	do {
		size_t bytes = strlen(name) + 1;

		if (bytes > sizeof(texts) - c.out_bytes)
			return fail(EINVAL,
				    "hal_device_set_policy: name and options are "
				    "longer than %zu bytes",
				    sizeof(texts));
		memcpy(texts + c.out_bytes, name, bytes);
		c.out_bytes += bytes;
		name = options != NULL ? *options++ : NULL;
	} while (name != NULL);
	return far_ask(dev, &c);
}

int far_trace_start(struct hal_device *device, const char *path, uint64_t bytes)
{
	struct far_device *dev = (struct far_device *)device;
	struct far_call c = {.op = FAR_TRACE_START, .a = {bytes}};
	int fd, err;

	if (path == NULL || path[0] == '\0')
		return fail(EINVAL, "hal_trace_start: path is %s",
			    path == NULL ? "NULL" : "empty");
	/* hald empties it, unless it refuses: the file may be that of another trace. */
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return fail(errno, "hal_trace_start: %s: %s", path, hal_strerror(errno));
	c.out_fd = fd + 1;
	err = far_ask(dev, &c);
	(void)close(fd);
	return err;
}

int far_trace_stop(struct hal_device *device, uint64_t *events, uint64_t *dropped)
{
	struct far_device *dev = (struct far_device *)device;
	struct far_call c = {.op = FAR_TRACE_STOP};
	int err = far_ask(dev, &c);

	if (err == 0 && events != NULL)
		*events = c.a[0];
	if (err == 0 && dropped != NULL)
		*dropped = c.a[1];
	return err;
}

/* ---- waits ------------------------------------------------------------------------- */

/* Return the device of a point, which is to be a live one of a far device; NULL with an
 * error. */
static struct far_device *point_device(const struct hal_point *p, uint32_t i)
{
	const struct far *t = (const struct far *)p->timeline;

	if (OBJECT_IS_FAR(t, OBJECT_TIMELINE))
		return t->dev;
	if (OBJECT_OK(t, OBJECT_TIMELINE))
		(void)fail(
			ENOTSUP,
			"points[%u]: it belongs to a device of this process, others of "
			"these points to hald; wait for them one after the other",
			i);
	else
		(void)object_bad(t, OBJECT_TIMELINE);
	return NULL;
}

/* Copy the points to handles.  All are to be of one device. */
static int points_to_handles(struct far_device *dev, struct hal_point *to,
			     const struct hal_point *points, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct far *t = (const struct far *)points[i].timeline;
		const struct far_device *of = point_device(&points[i], i);

		if (of == NULL)
			return OBJECT_OK(t, OBJECT_TIMELINE) ? -ENOTSUP : -EINVAL;
		if (of != dev)
			return fail(
				ENOTSUP,
				"points[%u]: it belongs to %s, others of these points "
				"to %s; wait for them one after the other",
				i, of->name, dev->name);
		to[i].value = points[i].value;
		memcpy(&to[i].timeline, &t->handle, sizeof(t->handle));
	}
	return 0;
}

/* Return whether all points are of dev. */
static bool all_of(const struct far_device *dev, const struct hal_point *points,
		   uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct far *t = (const struct far *)points[i].timeline;

		if (!OBJECT_IS_FAR(t, OBJECT_TIMELINE) || t->dev != dev)
			return false;
	}
	return true;
}

/* Return whether the board says that p is reached. */
static bool is_told(const struct hal_point *p)
{
	const struct far_timeline *t = (const struct far_timeline *)p->timeline;

	return t->told != NULL &&
	       atomic_load_explicit(&t->told->value, memory_order_acquire) >= p->value &&
	       atomic_load(&t->fd_value) == 0;
}

/* Return what hal_wait returns if the board says that the wait for these points is over,
 * else -1. */
static int all_told(const struct hal_point *points, uint32_t count, uint32_t flags)
{
	bool any = (flags & HAL_WAIT_ANY) != 0;

	for (uint32_t i = 0; i < count; i++)
		if (is_told(&points[i]) == any)
			return any ? (int)i : -1;
	return any ? -1 : 0;
}

/* Adaptive spin of this thread; see api/wait.c.  It may last for as long as a wait by
 * request takes, with its two wake-ups in hald and one here. */
#define PATIENCE_NS UINT64_C(100000)

static _Thread_local struct spin spin = {PATIENCE_NS};

/* Look at the board for as long as a sleep would take.  Return as all_told. */
static int look(const struct hal_point *points, uint32_t count, uint32_t flags)
{
	const uint64_t from = monotonic_ns();
	uint64_t now = from;

	while (now < from + spin.ns) {
		for (int i = 0; i < 16; i++) {
			int told = all_told(points, count, flags);

			if (told >= 0) {
				spin_learn(&spin, monotonic_ns() - from, PATIENCE_NS);
				return told;
			}
			ck_pr_stall();
		}
		now = monotonic_ns();
	}
	return -1;
}

/* hald has found these points reached, and so has told their descriptors. */
static void fds_told(const struct hal_point *points, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct far_timeline *t = (struct far_timeline *)points[i].timeline;
		uint64_t value = atomic_load(&t->fd_value);

		if (value <= points[i].value)
			(void)atomic_compare_exchange_strong(&t->fd_value, &value, 0);
	}
}

/* Ask for c, whose payload is handles, and free that, even if the thread is cancelled. */
static int ask_wait(struct far_device *dev, struct far_call *c, struct hal_point *handles)
{
	int err;

	pthread_cleanup_push(free, handles);
	err = far_ask_wait(dev, c);
	pthread_cleanup_pop(1);
	return err;
}

int far_wait(const struct hal_point *points, uint32_t count, uint32_t flags,
	     int64_t until_ns)
{
	struct far_device *dev = NULL;
	struct far_call c = {.op = FAR_WAIT, .a = {flags, (uint64_t)until_ns}};
	struct hal_point *handles;
	uint64_t from;
	int err;

	for (uint32_t i = 0; dev == NULL && i < count; i++)
		if (OBJECT_IS_FAR((const struct far *)points[i].timeline,
				  OBJECT_TIMELINE))
			dev = point_device(&points[i], i);
	err = until_ns != 0 ? wait_refuse(dev, "hal_wait") : 0;
	if (err != 0)
		return err;
	if (dev != NULL && all_of(dev, points, count)) {
		bool real = (dev->info.caps & HAL_CAP_VIRTUAL_CLOCK) == 0;
		int told = all_told(points, count, flags);

		if (told < 0 && until_ns != 0 && real)
			told = look(points, count, flags);
		if (told >= 0)
			return told;
	}
	handles = calloc((size_t)count + 1, sizeof(*handles));
	if (handles == NULL)
		return fail(ENOMEM, "hal_wait: no memory for %u points", count);
	err = points_to_handles(dev, handles, points, count);
	c.out = handles;
	c.out_bytes = count * sizeof(*handles);
	if (err != 0) {
		free(handles);
		return err;
	}
	from = monotonic_ns();
	err = ask_wait(dev, &c, handles);
	spin_learn(&spin, monotonic_ns() - from, PATIENCE_NS);
	if (err == 0 && (flags & HAL_WAIT_ANY) == 0)
		fds_told(points, count);
	return err;
}

int far_point_open_fd(const struct hal_point *point)
{
	struct far_timeline *t = (struct far_timeline *)point->timeline;
	struct far_call c = {.op = FAR_POINT_FD, .a = {t->far.handle, point->value}};
	uint64_t last = atomic_load(&t->fd_value);
	int err;

	while (last < point->value &&
	       !atomic_compare_exchange_weak(&t->fd_value, &last, point->value))
		;
	err = far_ask(t->far.dev, &c);
	return err != 0 ? err : c.in_fd;
}

/* ---- completions ------------------------------------------------------------------- */

int far_completions_create(struct hal_device *device, uint32_t entries,
			   struct hal_completions **out)
{
	struct far_device *dev = (struct far_device *)device;
	struct far_call c = {.op = FAR_COMPLETIONS, .a = {entries}};
	struct far_completions *ring;
	int err;

	if (out == NULL)
		return fail(EINVAL, "hal_completions_create: ring is NULL");
	err = far_ask(dev, &c);
	if (err != 0)
		return err;
	ring = far_object(dev, OBJECT_COMPLETIONS, sizeof(*ring), c.a[0]);
	if (ring == NULL)
		return -ENOMEM;
	ring->fd = -1;
	*out = (struct hal_completions *)ring;
	return 0;
}

int far_completions_destroy(struct hal_completions *completions)
{
	struct far_completions *ring = (struct far_completions *)completions;
	int err = far_destroy(FAR_COMPLETIONS_DESTROY, &ring->far);

	if (err != 0)
		return err;
	if (ring->fd >= 0)
		(void)close(ring->fd);
	far_object_free(OBJECT_COMPLETIONS, ring);
	return 0;
}

int far_completions_read(struct hal_completions *completions, struct hal_completion *out,
			 uint32_t max, int64_t until_ns)
{
	const struct far_completions *ring = (const struct far_completions *)completions;
	struct far_call c = {.op = FAR_COMPLETIONS_READ,
			     .a = {ring->far.handle, max, (uint64_t)until_ns},
			     .in = out,
			     .in_max = max * sizeof(*out)};
	int n = until_ns != 0 ? wait_refuse(ring->far.dev, "hal_completions_read") : 0;

	if (n != 0)
		return n;
	if (out == NULL || max == 0)
		return fail(EINVAL, "hal_completions_read: %s",
			    out == NULL ? "out is NULL" : "max is 0");
	/* .queue of each entry is the address that far_queue_create has given. */
	return far_ask(ring->far.dev, &c);
}

int far_completions_get_fd(struct hal_completions *completions)
{
	struct far_completions *ring = (struct far_completions *)completions;
	struct far_device *dev = ring->far.dev;
	struct far_call c = {.op = FAR_COMPLETIONS_FD, .a = {ring->far.handle}};
	int fd;

	pthread_mutex_lock(&dev->lock);
	fd = ring->fd;
	pthread_mutex_unlock(&dev->lock);
	if (fd >= 0)
		return fd;
	fd = far_ask(dev, &c);
	if (fd < 0)
		return fd;
	pthread_mutex_lock(&dev->lock);
	if (ring->fd < 0)
		ring->fd = c.in_fd;
	else
		(void)close(c.in_fd); /* another thread was first */
	fd = ring->fd;
	pthread_mutex_unlock(&dev->lock);
	return fd;
}

/* ---- host functions ---------------------------------------------------------------- */

/* The device whose host function this thread is in. */
static _Thread_local const struct far_device *calling;

bool far_in_callback(const struct far_device *dev)
{
	return calling == dev;
}

/* Call the host functions that hald asks for, one after the other, until hald ends or the
 * device is closed. */
static void *callbacks_main(void *arg)
{
	struct far_device *dev = arg;

	for (;;) {
		struct far_call next = {.op = FAR_CALLBACK}, over = {.op = FAR_CALLED};
		hal_host_fn fn;
		void *user;

		if (far_ask(dev, &next) != 0)
			return NULL;
		memcpy(&fn, &next.a[1], sizeof(fn));
		memcpy(&user, &next.a[2], sizeof(user));
		calling = dev;
		fn(user);
		calling = NULL;
		over.a[0] = next.a[0];
		if (far_ask(dev, &over) != 0)
			return NULL;
	}
}

int far_callbacks_start(struct far_device *dev)
{
	int err = 0;

	pthread_mutex_lock(&dev->lock);
	if (!dev->has_callback_thread) {
		err = pthread_create(&dev->callback_thread, NULL, callbacks_main, dev);
		dev->has_callback_thread = err == 0;
	}
	pthread_mutex_unlock(&dev->lock);
	return err != 0 ? fail(err, "%s: no thread for host functions: %s", dev->name,
			       hal_strerror(err))
			: 0;
}
