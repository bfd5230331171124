/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program has already: its memory is a buffer and its stream a queue, in its
 * order; both are still its own afterwards.  What is refused, taken back, lost.
 */
#define _GNU_SOURCE
#include "rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>
#include <hal/gpu.h>

#define BYTES          UINT64_C(4096)
#define OWN(call, ...) assert_int_equal(rig_face.own.call(__VA_ARGS__), 0)

static const struct hal_gpu_extension *extension(const struct rig *r)
{
	return rig_face.backend->cold.extension(r->dev, "gpu");
}

static void refused(int got, int err, const char *text)
{
	if (got != err || !strstr(host_text, text))
		fail_msg("%d, not %d: %s: not %s", got, err, host_text, text);
}

/* A buffer and a queue of what has been offered. */
static void make(struct rig *r, void **mem, void **queue)
{
	const struct hal_backend *b = rig_face.backend;

	assert_int_equal(b->cold.mem_alloc(r->dev, r->part, BYTES, NULL, 0, mem), 0);
	assert_int_equal(b->cold.queue_create(r->dev, r->part, 0, queue), 0);
}

static void unmake(struct rig *r, void *mem, void *queue)
{
	const struct hal_backend *b = rig_face.backend;

	assert_int_equal(b->cold.queue_destroy(r->dev, queue), 0);
	assert_int_equal(b->cold.mem_free(r->dev, mem), 0);
}

static uint32_t word_of(struct rig *r, void *mem, uint32_t i)
{
	uint32_t v;

	assert_int_equal(
		rig_face.backend->cold.mem_read(r->dev, mem, UINT64_C(4) * i, &v, 4), 0);
	return v;
}

/* The program's work before and behind it, without a wait; and once more afterwards. */
void import_used(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_device_info before = {.size = sizeof(before)}, info = before;
	struct hal_bk_arg args[2] = {{.bytes = BYTES}, {.value = 20000}};
	struct hal_bk_cmd cmd = {
		.op = HAL_OP_LAUNCH,
		.launch = {.args = args, .arg_count = 2, .groups = {3, 1, 1}}};
	struct hal_bk_event ev;
	void *stream, *mem, *queue;
	uint64_t address;
	struct rig r;
	int i;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	assert_int_equal(b->cold.get_info(r.dev, &before), 0);
	OWN(allocate, r.dev, 2 * BYTES, &address);
	OWN(stream, r.dev, 1, &stream);
	OWN(fill, r.dev, address + BYTES, 7, stream);
	for (i = 0; i < 2; i++) {
		assert_int_equal(
			extension(&r)->offer_memory(r.dev, address + BYTES, BYTES), 0);
		assert_int_equal(extension(&r)->offer_stream(r.dev, stream), 0);
		make(&r, &mem, &queue);
		args[0].mem = mem;
		cmd.launch.kernel = r.work;
		assert_int_equal(b->hot.submit(r.dev, queue, &cmd), 0);
		OWN(fill, r.dev, address + BYTES + 4, 50, stream);
		assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
		assert_int_equal(ev.status, 0);
		assert_int_equal(word_of(&r, mem, 0), 10 + 3 * i);
		assert_int_equal(b->cold.get_info(r.dev, &info), 0);
		assert_int_equal(info.memory_free, before.memory_free);
		unmake(&r, mem, queue);
	}
	/* They have not gone with the buffer and the queue. */
	OWN(fill, r.dev, address, 9, stream);
	OWN(destroy, r.dev, stream);
	OWN(release, r.dev, address);
	rig_end(&r);
}

void import_refused(void **state)
{
	const struct hal_gpu_extension *ext;
	void *stream, *waits;
	const char *text;
	uint64_t address;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	ext = extension(&r);
	OWN(allocate, r.dev, BYTES, &address);
	OWN(stream, r.dev, 1, &stream);
	assert_int_equal(ext->offer_memory(r.dev, address + 4, 64), -EINVAL);
	assert_int_equal(ext->offer_memory(r.dev, address, BYTES + 1), -EINVAL);
	assert_int_equal(ext->offer_memory(r.dev, address + BYTES - 8, 16), -EINVAL);
	assert_int_equal(ext->offer_memory(r.dev, 8, 8), -EINVAL);
	assert_int_equal(ext->offer_memory(r.dev, (uintptr_t)&r & ~UINT64_C(7), 8),
			 -EINVAL);
	assert_int_equal(ext->offer_memory(r.dev, address, BYTES), 0);
	assert_int_equal(ext->offer_memory(r.dev, address, 64), -EBUSY);
	assert_int_equal(ext->offer_stream(r.dev, stream), 0);
	assert_int_equal(ext->offer_stream(r.dev, stream), -EBUSY);
	assert_int_equal(ext->offer_memory(r.dev, 0, 0), 0);
	assert_int_equal(ext->offer_stream(r.dev, NULL), 0);
	assert_int_equal(rig_face.stand_in()->misuse(&text), 0);
	rig_face.stand_in()->capture(stream, 1);
	refused(ext->offer_stream(r.dev, stream), -EBUSY, "is being captured");
	rig_face.stand_in()->capture(stream, 0);
	/* One that waits for the NULL stream: to make it is misuse here. */
	OWN(stream, r.dev, 0, &waits);
	refused(ext->offer_stream(r.dev, waits), -EINVAL, "NULL stream");
	OWN(destroy, r.dev, waits);
	OWN(destroy, r.dev, stream);
	OWN(release, r.dev, address);
	rig_put_away(&r);
	assert_int_equal(rig_face.stand_in()->misuse(&text), 1);
	assert_int_equal(rig_face.stand_in()->live(), 0);
}

/* What does not match the offer, or comes behind it, is the device's own. */
void import_taken_back(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	void *stream, *mem, *queue, *others[2];
	uint64_t address;
	struct rig r;
	int i;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	OWN(allocate, r.dev, BYTES, &address);
	OWN(stream, r.dev, 1, &stream);
	OWN(fill, r.dev, address, 1, stream);
	assert_int_equal(extension(&r)->offer_memory(r.dev, address, BYTES), 0);
	/* Another size, and one that the host is to reach. */
	for (i = 0; i < 2; i++)
		assert_int_equal(b->cold.mem_alloc(r.dev, r.part, i ? BYTES : BYTES - 8,
						   NULL, i ? HAL_BUFFER_MAPPABLE : 0,
						   &others[i]),
				 0);
	assert_int_equal(extension(&r)->offer_stream(r.dev, stream), 0);
	make(&r, &mem, &queue);
	assert_int_equal(word_of(&r, mem, 0), 1);
	unmake(&r, mem, queue);
	OWN(destroy, r.dev, stream);
	OWN(release, r.dev, address);
	/* The offers are gone. */
	make(&r, &mem, &queue);
	assert_int_not_equal(word_of(&r, mem, 0), 1);
	unmake(&r, mem, queue);
	for (i = 0; i < 2; i++)
		assert_int_equal(b->cold.mem_free(r.dev, others[i]), 0);
	rig_end(&r);
}

/* Where queues have streams of their own. */
void import_ways(void **state)
{
	static const enum rig_how hows[] = {RIG_PLAIN, RIG_SPLIT};
	void *stream;
	struct rig r;
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		rig_begin(&r, hows[i]);
		OWN(stream, r.dev, 1, &stream);
		refused(extension(&r)->offer_stream(r.dev, stream), -ENOTSUP,
			"streams of their own");
		OWN(destroy, r.dev, stream);
		rig_end(&r);
	}
}

/* Each call that an offer makes fails: it is as if it had not been made. */
void import_fails(void **state)
{
	void *stream, *mem, *queue;
	uint64_t address;
	struct rig r;
	uint32_t i;
	int err;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	OWN(allocate, r.dev, BYTES, &address);
	OWN(stream, r.dev, 1, &stream);
	for (i = 0; rig_face.own.offers[i]; i++) {
		const bool memory = strstr(rig_face.own.offers[i], "Mem") != NULL;

		assert_int_equal(
			rig_face.stand_in()->break_call(rig_face.own.offers[i], 1, 801),
			0);
		err = memory ? extension(&r)->offer_memory(r.dev, address, BYTES)
			     : extension(&r)->offer_stream(r.dev, stream);
		refused(err, -ENOTSUP, rig_face.own.offers[i]);
		assert_int_equal(rig_face.stand_in()->armed(), 0);
	}
	make(&r, &mem, &queue);
	unmake(&r, mem, queue);
	OWN(destroy, r.dev, stream);
	OWN(release, r.dev, address);
	rig_end(&r);
}

void import_lost(void **state)
{
	void *stream, *mem, *queue;
	uint64_t address;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	OWN(allocate, r.dev, BYTES, &address);
	OWN(stream, r.dev, 1, &stream);
	assert_int_equal(extension(&r)->offer_memory(r.dev, address, BYTES), 0);
	assert_int_equal(extension(&r)->offer_stream(r.dev, stream), 0);
	make(&r, &mem, &queue);
	rig_face.stand_in()->lose(rig_face.device, 719);
	rig_face.lose(r.dev, 719);
	assert_int_equal(extension(&r)->offer_memory(r.dev, address, BYTES), -EIO);
	assert_int_equal(extension(&r)->offer_stream(r.dev, stream), -EIO);
	unmake(&r, mem, queue);
	rig_end(&r);
}
