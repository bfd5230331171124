/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program has already: its memory is a buffer and its stream a queue, in its
 * order; both are still its own afterwards.  What is refused, taken back, lost.
 */
#define _GNU_SOURCE
#include "rig.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <hal/gpu.h>

#include "tests/gpu/host.h"

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

/* A buffer that is to be exported is not made of what has been offered, which cannot be;
 * the next one is. */
void import_not_exported(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_device_info info = {.size = sizeof(info)};
	uint32_t put = 11;
	void *shared, *mem;
	uint64_t address;
	struct rig r;
	int fd, err;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	assert_int_equal(b->cold.get_info(r.dev, &info), 0);
	OWN(allocate, r.dev, BYTES, &address);
	assert_int_equal(extension(&r)->offer_memory(r.dev, address, BYTES), 0);
	err = b->cold.mem_alloc(r.dev, r.part, BYTES, NULL, HAL_BUFFER_EXPORTABLE,
				&shared);
	assert_int_equal(err, info.caps & HAL_CAP_EXPORT ? 0 : -ENOTSUP);
	if (!err) {
		assert_int_equal(b->cold.mem_export(r.dev, shared, &fd), 0);
		(void)close(fd);
	}
	assert_int_equal(b->cold.mem_alloc(r.dev, r.part, BYTES, NULL, 0, &mem), 0);
	assert_int_equal(b->cold.mem_write(r.dev, mem, 0, &put, 4), 0);
	if (!err) {
		assert_int_not_equal(word_of(&r, shared, 0), put);
		assert_int_equal(b->cold.mem_free(r.dev, shared), 0);
	}
	assert_int_equal(b->cold.mem_free(r.dev, mem), 0);
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
	assert_int_equal(rig_run_for(&r, 10000), 0); /* longer than the fill takes */
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
			"queues cannot use an imported stream");
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

/* Return whether it, which make() has made, is of what was offered: the library made no
 * such object. */
static bool made_of_own(struct rig *r, uint32_t kind, void **it)
{
	const struct hal_backend *b = rig_face.backend;
	const struct gpu_stand_in *s = rig_face.stand_in();
	const uint64_t before = s->calls(rig_face.own.makes[kind]);

	if (kind == 0)
		assert_int_equal(b->cold.mem_alloc(r->dev, r->part, BYTES, NULL, 0, it),
				 0);
	else
		assert_int_equal(b->cold.queue_create(r->dev, r->part, 0, it), 0);
	return s->calls(rig_face.own.makes[kind]) == before;
}

static void end_one(struct rig *r, uint32_t kind, void *it)
{
	const struct hal_backend *b = rig_face.backend;

	if (kind == 0)
		assert_int_equal(b->cold.mem_free(r->dev, it), 0);
	else
		assert_int_equal(b->cold.queue_destroy(r->dev, it), 0);
}

/* A thread that offers what it has, and makes an object while a call fails. */
struct keeper {
	struct rig *r;
	uint64_t address;
	void *stream;
	const char *call;
	uint64_t nth;
	uint32_t kind;
	bool failed;
	const char *wrong;
};

static void *make_and_fail(void *user)
{
	const struct hal_backend *b = rig_face.backend;
	const struct gpu_stand_in *s = rig_face.stand_in();
	struct keeper *k = user;
	struct rig *r = k->r;
	uint64_t before;
	void *it;
	int err;

	if (k->kind == 0)
		err = extension(r)->offer_memory(r->dev, k->address, BYTES);
	else
		err = extension(r)->offer_stream(r->dev, k->stream);
	if (err)
		k->wrong = "the offer";
	(void)s->break_call(k->call, k->nth, 801);
	before = s->calls(rig_face.own.makes[k->kind]);
	for (;;) {
		if (k->kind == 0)
			err = b->cold.mem_alloc(r->dev, r->part, BYTES, NULL, 0, &it);
		else
			err = b->cold.queue_create(r->dev, r->part, 0, &it);
		if (!err)
			break;
		if (k->failed) {
			k->wrong = "the second creation";
			return NULL;
		}
		k->failed = true;
	}
	(void)s->break_call(k->call, 0, 0);
	if (s->calls(rig_face.own.makes[k->kind]) != before)
		k->wrong = "the offer was lost";
	if (k->kind == 0)
		err = b->cold.mem_free(r->dev, it);
	else
		err = b->cold.queue_destroy(r->dev, it);
	if (err)
		k->wrong = "the end";
	return NULL;
}

/* A creation fails at each of its calls: what was offered is for the next one. */
void import_kept(void **state)
{
	uint32_t i, failures[2] = {0, 0};
	struct keeper k = {0};
	pthread_t thread;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	k.r = &r;
	OWN(allocate, r.dev, BYTES, &k.address);
	OWN(stream, r.dev, 1, &k.stream);
	for (k.kind = 0; k.kind < 2; k.kind++)
		for (i = 0; rig_face.own.creates[i]; i++) {
			k.call = rig_face.own.creates[i];
			k.nth = 0;
			do {
				k.nth++;
				k.failed = false;
				k.wrong = NULL;
				assert_int_equal(
					pthread_create(&thread, NULL, make_and_fail, &k),
					0);
				assert_int_equal(pthread_join(thread, NULL), 0);
				if (k.wrong)
					fail_msg("%s %u, kind %u: %s: %s", k.call,
						 (unsigned int)k.nth, k.kind, k.wrong,
						 host_text);
				failures[k.kind] += k.failed;
			} while (k.failed);
		}
	assert_true(failures[0] >= 1); /* the thread enters the device */
	assert_true(failures[1] >= 4);
	OWN(destroy, r.dev, k.stream);
	OWN(release, r.dev, k.address);
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

/* ---- beside others ----------------------------------------------------------------- */

static void count(void *stream, uint32_t result, void *user)
{
	(void)stream;
	*(uint32_t *)user += result == 0;
}

/* A function that the program has put on its stream comes before what is submitted. */
void import_function(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_arg args[2] = {{.bytes = BYTES}, {.value = 1000}};
	struct hal_bk_cmd cmd = {
		.op = HAL_OP_LAUNCH,
		.launch = {.args = args, .arg_count = 2, .groups = {1, 1, 1}}};
	struct hal_bk_event ev;
	void *stream, *queue;
	uint32_t called = 0;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	OWN(stream, r.dev, 1, &stream);
	assert_int_equal(extension(&r)->offer_stream(r.dev, stream), 0);
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &queue), 0);
	OWN(callback, r.dev, stream, count, &called);
	args[0].mem = r.mem;
	cmd.launch.kernel = r.work;
	assert_int_equal(b->hot.submit(r.dev, queue, &cmd), 0);
	/* It takes 10 us at least, and the launch 3. */
	assert_int_equal(b->hot.poll(r.dev, b->hot.now(r.dev) + 9000, &ev, 1), 0);
	assert_int_equal(called, 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	assert_int_equal(called, 1);
	assert_int_equal(b->cold.queue_destroy(r.dev, queue), 0);
	OWN(destroy, r.dev, stream);
	rig_end(&r);
}

static void *capture(void *stream)
{
	rig_face.stand_in()->capture(stream, 1); /* a global one */
	return NULL;
}

static void *load_and_copy(void *rig)
{
	const struct hal_backend *b = rig_face.backend;
	struct rig *r = rig;
	uint32_t word = 7;
	void *prog, *ok = NULL;
	size_t size;
	void *image = rig_face.image(rig_face.kernels, 2, 1, &size);

	if (!b->cold.mem_write(r->dev, r->mem, 0, &word, 4) &&
	    !b->cold.mem_read(r->dev, r->mem, 0, &word, 4) &&
	    !b->cold.program_load(r->dev, image, size, &prog) &&
	    !b->cold.program_unload(r->dev, prog))
		ok = rig;
	free(image);
	return ok;
}

static void *open_and_close(void *unused)
{
	const struct hal_backend *b = rig_face.backend;
	void *dev = NULL;

	(void)unused;
	if (b->cold.open(rig_face.how[RIG_BETWEEN], rig_face.device, &dev))
		return NULL;
	b->cold.close(dev);
	return &rig_face;
}

static void on_a_thread(void *(*fn)(void *arg), void *arg, const void *want)
{
	pthread_t thread;
	void *got = NULL;

	assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
	assert_int_equal(pthread_join(thread, &got), 0);
	if (got != want)
		fail_msg("%s", host_text);
}

/* While the program captures a stream, so that what may wait for others is refused to
 * every thread and ends the capture, all goes on here, and the capture, too. */
void import_captured(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_cmd cmd;
	void *stream, *mem[2], *queue;
	uint64_t address;
	struct rig r;
	int i;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	OWN(stream, r.dev, 1, &stream);
	OWN(allocate, r.dev, BYTES, &address);
	on_a_thread(capture, stream, NULL);
	for (i = 0; i < 2; i++)
		assert_int_equal(b->cold.mem_alloc(r.dev, r.part, BYTES, NULL,
						   i ? HAL_BUFFER_MAPPABLE : 0, &mem[i]),
				 0);
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &queue), 0);
	rig_zero(&r);
	assert_int_equal(rig_launch(&r, r.work, 20000000, 1, &cmd), 0);
	assert_int_equal(rig_finish(&r), 1);
	assert_int_equal(rig_word(&r, 0), 1);
	on_a_thread(load_and_copy, &r, &r);
	on_a_thread(open_and_close, NULL, &rig_face);
	assert_int_equal(b->cold.queue_destroy(r.dev, queue), 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(b->cold.mem_free(r.dev, mem[i]), 0);
	OWN(fill, r.dev, address, 9, stream); /* 901: it has been spoilt */
	rig_face.stand_in()->capture(stream, 0);
	OWN(destroy, r.dev, stream);
	OWN(release, r.dev, address);
	rig_end(&r);
}

/* A queue on the program's stream. */
static void *queue_on(struct rig *r, void *stream)
{
	void *queue;

	assert_int_equal(extension(r)->offer_stream(r->dev, stream), 0);
	assert_int_equal(rig_face.backend->cold.queue_create(r->dev, r->part, 0, &queue),
			 0);
	return queue;
}

/* The program captures a stream that is a queue.  A query would end the capture, and what
 * is submitted would be part of it: neither reaches the driver. */
void import_captured_later(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_arg args[2] = {{.bytes = BYTES}, {.value = 50000}};
	struct hal_bk_cmd cmd = {
		.op = HAL_OP_LAUNCH,
		.launch = {.args = args, .arg_count = 2, .groups = {1, 1, 1}}};
	struct hal_bk_event ev;
	void *stream, *queue;
	uint64_t address;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	OWN(allocate, r.dev, BYTES, &address);
	OWN(stream, r.dev, 1, &stream);
	queue = queue_on(&r, stream);
	rig_zero(&r);
	args[0].mem = r.mem;
	cmd.launch.kernel = r.work;
	assert_int_equal(b->hot.submit(r.dev, queue, &cmd), 0);
	on_a_thread(capture, stream, NULL);
	refused(b->hot.submit(r.dev, queue, &cmd), -EBUSY, "captures");
	/* The launch runs on and ends; the driver is asked whether it failed meanwhile.
	 */
	assert_int_equal(b->hot.poll(r.dev, b->hot.now(r.dev) + 1000, &ev, 1), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	OWN(fill, r.dev, address, 9, stream); /* 901: the capture is invalid */
	rig_face.stand_in()->capture(stream, 0);
	assert_int_equal(b->hot.submit(r.dev, queue, &cmd), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	assert_int_equal(rig_word(&r, 0), 2);
	/* The driver does not say whether it is captured. */
	assert_int_equal(
		rig_face.stand_in()->break_call(rig_face.own.is_captured, 1, 801), 0);
	refused(b->hot.submit(r.dev, queue, &cmd), -ENOTSUP, rig_face.own.is_captured);
	assert_int_equal(rig_face.stand_in()->armed(), 0);
	assert_int_equal(b->cold.queue_destroy(r.dev, queue), 0);
	OWN(destroy, r.dev, stream);
	OWN(release, r.dev, address);
	rig_end(&r);
}

/* The same while a timestamp waits for the launch before it: the time is written after
 * the capture. */
void import_captured_stamp(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_arg args[2] = {{.bytes = BYTES}, {.value = 50000}};
	struct hal_bk_cmd cmd = {
		.op = HAL_OP_LAUNCH,
		.launch = {.args = args, .arg_count = 2, .groups = {1, 1, 1}}};
	struct hal_bk_cmd stamp = {.op = HAL_OP_TIMESTAMP};
	struct hal_bk_event ev;
	void *stream, *queue;
	uint64_t address, until;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	OWN(allocate, r.dev, BYTES, &address);
	OWN(stream, r.dev, 1, &stream);
	queue = queue_on(&r, stream);
	rig_zero(&r);
	args[0].mem = stamp.timestamp.dst = r.mem;
	cmd.launch.kernel = r.work;
	assert_int_equal(b->hot.submit(r.dev, queue, &cmd), 0);
	assert_int_equal(b->hot.submit(r.dev, queue, &stamp), 0);
	on_a_thread(capture, stream, NULL);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	until = b->hot.now(r.dev) + 100000;
	assert_int_equal(b->hot.poll(r.dev, until, &ev, 1), 0);
	OWN(fill, r.dev, address, 9, stream); /* 901: the capture is invalid */
	assert_int_equal(rig_word(&r, 0), 1);
	rig_face.stand_in()->capture(stream, 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	assert_true(rig_word(&r, 0) >= until);
	assert_int_equal(b->cold.queue_destroy(r.dev, queue), 0);
	OWN(destroy, r.dev, stream);
	OWN(release, r.dev, address);
	rig_end(&r);
}

/* A queue is destroyed before what its stream has of a refused launch has ended, then the
 * program captures the stream and closes the device.  A wait for the stream would end the
 * capture, so close makes none. */
void import_captured_close(void **state)
{
	const struct hal_backend *b = rig_face.backend;
	struct hal_bk_arg args[2] = {{.bytes = BYTES}, {.value = 1000}};
	struct hal_bk_cmd cmd = {
		.op = HAL_OP_LAUNCH,
		.launch = {.args = args, .arg_count = 2, .groups = {1, 1, 1}}};
	void *stream, *queue, *other;
	uint32_t called = 0;
	const char *text;
	uint64_t address;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	/* The program uses the device before and after. */
	assert_int_equal(b->cold.open(rig_face.how[RIG_BETWEEN], rig_face.device, &other),
			 0);
	OWN(allocate, other, BYTES, &address);
	OWN(stream, other, 1, &stream);
	queue = queue_on(&r, stream);
	args[0].mem = r.mem;
	cmd.launch.kernel = r.work;
	OWN(callback, other, stream, count, &called);
	assert_int_equal(rig_face.stand_in()->break_call(rig_face.own.launch, 1, 801), 0);
	assert_int_equal(b->hot.submit(r.dev, queue, &cmd), -ENOTSUP);
	assert_int_equal(b->cold.queue_destroy(r.dev, queue), 0);
	on_a_thread(capture, stream, NULL);
	rig_put_away(&r);
	OWN(fill, other, address, 9, stream); /* 901: the capture is invalid */
	rig_face.stand_in()->capture(stream, 0);
	OWN(destroy, other, stream);
	OWN(release, other, address);
	b->cold.close(other);
	if (rig_face.stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
}

/* Another tenant's thread, which has offered nothing, makes a buffer and a queue. */
static void *make_others(void *rig)
{
	void *it[2];
	uint32_t i, own = 0;

	for (i = 0; i < 2; i++)
		own += made_of_own(rig, i, &it[i]);
	for (i = 0; i < 2; i++)
		end_one(rig, i, it[i]);
	return own ? NULL : rig;
}

static void *offer_another(void *rig)
{
	struct rig *r = rig;
	const struct hal_gpu_extension *ext = extension(r);
	void *stream;

	if (rig_face.own.stream(r->dev, 1, &stream) ||
	    ext->offer_stream(r->dev, stream) || ext->offer_stream(r->dev, NULL) ||
	    rig_face.own.destroy(r->dev, stream))
		return NULL;
	return rig;
}

/* An offer is its thread's: what other threads make is not of it. */
void import_threads(void **state)
{
	void *stream, *it[2];
	uint64_t address;
	struct rig r;
	uint32_t i;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	OWN(allocate, r.dev, BYTES, &address);
	OWN(stream, r.dev, 1, &stream);
	assert_int_equal(extension(&r)->offer_memory(r.dev, address, BYTES), 0);
	assert_int_equal(extension(&r)->offer_stream(r.dev, stream), 0);
	on_a_thread(make_others, &r, &r);
	/* Which offers as well, and takes that back. */
	on_a_thread(offer_another, &r, &r);
	for (i = 0; i < 2; i++)
		assert_true(made_of_own(&r, i, &it[i]));
	for (i = 0; i < 2; i++)
		end_one(&r, i, it[i]);
	for (i = 0; i < 2; i++) {
		assert_false(made_of_own(&r, i, &it[i]));
		end_one(&r, i, it[i]);
	}
	OWN(destroy, r.dev, stream);
	OWN(release, r.dev, address);
	rig_end(&r);
}

enum { THREADS = 3, OFFERS = 16 };

/* A thread of the program's that offers what it has, again and again. */
struct offerer {
	struct rig *r;
	uint64_t address;
	void *stream;
	pthread_t thread;
	atomic_ullong number; /* of hal_host.caller */
	uint32_t bad;
};
static atomic_uint offered[2], working;

static void *offer(void *user)
{
	struct offerer *o = user;
	const struct hal_gpu_extension *ext = extension(o->r);
	uint32_t left[2] = {OFFERS, OFFERS};
	int err;

	atomic_store(&o->number, host.caller());
	while ((left[0] || left[1]) && !o->bad) {
		err = left[0] ? ext->offer_memory(o->r->dev, o->address, BYTES) : -EBUSY;
		if (!err && left[0]--)
			atomic_fetch_add(&offered[0], 1);
		o->bad += err && err != -EBUSY;
		err = left[1] ? ext->offer_stream(o->r->dev, o->stream) : -EBUSY;
		if (!err && left[1]--)
			atomic_fetch_add(&offered[1], 1);
		o->bad += err && err != -EBUSY;
		sched_yield();
	}
	atomic_fetch_sub(&working, 1);
	return NULL;
}

/* Make an object as the engine does for a thread that has asked for one; number 0: for
 * this thread.  Return whether it is of what was offered. */
static bool make_for(struct rig *r, uint64_t number, uint32_t kind)
{
	void *it;
	bool own;

	host_acts_for = number;
	own = made_of_own(r, kind, &it);
	host_acts_for = 0;
	end_one(r, kind, it);
	return own;
}

/* Threads offer while the engine makes buffers and queues for them and for itself: each
 * offer is of one that is for its thread, once. */
void import_raced(void **state)
{
	struct offerer o[THREADS] = {{0}};
	uint32_t taken[2] = {0, 0}, i, kind;
	struct rig r;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	atomic_store(&offered[0], 0);
	atomic_store(&offered[1], 0);
	atomic_store(&working, THREADS);
	for (i = 0; i < THREADS; i++) {
		o[i].r = &r;
		OWN(allocate, r.dev, BYTES, &o[i].address);
		OWN(stream, r.dev, 1, &o[i].stream);
		assert_int_equal(pthread_create(&o[i].thread, NULL, offer, &o[i]), 0);
	}
	while (atomic_load(&working) || taken[0] < atomic_load(&offered[0]) ||
	       taken[1] < atomic_load(&offered[1]))
		for (kind = 0; kind < 2; kind++) {
			for (i = 0; i < THREADS; i++)
				taken[kind] +=
					make_for(&r, atomic_load(&o[i].number), kind);
			assert_false(make_for(&r, 0, kind));
		}
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(o[i].thread, NULL), 0);
		assert_int_equal(o[i].bad, 0);
		for (kind = 0; kind < 2; kind++)
			assert_false(make_for(&r, atomic_load(&o[i].number), kind));
		OWN(destroy, r.dev, o[i].stream);
		OWN(release, r.dev, o[i].address);
	}
	assert_int_equal(taken[0], THREADS * OFFERS);
	assert_int_equal(taken[1], THREADS * OFFERS);
	rig_end(&r);
}
