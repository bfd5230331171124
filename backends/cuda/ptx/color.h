/* SPDX-License-Identifier: Apache-2.0 */
/*
 * color.h - where the bytes of coloured memory lie, for PTX_COLOR and for the host.
 *
 * Memory is granules, each on one channel.  A group is as many aligned granules as there
 * are channels, one of each.  What belongs to some channels has the granules of these in
 * each group, one after the other:
 *
 *	group 0        group 1        group 2
 *	. 0 1 .        1 . . 0        . . 0 1       of channels 2 and 3 of four
 *
 * and byte x of it is where ptx_color_place() says.  hal/device/hal_color.h has the case
 *in which they are at the same place in each group (.piece).
 */
#ifndef BACKENDS_CUDA_PTX_COLOR_H
#define BACKENDS_CUDA_PTX_COLOR_H

#include "ptx.h"

#define PTX_COLOR_MASKS  6u
#define PTX_COLOR_DIGITS 32u
#define PTX_COLOR_MOST   64u /* q */

/* A map as a map file has it (lib/color_map.h): bit i of a channel is the parity of
 * granule & mask[i]; above them is the sum of weight[j] times digit j of granule >> shift
 * in base q, modulo q. */
struct ptx_color_map {
	uint32_t granule; /* bytes, a power of two */
	uint32_t mask_count;
	uint64_t mask[PTX_COLOR_MASKS];
	uint32_t q; /* 0: no sum */
	uint32_t shift, digits;
	uint8_t weight[PTX_COLOR_DIGITS];
};

/* What a kernel is made for: a map, and how many channels its memory has.  The numbers of
 * these channels come with the launch. */
struct ptx_color {
	uint32_t bits; /* of a granule's bytes */
	uint32_t lows; /* bits of a place in the group that are parities */
	uint32_t own;  /* the number of channels is 1 << own */
	uint32_t q;    /* 1: no sum */
	uint32_t digits;
	uint8_t weight[PTX_COLOR_DIGITS]; /* of what the first digit is to be */
	/* Of group << own | which of its granules: the parities. */
	uint32_t mask[PTX_COLOR_MASKS];
	bool piece; /* at the same place in each group */
};

/* Of count channels from first on.  -ENOTSUP with the reason: not every group of the map
 * has one of each channel, or count or first are no power of two and its multiple. */
int ptx_color_make(const struct ptx_color_map *map, uint32_t first, uint32_t count,
		   struct ptx_color *color, struct ptx_colors *colors, char why[PTX_WHY]);
/* Put the window's address and size there, and where the first group is. */
void ptx_color_window(const struct ptx_color *color, struct ptx_colors *colors,
		      uint64_t from, uint64_t bytes, uint64_t groups);
/* From the first group to byte x. */
uint64_t ptx_color_place(const struct ptx_color *color, const struct ptx_colors *colors,
			 uint64_t x);
/* Bytes of whole groups that so many bytes take. */
uint64_t ptx_color_extent(const struct ptx_color *color, uint64_t bytes);

#endif
