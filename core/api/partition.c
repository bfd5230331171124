/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.c - create, resize, destroy and describe partitions.
 *
 * The calling thread checks the description; the engine finds the units and makes the
 * change.  The caller may first have to wait: until other partitions have been moved to
 * free a rectangle (room_for), or until a move that the policy has begun is over
 * (wait_for_others).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/memory.h>

#include "api/handle.h"
#include "api/opened.h"
#include "command/callback.h"
#include "far/far.h"
#include "loop/engine.h"
#include "memory/evict.h"
#include "memory/quota.h"
#include "observe/trace.h"
#include "replay/journal.h"
#include "sched/limit.h"
#include "sched/policy.h"
#include "space/allot.h"
#include "space/arrange.h"
#include "space/plan.h"
#include "space/resize.h"
#include "space/room.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"

/* Copy the caller's *in, of any version, to *out, and its limits to *limits, where
 * out->limits points then.  Check what needs no device. */
static int desc_import(struct hal_partition_desc *out,
		       struct hal_partition_limits *limits,
		       const struct hal_partition_desc *in)
{
	int err = import_struct(out, sizeof(*out),
				offsetof(struct hal_partition_desc, host), in,
				"hal_partition_desc");

	if (err == 0 && out->limits != NULL)
		err = import_struct(limits, sizeof(*limits), sizeof(*limits), out->limits,
				    "hal_partition_limits");
	else
		memset(limits, 0, sizeof(*limits));
	if (err != 0)
		return err;
	out->limits = limits;
	if (limits->reserved != 0)
		return fail(EINVAL, "hal_partition_limits.reserved is not 0");
	if ((out->flags & ~HAL_PARTITION_BIMODAL) != 0)
		return fail(EINVAL, "hal_partition_desc.flags 0x%x: only 0x%x is defined",
			    out->flags, HAL_PARTITION_BIMODAL);
	if (out->shape > HAL_SHAPE_SQUARE)
		return fail(EINVAL, "hal_partition_desc.shape %u is not a shape",
			    out->shape);
	if (out->shape != HAL_SHAPE_ANY && names_place(out))
		return fail(EINVAL,
			    "hal_partition_desc.shape %u, but rows and cols name a "
			    "rectangle; leave shape 0",
			    out->shape);
	if (memchr(out->name, '\0', sizeof(out->name)) == NULL)
		return fail(EINVAL,
			    "hal_partition_desc.name does not end within %zu bytes",
			    sizeof(out->name));
	if (out->min_isolation > HAL_ISOLATION_ENFORCED)
		return fail(EINVAL,
			    "hal_partition_desc.min_isolation %u is not an isolation "
			    "level",
			    out->min_isolation);
	return 0;
}

/* Check d, which describes a guest of d->host.  Return 0 or -errno. */
static int guest_check(const struct hal_device *dev, const struct hal_partition_desc *d)
{
	const struct hal_partition *host = d->host;

	if (!OBJECT_OK(host, OBJECT_PARTITION))
		return object_bad(host, OBJECT_PARTITION);
	if (host->dev != dev)
		return fail(EINVAL,
			    "hal_partition_desc.host is a partition of another device");
	if (host->host != host)
		return fail(EINVAL,
			    "hal_partition_desc.host: partition %u \"%s\" is itself a "
			    "guest",
			    host->desc.index, host->name);
	if ((d->units_floor | d->units_ceiling | d->rows | d->cols | d->row | d->col |
	     d->shape) != 0)
		return fail(
			EINVAL,
			"hal_partition_desc.host is set: a guest cannot request units "
			"or a place");
	if (d->limits->bandwidth != 0)
		return fail(EINVAL, "hal_partition_limits.bandwidth: a guest shares its "
				    "host's bandwidth");
	if (dev->info.guests_max == 0)
		return fail(ENOTSUP, "%s does not support guest partitions", dev->name);
	return 0;
}

/* Check d, which has HAL_PARTITION_BIMODAL.  Return 0 or -errno. */
static int bimodal_check(const struct hal_device *dev, const struct hal_partition_desc *d)
{
	if ((dev->info.caps & HAL_CAP_BIMODAL) == 0)
		return fail(
			ENOTSUP,
			"HAL_PARTITION_BIMODAL: %s does not support two placements of "
			"memory",
			dev->name);
	if (d->host != NULL)
		return fail(EINVAL, "HAL_PARTITION_BIMODAL: a guest has no channels of "
				    "its own");
	if (d->color_mask == 0)
		return fail(EINVAL, "HAL_PARTITION_BIMODAL: color_mask names no "
				    "channels for the partition");
	return 0;
}

/* Check the memory_limit of d, which bounds a partition's buffers on the device and
 * evicted ones together.  Set *evicts if they may exceed the memory on the device. Return
 * 0 or -errno. */
static int limit_check(const struct hal_device *dev, const struct hal_partition_desc *d,
		       bool *evicts)
{
	*evicts = d->limits->memory_limit > d->memory_bytes;
	if (d->limits->memory_limit == 0)
		return 0;
	if (d->memory_bytes == 0)
		return fail(EINVAL,
			    "hal_partition_limits.memory_limit %llu needs memory_bytes, "
			    "the limit of the memory on the device",
			    U64(d->limits->memory_limit));
	if (d->limits->memory_limit < d->memory_bytes)
		return fail(EINVAL,
			    "hal_partition_limits.memory_limit %llu is less than "
			    "memory_bytes %llu",
			    U64(d->limits->memory_limit), U64(d->memory_bytes));
	if (!*evicts)
		return 0;
	if ((dev->info.caps & HAL_CAP_EVICT) == 0)
		return fail(ENOTSUP,
			    "hal_partition_limits.memory_limit %llu above memory_bytes "
			    "%llu: %s cannot evict buffers",
			    U64(d->limits->memory_limit), U64(d->memory_bytes),
			    dev->name);
	if (!dev->space.oversubscribe)
		return fail(ENOTSUP,
			    "hal_partition_limits.memory_limit %llu above memory_bytes "
			    "%llu: hal.oversubscribe is off",
			    U64(d->limits->memory_limit), U64(d->memory_bytes));
	if (dev->replay.journal != NULL)
		return fail(ENOTSUP,
			    "hal_partition_limits.memory_limit %llu above memory_bytes "
			    "%llu: a journal (hal.journal) cannot record evictions",
			    U64(d->limits->memory_limit), U64(d->memory_bytes));
	return 0;
}

/* ---- create ------------------------------------------------------------------------ */

struct create {
	struct hal_partition *part;
	const struct hal_partition_desc *desc;
	bool room; /* room_for has freed a rectangle for this partition */
};

/* Limit p to bandwidth, bytes a second.  Return 0 or -errno. */
static int set_limit(struct hal_partition *p, uint64_t bandwidth)
{
	struct hal_device *dev = p->dev;
	int err = limit_plan(dev, bandwidth, &p->sched.limit_bytes,
			     &p->sched.limit_window_ns);

	/* Call the backend directly.  A call through dev->limit would be recorded in the
	 * journal, which has only decisions of the engine. */
	return err != 0 ? err
			: dev->table->extra.limit(dev->bk, p->bk, p->sched.limit_bytes,
						  p->sched.limit_window_ns);
}

/* Return the flags of p in a JOURNAL_PARTITION entry. */
static uint64_t journal_flags(const struct hal_partition *p)
{
	return (p->pinned ? JOURNAL_PINNED : 0) |
	       (p->memory.bimodal ? JOURNAL_BIMODAL : 0);
}

/* Allot units and memory to a new partition and create it on the device.  Engine only. */
static int create(struct hal_device *dev, void *arg)
{
	const struct create *c = arg;
	struct hal_partition *p = c->part;
	int err = device_alive(dev);

	if (c->room)
		room_take(dev);
	if (err == 0)
		err = allot_partition(dev, c->desc, &p->desc);
	if (err == 0)
		err = memory_promise(dev, p->desc.memory_bytes);
	if (err != 0)
		return err;
	if (p->host == p)
		resize_limits(p, c->desc, p->desc.units);
	counter_set(&p->memory.quota, p->desc.memory_bytes);
	err = dev->table->cold.partition_create(dev->bk, &p->desc, &p->bk);
	if (err == 0 && c->desc->limits->bandwidth != 0) {
		err = set_limit(p, c->desc->limits->bandwidth);
		if (err != 0)
			(void)dev->table->cold.partition_destroy(dev->bk, p->bk);
	}
	if (err != 0) {
		memory_unpromise(dev, p->desc.memory_bytes);
		return err;
	}
	policy_partition_init(p);
	partition_enter(p);
	if (p->sched.limit_bytes != 0)
		JOURNAL(dev, JOURNAL_PARTITION, p->desc.index, p->desc.row, p->desc.col,
			p->desc.rows, p->desc.cols, p->sched.policy_view.ceiling,
			journal_flags(p), 0, p->sched.limit_bytes,
			p->sched.limit_window_ns);
	else if (p->host == p)
		JOURNAL(dev, JOURNAL_PARTITION, p->desc.index, p->desc.row, p->desc.col,
			p->desc.rows, p->desc.cols, p->sched.policy_view.ceiling,
			journal_flags(p));
	else
		JOURNAL(dev, JOURNAL_PARTITION, p->desc.index, 0, 0, 0, 0, 0, 0,
			p->host->desc.index);
	return 0;
}

/* Allocate a partition as d says, without units and memory.  NULL on -ENOMEM. */
static struct hal_partition *partition_make(struct hal_device *dev,
					    const struct hal_partition_desc *d)
{
	struct hal_partition *p = object_alloc(OBJECT_PARTITION, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->control = timeline_make(dev);
	if (p->control == NULL) {
		object_free(OBJECT_PARTITION, p);
		return NULL;
	}
	p->control->partition = p;
	p->dev = dev;
	p->host = d->host != NULL ? d->host : p;
	list_init(&p->on_device);
	list_init(&p->queues);
	list_init(&p->command.runnable);
	list_init(&p->command.busy);
	list_init(&p->sched.preempted);
	busy_init(&p->observe.ran);
	p->command.inflight_max = dev->partition_inflight;
	p->sched.bandwidth = d->limits->bandwidth;
	p->memory.own_colors = d->color_mask != 0 && d->host == NULL;
	p->memory.bimodal = (d->flags & HAL_PARTITION_BIMODAL) != 0;
	memcpy(p->name, d->name, sizeof(p->name));
	p->desc.name = p->name;
	return p;
}

/* Free p and the timelines of its resizes.  Engine only, or before the engine knows p. */
static void partition_free(struct hal_partition *p)
{
	while (p->control != NULL) {
		struct hal_timeline *t = p->control;

		p->control = t->older;
		timeline_fini(t);
		object_free(OBJECT_TIMELINE, t);
	}
	object_free(OBJECT_PARTITION, p);
}

/* Log that p has been created.  Another thread may resize p meanwhile, so its units are
 * those of the description that was used. */
static void log_created(const struct hal_partition *p)
{
	LOG(HAL_LOG_INFO, "%s: partition %u \"%s\" created%s", p->dev->name,
	    p->desc.index, p->name, p->host != p ? ", a guest" : "");
}

/* Have the engine create a partition.  Callback of room_for. */
static int ask_create(void *arg, bool room)
{
	struct create *c = arg;
	struct hal_device *dev = c->part->dev;
	int err;

	c->room = room;
	pthread_rwlock_wrlock(&dev->shape);
	err = engine_call(dev, create, c);
	pthread_rwlock_unlock(&dev->shape);
	return err;
}

int hal_partition_create(struct hal_device *dev, const struct hal_partition_desc *desc,
			 struct hal_partition **out)
{
	struct hal_partition_limits limits;
	struct hal_partition_desc d;
	struct hal_partition *p;
	struct create c;
	bool evicts;
	int err;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE,
				  far_partition_create(dev, desc, out));
	if (out == NULL)
		return fail(EINVAL, "hal_partition_create: part is NULL");
	err = desc_import(&d, &limits, desc);
	if (err == 0 && d.host != NULL)
		err = guest_check(dev, &d);
	if (err == 0 && d.flags != 0)
		err = bimodal_check(dev, &d);
	if (err == 0)
		err = limit_check(dev, &d, &evicts);
	if (err != 0)
		return err;
	p = partition_make(dev, &d);
	if (p == NULL)
		return -ENOMEM;
	c = (struct create){p, &d, false};
	if (evicts)
		err = evict_open(p, limits.memory_limit);
	/* A guest has no units, so no space need be freed for it. */
	if (err == 0)
		err = d.host != NULL ? ask_create(&c, false)
				     : room_for(dev, NULL, &d, ask_create, &c);
	if (err == 0) {
		log_created(p);
		*out = p;
		return 0;
	}
	evict_close(p->memory.evict);
	partition_free(p);
	return err;
}

/* Find the partition of that name which has units of its own.  Return NULL and set the
 * error if there is none, or more than one. */
static struct hal_partition *host_named(struct hal_device *dev, const char *name)
{
	struct hal_partition *found = NULL;
	uint32_t count = 0;

	pthread_rwlock_rdlock(&dev->shape);
	hal_list_for_each (it, &dev->space.partitions) {
		struct hal_partition *p =
			container_of(it, struct hal_partition, on_device);

		if (p->host != p || strcmp(p->name, name) != 0)
			continue;
		found = p;
		count++;
	}
	pthread_rwlock_unlock(&dev->shape);
	if (count == 1)
		return found;
	(void)fail(EINVAL, "%s partition with units of its own is named \"%s\"",
		   count == 0 ? "no" : "more than one", name);
	return NULL;
}

int hal_partition_create_named(struct hal_device *dev, const char *name,
			       struct hal_partition **out)
{
	struct config_partition c;
	char text[384];
	int err;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return FAR_OR_BAD(dev, OBJECT_DEVICE,
				  far_partition_create_named(dev, name, out));
	if (name == NULL)
		return fail(EINVAL, "hal_partition_create_named: name is NULL");
	err = config_partition(&dev->opened->cfg, name, &c);
	if (err != 0)
		return err;
	c.desc.limits = &c.limits;
	if (c.host[0] != '\0') {
		c.desc.host = host_named(dev, c.host);
		err = c.desc.host != NULL ? 0 : -EINVAL;
	}
	if (err == 0)
		err = hal_partition_create(dev, &c.desc, out);
	if (err == 0) {
		(*out)->queue_defaults = c.queues;
	} else {
		/* Prefix the error with the file and line of the section. */
		format_text(text, sizeof(text), "%s", hal_last_error());
		err = fail(err, "%s: [partition \"%s\"]: %s", c.source, name, text);
	}
	return err;
}

/* ---- resize ------------------------------------------------------------------------ */

struct resize {
	struct hal_partition *part;
	const struct hal_partition_desc *desc;
	bool room; /* room_for has freed a rectangle for this partition */
	struct hal_point done;
	/* End of the move that prevents the resize; .timeline is NULL if none does. */
	struct hal_point other;
};

/* Return the point at which a move of part that the policy or a plan has begun is over;
 * .timeline is NULL if there is none.  The application does not know of such a move, so
 * the library waits for it.  Engine only. */
static struct hal_point others_move(const struct hal_partition *part)
{
	if (part->arranged)
		return (struct hal_point){NULL, 0};
	if (part->policy_moves)
		return (struct hal_point){part->control, part->resize_count};
	return plan_has(part) ? plan_point(part->dev) : (struct hal_point){NULL, 0};
}

/* Wait for the point p, and increment *tries.  Return true if the caller should try
 * again; false if p names no timeline, or after too many tries. */
static bool wait_for_others(struct hal_point p, uint32_t *tries)
{
	enum { TRIES_MAX = 64 }; /* give up if the policy moves partitions all the time */

	if (p.timeline == NULL || ++*tries > TRIES_MAX)
		return false;
	(void)hal_wait(&p, 1, 0, HAL_FOREVER); /* an error ends the move, too */
	return true;
}

/* Begin a resize, and write the point of its end to .done.  Engine only. */
static int resize(struct hal_device *dev, void *arg)
{
	struct resize *r = arg;
	const struct hal_partition_desc *d = r->desc;
	int err = device_alive(dev);

	if (r->room)
		room_take(dev);
	if (err != 0)
		return err;
	JOURNAL(dev, JOURNAL_RESIZE, r->part->desc.index, d->units_floor,
		d->units_ceiling, d->row, d->col, d->rows, d->cols, d->shape);
	err = resize_begin(r->part, d);
	JOURNAL(dev, JOURNAL_ANSWER, journal_error(err));
	if (err == 0)
		r->done = (struct hal_point){r->part->control, r->part->resize_count};
	r->other = err == -EBUSY ? others_move(r->part) : (struct hal_point){NULL, 0};
	return err;
}

/* Have the engine begin a resize, after moves that prevent it.  Callback of room_for. */
static int ask_resize(void *arg, bool room)
{
	struct resize *r = arg;
	uint32_t tries = 0;
	int err;

	r->room = room;
	do
		err = engine_call(r->part->dev, resize, r);
	while (err == -EBUSY && wait_for_others(r->other, &tries));
	return tries != 0 ? tried(err) : err;
}

int hal_partition_resize(struct hal_partition *part,
			 const struct hal_partition_desc *desc, struct hal_point *done)
{
	struct hal_partition_limits limits;
	struct hal_partition_desc d;
	struct resize r = {.part = part, .desc = &d};
	int err;

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return FAR_OR_BAD(part, OBJECT_PARTITION,
				  far_partition_resize(part, desc, done));
	err = desc_import(&d, &limits, desc);
	if (err == 0 && d.host != NULL)
		err = fail(EINVAL, "a resize cannot change the host");
	if (err == 0 && part->host != part)
		err = fail(EINVAL,
			   "partition %u \"%s\" is a guest: it has no units to resize",
			   part->desc.index, part->name);
	if (err != 0)
		return err;
	err = room_for(part->dev, part, &d, ask_resize, &r);
	if (err == 0 && done != NULL)
		*done = r.done;
	return err;
}

/* ---- resize several together ------------------------------------------------------- */

struct move {
	struct arrangement *moves;
	struct hal_point done;
	struct hal_point other; /* as in struct resize */
};

/* Return the point at which the moves that prevent m are over; .timeline is NULL if none
 * do, or if the application has begun them for one of the same partitions.  Engine only.
 */
static struct hal_point moves_of_others(const struct hal_device *dev,
					const struct arrangement *a)
{
	for (uint32_t i = 0; i < a->count; i++) {
		const struct hal_partition *part = a->member[i].part;

		if (part->arranged || (part->moving.units != 0 && !part->policy_moves))
			return (struct hal_point){NULL, 0};
	}
	if (dev->space.plan.open != 0)
		return plan_over_point(dev);
	for (uint32_t i = 0; i < a->count; i++)
		if (a->member[i].part->policy_moves)
			return others_move(a->member[i].part);
	return (struct hal_point){NULL, 0};
}

/* Begin to move several partitions, and write the point of the end to .done.  Engine
 * only. */
static int move_all(struct hal_device *dev, void *arg)
{
	struct move *m = arg;
	struct arrangement *a = m->moves;
	int err = device_alive(dev);

	if (dev->space.plan.over == NULL)
		dev->space.plan.over = timeline_make(dev);
	if (dev->space.plan.over == NULL)
		return -ENOMEM;
	if (err != 0)
		return err;
	for (uint32_t i = 0; i < a->count; i++) {
		const struct hal_partition_desc *d = a->member[i].desc;

		JOURNAL(dev, JOURNAL_TOGETHER, a->count - 1 - i,
			a->member[i].part->desc.index, d->units_floor, d->units_ceiling,
			d->row, d->col, d->rows, d->cols, d->shape);
	}
	/* On success a may be freed before arrange_begin returns. */
	m->other = (struct hal_point){NULL, 0};
	err = arrange_begin(dev, a, &m->done);
	JOURNAL(dev, JOURNAL_ANSWER, journal_error(err));
	if (err == -EBUSY)
		m->other = moves_of_others(dev, a);
	return err;
}

/* Have the engine begin the moves, after moves that prevent them.  No thread then waits
 * for a free rectangle (space.room), which others could not take meanwhile. */
static int ask_move(struct hal_device *dev, struct move *m)
{
	uint32_t tries = 0;
	int err;

	/* A host function must not wait here: the moves may wait for commands that are
	 * queued behind it. */
	if (callback_inside(dev)) {
		if (pthread_mutex_trylock(&dev->space.room) != 0)
			return plan_busy(dev);
	} else {
		pthread_mutex_lock(&dev->space.room);
	}
	do
		err = engine_call(dev, move_all, m);
	while (err == -EBUSY && wait_for_others(m->other, &tries));
	pthread_mutex_unlock(&dev->space.room);
	return tries != 0 ? tried(err) : err;
}

/* Check parts[i], the i-th partition, and its description d. */
static int member_check(struct hal_partition *const *parts, uint32_t i,
			const struct hal_partition_desc *d)
{
	const struct hal_partition *part = parts[i];

	if (part->dev != parts[0]->dev)
		return fail(EINVAL, "parts[%u] is a partition of another device", i);
	if (d->host != NULL)
		return fail(EINVAL, "descs[%u]: a move cannot change the host", i);
	if (part->host != part)
		return fail(EINVAL,
			    "parts[%u]: partition %u \"%s\" is a guest: it has no units "
			    "to move",
			    i, part->desc.index, part->name);
	for (uint32_t k = 0; k < i; k++)
		if (parts[k] == part)
			return fail(EINVAL, "parts[%u] and parts[%u] are the same", k, i);
	return 0;
}

/* Return -EINVAL if the rectangles that descs[i] and an earlier descriptor name overlap.
 */
static int overlap_check(const struct hal_partition_desc *d, uint32_t i)
{
	const struct place_rect at = {d[i].row, d[i].col, d[i].rows, d[i].cols};
	struct place_rect both;

	for (uint32_t k = 0; k < i; k++) {
		const struct place_rect other = {d[k].row, d[k].col, d[k].rows,
						 d[k].cols};

		if (place_common(&at, &other, &both))
			return fail(
				EINVAL,
				"descs[%u] and descs[%u] name rectangles that overlap "
				"at row %u, column %u",
				k, i, both.row, both.col);
	}
	return 0;
}

/* Returned by moves_import: a partition is of a device that another process serves. */
#define MOVE_FAR 1

/* Copy and check the caller's arrays.  The distance of two descriptors is the size of the
 * first, so that a program may be built with another version of the struct. */
static int moves_import(struct hal_partition *const *parts,
			const struct hal_partition_desc *descs, uint32_t count,
			struct hal_partition_desc *out,
			struct hal_partition_limits *limits)
{
	const unsigned char *at = (const void *)descs;

	if (parts == NULL || descs == NULL)
		return fail(EINVAL, "hal_partitions_move: %s is NULL",
			    parts == NULL ? "parts" : "descs");
	if (count == 0 || count > HAL_POLICY_MOVES)
		return fail(EINVAL, "hal_partitions_move: count %u is not from 1 to %u",
			    count, HAL_POLICY_MOVES);
	for (uint32_t i = 0; i < count; i++, at += descs->size) {
		const struct hal_partition_desc *in = (const void *)at;
		char text[400];
		int err;

		if (!OBJECT_OK(parts[i], OBJECT_PARTITION))
			return FAR_OR_BAD(parts[i], OBJECT_PARTITION, MOVE_FAR);
		if (i > 0 && in->size != descs->size)
			return fail(EINVAL,
				    "descs[%u].size is %u, but descs[0].size is %u", i,
				    in->size, descs->size);
		err = desc_import(&out[i], &limits[i], in);
		if (err != 0) {
			format_text(text, sizeof(text), "%s", hal_last_error());
			return fail(err, "descs[%u]: %s", i, text);
		}
		err = member_check(parts, i, &out[i]);
		if (err == 0)
			err = overlap_check(out, i);
		if (err != 0)
			return err;
	}
	return 0;
}

int hal_partitions_move(struct hal_partition *const *parts,
			const struct hal_partition_desc *descs, uint32_t count,
			struct hal_point *done)
{
	struct hal_partition_limits limits[HAL_POLICY_MOVES];
	struct hal_partition_desc d[HAL_POLICY_MOVES];
	struct move m = {NULL};
	int cancel, err;

	err = moves_import(parts, descs, count, d, limits);
	if (err == MOVE_FAR)
		return far_partitions_move(parts, descs, count, done);
	if (err != 0)
		return err;
	m.moves = calloc(1, sizeof(*m.moves));
	if (m.moves == NULL)
		return fail(ENOMEM, "hal_partitions_move: no memory");
	m.moves->count = count;
	for (uint32_t i = 0; i < count; i++) {
		m.moves->member[i].part = parts[i];
		m.moves->member[i].desc = &d[i];
	}
	cancel = cancel_hold();
	err = ask_move(parts[0]->dev, &m);
	cancel_release(cancel);
	if (err != 0)
		free(m.moves);
	else if (done != NULL)
		*done = m.done;
	return err; /* NOLINT(clang-analyzer-unix.Malloc): the engine has the moves */
}

/* ---- destroy, info ----------------------------------------------------------------- */

/* Undo controls_close: reopen the resize timelines of part that come before end in the
 * list (NULL: all of them). */
static void controls_reopen(const struct hal_partition *part,
			    const struct hal_timeline *end)
{
	for (struct hal_timeline *t = part->control; t != end; t = t->older)
		timeline_reopen(t);
}

/* Keep threads from beginning to wait for part's resizes.  Return 0, or -EBUSY if a
 * thread or submitted work waits for one of these resizes now. */
static int controls_close(const struct hal_partition *part)
{
	for (struct hal_timeline *t = part->control; t != NULL; t = t->older) {
		bool work = atomic_load(&t->pending) != 0;

		if (!work && timeline_close(t))
			continue;
		controls_reopen(part, t);
		return fail(EBUSY, "partition %u \"%s\": %s for one of its resizes",
			    part->desc.index, part->name,
			    work ? "submitted work waits" : "a thread waits");
	}
	return 0;
}

struct destroy {
	struct hal_partition *part;
	struct hal_point other; /* as in struct resize */
};

/* Destroy a partition that has no objects and does not move.  Engine only; -EAGAIN while
 * an eviction is under way. */
static int destroy(struct hal_device *dev, void *arg)
{
	struct destroy *d = arg;
	struct hal_partition *part = d->part;
	const struct counted has[] = {
		{part->guest_count, "guest"},
		{part->queue_count, "queue"},
		{counter_get(&part->memory.buffer_count), "buffer"},
		{counter_get(&part->sequences), "sequence"},
	};
	char living[128];
	int err;

	/* A destroyed buffer is freed only when its eviction or fetch is over. */
	if (evict_moves(part))
		return -EAGAIN;
	format_counts(living, sizeof(living), has, ARRAY_LENGTH(has));
	if (living[0] != '\0')
		return fail(EBUSY, "partition %u \"%s\" still has %s", part->desc.index,
			    part->name, living);
	if (part->moving.units != 0 || plan_has(part) || part->arranged) {
		d->other = others_move(part);
		return fail(EBUSY, "partition %u \"%s\" is being resized",
			    part->desc.index, part->name);
	}
	err = controls_close(part);
	if (err != 0)
		return err;
	trace_sample(dev);
	program_unbind_all(part);
	err = dev->table->cold.partition_destroy(dev->bk, part->bk);
	if (err != 0) {
		controls_reopen(part, NULL);
		return err;
	}
	JOURNAL(dev, JOURNAL_NO_PARTITION, part->desc.index);
	LOG(HAL_LOG_INFO, "%s: partition %u \"%s\" destroyed", dev->name,
	    part->desc.index, part->name);
	partition_leave(part);
	memory_unpromise(dev, counter_get(&part->memory.quota));
	partition_free(part);
	return 0;
}

/* Have the engine destroy a partition, with dev->shape locked.  The caller waits for
 * moves without this lock, which the device's other tenants need, too. */
static int ask_destroy(struct hal_device *dev, struct destroy *d)
{
	int err;

	d->other = (struct hal_point){NULL, 0};
	pthread_rwlock_wrlock(&dev->shape);
	err = engine_call(dev, destroy, d);
	pthread_rwlock_unlock(&dev->shape);
	return err;
}

int hal_partition_destroy(struct hal_partition *part)
{
	struct destroy d = {.part = part};
	struct evict *evict;
	unsigned int ended = 0;
	struct hal_device *dev;
	uint32_t tries = 0;
	int err;

	if (part == NULL)
		return 0;
	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return FAR_OR_BAD(part, OBJECT_PARTITION, far_partition_destroy(part));
	dev = part->dev;
	evict = part->memory.evict;
	do {
		if (evict != NULL)
			ended = evict_ended(evict);
		err = ask_destroy(dev, &d);
		if (err == -EAGAIN && evict != NULL)
			evict_wait(evict, ended);
	} while ((err == -EAGAIN && evict != NULL) ||
		 (err == -EBUSY && wait_for_others(d.other, &tries)));
	if (err == 0)
		evict_close(evict);
	return tries != 0 ? tried(err) : err;
}

struct info {
	const struct hal_partition *part;
	struct hal_partition_info *info;
};

static int get_info(struct hal_device *dev, void *arg)
{
	const struct info *a = arg;
	const struct hal_partition *part = a->part;
	const struct hal_bk_partition_desc *units = &part->host->desc;
	struct hal_partition_info *i = a->info;
	uint64_t quota = counter_get(&part->memory.quota);
	uint64_t used = counter_get(&part->memory.used);

	i->index = part->desc.index;
	memcpy(i->name, part->name, sizeof(i->name));
	i->row = units->row;
	i->col = units->col;
	i->rows = units->rows;
	i->cols = units->cols;
	i->units = units->units;
	i->compute_isolation = partition_isolation(dev, units);
	i->memory_bytes = quota != 0 ? quota : used + memory_left(dev);
	i->memory_used = used;
	i->color_mask = part->desc.color_mask;
	return 0;
}

int hal_partition_get_info(const struct hal_partition *part,
			   struct hal_partition_info *info)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct info a = {part, &i};

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return FAR_OR_BAD(part, OBJECT_PARTITION,
				  far_partition_get_info(part, info));
	(void)engine_call(part->dev, get_info, &a);
	return export_struct(info, &i, sizeof(i),
			     offsetof(struct hal_partition_info, name),
			     "hal_partition_info");
}

struct memory_info {
	const struct hal_partition *part;
	struct hal_partition_memory_info *info;
};

static int get_memory_info(struct hal_device *dev, void *arg)
{
	const struct memory_info *a = arg;
	const struct hal_partition *part = a->part;

	(void)dev;
	a->info->bandwidth = limit_of(part->host);
	a->info->wide_mask = part->desc.wide_mask;
	a->info->switches = counter_get(&part->memory.switches);
	evict_describe(part, a->info);
	return 0;
}

int hal_partition_get_memory_info(const struct hal_partition *part,
				  struct hal_partition_memory_info *info)
{
	struct hal_partition_memory_info i = HAL_INIT(hal_partition_memory_info);
	struct memory_info a = {part, &i};

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return FAR_OR_BAD(part, OBJECT_PARTITION,
				  far_partition_get_memory_info(part, info));
	(void)engine_call(part->dev, get_memory_info, &a);
	return export_struct(info, &i, sizeof(i),
			     offsetof(struct hal_partition_memory_info, bandwidth),
			     "hal_partition_memory_info");
}
