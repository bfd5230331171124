/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inlet_world.h - a queue whose ring another process would write, in one process.
 *
 * Tests write the ring of `own` as that process, and call inlets_take as hald.  The
 * program of the other side has names for the objects of its own partition alone, at
 * most.  `victim` is the partition of somebody else.
 */
#ifndef TESTS_HALD_INLET_WORLD_H
#define TESTS_HALD_INLET_WORLD_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <hal/hal.h>
#include <hal/ref.h>

#include "api/inlet.h"
#include "command/queue.h"

#define BYTES 256u

/* Indices of the names of a program. */
enum name_index {
	NAME_BUFFER,
	NAME_OTHER,  /* a second buffer */
	NAME_VICTIM, /* a buffer of the other partition */
	NAME_KERNEL,
	NAME_UNBOUND, /* a kernel of a program that is in no partition */
	NAME_TIMELINE,
	NAME_QUEUE, /* the timeline of the queue */
	NAME_GONE,  /* names nothing any more */
	NAMES,
};

struct inlet_world {
	struct hal_device *dev;
	struct hal_partition *own, *victim;
	struct hal_buffer *buf, *other, *victims;
	struct hal_program *prog, *unbound;
	struct hal_timeline *line;
	struct hal_queue *queue;
	struct far_name name[NAMES], *at[NAMES];
	struct far_names names;
	struct far_ring *ring;
	struct far_told told;
	struct inlet inlet;
	unsigned int tail; /* where the next record is written */
	int fd;
};

/* dst[i] = src[i] + 1. */
static int inlet_add(const struct hal_ref_call *call)
{
	uint8_t *dst = call->at(call, 0, 0, 64);
	const uint8_t *src = call->at(call, 1, 0, 64);

	if (dst == NULL || src == NULL)
		return -1;
	for (int i = 0; i < 64; i++)
		dst[i] = (uint8_t)(src[i] + 1);
	return 0;
}

static inline void inlet_must(int err)
{
	if (err != 0) {
		fprintf(stderr, "%s\n", hal_last_error());
		abort();
	}
}

static inline uint64_t handle_of(const struct inlet_world *w, enum name_index i)
{
	return atomic_load(&w->name[i].handle);
}

static inline void name(struct inlet_world *w, enum name_index i, enum far_kind kind,
			void *object)
{
	w->name[i].object = object;
	atomic_store(&w->name[i].handle,
		     UINT64_C(7) << 32 | (uint64_t)kind << 24 | (uint64_t)i);
	w->at[i] = &w->name[i];
}

static inline struct hal_partition *inlet_partition(struct hal_device *dev)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *part;

	d.units_floor = 2;
	inlet_must(hal_partition_create(dev, &d, &part));
	return part;
}

static inline struct hal_buffer *inlet_buffer(struct hal_partition *part)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *buf;

	d.bytes = BYTES;
	inlet_must(hal_buffer_create(part, &d, &buf));
	return buf;
}

/* Make the queue and its ring.  priority_max, deadlines: of the inlet. */
static inline void inlet_begin(struct inlet_world *w)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	uint64_t bytes;

	inlet_must(hal_queue_create(w->own, &d, &w->queue));
	bytes = (far_ring_bytes(w->queue->slot_count) + 63) / 64 * 64;
	w->ring = aligned_alloc(64, bytes);
	if (w->ring == NULL)
		abort();
	memset(w->ring, 0, bytes);
	memset(&w->told, 0, sizeof(w->told));
	w->tail = 0;
	w->inlet = (struct inlet){
		.queue = w->queue,
		.ring = w->ring,
		.told = &w->told,
		.names = &w->names,
		.priority_max = 3,
		.deadlines = true,
		.fd = w->fd,
	};
	name(w, NAME_QUEUE, KIND_TIMELINE, hal_queue_get_timeline(w->queue));
	inlet_must(inlet_open(&w->inlet));
}

/* End the queue, whatever its state is, as hald does. */
static inline void inlet_end(struct inlet_world *w)
{
	inlet_close(&w->inlet);
	(void)hal_queue_suspend(w->queue, HAL_SUSPEND_DRAIN | HAL_SUSPEND_FINAL, NULL);
	(void)hal_device_poll(w->dev, 1000000);
	inlet_must(hal_queue_destroy(w->queue));
	free(w->ring);
}

static inline void inlet_world_open(struct inlet_world *w, const char *target)
{
	static const struct hal_ref_kernel add = {.name = "add",
						  .fn = inlet_add,
						  .span_ns = 1,
						  .arg_count = 2,
						  .arg_bytes = {64, 64}};
	struct hal_kernel *k;

	memset(w, 0, sizeof(*w));
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	inlet_must(hal_open(target, NULL, &w->dev));
	w->own = inlet_partition(w->dev);
	w->victim = inlet_partition(w->dev);
	w->buf = inlet_buffer(w->own);
	w->other = inlet_buffer(w->own);
	w->victims = inlet_buffer(w->victim);
	inlet_must(hal_ref_load(w->dev, &add, 1, &w->prog));
	inlet_must(hal_ref_load(w->dev, &add, 1, &w->unbound));
	inlet_must(hal_timeline_create(w->dev, &w->line));
	name(w, NAME_BUFFER, KIND_BUFFER, w->buf);
	name(w, NAME_OTHER, KIND_BUFFER, w->other);
	name(w, NAME_VICTIM, KIND_BUFFER, w->victims);
	inlet_must(hal_kernel_get(w->prog, 0, &k));
	name(w, NAME_KERNEL, KIND_KERNEL, k);
	inlet_must(hal_kernel_get(w->unbound, 0, &k));
	name(w, NAME_UNBOUND, KIND_KERNEL, k);
	name(w, NAME_TIMELINE, KIND_TIMELINE, w->line);
	name(w, NAME_GONE, KIND_BUFFER, w->buf);
	atomic_store(&w->name[NAME_GONE].handle, 0);
	atomic_store(&w->names.at, w->at);
	atomic_store(&w->names.count, NAMES);
	inlet_begin(w);
}

/* Place the program in the partition, as the first launch there does. */
static inline void inlet_bind(struct inlet_world *w)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	const struct hal_arg args[2] = {{.buffer = w->buf}, {.buffer = w->other}};
	const struct hal_cmd cmd = hal_cmd_launch(w->name[NAME_KERNEL].object, args, 2);
	struct hal_point done;
	struct hal_queue *q;

	sd.cmds = &cmd;
	sd.cmd_count = 1;
	inlet_must(hal_queue_create(w->own, &qd, &q));
	inlet_must(hal_submit(q, &sd, &done));
	inlet_must(hal_wait(&done, 1, 0, HAL_FOREVER));
	inlet_must(hal_queue_destroy(q));
}

static inline void inlet_world_close(struct inlet_world *w)
{
	inlet_end(w);
	inlet_must(hal_timeline_destroy(w->line));
	inlet_must(hal_program_unload(w->unbound));
	inlet_must(hal_program_unload(w->prog));
	inlet_must(hal_buffer_destroy(w->victims));
	inlet_must(hal_buffer_destroy(w->other));
	inlet_must(hal_buffer_destroy(w->buf));
	inlet_must(hal_partition_destroy(w->victim));
	inlet_must(hal_partition_destroy(w->own));
	inlet_must(hal_close(w->dev));
	(void)close(w->fd);
}

/* Return the next slot to be written, and move the tail past it and `more` others. */
static inline struct far_slot *inlet_slot(struct inlet_world *w, uint32_t more)
{
	struct far_slot *s = &w->ring->slots[w->tail & w->queue->slot_mask];

	w->tail += 1 + more;
	memset(s, 0, (1 + more) * sizeof(*s));
	return s;
}

/* Write a launch: buf = other + 1. */
static inline struct far_slot *inlet_launch(struct inlet_world *w, uint8_t marks)
{
	struct far_slot *s = inlet_slot(w, far_launch_slots(2) - 1);

	s->op = HAL_OP_LAUNCH;
	s->marks = marks;
	s->arg_count = 2;
	s->launch.kernel = handle_of(w, NAME_KERNEL);
	for (int i = 0; i < 3; i++)
		s->launch.groups[i] = 1;
	s[1].words[0] = handle_of(w, NAME_BUFFER);
	s[1].words[2] = BYTES;
	s[1].words[3] = handle_of(w, NAME_OTHER);
	s[1].words[5] = BYTES;
	return s;
}

static inline struct far_slot *inlet_fill(struct inlet_world *w, uint8_t marks,
					  uint32_t pattern)
{
	struct far_slot *s = inlet_slot(w, 0);

	s->op = HAL_OP_FILL;
	s->marks = marks;
	s->fill.dst = handle_of(w, NAME_OTHER);
	s->fill.bytes = BYTES;
	s->fill.pattern = pattern;
	return s;
}

static inline struct far_slot *inlet_point(struct inlet_world *w, uint32_t op,
					   uint8_t marks, uint64_t value)
{
	struct far_slot *s = inlet_slot(w, 0);

	s->op = op;
	s->marks = marks;
	s->point[0].timeline = handle_of(w, NAME_TIMELINE);
	s->point[0].value = value;
	return s;
}

/* Submit what has been written, and have it taken. */
static inline void inlet_publish(struct inlet_world *w)
{
	struct inlet *in = &w->inlet;

	atomic_store(&w->ring->tail, w->tail);
	inlets_take(&in, 1);
}

#endif
