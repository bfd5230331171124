/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - what a sharing policy sees of a device and what it decides.
 *
 *   engine --attach---> policy: a queue there is, now        detach: it goes
 *   engine --enqueue--> policy: its next command could run   dequeue: it can not any more
 *   engine --key------> policy: how far in front?            (policies that only order)
 *   engine --pick-----> policy: this partition has room for one more command; whose?
 *   engine --ended, changed, alarm--> policy: what came of it
 *   policy --hal_policy_host--> engine: alarm, stop, start
 *
 * A queue is runnable, and in the policy's hands, from enqueue until pick names it or
 * dequeue takes it away; then the engine gives one command of it to the device and
 * enqueues it again when there is another.  Most policies only say how far in front a
 * queue stands (key): the engine then keeps them in order itself. docs/adding-a-policy.md
 * makes one.  policies/common.h, installed as hal/policy_common.h, has lists, heaps,
 * plans of units and more for those that keep queues or size partitions.
 *
 * A queue that nobody competes with is served without asking, unless the policy says that
 * it wants to see even that (HAL_POLICY_ALWAYS).
 *
 * Wrong answers do no harm: a queue that is not runnable, "nobody" without a time while
 * nothing runs, or a queue passed over or stopped for [policy] timeout_ms: the engine
 * serves in order of arrival, counts it, and after some of them goes on without the
 * policy (hal_device_get_policy tells).
 *
 * Threads: all calls of one device come from its engine, one at a time; none may block,
 *          allocate (but in create, attach) or look at a wall clock.  The same calls are
 *          answered in the same way: schedules are reproducible.
 * Out of tree: a .so that exports hal_policy_entry, named in hal.plugins.
 */
#ifndef HAL_POLICY_H
#define HAL_POLICY_H

#include <hal/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_POLICY_ABI    10u
#define HAL_POLICY_SYMBOL "hal_policy_entry"

#define HAL_POLICY_NEVER  UINT64_MAX /* no deadline, no time */

#define HAL_POLICY_MOVES  32u  /* partitions of one plan, at most */
#define HAL_POLICY_BEHIND 256u /* slots of a queue that .waiting looks at, at most */

/* ---- what a policy sees: the engine's, read only, valid during the call ---------- */

/* What a command needs of the device. */
enum hal_policy_kind {
	HAL_POLICY_UNKNOWN,
	HAL_POLICY_ARRAY,  /* units: it is slower with few of them */
	HAL_POLICY_VECTOR, /* no more than one of them, whatever there are */
	HAL_POLICY_MEMORY, /* memory: it is slower beside others that move much */
};

/* The command a runnable queue has at its head. */
struct hal_policy_command {
	uint64_t submit_ns; /* device time */
	/* Absolute device time, HAL_POLICY_NEVER: none; and its submission's priority,
	 * else the queue's.  Or those of a queue that waits for this one. */
	uint64_t deadline_ns;
	int32_t priority;
	uint32_t op;    /* enum hal_op */
	uint32_t flags; /* HAL_CMD_REPLAYABLE: may be killed */
	/* HAL_POLICY_EXPECTS: enum hal_policy_kind; and how sure .expected_ns is, in
	 * thousandths: 0 not known, 1000 the last eight ran as expected, or those of a
	 * profile alike. */
	uint16_t kind, sure_permille;
	uint64_t work; /* multiply-accumulates of the kernel; 0: not known */
	/* HAL_POLICY_EXPECTS: device time that it, and what follows of its submission
	 * with it, will run, from the device's profile (hal.profile) and what commands
	 * ran so far; at least 1.  HAL_POLICY_NEVER: not known. */
	uint64_t expected_ns, rest_ns;
	/* The same: what the whole submission runs, and the bytes that it moves itself.
	 */
	uint64_t whole_ns, expected_bytes;
	/* The same: the configuration that the device is to have for it, of which it has
	 * one at a time: info->load_ns to put it in the place of another. 0: any. */
	uint32_t configuration;
	/* The same: the number of its program in the device's profile, from 1, for
	 * .beside. 0: not of one that is there. */
	uint32_t program;
};

struct hal_policy_queue {
	uint32_t id;
	uint32_t weight;      /* at least 1 */
	uint64_t runnable_ns; /* since when its head could run */
	uint64_t served_ns;   /* device time its commands have run, of those that ended */
	uint64_t completed;   /* commands of it that ended well */
	uint32_t running;     /* commands of it that the device has */
	uint16_t service_class;   /* enum hal_class */
	uint16_t budget_permille; /* of device time; 0: it says none */
	struct hal_policy_command head;
	/* The policy's own; 0 at attach. */
	struct hal_policy_queue *next, *prev;
	uint64_t own[4];
};

struct hal_policy_partition {
	uint32_t index;
	uint32_t units;
	uint32_t running;        /* commands that the device has */
	uint32_t runnable;       /* queues in the policy's hands */
	uint32_t floor, ceiling; /* of units: no policy goes beyond either */
	/* Memory channels that its buffers lie on, bit a channel; 0: the device tells of
	 * none. */
	uint64_t color_mask;
	uint64_t own[4]; /* the policy's; 0 at first */
};

/* Why a queue is dequeued. */
enum hal_policy_why {
	HAL_POLICY_SUSPENDED, /* somebody suspends it */
	HAL_POLICY_FAILED,    /* its work is dropped */
	HAL_POLICY_REPLACED,  /* another policy comes */
	HAL_POLICY_OVERRULED, /* it is served: the policy's answer could not be followed
			       */
	HAL_POLICY_INHERITS, /* others lend it theirs: it comes again with another head */
	HAL_POLICY_HELD, /* its next command uses a buffer that moves: it comes again */
};

/* A command that has ended, or was stopped inside. */
struct hal_policy_end {
	uint64_t ran_ns; /* since it began, or went on */
	uint64_t bytes;
	/* 0, -EIO, -ECANCELED; -EINTR: its queue is suspended by FOLD or SAVE, it goes on
	 * when that does, and ends once more; of one that the device refused: why. */
	int32_t status;
	uint32_t reserved;
	uint64_t now_ns; /* device time */
	uint64_t end_ns; /* when it ended, which the engine may see later; 0: not known */
};

/* ---- what it can ask for: requests, which end in .changed ------------------------ */

/* part is to have so many units; as many as it has: it may be moved for the others. */
struct hal_policy_move {
	struct hal_policy_partition *part;
	uint32_t units;
	uint32_t reserved;
};

struct hal_policy_host {
	uint32_t size;
	uint32_t reserved;
	void *device;
	/* .alarm is called at device time at_ns; a new one replaces the last. */
	void (*alarm)(void *device, uint64_t at_ns);
	/* As hal_queue_suspend and _resume.  -EBUSY: one is under way, it is suspended
	 * already, one that stands above it waits for it, or it had been stopped for too
	 * long and is served first; -EPERM: killed often enough; -ENOTSUP: the mode;
	 * -EINVAL: not suspended by the policy. */
	int (*stop)(void *device, struct hal_policy_queue *queue, uint32_t mode);
	int (*start)(void *device, struct hal_policy_queue *queue);
	/* As hal_partition_resize to so many units, placed by the engine; -EINVAL, and
	 * counted, below the floor or above the ceiling.  And as many bytes a window as
	 * the partition may move (0: any). */
	int (*resize)(void *device, struct hal_policy_partition *part, uint32_t units);
	int (*limit)(void *device, struct hal_policy_partition *part, uint64_t bytes,
		     uint64_t window_ns);
	/* The bytes of bandwidth (bytes a second) in a window, for .limit, and that
	 * window: the shortest of the device in which they still are many times the grain
	 * of a limit.  Fewer than info->limit_bytes: that is too little. */
	uint64_t (*window)(void *device, uint64_t bandwidth, uint64_t *window_ns);
	/* The same for several, as one: all are placed before any is moved, or none is
	 * (-ENOSPC: they do not fit together; -EAGAIN: some would wait for each other,
	 * and fit when all have fewer first), and who takes units waits for who gives
	 * them, which nobody else gets in between.  When the device refuses one in the
	 * middle, those that wait stay as they are; all are told. One plan at a time:
	 * -EBUSY. */
	int (*move)(void *device, const struct hal_policy_move *moves, uint32_t count);
	/* HAL_POLICY_EXPECTS: what the command at the head of queue will run on so many
	 * units, from what is known of as many, or of fewer and of more.
	 * HAL_POLICY_NEVER: not known. */
	uint64_t (*expect)(void *device, const struct hal_policy_queue *queue,
			   uint32_t units);
	/* How much longer, in thousandths, a request of a program of the profile takes
	 * while requests of another run on the rest of the device; both as head.program.
	 * As the profile has measured it on halves, and HAL_POLICY_EXPECTS: as it has
	 * been since, on the units that there are.  HAL_POLICY_NEVER: not known.  How
	 * sure that is, in thousandths: 1000 if each was measured eight times or more, or
	 * seen often; sure_permille may be NULL. */
	uint64_t (*beside)(void *device, uint32_t program, uint32_t other,
			   uint32_t *sure_permille);
	/* Submissions of queue of which something has not been given to the device, that
	 * of its head first; those in its next HAL_POLICY_BEHIND slots.  *last_ns: the
	 * deadline of the last of them. */
	uint32_t (*waiting)(void *device, const struct hal_policy_queue *queue,
			    uint64_t *last_ns);
	/* part is asked for again, for what has happened elsewhere; not from pick. */
	void (*ask)(void *device, struct hal_policy_partition *part);
	/* The device; .memory_free is as it was when it was opened. */
	const struct hal_device_info *info;
};

/* What pick decides beside the queue. */
struct hal_policy_order {
	uint32_t commands; /* lease: so many more of it without asking; 0: none */
	uint32_t reserved;
	/* When NULL is answered: ask again then, or after any event of the partition.
	 * HAL_POLICY_NEVER is right only while the device runs something; of events
	 * elsewhere .ask tells. */
	uint64_t until_ns;
};

/* ---- the policy ------------------------------------------------------------------- */

/* hal_policy.flags */
#define HAL_POLICY_ALWAYS  1u /* also asked when a queue has no competitor */
#define HAL_POLICY_TIMES   2u /* a key is a device time: not served before that */
#define HAL_POLICY_EXPECTS 4u /* wants what commands are expected to do */
/* When it takes over from itself, with other options, own[] of queues and partitions is
 * as detach left it. */
#define HAL_POLICY_KEEPS 8u
/* Who starves under it is meant to: he is served after timeout_ms all the same, but the
 * engine does not go on without it for that. */
#define HAL_POLICY_STARVES 16u
/* It keeps queues within their budget_permille; without it, queues that have one are
 * refused. */
#define HAL_POLICY_BUDGETS 32u

struct hal_policy {
	uint32_t size; /* sizeof(struct hal_policy) */
	uint32_t abi;  /* HAL_POLICY_ABI */
	/* 1 to 31 characters that can be seen, and none of .=:,;#"[] */
	const char *name;
	const char *summary;
	/* Parameters, section [policy]; read them with host->option_int. */
	const struct hal_option_def *options;
	uint32_t option_count;
	uint32_t flags; /* HAL_POLICY_* */

	/* All may be NULL, but key or pick has to be there. */

	/* State of one device; device stays as long as the state. */
	int (*create)(const struct hal_host *host, const struct hal_bk_config *cfg,
		      const struct hal_policy_host *device, void **state);
	void (*destroy)(void *state);
	/* -errno (after host->fail): the queue is not admitted, hal_queue_create fails.
	 */
	int (*attach)(void *state, struct hal_policy_partition *part,
		      struct hal_policy_queue *queue);
	/* Once for each that was admitted, also after the engine went on without the
	 * policy: then whatever else it kept of the queue may be old. */
	void (*detach)(void *state, struct hal_policy_partition *part,
		       struct hal_policy_queue *queue);
	void (*enqueue)(void *state, struct hal_policy_partition *part,
			struct hal_policy_queue *queue);
	void (*dequeue)(void *state, struct hal_policy_partition *part,
			struct hal_policy_queue *queue, enum hal_policy_why why);
	/* Instead of enqueue, dequeue and pick: lower is served first, equal ones in
	 * order of arrival; classes before all keys.  Asked once each time the queue
	 * becomes runnable. */
	uint64_t (*key)(void *state, struct hal_policy_partition *part,
			struct hal_policy_queue *queue, uint64_t now_ns);
	/* Of key: it is this queue's turn, with this key.  0: it is served now; higher
	 * than key: its key from now on, and who is first then is asked. */
	uint64_t (*turn)(void *state, struct hal_policy_partition *part,
			 struct hal_policy_queue *queue, uint64_t key, uint64_t now_ns);
	/* Takes one queue out and returns it; NULL: nobody now. */
	struct hal_policy_queue *(*pick)(void *state, struct hal_policy_partition *part,
					 uint64_t now_ns, struct hal_policy_order *order);
	/* A command of queue has ended, or the device has refused it (-errno). */
	void (*ended)(void *state, struct hal_policy_partition *part,
		      struct hal_policy_queue *queue, const struct hal_policy_end *end);
	/* A stop that was asked for is quiet (queue), or part has moved (queue NULL). */
	void (*changed)(void *state, struct hal_policy_partition *part,
			struct hal_policy_queue *queue);
	void (*alarm)(void *state, uint64_t now_ns);
};

/* The one symbol of a plugin.  NULL: refused (after host->fail). */
typedef const struct hal_policy *(*hal_policy_entry_fn)(const struct hal_host *host);

#ifdef __cplusplus
}
#endif
#endif
