/* SPDX-License-Identifier: Apache-2.0 */
/* allot.h - which units, colours and index a partition gets; takes none of them. */
#ifndef HAL_SPACE_ALLOT_H
#define HAL_SPACE_ALLOT_H

#include "loop/device.h"
#include "space/partition.h"

/* d says where, not only how many. */
static inline bool names_place(const struct hal_partition_desc *d)
{
	return d->rows != 0 || d->cols != 0 || d->row != 0 || d->col != 0;
}

/* Units for d, of one that has so many (0: none yet). */
static inline uint32_t allot_wants(const struct hal_partition_desc *d, uint32_t has)
{
	if (names_place(d))
		return (uint32_t)d->rows * d->cols;
	if (has > d->units_ceiling)
		has = d->units_ceiling;
	return has < d->units_floor ? d->units_floor : has;
}

/* Resolves what d asks for into *out, which is all 0: units, isolation, colours, bytes,
 * an index; takes nothing. */
int partition_plan(struct hal_device *dev, const struct hal_partition_desc *d,
		   struct hal_bk_partition_desc *out);

/* Find units for d and write them to out, which has the units of the partition so far (0:
 * none yet), at except (NULL: nowhere). */
int allot_units(struct hal_device *dev, const struct hal_partition_desc *d,
		struct hal_bk_partition_desc *out, const struct place_rect *except);

uint32_t partition_isolation(const struct hal_device *dev,
			     const struct hal_bk_partition_desc *at);
/* Check that the units of `at` are isolated as `min` says. */
int allot_isolation_check(const struct hal_device *dev,
			  const struct hal_bk_partition_desc *at, uint32_t min);

#endif
