/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NPU in an FPGA's slot: random programs of every operation on every slot of
 * npu_core, as tests/rtl/bench_random makes them, through hal.h, backends/fpga and the
 * stand-in for XRT, whose kernel npu is the Verilator model; each byte of memory against
 * the golden model.
 *
 *   test_npu [COUNT [control]]     control: a byte of the card's memory is changed behind
 *                                  its back, which has to be found
 *
 * The rig of tests/rtl knows a machine by struct npu_model_api: here that is one whose
 * register accesses and cycles are steps of runs (npu-rtl/npu_kernel.h).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hal/hal.h>

#include "host.h"
#include "npu-rtl/npu_kernel.h"
#include "rig.h"
#include "work.h"

enum { JOBS = 6, STEPS = 1024, MEMORY = 1 << 24 };

static struct slot {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_program *prog;
	struct hal_kernel *kernel;
	struct hal_queue *queue;
	struct hal_buffer *memory, *steps;
	struct npu_kernel_step step[STEPS];
	uint32_t count;
	uint8_t *host; /* what the rig has of the memory */
	bool changed;  /* by the rig, before a slot was rung */
	uint64_t cycle, runs, plant;
	uint32_t state; /* NPU_KERNEL_IRQ, NPU_KERNEL_IDLE */
} slot;

static void ok(int err)
{
	if (err >= 0)
		return;
	fprintf(stderr, "%d: %s\n", err, hal_last_error());
	exit(2);
}

/* ---- a machine whose accesses are steps --------------------------------------------------- */

/* Hands the steps to the card, and takes what came of them. */
static void flush(void)
{
	const struct hal_arg args[4] = {
		{.buffer = slot.memory, .bytes = MEMORY},
		{.buffer = slot.steps, .bytes = sizeof(slot.step)},
		{.offset = MEMORY},
		{.offset = slot.count}};
	struct hal_cmd cmd = hal_cmd_launch(slot.kernel, args, 4);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	bool ran = false;

	d.cmds = &cmd;
	d.cmd_count = 1;
	if (slot.changed)
		ok(hal_buffer_write(slot.memory, 0, slot.host, MEMORY));
	slot.changed = false;
	ok(hal_buffer_write(slot.steps, 0, slot.step, slot.count * sizeof(slot.step[0])));
	ok(hal_submit(slot.queue, &d, NULL));
	ok(hal_device_poll(slot.dev, UINT64_MAX));
	ok(hal_buffer_read(slot.steps, 0, slot.step, slot.count * sizeof(slot.step[0])));
	for (uint32_t i = 0; i < slot.count; i++) {
		const struct npu_kernel_step *s = &slot.step[i];

		if (s->op == NPU_KERNEL_RUN)
			slot.state = s->address;
		ran |= s->op == NPU_KERNEL_RUN;
		slot.cycle += s->op == NPU_KERNEL_RUN ? s->value : NPU_MODEL_REG_CYCLES;
	}
	slot.runs++;
	slot.count = 0;
	if (!ran)
		return;
	ok(hal_buffer_read(slot.memory, 0, slot.host, MEMORY));
	if (slot.plant != 0)
		slot.host[slot.plant] ^= 1;
}

static struct npu_kernel_step *add(uint32_t op, uint32_t address, uint64_t value)
{
	if (slot.count == STEPS)
		flush();
	slot.step[slot.count] = (struct npu_kernel_step){op, address, value};
	return &slot.step[slot.count++];
}

static struct npu_model *create(const struct npu_model_shape *s, uint8_t *memory,
				uint64_t bytes)
{
	if (bytes != MEMORY)
		return NULL;
	slot.host = memory;
	slot.cycle = 0;
	add(NPU_KERNEL_RESET, 0,
	    s->rows | s->cols << 8 | s->slots << 16 | (uint64_t)s->channels << 24);
	return (struct npu_model *)&slot;
}

static void destroy(struct npu_model *m)
{
	(void)m;
	slot.count = 0;
}

static uint32_t reg_read(struct npu_model *m, uint32_t address)
{
	const struct npu_kernel_step *s = add(NPU_KERNEL_READ, address, 0);

	(void)m;
	flush();
	return (uint32_t)s->value;
}

static void reg_write(struct npu_model *m, uint32_t address, uint32_t value)
{
	(void)m;
	(void)add(NPU_KERNEL_WRITE, address, value);
	for (uint32_t i = 0; i < RIG_SLOTS; i++)
		slot.changed |= address == NPU_SLOT_ADDR(i, TAIL);
}

static uint64_t run(struct npu_model *m, uint64_t cycles)
{
	const struct npu_kernel_step *s = add(NPU_KERNEL_RUN, 0, cycles);

	(void)m;
	flush();
	return s->value;
}

static int irq(const struct npu_model *m)
{
	(void)m;
	return (slot.state & NPU_KERNEL_IRQ) != 0;
}

static uint64_t cycle(const struct npu_model *m)
{
	(void)m;
	return slot.cycle;
}

static int idle(const struct npu_model *m)
{
	(void)m;
	(void)add(NPU_KERNEL_RUN, 0, 0);
	flush();
	return (slot.state & NPU_KERNEL_IDLE) != 0;
}

static struct npu_model_api in_slot = {
	.size = sizeof(in_slot),
	.abi = NPU_MODEL_ABI,
	.engine = "fpga",
	.create = create,
	.destroy = destroy,
	.reg_read = reg_read,
	.reg_write = reg_write,
	.run = run,
	.irq = irq,
	.cycle = cycle,
	.idle = idle,
};

/* ---- the card ------------------------------------------------------------------------------ */

static void open_card(void)
{
	static const char text[] =
		"platform hal_stand_in_1\nbank HBM[0] hbm 0x0 32M\nkernel npu 1\n"
		"arg memory memory 4096 0\narg steps memory 16 0\narg bytes ulong\n"
		"arg count uint\n";
	struct hal_partition_desc p = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc q = HAL_INIT(hal_queue_desc);
	char target[128];
	size_t size;
	void *image = make_image(text, &size);

	snprintf(target, sizeof(target), "fpga:0?clock=virtual&xclbin=%s",
		 make_file(text));
	ok(hal_open(target, NULL, &slot.dev));
	p.units_floor = 1;
	ok(hal_partition_create(slot.dev, &p, &slot.part));
	ok(hal_queue_create(slot.part, &q, &slot.queue));
	ok(hal_program_load(slot.dev, image, size, &slot.prog));
	ok(hal_kernel_find(slot.prog, "npu", &slot.kernel));
	b.bytes = MEMORY;
	ok(hal_buffer_create(slot.part, &b, &slot.memory));
	b.bytes = sizeof(slot.step);
	ok(hal_buffer_create(slot.part, &b, &slot.steps));
	free(image);
}

static void close_card(void)
{
	const char *text = "";

	ok(hal_buffer_destroy(slot.steps));
	ok(hal_buffer_destroy(slot.memory));
	ok(hal_queue_destroy(slot.queue));
	ok(hal_program_unload(slot.prog));
	ok(hal_partition_destroy(slot.part));
	ok(hal_close(slot.dev));
	CHECK(stand_in()->misuse(&text) == 0, "%s", text);
	CHECK(stand_in()->live() == 0, "something is left");
}

/* ---- programs -------------------------------------------------------------------------------- */

static void one_program(struct rig *r, uint64_t seed)
{
	struct rng g = {.state = seed * UINT64_C(0x2545F4914F6CDD1D)};
	struct rig_memory cfg = work_memory(r, &g);
	struct rig_rect rects[RIG_SLOTS];
	uint32_t slots;

	cfg.extra = (struct npu_model_memory){0}; /* what the memory does is the card's */
	work_map(r, rects, &slots, &g);
	rig_reset(r, &cfg);
	CHECK(rig_map(r, rects, RIG_SLOTS) == NPU_MAP_OK, "map");
	for (uint32_t s = 0; s < slots; s++) {
		uint32_t desc[JOBS][16];

		rig_space(r, s, WORK_SPACE, RIG_ALL);
		for (uint32_t i = 0;
		     i < JOBS && WORK_SPACE - r->space[s].free_va > 2 * WORK_ROOM; i++) {
			work_desc(r, s, desc[i], rects[s].rows != 0, &g);
			work_connect(desc, i, &g);
			rig_push(r, s, desc[i]);
		}
		rig_push_end(r, s);
	}
	for (uint32_t s = 0; s < slots; s++)
		rig_bell(r, s);
	rig_wait(r, (1u << slots) - 1, 20000000);
	for (uint32_t s = 0; s < slots; s++) {
		char what[64];

		CHECK(rig_reg(r, NPU_SLOT_ADDR(s, FAULT_KIND)) == 0, "slot %u faults", s);
		snprintf(what, sizeof(what), "seed %llu, slot %u",
			 (unsigned long long)seed, s);
		rig_check(r, s, what);
		rig_counters(r, s, true);
	}
	CHECK(r->api->idle(r->model), "not idle after the last job");
}

int main(int argc, char **argv)
{
	const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 4;
	const bool control = argc > 2 && strcmp(argv[2], "control") == 0;
	const char *model = getenv("HAL_STAND_IN_NPU");
	const char *shape = model != NULL ? strstr(model, "libnpu_") : NULL;
	struct rig r = {.api = &in_slot, .bytes = MEMORY};
	uint64_t failed;

	if (shape == NULL || access(model, R_OK) != 0 ||
	    sscanf(shape, "libnpu_%ux%ux%ux%u", &in_slot.rows, &in_slot.cols,
		   &in_slot.slots, &in_slot.channels) != 4) {
		printf("skipped: no model of the NPU: HAL_STAND_IN_NPU is %s\n",
		       model != NULL ? model : "not set");
		return 77;
	}
	r.memory = calloc(1, MEMORY);
	open_card();
	for (uint64_t i = 0; i < count; i++) {
		failed = bench_failures;
		slot.plant = control ? (1 << 20) + i * 4099 : 0;
		one_program(&r, 1 + i);
		if (control && failed == bench_failures) {
			printf("program %llu: the planted byte was not found\n",
			       (unsigned long long)i);
			return 1;
		}
	}
	rig_close(&r);
	close_card();
	if (control)
		return bench_failures == 0;
	printf("%llu programs, %llu runs of the kernel\n", (unsigned long long)count,
	       (unsigned long long)slot.runs);
	printf("figure fpga.npu.programs %llu\n", (unsigned long long)count);
	printf("figure fpga.npu.mismatches %llu\n", (unsigned long long)bench_failures);
	return bench_end("test_fpga_npu");
}
