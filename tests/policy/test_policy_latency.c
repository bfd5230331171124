/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of class latency beside queues that always have work, under each policy: how
 * long it waits at most.  The watchdog (policy.timeout_ms) fires in none of these tests.
 */
#include "world.h"

#define ONE_AT_A_TIME "hal.partition_inflight=1", "hal.inflight=1", "hal.queue_depth=4096"

/* Queues of a flood, and commands that each of them has: running all of these takes many
 * times as long as any bound. */
enum { FLOOD = 3, COMMANDS = 300, ROUNDS = 8 };

/* What a latency-critical command waits for at most: so many commands of the flood, and
 * so long for what the policy keeps for every queue, whatever its class. */
struct bound {
	const char *policy;
	unsigned int commands;
	uint64_t ns;
	const char *option;
	/* More beside a flood of another partition. */
	uint64_t elsewhere_ns;
	/* More for each queue of a flood whose commands are longer than a slot of
	 * SLOT_NS, beside such a command. */
	uint64_t frame_ns;
};

#define SLOT_NS       2000
#define OPTION_STATIC "policy.static_slot_us=2"
#define OPTION_TOKEN  "policy.token_rate=2000000"
#define OPTION_QUOTA  "policy.quota_permille=250"

static const struct bound bounds[] = {
	/* Latency before all others: it waits for the one command that runs. */
	{"fifo", 1, 0, NULL, 0, 0},
	{"rr", 1, 0, NULL, 0, 0},
	{"priority", 1, 0, NULL, 0, 0},
	{"wfq", 1, 0, NULL, 0, 0},
	{"edf", 1, 0, NULL, 0, 0},
	{"laxity", 1, 0, NULL, 0, 0},
	{"prema", 1, 0, NULL, 0, 0},
	{"themis", 1, 0, NULL, 0, 0},
	{"krisp", 1, 0, NULL, 0, 0},
	{"fission", 1, 0, NULL, 0, 0},
	{"weave", 1, 0, NULL, 0, 0},
	{"slots", 1, 0, NULL, 0, 0},
	{"moca", 1, 0, NULL, 0, 0},
	{"fgpu", 1, 0, NULL, 0, 0},
	/* The array goes to partitions in turns of 20 us (policy.v10_slice_us), whatever
	 * the class: by design. */
	{"v10", 1, 0, NULL, 20000, 0},
	/* Latency and normal queues of a high priority are one class, served in order of
	 * arrival: one command of each queue that came earlier. */
	{"tgs", FLOOD, 0, NULL, 0, 0},
	{"reef", FLOOD, 0, NULL, 0, 0},
	{"orion", FLOOD, 0, NULL, 0, 0},
	{"tidal", FLOOD, 0, NULL, 0, 0},
	/* Within its budget, before all others. Beyond it, it waits for the next window:
	 * by design. */
	{"quota", 1, 0, OPTION_QUOTA, 0, 0},
	/* Before all others once its tokens are there: one comes every 500 ns. */
	{"token", 1, 500, OPTION_TOKEN, 0, 0},
	/* Its own slot, one of eight.  A command that is longer than a slot may run into
	 * that, and then not again before its queue has left out as many of its own. */
	{"static", 1, 8 * SLOT_NS, OPTION_STATIC, 0, 8 * SLOT_NS},
};

enum { POLICIES = sizeof(bounds) / sizeof(bounds[0]) };

/* Who floods the partition, with commands of which length; and how long the commands of
 * the latency queue run. */
struct flood {
	uint16_t service_class;
	int32_t priority;
	uint64_t ns, own_ns;
	uint64_t deadline_ns;
};

static const struct flood floods[] = {
	{HAL_CLASS_NORMAL, 0, 100, 1000, 0},
	{HAL_CLASS_NORMAL, 0, 1000, 100, 0},
	{HAL_CLASS_NORMAL, 1, 100, 1000, 0},
	{HAL_CLASS_NORMAL, 1, 1000, 100, 0},
	{HAL_CLASS_NORMAL, 9, 100, 1000, 0},
	{HAL_CLASS_NORMAL, 9, 1000, 100, 0},
	{HAL_CLASS_NORMAL, 0, 10000, 100, 0},
	{HAL_CLASS_NORMAL, 1, 21000, 100, 0},
	{HAL_CLASS_BEST_EFFORT, 0, 100, 1000, 0},
	{HAL_CLASS_BEST_EFFORT, 0, 1000, 100, 0},
	/* Late from the first. */
	{HAL_CLASS_NORMAL, 1, 100, 1000, 1},
	{HAL_CLASS_NORMAL, 1, 1000, 100, 1},
};

enum { FLOODS = sizeof(floods) / sizeof(floods[0]) };

struct scene {
	struct world w;
	struct hal_partition *other; /* of the flood; NULL: it is in the same */
	struct hal_queue *latency, *low, *flood[FLOOD];
	struct hal_timeline *line;
};

static struct hal_queue *queue_of(struct hal_partition *part, uint16_t service_class,
				  int32_t priority, uint64_t deadline_ns)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	d.service_class = service_class;
	d.priority = priority;
	d.deadline_ns = deadline_ns;
	OK(hal_queue_create(part, &d, &q));
	return q;
}

/* Fill up what the queues of the flood have run. */
static void refill(struct scene *s, const struct flood *f, uint64_t *submitted)
{
	for (int i = 0; i < FLOOD; i++) {
		uint64_t more = stats_of(s->flood[i]).completed + COMMANDS - submitted[i];

		(void)submit(&s->w, s->flood[i], (unsigned int)more, f->ns, 'f');
		submitted[i] += more;
	}
}

static void scene_open(struct scene *s, const struct bound *b, const struct flood *f,
		       bool elsewhere)
{
	char name[64];
	const char *const options[] = {ONE_AT_A_TIME,
				       name,
				       "policy.timeout_ms=1000000",
				       "policy.static_slots=8",
				       "policy.quota_window_us=100",
				       b->option,
				       NULL};

	snprintf(name, sizeof(name), "policy.name=%s", b->policy);
	world_open(&s->w, options);
	s->other = elsewhere ? add_partition(&s->w) : NULL;
	for (int i = 0; i < FLOOD; i++)
		s->flood[i] = queue_of(elsewhere ? s->other : s->w.part, f->service_class,
				       f->priority, f->deadline_ns);
	s->low = queue_of(s->w.part, HAL_CLASS_NORMAL, 0, 0);
	s->latency = queue_of(s->w.part, HAL_CLASS_LATENCY, 0, 0);
	OK(hal_timeline_create(s->w.dev, &s->line));
}

static void scene_close(struct scene *s)
{
	struct hal_policy_info i = policy_of(&s->w);

	assert_int_equal(i.invalid + i.stalls + i.starved, 0);
	finish_all(&s->w);
	for (int k = 0; k < FLOOD; k++)
		OK(hal_queue_destroy(s->flood[k]));
	OK(hal_queue_destroy(s->low));
	OK(hal_queue_destroy(s->latency));
	OK(hal_timeline_destroy(s->line));
	if (s->other != NULL)
		OK(hal_partition_destroy(s->other));
	world_close(&s->w);
}

/* What the latency queue waits for: nothing, or the normal queue, at a timeline that this
 * signals or at its own. */
enum wait { FOR_NOBODY, AT_TIMELINE, AT_QUEUE };

/* Submit a command of the latency queue, and return how long it takes. */
static uint64_t took(struct scene *s, const struct flood *f, enum wait wait, int round)
{
	struct hal_point point = {s->line, (uint64_t)round + 1}, end;
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	uint64_t at = hal_device_get_time(s->w.dev);

	if (wait != FOR_NOBODY) {
		d.signals = &point;
		d.signal_count = 1;
		end = submit_as(&s->w, s->low, d, 1, f->own_ns, 'n');
		d = (struct hal_submit_desc)HAL_INIT(hal_submit_desc);
		d.waits = wait == AT_TIMELINE ? &point : &end;
		d.wait_count = 1;
	}
	finish(submit_as(&s->w, s->latency, d, 1, f->own_ns, 'l'));
	return hal_device_get_time(s->w.dev) - at;
}

static void holds(const struct bound *b, const struct flood *f, enum wait wait,
		  bool elsewhere)
{
	uint64_t submitted[FLOOD] = {0}, most, ns;
	struct scene s;

	most = b->commands * f->ns + b->ns + f->own_ns;
	most += elsewhere ? b->elsewhere_ns : 0;
	if (b->frame_ns != 0 && f->ns > SLOT_NS)
		most += FLOOD * (f->ns + b->frame_ns);
	most *= wait != FOR_NOBODY ? 2 : 1; /* one for each of the two queues */
	scene_open(&s, b, f, elsewhere);
	for (int round = 0; round < ROUNDS; round++) {
		refill(&s, f, submitted);
		pass(&s.w, 5 * f->ns + (uint64_t)round * f->ns / ROUNDS);
		ns = took(&s, f, wait, round);
		if (ns > most)
			fail_msg("%s, flood of class %u, priority %d, %llu ns each: "
				 "%llu ns %s%sin round %d, at most %llu",
				 b->policy, f->service_class, f->priority,
				 (unsigned long long)f->ns, (unsigned long long)ns,
				 wait != FOR_NOBODY ? "through a point " : "",
				 elsewhere ? "beside a partition " : "", round,
				 (unsigned long long)most);
	}
	for (int i = 0; i < FLOOD; i++)
		assert_true(stats_of(s.flood[i]).completed < submitted[i]);
	scene_close(&s);
}

static void all_hold(enum wait wait, bool elsewhere)
{
	for (int p = 0; p < POLICIES; p++)
		for (int i = 0; i < FLOODS; i++)
			holds(&bounds[p], &floods[i], wait, elsewhere);
}

static void beside_a_flood(void **state)
{
	(void)state;
	all_hold(FOR_NOBODY, false);
}

static void behind_a_point(void **state)
{
	(void)state;
	all_hold(AT_TIMELINE, false);
	all_hold(AT_QUEUE, false);
}

/* The device runs one command at a time, of two partitions. */
static void beside_a_partition(void **state)
{
	(void)state;
	all_hold(FOR_NOBODY, true);
	all_hold(AT_TIMELINE, true);
}

/* No policy is without a bound: the list of the error's text has those, and no other. */
static void all_policies(void **state)
{
	static const char before[] = "there are";
	struct hal_device *dev;
	const char *list;
	int count = 0;

	(void)state;
	FAILS(hal_open("ref?policy.name=nothing", NULL, &dev), -EINVAL, before);
	list = strstr(hal_last_error(), before) + sizeof(before) - 1;
	for (const char *at = list; *at != '\0'; at++)
		count += *at == ' ';
	assert_int_equal(count, POLICIES);
	for (int i = 0; i < POLICIES; i++) {
		char word[64];

		snprintf(word, sizeof(word), " %s", bounds[i].policy);
		assert_non_null(strstr(hal_last_error(), word));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_policies),
		cmocka_unit_test(beside_a_flood),
		cmocka_unit_test(behind_a_point),
		cmocka_unit_test(beside_a_partition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
