/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_device.c - the device of a replay.
 *
 * Its time, events and results are read from the journal.  Each operation that the engine
 * calls is a decision, and is compared with the next line.
 */
#include <errno.h>
#include <string.h>

#include "loop/engine.h"
#include "replay/replay.h"
#include "util/error.h"

#define CALLS_MAX 64u /* nested callbacks */

/* ---- decisions ----------------------------------------------------------------- */

/* Compare the engine's decision, kind and n[0..count), with the next line.  Return the
 * result that the journal has for the decision: the number after n[0..count).  Return 0
 * if the next line is of another kind, or the argument otherwise if no line is left. */
static int compare_decision(struct play *p, enum journal_kind kind, const uint64_t *n,
			    uint32_t count, int otherwise)
{
	const struct line *l = line_peek(p);
	char text[160];
	size_t used;
	int err;

	if (l == NULL)
		return otherwise;
	p->info.decisions++;
	if (l->kind == (char)kind && memcmp(l->n, n, count * sizeof(*n)) == 0) {
		err = l->n[count] <= ERRNO_MAX ? -(int)l->n[count] : -EIO;
		line_skip(p);
		return err;
	}
	format_text(text, sizeof(text), "the engine decides on \"%c", (char)kind);
	for (uint32_t i = 0; i < count; i++) {
		used = strlen(text);
		format_text(text + used, sizeof(text) - used, " %llu", U64(n[i]));
	}
	used = strlen(text);
	format_text(text + used, sizeof(text) - used, "\"");
	play_mismatch(p, text);
	if (l->kind != (char)kind)
		return 0;
	err = l->n[count] <= ERRNO_MAX ? -(int)l->n[count] : -EIO;
	line_skip(p);
	return err;
}

/* ---- the device ---------------------------------------------------------------- */

static uint64_t replay_now(void *bk)
{
	struct play *p = bk;
	const struct line *l = line_peek(p);

	if (l == NULL || l->kind != JOURNAL_NOW)
		return p->now;
	p->now = l->n[0];
	p->info.inputs++;
	line_skip(p);
	return p->now;
}

static int replay_submit(void *bk, void *queue, const struct hal_bk_cmd *cmd)
{
	const struct inflight *f =
		(void *)(uintptr_t)cmd->cookie; /* NOLINT(*-int-to-ptr) */
	const struct hal_queue *q = f->queue;
	const uint64_t n[] = {q->obj.id, q->issue.pos, q->issue.inner};

	(void)queue;
	return compare_decision(bk, JOURNAL_SUBMIT, n, ARRAY_LENGTH(n), -EAGAIN);
}

static int replay_suspend(void *bk, void *queue, uint32_t mode, uint64_t cookie)
{
	const struct hal_queue *q = (void *)(uintptr_t)cookie; /* NOLINT(*-int-to-ptr) */
	const uint64_t n[] = {q->obj.id, mode};

	(void)queue;
	return compare_decision(bk, JOURNAL_STOP, n, ARRAY_LENGTH(n), 0);
}

static int replay_resume(void *bk, void *queue)
{
	struct play *p = bk;
	const uint64_t n[] = {journal_queue_of(p->dev, queue)->obj.id};

	return compare_decision(p, JOURNAL_START, n, ARRAY_LENGTH(n), 0);
}

static int replay_resize(void *bk, void *part, const struct hal_bk_partition_desc *d,
			 uint64_t cookie)
{
	const uint64_t n[] = {d->index, d->row, d->col, d->rows, d->cols, d->units};

	(void)part, (void)cookie;
	return compare_decision(bk, JOURNAL_MOVE, n, ARRAY_LENGTH(n), 0);
}

static int replay_limit(void *bk, void *part, uint64_t bytes, uint64_t window_ns)
{
	struct play *p = bk;
	const uint64_t n[] = {journal_partition_of(p->dev, part)->desc.index, bytes,
			      window_ns};

	return compare_decision(p, JOURNAL_LIMIT, n, ARRAY_LENGTH(n), 0);
}

/* Return whether one of the count events of this poll has that cookie. */
static bool is_among(const struct hal_bk_event *ev, uint32_t count, uint64_t cookie)
{
	for (uint32_t i = 0; i < count; i++)
		if (ev[i].cookie == cookie)
			return true;
	return false;
}

/* Fill ev from line l, the completion of a command of q.  Return false if the device owes
 * no such event; so do match_quiet() and match_moved(). */
static bool match_done(const struct line *l, struct hal_queue *q,
		       const struct hal_bk_event *before, uint32_t count,
		       struct hal_bk_event *ev)
{
	struct inflight *f = q->oldest;
	uint32_t i = 0;

	for (; i < q->inflight_count; i++, f = f->next)
		if (f->at.pos == l->n[1] && f->at.inner == l->n[2])
			break;
	if (i == q->inflight_count || f->done || q->sched.frozen != 0 ||
	    is_among(before, count, (uint64_t)(uintptr_t)f))
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

static bool match_quiet(const struct line *l, struct hal_queue *q,
			const struct hal_bk_event *before, uint32_t count,
			struct hal_bk_event *ev)
{
	const struct inflight *f = q->oldest;

	ev->cookie = (uint64_t)(uintptr_t)q;
	ev->kind = HAL_BK_QUIET;
	ev->status = l->n[1] <= ERRNO_MAX ? -(int32_t)l->n[1] : -EIO;
	ev->bytes_read = l->n[2];
	ev->bytes_written = l->n[3];
	ev->start_ns = l->n[4];
	ev->end_ns = l->n[5];
	if (!q->sched.bk_suspended || q->state != QUEUE_SUSPENDING ||
	    is_among(before, count, ev->cookie))
		return false;
	/* After a KILL, the events of all killed commands come before this event. */
	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
		if (q->sched.suspend_mode == HAL_SUSPEND_KILL && !f->done && !f->killed &&
		    !is_among(before, count, (uint64_t)(uintptr_t)f))
			return false;
	return true;
}

static bool match_moved(const struct line *l, const struct hal_partition *part,
			const struct hal_bk_event *before, uint32_t count,
			struct hal_bk_event *ev)
{
	ev->cookie = (uint64_t)(uintptr_t)part | COOKIE_PARTITION;
	ev->kind = HAL_BK_QUIET;
	ev->status = l->n[1] <= ERRNO_MAX ? -(int32_t)l->n[1] : -EIO;
	return part->moving.units != 0 && !is_among(before, count, ev->cookie);
}

/* Read the event after count others of the same poll.  Return false if the device does
 * not owe it. */
static bool read_event(struct play *p, const struct hal_bk_event *before, uint32_t count,
		       struct hal_bk_event *ev)
{
	const struct line *l = line_peek(p);
	struct hal_partition *part;
	struct hal_queue *q;

	memset(ev, 0, sizeof(*ev));
	if (l == NULL)
		return false;
	switch (l->kind) {
	case JOURNAL_DONE:
		q = play_queue_at(p, l->n[0]);
		return q != NULL && match_done(l, q, before, count, ev);
	case JOURNAL_QUIET:
		q = play_queue_at(p, l->n[0]);
		return q != NULL && match_quiet(l, q, before, count, ev);
	case JOURNAL_MOVED:
		part = play_partition_at(p, l->n[0]);
		return part != NULL && match_moved(l, part, before, count, ev);
	default:
		play_fail(p, EINVAL, "not an event");
		return false;
	}
}

static int replay_poll(void *bk, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct play *p = bk;
	const struct line *l = line_peek(p);
	uint32_t count = 0;
	uint64_t left;

	(void)until_ns;
	if (l == NULL) /* at the end, report the device as lost */
		return p->finishing ? fail(ENODEV, "the journal ends") : 0;
	if (l->kind == JOURNAL_LOST) {
		p->info.inputs++;
		line_skip(p);
		return fail(ENODEV, "the device was lost");
	}
	if (l->kind != JOURNAL_POLLED) {
		play_mismatch(p, "the engine polls the device");
		return 0;
	}
	left = l->n[0];
	if (!number_check(p, left, max))
		return 0;
	line_skip(p);
	for (; left > 0; left--) {
		if (read_event(p, ev, count, &ev[count]))
			count++;
		else
			play_mismatch(p, "the device owes no such event");
		if (p->over)
			break;
		p->info.inputs++;
		line_skip(p);
	}
	return (int)count;
}

static int make_handle(struct play *p, void **handle)
{
	*handle = (void *)++p->handles; /* NOLINT(*-int-to-ptr): never followed */
	return 0;
}

static int replay_partition_create(void *bk, const struct hal_bk_partition_desc *desc,
				   void **part)
{
	(void)desc;
	return make_handle(bk, part);
}

static int replay_queue_create(void *bk, void *part, int32_t priority, void **queue)
{
	(void)part, (void)priority;
	return make_handle(bk, queue);
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

const struct hal_backend replay_backend = {
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
		},
	.extra =
		{
			.limit = replay_limit,
		},
};

/* ---- struct player ------------------------------------------------------------- */

static void player_before_poll(struct hal_device *dev, uint64_t until_ns, bool idle)
{
	struct play *p = play_of(dev);
	const struct line *l;

	(void)until_ns, (void)idle;
	for (l = line_peek(p); l != NULL && line_is_decision(l->kind); l = line_peek(p)) {
		play_mismatch(p, "the engine does not decide this");
		line_skip(p);
	}
	if (l == NULL)
		return;
	p->info.turns++;
	if (l->kind == JOURNAL_POLL)
		line_skip(p);
	else
		play_mismatch(p, "the engine is about to poll the device");
}

static bool player_call(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;
	struct play *p = play_of(dev);
	const uint64_t n[] = {q->obj.id};
	const struct line *l = line_peek(p);
	bool known = l != NULL && l->kind == JOURNAL_CALLED && l->n[0] == n[0];

	if (p->finishing)
		return true;
	/* A callback has no result; the missing number reads as 0. */
	(void)compare_decision(p, JOURNAL_CALLED, n, ARRAY_LENGTH(n), 0);
	if (!dev->virtual_clock)
		return false;
	if (!known)
		return true;
	if (p->calls >= CALLS_MAX)
		play_fail(p, ENOTSUP, "too many nested callbacks");
	p->calls++;
	p->replay(p, q);
	p->calls--;
	return true;
}

static void player_gone(struct hal_device *dev, const uint64_t *n, uint32_t count)
{
	struct play *p = play_of(dev);
	const struct line *l = line_peek(p);
	char text[160];

	if (l == NULL || memcmp(l->n, n, count * sizeof(*n)) == 0)
		return;
	format_text(text, sizeof(text),
		    "the queue has %llu completed, %llu failed, %llu dropped commands, "
		    "%llu ns busy, %llu ns queueing",
		    U64(n[1]), U64(n[2]), U64(n[3]), U64(n[4]), U64(n[5]));
	play_mismatch(p, text);
}

static bool player_uses(const struct hal_queue *q)
{
	struct play *p = play_of(q->dev);
	struct line l;

	if (p->finishing || !line_expect(p, JOURNAL_USES, &l))
		return false;
	p->info.inputs++;
	if (l.n[0] != q->obj.id)
		play_mismatch(p, "the engine asks about another queue");
	return l.n[1] != 0;
}

const struct player replay_player = {
	.before_poll = player_before_poll,
	.call = player_call,
	.gone = player_gone,
	.uses = player_uses,
};
