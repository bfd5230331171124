/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - a `ref` device in virtual time whose commands take as long as they are
 * told, and what the tests of policies share. */
#ifndef TESTS_POLICY_WORLD_H
#define TESTS_POLICY_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hal/policy.h>
#include <hal/ref.h>

#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_ != 0)                                                            \
			fail_msg("%s is %d: %s", #call, ok_, hal_last_error());          \
	} while (0)

/* The call answers err, and its text has word in it. */
#define FAILS(call, err, word)                                                           \
	do {                                                                             \
		int is_ = (call);                                                        \
		if (is_ != (err))                                                        \
			fail_msg("%s is %d, not %s: %s", #call, is_, #err,               \
				 hal_last_error());                                      \
		if (strstr(hal_last_error(), (word)) == NULL)                            \
			fail_msg("%s: the text does not name '%s': '%s'", #call, (word), \
				 hal_last_error());                                      \
	} while (0)

/* Commands that have ended, one message each, in order. */
enum { LOG = 65536 };
static struct policy_log {
	char text[LOG + 1];
	size_t length;
} ended;

struct world {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_program *prog;
	struct hal_kernel *work;
};

/* Arguments: how long, which message. */
static inline uint64_t work_cost(const struct hal_ref_call *call)
{
	return call->args[0].value;
}

static inline int work_run(const struct hal_ref_call *call)
{
	if (ended.length < LOG)
		ended.text[ended.length++] = (char)call->args[1].value;
	return 0;
}

static inline struct hal_partition *add_partition(struct world *w)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p;

	d.units_floor = 1;
	OK(hal_partition_create(w->dev, &d, &p));
	return p;
}

/* Commands are known to be so much work from now on, and run as many ns, at least
 * span_ns. work 0: they run as long as they are told, and nothing is known, as at first.
 */
static inline void world_span(struct world *w, uint64_t work, uint64_t span_ns)
{
	const struct hal_ref_kernel kernels[] = {{.name = "work",
						  .fn = work_run,
						  .cost = work == 0 ? work_cost : NULL,
						  .span_ns = span_ns,
						  .work = work,
						  .arg_count = 2}};

	if (w->prog != NULL)
		OK(hal_program_unload(w->prog));
	OK(hal_ref_load(w->dev, kernels, 1, &w->prog));
	OK(hal_kernel_find(w->prog, "work", &w->work));
}

static inline void world_work(struct world *w, uint64_t work)
{
	world_span(w, work, 0);
}

/* One command at a time unless the target says something else: order is the policy's. */
static inline void world_open(struct world *w, const char *const *options)
{
	memset(w, 0, sizeof(*w));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual", options, &w->dev));
	w->part = add_partition(w);
	world_work(w, 0);
}

static inline void world_close(struct world *w)
{
	OK(hal_program_unload(w->prog));
	OK(hal_partition_destroy(w->part));
	OK(hal_close(w->dev));
}

static inline struct hal_queue *add_queue(struct hal_partition *p, int32_t priority,
					  uint32_t weight, uint64_t deadline)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	d.priority = priority;
	d.weight = weight;
	d.deadline_ns = deadline;
	OK(hal_queue_create(p, &d, &q));
	return q;
}

/* As many commands of ns each, a submission each; the point of the last. */
static inline struct hal_point submit_as(struct world *w, struct hal_queue *q,
					 struct hal_submit_desc d, unsigned int count,
					 uint64_t ns, char message)
{
	const struct hal_arg args[2] = {{.offset = ns}, {.offset = (uint64_t)message}};
	struct hal_cmd cmd = hal_cmd_launch(w->work, args, 2);
	struct hal_point done = {NULL, 0};

	cmd.flags = HAL_CMD_REPLAYABLE;
	d.cmds = &cmd;
	d.cmd_count = 1;
	while (count-- > 0)
		OK(hal_submit(q, &d, &done));
	return done;
}

static inline struct hal_point submit(struct world *w, struct hal_queue *q,
				      unsigned int count, uint64_t ns, char message)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	return submit_as(w, q, d, count, ns, message);
}

static inline void finish(struct hal_point p)
{
	OK(hal_wait(&p, 1, 0, HAL_FOREVER));
}

/* All there is. */
static inline void finish_all(struct world *w)
{
	if (hal_device_poll(w->dev, UINT64_MAX) < 0)
		fail_msg("hal_device_poll: %s", hal_last_error());
}

static inline void pass(struct world *w, uint64_t ns)
{
	if (hal_device_poll(w->dev, ns) < 0)
		fail_msg("hal_device_poll: %s", hal_last_error());
}

static inline struct hal_stats stats_of(struct hal_queue *q)
{
	struct hal_stats s = HAL_INIT(hal_stats);

	OK(hal_queue_get_stats(q, &s));
	return s;
}

static inline struct hal_policy_info policy_of(struct world *w)
{
	struct hal_policy_info i = HAL_INIT(hal_policy_info);

	OK(hal_device_get_policy(w->dev, &i));
	return i;
}

#endif
