/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds=yes: kernels reach their partition's memory alone.  Each partition has a range
 * of addresses (range.c), programs are rewritten as they are loaded (ptx/, pass BOUNDS)
 * so that every access of global memory is held against a range, and a launch brings its
 * partition's along: one program serves queues of several partitions.
 *
 * The range ends where nothing of the partition's is mapped behind.  What is outside is
 * neither read nor written; in it, where a buffer was freed, is a fault as ever.  A
 * launch that was kept from something says so in a word of pinned memory, one a slot of
 * its queue, and fails: what it computed from zeros is not told to have gone well.  What
 * cannot be rewritten is not loaded.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cu_fence_open(const struct cu_device *dev)
{
	if (dev->opt.vmm)
		return 0;
	return cu_host->fail(EINVAL,
			     "cuda:%u: bounds=yes needs memory=vmm, which places buffers "
			     "in their partition's address range",
			     dev->index);
}

/* ---- programs ---------------------------------------------------------------------- */

static int find(const struct ptx *m, const char *name, uint32_t *number)
{
	uint32_t i, bytes;

	for (i = 0; i < ptx_kernels(m); i++) {
		const char *other = ptx_kernel_name(m, i, &bytes);

		if (strlen(name) == bytes && memcmp(name, other, bytes) == 0) {
			*number = i;
			return 0;
		}
	}
	return cu_host->fail(EINVAL, "cuda: bounds=yes: the PTX has no kernel %s", name);
}

/* Of the kernels that can be launched each has to be. */
static int rewrite(const struct cu_program *prog, const struct ptx *m, char **text,
		   size_t *bytes)
{
	bool *which = calloc(ptx_kernels(m) + 1u, sizeof(*which));
	uint32_t i, number = 0;
	char why[PTX_WHY];
	int err = 0;

	if (!which)
		return cu_host->fail(ENOMEM, "cuda: no memory for a program");
	for (i = 0; !err && i < prog->count; i++) {
		const char *name = prog->kernels[i].info.name;

		err = find(m, name, &number);
		if (err)
			break;
		which[number] = true;
		err = ptx_check(m, number, PTX_BOUNDS, why);
		if (err)
			cu_host->fail(-err, "cuda: bounds=yes: kernel %s: %s", name, why);
	}
	if (!err) {
		err = ptx_rewrite(m, PTX_BOUNDS, which, text, bytes, why);
		if (err)
			cu_host->fail(-err, "cuda: bounds=yes: %s", why);
	}
	free(which);
	return err;
}

int cu_fence_rewrite(const struct cu_program *prog, char **text, size_t *bytes)
{
	struct ptx *m;
	char why[PTX_WHY];
	int err;

	if (prog->format != HAL_CUDA_PTX)
		return cu_host->fail(
			ENOTSUP,
			"cuda: bounds=yes: only programs in PTX can be kept to their "
			"partition's memory; this one is a cubin or fatbin");
	err = ptx_parse((const char *)prog->code, prog->code_bytes, &m, why);
	if (err)
		return cu_host->fail(-err, "cuda: bounds=yes: %s", why);
	err = rewrite(prog, m, text, bytes);
	ptx_free(m);
	return err;
}

/* ---- launches ---------------------------------------------------------------------- */

int cu_fence_make(struct cu_device *dev, struct cu_queue *q)
{
	const uint64_t bytes = q->base.slot_count * sizeof(uint32_t);
	void *pinned = NULL;
	int err = cu_pin(dev, bytes, &pinned, &q->astray_at);

	if (err)
		return err;
	memset(pinned, 0, bytes);
	q->astray = pinned;
	return 0;
}

static int refuse(const struct cu_kernel *k, uint32_t i, const char *what)
{
	return cu_host->fail(EINVAL,
			     "cuda: kernel %s: argument %u is %s; with bounds=yes "
			     "kernels reach only their partition's address range",
			     k->info.name, i, what);
}

int cu_fence_check(const struct cu_queue *q, const struct hal_bk_cmd *cmd)
{
	uint32_t i;

	for (i = 0; i < cmd->launch.arg_count; i++) {
		const struct cu_mem *mem = cmd->launch.args[i].mem;

		if (!mem || mem->place.range == cu_part(q)->range)
			continue;
		return refuse(cmd->launch.kernel, i,
			      mem->place.range ? "another partition's memory"
			      : mem->host ? "a mappable buffer, which is in host memory"
					  : "memory imported from the application");
	}
	return 0;
}

static uint32_t number_of(const struct cu_queue *q, const struct cu_slot *s)
{
	return (uint32_t)(s - q->slots);
}

struct ptx_range cu_fence_of(struct cu_device *dev, const struct cu_queue *q,
			     const struct cu_slot *s)
{
	struct ptx_range r;

	if (!atomic_load_explicit(&dev->fenced, memory_order_relaxed))
		atomic_store(&dev->fenced, true);
	r = cu_range_of(cu_part(q)->range);
	r.astray = q->astray_at + number_of(q, s) * sizeof(uint32_t);
	return r;
}

bool cu_fence_is_astray(const struct cu_queue *q, const struct cu_slot *s)
{
	return s->base.cmd.op == HAL_OP_LAUNCH &&
	       __atomic_load_n(&q->astray[number_of(q, s)], __ATOMIC_ACQUIRE);
}

bool cu_fence_astray(struct cu_queue *q, const struct cu_slot *s)
{
	if (!cu_fence_is_astray(q, s))
		return false;
	stream_break(&q->base, "access outside its partition's range");
	q->base.wrong |= s == cu_slot(q, 0);
	return true;
}
