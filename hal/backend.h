/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h - the interface between the core and the backend of a device.
 *
 * A backend describes what its device can do, and carries out what the core asks for.  It
 * makes no decisions: it does not schedule, wait for other queues, or retry.  It includes
 * this header and hal.h, and nothing of core/.  docs/adding-a-backend.md builds one.
 *
 * Which thread calls which operation:
 *
 *   operations             caller                                      may take long
 *   probe                  any thread, several at once                 yes
 *   open, event_fd         the thread in hal_open, before the engine   open: yes
 *   close                  the thread in hal_close, after the engine   yes
 *   named by .beside       any thread, concurrently with the engine    yes
 *   now (real clock)       any thread                                  no
 *   all other cold ones    the engine                                  no
 *   all other hot ones     the engine                                  never block
 *
 * hal_open also calls get_info, colors_set and now before the engine runs.
 *
 * The engine of a device makes one call at a time, so these operations need no lock.
 * Under the real clock the engine is one thread, unless the backend sets
 * HAL_BK_ANY_THREAD.  Under the virtual clock different threads act as the engine, one
 * after the other.  A backend that sets .beside must guard
 * what those operations share with each other and with the engine's.  Different devices
 * are called concurrently.
 *
 * Errors:  an operation, hot ones included, calls host->fail(errno, "what and why") and
 *          returns -errno.  The exceptions are -EAGAIN of submit, -ENOENT of kernel_get
 *          and -ENOTSUP of event_fd, which need no text.
 * Time:    device time in ns.
 * Handles: pointers that the backend returns through void **; never NULL.
 * Out of tree: a .so that exports hal_backend_entry (HAL_BACKEND_SYMBOL).
 */
#ifndef HAL_BACKEND_H
#define HAL_BACKEND_H

#include <stdarg.h>

#include <hal/ext/memory.h>
#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_BACKEND_ABI    5u
#define HAL_BACKEND_SYMBOL "hal_backend_entry"

/* ---- options: typed, listable ----------------------------------------------------- */

enum hal_option_type {
	HAL_OPTION_INT,    /* decimal or 0x; .min and .max inclusive */
	HAL_OPTION_SIZE,   /* bytes with K, M, G suffix; .min and .max inclusive */
	HAL_OPTION_BOOL,   /* 0 1 no yes off on false true */
	HAL_OPTION_ENUM,   /* one of .choices, "a|b|c"; the value is its index */
	HAL_OPTION_STRING, /* any text */
};

/* One option of section "backend.NAME".  "?key=value" in a target sets it, too. */
struct hal_option_def {
	const char *key;
	uint32_t type; /* enum hal_option_type */
	int64_t min, max;
	const char *choices;
	const char *def; /* default, as a user would write it */
	const char *help;
};

struct hal_bk_config; /* the options of one device, checked against the table */

/* ---- time ------------------------------------------------------------------------- */

/* Return at_ns + more_ns, or UINT64_MAX (never) if the sum overflows. */
static inline uint64_t hal_bk_after(uint64_t at_ns, uint64_t more_ns)
{
	return more_ns < UINT64_MAX - at_ns ? at_ns + more_ns : UINT64_MAX;
}

/* ---- coloured memory -------------------------------------------------------------- */
/* A colour is a memory channel.  A granule is the unit of memory that lies on one
 * channel (info.granule_bytes). */

#define HAL_BK_COLORS_MAX 64u

/* The channels on which a buffer shall lie. */
struct hal_bk_colors {
	uint64_t mask; /* bit i: channel i */
	/* weights[i]: relative share of the buffer on channel i of .mask; at least one is
	 * not 0.  NULL: spread evenly, as far as each channel has free granules. */
	const uint8_t *weights;
};

/* Map from granule number (physical address / .granule_bytes) to channel.  With .table
 * the channel is table[granule].  Without .table, bit i of the channel is the parity of
 * granule & mask[i], for i < .mask_count.  If .q is not 0, the bits above these are the
 * sum of weight[j] * digit j of (granule >> shift) in base q, modulo q. */
struct hal_bk_color_map {
	uint32_t granule_bytes;
	uint32_t colors;
	uint64_t granules;
	const uint8_t *table; /* one channel per granule, 0xff: unknown; or NULL */
	uint32_t mask_count;
	uint32_t q; /* 0: no sum */
	uint32_t shift, digits;
	uint64_t mask[6];
	uint8_t weight[32];
};

/* Allocator of a device's granules, by colour.  Not thread-safe: the backend guards it.
 */
struct hal_bk_granules;

/* ---- services of the core --------------------------------------------------------- */

struct hal_host {
	uint32_t size;
	uint32_t abi;
	/* Set the text of hal_last_error for the calling thread.  err: an errno value of
	 * either sign.  Return it as a negative number. */
	int (*fail)(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
	/* Return the value of a declared int, size, bool or enum option. */
	int64_t (*option_int)(const struct hal_bk_config *cfg, const char *key);
	/* Return the value of a string or enum option; valid until the device closes. */
	const char *(*option_str)(const struct hal_bk_config *cfg, const char *key);
	/* For backends that place memory themselves.  Make an allocator with all granules
	 * of the map free, except those of unknown channel.  map may be freed afterwards.
	 * -EINVAL: invalid map; -ENOMEM. */
	int (*granules_open)(const struct hal_bk_color_map *map,
			     struct hal_bk_granules **out);
	/* Free an allocator; NULL is allowed. */
	void (*granules_close)(struct hal_bk_granules *g);
	/* Take count granules of these colours, lowest numbers first, each in constant
	 * time.  -EINVAL: all weights are 0.  -ENOSPC: too few are free; nothing is taken
	 * and the text names the colours and what is free. */
	int (*granules_take)(struct hal_bk_granules *g,
			     const struct hal_bk_colors *colors, uint64_t count,
			     uint32_t *out);
	/* Take count consecutive granules, all of colours in mask, at the lowest possible
	 * number that is a multiple of align (1: any).  *first: number of the first one.
	 * Takes time proportional to the device's memory.  -ENOSPC: *first is the length
	 * of the longest free run that begins at such a number. */
	int (*granules_take_run)(struct hal_bk_granules *g, uint64_t mask, uint64_t count,
				 uint32_t align, uint32_t *first);
	/* Give granules back. */
	void (*granules_give)(struct hal_bk_granules *g, const uint32_t *granules,
			      uint64_t count);
	/* Return the number of free granules of colours in mask. */
	uint64_t (*granules_left)(const struct hal_bk_granules *g, uint64_t mask);
	/* Return the number of the application's thread that has asked for the operation
	 * which this thread carries out: the engine carries out operations of others.
	 * Outside of such an operation it is this thread's own number.  Never 0; no two
	 * threads of the process ever have the same. */
	uint64_t (*caller)(void);
};

/* ---- objects ---------------------------------------------------------------------- */

/* A partition as the core resolved it.  The struct is valid during the call; .name for
 * longer.
 * With units: they are in range and disjoint from those of all other partitions.
 * Guest (.host is set; only if info.guests_max > 0): no units, never resized or limited.
 * Commands of its queues run on the host's units.  The order is that of submission among
 * the host and all its guests.  Each runs in the address space of its own partition. */
struct hal_bk_partition_desc {
	uint32_t index; /* below partitions_max; guests: the next guests_max numbers */
	uint32_t units;
	uint16_t row, col, rows, cols; /* units in a line: row 0, rows 1 */
	uint64_t memory_bytes;         /* quota, enforced by the core; 0: none */
	uint64_t color_mask; /* its channels; 0 only if the device has no colours */
	const char *name;    /* for messages; valid as long as the partition */
	/* Handle of the host's partition_create; NULL: not a guest.  The host is
	 * destroyed after its guests. */
	void *host;
	/* HAL_CAP_BIMODAL: channels of the second placement (partition_widen), those of
	 * .color_mask included.  0: the partition has one placement. */
	uint64_t wide_mask;
	/* Bytes of buffers that need device addresses at once, evicted ones (mem_out)
	 * included.  0: .memory_bytes. */
	uint64_t address_bytes;
};

/* Kinds of engines that a kernel uses, for devices with several kinds. */
#define HAL_BK_ENGINE_ARRAY  (UINT32_C(1) << 0) /* the units of a partition */
#define HAL_BK_ENGINE_VECTOR (UINT32_C(1) << 1) /* one vector engine per partition */

struct hal_bk_kernel_info {
	char name[32];
	uint32_t arg_count;
	uint32_t engines;                 /* HAL_BK_ENGINE_*; 0: unknown */
	uint64_t arg_bytes[HAL_ARGS_MAX]; /* minimum bytes; 0: scalar, or any size */
	uint64_t work;                    /* multiply-accumulates; 0: unknown */
	/* Number of the configuration that contains it, if the device holds one at a time
	 * (loading another takes info.load_ns).  0: always present. */
	uint32_t configuration;
	uint32_t reserved;
	/* Work items of a group by itself; 0: unknown. */
	uint32_t group_size[3];
	/* Most work items of a group that a launch may set (hal_bk_shape); 0: the size is
	 * fixed.  Most dynamic shared memory that a launch may set, in bytes; 0: none. */
	uint32_t group_size_max, shared_max;
};

struct hal_bk_arg {
	void *mem;      /* handle of mem_alloc; NULL: scalar */
	uint64_t value; /* byte offset into mem, or the scalar */
	uint64_t bytes;
};

/* hal_bk_cmd.flags in addition to HAL_CMD_*, for devices that take many commands in one
 * call.  RECORDED: the command belongs to a recorded sequence and will come again among
 * the same others.  LAST, only with RECORDED: the next command of this queue, if any, is
 * not of that sequence or not for the device. */
#define HAL_BK_CMD_RECORDED (UINT32_C(1) << 14)
#define HAL_BK_CMD_LAST     (UINT32_C(1) << 15)
/* COPY: .src, or .dst, is host memory (HAL_BK_MEM_HOST, mem_register); never both. */
#define HAL_BK_CMD_FROM_HOST (UINT32_C(1) << 12)
#define HAL_BK_CMD_TO_HOST   (UINT32_C(1) << 13)

/* mem_alloc: host memory that the device's copy engines reach (HAL_CAP_HOST_COPY), beside
 * HAL_BUFFER_*, of which none comes with it.  Only COPY uses it, as dst or as src.  The
 * core calls mem_map once and keeps the address until mem_free.  mem_alloc returns zeroed
 * memory; .colors are all channels of the partition, and need not be kept to.  mem_clear,
 * mem_write, mem_read, mem_unmap, mem_swap, mem_out and mem_in are not called. */
#define HAL_BK_MEM_HOST (UINT32_C(1) << 16)
/* A launch that is not of the kernel's own shape: see hal_bk_shape. */
#define HAL_BK_CMD_SHAPED (UINT32_C(1) << 11)
/* The command's queue is of HAL_CLASS_BEST_EFFORT: the backend may carry it out in
 * pieces, so that commands of other queues get in between. */
#define HAL_BK_CMD_BEST_EFFORT (UINT32_C(1) << 10)

/* The shape of a launch, within .group_size_max and .shared_max of its kernel. */
struct hal_bk_shape {
	uint32_t group_size[3]; /* each at least 1; all 0: the kernel's own */
	uint32_t shared_bytes;  /* 0: the kernel's own */
};

/* One command.  The struct and what it points to stay valid until the command's event has
 * been polled or its queue is destroyed, so a backend may keep the pointer. */
struct hal_bk_cmd {
	uint32_t op;     /* enum hal_op: COPY, FILL, LAUNCH, TIMESTAMP, NOP */
	uint32_t flags;  /* HAL_CMD_*, HAL_BK_CMD_*; the upper 16 bits are the core's */
	uint64_t cookie; /* identifies its HAL_BK_DONE */
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

/* Return the shape of a launch; NULL: the kernel's own.  It follows the arguments, so
 * that a launch without one takes no more memory. */
static inline const struct hal_bk_shape *hal_bk_shape(const struct hal_bk_cmd *cmd)
{
	const void *after = cmd->launch.args + cmd->launch.arg_count;

	return (cmd->flags & HAL_BK_CMD_SHAPED) != 0 ? (const struct hal_bk_shape *)after
						     : NULL;
}

enum hal_bk_event_kind {
	/* A command ended.  .status 0: success, -EIO: fault, -ECANCELED: killed, or
	 * dropped after a fault in its queue. */
	HAL_BK_DONE,
	/* A suspend took effect, or a resize is over; .cookie is that of the call.  A
	 * resize with .status not 0: the partition did not move. */
	HAL_BK_QUIET,
};

struct hal_bk_event {
	uint32_t kind; /* enum hal_bk_event_kind */
	int32_t status;
	uint64_t cookie;
	/* Interval of device time; if both are equal, there is no interval.
	 * DONE: when the command ran.  If it was killed: when it had run.  If FOLD or
	 * SAVE stopped it: when it ran since it was last resumed.
	 * QUIET of FOLD, SAVE: when the queue's oldest command ran until it was stopped
	 * inside.
	 * QUIET of KILL: the length is how much of the oldest dropped command's run time
	 * is kept; it continues from there when submitted again. */
	uint64_t start_ns, end_ns;
	/* DONE: memory traffic of the command.  QUIET of FOLD, SAVE: state read back,
	 * state saved. */
	uint64_t bytes_read, bytes_written;
	/* DONE with -EIO: kind of fault, address, kernel ...  QUIET of a failed resize:
	 * the reason.  Else "". */
	char fault[96];
};

enum hal_bk_counter_kind {
	HAL_BK_UNIT_NS, /* .index: partition; ns computed by each of its units, summed */
	HAL_BK_CHANNEL_BYTES, /* .index: memory channel (colour bit); bytes moved */
};

/* A counter that the device keeps while it works. */
struct hal_bk_counter {
	uint32_t kind; /* enum hal_bk_counter_kind */
	uint32_t index;
	uint64_t total; /* never decreases; may start at any value */
};

/* ---- cold operations -------------------------------------------------------------- */

/* hal_backend.beside: operations that may take long.  The threads that need them call
 * them directly, concurrently with each other and with the engine.  If the flag of an
 * operation is not set, the engine calls the operation, and every tenant of the device
 * waits until it returns. */
/* program_load, kernel_get; program_unload stays the engine's and must be short */
#define HAL_BK_BESIDE_PROGRAM (UINT64_C(1) << 0)
#define HAL_BK_BESIDE_COPY    (UINT64_C(1) << 1) /* mem_write, mem_read, mem_clear */
/* mem_alloc, mem_register, mem_export, mem_import, mem_free; mem_out and mem_in, which a
 * thread of the core calls, one at a time for each partition.  Under the real clock the
 * core then calls mem_alloc (for host memory mem_map, too), mem_register or mem_import
 * for a new buffer, mem_export, and mem_free for one that no submitted work uses, on the
 * thread that creates or destroys the buffer.  The partition exists until the call
 * returns.  The device may be lost during the call.  The engine still calls both for
 * buffers that move or that work used when they were destroyed, so mem_free must be
 * short.  Under the virtual clock only the engine calls them. */
#define HAL_BK_BESIDE_MEMORY (UINT64_C(1) << 3) /* 1 << 2 is unused */
/* queue_create.  Under the real clock the thread that creates a queue then calls it.  The
 * partition exists until the call returns, but may be resized meanwhile.  The device may
 * be lost during the call.  queue_destroy stays the engine's and must be short. */
#define HAL_BK_BESIDE_QUEUE (UINT64_C(1) << 4)

/* Return how much memory the second placement of a bimodal buffer needs in addition to
 * the first.  n: size of the buffer, in bytes or granules; the result has the same unit.
 * own: channels of the first placement.  further: the additional channels. */
static inline uint64_t hal_bk_twins(uint64_t n, uint64_t own, uint64_t further)
{
	uint64_t f = (uint64_t)__builtin_popcountll(further);
	uint64_t all = f + (uint64_t)__builtin_popcountll(own);

	return n / all * f + (n % all * f + all - 1) / all;
}

/* The comment of an operation says what NULL means, if anything special.  For any other
 * NULL entry the core returns -ENOTSUP. */
struct hal_bk_cold {
	/* Describe the devices present in out[0..max) and return their number, or -ENODEV
	 * after host->fail with the reason.  Leave no device open.  max may be smaller
	 * than that number. */
	int (*probe)(const struct hal_bk_config *cfg, struct hal_device_info *out,
		     uint32_t max);
	/* Open device index; release everything on failure. */
	int (*open)(const struct hal_bk_config *cfg, uint32_t index, void **dev);
	/* Release the device.  All its objects have been destroyed. */
	void (*close)(void *dev);
	/* Describe the device.  info->size is set and large enough; leave unknown fields
	 * 0.  Called after open and by each hal_device_get_info, which takes only
	 * .memory_free, .loads and .load_ns from it.  The engine makes the second call,
	 * so answer from memory and ask no driver. */
	int (*get_info)(void *dev, struct hal_device_info *info);

	/* Take the units of desc for a partition.  The engine calls it, so it must not
	 * wait for the device: queue_create may, see HAL_BK_BESIDE_QUEUE. */
	int (*partition_create)(void *dev, const struct hal_bk_partition_desc *desc,
				void **part);
	/* Destroy a partition.  Its queues and buffers have been destroyed, its programs
	 * unbound. */
	int (*partition_destroy)(void *dev, void *part);

	/* Make an in-order queue on the partition's units: a hardware queue or a share of
	 * one.  priority is a hint for hardware with priorities: that of hal_queue_desc,
	 * but at least 1 for HAL_CLASS_LATENCY and at most 0 for HAL_CLASS_BEST_EFFORT.
	 */
	int (*queue_create)(void *dev, void *part, int32_t priority, void **queue);
	/* Destroy a queue without commands in flight.  Drop commands that the device
	 * keeps for it since a FOLD or SAVE, without an event. */
	int (*queue_destroy)(void *dev, void *queue);

	/* Allocate memory that the partition's commands can reach.  colors: channels, all
	 * among the partition's; NULL if the device has no colours.  flags: HAL_BUFFER_*.
	 * -ENOSPC: no memory.  With HAL_BUFFER_BIMODAL, only in a partition with
	 * .wide_mask, the buffer gets a second placement.  It lies on the channels of
	 * colors and on those of .wide_mask that are not in .color_mask.  Its share on
	 * the latter is additional memory.  Without HAL_BUFFER_SCRATCH no command may
	 * write to such a buffer. */
	int (*mem_alloc)(void *dev, void *part, uint64_t bytes,
			 const struct hal_bk_colors *colors, uint32_t flags, void **mem);
	/* Free a buffer that no command in flight uses and that is not mapped. */
	int (*mem_free)(void *dev, void *mem);
	/* Copy from or to host memory; complete on return.  The range is inside the
	 * buffer. */
	int (*mem_write)(void *dev, void *mem, uint64_t offset, const void *data,
			 uint64_t bytes);
	int (*mem_read)(void *dev, void *mem, uint64_t offset, void *data,
			uint64_t bytes);
	/* Return a host address of the whole buffer, valid until mem_unmap. */
	int (*mem_map)(void *dev, void *mem, void **address);
	int (*mem_unmap)(void *dev, void *mem);

	/* Load an image from an untrusted source: check it, -EINVAL with the place of the
	 * error.  image is the core's copy and stays valid until program_unload. */
	int (*program_load)(void *dev, const void *image, size_t size, void **prog);
	/* Unload a program that no command in flight uses and that is not bound. */
	int (*program_unload)(void *dev, void *prog);
	/* Describe kernel index of prog and return its handle, valid until
	 * program_unload. -ENOENT: index is past the last.  Called for 0, 1, 2 ... after
	 * program_load, by the same thread. */
	int (*kernel_get)(void *dev, void *prog, uint32_t index,
			  struct hal_bk_kernel_info *info, void **kernel);
	/* Prepare prog for launches in part: called once, before the first of them.
	 * Place its constants in the partition's memory and return their size in *bytes,
	 * which the core charges to the quota.  program_unbind undoes it.  NULL: nothing
	 * to do. */
	int (*program_bind)(void *dev, void *prog, void *part, uint64_t *bytes);
	int (*program_unbind)(void *dev, void *prog, void *part);

	/* Use this map of memory channels from now on, and report its colours in
	 * get_info.  Called right after open if the user gave a map (hal.color_map) for a
	 * device that does not report its channels.  map is valid during the call only.
	 * -EINVAL: its granules do not match the page size.  -ENOTSUP, or NULL entry: the
	 * device reports its channels itself or cannot place memory. */
	int (*colors_set)(void *dev, const struct hal_bk_color_map *map);

	/* Return the table of functions of a named extension, or NULL if name is unknown.
	 */
	const void *(*extension)(void *dev, const char *name);

	/* Return the compute isolation (enum hal_isolation) of a partition at that place.
	 * NULL: info.compute_isolation, which is the least of any place. */
	uint32_t (*isolation)(void *dev, const struct hal_bk_partition_desc *desc);

	/* Fill a new buffer with zeros, so that it does not show what other tenants left
	 * there.  Called once after mem_alloc, before the buffer is used.  Memory that
	 * mem_alloc imported from the program keeps its contents.  NULL: mem_alloc
	 * returns zeroed memory. */
	int (*mem_clear)(void *dev, void *mem);

	/* HAL_CAP_HOST_REGISTER: let the device's copy engines reach the caller's memory
	 * at address, of any alignment.  It stays until mem_free, which does not free it.
	 * What HAL_BK_MEM_HOST says of the handle holds, but mem_map is not called.
	 * -EFAULT: the process cannot read and write it.  -EBUSY: the driver has
	 * registered a part of it already.
	 * NULL, -ENOTSUP: cannot. */
	int (*mem_register)(void *dev, void *part, void *address, uint64_t bytes,
			    void **mem);

	/* HAL_CAP_EXPORT: return a new file descriptor of a buffer's memory, which
	 * mem_alloc got with HAL_BUFFER_EXPORTABLE.  mem_import of this backend accepts
	 * it, in any process.  It keeps the memory, also after mem_free.  NULL, -ENOTSUP:
	 * cannot. */
	int (*mem_export)(void *dev, void *mem, int *fd);
	/* HAL_CAP_IMPORT: make memory of the partition out of a descriptor that a
	 * stranger may have made: check it.  It keeps its contents and is shared with all
	 * who have it.  mem_free ends the import.  fd is open and the caller's, who may
	 * close it after the call.  flags: 0 or HAL_BUFFER_MAPPABLE.  -EINVAL: no memory
	 * of a kind that the device can import, or fewer bytes.  NULL, -ENOTSUP: cannot.
	 */
	int (*mem_import)(void *dev, void *part, int fd, uint64_t bytes, uint32_t flags,
			  void **mem);
};

/* ---- hot operations: called by the engine, never block ----------------------------- */

struct hal_bk_hot {
	/* Accept a command.  -EAGAIN: the device's queue is full; the engine tries again
	 * after an event, so an event must be due.  Any other error fails the command.
	 * If doorbell is set, submit may only record the command.  The commands of a
	 * queue take effect in order.  When a command ends with -EIO, end all later
	 * commands of its queue with -ECANCELED and without effect; the core submits no
	 * more to that queue. */
	int (*submit)(void *dev, void *queue, const struct hal_bk_cmd *cmd);
	/* Write up to max events to ev and return their number.
	 * Real clock: check for events and return; until_ns is 0.  A simulated device
	 * runs a slice of about a millisecond at most.
	 * Virtual clock: run the device until it has an event or its time reaches
	 * until_ns.  If nothing is running, set the time to until_ns at once, at a cost
	 * independent of the distance.  If nothing is running and until_ns is UINT64_MAX,
	 * leave the time as it is and return 0.
	 * Negative result: the device and all work on it are lost for good.  The core
	 * then calls only now and the operations that release objects, which must work
	 * without the device. */
	int (*poll)(void *dev, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max);
	/* Return the device time in ns; it never goes back. */
	uint64_t (*now)(void *dev);
	/* Stop a queue by a mode of info.suspend_modes, then report HAL_BK_QUIET(cookie).
	 * DRAIN: commands already submitted complete first.
	 * FOLD, SAVE: the device keeps commands that have not completed, with their
	 * progress or saved state.  They occupy no unit, and no event of them comes until
	 * resume; then they continue, wherever the partition is by that time.  -ENOSPC:
	 * no memory for what would be kept.
	 * KILL: each command of this queue that has not completed ends with HAL_BK_DONE,
	 * -ECANCELED, before QUIET; commands of other queues are not affected.  After
	 * resume the engine submits the killed commands again, in order and before any
	 * other of the queue; or it destroys the queue.  The first of them may continue
	 * from a point inside (see hal_bk_event), if all that it computed up to there is
	 * intact. */
	int (*suspend)(void *dev, void *queue, uint32_t mode, uint64_t cookie);
	int (*resume)(void *dev, void *queue);
	/* Move a partition to row, col, rows, cols and units of desc, then report
	 * HAL_BK_QUIET. */
	int (*resize)(void *dev, void *part, const struct hal_bk_partition_desc *desc,
		      uint64_t cookie);
	/* Real clock, called once: return an fd that is readable while poll has something
	 * to do.  NULL, -ENOTSUP: no such fd. */
	int (*event_fd)(void *dev);
	/* Real clock, called before the engine sleeps while the device has work: return
	 * the device time at which to call poll even if event_fd stays silent.  0: now.
	 * UINT64_MAX: never.  NULL: with an event_fd, only the fd wakes the engine;
	 * without one, the engine calls poll continuously. */
	uint64_t (*next)(void *dev);
	/* Start what submit has recorded since the last doorbell.  Called once after a
	 * batch of submits to any queues; the batch may be empty.  NULL: submit starts
	 * the command. */
	void (*doorbell)(void *dev);
	/* HAL_BK_ANY_THREAD under the real clock: the calling thread, a caller of
	 * hal_submit or hal_wait, has been the engine and is not any more.  Take back
	 * what the operations have set of that thread.  NULL: nothing. */
	void (*leave)(void *dev);
};

/* ---- operations of few devices: an optional third table ------------------------------ */

/* Most of these need a device whose memory system the backend models itself.  A backend
 * that has none of them leaves .extra_size 0.  The engine calls them; they must be short,
 * and limit must not block. */
struct hal_bk_extra {
	/* HAL_CAP_RECOLOR: exchange the memory of two buffers of the same partition and
	 * length.  Both keep their handles and device addresses, so the device finds at
	 * each address what the other buffer held.  Neither is mapped or used by a
	 * command on the device. */
	int (*mem_swap)(void *dev, void *mem, void *other);

	/* HAL_CAP_EVICT: release the memory of a buffer for other use.  Keep its handle
	 * and reserve its device address.  No command on the device uses the buffer; it
	 * is not mapped and was allocated without flags.  The core has read its contents.
	 * Until mem_in the only other operation on it is mem_free. */
	int (*mem_out)(void *dev, void *mem);
	/* Give an evicted buffer memory again, at its address.  colors are the same as in
	 * the call of mem_alloc.  The core writes its contents next; the memory must not
	 * show what other buffers held.  -ENOSPC: no memory; the buffer stays evicted. */
	int (*mem_in)(void *dev, void *mem, const struct hal_bk_colors *colors);

	/* HAL_CAP_BIMODAL: switch the partition's bimodal memory, that of its programs
	 * included, to its second placement (wide 1) or back (wide 0), at the same device
	 * addresses.  During the call the device has no command of the partition, not
	 * even one kept by FOLD or SAVE.  Both placements hold what mem_write wrote and
	 * programs' constants.  What commands wrote is only in the placement that they
	 * used. */
	int (*partition_widen)(void *dev, void *part, uint32_t wide);

	/* Read all counters at one instant, *at_ns, into out[0..max); return their
	 * number, at most one of each kind and index.  Called while a trace is written.
	 * NULL: the device has no counters. */
	int (*counters)(void *dev, struct hal_bk_counter *out, uint32_t max,
			uint64_t *at_ns);

	/* HAL_CAP_LIMIT: let a partition move at most bytes of memory traffic in each
	 * window; 0: no limit.  -EINVAL: bytes is below info.limit_bytes, window_ns is 0
	 * or above info.limit_window_ns, or the limit exceeds the bandwidth of the
	 * partition's memory. */
	int (*limit)(void *dev, void *part, uint64_t bytes, uint64_t window_ns);
};

/* ---- registration ----------------------------------------------------------------- */

/* hal_backend.flags: images contain no pointers into a process, and program_load checks
 * them as the input of a stranger.  So a process may load what another process sends. */
#define HAL_BK_IMAGES_FOREIGN (UINT32_C(1) << 0)
/* Commands of different queues of a partition run at the same time where there is room,
 * those of higher priority first.  So the core submits a latency-critical command also
 * where the partition has as many in flight as it may. */
#define HAL_BK_SIDE_BY_SIDE (UINT32_C(1) << 1)
/* Under the real clock, too, different threads may act as the engine, one after the
 * other: the engine's operations depend on no state of the calling thread but what leave
 * takes back.  Submitted commands run to their ends without calls of poll.  So while the
 * engine sleeps, the core calls these operations on the threads in hal_submit and
 * hal_wait. */
#define HAL_BK_ANY_THREAD (UINT32_C(1) << 2)

struct hal_backend {
	uint32_t size;    /* sizeof(struct hal_backend) */
	uint32_t abi;     /* HAL_BACKEND_ABI */
	const char *name; /* 1 to 15 characters, none of ":?. " */
	const char *summary;
	/* hal_open(NULL) opens the backend of the highest score that finds a device */
	int32_t score;
	uint32_t option_count;
	const struct hal_option_def *options;
	uint64_t beside;     /* HAL_BK_BESIDE_* */
	uint32_t cold_size;  /* sizeof(struct hal_bk_cold), as compiled */
	uint32_t hot_size;   /* sizeof(struct hal_bk_hot), as compiled */
	uint32_t extra_size; /* sizeof(struct hal_bk_extra), as compiled; 0: none */
	uint32_t flags; /* HAL_BK_IMAGES_FOREIGN, HAL_BK_SIDE_BY_SIDE, HAL_BK_ANY_THREAD
			 */
	struct hal_bk_cold cold;
	struct hal_bk_hot hot;
	struct hal_bk_extra extra;
};

/* Type of hal_backend_entry, the one symbol that a plug-in exports.  A backend in the
 * tree has hal_backend_NAME of this type. host stays valid for the life of the process;
 * so must the returned table and what it points to.  To refuse to load, call host->fail
 * and return NULL. */
typedef const struct hal_backend *(*hal_backend_entry_fn)(const struct hal_host *host);

#ifdef __cplusplus
}
#endif
#endif
