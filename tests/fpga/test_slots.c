/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy slots on cards that take time to be loaded: where it is better than fifo and
 * where it is not, who waits how long at most, and when the next configuration comes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <hal/ext/replay.h>
#include <hal/hal.h>

#include "host.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

enum { PROGRAMS = 3, PARTS = 2 };

static const char *files[PROGRAMS];
static const struct hal_queue_desc usual = HAL_INIT(hal_queue_desc);

struct world {
	struct hal_device *dev;
	struct hal_partition *part[PARTS];
	struct hal_program *prog[PROGRAMS];
	struct hal_kernel *work[PROGRAMS];
	struct hal_queue *q[PARTS][PROGRAMS];
	struct hal_buffer *buf[PARTS];
	uint64_t load_ns;
};

static void ok(int err)
{
	if (err < 0)
		fail_msg("%d: %s", err, hal_last_error());
}

/* One kernel on two slots; that of each program another number of bytes. */
static void describe(char text[512], unsigned int program)
{
	snprintf(text, 512,
		 "platform hal_stand_in_1\nbitstream %uK\nbank DDR[0] ddr4 0x0 16M\n"
		 "kernel work 2\narg d memory 4 0\narg ns ulong\n",
		 400 + program);
}

/* A partition on each of two slots, and there a queue of each program. */
static void begin(struct world *w, const char *const *options,
		  struct hal_queue_desc how[PROGRAMS])
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);
	struct hal_device_info info = HAL_INIT(hal_device_info);
	char target[128], text[512];

	memset(w, 0, sizeof(*w));
	stand_in()->reset();
	snprintf(target, sizeof(target), "fpga:0?clock=virtual&xclbin=%s", files[0]);
	ok(hal_open(target, options, &w->dev));
	ok(hal_device_get_info(w->dev, &info));
	assert_int_equal(info.loads, 1);
	w->load_ns = info.load_ns;
	/* As the stand-in has it: so many bytes a microsecond, above 1 ms. */
	assert_in_range(w->load_ns, 2 * MS, 3 * MS);
	d.units_floor = 1;
	b.bytes = 4096;
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		size_t size;
		void *image;

		describe(text, i);
		image = make_image(text, &size);
		ok(hal_program_load(w->dev, image, size, &w->prog[i]));
		ok(hal_kernel_find(w->prog[i], "work", &w->work[i]));
		free(image);
	}
	for (unsigned int p = 0; p < PARTS; p++) {
		ok(hal_partition_create(w->dev, &d, &w->part[p]));
		ok(hal_buffer_create(w->part[p], &b, &w->buf[p]));
		for (unsigned int i = 0; i < PROGRAMS; i++)
			ok(hal_queue_create(w->part[p], &how[i], &w->q[p][i]));
	}
}

static void end(struct world *w)
{
	struct hal_policy_info info = HAL_INIT(hal_policy_info);
	const char *text = "";

	ok(hal_device_get_policy(w->dev, &info));
	assert_int_equal(info.stalls + info.invalid + info.starved + info.fallback, 0);
	for (unsigned int p = 0; p < PARTS; p++) {
		for (unsigned int i = 0; i < PROGRAMS; i++)
			ok(hal_queue_destroy(w->q[p][i]));
		ok(hal_buffer_destroy(w->buf[p]));
		ok(hal_partition_destroy(w->part[p]));
	}
	for (unsigned int i = 0; i < PROGRAMS; i++)
		ok(hal_program_unload(w->prog[i]));
	ok(hal_close(w->dev));
	if (stand_in()->misuse(&text))
		fail_msg("misused: %s", text);
	assert_int_equal(stand_in()->live(), 0);
}

static void ask(struct world *w, unsigned int part, unsigned int program, uint64_t ns)
{
	const struct hal_arg args[2] = {{.buffer = w->buf[part], .bytes = 4},
					{.offset = ns}};
	struct hal_cmd cmd = hal_cmd_launch(w->work[program], args, 2);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = &cmd;
	d.cmd_count = 1;
	ok(hal_submit(w->q[part][program], &d, NULL));
}

static void pass(struct world *w, uint64_t ns)
{
	ok(hal_device_poll(w->dev, ns));
}

static struct hal_stats stats_of(struct hal_queue *q)
{
	struct hal_stats s = HAL_INIT(hal_stats);

	ok(hal_queue_get_stats(q, &s));
	return s;
}

static uint32_t loads(struct world *w)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);

	ok(hal_device_get_info(w->dev, &info));
	return info.loads - 1; /* that of the option xclbin */
}

#define SLOTS "hal.queue_depth=256", "policy.name=slots"
static const char *const fifo[] = {"policy.name=fifo", NULL};
static const char *const slots[] = {SLOTS, NULL};
static const char *const no_hold[] = {SLOTS, "policy.slots_hold=0", NULL};

/* Three tenants by turns, each request with a second; *misses of deadlines. */
static uint32_t by_turns(const char *const *policy, uint64_t *misses)
{
	struct hal_queue_desc how[PROGRAMS];
	struct world w;
	uint32_t n;

	*misses = 0;
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		how[i] = usual;
		how[i].deadline_ns = 200 * MS;
	}
	begin(&w, policy, how);
	for (unsigned int r = 0; r < 30; r++) {
		ask(&w, r % 2, r % PROGRAMS, 500 * US);
		pass(&w, 5 * MS);
	}
	pass(&w, UINT64_MAX);
	n = loads(&w);
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		struct hal_stats a = stats_of(w.q[0][i]), b = stats_of(w.q[1][i]);

		assert_int_equal(a.completed + b.completed, 10);
		*misses += a.deadline_misses + b.deadline_misses;
	}
	end(&w);
	return n;
}

static void fewer_loads(void **state)
{
	uint64_t misses;

	(void)state;
	/* Each request is another's, and the first finds its own there. */
	assert_int_equal(by_turns(fifo, &misses), 29);
	assert_int_equal(misses, 0);
	assert_in_range(by_turns(slots, &misses), 2, 14);
	assert_int_equal(misses, 0);
}

/* How long a request takes whose program is not there, on an idle card. */
static uint64_t alone(const char *const *policy, uint64_t deadline_ns)
{
	struct hal_queue_desc how[PROGRAMS];
	struct world w;
	uint64_t ns;

	for (unsigned int i = 0; i < PROGRAMS; i++)
		how[i] = usual;
	how[1].deadline_ns = deadline_ns;
	begin(&w, policy, how);
	ask(&w, 0, 0, 500 * US);
	pass(&w, 10 * MS);
	ask(&w, 0, 1, 500 * US);
	pass(&w, UINT64_MAX);
	assert_int_equal(loads(&w), 1);
	ns = stats_of(w.q[0][1]).latency_max_ns;
	assert_int_equal(stats_of(w.q[0][1]).deadline_misses, 0);
	end(&w);
	return ns;
}

/* An engine without a device decides the same from what is written down. */
static void is_replayed(void **state)
{
	char journal[] = "/tmp/hal_slots_XXXXXX", option[64];
	const char *const written[] = {"policy.name=slots", option, NULL};
	struct hal_replay_info info = HAL_INIT(hal_replay_info);
	uint64_t misses;
	int fd = mkstemp(journal);

	(void)state;
	assert_true(fd >= 0);
	snprintf(option, sizeof(option), "hal.journal=%s", journal);
	(void)by_turns(written, &misses);
	ok(hal_replay(journal, &info));
	assert_string_equal(info.mismatch, "");
	assert_int_equal(info.mismatches, 0);
	assert_true(info.turns > 30);
	close(fd);
	unlink(journal);
}

static void latency_is_the_price(void **state)
{
	uint64_t at_once = alone(fifo, 0), load_ns = at_once - 503 * US, held;

	(void)state;
	assert_in_range(load_ns, 2 * MS, 3 * MS);
	/* Sixteen loads of its time it waits for somebody who wants what is there. */
	held = alone(slots, 0);
	/* The load that the device has measured was without units to close and open. */
	assert_in_range(held, at_once + 16 * load_ns - 250 * US,
			at_once + 16 * load_ns + 250 * US);
	assert_int_equal(alone(no_hold, 0), at_once);
	/* With a deadline half of what that leaves: 8 ms less load and run. */
	held = alone(slots, 8 * MS);
	assert_in_range(held, at_once + MS, at_once + 3 * MS);
}

/* One program is wanted all the time (a run takes 503 us), of another a request comes
 * after 20 ms, which is as long as its own is kept. */
static uint64_t beside_a_stream(const char *const *policy, uint32_t service_class,
				uint64_t deadline_ns)
{
	struct hal_queue_desc how[PROGRAMS];
	struct world w;
	uint64_t ns;

	for (unsigned int i = 0; i < PROGRAMS; i++)
		how[i] = usual;
	how[1].service_class = (uint16_t)service_class;
	how[1].deadline_ns = deadline_ns;
	begin(&w, policy, how);
	for (unsigned int r = 0; r < 400; r++) {
		for (unsigned int k = 0; k < (r == 0 ? 20 : 1); k++)
			ask(&w, 0, 0, 500 * US);
		if (r == 40)
			ask(&w, 1, 1, 500 * US);
		pass(&w, 500 * US);
	}
	pass(&w, UINT64_MAX);
	assert_int_equal(stats_of(w.q[0][0]).completed, 419);
	assert_int_equal(stats_of(w.q[1][1]).completed, 1);
	assert_int_equal(stats_of(w.q[1][1]).deadline_misses, 0);
	assert_in_range(loads(&w), 2, 3);
	ns = stats_of(w.q[1][1]).latency_max_ns;
	end(&w);
	return ns;
}

static void nobody_waits_for_ever(void **state)
{
	static const char *const young[] = {SLOTS, "policy.slots_age_us=20000", NULL};

	(void)state;
	/* Its age, what runs, the load, itself. */
	assert_in_range(beside_a_stream(slots, 0, 0), 100 * MS, 105 * MS);
	assert_in_range(beside_a_stream(young, 0, 0), 20 * MS, 25 * MS);
	/* Half of its slack; at once. */
	assert_in_range(beside_a_stream(slots, 0, 40 * MS), 15 * MS, 25 * MS);
	assert_in_range(beside_a_stream(slots, HAL_CLASS_LATENCY, 0), 2 * MS, 5 * MS);
}

/* The next configuration is asked for before the last run has ended. */
static void next_is_asked_for_early(void **state)
{
	struct fpga_stand_in_job jobs[16];
	struct hal_queue_desc how[PROGRAMS];
	struct world w;
	uint32_t n;

	(void)state;
	for (unsigned int i = 0; i < PROGRAMS; i++)
		how[i] = usual;
	begin(&w, slots, how);
	(void)stand_in()->jobs(jobs, 16);
	ask(&w, 0, 0, 50 * MS);
	pass(&w, 100 * US);
	ask(&w, 1, 1, 500 * US);
	/* Longer than anybody would wait for the one that is there, and it still runs. */
	pass(&w, 40 * MS);
	/* What the device has is not held back any more, so it has it. */
	ok(hal_queue_suspend(w.q[1][1], HAL_SUSPEND_DRAIN, NULL));
	pass(&w, UINT64_MAX);
	assert_int_equal(stats_of(w.q[1][1]).completed, 1);
	n = stand_in()->jobs(jobs, 16);
	assert_int_equal(n, 3);
	assert_string_equal(jobs[0].what, "work:{work_1}");
	assert_string_equal(jobs[1].what, "load");
	/* No turn of the engine in between, only two units that are closed, in 2 us each.
	 */
	assert_int_equal(jobs[1].start_ns, jobs[0].end_ns + 4 * US);
	end(&w);
}

/* Where it waited elsewhere for the last that wants what is there to be gone, too. */
static void last_of(const char *const *policy)
{
	struct fpga_stand_in_job jobs[16];
	struct hal_queue_desc how[PROGRAMS];
	struct world w;

	for (unsigned int i = 0; i < PROGRAMS; i++)
		how[i] = usual;
	begin(&w, policy, how);
	(void)stand_in()->jobs(jobs, 16);
	for (unsigned int r = 0; r < 6; r++)
		ask(&w, 0, 0, 10 * MS);
	pass(&w, 100 * US);
	ask(&w, 1, 1, 500 * US);
	pass(&w, UINT64_MAX);
	assert_int_equal(stand_in()->jobs(jobs, 16), 8);
	assert_string_equal(jobs[5].what, "work:{work_1}");
	assert_string_equal(jobs[6].what, "load");
	assert_int_equal(jobs[6].start_ns, jobs[5].end_ns + 4 * US);
	end(&w);
}

static void last_of_a_backlog(void **state)
{
	static const char *const old[] = {SLOTS, "policy.slots_hold=0",
					  "policy.slots_age_us=1000000", NULL};
	/* All six are with the device from the first. */
	static const char *const deep[] = {SLOTS,
					   "policy.slots_hold=0",
					   "policy.slots_age_us=1000000",
					   "hal.inflight=8",
					   "hal.partition_inflight=8",
					   "backend.fpga.inflight=8",
					   NULL};

	(void)state;
	last_of(old);
	last_of(deep);
}

/* Two backlogs of 40 ms each, all of it late from the first. */
static uint32_t all_late(const char *const *policy)
{
	struct hal_queue_desc how[PROGRAMS];
	struct world w;
	uint32_t n;

	for (unsigned int i = 0; i < PROGRAMS; i++) {
		how[i] = usual;
		how[i].deadline_ns = 1;
	}
	begin(&w, policy, how);
	for (unsigned int r = 0; r < 80; r++) {
		ask(&w, 0, 0, 500 * US);
		ask(&w, 0, 1, 500 * US);
	}
	pass(&w, UINT64_MAX);
	assert_int_equal(stats_of(w.q[0][1]).deadline_misses, 80);
	n = loads(&w);
	end(&w);
	return n;
}

static void late_ones_take_turns(void **state)
{
	static const char *const hasty[] = {SLOTS, "policy.slots_stay=0", NULL};

	(void)state;
	/* Eight loads' time, 16 ms and more, each. */
	assert_in_range(all_late(slots), 3, 6);
	assert_in_range(all_late(hasty), 30, 160);
}

/* Three backlogs that are late: none of them waits for the end of the others. */
static void all_late_are_served(void **state)
{
	struct hal_queue_desc how[PROGRAMS];
	struct world w;

	(void)state;
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		how[i] = usual;
		how[i].deadline_ns = 1;
	}
	begin(&w, slots, how);
	for (unsigned int r = 0; r < 100; r++)
		for (unsigned int i = 0; i < PROGRAMS; i++)
			ask(&w, 0, i, MS);
	pass(&w, 3 * 10 * w.load_ns);
	for (unsigned int i = 0; i < PROGRAMS; i++)
		assert_in_range(stats_of(w.q[0][i]).completed, 1, 99);
	pass(&w, UINT64_MAX);
	end(&w);
}

/* A latency-critical request beside two backlogs, all of it late from the first: it waits
 * for the time that the configuration is kept, a load, and one command. */
static void latency_before_what_is_late(void **state)
{
	struct hal_queue_desc how[PROGRAMS];
	struct world w;

	(void)state;
	for (unsigned int latency = 0; latency < PROGRAMS; latency++) {
		for (unsigned int i = 0; i < PROGRAMS; i++) {
			how[i] = usual;
			how[i].deadline_ns = 1;
		}
		how[latency] = usual;
		how[latency].service_class = HAL_CLASS_LATENCY;
		begin(&w, slots, how);
		for (unsigned int r = 0; r < 100; r++)
			for (unsigned int i = 0; i < PROGRAMS; i++)
				if (i != latency)
					ask(&w, 0, i, MS);
		pass(&w, 30 * MS);
		ask(&w, 0, latency, 500 * US);
		pass(&w, UINT64_MAX);
		assert_int_equal(stats_of(w.q[0][latency]).completed, 1);
		assert_in_range(stats_of(w.q[0][latency]).latency_max_ns, 0,
				10 * w.load_ns + 2 * MS);
		end(&w);
	}
}

/* Programs that are alike share what is loaded; loads that fail are none, and waiting for
 * one is waiting, not running. */
static void what_is_counted(void **state)
{
	struct hal_queue_desc how[PROGRAMS];
	struct world w;

	(void)state;
	for (unsigned int i = 0; i < PROGRAMS; i++)
		how[i] = usual;
	begin(&w, no_hold, how);
	assert_int_equal(stand_in()->break_call("xrtDeviceLoadXclbin", 1, EIO), 0);
	ask(&w, 0, 1, 500 * US);
	pass(&w, UINT64_MAX);
	assert_int_equal(stats_of(w.q[0][1]).failed, 1);
	assert_int_equal(loads(&w), 0);
	ask(&w, 1, 1, 500 * US);
	ask(&w, 1, 1, 500 * US);
	pass(&w, UINT64_MAX);
	assert_int_equal(loads(&w), 1);
	assert_int_equal(stats_of(w.q[1][1]).completed, 2);
	/* Both have waited for it, and neither has run meanwhile. */
	assert_in_range(stats_of(w.q[1][1]).queueing_ns, w.load_ns, 2 * w.load_ns + MS);
	assert_in_range(stats_of(w.q[1][1]).busy_ns, MS, MS + 50 * US);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fewer_loads),
		cmocka_unit_test(is_replayed),
		cmocka_unit_test(latency_is_the_price),
		cmocka_unit_test(nobody_waits_for_ever),
		cmocka_unit_test(next_is_asked_for_early),
		cmocka_unit_test(last_of_a_backlog),
		cmocka_unit_test(late_ones_take_turns),
		cmocka_unit_test(all_late_are_served),
		cmocka_unit_test(latency_before_what_is_late),
		cmocka_unit_test(what_is_counted),
	};
	char text[512];

	for (unsigned int i = 0; i < PROGRAMS; i++) {
		describe(text, i);
		files[i] = make_file(text);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
