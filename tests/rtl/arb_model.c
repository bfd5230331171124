/* SPDX-License-Identifier: Apache-2.0 */
/* arb_model.c - golden model of how channels are shared. */
#include "arb_model.h"

#include <string.h>

#include "npu_regs.h"

#define MOST     8191           /* that a slot is charged */
#define LONG_AGO UINT32_C(2047) /* bus cycles that no change of rows takes */

/* ---- who goes next ----------------------------------------------------------------- */

void arb_close(struct arb *a)
{
	for (uint32_t b = 0; b < ARB_BANKS; b++) {
		a->bank[b].open = false;
		a->bank[b].ago = LONG_AGO;
	}
	memset(a->mine, 0, sizeof(a->mine));
}

void arb_reset(struct arb *a, uint32_t slots, struct arb_timing t)
{
	memset(a, 0, sizeof(*a));
	a->slots = slots;
	a->t = t;
	arb_close(a);
}

void arb_place(const struct arb_timing *t, uint32_t lline, uint32_t *bank, uint32_t *row)
{
	*row = lline >> t->rowbits >> 3;
	*bank = (lline >> t->rowbits ^ *row) % ARB_BANKS;
}

static uint32_t prio_of(const struct arb *a, uint32_t s)
{
	return a->prio >> 4 * s & 15;
}

/* Those that the mode and the priorities leave. */
static uint32_t admitted(const struct arb *a, const struct arb_head *heads,
			 struct turn turn)
{
	uint32_t mask = 0, most = 0;

	for (uint32_t s = 0; s < a->slots; s++)
		if (heads[s].may && prio_of(a, s) > most)
			most = prio_of(a, s);
	for (uint32_t s = 0; s < a->slots; s++) {
		bool ok = a->mode == NPU_ARB_TURNS ? turn.open && turn.slot == s
						   : prio_of(a, s) == most;

		mask |= (uint32_t)(heads[s].may && ok) << s;
	}
	return mask;
}

static uint32_t row_hits(const struct arb *a, const struct arb_head *heads, uint32_t mask)
{
	uint32_t hits = 0;

	if (a->mode != NPU_ARB_HITS || a->passed >= a->pass)
		return 0;
	for (uint32_t s = 0; s < a->slots; s++) {
		uint32_t bank, row;

		arb_place(&a->t, heads[s].lline, &bank, &row);
		if (mask >> s & 1 && a->bank[bank].open && a->bank[bank].row == row)
			hits |= UINT32_C(1) << s;
	}
	return hits;
}

static int32_t unit(const struct arb *a)
{
	return (int32_t)(a->t.rp + a->t.rcd + a->t.cl);
}

int arb_pick(const struct arb *a, const struct arb_head *heads, struct turn turn)
{
	uint32_t mask = admitted(a, heads, turn), hits = row_hits(a, heads, mask);
	int32_t least = INT32_MAX;
	int who = -1;

	if (hits)
		mask = hits;
	for (uint32_t s = 0; s < a->slots; s++) {
		int32_t key = a->charge[s] - (s == a->last ? 4 * unit(a) : 0);

		if (mask >> s & 1 && key < least) {
			least = key;
			who = (int)s;
		}
	}
	return who;
}

enum arb_row arb_take(struct arb *a, const struct arb_head *heads, struct turn turn,
		      int who)
{
	uint32_t mask = admitted(a, heads, turn), hits = row_hits(a, heads, mask);
	enum arb_row found = ARB_ROW_HIT;
	struct arb_mine *mine = a->mine[who];
	uint32_t bank, row, change = 0, cost, pays = (uint32_t)who;
	int32_t base;

	arb_place(&a->t, heads[who].lline, &bank, &row);
	if (!a->bank[bank].open) {
		found = ARB_ROW_CLOSED;
		change = a->t.rcd;
	} else if (a->bank[bank].row != row) {
		found = ARB_ROW_CONFLICT;
		change = a->t.rp + a->t.rcd;
		for (uint32_t i = 0; i < ARB_MINE; i++)
			if (mine[i].is && mine[i].bank == bank && mine[i].row == row)
				pays = a->bank[bank].by;
	}
	change = change > a->bank[bank].ago ? change - a->bank[bank].ago : 0;
	cost = heads[who].beats + change;
	a->charge[who] += (int32_t)heads[who].beats;
	a->charge[pays] += (int32_t)change;
	base = a->charge[who];
	for (uint32_t s = 0; s < a->slots; s++)
		if (mask >> s & 1 && a->charge[s] < base)
			base = a->charge[s];
	for (uint32_t s = 0; base > 0 && s < a->slots; s++) {
		a->charge[s] -= base;
		if (a->charge[s] < -8 * unit(a))
			a->charge[s] = -8 * unit(a);
	}
	for (uint32_t s = 0; s < a->slots; s++)
		if (a->charge[s] > MOST)
			a->charge[s] = MOST;
	a->last = (uint32_t)who;
	a->passed = hits && mask != hits ? a->passed + 1 : 0;
	for (uint32_t b = 0; b < ARB_BANKS; b++)
		if (a->bank[b].ago < LONG_AGO)
			a->bank[b].ago += cost;
	a->bank[bank].open = true;
	a->bank[bank].row = row;
	a->bank[bank].ago = 0;
	a->bank[bank].by = (uint32_t)who;
	if (!mine[0].is || mine[0].bank != bank)
		mine[1] = mine[0];
	mine[0] = (struct arb_mine){.is = true, .bank = bank, .row = row};
	return found;
}

/* ---- turns ------------------------------------------------------------------------- */

/* From the last moment a request is taken until its row is closed again. */
static uint32_t guard(const struct turns *t)
{
	return 3 * t->t.rp + 2 * t->t.rcd + (t->t.cl ? t->t.cl : 1) + 4;
}

void turns_reset(struct turns *t, uint32_t slots, struct arb_timing timing)
{
	*t = (struct turns){.cycles = 128,
			    .last = slots - 1,
			    .order = NPU_GLB_TURN_ORDER_RESET,
			    .t = timing,
			    .left = 1};
}

struct turn turns_now(const struct turns *t)
{
	return (struct turn){.open = t->left >= guard(t),
			     .close = t->left <= 1,
			     .slot = t->order >> 4 * t->turn & 15};
}

void turns_step(struct turns *t, bool restart)
{
	if (restart) {
		t->left = t->t.rp + 2;
		t->turn = t->last;
	} else if (t->left > 1) {
		t->left--;
	} else {
		t->left = t->cycles < guard(t) ? guard(t) : t->cycles;
		t->turn = t->turn == t->last ? 0 : (t->turn + 1) % 8;
	}
}

/* ---- buckets ----------------------------------------------------------------------- */

void bucket_set(struct bucket *b, uint32_t window, uint32_t budget, uint32_t burst)
{
	*b = (struct bucket){.window = window,
			     .budget = budget,
			     .burst = burst,
			     .left = window,
			     .tokens = burst};
}

bool bucket_ok(const struct bucket *b, uint32_t beats)
{
	return !b->window || b->tokens >= beats;
}

void bucket_step(struct bucket *b, uint32_t taken)
{
	if (!b->window)
		return;
	b->tokens -= taken;
	if (--b->left == 0) {
		b->left = b->window;
		b->tokens += b->budget;
		if (b->tokens > b->burst)
			b->tokens = b->burst;
	}
}

uint32_t ways_asked(const struct ways *w, bool way0, bool way1)
{
	if (way0 && way1)
		return w->run == 8 ? !w->last : w->last;
	return way1;
}

void ways_went(struct ways *w, uint32_t way)
{
	if (way != w->last || w->run == 8)
		w->run = 0;
	w->last = way;
	w->run++;
}
