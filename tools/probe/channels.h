/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channels.h - a device for tests of the discovery: memory channels with banks, open rows
 * and a bus, under a map that nobody tells, and what disturbs whoever times loads there.
 *
 * Timing is that of npu_dram: 16 bytes a cycle, eight banks, rows of 1 KiB, a FIFO of
 * sixteen requests; one load of 64 bytes a cycle.
 */
#ifndef PROBE_CHANNELS_H
#define PROBE_CHANNELS_H

#include "discover.h"

enum channels_family {
	CHANNELS_XOR,
	CHANNELS_XORMOD,  /* u mod q turned by u / q mod q */
	CHANNELS_WEIGHTS, /* every digit has a weight */
	CHANNELS_TABLE,   /* any permutation in each block of N granules */
	CHANNELS_ALMOST,  /* XOR or XORMOD, but for 2 % of the granules */
	CHANNELS_NONE,    /* every granule anywhere, blocks are not balanced */
};

struct channels_noise {
	bool refresh;
	double load;   /* of others, of each channel's bus; in bursts */
	bool cache;    /* 8 KiB a channel; hits avoid the bus */
	double wrong;  /* share of pairs whose answer is wrong, for ever */
	double jitter; /* cycles of the clock */
};

struct channels;

/* Map number of a family, of 2^bits granules, drawn from seed.  NULL: no memory. */
struct channels *channels_create(enum channels_family family, uint32_t number,
				 uint32_t bits, uint32_t granule_log2,
				 const struct channels_noise *noise, uint64_t seed);
void channels_destroy(struct channels *c);
/* .user is c. */
void channels_device(struct channels *c, struct discover_device *out);
uint32_t channels_count(const struct channels *c);
/* Share of granules that map has where they are, names of channels apart. */
double channels_accuracy(const struct channels *c, const struct color_map *map);

#endif
