/* SPDX-License-Identifier: Apache-2.0 */
/* objects.c - what the far objects of all kinds have in common. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "far/internal.h"
#include "util/error.h"

void *far_object(struct far_device *dev, enum object_kind kind, size_t size,
		 uint64_t handle)
{
	struct far *o = object_alloc(OBJECT_FAR(kind), size);

	if (o == NULL)
		return NULL;
	o->dev = dev;
	o->handle = handle;
	return o;
}

void far_object_free(enum object_kind kind, void *object)
{
	object_free(OBJECT_FAR(kind), object);
}

uint64_t far_handle(const struct far_device *dev, const void *o, enum object_kind kind,
		    const char *what, int *err)
{
	const struct far *f = o;

	if (o == NULL)
		return 0;
	if (!OBJECT_IS_FAR(f, kind)) {
		*err = OBJECT_OK(f, kind)
			       ? fail(EINVAL, "%s: it belongs to another device", what)
			       : object_bad(f, kind);
		return 0;
	}
	if (f->dev != dev)
		*err = fail(EINVAL, "%s: it belongs to another device", what);
	return f->handle;
}

int far_destroy(uint32_t op, const struct far *o)
{
	struct far_call c = {.op = op, .a = {o->handle}};
	int err = far_ask(o->dev, &c);

	return err == -ENODEV && atomic_load(&o->dev->lost) ? 0 : err;
}

uint64_t far_size(const void *in)
{
	uint32_t size;

	if (in == NULL)
		return FAR_NO_STRUCT;
	memcpy(&size, in, sizeof(size));
	return size;
}

int far_get(uint32_t op, const struct far *o, void *out)
{
	unsigned char answer[4096];
	struct far_call c = {.op = op,
			     .a = {o->handle, far_size(out)},
			     .in = answer,
			     .in_max = sizeof(answer)};
	int err = far_ask(o->dev, &c);

	/* .size keeps its value. */
	if (err == 0 && c.in_bytes > sizeof(uint32_t))
		memcpy((char *)out + sizeof(uint32_t), answer + sizeof(uint32_t),
		       c.in_bytes - sizeof(uint32_t));
	return err;
}

size_t far_copy_struct(void *at, size_t room, const void *in, int *err)
{
	uint64_t size = far_size(in);

	if (in == NULL)
		return 0;
	if (size > room) {
		*err = fail(E2BIG, "a struct of %llu bytes is newer than this library",
			    U64(size));
		return 0;
	}
	memcpy(at, in, size);
	return size;
}

/* ---- timelines --------------------------------------------------------------------- */

static struct far_timeline *find(const struct far_device *dev, uint64_t handle)
{
	struct far_timeline *t = dev->timelines;

	while (t != NULL && t->far.handle != handle)
		t = t->next;
	return t;
}

struct far_timeline *far_timeline_of(struct far_device *dev, uint64_t handle,
				     uint64_t parent)
{
	struct far_timeline *t;

	pthread_mutex_lock(&dev->lock);
	t = find(dev, handle);
	if (t == NULL) {
		t = far_object(dev, OBJECT_TIMELINE, sizeof(*t), handle);
		if (t != NULL) {
			t->parent = parent;
			t->next = dev->timelines;
			dev->timelines = t;
		}
	}
	pthread_mutex_unlock(&dev->lock);
	return t;
}

void far_timeline_free(struct far_timeline *t)
{
	struct far_device *dev = t->far.dev;
	struct far_timeline **at = &dev->timelines;

	pthread_mutex_lock(&dev->lock);
	while (*at != NULL && *at != t)
		at = &(*at)->next;
	if (*at != NULL)
		*at = t->next;
	pthread_mutex_unlock(&dev->lock);
	far_object_free(OBJECT_TIMELINE, t);
}

/* Take a timeline that goes with parent from the list. */
static struct far_timeline *child_of(struct far_device *dev, uint64_t parent)
{
	struct far_timeline *t;

	pthread_mutex_lock(&dev->lock);
	t = dev->timelines;
	while (t != NULL && t->parent != parent)
		t = t->next;
	pthread_mutex_unlock(&dev->lock);
	return t;
}

void far_timelines_free(struct far_device *dev, uint64_t parent)
{
	struct far_timeline *t;

	while ((t = child_of(dev, parent)) != NULL)
		far_timeline_free(t);
}

int far_point(struct far_device *dev, const struct far_call *c, uint64_t parent,
	      struct hal_point *done)
{
	struct far_timeline *t;

	if (done == NULL)
		return 0;
	t = far_timeline_of(dev, c->a[0], parent);
	if (t == NULL)
		return -ENOMEM;
	done->timeline = (struct hal_timeline *)t;
	done->value = c->a[1];
	return 0;
}

/* ---- timelines of the application -------------------------------------------------- */

static int timeline_made(struct far_device *dev, struct far_call *c,
			 struct hal_timeline **out)
{
	struct far_timeline *t;
	int err = far_ask(dev, c);

	if (err != 0)
		return err;
	t = far_timeline_of(dev, c->a[0], 0);
	if (t == NULL)
		return -ENOMEM;
	t->raised = c->op == FAR_TIMELINE;
	*out = (struct hal_timeline *)t;
	return 0;
}

int far_timeline_create(struct hal_device *dev, struct hal_timeline **out)
{
	struct far_call c = {.op = FAR_TIMELINE};

	if (out == NULL)
		return fail(EINVAL, "hal_timeline_create: timeline is NULL");
	return timeline_made((struct far_device *)dev, &c, out);
}

int far_timeline_import(struct hal_device *dev, int fd, struct hal_timeline **out)
{
	struct far_call c = {.op = FAR_TIMELINE_IMPORT, .out_fd = fd + 1};

	if (out == NULL)
		return fail(EINVAL, "hal_timeline_import: timeline is NULL");
	if (fd < 0 || fcntl(fd, F_GETFD) < 0)
		return fail(EBADF, "hal_timeline_import: fd %d is not open", fd);
	return timeline_made((struct far_device *)dev, &c, out);
}

int far_timeline_destroy(struct hal_timeline *timeline)
{
	struct far_timeline *t = (struct far_timeline *)timeline;
	int err = far_destroy(FAR_TIMELINE_DESTROY, &t->far);

	if (err == 0)
		far_timeline_free(t);
	return err;
}

uint64_t far_timeline_get_value(const struct hal_timeline *timeline, int *err)
{
	const struct far *t = (const struct far *)timeline;
	const struct far_told *told = ((const struct far_timeline *)timeline)->told;
	struct far_call c = {.op = FAR_TIMELINE_VALUE, .a = {t->handle}};
	int failed;

	/* A queue that has failed is asked for its error. */
	if (told != NULL && atomic_load(&told->open) != 0 && far_alive(t->dev)) {
		if (err != NULL)
			*err = 0;
		return atomic_load_explicit(&told->value, memory_order_acquire);
	}
	failed = far_ask(t->dev, &c);

	if (err != NULL)
		*err = failed != 0 ? failed : (int)(int64_t)c.a[1];
	return failed == 0 ? c.a[0] : 0;
}

int far_timeline_signal(struct hal_timeline *timeline, uint64_t value)
{
	const struct far *t = (const struct far *)timeline;
	struct far_call c = {.op = FAR_TIMELINE_SIGNAL, .a = {t->handle, value}};

	return far_ask(t->dev, &c);
}

int far_timeline_export(struct hal_timeline *timeline, uint32_t rights, int *fd)
{
	const struct far *t = (const struct far *)timeline;
	struct far_call c = {.op = FAR_TIMELINE_EXPORT, .a = {t->handle, rights}};
	int err;

	if (fd == NULL)
		return fail(EINVAL, "hal_timeline_export: fd is NULL");
	err = far_ask(t->dev, &c);
	if (err == 0)
		*fd = c.in_fd;
	return err;
}
