/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mock.h - a device that does nothing until it is told: the double of the core's tests.
 *
 * It is a plugin; its extension "mock" is this table.  native:
 * hal_device_get_native(dev).
 */
#ifndef TESTS_UNIT_MOCK_H
#define TESTS_UNIT_MOCK_H

#include <hal/backend.h>

/* A mock image: names of kernels, separated by spaces; each takes the arguments its last
 * character says (0-9, or g for 16), and the first at least 64 bytes unless it is "0".
 * Those named shaped... have groups of 8 x 2; a launch may set up to 256 items and 1024
 * bytes of shared memory. */
#define MOCK_CONSTANTS   4096u /* bytes a program takes in each partition */

#define MOCK_SAVED_BYTES 64u /* of a queue that FOLD or SAVE has stopped */

struct mock_counts {
	uint32_t inflight; /* commands taken and not ended */
	uint32_t submits, suspends, resumes;
	uint32_t unrung;                                    /* taken since the doorbell */
	uint32_t mode;                                      /* of the last suspend */
	uint32_t mems, programs, bound, partitions, queues; /* alive */
	int32_t priority; /* of the queue that was created last */
};

struct mock_control {
	/* Time goes on. */
	void (*advance)(void *native, uint64_t ns);
	/* The n oldest commands end well; each runs ns. */
	void (*complete)(void *native, uint32_t n, uint64_t ns);
	/* The oldest one ends with status and text. */
	void (*fault)(void *native, int status, const char *text);
	/* The next n submits answer err. */
	void (*refuse)(void *native, uint32_t n, int err);
	/* The next n resizes are taken, and end with status and text; at_once: they are
	 * refused. */
	void (*refuse_move)(void *native, uint32_t n, int status, int at_once);
	/* Refuse with err at once the next resize after n others. */
	void (*refuse_later_move)(void *native, uint32_t n, int err);
	/* Polls answer -EIO from now on. */
	void (*lose)(void *native);
	/* Suspends and resizes that were asked for are done now; KILL drops what is in
	 * flight of the queue, FOLD and SAVE keep it, after it has run ns.  DRAIN is done
	 * when the last command in flight of the queue ends. */
	void (*quiet)(void *native, uint64_t ns);
	/* The next n resumes, suspends answer err. */
	void (*refuse_resume)(void *native, uint32_t n, int err);
	void (*refuse_stop)(void *native, uint32_t n, int err);
	void (*counts)(void *native, struct mock_counts *out);
	/* What the i-th command in flight is: op, and pattern of a fill. */
	uint32_t (*peek)(void *native, uint32_t i, uint32_t *op);
	/* The oldest resize that was asked for ends with status and text; 0: well. */
	void (*fail_move)(void *native, int status, const char *text);
	/* The n oldest commands end well, and ran ns at the same time. */
	void (*complete_together)(void *native, uint32_t n, uint64_t ns);
	/* Its clock tells of ends as so much earlier from now on. */
	void (*tell_early)(void *native, uint64_t ns);
	/* 1: the i-th command in flight is a launch of a shape of its own. */
	int (*shape)(void *native, uint32_t i, struct hal_bk_shape *out);
};

#endif
