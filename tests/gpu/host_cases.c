/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory and copies that a queue has of it: that copy engines do them, in the
 * queue's order and beside kernels; memory of the program's that is registered.
 */
#define _GNU_SOURCE
#include "rig.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define BYTES 65536u
#define PAGE  4096u

static const struct hal_backend *backend(void)
{
	return rig_face.backend;
}

/* ---- memory -------------------------------------------------------------------------- */

static void *allocate(const struct rig *r, uint64_t bytes, uint32_t flags)
{
	void *mem;

	if (backend()->cold.mem_alloc(r->dev, r->part, bytes, NULL, flags, &mem))
		fail_msg("%s", host_text);
	return mem;
}

static uint8_t *address_of(const struct rig *r, void *mem)
{
	void *p;

	assert_int_equal(backend()->cold.mem_map(r->dev, mem, &p), 0);
	return p;
}

static void *host_memory(const struct rig *r, uint8_t **p)
{
	void *mem = allocate(r, BYTES, HAL_BK_MEM_HOST);

	*p = address_of(r, mem);
	return mem;
}

static void release(const struct rig *r, void *mem)
{
	if (backend()->cold.mem_free(r->dev, mem))
		fail_msg("%s", host_text);
}

static void *registered(const struct rig *r, void *p, uint64_t bytes)
{
	void *mem;

	if (backend()->cold.mem_register(r->dev, r->part, p, bytes, &mem))
		fail_msg("%s", host_text);
	return mem;
}

/* The last failure said that. */
static void refuses(const char *text)
{
	if (!strstr(host_text, text))
		fail_msg("%s: not %s", host_text, text);
}

static void refused(const struct rig *r, void *p, uint64_t bytes, int err,
		    const char *text)
{
	void *mem = NULL;

	assert_int_equal(backend()->cold.mem_register(r->dev, r->part, p, bytes, &mem),
			 err);
	refuses(text);
}

static uint8_t *pages(uint32_t count)
{
	void *p = mmap(NULL, (size_t)count * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static void unmap(uint8_t *p, uint32_t count)
{
	assert_int_equal(munmap(p, (size_t)count * PAGE), 0);
}

/* ---- commands ------------------------------------------------------------------------ */

/* Submit; while the queue takes no more, poll until a command has ended. */
static uint32_t submit(const struct rig *r, void *queue, const struct hal_bk_cmd *cmd)
{
	struct hal_bk_event ev;
	uint32_t ended = 0;
	int err;

	while ((err = backend()->hot.submit(r->dev, queue, cmd)) == -EAGAIN) {
		assert_int_equal(backend()->hot.poll(r->dev, UINT64_MAX, &ev, 1), 1);
		assert_int_equal(ev.status, 0);
		ended++;
	}
	if (err)
		fail_msg("%s", host_text);
	return ended;
}

static struct hal_bk_cmd copy_of(void *dst, uint64_t dst_offset, void *src,
				 uint64_t src_offset, uint64_t bytes)
{
	return (struct hal_bk_cmd){.op = HAL_OP_COPY,
				   .cookie = 5,
				   .copy = {dst, src, dst_offset, src_offset, bytes}};
}

static uint32_t copy(const struct rig *r, void *queue, void *dst, uint64_t dst_offset,
		     void *src, uint64_t src_offset, uint64_t bytes)
{
	const struct hal_bk_cmd cmd = copy_of(dst, dst_offset, src, src_offset, bytes);

	return submit(r, queue, &cmd);
}

static struct hal_bk_event poll_one(const struct rig *r)
{
	struct hal_bk_event ev;

	assert_int_equal(backend()->hot.poll(r->dev, UINT64_MAX, &ev, 1), 1);
	return ev;
}

static void forget_jobs(void)
{
	struct gpu_stand_in_job job;

	while (rig_face.stand_in()->jobs(&job, 1))
		;
}

static void *more_queue(const struct rig *r)
{
	void *queue;

	assert_int_equal(backend()->cold.queue_create(r->dev, r->part, 0, &queue), 0);
	return queue;
}

/* ---- cases --------------------------------------------------------------------------- */

/* It is no memory of the device, is zeros at first, and has an address for the host. */
void host_memory_is(void **state)
{
	struct hal_device_info info = {.size = sizeof(info)};
	struct rig r;
	uint64_t before;
	uint32_t i;
	uint8_t *p;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	assert_int_equal(backend()->cold.get_info(r.dev, &info), 0);
	assert_true(info.caps & HAL_CAP_HOST_COPY);
	assert_true(info.caps & HAL_CAP_HOST_REGISTER);
	before = info.memory_free;
	mem = host_memory(&r, &p);
	for (i = 0; i < BYTES; i++)
		assert_int_equal(p[i], 0);
	assert_int_equal(backend()->cold.get_info(r.dev, &info), 0);
	assert_int_equal(info.memory_free, before);
	assert_int_equal(backend()->cold.partition_destroy(r.dev, r.part), -EBUSY);
	release(&r, mem);
	rig_end(&r);
}

/* Bytes at even and odd places, of memory that the device has given and of the program's.
 * What an engine of the device moved is told. */
void host_moves_bytes(void **state)
{
	static const uint32_t sizes[] = {1, 3, 4, 4097, BYTES - 9};
	uint8_t *from, *own = pages(BYTES / PAGE);
	struct hal_bk_event ev;
	uint32_t i, k, at;
	struct rig r;
	void *host, *mine, *mem;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	host = host_memory(&r, &from);
	mine = registered(&r, own + 1, BYTES - 1);
	mem = allocate(&r, BYTES, 0);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (at = 0; at < 8; at += 7) {
			for (k = 0; k < sizes[i]; k++)
				from[at + k] = (uint8_t)(k * 7 + i + at + 1);
			memset(own, 0, BYTES);
			for (k = 0; k < 2; k++) {
				if (k)
					(void)copy(&r, r.queue, mine, 1, mem, at,
						   sizes[i]);
				else
					(void)copy(&r, r.queue, mem, at, host, at,
						   sizes[i]);
				ev = poll_one(&r);
				assert_int_equal(ev.status, 0);
				assert_int_equal(ev.bytes_read, sizes[i]);
				assert_int_equal(ev.bytes_written, sizes[i]);
				assert_true(ev.end_ns > ev.start_ns);
			}
			assert_memory_equal(own + 2, from + at, sizes[i]);
			assert_int_equal(own[1], 0);
			assert_int_equal(own[2 + sizes[i]], 0);
		}
	(void)copy(&r, r.queue, mem, 0, host, 0, 0);
	assert_int_equal(poll_one(&r).status, 0);
	release(&r, host);
	release(&r, mine);
	release(&r, mem);
	unmap(own, BYTES / PAGE);
	rig_end(&r);
}

/* Each sees what the one before it wrote; a copy engine does those with host memory, each
 * direction its own, and no unit. */
void host_in_order(void **state)
{
	struct gpu_stand_in_job jobs[16];
	static const uint32_t want[] = {1, 2, 1, 2};
	uint32_t ended, i, n, at = 0;
	struct hal_bk_cmd cmd;
	struct rig r;
	void *host, *other;
	uint32_t *word;
	uint8_t *p;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	host = host_memory(&r, &p);
	other = allocate(&r, BYTES, 0);
	word = (uint32_t *)(void *)p;
	word[0] = 100;
	word[1] = 7;
	forget_jobs();
	ended = copy(&r, r.queue, r.mem, 0, host, 0, 4);
	while (rig_launch(&r, r.work, 1000000, 1, &cmd) == -EAGAIN)
		ended += poll_one(&r).kind == HAL_BK_DONE;
	ended += copy(&r, r.queue, host, 8, r.mem, 0, 4);
	ended += copy(&r, r.queue, other, 0, r.mem, 0, 4);
	ended += copy(&r, r.queue, r.mem, 0, host, 4, 4);
	ended += copy(&r, r.queue, host, 12, r.mem, 0, 4);
	ended += rig_finish(&r);
	assert_int_equal(ended, 6);
	assert_int_equal(word[2], 101);
	assert_int_equal(word[3], 7);
	assert_int_equal(backend()->cold.mem_read(r.dev, other, 0, &n, 4), 0);
	assert_int_equal(n, 101);
	n = rig_face.stand_in()->jobs(jobs, 16);
	for (i = 0; i < n; i++) {
		if (i)
			assert_true(jobs[i].start_ns >= jobs[i - 1].end_ns);
		if (!jobs[i].engine || at == 4)
			continue; /* the last one was mem_read's */
		assert_int_equal(jobs[i].engine, want[at++]);
		assert_int_equal(jobs[i].units[0] | jobs[i].units[1], 0);
	}
	assert_int_equal(at, 4);
	release(&r, host);
	release(&r, other);
	rig_end(&r);
}

/* Copies of two queues, one each way, run at the same time, both while a kernel of a
 * third queue has the device. */
void host_beside_kernels(void **state)
{
	struct gpu_stand_in_job jobs[8], *up = NULL, *down = NULL, *work = NULL;
	struct hal_bk_cmd cmd;
	struct rig r;
	void *queue[2], *host[2], *mem[2];
	uint64_t copy_end = 0;
	uint32_t i, n;
	uint8_t *p;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	for (i = 0; i < 2; i++) {
		host[i] = host_memory(&r, &p);
		mem[i] = allocate(&r, BYTES, 0);
		queue[i] = more_queue(&r);
	}
	forget_jobs();
	assert_int_equal(rig_launch(&r, r.work, 5000000, RIG_BLOCKS, &cmd), 0);
	(void)copy(&r, queue[0], mem[0], 0, host[0], 0, BYTES);
	(void)copy(&r, queue[1], host[1], 0, mem[1], 0, BYTES);
	for (i = 0; i < 3; i++) {
		const struct hal_bk_event ev = poll_one(&r);

		assert_int_equal(ev.status, 0);
		assert_true(i < 2 ? ev.cookie == 5 : ev.end_ns > copy_end);
		copy_end = ev.end_ns;
	}
	n = rig_face.stand_in()->jobs(jobs, 8);
	for (i = 0; i < n; i++) {
		if (jobs[i].engine == 1)
			up = &jobs[i];
		else if (jobs[i].engine == 2)
			down = &jobs[i];
		else if (strcmp(jobs[i].what, "work") == 0)
			work = &jobs[i];
	}
	assert_true(up && down && work);
	assert_true(up->start_ns < down->end_ns && down->start_ns < up->end_ns);
	assert_true(work->start_ns < up->end_ns && up->end_ns < work->end_ns);
	assert_true(down->end_ns < work->end_ns);
	for (i = 0; i < 2; i++) {
		assert_int_equal(backend()->cold.queue_destroy(r.dev, queue[i]), 0);
		release(&r, host[i]);
		release(&r, mem[i]);
	}
	rig_end(&r);
}

/* No call of the engine's waits for the device, whatever it has. */
void host_waits_for_nothing(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	struct hal_bk_cmd cmd;
	struct rig r;
	uint32_t ended = 0, i;
	void *host, *queue, *mem;
	uint8_t *p;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	host = host_memory(&r, &p);
	mem = allocate(&r, BYTES, 0);
	queue = more_queue(&r);
	assert_int_equal(rig_launch(&r, r.work, 3000000, RIG_BLOCKS, &cmd), 0);
	s->hot(1);
	for (i = 0; i < 20; i++) {
		ended += copy(&r, queue, mem, 0, host, 0, 1024);
		ended += copy(&r, queue, host, 1024, mem, 0, 1024);
	}
	ended += rig_finish(&r);
	s->hot(0);
	assert_int_equal(ended, 41);
	assert_int_equal(backend()->cold.queue_destroy(r.dev, queue), 0);
	release(&r, host);
	release(&r, mem);
	rig_end(&r);
}

/* DRAIN ends what has been submitted; the queue has it till then. */
void host_drained(void **state)
{
	struct hal_bk_event ev;
	struct rig r;
	void *host, *mem;
	uint8_t *p;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	host = host_memory(&r, &p);
	mem = allocate(&r, BYTES, 0);
	p[17] = 99;
	(void)copy(&r, r.queue, mem, 0, host, 0, BYTES);
	assert_int_equal(backend()->hot.suspend(r.dev, r.queue, HAL_SUSPEND_DRAIN, 9), 0);
	assert_int_equal(backend()->cold.queue_destroy(r.dev, r.queue), -EBUSY);
	ev = poll_one(&r);
	assert_int_equal(ev.kind, HAL_BK_DONE);
	assert_int_equal(ev.status, 0);
	assert_int_equal(poll_one(&r).kind, HAL_BK_QUIET);
	assert_int_equal(backend()->hot.resume(r.dev, r.queue), 0);
	p[17] = 0;
	(void)copy(&r, r.queue, host, 0, mem, 0, BYTES);
	assert_int_equal(poll_one(&r).status, 0);
	assert_int_equal(p[17], 99);
	release(&r, host);
	release(&r, mem);
	rig_end(&r);
}

/* FOLD stops launches inside.  A copy behind one sees all of it; one before it has ended.
 */
void host_folded(void **state)
{
	struct hal_bk_cmd cmd, read;
	struct rig r;
	uint32_t ended;
	void *host;
	uint8_t *p;

	(void)state;
	rig_begin(&r, RIG_PLAIN);
	rig_zero(&r);
	host = host_memory(&r, &p);
	(void)copy(&r, r.queue, r.mem, 4, host, 0, 4);
	ended = 0;
	while (rig_launch(&r, r.work, RIG_BLOCK_NS, RIG_BLOCKS, &cmd) == -EAGAIN)
		ended += poll_one(&r).kind == HAL_BK_DONE;
	read = copy_of(host, 0, r.mem, 0, 4);
	assert_int_equal(backend()->hot.submit(r.dev, r.queue, &read), -EAGAIN);
	ended += rig_run_for(&r, 3 * RIG_BLOCK_NS);
	ended += rig_stop(&r, NULL);
	assert_int_equal(ended, 1);
	assert_int_equal(backend()->hot.resume(r.dev, r.queue), 0);
	ended += submit(&r, r.queue, &read);
	assert_int_equal(ended, 2);
	/* Nothing is stopped of a copy. */
	ended += rig_stop(&r, NULL);
	assert_int_equal(ended, 3);
	assert_int_equal(backend()->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(*(uint32_t *)(void *)p, RIG_BLOCKS);
	release(&r, host);
	rig_end(&r);
}

/* A device that is lost copies no more; what is given back then does not matter. */
void host_lost(void **state)
{
	struct hal_bk_event ev;
	uint8_t *p, *own = pages(1);
	struct rig r;
	void *host, *mem, *mine;
	int n;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	host = host_memory(&r, &p);
	mine = registered(&r, own, PAGE);
	mem = allocate(&r, BYTES, 0);
	(void)copy(&r, r.queue, mem, 0, host, 0, BYTES);
	rig_face.stand_in()->lose(rig_face.device, 999);
	rig_face.lose(r.dev, 999);
	n = backend()->hot.poll(r.dev, UINT64_MAX, &ev, 1);
	assert_int_equal(n, 1);
	assert_int_equal(ev.status, -EIO);
	release(&r, host);
	release(&r, mine);
	release(&r, mem);
	rig_put_away(&r);
	unmap(own, 1);
}

/* ---- registered memory --------------------------------------------------------------- */

void host_register_refused(void **state)
{
	uint8_t *own = pages(8);
	struct rig r;
	void *mem[3];

	(void)state;
	assert_int_equal(mprotect(own + 2 * PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(mprotect(own + 4 * PAGE, PAGE, PROT_READ), 0);
	rig_begin(&r, RIG_BETWEEN);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): no process has memory there. */
	refused(&r, (uint8_t *)(uintptr_t)PAGE, 5, -EFAULT, "is not mapped");
	refused(&r, own, 3 * PAGE, -EFAULT, "cannot be both read and written");
	refused(&r, own + 3 * PAGE, PAGE + 1, -EFAULT, "cannot be both read and written");
	/* Those in the pages of another share them. */
	mem[0] = registered(&r, own + 5 * PAGE + 8, 2 * PAGE);
	mem[1] = registered(&r, own + 5 * PAGE, 8);
	mem[2] = registered(&r, own + 7 * PAGE + 100, 100);
	release(&r, mem[0]);
	release(&r, mem[2]);
	assert_int_equal(rig_face.stand_in()->calls(rig_face.registers), 1);
	assert_int_equal(rig_face.stand_in()->calls(rig_face.unregisters), 0);
	release(&r, mem[1]);
	assert_int_equal(rig_face.stand_in()->calls(rig_face.unregisters), 1);
	mem[0] = registered(&r, own + 5 * PAGE, PAGE);
	refused(&r, own + 5 * PAGE + 1, PAGE, -EBUSY, "are registered already");
	release(&r, mem[0]);
	/* By the program itself. */
	assert_int_equal(rig_face.own_register(r.dev, own, PAGE), 0);
	refused(&r, own + 1, PAGE, -EBUSY, "by the application");
	assert_int_equal(rig_face.own_unregister(r.dev, own), 0);
	mem[0] = registered(&r, own + 1, PAGE);
	release(&r, mem[0]);
	rig_end(&r);
	unmap(own, 8);
}

/* The driver refuses: nothing of it stays. */
void host_register_fails(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	uint8_t *own = pages(1);
	struct rig r;
	uint32_t i;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	assert_int_equal(s->break_call(rig_face.registers, 1, 2), 0);
	refused(&r, own, PAGE, -ENOSPC, rig_face.registers);
	/* HIP is asked for it before, too. */
	for (i = 1; s->break_call(rig_face.points, i, 2) == 0; i++) {
		if (backend()->cold.mem_register(r.dev, r.part, own, PAGE, &mem) == 0)
			break;
		refuses(rig_face.points);
	}
	assert_true(i > 1);
	release(&r, mem);
	assert_int_equal(s->break_call(rig_face.points, 0, 0), 0);
	mem = registered(&r, own, PAGE);
	release(&r, mem);
	rig_end(&r);
	unmap(own, 1);
}

/* What could not be unregistered while the device was busy is before it is registered
 * again. */
void host_register_again(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	uint8_t *own = pages(1);
	struct hal_bk_cmd cmd;
	struct rig r;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_BETWEEN);
	mem = registered(&r, own, PAGE);
	assert_int_equal(rig_launch(&r, r.work, 3000000, 1, &cmd), 0);
	release(&r, mem);
	assert_int_equal(s->calls(rig_face.unregisters), 0);
	mem = registered(&r, own, PAGE);
	assert_int_equal(s->calls(rig_face.unregisters), 1);
	assert_int_equal(rig_finish(&r), 1);
	release(&r, mem);
	rig_end(&r);
	unmap(own, 1);
}

/* With the host's clock the program's memory is its own again when the call returns. */
void host_unregistered_real(void **state)
{
	const struct gpu_stand_in *s = rig_face.stand_in();
	uint8_t *own = pages(4);
	struct rig r;
	uint32_t i;
	void *mem;

	(void)state;
	rig_begin(&r, RIG_REAL);
	for (i = 0; i < 3; i++) {
		mem = registered(&r, own + 100, 3 * PAGE);
		assert_int_equal(s->calls(rig_face.unregisters), i);
		release(&r, mem);
		assert_int_equal(s->calls(rig_face.unregisters), i + 1);
	}
	unmap(own, 4);
	rig_end(&r);
}

struct registrar {
	const struct rig *r;
	uint8_t *shared, *own;
	uint32_t refused;
	bool ok;
	pthread_t thread;
};

static void *register_much(void *arg)
{
	struct registrar *c = arg;
	void *mine, *all;
	uint32_t i;

	c->ok = true;
	for (i = 0; i < 100; i++) {
		int err = backend()->cold.mem_register(c->r->dev, c->r->part, c->own,
						       PAGE, &mine);

		c->ok &= !err;
		if (err)
			break;
		/* Another thread may be unregistering it. */
		err = backend()->cold.mem_register(c->r->dev, c->r->part, c->shared,
						   2 * PAGE, &all);
		c->ok &= !err || err == -EBUSY;
		c->refused += err != 0;
		if (!err)
			c->ok &= !backend()->cold.mem_free(c->r->dev, all);
		c->ok &= !backend()->cold.mem_free(c->r->dev, mine);
	}
	return NULL;
}

/* Several threads register the same pages and others: each page once at the driver. */
void host_register_threads(void **state)
{
	enum { THREADS = 4 };
	uint8_t *own = pages(2 + THREADS);
	struct registrar c[THREADS];
	struct rig r;
	uint32_t i;

	(void)state;
	rig_begin(&r, RIG_REAL);
	for (i = 0; i < THREADS; i++) {
		c[i] = (struct registrar){
			.r = &r, .shared = own, .own = own + (2 + i) * PAGE};
		assert_int_equal(pthread_create(&c[i].thread, NULL, register_much, &c[i]),
				 0);
	}
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(c[i].thread, NULL), 0);
		assert_true(c[i].ok);
		assert_true(c[i].refused < 100);
	}
	rig_end(&r);
	unmap(own, 2 + THREADS);
}
