/* SPDX-License-Identifier: Apache-2.0 */
/* stepped.c - a machine whose register accesses and cycles are steps of a kernel's runs.
 */
#include "stepped.h"

enum { JOBS = 6 };

struct stepped stepped;
static uint64_t room;

struct npu_kernel_step *stepped_add(uint32_t op, uint32_t address, uint64_t value)
{
	if (stepped.count == STEPPED_MAX)
		stepped_flush();
	stepped.step[stepped.count] = (struct npu_kernel_step){op, address, value};
	return &stepped.step[stepped.count++];
}

void stepped_flush(void)
{
	uint32_t i;

	stepped.ran = false;
	for (i = 0; i < stepped.count; i++)
		stepped.ran |= stepped.step[i].op == NPU_KERNEL_RUN;
	stepped.carry_out();
	for (i = 0; i < stepped.count; i++) {
		const struct npu_kernel_step *s = &stepped.step[i];

		CHECK(s->op != (uint32_t)NPU_KERNEL_REFUSED, "step %u is refused", i);
		if (s->op == NPU_KERNEL_RUN)
			stepped.state = s->address;
		stepped.cycle +=
			s->op == NPU_KERNEL_RUN ? s->value : NPU_MODEL_REG_CYCLES;
	}
	stepped.runs++;
	stepped.count = 0;
	stepped.changed = false;
}

static struct npu_model *create(const struct npu_model_shape *s, uint8_t *memory,
				uint64_t bytes)
{
	if (bytes != room)
		return NULL;
	stepped.memory = memory;
	stepped.cycle = 0;
	stepped_add(NPU_KERNEL_RESET, 0,
		    s->rows | s->cols << 8 | s->slots << 16 |
			    (uint64_t)s->channels << 24);
	return (struct npu_model *)&stepped;
}

static void destroy(struct npu_model *m)
{
	(void)m;
	stepped.count = 0;
}

static uint32_t reg_read(struct npu_model *m, uint32_t address)
{
	const struct npu_kernel_step *s = stepped_add(NPU_KERNEL_READ, address, 0);

	(void)m;
	stepped_flush();
	return (uint32_t)s->value;
}

static void reg_write(struct npu_model *m, uint32_t address, uint32_t value)
{
	(void)m;
	(void)stepped_add(NPU_KERNEL_WRITE, address, value);
	for (uint32_t i = 0; i < RIG_SLOTS; i++)
		stepped.changed |= address == NPU_SLOT_ADDR(i, TAIL);
}

static uint64_t run(struct npu_model *m, uint64_t cycles)
{
	const struct npu_kernel_step *s = stepped_add(NPU_KERNEL_RUN, 0, cycles);

	(void)m;
	stepped_flush();
	return s->value;
}

static int irq(const struct npu_model *m)
{
	(void)m;
	return (stepped.state & NPU_KERNEL_IRQ) != 0;
}

static uint64_t cycle(const struct npu_model *m)
{
	(void)m;
	return stepped.cycle;
}

static int idle(const struct npu_model *m)
{
	(void)m;
	(void)stepped_add(NPU_KERNEL_RUN, 0, 0);
	stepped_flush();
	return (stepped.state & NPU_KERNEL_IDLE) != 0;
}

void stepped_open(struct npu_model_api *api, const struct npu_model_shape *shape,
		  uint64_t bytes, void (*carry_out)(void))
{
	*api = (struct npu_model_api){
		.size = sizeof(*api),
		.abi = NPU_MODEL_ABI,
		.engine = "fpga",
		.rows = shape->rows,
		.cols = shape->cols,
		.slots = shape->slots,
		.channels = shape->channels,
		.create = create,
		.destroy = destroy,
		.reg_read = reg_read,
		.reg_write = reg_write,
		.run = run,
		.irq = irq,
		.cycle = cycle,
		.idle = idle,
	};
	stepped.carry_out = carry_out;
	room = bytes;
}

void stepped_program(struct rig *r, uint64_t seed)
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
