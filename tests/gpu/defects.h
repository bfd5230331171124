/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defects.h - faults of queues that a GPU's backend must survive without harm to other
 * tenants, on its fake driver.  tests/cuda and tests/rocm have a face each.
 */
#ifndef TESTS_GPU_DEFECTS_H
#define TESTS_GPU_DEFECTS_H

#include "rig.h"

enum defect_how {
	HOW_PLAIN,   /* launches that do not stop */
	HOW_STOPS,   /* preempt=block */
	HOW_HANGS,   /* hang_ms=5 */
	HOW_LONG,    /* preempt=block, hang_ms=20 */
	HOW_MANY,    /* inflight=64 */
	HOW_MASKED,  /* preempt=block; partitions are masks */
	HOW_STREAMS, /* the same; the masks are in streams, or NULL */
	HOW_REAL,    /* the real clock */
	HOWS
};

struct defects_face {
	const struct hal_bk_config *how[HOWS];
	const char *write, *query, *launch, *elapsed, *synchronize, *destroy;
	/* A call that follows the launch of what was stopped, and which of a resume. */
	const char *again;
	uint32_t again_nth;
	const char *advance, *drive; /* of the fake driver's library */
	/* Results of a query that do not mean that the device is lost; then 0. */
	uint32_t passing[5];
	uint32_t channel_queues; /* more than one channel has entries for, 64 deep */
	/* Set the queue's counter as after that many further commands. */
	void (*age)(void *queue, uint32_t by);
};
extern struct defects_face defects_face;

/* Open the rig so. */
void defect_begin(struct rig *r, enum defect_how how);
/* Give one of its queues a launch of work: ns a block, UINT64_MAX: it never ends. */
int defect_work(struct rig *r, void *queue, uint64_t ns, uint32_t groups);
/* One more of its partition. */
void *defect_queue(struct rig *r);
/* Give all back and close it; nothing may be left, nothing misused. */
void defect_end(struct rig *r);
/* Lose the device, give all back and close it. */
void defect_end_lost(struct rig *r, void *const *queues, uint32_t count);
/* Let time pass up to that; return true with the event if there was one of that kind. */
bool defect_event(struct rig *r, uint64_t until_ns, uint32_t kind,
		  struct hal_bk_event *ev);
/* Destroy the queue, replace it in the rig; after late_ns its stream must be gone. */
void defect_freed(struct rig *r, uint64_t late_ns);

/* Give the rig's queue a launch of short blocks, and then the neighbour one whose blocks
 * run for 50 ms and take all units as soon as those have been stopped. */
void defect_stop_beside(struct rig *r, void *neighbour);

int defect_setup(void **state);
int defect_teardown(void **state);
#define DEFECT(f) cmocka_unit_test_setup_teardown(f, defect_setup, defect_teardown)

void fold_after_2_31_values(void **state);
void destroy_after_2_31_values(void **state);
void masked_fill(void **state);
void masked_copy(void **state);
void masked_timestamp(void **state);
void masked_control(void **state);
void masked_fill_by_engines(void **state);
void fold_of_first_launch(void **state);
void timestamp_needs_no_unit(void **state);
void lowering_needs_no_unit(void **state);
void raising_waits_for_no_lowering(void **state);
void query_errors_end_a_wait(void **state);
void one_query_error_is_forgiven(void **state);
void no_call_waits_for_a_channel(void **state);
void first_fault_is_kept(void **state);
void hang_keeps_first_fault(void **state);
void loss_is_no_hang(void **state);
void elapsed_calls_are_linear(void **state);
void each_queue_is_asked(void **state);
void asked_though_others_complete(void **state);
void freed_after_a_lost_number(void **state);
void freed_after_a_lost_resume(void **state);
void destroy_waits_for_no_stream(void **state);

#endif
