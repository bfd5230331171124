/* SPDX-License-Identifier: Apache-2.0 */
/* The host of a policy: what it tells, what it does for it, and the net under it. */
#include "world.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include <hal/ext/replay.h>

#include "../unit/mock.h"
#include "plugin.h"

#define ONE_AT_A_TIME "hal.partition_inflight=1", "hal.inflight=1", "hal.queue_depth=1024"
#define PLUGINS       "hal.plugins=" PLUGIN_TEST ":" PLUGIN_ALWAYS

static const char *const with_plugin[] = {PLUGINS, ONE_AT_A_TIME, "policy.name=plugin",
					  NULL};

/* The control of a plugin that is loaded already, as new. */
static struct plugin_control *control_of(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW);
	struct plugin_control *c;

	if (lib == NULL)
		fail_msg("%s", dlerror());
	c = dlsym(lib, "plugin_control");
	assert_non_null(c);
	memset(c, 0, sizeof(*c));
	return c;
}

struct two {
	struct world w;
	struct plugin_control *c;
	struct hal_queue *a, *b;
	struct hal_policy_queue *a_view, *b_view;
};

static void two_open(struct two *t, const char *const *options)
{
	t->c = control_of(PLUGIN_TEST);
	world_open(&t->w, options);
	t->a = add_queue(t->w.part, 0, 1, 0);
	t->a_view = t->c->last;
	t->b = add_queue(t->w.part, 0, 1, 0);
	t->b_view = t->c->last;
}

static void two_close(struct two *t)
{
	OK(hal_queue_destroy(t->a));
	OK(hal_queue_destroy(t->b));
	world_close(&t->w);
	assert_int_equal(t->c->overruns, 0);
}

/* ---- asked and not asked ----------------------------------------------------------- */

static void alone(void **state)
{
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	finish(submit(&t.w, t.a, 100, 10, 'a'));
	assert_int_equal(t.c->picked, 0);
	assert_int_equal(t.c->enqueued, 0);
	assert_int_equal(t.c->ended, 100); /* but told of what it wants to know */
	/* With a competitor each of its commands is asked for, but for a last one alone.
	 */
	(void)submit(&t.w, t.a, 10, 10, 'a');
	(void)submit(&t.w, t.b, 10, 10, 'b');
	finish_all(&t.w);
	assert_in_range(t.c->picked, 18, 20);
	assert_string_equal(ended.text + 100, "abababababababababab");
	two_close(&t);
}

/* A command at a queue's head is told of as it was submitted. */
static void heads(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_buffer_desc bytes = HAL_INIT(hal_buffer_desc);
	const struct hal_arg args[2] = {{.offset = 10}, {.offset = 'b'}};
	struct hal_buffer *buf;
	struct hal_queue *q;
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	q = add_queue(t.w.part, 5, 1, 0); /* what none of them asks for */
	t.c->watched = t.c->last;
	bytes.bytes = 4096;
	OK(hal_buffer_create(t.w.part, &bytes, &buf));
	world_work(&t.w, 7);
	const struct hal_cmd cmds[] = {
		hal_cmd_launch(t.w.work, args, 2),
		hal_cmd_fill(buf, 0, 4096, 1),
		hal_cmd_copy(buf, 0, buf, 2048, 1024),
		hal_cmd_timestamp(buf, 0),
	};
	for (uint32_t i = 0; i < 2 * sizeof(cmds) / sizeof(cmds[0]); i++) {
		struct hal_cmd cmd = cmds[i / 2];

		(void)submit(&t.w, t.a, 2, 100, 'a');
		pass(&t.w, 1);
		cmd.flags = i % 2 != 0 ? HAL_CMD_REPLAYABLE : 0;
		d.cmds = &cmd;
		d.cmd_count = 1;
		d.priority = (int32_t)i - 3;
		d.flags = HAL_SUBMIT_PRIORITY;
		d.deadline_ns = i % 3 * UINT64_C(1000); /* none with priority 0 */
		OK(hal_submit(q, &d, NULL));
		pass(&t.w, 100); /* there is room again */
		assert_int_equal(t.c->head.op, cmd.op);
		assert_int_equal(t.c->head.flags, cmd.flags);
		assert_int_equal(t.c->head.priority, (int32_t)i - 3);
		assert_int_equal(t.c->head.submit_ns, hal_device_get_time(t.w.dev) - 100);
		if (i % 3 == 0)
			assert_true(t.c->head.deadline_ns == HAL_POLICY_NEVER);
		else
			assert_int_equal(t.c->head.deadline_ns - t.c->head.submit_ns,
					 d.deadline_ns);
		assert_int_equal(t.c->head.work, i / 2 == 0 ? 7 : 0);
		finish_all(&t.w);
	}
	OK(hal_buffer_destroy(buf));
	OK(hal_queue_destroy(q));
	two_close(&t);
}

static void always(void **state)
{
	static const char *const options[] = {PLUGINS, ONE_AT_A_TIME,
					      "policy.name=always", NULL};
	struct plugin_control *c = control_of(PLUGIN_ALWAYS);
	struct hal_queue *a;
	struct world w;

	(void)state;
	world_open(&w, options);
	a = add_queue(w.part, 0, 1, 0);
	finish(submit(&w, a, 100, 10, 'a'));
	assert_int_equal(c->picked, 100);
	assert_int_equal(c->enqueued, 100);
	/* Also when it has taken over from one that does not. */
	OK(hal_device_set_policy(w.dev, "fifo", NULL));
	finish(submit(&w, a, 10, 10, 'a'));
	assert_int_equal(c->picked, 100);
	(void)submit(&w, a, 10, 10, 'a');
	pass(&w, 5);
	OK(hal_device_set_policy(w.dev, "always", NULL));
	finish_all(&w);
	assert_int_equal(c->picked, 109);
	assert_int_equal(ended.length, 120);
	OK(hal_queue_destroy(a));
	world_close(&w);
}

static void lease(void **state)
{
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	t.c->lease = 3;
	(void)submit(&t.w, t.a, 8, 10, 'a');
	(void)submit(&t.w, t.b, 8, 10, 'b');
	pass(&t.w, 119);
	/* The first came before there was anybody else. */
	assert_int_equal(ended.length, 11);
	assert_memory_equal(ended.text, "aaaabbbbaaaa", 11);
	assert_int_equal(t.c->picked, 3);
	finish_all(&t.w);
	assert_string_equal(ended.text, "aaaabbbbaaaabbbb");
	two_close(&t);
}

/* A lease does not keep others waiting for longer than the net holds. */
static void lease_too_long(void **state)
{
	static const char *const options[] = {PLUGINS, ONE_AT_A_TIME,
					      "policy.name=plugin", "policy.timeout_ms=1",
					      NULL};
	struct two t;

	(void)state;
	two_open(&t, options);
	t.c->lease = UINT32_MAX;
	(void)submit(&t.w, t.a, 4, 100000, 'a');
	pass(&t.w, 1);
	(void)submit(&t.w, t.b, 50, 100000, 'b');
	pass(&t.w, 3600000);
	/* The first came before there was anybody else. */
	assert_string_equal(ended.text, "abbbbbbbbbbbabbbbbbbbbbbabbbbbbbbbbb");
	assert_int_equal(policy_of(&t.w).starved, 3);
	assert_non_null(strstr(policy_of(&t.w).reason, "passed over"));
	finish_all(&t.w);
	assert_int_equal(ended.length, 54);
	two_close(&t);
}

static void not_admitted(void **state)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	t.c->attach_err = ENOSPC;
	FAILS(hal_queue_create(t.w.part, &d, &q), -ENOSPC, "not admitted");
	t.c->attach_err = 0;
	assert_int_equal(t.c->attached, 2);
	/* Those that were there stay when it is set again, and it hears no more of them.
	 */
	t.c->attach_err = ENOSPC;
	OK(hal_device_set_policy(t.w.dev, "plugin", NULL));
	assert_int_equal(t.c->detached, 2);
	two_close(&t);
	assert_int_equal(t.c->attached, 2);
	assert_int_equal(t.c->detached, 2);
}

/* ---- the net ----------------------------------------------------------------------- */

/* 40 commands of each queue in that mode: all of them run, as they came.  Answers what
 * the policy is said to have done. */
static struct hal_policy_info misbehave(struct two *t, enum plugin_mode mode, uint64_t ns)
{
	struct hal_policy_info i;

	t->c->mode = mode;
	(void)submit(&t->w, t->a, 40, ns, 'a');
	(void)submit(&t->w, t->b, 40, ns, 'b');
	finish_all(&t->w);
	assert_int_equal(ended.length, 80);
	for (size_t k = 0; k < 80; k++)
		assert_int_equal(ended.text[k], k % 2 == 0 ? 'a' : 'b');
	i = policy_of(&t->w);
	assert_string_equal(i.name, "plugin");
	memset(&ended, 0, sizeof(ended));
	/* Somebody swaps it: as new. */
	t->c->mode = PLUGIN_FIFO;
	OK(hal_device_set_policy(t->w.dev, "plugin", NULL));
	assert_int_equal(policy_of(&t->w).fallback, 0);
	assert_int_equal(policy_of(&t->w).invalid + policy_of(&t->w).stalls, 0);
	assert_string_equal(policy_of(&t->w).reason, "");
	return i;
}

/* The policy that is not asked any more still gives back what it has of each queue. */
static void detached_all_the_same(void **state)
{
	struct hal_partition *elsewhere;
	struct hal_queue *other, *later;
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	elsewhere = add_partition(&t.w);
	other = add_queue(elsewhere, 0, 1, 0);
	t.c->stranger = t.c->last;
	t.c->mode = PLUGIN_STRANGER;
	(void)submit(&t.w, t.a, 40, 10, 'a');
	(void)submit(&t.w, t.b, 40, 10, 'b');
	finish_all(&t.w);
	assert_int_equal(policy_of(&t.w).fallback, 1);
	/* This one it has never seen. */
	later = add_queue(t.w.part, 0, 1, 0);
	OK(hal_queue_destroy(later));
	assert_int_equal(t.c->attached, 3);
	assert_int_equal(t.c->detached, 0);
	OK(hal_queue_destroy(t.a));
	assert_int_equal(t.c->detached, 1);
	OK(hal_device_set_policy(t.w.dev, "fifo", NULL));
	assert_int_equal(t.c->detached, 3);
	OK(hal_queue_destroy(other));
	OK(hal_partition_destroy(elsewhere));
	t.a = add_queue(t.w.part, 0, 1, 0);
	two_close(&t);
	assert_int_equal(t.c->detached, 3);
}

/* Who can start what it has stopped, when it is not asked any more? */
static void started_all_the_same(void **state)
{
	struct hal_queue *third;
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	third = add_queue(t.w.part, 0, 1, 0);
	t.c->stranger = t.c->last;
	assert_int_equal(t.c->host->stop(t.c->host->device, t.c->last, HAL_SUSPEND_DRAIN),
			 0);
	(void)submit(&t.w, third, 1, 10, 'c');
	t.c->mode = PLUGIN_STRANGER;
	(void)submit(&t.w, t.a, 7, 10, 'a');
	(void)submit(&t.w, t.b, 7, 10, 'b');
	pass(&t.w, 1000);
	assert_int_equal(policy_of(&t.w).fallback, 0);
	assert_int_equal(ended.length, 14);
	(void)submit(&t.w, t.a, 7, 10, 'a');
	(void)submit(&t.w, t.b, 7, 10, 'b');
	finish_all(&t.w);
	assert_int_equal(policy_of(&t.w).fallback, 1);
	assert_int_equal(ended.length, 29);
	OK(hal_queue_destroy(third));
	t.c->overruns = 0; /* it was not told of all */
	two_close(&t);
}

/* A command that was picked ends, also when the device does not take it. */
static void told_of_refused(void **state)
{
	const struct hal_ref_extension *ref;
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	ref = hal_device_get_extension(t.w.dev, "ref");
	(void)submit(&t.w, t.a, 1, 10, 'a');
	pass(&t.w, 1);
	OK(ref->inject(hal_device_get_native(t.w.dev), HAL_REF_OP_SUBMIT, 1, EIO));
	(void)submit(&t.w, t.a, 1, 10, 'a');
	(void)submit(&t.w, t.b, 1, 10, 'b');
	finish_all(&t.w);
	assert_int_equal(ended.length, 2);
	assert_int_equal(t.c->ended, 3);
	assert_int_equal(t.c->status, -EIO);
	two_close(&t);
}

static void net(void **state)
{
	struct hal_partition *elsewhere;
	struct hal_policy_info i;
	struct hal_queue *other, *gone;
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	elsewhere = add_partition(&t.w);
	other = add_queue(elsewhere, 0, 1, 0);
	t.c->stranger = t.c->last;
	i = misbehave(&t, PLUGIN_STRANGER, 10);
	assert_int_equal(i.invalid, 16);
	assert_int_equal(i.fallback, 1);
	assert_non_null(strstr(i.reason, "not runnable"));
	/* Runnable there, but not here. */
	{
		struct hal_queue *third = add_queue(elsewhere, 0, 1, 0);

		t.c->mode = PLUGIN_FIFO;
		(void)submit(&t.w, other, 200, 1000, 'x');
		(void)submit(&t.w, third, 200, 1000, 'x');
		pass(&t.w, 500);
		i = policy_of(&t.w);
		t.c->mode = PLUGIN_STRANGER;
		(void)submit(&t.w, t.a, 5, 1000, 'a');
		(void)submit(&t.w, t.b, 5, 1000, 'b');
		pass(&t.w, 9000);
		t.c->mode = PLUGIN_FIFO;
		finish_all(&t.w);
		assert_true(policy_of(&t.w).invalid > 0);
		assert_int_equal(stats_of(t.a).completed, 45);
		assert_int_equal(stats_of(other).completed, 200);
		assert_int_equal(stats_of(third).completed, 200);
		OK(hal_queue_destroy(third));
		memset(&ended, 0, sizeof(ended));
		t.c->overruns = 0; /* it has let things happen behind its back */
		OK(hal_device_set_policy(t.w.dev, "plugin", NULL));
	}
	gone = add_queue(t.w.part, 0, 1, 0);
	t.c->stranger = t.c->last;
	OK(hal_queue_destroy(gone));
	i = misbehave(&t, PLUGIN_STRANGER, 10);
	assert_int_equal(i.invalid, 16);
	assert_int_equal(i.fallback, 1);
	i = misbehave(&t, PLUGIN_NOBODY, 10);
	assert_int_equal(i.stalls, 16);
	assert_int_equal(i.fallback, 1);
	assert_non_null(strstr(i.reason, "nothing runs"));
	i = misbehave(&t, PLUGIN_PAST, 10);
	assert_int_equal(i.stalls, 16);
	assert_int_equal(i.fallback, 1);
	assert_non_null(strstr(i.reason, "has passed"));
	/* Twelve a second are not enough. */
	t.c->picked = 0;
	i = misbehave(&t, PLUGIN_NOBODY, 80000000);
	assert_in_range(i.stalls, 77, 80);
	assert_int_equal(i.fallback, 0);
	/* Once more while the other partition had not been asked. */
	assert_in_range(t.c->picked, i.stalls, i.stalls + 1);
	OK(hal_queue_destroy(other));
	OK(hal_partition_destroy(elsewhere));
	two_close(&t);
}

/* Alive, but with nothing to do; and with work, but elsewhere. */
static void strangers(void **state)
{
	static const char *const two_each[] = {PLUGINS, "hal.partition_inflight=1",
					       "hal.queue_depth=1024",
					       "policy.name=plugin", NULL};
	struct hal_partition *elsewhere;
	struct hal_queue *idle, *other;
	struct two t;

	(void)state;
	two_open(&t, two_each);
	idle = add_queue(t.w.part, 0, 1, 0);
	t.c->stranger = t.c->last;
	assert_int_equal(misbehave(&t, PLUGIN_STRANGER, 10).invalid, 16);
	OK(hal_queue_destroy(idle));
	elsewhere = add_partition(&t.w);
	other = add_queue(elsewhere, 0, 1, 0);
	t.c->stranger = t.c->last;
	(void)submit(&t.w, other, 200, 1000, 'x');
	(void)submit(&t.w, t.a, 40, 10, 'a');
	(void)submit(&t.w, t.b, 40, 10, 'b');
	t.c->mode = PLUGIN_STRANGER;
	pass(&t.w, 810);
	assert_int_equal(ended.length, 80);
	assert_int_equal(policy_of(&t.w).invalid, 16);
	assert_int_equal(policy_of(&t.w).fallback, 1);
	finish_all(&t.w);
	assert_int_equal(stats_of(other).completed, 200);
	OK(hal_queue_destroy(other));
	OK(hal_partition_destroy(elsewhere));
	t.c->overruns = 0; /* it was not told of all */
	two_close(&t);
}

static void starves(void **state)
{
	static const char *const options[] = {PLUGINS, ONE_AT_A_TIME,
					      "policy.name=plugin", "policy.timeout_ms=1",
					      NULL};
	struct hal_policy_info i;
	struct two t;

	(void)state;
	two_open(&t, options);
	t.c->mode = PLUGIN_STARVE;
	t.c->victim = t.b_view;
	(void)submit(&t.w, t.a, 300, 10000, 'a');
	(void)submit(&t.w, t.b, 3, 10000, 'b');
	pass(&t.w, 1000000);
	assert_int_equal(stats_of(t.b).completed, 0);
	pass(&t.w, 20000); /* 1 ms */
	assert_int_equal(policy_of(&t.w).starved, 1);
	assert_int_equal(stats_of(t.b).completed, 1);
	finish_all(&t.w);
	i = policy_of(&t.w);
	assert_int_equal(i.starved, 3);
	assert_int_equal(i.fallback, 0);
	assert_in_range(i.longest_wait_ns, 1000000, 1010000);
	assert_int_equal(ended.length, 303);
	/* Longer held than the net holds. */
	t.c->mode = PLUGIN_HOLD;
	t.c->hold_ns = UINT64_MAX - 1;
	(void)submit(&t.w, t.a, 1, 10, 'a');
	(void)submit(&t.w, t.b, 1, 10, 'b');
	finish_all(&t.w);
	assert_int_equal(ended.length, 305);
	assert_int_equal(policy_of(&t.w).starved, 5);
	two_close(&t);
}

/* Who starves is meant to: it is served in the end, but that is no reason to go on
 * without the policy. */
static void starves_as_meant(void **state)
{
	static const char *const options[] = {"hal.plugins=" PLUGIN_STARVES,
					      ONE_AT_A_TIME, "policy.name=starves",
					      "policy.timeout_ms=1", NULL};
	struct plugin_control *c = control_of(PLUGIN_STARVES);
	struct hal_queue *a, *b;
	struct world w;

	(void)state;
	world_open(&w, options);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 1, 0);
	c->mode = PLUGIN_STARVE;
	c->victim = c->last;
	(void)submit(&w, a, 300, 100000, 'a');
	(void)submit(&w, b, 28, 10, 'b');
	finish_all(&w);
	assert_in_range(policy_of(&w).starved, 26, 28);
	assert_int_equal(policy_of(&w).fallback, 0);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

/* ---- partitions that wait for each other --------------------------------------------- */

struct sides {
	struct two t;
	struct hal_partition *elsewhere;
	struct hal_queue *other;
};

/* Nobody of elsewhere is named while anything of the first partition runs. */
static void sides_open(struct sides *s)
{
	two_open(&s->t, with_plugin);
	s->t.c = control_of(PLUGIN_ALWAYS);
	OK(hal_device_set_policy(s->t.w.dev, "always", NULL));
	s->elsewhere = add_partition(&s->t.w);
	s->other = add_queue(s->elsewhere, 0, 1, 0);
	s->t.c->behind = s->t.c->part;
	s->t.c->mode = PLUGIN_BEHIND;
}

static void sides_close(struct sides *s)
{
	OK(hal_queue_destroy(s->other));
	OK(hal_partition_destroy(s->elsewhere));
	two_close(&s->t);
}

static void asks(void **state)
{
	struct sides s;
	struct world *w = &s.t.w;

	(void)state;
	sides_open(&s);
	assert_string_equal(s.t.c->host->info->backend, "ref");
	/* Told of what ended elsewhere: at once, though that goes on with another. */
	s.t.c->asks = 1;
	s.t.c->enough = 2;
	(void)submit(w, s.t.a, 3, 100, 'a');
	pass(w, 1);
	(void)submit(w, s.other, 1, 10, 'x');
	pass(w, 199);
	assert_string_equal(ended.text, "aa");
	pass(w, 11);
	assert_string_equal(ended.text, "aax");
	finish_all(w);
	assert_int_equal(policy_of(w).stalls, 0);
	/* It was held for up to ten seconds: nobody waits for the end of that. */
	assert_int_equal(hal_device_get_time(w->dev), 300);
	/* Not told: when the device has nothing more, and then it is overruled. */
	s.t.c->asks = 0;
	s.t.c->enough = 10;
	(void)submit(w, s.t.a, 2, 100, 'a');
	pass(w, 1);
	(void)submit(w, s.other, 1, 10, 'x');
	finish_all(w);
	assert_string_equal(ended.text, "aaxaaax");
	assert_int_equal(hal_device_get_time(w->dev), 510);
	assert_int_equal(policy_of(w).stalls, 1);
	/* And asked before somebody who is about to start, it is asked behind him. */
	s.t.c->asks = 1;
	s.t.c->enough = 1;
	(void)submit(w, s.other, 2, 10, 'x');
	(void)submit(w, s.t.a, 3, 100, 'a');
	finish_all(w);
	assert_string_equal(ended.text, "aaxaaaxaxxaa");
	assert_int_equal(policy_of(w).stalls, 1);
	/* Each time anew, if it has named somebody in between. */
	for (int i = 0; i < 3; i++) {
		s.t.c->skips = 1;
		(void)submit(w, s.other, 1, 10, 'x');
		(void)submit(w, s.t.a, 1, 100, 'a');
		finish_all(w);
		assert_int_equal(s.t.c->skips, 0);
	}
	assert_string_equal(ended.text, "aaxaaaxaxxaaxaxaxa");
	assert_int_equal(policy_of(w).stalls, 1);
	sides_close(&s);
}

/* Two that ask for each other whenever they are asked; and withdrawn while it is held. */
static void asks_round(void **state)
{
	struct sides s;
	struct world *w = &s.t.w;

	(void)state;
	sides_open(&s);
	s.t.c->asks_in_pick = 1;
	s.t.c->enough = 10;
	(void)submit(w, s.t.a, 3, 100, 'a');
	pass(w, 1);
	(void)submit(w, s.other, 1, 10, 'x');
	pass(w, 150);
	assert_in_range(s.t.c->picked, 1, 10);
	OK(hal_queue_suspend(s.other, HAL_SUSPEND_DRAIN, NULL));
	finish_all(w);
	assert_int_equal(hal_device_get_time(w->dev), 300);
	s.t.c->enough = 0;
	OK(hal_queue_resume(s.other));
	finish_all(w);
	assert_string_equal(ended.text, "aaax");
	assert_int_equal(policy_of(w).stalls, 0);
	sides_close(&s);
}

static void wrong_plugins(void **state)
{
	static const char *const abi[] = {"hal.plugins=" PLUGIN_ABI, NULL};
	static const char *const size[] = {"hal.plugins=" PLUGIN_SIZE, NULL};
	struct hal_device *dev;
	char number[16];

	(void)state;
	FAILS(hal_open("ref?clock=virtual", abi, &dev), -EPROTO, "policy ABI 77");
	(void)snprintf(number, sizeof(number), "ABI %u", HAL_POLICY_ABI);
	FAILS(hal_open("ref?clock=virtual", abi, &dev), -EPROTO, number);
	FAILS(hal_open("ref?clock=virtual", size, &dev), -EPROTO, "96 bytes");
	(void)snprintf(number, sizeof(number), "%zu", sizeof(struct hal_policy));
	FAILS(hal_open("ref?clock=virtual", size, &dev), -EPROTO, number);
}

/* ---- times ------------------------------------------------------------------------- */

static void hold_and_alarm(void **state)
{
	uint64_t from;
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	from = hal_device_get_time(t.w.dev);
	t.c->mode = PLUGIN_HOLD;
	t.c->hold_ns = from + 1000;
	t.c->host->alarm(t.c->host->device, from + 400);
	(void)submit(&t.w, t.a, 1, 10, 'a');
	(void)submit(&t.w, t.b, 1, 10, 'b');
	pass(&t.w, 399);
	assert_int_equal(t.c->alarms, 0);
	pass(&t.w, 1);
	assert_int_equal(t.c->alarms, 1);
	assert_int_equal(t.c->alarm_at_ns, from + 400);
	/* Whoever is held is asked for again, and still held. */
	assert_int_equal(t.c->now_ns, from + 400);
	assert_int_equal(t.c->picked, 2);
	/* So it is when something has changed. */
	assert_int_equal(t.c->host->stop(t.c->host->device, t.b_view, HAL_SUSPEND_DRAIN),
			 0);
	pass(&t.w, 1);
	assert_int_equal(t.c->changed, 1);
	assert_int_equal(t.c->now_ns, from + 400);
	assert_int_equal(t.c->picked, 3);
	assert_int_equal(t.c->host->start(t.c->host->device, t.b_view), 0);
	pass(&t.w, 1);
	/* A later alarm does not put off who is held, nor the other way round. */
	t.c->host->alarm(t.c->host->device, from + 5000);
	pass(&t.w, 598);
	assert_int_equal(t.c->now_ns, from + 1000);
	pass(&t.w, 10);
	assert_int_equal(ended.length, 1);
	finish_all(&t.w);
	assert_int_equal(ended.length, 2);
	assert_int_equal(policy_of(&t.w).stalls, 0);
	assert_int_equal(t.c->alarms, 2);
	assert_int_equal(t.c->alarm_at_ns, from + 5000);
	/* A time that has passed: at once, and time goes on all the same. */
	t.c->again_ns = 1;
	t.c->host->alarm(t.c->host->device, 1);
	pass(&t.w, 10);
	assert_int_equal(t.c->alarms, 12);
	t.c->again_ns = 0;
	pass(&t.w, 10);
	two_close(&t);
}

static void alarm_in_create(void **state)
{
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	OK(hal_device_set_policy(t.w.dev, "fifo", NULL));
	t.c->create_alarm_ns = hal_device_get_time(t.w.dev) + 100;
	OK(hal_device_set_policy(t.w.dev, "plugin", NULL));
	pass(&t.w, 99);
	assert_int_equal(t.c->alarms, 0);
	pass(&t.w, 1);
	assert_int_equal(t.c->alarms, 1);
	t.c->create_alarm_ns = 0;
	two_close(&t);
}

/* ---- requests ---------------------------------------------------------------------- */

/* A latency-critical command arrives while one of 1,000 ns of another queue has 500 to
 * go, and more of those wait: how long it takes. */
static uint64_t preempt(const char *path, const char *name, uint32_t mode)
{
	const char *const asks[] = {PLUGINS, ONE_AT_A_TIME, name, NULL};
	struct plugin_control *c = control_of(path);
	struct hal_queue *be, *lc;
	struct world w;
	uint64_t at;

	world_open(&w, asks);
	c->stop_mode = mode;
	c->mode = PLUGIN_PREEMPT;
	be = add_queue(w.part, 0, 1, 0);
	c->victim = c->last;
	lc = add_queue(w.part, 5, 1, 0);
	(void)submit(&w, be, 10, 1000, 'b');
	pass(&w, 2500);
	at = hal_device_get_time(w.dev);
	finish(submit(&w, lc, 1, 10, 'l'));
	at = hal_device_get_time(w.dev) - at;
	assert_int_equal(c->stopped, 0);
	assert_int_equal(c->started, 0);
	finish_all(&w);
	/* The other lost its place, and what KILL cost, but no command. */
	assert_int_equal(ended.length, 11);
	assert_int_equal(stats_of(be).completed, 10);
	assert_int_equal(stats_of(be).replayed, mode == HAL_SUSPEND_KILL);
	assert_int_equal(stats_of(be).suspends, 1);
	assert_int_equal(c->changed, 1);
	OK(hal_queue_destroy(be));
	OK(hal_queue_destroy(lc));
	world_close(&w);
	assert_int_equal(c->overruns, 0);
	return at;
}

static void preempts(void **state)
{
	(void)state;
	/* It is told at once, though nobody else is runnable. */
	assert_in_range(preempt(PLUGIN_ALWAYS, "policy.name=always", HAL_SUSPEND_KILL),
			10, 12);
	assert_int_equal(preempt(PLUGIN_ALWAYS, "policy.name=always", HAL_SUSPEND_DRAIN),
			 510);
	/* Else when there is a choice: as the long one ends. */
	assert_int_equal(preempt(PLUGIN_TEST, "policy.name=plugin", HAL_SUSPEND_DRAIN),
			 510);
}

/* Of a command that FOLD stops the policy gets the time at which it was stopped. */
static void time_of_a_stop(void **state)
{
	static const char *const options[] = {PLUGINS, ONE_AT_A_TIME,
					      "backend.ref.fold_ns=100",
					      "policy.name=plugin", NULL};
	struct two t;

	(void)state;
	two_open(&t, options);
	(void)submit(&t.w, t.a, 3, 1000, 'a');
	pass(&t.w, 2550);
	OK(hal_queue_suspend(t.a, HAL_SUSPEND_FOLD, NULL));
	pass(&t.w, 1000);
	assert_int_equal(t.c->status, -EINTR);
	assert_int_equal(t.c->folded.ran_ns, 600);
	assert_int_equal(t.c->folded.end_ns, 2600);
	OK(hal_queue_resume(t.a));
	finish_all(&t.w);
	two_close(&t);
}

/* What the policy has stopped, or is stopping, the application suspends: the policy is
 * told, and cannot start it any more. */
static void taken_over(void **state)
{
	const struct hal_policy_host *h;
	struct hal_point quiet;
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	h = t.c->host;
	/* Quiet. */
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_DRAIN), 0);
	(void)submit(&t.w, t.a, 1, 10, 'a');
	pass(&t.w, 100);
	assert_int_equal(t.c->changed, 1);
	OK(hal_queue_suspend(t.a, HAL_SUSPEND_KILL, &quiet));
	assert_int_equal(hal_wait(&quiet, 1, 0, 0), 0);
	assert_int_equal(t.c->changed, 2);
	assert_int_equal(h->start(h->device, t.a_view), -EINVAL);
	FAILS(hal_queue_suspend(t.a, HAL_SUSPEND_DRAIN, NULL), -EBUSY, "suspended");
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_DRAIN), -EBUSY);
	pass(&t.w, 100);
	assert_int_equal(ended.length, 0);
	OK(hal_queue_resume(t.a));
	finish_all(&t.w);
	assert_int_equal(ended.length, 1);
	/* On its way there, though the policy has asked for its start meanwhile. */
	(void)submit(&t.w, t.a, 2, 1000, 'a');
	pass(&t.w, 100);
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_DRAIN), 0);
	pass(&t.w, 1);
	assert_int_equal(h->start(h->device, t.a_view), 0);
	FAILS(hal_queue_suspend(t.a, HAL_SUSPEND_KILL, NULL), -EBUSY,
	      "being stopped by DRAIN for the scheduler; suspend it by KILL after that");
	OK(hal_queue_suspend(t.a, HAL_SUSPEND_DRAIN, &quiet));
	assert_int_equal(t.c->changed, 3);
	assert_int_equal(hal_wait(&quiet, 1, 0, 0), -ETIMEDOUT);
	finish(quiet);
	finish_all(&t.w);
	assert_int_equal(t.c->changed, 3);
	assert_true(ended.length < 3);
	OK(hal_queue_resume(t.a));
	finish_all(&t.w);
	assert_int_equal(ended.length, 3);
	assert_int_equal(stats_of(t.a).suspends, 2);
	two_close(&t);
}

/* For good, too: it has been quiet before, so whoever waits for it hears of it at once.
 */
static void taken_over_for_good(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	const struct hal_policy_host *h;
	struct hal_point stopped, waits, quiet;
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	h = t.c->host;
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_DRAIN), 0);
	stopped = submit(&t.w, t.a, 1, 10, 'a');
	d.waits = &stopped;
	d.wait_count = 1;
	OK(hal_submit(t.b, &d, &waits));
	pass(&t.w, 100);
	OK(hal_queue_suspend(t.a, HAL_SUSPEND_DRAIN | HAL_SUSPEND_FINAL, &quiet));
	finish(quiet);
	assert_int_equal(hal_wait(&stopped, 1, 0, HAL_FOREVER), -ECANCELED);
	assert_int_equal(hal_wait(&waits, 1, 0, HAL_FOREVER), -ECANCELED);
	assert_int_equal(ended.length, 0);
	assert_int_equal(stats_of(t.a).dropped, 1);
	two_close(&t);
}

/* How much of a queue waits, and until when the last of it has to be done. */
static void waiting(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	const struct hal_policy_host *h;
	struct hal_cmd many[40];
	const struct hal_arg args[2] = {{.offset = 10}, {.offset = 'a'}};
	uint64_t last, at;
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	h = t.c->host;
	assert_int_equal(h->waiting(h->device, t.a_view, &last), 0);
	assert_true(last == HAL_POLICY_NEVER);
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_DRAIN), 0);
	pass(&t.w, 1);
	(void)submit(&t.w, t.a, 2, 10, 'a');
	pass(&t.w, 100);
	assert_int_equal(h->waiting(h->device, t.a_view, &last), 2);
	assert_true(last == HAL_POLICY_NEVER);
	d.deadline_ns = 5000;
	at = hal_device_get_time(t.w.dev);
	(void)submit_as(&t.w, t.a, d, 1, 10, 'a');
	pass(&t.w, 100);
	assert_int_equal(h->waiting(h->device, t.a_view, &last), 3);
	assert_int_equal(last, at + 5000);
	/* One of many commands is one; that of the last has no deadline. */
	for (int i = 0; i < 40; i++)
		many[i] = hal_cmd_launch(t.w.work, args, 2);
	d.cmds = many;
	d.cmd_count = 40;
	d.deadline_ns = 0;
	OK(hal_submit(t.a, &d, NULL));
	pass(&t.w, 100);
	assert_int_equal(h->waiting(h->device, t.a_view, &last), 4);
	assert_true(last == HAL_POLICY_NEVER);
	/* No more than it looks at: three slots each. */
	(void)submit(&t.w, t.a, 300, 10, 'a');
	pass(&t.w, 100);
	assert_in_range(h->waiting(h->device, t.a_view, &last), HAL_POLICY_BEHIND / 3,
			HAL_POLICY_BEHIND / 3 + 4);
	assert_int_equal(h->start(h->device, t.a_view), 0);
	finish_all(&t.w);
	assert_int_equal(h->waiting(h->device, t.a_view, &last), 0);
	two_close(&t);
}

/* Stop and start beside what the application does. */
static void requests(void **state)
{
	const struct hal_policy_host *h;
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	h = t.c->host;
	assert_int_equal(h->start(h->device, t.a_view), -EINVAL);
	assert_int_equal(h->stop(h->device, t.a_view, 99), -EINVAL);
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_DRAIN), 0);
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_DRAIN), -EBUSY);
	(void)submit(&t.w, t.a, 2, 10, 'a');
	pass(&t.w, 100);
	assert_int_equal(t.c->changed, 1);
	assert_int_equal(ended.length, 0);
	/* Its work is the application's, and so is the queue. */
	FAILS(hal_queue_destroy(t.a), -EBUSY, "queue 0");
	assert_int_equal(h->start(h->device, t.a_view), 0);
	finish_all(&t.w);
	assert_int_equal(ended.length, 2);
	assert_int_equal(h->start(h->device, t.a_view), -EINVAL);
	/* Taken back before it began: nothing has happened. */
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_KILL), 0);
	assert_int_equal(h->start(h->device, t.a_view), 0);
	finish(submit(&t.w, t.a, 1, 10, 'a'));
	assert_int_equal(t.c->changed, 1);
	assert_int_equal(stats_of(t.a).suspends, 1);
	/* Who resumes what the policy has stopped has it back. */
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_DRAIN), 0);
	pass(&t.w, 1);
	OK(hal_queue_resume(t.a));
	finish(submit(&t.w, t.a, 1, 10, 'a'));
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_DRAIN), 0);
	pass(&t.w, 1);
	assert_int_equal(t.c->changed, 3);
	/* The application was first. */
	OK(hal_queue_suspend(t.b, HAL_SUSPEND_DRAIN, NULL));
	assert_int_equal(h->stop(h->device, t.b_view, HAL_SUSPEND_DRAIN), -EBUSY);
	assert_int_equal(h->start(h->device, t.b_view), -EINVAL);
	OK(hal_queue_resume(t.b));
	/* It comes in between: the policy is told, and has not stopped it. */
	assert_int_equal(h->stop(h->device, t.b_view, HAL_SUSPEND_DRAIN), 0);
	OK(hal_queue_suspend(t.b, HAL_SUSPEND_DRAIN, NULL));
	pass(&t.w, 1);
	assert_int_equal(t.c->changed, 4);
	assert_int_equal(h->start(h->device, t.b_view), -EINVAL);
	OK(hal_queue_resume(t.b));
	/* It comes and goes in between: the policy has stopped it all the same. */
	assert_int_equal(h->stop(h->device, t.b_view, HAL_SUSPEND_DRAIN), 0);
	OK(hal_queue_suspend(t.b, HAL_SUSPEND_DRAIN, NULL));
	OK(hal_queue_resume(t.b));
	(void)submit(&t.w, t.b, 1, 10, 'b');
	pass(&t.w, 100);
	assert_int_equal(t.c->changed, 5);
	assert_int_equal(ended.length, 4);
	FAILS(hal_queue_destroy(t.b), -EBUSY, "queue 1");
	assert_int_equal(h->start(h->device, t.b_view), 0);
	pass(&t.w, 10);
	assert_int_equal(ended.length, 5);
	/* Another policy: what the old one has stopped goes on. */
	(void)submit(&t.w, t.a, 3, 10, 'a');
	pass(&t.w, 100);
	OK(hal_device_set_policy(t.w.dev, "rr", NULL));
	finish_all(&t.w);
	assert_int_equal(ended.length, 8);
	two_close(&t);
}

/* Nobody is stopped for longer than he may be kept waiting, and then he is served. */
static void stops_too_long(void **state)
{
	static const char *const options[] = {PLUGINS, ONE_AT_A_TIME,
					      "policy.name=plugin", "policy.timeout_ms=1",
					      NULL};
	const struct hal_policy_host *h;
	struct two t;

	(void)state;
	two_open(&t, options);
	h = t.c->host;
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_DRAIN), 0);
	assert_int_equal(h->stop(h->device, t.b_view, HAL_SUSPEND_DRAIN), 0);
	pass(&t.w, 1000000);
	(void)submit(&t.w, t.a, 2, 10, 'a');
	pass(&t.w, 0);
	assert_int_equal(ended.length, 0);
	assert_int_equal(policy_of(&t.w).starved, 0);
	pass(&t.w, 1);
	/* The other has no work: nobody misses it, but it goes on, too. */
	assert_int_equal(policy_of(&t.w).starved, 1);
	assert_non_null(strstr(policy_of(&t.w).reason, "stopped"));
	assert_int_equal(h->start(h->device, t.b_view), -EINVAL);
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_KILL), -EBUSY);
	pass(&t.w, 9);
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_KILL), -EBUSY);
	pass(&t.w, 1);
	assert_string_equal(ended.text, "a");
	/* From now on as before; later stops end later. */
	assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_KILL), 0);
	pass(&t.w, 500000);
	assert_int_equal(h->stop(h->device, t.b_view, HAL_SUSPEND_DRAIN), 0);
	(void)submit(&t.w, t.b, 1, 10, 'b');
	pass(&t.w, 500000);
	assert_string_equal(ended.text, "a");
	pass(&t.w, 11);
	assert_string_equal(ended.text, "aa");
	pass(&t.w, 499989);
	assert_string_equal(ended.text, "aa");
	pass(&t.w, 11);
	assert_string_equal(ended.text, "aab");
	assert_int_equal(policy_of(&t.w).starved, 3);
	assert_int_equal(policy_of(&t.w).fallback, 0);
	two_close(&t);
}

/* Nor again and again, for as long as that in all, without getting on: then no longer
 * inside, until a command of it has ended. */
static void stops_too_often(void **state)
{
	static const char *const options[] = {PLUGINS,
					      ONE_AT_A_TIME,
					      "policy.name=plugin",
					      "policy.timeout_ms=1",
					      "policy.kills=1000000",
					      NULL};
	const struct hal_policy_host *h;
	struct two t;

	(void)state;
	two_open(&t, options);
	h = t.c->host;
	for (uint32_t turn = 0; turn < 2; turn++) {
		(void)submit(&t.w, t.a, 1, 2000, 'a');
		/* Since the first of these. */
		for (uint32_t ns = 0; ns <= 1000000; ns += 1000) {
			pass(&t.w, 500);
			assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_KILL),
					 0);
			pass(&t.w, 500);
			assert_int_equal(h->start(h->device, t.a_view), 0);
		}
		pass(&t.w, 500);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_KILL),
					 -EBUSY);
			assert_non_null(strstr(hal_last_error(), "without progress"));
		}
		assert_int_equal(h->stop(h->device, t.a_view, HAL_SUSPEND_DRAIN), 0);
		assert_int_equal(ended.length, turn);
		pass(&t.w, 1500);
		assert_int_equal(ended.length, turn + 1);
		assert_int_equal(h->start(h->device, t.a_view), 0);
	}
	assert_int_equal(policy_of(&t.w).starved, 0);
	two_close(&t);
}

/* What is not the device's to do does not reach it. */
static void limits_of_bandwidth(void **state)
{
	static const char *const options[] = {PLUGINS, "policy.name=plugin",
					      "layers.validate=yes", NULL};
	const struct hal_policy_host *h;
	struct two t;

	(void)state;
	two_open(&t, options);
	h = t.c->host;
	assert_int_equal(h->limit(h->device, t.c->part, 4096, 0), -ENOTSUP);
	assert_int_equal(policy_of(&t.w).invalid, 0);
	two_close(&t);
}

/* Units from .. to from now on. */
static void limits_are(struct hal_partition *p, uint32_t from, uint32_t to)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point moved;

	d.units_floor = from;
	d.units_ceiling = to;
	OK(hal_partition_resize(p, &d, &moved));
	finish(moved);
}

enum { TRIES = 1000000 };

/* The same; a policy that never rests may have been in the way all the time. */
static void limits_are_at_last(struct hal_partition *p, uint32_t from, uint32_t to)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point moved;
	int err = -EBUSY;

	d.units_floor = from;
	d.units_ceiling = to;
	/* The engine answers each. */
	for (int i = 0; i < TRIES && err == -EBUSY; i++)
		err = hal_partition_resize(p, &d, &moved);
	OK(err);
	finish(moved);
}

static uint32_t units_of(struct hal_partition *p)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(p, &i));
	return i.units;
}

static uint32_t column_of(struct hal_partition *p)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(p, &i));
	return i.col;
}

static void resizes(void **state)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	const struct hal_policy_host *h;
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	h = t.c->host;
	limits_are(t.w.part, 1, 16);
	assert_int_equal(t.c->moved, 1);
	t.c->moved = 0;
	assert_int_equal(h->resize(h->device, t.c->part, 4), 0);
	assert_int_equal(h->resize(h->device, t.c->part, 5), -EBUSY);
	pass(&t.w, 1000);
	assert_int_equal(t.c->moved, 1);
	assert_int_equal(t.c->part->units, 4);
	OK(hal_partition_get_info(t.w.part, &i));
	assert_int_equal(i.units, 4);
	assert_int_equal(h->resize(h->device, t.c->part, 4000), -EINVAL);
	assert_int_equal(h->limit(h->device, t.c->part, 4096, 1000), -ENOTSUP);
	two_close(&t);
}

/* What a tenant was promised is not the policy's to give away. */
static void limits(void **state)
{
	const struct hal_policy_host *h;
	struct hal_policy_move move[2];
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	h = t.c->host;
	/* As it was made: of one size. */
	assert_int_equal(t.c->part->floor, 1);
	assert_int_equal(t.c->part->ceiling, 1);
	assert_int_equal(h->resize(h->device, t.c->part, 2), -EINVAL);
	assert_int_equal(policy_of(&t.w).invalid, 1);
	assert_non_null(strstr(policy_of(&t.w).reason, "ceiling"));
	limits_are(t.w.part, 4, 8);
	assert_int_equal(units_of(t.w.part), 4);
	assert_int_equal(h->resize(h->device, t.c->part, 3), -EINVAL);
	assert_non_null(strstr(policy_of(&t.w).reason, "floor"));
	assert_int_equal(h->resize(h->device, t.c->part, 9), -EINVAL);
	move[0] = (struct hal_policy_move){.part = t.c->part, .units = 3};
	assert_int_equal(h->move(h->device, move, 1), -EINVAL);
	assert_int_equal(policy_of(&t.w).invalid, 4);
	move[0].units = 5;
	move[1] = move[0];
	assert_int_equal(h->move(h->device, move, 2), -EINVAL);
	assert_int_equal(h->move(h->device, move, HAL_POLICY_MOVES + 1), -EINVAL);
	pass(&t.w, 10);
	assert_int_equal(units_of(t.w.part), 4);
	assert_int_equal(h->resize(h->device, t.c->part, 8), 0);
	pass(&t.w, 10);
	assert_int_equal(units_of(t.w.part), 8);
	/* Other limits: it keeps what lies within them. */
	limits_are(t.w.part, 2, 9);
	assert_int_equal(units_of(t.w.part), 8);
	limits_are(t.w.part, 2, 6);
	assert_int_equal(units_of(t.w.part), 6);
	limits_are(t.w.part, 7, 0);
	assert_int_equal(units_of(t.w.part), 7);
	assert_int_equal(t.c->part->ceiling, 7);
	/* Once too often, and the engine goes on without it. */
	assert_int_equal(policy_of(&t.w).invalid, 6);
	for (int n = 0; n < 10; n++)
		assert_int_equal(h->resize(h->device, t.c->part, 1), -EINVAL);
	assert_int_equal(policy_of(&t.w).fallback, 1);
	(void)submit(&t.w, t.a, 5, 10, 'a');
	(void)submit(&t.w, t.b, 5, 10, 'b');
	finish_all(&t.w);
	assert_int_equal(ended.length, 10);
	two_close(&t);
}

/* As the configuration says them. */
static void limits_of_the_file(void **state)
{
	static const char text[] = "[partition \"a\"]\nunits = 2\nceiling = 5\n";
	char option[64];
	const char *const options[] = {PLUGINS, "policy.name=plugin", option, NULL};
	int fd = memfd_create("hal.conf", MFD_CLOEXEC);
	const struct hal_policy_host *h;
	struct hal_partition *part;
	struct hal_queue *q;
	struct two t;

	(void)state;
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(option, sizeof(option), "hal.config=/proc/self/fd/%d", fd);
	two_open(&t, options);
	close(fd);
	OK(hal_partition_create_named(t.w.dev, "a", &part));
	q = add_queue(part, 0, 1, 0);
	h = t.c->host;
	assert_int_equal(t.c->part->floor, 2);
	assert_int_equal(t.c->part->ceiling, 5);
	assert_int_equal(h->resize(h->device, t.c->part, 5), 0);
	pass(&t.w, 10);
	assert_int_equal(units_of(part), 5);
	assert_int_equal(h->resize(h->device, t.c->part, 6), -EINVAL);
	OK(hal_queue_destroy(q));
	OK(hal_partition_destroy(part));
	two_close(&t);
}

/* From inside pick, which then names somebody. */
static void wrong_in_pick(void **state)
{
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	for (int n = 0; n < 15; n++)
		assert_int_equal(t.c->host->resize(t.c->host->device, t.c->part, 0),
				 -EINVAL);
	/* The last time it names nobody, too, for seconds. */
	t.c->shrinks = 1;
	t.c->mode = PLUGIN_HOLD;
	t.c->hold_ns = UINT64_C(9000000000);
	(void)submit(&t.w, t.a, 40, 10, 'a');
	(void)submit(&t.w, t.b, 40, 10, 'b');
	finish_all(&t.w);
	assert_int_equal(ended.length, 80);
	assert_int_equal(hal_device_get_time(t.w.dev), 800);
	assert_int_equal(policy_of(&t.w).invalid, 16);
	assert_int_equal(policy_of(&t.w).fallback, 1);
	t.c->overruns = 0; /* it was not told of all */
	two_close(&t);
}

/* ---- plans ------------------------------------------------------------------------- */

enum { PARTS_MAX = 4 };

struct elastic {
	struct world w;
	struct plugin_control *c;
	const struct hal_policy_host *h;
	struct hal_partition *part[PARTS_MAX];
	struct hal_queue *q[PARTS_MAX];
	struct hal_policy_partition *view[PARTS_MAX];
};

/* A partition of each of so many units, at least one of them its floor, side by side. */
static void elastic_open(struct elastic *e, const char *target, const uint32_t *units)
{
	static const char *const options[] = {PLUGINS, "hal.queue_depth=1024",
					      "policy.name=plugin", NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	memset(e, 0, sizeof(*e));
	memset(&ended, 0, sizeof(ended));
	e->c = control_of(PLUGIN_TEST);
	OK(hal_open(target, options, &e->w.dev));
	world_work(&e->w, 0);
	for (uint32_t i = 0; i < PARTS_MAX && units[i] != 0; i++) {
		d.units_floor = units[i];
		OK(hal_partition_create(e->w.dev, &d, &e->part[i]));
		limits_are(e->part[i], 1, 16);
		assert_int_equal(units_of(e->part[i]), units[i]);
		e->q[i] = add_queue(e->part[i], 0, 1, 0);
		e->view[i] = e->c->part;
	}
	e->h = e->c->host;
}

static void elastic_close(struct elastic *e)
{
	for (uint32_t i = 0; i < PARTS_MAX; i++) {
		if (e->part[i] == NULL)
			continue;
		OK(hal_queue_destroy(e->q[i]));
		OK(hal_partition_destroy(e->part[i]));
	}
	OK(hal_program_unload(e->w.prog));
	OK(hal_close(e->w.dev));
}

static int move_to(struct elastic *e, const uint32_t *units)
{
	struct hal_policy_move m[PARTS_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < PARTS_MAX && units[i] != 0; i++)
		m[n++] = (struct hal_policy_move){.part = e->view[i], .units = units[i]};
	return e->h->move(e->h->device, m, n);
}

static void units_are(struct elastic *e, const uint32_t *units)
{
	for (uint32_t i = 0; i < PARTS_MAX && units[i] != 0; i++) {
		assert_int_equal(units_of(e->part[i]), units[i]);
		assert_int_equal(e->view[i]->units, units[i]);
	}
}

/* In one row whoever becomes smaller stays at one of its ends, so that the others stay
 * where they are; at either end, as the next one needs it. */
static void moves_at_either_end(void **state)
{
	static const uint32_t begin[] = {4, 4, 4, 4, 0}, first[] = {2, 4, 4, 4, 0},
			      second[] = {2, 4, 2, 6, 0};
	struct elastic e;

	(void)state;
	elastic_open(&e, "ref?clock=virtual&units=16", begin);
	assert_int_equal(move_to(&e, first), 0);
	pass(&e.w, 10);
	units_are(&e, first);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(column_of(e.part[i]), 4 * i);
	assert_int_equal(move_to(&e, second), 0);
	pass(&e.w, 10);
	units_are(&e, second);
	assert_int_equal(column_of(e.part[1]), 4);
	assert_int_equal(column_of(e.part[2]), 8);
	assert_int_equal(column_of(e.part[3]), 10);
	assert_int_equal(move_to(&e, first), 0);
	pass(&e.w, 10);
	units_are(&e, first);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(column_of(e.part[i]), 4 * i);
	elastic_close(&e);
}

static void moves(void **state)
{
	static const uint32_t begin[] = {6, 6, 4, 0}, more[] = {2, 6, 8, 0},
			      most[] = {1, 1, 14, 0}, too_many[] = {6, 6, 5, 0},
			      back[] = {12, 3, 1, 0}, alone[] = {13, 0};
	struct hal_partition_desc four = HAL_INIT(hal_partition_desc);
	struct hal_partition *fourth;
	struct elastic e;

	(void)state;
	four.units_floor = 4;
	elastic_open(&e, "ref?clock=virtual&units=16", begin);
	assert_int_equal(move_to(&e, too_many), -ENOSPC);
	units_are(&e, begin);
	/* The one in the middle stands in the way, and is moved, too. */
	e.c->moved = 0;
	assert_int_equal(move_to(&e, more), 0);
	assert_int_equal(move_to(&e, begin), -EBUSY);
	/* What one has left is for those that wait for it. */
	for (int n = 0; n < 5; n++)
		FAILS(hal_partition_create(e.w.dev, &four, &fourth), -ENOSPC, "4 units");
	finish_all(&e.w);
	units_are(&e, more);
	assert_int_equal(e.c->moved, 3);
	assert_int_equal(column_of(e.part[1]), 2);
	assert_int_equal(move_to(&e, most), 0);
	finish_all(&e.w);
	units_are(&e, most);
	assert_int_equal(move_to(&e, back), 0);
	finish_all(&e.w);
	units_are(&e, back);
	/* Nothing to do. */
	e.c->moved = 0;
	assert_int_equal(move_to(&e, back), 0);
	finish_all(&e.w);
	assert_int_equal(e.c->moved, 0);
	assert_int_equal(move_to(&e, alone), -ENOSPC);
	assert_int_equal(policy_of(&e.w).invalid, 0);
	elastic_close(&e);
	/* On a grid. */
	static const uint32_t quarters[] = {16, 16, 16, 16}, halves[] = {8, 16, 16, 16},
			      two[] = {8, 8, 16, 16};

	elastic_open(&e, "ref?clock=virtual&units=64&rows=8", quarters);
	assert_int_equal(move_to(&e, halves), 0);
	finish_all(&e.w);
	units_are(&e, halves);
	assert_int_equal(move_to(&e, two), 0);
	finish_all(&e.w);
	units_are(&e, two);
	assert_int_equal(move_to(&e, quarters), 0);
	finish_all(&e.w);
	units_are(&e, quarters);
	elastic_close(&e);
}

/* What was begun well ends there. */
static void moves_well(struct elastic *e, const uint32_t *units)
{
	assert_int_equal(move_to(e, units), 0);
	finish_all(&e->w);
	units_are(e, units);
}

/* Of a grid of 8 x 8: whole columns, and those of less than one in the first. */
static void moves_columns(void **state)
{
	static const uint32_t ones[] = {1, 1, 1, 0}, two[] = {1, 32, 24, 0},
			      third[] = {1, 1, 56, 0}, first[] = {56, 1, 1, 0},
			      all[] = {16, 24, 24, 0}, pieces[] = {4, 24, 5, 0},
			      prime[] = {1, 1, 59, 0};
	static const uint32_t blocks[] = {16, 16, 16, 16}, other[] = {24, 16, 16, 8},
			      least[] = {1, 1, 1, 1}, full[] = {32, 16, 16, 8};
	struct elastic e;

	(void)state;
	elastic_open(&e, "ref?clock=virtual&units=64&rows=8", ones);
	for (int i = 0; i < 3; i++)
		limits_are(e.part[i], 1, 60);
	moves_well(&e, two);
	assert_int_equal(column_of(e.part[0]), 0);
	assert_int_equal(column_of(e.part[1]), 1);
	assert_int_equal(column_of(e.part[2]), 5);
	moves_well(&e, third);
	assert_int_equal(column_of(e.part[1]), 0);
	moves_well(&e, first);
	assert_int_equal(column_of(e.part[0]), 0);
	moves_well(&e, all);
	moves_well(&e, pieces);
	moves_well(&e, third);
	moves_well(&e, ones);
	/* A count needs a rectangle of exactly that area. */
	assert_int_equal(move_to(&e, prime), -ENOSPC);
	units_are(&e, ones);
	elastic_close(&e);
	/* Blocks of 4 x 4 would wait for each other, but not what is left of them. */
	elastic_open(&e, "ref?clock=virtual&units=64&rows=8", blocks);
	for (int i = 0; i < 4; i++)
		limits_are(e.part[i], 1, 60);
	assert_int_equal(move_to(&e, full), -ENOSPC);
	assert_int_equal(move_to(&e, other), -ENOSPC);
	units_are(&e, blocks);
	moves_well(&e, least);
	moves_well(&e, other);
	assert_int_equal(policy_of(&e.w).invalid, 0);
	elastic_close(&e);
}

/* The device refuses: whoever has moved has, and nobody waits for what does not come. */
static void moves_refused(void **state)
{
	static const uint32_t begin[] = {6, 6, 4, 0}, more[] = {2, 6, 8, 0},
			      gave[] = {2, 6, 4, 0}, all[] = {2, 6, 8, 0};
	const struct hal_ref_extension *ref;
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *fourth;
	struct elastic e;

	(void)state;
	elastic_open(&e, "ref?clock=virtual&units=16", begin);
	ref = hal_device_get_extension(e.w.dev, "ref");
	OK(ref->inject(hal_device_get_native(e.w.dev), HAL_REF_OP_RESIZE, 1, EIO));
	assert_int_equal(move_to(&e, more), -EIO);
	finish_all(&e.w);
	units_are(&e, begin);
	/* The second of it. */
	e.c->moved = 0;
	assert_int_equal(move_to(&e, more), 0);
	OK(ref->inject(hal_device_get_native(e.w.dev), HAL_REF_OP_RESIZE, 1, EIO));
	finish_all(&e.w);
	units_are(&e, gave);
	assert_int_equal(e.c->moved, 3);
	/* What was given is free, all of it. */
	d.units_floor = 4;
	OK(hal_partition_create(e.w.dev, &d, &fourth));
	OK(hal_partition_destroy(fourth));
	assert_int_equal(move_to(&e, all), 0);
	finish_all(&e.w);
	units_are(&e, all);
	elastic_close(&e);
}

/* Four partitions of a unit each, which move when they are told to. */
static const struct mock_control *elastic_on_mock(struct elastic *e)
{
	static const char *const options[] = {"hal.plugins=" MOCK_PLUGIN ":" PLUGIN_TEST,
					      "policy.name=plugin", NULL};
	struct plugin_control *c = control_of(PLUGIN_TEST);
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	const struct mock_control *mock;

	memset(e, 0, sizeof(*e));
	OK(hal_open("mock", options, &e->w.dev));
	mock = hal_device_get_extension(e->w.dev, "mock");
	assert_non_null(mock);
	d.units_floor = 1;
	d.units_ceiling = 10;
	for (int i = 0; i < PARTS_MAX; i++) {
		OK(hal_partition_create(e->w.dev, &d, &e->part[i]));
		e->q[i] = add_queue(e->part[i], 0, 1, 0);
		e->view[i] = c->part;
	}
	e->h = c->host;
	return mock;
}

/* The device refuses one move after the other: who waited is told once, and may go. */
static void moves_refused_twice(void **state)
{
	static const uint32_t four[] = {4, 4, 4, 4};
	struct plugin_control *c = control_of(PLUGIN_TEST);
	const struct mock_control *mock;
	struct elastic e;

	(void)state;
	mock = elastic_on_mock(&e);
	/* The first waits for the others, which are on their way. */
	assert_int_equal(move_to(&e, four), 0);
	c->moved = 0;
	mock->fail_move(hal_device_get_native(e.w.dev), -EIO, "");
	pass(&e.w, 0);
	assert_int_equal(c->moved, 2);
	OK(hal_queue_destroy(e.q[0]));
	OK(hal_partition_destroy(e.part[0]));
	for (int i = 2; i < PARTS_MAX; i++) {
		mock->fail_move(hal_device_get_native(e.w.dev), -EIO, "");
		pass(&e.w, 0);
		assert_int_equal(c->moved, i + 1);
	}
	for (int i = 1; i < PARTS_MAX; i++) {
		assert_int_equal(units_of(e.part[i]), 1);
		OK(hal_queue_destroy(e.q[i]));
		OK(hal_partition_destroy(e.part[i]));
	}
	assert_int_equal(policy_of(&e.w).invalid, 0);
	OK(hal_close(e.w.dev));
}

/* krisp asks for units, which takes the device a while: a command of another queue that
 * comes meanwhile does not make the first one start on the old units. */
static void krisp_waits_for_units(void **state)
{
	static const char *const options[] = {"hal.plugins=" MOCK_PLUGIN,
					      "policy.name=krisp", NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_cmd nop = {.op = HAL_OP_NOP};
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	const struct mock_control *mock;
	struct mock_counts counts;
	struct hal_partition *part;
	struct hal_queue *q[2];
	struct hal_point done;
	struct world w;
	void *native;

	(void)state;
	for (int status = 0; status >= -EIO; status -= EIO) {
		memset(&w, 0, sizeof(w));
		OK(hal_open("mock", options, &w.dev));
		native = hal_device_get_native(w.dev);
		mock = hal_device_get_extension(w.dev, "mock");
		d.units_floor = 1;
		d.units_ceiling = 10;
		OK(hal_partition_create(w.dev, &d, &part));
		q[0] = add_queue(part, 0, 1, 0);
		q[1] = add_queue(part, 0, 1, 0);
		s.cmds = &nop;
		s.cmd_count = 1;
		for (int i = 0; i < 2; i++) {
			OK(hal_submit(q[i], &s, &done));
			pass(&w, 0);
			mock->counts(native, &counts);
			assert_int_equal(counts.inflight, 0);
		}
		/* It begins at once when the move is over, whether that succeeded. */
		mock->fail_move(native, status, "");
		pass(&w, 0);
		assert_int_equal(units_of(part), status == 0 ? 10 : 1);
		mock->counts(native, &counts);
		assert_true(counts.inflight > 0);
		for (int i = 0; i < 9 && hal_wait(&done, 1, 0, 0) != 0; i++) {
			mock->complete(native, 1, 1000);
			mock->fail_move(native, 0, "");
			pass(&w, 0);
		}
		assert_int_equal(hal_wait(&done, 1, 0, 0), 0);
		mock->fail_move(native, 0, "");
		pass(&w, 0);
		for (int i = 0; i < 2; i++)
			OK(hal_queue_destroy(q[i]));
		OK(hal_partition_destroy(part));
		OK(hal_close(w.dev));
	}
}

/* The device refuses the second move of a plan at once: the policy gets the error, and is
 * not notified again, when the first move fails, of partitions that may be gone. */
static void plan_refused_at_once(void **state)
{
	static const uint32_t one[] = {1, 1, 1, 1}, four[] = {4, 4, 4, 4};
	struct plugin_control *c = control_of(PLUGIN_TEST);
	const struct mock_control *mock;
	struct elastic e;

	(void)state;
	mock = elastic_on_mock(&e);
	mock->refuse_later_move(hal_device_get_native(e.w.dev), 1, EIO);
	assert_int_equal(move_to(&e, four), -EIO);
	for (int i = 2; i < PARTS_MAX; i++) {
		OK(hal_queue_destroy(e.q[i]));
		OK(hal_partition_destroy(e.part[i]));
		e.part[i] = NULL;
	}
	c->moved = 0;
	mock->fail_move(hal_device_get_native(e.w.dev), -EIO, "");
	pass(&e.w, 0);
	assert_int_equal(c->moved, 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(units_of(e.part[i]), one[i]);
		OK(hal_queue_destroy(e.q[i]));
		OK(hal_partition_destroy(e.part[i]));
	}
	assert_int_equal(policy_of(&e.w).invalid, 0);
	OK(hal_close(e.w.dev));
}

/* What some have left is for who waits for all of them, and for nobody else. */
static void moves_in_order(void **state)
{
	static const uint32_t one[] = {1, 1, 1, 1}, four[] = {4, 4, 4, 4};
	struct hal_partition_desc d;
	const struct mock_control *mock;
	struct hal_partition *fifth;
	struct elastic e;

	(void)state;
	mock = elastic_on_mock(&e);
	/* The first goes where the others are, who go at once. */
	assert_int_equal(move_to(&e, four), 0);
	units_are(&e, one);
	d = (struct hal_partition_desc)HAL_INIT(hal_partition_desc);
	d.rows = 1;
	d.cols = 1;
	for (uint32_t i = 1; i < PARTS_MAX; i++) {
		mock->fail_move(hal_device_get_native(e.w.dev), 0, "");
		pass(&e.w, 0);
		assert_int_equal(units_of(e.part[0]), 1);
		assert_int_equal(units_of(e.part[i]), 4);
		d.col = (uint16_t)i;
		FAILS(hal_partition_create(e.w.dev, &d, &fifth), -ENOSPC, "partition 0");
	}
	mock->fail_move(hal_device_get_native(e.w.dev), 0, "");
	pass(&e.w, 0);
	units_are(&e, four);
	assert_int_equal(column_of(e.part[0]), 0);
	assert_int_equal(policy_of(&e.w).invalid, 0);
	for (int i = 0; i < PARTS_MAX; i++) {
		OK(hal_queue_destroy(e.q[i]));
		OK(hal_partition_destroy(e.part[i]));
	}
	OK(hal_close(e.w.dev));
}

/* Who waits has what is free of where it goes, from the beginning; or lets go of it. */
static void moves_hold_free(void **state)
{
	static const uint32_t begin[] = {6, 2, 0}, gave[] = {1, 2, 0},
			      most[] = {1, 15, 0};
	struct hal_partition_desc eight = HAL_INIT(hal_partition_desc);
	const struct hal_ref_extension *ref;
	struct hal_partition *third;
	struct elastic e;

	(void)state;
	eight.units_floor = 8;
	elastic_open(&e, "ref?clock=virtual&units=16", begin);
	ref = hal_device_get_extension(e.w.dev, "ref");
	assert_int_equal(move_to(&e, most), 0);
	FAILS(hal_partition_create(e.w.dev, &eight, &third), -ENOSPC, "8 units");
	OK(ref->inject(hal_device_get_native(e.w.dev), HAL_REF_OP_RESIZE, 1, EIO));
	finish_all(&e.w);
	units_are(&e, gave);
	OK(hal_partition_create(e.w.dev, &eight, &third));
	assert_int_equal(column_of(third), 8);
	OK(hal_partition_destroy(third));
	assert_int_equal(move_to(&e, most), 0);
	finish_all(&e.w);
	units_are(&e, most);
	assert_int_equal(policy_of(&e.w).invalid, 0);
	elastic_close(&e);
}

/* What an application asks for waits for what the policy has begun. */
static void moves_waited_for(void **state)
{
	static const uint32_t begin[] = {6, 6, 4, 0}, more[] = {2, 6, 8, 0};
	struct elastic e;

	(void)state;
	elastic_open(&e, "ref?clock=virtual&units=16", begin);
	assert_int_equal(move_to(&e, more), 0);
	limits_are(e.part[2], 3, 3); /* which waits for the others */
	assert_int_equal(units_of(e.part[2]), 3);
	assert_int_equal(units_of(e.part[0]), 2);
	assert_int_equal(e.h->resize(e.h->device, e.view[0], 4), 0);
	OK(hal_queue_destroy(e.q[0]));
	e.q[0] = NULL;
	OK(hal_partition_destroy(e.part[0]));
	e.part[0] = NULL;
	elastic_close(&e);
}

/* What the application moves is not for the policy to move, or to count on. */
static void moves_beside_resize(void **state)
{
	static const uint32_t begin[] = {6, 4, 4, 0}, more[] = {5, 5, 4, 0},
			      less[] = {5, 4, 4, 0};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point done;
	struct elastic e;

	(void)state;
	elastic_open(&e, "ref?clock=virtual&units=16", begin);
	assert_int_equal(column_of(e.part[1]), 6);
	d.rows = 1;
	d.cols = 4;
	d.col = 12;
	d.units_ceiling = 16;
	OK(hal_partition_resize(e.part[2], &d, &done));
	finish(done);
	/* Half of what it has, and more. */
	d.col = 8;
	OK(hal_partition_resize(e.part[1], &d, &done));
	assert_int_equal(move_to(&e, more), -EBUSY);
	assert_int_equal(move_to(&e, less), -EBUSY);
	finish(done);
	assert_int_equal(column_of(e.part[1]), 8);
	finish_all(&e.w);
	assert_int_equal(move_to(&e, more), 0);
	finish_all(&e.w);
	units_are(&e, more);
	assert_int_equal(policy_of(&e.w).invalid, 0);
	elastic_close(&e);
}

/* What commands run by units. */
static void expects(void **state)
{
	static const char *const options[] = {"hal.queue_depth=1024",
					      "hal.plugins=" PLUGIN_EXPECTS,
					      "policy.name=expects", NULL};
	struct plugin_control *c = control_of(PLUGIN_EXPECTS);
	const struct hal_policy_host *h;
	struct hal_queue *q;
	struct world w;

	(void)state;
	world_open(&w, options);
	limits_are(w.part, 1, 16);
	q = add_queue(w.part, 0, 1, 0);
	h = c->host;
	for (uint32_t units = 1; units <= 16; units *= 4) {
		if (units > 1)
			assert_int_equal(h->resize(h->device, c->part, units), 0);
		finish_all(&w);
		(void)submit(&w, q, 3, 1600, 'a');
		finish_all(&w);
	}
	assert_true(h->expect(h->device, c->last, 1) == 1600);
	assert_int_equal(h->expect(h->device, c->last, 4), 400);
	assert_int_equal(h->expect(h->device, c->last, 16), 100);
	/* In between, by the reciprocal. */
	assert_int_equal(h->expect(h->device, c->last, 2), 800);
	assert_int_equal(h->expect(h->device, c->last, 8), 200);
	assert_true(h->expect(h->device, c->last, 17) == HAL_POLICY_NEVER);
	/* One that a border has passed says nothing. */
	(void)submit(&w, q, 1, 160000, 'a');
	pass(&w, 100);
	assert_int_equal(h->resize(h->device, c->part, 4), 0);
	finish_all(&w);
	assert_int_equal(h->expect(h->device, c->last, 4), 400);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* ---- another policy ---------------------------------------------------------------- */

static uint64_t random_state;

static uint32_t below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state % n);
}

enum { QUEUES = 7 };

static void swap_round(struct world *w, struct hal_queue **q, bool *held, uint32_t *count)
{
	static const char *const names[] = {"fifo", "rr",     "priority", "wfq",
					    "edf",  "plugin", "always"};
	static const char *const rr[] = {"rr_commands=3", NULL};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	uint32_t i = below(QUEUES), name;

	switch (below(6)) {
	case 0:
	case 1:
		d.priority = (int32_t)below(5);
		d.flags = below(2) != 0 ? HAL_SUBMIT_PRIORITY : 0;
		d.deadline_ns = below(2) * 100;
		for (uint32_t n = 1 + below(6); n > 0; n--) {
			(void)submit_as(w, q[i], d, 1, 1 + below(50), (char)('a' + i));
			count[i]++;
		}
		break;
	case 2:
		pass(w, below(200));
		break;
	case 3:
		if (held[i])
			OK(hal_queue_resume(q[i]));
		else if (hal_queue_suspend(q[i],
					   below(2) != 0 ? HAL_SUSPEND_KILL
							 : HAL_SUSPEND_DRAIN,
					   NULL) != 0)
			break; /* not quiet yet */
		held[i] = !held[i];
		break;
	default:
		name = below(7);
		OK(hal_device_set_policy(w->dev, names[name], name == 1 ? rr : NULL));
		assert_string_equal(policy_of(w).name, names[name]);
		break;
	}
}

static void swaps(void **state)
{
	static const char *const options[] = {PLUGINS, "hal.queue_depth=1024", NULL};
	struct plugin_control *c = control_of(PLUGIN_TEST);
	struct plugin_control *d = control_of(PLUGIN_ALWAYS);

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		uint32_t count[QUEUES] = {0}, ran[QUEUES] = {0}, sum = 0;
		struct hal_queue *q[QUEUES];
		struct hal_partition *second;
		bool held[QUEUES] = {false};
		struct world w;

		random_state = seed * 0x9e3779b97f4a7c15u;
		world_open(&w, options);
		second = add_partition(&w);
		for (uint32_t i = 0; i < QUEUES; i++)
			q[i] = add_queue(i < 5 ? w.part : second, (int32_t)below(3),
					 1 + below(4), below(2) * 500);
		for (int i = 0; i < 100; i++)
			swap_round(&w, q, held, count);
		for (uint32_t i = 0; i < QUEUES; i++)
			if (held[i])
				OK(hal_queue_resume(q[i]));
		finish_all(&w);
		for (size_t k = 0; k < ended.length; k++)
			ran[ended.text[k] - 'a']++;
		for (uint32_t i = 0; i < QUEUES; i++) {
			if (ran[i] != count[i] || stats_of(q[i]).completed != count[i])
				fail_msg("seed %u: queue %u: %u of %u commands ran",
					 (unsigned int)seed, i, ran[i], count[i]);
			sum += count[i];
		}
		assert_int_equal(ended.length, sum);
		assert_int_equal(policy_of(&w).fallback, 0);
		for (uint32_t i = 0; i < QUEUES; i++)
			OK(hal_queue_destroy(q[i]));
		OK(hal_partition_destroy(second));
		world_close(&w);
	}
	assert_int_equal(c->overruns + d->overruns, 0);
	assert_true(c->dequeued[HAL_POLICY_REPLACED] > 100);
	assert_true(c->dequeued[HAL_POLICY_SUSPENDED] > 20);
}

enum { PRODUCERS = 3, REAL_COMMANDS = 3000, MOVES = 100, ROUNDS = 100000 };

struct producer {
	pthread_t thread;
	struct hal_queue *q;
	atomic_bool more; /* than REAL_COMMANDS are wanted */
	uint32_t submitted;
	int err;
};

static void *produce(void *arg)
{
	struct producer *p = arg;
	struct hal_cmd nop = hal_cmd_of(HAL_OP_NOP, 0);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done = {NULL, 0};

	d.cmds = &nop;
	d.cmd_count = 1;
	while (p->err == 0 && (p->submitted < REAL_COMMANDS || atomic_load(&p->more))) {
		while ((p->err = hal_submit(p->q, &d, &done)) == -EAGAIN)
			sched_yield();
		p->submitted += p->err == 0;
	}
	if (p->err == 0)
		p->err = hal_wait(&done, 1, 0, HAL_FOREVER);
	return NULL;
}

/* The same while an engine of its own runs, and others submit. */
static void swaps_real(void **state)
{
	static const char *const options[] = {PLUGINS, NULL};
	static const char *const names[] = {"fifo", "plugin", "wfq", "always", "rr"};
	struct plugin_control *c = control_of(PLUGIN_TEST);
	struct hal_partition_desc some = HAL_INIT(hal_partition_desc);
	struct producer p[PRODUCERS];
	struct world w;

	(void)state;
	memset(p, 0, sizeof(p));
	OK(hal_open("ref?clock=real", options, &w.dev));
	some.units_floor = 1;
	OK(hal_partition_create(w.dev, &some, &w.part));
	for (int i = 0; i < PRODUCERS; i++) {
		p[i].q = add_queue(w.part, i, 1, 0);
		assert_int_equal(pthread_create(&p[i].thread, NULL, produce, &p[i]), 0);
	}
	for (int i = 0; i < 500; i++)
		OK(hal_device_set_policy(w.dev, names[i % 5], NULL));
	for (int i = 0; i < PRODUCERS; i++) {
		assert_int_equal(pthread_join(p[i].thread, NULL), 0);
		assert_int_equal(p[i].err, 0);
		assert_int_equal(stats_of(p[i].q).completed, REAL_COMMANDS);
		OK(hal_queue_destroy(p[i].q));
	}
	assert_int_equal(policy_of(&w).fallback, 0);
	assert_int_equal(c->overruns, 0);
	OK(hal_partition_destroy(w.part));
	OK(hal_close(w.dev));
}

/* Plans from a thread of its own, with work, and an application that wants others. */
static void moves_real(void **state)
{
	static const char *const options[] = {PLUGINS, "policy.name=always", NULL};
	struct hal_partition_desc some = HAL_INIT(hal_partition_desc);
	struct plugin_control *c = control_of(PLUGIN_ALWAYS);
	struct hal_partition *part[2];
	static const char *const names[] = {"tidal", "always", "krisp", "fission"};
	struct producer p[PRODUCERS];
	struct hal_device *dev;

	(void)state;
	memset(p, 0, sizeof(p));
	OK(hal_open("ref?clock=real&units=16", options, &dev));
	some.units_floor = 2;
	some.units_ceiling = 14;
	for (int i = 0; i < 2; i++)
		OK(hal_partition_create(dev, &some, &part[i]));
	c->tides = 1;
	for (int i = 0; i < PRODUCERS; i++) {
		p[i].q = add_queue(part[i % 2], i, 1, 0);
		atomic_store(&p[i].more, true);
		assert_int_equal(pthread_create(&p[i].thread, NULL, produce, &p[i]), 0);
	}
	for (int i = 0; i < 300 || (c->moved <= MOVES && i < ROUNDS); i++) {
		uint32_t units = units_of(part[i % 2]);

		assert_in_range(units, 2, 14);
		limits_are_at_last(part[i % 2], 2, 13 + (uint32_t)i % 2);
		if (i % 10 == 9)
			OK(hal_device_set_policy(dev, names[i / 10 % 4], NULL));
	}
	for (int i = 0; i < PRODUCERS; i++) {
		atomic_store(&p[i].more, false);
		assert_int_equal(pthread_join(p[i].thread, NULL), 0);
		assert_int_equal(p[i].err, 0);
		assert_int_equal(stats_of(p[i].q).completed, p[i].submitted);
	}
	c->tides = 0;
	assert_true(c->moved > MOVES);
	assert_int_equal(c->overruns, 0);
	for (int i = 0; i < PRODUCERS; i++)
		OK(hal_queue_destroy(p[i].q));
	for (int i = 0; i < 2; i++)
		OK(hal_partition_destroy(part[i]));
	OK(hal_close(dev));
	assert_int_equal(c->overruns, 0);
}

/* What is runnable is handed over in order, with what it has at its head. */
static void handed_over(void **state)
{
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	(void)submit(&t.w, t.a, 3, 10, 'a');
	(void)submit(&t.w, t.b, 3, 10, 'b');
	pass(&t.w, 15);
	OK(hal_device_set_policy(t.w.dev, "fifo", NULL));
	assert_int_equal(t.c->detached, 2);
	assert_int_equal(t.c->dequeued[HAL_POLICY_REPLACED], 1);
	OK(hal_device_set_policy(t.w.dev, "plugin", NULL));
	assert_int_equal(t.c->attached, 4);
	finish_all(&t.w);
	assert_string_equal(ended.text, "ababab");
	two_close(&t);
}

/* Spaces and percent signs in a policy's options come back from a journal as they were.
 */
static void replayed_options(void **state)
{
	static const char *const other[] = {"plugin_label=%41 %zz two  words%", NULL};
	struct hal_replay_info info = HAL_INIT(hal_replay_info);
	char path[] = "/tmp/hal-policy-XXXXXX", journal[64];
	const char *const first[] = {PLUGINS,
				     ONE_AT_A_TIME,
				     "policy.name=plugin",
				     "policy.plugin_label= a b%20",
				     journal,
				     NULL};
	void *stays = dlopen(PLUGIN_TEST, RTLD_NOW); /* between the two devices */
	int fd = mkstemp(path);
	struct two t;

	(void)state;
	assert_non_null(stays);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	(void)snprintf(journal, sizeof(journal), "hal.journal=%s", path);
	two_open(&t, first);
	assert_string_equal(t.c->label, " a b%20");
	(void)submit(&t.w, t.a, 5, 10, 'a');
	pass(&t.w, 15);
	OK(hal_device_set_policy(t.w.dev, "plugin", other));
	assert_string_equal(t.c->label, other[0] + strlen("plugin_label="));
	(void)submit(&t.w, t.b, 5, 10, 'b');
	finish_all(&t.w);
	two_close(&t);
	memset(t.c, 0, sizeof(*t.c));
	OK(hal_replay(path, &info));
	assert_int_equal(unlink(path), 0);
	if (info.mismatches != 0)
		fail_msg("%s", info.mismatch);
	assert_in_range(info.decisions, 10, 100);
	assert_string_equal(t.c->label, other[0] + strlen("plugin_label="));
	assert_int_equal(dlclose(stays), 0);
}

static void options(void **state)
{
	static const char *const unknown[] = {"no_such=1", NULL};
	static const char *const others[] = {"rr_commands=2", NULL};
	static const char *const far_off[] = {"rr_commands=0", NULL};
	static const char *const refuses[] = {"plugin_refuses=yes", NULL};
	static const char *const quick[] = {"timeout_ms=1", NULL};
	struct two t;

	(void)state;
	two_open(&t, with_plugin);
	(void)submit(&t.w, t.a, 5, 10, 'a');
	(void)submit(&t.w, t.b, 5, 10, 'b');
	pass(&t.w, 15);
	t.c->host->alarm(t.c->host->device, hal_device_get_time(t.w.dev) + 10);
	FAILS(hal_device_set_policy(t.w.dev, "none", NULL), -EINVAL, "wfq");
	FAILS(hal_device_set_policy(t.w.dev, NULL, NULL), -EINVAL, "NULL");
	FAILS(hal_device_set_policy(t.w.dev, "rr", unknown), -EINVAL, "no_such");
	FAILS(hal_device_set_policy(t.w.dev, "rr", far_off), -EINVAL, "rr_commands");
	FAILS(hal_device_set_policy(t.w.dev, "plugin", refuses), -ENOSPC, "refused");
	assert_string_equal(policy_of(&t.w).name, "plugin");
	assert_int_equal(t.c->detached, 0);
	pass(&t.w, 10);
	assert_int_equal(t.c->alarms, 1);
	OK(hal_device_set_policy(t.w.dev, "rr", others));
	finish_all(&t.w);
	assert_int_equal(ended.length, 10);
	/* The net's time comes with it. */
	OK(hal_device_set_policy(t.w.dev, "plugin", quick));
	t.c->mode = PLUGIN_STARVE;
	t.c->victim = t.b_view;
	(void)submit(&t.w, t.a, 100, 20000, 'a');
	(void)submit(&t.w, t.b, 1, 10, 'b');
	pass(&t.w, 1040000);
	assert_int_equal(stats_of(t.b).completed, 6);
	finish_all(&t.w);
	two_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone),
		cmocka_unit_test(heads),
		cmocka_unit_test(always),
		cmocka_unit_test(lease),
		cmocka_unit_test(lease_too_long),
		cmocka_unit_test(not_admitted),
		cmocka_unit_test(detached_all_the_same),
		cmocka_unit_test(started_all_the_same),
		cmocka_unit_test(told_of_refused),
		cmocka_unit_test(net),
		cmocka_unit_test(starves),
		cmocka_unit_test(starves_as_meant),
		cmocka_unit_test(asks),
		cmocka_unit_test(asks_round),
		cmocka_unit_test(strangers),
		cmocka_unit_test(wrong_plugins),
		cmocka_unit_test(hold_and_alarm),
		cmocka_unit_test(alarm_in_create),
		cmocka_unit_test(preempts),
		cmocka_unit_test(time_of_a_stop),
		cmocka_unit_test(taken_over),
		cmocka_unit_test(taken_over_for_good),
		cmocka_unit_test(waiting),
		cmocka_unit_test(requests),
		cmocka_unit_test(stops_too_long),
		cmocka_unit_test(stops_too_often),
		cmocka_unit_test(limits_of_bandwidth),
		cmocka_unit_test(resizes),
		cmocka_unit_test(limits),
		cmocka_unit_test(limits_of_the_file),
		cmocka_unit_test(wrong_in_pick),
		cmocka_unit_test(moves),
		cmocka_unit_test(moves_at_either_end),
		cmocka_unit_test(moves_columns),
		cmocka_unit_test(moves_refused),
		cmocka_unit_test(moves_refused_twice),
		cmocka_unit_test(plan_refused_at_once),
		cmocka_unit_test(krisp_waits_for_units),
		cmocka_unit_test(moves_in_order),
		cmocka_unit_test(moves_hold_free),
		cmocka_unit_test(moves_waited_for),
		cmocka_unit_test(moves_beside_resize),
		cmocka_unit_test(moves_real),
		cmocka_unit_test(expects),
		cmocka_unit_test(swaps),
		cmocka_unit_test(swaps_real),
		cmocka_unit_test(handed_over),
		cmocka_unit_test(options),
		cmocka_unit_test(replayed_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
