/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - how long launches run on a device: alone on a rectangle of units, beside
 * others, and stopped in the middle.
 *
 * All numbers are of the device's accounts: under the virtual clock its cycles, the same
 * each time.
 */
#ifndef HALCTL_MEASURE_H
#define HALCTL_MEASURE_H

#include <stdbool.h>

#include "service.h"

/* A device that nobody else uses. */
struct bench {
	struct hal_device *dev;
	struct hal_device_info info;
	uint32_t runs; /* of each launch, behind one that does not count */
};

/* Units: a rectangle of a grid, else so many columns of one row. */
struct place {
	uint32_t rows, cols;
	uint32_t col; /* first column */
};

struct timing {
	uint64_t ns;        /* the middle one of the runs */
	uint64_t spread_ns; /* the longest less the shortest */
	uint64_t bytes;     /* that it moves itself */
};

/* A program that is ready in a partition of its own. */
struct seat {
	struct hal_partition *part;
	struct service service;
};

/* What goes on without end beside what is measured: requests of a program, or, without
 * one, copies. */
struct company {
	struct seat seat;
	struct hal_buffer *buffer;
	struct hal_submit_desc desc;
	struct hal_cmd *copies;
	struct hal_point last; /* .value 0: nothing has been given to it */
};

/* What a stop in one mode takes at most, asked for at several moments of a launch. */
struct stop_cost {
	bool possible;
	uint64_t quiet_ns; /* asked until quiet */
	uint64_t cost_ns;  /* both are over so much later, when it is resumed at once */
	uint64_t saved_bytes;
};

/* All: 0, or TOOL_FAILED and it is said. */
int seat_open(struct seat *s, const struct bench *b, const struct model *model,
	      const struct place *place);
/* NULL model: copies. */
int company_open(struct company *c, const struct bench *b, const struct model *model,
		 const struct place *place);
/* Both are to be closed also when they could not be opened. */
int seat_close(struct seat *s);
int company_close(struct company *c);

/* count commands as one submission; company may be NULL. */
int measure(const struct bench *b, const struct seat *s, const struct hal_cmd *cmds,
	    uint32_t count, struct company *company, struct timing *out);
/* Stopped in mode; alone_ns as measured.  What the device cannot is not possible. */
int measure_stop(const struct bench *b, const struct seat *s, const struct hal_cmd *cmd,
		 uint32_t mode, uint64_t alone_ns, struct stop_cost *out);

#endif
