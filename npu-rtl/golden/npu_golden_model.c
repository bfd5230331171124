/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_golden_model.c - npu_model.h over the golden model: registers, rings, page tables
 * and faults as the machine has them, time by a simple cost: engine "golden".  For tests
 * of software, and where bits are all that is asked for; docs/npu.md says how far its
 * cycles are off.  With times from outside and without effects: engine "replay".
 *
 * A descriptor takes effect as a whole when its cost has passed; a KILL before that
 * leaves nothing of it.  Slots advance in the order of their events, ties by number.
 */
#include "npu_model.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "npu_golden.h"
#include "npu_map.h"
#include "npu_modes.h"
#include "npu_panel.h"
#include "npu_regs.h"
#include "npu_space.h"

#define FETCH_CYCLES  16u /* fetch and decode */
#define KILL_CYCLES   2u
#define SAVE_CYCLES   31u /* h + w - 1 of 16 x 16 */
#define NEVER         UINT64_MAX
#define SIDE_MAX      128u
#define SLOTS_MAX     8u
#define CHANNELS_MAX  16u
#define COUNTER_WORDS 28 /* CNT_CYCLES .. CNT_TLB_MISSES */

/* In the order of the table. */
struct counters {
	uint64_t cycles, active, stall_a, stall_w, stall_out, stall_seq, idle;
	uint64_t macs, folds, rows, descs, read_beats, write_beats, tlb_misses;
};

struct slot {
	uint32_t ring_base, ring_log2, head, tail;
	uint32_t state; /* STATE code */
	uint32_t stop;  /* PREEMPT code under way; 0: none */
	uint32_t fault_kind, fault_addr, fault_desc;
	uint32_t preempt_cycles;
	uint64_t stop_at;     /* cycle of the PREEMPT */
	uint64_t started;     /* of the current descriptor */
	uint32_t desc_cycles; /* what it had run when the slot stopped */
	uint64_t due;         /* it takes effect; NEVER: none is running */
	uint32_t desc[16];
	int waiting; /* a WAIT that is not satisfied */
	uint32_t save;
	int from_save; /* the descriptor at HEAD goes on from there */
	/* Where the current one began, and, if it is to stop inside, where. */
	struct npu_progress from, to;
	int folds;
	uint32_t pt_base, pt_count, context, ch_mask, ctrl;
	struct npu_rect rect;
	uint32_t staged;
	struct counters now, shadow;
};

struct npu_model {
	struct npu_model_shape shape;
	uint8_t *memory;
	uint64_t bytes, cycle, snapshot;
	struct slot slots[SLOTS_MAX];
	struct npu_hash hash;
	uint32_t ctrl, irq_pend, irq_mask, map_status, mode_status, timing;
	uint32_t time_hi;
	npu_fold_fn fold;
	void *fold_user;
	npu_desc_fn desc;
	void *desc_user;
	npu_cost_fn replay; /* NULL: descriptors take effect */
	void *replay_user;
};

/* ---- memory ----------------------------------------------------------------------- */

static struct npu_space space_of(const struct npu_model *m, const struct slot *s)
{
	return (struct npu_space){m->memory,  m->bytes,    &m->hash,
				  s->pt_base, s->pt_count, s->ch_mask};
}

/* ---- time ------------------------------------------------------------------------- */

static uint32_t slot_number(const struct npu_model *m, const struct slot *s)
{
	return (uint32_t)(s - m->slots);
}

static void raise_irq(struct npu_model *m, const struct slot *s, uint32_t lsb)
{
	m->irq_pend |= 1u << (lsb + slot_number(m, s));
}

struct shape {
	uint64_t m, n, k;
};

static struct shape shape_of(const uint32_t *d)
{
	struct shape p = {NPU_GET(d, DM), NPU_GET(d, DN), NPU_GET(d, CIN)};

	if (NPU_GET(d, OPCODE) == NPU_OP_CONV) {
		if (NPU_GET(d, F_GROUP))
			p.k = NPU_GET(d, GC);
		p.k *= (uint64_t)NPU_GET(d, KH) * NPU_GET(d, KW);
	}
	return p;
}

static int matrix(const uint32_t *d)
{
	return NPU_GET(d, OPCODE) == NPU_OP_GEMM || NPU_GET(d, OPCODE) == NPU_OP_CONV;
}

static int computes(const uint32_t *d)
{
	return matrix(d) || NPU_GET(d, OPCODE) == NPU_OP_VEC;
}

static uint64_t macs_of(const uint32_t *d)
{
	struct shape p = shape_of(d);

	return matrix(d) ? p.m * p.n * p.k : 0;
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

static uint64_t whole_cost(const struct slot *s, const uint32_t *d)
{
	uint32_t op = NPU_GET(d, OPCODE), vop = NPU_GET(d, VOP);
	uint64_t elements;

	if (matrix(d)) {
		struct shape p = shape_of(d);

		if (!s->rect.rows)
			return FETCH_CYCLES;
		return FETCH_CYCLES + divide_up(p.n, s->rect.cols) *
					      divide_up(p.k, s->rect.rows) *
					      (p.m > s->rect.rows ? p.m : s->rect.rows);
	}
	if (op != NPU_OP_VEC)
		return FETCH_CYCLES;
	elements = vop == NPU_VOP_MAXPOOL || vop == NPU_VOP_AVGPOOL
			   ? (uint64_t)NPU_GET(d, CIN) * NPU_GET(d, KH) * NPU_GET(d, KW)
			   : NPU_GET(d, VCOLS);
	return FETCH_CYCLES + divide_up(elements * NPU_GET(d, DM), 16);
}

/* Outputs that are stored at p, and what sums are worth of some. */
static uint64_t outputs(const uint32_t *d, const struct npu_progress *p)
{
	uint64_t sums = (uint64_t)p->t * p->k + (uint64_t)p->r * p->kr;

	return (uint64_t)p->m * npu_golden_cols(d) +
	       (matrix(d) ? (uint64_t)p->t * p->n : p->n) +
	       (p->nc ? sums * p->nc / shape_of(d).k : 0);
}

/* As much of the whole cost as the outputs from .from up to there are of all. */
static uint64_t cost_to(const struct slot *s, const uint32_t *d,
			const struct npu_progress *to)
{
	uint64_t all = (uint64_t)NPU_GET(d, DM) * npu_golden_cols(d), some, whole;

	if (!computes(d) || (matrix(d) && !s->rect.rows) || !all)
		return whole_cost(s, d);
	some = outputs(d, to) - outputs(d, &s->from);
	whole = whole_cost(s, d) - FETCH_CYCLES;
	return FETCH_CYCLES + whole / all * some + whole % all * some / all;
}

static uint64_t cost(const struct slot *s, const uint32_t *d)
{
	const struct npu_progress end = {.m = NPU_GET(d, DM)};

	return cost_to(s, d, &end);
}

/* The tiles of a GEMM or CONV in the order of work. */
struct tiles {
	struct npu_progress at; /* the next one begins there */
	uint32_t m, n, cols, depth;
};

static struct tiles tiles_of(const struct slot *s)
{
	const uint32_t *d = s->desc;
	uint32_t panel = NPU_GET(d, PANEL);
	struct tiles w = {.at = s->from,
			  .m = NPU_GET(d, DM),
			  .n = NPU_GET(d, DN),
			  .cols = s->rect.cols};

	if (!w.at.t)
		w.at.half = npu_panel_most(NPU_GET(d, F_OUT32), shape_of(d).k,
					   s->rect.rows, s->rect.cols) == NPU_DEPTH_PAIR;
	w.depth = npu_panel_kept(NPU_GET(d, F_OUT32), w.at.half);
	w.depth = panel < w.depth ? panel : w.depth;
	if (!w.at.t)
		w.at.t = npu_golden_kcut(d) ? w.m : npu_panel_next(w.m, w.depth, 0);
	return w;
}

static void next_tile(struct tiles *w)
{
	w->at.n += w->at.nc ? w->at.nc : w->cols;
	w->at.k = w->at.kr = w->at.nc = w->at.r = 0;
	if (w->at.n < w->n)
		return;
	w->at.n = 0;
	w->at.m += w->at.t;
	w->at.t = w->at.m < w->m ? npu_panel_next(w->m - w->at.m, w->depth, w->at.t) : 0;
}

/* Columns of the next tile. */
static uint32_t width(const struct tiles *w)
{
	if (w->at.nc)
		return w->at.nc;
	return w->n - w->at.n < w->cols ? w->n - w->at.n : w->cols;
}

/* Tells of the folds the machine would have run up to there, spread over the time. */
static void report_folds(struct npu_model *m, struct slot *s,
			 const struct npu_progress *to)
{
	uint32_t k = (uint32_t)shape_of(s->desc).k, kcut = npu_golden_kcut(s->desc);
	uint64_t t0 = s->started;
	struct tiles w;

	if (!matrix(s->desc))
		return;
	for (w = tiles_of(s); outputs(s->desc, &w.at) < outputs(s->desc, to);
	     next_tile(&w)) {
		bool last = w.at.m == to->m && w.at.n == to->n;
		uint32_t t = w.at.t, cols = width(&w), rows;

		for (uint32_t k0 = w.at.k; k0 < (last ? to->k : k); k0 += rows) {
			rows = npu_panel_fold(k0, k, s->rect.rows, kcut);
			struct npu_fold f = {.slot = slot_number(m, s),
					     .rows_used = rows,
					     .cols_used = cols,
					     .t = t,
					     .start = t0,
					     .end = t0 + t};

			if (m->fold)
				m->fold(m->fold_user, &f);
			t0 += t;
			s->now.folds++;
			s->now.rows += t;
		}
	}
}

/* ---- the slot --------------------------------------------------------------------- */

static bool at_work(const struct slot *s)
{
	return s->state == NPU_STATE_RUN || s->state == NPU_STATE_STOPPING;
}

static uint32_t at_desc(const struct npu_model *m, const struct slot *s)
{
	return at_work(s) ? (uint32_t)(m->cycle - s->started) : s->desc_cycles;
}

static void fault(struct npu_model *m, struct slot *s, uint32_t kind, uint32_t address)
{
	s->desc_cycles = at_desc(m, s);
	s->state = NPU_STATE_FAULT;
	s->due = NEVER;
	s->waiting = 0;
	s->folds = 0;
	s->from_save = 0;
	s->fault_kind = kind;
	s->fault_addr = address;
	s->fault_desc = s->head;
	raise_irq(m, s, NPU_IRQ_PEND_FAULT_LSB);
	if (s->stop)
		raise_irq(m, s, NPU_IRQ_PEND_QUIET_LSB);
	s->stop = 0;
}

static void stopped(struct npu_model *m, struct slot *s, uint32_t state)
{
	s->desc_cycles = at_desc(m, s);
	s->state = state;
	s->due = NEVER;
	s->waiting = 0;
	s->folds = 0;
	s->stop = 0;
	s->preempt_cycles = (uint32_t)(m->cycle - s->stop_at);
	raise_irq(m, s, NPU_IRQ_PEND_QUIET_LSB);
}

/* A PREEMPT DRAIN, FOLD or SAVE between two descriptors. */
static void drained(struct npu_model *m, struct slot *s)
{
	stopped(m, s, s->from_save ? NPU_STATE_FOLDED : NPU_STATE_DRAINED);
}

/* Where the descriptor begins; 0 or a FAULT code. */
static uint32_t begin(struct npu_model *m, struct slot *s, uint32_t *bad)
{
	struct npu_space sp = space_of(m, s);
	uint32_t context[NPU_CONTEXT_WORDS], kind;

	s->from = (struct npu_progress){0};
	if (!s->from_save)
		return 0;
	s->from_save = 0;
	kind = npu_golden_check(s->desc, bad);
	if (!kind && matrix(s->desc) && !s->rect.rows)
		kind = NPU_FAULT_NO_UNITS;
	if (kind)
		return kind;
	kind = (uint32_t)npu_space_read(&sp, s->save, context, sizeof(context), bad);
	if (kind)
		return kind;
	*bad = s->save;
	kind = npu_golden_context(s->desc, s->context, context, &s->from);
	if (!npu_golden_sums_used(s->desc, s->rect.rows, s->rect.cols, &s->from))
		s->from.k = s->from.kr = s->from.nc = s->from.r = 0;
	return kind;
}

/* Takes the next descriptor of the ring, if it may. */
static void fetch(struct npu_model *m, struct slot *s)
{
	struct npu_space sp = space_of(m, s);
	uint32_t entry, bad = 0;
	int kind;

	if (s->stop) {
		drained(m, s);
		return;
	}
	s->state = NPU_STATE_IDLE;
	s->desc_cycles = 0;
	if (s->head == s->tail)
		return;
	s->state = NPU_STATE_RUN;
	entry = s->head & ((1u << s->ring_log2) - 1u);
	kind = npu_space_read(&sp, s->ring_base + entry * 64, s->desc, 64, &bad);
	if (!kind)
		kind = (int)begin(m, s, &bad);
	if (kind) {
		fault(m, s, (uint32_t)kind, bad);
		return;
	}
	s->started = m->cycle;
	s->due = m->cycle +
		 (m->replay ? m->replay(m->replay_user, slot_number(m, s), s->desc)
			    : cost(s, s->desc));
}

static void account(struct npu_model *m, struct slot *s,
		    const struct npu_golden_result *r)
{
	s->now.active += m->cycle - s->started;
	s->now.macs += r->macs;
	s->now.read_beats += divide_up(r->read_bytes, 16) + 4;
	s->now.write_beats += divide_up(r->write_bytes, 16);
}

static int write_sums(const struct slot *s, const struct npu_golden_env *env,
		      uint32_t *bad)
{
	const struct npu_progress *p = &s->to;
	int32_t *sums = calloc((size_t)p->t * p->nc, sizeof(*sums));
	int kind = sums ? npu_golden_sums(s->desc, env, p, sums) : 0;

	for (uint32_t i = 0; sums && !kind && i < p->t; i++)
		kind = npu_space_write(env->user, s->save + npu_golden_sums_at(p, i),
				       sums + (size_t)i * p->nc, p->nc * 4, bad);
	free(sums);
	return kind;
}

/* The current descriptor has come so far, and stops. */
static void fold(struct npu_model *m, struct slot *s, struct npu_golden_env *env)
{
	struct npu_golden_result r;
	uint32_t context[NPU_CONTEXT_WORDS], bad = 0;
	int kind;

	env->to = &s->to;
	npu_golden_exec(s->desc, env, &r);
	if (r.fault) {
		fault(m, s, r.fault, r.address);
		return;
	}
	account(m, s, &r);
	report_folds(m, s, &s->to);
	npu_golden_save(s->desc, s->context, &s->to, context);
	kind = npu_space_write(env->user, s->save, context, s->to.nc ? 40 : 32, &bad);
	if (!kind && s->to.nc)
		kind = write_sums(s, env, &bad);
	if (kind)
		fault(m, s, (uint32_t)kind, bad);
	else
		stopped(m, s, NPU_STATE_FOLDED);
}

/* The current descriptor takes effect. */
static void finish(struct npu_model *m, struct slot *s)
{
	struct npu_space sp = space_of(m, s);
	struct npu_golden_env env = {.user = &sp,
				     .read = npu_space_read,
				     .write = npu_space_write,
				     .time = m->cycle,
				     .rows = s->rect.rows,
				     .cols = s->rect.cols,
				     .from = npu_golden_begun(&s->from) ? &s->from
									: NULL};
	const struct npu_progress all = {.m = NPU_GET(s->desc, DM)};
	struct npu_golden_result r;

	if (s->folds) {
		fold(m, s, &env);
		return;
	}

	s->due = NEVER;
	if (m->replay && computes(s->desc))
		r = (struct npu_golden_result){.macs = macs_of(s->desc)};
	else
		npu_golden_exec(s->desc, &env, &r);
	if (r.fault) {
		fault(m, s, r.fault, r.address);
		return;
	}
	if (r.waiting) {
		s->waiting = 1;
		return;
	}
	s->waiting = 0;
	account(m, s, &r);
	s->now.descs++;
	report_folds(m, s, &all);
	s->head++;
	s->started = m->cycle;
	if (m->desc)
		m->desc(m->desc_user, slot_number(m, s), s->head - 1);
	if (r.irq)
		raise_irq(m, s, NPU_IRQ_PEND_SIGNAL_LSB);
	fetch(m, s);
}

static int irq_line(const struct npu_model *m)
{
	return (m->irq_pend & m->irq_mask) != 0;
}

static struct slot *next_slot(struct npu_model *m)
{
	struct slot *best = NULL;

	for (uint32_t i = 0; i < m->shape.slots; i++)
		if (m->slots[i].due != NEVER && (!best || m->slots[i].due < best->due))
			best = &m->slots[i];
	return best;
}

/* Memory may have changed: WAITs look again. */
static void look_again(struct npu_model *m)
{
	for (uint32_t i = 0; i < m->shape.slots; i++)
		if (m->slots[i].waiting && m->slots[i].due == NEVER)
			m->slots[i].due = m->cycle + FETCH_CYCLES;
}

/* Everything that happens up to and including cycle until, or until the line rises. */
static void advance(struct npu_model *m, uint64_t until, int stop_at_irq)
{
	struct slot *s;

	while (!(stop_at_irq && irq_line(m))) {
		s = next_slot(m);
		if (!s || s->due > until) {
			m->cycle = until;
			return;
		}
		if (s->due > m->cycle)
			m->cycle = s->due;
		if (s->stop == NPU_PREEMPT_KILL) {
			stopped(m, s, NPU_STATE_KILLED);
			continue;
		}
		finish(m, s);
		if (!s->waiting)
			look_again(m);
	}
}

static int stands(const struct slot *s)
{
	return s->state == NPU_STATE_DRAINED || s->state == NPU_STATE_FOLDED ||
	       s->state == NPU_STATE_KILLED;
}

/* The current operation stops at .to in that cycle, at the earliest. */
static void stop_early(struct npu_model *m, struct slot *s, const struct npu_progress *to,
		       uint64_t cycle)
{
	if (!outputs(s->desc, to)) {
		drained(m, s);
		return;
	}
	s->to = *to;
	s->due = cycle > m->cycle ? cycle : m->cycle;
	s->folds = 1;
}

/* Behind the tile that has begun, if another follows. */
static void tile_early(struct npu_model *m, struct slot *s)
{
	struct tiles w = tiles_of(s);

	while (w.at.m < w.m && s->started + cost_to(s, s->desc, &w.at) < m->cycle)
		next_tile(&w);
	if (w.at.m < w.m)
		stop_early(m, s, &w.at, s->started + cost_to(s, s->desc, &w.at));
}

/* How far the tile that w is at has come in so many of the cycles it takes. */
static void within(const struct slot *s, const struct tiles *w, uint64_t spent,
		   uint64_t all, struct npu_progress *to)
{
	uint32_t k = (uint32_t)shape_of(s->desc).k, h = s->rect.rows;
	uint32_t kcut = npu_golden_kcut(s->desc);
	uint64_t left;

	*to = w->at;
	to->nc = width(w);
	if (!to->r)
		to->kr = npu_panel_fold(to->k, k, h, kcut);
	left = spent < all ? (k - to->k) * spent / all : k - to->k;
	while (left >= to->kr && to->k + to->kr < k) {
		left -= to->kr;
		to->k += to->kr;
		to->kr = npu_panel_fold(to->k, k, h, kcut);
		to->r = 0;
	}
	if (left > to->kr)
		left = to->kr;
	if (to->kr && to->t * left / to->kr > to->r)
		to->r = (uint32_t)(to->t * left / to->kr);
	if (!to->k && !to->r)
		to->kr = to->nc = 0;
}

/* Of the fold that *at is in all rows go through the array; next: behind its tile. */
static void whole_fold(const struct slot *s, const struct npu_progress *next,
		       struct npu_progress *at)
{
	uint32_t k = (uint32_t)shape_of(s->desc).k;

	if (!at->r)
		return;
	at->k += at->kr;
	at->r = 0;
	if (at->k >= k)
		*at = *next;
	else
		at->kr = npu_panel_fold(at->k, k, s->rect.rows, npu_golden_kcut(s->desc));
}

/* The current operation stops where it is, or behind the fold that it is in; where tiles
 * are stored side by side, which are short, behind them. */
static void array_early(struct npu_model *m, struct slot *s, uint32_t mode)
{
	const uint32_t *d = s->desc;
	struct npu_progress to;
	struct tiles w, next;
	uint64_t begins, due = m->cycle;

	if (!matrix(d) || !s->rect.rows || m->replay)
		return;
	if (npu_panel_most(NPU_GET(d, F_OUT32), shape_of(d).k, s->rect.rows,
			   s->rect.cols) == NPU_DEPTH_PAIR) {
		tile_early(m, s);
		return;
	}
	next = w = tiles_of(s);
	for (next_tile(&next); next.at.m < next.m; next_tile(&next)) {
		if (s->started + cost_to(s, d, &next.at) > m->cycle)
			break;
		w = next;
	}
	begins = s->started + cost_to(s, d, &w.at);
	within(s, &w, m->cycle > begins ? m->cycle - begins : 0,
	       s->started + cost_to(s, d, &next.at) - begins, &to);
	if (mode == NPU_PREEMPT_FOLD) {
		whole_fold(s, &next.at, &to);
		due = s->started + cost_to(s, d, &to);
	}
	if (to.m < w.m)
		stop_early(m, s, &to, due + SAVE_CYCLES);
}

/* The current VEC stops where it is. */
static void vec_early(struct npu_model *m, struct slot *s)
{
	const uint32_t *d = s->desc;
	uint64_t cols = npu_golden_cols(d), all = NPU_GET(d, DM) * cols, at;
	uint64_t spent = m->cycle - s->started, whole = cost(s, d) - FETCH_CYCLES;

	if (m->replay || !all || !whole)
		return;
	spent = spent > FETCH_CYCLES ? spent - FETCH_CYCLES : 0;
	at = outputs(d, &s->from);
	at += (all - at) / whole * spent + (all - at) % whole * spent / whole;
	if (at >= all)
		return;
	s->to = (struct npu_progress){.m = (uint32_t)(at / cols),
				      .n = (uint32_t)(at % cols) & ~31u};
	if (NPU_GET(d, VOP) == NPU_VOP_SOFTMAX)
		s->to.n = 0;
	if (outputs(d, &s->to) < outputs(d, &s->from))
		s->to = s->from;
	if (!npu_golden_begun(&s->to)) {
		drained(m, s);
		return;
	}
	s->due = m->cycle + SAVE_CYCLES;
	s->folds = 1;
}

static void preempt(struct npu_model *m, struct slot *s, uint32_t mode)
{
	int running = s->state == NPU_STATE_RUN;

	if (mode < NPU_PREEMPT_DRAIN || mode > NPU_PREEMPT_KILL)
		return;
	s->stop_at = m->cycle;
	if (s->state == NPU_STATE_FAULT) {
		raise_irq(m, s, NPU_IRQ_PEND_QUIET_LSB);
		return;
	}
	if (stands(s))
		return;
	s->stop = mode;
	if (mode == NPU_PREEMPT_KILL && running) {
		s->now.active += m->cycle - s->started;
		s->due = m->cycle + KILL_CYCLES;
		s->state = NPU_STATE_STOPPING;
	} else if (mode == NPU_PREEMPT_KILL) {
		s->from_save = 0;
		stopped(m, s, NPU_STATE_KILLED);
	} else if (!running || s->waiting) {
		drained(m, s);
	} else if (mode != NPU_PREEMPT_DRAIN && NPU_GET(s->desc, OPCODE) == NPU_OP_VEC) {
		vec_early(m, s);
	} else if (mode != NPU_PREEMPT_DRAIN) {
		array_early(m, s, mode);
	}
}

static int runnable(const struct slot *s)
{
	return s->state == NPU_STATE_IDLE;
}

static void ring_base(struct slot *s, uint32_t value)
{
	s->ring_base = value & ~63u;
	s->head = 0;
	s->tail = 0;
	s->state = NPU_STATE_IDLE;
	s->due = NEVER;
	s->waiting = 0;
	s->folds = 0;
	s->from_save = 0;
	s->stop = 0;
	s->desc_cycles = 0;
	s->fault_kind = NPU_FAULT_NONE;
}

static void resume(struct npu_model *m, struct slot *s, uint32_t value)
{
	if (stands(s) || s->state == NPU_STATE_IDLE)
		s->from_save = NPU_REG_GET(value, RESUME_CONTEXT) != 0;
	if (!stands(s))
		return;
	s->state = NPU_STATE_IDLE;
	fetch(m, s);
}

/* ---- the map ---------------------------------------------------------------------- */

static void map_commit(struct npu_model *m)
{
	struct npu_rect now[SLOTS_MAX];
	uint32_t staged[SLOTS_MAX], busy = 0, slot, verdict;

	for (uint32_t i = 0; i < SLOTS_MAX && i < m->shape.slots; i++) {
		const struct slot *s = &m->slots[i];

		now[i] = s->rect;
		staged[i] = s->staged;
		busy |= (uint32_t)(s->state == NPU_STATE_RUN ||
				   s->state == NPU_STATE_STOPPING)
			<< i;
	}
	verdict = npu_map_verdict(staged, now, m->shape.slots, m->shape.rows,
				  m->shape.cols, busy, &slot);

	m->map_status = NPU_REG_BITS(MAP_STATUS_RESULT, verdict) |
			NPU_REG_BITS(MAP_STATUS_SLOT, slot);
	for (uint32_t i = 0; verdict == NPU_MAP_OK && i < m->shape.slots; i++)
		m->slots[i].rect = npu_rect_of(m->slots[i].staged);
}

/* ---- registers -------------------------------------------------------------------- */

static void snapshot(struct npu_model *m)
{
	m->snapshot = m->cycle;
	for (uint32_t i = 0; i < m->shape.slots; i++) {
		struct slot *s = &m->slots[i];
		uint64_t running = s->state == NPU_STATE_RUN ? m->cycle - s->started : 0;

		s->shadow = s->now;
		s->shadow.cycles = m->cycle;
		s->shadow.active += running;
		s->shadow.idle = s->shadow.cycles - s->shadow.active;
	}
}

static uint32_t slot_status(const struct slot *s)
{
	int quiet = s->state != NPU_STATE_RUN && s->state != NPU_STATE_STOPPING;

	return NPU_REG_BITS(STATUS_STATE, s->state) | NPU_REG_BITS(STATUS_QUIET, quiet) |
	       NPU_REG_BITS(STATUS_WAITING, s->waiting);
}

static uint32_t slot_read(const struct npu_model *m, const struct slot *s,
			  uint32_t offset)
{
	uint32_t words[COUNTER_WORDS];

	if (offset >= NPU_SLOT_CNT_CYCLES_OFF &&
	    offset < NPU_SLOT_CNT_CYCLES_OFF + sizeof(words)) {
		memcpy(words, &s->shadow, sizeof(words));
		return words[(offset - NPU_SLOT_CNT_CYCLES_OFF) / 4];
	}
	switch (offset) {
	case NPU_SLOT_RING_BASE_OFF:
		return s->ring_base;
	case NPU_SLOT_RING_LOG2_OFF:
		return s->ring_log2;
	case NPU_SLOT_HEAD_OFF:
		return s->head;
	case NPU_SLOT_TAIL_OFF:
		return s->tail;
	case NPU_SLOT_STATUS_OFF:
		return slot_status(s);
	case NPU_SLOT_PREEMPT_CYCLES_OFF:
		return s->preempt_cycles;
	case NPU_SLOT_FAULT_KIND_OFF:
		return s->fault_kind;
	case NPU_SLOT_FAULT_ADDR_OFF:
		return s->fault_addr;
	case NPU_SLOT_FAULT_DESC_OFF:
		return s->fault_desc;
	case NPU_SLOT_SAVE_OFF:
		return s->save;
	case NPU_SLOT_DESC_CYCLES_OFF:
		return at_desc(m, s);
	default:
		return 0;
	}
}

static void slot_write(struct npu_model *m, struct slot *s, uint32_t offset,
		       uint32_t value)
{
	switch (offset) {
	case NPU_SLOT_RING_BASE_OFF:
		ring_base(s, value);
		break;
	case NPU_SLOT_RING_LOG2_OFF:
		s->ring_log2 = value & 15u;
		break;
	case NPU_SLOT_TAIL_OFF:
		s->tail = value;
		if (runnable(s))
			fetch(m, s);
		break;
	case NPU_SLOT_PREEMPT_OFF:
		preempt(m, s, value);
		break;
	case NPU_SLOT_RESUME_OFF:
		resume(m, s, value);
		break;
	case NPU_SLOT_SAVE_OFF:
		s->save = value & ~63u;
		break;
	default:
		break;
	}
}

/* Element of an array of the privileged page; NULL: not one. */
static uint32_t *slot_word(struct npu_model *m, uint32_t address)
{
	uint32_t i = address >> 2 & 7u;
	struct slot *s = &m->slots[i];

	if (i >= m->shape.slots)
		return NULL;
	switch (address & ~31u) {
	case NPU_GLB_RECT_ADDR:
		return &s->staged;
	case NPU_GLB_PT_BASE_ADDR:
		return &s->pt_base;
	case NPU_GLB_PT_COUNT_ADDR:
		return &s->pt_count;
	case NPU_GLB_CH_MASK_ADDR:
		return &s->ch_mask;
	case NPU_GLB_PT_CONTEXT_ADDR:
		return &s->context;
	case NPU_GLB_SLOT_CTRL_ADDR:
		return &s->ctrl;
	default:
		return NULL;
	}
}

static uint32_t slot_word_bits(uint32_t address)
{
	switch (address & ~31u) {
	case NPU_GLB_SLOT_CTRL_ADDR:
		return NPU_REG_BITS(SLOT_CTRL_SERIAL, 1);
	case NPU_GLB_PT_CONTEXT_ADDR:
		return 255u;
	default:
		return UINT32_MAX;
	}
}

static uint32_t glb_read(struct npu_model *m, uint32_t address)
{
	const uint32_t *word = slot_word(m, address);

	if (word)
		return *word;
	switch (address) {
	case NPU_GLB_ID_ADDR:
		return NPU_GLB_ID_RESET;
	case NPU_GLB_VERSION_ADDR:
		return NPU_GLB_VERSION_RESET;
	case NPU_GLB_SHAPE_ADDR:
		return NPU_REG_BITS(SHAPE_ROWS, m->shape.rows) |
		       NPU_REG_BITS(SHAPE_COLS, m->shape.cols) |
		       NPU_REG_BITS(SHAPE_SLOTS, m->shape.slots) |
		       NPU_REG_BITS(SHAPE_CHANNELS, m->shape.channels);
	case NPU_GLB_CAPS_ADDR:
		return NPU_REG_BITS(CAPS_DEPTH_LOG2, 9) |
		       NPU_REG_BITS(CAPS_SPAD_LOG2, 17) |
		       NPU_REG_BITS(CAPS_BANKS_LOG2, 3) | NPU_REG_BITS(CAPS_TLB_LOG2, 10);
	case NPU_GLB_CTRL_ADDR:
		return m->ctrl;
	case NPU_GLB_IRQ_PEND_ADDR:
		return m->irq_pend;
	case NPU_GLB_IRQ_MASK_ADDR:
		return m->irq_mask;
	case NPU_GLB_TIME_LO_ADDR:
		m->time_hi = (uint32_t)(m->cycle >> 32);
		return (uint32_t)m->cycle;
	case NPU_GLB_TIME_HI_ADDR:
		return m->time_hi;
	case NPU_GLB_MAP_STATUS_ADDR:
		return m->map_status;
	case NPU_GLB_MODE_STATUS_ADDR:
		return m->mode_status;
	case NPU_GLB_HASH_ADDR:
		return npu_hash_register(&m->hash);
	case NPU_GLB_TIMING_ADDR:
		return m->timing;
	default:
		return 0;
	}
}

/* Whether a mode may be changed to value now. */
static bool mode_taken(struct npu_model *m, uint32_t address, uint32_t value)
{
	struct npu_modes now = {
		.idle = true, .slots = m->shape.slots, .channels = m->shape.channels};
	int verdict;

	for (uint32_t i = 0; i < m->shape.slots; i++) {
		const struct slot *s = &m->slots[i];

		now.idle = now.idle && !at_work(s);
		now.idle_slots |= (uint32_t)!at_work(s) << i;
		now.serial |= NPU_REG_GET(s->ctrl, SLOT_CTRL_SERIAL) << i;
	}
	verdict = npu_mode_verdict(&now, address, value);
	if (verdict >= 0)
		m->mode_status = (uint32_t)verdict;
	return verdict <= (int)NPU_MODE_OK;
}

static void glb_write(struct npu_model *m, uint32_t address, uint32_t value)
{
	uint32_t *word = slot_word(m, address);

	if (!mode_taken(m, address, value))
		return;
	if (word) {
		*word = value & slot_word_bits(address);
		return;
	}
	if (address >= NPU_GLB_XMASK_ADDR &&
	    address < NPU_GLB_AT(XMASK, NPU_GLB_XMASK_N)) {
		m->hash.xmask[address >> 2 & 3u] = value & 0xFFFFFFu;
		return;
	}
	switch (address) {
	case NPU_GLB_CTRL_ADDR:
		m->ctrl = value & 1u;
		break;
	case NPU_GLB_IRQ_PEND_ADDR:
		m->irq_pend &= ~value;
		break;
	case NPU_GLB_IRQ_MASK_ADDR:
		m->irq_mask = value;
		break;
	case NPU_GLB_MAP_COMMIT_ADDR:
		map_commit(m);
		break;
	case NPU_GLB_PERF_SNAPSHOT_ADDR:
		snapshot(m);
		break;
	case NPU_GLB_HASH_ADDR:
		npu_hash_of_register(&m->hash, value);
		break;
	case NPU_GLB_TIMING_ADDR:
		m->timing = value;
		break;
	default:
		break;
	}
}

/* ---- npu_model.h ------------------------------------------------------------------ */

static struct slot *slot_page(struct npu_model *m, uint32_t address)
{
	uint32_t i = (address - NPU_SLOT_BASE) / NPU_SLOT_STRIDE;

	return address >= NPU_SLOT_BASE && i < m->shape.slots ? &m->slots[i] : NULL;
}

static struct npu_model *model_create(const struct npu_model_shape *shape,
				      uint8_t *memory, uint64_t bytes)
{
	struct npu_model *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->shape = *shape;
	m->memory = memory;
	m->bytes = bytes;
	m->timing = NPU_GLB_TIMING_RESET;
	m->hash = (struct npu_hash){.k = 0, .q = 1, .gran = 12};
	for (uint32_t i = 0; i < m->shape.slots; i++)
		m->slots[i].due = NEVER;
	return m;
}

static void model_destroy(struct npu_model *m)
{
	free(m);
}

static uint32_t model_reg_read(struct npu_model *m, uint32_t address)
{
	struct slot *s = slot_page(m, address);

	advance(m, m->cycle + NPU_MODEL_REG_CYCLES, 0);
	if (s)
		return slot_read(m, s, address & (NPU_SLOT_STRIDE - 1));
	return address < NPU_SLOT_BASE ? glb_read(m, address) : 0;
}

static void model_reg_write(struct npu_model *m, uint32_t address, uint32_t value)
{
	struct slot *s = slot_page(m, address);

	advance(m, m->cycle + NPU_MODEL_REG_CYCLES, 0);
	if (s)
		slot_write(m, s, address & (NPU_SLOT_STRIDE - 1), value);
	else if (address < NPU_SLOT_BASE)
		glb_write(m, address, value);
	look_again(m);
}

static uint64_t model_run(struct npu_model *m, uint64_t max_cycles)
{
	uint64_t start = m->cycle;

	advance(m, max_cycles > NEVER - 1 - start ? NEVER - 1 : start + max_cycles, 1);
	return m->cycle - start;
}

static int model_irq(const struct npu_model *m)
{
	return irq_line(m);
}

static uint64_t model_cycle(const struct npu_model *m)
{
	return m->cycle;
}

static int model_idle(const struct npu_model *m)
{
	for (uint32_t i = 0; i < m->shape.slots; i++)
		if (m->slots[i].due != NEVER)
			return 0;
	return 1;
}

static void model_on_fold(struct npu_model *m, npu_fold_fn fn, void *user)
{
	m->fold = fn;
	m->fold_user = user;
}

static void model_on_desc(struct npu_model *m, npu_desc_fn fn, void *user)
{
	m->desc = fn;
	m->desc_user = user;
}

static void model_replay(struct npu_model *m, npu_cost_fn fn, void *user)
{
	m->replay = fn;
	m->replay_user = user;
}

static void model_memory(struct npu_model *m, const struct npu_model_memory *how)
{
	(void)m;
	(void)how;
}

static const struct npu_model_api api = {
	.size = sizeof(api),
	.abi = NPU_MODEL_ABI,
	.engine = "golden",
	.rows = SIDE_MAX,
	.cols = SIDE_MAX,
	.slots = SLOTS_MAX,
	.channels = CHANNELS_MAX,
	.any_shape = 1,
	.create = model_create,
	.destroy = model_destroy,
	.reg_read = model_reg_read,
	.reg_write = model_reg_write,
	.run = model_run,
	.irq = model_irq,
	.cycle = model_cycle,
	.idle = model_idle,
	.on_fold = model_on_fold,
	.on_desc = model_on_desc,
	.replay = model_replay,
	.memory = model_memory,
};

__attribute__((visibility("default"))) const struct npu_model_api *npu_model_entry(void);

const struct npu_model_api *npu_model_entry(void)
{
	return &api;
}
