/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - the interface between the engine of a device and its sharing policy.
 *
 *   engine --attach----> policy: a queue was created          detach: it is destroyed
 *   engine --enqueue---> policy: the queue became runnable    dequeue: it no longer is
 *   engine --key-------> policy: return the queue's sort key  (policies with keys)
 *   engine --pick------> policy: choose the queue to serve    (all other policies)
 *   engine --ended, changed, alarm--> policy: report events
 *   policy --hal_policy_host--> engine: alarm, stop, start, resize, limit ...
 *
 * A policy decides which queue of a partition issues the next command to the device.  A
 * queue is runnable while its next command could start.  It is handed to the policy by
 * enqueue and stays there until pick returns it or dequeue takes it back.  The engine
 * then submits one command of the queue and enqueues the queue again if another command
 * can follow.
 *
 * There are two kinds of policy.  One with .key returns a number for each runnable queue;
 * the engine keeps the queues sorted and serves the lowest key.  One with .pick keeps the
 * runnable queues itself.  docs/adding-a-policy.md builds one step by step.
 * policies/common.h, installed as hal/policy_common.h, has lists, heaps and unit plans
 * for policies that need them.
 *
 * The engine serves a queue without asking the policy while no other queue of its
 * partition is runnable.  HAL_POLICY_ALWAYS makes it ask in that case, too.
 *
 * The engine survives wrong answers.  Examples are a queue that is not runnable, no queue
 * while the device is idle, or a queue left waiting or stopped for longer than [policy]
 * timeout_ms.  The engine then serves the queue that became runnable first, or resumes
 * the stopped one, and counts a fault.  After 16 faults within one second of device time
 * it stops asking a policy with .pick (hal_device_get_policy reports this).
 *
 * Threads: the engine of a device makes these calls, one at a time.  hal_open calls
 *          create before the engine runs, and hal_close calls destroy after it has
 *          stopped.  Two devices may call the same policy at the same time, each with
 *          its own state.
 * Rules:   no call may block, read a wall clock or use randomness.  Allocate memory in
 *          create and attach only.  The same sequence of calls must give the same
 *          answers, so that a schedule can be reproduced and replayed.
 * Time:    device time in ns, unless stated otherwise.
 * Out of tree: a .so that exports hal_policy_entry, named in option hal.plugins.
 */
#ifndef HAL_POLICY_H
#define HAL_POLICY_H

#include <hal/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_POLICY_ABI    10u
#define HAL_POLICY_SYMBOL "hal_policy_entry"

#define HAL_POLICY_NEVER  UINT64_MAX /* no deadline, no time limit, or value unknown */

#define HAL_POLICY_MOVES  32u  /* most partitions in one .move */
#define HAL_POLICY_BEHIND 256u /* most ring slots of a queue that .waiting reads */

/* ---- views: the engine's data, valid during the call ------------------------------- */
/* Read only, except for next, prev and own[].  Pointers to queues and partitions stay
 * valid from attach to detach of the queue, but the contents are current only during a
 * call. */

/* The resource that limits a command. */
enum hal_policy_kind {
	HAL_POLICY_UNKNOWN,
	HAL_POLICY_ARRAY,  /* compute units: runs slower on fewer units */
	HAL_POLICY_VECTOR, /* one vector unit: more units do not help */
	HAL_POLICY_MEMORY, /* memory bandwidth: runs slower beside heavy memory traffic */
};

/* The next command of a runnable queue.  The engine fills the fields marked [EXPECTS] for
 * policies with HAL_POLICY_EXPECTS. */
struct hal_policy_command {
	uint64_t submit_ns; /* device time at which it was submitted */
	/* Absolute deadline in device time (HAL_POLICY_NEVER: none) and priority.  Both
	 * come from the submission, else from the queue.  A queue that waits for this one
	 * may raise either. */
	uint64_t deadline_ns;
	int32_t priority;
	uint32_t op;    /* enum hal_op */
	uint32_t flags; /* HAL_CMD_REPLAYABLE: the command may be killed and run again */
	/* [EXPECTS] .kind: enum hal_policy_kind.  .sure_permille: confidence in
	 * .expected_ns in thousandths.  0: unknown.  1000: the last eight runs, or those
	 * of the profile, took the expected time. */
	uint16_t kind, sure_permille;
	uint64_t work; /* multiply-accumulates of the kernel; 0: unknown */
	/* [EXPECTS] Expected run time in ns, at least 1, of this command (.expected_ns)
	 * and of the unfinished part of its submission (.rest_ns, this command included).
	 * Based on the device's profile (hal.profile) and on earlier commands.
	 * HAL_POLICY_NEVER: unknown. */
	uint64_t expected_ns, rest_ns;
	/* [EXPECTS] .whole_ns: expected run time of the whole submission.
	 * .expected_bytes: bytes of memory traffic of this command. */
	uint64_t whole_ns, expected_bytes;
	/* [EXPECTS] Device configuration that the command needs, for a device that holds
	 * one at a time.  Loading another takes info->load_ns.  0: runs with any. */
	uint32_t configuration;
	/* [EXPECTS] Number of the command's program in the device's profile, from 1; an
	 * argument for .beside.  0: not in the profile. */
	uint32_t program;
};

struct hal_policy_queue {
	uint32_t id;
	uint32_t weight;      /* at least 1 */
	uint64_t runnable_ns; /* device time at which it became runnable */
	uint64_t served_ns;   /* device time of its commands, without those running */
	uint64_t completed;   /* commands that succeeded */
	uint32_t running;     /* commands on the device */
	/* enum hal_class; a queue that waits for this one may raise it */
	uint16_t service_class;
	uint16_t budget_permille; /* promised share of device time; 0: none */
	struct hal_policy_command head;
	/* For the policy's use; all 0 when attach is called, but see HAL_POLICY_KEEPS. */
	struct hal_policy_queue *next, *prev;
	uint64_t own[4];
};

struct hal_policy_partition {
	uint32_t index;
	uint32_t units;          /* compute units that it owns now */
	uint32_t running;        /* commands on the device */
	uint32_t runnable;       /* queues handed to the policy */
	uint32_t floor, ceiling; /* limits on .units that the policy must respect */
	/* Memory channels of its buffers, one bit each.  0: the device does not report
	 * channels. */
	uint64_t color_mask;
	uint64_t own[4]; /* for the policy's use; 0 at first */
};

/* Reason of a dequeue. */
enum hal_policy_why {
	HAL_POLICY_SUSPENDED, /* the queue is being suspended */
	HAL_POLICY_FAILED,    /* the queue failed; its work is dropped */
	HAL_POLICY_REPLACED,  /* another policy is installed */
	HAL_POLICY_OVERRULED, /* the engine serves it instead of the policy's choice */
	/* the queue's inherited class, priority or deadline changed: it is enqueued
	 * again */
	HAL_POLICY_INHERITS,
	/* the queue's next command uses a buffer that is moving: it is enqueued again
	 * later */
	HAL_POLICY_HELD,
};

/* Report of a command that left the device, or that FOLD or SAVE stopped inside. */
struct hal_policy_end {
	uint64_t ran_ns; /* run time since the command started or was resumed */
	uint64_t bytes;  /* memory traffic */
	/* 0: success.  -EIO: device fault.  -ECANCELED: killed or dropped.  -EINTR: FOLD
	 * or SAVE stopped it; it resumes with its queue and is reported once more.  Any
	 * other value: the device refused the command. */
	int32_t status;
	uint32_t reserved;
	uint64_t now_ns; /* device time of this call */
	/* Device time at which it ended or was stopped; the engine may see this later, at
	 * .now_ns.  0: unknown. */
	uint64_t end_ns;
};

/* ---- requests to the engine ------------------------------------------------------- */

/* One partition of a plan (.move) and the units it shall have.  A partition whose .units
 * do not change may still be moved to make room for the others. */
struct hal_policy_move {
	struct hal_policy_partition *part;
	uint32_t units;
	uint32_t reserved;
};

/* Services of the engine.  A policy may call them from inside any of its functions, with
 * .device as the first argument.  Each returns 0 or -errno unless stated otherwise; after
 * -errno, hal_last_error has the text.  The struct stays valid until destroy. */
struct hal_policy_host {
	uint32_t size;
	uint32_t reserved;
	void *device;
	/* Call .alarm at device time at_ns, at the earliest 1 ns from now.  A new alarm
	 * replaces the pending one. */
	void (*alarm)(void *device, uint64_t at_ns);
	/* Suspend queue by mode (enum hal_suspend_mode), as hal_queue_suspend does.  The
	 * stop begins after the policy's function has returned; .changed reports its end.
	 * -EBUSY: the queue is suspended or being suspended; a queue of higher class or
	 * priority waits for it; or it was stopped for too long and must complete a
	 * command first.  -EPERM: KILL, but its command was killed [policy] kills times.
	 * -ENOTSUP: the device lacks the mode, or KILL and a command on the device is not
	 * replayable. */
	int (*stop)(void *device, struct hal_policy_queue *queue, uint32_t mode);
	/* Resume a queue that this policy stopped; -EINVAL for any other. */
	int (*start)(void *device, struct hal_policy_queue *queue);
	/* Resize part to `units` units; the engine chooses the place.  .changed reports
	 * the end. -EINVAL, counted as a fault: units is below the floor or above the
	 * ceiling. */
	int (*resize)(void *device, struct hal_policy_partition *part, uint32_t units);
	/* Let part move at most bytes of memory traffic in each window; 0 bytes: no limit
	 * beyond the partition's own.  The limit is in force on return.  -ENOTSUP: the
	 * device lacks HAL_CAP_LIMIT. -EINVAL, counted as a fault: fewer bytes than
	 * info->limit_bytes, or a window of 0 or above info->limit_window_ns. */
	int (*limit)(void *device, struct hal_policy_partition *part, uint64_t bytes,
		     uint64_t window_ns);
	/* Convert a bandwidth in bytes per second into bytes (returned) per window
	 * (*window_ns), for .limit.  Chooses the shortest window in which the limit is
	 * still at least 16 grains of info->limit_bytes, else the longest window.
	 * Returns 0 if the bandwidth is below the device's smallest limit. */
	uint64_t (*window)(void *device, uint64_t bandwidth, uint64_t *window_ns);
	/* Resize several partitions as one plan.  The engine first finds places for all
	 * of them; if it cannot, no partition moves.  A partition that grows waits for
	 * those that give up the units, and no other partition can take these meanwhile.
	 * The engine calls .changed once for each partition that moved.  -ENOSPC: no
	 * places for all of them. -EAGAIN: they would wait for each other; shrink all of
	 * them first. -EBUSY: a plan is under way, or one of them is moving.  If the
	 * device refuses a move midway, those still waiting stay as they are, and
	 * .changed reports them, too. */
	int (*move)(void *device, const struct hal_policy_move *moves, uint32_t count);
	/* HAL_POLICY_EXPECTS: return the expected run time in ns of the queue's next
	 * command on that many units, or HAL_POLICY_NEVER if unknown.  Interpolates
	 * between unit counts on which commands ran; never extrapolates. */
	uint64_t (*expect)(void *device, const struct hal_policy_queue *queue,
			   uint32_t units);
	/* Return by how many thousandths a request of program takes longer while requests
	 * of other run on the rest of the device.  Both are numbers as in head.program.
	 * The value comes from the profile, measured on halves of the device, and with
	 * HAL_POLICY_EXPECTS also from commands that ran since.  HAL_POLICY_NEVER:
	 * unknown.  *sure_permille (may be NULL): confidence in thousandths; 1000:
	 * measured at least eight times, or seen often. */
	uint64_t (*beside)(void *device, uint32_t program, uint32_t other,
			   uint32_t *sure_permille);
	/* Return the number of submissions in the next HAL_POLICY_BEHIND ring slots of
	 * queue that are not fully submitted to the device.  The submission of the next
	 * command is included.  *last_ns: deadline of the last one, or
	 * HAL_POLICY_NEVER. */
	uint32_t (*waiting)(void *device, const struct hal_policy_queue *queue,
			    uint64_t *last_ns);
	/* Call pick for part again.  Use this when an event of another partition affects
	 * the choice for part.  A call from inside pick is ignored. */
	void (*ask)(void *device, struct hal_policy_partition *part);
	/* Description of the device.  .memory_free is the value from hal_open. */
	const struct hal_device_info *info;
};

/* Further results of pick.  Before the call .commands is 0 and .until_ns is
 * HAL_POLICY_NEVER. */
struct hal_policy_order {
	/* Lease: number of further commands of the queue to serve without calling pick.
	 * Ends early if another queue has waited longer than [policy] timeout_ms. */
	uint32_t commands;
	uint32_t reserved;
	/* If pick returns NULL: device time at which to call it again.  Any event of the
	 * partition calls it earlier.  HAL_POLICY_NEVER is a fault if the device is idle.
	 * Events of other partitions do not call it earlier; use .ask of hal_policy_host.
	 */
	uint64_t until_ns;
};

/* ---- the policy ------------------------------------------------------------------- */

/* hal_policy.flags */
/* Ask the policy also when only one queue of the partition is runnable. */
#define HAL_POLICY_ALWAYS 1u
/* Keys are device times: no queue is served before its key. */
#define HAL_POLICY_TIMES   2u
#define HAL_POLICY_EXPECTS 4u /* fill the [EXPECTS] fields of hal_policy_command */
/* Keep own[] of queues and partitions when the policy is installed again with other
 * options, instead of clearing them. */
#define HAL_POLICY_KEEPS 8u
/* The policy starves queues on purpose.  A queue is still served after timeout_ms, but
 * the engine does not give up the policy for that. */
#define HAL_POLICY_STARVES 16u
/* The policy keeps queues within budget_permille.  Without this flag the engine refuses
 * queues that have a budget. */
#define HAL_POLICY_BUDGETS 32u

struct hal_policy {
	uint32_t size; /* sizeof(struct hal_policy) */
	uint32_t abi;  /* HAL_POLICY_ABI */
	/* 1 to 31 printable ASCII characters, no spaces and none of .=:,;#"[] */
	const char *name;
	const char *summary;
	/* Parameters in section [policy]; read them with host->option_int. */
	const struct hal_option_def *options;
	uint32_t option_count;
	uint32_t flags; /* HAL_POLICY_* */

	/* Each function may be NULL, but key or pick is required.  A policy with key must
	 * not have enqueue, dequeue or pick. */

	/* Create the policy's state for one device.  Called by hal_open and
	 * hal_device_set_policy. *device stays valid until destroy.  cfg is an argument
	 * for host->option_int and host->option_str.  To refuse, call host->fail and
	 * return -errno: the policy is not installed. */
	int (*create)(const struct hal_host *host, const struct hal_bk_config *cfg,
		      const struct hal_policy_host *device, void **state);
	/* Free the state.  detach has been called for all queues. */
	void (*destroy)(void *state);
	/* Admit a queue.  To refuse it, call host->fail and return -errno:
	 * hal_queue_create then fails.  If the policy is installed while queues exist, a
	 * queue that it does not admit stays: it is enqueued like the others, but never
	 * detached. */
	int (*attach)(void *state, struct hal_policy_partition *part,
		      struct hal_policy_queue *queue);
	/* Release a queue.  Called once for each admitted queue, even after the engine
	 * gave up the policy.  In that case the policy's lists may still contain the
	 * queue, and may be out of date. */
	void (*detach)(void *state, struct hal_policy_partition *part,
		       struct hal_policy_queue *queue);
	/* Take over a queue that became runnable. */
	void (*enqueue)(void *state, struct hal_policy_partition *part,
			struct hal_policy_queue *queue);
	/* Give back a queue that was enqueued and not picked. */
	void (*dequeue)(void *state, struct hal_policy_partition *part,
			struct hal_policy_queue *queue, enum hal_policy_why why);
	/* Return the sort key of a queue that became runnable.  The engine serves the
	 * lowest key first; equal keys in order of arrival.  It orders by service class
	 * before it compares keys. */
	uint64_t (*key)(void *state, struct hal_policy_partition *part,
			struct hal_policy_queue *queue, uint64_t now_ns);
	/* Optional, with key: confirm that queue, which has the lowest key, is served
	 * now. Return 0, or any number up to key, to serve it.  A higher number becomes
	 * its new key; the engine then calls turn for the queue that has the lowest
	 * key. */
	uint64_t (*turn)(void *state, struct hal_policy_partition *part,
			 struct hal_policy_queue *queue, uint64_t key, uint64_t now_ns);
	/* Remove one queue of part from the policy's lists and return it.  To serve none
	 * now, return NULL, with the time of the next call in order->until_ns. */
	struct hal_policy_queue *(*pick)(void *state, struct hal_policy_partition *part,
					 uint64_t now_ns, struct hal_policy_order *order);
	/* Note that a command of queue ended, was stopped inside, or was refused by the
	 * device.  Costs one call for each command. */
	void (*ended)(void *state, struct hal_policy_partition *part,
		      struct hal_policy_queue *queue, const struct hal_policy_end *end);
	/* Report a change.  queue not NULL: a requested stop took effect, could not be
	 * carried out, or was taken over by the application.  In the last two cases start
	 * returns -EINVAL. queue NULL: part moved, or a move of it was dropped; see
	 * part->units. */
	void (*changed)(void *state, struct hal_policy_partition *part,
			struct hal_policy_queue *queue);
	/* The time set by host->alarm has come. */
	void (*alarm)(void *state, uint64_t now_ns);
};

/* Type of hal_policy_entry, the one symbol that a plug-in exports.  The returned table
 * must stay valid for the life of the process.  To refuse to load, call host->fail and
 * return NULL. */
typedef const struct hal_policy *(*hal_policy_entry_fn)(const struct hal_host *host);

#ifdef __cplusplus
}
#endif
#endif
