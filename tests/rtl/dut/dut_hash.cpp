/* SPDX-License-Identifier: Apache-2.0 */
/* dut_hash.cpp - dut.h's npu_hash_pkg over its Verilated model. */
#include "dut.h"
#include "dut_context.h"

#include "Vdut_hash.h"

struct dut_hash {
	DutContext context;
	Vdut_hash top{&context, "hash"};
};

struct dut_hash *dut_hash_create(void)
{
	return new dut_hash;
}

void dut_hash_destroy(struct dut_hash *d)
{
	delete d;
}

void dut_hash_config(struct dut_hash *d, const struct dut_hash_cfg *cfg)
{
	d->top.k_i = static_cast<uint8_t>(cfg->k);
	d->top.q_i = static_cast<uint8_t>(cfg->q);
	d->top.gran_i = static_cast<uint8_t>(cfg->gran);
	/* Four masks of 24 bits, packed. */
	d->top.xmask_i[0] = cfg->xmask[0] | cfg->xmask[1] << 24;
	d->top.xmask_i[1] = cfg->xmask[1] >> 8 | cfg->xmask[2] << 16;
	d->top.xmask_i[2] = cfg->xmask[2] >> 16 | cfg->xmask[3] << 8;
}

void dut_hash_granule(struct dut_hash *d, uint32_t granule, uint32_t *ch, uint32_t *local)
{
	d->top.granule_i = granule;
	d->top.eval();
	*ch = d->top.ch_o;
	*local = d->top.lgran_o;
}

void dut_hash_line(struct dut_hash *d, uint32_t pa, uint32_t *ch, uint32_t *local)
{
	d->top.pa_i = pa;
	d->top.eval();
	*ch = d->top.line_ch_o;
	*local = d->top.lline_o;
}
