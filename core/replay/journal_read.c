/* SPDX-License-Identifier: Apache-2.0 */
/* journal_read.c - read the lines of a journal, and find the objects that their numbers
 * name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/engine.h"
#include "replay/replay.h"
#include "sched/expect.h"
#include "util/error.h"

/* ---- lines --------------------------------------------------------------------- */

COLD void play_fail(struct play *p, int err, const char *what)
{
	/* After a mismatch the following lines may not make sense; that is no error. */
	if (p->err == 0 && (err != EINVAL || p->info.mismatches == 0)) {
		p->err = -err;
		format_text(p->why, sizeof(p->why), "%s:%llu: %s", p->path,
			    U64(p->current), what);
	}
	p->over = true;
}

COLD void play_mismatch(struct play *p, const char *what)
{
	int shown = (int)(p->line.text_end - p->line.text);

	if (p->over)
		return;
	if (p->info.mismatches++ != 0)
		return;
	p->info.line = p->current;
	format_text(p->info.mismatch, sizeof(p->info.mismatch),
		    "%s:%llu: the journal has \"%c%.*s\", but %s", p->path,
		    U64(p->current), p->line.kind, shown < 80 ? shown : 80, p->line.text,
		    what);
}

static bool parse_decimal(const char **at, const char *end, uint64_t *n)
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

	memset(l->n, 0, sizeof(l->n)); /* numbers that older journals lack are 0 */
	l->count = 0;
	while (c != l->text_end) {
		if (*c++ != ' ' || l->count == JOURNAL_NUMBERS ||
		    !parse_decimal(&c, l->text_end, &l->n[l->count]))
			return false;
		l->count++;
	}
	return true;
}

/* For each kind of line: how many numbers it has at least and at most. */
static const struct shape {
	char kind;
	uint8_t least, most;
} shapes[] = {
	{JOURNAL_DEVICE, 13, 18},    {JOURNAL_NOW, 1, 1},
	{JOURNAL_POLL, 2, 2},        {JOURNAL_POLLED, 1, 1},
	{JOURNAL_DONE, 8, 8},        {JOURNAL_QUIET, 4, 6},
	{JOURNAL_MOVED, 2, 2},       {JOURNAL_LOST, 1, 1},
	{JOURNAL_RETURNED, 1, 1},    {JOURNAL_RAISED, 5, 5},
	{JOURNAL_ACCEPTED, 2, 2},    {JOURNAL_RECORD, 3, 11},
	{JOURNAL_PARTITION, 5, 10},  {JOURNAL_NO_PARTITION, 1, 1},
	{JOURNAL_QUEUE, 5, 7},       {JOURNAL_NO_QUEUE, 6, 6},
	{JOURNAL_TIMELINE, 1, 1},    {JOURNAL_NO_TIMELINE, 1, 1},
	{JOURNAL_SUSPEND, 2, 2},     {JOURNAL_RESUME, 1, 1},
	{JOURNAL_RESIZE, 7, 8},      {JOURNAL_ANSWER, 1, 1},
	{JOURNAL_TOGETHER, 9, 9},    {JOURNAL_COMPACT, 8, 9},
	{JOURNAL_ROOM, 1, 1},        {JOURNAL_SUBMIT, 4, 4},
	{JOURNAL_STOP, 3, 3},        {JOURNAL_START, 2, 2},
	{JOURNAL_MOVE, 7, 7},        {JOURNAL_LIMIT, 4, 4},
	{JOURNAL_CALLED, 1, 1},      {JOURNAL_KNOWN, 5, 5},
	{JOURNAL_KNOWN_UNITS, 2, 2}, {JOURNAL_KNOWN_STOP, 3, 3},
	{JOURNAL_PROGRAMS, 2, 2},    {JOURNAL_PAIR, 3, 3},
	{JOURNAL_USES, 2, 2},        {JOURNAL_COPIES_HOST, 1, 1},
	{JOURNAL_END, 0, 0},
};

bool line_is_decision(char kind)
{
	return kind == JOURNAL_USES || kind == JOURNAL_SUBMIT || kind == JOURNAL_STOP ||
	       kind == JOURNAL_START || kind == JOURNAL_MOVE || kind == JOURNAL_LIMIT ||
	       kind == JOURNAL_CALLED;
}

bool line_parse(struct line *l)
{
	if (l->kind == JOURNAL_HEAD || l->kind == JOURNAL_POLICY)
		return l->text != l->text_end && *l->text == ' ';
	for (size_t i = 0; i < ARRAY_LENGTH(shapes); i++)
		if (shapes[i].kind == l->kind)
			return parse_numbers(l) && l->count >= shapes[i].least &&
			       l->count <= shapes[i].most;
	return false;
}

/* If the journal is incomplete, note where it ends. */
static COLD void note_missing(struct play *p)
{
	const char *where = p->at != p->end ? "in the middle of" : "before";

	if (p->ended)
		return;
	format_text(
		p->info.missing, sizeof(p->info.missing),
		"%s ends %s line %llu, at byte %llu, without the final line \"E\": the "
		"program was killed, is still running or could not write; the rest is "
		"missing",
		p->path, where, U64(p->number), U64(p->end - p->text));
}

const struct line *line_peek(struct play *p)
{
	const char *end;

	if (p->over)
		return NULL;
	if (p->parsed)
		return &p->line;
	end = p->at != NULL ? memchr(p->at, '\n', (size_t)(p->end - p->at)) : NULL;
	if (end == NULL) {
		note_missing(p);
		p->over = true;
		return NULL;
	}
	p->line = (struct line){
		.kind = *p->at, .text = p->at + (end != p->at), .text_end = end};
	p->current = p->number;
	if (p->ended) {
		play_fail(p, EINVAL, "this line follows the final line of the journal");
		return NULL;
	}
	if (!line_parse(&p->line)) {
		play_fail(p, EINVAL, "not a line of a journal");
		return NULL;
	}
	p->parsed = true;
	return &p->line;
}

bool line_expect(struct play *p, enum journal_kind kind, struct line *out)
{
	const struct line *l = line_peek(p);

	if (l == NULL)
		return false;
	if (l->kind != (char)kind) {
		play_fail(p, EINVAL, "a line of this kind is not allowed here");
		return false;
	}
	*out = *l;
	p->at = l->text_end + 1;
	p->number++;
	p->parsed = false;
	return true;
}

void line_skip(struct play *p)
{
	struct line l;

	(void)line_expect(p, (enum journal_kind)p->line.kind, &l);
}

bool number_check(struct play *p, uint64_t n, uint64_t most)
{
	if (n > most)
		play_fail(p, EINVAL, "a number is too large");
	return n <= most;
}

bool line_find_poll(const struct play *p, struct line *out)
{
	const char *at = p->at;
	unsigned int depth = 0;

	while (at != p->end) {
		const char *end = memchr(at, '\n', (size_t)(p->end - at));

		if (end == NULL)
			return false;
		if (depth == 0 && *at == JOURNAL_POLL) {
			*out = (struct line){
				.kind = *at, .text = at + 1, .text_end = end};
			return line_parse(out);
		}
		/* Under the virtual clock, skip the lines written while a callback runs:
		 * they belong to other turns. */
		if (*at == JOURNAL_CALLED && p->dev->virtual_clock)
			depth++;
		else if (*at == JOURNAL_RETURNED && depth > 0)
			depth--;
		else if (depth == 0 && !line_is_decision(*at))
			return false;
		at = end + 1;
	}
	return false;
}

bool line_find_answer(const struct play *p, uint64_t *err)
{
	const char *at = p->at;

	while (at != p->end) {
		const char *end = memchr(at, '\n', (size_t)(p->end - at));
		struct line l;

		if (end == NULL)
			return false;
		l = (struct line){.kind = *at, .text = at + (end != at), .text_end = end};
		if (l.kind == JOURNAL_ANSWER && line_parse(&l)) {
			*err = l.n[0];
			return true;
		}
		if (!line_is_decision(l.kind))
			return false;
		at = end + 1;
	}
	return false;
}

/* ---- objects by number --------------------------------------------------------- */

bool numbered_add(struct play *p, struct numbered *t, void *object)
{
	if (t->count == t->room) {
		size_t room = t->room != 0 ? t->room * 2 : 64;
		void **at = realloc(t->at, room * sizeof(*at));

		if (at == NULL) {
			play_fail(p, ENOMEM, "no memory for the objects of the journal");
			return false;
		}
		t->at = at;
		t->room = room;
	}
	t->at[t->count++] = object;
	return true;
}

void *numbered_at(struct play *p, const struct numbered *t, uint64_t number,
		  const char *what)
{
	if (number < t->count && t->at[number] != NULL)
		return t->at[number];
	play_fail(p, EINVAL, what);
	return NULL;
}

struct hal_queue *play_queue_at(struct play *p, uint64_t number)
{
	return numbered_at(p, &p->queues, number, "there is no such queue");
}

struct hal_partition *play_partition_at(struct play *p, uint64_t index)
{
	hal_list_for_each (it, &p->dev->space.partitions) {
		struct hal_partition *part =
			container_of(it, struct hal_partition, on_device);

		if (part->desc.index == index)
			return part;
	}
	play_fail(p, EINVAL, "there is no such partition");
	return NULL;
}

/* Return the resize timeline of partition index that has `older` older ones.  Fail if the
 * partition or the timeline does not exist. */
static struct hal_timeline *control_at(struct play *p, uint64_t index, uint64_t older)
{
	struct hal_partition *part = play_partition_at(p, index);
	struct hal_timeline *t = part != NULL ? part->control : NULL;
	uint64_t count = 0;

	for (const struct hal_timeline *o = t; o != NULL && o->older != NULL;
	     o = o->older)
		count++;
	if (part != NULL && count < older) {
		play_fail(p, EINVAL, "the partition has no such timeline");
		return NULL;
	}
	for (; t != NULL && count > older; count--)
		t = t->older;
	return t;
}

struct hal_timeline *play_timeline_at(struct play *p, const uint64_t *n)
{
	struct hal_queue *q;

	switch (n[0]) {
	case JOURNAL_OF_APPLICATION:
		return numbered_at(p, &p->timelines, n[1], "there is no such timeline");
	case JOURNAL_OF_QUEUE:
		q = play_queue_at(p, n[1]);
		return q != NULL ? &q->timeline : NULL;
	case JOURNAL_OF_SUSPENDS:
		q = play_queue_at(p, n[1]);
		return q != NULL ? &q->sched.control : NULL;
	case JOURNAL_OF_PARTITION:
		return control_at(p, n[1], n[2]);
	default:
		play_fail(p, EINVAL, "there is no such kind of timeline");
		return NULL;
	}
}

struct hal_kernel *play_kernel_of(struct play *p, const uint64_t *n)
{
	uint64_t key = n[0] ^ n[1] << 32;
	struct kernel **at = &p->kernels[key * UINT64_C(0x9e3779b97f4a7c15) >> 56];
	const struct profile *profile = p->dev->observe.profile;
	uint32_t number = (uint32_t)n[1];
	struct kernel *k = *at;

	if (number > (profile != NULL ? profile->count : 0)) {
		play_fail(p, EINVAL, "there is no such kernel");
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
		play_fail(p, ENOMEM, "no memory for the objects of the journal");
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

/* ---- the file ------------------------------------------------------------------ */

/* Return whether text, of used bytes, can be the beginning of a journal. */
static bool may_be_journal(const char *text, size_t used)
{
	static const char head[] = "J hal-journal ";
	const size_t length = sizeof(head) - 1;

	return memcmp(text, head, used < length ? used : length) == 0;
}

int journal_read(struct play *p)
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
		/* Stop early if the file is no journal: /dev/zero, for one, has no end.
		 */
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
