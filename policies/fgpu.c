/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fgpu: fixed parts of the device, each with units and memory channels of its own.
 *
 * Fractional GPUs (Jain, Baik, Wang, Rajkumar 2019): a GPU is split once, its
 * multiprocessors by number and its memory by page colours, and an application is bound
 * to one part when it starts; what a part does takes the same time whatever the others
 * do. There parts are of the whole machine's configuration, persistent threads keep
 * kernels to their multiprocessors, and hash functions are found beforehand for one
 * model; here a part is a partition: with its first command it is made the device's units
 * over fgpu_parts and stays that, and one that has memory channels in common with another
 * part, or for which there is no part left, is refused.
 *
 * Good where nobody may notice the others, in units or in memory: times are the same
 * alone and beside a hog.  Bad for use: what one part leaves idle nobody else has (tidal
 * gives a tenant that is alone all of the device).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

enum colors { OWN, ANY };

struct fgpu {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	uint32_t parts, units; /* of a part */
	bool own;              /* channels */
	bool again;            /* one has come, or a plan was in the way */
};

static const struct hal_option_def options[] = {
	{"fgpu_parts", HAL_OPTION_INT, 1, HAL_POLICY_MOVES, NULL, "2",
	 "fgpu: equal parts of the device; as many partitions can have queues"},
	{"fgpu_colors", HAL_OPTION_ENUM, 0, 0, "own|any", "own",
	 "fgpu: each part has memory channels of its own, or what its partition has"},
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
	f->units = units / f->parts;
	f->own = host->option_int(cfg, "fgpu_colors") == OWN;
	*state = f;
	return 0;
}

/* All have their part. */
static void spread(struct fgpu *f)
{
	for (struct hal_policy_shared *s = f->all; s != NULL; s = s->next) {
		s->least = f->units;
		s->most = f->units;
	}
	f->again = hal_policy_spread(f->device, f->all) == -EBUSY;
}

/* Part can be one beside those there are. */
static int check(const struct fgpu *f, const struct hal_policy_partition *part)
{
	uint32_t count = 0;

	for (const struct hal_policy_shared *s = f->all; s != NULL; s = s->next, count++)
		if (f->own && (s->part->color_mask & part->color_mask) != 0)
			return f->host->fail(
				EINVAL,
				"fgpu: partitions %u and %u both have memory "
				"channels 0x%llx (color_mask; "
				"policy.fgpu_colors=any shares them)",
				s->part->index, part->index,
				(unsigned long long)(s->part->color_mask &
						     part->color_mask));
	if (count >= f->parts)
		return f->host->fail(ENOSPC,
				     "fgpu: all %u parts are taken, none is left for "
				     "partition %u (policy.fgpu_parts)",
				     f->parts, part->index);
	if (part->floor > f->units)
		return f->host->fail(ENOSPC,
				     "fgpu: partition %u needs %u units, one of %u parts "
				     "has %u (policy.fgpu_parts)",
				     part->index, part->floor, f->parts, f->units);
	return 0;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	bool first = hal_policy_shared(part->own) == NULL;
	struct fgpu *f = state;
	int err = first ? check(f, part) : 0;

	if (err == 0)
		err = hal_policy_share(f->host, &f->all, part, queue,
				       sizeof(struct hal_policy_shared));
	f->again |= err == 0 && first;
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
	if (queue == NULL && f->again)
		spread(f);
}

/* As they came. */
static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	struct fgpu *f = state;

	(void)part, (void)queue, (void)now_ns;
	if (f->again)
		spread(f);
	return 0;
}

extern const struct hal_policy hal_policy_fgpu;
const struct hal_policy hal_policy_fgpu = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "fgpu",
	.summary = "fixed parts, each with units and channels of its own",
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
