/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel npu (npu-rtl/npu_kernel.h).  The slot's circuit is that of the file
 * HAL_STAND_IN_NPU: the kernel as it would be on a card (npu-rtl/fpga), of which this
 * writes the registers and is the memory, or a model of the NPU alone, whose steps are
 * carried out here.  It acts when the run begins, so that the run takes the cycles that
 * it took.  The card has one machine.
 */
#include "internal.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "npu-rtl/fpga/npu_slot.h"
#include "npu-rtl/npu_kernel.h"
#include "npu-rtl/npu_model.h"

#define CYCLE_NS 4 /* 250 MHz */
#define LONGEST  UINT64_C(1000000000)

static struct {
	const struct npu_slot_api *slot_api;
	struct npu_slot *slot;
	const struct npu_model_api *api;
	struct npu_model *model;
	uint8_t *memory;
	bool failed; /* the run that has begun */
} npu[CARDS];

static void load(uint32_t card)
{
	const char *file = getenv("HAL_STAND_IN_NPU");
	void *object = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
	union {
		void *object;
		npu_model_entry_fn model;
		npu_slot_entry_fn slot;
	} entry = {.object = object ? dlsym(object, NPU_SLOT_SYMBOL) : NULL};

	if (entry.object) {
		npu[card].slot_api = entry.slot();
		return;
	}
	entry.object = object ? dlsym(object, NPU_MODEL_SYMBOL) : NULL;
	npu[card].api = entry.object ? entry.model() : NULL;
}

/* ---- the kernel, by its registers ------------------------------------------------------ */

static void *behind(void *user, uint64_t address, uint64_t bytes)
{
	const struct card *c = user;
	void *memory = memory_at(c, address, bytes);

	npu[c->index].failed |= !memory;
	return memory;
}

static const struct fp_kernel_desc *described(const struct card *c)
{
	uint32_t i = 0;

	while (strcmp(c->x.kernels[i].name, "npu") != 0)
		i++;
	return &c->x.kernels[i];
}

/* As XRT does: arguments where the configuration says that they are, then ap_start. */
static uint64_t slot_run(const struct call *c)
{
	const struct npu_slot_api *api = npu[c->card->index].slot_api;
	const struct fp_kernel_desc *k = described(c->card);
	struct npu_slot *s = npu[c->card->index].slot;
	const char *text;
	uint64_t cycles;
	uint32_t i;

	if (!s)
		s = npu[c->card->index].slot = api->create(behind, c->card);
	npu[c->card->index].failed = !s || k->arg_count != 4;
	if (npu[c->card->index].failed)
		return 0;
	for (i = 0; i < k->arg_count; i++) {
		api->write(s, k->args[i].offset, (uint32_t)c->args[i], 0xf);
		if (k->args[i].memory || k->args[i].scalar_bytes == 8)
			api->write(s, k->args[i].offset + 4, (uint32_t)(c->args[i] >> 32),
				   0xf);
	}
	api->write(s, NPU_KERNEL_GIE, 1, 0xf);
	api->write(s, NPU_KERNEL_IER, 1, 0xf);
	api->write(s, NPU_KERNEL_AP_CTRL, NPU_KERNEL_AP_START, 0xf);
	cycles = api->run(s, LONGEST);
	api->write(s, NPU_KERNEL_ISR, api->read(s, NPU_KERNEL_ISR), 0xf);
	if (!(api->read(s, NPU_KERNEL_AP_CTRL) & NPU_KERNEL_AP_DONE) || api->interrupt(s))
		misuse("npu: a run that does not end");
	if (api->wrong(s, &text))
		misuse("npu: %s", text);
	return cycles * CYCLE_NS;
}

/* ---- a model of the NPU alone ----------------------------------------------------------- */

static bool reset(uint32_t card, uint64_t shape, uint8_t *memory, uint64_t bytes)
{
	const struct npu_model_shape s = {
		.rows = shape & 0xff,
		.cols = shape >> 8 & 0xff,
		.slots = shape >> 16 & 0xff,
		.channels = shape >> 24 & 0xff,
	};
	const struct npu_model_api *api = npu[card].api;

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

static uint64_t model_run(const struct call *c)
{
	const uint32_t card = c->card->index;
	const uint32_t count = (uint32_t)c->args[3];
	uint8_t *memory = memory_at(c->card, c->args[0], c->args[2]);
	struct npu_kernel_step *s =
		memory_at(c->card, c->args[1], (uint64_t)count * sizeof(*s));
	uint64_t cycles = 0;
	uint32_t i;

	npu[card].failed = !memory || !s || !npu[card].api;
	for (i = 0; i < count && !npu[card].failed; i++) {
		if (s[i].op == NPU_KERNEL_RESET
			    ? reset(card, s[i].value, memory, c->args[2])
			    : npu[card].model && npu[card].memory == memory &&
				      step(card, &s[i], &cycles))
			continue;
		s[i].op = (uint32_t)NPU_KERNEL_REFUSED;
		break;
	}
	return cycles * CYCLE_NS;
}

uint64_t npu_ns(const struct call *c)
{
	const uint32_t card = c->card->index;

	if (!npu[card].api && !npu[card].slot_api)
		load(card);
	return npu[card].slot_api ? slot_run(c) : model_run(c);
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
	if (npu[c->index].slot)
		npu[c->index].slot_api->destroy(npu[c->index].slot);
	npu[c->index].model = NULL;
	npu[c->index].slot = NULL;
}
