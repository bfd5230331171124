/* SPDX-License-Identifier: Apache-2.0 */
/* Launches that set their group size and their shared memory. */
#include "ref_world.h"

#include <hal/backend.h>

struct shapes {
	struct world w;
	struct hal_program *prog;
	struct hal_kernel *none, *seven, *many;
	struct hal_queue *q;
	struct hal_arg args[HAL_ARGS_MAX];
};

static void shapes_open(struct shapes *s, const char *const *options)
{
	static const char image[] = "shaped0 shaped7 shapedg";

	memset(s, 0, sizeof(*s));
	if (options == NULL)
		world_open(&s->w, "mock?clock=virtual");
	else
		world_open_with(&s->w, "mock?clock=virtual", options);
	world_fill(&s->w);
	OK(hal_program_load(s->w.dev, image, sizeof(image) - 1, &s->prog));
	OK(hal_kernel_find(s->prog, "shaped0", &s->none));
	OK(hal_kernel_find(s->prog, "shaped7", &s->seven));
	OK(hal_kernel_find(s->prog, "shapedg", &s->many));
	s->q = add_queue(s->w.part, 0);
	s->args[0].buffer = s->w.buf;
}

static void shapes_close(struct shapes *s)
{
	OK(hal_queue_destroy(s->q));
	OK(hal_program_unload(s->prog));
	world_close(&s->w);
}

static struct hal_cmd shaped(struct shapes *s, struct hal_kernel *k, uint32_t count,
			     uint32_t x, uint32_t y, uint32_t z, uint32_t shared)
{
	struct hal_cmd c = hal_cmd_launch(k, s->args, count);

	c.launch.group_size[0] = x;
	c.launch.group_size[1] = y;
	c.launch.group_size[2] = z;
	c.launch.shared_bytes = shared;
	return c;
}

/* The oldest command in flight has this shape; then it ends. */
static void expect(struct shapes *s, uint32_t x, uint32_t y, uint32_t z, uint32_t shared)
{
	struct hal_bk_shape got = {{0}, 0};

	poll_now(&s->w);
	assert_int_equal(s->w.mock->shape(s->w.native, 0, &got), (x | shared) != 0);
	assert_int_equal(got.group_size[0], x);
	assert_int_equal(got.group_size[1], y);
	assert_int_equal(got.group_size[2], z);
	assert_int_equal(got.shared_bytes, shared);
	s->w.mock->complete(s->w.native, 1, 1);
	poll_now(&s->w);
}

static void told(void **state)
{
	struct hal_kernel_info info = HAL_INIT(hal_kernel_info);
	struct shapes s;

	(void)state;
	shapes_open(&s, NULL);
	OK(hal_kernel_get_info(s.seven, &info));
	assert_int_equal(info.group_size[0], 8);
	assert_int_equal(info.group_size[1], 2);
	assert_int_equal(info.group_size_max, 256);
	assert_int_equal(info.shared_max, 1024);
	OK(hal_kernel_get_info(s.w.k2, &info));
	assert_int_equal(info.group_size[0], 0);
	assert_int_equal(info.group_size_max, 0);
	shapes_close(&s);
}

/* What a launch sets comes to the backend, whatever its arguments take in the ring, and
 * is forgotten with the next launch. */
static void come(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_timeline *t;
	struct hal_point at;
	struct hal_cmd cmd;
	struct shapes s;

	(void)state;
	shapes_open(&s, NULL);
	for (int round = 0; round < 100; round++) { /* around the ring */
		OK(submit_cmd(s.q, shaped(&s, s.none, 0, 16, 4, 2, 512), NULL));
		OK(submit_cmd(s.q, shaped(&s, s.seven, 7, 256, 0, 0, 0), NULL));
		OK(submit_cmd(s.q, shaped(&s, s.many, 16, 1, 256, 0, 1024), NULL));
		OK(submit_cmd(s.q, shaped(&s, s.seven, 7, 0, 0, 0, 1), NULL));
		OK(submit_cmd(s.q, shaped(&s, s.seven, 7, 8, 2, 1, 0), NULL));
		OK(submit_cmd(s.q, shaped(&s, s.seven, 7, 0, 0, 0, 0), NULL));
		expect(&s, 16, 4, 2, 512);
		expect(&s, 256, 1, 1, 0);
		expect(&s, 1, 256, 1, 1024);
		expect(&s, 0, 0, 0, 1);
		expect(&s, 0, 0, 0, 0); /* as the kernel's own */
		expect(&s, 0, 0, 0, 0);
	}
	/* With points. */
	OK(hal_timeline_create(s.w.dev, &t));
	cmd = shaped(&s, s.seven, 7, 4, 4, 4, 0);
	cmd.launch.groups[1] = 9;
	at = (struct hal_point){t, 1};
	d.cmds = &cmd;
	d.cmd_count = 1;
	d.signals = &at;
	d.signal_count = 1;
	OK(hal_submit(s.q, &d, NULL));
	expect(&s, 4, 4, 4, 0);
	OK(hal_wait(&at, 1, 0, HAL_FOREVER));
	OK(hal_timeline_destroy(t));
	shapes_close(&s);
}

/* A recorded launch keeps its shape, also when its arguments change. */
static void recorded(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_sequence *seq;
	struct hal_cmd cmds[2];
	struct shapes s;

	(void)state;
	shapes_open(&s, NULL);
	cmds[0] = shaped(&s, s.seven, 7, 32, 1, 1, 64);
	cmds[1] = shaped(&s, s.seven, 7, 0, 0, 0, 0);
	d.cmds = cmds;
	d.cmd_count = 2;
	OK(hal_sequence_create(s.w.part, &d, &seq));
	for (int round = 0; round < 3; round++) {
		OK(hal_sequence_submit(s.q, seq, NULL, NULL));
		expect(&s, 32, 1, 1, 64);
		expect(&s, 0, 0, 0, 0);
		s.args[1].offset = 5;
		OK(hal_sequence_set_args(seq, 0, s.args, 7));
	}
	OK(hal_sequence_destroy(seq));
	shapes_close(&s);
}

static void refused(void **state)
{
	struct shapes s;

	(void)state;
	shapes_open(&s, NULL);
	FAILS(submit_cmd(s.q, shaped(&s, s.seven, 7, 257, 1, 1, 0), NULL), -EINVAL,
	      "kernel shaped7: group_size 257 x 1 x 1 exceeds the 256 work items");
	FAILS(submit_cmd(s.q, shaped(&s, s.seven, 7, 16, 17, 0, 0), NULL), -EINVAL,
	      "256");
	FAILS(submit_cmd(s.q,
			 shaped(&s, s.seven, 7, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0),
			 NULL),
	      -EINVAL, "256");
	FAILS(submit_cmd(s.q, shaped(&s, s.seven, 7, 0, 0, 0, 1025), NULL), -EINVAL,
	      "shared_bytes is 1025, at most 1024");
	FAILS(submit_cmd(s.q, shaped(&s, s.w.k2, 2, 8, 1, 1, 0), NULL), -ENOTSUP,
	      "kernel two2: group_size 8 x 1 x 1: its groups have a fixed size");
	FAILS(submit_cmd(s.q, shaped(&s, s.w.k2, 2, 0, 0, 5, 0), NULL), -ENOTSUP,
	      "fixed");
	FAILS(submit_cmd(s.q, shaped(&s, s.w.k2, 2, 0, 0, 0, 4), NULL), -ENOTSUP,
	      "shared_bytes is 4, at most 0");
	shapes_close(&s);
}

/* The layers agree. */
static void with_layers(void **state)
{
	static const char *const options[] = {PLUGINS, "layers.validate=1",
					      "layers.trace=/dev/null", NULL};
	struct shapes s;

	(void)state;
	shapes_open(&s, options);
	s.w.native = hal_device_get_native(s.w.dev);
	OK(submit_cmd(s.q, shaped(&s, s.seven, 7, 64, 2, 2, 1024), NULL));
	expect(&s, 64, 2, 2, 1024);
	shapes_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told),        cmocka_unit_test(come),
		cmocka_unit_test(recorded),    cmocka_unit_test(refused),
		cmocka_unit_test(with_layers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
