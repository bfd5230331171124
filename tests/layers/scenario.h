/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scenario.h - a device from hal_open to hal_close, once through everything that an
 * application does: for sweeps in which each step fails in turn.
 *
 * It stops at the first step that fails, says which and how, and puts away what there is.
 */
#ifndef TESTS_LAYERS_SCENARIO_H
#define TESTS_LAYERS_SCENARIO_H

#include <hal/hal.h>

struct scenario {
	const char *target;         /* ref or npu, virtual clock */
	const char *const *options; /* of hal_open */
	/* Answers. */
	const char *step; /* that failed; NULL: none */
	int err;          /* its errno; 0 */
	char text[512];   /* its hal_last_error */
	int close_err;    /* of hal_close; 1: the device could not be closed */
	char close_text[512];
};

/* The programs of all scenarios are made here, once.  0 or -1. */
int scenario_begin(void);
void scenario_end(void);
void scenario_run(struct scenario *s);

#endif
