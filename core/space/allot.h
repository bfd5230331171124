/* SPDX-License-Identifier: Apache-2.0 */
/* allot.h - choose the units, colours and index of a partition, without reserving them.
 */
#ifndef HAL_SPACE_ALLOT_H
#define HAL_SPACE_ALLOT_H

#include "loop/device.h"
#include "space/partition.h"

/* Return whether d requests a rectangle at a place, not only a number of units. */
/* Return the limits of d, or all 0 if it has none. */
static inline struct hal_partition_limits desc_limits(const struct hal_partition_desc *d)
{
	return d->limits != NULL ? *d->limits : (struct hal_partition_limits){0};
}

static inline bool names_place(const struct hal_partition_desc *d)
{
	return d->rows != 0 || d->cols != 0 || d->row != 0 || d->col != 0;
}

/* Return how many units d requests for a partition that now has `has` units (0: a new
 * one): the area of a named rectangle, otherwise `has` within d's floor and ceiling. */
static inline uint32_t allot_wants(const struct hal_partition_desc *d, uint32_t has)
{
	if (names_place(d))
		return (uint32_t)d->rows * d->cols;
	if (has > d->units_ceiling)
		has = d->units_ceiling;
	return has < d->units_floor ? d->units_floor : has;
}

/* Choose units, colours, memory size and index for a new partition or guest as d
 * requests, and check its isolation.  Write them to *out, which must be all 0.  Reserves
 * nothing.  Return 0 or -errno. */
int allot_partition(struct hal_device *dev, const struct hal_partition_desc *d,
		    struct hal_bk_partition_desc *out);

/* Set out->rows and out->cols to the rectangle that `units` units of d->shape have; set
 * both to 0 for HAL_SHAPE_ANY.  Return -EINVAL or -ENOTSUP if there is none. */
int allot_shape(const struct hal_device *dev, const struct hal_partition_desc *d,
		uint32_t units, struct place_rect *out);

/* Choose the units that d requests and write them to out.  For an existing partition,
 * out->units holds its number of units, and except is its rectangle, or NULL if the
 * caller has released it.  For a new one they are 0 and NULL. */
int allot_units(struct hal_device *dev, const struct hal_partition_desc *d,
		struct hal_bk_partition_desc *out, const struct place_rect *except);

/* Return the HAL_ISOLATION_* that the units of `at` provide. */
uint32_t partition_isolation(const struct hal_device *dev,
			     const struct hal_bk_partition_desc *at);
/* Return -ENOTSUP if the units of `at` provide less isolation than min. */
int allot_isolation_check(const struct hal_device *dev,
			  const struct hal_bk_partition_desc *at, uint32_t min);

#endif
