/* SPDX-License-Identifier: Apache-2.0 */
/*
 * granules.h - allocate granules of device memory by colour, for backends that place
 * memory themselves.
 *
 * The free granules of each colour form a bitmap tree.  A bit of the lowest level is a
 * granule; a bit of each higher level says whether any of 64 bits below is set; the top
 * level is one word.  So a search finds the lowest free granule of a set of colours in
 * one step per level.  Granules are allocated in the order of their addresses, whatever
 * was allocated and freed before.  Free lists would need more memory and lose that order.
 *
 * Functions on one allocator must not run concurrently.
 */
#ifndef HAL_MEMORY_GRANULES_H
#define HAL_MEMORY_GRANULES_H

#include <stdint.h>

#include <hal/backend.h>

#include "lib/color_map.h"

struct hal_bk_granules;

/* Create an allocator with all granules of map free, except those of unknown colour.  The
 * allocator does not refer to map afterwards.  Return 0 or -ENOMEM. */
int granules_make(const struct color_map *map, struct hal_bk_granules **out);
/* Free g; NULL is allowed. */
void granules_free(struct hal_bk_granules *g);

/* Allocate count granules of the given colours, the lowest ones, and write their numbers
 * to out.  With weights, the colours get exactly that ratio, rounded to whole granules.
 * Without weights, they get even shares: no colour gets more than two granules beyond its
 * share while others have free ones.  Return 0; -EINVAL if all weights are 0; or -ENOSPC,
 * with a text that names the colours that are short, and nothing allocated. */
int granules_take(struct hal_bk_granules *g, const struct hal_bk_colors *colors,
		  uint64_t count, uint32_t *out);
/* Allocate count contiguous granules of these colours, at the lowest number that is a
 * multiple of align (at least 1), and write that number to *first.  Return 0, or -ENOSPC
 * with *first set to the length of the longest free run that begins at such a number.
 * Takes time proportional to the size of the device's memory. */
int granules_take_run(struct hal_bk_granules *g, uint64_t mask, uint64_t count,
		      uint32_t align, uint32_t *first);
/* Free the granules with these `count` numbers. */
void granules_give(struct hal_bk_granules *g, const uint32_t *granules, uint64_t count);

/* Return the number of free granules of these colours. */
uint64_t granules_left(const struct hal_bk_granules *g, uint64_t mask);
/* Return the colour of a granule, or COLOR_NONE if its colour is unknown or the granule
 * does not exist. */
uint32_t granules_color(const struct hal_bk_granules *g, uint32_t granule);

#endif
