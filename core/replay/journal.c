/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c - write the journal of an engine.
 *
 * While a journal is written, dev->hot has the functions below.  They call the backend's
 * operations, or those of a layer, and record their results.  Other inputs are recorded
 * by journal_*() calls in the engine.
 */
#include "replay/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sched/expect.h"
#include "util/error.h"
#include "util/output.h"

#define BUFFER_BYTES (256u << 10)
/* Flush the buffer at the beginning of a turn if it has more bytes than this.  The lines
 * of most turns fit into the remaining space, so that a turn without effect can still be
 * removed. */
#define BUFFER_FULL (BUFFER_BYTES - 4096u)
#define DIGITS_MAX  20u

struct journal {
	struct hal_device *dev;
	/* The operations that dev had before the journal was begun. */
	struct hal_bk_hot hot;
	int (*limit)(void *bk, void *part, uint64_t bytes, uint64_t window_ns);
	void *bk;
	int fd;
	int err; /* the first failure to write; nothing is written after it */
	char *path;
	uint32_t length; /* of .text */
	/* The lines of a turn without effect are removed when the next turn begins. */
	uint32_t turn;     /* offset in .text of the current turn's lines */
	uint64_t turn_now; /* .now at the beginning of that turn (clock=virtual) */
	bool happened;     /* the turn has had an effect, or its lines must stay */
	bool polled;       /* the next journal_now() is the one after a poll */
	uint64_t now;      /* time that was last written */
	char text[BUFFER_BYTES];
};

/* ---- the file ------------------------------------------------------------------ */

/* Write the buffer to the file.  The current turn can no longer be removed. */
static void flush(struct journal *j)
{
	const char *at = j->text;
	size_t left = j->length;

	while (left > 0 && j->err == 0) {
		ssize_t n = write(j->fd, at, left);

		if (n > 0) {
			at += n;
			left -= (size_t)n;
		} else if (errno != EINTR) {
			j->err = errno;
		}
	}
	j->length = 0;
	j->turn = 0;
	j->happened = true;
}

static void write_number(struct journal *j, uint64_t n)
{
	char digits[DIGITS_MAX];
	uint32_t count = 0;

	do {
		digits[count++] = (char)('0' + n % 10);
		n /= 10;
	} while (n != 0);
	j->text[j->length++] = ' ';
	while (count > 0)
		j->text[j->length++] = digits[--count];
}

static void write_line(struct journal *j, uint32_t kind, const uint64_t *n,
		       uint32_t count)
{
	if (j->length + 2 + count * (DIGITS_MAX + 1) > BUFFER_BYTES)
		flush(j);
	j->text[j->length++] = (char)kind;
	for (uint32_t i = 0; i < count; i++)
		write_number(j, n[i]);
	j->text[j->length++] = '\n';
	if (kind != JOURNAL_NOW && kind != JOURNAL_POLL &&
	    !(kind == JOURNAL_POLLED && n[0] == 0))
		j->happened = true;
}

void journal_write_text(struct journal *j, enum journal_kind kind, const char *text)
{
	size_t length = strlen(text);

	if (j->length + length + 3 > BUFFER_BYTES)
		flush(j);
	if (length + 3 > BUFFER_BYTES)
		return;
	j->text[j->length++] = (char)kind;
	j->text[j->length++] = ' ';
	memcpy(j->text + j->length, text, length);
	j->length += (uint32_t)length;
	j->text[j->length++] = '\n';
	j->happened = true;
}

static void journal_free(struct journal *j)
{
	free(j->path);
	free(j);
}

int journal_make(const struct hal_device *dev, const char *path, struct journal **out)
{
	struct journal *j = malloc(sizeof(*j));

	if (j == NULL)
		return fail(ENOMEM, "no memory for a journal of %s", dev->name);
	memset(j, 0, offsetof(struct journal, text));
	j->path = strdup(path);
	if (j->path == NULL) {
		free(j);
		return fail(ENOMEM, "no memory for a journal of %s", dev->name);
	}
	j->fd = output_open("hal.journal:", path);
	if (j->fd < 0) {
		int err = j->fd;

		journal_free(j);
		return err;
	}
	*out = j;
	return 0;
}

/* ---- recording operations of the device ---------------------------------------- */

/* Begin the lines of a turn.  Call when the engine reads the time (clock=real), or before
 * the engine polls (clock=virtual).  Remove the lines of the previous turn if that turn
 * had no effect, no work and no timer to run, and virtual time did not pass.  A replay
 * does not need such a turn. */
static void begin_turn(struct journal *j, uint64_t now)
{
	const struct hal_device *dev = j->dev;

	if (!j->happened && (!dev->virtual_clock || j->now == j->turn_now))
		j->length = j->turn;
	if (j->length > BUFFER_FULL)
		flush(j);
	j->turn = j->length;
	j->turn_now = j->now;
	j->happened = (dev->work & (WORK_TODO | WORK_BLOCKED | WORK_HELD)) != 0 ||
		      dev->timer_ns <= now;
}

static uint64_t journal_now(void *bk)
{
	struct journal *j = bk;
	uint64_t now = j->hot.now(j->bk);

	if (!j->polled && !j->dev->virtual_clock)
		begin_turn(j, now);
	if (j->polled || !j->dev->virtual_clock || now != j->now)
		JOURNAL(j->dev, JOURNAL_NOW, now);
	j->now = now;
	j->polled = false;
	return now;
}

static int journal_submit(void *bk, void *queue, const struct hal_bk_cmd *cmd)
{
	struct journal *j = bk;
	const struct inflight *f =
		(void *)(uintptr_t)cmd->cookie; /* NOLINT(*-int-to-ptr) */
	const struct hal_queue *q = f->queue;
	int err = j->hot.submit(j->bk, queue, cmd);

	JOURNAL(j->dev, JOURNAL_SUBMIT, q->obj.id, q->issue.pos, q->issue.inner,
		journal_error(err));
	return err;
}

static void write_event(struct journal *j, const struct hal_bk_event *ev)
{
	if (ev->kind == HAL_BK_DONE) {
		const struct inflight *f =
			(void *)(uintptr_t)ev->cookie; /* NOLINT(*-int-to-ptr) */

		JOURNAL(j->dev, JOURNAL_DONE, f->queue->obj.id, f->at.pos, f->at.inner,
			journal_error(ev->status), ev->start_ns, ev->end_ns,
			ev->bytes_read, ev->bytes_written);
	} else if ((ev->cookie & COOKIE_PARTITION) != 0) {
		const struct hal_partition *part =
			(void *)(uintptr_t)(ev->cookie & ~COOKIE_PARTITION); /* NOLINT */

		JOURNAL(j->dev, JOURNAL_MOVED, part->desc.index,
			journal_error(ev->status));
	} else {
		const struct hal_queue *q =
			(void *)(uintptr_t)ev->cookie; /* NOLINT(*-int-to-ptr) */

		JOURNAL(j->dev, JOURNAL_QUIET, q->obj.id, journal_error(ev->status),
			ev->bytes_read, ev->bytes_written, ev->start_ns, ev->end_ns);
	}
}

static int journal_poll(void *bk, uint64_t until_ns, struct hal_bk_event *ev,
			uint32_t max)
{
	struct journal *j = bk;
	int n = j->hot.poll(j->bk, until_ns, ev, max);

	if (n < 0)
		JOURNAL(j->dev, JOURNAL_LOST, journal_error(n));
	else
		JOURNAL(j->dev, JOURNAL_POLLED, (uint64_t)n);
	for (int i = 0; i < n; i++)
		write_event(j, &ev[i]);
	j->polled = true;
	return n;
}

static int journal_suspend(void *bk, void *queue, uint32_t mode, uint64_t cookie)
{
	struct journal *j = bk;
	const struct hal_queue *q = (void *)(uintptr_t)cookie; /* NOLINT(*-int-to-ptr) */
	int err = j->hot.suspend(j->bk, queue, mode, cookie);

	JOURNAL(j->dev, JOURNAL_STOP, q->obj.id, mode, journal_error(err));
	return err;
}

static int journal_resume(void *bk, void *queue)
{
	struct journal *j = bk;
	int err = j->hot.resume(j->bk, queue);

	JOURNAL(j->dev, JOURNAL_START, journal_queue_of(j->dev, queue)->obj.id,
		journal_error(err));
	return err;
}

static int journal_resize(void *bk, void *part, const struct hal_bk_partition_desc *d,
			  uint64_t cookie)
{
	struct journal *j = bk;
	int err = j->hot.resize(j->bk, part, d, cookie);

	JOURNAL(j->dev, JOURNAL_MOVE, d->index, d->row, d->col, d->rows, d->cols,
		d->units, journal_error(err));
	return err;
}

static int journal_limit_to(void *bk, void *part, uint64_t bytes, uint64_t window_ns)
{
	struct journal *j = bk;
	int err = j->limit(j->bk, part, bytes, window_ns);

	JOURNAL(j->dev, JOURNAL_LIMIT, journal_partition_of(j->dev, part)->desc.index,
		bytes, window_ns, journal_error(err));
	return err;
}

static void journal_doorbell(void *bk)
{
	struct journal *j = bk;

	j->hot.doorbell(j->bk);
}

struct hal_partition *journal_partition_of(struct hal_device *dev, const void *bk)
{
	hal_list_for_each (it, &dev->space.partitions) {
		struct hal_partition *part =
			container_of(it, struct hal_partition, on_device);

		if (part->bk == bk)
			return part;
	}
	return NULL;
}

struct hal_queue *journal_queue_of(struct hal_device *dev, const void *bk)
{
	hal_list_for_each (p, &dev->space.partitions) {
		const struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &part->queues) {
			struct hal_queue *q =
				container_of(it, struct hal_queue, on_partition);

			if (q->bk == bk)
				return q;
		}
	}
	return NULL;
}

/* ---- recording other inputs ---------------------------------------------------- */

static void write_before_poll(struct hal_device *dev, uint64_t until_ns, bool idle)
{
	if (dev->virtual_clock)
		begin_turn(dev->replay.journal, dev->now);
	/* Record the time until which the device may run: the engine's next timer may end
	 * the poll earlier.  A set timer also lets an idle device run. */
	JOURNAL(dev, JOURNAL_POLL, until_ns < dev->timer_ns ? until_ns : dev->timer_ns,
		idle || dev->timer_ns != UINT64_MAX);
}

/* Write the three numbers that identify timeline t into n. */
static void name_timeline(const struct hal_timeline *t, uint64_t *n)
{
	n[2] = 0;
	if (t->queue != NULL) {
		n[0] = t == &t->queue->timeline ? JOURNAL_OF_QUEUE : JOURNAL_OF_SUSPENDS;
		n[1] = t->queue->obj.id;
	} else if (t->partition != NULL) {
		n[0] = JOURNAL_OF_PARTITION;
		n[1] = t->partition->desc.index;
		for (const struct hal_timeline *o = t->older; o != NULL; o = o->older)
			n[2]++;
	} else {
		n[0] = JOURNAL_OF_APPLICATION;
		n[1] = t->obj.id;
	}
}

static void write_raised(const struct hal_timeline *t, uint64_t value, int err)
{
	uint64_t n[5] = {0, 0, 0, value, journal_error(err)};

	name_timeline(t, n);
	write_line(t->dev->replay.journal, JOURNAL_RAISED, n, ARRAY_LENGTH(n));
}

static void write_record(struct journal *j, const struct record *r)
{
	uint64_t n[3 + 4 * RECORD_POINTS] = {r->cmd.op, r->cmd.flags, r->submit_ns};
	uint32_t count = 3;

	switch (r->cmd.op) {
	case HAL_OP_LAUNCH:
		n[count++] = r->launch.kernel->info.work;
		if (r->launch.kernel->known != NULL ||
		    r->launch.kernel->info.engines != 0 ||
		    r->launch.kernel->info.configuration != 0) {
			n[count++] = profile_number(j->dev->observe.profile,
						    r->launch.kernel->known) |
				     (uint64_t)r->launch.kernel->program << 32;
			n[count++] = r->launch.kernel->info.engines |
				     (uint64_t)r->launch.kernel->info.configuration << 32;
		}
		break;
	case REC_WAIT:
	case REC_SIGNAL:
		record_for_each_point(p, r)
		{
			name_timeline(p->timeline, &n[count]);
			n[count + 3] = p->value;
			count += 4;
		}
		break;
	case REC_HEAD:
		n[count++] = r->head.not_before_ns;
		n[count++] = r->head.deadline_ns;
		n[count++] = r->head.tag;
		n[count++] = (uint32_t)r->head.priority;
		n[count++] = r->head.flags;
		break;
	case REC_BLOCK:
		n[count++] = r->block->slots;
		break;
	default:
		break;
	}
	write_line(j, JOURNAL_RECORD, n, count);
}

static void write_block_records(struct journal *j, const struct block *b)
{
	for (uint32_t i = 0; i < b->slots; i += b->rec[i].slots)
		write_record(j, &b->rec[i]);
}

static void write_accepted(struct hal_queue *q, unsigned int tail)
{
	struct journal *j = q->dev->replay.journal;
	unsigned int pos;
	uint32_t count = 0;

	for (pos = q->accepted; pos != tail; count++)
		pos += q->slots[pos & q->slot_mask].slots;
	JOURNAL(q->dev, JOURNAL_ACCEPTED, q->obj.id, count);
	for (pos = q->accepted; pos != tail;) {
		struct record *r = &q->slots[pos & q->slot_mask];

		/* Set the submit time here, so that the engine and the journal use the
		 * same one. */
		if (r->submit_ns == SUBMIT_ASLEEP)
			r->submit_ns = q->dev->now;
		write_record(j, r);
		if (r->cmd.op == REC_BLOCK)
			write_block_records(j, r->block);
		pos += r->slots;
	}
}

void journal_gone(const struct hal_queue *q)
{
	const struct account *a = &q->observe.account;
	const uint64_t n[] = {
		q->obj.id,
		counter_get(&a->completed),
		counter_get(&a->failed),
		counter_get(&a->dropped),
		counter_get(&a->busy_ns),
		counter_get(&a->queueing_ns),
	};

	if (q->dev->replay.journal != NULL)
		write_line(q->dev->replay.journal, JOURNAL_NO_QUEUE, n, ARRAY_LENGTH(n));
	else if (q->dev->replay.player != NULL)
		q->dev->replay.player->gone(q->dev, n, ARRAY_LENGTH(n));
}

/* ---- beginning and end --------------------------------------------------------- */

static void write_first_line(struct journal *j)
{
	const struct hal_device *dev = j->dev;
	const struct hal_device_info *i = &dev->info;
	char head[96];

	format_text(head, sizeof(head), "hal-journal %u %s", JOURNAL_VERSION, dev->name);
	journal_write_text(j, JOURNAL_HEAD, head);
	JOURNAL(dev, JOURNAL_DEVICE,
		(dev->virtual_clock ? JOURNAL_VIRTUAL : 0) |
			(dev->side_by_side ? JOURNAL_SIDE_BY_SIDE : 0),
		i->unit_rows, i->unit_cols, i->partitions_max, i->caps,
		dev->sched.bk_suspend_modes, i->compute_isolation, i->preempt,
		dev->inflight, dev->partition_inflight, dev->queue_slots,
		dev->sched.limits.starve_ns, dev->now,
		i->suspend_worst_ns[HAL_SUSPEND_FOLD],
		i->suspend_worst_ns[HAL_SUSPEND_SAVE],
		i->suspend_worst_ns[HAL_SUSPEND_KILL], i->guests_max, i->load_ns);
}

/* Write the measured slowdowns of pairs of programs. */
static void write_pairs(struct journal *j, const struct profile *p)
{
	JOURNAL(j->dev, JOURNAL_PROGRAMS, p->programs, p->runs);
	for (uint32_t i = 1; i <= p->programs; i++)
		for (uint32_t k = 1; k <= p->programs; k++)
			if (profile_pair(p, i, k)->measured != 0)
				JOURNAL(j->dev, JOURNAL_PAIR, i, k,
					profile_pair(p, i, k)->measured);
}

/* Write the profile as it was read from its file: the engine has learned nothing yet. */
static void write_profile(struct journal *j)
{
	const struct profile *p = j->dev->observe.profile;

	for (uint32_t i = 0; p != NULL && i < p->count; i++) {
		const struct known *k = &p->kernels[i];

		JOURNAL(j->dev, JOURNAL_KNOWN, (uint64_t)i + 1, k->kind, (uint64_t)k->of,
			k->error_permille, (uint64_t)(k->bytes / k->of));
		for (uint32_t u = 0; u < k->by_count; u++)
			JOURNAL(j->dev, JOURNAL_KNOWN_UNITS, k->by[u].units,
				(uint64_t)(k->by[u].ns / k->by[u].of));
		for (uint32_t m = 0; m < STOP_MODES; m++)
			if (k->stops[m].known)
				JOURNAL(j->dev, JOURNAL_KNOWN_STOP, m,
					k->stops[m].quiet_ns, k->stops[m].cost_ns);
	}
	if (p != NULL && p->programs != 0)
		write_pairs(j, p);
}

static const struct recorder recorder = {
	.write = write_line,
	.before_poll = write_before_poll,
	.raised = write_raised,
	.accepted = write_accepted,
};

void journal_begin(struct hal_device *dev, struct journal *j, const char *policy)
{
	dev->work |= WORK_JOURNAL;
	if (j == NULL)
		return;
	j->dev = dev;
	j->hot = dev->hot;
	j->limit = dev->limit;
	j->bk = dev->hot_bk;
	dev->replay.journal = j;
	dev->replay.recorder = &recorder;
	dev->intake |= INTAKE_JOURNAL;
	dev->hot.now = journal_now;
	dev->hot.submit = journal_submit;
	dev->hot.poll = journal_poll;
	dev->hot.suspend = journal_suspend;
	dev->hot.resume = journal_resume;
	dev->hot.resize = journal_resize;
	dev->limit = journal_limit_to;
	if (dev->hot.doorbell != NULL)
		dev->hot.doorbell = journal_doorbell;
	dev->hot_bk = j;
	write_first_line(j);
	journal_write_text(j, JOURNAL_POLICY, policy);
	write_profile(j);
	j->now = dev->now;
	j->turn = j->length;
}

int journal_end(struct hal_device *dev)
{
	struct journal *j = dev->replay.journal;
	int err = 0;

	if (j == NULL)
		return 0;
	write_line(j, JOURNAL_END, NULL, 0);
	dev->hot = j->hot;
	dev->hot_bk = j->bk;
	dev->replay.journal = NULL;
	flush(j);
	err = output_close(j->fd);
	if (err != 0 && j->err == 0)
		j->err = -err;
	if (j->err != 0)
		err = fail(EIO,
			   "hal.journal: %s could not be written in full: %s; free space "
			   "or name another file",
			   j->path, hal_strerror(j->err));
	journal_free(j);
	return err;
}
