/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel npu (npu-rtl/npu_kernel.h): the slot's circuit is a model of the NPU, that
 * of the file HAL_STAND_IN_NPU, which works in the card's memory.  It acts when the run
 * begins, so that the run takes the cycles that it took.  The card has one machine.
 */
#include "internal.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "npu-rtl/npu_kernel.h"
#include "npu-rtl/npu_model.h"

#define CYCLE_NS 4 /* 250 MHz */

static struct {
	const struct npu_model_api *api;
	struct npu_model *model;
	uint8_t *memory;
	bool failed; /* the run that has begun */
} npu[CARDS];

static const struct npu_model_api *load(void)
{
	const char *file = getenv("HAL_STAND_IN_NPU");
	void *object = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
	union {
		void *object;
		npu_model_entry_fn function;
	} entry = {.object = object ? dlsym(object, NPU_MODEL_SYMBOL) : NULL};

	return entry.object ? entry.function() : NULL;
}

static bool reset(uint32_t card, uint64_t shape, uint8_t *memory, uint64_t bytes)
{
	const struct npu_model_shape s = {
		.rows = shape & 0xff,
		.cols = shape >> 8 & 0xff,
		.slots = shape >> 16 & 0xff,
		.channels = shape >> 24 & 0xff,
	};
	const struct npu_model_api *api = npu[card].api;

	if (!api)
		api = npu[card].api = load();
	if (!api ||
	    (!api->any_shape && (s.rows != api->rows || s.cols != api->cols ||
				 s.slots != api->slots || s.channels > api->channels)))
		return false;
	if (npu[card].model)
		api->destroy(npu[card].model);
	npu[card].model = api->create(&s, memory, bytes);
	npu[card].memory = memory;
	return npu[card].model != NULL;
}

static bool step(uint32_t card, struct npu_kernel_step *s, uint64_t *cycles)
{
	const struct npu_model_api *api = npu[card].api;
	struct npu_model *m = npu[card].model;

	switch (s->op) {
	case NPU_KERNEL_WRITE:
		api->reg_write(m, s->address, (uint32_t)s->value);
		*cycles += NPU_MODEL_REG_CYCLES;
		return true;
	case NPU_KERNEL_READ:
		s->value = api->reg_read(m, s->address);
		*cycles += NPU_MODEL_REG_CYCLES;
		return true;
	case NPU_KERNEL_RUN:
		s->value = api->run(m, s->value);
		s->address = (api->irq(m) ? NPU_KERNEL_IRQ : 0) |
			     (api->idle(m) ? NPU_KERNEL_IDLE : 0);
		*cycles += s->value;
		return true;
	default:
		return false;
	}
}

uint64_t npu_ns(const struct call *c)
{
	const uint32_t card = c->card->index;
	const uint32_t count = (uint32_t)c->args[3];
	uint8_t *memory = memory_at(c->card, c->args[0], c->args[2]);
	struct npu_kernel_step *s =
		memory_at(c->card, c->args[1], (uint64_t)count * sizeof(*s));
	uint64_t cycles = 0;
	uint32_t i;

	npu[card].failed = !memory || !s;
	for (i = 0; i < count && !npu[card].failed; i++)
		if (s[i].op == NPU_KERNEL_RESET)
			npu[card].failed = !reset(card, s[i].value, memory, c->args[2]);
		else
			npu[card].failed = !npu[card].model ||
					   npu[card].memory != memory ||
					   !step(card, &s[i], &cycles);
	return cycles * CYCLE_NS;
}

bool npu_run(const struct call *c)
{
	return !npu[c->card->index].failed;
}

/* The configuration goes, or the memory it works in. */
void npu_drop(const struct card *c)
{
	if (npu[c->index].model)
		npu[c->index].api->destroy(npu[c->index].model);
	npu[c->index].model = NULL;
}
