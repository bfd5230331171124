/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: the multiprocessors are split once, into as many equal groups as the
 * driver can make, and these are the units.  A context is made of the groups of a
 * partition, all of that one split, as the driver demands; it is kept for the next
 * partition that lies there, as making one costs, and goes with the device.
 *
 * What the driver says is not believed: at open a kernel runs in each unit and writes
 * down on which multiprocessors it was.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_MOST 256u
#define IDS_MOST    1024u
#define BLOCKS_A_SM 4u    /* so that each has one, although the first ones have ended */
#define BLOCK       1024u /* so that few fit on one */

struct cu_green_context {
	struct cu_green_context *next;
	uint32_t first, count;
	void *handle;
};

struct cu_green {
	struct cu_resource *groups;
	uint32_t units, per; /* groups, multiprocessors of each */
	struct cu_green_context *pool;
};

/* hal_sm(out): each block writes the number of its multiprocessor, and 1, and stays. */
static const char probe[] = ".version 7.0\n"
			    ".target sm_75\n"
			    ".address_size 64\n"
			    ".visible .entry hal_sm(.param .u64 out)\n"
			    "{\n"
			    "\t.reg .pred %p;\n"
			    "\t.reg .b32 %r<4>;\n"
			    "\t.reg .b64 %d<3>;\n"
			    "\tld.param.u64 %d0, [out];\n"
			    "\tmov.u32 %r0, %smid;\n"
			    "\tadd.u32 %r0, %r0, 1;\n"
			    "\tmov.u32 %r1, %ctaid.x;\n"
			    "\tmul.wide.u32 %d1, %r1, 4;\n"
			    "\tadd.s64 %d2, %d0, %d1;\n"
			    "\tst.global.u32 [%d2], %r0;\n"
			    "\tmov.u32 %r1, %clock;\n"
			    "stay:\n"
			    "\tmov.u32 %r2, %clock;\n"
			    "\tsub.u32 %r2, %r2, %r1;\n"
			    "\tsetp.lt.u32 %p, %r2, 100000;\n"
			    "\t@%p bra stay;\n"
			    "\tret;\n"
			    "}\n";

/* ---- the split --------------------------------------------------------------------------- */

static int split(int device, struct cu_resource **groups, uint32_t *count, uint32_t *per)
{
	struct cu_resource whole, *parts;
	uint32_t n = 0, i;
	int err;

	if (!cu.cuDeviceGetDevResource || !cu.cuDevSmResourceSplitByCount ||
	    !cu.cuDevResourceGenerateDesc || !cu.cuGreenCtxCreate ||
	    !cu.cuGreenCtxDestroy || !cu.cuGreenCtxStreamCreate)
		return cu_host->fail(ENOTSUP,
				     "cuda: partitions=green: the driver has no green "
				     "contexts, or no streams in them (CUDA 12.5)");
	memset(&whole, 0, sizeof(whole));
	err = CU(NULL, cuDeviceGetDevResource, device, &whole, CU_RESOURCE_SM);
	if (!err)
		err = CU(NULL, cuDevSmResourceSplitByCount, NULL, &n, &whole, NULL, 0,
			 whole.least);
	if (err)
		return err;
	if (!n || n > GROUPS_MOST)
		return cu_host->fail(ENOTSUP,
				     "cuda: partitions=green: %u groups of %u "
				     "multiprocessors",
				     n, whole.least);
	parts = calloc(n, sizeof(*parts));
	if (!parts)
		return cu_host->fail(ENOMEM, "cuda: no memory for %u groups", n);
	err = CU(NULL, cuDevSmResourceSplitByCount, parts, &n, &whole, NULL, 0,
		 whole.least);
	for (i = 1; !err && i < n; i++)
		if (parts[i].count != parts[0].count)
			err = cu_host->fail(ENOTSUP,
					    "cuda: partitions=green: groups of %u and of "
					    "%u multiprocessors",
					    parts[0].count, parts[i].count);
	if (err) {
		free(parts);
		return err;
	}
	*groups = parts;
	*count = n;
	*per = parts[0].count;
	return 0;
}

int cu_green_count(int device, uint32_t *units)
{
	struct cu_resource *groups;
	uint32_t per;
	int err = split(device, &groups, units, &per);

	if (!err)
		free(groups);
	return err;
}

uint32_t cu_green_units(const struct cu_device *dev)
{
	return dev->green ? dev->green->units : 1;
}

/* ---- contexts ---------------------------------------------------------------------------- */

int cu_green_take(struct cu_device *dev, uint32_t first, uint32_t count, void **green)
{
	struct cu_green *g = dev->green;
	struct cu_green_context *c;
	void *desc = NULL;
	int err;

	for (c = g->pool; c; c = c->next)
		if (c->first == first && c->count == count) {
			*green = c->handle;
			return 0;
		}
	c = calloc(1, sizeof(*c));
	if (!c)
		return cu_host->fail(ENOMEM, "cuda: no memory for a green context");
	err = CU(dev, cuDevResourceGenerateDesc, &desc, &g->groups[first], count);
	if (!err)
		err = CU(dev, cuGreenCtxCreate, &c->handle, desc, dev->shape.device,
			 CU_GREEN_DEFAULT_STREAM);
	if (err) {
		free(c);
		return err;
	}
	c->first = first;
	c->count = count;
	c->next = g->pool;
	g->pool = c;
	*green = c->handle;
	return 0;
}

/* After a loss they are the process's end's. */
void cu_green_close(struct cu_device *dev)
{
	struct cu_green *g = dev->green;
	struct cu_green_context *c;

	if (!g)
		return;
	while ((c = g->pool)) {
		g->pool = c->next;
		if (!atomic_load(&dev->lost) && cu.cuGreenCtxDestroy(c->handle))
			(void)cu.cuGreenCtxDestroy(c->handle);
		free(c);
	}
	free(g->groups);
	free(g);
	dev->green = NULL;
}

/* ---- where kernels really run ------------------------------------------------------------ */

struct trial {
	struct cu_device *dev;
	void *module, *function, *stream;
	uint32_t *ids; /* pinned */
	uint64_t address;
	uint32_t blocks;
	uint8_t owner[IDS_MOST]; /* unit + 1 of each multiprocessor; 0: nobody's yet */
};

static int run_in(struct trial *t, void *green)
{
	struct cu_device *dev = t->dev;
	void *params[1] = {&t->address};
	int err, again = 0;

	memset(t->ids, 0, t->blocks * sizeof(*t->ids));
	err = CU(dev, cuGreenCtxStreamCreate, &t->stream, green, CU_STREAM_NON_BLOCKING,
		 dev->greatest_priority);
	if (err)
		return err;
	err = CU(dev, cuLaunchKernel, t->function, t->blocks, 1, 1, BLOCK, 1, 1, 0,
		 t->stream, params, NULL);
	if (!err)
		err = CU(dev, cuStreamSynchronize, t->stream);
	cu_give_back(dev, CU_KIND_STREAM, t->stream, &again);
	return err ? err : again;
}

/* As many multiprocessors as it has, and none of another one's. */
static int judge(struct trial *t, uint32_t unit)
{
	uint32_t i, ran = 0, strange = 0;

	for (i = 0; i < t->blocks; i++) {
		const uint32_t id = __atomic_load_n(&t->ids[i], __ATOMIC_ACQUIRE);

		if (!id || id > IDS_MOST) {
			strange++;
			continue;
		}
		if (t->owner[id - 1] && t->owner[id - 1] != unit % 255 + 1)
			strange++;
		ran += !t->owner[id - 1];
		t->owner[id - 1] = (uint8_t)(unit % 255 + 1);
	}
	if (ran == t->dev->green->per && !strange)
		return 0;
	return cu_host->fail(ENOTSUP,
			     "cuda:%u: partitions=green: tried out, unit %u ran on %u "
			     "multiprocessors of its own, not %u, and %u of %u blocks on "
			     "those of others",
			     t->dev->index, unit, ran, t->dev->green->per, strange,
			     t->blocks);
}

static int try_out(struct trial *t)
{
	struct cu_device *dev = t->dev;
	uint32_t i;
	void *green = NULL, *pinned = NULL;
	int err, again = 0;

	t->blocks = BLOCKS_A_SM * dev->green->per;
	err = cu_pin(dev, t->blocks * sizeof(*t->ids), &pinned, &t->address);
	t->ids = pinned;
	if (!err)
		err = CU(dev, cuModuleLoadDataEx, &t->module, probe, 0, NULL, NULL);
	if (err)
		t->module = NULL;
	else
		err = CU(dev, cuModuleGetFunction, &t->function, t->module, "hal_sm");
	if (!err)
		err = CU(dev, cuFuncLoad, t->function);
	for (i = 0; !err && i < dev->green->units; i++) {
		err = cu_green_take(dev, i, 1, &green);
		if (!err)
			err = run_in(t, green);
		if (!err)
			err = judge(t, i);
	}
	cu_give_back(dev, CU_KIND_MODULE, t->module, &again);
	cu_give_back(dev, CU_KIND_HOST, pinned, &again);
	return err ? err : again;
}

int cu_green_open(struct cu_device *dev)
{
	struct trial *t = calloc(1, sizeof(*t));
	int err;

	dev->green = calloc(1, sizeof(*dev->green));
	if (!t || !dev->green) {
		free(t);
		return cu_host->fail(ENOMEM, "cuda: no memory for green contexts");
	}
	err = split(dev->shape.device, &dev->green->groups, &dev->green->units,
		    &dev->green->per);
	t->dev = dev;
	if (!err)
		err = try_out(t);
	cu_catch_up(dev);
	free(t);
	return err;
}
