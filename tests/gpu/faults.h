/* SPDX-License-Identifier: Apache-2.0 */
/* faults.h - every call of a GPU's library that its backend makes fails in turn
 * (tests/fakes/faults.h); tests/cuda and tests/rocm have a face each, faults.c the main
 * program. */
#ifndef TESTS_GPU_FAULTS_H
#define TESTS_GPU_FAULTS_H

#include "host.h"
#include "tests/fakes/faults.h"

#define GPU_DEVICES_MOST 4u

struct gpu_faults {
	const char *name; /* of the backend, and of its figures */
	const struct hal_backend *(*backend)(const struct hal_host *h);
	uint32_t devices, device; /* how many there are, which is opened */
	const char *const *calls;
	uint32_t call_count;
	const struct faults_result *results;
	uint32_t result_count;
	/* "work:m8" and "iota:m4", the first as w->kernel; and another program that is
	 * refused. */
	bool (*load)(struct faults_world *w);
	/* More of what it does, in the last of the ways; or NULL. */
	bool (*more)(struct faults_world *w);
	/* Calls that may fail unseen, always or when it is closed; that are made once a
	 * process; that are made in other tests alone.  Then NULL. */
	const char *const *silent, *const *retried, *const *once, *const *elsewhere;
	/* Plain, pinned memory; then as many as there are. */
	const struct hal_bk_config *ways;
	uint32_t way_count;
};
extern const struct gpu_faults gpu_faults;

/* Loads that image, which is freed, as w->prog; its first kernel as w->kernel. */
bool gpu_faults_load(struct faults_world *w, void *image, size_t size);
/* A partition moves with a command in flight, and another behind it. */
bool gpu_faults_move(struct faults_world *w);

#endif
