/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA backend's own structures: the engine's, but for what other threads touch.
 *
 * program_load, kernel_get, mem_alloc, mem_free, mem_write and mem_read are the callers'
 * (the driver compiles, allocates, copies wait).  They share with the engine: the shape,
 * the context and the symbols, which are constant; the driver, which takes calls of any
 * thread; .lost, which is atomic; the lane, ranges of addresses and the list of what is
 * given back later, which have locks; counts of bytes and of a partition's buffers, which
 * are atomic.  A program is its loader's alone until program_load returns and does not
 * change after that.  A caller's thread has our context current only within a call; the
 * engine's keeps it.
 */
#ifndef BACKENDS_CUDA_INTERNAL_H
#define BACKENDS_CUDA_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <hal/backend.h>
#include <hal/cuda.h>
#include <hal/gpu.h>

#include "backends/stream/bytes.h"
#include "backends/stream/lane.h"
#include "backends/stream/later.h"
#include "backends/stream/offer.h"
#include "backends/stream/region.h"

#include "cu_calls.h"
#include "ptx/color.h"

#define STREAM_NAME "cuda"
#define STREAM_HOST cu_host
/* A hardware channel has some 1,000 entries, a command takes three, and how streams share
 * channels is not known.  A launch into a full channel blocks the engine. */
#define STREAM_INFLIGHT_ALL 300u
extern const struct hal_host *cu_host;
#include "backends/stream/args.h"
#include "backends/stream/slots.h"

#define CU_INFLIGHT_MAX 64u
#define CU_STOPS_MAX    8u     /* with preempt=block: each has lists of its own */
#define CU_STOP_BLOCKS  65536u /* of a launch that can be stopped, unless it is cut */
#define CU_SLICES       2u     /* of a queue, in flight */
#define CU_GRAPHS_MAX   8u     /* of a queue */

struct cu_symbols {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration is made of them. */
#define CU_SYMBOL(name, params, args) uint32_t(*name) params;
	CU_ALL_CALLS(CU_SYMBOL)
#undef CU_SYMBOL
	/* A stand-in's alone; else NULL. */
	void (*drive)(uint32_t on);
	void (*advance)(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);
	uint32_t (*busy)(uint32_t device);
};

/* What a partition is; as the option has them. */
enum cu_way {
	CU_WAY_NONE, /* the whole device */
	CU_WAY_GREEN,
	CU_WAY_MASK,   /* at launch */
	CU_WAY_STREAM, /* in a stream */
	CU_WAY_AUTO,   /* the best that holds */
};
#define CU_WAYS 3u /* that are tried out */

struct cu_options {
	const char *library;
	bool virtual_clock;
	bool host_memory;
	bool vmm;       /* buffers lie in a range of their partition's */
	uint64_t range; /* bytes of one; 0: as many as the device has memory */
	bool bounds;    /* kernels reach no further than that */
	enum cu_way way;
	bool block;        /* kernels look at a flag before each block */
	bool restart;      /* ... and in loops of their blocks */
	uint64_t slice_ns; /* launches of best effort are cut into pieces; 0: they are not
			    */
	bool graphs;       /* recorded commands are given together */
	uint32_t inflight; /* commands of a queue that the device has */
	uint32_t every;    /* launches for which one mark is written */
	uint64_t hang_ns;  /* of a launch; 0: it may take for ever */
	uint32_t remainder; /* units that no partition gets */
	const char *helper;
	uint32_t trial_ms;
};

#define CU_MIG_UUID 48u
#define CU_MIG_MOST 64u
/* A MIG instance, as NVML knows it. */
struct cu_mig {
	char uuid[CU_MIG_UUID], profile[16];
	uint32_t gpu, instance; /* NVML's number of the GPU, GPU instance there */
	uint32_t multiprocessors;
	uint64_t memory_bytes;
};

/* What a device is, before and after it is open. */
struct cu_shape {
	int device;
	char name[64];
	char bus_id[32];
	uint64_t memory_bytes;
	int major, minor, multiprocessors;
	int max_threads, max_block[3], max_grid[3], max_shared, max_shared_optin;
	int vmm, export_fd; /* memory has addresses of one's own; it can be exported */
	bool stand_in;
	char mig[CU_MIG_UUID]; /* the MIG instance that it is; "": none */
	bool mig_alone; /* nothing else is in its GPU instance, as far as NVML says */
};

#define CU_UNITS_MOST 128u
/* Which bit of a mask is which unit. */
struct cu_mask {
	uint32_t stream_at; /* where in a stream; 0: masks are in launches' descriptors */
	uint32_t count, per;           /* units, multiprocessors of one at most */
	uint32_t first[CU_UNITS_MOST]; /* multiprocessor */
	uint8_t bit[CU_UNITS_MOST];
};

/* What came of trying a way out on a device. */
struct cu_tried {
	enum cu_way way;
	int err;             /* 0: it holds; -ENOTSUP: it does not; else: nobody knows */
	uint32_t units, per; /* green contexts */
	struct cu_mask mask;
	char why[200]; /* of err */
};

/* What is known of a device's ways, and whose it is. */
struct cu_verdict {
	char device[64], build[160]; /* GPU and driver; "": they cannot be told */
	char setup[48];              /* how the driver shows that GPU here */
	uint32_t count;
	struct cu_tried tried[CU_WAYS];
};
#define CU_VERDICT_BYTES 8192u

/* What is given back by stream/later.h. */
enum cu_kind {
	CU_KIND_STREAM,
	CU_KIND_EVENT,
	CU_KIND_EXEC,
	CU_KIND_GRAPH,
	CU_KIND_MODULE, /* here the driver may wait, and in what follows */
	CU_KIND_HOST,
	CU_KIND_REGION, /* of the application's memory */
	CU_KIND_DEVICE,
	CU_KIND_PHYSICAL, /* memory without an address */
	CU_KIND_PLACE,
	CU_KIND_RANGE
};

/* Where a buffer is in its partition's range: see range.c. */
struct cu_range;
struct cu_chunk;
struct cu_place {
	struct cu_range *range; /* NULL: it is in none */
	struct cu_chunk *chunk; /* NULL: it has granules of its own */
	uint32_t first, count;  /* granules, or pieces of the chunk */
	bool out;               /* of a buffer that is evicted: it keeps its addresses */
};

struct cu_later {
	enum cu_kind kind;
	void *handle;
	uint64_t address; /* of the device's memory */
	struct cu_place place;
};

/* A word that the device writes: how far a stream is.  The host reads it without a call
 * of the driver, and it is still right after a fault. */
struct cu_word {
	void *memory;
	uint64_t address; /* the device's */
};

struct cu_partition {
	struct stream_partition base;
	/* The green context, made with the first queue; NULL: none yet, or the device has
	 * none. */
	void *green;
	bool masked;            /* at launch */
	uint32_t mask[4];       /* what its launches are kept off */
	struct cu_range *range; /* with memory=vmm */
	struct cu_color *color; /* NULL: its memory is on all channels */
	/* Units that it has left, while launches of it may run there. */
	uint32_t left_first, left_count;
	struct cu_partition *left_next;
};

struct cu_mem {
	struct cu_partition *part;
	uint64_t address; /* the device's */
	void *host;       /* NULL: device memory */
	uint64_t bytes;
	struct stream_region *region; /* of registered memory; else NULL */
	bool foreign;                 /* the program's own */
	struct cu_place place;
	/* Of memory that is exported or imported, without memory=vmm: of .place, and of
	 * this buffer alone; else NULL. */
	struct cu_range *range;
};

static inline uint64_t vendor_address(const void *mem)
{
	return ((const struct cu_mem *)mem)->address;
}

/* What slices of a kernel cost, and what is known to size them; the engine writes it, any
 * thread reads it. */
struct cu_pace {
	atomic_ullong wave_ns; /* as many blocks as run at a time; 0: not measured */
	atomic_ullong launches, slices, calls;
};

struct cu_kernel {
	const struct cu_program *program;
	struct hal_bk_kernel_info info;
	void *function;
	uint32_t block[3], shared_bytes;
	uint32_t shared_raised; /* dynamic: the driver accepts launches up to it */
	struct stream_params params;
	struct stream_kernel seen;
	uint32_t resident; /* blocks on one multiprocessor, of its own shape; of .stops */
	struct cu_pace pace;
	bool stops;        /* it looks at a flag: one more parameter */
	char why[PTX_WHY]; /* it does not */
	/* Of a program for partitions with some channels; if not, .why_not. */
	bool colored;
	char why_not[PTX_WHY];
};

struct cu_program {
	struct cu_program *older; /* of the device, under its programs_lock */
	const uint8_t *code;
	uint32_t format, code_bytes;
	void *module;
	uint32_t count;
	struct cu_kernel *kernels;
	/* The same for memory on 1 << i channels; NULL. */
	struct cu_program *colored[PTX_COLOR_MASKS];
};

/* A recorded command, as a node of a graph has it: what it is, then what may change. */
struct cu_step {
	uint32_t op, count;
	const struct cu_kernel *kernel;
	uint32_t groups[3], block[3], shared_bytes;
	uint32_t host; /* COPY: 1: to, 2: from is host memory */
	/* Arguments; COPY: to, from, bytes; FILL: where, pattern, words. */
	uint64_t values[HAL_ARGS_MAX];
};

/* Commands of a recorded sequence, in a row, as a graph of the driver's: see graph.c. */
struct cu_graph {
	void *graph, *exec;
	uint32_t *word;        /* of how many the device says that they have ended */
	uint32_t count, users; /* slots in flight that are of it */
	uint64_t used;         /* when, in launches of the queue's graphs */
	struct cu_stage {
		struct cu_step step;
		void *node;
	} stages[];
};

struct cu_graphs {
	uint32_t gathered; /* last commands of the queue, which the device has not yet */
	bool off;          /* the driver has refused one */
	uint64_t launches;
	uint32_t *words; /* pinned, one a graph */
	uint64_t words_at;
	struct cu_graph *made[CU_GRAPHS_MAX];
	struct cu_step steps[]; /* of what is gathered */
};

struct cu_slot {
	struct stream_slot base; /* .number: of the queue's word, or its graph's */
	struct cu_graph *graph;  /* NULL: by itself */
	/* Of a launch that stops: submitted in slices; blocks on one multiprocessor; what
	 * is left to submit of the list of its former run, then of the grid; of the
	 * blocks that were stopped, how many are in the list. */
	bool cut;
	uint32_t resident, list_next, list_end, grid_next, grid_end, listed;
};

/* How the launches of a queue are stopped, slot by slot: see stop.c. */
struct cu_stops {
	struct stream_stops base;
	uint64_t controls, lists; /* the device's: a ptx_control, two lists of a slot */
	struct ptx_control *seen; /* pinned: what is read there */
	uint64_t seen_at;
	struct cu_word raised;
	uint32_t raised_given; /* the last number that it is to have */
	bool cleared;          /* controls are being cleared, for the first launch */
	bool ready;            /* they have been */
	/* Numbers of the queue: .cleared is done; .seen is as the controls were left. */
	uint32_t ready_at, asked;
	bool due;      /* flags are to be raised when .ready */
	bool lowering; /* all has ended or was stopped: flags are being lowered */
	/* FOLD without flags: the slices that the device has end, and no more follow. */
	bool holding;
	/* Last commands of the queue of which the device has not been given all.  Only
	 * the first of them has been begun. */
	uint32_t waiting;
	/* Slices that the device has, oldest first. */
	uint32_t slices;
	uint64_t slice_ns; /* when the oldest became that */
	struct cu_slice {
		uint32_t number; /* of the queue */
		uint32_t waves;  /* of the one that is measured; else 0 */
		struct cu_kernel *kernel;
	} slice[CU_SLICES];
};

struct cu_queue {
	struct stream_queue base;
	void *stream;
	void *begin, *end; /* events around the command that is measured */
	struct cu_word word;
	bool masked;              /* a mask is in its stream */
	struct cu_stops *stops;   /* NULL: its launches cannot be stopped */
	struct cu_graphs *graphs; /* NULL: each command is given by itself */
	/* One a slot, which the device sets, pinned; no launch comes behind one that was
	 * set.  NULL: kernels reach anything. */
	uint32_t *astray;
	uint64_t astray_at;
	struct cu_slot slots[];
};

static inline struct stream_slot *vendor_slot(struct stream_queue *q, uint32_t at)
{
	return &((struct cu_queue *)q)->slots[at].base;
}

/* The units that no partition has, and what runs there: see remainder.c. */
struct cu_outside;
struct cu_remainder {
	pthread_mutex_t lock;
	uint16_t owners[CU_UNITS_MOST]; /* of each unit, with masks: its partitions */
	uint32_t mask[4];               /* what else is kept off, with masks */
	bool empty;
	bool opened, keeps;  /* keeps: the program's launches are kept off by masks */
	void *green, *fills; /* a context, its stream for fills; NULL: none */
	struct cu_outside *streams; /* the program's */
	struct cu_device *next_kept;
};

/* The way of host copies: a stream of its own through pinned memory. */
struct cu_lane {
	struct stream_lane base;
	void *stream, *events[STREAM_LANE_EVENTS], *stages;
	uint64_t stages_at; /* the device's address of them */
};

struct cu_device {
	struct stream_device base;
	struct cu_options opt;
	struct cu_shape shape;
	uint32_t index;
	uint64_t id; /* of all opens of the process */
	void *context;
	int least_priority, greatest_priority;
	struct cu_lane lane;
	void *flags; /* the stream that raises them; NULL: nothing is stopped */
	pthread_mutex_t programs_lock;
	struct cu_program *programs;
	struct cu_green *green; /* these two NULL: the device is one unit */
	struct cu_mask *mask;
	struct cu_remainder remainder;
	struct cu_partition *left;  /* that have moved, by the engine */
	char said[HAL_CUDA_SAID];   /* how it came to these */
	bool unmasked;              /* a launch was not kept off what it should be */
	struct stream_bytes memory; /* of what was free at open */
	uint32_t granule;           /* in which memory is mapped; 0: it cannot be */
	pthread_mutex_t range_lock; /* of ranges and what is in them */
	struct cu_range *ranges;    /* of all partitions, of those that went, too */
	struct cu_color *windows;   /* of partitions with some channels */
	struct cu_colors *colors;   /* constant once the device is open; NULL: no map */
	struct stream_later later;
	struct stream_offers offers; /* of the application's own memory and streams */
	struct stream_regions regions;
	/* bounds=yes: launches in flight may reach all of a range up to its .top as it
	 * was when they were submitted.  The engine sets it before it reads .top.  A
	 * thread that frees memory lowers .top before it reads .fenced. */
	atomic_bool fenced;
};

extern struct cu_symbols cu;

const struct hal_backend *hal_backend_cuda(const struct hal_host *host);

/* symbols.c */
int cu_load(const char *library);
/* Hardware channels that the streams of a device share, as the driver was started with;
 * CU_CHANNELS_MOST is the most that it takes. */
#define CU_CHANNELS_MOST 32u
uint32_t cu_channels(void);
const char *cu_result_name(uint32_t result);
bool cu_sticky(uint32_t result);
int cu_errno(uint32_t result);
int cu_failed(struct cu_device *dev, uint32_t result, const char *call);
/* The last call of this thread that failed. */
extern _Thread_local struct cu_refused {
	const char *call;
	uint32_t result;
} cu_refused;

/* 0, or -errno with the call and its result as the text; dev, which may be NULL, is lost
 * with a result that says so. */
static inline int cu_check(struct cu_device *dev, uint32_t result, const char *call)
{
	return __builtin_expect(result == CUR_SUCCESS, 1) ? 0
							  : cu_failed(dev, result, call);
}
#define CU(dev, call, ...) cu_check(dev, cu.call(__VA_ARGS__), #call)

/* What its partitions are. */
static inline enum cu_way cu_way_of(const struct cu_device *dev)
{
	if (dev->mask)
		return dev->mask->stream_at ? CU_WAY_STREAM : CU_WAY_MASK;
	return dev->green ? CU_WAY_GREEN : CU_WAY_NONE;
}

/* device.c */
uint64_t cu_now(void *device);
void cu_catch_up(struct cu_device *dev);
int cu_gone(struct cu_device *dev);

/* context.c */
extern _Thread_local uint64_t cu_entered;
int cu_enter_first(struct cu_device *dev);

static inline int cu_enter(struct cu_device *dev)
{
	return __builtin_expect(cu_entered == dev->id, 1) ? 0 : cu_enter_first(dev);
}

void cu_leave(void *device);
void cu_forget(const struct cu_device *dev);
int cu_push(struct cu_device *dev, uint32_t *mode);
void cu_pop(uint32_t mode);
void cu_later_init(struct cu_device *dev);
/* Give it back: at once if that cannot wait for the device, else as stream/later.h says.
 */
void cu_give_back(struct cu_device *dev, enum cu_kind kind, void *handle, int *err);
void cu_give_back_address(struct cu_device *dev, enum cu_kind kind, uint64_t address,
			  int *err);
void cu_give_back_place(struct cu_device *dev, const struct cu_place *place, int *err);
void cu_give_back_later(struct cu_device *dev, bool running);
/* Wait until all that has been given back is free memory.  Return false if there has been
 * none since the mark. */
uint64_t cu_room_mark(struct cu_device *dev);
bool cu_make_room(struct cu_device *dev, uint64_t mark);

/* copy.c */
void cu_lane_init(struct cu_device *dev);
int cu_lane_make(struct cu_device *dev);
void cu_lane_drop(struct cu_device *dev);
/* Between the host and device memory; waits for the end. */
int cu_copy(struct cu_device *dev, uint64_t address, void *data, const void *from,
	    uint64_t bytes);
int cu_clear(struct cu_device *dev, uint64_t address, uint64_t bytes);

/* partition.c */
uint32_t cu_units(const struct cu_device *dev);
int cu_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			void **out);
int cu_partition_destroy(void *device, void *partition);
int cu_resize(void *device, void *partition, const struct hal_bk_partition_desc *desc,
	      uint64_t cookie);
/* The units that partitions have left are nobody's when their moves are over. */
void cu_partitions_settle(struct cu_device *dev);

/* green.c */
/* How many units the device's multiprocessors are split into. */
int cu_green_count(int device, uint32_t *units);
/* Splits them, and holds each unit against where a kernel really ran in it; or, where
 * that has been done, against how many there were. */
int cu_green_open(struct cu_device *dev, const struct cu_tried *tried);
void cu_green_close(struct cu_device *dev);
uint32_t cu_green_units(const struct cu_device *dev);
/* The context of what no partition gets; NULL: there is nothing of that kind. */
void *cu_green_remainder(const struct cu_device *dev);
uint32_t cu_green_per(const struct cu_device *dev);
/* Find or make the context of those units, unless *green is one already; it stays until
 * cu_green_leave.  Any thread.  Making one takes about a millisecond, and may wait for
 * the device. */
int cu_green_take(struct cu_device *dev, uint32_t first, uint32_t count, void **green);
/* Leave a context whose streams have all been given back.  It is kept for the next
 * partition that lies there, within a limit.  Any thread. */
void cu_green_leave(struct cu_device *dev, void *green);

/* mask.c */
/* Finds out which bit is what, of masks at launch or in streams; or takes what has been
 * found. */
int cu_mask_open(struct cu_device *dev, enum cu_way way, const struct cu_mask *found);
/* The driver calls back: some device of the process has, or had, masks at launch. */
bool cu_mask_hooked(void);
uint32_t cu_mask_units(const struct cu_device *dev);
void cu_mask_of(const struct cu_device *dev, uint32_t first, uint32_t count,
		uint32_t mask[4]);
/* From now on launches that no thread has begun with cu_mask_begin are kept off that;
 * NULL: off nothing. */
void cu_mask_outside(const struct cu_device *dev, const uint32_t *mask);
/* Around a launch by this thread; whether the mask was taken. */
void cu_mask_begin(const struct cu_device *dev, const uint32_t *mask);
bool cu_mask_end(void);

/* stream_mask.c */
/* Where it is in a stream of this driver; else an error. */
int cu_stream_mask_place(uint32_t *at);
/* Launches in the stream are kept off that from now on; a new one has none yet. */
int cu_stream_mask_set(const struct cu_device *dev, void *stream, const uint32_t mask[4],
		       bool is_new);
/* Before it is destroyed. */
void cu_stream_mask_clear(const struct cu_device *dev, void *stream);

/* remainder.c */
/* Fail unless partitions can have some of a device's units. */
int cu_check_remainder(const struct cu_device *dev, uint32_t units);
void cu_remainder_init(struct cu_device *dev);
void cu_remainder_fini(struct cu_device *dev);
/* When the device's way is open, and before it is closed. */
int cu_remainder_open(struct cu_device *dev);
void cu_remainder_close(struct cu_device *dev);
/* A partition has those units, or has them no more. */
void cu_remainder_take(struct cu_device *dev, uint32_t first, uint32_t count);
void cu_remainder_leave(struct cu_device *dev, uint32_t first, uint32_t count);
/* Write zeros, in the stream that cu_remainder_fills names.  -EAGAIN: no units are left.
 */
int cu_remainder_fill(struct cu_device *dev, uint64_t address, uint64_t words);
void *cu_remainder_fills(const struct cu_device *dev);
/* See hal/cuda.h. */
int cu_remainder_stream(void *native, int32_t priority, void **stream);
int cu_remainder_end(void *native, void *stream);
/* Append to text what is kept off partitions. */
void cu_remainder_say(const struct cu_device *dev, char *text, size_t bytes);

/* mig.c */
/* MIG instances of all GPUs; 0: there are none, or no NVML. */
uint32_t cu_mig_list(struct cu_mig *out, uint32_t max);
/* The UUID of the instance that a device of that name is; "": it is none. */
void cu_mig_of(int device, const char *name, char uuid[CU_MIG_UUID]);
/* Return whether NVML knows the instance and none that shares its memory. */
bool cu_mig_alone(const char *uuid);

/* verdict.c */
/* Of the device, by the driver in use. */
void cu_verdict_of(int device, struct cu_verdict *v);
/* As text, in a file or between processes; it ends in a line that sums it up. */
void cu_verdict_write(const struct cu_verdict *v, char text[CU_VERDICT_BYTES]);
/* What the text says of v's device and driver; else NULL is not the answer but what is
 * wrong with it. */
const char *cu_verdict_read(struct cu_verdict *v, const char *text);
/* Of a way; NULL: nobody has tried. */
const struct cu_tried *cu_verdict_get(const struct cu_verdict *v, enum cu_way way);
/* The file that keeps it; what was wrong with it, or "". */
void cu_kept_read(struct cu_verdict *v, char why[HAL_CUDA_SAID]);
void cu_kept_write(const struct cu_verdict *v, char why[HAL_CUDA_SAID]);

/* ladder.c */
extern const char *const cu_way_names[];
/* Those that auto tries, best first. */
extern const enum cu_way cu_way_order[CU_WAYS];
/* The best way that holds on the device: by what is kept, else tried out by a helper in a
 * process of its own.  dev->said tells what came of the others. */
int cu_ladder(struct cu_device *dev);

/* extension.c */
const void *cu_extension(void *device, const char *name);

/* trial.c */
#define CU_SM_MOST 1024u
struct cu_trial;
int cu_trial_open(struct cu_device *dev, uint32_t multiprocessors, struct cu_trial **out);
void cu_trial_close(struct cu_device *dev, struct cu_trial *t, int *err);
/* Which multiprocessors a kernel in that stream ran on, which has as many blocks as fill
 * that many; it waits. */
int cu_trial_run(struct cu_device *dev, struct cu_trial *t, void *stream,
		 uint32_t multiprocessors, bool ran[CU_SM_MOST]);

/* memory.c */
int cu_mem_alloc(void *device, void *partition, uint64_t bytes,
		 const struct hal_bk_colors *colors, uint32_t flags, void **out);
int cu_mem_register(void *device, void *partition, void *address, uint64_t bytes,
		    void **out);
int cu_mem_import(void *device, void *partition, int fd, uint64_t bytes, uint32_t flags,
		  void **out);
int cu_mem_free(void *device, void *memory);
int cu_mem_out(void *device, void *memory);
int cu_mem_in(void *device, void *memory, const struct hal_bk_colors *colors);
int cu_mem_write(void *device, void *memory, uint64_t offset, const void *data,
		 uint64_t bytes);
int cu_mem_read(void *device, void *memory, uint64_t offset, void *data, uint64_t bytes);
int cu_mem_clear(void *device, void *memory);
int cu_mem_map(void *device, void *memory, void **address);
int cu_mem_unmap(void *device, void *memory);
/* Device memory of a queue's own, which counts as used. */
int cu_take_own(struct cu_device *dev, uint64_t bytes, uint64_t *address);
void cu_give_own(struct cu_device *dev, uint64_t address, uint64_t bytes, int *err);
/* Unregister the application's memory. */
int cu_region_end(struct cu_device *dev, struct stream_region *region);
/* Memory of the host's that the device reaches. */
int cu_pin(struct cu_device *dev, uint64_t bytes, void **p, uint64_t *address);

/* range.c */
/* Return true if memory can be exported and imported, with these options. */
bool cu_evicts(const struct cu_options *o, const struct cu_shape *s);
bool cu_shares(const struct cu_options *o, const struct cu_shape *s);
int cu_range_open(struct cu_device *dev);
/* The calling thread has the context current. */
int cu_range_make(struct cu_device *dev, uint64_t bytes, struct cu_range **out);
/* Its addresses, as far as something is mapped. */
struct ptx_range cu_range_of(const struct cu_range *range);
/* Something of it is still to be given back: it cannot go yet. */
bool cu_range_mapped(const struct cu_range *range);
int cu_range_end(struct cu_device *dev, struct cu_range *range);
/* What of them is not the driver's. */
void cu_ranges_free(struct cu_device *dev);
/* Make memory without an address. */
int cu_memory_create(struct cu_device *dev, uint64_t bytes, bool exported,
		     uint64_t *memory);
/* Memory at an address of the range: made for it, or whole granules of memory, whose
 * handle stays the caller's, unless that is 0. */
int cu_place_take(struct cu_device *dev, struct cu_range *range, uint64_t bytes,
		  uint64_t memory, struct cu_place *p, uint64_t *address);
/* It is nobody's any more, and is given back when that waits for nothing. */
void cu_place_leave(struct cu_device *dev, const struct cu_place *p, int *err);
int cu_place_end(struct cu_device *dev, const struct cu_place *p);
/* Give the memory of p up, and find new memory for it; one at a time in a range.  The
 * calling thread has the context current.  Both may wait for the device. */
int cu_place_out(struct cu_device *dev, struct cu_place *p);
int cu_place_in(struct cu_device *dev, struct cu_place *p);

/* share.c */
/* Allocate memory that can be exported; import it.  The calling thread has the context
 * current. */
int cu_share_make(struct cu_device *dev, struct cu_mem *mem);
int cu_share_import(struct cu_device *dev, struct cu_mem *mem, int fd);
/* Give the memory of such a buffer back. */
void cu_share_leave(struct cu_device *dev, const struct cu_mem *mem, int *err);
int cu_mem_export(void *device, void *memory, int *fd);

/* import.c */
int cu_offer_memory(void *native, uint64_t address, uint64_t bytes);
int cu_offer_stream(void *native, void *stream);
/* Find out whether the application captures q's stream, which is its own.  A query then
 * ends the capture, and submitted work becomes part of it.  0, or -errno with *captured
 * false. */
int cu_find_capture(struct cu_device *dev, const struct cu_queue *q, bool *captured);
/* Return 0 if it does not; -EBUSY: it does. */
int cu_check_capture(struct cu_device *dev, const struct cu_queue *q);

/* image.c */
int cu_image_parse(const void *image, size_t size, struct cu_program *prog);

/* program.c */
int cu_program_load(void *device, const void *image, size_t size, void **out);
int cu_program_unload(void *device, void *program);
int cu_kernel_get(void *device, void *program, uint32_t index,
		  struct hal_bk_kernel_info *info, void **kernel);

/* What of a program, whose PTX is that, can be rewritten so that it looks at a flag
 * before each block, and for the rest why not; *text is for the driver, NULL: as it is.
 */
int cu_program_rewrite(struct cu_program *prog, const char *code, size_t bytes,
		       enum ptx_pass pass, char **text);

/* Its variant for memory on 1 << own channels: kernels that cannot be rewritten are not
 * .colored.  A context is current. */
int cu_program_color(struct cu_device *dev, const struct cu_program *prog, uint32_t own,
		     struct cu_program **out);
void cu_program_drop_color(struct cu_device *dev, struct cu_program *prog, int *err);
/* Return the kernel of that number of m; NULL: the program has none of its name. */
struct cu_kernel *cu_program_kernel(const struct cu_program *prog, const struct ptx *m,
				    uint32_t number);

/* color.c */
int cu_colors_set(void *device, const struct hal_bk_color_map *map);
void cu_colors_drop(struct cu_device *dev);
void cu_colors_describe(const struct cu_device *dev, struct hal_device_info *info);
/* How many numbers of channels there are that a partition can own: 1, 2, 4 ... */
uint32_t cu_colors_owns(const struct cu_device *dev);
int cu_colors_make(const struct cu_device *dev, uint32_t first, uint32_t count,
		   struct ptx_color *color, struct ptx_colors *colors, char why[PTX_WHY]);
/* Addresses of a partition that owns some channels; nothing for one that owns all. */
int cu_color_open(struct cu_device *dev, struct cu_partition *part);
void cu_color_close(struct cu_device *dev, struct cu_partition *part, int *err);
/* The number of its channels is 1 << that. */
uint32_t cu_color_own(const struct cu_partition *part);
/* Memory on the partition's channels. */
int cu_color_take(struct cu_device *dev, struct cu_mem *mem);
/* Parameters of a kernel that was rewritten: how many. */
uint32_t cu_color_put(const struct cu_partition *part, uint64_t *values, void **params);
/* Copy or fill memory that is on some channels, in the stream.  Return false if it is
 * not. */
bool cu_color_copy(struct cu_device *dev, void *stream, uint64_t to, uint64_t from,
		   uint64_t bytes, int *err);
bool cu_color_fill(struct cu_device *dev, void *stream, uint64_t address,
		   uint32_t pattern, uint64_t words, int *err);
/* Where the byte at that address of a buffer is. */
uint64_t cu_color_at(struct cu_device *dev, uint64_t address);

/* fence.c */
int cu_fence_open(const struct cu_device *dev);
/* All of a program's kernels, or why not. */
int cu_fence_rewrite(const struct cu_program *prog, char **text, size_t *bytes);
int cu_fence_make(struct cu_device *dev, struct cu_queue *q);
/* A launch's memory is all in its partition's range. */
int cu_fence_check(const struct cu_queue *q, const struct hal_bk_cmd *cmd);
/* Parameters of the launch in that slot. */
struct ptx_range cu_fence_of(struct cu_device *dev, const struct cu_queue *q,
			     const struct cu_slot *s);
/* Whether what is there was kept from something. */
bool cu_fence_is_astray(const struct cu_queue *q, const struct cu_slot *s);
/* Whether what has ended there was kept from something: it has broken its queue then. */
bool cu_fence_astray(struct cu_queue *q, const struct cu_slot *s);

/* stop.c */
int cu_stops_make(struct cu_device *dev, struct cu_queue *q);
void cu_stops_drop(struct cu_device *dev, struct cu_queue *q, int *err);
/* Whether it has to wait for what the device has of its queue. */
bool cu_stops_wait(const struct cu_device *dev, struct cu_queue *q,
		   const struct hal_bk_cmd *cmd);
/* Return the blocks of a launch that can be stopped; else 0. */
uint32_t cu_stops_blocks(const struct cu_device *dev, const struct hal_bk_cmd *cmd);
/* Make sure that the controls have been cleared before what follows in q's stream. */
int cu_stops_ready(struct cu_device *dev, struct cu_queue *q);
/* Where the controls of a slot are, and its two lists. */
uint64_t cu_stops_control(const struct cu_queue *q, const struct cu_slot *s);
uint64_t cu_stops_list(const struct cu_queue *q, const struct cu_slot *s, uint32_t list);
/* Before the launch in that slot: the parameters for it. */
int cu_stops_stage(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s,
		   struct ptx_launch *launch);
/* FOLD: stop what runs, if something of it can be stopped. */
void cu_stops_fold(struct cu_device *dev, struct cu_queue *q);
/* Raise the flags of what runs, as soon as that is possible; if something of it can be
 * stopped. */
void cu_stops_raise(struct cu_device *dev, struct cu_queue *q);
/* At each poll: raise flags that could not be raised before, and find out what was
 * stopped. */
void cu_stops_look(struct cu_device *dev, struct cu_queue *q);
/* Return whether no flag of the queue is about to be written. */
bool cu_stops_idle(const struct cu_queue *q);
/* All that was stopped goes on. */
void cu_stops_go_on(struct cu_device *dev, struct cu_queue *q);

/* slice.c */
/* Return whether a launch of that many blocks is to be cut; resident: how many fit on a
 * multiprocessor. */
bool cu_slices_cut(const struct cu_device *dev, const struct cu_queue *q,
		   const struct hal_bk_cmd *cmd, uint64_t blocks, uint32_t resident);
/* Find out how many blocks of the launch fit on a multiprocessor. */
int cu_slices_fit(struct cu_device *dev, const struct hal_bk_cmd *cmd,
		  uint32_t *resident);
/* Accept the launch in s as the queue's next.  If it is its turn, submit its first part;
 * on failure nothing of it is submitted. */
int cu_slices_begin(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s,
		    uint32_t resident);
/* Submit as much of the waiting launches as may be in flight. */
void cu_slices_submit(struct cu_device *dev, struct cu_queue *q);
/* At each poll: note which slices have completed, and submit more. */
void cu_slices_look(struct cu_device *dev, struct cu_queue *q);
/* Return how many blocks of s have not been submitted. */
static inline uint32_t cu_slices_left(const struct cu_slot *s)
{
	return s->list_end - s->list_next + (s->grid_end - s->grid_next);
}
/* Learn from a launch that was measured. */
void cu_slices_learn(const struct cu_device *dev, const struct cu_queue *q,
		     const struct cu_slot *s, uint64_t ns);

/* graph.c */
int cu_graphs_check(const struct cu_device *dev);
int cu_graphs_make(struct cu_device *dev, struct cu_queue *q);
void cu_graphs_drop(struct cu_device *dev, struct cu_queue *q, int *err);
/* What of them is not the driver's. */
void cu_graphs_free(struct cu_queue *q);
/* Of a program that goes. */
void cu_graphs_forget(struct cu_device *dev, const struct cu_program *prog);
/* What has been gathered, the last .gathered of q, as one graph: false: it is not given.
 */
bool cu_graphs_launch(struct cu_device *dev, struct cu_queue *q);
bool cu_graph_ended(const struct cu_device *dev, const struct cu_queue *q,
		    const struct cu_slot *s);
/* Nothing of it runs. */
bool cu_graphs_empty(const struct cu_queue *q);

/* queue.c */
/* Return the slot of the i-th oldest command in flight. */
static inline struct cu_slot *cu_slot(struct cu_queue *q, uint32_t i)
{
	return &q->slots[stream_at(&q->base, i)];
}

static inline struct cu_partition *cu_part(const struct cu_queue *q)
{
	return (struct cu_partition *)q->base.part;
}

/* Return how far the device is that writes w. */
static inline uint32_t cu_at(const struct cu_word *w)
{
	return __atomic_load_n((uint32_t *)w->memory, __ATOMIC_ACQUIRE);
}

/* Return whether the device has written number to q's word, or a later one. */
static inline bool cu_reached(const struct cu_queue *q, uint32_t number)
{
	return stream_reached(cu_at(&q->word), number);
}

/* Have the driver accept launches of k with that much dynamic shared memory, which is at
 * most .info.shared_max. */
int cu_raise_shared(struct cu_device *dev, struct cu_kernel *k, uint32_t bytes);

/* Give the driver the launch in s, of that many groups, with its arguments and, if it is
 * not NULL, what a kernel that can be stopped has to know of it. */
int cu_launch(struct cu_device *dev, struct cu_queue *q, const struct cu_slot *s,
	      const uint32_t groups[3], const struct ptx_launch *stops);
/* Give the command in s, which has just gone to the device, its number. */
void cu_number(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s);
/* The same, and mark its end. */
void cu_number_apart(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s);
/* Return whether the next launch, or slice, of k is to be measured. */
bool cu_samples(struct cu_kernel *k);
/* Break q: s, and what follows it, is not submitted. */
void cu_withhold(struct cu_device *dev, struct cu_queue *q, struct cu_slot *s);
/* How long took what q's two events are around; 0: that is unknown. */
uint64_t cu_measured(struct cu_device *dev, const struct cu_queue *q);
/* The block and the shared memory of a launch of another shape than its kernel's. */
int cu_shape(struct cu_device *dev, const struct hal_bk_cmd *cmd, uint32_t block[3],
	     uint32_t *shared_bytes);
/* Mark the end of all that q has been given; see stream/marks.h. */
void cu_mark(struct cu_device *dev, struct cu_queue *q);
/* The call has failed behind a command: only the driver can say when q is empty. */
void cu_break_queue(struct cu_device *dev, struct cu_queue *q, const char *call,
		    uint32_t r);
/* At close: free the queues that were destroyed late, or hung and do no more.  The
 * context is current; waits for what has not ended and does not hang. */
void cu_free_hanging(struct cu_device *dev);
/* The driver's priority of a queue's. */
int cu_level(const struct cu_device *dev, int32_t priority);
/* Make a word of pinned memory, 0. */
int cu_make_word(struct cu_device *dev, struct cu_word *w);
/* Have q's stream copy device memory. */
int cu_move(struct cu_device *dev, struct cu_queue *q, uint64_t to, uint64_t from,
	    uint64_t bytes);
/* Have q's stream write the pattern to that many words. */
int cu_fill(struct cu_device *dev, struct cu_queue *q, uint64_t address, uint32_t pattern,
	    uint64_t words);
int cu_queue_create(void *device, void *partition, int32_t priority, void **out);
int cu_queue_destroy(void *device, void *queue);
int cu_submit(void *device, void *queue, const struct hal_bk_cmd *cmd);
uint64_t cu_next(void *device);
int cu_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max);
int cu_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie);
int cu_resume(void *device, void *queue);

#endif
