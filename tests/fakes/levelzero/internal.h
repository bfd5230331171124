/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver's own structures; all of it under one lock, taken in entry.c. */
#ifndef TESTS_FAKES_LEVELZERO_INTERNAL_H
#define TESTS_FAKES_LEVELZERO_INTERNAL_H

#include <stdbool.h>

#include "backends/levelzero/ze_calls.h"
#include "stand_in.h"

enum {
	DEVICES = 5,
	TILES_MAX = 4,
	ENGINES_MAX = 8, /* a tile */
	GROUPS_MAX = 3,
	WAITS_MAX = 4,
	ARGS_MAX = 8,
	JOBS_KEPT = 4096,
};
#define NEVER UINT64_MAX
/* Work is in 1/840 ns, so that 1 to 8 commands share a tile's speed exactly. */
#define SHARES 840u

enum object_kind {
	OBJECT_DRIVER = 0x5a450001,
	OBJECT_DEVICE,
	OBJECT_CONTEXT,
	OBJECT_QUEUE,
	OBJECT_LIST,
	OBJECT_POOL,
	OBJECT_EVENT,
	OBJECT_MODULE,
	OBJECT_LOG,
	OBJECT_KERNEL,
	OBJECT_SCHEDULER,
	OBJECT_FENCE,
	OBJECT_PHYSICAL,
};

/* Handles point here.  The loader reads nothing of it. */
struct object {
	uint32_t kind;
};

struct group_spec {
	uint32_t flags, engines;
};

struct device_spec {
	const char *name;
	uint32_t type, tiles, groups;
	struct group_spec group[GROUPS_MAX];
	uint64_t ticks_per_second;
	uint32_t valid_bits;
	uint64_t tile_memory;
	bool shared; /* shared allocations */
	bool split;  /* its compute engines have compute units of their own */
};

struct engine {
	struct tile *tile;
	uint32_t ordinal, index;
	bool compute;
	struct job *running;
	bool follows;  /* the first of several that run it */
	uint64_t left; /* of running; NEVER */
	struct stream *streams;
};

struct tile {
	struct device *dev;
	uint32_t index;
	uint32_t engine_count;
	struct engine engines[ENGINES_MAX];
};

/* A root device or one of its tiles, as a handle. */
struct device {
	struct object object;
	uint32_t index;
	int32_t sub; /* -1: root */
	const struct device_spec *spec;
	bool lost;
	uint32_t visible; /* tiles, a mask; root only */
	struct tile tiles[TILES_MAX];
	struct device *subs; /* TILES_MAX of them */
	struct device *root;
	uint64_t used;
	struct object schedulers[2]; /* of copy engines, of compute engines */
	uint32_t mode;
};

struct context {
	struct object object;
	uint32_t children;
};

struct call;
struct kernel_spec {
	const char *name;
	uint32_t args;
	uint32_t arg_bytes[ARGS_MAX];
	/* false: a page fault. */
	bool (*run)(const struct call *call);
	uint64_t (*ns)(const struct call *call);
};

struct kernel {
	struct object object;
	const struct kernel_spec *spec;
	struct module *module;
	uint32_t size[3];
	uint64_t args[ARGS_MAX];
	uint32_t set;               /* mask of arguments that have a value */
	uint64_t serials[ARGS_MAX]; /* of the memory that they are in; 0: none */
	bool indirect;
};

struct module {
	struct object object;
	uint32_t count, kernels;
	struct context *ctx;
	char names[][32];
};

/* A launch: what the kernel sees. */
struct call {
	const struct kernel_spec *spec;
	uint64_t args[ARGS_MAX];
	uint32_t size[3];
	uint32_t groups[3];
	bool indirect; /* may follow an address that is no argument of memory */
};

/* END: behind what a list does; then it is out of use, and its fence is signalled. */
enum op { OP_BARRIER, OP_COPY, OP_FILL, OP_LAUNCH, OP_END };

struct job {
	struct job *next;
	enum op op;
	struct event *signal;
	struct event *waits[WAITS_MAX];
	uint32_t wait_count;
	struct stream *stream;
	struct list *list; /* NULL: immediate */
	struct fence *fence;
	uint64_t start_ns;
	void *dst;
	const void *src;
	size_t bytes;
	uint32_t pattern_bytes;
	uint8_t pattern[16];
	struct call call;
};

/* What an engine takes commands from: a queue or an immediate list. */
struct stream {
	struct stream *next;
	struct engine *engine;
	struct engine *more[TILES_MAX - 1]; /* of a root: the same on the other tiles */
	uint32_t more_count;
	struct context *ctx;
	uint32_t priority;
	uint64_t served;
	bool lost, synchronous, in_order;
	struct job *first, **last;
	uint32_t jobs;
};

struct queue {
	struct object object;
	struct stream stream;
	uint32_t fences;
};

struct fence {
	struct object object;
	struct queue *queue;
	bool signaled;
	uint32_t users;
};

struct list {
	struct object object;
	struct context *ctx;
	struct device *dev;
	bool immediate, closed;
	struct stream stream;      /* immediate */
	struct job *first, **last; /* recorded */
	uint32_t flying;
};

struct pool {
	struct object object;
	struct context *ctx;
	uint32_t count, events, flags;
	bool counted;                    /* its events are counter-based */
	struct device *devices[DEVICES]; /* none: all there are */
	uint32_t device_count;
};

struct event {
	struct object object;
	struct pool *pool;
	struct device *dev; /* that signalled it */
	bool signaled, lost;
	uint32_t users; /* jobs that will signal or wait for it */
	uint64_t start_ns, end_ns;
};

struct log {
	struct object object;
	char text[1024];
};

/* Device memory without an address; its bytes stay where they are mapped. */
struct physical {
	struct object object;
	struct context *ctx;
	struct device *dev; /* root */
	void *backing;
	size_t bytes;
	bool mapped;
};

/* Addresses that nothing but mappings may lie at. */
struct reservation {
	struct reservation *next;
	struct context *ctx;
	void *p;
	size_t bytes;
};

struct allocation {
	struct allocation *next;
	uint64_t serial;    /* no other has had it */
	struct device *dev; /* NULL: host */
	void *p;            /* the address */
	void *backing;      /* where its bytes are; p itself where the host may look */
	size_t bytes;
	uint32_t opened; /* IPC */
	bool imported;   /* the program's own: pages that it lies in are taken */
	/* Memory that can be exported: its file, else -1; and the descriptor that a query
	 * has given, which is the same from then on, else -1. */
	int file, given;
	bool mapped; /* backing is of a file, its own or that of an import */
	struct physical *physical; /* it is a mapping of that; else NULL */
};

struct world {
	bool ready; /* zeInit */
	struct object driver;
	struct device roots[DEVICES];
	struct device subs[DEVICES][TILES_MAX];
	struct device *present[DEVICES * TILES_MAX]; /* as devices of the driver */
	uint32_t present_count;
	bool flat, combined;
	uint64_t now_ns;
	uint32_t drivers; /* who drives the clock; 0: paced */
	uint64_t pace_mono, pace_ns;
	uint64_t serves;
	uint32_t live;
	uint32_t misused;
	const char *misuse;
	bool permit;
	uint64_t memory_left;
	bool shares_nothing; /* with other processes */
	uint32_t export_types, import_types;
	bool leaves_exports; /* zeMemFree does not close what was exported */
	uint64_t copy_ns;    /* on top of each copy between host and device */
	struct allocation *allocations;
	uint64_t serials; /* of allocations, given */
	struct reservation *reservations;
	struct lz_stand_in_job kept[JOBS_KEPT];
	uint32_t kept_first, kept_count;
};

extern struct world world;

/* kernels.c */
const struct kernel_spec *kernel_find(const char *name);
/* The bytes that an address of the device has, when they all belong to one allocation;
 * else NULL. */
void *memory_at(uint64_t address, uint64_t bytes);

/* world.c */
void world_init(void);
void world_pace(void);
/* It or one of its tiles has a stream that will never end anything any more. */
bool device_hangs(const struct device *dev);
/* Is the memory in use by what is queued or runs? */
bool memory_busy(const struct allocation *a);
/* Runs to until_ns, or to the first instant at which an event is signalled. */
void world_run(uint64_t until_ns, bool to_signal);
bool world_idle(void);
void stream_init(struct stream *s, struct device *dev, uint32_t ordinal, uint32_t index);
bool stream_stuck(const struct stream *s);
void stream_gone(struct stream *s);
void stream_add(struct stream *s, struct job *job);
void stream_lose(struct stream *s);
void job_free(struct job *job);
void device_lose(struct device *dev);
void misuse(const char *what);

/* entry.c: lets others in, and time go by the host's clock, within a call. */
void breathe(void);

/* entry.c: extension functions, as zeDriverGetExtensionFunctionAddress gives them. */
/* Someone drives the clock (1), or does no more (0). */
uint32_t clock_drive(uint32_t on);
/* To until_ns or the next event that is signalled; *idle: nothing that runs will end. */
uint32_t clock_advance(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);

/* The same of memory of the program's, which comes to be a host allocation's. */
uint32_t driver_import(void *driver, void *p, size_t bytes);
uint32_t driver_release(void *driver, void *p);

/* share.c: memory with a descriptor */
/* The types of descriptors, and who closes them, as after a reset. */
void share_reset(void);
/* Make or find the bytes of a: what is behind a descriptor asks for it. */
uint32_t share_back(struct allocation *a, const struct device *dev, size_t bytes,
		    const void *more);
/* Is there a structure of external memory in the chain? */
bool is_external(const void *more);
void share_free(struct allocation *a, size_t bytes);

/* virtual.c: memory at reserved addresses */
/* Add a to the list of what has addresses. */
void enter_allocation(struct allocation *a);
/* Do some of the bytes lie at reserved addresses? */
bool is_reserved(uint64_t address, uint64_t bytes);

/* calls.c: what each entry point does */
/* Make an object, which counts as live until it is destroyed; NULL: no memory. */
void *create(size_t bytes, uint32_t kind);
uint32_t destroy(struct object *o);
/* Where the list has the allocation that begins there, or NULL. */
struct allocation **find_allocation(const void *p);
uint32_t do_import(void *driver, void *p, size_t bytes);
uint32_t do_release(void *driver, void *p);
#define STAND_IN_DECLARE(table, slot, need, name, params, args) uint32_t do_##name params;
LZ_CALLS(STAND_IN_DECLARE)
/* Newer loaders ask for it themselves. */
uint32_t driver_properties(void *driver, struct ze_driver_properties *p);

#endif
