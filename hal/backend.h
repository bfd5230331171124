/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h - what a device backend gives the core, and what the core gives it.
 *
 *   engine --hot--> submit, doorbell, poll, suspend, resume, resize, now  (never block)
 *   engine --cold-> partition, queue, memory, program, extension, info    (short)
 *   callers, beside the engine --cold-> what .beside names                (may be long)
 *   before and after there is an engine: probe, open, close               (may be long)
 *
 * A backend says what its device can do and carries it out; it decides nothing: no
 * scheduling, no waiting for other queues, no retry.  It includes this header, hal.h and
 * nothing of core/.
 *
 * Threads: the engine of a device makes one call at a time, so a backend needs no lock of
 *          its own; under the virtual clock they come from different threads.  Operations
 *          of .beside are called by the threads that want them, at any time, also several
 *          at once and while the engine calls others: a backend that names some guards
 *          what they share.  Two devices are called at the same time.
 * Errors:  -errno after host->fail(errno, "what and why"); hot operations too.
 * Out of tree: a .so that exports hal_backend_entry (see HAL_BACKEND_SYMBOL).
 */
#ifndef HAL_BACKEND_H
#define HAL_BACKEND_H

#include <stdarg.h>

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_BACKEND_ABI    4u
#define HAL_BACKEND_SYMBOL "hal_backend_entry"

/* ---- options: typed, listable ----------------------------------------------------- */

enum hal_option_type {
	HAL_OPTION_INT,    /* decimal or 0x; .min and .max inclusive */
	HAL_OPTION_SIZE,   /* bytes with K, M, G suffix; .min and .max inclusive */
	HAL_OPTION_BOOL,   /* 0 1 no yes off on false true */
	HAL_OPTION_ENUM,   /* one of .choices, "a|b|c"; value is its index */
	HAL_OPTION_STRING, /* anything */
};

/* Section is "backend.NAME"; a target's "?key=value" sets the same keys. */
struct hal_option_def {
	const char *key;
	uint32_t type; /* enum hal_option_type */
	int64_t min, max;
	const char *choices;
	const char *def; /* as it would be written */
	const char *help;
};

struct hal_bk_config; /* one device's options, all checked against the table */

/* ---- time ------------------------------------------------------------------------- */

/* at_ns + more_ns; UINT64_MAX, which is never, where the sum is beyond. */
static inline uint64_t hal_bk_after(uint64_t at_ns, uint64_t more_ns)
{
	return more_ns < UINT64_MAX - at_ns ? at_ns + more_ns : UINT64_MAX;
}

/* ---- coloured memory -------------------------------------------------------------- */

#define HAL_BK_COLORS_MAX 64u

/* Channels that memory is to lie on. */
struct hal_bk_colors {
	uint64_t mask;
	/* [i]: so many parts on channel i of .mask; they are not all 0.  NULL: evenly, as
	 * far as each channel has room. */
	const uint8_t *weights;
};

/* On which channel a granule lies, by its number in physical memory.  Without a table bit
 * i of the channel is the parity of granule & mask[i]; and with .q a sum of digits stands
 * above those: weight[j] times digit j of granule >> shift in base q, modulo q. */
struct hal_bk_color_map {
	uint32_t granule_bytes;
	uint32_t colors;
	uint64_t granules;
	const uint8_t *table; /* a channel each, 0xff: not known; NULL: by what follows */
	uint32_t mask_count;
	uint32_t q; /* 0: there is no such sum */
	uint32_t shift, digits;
	uint64_t mask[6];
	uint8_t weight[32];
};

/* The free granules of a device, by colour.  One thread at a time. */
struct hal_bk_granules;

/* ---- services of the core --------------------------------------------------------- */

struct hal_host {
	uint32_t size;
	uint32_t abi;
	/* Sets hal_last_error of the calling thread; returns -err. */
	int (*fail)(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
	/* Value of a declared option.  int, size, bool, enum. */
	int64_t (*option_int)(const struct hal_bk_config *cfg, const char *key);
	/* string, enum.  Lives as long as the device. */
	const char *(*option_str)(const struct hal_bk_config *cfg, const char *key);
	/* For backends that place memory themselves.  All granules of the map are free;
	 * the map is not kept.  -EINVAL it is none, -ENOMEM. */
	int (*granules_open)(const struct hal_bk_color_map *map,
			     struct hal_bk_granules **out);
	void (*granules_close)(struct hal_bk_granules *g); /* NULL is let pass */
	/* count of them to out, lowest first, in constant time each.  -EINVAL all weights
	 * are 0.  -ENOSPC: the text names the colours that are short and what is left;
	 * nothing is taken. */
	int (*granules_take)(struct hal_bk_granules *g,
			     const struct hal_bk_colors *colors, uint64_t count,
			     uint32_t *out);
	/* count in a row, the lowest such place, to *first; in time that goes with the
	 * memory there is.  -ENOSPC: *first is how long the longest row is. */
	int (*granules_take_run)(struct hal_bk_granules *g, uint64_t mask, uint64_t count,
				 uint32_t *first);
	void (*granules_give)(struct hal_bk_granules *g, const uint32_t *granules,
			      uint64_t count);
	uint64_t (*granules_left)(const struct hal_bk_granules *g, uint64_t mask);
};

/* ---- objects ---------------------------------------------------------------------- */

/* Resolved by the core: in range, disjoint from every other partition of the device.  Or
 * a guest, as many as info.guests_max: its index is partitions_max or more, it has no
 * units, and is never resized or limited; commands of its queues run on .host's, in the
 * order of submission among those of .host and its other guests, each in the address
 * space of its own partition. */
struct hal_bk_partition_desc {
	uint32_t index; /* 0 .. partitions_max-1 */
	uint32_t units;
	uint16_t row, col, rows, cols; /* a line of units is row 0, rows 1 */
	uint64_t memory_bytes;         /* quota, kept by the core; 0: none */
	uint64_t color_mask;           /* never 0 where the device has colours */
	const char *name;              /* for messages; stays while the partition does */
	void *host; /* of partition_create, destroyed after it; NULL: no guest */
	/* With HAL_CAP_BIMODAL, 0: one placement is all there is.  Else channels, those
	 * of .color_mask among them, on which partition_widen may put it. */
	uint64_t wide_mask;
	/* Of its buffers, wherever they are (mem_out): so many have addresses at once. 0:
	 * .memory_bytes of them. */
	uint64_t address_bytes;
};

/* What of a device a kernel uses, where there are engines of several kinds. */
#define HAL_BK_ENGINE_ARRAY  (UINT32_C(1) << 0) /* units of a partition */
#define HAL_BK_ENGINE_VECTOR (UINT32_C(1) << 1) /* one that each partition has */

struct hal_bk_kernel_info {
	char name[32];
	uint32_t arg_count;
	uint32_t engines;                 /* HAL_BK_ENGINE_*; 0: unknown */
	uint64_t arg_bytes[HAL_ARGS_MAX]; /* least bytes; 0: a scalar, or any */
	uint64_t work;                    /* multiply-accumulates; 0: unknown */
	/* Which of the device's configurations it is in, of which it has one at a time
	 * (info.load_ns to change that); 0: it is always there. */
	uint32_t configuration;
	uint32_t reserved;
};

struct hal_bk_arg {
	void *mem;      /* of mem_alloc; NULL: scalar */
	uint64_t value; /* byte offset into mem, or the scalar */
	uint64_t bytes;
};

/* hal_bk_cmd.flags beside HAL_CMD_*, for a device that can be given many commands in one
 * go: it is of a recorded sequence, and will come again among the same others; and what
 * follows it in its queue is not of that sequence, or not the device's. */
#define HAL_BK_CMD_RECORDED (UINT32_C(1) << 14)
#define HAL_BK_CMD_LAST     (UINT32_C(1) << 15) /* never alone */

/* One command for the device.  It and what it points to stay until its event has been
 * polled, or its queue destroyed: a backend may keep the pointer. */
struct hal_bk_cmd {
	uint32_t op;    /* enum hal_op: COPY, FILL, LAUNCH, TIMESTAMP, NOP */
	uint32_t flags; /* HAL_CMD_*, HAL_BK_CMD_*; the upper 16 bits are the core's */
	uint64_t cookie;
	union {
		struct {
			void *dst, *src;
			uint64_t dst_offset, src_offset, bytes;
		} copy;
		struct {
			void *dst;
			uint64_t offset, bytes;
			uint32_t pattern;
		} fill;
		struct {
			void *kernel;
			const struct hal_bk_arg *args;
			uint32_t arg_count;
			uint32_t groups[3]; /* each at least 1 */
		} launch;
		struct {
			void *dst;
			uint64_t offset;
		} timestamp;
	};
};

enum hal_bk_event_kind {
	HAL_BK_DONE, /* a command ended: status 0, or -EIO (fault), -ECANCELED (killed) */
	/* A suspend has let go, or a resize has moved (status not 0: it has not, and the
	 * partition is where it was); cookie is its own. */
	HAL_BK_QUIET,
};

struct hal_bk_event {
	uint32_t kind;
	int32_t status;
	uint64_t cookie;
	/* Device time.  DONE: what it ran, of KILL: had run; of a command that was
	 * stopped by FOLD or SAVE: since it went on.  QUIET of those: what the queue's
	 * oldest command ran until it was stopped inside; the same twice: it was not.
	 * QUIET of KILL: of all that the oldest dropped command had run so much is not
	 * lost, it goes on there when it comes again; the same twice: all is. */
	uint64_t start_ns, end_ns;
	/* DONE: what it moved.  QUIET of FOLD and SAVE: state read back, state saved. */
	uint64_t bytes_read, bytes_written;
	char fault[96]; /* status -EIO: kind, address, descriptor ...; else "" */
};

enum hal_bk_counter_kind {
	HAL_BK_UNIT_NS, /* by partition .index: each unit's time computing, added up */
	HAL_BK_CHANNEL_BYTES, /* by memory channel .index, a bit of the colours */
};

/* What a device counts while it works. */
struct hal_bk_counter {
	uint32_t kind;
	uint32_t index;
	uint64_t total; /* since whenever; it only grows */
};

/* ---- cold operations -------------------------------------------------------------- */

/* hal_backend.beside: may take long, so callers make these calls themselves. */
#define HAL_BK_BESIDE_PROGRAM                                                            \
	(UINT64_C(1) << 0) /* program_load, kernel_get; program_unload stays short */
#define HAL_BK_BESIDE_COPY (UINT64_C(1) << 1) /* mem_write, mem_read, mem_clear */
#define HAL_BK_BESIDE_INFO (UINT64_C(1) << 2) /* get_info */

/* What the second placement of bimodal memory takes beside the first, on these own
 * channels, which has so many bytes or granules. */
static inline uint64_t hal_bk_twins(uint64_t n, uint64_t own, uint64_t further)
{
	uint64_t f = (uint64_t)__builtin_popcountll(further);
	uint64_t all = f + (uint64_t)__builtin_popcountll(own);

	return n / all * f + (n % all * f + all - 1) / all;
}

struct hal_bk_cold {
	/* Fills out[0..max) and returns how many devices there are, or -ENODEV with the
	 * reason in host->fail.  cfg may be NULL: defaults.  Opens nothing for good. */
	int (*probe)(const struct hal_bk_config *cfg, struct hal_device_info *out,
		     uint32_t max);
	int (*open)(const struct hal_bk_config *cfg, uint32_t index, void **dev);
	void (*close)(void *dev);
	/* .size is set and large enough; what a device cannot say stays 0.  Asked after
	 * open and by each hal_device_get_info.  If this can be slow, set
	 * HAL_BK_BESIDE_INFO in .beside; otherwise every tenant waits for it. */
	int (*get_info)(void *dev, struct hal_device_info *info);

	int (*partition_create)(void *dev, const struct hal_bk_partition_desc *desc,
				void **part);
	int (*partition_destroy)(void *dev, void *part);

	/* A hardware queue, or a share of one.  priority as in hal_queue_desc, for
	 * devices with queues of several; others may leave it, the engine orders by it
	 * anyway. */
	int (*queue_create)(void *dev, void *part, int32_t priority, void **queue);
	/* What the device keeps of it since FOLD or SAVE is dropped, without an event. */
	int (*queue_destroy)(void *dev, void *queue);

	/* colors: NULL where the device has none, else some of the partition's.  flags:
	 * HAL_BUFFER_*; with HAL_BUFFER_BIMODAL, of a partition with .wide_mask, it has a
	 * second placement (partition_widen) on those and all of .wide_mask that is not
	 * of .color_mask: its share there is further memory, and without
	 * HAL_BUFFER_SCRATCH no command may write to it. */
	int (*mem_alloc)(void *dev, void *part, uint64_t bytes,
			 const struct hal_bk_colors *colors, uint32_t flags, void **mem);
	int (*mem_free)(void *dev, void *mem);
	/* Ranges are checked by the core. */
	int (*mem_write)(void *dev, void *mem, uint64_t offset, const void *data,
			 uint64_t bytes);
	int (*mem_read)(void *dev, void *mem, uint64_t offset, void *data,
			uint64_t bytes);
	int (*mem_map)(void *dev, void *mem, void **address);
	int (*mem_unmap)(void *dev, void *mem);

	/* image is the core's own copy and stays until program_unload. */
	int (*program_load)(void *dev, const void *image, size_t size, void **prog);
	int (*program_unload)(void *dev, void *prog);
	/* kernel index of prog; -ENOENT past the last. */
	int (*kernel_get)(void *dev, void *prog, uint32_t index,
			  struct hal_bk_kernel_info *info, void **kernel);
	/* Called once for a program and partition before its first launch there: place
	 * constants in the partition's memory (the bytes are returned in *bytes and
	 * charged to its quota).  program_unbind undoes it.  NULL: nothing to do. */
	int (*program_bind)(void *dev, void *prog, void *part, uint64_t *bytes);
	int (*program_unbind)(void *dev, void *prog, void *part);

	/* Two of one partition and length, which no command that the device has uses and
	 * which are not mapped, change memory: the device finds in each, at the address
	 * that it has there, what the other held.  NULL: no HAL_CAP_RECOLOR. */
	int (*mem_swap)(void *dev, void *mem, void *other);

	/* Right after open, where the user has a map of a device that does not tell where
	 * its memory lies (hal.color_map): from now on it has those colours, and get_info
	 * says so.  The map is not kept.  -EINVAL: pages of another size than its
	 * granules.  NULL, -ENOTSUP: it tells by itself, or cannot place memory. */
	int (*colors_set)(void *dev, const struct hal_bk_color_map *map);

	/* Named extension table; NULL when there is none of that name. */
	const void *(*extension)(void *dev, const char *name);

	/* enum hal_isolation of the compute units of a partition that lies there.  NULL:
	 * that of the device info, which is the least that any partition has. */
	uint32_t (*isolation)(void *dev, const struct hal_bk_partition_desc *desc);

	/* All counters at one instant, *at_ns, to out[0..max); how many there are, one of
	 * a kind and index.  The engine asks while a trace is written.  NULL: the device
	 * counts nothing. */
	int (*counters)(void *dev, struct hal_bk_counter *out, uint32_t max,
			uint64_t *at_ns);

	/* Its bimodal memory, that of programs included, goes to its second placement, or
	 * back: the device finds it there at the addresses that it has.  Nothing of the
	 * partition is on the device, or kept there.  What mem_write wrote, and constants
	 * of programs, are in both placements; what commands wrote is in the other one.
	 * NULL: no HAL_CAP_BIMODAL. */
	int (*partition_widen)(void *dev, void *part, uint32_t wide);

	/* Its memory is free for others; the handle stays, and the address that the
	 * device has for it is nobody else's.  No command that the device has uses it, it
	 * is not mapped and was made without flags; what it held has been read.  Until
	 * mem_in it is given to mem_free alone.  NULL: no HAL_CAP_EVICT. */
	int (*mem_out)(void *dev, void *mem);
	/* It has memory again, at the same address; colors as in mem_alloc, as it had
	 * them.  What it holds is written next, but nobody finds there what others have
	 * left.  -ENOSPC: there is none, it is out as before. */
	int (*mem_in)(void *dev, void *mem, const struct hal_bk_colors *colors);

	/* It holds zeros, whoever had that memory before.  Called once, behind mem_alloc,
	 * before anybody has it; with HAL_BK_BESIDE_COPY by who makes it.  What mem_alloc
	 * has taken over from the program stays as it is.  NULL: mem_alloc gives zeros.
	 */
	int (*mem_clear)(void *dev, void *mem);
};

/* ---- hot operations: the engine, never block -------------------------------------- */

struct hal_bk_hot {
	/* Takes the command or answers -EAGAIN (the device's queue is full; the engine
	 * tries again after the next event).  It may only be written down, if doorbell is
	 * there: that is called once behind a batch of submits, of whatever queues.
	 * Commands of a queue run in order.  Another error fails the command.  Behind a
	 * command that ends with -EIO, those that the device has of its queue do nothing
	 * and end with -ECANCELED; no more come. */
	int (*submit)(void *dev, void *queue, const struct hal_bk_cmd *cmd);
	/* Returns how many events it wrote to ev[0..max).  Virtual clock: runs the device
	 * until there is an event or its time reaches until_ns.  When nothing is running
	 * it goes to until_ns at once, which must cost nothing however far that is; but
	 * with UINT64_MAX it stays where it is, and 0 says that nothing is left running.
	 * Real clock: only looks (until_ns is 0), and a simulated device runs a slice of
	 * at most about a millisecond.  Negative: the device is lost for good, with all
	 * it has; nothing hot is called after that, only what gives things back. */
	int (*poll)(void *dev, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max);
	/* Device time in ns.  Real clock: called by any thread, at any time. */
	uint64_t (*now)(void *dev);
	/* Lets go of a queue in a mode of info.suspend_modes, then HAL_BK_QUIET(cookie).
	 * DRAIN: commands already submitted finish.  FOLD, SAVE: what has not finished
	 * stays the device's, with its progress or saved state, and goes on after resume,
	 * wherever its partition is then; until that it is in nobody's way, and no event
	 * of it comes.  QUIET tells the bytes; -ENOSPC: no room for them.  KILL: each
	 * command of this queue that has not finished ends with HAL_BK_DONE, -ECANCELED
	 * (before QUIET), no other queue's command does; the engine submits them again
	 * after resume, in their order and before anything else of that queue, or
	 * destroys the queue.  The first of them may go on where it was: from a point
	 * inside (QUIET), if what it had computed until there is still whole. */
	int (*suspend)(void *dev, void *queue, uint32_t mode, uint64_t cookie);
	int (*resume)(void *dev, void *queue);
	/* Moves a partition to desc (row, col, rows, cols, units), then HAL_BK_QUIET. */
	int (*resize)(void *dev, void *part, const struct hal_bk_partition_desc *desc,
		      uint64_t cookie);
	/* Real clock: an fd readable when poll has something to do; -ENOTSUP: there is
	 * none, next alone tells. */
	int (*event_fd)(void *dev);
	/* Real clock, called when the engine is about to sleep: device time at which poll
	 * has something to do though event_fd is silent; 0: now, UINT64_MAX: never.
	 * NULL: without an event_fd poll is called again and again while work is in
	 * flight, with one only that tells. */
	uint64_t (*next)(void *dev);
	/* What has been submitted since the last one is to begin.  NULL: submit did. */
	void (*doorbell)(void *dev);
	/* A partition may move so many bytes in each window; 0: any number.  -EINVAL:
	 * less than info.limit_bytes, a window of 0 or beyond info.limit_window_ns, more
	 * than its memory carries. */
	int (*limit)(void *dev, void *part, uint64_t bytes, uint64_t window_ns);
};

/* ---- registration ----------------------------------------------------------------- */

struct hal_backend {
	uint32_t size; /* sizeof(struct hal_backend) */
	uint32_t abi;  /* HAL_BACKEND_ABI */
	const char *name;
	const char *summary;
	int32_t score; /* hal_open(NULL) takes the highest that has a device */
	uint32_t option_count;
	const struct hal_option_def *options;
	uint64_t beside;    /* HAL_BK_BESIDE_* */
	uint32_t cold_size; /* sizeof(struct hal_bk_cold) as compiled */
	uint32_t hot_size;
	struct hal_bk_cold cold; /* NULL entries become stubs that answer -ENOTSUP */
	struct hal_bk_hot hot;
};

/* The one symbol of a plugin; in-tree backends have hal_backend_NAME of the same type.
 * host stays valid for the life of the process.  NULL: refused (after host->fail). */
typedef const struct hal_backend *(*hal_backend_entry_fn)(const struct hal_host *host);

#ifdef __cplusplus
}
#endif
#endif
