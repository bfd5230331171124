/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_random.c - programs of every operation, with every flag and odd shapes, on every
 * slot at once, against the golden model: memory byte by byte, MAC counters, and where a
 * program ends in a bad descriptor, the fault it stops with.
 *
 *   bench_random [COUNT [SEED [SHAPE]]]
 *
 * Program i has the seed SEED + i, so that one that fails can be run alone.
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"
#include "work.h"

#define JOBS    8
#define UNUSUAL 0xFFu

struct job {
	uint32_t desc[JOBS][16];
	uint32_t count;
	uint32_t bad[16], kind, address; /* kind 0: the program ends well */
};

/* ---- descriptors that must fault ------------------------------------------------- */

static int refuse_read(void *user, uint32_t va, void *data, uint32_t bytes, uint32_t *bad)
{
	(void)user;
	(void)va;
	(void)data;
	(void)bytes;
	(void)bad;
	return (int)UNUSUAL;
}

static int refuse_write(void *user, uint32_t va, const void *data, uint32_t bytes,
			uint32_t *bad)
{
	(void)user;
	(void)va;
	(void)data;
	(void)bytes;
	(void)bad;
	return (int)UNUSUAL;
}

/* Breaks one field.  A machine finds an empty window when it comes to it, so that only
 * the first one leaves memory as it was. */
static void break_desc(uint32_t desc[16], struct rng *g)
{
	switch (rng_range(g, 0, 14)) {
	case 0:
		NPU_SET(desc, OPCODE, rng_range(g, NPU_OP_TIMESTAMP + 1, 255));
		break;
	case 1:
		NPU_SET(desc, VOP, rng_range(g, NPU_VOP_SOFTMAX + 1, 255));
		break;
	case 2:
		NPU_SET(desc, DM, 0);
		break;
	case 3:
		NPU_SET(desc, OW, 0);
		break;
	case 4:
		NPU_SET(desc, PANEL, 0);
		break;
	case 5:
		NPU_SET(desc, DN, 0);
		break;
	case 6:
		NPU_SET(desc, CIN, 0);
		break;
	case 7:
		NPU_SET(desc, KH, 0);
		break;
	case 8:
		NPU_SET(desc, SX, 0);
		break;
	case 9:
		NPU_SET(desc, DY, 0);
		break;
	case 10:
		NPU_SET(desc, F_GROUP, 1);
		NPU_SET(desc, F_BLOCK, 0);
		break;
	case 11:
		NPU_SET(desc, F_GROUP, 1);
		NPU_SET(desc, F_NOPARAM, 1);
		break;
	case 12:
		NPU_SET(desc, F_GROUP, 1);
		NPU_SET(desc, GC, 0);
		break;
	case 13:
		NPU_SET(desc, PT, NPU_GET(desc, KH));
		break;
	default:
		desc[rng_range(g, 5, 12)] = 0;
	}
}

/* What the golden model says of it before any memory is touched; 0: nothing. */
static void add_bad(struct rig *r, uint32_t s, struct job *job,
		    const struct rig_rect *rect, struct rng *g)
{
	struct npu_golden_env env = {.read = refuse_read,
				     .write = refuse_write,
				     .rows = rect->rows,
				     .cols = rect->cols};
	struct npu_golden_result result;
	uint32_t word;

	work_desc(r, s, job->bad, true, g);
	if (rect->rows)
		break_desc(job->bad, g);
	npu_golden_exec(job->bad, &env, &result);
	if (result.fault == UNUSUAL || !result.fault)
		return;
	/* Found on the way: panels before the one that does not fit may be stored. */
	if (result.fault == NPU_FAULT_FIELD &&
	    npu_golden_check(job->bad, &word) == NPU_FAULT_NONE)
		return;
	job->kind = result.fault;
	job->address = result.address;
	rig_push(r, s, job->bad);
}

/* ---- one program a slot ---------------------------------------------------------- */

static void make_job(struct rig *r, uint32_t s, const struct rig_rect *rect,
		     struct job *job, struct rng *g)
{
	uint32_t want = rng_range(g, 1, JOBS);
	const struct rig_space *sp = &r->space[s];

	memset(job, 0, sizeof(*job));
	while (job->count < want && WORK_SPACE - sp->free_va > 2 * WORK_ROOM) {
		work_desc(r, s, job->desc[job->count], rect->rows != 0, g);
		work_connect(job->desc, job->count, g);
		rig_push(r, s, job->desc[job->count++]);
	}
	rig_golden(r, s);
	if (rng_next(g) % 3 == 0)
		add_bad(r, s, job, rect, g);
	if (!job->kind) {
		rig_push_end(r, s);
		rig_golden(r, s);
	}
}

/* The descriptor whose output lies where memory is first wrong. */
static uint32_t culprit(struct rig *r, uint32_t s, const struct job *job)
{
	const struct rig_space *sp = &r->space[s];
	uint32_t va = 0, found = 0, best = 0;
	uint8_t byte;

	for (; va < WORK_SPACE; va++) {
		rig_peek(r, s, va, &byte, 1);
		if (byte != sp->shadow[va])
			break;
	}
	for (uint32_t i = 0; i < job->count; i++) {
		uint32_t d = NPU_GET(job->desc[i], ADDR_D);

		if (d <= va && d >= best) {
			best = d;
			found = i;
		}
	}
	return found;
}

static void print_desc(const char *name, const uint32_t desc[16])
{
	static const char *const ops[] = {"NOP",    "GEMM", "CONV",     "VEC",
					  "SIGNAL", "WAIT", "TIMESTAMP"};
	static const char *const vops[] = {"COPY", "FILL",    "ADD", "RELU",   "MAXPOOL",
					   "MUL",  "AVGPOOL", "LUT", "SOFTMAX"};
	uint32_t op = NPU_GET(desc, OPCODE), vop = NPU_GET(desc, VOP);

	printf("  %s: %s %s, words", name, op <= NPU_OP_TIMESTAMP ? ops[op] : "?",
	       op != NPU_OP_VEC         ? ""
	       : vop <= NPU_VOP_SOFTMAX ? vops[vop]
					: "?");
	for (int i = 0; i < 16; i++)
		printf(" %08x", desc[i]);
	printf("\n");
}

static void check_job(struct rig *r, uint32_t s, const struct job *job, const char *what)
{
	uint64_t failed = bench_failures;
	uint32_t kind = rig_reg(r, NPU_SLOT_ADDR(s, FAULT_KIND));
	uint32_t address = rig_reg(r, NPU_SLOT_ADDR(s, FAULT_ADDR));
	uint32_t desc = rig_reg(r, NPU_SLOT_ADDR(s, FAULT_DESC));

	CHECK(kind == job->kind, "%s: slot %u ends with fault %u, not %u", what, s, kind,
	      job->kind);
	if (kind && kind == job->kind) {
		CHECK(address == job->address, "%s: slot %u: fault %u at %u, not %u",
		      what, s, kind, address, job->address);
		CHECK(desc == job->count, "%s: slot %u: descriptor %u faults, not %u",
		      what, s, desc, job->count);
	}
	rig_compare(r, s, what);
	rig_counters(r, s, true);
	if (failed == bench_failures)
		return;
	print_desc("descriptor", job->desc[culprit(r, s, job)]);
	if (job->kind)
		print_desc("bad one", job->bad);
}

static void program(struct rig *r, uint64_t seed, uint64_t *cycles)
{
	struct rng g = {.state = seed * UINT64_C(0x2545F4914F6CDD1D)};
	struct rig_memory cfg = work_memory(r, &g);
	static struct job jobs[RIG_SLOTS];
	struct rig_rect rects[RIG_SLOTS];
	uint64_t failed = bench_failures;
	uint32_t slots;

	work_map(r, rects, &slots, &g);
	rig_reset(r, &cfg);
	CHECK(rig_map(r, rects, RIG_SLOTS) == NPU_MAP_OK, "map");
	for (uint32_t s = 0; s < slots; s++) {
		rig_space(r, s, WORK_SPACE, RIG_ALL);
		rig_write(r, NPU_GLB_AT(SLOT_CTRL, s),
			  NPU_REG_BITS(SLOT_CTRL_SERIAL, rng_next(&g) % 4 == 0));
		make_job(r, s, &rects[s], &jobs[s], &g);
	}
	for (uint32_t s = 0; s < slots; s++)
		rig_bell(r, s);
	rig_wait(r, (1u << slots) - 1, 20000000);
	for (uint32_t s = 0; s < slots; s++) {
		char what[96];

		snprintf(what, sizeof(what), "seed %llu on %ux%u at %u,%u",
			 (unsigned long long)seed, rects[s].rows, rects[s].cols,
			 rects[s].row, rects[s].col);
		check_job(r, s, &jobs[s], what);
	}
	CHECK(r->api->idle(r->model), "seed %llu: not idle after the last job",
	      (unsigned long long)seed);
	if (failed != bench_failures)
		printf("failed: bench_random 1 %llu\n", (unsigned long long)seed);
	*cycles += r->api->cycle(r->model);
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 40;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1, cycles = 0;
	const char *shape = argc > 3 ? argv[3] : "16x16x4x8";
	struct rig r;

	rig_open(&r, shape, UINT64_C(1) << 26);
	for (uint64_t i = 0; i < count && bench_failures < 20; i++)
		program(&r, seed + i, &cycles);
	printf("%s: %llu programs, %llu cycles\n", shape, (unsigned long long)count,
	       (unsigned long long)cycles);
	rig_close(&r);
	return bench_end("bench_random");
}
