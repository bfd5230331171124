/* SPDX-License-Identifier: Apache-2.0 */
/* resize.h - which units a partition has, and moving its border; by the engine. */
#ifndef HAL_SPACE_RESIZE_H
#define HAL_SPACE_RESIZE_H

#include "loop/device.h"
#include "space/partition.h"

/* The floor and the ceiling that d asks for, with so many units, for when it is there or
 * has moved; and whether it is to stay where it is. */
void resize_limits(struct hal_partition *part, const struct hal_partition_desc *d,
		   uint32_t units);
/* The same, as they are. */
void resize_keep_limits(struct hal_partition *part);
/* p, with .desc planned and .bk made, is there; and is not any more. */
void partition_enter(struct hal_partition *p);
void partition_leave(struct hal_partition *p);

/* part->resize_count is the value that its .control reaches when it has moved. */
int resize_begin(struct hal_partition *part, const struct hal_partition_desc *d);
/* To so many units, wherever they are, within the floor and the ceiling that it has. */
int resize_units(struct hal_partition *part, uint32_t units);
/* The steps of that for a part of which it is known where it goes. */
int resize_check(const struct hal_partition *part, const struct hal_partition_desc *d);
int resize_renew(struct hal_partition *part);
int resize_move(struct hal_partition *part, const struct hal_bk_partition_desc *to);
/* The device has moved a partition, or has not (ev->status). */
void resize_done(const struct hal_bk_event *ev);
/* It will not any more. */
void resize_lost(struct hal_partition *part);

#endif
