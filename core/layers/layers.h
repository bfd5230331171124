/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.h - optional layers between the core and a backend: trace, validate and fault.
 *
 *   core -> trace -> validate -> fault -> backend
 *
 * Each layer sees every call of an operation twice: before the backend executes it and
 * after it has returned.  A device without layers calls the backend's own table, so
 * layers that are off cost nothing.  A device with layers calls a table made by layers.c,
 * whose functions fill a struct layer_call and pass it to each layer.
 *
 * Application threads may call the backend concurrently with the engine.  A mutex
 * therefore guards the state of the layers.  It is released while the backend executes
 * the operation.  The engine may wait for this mutex for a moment; without layers it
 * never waits for a lock.
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

/* The operations that take a device as argument, in the order of hal/backend.h. */
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
	X(colors_set)                                                                    \
	X(program_load)                                                                  \
	X(program_unload)                                                                \
	X(kernel_get)                                                                    \
	X(program_bind)                                                                  \
	X(program_unbind)                                                                \
	X(extension)                                                                     \
	X(isolation)                                                                     \
	X(mem_clear)                                                                     \
	X(mem_register)                                                                  \
	X(mem_export)                                                                    \
	X(mem_import)                                                                    \
	X(submit)                                                                        \
	X(poll)                                                                          \
	X(now)                                                                           \
	X(suspend)                                                                       \
	X(resume)                                                                        \
	X(resize)                                                                        \
	X(event_fd)                                                                      \
	X(next)                                                                          \
	X(doorbell)                                                                      \
	X(mem_swap)                                                                      \
	X(mem_out)                                                                       \
	X(mem_in)                                                                        \
	X(partition_widen)                                                               \
	X(counters)                                                                      \
	X(limit)

enum layer_op {
#define X(name) CALL_##name,
	LAYER_OPS(X)
#undef X
		LAYER_OP_COUNT,
};

extern const char *const layer_op_names[LAYER_OP_COUNT];

/* A call of an operation.  Fields that the operation does not use are 0. */
struct layer_call {
	enum layer_op op;
	int32_t priority;
	/* index: also partition_widen's `wide`, colors_set's number of colours, and
	 * mem_import's file descriptor. */
	uint32_t index, flags, mode, max;
	/* The backend's handles that were passed. */
	void *part, *queue, *mem, *other, *prog;
	/* until_ns is poll's until_ns, limit's window or, for now, the latest time that
	 * was returned to any thread before the call. */
	uint64_t bytes, offset, cookie, until_ns;
	const struct hal_bk_colors *colors; /* of mem_alloc, mem_in */
	const struct hal_bk_partition_desc *desc;
	const struct hal_bk_cmd *cmd;
	const void *data; /* of mem_write, mem_read, program_load */
	const char *name; /* of extension */
	/* The caller's memory for results. */
	void **out;
	int *fd; /* of mem_export */
	struct hal_device_info *info;
	struct hal_bk_kernel_info *kernel;
	struct hal_bk_event *events;
	struct hal_bk_counter *counters;
	uint64_t *bound_bytes;
	int64_t result; /* 0, -errno, a count or a time */
};

struct layers;

struct layer_type {
	const char *name;
	/* Create the layer's state if the options enable the layer; otherwise leave
	 * *state NULL. */
	int (*create)(struct layers *l, const struct hal_bk_config *cfg, void **state);
	/* Free the state; return 0, or -errno for the problems that the layer found. */
	int (*destroy)(void *state);
	/* Inspect c.  A result other than 0 is returned to the core without calling the
	 * backend; the layer has then called fail(). */
	int (*before)(void *state, const struct layer_call *c);
	/* Inspect, and maybe change, the result of a call that before() let pass. */
	void (*after)(void *state, struct layer_call *c);
};

extern const struct layer_type layer_trace, layer_validate, layer_fault;

struct layers {
	struct hal_backend table; /* called by the core */
	const struct hal_backend *real;
	void *bk; /* the backend's device */
	const struct hal_device *dev;
	pthread_mutex_t lock;      /* guards the states */
	atomic_ullong reported_ns; /* latest time returned to any thread */
	uint32_t count;
	struct {
		const struct layer_type *type;
		void *state;
	} at[3];
};

/* Open device number index of backend b, with the layers that config enables.  Set
 * dev->bk, dev->table and *out; *out is NULL if no layer is enabled.  Return 0 or
 * -errno. */
int layers_open(struct hal_device *dev, const struct config *config,
		const struct backend *b, const struct hal_bk_config *bk_cfg,
		uint32_t index, struct layers **out);
/* Free the layers; return 0, or -errno for the problems that they found. */
int layers_close(struct layers *l);
/* Return the backend's own handle of a device whose handle with layers l is bk. */
void *layers_native(const struct layers *l, void *bk);
/* Write into text which objects are alive and which code created them, for hal_close's
 * -EBUSY.  Text is empty without layer validate. */
void layers_living(struct layers *l, char *text, size_t size);

/* Write the text of layers_living if l has layer validate. */
void validate_living(const struct layers *l, char *text, size_t size);

/* ---- handles.c: a table of the handles and cookies that layers know --------------- */

/* First member of an entry. */
struct handle {
	struct handle *next;
	uint64_t key; /* address or cookie */
	uint32_t kind;
	uint32_t id; /* number of the object, from 0 for each kind */
	bool alive;  /* false: destroyed; the entry stays */
};

#define HANDLE_KINDS 8

struct handles {
	struct handle **slots;
	uint32_t slot_count, count;
	size_t bytes;         /* size of an entry */
	struct handle *spare; /* for the next handles_add; or NULL */
	uint32_t next_id[HANDLE_KINDS];
};

int handles_init(struct handles *t, size_t bytes);
void handles_fini(struct handles *t);
/* Return the entry of key, alive or destroyed; NULL if key never had an entry. */
struct handle *handles_find(const struct handles *t, uint32_t kind, uint64_t key);
/* Allocate memory for the next handles_add, so that it cannot fail.  Return 0 or -ENOMEM.
 */
int handles_reserve(struct handles *t);
/* Add a live entry with a new number and all other fields 0; reuse a destroyed entry of
 * the same key.  Return NULL if memory is short. */
struct handle *handles_add(struct handles *t, uint32_t kind, uint64_t key);

#endif
