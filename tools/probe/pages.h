/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.h - the rule of one page, carried over to others.
 *
 * A GPU's addresses are physical within a page alone (2 MiB on NVIDIA's): what a rule
 * says of the bits above is a constant of the page, one bit for each parity and a number
 * to add modulo q.  So the rule is found within one page (discover.h), and the constants
 * of each further page by granules of it, each loaded together with granules of the first
 * page whose channel is known.
 */
#ifndef PROBE_PAGES_H
#define PROBE_PAGES_H

#include "discover.h"

#define DISCOVER_KNOWN                                                                   \
	400u /* pairs of one channel, and of two, that set the threshold                 \
	      */

struct discover_page {
	uint32_t parities, offset; /* of the rule's channel, bits and number */
	double sure;               /* 0..1 */
	uint32_t tests;
};

/* Find the constants of pages 1 to count, each of map's memory, one behind the other;
 * page 0 is what map is of, of kind xor or xormod.  device: as of discover(), its
 * .granules those of all pages.  0, -EINVAL, -EBUSY: loads of one channel do not take
 * longer than those of two; or what measure said.  out: count of them. */
int discover_pages(const struct discover_device *device, const struct color_map *map,
		   uint32_t count, uint64_t seed, struct discover_page *out);
/* The channel of a granule, counted within its page. */
uint32_t discover_page_channel(const struct color_map *map,
			       const struct discover_page *page, uint32_t granule);

#endif
