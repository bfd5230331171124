/* SPDX-License-Identifier: Apache-2.0 */
/* dut_gather.cpp - dut.h's gather over its Verilated model. */
#include "dut.h"
#include "dut_context.h"

#include "Vdut_gather.h"

struct dut_gather {
	DutContext context;
	Vdut_gather top{&context, "gather"};
};

namespace
{

/* Element i of a row of 9-bit numbers. */
template <class Wide> int32_t element(const Wide &w, uint32_t i)
{
	const uint32_t at = 9 * i, word = at / 32, bit = at % 32;
	uint64_t both = w[word];

	if (bit > 23)
		both |= static_cast<uint64_t>(w[word + 1]) << 32;
	const uint32_t bits = static_cast<uint32_t>(both >> bit) & 511;
	return static_cast<int32_t>(bits) - (bits & 256 ? 512 : 0);
}

} // namespace

struct dut_gather *dut_gather_create(void)
{
	return new dut_gather;
}

void dut_gather_destroy(struct dut_gather *d)
{
	delete d;
}

void dut_gather_step(struct dut_gather *d)
{
	d->top.clk_i = 0;
	d->top.eval();
	d->top.clk_i = 1;
	d->top.eval();
	d->top.we_i = 0;
}

void dut_gather_reset(struct dut_gather *d)
{
	d->top.row_i = 0;
	d->top.load_i = 0;
	d->top.kill_i = 0;
	d->top.rst_ni = 0;
	dut_gather_step(d);
	d->top.rst_ni = 1;
}

void dut_gather_write(struct dut_gather *d, uint32_t line, const uint8_t data[64])
{
	d->top.we_i = 1;
	d->top.line_i = static_cast<uint16_t>(line);
	for (int i = 0; i < 16; i++)
		d->top.data_i[i] = data[4 * i] | data[4 * i + 1] << 8 |
				   data[4 * i + 2] << 16 |
				   static_cast<uint32_t>(data[4 * i + 3]) << 24;
}

uint32_t dut_gather_bank(struct dut_gather *d, uint32_t word)
{
	d->top.word_i = word & 0xfff;
	d->top.eval();
	return d->top.bank_o;
}

void dut_gather_set(struct dut_gather *d, const struct dut_gather_op *op,
		    const struct dut_gather_lane lane[DUT_LANES],
		    const struct dut_gather_cols *cols)
{
	auto &t = d->top;

	t.group_i = op->group;
	t.u8_i = op->u8;
	t.zp_i = static_cast<uint8_t>(op->zp);
	t.rows_i = op->rows;
	t.cols_i = static_cast<uint16_t>(op->cols);
	t.kcin_i = static_cast<uint16_t>(op->kcin);
	t.sx_i = static_cast<uint8_t>(op->sx);
	t.dx_i = static_cast<uint8_t>(op->dx);
	t.lane_v_i = 0;
	t.lane_start_i = 0;
	t.lane_again_i = 0;
	for (int i = 0; i < DUT_LANES; i++) {
		t.lane_v_i |= static_cast<uint16_t>(lane[i].v << i);
		t.lane_start_i |= static_cast<uint16_t>(lane[i].start << i);
		t.lane_again_i |= static_cast<uint16_t>(lane[i].again << i);
		t.lane_off_i[i] = lane[i].off;
		t.lane_dx_i[i] = static_cast<uint16_t>(lane[i].dx);
		t.lane_dy_i[i] = static_cast<uint16_t>(lane[i].dy);
		t.lane_more_i[i] = static_cast<uint8_t>(lane[i].more);
		t.win_i[i] = cols->win[i];
		t.win_more_i[i] = static_cast<uint8_t>(cols->more[i]);
		t.col_win_i[i] = static_cast<uint8_t>(cols->of[i]);
		t.col_at_i[i] = static_cast<uint8_t>(cols->at[i]);
	}
	t.wins_i = static_cast<uint8_t>(cols->wins);
}

bool dut_gather_offer(struct dut_gather *d, const struct dut_gather_row *row, bool *ready)
{
	auto &t = d->top;

	t.row_i = row->v;
	t.fresh_i = row->fresh;
	t.iy_i = static_cast<uint32_t>(row->iy) & 0x1fffff;
	t.ix_i = static_cast<uint32_t>(row->ix) & 0x3ffff;
	t.ad_i = row->ad;
	t.tag_i = static_cast<uint16_t>(row->tag);
	t.clk_i = 0;
	t.eval();
	*ready = t.ready_o;
	return t.take_o;
}

void dut_gather_load(struct dut_gather *d, bool v, uint32_t at,
		     const int32_t w[DUT_LANES])
{
	auto &t = d->top;

	t.load_i = v;
	t.at_i = static_cast<uint8_t>(at);
	for (int i = 0; i < 5; i++)
		t.w_i[i] = 0;
	for (int j = 0; v && j < DUT_LANES; j++)
		for (int b = 0; b < 9; b++)
			t.w_i[(9 * j + b) / 32] |= (static_cast<uint32_t>(w[j]) >> b & 1)
						   << (9 * j + b) % 32;
}

void dut_gather_out(struct dut_gather *d, struct dut_gather_out *out)
{
	auto &t = d->top;

	t.clk_i = 0;
	t.eval();
	out->row = t.row_o;
	out->load = t.load_o;
	out->tag = t.tag_o;
	out->at = t.at_o;
	for (uint32_t i = 0; i < DUT_LANES; i++) {
		out->a[i] = element(t.a_o, i);
		out->w[i] = element(t.w_o, i);
		for (uint32_t j = 0; j < DUT_LANES; j++)
			out->g[i][j] = element(t.g_o[i], j);
	}
}
