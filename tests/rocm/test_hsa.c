/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions whose queues are HSA's: masks that change while a kernel runs, what is told
 * of a packet that is refused, launches that do not end, a ring that is full, and when
 * the queues are streams instead.
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
#include <hal/gpu.h>
#include <hal/rocm.h>

#include "backends/rocm/internal.h"
#include "tests/fakes/rocm/kfd.h"

enum { KERNELS = 6, WORK = 0, IOTA, WILD, NEVER, SPIN, WHERE };
static const char *const names[KERNELS] = {"work:m8", "iota:m4", "wild:m",
					   "never:m", "spin:m",  "hal_sm:m"};
static const struct hal_backend *b;

#define MAKE_IMAGE make_rocm_image
#include "tests/gpu/queues.h"

enum { AUTO, HSA_ONLY, STREAM };
#define BLOCKS 512u

static const struct hal_bk_config masks = {
	.clock = 1, .partitions = 1, .queues = HSA_ONLY};

/* Whether the CU, by its number and 1, is of so many units of device 0 (4 CUs each). */
static bool in_units(uint32_t id, uint32_t first, uint32_t count)
{
	uint32_t mask[KFD_CUS_MAX / 32] = {0}, bit;
	bool on[KFD_CUS_MAX];

	for (bit = 4 * first; bit < 4 * (first + count); bit++)
		mask[bit / 32] |= 1u << bit % 32;
	return kfd_apply(&kfd_gpus[0], mask, 60, on) && on[id - 1];
}

/* How many of the blocks that wrote there ran on these units. */
static uint32_t blocks_in(struct rig *r, uint64_t offset, uint32_t first, uint32_t count)
{
	uint32_t ids[BLOCKS], i, n = 0;

	assert_int_equal(b->cold.mem_read(r->dev, r->mem, offset, ids, sizeof(ids)), 0);
	for (i = 0; i < BLOCKS; i++)
		n += ids[i] && in_units(ids[i], first, count);
	return n;
}

static int submit_where(struct rig *r, uint32_t queue, uint64_t offset, uint64_t cookie)
{
	const struct hal_bk_arg arg = {r->mem, offset, 4 * BLOCKS};
	struct hal_bk_cmd cmd = launch(r, WHERE, cookie, &arg, 1);

	cmd.launch.groups[0] = BLOCKS;
	return b->hot.submit(r->dev, r->queue[queue], &cmd);
}

/* ---- masks that change ------------------------------------------------------------- */

/* The kernel that runs goes on where the partition went, and so does what follows: in the
 * queue that was there before.  The neighbour stays where it was. */
static void moves_live(void **state)
{
	const struct hal_bk_partition_desc to = {.col = 9, .units = 2},
					   beside = {.col = 4, .units = 1, .index = 1},
					   bad = {.col = 15, .units = 1};
	const struct gpu_stand_in *s = stand_in();
	struct hal_bk_event ev[4];
	void *other, *queue, *mine;
	uint64_t made;
	struct rig r;

	(void)state;
	open_rig(&r, &masks);
	assert_int_equal(b->cold.partition_create(r.dev, &beside, &other), 0);
	assert_int_equal(b->cold.queue_create(r.dev, other, 0, &queue), 0);
	made = s->calls("hsa_queue_create");
	/* 128 rounds of 2 us, the neighbour's as well. */
	assert_int_equal(submit_where(&r, 0, 0, 1), 0);
	mine = r.queue[0];
	r.queue[0] = queue;
	assert_int_equal(submit_where(&r, 0, 4096, 2), 0);
	r.queue[0] = mine;
	assert_int_equal(b->hot.poll(r.dev, b->hot.now(r.dev) + 100000, ev, 4), 0);
	assert_int_equal(b->hot.resize(r.dev, r.part, &bad, 7), -EINVAL);
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 7), 0);
	assert_int_equal(b->hot.next(r.dev), 0);
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 8), -EBUSY);
	assert_int_equal(submit_where(&r, 0, 2048, 3), 0);
	/* It has moved though its kernel runs. */
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 1);
	assert_int_equal(ev[0].kind, HAL_BK_QUIET);
	assert_int_equal(ev[0].cookie, 7);
	assert_int_equal(ev[0].status, 0);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 1); /* on 8 CUs it is done before the neighbour */
	poll_one(&r, ev);
	poll_one(&r, ev);
	assert_in_range(blocks_in(&r, 0, 0, 1), 100, 300);
	assert_int_equal(blocks_in(&r, 0, 0, 1) + blocks_in(&r, 0, 9, 2), BLOCKS);
	assert_int_equal(blocks_in(&r, 2048, 9, 2), BLOCKS);
	assert_int_equal(blocks_in(&r, 4096, 4, 1), BLOCKS);
	assert_int_equal(s->calls("hsa_queue_create"), made);
	assert_int_equal(s->calls("hipExtStreamCreateWithCUMask"), 0);
	assert_int_equal(b->cold.queue_destroy(r.dev, queue), 0);
	assert_int_equal(b->cold.partition_destroy(r.dev, other), 0);
	close_rig(&r);
}

/* On each device: units are bits of the CUs' mask, on RDNA all of the CUs there are. */
static void moves_on_each(void **state)
{
	static const uint32_t cus[KFD_GPUS] = {4, 8, 8, 24};
	const struct hal_bk_partition_desc desc = {.units = 1},
					   to = {.col = 2, .units = 1};
	struct hal_bk_event ev;
	uint32_t d, version;

	(void)state;
	for (d = 0; d < 2 * KFD_GPUS; d++) {
		void *dev, *part, *queue;
		uint32_t got[ROCM_MASK_WORDS], i, n = 0;
		const struct rocm_queue *q;

		version = d / KFD_GPUS;
		stand_in()->reset();
		if (version)
			setenv("HAL_STAND_IN_HIP_VERSION", "60300000", 1);
		assert_int_equal(b->cold.open(&masks, d % KFD_GPUS, &dev), 0);
		assert_int_equal(b->cold.partition_create(dev, &desc, &part), 0);
		assert_int_equal(b->cold.queue_create(dev, part, 0, &queue), 0);
		assert_int_equal(b->hot.resize(dev, part, &to, 1), 0);
		assert_int_equal(b->hot.poll(dev, UINT64_MAX, &ev, 1), 1);
		q = queue;
		assert_int_equal(hsa.hsa_amd_queue_cu_get_mask(q->aql->queue,
							       32 * ROCM_MASK_WORDS, got),
				 0);
		for (i = 0; i < 32 * ROCM_MASK_WORDS; i++) {
			const bool set = got[i / 32] >> i % 32 & 1;

			assert_true(!set || i / cus[d % KFD_GPUS] == 2);
			n += set;
		}
		assert_int_equal(n, cus[d % KFD_GPUS]);
		assert_int_equal(b->cold.queue_destroy(dev, queue), 0);
		assert_int_equal(b->cold.partition_destroy(dev, part), 0);
		b->cold.close(dev);
		unsetenv("HAL_STAND_IN_HIP_VERSION");
		assert_int_equal(stand_in()->live(), 0);
		assert_int_equal(stand_in()->misuse(NULL), 0);
	}
}

/* A move that fails leaves the partition where it was, whichever queue it fails at. */
static void move_fails(void **state)
{
	static const char *const calls[] = {"hsa_amd_queue_cu_set_mask",
					    "hsa_amd_queue_cu_get_mask"};
	const struct hal_bk_partition_desc to = {.col = 9, .units = 2};
	struct hal_bk_event ev;
	uint32_t i, nth, q;
	struct rig r;

	(void)state;
	for (i = 0; i < 2; i++)
		for (nth = 1; nth <= 3; nth++) {
			open_rig(&r, &masks);
			stand_in()->break_call(calls[i], nth, HSAR_OUT_OF_RESOURCES);
			assert_int_equal(b->hot.resize(r.dev, r.part, &to, 7), -ENOSPC);
			assert_non_null(strstr(host_text, calls[i]));
			for (q = 0; q < 3; q++) {
				assert_int_equal(submit_where(&r, q, 0, 2), 0);
				poll_one(&r, &ev);
				assert_int_equal(ev.cookie, 2);
				assert_int_equal(blocks_in(&r, 0, 0, 1), BLOCKS);
			}
			close_rig(&r);
		}
}

/* What takes of each mask came behind our back: a queue that cannot be put back ends,
 * whether it has something or not.  The one made last is the first to be changed. */
static void not_put_back(void **state)
{
	const struct hal_bk_partition_desc to = {.col = 9, .units = 2};
	struct hal_bk_cmd nop = {.op = HAL_OP_NOP};
	struct hal_bk_event ev[4];
	struct rig r;
	int busy;

	(void)state;
	for (busy = 0; busy < 2; busy++) {
		open_rig(&r, &masks);
		if (busy)
			submit_on_mem(&r, 2, NEVER, 1);
		setenv("HSA_CU_MASK", "0:50-59", 1);
		assert_int_equal(b->hot.resize(r.dev, r.part, &to, 7), -ENOTSUP);
		unsetenv("HSA_CU_MASK");
		if (!strstr(host_text, "set to 0x0000000f, but HSA reports 0x00000000"))
			fail_msg("%s", host_text);
		assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), busy);
		if (busy) {
			assert_int_equal(ev[0].status, -EIO);
			assert_string_equal(ev[0].fault, "its mask was changed and could "
							 "not be restored, kernel never");
		}
		assert_int_equal(b->hot.submit(r.dev, r.queue[2], &nop), -EIO);
		assert_non_null(strstr(host_text,
				       "its mask was changed and could not be restored"));
		assert_int_equal(submit_where(&r, 0, 0, 2), 0);
		poll_one(&r, ev);
		assert_int_equal(blocks_in(&r, 0, 0, 1), BLOCKS);
		close_rig(&r);
	}
}

/* ---- what goes wrong --------------------------------------------------------------- */

/* Of a packet that the device refuses: its command, and those behind it; other queues go
 * on, and so does the device. */
static void refused_packet(void **state)
{
	static const int want[] = {1, 0, -EIO, -ECANCELED, 0};
	struct hal_bk_cmd nop = {.op = HAL_OP_NOP};
	struct rocm_kernel *iota;
	struct hal_bk_arg args[2] = {{NULL, 0, 0}, {NULL, 5, 0}};
	struct hal_bk_event ev[4];
	struct hal_bk_cmd cmd;
	uint32_t seen = 0;
	struct rig r;

	(void)state;
	open_rig(&r, &masks);
	iota = r.kernel[IOTA];
	iota->packet.kernel = 64;
	args[0] = (struct hal_bk_arg){r.mem, 0, 4096};
	cmd = launch(&r, IOTA, 2, args, 2);
	submit_work(&r, 0, 1, 1000);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &cmd), 0);
	submit_work(&r, 0, 3, 1000);
	submit_work(&r, 1, 4, 2000000);
	while (seen < 4) {
		poll_one(&r, ev);
		seen++;
		assert_int_equal(ev[0].status, want[ev[0].cookie]);
		if (ev[0].cookie == 2)
			assert_string_equal(ev[0].fault,
					    "HSA_STATUS_ERROR_INVALID_CODE_OBJECT "
					    "(0x1010), kernel iota");
	}
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &nop), -EIO);
	assert_non_null(strstr(host_text, "HSA_STATUS_ERROR_INVALID_CODE_OBJECT"));
	assert_int_equal(b->hot.submit(r.dev, r.queue[1], &nop), 0);
	poll_one(&r, ev);
	assert_int_equal(ev[0].status, 0);
	close_rig(&r);
	assert_int_equal(stand_in()->live(), 0);
}

/* It is ended, and nothing is kept for it. */
static void hung(void **state)
{
	const struct hal_bk_config cfg = {
		.clock = 1, .partitions = 1, .queues = HSA_ONLY, .hang_ms = 5};
	struct hal_bk_event ev[4];
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	submit_on_mem(&r, 0, NEVER, 1);
	submit_work(&r, 0, 2, 1000);
	submit_work(&r, 1, 3, 4000000);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 3);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 4), 2);
	assert_int_equal(ev[0].cookie, 1);
	assert_int_equal(ev[0].status, -EIO);
	assert_string_equal(ev[0].fault, "hung for 5 ms, kernel never");
	assert_int_equal(ev[0].end_ns - ev[0].start_ns, 5000000);
	assert_int_equal(ev[1].cookie, 2);
	assert_int_equal(ev[1].status, -ECANCELED);
	assert_true(b->hot.next(r.dev) == UINT64_MAX);
	submit_work(&r, 1, 4, 1000);
	poll_one(&r, ev);
	assert_int_equal(ev[0].status, 0);
	close_rig(&r);
}

/* Where it cannot be ended it is given up, as a stream's is. */
static void hung_for_good(void **state)
{
	const struct hal_bk_config cfg = {
		.clock = 1, .partitions = 1, .queues = HSA_ONLY, .hang_ms = 5};
	struct hal_bk_event ev[4];
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	submit_on_mem(&r, 0, NEVER, 1);
	stand_in()->break_call("hsa_queue_inactivate", 1, HSAR_ERROR);
	poll_one(&r, ev);
	assert_int_equal(ev[0].status, -EIO);
	assert_true(b->hot.next(r.dev) != UINT64_MAX);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue[0]), 0);
	assert_int_equal(stand_in()->calls("hsa_queue_destroy"), 1); /* at open */
	leave_rig(&r);
	stand_in()->lose(0, HIPR_Unknown); /* the end of the process */
}

/* Suspends queue 0 by KILL, and waits until it is quiet; how many ended well, and how
 * many were dropped: in order. */
static void kill_it(struct rig *r, uint32_t *well, uint32_t *dropped)
{
	const uint64_t began = b->hot.now(r->dev);
	uint64_t last = 0;
	struct hal_bk_event ev;

	*well = *dropped = 0;
	assert_int_equal(b->hot.suspend(r->dev, r->queue[0], HAL_SUSPEND_KILL, 99), 0);
	assert_int_equal(b->hot.suspend(r->dev, r->queue[0], HAL_SUSPEND_KILL, 99),
			 -EBUSY);
	assert_int_equal(b->hot.next(r->dev), 0);
	for (poll_one(r, &ev); ev.kind != HAL_BK_QUIET; poll_one(r, &ev)) {
		assert_true(ev.cookie > last);
		last = ev.cookie;
		assert_true(ev.status == (*dropped ? -ECANCELED : ev.status));
		assert_true(ev.end_ns >= ev.start_ns);
		if (ev.status)
			assert_int_equal(ev.status, -ECANCELED);
		*dropped += ev.status != 0;
		*well += ev.status == 0;
	}
	assert_int_equal(ev.cookie, 99);
	assert_true(ev.start_ns == ev.end_ns); /* nothing of it is kept */
	assert_true(b->hot.now(r->dev) - began < 100000);
}

/* What it has is dropped and does not go on, whatever it is; other queues do.  It takes
 * commands again, on the same units. */
static void killed(void **state)
{
	const struct hal_bk_config hangs = {
		.clock = 1, .partitions = 1, .queues = HSA_ONLY, .hang_ms = 50};
	struct hal_bk_cmd stamp = {.op = HAL_OP_TIMESTAMP, .cookie = 5};
	uint32_t well, dropped, got = 0, live, i;
	struct hal_bk_event ev[4];
	struct rig r;

	(void)state;
	open_rig(&r, &hangs);
	assert_int_equal(b->cold.mem_write(r.dev, r.mem, 0, &got, 4), 0);
	live = stand_in()->live();
	submit_work(&r, 1, 50, 40000000);
	for (i = 0; i < 3; i++) {
		submit_work(&r, 0, 1, 1000);
		submit_work(&r, 0, 2, 1000);
		submit_on_mem(&r, 0, NEVER, 3);
		submit_work(&r, 0, 4, 1000);
		while (b->hot.poll(r.dev, b->hot.now(r.dev) + 2000000, ev, 1))
			;
		kill_it(&r, &well, &dropped);
		assert_int_equal(well, 0);
		assert_int_equal(dropped, 2);
		assert_int_equal(b->hot.submit(r.dev, r.queue[0], &stamp), -EAGAIN);
		assert_int_equal(b->hot.resume(r.dev, r.queue[0]), 0);
	}
	/* Those that have ended unseen have ended; a time that was not asked for yet is
	 * not written. */
	submit_work(&r, 0, 1, 1000);
	submit_work(&r, 0, 2, 1000);
	stamp.timestamp.dst = r.mem;
	stamp.timestamp.offset = 64;
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &stamp), 0);
	for (i = 0; i < 3; i++)
		hip.advance(UINT64_MAX, &(uint64_t){0}, &(uint32_t){0});
	kill_it(&r, &well, &dropped);
	assert_int_equal(well, 2);
	assert_int_equal(dropped, 1);
	assert_int_equal(b->hot.resume(r.dev, r.queue[0]), 0);
	/* And when nothing is in it. */
	kill_it(&r, &well, &dropped);
	assert_int_equal(well + dropped, 0);
	assert_int_equal(b->hot.resume(r.dev, r.queue[0]), 0);
	assert_int_equal(submit_where(&r, 0, 4096, 6), 0);
	poll_one(&r, ev);
	assert_int_equal(ev[0].status, 0);
	assert_int_equal(blocks_in(&r, 4096, 0, 1), BLOCKS);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 50);
	assert_int_equal(ev[0].status, 0);
	assert_int_equal(b->hot.poll(r.dev, 0, ev, 4), 0);
	assert_int_equal(b->cold.mem_read(r.dev, r.mem, 0, &got, 4), 0);
	assert_int_equal(got, 3 * 2 + 2 + 1);
	assert_int_equal(stand_in()->live(), live);
	close_rig(&r);
}

/* Where it cannot be, nothing has happened; what goes wrong meanwhile is told. */
static void kill_fails(void **state)
{
	static const char *const calls[] = {"hsa_queue_create",
					    "hsa_amd_queue_cu_set_mask",
					    "hsa_queue_inactivate", "hipHostMalloc"};
	struct rocm_kernel *iota;
	const struct hal_bk_arg args[2] = {{NULL, 0, 0}, {NULL, 5, 0}};
	struct hal_bk_cmd cmd;
	struct hal_bk_event ev[4];
	struct rig r;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		open_rig(&r, &masks);
		submit_work(&r, 0, 1, 1000);
		stand_in()->break_call(calls[i], 1,
				       i == 3 ? HIPR_OutOfMemory : HSAR_ERROR);
		assert_true(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_KILL, 9) < 0);
		assert_non_null(strstr(host_text, calls[i]));
		poll_one(&r, ev);
		assert_int_equal(ev[0].status, 0);
		assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_KILL, 9),
				 0);
		poll_one(&r, ev);
		assert_int_equal(ev[0].cookie, 9);
		close_rig(&r);
	}
	/* A packet was refused before. */
	open_rig(&r, &masks);
	iota = r.kernel[IOTA];
	iota->packet.kernel = 64;
	cmd = launch(&r, IOTA, 1, args, 2);
	cmd.launch.args = (struct hal_bk_arg[]){{r.mem, 0, 4096}, {NULL, 5, 0}};
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &cmd), 0);
	submit_work(&r, 0, 2, 1000);
	hip.advance(UINT64_MAX, &(uint64_t){0}, &(uint32_t){0});
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_KILL, 9), 0);
	assert_int_equal(b->hot.poll(r.dev, 0, ev, 4), 3);
	assert_int_equal(ev[0].status, -EIO);
	assert_int_equal(ev[1].status, -ECANCELED);
	assert_int_equal(ev[2].kind, HAL_BK_QUIET);
	assert_int_equal(b->hot.resume(r.dev, r.queue[0]), 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &cmd), -EIO);
	close_rig(&r);
	/* The device is lost. */
	open_rig(&r, &masks);
	submit_work(&r, 0, 1, 1000000);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_KILL, 9), 0);
	stand_in()->lose(0, HIPR_Unknown);
	((struct rocm_device *)r.dev)->base.lost = HIPR_Unknown;
	poll_one(&r, ev);
	assert_int_equal(ev[0].status, -EIO);
	close_rig(&r);
}

/* Its partition moves before that is told: so does the queue that comes. */
static void killed_and_moved(void **state)
{
	const struct hal_bk_partition_desc to = {
		.col = 7, .units = 1, .rows = 1, .cols = 1};
	struct hal_bk_event ev[4];
	struct rig r;

	(void)state;
	open_rig(&r, &masks);
	submit_on_mem(&r, 0, NEVER, 1);
	assert_int_equal(b->hot.poll(r.dev, 1000000, ev, 1), 0);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_KILL, 9), 0);
	assert_int_equal(b->hot.resize(r.dev, r.part, &to, 8), 0);
	assert_int_equal(b->hot.poll(r.dev, 0, ev, 4), 3);
	assert_int_equal(ev[0].status, -ECANCELED);
	assert_int_equal(b->hot.resume(r.dev, r.queue[0]), 0);
	assert_int_equal(submit_where(&r, 0, 0, 2), 0);
	poll_one(&r, ev);
	assert_int_equal(ev[0].status, 0);
	assert_int_equal(blocks_in(&r, 0, 7, 1), BLOCKS);
	close_rig(&r);
}

/* As with streams: what HIP says of the device goes for all its queues. */
static void lost(void **state)
{
	(void)state;
	lose_in_silence(&masks, "hipErrorUnknown (999)");
}

/* A kernel that reaches for what is not there loses the device, or ends the process. */
static void fault(void **state)
{
	struct hal_bk_event ev[4];
	struct rig r;

	(void)state;
	open_rig(&r, &masks);
	submit_on_mem(&r, 0, WILD, 1);
	poll_one(&r, ev);
	assert_int_equal(ev[0].status, -EIO);
	assert_non_null(strstr(ev[0].fault, "device lost, kernel wild"));
	close_rig(&r);
}

/* A kernel that is waited for, and does not end or is refused: the queue is ended. */
static void waited_for(void **state)
{
	const uint32_t one[3] = {1, 1, 1}, four[3] = {4, 1, 1}, mask[2] = {0xf, 0};
	struct rocm_kernel *never;
	struct rocm_device *dev;
	struct rocm_aql *a;
	struct rig r;
	int err, refused;

	(void)state;
	open_rig(&r, &masks);
	never = r.kernel[NEVER];
	dev = r.dev;
	for (refused = 0; refused < 2; refused++) {
		struct rocm_mem *mem = r.mem;
		uint32_t *args;

		err = rocm_aql_open(dev, 1, mask, 0, &a);
		assert_int_equal(err, 0);
		args = rocm_aql_arguments(a, 0);
		memset(args, 0, ROCM_ARGUMENT_BYTES);
		memcpy(args, &mem->address, sizeof(mem->address));
		args[2] = 1; /* groups, work-items and dimensions: hidden */
		args[3] = 4 | 3u << 16;
		if (refused)
			never->entry.object = 64;
		assert_int_equal(rocm_aql_kernel(a, 0, &never->entry, one, four), 0);
		assert_int_equal(rocm_aql_wait(dev, a, 0), refused ? -EINVAL : -EIO);
		if (!strstr(host_text, refused ? "INVALID_CODE_OBJECT" : "did not end"))
			fail_msg("%s", host_text);
		rocm_aql_close(dev, a, &err);
		assert_int_equal(err, 0);
	}
	close_rig(&r);
}

static void queue_fails(void **state)
{
	static const char *const calls[] = {"hsa_amd_queue_set_priority",
					    "hsa_amd_profiling_set_profiler_enabled",
					    "hsa_amd_signal_create"};
	struct rig r;
	void *queue;
	uint32_t i;

	(void)state;
	open_rig(&r, &masks);
	for (i = 0; i < 3; i++) {
		stand_in()->break_call(calls[i], 1, HSAR_OUT_OF_RESOURCES);
		assert_int_equal(b->cold.queue_create(r.dev, r.part, 1, &queue), -ENOSPC);
		assert_non_null(strstr(host_text, calls[i]));
	}
	close_rig(&r);
}

/* ---- what the engine sees ---------------------------------------------------------- */

/* As many commands as the ring has packets: one more is for later, though the first has
 * ended, as the device has not said that it has read it. */
static void full_ring(void **state)
{
	const struct hal_bk_config cfg = {
		.clock = 1, .partitions = 1, .queues = HSA_ONLY, .inflight = 64};
	struct hal_bk_cmd nop = {.op = HAL_OP_NOP, .cookie = 65};
	struct hal_bk_event ev;
	struct rig r;
	uint32_t i;

	(void)state;
	open_rig(&r, &cfg);
	stand_in()->hot(1);
	for (i = 0; i < 64; i++)
		submit_work(&r, 0, i, 1000);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &nop), -EAGAIN);
	poll_one(&r, &ev);
	assert_int_equal(ev.cookie, 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &nop), -EAGAIN);
	poll_one(&r, &ev);
	assert_int_equal(ev.cookie, 1);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &nop), 0);
	for (i = 2; i < 64; i++) {
		poll_one(&r, &ev);
		assert_int_equal(ev.cookie, i);
		assert_int_equal(ev.status, 0);
	}
	poll_one(&r, &ev);
	assert_int_equal(ev.cookie, 65);
	stand_in()->hot(0);
	close_rig(&r);
}

/* As long as they ran, by the device's own clock; a fill of an odd length, a copy that is
 * at no multiple of anything, a time. */
static void commands(void **state)
{
	struct hal_bk_cmd fill = {.op = HAL_OP_FILL, .cookie = 1},
			  copy = {.op = HAL_OP_COPY, .cookie = 2},
			  stamp = {.op = HAL_OP_TIMESTAMP, .cookie = 3};
	uint8_t got[64];
	uint64_t time = 0;
	struct hal_bk_event ev[4];
	struct rig r;
	uint32_t i;

	(void)state;
	open_rig(&r, &masks);
	submit_work(&r, 0, 0, 1000000);
	fill.fill.dst = copy.copy.dst = copy.copy.src = stamp.timestamp.dst = r.mem;
	fill.fill.offset = 128;
	fill.fill.bytes = 28;
	fill.fill.pattern = 0x04030201;
	copy.copy.src_offset = 129;
	copy.copy.dst_offset = 256;
	copy.copy.bytes = 23;
	stamp.timestamp.offset = 512;
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &fill), 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &copy), 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &stamp), 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &fill), -EAGAIN);
	for (i = 0; i < 4; i++) {
		poll_one(&r, &ev[i]);
		assert_int_equal(ev[i].cookie, i);
		assert_int_equal(ev[i].status, 0);
	}
	assert_in_range(ev[0].end_ns - ev[0].start_ns, 1000000, 1005000);
	assert_true(ev[1].start_ns >= ev[0].end_ns);
	assert_int_equal(ev[1].bytes_written, 28);
	assert_int_equal(ev[2].bytes_read, 23);
	assert_int_equal(b->cold.mem_read(r.dev, r.mem, 128, got, 32), 0);
	for (i = 0; i < 28; i++)
		assert_int_equal(got[i], 1 + i % 4);
	assert_int_not_equal(got[28], 1);
	assert_int_equal(b->cold.mem_read(r.dev, r.mem, 256, got, 24), 0);
	for (i = 0; i < 23; i++)
		assert_int_equal(got[i], 1 + (i + 1) % 4);
	assert_int_equal(b->cold.mem_read(r.dev, r.mem, 512, &time, 8), 0);
	assert_true(time >= ev[2].end_ns && time <= ev[3].end_ns);
	close_rig(&r);
}

/* What had ended before anybody looked is told apart by the device's clock. */
static void seen_at_once(void **state)
{
	struct hal_bk_event ev[4];
	uint32_t i, idle;
	uint64_t now;
	struct rig r;

	(void)state;
	open_rig(&r, &masks);
	for (i = 0; i < 3; i++)
		submit_work(&r, 0, i, 1000000 * (i + 1));
	submit_work(&r, 1, 3, 20000000);
	poll_one(&r, ev);
	/* To the end of the queue's last, unseen. */
	for (i = 0; i < 2; i++)
		hip.advance(UINT64_MAX, &now, &idle);
	rocm_catch_up(r.dev);
	for (i = 1; i < 4; i++)
		poll_one(&r, &ev[i]);
	for (i = 0; i < 3; i++) {
		assert_int_equal(ev[i].cookie, i);
		assert_in_range(ev[i].end_ns - ev[i].start_ns, 1000000 * (i + 1),
				1000000 * (i + 1) + 5000);
	}
	close_rig(&r);
}

static void priorities(void **state)
{
	struct hal_bk_arg args[2];
	struct hal_bk_event ev;
	struct hal_bk_cmd cmd;
	struct rig r;
	uint32_t i;

	(void)state;
	open_rig(&r, &masks); /* queues of -1, 0, 1 */
	args[0] = (struct hal_bk_arg){r.mem, 0, 64};
	args[1] = (struct hal_bk_arg){NULL, 1000000, 0};
	cmd = launch(&r, WORK, 0, args, 2);
	cmd.launch.groups[0] = 4;
	for (i = 0; i < 3; i++) {
		cmd.cookie = i;
		assert_int_equal(b->hot.submit(r.dev, r.queue[i], &cmd), 0);
	}
	for (i = 0; i < 3; i++) {
		poll_one(&r, &ev);
		assert_int_equal(ev.cookie, 2 - i);
	}
	close_rig(&r);
}

/* No call that can block, while partitions move now and then. */
static void hot_calls(void **state)
{
	struct hal_bk_partition_desc to = {.units = 2, .rows = 1, .cols = 2};
	uint32_t i, due = 0;
	struct hal_bk_event ev[8];
	struct rig r;
	int n;

	(void)state;
	open_rig(&r, &masks);
	stand_in()->hot(1);
	for (i = 0; i < 300 || due; i++) {
		struct hal_bk_cmd fill = {.op = HAL_OP_FILL};

		fill.fill.dst = r.mem;
		fill.fill.bytes = 64;
		to.col = (uint16_t)(i % 13);
		if (i % 7 == 6 && i < 300 &&
		    b->hot.resize(r.dev, r.part, &to, 1000) != -EBUSY)
			due++;
		if (i < 300 && !b->hot.submit(r.dev, r.queue[i % 2], &fill)) {
			due++;
			continue;
		}
		n = b->hot.poll(r.dev, UINT64_MAX, ev, 8);
		assert_true(n > 0);
		due -= (uint32_t)n;
	}
	stand_in()->hot(0);
	close_rig(&r);
}

/* ---- programs ---------------------------------------------------------------------- */

/* With what stands there first changed, of the same length. */
static int load_changed(void *dev, const char *from, const char *to, size_t bytes)
{
	size_t size;
	char *image = make_rocm_code(names, 1, 4, 0, &size);
	char *at = memmem(image, size, from, bytes);
	void *prog = NULL;
	int err;

	assert_non_null(at);
	memcpy(at, to, bytes);
	err = b->cold.program_load(dev, image, size, &prog);
	free(image);
	if (!err)
		assert_int_equal(b->cold.program_unload(dev, prog), 0);
	return err;
}

static void bad_launches(void **state)
{
	(void)state;
	launch_badly(&masks);
}

/* What only launches of HIP's have, and arguments that are not where the code has them.
 */
static void programs(void **state)
{
	const struct hal_bk_config streams = {
		.clock = 1, .partitions = 1, .queues = STREAM};
	static const char needs[] = "hidden_hostcall_buffer",
			  first[] = "\xa7.offset\x00\xa5.size\x08",
			  far[] = "\xa7.offset\x7f\xa5.size\x08",
			  none[] = "\xa7.offsot\x00\xa5.size\x08",
			  second[] = "\xa7.offset\x08\xa5.size\x08",
			  both[] = "\xa7.offset\x07\xa5.size\x08",
			  groups[] = "\xa7.offset\x10\xa5.size\x04",
			  among[] = "\xa7.offset\x0c\xa5.size\x04";
	struct rig r;
	void *dev;

	(void)state;
	open_rig(&r, &masks);
	assert_int_equal(
		load_changed(r.dev, "hidden_global_offset_x", needs, sizeof(needs) - 1),
		-ENOTSUP);
	if (!strstr(host_text, "kernel work needs hidden_hostcall_buffer from HIP"))
		fail_msg("%s", host_text);
	assert_int_equal(load_changed(r.dev, first, far, sizeof(far) - 1), -EINVAL);
	if (!strstr(host_text, "kernel work: its arguments have 32 bytes"))
		fail_msg("%s", host_text);
	assert_int_equal(load_changed(r.dev, first, none, sizeof(none) - 1), -EINVAL);
	assert_int_equal(load_changed(r.dev, second, both, sizeof(both) - 1), -EINVAL);
	assert_int_equal(load_changed(r.dev, groups, among, sizeof(among) - 1), -EINVAL);
	close_rig(&r);
	assert_int_equal(b->cold.open(&streams, 0, &dev), 0);
	assert_int_equal(
		load_changed(dev, "hidden_global_offset_x", needs, sizeof(needs) - 1), 0);
	assert_int_equal(load_changed(dev, first, none, sizeof(none) - 1), 0);
	b->cold.close(dev);
}

/* One whose kernels could be stopped runs whole. */
static void follows(void **state)
{
	static const char *const kernels[] = {"work:m8p"};
	const struct hal_bk_partition_desc desc = {.units = 1};
	struct hal_bk_arg args[2] = {{NULL, 0, 64}, {NULL, 1000, 0}};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH};
	void *dev, *part, *queue, *mem, *prog, *image;
	struct hal_bk_kernel_info info;
	struct hal_bk_event ev;
	uint32_t zero = 0, got = 0;
	size_t size;

	(void)state;
	stand_in()->reset();
	assert_int_equal(b->cold.open(&masks, 0, &dev), 0);
	assert_int_equal(b->cold.partition_create(dev, &desc, &part), 0);
	assert_int_equal(b->cold.queue_create(dev, part, 0, &queue), 0);
	assert_int_equal(b->cold.mem_alloc(dev, part, 64, NULL, 0, &mem), 0);
	assert_int_equal(b->cold.mem_write(dev, mem, 0, &zero, 4), 0);
	image = make_rocm_image(kernels, 1, 4, &size);
	assert_int_equal(b->cold.program_load(dev, image, size, &prog), 0);
	free(image);
	assert_int_equal(b->cold.kernel_get(dev, prog, 0, &info, &cmd.launch.kernel), 0);
	args[0].mem = mem;
	cmd.launch.args = args;
	cmd.launch.arg_count = 2;
	cmd.launch.groups[0] = 7;
	cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	assert_int_equal(b->hot.submit(dev, queue, &cmd), 0);
	assert_int_equal(b->hot.poll(dev, UINT64_MAX, &ev, 1), 1);
	assert_int_equal(ev.status, 0);
	assert_int_equal(b->cold.mem_read(dev, mem, 0, &got, 4), 0);
	assert_int_equal(got, 7);
	assert_int_equal(b->cold.queue_destroy(dev, queue), 0);
	assert_int_equal(b->cold.mem_free(dev, mem), 0);
	assert_int_equal(b->cold.program_unload(dev, prog), 0);
	assert_int_equal(b->cold.partition_destroy(dev, part), 0);
	b->cold.close(dev);
	assert_int_equal(stand_in()->live(), 0);
	assert_int_equal(stand_in()->misuse(NULL), 0);
}

/* Scalars of each size side by side, with what is hidden behind the last: each is whole,
 * and what one launch had is not seen in the next. */
static void narrow(void **state)
{
	static const char *const kernels[] = {"args:m1214218"};
	static const uint64_t most[7] = {UINT8_MAX,  UINT16_MAX, UINT8_MAX, UINT32_MAX,
					 UINT16_MAX, UINT8_MAX,  UINT64_MAX};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH};
	struct hal_bk_arg args[8] = {{NULL, 0, 64}};
	uint64_t got[7];
	struct hal_bk_event ev;
	struct rig r;
	void *prog, *image;
	struct hal_bk_kernel_info info;
	uint32_t i, k;
	size_t size;

	(void)state;
	open_rig(&r, &masks);
	image = make_rocm_image(kernels, 1, 4, &size);
	assert_int_equal(b->cold.program_load(r.dev, image, size, &prog), 0);
	free(image);
	assert_int_equal(b->cold.kernel_get(r.dev, prog, 0, &info, &cmd.launch.kernel),
			 0);
	args[0].mem = r.mem;
	cmd.launch.args = args;
	cmd.launch.arg_count = 8;
	for (i = 0; i < 3; i++)
		cmd.launch.groups[i] = 1;
	/* Every second one is all ones, then the others; so often that slots come again.
	 */
	for (k = 0; k < 12; k++) {
		for (i = 0; i < 7; i++)
			args[1 + i].value = (i + k) % 2 ? most[i] : 0;
		assert_int_equal(b->hot.submit(r.dev, r.queue[0], &cmd), 0);
		assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, &ev, 1), 1);
		assert_int_equal(ev.status, 0);
		assert_int_equal(b->cold.mem_read(r.dev, r.mem, 0, got, sizeof(got)), 0);
		for (i = 0; i < 7; i++)
			assert_true(got[i] == args[1 + i].value);
	}
	assert_int_equal(b->cold.program_unload(r.dev, prog), 0);
	close_rig(&r);
}

/* ---- which queues there are -------------------------------------------------------- */

static void says(const struct hal_bk_config *cfg, uint32_t index, const char *want)
{
	const struct hal_gpu_extension *ext;
	struct hal_gpu_info info = {.size = sizeof(info)};
	const char *text = "";
	void *dev;

	if (b->cold.open(cfg, index, &dev))
		fail_msg("%s", host_text);
	ext = b->cold.extension(dev, "gpu");
	assert_int_equal(ext->info(dev, &info), 0);
	if (!strstr(info.why, want))
		fail_msg("%s: not %s", info.why, want);
	assert_true(
		!strstr(info.faults, "refuses ends its queue; one that does not end") ==
		!strstr(info.why, "queues of HSA's"));
	b->cold.close(dev);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
	assert_int_equal(stand_in()->live(), 0);
	stand_in()->reset();
}

static void refuses_open(const struct hal_bk_config *cfg, uint32_t index, const char *why)
{
	void *dev = NULL;

	assert_int_equal(b->cold.open(cfg, index, &dev), -ENOTSUP);
	if (!strstr(host_text, why))
		fail_msg("%s: not %s", host_text, why);
	assert_int_equal(stand_in()->live(), 0);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	stand_in()->reset();
}

static void which_queues(void **state)
{
	const struct hal_bk_config any = {.clock = 1, .partitions = 1},
				   block = {.clock = 1, .partitions = 1, .preempt = 1},
				   streams = {
					   .clock = 1, .partitions = 1, .queues = STREAM};
	void *kept;

	(void)state;
	stand_in()->reset();
	says(&any, 0, "queues of HSA's; units of 4 bits");
	says(&any, 0, "tried out: a kernel ran in each unit, on 4 to 4 CUs");
	says(&any, 0, "masks change while a kernel runs");
	says(&streams, 0, "queues of HIP's streams");
	says(&streams, 0, "queues=stream was requested");
	says(&block, 1, "queues of HSA's; units of 8 bits");
	/* The compiler's code is in a bundle. */
	setenv("HAL_STAND_IN_HIP_VERSION", "60300000", 1);
	says(&masks, 3, "queues of HSA's; units of 12 bits");
	unsetenv("HAL_STAND_IN_HIP_VERSION");
	/* Without fills and copies there is no queue. */
	stand_in()->break_call("hiprtcCompileProgram", 1, 6);
	refuses_open(&masks, 0, "no kernels for fills and copies: hiprtcCompileProgram");
	memcpy(&kept, &hip.hiprtcCompileProgram, sizeof(kept));
	hip.hiprtcCompileProgram = NULL;
	says(&any, 0, "no kernels for fills and copies: HIP has no compiler");
	memcpy(&hip.hiprtcCompileProgram, &kept, sizeof(kept));
	/* What fails at HSA's is no obstacle, where streams do. */
	stand_in()->break_call("hsa_queue_create", 1, HSAR_OUT_OF_RESOURCES);
	says(&any, 0, "hsa_queue_create: HSA_STATUS_ERROR_OUT_OF_RESOURCES (0x1008)");
	stand_in()->break_call("hsa_amd_queue_cu_set_mask", 3, HSAR_ERROR);
	says(&any, 0, "queues of HIP's streams");
}

/* Masks that are cut, or that the device does not go by. */
static void masks_not_taken(void **state)
{
	uint32_t i;

	(void)state;
	stand_in()->reset();
	setenv("HSA_CU_MASK", "0:0-31", 1);
	refuses_open(&masks, 0,
		     "CUs 32 to 63: set to 0x0fffffff, but HSA reports 0x00000000");
	unsetenv("HSA_CU_MASK");
	for (i = 0; i < KFD_GPUS; i++) {
		stand_in()->green_leaks(1);
		refuses_open(&masks, i, "in the trial, unit 0 of ");
	}
}

/* Of one that does not start nothing is kept; it is tried again. */
static void starts(void **state)
{
	const struct hal_bk_config any = {.clock = 1, .partitions = 1};
	void *dev;

	(void)state;
	stand_in()->reset();
	/* HIP has to be there first: the stand-in of HSA's needs it. */
	assert_int_equal(b->cold.open(&(struct hal_bk_config){.clock = 1}, 0, &dev), 0);
	b->cold.close(dev);
	stand_in()->break_call("hsa_init", 1, HSAR_OUT_OF_RESOURCES);
	says(&any, 0, "hsa_init: HSA_STATUS_ERROR_OUT_OF_RESOURCES (0x1008)");
	says(&any, 0, "queues of HSA's");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts), /* before it has been */
		cmocka_unit_test(which_queues),
		cmocka_unit_test(masks_not_taken),
		cmocka_unit_test(moves_live),
		cmocka_unit_test(moves_on_each),
		cmocka_unit_test(move_fails),
		cmocka_unit_test(not_put_back),
		cmocka_unit_test(refused_packet),
		cmocka_unit_test(hung),
		cmocka_unit_test(hung_for_good),
		cmocka_unit_test(lost),
		cmocka_unit_test(fault),
		cmocka_unit_test(waited_for),
		cmocka_unit_test(queue_fails),
		cmocka_unit_test(full_ring),
		cmocka_unit_test(commands),
		cmocka_unit_test(seen_at_once),
		cmocka_unit_test(priorities),
		cmocka_unit_test(hot_calls),
		cmocka_unit_test(narrow),
		cmocka_unit_test(bad_launches),
		cmocka_unit_test(killed),
		cmocka_unit_test(kill_fails),
		cmocka_unit_test(killed_and_moved),
		cmocka_unit_test(programs),
		cmocka_unit_test(follows),
	};

	b = hal_backend_rocm(&host);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
