/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology.h - what a GPU is made of, as the kernel's driver (KFD) tells it, and units
 * of that.
 *
 * The driver gives the bits of a mask of compute units (CUs) out by turns: on a device of
 * several XCCs bit i goes to XCC i % xccs, else to shader engine i % engines, in pairs
 * (WGPs) on RDNA.  So bits in a row are spread evenly, and a unit of as many bits as
 * there are engines has a CU in each: an engine that has fewer than others is what holds
 * a kernel up.  An XCC of which no bit is set would run on all it has.
 */
#ifndef BACKENDS_ROCM_TOPOLOGY_H
#define BACKENDS_ROCM_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#define ROCM_MASK_WORDS 16u /* 512 CUs */

struct rocm_topology {
	uint32_t cus;     /* that work */
	uint32_t engines; /* shader engines, of an XCC where there are several */
	uint32_t arrays;  /* shader arrays of an engine */
	uint32_t xccs;
	uint32_t target; /* 90010: gfx90a; from 100000 on CUs are in pairs */
};

struct rocm_units {
	uint32_t count;
	uint32_t bits;     /* of all of them: 0 to bits-1 */
	uint32_t stride;   /* bits of a unit; the last one has what is over */
	uint32_t together; /* 2: waves run on pairs of CUs */
};

/* Of a PCI address ("0000:1a:00.0"), as the kernel's driver and HSA number it; false: it
 * is none. */
bool rocm_topology_address(const char *bus_id, uint64_t *domain, uint64_t *location);
/* The node at that PCI address ("0000:1a:00.0") under dir; -ENODEV and -ENOTSUP with the
 * reason. */
int rocm_topology_read(const char *dir, const char *bus_id, struct rocm_topology *t);
/* Units of the device of which HIP counts so many multiprocessors: one CU, or pair, of
 * each engine; or single ones. */
int rocm_topology_units(const struct rocm_topology *t, uint32_t multiprocessors,
			bool single, struct rocm_units *u);
/* The bits of count units from first on. */
void rocm_topology_mask(const struct rocm_units *u, uint32_t first, uint32_t count,
			uint32_t mask[ROCM_MASK_WORDS]);

#endif
