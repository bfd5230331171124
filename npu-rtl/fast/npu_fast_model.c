/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_fast_model.c - npu_model.h over the timing of fast.h and the golden model's bits:
 * engine "fast".  The privileged page, time, interrupts.
 *
 * A descriptor takes effect as a whole when it retires: a KILL or a fault before that
 * leaves nothing of it.
 */
#include <stdlib.h>
#include <string.h>

#include "fast.h"
#include "npu_golden.h"
#include "npu_modes.h"
#include "npu_space.h"

/* ---- memory without time ------------------------------------------------------------- */

void memory_read(const struct npu_model *m, uint64_t pa, void *data, uint32_t bytes)
{
	uint64_t there = pa < m->bytes ? m->bytes - pa : 0;

	memset(data, 0, bytes);
	memcpy(data, m->memory + (there ? pa : 0), there < bytes ? there : bytes);
}

void memory_write(struct npu_model *m, uint64_t pa, const void *data, uint32_t bytes)
{
	uint64_t there = pa < m->bytes ? m->bytes - pa : 0;

	memcpy(m->memory + (there ? pa : 0), data, there < bytes ? there : bytes);
}

/* Channels were looked at when each request was made. */
static struct npu_space space_of(const struct npu_model *m, const struct slot *s)
{
	return (struct npu_space){m->memory,  m->bytes,    &m->hash,
				  s->pt_base, s->pt_count, ~0u};
}

bool space_peek(const struct npu_model *m, const struct slot *s, uint32_t va, void *data,
		uint32_t bytes)
{
	struct npu_space sp = space_of(m, s);
	uint32_t bad;

	return npu_space_read(&sp, va, data, bytes, &bad) == 0;
}

static void effect(const struct npu_model *m, const struct slot *s, const uint32_t *desc,
		   struct npu_rect rect, const struct npu_progress *from,
		   const struct npu_progress *to)
{
	struct npu_space sp = space_of(m, s);
	struct npu_golden_env env = {.user = &sp,
				     .read = npu_space_read,
				     .write = npu_space_write,
				     .rows = rect.rows,
				     .cols = rect.cols,
				     .from = npu_golden_begun(from) ? from : NULL,
				     .to = to};
	struct npu_golden_result r;

	npu_golden_exec(desc, &env, &r);
}

void retire_effect(struct npu_model *m, struct slot *s)
{
	uint32_t at = s->conv.head & 3u;

	if (s->op == NPU_OP_GEMM || s->op == NPU_OP_CONV)
		effect(m, s, s->run[at], s->run_rect[at], &s->run_from[at], NULL);
	else if (s->op == NPU_OP_VEC)
		effect(m, s, s->desc, s->rect, &s->vec.from, NULL);
}

void fold_effect(struct npu_model *m, struct slot *s, const struct npu_progress *to)
{
	uint32_t at = s->conv.head & 3u;

	if (s->op == NPU_OP_VEC)
		effect(m, s, s->desc, s->rect, &s->vec.from, to);
	else
		effect(m, s, s->run[at], s->run_rect[at], &s->run_from[at], to);
}

void sums_effect(const struct npu_model *m, const struct slot *s)
{
	struct npu_space sp = space_of(m, s);
	struct npu_golden_env env = {.user = &sp, .read = npu_space_read};
	const struct npu_progress *of = &s->sums.of;
	int32_t *sums = calloc((size_t)of->t * of->nc, sizeof(*sums));
	uint32_t bad;

	if (sums && !npu_golden_sums(s->sums_desc, &env, of, sums))
		for (uint32_t i = 0; i < of->t; i++)
			npu_space_write(&sp, s->save + npu_golden_sums_at(of, i),
					sums + (size_t)i * of->nc, of->nc * 4, &bad);
	npu_space_write(&sp, s->save + 32, &s->fence[8], 8, &bad);
	free(sums);
}

/* ---- the map -------------------------------------------------------------------------- */

static void map_commit(struct npu_model *m)
{
	struct npu_rect now[SLOTS];
	uint32_t staged[SLOTS], busy = 0, slot, verdict;

	for (uint32_t i = 0; i < m->shape.slots; i++) {
		now[i] = m->slot[i].rect;
		staged[i] = m->slot[i].staged;
		busy |= (uint32_t)!m->slot[i].quiet << i;
	}
	verdict = npu_map_verdict(staged, now, m->shape.slots, m->shape.rows,
				  m->shape.cols, busy, &slot);
	m->map_status = NPU_REG_BITS(MAP_STATUS_RESULT, verdict) |
			NPU_REG_BITS(MAP_STATUS_SLOT, slot);
	for (uint32_t i = 0; verdict == NPU_MAP_OK && i < m->shape.slots; i++)
		m->slot[i].rect = npu_rect_of(staged[i]);
}

/* ---- shares of memory ------------------------------------------------------------------- */

static bool mem_idle(const struct npu_model *m)
{
	for (uint32_t i = 0; i < m->shape.slots; i++)
		if (!slot_idle(&m->slot[i]))
			return false;
	return !mem_busy(m);
}

static bool is_arb(uint32_t address)
{
	return address == NPU_GLB_ARB_ADDR || address == NPU_GLB_AT(ARB, 1);
}

/* Whether a mode may be changed to value now. */
static bool mode_taken(struct npu_model *m, uint32_t address, uint32_t value)
{
	struct npu_modes now = {.idle = mem_idle(m),
				.locked = m->hash_lock,
				.slots = m->shape.slots,
				.channels = m->shape.channels};
	int verdict;

	for (uint32_t i = 0; i < m->shape.slots; i++) {
		now.idle_slots |= (uint32_t)slot_idle(&m->slot[i]) << i;
		now.serial |= (uint32_t)m->slot[i].serial << i;
	}
	verdict = npu_mode_verdict(&now, address, value);
	if (verdict >= 0)
		m->mode_status = (uint32_t)verdict;
	return verdict <= (int)NPU_MODE_OK;
}

/* Registers that say who goes next. */
static void write_shared(struct npu_model *m, uint32_t address, uint32_t value)
{
	struct arb_cfg *arb = &m->arb[address != NPU_GLB_ARB_ADDR];

	if (address == NPU_GLB_TURNS_ADDR) {
		m->turn_cycles = NPU_REG_GET(value, TURNS_CYCLES);
		m->turn_last = NPU_REG_GET(value, TURNS_LAST);
	} else if (address == NPU_GLB_TURN_ORDER_ADDR) {
		m->turn_order = value;
	} else if (address == NPU_GLB_CH_GROUP_ADDR) {
		m->ch_group = value & ((1u << m->shape.channels) - 1);
	} else if (is_arb(address)) {
		arb->mode = NPU_REG_GET(value, ARB_MODE);
		arb->pass = NPU_REG_GET(value, ARB_PASS);
	} else {
		return;
	}
	m->turn_restart = true;
}

static void bucket_set(struct npu_model *m, uint32_t value)
{
	uint32_t slot = NPU_REG_GET(value, BUCKET_SET_SLOT);
	struct bucket b = m->staged;

	m->mode_status = NPU_MODE_RANGE;
	if (slot >= m->shape.slots ||
	    (b.window && (!b.budget || b.burst < 4 || b.budget > b.burst)))
		return;
	m->mode_status = NPU_MODE_OK;
	m->bucket_due = true;
	m->bucket_slot = slot;
	m->bucket_group = NPU_REG_GET(value, BUCKET_SET_GROUP);
}

/* At the end of the cycle after it was written. */
static void bucket_now(struct npu_model *m)
{
	struct slot *s = &m->slot[m->bucket_slot];
	struct bucket b = m->staged;

	b.left = b.window;
	b.tokens = b.burst;
	s->bucket[m->bucket_group] = b;
	m->limited &= ~(1u << m->bucket_slot);
	if (s->bucket[0].window || s->bucket[1].window)
		m->limited |= 1u << m->bucket_slot;
	m->bucket_due = false;
}

/* ---- the privileged page ------------------------------------------------------------------- */

/* Element of an array of the privileged page; NULL: not one. */
static uint32_t *slot_word(struct npu_model *m, uint32_t address)
{
	uint32_t i = address >> 2 & 7u;
	struct slot *s = &m->slot[i];

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
	case NPU_GLB_HELD_ADDR:
		return &s->held;
	default:
		return NULL;
	}
}

static uint32_t slot_word_mask(uint32_t address)
{
	switch (address & ~31u) {
	case NPU_GLB_PT_BASE_ADDR:
		return ~63u;
	case NPU_GLB_CH_MASK_ADDR:
		return 0xFFFFu;
	case NPU_GLB_PT_CONTEXT_ADDR:
		return 255u;
	case NPU_GLB_HELD_ADDR:
		return 0;
	default:
		return ~0u;
	}
}

static uint32_t slot_ctrl(const struct slot *s)
{
	return NPU_REG_BITS(SLOT_CTRL_SERIAL, s->serial) |
	       NPU_REG_BITS(SLOT_CTRL_TLB_FLUSH, s->flush || mmu_held(s));
}

static uint32_t glb_read(struct npu_model *m, uint32_t address)
{
	const uint32_t *word = slot_word(m, address);
	uint32_t i = (address - NPU_CHAN_BASE) / NPU_CHAN_STRIDE;

	if (address >= NPU_CHAN_BASE && i < m->shape.channels)
		return m->channel[i].shadow[address >> 2 & 15u];
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
		return NPU_REG_BITS(CTRL_IDEAL, m->ideal);
	case NPU_GLB_IRQ_PEND_ADDR:
		return m->irq_pend;
	case NPU_GLB_IRQ_MASK_ADDR:
		return m->irq_mask;
	case NPU_GLB_TIME_LO_ADDR:
		return (uint32_t)m->cycle;
	case NPU_GLB_TIME_HI_ADDR:
		return m->time_hi;
	case NPU_GLB_MAP_STATUS_ADDR:
		return m->map_status;
	case NPU_GLB_TIMING_ADDR:
		return m->timing;
	case NPU_GLB_HASH_ADDR:
		return m->hash_opaque ? 0
				      : npu_hash_register(&m->hash) |
						NPU_REG_BITS(HASH_LOCK, m->hash_lock);
	case NPU_GLB_TURNS_ADDR:
		return NPU_REG_BITS(TURNS_CYCLES, m->turn_cycles) |
		       NPU_REG_BITS(TURNS_LAST, m->turn_last);
	case NPU_GLB_TURN_ORDER_ADDR:
		return m->turn_order;
	case NPU_GLB_PRIO_ADDR:
		return m->prio;
	case NPU_GLB_CH_GROUP_ADDR:
		return m->ch_group;
	case NPU_GLB_MODE_STATUS_ADDR:
		return m->mode_status;
	case NPU_GLB_BUCKET_WINDOW_ADDR:
		return m->staged.window;
	case NPU_GLB_BUCKET_BUDGET_ADDR:
		return m->staged.budget;
	case NPU_GLB_BUCKET_BURST_ADDR:
		return m->staged.burst;
	default:
		break;
	}
	if (is_arb(address)) {
		const struct arb_cfg *a = &m->arb[address != NPU_GLB_ARB_ADDR];

		return NPU_REG_BITS(ARB_MODE, a->mode) | NPU_REG_BITS(ARB_PASS, a->pass);
	}
	if (address >= NPU_GLB_XMASK_ADDR && address < NPU_GLB_AT(XMASK, NPU_GLB_XMASK_N))
		return m->hash_opaque ? 0 : m->hash.xmask[address >> 2 & 3u];
	if ((address & ~31u) == NPU_GLB_SLOT_CTRL_ADDR &&
	    (address >> 2 & 7u) < m->shape.slots)
		return slot_ctrl(&m->slot[address >> 2 & 7u]);
	return 0;
}

static void write_hash(struct npu_model *m, uint32_t value)
{
	npu_hash_of_register(&m->hash, value);
	m->hash_opaque = m->hash_opaque || NPU_REG_GET(value, HASH_OPAQUE);
	m->hash_lock = NPU_REG_GET(value, HASH_LOCK);
}

static void write_slot_ctrl(struct slot *s, uint32_t value, bool taken)
{
	if (taken)
		s->serial = NPU_REG_GET(value, SLOT_CTRL_SERIAL);
	s->flush = NPU_REG_GET(value, SLOT_CTRL_TLB_FLUSH);
}

/* Translations have the channel with them. */
static void flush_all(struct npu_model *m)
{
	for (uint32_t i = 0; i < m->shape.slots; i++)
		m->slot[i].flush = true;
}

static void glb_write(struct npu_model *m, uint32_t address, uint32_t value)
{
	uint32_t *word = slot_word(m, address), i = address >> 2 & 7u;
	bool taken = mode_taken(m, address, value);

	if ((address & ~31u) == NPU_GLB_SLOT_CTRL_ADDR && i < m->shape.slots)
		write_slot_ctrl(&m->slot[i], value, taken);
	if (!taken)
		return;
	if (word) {
		uint32_t mask = slot_word_mask(address);

		*word = mask ? value & mask : *word;
		return;
	}
	if (address >= NPU_GLB_XMASK_ADDR &&
	    address < NPU_GLB_AT(XMASK, NPU_GLB_XMASK_N)) {
		m->hash.xmask[address >> 2 & 3u] = value & 0xFFFFFFu;
		flush_all(m);
		return;
	}
	switch (address) {
	case NPU_GLB_CTRL_ADDR:
		m->ideal = NPU_REG_GET(value, CTRL_IDEAL);
		break;
	case NPU_GLB_IRQ_PEND_ADDR:
		m->irq_pend &= ~value;
		break;
	case NPU_GLB_IRQ_MASK_ADDR:
		m->irq_mask = value & m->irq_bits;
		break;
	case NPU_GLB_MAP_COMMIT_ADDR:
		map_commit(m);
		break;
	case NPU_GLB_PERF_SNAPSHOT_ADDR:
		m->snap = true;
		break;
	case NPU_GLB_HASH_ADDR:
		write_hash(m, value);
		flush_all(m);
		break;
	case NPU_GLB_TIMING_ADDR:
		m->timing = value & 0xFFFFFFFu;
		break;
	case NPU_GLB_PRIO_ADDR:
		m->prio = value;
		break;
	case NPU_GLB_BUCKET_WINDOW_ADDR:
		m->staged.window = value & 0xFFFFFFu;
		break;
	case NPU_GLB_BUCKET_BUDGET_ADDR:
		m->staged.budget = value & 0xFFFFFFFu;
		break;
	case NPU_GLB_BUCKET_BURST_ADDR:
		m->staged.burst = value & 0xFFFFFFFu;
		break;
	case NPU_GLB_BUCKET_SET_ADDR:
		bucket_set(m, value);
		break;
	default:
		write_shared(m, address, value);
		break;
	}
}

/* ---- time -------------------------------------------------------------------------------- */

static const struct access none;

static uint32_t events(const struct npu_model *m)
{
	uint32_t e = 0;

	for (uint32_t i = 0; i < SLOTS && i < m->shape.slots; i++) {
		const struct slot *s = &m->slot[i];

		e |= (uint32_t)s->irq_signal << (NPU_IRQ_PEND_SIGNAL_LSB + i) |
		     (uint32_t)s->irq_fault << (NPU_IRQ_PEND_FAULT_LSB + i) |
		     (uint32_t)s->irq_quiet << (NPU_IRQ_PEND_QUIET_LSB + i);
	}
	return e;
}

static void snapshot(struct npu_model *m)
{
	for (uint32_t i = 0; i < m->shape.slots; i++) {
		slot_wake(m, &m->slot[i]);
		slot_snapshot(m, &m->slot[i]);
	}
	mem_snapshot(m);
	m->snap = false;
}

/* In this cycle of a still slot more moves than rows and pieces that come. */
static bool moves(const struct npu_model *m, const struct slot *s)
{
	return s->moves || (s->rsp.v && (s->rsp.tag >= TAG_ACT || s->rsp.denied)) ||
	       s->ack.n[0] || s->ack.n[1] || fold_end(&s->conv) == m->cycle;
}

/* A cycle of a slot that is still when it begins; false: it is no more. */
static bool still_step(struct npu_model *m, struct slot *s)
{
	if (moves(m, s))
		return slot_move(m, s);
	if (s->rsp.v || fetch_ripe(&s->fetch))
		slot_fetched(s);
	return true;
}

/* One cycle; a write to a register in it, or none: address ~0. */
static void step(struct npu_model *m, uint32_t address, uint32_t value)
{
	uint32_t page = address >> 12, e = events(m);
	const struct access a = {true, address & 0xFFFu, value};

	if (m->snap)
		snapshot(m);
	mem_accept(m);
	mem_step(m);
	if (m->bucket_due)
		bucket_now(m);
	for (uint32_t i = 0; i < m->shape.slots; i++) {
		struct slot *s = &m->slot[i];
		bool mine = page == i + 1;

		if (s->wake &&
		    (m->cycle >= s->wake || mine || s->flush || !still_step(m, s)))
			slot_wake(m, s);
		if ((!s->asleep && !s->wake) || mine || s->flush)
			slot_step(m, s, mine ? &a : &none);
		s->rsp = s->next_rsp;
		s->ack = s->next_ack;
	}
	if (page == 0)
		glb_write(m, address, value);
	m->irq_pend |= e;
	m->cycle++;
}

/* The cycle, until at most, before which nothing but still slots' rows moves. */
static uint64_t next_event(const struct npu_model *m, uint64_t until)
{
	if (m->busy_channels || m->snap || m->bucket_due || m->limited ||
	    m->arb[0].mode == NPU_ARB_TURNS || m->arb[1].mode == NPU_ARB_TURNS)
		return m->cycle;
	for (uint32_t i = 0; i < m->shape.slots; i++) {
		const struct slot *s = &m->slot[i];

		if (s->flush || (!s->asleep && !s->wake) ||
		    (s->wake && (s->moves || fetch_ripe(&s->fetch))))
			return m->cycle;
		if (s->wake && s->wake < until)
			until = s->wake;
		if (s->wake && fold_end(&s->conv) < until)
			until = fold_end(&s->conv);
	}
	return mem_busy(m) || events(m) ? m->cycle : until;
}

/* ---- npu_model.h ------------------------------------------------------------------------- */

#define NOWHERE 0xFFFFFFFFu

/* All the channels that a hash can name. */
static struct npu_hash hash_all(uint32_t channels)
{
	struct npu_hash h = {.k = 0, .q = 1, .gran = 12};

	for (uint32_t k = 0; k <= 4; k++)
		for (uint32_t q = 1; q <= 15; q += 2)
			if (q << k <= channels && q << k > h.q << h.k) {
				h.k = k;
				h.q = q;
			}
	return h;
}

static struct npu_model *model_create(const struct npu_model_shape *shape,
				      uint8_t *memory, uint64_t bytes)
{
	struct npu_model *m = calloc(1, sizeof(*m));
	uint32_t slots = (1u << shape->slots) - 1;

	if (!m)
		return NULL;
	m->shape = *shape;
	m->memory = memory;
	m->bytes = bytes;
	m->timing = NPU_GLB_TIMING_RESET;
	m->hash = hash_all(shape->channels);
	m->turn_cycles = 128;
	m->turn_last = shape->slots - 1;
	m->turn_order = NPU_GLB_TURN_ORDER_RESET;
	m->turn_left = 1;
	m->irq_bits = slots << NPU_IRQ_PEND_SIGNAL_LSB | slots << NPU_IRQ_PEND_FAULT_LSB |
		      slots << NPU_IRQ_PEND_QUIET_LSB;
	for (uint32_t i = 0; i < shape->slots; i++) {
		m->slot[i].id = i;
		m->slot[i].asleep = true;
		m->slot[i].quiet = true;
	}
	return m;
}

static void model_destroy(struct npu_model *m)
{
	free(m);
}

static uint32_t model_reg_read(struct npu_model *m, uint32_t address)
{
	uint32_t page = address >> 12, value = 0;

	step(m, NOWHERE, 0);
	if (page == 0)
		value = glb_read(m, address);
	else if (page <= m->shape.slots)
		value = slot_read(m, &m->slot[page - 1], address & 0xFFFu);
	if (address == NPU_GLB_TIME_LO_ADDR)
		m->time_hi = (uint32_t)(m->cycle >> 32);
	step(m, NOWHERE, 0);
	return value;
}

static void model_reg_write(struct npu_model *m, uint32_t address, uint32_t value)
{
	step(m, NOWHERE, 0);
	step(m, address & 0xFFFFu, value);
}

static bool irq_line(const struct npu_model *m)
{
	return (m->irq_pend & m->irq_mask) != 0;
}

static uint64_t model_run(struct npu_model *m, uint64_t max_cycles)
{
	uint64_t start = m->cycle;

	while (m->cycle - start < max_cycles && !irq_line(m)) {
		uint64_t to = next_event(m, start + max_cycles);

		if (to > m->cycle)
			m->cycle = to;
		else
			step(m, NOWHERE, 0);
	}
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
	return mem_idle(m) && !events(m);
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

static void model_memory(struct npu_model *m, const struct npu_model_memory *how)
{
	m->extra = *how;
	m->extra_since = m->cycle;
}

static const struct npu_model_api api = {
	.size = sizeof(api),
	.abi = NPU_MODEL_ABI,
	.engine = "fast",
	.rows = ROWS_MAX,
	.cols = ROWS_MAX,
	.slots = SLOTS,
	.channels = CHANNELS,
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
	.memory = model_memory,
};

__attribute__((visibility("default"))) const struct npu_model_api *npu_model_entry(void);

const struct npu_model_api *npu_model_entry(void)
{
	return &api;
}
