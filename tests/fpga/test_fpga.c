/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the FPGA backend adds to what the conformance suite asks: who reaches which bank,
 * who has a slot, configurations that come and go, runs that are stopped inside, that
 * hang, a card that is lost, and that nothing waits on the engine's thread.
 */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/fpga/internal.h"
#include "backends/fpga/xrt_calls.h"

#define BANKS                                                                            \
	"bank DDR[0] ddr4 0x0 16M\n"                                                     \
	"bank DDR[1] ddr4 0x100000000 16M\n"

static const char first_text[] = BANKS "kernel work 4\narg d memory 4 0-1\narg ns ulong\n"
				       "reach 2 d 1\n"
				       "kernel never 4\narg d memory 64 0-1\n"
				       "kernel numbers 4\narg d memory 48 0-1\n"
				       "arg a char\narg b short\narg c int\narg e ulong\n"
				       "arg f float\narg g double\n"
				       "kernel groups 2\narg d memory 12 0-1\n"
				       "arg hal_groups_x uint\narg hal_groups_y uint\n"
				       "arg hal_groups_z uint\n"
				       "kernel wild 4\narg d memory 64 0-1\n";
/* The same card, otherwise. */
static const char second_text[] =
	"bitstream 100K\n" BANKS "kernel twice 4\narg d memory 64 0-1\n"
	"arg s memory 64 0-1\nkernel stream 4\narg d memory 4 0-1\narg ns ulong\n";

/* Of these all but the first can be stopped inside, or say so. */
#define STOPS "arg hal_state memory 72 1\narg hal_resume uint\narg hal_stop uint\n"
static const char stop_text[] = BANKS "kernel work 2\narg d memory 4 0-1\narg ns ulong\n"
				      "kernel spin 2\narg d memory 64 0-1\n" STOPS
				      "kernel deaf 2\narg d memory 64 0-1\n" STOPS
				      "kernel liar 2\narg d memory 64 0-1\n" STOPS;

static const char far_text[] = "platform hal_stand_in_2\n" BANKS
			       "kernel work 4\narg d memory 4 0-1\narg ns ulong\n";

static const struct hal_backend *b;
static const char *first_file, *far_file, *stop_file;

struct world {
	void *dev, *prog, *part[4], *queue[4];
};

static void sure(int err)
{
	if (err)
		fail_msg("%d: %s", err, host_text);
}

static void *kernel_of(struct world *w, void *prog, const char *name)
{
	struct hal_bk_kernel_info info;
	void *kernel;
	uint32_t i;

	for (i = 0;; i++) {
		sure(b->cold.kernel_get(w->dev, prog, i, &info, &kernel));
		if (strcmp(info.name, name) == 0)
			return kernel;
	}
}

static void *load(struct world *w, const char *text)
{
	size_t size;
	void *prog, *image = make_image(text, &size);

	sure(b->cold.program_load(w->dev, image, size, &prog));
	free(image);
	return prog;
}

/* A partition and a queue on each of the first count slots. */
static struct world begin(const struct hal_bk_config *cfg, uint32_t count)
{
	struct world w = {0};
	uint32_t i;

	stand_in()->reset();
	sure(b->cold.open(cfg, 0, &w.dev));
	for (i = 0; i < count; i++) {
		const struct hal_bk_partition_desc d = {.index = i,
							.units = 1,
							.col = (uint16_t)i,
							.rows = 1,
							.cols = 1,
							.color_mask = 3};

		sure(b->cold.partition_create(w.dev, &d, &w.part[i]));
		sure(b->cold.queue_create(w.dev, w.part[i], 0, &w.queue[i]));
	}
	w.prog = load(&w, first_text);
	return w;
}

static void end(struct world *w)
{
	const char *text = "";
	int i;

	for (i = 0; i < 4; i++)
		if (w->queue[i])
			sure(b->cold.queue_destroy(w->dev, w->queue[i]));
	for (i = 0; i < 4; i++) {
		if (w->part[i])
			sure(b->cold.partition_destroy(w->dev, w->part[i]));
	}
	sure(b->cold.program_unload(w->dev, w->prog));
	b->cold.close(w->dev);
	if (stand_in()->misuse(&text))
		fail_msg("misused: %s", text);
	assert_int_equal(stand_in()->live(), 0);
}

static int allocate(struct world *w, uint32_t part, uint64_t bytes, uint64_t mask,
		    void **mem)
{
	const struct hal_bk_colors colors = {.mask = mask};

	return b->cold.mem_alloc(w->dev, w->part[part], bytes, &colors, 0, mem);
}

static void *buffer(struct world *w, uint32_t part, uint64_t bytes, uint64_t mask)
{
	void *mem, *zero = calloc(1, bytes);

	sure(allocate(w, part, bytes, mask, &mem));
	sure(b->cold.mem_write(w->dev, mem, 0, zero, bytes));
	free(zero);
	return mem;
}

static int launch(struct world *w, uint32_t queue, void *kernel,
		  const struct hal_bk_arg *args, uint32_t count, uint64_t cookie)
{
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = cookie};
	int err;

	cmd.launch.kernel = kernel;
	cmd.launch.args = args;
	cmd.launch.arg_count = count;
	cmd.launch.groups[0] = cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	err = b->hot.submit(w->dev, w->queue[queue], &cmd);
	if (!err)
		b->hot.doorbell(w->dev);
	return err;
}

static struct hal_bk_event next(struct world *w)
{
	struct hal_bk_event e;
	int n;

	do
		n = b->hot.poll(w->dev, UINT64_MAX - 1, &e, 1);
	while (!n);
	if (n != 1)
		fail_msg("poll: %d: %s", n, host_text);
	return e;
}

static uint32_t loads(void)
{
	struct fpga_stand_in_job jobs[256];
	uint32_t n, count = 0;

	while ((n = stand_in()->jobs(jobs, 256)) != 0)
		while (n)
			count += strcmp(jobs[--n].what, "load") == 0;
	return count;
}

/* The queue's next event is a failure with this text; then the queue is a new one. */
static void fails(struct world *w, uint32_t queue, const char *fault)
{
	const struct hal_bk_event e = next(w);

	if (e.status != -EIO || strcmp(e.fault, fault) != 0)
		fail_msg("%d: %s, not %s", e.status, e.fault, fault);
	sure(b->cold.queue_destroy(w->dev, w->queue[queue]));
	sure(b->cold.queue_create(w->dev, w->part[queue], 0, &w->queue[queue]));
}

/* ---- banks --------------------------------------------------------------------------- */

static void unreachable_bank(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct world w = begin(&cfg, 2);
	void *low = buffer(&w, 1, 4, 1), *high = buffer(&w, 1, 4, 2);
	struct hal_bk_arg args[2] = {{low, 0, 4}, {NULL, 1000, 0}};
	void *work = kernel_of(&w, w.prog, "work");
	uint32_t got = 0;

	(void)state;
	assert_int_equal(launch(&w, 1, work, args, 2, 1), -EINVAL);
	assert_string_equal(host_text, "fpga:0: kernel work: argument 0 (d) is in bank "
				       "DDR[0], which unit work:{work_2} cannot access; "
				       "it can access: DDR[1]");
	args[0].mem = high;
	sure(launch(&w, 1, work, args, 2, 2));
	assert_int_equal(next(&w).status, 0);
	sure(b->cold.mem_read(w.dev, high, 0, &got, 4));
	assert_int_equal(got, 1);
	sure(b->cold.mem_free(w.dev, low));
	sure(b->cold.mem_free(w.dev, high));
	end(&w);
}

static void full_bank(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct hal_device_info info = {.size = sizeof(info)};
	struct world w = begin(&cfg, 1);
	const uint8_t parts[2] = {1, 2};
	const struct hal_bk_colors ratio = {3, parts};
	void *all, *more, *none;

	(void)state;
	sure(b->cold.get_info(w.dev, &info));
	assert_int_equal(info.colors, 2);
	assert_int_equal(info.memory_free, 32u << 20);
	sure(allocate(&w, 0, 16u << 20, 1, &all));
	assert_int_equal(allocate(&w, 0, 1, 1, &more), -ENOSPC);
	assert_string_equal(host_text,
			    "fpga: no bank has 4096 bytes free: free are 0 in DDR[0]");
	/* One buffer is in one bank. */
	assert_int_equal(allocate(&w, 0, 17u << 20, 3, &more), -ENOSPC);
	assert_non_null(strstr(host_text, "0 in DDR[0], 16777216 in DDR[1]"));
	assert_int_equal(allocate(&w, 0, UINT64_MAX, 3, &more), -ENOSPC);
	/* XRT does not always say why. */
	assert_int_equal(stand_in()->break_call("xrtBOAlloc", 1, 0), 0);
	assert_int_equal(allocate(&w, 0, 1, 3, &more), -EIO);
	assert_string_equal(host_text, "fpga: xrtBOAlloc: no reason given: 4096 bytes in "
				       "bank DDR[1]");
	sure(allocate(&w, 0, 1, 3, &more));
	sure(b->cold.get_info(w.dev, &info));
	assert_int_equal(info.memory_free, (16u << 20) - 4096);
	assert_int_equal(b->cold.mem_alloc(w.dev, w.part[0], 1, &ratio, 0, &none),
			 -ENOTSUP);
	assert_non_null(
		strstr(host_text, "weights across several banks are not supported"));
	sure(b->cold.mem_free(w.dev, more));
	sure(b->cold.mem_free(w.dev, all));
	end(&w);
}

/* How long a launch that is bound by memory takes beside another's: banks of the two. */
static uint64_t beside(struct world *w, void *stream, uint64_t mine, uint64_t theirs)
{
	struct hal_bk_arg args[2][2] = {{{NULL, 0, 4}, {NULL, 1000000, 0}},
					{{NULL, 0, 4}, {NULL, 1000000, 0}}};
	struct hal_bk_event e;
	uint64_t ns = 0;
	uint32_t i, n = 1 + (theirs != 0);

	args[0][0].mem = buffer(w, 0, 4, mine);
	if (theirs)
		args[1][0].mem = buffer(w, 1, 4, theirs);
	for (i = 0; i < n; i++)
		sure(launch(w, i, stream, args[i], 2, i));
	for (i = 0; i < n; i++) {
		e = next(w);
		assert_int_equal(e.status, 0);
		ns = e.cookie ? ns : e.end_ns - e.start_ns;
	}
	for (i = 0; i < n; i++)
		sure(b->cold.mem_free(w->dev, args[i][0].mem));
	return ns;
}

static void banks_of_ones_own(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct world w = begin(&cfg, 2);
	void *prog = load(&w, second_text), *stream = kernel_of(&w, prog, "stream");
	uint64_t alone, disjoint, shared;

	(void)state;
	alone = beside(&w, stream, 1, 0);
	disjoint = beside(&w, stream, 1, 2);
	shared = beside(&w, stream, 1, 1);
	printf("figure fpga.corun.slowdown_disjoint_banks %.3f\n",
	       (double)disjoint / (double)alone);
	printf("figure fpga.corun.slowdown_shared_bank %.3f\n",
	       (double)shared / (double)alone);
	assert_int_equal(disjoint, alone);
	assert_true(shared > alone * 19 / 10);
	sure(b->cold.program_unload(w.dev, prog));
	end(&w);
}

/* ---- calls that fail ------------------------------------------------------------------ */

/* XRT refuses to start a run with EAGAIN, three times: the launch fails with that, or the
 * engine is to look again.  It must not sleep until another command wakes it. */
static void refused_with_eagain(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct world w = begin(&cfg, 1);
	struct hal_bk_arg args[2] = {{buffer(&w, 0, 4, 1), 0, 4}, {NULL, 1000, 0}};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH,
				 .launch = {.kernel = kernel_of(&w, w.prog, "work"),
					    .args = args,
					    .arg_count = 2,
					    .groups = {1, 1, 1}}};
	struct hal_bk_event e;
	int n;

	(void)state;
	stand_in()->break_call("xrtRunStart", 1, EAGAIN);
	sure(b->hot.submit(w.dev, w.queue[0], &cmd));
	stand_in()->break_call("xrtRunStart", 1, EAGAIN);
	b->hot.doorbell(w.dev);
	stand_in()->break_call("xrtRunStart", 1, EAGAIN);
	n = b->hot.poll(w.dev, 0, &e, 1);
	stand_in()->break_call("xrtRunStart", 0, 0);
	if (!n && b->hot.next(w.dev) == UINT64_MAX)
		fail_msg("the launch is ready, and the engine sleeps without a time");
	if (!n)
		e = next(&w);
	if (e.status && !strstr(e.fault, "xrtRunStart: EAGAIN"))
		fail_msg("%d: %s", e.status, e.fault);
	sure(b->cold.mem_free(w.dev, args[0].mem));
	end(&w);
}

/* ---- who waits for a load -------------------------------------------------------------- */

/* The other card as well, with a slot. */
static struct world begin_far(int64_t clock)
{
	const struct hal_bk_config cfg = {.xclbin = far_file, .clock = clock};
	const struct hal_bk_partition_desc d = {
		.units = 1, .rows = 1, .cols = 1, .color_mask = 3};
	struct world far = {0};

	sure(b->cold.open(&cfg, 1, &far.dev));
	sure(b->cold.partition_create(far.dev, &d, &far.part[0]));
	sure(b->cold.queue_create(far.dev, far.part[0], 0, &far.queue[0]));
	far.prog = load(&far, far_text);
	return far;
}

static void end_far(struct world *far)
{
	sure(b->cold.queue_destroy(far->dev, far->queue[0]));
	sure(b->cold.partition_destroy(far->dev, far->part[0]));
	sure(b->cold.program_unload(far->dev, far->prog));
	b->cold.close(far->dev);
}

/* A run of 50 ms on the other card, while this one is loaded so often. */
static uint64_t on_another_card(uint32_t reloads)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct world w = begin(&cfg, 1), far = begin_far(1);
	void *other = load(&w, second_text), *mem = buffer(&w, 0, 4096, 1);
	struct hal_bk_arg args[2] = {{mem, 0, 4096}, {NULL, 1000, 0}};
	struct hal_bk_arg far_args[2] = {{NULL, 0, 4}, {NULL, 50000000, 0}};
	struct hal_bk_event e;
	uint32_t i;

	far_args[0].mem = buffer(&far, 0, 4, 1);
	(void)loads();
	sure(launch(&far, 0, kernel_of(&far, far.prog, "work"), far_args, 2, 1));
	for (i = 0; i < reloads; i++) {
		sure(launch(&w, 0,
			    i % 2 ? kernel_of(&w, w.prog, "work")
				  : kernel_of(&w, other, "stream"),
			    args, 2, i));
		assert_int_equal(next(&w).status, 0);
	}
	e = next(&far);
	assert_int_equal(e.status, 0);
	assert_int_equal(loads(), reloads);
	sure(b->cold.mem_free(far.dev, far_args[0].mem));
	end_far(&far);
	sure(b->cold.mem_free(w.dev, mem));
	sure(b->cold.program_unload(w.dev, other));
	end(&w);
	return e.end_ns - e.start_ns;
}

/* 40 runs of 1 ms on a slot; with each tenth another slot's tenant wants what is not
 * there, so that it is put there and back. */
static uint64_t on_the_same_card(bool beside)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct world w = begin(&cfg, 2);
	void *other = load(&w, second_text), *stream = kernel_of(&w, other, "stream");
	struct hal_bk_arg args[2][2] = {{{buffer(&w, 0, 4, 1), 0, 4}, {NULL, 1000000, 0}},
					{{buffer(&w, 1, 4, 2), 0, 4}, {NULL, 1000, 0}}};
	uint64_t begin_ns = b->hot.now(w.dev), ns;
	uint32_t i;

	(void)loads();
	for (i = 0; i < 40; i++) {
		if (beside && i % 10 == 0) {
			sure(launch(&w, 1, stream, args[1], 2, 1));
			assert_int_equal(next(&w).status, 0);
		}
		sure(launch(&w, 0, kernel_of(&w, w.prog, "work"), args[0], 2, 0));
		assert_int_equal(next(&w).status, 0);
	}
	ns = b->hot.now(w.dev) - begin_ns;
	assert_int_equal(loads(), beside ? 8 : 0);
	sure(b->cold.mem_free(w.dev, args[0][0].mem));
	sure(b->cold.mem_free(w.dev, args[1][0].mem));
	sure(b->cold.program_unload(w.dev, other));
	end(&w);
	return ns;
}

static void neighbours_of_a_load(void **state)
{
	uint64_t far = on_another_card(0), same = on_the_same_card(false);
	uint64_t far_beside = on_another_card(10), same_beside = on_the_same_card(true);

	(void)state;
	printf("figure fpga.reconfig.neighbour_slowdown %.3f\n",
	       (double)far_beside / (double)far);
	printf("figure fpga.reconfig.neighbour_slowdown.same_card %.3f\n",
	       (double)same_beside / (double)same);
	assert_int_equal(far_beside, far);
	/* A whole card is loaded: eight times a millisecond and more. */
	assert_in_range(same_beside - same, 8000000, 12000000);
}

/* The cookie of what has ended; 0: nothing has. */
static uint64_t ended(void *dev)
{
	struct hal_bk_event e;
	const int n = b->hot.poll(dev, 0, &e, 1);

	if (n < 0 || (n && e.status))
		fail_msg("poll: %s", n < 0 ? host_text : e.fault);
	return n ? e.cookie : 0;
}

/* It takes 20 ms to be loaded. */
static const char slow_text[] = "bitstream 8M\n" BANKS "kernel stream 4\n"
				"arg d memory 4 0-1\narg ns ulong\n";

/* By the clock of the host: how many runs, one behind the other, another card or another
 * slot of the same gets done while this one is loaded. */
static uint32_t done_beside_a_load(bool another_card)
{
	const struct hal_bk_config cfg = {.xclbin = first_file};
	struct world w = begin(&cfg, 2), far = {0}, *runs = another_card ? &far : &w;
	void *slow = load(&w, slow_text), *work;
	struct hal_bk_arg args[2] = {{buffer(&w, 1, 4, 2), 0, 4}, {NULL, 1000, 0}};
	struct hal_bk_arg run_args[2] = {{NULL, 0, 4}, {NULL, 1000, 0}};
	uint32_t done = 0;
	uint64_t cookie;

	if (another_card)
		far = begin_far(0);
	work = kernel_of(runs, runs->prog, "work");
	run_args[0].mem = buffer(runs, 0, 4, 1);
	(void)loads();
	sure(launch(&w, 1, kernel_of(&w, slow, "stream"), args, 2, 1));
	sure(launch(runs, 0, work, run_args, 2, 2));
	do {
		cookie = ended(w.dev);
		if (!cookie && another_card)
			cookie = ended(far.dev);
		if (cookie == 2) {
			done++;
			sure(launch(runs, 0, work, run_args, 2, 2));
		}
	} while (cookie != 1);
	assert_int_equal(next(runs).cookie, 2);
	assert_int_equal(loads(), another_card ? 1 : 2);
	sure(b->cold.mem_free(runs->dev, run_args[0].mem));
	sure(b->cold.mem_free(w.dev, args[0].mem));
	sure(b->cold.program_unload(w.dev, slow));
	if (another_card)
		end_far(&far);
	end(&w);
	return done;
}

static void others_go_on_meanwhile(void **state)
{
	(void)state;
	assert_true(done_beside_a_load(true) >= 3);
	assert_int_equal(done_beside_a_load(false), 0);
}

/* Slots that are taken and given back while there are no units. */
static void slots_of_a_card_being_loaded(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file};
	struct hal_bk_partition_desc d = {
		.units = 1, .col = 3, .rows = 1, .cols = 1, .color_mask = 3};
	struct world w = begin(&cfg, 3);
	void *slow = load(&w, slow_text), *stream = kernel_of(&w, slow, "stream");
	struct hal_bk_arg args[2] = {{buffer(&w, 1, 4, 2), 0, 4}, {NULL, 1000, 0}};
	uint64_t told = 0;
	uint32_t i;

	(void)state;
	sure(launch(&w, 1, stream, args, 2, 1));
	sure(b->cold.partition_create(w.dev, &d, &w.part[3]));
	sure(b->cold.queue_create(w.dev, w.part[3], 0, &w.queue[3]));
	sure(b->cold.queue_destroy(w.dev, w.queue[2]));
	sure(b->cold.partition_destroy(w.dev, w.part[2]));
	w.queue[2] = w.part[2] = NULL;
	sure(launch(&w, 3, stream, args, 2, 2));
	for (i = 0; i < 2; i++) {
		const struct hal_bk_event e = next(&w);

		if (e.status)
			fail_msg("%s", e.fault);
		told |= UINT64_C(1) << e.cookie;
	}
	assert_int_equal(told, 6);
	/* Nobody has kept it. */
	d.col = 2;
	sure(b->cold.partition_create(w.dev, &d, &w.part[2]));
	sure(b->cold.mem_free(w.dev, args[0].mem));
	sure(b->cold.program_unload(w.dev, slow));
	end(&w);
}

static sem_t gate;

static int wait_at_gate(struct fp_chore *c)
{
	(void)c;
	while (sem_wait(&gate) != 0)
		;
	return 0;
}

static void until_changed(struct fp_device *dev)
{
	while (dev->changing) {
		sched_yield();
		assert_int_equal(ended(dev), 0);
	}
}

/* Partitions come and go while the mover, which has other work first, is to change their
 * slot: neither waits for it.  Who came has an open slot, and who left has none. */
static void slots_that_are_changing(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file};
	const struct hal_bk_partition_desc d = {
		.units = 1, .col = 2, .rows = 1, .cols = 1, .color_mask = 3};
	struct world w = begin(&cfg, 2);
	struct hal_bk_arg args[2] = {{buffer(&w, 1, 4, 2), 0, 4}, {NULL, 1000, 0}};
	struct fp_chore hold = {.work = wait_at_gate};
	struct fp_device *dev = w.dev;
	void *other, *part;

	(void)state;
	assert_int_equal(sem_init(&gate, 0, 0), 0);
	fp_move(dev, &hold);
	assert_true(fp_slot_take(dev, 2));
	fp_slot_shut(dev, 2); /* as after a load, when its owner has left */
	sure(b->cold.partition_create(w.dev, &d, &w.part[2]));
	assert_true(dev->changing >> 2 & 1);
	sure(b->cold.queue_create(w.dev, w.part[2], 0, &w.queue[2]));
	sure(launch(&w, 2, kernel_of(&w, w.prog, "work"), args, 2, 1));
	assert_int_equal(sem_post(&gate), 0);
	assert_int_equal(next(&w).status, 0);
	sure(b->cold.queue_destroy(w.dev, w.queue[2]));
	fp_move(dev, &hold);
	fp_slot_anew(dev, 2); /* as for a launch that finds it broken */
	sure(b->cold.partition_destroy(w.dev, w.part[2]));
	assert_true(dev->changing >> 2 & 1);
	/* One more comes and leaves. */
	sure(b->cold.partition_create(w.dev, &d, &part));
	sure(b->cold.partition_destroy(w.dev, part));
	assert_int_equal(sem_post(&gate), 0);
	w.queue[2] = w.part[2] = NULL;
	until_changed(dev);
	sure(b->cold.open(&cfg, 0, &other));
	sure(b->cold.partition_create(other, &d, &part));
	sure(b->cold.partition_destroy(other, part));
	b->cold.close(other);
	sem_destroy(&gate);
	sure(b->cold.mem_free(w.dev, args[0].mem));
	end(&w);
}

/* ---- arguments ----------------------------------------------------------------------- */

static void numbers(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	const float f = -1.5f;
	const double g = 1e300;
	struct world w = begin(&cfg, 1);
	void *mem = buffer(&w, 0, 4096, 3), *k = kernel_of(&w, w.prog, "numbers");
	struct hal_bk_arg args[7] = {
		{mem, 512, 48},        {NULL, 0xfe, 0}, {NULL, 0xfffe, 0}, {NULL, 7, 0},
		{NULL, UINT64_MAX, 0}, {NULL, 0, 0},    {NULL, 0, 0}};
	uint64_t got[6];

	(void)state;
	memcpy(&args[5].value, &f, sizeof(f));
	memcpy(&args[6].value, &g, sizeof(g));
	sure(launch(&w, 0, k, args, 7, 1));
	assert_int_equal(next(&w).status, 0);
	sure(b->cold.mem_read(w.dev, mem, 512, got, sizeof(got)));
	assert_memory_equal(&got[0], &args[1].value, 8);
	assert_memory_equal(&got[1], &args[2].value, 8);
	assert_memory_equal(&got[2], &args[3].value, 8);
	assert_memory_equal(&got[3], &args[4].value, 8);
	assert_memory_equal(&got[4], &args[5].value, 8);
	assert_memory_equal(&got[5], &args[6].value, 8);
	args[1].value = 256;
	assert_int_equal(launch(&w, 0, k, args, 7, 2), -EINVAL);
	assert_non_null(
		strstr(host_text, "argument 1 (a) does not fit into its register"));
	args[1] = args[0];
	assert_int_equal(launch(&w, 0, k, args, 7, 2), -EINVAL);
	assert_non_null(
		strstr(host_text, "argument 1 (a) must be a scalar, but is a buffer"));
	args[0].mem = NULL;
	assert_int_equal(launch(&w, 0, k, args, 7, 2), -EINVAL);
	assert_non_null(
		strstr(host_text, "argument 0 (d) must be a buffer, but is a scalar"));
	sure(b->cold.mem_free(w.dev, mem));
	end(&w);
}

static void groups(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct world w = begin(&cfg, 4);
	void *mem = buffer(&w, 0, 4096, 3), *k = kernel_of(&w, w.prog, "groups");
	const struct hal_bk_arg args[2] = {{mem, 0, 12}, {NULL, 1, 0}};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = 1};
	uint32_t got[3];

	(void)state;
	cmd.launch.kernel = k;
	cmd.launch.args = args;
	cmd.launch.arg_count = 1;
	cmd.launch.groups[0] = 5;
	cmd.launch.groups[1] = 6;
	cmd.launch.groups[2] = 7;
	sure(b->hot.submit(w.dev, w.queue[0], &cmd));
	assert_int_equal(next(&w).status, 0);
	sure(b->cold.mem_read(w.dev, mem, 0, got, sizeof(got)));
	assert_int_equal(got[0], 5);
	assert_int_equal(got[1], 6);
	assert_int_equal(got[2], 7);
	/* It has two units: slots 2 and 3 are without. */
	assert_int_equal(b->hot.submit(w.dev, w.queue[2], &cmd), -EINVAL);
	assert_non_null(strstr(
		host_text,
		"kernel groups has 2 units, but none in the partition's slots 2 to 2"));
	cmd.launch.kernel = kernel_of(&w, w.prog, "work");
	cmd.launch.arg_count = 2;
	assert_int_equal(b->hot.submit(w.dev, w.queue[0], &cmd), -EINVAL);
	assert_non_null(strstr(
		host_text, "5 x 6 x 7 groups, but the kernel takes only 0 group counts"));
	sure(b->cold.mem_free(w.dev, mem));
	end(&w);
}

/* ---- slots --------------------------------------------------------------------------- */

static void slots_are_exclusive(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	const struct hal_bk_partition_desc d = {.units = 2, .rows = 1, .cols = 2};
	const struct hal_bk_partition_desc far = {
		.units = 2, .col = 3, .rows = 1, .cols = 2};
	struct world w = begin(&cfg, 2);
	void *other, *part;

	(void)state;
	sure(b->cold.open(&cfg, 0, &other));
	assert_int_equal(b->cold.partition_create(other, &d, &part), -EBUSY);
	assert_non_null(strstr(host_text, "slot 0 is used by another open device"));
	assert_int_equal(b->cold.partition_create(other, &far, &part), -EINVAL);
	assert_non_null(strstr(host_text, "slots 3 to 4 does not fit: the card has 4"));
	b->cold.close(other);
	end(&w);
}

/* A child has none of its parent's handles, and so none of their slots. */
static void slots_are_not_inherited(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	const struct hal_bk_partition_desc d = {.units = 2, .rows = 1, .cols = 2};
	struct world w = begin(&cfg, 2);
	void *own, *part;
	int status;
	pid_t child;

	(void)state;
	child = fork();
	if (child == 0) {
		stand_in()->reset(); /* in it the parent's units are open, too */
		if (b->cold.open(&cfg, 0, &own) != 0)
			_exit(1);
		_exit(b->cold.partition_create(own, &d, &part) != 0 ? 2 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	end(&w);
}

/* Another process, which has slot 0 until it is told to end. */
static void hold_slot(const struct hal_bk_config *cfg, int said, int told)
{
	struct world w = begin(cfg, 1);
	char c = 1;

	if (write(said, &c, 1) != 1 || read(told, &c, 1) != 0)
		_exit(1);
	end(&w);
	_exit(0);
}

static void other_process(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct hal_bk_partition_desc d = {.units = 1, .rows = 1, .cols = 1};
	char shared[] = "/tmp/hal_fpga_cards_XXXXXX", c;
	int said[2], told[2], status, fd = mkstemp(shared);
	struct world w = {0};
	struct hal_bk_event e;
	struct hal_bk_arg args[2];
	void *part, *prog, *mem;
	pid_t child;

	(void)state;
	assert_true(fd >= 0 && !pipe(said) && !pipe(told));
	setenv("HAL_STAND_IN_XRT_SHARED", shared, 1);
	child = fork();
	if (child == 0) {
		close(told[1]);
		hold_slot(&cfg, said[1], told[0]);
	}
	close(told[0]);
	assert_int_equal(read(said[0], &c, 1), 1);
	stand_in()->reset();
	sure(b->cold.open(&cfg, 0, &w.dev));
	assert_int_equal(b->cold.partition_create(w.dev, &d, &part), -EBUSY);
	assert_string_equal(host_text, "fpga:0: xrtPLKernelOpenExclusive: EBUSY: slot 0, "
				       "unit work:{work_1}: used by another process");
	d.col = 3;
	sure(b->cold.partition_create(w.dev, &d, &w.part[0]));
	sure(b->cold.queue_create(w.dev, w.part[0], 0, &w.queue[0]));
	/* While it has a slot, no other configuration comes, and what is there stays. */
	prog = load(&w, second_text);
	w.prog = load(&w, first_text);
	mem = buffer(&w, 0, 64, 3);
	args[0] = args[1] = (struct hal_bk_arg){mem, 0, 64};
	sure(launch(&w, 0, kernel_of(&w, prog, "twice"), args, 2, 1));
	e = next(&w);
	assert_int_equal(e.status, -EIO);
	assert_string_equal(e.fault, "xrtDeviceLoadXclbin: EBUSY");
	sure(b->cold.queue_destroy(w.dev, w.queue[0]));
	sure(b->cold.queue_create(w.dev, w.part[0], 0, &w.queue[0]));
	args[1] = (struct hal_bk_arg){NULL, 1000, 0};
	sure(launch(&w, 0, kernel_of(&w, w.prog, "work"), args, 2, 2));
	assert_int_equal(next(&w).status, 0);
	close(told[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	/* Gone, and it is free. */
	d.col = 0;
	sure(b->cold.partition_create(w.dev, &d, &w.part[1]));
	sure(b->cold.mem_free(w.dev, mem));
	sure(b->cold.program_unload(w.dev, prog));
	end(&w);
	unsetenv("HAL_STAND_IN_XRT_SHARED");
	close(said[0]);
	close(said[1]);
	close(fd);
	unlink(shared);
}

/* Another process, which loads this when it is told to, and has slot 0 then. */
static pid_t fork_later(const struct hal_bk_config *cfg, const int said[2],
			const int told[2])
{
	const pid_t child = fork();
	char c;

	if (child)
		return child;
	close(told[1]);
	if (read(told[0], &c, 1) != 1)
		_exit(1);
	hold_slot(cfg, said[1], told[0]);
	return 0;
}

/* While we have no slot another process may load what it likes: what we had loaded is
 * there no more, and a slot is had all the same; its units come with what is loaded. */
static void replaced_by_another_process(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	const struct hal_bk_config other = {.xclbin = stop_file, .clock = 1};
	const struct hal_bk_partition_desc d = {
		.units = 1, .col = 1, .rows = 1, .cols = 1, .color_mask = 3};
	char shared[] = "/tmp/hal_fpga_cards_XXXXXX", c = 0;
	int said[2], told[2], status, fd = mkstemp(shared);
	struct hal_bk_arg args[2] = {{NULL, 0, 64}, {NULL, 1000, 0}};
	struct world w;
	pid_t child;

	(void)state;
	assert_true(fd >= 0 && !pipe(said) && !pipe(told));
	setenv("HAL_STAND_IN_XRT_SHARED", shared, 1);
	child = fork_later(&other, said, told);
	close(told[0]);
	w = begin(&cfg, 0);
	assert_int_equal(write(told[1], &c, 1), 1);
	assert_int_equal(read(said[0], &c, 1), 1);
	sure(b->cold.partition_create(w.dev, &d, &w.part[0]));
	sure(b->cold.queue_create(w.dev, w.part[0], 0, &w.queue[0]));
	args[0].mem = buffer(&w, 0, 64, 2);
	(void)loads();
	sure(launch(&w, 0, kernel_of(&w, w.prog, "work"), args, 2, 1));
	fails(&w, 0, "xrtDeviceLoadXclbin: EBUSY");
	close(told[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	sure(launch(&w, 0, kernel_of(&w, w.prog, "work"), args, 2, 1));
	assert_int_equal(next(&w).status, 0);
	assert_int_equal(loads(), 1);
	sure(b->cold.mem_free(w.dev, args[0].mem));
	end(&w);
	unsetenv("HAL_STAND_IN_XRT_SHARED");
	close(said[0]);
	close(said[1]);
	close(fd);
	unlink(shared);
}

/* In the moment in which a unit is closed another process takes it: its slot is the
 * other's until it gives it back, and then ours again. */
static void taken_in_the_gap(void **state)
{
	static const char his[] = "xrtPLKernelOpenExclusive: EBUSY: slot 0, unit "
				  "work:{work_1}: used by another process";
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	char shared[] = "/tmp/hal_fpga_cards_XXXXXX";
	int fd = mkstemp(shared);
	struct hal_bk_arg args[2] = {{NULL, 0, 64}, {NULL, 1000, 0}};
	struct world w;
	uint32_t i;

	(void)state;
	setenv("HAL_STAND_IN_XRT_SHARED", shared, 1);
	w = begin(&cfg, 2);
	args[0].mem = buffer(&w, 0, 64, 2);
	assert_int_equal(stand_in()->break_call("xrtPLKernelOpenExclusive", 1, EBUSY), 0);
	sure(launch(&w, 0, kernel_of(&w, w.prog, "wild"), args, 1, 1));
	fails(&w, 0, "ERT_CMD_STATE_ERROR (5): kernel wild in slot 0");
	/* Unit 0 of card 0. */
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &l), 0);
	for (i = 0; i < 2; i++) {
		sure(launch(&w, 0, kernel_of(&w, w.prog, "work"), args, 2, 2));
		fails(&w, 0, his);
	}
	close(fd);
	sure(launch(&w, 0, kernel_of(&w, w.prog, "work"), args, 2, 3));
	assert_int_equal(next(&w).status, 0);
	sure(b->cold.mem_free(w.dev, args[0].mem));
	end(&w);
	unsetenv("HAL_STAND_IN_XRT_SHARED");
	unlink(shared);
}

/* ---- configurations ------------------------------------------------------------------ */

static void configurations(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct world w = begin(&cfg, 3);
	void *prog = load(&w, second_text), *mem[3];
	struct hal_bk_arg args[2][2];
	struct hal_bk_cmd fill = {.op = HAL_OP_FILL, .cookie = 9};
	struct hal_bk_event e[5];
	uint8_t data[64], got[64];
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		mem[i] = buffer(&w, 0, 64, 2);
	for (i = 0; i < 64; i++)
		data[i] = (uint8_t)i;
	sure(b->cold.mem_write(w.dev, mem[1], 0, data, 64));
	(void)loads();
	/* What runs ends first; what does not need the slots goes on. */
	args[0][0] = (struct hal_bk_arg){mem[0], 0, 4};
	args[0][1] = (struct hal_bk_arg){NULL, 50000, 0};
	args[1][0] = (struct hal_bk_arg){mem[2], 0, 64};
	args[1][1] = (struct hal_bk_arg){mem[1], 0, 64};
	sure(launch(&w, 0, kernel_of(&w, w.prog, "work"), args[0], 2, 1));
	sure(launch(&w, 1, kernel_of(&w, prog, "twice"), args[1], 2, 2));
	sure(launch(&w, 0, kernel_of(&w, w.prog, "work"), args[0], 2, 3));
	fill.fill.dst = mem[0];
	fill.fill.offset = 32;
	fill.fill.bytes = 4;
	fill.fill.pattern = 5;
	sure(b->hot.submit(w.dev, w.queue[2], &fill));
	for (i = 0; i < 4; i++) {
		e[i] = next(&w);
		assert_int_equal(e[i].status, 0);
	}
	assert_int_equal(e[0].cookie, 9);
	assert_int_equal(e[1].cookie, 1);
	assert_int_equal(e[2].cookie, 2);
	assert_int_equal(e[3].cookie, 3);
	/* Loading is nobody's time. */
	assert_true(e[2].start_ns > e[1].end_ns + 1000000);
	assert_true(e[2].end_ns - e[2].start_ns < 10000);
	assert_int_equal(loads(), 2);
	sure(b->cold.mem_read(w.dev, mem[2], 0, got, 64));
	for (i = 0; i < 64; i++)
		assert_int_equal(got[i], 2 * i);
	/* It is there: nothing is loaded. */
	sure(launch(&w, 2, kernel_of(&w, w.prog, "work"), args[0], 2, 4));
	assert_int_equal(next(&w).status, 0);
	assert_int_equal(loads(), 0);
	for (i = 0; i < 3; i++)
		sure(b->cold.mem_free(w.dev, mem[i]));
	sure(b->cold.program_unload(w.dev, prog));
	end(&w);
}

/* A card that does not retain its memory takes another configuration only where there is
 * no buffer. */
static void memory_is_not_retained(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct world w = begin(&cfg, 1);
	void *prog = load(&w, second_text), *mem = buffer(&w, 0, 64, 2);
	struct hal_bk_arg args[2] = {{mem, 0, 64}, {mem, 0, 64}};

	(void)state;
	setenv("HAL_STAND_IN_XRT_RETAIN", "0", 1);
	sure(launch(&w, 0, kernel_of(&w, prog, "twice"), args, 2, 1));
	fails(&w, 0,
	      "xrtDeviceLoadXclbin: EPERM: buffers exist, and the card does "
	      "not retain memory");
	/* What was there still is. */
	args[1] = (struct hal_bk_arg){NULL, 1000, 0};
	sure(launch(&w, 0, kernel_of(&w, w.prog, "work"), args, 2, 2));
	assert_int_equal(next(&w).status, 0);
	unsetenv("HAL_STAND_IN_XRT_RETAIN");
	sure(b->cold.mem_free(w.dev, mem));
	sure(b->cold.program_unload(w.dev, prog));
	end(&w);
}

/* Between a load and the look at it another process loads: nobody knows what is there,
 * and who comes next has his loaded, also what was there before. */
static void another_was_quicker(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	const struct hal_bk_partition_desc d = {
		.index = 2, .units = 1, .col = 2, .rows = 1, .cols = 1, .color_mask = 3};
	struct world w = begin(&cfg, 2);
	void *prog = load(&w, second_text), *mem = buffer(&w, 0, 64, 2);
	const struct hal_bk_arg both[2] = {{mem, 0, 64}, {mem, 0, 64}};
	const struct hal_bk_arg args[2] = {{mem, 0, 64}, {NULL, 1000, 0}};
	void *work = kernel_of(&w, w.prog, "work");
	struct hal_bk_event e;
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		(void)loads();
		stand_in()->steal(0);
		sure(launch(&w, i, kernel_of(&w, prog, "twice"), both, 2, 1));
		e = next(&w);
		assert_int_equal(e.status, -EIO);
		assert_string_equal(e.fault, "xrtDeviceGetXclbinUUID: another xclbin is "
					     "on the card");
		/* A slot can be taken even so. */
		if (!i) {
			sure(b->cold.partition_create(w.dev, &d, &w.part[2]));
			sure(b->cold.queue_create(w.dev, w.part[2], 0, &w.queue[2]));
		}
		sure(launch(&w, 2, work, args, 2, 2));
		e = next(&w);
		if (e.status)
			fail_msg("%s", e.fault);
		assert_int_equal(loads(), 2);
	}
	sure(b->cold.mem_free(w.dev, mem));
	sure(b->cold.program_unload(w.dev, prog));
	end(&w);
}

static void refuse(struct world *w, const char *text, const char *why)
{
	size_t size;
	void *prog, *image = make_image(text, &size);

	assert_int_equal(b->cold.program_load(w->dev, image, size, &prog), -EINVAL);
	free(image);
	if (!strstr(host_text, why))
		fail_msg("%s: not %s", host_text, why);
}

static void other_cards(void **state)
{
	const struct hal_bk_config none = {.clock = 1};
	const struct hal_bk_config missing = {.xclbin = "/nowhere", .clock = 1};
	const struct hal_bk_config folder = {.xclbin = "/tmp", .clock = 1};
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct world w;
	void *dev;

	(void)state;
	stand_in()->reset();
	assert_int_equal(b->cold.open(&none, 0, &dev), -EINVAL);
	assert_non_null(strstr(host_text, "name the file that is to be on the card"));
	assert_int_equal(b->cold.open(&missing, 0, &dev), -ENOENT);
	assert_int_equal(b->cold.open(&folder, 0, &dev), -EINVAL);
	assert_int_equal(b->cold.open(&cfg, 2, &dev), -ENODEV);
	/* It is of another platform than the card: XRT says so, without a reason. */
	assert_int_equal(b->cold.open(&cfg, 1, &dev), -EINVAL);
	assert_non_null(
		strstr(host_text, "xrtDeviceLoadXclbin: EINVAL: xclbin=/tmp/hal_"));
	assert_non_null(strstr(host_text, ", for platform hal_stand_in_1"));
	w = begin(&cfg, 1);
	refuse(&w, "platform another\n" BANKS "kernel work 1\n",
	       "the xclbin is for platform another, but the one on the card is for "
	       "hal_stand_in_1");
	refuse(&w, "bank DDR[0] ddr4 0x0 16M\nkernel work 1\n",
	       "bank 1 is  of 0 MiB in the xclbin, but DDR[1] of 16 MiB on the card");
	refuse(&w, "bank A ddr4 0x0 8M\nbank B ddr4 0x0 8M\nkernel work 1\n",
	       "bank 0 is A of 8 MiB");
	refuse(&w,
	       "bank DDR[0] ddr4 0x0 16M\nbank B ddr4 0x100000000 16M\nkernel work 1\n",
	       "bank 1, B in the xclbin and DDR[1] on the card, differs in type, tag");
	refuse(&w,
	       "bank DDR[0] hbm 0x0 16M\nbank DDR[1] ddr4 0x100000000 16M\n"
	       "kernel work 1\n",
	       "bank 0, DDR[0] in the xclbin and DDR[0] on the card, differs in type");
	refuse(&w, BANKS "bank S streaming 0x0 0K\nkernel work 1\n",
	       "MEM_TOPOLOGY has 3 banks in the xclbin, but 2 on the card");
	end(&w);
}

/* ---- stopping inside ----------------------------------------------------------------- */

enum { SPIN_NS = 2000000, SPIN_STEP_NS = 31250, STATE_BYTES = 72 };

static struct world begin_stops(uint32_t count)
{
	const struct hal_bk_config cfg = {.xclbin = stop_file, .clock = 1};
	struct world w = begin(&cfg, count);

	sure(b->cold.program_unload(w.dev, w.prog));
	w.prog = load(&w, stop_text);
	return w;
}

/* Nothing ends before that. */
static void pass(struct world *w, uint64_t ns)
{
	struct hal_bk_event e;

	assert_int_equal(b->hot.poll(w->dev, b->hot.now(w->dev) + ns, &e, 1), 0);
}

static struct hal_bk_event fold(struct world *w, void *queue)
{
	struct hal_bk_event e;

	sure(b->hot.suspend(w->dev, queue, HAL_SUSPEND_FOLD, 77));
	e = next(w);
	assert_int_equal(e.kind, HAL_BK_QUIET);
	assert_int_equal(e.cookie, 77);
	assert_int_equal(e.status, 0);
	return e;
}

static bool spun(struct world *w, void *mem)
{
	uint8_t got[64];
	uint32_t i;

	sure(b->cold.mem_read(w->dev, mem, 0, got, 64));
	for (i = 0; i < 64 && got[i] == (uint8_t)(i * 7 + 1); i++)
		;
	return i == 64;
}

/* Its slot is another's meanwhile, what it had done it does not do again, and what comes
 * out of it is as if it had not been stopped. */
static void stopped_inside(void **state)
{
	struct world w = begin_stops(1);
	void *mem = buffer(&w, 0, 64, 1), *other = buffer(&w, 0, 4, 1);
	const struct hal_bk_arg spin[1] = {{mem, 0, 64}};
	const struct hal_bk_arg work[2] = {{other, 0, 4},
					   {NULL, UINT64_C(2) * SPIN_NS, 0}};
	struct hal_bk_event e;
	uint64_t ran, asked;
	uint32_t i;

	(void)state;
	sure(launch(&w, 0, kernel_of(&w, w.prog, "spin"), spin, 1, 1));
	pass(&w, SPIN_NS / 2);
	asked = b->hot.now(w.dev);
	e = fold(&w, w.queue[0]);
	assert_true(b->hot.now(w.dev) - asked <= SPIN_STEP_NS + 1000);
	assert_int_equal(e.bytes_written, STATE_BYTES);
	assert_int_equal(e.bytes_read, 0);
	ran = e.end_ns - e.start_ns;
	assert_true(ran >= SPIN_NS / 2 && ran <= SPIN_NS / 2 + 2 * SPIN_STEP_NS);
	assert_false(spun(&w, mem));
	/* Another queue's run in the only slot, twice as long as it. */
	sure(b->cold.queue_create(w.dev, w.part[0], 0, &w.queue[1]));
	sure(launch(&w, 1, kernel_of(&w, w.prog, "work"), work, 2, 2));
	assert_int_equal(next(&w).cookie, 2);
	assert_false(spun(&w, mem));
	/* Three times more. */
	for (i = 0; i < 3; i++) {
		sure(b->hot.resume(w.dev, w.queue[0]));
		pass(&w, SPIN_NS / 10);
		e = fold(&w, w.queue[0]);
		assert_int_equal(e.bytes_written, STATE_BYTES);
		assert_int_equal(e.bytes_read, STATE_BYTES);
		ran += e.end_ns - e.start_ns;
	}
	sure(b->hot.resume(w.dev, w.queue[0]));
	e = next(&w);
	assert_int_equal(e.kind, HAL_BK_DONE);
	assert_int_equal(e.cookie, 1);
	assert_int_equal(e.status, 0);
	ran += e.end_ns - e.start_ns;
	assert_true(ran >= SPIN_NS && ran < SPIN_NS + 5 * 5000);
	assert_true(spun(&w, mem));
	sure(b->cold.mem_free(w.dev, mem));
	sure(b->cold.mem_free(w.dev, other));
	end(&w);
}

static const char *on_unit(const char *kernel)
{
	static struct fpga_stand_in_job jobs[256];
	const char *last = "";
	uint32_t i, n = stand_in()->jobs(jobs, 256);

	for (i = 0; i < n; i++)
		if (strncmp(jobs[i].what, kernel, strlen(kernel)) == 0)
			last = jobs[i].what;
	return last;
}

/* What a run has left goes on in whatever slot is free, and after another configuration
 * has been on the card. */
static void goes_on_elsewhere(void **state)
{
	const struct hal_bk_partition_desc d = {
		.units = 2, .rows = 1, .cols = 2, .color_mask = 3};
	struct world w = begin_stops(0);
	void *prog = load(&w, second_text), *mem, *other;
	struct hal_bk_arg spin[1] = {{NULL, 0, 64}};
	struct hal_bk_arg work[2] = {{NULL, 0, 4}, {NULL, UINT64_C(9) * SPIN_NS, 0}};
	struct hal_bk_event e;
	uint64_t ran;
	uint32_t i;

	(void)state;
	sure(b->cold.partition_create(w.dev, &d, &w.part[0]));
	for (i = 0; i < 2; i++)
		sure(b->cold.queue_create(w.dev, w.part[0], 0, &w.queue[i]));
	spin[0].mem = mem = buffer(&w, 0, 64, 1);
	work[0].mem = other = buffer(&w, 0, 4, 1);
	sure(launch(&w, 0, kernel_of(&w, w.prog, "spin"), spin, 1, 1));
	pass(&w, SPIN_NS / 4);
	e = fold(&w, w.queue[0]);
	ran = e.end_ns - e.start_ns;
	assert_string_equal(on_unit("spin"), "spin:{spin_1}");
	/* Its slot is another's now. */
	sure(launch(&w, 1, kernel_of(&w, w.prog, "work"), work, 2, 2));
	sure(b->hot.resume(w.dev, w.queue[0]));
	pass(&w, SPIN_NS / 4);
	e = fold(&w, w.queue[0]);
	ran += e.end_ns - e.start_ns;
	assert_int_equal(e.bytes_read, STATE_BYTES);
	assert_string_equal(on_unit("spin"), "spin:{spin_2}");
	assert_int_equal(next(&w).cookie, 2);
	/* And now the whole card is. */
	work[1].value = 1000;
	sure(launch(&w, 1, kernel_of(&w, prog, "stream"), work, 2, 3));
	e = next(&w);
	assert_int_equal(e.cookie, 3);
	assert_int_equal(e.status, 0);
	sure(b->hot.resume(w.dev, w.queue[0]));
	e = next(&w);
	assert_int_equal(e.cookie, 1);
	assert_int_equal(e.status, 0);
	assert_int_equal(loads(), 2);
	ran += e.end_ns - e.start_ns;
	assert_true(ran >= SPIN_NS && ran < SPIN_NS + 3 * 5000);
	assert_true(spun(&w, mem));
	sure(b->cold.mem_free(w.dev, mem));
	sure(b->cold.mem_free(w.dev, other));
	sure(b->cold.program_unload(w.dev, prog));
	end(&w);
}

/* What is written before the card has begun the run is gone when it does: it is written
 * again. */
static void asked_too_early(void **state)
{
	struct world w = begin_stops(1);
	void *mem = buffer(&w, 0, 64, 1);
	const struct hal_bk_arg args[1] = {{mem, 0, 64}};
	struct hal_bk_event e;

	(void)state;
	sure(launch(&w, 0, kernel_of(&w, w.prog, "spin"), args, 1, 1));
	e = fold(&w, w.queue[0]);
	assert_true(e.end_ns > e.start_ns);
	assert_true(e.end_ns - e.start_ns < SPIN_NS / 10);
	/* Kept by the device, it goes with the queue, and nobody hears of it. */
	sure(b->cold.queue_destroy(w.dev, w.queue[0]));
	w.queue[0] = NULL;
	pass(&w, SPIN_NS);
	assert_false(spun(&w, mem));
	sure(b->cold.mem_free(w.dev, mem));
	end(&w);
}

/* What waits for a slot, or behind what does not stop, has not begun and does not. */
static void not_begun(void **state)
{
	struct world w = begin_stops(1);
	void *mem = buffer(&w, 0, 64, 1);
	const struct hal_bk_arg args[2] = {{mem, 0, 64}, {NULL, SPIN_NS, 0}};
	struct hal_bk_event e;

	(void)state;
	sure(b->cold.queue_create(w.dev, w.part[0], 0, &w.queue[1]));
	sure(launch(&w, 0, kernel_of(&w, w.prog, "work"), args, 2, 1));
	sure(launch(&w, 0, kernel_of(&w, w.prog, "work"), args, 2, 2));
	sure(launch(&w, 1, kernel_of(&w, w.prog, "spin"), args, 1, 3));
	e = fold(&w, w.queue[1]);
	assert_int_equal(e.start_ns, e.end_ns);
	assert_int_equal(e.bytes_written, 0);
	sure(b->hot.suspend(w.dev, w.queue[0], HAL_SUSPEND_FOLD, 78));
	e = next(&w);
	assert_int_equal(e.cookie, 1);
	assert_int_equal(e.kind, HAL_BK_DONE);
	e = next(&w);
	assert_int_equal(e.kind, HAL_BK_QUIET);
	assert_int_equal(e.cookie, 78);
	assert_int_equal(e.start_ns, e.end_ns);
	pass(&w, UINT64_C(9) * SPIN_NS);
	sure(b->hot.resume(w.dev, w.queue[1]));
	e = next(&w);
	assert_int_equal(e.cookie, 3);
	assert_true(spun(&w, mem));
	sure(b->hot.resume(w.dev, w.queue[0]));
	e = next(&w);
	assert_int_equal(e.cookie, 2);
	assert_int_equal(e.status, 0);
	sure(b->cold.mem_free(w.dev, mem));
	end(&w);
}

/* Kernels that say that they stop and do not. */
static void no_such_kernel(void **state)
{
	struct world w = begin_stops(2);
	void *mem = buffer(&w, 0, 64, 1);
	const struct hal_bk_arg args[1] = {{mem, 0, 64}};
	struct hal_bk_event e;

	(void)state;
	sure(launch(&w, 0, kernel_of(&w, w.prog, "deaf"), args, 1, 1));
	sure(b->hot.suspend(w.dev, w.queue[0], HAL_SUSPEND_FOLD, 77));
	e = next(&w);
	assert_int_equal(e.kind, HAL_BK_DONE);
	assert_int_equal(e.status, 0);
	assert_int_equal(next(&w).kind, HAL_BK_QUIET);
	sure(launch(&w, 1, kernel_of(&w, w.prog, "liar"), args, 1, 2));
	sure(b->hot.suspend(w.dev, w.queue[1], HAL_SUSPEND_FOLD, 78));
	e = next(&w);
	assert_int_equal(e.cookie, 2);
	assert_int_equal(e.status, -EIO);
	assert_string_equal(e.fault, "hal_stop is 0xffffffff: kernel liar in slot 1");
	assert_int_equal(next(&w).kind, HAL_BK_QUIET);
	sure(b->cold.mem_free(w.dev, mem));
	end(&w);
}

static void stop_refused(void **state)
{
	const struct hal_bk_config none = {.xclbin = first_file, .clock = 1};
	struct hal_device_info info = {.size = sizeof(info)};
	struct world w = begin(&none, 1);
	struct hal_bk_arg args[1] = {{NULL, 0, 64}};
	struct hal_bk_event e;
	void *all;

	(void)state;
	assert_int_equal(b->hot.suspend(w.dev, w.queue[0], HAL_SUSPEND_FOLD, 1),
			 -ENOTSUP);
	sure(b->cold.get_info(w.dev, &info));
	assert_int_equal(info.preempt, HAL_PREEMPT_BETWEEN);
	end(&w);
	w = begin_stops(1);
	sure(b->cold.get_info(w.dev, &info));
	assert_int_equal(info.preempt, HAL_PREEMPT_INSIDE);
	assert_int_equal(info.suspend_modes,
			 1u << HAL_SUSPEND_DRAIN | 1u << HAL_SUSPEND_FOLD);
	assert_int_equal(b->hot.suspend(w.dev, w.queue[0], HAL_SUSPEND_SAVE, 1),
			 -ENOTSUP);
	args[0].mem = buffer(&w, 0, 64, 1);
	/* Where its state goes there is no room. */
	sure(allocate(&w, 0, 16u << 20, 2, &all));
	assert_int_equal(launch(&w, 0, kernel_of(&w, w.prog, "spin"), args, 1, 1),
			 -ENOSPC);
	assert_string_equal(host_text, "fpga:0: kernel spin: no bank of the partition "
				       "that its units access as hal_state has "
				       "4096 bytes free");
	sure(b->cold.mem_free(w.dev, all));
	/* The register cannot be written: the suspend is refused, the run goes on. */
	sure(launch(&w, 0, kernel_of(&w, w.prog, "spin"), args, 1, 1));
	assert_int_equal(stand_in()->break_call("xrtKernelWriteRegister", 1, EIO), 0);
	assert_int_equal(b->hot.suspend(w.dev, w.queue[0], HAL_SUSPEND_FOLD, 1), -EIO);
	assert_string_equal(host_text, "fpga: xrtKernelWriteRegister: EIO: cannot stop "
				       "the run");
	e = next(&w);
	assert_int_equal(e.kind, HAL_BK_DONE);
	assert_int_equal(e.status, 0);
	assert_true(spun(&w, args[0].mem));
	/* Or not read: nobody knows how it ended. */
	sure(launch(&w, 0, kernel_of(&w, w.prog, "spin"), args, 1, 1));
	assert_int_equal(stand_in()->break_call("xrtKernelReadRegister", 1, EIO), 0);
	sure(b->hot.suspend(w.dev, w.queue[0], HAL_SUSPEND_FOLD, 1));
	e = next(&w);
	assert_int_equal(e.status, -EIO);
	assert_string_equal(e.fault, "xrtKernelReadRegister: EIO: kernel spin in slot 0");
	assert_int_equal(next(&w).kind, HAL_BK_QUIET);
	sure(b->cold.mem_free(w.dev, args[0].mem));
	end(&w);
}

/* ---- what goes wrong ----------------------------------------------------------------- */

static void hung(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1, .hang_ms = 5};
	struct world w = begin(&cfg, 2);
	void *mem = buffer(&w, 0, 64, 2);
	struct hal_bk_arg args[2] = {{mem, 0, 64}, {NULL, 9000000, 0}};
	void *work = kernel_of(&w, w.prog, "work"), *never;
	struct hal_bk_event e;

	(void)state;
	never = kernel_of(&w, w.prog, "never");
	sure(launch(&w, 0, never, args, 1, 1));
	sure(launch(&w, 0, never, args, 1, 2));
	args[1].value = 4000000;
	sure(launch(&w, 1, work, args, 2, 3));
	e = next(&w);
	assert_int_equal(e.cookie, 3);
	assert_int_equal(e.status, 0);
	e = next(&w);
	assert_int_equal(e.cookie, 1);
	assert_int_equal(e.status, -EIO);
	assert_string_equal(e.fault, "hung for 5 ms: kernel never in slot 0");
	assert_int_equal(e.end_ns - e.start_ns, 5000000);
	e = next(&w);
	assert_int_equal(e.cookie, 2);
	assert_int_equal(e.status, -ECANCELED);
	assert_int_equal(launch(&w, 0, work, args, 2, 4), -EIO);
	/* The slot is good again, for another queue. */
	sure(b->cold.queue_destroy(w.dev, w.queue[0]));
	sure(b->cold.queue_create(w.dev, w.part[0], 0, &w.queue[0]));
	sure(launch(&w, 0, work, args, 2, 5));
	assert_int_equal(next(&w).status, 0);
	sure(b->cold.mem_free(w.dev, mem));
	end(&w);
}

/* Each way in which XRT says that a run has failed; the slot is good again. */
static void ends_of_runs(void **state)
{
	static const struct {
		uint32_t state;
		const char *text;
	} ends[] = {
		{XRT_ERROR, "ERT_CMD_STATE_ERROR (5)"},
		{XRT_ABORT, "ERT_CMD_STATE_ABORT (6)"},
		{XRT_TIMEOUT, "ERT_CMD_STATE_TIMEOUT (8)"},
		{XRT_NORESPONSE, "ERT_CMD_STATE_NORESPONSE (9)"},
		{XRT_SKERROR, "ERT_CMD_STATE_SKERROR (10)"},
		{XRT_SKCRASHED, "ERT_CMD_STATE_SKCRASHED (11)"},
		{12, "unknown state (12)"},
	};
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct world w = begin(&cfg, 2);
	void *mem = buffer(&w, 0, 64, 2), *work = kernel_of(&w, w.prog, "work");
	const struct hal_bk_arg args[2] = {{mem, 0, 64}, {NULL, 1000, 0}};
	uint32_t got = 0, i;
	struct hal_bk_event e;
	char text[96];

	(void)state;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		assert_int_equal(stand_in()->end_as(0, "work:{work_1}", ends[i].state),
				 0);
		sure(launch(&w, 0, work, args, 2, 1));
		e = next(&w);
		assert_int_equal(e.status, -EIO);
		snprintf(text, sizeof(text), "%s: kernel work in slot 0", ends[i].text);
		assert_string_equal(e.fault, text);
		sure(b->cold.queue_destroy(w.dev, w.queue[0]));
		sure(b->cold.queue_create(w.dev, w.part[0], 0, &w.queue[0]));
		sure(launch(&w, 0, work, args, 2, 2));
		assert_int_equal(next(&w).status, 0);
	}
	sure(b->cold.mem_read(w.dev, mem, 0, &got, 4));
	assert_int_equal(got, i);
	sure(b->cold.mem_free(w.dev, mem));
	end(&w);
}

/* A unit that hangs, and is not reset by being closed and opened: its slot goes out of
 * service, its neighbour goes on, and what the card has is all that it will have. */
static void hangs_for_good(void **state)
{
	static const char retired[] = "slot 0 still hangs after its units were "
				      "reopened; reset the card";
	static const char refused[] = "xrtDeviceLoadXclbin: EDEADLK: a unit hangs; reset "
				      "the card";
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct world w = begin(&cfg, 2);
	void *prog = load(&w, second_text), *mem = buffer(&w, 0, 64, 2);
	const struct hal_bk_arg both[2] = {{mem, 0, 64}, {mem, 0, 64}};
	const struct hal_bk_arg args[2] = {{mem, 0, 64}, {NULL, 1000, 0}};
	void *work = kernel_of(&w, w.prog, "work");
	uint64_t begun;
	uint32_t i;

	(void)state;
	assert_int_equal(stand_in()->hang(0, "work:{work_1}"), 0);
	for (i = 0; i < 2; i++) {
		sure(launch(&w, 0, work, args, 2, 1));
		fails(&w, 0, "ERT_CMD_STATE_TIMEOUT (8): kernel work in slot 0");
	}
	begun = stand_in()->calls("xrtRunStart");
	sure(launch(&w, 0, work, args, 2, 1));
	fails(&w, 0, retired);
	assert_int_equal(stand_in()->calls("xrtRunStart"), begun);
	sure(launch(&w, 1, work, args, 2, 2));
	assert_int_equal(next(&w).status, 0);
	sure(launch(&w, 1, kernel_of(&w, prog, "twice"), both, 2, 3));
	fails(&w, 1, refused);
	sure(launch(&w, 0, work, args, 2, 1));
	fails(&w, 0, retired);
	sure(launch(&w, 1, work, args, 2, 2));
	assert_int_equal(next(&w).status, 0);
	sure(b->cold.mem_free(w.dev, mem));
	sure(b->cold.program_unload(w.dev, prog));
	end(&w);
}

/* A slot that does not come back is out of service, and says why; each launch has it
 * tried once more. */
static void broken_slot(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct world w = begin(&cfg, 2);
	void *mem = buffer(&w, 0, 64, 2);
	struct hal_bk_arg args[2] = {{mem, 0, 64}, {NULL, 1000, 0}};
	void *work = kernel_of(&w, w.prog, "work");
	struct hal_bk_event e;

	(void)state;
	assert_int_equal(stand_in()->break_call("xrtRunOpen", 1, EIO), 0);
	sure(launch(&w, 0, kernel_of(&w, w.prog, "wild"), args, 1, 1));
	e = next(&w);
	assert_int_equal(e.status, -EIO);
	assert_string_equal(e.fault, "ERT_CMD_STATE_ERROR (5): kernel wild in slot 0");
	sure(b->cold.queue_destroy(w.dev, w.queue[0]));
	sure(b->cold.queue_create(w.dev, w.part[0], 0, &w.queue[0]));
	assert_int_equal(stand_in()->break_call("xrtRunOpen", 1, EIO), 0);
	sure(launch(&w, 0, work, args, 2, 2));
	fails(&w, 0, "xrtRunOpen: EIO: slot 0, unit work:{work_1}");
	sure(launch(&w, 1, work, args, 2, 3));
	assert_int_equal(next(&w).status, 0);
	sure(launch(&w, 0, work, args, 2, 4));
	assert_int_equal(next(&w).status, 0);
	sure(b->cold.mem_free(w.dev, mem));
	end(&w);
}

static void lost(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file, .clock = 1};
	struct world w = begin(&cfg, 3);
	void *mem = buffer(&w, 0, 64, 2);
	struct hal_bk_arg args[2] = {{mem, 0, 64}, {NULL, 1000000, 0}};
	void *work = kernel_of(&w, w.prog, "work");
	uint64_t told = 0;
	struct hal_bk_event e;
	int i;

	(void)state;
	sure(launch(&w, 0, work, args, 2, 1));
	sure(launch(&w, 0, work, args, 2, 2));
	sure(launch(&w, 1, work, args, 2, 3));
	stand_in()->lose(0);
	for (i = 0; i < 3; i++) {
		e = next(&w);
		told |= UINT64_C(1) << e.cookie;
		assert_int_equal(e.status, e.cookie == 2 ? -ECANCELED : -EIO);
	}
	assert_int_equal(told, 0xe);
	assert_int_equal(b->hot.poll(w.dev, 0, &e, 1), -EIO);
	assert_non_null(strstr(host_text, "the card is lost"));
	assert_int_equal(launch(&w, 0, work, args, 2, 4), -EIO);
	/* Also where nothing has failed. */
	host_text[0] = 0;
	assert_int_equal(launch(&w, 2, work, args, 2, 5), -EIO);
	assert_non_null(strstr(host_text, "the card is lost"));
	assert_int_not_equal(b->cold.mem_write(w.dev, mem, 0, &told, 8), 0);
	sure(b->cold.mem_free(w.dev, mem));
	end(&w);
}

/* The card goes while another configuration comes, and everything is put away meanwhile,
 * that configuration's program as well. */
static void lost_while_it_loads(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file};
	struct world w = begin(&cfg, 2);
	void *slow = load(&w, slow_text), *mem = buffer(&w, 1, 4, 2);
	const struct hal_bk_arg args[2] = {{mem, 0, 4}, {NULL, 1000, 0}};

	(void)state;
	sure(launch(&w, 1, kernel_of(&w, slow, "stream"), args, 2, 1));
	stand_in()->lose(0);
	assert_int_not_equal(b->cold.mem_write(w.dev, mem, 0, &w, 4), 0);
	sure(b->cold.queue_destroy(w.dev, w.queue[1]));
	w.queue[1] = NULL;
	sure(b->cold.program_unload(w.dev, slow));
	sure(b->cold.mem_free(w.dev, mem));
	end(&w);
}

/* By the clock of the host: the engine's thread makes no call that waits, also while a
 * configuration is loaded and copies are under way. */
static void never_waits(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file};
	struct world w = begin(&cfg, 3);
	void *prog = load(&w, second_text), *mem = buffer(&w, 0, 1 << 20, 2);
	struct hal_bk_arg args[2] = {{mem, 0, 64}, {NULL, 100000, 0}};
	struct hal_bk_cmd copy = {.op = HAL_OP_COPY, .cookie = 7};
	void *work = kernel_of(&w, w.prog, "work");
	void *stream = kernel_of(&w, prog, "stream");
	const char *text;
	int i;

	(void)state;
	copy.copy.dst = copy.copy.src = mem;
	copy.copy.dst_offset = 1 << 19;
	copy.copy.bytes = 1 << 19;
	stand_in()->hot(1);
	for (i = 0; i < 5; i++) {
		sure(launch(&w, 0, work, args, 2, 1));
		sure(launch(&w, 1, stream, args, 2, 2));
		sure(b->hot.submit(w.dev, w.queue[2], &copy));
		assert_int_equal(next(&w).status, 0);
		assert_int_equal(next(&w).status, 0);
		assert_int_equal(next(&w).status, 0);
	}
	/* Nor to have a slot again on which a run has failed. */
	sure(launch(&w, 0, kernel_of(&w, w.prog, "wild"), args, 1, 1));
	assert_int_equal(next(&w).status, -EIO);
	stand_in()->hot(0);
	if (stand_in()->misuse(&text))
		fail_msg("%s", text);
	sure(b->cold.mem_free(w.dev, mem));
	sure(b->cold.program_unload(w.dev, prog));
	end(&w);
}

/* What the stand-in is held to elsewhere is noticed: a call that waits is one. */
static void waits_are_noticed(void **state)
{
	const struct hal_bk_config cfg = {.xclbin = first_file};
	struct world w = begin(&cfg, 1);
	void *mem = buffer(&w, 0, 64, 2);
	const char *text;

	(void)state;
	stand_in()->hot(1);
	sure(b->cold.mem_write(w.dev, mem, 0, &w, 8));
	stand_in()->hot(0);
	assert_int_equal(stand_in()->misuse(&text), 1);
	assert_string_equal(text, "xrtBOSync waits, on a thread that may not");
	sure(b->cold.mem_free(w.dev, mem));
	sure(b->cold.queue_destroy(w.dev, w.queue[0]));
	sure(b->cold.partition_destroy(w.dev, w.part[0]));
	sure(b->cold.program_unload(w.dev, w.prog));
	b->cold.close(w.dev);
}

static int setup(void **state)
{
	(void)state;
	b = hal_backend_fpga(&host);
	first_file = make_file(first_text);
	far_file = make_file(far_text);
	stop_file = make_file(stop_text);
	return b && stand_in() ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_process), /* first: they fork */
		cmocka_unit_test(replaced_by_another_process),
		cmocka_unit_test(taken_in_the_gap),
		cmocka_unit_test(unreachable_bank),
		cmocka_unit_test(full_bank),
		cmocka_unit_test(banks_of_ones_own),
		cmocka_unit_test(neighbours_of_a_load),
		cmocka_unit_test(others_go_on_meanwhile),
		cmocka_unit_test(slots_of_a_card_being_loaded),
		cmocka_unit_test(slots_that_are_changing),
		cmocka_unit_test(numbers),
		cmocka_unit_test(groups),
		cmocka_unit_test(slots_are_exclusive),
		cmocka_unit_test(slots_are_not_inherited),
		cmocka_unit_test(configurations),
		cmocka_unit_test(memory_is_not_retained),
		cmocka_unit_test(another_was_quicker),
		cmocka_unit_test(other_cards),
		cmocka_unit_test(stopped_inside),
		cmocka_unit_test(goes_on_elsewhere),
		cmocka_unit_test(asked_too_early),
		cmocka_unit_test(not_begun),
		cmocka_unit_test(no_such_kernel),
		cmocka_unit_test(stop_refused),
		cmocka_unit_test(hung),
		cmocka_unit_test(ends_of_runs),
		cmocka_unit_test(broken_slot),
		cmocka_unit_test(hangs_for_good),
		cmocka_unit_test(lost),
		cmocka_unit_test(lost_while_it_loads),
		cmocka_unit_test(never_waits),
		cmocka_unit_test(waits_are_noticed),
		cmocka_unit_test(refused_with_eagain),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
