/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c - submitted waits for points of another device. */
#include "command/foreign.h"

#include <errno.h>
#include <stdlib.h>

#include "loop/engine.h"
#include "util/error.h"

/* Drop a reference to f; free it with the last. */
static void release(struct foreign *f)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a reference is held */
	struct hal_device *dev = f->line.dev;

	if (atomic_fetch_sub(&f->refs, 1) != 1)
		return;
	timeline_fini(&f->line);
	free(f);
	/* From here on the waiting device may be closed. */
	atomic_fetch_sub(&dev->command.foreign, 1);
}

/* End the claim of f on the timeline of its point, which may then be destroyed. */
static void release_point(struct foreign *f)
{
	atomic_fetch_sub(&f->point.timeline->pending, 1);
	release(f);
}

/* Handle .told: the point is reached or has failed.  Waiting engine. */
static void read_told(struct hal_device *dev, struct message *msg)
{
	struct foreign *f = container_of(msg, struct foreign, told);

	f->over = true;
	if (f->err == 0)
		timeline_raise(&f->line, 1, dev);
	else
		timeline_fail(&f->line, f->err, f->text, dev);
	dev->acted = true;
	release_point(f);
}

/* The waiter's function: the point is reached, or has failed with err.  Point's engine.
 */
static void point_ended(struct waiter *w, int err)
{
	struct foreign *f = container_of(w, struct foreign, waiter);
	const char *why = err != 0 ? timeline_text(f->point.timeline) : NULL;

	f->err = err;
	format_text(f->text, sizeof(f->text), "%s",
		    why != NULL ? why : hal_strerror(err));
	engine_post(f->line.dev, &f->told);
}

/* Handle .add.  Point's engine. */
static void read_add(struct hal_device *dev, struct message *msg)
{
	struct foreign *f = container_of(msg, struct foreign, add);
	struct hal_timeline *t = f->point.timeline;
	int state = timeline_test(t, f->point.value);

	(void)dev;
	f->waiter.timeline = t;
	f->waiter.fn = point_ended;
	if (state == 0)
		timeline_add_waiter(t, &f->waiter, f->point.value);
	else
		point_ended(&f->waiter, state < 0 ? state : 0);
}

/* Handle .drop: the record has retired without the point.  Point's engine. */
static void read_drop(struct hal_device *dev, struct message *msg)
{
	struct foreign *f = container_of(msg, struct foreign, drop);

	(void)dev;
	if (f->waiter.waiting) {
		timeline_drop_waiter(&f->waiter);
		release_point(f);
	}
	release(f);
}

struct foreign *foreign_make(struct hal_device *dev, const struct hal_point *point)
{
	struct foreign *f = calloc(1, sizeof(*f));

	if (f == NULL) {
		(void)fail(ENOMEM, "no memory to wait for a point of another device");
		return NULL;
	}
	timeline_init(&f->line, dev);
	f->point = *point;
	f->add.fn = read_add;
	f->drop.fn = read_drop;
	f->told.fn = read_told;
	atomic_init(&f->refs, 2);
	atomic_fetch_add(&point->timeline->pending, 1);
	atomic_fetch_add(&dev->command.foreign, 1);
	return f;
}

void foreign_start(struct foreign *f)
{
	engine_post(f->point.timeline->dev, &f->add);
}

void foreign_cancel(struct foreign *f)
{
	release_point(f);
	release(f); /* NOLINT(clang-analyzer-unix.Malloc): a reference is held */
}

void foreign_put(struct foreign *f)
{
	if (!f->over) {
		atomic_fetch_add(&f->refs, 1);
		engine_post(f->point.timeline->dev, &f->drop);
	}
	release(f); /* NOLINT(clang-analyzer-unix.Malloc): a reference is held */
}
