/* SPDX-License-Identifier: Apache-2.0 */
/* dut_axi.cpp - dut.h's npu_axi over its Verilated model. */
#include "dut.h"
#include "dut_context.h"

#include <cstring>

#include "Vdut_axi.h"

struct dut_axi {
	DutContext context;
	Vdut_axi top{&context, "axi"};
};

struct dut_axi *dut_axi_create(void)
{
	return new dut_axi;
}

void dut_axi_destroy(struct dut_axi *d)
{
	delete d;
}

void dut_axi_reset(struct dut_axi *d, bool reset)
{
	d->top.rst_ni = !reset;
}

void dut_axi_show(struct dut_axi *d, const struct dut_axi_in *in, struct dut_axi_out *out)
{
	Vdut_axi &t = d->top;

	t.clk_i = 0;
	t.v_i = in->v;
	t.we_i = in->we;
	t.slot_i = static_cast<uint8_t>(in->slot);
	t.lline_i = in->lline;
	t.beats_i = static_cast<uint8_t>(in->beats);
	t.len_i = static_cast<uint8_t>(in->len);
	t.at_i = static_cast<uint8_t>(in->at);
	memcpy(t.line_i.data(), in->line, 64);
	t.awready_i = in->awready;
	t.wready_i = in->wready;
	t.arready_i = in->arready;
	t.bvalid_i = in->bvalid;
	t.bid_i = static_cast<uint8_t>(in->bid);
	t.bresp_i = static_cast<uint8_t>(in->bresp);
	t.rvalid_i = in->rvalid;
	t.rid_i = static_cast<uint8_t>(in->rid);
	t.rresp_i = static_cast<uint8_t>(in->rresp);
	t.rlast_i = in->rlast;
	memcpy(t.rdata_i.data(), in->rdata, 16);
	t.eval();
	out->ready = t.ready_o;
	out->rsp_v = t.rsp_v_o;
	out->rsp_we = t.rsp_we_o;
	out->rsp_slot = t.rsp_slot_o;
	memcpy(out->line, t.line_o.data(), 64);
	out->err = t.err_o;
	out->aw = {t.awvalid_o, t.awid_o, t.awaddr_o, t.awlen_o, t.awsize_o, t.awburst_o};
	out->ar = {t.arvalid_o, t.arid_o, t.araddr_o, t.arlen_o, t.arsize_o, t.arburst_o};
	out->w.v = t.wvalid_o;
	out->w.last = t.wlast_o;
	out->w.strb = t.wstrb_o;
	memcpy(out->w.data, t.wdata_o.data(), 16);
	out->bready = t.bready_o;
	out->rready = t.rready_o;
}

void dut_axi_step(struct dut_axi *d)
{
	d->top.clk_i = 1;
	d->top.eval();
}
