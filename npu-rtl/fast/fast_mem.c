/* SPDX-License-Identifier: Apache-2.0 */
/* fast_mem.c - npu_ports with npu_port, npu_arb, npu_bucket, npu_turns, npu_return, and
 * behind them npu_dram, npu_cache and npu_ideal: when each request is answered. */
#include "fast.h"

#include <string.h>

#define STAY   4
#define CREDIT 8
#define AHEAD  8191 /* the most that a slot is charged */
#define BACK   3u   /* cycles from the DRAM's response to the slot's, of a load */
#define LEAST  5u
/* Requests of a slot that a channel has, each way. */
static const uint32_t depth[WAYS] = {16, 32};

static uint32_t row_of(const struct npu_model *m, uint32_t lline)
{
	return lline >> NPU_REG_GET(m->timing, TIMING_ROWBITS) >> 3;
}

static uint32_t bank_of(const struct npu_model *m, uint32_t lline)
{
	return (lline >> NPU_REG_GET(m->timing, TIMING_ROWBITS) ^ row_of(m, lline)) & 7u;
}

struct timing {
	uint32_t ncl, nrcd, nrp;
};

static struct timing timing_of(const struct npu_model *m)
{
	struct timing t = {NPU_REG_GET(m->timing, TIMING_NCL),
			   NPU_REG_GET(m->timing, TIMING_NRCD),
			   NPU_REG_GET(m->timing, TIMING_NRP)};

	return t;
}

static const struct arb_cfg *arb_of(const struct npu_model *m, uint32_t c)
{
	return &m->arb[m->ch_group >> c & 1u];
}

/* ---- buckets, and what is accepted ----------------------------------------------------- */

static bool limited(const struct npu_model *m, uint32_t slot)
{
	return m->limited >> slot & 1u;
}

/* Of a slot that is limited one request a cycle may pass: of the way that was used last,
 * eight in a row, unless it pauses. */
static enum way bucket_way(const struct slot *s)
{
	const struct translate *t = s->mmu.way;

	if (t[LOADS].req.v && t[STORES].req.v)
		return s->bucket_run == 8 ? 1 - s->bucket_last : s->bucket_last;
	return t[STORES].req.v ? STORES : LOADS;
}

static bool bucket_ok(const struct npu_model *m, const struct slot *s, enum way way)
{
	const struct request *q = &s->mmu.way[way].req;
	const struct bucket *b = &s->bucket[m->ch_group >> q->channel & 1u];

	return way == bucket_way(s) && (!b->window || b->tokens >= q->beats);
}

static void bucket_step(struct npu_model *m, struct slot *s)
{
	enum way way = bucket_way(s);
	const struct request *q = &s->mmu.way[way].req;

	s->held += q->v && !bucket_ok(m, s, way);
	if (s->acc[way]) {
		s->bucket_run = way == s->bucket_last ? s->bucket_run % 8 + 1 : 1;
		s->bucket_last = way;
	}
	for (uint32_t g = 0; g < 2; g++) {
		struct bucket *b = &s->bucket[g];

		if (!b->window)
			continue;
		if (s->acc[way] && (m->ch_group >> q->channel & 1u) == g)
			b->tokens -= q->beats;
		if (!--b->left) {
			b->left = b->window;
			b->tokens += b->budget;
			if (b->tokens > b->burst)
				b->tokens = b->burst;
		}
	}
}

void mem_accept(struct npu_model *m)
{
	for (uint32_t i = 0; i < m->shape.slots; i++)
		for (int w = 0; w < WAYS; w++) {
			struct slot *s = &m->slot[i];
			const struct request *q = &s->mmu.way[w].req;
			const struct queue *f = &m->channel[q->channel].queue[w][i];

			s->acc[w] = q->v &&
				    (!limited(m, i) || bucket_ok(m, s, (enum way)w)) &&
				    (m->ideal || f->wp - f->rp < depth[w]);
		}
}

/* ---- turns ---------------------------------------------------------------------------- */

static bool turns(const struct npu_model *m)
{
	return m->arb[0].mode == NPU_ARB_TURNS || m->arb[1].mode == NPU_ARB_TURNS;
}

static uint32_t guard(const struct npu_model *m)
{
	struct timing t = timing_of(m);

	return 3 * t.nrp + 2 * t.nrcd + (t.ncl ? t.ncl : 1) + 4;
}

static struct turn turn_step(struct npu_model *m)
{
	struct turn t = {.slot = m->turn_order >> 4 * m->turn_now & 15u,
			 .open = m->turn_left >= guard(m),
			 .close = m->turn_left <= 1};

	m->turn_left--;
	if (t.close) {
		m->turn_left = m->turn_cycles < guard(m) ? guard(m) : m->turn_cycles;
		m->turn_now = m->turn_now == m->turn_last ? 0 : (m->turn_now + 1) & 7u;
	}
	if (m->turn_restart) {
		m->turn_left = timing_of(m).nrp + 2;
		m->turn_now = m->turn_last;
	}
	m->turn_restart = false;
	return t;
}

/* ---- npu_arb ---------------------------------------------------------------------------- */

static const struct request *front(const struct channel *c, enum way way, uint32_t s)
{
	const struct queue *f = &c->queue[way][s];

	return &f->fifo[f->rp & 31u];
}

static uint32_t by_prio(const struct npu_model *m, uint32_t may)
{
	uint32_t top = 0, most = 0;

	for (uint32_t s = 0; s < m->shape.slots; s++) {
		uint32_t p = m->prio >> 4 * s & 15u;

		if (!(may >> s & 1u) || p < most)
			continue;
		top = p > most ? 0 : top;
		most = p;
		top |= 1u << s;
	}
	return top;
}

/* What a slot offers; stores: slots that offer a store. */
static const struct request *offer(const struct channel *c, uint32_t stores, uint32_t s)
{
	return front(c, stores >> s & 1u ? STORES : LOADS, s);
}

static uint32_t open_rows(const struct npu_model *m, const struct channel *c,
			  uint32_t stores, uint32_t top)
{
	uint32_t hits = 0;

	for (uint32_t s = 0; s < m->shape.slots; s++)
		if (top >> s & 1u) {
			uint32_t l = offer(c, stores, s)->lline, b = bank_of(m, l);

			if (c->open >> b & 1u && c->row[b] == row_of(m, l))
				hits |= 1u << s;
		}
	return hits;
}

/* Who goes next of those that may; SLOTS: nobody. */
static uint32_t choose(const struct npu_model *m, const struct channel *c,
		       const struct arb_cfg *cfg, const struct turn *t, uint32_t may,
		       uint32_t stores, uint32_t *top, bool *passes)
{
	struct timing n = timing_of(m);
	int32_t stay = STAY * (int32_t)(n.nrp + n.nrcd + n.ncl), least = 0;
	uint32_t hits = 0, can, who = SLOTS;

	*top = may;
	*passes = false;
	if (cfg->mode == NPU_ARB_TURNS)
		*top = t->open && t->slot < m->shape.slots ? may & 1u << t->slot : 0;
	else if (m->prio)
		*top = by_prio(m, may);
	if (cfg->mode == NPU_ARB_HITS && c->passed < cfg->pass)
		hits = open_rows(m, c, stores, *top);
	*passes = hits && *top != hits;
	can = hits ? hits : *top;
	if (can && !(can & (can - 1)))
		return (uint32_t)__builtin_ctz(can);
	for (uint32_t s = 0; s < m->shape.slots; s++) {
		int32_t key = c->charge[s] - (s == c->last ? stay : 0);

		if (can >> s & 1u && (who == SLOTS || key < least)) {
			who = s;
			least = key;
		}
	}
	return who;
}

/* Alone the slot would find this row open: it is one of the two it used last. */
static bool lost(const struct channel *c, uint32_t who, uint32_t at)
{
	return c->had[who][0] == at + 1 || c->had[who][1] == at + 1;
}

static void remember(struct channel *c, uint32_t who, uint32_t at)
{
	uint32_t *had = c->had[who], last = had[0] - 1;

	if (((last ^ last >> 3) & 7u) != ((at ^ at >> 3) & 7u) || !had[0])
		had[1] = had[0];
	had[0] = at + 1;
}

static void charge(const struct npu_model *m, struct channel *c, uint32_t who,
		   uint32_t top, const struct request *q)
{
	struct timing n = timing_of(m);
	int32_t credit = CREDIT * (int32_t)(n.nrp + n.nrcd + n.ncl), base;
	uint32_t bank = bank_of(m, q->lline), row = row_of(m, q->lline);
	uint32_t at = q->lline >> NPU_REG_GET(m->timing, TIMING_ROWBITS);
	int64_t change = 0, ago = c->charged - c->used[bank], empty = 0;
	uint32_t kind = NPU_CHAN_CH_HITS_OFF, pays = who;

	if (!(c->open >> bank & 1u)) {
		kind = NPU_CHAN_CH_CLOSED_OFF; /* long ago: hidden */
	} else if (c->row[bank] != row) {
		kind = NPU_CHAN_CH_CONFLICTS_OFF;
		change = n.nrp + n.nrcd;
		pays = lost(c, who, at) ? c->opened[bank] : who;
	}
	if (change > ago)
		empty = change - ago;
	c->charge[who] += (int32_t)q->beats;
	c->charge[pays] += (int32_t)empty;
	base = c->charge[who];
	for (uint32_t s = 0; s < m->shape.slots; s++)
		if (top >> s & 1u && c->charge[s] < base)
			base = c->charge[s];
	for (uint32_t s = 0; base > 0 && s < m->shape.slots; s++) {
		c->charge[s] -= base;
		if (c->charge[s] < -credit)
			c->charge[s] = -credit;
	}
	for (uint32_t s = 0; s < m->shape.slots; s++)
		if (c->charge[s] > AHEAD)
			c->charge[s] = AHEAD;
	remember(c, who, at);
	c->opened[bank] = who;
	c->open |= 1u << bank;
	c->row[bank] = row;
	c->charged += q->beats + empty;
	c->used[bank] = c->charged;
	c->count[q->we]++;
	c->count[kind >> 2]++;
	c->count[NPU_CHAN_CH_BEATS_OFF >> 2] += q->beats;
	c->count[8 + who] += q->beats;
}

/* ---- npu_cache -------------------------------------------------------------------------- */

static bool cached(const struct npu_model *m, struct channel *c, const struct request *q)
{
	uint32_t ways = m->extra.cache_ways, w = 0, set, draw, *line;

	if (!m->extra.cache_sets || q->we)
		return false;
	set = q->lline & (m->extra.cache_sets - 1);
	line = c->line[set];
	for (uint32_t i = 0; i < ways; i++)
		if (line[i] == q->lline + 1)
			return true;
	draw = (m->extra.cache_seed << 16 | c->taken[set]++) ^ set << 12 ^
	       (uint32_t)(c - m->channel) << 24;
	draw *= 0x2C1B3C6Du;
	draw = (draw ^ draw >> 15) * 0x297A2D39u;
	draw ^= draw >> 13;
	while (w < ways && line[w])
		w++;
	if (w == ways && draw % 4 == 0) {
		w = draw >> 2 & (ways - 1);
	} else if (w == ways) {
		w = c->oldest[set];
		c->oldest[set] = (uint8_t)((w + 1) & (ways - 1));
	}
	line[w] = q->lline + 1;
	return false;
}

/* ---- npu_dram --------------------------------------------------------------------------- */

/* Cycles since the channel's first period of refresh began. */
static uint64_t refresh_age(const struct npu_model *m, const struct channel *c)
{
	uint64_t channel = (uint64_t)(c - m->channel);

	return m->cycle - m->extra_since - 1 + (m->extra.refresh * channel >> 4);
}

static bool refreshes(const struct npu_model *m, const struct channel *c)
{
	return m->extra.refresh && m->cycle > m->extra_since &&
	       refresh_age(m, c) % m->extra.refresh >=
		       m->extra.refresh - m->extra.refreshing;
}

/* Rows are closed since the last request, if there was a refresh. */
static void refreshed(const struct npu_model *m, struct channel *c)
{
	uint64_t periods;

	if (!m->extra.refresh || m->cycle <= m->extra_since)
		return;
	periods = refresh_age(m, c) / m->extra.refresh;
	if (periods != c->refreshed)
		c->bank_open = 0;
	c->refreshed = periods;
}

static void effect(struct npu_model *m, const struct request *q)
{
	struct slot *s = &m->slot[q->slot];

	if (q->we) {
		if (q->fence)
			memory_write(m, q->pa, s->fence, q->len);
	} else if (q->tag == TAG_DESC || q->tag == TAG_FROM) {
		memory_read(m, q->pa & ~63u, s->line, 64);
	} else if (q->tag == TAG_WAIT) {
		memory_read(m, q->pa, &s->waited, 8);
	} else if (q->tag == TAG_WALK) {
		memory_read(m, q->pa & ~63u, s->mmu.walk_line, 64);
	}
}

static bool dram_ready(const struct npu_model *m, const struct channel *c)
{
	struct timing n = timing_of(m);

	return c->fly_wp - c->fly_rp < 32 && !refreshes(m, c) &&
	       c->bus_free <= m->cycle + n.nrp + n.nrcd + (n.ncl ? n.ncl : 1);
}

static void dram_take(struct npu_model *m, struct channel *c, const struct request *q)
{
	struct timing n = timing_of(m);
	uint32_t bank = bank_of(m, q->lline), row = row_of(m, q->lline);
	uint64_t ncl = n.ncl ? n.ncl : 1;
	/* What a cache takes is the whole line. */
	uint32_t beats = m->extra.cache_sets && !q->we ? 4 : q->beats;
	uint64_t col = c->free[bank] > m->cycle ? c->free[bank] : m->cycle, data, done;

	refreshed(m, c);
	if (cached(m, c, q)) {
		c->fly[c->fly_wp++ & 31u] = (struct flight){m->cycle + LEAST, *q};
		return;
	}
	if (!(c->bank_open >> bank & 1u))
		col += n.nrcd;
	else if (c->bank_row[bank] != row)
		col += n.nrp + n.nrcd;
	data = col + ncl > c->bus_free ? col + ncl : c->bus_free;
	done = data + beats > m->cycle + LEAST ? data + beats : m->cycle + LEAST;
	c->bank_open |= 1u << bank;
	c->bank_row[bank] = row;
	c->free[bank] = data - ncl + beats;
	c->bus_free = data + beats;
	c->fly[c->fly_wp++ & 31u] = (struct flight){done, *q};
}

/* ---- a channel's cycle ---------------------------------------------------------------------- */

static void answer(struct back *b, uint32_t c, const struct request *q, bool denied)
{
	b->fifo[c][b->wp[c]++ & 15u] =
		(struct response){.v = true, .denied = denied, .tag = q->tag};
	b->have |= 1u << c;
}

/* A store is answered, in the next cycle. */
static void acknowledge(struct slot *s, uint32_t c, const struct request *q, bool denied)
{
	s->next_ack.n[q->tag & 1u]++;
	s->next_ack.denied |= denied;
	s->due.out[c]--;
	s->due.any_out--;
}

static void pop(struct channel *c, enum way way, uint32_t s)
{
	struct queue *f = &c->queue[way][s];

	f->rp++;
	if (f->rp == f->wp)
		c->pend[way] &= ~(1u << s);
}

static void took(struct slot *s, enum way way, uint32_t c)
{
	if (way == STORES) {
		s->due.out[c]++;
		s->due.any_out++;
	} else {
		s->back.out[c]++;
		s->back.any_out++;
	}
}

/* Which of a way's slots may go next, which must not any more. */
static void find_may(const struct npu_model *m, const struct channel *c, uint32_t i,
		     enum way way, uint32_t *may, uint32_t *gone)
{
	for (uint32_t left = c->pend[way]; left; left &= left - 1) {
		uint32_t s = (uint32_t)__builtin_ctz(left);
		const struct slot *slot = &m->slot[s];
		bool ok = slot->ch_mask >> i & 1u || front(c, way, s)->walk;

		if ((way == STORES ? slot->due.out[i] : slot->back.out[i]) >= 16)
			continue;
		if (ok)
			*may |= 1u << s;
		else
			*gone |= 1u << s;
	}
}

static void drop(struct npu_model *m, struct channel *c, uint32_t i, enum way way,
		 uint32_t s)
{
	const struct request *q = front(c, way, s);

	took(&m->slot[s], way, i);
	if (way == STORES)
		acknowledge(&m->slot[s], i, q, true);
	else
		answer(&m->slot[s].back, i, q, true);
	pop(c, way, s);
}

/* A slot's loads go before its stores, but from when there is no more room for these
 * until half of them are gone. */
static void prefer_step(struct channel *c)
{
	for (uint32_t left = c->pend[STORES] | c->stores; left; left &= left - 1) {
		uint32_t s = (uint32_t)__builtin_ctz(left);
		const struct queue *f = &c->queue[STORES][s];
		uint32_t n = f->wp - f->rp;

		if (n == depth[STORES])
			c->stores |= 1u << s;
		else if (n <= depth[STORES] / 2)
			c->stores &= ~(1u << s);
	}
}

/* Nothing waits, and what is under way has not come yet. */
static bool channel_waits(const struct npu_model *m, const struct channel *c)
{
	return !(c->pend[LOADS] | c->pend[STORES] | c->stores) && !c->rsp_v &&
	       c->fly_wp != c->fly_rp && c->fly[c->fly_rp & 31u].done > m->cycle + BACK;
}

static void channel_step(struct npu_model *m, uint32_t i, const struct turn *turn)
{
	struct channel *c = &m->channel[i];
	uint32_t may[WAYS] = {0}, gone[WAYS] = {0}, top = 0, who = SLOTS, stores;
	const struct arb_cfg *cfg = arb_of(m, i);
	bool passes = false;
	const struct request *q = NULL;
	enum way way = LOADS;

	find_may(m, c, i, LOADS, &may[LOADS], &gone[LOADS]);
	find_may(m, c, i, STORES, &may[STORES], &gone[STORES]);
	stores = may[STORES] & (c->stores | ~may[LOADS]);
	prefer_step(c);
	if ((may[LOADS] | may[STORES]) && dram_ready(m, c))
		who = choose(m, c, cfg, turn, may[LOADS] | may[STORES], stores, &top,
			     &passes);
	if (c->rsp_v) {
		way = c->rsp.we ? STORES : LOADS;
		if (way == STORES)
			acknowledge(&m->slot[c->rsp.slot], i, &c->rsp, false);
		else
			answer(&m->slot[c->rsp.slot].back, i, &c->rsp, false);
		if (way == LOADS)
			gone[LOADS] &= ~(1u << c->rsp.slot);
	}
	if (who != SLOTS) {
		way = stores >> who & 1u ? STORES : LOADS;
		q = front(c, way, who);
		charge(m, c, who, top, q);
		c->last = who;
		c->passed = passes ? (c->passed + 1) & 15u : 0;
		took(&m->slot[who], way, i);
	}
	if (gone[LOADS])
		drop(m, c, i, LOADS, (uint32_t)__builtin_ctz(gone[LOADS]));
	if (gone[STORES])
		drop(m, c, i, STORES, (uint32_t)__builtin_ctz(gone[STORES]));
	c->rsp_v = false;
	if (c->fly_wp != c->fly_rp && c->fly[c->fly_rp & 31u].done <= m->cycle + BACK) {
		c->rsp = c->fly[c->fly_rp++ & 31u].req;
		c->rsp_v = true;
		effect(m, &c->rsp);
	}
	if (who != SLOTS) {
		dram_take(m, c, q);
		pop(c, way, who);
	}
	if (turn->close && cfg->mode == NPU_ARB_TURNS) {
		c->open = c->bank_open = 0;
		memset(c->had, 0, sizeof(c->had));
	}
	if (!(c->pend[LOADS] | c->pend[STORES]) && c->fly_wp == c->fly_rp && !c->rsp_v &&
	    !c->stores)
		m->busy_channels &= ~(1u << i);
}

/* ---- npu_return ------------------------------------------------------------------------------- */

static struct response back_step(struct back *b, uint32_t have)
{
	uint32_t above = have & ~((2u << b->last) - 1u);
	uint32_t c = (uint32_t)__builtin_ctz(above ? above : have);
	struct response r = b->fifo[c][b->rp[c]++ & 15u];

	if (b->rp[c] == b->wp[c])
		b->have &= ~(1u << c);
	b->out[c]--;
	b->any_out--;
	b->last = c;
	return r;
}

/* A slot's request is accepted. */
static void enter(struct npu_model *m, struct slot *s, enum way way)
{
	const struct request *q = &s->mmu.way[way].req;
	struct channel *c = &m->channel[q->channel];
	struct queue *f = &c->queue[way][s->id];

	if (m->ideal) {
		effect(m, q);
		if (way == STORES)
			s->next_ack.n[q->tag & 1u]++;
		else
			s->next_rsp = (struct response){.v = true, .tag = q->tag};
		return;
	}
	f->fifo[f->wp++ & 31u] = *q;
	c->pend[way] |= 1u << s->id;
	m->busy_channels |= 1u << q->channel;
}

void mem_step(struct npu_model *m)
{
	struct turn turn = {0};
	uint32_t have[SLOTS] = {0}, before = m->busy_channels;

	if (turns(m)) {
		turn = turn_step(m);
		before = (1u << m->shape.channels) - 1;
	}
	for (uint32_t s = 0; s < m->shape.slots; s++) {
		have[s] = m->slot[s].back.have;
		m->slot[s].next_ack = (struct acks){0};
	}
	for (uint32_t left = before; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(left);

		if (turn.close || !channel_waits(m, &m->channel[i]))
			channel_step(m, i, &turn);
	}
	/* The slots' step comes next, and sees what came with the last cycle. */
	for (uint32_t i = 0; i < m->shape.slots; i++) {
		struct slot *s = &m->slot[i];

		s->next_rsp.v = false;
		if (have[i] && !(s->acc[LOADS] && m->ideal))
			s->next_rsp = back_step(&s->back, have[i]);
		for (int w = 0; w < WAYS; w++)
			if (s->acc[w])
				enter(m, s, (enum way)w);
		if (limited(m, i))
			bucket_step(m, s);
	}
}

bool mem_busy(const struct npu_model *m)
{
	for (uint32_t i = 0; i < m->shape.slots; i++) {
		const struct slot *s = &m->slot[i];

		if (s->back.any_out || s->rsp.v || s->due.any_out || s->ack.n[0] ||
		    s->ack.n[1])
			return true;
	}
	return m->busy_channels != 0;
}

void mem_snapshot(struct npu_model *m)
{
	for (uint32_t i = 0; i < m->shape.channels; i++)
		memcpy(m->channel[i].shadow, m->channel[i].count,
		       sizeof(m->channel[i].count));
}
