/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-ins of GPUs are made of; all of it under one lock, of control.c.  What
 * is CUDA's or HIP's own is in their folders, with one struct face. */
#ifndef TESTS_FAKES_GPU_WORLD_H
#define TESTS_FAKES_GPU_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include <hal/device/hal_preempt.h>

#include "stand_in.h"

enum {
	DEVICES_MAX = 4,
	UNITS_MAX = 320,
	LAUNCHES_MAX = 4096, /* at their turn at a time, of a device */
	COPY_ENGINES = 2,    /* one for copies to the device, one for those from it */
	PARAMS_MAX = 20,
	CHANNELS_MAX = 32,
	ON_WORDS = UNITS_MAX / 64,
	JOBS_KEPT = 1024,
	QUARANTINE = 64, /* freed memory that a touch of is noticed */
};
#define NEVER UINT64_MAX
/* Of an allocation, so many bytes are dirty; larger ones are mapped. */
#define POISON_MOST ((size_t)1 << 24)
/* Of the host's memory, what can be pinned: it is really there, other than a GPU's. */
#define PINNED_MOST (UINT64_C(1) << 32)

/* Results, as CUDA and HIP both number them. */
enum {
	GPU_SUCCESS = 0,
	GPU_INVALID_VALUE = 1,
	GPU_OUT_OF_MEMORY = 2,
	GPU_OPERATING_SYSTEM = 304,
	GPU_INVALID_HANDLE = 400,
	GPU_NOT_READY = 600,
	GPU_ILLEGAL_ADDRESS = 700,
	GPU_ALREADY_REGISTERED = 712,
	GPU_NOT_REGISTERED = 713,
	GPU_CAPTURE_UNSUPPORTED = 900,
	GPU_CAPTURE_INVALIDATED = 901,
	GPU_CAPTURED_EVENT = 907,
	GPU_NOT_PERMITTED = 800,
	GPU_UNKNOWN = 999,
};

enum object_kind {
	OBJECT_STREAM,
	OBJECT_EVENT,
	OBJECT_MODULE,
	OBJECT_FUNCTION,
	OBJECT_GREEN,
	OBJECT_GRAPH,
	OBJECT_EXEC,
	OBJECT_SIGNAL,
	OBJECT_READER,
	OBJECT_EXECUTABLE,
	OBJECT_PHYSICAL
};

/* Whatever has a handle.  Gone ones stay, so that their use is noticed. */
struct object {
	void *inner; /* CUDA's handles of streams point to it; else NULL */
	struct object *next;
	enum object_kind kind;
	struct device *dev;
	bool gone;
};

struct hsa_packet;
struct call; /* what a block of a launch sees */
struct kernel_spec {
	const char *name;
	/* false: an illegal address. */
	bool (*block)(const struct call *c, uint32_t index);
	uint64_t (*ns)(const struct call *c); /* of a block */
	uint32_t steps;   /* in which a block does it, over its time; 0: at its end */
	const char *args; /* "mm4", for code that does not say it here; or NULL */
	/* What its blocks tell that were stopped, in place of their numbers. */
	uint32_t (*lies)(uint32_t number);
};

/* How the last parameter of a kernel that stops between its blocks is given. */
enum stops {
	STOPS_NOT,
	STOPS_BY_LAUNCH, /* a struct ptx_launch (backends/cuda/ptx/ptx.h) */
	STOPS_BY_VALUE,  /* it is a struct hal_preempt_launch: call.given */
};

struct call {
	const struct kernel_spec *spec;
	uint64_t args[PARAMS_MAX];
	uint32_t arg_bytes[PARAMS_MAX];
	uint32_t arg_count;
	uint32_t grid[3], block[3];
	enum stops stops;
	struct hal_preempt_launch given;
	uint32_t step; /* which of spec->steps */
	/* Of a kernel whose code is run: where that is. */
	struct module *module;
	uint32_t number, shared;
};

struct module {
	struct object object;
	struct function *functions;
	void *code; /* that is run; NULL: kernels are C functions */
};

struct function {
	struct object object;
	struct function *next;
	struct module *module;
	struct call shape; /* the parameters */
	int cluster[3];    /* .reqnctapercluster; 0: none */
	bool loaded;
	int dynamic_shared;
	uint32_t local_bytes; /* of a thread */
	uint32_t registers;   /* of a thread; 0: it is not said */
	bool hidden; /* HSA: behind its arguments come what the launch is, see image.h */
};

struct event {
	struct object object;
	bool timing, recorded, done;
	bool captured;       /* it was last recorded in a stream that is captured */
	uint32_t users;      /* records that have not run */
	uint32_t given, ran; /* records */
	uint64_t at_ns;
};

enum op {
	OP_COPY,
	OP_FILL,
	OP_LAUNCH,
	OP_RECORD,
	OP_WRITE,
	OP_WAIT,
	OP_HOST,
	OP_BARRIER
};

struct job {
	struct job *next;
	struct stream *stream;
	enum op op;
	uint32_t fails; /* not 0: when it has run the device is lost, with this result */
	bool started;
	uint64_t start_ns, end_ns; /* end_ns: NEVER while blocks are to run */
	uint64_t dst, src, bytes;
	uint32_t value;
	struct event *event;
	/* The program's function: either; the second is told how it went. */
	void (*host)(void *user);
	void (*told)(void *stream, uint32_t result, void *user);
	void *user;
	struct function *function;
	struct call call;
	uint32_t engine; /* of a copy: number of its copy engine, from 1 on; 0: none */
	uint64_t order;  /* of launches, as they become ready */
	uint64_t blocks, given, done, first, stride;
	bool off[UNITS_MAX];   /* by the mask of its descriptor */
	bool is_kernel;        /* a copy or a fill whose blocks run on units */
	bool has_entry;        /* it occupies an entry of its stream's channel */
	uint64_t on[ON_WORDS]; /* units that its blocks have begun on */
	/* Of HSA's queues; NULL.  When it is its turn, false: its queue stops for good;
	 * when it has ended, which the host can see. */
	bool (*begins)(struct job *j);
	void (*ends)(struct job *j);
	const struct hsa_packet *packet;
	uint64_t number;    /* of the packet */
	uint64_t arguments; /* where they are; 0: nowhere */
	bool read;          /* they have been */
};

struct stream {
	struct object object;
	unsigned char own[0x600]; /* the driver's; .object.inner */
	const bool *only;         /* units that it may use; NULL: all */
	const void *green;        /* HIP's context that it is in */
	uint32_t flags;           /* as it was made */
	uint32_t capture; /* as cuStreamIsCapturing answers: 1: what comes is recorded and
			   * does not run, 2: no more, it was spoilt */
	uint32_t mode;    /* of that, and whose: see capture_spoils */
	const void *capturer;
	int priority;
	bool apart; /* HSA's: HIP knows nothing of it, and does not wait for it */
	struct job *first, **last;
	uint32_t jobs;
	uint32_t channel; /* of the device's */
	uint64_t queries; /* calls that asked whether it is empty */
	uint32_t answer;  /* of those, in place of what is true; 0: what is true */
};

/* Memory without an address, and where it has one. */
struct store; /* vmm.c */
struct physical {
	struct object object; /* gone: its handle is */
	uint64_t bytes;
	uint32_t users;          /* its handles, its mappings */
	uint32_t handles;        /* as it was made or imported, and retained */
	struct store *store;     /* NULL: it cannot be exported */
	bool imported, exported; /* exported: of HIP's, that it has been */
};

struct mapping {
	struct mapping *next;
	struct physical *of;
	uint64_t address, bytes;
	bool access;
};

struct allocation {
	struct allocation *next;
	struct device *dev; /* NULL: the host's */
	uint64_t address, bytes;
	uint64_t taken; /* of the device's memory */
	void *backing;  /* where its bytes are; of the host's: where the host finds it */
	bool freed;
	bool registered; /* the program's own memory */
	bool reserved;   /* addresses alone: what is there is what is mapped */
	struct mapping *mappings;
};

struct unit {
	struct job *job;        /* NULL: free */
	uint64_t block, end_ns; /* end_ns: of a step */
	uint64_t step_ns;
	uint32_t left; /* steps behind this one */
	bool stopped;  /* it saw the flag as it began */
};

/* A block that was taken off its unit, as its stream's mask changed. */
struct saved {
	struct unit unit;
	uint64_t left_ns; /* of its step */
};

struct device {
	uint32_t index, units, major, minor;
	const char *name;
	uint64_t memory, used;
	uint32_t retained;
	uint32_t lost;
	size_t stack_limit; /* of local memory of a thread; 0: as the context is made */
	struct unit unit[UNITS_MAX];
	struct saved saved[UNITS_MAX];
	uint32_t saved_count;
	uint32_t entries[CHANNELS_MAX]; /* that are occupied, of each channel */
	struct job *hosting; /* the program's functions come one after the other */
	struct job *copying[COPY_ENGINES];
};

struct world {
	bool ready; /* it has been started */
	struct device devices[DEVICES_MAX];
	struct object *objects;
	struct object *gone; /* put away */
	uint32_t made, streams;
	struct allocation *allocations;
	struct store *stores;
	uint64_t now_ns, orders, seed;
	uint64_t spun_ns; /* of the host's, by who waits */
	uint32_t drivers; /* who drives the clock; 0: paced */
	uint64_t pace_mono, pace_ns;
	uint32_t live, misused, frees;
	char misuse[160];
	bool frees_wait;
	uint64_t memory_left;
	struct gpu_stand_in_limits limits;
	uint32_t unit_now; /* whose block acts */
	const struct job *job_now;
	const struct device *device_now;
	bool hooked;            /* somebody has subscribed: no green contexts any more */
	bool leaky, mask_leaky; /* green contexts and streams, masks are not kept to */
	bool silent;            /* nobody is called back */
	bool pretends;          /* blocks say that they are where masks allow it */
	bool moves_run;         /* copies in device memory and fills are kernels */
	uint64_t blocked;       /* calls that waited for an entry of a channel */
	uint32_t fail_next; /* what this call gives the device fails when it has run */
	uint32_t fail_half; /* what this call answers when it has done all of it */
	struct gpu_stand_in_job kept[JOBS_KEPT];
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
/* The same, but for queues that are apart. */
bool device_waited_for(const struct device *dev);
/* The same, but for records. */
bool device_works(const struct device *dev);
void stream_push(struct stream *s, struct job *job);
/* What it has is dropped, also what runs. */
void stream_drop(struct stream *s);
/* Its blocks that are on other units than s->only leaves it go to those, with what they
 * have done. */
void stream_moved(struct stream *s);
/* Does anything that has not ended name it? */
bool memory_busy(const struct allocation *a);
bool module_busy(const struct module *m);
struct allocation *allocation_of(uint64_t address, uint64_t bytes);
/* Of the host's memory that the device reaches, by where the host finds it. */
struct allocation *allocation_at(const void *p);
/* The device's address of what a copy is told, which may be the host's; 0: not all of it
 * is there. */
uint64_t device_side(uint64_t address, uint64_t bytes);
/* Does memory of the host's begin at that address of the device? */
bool is_of_host(uint64_t address);
/* As cuMemHostGetDevicePointer answers. */
uint32_t device_pointer(uint64_t *address, const void *p, uint32_t flags);
void allocation_end(struct allocation *a);
uint64_t mono(void);

/* objects.c: handles, memory, streams and events, as this thread's device has them.  What
 * answers a result is what an entry point answers. */
void *make(enum object_kind kind, size_t bytes);
/* NULL: no such handle. */
void *get_any(void *handle, enum object_kind kind);
/* NULL: none of this device. */
void *get(void *handle, enum object_kind kind);
uint32_t push(struct stream *s, struct job job);
/* Answers whether the stream is empty, or what a test has set in place of that. */
uint32_t query_stream(void *stream);
/* Return true if the driver runs a kernel for this copy or fill. */
bool runs_kernel(const struct job *j);
struct allocation *reserve(size_t bytes, int protection);
/* Zeros of the host's, made as they are touched; NULL. */
void *map_bytes(size_t bytes, int protection);
void poison(const struct allocation *a, int with);
uint64_t memory_left(const struct device *d);
bool wait_for(bool (*done)(const void *what), const void *what);
bool is_idle(const void *dev);
/* Waits for the device, where frees do. */
uint32_t wait_free(const char *call);
/* The address is good for the device alone: a dereference dies. */
uint32_t allocate(uint64_t *address, size_t bytes, const char *call);
uint32_t allocate_host(void **p, size_t bytes, const char *call);
uint32_t give_back(uint64_t address, bool host, const char *call);
/* The program's own memory, by whole pages. */
uint32_t register_host(void *p, size_t bytes, const char *call);
uint32_t unregister_host(void *p, const char *call);
/* Of the allocation of this device that the address lies in. */
uint32_t address_range(uint64_t *base, size_t *bytes, uint64_t address);
uint32_t stream_flags(void *stream, uint32_t *flags);
uint32_t stream_capture(void *stream, uint32_t *status);
/* What asks for a stream that is captured ends the capture; 0: it is not captured. */
uint32_t spoil_capture(struct stream *s);
/* What may wait for other streams ends the captures of those that this thread is not to
 * disturb, by their modes and its own; 0: there are none. */
uint32_t capture_spoils(void);
const void *this_thread(void); /* a name for it */
/* This thread's mode becomes *mode, which becomes what it was. */
uint32_t exchange_mode(uint32_t *mode);
/* A function of the program's, in the stream's order. */
uint32_t push_host(void *stream, struct job job);
/* A stream more; false: there are too many. */
bool room_for_stream(void);
/* Streams take turns. */
uint32_t channel_of_next_stream(void);
uint32_t destroy_event(void *event);
uint32_t record_event(void *event, void *stream);
uint32_t wait_event(void *event, const char *call);
uint32_t wait_stream(void *stream, const char *call);
/* In steps of half a microsecond, as far as a float goes. */
uint32_t elapsed(float *ms, void *begin, void *end);
struct function *function_of(struct module *m, const char *name);
/* At once, and as many bytes as the kernel has. */
uint32_t take_parameters(struct call *c, void **params);
void end_module(struct module *m);
uint32_t unload_module(void *module, const char *call);

/* vmm.c: memory at addresses of one's own; call: the entry point's name.  exported: it
 * can be. */
uint32_t vmm_reserve(uint64_t *address, size_t bytes, size_t alignment,
		     unsigned long long flags);
uint32_t vmm_free(uint64_t address, size_t bytes, const char *call);
uint32_t vmm_create(uint64_t *memory, size_t bytes, struct device *d, bool exported,
		    unsigned long long flags, const char *call);
uint32_t vmm_release(uint64_t memory);
uint32_t vmm_map(uint64_t address, size_t bytes, size_t offset, uint64_t memory,
		 unsigned long long flags, const char *call);
/* d: whose kernels have access from now on, or no more; NULL: no such device. */
uint32_t vmm_access(uint64_t address, size_t bytes, const struct device *d, bool on,
		    const char *call);
uint32_t vmm_unmap(uint64_t address, size_t bytes, const char *call);
uint32_t vmm_retain(uint64_t *memory, uint64_t address);
uint32_t vmm_export(int *fd, uint64_t memory, unsigned long long flags);
/* devices: how many there are. */
uint32_t vmm_import(uint64_t *memory, int fd, uint32_t devices);
/* A new process: neither a handle nor a mapping is left. */
void vmm_forget(struct physical *p);

/* control.c */
/* Lets others in, and time go by, within a call. */
bool breathe(void);
void blocks(const char *call);
/* This is not the process that started it. */
bool forked(void);
/* Takes the lock; true when there is nothing to do but to answer result. */
bool enter(uint32_t call, bool starts, uint32_t *result);
uint32_t leave(uint32_t result);
/* A function of the program's is called: it may make no call. */
void call_host(const struct job *j, uint32_t result);
/* The same, on a thread of its own, whose end is waited for. */
void call_apart(void (*fn)(void *user), void *user);
/* One that may make calls. */
void call_unlocked(void (*fn)(void *user), void *user);
void drive(uint32_t on);
void advance(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);
/* Whether what waits for the device would wait. */
uint32_t busy(uint32_t device);
/* Of the environment, by the end of its name; NULL. */
const char *setting(const char *name);

/* entry.c of each */
struct face {
	const char *environment; /* "HAL_STAND_IN_CUDA_" */
	const char *const *calls;
	uint32_t count;
	uint64_t vmm_granule;             /* of memory at addresses of one's own */
	uint32_t (*state)(uint32_t call); /* what it answers before it does anything */
	bool (*sticky)(uint32_t result);
	bool (*disturbs)(uint32_t call); /* captures of others */
	/* What the device's registers say of where a unit is; NULL: its number. */
	uint32_t (*place)(const struct device *dev, uint32_t unit);
	void (*end_code)(struct module *m); /* NULL: there is none */
	bool frees_wait;                    /* always */
	uint32_t (*channels)(void);         /* of a device, by the environment */
	uint32_t entries;                   /* of a channel */
};
extern const struct face face;
struct device *current_device(void);
/* A kernel reached for what is not there. */
void device_fault(struct device *dev);

#endif
