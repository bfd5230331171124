/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script.h - a run as data: a device and the operations that are done on it.
 *
 *   # what comes behind a # is for people
 *   target ref?units=16&memory=4M
 *   policy wfq                           all the time; without: now this, now that
 *   part_create units=7 ceiling=9
 *   queue_create
 *   submit commands=ssf work=200
 *   poll ns=4000
 *
 * An operation's numbers are named in the table of script.c; those that are 0 are left
 * out.  A number of a thing means the first that is there from it on, so that an
 * operation has a meaning whatever was done before it.
 */
#ifndef TESTS_SIM_SCRIPT_H
#define TESTS_SIM_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { SIM_PARAMS = 11, SIM_COMMANDS = 4 };

struct sim;

struct sim_op {
	uint32_t type; /* in sim_types */
	uint32_t p[SIM_PARAMS];
};

struct sim_script {
	char target[320];
	char policy[32]; /* "": not always the same */
	bool shared;     /* others use the device, too, and choose its policy */
	uint32_t count;
	struct sim_op *ops;
};

struct sim_param {
	const char *name;
	uint32_t below;
	/* Instead of a number: up to SIM_COMMANDS letters of these 15, each a digit of
	 * base 16, the first the lowest, whose value is the letter's place from 1 on. */
	const char *letters;
};

struct sim_type {
	const char *name;
	uint32_t weight; /* of all, how often */
	int (*run)(struct sim *s, const uint32_t *p);
	struct sim_param params[SIM_PARAMS];
};

extern const struct sim_type sim_types[];

/* splitmix64; below 0: of all. */
uint64_t script_random(uint64_t *state, uint64_t below);

/* target NULL: one for the seed, of family "ref" or "fast" (the NPU's fast engine). */
int script_make(struct sim_script *s, uint64_t seed, uint32_t steps, const char *family,
		const char *target, const char *policy);
void script_free(struct sim_script *s);
void script_print_op(FILE *f, const struct sim_op *op);
void script_print(FILE *f, const struct sim_script *s);
/* 0, or -1 with what is wrong, and in which line, on stderr. */
int script_read(const char *path, struct sim_script *s);

/* Makes s as short and as plain as it can be and still fail for the same reason; at most
 * so many runs.  Returns how many it took. */
uint32_t script_shrink(struct sim_script *s, const char *why, uint32_t runs);

#endif
