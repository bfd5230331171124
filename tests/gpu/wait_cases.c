/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory, copies and objects of a GPU: what counts as used memory of the device, and
 * which thread makes the calls of the library that may wait for the device.
 */
#define _GNU_SOURCE
#include "rig.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES UINT64_C(4096)

static uint64_t free_bytes(const struct rig *r)
{
	struct hal_device_info info = {.size = sizeof(info)};

	assert_int_equal(rig_face.backend->cold.get_info(r->dev, &info), 0);
	return info.memory_free;
}

static void *allocate(const struct rig *r, uint32_t flags)
{
	void *mem;

	if (rig_face.backend->cold.mem_alloc(r->dev, r->part, BYTES, NULL, flags, &mem))
		fail_msg("%s", host_text);
	return mem;
}

/* Pinned memory of the host is no memory of the device; lists of stopped blocks are. */
void wait_counts(void **state)
{
	static const enum rig_how hows[] = {RIG_BETWEEN, RIG_HOST, RIG_PLAIN};
	const struct hal_backend *b = rig_face.backend;
	uint64_t before;
	void *mem[2], *queue;
	struct rig r;
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		rig_begin(&r, hows[i]);
		before = free_bytes(&r);
		mem[0] = allocate(&r, HAL_BUFFER_MAPPABLE);
		assert_int_equal(before - free_bytes(&r), 0);
		mem[1] = allocate(&r, 0);
		assert_int_equal(before - free_bytes(&r),
				 hows[i] == RIG_HOST ? 0 : BYTES);
		assert_int_equal(b->cold.mem_free(r.dev, mem[0]), 0);
		assert_int_equal(b->cold.mem_free(r.dev, mem[1]), 0);
		assert_int_equal(before - free_bytes(&r), 0);
		assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &queue), 0);
		if (hows[i] == RIG_PLAIN)
			assert_true(free_bytes(&r) < before);
		else
			assert_int_equal(before - free_bytes(&r), 0);
		assert_int_equal(b->cold.queue_destroy(r.dev, queue), 0);
		assert_int_equal(before - free_bytes(&r), 0);
		rig_end(&r);
	}
}

/* ---- what is given back --------------------------------------------------------------- */

static void clean(void)
{
	const char *text = "";

	if (rig_face.stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
	assert_int_equal(rig_face.stand_in()->live(), 0);
}

/* Poll until a command ends; return how long it ran. */
static uint64_t run_one(struct rig *r, int status)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_event ev;
	int n;

	do
		n = b->hot.poll(r->dev, UINT64_MAX, &ev, 1);
	while (!n);
	assert_int_equal(n, 1);
	assert_int_equal(ev.status, status);
	return ev.end_ns - ev.start_ns;
}

/* One open frees while another has a kernel on the device: the engine's thread does not
 * wait, and the kernel takes as long as alone.  The memory goes when it has ended. */
void wait_frees(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_cmd cmd;
	struct hal_bk_event ev;
	uint64_t alone, frees, now;
	struct rig r, other;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	rig_open(&other, RIG_BETWEEN);
	s->frees_wait(1);
	assert_int_equal(rig_launch(&other, other.work, 20000000, 1, &cmd), 0);
	alone = run_one(&other, 0);
	mem = allocate(&r, 0);
	frees = s->calls(rig_face.free);
	assert_int_equal(rig_launch(&other, other.work, 20000000, 1, &cmd), 0);
	now = s->now();
	s->hot(1);
	assert_int_equal(b->cold.mem_free(r.dev, mem), 0);
	assert_int_equal(b->hot.poll(r.dev, 0, &ev, 1), 0);
	assert_int_equal(s->now(), now);
	assert_int_equal(s->calls(rig_face.free), frees);
	assert_int_equal(run_one(&other, 0), alone);
	assert_int_equal(b->hot.poll(r.dev, 0, &ev, 1), 0);
	assert_int_equal(s->calls(rig_face.free), frees + 1);
	s->hot(0);
	rig_put_away(&other);
	rig_end(&r);
}

/* With the host's clock a thread of the device waits. */
void wait_frees_real(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_cmd cmd;
	struct rig r, other;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_REAL);
	rig_open(&other, RIG_REAL);
	s->frees_wait(1);
	mem = allocate(&r, 0);
	assert_int_equal(rig_launch(&other, other.work, 10000000, 1, &cmd), 0);
	s->hot(1);
	assert_int_equal(b->cold.mem_free(r.dev, mem), 0);
	(void)run_one(&other, 0);
	s->hot(0);
	rig_put_away(&other);
	rig_put_away(&r);
	clean();
}

/* Memory that is being given back is waited for, not refused. */
void wait_room_real(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_cmd cmd;
	struct rig r;
	void *mem;
	uint32_t i;

	(void)state;
	rig_begin(&r, RIG_REAL);
	s->frees_wait(1);
	s->memory_left(BYTES);
	mem = allocate(&r, 0);
	assert_int_equal(rig_launch(&r, r.work, 5000000, 1, &cmd), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(b->cold.mem_free(r.dev, mem), 0);
		mem = allocate(&r, 0);
	}
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, 8, NULL, 0, &mem), -ENOSPC);
	(void)run_one(&r, 0);
	assert_int_equal(b->cold.mem_free(r.dev, mem), 0);
	rig_put_away(&r);
	clean();
}

static uint32_t threads(void)
{
	DIR *d = opendir("/proc/self/task");
	uint32_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* The thread waits for a kernel that is given up: close does not wait for the thread. */
void wait_hung_real(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_cmd cmd;
	struct rig r;
	uint32_t before;
	uint64_t frees;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_REAL);
	before = threads();
	s->frees_wait(1);
	mem = allocate(&r, 0);
	frees = s->calls(rig_face.free);
	assert_int_equal(rig_launch(&r, r.work, UINT64_C(1) << 40, 1, &cmd), 0);
	assert_int_equal(b->cold.mem_free(r.dev, mem), 0);
	while (s->calls(rig_face.free) == frees)
		sched_yield();
	(void)run_one(&r, -EIO);
	rig_put_away(&r);
	assert_int_equal(threads(), before + 1);
	s->lose(rig_face.device, 999); /* the end of the process */
	while (threads() != before)
		sched_yield();
}
