/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - replay a journal (replay/journal.h): feed its inputs to an engine, and
 * compare the decisions of the engine with those of the journal.
 *
 * The thread in hal_replay is the engine.  For each line it makes the application's call,
 * publishes records, or runs an engine turn.  The turn reads its time and events from the
 * journal through replay_device.c.  Otherwise the device is an ordinary open device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/replay.h>

#include "api/handle.h"
#include "api/opened.h"
#include "command/callback.h"
#include "command/flow.h"
#include "config/options.h"
#include "loop/engine.h"
#include "replay/replay.h"
#include "sched/expect.h"
#include "sched/policy.h"
#include "sched/policy_text.h"
#include "sched/suspend.h"
#include "space/arrange.h"
#include "space/compact.h"
#include "space/resize.h"

/* ---- inputs -------------------------------------------------------------------- */

/* Run an engine turn, which consumes lines.  If it consumes none, the next line is a
 * mismatch. */
static void play_turn(struct play *p)
{
	struct line poll;
	const char *at = p->at;

	if (line_find_poll(p, &poll))
		(void)engine_turn(p->dev, poll.n[0], poll.n[1] != 0);
	else
		(void)engine_turn(p->dev, 0, false);
	if (p->at == at && line_peek(p) != NULL) {
		play_mismatch(p, "the engine does nothing of this kind");
		line_skip(p);
	}
}

static void play_now(struct play *p)
{
	device_now(p->dev);
}

/* Compare err, the result of a call, with the journal's.  Decision lines before it, which
 * the engine has not consumed, are mismatches. */
static void compare_answer(struct play *p, int err)
{
	const struct line *l = line_peek(p);
	char text[300];

	for (; l != NULL && line_is_decision(l->kind); l = line_peek(p)) {
		play_mismatch(p, "the engine does not decide this");
		line_skip(p);
	}
	if (l == NULL)
		return;
	if (l->kind != JOURNAL_ANSWER) {
		play_fail(p, EINVAL, "the call before this line has no result line");
		return;
	}
	if (l->n[0] != journal_error(err)) {
		format_text(text, sizeof(text), "the engine returns %d%s%s", err,
			    err != 0 ? ": " : "", err != 0 ? hal_last_error() : "");
		play_mismatch(p, text);
	}
	line_skip(p);
}

static void play_accepted(struct play *p)
{
	struct line l;
	struct hal_queue *q;
	unsigned int pos;

	if (!line_expect(p, JOURNAL_ACCEPTED, &l))
		return;
	q = play_queue_at(p, l.n[0]);
	if (q == NULL)
		return;
	pos = q->accepted;
	p->recolor = NULL;
	for (uint64_t i = 0; i < l.n[1]; i++)
		if (!play_record(p, q, &pos))
			break;
	p->recolor = NULL;
	queue_publish(q, pos);
	queue_message(p->dev, &q->message);
}

static void play_raised(struct play *p)
{
	struct line l;
	struct hal_timeline *t;

	if (!line_expect(p, JOURNAL_RAISED, &l))
		return;
	t = play_timeline_at(p, l.n);
	if (t == NULL || !number_check(p, l.n[4], ERRNO_MAX))
		return;
	p->info.inputs++;
	atomic_store(&t->value, l.n[3]);
	if (l.n[4] != 0 && timeline_error(t) == 0) {
		t->spare.err = -(int)l.n[4];
		t->spare.text = "it failed while the journal was written";
		atomic_store(&t->failure, &t->spare);
	}
	timeline_read(t, l.n[3], -(int)l.n[4]);
}

static void play_returned(struct play *p)
{
	struct hal_queue *q = play_queue_at(p, p->line.n[0]);

	if (q == NULL)
		return;
	if (p->dev->virtual_clock) {
		play_fail(p, ENOTSUP,
			  "callbacks overlap under the virtual clock; a replay cannot do "
			  "that");
		return;
	}
	if (!q->in_callback) {
		play_mismatch(p, "no callback of that queue is running");
		line_skip(p);
		return;
	}
	p->info.inputs++;
	line_skip(p);
	queue_called(q);
}

static void play_partition(struct play *p)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *part;
	struct line l;

	if (!line_expect(p, JOURNAL_PARTITION, &l))
		return;
	p->info.inputs++;
	for (int i = 1; i < 5; i++)
		if (!number_check(p, l.n[i], UINT16_MAX))
			return;
	d.row = (uint16_t)l.n[1];
	d.col = (uint16_t)l.n[2];
	d.rows = (uint16_t)l.n[3];
	d.cols = (uint16_t)l.n[4];
	d.units_ceiling = l.count > 5 ? (uint32_t)l.n[5] : 0;
	if (l.count == 8) {
		d.host = play_partition_at(p, l.n[7]);
		if (d.host == NULL)
			return;
	}
	if (hal_partition_create(p->dev, &d, &part) != 0) {
		play_fail(p, EINVAL, hal_last_error());
		return;
	}
	part->pinned = (l.n[6] & JOURNAL_PINNED) != 0;
	part->memory.bimodal = (l.n[6] & JOURNAL_BIMODAL) != 0;
	part->sched.limit_bytes = l.n[8];
	part->sched.limit_window_ns = l.n[9];
	if (part->desc.index != l.n[0])
		play_mismatch(p, "the engine gives the partition another index");
}

static void play_no_partition(struct play *p)
{
	struct hal_partition *part = play_partition_at(p, p->line.n[0]);

	if (part == NULL)
		return;
	p->info.inputs++;
	if (hal_partition_destroy(part) != 0)
		play_mismatch(p, hal_last_error());
	line_skip(p);
}

static void play_queue(struct play *p)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_partition *part;
	struct hal_queue *q;
	struct line l;

	if (!line_expect(p, JOURNAL_QUEUE, &l))
		return;
	part = play_partition_at(p, l.n[1]);
	if (part == NULL || !number_check(p, l.n[2], UINT32_MAX) ||
	    !number_check(p, l.n[4], UINT32_MAX) ||
	    !number_check(p, l.n[5], UINT16_MAX) || !number_check(p, l.n[6], UINT16_MAX))
		return;
	p->info.inputs++;
	d.priority = (int32_t)(uint32_t)l.n[2];
	d.deadline_ns = l.n[3];
	d.weight = (uint32_t)l.n[4];
	d.service_class = (uint16_t)l.n[5];
	d.budget_permille = (uint16_t)l.n[6];
	if (l.n[0] != p->queues.count || hal_queue_create(part, &d, &q) != 0) {
		play_fail(p, EINVAL, "no queue can be created from this line");
		return;
	}
	if (!numbered_add(p, &p->queues, q))
		(void)hal_queue_destroy(q);
}

static void play_no_queue(struct play *p)
{
	uint64_t id = p->line.n[0];
	struct hal_queue *q = play_queue_at(p, id);

	if (q == NULL)
		return;
	p->info.inputs++;
	if (hal_queue_destroy(q) != 0)
		play_mismatch(p, hal_last_error());
	else
		p->queues.at[id] = NULL;
	line_skip(p);
}

static void play_timeline(struct play *p)
{
	struct hal_timeline *t;

	p->info.inputs++;
	if (p->line.n[0] != p->timelines.count || hal_timeline_create(p->dev, &t) != 0) {
		play_fail(p, EINVAL, "no timeline can be created from this line");
		return;
	}
	if (!numbered_add(p, &p->timelines, t))
		(void)hal_timeline_destroy(t);
	line_skip(p);
}

static void play_no_timeline(struct play *p)
{
	uint64_t id = p->line.n[0];
	struct hal_timeline *t =
		numbered_at(p, &p->timelines, id, "there is no such timeline");

	if (t == NULL)
		return;
	p->info.inputs++;
	if (hal_timeline_destroy(t) != 0)
		play_mismatch(p, hal_last_error());
	else
		p->timelines.at[id] = NULL;
	line_skip(p);
}

static void play_suspend(struct play *p)
{
	struct hal_queue *q;
	struct line l;

	if (!line_expect(p, JOURNAL_SUSPEND, &l))
		return;
	q = play_queue_at(p, l.n[0]);
	if (q == NULL || !number_check(p, l.n[1], UINT32_MAX))
		return;
	p->info.inputs++;
	compare_answer(p, suspend_ask(q, (uint32_t)l.n[1] & ~HAL_SUSPEND_FINAL,
				      (l.n[1] & HAL_SUSPEND_FINAL) != 0));
}

static void play_resume(struct play *p)
{
	struct hal_queue *q;
	struct line l;

	if (!line_expect(p, JOURNAL_RESUME, &l))
		return;
	q = play_queue_at(p, l.n[0]);
	if (q == NULL)
		return;
	p->info.inputs++;
	compare_answer(p, suspend_end(q));
}

/* Read the units of an M or C line, from n, into d: floor, ceiling and rectangle.  Return
 * false if a number is out of range. */
static bool read_units(struct play *p, const uint64_t *n, struct hal_partition_desc *d)
{
	for (int i = 0; i < 6; i++)
		if (!number_check(p, n[i], i < 2 ? UINT32_MAX : UINT16_MAX))
			return false;
	d->units_floor = (uint32_t)n[0];
	d->units_ceiling = (uint32_t)n[1];
	d->row = (uint16_t)n[2];
	d->col = (uint16_t)n[3];
	d->rows = (uint16_t)n[4];
	d->cols = (uint16_t)n[5];
	return true;
}

static bool read_shape(struct play *p, uint64_t n, struct hal_partition_desc *d)
{
	d->shape = (uint32_t)n;
	return number_check(p, n, HAL_SHAPE_SQUARE);
}

/* Return whether the engine of the journal refused the call without calling the device;
 * if so, consume the result.  The reason may have been memory or isolation, which a
 * replay does not know, and a refused call has changed nothing. */
static bool was_refused(struct play *p)
{
	const struct line *next = line_peek(p);

	if (next == NULL)
		return true;
	p->info.inputs++;
	if (next->kind != JOURNAL_ANSWER || next->n[0] == 0)
		return false;
	line_skip(p);
	return true;
}

static void play_resize(struct play *p)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *part;
	struct line l;

	if (!line_expect(p, JOURNAL_RESIZE, &l))
		return;
	part = play_partition_at(p, l.n[0]);
	if (part != NULL && read_units(p, &l.n[1], &d) && read_shape(p, l.n[7], &d) &&
	    !was_refused(p))
		compare_answer(p, resize_begin(part, &d));
}

static void play_copies_host(struct play *p)
{
	struct hal_partition *part = play_partition_at(p, p->line.n[0]);

	if (part == NULL)
		return;
	p->info.inputs++;
	partition_copies_host(part);
	line_skip(p);
}

static void play_together(struct play *p)
{
	struct hal_partition_desc d[HAL_POLICY_MOVES];
	struct arrangement *a = calloc(1, sizeof(*a));
	struct hal_point done;
	struct line l;
	bool last = false;
	int err;

	if (a == NULL) {
		play_fail(p, ENOMEM, "no memory to move partitions together");
		return;
	}
	while (!last && line_expect(p, JOURNAL_TOGETHER, &l)) {
		const uint32_t i = a->count;

		if (!number_check(p, l.n[0] + i, HAL_POLICY_MOVES - 1))
			break;
		d[i] = (struct hal_partition_desc)HAL_INIT(hal_partition_desc);
		a->member[i].desc = &d[i];
		a->member[i].part = play_partition_at(p, l.n[1]);
		if (a->member[i].part == NULL || !read_units(p, &l.n[2], &d[i]) ||
		    !read_shape(p, l.n[8], &d[i]))
			break;
		a->count++;
		last = l.n[0] == 0;
	}
	if (!last || was_refused(p)) {
		free(a);
		return;
	}
	err = arrange_begin(p->dev, a, &done);
	if (err != 0)
		free(a);
	compare_answer(p, err);
}

static void play_compact(struct play *p)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	const struct hal_partition *part = NULL;
	struct line l;

	if (!line_expect(p, JOURNAL_COMPACT, &l))
		return;
	if (l.n[0] != 0) {
		part = play_partition_at(p, l.n[0] - 1);
		if (part == NULL)
			return;
	}
	if (read_units(p, &l.n[1], &d) && number_check(p, l.n[7], UINT32_MAX) &&
	    read_shape(p, l.n[8], &d) && !was_refused(p))
		compare_answer(p, compact_begin(p->dev, part, &d, (uint32_t)l.n[7]));
}

static void play_room(struct play *p)
{
	p->info.inputs++;
	line_skip(p);
	compact_over(p->dev);
}

/* ---- policies ------------------------------------------------------------------ */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Split the text of a policy's line into words, in place, and decode %XX. */
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
		} else if (*c == '%' && hex_digit(c[1]) >= 0 && hex_digit(c[2]) >= 0) {
			*to++ = (char)(hex_digit(c[1]) << 4 | hex_digit(c[2]));
			c += 2;
		} else {
			*to++ = *c;
		}
	}
	*to = '\0';
	words[count] = NULL;
}

#define WORDS_MAX 64u

/* Consume a policy's line; words[0] is the name, the others are settings. */
static bool read_policy(struct play *p, char *text, const char **words)
{
	struct line l;

	if (!line_expect(p, JOURNAL_POLICY, &l))
		return false;
	if (l.text_end - l.text > (ptrdiff_t)POLICY_TEXT_BYTES ||
	    memchr(l.text, '\0', (size_t)(l.text_end - l.text)) != NULL) {
		play_fail(p, EINVAL, "not a policy");
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
	if (line_find_answer(p, &err) && err != 0) {
		/* The engine of the journal could not start this policy and kept the old
		 * one. */
		compare_answer(p, -(int)err);
		return;
	}
	compare_answer(p, hal_device_set_policy(p->dev, words[0], words + 1));
}

/* ---- the final line ------------------------------------------------------------ */

static void play_end(struct play *p)
{
	line_skip(p);
	p->ended = true;
}

/* ---- the whole journal --------------------------------------------------------- */

static const struct input {
	char kind;
	void (*fn)(struct play *p);
} inputs[] = {
	{JOURNAL_NOW, play_now},
	{JOURNAL_POLL, play_turn},
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
	{JOURNAL_ACCEPTED, play_accepted},
	{JOURNAL_PARTITION, play_partition},
	{JOURNAL_NO_PARTITION, play_no_partition},
	{JOURNAL_QUEUE, play_queue},
	{JOURNAL_NO_QUEUE, play_no_queue},
	{JOURNAL_TIMELINE, play_timeline},
	{JOURNAL_NO_TIMELINE, play_no_timeline},
	{JOURNAL_SUSPEND, play_suspend},
	{JOURNAL_RESUME, play_resume},
	{JOURNAL_RESIZE, play_resize},
	{JOURNAL_COPIES_HOST, play_copies_host},
	{JOURNAL_TOGETHER, play_together},
	{JOURNAL_COMPACT, play_compact},
	{JOURNAL_ROOM, play_room},
	{JOURNAL_POLICY, play_policy},
	{JOURNAL_END, play_end},
};

/* Process lines up to the end, or until the callback of queue `until` has returned. */
static void replay(struct play *p, const struct hal_queue *until)
{
	const struct line *l;

	while ((l = line_peek(p)) != NULL) {
		size_t i = 0;

		if (until != NULL && l->kind == JOURNAL_RETURNED &&
		    l->n[0] == until->obj.id) {
			p->info.inputs++;
			line_skip(p);
			return;
		}
		while (i < ARRAY_LENGTH(inputs) && inputs[i].kind != l->kind)
			i++;
		if (i < ARRAY_LENGTH(inputs))
			inputs[i].fn(p);
		else
			play_fail(p, EINVAL, "a line of this kind is not allowed here");
	}
}

static int not_a_journal(struct play *p)
{
	if (p->end == p->text)
		play_fail(p, EINVAL,
			  "the file is empty: a program writes its journal in large "
			  "pieces, the last at hal_close");
	else
		play_fail(p, EINVAL,
			  p->info.missing[0] != '\0'
				  ? "the journal ends here, in its first lines"
				  : "not a journal");
	return p->err;
}

/* Set up the device from the numbers of its line; return false if one is out of range. */
static bool device_line(struct play *p, const uint64_t *n)
{
	struct hal_device *dev = p->dev;
	struct hal_device_info *i = &dev->info;

	if (n[0] > (JOURNAL_VIRTUAL | JOURNAL_SIDE_BY_SIDE) || n[1] > UINT16_MAX ||
	    n[2] > UINT16_MAX || n[3] > UINT16_MAX || n[1] * n[2] > 1u << 20 ||
	    n[5] > 15 || n[6] > HAL_ISOLATION_ENFORCED || n[7] > HAL_PREEMPT_INSIDE ||
	    n[8] == 0 || n[8] > 64 || n[9] == 0 || n[16] > UINT16_MAX || n[9] > 64 ||
	    n[10] < 8 || n[10] > 4096 || (n[10] & (n[10] - 1)) != 0)
		return false;
	dev->virtual_clock = (n[0] & JOURNAL_VIRTUAL) != 0;
	dev->side_by_side = (n[0] & JOURNAL_SIDE_BY_SIDE) != 0;
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
	dev->sched.limits.starve_ns = n[11];
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

/* Read a kernel of the profile. */
static bool read_known(struct play *p)
{
	struct profile *profile = p->dev->observe.profile;
	struct known *k;
	struct line l;

	if (!line_expect(p, JOURNAL_KNOWN, &l))
		return false;
	if (l.n[0] != (uint64_t)profile->count + 1 || l.n[1] > HAL_POLICY_MEMORY ||
	    l.n[2] == 0 || l.n[2] > UINT32_MAX || l.n[3] > 1000) {
		play_fail(p, EINVAL, "not a valid kernel of a profile");
		return false;
	}
	k = profile_more(profile);
	if (k == NULL) {
		play_fail(p, ENOMEM, "no memory for the objects of the journal");
		return false;
	}
	k->kind = (uint32_t)l.n[1];
	profile_measured(k, (uint32_t)l.n[2], (uint32_t)l.n[3], l.n[4]);
	while (line_peek(p) != NULL && p->line.kind == JOURNAL_KNOWN_UNITS) {
		(void)line_expect(p, JOURNAL_KNOWN_UNITS, &l);
		if (l.n[0] == 0 || l.n[0] > UINT32_MAX ||
		    !profile_add(k, (uint32_t)l.n[0], l.n[1])) {
			play_fail(p, EINVAL,
				  "this number of units is invalid or repeated");
			return false;
		}
	}
	while (line_peek(p) != NULL && p->line.kind == JOURNAL_KNOWN_STOP) {
		(void)line_expect(p, JOURNAL_KNOWN_STOP, &l);
		if (l.n[0] >= STOP_MODES ||
		    !profile_add_stop(k, (uint32_t)l.n[0], l.n[1], l.n[2])) {
			play_fail(p, EINVAL, "this suspend mode is invalid or repeated");
			return false;
		}
	}
	return true;
}

/* Read the measured slowdowns of pairs of programs. */
static void read_pairs(struct play *p)
{
	struct profile *profile = p->dev->observe.profile;
	struct line l;

	(void)line_expect(p, JOURNAL_PROGRAMS, &l);
	if (l.n[0] == 0 || l.n[0] > KNOWN_PAIRED || l.n[1] > UINT32_MAX) {
		play_fail(p, EINVAL, "this number of programs is out of range");
		return;
	}
	if (!profile_pairs(profile, (uint32_t)l.n[0], (uint32_t)l.n[1])) {
		play_fail(p, ENOMEM, "no memory for the objects of the journal");
		return;
	}
	while (line_peek(p) != NULL && p->line.kind == JOURNAL_PAIR) {
		(void)line_expect(p, JOURNAL_PAIR, &l);
		if (l.n[0] - 1 >= profile->programs || l.n[1] - 1 >= profile->programs ||
		    l.n[2] > UINT32_MAX) {
			play_fail(p, EINVAL, "not a valid pair of programs");
			return;
		}
		profile_pair(profile, l.n[0], l.n[1])->measured = (uint32_t)l.n[2];
	}
}

/* Read the profile that the device had, if any. */
static int start_profile(struct play *p)
{
	if (line_peek(p) == NULL ||
	    (p->line.kind != JOURNAL_KNOWN && p->line.kind != JOURNAL_PROGRAMS))
		return 0;
	p->dev->observe.profile = profile_make();
	if (p->dev->observe.profile == NULL) {
		play_fail(p, ENOMEM, "no memory for the objects of the journal");
		return p->err;
	}
	while (line_peek(p) != NULL && p->line.kind == JOURNAL_KNOWN)
		if (!read_known(p))
			return p->err;
	if (line_peek(p) != NULL && p->line.kind == JOURNAL_PROGRAMS)
		read_pairs(p);
	return p->err;
}

static int start_replay(struct play *p)
{
	struct hal_device *dev = p->dev;
	const char head[] = "hal-journal 1 ";
	struct line l;
	int err;

	if (!line_expect(p, JOURNAL_HEAD, &l) ||
	    (size_t)(l.text_end - l.text) < sizeof(head) ||
	    memcmp(l.text + 1, head, sizeof(head) - 1) != 0)
		return not_a_journal(p);
	if (!line_expect(p, JOURNAL_DEVICE, &l) || !device_line(p, l.n))
		return not_a_journal(p);
	format_text(dev->name, sizeof(dev->name), "journal");
	dev->table = &replay_backend;
	dev->hot = replay_backend.hot;
	dev->limit = replay_backend.extra.limit;
	dev->bk = p;
	dev->hot_bk = p;
	p->replay = replay;
	dev->replay.player = &replay_player;
	err = device_prepare(dev);
	if (err == 0)
		err = start_policy(p);
	if (err == 0)
		err = start_profile(p);
	if (err == 0)
		journal_begin(dev, NULL, NULL);
	return err;
}

/* Destroy all objects after the last line.  Pending work fails as on a lost device. */
static void finish_replay(struct play *p)
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
	/* Under the virtual clock the engine would not poll while messages of callbacks
	 * are unread. */
	dev->virtual_clock = false;
	dev->command.pending++;
	(void)engine_turn(dev, 0, false);
	for (size_t i = 0; i < p->queues.count; i++)
		if (p->queues.at[i] != NULL)
			(void)hal_queue_destroy(p->queues.at[i]);
	for (size_t i = 0; i < p->timelines.count; i++)
		if (p->timelines.at[i] != NULL)
			(void)hal_timeline_destroy(p->timelines.at[i]);
	while (!list_empty(&dev->space.partitions))
		if (hal_partition_destroy(container_of(dev->space.partitions.prev,
						       struct hal_partition,
						       on_device)) != 0)
			break; /* not reached: guests are destroyed before hosts */
}

/* Load the policies, those of configured plugins included. */
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
		err = journal_read(p);
	if (err != 0)
		return err;
	p->dev = device_make();
	if (p->dev == NULL)
		return -ENOMEM;
	err = start_replay(p);
	if (err == 0) {
		replay(p, NULL);
		finish_replay(p);
	} else if (p->err == 0) {
		play_fail(p, EINVAL, hal_last_error());
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
