/* SPDX-License-Identifier: Apache-2.0 */
/*
 * negative.h - one wrong thing a case, everything else right.
 *
 *   NEGATIVE(hal_queue_create, EINVAL, unknown_flag, "flags")
 *   {
 *           w->queue_desc.flags = 2;
 *           return hal_queue_create(w->part, &w->queue_desc, &w->queue2);
 *   }
 *
 * A case answers what the wrong call answered.  The runner checks that it is the errno,
 * that hal_last_error() names what was wrong (the last argument; "a|b": either), that the
 * device still works and that all of it can be put away.  coverage.awk checks that every
 * errno that the public headers document has a case.
 */
#ifndef TESTS_NEGATIVE_H
#define TESTS_NEGATIVE_H

#include <errno.h>
#include <stdbool.h>

#include <hal/hal.h>
#include <hal/ref.h>

/* What a case starts from: one of everything, all of it good. */
struct neg {
	const char *target;
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *buf; /* 4096 bytes */
	struct hal_program *prog;
	struct hal_kernel *kernel; /* "twice": 2 arguments of 64 bytes */
	struct hal_kernel *slow;   /* "slow": 1 of 64, 1 ms */
	struct hal_kernel *bad;    /* "bad": 1 of 64, faults */
	struct hal_timeline *line;
	const struct hal_ref_extension *ref; /* NULL: it is another backend's device */
	/* To be filled by the case's calls; put away when they are set. */
	struct hal_device *dev2;
	struct hal_partition *part2;
	struct hal_queue *queue2;
	struct hal_buffer *buf2;
	struct hal_program *prog2;
	struct hal_timeline *line2;
	struct hal_sequence *seq;
	struct hal_completions *ring;
	/* Good as they are. */
	struct hal_partition_desc part_desc; /* one unit */
	struct hal_buffer_desc buffer_desc;  /* 64 bytes */
	struct hal_queue_desc queue_desc;
	struct hal_submit_desc submit; /* of .cmd, a fill of buf */
	struct hal_cmd cmd[HAL_COMMANDS_MAX + 1];
	struct hal_arg args[HAL_ARGS_MAX + 1];
	struct hal_point points[HAL_COMMANDS_MAX + 1];
	struct hal_device_info info;
	struct hal_stats stats;
	char path[256];        /* of a file that is removed afterwards */
	struct hal_point busy; /* what neg_make_busy and neg_make_gated have submitted */
};

struct neg_case {
	const char *function;
	const char *error_name;
	int error;
	const char *what;
	const char *text;
	const char *target; /* NULL: NEG_TARGET */
	int (*fn)(struct neg *w);
	struct neg_case *next;
};

#define NEG_TARGET "ref?units=8&memory=1M&colors=4"

void neg_register(struct neg_case *c);

/* id_ names the case's function; error_name_ is text, for error_ is a number by then. */
#define NEG_DEFINE(id_, target_, function_, error_, error_name_, what_, text_)           \
	static int neg_##id_(struct neg *w);                                             \
	static struct neg_case case_##id_ = {                                            \
		.function = function_,                                                   \
		.error_name = error_name_,                                               \
		.error = error_,                                                         \
		.what = what_,                                                           \
		.text = text_,                                                           \
		.target = target_,                                                       \
		.fn = neg_##id_,                                                         \
	};                                                                               \
	__attribute__((constructor)) static void reg_##id_(void)                         \
	{                                                                                \
		neg_register(&case_##id_);                                               \
	}                                                                                \
	static int neg_##id_(struct neg *w)

#define NEGATIVE_ON(target_, function_, error_, what_, text_)                            \
	NEG_DEFINE(function_##_##error_##_##what_, target_, #function_, error_, #error_, \
		   #what_, text_)

#define NEGATIVE(function_, error_, what_, text_)                                        \
	NEG_DEFINE(function_##_##error_##_##what_, NULL, #function_, error_, #error_,    \
		   #what_, text_)

/* A function that returns a pointer or nothing: its error as an errno. */
#define NEG_NULL(call) ((call) ? 0 : -ENOENT)

/* A step that must work; its error is not the one the case is about. */
#define NEG_OK(call)                                                                     \
	do {                                                                             \
		if ((call) != 0)                                                         \
			return neg_broken(__FILE__, __LINE__);                           \
	} while (0)

/* An answer that no case expects, with the line and hal_last_error on stderr. */
int neg_broken(const char *file, int line);
/* What a case answers that this device is not one for: it needs this. */
int neg_skip(const char *what);
/* The nth next operation of the device answers -err, see hal/ref.h. */
int neg_inject(struct neg *w, uint32_t op, uint64_t nth, int err);
/* Writes w->path, a configuration file. */
int neg_config(struct neg *w, const char *text);
/* hal_open with that file. */
int neg_open_config(struct neg *w, const char *text);
/* Keeps .queue busy for 1 ms: the slow kernel, not replayable, and it has started. */
int neg_make_busy(struct neg *w);
/* Puts a submission into .queue that waits for value 1 of .line and signals 2. */
int neg_make_gated(struct neg *w);
int neg_wait(struct hal_point p);
/* The image of ref that .prog is of. */
const void *neg_image(size_t *size);
/* dev2, a device that is lost, and part2, queue2, buf2, prog2 and seq of it. */
int neg_lose(struct neg *w);
/* What call answers in a child process, and says there. */
int neg_forked(struct neg *w, int (*call)(struct neg *w));
/* What destroy answers while a thread waits for the point of make, which is never reached
 * until end is called.  Both clean up behind them. */
int neg_awaited(struct neg *w, int (*make)(struct neg *w, struct hal_point *p),
		int (*destroy)(struct neg *w), int (*end)(struct neg *w));

#endif
