/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs, and time.  A compute unit does one run at a time and acts at its end.  A run
 * that is bound by memory has a share of each bank it uses; that of the busiest counts.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define START_NS 3000u
#define STATE_NS 1000u /* to write a kernel's state */
#define GIVEN_UP                                                                         \
	3000000u /* ns after which the driver gives up the run of a unit that hangs */

struct world world = {
	.cards = {{.index = 0, .platform = "hal_stand_in_1"},
		  {.index = 1, .platform = "hal_stand_in_2"}},
};

void misuse(const char *fmt, ...)
{
	va_list ap;

	if (world.misused++)
		return;
	va_start(ap, fmt);
	vsnprintf(world.misuse, sizeof(world.misuse), fmt, ap);
	va_end(ap);
}

uint64_t mono(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void note(const char *what, const struct card *c, uint64_t start_ns)
{
	struct fpga_stand_in_job *j =
		&world.kept[(world.kept_first + world.kept_count) % JOBS_KEPT];

	if (world.kept_count == JOBS_KEPT)
		world.kept_first = (world.kept_first + 1) % JOBS_KEPT;
	else
		world.kept_count++;
	snprintf(j->what, sizeof(j->what), "%s", what);
	j->card = c->index;
	j->start_ns = start_ns;
	j->end_ns = world.now_ns;
}

/* ---- memory -------------------------------------------------------------------------- */

void *memory_at(const struct card *c, uint64_t address, uint64_t bytes)
{
	const struct bo *b;

	for (b = c->bos; b; b = b->lower)
		if (address >= b->address)
			break;
	if (!b || address - b->address > b->bytes ||
	    bytes > b->bytes - (address - b->address))
		return NULL;
	return b->memory + (address - b->address);
}

static bool names(const struct call *call, const struct card *c, uint32_t unit,
		  const struct bo *b)
{
	const struct fp_kernel_desc *k = &c->x.kernels[unit / c->x.slot_count];
	uint32_t i;

	for (i = 0; i < fp_all_args(k); i++)
		if (k->args[i].memory && call->args[i] >= b->address &&
		    call->args[i] < b->address + b->bytes)
			return true;
	return false;
}

bool bo_busy(const struct bo *b)
{
	const struct card *c = b->object.card;
	uint32_t i;

	for (i = 0; i < units_of(c); i++)
		if (c->units[i].busy && names(&c->units[i].call, c, i, b))
			return true;
	return false;
}

/* ---- units --------------------------------------------------------------------------- */

uint32_t units_of(const struct card *c)
{
	return c->loaded ? c->x.kernel_count * c->x.slot_count : 0;
}

const struct kernel_spec *spec_of(const struct card *c, uint32_t unit)
{
	return kernel_find(c->x.kernels[unit / c->x.slot_count].name);
}

void unit_begin(struct card *c, uint32_t unit, struct run *r)
{
	const struct kernel_spec *spec = spec_of(c, unit);
	const struct fp_kernel_desc *k = &c->x.kernels[unit / c->x.slot_count];
	struct unit *u = &c->units[unit];
	uint64_t ns;
	uint32_t i;

	u->run = r;
	u->busy = true;
	u->call = r->call;
	u->call.state = k->stops ? fp_state_arg(k) : 0;
	u->bad = spec->begin && !spec->begin(&u->call);
	ns = spec->ns(&u->call);
	u->start_ns = world.now_ns;
	u->begins_ns = world.now_ns + START_NS;
	u->hal_stop = 0;
	u->stops_ns = 0;
	ns = u->hangs ? GIVEN_UP : ns;
	u->end_as = u->hangs ? XRT_TIMEOUT : u->end_as;
	u->left = ns > UINT64_MAX / SHARES - START_NS ? NEVER : (ns + START_NS) * SHARES;
	u->banks = 0;
	for (i = 0; i < FP_ARGS_MAX; i++)
		if (r->bos[i])
			u->banks |= UINT64_C(1) << r->bos[i]->bank;
	r->state = XRT_RUNNING;
}

void unit_stop(struct card *c, uint32_t unit)
{
	struct unit *u = &c->units[unit];

	if (u->run)
		u->run->state = XRT_ABORT;
	u->run = NULL;
	u->busy = false;
}

/* What was written before it began was overwritten when it did.  It looks each step, and
 * writes what it has behind the next. */
void unit_ask(struct card *c, uint32_t unit, uint32_t value)
{
	const struct kernel_spec *spec = spec_of(c, unit);
	struct unit *u = &c->units[unit];
	uint64_t ran, at;

	if (u->busy && world.now_ns < u->begins_ns)
		return;
	u->hal_stop = (u->hal_stop & 2) | (value & 1);
	if (!u->busy || !spec->step_ns || u->stops_ns || !(value & 1))
		return;
	ran = world.now_ns - u->begins_ns;
	at = (ran / spec->step_ns + 1) * spec->step_ns;
	if ((at - ran) * SHARES >= u->left)
		return; /* it has ended by then */
	u->stops_ns = at;
	u->left = (at - ran + STATE_NS) * SHARES;
}

uint32_t unit_answer(struct card *c, uint32_t unit)
{
	const uint32_t answers = spec_of(c, unit)->answers;

	return answers ? answers : c->units[unit].hal_stop;
}

/* How many that are bound by memory use the busiest of its banks. */
static uint64_t crowd(const struct card *c, uint32_t unit)
{
	uint64_t most = 1;
	uint32_t bank, i;

	if (!spec_of(c, unit)->by_memory)
		return 1;
	for (bank = 0; bank < c->x.bank_count; bank++) {
		uint64_t n = 0;

		if (!(c->units[unit].banks >> bank & 1))
			continue;
		for (i = 0; i < units_of(c); i++)
			n += c->units[i].busy && spec_of(c, i)->by_memory &&
			     (c->units[i].banks >> bank & 1);
		if (n > most)
			most = n;
	}
	return most < 8 ? most : 8;
}

/* When the first of all ends, if nothing begins. */
static uint64_t next_end(void)
{
	uint64_t next = NEVER;
	uint32_t i, u;

	for (i = 0; i < CARDS; i++) {
		const struct card *c = &world.cards[i];

		for (u = 0; u < units_of(c); u++) {
			const uint64_t rate = SHARES / crowd(c, u);
			uint64_t at;

			if (!c->units[u].busy || c->units[u].left == NEVER)
				continue;
			at = world.now_ns + (c->units[u].left + rate - 1) / rate;
			next = at < next ? at : next;
		}
	}
	return next;
}

static void go_on(uint64_t to_ns)
{
	uint64_t spent[UNITS_MAX];
	uint32_t i, u;

	for (i = 0; i < CARDS; i++) {
		struct card *c = &world.cards[i];

		for (u = 0; u < units_of(c); u++)
			spent[u] = (to_ns - world.now_ns) * (SHARES / crowd(c, u));
		for (u = 0; u < units_of(c); u++)
			if (c->units[u].busy && c->units[u].left != NEVER)
				c->units[u].left -= spent[u] < c->units[u].left
							    ? spent[u]
							    : c->units[u].left;
	}
	world.now_ns = to_ns;
}

static bool end_some(void)
{
	bool some = false;
	uint32_t i, u;

	for (i = 0; i < CARDS; i++) {
		struct card *c = &world.cards[i];

		for (u = 0; u < units_of(c); u++) {
			struct unit *unit = &c->units[u];
			struct run *r = unit->run;
			bool ok;

			if (!unit->busy || unit->left)
				continue;
			c->bad |= unit->hangs;
			ok = !unit->bad && !unit->end_as &&
			     (unit->stops_ns
				      ? spec_of(c, u)->stop(&unit->call, unit->stops_ns)
				      : spec_of(c, u)->run(&unit->call));
			unit->hal_stop |= unit->stops_ns ? 2 : 0;
			note(c->x.units[u].name, c, unit->start_ns);
			unit->busy = false;
			unit->run = NULL;
			if (r)
				r->state = ok             ? XRT_COMPLETED
					   : unit->end_as ? unit->end_as
							  : XRT_ERROR;
			unit->end_as = 0;
			some = true;
		}
	}
	return some;
}

bool world_run(uint64_t until_ns, bool to_visible)
{
	uint64_t next;

	for (;;) {
		next = next_end();
		if (next > until_ns || next == NEVER)
			break;
		go_on(next);
		if (end_some() && to_visible)
			return true;
	}
	if (until_ns != NEVER && until_ns > world.now_ns)
		go_on(until_ns);
	return next != NEVER;
}

void world_pace(void)
{
	if (!world.drivers)
		(void)world_run(world.pace_ns + (mono() - world.pace_mono), false);
}

/* ---- cards --------------------------------------------------------------------------- */

void card_empty(struct card *c)
{
	memset(c->units, 0, sizeof(c->units));
	npu_drop(c);
	if (c->loaded)
		fp_xclbin_drop(&c->x);
	c->loaded = false;
}

void card_lose(struct card *c)
{
	uint32_t i;

	for (i = 0; i < units_of(c); i++)
		unit_stop(c, i);
	c->lost = true;
}
