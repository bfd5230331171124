/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded commands as graphs of the driver (graphs=yes): one call where each by itself
 * takes three, and nothing else that differs; and the stand-in's rules for graphs. */
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

enum { KERNELS = 5, WORK = 0, IOTA, WILD, NEVER, TWICE };
static const char *const names[KERNELS] = {"work:m8", "iota:m4", "wild:m", "never:m",
					   "twice:mm"};
static const struct hal_backend *b;

#define MAKE_IMAGE make_cuda_image
#include "tests/gpu/queues.h"

#define MOST 16u

/* A recorded sequence, as the core would give it. */
struct sequence {
	uint32_t count;
	struct hal_bk_cmd cmd[MOST];
	struct hal_bk_arg args[MOST][3]; /* the third: its shape */
};

static struct hal_bk_cmd *add(struct sequence *s, uint32_t op)
{
	struct hal_bk_cmd *cmd = &s->cmd[s->count];

	assert_true(s->count < MOST);
	if (s->count)
		s->cmd[s->count - 1].flags &= ~HAL_BK_CMD_LAST;
	*cmd = (struct hal_bk_cmd){.op = op,
				   .flags = HAL_BK_CMD_RECORDED | HAL_BK_CMD_LAST,
				   .cookie = ++s->count};
	return cmd;
}

static void add_launch(struct sequence *s, struct rig *r, uint32_t kernel,
		       struct hal_bk_arg first, struct hal_bk_arg second, uint32_t count)
{
	struct hal_bk_arg *args = s->args[s->count];
	struct hal_bk_cmd *cmd = add(s, HAL_OP_LAUNCH);

	args[0] = first;
	args[1] = second;
	cmd->launch.kernel = r->kernel[kernel];
	cmd->launch.args = args;
	cmd->launch.arg_count = count;
	cmd->launch.groups[0] = cmd->launch.groups[1] = cmd->launch.groups[2] = 1;
}

/* Adds 1 to the first word after so long. */
static void add_work(struct sequence *s, struct rig *r, uint64_t ns)
{
	add_launch(s, r, WORK, (struct hal_bk_arg){r->mem, 0, 64},
		   (struct hal_bk_arg){NULL, ns, 0}, 2);
}

static void add_on_mem(struct sequence *s, struct rig *r, uint32_t kernel)
{
	add_launch(s, r, kernel, (struct hal_bk_arg){r->mem, 0, 64},
		   (struct hal_bk_arg){NULL, 0, 0}, 1);
}

static void add_fill(struct sequence *s, struct rig *r, uint64_t at, uint32_t pattern)
{
	struct hal_bk_cmd *cmd = add(s, HAL_OP_FILL);

	cmd->fill.dst = r->mem;
	cmd->fill.offset = at;
	cmd->fill.bytes = 64;
	cmd->fill.pattern = pattern;
}

static void add_copy(struct sequence *s, struct rig *r, uint64_t to, uint64_t from)
{
	struct hal_bk_cmd *cmd = add(s, HAL_OP_COPY);

	cmd->copy.dst = cmd->copy.src = r->mem;
	cmd->copy.dst_offset = to;
	cmd->copy.src_offset = from;
	cmd->copy.bytes = 64;
}

static void works(struct sequence *s, struct rig *r, uint32_t n, uint64_t ns)
{
	uint32_t i;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < n; i++)
		add_work(s, r, ns);
}

static void submit(struct rig *r, uint32_t queue, const struct sequence *s)
{
	uint32_t i;

	for (i = 0; i < s->count; i++)
		if (b->hot.submit(r->dev, r->queue[queue], &s->cmd[i]))
			fail_msg("%s", host_text);
}

/* In order, one behind the other.  All launches of work together took as long as they
 * said; when each ended is not known. */
static void ends_well(struct rig *r, const struct sequence *s)
{
	struct hal_bk_event ev[MOST];
	uint64_t last = 0, want = 0;
	uint32_t seen = 0, i;
	int n;

	while (seen < s->count) {
		n = b->hot.poll(r->dev, UINT64_MAX, ev + seen, MOST - seen);
		assert_true(n > 0);
		seen += (uint32_t)n;
	}
	for (i = 0; i < seen; i++) {
		assert_int_equal(ev[i].kind, HAL_BK_DONE);
		assert_int_equal(ev[i].status, 0);
		assert_int_equal(ev[i].cookie, s->cmd[i].cookie);
		assert_true(ev[i].start_ns >= last && ev[i].end_ns >= ev[i].start_ns);
		last = ev[i].end_ns;
		if (s->cmd[i].op == HAL_OP_LAUNCH &&
		    s->cmd[i].launch.kernel == r->kernel[WORK])
			want += s->args[i][1].value;
	}
	assert_in_range(last - ev[0].start_ns, want, want + seen * UINT64_C(10000));
}

static void run(struct rig *r, const struct sequence *s)
{
	submit(r, 0, s);
	ends_well(r, s);
}

static uint32_t word(struct rig *r, uint64_t at)
{
	uint32_t v = 0;

	assert_int_equal(b->cold.mem_read(r->dev, r->mem, at, &v, 4), 0);
	return v;
}

static void zero(struct rig *r)
{
	static const uint8_t none[8192];

	assert_int_equal(b->cold.mem_write(r->dev, r->mem, 0, none, sizeof(none)), 0);
}

static uint64_t calls(const char *call)
{
	return stand_in()->calls(call);
}

static const struct hal_bk_config with = {.clock = 1, .inflight = 16, .graphs = 1};

/* ---- given together ---------------------------------------------------------------- */

/* Eight that were recorded, when they come again: one call of the driver. */
static void one_call(void **state)
{
	struct sequence s;
	uint64_t before;
	struct rig r;

	(void)state;
	open_rig(&r, &with);
	zero(&r);
	works(&s, &r, 8, 3000);
	run(&r, &s);
	assert_int_equal(calls("cuGraphLaunch"), 1);
	before = calls(NULL);
	stand_in()->hot(1);
	submit(&r, 0, &s);
	stand_in()->hot(0);
	assert_int_equal(calls(NULL) - before, 1);
	assert_int_equal(calls("cuGraphLaunch"), 2);
	assert_int_equal(calls("cuGraphInstantiateWithFlags"), 1);
	assert_int_equal(calls("cuLaunchKernel"), 0);
	ends_well(&r, &s);
	assert_int_equal(word(&r, 0), 16);
	close_rig(&r);
}

/* Each command needs what the one before it has done. */
static void in_order(void **state)
{
	struct sequence s = {0};
	struct rig r;
	uint32_t i, k;

	(void)state;
	open_rig(&r, &with);
	zero(&r);
	add_fill(&s, &r, 0, 0x01010101);
	for (i = 1; i < 5; i++) {
		add_copy(&s, &r, 64 * i + 1024, 64 * (i - 1) + (i == 1 ? 0 : 2048));
		add_launch(&s, &r, TWICE, (struct hal_bk_arg){r.mem, 64 * i + 2048, 64},
			   (struct hal_bk_arg){r.mem, 64 * i + 1024, 64}, 2);
	}
	for (i = 0; i < 5; i++) {
		run(&r, &s);
		for (k = 1; k < 5; k++)
			assert_int_equal(word(&r, 64 * k + 2048), 0x01010101u << k);
		zero(&r);
	}
	assert_int_equal(calls("cuGraphLaunch"), 5);
	assert_int_equal(calls("cuMemsetD32Async") + calls("cuLaunchKernel"), 0);
	close_rig(&r);
}

/* Launches of other shapes are nodes of their own, in a graph of their own. */
static void shaped(void **state)
{
	static const uint32_t items[2] = {32, 256};
	struct hal_bk_shape *shape;
	struct sequence s;
	struct rig r;
	uint32_t i, k;

	(void)state;
	open_rig(&r, &with);
	for (i = 0; i < 4; i++) {
		memset(&s, 0, sizeof(s));
		zero(&r);
		for (k = 0; k < 2; k++) {
			add_launch(&s, &r, IOTA,
				   (struct hal_bk_arg){r.mem, 4096 * k, 4096},
				   (struct hal_bk_arg){NULL, 100, 0}, 2);
			shape = (struct hal_bk_shape *)&s.args[k][2];
			*shape = (struct hal_bk_shape){{items[i % 2], 1, 1}, 65536};
			s.cmd[k].flags |= HAL_BK_CMD_SHAPED;
		}
		run(&r, &s);
		for (k = 0; k < 2; k++) {
			const uint64_t at = UINT64_C(4096) * k;

			assert_int_equal(word(&r, at + 4 * (items[i % 2] - 1)),
					 99 + items[i % 2]);
			assert_int_equal(word(&r, at + 4 * items[i % 2]), 0);
		}
	}
	assert_int_equal(calls("cuGraphLaunch"), 4);
	assert_int_equal(calls("cuGraphInstantiateWithFlags"), 2);
	assert_int_equal(calls("cuLaunchKernel"), 0);
	/* The driver is asked once for as much shared memory. */
	assert_int_equal(calls("cuFuncSetAttribute"), 1);
	close_rig(&r);
}

/* Only what has changed is changed in the graph: a launch's arguments, a copy's and a
 * fill's places and lengths. */
static void changed(void **state)
{
	struct sequence s;
	struct rig r;

	(void)state;
	open_rig(&r, &with);
	zero(&r);
	works(&s, &r, 3, 1000);
	add_fill(&s, &r, 512, 5);
	add_copy(&s, &r, 1024, 512);
	run(&r, &s);
	s.args[1][1].value = 9000;
	run(&r, &s);
	assert_int_equal(calls("cuGraphExecKernelNodeSetParams_v2"), 1);
	s.args[0][0].value = 256; /* into the buffer */
	s.cmd[3].fill.pattern = 6;
	s.cmd[4].copy.dst_offset = 2048;
	run(&r, &s);
	run(&r, &s);
	assert_int_equal(calls("cuGraphExecKernelNodeSetParams_v2"), 2);
	assert_int_equal(calls("cuGraphExecMemsetNodeSetParams"), 1);
	assert_int_equal(calls("cuGraphExecMemcpyNodeSetParams"), 1);
	assert_int_equal(calls("cuGraphInstantiateWithFlags"), 1);
	assert_int_equal(word(&r, 0), 3 + 3 + 2 + 2);
	assert_int_equal(word(&r, 256), 2);
	assert_int_equal(word(&r, 1024), 5);
	assert_int_equal(word(&r, 2048), 6);
	close_rig(&r);
}

/* No graph has more than the device takes of a queue: as many at a time, and it stays so.
 */
static void in_pieces(void **state)
{
	const struct hal_bk_config cfg = {.clock = 1, .inflight = 4, .graphs = 1};
	struct hal_bk_event ev[4];
	struct sequence s;
	uint32_t i, given = 0, ended = 0;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	zero(&r);
	works(&s, &r, 8, 1000);
	while (ended < 40) {
		while (given < 40 &&
		       b->hot.submit(r.dev, r.queue[0], &s.cmd[given % 8]) == 0)
			given++;
		assert_true(given - ended <= 4);
		ended += (uint32_t)b->hot.poll(r.dev, UINT64_MAX, ev, 4);
	}
	assert_int_equal(calls("cuGraphLaunch"), 10);
	assert_int_equal(calls("cuGraphInstantiateWithFlags"), 1); /* they are alike */
	assert_int_equal(word(&r, 0), 40);
	for (i = 0; i < 3; i++)
		assert_int_equal(b->hot.submit(r.dev, r.queue[0], &s.cmd[i]), 0);
	assert_int_equal(b->hot.suspend(r.dev, r.queue[0], HAL_SUSPEND_DRAIN, 7), 0);
	for (i = 0; i < 3; i++) {
		poll_one(&r, ev);
		assert_int_equal(ev[0].kind, HAL_BK_DONE);
	}
	poll_one(&r, ev);
	assert_int_equal(ev[0].kind, HAL_BK_QUIET);
	close_rig(&r);
}

/* Behind and in front of commands that were not recorded; each is told its own time,
 * also when the graph it is behind runs again before that is asked for. */
static void among_others(void **state)
{
	struct hal_bk_event ev[16];
	struct sequence s;
	struct rig r;
	uint32_t i;
	int n;

	(void)state;
	open_rig(&r, &with);
	zero(&r);
	works(&s, &r, 3, 1000);
	for (i = 0; i < 3; i++) {
		submit_work(&r, 0, 7, 20000);
		submit(&r, 0, &s);
		submit_work(&r, 0, 8, 50000);
		submit(&r, 0, &s);
		n = b->hot.poll(r.dev, b->hot.now(r.dev) + 10000000, ev, 16);
		while (n < 8)
			n += b->hot.poll(r.dev, UINT64_MAX, ev + n, 16 - (uint32_t)n);
		assert_int_equal(ev[0].cookie, 7);
		assert_in_range(ev[0].end_ns - ev[0].start_ns, 20000, 30000);
		assert_int_equal(ev[4].cookie, 8);
		assert_in_range(ev[4].end_ns - ev[4].start_ns, 50000, 60000);
		assert_in_range(ev[5].end_ns - ev[5].start_ns, 1000, 11000);
	}
	assert_int_equal(calls("cuGraphLaunch"), 6);
	assert_int_equal(word(&r, 0), 24);
	close_rig(&r);
}

/* The same twice at once takes two; more than are kept, the oldest goes. */
static void many(void **state)
{
	struct sequence s[12];
	struct rig r;
	uint32_t i, k, sum = 0;

	(void)state;
	open_rig(&r, &with);
	zero(&r);
	works(&s[0], &r, 8, 1000);
	submit(&r, 0, &s[0]);
	submit(&r, 0, &s[0]);
	ends_well(&r, &s[0]);
	ends_well(&r, &s[0]);
	assert_int_equal(calls("cuGraphInstantiateWithFlags"), 2);
	for (k = 0; k < 3; k++)
		for (i = 0; i < 12; i++) {
			works(&s[i], &r, i + 2, 1000);
			run(&r, &s[i]);
			sum += i + 2;
		}
	assert_int_equal(word(&r, 0), 16 + sum);
	assert_int_equal(calls("cuGraphInstantiateWithFlags") -
				 calls("cuGraphExecDestroy"),
			 CU_GRAPHS_MAX);
	assert_int_equal(calls("cuLaunchKernel"), 0);
	close_rig(&r);
}

/* A graph goes with the program whose kernels it launches: another's may lie where those
 * were. */
static void program_goes(void **state)
{
	static const char *const other[] = {"iota:m4", "work:m8"};
	struct hal_bk_kernel_info info;
	struct sequence s = {0};
	struct rig r;
	size_t size;
	void *prog, *image, *kernel;
	uint32_t i;

	(void)state;
	open_rig(&r, &with);
	kernel = r.kernel[WORK];
	for (i = 0; i < 8; i++) {
		image = make_cuda_image(other + i % 2, 1, 4, &size);
		assert_int_equal(b->cold.program_load(r.dev, image, size, &prog), 0);
		free(image);
		assert_int_equal(
			b->cold.kernel_get(r.dev, prog, 0, &info, &r.kernel[WORK]), 0);
		zero(&r);
		memset(&s, 0, sizeof(s));
		add_work(&s, &r, 1000);
		add_work(&s, &r, 1000);
		submit(&r, 0, &s);
		while (b->hot.poll(r.dev, UINT64_MAX, (struct hal_bk_event[16]){{0}},
				   16) > 0)
			;
		assert_int_equal(word(&r, 0), i % 2 ? 2 : 1000);
		assert_int_equal(b->cold.program_unload(r.dev, prog), 0);
		assert_int_equal(calls("cuGraphExecDestroy"), i + 1);
	}
	r.kernel[WORK] = kernel;
	close_rig(&r);
}

/* ---- what goes wrong --------------------------------------------------------------- */

/* A graph has one mark, at its end: of a fault it is known that it was in the graph. */
static void fault(void **state)
{
	static const int want[] = {0, -EIO, -ECANCELED, -ECANCELED, -ECANCELED};
	struct hal_bk_event ev[8];
	struct sequence s;
	struct rig r;
	uint32_t seen = 0;
	int n;

	(void)state;
	open_rig(&r, &with);
	works(&s, &r, 2, 1000);
	add_on_mem(&s, &r, WILD);
	add_work(&s, &r, 1000);
	submit_work(&r, 0, 7, 1000);
	submit(&r, 0, &s);
	while ((n = b->hot.poll(r.dev, UINT64_MAX, ev + seen, 8 - seen)) > 0)
		seen += (uint32_t)n;
	assert_int_equal(n, -EIO);
	assert_int_equal(seen, 5);
	for (seen = 0; seen < 5; seen++)
		assert_int_equal(ev[seen].status, want[seen]);
	assert_string_equal(ev[1].fault, "CUDA_ERROR_ILLEGAL_ADDRESS (700), device lost, "
					 "kernel work or later");
	close_rig(&r);
}

/* With a mark after each command what had ended before a fault is known. */
static void fault_among_marks(void **state)
{
	const struct hal_bk_config cfg = {
		.clock = 1, .inflight = 16, .graphs = 1, .mark_every = 1};
	static const int want[] = {0, 0, -EIO, -ECANCELED};
	struct hal_bk_event ev[8];
	struct sequence s;
	struct rig r;
	uint32_t seen = 0;
	int n;

	(void)state;
	open_rig(&r, &cfg);
	works(&s, &r, 2, 1000);
	add_on_mem(&s, &r, WILD);
	add_work(&s, &r, 1000);
	submit(&r, 0, &s);
	while ((n = b->hot.poll(r.dev, UINT64_MAX, ev + seen, 8 - seen)) > 0)
		seen += (uint32_t)n;
	assert_int_equal(n, -EIO);
	assert_int_equal(seen, 4);
	for (seen = 0; seen < 4; seen++)
		assert_int_equal(ev[seen].status, want[seen]);
	assert_string_equal(ev[2].fault, "CUDA_ERROR_ILLEGAL_ADDRESS (700), device lost, "
					 "kernel wild");
	close_rig(&r);
}

/* Lost before it was given. */
static void lost(void **state)
{
	struct hal_bk_event ev[8];
	struct sequence s;
	struct rig r;
	uint32_t i;

	(void)state;
	open_rig(&r, &with);
	works(&s, &r, 3, 1000);
	submit_on_mem(&r, 1, NEVER, 9);
	for (i = 0; i < 2; i++)
		assert_int_equal(b->hot.submit(r.dev, r.queue[0], &s.cmd[i]), 0);
	stand_in()->lose(0, CUR_UNKNOWN);
	assert_int_equal(b->hot.poll(r.dev, UINT64_MAX, ev, 8), 3);
	assert_int_equal(ev[0].status, -EIO);
	assert_int_equal(ev[1].status, -ECANCELED);
	assert_int_equal(ev[2].cookie, 9);
	close_rig(&r);
}

/* Each launch has its patience, in a graph as by itself. */
static void hung(void **state)
{
	const struct hal_bk_config cfg = {
		.clock = 1, .inflight = 16, .graphs = 1, .hang_ms = 5};
	static const int want[] = {0, 0, -EIO, -ECANCELED};
	struct hal_bk_event ev[8];
	struct sequence s;
	struct rig r;
	uint32_t i;

	(void)state;
	open_rig(&r, &cfg);
	works(&s, &r, 2, 4000000);
	add_on_mem(&s, &r, NEVER);
	add_work(&s, &r, 1000);
	submit(&r, 0, &s);
	for (i = 0; i < 4; i++) {
		poll_one(&r, ev);
		assert_int_equal(ev[0].cookie, i + 1);
		assert_int_equal(ev[0].status, want[i]);
		if (i == 2)
			assert_string_equal(ev[0].fault, "hung for 5 ms, kernel never");
	}
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue[0]), 0);
	assert_int_equal(calls("cuGraphExecDestroy"), 0);
	leave_rig(&r);
	stand_in()->lose(0, CUR_UNKNOWN); /* the end of the process */
}

/* It was only long: the graph is given back when it has ended. */
static void hung_not_for_ever(void **state)
{
	const struct hal_bk_config cfg = {
		.clock = 1, .inflight = 16, .graphs = 1, .hang_ms = 5};
	struct hal_bk_event ev[8];
	struct sequence s;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	works(&s, &r, 2, 7000000);
	submit(&r, 0, &s);
	poll_one(&r, ev);
	assert_int_equal(ev[0].status, -EIO);
	poll_one(&r, ev);
	assert_int_equal(b->cold.queue_destroy(r.dev, r.queue[0]), 0);
	assert_int_equal(b->hot.poll(r.dev, b->hot.now(r.dev) + 5000000, ev, 8), 0);
	assert_int_equal(calls("cuGraphExecDestroy"), 0);
	assert_int_equal(b->hot.poll(r.dev, b->hot.now(r.dev) + 9000000, ev, 8), 0);
	assert_int_equal(calls("cuGraphExecDestroy"), 1);
	leave_rig(&r);
	assert_int_equal(stand_in()->live(), 0);
}

/* The driver refuses a graph: the same is done without. */
static void refused(void **state)
{
	static const struct {
		const char *call;
		bool change; /* it is made when arguments change */
	} all[] = {{"cuGraphCreate", false},
		   {"cuGraphAddKernelNode_v2", false},
		   {"cuGraphAddMemcpyNode", false},
		   {"cuGraphAddMemsetNode", false},
		   {"cuGraphAddBatchMemOpNode", false},
		   {"cuGraphInstantiateWithFlags", false},
		   {"cuGraphLaunch", false},
		   {"cuGraphExecKernelNodeSetParams_v2", true},
		   {"cuGraphExecMemcpyNodeSetParams", true},
		   {"cuGraphExecMemsetNodeSetParams", true}};
	struct sequence s;
	struct rig r;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		open_rig(&r, &with);
		zero(&r);
		works(&s, &r, 2, 1000);
		add_fill(&s, &r, 512, 5);
		add_copy(&s, &r, 1024, 512);
		if (all[i].change) {
			run(&r, &s);
			s.args[1][1].value = 2000;
			s.cmd[2].fill.pattern = 6;
			s.cmd[3].copy.dst_offset = 2048;
		}
		assert_int_equal(
			stand_in()->break_call(all[i].call, 1, CUR_NOT_SUPPORTED), 0);
		run(&r, &s);
		if (stand_in()->armed())
			fail_msg("%s was not called", all[i].call);
		run(&r, &s);
		assert_int_equal(word(&r, 0), all[i].change ? 6 : 4);
		assert_int_equal(word(&r, all[i].change ? 2048 : 1024),
				 all[i].change ? 6 : 5);
		assert_int_equal(calls("cuLaunchKernel"), 4);
		close_rig(&r);
	}
}

/* It does not take a command that submit has taken: that fails, and its queue. */
static void refused_late(void **state)
{
	struct hal_bk_event ev[8];
	struct hal_bk_cmd nop = {.op = HAL_OP_NOP};
	struct sequence s;
	struct rig r;

	(void)state;
	open_rig(&r, &with);
	works(&s, &r, 2, 1000);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &s.cmd[0]), 0);
	assert_int_equal(stand_in()->break_call("cuLaunchKernel", 1, CUR_OUT_OF_MEMORY),
			 0);
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &nop), -EAGAIN);
	poll_one(&r, ev);
	assert_int_equal(ev[0].cookie, 1);
	assert_int_equal(ev[0].status, -EIO);
	assert_string_equal(ev[0].fault, "cuLaunchKernel: CUDA_ERROR_OUT_OF_MEMORY (2), "
					 "kernel work");
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &nop), -EIO);
	/* A launch that is none is refused at once. */
	s.args[1][0].mem = NULL;
	assert_int_equal(b->hot.submit(r.dev, r.queue[1], &s.cmd[1]), -EINVAL);
	works(&s, &r, 2, 1000);
	submit(&r, 1, &s);
	ends_well(&r, &s);
	close_rig(&r);
}

static void refused_options(void **state)
{
	static const struct {
		struct hal_bk_config cfg;
		int err;
		const char *text;
	} all[] = {
		{{.clock = 1, .graphs = 1, .preempt = 1},
		 -EINVAL,
		 "cuda:0: graphs=yes and preempt=block"},
		{{.clock = 1, .graphs = 1, .partitions = 1},
		 -ENOTSUP,
		 "whether kernels in a graph keep to a partition (green)"},
		{{.clock = 1, .graphs = 1, .partitions = 2},
		 -ENOTSUP,
		 "keep to a partition (mask)"},
	};
	void *dev = NULL;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		stand_in()->reset();
		assert_int_equal(b->cold.open(&all[i].cfg, 0, &dev), all[i].err);
		if (!strstr(host_text, all[i].text))
			fail_msg("%s: not %s", host_text, all[i].text);
		assert_int_equal(stand_in()->live(), 0);
	}
}

/* ---- through the library ----------------------------------------------------------- */

static void went_well(int err, const char *call)
{
	if (err)
		fail_msg("%s: %s", call, hal_last_error());
}
#define OK(call) went_well(call, #call)

/* What hal_sequence_create records comes as it was recorded, and with other arguments. */
static void by_the_library(void **state)
{
	static const char *const options[] = {"hal.inflight=16",
					      "hal.partition_inflight=16",
					      "hal.queue_depth=256", NULL};
	struct hal_submit_desc desc = HAL_INIT(hal_submit_desc);
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_sequence *seq;
	struct hal_partition *part;
	struct hal_program *prog;
	struct hal_kernel *kernel;
	struct hal_device *dev;
	struct hal_buffer *buf;
	struct hal_queue *q;
	struct hal_cmd cmds[8];
	struct hal_point done;
	struct hal_arg args[2];
	uint32_t i, sum = 0;
	size_t size;
	void *image = make_cuda_image(names, 1, 4, &size);

	(void)state;
	stand_in()->reset();
	OK(hal_open("cuda:0?clock=virtual&partitions=none&graphs=yes&inflight=16",
		    options, &dev));
	pd.units_floor = 1;
	OK(hal_partition_create(dev, &pd, &part));
	bd.bytes = 64;
	OK(hal_buffer_create(part, &bd, &buf));
	OK(hal_buffer_write(buf, 0, &sum, sizeof(sum)));
	OK(hal_queue_create(part, &qd, &q));
	OK(hal_program_load(dev, image, size, &prog));
	OK(hal_kernel_find(prog, "work", &kernel));
	args[0] = (struct hal_arg){.buffer = buf, .bytes = 64};
	args[1] = (struct hal_arg){.offset = 1000};
	for (i = 0; i < 8; i++)
		cmds[i] = hal_cmd_launch(kernel, args, 2);
	desc.cmds = cmds;
	desc.cmd_count = 8;
	OK(hal_sequence_create(part, &desc, &seq));
	for (i = 0; i < 10; i++)
		OK(hal_sequence_submit(q, seq, NULL, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	assert_int_equal(calls("cuGraphLaunch"), 10);
	assert_int_equal(calls("cuLaunchKernel"), 0);
	/* Two at a time are with the device. */
	assert_int_equal(calls("cuGraphInstantiateWithFlags"), 2);
	args[1].offset = 5000;
	OK(hal_sequence_set_args(seq, 3, args, 2));
	OK(hal_sequence_submit(q, seq, NULL, &done));
	/* The same commands that nobody has recorded are given one by one. */
	OK(hal_submit(q, &desc, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	assert_int_equal(calls("cuGraphLaunch"), 11);
	assert_int_equal(calls("cuGraphExecKernelNodeSetParams_v2"), 1);
	assert_int_equal(calls("cuLaunchKernel"), 8);
	OK(hal_buffer_read(buf, 0, &sum, sizeof(sum)));
	assert_int_equal(sum, 96);
	OK(hal_sequence_destroy(seq));
	OK(hal_program_unload(prog));
	OK(hal_queue_destroy(q));
	OK(hal_buffer_destroy(buf));
	OK(hal_partition_destroy(part));
	OK(hal_close(dev));
	free(image);
	assert_int_equal(stand_in()->live(), 0);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	b = hal_backend_cuda(&host); /* the library's no more */
}

/* ---- the stand-in's rules ---------------------------------------------------------- */

struct bare {
	void *context, *stream, *graph, *exec;
	uint64_t mem;
};

static void answers(uint32_t got, uint32_t want, const char *call)
{
	if (got != want)
		fail_msg("%s is %u, not %u", call, got, want);
}
#define IS(want, call, ...) answers(cu.call(__VA_ARGS__), want, #call)

static struct bare bare;

static int begin_bare(void **state)
{
	(void)state;
	memset(&bare, 0, sizeof(bare));
	stand_in()->reset();
	cu.drive(1);
	IS(0, cuDevicePrimaryCtxRetain, &bare.context, 0);
	IS(0, cuCtxPushCurrent_v2, bare.context);
	IS(0, cuStreamCreateWithPriority, &bare.stream, 1, 0);
	IS(0, cuMemAlloc_v2, &bare.mem, 4096);
	IS(0, cuGraphCreate, &bare.graph, 0);
	return 0;
}

static int end_bare(void **state)
{
	void *popped;

	(void)state;
	(void)cu.cuCtxPopCurrent_v2(&popped);
	stand_in()->lose(0, CUR_UNKNOWN);
	(void)cu.cuDevicePrimaryCtxRelease_v2(0);
	cu.drive(0);
	stand_in()->reset();
	return 0;
}

static void misused(const char *what)
{
	const char *text = "";

	assert_true(stand_in()->misuse(&text) > 0);
	if (!strstr(text, what))
		fail_msg("misuse is '%s', not '%s'", text, what);
}

static void *node_fill(uint32_t value, size_t words, void *behind)
{
	const struct cu_fill_node fill = {.address = bare.mem,
					  .value = value,
					  .element = 4,
					  .width = words,
					  .height = 1};
	void *node = NULL;

	IS(0, cuGraphAddMemsetNode, &node, bare.graph, &behind, behind ? 1 : 0, &fill,
	   bare.context);
	return node;
}

static uint32_t first_word(void)
{
	uint32_t *pinned, value;
	void *p;

	IS(0, cuMemHostAlloc, &p, 64, 3);
	pinned = p;
	IS(0, cuMemcpyAsync, (uintptr_t)p, bare.mem, 4, bare.stream);
	IS(0, cuStreamSynchronize, bare.stream);
	value = *pinned;
	IS(0, cuMemFreeHost, p);
	return value;
}

/* What is not said to be behind something comes before it, some time. */
static void only_what_is_said(void **state)
{
	uint32_t seen[2] = {0}, i;

	(void)state;
	node_fill(1, 1, NULL);
	node_fill(2, 1, NULL);
	for (i = 0; i < 32; i++) {
		IS(0, cuGraphInstantiateWithFlags, &bare.exec, bare.graph, 0);
		IS(0, cuGraphLaunch, bare.exec, bare.stream);
		seen[first_word() - 1]++;
		IS(0, cuGraphExecDestroy, bare.exec);
	}
	assert_true(seen[0] && seen[1]);
	IS(0, cuGraphDestroy, bare.graph);
	IS(0, cuGraphCreate, &bare.graph, 0);
	node_fill(2, 1, node_fill(1, 1, NULL));
	for (i = 0; i < 32; i++) {
		IS(0, cuGraphInstantiateWithFlags, &bare.exec, bare.graph, 0);
		IS(0, cuGraphLaunch, bare.exec, bare.stream);
		assert_int_equal(first_word(), 2);
	}
	assert_int_equal(stand_in()->misuse(NULL), 0);
}

/* A change is for the next launch, of that executable graph. */
static void changes_next(void **state)
{
	struct cu_fill_node fill = {
		.address = bare.mem, .value = 9, .element = 4, .width = 1, .height = 1};
	void *node = node_fill(1, 1, NULL), *other;

	(void)state;
	IS(0, cuGraphInstantiateWithFlags, &bare.exec, bare.graph, 0);
	IS(0, cuGraphInstantiateWithFlags, &other, bare.graph, 0);
	IS(0, cuGraphLaunch, bare.exec, bare.stream);
	IS(0, cuGraphExecMemsetNodeSetParams, bare.exec, node, &fill, bare.context);
	assert_int_equal(first_word(), 1);
	IS(0, cuGraphLaunch, bare.exec, bare.stream);
	assert_int_equal(first_word(), 9);
	IS(0, cuGraphLaunch, other, bare.stream);
	assert_int_equal(first_word(), 1);
	/* What is refused changes nothing. */
	fill.address += 2;
	IS(CUR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams, bare.exec, node, &fill,
	   bare.context);
	IS(0, cuGraphLaunch, bare.exec, bare.stream);
	assert_int_equal(first_word(), 9);
}

static void bad_nodes(void **state)
{
	struct cu_fill_node fill = {
		.address = bare.mem, .element = 4, .width = 1025, .height = 1};
	struct cu_copy_node copy = {
		.dst = {.type = CU_MEMORY_UNIFIED, .address = bare.mem},
		.src = {.type = CU_MEMORY_UNIFIED, .address = bare.mem},
		.height = 1,
		.depth = 1};
	union cu_memory_op op = {
		.write = {.operation = CU_OP_WRITE_32, .address = bare.mem + 2}};
	struct cu_memory_ops_node ops = {.context = bare.context, .count = 1, .ops = &op};
	void *node, *other, *here = node_fill(1, 1, NULL);

	(void)state;
	IS(CUR_INVALID_VALUE, cuGraphAddMemsetNode, &node, bare.graph, NULL, 0, &fill,
	   bare.context);
	IS(CUR_INVALID_VALUE, cuGraphAddMemcpyNode, &node, bare.graph, NULL, 0, &copy,
	   bare.context);
	copy.width = 64;
	IS(CUR_INVALID_CONTEXT, cuGraphAddMemcpyNode, &node, bare.graph, NULL, 0, &copy,
	   NULL);
	copy.src.type = 1; /* the host's, by .host */
	IS(CUR_INVALID_VALUE, cuGraphAddMemcpyNode, &node, bare.graph, NULL, 0, &copy,
	   bare.context);
	IS(CUR_INVALID_VALUE, cuGraphAddBatchMemOpNode, &node, bare.graph, NULL, 0, &ops);
	op.write.address = 64;
	IS(CUR_INVALID_VALUE, cuGraphAddBatchMemOpNode, &node, bare.graph, NULL, 0, &ops);
	IS(CUR_INVALID_VALUE, cuGraphCreate, &node, 1);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	IS(0, cuGraphCreate, &other, 0);
	fill.width = 1;
	IS(CUR_INVALID_VALUE, cuGraphAddMemsetNode, &node, other, &here, 1, &fill,
	   bare.context);
	misused("a node is behind one that its graph does not have");
}

static void another_graphs_node(void **state)
{
	const struct cu_fill_node fill = {
		.address = bare.mem, .element = 4, .width = 1, .height = 1};
	void *node = node_fill(1, 1, NULL), *other, *exec;

	(void)state;
	IS(0, cuGraphCreate, &other, 0);
	IS(0, cuGraphInstantiateWithFlags, &exec, other, 0);
	IS(CUR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams, exec, node, &fill,
	   bare.context);
	misused("a node is changed in a graph that was not made of it");
}

static void gone_graph(void **state)
{
	const struct cu_fill_node fill = {
		.address = bare.mem, .element = 4, .width = 1, .height = 1};
	void *node = node_fill(3, 1, NULL);

	(void)state;
	IS(0, cuGraphInstantiateWithFlags, &bare.exec, bare.graph, 0);
	IS(0, cuGraphDestroy, bare.graph);
	IS(0, cuGraphLaunch, bare.exec, bare.stream);
	assert_int_equal(first_word(), 3);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	IS(CUR_INVALID_VALUE, cuGraphExecMemsetNodeSetParams, bare.exec, node, &fill,
	   bare.context);
	misused("a node is named after the end of its graph");
}

/* What has begun goes on after the end of its graph; nothing else may name that. */
static void gone_exec(void **state)
{
	(void)state;
	node_fill(4, 1, NULL);
	IS(0, cuGraphInstantiateWithFlags, &bare.exec, bare.graph, 0);
	IS(0, cuGraphLaunch, bare.exec, bare.stream);
	IS(0, cuGraphExecDestroy, bare.exec);
	assert_int_equal(first_word(), 4);
	assert_int_equal(stand_in()->misuse(NULL), 0);
	IS(CUR_INVALID_HANDLE, cuGraphLaunch, bare.exec, bare.stream);
	misused("a executable graph is used after its end");
}

static void in_two_streams(void **state)
{
	void *other;

	(void)state;
	node_fill(4, 1, NULL);
	IS(0, cuStreamCreateWithPriority, &other, 1, 0);
	IS(0, cuGraphInstantiateWithFlags, &bare.exec, bare.graph, 0);
	IS(0, cuGraphLaunch, bare.exec, bare.stream);
	IS(0, cuGraphLaunch, bare.exec, other);
	misused("a graph is launched while it may run in another stream");
}

static void not_loaded(void **state)
{
	static const char *const one[] = {"iota:m4"};
	void *module, *function, *image, *node, *params[2];
	struct cu_kernel_node kernel = {.grid = {1, 1, 1}, .block = {4, 1, 1}};
	uint64_t base = 0;
	size_t size;

	(void)state;
	image = make_cuda_image(one, 1, 4, &size);
	IS(0, cuModuleLoadDataEx, &module,
	   (char *)image + sizeof(struct hal_cuda_image) + sizeof(struct hal_cuda_kernel),
	   0, NULL, NULL);
	free(image);
	IS(0, cuModuleGetFunction, &function, module, "iota");
	kernel.function = function;
	params[0] = &bare.mem;
	params[1] = &base;
	kernel.params = params;
	kernel.block[0] = 2048;
	IS(CUR_INVALID_VALUE, cuGraphAddKernelNode_v2, &node, bare.graph, NULL, 0,
	   &kernel);
	kernel.block[0] = 4;
	assert_int_equal(stand_in()->misuse(NULL), 0);
	IS(0, cuGraphAddKernelNode_v2, &node, bare.graph, NULL, 0, &kernel);
	misused("the code of iota is loaded by a graph");
}

static int setup(void **state)
{
	(void)state;
	b = hal_backend_cuda(&host);
	return b && stand_in() ? 0 : -1;
}

int main(void)
{
#define RULE(f) cmocka_unit_test_setup_teardown(f, begin_bare, end_bare)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_call),
		cmocka_unit_test(in_order),
		cmocka_unit_test(shaped),
		cmocka_unit_test(changed),
		cmocka_unit_test(in_pieces),
		cmocka_unit_test(among_others),
		cmocka_unit_test(many),
		cmocka_unit_test(program_goes),
		cmocka_unit_test(fault),
		cmocka_unit_test(fault_among_marks),
		cmocka_unit_test(lost),
		cmocka_unit_test(hung),
		cmocka_unit_test(hung_not_for_ever),
		cmocka_unit_test(refused),
		cmocka_unit_test(refused_late),
		cmocka_unit_test(refused_options),
		cmocka_unit_test(by_the_library),
		RULE(only_what_is_said),
		RULE(changes_next),
		RULE(bad_nodes),
		RULE(another_graphs_node),
		RULE(gone_graph),
		RULE(gone_exec),
		RULE(in_two_streams),
		RULE(not_loaded),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
