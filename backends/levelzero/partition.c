/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units of partition: tiles, command queue groups of a tile, or single engines.
 *
 * Tiles have compute units and memory of their own, and a command list of one tile never
 * runs on another: enforced.  Engines of a tile are only ways into the same compute
 * units; who keeps to engines of its own can still slow the others down: advisory, unless
 * the partition has all of them, or the tile is in a mode in which each engine has its
 * part of them.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>

/* True where engine i begins a unit. */
static bool begins(const struct lz_shape *s, uint32_t units, uint32_t i)
{
	const struct lz_engine *e = &s->engines[i];

	if (!i || units == LZ_UNITS_ENGINE || e->tile != e[-1].tile)
		return true;
	return units == LZ_UNITS_GROUP && e->ordinal != e[-1].ordinal;
}

/* Cuts the engines, which are sorted by tile, group and index, into units. */
int lz_shape_units(struct lz_shape *s, uint32_t units)
{
	uint32_t i;

	if (units == LZ_UNITS_AUTO)
		units = s->tile_count > 1 ? LZ_UNITS_TILE : LZ_UNITS_ENGINE;
	s->tile_units = units == LZ_UNITS_TILE;
	s->unit_count = 0;
	for (i = 0; i < s->engine_count; i++) {
		if (begins(s, units, i))
			s->units[s->unit_count++] = (struct lz_unit){.first = i};
		s->units[s->unit_count - 1].count++;
	}
	if (!s->unit_count)
		return lz_host->fail(ENODEV, "levelzero: %s has no compute engine",
				     s->props.name);
	return 0;
}

/* Has engine i compute units other than the one before it? */
static bool is_border(const struct lz_shape *s, uint32_t i)
{
	return s->split || i == 0 || i == s->engine_count ||
	       s->engines[i].tile != s->engines[i - 1].tile;
}

uint32_t lz_isolation(void *device, const struct hal_bk_partition_desc *desc)
{
	const struct lz_device *dev = device;
	const struct lz_shape *s = &dev->shape;
	const struct lz_unit *first, *last;

	if ((s->tile_count < 2 && !s->split) || !desc->units ||
	    desc->col >= s->unit_count || desc->units > s->unit_count - desc->col)
		return s->tile_units || s->split ? HAL_ISOLATION_ENFORCED
						 : HAL_ISOLATION_ADVISORY;
	first = &s->units[desc->col];
	last = first + desc->units - 1;
	return is_border(s, first->first) && is_border(s, last->first + last->count)
		       ? HAL_ISOLATION_ENFORCED
		       : HAL_ISOLATION_ADVISORY;
}

int lz_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			void **out)
{
	struct lz_device *dev = device;
	const struct lz_shape *s = &dev->shape;
	const struct lz_unit *first, *last;
	struct lz_partition *part;

	if (!desc->units || desc->col >= s->unit_count ||
	    desc->units > s->unit_count - desc->col)
		return lz_host->fail(EINVAL,
				     "levelzero: a partition of units %u to %u does not "
				     "fit: the device has %u units",
				     desc->col, desc->col + desc->units, s->unit_count);
	part = calloc(1, sizeof(*part));
	if (!part)
		return lz_host->fail(ENOMEM, "levelzero: no memory for a partition");
	part->base.desc = *desc;
	first = &s->units[desc->col];
	last = first + desc->units - 1;
	part->first = first->first;
	part->count = last->first + last->count - first->first;
	part->id = lz_id(dev);
	part->tile = s->engines[first->first].tile;
	part->home = s->root;
	if (part->tile == s->engines[last->first].tile)
		part->home = s->tiles[part->tile];
	*out = part;
	return 0;
}

int lz_partition_destroy(void *device, void *partition)
{
	struct lz_partition *part = partition;

	(void)device;
	if (part->base.queues || part->base.buffers)
		return lz_host->fail(
			EBUSY,
			"levelzero: partition %u still has %u queues and %u buffers",
			part->base.desc.index, part->base.queues, part->base.buffers);
	free(part);
	return 0;
}
