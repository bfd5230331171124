/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt=block: launches stop between their blocks, whenever it is asked and however
 * often, and what comes out is what came out before; nothing runs in front of what was
 * stopped; what cannot be rewritten says why and runs to its end; each call of the driver
 * fails in turn while launches are stopped and go on.
 */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/cuda.h>

#include "backends/cuda/internal.h"

#define BLOCK_NS 10000u
#define BLOCKS   500u /* of 46 multiprocessors: 11 waves */

static const struct hal_backend *b;
static const struct hal_bk_config blockwise = {.clock = 1, .preempt = 1};

struct rig {
	void *dev, *part, *queue, *prog, *mem;
	struct hal_bk_kernel_info info;
	void *work, *iota;
	struct hal_bk_arg args[4][2];
	uint32_t launches;
};

static void begin(struct rig *r, const struct hal_bk_config *cfg)
{
	static const char *const names[] = {"work:m8", "iota:m4"};
	const struct hal_bk_partition_desc desc = {.units = 1, .rows = 1, .cols = 1};
	size_t size;
	void *image = make_cuda_image(names, 2, 1, &size);

	memset(r, 0, sizeof(*r));
	stand_in()->reset();
	if (b->cold.open(cfg, 1, &r->dev))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.partition_create(r->dev, &desc, &r->part), 0);
	if (b->cold.program_load(r->dev, image, size, &r->prog))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.kernel_get(r->dev, r->prog, 0, &r->info, &r->work), 0);
	assert_int_equal(b->cold.kernel_get(r->dev, r->prog, 1, &r->info, &r->iota), 0);
	assert_int_equal(b->cold.mem_alloc(r->dev, r->part, 8 * BLOCKS, NULL, 0, &r->mem),
			 0);
	assert_int_equal(b->cold.queue_create(r->dev, r->part, 0, &r->queue), 0);
	free(image);
}

static void clean(void)
{
	const char *text = "";

	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
	assert_int_equal(stand_in()->live(), 0);
}

static void put_away(struct rig *r)
{
	assert_int_equal(b->cold.queue_destroy(r->dev, r->queue), 0);
	assert_int_equal(b->cold.mem_free(r->dev, r->mem), 0);
	assert_int_equal(b->cold.program_unload(r->dev, r->prog), 0);
	assert_int_equal(b->cold.partition_destroy(r->dev, r->part), 0);
	b->cold.close(r->dev);
	clean();
}

/* work: adds 1 to the first word, of each block; iota: writes base + i to word i. */
static int launch(struct rig *r, void *kernel, uint64_t scalar, uint32_t groups,
		  struct hal_bk_cmd *cmd)
{
	struct hal_bk_arg *a = r->args[r->launches++ % 4];

	a[0] = (struct hal_bk_arg){.mem = r->mem, .bytes = 8 * BLOCKS};
	a[1] = (struct hal_bk_arg){.value = scalar};
	*cmd = (struct hal_bk_cmd){.op = HAL_OP_LAUNCH,
				   .cookie = r->launches,
				   .launch = {.kernel = kernel,
					      .args = a,
					      .arg_count = 2,
					      .groups = {groups, 1, 1}}};
	return b->hot.submit(r->dev, r->queue, cmd);
}

static void zero(struct rig *r)
{
	static const uint32_t none[2 * BLOCKS];

	assert_int_equal(b->cold.mem_write(r->dev, r->mem, 0, none, sizeof(none)), 0);
}

static uint32_t word(struct rig *r, uint32_t i)
{
	uint32_t v;

	assert_int_equal(b->cold.mem_read(r->dev, r->mem, 4 * i, &v, 4), 0);
	return v;
}

/* Lets so much time pass; how many commands ended. */
static uint32_t run_for(struct rig *r, uint64_t ns)
{
	const uint64_t until = b->hot.now(r->dev) + ns;
	struct hal_bk_event ev;
	uint32_t n = 0;

	while (b->hot.now(r->dev) < until) {
		const int got = b->hot.poll(r->dev, until, &ev, 1);

		assert_true(got >= 0);
		if (got)
			assert_int_equal(ev.kind, HAL_BK_DONE);
		n += (uint32_t)got;
	}
	return n;
}

/* Suspends by FOLD; how many ended before it was quiet. */
static uint32_t stop(struct rig *r, struct hal_bk_event *quiet)
{
	struct hal_bk_event ev;
	uint32_t n = 0;

	assert_int_equal(b->hot.suspend(r->dev, r->queue, HAL_SUSPEND_FOLD, 77), 0);
	for (;;) {
		assert_int_equal(b->hot.poll(r->dev, UINT64_MAX, &ev, 1), 1);
		if (ev.kind == HAL_BK_QUIET)
			break;
		assert_int_equal(ev.status, 0);
		n++;
	}
	assert_int_equal(ev.cookie, 77);
	if (quiet)
		*quiet = ev;
	return n;
}

static uint32_t finish(struct rig *r)
{
	struct hal_bk_event ev;
	uint32_t n = 0;

	while (b->hot.poll(r->dev, UINT64_MAX, &ev, 1) == 1) {
		assert_int_equal(ev.kind, HAL_BK_DONE);
		assert_int_equal(ev.status, 0);
		n++;
	}
	return n;
}

/* ---- stops ------------------------------------------------------------------------- */

static void info(void **state)
{
	struct hal_device_info i = {.size = sizeof(i)};
	struct rig r;

	(void)state;
	begin(&r, &blockwise);
	assert_int_equal(b->cold.get_info(r.dev, &i), 0);
	assert_int_equal(i.preempt, HAL_PREEMPT_INSIDE);
	assert_int_equal(i.suspend_modes,
			 1u << HAL_SUSPEND_DRAIN | 1u << HAL_SUSPEND_FOLD);
	put_away(&r);
}

/* It is quiet after a block, and others run then; the rest is what is left. */
static void inside(void **state)
{
	struct hal_bk_event quiet;
	struct hal_bk_cmd cmd;
	struct rig r;
	uint64_t at;
	uint32_t some;

	(void)state;
	begin(&r, &blockwise);
	zero(&r);
	assert_int_equal(launch(&r, r.work, BLOCK_NS, BLOCKS, &cmd), 0);
	assert_int_equal(run_for(&r, 3 * BLOCK_NS), 0);
	at = b->hot.now(r.dev);
	assert_int_equal(stop(&r, &quiet), 0);
	assert_true(b->hot.now(r.dev) - at < 2 * BLOCK_NS);
	assert_true(quiet.end_ns - quiet.start_ns > 2 * BLOCK_NS);
	assert_int_equal(b->hot.next(r.dev), UINT64_MAX);
	some = word(&r, 0);
	assert_in_range(some, 2 * 46, 6 * 46);
	assert_int_equal(run_for(&r, 100 * BLOCK_NS), 0);
	assert_int_equal(word(&r, 0), some);
	assert_int_equal(b->hot.submit(r.dev, r.queue, &cmd), -EAGAIN);
	at = b->hot.now(r.dev);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(finish(&r), 1);
	assert_int_equal(word(&r, 0), BLOCKS);
	assert_true(b->hot.now(r.dev) - at <
		    (BLOCKS - some) / 46 * BLOCK_NS + 3 * BLOCK_NS);
	put_away(&r);
}

/* Whenever it is asked, again and again; the next launch starts with no flag. */
static void any_time(void **state)
{
	struct hal_bk_cmd cmd;
	uint32_t after, done, i;
	struct rig r;

	(void)state;
	begin(&r, &blockwise);
	for (after = 0; after < 16 * BLOCK_NS; after += 1700) {
		zero(&r);
		assert_int_equal(launch(&r, r.work, BLOCK_NS, BLOCKS, &cmd), 0);
		done = run_for(&r, after);
		for (i = 0; i < 3; i++) {
			done += stop(&r, NULL);
			assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
			done += run_for(&r, 100 + after / 7);
		}
		done += finish(&r);
		assert_int_equal(done, 1);
		assert_int_equal(word(&r, 0), BLOCKS);
		assert_int_equal(launch(&r, r.work, 100, 3, &cmd), 0);
		assert_int_equal(finish(&r), 1);
		assert_int_equal(word(&r, 0), BLOCKS + 3);
	}
	put_away(&r);
}

/* Each block is where it was in the grid; what is behind stays behind. */
static void in_order(void **state)
{
	struct hal_bk_cmd cmd[3];
	uint32_t after, done, i;
	struct rig r;

	(void)state;
	begin(&r, &blockwise);
	for (after = 0; after < 90000; after += 1300) {
		zero(&r);
		assert_int_equal(launch(&r, r.iota, 1000, BLOCKS, &cmd[0]), 0);
		assert_int_equal(launch(&r, r.iota, 5000, BLOCKS, &cmd[1]), 0);
		assert_int_equal(launch(&r, r.iota, 9000, BLOCKS / 2, &cmd[2]), 0);
		done = run_for(&r, after);
		for (i = 0; i < 4; i++) {
			done += stop(&r, NULL);
			assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
			done += run_for(&r, 3000);
		}
		done += finish(&r);
		assert_int_equal(done, 3);
		for (i = 0; i < BLOCKS; i += 7)
			assert_int_equal(word(&r, i), (i < BLOCKS / 2 ? 9000 : 5000) + i);
	}
	put_away(&r);
}

/* A copy, a fill, a launch that is too large or cannot be stopped wait for their turn. */
static void others_wait(void **state)
{
	struct hal_bk_cmd cmd, fill = {.op = HAL_OP_FILL, .cookie = 9};
	struct rig r;

	(void)state;
	begin(&r, &blockwise);
	fill.fill.dst = r.mem;
	fill.fill.bytes = 8;
	fill.fill.pattern = 5;
	assert_int_equal(b->hot.submit(r.dev, r.queue, &fill), 0);
	assert_int_equal(launch(&r, r.work, BLOCK_NS, BLOCKS, &cmd), 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue, &fill), -EAGAIN);
	assert_int_equal(launch(&r, r.iota, 0, CU_STOP_BLOCKS + 1, &cmd), -EAGAIN);
	assert_int_equal(run_for(&r, 3 * BLOCK_NS), 1);
	assert_int_equal(stop(&r, NULL), 0);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(finish(&r), 1);
	assert_int_equal(word(&r, 0), 5 + BLOCKS);
	/* What is too large runs to its end. */
	assert_int_equal(launch(&r, r.work, 20, CU_STOP_BLOCKS + 1, &cmd), 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue, &fill), 0);
	assert_int_equal(run_for(&r, 5000), 0);
	assert_int_equal(stop(&r, NULL), 2);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(word(&r, 0), 5);
	put_away(&r);
}

/* hang_ms, between blocks: those that run end, no other begins, and nothing is left. */
static void hung(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .preempt = 1, .hang_ms = 3};
	struct hal_bk_event ev[4];
	struct hal_bk_cmd cmd[2];
	struct rig r;

	(void)state;
	begin(&r, &cfg);
	zero(&r);
	assert_int_equal(launch(&r, r.work, 1000000, BLOCKS, &cmd[0]), 0);
	assert_int_equal(launch(&r, r.iota, 5, BLOCKS, &cmd[1]), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 2);
	assert_int_equal(ev[0].status, -EIO);
	assert_string_equal(ev[0].fault, "hung for 3 ms, kernel work");
	assert_int_equal(ev[1].status, -ECANCELED);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue), 0);
	assert_int_equal(run_for(&r, 2000000), 0);
	assert_true(b->hot.next(r.dev) == UINT64_MAX);
	assert_in_range(word(&r, 0), 2 * 46, 4 * 46);
	assert_int_equal(word(&r, 1), 0);
	assert_int_equal(b->cold.queue_create(r.dev, r.part, 0, &r.queue), 0);
	assert_int_equal(launch(&r, r.iota, 5, BLOCKS, &cmd[0]), 0);
	assert_int_equal(finish(&r), 1);
	assert_int_equal(word(&r, 1), 6);
	put_away(&r);
}

/* A FOLD that comes to no end is one, too; and what FOLD keeps is not. */
static void hung_in_fold(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .preempt = 1, .hang_ms = 3};
	struct hal_bk_event ev[4];
	struct hal_bk_cmd cmd;
	struct rig r;

	(void)state;
	begin(&r, &cfg);
	zero(&r);
	assert_int_equal(launch(&r, r.work, 1000000, 92, &cmd), 0);
	assert_int_equal(run_for(&r, 500000), 0);
	assert_int_equal(stop(&r, NULL), 0);
	assert_int_equal(run_for(&r, 9000000), 0);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(finish(&r), 1);
	assert_int_equal(word(&r, 0), 92);
	assert_int_equal(launch(&r, r.work, 8000000, 46, &cmd), 0);
	assert_int_equal(run_for(&r, 500000), 0);
	assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 77), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 2);
	assert_int_equal(ev[0].status, -EIO);
	assert_int_equal(ev[0].end_ns - ev[0].start_ns, 3000000);
	assert_int_equal(ev[1].kind, HAL_BK_QUIET);
	assert_int_equal(run_for(&r, 9000000), 0);
	put_away(&r);
}

/* With what was stopped the queue goes, or the device is lost. */
static void ends(void **state)
{
	const struct hal_bk_config masks = {
		.clock = 1, .preempt = 1, .partitions = CU_WAY_MASK};
	const struct hal_bk_partition_desc to = {
		.col = 5, .units = 1, .rows = 1, .cols = 1};
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd;
	struct rig r;

	(void)state;
	begin(&r, &blockwise);
	assert_int_equal(launch(&r, r.work, BLOCK_NS, BLOCKS, &cmd), 0);
	assert_int_equal(run_for(&r, 3 * BLOCK_NS), 0);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue), -EBUSY);
	assert_int_equal(stop(&r, NULL), 0);
	put_away(&r);

	begin(&r, &blockwise);
	assert_int_equal(launch(&r, r.work, BLOCK_NS, BLOCKS, &cmd), 0);
	assert_int_equal(run_for(&r, 3 * BLOCK_NS), 0);
	assert_int_equal(stop(&r, NULL), 0);
	stand_in()->lose(1, CUR_UNKNOWN);
	assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 1), -EBUSY);
	((struct cu_device *)r.dev)->lost = CUR_UNKNOWN;
	assert_int_equal(b->hot.poll(r.dev, 0, &ev, 1), 1);
	assert_int_equal(ev.status, -EIO); /* not 0 */
	put_away(&r);

	/* Its partition moves meanwhile. */
	begin(&r, &masks);
	zero(&r);
	assert_int_equal(launch(&r, r.work, BLOCK_NS, 20, &cmd), 0);
	assert_int_equal(run_for(&r, 3 * BLOCK_NS), 0);
	assert_int_equal(b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 1), 0);
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 2), 0);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.cookie, 1);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.cookie, 2);
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(finish(&r), 1);
	assert_int_equal(word(&r, 0), 20);
	put_away(&r);
}

/* ---- what cannot be stopped -------------------------------------------------------- */

static void refused(void **state)
{
	static const char *const names[] = {"work:m8", "iota:m4"};
	const struct hal_cuda_extension *ext;
	struct hal_cuda_image *head;
	struct hal_bk_cmd cmd;
	char why[HAL_CUDA_SAID];
	void *prog, *image;
	size_t size;
	struct rig r;

	(void)state;
	begin(&r, &blockwise);
	ext = b->cold.extension(r.dev, "cuda");
	assert_int_equal(ext->stops(r.dev, "work", why), 1);
	assert_int_equal(ext->stops(r.dev, "nobody", why), -ENOENT);
	image = make_cuda_image(names, 2, 1, &size);
	head = image;
	/* The first kernel's "ret;" becomes a "trap;", one byte is over: the last 0. */
	{
		char *ptx = (char *)image + size - head->module_bytes;
		char *ret = strstr(ptx, "ret;"), *end = (char *)image + size - 1;

		memmove(ret + 4, ret + 3, (size_t)(end - ret - 4) + 1);
		memcpy(ret, "trap", 4);
		*end = 0;
		end[-1] = '}';
	}
	if (b->cold.program_load(r.dev, image, size, &prog))
		fail_msg("%s", host_text);
	assert_int_equal(ext->stops(r.dev, "work", why), 0);
	if (!strstr(why, "trap"))
		fail_msg("why: %s", why);
	assert_int_equal(ext->stops(r.dev, "iota", why), 1);
	zero(&r);
	assert_int_equal(b->cold.kernel_get(r.dev, prog, 0, &r.info, &r.work), 0);
	assert_int_equal(launch(&r, r.work, BLOCK_NS, BLOCKS, &cmd), 0);
	assert_int_equal(run_for(&r, 3 * BLOCK_NS), 0);
	assert_int_equal(stop(&r, NULL), 1); /* to its end */
	assert_int_equal(b->hot.resume(r.dev, r.queue), 0);
	assert_int_equal(word(&r, 0), BLOCKS);
	assert_int_equal(b->cold.program_unload(r.dev, prog), 0);
	assert_int_equal(ext->stops(r.dev, "work", why), 1);
	free(image);
	put_away(&r);
}

/* ---- failures ---------------------------------------------------------------------- */

/* Each call fails each time: what is told to have ended is right, the rest has failed. */
static void each_fails(void **state)
{
	static const char *const calls[] = {"cuStreamWriteValue32_v2", "cuMemcpyAsync",
					    "cuMemsetD32Async", "cuLaunchKernel",
					    "cuEventRecord"};
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd;
	uint32_t i, nth, failed = 0;
	struct rig r;
	bool ok, quiet, last;

	(void)state;
	for (i = 0; i < 5; i++)
		for (nth = 1;; nth++) {
			begin(&r, &blockwise);
			zero(&r);
			assert_int_equal(launch(&r, r.work, BLOCK_NS, BLOCKS, &cmd), 0);
			assert_int_equal(run_for(&r, 3 * BLOCK_NS), 0);
			stand_in()->break_call(calls[i], nth, CUR_OUT_OF_MEMORY);
			assert_int_equal(
				b->hot.suspend(r.dev, r.queue, HAL_SUSPEND_FOLD, 1), 0);
			ok = quiet = false;
			while (b->hot.poll(r.dev, UINT64_MAX, &ev, 1) == 1) {
				if (ev.kind == HAL_BK_DONE) {
					assert_int_equal(ev.status, -EIO);
					failed++;
				} else if (!quiet) {
					quiet = true;
					assert_int_equal(b->hot.resume(r.dev, r.queue),
							 0);
				}
				if (ev.kind == HAL_BK_QUIET)
					while (b->hot.poll(r.dev, UINT64_MAX, &ev, 1) ==
					       1) {
						ok = ev.status == 0;
						failed += !ok;
					}
			}
			assert_true(quiet);
			last = stand_in()->armed() != 0;
			stand_in()->break_call(calls[i], 0, 0);
			if (ok)
				assert_int_equal(word(&r, 0), BLOCKS);
			put_away(&r);
			if (last)
				break;
		}
	assert_true(failed > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(info),        cmocka_unit_test(inside),
		cmocka_unit_test(any_time),    cmocka_unit_test(in_order),
		cmocka_unit_test(others_wait), cmocka_unit_test(ends),
		cmocka_unit_test(refused),     cmocka_unit_test(each_fails),
		cmocka_unit_test(hung),        cmocka_unit_test(hung_in_fold),
	};

	b = hal_backend_cuda(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
