/* SPDX-License-Identifier: Apache-2.0 */
/* dut_mem.cpp - dut.h's dut_mem over its Verilated models of 8 and of 6 channels. */
#include "dut.h"
#include "dut_context.h"

#include <cstring>

#include "Vdut_mem6.h"
#include "Vdut_mem8.h"
#include "svdpi.h"

struct dut_mem {
	virtual ~dut_mem() = default;
	virtual void reset(bool ideal, uint32_t timing) = 0;
	virtual uint32_t *requests() = 0;
	virtual uint32_t *data() = 0;
	virtual void mask(uint32_t slot, uint32_t channels) = 0;
	virtual void share(const struct dut_mem_share *s) = 0;
	virtual void bucket(uint32_t slot, uint32_t group,
			    const struct dut_mem_bucket *b) = 0;
	virtual uint32_t held(uint32_t slot) = 0;
	virtual uint32_t accepted() = 0;
	virtual bool busy() = 0;
	virtual void step() = 0;
	virtual const uint32_t *response(uint32_t slot) = 0;
	virtual uint32_t answered(uint32_t slot) = 0;
	virtual void snapshot() = 0;
	virtual uint32_t counter(uint8_t address) = 0;
};

namespace
{

/* Bits of mem_req_t, words of mem_rsp_t. */
constexpr uint32_t ReqBits = 83, RspWords = 17;

uint8_t memory[DUT_MEM_BYTES];

template <class Top, uint32_t Channels> struct mem final : dut_mem {
	DutContext context;
	Top top{&context, "mem"};

	mem()
	{
		top.clk_i = 1; /* the first step has both edges */
	}
	void step() override
	{
		/* once more only where accepted() has not been asked */
		if (top.clk_i)
			accepted();
		top.clk_i = 1;
		top.eval();
		top.snap_i = 0;
		top.turns_restart_i = 0;
		top.bucket_set_i = 0;
	}
	void reset(bool ideal, uint32_t timing) override
	{
		memset(top.req_i.data(), 0, sizeof(top.req_i));
		for (uint32_t s = 0; s < DUT_MEM_SLOTS; s++)
			mask(s, ~UINT32_C(0));
		for (int g = 0; g < 2; g++)
			top.arb_i[g] = 0;
		top.turns_i = 0;
		top.ch_group_i = 0;
		top.bucket_set_i = 0;
		top.ideal_i = ideal;
		top.timing_i = timing;
		top.rst_ni = 0;
		step();
		top.rst_ni = 1;
	}
	uint32_t *requests() override
	{
		return top.req_i.data();
	}
	uint32_t *data() override
	{
		return top.wdata_i.data();
	}
	void mask(uint32_t slot, uint32_t channels) override
	{
		top.ch_mask_i[slot] = channels & ((1u << Channels) - 1);
	}
	void share(const struct dut_mem_share *s) override
	{
		/* arb_cfg_t: mode, pass, prio; turns_cfg_t: cycles, last, order. */
		for (int g = 0; g < 2; g++)
			top.arb_i[g] = static_cast<uint64_t>(s->mode[g]) << 36 |
				       static_cast<uint64_t>(s->pass[g]) << 32 | s->prio;
		top.turns_i = static_cast<uint64_t>(s->cycles) << 35 |
			      static_cast<uint64_t>(s->last) << 32 | s->order;
		top.turns_restart_i = 1;
		top.ch_group_i = static_cast<uint8_t>(s->groups);
	}
	void bucket(uint32_t slot, uint32_t group,
		    const struct dut_mem_bucket *b) override
	{
		/* bucket_set_t: group, window, budget, burst. */
		const uint64_t low = b->burst | static_cast<uint64_t>(b->budget) << 28;

		top.bucket_i[0] = static_cast<uint32_t>(low);
		top.bucket_i[1] = static_cast<uint32_t>(low >> 32) | b->window << 24;
		top.bucket_i[2] = b->window >> 8 | group << 16;
		top.bucket_set_i = static_cast<uint8_t>(1u << slot);
	}
	uint32_t held(uint32_t slot) override
	{
		return top.held_o[slot];
	}
	uint32_t accepted() override
	{
		top.clk_i = 0;
		top.eval();
		return top.acc_o;
	}
	bool busy() override
	{
		return top.busy_o;
	}
	const uint32_t *response(uint32_t slot) override
	{
		return top.rsp_o[slot].data();
	}
	uint32_t answered(uint32_t slot) override
	{
		return top.ack_o[slot];
	}
	void snapshot() override
	{
		top.snap_i = 1;
		step();
	}
	uint32_t counter(uint8_t address) override
	{
		top.cnt_addr_i = address;
		top.eval();
		return top.cnt_rdata_o;
	}
};

} // namespace

struct dut_mem *dut_mem_create(uint32_t channels)
{
	if (channels == 6)
		return new mem<Vdut_mem6, 6>;
	return new mem<Vdut_mem8, 8>;
}

void dut_mem_destroy(struct dut_mem *d)
{
	delete d;
}

void dut_mem_reset(struct dut_mem *d, bool ideal, uint32_t timing)
{
	d->reset(ideal, timing);
}

void dut_mem_share(struct dut_mem *d, const struct dut_mem_share *share)
{
	d->share(share);
}

void dut_mem_bucket(struct dut_mem *d, uint32_t slot, uint32_t group,
		    const struct dut_mem_bucket *bucket)
{
	d->bucket(slot, group, bucket);
}

uint32_t dut_mem_held(struct dut_mem *d, uint32_t slot)
{
	return d->held(slot);
}

uint8_t *dut_mem_bytes(void)
{
	return memory;
}

void dut_mem_request(struct dut_mem *d, uint32_t slot, enum dut_mem_way way,
		     const struct dut_mem_req *r)
{
	/* mem_req_t, its last field first; of ways_req_t, the load's is the lower */
	const struct {
		uint32_t bits, value;
	} fields[] = {{1, r->walk},  {32, r->pa},    {9, r->tag}, {7, r->len},
		      {3, r->beats}, {26, r->lline}, {4, r->ch},  {1, r->v}};
	uint32_t at = (slot * DUT_MEM_WAYS + way) * ReqBits;

	for (const auto &f : fields) {
		const uint64_t mask = ((UINT64_C(1) << f.bits) - 1) << at % 32;
		const uint64_t value = static_cast<uint64_t>(f.value) << at % 32 & mask;
		uint32_t *words = d->requests() + at / 32;

		words[0] = (words[0] & ~static_cast<uint32_t>(mask)) |
			   static_cast<uint32_t>(value);
		if (mask >> 32)
			words[1] = (words[1] & ~static_cast<uint32_t>(mask >> 32)) |
				   static_cast<uint32_t>(value >> 32);
		at += f.bits;
	}
	if (way == DUT_MEM_STORE)
		memcpy(d->data() + slot * DUT_MEM_PIECE / 4, r->data, DUT_MEM_PIECE);
}

void dut_mem_mask(struct dut_mem *d, uint32_t slot, uint32_t channels)
{
	d->mask(slot, channels);
}

uint32_t dut_mem_accepted(struct dut_mem *d)
{
	return d->accepted();
}

bool dut_mem_busy(struct dut_mem *d)
{
	return d->busy();
}

void dut_mem_step(struct dut_mem *d)
{
	d->step();
}

void dut_mem_response(struct dut_mem *d, uint32_t slot, struct dut_mem_rsp *rsp)
{
	/* mem_rsp_t: v, denied, tag, at, data, first bit highest. */
	const uint32_t *words = d->response(slot);
	const uint32_t high = words[RspWords - 1];

	memcpy(rsp->data, words, 64);
	rsp->at = high & 63;
	rsp->tag = high >> 6 & 511;
	rsp->denied = high >> 15 & 1;
	rsp->v = high >> 16 & 1;
}

void dut_mem_answered(struct dut_mem *d, uint32_t slot, struct dut_mem_ack *ack)
{
	/* mem_ack_t: denied, n[1], n[0]. */
	const uint32_t bits = d->answered(slot);

	ack->n[0] = bits & 63;
	ack->n[1] = bits >> 6 & 63;
	ack->denied = bits >> 12 & 1;
}

void dut_mem_snapshot(struct dut_mem *d)
{
	d->snapshot();
}

uint32_t dut_mem_counter(struct dut_mem *d, uint32_t ch, uint32_t word)
{
	return d->counter(static_cast<uint8_t>(ch << 4 | word));
}

/* ---- called from the RTL ----------------------------------------------------------- */

extern "C" void npu_dpi_read(unsigned int pa, svBitVecVal *d)
{
	memcpy(d, memory + pa % DUT_MEM_BYTES / 64 * 64, 64);
}

extern "C" void npu_dpi_write(unsigned int pa, unsigned int len, const svBitVecVal *d)
{
	memcpy(memory + pa % DUT_MEM_BYTES, d, len);
}
