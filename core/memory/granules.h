/* SPDX-License-Identifier: Apache-2.0 */
/*
 * granules.h - which granules of a device's memory are free, by colour.
 *
 * Of each colour the free granules are a set: bits, with a bit over each 64 of them that
 * says whether any is left, and so on up to one word.  The lowest free granule of some
 * colours, whatever has been taken and given back before, is found in a step a level, so
 * in constant time; and what is taken lies in the order of addresses, where neighbours
 * are on the channels that the device's own hash gives them.  A bit a granule and colour
 * is less than the links of lists, which would forget that order.
 *
 * One thread at a time.
 */
#ifndef HAL_MEMORY_GRANULES_H
#define HAL_MEMORY_GRANULES_H

#include <stdint.h>

#include <hal/backend.h>

#include "lib/color_map.h"

struct hal_bk_granules;

/* All granules of the map but those whose colour is not known; the map is not needed
 * after that.  -ENOMEM. */
int granules_make(const struct color_map *map, struct hal_bk_granules **out);
/* NULL is let pass. */
void granules_free(struct hal_bk_granules *g);

/* count granules of these colours, lowest first, to out.  With weights exactly in that
 * ratio (rounded to whole granules); without, evenly: none is two granules beyond its
 * share while others have any.  -ENOSPC: the text names the colours that are short, and
 * what is left of each; nothing is taken. */
int granules_take(struct hal_bk_granules *g, const struct hal_bk_colors *colors,
		  uint64_t count, uint32_t *out);
/* count of these colours in a row, the lowest such place, to *first.  -ENOSPC: *first is
 * how long the longest row is.  In time that goes with the device's memory. */
int granules_take_run(struct hal_bk_granules *g, uint64_t mask, uint64_t count,
		      uint32_t *first);
void granules_give(struct hal_bk_granules *g, const uint32_t *granules, uint64_t count);

/* How many are free in these colours. */
uint64_t granules_left(const struct hal_bk_granules *g, uint64_t mask);
/* Of a granule; COLOR_NONE. */
uint32_t granules_color(const struct hal_bk_granules *g, uint32_t granule);

#endif
