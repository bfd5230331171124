/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - what an engine has written down (replay/journal.h), taken in by another.
 *
 * The device of this one is the journal: time, events and answers come from there, line
 * by line, and each decision is compared with the line that is next.  Letters are read
 * between its turns, in their order; nothing else is different from a device that is
 * open.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "api/opened.h"
#include "command/callback.h"
#include "command/flow.h"
#include "config/options.h"
#include "loop/engine.h"
#include "memory/recolor.h"
#include "replay/journal.h"
#include "sched/expect.h"
#include "sched/policy.h"
#include "sched/policy_text.h"
#include "sched/suspend.h"
#include "space/compact.h"
#include "space/resize.h"

#define BLOCK_SLOTS_MAX (1u << 20)
#define CALLS_MAX       64u /* callbacks one inside the other */
#define KERNEL_BUCKETS  256u
#define ERRNO_MAX       4095u

struct line {
	char kind;
	uint32_t count;
	uint64_t n[JOURNAL_NUMBERS];
	const char *text; /* behind the kind, up to text_end */
	const char *text_end;
};

/* Kernels are what policies know of them. */
struct kernel {
	struct kernel *next;
	struct hal_kernel kernel;
};

struct things {
	void **at; /* by number; NULL: gone */
	size_t count, room;
};

struct play {
	struct hal_device *dev;
	const char *path;
	char *text;
	const char *at, *end; /* of what has not been taken in */
	uint64_t number;      /* of the line at .at */
	struct line line;     /* the last one that was looked at */
	uint64_t current;     /* its number */
	bool parsed;
	struct recolor *recolor; /* of whose records the first has been read */
	bool over;               /* nothing is left, or nothing of it can be used */
	bool finishing;
	bool ended; /* its last line has been read */
	int err;
	char why[400]; /* hal_last_error() of .err */
	uint64_t now;
	unsigned int calls;
	uintptr_t handles;
	struct things queues, timelines;
	struct kernel *kernels[KERNEL_BUCKETS];
	struct hal_replay_info info;
};

static struct play *play_of(const struct hal_device *dev)
{
	return dev->hot_bk;
}

/* ---- lines ------------------------------------------------------------------------- */

static COLD void bad(struct play *p, int err, const char *what)
{
	/* Behind the first difference it may be that the rest makes no sense any more. */
	if (p->err == 0 && (err != EINVAL || p->info.mismatches == 0)) {
		p->err = -err;
		format_text(p->why, sizeof(p->why), "%s:%llu: %s", p->path,
			    U64(p->current), what);
	}
	p->over = true;
}

static COLD void mismatch(struct play *p, const char *what)
{
	int shown = (int)(p->line.text_end - p->line.text);

	if (p->over)
		return;
	if (p->info.mismatches++ != 0)
		return;
	p->info.line = p->current;
	format_text(p->info.mismatch, sizeof(p->info.mismatch),
		    "%s:%llu: \"%c%.*s\" is written, but %s", p->path, U64(p->current),
		    p->line.kind, shown < 80 ? shown : 80, p->line.text, what);
}

static bool parse_number(const char **at, const char *end, uint64_t *n)
{
	const char *c = *at;

	*n = 0;
	if (c == end || *c < '0' || *c > '9')
		return false;
	for (; c != end && *c >= '0' && *c <= '9'; c++) {
		uint64_t digit = (uint64_t)(*c - '0');

		if (*n > (UINT64_MAX - digit) / 10)
			return false;
		*n = *n * 10 + digit;
	}
	*at = c;
	return true;
}

static bool parse_numbers(struct line *l)
{
	const char *c = l->text;

	memset(l->n, 0, sizeof(l->n)); /* what an older journal does not say */
	l->count = 0;
	while (c != l->text_end) {
		if (*c++ != ' ' || l->count == JOURNAL_NUMBERS ||
		    !parse_number(&c, l->text_end, &l->n[l->count]))
			return false;
		l->count++;
	}
	return true;
}

/* How many numbers a line has: at least, at most. */
static const struct shape {
	char kind;
	uint8_t least, most;
} shapes[] = {
	{JOURNAL_DEVICE, 13, 18},   {JOURNAL_NOW, 1, 1},
	{JOURNAL_LOOK, 2, 2},       {JOURNAL_POLLED, 1, 1},
	{JOURNAL_DONE, 8, 8},       {JOURNAL_QUIET, 4, 6},
	{JOURNAL_MOVED, 2, 2},      {JOURNAL_LOST, 1, 1},
	{JOURNAL_RETURNED, 1, 1},   {JOURNAL_RAISED, 5, 5},
	{JOURNAL_TAKEN, 2, 2},      {JOURNAL_RECORD, 3, 11},
	{JOURNAL_PARTITION, 5, 10}, {JOURNAL_NO_PARTITION, 1, 1},
	{JOURNAL_QUEUE, 5, 7},      {JOURNAL_NO_QUEUE, 6, 6},
	{JOURNAL_TIMELINE, 1, 1},   {JOURNAL_NO_TIMELINE, 1, 1},
	{JOURNAL_SUSPEND, 2, 2},    {JOURNAL_RESUME, 1, 1},
	{JOURNAL_RESIZE, 7, 7},     {JOURNAL_ANSWER, 1, 1},
	{JOURNAL_COMPACT, 8, 8},    {JOURNAL_ROOM, 1, 1},
	{JOURNAL_SUBMIT, 4, 4},     {JOURNAL_STOP, 3, 3},
	{JOURNAL_START, 2, 2},      {JOURNAL_MOVE, 7, 7},
	{JOURNAL_LIMIT, 4, 4},      {JOURNAL_CALLED, 1, 1},
	{JOURNAL_KNOWN, 5, 5},      {JOURNAL_KNOWN_UNITS, 2, 2},
	{JOURNAL_KNOWN_STOP, 3, 3}, {JOURNAL_PROGRAMS, 2, 2},
	{JOURNAL_BESIDE, 3, 3},     {JOURNAL_USES, 2, 2},
	{JOURNAL_END, 0, 0},
};

/* Or what one goes by. */
static bool is_decision(char kind)
{
	return kind == JOURNAL_USES || kind == JOURNAL_SUBMIT || kind == JOURNAL_STOP ||
	       kind == JOURNAL_START || kind == JOURNAL_MOVE || kind == JOURNAL_LIMIT ||
	       kind == JOURNAL_CALLED;
}

static bool parse(struct line *l)
{
	if (l->kind == JOURNAL_HEAD || l->kind == JOURNAL_POLICY)
		return l->text != l->text_end && *l->text == ' ';
	for (size_t i = 0; i < ARRAY_LENGTH(shapes); i++)
		if (shapes[i].kind == l->kind)
			return parse_numbers(l) && l->count >= shapes[i].least &&
			       l->count <= shapes[i].most;
	return false;
}

/* Note where the text ends, if that is not behind the line that ends a journal. */
static COLD void cut_off(struct play *p)
{
	const char *where = p->at != p->end ? "in the middle of" : "before";

	if (p->ended)
		return;
	format_text(
		p->info.missing, sizeof(p->info.missing),
		"%s ends %s line %llu, at byte %llu, without the last line of a "
		"journal: its program was killed, still runs, or could not write; what "
		"came after is missing",
		p->path, where, U64(p->number), U64(p->end - p->text));
}

/* The next line; NULL: there is none.  One that does not end is not there yet. */
static const struct line *peek(struct play *p)
{
	const char *end;

	if (p->over)
		return NULL;
	if (p->parsed)
		return &p->line;
	end = p->at != NULL ? memchr(p->at, '\n', (size_t)(p->end - p->at)) : NULL;
	if (end == NULL) {
		cut_off(p);
		p->over = true;
		return NULL;
	}
	p->line = (struct line){
		.kind = *p->at, .text = p->at + (end != p->at), .text_end = end};
	p->current = p->number;
	if (p->ended) {
		bad(p, EINVAL, "this line comes after the last one of the journal");
		return NULL;
	}
	if (!parse(&p->line)) {
		bad(p, EINVAL, "not a line of a journal");
		return NULL;
	}
	p->parsed = true;
	return &p->line;
}

/* Of the kind that has to be next. */
static bool take_kind(struct play *p, enum journal_kind kind, struct line *out)
{
	const struct line *l = peek(p);

	if (l == NULL)
		return false;
	if (l->kind != (char)kind) {
		bad(p, EINVAL, "this line belongs elsewhere");
		return false;
	}
	*out = *l;
	p->at = l->text_end + 1;
	p->number++;
	p->parsed = false;
	return true;
}

static void take(struct play *p)
{
	struct line l;

	(void)take_kind(p, (enum journal_kind)p->line.kind, &l);
}

static bool small(struct play *p, uint64_t n, uint64_t most)
{
	if (n > most)
		bad(p, EINVAL, "a number is too large");
	return n <= most;
}

/* ---- things by number -------------------------------------------------------------- */

static bool things_add(struct play *p, struct things *t, void *thing)
{
	if (t->count == t->room) {
		size_t room = t->room != 0 ? t->room * 2 : 64;
		void **at = realloc(t->at, room * sizeof(*at));

		if (at == NULL) {
			bad(p, ENOMEM, "no memory for what is in it");
			return false;
		}
		t->at = at;
		t->room = room;
	}
	t->at[t->count++] = thing;
	return true;
}

static void *thing(struct play *p, const struct things *t, uint64_t number,
		   const char *what)
{
	if (number < t->count && t->at[number] != NULL)
		return t->at[number];
	bad(p, EINVAL, what);
	return NULL;
}

static struct hal_queue *queue_at(struct play *p, uint64_t number)
{
	return thing(p, &p->queues, number, "there is no such queue");
}

static struct hal_partition *partition_at(struct play *p, uint64_t index)
{
	hal_list_for_each (it, &p->dev->partitions) {
		struct hal_partition *part =
			container_of(it, struct hal_partition, on_device);

		if (part->desc.index == index)
			return part;
	}
	bad(p, EINVAL, "there is no such partition");
	return NULL;
}

static struct hal_timeline *control_at(struct play *p, uint64_t index, uint64_t older)
{
	struct hal_partition *part = partition_at(p, index);
	struct hal_timeline *t = part != NULL ? part->control : NULL;
	uint64_t count = 0;

	for (const struct hal_timeline *o = t; o != NULL && o->older != NULL;
	     o = o->older)
		count++;
	for (; t != NULL && count > older; count--)
		t = t->older;
	return t;
}

/* n is its name. */
static struct hal_timeline *timeline_at(struct play *p, const uint64_t *n)
{
	struct hal_queue *q;

	switch (n[0]) {
	case JOURNAL_OF_NOBODY:
		return thing(p, &p->timelines, n[1], "there is no such timeline");
	case JOURNAL_OF_QUEUE:
		q = queue_at(p, n[1]);
		return q != NULL ? &q->timeline : NULL;
	case JOURNAL_OF_SUSPENDS:
		q = queue_at(p, n[1]);
		return q != NULL ? &q->control : NULL;
	case JOURNAL_OF_PARTITION:
		return control_at(p, n[1], n[2]);
	default:
		bad(p, EINVAL, "there are no such timelines");
		return NULL;
	}
}

/* n: its work, its number in the profile and above that its program's, its engines and
 * above them its configuration. */
static struct hal_kernel *kernel_of(struct play *p, const uint64_t *n)
{
	uint64_t key = n[0] ^ n[1] << 32;
	struct kernel **at = &p->kernels[key * UINT64_C(0x9e3779b97f4a7c15) >> 56];
	const struct profile *profile = p->dev->profile;
	uint32_t number = (uint32_t)n[1];
	struct kernel *k = *at;

	if (number > (profile != NULL ? profile->count : 0)) {
		bad(p, EINVAL, "there is no such kernel");
		return NULL;
	}
	while (k != NULL &&
	       (k->kernel.info.work != n[0] || k->kernel.info.engines != (uint32_t)n[2] ||
		k->kernel.info.configuration != n[2] >> 32 ||
		k->kernel.program != n[1] >> 32 ||
		profile_number(profile, k->kernel.known) != number))
		k = k->next;
	if (k != NULL)
		return &k->kernel;
	k = calloc(1, sizeof(*k));
	if (k == NULL) {
		bad(p, ENOMEM, "no memory for what is in it");
		return NULL;
	}
	format_text(k->kernel.info.name, sizeof(k->kernel.info.name), "kernel");
	k->kernel.info.work = n[0];
	k->kernel.info.engines = (uint32_t)n[2];
	k->kernel.info.configuration = (uint32_t)(n[2] >> 32);
	k->kernel.program = (uint32_t)(n[1] >> 32);
	k->kernel.known = number != 0 ? &profile->kernels[number - 1] : NULL;
	k->next = *at;
	*at = k;
	return &k->kernel;
}

/* ---- decisions --------------------------------------------------------------------- */

/* The engine has decided on kind and n[0..count): is it that?  The answer then was, or
 * else_, if there is nothing to compare with. */
static int decide(struct play *p, enum journal_kind kind, const uint64_t *n,
		  uint32_t count, int otherwise)
{
	const struct line *l = peek(p);
	char text[160];
	size_t used;
	int err;

	if (l == NULL)
		return otherwise;
	p->info.decisions++;
	if (l->kind == (char)kind && memcmp(l->n, n, count * sizeof(*n)) == 0) {
		err = l->n[count] <= ERRNO_MAX ? -(int)l->n[count] : -EIO;
		take(p);
		return err;
	}
	format_text(text, sizeof(text), "the engine decides on \"%c", (char)kind);
	for (uint32_t i = 0; i < count; i++) {
		used = strlen(text);
		format_text(text + used, sizeof(text) - used, " %llu", U64(n[i]));
	}
	used = strlen(text);
	format_text(text + used, sizeof(text) - used, "\"");
	mismatch(p, text);
	if (l->kind != (char)kind)
		return 0;
	err = l->n[count] <= ERRNO_MAX ? -(int)l->n[count] : -EIO;
	take(p);
	return err;
}

/* ---- the device -------------------------------------------------------------------- */

static uint64_t replay_now(void *bk)
{
	struct play *p = bk;
	const struct line *l = peek(p);

	if (l == NULL || l->kind != JOURNAL_NOW)
		return p->now;
	p->now = l->n[0];
	p->info.inputs++;
	take(p);
	return p->now;
}

static int replay_submit(void *bk, void *queue, const struct hal_bk_cmd *cmd)
{
	const struct flight *f =
		(void *)(uintptr_t)cmd->cookie; /* NOLINT(*-int-to-ptr) */
	const struct hal_queue *q = f->queue;
	const uint64_t n[] = {q->obj.id, q->issue.pos, q->issue.inner};

	(void)queue;
	return decide(bk, JOURNAL_SUBMIT, n, ARRAY_LENGTH(n), -EAGAIN);
}

static int replay_suspend(void *bk, void *queue, uint32_t mode, uint64_t cookie)
{
	const struct hal_queue *q = (void *)(uintptr_t)cookie; /* NOLINT(*-int-to-ptr) */
	const uint64_t n[] = {q->obj.id, mode};

	(void)queue;
	return decide(bk, JOURNAL_STOP, n, ARRAY_LENGTH(n), 0);
}

static int replay_resume(void *bk, void *queue)
{
	struct play *p = bk;
	const uint64_t n[] = {journal_queue_of(p->dev, queue)->obj.id};

	return decide(p, JOURNAL_START, n, ARRAY_LENGTH(n), 0);
}

static int replay_resize(void *bk, void *part, const struct hal_bk_partition_desc *d,
			 uint64_t cookie)
{
	const uint64_t n[] = {d->index, d->row, d->col, d->rows, d->cols, d->units};

	(void)part, (void)cookie;
	return decide(bk, JOURNAL_MOVE, n, ARRAY_LENGTH(n), 0);
}

static int replay_limit(void *bk, void *part, uint64_t bytes, uint64_t window_ns)
{
	struct play *p = bk;
	const uint64_t n[] = {journal_partition_of(p->dev, part)->desc.index, bytes,
			      window_ns};

	return decide(p, JOURNAL_LIMIT, n, ARRAY_LENGTH(n), 0);
}

/* True: it has been told already, in this look. */
static bool among(const struct hal_bk_event *ev, uint32_t count, uint64_t cookie)
{
	for (uint32_t i = 0; i < count; i++)
		if (ev[i].cookie == cookie)
			return true;
	return false;
}

static bool is_done(const struct line *l, struct hal_queue *q,
		    const struct hal_bk_event *before, uint32_t count,
		    struct hal_bk_event *ev)
{
	struct flight *f = q->oldest;
	uint32_t i = 0;

	for (; i < q->flight_count; i++, f = f->next)
		if (f->at.pos == l->n[1] && f->at.inner == l->n[2])
			break;
	if (i == q->flight_count || f->done || q->frozen != 0 ||
	    among(before, count, (uint64_t)(uintptr_t)f))
		return false;
	ev->cookie = (uint64_t)(uintptr_t)f;
	ev->kind = HAL_BK_DONE;
	ev->status = l->n[3] <= ERRNO_MAX ? -(int32_t)l->n[3] : -EIO;
	ev->start_ns = l->n[4];
	ev->end_ns = l->n[5];
	ev->bytes_read = l->n[6];
	ev->bytes_written = l->n[7];
	return true;
}

static bool is_quiet(const struct line *l, struct hal_queue *q,
		     const struct hal_bk_event *before, uint32_t count,
		     struct hal_bk_event *ev)
{
	const struct flight *f = q->oldest;

	ev->cookie = (uint64_t)(uintptr_t)q;
	ev->kind = HAL_BK_QUIET;
	ev->status = l->n[1] <= ERRNO_MAX ? -(int32_t)l->n[1] : -EIO;
	ev->bytes_read = l->n[2];
	ev->bytes_written = l->n[3];
	ev->start_ns = l->n[4];
	ev->end_ns = l->n[5];
	if (!q->bk_suspended || q->state != QUEUE_SUSPENDING ||
	    among(before, count, ev->cookie))
		return false;
	/* What is killed has ended before. */
	for (uint32_t i = 0; i < q->flight_count; i++, f = f->next)
		if (q->suspend_mode == HAL_SUSPEND_KILL && !f->done && !f->killed &&
		    !among(before, count, (uint64_t)(uintptr_t)f))
			return false;
	return true;
}

static bool is_moved(const struct line *l, const struct hal_partition *part,
		     const struct hal_bk_event *before, uint32_t count,
		     struct hal_bk_event *ev)
{
	ev->cookie = (uint64_t)(uintptr_t)part | COOKIE_PARTITION;
	ev->kind = HAL_BK_QUIET;
	ev->status = l->n[1] <= ERRNO_MAX ? -(int32_t)l->n[1] : -EIO;
	return part->moving.units != 0 && !among(before, count, ev->cookie);
}

/* The next event, behind count others.  False: the device owes none such. */
static bool read_event(struct play *p, const struct hal_bk_event *before, uint32_t count,
		       struct hal_bk_event *ev)
{
	const struct line *l = peek(p);
	struct hal_partition *part;
	struct hal_queue *q;

	memset(ev, 0, sizeof(*ev));
	if (l == NULL)
		return false;
	switch (l->kind) {
	case JOURNAL_DONE:
		q = queue_at(p, l->n[0]);
		return q != NULL && is_done(l, q, before, count, ev);
	case JOURNAL_QUIET:
		q = queue_at(p, l->n[0]);
		return q != NULL && is_quiet(l, q, before, count, ev);
	case JOURNAL_MOVED:
		part = partition_at(p, l->n[0]);
		return part != NULL && is_moved(l, part, before, count, ev);
	default:
		bad(p, EINVAL, "not an event");
		return false;
	}
}

static int replay_poll(void *bk, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct play *p = bk;
	const struct line *l = peek(p);
	uint32_t count = 0;
	uint64_t left;

	(void)until_ns;
	if (l == NULL) /* at the end of it all, what is left is lost */
		return p->finishing ? fail(ENODEV, "the journal ends") : 0;
	if (l->kind == JOURNAL_LOST) {
		p->info.inputs++;
		take(p);
		return fail(ENODEV, "the device was lost");
	}
	if (l->kind != JOURNAL_POLLED) {
		mismatch(p, "the engine looks at the device");
		return 0;
	}
	left = l->n[0];
	if (!small(p, left, max))
		return 0;
	take(p);
	for (; left > 0; left--) {
		if (read_event(p, ev, count, &ev[count]))
			count++;
		else
			mismatch(p, "the device has nothing such");
		if (p->over)
			break;
		p->info.inputs++;
		take(p);
	}
	return (int)count;
}

static int made(struct play *p, void **handle)
{
	*handle = (void *)++p->handles; /* NOLINT(*-int-to-ptr): never followed */
	return 0;
}

static int replay_partition_create(void *bk, const struct hal_bk_partition_desc *desc,
				   void **part)
{
	(void)desc;
	return made(bk, part);
}

static int replay_queue_create(void *bk, void *part, int32_t priority, void **queue)
{
	(void)part, (void)priority;
	return made(bk, queue);
}

static int replay_destroy(void *bk, void *handle)
{
	(void)bk, (void)handle;
	return 0;
}

static void replay_close(void *bk)
{
	(void)bk;
}

static const struct hal_backend journal_backend = {
	.size = sizeof(struct hal_backend),
	.abi = HAL_BACKEND_ABI,
	.name = "journal",
	.cold =
		{
			.close = replay_close,
			.partition_create = replay_partition_create,
			.partition_destroy = replay_destroy,
			.queue_create = replay_queue_create,
			.queue_destroy = replay_destroy,
		},
	.hot =
		{
			.submit = replay_submit,
			.poll = replay_poll,
			.now = replay_now,
			.suspend = replay_suspend,
			.resume = replay_resume,
			.resize = replay_resize,
			.limit = replay_limit,
		},
};

/* ---- where the engine asks --------------------------------------------------------- */

static void replay(struct play *p, const struct hal_queue *until);

static void player_look(struct hal_device *dev, uint64_t until_ns, bool idle)
{
	struct play *p = play_of(dev);
	const struct line *l;

	(void)until_ns, (void)idle;
	for (l = peek(p); l != NULL && is_decision(l->kind); l = peek(p)) {
		mismatch(p, "the engine does not decide that");
		take(p);
	}
	if (l == NULL)
		return;
	p->info.turns++;
	if (l->kind == JOURNAL_LOOK)
		take(p);
	else
		mismatch(p, "the engine is about to look at the device");
}

static bool player_call(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;
	struct play *p = play_of(dev);
	const uint64_t n[] = {q->obj.id};
	const struct line *l = peek(p);
	bool known = l != NULL && l->kind == JOURNAL_CALLED && l->n[0] == n[0];

	if (p->finishing)
		return true;
	/* It has no answer: whatever stands behind the number is not there. */
	(void)decide(p, JOURNAL_CALLED, n, ARRAY_LENGTH(n), 0);
	if (!dev->virtual_clock)
		return false;
	if (!known)
		return true;
	if (p->calls >= CALLS_MAX)
		bad(p, ENOTSUP, "too many callbacks one inside the other");
	p->calls++;
	replay(p, q);
	p->calls--;
	return true;
}

static void player_gone(struct hal_device *dev, const uint64_t *n, uint32_t count)
{
	struct play *p = play_of(dev);
	const struct line *l = peek(p);
	char text[160];

	if (l == NULL || memcmp(l->n, n, count * sizeof(*n)) == 0)
		return;
	format_text(text, sizeof(text),
		    "it has %llu completed, %llu failed, %llu dropped, ran %llu ns, "
		    "queued %llu ns",
		    U64(n[1]), U64(n[2]), U64(n[3]), U64(n[4]), U64(n[5]));
	mismatch(p, text);
}

static bool player_uses(const struct hal_queue *q)
{
	struct play *p = play_of(q->dev);
	struct line l;

	if (p->finishing || !take_kind(p, JOURNAL_USES, &l))
		return false;
	p->info.inputs++;
	if (l.n[0] != q->obj.id)
		mismatch(p, "the engine asks about another queue");
	return l.n[1] != 0;
}

static const struct player player = {
	.look = player_look,
	.call = player_call,
	.gone = player_gone,
	.uses = player_uses,
};

/* ---- inputs ------------------------------------------------------------------------ */

/* The look of the turn that begins here tells how far it went.  NULL: there is none. */
static bool find_look(const struct play *p, struct line *out)
{
	const char *at = p->at;
	unsigned int depth = 0;

	while (at != p->end) {
		const char *end = memchr(at, '\n', (size_t)(p->end - at));

		if (end == NULL)
			return false;
		if (depth == 0 && *at == JOURNAL_LOOK) {
			*out = (struct line){
				.kind = *at, .text = at + 1, .text_end = end};
			return parse(out);
		}
		/* What happens while a callback runs is no part of this turn. */
		if (*at == JOURNAL_CALLED && p->dev->virtual_clock)
			depth++;
		else if (*at == JOURNAL_RETURNED && depth > 0)
			depth--;
		else if (depth == 0 && !is_decision(*at))
			return false;
		at = end + 1;
	}
	return false;
}

static void play_turn(struct play *p)
{
	struct line look;
	const char *at = p->at;

	if (find_look(p, &look))
		(void)engine_turn(p->dev, look.n[0], look.n[1] != 0);
	else
		(void)engine_turn(p->dev, 0, false);
	if (p->at == at && peek(p) != NULL) {
		mismatch(p, "the engine does nothing such");
		take(p);
	}
}

static void play_now(struct play *p)
{
	device_now(p->dev);
}

/* What a call answered is the next line but for what was decided in it. */
static bool find_answer(const struct play *p, uint64_t *err)
{
	const char *at = p->at;

	while (at != p->end) {
		const char *end = memchr(at, '\n', (size_t)(p->end - at));
		struct line l;

		if (end == NULL)
			return false;
		l = (struct line){.kind = *at, .text = at + (end != at), .text_end = end};
		if (l.kind == JOURNAL_ANSWER && parse(&l)) {
			*err = l.n[0];
			return true;
		}
		if (!is_decision(l.kind))
			return false;
		at = end + 1;
	}
	return false;
}

static void compare_answer(struct play *p, int err)
{
	const struct line *l = peek(p);
	char text[300];

	for (; l != NULL && is_decision(l->kind); l = peek(p)) {
		mismatch(p, "the engine does not decide that");
		take(p);
	}
	if (l == NULL)
		return;
	if (l->kind != JOURNAL_ANSWER) {
		bad(p, EINVAL, "the call before it has no answer");
		return;
	}
	if (l->n[0] != journal_error(err)) {
		format_text(text, sizeof(text), "the engine answers %d%s%s", err,
			    err != 0 ? ": " : "", err != 0 ? hal_last_error() : "");
		mismatch(p, text);
	}
	take(p);
}

/* What r has of points is not pending any more. */
static void drop_points(const struct record *r)
{
	if (!record_has_points(r))
		return;
	record_for_each_point(point, r) atomic_fetch_sub(&point->timeline->pending, 1);
}

static bool fill_points(struct play *p, const uint64_t *n, uint32_t count,
			struct record *r)
{
	for (uint32_t i = 0; i < count; i++, n += 4) {
		struct hal_timeline *t = timeline_at(p, n);

		if (t == NULL) {
			drop_points(r);
			return false;
		}
		atomic_fetch_add(&t->pending, 1);
		r->point[i] = (struct hal_point){t, n[3]};
	}
	return true;
}

static bool fill_record(struct play *p, const struct line *l, uint32_t own_wanted,
			struct record *r)
{
	static const struct {
		uint32_t op, least, most;
	} ops[] = {
		{HAL_OP_NOP, 0, 0},       {HAL_OP_COPY, 0, 0}, {HAL_OP_FILL, 0, 0},
		{HAL_OP_LAUNCH, 1, 3},    {HAL_OP_HOST, 0, 0}, {HAL_OP_BARRIER, 0, 0},
		{HAL_OP_TIMESTAMP, 0, 0}, {REC_WAIT, 4, 8},    {REC_SIGNAL, 4, 8},
		{REC_HEAD, 5, 5},         {REC_BLOCK, 1, 1},   {REC_RECOLOR, 0, 0},
		{REC_RECOLORED, 0, 0},
	};
	const uint64_t *n = &l->n[3];
	size_t i = 0;

	memset(r, 0, sizeof(*r));
	while (i < ARRAY_LENGTH(ops) && ops[i].op != l->n[0])
		i++;
	if (i == ARRAY_LENGTH(ops) ||
	    (l->count != 3 + ops[i].least && l->count != 3 + ops[i].most) ||
	    l->n[1] > UINT32_MAX) {
		bad(p, EINVAL, "not a record");
		return false;
	}
	r->cmd.op = (uint32_t)l->n[0];
	r->cmd.flags = (uint32_t)l->n[1];
	r->submit_ns = l->n[2];
	if ((r->own & REC_INNER) != own_wanted || r->slots == 0 ||
	    (own_wanted != 0 && r->cmd.op > REC_BLOCK) ||
	    (r->cmd.op != HAL_OP_LAUNCH && r->slots != 1)) {
		bad(p, EINVAL, "not a record that can be there");
		return false;
	}
	switch (r->cmd.op) {
	case HAL_OP_LAUNCH:
		r->launch.kernel = kernel_of(p, n);
		return r->launch.kernel != NULL;
	case REC_WAIT:
	case REC_SIGNAL:
		return fill_points(p, n, (l->count - 3) / 4, r);
	case REC_HEAD:
		r->head.not_before_ns = n[0];
		r->head.deadline_ns = n[1];
		r->head.tag = n[2];
		r->head.priority = (int32_t)(uint32_t)n[3];
		r->head.flags = (uint32_t)n[4];
		return true;
	default:
		return true;
	}
}

static bool read_record(struct play *p, uint32_t own_wanted, struct record *r,
			uint64_t *slots)
{
	struct line l;

	if (!take_kind(p, JOURNAL_RECORD, &l))
		return false;
	if (!fill_record(p, &l, own_wanted, r))
		return false;
	p->info.inputs++;
	*slots = r->cmd.op == REC_BLOCK ? l.n[3] : 0;
	return true;
}

static void block_drop(struct block *b, uint32_t slots)
{
	for (uint32_t i = 0; i < slots; i += b->rec[i].slots)
		drop_points(&b->rec[i]);
	free(b);
}

static struct block *read_block(struct play *p, uint64_t slots)
{
	struct block *b;
	uint32_t at = 0;

	if (slots == 0 || slots > BLOCK_SLOTS_MAX) {
		bad(p, EINVAL, "not so many slots");
		return NULL;
	}
	b = malloc(sizeof(*b) + ((size_t)slots + UINT8_MAX) * sizeof(struct record));
	if (b == NULL) {
		bad(p, ENOMEM, "no memory for what is in it");
		return NULL;
	}
	atomic_init(&b->refs, 1);
	b->slots = (uint32_t)slots;
	while (at < slots) {
		uint64_t none;

		if (!read_record(p, REC_INNER, &b->rec[at], &none)) {
			block_drop(b, at);
			return NULL;
		}
		at += b->rec[at].slots;
		if (at > slots || none != 0) {
			bad(p, EINVAL, "the record does not fit its block");
			block_drop(b, at);
			return NULL;
		}
	}
	return b;
}

/* The first of the two records that belong together makes what they are about. */
static bool fill_recolor(struct play *p, struct hal_queue *q, struct record *r)
{
	if (r->cmd.op == REC_RECOLOR) {
		r->recolor = recolor_make(q, NULL, NULL, NULL);
		if (r->recolor == NULL)
			bad(p, ENOMEM, "no memory for it");
	} else if (p->recolor != NULL && p->recolor->queue == q) {
		r->recolor = p->recolor;
		r->recolor->refs++;
	} else {
		bad(p, EINVAL, "no buffer of this queue is about to move");
	}
	p->recolor = r->cmd.op == REC_RECOLOR ? r->recolor : NULL;
	return r->recolor != NULL;
}

/* Into the ring at pos, of which the engine does not know yet. */
static bool place_record(struct play *p, struct hal_queue *q, unsigned int *pos)
{
	unsigned int room = q->ring.size - (*pos - ring_head(&q->ring));
	struct record *r = &q->slots[*pos & q->ring.mask];
	struct record fresh;
	uint64_t block;

	if (!read_record(p, 0, &fresh, &block))
		return false;
	if (fresh.slots > room || fresh.slots > RECORD_SLOTS_MAX) {
		bad(p, EINVAL, "the queue has no room for it");
		drop_points(&fresh);
		return false;
	}
	if (fresh.cmd.op == REC_BLOCK) {
		fresh.block = read_block(p, block);
		if (fresh.block == NULL)
			return false;
	}
	if (fresh.cmd.op > REC_BLOCK && !fill_recolor(p, q, &fresh))
		return false;
	*r = fresh;
	*pos += fresh.slots;
	return true;
}

static void play_taken(struct play *p)
{
	struct line l;
	struct hal_queue *q;
	unsigned int pos;

	if (!take_kind(p, JOURNAL_TAKEN, &l))
		return;
	q = queue_at(p, l.n[0]);
	if (q == NULL)
		return;
	pos = q->ring.p_tail;
	p->recolor = NULL;
	for (uint64_t i = 0; i < l.n[1]; i++)
		if (!place_record(p, q, &pos))
			break;
	p->recolor = NULL;
	ring_publish(&q->ring, pos);
	queue_letter(p->dev, &q->letter);
}

static void play_raised(struct play *p)
{
	struct line l;
	struct hal_timeline *t;

	if (!take_kind(p, JOURNAL_RAISED, &l))
		return;
	t = timeline_at(p, l.n);
	if (t == NULL || !small(p, l.n[4], ERRNO_MAX))
		return;
	p->info.inputs++;
	atomic_store(&t->value, l.n[3]);
	if (l.n[4] != 0 && timeline_error(t) == 0) {
		t->plain.err = -(int)l.n[4];
		t->plain.text = "it failed elsewhere";
		atomic_store(&t->stuck, &t->plain);
	}
	timeline_read(t, l.n[3], -(int)l.n[4]);
}

static void play_returned(struct play *p)
{
	struct hal_queue *q = queue_at(p, p->line.n[0]);

	if (q == NULL)
		return;
	if (p->dev->virtual_clock) {
		bad(p, ENOTSUP, "callbacks of a virtual clock that overlap");
		return;
	}
	if (!q->in_callback) {
		mismatch(p, "nothing is being called back");
		take(p);
		return;
	}
	p->info.inputs++;
	take(p);
	queue_called(q);
}

static void play_partition(struct play *p)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *part;
	struct line l;

	if (!take_kind(p, JOURNAL_PARTITION, &l))
		return;
	p->info.inputs++;
	for (int i = 1; i < 5; i++)
		if (!small(p, l.n[i], UINT16_MAX))
			return;
	d.row = (uint16_t)l.n[1];
	d.col = (uint16_t)l.n[2];
	d.rows = (uint16_t)l.n[3];
	d.cols = (uint16_t)l.n[4];
	d.units_ceiling = l.count > 5 ? (uint32_t)l.n[5] : 0;
	if (l.count == 8) {
		d.host = partition_at(p, l.n[7]);
		if (d.host == NULL)
			return;
	}
	if (hal_partition_create(p->dev, &d, &part) != 0) {
		bad(p, EINVAL, hal_last_error());
		return;
	}
	part->pinned = (l.n[6] & JOURNAL_PINNED) != 0;
	part->bimodal = (l.n[6] & JOURNAL_BIMODAL) != 0;
	part->limit_bytes = l.n[8];
	part->limit_window_ns = l.n[9];
	if (part->desc.index != l.n[0])
		mismatch(p, "the partition has another number");
}

static void play_no_partition(struct play *p)
{
	struct hal_partition *part = partition_at(p, p->line.n[0]);

	if (part == NULL)
		return;
	p->info.inputs++;
	if (hal_partition_destroy(part) != 0)
		mismatch(p, hal_last_error());
	take(p);
}

static void play_queue(struct play *p)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_partition *part;
	struct hal_queue *q;
	struct line l;

	if (!take_kind(p, JOURNAL_QUEUE, &l))
		return;
	part = partition_at(p, l.n[1]);
	if (part == NULL || !small(p, l.n[2], UINT32_MAX) ||
	    !small(p, l.n[4], UINT32_MAX) || !small(p, l.n[5], UINT16_MAX) ||
	    !small(p, l.n[6], UINT16_MAX))
		return;
	p->info.inputs++;
	d.priority = (int32_t)(uint32_t)l.n[2];
	d.deadline_ns = l.n[3];
	d.weight = (uint32_t)l.n[4];
	d.service_class = (uint16_t)l.n[5];
	d.budget_permille = (uint16_t)l.n[6];
	if (l.n[0] != p->queues.count || hal_queue_create(part, &d, &q) != 0) {
		bad(p, EINVAL, "no queue can be made of it");
		return;
	}
	if (!things_add(p, &p->queues, q))
		(void)hal_queue_destroy(q);
}

static void play_no_queue(struct play *p)
{
	uint64_t id = p->line.n[0];
	struct hal_queue *q = queue_at(p, id);

	if (q == NULL)
		return;
	p->info.inputs++;
	if (hal_queue_destroy(q) != 0)
		mismatch(p, hal_last_error());
	else
		p->queues.at[id] = NULL;
	take(p);
}

static void play_timeline(struct play *p)
{
	struct hal_timeline *t;

	p->info.inputs++;
	if (p->line.n[0] != p->timelines.count || hal_timeline_create(p->dev, &t) != 0) {
		bad(p, EINVAL, "no timeline can be made of it");
		return;
	}
	if (!things_add(p, &p->timelines, t))
		(void)hal_timeline_destroy(t);
	take(p);
}

static void play_no_timeline(struct play *p)
{
	uint64_t id = p->line.n[0];
	struct hal_timeline *t = thing(p, &p->timelines, id, "there is no such timeline");

	if (t == NULL)
		return;
	p->info.inputs++;
	if (hal_timeline_destroy(t) != 0)
		mismatch(p, hal_last_error());
	else
		p->timelines.at[id] = NULL;
	take(p);
}

static void play_suspend(struct play *p)
{
	struct hal_queue *q;
	struct line l;

	if (!take_kind(p, JOURNAL_SUSPEND, &l))
		return;
	q = queue_at(p, l.n[0]);
	if (q == NULL || !small(p, l.n[1], UINT32_MAX))
		return;
	p->info.inputs++;
	compare_answer(p, suspend_ask(q, (uint32_t)l.n[1] & ~HAL_SUSPEND_FINAL,
				      (l.n[1] & HAL_SUSPEND_FINAL) != 0));
}

static void play_resume(struct play *p)
{
	struct hal_queue *q;
	struct line l;

	if (!take_kind(p, JOURNAL_RESUME, &l))
		return;
	q = queue_at(p, l.n[0]);
	if (q == NULL)
		return;
	p->info.inputs++;
	compare_answer(p, suspend_end(q));
}

/* What M and C say of a partition, at n. */
static bool read_units(struct play *p, const uint64_t *n, struct hal_partition_desc *d)
{
	for (int i = 0; i < 6; i++)
		if (!small(p, n[i], i < 2 ? UINT32_MAX : UINT16_MAX))
			return false;
	d->units_floor = (uint32_t)n[0];
	d->units_ceiling = (uint32_t)n[1];
	d->row = (uint16_t)n[2];
	d->col = (uint16_t)n[3];
	d->rows = (uint16_t)n[4];
	d->cols = (uint16_t)n[5];
	return true;
}

/* True: what was asked for was refused before the device was asked.  That may have been
 * for want of memory, or of isolation, of which nothing is known here, and has changed
 * nothing; the answer is taken. */
static bool refused(struct play *p)
{
	const struct line *next = peek(p);

	if (next == NULL)
		return true;
	p->info.inputs++;
	if (next->kind != JOURNAL_ANSWER || next->n[0] == 0)
		return false;
	take(p);
	return true;
}

static void play_resize(struct play *p)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *part;
	struct line l;

	if (!take_kind(p, JOURNAL_RESIZE, &l))
		return;
	part = partition_at(p, l.n[0]);
	if (part != NULL && read_units(p, &l.n[1], &d) && !refused(p))
		compare_answer(p, resize_begin(part, &d));
}

static void play_compact(struct play *p)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	const struct hal_partition *part = NULL;
	struct line l;

	if (!take_kind(p, JOURNAL_COMPACT, &l))
		return;
	if (l.n[0] != 0) {
		part = partition_at(p, l.n[0] - 1);
		if (part == NULL)
			return;
	}
	if (read_units(p, &l.n[1], &d) && small(p, l.n[7], UINT32_MAX) && !refused(p))
		compare_answer(p, compact_begin(p->dev, part, &d, (uint32_t)l.n[7]));
}

static void play_room(struct play *p)
{
	p->info.inputs++;
	take(p);
	compact_over(p->dev);
}

/* ---- policies ---------------------------------------------------------------------- */

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The words of a policy's line, in place in text, where %XX becomes what it stands for.
 */
static void split_policy(char *text, const char **words, size_t max)
{
	char *to = text;
	size_t count = 0;

	words[count++] = text;
	for (const char *c = text; *c != '\0'; c++) {
		if (*c == ' ') {
			*to++ = '\0';
			if (count < max)
				words[count++] = to;
		} else if (*c == '%' && hex(c[1]) >= 0 && hex(c[2]) >= 0) {
			*to++ = (char)(hex(c[1]) << 4 | hex(c[2]));
			c += 2;
		} else {
			*to++ = *c;
		}
	}
	*to = '\0';
	words[count] = NULL;
}

#define WORDS_MAX 64u

/* words[0] is the name; takes the line. */
static bool read_policy(struct play *p, char *text, const char **words)
{
	struct line l;

	if (!take_kind(p, JOURNAL_POLICY, &l))
		return false;
	if (l.text_end - l.text > (ptrdiff_t)POLICY_TEXT_BYTES ||
	    memchr(l.text, '\0', (size_t)(l.text_end - l.text)) != NULL) {
		bad(p, EINVAL, "not a policy");
		return false;
	}
	format_text(text, POLICY_TEXT_BYTES, "%.*s", (int)(l.text_end - l.text - 1),
		    l.text + 1);
	split_policy(text, words, WORDS_MAX);
	return true;
}

static void play_policy(struct play *p)
{
	const char *words[WORDS_MAX + 1];
	char text[POLICY_TEXT_BYTES];
	uint64_t err = 0;

	if (!read_policy(p, text, words))
		return;
	p->info.inputs++;
	if (find_answer(p, &err) && err != 0) {
		/* It could not be made, and all was as before. */
		compare_answer(p, -(int)err);
		return;
	}
	compare_answer(p, hal_device_set_policy(p->dev, words[0], words + 1));
}

/* ---- the end ------------------------------------------------------------------------- */

static void play_end(struct play *p)
{
	take(p);
	p->ended = true;
}

/* ---- all of it --------------------------------------------------------------------- */

static const struct input {
	char kind;
	void (*fn)(struct play *p);
} inputs[] = {
	{JOURNAL_NOW, play_now},
	{JOURNAL_LOOK, play_turn},
	{JOURNAL_SUBMIT, play_turn},
	{JOURNAL_STOP, play_turn},
	{JOURNAL_START, play_turn},
	{JOURNAL_MOVE, play_turn},
	{JOURNAL_LIMIT, play_turn},
	{JOURNAL_USES, play_turn},
	{JOURNAL_CALLED, play_turn},
	{JOURNAL_POLLED, play_turn},
	{JOURNAL_LOST, play_turn},
	{JOURNAL_RETURNED, play_returned},
	{JOURNAL_RAISED, play_raised},
	{JOURNAL_TAKEN, play_taken},
	{JOURNAL_PARTITION, play_partition},
	{JOURNAL_NO_PARTITION, play_no_partition},
	{JOURNAL_QUEUE, play_queue},
	{JOURNAL_NO_QUEUE, play_no_queue},
	{JOURNAL_TIMELINE, play_timeline},
	{JOURNAL_NO_TIMELINE, play_no_timeline},
	{JOURNAL_SUSPEND, play_suspend},
	{JOURNAL_RESUME, play_resume},
	{JOURNAL_RESIZE, play_resize},
	{JOURNAL_COMPACT, play_compact},
	{JOURNAL_ROOM, play_room},
	{JOURNAL_POLICY, play_policy},
	{JOURNAL_END, play_end},
};

/* Until the end, or until the callback of a queue has returned. */
static void replay(struct play *p, const struct hal_queue *until)
{
	const struct line *l;

	while ((l = peek(p)) != NULL) {
		size_t i = 0;

		if (until != NULL && l->kind == JOURNAL_RETURNED &&
		    l->n[0] == until->obj.id) {
			p->info.inputs++;
			take(p);
			return;
		}
		while (i < ARRAY_LENGTH(inputs) && inputs[i].kind != l->kind)
			i++;
		if (i < ARRAY_LENGTH(inputs))
			inputs[i].fn(p);
		else
			bad(p, EINVAL, "this line belongs elsewhere");
	}
}

/* Whether what has been read so far can be the beginning of a journal. */
static bool may_be_journal(const char *text, size_t used)
{
	static const char head[] = "J hal-journal ";
	const size_t length = sizeof(head) - 1;

	return memcmp(text, head, used < length ? used : length) == 0;
}

static int read_file(struct play *p)
{
	size_t room = 0, used = 0, n = 1;
	FILE *f = fopen(p->path, "re");

	if (f == NULL)
		return fail(errno, "%s: %s", p->path, hal_strerror(errno));
	while (n > 0) {
		if (used == room) {
			char *text =
				realloc(p->text, room = room != 0 ? room * 2 : 65536);

			if (text == NULL) {
				(void)fclose(f);
				return fail(ENOMEM, "no memory for %s", p->path);
			}
			p->text = text;
		}
		n = fread(p->text + used, 1, room - used, f);
		used += n;
		/* Not to its end, which /dev/zero does not have. */
		if (!may_be_journal(p->text, used))
			break;
	}
	if (ferror(f) != 0) {
		int err = errno != 0 ? errno : EIO;

		(void)fclose(f);
		return fail(err, "%s: %s", p->path, hal_strerror(err));
	}
	(void)fclose(f);
	p->at = p->text;
	p->end = p->text + used;
	p->number = 1;
	p->current = 1;
	return 0;
}

static int not_a_journal(struct play *p)
{
	if (p->end == p->text)
		bad(p, EINVAL,
		    "the file is empty: a program writes its journal in large pieces, "
		    "the "
		    "last at hal_close");
	else
		bad(p, EINVAL,
		    p->info.missing[0] != '\0'
			    ? "the journal ends here, in its first lines"
			    : "not a journal");
	return p->err;
}

static bool device_line(struct play *p, const uint64_t *n)
{
	struct hal_device *dev = p->dev;
	struct hal_device_info *i = &dev->info;

	if (n[1] > UINT16_MAX || n[2] > UINT16_MAX || n[3] > UINT16_MAX ||
	    n[1] * n[2] > 1u << 20 || n[5] > 15 || n[6] > HAL_ISOLATION_ENFORCED ||
	    n[7] > HAL_PREEMPT_INSIDE || n[8] == 0 || n[8] > 64 || n[9] == 0 ||
	    n[16] > UINT16_MAX || n[9] > 64 || n[10] < 8 || n[10] > 4096 ||
	    (n[10] & (n[10] - 1)) != 0)
		return false;
	dev->virtual_clock = n[0] != 0;
	i->size = sizeof(*i);
	i->unit_rows = (uint32_t)n[1];
	i->unit_cols = (uint32_t)n[2];
	i->partitions_max = (uint32_t)n[3];
	i->caps = n[4] | (dev->virtual_clock ? HAL_CAP_VIRTUAL_CLOCK : 0);
	i->suspend_modes = (uint32_t)n[5];
	i->compute_isolation = (uint32_t)n[6];
	i->preempt = (uint32_t)n[7];
	dev->inflight = (uint32_t)n[8];
	dev->partition_inflight = (uint32_t)n[9];
	dev->queue_slots = (uint32_t)n[10];
	dev->limits.starve_ns = n[11];
	p->now = n[12];
	i->suspend_worst_ns[HAL_SUSPEND_FOLD] = n[13];
	i->suspend_worst_ns[HAL_SUSPEND_SAVE] = n[14];
	i->suspend_worst_ns[HAL_SUSPEND_KILL] = n[15];
	i->guests_max = (uint32_t)n[16];
	i->load_ns = n[17];
	return true;
}

static int start_policy(struct play *p)
{
	const char *words[WORDS_MAX + 1];
	char text[POLICY_TEXT_BYTES], name[POLICY_TEXT_BYTES + 8];
	struct config *cfg = &p->dev->opened->cfg;
	int err;

	if (!read_policy(p, text, words))
		return not_a_journal(p);
	format_text(name, sizeof(name), "name=%s", words[0]);
	err = config_set(cfg, "policy", name);
	for (size_t i = 1; err == 0 && words[i] != NULL; i++)
		err = config_set(cfg, "policy", words[i]);
	if (err == 0)
		err = config_check(cfg);
	return err == 0 ? policy_start(p->dev) : err;
}

static bool read_known(struct play *p)
{
	struct profile *profile = p->dev->profile;
	struct known *k;
	struct line l;

	if (!take_kind(p, JOURNAL_KNOWN, &l))
		return false;
	if (l.n[0] != (uint64_t)profile->count + 1 || l.n[1] > HAL_POLICY_MEMORY ||
	    l.n[2] == 0 || l.n[2] > UINT32_MAX || l.n[3] > 1000) {
		bad(p, EINVAL, "not a kernel that was known");
		return false;
	}
	k = profile_more(profile);
	if (k == NULL) {
		bad(p, ENOMEM, "no memory for what is in it");
		return false;
	}
	k->kind = (uint32_t)l.n[1];
	profile_measured(k, (uint32_t)l.n[2], (uint32_t)l.n[3], l.n[4]);
	while (peek(p) != NULL && p->line.kind == JOURNAL_KNOWN_UNITS) {
		(void)take_kind(p, JOURNAL_KNOWN_UNITS, &l);
		if (l.n[0] == 0 || l.n[0] > UINT32_MAX ||
		    !profile_add(k, (uint32_t)l.n[0], l.n[1])) {
			bad(p, EINVAL, "not so many units");
			return false;
		}
	}
	while (peek(p) != NULL && p->line.kind == JOURNAL_KNOWN_STOP) {
		(void)take_kind(p, JOURNAL_KNOWN_STOP, &l);
		if (l.n[0] >= STOP_MODES ||
		    !profile_add_stop(k, (uint32_t)l.n[0], l.n[1], l.n[2])) {
			bad(p, EINVAL, "not a way to stop it");
			return false;
		}
	}
	return true;
}

static void read_pairs(struct play *p)
{
	struct profile *profile = p->dev->profile;
	struct line l;

	(void)take_kind(p, JOURNAL_PROGRAMS, &l);
	if (l.n[0] == 0 || l.n[0] > KNOWN_PAIRED || l.n[1] > UINT32_MAX) {
		bad(p, EINVAL, "not so many programs");
		return;
	}
	if (!profile_pairs(profile, (uint32_t)l.n[0], (uint32_t)l.n[1])) {
		bad(p, ENOMEM, "no memory for what is in it");
		return;
	}
	while (peek(p) != NULL && p->line.kind == JOURNAL_BESIDE) {
		(void)take_kind(p, JOURNAL_BESIDE, &l);
		if (l.n[0] - 1 >= profile->programs || l.n[1] - 1 >= profile->programs ||
		    l.n[2] > UINT32_MAX) {
			bad(p, EINVAL, "not a pair of programs");
			return;
		}
		profile_pair(profile, l.n[0], l.n[1])->measured = (uint32_t)l.n[2];
	}
}

/* What its profile said. */
static int start_profile(struct play *p)
{
	if (peek(p) == NULL ||
	    (p->line.kind != JOURNAL_KNOWN && p->line.kind != JOURNAL_PROGRAMS))
		return 0;
	p->dev->profile = profile_make();
	if (p->dev->profile == NULL) {
		bad(p, ENOMEM, "no memory for what is in it");
		return p->err;
	}
	while (peek(p) != NULL && p->line.kind == JOURNAL_KNOWN)
		if (!read_known(p))
			return p->err;
	if (peek(p) != NULL && p->line.kind == JOURNAL_PROGRAMS)
		read_pairs(p);
	return p->err;
}

static int start(struct play *p)
{
	struct hal_device *dev = p->dev;
	const char head[] = "hal-journal 1 ";
	struct line l;
	int err;

	if (!take_kind(p, JOURNAL_HEAD, &l) ||
	    (size_t)(l.text_end - l.text) < sizeof(head) ||
	    memcmp(l.text + 1, head, sizeof(head) - 1) != 0)
		return not_a_journal(p);
	if (!take_kind(p, JOURNAL_DEVICE, &l) || !device_line(p, l.n))
		return not_a_journal(p);
	format_text(dev->name, sizeof(dev->name), "journal");
	dev->table = &journal_backend;
	dev->hot = journal_backend.hot;
	dev->bk = p;
	dev->hot_bk = p;
	dev->player = &player;
	err = device_prepare(dev);
	if (err == 0)
		err = start_policy(p);
	if (err == 0)
		err = start_profile(p);
	if (err == 0)
		journal_begin(dev, NULL, NULL);
	return err;
}

/* Nothing more comes: what is left ends as on a device that is lost, and goes. */
static void finish(struct play *p)
{
	struct hal_device *dev = p->dev;

	p->over = true;
	p->parsed = false;
	p->finishing = true;
	for (size_t i = 0; i < p->queues.count; i++) {
		struct hal_queue *q = p->queues.at[i];

		if (q != NULL && q->in_callback)
			queue_called(q);
	}
	dev->virtual_clock = false; /* else nothing is looked at that has called back */
	dev->pending++;
	(void)engine_turn(dev, 0, false);
	for (size_t i = 0; i < p->queues.count; i++)
		if (p->queues.at[i] != NULL)
			(void)hal_queue_destroy(p->queues.at[i]);
	for (size_t i = 0; i < p->timelines.count; i++)
		if (p->timelines.at[i] != NULL)
			(void)hal_timeline_destroy(p->timelines.at[i]);
	while (!list_empty(&dev->partitions))
		if (hal_partition_destroy(container_of(
			    dev->partitions.prev, struct hal_partition, on_device)) != 0)
			break; /* guests come behind their hosts */
}

/* So that policies are known: those of the configuration, too. */
static int load_policies(void)
{
	struct hal_bk_config *core;
	struct config cfg;
	int err = config_load(&cfg, NULL, &core);

	if (err == 0)
		err = registry_load(option_str(core, "plugins"));
	config_values_free(core);
	config_free(&cfg);
	return err;
}

static void play_free(struct play *p)
{
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		while (p->kernels[i] != NULL) {
			struct kernel *k = p->kernels[i];

			p->kernels[i] = k->next;
			free(k);
		}
	free(p->queues.at);
	free(p->timelines.at);
	free(p->text);
	free(p);
}

static int replay_file(struct play *p)
{
	int err = load_policies();

	if (err == 0)
		err = read_file(p);
	if (err != 0)
		return err;
	p->dev = device_make();
	if (p->dev == NULL)
		return -ENOMEM;
	err = start(p);
	if (err == 0) {
		replay(p, NULL);
		finish(p);
	} else if (p->err == 0) {
		bad(p, EINVAL, hal_last_error());
	}
	callbacks_stop(p->dev);
	object_retire(&p->dev->obj);
	(void)device_free(p->dev);
	return p->err != 0 ? fail(p->err, "%s", p->why) : 0;
}

int hal_replay(const char *path, struct hal_replay_info *out)
{
	struct play *p;
	int err;

	if (path == NULL || out == NULL)
		return fail(EINVAL, "hal_replay: %s is NULL",
			    path == NULL ? "path" : "out");
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return fail(ENOMEM, "no memory to replay %s", path);
	p->path = path;
	err = replay_file(p);
	p->info.size = sizeof(p->info);
	if (err == 0)
		err = export_struct(out, &p->info, sizeof(p->info),
				    offsetof(struct hal_replay_info, mismatches),
				    "hal_replay_info");
	play_free(p);
	return tried(err);
}
