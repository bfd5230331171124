/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - a device as halctl top shows it; see frame.h.
 *
 * What is shown comes from another program and may be anything: numbers go no further
 * than live_number lets them, texts are cut. */
#include "frame.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "live.h"
#include "words.h"

/* The array is drawn no larger. */
#define ARRAY_ROWS    16u
#define ARRAY_COLUMNS 32u
#define DECISIONS     4u

struct frame {
	struct sheet *sheet;
	const struct json *now, *before;
};

static uint32_t whole(const struct json *o, const char *key)
{
	double n = live_number(o, key);

	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* ---- numbers as text ---------------------------------------------------------------- */

/* "3 guests, " */
static struct words guests_text(uint32_t n)
{
	struct words w = {""};

	if (n != 0)
		snprintf(w.text, sizeof(w.text), "%u guest%s, ", n, n != 1 ? "s" : "");
	return w;
}

/* ---- use ---------------------------------------------------------------------------- */

/* The same of before; NULL: it was not there. */
static const struct json *was(const struct frame *f, const char *list, const char *key,
			      const struct json *o)
{
	const struct json *e = f->before != NULL ? live_list(f->before, list) : NULL;

	while (e != NULL && live_number(e, key) != live_number(o, key))
		e = e->next;
	return e;
}

/* Share of device time in which something of it ran. */
static struct words use_text(const struct frame *f, const struct json *o,
			     const struct json *old)
{
	double time = live_number(f->now, "now_ns"), busy = live_number(o, "busy_ns");
	struct words w;

	if (f->before != NULL)
		time -= live_number(f->before, "now_ns");
	if (old != NULL)
		busy -= live_number(old, "busy_ns");
	if (time > 0)
		snprintf(w.text, sizeof(w.text), "%.1f",
			 100 * fmin(fmax(busy / time, 0), 1));
	else
		snprintf(w.text, sizeof(w.text), "-");
	return w;
}

/* ---- the array ---------------------------------------------------------------------- */

/* A partition's number in the list is its letter. */
static char letter(uint32_t i)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

	if (i >= sizeof(letters) - 1)
		return '#';
	return letters[i];
}

static uint32_t hue(uint32_t i)
{
	return SHEET_FIRST + i % SHEET_HUES;
}

struct extent {
	double rows, cols; /* of the device */
	uint32_t high, wide;
	double line; /* units of a row drawn, of a device that is no grid */
};

static struct extent extent_of(const struct json *now)
{
	struct extent e = {.rows = fmax(1, live_number(now, "rows")),
			   .cols = fmax(1, live_number(now, "cols"))};

	if (live_number(now, "grid") == 0) {
		double all = e.rows * e.cols, high = ceil(all / ARRAY_COLUMNS);

		e.wide = (uint32_t)fmin(all, ARRAY_COLUMNS);
		e.high = (uint32_t)fmin(high, ARRAY_ROWS);
		e.line = ceil(all / e.high);
		return e;
	}
	e.high = (uint32_t)fmin(e.rows, ARRAY_ROWS);
	e.wide = (uint32_t)fmin(e.cols, ARRAY_COLUMNS);
	return e;
}

/* Who has the unit there; UINT32_MAX: nobody. */
static uint32_t owner(const struct json *now, double row, double col)
{
	uint32_t i = 0;

	for (const struct json *p = live_list(now, "partitions"); p != NULL;
	     p = p->next, i++) {
		double r = row - live_number(p, "row"), c = col - live_number(p, "col");

		if (r >= 0 && r < live_number(p, "rows") && c >= 0 &&
		    c < live_number(p, "cols"))
			return i;
	}
	return UINT32_MAX;
}

static uint32_t owner_at(const struct json *now, const struct extent *e, uint32_t y,
			 uint32_t x)
{
	double unit;

	if (e->line == 0)
		return owner(now, floor(e->rows * y / e->high),
			     floor(e->cols * x / e->wide));
	unit = floor(e->line * y + e->line * x / e->wide);
	return owner(now, floor(unit / e->cols), fmod(unit, e->cols));
}

/* Returns how wide it is. */
static uint32_t array(const struct frame *f, uint32_t row)
{
	struct extent e = extent_of(f->now);
	uint32_t step = e.wide <= ARRAY_COLUMNS / 2 ? 2 : 1;

	for (uint32_t y = 0; y < e.high; y++)
		for (uint32_t x = 0; x < e.wide; x++) {
			uint32_t i = owner_at(f->now, &e, y, x);

			sheet_put(f->sheet, row + y, x * step,
				  i != UINT32_MAX ? hue(i) : SHEET_PLAIN, "%c",
				  i != UINT32_MAX ? letter(i) : '.');
		}
	return e.wide * step;
}

/* ---- tables ------------------------------------------------------------------------- */

static void head(const struct frame *f, uint32_t row)
{
	char program[32], device[24], name[64], policy[32], clock[16], lost[80];
	const struct json *n = f->now;

	sheet_put(f->sheet, row, 0, SHEET_PLAIN, "%s %u: %s %s, clock %s, at %.6f s",
		  live_text(n, "program", program, sizeof(program)), whole(n, "pid"),
		  live_text(n, "device", device, sizeof(device)),
		  live_text(n, "name", name, sizeof(name)),
		  live_text(n, "clock", clock, sizeof(clock)),
		  live_number(n, "now_ns") / 1e9);
	sheet_put(f->sheet, row + 1, 0, SHEET_PLAIN,
		  "policy %s, longest wait %s; use %s %%; %u partitions, %s%u queues",
		  live_text(n, "policy", policy, sizeof(policy)),
		  time_text(live_number(n, "longest_wait_ns")).text,
		  use_text(f, n, f->before).text, whole(n, "partitions_all"),
		  guests_text(whole(n, "guests_all")).text, whole(n, "queues_all"));
	if (live_text(n, "lost", lost, sizeof(lost))[0] != '\0')
		sheet_put(f->sheet, row, 0, SHEET_WARN, "LOST: %-70s", lost);
	if (live_number(n, "gave_up") != 0)
		sheet_put(f->sheet, row + 1, 0, SHEET_WARN,
			  "policy %s given up, in order of arrival: %s", policy,
			  live_text(n, "reason", lost, sizeof(lost)));
}

/* Those of the i-th partition that fit in front of row end. */
static uint32_t guests(const struct frame *f, uint32_t row, uint32_t column, uint32_t i,
		       double host, uint32_t end)
{
	for (const struct json *g = live_list(f->now, "guests"); g != NULL && row < end;
	     g = g->next) {
		char name[13];

		if (live_number(g, "host") != host)
			continue;
		sheet_put(f->sheet, row, column, hue(i), "%c+", letter(i));
		sheet_put(f->sheet, row, column + 2, SHEET_PLAIN,
			  "%-12s %-13s %5s %9s %6s %9s",
			  live_text(g, "name", name, sizeof(name)), "guest", "", "",
			  use_text(f, g, was(f, "guests", "index", g)).text,
			  bytes_text(live_number(g, "memory_used")).text);
		row++;
	}
	return row;
}

static uint32_t partitions(const struct frame *f, uint32_t row, uint32_t column)
{
	uint32_t i = 0, end = row + ARRAY_ROWS;

	sheet_put(f->sheet, row++, column, SHEET_HEAD, "  %-12s %-13s %5s %9s %6s %9s",
		  "PARTITION", "AT", "UNITS", "MAY HAVE", "USE %", "MEMORY");
	for (const struct json *p = live_list(f->now, "partitions"); p != NULL;
	     p = p->next, i++) {
		char name[13], at[48], may[32];

		if (row == end - 1 && p->next != NULL) {
			sheet_put(f->sheet, row++, column + 2, SHEET_PLAIN, "and more");
			break;
		}
		snprintf(at, sizeof(at), "%u,%u %ux%u", whole(p, "row"), whole(p, "col"),
			 whole(p, "rows"), whole(p, "cols"));
		snprintf(may, sizeof(may), "%u-%u", whole(p, "floor"),
			 whole(p, "ceiling"));
		sheet_put(f->sheet, row, column, hue(i), "%c", letter(i));
		sheet_put(f->sheet, row, column + 2, SHEET_PLAIN,
			  "%-12s %-13.13s %5u %9.9s %6s %9s%s%s",
			  live_text(p, "name", name, sizeof(name)), at, whole(p, "units"),
			  may, use_text(f, p, was(f, "partitions", "index", p)).text,
			  bytes_text(live_number(p, "memory_used")).text,
			  live_number(p, "moving") != 0 ? " moves" : "",
			  live_number(p, "held") != 0 ? " held" : "");
		row = guests(f, row + 1, column, i, live_number(p, "index"), end - 1);
	}
	return row;
}

static uint32_t place_of(const struct json *now, double index)
{
	uint32_t i = 0;

	for (const struct json *p = live_list(now, "partitions"); p != NULL;
	     p = p->next, i++)
		if (live_number(p, "index") == index)
			return i;
	return UINT32_MAX;
}

static void queue(const struct frame *f, uint32_t row, const struct json *q)
{
	uint32_t part = place_of(f->now, live_number(q, "partition"));
	double deadline = live_number(q, "deadline_ns"), p99 = live_number(q, "p99_ns");
	bool late = deadline != 0 && p99 > deadline;
	char class[12], state[10], name[32];

	sheet_put(f->sheet, row, 0, part != UINT32_MAX ? hue(part) : SHEET_PLAIN, "%c%s",
		  part != UINT32_MAX ? letter(part) : '?',
		  json_member(q, "guest") != NULL ? "+" : "");
	sheet_put(f->sheet, row, 2, SHEET_PLAIN, "%5u %-11s %-8s %6s %7s %7s",
		  whole(q, "id"), live_text(q, "class", class, sizeof(class)),
		  live_text(q, "state", state, sizeof(state)),
		  use_text(f, q, was(f, "queues", "id", q)).text,
		  count_text(live_number(q, "completed")).text,
		  time_text(live_number(q, "p50_ns")).text);
	sheet_put(f->sheet, row, 53, late ? SHEET_WARN : SHEET_PLAIN, "%7s %8s %7s",
		  time_text(p99).text, deadline != 0 ? time_text(deadline).text : "-",
		  count_text(live_number(q, "deadline_misses")).text);
	sheet_put(f->sheet, row, 79, SHEET_PLAIN, "%8s  %s",
		  count_text(live_number(q, "suspends")).text,
		  live_text(q, "name", name, sizeof(name)));
}

static uint32_t queues(const struct frame *f, uint32_t row)
{
	sheet_put(f->sheet, row++, 0, SHEET_HEAD,
		  "  %5s %-11s %-8s %6s %7s %7s  %7s %8s %7s  %8s  %s", "QUEUE", "CLASS",
		  "STATE", "USE %", "ENDED", "P50", "P99", "DEADLINE", "MISSED",
		  "STOPPED", "NAME");
	for (const struct json *q = live_list(f->now, "queues"); q != NULL; q = q->next)
		queue(f, row++, q);
	return row;
}

/* The last ones. */
static uint32_t decisions(const struct frame *f, uint32_t row)
{
	const struct json *d = live_list(f->now, "decisions");
	uint32_t count = 0;

	for (const struct json *e = d; e != NULL; e = e->next)
		count++;
	for (; d != NULL; d = d->next, count--) {
		char text[160];

		if (count > DECISIONS)
			continue;
		sheet_put(f->sheet, row++, 0, SHEET_PLAIN, "%12.6f s  %s",
			  live_number(d, "at_ns") / 1e9,
			  live_text(d, "text", text, sizeof(text)));
	}
	return row;
}

uint32_t frame_draw(struct sheet *s, uint32_t row, const struct json *now,
		    const struct json *before)
{
	const struct frame f = {s, now, before};
	uint32_t beside, behind;

	head(&f, row);
	row += 3;
	beside = array(&f, row);
	behind = row + extent_of(now).high;
	row = partitions(&f, row, beside + 2);
	row = queues(&f, (row > behind ? row : behind) + 1);
	return decisions(&f, row + 1);
}
