/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interp.h - runs kernels of PTX, thread by thread, in this process.  It is strict where
 * a GPU would hang or do anything: a barrier that not all of a block's threads get to, an
 * address that nobody has, an instruction it does not know, are errors that name the
 * line. What it computes is as IEEE says; approximate instructions are those of the C
 * library.
 */
#ifndef TESTS_PTX_INTERP_H
#define TESTS_PTX_INTERP_H

#include "module.h"

struct interp_region {
	uint64_t address;
	void *bytes;
	uint64_t size;
};

struct interp_launch {
	uint32_t kernel;
	uint32_t grid[3], block[3];
	uint32_t shared_bytes; /* dynamic */
	const void *params;    /* as the kernel lays them out */
	uint32_t param_bytes;
	const struct interp_region *regions;
	uint32_t region_count;
	uint64_t seed; /* of the order of blocks; 0: as they are numbered */
	uint64_t only; /* that block, and 1; 0: all of them */
	/* Called after so many steps; 0: never. */
	uint64_t tick;
	void (*at_tick)(void *arg);
	void *arg;
	uint64_t stop; /* address of the word that at_tick sets, for gpu_run() */
	uint64_t steps, instructions; /* out; a label is a step, too */
	uint64_t accesses;            /* out: of global memory */
};

int interp_run(const struct ptx *m, struct interp_launch *l, char why[PTX_WHY]);

#endif
