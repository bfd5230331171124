/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in's own structures; all of it under one lock, taken in entry.c. */
#ifndef TESTS_FAKES_CUDA_INTERNAL_H
#define TESTS_FAKES_CUDA_INTERNAL_H

#include <stdbool.h>

#include "backends/cuda/cu_calls.h"
#include "stand_in.h"

enum {
	DEVICES = 2,
	UNITS_MAX = 132,
	COPY_ENGINES = 2,
	PARAMS_MAX = 8,
	PENDING_MAX = 1024, /* launches of a stream; then a launch blocks */
	JOBS_KEPT = 1024,
	QUARANTINE = 64, /* freed memory that a touch of is noticed */
};
#define NEVER UINT64_MAX

enum object_kind {
	OBJECT_STREAM,
	OBJECT_EVENT,
	OBJECT_MODULE,
	OBJECT_FUNCTION,
	OBJECT_GREEN
};

/* Whatever has a handle.  Gone ones stay, so that their use is noticed. */
struct object {
	struct object *next;
	enum object_kind kind;
	struct device *dev;
	bool gone;
};

struct call; /* what a block of a launch sees */
struct kernel_spec {
	const char *name;
	/* false: an illegal address. */
	bool (*block)(const struct call *c, uint32_t index);
	uint64_t (*ns)(const struct call *c); /* of a block */
};

struct call {
	const struct kernel_spec *spec;
	uint64_t args[PARAMS_MAX];
	uint32_t arg_bytes[PARAMS_MAX];
	uint32_t arg_count;
	uint32_t grid[3], block[3];
};

struct module {
	struct object object;
	struct function *functions;
};

struct function {
	struct object object;
	struct function *next;
	struct module *module;
	struct call shape; /* the parameters */
	int cluster[3];    /* .reqnctapercluster; 0: none */
	bool loaded;
	int dynamic_shared;
};

struct event {
	struct object object;
	bool timing, recorded, done;
	uint32_t users; /* records that have not run */
	uint64_t at_ns;
};

enum op { OP_COPY, OP_FILL, OP_LAUNCH, OP_RECORD, OP_WRITE };

struct job {
	struct job *next;
	struct stream *stream;
	enum op op;
	bool started;
	uint64_t start_ns, end_ns; /* end_ns: NEVER while blocks are to run */
	uint64_t dst, src, bytes;
	uint32_t value;
	struct event *event;
	struct function *function;
	struct call call;
	uint64_t order; /* of launches, as they become ready */
	uint64_t blocks, given, done, first, stride;
	bool off[UNITS_MAX]; /* by the mask of its descriptor */
};

/* A green context: which units its streams may use. */
struct green {
	struct object object;
	bool unit[UNITS_MAX];
};

struct stream {
	struct object object;
	struct green *green; /* NULL: all units */
	int priority;
	struct job *first, **last;
	uint32_t jobs;
};

struct allocation {
	struct allocation *next;
	struct device *dev; /* NULL: the host's */
	uint64_t address, bytes;
	void *backing; /* of the device's: where its bytes are */
	bool freed;
};

struct unit {
	struct job *job; /* NULL: free */
	uint64_t block, end_ns;
};

struct device {
	uint32_t index, units, major, minor;
	const char *name;
	uint64_t memory, used;
	uint32_t retained;
	uint32_t lost;
	struct unit unit[UNITS_MAX];
	struct job *copying[COPY_ENGINES];
};

struct world {
	bool ready; /* cuInit */
	struct device devices[DEVICES];
	struct object *objects;
	struct allocation *allocations;
	uint64_t now_ns, orders, seed;
	uint32_t drivers; /* who drives the clock; 0: paced */
	uint64_t pace_mono, pace_ns;
	uint32_t live, misused, frees;
	char misuse[160];
	bool frees_wait;
	uint64_t memory_left;
	uint32_t unit_now;      /* whose block acts */
	uint32_t splits;        /* calls that split multiprocessors */
	bool leaky, mask_leaky; /* green contexts, masks are not kept to */
	bool silent;            /* nobody is called back */
	struct cuda_stand_in_job kept[JOBS_KEPT];
	uint32_t kept_first, kept_count;
};

extern struct world world;

/* kernels.c */
const struct kernel_spec *kernel_find(const char *name);
/* The bytes behind an address of the device, when all are of one allocation; or NULL. */
void *memory_at(uint64_t address, uint64_t bytes);

/* world.c */
__attribute__((format(printf, 1, 2))) void misuse(const char *fmt, ...);
void world_pace(void);
/* To until_ns; or, when to_visible, to the first instant at which the host can see
 * something new.  False: nothing that runs will ever end. */
bool world_run(uint64_t until_ns, bool to_visible);
uint64_t world_next(void); /* NEVER: nothing */
void device_lose(struct device *dev, uint32_t result);
/* All that it has is dropped. */
void device_drop(struct device *dev);
bool device_busy(const struct device *dev);
/* The same, but for records. */
bool device_works(const struct device *dev);
void stream_push(struct stream *s, struct job *job);
/* Does anything that has not ended name it? */
bool memory_busy(const struct allocation *a);
bool module_busy(const struct module *m);
struct allocation *allocation_of(uint64_t address, uint64_t bytes);
void allocation_end(struct allocation *a);
uint64_t mono(void);

/* qmd.c: the export table; and a launch's descriptor, shown to whoever subscribed. */
const void *export_table(void);
void qmd_show(const struct device *dev, bool off[UNITS_MAX]);

/* What the environment wants of the driver there: "ignored", or "crash" and "hang", which
 * it does. */
bool ignores(const char *variable);

/* entry.c: lets others in, and time go by, within a call. */
bool breathe(void);
void blocks(const char *call);

/* calls.c: what each entry point does */
#define STAND_IN_DECLARE(name, params, args) uint32_t do_##name params;
CU_ALL_CALLS(STAND_IN_DECLARE)
struct device *current_device(void);
uint32_t set_up(void);

#endif
