/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_model.cpp - npu_model.h over one Verilated npu_top: one shape, one shared object.
 *
 * NPU_ROWS, NPU_COLS, NPU_SLOTS, NPU_CHANNELS and NPU_TOP (the Verilated class) come from
 * the build.  Timing is the RTL's; the bytes of the memory are the caller's, and the RTL
 * reads and writes them through the DPI functions below.
 */
#include "npu_model.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "svdpi.h"
#include "verilated.h"

#define NPU_STR2(x)    #x
#define NPU_STR(x)     NPU_STR2(x)
#define NPU_CAT2(a, b) a##b
#define NPU_CAT(a, b)  NPU_CAT2(a, b)
#include NPU_STR(NPU_TOP.h)

/*
 * What no reset has reached is undefined in a chip.  A model built for it (--x-initial
 * unique) begins with every register at random, after the seed in NPU_MODEL_SEED; the
 * others begin with zeros.
 */
static VerilatedContext *prepare(VerilatedContext *context)
{
	const char *seed = getenv("NPU_MODEL_SEED");

	Verilated::threadContextp(context);
	context->threads(1); /* else a pool, of as many as there are processors */
	context->randReset(2);
	context->randSeed(seed ? atoi(seed) : 1);
	return context;
}

struct npu_model {
	VerilatedContext context;
	NPU_TOP top;
	uint8_t *memory;
	uint64_t bytes;
	uint64_t cycle = 0; /* equal to the RTL's TIME */
	npu_fold_fn fold = nullptr;
	void *fold_user = nullptr;
	npu_desc_fn desc = nullptr;
	void *desc_user = nullptr;

	npu_model(uint8_t *mem, uint64_t size)
	    : top(prepare(&context), "npu"), memory(mem), bytes(size)
	{
	}
	~npu_model()
	{
		Verilated::threadContextp(&context); /* scopes leave this thread's */
		top.final();
	}
	npu_model(const npu_model &) = delete;
	npu_model &operator=(const npu_model &) = delete;
};

namespace
{

/* Whose memory the DPI functions mean: set by every call that lets time pass. */
thread_local npu_model *current;

void clock(npu_model *m)
{
	m->top.clk_i = 0;
	m->top.eval();
	m->top.clk_i = 1;
	m->top.eval();
}

void access(npu_model *m, uint32_t address, bool write, uint32_t value)
{
	current = m;
	m->top.reg_we_i = write;
	m->top.reg_re_i = !write;
	m->top.reg_addr_i = static_cast<uint16_t>(address);
	m->top.reg_wdata_i = value;
	clock(m);
	m->top.reg_we_i = 0;
	m->top.reg_re_i = 0;
	clock(m);
	m->cycle += NPU_MODEL_REG_CYCLES;
}

npu_model *create(const npu_model_shape *, uint8_t *memory, uint64_t bytes)
{
	npu_model *m;

	try {
		m = new npu_model(memory, bytes);
	} catch (const std::bad_alloc &) {
		return nullptr;
	}
	current = m;
	m->top.reg_we_i = 0;
	m->top.reg_re_i = 0;
	m->top.reg_addr_i = 0;
	m->top.reg_wdata_i = 0;
	m->top.refresh_i = 0;
	m->top.refreshing_i = 0;
	m->top.cache_sets_i = 0;
	m->top.cache_ways_i = 0;
	m->top.cache_seed_i = 0;
	m->top.rst_ni = 0;
	m->context.assertOn(false); /* nothing holds before the reset */
	for (int i = 0; i < 4; i++)
		clock(m);
	m->top.rst_ni = 1;
	clock(m); /* the reset input is registered: time starts after this edge */
	m->context.assertOn(true);
	return m;
}

void destroy(npu_model *m)
{
	if (current == m)
		current = nullptr;
	delete m;
	Verilated::threadContextp(Verilated::defaultContextp());
}

uint32_t reg_read(npu_model *m, uint32_t address)
{
	access(m, address, false, 0);
	return m->top.reg_rdata_o;
}

void reg_write(npu_model *m, uint32_t address, uint32_t value)
{
	access(m, address, true, value);
}

uint64_t run(npu_model *m, uint64_t max_cycles)
{
	uint64_t n = 0;

	current = m;
	while (n < max_cycles && !m->top.irq_o) {
		clock(m);
		m->cycle++; /* before the next edge: fold callbacks may ask */
		n++;
	}
	return n;
}

int irq(const npu_model *m)
{
	return m->top.irq_o;
}

uint64_t cycle(const npu_model *m)
{
	return m->cycle;
}

int idle(const npu_model *m)
{
	return m->top.idle_o;
}

void on_fold(npu_model *m, npu_fold_fn fn, void *user)
{
	m->fold = fn;
	m->fold_user = user;
}

void on_desc(npu_model *m, npu_desc_fn fn, void *user)
{
	m->desc = fn;
	m->desc_user = user;
}

void memory(npu_model *m, const npu_model_memory *how)
{
	m->top.refresh_i = static_cast<uint16_t>(how->refresh);
	m->top.refreshing_i = static_cast<uint16_t>(how->refreshing);
	m->top.cache_sets_i = 0;
	while (1u << m->top.cache_sets_i < how->cache_sets)
		m->top.cache_sets_i++;
	m->top.cache_ways_i = static_cast<uint8_t>(how->cache_sets ? how->cache_ways : 0);
	m->top.cache_seed_i = static_cast<uint16_t>(how->cache_seed);
}

const npu_model_api api = {
	sizeof(npu_model_api),
	NPU_MODEL_ABI,
	"rtl",
	NPU_ROWS,
	NPU_COLS,
	NPU_SLOTS,
	NPU_CHANNELS,
	0,
	create,
	destroy,
	reg_read,
	reg_write,
	run,
	irq,
	cycle,
	idle,
	on_fold,
	on_desc,
	nullptr,
	memory,
};

} // namespace

/* ---- called from the RTL ----------------------------------------------------------- */

/* The 64-byte line that contains pa; what lies beyond the memory reads as 0. */
extern "C" void npu_dpi_read(unsigned int pa, svBitVecVal *d)
{
	const uint64_t line = pa & ~UINT32_C(63);
	const npu_model *m = current;

	if (line + 64 <= m->bytes) {
		memcpy(d, m->memory + line, 64);
		return;
	}
	memset(d, 0, 64);
	if (line < m->bytes)
		memcpy(d, m->memory + line, m->bytes - line);
}

/* len bytes, 1..64, inside one line; what lies beyond the memory is dropped. */
extern "C" void npu_dpi_write(unsigned int pa, unsigned int len, const svBitVecVal *d)
{
	npu_model *m = current;

	if (pa >= m->bytes)
		return;
	memcpy(m->memory + pa, d, len <= m->bytes - pa ? len : m->bytes - pa);
}

extern "C" void npu_dpi_fold(int slot, int rows, int cols, int t, long long start,
			     long long end)
{
	npu_model *m = current;

	if (!m->fold)
		return;
	const npu_fold f = {static_cast<uint32_t>(slot),  static_cast<uint32_t>(rows),
			    static_cast<uint32_t>(cols),  static_cast<uint32_t>(t),
			    static_cast<uint64_t>(start), static_cast<uint64_t>(end)};
	m->fold(m->fold_user, &f);
}

extern "C" void npu_dpi_desc(int slot, int head)
{
	npu_model *m = current;

	if (m->desc)
		m->desc(m->desc_user, static_cast<uint32_t>(slot),
			static_cast<uint32_t>(head));
}

extern "C" __attribute__((visibility("default"))) const struct npu_model_api *
npu_model_entry(void)
{
	return &api;
}
