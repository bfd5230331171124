/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The FPGA backend's own structures: the engine's, but for what other threads touch.
 *
 * mem_alloc, mem_free, mem_write and mem_read are the callers': they touch their buffer,
 * whose members do not change, XRT, which takes calls of any thread (but xrtBOExport,
 * which has a lock), .lost, .bank_used and a partition's .buffers, which are atomic, and
 * the counter of the clock.  What waits
 * inside XRT - copies, fills, units that are closed and opened, a configuration that is
 * loaded - is done by a thread of the device, the mover (mover.c): a chore is the mover's
 * from fp_move until its .done is set.  The units of a slot are the mover's while
 * .changing has it, all of them while .is_loading.  With virtual time there is no such
 * thread; it is done at once.
 */
#ifndef BACKENDS_FPGA_INTERNAL_H
#define BACKENDS_FPGA_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <hal/backend.h>

#include "xclbin.h"
#include "xrt_calls.h"

#define STREAM_NAME "fpga"
#define STREAM_HOST fp_host
extern const struct hal_host *fp_host;
#include "backends/stream/slots.h"

#define FP_CARDS_MAX    64
#define FP_INFLIGHT_MAX 64u
#define FP_PAGE         4096u
#define FP_REACH_ROWS   (HAL_ARGS_MAX + 1) /* of a kernel: its arguments, hal_state */
#define FP_LOOK_NS      UINT64_C(40000)    /* so long it is looked at all the time */

struct fp_symbols {
/* NOLINTBEGIN(bugprone-macro-parentheses): declarations are made of them. */
#define FP_SYMBOL(name, result, params, args) result(*name) params;
#define FP_SYMBOL_OPEN(name, result, params)  result(*name) params;
	XRT_CALLS(FP_SYMBOL)
	XRT_CALLS_OPEN(FP_SYMBOL_OPEN)
	XRT_CALLS_SHARE(FP_SYMBOL) /* any of them may be NULL */
#undef FP_SYMBOL
#undef FP_SYMBOL_OPEN
	/* NOLINTEND(bugprone-macro-parentheses) */
	/* A stand-in's alone; else NULL. */
	uint32_t (*cards)(void);
	void (*drive)(uint32_t on);
	void (*advance)(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);
};

struct fp_options {
	const char *library;
	const char *xclbin; /* file; "": none */
	const char *cards;  /* folder of the driver's cards */
	bool virtual_clock;
	uint32_t inflight; /* commands of a queue that the device has */
	uint64_t hang_ns;  /* of a run; 0: it may take for ever */
};

/* A compute unit as it is open. */
struct fp_unit {
	void *kernel, *run;
};

struct fp_kernel {
	struct fp_design *design;
	uint32_t index;
	uint32_t memory;            /* bit an argument that is memory */
	bool quick;                 /* it has nothing but memory and integers */
	uint8_t bits[HAL_ARGS_MAX]; /* of an integer; 0: memory */
	uint64_t slots;             /* that have a unit of it */
	const uint64_t *reach;      /* [row * FP_BANKS_MAX + bank]: slots that reach it */
	const struct fp_kernel_desc *desc;
};

struct fp_program {
	struct fp_design *design;
	struct fp_kernel kernels[FP_KERNELS_MAX];
};

/* A configuration that programs, the card or the device itself use. */
struct fp_design {
	struct fp_design *next;
	uint32_t number; /* from 1 on: no two of a device's have had the same */
	struct fp_xclbin x;
	uint32_t users;
	void *file;
	struct fp_unit *units; /* [kernel * slot_count + slot] */
	uint64_t *reach; /* [(kernel * FP_REACH_ROWS + row) * FP_BANKS_MAX + bank] */
};

struct fp_chore {
	struct fp_chore *next;
	int (*work)(struct fp_chore *c);
	void *device;
	int err;
	char text[96];
	atomic_bool done;
};

struct fp_partition {
	struct hal_bk_partition_desc desc;
	uint64_t slots;
	uint32_t queues;
	atomic_uint buffers; /* any thread */
};

struct fp_mem {
	struct fp_partition *part;
	void *bo;      /* NULL: host memory, which only copies use */
	uint8_t *host; /* what XRT copies to and from; host memory: its address */
	bool owned;    /* of host memory: mem_free frees it */
	uint32_t bank;
	uint64_t bytes;
};

struct fp_slot {
	struct fp_partition *owner;
	struct fp_chore chore;
	bool taken; /* no other handle's; also of one that is left, until it is closed */
	bool opens; /* its owner came while it was changing: it is opened after that */
	uint32_t hangs; /* runs that XRT gave up, since one was completed */
	/* Why it takes no run; "": it does. */
	char broken[sizeof(((struct fp_chore *)NULL)->text)];
};

enum fp_phase {
	FP_IDLE, /* the queue has no command */
	FP_READY,
	FP_RUNNING,   /* on a slot */
	FP_RESETTING, /* ... that is closed and opened, since the run has failed */
	FP_MOVING,
	FP_HELD, /* suspended by FOLD: it has not begun, or was stopped inside */
	FP_ENDED
};

/* What a kernel writes when it is stopped (stop.c). */
struct fp_state {
	struct fp_state *next;
	void *bo;
	uint32_t bank;
	uint64_t bytes;
};

struct fp_command {
	struct stream_slot base;
	uint64_t slots;         /* of a launch: that can run it */
	uint64_t tried;         /* broken ones that were opened once more for it */
	struct fp_state *state; /* of one that can be stopped; else NULL */
	bool resumes;           /* from what is there */
};

struct fp_queue {
	struct stream_queue base;       /* the ring, QUIET and the fault of it */
	struct fp_queue *older, *newer; /* of its list */
	struct fp_list *list;           /* NULL: none */
	struct fp_partition *part;
	enum fp_phase phase; /* of the oldest command */
	bool failed;
	bool folds;   /* suspended by FOLD */
	bool asked;   /* the run has been asked to stop */
	bool stopped; /* it has, and QUIET has not told */
	struct fp_state *states;
	uint64_t start_ns, end_ns;
	struct fp_chore chore;
	uint32_t slot; /* of a run */
	uint32_t sub_count;
	void *subs[HAL_ARGS_MAX]; /* parts of buffers, while it runs */
	int status;
	struct fp_command cmds[];
};

struct fp_list {
	struct fp_queue *oldest, *newest;
};

struct fp_device {
	struct fp_options opt;
	uint32_t index;
	bool stand_in, emulated;
	bool folds; /* kernels of .base can be stopped inside */
	char name[64];
	char bus_id[32];
	void *handle;
	struct fp_design *designs;
	struct fp_design *base;   /* of the option xclbin */
	struct fp_design *loaded; /* on the card; NULL: nobody knows */
	struct fp_design *wanted; /* to be loaded as soon as no slot runs; a user */
	struct fp_chore loading;
	bool is_loading;
	uint64_t load_slots; /* that had an owner when it began: their units are opened */
	bool load_forgets; /* it has failed, and what was there is not to be had either */
	bool load_keeps;   /* there were buffers when it began */
	uint64_t load_began_ns;
	uint32_t loads, design_count;          /* so far */
	uint64_t loading_ns;                   /* of all of them */
	atomic_ullong bank_used[FP_BANKS_MAX]; /* any thread; see fp_bank_take */
	struct fp_slot slots[FP_SLOTS_MAX];
	struct fp_list ready; /* the oldest command can begin */
	struct fp_list busy;  /* ... has begun, or owes a QUIET */
	uint64_t running;     /* slots that do, or are .changing */
	uint64_t changing;    /* slots whose chore is the mover's */
	uint32_t moving;
	uint64_t progress_ns;
	uint64_t zero_ns;
	atomic_ullong last_ns;
	atomic_bool lost;
	pthread_mutex_t export_lock; /* held in xrtBOExport */
	bool mover_runs, mover_ends;
	pthread_t mover;
	pthread_mutex_t mover_lock;
	pthread_cond_t mover_wake, mover_done;
	struct fp_chore *chores, **last_chore;
};

static inline struct stream_slot *vendor_slot(struct stream_queue *q, uint32_t at)
{
	return &((struct fp_queue *)q)->cmds[at].base;
}

extern struct fp_symbols xrt;

const struct hal_backend *hal_backend_fpga(const struct hal_host *host);

/* symbols.c */
int fp_load(const char *library);
/* The environment by which XRT finds its driver; -ENODEV or -ENOTSUP with what is wrong.
 */
int fp_check_environment(bool *emulated);
/* The driver that XRT would load; -ENODEV with why it cannot be. */
int fp_load_driver(bool emulated);
/* The call that has just failed and why to text; -errno.  dev may be NULL. */
int fp_why(struct fp_device *dev, const char *call, char *text, size_t bytes);
/* The same as the core's text, with what it was for. */
int fp_failed(struct fp_device *dev, const char *call, const char *what);

/* XRT leaves errno alone when it knows no reason. */
#define XRT(call, ...) (errno = 0, xrt.call(__VA_ARGS__))

/* device.c */
uint64_t fp_now(void *device);
void fp_catch_up(struct fp_device *dev);
/* Virtual time: the stand-in's is now this. */
void fp_raise(struct fp_device *dev, uint64_t now);
int fp_gone(struct fp_device *dev);

/* design.c */
/* Finds or makes the one of this file, which is copied. */
int fp_design_take(struct fp_device *dev, const void *file, size_t size,
		   struct fp_design **out);
void fp_design_give(struct fp_device *dev, struct fp_design *d); /* NULL is let pass */
/* Puts it onto the card in the place of what is there; all units are closed.  Waits. */
int fp_design_load(struct fp_device *dev, const struct fp_design *d, char *why,
		   size_t bytes);
/* It has been loaded since .load_began_ns. */
void fp_design_is_there(struct fp_device *dev, struct fp_design *d);
/* The work of .loading: .wanted in the place of .loaded, with all units closed before and
 * those of .load_slots opened behind it.  Waits. */
int fp_design_exchange(struct fp_chore *c);
/* What is on the card after that, and in which slots. */
void fp_design_exchanged(struct fp_device *dev);
/* Nobody knows what is on the card: who needs any has his loaded. */
void fp_design_forget(struct fp_device *dev);
/* The units of a slot; d may be NULL.  Both wait. */
int fp_slot_open(struct fp_device *dev, const struct fp_design *d, uint32_t slot,
		 char *why, size_t bytes);
void fp_slot_close(const struct fp_design *d, uint32_t slot);

/* slot.c: the units of a slot are the mover's for a while, and nothing runs there. */
/* Closes them and opens them. */
void fp_slot_anew(struct fp_device *dev, uint32_t slot);
/* Closes them: it is nobody's. */
void fp_slot_shut(struct fp_device *dev, uint32_t slot);
/* Closes them: it is out of service. */
void fp_slot_retire(struct fp_device *dev, uint32_t slot);
/* Takes back those that are done; false: none is. */
bool fp_slots_changed(struct fp_device *dev);
/* Waits until the mover has this one no more. */
void fp_slot_wait(struct fp_device *dev, uint32_t slot);
/* Slots of the process: false, another handle has it. */
bool fp_slot_take(struct fp_device *dev, uint32_t slot);
void fp_slot_give(struct fp_device *dev, uint32_t slot);

/* partition.c */
int fp_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			void **out);
int fp_partition_destroy(void *device, void *partition);

/* memory.c */
/* Count bytes of the bank as used.  Return false if fewer are left.  Any thread. */
bool fp_bank_take(struct fp_device *dev, uint32_t bank, uint64_t bytes);
void fp_bank_give(struct fp_device *dev, uint32_t bank, uint64_t bytes);
/* Return -ENOTSUP: the host cannot map the card's memory. */
int fp_not_mapped(void);
/* Return -ENOSPC with a text that says how much the banks of the mask have left. */
int fp_no_room(const struct fp_device *dev, uint64_t bytes, uint64_t mask);
int fp_mem_alloc(void *device, void *partition, uint64_t bytes,
		 const struct hal_bk_colors *colors, uint32_t flags, void **out);
int fp_mem_register(void *device, void *partition, void *address, uint64_t bytes,
		    void **out);
int fp_mem_map(void *device, void *memory, void **address);
int fp_mem_unmap(void *device, void *memory);
int fp_mem_swap(void *device, void *memory, void *other);
int fp_mem_free(void *device, void *memory);
int fp_mem_write(void *device, void *memory, uint64_t offset, const void *data,
		 uint64_t bytes);
int fp_mem_read(void *device, void *memory, uint64_t offset, void *data, uint64_t bytes);
int fp_mem_clear(void *device, void *memory);

/* share.c */
/* Can this XRT export and import buffers? */
bool fp_can_share(bool emulated);
int fp_mem_export(void *device, void *memory, int *fd);
int fp_mem_import(void *device, void *partition, int fd, uint64_t bytes, uint32_t flags,
		  void **out);

/* program.c */
int fp_program_load(void *device, const void *image, size_t size, void **out);
int fp_program_unload(void *device, void *program);
int fp_kernel_get(void *device, void *program, uint32_t index,
		  struct hal_bk_kernel_info *info, void **kernel);

/* mover.c */
int fp_mover_start(struct fp_device *dev);
void fp_mover_stop(struct fp_device *dev);
void fp_move(struct fp_device *dev, struct fp_chore *c);
void fp_move_wait(struct fp_device *dev, struct fp_chore *c);
/* The work of a COPY, FILL or TIMESTAMP; of what fp_queue.chore is a member. */
int fp_move_command(struct fp_chore *c);

/* run.c */
/* 0, or -EINVAL: no slot of the partition can ever run it, and why.  *slots: those that
 * can. */
int fp_run_check(const struct fp_device *dev, const struct fp_partition *part,
		 const struct hal_bk_cmd *cmd, uint64_t *slots);
/* Begins the queue's oldest command, a launch, on a slot; -EAGAIN: none is free.  Another
 * error is in q->fault. */
int fp_run_begin(struct fp_device *dev, struct fp_queue *q);
/* The call has failed that was to begin it: q->fault, and -errno. */
int fp_run_refused(struct fp_device *dev, struct fp_queue *q, const struct fp_kernel *k,
		   const char *call) __attribute__((cold));
/* Looks; true when it has ended, with q->status and q->fault. */
bool fp_run_ended(struct fp_device *dev, struct fp_queue *q);
void fp_run_put_away(struct fp_device *dev, struct fp_queue *q);

/* stop.c */
/* Where the launch's state goes; *slots: those that can run it, of which some are left.
 * Gone with the queue. */
int fp_state_take(struct fp_device *dev, struct fp_queue *q, const struct fp_kernel *k,
		  uint64_t *slots, struct fp_state **out);
void fp_states_drop(struct fp_device *dev, struct fp_queue *q);
/* Asks the queue's run to stop; again and again until it has ended: what is written
 * before the card has begun it is lost. */
int fp_stop_ask(struct fp_device *dev, struct fp_queue *q);
/* Of a run that was asked and has ended: q->stopped, or q->status and q->fault. */
void fp_stop_answer(struct fp_device *dev, struct fp_queue *q);

/* queue.c */
int fp_queue_create(void *device, void *partition, int32_t priority, void **out);
int fp_queue_destroy(void *device, void *queue);
int fp_submit(void *device, void *queue, const struct hal_bk_cmd *cmd);
void fp_doorbell(void *device);
uint64_t fp_next(void *device);
int fp_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max);
int fp_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie);
int fp_resume(void *device, void *queue);

/* As which a launch runs in the queue's slot. */
static inline struct fp_unit *fp_unit_of(const struct fp_queue *q,
					 const struct fp_kernel *k)
{
	return &k->design->units[k->index * k->design->x.slot_count + q->slot];
}

static inline struct hal_bk_cmd *fp_oldest(struct fp_queue *q)
{
	return &q->cmds[q->base.head].base.cmd;
}

#endif
