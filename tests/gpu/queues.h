/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queues.h - a device of a GPU's stand-in with three queues in one partition, and what is
 * done to them; for a test that has, before it includes this: b, the backend's table;
 * names, KERNELS of them, WORK the number of "work:m8"; MAKE_IMAGE, as make_cuda_image.
 */
#ifndef TESTS_GPU_QUEUES_H
#define TESTS_GPU_QUEUES_H

#define UNKNOWN 999u /* the result, of both */

struct rig {
	void *dev, *part, *prog, *queue[3], *mem, *kernel[KERNELS];
};

static void open_rig(struct rig *r, const struct hal_bk_config *cfg)
{
	const struct hal_bk_partition_desc desc = {.units = 1, .rows = 1, .cols = 1};
	struct hal_bk_kernel_info info;
	uint32_t i;
	size_t size;
	void *image = MAKE_IMAGE(names, KERNELS, 4, &size);

	memset(r, 0, sizeof(*r));
	stand_in()->reset();
	if (b->cold.open(cfg, 0, &r->dev))
		fail_msg("%s", host_text);
	assert_int_equal(b->cold.partition_create(r->dev, &desc, &r->part), 0);
	if (b->cold.program_load(r->dev, image, size, &r->prog))
		fail_msg("%s", host_text);
	free(image);
	for (i = 0; i < KERNELS; i++)
		assert_int_equal(
			b->cold.kernel_get(r->dev, r->prog, i, &info, &r->kernel[i]), 0);
	assert_int_equal(b->cold.kernel_get(r->dev, r->prog, KERNELS, &info, &image),
			 -ENOENT);
	for (i = 0; i < 3; i++)
		assert_int_equal(
			b->cold.queue_create(r->dev, r->part, (int)i - 1, &r->queue[i]),
			0);
	assert_int_equal(b->cold.mem_alloc(r->dev, r->part, 8192, NULL, 0, &r->mem), 0);
}

static void close_rig(struct rig *r)
{
	const char *text = "";
	uint32_t i;

	for (i = 0; i < 3; i++)
		assert_int_equal(b->cold.queue_destroy(r->dev, r->queue[i]), 0);
	if (r->mem)
		assert_int_equal(b->cold.mem_free(r->dev, r->mem), 0);
	assert_int_equal(b->cold.program_unload(r->dev, r->prog), 0);
	assert_int_equal(b->cold.partition_destroy(r->dev, r->part), 0);
	b->cold.close(r->dev);
	assert_int_equal(stand_in()->live(), 0);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
}

static struct hal_bk_cmd launch(struct rig *r, uint32_t kernel, uint64_t cookie,
				const struct hal_bk_arg *args, uint32_t count)
{
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH, .cookie = cookie};

	cmd.launch.kernel = r->kernel[kernel];
	cmd.launch.args = args;
	cmd.launch.arg_count = count;
	cmd.launch.groups[0] = cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	return cmd;
}

static void submit_work(struct rig *r, uint32_t queue, uint64_t cookie, uint64_t ns)
{
	const struct hal_bk_arg args[2] = {{r->mem, 0, 64}, {NULL, ns, 0}};
	const struct hal_bk_cmd cmd = launch(r, WORK, cookie, args, 2);

	assert_int_equal(b->hot.submit(r->dev, r->queue[queue], &cmd), 0);
}

static void submit_on_mem(struct rig *r, uint32_t queue, uint32_t kernel, uint64_t cookie)
{
	const struct hal_bk_arg mem = {r->mem, 0, 64};
	const struct hal_bk_cmd cmd = launch(r, kernel, cookie, &mem, 1);

	assert_int_equal(b->hot.submit(r->dev, r->queue[queue], &cmd), 0);
}

static void poll_one(struct rig *r, struct hal_bk_event *ev)
{
	assert_int_equal(b->hot.poll(r->dev, UINT64_MAX, ev, 1), 1);
}

/* Gives back all but queue 0, which is gone. */
static void leave_rig(struct rig *r)
{
	const char *text = "";

	assert_int_equal(b->cold.queue_destroy(r->dev, r->queue[1]), 0);
	assert_int_equal(b->cold.queue_destroy(r->dev, r->queue[2]), 0);
	assert_int_equal(b->cold.mem_free(r->dev, r->mem), 0);
	assert_int_equal(b->cold.program_unload(r->dev, r->prog), 0);
	assert_int_equal(b->cold.partition_destroy(r->dev, r->part), 0);
	b->cold.close(r->dev);
	if (stand_in()->misuse(&text))
		fail_msg("misuse: %s", text);
}

#ifdef TOO_LARGE /* {dimension, groups, what is said}, and the next */
static void refuses(struct rig *r, const struct hal_bk_cmd *cmd, const char *why)
{
	assert_int_equal(b->hot.submit(r->dev, r->queue[0], cmd), -EINVAL);
	if (!strstr(host_text, why))
		fail_msg("%s: not %s", host_text, why);
}

/* Arguments of a launch, and its shape behind them. */
struct shaped {
	struct hal_bk_arg args[2];
	struct hal_bk_shape shape;
};

/* iota writes a word for each work item of each group: so many, after base, that are base
 * and on. */
static void writes(struct rig *r, const struct hal_bk_cmd *cmd, uint32_t base, uint32_t n)
{
	uint32_t words[1025], i;
	struct hal_bk_event ev;

	memset(words, 0, sizeof(words));
	assert_int_equal(b->cold.mem_write(r->dev, r->mem, 0, words, sizeof(words)), 0);
	if (b->hot.submit(r->dev, r->queue[0], cmd))
		fail_msg("%s", host_text);
	poll_one(r, &ev);
	assert_int_equal(ev.status, 0);
	assert_int_equal(b->cold.mem_read(r->dev, r->mem, 0, words, sizeof(words)), 0);
	for (i = 0; i < n; i++)
		assert_int_equal(words[i], base + i);
	assert_int_equal(words[n], 0);
}

/* A launch has the groups that it asks for, and the next one the kernel's own. */
static void launch_shaped(struct rig *r)
{
	struct shaped a = {{{r->mem, 0, 8192}, {NULL, 100, 0}}, {{32, 1, 1}, 0}};
	struct hal_bk_cmd cmd = launch(r, IOTA, 1, a.args, 2);
	struct hal_bk_kernel_info info;
	void *kernel;

	assert_int_equal(b->cold.kernel_get(r->dev, r->prog, IOTA, &info, &kernel), 0);
	assert_int_equal(info.group_size[0], 4);
	assert_int_equal(info.group_size[1], 1);
	assert_int_equal(info.group_size[2], 1);
	assert_int_equal(info.group_size_max, 1024);
	assert_true(info.shared_max >= 48 * 1024);
	cmd.launch.groups[0] = 2;
	writes(r, &cmd, 100, 8);
	cmd.flags = HAL_BK_CMD_SHAPED;
	writes(r, &cmd, 100, 64);
	a.shape = (struct hal_bk_shape){{8, 4, 2}, 1024};
	writes(r, &cmd, 100, 128);
	a.shape = (struct hal_bk_shape){{0, 0, 0}, 4096};
	writes(r, &cmd, 100, 8);
	a.shape = (struct hal_bk_shape){{1, 512, 1}, info.shared_max};
	writes(r, &cmd, 100, 1024);
	cmd.flags = 0;
	writes(r, &cmd, 100, 8);
	cmd.flags = HAL_BK_CMD_SHAPED;
	a.shape = (struct hal_bk_shape){{1, 4096, 1}, 0};
	refuses(r, &cmd, "kernel iota: ");
	a.shape = (struct hal_bk_shape){{1, 1, 4096}, 0};
	refuses(r, &cmd, "1 x 1 x 4096");
	cmd.flags = 0;
	writes(r, &cmd, 100, 8);
}

/* What is refused leaves nothing behind. */
static void launch_badly(const struct hal_bk_config *cfg)
{
	static const struct {
		uint32_t in, groups;
		const char *why;
	} too_large[] = {TOO_LARGE};
	struct hal_bk_event ev;
	struct hal_bk_arg args[2];
	struct hal_bk_cmd cmd;
	struct rig r;
	size_t i;

	open_rig(&r, cfg);
	args[0] = (struct hal_bk_arg){r.mem, 0, 4096};
	args[1] = (struct hal_bk_arg){NULL, UINT64_C(1) << 32, 0};
	cmd = launch(&r, IOTA, 1, args, 2);
	refuses(&r, &cmd, "kernel iota: argument 1 is a scalar that does not fit");
	args[1].mem = r.mem;
	refuses(&r, &cmd, "argument 1 must be a scalar");
	args[1].mem = NULL;
	args[0].mem = NULL;
	refuses(&r, &cmd, "argument 0 must be a buffer");
	args[0].mem = r.mem;
	args[1].value = 1;
	for (i = 0; i < sizeof(too_large) / sizeof(too_large[0]); i++) {
		cmd.launch.groups[too_large[i].in] = too_large[i].groups;
		refuses(&r, &cmd, too_large[i].why);
		cmd.launch.groups[too_large[i].in] = 1;
	}
	assert_int_equal(b->hot.submit(r.dev, r.queue[0], &cmd), 0);
	poll_one(&r, &ev);
	assert_int_equal(ev.status, 0);
	launch_shaped(&r);
	close_rig(&r);
}
#endif

/* The device goes while something runs long: that is told when it is asked for. */
static inline void lose_in_silence(const struct hal_bk_config *cfg, const char *says)
{
	struct hal_bk_event ev[4];
	struct rig r;

	open_rig(&r, cfg);
	submit_work(&r, 0, 1, 1000000000);
	assert_int_equal(b->hot.poll(r.dev, 500000000, ev, 4), 0);
	stand_in()->lose(0, UNKNOWN);
	assert_int_equal(b->hot.poll(r.dev, 600000000, ev, 4), 1);
	assert_int_equal(ev[0].status, -EIO);
	assert_non_null(strstr(ev[0].fault, says));
	assert_int_equal(b->hot.poll(r.dev, 700000000, ev, 4), -EIO);
	close_rig(&r);
}

#endif
