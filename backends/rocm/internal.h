/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ROCm backend's own structures: the engine's, but for what other threads touch.
 *
 * Callers load programs, allocate and free memory, and copy to and from the host
 * themselves; with the engine they share the library, which takes calls of any thread,
 * what is constant from open on, .lost and counts of bytes and of a partition's buffers,
 * which are atomic, and the lane and the list of what is given back later, under their
 * locks.  HIP keeps which device is meant in the thread: the engine's thread keeps
 * ours, a caller's gets its own back.
 */
#ifndef BACKENDS_ROCM_INTERNAL_H
#define BACKENDS_ROCM_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <hal/backend.h>
#include <hal/device/hal_preempt.h>
#include <hal/gpu.h>
#include <hal/rocm.h>

#include "backends/stream/bytes.h"
#include "backends/stream/lane.h"
#include "backends/stream/later.h"
#include "backends/stream/offer.h"
#include "backends/stream/region.h"

#include "hip_calls.h"
#include "hsa_calls.h"
#include "topology.h"

#define STREAM_NAME "rocm"
#define STREAM_HOST rocm_host
/* HIP's streams share at least one hardware queue of 16,384 packets; a command takes up
 * to three. */
#define STREAM_INFLIGHT_ALL 5000u
extern const struct hal_host *rocm_host;
#include "backends/stream/args.h"
#include "backends/stream/slots.h"

#define ROCM_INFLIGHT_MAX 64u
#define ROCM_STOPS_MAX    8u  /* with preempt=block: each has lists of its own */
#define ROCM_RING_PACKETS 64u /* of a queue of HSA's */
#define ROCM_ARCH_BYTES   64u
#define ROCM_STOP_BLOCKS  65536u /* of a launch that can be stopped */

struct hip_symbols {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration is made of them. */
#define HIP_SYMBOL(name, params, args) uint32_t(*name) params;
	HIP_ALL_CALLS(HIP_SYMBOL)
#undef HIP_SYMBOL
	void (*drive)(uint32_t on); /* these two a stand-in's; else NULL */
	void (*advance)(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);
	uint32_t (*busy)(uint32_t device);
};

struct hsa_symbols {
/* NOLINTBEGIN(bugprone-macro-parentheses): declarations are made of them. */
#define HSA_SYMBOL(name, params, args)      uint32_t(*name) params;
#define HSA_TYPED(type, name, params, args) type(*name) params;
	HSA_CALLS(HSA_SYMBOL) HSA_VALUE_CALLS(HSA_TYPED) HSA_STORE_CALLS(HSA_TYPED)
#undef HSA_SYMBOL
#undef HSA_TYPED
	/* NOLINTEND(bugprone-macro-parentheses) */
};

enum rocm_partitions { ROCM_WHOLE, ROCM_ENGINES, ROCM_CUS };
enum rocm_queues { ROCM_QUEUES_AUTO, ROCM_QUEUES_HSA, ROCM_QUEUES_STREAM };

struct rocm_options {
	const char *library, *topology;
	bool virtual_clock, host_memory;
	bool block; /* kernels that look at a flag are stopped by it */
	enum rocm_partitions partitions;
	enum rocm_queues queues;  /* of partitions */
	uint32_t inflight, every; /* commands of a queue that the device has */
	uint64_t bound_ns;        /* of a launch; 0: none */
};

/* What a device is, before and after it is open. */
struct rocm_shape {
	int device;
	char name[64], bus_id[32];
	char arch[ROCM_ARCH_BYTES]; /* "gfx90a:sramecc+:xnack-" */
	uint64_t memory_bytes;
	int multiprocessors, max_threads, max_block[3], max_grid[3], max_shared;
	int version; /* of HIP; 0: it need not be known */
	int vmm;     /* memory has addresses of one's own */
	bool stand_in;
};

enum rocm_kind {
	ROCM_KIND_STREAM, /* empty, or it would be waited for */
	ROCM_KIND_EVENT,
	ROCM_KIND_QUEUE, /* HSA's, empty or inactive */
	ROCM_KIND_SIGNAL,
	ROCM_KIND_BUSY, /* a stream; from here on the library may wait for the device */
	ROCM_KIND_MODULE,
	ROCM_KIND_EXECUTABLE, /* HSA's; what it has may run till then */
	ROCM_KIND_CODE,       /* its reader, and what that reads: a struct rocm_code */
	ROCM_KIND_HOST,
	ROCM_KIND_REGION, /* of the application's memory */
	ROCM_KIND_DEVICE,
	ROCM_KIND_MAPPING, /* a struct rocm_mapping */
};

struct rocm_later {
	enum rocm_kind kind;
	void *handle;
};

/* What a caller's thread gets back. */
struct rocm_caller {
	int device;
	uint32_t mode; /* of captures */
};

struct rocm_partition {
	struct stream_partition base;
	uint32_t mask[ROCM_MASK_WORDS]; /* where the device is partitioned */
};

/* Addresses of a buffer that is exported or imported. */
struct rocm_mapping {
	struct rocm_mapping *older; /* of the device */
	void *address;
	uint64_t bytes;
	bool mapped; /* memory is there */
};

struct rocm_mem {
	struct rocm_partition *part;
	char *address; /* the device's */
	void *host;    /* NULL: device memory */
	uint64_t bytes;
	bool foreign;                 /* the program's own */
	bool copied;                  /* host memory that only copies use */
	struct stream_region *region; /* of registered memory; else NULL */
	/* Of memory that is exported or imported, or may be evicted; else NULL. */
	struct rocm_mapping *mapping;
	bool out; /* it is evicted */
	int fd;   /* of memory that is exported; else -1 */
};

static inline uint64_t vendor_address(const void *mem)
{
	return (uintptr_t)((const struct rocm_mem *)mem)->address;
}

/* A kernel as HSA has it. */
struct rocm_entry {
	uint64_t object;
	uint32_t argument_bytes, group_bytes, private_bytes;
};

/* Code as HSA reads it; it has to be there as long as the reader is. */
struct rocm_code {
	struct rocm_code *older; /* of those that are kept */
	uint64_t reader;         /* 0: none yet */
	uint8_t bytes[];
};

/* Code that HSA has loaded; NULL and 0: none. */
struct rocm_loaded {
	struct rocm_code *code;
	uint64_t executable;
};

/* What a compiler lets a kernel read of its launch, behind its arguments. */
enum rocm_hidden {
	ROCM_HIDDEN_GROUPS,    /* x, y, z */
	ROCM_HIDDEN_ITEMS = 3, /* x, y, z */
	ROCM_HIDDEN_DIMENSIONS = 6,
	ROCM_HIDDEN_SHARED,
	ROCM_HIDDEN_COUNT
};
#define ROCM_NOWHERE        UINT16_MAX
#define ROCM_ARGUMENT_BYTES 1024u /* of all of a launch */
/* Of a slot: behind them is written what no kernel reads. */
#define ROCM_ARGUMENT_ROOM (ROCM_ARGUMENT_BYTES + 16u)

struct rocm_kernel {
	struct hal_bk_kernel_info info;
	void *function;
	struct rocm_entry entry; /* with queues of HSA's, in place of .function */
	/* Where these are in the block of arguments, as the code's metadata say. */
	uint16_t at[HAL_ARGS_MAX + 1], hidden[ROCM_HIDDEN_COUNT];
	/* The same of every launch of it, in a queue of HSA's: the packet; what is behind
	 * its arguments, from rest_at on; and where of that the groups are, or what
	 * nobody reads. */
	struct hsa_packet packet;
	uint16_t rest_at, groups_at[3];
	uint8_t rest[ROCM_ARGUMENT_BYTES];
	char needs[32]; /* of HIP's runtime, which only its launches have; "" */
	uint32_t block[3], shared_bytes;
	uint32_t shared_own; /* LDS that the code has by itself; UINT32_MAX: unknown */
	struct stream_params params;
	struct stream_kernel seen;
	bool follows; /* hal_preempt.h: it has a struct hal_preempt_launch as one more
			 argument */
};

struct rocm_program {
	struct rocm_program *older; /* of the device, under its programs_lock */
	const uint8_t *code;        /* the part of the image that is for this device */
	uint64_t code_bytes;
	void *module;
	struct rocm_loaded loaded;
	uint32_t count;
	struct rocm_kernel *kernels;
};

struct rocm_slot {
	struct stream_slot base; /* .number: of the queue's word */
	bool timed;           /* of a queue of HSA's: a kernel, whose times are known */
	struct hsa_times ran; /* they, once it has ended; 0 and 0 if it is not .timed */
	/* A launch that stops: blocks that were launched by a list; numbers in each of
	 * its two lists. */
	uint32_t resumed, used[2];
};

/* A queue of HSA's: aql.c. */
struct rocm_aql {
	struct hsa_queue *queue;
	struct rocm_aql *older; /* of those whose queue may still tell something */
	uint64_t written, read; /* packets; read: so many at least the device has begun */
	uint32_t slots;
	char *arguments, *arguments_at; /* pinned; ROCM_ARGUMENT_ROOM a slot */
	atomic_uint fault;  /* what its packets failed with, by a thread of HSA's; 0 */
	uint64_t signals[]; /* a slot each: 1, and 0 when its packet has ended */
};

/* How the launches of a queue are stopped: see stop.c.  By slot. */
struct rocm_stops {
	struct stream_stops base;
	uint32_t *flags, *flags_at; /* pinned: as the host and as the device finds them */
	uint32_t *lists, *lists_at; /* pinned: two of a slot, of ROCM_STOP_BLOCKS */
	uint32_t *counts;           /* the device's memory */
	bool cleared;               /* counts are being cleared, for the first launch */
	bool ready;                 /* they have been */
	uint32_t ready_at; /* the queue's number by then; of a queue of HSA's its last
			    * slot clears them */
	uint8_t launched[ROCM_STOP_BLOCKS / 8]; /* of what is checked, a bit a block */
};

struct rocm_queue {
	struct stream_queue base;
	struct rocm_aql *aql; /* NULL: it is a stream */
	struct rocm_aql
		*next;    /* KILL has ended .aql: this comes when that is told; NULL */
	uint64_t copying; /* signal of a late copy that is with an engine; 0: none is */
	uint64_t copy_began_ns;
	int32_t priority;
	void *stream;
	void *begin, *end; /* events around the command that is measured */
	void *fence;       /* behind its last command when its partition moved */
	void *left;     /* stream from before a move: its last commands are in flight */
	uint32_t *word; /* how far it is: the device writes it, poll reads it */
	void *word_at;  /* where the device finds it */
	struct rocm_stops *stops; /* NULL: its launches cannot be stopped */
	struct rocm_slot slots[];
};

static inline struct stream_slot *vendor_slot(struct stream_queue *q, uint32_t at)
{
	return &((struct rocm_queue *)q)->slots[at].base;
}

struct rocm_device {
	struct stream_device base;
	struct rocm_options opt;
	struct rocm_shape shape;
	struct rocm_units units; /* .count 0: the device is one unit */
	bool verified;           /* where kernels run in each */
	char tried[96];          /* what came of that, or why it was not tried */
	struct {
		bool on;     /* queues of partitions are HSA's */
		bool trying; /* at open: .why is written */
		uint64_t agent;
		uint64_t cpu; /* an agent of the host's; 0: copies are kernels */
		uint32_t cus;
		double tick_ns;
		struct rocm_loaded loaded; /* where.h */
		struct rocm_entry where, fill, copy;
		char why[160]; /* they are not */
	} hsa;                 /* constant once it is open */
	uint32_t index;
	uint64_t id; /* of all opens of the process */
	int least_priority, greatest_priority;
	uint32_t left;              /* queues that have a stream from before a move */
	struct stream_bytes memory; /* of what was free at open */
	struct {
		struct stream_lane base;
		void *stream, *events[STREAM_LANE_EVENTS], *stages;
	} lane; /* of host copies */
	struct rocm_green
		*green;      /* masks are those of contexts; NULL: of streams alone */
	char not_green[120]; /* why they are not */
	struct {
		pthread_mutex_t lock;                  /* of .owners */
		uint16_t owners[ROCM_MASK_WORDS * 32]; /* of each unit: its partitions */
		pthread_mutex_t filling;               /* of the rest, while it is used */
		uint32_t mask[ROCM_MASK_WORDS];
		void *stream; /* of that mask */
	} remainder;          /* units that no partition has */
	struct stream_later later;
	pthread_mutex_t programs_lock;
	struct rocm_program *programs;
	struct stream_offers offers; /* of the application's own memory and streams */
	struct stream_regions regions;
	struct {
		uint64_t granule; /* in which memory is mapped; 0: none is shared */
		/* The call that refused to, and what it answered; NULL. */
		const char *call;
		uint32_t result;
		pthread_mutex_t lock; /* of the rest */
		struct rocm_mapping *mappings;
	} share;
};

extern struct hip_symbols hip;
extern struct hsa_symbols hsa;

const struct hal_backend *hal_backend_rocm(const struct hal_host *host);

/* symbols.c */
int rocm_load(const char *library);
/* Hardware queues that streams without a mask share, as HIP was started with. */
uint32_t rocm_hw_queues(void);
const char *rocm_result_name(uint32_t result);
bool rocm_sticky(uint32_t result);
int rocm_errno(uint32_t result);
int rocm_failed(struct rocm_device *dev, uint32_t result, const char *call);

/* 0, or -errno with the call and its result as the text; dev, which may be NULL, is lost
 * with a result that says so. */
static inline int rocm_check(struct rocm_device *dev, uint32_t result, const char *call)
{
	if (__builtin_expect(result == HIPR_Success, 1))
		return 0;
	return rocm_failed(dev, result, call);
}
#define HIP(dev, call, ...) rocm_check(dev, hip.call(__VA_ARGS__), #call)

/* hsa.c: HSA's runtime beside HIP; code for queues of its own */
int rocm_hsa_load(struct rocm_device *dev);
const char *rocm_status_name(uint32_t status);
int rocm_hsa_failed(struct rocm_device *dev, uint32_t status, const char *call);
/* -err with the text; at open, when others may do instead, it is kept. */
__attribute__((format(printf, 3, 4))) int rocm_refuse(struct rocm_device *dev, int err,
						      const char *fmt, ...);

static inline int rocm_hsa_check(struct rocm_device *dev, uint32_t status,
				 const char *call)
{
	if (__builtin_expect(status == HSAR_SUCCESS, 1))
		return 0;
	return rocm_hsa_failed(dev, status, call);
}
#define HSA(dev, call, ...) rocm_hsa_check(dev, hsa.call(__VA_ARGS__), #call)

int rocm_code_load(struct rocm_device *dev, const void *code, size_t bytes,
		   struct rocm_loaded *loaded);
int rocm_code_entry(struct rocm_device *dev, const struct rocm_loaded *loaded,
		    const char *kernel, struct rocm_entry *entry);
/* At once: nothing of it has run. */
void rocm_code_undo(struct rocm_device *dev, struct rocm_loaded *loaded);
void rocm_code_drop(struct rocm_device *dev, struct rocm_loaded *loaded, int *err);
/* Whether the entry takes what the image and the code's metadata say; what all of its
 * launches have alike. */
int rocm_code_fits(struct rocm_device *dev, struct rocm_kernel *k);

/* Its reader ends, and then it is freed; else it is as it was. */
int rocm_code_free(struct rocm_device *dev, struct rocm_code *code);
/* What the device has still goes with the process. */
void rocm_code_keep(struct rocm_code *code);

/* aql.c: queues of HSA's, whose masks change while kernels run */
int rocm_aql_open(struct rocm_device *dev, uint32_t slots, const uint32_t *mask,
		  int32_t priority, struct rocm_aql **out);
/* Nothing of it runs, or it is ended. */
void rocm_aql_close(struct rocm_device *dev, struct rocm_aql *a, int *err);
/* HSA may have something to tell of it still. */
void rocm_aql_keep(struct rocm_aql *a);
/* From here on its kernels are on these units, and so are those that run: read back, or
 * refused. */
int rocm_aql_mask(struct rocm_device *dev, struct rocm_aql *a, const uint32_t *mask);
/* A kernel, with what has been written to the slot's arguments; -EAGAIN: there is no
 * room for it now. */
int rocm_aql_kernel(struct rocm_aql *a, uint32_t slot, const struct rocm_entry *e,
		    const uint32_t groups[3], const uint32_t block[3]);
/* What is the same of all launches of that kernel. */
void rocm_aql_packet(const struct rocm_entry *e, const uint32_t block[3],
		     uint32_t shared_bytes, struct hsa_packet *p);
void *rocm_aql_arguments(struct rocm_aql *a, uint32_t slot);
bool rocm_aql_ended(const struct rocm_aql *a, uint32_t slot);
/* The caller's thread, until then; after a while, or a fault, the queue is ended. */
int rocm_aql_wait(struct rocm_device *dev, const struct rocm_aql *a, uint32_t slot);
/* A command of the queue, to be in that slot. */
int rocm_aql_give(struct rocm_device *dev, struct rocm_queue *q, uint32_t slot,
		  const struct hal_bk_cmd *cmd);
/* A launch of so many groups; given: what one that follows hal_preempt.h has besides. */
int rocm_aql_launch(struct rocm_device *dev, struct rocm_queue *q, uint32_t slot,
		    const struct hal_bk_cmd *cmd, const uint32_t groups[3],
		    const struct hal_preempt_launch *given);
/* Words of the device's memory become 0. */
int rocm_aql_zero(struct rocm_device *dev, struct rocm_aql *a, uint32_t slot,
		  const uint32_t *words, uint32_t count);
/* Of an ended queue: what the slot had counts as not ended. */
void rocm_aql_undo(const struct rocm_aql *a, uint32_t slot);
/* The time, as a command that is in that slot already. */
int rocm_aql_stamp(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s,
		   uint64_t now);
/* Have a copy engine do the COPY that is in that slot already. */
int rocm_aql_copy(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s);
/* Return whether an engine has a copy of q. */
bool rocm_aql_copies(struct rocm_queue *q);
/* Return whether the copy in s, which has ended, ended well; else q is broken. */
bool rocm_aql_copied(struct rocm_queue *q, const struct rocm_slot *s);
/* Set how long s ran, and how much later it ended than the slot before it, which may be
 * s; 0 where it is not known. */
void rocm_aql_times(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s,
		    const struct rocm_slot *before);
/* Nothing of the queue runs any more, whatever it is. */
int rocm_aql_end(struct rocm_device *dev, struct rocm_queue *q);

/* device.c */
uint64_t rocm_now(void *device);
void rocm_catch_up(struct rocm_device *dev);
int rocm_gone(struct rocm_device *dev);
/* What the device is with that option, by the kernel driver's topology. */
int rocm_find_units(const struct rocm_options *o, const struct rocm_shape *s,
		    struct rocm_units *u);

/* extension.c */
const void *rocm_extension(void *device, const char *name);

/* context.c: this thread's device, and what is given back when */
int rocm_enter(struct rocm_device *dev);
void rocm_leave(const struct rocm_device *dev);
/* Return whether this thread means the device because of rocm_enter: the engine's does.
 */
bool rocm_entered(const struct rocm_device *dev);
int rocm_push(struct rocm_device *dev, struct rocm_caller *was);
void rocm_pop(struct rocm_device *dev, struct rocm_caller was);
/* HSA's, as what is given back is named. */
static inline void *rocm_handle(uint64_t handle)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): nothing is there. */
	return (void *)(uintptr_t)handle;
}

void rocm_give_back(struct rocm_device *dev, enum rocm_kind kind, void *handle, int *err);
void rocm_give_back_later(struct rocm_device *dev, bool running);
void rocm_later_init(struct rocm_device *dev);
/* Wait until all that has been given back is free memory.  Return false if there has been
 * none since the mark. */
uint64_t rocm_room_mark(struct rocm_device *dev);
bool rocm_make_room(struct rocm_device *dev, uint64_t mark);
/* At close: what is left goes with the process. */
void rocm_forget_later(struct rocm_device *dev);

/* copy.c */
void rocm_lane_init(struct rocm_device *dev);
int rocm_lane_make(struct rocm_device *dev);
void rocm_lane_drop(struct rocm_device *dev);
int rocm_read(struct rocm_device *dev, const char *address, void *data, uint64_t bytes);
int rocm_write(struct rocm_device *dev, char *address, const void *data, uint64_t bytes);
int rocm_clear(struct rocm_device *dev, char *address, uint64_t bytes);

/* partition.c */
int rocm_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			  void **out);
int rocm_partition_destroy(void *device, void *partition);
int rocm_resize(void *device, void *partition, const struct hal_bk_partition_desc *desc,
		uint64_t cookie);
/* Give back the streams from before a move that are empty. */
void rocm_drop_left(struct rocm_device *dev);
/* A stream whose kernels run on the mask alone; read back, or refused. */
int rocm_masked_stream(struct rocm_device *dev, const uint32_t *mask, int32_t priority,
		       void **stream);
int rocm_try_masks(struct rocm_device *dev);

/* remainder.c */
void rocm_remainder_init(struct rocm_device *dev);
void rocm_remainder_fini(struct rocm_device *dev);
void rocm_remainder_drop(struct rocm_device *dev, int *err);
/* A partition has those units, or has them no more. */
void rocm_remainder_take(struct rocm_device *dev, uint32_t first, uint32_t count);
void rocm_remainder_leave(struct rocm_device *dev, uint32_t first, uint32_t count);
/* Write zeros.  -EAGAIN: no partition leaves units for that. */
int rocm_remainder_fill(struct rocm_device *dev, void *address, uint64_t words);

/* green.c */
/* Have masked streams made in contexts of their CUs, if HIP has such contexts and they
 * make up each unit.  Fail only if the device is lost, or memory is short. */
int rocm_green_open(struct rocm_device *dev);
void rocm_green_close(struct rocm_device *dev);
/* Create a stream of those CUs; the caller reads its mask back.  Any thread. */
int rocm_green_stream(struct rocm_device *dev, const uint32_t *mask, int32_t priority,
		      void **stream);
/* The stream has been destroyed. */
void rocm_green_leave(struct rocm_device *dev, const void *stream);

/* trial.c: where kernels run in each unit, by one that says so */
#define ROCM_WHERE_OPTIONS 4u /* of the compiler, for where.h */
#define ROCM_WHERE_BYTES   40u
/* false: which registers say it is not known of that architecture. */
bool rocm_where_options(const char *arch,
			char text[ROCM_WHERE_OPTIONS][ROCM_WHERE_BYTES]);
/* The kernel's code, by HIP's compiler; the caller's to free.  NULL: the call that did
 * not do it, and its answer, which is a number of the compiler's own. */
char *rocm_where_compile(const char *arch, size_t *bytes, const char **call, uint32_t *r);
int rocm_try_out(struct rocm_device *dev);
/* The same with a queue of HSA's: then those are what partitions have. */
int rocm_try_hsa(struct rocm_device *dev);

/* memory.c */
int rocm_mem_alloc(void *device, void *partition, uint64_t bytes,
		   const struct hal_bk_colors *colors, uint32_t flags, void **out);
int rocm_mem_register(void *device, void *partition, void *address, uint64_t bytes,
		      void **out);
int rocm_mem_import(void *device, void *partition, int fd, uint64_t bytes, uint32_t flags,
		    void **out);
/* Unregister the application's memory. */
int rocm_region_end(struct rocm_device *dev, struct stream_region *region);
int rocm_mem_free(void *device, void *memory);
int rocm_mem_write(void *device, void *memory, uint64_t offset, const void *data,
		   uint64_t bytes);
int rocm_mem_read(void *device, void *memory, uint64_t offset, void *data,
		  uint64_t bytes);
int rocm_mem_clear(void *device, void *memory);
int rocm_mem_map(void *device, void *memory, void **address);
int rocm_mem_unmap(void *device, void *memory);
/* Memory of the host's that the device reaches. */
int rocm_pin(struct rocm_device *dev, uint64_t bytes, void **p, void **address);
/* Device memory of a queue's own, which counts as used. */
int rocm_take_own(struct rocm_device *dev, uint64_t bytes, void **p);
void rocm_give_own(struct rocm_device *dev, void *p, uint64_t bytes, int *err);

/* share.c */
/* Return true if HIP has the calls, and is of a release in which they may work. */
bool rocm_share_calls(const struct rocm_shape *s);
/* Find out whether memory can be exported, unless the options say that none is. */
int rocm_share_open(struct rocm_device *dev);
/* What of mappings is not the library's. */
void rocm_share_close(struct rocm_device *dev);
/* Allocate memory that can be exported; import it.  The calling thread means the device.
 */
int rocm_share_make(struct rocm_device *dev, struct rocm_mem *mem, bool exported);
int rocm_share_import(struct rocm_device *dev, struct rocm_mem *mem, int fd);
/* Give the memory of such a buffer back. */
void rocm_share_leave(struct rocm_device *dev, const struct rocm_mem *mem, int *err);
int rocm_mapping_end(struct rocm_device *dev, struct rocm_mapping *m);
int rocm_mem_export(void *device, void *memory, int *fd);
int rocm_mem_out(void *device, void *memory);
int rocm_mem_in(void *device, void *memory, const struct hal_bk_colors *colors);

/* import.c */
int rocm_offer_memory(void *native, uint64_t address, uint64_t bytes);
int rocm_offer_stream(void *native, void *stream);
/* Find out whether the application captures q's stream, which is its own.  A query then
 * ends the capture, and submitted work becomes part of it.  Return HIP's result;
 * *captured is false unless it is 0. */
uint32_t rocm_find_capture(const struct rocm_queue *q, bool *captured);
/* Return 0 if it does not; -EBUSY: it does. */
int rocm_check_capture(struct rocm_device *dev, const struct rocm_queue *q);

/* image.c */
int rocm_image_parse(const void *image, size_t size, const char *arch,
		     struct rocm_program *prog);

/* code.c: a code object, as far as it says what its kernels take; and which of them
 * follow hal_preempt.h */
int rocm_code_check(const uint8_t *code, uint64_t bytes, const char *arch,
		    struct rocm_program *prog);

/* program.c */
int rocm_program_load(void *device, const void *image, size_t size, void **out);
int rocm_program_unload(void *device, void *program);
int rocm_kernel_get(void *device, void *program, uint32_t index,
		    struct hal_bk_kernel_info *info, void **kernel);

/* stop.c */
int rocm_stops_make(struct rocm_device *dev, struct rocm_queue *q);
void rocm_stops_drop(struct rocm_device *dev, struct rocm_queue *q, int *err);
/* A launch, to be in that slot, of a kernel that follows hal_preempt.h. */
int rocm_stops_launch(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s,
		      const struct hal_bk_cmd *cmd);
/* Whether it has to wait for what the device has of its queue. */
bool rocm_stops_wait(struct rocm_queue *q, const struct hal_bk_cmd *cmd);
/* No block of what can be stopped begins any more. */
void rocm_stops_raise(struct rocm_device *dev, struct rocm_queue *q);
/* What the device had of it is gone, with its queue. */
void rocm_stops_drop_all(struct rocm_queue *q);
/* At each poll: find out what was stopped, once all has ended or was. */
void rocm_stops_look(struct rocm_device *dev, struct rocm_queue *q);
void rocm_stops_go_on(struct rocm_device *dev, struct rocm_queue *q);

/* queue.c */
/* HIP's priority of a queue's. */
int rocm_level(const struct rocm_device *dev, int32_t priority);
/* All queues of the device, newest first. */
static inline struct rocm_queue *rocm_newest(const struct rocm_device *dev)
{
	return (struct rocm_queue *)dev->base.queues;
}

static inline struct rocm_queue *rocm_older(const struct rocm_queue *q)
{
	return (struct rocm_queue *)q->base.older;
}

/* Return the slot of the i-th oldest command in flight. */
static inline struct rocm_slot *rocm_slot(struct rocm_queue *q, uint32_t i)
{
	return &q->slots[stream_at(&q->base, i)];
}

/* Return whether the device has written number to the queue's word, or a later one. */
static inline bool rocm_reached(const struct rocm_queue *q, uint32_t number)
{
	return stream_reached(__atomic_load_n(q->word, __ATOMIC_ACQUIRE), number);
}

/* Write the shape of a launch that is not its kernel's own; -EINVAL if the device cannot
 * have it. */
int rocm_shape(const struct rocm_device *dev, const struct hal_bk_cmd *cmd,
	       uint32_t block[3], uint32_t *shared_bytes);
/* Whether the device has nothing of the slot any more. */
static inline bool rocm_slot_ended(const struct rocm_queue *q, const struct rocm_slot *s)
{
	return q->aql ? rocm_aql_ended(q->aql, (uint32_t)(s - q->slots))
		      : rocm_reached(q, s->base.number);
}

int rocm_launch(struct rocm_device *dev, struct rocm_queue *q,
		const struct hal_bk_cmd *cmd, const uint32_t groups[3],
		struct hal_preempt_launch *given);
/* Give the command in s, which has just gone to the stream, its number. */
void rocm_number(struct rocm_device *dev, struct rocm_queue *q, struct rocm_slot *s);
/* Mark the end of all that the stream has been given; see stream/marks.h. */
void rocm_mark(struct rocm_device *dev, struct rocm_queue *q);
/* The call has failed behind a command: only the library can say when q is empty. */
void rocm_break_queue(struct rocm_device *dev, struct rocm_queue *q, const char *call,
		      uint32_t r);
int rocm_queue_create(void *device, void *partition, int32_t priority, void **out);
int rocm_queue_destroy(void *device, void *queue);
/* At close: free the queues that were destroyed late, or hung and do no more; waits for
 * what has not ended and does not hang. */
void rocm_free_hanging(struct rocm_device *dev);
/* What comes in that stream runs behind what the queue has. */
int rocm_queue_follow(struct rocm_device *dev, struct rocm_queue *q, void *stream);
int rocm_submit(void *device, void *queue, const struct hal_bk_cmd *cmd);
uint64_t rocm_next(void *device);
int rocm_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max);
int rocm_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie);
int rocm_resume(void *device, void *queue);

#endif
