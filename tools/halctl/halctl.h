/* SPDX-License-Identifier: Apache-2.0 */
/* halctl.h - what the parts of halctl share. */
#ifndef HALCTL_H
#define HALCTL_H

#include <hal/hal.h>

#include "out.h"
#include "tool.h"

struct halctl {
	const char *target; /* NULL: what the configuration selects; of replay: a file */
	const char *const *options; /* NULL-ended, as for hal_open */
	int json;
	int markdown;
	/* Of top and policy: */
	const char *program; /* PID or PID.N; NULL: not said */
	int once;
	int delay_ms;
	char *const *words; /* behind the command */
	int word_count;
	uint32_t runs, tolerance;  /* of profile; tolerance in thousandths */
	const char *map, *picture; /* files that probe writes; NULL: none.  .map is also
				      what trace writes; NULL: its default */
	const char *verify;        /* file of a map that probe is to try; NULL: none */
	uint32_t seed;             /* of probe */
	uint32_t wait_s;           /* so long probe waits for a device that others have */
	uint32_t time_s;           /* so long trace records; 0: until it is interrupted */
	uint64_t size;             /* bytes that trace writes at most */
};

/* The commands: 0, TOOL_FAILED or TOOL_USAGE. */
int halctl_list(const struct halctl *ctl);
int halctl_info(const struct halctl *ctl);
int halctl_options(const struct halctl *ctl);
int halctl_backends(const struct halctl *ctl);
int halctl_replay(const struct halctl *ctl);
int halctl_top(const struct halctl *ctl);
int halctl_policy(const struct halctl *ctl);
int halctl_profile(const struct halctl *ctl);
int halctl_probe(const struct halctl *ctl);
int halctl_tenant(const struct halctl *ctl);
int halctl_ps(const struct halctl *ctl);
int halctl_metrics(const struct halctl *ctl);
int halctl_check(const struct halctl *ctl);
int halctl_trace(const struct halctl *ctl);
int halctl_cdi(const struct halctl *ctl);
int halctl_isolate(const struct halctl *ctl); /* probe --verify */

/* Names of enum values, as they appear in tables and in JSON; "?" when unknown. */
const char *kind_name(uint32_t kind);
const char *preempt_name(uint32_t level);
const char *isolation_name(uint32_t level);
const char *color_source_name(uint32_t source);
/* Name of capability or suspend-mode number bit; NULL past the last. */
const char *cap_name(unsigned int bit);
const char *suspend_mode_name(unsigned int mode);

#endif
