/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend has not: every operation answers, and a table that is none is refused.
 */
#include "mock_world.h"

#include <hal/backend.h>

#include "config/registry.h"

#define LACKS(call) FAILS(call, -ENOTSUP, "the device cannot")

static void wrong_tables(void **state)
{
	static const char *const cases[][2] = {
		{"head", "cannot hold"},
		{"cold", "cannot hold"},
		{"hot", "cannot hold"},
		{"options", "1 options"},
		{"nameless", "1 to 15"},
		{"", "1 to 15"},
		{"sixteen_letters_", "1 to 15"},
		{"a:b", "1 to 15"},
		{"a?b", "1 to 15"},
		{"a.b", "1 to 15"},
		{"a b", "1 to 15"},
		{"ref", "already"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t count;

		OK(registry_load(""));
		count = registry_count();
		setenv("ODD", cases[i][0], 1);
		FAILS(registry_load(ODD_PLUGIN),
		      i + 1 < sizeof(cases) / sizeof(cases[0]) ? -EPROTO : -EINVAL,
		      cases[i][1], ODD_PLUGIN);
		assert_int_equal(registry_count(), count);
	}
	unsetenv("ODD");
}

static void empty_table(void **state)
{
	const struct hal_bk_partition_desc desc = {0};
	const struct backend *b;
	const struct hal_bk_cold *cold;
	const struct hal_bk_hot *hot;
	const struct hal_bk_extra *extra;
	struct hal_bk_event ev;
	struct hal_device *dev;
	uint64_t bytes = 1;

	(void)state;
	OK(registry_load(ODD_PLUGIN));
	b = registry_find("odd");
	assert_non_null(b);
	assert_string_equal(b->section, "backend.odd");
	cold = &b->table.cold;
	hot = &b->table.hot;
	extra = &b->table.extra;
	FAILS(cold->probe(NULL, NULL, 0), -ENODEV, "cannot search for devices");
	LACKS(cold->open(NULL, 0, NULL));
	cold->close(NULL);
	LACKS(cold->get_info(NULL, NULL));
	LACKS(cold->partition_create(NULL, &desc, NULL));
	LACKS(cold->partition_destroy(NULL, NULL));
	LACKS(cold->queue_create(NULL, NULL, 0, NULL));
	LACKS(cold->queue_destroy(NULL, NULL));
	LACKS(cold->mem_alloc(NULL, NULL, 1, 0, 0, NULL));
	LACKS(cold->mem_free(NULL, NULL));
	LACKS(cold->mem_write(NULL, NULL, 0, NULL, 1));
	LACKS(cold->mem_read(NULL, NULL, 0, NULL, 1));
	LACKS(cold->mem_map(NULL, NULL, NULL));
	LACKS(cold->mem_unmap(NULL, NULL));
	LACKS(cold->program_load(NULL, NULL, 0, NULL));
	LACKS(cold->program_unload(NULL, NULL));
	FAILS(cold->kernel_get(NULL, NULL, 0, NULL, NULL), -ENOENT, "no kernels");
	/* Not having to do anything is no lack. */
	OK(cold->program_bind(NULL, NULL, NULL, &bytes));
	assert_int_equal(bytes, 0);
	OK(cold->program_unbind(NULL, NULL, NULL));
	LACKS(cold->mem_register(NULL, NULL, NULL, 1, NULL));
	LACKS(cold->mem_export(NULL, NULL, NULL));
	LACKS(cold->mem_import(NULL, NULL, 0, 1, 0, NULL));
	LACKS(cold->colors_set(NULL, NULL));
	assert_null(cold->extension(NULL, "odd"));
	assert_null(cold->isolation);
	assert_null(cold->mem_clear);
	LACKS(hot->submit(NULL, NULL, NULL));
	LACKS(hot->poll(NULL, 0, &ev, 1));
	assert_int_equal(hot->now(NULL), 0);
	LACKS(hot->suspend(NULL, NULL, 0, 0));
	LACKS(hot->resume(NULL, NULL));
	LACKS(hot->resize(NULL, NULL, &desc, 0));
	assert_int_equal(hot->event_fd(NULL), -ENOTSUP);
	assert_null(hot->next);
	assert_null(hot->doorbell);
	LACKS(extra->mem_swap(NULL, NULL, NULL));
	LACKS(extra->mem_out(NULL, NULL));
	LACKS(extra->mem_in(NULL, NULL, NULL));
	LACKS(extra->partition_widen(NULL, NULL, 1));
	assert_null(extra->counters);
	LACKS(extra->limit(NULL, NULL, 0, 0));
	LACKS(hal_open("odd", NULL, &dev));
}

/* ---- policies ---------------------------------------------------------------------- */

static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	(void)state, (void)part, (void)queue;
	return now_ns;
}

static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	(void)state, (void)part, (void)now_ns, (void)order;
	return NULL;
}

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	(void)state, (void)part, (void)queue;
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	(void)state, (void)part, (void)queue, (void)why;
}

static void wrong_policies(void **state)
{
	const struct hal_policy good = {
		.size = sizeof(good), .abi = HAL_POLICY_ABI, .name = "good", .key = key};
	static const char *const no_name[] = {"x y", " x",  "x\t",   "x\n",     "x.y",
					      "x=y", "x:y", "x,y",   "x;",      "#x",
					      "[x]", "\"x", "x\x7f", "\xc3\xa9"};
	struct hal_policy p;

#define WRONG(change, ...)                                                               \
	do {                                                                             \
		p = good;                                                                \
		change;                                                                  \
		FAILS(policy_add(&p, "here"), -EPROTO, "here", __VA_ARGS__);             \
	} while (0)

	(void)state;
	OK(registry_load(""));
	WRONG(p.abi++, "policy ABI");
	WRONG(p.size--, "struct hal_policy has");
	WRONG(p.size++, "struct hal_policy has");
	WRONG(p.name = NULL, "1 to 31");
	WRONG(p.name = "", "1 to 31");
	WRONG(p.name = "thirty_two_characters_are_1_more", "1 to 31");
	for (size_t i = 0; i < sizeof(no_name) / sizeof(no_name[0]); i++)
		WRONG(p.name = no_name[i], "no spaces and none of .=");
	WRONG(p.key = NULL, "neither key nor pick");
	WRONG(p.pick = pick, "has key together with");
	WRONG(p.enqueue = enqueue, "has key together with");
	WRONG(p.dequeue = dequeue, "has key together with");
	WRONG(p.option_count = 1, "1 options");
	p = good;
	p.name = "fifo";
	FAILS(policy_add(&p, "here"), -EINVAL, "here", "already");
	assert_null(policy_find("good"));
	FAILS(policy_unknown("good"), -EINVAL, "\"good\"", " fifo", " wfq", " edf");
}

/* The last test: what is added stays. */
static void as_many_policies_as_there_can_be(void **state)
{
	enum { MANY = 128 };
	static struct hal_policy policies[MANY];
	static char names[MANY][32];
	uint32_t count = policy_count();

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		(void)snprintf(names[i], sizeof(names[i]),
			       "thirty_one_characters_fit_%05u", i);
		policies[i] = (struct hal_policy){.size = sizeof(policies[i]),
						  .abi = HAL_POLICY_ABI,
						  .name = names[i],
						  .pick = pick};
		if (i < MANY - count)
			OK(policy_add(&policies[i], "here"));
	}
	assert_int_equal(policy_count(), MANY);
	assert_ptr_equal(policy_at(count), &policies[0]);
	assert_ptr_equal(policy_find(names[7]), &policies[7]);
	FAILS(policy_add(&policies[MANY - 1], "here"), -ENOSPC, "128");
	/* As many names as there is room for. */
	FAILS(policy_unknown("x"), -EINVAL, "\"x\"", " fifo");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_tables),
		cmocka_unit_test(empty_table),
		cmocka_unit_test(wrong_policies),
		cmocka_unit_test(as_many_policies_as_there_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
