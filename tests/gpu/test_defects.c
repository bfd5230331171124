/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that one queue must survive without harm to another: counters that wrap, numbers
 * that are never written, errors of queries, fills outside a mask, calls that wait.
 */
#define _GNU_SOURCE
#include "defects.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "host.h"

#define OUT_OF_MEMORY 2u
#define UNKNOWN       999u
#define MS            UINT64_C(1000000)
#define NEVER         UINT64_MAX

/* ---- the rig ----------------------------------------------------------------------- */

static bool is_open, is_driven;

static void *library_function(const char *name)
{
	return dlsym(dlopen(host_face.stand_in, RTLD_NOW), name);
}

void defect_begin(struct rig *r, enum defect_how how)
{
	rig_face.how[RIG_PLAIN] = defects_face.how[how];
	is_open = true;
	is_driven = defects_face.how[how]->clock != 0;
	rig_begin(r, RIG_PLAIN);
}

void defect_end(struct rig *r)
{
	is_open = false;
	rig_end(r);
}

int defect_setup(void **state)
{
	(void)state;
	return 0;
}

/* A case that has failed leaves its device open: lose what it has, so that the next case
 * begins with nothing. */
int defect_teardown(void **state)
{
	void (*drive)(uint32_t on);

	(void)state;
	rig_face.stand_in()->hot(0);
	if (!is_open)
		return 0;
	*(void **)&drive = library_function(defects_face.drive);
	if (is_driven)
		drive(0);
	is_open = false;
	rig_face.stand_in()->lose(0, UNKNOWN);
	rig_face.stand_in()->lose(1, UNKNOWN);
	rig_face.stand_in()->reset();
	return 0;
}

int defect_work(struct rig *r, void *queue, uint64_t ns, uint32_t groups)
{
	void *own = r->queue;
	struct hal_bk_cmd cmd;
	int err;

	r->queue = queue;
	err = rig_launch(r, r->work, ns, groups, &cmd);
	r->queue = own;
	return err;
}

void *defect_queue(struct rig *r)
{
	void *queue;

	assert_int_equal(rig_face.backend->cold.queue_create(r->dev, r->part, 0, &queue),
			 0);
	return queue;
}

void defect_end_lost(struct rig *r, void *const *queues, uint32_t count)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	uint32_t i;

	rig_face.stand_in()->lose(rig_face.device, UNKNOWN);
	rig_face.lose(r->dev, UNKNOWN);
	while (b->hot.poll(r->dev, 0, &ev, 1) == 1)
		;
	for (i = 0; i < count; i++)
		assert_int_equal(b->cold.queue_destroy(r->dev, queues[i]), 0);
	defect_end(r);
}

bool defect_event(struct rig *r, uint64_t until_ns, uint32_t kind,
		  struct hal_bk_event *ev)
{
	const struct hal_backend *b = rig_face.backend;

	while (b->hot.now(r->dev) < until_ns)
		if (b->hot.poll(r->dev, until_ns, ev, 1) == 1 && ev->kind == kind)
			return true;
	return false;
}

/* Let time pass by the library alone: the backend does not poll. */
static void pass_unseen(uint64_t ns)
{
	const uint64_t until = rig_face.stand_in()->now() + ns;
	void (*advance)(uint64_t until_ns, uint64_t * now_ns, uint32_t * idle);
	uint64_t now = 0;
	uint32_t idle;

	*(void **)&advance = library_function(defects_face.advance);
	while (now < until)
		advance(until, &now, &idle);
}

void defect_freed(struct rig *r, uint64_t late_ns)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	const uint64_t gone = s->calls(defects_face.destroy);
	struct hal_bk_event ev;

	assert_int_equal(b->cold.queue_destroy(r->dev, r->queue), 0);
	r->queue = defect_queue(r);
	assert_false(defect_event(r, b->hot.now(r->dev) + late_ns, HAL_BK_DONE, &ev));
	assert_int_equal(s->calls(defects_face.destroy), gone + 1);
	assert_true(b->hot.next(r->dev) == UINT64_MAX);
}

/* ---- counters that wrap ------------------------------------------------------------ */

/* After 2^31 values of its counter a queue's launch still stops inside: FOLD does not
 * become DRAIN. */
void fold_after_2_31_values(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_cmd cmd;
	struct rig r;
	uint64_t at;

	(void)state;
	defect_begin(&r, HOW_STOPS);
	assert_int_equal(defect_work(&r, r.queue, 100, 3), 0);
	assert_int_equal(rig_finish(&r), 1);
	defects_face.age(r.queue, INT32_MAX);
	rig_zero(&r);
	assert_int_equal(rig_launch(&r, r.work, RIG_BLOCK_NS, RIG_BLOCKS, &cmd), 0);
	assert_int_equal(rig_run_for(&r, 3 * RIG_BLOCK_NS), 0);
	at = b->hot.now(r.dev);
	assert_int_equal(rig_stop(&r, NULL), 0);
	assert_true(b->hot.now(r.dev) - at < 2 * RIG_BLOCK_NS);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_word(&r, 0), RIG_BLOCKS);
	defect_end(&r);
}

/* An idle queue is destroyed without a wait, also after 2^31 values. */
void destroy_after_2_31_values(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_STOPS);
	assert_int_equal(defect_work(&r, r.queue, 100, 3), 0);
	assert_int_equal(rig_finish(&r), 1);
	defects_face.age(r.queue, INT32_MAX);
	defect_end(&r);
	assert_int_equal(s->calls(defects_face.synchronize), 0);
}

/* ---- masks ------------------------------------------------------------------------- */

/* Run the command in a partition that does not begin at unit 0, and a launch that shows
 * which units the partition has: fills and copies must begin on these alone. */
static void stays_in_its_mask(enum defect_how how, uint32_t op)
{
	const struct hal_bk_partition_desc desc = {
		.col = 5, .units = 1, .rows = 1, .cols = 1};
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_cmd cmd = {.op = op, .cookie = 9};
	struct gpu_stand_in_job jobs[16];
	uint64_t has[5] = {0};
	uint32_t n, i, k;
	void *part, *own;
	struct rig r;

	defect_begin(&r, how);
	assert_int_equal(b->cold.partition_create(r.dev, &desc, &part), 0);
	own = r.part;
	r.part = part;
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue), 0);
	r.queue = defect_queue(&r);
	rig_zero(&r); /* waits for what is left of its trials */
	while (rig_face.stand_in()->jobs(jobs, 16))
		;
	if (op == HAL_OP_FILL) {
		cmd.fill.dst = r.mem;
		cmd.fill.bytes = 64;
	} else if (op == HAL_OP_COPY) {
		cmd.copy.dst = cmd.copy.src = r.mem;
		cmd.copy.dst_offset = cmd.copy.bytes = 64;
	} else if (op == HAL_OP_TIMESTAMP) {
		cmd.timestamp.dst = r.mem;
	}
	if (op != HAL_OP_NOP)
		assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), 0);
	(void)rig_finish(&r);
	assert_int_equal(defect_work(&r, r.queue, 1000, 64), 0);
	(void)rig_finish(&r);
	n = rig_face.stand_in()->jobs(jobs, 16);
	for (i = 0; i < n; i++)
		for (k = 0; k < 5 && strcmp(jobs[i].what, "work") == 0; k++)
			has[k] |= jobs[i].units[k];
	assert_true((has[0] | has[1]) != 0 && !(has[0] & 1));
	for (i = 0; i < n; i++)
		for (k = 0; k < 5; k++)
			if (jobs[i].units[k] & ~has[k])
				fail_msg("a %s ran on units %u+0x%llx outside 0x%llx",
					 jobs[i].what, 64 * k,
					 (unsigned long long)jobs[i].units[k],
					 (unsigned long long)has[k]);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue), 0);
	assert_int_equal(b->cold.partition_destroy(r.dev, part), 0);
	r.part = own;
	r.queue = defect_queue(&r);
	defect_end(&r);
}

static void stays_in_masks(uint32_t op)
{
	/* Masks at launch come last: from then on the process has them. */
	if (defects_face.how[HOW_STREAMS])
		stays_in_its_mask(HOW_STREAMS, op);
	stays_in_its_mask(HOW_MASKED, op);
}

void masked_fill(void **state)
{
	(void)state;
	stays_in_masks(HAL_OP_FILL);
}

void masked_copy(void **state)
{
	(void)state;
	stays_in_masks(HAL_OP_COPY);
}

void masked_timestamp(void **state)
{
	(void)state;
	stays_in_masks(HAL_OP_TIMESTAMP);
}

/* What a launch that can stop needs beforehand is its queue's work, too. */
void masked_control(void **state)
{
	(void)state;
	stays_in_masks(HAL_OP_NOP);
}

/* Where engines fill, no mask is taken: that is no failure, and launches go on. */
void masked_fill_by_engines(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_cmd cmd = {.op = HAL_OP_FILL, .cookie = 9};
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_MASKED);
	rig_face.stand_in()->moves_run(0);
	cmd.fill.dst = r.mem;
	cmd.fill.bytes = 64;
	assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(defect_work(&r, r.queue, 1000, 4), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_word(&r, 0), 4);
	defect_end(&r);
}

/* ---- units -------------------------------------------------------------------------- */

/* A timestamp is written although a neighbour's blocks have all units. */
void timestamp_needs_no_unit(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_cmd cmd = {.op = HAL_OP_TIMESTAMP, .cookie = 9};
	struct hal_bk_event ev;
	void *neighbour;
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_PLAIN);
	neighbour = defect_queue(&r);
	assert_int_equal(defect_work(&r, neighbour, 50 * MS, rig_face.units), 0);
	assert_int_equal(rig_run_for(&r, 1 * MS), 0);
	cmd.timestamp.dst = r.mem;
	assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), 0);
	assert_true(defect_event(&r, b->hot.now(r.dev) + 1 * MS, HAL_BK_DONE, &ev));
	assert_int_equal(ev.cookie, 9);
	assert_int_equal(ev.status, 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(b->cold.queue_destroy(r.dev, neighbour), 0);
	defect_end(&r);
}

/* ---- flags ------------------------------------------------------------------------- */

/* FOLD right behind the first launch of a queue stops that launch, too: what its launches
 * need beforehand is not there yet. */
void fold_of_first_launch(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct rig r;
	uint64_t at;

	(void)state;
	defect_begin(&r, HOW_STOPS);
	rig_zero(&r);
	assert_int_equal(defect_work(&r, r.queue, 1 * MS, RIG_BLOCKS), 0);
	at = b->hot.now(r.dev);
	assert_int_equal(rig_stop(&r, NULL), 0);
	assert_true(b->hot.now(r.dev) - at < 2 * MS);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_word(&r, 0), RIG_BLOCKS);
	defect_end(&r);
}

/* What a queue needs beforehand is there after its first launch. */
static void prime(struct rig *r, void *const *queues, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		assert_int_equal(defect_work(r, queues[i], 100, 1), 0);
	assert_int_equal(rig_finish(r), count);
}

void defect_stop_beside(struct rig *r, void *neighbour)
{
	prime(r, (void *const[]){r->queue, neighbour}, 2);
	assert_int_equal(defect_work(r, r->queue, RIG_BLOCK_NS, RIG_BLOCKS), 0);
	assert_int_equal(rig_run_for(r, 2 * RIG_BLOCK_NS), 0);
	assert_int_equal(defect_work(r, neighbour, 50 * MS, rig_face.units), 0);
	assert_int_equal(rig_run_for(r, RIG_BLOCK_NS), 0);
}

/* A stopped queue is quiet although a neighbour's blocks have taken all units: nothing
 * that lowers its flags waits for a unit. */
void lowering_needs_no_unit(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	void *neighbour;
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_STOPS);
	neighbour = defect_queue(&r);
	defect_stop_beside(&r, neighbour);
	assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 77), 0);
	assert_true(defect_event(&r, b->hot.now(r.dev) + 20 * RIG_BLOCK_NS, HAL_BK_QUIET,
				 &ev));
	assert_int_equal(ev.cookie, 77);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_finish(&r), 2);
	assert_int_equal(b->cold.queue_destroy(r.dev, neighbour), 0);
	defect_end(&r);
}

/* The flags of one queue are raised while those of another are being lowered: its blocks
 * see them when they come to run, at the end of the neighbour's. */
void raising_waits_for_no_lowering(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	void *neighbour, *last;
	struct rig r;
	uint64_t at;
	bool quiet;

	(void)state;
	defect_begin(&r, HOW_STOPS);
	neighbour = defect_queue(&r);
	last = defect_queue(&r);
	prime(&r, &last, 1);
	defect_stop_beside(&r, neighbour);
	assert_int_equal(defect_work(&r, last, 20 * MS, rig_face.units), 0);
	assert_int_equal(rig_run_for(&r, RIG_BLOCK_NS), 0);
	at = b->hot.now(r.dev);
	assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 77), 0);
	/* lowering_needs_no_unit checks whether it is quiet. */
	(void)defect_event(&r, at + 20 * RIG_BLOCK_NS, HAL_BK_QUIET, &ev);
	assert_int_equal(b->hot.suspend(r.dev, last, HAL_SUSPEND_FOLD, 78), 0);
	do
		quiet = defect_event(&r, at + 60 * MS, HAL_BK_QUIET, &ev);
	while (quiet && ev.cookie != 78);
	assert_true(quiet);
	assert_true(b->hot.now(r.dev) - at < 55 * MS);
	defect_end_lost(&r, (void *const[]){neighbour, last}, 2);
}

/* ---- queries ----------------------------------------------------------------------- */

/* A command that never ends, and a query that answers an error each time: its queue fails
 * with the error's name after a bounded number of queries. */
void query_errors_end_a_wait(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	char number[16];
	struct rig r;
	uint32_t i;

	(void)state;
	for (i = 0; defects_face.passing[i]; i++) {
		bool ended = false;
		uint32_t k;

		defect_begin(&r, HOW_PLAIN);
		assert_int_equal(defect_work(&r, r.queue, NEVER, 1), 0);
		assert_int_equal(
			rig_face.stand_in()->answer_query(0, defects_face.passing[i]), 0);
		for (k = 0; k < 32 && !ended; k++)
			ended = defect_event(&r, b->hot.now(r.dev) + 20 * MS, HAL_BK_DONE,
					     &ev);
		if (!ended)
			fail_msg("result %u of %s ended no wait", defects_face.passing[i],
				 defects_face.query);
		assert_int_equal(ev.status, -EIO);
		snprintf(number, sizeof(number), "(%u)", defects_face.passing[i]);
		if (!strstr(ev.fault, defects_face.query) || !strstr(ev.fault, number))
			fail_msg("result %u: fault is '%s'", defects_face.passing[i],
				 ev.fault);
		defect_end_lost(&r, NULL, 0);
	}
}

/* One error between good answers breaks nothing. */
void one_query_error_is_forgiven(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_PLAIN);
	assert_int_equal(defect_work(&r, r.queue, 100 * MS, 1), 0);
	assert_false(defect_event(&r, b->hot.now(r.dev) + 20 * MS, HAL_BK_DONE, &ev));
	assert_int_equal(s->break_call(defects_face.query, 1, defects_face.passing[0]),
			 0);
	assert_false(defect_event(&r, b->hot.now(r.dev) + 20 * MS, HAL_BK_DONE, &ev));
	assert_int_equal(s->armed(), 0);
	assert_int_equal(rig_finish(&r), 1);
	defect_end(&r);
}

/* Two commands that do not end: both queues are asked, not only the first of the list. */
void each_queue_is_asked(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	void *other;
	struct rig r;
	uint32_t i;

	(void)state;
	defect_begin(&r, HOW_PLAIN);
	other = defect_queue(&r);
	assert_int_equal(defect_work(&r, r.queue, NEVER, 1), 0);
	assert_int_equal(defect_work(&r, other, NEVER, 1), 0);
	for (i = 0; i < 8; i++)
		assert_false(
			defect_event(&r, b->hot.now(r.dev) + 10 * MS, HAL_BK_DONE, &ev));
	/* Within two periods each. */
	assert_in_range(s->queries(0), 4, UINT64_MAX);
	assert_in_range(s->queries(1), 4, UINT64_MAX);
	defect_end_lost(&r, &other, 1);
}

static uint64_t real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Real clock: completions of one queue do not put off the query of another. */
void asked_though_others_complete(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	uint64_t since;
	void *other;
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_REAL);
	other = defect_queue(&r);
	assert_int_equal(defect_work(&r, r.queue, NEVER, 1), 0);
	assert_int_equal(defect_work(&r, other, 100000, 1), 0);
	for (since = real_ns(); !s->queries(1) && real_ns() - since < 1000 * MS;)
		if (b->hot.poll(r.dev, 0, &ev, 1) == 1)
			assert_int_equal(defect_work(&r, other, 100000, 1), 0);
	assert_true(s->queries(1) != 0);
	defect_end_lost(&r, &other, 1);
}

/* ---- channels ---------------------------------------------------------------------- */

/* Many queues, as deep as they can be, share one channel: no call waits for an entry of
 * it, on a thread that may not, and all commands complete. */
void no_call_waits_for_a_channel(void **state)
{
	enum { EACH = 64, MOST = 128 };
	const struct gpu_stand_in_limits one = {.channels = 1};
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	const uint32_t count = defects_face.channel_queues;
	uint32_t given[MOST] = {0}, left = count * EACH, i;
	void *queues[MOST];
	struct hal_bk_event ev;
	struct rig r;
	uint64_t at;

	(void)state;
	assert_true(count <= MOST);
	defect_begin(&r, HOW_MANY);
	s->limit(&one);
	for (i = 0; i < count; i++)
		queues[i] = defect_queue(&r);
	s->hot(1);
	while (left) {
		at = s->now();
		for (i = 0; i < count; i++)
			while (given[i] < EACH) {
				const int err = defect_work(&r, queues[i], 1000, 1);

				if (err == -EAGAIN)
					break;
				assert_int_equal(err, 0);
				given[i]++;
			}
		if (s->blocked())
			fail_msg("a call waited for an entry of a channel for %llu ns",
				 (unsigned long long)(s->now() - at));
		assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
		assert_int_equal(ev.status, 0);
		left--;
	}
	s->hot(0);
	for (i = 0; i < count; i++)
		assert_int_equal(b->cold.queue_destroy(r.dev, queues[i]), 0);
	defect_end(&r);
}

/* ---- texts ------------------------------------------------------------------------- */

/* Two stopped launches; the queue breaks while the first is given again: what broke it is
 * what the fault says. */
void first_fault_is_kept(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_STOPS);
	assert_int_equal(defect_work(&r, r.queue, RIG_BLOCK_NS, RIG_BLOCKS), 0);
	assert_int_equal(defect_work(&r, r.queue, RIG_BLOCK_NS, RIG_BLOCKS), 0);
	assert_int_equal(rig_run_for(&r, 3 * RIG_BLOCK_NS), 0);
	assert_int_equal(rig_stop(&r, NULL), 0);
	assert_int_equal(rig_face.stand_in()->break_call(defects_face.again,
							 defects_face.again_nth,
							 OUT_OF_MEMORY),
			 0);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_face.stand_in()->armed(), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, -EIO);
	if (!strstr(ev.fault, defects_face.again))
		fail_msg("fault is '%s', not of %s", ev.fault, defects_face.again);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, -ECANCELED);
	defect_end(&r);
}

/* The same of a queue that is broken, and then hangs. */
void hang_keeps_first_fault(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_HANGS);
	rig_face.stand_in()->break_call(defects_face.write, 1, OUT_OF_MEMORY);
	assert_int_equal(defect_work(&r, r.queue, NEVER, 1), 0);
	assert_true(defect_event(&r, b->hot.now(r.dev) + 9 * MS, HAL_BK_DONE, &ev));
	assert_int_equal(ev.status, -EIO);
	if (!strstr(ev.fault, defects_face.write))
		fail_msg("fault is '%s', not of %s", ev.fault, defects_face.write);
	defect_end_lost(&r, NULL, 0);
}

/* The device is lost in silence while a launch runs for longer than hang_ms: the driver
 * is asked before the launch is given up, and the fault says what the driver answers. */
void loss_is_no_hang(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_HANGS);
	assert_int_equal(defect_work(&r, r.queue, NEVER, 1), 0);
	assert_false(defect_event(&r, b->hot.now(r.dev) + 4900000, HAL_BK_DONE, &ev));
	rig_face.stand_in()->lose(rig_face.device, UNKNOWN);
	assert_true(defect_event(&r, b->hot.now(r.dev) + 9 * MS, HAL_BK_DONE, &ev));
	assert_int_equal(ev.status, -EIO);
	if (!strstr(ev.fault, "(999), device lost"))
		fail_msg("fault is '%s', not of the loss", ev.fault);
	defect_end_lost(&r, NULL, 0);
}

/* ---- costs ------------------------------------------------------------------------- */

/* 64 commands have ended unseen: their times cost one call each, and one more. */
void elapsed_calls_are_linear(void **state)
{
	enum { COUNT = 64 };
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev[COUNT];
	uint64_t before;
	struct rig r;
	uint32_t i;

	(void)state;
	defect_begin(&r, HOW_MANY);
	for (i = 0; i < COUNT; i++)
		assert_int_equal(defect_work(&r, r.queue, 10000, 1), 0);
	pass_unseen(10 * MS);
	(void)rig_word(&r, 0); /* which reads the clock again */
	before = s->calls(defects_face.elapsed);
	assert_int_equal(b->hot.poll(r.dev, b->hot.now(r.dev) + 1, ev, COUNT), COUNT);
	for (i = 0; i < COUNT; i++) {
		assert_int_equal(ev[i].status, 0);
		assert_true(ev[i].end_ns - ev[i].start_ns >= 10000);
		if (i)
			assert_true(ev[i].start_ns >= ev[i - 1].end_ns);
	}
	assert_in_range(s->calls(defects_face.elapsed) - before, 0, COUNT + 1);
	defect_end(&r);
}

/* ---- numbers that are never written ------------------------------------------------ */

/* The number of a launch is not written, and it hangs: when its stream is empty, all is
 * given back. */
void freed_after_a_lost_number(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_HANGS);
	rig_face.stand_in()->break_call(defects_face.write, 1, OUT_OF_MEMORY);
	assert_int_equal(defect_work(&r, r.queue, 9 * MS, 1), 0);
	assert_true(defect_event(&r, b->hot.now(r.dev) + 8 * MS, HAL_BK_DONE, &ev));
	assert_int_equal(ev.status, -EIO);
	defect_freed(&r, 20 * MS);
	defect_end(&r);
}

/* The same of two stopped launches, of which the first hangs when it goes on, and the
 * second is refused. */
void freed_after_a_lost_resume(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_LONG);
	assert_int_equal(defect_work(&r, r.queue, 15 * MS, 3 * rig_face.units), 0);
	assert_int_equal(defect_work(&r, r.queue, 15 * MS, rig_face.units), 0);
	assert_int_equal(rig_run_for(&r, 1 * MS), 0);
	assert_int_equal(rig_stop(&r, NULL), 0);
	rig_face.stand_in()->break_call(defects_face.launch, 2, OUT_OF_MEMORY);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(rig_face.stand_in()->armed(), 0);
	assert_true(defect_event(&r, b->hot.now(r.dev) + 25 * MS, HAL_BK_DONE, &ev));
	assert_int_equal(ev.status, -EIO);
	assert_int_equal(b->hot.poll(r.dev, 0, &ev, 1), 1);
	assert_int_equal(ev.status, -ECANCELED);
	defect_freed(&r, 40 * MS);
	defect_end(&r);
}

/* ---- calls that wait --------------------------------------------------------------- */

/* A queue whose first launch was refused is destroyed while a neighbour's blocks have all
 * units, and what its launch was given beforehand waits for one: the engine does not. */
void destroy_waits_for_no_stream(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	const char *text = "";
	uint64_t at;
	void *neighbour;
	struct rig r;

	(void)state;
	defect_begin(&r, HOW_STOPS);
	neighbour = defect_queue(&r);
	assert_int_equal(defect_work(&r, neighbour, 50 * MS, rig_face.units), 0);
	assert_int_equal(rig_run_for(&r, 1 * MS), 0);
	s->break_call(defects_face.launch, 1, OUT_OF_MEMORY);
	assert_true(defect_work(&r, r.queue, 1000, 1) < 0);
	at = s->now();
	s->hot(1);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue), 0);
	s->hot(0);
	if (s->now() != at)
		fail_msg("the engine waited for %llu ns",
			 (unsigned long long)(s->now() - at));
	if (s->misuse(&text))
		fail_msg("misuse: %s", text);
	r.queue = neighbour;
	assert_int_equal(rig_finish(&r), 1);
	defect_end(&r);
}
