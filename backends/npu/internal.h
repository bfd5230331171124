/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the NPU backend's own objects.
 *
 * All of it is the engine's, but for three: program_load and kernel_get, which callers
 * run beside it and which touch nothing but the program; now, which any thread asks; and
 * the "npu" extension, whose functions applications call.  What those and the engine
 * touch (the model, the list of partitions, who used which PE) is guarded by
 * npu_device.lock.
 *
 * Device time is the machine's cycles and .skipped: the time it had nothing to do, which
 * is not simulated.  It changes only then, so it is the same from a command's first cycle
 * to its event.
 *
 * A partition is an address space with a descriptor ring in it, and a slot of the machine
 * with a rectangle; or a guest, that has the first alone.  Commands of a host's and its
 * guests' queues go through the slot in the order of submission; between two of different
 * address spaces the slot, empty, is given the other's.
 *
 * A copier works for a partition's copies between host memory and its buffers, beside
 * the partition's own slot: copier.c.
 */
#ifndef BACKENDS_NPU_INTERNAL_H
#define BACKENDS_NPU_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <hal/backend.h>
#include <hal/npu.h>

#include "durations.h"
#include "fail.h"
#include "hash.h"
#include "image.h"
#include "npu_model.h"
#include "npu_regs.h"

#define NPU_SLOTS_MAX    8u
#define NPU_GUESTS       4096u
#define NPU_CONTEXTS     256u /* address spaces that a slot's TLB tells apart */
#define NPU_CHANNELS_MAX 16u
#define NPU_RING_LOG2    8u
#define NPU_RING         (1u << NPU_RING_LOG2)
#define NPU_BEAT_BYTES   16u          /* on a memory channel, in a cycle */
#define NPU_LIMIT_BYTES  UINT64_C(64) /* a request: the least that a limit leaves */
#define NPU_LIMIT_WINDOW 0xffffffu
#define NPU_TURN_LEAST                                                                   \
	52u /* cycles that let one request through: 3 nRP + 2 nRCD + nCL + 4 */
#define NPU_COMMANDS   64u /* of a partition at work */
#define NPU_TIMES_NONE UINT32_MAX
#define NPU_NO_SLOT    UINT32_MAX
#define NPU_SAVE_WORDS 10u /* of a context; 8 without sums */
#define NPU_BURST      64u /* descriptors between two progress marks of a long command */
#define NPU_WORKS      UINT64_MAX
/* A FOLD that takes longer becomes a SAVE.  A fold of the most rows, 512, whose input
 * does not meet in a bank is over before, on an array of up to 128 x 128 PEs. */
#define NPU_FOLD_CYCLES 1024u

struct npu_options {
	uint32_t rows, cols, slots, channels;
	uint32_t gran; /* log2 */
	uint64_t memory;
	bool real, ideal;
	bool opaque;        /* the hash is locked, and forgotten */
	uint32_t hash_seed; /* npu_hash_choose */
	struct npu_model_memory extra;
	uint32_t turns; /* cycles; 0: none */
	/* Groups of sets of a channel's cache: colour = group * channels + channel. */
	uint32_t color_sets;
	bool replay, replay_shared;
	const char *durations; /* "": none */
	const char *engine;
	const char *model; /* "": look for it by engine and shape */
};

/* Of colours, the channels. */
static inline uint32_t npu_channels(const struct npu_options *o, uint64_t colors)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < o->color_sets; i++)
		mask |= colors >> i * o->channels;
	return (uint32_t)(mask & ((1u << o->channels) - 1));
}

/* Device memory in a partition's address space, or host memory, which the machine reaches
 * in the same way. */
struct npu_mem {
	struct npu_partition *part;
	uint64_t bytes;
	uint32_t va;
	uint32_t pages;
	bool writable; /* by the machine */
	bool contiguous;
	bool out; /* it has no granules */
	/* share.c: its bytes are those of a memory file.  .fd: the file, if it is
	 * the buffer's own, else -1. */
	bool shared;
	int fd;
	/* Host memory: where the program has it, else NULL.  The machine's pages are the
	 * same bytes, or, if they bounce, others: copied to and from by the backend. */
	uint8_t *host;
	bool bounces;
	bool foreign; /* .host is the program's own */
	/* Of bimodal memory: a page's granule in the placement that is not in force, and
	 * 1; 0: the same in both.  NULL: it has one. */
	uint32_t *twins;
	struct npu_mem *next_bimodal; /* of .part */
	uint32_t taken;      /* granules in .granules: .pages, or more if .shared */
	uint32_t granules[]; /* physical granule of each page */
};

struct npu_binding {
	struct npu_mem *constants, *scratch;
	uint64_t used; /* .sequence of the last command whose intermediates are there */
	struct npu_mem *spare; /* .scratch when a frozen command has kept that */
};

struct npu_kernel {
	struct npu_program *prog;
	const struct npu_image_kernel *k;
};

struct npu_program {
	struct npu_image image;
	struct npu_kernel *kernels;
	struct npu_binding *bind; /* by number of the partition */
	uint32_t bind_count;
};

enum npu_suspended { NPU_RUNS, NPU_DRAINS, NPU_FOLDS, NPU_FOLDED, NPU_KILLED };

/* What a KILL has dropped of a queue, and where it goes on when it comes again. */
struct npu_kept {
	const void *kernel; /* NULL: not a launch */
	uint64_t sequence;  /* of the command */
	uint64_t ran_ns;    /* that is not lost */
	uint32_t op, entry; /* .entry 0: nothing is kept */
};

struct npu_queue {
	struct npu_partition *part;
	/* Where those of its commands are that are in an order: .part, or a copier. */
	struct npu_partition *space;
	/* Commands, oldest first, that wait until those have ended, because they run in
	 * another slot. */
	struct npu_command *held, *held_last;
	uint32_t held_count;    /* of .commands */
	struct npu_queue *next; /* of its host's that are to be quiet */
	uint32_t commands;      /* not yet reported */
	uint32_t suspended;     /* enum npu_suspended */
	bool quiet_due;         /* .quiet once no command is left, or they are frozen */
	struct hal_bk_event quiet;
	struct npu_kept kept;
};

/* A command becomes entries of the ring: TIMESTAMP, what it does, TIMESTAMP, SIGNAL.
 * Those of a queue that FOLD has suspended are frozen: not in the ring, and in nobody's
 * way. */
struct npu_command {
	struct hal_bk_cmd cmd;
	struct npu_queue *queue;
	struct npu_partition *space; /* whose ring and fence page: .queue->space */
	struct npu_command *next;    /* of those to be used again, or held */
	uint64_t sequence;           /* what its SIGNAL writes */
	uint32_t body;               /* descriptors of its own */
	uint32_t entries;            /* all */
	uint32_t fed;                /* entries written to the ring */
	uint32_t base;               /* the first of them since the ring began anew ... */
	uint32_t first;              /* ... and its number there */
	uint64_t fed_ns; /* device time when its first entry was written; 0: it was not */
	uint64_t ran_ns; /* before .base */
	uint32_t times;  /* where its start and end are, in the fence page */
	uint32_t context[NPU_SAVE_WORDS]; /* where its first entry goes on, */
	bool inside;                      /* if that was stopped inside */
	void *sums; /* of the tile it was in, as in the save area; NULL: none */
	struct npu_mem *scratch; /* its own; NULL: its program's */
	bool done;               /* the event is ready */
	struct hal_bk_event event;
};

struct npu_partition {
	struct npu_device *dev;
	struct hal_bk_partition_desc desc;
	struct npu_partition
		*host; /* whose slot it uses: its own, unless it is a guest */
	uint32_t slot; /* of the host; of a copier: NPU_NO_SLOT, or the one it has */
	uint32_t queue_count, guest_count;
	/* Whose address space it is: its own, or of a copier, its partition's. */
	struct npu_partition *space;
	/* copier.c: for copies from host memory and to it; NULL: none yet. */
	struct npu_partition *copier[2];
	/* memory.c */
	uint32_t root; /* first granule of the root table */
	uint32_t root_granules;
	uint32_t
		*tables; /* granule + 1 of each table the root names; 0: not needed yet */
	uint32_t table_count;
	uint32_t pages; /* of the address space */
	uint8_t *page_used;
	struct npu_mem *bimodal;
	bool wide;    /* those have the placement on all of desc.wide_mask */
	bool limited; /* in what it moves a window */
	bool serial;  /* fold after fold, of a host */
	/* ring.c */
	struct npu_mem *ring, *fence;
	struct npu_mem *save; /* save.c; NULL: not needed yet */
	/* All that follows is of hosts alone. */
	struct npu_partition *loaded; /* whose address space the slot has */
	struct npu_partition *context[NPU_CONTEXTS]; /* whose translations those are */
	struct npu_queue *quiet_due;
	struct npu_command **order; /* as they come to the ring */
	uint32_t count, room;       /* of those, and for how many */
	uint32_t frozen;            /* of .count */
	uint32_t held; /* commands of its and its guests' queues that are held */
	struct npu_command *spare;
	uint64_t times_used;  /* a bit each */
	uint64_t sequence;    /* of the last submitted */
	uint64_t ended_ns;    /* device time of the last end of one that had begun */
	uint32_t head, tail;  /* of the ring, counted as the machine does */
	uint32_t irq;         /* causes that have not been looked at: NPU_IRQ_* */
	uint32_t stopping;    /* PREEMPT code asked for; 0: none */
	uint64_t stopping_ns; /* device time since then */
	uint32_t hurried; /* cycles of the FOLD before it became a SAVE; 0: it did not */
	bool moving, moved; /* a resize is under way, is to be told */
	struct hal_bk_partition_desc target;
	struct hal_bk_event moved_event;
	/* replay.c: npu_desc_hash of the descriptor that ended last, the cycle it did so
	 * or the ring was given work, dev->changes then, and whether it has none. */
	uint64_t ahead, since, changes;
	bool ring_empty;
	uint32_t read_beats, write_beats; /* counters when bytes were last told */
	uint64_t preempt_cycles;
};

/* Where its memory lies now. */
static inline uint64_t npu_colors(const struct npu_partition *part)
{
	return part->space->wide ? part->desc.wide_mask : part->desc.color_mask;
}

#define NPU_IRQ_SIGNAL 1u
#define NPU_IRQ_FAULT  2u
#define NPU_IRQ_QUIET  4u

struct npu_device {
	struct npu_options opt;
	void *library;
	const struct npu_model_api *api;
	struct npu_model *model;
	pthread_mutex_t lock;
	uint64_t skipped;     /* ns that the machine has not simulated */
	atomic_ullong now_ns; /* device time when the machine was last looked at */
	/* clock=real: what CLOCK_MONOTONIC lacks to device time while nothing runs;
	 * NPU_WORKS: the machine's cycles count.  And the last time told. */
	atomic_ullong rest_ns, reported_ns;
	struct npu_durations *durations; /* NULL: not asked for */
	uint64_t changes; /* of what partitions there are, their channels and limits */
	uint64_t verified;
	bool limits;   /* the machine has token buckets */
	uint32_t owed; /* suspends and moves whose end is to be told */
	/* memory.c */
	uint8_t *memory;
	uint8_t *colors; /* of each granule, where the hash has no rule for them */
	struct npu_hash hash;
	uint32_t granules;
	struct hal_bk_granules *free;
	uint32_t told; /* colours, of an opaque device; 0: it has none */
	struct npu_partition *parts[NPU_SLOTS_MAX];
	/* Who used which PE: corners of rectangles, added up when asked. */
	uint64_t *busy;
	uint64_t channel_beats[NPU_CHANNELS_MAX]; /* the machine's have 32 bits */
	void (*on_fold)(void *user, const struct hal_npu_fold *fold);
	void *on_fold_user;
};

extern const struct hal_host *npu_host;

const struct hal_backend *hal_backend_npu(const struct hal_host *host);

/* device.c: cycles until a memory request is answered, at most */
uint64_t npu_request_worst(const struct npu_options *o);
/* Cycles of a slot's turn on each channel; 0: there are none. */
uint64_t npu_turn(const struct npu_options *o);
int npu_counters(void *device, struct hal_bk_counter *out, uint32_t max, uint64_t *at_ns);

/* model.c: the machine behind its registers */
int npu_model_find(const struct npu_options *o, char *path, size_t size);
/* Sets o->engine, which lies in the library, to what the model is. */
int npu_model_load(struct npu_options *o, void **library,
		   const struct npu_model_api **api);
uint32_t npu_read(struct npu_device *dev, uint32_t address);
void npu_write(struct npu_device *dev, uint32_t address, uint32_t value);
uint64_t npu_run(struct npu_device *dev, uint64_t cycles);
/* Device time: the engine's, and anybody's. */
uint64_t npu_time(const struct npu_device *dev);
uint64_t npu_now(void *device);
uint64_t npu_host_ns(void);
/* By the engine, while nothing runs: device time goes to until_ns at once. */
void npu_skip(struct npu_device *dev, uint64_t until_ns);
/* clock=real: nothing runs from now on; something does. */
void npu_rests(struct npu_device *dev);
void npu_works(struct npu_device *dev);
void npu_lock(struct npu_device *dev);
void npu_unlock(struct npu_device *dev);

/* partition.c */
int npu_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			 void **out);
int npu_partition_destroy(void *device, void *partition);
/* Gives part the rectangle of desc; -errno with the machine's verdict. */
int npu_map(struct npu_partition *part, const struct hal_bk_partition_desc *desc);
int npu_map_test(struct npu_device *dev);
int npu_limit(void *device, void *partition, uint64_t bytes, uint64_t window_ns);
int npu_limit_test(struct npu_device *dev);

/* memory.c */
/* The slot, which has nothing to do, gets part's address space. */
void npu_space_load(struct npu_partition *part);
/* The slot, which has nothing to do, gets none. */
void npu_space_unload(const struct npu_partition *part);
int npu_memory_open(struct npu_device *dev);
uint64_t npu_memory_free(const struct npu_device *dev); /* bytes */
void npu_memory_close(struct npu_device *dev);
int npu_space_open(struct npu_partition *part);
void npu_space_close(struct npu_partition *part);
/* What memory is; the bits that are HAL_BUFFER_* are those. */
enum {
	NPU_MEM_CONTIGUOUS = HAL_BUFFER_MAPPABLE,
	NPU_MEM_BIMODAL = HAL_BUFFER_BIMODAL, /* of a part with desc.wide_mask */
	NPU_MEM_READ_ONLY = 1 << 8,           /* to the machine */
};
/* colors: NULL: any of the partition's, evenly. */
int npu_alloc(struct npu_partition *part, uint64_t bytes,
	      const struct hal_bk_colors *colors, uint32_t flags, struct npu_mem **out);
/* Both placements of what lies on all of its partition's channels, as quotas count. */
uint64_t npu_mem_charge(const struct npu_mem *mem);
void npu_free(struct npu_mem *mem);
/* Host memory that bounces: its bytes go to the machine's pages, or (in false) come from
 * there. */
void npu_bounce(struct npu_mem *mem, uint64_t offset, uint64_t bytes, bool in);
/* Bytes of mem from offset on, and how many of them lie together. */
uint8_t *npu_bytes(const struct npu_mem *mem, uint64_t offset, uint64_t *together);
int npu_mem_alloc(void *device, void *partition, uint64_t bytes,
		  const struct hal_bk_colors *colors, uint32_t flags, void **out);
int npu_mem_register(void *device, void *partition, void *address, uint64_t bytes,
		     void **out);
int npu_mem_export(void *device, void *mem, int *fd);
int npu_mem_import(void *device, void *partition, int fd, uint64_t bytes, uint32_t flags,
		   void **out);
int npu_mem_free(void *device, void *mem);
int npu_mem_write(void *device, void *mem, uint64_t offset, const void *data,
		  uint64_t bytes);
int npu_mem_read(void *device, void *mem, uint64_t offset, void *data, uint64_t bytes);
int npu_mem_map(void *device, void *mem, void **address);
int npu_mem_unmap(void *device, void *mem);
int npu_mem_swap(void *device, void *mem, void *other);
int npu_mem_out(void *device, void *mem);
int npu_mem_in(void *device, void *mem, const struct hal_bk_colors *colors);
int npu_partition_widen(void *device, void *partition, uint32_t wide);
int npu_colors_set(void *device, const struct hal_bk_color_map *map);

/* program.c */
int npu_program_load(void *device, const void *image, size_t size, void **out);
int npu_program_unload(void *device, void *program);
int npu_kernel_get(void *device, void *program, uint32_t index,
		   struct hal_bk_kernel_info *info, void **kernel);
int npu_program_bind(void *device, void *program, void *partition, uint64_t *bytes);
int npu_program_unbind(void *device, void *program, void *partition);
int npu_launch_check(const struct npu_partition *part, const struct hal_bk_cmd *cmd);
/* Descriptor index of a launch, its places filled in; scratch NULL: its program's. */
void npu_launch_desc(const struct npu_partition *part, const struct hal_bk_cmd *cmd,
		     const struct npu_mem *scratch, uint32_t index, uint32_t desc[16]);
/* Whose intermediates lie in the program's scratch memory from now on: those of the
 * command of that number; whether they still do. */
void npu_scratch_use(const struct npu_partition *part, const struct hal_bk_cmd *cmd,
		     uint64_t sequence);
bool npu_scratch_whole(const struct npu_partition *part, const struct hal_bk_cmd *cmd,
		       uint64_t sequence);
/* A launch that is stopped inside keeps its scratch memory, while others of its program
 * run: first there must be room for that; and when it has ended. */
int npu_scratch_reserve(struct npu_partition *part, const struct hal_bk_cmd *cmd);
struct npu_mem *npu_scratch_keep(const struct npu_partition *part,
				 const struct hal_bk_cmd *cmd);
void npu_scratch_release(const struct npu_partition *part, const struct hal_bk_cmd *cmd,
			 struct npu_mem *scratch);

/* queue.c */
int npu_queue_create(void *device, void *partition, int32_t priority, void **out);
int npu_queue_destroy(void *device, void *queue);
int npu_submit(void *device, void *queue, const struct hal_bk_cmd *cmd);
void npu_commands_free(struct npu_partition *part);

/* poll.c */
int npu_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max);
uint64_t npu_next(void *device);

/* stop.c */
int npu_suspend(void *device, void *queue, uint32_t mode, uint64_t cookie);
int npu_resume(void *device, void *queue);
int npu_resize(void *device, void *partition, const struct hal_bk_partition_desc *desc,
	       uint64_t cookie);

/* ring.c */
int npu_ring_open(struct npu_partition *part);
void npu_ring_close(struct npu_partition *part);
/* The slot, which has nothing to do, gets part's ring, empty, and address space. */
void npu_ring_load(struct npu_partition *part);
/* Descriptor index of the command's own; false: it has no more. */
bool npu_body_desc(const struct npu_partition *part, const struct hal_bk_cmd *cmd,
		   uint32_t index, uint32_t desc[16]);

/* complete.c */
/* "kernel 'name'", "a copy"; in text, of size bytes, where it must be made. */
const char *npu_command_text(const struct hal_bk_cmd *cmd, char *text, size_t size);

/* replay.c: durations of descriptors */
int npu_replay_open(struct npu_device *dev);
/* engine=replay: -ENOTSUP when a duration of cmd on that rectangle is not known, or when
 * the partition has channels of another's. */
int npu_replay_check(const struct npu_partition *part,
		     const struct hal_bk_partition_desc *rect,
		     const struct hal_bk_cmd *cmd);
int npu_replay_partition(const struct npu_device *dev, const struct npu_partition *part);
/* The machine is told of .tail. */
void npu_doorbell(struct npu_partition *part);

#endif
