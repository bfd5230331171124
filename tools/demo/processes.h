/* SPDX-License-Identifier: Apache-2.0 */
/* processes.h - the demo's tenants as programs of their own, on one device that hald
 * serves: one of them is killed, and one hostile. */
#ifndef DEMO_PROCESSES_H
#define DEMO_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "tenant.h"

enum process_role { PROCESS_WORKS, PROCESS_IS_KILLED, PROCESS_IS_HOSTILE };

enum { PROCESS_JOBS = 96, PROCESSES_MAX = 8 };

/* What a program has done, in memory that it shares with the demo. */
struct process_told {
	uint64_t done;                                      /* jobs; of these: */
	uint64_t begin[PROCESS_JOBS], cycles[PROCESS_JOBS]; /* device time */
	uint64_t mismatched_bits;
	/* What a hostile one has tried: programs with wrong bytes; how many of them hald
	 * refused, and how many failed; messages of wrong bytes. */
	uint64_t programs, refused, faults, messages;
	uint64_t end;  /* device time of the last it saw */
	char why[256]; /* "": all went well */
};

struct process {
	const char *partition; /* in the configuration; also its tenant's name */
	const struct work *work;
	enum process_role role;
	uint32_t jobs; /* of PROCESS_JOBS at most; one that is killed does half of them */
	struct process_told *told;
};

/* Start hald with that configuration and a tenant for each process, run all of them until
 * they end, and end hald.  Results are in .told until processes_free.  Return 0 or
 * TOOL_FAILED. */
int processes_run(const char *hald, const char *config, struct process *processes,
		  uint32_t count);
void processes_free(struct process *processes, uint32_t count);

#endif
