/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rig.h - tests of backends of GPUs that are alike, on their stand-ins: a device that is
 * driven through the backend's table, with a partition, a queue, some memory and two
 * kernels; and cases for any of them.  tests/cuda and tests/rocm have a face each.
 */
#ifndef TESTS_GPU_RIG_H
#define TESTS_GPU_RIG_H

#include <stdbool.h>
#include <stddef.h>

#include <hal/backend.h>

#include "tests/fakes/gpu/stand_in.h"

#define RIG_BLOCK_NS 10000u
#define RIG_BLOCKS   500u   /* of tens of units: several waves */
#define RIG_MOST     65536u /* blocks of a launch that can be stopped */

/* Options to open it with: virtual time, launches that stop. */
enum rig_how {
	RIG_PLAIN,
	RIG_HANGS,   /* hang_ms=3 */
	RIG_SPLIT,   /* units that partitions move over */
	RIG_BETWEEN, /* launches that do not stop */
	RIG_HOST,    /* the same, buffers in the host's memory */
	RIG_REAL,    /* as RIG_BETWEEN with the host's clock, and hang_ms=20 */
	RIG_HOWS
};

struct rig_face {
	const struct hal_backend *backend;
	const struct hal_bk_config *how[RIG_HOWS];
	uint32_t device, units; /* which of the stand-in's, how many blocks run at once */
	uint16_t has[RIG_HOWS]; /* units of its partition; 0: one */
	uint32_t modes;         /* to suspend in, besides DRAIN and FOLD */
	bool moves_at_once;     /* what runs moves with its partition */
	const char *kernels[2]; /* work, iota: as the stand-in's image has them */
	uint32_t flags;         /* of each launch, besides what its case says */
	const char *calls[8];   /* that a stop makes and that can fail; then NULL */
	const char *free;       /* call that frees device memory */
	const char *enter;      /* call by which a thread chooses the device */
	const char *copy, *fill, *wait; /* calls of host copies */
	/* Memory that is exported: the call that imports it, the one that frees it, and
	 * how it is rounded. */
	const char *import, *unmap;
	uint64_t granule;
	/* Calls that register memory of the program's, find its address, and undo it. */
	const char *registers, *points, *unregisters;
	const struct gpu_stand_in *(*stand_in)(void);
	void *(*image)(const char *const *kernels, uint32_t count, uint32_t group_size,
		       size_t *size);
	void (*lose)(void *device, uint32_t result); /* the backend is told */
	/* What a program does itself; 0 or the library's result. */
	uint32_t (*own_register)(void *device, void *p, uint64_t bytes);
	uint32_t (*own_unregister)(void *device, void *p);
	/* What a program does itself with the library, on that device; 0 or its result.
	 */
	struct {
		uint32_t (*allocate)(void *device, uint64_t bytes, uint64_t *address);
		uint32_t (*release)(void *device, uint64_t address);
		uint32_t (*stream)(void *device, uint32_t flags, void **stream);
		uint32_t (*destroy)(void *device, void *stream);
		uint32_t (*fill)(void *device, uint64_t address, uint32_t value,
				 void *stream); /* a word */
		const char *offers[6];          /* calls that an offer makes: then NULL */
		/* A function of its own, which is told how it went. */
		uint32_t (*callback)(void *device, void *stream,
				     void (*fn)(void *stream, uint32_t result,
						void *user),
				     void *user);
		const char *makes[2]; /* calls that make device memory, a stream */
		/* Calls of a creation from an offer, on a new thread; then NULL. */
		const char *creates[8];
		const char *is_captured; /* call that says so of a stream */
		const char *launch;
	} own;
};
extern struct rig_face rig_face;
extern char host_text[512]; /* of the last failure */

struct rig {
	void *dev, *part, *queue, *prog, *mem;
	struct hal_bk_kernel_info info;
	void *work, *iota;
	struct hal_bk_arg args[4][2];
	uint32_t launches;
};

void rig_begin(struct rig *r, enum rig_how how);
/* The same of a device that others have open. */
void rig_open(struct rig *r, enum rig_how how);
void rig_put_away(struct rig *r);
/* The same; nothing may be left, nothing misused. */
void rig_end(struct rig *r);
/* work adds 1 to the first word, of each block; iota writes base + i to word i.  scalar:
 * how long a block takes, the base. */
int rig_launch(struct rig *r, void *kernel, uint64_t scalar, uint32_t groups,
	       struct hal_bk_cmd *cmd);
void rig_zero(struct rig *r);
uint32_t rig_word(struct rig *r, uint32_t i);
/* Lets so much time pass; how many commands ended. */
uint32_t rig_run_for(struct rig *r, uint64_t ns);
/* Suspends by FOLD; how many ended before it was quiet. */
uint32_t rig_stop(struct rig *r, struct hal_bk_event *quiet);
/* To the end; how many ended. */
uint32_t rig_finish(struct rig *r);

/* import_cases.c: a program's own memory and streams */
void import_used(void **state);
void import_not_exported(void **state);
void import_refused(void **state);
void import_taken_back(void **state);
void import_ways(void **state);
void import_fails(void **state);
void import_lost(void **state);
void import_function(void **state);
void import_captured(void **state);
void import_raced(void **state);
void import_kept(void **state);
void import_threads(void **state);
void import_captured_later(void **state);
void import_captured_stamp(void **state);
void import_captured_close(void **state);
/* The last one leaves objects in the driver until the process ends. */
#define IMPORT_CASES                                                                     \
	cmocka_unit_test(import_used), cmocka_unit_test(import_not_exported),            \
		cmocka_unit_test(import_refused), cmocka_unit_test(import_taken_back),   \
		cmocka_unit_test(import_ways), cmocka_unit_test(import_fails),           \
		cmocka_unit_test(import_lost), cmocka_unit_test(import_function),        \
		cmocka_unit_test(import_captured), cmocka_unit_test(import_raced),       \
		cmocka_unit_test(import_kept), cmocka_unit_test(import_threads),         \
		cmocka_unit_test(import_captured_later),                                 \
		cmocka_unit_test(import_captured_stamp),                                 \
		cmocka_unit_test(import_captured_close)

/* wait_cases.c: calls of the library that may wait for the device */
void wait_counts(void **state);
void wait_frees(void **state);
void wait_frees_real(void **state);
void wait_room_real(void **state);
void wait_hung_real(void **state);
void wait_enter_real(void **state);
void wait_copies(void **state);
void wait_copy_order(void **state);
void wait_clears(void **state);
void wait_copies_many(void **state);
#define WAIT_CASES                                                                       \
	cmocka_unit_test(wait_counts), cmocka_unit_test(wait_frees),                     \
		cmocka_unit_test(wait_frees_real), cmocka_unit_test(wait_room_real),     \
		cmocka_unit_test(wait_hung_real), cmocka_unit_test(wait_enter_real),     \
		cmocka_unit_test(wait_copies), cmocka_unit_test(wait_copy_order),        \
		cmocka_unit_test(wait_clears), cmocka_unit_test(wait_copies_many)

/* host_cases.c: queued copies between host memory and the device's */
void host_memory_is(void **state);
void host_moves_bytes(void **state);
void host_in_order(void **state);
void host_beside_kernels(void **state);
void host_waits_for_nothing(void **state);
void host_drained(void **state);
void host_folded(void **state);
void host_lost(void **state);
void host_register_refused(void **state);
void host_register_fails(void **state);
void host_register_again(void **state);
void host_unregistered_real(void **state);
void host_register_threads(void **state);
#define HOST_CASES                                                                       \
	cmocka_unit_test(host_memory_is), cmocka_unit_test(host_moves_bytes),            \
		cmocka_unit_test(host_in_order), cmocka_unit_test(host_beside_kernels),  \
		cmocka_unit_test(host_waits_for_nothing),                                \
		cmocka_unit_test(host_drained), cmocka_unit_test(host_folded),           \
		cmocka_unit_test(host_register_refused),                                 \
		cmocka_unit_test(host_register_fails),                                   \
		cmocka_unit_test(host_register_again),                                   \
		cmocka_unit_test(host_unregistered_real),                                \
		cmocka_unit_test(host_register_threads), cmocka_unit_test(host_lost)

/* share_cases.c: memory that is exported and imported */
void share_reaches(void **state);
void share_counts(void **state);
void share_refused(void **state);
void share_strange(void **state);
void share_of_host(void **state);
void share_no_room(void **state);
void share_while_it_runs(void **state);
void share_real(void **state);
void share_other_device(void **state);
void share_lost(void **state);
#define SHARE_CASES                                                                      \
	cmocka_unit_test(share_reaches), cmocka_unit_test(share_counts),                 \
		cmocka_unit_test(share_refused), cmocka_unit_test(share_strange),        \
		cmocka_unit_test(share_of_host), cmocka_unit_test(share_no_room),        \
		cmocka_unit_test(share_while_it_runs), cmocka_unit_test(share_real),     \
		cmocka_unit_test(share_other_device), cmocka_unit_test(share_lost)

/* stop_cases.c: preempt=block */
void stop_info(void **state);
void stop_inside(void **state);
void stop_any_time(void **state);
void stop_in_order(void **state);
void stop_shaped(void **state);
void stop_others_wait(void **state);
void stop_hung(void **state);
void stop_hung_in_fold(void **state);
void stop_ends(void **state);
void stop_each_fails(void **state);
#define STOP_CASES                                                                       \
	cmocka_unit_test(stop_info), cmocka_unit_test(stop_inside),                      \
		cmocka_unit_test(stop_any_time), cmocka_unit_test(stop_in_order),        \
		cmocka_unit_test(stop_shaped), cmocka_unit_test(stop_others_wait),       \
		cmocka_unit_test(stop_ends), cmocka_unit_test(stop_each_fails),          \
		cmocka_unit_test(stop_hung), cmocka_unit_test(stop_hung_in_fold)

#endif
