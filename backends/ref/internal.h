/* SPDX-License-Identifier: Apache-2.0 */
/* The software device's own structures: the engine's, but for what program_load and
 * copies touch, which are done beside it. */
#ifndef BACKENDS_REF_INTERNAL_H
#define BACKENDS_REF_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <hal/backend.h>
#include <hal/ref.h>

#define REF_GRANULE    4096u
#define REF_COLORS_MAX 16u
#define REF_KILL_NS    1u  /* from a kill to the units being free */
#define REF_BYTES_WORK 16u /* bytes that copy and fill move a unit-nanosecond */
#define REF_NEVER      UINT64_MAX
/* Of a command: a year of device time is as good as for ever and overflows nothing. */
#define REF_LONGEST (UINT64_C(1) << 55)
#define REF_GUESTS  4096u

enum ref_preempt { REF_PREEMPT_INSIDE, REF_PREEMPT_BETWEEN, REF_PREEMPT_NONE };
enum ref_resize { REF_RESIZE_LIVE, REF_RESIZE_IDLE, REF_RESIZE_NONE };

struct ref_options {
	uint32_t devices;
	uint32_t units;
	uint32_t rows;
	uint32_t colors;
	uint32_t depth;
	uint64_t memory;
	uint32_t preempt;   /* enum ref_preempt */
	uint32_t isolation; /* enum hal_isolation */
	uint32_t resize;    /* enum ref_resize */
	uint32_t load_ms;
	uint32_t fold_ns; /* from one safe point of a command to the next; 0: it has none
			   */
	bool real;
	bool map;
	const char *kernels; /* paths of libraries, separated by colons */
};

/* Kernels that images may name.  Loads look them up while the application adds some. */
struct ref_kernels {
	pthread_mutex_t lock;
	struct hal_ref_kernel *table; /* all names differ */
	uint32_t count;
	void **libraries; /* handles of dlopen, open as long as the device */
	uint32_t library_count;
	const char *paths; /* for messages */
};

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The nth operation from now fails.  Armed from any thread, hence atomic. */
struct ref_inject {
	atomic_uint_fast64_t nth;
	atomic_int err;
};

struct ref_partition {
	struct ref_device *dev;
	struct ref_partition *host; /* whose units run its commands: mostly itself */
	struct hal_bk_partition_desc desc;
	uint32_t queues;
	uint32_t buffers;
	struct ref_mem *bimodal;
	bool wide; /* those have the placement on all of desc.wide_mask */
	struct ref_queue *ready_first, *ready_last; /* in turn */
	/* The command that has the units. */
	struct ref_queue *running;
	uint64_t start_ns, end_ns;
	uint64_t left_work; /* at since_ns, in unit-nanoseconds */
	uint64_t since_ns;
	uint64_t span_end_ns;
	uint64_t stop_ns; /* it stops there, unless it ends before; 0: it does not */
	bool stops;       /* .end_ns is that */
	uint32_t heap_index;
	/* A resize to be told of. */
	struct ref_partition *moved_next;
	uint64_t moved_cookie;
	bool moved;
};

/* The core keeps the command itself until its event has been polled. */
struct ref_command {
	const struct hal_bk_cmd *cmd;
	uint64_t ready_ns;
};

enum ref_suspended { REF_RUNS, REF_DRAINS, REF_FOLDED, REF_KILLED };

struct ref_queue {
	struct ref_partition *part;    /* that runs it */
	struct ref_partition *home;    /* that it is of */
	struct ref_queue *next, *prev; /* in the partition's ready list */
	struct ref_queue *notice_next;
	uint64_t id;
	uint64_t quiet_cookie;
	uint32_t suspended; /* enum ref_suspended */
	bool quiet_due;     /* HAL_BK_QUIET once the cancelled ones have been told */
	bool ready;         /* in the ready list */
	bool notice;        /* in the notice list */
	uint32_t cancel;    /* commands from .head on that end with -ECANCELED */
	uint64_t head;      /* commands before the first in .ring; its number from 0 */
	uint32_t count, depth, mask;
	uint32_t room; /* .depth, or 0 while it is suspended */
	bool inside;   /* its first command was stopped, so much is left of it */
	uint64_t left_work, left_span_ns;
	struct ref_command ring[]; /* of .mask + 1 */
};

struct ref_mem {
	struct ref_partition *part;
	uint8_t *data; /* NULL: it is out */
	bool host;     /* it can be mapped, and copies alone use it */
	bool foreign;  /* .data is the program's (mem_register) */
	bool shared;   /* .data is a mapping of a memory file (mem_export, mem_import) */
	int fd;        /* that file, of a buffer that can be exported; else -1 */
	uint64_t bytes;
	uint64_t address; /* as the device sees it */
	uint64_t granule_count;
	/* Bimodal: behind the granules of the placement in force lie twin_count of the
	 * other one, in the places of some of them, and here is what these hold. */
	uint64_t twin_count;
	uint8_t *twins;
	struct ref_mem *next_bimodal; /* of .part */
	uint32_t granules[];
};

struct ref_kernel {
	hal_ref_fn fn;
	hal_ref_cost_fn cost;
	uint64_t work, span_ns; /* of a group; at least 1 ns */
	/* What its functions are called with; the same from call to call but for the
	 * arguments, .units, .groups and .fault. */
	struct hal_ref_call call;
	struct hal_ref_arg args[HAL_ARGS_MAX];
	struct hal_ref_kernel own; /* as it was registered when the program was loaded */
};

struct ref_program {
	uint32_t count;
	struct ref_kernel kernels[];
};

struct ref_device {
	struct ref_options opt;
	uint32_t index;
	uint64_t now_ns;
	/* Real clock: the latest reading by any thread.  A command becomes ready then:
	 * the caller of submit has just read the clock. */
	_Atomic uint64_t read_ns;
	uint64_t zero_ns; /* CLOCK_MONOTONIC at open */
	uint32_t partitions;
	int32_t *owner;              /* partition index of each unit, -1: free */
	struct ref_partition **heap; /* those that run, earliest end first */
	uint32_t heap_count;
	uint64_t next_ns; /* when the first of them ends; REF_NEVER: none runs */
	bool news;        /* something in the lists below: poll has to tell */
	struct ref_queue *notice_first, *notice_last;
	struct ref_partition *moved_first, *moved_last;
	uint64_t queue_ids;
	struct hal_bk_granules *free;
	uint64_t next_address;
	atomic_bool careful; /* the clock is real, or any of .inject has been armed */
	atomic_bool watched; /* .on_event is set, or any of .inject has been armed */
	struct ref_inject inject[HAL_REF_OPS];
	struct ref_kernels kernels;
	void (*on_event)(void *user, const struct hal_ref_event *ev);
	void *on_event_user;
};

extern const struct hal_host *ref_host;

const struct hal_backend *hal_backend_ref(const struct hal_host *host);

/* device.c */
bool ref_inject_count(struct ref_device *dev, uint32_t op, int *err);
uint64_t ref_now(void *device);
void ref_notify_event(struct ref_device *dev, const struct ref_queue *q, uint32_t kind,
		      uint32_t op);

/* partition.c */
int ref_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			 void **out);
int ref_partition_destroy(void *device, void *partition);
int ref_resize(void *device, void *partition, const struct hal_bk_partition_desc *desc,
	       uint64_t cookie);
uint32_t ref_take_moved(struct ref_device *dev, struct hal_bk_event *ev, uint32_t max);

/* memory.c */
int ref_memory_open(struct ref_device *dev);
void ref_memory_close(struct ref_device *dev);
uint64_t ref_memory_free(const struct ref_device *dev, uint64_t colors); /* bytes */
int ref_mem_alloc(void *device, void *partition, uint64_t bytes,
		  const struct hal_bk_colors *colors, uint32_t flags, void **out);
int ref_mem_free(void *device, void *memory);
int ref_mem_write(void *device, void *memory, uint64_t offset, const void *data,
		  uint64_t bytes);
int ref_mem_read(void *device, void *memory, uint64_t offset, void *data, uint64_t bytes);
int ref_mem_map(void *device, void *memory, void **address);
int ref_mem_unmap(void *device, void *memory);
int ref_mem_swap(void *device, void *memory, void *other);
int ref_mem_out(void *device, void *memory);
int ref_mem_in(void *device, void *memory, const struct hal_bk_colors *colors);
int ref_mem_register(void *device, void *partition, void *address, uint64_t bytes,
		     void **out);
int ref_mem_export(void *device, void *memory, int *fd);
int ref_mem_import(void *device, void *partition, int fd, uint64_t bytes, uint32_t flags,
		   void **out);
int ref_partition_widen(void *device, void *partition, uint32_t wide);

/* kernels.c */
int ref_kernels_open(struct ref_kernels *kernels, const char *paths);
void ref_kernels_close(struct ref_kernels *kernels);
int ref_kernels_add(struct ref_kernels *kernels, const struct hal_ref_kernel *added,
		    uint32_t count);
const struct hal_ref_kernel *ref_kernels_find(const struct ref_kernels *kernels,
					      const char *name);

/* program.c */
int ref_program_load(void *device, const void *image, size_t size, void **out);
int ref_program_unload(void *device, void *program);
int ref_kernel_get(void *device, void *program, uint32_t index,
		   struct hal_bk_kernel_info *info, void **kernel);
uint64_t ref_command_work(const struct ref_partition *part, const struct hal_bk_cmd *cmd);
int ref_execute(struct ref_device *dev, const struct ref_partition *part,
		const struct hal_bk_cmd *cmd, struct hal_bk_event *ev);
int ref_kernel_failed(const struct hal_bk_cmd *cmd, int err, struct hal_bk_event *ev);

/* queue.c */
int ref_queue_create(void *device, void *partition, int32_t priority, void **out);
int ref_queue_destroy(void *device, void *queue);
int ref_submit(void *device, void *queue, const struct hal_bk_cmd *cmd);
int ref_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max);
int ref_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie);
int ref_resume(void *device, void *queue);
uint64_t ref_next(void *device);
void ref_reschedule(struct ref_device *dev, struct ref_partition *part, uint32_t units);

/* Channels the allocator keeps apart: one where the device has no colours. */
static inline uint32_t ref_colors(const struct ref_device *dev)
{
	return dev->opt.colors ? dev->opt.colors : 1;
}

/* True, and *err the error to answer, when it is this operation's turn to fail. */
static inline bool ref_injected(struct ref_device *dev, uint32_t op, int *err)
{
	return UNLIKELY(atomic_load_explicit(&dev->watched, memory_order_relaxed)) &&
	       ref_inject_count(dev, op, err);
}

#define REF_FAULT_BYTES sizeof(((struct hal_bk_event *)0)->fault)

/* What a kernel's functions are called with: fills in what differs from call to call.
 * fault has REF_FAULT_BYTES. */
static inline const struct hal_ref_call *
ref_call(const struct ref_partition *part, const struct hal_bk_cmd *cmd, char *fault)
{
	struct ref_kernel *k = cmd->launch.kernel;
	const struct hal_bk_arg *a = cmd->launch.args;
	struct hal_ref_arg *arg = k->args;

	for (uint32_t n = k->call.arg_count; n; n--, a++, arg++) {
		const struct ref_mem *mem = a->mem;
		uint64_t value = a->value;

		arg->bytes = a->bytes;
		if (LIKELY(mem != NULL)) {
			arg->data = mem->data + value;
			arg->value = mem->address + value;
		} else {
			arg->data = NULL;
			arg->value = value;
		}
	}
	k->call.units = part->desc.units;
	memcpy(k->call.groups, cmd->launch.groups, sizeof(k->call.groups));
	k->call.fault = fault;
	return &k->call;
}

static inline void ref_notify(struct ref_device *dev, const struct ref_queue *q,
			      uint32_t kind, uint32_t op)
{
	if (UNLIKELY(dev->on_event != NULL))
		ref_notify_event(dev, q, kind, op);
}

#endif
