/* SPDX-License-Identifier: Apache-2.0 */
/* dut_mem.cpp - dut.h's npu_mem over its Verilated models of 8 and of 6 channels. */
#include "dut.h"

#include "Vdut_mem6.h"
#include "Vdut_mem8.h"

struct dut_mem {
	virtual ~dut_mem() = default;
	virtual void reset(bool ideal, uint32_t timing) = 0;
	virtual void request(uint32_t slot, const uint32_t *words) = 0;
	virtual uint32_t accepted() = 0;
	virtual bool busy() = 0;
	virtual void step() = 0;
	virtual uint64_t response(uint32_t ch) = 0;
	virtual uint64_t ideal_response(uint32_t slot) = 0;
	virtual void snapshot() = 0;
	virtual uint32_t counter(uint8_t address) = 0;
};

namespace
{

template <class Top> struct mem final : dut_mem {
	VerilatedContext context;
	Top top{&context, "mem"};

	void step() override
	{
		top.clk_i = 0;
		top.eval();
		top.clk_i = 1;
		top.eval();
		top.snap_i = 0;
	}
	void reset(bool ideal, uint32_t timing) override
	{
		for (uint32_t s = 0; s < DUT_MEM_SLOTS; s++)
			for (int i = 0; i < 3; i++)
				top.req_i[s][i] = 0;
		top.ideal_i = ideal;
		top.timing_i = timing;
		top.rst_ni = 0;
		step();
		top.rst_ni = 1;
	}
	void request(uint32_t slot, const uint32_t *words) override
	{
		for (int i = 0; i < 3; i++)
			top.req_i[slot][i] = words[i];
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
	uint64_t response(uint32_t ch) override
	{
		return top.ch_rsp_o[ch];
	}
	uint64_t ideal_response(uint32_t slot) override
	{
		return top.id_rsp_o[slot];
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

/* mem_rsp_t: v, slot, we, tag, pa, first bit highest. */
void unpack(uint64_t word, struct dut_mem_rsp *rsp)
{
	rsp->pa = static_cast<uint32_t>(word);
	rsp->tag = word >> 32 & 0x1ff;
	rsp->we = word >> 41 & 1;
	rsp->slot = word >> 42 & 7;
	rsp->v = word >> 45 & 1;
}

} // namespace

struct dut_mem *dut_mem_create(uint32_t channels)
{
	if (channels == 6)
		return new mem<Vdut_mem6>;
	return new mem<Vdut_mem8>;
}

void dut_mem_destroy(struct dut_mem *d)
{
	delete d;
}

void dut_mem_reset(struct dut_mem *d, bool ideal, uint32_t timing)
{
	d->reset(ideal, timing);
}

void dut_mem_request(struct dut_mem *d, uint32_t slot, const struct dut_mem_req *r)
{
	/* mem_req_t: v, we, ch, lline, beats, tag, pa, first bit highest. */
	const uint64_t low = r->pa | static_cast<uint64_t>(r->tag) << 32 |
			     static_cast<uint64_t>(r->beats) << 41 |
			     static_cast<uint64_t>(r->lline) << 44;
	const uint32_t words[3] = {
		static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
		r->lline >> 20 | r->ch << 6 | static_cast<uint32_t>(r->we) << 10 |
			static_cast<uint32_t>(r->v) << 11};

	d->request(slot, words);
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

void dut_mem_response(struct dut_mem *d, uint32_t ch, struct dut_mem_rsp *rsp)
{
	unpack(d->response(ch), rsp);
}

void dut_mem_ideal_response(struct dut_mem *d, uint32_t slot, struct dut_mem_rsp *rsp)
{
	unpack(d->ideal_response(slot), rsp);
}

void dut_mem_snapshot(struct dut_mem *d)
{
	d->snapshot();
}

uint32_t dut_mem_counter(struct dut_mem *d, uint32_t ch, uint32_t word)
{
	return d->counter(static_cast<uint8_t>(ch << 4 | word));
}
