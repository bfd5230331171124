/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hal.h - one C interface to GPUs, FPGAs and NPUs that several tenants share.
 *
 *   hal_open --> device --> partition --> queue --> hal_submit --> hal_wait
 *                  |            |                       ^
 *               program       buffer                    |
 *                  +--> kernel --> hal_cmd_launch ------+
 *
 * Results: 0 (or a count, an index) or -errno; hal_last_error() says what was wrong and
 *          where.  A call that fails changes nothing and writes no result, unless its
 *          comment says otherwise.  The library never exits or aborts.  It prints only
 *          what the user asks for by the environment HAL_LOG (hal_log_set).
 * Errors:  the comment above each function lists its errnos.  Four words there mean:
 *            handle  EINVAL: an object is NULL or no live one of its kind (destroying
 *                    NULL is no error); EPERM: it was made before a fork of the process
 *            lost    ENODEV: the device is lost; its objects can only be destroyed,
 *                    or described by hal_..._get_...
 *            memory  ENOMEM: no host memory is left
 *            desc    E2BIG: the struct is longer than this library knows, and has
 *                    something set there; EINVAL: .size is too small, or a reserved
 *                    field is not 0
 *          "Others" are errnos of system calls that are passed on.  In general: EINVAL
 *          bad argument, ENOTSUP the device cannot, ENODEV absent, ENOSPC too little
 *          device memory, units or channels, EAGAIN queue full, EBUSY live children or
 *          in use, ETIMEDOUT, ECANCELED dropped, EIO device fault, EPERM refused, EPROTO
 *          other ABI, ENOENT no such name or file, ERANGE an index past the last,
 *          EDEADLK would wait for itself (from a host callback) or for ever.  On a device
 *          of hald(8) also EACCES (hal_open) and EDQUOT, EPERM: tenant's limits, rights.
 * Failure: a command that fails on the device fails its queue, for good, and no other
 *          queue.  Points of that submission and of later ones of the queue fail with
 *          its error, and so does hal_submit.  Timelines that the failed submission was
 *          to signal fail with that error, those of later ones with -ECANCELED.  Later
 *          commands are dropped: their completions say -ECANCELED.  A queue that waits
 *          for a failed point fails with -ECANCELED.  Destroy a failed queue once all
 *          its submissions have ended (before that: -EBUSY), and create another.  A lost
 *          device fails all its queues: hal_submit and completions say -ENODEV, points
 *          -EIO.  Destroy all its objects, close it and open it again.  After hald(8) has
 *          ended, hal_submit may still return 0: it says -ENODEV once hal_wait for that
 *          work, which says -ENODEV, or another call has noticed.
 * Objects: a queue takes buffers and sequences of its own partition (a guest has its
 *          own), kernels of any program of its device, a ring of completions of its
 *          device, and points of any device (struct hal_point); points of another
 *          process by an imported timeline.
 * Order:   commands of a queue take effect in the order of submission: each one sees
 *          what earlier ones wrote.  Points alone order commands of different queues, or
 *          commands and the host.  HAL_OP_BARRIER adds no order: it completes after
 *          all earlier commands of its queue, and holds back no later command.  A host
 *          callback does hold them back until it has returned.
 * Mapped:  memory of hal_buffer_map, hal_host_alloc and hal_host_register is coherent at
 *          submissions and points, without a flush.
 *          Commands see what the host wrote before hal_submit, or before
 *          hal_timeline_signal of a point that they wait for.  The host sees what they
 *          wrote once hal_wait, hal_completions_read or hal_timeline_get_value has
 *          reported them complete, or in a later host callback of the queue.  In
 *          between, bytes that one side writes are undefined for the other.
 * Threads: any thread may call anything, but hal_submit and hal_sequence_submit to one
 *          queue, all calls with one sequence, and hal_completions_read of one ring: one
 *          thread at a time.  No call blocks the engine or another call, however long it
 *          takes.  hal_wait is a cancellation point, nothing else is.  Destroy an object
 *          only while no other call uses it.  hal_wait alone may: then destroying returns
 *          -EBUSY, or hal_wait -EINVAL.  Threads of the library block all signals.
 * Fork:    objects belong to the process that made them: in a child all calls with them
 *          return -EPERM.  A child may open devices for itself.
 * Owner:   the program destroys what it creates, children first: a parent with live
 *          children returns -EBUSY.  Submitted work keeps what it uses alive: a buffer
 *          may be destroyed right after hal_submit, one of hal_host_register after the
 *          work.
 * ABI:     set .size = sizeof (HAL_INIT does); unknown flag bits: -EINVAL; reserved
 *          fields are 0.
 * Time:    device time in ns unless a name says cycles.  A deadline says how long after
 *          its submission work shall have ended; until_ns, to which moment a call waits:
 *          absolute CLOCK_MONOTONIC.  A simulated device runs one cycle a nanosecond.  It
 *          has a virtual clock, which stands still unless a call waits or polls; a target
 *          with ?clock=real has a real one, as a program that sleeps in poll(2) needs.
 * Options: target and options of hal_open > environment HAL_SECTION_KEY > files >
 *          default.  Files, later ones over earlier ones: /etc/accelhal/hal.conf; each
 *          .conf in /etc/accelhal/conf.d; $XDG_CONFIG_HOME/accelhal/hal.conf;
 *          $HAL_CONFIG; hal.config.  Where /dev/null is named, no file before it counts.
 *          Plugins of all files are loaded.
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
 * and sleeps for a point of a real clock, and for one that another process may signal.  A
 * real clock's work that waits for a virtual clock waits for a thread that runs that
 * device.  -ENOTSUP with hal.journal.
 * Other processes take part by hal_timeline_export and hal_timeline_import: an import is
 * a timeline of its device like any other. */
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
#define HAL_CAP_EXPORT          (UINT64_C(1) << 17) /* HAL_BUFFER_EXPORTABLE works */
#define HAL_CAP_IMPORT          (UINT64_C(1) << 18) /* hal_buffer_import works */

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
	uint32_t unit_rows; /* 1 where units form a line */
	uint32_t unit_cols; /* the device has .unit_rows * .unit_cols units */
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
#define HAL_BUFFER_EXPORTABLE                                                            \
	(UINT32_C(1) << 3) /* hal_buffer_export must work, else -ENOTSUP */

struct hal_buffer_desc {
	uint32_t size;
	uint32_t flags; /* HAL_BUFFER_*, also those of <hal/ext/memory.h> */
	uint64_t bytes;
	/* Channels over which it is spread evenly, of the partition's; 0: all of these.
	 * hal_buffer_create_weighted spreads it otherwise. */
	uint64_t color_mask;
	char name[32]; /* for error texts and halctl; may be empty */
};

/* What a queue is to the others of its partition. */
enum hal_class {
	HAL_CLASS_NORMAL, /* or what [partition "name"] says */
	/* Latency-critical: before all others; best effort that runs makes way for it. */
	HAL_CLASS_LATENCY,
	/* Behind all others, and stopped for latency-critical work.  A deadline of such
	 * a queue or its submissions is refused with -EINVAL. */
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
	/* 0; -EIO: a command of it failed; -ENODEV: the device is lost; -ECANCELED: it
	 * was dropped, as an earlier submission of the queue failed, or waited for a
	 * point that failed.  hal_queue_get_fault says which, and why. */
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

/* The first value of a struct with a .size: all other fields are 0, the default.
 *   struct hal_queue_desc desc = HAL_INIT(hal_queue_desc); */
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

/* hal_scan_create, what: backends and their devices.  HAL_SCAN_OPTIONS is in
 * <hal/ext/options.h>. */
#define HAL_SCAN_DEVICES (UINT32_C(1) << 0)

#define HAL_FOREVER      INT64_MAX
#define HAL_WAIT_ANY     (UINT32_C(1) << 0)
/* until_ns is device time of the first point's device. */
#define HAL_WAIT_DEVICE_TIME (UINT32_C(1) << 1)

/* ---- library ---------------------------------------------------------------------- */

/* Return the version of the loaded library: major << 16 | minor << 8 | patch.
 * Threads: any.
 * Memory: nothing is kept. */
HAL_API uint32_t hal_version(void);

/* Return the general meaning of an error number, which may be positive or negative.
 * err: any number; the text of an unknown one is "unknown error".  Never NULL.
 * Threads: any.
 * Memory: the string is constant. */
HAL_API const char *hal_strerror(int err);

/* Return the text of the calling thread's last failure: what was wrong and where.
 * Never NULL; "" if no call has failed in this thread.
 * Threads: any; other threads never change the text of this one.
 * Memory: the string lasts until the next call that fails in this thread, and no longer
 * than the thread.  It is not freed, and may be an argument of that call. */
HAL_API const char *hal_last_error(void);

/* Pass messages of the process up to level to fn, one line each.
 * level: enum hal_log_level; fn: NULL or HAL_LOG_OFF: no function gets them.  user: for
 * fn.
 * The environment HAL_LOG=LEVEL[:FILE] has the same lines written to FILE, else to
 * stderr, whether fn is set or not.  LEVEL: error, warning, info or debug.
 * Errors: memory; EINVAL: level is no such level.
 * Threads: any, also fn.  fn runs on any thread, on several at once, also on the engine,
 * which waits for it.  It may call hal_log_set, hal_last_error, hal_strerror and
 * hal_version, and no other function of the library.  Messages of these are left out.
 * Memory: no thread is in the function set before once this returns, unless fn made the
 * call; its user may be freed then.  The text lasts until fn returns. */
HAL_API int hal_log_set(hal_log_fn fn, void *user, int level);

/* Look for backends and devices, as hal_open(NULL, options) would see them; open none.
 * options: NULL, or as in hal_open.  what: HAL_SCAN_DEVICES, HAL_SCAN_OPTIONS or both.
 * The result never changes.  A backend without a device, or a plugin that does not load,
 * is no error with HAL_SCAN_DEVICES: its hal_backend_info gives the reason.
 * Errors: memory; EACCES: a configuration file found by default is unsafe or unreadable.
 * EINVAL: scan is NULL, what is 0 or has an unknown bit, or the configuration is wrong;
 * the text says where.  EIO: a configuration file cannot be read.  EISDIR: the named file
 * is a folder.  ENOENT: the named file is missing or, with HAL_SCAN_OPTIONS, a plugin.
 * EPROTO: with HAL_SCAN_OPTIONS, a plugin has another ABI or is no backend.
 * Threads: any.
 * Memory: options is read during the call.  scan lasts until hal_scan_destroy; no device
 * has to outlive it. */
HAL_API int hal_scan_create(const char *const *options, uint32_t what,
			    struct hal_scan **scan);

/* Free a scan.
 * Errors: handle.
 * Threads: any, while no other call uses scan.
 * Memory: scan is dead after success. */
HAL_API int hal_scan_destroy(struct hal_scan *scan);

/* Describe backend number index, counted from 0; plugins that did not load come last.
 * info: set .size; at most .size bytes are written.
 * Errors: handle; EINVAL: scan was created without HAL_SCAN_DEVICES, info is NULL or
 * info->size is too small.  ERANGE: index is past the last.
 * Threads: any.
 * Memory: info is written during the call. */
HAL_API int hal_scan_get_backend(const struct hal_scan *scan, uint32_t index,
				 struct hal_backend_info *info);

/* Describe device number index, counted from 0 over all backends in their order.
 * info: as hal_device_get_info writes it, but .verified is 0: the device is not open.
 * Errors: handle; EINVAL: scan was created without HAL_SCAN_DEVICES, info is NULL or
 * info->size is too small.  ERANGE: index is past the last.
 * Threads: any.
 * Memory: info is written during the call. */
HAL_API int hal_scan_get_device(const struct hal_scan *scan, uint32_t index,
				struct hal_device_info *info);

/* ---- device ----------------------------------------------------------------------- */

/* Open a device, as configured; see "Options" at the top of this file.
 * target: "npu:0?rows=8&cols=8"; "hald:npu0" (hald(8)); NULL: hal.device, else the best.
 * options: NULL, or a NULL-ended array of "section.key=value"; hal.config names a file.
 * Errors: memory; EACCES: a configuration file found by default is unsafe or unreadable.
 * EBUSY: another device or program writes the file of hal.trace or hal.journal.  EINVAL:
 * dev is NULL, or target, options, a file or the environment is wrong; the text says
 * where.  EIO: a file cannot be read, or the device does not start.  EISDIR: the named
 * file is a folder.  ENODEV: no such device; the text says why.  ENOENT: the named file
 * or a plugin is missing.  ENOSPC: more than 64 backends or 128 policies.  ENOTSUP: no
 * virtual clock.  EPROTO: a plugin has another ABI.  Others: of fopen(3) and
 * pthread_create(3).
 * Threads: any.  Memory: target and options are read during the call. */
HAL_API int hal_open(const char *target, const char *const *options,
		     struct hal_device **dev);

/* Close a device: stop its engine, complete its trace and release the hardware.
 * Errors: handle; EBUSY: partitions, programs, timelines or rings of completions are
 * alive; the text counts them.  EDEADLK: the caller is a host callback of the device.
 * EIO: dev is closed, but a trace could not be written in full.  EPROTO: dev is closed,
 * but layers.validate has found errors; the text is the first.
 * Threads: any, while no other call uses dev or its objects; not a host callback of dev.
 * Memory: dev and its extensions' tables are dead after success, EIO and EPROTO. */
HAL_API int hal_close(struct hal_device *dev);

/* Describe an open device: what it does, not what the configuration requests.
 * info: set .size; at most .size bytes are written.
 * Errors: handle; EINVAL: info is NULL, or info->size does not reach to .backend.
 * Threads: any.
 * Memory: info is written during the call. */
HAL_API int hal_device_get_info(struct hal_device *dev, struct hal_device_info *info);

/* Report what the device has done, in device time, its destroyed partitions included.
 * stats: set .size; at most .size bytes are written.
 * Errors: handle; EINVAL: stats is NULL, or stats->size is too small.
 * Threads: any; the engine does not wait.
 * Memory: stats is written during the call. */
HAL_API int hal_device_get_stats(struct hal_device *dev, struct hal_stats *stats);

/* Let work proceed without waiting for a point; return the count of finished commands.
 * ns: virtual clock: device time that passes, also on an idle device; UINT64_MAX: until
 * no work is left; 0: no time passes.  Real clock: ignored; the engine works by itself,
 * and commands are counted since the last call.
 * Errors: handle; EDEADLK: the caller is a host callback of the device.
 * Threads: any, but not a host callback of dev.  Under a virtual clock host callbacks run
 * inside this call.
 * Memory: nothing is kept. */
HAL_API int hal_device_poll(struct hal_device *dev, uint64_t ns);

/* Return the device time in ns; 0, with hal_last_error, if dev is no open device.
 * Threads: any.
 * Memory: nothing is kept. */
HAL_API uint64_t hal_device_get_time(struct hal_device *dev);

/* Replace the policy while work runs; the new one takes over all runnable queues.
 * name: of a policy, as in hal.conf(5).  options: NULL, or a NULL-ended array of
 * "key=value" of section [policy]; other keys get their defaults.  After a failure the
 * old policy stays.
 * Errors: handle; memory; EINVAL: name is NULL or of no policy, or an option is unknown
 * or out of range.  ENOTSUP: a queue has a budget, which this policy does not keep.
 * Threads: any.
 * Memory: name and options are read during the call. */
HAL_API int hal_device_set_policy(struct hal_device *dev, const char *name,
				  const char *const *options);

/* Report the current policy and its errors.
 * info: set .size; at most .size bytes are written.
 * Errors: handle; EINVAL: info is NULL, or info->size is too small.
 * Threads: any.
 * Memory: info is written during the call. */
HAL_API int hal_device_get_policy(struct hal_device *dev, struct hal_policy_info *info);

/* Return the backend's constant table of functions called name, see <hal/npu.h>.
 * NULL, with hal_last_error: there is no such table, name is NULL or dev is not open.
 * Threads: any; functions of the table, too, unless its header says otherwise.
 * Memory: the table lasts until hal_close.  name is read during the call. */
HAL_API const void *hal_device_get_extension(struct hal_device *dev, const char *name);

/* Return the backend's own handle, the first argument of functions of an extension.
 * NULL, with hal_last_error: dev is no open device.
 * Threads: any.
 * Memory: the handle lasts until hal_close. */
HAL_API void *hal_device_get_native(struct hal_device *dev);

/* Write a trace (JSON for Perfetto and Chrome) until hal_trace_stop or hal_close.
 * path: of the file, which is created or emptied.
 * Errors: handle; memory; EBUSY: a trace of dev is being written, or another device or
 * program writes to that file.  EINVAL: path is NULL or empty.  EISDIR: path is a folder.
 * ENOENT: a folder in path is missing.  Others: of open(2).
 * Threads: any.
 * Memory: path is copied; a relative one is resolved during the call. */
HAL_API int hal_trace_start(struct hal_device *dev, const char *path);

/* Complete the trace of a device and close its file.
 * Errors: handle; EINVAL: no trace of dev is being written.  EIO: the trace is closed,
 * but incomplete; the text says why, and how many events are missing.
 * Threads: any.
 * Memory: nothing is kept. */
HAL_API int hal_trace_stop(struct hal_device *dev);

/* ---- partition -------------------------------------------------------------------- */

/* Give a tenant a part of a device: compute units, memory and memory channels.
 * desc: the fields of struct hal_partition_desc say what is accepted.  With hal.compact
 * this may first move other partitions, and waits for that.
 * Errors: handle; lost; memory; desc; EINVAL: desc or part is NULL, or a field of desc is
 * wrong; the text names it.  ENOSPC: too few units, partitions, channels or bytes are
 * free; the text says what is left.  ENOTSUP: the device isolates less than
 * .min_isolation, or lacks a feature of desc: guests, channels, limits, eviction, a
 * ceiling.
 * Threads: any.
 * Memory: desc is read during the call.  part lasts until hal_partition_destroy; dev must
 * outlive it. */
HAL_API int hal_partition_create(struct hal_device *dev,
				 const struct hal_partition_desc *desc,
				 struct hal_partition **part);

/* Create the partition that section [partition "name"] of the configuration describes.
 * name: of the section and of the partition.  The configuration is that of hal_open;
 * files are not read again.
 * Errors: handle; lost; memory; EINVAL: name or part is NULL, a value of the section is
 * wrong, or its host is not exactly one partition.  ENOENT: there is no such section.
 * ENOSPC: too few units, partitions, channels or bytes are free.  ENOTSUP: as in
 * hal_partition_create.
 * Threads: any.
 * Memory: name is copied.  part lasts until hal_partition_destroy, and dev longer. */
HAL_API int hal_partition_create_named(struct hal_device *dev, const char *name,
				       struct hal_partition **part);

/* Move the border of a partition at the next safe point, while its work continues.
 * desc: as in hal_partition_create; .memory_bytes 0: as before.  .color_mask: 0 or as
 * before; .name is ignored.  done: may be NULL; reached when part has moved.  If the
 * device refuses the move, the point fails and part stays where it was.
 * Errors: handle; lost; memory; desc; EBUSY: part is being resized, the policy keeps
 * moving it, or it has work and the device only HAL_CAP_RESIZE_IDLE.  EINVAL: desc is
 * NULL or wrong.  EIO: the device failed.  ENOSPC: too few units or bytes are free.
 * ENOTSUP: the device moves no partitions, isolates too little, or channels or limits
 * would change.
 * Threads: any; queues of part may be submitted to meanwhile.
 * Memory: desc is read during the call.  The point lasts as long as part. */
HAL_API int hal_partition_resize(struct hal_partition *part,
				 const struct hal_partition_desc *desc,
				 struct hal_point *done);

/* Give count partitions of one device new places together, all or none.
 * parts, descs: descs[i] is for parts[i], as in hal_partition_resize; count: 1 to 32.
 * done: may be NULL; reached when all have moved.  If the device refuses a move, those
 * that moved go back, then the point fails; its text names those that could not.
 * Errors: handle; lost; memory; desc; EBUSY: as in hal_partition_resize, for one of them.
 * EINVAL: parts or descs is NULL, count is wrong, rectangles overlap, sizes of descs
 * differ, parts has one twice, a guest or one of another device; or as in
 * hal_partition_resize.  ENOSPC: too few units or bytes are free; an exchange of single
 * units needs a free one.  ENOTSUP: as in hal_partition_resize.
 * Threads: any; queues of the partitions may be submitted to meanwhile.
 * Memory: parts and descs are read during the call.  The point lasts as long as the first
 * partition. */
HAL_API int hal_partitions_move(struct hal_partition *const *parts,
				const struct hal_partition_desc *descs, uint32_t count,
				struct hal_point *done);

/* Destroy a partition; its units, memory and channels become free.
 * Wait for a move that the policy has begun.  Destroyed buffers count while in use.
 * Errors: handle; EBUSY: part has guests, queues, buffers or sequences (the text counts
 * them), is being resized, or work or a thread waits for the point of a resize.
 * Threads: any, while no other call uses part or its objects.
 * Memory: part and the points of its resizes are dead after success. */
HAL_API int hal_partition_destroy(struct hal_partition *part);

/* Describe a partition as it is now: its place, units, isolation, memory and channels.
 * info: set .size; at most .size bytes are written.
 * Errors: handle; EINVAL: info is NULL, or info->size is too small.
 * Threads: any.
 * Memory: info is written during the call. */
HAL_API int hal_partition_get_info(const struct hal_partition *part,
				   struct hal_partition_info *info);

/* Report what the partition has done, in device time, its destroyed queues included.
 * stats: set .size; at most .size bytes are written.
 * Errors: handle; EINVAL: stats is NULL, or stats->size is too small.
 * Threads: any; the engine does not wait.
 * Memory: stats is written during the call. */
HAL_API int hal_partition_get_stats(struct hal_partition *part, struct hal_stats *stats);

/* ---- buffer ----------------------------------------------------------------------- */

/* Allocate device memory of a partition, filled with zeros.
 * desc: the fields of struct hal_buffer_desc say what is accepted; .bytes is at least 1.
 * Errors: handle; lost; memory; desc; EINVAL: desc or buf is NULL, .bytes is 0, .flags
 * has an unknown bit or a wrong combination, or part lacks a channel of .color_mask.
 * EMFILE: with HAL_BUFFER_EXPORTABLE, the process has too many open files.  ENOSPC: the
 * quota, the memory_limit, the device or a channel has too little left; the text names
 * it.  ENOTSUP: the device cannot map or export such a buffer, or knows no channels.
 * Threads: any.
 * Memory: desc is read during the call.  buf lasts until hal_buffer_destroy; part must
 * outlive it. */
HAL_API int hal_buffer_create(struct hal_partition *part,
			      const struct hal_buffer_desc *desc,
			      struct hal_buffer **buf);

/* Destroy a buffer and its mapping.
 * Submitted work continues; the memory counts as used until that has completed.
 * Errors: handle; EBUSY: submitted work or a sequence uses buf, which is memory of
 * hal_host_register.
 * Threads: any, while no other call uses buf.
 * Memory: buf and its mapped address are dead after success. */
HAL_API int hal_buffer_destroy(struct hal_buffer *buf);

/* Return the size of a buffer in bytes; 0, with hal_last_error, if buf is no live buffer.
 * Threads: any.
 * Memory: nothing is kept. */
HAL_API uint64_t hal_buffer_get_bytes(const struct hal_buffer *buf);

/* Copy bytes from host memory to a buffer; return when the copy is done.
 * offset: of the first byte in the buffer.  bytes: 0 is no error.
 * Not ordered with queues: wait for work that uses these bytes first.
 * Errors: handle; lost; EBUSY: buf moves to other channels.  EINVAL: the range is not
 * inside the buffer, or data is NULL.  EIO: the device failed to copy.
 * Threads: any; other work continues meanwhile.
 * Memory: data is used during the call only. */
HAL_API int hal_buffer_write(struct hal_buffer *buf, uint64_t offset, const void *data,
			     uint64_t bytes);

/* Copy bytes from a buffer to host memory; return when the copy is done.
 * offset: of the first byte in the buffer.  bytes: 0 is no error.
 * Not ordered with queues: wait for work that writes these bytes first.
 * Errors: handle; lost; EBUSY: buf moves to other channels.  EINVAL: the range is not
 * inside the buffer, or data is NULL.  EIO: the device failed to copy.
 * Threads: any; other work continues meanwhile.
 * Memory: data is used during the call only. */
HAL_API int hal_buffer_read(struct hal_buffer *buf, uint64_t offset, void *data,
			    uint64_t bytes);

/* Store the host address of a buffer's first byte; device and host share the memory.
 * Only HAL_BUFFER_MAPPABLE is sure to work.  May be repeated; each call needs an unmap.
 * "Mapped" at the top of this file says when each side sees the other's writes.
 * Errors: handle; lost; EBUSY: buf moves to other channels.  EINVAL: address is NULL.
 * EIO: the device failed to map.  ENOTSUP: the device cannot map buffers, or not this
 * one.
 * Threads: any.
 * Memory: the address lasts until the last hal_buffer_unmap or hal_buffer_destroy. */
HAL_API int hal_buffer_map(struct hal_buffer *buf, void **address);

/* End one hal_buffer_map; the last one ends the mapping.
 * Errors: handle; EINVAL: buf is not mapped.
 * Threads: any.
 * Memory: the address of buf is dead once each hal_buffer_map has been undone. */
HAL_API int hal_buffer_unmap(struct hal_buffer *buf);

/* Open a file descriptor of a buffer's memory, for hal_buffer_import in any process.
 * fd: a new one, O_CLOEXEC; the caller closes it.  Importers and buf share the bytes: who
 * has a descriptor can read and write them.  Points order work with both; those of two
 * processes are shared by hal_timeline_export.
 * Errors: handle; lost; EINVAL: fd is NULL, or buf is not HAL_BUFFER_EXPORTABLE.  EIO:
 * the device failed.  EMFILE: the process has too many open files.  Others: of dup(2).
 * Threads: any.
 * Memory: the bytes stay until each descriptor and import has been closed or destroyed;
 * the quota of the partition counts them until hal_buffer_destroy. */
HAL_API int hal_buffer_export(struct hal_buffer *buf, int *fd);

/* Make a buffer of part of memory that a device or process has exported; copy nothing.
 * fd: of hal_buffer_export, or else as docs/memory.md says; it stays the caller's.
 * desc: .bytes is at most the size of that memory, .flags 0 or HAL_BUFFER_MAPPABLE,
 * .color_mask 0.  The quota of part counts the bytes.
 * Errors: handle; lost; memory; desc; EBADF: fd is not open.  EINVAL: desc or buf is
 * NULL, a field of desc is wrong, or fd is no such memory or too short.  EIO: the device
 * failed.  ENOSPC: the quota or the device has too little left.  ENOTSUP: the device
 * lacks HAL_CAP_IMPORT, or cannot map such a buffer.
 * Threads: any.
 * Memory: fd and desc are used during the call.  buf lasts until hal_buffer_destroy; part
 * must outlive it, the exporter need not. */
HAL_API int hal_buffer_import(struct hal_partition *part, int fd,
			      const struct hal_buffer_desc *desc,
			      struct hal_buffer **buf);

/* ---- host memory for queued copies ------------------------------------------------ */

/* Allocate host memory for queued copies: a buffer of part whose bytes lie at *address.
 * bytes: at least 1; they hold zeros, and count in the quota.  Only hal_cmd_write,
 * hal_cmd_read and hal_cmd_copy take host, with a buffer of device memory.
 * Errors: handle; lost; memory; EINVAL: host or address is NULL, or bytes is 0.  ENOSPC:
 * the quota or host memory has too little left.  ENOTSUP: the device lacks
 * HAL_CAP_HOST_COPY.
 * Threads: any.
 * Memory: host and *address last until hal_buffer_destroy; submitted work still uses the
 * memory after that, the program must not. */
HAL_API int hal_host_alloc(struct hal_partition *part, uint64_t bytes,
			   struct hal_buffer **host, void **address);

/* Make a buffer of part of the program's own memory, for queued copies.
 * address, bytes: the region, of any alignment and at least 1 byte; it keeps its
 * contents.  Regions may overlap, on GPUs only if one lies in the pages of the other.
 * Only hal_cmd_write, hal_cmd_read and hal_cmd_copy take host.
 * Errors: handle; lost; memory; EINVAL: address or host is NULL, bytes is 0, or the
 * region wraps around.  ENOSPC: the quota has too little left.  ENOTSUP: the device lacks
 * HAL_CAP_HOST_REGISTER.  EFAULT: the process cannot read and write all of the region.
 * EBUSY: some of its pages are registered already.
 * Threads: any.
 * Memory: the region must stay allocated until hal_buffer_destroy has returned 0; it
 * returns -EBUSY while submitted work uses host. */
HAL_API int hal_host_register(struct hal_partition *part, void *address, uint64_t bytes,
			      struct hal_buffer **host);

/* ---- program ---------------------------------------------------------------------- */

/* Load a program image that the device understands, and check all of it.
 * image, size: its bytes; or a pack of <hal/pack.h>, whose first fitting image is loaded.
 * Errors: handle; lost; memory; EINVAL: image or prog is NULL, size is 0, or the image is
 * damaged or not for this device; the text says where.  ENOTSUP: no image of the pack
 * fits; the text says why.  ENOENT: the image names a kernel that the device does not
 * have (ref).  EPROTO: the backend describes a kernel wrongly.
 * Threads: any; other calls and work continue meanwhile.
 * Memory: image is copied.  prog lasts until hal_program_unload; dev must outlive it. */
HAL_API int hal_program_load(struct hal_device *dev, const void *image, size_t size,
			     struct hal_program **prog);

/* Name a program for people: traces call its kernels "name: kernel".
 * name: at most 31 characters; "" removes the name.
 * Errors: handle; EINVAL: name is NULL or too long.
 * Threads: any.
 * Memory: name is copied. */
HAL_API int hal_program_set_name(struct hal_program *prog, const char *name);

/* Describe a program: its name and how many kernels it has.
 * info: set .size; at most .size bytes are written.
 * Errors: handle; EINVAL: info is NULL, or info->size is too small.
 * Threads: any, while prog is not being unloaded.
 * Memory: info is written during the call. */
HAL_API int hal_program_get_info(const struct hal_program *prog,
				 struct hal_program_info *info);

/* Unload a program; submitted work keeps it until that work has ended.
 * Errors: handle.
 * Threads: any, while no other call uses prog or its kernels.
 * Memory: prog and its kernels are dead after success. */
HAL_API int hal_program_unload(struct hal_program *prog);

/* Store the kernel of a program that is called name.
 * Errors: handle; EINVAL: name or kernel is NULL.  ENOENT: prog has no such kernel.
 * Threads: any.
 * Memory: name is read during the call.  The kernel belongs to prog: it is dead once prog
 * is unloaded. */
HAL_API int hal_kernel_find(struct hal_program *prog, const char *name,
			    struct hal_kernel **kernel);

/* Store kernel number index of a program, counted from 0 in the order of its image.
 * Errors: handle; EINVAL: kernel is NULL.  ERANGE: index is past the last.
 * Threads: any.
 * Memory: the kernel belongs to prog: it is dead once prog is unloaded. */
HAL_API int hal_kernel_get(struct hal_program *prog, uint32_t index,
			   struct hal_kernel **kernel);

/* Describe a kernel: its arguments and its work.
 * info: set .size; at most .size bytes are written.
 * Errors: handle; EINVAL: info is NULL, or info->size is too small.
 * Threads: any.
 * Memory: info is written during the call. */
HAL_API int hal_kernel_get_info(const struct hal_kernel *kernel,
				struct hal_kernel_info *info);

/* ---- queue ------------------------------------------------------------------------ */

/* Create a queue of a partition; its commands take effect in the order of submission.
 * desc: the fields of struct hal_queue_desc say what is accepted.
 * Errors: handle; lost; memory; desc; EINVAL: desc or queue is NULL, a field of desc is
 * wrong (the text names it), or its ring of completions is of another device.  ENOTSUP:
 * the device preempts less than .min_preempt, or the policy keeps no .budget_permille.
 * Threads: any.  One thread at a time then submits to queue; any other call may come from
 * any thread.
 * Memory: desc is read during the call.  queue lasts until hal_queue_destroy; part and
 * the ring of completions must outlive it. */
HAL_API int hal_queue_create(struct hal_partition *part,
			     const struct hal_queue_desc *desc, struct hal_queue **queue);

/* Destroy a queue that has no work left, or a suspended one with its work, which is
 * dropped.
 * Points of dropped submissions fail with ECANCELED.  A queue that has failed has work
 * until the device ends the commands that it has begun: its last completion tells.
 * Errors: handle; EBUSY: queue has work and is not suspended, its suspend is not quiet
 * yet, or other work or a thread waits for its points.
 * Threads: any, while no other call but hal_wait uses queue.
 * Memory: queue, its timeline and points are dead after success; file descriptors of its
 * points become readable. */
HAL_API int hal_queue_destroy(struct hal_queue *queue);

/* Ask the device to stop the commands of a queue; return without waiting for it.
 * mode: enum hal_suspend_mode, with HAL_SUSPEND_FINAL or without.  quiet: may be NULL;
 * reached once the device has released the commands.  Submissions are accepted, and held
 * until hal_queue_resume; with HAL_SUSPEND_FINAL all fail with ECANCELED.
 * Errors: handle; lost; EBUSY: queue is suspended already, or the engine is stopping it
 * in a mode that is weaker.  EINVAL: mode is no mode.  EIO: the device failed.  ENOSPC:
 * the partition has too little memory for the state that FOLD or SAVE keeps.  ENOTSUP:
 * the device lacks the mode, or KILL, not final, while a command runs that is not
 * HAL_CMD_REPLAYABLE.
 * Threads: any; it does not wait for a thread that submits to queue.
 * Memory: the point lasts as long as queue. */
HAL_API int hal_queue_suspend(struct hal_queue *queue, uint32_t mode,
			      struct hal_point *quiet);

/* Resume a suspended queue; before it is quiet, this takes effect then.
 * Errors: handle; lost; ECANCELED: queue was suspended with HAL_SUSPEND_FINAL.  EINVAL:
 * queue is not suspended.
 * Threads: any; it does not wait for a thread that submits to queue.
 * Memory: nothing is kept. */
HAL_API int hal_queue_resume(struct hal_queue *queue);

/* Report what the queue has done, in device time.
 * stats: set .size; at most .size bytes are written.
 * Errors: handle; EINVAL: stats is NULL, or stats->size is too small.
 * Threads: any; the engine does not wait.
 * Memory: stats is written during the call. */
HAL_API int hal_queue_get_stats(struct hal_queue *queue, struct hal_stats *stats);

/* Report why a queue has failed, or that it has not: .status is 0 then.
 * fault: set .size; at most .size bytes are written.
 * Errors: handle; EINVAL: fault is NULL, or fault->size is too small.
 * Threads: any, also a host callback; the engine does not wait.
 * Memory: fault is written during the call. */
HAL_API int hal_queue_get_fault(const struct hal_queue *queue,
				struct hal_fault_info *fault);

/* Return the queue's own timeline; its submission n (from 1) reaches value n.
 * NULL, with hal_last_error: queue is no live queue.  Only the queue signals it.
 * Threads: any.
 * Memory: the timeline lasts until hal_queue_destroy. */
HAL_API struct hal_timeline *hal_queue_get_timeline(struct hal_queue *queue);

/* Put commands into a queue, all or none, without waiting for the device.
 * desc: see struct hal_submit_desc.  done: may be NULL; reached when all of it has ended.
 * Errors: handle; lost; memory; desc; EAGAIN: queue (hal.queue_depth) or its ring of
 * completions is full: try again when work has ended.  ECANCELED: queue waited for a
 * point that failed, or is suspended for good.  EINVAL: desc is NULL, or a field, command
 * or point is wrong; the text names it.  EIO: an earlier command failed on the device.
 * ENOSPC: the quota has too little left for a program's constants.  ENOTSUP: no
 * HAL_CAP_TIMESTAMP, or a point of another device with hal.journal.  EPERM: a buffer is
 * of another partition.  Others: of pthread_create(3).
 * Threads: one at a time for each queue.  If the engine sleeps, one system call wakes it.
 * Memory: desc and arrays in it are read during the call.  Buffers and programs may be
 * destroyed right after, timelines only after the work. */
HAL_API int hal_submit(struct hal_queue *queue, const struct hal_submit_desc *desc,
		       struct hal_point *done);

/* Record commands that hal_sequence_submit submits many times, to any queue of part.
 * desc: .cmds, .cmd_count (at least 1), .cmd_stride as in hal_submit; other fields are 0.
 * Errors: handle; lost; memory; desc; EINVAL: desc or seq is NULL, desc has no commands,
 * or has waits, signals, flags, times or a tag; or a command is wrong.  ENOSPC: the quota
 * has too little left for a program's constants.  ENOTSUP: a command is a timestamp, and
 * the device lacks HAL_CAP_TIMESTAMP.  EPERM: a buffer is of another partition.
 * Threads: any.
 * Memory: desc is read during the call.  seq keeps its buffers and programs, which may be
 * destroyed.  It lasts until hal_sequence_destroy; part must outlive it. */
HAL_API int hal_sequence_create(struct hal_partition *part,
				const struct hal_submit_desc *desc,
				struct hal_sequence **seq);

/* Destroy a sequence; submitted work keeps it until that work has ended.
 * Errors: handle.
 * Threads: any, while no other call uses seq.
 * Memory: seq is dead after success. */
HAL_API int hal_sequence_destroy(struct hal_sequence *seq);

/* Change the arguments of one launch of a sequence, from the next submission on.
 * cmd: number of the launch among all commands, counted from 0.  args, arg_count: as in
 * hal_cmd_launch.
 * Errors: handle; memory; EINVAL: seq has no command cmd, it is no launch, or args or
 * arg_count is wrong.  EPERM: a buffer is of another partition.
 * Threads: one thread at a time for each sequence.
 * Memory: args is read during the call; seq keeps its buffers. */
HAL_API int hal_sequence_set_args(struct hal_sequence *seq, uint32_t cmd,
				  const struct hal_arg *args, uint32_t arg_count);

/* Submit the commands of a sequence, for a fraction of the cost of hal_submit.
 * desc: may be NULL; waits, signals, times, priority and tag of hal_submit, no commands.
 * done: as in hal_submit.  A sequence may be in several queues at the same time.
 * Errors: handle; lost; desc; EAGAIN: queue or its ring of completions is full.
 * ECANCELED: queue waited for a point that failed, or is suspended for good.  EINVAL:
 * desc has commands, is wrong as in hal_submit, or its points do not fit half of
 * hal.queue_depth.  EIO: an earlier command failed on the device.  ENOTSUP: a point is of
 * another device, with hal.journal.  EPERM: seq is of another partition than queue.
 * Threads: one thread at a time for each queue and for each sequence.
 * Memory: desc and arrays in it are read during the call. */
HAL_API int hal_sequence_submit(struct hal_queue *queue, struct hal_sequence *seq,
				const struct hal_submit_desc *desc,
				struct hal_point *done);

/* ---- completions ------------------------------------------------------------------ */

/* Create a ring to which queues report finished submissions.
 * entries: a power of two up to 65536.  It never overflows: submissions to its queues
 * (hal_queue_desc.completions) fail with EAGAIN when unread entries and work in the
 * queues fill it.
 * Errors: handle; memory; EINVAL: ring is NULL, or entries is no such power.  EMFILE: the
 * process has too many open files.
 * Threads: any.
 * Memory: ring lasts until hal_completions_destroy; dev must outlive it. */
HAL_API int hal_completions_create(struct hal_device *dev, uint32_t entries,
				   struct hal_completions **ring);

/* Destroy a ring of completions and drop its unread entries.
 * Errors: handle; EBUSY: a queue that reports to ring is alive.
 * Threads: any, while no other call uses ring.
 * Memory: ring and its file descriptor are dead after success. */
HAL_API int hal_completions_destroy(struct hal_completions *ring);

/* Take up to max entries, oldest first; wait for one until until_ns.  Return how many.
 * until_ns: CLOCK_MONOTONIC, in ns; 0: do not wait, return 0 if there is none;
 * HAL_FOREVER.  Under a virtual clock this call runs the device.
 * Errors: handle; EDEADLK: virtual clock: no work is left that could finish; or the call
 * would wait in a host callback of the device.  EINVAL: out is NULL, max is 0, or
 * until_ns is negative.  ENODEV: the device is lost, and the entries of all
 * submissions have been read.  ETIMEDOUT: until_ns has passed.
 * Threads: one thread at a time for each ring.  Not a cancellation point.
 * Memory: out is written during the call.  The queue of an entry may have been
 * destroyed. */
HAL_API int hal_completions_read(struct hal_completions *ring, struct hal_completion *out,
				 uint32_t max, int64_t until_ns);

/* Return the ring's file descriptor, which is readable while entries are unread, and once
 * hal_completions_read would return -ENODEV: of a device that hald serves, it hangs up
 * (POLLHUP) when hald ends.
 * For poll, epoll and io_uring only: do not read, write or close it.
 * Errors: handle; ENOTSUP: a virtual clock, whose time stands still while the program
 * sleeps, and hal_device_poll has never been called for the device.
 * Threads: any.
 * Memory: the descriptor lasts until hal_completions_destroy. */
HAL_API int hal_completions_get_fd(struct hal_completions *ring);

/* ---- time ------------------------------------------------------------------------- */

/* Create a timeline of a device, at value 0; submissions and the host raise it.
 * Errors: handle; memory; EINVAL: timeline is NULL.
 * Threads: any.
 * Memory: timeline and points on it last until hal_timeline_destroy, and dev longer. */
HAL_API int hal_timeline_create(struct hal_device *dev, struct hal_timeline **timeline);

/* Destroy a timeline; file descriptors of its points become readable.
 * Errors: handle; EBUSY: submitted work waits for it or will signal it, or a thread waits
 * for it.  EINVAL: timeline belongs to a queue or partition.
 * Threads: any, while no other call but hal_wait uses timeline.
 * Memory: timeline and its points are dead after success. */
HAL_API int hal_timeline_destroy(struct hal_timeline *timeline);

/* Return the counter of a timeline; 0 if timeline is no live timeline.
 * err: may be NULL; set to 0, or to -errno of the first error of the timeline or of this
 * call.  A counter with an error does not change any more.  The call advances no work.
 * Errors: handle; ECANCELED: work that was to signal it was dropped.  EIO: work that was
 * to signal it failed on the device.
 * Threads: any; it takes no lock.
 * Memory: err is written during the call. */
HAL_API uint64_t hal_timeline_get_value(const struct hal_timeline *timeline, int *err);

/* Raise the counter of a timeline to value, from the host.
 * value: above the counter; numbers may be skipped.
 * Errors: handle; ECANCELED: timeline has failed: work that was to signal it was dropped.
 * EINVAL: the counter is at value or above, or timeline belongs to a queue or partition,
 * or was imported without HAL_TIMELINE_SIGNAL.
 * EIO: timeline has failed: work that was to signal it failed on the device.
 * Threads: any; of two that signal, one may come too late and get EINVAL.
 * Memory: nothing is kept. */
HAL_API int hal_timeline_signal(struct hal_timeline *timeline, uint64_t value);

/* Wait for points, of any devices; return 0, or the index of one with HAL_WAIT_ANY.
 * flags: HAL_WAIT_ANY, HAL_WAIT_DEVICE_TIME.  until_ns: absolute; 0: do not wait;
 * HAL_FOREVER.  Points are checked in order; one that was reached before its timeline
 * failed counts as reached.  Under a virtual clock this call runs the devices.
 * Errors: memory; ECANCELED: work of a point was dropped, or its exporter is gone.
 * EDEADLK: virtual clock: nothing is left that could reach them; or the call would wait
 * in a host callback of such a device.  EINVAL: points is NULL, count is 0 or above
 * INT32_MAX, flags has an unknown bit, until_ns is negative, or a timeline is not alive.
 * EIO: a command failed or its device is lost.  EPERM: a timeline was made before a fork.
 * ETIMEDOUT: until_ns has passed.  Others: of backends.
 * Threads: any number, a cancellation point; in a host callback for other devices only.
 * Memory: points is read during the call; a timeline cannot be destroyed meanwhile. */
HAL_API int hal_wait(const struct hal_point *points, uint32_t count, uint32_t flags,
		     int64_t until_ns);

/* Return a new file descriptor that is readable once point is reached or has failed.  Of
 * a device that hald serves, it may hang up then, too (POLLHUP beside POLLIN), and hangs
 * up alone when hald ends.
 * It is O_CLOEXEC and O_NONBLOCK; hal_wait with until_ns 0 says what has happened.
 * Errors: memory; EINVAL: point is NULL, or its timeline is not alive.  EMFILE: the
 * process has too many open files.  ENOTSUP: a virtual clock, point is not reached, and
 * hal_device_poll has never been called for the device.  EPERM: the timeline was made
 * before a fork.  Others: of eventfd(2), pipe2(2).
 * Threads: any.
 * Memory: point is read during the call.  The caller closes the descriptor, which may
 * outlive the timeline. */
HAL_API int hal_point_open_fd(const struct hal_point *point);

/* hal_timeline_export: what an import may do. */
#define HAL_TIMELINE_WAIT   (UINT32_C(1) << 0) /* follow the timeline; always set it */
#define HAL_TIMELINE_SIGNAL (UINT32_C(1) << 1) /* raise it, and make it fail */

/* Open a file descriptor of a timeline, for one hal_timeline_import of any process.
 * rights: HAL_TIMELINE_WAIT; HAL_TIMELINE_SIGNAL beside it lets the import raise the
 * timeline, and work that fails on the importer's side make it fail.
 * Errors: handle; memory; EINVAL: fd is NULL, rights lacks HAL_TIMELINE_WAIT or has an
 * unknown bit, or has HAL_TIMELINE_SIGNAL and only the library or another process raises
 * timeline.  EMFILE: the process has too many open files.  ENOTSUP: hal.journal is set,
 * or hald serves the device in lockstep.
 * Others: of memfd_create(2), socketpair(2) and pthread_create(3).
 * Threads: any.
 * Memory: the caller closes the descriptor, before or after its import.  The export lasts
 * until timeline or the import is destroyed, or a process ends. */
HAL_API int hal_timeline_export(struct hal_timeline *timeline, uint32_t rights, int *fd);

/* Make a timeline of dev that follows an exported one, later by the time of a message.
 * It fails with the exported one's error; with ECANCELED once that is destroyed, or its
 * process has ended.  Points that were reached stay reached.
 * Errors: handle; memory; EBADF: fd is not open.  EBUSY: fd has been imported.  EINVAL:
 * timeline is NULL, or fd is not of hal_timeline_export.  EMFILE: the process has too
 * many open files.  ENOTSUP: hal.journal is set, or hald serves the device in lockstep.
 * EPROTO: the exporter uses another version of the library.  Others: of mmap(2) and
 * pthread_create(3). Threads: any. Memory: fd is used during the call.  timeline lasts
 * until hal_timeline_destroy, and dev longer. */
HAL_API int hal_timeline_import(struct hal_device *dev, int fd,
				struct hal_timeline **timeline);

/* ---- command builders ------------------------------------------------------------- */

/* Inline in C and C++; the library exports the same functions to other languages. */
#ifndef HAL_INLINE
#define HAL_INLINE static inline
#endif

/* Make a command of op with all operands 0.
 * op: enum hal_op.  flags: HAL_CMD_*.  hal_submit checks it.
 * Threads: any.
 * Memory: nothing is kept. */
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

/* Make a command that copies bytes from src to dst, which may be one buffer.
 * dst_offset, src_offset: in bytes.  bytes: at least 1; the ranges must not overlap.
 * Threads: any.
 * Memory: dst and src must be alive at hal_submit, not later. */
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

/* Make a command that copies from host memory to a buffer, in the order of the queue.
 * host: of hal_host_alloc or hal_host_register.  dst_offset, host_offset, bytes: in
 * bytes.
 * Threads: any.
 * Memory: the host bytes must not change before the point of the submission is reached.
 * dst and host must be alive at hal_submit. */
HAL_INLINE struct hal_cmd hal_cmd_write(struct hal_buffer *dst, uint64_t dst_offset,
					struct hal_buffer *host, uint64_t host_offset,
					uint64_t bytes)
{
	return hal_cmd_copy(dst, dst_offset, host, host_offset, bytes);
}

/* Make a command that copies from a buffer to host memory, in the order of the queue.
 * host: of hal_host_alloc or hal_host_register.  host_offset, src_offset, bytes: in
 * bytes.
 * Threads: any.
 * Memory: the host bytes must not be used before the point of the submission is reached.
 * host and src must be alive at hal_submit. */
HAL_INLINE struct hal_cmd hal_cmd_read(struct hal_buffer *host, uint64_t host_offset,
				       struct hal_buffer *src, uint64_t src_offset,
				       uint64_t bytes)
{
	return hal_cmd_copy(host, host_offset, src, src_offset, bytes);
}

/* Make a command that fills bytes with a 32-bit pattern.
 * offset, bytes: in bytes, multiples of 4; bytes: at least 4.
 * Threads: any.
 * Memory: dst must be alive at hal_submit, not later. */
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

/* Make a command that runs a kernel.  .launch.groups may be set; 0 counts as 1.
 * args: arg_count ranges of buffers, or scalars where .buffer is NULL.
 * Add HAL_CMD_REPLAYABLE to .flags if no output of the kernel is also an input.
 * Threads: any.
 * Memory: args must stay until hal_submit returns.  kernel and buffers must be alive
 * until then, not later. */
HAL_INLINE struct hal_cmd hal_cmd_launch(struct hal_kernel *kernel,
					 const struct hal_arg *args, uint32_t arg_count)
{
	struct hal_cmd c = hal_cmd_of(HAL_OP_LAUNCH, 0);

	c.launch.kernel = kernel;
	c.launch.args = args;
	c.launch.arg_count = arg_count;
	return c;
}

/* Make a command that calls fn(user) after all earlier commands of its queue completed.
 * fn: runs on a thread for callbacks of the device, one at a time; under a virtual clock
 * inside hal_wait, hal_device_poll or hal_completions_read.  It may call any function,
 * but a wait for itself fails with EDEADLK.
 * Threads: any.
 * Memory: user must last until fn has returned. */
HAL_INLINE struct hal_cmd hal_cmd_host(hal_host_fn fn, void *user)
{
	struct hal_cmd c = hal_cmd_of(HAL_OP_HOST, 0);

	c.host.fn = fn;
	c.host.user = user;
	return c;
}

/* Make a command without an effect, which completes after all earlier ones of its queue.
 * Commands of a queue take effect in order without it; see "Order" at the top.
 * Threads: any.
 * Memory: nothing is kept. */
HAL_INLINE struct hal_cmd hal_cmd_barrier(void)
{
	return hal_cmd_of(HAL_OP_BARRIER, 0);
}

/* Make a command that writes the device time in ns, a uint64_t, to dst.
 * offset: in bytes, a multiple of 8.  The device needs HAL_CAP_TIMESTAMP.
 * Threads: any.
 * Memory: dst must be alive at hal_submit, not later. */
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
