/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_kernel.c - npu_core as a kernel of an FPGA's slot (npu-rtl/fpga): its registers
 * as ap_ctrl_hs has them, steps that are refused, what steps cost, a bus that says error,
 * the border of its memory, a slot that is stopped between runs, and random programs
 * against the golden model while the bus waits at random, answers in any order and mixes
 * beats.  The rules of both buses are checked in each cycle (npu_slot.cpp), and so is
 * that nothing beyond memory and steps is ever asked for.
 *
 *   bench_kernel SHAPE [PROGRAMS [SEED]]     programs for each of three kinds of bus
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "fpga/npu_slot.h"
#include "stepped.h"

/* Anywhere: no page, and the first line below a border of 4 GiB. */
#define MEMORY_AT UINT64_C(0x3ffffffc0)
#define STEPS_AT  UINT64_C(0x2500000ff0)
#define NOWHERE   UINT64_C(0x7000000000)
#define BYTES     (1u << 24)
#define LONG      5000000u /* cycles of a run */

static struct bench {
	const struct npu_slot_api *api;
	struct npu_slot *slot;
	bool hole; /* nothing is behind the memory's addresses */
	uint64_t strays, runs;
} b;

static void *behind(void *user, uint64_t address, uint64_t bytes)
{
	(void)user;
	if (address >= STEPS_AT && address + bytes <= STEPS_AT + sizeof(stepped.step))
		return (uint8_t *)stepped.step + (address - STEPS_AT);
	if (address >= MEMORY_AT && address + bytes <= MEMORY_AT + BYTES)
		return b.hole ? NULL : stepped.memory + (address - MEMORY_AT);
	b.strays++;
	return NULL;
}

static void put(uint32_t offset, uint32_t value)
{
	b.api->write(b.slot, offset, value, 0xf);
}

static uint32_t get(uint32_t offset)
{
	return b.api->read(b.slot, offset);
}

static void put64(uint32_t offset, uint64_t value)
{
	put(offset, (uint32_t)value);
	put(offset + 4, (uint32_t)(value >> 32));
}

static void start(uint64_t memory, uint64_t steps, uint64_t bytes, uint32_t count)
{
	put64(NPU_KERNEL_MEMORY, memory);
	put64(NPU_KERNEL_STEPS, steps);
	put64(NPU_KERNEL_BYTES, bytes);
	put(NPU_KERNEL_COUNT, count);
	put(NPU_KERNEL_AP_CTRL, NPU_KERNEL_AP_START);
}

#define OVER (NPU_KERNEL_AP_DONE | NPU_KERNEL_AP_IDLE | NPU_KERNEL_AP_READY)

/* By the interrupt and by asking, in turn. */
static void wait_end(void)
{
	uint64_t end = b.api->cycle(b.slot) + LONG;
	uint32_t ctrl;

	if (b.runs++ % 2) {
		b.api->run(b.slot, LONG);
		CHECK(b.api->interrupt(b.slot), "no interrupt");
		CHECK(get(NPU_KERNEL_ISR) == 1, "ISR is %#x", get(NPU_KERNEL_ISR));
		put(NPU_KERNEL_ISR, 1);
		CHECK(!b.api->interrupt(b.slot), "an interrupt that was taken");
		ctrl = get(NPU_KERNEL_AP_CTRL);
	} else {
		put(NPU_KERNEL_GIE, 0);
		while (ctrl = get(NPU_KERNEL_AP_CTRL),
		       !(ctrl & NPU_KERNEL_AP_DONE) && b.api->cycle(b.slot) < end) {
			CHECK(ctrl == NPU_KERNEL_AP_START, "AP_CTRL is %#x in a run",
			      ctrl);
			b.api->run(b.slot, 97);
		}
		CHECK(!b.api->interrupt(b.slot), "an interrupt that is off");
		put(NPU_KERNEL_ISR, 1);
		put(NPU_KERNEL_GIE, 1);
	}
	CHECK(ctrl == OVER, "AP_CTRL is %#x at the end", ctrl);
	if (ctrl != OVER) {
		printf("the run does not end\n");
		exit(1);
	}
	CHECK(get(NPU_KERNEL_AP_CTRL) == NPU_KERNEL_AP_IDLE, "AP_CTRL is %#x behind it",
	      get(NPU_KERNEL_AP_CTRL));
}

static void carry_out(void)
{
	start(MEMORY_AT, STEPS_AT, BYTES, stepped.count);
	wait_end();
}

static void no_rule_broken(const char *what)
{
	const char *text;

	CHECK(b.api->wrong(b.slot, &text) == 0, "%s: %s", what, text);
	CHECK(b.strays == 0, "%s: %llu bursts beyond memory and steps", what,
	      (unsigned long long)b.strays);
}

/* ---- registers ------------------------------------------------------------------------ */

static void registers(void)
{
	static const uint32_t args[] = {0x10, 0x14, 0x1c, 0x20, 0x28, 0x2c, 0x34};
	static const uint32_t none[] = {0x18, 0x24, 0x30, 0x38, 0x3c, 0x40, 0x80, 0xffc};
	uint32_t i;

	CHECK(get(0) == NPU_KERNEL_AP_IDLE, "AP_CTRL is %#x after reset", get(0));
	for (i = 4; i <= 0xc; i += 4)
		CHECK(get(i) == 0, "register %#x after reset", i);
	for (i = 0; i < sizeof(args) / 4; i++)
		put(args[i], 0xa5000000u + i * 0x10203);
	for (i = 0; i < sizeof(none) / 4; i++)
		put(none[i], 0xffffffff);
	for (i = 0; i < sizeof(args) / 4; i++) {
		uint32_t is = 0xa5000000u + i * 0x10203;

		CHECK(get(args[i]) == is, "register %#x", args[i]);
		b.api->write(b.slot, args[i], 0x77777777, 1u << i % 4);
		is = (is & ~(0xffu << i % 4 * 8)) | 0x77u << i % 4 * 8;
		CHECK(get(args[i]) == is, "a byte of register %#x: %#x, not %#x", args[i],
		      get(args[i]), is);
	}
	for (i = 0; i < sizeof(none) / 4; i++)
		CHECK(get(none[i]) == 0, "register %#x, which is none", none[i]);
	b.api->write(b.slot, 0, 1, 0xe);
	CHECK(get(0) == NPU_KERNEL_AP_IDLE, "a start without its byte");
}

/* Interrupts, of a run of no step. */
static void interrupts(void)
{
	put(NPU_KERNEL_GIE, 1);
	for (uint32_t ier = 0; ier < 4; ier++) {
		put(NPU_KERNEL_IER, ier);
		start(MEMORY_AT, STEPS_AT, BYTES, 0);
		b.api->run(b.slot, 100);
		CHECK(get(NPU_KERNEL_IER) == ier && get(NPU_KERNEL_GIE) == 1, "IER, GIE");
		CHECK(get(NPU_KERNEL_ISR) == ier, "ISR is %#x with IER %#x",
		      get(NPU_KERNEL_ISR), ier);
		CHECK(b.api->interrupt(b.slot) == (ier != 0), "the line with IER %u",
		      ier);
		put(NPU_KERNEL_GIE, 0);
		CHECK(!b.api->interrupt(b.slot), "the line without GIE");
		put(NPU_KERNEL_GIE, 1);
		put(NPU_KERNEL_ISR, 3 & ~ier); /* toggles */
		CHECK(get(NPU_KERNEL_ISR) == 3, "ISR is toggled by a write");
		CHECK(b.api->interrupt(b.slot), "the line by a write to ISR");
		put(NPU_KERNEL_ISR, 3);
		CHECK(!b.api->interrupt(b.slot) && get(NPU_KERNEL_ISR) == 0, "taken");
		CHECK(get(0) == OVER && get(0) == NPU_KERNEL_AP_IDLE, "AP_CTRL");
	}
	put(NPU_KERNEL_IER, 1);
}

/* ---- steps ----------------------------------------------------------------------------- */

static uint64_t shape(int rows, int channels)
{
	return (b.api->rows + (uint32_t)rows) | b.api->cols << 8 | b.api->slots << 16 |
	       (uint64_t)(b.api->channels + (uint32_t)channels) << 24;
}

/* A run of three steps, of which the second is refused. */
static void refused(uint32_t op, uint64_t value)
{
	const struct npu_kernel_step steps[3] = {{NPU_KERNEL_READ, NPU_GLB_ID_ADDR, 0},
						 {op, 12, value},
						 {NPU_KERNEL_READ, NPU_GLB_ID_ADDR, 0}};

	memcpy(stepped.step, steps, sizeof(steps));
	start(MEMORY_AT, STEPS_AT, BYTES, 3);
	wait_end();
	CHECK(stepped.step[0].value == NPU_GLB_ID_RESET, "the step before one refused");
	CHECK(stepped.step[1].op == (uint32_t)NPU_KERNEL_REFUSED &&
		      stepped.step[1].address == 12 && stepped.step[1].value == value,
	      "op %u, value %#llx: not refused", op, (unsigned long long)value);
	CHECK(!memcmp(&stepped.step[2], &steps[2], sizeof(steps[2])),
	      "the step behind it");
}

static void refusals(void)
{
	refused(4, 0);
	refused((uint32_t)NPU_KERNEL_REFUSED, 0);
	refused(0x100 + NPU_KERNEL_WRITE, 0);
	refused(NPU_KERNEL_RESET, shape(1, 0));
	refused(NPU_KERNEL_RESET, shape(0, 1));
	refused(NPU_KERNEL_RESET, shape(0, -(int)b.api->channels));
	refused(NPU_KERNEL_RESET, shape(0, 0) | UINT64_C(1) << 32);
}

/* Registers go at a reset, and nothing else. */
static void reset_step(void)
{
	const struct npu_kernel_step steps[] = {
		{NPU_KERNEL_RESET, 0, shape(0, 0)},
		{NPU_KERNEL_WRITE, NPU_GLB_PT_COUNT_ADDR, 0xa5},
		{NPU_KERNEL_READ, NPU_GLB_PT_COUNT_ADDR, 0},
		{NPU_KERNEL_RUN, 7, 1000},
		{NPU_KERNEL_RESET, 0, shape(0, 1 - (int)b.api->channels)},
		{NPU_KERNEL_READ, NPU_GLB_PT_COUNT_ADDR, 1},
		{NPU_KERNEL_RUN, 7, 0},
		/* no ideal memory on a card */
		{NPU_KERNEL_WRITE, NPU_GLB_CTRL_ADDR, NPU_REG_BITS(CTRL_IDEAL, 1)},
		{NPU_KERNEL_READ, NPU_GLB_MODE_STATUS_ADDR, 7},
		{NPU_KERNEL_READ, NPU_GLB_CTRL_ADDR, 7},
		{NPU_KERNEL_WRITE, NPU_GLB_CTRL_ADDR, 0},
		{NPU_KERNEL_READ, NPU_GLB_MODE_STATUS_ADDR, 7},
	};

	memcpy(stepped.step, steps, sizeof(steps));
	start(MEMORY_AT, STEPS_AT, BYTES, sizeof(steps) / sizeof(steps[0]));
	wait_end();
	CHECK(stepped.step[0].op == NPU_KERNEL_RESET, "a shape that it has");
	CHECK(stepped.step[2].value == 0xa5, "a register");
	CHECK(stepped.step[3].value == 1000 && stepped.step[3].address == NPU_KERNEL_IDLE,
	      "cycles of a machine that does nothing: %llu",
	      (unsigned long long)stepped.step[3].value);
	CHECK(stepped.step[5].value == 0, "a register after a reset");
	CHECK(stepped.step[6].value == 0 && stepped.step[6].address == NPU_KERNEL_IDLE,
	      "no cycles");
	CHECK(stepped.step[8].value == NPU_MODE_RANGE && stepped.step[9].value == 0,
	      "CTRL.IDEAL: MODE_STATUS %llu, CTRL %#llx",
	      (unsigned long long)stepped.step[8].value,
	      (unsigned long long)stepped.step[9].value);
	CHECK(stepped.step[11].value == NPU_MODE_OK, "CTRL 0: MODE_STATUS %llu",
	      (unsigned long long)stepped.step[11].value);
}

/* Runs that begin anywhere in a line and end anywhere: each step is carried out, none
 * beside them, and lines are read whole. */
static void pieces(void)
{
	uint64_t before[2], after[2], beats[2];
	struct npu_kernel_step *s;

	for (uint32_t first = 0; first < 4; first++)
		for (uint32_t count = 1; count < 10; count++) {
			const uint32_t at = (uint32_t)(STEPS_AT / 16 + first) % 4;
			const uint32_t lines = (at + count + 3) / 4;

			memset(stepped.step, 0xff, sizeof(stepped.step[0]) * 16);
			s = &stepped.step[first];
			for (uint32_t i = 0; i < count; i++)
				s[i] = (struct npu_kernel_step){
					i % 2 ? NPU_KERNEL_READ : NPU_KERNEL_WRITE,
					NPU_GLB_PT_COUNT_ADDR,
					i % 2 ? 0 : first * 16 + count + i};
			b.api->traffic(b.slot, before, beats);
			start(MEMORY_AT, STEPS_AT + (uint64_t)first * 16, BYTES, count);
			wait_end();
			b.api->traffic(b.slot, after, beats);
			for (uint32_t i = 1; i < count; i += 2)
				CHECK(s[i].value == first * 16 + count + i - 1,
				      "step %u of %u from place %u on", i, count, at);
			CHECK(after[0] - before[0] == lines,
			      "%u steps from place %u on: %llu bursts, not %u", count, at,
			      (unsigned long long)(after[0] - before[0]), lines);
			CHECK(after[1] - before[1] == count / 2, "steps written back");
		}
}

/* So many steps take so long. */
static uint64_t cycles_of(uint32_t op, uint32_t count)
{
	uint64_t begin;

	for (uint32_t i = 0; i < count; i++)
		stepped.step[i] = (struct npu_kernel_step){op, NPU_GLB_PT_COUNT_ADDR, 0};
	start(MEMORY_AT, STEPS_AT, BYTES, count);
	begin = b.api->cycle(b.slot);
	b.api->run(b.slot, LONG);
	begin = b.api->cycle(b.slot) - begin;
	put(NPU_KERNEL_ISR, 1);
	CHECK(get(0) == OVER, "a run that is over");
	return begin;
}

/* What steps take of a bus that does not wait, beside what RUN lets pass. */
static void cost(void)
{
	static const char *const names[] = {"write", "read"};
	uint64_t before[2], after[2], beats[2];

	for (uint32_t op = NPU_KERNEL_WRITE; op <= NPU_KERNEL_READ; op++) {
		const uint64_t few = cycles_of(op, 1), many = cycles_of(op, 801);

		printf("figure fpga.npu.step_cycles.%s %.2f\n", names[op],
		       (double)(many - few) / 800);
	}
	b.api->traffic(b.slot, before, beats);
	(void)cycles_of(NPU_KERNEL_WRITE, 801);
	b.api->traffic(b.slot, after, beats);
	printf("figure fpga.npu.step_bursts %.3f\n",
	       (double)(after[0] - before[0] - 1) / 800);
}

/* ---- the bus --------------------------------------------------------------------------- */

static void one_space(struct rig *r)
{
	struct rig_memory cfg = rig_channels(r->api->channels);

	rig_reset(r, &cfg);
	rig_space(r, 0, WORK_SPACE, RIG_ALL);
}

/* Where nothing is: RUN says so until the machine is reset. */
static void bus_errors(struct rig *r)
{
	one_space(r);
	rig_push_end(r, 0);
	rig_bell(r, 0);
	stepped_flush();
	b.hole = true;
	r->api->run(r->model, 3000);
	CHECK(stepped.state & NPU_KERNEL_BUS, "an error of the bus is not told");
	b.hole = false;
	r->api->run(r->model, 0);
	CHECK(stepped.state & NPU_KERNEL_BUS, "an error of the bus is forgotten");
	one_space(r);
	r->api->run(r->model, 0);
	CHECK(!(stepped.state & NPU_KERNEL_BUS), "an error of the bus survives a reset");
	no_rule_broken("errors");

	/* Steps that cannot be read: the run ends, with nothing done. */
	start(MEMORY_AT, NOWHERE, BYTES, 9);
	wait_end();
	CHECK(b.strays == 2, "a step from nowhere: %llu bursts",
	      (unsigned long long)b.strays);
	b.strays = 0;
}

/* What lies beyond the memory reads as 0, and is not written. */
static void border(struct rig *r)
{
	uint32_t desc[16] = {0}, a, d;
	struct rng g = {3};
	uint8_t bytes[4096];

	one_space(r);
	a = rig_alloc(r, 0, 4096, 4096);
	d = rig_alloc(r, 0, 4096, 4096);
	rig_random(r, 0, d, 4096, &g);
	NPU_SET(desc, OPCODE, NPU_OP_VEC);
	NPU_SET(desc, VOP, NPU_VOP_COPY);
	NPU_SET(desc, DM, 4);
	NPU_SET(desc, VCOLS, 1024);
	NPU_SET(desc, LDA, 1024);
	NPU_SET(desc, LDD, 1024);
	NPU_SET(desc, ADDR_A, a);
	NPU_SET(desc, ADDR_D, d);
	rig_set_pte(r, 0, a, BYTES | NPU_PTE_VALID | NPU_PTE_WRITE);
	rig_push(r, 0, desc);
	NPU_SET(desc, ADDR_A, d); /* and back */
	NPU_SET(desc, ADDR_D, a);
	rig_push(r, 0, desc);
	rig_push_end(r, 0);
	rig_bell(r, 0);
	rig_wait(r, 1, 1000000);
	CHECK(rig_reg(r, NPU_SLOT_ADDR(0, FAULT_KIND)) == 0, "a fault at the border");
	rig_peek(r, 0, d, bytes, sizeof(bytes));
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		CHECK(bytes[i] == 0, "byte %u from beyond the memory is %#x", i,
		      bytes[i]);
	CHECK(!(stepped.state & NPU_KERNEL_BUS), "an error of the bus at the border");
	no_rule_broken("border");
}

/* Who drives the machine stops a slot of it between two runs of the kernel, inside a
 * descriptor, and has it go on in a third. */
static void folded(struct rig *r)
{
	const struct rig_rect all = {0, 0, r->api->rows, r->api->cols};
	struct rng g = {5};
	uint32_t desc[16], context[NPU_CONTEXT_WORDS], save;

	one_space(r);
	CHECK(rig_map(r, &all, 1) == NPU_MAP_OK, "map");
	rig_gemm_desc(r, 0, 400, 40, 30, desc, &g);
	rig_push(r, 0, desc);
	rig_push_end(r, 0);
	save = rig_alloc(r, 0, RIG_SAVE, 64);
	rig_write(r, NPU_SLOT_ADDR(0, SAVE), save);
	rig_bell(r, 0);
	rig_run(r, 4000);
	CHECK(!(r->ended & 1), "it has ended before it is stopped");
	rig_write(r, NPU_SLOT_ADDR(0, PREEMPT), NPU_PREEMPT_FOLD);
	rig_wait_reg(r, NPU_SLOT_ADDR(0, STATUS), 0xf, NPU_STATE_FOLDED, 100000);
	rig_run(r, 5000);
	CHECK(!(r->ended & 1), "it goes on by itself");
	rig_peek(r, 0, save, context, sizeof(context));
	CHECK(NPU_GET(context, FOLD_M) || NPU_GET(context, FOLD_N) ||
		      NPU_GET(context, FOLD_SUMS),
	      "a context that tells nothing");
	rig_forget(r, 0, save, RIG_SAVE);
	rig_write(r, NPU_SLOT_ADDR(0, RESUME), 1 | NPU_REG_BITS(RESUME_CONTEXT, 1));
	rig_wait(r, 1, 1000000);
	CHECK(!r->faulted, "a fault");
	rig_check(r, 0, "stopped between runs");
	no_rule_broken("stopped between runs");
}

/* ---- main ------------------------------------------------------------------------------ */

static void open_slot(const char *name)
{
	const char *dir = getenv("NPU_MODEL_DIR");
	union {
		void *object;
		npu_slot_entry_fn function;
	} entry;
	char path[512];
	void *lib;

	snprintf(path, sizeof(path), "%s/libnpu_slot_%s.so", dir ? dir : BENCH_SLOT_DIR,
		 name);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		printf("skipped: %s\n", dlerror());
		exit(77);
	}
	entry.object = dlsym(lib, NPU_SLOT_SYMBOL);
	b.api = entry.object ? entry.function() : NULL;
	b.slot = b.api ? b.api->create(behind, NULL) : NULL;
	if (!b.slot) {
		printf("%s: no slot\n", path);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static const uint32_t lazies[] = {0, 40, 170};
	const uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 2;
	const uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	static struct npu_model_api face;
	struct rig r = {.api = &face, .bytes = BYTES};
	uint64_t bursts[2], beats[2];

	if (argc < 2) {
		printf("usage: bench_kernel SHAPE [PROGRAMS [SEED]]\n");
		return 2;
	}
	open_slot(argv[1]);
	stepped_open(&face,
		     &(struct npu_model_shape){b.api->rows, b.api->cols, b.api->slots,
					       b.api->channels},
		     BYTES, carry_out);
	r.memory = stepped.memory = calloc(1, BYTES);
	for (uint32_t i = 0; i < sizeof(lazies) / sizeof(lazies[0]); i++) {
		if (i) { /* registers as after reset */
			b.api->destroy(b.slot);
			b.slot = b.api->create(behind, NULL);
		}
		b.api->lazy(b.slot, lazies[i], seed + i);
		registers();
		interrupts();
		refusals();
		reset_step();
		pieces();
		if (!lazies[i])
			cost();
		bus_errors(&r);
		border(&r);
		folded(&r);
		for (uint32_t p = 0; p < count; p++) {
			stepped_program(&r, seed + (uint64_t)i * count + p);
			no_rule_broken("programs");
		}
		b.api->traffic(b.slot, bursts, beats);
		printf("lazy %u: %llu cycles, bursts %llu read %llu written, beats %llu "
		       "and %llu\n",
		       lazies[i], (unsigned long long)b.api->cycle(b.slot),
		       (unsigned long long)bursts[0], (unsigned long long)bursts[1],
		       (unsigned long long)beats[0], (unsigned long long)beats[1]);
		CHECK(beats[0] > bursts[0] && beats[1] > bursts[1], "bursts of one beat");
	}
	rig_close(&r);
	b.api->destroy(b.slot);
	return bench_end("bench_kernel");
}
