/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover.h - finds on which memory channel each granule of a device's memory lies, from
 * nothing but the time that loads take.
 *
 * Two granules of one channel share its bus: some lines of both, loaded together, take
 * longer than those of two channels.  Of answers to that question, some of which are
 * wrong, channels are made (classes of granules), then a rule: parities of the granule's
 * number, with a number modulo q, or, where there is none, a table.  A rule counts as
 * verified when 3000 fresh granules, each held against fresh ones of what should be its
 * channel, show not one that is wrong: with 95 % confidence less than one in a thousand.
 *
 * Channels have no names here: two maps are the same that call them differently.
 */
#ifndef PROBE_DISCOVER_H
#define PROBE_DISCOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/color_map.h"

#define DISCOVER_CHANNELS 16u  /* no more are looked for */
#define DISCOVER_TOGETHER 5u   /* granules in one test, at most */
#define DISCOVER_LEAST    128u /* granules */

struct discover_device {
	/* Loads lines of 64 bytes from each of count addresses on, all in flight
	 * together: *cycles is how long that took.  Lines of an address lie in one
	 * granule.  0, or -errno, which ends the discovery. */
	int (*measure)(void *user, const uint64_t *at, uint32_t count, uint32_t lines,
		       uint64_t *cycles);
	void *user;
	uint32_t granule_log2; /* bytes, 8..12; see discover_granule */
	/* Granules that may be loaded, by their numbers: address >> granule_log2; at
	 * least DISCOVER_LEAST, numbers of at most 24 bits. */
	uint32_t first, granules;
	uint64_t memory;   /* bytes, all of the device's */
	uint32_t together; /* of addresses a test can take: 2..DISCOVER_TOGETHER */
	uint32_t lines;    /* of an address, most: a power of two; 0: 8 */
	bool several; /* that pairs are alike does not mean that all are on one channel */
};

struct discover_options {
	uint64_t seed;
	uint32_t attempts;  /* 0: 8 */
	uint64_t tests_max; /* 0: 2,000,000.  A table of more than a tenth of them as
			     * granules is not tried */
};

struct discover_result {
	/* Of no device yet; NULL: there was not even a rule that failed.  Its .tests are
	 * the granules that were tried afresh, .bad those found wrong; .p0 and .p1,
	 * .bound and .probe_... are set, too. */
	struct color_map *map;
	uint32_t attempts;
	uint32_t samples; /* granules that the rule was made from */
	double p0, p1;    /* how often granules of two channels, of one, look as of one */
	uint64_t tests, loads, cycles;
};

/* 0: found, and out->map is verified.  -ENOENT not found: out->map is the last that was
 * tried, and what of it is wrong is told.  -EBUSY: too much else goes on for loads to
 * tell anything, see .p0 and .p1.  -EINVAL: the device's numbers; -ENOMEM; or what
 * measure said.  out->map is to be given to color_map_free in each case. */
int discover(const struct discover_device *device, const struct discover_options *options,
	     struct discover_result *out);

/* The size of a granule, log2, 8..12: addresses closer than that always lie on one
 * channel.  device->granule_log2, .first and .granules are of pieces of 256 bytes (8).
 * 13: larger than 4 KiB, or there is but one channel.  -errno as discover. */
int discover_granule(const struct discover_device *device, uint64_t seed);

#endif
