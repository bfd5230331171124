/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory, copies and objects of a GPU: what counts as used memory of the device, and
 * which thread makes the calls of the library that may wait for the device.
 */
#define _GNU_SOURCE
#include "rig.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
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

/* The thread cannot choose its device at first: an allocation that waits for memory to be
 * given back gets it all the same. */
void wait_enter_real(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	struct rig r;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_REAL);
	s->memory_left(BYTES);
	mem = allocate(&r, 0);
	assert_int_equal(s->break_call(rig_face.enter, 1, 2), 0); /* OUT_OF_MEMORY */
	assert_int_equal(b->cold.mem_free(r.dev, mem), 0);
	while (s->armed())
		sched_yield();
	mem = allocate(&r, 0);
	assert_int_equal(b->cold.mem_free(r.dev, mem), 0);
	rig_put_away(&r);
	clean();
}

/* ---- host copies ---------------------------------------------------------------------- */

#define PIECE (1u << 20) /* of a copy */
#define MOST  (4 * PIECE)

static void *allocate_bytes(const struct rig *r, uint64_t bytes)
{
	void *mem;

	if (rig_face.backend->cold.mem_alloc(r->dev, r->part, bytes, NULL, 0, &mem))
		fail_msg("%s", host_text);
	return mem;
}

static void pattern(uint8_t *p, uint64_t bytes, uint32_t seed)
{
	uint64_t i;

	for (i = 0; i < bytes; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = (uint8_t)(seed >> 24);
	}
}

/* Sizes around a piece and two, at even and odd places. */
void wait_copies(void **state)
{
	static const uint64_t sizes[] = {1,
					 3,
					 4,
					 PIECE - 1,
					 PIECE,
					 PIECE + 1,
					 2 * PIECE,
					 2 * PIECE + 1,
					 3 * PIECE + 5};
	const struct hal_backend *b = rig_face.backend;
	uint8_t *data = malloc(MOST), *got = malloc(MOST);
	uint32_t i, at;
	struct rig r;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	mem = allocate_bytes(&r, MOST);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (at = 0; at < 8; at += 7) {
			pattern(data, sizes[i], i + at);
			memset(got, 0, sizes[i]);
			assert_int_equal(
				b->cold.mem_write(r.dev, mem, at, data, sizes[i]), 0);
			assert_int_equal(b->cold.mem_read(r.dev, mem, at, got, sizes[i]),
					 0);
			assert_memory_equal(data, got, sizes[i]);
		}
	assert_int_equal(b->cold.mem_free(r.dev, mem), 0);
	free(data);
	free(got);
	rig_end(&r);
}

/* The device has the next piece when the first one is waited for; each piece is one copy.
 * Where a wait fails nothing is left running. */
void wait_copy_order(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	uint8_t *data = calloc(1, MOST);
	uint64_t copies, waits;
	struct rig r;
	uint32_t i;
	void *mem;
	int err;

	(void)state;
	for (i = 0; i < 4; i++) {
		rig_begin(&r, RIG_BETWEEN);
		mem = allocate_bytes(&r, MOST);
		copies = s->calls(rig_face.copy);
		waits = s->calls(rig_face.wait);
		if (i < 2)
			assert_int_equal(s->break_call(rig_face.wait, 1, 801), 0);
		err = i % 2 ? b->cold.mem_read(r.dev, mem, 0, data, MOST)
			    : b->cold.mem_write(r.dev, mem, 0, data, MOST);
		assert_int_equal(err, i < 2 ? -ENOTSUP : 0);
		assert_int_equal(s->calls(rig_face.copy) - copies, i < 2 ? 2 : 4);
		assert_true(s->calls(rig_face.wait) - waits <= 5);
		assert_int_equal(b->cold.mem_free(r.dev, mem), 0);
		rig_end(&r);
	}
	free(data);
}

/* A large buffer is filled by the device, but for its last bytes; of a small one zeros
 * are copied. */
void wait_clears(void **state)
{
	static const struct {
		uint64_t bytes;
		uint32_t copies, fills;
	} want[] = {
		{1, 1, 0},        {PIECE, 1, 0}, {PIECE + 4, 0, 1},
		{MOST - 1, 1, 1}, {MOST, 0, 1},
	};
	const struct gpu_stand_in *s = rig_face.stand_in();
	const struct hal_backend *b = rig_face.backend;
	uint8_t *got = malloc(MOST);
	uint64_t copies, fills, k;
	struct rig r;
	uint32_t i;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		mem = allocate_bytes(&r, want[i].bytes);
		copies = s->calls(rig_face.copy);
		fills = s->calls(rig_face.fill);
		assert_int_equal(b->cold.mem_clear(r.dev, mem), 0);
		assert_int_equal(s->calls(rig_face.copy) - copies, want[i].copies);
		assert_int_equal(s->calls(rig_face.fill) - fills, want[i].fills);
		assert_int_equal(b->cold.mem_read(r.dev, mem, 0, got, want[i].bytes), 0);
		for (k = 0; k < want[i].bytes; k++)
			assert_int_equal(got[k], 0);
		assert_int_equal(b->cold.mem_free(r.dev, mem), 0);
	}
	free(got);
	rig_end(&r);
}

struct copier {
	struct rig *r;
	void *mem;
	uint32_t seed;
	pthread_t thread;
	bool ok;
};

static void *copy_much(void *arg)
{
	const struct hal_backend *b = rig_face.backend;
	struct copier *c = arg;
	const uint64_t bytes = 2 * PIECE + 77 * c->seed;
	uint8_t *data = malloc(bytes), *got = malloc(bytes);
	uint32_t i;

	c->ok = true;
	for (i = 0; i < 3; i++) {
		pattern(data, bytes, 10 * c->seed + i);
		memset(got, 0, bytes);
		c->ok &= !b->cold.mem_write(c->r->dev, c->mem, 0, data, bytes) &&
			 !b->cold.mem_read(c->r->dev, c->mem, 0, got, bytes) &&
			 memcmp(data, got, bytes) == 0 &&
			 !b->cold.mem_clear(c->r->dev, c->mem) &&
			 !b->cold.mem_read(c->r->dev, c->mem, 1, got, bytes) &&
			 got[0] == 0 && got[bytes - 1] == 0;
	}
	free(data);
	free(got);
	return NULL;
}

/* Several threads copy at a time: each finds its own bytes. */
void wait_copies_many(void **state)
{
	enum { THREADS = 4 };
	const struct hal_backend *b = rig_face.backend;
	struct copier c[THREADS];
	struct rig r;
	uint32_t i;

	(void)state;
	rig_begin(&r, RIG_REAL);
	for (i = 0; i < THREADS; i++) {
		c[i] = (struct copier){
			.r = &r, .mem = allocate_bytes(&r, MOST), .seed = i};
		assert_int_equal(pthread_create(&c[i].thread, NULL, copy_much, &c[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(c[i].thread, NULL), 0);
		assert_true(c[i].ok);
		assert_int_equal(b->cold.mem_free(r.dev, c[i].mem), 0);
	}
	rig_put_away(&r);
	clean();
}
