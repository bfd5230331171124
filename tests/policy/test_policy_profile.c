/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: what policies see of them, what is learned on top, and files that are wrong.
 */
#define _GNU_SOURCE
#include "world.h"

#include <dlfcn.h>

#include <hal/ext/replay.h>

#include "plugin.h"
#include "profile_file.h"

static char text[PROFILE_BYTES];

/* world_span(0, span): its cost is its first argument, here what a test gives it. */
static const char *work_profile(uint64_t cost, uint64_t span_ns, unsigned int runs,
				unsigned int spread_permille)
{
	const struct profiled k = {.name = "work",
				   .args = "0, 0",
				   .class = "array",
				   .bytes = 4096,
				   .cost = cost,
				   .span_ns = span_ns};

	profile_text(text, &k, 1, runs, spread_permille);
	return profile_file(text);
}

static struct plugin_control *control_of(const char *file)
{
	void *lib = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
	struct plugin_control *c;

	assert_non_null(lib);
	c = dlsym(lib, "plugin_control");
	assert_non_null(c);
	memset(c, 0, sizeof(*c));
	return c;
}

/* ---- what policies see -------------------------------------------------------------- */

struct seen {
	struct world w;
	struct plugin_control *c;
	struct hal_queue *q;
};

static void seen_open(struct seen *s, const char *profile)
{
	const char *const options[] = {"hal.partition_inflight=1", "hal.queue_depth=4096",
				       "hal.plugins=" PLUGIN_EXPECTS, profile, NULL};
	const char *const none[] = {NULL};

	memset(s, 0, sizeof(*s));
	world_open(&s->w, options);
	s->c = control_of(PLUGIN_EXPECTS);
	OK(hal_device_set_policy(s->w.dev, "expects", none));
	s->q = add_queue(s->w.part, 0, 1, 0);
	s->c->watched = s->c->last;
}

static void seen_close(struct seen *s)
{
	finish_all(&s->w);
	OK(hal_queue_destroy(s->q));
	world_close(&s->w);
}

/* The head of one more command of ns, as it was when it came; it runs to its end. */
static struct hal_policy_command head_of(struct seen *s, uint64_t ns)
{
	finish(submit(&s->w, s->q, 1, ns, 'h'));
	return s->c->head;
}

static void known_from_the_first(void **state)
{
	struct hal_policy_command h;
	struct seen s;

	(void)state;
	seen_open(&s, work_profile(1600, 0, 8, 0));
	h = head_of(&s, 1600);
	assert_int_equal(h.kind, HAL_POLICY_ARRAY);
	assert_int_equal(h.expected_ns, 1600); /* the partition has one unit */
	assert_int_equal(h.rest_ns, 1600);
	assert_int_equal(h.whole_ns, 1600);
	assert_int_equal(h.expected_bytes, 4096);
	assert_int_equal(h.sure_permille, 1000);
	for (uint32_t n = 1; n <= 16; n++)
		assert_int_equal(s.c->host->expect(s.c->host->device, s.c->last, n),
				 (1600 + n - 1) / n);
	assert_true(s.c->host->expect(s.c->host->device, s.c->last, 17) ==
		    HAL_POLICY_NEVER);
	seen_close(&s);
}

static void not_known_is_never_0(void **state)
{
	struct hal_policy_command h;
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_submit_desc copies = HAL_INIT(hal_submit_desc);
	struct hal_buffer *buf;
	struct hal_cmd cmd;
	struct seen s;

	(void)state;
	seen_open(&s, work_profile(1600, 0, 8, 0));
	world_work(&s.w, 77); /* of that name, and another kernel */
	h = head_of(&s, 1600);
	assert_int_equal(h.kind, HAL_POLICY_UNKNOWN);
	assert_true(h.expected_ns == HAL_POLICY_NEVER);
	assert_true(h.rest_ns == HAL_POLICY_NEVER);
	assert_true(h.whole_ns == HAL_POLICY_NEVER);
	assert_true(h.expected_bytes == HAL_POLICY_NEVER);
	assert_int_equal(h.sure_permille, 0);
	/* From then on it is learned, as without a profile. */
	h = head_of(&s, 1600);
	assert_int_equal(h.expected_ns, 77);
	assert_in_range(h.sure_permille, 100, 130);
	/* A copy needs memory, whoever asks. */
	d.bytes = 4096;
	OK(hal_buffer_create(s.w.part, &d, &buf));
	cmd = hal_cmd_copy(buf, 0, buf, 2048, 2048);
	copies.cmds = &cmd;
	copies.cmd_count = 1;
	OK(hal_submit(s.q, &copies, NULL));
	finish_all(&s.w);
	assert_int_equal(s.c->head.kind, HAL_POLICY_MEMORY);
	OK(hal_buffer_destroy(buf));
	seen_close(&s);
}

/* What runs is added to what was measured: the last eight count most. */
static void goes_on_learning(void **state)
{
	struct hal_policy_command h;
	uint64_t before = 1600;
	struct seen s;

	(void)state;
	seen_open(&s, work_profile(1600, 0, 8, 0));
	for (int i = 0; i < 32; i++) {
		h = head_of(&s, 800);
		assert_true(h.expected_ns <= before);
		before = h.expected_ns;
		if (i == 1) /* of eight, one */
			assert_int_equal(h.expected_ns, 1500);
		if (i == 8)
			assert_true(h.sure_permille < 700);
	}
	assert_in_range(before, 800, 830);
	assert_true(h.sure_permille > 900);
	seen_close(&s);
	/* Also when it was measured often. */
	seen_open(&s, work_profile(1600, 0, 100, 0));
	(void)head_of(&s, 800);
	assert_int_equal(head_of(&s, 800).expected_ns, 1500);
	seen_close(&s);
}

/* A few runs, or such that differ, are less sure than many alike. */
static void how_sure(void **state)
{
	static const struct {
		unsigned int runs, spread, sure;
	} cases[] = {{1, 0, 125},    {4, 0, 500},   {8, 0, 1000},
		     {100, 0, 1000}, {8, 250, 750}, {1, 500, 1}};
	struct seen s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		seen_open(&s, work_profile(1600, 0, cases[i].runs, cases[i].spread));
		assert_int_equal(head_of(&s, 1600).sure_permille, cases[i].sure);
		seen_close(&s);
	}
}

/* Of a submission of several, all of it before any has run. */
static void whole_submissions(void **state)
{
	const struct hal_arg args[2] = {{.offset = 1600}, {.offset = 'm'}};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmds[300];
	struct hal_point done;
	struct seen s;

	(void)state;
	seen_open(&s, work_profile(1600, 0, 8, 0));
	for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++)
		cmds[i] = hal_cmd_launch(s.w.work, args, 2);
	d.cmds = cmds;
	d.cmd_count = 5;
	OK(hal_submit(s.q, &d, &done));
	pass(&s.w, 1);
	assert_int_equal(s.c->head.whole_ns, 5 * 1600);
	finish(done);
	/* The last, when three have run and the fourth does. */
	assert_int_equal(s.c->head.rest_ns, 2 * 1600);
	assert_int_equal(s.c->head.whole_ns, 5 * 1600);
	seen_close(&s);
	/* Too many to add up. */
	seen_open(&s, work_profile(1600, 0, 8, 0));
	for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++)
		cmds[i] = hal_cmd_launch(s.w.work, args, 2);
	d.cmd_count = 300;
	OK(hal_submit(s.q, &d, &done));
	pass(&s.w, 1);
	assert_int_equal(s.c->head.whole_ns, 1600);
	finish(done);
	seen_close(&s);
}

/* Two programs of one kernel each, of 1600 and of 77; and one of both. */
static void beside_each_other(void **state)
{
	static const struct profiled both[] = {
		{"work", 1600, "0, 0", "array", 0, 1600, 0, NULL},
		{"work", 77, "0, 0", "array", 0, 77, 0, NULL},
	};
	const struct hal_policy_host *h;
	uint32_t sure;
	struct seen s;

	(void)state;
	profile_text_pairs(text, both, 2, 4, "[[11, 12], [21, 0]]");
	seen_open(&s, profile_file(text));
	h = s.c->host;
	world_work(&s.w, 1600);
	assert_int_equal(head_of(&s, 1600).program, 1);
	world_work(&s.w, 77);
	assert_int_equal(head_of(&s, 77).program, 2);
	world_work(&s.w, 78);
	assert_int_equal(head_of(&s, 78).program, 0);
	assert_int_equal(h->beside(h->device, 1, 1, &sure), 11);
	assert_int_equal(sure, 500);
	assert_int_equal(h->beside(h->device, 1, 2, NULL), 12);
	assert_int_equal(h->beside(h->device, 2, 1, NULL), 21);
	assert_int_equal(h->beside(h->device, 2, 2, &sure), 0);
	assert_int_equal(sure, 500);
	for (uint32_t i = 0; i < 4; i++) {
		/* Not known, on either side: no number, none of the profile. */
		assert_true(h->beside(h->device, 3 * (i & 1), i < 2, &sure) ==
			    HAL_POLICY_NEVER);
		assert_int_equal(sure, 0);
	}
	seen_close(&s);
	/* Eight times is as sure as it becomes. */
	profile_text_pairs(text, both, 2, 100, "[[11, 12], [21, 0]]");
	seen_open(&s, profile_file(text));
	h = s.c->host;
	assert_int_equal(h->beside(h->device, 1, 2, &sure), 12);
	assert_int_equal(sure, 1000);
	seen_close(&s);
	/* A device without halves says nothing of pairs, nor does no profile at all. */
	profile_text_pairs(text, both, 2, 4, "[]");
	seen_open(&s, profile_file(text));
	h = s.c->host;
	world_work(&s.w, 77);
	assert_int_equal(head_of(&s, 77).program, 2);
	assert_true(h->beside(h->device, 1, 2, &sure) == HAL_POLICY_NEVER);
	assert_int_equal(sure, 0);
	seen_close(&s);
	seen_open(&s, NULL);
	h = s.c->host;
	assert_int_equal(head_of(&s, 77).program, 0);
	assert_true(h->beside(h->device, 1, 2, &sure) == HAL_POLICY_NEVER);
	seen_close(&s);
	/* Of two kernels, one of which alone is another program. */
	profile_text(text, both, 2, 3, 0);
	seen_open(&s, profile_file(text));
	world_work(&s.w, 77);
	assert_int_equal(head_of(&s, 77).program, 0);
	seen_close(&s);
}

/* ---- what is learned of pairs ------------------------------------------------------- */

enum { A_WORK = 1600, B_WORK = 6400, C_WORK = 800, SIDES = 3 };

/* A program of its own on each side, of a partition of one unit: the first two, and of
 * the last a kernel more, are the profile's. */
struct sides {
	struct seen s;
	struct hal_partition *part[SIDES];
	struct hal_queue *q[SIDES];
	struct hal_program *prog[SIDES];
	struct hal_kernel *kernel[SIDES];
	uint64_t work[SIDES];
};

static const struct profiled three[] = {
	{"work", A_WORK, "0, 0", "array", 0, A_WORK, 0, NULL},
	{"work", B_WORK, "0, 0", "array", 0, B_WORK, 0, NULL},
	{"work", C_WORK, "0, 0", "array", 0, C_WORK, 0, NULL},
};

/* What side runs takes so long from now on, whatever the profile says. */
static void takes(struct sides *t, uint32_t side, uint64_t ns)
{
	struct world w = {.dev = t->s.w.dev, .prog = t->prog[side]};

	world_span(&w, t->work[side], ns);
	t->prog[side] = w.prog;
	t->kernel[side] = w.work;
}

static void sides_make(struct sides *t)
{
	static const uint64_t works[SIDES] = {A_WORK, B_WORK, C_WORK};

	for (uint32_t i = 0; i < SIDES; i++) {
		t->part[i] = i == 0 ? t->s.w.part : add_partition(&t->s.w);
		t->q[i] = add_queue(t->part[i], 0, 1, 0);
		t->work[i] = works[i];
		takes(t, i, works[i]);
	}
}

static void sides_open(struct sides *t, const char *beside)
{
	memset(t, 0, sizeof(*t));
	profile_text_pairs(text, three, SIDES, 4, beside);
	seen_open(&t->s, profile_file(text));
	sides_make(t);
}

static void sides_close(struct sides *t)
{
	finish_all(&t->s.w);
	for (uint32_t i = 0; i < SIDES; i++) {
		OK(hal_queue_destroy(t->q[i]));
		OK(hal_program_unload(t->prog[i]));
		if (i != 0)
			OK(hal_partition_destroy(t->part[i]));
	}
	seen_close(&t->s);
}

static struct hal_point runs(struct sides *t, uint32_t side, unsigned int count)
{
	struct world w = {.dev = t->s.w.dev, .work = t->kernel[side]};

	return submit(&w, t->q[side], count, 0, 'r');
}

/* What side is known to be slower beside another, both from 1; -1: it is not. */
static int64_t costs(struct sides *t, uint32_t side, uint32_t other, uint32_t *sure)
{
	const struct hal_policy_host *h = t->s.c->host;
	uint64_t cost = h->beside(h->device, side, other, sure);

	return cost != HAL_POLICY_NEVER ? (int64_t)cost : -1;
}

static void learned_beside(void **state)
{
	struct sides t;
	uint32_t sure;

	(void)state;
	sides_open(&t, "[]");
	takes(&t, 0, 2000); /* 250 thousandths longer */
	takes(&t, 1, 9600); /* 500 */
	(void)runs(&t, 1, 100);
	finish(runs(&t, 0, 3));
	/* Three say nothing. */
	assert_int_equal(costs(&t, 1, 2, &sure), -1);
	assert_int_equal(sure, 0);
	finish(runs(&t, 0, 1));
	assert_int_equal(costs(&t, 1, 2, &sure), 250);
	assert_in_range(sure, 110, 125);
	finish(runs(&t, 0, 200));
	assert_int_equal(costs(&t, 1, 2, &sure), 250);
	assert_in_range(sure, 950, 1000);
	assert_int_equal(costs(&t, 2, 1, &sure), 500);
	assert_in_range(sure, 700, 750); /* 42 of them */
	/* Nobody has seen these. */
	assert_int_equal(costs(&t, 1, 1, &sure), -1);
	assert_int_equal(costs(&t, 3, 1, NULL), -1);
	assert_int_equal(sure, 0);
	/* The last ones count most. */
	takes(&t, 0, 1760);
	finish(runs(&t, 0, 200));
	assert_in_range(costs(&t, 1, 2, NULL), 100, 102);
	sides_close(&t);
}

/* What the profile says counts less, the more of the pair has been seen. */
static void learned_on_top(void **state)
{
	struct sides t;
	uint32_t sure;

	(void)state;
	sides_open(&t, "[[0, 50, 0], [70, 0, 0], [0, 0, 0]]");
	takes(&t, 0, 2000);
	assert_int_equal(costs(&t, 1, 2, &sure), 50);
	assert_int_equal(sure, 500);
	(void)runs(&t, 1, 60);
	finish(runs(&t, 0, 22));
	/* 22 of the last 32 or so are half of it. */
	assert_in_range(costs(&t, 1, 2, &sure), 140, 160);
	assert_in_range(sure, 740, 760);
	finish(runs(&t, 0, 150));
	assert_in_range(costs(&t, 1, 2, &sure), 246, 250);
	assert_in_range(sure, 990, 1000);
	/* Faster than alone is no cost. */
	takes(&t, 0, A_WORK);
	assert_in_range(costs(&t, 2, 1, NULL), 0, 70);
	assert_int_equal(costs(&t, 2, 3, NULL), 0);
	sides_close(&t);
}

/* What it runs alone is what it has run alone last, not what it has run beside others. */
static void alone_is_learned(void **state)
{
	struct sides t;

	(void)state;
	sides_open(&t, "[]");
	takes(&t, 0, 2000);
	finish(runs(&t, 0, 100));
	(void)runs(&t, 1, 40);
	finish(runs(&t, 0, 50));
	assert_int_equal(costs(&t, 1, 2, NULL), 0);
	takes(&t, 0, 3000);
	finish(runs(&t, 0, 50));
	assert_in_range(costs(&t, 1, 2, NULL), 380, 500);
	sides_close(&t);
}

/* Nearly all of a command's time beside one program, and one alone; else it says nothing.
 */
static void seen_apart(void **state)
{
	static const uint64_t shifts[] = {1000, 100}; /* of 2000: too much, little */
	struct sides t;

	(void)state;
	sides_open(&t, "[]");
	takes(&t, 0, 2000);
	/* The other comes, or goes, in the middle of it, or near its end. */
	for (uint32_t i = 0; i < 2; i++) {
		takes(&t, 1, 9600);
		for (uint32_t n = 0; n < 8; n++) {
			(void)runs(&t, 0, 1);
			pass(&t.s.w, shifts[i]);
			finish(runs(&t, 1, 1));
		}
		assert_int_equal(costs(&t, 1, 2, NULL), i == 0 ? -1 : 250);
	}
	sides_close(&t);
	sides_open(&t, "[]");
	takes(&t, 0, 20000);
	for (uint32_t n = 0; n < 8; n++) {
		(void)runs(&t, 1, 1);
		finish(runs(&t, 0, 1));
	}
	assert_int_equal(costs(&t, 1, 2, NULL), -1);
	/* Late, or with a pause, and over just before it. */
	for (uint32_t n = 0; n < 16; n++) {
		struct hal_point done = runs(&t, 0, 1);

		if (n % 2 != 0)
			(void)runs(&t, 1, 1);
		pass(&t.s.w, 13500);
		finish(runs(&t, 1, 1));
		finish(done);
	}
	assert_int_equal(costs(&t, 1, 2, NULL), -1);
	/* Two others, though each is known. */
	takes(&t, 0, 2000);
	takes(&t, 1, 9600);
	(void)runs(&t, 1, 40);
	(void)runs(&t, 2, 400);
	finish(runs(&t, 0, 50));
	assert_int_equal(costs(&t, 1, 2, NULL), -1);
	assert_int_equal(costs(&t, 1, 3, NULL), -1);
	finish_all(&t.s.w);
	/* First one, then another, of one partition. */
	takes(&t, 1, B_WORK);
	for (uint32_t n = 0; n < 16; n++) {
		struct world w = {.dev = t.s.w.dev, .work = t.kernel[2]};

		(void)submit(&w, t.q[1], 1, 0, 'o');
		(void)runs(&t, 1, 1);
		(void)submit(&w, t.q[1], 1, 0, 'o');
		finish(runs(&t, 0, 1));
		finish_all(&t.s.w);
	}
	assert_int_equal(costs(&t, 1, 2, NULL), -1);
	assert_int_equal(costs(&t, 1, 3, NULL), -1);
	/* A border that moves meanwhile. */
	takes(&t, 0, 2000);
	takes(&t, 1, 9600);
	(void)runs(&t, 1, 20);
	for (uint32_t n = 0; n < 8; n++) {
		struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
		struct hal_point done = runs(&t, 0, 1);

		pass(&t.s.w, 1000);
		d.units_floor = 2 - n % 2;
		OK(hal_partition_resize(t.part[0], &d, NULL));
		finish(done);
		pass(&t.s.w, 10);
	}
	finish_all(&t.s.w);
	assert_int_equal(costs(&t, 1, 2, NULL), -1);
	/* One that the profile does not know. */
	t.work[1] = 78;
	takes(&t, 1, 9600);
	(void)runs(&t, 1, 40);
	finish(runs(&t, 0, 50));
	assert_int_equal(costs(&t, 1, 2, NULL), -1);
	sides_close(&t);
	/* Nor what was killed, nor what ran beside that. */
	sides_open(&t, "[]");
	takes(&t, 0, 2000);
	takes(&t, 1, 9600);
	for (uint32_t n = 0; n < 8; n++) {
		(void)runs(&t, 1, 1);
		(void)runs(&t, 0, 1);
		pass(&t.s.w, 1000);
		OK(hal_queue_suspend(t.q[1], HAL_SUSPEND_KILL, NULL));
		pass(&t.s.w, 2000);
		OK(hal_queue_resume(t.q[1]));
		finish_all(&t.s.w);
	}
	assert_int_equal(costs(&t, 1, 2, NULL), -1);
	(void)runs(&t, 1, 40);
	finish(runs(&t, 0, 8));
	assert_int_equal(costs(&t, 1, 2, NULL), 250); /* nor is it taken to be alone */
	sides_close(&t);
}

/* What ran while nobody wanted to know may not all have been seen. */
static void a_policy_that_does_not_ask(void **state)
{
	static const char *const none[] = {NULL};
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *normal;
	struct sides t;

	(void)state;
	sides_open(&t, "[]");
	/* By itself the engine wants to know of this one's ends, for others' sake. */
	normal = t.q[0];
	d.service_class = HAL_CLASS_LATENCY;
	OK(hal_queue_create(t.part[0], &d, &t.q[0]));
	takes(&t, 0, 2000);
	OK(hal_device_set_policy(t.s.w.dev, "fifo", none));
	(void)runs(&t, 1, 4);
	finish(runs(&t, 0, 12));
	assert_int_equal(costs(&t, 1, 2, NULL), -1);
	OK(hal_queue_destroy(t.q[0]));
	t.q[0] = normal;
	(void)runs(&t, 1, 20);
	(void)runs(&t, 0, 1);
	pass(&t.s.w, 100);
	OK(hal_device_set_policy(t.s.w.dev, "expects", none));
	finish(runs(&t, 0, 3));
	assert_int_equal(costs(&t, 1, 2, NULL), -1);
	finish(runs(&t, 0, 1));
	assert_int_equal(costs(&t, 1, 2, NULL), 250);
	sides_close(&t);
}

/* ---- what they do with it ------------------------------------------------------------ */

enum { WATCHED = 24, STEP = 50 };

/* Units of each side, each STEP ns, while eight commands run beside others. */
struct course {
	uint32_t units[2][WATCHED];
	uint64_t took_ns;
};

/* krisp on two elastic partitions; of the kernel something is known, or it has run
 * before.
 */
static struct course course(const char *profile, bool run_before)
{
	const char *const options[] = {"hal.queue_depth=1024", "hal.partition_inflight=1",
				       "policy.name=krisp", profile, NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *part[2];
	struct hal_queue *q[2];
	struct course c;
	struct world w;
	uint64_t at;

	memset(&w, 0, sizeof(w));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual", options, &w.dev));
	world_span(&w, 0, 200);
	d.units_floor = 2;
	d.units_ceiling = 14;
	for (int i = 0; i < 2; i++) {
		OK(hal_partition_create(w.dev, &d, &part[i]));
		q[i] = add_queue(part[i], 0, 1, 0);
	}
	for (int i = 0; run_before && i < 2; i++) {
		(void)submit(&w, q[i], 40, 1400, 'b');
		finish_all(&w);
	}
	/* The policy anew, from the same sizes on. */
	OK(hal_device_set_policy(w.dev, "krisp", NULL));
	for (int i = 0; i < 2; i++) {
		struct hal_partition_desc two = HAL_INIT(hal_partition_desc);
		struct hal_point moved;

		two.rows = 1;
		two.col = (uint16_t)(2 * i);
		two.cols = 2;
		two.units_floor = 2;
		two.units_ceiling = 14;
		OK(hal_partition_resize(part[i], &two, &moved));
		finish(moved);
	}
	at = hal_device_get_time(w.dev);
	for (int i = 0; i < 2; i++)
		(void)submit(&w, q[i], 8, 1400, 'k');
	for (int t = 0; t < WATCHED; t++) {
		pass(&w, STEP);
		for (int i = 0; i < 2; i++) {
			struct hal_partition_info info = HAL_INIT(hal_partition_info);

			OK(hal_partition_get_info(part[i], &info));
			c.units[i][t] = info.units;
		}
	}
	finish_all(&w);
	c.took_ns = hal_device_get_time(w.dev) - at;
	for (int i = 0; i < 2; i++) {
		OK(hal_queue_destroy(q[i]));
		OK(hal_partition_destroy(part[i]));
	}
	OK(hal_program_unload(w.prog));
	OK(hal_close(w.dev));
	return c;
}

static void as_after_learning(void **state)
{
	struct course learned = course(NULL, true), told, neither = course(NULL, false);

	(void)state;
	told = course(work_profile(1400, 200, 8, 0), false);
	assert_memory_equal(told.units, learned.units, sizeof(told.units));
	assert_int_equal(told.took_ns, learned.took_ns);
	/* That is not how it would have been anyway. */
	assert_true(memcmp(neither.units, learned.units, sizeof(told.units)) != 0);
}

/* Eight commands alone under krisp, which tries fewer units when it does not know. */
static uint64_t first_eight(const char *profile)
{
	const char *const options[] = {"hal.queue_depth=64", "hal.partition_inflight=1",
				       "policy.name=krisp", profile, NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *part;
	struct hal_queue *q;
	struct world w;
	uint64_t at;

	memset(&w, 0, sizeof(w));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual", options, &w.dev));
	world_work(&w, 0);
	d.units_floor = 2;
	d.units_ceiling = 14;
	OK(hal_partition_create(w.dev, &d, &part));
	q = add_queue(part, 0, 1, 0);
	at = hal_device_get_time(w.dev);
	finish(submit(&w, q, 8, 1400, 'k'));
	at = hal_device_get_time(w.dev) - at;
	OK(hal_queue_destroy(q));
	OK(hal_partition_destroy(part));
	OK(hal_program_unload(w.prog));
	OK(hal_close(w.dev));
	return at;
}

static void krisp_from_the_first(void **state)
{
	(void)state;
	assert_int_equal(first_eight(NULL), 900);
	assert_int_equal(first_eight(work_profile(1400, 0, 3, 0)), 800);
}

/* Of best effort that computes, what ends beside high-priority work of which memory is
 * the bound, from its first command on. */
static uint64_t beside_memory(const char *profile, const char *option)
{
	const char *const options[] = {"hal.queue_depth=256",
				       "policy.name=orion",
				       "policy.orion_memory_mbs=1000",
				       "policy.orion_permille=1000000",
				       "hal.partition_inflight=1",
				       profile,
				       option,
				       NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *part[2];
	struct hal_queue *high, *low;
	struct hal_program *effort;
	struct hal_kernel *kernel;
	struct world w;
	uint64_t count;

	memset(&w, 0, sizeof(w));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual", options, &w.dev));
	d.units_floor = 8;
	for (int i = 0; i < 2; i++)
		OK(hal_partition_create(w.dev, &d, &part[i]));
	high = add_queue(part[0], 1, 1, 0);
	low = add_queue(part[1], 0, 1, 0);
	world_work(&w, 800);
	effort = w.prog;
	kernel = w.work;
	w.prog = NULL;
	world_work(&w, 8000);
	(void)submit(&w, high, 5, 8000, 'h');
	w.work = kernel;
	pass(&w, 1);
	(void)submit(&w, low, 40, 800, 'l');
	pass(&w, 4999);
	count = stats_of(low).completed;
	finish_all(&w);
	OK(hal_queue_destroy(high));
	OK(hal_queue_destroy(low));
	for (int i = 0; i < 2; i++)
		OK(hal_partition_destroy(part[i]));
	OK(hal_program_unload(effort));
	OK(hal_program_unload(w.prog));
	OK(hal_close(w.dev));
	return count;
}

static void orion_from_the_first(void **state)
{
	struct profiled k[] = {
		{"work", 8000, "0, 0", "memory", 16000, 8000, 0, NULL},
		{"work", 800, "0, 0", "array", 0, 800, 0, NULL},
	};

	(void)state;
	/* Nobody knows, so nobody runs beside the other. */
	assert_int_equal(beside_memory(NULL, NULL), 0);
	profile_text(text, k, 2, 3, 0);
	assert_in_range(beside_memory(profile_file(text), NULL), 40, 40);
	/* It moves little itself, and has been seen to suffer. */
	k[0].bytes = 0;
	profile_text(text, k, 2, 3, 0);
	assert_in_range(beside_memory(profile_file(text), NULL), 40, 40);
	k[0].class = "array";
	profile_text(text, k, 2, 3, 0);
	assert_int_equal(beside_memory(profile_file(text), NULL), 0);
}

/* What the one of high priority takes longer beside best effort, and the other way round:
 * what ends of best effort, by class and by that. */
static uint64_t by_pairs(const char *class, const char *beside, const char *option)
{
	const struct profiled k[] = {
		{"work", 8000, "0, 0", class, 0, 8000, 0, NULL},
		{"work", 800, "0, 0", "array", 0, 800, 0, NULL},
	};

	profile_text_pairs(text, k, 2, 3, beside);
	return beside_memory(profile_file(text), option);
}

static void orion_by_pairs(void **state)
{
	(void)state;
	/* As by class, when nothing is known of the pair. */
	assert_int_equal(by_pairs("array", "[]", NULL), 0);
	assert_int_equal(by_pairs("memory", "[]", NULL), 40);
	/* Of one kind, and harmless: what matters is what the first of them suffers. */
	assert_int_equal(by_pairs("array", "[[0, 20], [900, 0]]", NULL), 40);
	assert_int_equal(by_pairs("array", "[[900, 100], [900, 900]]", NULL), 40);
	/* Of different kinds, and not harmless. */
	assert_int_equal(by_pairs("memory", "[[0, 101], [0, 0]]", NULL), 0);
	assert_int_equal(by_pairs("memory", "[[0, 300], [20, 0]]",
				  "policy.orion_beside_permille=300"),
			 40);
	assert_int_equal(by_pairs("array", "[[0, 20], [20, 0]]",
				  "policy.orion_beside_permille=19"),
			 0);
}

/* Best effort of one kind in one queue, which costs too much, and in another, which does
 * not: it need not wait behind the first. */
static void orion_looks_behind(void **state)
{
	const struct profiled k[] = {
		{"work", 8000, "0, 0", "array", 0, 8000, 0, NULL},
		{"work", 800, "0, 0", "array", 0, 800, 0, NULL},
		{"work", 400, "0, 0", "array", 0, 400, 0, NULL},
	};
	const char *options[] = {"policy.name=orion", "policy.orion_permille=1000000",
				 "hal.partition_inflight=1", NULL, NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_program *programs[3];
	struct hal_partition *part[2];
	struct hal_queue *q[3];
	struct world w;

	(void)state;
	profile_text_pairs(text, k, 3, 3, "[[0, 500, 5], [0, 0, 0], [0, 0, 0]]");
	options[3] = profile_file(text);
	memset(&w, 0, sizeof(w));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual", options, &w.dev));
	d.units_floor = 8;
	for (int i = 0; i < 2; i++)
		OK(hal_partition_create(w.dev, &d, &part[i]));
	for (int i = 0; i < 3; i++) {
		q[i] = add_queue(part[i != 0], i == 0, 1, 0);
		world_work(&w, k[i].work);
		programs[i] = w.prog;
		w.prog = NULL;
		(void)submit(&w, q[i], i == 0 ? 1 : 3, k[i].work, (char)('h' + i));
		pass(&w, 1);
	}
	finish_all(&w);
	ended.text[ended.length] = '\0';
	/* 1,000 ns of the first, while 50 each of the third end; then the second. */
	assert_string_equal(ended.text, "jjjhiii");
	for (int i = 0; i < 3; i++) {
		OK(hal_queue_destroy(q[i]));
		OK(hal_program_unload(programs[i]));
	}
	for (int i = 0; i < 2; i++)
		OK(hal_partition_destroy(part[i]));
	OK(hal_close(w.dev));
}

/* When a command ends that comes while one of class memory runs elsewhere, under weave,
 * on a device of which nobody knows what it can move. */
static uint64_t woven_at(const char *class)
{
	const struct profiled k[] = {
		{"work", 80000, "0, 0", "memory", 0, 80000, 0, NULL},
		{"work", 800, "0, 0", class, 0, 800, 0, NULL},
	};
	const char *options[] = {"policy.name=weave", "policy.weave_wait_us=1", NULL,
				 NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *part[2];
	struct hal_program *first;
	struct hal_queue *q[2];
	struct world w;
	uint64_t at;

	profile_text(text, k, 2, 3, 0);
	options[2] = profile_file(text);
	memset(&w, 0, sizeof(w));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual", options, &w.dev));
	d.units_floor = 8;
	for (int i = 0; i < 2; i++) {
		OK(hal_partition_create(w.dev, &d, &part[i]));
		q[i] = add_queue(part[i], 0, 1, 0);
	}
	world_work(&w, 80000);
	(void)submit(&w, q[0], 1, 80000, 'm');
	first = w.prog;
	w.prog = NULL;
	world_work(&w, 800);
	pass(&w, 1);
	finish(submit(&w, q[1], 1, 800, 'c'));
	at = hal_device_get_time(w.dev);
	finish_all(&w);
	for (int i = 0; i < 2; i++) {
		OK(hal_queue_destroy(q[i]));
		OK(hal_partition_destroy(part[i]));
	}
	OK(hal_program_unload(first));
	OK(hal_program_unload(w.prog));
	OK(hal_close(w.dev));
	return at;
}

static void weave_from_the_first(void **state)
{
	(void)state;
	assert_in_range(woven_at("array"), 100, 110);
	/* It waits for a partner of the other kind. */
	assert_in_range(woven_at("memory"), 1100, 1110);
}

/* ---- stops --------------------------------------------------------------------------- */

/* 10 us of best effort make way after 2 of them: how often they begin anew; and when who
 * came for it has ended. */
static uint64_t begun_anew(const char *stops, uint64_t *ended_ns)
{
	const struct profiled k = {.name = "work",
				   .work = 10000,
				   .args = "0, 0",
				   .class = "array",
				   .cost = 10000,
				   .stops = stops};
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *effort, *urgent;
	const char *options[] = {NULL, NULL};
	struct hal_program *first;
	struct hal_point done;
	uint64_t replayed;
	struct world w;

	profile_text(text, &k, 1, 3, 0);
	options[0] = profile_file(text);
	memset(&w, 0, sizeof(w));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual&fold_ns=1000", options, &w.dev));
	w.part = add_partition(&w);
	d.service_class = HAL_CLASS_BEST_EFFORT;
	OK(hal_queue_create(w.part, &d, &effort));
	d.service_class = HAL_CLASS_LATENCY;
	OK(hal_queue_create(w.part, &d, &urgent));
	world_work(&w, 10000);
	(void)submit(&w, effort, 1, 10000, 'e');
	first = w.prog;
	w.prog = NULL;
	world_work(&w, 100);
	pass(&w, 2000);
	done = submit(&w, urgent, 1, 100, 'u');
	finish(done);
	*ended_ns = hal_device_get_time(w.dev);
	finish_all(&w);
	replayed = stats_of(effort).replayed;
	OK(hal_queue_destroy(effort));
	OK(hal_queue_destroy(urgent));
	OK(hal_program_unload(first));
	world_close(&w);
	return replayed;
}

static void stops_by_profile(void **state)
{
	uint64_t at;

	(void)state;
	/* As the device says: FOLD loses nothing. */
	assert_int_equal(begun_anew(NULL, &at), 0);
	assert_in_range(at, 2100, 3110);
	assert_int_equal(begun_anew("{\"mode\": \"fold\", \"quiet_ns\": 1000, "
				    "\"cost_ns\": 300, \"saved_bytes\": 0}",
				    &at),
			 0);
	assert_in_range(at, 2100, 3110);
	/* As it was measured, it loses more than the 2 us that KILL throws away. */
	assert_int_equal(begun_anew("{\"mode\": \"drain\", \"quiet_ns\": 8750, "
				    "\"cost_ns\": 0, \"saved_bytes\": 0},\n"
				    "{\"mode\": \"fold\", \"quiet_ns\": 1000, "
				    "\"cost_ns\": 9000, \"saved_bytes\": 0}",
				    &at),
			 1);
	assert_in_range(at, 2100, 3110);
}

/* ---- journals ------------------------------------------------------------------------ */

static struct hal_replay_info replayed(const char *path, int err)
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);
	int is = hal_replay(path, &i);

	if (is != err)
		fail_msg("hal_replay is %d, not %d: %s", is, err, hal_last_error());
	return i;
}

/* With text in the place of each line of that kind. */
static void rewrite(const char *path, char kind, const char *text_of_it)
{
	char line[4096], kept[80];
	FILE *in = fopen(path, "r"), *out;

	(void)snprintf(kept, sizeof(kept), "%s.kept", path);
	out = fopen(kept, "w");
	assert_non_null(in);
	assert_non_null(out);
	while (fgets(line, sizeof(line), in) != NULL)
		assert_true(fputs(line[0] != kind ? line : text_of_it, out) >= 0);
	(void)fclose(in);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(rename(kept, path), 0);
}

/* Without the lines of that kind. */
static void strip(const char *path, char kind)
{
	rewrite(path, kind, "");
}

/* What is opened until journal_over is written down there. */
static void journal_to(char *path)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(setenv("HAL_HAL_JOURNAL", path, 1), 0);
}

static void journal_over(void)
{
	assert_int_equal(unsetenv("HAL_HAL_JOURNAL"), 0);
}

/* Best effort that costs high priority nothing, as the profile says, until that is known
 * better: so much of it runs beside. */
static uint64_t runs_beside(void)
{
	const char *options[] = {"policy.name=orion",
				 "hal.partition_inflight=1",
				 "hal.queue_depth=4096",
				 "policy.timeout_ms=0",
				 NULL,
				 NULL};
	struct hal_queue *effort;
	struct hal_point done;
	struct sides t;
	uint64_t ended_beside;

	memset(&t, 0, sizeof(t));
	profile_text_pairs(text, three, SIDES, 4, "[[0, 0, 0], [0, 0, 0], [0, 0, 0]]");
	options[4] = profile_file(text);
	world_open(&t.s.w, options);
	t.s.q = add_queue(t.s.w.part, 0, 1, 0);
	sides_make(&t);
	takes(&t, 0, 2000);
	effort = t.q[0];
	t.q[0] = add_queue(t.part[0], 1, 1, 0); /* orion_priority */
	(void)runs(&t, 1, 100);
	done = runs(&t, 0, 200);
	finish(done);
	ended_beside = stats_of(t.q[1]).completed;
	OK(hal_queue_destroy(effort));
	sides_close(&t);
	return ended_beside;
}

static void replays_what_is_learned(void **state)
{
	char journal[] = "/tmp/hal-journal-XXXXXX";

	(void)state;
	journal_to(journal);
	/* Of 62 that there is time for. */
	assert_in_range(runs_beside(), 2, 8);
	journal_over();
	assert_true(replayed(journal, 0).decisions > 200);
	assert_int_equal(replayed(journal, 0).mismatches, 0);
	assert_int_equal(unlink(journal), 0);
	profile_gone();
}

static void replays_stops(void **state)
{
	char journal[] = "/tmp/hal-journal-XXXXXX";
	uint64_t at;

	(void)state;
	journal_to(journal);
	(void)begun_anew("{\"mode\": \"fold\", \"quiet_ns\": 1000, \"cost_ns\": 9000, "
			 "\"saved_bytes\": 0}",
			 &at);
	journal_over();
	profile_gone();
	assert_int_equal(replayed(journal, 0).mismatches, 0);
	strip(journal, 'a');
	assert_true(replayed(journal, 0).mismatches > 0);
	assert_int_equal(unlink(journal), 0);
}

static void replays(void **state)
{
	char journal[] = "/tmp/hal-journal-XXXXXX";

	(void)state;
	journal_to(journal);
	(void)course(work_profile(1400, 200, 3, 40), false);
	journal_over();
	assert_true(replayed(journal, 0).decisions > 16);
	assert_int_equal(replayed(journal, 0).mismatches, 0);
	/* The file is not needed for it; what it said is, and is noticed. */
	profile_gone();
	assert_int_equal(replayed(journal, 0).mismatches, 0);
	strip(journal, 'u');
	assert_true(replayed(journal, 0).mismatches > 0);
	strip(journal, 'k');
	(void)replayed(journal, -EINVAL);
	assert_non_null(strstr(hal_last_error(), "there is no such kernel"));
	assert_int_equal(unlink(journal), 0);
}

/* Who may run beside whom is in it, too. */
static void replays_pairs(void **state)
{
	static const struct {
		char kind;
		const char *line, *says;
	} wrong[] = {
		{'i', "i 1 3 5\n", "not a valid pair of programs"},
		{'i', "i 0 1 5\n", "not a valid pair of programs"},
		{'i', "i 1 2 4294967296\n", "not a valid pair of programs"},
		{'o', "o 0 3\n", "number of programs is out of range"},
		{'o', "o 1025 3\n", "number of programs is out of range"},
		{'o', "o 2 4294967296\n", "number of programs is out of range"},
	};
	char journal[] = "/tmp/hal-journal-XXXXXX";

	(void)state;
	journal_to(journal);
	assert_int_equal(by_pairs("memory", "[[0, 101], [0, 0]]", NULL), 0);
	journal_over();
	profile_gone();
	assert_true(replayed(journal, 0).decisions > 40);
	assert_int_equal(replayed(journal, 0).mismatches, 0);
	/* The pair that costs is the only one that is written: without it, none does. */
	rewrite(journal, 'i', "i 2 1 5\n");
	assert_true(replayed(journal, 0).mismatches > 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		rewrite(journal, wrong[i].kind, wrong[i].line);
		(void)replayed(journal, -EINVAL);
		if (strstr(hal_last_error(), wrong[i].says) == NULL)
			fail_msg("%s: %s", wrong[i].line, hal_last_error());
	}
	assert_int_equal(unlink(journal), 0);
}

/* ---- wrong files ---------------------------------------------------------------------- */

/* The text with its first a as b. */
static const char *with(const char *a, const char *b)
{
	static char other[PROFILE_BYTES];
	const char *at;

	(void)work_profile(1600, 0, 3, 0);
	at = strstr(text, a);
	assert_non_null(at);
	(void)snprintf(other, sizeof(other), "%.*s%s%s", (int)(at - text), text, b,
		       at + strlen(a));
	return profile_file(other);
}

static void wrong_files(void **state)
{
	static const struct {
		const char *a, *b, *says;
	} cases[] = {
		{"\"accelhal_profile\": 1,", "", ":1: has no accelhal_profile"},
		{"profile\": 1", "profile\": 2", "accelhal_profile: is version 2"},
		{"profile\": 1", "profile\": \"1\"", ":1: accelhal_profile: is a text"},
		{"\"device\"", "\"devices\"", "devices: is an unknown key"},
		{"\"runs\": 3,", "", "has no runs"},
		{"\"runs\": 3", "\"runs\": 0", ":5: runs: is 0"},
		{"\"unit_cols\": 16", "\"unit_cols\": []",
		 ":3: device.unit_cols: is a l"},
		{"\"unit_cols\": 16", "\"unit_cols\": 1.5",
		 "device.unit_cols: is 1.5, not a whole number"},
		{"\"clock\":", "\"clocks\":", "device.clocks: is an unknown key"},
		{"\"programs\"", "\"program\"", "program: is an unknown key"},
		{"[{\"name\": \"one\"", "[3, {\"name\": \"one\"",
		 "programs[0]: is not an object"},
		{"\"name\": \"work\"", "\"name\": 7",
		 ":7: programs[0].kernels[0].name: is a number"},
		{"\"name\": \"work\"",
		 "\"name\": \"a name of more than 31 characters, it "
		 "is\"",
		 "kernels[0].name: has more than 31 characters"},
		{"\"work\": 0", "\"work\": -1", "kernels[0].work: is -1"},
		{"[0, 0]", "[0, \"0\"]", "kernels[0].arg_bytes[1]: is a text"},
		{"[0, 0]", "[1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8]",
		 "arg_bytes: has 17 arguments"},
		{"\"array\"", "\"arrays\"",
		 ":8: programs[0].kernels[0].class: is \"arrays"},
		{"\"bytes\": 4096", "\"byte\": 4096",
		 "kernels[0].byte: is an unknown key"},
		{"\"units\": 2,", "\"units\": 1,",
		 ":11: programs[0].kernels[0].units[1].units: is repeated"},
		{"\"units\": 2,", "\"units\": 17,", "units[1].units: is 17, not from 1"},
		{"\"ns\": 800", "\"ns\": 0",
		 ":11: programs[0].kernels[0].units[1].ns: is"},
		{"\"ns\": 800", "\"ns\": 0.5", "units[1].ns: is 0.5"},
		{"\"spread_ns\": 0", "\"spread\": 0", "has no spread_ns"},
		{"\"bytes\"", "\"stops\": 3, \"bytes\"", "kernels[0].stops: is a number"},
		{"\"bytes\"", "\"stops\": [3], \"bytes\"", "stops[0]: is not an object"},
		{"\"bytes\"", "\"stops\": [{\"mode\": \"halt\"}], \"bytes\"",
		 ":9: programs[0].kernels[0].stops[0].mode: is \"halt\", not drain, "
		 "fold"},
		{"\"bytes\"", "\"stops\": [{\"mode\": \"kill\"}], \"bytes\"",
		 "stops[0]: has no quiet_ns"},
		{"\"bytes\"", "\"stops\": [{\"quiet\": 1}], \"bytes\"",
		 "stops[0].quiet: is an unknown key"},
		{"\"bytes\"",
		 "\"stops\": [{\"mode\": \"kill\", \"quiet_ns\": 1, \"cost_ns\": 2},"
		 "{\"mode\": \"kill\", \"quiet_ns\": 1, \"cost_ns\": 2}], \"bytes\"",
		 "stops[1].mode: is repeated"},
		{"\"bytes\"",
		 "\"stops\": [{\"mode\": \"kill\", \"quiet_ns\": -1, \"cost_ns\": 2}], "
		 "\"bytes\"",
		 "stops[0].quiet_ns: is -1"},
		{"]}]}]}", "]}]}], \"beside_permille\": 3}",
		 "beside_permille: is a number"},
		{"]}]}]}", "]}]}], \"beside_permille\": [[0], [0]]}",
		 ":25: beside_permille: has 2 entries, but there are 1 programs"},
		{"]}]}]}", "]}]}], \"beside_permille\": [0]}",
		 "beside_permille[0]: is not a list"},
		{"]}]}]}", "]}]}], \"beside_permille\": [[0, 0]]}",
		 "beside_permille[0]: has 2 entries, but there are 1 programs"},
		{"]}]}]}", "]}]}], \"beside_permille\": [[-1]]}",
		 "beside_permille[0][0]: is -1"},
		{"]}]}]}", "]}]}], \"beside_permille\": [[1.5]]}",
		 "beside_permille[0][0]: is 1.5, not a whole number"},
		{"]}]}]}", "]}]}], \"beside_permille\": [[\"1\"]]}",
		 "beside_permille[0][0]: is a text"},
		{"]}]}", "]}]", "parse error"},
		{"]}]}", "]}]}}", "parse error"},
	};
	struct hal_device *dev;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const options[] = {with(cases[i].a, cases[i].b), NULL};
		char file[64];

		FAILS(hal_open("ref?clock=virtual", options, &dev), -EINVAL,
		      cases[i].says);
		(void)snprintf(file, sizeof(file),
			       "%s:", options[0] + strlen("hal.profile="));
		if (strstr(hal_last_error(), "hal.profile: ") == NULL ||
		    strstr(hal_last_error(), file) == NULL)
			fail_msg("no file in: %s", hal_last_error());
	}
}

static void no_file(void **state)
{
	const char *const options[] = {"hal.profile=/tmp/there/is/none", NULL};
	struct hal_device *dev;

	(void)state;
	FAILS(hal_open("ref?clock=virtual", options, &dev), -ENOENT,
	      "/tmp/there/is/none");
}

static void another_device(void **state)
{
	static const char *const others[] = {"ref?units=8", "ref?units=16&rows=4",
					     "ref?clock=real", "ref?colors=4"};
	const char *const options[] = {work_profile(1600, 0, 3, 0), NULL};
	struct hal_device *dev;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		FAILS(hal_open(others[i], options, &dev), -EINVAL,
		      "is a profile of ref \"software device, 16 units\" "
		      "(clock=virtual), but this device is ref \"software device, ");
		assert_non_null(strstr(hal_last_error(), ":2: device: "));
	}
	OK(hal_open("ref?units=16", options, &dev));
	OK(hal_close(dev));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_from_the_first),
		cmocka_unit_test(not_known_is_never_0),
		cmocka_unit_test(goes_on_learning),
		cmocka_unit_test(how_sure),
		cmocka_unit_test(whole_submissions),
		cmocka_unit_test(beside_each_other),
		cmocka_unit_test(learned_beside),
		cmocka_unit_test(learned_on_top),
		cmocka_unit_test(alone_is_learned),
		cmocka_unit_test(seen_apart),
		cmocka_unit_test(a_policy_that_does_not_ask),
		cmocka_unit_test(as_after_learning),
		cmocka_unit_test(krisp_from_the_first),
		cmocka_unit_test(orion_from_the_first),
		cmocka_unit_test(orion_by_pairs),
		cmocka_unit_test(orion_looks_behind),
		cmocka_unit_test(weave_from_the_first),
		cmocka_unit_test(stops_by_profile),
		cmocka_unit_test(replays),
		cmocka_unit_test(replays_what_is_learned),
		cmocka_unit_test(replays_stops),
		cmocka_unit_test(replays_pairs),
		cmocka_unit_test(wrong_files),
		cmocka_unit_test(no_file),
		cmocka_unit_test(another_device),
	};
	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	profile_gone();
	return rc;
}
