/* SPDX-License-Identifier: Apache-2.0 */
/* dut_map.cpp - dut.h's npu_map over its Verilated model. */
#include "dut.h"
#include "dut_context.h"

#include "Vdut_map.h"

struct dut_map {
	DutContext context;
	Vdut_map top{&context, "map"};
};

static void step(struct dut_map *d)
{
	d->top.clk_i = 0;
	d->top.eval();
	d->top.clk_i = 1;
	d->top.eval();
	d->top.stage_we_i = 0;
	d->top.commit_i = 0;
}

struct dut_map *dut_map_create(void)
{
	auto *d = new dut_map;

	d->top.rst_ni = 0;
	step(d);
	d->top.rst_ni = 1;
	return d;
}

void dut_map_destroy(struct dut_map *d)
{
	delete d;
}

void dut_map_stage(struct dut_map *d, uint32_t slot, const struct dut_map_rect *r)
{
	d->top.stage_we_i = 1;
	d->top.stage_idx_i = static_cast<uint8_t>(slot);
	d->top.stage_wdata_i = r->row | r->col << 8 | r->rows << 16 | r->cols << 24;
	step(d);
}

uint32_t dut_map_staged(struct dut_map *d, uint32_t slot)
{
	d->top.stage_idx_i = static_cast<uint8_t>(slot);
	d->top.eval();
	return d->top.stage_rdata_o;
}

void dut_map_commit(struct dut_map *d, uint32_t quiet, uint32_t *result, uint32_t *slot)
{
	d->top.quiet_i = static_cast<uint8_t>(quiet);
	d->top.commit_i = 1;
	step(d);
	*result = d->top.result_o;
	*slot = d->top.slot_o;
}

void dut_map_get(struct dut_map *d, uint32_t slot, struct dut_map_rect *r)
{
	r->row = d->top.r0_o[slot];
	r->col = d->top.c0_o[slot];
	r->rows = d->top.h_o[slot];
	r->cols = d->top.w_o[slot];
}
