/* SPDX-License-Identifier: Apache-2.0 */
/* mock_world.h - an open mock device with a partition, and what the core's tests share.
 */
#ifndef TESTS_UNIT_MOCK_WORLD_H
#define TESTS_UNIT_MOCK_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hal/hal.h>

#include "mock.h"

struct world {
	struct hal_device *dev;
	const struct mock_control *mock;
	void *native;
	struct hal_partition *part;
	struct hal_buffer *buf;
	struct hal_program *prog;
	struct hal_kernel *k0, *k2, *k16;
};

#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_ != 0)                                                            \
			fail_msg("%s is %d: %s", #call, ok_, hal_last_error());          \
	} while (0)

/* The call answers err, and its text names all of the words (a NULL ends them). */
#define FAILS(call, err, ...)                                                            \
	do {                                                                             \
		const char *words_[] = {__VA_ARGS__, NULL};                              \
		int is_ = (call);                                                        \
		if (is_ != (err))                                                        \
			fail_msg("%s is %d, not %s: %s", #call, is_, #err,               \
				 hal_last_error());                                      \
		for (int i_ = 0; words_[i_] != NULL; i_++)                               \
			if (strstr(hal_last_error(), words_[i_]) == NULL)                \
				fail_msg("%s: the text does not name '%s': '%s'", #call, \
					 words_[i_], hal_last_error());                  \
	} while (0)

#define PLUGINS "hal.plugins=" MOCK_PLUGIN

static inline void world_open_with(struct world *w, const char *target,
				   const char *const *options)
{
	memset(w, 0, sizeof(*w));
	OK(hal_open(target, options, &w->dev));
	w->mock = hal_device_get_extension(w->dev, "mock");
	assert_non_null(w->mock);
	w->native = hal_device_get_native(w->dev);
}

static inline void world_open(struct world *w, const char *target)
{
	const char *const options[] = {PLUGINS, NULL};

	world_open_with(w, target, options);
}

static inline struct hal_partition *add_partition(struct world *w, uint32_t units)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p;

	d.units_floor = units;
	OK(hal_partition_create(w->dev, &d, &p));
	return p;
}

static inline struct hal_queue *add_queue(struct hal_partition *p, int32_t priority)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	d.priority = priority;
	OK(hal_queue_create(p, &d, &q));
	return q;
}

static inline struct hal_buffer *add_buffer(struct hal_partition *p, uint64_t bytes)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *b;

	d.bytes = bytes;
	OK(hal_buffer_create(p, &d, &b));
	return b;
}

/* A partition of one unit, a buffer and kernels of 0, 2 and 16 arguments. */
static inline void world_fill(struct world *w)
{
	static const char image[] = "none0 two2 manyg";

	w->part = add_partition(w, 1);
	w->buf = add_buffer(w->part, 4096);
	OK(hal_program_load(w->dev, image, sizeof(image) - 1, &w->prog));
	OK(hal_kernel_find(w->prog, "none0", &w->k0));
	OK(hal_kernel_find(w->prog, "two2", &w->k2));
	OK(hal_kernel_find(w->prog, "manyg", &w->k16));
}

static inline void world_close(struct world *w)
{
	struct mock_counts c;

	OK(hal_program_unload(w->prog));
	OK(hal_buffer_destroy(w->buf));
	OK(hal_partition_destroy(w->part));
	w->mock->counts(w->native, &c);
	/* Nothing stays behind on the device. */
	assert_int_equal(
		c.inflight + c.mems + c.programs + c.bound + c.partitions + c.queues, 0);
	OK(hal_close(w->dev));
}

/* Open and fill a world; return a queue of its partition. */
static inline struct hal_queue *world_queue(struct world *w, const char *target)
{
	world_open(w, target);
	world_fill(w);
	return add_queue(w->part, 0);
}

static inline void world_end(struct world *w, struct hal_queue *q)
{
	OK(hal_queue_destroy(q));
	world_close(w);
}

static inline int submit_n(struct hal_queue *q, const struct hal_cmd *cmds, uint32_t n,
			   struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = cmds;
	d.cmd_count = n;
	return hal_submit(q, &d, done);
}

static inline int submit_cmd(struct hal_queue *q, struct hal_cmd cmd,
			     struct hal_point *done)
{
	return submit_n(q, &cmd, 1, done);
}

/* A fill whose pattern tells it from others. */
static inline struct hal_cmd numbered(struct world *w, uint32_t n)
{
	return hal_cmd_fill(w->buf, 0, 64, n);
}

static inline uint32_t inflight(struct world *w)
{
	struct mock_counts c;

	w->mock->counts(w->native, &c);
	return c.inflight;
}

static inline int poll_now(struct world *w)
{
	return hal_device_poll(w->dev, 0);
}

/* Reached, by a poll that lets no time pass. */
static inline int reached(struct hal_point p)
{
	return hal_wait(&p, 1, 0, 0) == 0;
}

static inline struct hal_stats queue_stats(struct hal_queue *q)
{
	struct hal_stats s = HAL_INIT(hal_stats);

	OK(hal_queue_get_stats(q, &s));
	return s;
}

#endif
