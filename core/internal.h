/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - the core's own objects: who owns what, and which lock guards it. */
#ifndef HAL_CORE_INTERNAL_H
#define HAL_CORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <ck_ring.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include <hal/backend.h>
#include <hal/hal.h>
#include <hal/policy.h>

#define LIKELY(x)       __builtin_expect(!!(x), 1)
#define UNLIKELY(x)     __builtin_expect(!!(x), 0)
#define ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member)                                                  \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* ---- intrusive lists ----------------------------------------------------------------
 */

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

/* Before l: at the tail when l is the head of the list. */
static inline void list_add_before(struct list *l, struct list *node)
{
	node->prev = l->prev;
	node->next = l;
	l->prev->next = node;
	l->prev = node;
}

/* node is not looked at again before it is added somewhere. */
static inline void list_take(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
}

/* Safe to do twice. */
static inline void list_del(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* NOLINTBEGIN(bugprone-macro-parentheses): it is a name to declare */
#define hal_list_for_each(it, head)                                                      \
	for (struct list *it = (head)->next, *it##_next = it->next; it != (head);        \
	     it = it##_next, it##_next = it->next)
/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- error.c --------------------------------------------------------------------------
 */

/* Sets hal_last_error of this thread; returns -err. */
int fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

/* Copies a caller's struct of any version into dst: size is this library's, min the
 * smallest there ever was.  what names it in the text. */
int import_struct(void *dst, size_t size, size_t min, const void *src, const char *what);
/* Writes at most the caller's .size bytes of src, but its .size. */
int export_struct(void *dst, const void *src, size_t size, size_t min, const char *what);

/* snprintf that cuts what does not fit. */
void format_text(char *dst, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- pool.c: handles that stay safe to look at
 * ------------------------------------------ */

/* Objects behind handles are never given back to malloc while the library is loaded and
 * rest before they are used again, so that a destroyed handle is seen and refused. */
enum object_kind {
	OBJECT_DEVICE,
	OBJECT_PARTITION,
	OBJECT_QUEUE,
	OBJECT_BUFFER,
	OBJECT_PROGRAM,
	OBJECT_KERNEL,
	OBJECT_TIMELINE,
	OBJECT_KINDS,
};

#define OBJECT_MAGIC(kind) (UINT32_C(0x48414c00) + (uint32_t)(kind))
#define OBJECT_DEAD        UINT32_C(0xdead4841)

/* First member of everything behind a handle. */
struct object {
	uint32_t magic;
	uint32_t id;
};

void *object_alloc(enum object_kind kind, size_t size);
void object_retire(struct object *o); /* the handle is dead from now on */
void object_free(enum object_kind kind, void *object);
/* -EINVAL with a text that says whether it is NULL, destroyed or something else. */
int object_bad(const void *object, enum object_kind kind) __attribute__((cold));

#define OBJECT_OK(o, kind) ((o) != NULL && (o)->obj.magic == OBJECT_MAGIC(kind))

/* ---- config.c
 * --------------------------------------------------------------------------- */

struct config_entry {
	struct config_entry *next;
	char *section, *key, *value;
	char *source; /* "hal.conf:12", "option" */
	int layer;
};

struct config {
	struct config_entry *entries;
	char *file; /* NULL: none was read */
};

/* Values of one option table, in force. */
struct option_value {
	int64_t number;
	char *text;
	char source[128];
};

struct hal_bk_config {
	const struct hal_option_def *defs;
	uint32_t count;
	char section[32];
	struct option_value *values;
};

/* What [partition "name"] says. */
struct config_partition {
	struct hal_partition_desc desc;
	char source[128];
};

int config_load(struct config *cfg, const char *const *options);
void config_free(struct config *cfg);
/* A target's "key=value&..." as options of backend.NAME. */
int config_add_target(struct config *cfg, const char *backend, const char *target,
		      const char *query);
/* Every section and key is one that somebody declared. */
int config_check(const struct config *cfg);
int config_resolve(const struct config *cfg, const char *section,
		   const struct hal_option_def *defs, uint32_t count,
		   struct hal_bk_config **out);
void config_values_free(struct hal_bk_config *values);
int config_partition(const struct config *cfg, const char *name,
		     struct config_partition *out);

int64_t option_int(const struct hal_bk_config *cfg, const char *key);
const char *option_str(const struct hal_bk_config *cfg, const char *key);

extern const struct hal_option_def core_options[];
extern const uint32_t core_option_count;

/* ---- registry.c
 * --------------------------------------------------------------------------- */

struct backend {
	struct hal_backend table; /* gaps filled with stubs */
	char section[32];
	char *path; /* of the plugin; NULL: in the tree */
};

extern const struct hal_host core_host;

/* Loads what is built in and the colon list of plugins. */
int registry_load(const char *plugins);
uint32_t registry_count(void);
const struct backend *registry_at(uint32_t index);
const struct backend *registry_find(const char *name);

/* ---- layers/layers.c
 * --------------------------------------------------------------------- */

extern const struct hal_option_def layer_options[];
extern const uint32_t layer_option_count;

struct layers;

/* Opens device index of dev->backend, through the layers that dev->cfg asks for: then
 * dev->backend is theirs from here on. */
int layers_open(struct hal_device *dev, uint32_t index);
/* Takes them off; 0, or what they found wrong. */
int layers_close(struct hal_device *dev);
/* The backend's own handle. */
void *layers_native(const struct hal_device *dev);
/* What a layer knows to be alive, and where it was made; else "". */
void layers_living(const struct hal_device *dev, char *text, size_t size);

/* ---- policy.c
 * ----------------------------------------------------------------------------- */

extern const struct hal_policy hal_policy_priority;

const struct hal_policy *policy_find(const char *name);
extern const struct hal_option_def policy_options[];
extern const uint32_t policy_option_count;

/* ---- timeline.c
 * --------------------------------------------------------------------------- */

struct waiter;
/* Called under the device lock, already off the list.  err 0: reached. */
typedef void (*waiter_fn)(struct waiter *w, int err);

struct waiter {
	struct list node;
	struct hal_timeline *timeline;
	uint64_t value;
	waiter_fn fn;
};

/* value and err are read by any thread; the rest is under the device lock. */
struct hal_timeline {
	struct object obj;
	struct hal_device *dev;
	_Atomic uint64_t value;
	_Atomic int err;                 /* 0, or the negative errno that stuck */
	atomic_uint pending;             /* submitted waits and signals */
	atomic_uint fds;                 /* of hal_point_fd, not yet readable */
	struct hal_queue *queue;         /* whose own it is */
	struct hal_partition *partition; /* whose resize it tells */
	char *text;                      /* of err; set before it */
	struct list waiters;             /* ascending value */
};

void timeline_init(struct hal_timeline *t, struct hal_device *dev);
void timeline_fini(struct hal_timeline *t);
void timeline_set(struct hal_timeline *t, uint64_t value);
/* Those who wait for at most value are told. */
void timeline_tell(struct hal_timeline *t, uint64_t value);
void timeline_fail(struct hal_timeline *t, int err, const char *text);
void timeline_add_waiter(struct hal_timeline *t, struct waiter *w);
void timeline_describe(const struct hal_timeline *t, char *text, size_t size);

/* 1 reached, 0 not yet, or the error that stuck. */
static inline int timeline_test(const struct hal_timeline *t, uint64_t value)
{
	int err = atomic_load_explicit(&t->err, memory_order_acquire);

	if (atomic_load_explicit(&t->value, memory_order_acquire) >= value)
		return 1;
	return err;
}

/* ---- account.c
 * ---------------------------------------------------------------------------- */

/* Union of the times in which something ran. */
#define BUSY_INTERVALS 16

struct busy {
	uint64_t total;
	uint32_t count;
	struct {
		uint64_t start, end;
	} at[BUSY_INTERVALS]; /* disjoint, the newest first; none: at[0] is inside out */
};

static inline void busy_init(struct busy *b)
{
	b->at[0].start = UINT64_MAX;
	b->at[0].end = UINT64_MAX;
}

/* settled: nothing that started before it will still be added. */
void busy_insert(struct busy *b, uint64_t start, uint64_t end, uint64_t settled);

/* Mostly it goes on where the newest ended.  False: busy_insert has to be called. */
static inline bool busy_extend(struct busy *b, uint64_t start, uint64_t end)
{
	if (start < b->at[0].start || start > b->at[0].end)
		return false;
	if (end > b->at[0].end) {
		b->total += end - b->at[0].end;
		b->at[0].end = end;
	}
	return true;
}

/* Of one queue; those of destroyed ones are added up in their partition. */
struct account {
	uint64_t busy_ns, busy_until_ns;
	uint64_t last_end_ns; /* of the last command that ended well */
	uint64_t queueing_ns;
	uint64_t submitted, completed, failed, dropped;
	uint64_t deadline_misses;
	uint64_t suspends, suspend_ns, suspend_max_ns;
	uint64_t replayed, replayed_ns;
	uint64_t bytes_read, bytes_written;
	uint64_t latency_max_ns;
	uint64_t histogram[64]; /* every power of two; hal_stats has fewer */
};

static inline void account_latency(struct account *a, uint64_t ns)
{
	a->histogram[63 ^ __builtin_clzll(ns | 1)]++;
	if (ns > a->latency_max_ns)
		a->latency_max_ns = ns;
}

void account_add(struct account *sum, const struct account *a);
void account_export(struct hal_stats *out, const struct account *a, uint64_t busy_ns,
		    uint64_t now_ns);

/* ---- trace.c
 * ------------------------------------------------------------------------------ */

struct trace;
struct flight;

int trace_open(struct hal_device *dev, const char *path);
int trace_close(struct hal_device *dev);
void trace_partition(struct hal_device *dev, const struct hal_partition *part);
void trace_queue(struct hal_device *dev, const struct hal_queue *queue);
void trace_command(struct hal_device *dev, const struct flight *f, const char *name,
		   uint64_t submit_ns);
void trace_instant(struct hal_device *dev, const struct hal_queue *queue,
		   const char *name, uint64_t at_ns);
void trace_span(struct hal_device *dev, const struct hal_queue *queue, const char *name,
		uint64_t start_ns, uint64_t end_ns);
void trace_depth(struct hal_device *dev, const struct hal_partition *part, uint64_t at);
void trace_memory(struct hal_device *dev, const struct hal_partition *part, uint64_t at);

/* ---- records: what crosses the ring
 * ----------------------------------------------------- */

/* Kinds of record beside those of enum hal_op. */
enum {
	REC_WAIT = 32,
	REC_SIGNAL,
	REC_BLOCK, /* the submission is too large for the ring and lies elsewhere */
};

/* record.own */
#define REC_END          1u /* last of its submission */
#define REC_INNER        2u /* in a block, not in the ring */

#define SLOT_BYTES       64u
#define INLINE_ARGS_MAX  8u
#define RECORD_SLOTS_MAX 4u /* a launch of INLINE_ARGS_MAX arguments */

struct block;

/* A record takes one slot of 64 bytes, a launch more: its arguments lie behind it.  What
 * the device is to do lies there as the backend takes it, so that nothing is copied. */
struct record {
	union {
		struct hal_bk_cmd cmd;
		struct {
			uint32_t cmd_op;
			/* The halves of cmd.flags: HAL_CMD_*, and the core's own. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			uint16_t flags;
			uint8_t slots, own;
#else
			uint8_t own, slots;
			uint16_t flags;
#endif
			uint64_t cmd_cookie;
			union {
				struct {
					uint64_t cmd_launch[4];
					struct hal_kernel *kernel;
				} launch;
				struct {
					hal_host_fn fn;
					void *user;
				} host;
				struct {
					struct hal_timeline *timeline;
					uint64_t value;
				} point;
				struct block *block;
			};
		};
	};
	uint64_t submit_ns; /* 0: the engine slept; it takes its own time */
};

_Static_assert(sizeof(struct record) == SLOT_BYTES, "a record is one slot");
_Static_assert(offsetof(struct record, launch.kernel) >=
		       offsetof(struct hal_bk_cmd, launch.groups) + 3 * sizeof(uint32_t),
	       "the kernel's handle lies behind what the backend sees of a launch");

struct block {
	uint32_t slots;
	uint32_t reserved;
	struct record rec[];
};

/* As cmd.flags of a record. */
static inline uint32_t record_flags(uint32_t flags, uint32_t slots, uint32_t own)
{
	return flags | slots << 16 | own << 24;
}

/* Slots of a launch with n arguments. */
static inline uint32_t launch_slots(uint32_t n)
{
	return 1 +
	       (n * (uint32_t)sizeof(struct hal_bk_arg) + SLOT_BYTES - 1) / SLOT_BYTES;
}

static inline struct hal_bk_arg *record_args(struct record *r)
{
	return (struct hal_bk_arg *)(void *)(r + 1);
}

/* A place in a queue's stream of records; inner counts slots inside a block. */
union cursor {
	struct {
		unsigned int pos;
		uint32_t inner;
	};
	uint64_t both; /* for one comparison */
};

/* Cookies of HAL_BK_QUIET: a queue, or a partition with the lowest bit set. */
#define COOKIE_PARTITION UINT64_C(1)

/* What a cookie of ours was made from. */
static inline void *cookie_pointer(uint64_t cookie)
{
	return (void *)(uintptr_t)cookie; /* NOLINT(performance-no-int-to-ptr) */
}

/* ---- objects
 * ---------------------------------------------------------------------------- */

/* A command that the device has. */
struct flight {
	struct hal_queue *queue;
	struct flight *next;   /* of the queue; all of them form a circle */
	struct record *record; /* what the cursor at stands for */
	union cursor at;
	struct list on_device; /* in order of issue */
	uint64_t issue_ns, ready_ns;
	uint64_t start_ns, end_ns;
	int32_t status;
	bool done;   /* ended; waits for its turn to be told */
	bool killed; /* dropped by a suspend, to be given again */
};

/* hal_queue.odd: what makes the end of a command more than the usual. */
#define ODD_TRACE      1u
#define ODD_DEADLINE   2u
#define ODD_SUSPENDING 4u
#define ODD_FAILED     8u
/* Between the cursors there is, or has been since they met, a record without a flight or
 * one that ended out of turn. */
#define ODD_MIXED  16u

#define QUEUE_OPEN UINT32_C(0x4f50454e)

enum queue_state {
	QUEUE_RUNNING,
	QUEUE_SUSPENDING, /* asked, the device has not let go yet */
	QUEUE_SUSPENDED,
};

struct hal_queue {
	struct object obj;
	/* Written by the submitting thread. */
	atomic_uint open; /* QUEUE_OPEN while it takes work: alive and not failed */
	struct hal_device *dev;
	struct hal_partition *part;
	struct record *slots;
	uint32_t slot_count;
	unsigned int ring_limit; /* a tail that is known to be possible */
	_Atomic uint64_t submissions;
	_Atomic uint64_t more_commands; /* than submissions; wraps when fewer */
	uint32_t part_word;             /* of its partition in hal_program.bound */
	uint64_t part_bit;
	ck_ring_t ring;
	/* The way onto the device's ready list. */
	atomic_int on_ready;
	struct hal_queue *ready_next;
	/* Under the device lock. */
	struct hal_timeline timeline;
	struct hal_timeline control; /* suspends that became quiet */
	struct list on_partition;
	struct list todo; /* on dev->todo: has a callback to run, or its wait is over */
	void *bk;
	union cursor issue, retire;
	struct record *next;           /* the one at issue; while .offered */
	uint32_t odd;                  /* ODD_* */
	struct flight *oldest, *fresh; /* that the device has, and that is free */
	uint32_t flight_count, flight_max;
	struct hal_policy_queue view;
	struct waiter waiter;
	union {
		struct {
			bool parked;   /* waiter is on a timeline */
			bool offered;  /* in the policy's hands, or alone in its partition
					*/
			bool halted;   /* a command has failed and waits to be told */
			uint8_t state; /* enum queue_state */
			int err;       /* the first failure; nothing runs after it */
		};
		uint64_t held; /* 0: nothing of all this keeps it from going on */
	};
	bool failing;      /* the submission that failed is being dropped */
	bool bk_suspended; /* through the backend, not by holding back alone */
	bool resume_wanted;
	bool final; /* suspended for good */
	uint8_t suspend_mode;
	char *fault; /* text of the command that has failed */
	uint64_t deadline_ns;
	uint64_t gate_ns; /* when its last wait was satisfied */
	uint64_t suspend_asked_ns;
	uint64_t suspend_count;
	struct account account;
	struct flight flights[];
};

struct hal_buffer {
	struct object obj;
	/* Whose queues may use it; NULL: nobody's any more. */
	const struct hal_partition *user;
	uint64_t bytes;
	void *bk;
	struct hal_partition *part;
	struct hal_device *dev;
	void *address;
	uint32_t maps;
	uint32_t flags;
};

struct hal_kernel {
	struct object obj;
	const struct hal_device *user; /* NULL: unloaded */
	struct hal_program *prog;
	void *bk;
	const _Atomic uint64_t *bound; /* prog->bound */
	uint32_t inline_args; /* how many, if they may lie in a ring, else UINT32_MAX */
	uint32_t slots;       /* of a record there */
	uint32_t flags;       /* cmd.flags of a record of its own, but for HAL_CMD_* */
	struct hal_bk_kernel_info info;
};

struct hal_program {
	struct object obj;
	struct hal_device *dev;
	struct list on_device;
	void *bk;
	void *image;
	uint32_t kernel_count;
	struct hal_kernel **kernels;
	uint64_t *bound_bytes;    /* a partition; charged to its quota */
	_Atomic uint64_t bound[]; /* bit a partition index */
};

struct hal_partition {
	struct object obj;
	struct hal_device *dev;
	struct list on_device;
	struct list queues;
	struct list dirty; /* on dev->dirty: may be able to take a command */
	void *bk;
	struct hal_bk_partition_desc desc;
	struct hal_bk_partition_desc moving; /* resize under way: units > 0 */
	uint64_t moving_quota;
	char name[32];
	bool own_colors; /* named them; nobody else may */
	uint32_t queue_count, buffer_count;
	uint32_t inflight;
	uint64_t memory_used;
	struct hal_policy_partition view;
	/* Queues the policy has, and one more when it wants to see even one that is
	 * alone: without that, lone is offered and the policy has not been told yet. */
	uint32_t shown;
	struct hal_queue *lone;
	struct hal_timeline control; /* resizes that are done */
	uint64_t resize_count;
	struct busy busy;
	struct account past; /* of its destroyed queues */
};

/* hal_device.errands */
#define ERRAND_WORK    1u /* perhaps something on todo or dirty */
#define ERRAND_BLOCKED 2u /* something on blocked */
#define ERRAND_GRAVES  4u /* something on graves */

/* Something destroyed while submitted work used it. */
struct grave {
	struct list node;
	void (*bury)(void *object);
	void *object;
	uint32_t count;
	struct {
		struct hal_queue *queue;
		uint64_t submission;
	} until[];
};

struct hal_device {
	struct object obj;
	const struct backend *backend;
	void *bk;
	/* Touched by hal_submit. */
	_Atomic uint64_t now_cached; /* device time; 0 while the engine sleeps */
	_Atomic(struct hal_queue *) ready;
	atomic_int sleeping;
	bool virtual_clock;
	bool acted;      /* the engine has done something in this turn */
	uint8_t errands; /* ERRAND_*: what the lists below hold */
	/* Counted so that the engine makes room for threads that want the lock. */
	atomic_int lock_waiters;
	pthread_mutex_t lock; /* recursive: host callbacks may submit and signal */
	uint64_t now;
	atomic_bool slept; /* since the last turn */
	struct list partitions, programs;
	struct list todo;    /* queues with something to do that is not the device's */
	struct list dirty;   /* partitions to serve */
	struct list blocked; /* partitions whose device queue was full */
	struct list flights;
	struct list graves;
	uint32_t pending; /* flights, suspends and resizes the device owes us */
	uint32_t partition_count, program_count;
	atomic_uint timeline_count;
	uint32_t next_queue_id, next_timeline_id;
	_Atomic uint64_t ended;
	uint64_t ended_reported;
	struct hal_device_info info;
	uint32_t bk_suspend_modes; /* the device's own; info has the core's DRAIN too */
	uint64_t *partition_map;   /* index taken */
	struct config cfg;
	struct hal_bk_config *core_cfg, *bk_cfg, *policy_cfg;
	const struct hal_policy *policy;
	void *policy_state;
	uint32_t queue_slots, inflight, partition_inflight, spin_ns;
	struct busy busy;
	struct account past; /* of its destroyed partitions */
	struct trace *trace;
	struct layers *layers; /* NULL: the backend is called itself */
	char name[32];
	/* clock=real */
	pthread_t thread;
	bool has_thread;
	atomic_int stop, kick;
	int wake_fd, event_fd;
};

/* ---- device.c
 * ----------------------------------------------------------------------------- */

void device_lock(struct hal_device *dev);
void device_unlock(struct hal_device *dev);
/* Lets threads that wait for the lock have it. */
void device_yield(struct hal_device *dev);
/* -EDEADLK inside a host callback. */
int callback_refuse(const char *what);
void callback_run(struct hal_device *dev, hal_host_fn fn, void *user);

/* Runs bury(object) once all that is submitted now to queues of part (NULL: of the
 * device) has ended; at once when nothing is.  Under the lock. */
int grave_dig(struct hal_device *dev, struct hal_partition *part,
	      void (*bury)(void *object), void *object);
void grave_sweep(struct hal_device *dev);
/* queue is idle and goes away. */
void grave_forget(struct hal_device *dev, const struct hal_queue *queue);
/* All of queue's submissions up to this one have ended. */
bool queue_idle(const struct hal_queue *q, uint64_t submission);

/* ---- partition.c
 * -------------------------------------------------------------------------- */

int partition_charge(struct hal_partition *part, uint64_t bytes, const char *what);
void partition_release(struct hal_partition *part, uint64_t bytes);
void partition_moved(struct hal_partition *part, int status);
/* Bytes nobody has been promised. */
uint64_t device_memory_left(const struct hal_device *dev);

/* ---- program.c
 * ---------------------------------------------------------------------------- */

/* Slow path of hal_submit: makes prog ready to run in part. */
int program_bind(struct hal_program *prog, struct hal_partition *part);
void program_unbind_all(struct hal_partition *part);

/* ---- engine.c
 * ----------------------------------------------------------------------------- */

int engine_start(struct hal_device *dev);
void engine_stop(struct hal_device *dev);
/* The engine has something to look at that is in no ring. */
void engine_kick(struct hal_device *dev);
void engine_wake(struct hal_device *dev) __attribute__((cold));
/* Takes what has been submitted so far into account, and gives nothing to the device. */
void engine_intake(struct hal_device *dev);
int engine_resize(struct hal_partition *part, const struct hal_bk_partition_desc *desc);
/* Asks the device for its time. */
static inline void engine_now(struct hal_device *dev)
{
	dev->now = dev->backend->table.hot.now(dev->bk);
	atomic_store_explicit(&dev->now_cached, dev->now, memory_order_relaxed);
}

/* part may be able to take a command. */
static inline void engine_dirty(struct hal_partition *part)
{
	if (list_empty(&part->dirty))
		list_add_before(&part->dev->dirty, &part->dirty);
	part->dev->errands |= ERRAND_WORK;
}

/* q has a callback to run, or may go on. */
static inline void engine_todo(struct hal_queue *q)
{
	if (list_empty(&q->todo))
		list_add_before(&q->dev->todo, &q->todo);
	q->dev->errands |= ERRAND_WORK;
}

/* The device has let go of q, which was asked to suspend. */
void engine_quiet(struct hal_queue *q);

/* ---- flow.c
 * ------------------------------------------------------------------------------- */

/* Under the lock.  Turns: each takes submissions, gives commands, runs the device until
 * an event or until_ns, ends what ended.  False: nothing happened in the last one.  Goes
 * on while something does, until t reaches value or fails or somebody wants the lock; t
 * NULL: one turn. */
bool engine_run(struct hal_device *dev, uint64_t until_ns, const struct hal_timeline *t,
		uint64_t value);

static inline bool engine_step(struct hal_device *dev, uint64_t until_ns)
{
	return engine_run(dev, until_ns, NULL, 0);
}

/* Goes over what needs no device; offers the queue to the policy when its next command
 * does. */
void queue_advance(struct hal_queue *q);
/* Calls back, when that is what comes next; then advances. */
void queue_work(struct hal_queue *q);
/* Ends what is done, in order. */
void queue_retire(struct hal_queue *q);
/* Takes the queue back from the policy. */
void queue_withdraw(struct hal_queue *q);
/* Drops all that is in it; the device has nothing of it. */
void queue_abandon(struct hal_queue *q) __attribute__((cold));

/* ---- queue.c
 * ------------------------------------------------------------------------------ */

void queue_describe(const struct hal_queue *q, char *text, size_t size);
const char *record_name(const struct record *r);

static inline struct record *cursor_record(const struct hal_queue *q, union cursor c)
{
	struct record *r = &q->slots[c.pos & q->ring.mask];

	return LIKELY(r->cmd.op != REC_BLOCK) ? r : &r->block->rec[c.inner];
}

/* Past r, which c stands for. */
static inline void cursor_step(const struct hal_queue *q, union cursor *c,
			       const struct record *r)
{
	if (LIKELY((r->own & REC_INNER) == 0)) {
		c->pos += r->slots;
		return;
	}
	c->inner += r->slots;
	if (c->inner == q->slots[c->pos & q->ring.mask].block->slots) {
		c->pos++;
		c->inner = 0;
	}
}

static inline bool cursor_same(union cursor a, union cursor b)
{
	return a.both == b.both;
}

/* ---- the ring
 * -------------------------------------------------------------------------- */

/* Concurrency Kit's ring carries entries of one slot; ours may take several, so its ends
 * are moved by as many at once.  Its fences are assembly, which the thread sanitizer does
 * not see: it is told. */
#ifdef __SANITIZE_THREAD__
#define RING_ACQUIRE(p) __tsan_acquire(p)
#define RING_RELEASE(p) __tsan_release(p)
#else
#define RING_ACQUIRE(p) ((void)0)
#define RING_RELEASE(p) ((void)0)
#endif

/* The engine: where the submitting thread is. */
static inline unsigned int ring_tail(struct hal_queue *q)
{
	unsigned int tail = ck_pr_load_uint(&q->ring.p_tail);

	ck_pr_fence_load();
	RING_ACQUIRE(&q->ring.p_tail);
	return tail;
}

/* The engine: slots before pos may be written again. */
static inline void ring_release(struct hal_queue *q, unsigned int pos)
{
	RING_RELEASE(&q->ring.c_head);
	ck_pr_fence_load_store();
	ck_pr_store_uint(&q->ring.c_head, pos);
}

/* The submitting thread: where the engine is. */
static inline unsigned int ring_head(struct hal_queue *q)
{
	unsigned int head = ck_pr_load_uint(&q->ring.c_head);

	RING_ACQUIRE(&q->ring.c_head);
	return head;
}

/* The submitting thread: free slots behind its tail. */
static inline unsigned int ring_room(struct hal_queue *q)
{
	return q->ring.size - (q->ring.p_tail - ring_head(q));
}

static inline void ring_publish(struct hal_queue *q, unsigned int tail)
{
	RING_RELEASE(&q->ring.p_tail);
	ck_pr_fence_store();
	ck_pr_store_uint(&q->ring.p_tail, tail);
}

static inline uint64_t queue_commands(const struct hal_queue *q)
{
	return atomic_load_explicit(&q->submissions, memory_order_relaxed) +
	       atomic_load_explicit(&q->more_commands, memory_order_relaxed);
}

/* The next record that has not been given to the device; NULL: there is none. */
static inline struct record *queue_next(struct hal_queue *q)
{
	union cursor c = q->issue;

	return c.pos == ring_tail(q) ? NULL : cursor_record(q, c);
}

#endif
