/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - kernels that count, so that none is lost, run twice or out of order unseen.
 *
 * On ref: step(state, number, work), whose counter must be number when it runs.  On the
 * NPU a step writes one more than cell n of the state's cells says into cell n + 1, which
 * may be done twice; inside adds one to what a cell says, which may not.  Other backends
 * have the kernels of the conformance suite, which do not count.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../conformance/conformance.h"
#include "sim.h"
#ifdef SIM_NPU
#include <hal/npu.h>
#endif

/* Of the NPU's state. */
enum { CELL = 64, CELLS = 32, INSIDE_AT = CELL * CELLS };

/* ---- ref ---------------------------------------------------------------------------- */

static int step_fn(const struct hal_ref_call *call)
{
	uint64_t *counter = call->at(call, 0, 0, 8);

	if (!counter)
		return -EIO;
	if (*counter != call->args[1].value)
		return sim_fail(call->user, __FILE__, __LINE__,
				"step %" PRIu64 " ran after %" PRIu64 " steps",
				call->args[1].value, *counter);
	++*counter;
	return 0;
}

static uint64_t step_cost(const struct hal_ref_call *call)
{
	return call->args[2].value;
}

static int bad_fn(const struct hal_ref_call *call)
{
	snprintf(call->fault, call->fault_bytes, "kernel bad: meant to");
	return -EIO;
}

static int load_ref(struct sim *s)
{
	const struct hal_ref_kernel kernels[] = {

		{.name = "step",
		 .fn = step_fn,
		 .cost = step_cost,
		 .user = s,
		 .arg_count = 3,
		 .arg_bytes = {8, 0, 0}},
		{.name = "bad",
		 .fn = bad_fn,
		 .work = 10,
		 .arg_count = 1,
		 .arg_bytes = {CELL}}};

	SIM_OK(hal_ref_load(s->dev, kernels, 2, &s->prog));
	SIM_OK(hal_kernel_find(s->prog, "step", &s->step_kernel[0]));
	SIM_OK(hal_kernel_find(s->prog, "bad", &s->bad_kernel));
	return 0;
}

/* ---- the NPU ------------------------------------------------------------------------ */

#ifdef SIM_NPU
/* Multiplications nobody looks at: about so many times 512 cycles. */
static int spin(struct hal_npu_builder *b, uint32_t turns)
{
	static const int32_t mult = 1073741824, shift = 0;
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	int err = 0;

	if (turns == 0)
		return 0;
	op.m = 512;
	op.n = op.k = 1;
	op.out.mult = &mult;
	op.out.shift = &shift;
	op.out.min = -128;
	op.out.max = 127;
	err = hal_npu_scratch(b, op.m, &op.a.id);
	if (!err)
		err = hal_npu_scratch(b, op.m, &op.d.id);
	op.b = op.a;
	while (!err && turns-- > 0)
		err = hal_npu_gemm(b, &op);
	return err;
}

static int count_kernel(struct hal_npu_builder *b, const char *name, uint32_t turns,
			bool inside)
{
	struct hal_npu_lut op = HAL_INIT(hal_npu_lut);
	uint8_t one_more[256];
	int err = hal_npu_kernel(b, name);

	for (uint32_t i = 0; i < 256; i++)
		one_more[i] = (uint8_t)(i + 1);
	op.bytes = CELL;
	op.table = one_more;
	if (!err)
		err = hal_npu_arg(b, CELL, &op.d.id);
	op.a = op.d;
	if (!err && !inside)
		err = hal_npu_arg(b, CELL, &op.a.id);
	if (!err)
		err = spin(b, turns);
	return err ? err : hal_npu_lut(b, &op);
}

static int load_npu(struct sim *s)
{
	static const uint32_t turns[] = {0, 3, 30};
	struct hal_npu_builder *b;
	void *image = NULL;
	size_t size = 0;
	char name[16];
	int err;

	SIM_OK(hal_npu_builder_create(&b));
	for (uint32_t i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "%s%u", i < 3 ? "step" : "inside", i % 3);
		SIM_OK(count_kernel(b, name, turns[i % 3], i >= 3));
	}
	SIM_OK(hal_npu_build(b, &image, &size));
	SIM_OK(hal_npu_builder_destroy(b));
	err = hal_program_load(s->dev, image, size, &s->prog);
	hal_npu_image_free(image);
	SIM_OK(err);
	for (uint32_t i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "%s%u", i < 3 ? "step" : "inside", i % 3);
		SIM_OK(hal_kernel_find(s->prog, name,
				       i < 3 ? &s->step_kernel[i]
					     : &s->inside_kernel[i - 3]));
	}
	return 0;
}
#endif

/* ---- others ------------------------------------------------------------------------- */

/* Those of the conformance suite. */
static const struct conf_pack *packs[8];
static uint32_t pack_count;

void conf_register(const struct conf_pack *pack)
{
	if (pack_count < 8)
		packs[pack_count++] = pack;
}

static int load_pack(struct sim *s)
{
	const struct conf_pack *pack = NULL;
	void *image = NULL;
	size_t size = 0;
	int err;

	for (uint32_t i = 0; i < pack_count; i++)
		if (strcmp(packs[i]->backend, s->info.backend) == 0)
			pack = packs[i];
	if (pack == NULL)
		return sim_fail(s, __FILE__, __LINE__, "no kernels for %s",
				s->info.backend);
	SIM_OK(pack->image(&image, &size));
	err = hal_program_load(s->dev, image, size, &s->pack);
	pack->free(image);
	SIM_OK(err);
	SIM_OK(hal_kernel_find(s->pack, "copy", &s->copy_kernel));
	SIM_OK(hal_kernel_find(s->pack, "wild", &s->bad_kernel));
	return 0;
}

/* ---- all ---------------------------------------------------------------------------- */

int kernels_load(struct sim *s)
{
	if (s->ref)
		return load_ref(s);
#ifdef SIM_NPU
	if (strcmp(s->info.backend, "npu") == 0 && load_npu(s))
		return -1;
#endif
	return load_pack(s);
}

int kernels_unload(struct sim *s)
{
	SIM_OK(hal_program_unload(s->prog));
	SIM_OK(hal_program_unload(s->pack));
	return 0;
}

struct hal_cmd kernels_step(struct sim *s, struct sim_queue *q, struct hal_arg *args,
			    uint64_t number, bool inside, uint32_t work)
{
	uint32_t size = work < 12000 ? 0 : work < 19000 ? 1 : 2;

	if (s->ref) {
		args[0] = (struct hal_arg){q->state, 0, CELL};
		args[1] = (struct hal_arg){.offset = number};
		args[2] = (struct hal_arg){.offset = 1 + work};
		return hal_cmd_launch(s->step_kernel[0], args, 3);
	}
	if (!s->step_kernel[0]) {
		args[0] = (struct hal_arg){q->state, CONF_COPY_BYTES, CONF_COPY_BYTES};
		args[1] = (struct hal_arg){q->state, 0, CONF_COPY_BYTES};
		return hal_cmd_launch(s->copy_kernel, args, 2);
	}
	if (inside) {
		args[0] = (struct hal_arg){q->state, INSIDE_AT, CELL};
		return hal_cmd_launch(s->inside_kernel[size], args, 1);
	}
	args[0] = (struct hal_arg){q->state, (number + 1) % CELLS * CELL, CELL};
	args[1] = (struct hal_arg){q->state, number % CELLS * CELL, CELL};
	return hal_cmd_launch(s->step_kernel[size], args, 2);
}

struct hal_cmd kernels_bad(struct sim *s, struct sim_queue *q, struct hal_arg *args)
{
	args[0] = (struct hal_arg){q->state, 0, CELL};
	return hal_cmd_launch(s->bad_kernel, args, 1);
}

int kernels_check(struct sim *s, const struct sim_queue *q)
{
	uint64_t counter = 0;
	uint8_t cell[CELL], inside;

	if (s->ref) {
		SIM_OK(hal_buffer_read(q->state, 0, &counter, sizeof(counter)));
		SIM_CHECK(counter == q->steps);
		return 0;
	}
	if (!s->step_kernel[0])
		return 0;
	SIM_OK(hal_buffer_read(q->state, q->steps % CELLS * CELL, cell, CELL));
	SIM_OK(hal_buffer_read(q->state, INSIDE_AT, &inside, 1));
	for (uint32_t i = 0; i < CELL; i++)
		SIM_CHECK(cell[i] == (uint8_t)q->steps);
	SIM_CHECK(inside == (uint8_t)q->steps_inside);
	return 0;
}
