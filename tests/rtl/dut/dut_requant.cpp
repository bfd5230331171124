/* SPDX-License-Identifier: Apache-2.0 */
/* dut_requant.cpp - dut.h's npu_requant over its Verilated model. */
#include "dut.h"
#include "dut_context.h"

#include "Vdut_requant.h"

struct dut_requant {
	DutContext context;
	Vdut_requant top{&context, "requant"};
};

static void step(struct dut_requant *d)
{
	d->top.clk_i = 0;
	d->top.eval();
	d->top.clk_i = 1;
	d->top.eval();
}

struct dut_requant *dut_requant_create(void)
{
	struct dut_requant *d = new dut_requant;

	d->top.rst_ni = 0;
	step(d);
	d->top.rst_ni = 1;
	return d;
}

void dut_requant_destroy(struct dut_requant *d)
{
	delete d;
}

void dut_requant_mode(struct dut_requant *d, const struct dut_requant_mode *m)
{
	d->top.float_i = m->is_float;
	d->top.once_i = m->is_once;
	d->top.unsigned_i = m->is_unsigned;
	d->top.zp_i = m->zp;
	d->top.lo_i = m->lo;
	d->top.hi_i = m->hi;
}

void dut_requant_step(struct dut_requant *d, const struct dut_requant_in *in,
		      struct dut_requant_out *out)
{
	d->top.clear_i = in->clear;
	d->top.v_i = in->v;
	d->top.x_i = static_cast<uint32_t>(in->x);
	d->top.mult_i = in->mult;
	d->top.shift_i = static_cast<uint8_t>(in->shift & 127);
	step(d);
	out->v = d->top.v_o;
	out->rescaled = static_cast<int32_t>(d->top.rescaled_o);
	out->y = d->top.y_o;
}
