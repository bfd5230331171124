/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fgpu: fixed equal parts of the device, each with its own units and memory channels.
 *
 * Promise: each partition that has queues is one part.  When its first command becomes
 * runnable, the partition is resized to the device's units / fgpu_parts, within its floor
 * and ceiling and in whole columns of a grid, and it keeps that size.  Creating the first
 * queue of a partition fails in three cases: no part is left, the partition's floor is
 * larger than a part, or the partition has memory channels in common with another part
 * (allowed with fgpu_colors = any).
 * Queues: all alike; within a partition they are served in order of arrival.
 * Options: fgpu_parts, fgpu_colors.
 *
 * Follows Fractional GPUs (Jain, Baik, Wang, Rajkumar, "Fractional GPUs: Software-based
 * Compute and Memory Bandwidth Reservation for GPUs", 2019).  It splits a GPU once, its
 * multiprocessors by number and its memory by page colours, and binds each application to
 * one part at start.  A part's run times do not depend on the other parts.  Differences:
 * there persistent threads keep kernels on their multiprocessors, and the address hash is
 * found beforehand for one GPU model.  Here a part is a partition, which the device
 * isolates.
 *
 * Good where tenants must not affect each other, neither in units nor in memory: run
 * times are the same alone and beside a heavy tenant.  Bad for utilization: no other
 * partition can use the units of an idle part (tidal gives a tenant that is alone the
 * whole device).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

/* Values of the option fgpu_colors. */
enum colors { COLORS_OWN, COLORS_ANY };

struct fgpu {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	uint32_t parts;          /* option fgpu_parts */
	uint32_t units_per_part; /* the device's units / parts */
	bool own_channels;       /* parts may not have memory channels in common */
	/* Call resize_parts again: a partition was added, or the last call failed because
	 * earlier moves were under way. */
	bool resize_due;
};

static const struct hal_option_def options[] = {
	{"fgpu_parts", HAL_OPTION_INT, 1, HAL_POLICY_MOVES, NULL, "2",
	 "fgpu: number of equal parts of the device; each takes one partition with "
	 "queues"},
	{"fgpu_colors", HAL_OPTION_ENUM, 0, 0, "own|any", "own",
	 "fgpu: own: partitions may not have memory channels in common; any: they may"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct fgpu *f = calloc(1, sizeof(*f));
	uint32_t units = device->info->unit_rows * device->info->unit_cols;

	if (f == NULL)
		return host->fail(ENOMEM, "fgpu: no memory");
	f->host = host;
	f->device = device;
	f->parts = (uint32_t)host->option_int(cfg, "fgpu_parts");
	f->units_per_part = units / f->parts;
	f->own_channels = host->option_int(cfg, "fgpu_colors") == COLORS_OWN;
	*state = f;
	return 0;
}

/* Resize every partition that has queues to the units of one part. */
static void resize_parts(struct fgpu *f)
{
	for (struct hal_policy_shared *s = f->all; s != NULL; s = s->next) {
		s->least = f->units_per_part;
		s->most = f->units_per_part;
	}
	f->resize_due = hal_policy_spread(f->device, f->all) == -EBUSY;
}

/* Check that partition part can become one of the fixed parts.  Return 0, or -errno after
 * reporting the reason with host->fail. */
static int check_part_available(const struct fgpu *f,
				const struct hal_policy_partition *part)
{
	uint32_t count = 0;

	for (const struct hal_policy_shared *s = f->all; s != NULL; s = s->next, count++)
		if (f->own_channels && (s->part->color_mask & part->color_mask) != 0)
			return f->host->fail(
				EINVAL,
				"fgpu: partitions %u and %u both have memory "
				"channels 0x%llx; give them disjoint color_mask "
				"values, or set policy.fgpu_colors=any to share channels",
				s->part->index, part->index,
				(unsigned long long)(s->part->color_mask &
						     part->color_mask));
	if (count >= f->parts)
		return f->host->fail(ENOSPC,
				     "fgpu: all %u parts are taken, none is left for "
				     "partition %u; raise policy.fgpu_parts",
				     f->parts, part->index);
	if (part->floor > f->units_per_part)
		return f->host->fail(
			ENOSPC,
			"fgpu: partition %u has a floor of %u units, but "
			"each of the %u parts has %u; lower its units_floor or "
			"policy.fgpu_parts",
			part->index, part->floor, f->parts, f->units_per_part);
	return 0;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	bool first = hal_policy_shared(part->own) == NULL;
	struct fgpu *f = state;
	int err = first ? check_part_available(f, part) : 0;

	if (err == 0)
		err = hal_policy_share(f->host, &f->all, part, queue,
				       sizeof(struct hal_policy_shared));
	f->resize_due |= err == 0 && first;
	return err;
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct fgpu *f = state;

	hal_policy_unshare(&f->all, part, queue);
}

static void changed(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct fgpu *f = state;

	(void)part;
	if (queue == NULL && f->resize_due)
		resize_parts(f);
}

/* Return the same key for all queues: the engine serves equal keys in order of arrival.
 */
static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	struct fgpu *f = state;

	(void)part, (void)queue, (void)now_ns;
	if (f->resize_due)
		resize_parts(f);
	return 0;
}

extern const struct hal_policy hal_policy_fgpu;
const struct hal_policy hal_policy_fgpu = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "fgpu",
	.summary = "fixed equal parts, each with its own units and channels",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.changed = changed,
	.key = key,
};
