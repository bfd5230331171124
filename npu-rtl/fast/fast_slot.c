/* SPDX-License-Identifier: Apache-2.0 */
/* fast_slot.c - npu_slot: descriptors one after the other, the slot's registers and
 * counters, around fast_conv.c, fast_vec.c and fast_mmu.c. */
#include "fast.h"

#include <string.h>

#define FROM_CYCLES 20u /* npu_conv_from divides a bit a cycle */

/* What a cycle finds out before anything of it changes. */
struct now {
	bool array, vec, conv_on, vec_on;
	bool wr_ring, wr_preempt, wr_resume;
	bool kill_now, fault_now, denied, mmu_now, mmu_late, late_now, dec_fault, flush,
		kill;
	bool fold_stop, from_done, from_work, from_fault, sums_done;
	struct npu_progress at; /* fold_stop: what is stored */
	bool retire, next_v, known, ahead_start, conv_start, vec_start;
	uint32_t count; /* operations of the array under way */
	/* memory */
	struct ask ask, store;
	int client;
	struct piece piece;
	bool pushed, act, stored_conv, stored_vec, stored_sums, stored_fence,
		granted_store, granted_desc;
	bool st_last, st_free, mark; /* mark: a panel's last store is granted */
	uint32_t upto;
	uint32_t st_piece;
};

/* Of the sequencer, as the last cycle left it. */
struct slot_was {
	enum state state;
	uint32_t stop, pending, stores;
	bool next_v, next_ask, st_v, q_sent, wait_ok, late_v, saves;
	bool rests; /* nothing is in the ring */
};

static bool is_array(const struct slot *s)
{
	return s->op == NPU_OP_GEMM || s->op == NPU_OP_CONV;
}

static uint32_t next_off(const struct slot *s)
{
	if (s->state == S_IDLE || s->state == S_FETCH)
		return 0;
	return conv_busy(&s->conv) ? (s->conv.in - s->conv.head) & 3u : 1;
}

/* Granted and not yet answered. */
static uint32_t stores_out(const struct slot *s)
{
	return s->acked.out[0] + s->acked.out[1];
}

bool slot_idle(const struct slot *s)
{
	return (s->state == S_STOPPED ||
		(s->state == S_IDLE && s->head == s->tail && !s->drain)) &&
	       !s->pending && !mmu_busy(&s->mmu);
}

static bool is_from(enum state state)
{
	return state == S_FROM_ASK || state == S_FROM_RSP || state == S_FROM_SUMS ||
	       state == S_FROM_WORK;
}

bool slot_quiet(const struct npu_model *m, const struct slot *s)
{
	return conv_quiet(m, &s->conv) && (!conv_busy(&s->conv) || s->conv.frozen) &&
	       !is_from(s->state);
}

/* ---- npu_sums ----------------------------------------------------------------------------- */

static void sums_of_use(struct slot *s)
{
	struct npu_progress *p = &s->from;

	s->sums_due = npu_golden_sums_used(s->desc, s->rect.rows, s->rect.cols, p);
	if (!s->sums_due)
		p->k = p->kr = p->nc = p->r = 0;
	s->sums.of = *p;
}

static uint32_t sums_lines(const struct sums *u)
{
	return u->of.nc > 16 ? 2 * u->of.t : u->of.t;
}

static bool sums_ask(const struct slot *s)
{
	return s->state == S_FROM_SUMS && s->sums.asked != sums_lines(&s->sums) &&
	       !(s->sums.open >> (s->sums.asked & 15u) & 1u);
}

static void sums_store(const struct sums *u, uint32_t save, uint32_t *va, uint32_t *len)
{
	uint32_t left = u->of.nc * 4 - u->at;

	*va = u->head ? save + npu_golden_sums_at(&u->of, u->t) + u->at : save + 32;
	*len = !u->head ? 8 : left > 32 ? 32 : left;
}

static bool sums_done(const struct slot *s)
{
	const struct sums *u = &s->sums;

	return s->state == S_SUMS ? u->head && u->t == u->of.t
				  : u->asked == sums_lines(u) && !u->open;
}

/* ---- what stops it ------------------------------------------------------------------------ */

/* A load that faults is of what runs, or of an operation that is over. */
static bool counts_now(const struct slot *s, const struct ask *load)
{
	uint32_t head = s->conv.head;

	if (load->tag == TAG_DESC)
		return s->state == S_IDLE || s->state == S_FETCH;
	return load->seq == (head & 3u) || load->seq == ((head - 1) & 3u);
}

static void find_stop(struct slot *s, struct now *n, const struct access *a)
{
	const struct translate *t = s->mmu.way;
	const struct conv *v = &s->conv;
	bool stopping = s->state == S_STOPPING || s->state == S_STOPPED;

	n->wr_ring = a->v && a->offset == NPU_SLOT_RING_BASE_OFF;
	n->wr_preempt = a->v && a->offset == NPU_SLOT_PREEMPT_OFF;
	n->wr_resume = a->v && a->offset == NPU_SLOT_RESUME_OFF;
	n->kill_now = n->wr_preempt && (a->value & 7u) == NPU_PREEMPT_KILL &&
		      (!stopping || (s->state == S_STOPPING && s->save_due));
	n->denied = ((s->rsp.v && s->rsp.denied) || s->ack.denied) && !stopping;
	n->dec_fault =
		s->state == S_DECODE && (s->bad_kind || (n->array && !s->rect.rows));
	if (t[LOADS].fault)
		n->mmu_now = counts_now(s, &t[LOADS].ask);
	n->mmu_late = t[LOADS].fault && !n->mmu_now;
	n->mmu_now = n->mmu_now || t[STORES].fault;
	if (s->late_v)
		n->late_now =
			s->late_desc ? s->state == S_FETCH
				     : s->state == S_RUN && s->late_seq == (v->head & 3u);
	n->from_done = s->state == S_FROM_RSP && !s->pending && !mmu_busy(&s->mmu);
	n->from_fault = n->from_done && !s->from_ok;
	n->sums_done = sums_done(s);
	n->fault_now = n->mmu_now || n->late_now || n->dec_fault || n->denied ||
		       n->from_fault || (n->conv_on && conv_busy(v) && v->stuck) ||
		       (v->stray && v->stray_seq == (v->head & 3u)) ||
		       (n->vec_on && s->vec.empty);
	n->retire = s->state == S_DONE && n->array;
	n->fold_stop = s->state == S_RUN &&
		       (n->array ? conv_halted(s, &n->at)
				 : n->vec_on && vec_halted(s, &n->at)) &&
		       !s->st_v && !stores_out(s);
	n->flush = (n->retire && s->drain && (n->count > 1 || v->frozen)) ||
		   n->fold_stop || (s->state == S_FETCH && s->drain);
	n->kill = n->kill_now || n->fault_now || n->wr_ring || n->flush;
}

static void find_start(struct slot *s, struct now *n)
{
	bool takes = s->state == S_DECODE && !n->dec_fault && !s->from_save;

	n->next_v = s->next_v && s->state == S_RUN && n->array;
	n->known = ahead_known(&s->ahead, n->next_v);
	n->ahead_start = n->known && !s->ahead.bad && ahead_array(s->next) &&
			 conv_ready(s) && !s->bad_kind && !s->drain && !s->late_v &&
			 !n->kill;
	n->from_work = s->state == S_FROM_WORK && !s->from_left && !s->fold;
	n->conv_start = ((takes || n->from_work) && n->array) || n->ahead_start;
	n->vec_start = (takes || n->from_work) && n->vec;
}

/* ---- the memory port -------------------------------------------------------------------------- */

static bool ask_fetch(const struct slot *s, struct now *n, struct ask *ask)
{
	const struct conv *v = &s->conv;

	if (conv_busy(v) && v->pushes)
		n->piece = v->piece;
	else if (!conv_busy(v) && n->vec_on && s->vec.push)
		n->piece = s->vec.piece;
	else
		return false;
	return fetch_ask(&s->fetch, &n->piece, ask);
}

static void ask_of(const struct slot *s, int client, bool desc_ask, struct ask *ask)
{
	uint32_t entry = (s->head + next_off(s)) & ~(~0u << s->ring_log2);

	if (client == ACT)
		*ask = (struct ask){.va = s->conv.act.va & ~63u,
				    .len = 64,
				    .tag = (uint16_t)(TAG_ACT | s->conv.act.tail)};
	else if (desc_ask)
		*ask = (struct ask){
			.va = s->ring_base + entry * 64, .len = 64, .tag = TAG_DESC};
	else if (s->state == S_FROM_ASK)
		*ask = (struct ask){.va = s->save, .len = 40, .tag = TAG_FROM};
	else if (s->state == S_FROM_SUMS)
		*ask = (struct ask){
			.va = s->save + NPU_CONTEXT_SUMS + 64 * s->sums.asked,
			.len = 64,
			.tag = (uint16_t)(TAG_SUMS | (s->sums.asked & 15u) << 2)};
	else
		*ask = (struct ask){
			.va = NPU_GET(s->desc, ADDR_A) & ~7u, .len = 8, .tag = TAG_WAIT};
}

static void find_memory(const struct npu_model *m, struct slot *s, struct now *n)
{
	const struct conv *v = &s->conv;
	struct mmu *u = &s->mmu;
	bool desc_ask = s->next_ask && !s->next_sent;
	uint32_t asks = 0, urgent = 0, seq = v->head;
	struct ask fetch = {0};

	n->st_piece = 64 - (s->st_va & 63u);
	if (n->st_piece > s->st_len)
		n->st_piece = s->st_len;
	n->st_last = n->st_piece == s->st_len;
	n->client = CLIENTS;
	if (n->mmu_late)
		u->way[LOADS].next = true;
	if (u->way[LOADS].next) {
		asks |= (uint32_t)ask_fetch(s, n, &fetch) << FETCH;
		asks |= (uint32_t)(n->conv_on && v->a_req && !ahead_held(s)) << ACT;
		asks |= (uint32_t)(desc_ask || s->state == S_WAIT_ASK ||
				   s->state == S_FROM_ASK || sums_ask(s))
			<< SEQ;
		if (n->conv_on) {
			urgent |=
				(uint32_t)(conv_busy(v) &&
					   ((v->weights_n ^ v->head) & 3u) == 0 &&
					   s->fetch.ready - s->fetch.head < m->shape.rows)
				<< FETCH;
			urgent |= (uint32_t)v->stall_a << ACT;
		}
		n->client = mmu_choose(u, asks, urgent);
	}
	if (n->client == FETCH) {
		n->ask = fetch;
		n->pushed = fetch_last(&s->fetch, &n->piece);
		seq = v->weights_n;
	} else if (n->client != CLIENTS) {
		ask_of(s, n->client, desc_ask, &n->ask);
		if (n->client == ACT)
			seq = v->rows_n - 1;
	}
	n->ask.seq = seq & 3u;
	n->act = n->client == ACT;
	n->granted_store = s->st_v && u->way[STORES].next;
	if (n->granted_store)
		n->store = (struct ask){.we = true,
					.fence = s->st_fence,
					.va = s->st_va,
					.len = (uint8_t)n->st_piece,
					.seq = v->head & 3u,
					.tag = s->acked.epoch};
	n->mark = n->granted_store && n->st_last && s->st_mark;
	n->upto = s->st_upto;
	n->granted_desc = n->client == SEQ && desc_ask;
	n->st_free = !s->st_v || (n->granted_store && n->st_last);
	n->stored_conv = n->st_free && v->out.st_v;
	n->stored_vec = n->st_free && !v->out.st_v && n->vec_on && s->vec.waiting &&
			!vec_holds(s);
	n->stored_sums = n->st_free && !v->out.st_v && !n->stored_vec &&
			 s->state == S_SUMS && (!s->sums.head || s->sums.have);
	n->stored_fence = n->st_free && !v->out.st_v && !n->stored_vec &&
			  (s->state == S_WRITE || s->state == S_SAVE) && !s->q_sent;
}

/* ---- stores: from either unit or the sequencer, cut at line ends ------------------------------ */

static void store_step(const struct npu_model *m, struct slot *s, const struct now *n)
{
	if (n->granted_store) {
		s->st_v = !n->st_last;
		s->st_va += n->st_piece;
		s->st_len -= n->st_piece;
	}
	if (n->stored_conv) {
		out_store(&s->conv.out, &s->st_va, &s->st_len, &s->st_mark);
		s->st_upto = s->conv.out.st_upto;
		s->st_fence = false;
		s->st_v = true;
	} else if (n->stored_vec) {
		vec_store(&s->vec, s->desc, &s->st_va, &s->st_len);
		s->st_mark = false;
		s->st_fence = false;
		s->st_v = true;
	} else if (n->stored_sums) {
		sums_store(&s->sums, s->save, &s->st_va, &s->st_len);
		s->st_mark = false;
		s->st_fence = false;
		s->st_v = true;
	} else if (n->stored_fence) {
		bool stamp = s->op == NPU_OP_TIMESTAMP, save = s->state == S_SAVE;

		s->st_mark = false;
		s->st_va = save ? s->save : NPU_GET(s->desc, ADDR_D);
		s->st_len = save ? 32 : 8;
		s->st_fence = true;
		s->st_v = true;
		if (!save) {
			s->fence[0] =
				stamp ? (uint32_t)m->cycle : NPU_GET(s->desc, SVALUE_LO);
			s->fence[1] = stamp ? (uint32_t)(m->cycle >> 32)
					    : NPU_GET(s->desc, SVALUE_HI);
		}
	}
	s->q_sent = (s->state == S_WRITE || s->state == S_SAVE) &&
		    (s->q_sent || n->stored_fence);
	if (n->kill)
		s->st_v = false;
}

/* npu_acked: how far what the oldest operation stores has been answered. */
static void acked_step(struct slot *s, const struct now *n, bool clear)
{
	struct acked *k = &s->acked;
	bool wait = k->wait, epoch = k->epoch, answered = wait && !k->out[!epoch];

	k->out[epoch] += n->granted_store;
	for (int e = 0; e < 2; e++)
		k->out[e] -= s->ack.n[e];
	if (answered) {
		k->wait = false;
		k->v = true;
		k->upto = k->wait_upto;
	}
	if (n->mark && !wait) {
		k->wait = true;
		k->wait_upto = n->upto;
		k->epoch = !epoch;
	}
	if (n->retire)
		k->wait = k->v = false;
	if (clear)
		*k = (struct acked){0};
}

static void sums_step(struct slot *s, const struct now *n)
{
	struct sums *u = &s->sums, was = *u;
	uint32_t va, len;

	u->head = u->have = false;
	u->t = u->at = u->asked = u->open = 0;
	if (s->state == S_SUMS) {
		sums_store(&was, s->save, &va, &len);
		u->head = was.head || n->stored_sums;
		u->t = was.t;
		u->have = was.have || (was.head && was.t != was.of.t);
		if (was.have && n->stored_sums && was.at + len == was.of.nc * 4) {
			u->have = false;
			u->t++;
		} else if (was.have) {
			u->at = was.at + (n->stored_sums ? 32 : 0);
		}
	} else if (s->state == S_FROM_SUMS) {
		u->asked = was.asked;
		u->open = was.open;
		if (s->rsp.v && (s->rsp.tag & ~0x3Cu) == TAG_SUMS)
			u->open &= ~(1u << (s->rsp.tag >> 2 & 15u));
		if (n->client == SEQ && !n->granted_desc)
			u->open |= 1u << (u->asked++ & 15u);
	}
}

/* ---- sequencer ---------------------------------------------------------------------------------- */

static void late_step(struct slot *s, const struct now *n, bool stopping)
{
	const struct translate *t = &s->mmu.way[LOADS];
	bool desc = t->ask.tag == TAG_DESC;
	uint32_t head = s->conv.head;

	if (n->mmu_late &&
	    (!s->late_v ||
	     (!desc && (s->late_desc ||
			((t->ask.seq - head) & 3u) < ((s->late_seq - head) & 3u))))) {
		s->late_v = true;
		s->late_desc = desc;
		s->late_seq = t->ask.seq;
		s->late_kind = t->kind;
		s->late_va = t->ask.va;
	}
	if (n->kill || stopping)
		s->late_v = false;
}

static void desc_comes(struct slot *s)
{
	if (s->rsp.tag == TAG_DESC) {
		memcpy(s->next, s->line, sizeof(s->next));
		s->next_kind = npu_golden_check(s->next, &s->next_word);
		s->next_v = true;
		s->next_ask = false;
	} else if (s->rsp.tag == TAG_FROM) {
		s->from_ok = !npu_golden_context(s->desc, s->context, s->line, &s->from);
		s->from_left = FROM_CYCLES;
		sums_of_use(s);
	} else {
		s->wait_ok = s->waited >= ((uint64_t)NPU_GET(s->desc, SVALUE_HI) << 32 |
					   NPU_GET(s->desc, SVALUE_LO));
	}
}

static void stop_drained(struct slot *s)
{
	s->state = S_STOPPING;
	s->stop = s->from_save ? NPU_STATE_FOLDED : NPU_STATE_DRAINED;
}

/* Inside an operation, if some of its outputs are stored. */
static void stop_folded(struct npu_model *m, struct slot *s, const struct now *n)
{
	const uint32_t *desc = n->array ? s->run[s->conv.head & 3u] : s->desc;

	s->state = S_STOPPING;
	s->save_due = n->at.m || n->at.n || n->at.nc;
	s->sums_due = n->at.nc != 0;
	s->stop = s->save_due ? NPU_STATE_FOLDED : NPU_STATE_DRAINED;
	if (!s->save_due)
		return;
	fold_effect(m, s, &n->at);
	npu_golden_save(desc, s->context, &n->at, s->fence);
	memcpy(s->sums_desc, desc, sizeof(s->sums_desc));
	s->sums.of = n->at;
}

/* After SDecode. */
static enum state begun(const struct slot *s)
{
	switch (s->op) {
	case NPU_OP_NOP:
		return S_DONE;
	case NPU_OP_SIGNAL:
	case NPU_OP_TIMESTAMP:
		return S_WRITE;
	case NPU_OP_WAIT:
		return S_WAIT_ASK;
	default:
		return S_RUN;
	}
}

static void done(struct npu_model *m, struct slot *s, const struct now *n, bool next_v)
{
	retire_effect(m, s);
	s->count[CNT_DESCS]++;
	if (m->desc)
		m->desc(m->desc_user, s->id, s->head);
	s->head++;
	s->irq_signal = s->op == NPU_OP_SIGNAL && NPU_GET(s->desc, F_IRQ);
	s->state = n->array && n->count > 1 ? S_RUN
		   : next_v && !s->drain    ? S_FETCH
					    : S_IDLE;
	if (n->flush)
		stop_drained(s);
}

static void run_step(struct npu_model *m, struct slot *s, const struct now *n,
		     const struct slot_was *was)
{
	if (n->fold_stop)
		stop_folded(m, s, n);
	if (n->fold_stop || was->st_v)
		return;
	if (!n->array) {
		if (!vec_busy(&s->vec))
			s->state = S_FLUSH;
	} else if (s->conv.out.end && !was->stores) {
		s->state = n->count > 1 || n->ahead_start ? S_DONE : S_FLUSH;
	}
}

static bool settled(const struct slot *s, const struct now *n, const struct slot_was *was)
{
	const struct conv *v = &s->conv;

	return (!conv_busy(v) || (v->out.end && n->count == 1)) && !vec_busy(&s->vec) &&
	       !was->st_v && !mmu_busy(&s->mmu) && !was->pending && !was->next_ask;
}

static void from_step(struct slot *s, const struct now *n)
{
	if (s->fold) {
		s->state = S_STOPPING;
		s->stop = NPU_STATE_FOLDED;
		s->from_save = s->save_due = false;
	} else if (s->state == S_FROM_ASK && n->client == SEQ && !n->granted_desc) {
		s->state = S_FROM_RSP;
	} else if (n->from_done) {
		s->state = s->sums_due ? S_FROM_SUMS : S_FROM_WORK;
	} else if (s->state == S_FROM_SUMS) {
		if (n->sums_done)
			s->state = S_FROM_WORK;
	} else if (n->from_work) {
		s->state = S_RUN;
		s->from_save = false;
	}
}

static void stopping_step(struct slot *s, const struct slot_was *was)
{
	if (was->pending || mmu_busy(&s->mmu))
		return;
	if (s->save_due) {
		s->save_due = false;
		s->state = S_SAVE;
		return;
	}
	s->state = S_STOPPED;
	if (s->stop == NPU_STATE_FAULT)
		s->irq_fault = true;
	else
		s->irq_quiet = true;
}

static void save_step(const struct npu_model *m, struct slot *s, const struct now *n,
		      const struct slot_was *was)
{
	bool sums = s->state == S_SUMS;

	if (!(sums ? n->sums_done : was->q_sent) || was->st_v || was->stores)
		return;
	if (sums)
		sums_effect(m, s);
	s->state = !sums && s->sums_due ? S_SUMS : S_STOPPED;
	s->irq_quiet = s->state == S_STOPPED;
}

static void state_step(struct npu_model *m, struct slot *s, const struct now *n,
		       const struct slot_was *was)
{
	bool stop_here = s->drain && (s->state == S_IDLE || s->state == S_WAIT_PAUSE);

	switch (s->state) {
	case S_IDLE:
		if (stop_here)
			stop_drained(s);
		else if (s->head != s->tail)
			s->state = S_FETCH;
		break;
	case S_FETCH:
		if (n->flush) {
			stop_drained(s);
		} else if (was->next_v) {
			memcpy(s->desc, s->next, sizeof(s->desc));
			s->op = NPU_GET(s->desc, OPCODE);
			s->next_v = false;
			s->state = S_DECODE;
		}
		break;
	case S_DECODE:
		s->state = s->from_save ? S_FROM_ASK : begun(s);
		break;
	case S_FROM_ASK:
	case S_FROM_RSP:
	case S_FROM_SUMS:
	case S_FROM_WORK:
		from_step(s, n);
		break;
	case S_RUN:
		run_step(m, s, n, was);
		break;
	case S_SAVE:
	case S_SUMS:
		save_step(m, s, n, was);
		break;
	case S_WRITE:
		if (was->q_sent && !was->st_v)
			s->state = S_FLUSH;
		break;
	case S_FLUSH:
		if (settled(s, n, was))
			s->state = S_DONE;
		break;
	case S_WAIT_ASK:
		if (n->client == SEQ && !n->granted_desc)
			s->state = S_WAIT_RSP;
		break;
	case S_WAIT_RSP:
		if (!was->pending && !mmu_busy(&s->mmu)) {
			s->state = was->wait_ok ? S_DONE : S_WAIT_PAUSE;
			s->pause = 0;
		}
		break;
	case S_WAIT_PAUSE:
		if (stop_here)
			stop_drained(s);
		else if (s->pause == 15)
			s->state = S_WAIT_ASK;
		s->pause = (s->pause + 1) & 15u;
		break;
	case S_DONE:
		done(m, s, n, was->next_v);
		break;
	case S_STOPPING:
		stopping_step(s, was);
		break;
	case S_STOPPED:
		s->next_v = false;
		break;
	}
}

/* ---- registers ------------------------------------------------------------------------------------ */

static void fault_step(struct slot *s, const struct now *n)
{
	const struct conv *v = &s->conv;
	const struct translate *t =
		&s->mmu.way[s->mmu.way[STORES].fault ? STORES : LOADS];

	s->fault_desc = s->head;
	if (n->late_now || n->mmu_now) {
		s->fault_kind = n->late_now ? s->late_kind : t->kind;
		s->fault_addr = n->late_now ? s->late_va : t->ask.va;
	} else if (n->denied) {
		s->fault_kind = NPU_FAULT_CHANNEL;
		s->fault_addr = ~0u;
	} else if (n->dec_fault) {
		s->fault_kind = s->bad_kind ? s->bad_kind : NPU_FAULT_NO_UNITS;
		s->fault_addr = s->bad_word;
	} else if (n->from_fault) {
		s->fault_kind = NPU_FAULT_CONTEXT;
		s->fault_addr = s->save;
	} else {
		s->fault_kind = NPU_FAULT_FIELD;
		s->fault_addr = v->stray && v->stray_seq == (v->head & 3u)
					? NPU_DESC_ADDR_P_WORD
				: n->conv_on && v->stuck ? NPU_DESC_SPS_WORD
							 : NPU_DESC_PT_WORD;
	}
}

/* The descriptor at HEAD is not at work yet. */
static bool before(enum state state)
{
	return state == S_IDLE || state == S_FETCH || state == S_DECODE;
}

static void access_step(struct npu_model *m, struct slot *s, const struct now *n,
			const struct access *a, const struct slot_was *was)
{
	bool quiet;

	if (a->v && a->offset == NPU_SLOT_TAIL_OFF)
		s->tail = a->value;
	if (a->v && a->offset == NPU_SLOT_RING_LOG2_OFF)
		s->ring_log2 = a->value & 15u;
	if (a->v && a->offset == NPU_SLOT_SAVE_OFF && !was->saves)
		s->save = a->value & ~63u;
	if (n->wr_preempt && was->state != S_STOPPED) {
		s->timing = true;
		s->preempt_cycles = 0;
	} else if (s->timing) {
		quiet = slot_quiet(m, s) && !n->conv_start;
		s->preempt_cycles++;
		if (quiet &&
		    (!s->drain || s->conv.frozen || (!n->array && !before(was->state)) ||
		     was->state == S_STOPPING || was->state == S_STOPPED))
			s->timing = false;
	}
	if (n->wr_preempt) {
		uint32_t mode = a->value & 7u;

		s->freeze |= mode == NPU_PREEMPT_SAVE;
		s->fold |= s->freeze || mode == NPU_PREEMPT_FOLD;
		s->drain |= s->fold || mode == NPU_PREEMPT_DRAIN;
	}
	if (n->wr_resume && was->state == S_STOPPED && s->stop != NPU_STATE_FAULT) {
		s->state = S_IDLE;
		s->drain = s->fold = s->freeze = false;
		s->from_save = NPU_REG_GET(a->value, RESUME_CONTEXT);
	}
	if (n->wr_resume && s->head == s->tail &&
	    (was->state == S_IDLE ||
	     (was->state == S_STOPPING && was->stop == NPU_STATE_IDLE)))
		s->from_save = NPU_REG_GET(a->value, RESUME_CONTEXT);
	if (n->kill_now || n->fault_now) {
		s->from_save = s->save_due = false;
		s->state = S_STOPPING;
		s->stop = n->kill_now ? NPU_STATE_KILLED : NPU_STATE_FAULT;
	}
	if (n->fault_now && !n->kill_now)
		fault_step(s, n);
	if (n->kill)
		s->next_v = s->next_ask = s->next_sent = false;
	if (n->wr_ring) {
		s->ring_base = a->value & ~63u;
		s->head = s->tail = 0;
		s->fault_kind = NPU_FAULT_NONE;
		s->drain = s->fold = s->freeze = s->from_save = s->save_due = false;
		s->state = S_STOPPING;
		s->stop = NPU_STATE_IDLE;
	} else if (was->state == S_STOPPING && was->stop == NPU_STATE_IDLE &&
		   !was->pending && !mmu_busy(&s->mmu) && !n->kill_now) {
		s->state = S_IDLE;
		s->irq_quiet = false;
	}
}

static bool stopped(enum state state)
{
	return state == S_STOPPING || state == S_SAVE || state == S_SUMS ||
	       state == S_STOPPED;
}

/* How long it has been at the descriptor at HEAD: until it stopped, or from when. */
static void at_desc_step(const struct npu_model *m, struct slot *s, const struct now *n,
			 const struct slot_was *was)
{
	uint64_t next = m->cycle + 1;

	if (n->wr_ring || was->state == S_DONE || was->rests) {
		s->desc_cycles = 0;
		s->desc_from = next;
	} else if (!stopped(was->state) && stopped(s->state)) {
		s->desc_cycles = (uint32_t)(next - s->desc_from);
	} else if (stopped(was->state) && !stopped(s->state)) {
		s->desc_from = next - s->desc_cycles;
	}
}

/* ---- counters -------------------------------------------------------------------------------------- */

static void count_beats(struct slot *s)
{
	if (s->acc[LOADS])
		s->count[CNT_READ] += s->mmu.way[LOADS].req.beats;
	if (s->acc[STORES])
		s->count[CNT_WRITE] += s->mmu.way[STORES].req.beats;
}

static void count_step(struct slot *s, const struct now *n)
{
	const struct conv *v = &s->conv;
	uint32_t class = CNT_STALL_SEQ;
	bool conv = n->conv_on;

	if ((conv && v->row) || (n->vec_on && s->vec.work))
		class = CNT_ACTIVE;
	else if (conv && v->stall_bank)
		class = CNT_STALL_BANK;
	else if (conv && v->stall_a)
		class = CNT_STALL_A;
	else if (conv && v->stall_w)
		class = CNT_STALL_W;
	else if (conv && v->stall_out)
		class = CNT_STALL_OUT;
	else if (s->state == S_STOPPED || (s->state == S_IDLE && s->head == s->tail) ||
		 s->state == S_WAIT_PAUSE)
		class = CNT_IDLE;
	s->count[class]++;
	count_beats(s);
}

/* Idle cycles of a slot that sleeps are not counted as they pass. */
void slot_snapshot(const struct npu_model *m, struct slot *s)
{
	uint64_t others = 0;

	s->count[CNT_CYCLES] = m->cycle;
	for (uint32_t i = CNT_ACTIVE; i <= CNT_STALL_SEQ; i++)
		others += s->count[i];
	s->count[CNT_IDLE] = m->cycle - others - s->count[CNT_STALL_BANK];
	memcpy(s->shadow, s->count, sizeof(s->shadow));
}

uint32_t slot_read(const struct npu_model *m, const struct slot *s, uint32_t offset)
{
	uint32_t at = (offset - NPU_SLOT_CNT_CYCLES_OFF) / 4, code = NPU_STATE_RUN;

	if (offset >= NPU_SLOT_CNT_CYCLES_OFF && at < 2 * COUNTERS)
		return (uint32_t)(s->shadow[at / 2] >> 32 * (at % 2));
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
		if (s->state == S_IDLE && s->head == s->tail)
			code = NPU_STATE_IDLE;
		if (s->state == S_STOPPING || s->state == S_SAVE || s->state == S_SUMS)
			code = NPU_STATE_STOPPING;
		if (s->state == S_STOPPED)
			code = s->stop;
		return NPU_REG_BITS(STATUS_STATE, code) |
		       NPU_REG_BITS(STATUS_QUIET,
				    slot_quiet(m, s) && s->state != S_DECODE) |
		       NPU_REG_BITS(STATUS_PENDING, s->pending != 0) |
		       NPU_REG_BITS(STATUS_WAITING, s->state == S_WAIT_PAUSE ||
							    s->state == S_WAIT_ASK ||
							    s->state == S_WAIT_RSP);
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
		if (s->state == S_IDLE && s->head == s->tail)
			return 0;
		return stopped(s->state) ? s->desc_cycles
					 : (uint32_t)(m->cycle - s->desc_from);
	default:
		return 0;
	}
}

/* ---- a cycle ------------------------------------------------------------------------------------------ */

static void units_step(struct npu_model *m, struct slot *s, const struct now *n)
{
	static const struct npu_progress none;
	const struct piece *asked = n->client == FETCH ? &n->piece : NULL;
	bool conv = conv_busy(&s->conv);
	bool pops = n->conv_on && conv && conv_pops(&s->conv);

	pops = pops || (n->vec_on && !conv && s->vec.pop);
	ahead_step(s, n->conv_start && !n->ahead_start, n->ahead_start, n->next_v,
		   n->kill);
	if (n->conv_on)
		conv_step(m, s, n->pushed && conv, n->act, n->stored_conv, n->retire);
	if (n->vec_on)
		vec_step(m, s, n->pushed && !conv, n->stored_vec, n->kill);
	fetch_step(&s->fetch, &s->rsp, asked, pops);
	if (n->vec_start && !n->kill) {
		s->vec.start = true;
		s->vec.from = n->from_work ? s->from : none;
	}
	if (n->conv_start) {
		const uint32_t *d = n->ahead_start ? s->next : s->desc;
		struct npu_progress *from = &s->run_from[s->conv.in & 3u];

		memcpy(s->run[s->conv.in & 3u], d, 64);
		*from = n->from_work ? s->from : none;
		s->run_rect[s->conv.in & 3u] = s->rect;
		conv_start(&s->conv, d, s->rect, n->ahead_start && s->ahead.behind, from);
	}
	if (n->kill) {
		conv_kill(&s->conv);
		s->fetch.head = s->fetch.ready = s->fetch.tail = s->fetch.part = 0;
	}
}

static void count_pending(struct slot *s)
{
	s->pending += (uint32_t)s->acc[LOADS] + (uint32_t)s->acc[STORES] -
		      (uint32_t)s->rsp.v - s->ack.n[0] - s->ack.n[1];
}

static void sequencer_step(struct npu_model *m, struct slot *s, const struct now *n,
			   const struct access *a, const struct slot_was *was)
{
	bool wants = (s->state == S_IDLE && s->head != s->tail) ||
		     (s->state == S_RUN && s->head + next_off(s) != s->tail);

	s->irq_signal = s->irq_fault = s->irq_quiet = false;
	s->from_left -= s->from_left != 0;
	count_pending(s);
	acked_step(s, n, n->kill || s->state == S_STOPPING || s->state == S_STOPPED);
	if (!was->next_ask && !was->next_v && !s->drain && !was->late_v && wants) {
		s->next_ask = true;
		s->next_sent = false;
	}
	if (n->granted_desc)
		s->next_sent = true;
	if (n->mmu_late && s->mmu.way[LOADS].ask.tag == TAG_DESC)
		s->next_ask = false;
	if (n->ahead_start)
		s->next_v = false;
	if (s->rsp.v &&
	    (s->rsp.tag == TAG_DESC || s->rsp.tag == TAG_WAIT ||
	     s->rsp.tag == TAG_FROM) &&
	    s->state != S_STOPPING)
		desc_comes(s);
	sums_step(s, n);
	state_step(m, s, n, was);
	if (was->state == S_DECODE)
		s->wait_ok = s->from_ok = false;
	access_step(m, s, n, a, was);
	at_desc_step(m, s, n, was);
}

static bool sleeps(const struct npu_model *m, const struct slot *s)
{
	return slot_idle(s) && !s->timing && !s->next_ask && !s->next_v &&
	       !s->irq_signal && !s->irq_fault && !s->irq_quiet && !s->conv.act.count &&
	       s->quiet && slot_quiet(m, s) && !vec_busy(&s->vec) && !s->st_v &&
	       !s->ahead.own && !s->flush && !s->mmu.more;
}

void slot_wake(const struct npu_model *m, struct slot *s)
{
	if (s->wake)
		conv_advance(s, (uint32_t)(m->cycle - s->still_from));
	s->wake = 0;
}

/* The sequencer waits for the operation, and whether the next operation may begin is
 * settled. */
static bool waits(const struct slot *s, const struct now *n)
{
	const struct ahead *a = &s->ahead;

	return s->state == S_RUN && n->array && !s->next_ask &&
	       (s->next_v ? n->known : s->drain || s->head + next_off(s) == s->tail) &&
	       !s->late_v && !a->own && a->what_1 == RANGE_NONE &&
	       a->what_2 == RANGE_NONE && !n->ahead_start && !n->conv_start &&
	       !s->timing && !n->kill;
}

/* Something will in the next cycle that no answer from memory brings. */
static bool moves(struct slot *s)
{
	const struct acked *k = &s->acked;

	return mmu_busy(&s->mmu) || s->mmu.more || s->st_v ||
	       (k->wait && !k->out[!k->epoch]) || !conv_rests(s);
}

void slot_fetched(struct slot *s)
{
	const struct fetch *f = &s->fetch;

	s->moves = fetch_ripe(f) &&
		   (s->conv.load.busy || !(f->piece[f->head & 63u].meta >> 9));
	s->pending -= s->rsp.v;
	fetch_step(&s->fetch, &s->rsp, NULL, false);
}

bool slot_move(struct npu_model *m, struct slot *s)
{
	struct now n = {.array = true, .conv_on = true};

	mmu_check(m, s);
	if (s->mmu.way[LOADS].fault || s->mmu.way[STORES].fault ||
	    (s->rsp.v && s->rsp.denied) || s->ack.denied || !conv_moves(s))
		return false;
	find_memory(m, s, &n);
	count_beats(s);
	store_step(m, s, &n);
	count_pending(s);
	acked_step(s, &n, false);
	conv_move(m, s, n.pushed, n.act, n.stored_conv);
	fetch_step(&s->fetch, &s->rsp, n.client == FETCH ? &n.piece : NULL,
		   conv_pops(&s->conv));
	mmu_step(m, s, n.client == CLIENTS ? NULL : &n.ask,
		 n.granted_store ? &n.store : NULL, false);
	s->moves = moves(s);
	return true;
}

void slot_step(struct npu_model *m, struct slot *s, const struct access *a)
{
	struct conv *v = &s->conv;
	struct now n = {.array = is_array(s),
			.vec = s->op == NPU_OP_VEC,
			.conv_on = conv_busy(v) || v->act.count || v->apart ||
				   v->gather.count || m->cycle <= v->in_array,
			.vec_on = vec_busy(&s->vec),
			.count = (v->in - v->head) & 3u};
	struct slot_was was;
	uint32_t kind, word;

	s->rests = slot_idle(s);
	mmu_check(m, s);
	if (n.conv_on)
		conv_comb(m, s);
	if (n.vec_on)
		vec_comb(m, s);
	find_stop(s, &n, a);
	find_start(s, &n);
	find_memory(m, s, &n);
	count_step(s, &n);
	s->quiet = slot_quiet(m, s) && !n.conv_start;

	was = (struct slot_was){.state = s->state,
				.stop = s->stop,
				.pending = s->pending,
				.stores = stores_out(s),
				.next_v = s->next_v,
				.next_ask = s->next_ask,
				.st_v = s->st_v,
				.q_sent = s->q_sent,
				.wait_ok = s->wait_ok,
				.late_v = s->late_v,
				.saves = s->state == S_SAVE || s->state == S_SUMS ||
					 s->save_due,
				.rests = s->state == S_IDLE && s->head == s->tail};
	kind = NPU_FAULT_NONE;
	word = 0;
	if (s->next_v && (s->state == S_FETCH || (s->state == S_RUN && n.array))) {
		kind = s->next_kind;
		word = s->next_word;
	}
	/* what follows reads no unit's state of this cycle, then the units go on */
	store_step(m, s, &n);
	sequencer_step(m, s, &n, a, &was);
	late_step(s, &n, was.state == S_STOPPING);
	s->bad_kind = kind;
	s->bad_word = word;
	units_step(m, s, &n);
	mmu_step(m, s, n.client == CLIENTS ? NULL : &n.ask,
		 n.granted_store ? &n.store : NULL, n.kill);
	s->flush = false;
	s->asleep = sleeps(m, s);
	if (n.conv_on && waits(s, &n)) {
		uint32_t still = conv_still(v);

		s->still_from = m->cycle + 1;
		s->wake = still ? m->cycle + 1 + still : 0;
		s->moves = still && moves(s);
	}
}
