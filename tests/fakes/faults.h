/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.h - every call of a vendor's library that a backend makes fails in turn, each
 * time it is made: the right errno, a text with the call and its result, nothing left
 * behind at the library, nothing done that is undefined there, and a device that works
 * the next time.  A test gives the run in which the calls are made; the steps that are
 * the same for all are here, too.
 */
#ifndef TESTS_FAKES_FAULTS_H
#define TESTS_FAKES_FAULTS_H

#include <stdbool.h>

#include <hal/backend.h>

/* What a run met first. */
struct faults_outcome {
	int err;
	char text[512];
};

/* A device in which steps are made, in the order of its members. */
struct faults_world {
	const struct hal_backend *b;
	void *dev, *part, *queue, *prog, *kernel, *mem[3];
	uint32_t inflight;
	bool lost;
	struct faults_outcome first;
};

/* Notes err and the host's text if it is the first; true: nothing has gone wrong yet. */
bool faults_step(struct faults_world *w, int err);
bool faults_submit(struct faults_world *w, const struct hal_bk_cmd *cmd);
/* Until the device has nothing of ours or is lost. */
void faults_run_dry(struct faults_world *w);
/* Three launches of the kernel, which takes ns and adds 1 to mem[0]; a fill, a copy to
 * mem[1], a timestamp in mem[2], a nop; and their results. */
bool faults_compute(struct faults_world *w, uint64_t ns);
void faults_put_away(struct faults_world *w);

/* What a call may answer, and what is to come of it. */
struct faults_result {
	uint32_t result;
	int err;
	const char *name;
};

struct faults {
	/* As the stand-in's control has them. */
	int (*break_call)(const char *call, uint64_t nth, uint32_t result);
	uint64_t (*armed)(void);
	uint64_t (*calls)(const char *call);
	uint32_t (*live)(void);
	uint32_t (*misuse)(const char **text);
	void (*reset)(void);

	const struct hal_backend *b;
	const char *const *names;
	uint32_t name_count;
	const struct faults_result *results;
	uint32_t result_count;
	uint64_t most; /* times of one call: one more is the same call */
	struct faults_outcome (*run)(const struct hal_bk_config *cfg);
	/* Once a process: tested elsewhere. */
	bool (*left_out)(const char *call);
	/* It may fail unseen: what it is for is given up, or tried again.  It is made the
	 * last time, or by close. */
	bool (*silent)(const char *call, bool last, bool at_close);
	/* The text may be another call's: silent as above. */
	bool (*told_later)(const char *call, const struct faults_result *r, bool silent);
};

extern uint32_t faults_made, faults_bad;

/* All of it with these options; the test fails if faults_bad is not 0. */
void faults_all(const struct faults *f, const struct hal_bk_config *cfg);
/* Fails the test when runs with these options leave a call out that is not elsewhere. */
void faults_cover(const struct faults *f, const struct hal_bk_config *const *cfgs,
		  uint32_t count, bool (*elsewhere)(const char *call));

#endif
