/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_owner - urgency is inherited within one owner of partitions alone
 * (sched/inherit.h). */
#include "ref_world.h"

#include "command/queue.h"
#include "sched/inherit.h"

/* Whether a queue of partitions of owner `from` lends urgency to one of owner `to`, for
 * whose point it waits. */
static bool lends(uint64_t from, uint64_t to)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_queue_desc urgent = HAL_INIT(hal_queue_desc);
	struct hal_point open, done, end;
	struct hal_partition *part;
	struct hal_timeline *gate;
	struct hal_queue *q;
	struct ref r;
	bool lent;

	ref_open_with(&r, "ref?clock=virtual", NULL);
	{
		struct world w = {.dev = r.dev};

		part = add_partition(&w, 2);
	}
	inherit_within(part, from);
	inherit_within(r.part, to);
	OK(hal_timeline_create(r.dev, &gate));
	open = (struct hal_point){gate, 1};
	d.waits = &open;
	d.wait_count = 1;
	OK(hal_submit(r.q, &d, &done));
	urgent.service_class = HAL_CLASS_LATENCY;
	OK(hal_queue_create(part, &urgent, &q));
	d.waits = &done;
	OK(hal_submit(q, &d, &end));
	assert_true(hal_device_poll(r.dev, 0) >= 0);
	lent = !heap_empty(&r.q->sched.inherited.ranks);
	OK(hal_timeline_signal(gate, 1));
	OK(hal_wait(&end, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(q));
	OK(hal_timeline_destroy(gate));
	OK(hal_partition_destroy(part));
	ref_close(&r);
	return lent;
}

static void within_one_owner(void **state)
{
	(void)state;
	assert_true(lends(0, 0)); /* the control */
	assert_true(lends(3, 3));
	assert_false(lends(1, 2));
	assert_false(lends(0, 2));
	assert_false(lends(2, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(within_one_owner)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
