/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.h - what can be put between the core and a backend: each layer sees every call
 * on its way down and on its way back.
 *
 *   core -> trace -> validate -> fault -> backend
 *
 * A device without layers calls its backend's own table: nothing here is on its way.
 * With one, layers.c gives the core a table of its own, made of one function an
 * operation, which fills a struct layer_call and asks each layer in turn.  What the
 * backend does beside the engine is asked for by other threads, so layers have a lock:
 * not over the backend's operation, but it may make the engine wait a moment, as nothing
 * else does.
 */
#ifndef HAL_CORE_LAYERS_H
#define HAL_CORE_LAYERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "config/registry.h"
#include "loop/device.h"

/* Every operation that has a device, in the order of hal/backend.h. */
#define LAYER_OPS(X)                                                                     \
	X(open)                                                                          \
	X(close)                                                                         \
	X(get_info)                                                                      \
	X(partition_create)                                                              \
	X(partition_destroy)                                                             \
	X(queue_create)                                                                  \
	X(queue_destroy)                                                                 \
	X(mem_alloc)                                                                     \
	X(mem_free)                                                                      \
	X(mem_write)                                                                     \
	X(mem_read)                                                                      \
	X(mem_map)                                                                       \
	X(mem_unmap)                                                                     \
	X(mem_swap)                                                                      \
	X(colors_set)                                                                    \
	X(program_load)                                                                  \
	X(program_unload)                                                                \
	X(kernel_get)                                                                    \
	X(program_bind)                                                                  \
	X(program_unbind)                                                                \
	X(extension)                                                                     \
	X(isolation)                                                                     \
	X(counters)                                                                      \
	X(partition_widen)                                                               \
	X(mem_out)                                                                       \
	X(mem_in)                                                                        \
	X(mem_clear)                                                                     \
	X(submit)                                                                        \
	X(poll)                                                                          \
	X(now)                                                                           \
	X(suspend)                                                                       \
	X(resume)                                                                        \
	X(resize)                                                                        \
	X(event_fd)                                                                      \
	X(next)                                                                          \
	X(doorbell)                                                                      \
	X(limit)

enum layer_op {
#define X(name) CALL_##name,
	LAYER_OPS(X)
#undef X
		LAYER_OP_COUNT,
};

extern const char *const layer_op_names[LAYER_OP_COUNT];

/* One call.  What the operation does not have is 0. */
struct layer_call {
	enum layer_op op;
	int32_t priority;
	uint32_t index, flags, mode, max;
	/* What it is about, and the partition it belongs to. */
	void *part, *queue, *mem, *other, *prog;
	/* until_ns: also limit's window, and the latest time that was told before a now.
	 */
	uint64_t bytes, offset, cookie, until_ns;
	const struct hal_bk_colors *colors; /* of mem_alloc, mem_in */
	const struct hal_bk_partition_desc *desc;
	const struct hal_bk_cmd *cmd;
	const void *data; /* of mem_write, mem_read, program_load */
	const char *name; /* of extension */
	/* Where its answers are. */
	void **out;
	struct hal_device_info *info;
	struct hal_bk_kernel_info *kernel;
	struct hal_bk_event *events;
	struct hal_bk_counter *counters;
	uint64_t *bound_bytes;
	int64_t result; /* 0, -errno, a count, a time */
};

struct layers;

struct layer_type {
	const char *name;
	/* Makes *state when the options ask for it, else leaves it NULL. */
	int (*create)(struct layers *l, const struct hal_bk_config *cfg, void **state);
	/* 0, or what was wrong while it was there. */
	int (*destroy)(void *state);
	/* Not 0: the call goes no further and answers that; fail() has been called. */
	int (*before)(void *state, const struct layer_call *c);
	/* May change the result.  Only of calls that before() let pass. */
	void (*after)(void *state, struct layer_call *c);
};

extern const struct layer_type layer_trace, layer_validate, layer_fault;

struct layers {
	struct hal_backend table; /* what the core calls */
	const struct hal_backend *real;
	void *bk; /* the backend's device */
	const struct hal_device *dev;
	pthread_mutex_t lock;      /* of the layers' states */
	atomic_ullong reported_ns; /* the latest time that anybody has been told */
	uint32_t count;
	struct {
		const struct layer_type *type;
		void *state;
	} at[3];
};

/* Opens device index of b into dev->bk, through the layers that config asks for: *out, or
 * NULL; and has dev->table call them. */
int layers_open(struct hal_device *dev, const struct config *config,
		const struct backend *b, const struct hal_bk_config *bk_cfg,
		uint32_t index, struct layers **out);
/* Takes them off; 0, or what they found wrong. */
int layers_close(struct layers *l);
/* The backend's own handle of bk, that of a device with these layers. */
void *layers_native(const struct layers *l, void *bk);
/* What a layer knows to be alive, and where it was made; else "". */
void layers_living(struct layers *l, char *text, size_t size);

/* Validate's part of hal_close's -EBUSY: what is alive and where it was made. */
void validate_living(const struct layers *l, char *text, size_t size);

/* ---- handles.c: what a backend gave, by address ----------------------------------- */

/* First member of what is kept for one. */
struct handle {
	struct handle *next;
	uint64_t key;
	uint32_t kind;
	uint32_t id; /* counted from 0, a kind */
	bool alive;
};

#define HANDLE_KINDS 8

struct handles {
	struct handle **slots;
	uint32_t slot_count, count;
	size_t bytes; /* of an entry */
	struct handle *spare;
	uint32_t next_id[HANDLE_KINDS];
};

int handles_init(struct handles *t, size_t bytes);
void handles_fini(struct handles *t);
/* Alive or not; NULL: there never was one. */
struct handle *handles_find(const struct handles *t, uint32_t kind, uint64_t key);
/* The next handles_add will not want for memory. */
int handles_reserve(struct handles *t);
/* Alive, with a number of its own, all else 0; NULL: no memory. */
struct handle *handles_add(struct handles *t, uint32_t kind, uint64_t key);

#endif
