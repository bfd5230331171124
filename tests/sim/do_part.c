/* SPDX-License-Identifier: Apache-2.0 */
/* do_part.c - operations on partitions: made, moved, destroyed. */
#include <errno.h>
#include <string.h>

#include <hal/ext/memory.h>

#include "sim.h"

/* In the order of script.c. */
enum { UNITS, RECTANGLE, ROW, COL, ROWS, COLS, CEILING };

struct sim_part *sim_part_at(struct sim *s, uint32_t i)
{
	for (uint32_t n = 0; n < PARTS; n++, i++)
		if (s->parts[i % PARTS].p)
			return &s->parts[i % PARTS];
	return NULL;
}

static uint32_t floor_of(const struct hal_partition_desc *d)
{
	return d->rows != 0 ? (uint32_t)d->rows * d->cols : d->units_floor;
}

static uint32_t ceiling_of(const struct hal_partition_desc *d)
{
	return d->units_ceiling != 0 ? d->units_ceiling : floor_of(d);
}

static void units(const struct sim *s, const uint32_t *p, struct hal_partition_desc *d)
{
	uint32_t rows = s->info.unit_rows, cols = s->info.unit_cols, least;

	if (!p[RECTANGLE]) {
		d->units_floor = 1 + p[UNITS] % (rows * cols / 2 + 1);
	} else {
		d->row = (uint16_t)(p[ROW] % rows);
		d->col = (uint16_t)(p[COL] % cols);
		d->rows = (uint16_t)(1 + p[ROWS] % (rows - d->row));
		d->cols = (uint16_t)(1 + p[COLS] % ((cols - d->col + 1) / 2));
	}
	/* Sometimes the policy may let it grow. */
	least = floor_of(d);
	if ((s->info.caps & HAL_CAP_RESIZE_IDLE) != 0 && least <= rows * cols &&
	    p[CEILING] >= 32)
		d->units_ceiling = least + p[CEILING] % (rows * cols - least + 1);
}

/* The partition whose guest it will be; NULL: it will have units of its own. */
static struct sim_part *host_of(struct sim *s, uint32_t guest)
{
	struct sim_part *part;

	if (guest < 14 || s->info.guests_max == 0)
		return NULL;
	part = sim_part_at(s, guest - 14);
	return part ? part->host : NULL;
}

/* One that it may have: of a guest, of its host's. */
static int color(struct sim *s, const struct sim_part *host, uint32_t p, uint64_t *mask)
{
	struct hal_partition_info info = HAL_INIT(hal_partition_info);

	if (s->info.colors <= 1 || p < 16)
		return 0;
	*mask = UINT64_C(1) << p % s->info.colors;
	if (!host)
		return 0;
	SIM_OK(hal_partition_get_info(host->p, &info));
	*mask &= info.color_mask;
	return 0;
}

/* More than its quota: on the device is room for what a command uses, and for hardly more
 * than one queue's.  On the NPU programs' constants are there as well. */
static void lend(const struct sim *s, uint32_t memory, uint32_t limit,
		 struct hal_partition_desc *d, uint64_t *most)
{
	d->memory_bytes = (s->ref ? 24576 : 65536) + 4096 * (uint64_t)(memory % 6);
	*most = d->memory_bytes + 16384 * (uint64_t)(limit % 16 + 1);
}

int do_part_create(struct sim *s, const uint32_t *p)
{
	enum { MEMORY = 7, COLOR, GUEST, LIMIT };
	struct sim_part *host = host_of(s, p[GUEST]);
	struct hal_partition_limits limits = HAL_INIT(hal_partition_limits);
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	struct sim_part *part = s->parts;
	int err;

	while (part < s->parts + PARTS && part->p)
		part++;
	if (part == s->parts + PARTS)
		return 0;
	if (host)
		d.host = host->p;
	else
		units(s, p, &d);
	if (p[MEMORY] >= 64)
		d.memory_bytes = 65536 + 4096 * (uint64_t)(p[MEMORY] - 64);
	if (s->lends && p[LIMIT] >= 8)
		lend(s, p[MEMORY], p[LIMIT], &d, &limits.memory_limit);
	d.limits = &limits;
	if (color(s, host, p[COLOR], &d.color_mask))
		return -1;
	err = hal_partition_create(s->dev, &d, &part->p);
	sim_mix(s, (uint64_t)(int64_t)err);
	if (err) {
		SIM_ANSWER(err == -ENOSPC || (err == -ENOMEM && s->injected) ||
			   sim_excused(s, err));
		return 0;
	}
	SIM_OK(hal_partition_get_info(part->p, &info));
	part->index = info.index;
	part->host = host ? host : part;
	part->host->guests += host != NULL;
	part->quota = d.memory_bytes;
	part->limit = limits.memory_limit;
	part->floor = part->floor_next = floor_of(&d);
	part->ceiling = part->ceiling_next = ceiling_of(&d);
	return 0;
}

void sim_part_gone(struct sim *s, struct sim_part *p)
{
	s->past_submitted += p->past_submitted;
	s->past_completed += p->past_completed;
	s->past_failed += p->past_failed;
	s->past_dropped += p->past_dropped;
	if (p->host != p) {
		p->host->guests--;
		p->host->guests_busy_ns += p->past_busy_ns;
	}
	memset(p, 0, sizeof(*p));
}

int do_part_destroy(struct sim *s, const uint32_t *p)
{
	struct sim_part *part = sim_part_at(s, p[0]);
	int err;

	if (!part)
		return 0;
	err = hal_partition_destroy(part->p);
	sim_mix(s, (uint64_t)(int64_t)err);
	if (part->queues || part->guests)
		SIM_ANSWER(err == -EBUSY);
	else
		SIM_ANSWER(!err ||
			   (err == -EBUSY && part->moved.timeline &&
			    hal_timeline_get_value(part->moved.timeline, NULL) <
				    part->moved.value) ||
			   sim_excused(s, err));
	if (!err)
		sim_part_gone(s, part);
	return 0;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

int do_part_resize(struct sim *s, const uint32_t *p)
{
	enum { WAIT = 7, PART };
	struct sim_part *part = sim_part_at(s, p[PART]);
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point moved = {0};
	int err;

	if (!part)
		return 0;
	units(s, p, &d);
	d.memory_bytes = part->quota;
	err = hal_partition_resize(part->p, &d, &moved);
	sim_mix(s, (uint64_t)(int64_t)err);
	if (part->host != part)
		SIM_ANSWER(err == -EINVAL);
	else if (!(s->info.caps & HAL_CAP_RESIZE_IDLE))
		SIM_ANSWER(err == -ENOTSUP || sim_excused(s, err));
	else
		SIM_ANSWER(!err || err == -ENOSPC || err == -EBUSY ||
			   sim_excused(s, err));
	if (err)
		return 0;
	part->moved = moved;
	/* Until then the old ones are in force, or the new ones; and when it is refused.
	 */
	part->floor_next = floor_of(&d);
	part->ceiling_next = ceiling_of(&d);
	part->floor = least(part->floor, part->floor_next);
	if (part->ceiling < part->ceiling_next)
		part->ceiling = part->ceiling_next;
	if (!p[WAIT])
		return 0;
	err = sim_wait(moved);
	SIM_ANSWER(!err || s->faulty);
	return 0;
}
