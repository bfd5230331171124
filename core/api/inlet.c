/* SPDX-License-Identifier: Apache-2.0 */
/* inlet.c - take the records that another process submits; see inlet.h. */
#include "api/inlet.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "api/submit.h"
#include "api/write.h"
#include "command/flow.h"
#include "far/bell.h"
#include "loop/watch.h"
#include "util/fd.h"
#include "util/futex.h"
#include "util/log.h"

/* A load from a ring.  tests/unit/test_inlet.c counts them: none is repeated. */
#ifndef INLET_LOAD
#define INLET_LOAD(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define INLET_TAIL(p) atomic_load_explicit((p), memory_order_acquire)
#endif

_Static_assert(FAR_ARGS_MAX == INLINE_ARGS_MAX && FAR_RECORD_SLOTS == RECORD_SLOTS_MAX &&
		       (int)FAR_OP_WAIT == (int)REC_WAIT &&
		       (int)FAR_OP_SIGNAL == (int)REC_SIGNAL &&
		       (int)FAR_OP_HEAD == (int)REC_HEAD,
	       "records take the same slots in both rings");

/* A submission that is being taken. */
struct taking {
	struct far_view names;
	unsigned int begin, pos; /* of its first record, and of the next */
	uint32_t left;           /* slots from .pos on that are submitted */
	uint32_t commands;
	uint32_t phase; /* what its records have come to */
	bool whole;     /* its records have FAR_WHOLE */
};

/* The order of records in a submission. */
enum { PHASE_HEAD, PHASE_WAITS, PHASE_COMMANDS, PHASE_SIGNALS };

/* Copy words from a ring. */
static ALWAYS_INLINE void copy(uint64_t *to, const uint64_t *from, uint32_t words)
{
	for (uint32_t i = 0; i < words; i++)
		to[i] = INLET_LOAD(&from[i]);
}

/* Close in, whose other end has submitted what no correct library submits. */
static COLD void refuse(struct inlet *in, const char *why)
{
	atomic_store(&in->wrong, why);
	atomic_store(&in->told->open, 0);
	fd_signal(in->fd);
}

/* ---- records ----------------------------------------------------------------------- */

/* Copy argument i of a launch of k from the ring, check it and write it to *out. */
static ALWAYS_INLINE bool take_arg(const struct taking *t, const struct hal_queue *q,
				   const struct hal_kernel *k, const uint64_t *from,
				   struct hal_bk_arg *out, uint32_t i)
{
	struct hal_arg args[INLINE_ARGS_MAX]; /* of which only the i-th is used */
	const uint64_t *at = from + (size_t)3 * i;
	uint64_t handle = INLET_LOAD(&at[0]);

	_Static_assert(sizeof(struct hal_bk_arg) == 24, "it takes as much in both rings");
	args[i].offset = INLET_LOAD(&at[1]);
	args[i].bytes = INLET_LOAD(&at[2]);
	args[i].buffer = NULL;
	if (LIKELY(handle != 0)) {
		args[i].buffer = far_named(&t->names, handle, KIND_BUFFER);
		if (UNLIKELY(args[i].buffer == NULL))
			return false;
	}
	return write_arg(q->home, k, args, out, i);
}

/* Copy, check and write the count arguments of a launch of k.  Unrolled, as
 * write_inline_args. */
static ALWAYS_INLINE bool take_args(const struct taking *t, const struct hal_queue *q,
				    const struct hal_kernel *k, const uint64_t *from,
				    struct hal_bk_arg *out, uint32_t count)
{
#define CASE_ARG(n)                                                                      \
	case n:                                                                          \
		if (UNLIKELY(!take_arg(t, q, k, from, out, (n)-1)))                      \
			return false;                                                    \
		__attribute__((fallthrough))
	switch (count) {
		CASE_ARG(8);
		CASE_ARG(7);
		CASE_ARG(6);
		CASE_ARG(5);
		CASE_ARG(4);
		CASE_ARG(3);
		CASE_ARG(2);
		CASE_ARG(1);
	case 0:
		return true;
	default:
		return false;
	}
#undef CASE_ARG
}

/* Take the launch whose slot begins with head, and write it to r.  Return NULL, or why it
 * is refused. */
static ALWAYS_INLINE const char *take_launch(const struct inlet *in, struct taking *t,
					     union far_head head, uint32_t own,
					     struct record *r)
{
	const struct hal_queue *q = in->queue;
	const uint64_t *from = in->ring->slots[t->pos & q->slot_mask].words;
	uint32_t count = head.arg_count;
	union {
		uint64_t words[2];
		uint32_t of[4];
	} groups;
	struct hal_kernel *k;

	k = far_named(&t->names, INLET_LOAD(&from[1]), KIND_KERNEL);
	if (UNLIKELY(k == NULL || k->inline_args != count || k->user != q->dev))
		return "a launch of no kernel";
	if (UNLIKELY(k->slots > t->left))
		return "a launch is cut off";
	if (UNLIKELY(!is_bound(q, k)))
		return "a launch in a partition where its program is not";
	groups.words[0] = INLET_LOAD(&from[2]);
	groups.words[1] = INLET_LOAD(&from[3]);
	r->cmd.op = HAL_OP_LAUNCH;
	/* .flags of a kernel are those of a launch that is a whole submission. */
	r->cmd.flags = (head.flags & HAL_CMD_REPLAYABLE) |
		       (own == (REC_END | REC_WHOLE) ? k->flags
						     : record_flags(0, k->slots, own));
	r->submit_ns = q->dev->now;
	r->launch.kernel = k;
	r->cmd.launch.kernel = k->bk;
	r->cmd.launch.args = record_args(r);
	r->cmd.launch.arg_count = count;
	for (int i = 0; i < 3; i++)
		r->cmd.launch.groups[i] = groups.of[i] + (groups.of[i] == 0);
	if (UNLIKELY(!take_args(t, q, k, from + FAR_SLOT_WORDS, record_args(r), count)))
		return "an argument is invalid";
	t->pos += k->slots;
	t->left -= k->slots;
	return NULL;
}

/* Write the command s, which is no launch, to r. */
static const char *take_command(const struct inlet *in, struct taking *t,
				const struct far_slot *s, uint32_t own, struct record *r)
{
	struct hal_cmd c = {.op = s->op, .flags = s->flags};

	switch (s->op) {
	case HAL_OP_COPY:
		c.copy.dst = far_named(&t->names, s->copy.dst, KIND_BUFFER);
		c.copy.src = far_named(&t->names, s->copy.src, KIND_BUFFER);
		c.copy.dst_offset = s->copy.dst_offset;
		c.copy.src_offset = s->copy.src_offset;
		c.copy.bytes = s->copy.bytes;
		break;
	case HAL_OP_FILL:
		c.fill.dst = far_named(&t->names, s->fill.dst, KIND_BUFFER);
		c.fill.offset = s->fill.offset;
		c.fill.bytes = s->fill.bytes;
		c.fill.pattern = s->fill.pattern;
		break;
	case HAL_OP_TIMESTAMP:
		c.timestamp.dst = far_named(&t->names, s->timestamp.dst, KIND_BUFFER);
		c.timestamp.offset = s->timestamp.offset;
		break;
	case HAL_OP_NOP:
	case HAL_OP_BARRIER:
		break;
	default:
		return "there is no such operation";
	}
	if (write_command(in->queue, &c, 1, own, in->queue->dev->now, r) != 0)
		return "a command is invalid";
	t->pos++;
	t->left--;
	return NULL;
}

/* Write the points of s to r, and count them as pending. */
static const char *take_points(const struct inlet *in, struct taking *t,
			       const struct far_slot *s, uint32_t own, struct record *r)
{
	const struct hal_device *dev = in->queue->dev;
	const bool signals = s->op == FAR_OP_SIGNAL;
	struct hal_timeline *line[RECORD_POINTS] = {NULL};

	for (uint32_t i = 0; i < RECORD_POINTS; i++) {
		if (i > 0 && s->point[i].timeline == 0)
			break;
		line[i] = far_named(&t->names, s->point[i].timeline, KIND_TIMELINE);
		if (line[i] == NULL ||
		    (signals ? line[i]->raiser : line[i]->user) != dev ||
		    (signals && s->point[i].value == 0))
			return "a point is invalid";
	}
	write_common(r, s->op, 0, 1, own, dev->now);
	for (uint32_t i = 0; i < RECORD_POINTS; i++) {
		r->point[i] = (struct hal_point){line[i], s->point[i].value};
		if (line[i] != NULL)
			atomic_fetch_add(&line[i]->pending, 1);
	}
	t->pos++;
	t->left--;
	return NULL;
}

/* Write the header s to r. */
static const char *take_head(const struct inlet *in, struct taking *t,
			     const struct far_slot *s, uint32_t own, struct record *r)
{
	const struct hal_queue *q = in->queue;
	struct record_target to = {.base = r, .own = own, .now = q->dev->now};
	const struct hal_submit_desc d = {
		.flags = s->head.flags,
		.not_before_ns = s->head.not_before_ns,
		.deadline_ns = s->head.deadline_ns,
		.priority = s->head.priority,
		.tag = s->head.tag,
	};

	if ((own & (REC_END | REC_WHOLE)) != 0 || (d.flags & ~HAL_SUBMIT_PRIORITY) != 0 ||
	    (d.flags != 0 && d.priority > in->priority_max) ||
	    (d.deadline_ns != 0 && !in->deadlines) ||
	    (d.not_before_ns != 0 && (d.deadline_ns | q->default_terms.deadline_ns) != 0))
		return "a header is invalid";
	write_submission_header(&d, &to);
	t->pos++;
	t->left--;
	return NULL;
}

/* Return the phase of a record with that operation. */
static ALWAYS_INLINE uint32_t phase_of(uint32_t op)
{
	switch (op) {
	case FAR_OP_HEAD:
		return PHASE_HEAD;
	case FAR_OP_WAIT:
		return PHASE_WAITS;
	case FAR_OP_SIGNAL:
		return PHASE_SIGNALS;
	default:
		return PHASE_COMMANDS;
	}
}

/* Take the next record of t, whose slot begins with head.  Return NULL, or why it is
 * refused; set *last if it is the last of its submission. */
static const char *take_record(const struct inlet *in, struct taking *t,
			       union far_head head, bool *last)
{
	const struct hal_queue *q = in->queue;
	struct record *r = &q->slots[t->pos & q->slot_mask];
	const bool first = t->pos == t->begin, whole = (head.marks & FAR_WHOLE) != 0;
	uint32_t phase = phase_of(head.op), own;
	struct far_slot s;

	if (phase < t->phase || (phase == PHASE_HEAD && !first) ||
	    (!first && whole != t->whole))
		return "the records of a submission are out of order";
	t->phase = phase;
	t->whole = whole;
	t->commands += phase == PHASE_COMMANDS;
	*last = (head.marks & FAR_LAST) != 0;
	own = (*last ? REC_END : 0) | (whole ? REC_WHOLE : 0);
	if (whole && (t->commands > 1 || (*last && t->commands == 0)))
		return "a submission has not one command";
	if (head.op == HAL_OP_LAUNCH)
		return take_launch(in, t, head, own, r);
	s.words[0] = head.word;
	copy(&s.words[1], &in->ring->slots[t->pos & q->slot_mask].words[1],
	     FAR_SLOT_WORDS - 1);
	if (phase == PHASE_COMMANDS)
		return take_command(in, t, &s, own, r);
	return phase == PHASE_HEAD ? take_head(in, t, &s, own, r)
				   : take_points(in, t, &s, own, r);
}

/* ---- submissions ------------------------------------------------------------------- */

/* Uncount the points of a submission that is refused. */
static COLD void forget_points(const struct inlet *in, const struct taking *t)
{
	const struct hal_queue *q = in->queue;

	for (unsigned int pos = t->begin; pos != t->pos;) {
		const struct record *r = &q->slots[pos & q->slot_mask];

		if (record_has_points(r))
			record_for_each_point(p, r)
				atomic_fetch_sub(&p->timeline->pending, 1);
		pos += r->slots;
	}
}

/* Return the first word of the next slot of t. */
static ALWAYS_INLINE union far_head next_head(const struct inlet *in,
					      const struct taking *t)
{
	return (union far_head){
		.word = INLET_LOAD(
			&in->ring->slots[t->pos & in->queue->slot_mask].words[0])};
}

/* Take a whole submission, whose first slot begins with head.  Return NULL, or why it is
 * refused. */
static NOINLINE const char *take_submission(const struct inlet *in, struct taking *t,
					    union far_head head)
{
	const char *why;
	bool last = false;

	t->begin = t->pos;
	t->commands = 0;
	t->phase = PHASE_HEAD;
	for (;;) {
		why = take_record(in, t, head, &last);
		if (why != NULL || last)
			break;
		if (t->left == 0) {
			why = "a submission has no end";
			break;
		}
		head = next_head(in, t);
	}
	if (why != NULL) {
		forget_points(in, t);
		t->pos = t->begin;
	}
	return why;
}

/* What a launch that is a whole submission begins with, but for flags and arguments. */
static const union far_head usual_head = {.op = HAL_OP_LAUNCH,
					  .marks = FAR_LAST | FAR_WHOLE};
static const union far_head usual_mask = {.op = UINT32_MAX, .marks = UINT8_MAX};

/* Take the records up to tail. */
static void take_up_to(struct inlet *in, unsigned int tail)
{
	struct hal_queue *q = in->queue;
	struct taking t = {.names = far_view(in->names), .pos = queue_written(q)};
	uint64_t submissions = 0, commands = 0;
	const char *why = NULL;

	t.left = tail - t.pos;
	if (UNLIKELY(t.left > q->slot_count - (t.pos - atomic_load(&q->head))))
		why = "the tail of a ring has jumped";
	while (LIKELY(why == NULL) && t.left > 0) {
		union far_head head = next_head(in, &t);

		t.commands = 1;
		if (LIKELY((head.word & usual_mask.word) == usual_head.word))
			why = take_launch(in, &t, head, REC_END | REC_WHOLE,
					  &q->slots[t.pos & q->slot_mask]);
		else
			why = take_submission(in, &t, head);
		submissions += why == NULL;
		commands += why == NULL ? t.commands : 0;
	}
	counter_set(&q->submissions, counter_get(&q->submissions) + submissions);
	counter_set(&q->more_commands,
		    counter_get(&q->more_commands) + commands - submissions);
	queue_publish(q, t.pos);
	if (UNLIKELY(why != NULL))
		refuse(in, why);
}

static bool try_hold(struct inlet *in)
{
	return atomic_exchange_explicit(&in->taker, 1, memory_order_acquire) == 0;
}

/* Take what the ring has.  Engine only. */
static void take(struct inlet *in)
{
	unsigned int tail;

	if (atomic_load_explicit(&in->wrong, memory_order_relaxed) != NULL ||
	    !try_hold(in))
		return; /* whoever holds it rings when it releases it */
	tail = INLET_TAIL(&in->ring->tail);
	if (tail != atomic_load_explicit(&in->seen, memory_order_relaxed)) {
		take_up_to(in, tail);
		atomic_store_explicit(&in->seen, tail, memory_order_release);
	}
	atomic_store_explicit(&in->taker, 0, memory_order_release);
}

/* ---- the engine's side of waking ---------------------------------------------------- */

/* Take and accept the records of a ring, whose tail has changed. */
static void tail_changed(struct hal_device *dev, struct message *msg)
{
	struct hal_queue *q = container_of(msg, struct hal_queue, message);

	take(q->inlet);
	queue_accept(dev, q);
}

/* Watch the ring of q, whose message has been read.  That pays at once: without it the
 * next record comes by a bell, which takes two system calls and a thread's wake-up. */
static void watch_ring(struct hal_device *dev, struct hal_queue *q)
{
	struct inlet *in = q->inlet;

	if (dev->watch.possible && atomic_load(&in->wrong) == NULL &&
	    atomic_load_explicit(&in->told->announced, memory_order_relaxed) ==
		    ANNOUNCED_NOT)
		(void)watch_begin(dev, &q->message, &in->told->announced, &in->ring->tail,
				  WATCH_FENCED, tail_changed);
}

/* Handle the message of a queue with an inlet. */
static void inlet_message(struct hal_device *dev, struct message *msg)
{
	struct hal_queue *q = container_of(msg, struct hal_queue, message);

	watch_ring(dev, q);
	announce_again(&q->announced);
	/* Behind that: a bell whose message was refused, since this one was still under
	 * way, is answered here. */
	bell_answered(&q->inlet->told->again);
	tail_changed(dev, msg);
}

/* ---- the owner's side --------------------------------------------------------------- */

static int open_inlet(struct hal_device *dev, void *arg)
{
	struct inlet *in = arg;
	struct hal_queue *q = in->queue;

	(void)dev;
	q->inlet = in;
	q->told = in->told;
	q->slow |= SLOW_TOLD;
	q->message.fn = inlet_message;
	atomic_store(&in->told->head, 0);
	atomic_store(&in->told->value, 0);
	atomic_store(&in->told->announced, ANNOUNCED_NOT);
	atomic_store(&in->told->open, FAR_OPEN);
	return 0;
}

void inlet_serve(struct hal_device *dev)
{
	dev->for_processes = true;
	dev->lends = false;
}

bool inlet_run(struct hal_device *dev, bool (*over)(void *arg), void *arg,
	       uint64_t until_ns)
{
	/* Without an end, time passes with work alone. */
	const bool idle = until_ns != UINT64_MAX;

	for (;;) {
		bool is_over, did = true, time_is_up;

		engine_enter(dev);
		for (;;) {
			is_over = over(arg);
			time_is_up = dev->now >= until_ns;
			if (is_over || time_is_up || !did)
				break;
			did = engine_turn(dev, until_ns, idle);
		}
		engine_leave(dev);
		if (is_over || time_is_up)
			return true;
		if (atomic_load(&dev->command.callbacks_begun) == 0)
			return false;
		engine_callback_sleep(dev);
	}
}

int inlet_open(struct inlet *in)
{
	return engine_call(in->queue->dev, open_inlet, in);
}

void inlet_refuse(struct inlet *in, const char *why)
{
	const char *none = NULL;

	(void)atomic_compare_exchange_strong(&in->wrong, &none, why);
}

static int close_inlet(struct hal_device *dev, void *arg)
{
	struct inlet *in = arg;
	struct hal_queue *q = in->queue;

	inlet_refuse(in, "it is closed");
	watch_forget(dev, &q->message);
	q->slow &= ~SLOW_TOLD;
	q->told = NULL;
	return 0;
}

void inlet_close(struct inlet *in)
{
	(void)engine_call(in->queue->dev, close_inlet, in);
}

bool inlet_has(const struct inlet *in)
{
	return atomic_load_explicit(&in->wrong, memory_order_relaxed) == NULL &&
	       INLET_TAIL(&in->ring->tail) !=
		       atomic_load_explicit(&in->seen, memory_order_acquire);
}

/* Longest time for which a bell may have been under way. */
#define BELL_MOST_NS UINT64_C(1000000)

/* Send the message of the queue of in, which another thread has begun to at since_ns. */
static void announce(struct inlet *in, uint64_t since_ns)
{
	struct hal_queue *q = in->queue;

	if (announce_first(&q->announced))
		engine_post_for(q->dev, &q->message, since_ns);
}

void inlet_rung(struct inlet *in)
{
	uint64_t now = monotonic_ns(), since;

	if (!inlet_has(in)) {
		/* It has been taken already. */
		bell_answered(&in->told->again);
		if (!inlet_has(in))
			return;
	}
	since = INLET_LOAD(&in->ring->rung_ns);
	announce(in, now - since < BELL_MOST_NS ? since : now);
}

struct inlets {
	struct inlet *const *in;
	uint32_t count;
};

static int take_all(struct hal_device *dev, void *arg)
{
	const struct inlets *all = arg;

	for (uint32_t i = 0; i < all->count; i++) {
		take(all->in[i]);
		queue_accept(dev, all->in[i]->queue);
	}
	return 0;
}

void inlets_take(struct inlet *const *in, uint32_t count)
{
	struct inlets all = {in, count};

	if (count > 0)
		(void)engine_call(in[0]->queue->dev, take_all, &all);
}

static int pass(struct hal_device *dev, void *arg)
{
	(void)dev, (void)arg;
	return 0;
}

void inlet_pass(struct hal_device *dev)
{
	(void)engine_call(dev, pass, NULL);
}

void inlet_hold(struct inlet *in)
{
	if (inlet_has(in))
		inlets_take(&in, 1);
	while (!try_hold(in))
		(void)sched_yield();
	/* The records that have been taken since were not counted there. */
	in->queue->ring_limit = atomic_load(&in->queue->head) + in->queue->slot_count;
	if (inlet_has(in))
		refuse(in, "records were submitted during a request for the same queue");
}

void inlet_release(struct inlet *in)
{
	atomic_store(&in->taker, 0);
	atomic_thread_fence(memory_order_seq_cst);
	if (inlet_has(in))
		announce(in, monotonic_ns());
}
