/* SPDX-License-Identifier: Apache-2.0 */
/*
 * validate.h - layer validate: its record of every object, command, suspend and move.
 *
 *   validate.c           the checks of each operation; the device, partitions, programs
 *   validate_commands.c  checks of commands, suspends and moves, and of their events
 *   validate_objects.c   finding and naming tracked objects; reporting violations
 */
#ifndef HAL_CORE_LAYERS_VALIDATE_H
#define HAL_CORE_LAYERS_VALIDATE_H

#include <stdio.h>

#include "layers/layers.h"
#include "util/compiler.h"

#define FRAMES_MAX 24 /* limit of the frames in a stored call stack */

/* Kinds of tracked object.  COMMAND and QUIET are found by their cookie; QUIET is a
 * suspend or a move, which ends with a QUIET event. */
enum kind { PART, QUEUE, MEM, PROG, KERNEL, COMMAND, QUIET };

/* A program that is bound to a partition. */
struct binding {
	struct binding *next;
	const struct tracked *part;
	uint32_t uses; /* commands on the device that use it */
};

/* An object with a handle, or a command, suspend or move with a cookie.  Accessed under
 * layers.lock by the thread that makes the call. */
struct tracked {
	struct handle h;
	/* Partition of a queue or buffer, program of a kernel, queue of a command, queue
	 * that is suspended or partition that is moved. */
	struct tracked *parent;
	uint32_t children;   /* of a partition: queues, buffers and bound programs */
	uint32_t uses;       /* commands on the device that use it; of a queue: its own */
	bool destroy_failed; /* the backend returned an error from destroying it */
	bool lost;           /* was pending when the device was lost */
	/* partition */
	struct hal_bk_partition_desc desc, target; /* target.units is 0: no move */
	bool wide;                                 /* uses its second placement */
	/* queue */
	bool stopping, stopped; /* suspend requested; queue reported quiet */
	uint32_t mode;          /* of that suspend */
	uint32_t kept; /* commands of .uses kept by FOLD or SAVE while suspended */
	bool failed;   /* one of its commands completed with -EIO */
	struct tracked *oldest; /* its oldest command on the device */
	/* mem */
	uint64_t bytes;
	bool mapped;
	bool flagged;    /* allocated with flags */
	bool out;        /* evicted by mem_out */
	bool exportable; /* allocated with HAL_BUFFER_EXPORTABLE */
	bool host;       /* host memory */
	/* program */
	struct binding *bindings;
	/* kernel */
	uint32_t arg_count;
	uint64_t arg_bytes[HAL_ARGS_MAX];
	uint32_t group_size_max, shared_max;
	/* command */
	const struct hal_bk_cmd *cmd;
	struct tracked *newer; /* next command of the queue */
	/* Call stack of its creation; empty for commands, suspends and moves. */
	int frame_count;
	void *frames[FRAMES_MAX];
};

struct validate {
	/* Constant from create to destroy. */
	const struct layers *layers;
	FILE *report; /* or NULL */
	/* Everything below is guarded by layers.lock. */
	struct handles handles;
	bool has_info;
	struct hal_device_info info;
	uint64_t reach_ns;     /* virtual clock: the next now must not be earlier */
	bool lost;             /* a poll has failed */
	struct binding *spare; /* for the next program_bind */
	uint32_t owed;         /* events that the device has yet to report */
	uint32_t violations;   /* number of rules broken so far */
	char first_violation[400];
};

/* ---- validate_objects.c ----------------------------------------------------------- */

/* Report that side (the core or the backend) has broken a rule: in hal_last_error(), in
 * the report file, and from hal_close if it is the first.  Return -EPROTO. */
int validate_violation(struct validate *v, const char *side, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
#define CORE(v, ...)    validate_violation((v), "the core", __VA_ARGS__)
#define BACKEND(v, ...) validate_violation((v), "the backend", __VA_ARGS__)

/* Write the name of t into text, such as: queue 3 of partition 1 "video" */
void tracked_describe(const struct tracked *t, char *text, size_t size);
/* Return the number of objects that are alive.  Write the first 100 of them to report
 * unless it is NULL, and the first three into text. */
uint32_t tracked_living(const struct validate *v, FILE *report, char *text, size_t size);
/* Return the object of key, alive or destroyed; NULL if key never had an object. */
struct tracked *tracked_find(const struct validate *v, enum kind kind, uint64_t key);
/* Add a live object.  Never NULL: validate_before() has reserved the memory. */
struct tracked *tracked_add(struct validate *v, enum kind kind, uint64_t key);
/* Return the live object of that handle and kind.  Otherwise report a violation by the
 * core and return NULL. */
struct tracked *tracked_require(struct validate *v, const struct layer_call *c,
				enum kind kind, const void *handle);
/* Add the object whose handle the backend has just returned.  Return NULL if
 * the call failed.  Also return NULL, and report a violation by the backend, if the
 * handle is NULL or in use. */
struct tracked *tracked_new(struct validate *v, struct layer_call *c, enum kind kind);
/* Return the binding of prog to part; NULL if it is not bound there. */
struct binding *tracked_binding(const struct tracked *prog, const struct tracked *part);

/* ---- validate_commands.c: validate_* check a call, validated_* record its result --- */

int validate_submit(struct validate *v, const struct layer_call *c);
int validate_suspend(struct validate *v, const struct layer_call *c);
int validate_resume(struct validate *v, const struct layer_call *c);
void validated_queue_destroy(struct validate *v, struct layer_call *c);
void validated_submit(struct validate *v, struct layer_call *c);
void validated_suspend(struct validate *v, struct layer_call *c);
void validated_resume(struct validate *v, struct layer_call *c);
void validated_resize(struct validate *v, struct layer_call *c);
void validated_poll(struct validate *v, struct layer_call *c);

#endif
