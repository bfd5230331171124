/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hal.h - one C interface to GPUs, FPGAs and NPUs that several tenants share.
 *
 *   hal_open --> device --> partition --> queue --> hal_submit --> hal_wait
 *                  |            |                       ^
 *               program       buffer                    |
 *                  +--> kernel --> hal_cmd_launch ------+
 *
 * Errors:  0 (or a count) or -errno; hal_last_error() says what and why.
 *          EINVAL bad argument, ENOTSUP the device cannot, ENODEV absent, ENOMEM host
 *          memory, ENOSPC device memory, units or colours, EAGAIN queue full, EBUSY live
 *          children or in use, ETIMEDOUT, ECANCELED dropped, EIO device fault, EPERM
 *          refused, EPROTO backend ABI, E2BIG newer struct, ENOENT no such name or file,
 *          ERANGE an index past the last, EDEADLK would wait for itself (from a host
 *          callback) or for ever.
 * Threads: any thread may call anything, but hal_submit and hal_sequence_submit to one
 *          queue, all calls with one sequence, and hal_completions_read of one ring: one
 *          thread at a time.  No call holds what the engine or another call
 *          needs: a slow hal_program_load stops nobody.  hal_wait is a cancellation
 *          point, nothing else is.  What is destroyed is not given to another call that
 *          begins meanwhile; hal_wait alone may: it is waiting (-EBUSY for who
 *          destroys), or is answered -EINVAL.
 * Fork:    what a process has opened is its own: a child is answered -EPERM, and opens
 *          for itself.
 * Owner:   who creates destroys; a parent with live children answers -EBUSY.
 *          Submitted work keeps what it uses alive: a buffer may be destroyed right
 *          after submit.  hal_x_destroy(NULL) returns 0.
 * ABI:     set .size = sizeof (HAL_INIT does); unknown flag bits -> -EINVAL; a longer
 *          struct with a non-zero tail -> -E2BIG; reserved fields are 0.
 * Time:    device time in ns unless a name says cycles.  A deadline says how long after
 *          its submission work shall have ended; until_ns, to which moment a call waits:
 *          absolute CLOCK_MONOTONIC.  A simulated device runs one cycle a nanosecond.
 * The library never exits or aborts.  It prints nothing, but where the user asks for it
 * by the environment HAL_LOG (hal_log_set).
 */
#ifndef HAL_HAL_H
#define HAL_HAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_API           __attribute__((visibility("default")))

#define HAL_VERSION_MAJOR 0
#define HAL_VERSION_MINOR 3
#define HAL_VERSION_PATCH 0

struct hal_device;
struct hal_partition;
struct hal_queue;
struct hal_buffer;
struct hal_program;
struct hal_kernel;
struct hal_timeline;
struct hal_sequence;
struct hal_completions;
struct hal_scan;
struct hal_partition_limits; /* <hal/ext/memory.h> */

/* A moment on a timeline: reached once its counter is >= value.  By value.
 * Work waits for points of any device of the process, and signals any device's timelines.
 * Clocks of devices are not compared: the wait ends when the waiting engine is notified,
 * at the time of its own clock.  Virtual clocks run as the program has them run:
 * hal_device_poll runs one device; hal_wait runs those of its points, one after the
 * other, and when they have no work left, those whose points their work waits for.  It
 * answers -EDEADLK when no device that it may run can reach the points, as in a cycle,
 * and sleeps for a point of a real clock.  A real clock's work that waits for a virtual
 * clock waits for a thread that runs that device.  -ENOTSUP with hal.journal. */
struct hal_point {
	struct hal_timeline *timeline;
	uint64_t value;
};

/* What a backend can really do, never what was asked for. */
enum hal_preempt {
	HAL_PREEMPT_NONE,    /* runs to completion */
	HAL_PREEMPT_BETWEEN, /* holds work not yet given to the device */
	HAL_PREEMPT_PENDING, /* withdraws work the device has not started */
	HAL_PREEMPT_INSIDE,  /* stops a running command */
};

enum hal_isolation {
	HAL_ISOLATION_NONE,
	HAL_ISOLATION_ADVISORY, /* a cooperative limit, can be escaped */
	HAL_ISOLATION_ENFORCED, /* the device or the driver refuses */
};

/* How a suspend lets go; see hal_device_info.suspend_modes (bit = 1 << mode). */
enum hal_suspend_mode {
	HAL_SUSPEND_DRAIN, /* finish the running command */
	HAL_SUSPEND_FOLD,  /* stop at the next safe point inside it, keep progress */
	HAL_SUSPEND_SAVE,  /* stop now, save state, resume elsewhere or later */
	/* Drop it; after resume it runs again, from its beginning or from a point that
	 * it had passed, if the device keeps one (the NPU: between two layers).  What is
	 * killed each time before it can end, or come to the next such point, never ends.
	 */
	HAL_SUSPEND_KILL,
};
/* Beside a mode: for good.  The queue can only be destroyed then, so that KILL may drop
 * any command: how a program without an end is got rid of.  Once it is quiet its timeline
 * fails: who waits for what it had still to do gets -ECANCELED. */
#define HAL_SUSPEND_FINAL (1u << 8)

enum hal_device_kind {
	HAL_KIND_CPU,
	HAL_KIND_GPU,
	HAL_KIND_FPGA,
	HAL_KIND_NPU,
};

/* hal_device_info.caps */
#define HAL_CAP_GRID            (UINT64_C(1) << 0) /* units form rows x cols; rectangles */
#define HAL_CAP_VIRTUAL_CLOCK   (UINT64_C(1) << 1) /* time is the device's own; stepped */
#define HAL_CAP_MAP             (UINT64_C(1) << 2) /* some buffers can be mapped */
#define HAL_CAP_TIMESTAMP       (UINT64_C(1) << 3)
#define HAL_CAP_RESIZE_IDLE     (UINT64_C(1) << 4) /* a partition can move when quiet */
#define HAL_CAP_RESIZE_LIVE     (UINT64_C(1) << 5) /* ... and while it runs */
#define HAL_CAP_COLORED_MEMORY  (UINT64_C(1) << 6) /* buffers from chosen channels */
#define HAL_CAP_FAULT_CONTAINED (UINT64_C(1) << 7) /* a fault stops its queue alone */
#define HAL_CAP_SIMULATED       (UINT64_C(1) << 8) /* a model of a device, on the CPU */
#define HAL_CAP_STAND_IN        (UINT64_C(1) << 9) /* a test double of a vendor's device */
#define HAL_CAP_PRIVATE         (UINT64_C(1) << 10) /* each open is a device of its own */
#define HAL_CAP_LIMIT           (UINT64_C(1) << 11) /* a policy can limit bandwidth */
#define HAL_CAP_RECOLOR         (UINT64_C(1) << 12) /* hal_buffer_recolor works */
#define HAL_CAP_BIMODAL         (UINT64_C(1) << 13) /* HAL_PARTITION_BIMODAL works */
#define HAL_CAP_EVICT           (UINT64_C(1) << 14) /* buffers can go to the host */
#define HAL_CAP_HOST_COPY       (UINT64_C(1) << 15) /* hal_host_alloc works */
#define HAL_CAP_HOST_REGISTER   (UINT64_C(1) << 16) /* hal_host_register works */

/* Who says on which channel memory lies. */
enum hal_color_source {
	HAL_COLOR_NONE,   /* nobody: there are no colours */
	HAL_COLOR_DEVICE, /* the device */
	HAL_COLOR_FILE,   /* hal.color_map, which does not say how it was found */
	HAL_COLOR_PROBE,  /* hal.color_map, found by timing (halctl probe) */
};

/* Out: at most .size bytes are written. */
struct hal_device_info {
	uint32_t size;
	uint32_t kind; /* enum hal_device_kind */
	char backend[16];
	char name[64];
	char bus_id[32]; /* the same for all who open it; "": on no bus */
	uint64_t memory_bytes;
	uint64_t memory_free;
	uint64_t caps;      /* HAL_CAP_* */
	uint64_t verified;  /* those of .caps a self-test at open has confirmed */
	uint32_t unit_rows; /* grid devices; 1 where units form a line */
	uint32_t unit_cols;
	uint32_t partitions_max;
	uint32_t colors;            /* memory channels that can be owned; 0: none known */
	uint32_t granule_bytes;     /* colour grain; 0: none known */
	uint32_t preempt;           /* enum hal_preempt */
	uint32_t compute_isolation; /* enum hal_isolation; the least of any partition */
	uint32_t memory_isolation;  /* enum hal_isolation */
	uint32_t suspend_modes;     /* bit (1 << enum hal_suspend_mode) */
	int32_t lost;               /* 0, or -ENODEV: the device is lost, for good */
	uint64_t preempt_worst_ns;  /* of .preempt; 0: not known yet */
	uint64_t clock_hz;          /* device cycles a second of device time */
	uint64_t bandwidth;         /* of all memory, bytes a second; 0: none known */
	uint64_t limit_bytes; /* grain of a limit, and the least; 0: no HAL_CAP_LIMIT */
	uint64_t limit_window_ns; /* longest window of a limit */
	/* By enum hal_suspend_mode: from asked to quiet, whatever runs; of FOLD and SAVE,
	 * in a partition without a bandwidth limit.  0: not known yet, never impossible:
	 * .stop_max_ns (hal_stats) has the longest stops so far, which bound nothing. */
	uint64_t suspend_worst_ns[4];
	/* Partitions without units of their own (hal_partition_desc.host), beside
	 * .partitions_max; 0: none. */
	uint32_t guests_max;
	uint32_t color_source;    /* enum hal_color_source */
	uint32_t color_wrong_ppm; /* of .color_source FILE, PROBE: at most so many
				   * granules of a million lie elsewhere, with 95 %;
				   * UINT32_MAX: nobody has tried */
	/* Configurations that were loaded, and device time of one, the mean so far: the
	 * device has one at a time, and a launch of another's program waits until it is
	 * in its place. 0: there are none. */
	uint32_t loads;
	uint64_t load_ns;
	uint32_t page_bytes;  /* grain in which it places memory; 0: it does not say */
	uint32_t turn_cycles; /* each partition's turn on every memory channel, whoever
			       * asks, of the whole device while it is open; 0: they are
			       * shared by who asks */
};

/* A backend of this build or of a plugin: .status 0; or -ENODEV, nothing is present, or
 * what else is wrong with it, with the reason.  A plugin that does not load is one, too.
 */
struct hal_backend_info {
	uint32_t size;
	int32_t status;
	uint32_t device_count;
	uint32_t reserved;
	char name[16];
	char summary[112];
	char reason[512];
};

/* The policy in force, and what it did wrong (<hal/policy.h>). */
struct hal_policy_info {
	uint32_t size;
	uint32_t fallback; /* 1: given up, the engine serves in order of arrival */
	char name[32];
	uint64_t invalid;         /* no runnable queue named, or a wrong request */
	uint64_t stalls;          /* nobody named while nothing ran */
	uint64_t starved;         /* queues passed over for too long */
	uint64_t longest_wait_ns; /* of a runnable queue, in device time */
	char reason[160];         /* of the last fault; "" */
};

/* Which rectangle a count of units gets: always one of exactly that area.  Of several
 * places for it, prefer the one whose edges touch most held units and borders of the grid
 * (of 16 places at most that are compared), then the first by row and column.  Where
 * units form a line, every shape but SQUARE is a part of the line. */
enum hal_shape {
	/* The free rectangle whose sides differ least; of two such, the wider one.  A new
	 * partition with a ceiling above its floor gets COLUMNS, if these fit. */
	HAL_SHAPE_ANY,
	HAL_SHAPE_COLUMNS, /* whole columns side by side, or a part of one column */
	HAL_SHAPE_ROWS,    /* whole rows one below the other, or a part of one row */
	HAL_SHAPE_SQUARE,  /* as many rows as columns */
};

/* Units: a rectangle when .rows is set, else .units_floor of them anywhere, in a .shape;
 * a resize leaves as many as there are, within floor and ceiling.  A resize chooses the
 * place as for a new partition, with its own units free, so it may leave all of them.
 * With hal.compact a count of units may be moved to make room for others, in its present
 * shape where that fits; a policy that moves borders chooses shapes itself. */
struct hal_partition_desc {
	uint32_t size;
	uint32_t flags;         /* HAL_PARTITION_BIMODAL of <hal/ext/memory.h>, or 0 */
	uint32_t units_floor;   /* always guaranteed */
	uint32_t units_ceiling; /* so far the policy may let it grow; 0: as the floor */
	uint16_t row, col, rows, cols;
	uint32_t min_isolation; /* of compute; less -> -ENOTSUP, never a downgrade */
	/* enum hal_shape of a count; -EINVAL with a rectangle, or if no rectangle of that
	 * shape has so many units; -ENOTSUP: SQUARE without HAL_CAP_GRID. */
	uint32_t shape;
	uint64_t memory_bytes; /* quota; 0: whatever is free */
	uint64_t color_mask;   /* bit a channel; 0: any */
	char name[32];         /* for traces and halctl; may be empty */
	/* NULL, or a partition with units of its own, of the same device: then this one
	 * is its guest.  It has none (all fields of units are 0): its queues take turns
	 * with that partition's and its other guests' on those units, as queues of one
	 * partition do.  It has memory, channels (some of the host's; 0: all of them) and
	 * an address space of its own. */
	struct hal_partition *host;
	const struct hal_partition_limits *limits; /* NULL, or <hal/ext/memory.h> */
};

struct hal_partition_info {
	uint32_t size;
	/* 0 .. partitions_max-1, unique among the live ones; of guests
	 * partitions_max .. partitions_max+guests_max-1 */
	uint32_t index;
	char name[32];
	uint16_t row, col, rows, cols; /* grid devices; of a guest: its host's */
	uint32_t units;
	uint32_t compute_isolation;
	uint64_t memory_bytes; /* quota */
	uint64_t memory_used;
	uint64_t color_mask;
};

#define HAL_BUFFER_MAPPABLE                                                              \
	(UINT32_C(1) << 0) /* hal_buffer_map must work, else -ENOTSUP */

struct hal_buffer_desc {
	uint32_t size;
	uint32_t flags; /* HAL_BUFFER_*, also those of <hal/ext/memory.h> */
	uint64_t bytes;
	uint64_t color_mask; /* a subset of the partition's; 0: all of the partition's */
	/* NULL: spread evenly over those.  Or .colors (hal_device_info) numbers: so many
	 * parts of it lie on each; on what is not in color_mask the number says nothing,
	 * and one of the others at least is not 0. */
	const uint8_t *color_weights;
	char name[32]; /* for error texts and halctl; may be empty */
};

/* What a queue is to the others of its partition. */
enum hal_class {
	HAL_CLASS_NORMAL, /* or what [partition "name"] says */
	/* Latency-critical: before all others; best effort that runs makes way for it. */
	HAL_CLASS_LATENCY,
	/* Behind all others, and stopped for latency-critical work; it has no deadlines.
	 */
	HAL_CLASS_BEST_EFFORT,
};

struct hal_queue_desc {
	uint32_t size;
	uint32_t flags; /* 0 */
	/* Higher is served first within the partition, under policy priority (the
	 * default); tgs, prema, reef, orion, tidal and moca make classes of it
	 * where .service_class says nothing, others go without.  It stops nothing that
	 * runs, but under reef and with [policy] preempt_for = priority, and lends nobody
	 * units, but under tidal.  A device with priorities gets it as a hint, at least 1
	 * for HAL_CLASS_LATENCY and at most 0 for HAL_CLASS_BEST_EFFORT. */
	int32_t priority;
	/* enum hal_preempt; -ENOTSUP when the device has less, and that is all: who wants
	 * something stopped calls hal_queue_suspend. */
	uint32_t min_preempt;
	/* Device time from each submission, until all of it shall have ended; 0: there is
	 * none.  A miss is counted, and drops nothing.  HAL_CLASS_LATENCY stops best
	 * effort in a mode that meets it, if one does; with [policy] preempt_for =
	 * deadline, work that would miss it by waiting stops all that is less urgent.
	 * Policy edf serves the earliest first, laxity the work with least time left. */
	uint64_t deadline_ns;
	/* Of these, 0 (of .priority and .deadline_ns, too) is what [partition "name"]
	 * says of its queues. */
	uint32_t weight; /* share under policies wfq, quota, token; 0 counts as 1 */
	/* enum hal_class.  It comes before what policies go by.  But tgs, reef, orion and
	 * tidal serve two groups, each first come, first served: (1) HAL_CLASS_LATENCY
	 * queues and normal queues of high priority, (2) all other queues. */
	uint16_t service_class;
	/* Of the partition's device time, in thousandths; 0: none is kept.  Under policy
	 * quota, which then goes by weight; -ENOTSUP under others. */
	uint16_t budget_permille;
	struct hal_completions *completions; /* where ends are told; NULL: nowhere */
	char name[32]; /* for error texts, traces and halctl; may be empty */
};

struct hal_program_info {
	uint32_t size;
	uint32_t kernel_count;
	char name[32]; /* of hal_program_set_name; "": none */
};

struct hal_kernel_info {
	uint32_t size;
	uint32_t arg_count;
	char name[32];
	uint64_t arg_bytes[16]; /* least size of a buffer argument; 0: a scalar, or any */
	uint64_t work;          /* multiply-accumulates of one launch; 0: not known */
	uint32_t group_size[3]; /* work items of a group by itself; 0: not known */
	uint32_t group_size_max; /* most work items of a group that a launch may set; 0:
				  * the size is fixed */
	uint32_t shared_max;     /* most hal_cmd.launch.shared_bytes; 0: none */
	uint32_t reserved;
};

/* One launch argument: a range of a buffer, or a scalar when .buffer is NULL. */
struct hal_arg {
	struct hal_buffer *buffer;
	uint64_t offset; /* bytes into the buffer, or the scalar's value */
	uint64_t bytes;  /* 0: to the buffer's end */
};
#define HAL_ARGS_MAX 16

enum hal_op {
	HAL_OP_NOP,
	HAL_OP_COPY,
	HAL_OP_FILL,
	HAL_OP_LAUNCH,
	HAL_OP_HOST,
	HAL_OP_BARRIER,
	HAL_OP_TIMESTAMP,
};

/* The command may be dropped in the middle and run again from its start, or from any
 * point that it had passed (KILL): it writes nothing that it reads, and until it has
 * ended nobody else writes either. */
#define HAL_CMD_REPLAYABLE (UINT32_C(1) << 0)

typedef void (*hal_host_fn)(void *user);

/* One command; fill it with hal_cmd_copy(), hal_cmd_launch() and so on. */
struct hal_cmd {
	uint32_t op;    /* enum hal_op */
	uint32_t flags; /* HAL_CMD_* */
	union {
		struct {
			struct hal_buffer *dst, *src;
			uint64_t dst_offset, src_offset, bytes;
		} copy;
		struct {
			struct hal_buffer *dst;
			uint64_t offset, bytes; /* multiples of 4 */
			uint32_t pattern;
		} fill;
		struct {
			struct hal_kernel *kernel;
			const struct hal_arg *args; /* read by hal_submit, not after */
			uint32_t arg_count;
			uint32_t groups[3]; /* 0 counts as 1 */
			/* Work items of a group (threads of a block); all 0: as many as
			 * the kernel has by itself, else a 0 counts as 1.  Bytes of
			 * shared memory of each group that the launch adds; 0: as the
			 * kernel's image says.  At most hal_kernel_info.group_size_max,
			 * .shared_max. */
			uint32_t group_size[3];
			uint32_t shared_bytes;
		} launch;
		struct {
			hal_host_fn fn; /* real clock: on a thread of the device's
					   callbacks, one after the other; virtual clock:
					   on the thread that waits.  It may call all but
					   what would wait for itself: that answers
					   -EDEADLK */
			void *user;
		} host;
		struct {
			struct hal_buffer *dst; /* uint64_t: device time in ns */
			uint64_t offset;        /* multiple of 8 */
		} timestamp;
		uint64_t u[15];
	};
};

#define HAL_COMMANDS_MAX 4096 /* a submission; waits and signals count too */

/* hal_submit_desc.priority is this submission's, instead of its queue's. */
#define HAL_SUBMIT_PRIORITY (UINT32_C(1) << 0)

struct hal_submit_desc {
	uint32_t size;
	uint32_t flags; /* HAL_SUBMIT_* */
	const struct hal_cmd *cmds;
	uint32_t cmd_count;
	uint32_t cmd_stride; /* sizeof(struct hal_cmd); 0 the same */
	const struct hal_point *waits;
	const struct hal_point *signals; /* set to .value when all of it has ended */
	uint32_t wait_count;
	uint32_t signal_count;
	uint64_t not_before_ns; /* device time until which it is held; 0: it is not */
	uint64_t deadline_ns;   /* from the submission on, as of a queue, and later than
				   .not_before_ns; 0: the queue's */
	int32_t priority;       /* with HAL_SUBMIT_PRIORITY */
	uint32_t reserved;
	uint64_t tag; /* the caller's own: comes back in hal_completion, and in traces */
};

/* The end of a submission, see hal_completions_read. */
struct hal_completion {
	struct hal_queue *queue;
	uint64_t value; /* on its timeline */
	uint64_t tag;
	/* 0; -EIO: a command of it failed, -ENODEV: the device is lost; -ECANCELED: it
	 * was dropped.  Then hal_queue_get_fault says what and why. */
	int32_t status;
	uint32_t reserved;
	uint64_t submit_ns, end_ns; /* device time */
};

/* Why a queue has failed: its first failure. */
struct hal_fault_info {
	uint32_t size;
	int32_t status; /* of hal_completion; 0: the queue has not failed */
	uint64_t value; /* the submission that failed; 0: none was in the queue */
	uint64_t tag;   /* of that submission */
	uint32_t
		cmd; /* which of its commands; UINT32_MAX: none (a wait, a suspend ...) */
	uint32_t reserved;
	char text[384]; /* as hal_wait leaves it in hal_last_error */
};

/* How much hal_log_set passes on; each level includes those before it. */
enum hal_log_level {
	HAL_LOG_OFF,
	HAL_LOG_ERROR,   /* a device is lost, a command has failed */
	HAL_LOG_WARNING, /* the library has replaced or left out what was asked for */
	HAL_LOG_INFO,    /* devices, plugins and partitions come and go */
	HAL_LOG_DEBUG,   /* why each choice was made */
};
typedef void (*hal_log_fn)(void *user, int level, const char *text);

/* Log-scale histogram of command latency: bucket i counts [2^i, 2^(i+1)) ns; bucket 0
 * also 0. */
#define HAL_HISTOGRAM_BUCKETS 48

/* Accounting in device time, of a queue, a partition or the device. */
struct hal_stats {
	uint32_t size;
	uint32_t reserved;
	uint64_t now_ns;      /* device time of this snapshot */
	uint64_t busy_ns;     /* commands running (union over queues) */
	uint64_t queueing_ns; /* sum over commands: ready until started */
	uint64_t submitted;   /* commands */
	uint64_t completed;
	uint64_t failed;
	uint64_t dropped;
	uint64_t deadline_misses;
	uint64_t suspends;
	uint64_t suspend_ns; /* sum: asked until quiet */
	uint64_t suspend_max_ns;
	uint64_t replayed;    /* commands run again after KILL */
	uint64_t replayed_ns; /* work lost to that */
	uint64_t bytes_read;  /* by the device, where it counts them */
	uint64_t bytes_written;
	uint64_t latency_max_ns; /* submit until completed, a command */
	uint64_t latency_histogram[HAL_HISTOGRAM_BUCKETS];
	/* Of requests: submissions that ended well, submit until all of it ended.
	 * Percentiles from a log-linear histogram, at most 1 % off. */
	uint64_t requests;
	uint64_t request_p50_ns, request_p90_ns, request_p99_ns, request_p999_ns;
	uint64_t request_max_ns;
	uint64_t saved_bytes; /* by FOLD and SAVE */
	/* By enum hal_suspend_mode: the longest, asked until quiet, whoever asked: the
	 * application, a policy, or the engine, for work that is more urgent. */
	uint64_t stop_max_ns[4];
};

#ifdef __cplusplus
extern "C++" {
template <class T> inline T hal_init_()
{
	T t = T();

	t.size = static_cast<uint32_t>(sizeof(T));
	return t;
}
}
#define HAL_INIT(type) hal_init_<struct type>()
#else
#define HAL_INIT(type)                                                                   \
	{                                                                                \
		.size = (uint32_t)sizeof(struct type)                                    \
	}
#endif
/* hal_scan_create, what: backends and their devices. */
#define HAL_SCAN_DEVICES (UINT32_C(1) << 0)

#define HAL_FOREVER      INT64_MAX
#define HAL_WAIT_ANY     (UINT32_C(1) << 0)
/* until_ns is device time of the first point's device. */
#define HAL_WAIT_DEVICE_TIME (UINT32_C(1) << 1)

/* ---- library ---------------------------------------------------------------------- */

/* HAL_VERSION_* of the library, as major << 16 | minor << 8 | patch. */
HAL_API uint32_t hal_version(void);
HAL_API const char *hal_strerror(int err);
HAL_API const char *hal_last_error(void); /* this thread's; never NULL */

/* Pass messages of the process up to level (enum hal_log_level) to fn: one line each,
 * valid during the call.  fn NULL: to nowhere.  Once this returns, no thread is in the
 * function set before, unless fn itself calls it.  fn runs on any thread, on several at
 * once, also on a device's engine, which waits for it.  It may call hal_log_set,
 * hal_last_error, hal_strerror and hal_version, and nothing else of the library; what
 * these log is left out.  -EINVAL no such level.
 * Environment HAL_LOG=LEVEL[:FILE] (error, warning, info, debug): the same lines to FILE
 * (appended), else to stderr, whatever is set here; a bad value fails hal_open. */
HAL_API int hal_log_set(hal_log_fn fn, void *user, int level);

/* Look for backends and devices, without opening one, as hal_open(NULL, options) would
 * see them.  what: HAL_SCAN_DEVICES, or with <hal/ext/options.h> HAL_SCAN_OPTIONS.  The
 * result does not change any more; hal_scan_destroy frees it.  options: as in hal_open,
 * read during the call.  A plugin that does not load, or a backend without a device, is
 * no error here: its hal_backend_info says what is wrong with it.  -EINVAL: the
 * configuration is wrong, with file and line; -ENOENT: a file that was named is not
 * there; -EACCES: as hal_open.  Any thread. */
HAL_API int hal_scan_create(const char *const *options, uint32_t what,
			    struct hal_scan **scan);
HAL_API int hal_scan_destroy(struct hal_scan *scan);
/* Describe backend number index, plugins that did not load last.  -ERANGE: index is past
 * the last; -EINVAL: created without HAL_SCAN_DEVICES, or info->size is wrong.  Any
 * thread. */
HAL_API int hal_scan_get_backend(const struct hal_scan *scan, uint32_t index,
				 struct hal_backend_info *info);
/* Describe device number index, counted over all backends in their order.  Errors and
 * threads as hal_scan_get_backend. */
HAL_API int hal_scan_get_device(const struct hal_scan *scan, uint32_t index,
				struct hal_device_info *info);

/* ---- device ----------------------------------------------------------------------- */

/* target: "npu:0", "npu:0?rows=8&cols=8", "ref"; NULL: what the configuration
 * selects, else the best device present.  options: NULL or a NULL-ended array of
 * "section.key=value" ("hal.config=/path/hal.conf" names a file to read).
 * Of a simulated device (HAL_CAP_PRIVATE) each open, also of the same target, is a
 * machine of its own: tenants share one by sharing its handle, in one process.
 * Order: target and options > environment HAL_SECTION_KEY > files > default.  Files,
 * later ones over earlier ones: /etc/accelhal/hal.conf; each .conf in
 * /etc/accelhal/conf.d; $XDG_CONFIG_HOME/accelhal/hal.conf; $HAL_CONFIG; hal.config.
 * Where /dev/null is named, no file before it counts.  Plugins of all files are loaded.
 * -ENODEV when there is none, and says why for each; -EINVAL bad target, unknown option
 * or bad value (with file and line); -ENOENT the named file is not there; -EACCES a file
 * that nobody named, or its folder, cannot be read, is another user's, or others can
 * write it; -EBUSY another device or program writes the file of hal.trace or hal.journal.
 */
HAL_API int hal_open(const char *target, const char *const *options,
		     struct hal_device **dev);
/* -EBUSY while partitions, programs or timelines are alive.  -EPROTO, -EIO: closed, but a
 * layer ([layers] in hal.conf) has found something wrong, or a trace could not be
 * written. */
HAL_API int hal_close(struct hal_device *dev);
HAL_API int hal_device_get_info(struct hal_device *dev, struct hal_device_info *info);
HAL_API int hal_device_get_stats(struct hal_device *dev, struct hal_stats *stats);
/* Moves work on without waiting for a point; virtual clock: lets ns of device time pass,
 * also when it is idle.  UINT64_MAX: as long as something is left to do.  Returns the
 * number of commands that ended, 0 when none did; real clock: of those that ended since
 * the last call. */
HAL_API int hal_device_poll(struct hal_device *dev, uint64_t ns);
/* Device time now. */
HAL_API uint64_t hal_device_now(struct hal_device *dev);
/* Replaces the policy while work runs: what is runnable is handed from the old one to the
 * new one.  options: NULL or a NULL-ended array of "key=value" of section [policy].
 * -EINVAL no such policy, option or value, -ENOTSUP a queue has a budget, which it does
 * not keep: the old one stays. */
HAL_API int hal_device_set_policy(struct hal_device *dev, const char *name,
				  const char *const *options);
HAL_API int hal_device_get_policy(struct hal_device *dev, struct hal_policy_info *info);
/* A backend's named extension, a pointer to its constant table (see <hal/npu.h>);
 * NULL and hal_last_error() when this device has none of that name. */
HAL_API const void *hal_device_extension(struct hal_device *dev, const char *name);
/* The backend's own handle, which extension functions take. */
HAL_API void *hal_device_native(struct hal_device *dev);

/* Chrome/Perfetto JSON: who owned which units and what ran there, what each queue was
 * given, counters; see hal_trace_start(3).  Written until hal_trace_stop or hal_close.
 * -EBUSY one is being written, or another device or program writes that file; else path's
 * errno. */
HAL_API int hal_trace_start(struct hal_device *dev, const char *path);
/* -EINVAL none is being written; -EIO not all of it could be written. */
HAL_API int hal_trace_stop(struct hal_device *dev);

/* ---- partition -------------------------------------------------------------------- */

/* -ENOSPC when the units, bytes or colours are not there; the text says what is left.
 * With hal.compact others may be moved for it first, which is waited for. */
HAL_API int hal_partition_create(struct hal_device *dev,
				 const struct hal_partition_desc *desc,
				 struct hal_partition **part);
/* As [partition "name"] of the configuration describes it.  -ENOENT no such section. */
HAL_API int hal_partition_create_named(struct hal_device *dev, const char *name,
				       struct hal_partition **part);
/* Moves the border at the next safe point; others are not touched.  *done may be NULL.
 * -ENOTSUP without HAL_CAP_RESIZE_*; -EBUSY work in flight and only RESIZE_IDLE. */
HAL_API int hal_partition_resize(struct hal_partition *part,
				 const struct hal_partition_desc *desc,
				 struct hal_point *done);
/* Give count partitions of one device new places together, all or none: exchange two, let
 * one grow by what another gives.  descs[i] is for parts[i], as in a resize.  Named
 * rectangles are placed first, then counts, in the order of the array.  Where partitions
 * wait for each other, one goes to free units meanwhile, or shrinks to one unit.  *done
 * (may be NULL) is reached when all have moved.  If the device refuses a move, those that
 * moved go back, then the point fails with that error; if it refuses that, too, the text
 * names those that are elsewhere.  Errors as of a resize; -EINVAL more than 32, one
 * twice, rectangles that overlap; -ENOSPC an exchange of single units needs a free one.
 */
HAL_API int hal_partitions_move(struct hal_partition *const *parts,
				const struct hal_partition_desc *descs, uint32_t count,
				struct hal_point *done);
HAL_API int hal_partition_destroy(struct hal_partition *part);
HAL_API int hal_partition_get_info(const struct hal_partition *part,
				   struct hal_partition_info *info);
HAL_API int hal_partition_get_stats(struct hal_partition *part, struct hal_stats *stats);

/* ---- buffer ----------------------------------------------------------------------- */

/* It holds zeros, whoever had that memory before.  -ENOSPC: the text names what is short:
 * the quota, the memory_limit, a channel. */
HAL_API int hal_buffer_create(struct hal_partition *part,
			      const struct hal_buffer_desc *desc,
			      struct hal_buffer **buf);
/* -EBUSY: it is registered host memory, and submitted work or a sequence uses it. */
HAL_API int hal_buffer_destroy(struct hal_buffer *buf);
HAL_API uint64_t hal_buffer_bytes(const struct hal_buffer *buf);
/* Host copies; not ordered with queues: wait for the work that uses the buffer first. */
HAL_API int hal_buffer_write(struct hal_buffer *buf, uint64_t offset, const void *data,
			     uint64_t bytes);
HAL_API int hal_buffer_read(struct hal_buffer *buf, uint64_t offset, void *data,
			    uint64_t bytes);
/* The buffer's bytes in the caller's address space until unmap or destroy.  -ENOTSUP
 * where the device or this buffer's placement does not allow it. */
HAL_API int hal_buffer_map(struct hal_buffer *buf, void **address);
HAL_API int hal_buffer_unmap(struct hal_buffer *buf);

/* ---- host memory for queued copies ------------------------------------------------ */

/* Allocate host memory that the copy engines of the device reach.  *host is a buffer of
 * part that lies there, *address is its first byte; both hold zeros and last until
 * hal_buffer_destroy.  After that, submitted work still uses the memory, the program must
 * not.  Only copies take such a buffer (hal_cmd_write, hal_cmd_read, hal_cmd_copy): one
 * side is host memory, the other is not.  It counts in the quota and is never evicted.
 * -EINVAL bytes is 0, -ENOSPC quota or memory, -ENOTSUP no HAL_CAP_HOST_COPY. */
HAL_API int hal_host_alloc(struct hal_partition *part, uint64_t bytes,
			   struct hal_buffer **host, void **address);
/* As hal_host_alloc, for bytes at address, which are the program's own memory.  Any
 * alignment; the memory keeps its contents.  It must stay allocated until
 * hal_buffer_destroy has returned 0, which does not wait for work that uses it.  Regions
 * may overlap.  -EINVAL address is NULL, bytes is 0 or the region wraps around, -ENOSPC
 * as hal_host_alloc, -ENOTSUP no HAL_CAP_HOST_REGISTER. */
HAL_API int hal_host_register(struct hal_partition *part, void *address, uint64_t bytes,
			      struct hal_buffer **host);

/* ---- program ---------------------------------------------------------------------- */

/* The image is copied.  -EINVAL not an image for this device, or truncated: says where */
HAL_API int hal_program_load(struct hal_device *dev, const void *image, size_t size,
			     struct hal_program **prog);
/* For people: traces call its kernels "name: kernel".  "" takes it away.  -EINVAL longer
 * than 31 characters. */
HAL_API int hal_program_set_name(struct hal_program *prog, const char *name);
HAL_API int hal_program_get_info(const struct hal_program *prog,
				 struct hal_program_info *info);
/* -EBUSY never: submitted work keeps it alive.  Kernels die with their program. */
HAL_API int hal_program_unload(struct hal_program *prog);
/* The kernel belongs to the program and is not destroyed.  -ENOENT no such name. */
HAL_API int hal_kernel_find(struct hal_program *prog, const char *name,
			    struct hal_kernel **kernel);
/* Store kernel number index of the program, in the order of its image; the count is
 * hal_program_info.kernel_count.  As of hal_kernel_find.  -ERANGE past the last. */
HAL_API int hal_kernel_get(struct hal_program *prog, uint32_t index,
			   struct hal_kernel **kernel);
HAL_API int hal_kernel_get_info(const struct hal_kernel *kernel,
				struct hal_kernel_info *info);

/* ---- queue ------------------------------------------------------------------------ */

HAL_API int hal_queue_create(struct hal_partition *part,
			     const struct hal_queue_desc *desc, struct hal_queue **queue);
/* -EBUSY while a thread waits for a point of it, or work is in it; work of a suspended
 * queue is dropped, what FOLD or SAVE has stopped inside as well. */
HAL_API int hal_queue_destroy(struct hal_queue *queue);
/* Asks; *quiet (may be NULL) is reached once the device has really let go.  mode is enum
 * hal_suspend_mode, with HAL_SUSPEND_FINAL or without.  -ENOTSUP the device lacks the
 * mode, or KILL, not final, while a command runs that is not HAL_CMD_REPLAYABLE; -EBUSY
 * already suspended; -ENOSPC the partition has no room for what FOLD or SAVE keeps. */
HAL_API int hal_queue_suspend(struct hal_queue *queue, uint32_t mode,
			      struct hal_point *quiet);
/* -EINVAL not suspended; -ECANCELED suspended for good. */
HAL_API int hal_queue_resume(struct hal_queue *queue);
HAL_API int hal_queue_get_stats(struct hal_queue *queue, struct hal_stats *stats);
/* Say why the queue has failed, or that it has not (.status 0): the device's text, the
 * submission and the command.  Any thread, until the queue is destroyed. */
HAL_API int hal_queue_get_fault(const struct hal_queue *queue,
				struct hal_fault_info *fault);
/* The queue's own timeline: submission n (from 1) reaches value n. */
HAL_API struct hal_timeline *hal_queue_timeline(struct hal_queue *queue);

/* All of it or nothing.  Commands of a queue take effect in order.  -EAGAIN when the
 * queue is full.  *done (may be NULL) is reached when all of it ends.  Never blocks. */
HAL_API int hal_submit(struct hal_queue *queue, const struct hal_submit_desc *desc,
		       struct hal_point *done);

/* Work recorded once and submitted many times, at a fraction of hal_submit's price for
 * each command (CUDA calls it a graph).  desc gives the commands alone: no waits,
 * signals, times.  For queues of part. -EINVAL as hal_submit, and for no commands. */
HAL_API int hal_sequence_create(struct hal_partition *part,
				const struct hal_submit_desc *desc,
				struct hal_sequence **seq);
/* -EBUSY never: what was submitted keeps it alive. */
HAL_API int hal_sequence_destroy(struct hal_sequence *seq);
/* Arguments of launch number cmd from the next submission on; what was submitted before
 * keeps its own. */
HAL_API int hal_sequence_set_args(struct hal_sequence *seq, uint32_t cmd,
				  const struct hal_arg *args, uint32_t arg_count);
/* As hal_submit with the sequence's commands: desc (may be NULL) gives waits, signals,
 * times and the tag, and no commands. */
HAL_API int hal_sequence_submit(struct hal_queue *queue, struct hal_sequence *seq,
				const struct hal_submit_desc *desc,
				struct hal_point *done);

/* ---- completions ------------------------------------------------------------------ */

/* One place where many queues tell of ends (hal_queue_desc.completions): a ring of at
 * least entries, a power of two up to 65536.  It never overflows: when what is in flight
 * and unread would, a submission is refused as by a queue that is full. */
HAL_API int hal_completions_create(struct hal_device *dev, uint32_t entries,
				   struct hal_completions **ring);
/* -EBUSY while a queue tells there. */
HAL_API int hal_completions_destroy(struct hal_completions *ring);
/* Takes up to max entries, oldest first; waits until there is one, or until_ns as in
 * hal_wait.  Returns how many; 0 only if until_ns is 0.  One thread at a time.  -ENODEV: the device is
 * lost, and the entries of all submissions have been read; whoever waits wakes up. */
HAL_API int hal_completions_read(struct hal_completions *ring, struct hal_completion *out,
				 uint32_t max, int64_t until_ns);
/* The ring's own fd (for poll, epoll, io_uring): readable while entries are unread, and
 * for good once the device is lost and all have been read.  It goes with the ring; only
 * hal_completions_read takes from it.  virtual clock: -ENOTSUP until hal_device_poll has
 * been called, which moves time while a program looks at it. */
HAL_API int hal_completions_fd(struct hal_completions *ring);

/* ---- time ------------------------------------------------------------------------- */

HAL_API int hal_timeline_create(struct hal_device *dev, struct hal_timeline **timeline);
/* -EBUSY while submitted work waits on it or will signal it, or a thread waits for it. */
HAL_API int hal_timeline_destroy(struct hal_timeline *timeline);
/* The counter, or with *err (may be NULL) set to the error that stuck. */
HAL_API uint64_t hal_timeline_value(const struct hal_timeline *timeline, int *err);
/* From the host; only upwards, -EINVAL otherwise. */
HAL_API int hal_timeline_signal(struct hal_timeline *timeline, uint64_t value);

/* Waits until the moment until_ns; 0 polls, HAL_FOREVER has no end.  Points are looked at
 * in order.  0 when all (or, HAL_WAIT_ANY, the index of one) are reached; -ETIMEDOUT once
 * until_ns has passed, or the error that failed a timeline (it sticks).
 * A point that was reached before its timeline failed counts as reached.  flags:
 * HAL_WAIT_*.  virtual clock: steps the device; -EDEADLK when no work is left that could
 * reach them.  A thread may be cancelled while it sleeps here. */
HAL_API int hal_wait(const struct hal_point *points, uint32_t count, uint32_t flags,
		     int64_t until_ns);
/* A new O_CLOEXEC fd, readable once reached or failed; the caller closes it.  virtual
 * clock: as hal_completions_fd, unless the point has been reached. */
HAL_API int hal_point_fd(const struct hal_point *point);

/* ---- command builders ------------------------------------------------------------- */

/* Inline in C and C++; the library exports the same functions to other languages. */
#ifndef HAL_INLINE
#define HAL_INLINE static inline
#endif

HAL_INLINE struct hal_cmd hal_cmd_of(uint32_t op, uint32_t flags)
{
#ifdef __cplusplus
	struct hal_cmd c = {};
#else
	struct hal_cmd c = {0};
#endif

	c.op = op;
	c.flags = flags;
	return c;
}

HAL_INLINE struct hal_cmd hal_cmd_copy(struct hal_buffer *dst, uint64_t dst_offset,
				       struct hal_buffer *src, uint64_t src_offset,
				       uint64_t bytes)
{
	struct hal_cmd c = hal_cmd_of(HAL_OP_COPY, HAL_CMD_REPLAYABLE);

	c.copy.dst = dst;
	c.copy.src = src;
	c.copy.dst_offset = dst_offset;
	c.copy.src_offset = src_offset;
	c.copy.bytes = bytes;
	return c;
}

/* Copy from host memory (hal_host_alloc, hal_host_register) to a buffer, in the order of
 * the queue.  The program must not change the bytes before the submission's point is
 * reached, and may change them from then on. */
HAL_INLINE struct hal_cmd hal_cmd_write(struct hal_buffer *dst, uint64_t dst_offset,
					struct hal_buffer *host, uint64_t host_offset,
					uint64_t bytes)
{
	return hal_cmd_copy(dst, dst_offset, host, host_offset, bytes);
}

/* Copy from a buffer to host memory, in the order of the queue.  The program must not
 * touch the bytes before the submission's point is reached, and may read them from then
 * on. */
HAL_INLINE struct hal_cmd hal_cmd_read(struct hal_buffer *host, uint64_t host_offset,
				       struct hal_buffer *src, uint64_t src_offset,
				       uint64_t bytes)
{
	return hal_cmd_copy(host, host_offset, src, src_offset, bytes);
}

HAL_INLINE struct hal_cmd hal_cmd_fill(struct hal_buffer *dst, uint64_t offset,
				       uint64_t bytes, uint32_t pattern)
{
	struct hal_cmd c = hal_cmd_of(HAL_OP_FILL, HAL_CMD_REPLAYABLE);

	c.fill.dst = dst;
	c.fill.offset = offset;
	c.fill.bytes = bytes;
	c.fill.pattern = pattern;
	return c;
}

/* args must stay until hal_submit returns.  Add HAL_CMD_REPLAYABLE to .flags when no
 * output is also an input. */
HAL_INLINE struct hal_cmd hal_cmd_launch(struct hal_kernel *kernel,
					 const struct hal_arg *args, uint32_t arg_count)
{
	struct hal_cmd c = hal_cmd_of(HAL_OP_LAUNCH, 0);

	c.launch.kernel = kernel;
	c.launch.args = args;
	c.launch.arg_count = arg_count;
	return c;
}

HAL_INLINE struct hal_cmd hal_cmd_host(hal_host_fn fn, void *user)
{
	struct hal_cmd c = hal_cmd_of(HAL_OP_HOST, 0);

	c.host.fn = fn;
	c.host.user = user;
	return c;
}

HAL_INLINE struct hal_cmd hal_cmd_barrier(void)
{
	return hal_cmd_of(HAL_OP_BARRIER, 0);
}

HAL_INLINE struct hal_cmd hal_cmd_timestamp(struct hal_buffer *dst, uint64_t offset)
{
	struct hal_cmd c = hal_cmd_of(HAL_OP_TIMESTAMP, 0);

	c.timestamp.dst = dst;
	c.timestamp.offset = offset;
	return c;
}

#ifdef __cplusplus
}
#endif
#endif
