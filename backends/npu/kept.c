/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.c - what a KILL leaves of a command: the descriptors that had ended.
 *
 * Outputs of a descriptor are whole when HEAD has moved behind it, and none of a later
 * one is stored before.  So a command that is dropped goes on with the descriptor that it
 * was in, if that can run again: if it stores nothing where it reads.  Else, and where
 * others have used the memory of its intermediates meanwhile, it begins anew.
 */
#include "kept.h"

#include <errno.h>

#include "complete.h"
#include "ring.h"

/* ---- descriptors that can run again ------------------------------------------------- */

struct range {
	uint64_t from, to;
};

/* Rows of so many bytes, the next one pitch behind. */
static struct range rows(uint32_t at, uint64_t count, uint64_t pitch, uint64_t bytes)
{
	struct range r = {at, at + (count - 1) * pitch + bytes};

	return count && bytes ? r : (struct range){0, 0};
}

static bool meet(struct range a, struct range b)
{
	return a.from < b.to && b.from < a.to;
}

static struct range image(const uint32_t *d)
{
	return rows(NPU_GET(d, ADDR_A), NPU_GET(d, H), NPU_GET(d, LDA),
		    ((uint64_t)NPU_GET(d, W) - 1) * NPU_GET(d, PIX) + NPU_GET(d, CIN));
}

static bool array_again(const uint32_t *d)
{
	uint64_t m = NPU_GET(d, DM), n = NPU_GET(d, DN), k = NPU_GET(d, CIN);
	bool conv = NPU_GET(d, OPCODE) == NPU_OP_CONV;
	struct range a, b, p, out;

	a = conv ? image(d) : rows(NPU_GET(d, ADDR_A), m, NPU_GET(d, LDA), k);
	if (conv && NPU_GET(d, F_GROUP))
		k = NPU_GET(d, GC);
	if (conv)
		k *= (uint64_t)NPU_GET(d, KH) * NPU_GET(d, KW);
	b = NPU_GET(d, F_BLOCK) ? rows(NPU_GET(d, ADDR_B), 1, 0, (n + 15) / 16 * 16 * k)
				: rows(NPU_GET(d, ADDR_B), k, NPU_GET(d, LDB), n);
	p = rows(NPU_GET(d, ADDR_P), 1, 0, NPU_GET(d, F_NOPARAM) ? 0 : 16 * n);
	out = rows(NPU_GET(d, ADDR_D), m, NPU_GET(d, LDD),
		   NPU_GET(d, F_OUT32) ? 4 * n : n);
	return !meet(out, a) && !meet(out, b) && !meet(out, p);
}

static bool vec_again(const uint32_t *d)
{
	uint32_t op = NPU_GET(d, VOP), m = NPU_GET(d, DM);
	bool pool = op == NPU_VOP_MAXPOOL || op == NPU_VOP_AVGPOOL;
	bool two = op == NPU_VOP_ADD || op == NPU_VOP_MUL;
	uint32_t bytes = pool ? NPU_GET(d, CIN) : NPU_GET(d, VCOLS);
	uint32_t table = op == NPU_VOP_LUT ? 256 : op == NPU_VOP_SOFTMAX ? 1024 : 0;
	struct range out = rows(NPU_GET(d, ADDR_D), m, NPU_GET(d, LDD), bytes);
	struct range a =
		pool ? image(d) : rows(NPU_GET(d, ADDR_A), m, NPU_GET(d, LDA), bytes);

	if (op == NPU_VOP_FILL)
		return true;
	return !meet(out, a) &&
	       !(two &&
		 meet(out, rows(NPU_GET(d, ADDR_B), m, NPU_GET(d, VLDB), bytes))) &&
	       !meet(out, rows(NPU_GET(d, ADDR_P), 1, 0, table));
}

bool npu_can_run_again(const uint32_t d[16])
{
	switch (NPU_GET(d, OPCODE)) {
	case NPU_OP_GEMM:
	case NPU_OP_CONV:
		return array_again(d);
	case NPU_OP_VEC:
		return vec_again(d);
	default:
		return true;
	}
}

uint32_t npu_killed_entry(const struct npu_command *c, uint32_t done)
{
	uint32_t desc[16], index;

	if (!npu_is_body(c, done, &index) || !(c->cmd.flags & HAL_CMD_REPLAYABLE))
		return done;
	/* What is recorded is how long a descriptor takes behind the one before it. */
	if (npu_space_of(c)->dev->durations)
		return 0;
	npu_entry(c, done, desc);
	return npu_can_run_again(desc) ? done : 0;
}

/* ---- between the KILL and the next time ---------------------------------------------- */

static const void *kernel_of(const struct npu_command *c)
{
	return c->cmd.op == HAL_OP_LAUNCH ? c->cmd.launch.kernel : NULL;
}

void npu_cancel(struct npu_partition *part, struct npu_command *c, bool ran,
		uint64_t lost_ns)
{
	uint32_t entry = npu_killed_entry(c, npu_completed(part, c));
	struct npu_queue *q = c->queue;
	uint64_t ran_ns;

	if (c->scratch) /* goes with it */
		entry = 0;
	npu_set_done(part, c, -ECANCELED);
	if (!ran)
		c->event.start_ns = c->event.end_ns;
	if (!entry)
		return;
	ran_ns = c->event.end_ns - c->event.start_ns;
	q->kept = (struct npu_kept){.kernel = kernel_of(c),
				    .op = c->cmd.op,
				    .sequence = c->sequence,
				    .entry = entry};
	q->kept.ran_ns = c->ran_ns + (ran_ns > lost_ns ? ran_ns - lost_ns : 0);
}

void npu_goes_on(struct npu_queue *q, struct npu_command *c)
{
	struct npu_kept k = q->kept;

	q->kept.entry = 0;
	if (!k.entry || k.op != c->cmd.op || k.kernel != kernel_of(c) ||
	    !npu_scratch_whole(q->part, &c->cmd, k.sequence))
		return;
	c->base = c->fed = k.entry;
	c->ran_ns = k.ran_ns;
}
