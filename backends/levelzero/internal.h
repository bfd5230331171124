/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Level Zero backend's own structures: the engine's, but for what other threads
 * touch.
 *
 * program_load, kernel_get, mem_alloc, mem_free, mem_write and mem_read are the callers'
 * (zeModuleCreate compiles, allocations and copies wait).  They share with the engine:
 * the shape, the context and the symbols, which are constant; the driver, which takes
 * calls of any thread; the trash, the list of buffers and a tile's lane for copies, which
 * have a lock each; counts of bytes and of a partition's buffers, which are atomic.  A
 * program is its loader's alone until program_load returns; from then on the engine's,
 * but for .count and each kernel's .info, which do not change any more.  A buffer does
 * not change but for .fd, which the lock of the list of buffers guards, and what mem_out
 * and mem_in change, which nobody else looks at meanwhile.  now is any thread's under the
 * real clock.
 */
#ifndef BACKENDS_LEVELZERO_INTERNAL_H
#define BACKENDS_LEVELZERO_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <hal/backend.h>
#include <hal/levelzero.h>

#include "ze_calls.h"

#define STREAM_NAME "levelzero"
#define STREAM_HOST lz_host
/* A tile says that it is lost, too, when an engine of it has failed: queues whose
 * commands end are not asked about. */
#define STREAM_CHECK_NS  UINT64_C(100000000)
#define STREAM_CHECK_ALL false
#define STREAM_HUNG      "time-out after %u ms, queue dropped"
extern const struct hal_host *lz_host;
#include "backends/stream/args.h"
#include "backends/stream/bytes.h"
#include "backends/stream/region.h"
#include "backends/stream/slots.h"

#define LZ_TILES_MAX    8u
#define LZ_ENGINES_MAX  64u
#define LZ_INFLIGHT_MAX 64u

enum lz_units { LZ_UNITS_AUTO, LZ_UNITS_TILE, LZ_UNITS_GROUP, LZ_UNITS_ENGINE };
enum lz_placement { LZ_MEM_DEVICE, LZ_MEM_SHARED, LZ_MEM_HOST };

/* Every call, resolved; NULL only where ze_calls.h does not need it. */
struct lz_symbols {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration is made of them. */
#define LZ_SYMBOL(table, slot, need, name, params, args) uint32_t(*name) params;
	LZ_CALLS(LZ_SYMBOL)
#undef LZ_SYMBOL
};

struct lz_options {
	const char *loader;
	bool virtual_clock;
	bool regular;        /* regular command lists, not immediate ones */
	uint32_t units;      /* enum lz_units */
	uint32_t inflight;   /* commands of a queue that the device has */
	uint32_t every;      /* launches of one mark */
	uint32_t placement;  /* enum lz_placement */
	uint32_t scheduler;  /* 0: unchanged, else 1 + enum lz_sched_mode */
	uint64_t timeout_ns; /* 0: a command may run for ever */
};

/* A compute engine, by tile, command queue group and index there. */
struct lz_engine {
	uint32_t tile, ordinal, index;
};

struct lz_unit {
	uint32_t first, count; /* of the device's engines */
};

/* What a device is, before and after it is open. */
struct lz_shape {
	void *driver, *root;
	struct ze_device_properties props;
	uint64_t memory_bytes;
	uint32_t tile_count, engine_count, unit_count;
	void *tiles[LZ_TILES_MAX]; /* the root itself where there are none */
	struct lz_engine engines[LZ_ENGINES_MAX];
	struct lz_unit units[LZ_ENGINES_MAX];
	uint32_t max_groups[3];
	uint32_t max_group_size[3], max_group_items;
	struct lz_engine copy[LZ_TILES_MAX]; /* for host copies: a copy engine if any */
	uint32_t copies[LZ_TILES_MAX];       /* engines in that group */
	bool tile_units;                     /* units are whole tiles */
	bool split; /* engines of a tile have compute units of their own */
	bool stand_in, can_drive, cache, pci, ipc, shared;
	bool relaxed;  /* allocations above props.max_mem_alloc_size can be asked for */
	bool in_order; /* immediate lists can be */
	bool counted;  /* events of such lists can be counter-based: no reset */
	/* LZ_EXTERNAL_*: kind of descriptor by which buffers are shared; 0: cannot. */
	uint32_t export_as, import_as;
	/* Extension functions by which a driver registers the application's memory, with
	 * its own handle, not the loader's; NULL: import_result says why not. */
	uint32_t (*import)(void *driver, void *p, size_t bytes);
	uint32_t (*release)(void *driver, void *p);
	void *import_driver;
	uint32_t import_result;
};

/* In the order in which they go. */
enum lz_kind {
	/* An event or a fence: what its group is about is in use until it is signalled.
	 */
	LZ_KIND_WAIT,
	LZ_KIND_WAIT_FENCE,
	LZ_KIND_FENCE,
	LZ_KIND_QUEUE,
	LZ_KIND_LIST,
	LZ_KIND_EVENT,
	LZ_KIND_POOL,
	LZ_KIND_KERNEL,
	LZ_KIND_MODULE,
	LZ_KIND_LOG,
	LZ_KIND_REGION, /* of the application's memory */
	/* Of a range (range.c): what is mapped there, the memory itself, the addresses.
	 */
	LZ_KIND_MAPPING,
	LZ_KIND_PHYSICAL,
	LZ_KIND_RESERVATION,
	LZ_KIND_MEMORY,
};

/* What a handle of the driver belongs to, by numbers that the device gives; 0: nothing.
 * In a group, what was destroyed first goes first. */
struct lz_group {
	uint64_t id, part;
};

/* What the driver would not destroy yet. */
struct lz_trash {
	enum lz_kind kind;
	void *handle;
	struct lz_group group;
	int fd;         /* of memory: the driver's descriptor (share.c), or -1 */
	uint64_t bytes; /* of a mapping or a reservation */
};

struct lz_partition {
	struct stream_partition base;
	uint32_t first, count; /* of the device's engines */
	atomic_uint next;      /* any thread: queues so far, which engines get in turn */
	uint64_t id;           /* in a lz_group */
	void *home;            /* the tile, or the root when there are several */
	uint32_t tile;         /* the first */
};

/* Reserved addresses, and the device memory that is mapped there (range.c). */
struct lz_range {
	void *address;
	uint64_t bytes; /* whole pages */
	void *physical; /* NULL: none, it is evicted */
	struct lz_group group;
};

struct lz_mem {
	struct lz_mem *next, **at;
	struct lz_partition *part;
	void *p;
	uint64_t bytes, id;
	uint32_t placement;
	bool external; /* it can be exported, or was imported */
	int fd;        /* exported: the driver's descriptor (share.c); else -1 */
	bool copied;   /* host memory that only copies use */
	struct stream_region *region; /* of registered memory; else NULL */
	uint64_t era; /* other memory of the device's has another, also at .p */
	bool evicted; /* it may be: its memory is .range's */
	struct lz_range range;
};

/* Of an argument that is not known, and of one that is no memory; memory has others. */
#define LZ_ERA_NONE   UINT64_C(0)
#define LZ_ERA_SCALAR UINT64_C(1)

/* What a tile's kernel object has been given, and launches with until it is given another
 * one.  Of memory the driver keeps more than the address: .era says which memory it was.
 */
struct lz_given {
	bool shaped; /* .group_size is not the kernel's own */
	uint32_t group_size[3];
	struct {
		uint64_t value, era;
	} args[HAL_ARGS_MAX];
};

struct lz_kernel {
	struct lz_program *prog;
	struct stream_kernel seen;
	struct hal_bk_kernel_info info;
	struct stream_params params; /* .scalar_bytes 0: memory, or an address */
	bool takes_address;          /* a scalar may be one */
	uint32_t group_size[3], group_most[3];
	void *handles[LZ_TILES_MAX];
	struct lz_given given[LZ_TILES_MAX];
};

struct lz_program {
	uint32_t format; /* enum lz_module_format */
	const uint8_t *code;
	size_t code_bytes;
	void *modules[LZ_TILES_MAX];
	struct lz_group group;
	uint32_t count;
	struct lz_kernel *kernels;
};

/* A command that the device has, or had: its events, and in regular mode its list and the
 * fence that tells when that has ended, which is after its event. */
struct lz_slot {
	struct stream_slot base;
	void *event, *list, *fence;
	void *timer; /* the same as .event, with times; only where there are marks */
	void *sign;  /* the one of both that tells its end; NULL: a later command's */
	bool used, timer_used; /* they are to be reset */
	bool timed;            /* it has ended, and these are its times */
	uint64_t stamp_ns;
	uint64_t start_ns, end_ns;
};

struct lz_queue {
	struct stream_queue base;
	const struct lz_engine *engine;
	int32_t priority;
	struct lz_group group;
	void *queue, *list, *pool;
	/* List on the tile's copy engine, for copies of host memory; NULL: there is none,
	 * or lists are regular. */
	void *copies;
	/* .list keeps the order of its commands, and one event tells the end of several
	 * launches.  Else each command waits for the event of the one before it. */
	bool marks;
	bool counted;      /* .event of its slots is never reset */
	void *timers;      /* the pool of .timer, and of .end */
	void *end;         /* signalled behind what a broken queue has */
	void *before;      /* of a copy in .copies that .list's next command waits for */
	bool waits;        /* the launch of the empty queue may wait for another's */
	uint32_t reached;  /* the number that the device is known to have come to */
	uint64_t asked_ns; /* virtual clock: when a mark was not reached yet; 0: never */
	struct lz_slot slots[];
};

static inline struct stream_slot *vendor_slot(struct stream_queue *q, uint32_t at)
{
	return &((struct lz_queue *)q)->slots[at].base;
}

static inline uint64_t vendor_address(const void *mem)
{
	return (uintptr_t)((const struct lz_mem *)mem)->p;
}

/* The way of a tile's host copies: through memory of the host's that the driver knows, by
 * an engine that only copies where there is one.  All of it under its lock. */
struct lz_lane {
	pthread_mutex_t lock;
	struct lz_group group;
	void *list, *pool, *event, *stage; /* made with the first copy */
	bool used;                         /* the event is to be reset */
	bool stuck;                        /* a copy has not ended */
};

struct lz_device {
	struct stream_device base;
	struct lz_options opt;
	struct lz_shape shape;
	uint32_t index;
	void *context;
	struct lz_lane lanes[LZ_TILES_MAX];
	pthread_mutex_t memory_lock; /* of .memory and .mem_ids */
	struct lz_mem *memory;
	uint64_t mem_ids;
	atomic_ullong eras;       /* of memory, given */
	struct stream_bytes used; /* device and shared memory */
	struct stream_regions regions;
	bool evicts;         /* buffers can go to the host: range.c */
	uint64_t longest_ns; /* command seen */
	/* Clock: base_ticks of the device at base_ns of device time; real clock: that was
	 * at base_mono of CLOCK_MONOTONIC, and ahead_ns is what that lacks to device
	 * time. */
	uint64_t base_ticks, base_ns, base_mono;
	atomic_ullong ahead_ns;
	atomic_ullong ids; /* of groups, given */
	uint32_t (*drive)(uint32_t on);
	uint32_t (*advance)(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);
	pthread_mutex_t trash_lock;
	struct lz_trash *trash;
	uint32_t trash_count, trash_room;
};

extern struct lz_symbols lz;
extern bool lz_build_logs; /* what a compiler says can be read */

const struct hal_backend *hal_backend_levelzero(const struct hal_host *host);

/* symbols.c */
int lz_load(const char *loader);
const char *lz_result_name(uint32_t result);
int lz_errno(uint32_t result);
/* Find an extension function of the driver's, and the driver's own handle for it.  Return
 * the result that says that it has none. */
uint32_t lz_find_function(void *driver, const char *name, void **function, void **own);
int lz_failed(uint32_t result, const char *call);

/* 0, or -errno with the call and its result as the text. */
static inline int lz_check(uint32_t result, const char *call)
{
	return __builtin_expect(result == LZ_SUCCESS, 1) ? 0 : lz_failed(result, call);
}
#define LZ(call, ...) lz_check(lz.call(__VA_ARGS__), #call)

/* device.c */
uint64_t lz_now(void *device);
void lz_raise(struct lz_device *dev, uint64_t ns);
uint64_t lz_mono(void);
int lz_calibrate(struct lz_device *dev);
uint64_t lz_ticks_to_ns(const struct lz_device *dev, uint64_t ticks);
uint64_t lz_id(struct lz_device *dev);
/* Return a number that no memory of the device has had. */
uint64_t lz_era(struct lz_device *dev);
/* Around each call that makes something of a kind; lz_made returns err. */
void lz_making(enum lz_kind kind);
int lz_made(struct lz_device *dev, enum lz_kind kind, int err);
#define LZ_MAKE(dev, kind, call, ...)                                                    \
	(lz_making(kind), lz_made(dev, kind, LZ(call, __VA_ARGS__)))
void lz_keep(struct lz_device *dev, enum lz_kind kind, void *handle,
	     struct lz_group group);
uint32_t lz_discard(struct lz_device *dev, enum lz_kind kind, void *handle,
		    struct lz_group group);
void lz_drop(struct lz_device *dev, enum lz_kind kind, void *handle,
	     struct lz_group group, int *err);
/* The same for memory, and the driver's descriptor of it, which may be -1. */
void lz_drop_memory(struct lz_device *dev, void *p, int fd, struct lz_group group,
		    int *err);
/* The same for a mapping or a reservation. */
void lz_drop_pages(struct lz_device *dev, enum lz_kind kind, const struct lz_range *r,
		   int *err);
/* Return whether something of that group has not been destroyed yet, or a command that
 * was given up may still use memory of its partition. */
bool lz_held(struct lz_device *dev, struct lz_group group);
void lz_catch_up(struct lz_device *dev);
/* Destroy what the driver would not destroy before; return whether something went. */
bool lz_empty_trash(struct lz_device *dev);

/* copy.c */
void lz_lanes_init(struct lz_device *dev);
void lz_lanes_drop(struct lz_device *dev);
/* Between the host and device memory of the partition, where src NULL is zeros; waits for
 * the end. */
int lz_copy(struct lz_device *dev, const struct lz_partition *part, void *dst,
	    const void *src, uint64_t bytes, bool to_host);

/* partition.c */
int lz_shape_units(struct lz_shape *s, uint32_t units);
uint32_t lz_isolation(void *device, const struct hal_bk_partition_desc *desc);
int lz_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			void **out);
int lz_partition_destroy(void *device, void *partition);

/* memory.c */
int lz_mem_alloc(void *device, void *partition, uint64_t bytes,
		 const struct hal_bk_colors *colors, uint32_t flags, void **out);
int lz_mem_register(void *device, void *partition, void *address, uint64_t bytes,
		    void **out);
int lz_mem_free(void *device, void *memory);
int lz_mem_write(void *device, void *memory, uint64_t offset, const void *data,
		 uint64_t bytes);
int lz_mem_read(void *device, void *memory, uint64_t offset, void *data, uint64_t bytes);
int lz_mem_clear(void *device, void *memory);
int lz_mem_map(void *device, void *memory, void **address);
int lz_mem_unmap(void *device, void *memory);

int lz_mem_import(void *device, void *partition, int fd, uint64_t bytes, uint32_t flags,
		  void **out);
/* Charge bytes to the device's memory; -ENOSPC if fewer are free. */
int lz_take_bytes(struct lz_device *dev, uint64_t bytes);

/* range.c */
/* Return whether the loader has the calls, and the options allow evictions. */
bool lz_range_calls(const struct lz_options *o);
/* Find out whether the device's buffers can be evicted: dev->evicts. */
int lz_range_open(struct lz_device *dev);
/* Set r->bytes: the whole pages that bytes on home take up. */
int lz_range_size(struct lz_device *dev, void *home, uint64_t bytes, struct lz_range *r);
/* Reserve addresses for r->bytes, and map memory of home there; part: the partition's
 * .id. */
int lz_range_make(struct lz_device *dev, void *home, uint64_t part, struct lz_range *r);
/* Give all of r back.  The first error counts and has the text. */
void lz_range_drop(struct lz_device *dev, const struct lz_range *r, int *err);
int lz_mem_out(void *device, void *memory);
int lz_mem_in(void *device, void *memory, const struct hal_bk_colors *colors);

/* share.c */
/* Find out how the device's buffers can be shared: .export_as, .import_as. */
int lz_share_read(struct lz_shape *s);
int lz_mem_export(void *device, void *memory, int *fd);
/* Return -EINVAL if the descriptor is known to have fewer bytes. */
int lz_share_check(int fd, uint64_t bytes);
/* Free memory that has been exported.  fd: the driver's descriptor.  Return the driver's
 * result. */
uint32_t lz_share_free(struct lz_device *dev, void *p, int fd);

/* image.c */
int lz_image_parse(const void *image, size_t size, struct lz_program *prog);

/* program.c */
int lz_program_load(void *device, const void *image, size_t size, void **out);
int lz_program_unload(void *device, void *program);
int lz_kernel_get(void *device, void *program, uint32_t index,
		  struct hal_bk_kernel_info *info, void **kernel);
int lz_program_bind(void *device, void *program, void *partition, uint64_t *bytes);
int lz_program_unbind(void *device, void *program, void *partition);

/* queue.c */
int lz_queue_create(void *device, void *partition, int32_t priority, void **out);
int lz_queue_destroy(void *device, void *queue);
int lz_submit(void *device, void *queue, const struct hal_bk_cmd *cmd);
uint64_t lz_next(void *device);
int lz_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max);
int lz_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie);
int lz_resume(void *device, void *queue);

/* extension.c */
int lz_set_scheduler(struct lz_device *dev, uint32_t mode);
const void *lz_extension(void *device, const char *name);

#endif
