/* SPDX-License-Identifier: Apache-2.0 */
/* rig.c - the NPU on a bench: model, tables, rings, golden comparison, random work. */
#include "rig.h"

#include "panel.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define STAMP_SIZE 64u /* one line each: a stamp is never in the way of data */

static _Noreturn void die(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	exit(status);
}

static void *need(void *p)
{
	if (!p)
		die(2, "rig: out of memory");
	return p;
}

/* ---- the machine ------------------------------------------------------------------- */

void rig_open(struct rig *r, const char *shape, uint64_t bytes)
{
	rig_open_engine(r, getenv("NPU_MODEL_ENGINE"), shape, bytes);
}

void rig_open_engine(struct rig *r, const char *engine, const char *shape, uint64_t bytes)
{
	const char *dir = getenv("NPU_MODEL_DIR");
	union {
		void *object;
		npu_model_entry_fn function;
	} entry;
	char path[512];
	void *lib;

	memset(r, 0, sizeof(*r));
	snprintf(path, sizeof(path), "%s/libnpu_%s.so", dir ? dir : RIG_MODEL_DIR,
		 engine ? engine : shape);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		die(77, "skipped: %s", dlerror());
	entry.object = dlsym(lib, NPU_MODEL_SYMBOL);
	if (!entry.object)
		die(2, "%s: no %s", path, NPU_MODEL_SYMBOL);
	r->api = entry.function();
	if (r->api->any_shape) {
		r->shaped = *r->api;
		if (!engine ||
		    sscanf(shape, "%ux%ux%ux%u", &r->shaped.rows, &r->shaped.cols,
			   &r->shaped.slots, &r->shaped.channels) != 4)
			die(2, "rig: %s is no shape", shape);
		r->api = &r->shaped;
	}
	r->bytes = bytes;
	r->memory = need(calloc(1, bytes));
}

static void drop_spaces(struct rig *r)
{
	for (uint32_t s = 0; s < RIG_SLOTS; s++) {
		free(r->space[s].frame);
		free(r->space[s].shadow);
	}
	memset(r->space, 0, sizeof(r->space));
}

void rig_close(struct rig *r)
{
	drop_spaces(r);
	if (r->model)
		r->api->destroy(r->model);
	free(r->taken);
	free(r->memory);
}

uint32_t rig_reg(struct rig *r, uint32_t address)
{
	return r->api->reg_read(r->model, address);
}

void rig_write(struct rig *r, uint32_t address, uint32_t value)
{
	r->api->reg_write(r->model, address, value);
}

struct rig_memory rig_channels(uint32_t channels)
{
	struct rig_memory cfg = {.q = channels, .gran = 12};

	while (cfg.q % 2 == 0) {
		cfg.q /= 2;
		cfg.k++;
	}
	return cfg;
}

struct rig_memory rig_backend(uint32_t channels, uint32_t hash_seed)
{
	struct rig_memory cfg = rig_channels(channels);
	struct npu_hash h = {.q = cfg.q, .k = cfg.k, .gran = 10};

	npu_hash_choose(&h, hash_seed);
	cfg.gran = h.gran;
	memcpy(cfg.xmask, h.xmask, sizeof(cfg.xmask));
	return cfg;
}

struct rig_memory rig_ideal(const struct rig *r)
{
	struct rig_memory cfg = rig_channels(r->api->channels);

	cfg.ideal = true;
	return cfg;
}

void rig_reset(struct rig *r, const struct rig_memory *cfg)
{
	if (r->model)
		r->api->destroy(r->model);
	drop_spaces(r);
	r->cfg = *cfg;
	r->npages = (uint32_t)(r->bytes >> cfg->gran);
	free(r->taken);
	r->taken = need(calloc(r->npages, 1));
	r->model = need(
		r->api->create(&(struct npu_model_shape){r->api->rows, r->api->cols,
							 r->api->slots, r->api->channels},
			       r->memory, r->bytes));
	r->ended = r->faulted = r->quieted = 0;
	if (r->api->memory)
		r->api->memory(r->model, &cfg->extra);
	if (cfg->turns)
		rig_write(r, NPU_GLB_TURNS_ADDR,
			  NPU_REG_BITS(TURNS_CYCLES, cfg->turns) |
				  NPU_REG_BITS(TURNS_LAST, r->api->slots - 1));
	for (uint32_t i = 0; cfg->turns && i < NPU_GLB_ARB_N; i++)
		rig_write(r, NPU_GLB_AT(ARB, i), NPU_REG_BITS(ARB_MODE, NPU_ARB_TURNS));
	rig_write(r, NPU_GLB_CTRL_ADDR, cfg->ideal);
	rig_write(r, NPU_GLB_HASH_ADDR,
		  NPU_REG_BITS(HASH_K, cfg->k) | NPU_REG_BITS(HASH_Q, cfg->q) |
			  NPU_REG_BITS(HASH_QH, cfg->q >> 3) |
			  NPU_REG_BITS(HASH_GRAN, cfg->gran));
	for (uint32_t i = 0; i < 4; i++)
		rig_write(r, NPU_GLB_AT(XMASK, i), cfg->xmask[i]);
	if (cfg->timing)
		rig_write(r, NPU_GLB_TIMING_ADDR, cfg->timing);
	rig_write(r, NPU_GLB_IRQ_MASK_ADDR, 0xffffff);
}

uint32_t rig_map(struct rig *r, const struct rig_rect *rects, uint32_t count)
{
	for (uint32_t s = 0; s < r->api->slots; s++) {
		static const struct rig_rect none;
		const struct rig_rect *q = s < count ? &rects[s] : &none;

		rig_write(r, NPU_GLB_AT(RECT, s),
			  NPU_REG_BITS(RECT_ROW, q->row) |
				  NPU_REG_BITS(RECT_COL, q->col) |
				  NPU_REG_BITS(RECT_ROWS, q->rows) |
				  NPU_REG_BITS(RECT_COLS, q->cols));
	}
	rig_write(r, NPU_GLB_MAP_COMMIT_ADDR, 1);
	return NPU_REG_GET(rig_reg(r, NPU_GLB_MAP_STATUS_ADDR), MAP_STATUS_RESULT);
}

void rig_place(struct rig *r, uint32_t s, const struct rig_rect *rect)
{
	struct rig_rect map[RIG_SLOTS] = {{0}};

	map[s] = *rect;
	CHECK(rig_map(r, map, RIG_SLOTS) == NPU_MAP_OK, "slot %u is not quiet", s);
}

struct rig_rect rig_anywhere(const struct rig *r, struct rng *g)
{
	struct rig_rect q;

	q.rows = rng_range(g, 1, r->api->rows);
	q.cols = rng_range(g, 1, r->api->cols);
	q.row = rng_range(g, 0, r->api->rows - q.rows);
	q.col = rng_range(g, 0, r->api->cols - q.cols);
	return q;
}

/* ---- address spaces ---------------------------------------------------------------- */

/* The hash as its registers are described. */
static uint32_t channel_of(const struct rig *r, uint32_t page)
{
	uint32_t low = 0;
	uint32_t u = page >> r->cfg.k;

	for (uint32_t i = 0; i < r->cfg.k; i++) {
		uint32_t mask = r->cfg.xmask[i] & (uint32_t)(UINT64_MAX << (i + 1));

		low |= ((uint32_t)__builtin_popcount(page & (mask | 1u << i)) & 1) << i;
	}
	return (u % r->cfg.q + u / r->cfg.q % r->cfg.q) % r->cfg.q << r->cfg.k | low;
}

uint32_t rig_channel(const struct rig *r, uint32_t pa)
{
	return channel_of(r, pa >> r->cfg.gran);
}

static bool page_fits(const struct rig *r, uint32_t page, uint32_t channels)
{
	return !r->taken[page] && channels >> channel_of(r, page) & 1;
}

/* count pages in a row: a root table is physically contiguous.  One longer than a page
 * cannot stay on some channels only. */
static uint32_t take_pages(struct rig *r, uint32_t count, uint32_t channels)
{
	for (uint32_t p = 1; p + count <= r->npages; p++) {
		uint32_t i = 0;

		while (i < count && page_fits(r, p + i, count > 1 ? RIG_ALL : channels))
			i++;
		if (i == count) {
			memset(r->taken + p, 1, count);
			return p;
		}
	}
	die(2, "rig: no %u free pages on channels %#x", count, channels);
}

/* A root, and a table for each page's worth of entries. */
static void take_tables(struct rig *r, struct rig_space *sp, uint32_t channels)
{
	uint32_t page = 1u << r->cfg.gran, tables = (sp->pages * 4 + page - 1) / page;

	sp->table = take_pages(r, (tables * 4 + page - 1) / page, channels) * page;
	for (uint32_t i = 0; i < tables; i++) {
		uint32_t entry = take_pages(r, 1, channels) * page | NPU_PTE_VALID;

		memset(r->memory + (entry & ~255u), 0, page);
		memcpy(r->memory + sp->table + i * 4, &entry, 4);
	}
}

void rig_space(struct rig *r, uint32_t s, uint32_t bytes, uint32_t channels)
{
	struct rig_space *sp = &r->space[s];
	uint32_t page = 1u << r->cfg.gran;
	uint32_t next = 1; /* nothing lives at address 0 */

	if (s >= r->api->slots)
		die(2, "rig: the bench uses slot %u, this shape has %u slots", s,
		    r->api->slots);
	free(sp->frame);
	free(sp->shadow);
	memset(sp, 0, sizeof(*sp));
	sp->channels = channels;
	sp->number = 200 + s;
	sp->pages = (bytes + page - 1) / page;
	sp->frame = need(calloc(sp->pages, sizeof(*sp->frame)));
	sp->shadow = need(calloc(sp->pages, page));
	take_tables(r, sp, channels);
	for (uint32_t p = 0; p < sp->pages; p++) {
		while (next < r->npages && !page_fits(r, next, channels))
			next++;
		if (next >= r->npages)
			die(2, "rig: memory full");
		sp->frame[p] = next;
		r->taken[next] = 1;
		rig_set_pte(r, s, p * page,
			    sp->frame[p] << r->cfg.gran | NPU_PTE_VALID | NPU_PTE_WRITE);
		memset(r->memory + ((uint64_t)sp->frame[p] << r->cfg.gran), 0, page);
	}
	sp->ring = 0;
	sp->stamps = sp->ring + RIG_DEPTH * 64;
	rig_free_all(r, s);
	rig_write(r, NPU_GLB_AT(PT_BASE, s), sp->table);
	rig_write(r, NPU_GLB_AT(PT_CONTEXT, s), sp->number);
	rig_write(r, NPU_GLB_AT(PT_COUNT, s), sp->pages);
	rig_write(r, NPU_GLB_AT(CH_MASK, s), channels);
	rig_write(r, NPU_GLB_AT(SLOT_CTRL, s), NPU_REG_BITS(SLOT_CTRL_TLB_FLUSH, 1));
	rig_restart(r, s);
}

void rig_restart(struct rig *r, uint32_t s)
{
	struct rig_space *sp = &r->space[s];

	rig_write(r, NPU_SLOT_ADDR(s, RING_LOG2), 9);
	rig_write(r, NPU_SLOT_ADDR(s, RING_BASE), sp->ring);
	sp->tail = sp->done = sp->nstamps = 0;
	r->ended &= ~(1u << s);
	r->faulted &= ~(1u << s);
	r->quieted &= ~(1u << s);
}

uint32_t rig_alloc(struct rig *r, uint32_t s, uint32_t bytes, uint32_t align)
{
	struct rig_space *sp = &r->space[s];
	uint32_t va = (sp->free_va + align - 1) / align * align;

	if ((uint64_t)va + bytes > (uint64_t)sp->pages << r->cfg.gran)
		die(2, "rig: slot %u has no %u bytes left", s, bytes);
	sp->free_va = va + bytes;
	return va;
}

void rig_free_all(struct rig *r, uint32_t s)
{
	r->space[s].free_va = r->space[s].stamps + RIG_STAMPS * STAMP_SIZE;
}

void rig_poke(struct rig *r, uint32_t s, uint32_t va, const void *data, uint32_t bytes)
{
	struct rig_space *sp = &r->space[s];
	uint32_t page = 1u << r->cfg.gran;
	const uint8_t *from = data;

	memcpy(sp->shadow + va, data, bytes);
	while (bytes) {
		uint32_t off = va & (page - 1);
		uint32_t n = bytes < page - off ? bytes : page - off;

		memcpy(r->memory +
			       ((uint64_t)sp->frame[va >> r->cfg.gran] << r->cfg.gran) +
			       off,
		       from, n);
		va += n;
		from += n;
		bytes -= n;
	}
}

void rig_peek(struct rig *r, uint32_t s, uint32_t va, void *data, uint32_t bytes)
{
	struct rig_space *sp = &r->space[s];
	uint32_t page = 1u << r->cfg.gran;
	uint8_t *to = data;

	while (bytes) {
		uint32_t off = va & (page - 1);
		uint32_t n = bytes < page - off ? bytes : page - off;

		memcpy(to,
		       r->memory +
			       ((uint64_t)sp->frame[va >> r->cfg.gran] << r->cfg.gran) +
			       off,
		       n);
		va += n;
		to += n;
		bytes -= n;
	}
}

void rig_random(struct rig *r, uint32_t s, uint32_t va, uint32_t bytes, struct rng *g)
{
	uint32_t block[64];

	while (bytes) {
		uint32_t n = bytes < sizeof(block) ? bytes : (uint32_t)sizeof(block);

		for (uint32_t i = 0; i < (n + 3) / 4; i++)
			block[i] = rng_next(g);
		rig_poke(r, s, va, block, n);
		va += n;
		bytes -= n;
	}
}

static uint8_t *pte_at(const struct rig *r, uint32_t s, uint32_t va)
{
	uint32_t vpn = va >> r->cfg.gran, per = 1u << (r->cfg.gran - 2), table;

	memcpy(&table, r->memory + r->space[s].table + vpn / per * 4, 4);
	return r->memory + (table & ~255u) + vpn % per * 4;
}

void rig_set_pte(struct rig *r, uint32_t s, uint32_t va, uint32_t pte)
{
	memcpy(pte_at(r, s, va), &pte, 4);
}

uint32_t rig_pte(const struct rig *r, uint32_t s, uint32_t va)
{
	uint32_t pte;

	memcpy(&pte, pte_at(r, s, va), 4);
	return pte;
}

/* ---- rings ------------------------------------------------------------------------- */

void rig_push(struct rig *r, uint32_t s, const uint32_t desc[16])
{
	struct rig_space *sp = &r->space[s];

	if (sp->tail - sp->done >= RIG_DEPTH)
		die(2, "rig: ring of slot %u is full", s);
	rig_poke(r, s, sp->ring + sp->tail % RIG_DEPTH * 64, desc, 64);
	sp->tail++;
}

uint32_t rig_push_stamp(struct rig *r, uint32_t s)
{
	struct rig_space *sp = &r->space[s];
	uint32_t desc[16] = {0};

	if (sp->nstamps == RIG_STAMPS)
		die(2, "rig: too many stamps");
	NPU_SET(desc, OPCODE, NPU_OP_TIMESTAMP);
	NPU_SET(desc, ADDR_D, sp->stamps + sp->nstamps * STAMP_SIZE);
	rig_push(r, s, desc);
	return sp->nstamps++;
}

uint64_t rig_stamp(struct rig *r, uint32_t s, uint32_t index)
{
	uint64_t value;

	rig_peek(r, s, r->space[s].stamps + index * STAMP_SIZE, &value, 8);
	return value;
}

void rig_push_end(struct rig *r, uint32_t s)
{
	uint32_t desc[16] = {0};

	NPU_SET(desc, OPCODE, NPU_OP_SIGNAL);
	NPU_SET(desc, F_IRQ, 1);
	NPU_SET(desc, ADDR_D, r->space[s].stamps + RIG_STAMPS * STAMP_SIZE - 8);
	NPU_SET(desc, SVALUE_LO, r->space[s].tail);
	rig_push(r, s, desc);
}

void rig_bell(struct rig *r, uint32_t s)
{
	r->ended &= ~(1u << s);
	rig_write(r, NPU_SLOT_ADDR(s, TAIL), r->space[s].tail);
}

static void take_interrupts(struct rig *r)
{
	uint32_t pend = rig_reg(r, NPU_GLB_IRQ_PEND_ADDR);

	rig_write(r, NPU_GLB_IRQ_PEND_ADDR, pend);
	r->ended |= NPU_REG_GET(pend, IRQ_PEND_SIGNAL);
	r->faulted |= NPU_REG_GET(pend, IRQ_PEND_FAULT);
	r->quieted |= NPU_REG_GET(pend, IRQ_PEND_QUIET);
}

void rig_run(struct rig *r, uint64_t cycles)
{
	uint64_t end = r->api->cycle(r->model) + cycles;

	while (r->api->cycle(r->model) < end) {
		r->api->run(r->model, end - r->api->cycle(r->model));
		if (r->api->irq(r->model))
			take_interrupts(r);
	}
}

static _Noreturn void stuck(struct rig *r, const char *what)
{
	for (uint32_t s = 0; s < r->api->slots; s++)
		printf("slot %u: status %#x head %u tail %u fault %u at %#x (descriptor "
		       "%u)\n",
		       s, rig_reg(r, NPU_SLOT_ADDR(s, STATUS)),
		       rig_reg(r, NPU_SLOT_ADDR(s, HEAD)),
		       rig_reg(r, NPU_SLOT_ADDR(s, TAIL)),
		       rig_reg(r, NPU_SLOT_ADDR(s, FAULT_KIND)),
		       rig_reg(r, NPU_SLOT_ADDR(s, FAULT_ADDR)),
		       rig_reg(r, NPU_SLOT_ADDR(s, FAULT_DESC)));
	die(2, "rig: %s takes too long", what);
}

void rig_wait(struct rig *r, uint32_t mask, uint64_t limit)
{
	uint64_t end = r->api->cycle(r->model) + limit;

	while (((r->ended | r->faulted) & mask) != mask) {
		uint64_t now = r->api->cycle(r->model);

		if (now >= end)
			stuck(r, "a job");
		r->api->run(r->model, end - now);
		if (r->api->irq(r->model))
			take_interrupts(r);
	}
}

void rig_wait_reg(struct rig *r, uint32_t address, uint32_t mask, uint32_t value,
		  uint64_t limit)
{
	uint64_t end = r->api->cycle(r->model) + limit;

	while ((rig_reg(r, address) & mask) != value)
		if (r->api->cycle(r->model) >= end)
			stuck(r, "a register");
}

/* ---- golden ------------------------------------------------------------------------ */

void rig_golden(struct rig *r, uint32_t s)
{
	struct rig_space *sp = &r->space[s];
	struct npu_golden_flat flat = {sp->shadow, (uint64_t)sp->pages << r->cfg.gran};
	struct npu_golden_env env = {.user = &flat,
				     .read = npu_golden_flat_read,
				     .write = npu_golden_flat_write,
				     .rows = 16,
				     .cols = 16};

	for (; sp->done != sp->tail; sp->done++) {
		struct npu_golden_result result;
		uint32_t desc[16];

		memcpy(desc, sp->shadow + sp->ring + sp->done % RIG_DEPTH * 64, 64);
		if (NPU_GET(desc, OPCODE) == NPU_OP_TIMESTAMP)
			rig_peek(r, s, NPU_GET(desc, ADDR_D), &env.time, 8);
		npu_golden_exec(desc, &env, &result);
		CHECK(!result.fault, "golden: descriptor %u faults: %u at %#x", sp->done,
		      result.fault, result.address);
		sp->macs += result.macs;
	}
}

void rig_forget(struct rig *r, uint32_t s, uint32_t va, uint32_t bytes)
{
	static uint8_t there[2 * RIG_SAVE];

	CHECK(bytes <= sizeof(there), "an area of %u bytes", bytes);
	rig_peek(r, s, va, there, bytes);
	rig_poke(r, s, va, there, bytes);
}

void rig_compare(struct rig *r, uint32_t s, const char *what)
{
	struct rig_space *sp = &r->space[s];
	uint32_t page = 1u << r->cfg.gran;

	for (uint32_t p = 0; p < sp->pages; p++) {
		const uint8_t *got = r->memory + ((uint64_t)sp->frame[p] << r->cfg.gran);
		const uint8_t *want = sp->shadow + (size_t)p * page;
		uint32_t i = 0, wrong = 0;

		bench_checks++;
		if (!memcmp(got, want, page))
			continue;
		while (got[i] == want[i])
			i++;
		for (uint32_t j = 0; j < page; j++)
			wrong += got[j] != want[j];
		CHECK(false,
		      "%s: slot %u address %#x is %#x, not %#x (%u bytes of the page)",
		      what, s, p * page + i, got[i], want[i], wrong);
		return;
	}
}

void rig_check(struct rig *r, uint32_t s, const char *what)
{
	rig_golden(r, s);
	rig_compare(r, s, what);
}

static uint64_t counter(struct rig *r, uint32_t address)
{
	uint64_t low = rig_reg(r, address);

	return low | (uint64_t)rig_reg(r, address + 4) << 32;
}

struct rig_counters rig_counters(struct rig *r, uint32_t s, bool check_macs)
{
	struct rig_counters c;

	rig_write(r, NPU_GLB_PERF_SNAPSHOT_ADDR, 1);
	c.cycles = counter(r, NPU_SLOT_ADDR(s, CNT_CYCLES));
	c.active = counter(r, NPU_SLOT_ADDR(s, CNT_ACTIVE));
	c.stall_a = counter(r, NPU_SLOT_ADDR(s, CNT_STALL_A));
	c.stall_w = counter(r, NPU_SLOT_ADDR(s, CNT_STALL_W));
	c.stall_out = counter(r, NPU_SLOT_ADDR(s, CNT_STALL_OUT));
	c.stall_bank = counter(r, NPU_SLOT_ADDR(s, CNT_STALL_BANK));
	c.stall_seq = counter(r, NPU_SLOT_ADDR(s, CNT_STALL_SEQ));
	c.idle = counter(r, NPU_SLOT_ADDR(s, CNT_IDLE));
	c.macs = counter(r, NPU_SLOT_ADDR(s, CNT_MACS));
	c.folds = counter(r, NPU_SLOT_ADDR(s, CNT_FOLDS));
	c.rows = counter(r, NPU_SLOT_ADDR(s, CNT_ROWS));
	c.descs = counter(r, NPU_SLOT_ADDR(s, CNT_DESCS));
	c.read_beats = counter(r, NPU_SLOT_ADDR(s, CNT_READ_BEATS));
	c.write_beats = counter(r, NPU_SLOT_ADDR(s, CNT_WRITE_BEATS));
	c.tlb_misses = counter(r, NPU_SLOT_ADDR(s, CNT_TLB_MISSES));
	CHECK(c.cycles == c.active + c.stall_a + c.stall_bank + c.stall_w + c.stall_out +
				  c.stall_seq + c.idle,
	      "slot %u: %llu cycles are not the sum of their kinds", s,
	      (unsigned long long)c.cycles);
	if (check_macs)
		CHECK(c.macs == r->space[s].macs, "slot %u: %llu MACs counted, %llu done",
		      s, (unsigned long long)c.macs,
		      (unsigned long long)r->space[s].macs);
	return c;
}

/* ---- random work ------------------------------------------------------------------- */

/* Panel and pitch; GEMM has no pixels. */
static struct npu_panel choose_panel(const struct rig_conv *c, bool gemm,
				     uint32_t row_bytes, uint32_t lda)
{
	struct npu_panel_op o = {
		.m = c->oh * c->ow,
		.n = c->n,
		.k = c->kh * c->kw * (c->gc ? c->gc : c->cin),
		.depth = c->out32 ? NPU_DEPTH_OUT32 : NPU_DEPTH,
		.in = {.h = c->h,
		       .ow = c->ow,
		       .sy = c->sy,
		       .pt = c->pt,
		       .reach = (c->kh - 1) * c->dy + 1},
		.pitch = {.row_bytes = row_bytes, .lda = lda},
	};
	struct npu_panel p;

	if (c->panel && c->panel < o.depth)
		o.depth = c->panel;
	if (!gemm) {
		o.pitch.pix = c->pix ? c->pix : c->cin;
		o.pitch.depth = c->gc ? c->gc : c->cin;
		o.pitch.group = c->gc != 0;
		o.pitch.kh = c->kh;
		o.pitch.kw = c->kw;
		o.pitch.sy = c->sy;
		o.pitch.sx = c->sx;
		o.pitch.dx = c->dx;
		o.pitch.dy = c->dy;
		o.pitch.ow = c->ow;
	}
	p = gemm ? npu_panel_gemm(&o) : npu_panel_choose(&o);
	if (p.kcut && p.rows < o.m)
		p = npu_panel_choose(&o);
	if (c->kcut)
		p = (struct npu_panel){
			.rows = o.m, .sps = npu_panel_cut_sps(c->kcut), .kcut = c->kcut};
	if (!p.rows)
		die(2, "rig: the input of one output does not fit");
	return p;
}

static void random_params(struct rig *r, uint32_t s, const struct rig_conv *c,
			  uint32_t desc[16], uint32_t k, struct rng *g)
{
	uint32_t va = rig_alloc(r, s, c->n * 16, 16);
	uint32_t log2k = 0;

	while (1u << log2k < k)
		log2k++;
	NPU_SET(desc, ADDR_P, va);
	for (uint32_t i = 0; i < c->n; i++) {
		/* Mostly results that are not all clamped. */
		uint32_t row[4] = {
			(uint32_t)((int32_t)rng_next(g) >> rng_range(g, 8, 31)),
			rng_next(g), rng_range(g, 0, 3) - 5 - log2k / 2, rng_next(g)};
		/* ONNX: sums of k products about as large as the output's range */
		float scale = (float)(rng_range(g, 1, 1u << 24)) / (float)(1u << 24) *
			      (rng_next(g) % 16 ? 0.02F : 40.0F) / (float)k;

		if (rng_next(g) % 16 == 0)
			row[2] = rng_range(g, 0, 61) - 31;
		if (c->onnx)
			memcpy(&row[1], &scale, 4);
		if (c->depthwise)
			row[3] = i;
		else if (c->gc)
			row[3] = rng_range(g, 0, c->cin - c->gc);
		rig_poke(r, s, va + 16 * i, row, 16);
	}
}

void rig_conv_desc(struct rig *r, uint32_t s, const struct rig_conv *c, bool gemm,
		   uint32_t desc[16], struct rng *g)
{
	uint32_t pix = c->pix ? c->pix : c->cin;
	uint32_t k = c->kh * c->kw * (c->gc ? c->gc : c->cin);
	uint32_t row_bytes = gemm ? c->cin : (c->w - 1) * pix + c->cin;
	uint32_t lda = c->lda ? c->lda : gemm ? c->cin : c->w * pix;
	uint32_t ldb = c->ldb ? c->ldb : c->n;
	uint32_t size = c->out32 ? 4 : 1;
	uint32_t ldd = c->ldd ? c->ldd : c->n * size;
	struct npu_panel panel = choose_panel(c, gemm, row_bytes, lda);
	uint32_t m = c->oh * c->ow;
	uint32_t a = rig_alloc(r, s, (c->h - 1) * lda + row_bytes,
			       c->depthwise ? 64 : 1 + rng_next(g) % 64);
	uint32_t b_bytes = c->block ? (c->n + 15) / 16 * 16 * k : (k - 1) * ldb + c->n;
	uint32_t b = rig_alloc(r, s, b_bytes, c->block ? 16 : 1 + rng_next(g) % 64);
	uint32_t d = rig_alloc(r, s, (m - 1) * ldd + c->n * size,
			       c->out32 ? 4 : 1 + rng_next(g) % 64);
	uint32_t low = rng_next(g) & 255, high = rng_next(g) & 255;

	if (rng_next(g) % 4 == 0 && !panel.kcut) /* any distance gives the same bytes */
		panel.sps = (uint32_t)npu_pitch_least(row_bytes, lda);
	memset(desc, 0, 64);
	rig_random(r, s, a, (c->h - 1) * lda + row_bytes, g);
	rig_random(r, s, b, b_bytes, g);
	NPU_SET(desc, OPCODE, gemm ? NPU_OP_GEMM : NPU_OP_CONV);
	NPU_SET(desc, F_OUT32, c->out32);
	NPU_SET(desc, F_AU8, c->au8);
	NPU_SET(desc, F_BU8, c->bu8);
	NPU_SET(desc, F_OU8, c->ou8);
	NPU_SET(desc, F_NOPARAM, c->noparam);
	NPU_SET(desc, F_BLOCK, c->block);
	NPU_SET(desc, ADDR_A, a);
	NPU_SET(desc, ADDR_B, b);
	NPU_SET(desc, ADDR_D, d);
	NPU_SET(desc, DM, m);
	NPU_SET(desc, OW, c->ow);
	NPU_SET(desc, PANEL, panel.rows);
	NPU_SET(desc, DN, c->n);
	NPU_SET(desc, CIN, c->cin);
	NPU_SET(desc, LDA, lda);
	NPU_SET(desc, LDB, c->gc ? c->gc : ldb);
	NPU_SET(desc, F_GROUP, c->gc != 0);
	NPU_SET(desc, F_FLOAT, c->onnx);
	NPU_SET(desc, F_ONCE, c->once);
	NPU_SET(desc, LDD, ldd);
	NPU_SET(desc, SPS, panel.sps);
	NPU_SET(desc, KCUT, panel.kcut);
	NPU_SET(desc, ZPA, rng_next(g));
	NPU_SET(desc, ZPB, rng_next(g));
	NPU_SET(desc, ZPO, rng_next(g));
	if (c->ou8 ? low > high : (int8_t)low > (int8_t)high) {
		uint32_t t = low;

		low = high;
		high = t;
	}
	if (rng_next(g) % 4) {
		low = c->ou8 ? 0 : 128;
		high = c->ou8 ? 255 : 127;
	}
	NPU_SET(desc, AMIN, low);
	NPU_SET(desc, AMAX, high);
	if (!gemm) {
		NPU_SET(desc, H, c->h);
		NPU_SET(desc, W, c->w);
		NPU_SET(desc, PIX, pix);
		NPU_SET(desc, KH, c->kh);
		NPU_SET(desc, KW, c->kw);
		NPU_SET(desc, SY, c->sy);
		NPU_SET(desc, SX, c->sx);
		NPU_SET(desc, DY, c->dy);
		NPU_SET(desc, DX, c->dx);
		NPU_SET(desc, PT, c->pt);
		NPU_SET(desc, PL, c->pl);
	}
	if (c->noparam) {
		NPU_SET(desc, QMULT,
			c->onnx ? 0x3b000000 + rng_next(g) % 0x800000 : rng_next(g));
		NPU_SET(desc, QSHIFT, rng_range(g, 0, 8) - 10);
	} else {
		random_params(r, s, c, desc, k, g);
	}
}

struct rig_conv rig_matrix(uint32_t m, uint32_t n, uint32_t k)
{
	return (struct rig_conv){.h = m,
				 .w = 1,
				 .cin = k,
				 .oh = m,
				 .ow = 1,
				 .n = n,
				 .kh = 1,
				 .kw = 1,
				 .sy = 1,
				 .sx = 1,
				 .dy = 1,
				 .dx = 1};
}

void rig_gemm_desc(struct rig *r, uint32_t s, uint32_t m, uint32_t n, uint32_t k,
		   uint32_t desc[16], struct rng *g)
{
	struct rig_conv c = rig_matrix(m, n, k);

	rig_conv_desc(r, s, &c, true, desc, g);
}

static void random_flags(struct rig_conv *c, uint32_t width, struct rng *g)
{
	c->out32 = rng_next(g) % 5 == 0;
	c->au8 = rng_next(g) % 3 == 0;
	c->bu8 = rng_next(g) % 3 == 0;
	c->ou8 = rng_next(g) % 3 == 0;
	c->noparam = rng_next(g) % 4 == 0;
	c->block = rng_next(g) % 2;
	c->onnx = rng_next(g) % 4 == 0;
	c->once = rng_next(g) % 3 == 0;
	if (rng_next(g) % 3 == 0)
		c->panel = rng_range(g, 1, 80);
	if (rng_next(g) % 2)
		c->ldb = c->n + rng_range(g, 0, 90);
	if (rng_next(g) % 2)
		c->ldd = (c->n + rng_range(g, 0, 90)) * (c->out32 ? 4 : 1);
	if (rng_next(g) % 2)
		c->lda = width + rng_range(g, 0, 200);
}

void rig_random_gemm(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g)
{
	uint32_t m = rng_range(g, 1, rng_next(g) % 4 ? 90 : 6);
	struct rig_conv c = rig_matrix(m, 0, 0);

	if (rng_next(g) % 12 == 0)
		c.h = c.oh = rng_range(g, 400, 1600);
	c.n = rng_range(g, 1, 50);
	c.cin = rng_range(g, 1, rng_next(g) % 8 ? 70 : 400);
	random_flags(&c, c.cin, g);
	rig_conv_desc(r, s, &c, true, desc, g);
}

void rig_random_conv(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g)
{
	struct rig_conv c;

	memset(&c, 0, sizeof(c));
	c.h = rng_range(g, 1, 20);
	c.w = rng_range(g, 1, 20);
	c.kh = rng_range(g, 1, 5);
	c.kw = rng_range(g, 1, 5);
	c.sy = rng_range(g, 1, 3);
	c.sx = rng_range(g, 1, 3);
	c.dy = rng_range(g, 1, rng_next(g) % 3 ? 1 : 3);
	c.dx = rng_range(g, 1, rng_next(g) % 3 ? 1 : 3);
	c.pt = rng_range(g, 0, (c.kh - 1) * c.dy);
	c.pl = rng_range(g, 0, (c.kw - 1) * c.dx);
	c.oh = rng_range(g, 1, (c.h - 1 + c.pt) / c.sy + 1);
	c.ow = rng_range(g, 1, (c.w - 1 + c.pl) / c.sx + 1);
	c.cin = rng_range(g, 1, rng_next(g) % 3 ? 8 : 40);
	c.n = rng_range(g, 1, 40);
	c.pix = c.cin + (rng_next(g) % 3 ? 0 : rng_range(g, 0, 20));
	random_flags(&c, c.w * c.pix, g);
	if (rng_next(g) % 3 == 0) {
		c.gc = rng_range(g, 1, rng_next(g) % 2 ? 1 : c.cin);
		c.block = true;
		c.noparam = false;
	}
	rig_conv_desc(r, s, &c, false, desc, g);
}

/* By the flag of the output's type, which is set. */
static void random_clamp(uint32_t desc[16], struct rng *g)
{
	uint32_t low = rng_next(g) % 2 ? 0 : rng_range(g, 0, 100);
	uint32_t high = rng_next(g) % 2 ? 255 : rng_range(g, 100, 255);
	uint32_t bias = NPU_GET(desc, F_OU8) ? 0 : 128;

	NPU_SET(desc, AMIN, low - bias);
	NPU_SET(desc, AMAX, high - bias);
}

static void random_pool(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g)
{
	uint32_t h = rng_range(g, 1, 16), w = rng_range(g, 1, 16),
		 c = rng_range(g, 1, 70);
	uint32_t pix = c + rng_range(g, 0, 10), lda = w * pix + rng_range(g, 0, 70);
	uint32_t kh = rng_range(g, 1, 4), kw = rng_range(g, 1, 4);
	uint32_t sy = rng_range(g, 1, 3), sx = rng_range(g, 1, 3);
	uint32_t pt = rng_range(g, 0, kh - 1), pl = rng_range(g, 0, kw - 1);
	uint32_t oh = rng_range(g, 1, (h - 1 + pt) / sy + 1);
	uint32_t ow = rng_range(g, 1, (w - 1 + pl) / sx + 1);
	uint32_t ldd = c + rng_range(g, 0, 50);
	uint32_t a = rig_alloc(r, s, h * lda, 1 + rng_next(g) % 64);
	uint32_t d = rig_alloc(r, s, oh * ow * ldd, 1 + rng_next(g) % 64);

	rig_random(r, s, a, h * lda, g);
	NPU_SET(desc, ADDR_A, a);
	NPU_SET(desc, ADDR_D, d);
	NPU_SET(desc, DM, oh * ow);
	NPU_SET(desc, OW, ow);
	NPU_SET(desc, CIN, c);
	NPU_SET(desc, H, h);
	NPU_SET(desc, W, w);
	NPU_SET(desc, LDA, lda);
	NPU_SET(desc, PIX, pix);
	NPU_SET(desc, LDD, ldd);
	NPU_SET(desc, KH, kh);
	NPU_SET(desc, KW, kw);
	NPU_SET(desc, SY, sy);
	NPU_SET(desc, SX, sx);
	NPU_SET(desc, DY, 1);
	NPU_SET(desc, DX, 1);
	NPU_SET(desc, PT, pt);
	NPU_SET(desc, PL, pl);
	random_clamp(desc, g);
}

/* The table a look-up or softmax takes. */
static void random_table(struct rig *r, uint32_t s, uint32_t desc[16], bool softmax,
			 struct rng *g)
{
	uint32_t bytes = softmax ? 1024 : 256, va = rig_alloc(r, s, bytes, 16);
	double decay = (double)rng_range(g, 50, 100) / 100, value = 2147483647.0;

	NPU_SET(desc, ADDR_P, va);
	rig_random(r, s, va, bytes, g);
	for (uint32_t i = 0; softmax && i < 256; i++, value *= decay) {
		int32_t entry = (int32_t)value;

		if (rng_next(g) % 16) /* the others: whatever bits are there */
			rig_poke(r, s, va + 4 * i, &entry, 4);
	}
}

void rig_random_vec(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g)
{
	uint32_t op = rng_range(g, NPU_VOP_COPY, NPU_VOP_SOFTMAX);
	uint32_t rows = rng_range(g, 1, 20),
		 cols = rng_range(g, 1, rng_next(g) % 4 ? 60 : 500);
	uint32_t align = op == NPU_VOP_FILL ? 4 : 1;
	uint32_t pitch[3], va[3];

	memset(desc, 0, 64);
	NPU_SET(desc, OPCODE, NPU_OP_VEC);
	NPU_SET(desc, VOP, op);
	NPU_SET(desc, F_AU8, rng_next(g) % 2);
	NPU_SET(desc, F_BU8, rng_next(g) % 2);
	NPU_SET(desc, F_OU8, rng_next(g) % 2);
	if (op == NPU_VOP_MAXPOOL || op == NPU_VOP_AVGPOOL) {
		random_pool(r, s, desc, g);
		return;
	}
	cols = (cols + align - 1) / align * align;
	for (int i = 0; i < 3; i++) {
		pitch[i] = (cols + (rng_next(g) % 2 ? 0 : rng_range(g, 0, 100))) / align *
			   align;
		va[i] = rig_alloc(r, s, rows * pitch[i], align * (1 + rng_next(g) % 16));
		rig_random(r, s, va[i], rows * pitch[i], g);
	}
	NPU_SET(desc, DM, rows);
	NPU_SET(desc, VCOLS, cols);
	NPU_SET(desc, ADDR_D, va[2]);
	NPU_SET(desc, LDD, pitch[2]);
	if (op == NPU_VOP_FILL) {
		NPU_SET(desc, VPATTERN, rng_next(g));
		return;
	}
	NPU_SET(desc, ADDR_A, va[0]);
	NPU_SET(desc, LDA, rng_next(g) % 8 ? pitch[0] : 0); /* one row for all */
	if (op == NPU_VOP_COPY)
		return;
	if (op == NPU_VOP_LUT || op == NPU_VOP_SOFTMAX) {
		random_table(r, s, desc, op == NPU_VOP_SOFTMAX, g);
		return;
	}
	NPU_SET(desc, VMULT1, rng_next(g) >> 1);
	NPU_SET(desc, VZP1, rng_next(g));
	NPU_SET(desc, ZPO, rng_next(g));
	random_clamp(desc, g);
	if (op == NPU_VOP_RELU) {
		NPU_SET(desc, VSHIFT1, rng_range(g, 0, 6) - 3);
		return;
	}
	NPU_SET(desc, ADDR_B, va[1]);
	NPU_SET(desc, VLDB, rng_next(g) % 8 ? pitch[1] : 0);
	NPU_SET(desc, VMULTO, rng_next(g) >> 1);
	NPU_SET(desc, VZP2, rng_next(g));
	if (op == NPU_VOP_MUL) {
		NPU_SET(desc, VSHIFTO, 256 - rng_range(g, 0, 8));
		return;
	}
	NPU_SET(desc, VMULT2, rng_next(g) >> 1);
	NPU_SET(desc, VSHIFT1, 256 - rng_range(g, 0, 4));
	NPU_SET(desc, VSHIFT2, 256 - rng_range(g, 0, 4));
	NPU_SET(desc, VSHIFTO, 256 - rng_range(g, 15, 19));
	NPU_SET(desc, VLSHIFT, 20);
}

void rig_random_desc(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g)
{
	switch (rng_next(g) % 5) {
	case 0:
	case 1:
		rig_random_gemm(r, s, desc, g);
		break;
	case 2:
	case 3:
		rig_random_conv(r, s, desc, g);
		break;
	default:
		rig_random_vec(r, s, desc, g);
	}
}

/* ---- layer tables ------------------------------------------------------------------ */

static struct rig_conv layer_geometry(const struct layer *l)
{
	if (l->gemm)
		return rig_matrix(l->m, l->n, l->k);
	return (struct rig_conv){.h = l->h,
				 .w = l->w,
				 .cin = l->c,
				 .oh = l->oh,
				 .ow = l->ow,
				 .n = l->n,
				 .kh = l->kh,
				 .kw = l->kw,
				 .sy = l->stride,
				 .sx = l->stride,
				 .dy = 1,
				 .dx = 1};
}

void rig_layer_bytes(const struct layer *l, uint32_t *a, uint32_t *b, uint32_t *d)
{
	*a = l->gemm ? l->m * l->k : l->h * l->w * l->c;
	*b = l->k * ((l->n + 15) / 16 * 16);
	*d = l->m * l->n;
}

void rig_layer_desc(const struct layer *l, uint32_t a, uint32_t b, uint32_t d,
		    uint32_t desc[16])
{
	struct rig_conv c = layer_geometry(l);
	uint32_t row_bytes = c.w * c.cin;
	struct npu_windows in = {
		.h = c.h, .ow = c.ow, .sy = c.sy, .reach = (c.kh - 1) * c.dy + 1};
	struct npu_panel panel;
	uint64_t lda = row_bytes;

	npu_panel_skip(&in, &lda);
	c.h = in.h;
	c.sy = in.sy;
	panel = choose_panel(&c, l->gemm, row_bytes, (uint32_t)lda);
	memset(desc, 0, 64);
	NPU_SET(desc, OPCODE, l->gemm ? NPU_OP_GEMM : NPU_OP_CONV);
	NPU_SET(desc, F_NOPARAM, 1);
	NPU_SET(desc, F_BLOCK, 1);
	NPU_SET(desc, ADDR_A, a);
	NPU_SET(desc, ADDR_B, b);
	NPU_SET(desc, ADDR_D, d);
	NPU_SET(desc, DM, l->m);
	NPU_SET(desc, OW, c.ow);
	NPU_SET(desc, PANEL, panel.rows);
	NPU_SET(desc, DN, l->n);
	NPU_SET(desc, CIN, c.cin);
	NPU_SET(desc, LDA, lda);
	NPU_SET(desc, LDB, l->n);
	NPU_SET(desc, LDD, l->n);
	NPU_SET(desc, SPS, panel.sps);
	NPU_SET(desc, KCUT, panel.kcut);
	NPU_SET(desc, ZPA, 3);
	NPU_SET(desc, AMIN, 128);
	NPU_SET(desc, AMAX, 127);
	NPU_SET(desc, QMULT, 0x50000000);
	NPU_SET(desc, QSHIFT, 256 - 9);
	if (l->gemm)
		return;
	NPU_SET(desc, H, c.h);
	NPU_SET(desc, W, c.w);
	NPU_SET(desc, PIX, c.cin);
	NPU_SET(desc, KH, c.kh);
	NPU_SET(desc, KW, c.kw);
	NPU_SET(desc, SY, c.sy);
	NPU_SET(desc, SX, c.sx);
	NPU_SET(desc, DY, 1);
	NPU_SET(desc, DX, 1);
}
