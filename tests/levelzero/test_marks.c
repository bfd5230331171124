/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues whose lists keep their order (HAL_STAND_IN_ZE_VERSION=1.9): which commands
 * signal an event, when the end of the others is reported, with what times; what is said
 * when something fails; and that a kernel object is told only what has changed.
 */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/levelzero/internal.h"
#include "tests/gpu/ends.h"

enum { DEEP = 32, EACH = 8, BYTES = 8192, QUEUES = 3, MS = 1000000 };
enum { WORK, WILD, NEVER, IOTA, KERNELS };

static const struct hal_backend *b;
static const struct hal_bk_config deep = {.clock = 1, .inflight = DEEP};

struct rig {
	void *dev, *part, *prog, *queue[QUEUES], *mem, *kernel[KERNELS];
	uint32_t live;
};

/* address_bytes: as of a partition whose buffers can be evicted. */
static void open_with(struct rig *r, const struct hal_bk_config *cfg, uint32_t device,
		      uint64_t bytes, uint64_t address_bytes)
{
	static const char *const names[KERNELS] = {"work:m8", "wild:m", "never:m",
						   "iota:m4"};
	const struct hal_bk_partition_desc desc = {.units = 1,
						   .rows = 1,
						   .cols = 1,
						   .memory_bytes = bytes,
						   .address_bytes = address_bytes};
	struct hal_bk_kernel_info info;
	uint32_t i;
	size_t size;
	void *image = make_image(names, KERNELS, 4, &size);

	memset(r, 0, sizeof(*r));
	stand_in()->reset();
	r->live = stand_in()->live();
	if (b->cold.open(cfg, device, &r->dev))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.partition_create(r->dev, &desc, &r->part), 0);
	if (b->cold.program_load(r->dev, image, size, &r->prog))
		fail_msg("%s", host_text);
	free(image);
	for (i = 0; i < KERNELS; i++)
		assert_int_equal(
			b->cold.kernel_get(r->dev, r->prog, i, &info, &r->kernel[i]), 0);
	for (i = 0; i < QUEUES; i++)
		if (b->cold.queue_create(r->dev, r->part, 0, &r->queue[i]))
			fail_msg("%s", host_text);
	if (b->cold.mem_alloc(r->dev, r->part, BYTES, NULL, 0, &r->mem))
		fail_msg("%s", host_text);
}

static void open_rig(struct rig *r, const struct hal_bk_config *cfg)
{
	open_with(r, cfg, 0, 0, 0);
}

static void close_rig(struct rig *r)
{
	const char *text = "";
	uint32_t i;

	for (i = 0; i < QUEUES; i++)
		assert_int_equal(b->cold.queue_destroy(r->dev, r->queue[i]), 0);
	assert_int_equal(b->cold.mem_free(r->dev, r->mem), 0);
	assert_int_equal(b->cold.program_unload(r->dev, r->prog), 0);
	assert_int_equal(b->cold.partition_destroy(r->dev, r->part), 0);
	b->cold.close(r->dev);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
	assert_int_equal(stand_in()->live(), r->live);
}

static uint64_t calls_of(const char *call)
{
	return stand_in()->calls(call);
}

static uint64_t barriers(void)
{
	return calls_of("zeCommandListAppendBarrier");
}

/* HAL_STAND_IN_ZE_COUNTED=0: each event is reset before it is used again. */
static bool counted(void)
{
	const char *text = getenv("HAL_STAND_IN_ZE_COUNTED");

	return !text || strcmp(text, "0") != 0;
}

/* What a command with arguments refers to until it has been submitted. */
struct order {
	struct hal_bk_arg args[2];
	struct hal_bk_shape shape;
	struct hal_bk_cmd cmd;
};

static struct hal_bk_cmd *order(struct rig *r, struct order *o, uint32_t kernel,
				uint64_t cookie, uint64_t value)
{
	o->args[0] = (struct hal_bk_arg){r->mem, 0, 64};
	o->args[1] = (struct hal_bk_arg){NULL, value, 0};
	o->cmd = (struct hal_bk_cmd){.op = HAL_OP_LAUNCH, .cookie = cookie};
	o->cmd.launch.kernel = r->kernel[kernel];
	o->cmd.launch.args = o->args;
	o->cmd.launch.arg_count = kernel == WORK || kernel == IOTA ? 2 : 1;
	o->cmd.launch.groups[0] = o->cmd.launch.groups[1] = o->cmd.launch.groups[2] = 1;
	return &o->cmd;
}

static void submit(struct rig *r, uint32_t queue, const struct hal_bk_cmd *cmd)
{
	if (b->hot.submit(r->dev, r->queue[queue], cmd))
		fail_msg("%s", host_text);
}

static void launch(struct rig *r, uint32_t queue, uint32_t kernel, uint64_t cookie,
		   uint64_t value)
{
	struct order o;

	submit(r, queue, order(r, &o, kernel, cookie, value));
}

/* Submit count launches of work to queue 0, with cookies from first on. */
static void work(struct rig *r, uint32_t first, uint32_t count, uint64_t ns)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		launch(r, 0, WORK, first + i, ns);
}

/* Poll until there are events.  A poll returns none when nothing runs, though it has just
 * given the device something, and when what it waits for is a look at the tile. */
static uint32_t poll(struct rig *r, struct hal_bk_event *ev, uint32_t max)
{
	int n = 0, i;

	for (i = 0; i < 3 && !n; i++)
		n = b->hot.poll(r->dev, UINT64_MAX, ev, max);
	assert_true(n > 0);
	return (uint32_t)n;
}

/* Poll until count events of queue 0 are there, in order from cookie first on, and well.
 */
static void ends(struct rig *r, uint32_t first, uint32_t count, struct hal_bk_event *ev)
{
	uint32_t n = 0;

	while (n < count)
		n += poll(r, ev + n, count - n);
	assert_ends(ev, first, count);
}

/* Open it, and have work measured: launches that follow share marks. */
static void open_deep(struct rig *r, const struct hal_bk_config *cfg)
{
	struct hal_bk_event ev;

	open_rig(r, cfg);
	work(r, 0, 1, 1000);
	ends(r, 0, 1, &ev);
	/* The same arguments from here on, but for the time. */
	work(r, 0, 1, 1000);
	ends(r, 0, 1, &ev);
}

/* Of a queue that is kept supplied every eighth launch signals an event; nothing else is
 * called for them. */
static void marks_eighth(void **state)
{
	struct hal_bk_event ev[DEEP];
	uint64_t all;
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	all = calls_of(NULL);
	work(&r, 1, DEEP, 1000);
	assert_int_equal(calls_of(NULL) - all, DEEP);
	/* The first was alone when it came. */
	assert_int_equal(poll(&r, ev, DEEP), 1);
	assert_int_equal(poll(&r, ev, DEEP), EACH);
	assert_int_equal(ev[0].cookie, 2);
	assert_int_equal(poll(&r, ev, DEEP), EACH);
	assert_int_equal(poll(&r, ev, DEEP), EACH);
	assert_int_equal(barriers(), 0);
	ends(&r, 2 + 3 * EACH, EACH - 1, ev);
	assert_int_equal(barriers(), 1);
	close_rig(&r);
}

/* What is behind the last mark has one as soon as no other one is under way. */
static void tail_marked(void **state)
{
	struct hal_bk_event ev[DEEP];
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	work(&r, 1, 4, 1000);
	assert_int_equal(b->hot.poll(r.dev, b->hot.now(r.dev) + 1, ev, DEEP), 0);
	assert_int_equal(barriers(), 0);
	assert_int_equal(poll(&r, ev, DEEP), 1);
	assert_int_equal(poll(&r, ev + 1, DEEP), 3);
	assert_int_equal(barriers(), 1);
	assert_int_equal(ev[3].cookie, 4);
	close_rig(&r);
}

/* A launch alone is one call, and what asks for its end: twice here, as time stands still
 * until the first answer. */
static void alone(void **state)
{
	struct hal_bk_event ev;
	uint64_t all, resets;
	struct rig r;
	uint32_t i;

	(void)state;
	open_deep(&r, &deep);
	for (i = 2; i < 64; i++) {
		all = calls_of(NULL);
		resets = calls_of("zeEventHostReset");
		work(&r, i, 1, 1000);
		ends(&r, i, 1, &ev);
		resets = calls_of("zeEventHostReset") - resets;
		assert_int_equal(calls_of(NULL) - all - resets, 3);
		/* One event for each slot, of which there are two more. */
		assert_int_equal(resets, !counted() && i > DEEP + 2);
		assert_in_range(ev.end_ns - ev.start_ns, 900, 1100);
	}
	assert_int_equal(barriers(), 0);
	close_rig(&r);
}

/* The real clock: short launches and long ones, alone and behind one another. */
static void real_time(void **state)
{
	const struct hal_bk_config cfg = {.inflight = DEEP};
	uint32_t i, k, count = 0;
	struct hal_bk_event ev;
	struct rig r;
	int n;

	(void)state;
	open_rig(&r, &cfg);
	for (i = 0; i < 40; i++) {
		for (k = 0; k <= i % 3; k++)
			launch(&r, 0, WORK, count + k, i % 4 == 3 ? 300000 : 100);
		while (k) {
			n = b->hot.poll(r.dev, 0, &ev, 1);
			assert_true(n >= 0);
			if (!n)
				continue;
			assert_int_equal(ev.cookie, count++);
			assert_int_equal(ev.status, 0);
			k--;
		}
	}
	assert_true(b->hot.next(r.dev) == UINT64_MAX);
	close_rig(&r);
}

/* Launches before a command of another kind are not reported with it. */
static void other_kinds_apart(void **state)
{
	struct hal_bk_cmd fill = {.op = HAL_OP_FILL}, copy = {.op = HAL_OP_COPY};
	struct hal_bk_event ev[DEEP];
	struct rig r;
	uint32_t i;

	(void)state;
	open_deep(&r, &deep);
	fill.fill.dst = copy.copy.dst = copy.copy.src = r.mem;
	fill.fill.bytes = copy.copy.bytes = 64;
	copy.copy.src_offset = 128;
	for (i = 0; i < 2; i++) {
		work(&r, 1, 2, 1000);
		fill.cookie = copy.cookie = 3;
		submit(&r, 0, i ? &fill : &copy);
		assert_int_equal(barriers(), 2 * i + 1);
		work(&r, 4, 2, 1000);
		assert_int_equal(poll(&r, ev, DEEP), 1);
		assert_int_equal(poll(&r, ev + 1, DEEP), 1);
		assert_int_equal(poll(&r, ev + 2, DEEP), 1);
		assert_int_equal(ev[2].cookie, 3);
		assert_int_equal(poll(&r, ev + 3, DEEP), 2);
		assert_int_equal(barriers(), 2 * i + 2);
		/* Its time is the device's. */
		assert_int_equal(ev[2].end_ns - ev[2].start_ns, 200 + 64 / 16);
	}
	close_rig(&r);
}

/* A TIMESTAMP is the time at which what came before it ended. */
static void timestamps(void **state)
{
	struct hal_bk_cmd stamp = {.op = HAL_OP_TIMESTAMP, .cookie = 4};
	struct hal_bk_event ev[8];
	struct rig r;
	uint64_t got;

	(void)state;
	open_deep(&r, &deep);
	stamp.timestamp.dst = r.mem;
	stamp.timestamp.offset = 64;
	work(&r, 1, 3, 5000);
	submit(&r, 0, &stamp);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &stamp), -EAGAIN);
	ends(&r, 1, 4, ev);
	assert_int_equal(b->cold.mem_read(r.dev, r.mem, 64, &got, sizeof(got)), 0);
	assert_in_range(got, ev[2].end_ns, ev[2].end_ns + 20);
	work(&r, 5, 3, 1000);
	ends(&r, 5, 3, ev);
	close_rig(&r);
}

/* A suspend marks at once what has no mark. */
static void suspend_marks(void **state)
{
	struct hal_bk_event ev[DEEP];
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	work(&r, 1, 3, 1000);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_DRAIN, 7), 0);
	assert_int_equal(barriers(), 1);
	ends(&r, 1, 3, ev);
	assert_int_equal(poll(&r, ev, 1), 1);
	assert_int_equal(ev[0].kind, HAL_BK_QUIET);
	assert_int_equal(ev[0].cookie, 7);
	assert_int_equal(barriers(), 1);
	assert_int_equal(b->hot.resume(r.dev, r.queue[0]), 0);
	work(&r, 4, 2, 1000);
	ends(&r, 4, 2, ev);
	close_rig(&r);
}

/* Of the launches of a kernel one in 64 is measured, the first among them. */
static void one_in_64_measured(void **state)
{
	struct hal_bk_event ev[DEEP];
	struct rig r;
	uint32_t i;

	(void)state;
	open_rig(&r, &deep);
	for (i = 0; i < 10; i++) {
		work(&r, 0, DEEP, 3000);
		ends(&r, 0, DEEP, ev);
	}
	assert_int_equal(calls_of("zeEventQueryKernelTimestamp"), 5);
	close_rig(&r);
}

/* The time of a mark is that of its launches together; a launch alone has its own. */
static void times_of_marks(void **state)
{
	struct hal_bk_event ev[DEEP];
	uint64_t sum = 0, worst;
	struct rig r;
	uint32_t i;

	(void)state;
	open_deep(&r, &deep);
	work(&r, 1, DEEP, 10000);
	ends(&r, 1, DEEP, ev);
	for (i = 0; i < DEEP; i++) {
		sum += ev[i].end_ns - ev[i].start_ns;
		assert_in_range(ev[i].end_ns - ev[i].start_ns, 9900, 10100);
	}
	assert_in_range(sum, DEEP * 10000 - 100, DEEP * 10000 + 100);
	for (i = 0; i < 3; i++) {
		work(&r, i, 1, 20000);
		ends(&r, i, 1, ev);
		assert_in_range(ev[0].end_ns - ev[0].start_ns, 19900, 20100);
	}
	/* The longest that was seen is one of them, whether measured or not. */
	worst = ((struct lz_device *)r.dev)->longest_ns;
	assert_in_range(worst, 19900, 20100);
	close_rig(&r);
}

/* Queues of one engine take turns.  What a launch waits for another queue's is not its
 * time: one that is alone in its queue is measured then, and others count for what their
 * kernel took. */
static void queues_take_turns(void **state)
{
	enum { EACH_QUEUE = 200, NS = 10000, ONE_ENGINE = 3 };
	uint64_t sum[2] = {0}, before;
	uint32_t given[2] = {0}, ended[2] = {0}, i, k, n;
	struct hal_bk_event ev[DEEP];
	struct rig r;

	(void)state;
	open_with(&r, &deep, ONE_ENGINE, 0, 0);
	work(&r, 0, 1, NS);
	ends(&r, 0, 1, ev);
	before = calls_of("zeEventQueryKernelTimestamp");
	/* The driver serves that queue first which has waited longer. */
	launch(&r, 1, WORK, 0, NS);
	launch(&r, 0, WORK, 1, NS);
	ends(&r, 0, 2, ev);
	assert_in_range(ev[1].end_ns - ev[1].start_ns, NS, NS + 10);
	assert_int_equal(calls_of("zeEventQueryKernelTimestamp") - before, 1);
	/* The wait was no delay of the host's. */
	launch(&r, 0, WORK, 2, NS);
	ends(&r, 2, 1, ev);
	assert_in_range(ev[0].end_ns - ev[0].start_ns, NS - 100, NS + 100);
	while (ended[0] + ended[1] < 2 * EACH_QUEUE) {
		for (i = 0; i < 2; i++)
			for (; given[i] < EACH_QUEUE && given[i] - ended[i] < DEEP;
			     given[i]++)
				launch(&r, i, WORK, i << 16 | given[i], NS);
		n = poll(&r, ev, DEEP);
		for (k = 0; k < n; k++) {
			i = (uint32_t)ev[k].cookie >> 16;
			assert_int_equal(ev[k].cookie & 0xffff, ended[i]++);
			sum[i] += ev[k].end_ns - ev[k].start_ns;
		}
	}
	for (i = 0; i < 2; i++)
		assert_in_range(sum[i], EACH_QUEUE * NS * 95 / 100,
				EACH_QUEUE * NS * 105 / 100);
	close_rig(&r);
}

/* Behind a long command each is measured, as poll sees the end of long ones late. */
static void long_ones_measured(void **state)
{
	const char *call = "zeEventQueryKernelTimestamp";
	struct hal_bk_event ev[4];
	struct rig r;
	uint64_t before;

	(void)state;
	open_deep(&r, &deep);
	work(&r, 1, 1, MS);
	ends(&r, 1, 1, ev);
	before = calls_of(call);
	work(&r, 2, 4, MS);
	assert_int_equal(poll(&r, ev, 4), 1);
	assert_int_equal(poll(&r, ev, 4), 1);
	assert_int_equal(ev[0].end_ns - ev[0].start_ns, MS);
	ends(&r, 4, 2, ev);
	assert_int_equal(calls_of(call) - before, 4);
	close_rig(&r);
}

/* With mark_every=1 each launch is reported by itself, as it ends. */
static void marks_each(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .inflight = DEEP, .mark_every = 1};
	struct hal_bk_event ev[DEEP];
	struct rig r;
	uint32_t i;

	(void)state;
	open_deep(&r, &cfg);
	work(&r, 0, 5, 10000);
	for (i = 0; i < 5; i++) {
		assert_int_equal(poll(&r, ev, DEEP), 1);
		assert_int_equal(ev[0].cookie, i);
	}
	assert_int_equal(barriers(), 0);
	close_rig(&r);
}

/* Numbers wrap: marks and tails go on over 2^32. */
static void numbers_wrap(void **state)
{
	struct hal_bk_event ev[DEEP];
	struct lz_queue *q;
	struct rig r;
	uint32_t i;

	(void)state;
	open_deep(&r, &deep);
	q = r.queue[0];
	q->base.given = q->base.marked = q->reached = UINT32_MAX - 20;
	for (i = 0; i < 8; i++) {
		work(&r, 0, 5, 1000);
		ends(&r, 0, 5, ev);
		work(&r, 0, DEEP, 1000);
		ends(&r, 0, DEEP, ev);
	}
	close_rig(&r);
}

/* ---- what fails --------------------------------------------------------------------- */

static void cancelled(struct rig *r, uint32_t count)
{
	struct hal_bk_event ev;

	while (count--) {
		assert_int_equal(poll(r, &ev, 1), 1);
		assert_int_equal(ev.status, -ECANCELED);
	}
}

/* With a time-out each launch is marked: it counts from when it could begin. */
static void time_out_of_each(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .inflight = DEEP, .timeout_ms = 5};
	struct hal_bk_event ev[8];
	struct rig r;

	(void)state;
	open_deep(&r, &cfg);
	work(&r, 1, 6, 4 * MS);
	ends(&r, 1, 6, ev);
	work(&r, 1, 2, 4 * MS);
	launch(&r, 0, NEVER, 3, 0);
	work(&r, 4, 2, 1000);
	ends(&r, 1, 2, ev);
	assert_int_equal(poll(&r, ev, 1), 1);
	assert_int_equal(ev[0].cookie, 3);
	assert_int_equal(ev[0].status, -EIO);
	assert_string_equal(ev[0].fault,
			    "time-out after 5 ms, queue dropped, kernel never");
	cancelled(&r, 2);
	close_rig(&r);
}

/* The first launch of a kernel is marked by itself: if it faults, the fault names it, and
 * launches before it have ended well. */
static void fault_of_a_new_kernel(void **state)
{
	struct hal_bk_event ev[8];
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	work(&r, 0, 3, 1000);
	launch(&r, 0, WILD, 3, 0);
	work(&r, 4, 2, 1000);
	ends(&r, 0, 3, ev);
	assert_int_equal(poll(&r, ev, 1), 1);
	assert_int_equal(ev[0].cookie, 3);
	assert_int_equal(ev[0].status, -EIO);
	assert_non_null(strstr(ev[0].fault, "zeDeviceGetStatus: ERROR_DEVICE_LOST"));
	assert_non_null(strstr(ev[0].fault, "kernel wild"));
	assert_null(strstr(ev[0].fault, "or later"));
	cancelled(&r, 2);
	close_rig(&r);
}

/* Of launches that share a mark none is said to have ended well, and the fault says that
 * it may be a later one's. */
static void fault_among_launches(void **state)
{
	struct hal_bk_event ev[8];
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	work(&r, 0, 4, MS / 20);
	ends(&r, 0, 1, ev);
	assert_int_equal(b->hot.poll(r.dev, b->hot.now(r.dev) + MS / 15, ev, 8), 0);
	stand_in()->lose(0);
	assert_int_equal(poll(&r, ev, 1), 1);
	assert_int_equal(ev[0].cookie, 1);
	assert_int_equal(ev[0].status, -EIO);
	if (!strstr(ev[0].fault, "kernel work or later"))
		fail_msg("fault is '%s'", ev[0].fault);
	cancelled(&r, 2);
	close_rig(&r);
}

/* The mark of a tail is refused while its launches run: the queue fails with the call's
 * name.  What the launches use stays until they have ended. */
static void refused_mark(void **state)
{
	static const char *const calls[] = {"zeCommandListAppendBarrier",
					    "zeEventHostReset"};
	const uint64_t nth = counted() ? 1 : 2;
	struct hal_bk_event ev[8];
	struct rig r;
	uint32_t i, k;

	(void)state;
	for (i = 0; i < nth; i++) {
		open_deep(&r, &deep);
		/* The event of each slot is to be reset. */
		for (k = 0; k < DEEP + 4; k++) {
			work(&r, 0, 1, 1000);
			ends(&r, 0, 1, ev);
		}
		work(&r, 0, 4, 20000);
		ends(&r, 0, 1, ev);
		stand_in()->break_call(calls[i], 1, LZ_ERROR_OUT_OF_DEVICE_MEMORY);
		assert_int_equal(poll(&r, ev, 8), 3);
		assert_int_equal(stand_in()->armed(), 0);
		assert_int_equal(ev[0].status, -EIO);
		if (!strstr(ev[0].fault, calls[i]))
			fail_msg("fault is '%s', not of %s", ev[0].fault, calls[i]);
		assert_int_equal(ev[2].status, -ECANCELED);
		close_rig(&r);
	}
}

/* A launch is refused: those before it, which share its mark, end all the same, and later
 * ones are taken. */
static void refused_launch(void **state)
{
	struct hal_bk_event ev[8];
	struct order o;
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	work(&r, 0, 3, 1000);
	o.cmd = *order(&r, &o, WORK, 9, 1000);
	o.args[1].mem = r.mem;
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &o.cmd), -EINVAL);
	stand_in()->break_call("zeCommandListAppendLaunchKernel", 1,
			       LZ_ERROR_OUT_OF_DEVICE_MEMORY);
	(void)order(&r, &o, WORK, 9, 1000);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &o.cmd), -ENOSPC);
	work(&r, 3, 1, 1000);
	ends(&r, 0, 4, ev);
	/* An argument that was refused is set again. */
	stand_in()->break_call("zeKernelSetArgumentValue", 1,
			       LZ_ERROR_OUT_OF_HOST_MEMORY);
	(void)order(&r, &o, WORK, 9, 7000);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &o.cmd), -ENOMEM);
	work(&r, 4, 1, 1000);
	ends(&r, 4, 1, ev);
	assert_in_range(ev[0].end_ns - ev[0].start_ns, 900, 1100);
	work(&r, 5, 1, 7000);
	ends(&r, 5, 1, ev);
	assert_in_range(ev[0].end_ns - ev[0].start_ns, 6900, 7100);
	close_rig(&r);
}

/* More queues than one, deep, which share a kernel object: each end is reported once, in
 * order, and each launch had its own arguments. */
static void many_queues(void **state)
{
	uint32_t given[QUEUES] = {0}, ended[QUEUES] = {0}, i, got;
	struct hal_bk_event ev[16];
	struct rig r;
	int n, k;

	(void)state;
	open_deep(&r, &deep);
	do {
		for (i = 0; i < QUEUES; i++)
			for (k = 0; k < 5 + (int)i && given[i] < 200 &&
				    given[i] - ended[i] < DEEP;
			     k++, given[i]++)
				launch(&r, i, WORK, i << 16 | given[i], 1000 + 700 * i);
		n = (int)poll(&r, ev, 16);
		for (k = 0; k < n; k++) {
			assert_int_equal(ev[k].status, 0);
			i = (uint32_t)ev[k].cookie >> 16;
			assert_int_equal(ev[k].cookie & 0xffff, ended[i]++);
		}
	} while (ended[0] + ended[1] + ended[2] < 600);
	assert_int_equal(b->cold.mem_read(r.dev, r.mem, 0, &got, sizeof(got)), 0);
	close_rig(&r);
}

/* ---- what a kernel object is told ---------------------------------------------------- */

static uint64_t settings(void)
{
	return calls_of("zeKernelSetArgumentValue");
}

/* Only arguments that have changed are set; another buffer is one also at the address of
 * the one before. */
static void arguments_that_change(void **state)
{
	struct hal_bk_event ev[8];
	struct rig r;
	uint64_t sets;
	uint32_t i;

	(void)state;
	open_deep(&r, &deep);
	sets = settings();
	work(&r, 0, 4, 1000);
	launch(&r, 1, WORK, 0, 1000);
	assert_int_equal(settings() - sets, 0);
	work(&r, 4, 1, 2000);
	assert_int_equal(settings() - sets, 1);
	launch(&r, 0, IOTA, 5, 7);
	assert_int_equal(settings() - sets, 3);
	work(&r, 6, 1, 2000);
	assert_int_equal(settings() - sets, 3);
	for (i = 0; i < 8;)
		i += poll(&r, ev, 8);
	for (i = 0; i < 4; i++) {
		sets = settings();
		assert_int_equal(b->cold.mem_free(r.dev, r.mem), 0);
		assert_int_equal(b->cold.mem_alloc(r.dev, r.part, BYTES, NULL, 0, &r.mem),
				 0);
		work(&r, 0, 1, 2000);
		ends(&r, 0, 1, ev);
		assert_int_equal(settings() - sets, 1);
	}
	close_rig(&r);
}

/* Memory that went to the host and came back is other memory at the same address. */
static void arguments_that_came_back(void **state)
{
	struct hal_bk_event ev;
	struct rig r;
	uint32_t i;

	(void)state;
	open_with(&r, &deep, 0, 128 << 10, 256 << 10);
	for (i = 0; i < 3; i++) {
		work(&r, i, 1, 1000);
		ends(&r, i, 1, &ev);
		assert_int_equal(b->extra.mem_out(r.dev, r.mem), 0);
		assert_int_equal(b->extra.mem_in(r.dev, r.mem, NULL), 0);
	}
	work(&r, i, 1, 1000);
	ends(&r, i, 1, &ev);
	close_rig(&r);
}

/* Submit an iota of groups of size, and check how many words it writes. */
static void shaped(struct rig *r, uint32_t size, uint32_t words)
{
	uint32_t got[64] = {0}, i;
	struct hal_bk_event ev;
	struct order o;

	assert_int_equal(b->cold.mem_write(r->dev, r->mem, 0, got, sizeof(got)), 0);
	(void)order(r, &o, IOTA, 0, 100);
	o.shape = (struct hal_bk_shape){{size, 1, 1}, 0};
	o.cmd.flags = size ? HAL_BK_CMD_SHAPED : 0;
	submit(r, 0, &o.cmd);
	ends(r, 0, 1, &ev);
	assert_int_equal(b->cold.mem_read(r->dev, r->mem, 0, got, sizeof(got)), 0);
	for (i = 0; i < 64; i++)
		assert_int_equal(got[i], i < words ? 100 + i : 0);
}

/* The size of groups is set when it is another one; the kernel's own comes back. */
static void group_sizes_that_change(void **state)
{
	const char *call = "zeKernelSetGroupSize";
	struct rig r;
	uint64_t sets;

	(void)state;
	open_deep(&r, &deep);
	sets = calls_of(call);
	shaped(&r, 0, 4);
	assert_int_equal(calls_of(call) - sets, 0);
	shaped(&r, 16, 16);
	shaped(&r, 16, 16);
	assert_int_equal(calls_of(call) - sets, 1);
	shaped(&r, 0, 4);
	shaped(&r, 0, 4);
	assert_int_equal(calls_of(call) - sets, 2);
	stand_in()->break_call(call, 1, LZ_ERROR_UNKNOWN);
	{
		struct order o;

		(void)order(&r, &o, IOTA, 0, 100);
		o.shape = (struct hal_bk_shape){{32, 1, 1}, 0};
		o.cmd.flags = HAL_BK_CMD_SHAPED;
		assert_int_equal(b->hot.submit(r.dev, r.queue[0], &o.cmd), -EIO);
	}
	shaped(&r, 0, 4);
	shaped(&r, 32, 32);
	close_rig(&r);
}

/* ---- copies on the engine that only copies ------------------------------------------- */

/* Launches and copies in any order, many more than there are events: a counter goes up by
 * one for each launch, and each copy sees how far it was. */
static void copies_between_launches(void **state)
{
	enum { STEPS = 600 };
	uint32_t seed = 7, count = 0, done = 0, given = 0, launches = 0, i;
	uint32_t want[DEEP + 2];
	struct hal_bk_cmd copy = {.op = HAL_OP_COPY};
	struct hal_bk_event ev[DEEP];
	void *host_mem, *address;
	volatile uint32_t *seen;
	uint32_t zero = 0;
	struct rig r;

	(void)state;
	open_deep(&r, &deep);
	if (b->cold.mem_alloc(r.dev, r.part, BYTES, NULL, HAL_BK_MEM_HOST, &host_mem))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.mem_map(r.dev, host_mem, &address), 0);
	seen = address;
	assert_int_equal(b->cold.mem_write(r.dev, r.mem, 0, &zero, 4), 0);
	copy.copy.dst = host_mem;
	copy.copy.src = r.mem;
	copy.copy.bytes = 4;
	while (done < STEPS) {
		seed = seed * 1664525 + 1013904223;
		count = given < STEPS ? (seed >> 24) % 6 : 0;
		for (i = 0; i < count && given - done < DEEP && given < STEPS; i++) {
			seed = seed * 1664525 + 1013904223;
			if ((seed >> 24) % 3) {
				launch(&r, 0, WORK, given, 500);
				launches++;
				want[given % (DEEP + 2)] = 0;
			} else {
				copy.cookie = given;
				copy.copy.dst_offset = 4 * (given % (DEEP + 2));
				submit(&r, 0, &copy);
				want[given % (DEEP + 2)] = launches;
			}
			given++;
		}
		if (given == done)
			continue;
		count = poll(&r, ev, (seed >> 20) % DEEP + 1);
		for (i = 0; i < count; i++, done++) {
			const uint32_t at = done % (DEEP + 2);

			assert_int_equal(ev[i].cookie, done);
			assert_int_equal(ev[i].status, 0);
			if (want[at])
				assert_int_equal(seen[at], want[at]);
		}
	}
	assert_true(launches > STEPS / 2 && launches < STEPS - 100);
	assert_int_equal(b->cold.mem_free(r.dev, host_mem), 0);
	close_rig(&r);
}

static int setup(void **state)
{
	(void)state;
	b = hal_backend_levelzero(&host);
	return b && stand_in() ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_eighth),
		cmocka_unit_test(tail_marked),
		cmocka_unit_test(alone),
		cmocka_unit_test(real_time),
		cmocka_unit_test(other_kinds_apart),
		cmocka_unit_test(timestamps),
		cmocka_unit_test(suspend_marks),
		cmocka_unit_test(one_in_64_measured),
		cmocka_unit_test(times_of_marks),
		cmocka_unit_test(queues_take_turns),
		cmocka_unit_test(long_ones_measured),
		cmocka_unit_test(marks_each),
		cmocka_unit_test(numbers_wrap),
		cmocka_unit_test(time_out_of_each),
		cmocka_unit_test(fault_of_a_new_kernel),
		cmocka_unit_test(fault_among_launches),
		cmocka_unit_test(refused_mark),
		cmocka_unit_test(refused_launch),
		cmocka_unit_test(many_queues),
		cmocka_unit_test(arguments_that_change),
		cmocka_unit_test(arguments_that_came_back),
		cmocka_unit_test(group_sizes_that_change),
		cmocka_unit_test(copies_between_launches),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
