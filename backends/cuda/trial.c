/* SPDX-License-Identifier: Apache-2.0 */
/* Where kernels really run: one that writes down on which multiprocessors its blocks are.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS_A_SM 4u    /* so that each has one, although the first ones have ended */
#define BLOCK       1024u /* so that few fit on one */

struct cu_trial {
	void *module, *function, *pinned;
	uint64_t address;
	uint32_t room;
};

/* hal_sm(out): each block writes the number of its multiprocessor, and 1, and stays. */
static const char probe[] = ".version 7.0\n"
			    ".target sm_52\n"
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

/* multiprocessors: the most that it is to find. */
int cu_trial_open(struct cu_device *dev, uint32_t multiprocessors, struct cu_trial **out)
{
	struct cu_trial *t = calloc(1, sizeof(*t));
	int err, again = 0;

	if (!t)
		return cu_host->fail(ENOMEM, "cuda: no memory to try out units");
	t->room = BLOCKS_A_SM * multiprocessors;
	err = cu_pin(dev, t->room * sizeof(uint32_t), &t->pinned, &t->address);
	if (!err)
		err = CU(dev, cuModuleLoadDataEx, &t->module, probe, 0, NULL, NULL);
	if (err)
		t->module = NULL;
	else
		err = CU(dev, cuModuleGetFunction, &t->function, t->module, "hal_sm");
	if (!err)
		err = CU(dev, cuFuncLoad, t->function);
	if (err)
		cu_trial_close(dev, t, &again);
	else
		*out = t;
	return err;
}

void cu_trial_close(struct cu_device *dev, struct cu_trial *t, int *err)
{
	if (!t)
		return;
	cu_give_back(dev, CU_KIND_MODULE, t->module, err);
	cu_give_back(dev, CU_KIND_HOST, t->pinned, err);
	free(t);
}

int cu_trial_run(struct cu_device *dev, struct cu_trial *t, void *stream,
		 uint32_t multiprocessors, bool ran[CU_SM_MOST])
{
	uint32_t *ids = t->pinned, blocks = BLOCKS_A_SM * multiprocessors, i;
	void *params[1] = {&t->address};
	int err;

	memset(ran, 0, CU_SM_MOST * sizeof(*ran));
	blocks = blocks < t->room ? blocks : t->room;
	memset(ids, 0, t->room * sizeof(*ids));
	err = CU(dev, cuLaunchKernel, t->function, blocks, 1, 1, BLOCK, 1, 1, 0, stream,
		 params, NULL);
	if (!err) {
		err = CU(dev, cuStreamSynchronize, stream);
		/* The kernel still writes there: it must end before the memory goes. */
		if (err && !atomic_load(&dev->base.lost))
			(void)cu.cuStreamSynchronize(stream);
	}
	for (i = 0; !err && i < blocks; i++) {
		const uint32_t id = __atomic_load_n(&ids[i], __ATOMIC_ACQUIRE);

		if (!id || id > CU_SM_MOST)
			return cu_host->fail(EIO,
					     "cuda:%u: in the trial, a block reported "
					     "the invalid multiprocessor %d",
					     dev->index, (int)id - 1);
		ran[id - 1] = true;
	}
	return err;
}
