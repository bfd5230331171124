/* SPDX-License-Identifier: Apache-2.0 */
/*
 * validate.h - layer validate's own: what it knows of everything that has a handle or a
 * cookie.
 *
 *   validate.c           which call is checked by what; the device, partitions, programs
 *   validate_commands.c  commands, suspends and moves, and their events
 *   validate_things.c    things: found, named, told wrong
 */
#ifndef HAL_CORE_LAYERS_VALIDATE_H
#define HAL_CORE_LAYERS_VALIDATE_H

#include <stdio.h>

#include "layers/layers.h"
#include "util/compiler.h"

#define FRAMES 24

/* Of validate.c's own kinds of handle; commands and moves by their cookie. */
enum kind { PART, QUEUE, MEM, PROG, KERNEL, COMMAND, QUIET };

struct binding {
	struct binding *next;
	const struct thing *part;
	uint32_t uses; /* commands in flight */
};

/* Everything that has a handle or a cookie.  Written and read under layers.lock, by the
 * thread whose call it is. */
struct thing {
	struct handle h;
	struct thing *parent; /* partition of queue and mem, program of kernel, queue of
				 command, what moves */
	uint32_t children;    /* queues and buffers, bindings too, of a partition */
	uint32_t uses;        /* commands in flight that use it; of a queue: all of it */
	bool end_failed;      /* its end was answered with an error */
	bool lost;            /* the device was lost before it ended */
	/* partition */
	struct hal_bk_partition_desc desc, target; /* target.units 0: it does not move */
	bool wide;
	/* queue */
	bool stopping, stopped; /* suspend asked for, quiet */
	uint32_t mode;          /* of that suspend */
	uint32_t kept;          /* of .uses: by a suspend in FOLD or SAVE, while quiet */
	bool failed;            /* a command of it ended with -EIO */
	struct thing *oldest;   /* command on the device */
	/* mem */
	uint64_t bytes;
	bool mapped, flagged, out; /* flagged: made with flags */
	/* program */
	struct binding *bindings;
	/* kernel */
	uint32_t arg_count;
	uint64_t arg_bytes[HAL_ARGS_MAX];
	/* command */
	const struct hal_bk_cmd *cmd;
	struct thing *newer; /* of its queue */
	/* Who made it; none of a command. */
	int frame_count;
	void *frames[FRAMES];
};

struct validate {
	/* Constant from create to destroy. */
	const struct layers *layers;
	FILE *report;
	/* All else under layers.lock. */
	struct handles handles;
	bool has_info;
	struct hal_device_info info;
	uint64_t reach_ns; /* virtual: time is there, or beyond */
	bool lost;         /* a poll has said so */
	struct binding *spare;
	uint32_t owed; /* events that are to come */
	uint32_t wrong;
	char first[400]; /* the first thing that was wrong */
};

/* ---- validate_things.c ------------------------------------------------------------ */

/* Writes it down; -EPROTO. */
int validate_wrong(struct validate *v, const char *side, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
#define CORE(v, ...)    validate_wrong((v), "the core", __VA_ARGS__)
#define BACKEND(v, ...) validate_wrong((v), "the backend", __VA_ARGS__)

/* queue 3 of partition 1 "video" */
void thing_describe(const struct thing *t, char *text, size_t size);
/* Everything that is alive, into report when it is not NULL: how many, the first few. */
uint32_t things_living(const struct validate *v, FILE *report, char *text, size_t size);
/* Alive or not; NULL: there never was one. */
struct thing *thing_find(const struct validate *v, enum kind kind, uint64_t key);
/* Not NULL: the layer has made room before. */
struct thing *thing_add(struct validate *v, enum kind kind, uint64_t key);
/* NULL, after validate_wrong(), unless it is alive and the kind it should be. */
struct thing *thing_need(struct validate *v, const struct layer_call *c, enum kind kind,
			 const void *handle);
/* What the backend has just given. */
struct thing *thing_given(struct validate *v, struct layer_call *c, enum kind kind);
/* NULL: it is not bound there. */
struct binding *thing_binding(const struct thing *prog, const struct thing *part);

/* ---- validate_commands.c: before and after ---------------------------------------- */

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
