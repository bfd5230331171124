/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.h - make every call of a vendor's library fail, each time that the backend makes
 * it.
 *
 * Each failure must give the right errno and a text that names the call and its result.
 * It must leave nothing at the library and do nothing that is undefined there.  The
 * device must work the next time.  faults.c is the program; test_faults.c of tests/cuda,
 * rocm, levelzero and fpga (test_hsa_faults.c for HSA's runtime) has the vendor's table.
 */
#ifndef TESTS_VENDOR_FAULTS_H
#define TESTS_VENDOR_FAULTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <hal/backend.h>

/* The first error of a run. */
struct faults_outcome {
	int err;
	char text[512];
};

/* A device in which a run makes steps, in the order of the members. */
struct faults_world {
	const struct hal_backend *b;
	void *dev, *part, *queue, *prog, *kernel, *mem[3];
	void *host[2];   /* host memory: allocated, registered */
	void *shared[2]; /* exported, imported */
	void *other;     /* a second program, or NULL */
	uint32_t inflight;
	bool lost;
	struct faults_outcome first;
};

/* May the text of a failure name a later call?  A lost device is reported by the next. */
enum faults_later { FAULTS_AT_ONCE, FAULTS_LATER_IF_SILENT, FAULTS_LATER };

/* What a call returns, and what the backend must make of it. */
struct faults_result {
	uint32_t result;
	int err;
	const char *name;
	enum faults_later later;
};

/* The fake driver's controls: see stand_in.h of each. */
struct faults_fake {
	int (*break_call)(const char *call, uint64_t nth, uint32_t result);
	uint64_t (*armed)(void);
	uint64_t (*calls)(const char *call);
	uint32_t (*live)(void);
	uint32_t (*misuse)(const char **text);
	void (*reset)(void);
};
/* Set *fake to the controls of the fake driver s; false if s is NULL. */
#define FAULTS_FIND(fake, s)                                                             \
	((s) && (*(fake) = (struct faults_fake){(s)->break_call, (s)->armed, (s)->calls, \
						(s)->live, (s)->misuse, (s)->reset},     \
		 true))

/* Options with which all calls fail in turn; more: further steps of the run, or NULL. */
struct faults_way {
	const char *name;
	const struct hal_bk_config *cfg;
	bool (*more)(struct faults_world *w);
};

struct faults_vendor {
	const char *name; /* of its figures */
	const struct hal_backend *(*backend)(const struct hal_host *h);
	/* Set the environment and the options, and find the fake driver.  Return false if
	 * there is none. */
	bool (*prepare)(struct faults_fake *fake);
	uint32_t devices, device; /* how many there are; which one is opened */
	struct hal_bk_partition_desc part;
	uint64_t bytes;    /* of each buffer */
	uint32_t flags;    /* of the second buffer */
	bool queue_first;  /* the queue is created before the buffers */
	bool strict_start; /* no call fails silently before there is a partition */
	/* Load w->prog, with work(memory, ns) as w->kernel, and what else there is. */
	bool (*load)(struct faults_world *w);
	uint64_t work_ns; /* of one launch of work */

	const char *const *calls;
	uint32_t call_count;
	const struct faults_result *results;
	uint32_t result_count;
	uint64_t most; /* fail at most that many times of one call; 0: all of them */
	/* Lists of calls that end with NULL; a missing list is empty.  They may fail
	 * unreported: always, at the last time, or when close makes them. */
	const char *const *silent, *const *silent_last, *const *silent_in_close;
	/* The same, when they are made first: the device is opened without what they are
	 * tried for. */
	const char *const *silent_first;
	/* Calls made once in a process, which other tests make fail; calls that only
	 * other tests make. */
	const char *const *once, *const *elsewhere;
	/* The same for calls that depend on the environment, or NULL. */
	bool (*silent_here)(const char *call), (*elsewhere_here)(const char *call);
	/* Calls that are told what a stranger may have made: all of their errors may be
	 * EINVAL. */
	const char *const *strange;
	const struct faults_way *ways;
	uint32_t way_count;
	const struct CMUnitTest *cases; /* of the vendor's own, or NULL */
	uint32_t case_count;
};
extern const struct faults_vendor faults_vendor;

/* Record err and text if err is negative and the first one.  Return false if this or an
 * earlier step failed. */
bool faults_note(struct faults_world *w, int err, const char *text);
/* The same with the host's text. */
bool faults_step(struct faults_world *w, int err);
/* Poll until no command is in flight or the device is lost. */
void faults_run_dry(struct faults_world *w);
/* Submit cmd; if the queue is full, run dry first. */
bool faults_submit(struct faults_world *w, const struct hal_bk_cmd *cmd);
/* Submit a launch of one group. */
bool faults_launch(struct faults_world *w, void *kernel, const struct hal_bk_arg *args,
		   uint32_t count);
/* Load image, free it, bind the program where the backend wants that; get its first
 * kernel. */
bool faults_load(struct faults_world *w, void *image, size_t size, void **prog,
		 void **kernel);
/* Load image, free it.  Return true if the backend refuses it with -EINVAL and a text
 * that has all of texts (up to NULL). */
bool faults_refused(struct faults_world *w, void *image, size_t size,
		    const char *const *texts);
/* A further step: the partition moves with a command in flight, and one after it. */
bool faults_move(struct faults_world *w);
/* Release all objects of w and close its device. */
void faults_put_away(struct faults_world *w);

#endif
