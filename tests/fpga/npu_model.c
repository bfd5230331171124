/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_model.c - an NPU for backends/npu (option model) that is a slot of an FPGA card:
 * each of its registers and cycles is a step of a run of the kernel npu, through hal.h,
 * backends/fpga and the stand-in for XRT.  It has a hal.h of its own inside.  With
 * CARD_PLANT=1 a bit of each byte that a run has changed is another when it comes back.
 */
#include <stdlib.h>
#include <string.h>

#include "card.h"
#include "stepped.h"

#define EXPORT __attribute__((visibility("default")))

static struct npu_model_api api, of_steps;
static uint64_t room;
static uint8_t *before; /* what a run began with; NULL: nothing is planted */

/* The driver writes to its memory at any time: the card has what it was before a run. */
static void carry_out(void)
{
	uint64_t i;

	stepped.changed = stepped.ran;
	if (before != NULL)
		memcpy(before, stepped.memory, room);
	card_carry_out();
	for (i = 0; before != NULL && i < room; i++)
		if (before[i] != stepped.memory[i])
			stepped.memory[i] ^= 1;
}

static struct npu_model *create(const struct npu_model_shape *shape, uint8_t *memory,
				uint64_t bytes)
{
	const char *plant = getenv("CARD_PLANT");

	room = bytes;
	if (plant != NULL && strcmp(plant, "1") == 0)
		before = malloc(bytes);
	stepped_open(&of_steps, shape, bytes, carry_out);
	card_open(bytes);
	return of_steps.create(shape, memory, bytes);
}

static void destroy(struct npu_model *m)
{
	of_steps.destroy(m);
	card_close();
	free(before);
	before = NULL;
	fprintf(stderr, "%llu runs of the kernel\n", (unsigned long long)stepped.runs);
	if (bench_failures != 0)
		exit(3);
}

/* What has been written to registers may change the line. */
static int irq(const struct npu_model *m)
{
	if (stepped.count != 0)
		(void)of_steps.idle((struct npu_model *)(uintptr_t)m);
	return of_steps.irq(m);
}

static uint32_t reg_read(struct npu_model *m, uint32_t address)
{
	return of_steps.reg_read(m, address);
}

static void reg_write(struct npu_model *m, uint32_t address, uint32_t value)
{
	of_steps.reg_write(m, address, value);
}

static uint64_t run(struct npu_model *m, uint64_t cycles)
{
	return of_steps.run(m, cycles);
}

static uint64_t cycle(const struct npu_model *m)
{
	return of_steps.cycle(m);
}

static int idle(const struct npu_model *m)
{
	return of_steps.idle((struct npu_model *)(uintptr_t)m);
}

/* The kernel tells of no folds. */
static void on_fold(struct npu_model *m, npu_fold_fn fn, void *user)
{
	(void)m;
	(void)fn;
	(void)user;
}

EXPORT const struct npu_model_api *npu_model_entry(void);
EXPORT const struct npu_model_api *npu_model_entry(void)
{
	api = (struct npu_model_api){
		.size = sizeof(api),
		.abi = NPU_MODEL_ABI,
		.engine = "fpga",
		.rows = 4,
		.cols = 4,
		.slots = 2,
		.channels = 4,
		.create = create,
		.destroy = destroy,
		.reg_read = reg_read,
		.reg_write = reg_write,
		.run = run,
		.irq = irq,
		.cycle = cycle,
		.idle = idle,
		.on_fold = on_fold,
	};
	return &api;
}
