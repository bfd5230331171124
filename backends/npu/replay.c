/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - option durations: engines that know write down how long each descriptor
 * took; engine=replay takes these times and computes nothing.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

/* Colours are channels here: device.c refuses caches with durations=.  A device that does
 * not tell its channels has all of them in each partition. */
static uint64_t channels_of(const struct npu_partition *part)
{
	uint64_t colors = npu_colors(part);

	return colors ? colors : (UINT64_C(1) << part->dev->opt.channels) - 1;
}

static struct npu_place place_of(const struct npu_partition *part,
				 const struct hal_bk_partition_desc *rect)
{
	const struct npu_options *o = &part->dev->opt;

	return (struct npu_place){.rows = rect->rows,
				  .cols = rect->cols,
				  .channels = channels_of(part),
				  .serial = part->host->serial,
				  .all = o->channels,
				  .seed = o->hash_seed,
				  .gran = o->gran,
				  .ideal = o->ideal};
}

/* A partition that has channels of mask, other than but. */
static const struct npu_partition *shares(const struct npu_device *dev, uint64_t mask,
					  const struct npu_partition *but)
{
	for (uint32_t i = 0; !dev->opt.ideal && i < dev->opt.slots; i++) {
		const struct npu_partition *p = dev->parts[i];

		if (p && p != but && channels_of(p) & mask)
			return p;
	}
	return NULL;
}

/* ---- the machine tells and asks, from inside npu_run ------------------------------- */

static void on_desc(void *user, uint32_t slot, uint32_t head)
{
	struct npu_device *dev = user;
	struct npu_partition *part = dev->parts[slot];
	struct npu_place place;
	uint64_t self, cycle = dev->api->cycle(dev->model), together;
	uint32_t desc[16];

	if (!part)
		return;
	memcpy(desc,
	       npu_bytes(part->loaded->ring, (uint64_t)(head & (NPU_RING - 1)) * 64,
			 &together),
	       sizeof(desc));
	place = place_of(part->loaded, &part->desc);
	self = npu_desc_hash(&place, desc);
	if (!dev->opt.replay && part->changes == dev->changes && !part->limited &&
	    !shares(dev, place.channels, part)) {
		npu_durations_add(dev->durations, npu_duration_key(part->ahead, self),
				  cycle - part->since);
		npu_durations_add(dev->durations, npu_duration_key(NPU_AFTER_ANY, self),
				  cycle - part->since);
	}
	part->ahead = self;
	part->since = cycle;
	part->changes = dev->changes;
	part->ring_empty = head + 1 == part->tail;
}

/* Commands are let in only when their own descriptors are known; fences between them can
 * come behind each other as never before. */
static uint64_t on_cost(void *user, uint32_t slot, const uint32_t desc[16])
{
	const struct npu_device *dev = user;
	const struct npu_partition *part = dev->parts[slot];
	struct npu_place place;
	uint64_t self, cycles;

	if (!part)
		return 1;
	place = place_of(part->loaded, &part->desc);
	self = npu_desc_hash(&place, desc);
	if (npu_durations_get(dev->durations, npu_duration_key(part->ahead, self),
			      &cycles) ||
	    npu_durations_get(dev->durations, npu_duration_key(NPU_AFTER_ANY, self),
			      &cycles))
		return cycles;
	return 1;
}

int npu_replay_open(struct npu_device *dev)
{
	const struct npu_options *o = &dev->opt;
	int rc;

	if (o->replay && !o->durations[0])
		return npu_fail(EINVAL, "npu: engine=replay needs durations=FILE, which "
					"engine=rtl or fast writes");
	if (!o->durations[0])
		return 0;
	if (!o->replay && strcmp(o->engine, "golden") == 0)
		return npu_fail(EINVAL,
				"npu: durations=: engine=golden cannot record times, as "
				"its cycles are estimates; use engine=rtl or fast");
	rc = npu_durations_open(o->durations, !o->replay, &dev->durations);
	if (rc)
		return rc;
	dev->api->on_desc(dev->model, on_desc, dev);
	if (o->replay)
		dev->api->replay(dev->model, on_cost, dev);
	return 0;
}

/* ---- the ring --------------------------------------------------------------------- */

void npu_doorbell(struct npu_partition *part)
{
	struct npu_device *dev = part->dev;
	bool empty = part->ring_empty;

	part->ring_empty = false;
	if (empty)
		part->ahead = NPU_AFTER_EMPTY;
	npu_write(dev, NPU_SLOT_ADDR(part->slot, TAIL), part->tail);
	if (empty) {
		part->since = dev->api->cycle(dev->model);
		part->changes = dev->changes;
	}
}

/* ---- what is refused -------------------------------------------------------------- */

static bool known(const struct npu_durations *d, const struct npu_place *place,
		  const uint32_t desc[16])
{
	uint64_t cycles;

	return npu_durations_get(
		d, npu_duration_key(NPU_AFTER_ANY, npu_desc_hash(place, desc)), &cycles);
}

int npu_replay_check(const struct npu_partition *part,
		     const struct hal_bk_partition_desc *rect,
		     const struct hal_bk_cmd *cmd)
{
	const struct npu_device *dev = part->dev;
	uint32_t desc[16] = {0}, i = 0;
	struct npu_place place;
	char what[64];
	bool all;

	if (!dev->opt.replay)
		return 0;
	place = place_of(part, rect);
	NPU_SET(desc, OPCODE, NPU_OP_TIMESTAMP); /* each command has them */
	all = known(dev->durations, &place, desc);
	while (all && npu_body_desc(part, cmd, i, desc)) {
		all = known(dev->durations, &place, desc);
		i += all;
	}
	if (all)
		return 0;
	return npu_fail(ENOTSUP,
			"npu: engine=replay: %s has no recorded time of descriptor %u of "
			"%s on %u x %u PEs and channels 0x%llx; run the same command "
			"with engine=rtl and durations=%s to record it",
			dev->opt.durations, i, npu_command_text(cmd, what, sizeof(what)),
			place.rows, place.cols, (unsigned long long)place.channels,
			dev->opt.durations);
}

int npu_replay_partition(const struct npu_device *dev, const struct npu_partition *part)
{
	const struct npu_partition *other;

	if (!dev->opt.replay || dev->opt.replay_shared)
		return 0;
	other = shares(dev, channels_of(part), NULL);
	if (!other)
		return 0;
	return npu_fail(ENOTSUP,
			"npu: engine=replay: recorded times are of partitions that share "
			"no channel, but partition %u shares channels of 0x%llx; give "
			"each partition its own color_mask, or set replay_shared=accept",
			other->slot, (unsigned long long)channels_of(part));
}
