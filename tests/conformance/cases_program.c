/* SPDX-License-Identifier: Apache-2.0 */
/* Programs and kernels: loading, finding, bad images. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <hal/pack.h>

static int load_unload(struct conf *c)
{
	struct hal_kernel *k;
	int i;

	for (i = 0; i < 3; i++) {
		STEP(conf_kernel(c, "copy", &k));
		OK(hal_program_unload(c->prog));
		c->prog = NULL;
	}
	OK(hal_program_unload(NULL));
	return 0;
}

static int kernels(struct conf *c)
{
	static const struct {
		const char *name;
		uint32_t args;
		uint64_t bytes;
	} want[] = {
		{"copy", 2, CONF_COPY_BYTES}, {"gemm", 3, CONF_GEMM_BYTES},
		{"add", 3, CONF_ADD_BYTES},   {"spin", 1, CONF_SPIN_BYTES},
		{"wild", 1, CONF_SPIN_BYTES},
	};
	struct hal_kernel_info info;
	struct hal_kernel *k, *again;
	size_t i, a;

	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		STEP(conf_kernel(c, want[i].name, &k));
		info = (struct hal_kernel_info)HAL_INIT(hal_kernel_info);
		OK(hal_kernel_get_info(k, &info));
		CHECK(strcmp(info.name, want[i].name) == 0);
		EQ(info.arg_count, want[i].args);
		for (a = 0; a < info.arg_count; a++)
			EQ(info.arg_bytes[a], want[i].bytes);
		STEP(conf_kernel(c, want[i].name, &again));
		CHECK(again == k);
	}
	return 0;
}

/* Each kernel has a number, under which it is the same as under its name. */
static int kernels_by_number(struct conf *c)
{
	struct hal_program_info info = HAL_INIT(hal_program_info);
	struct hal_kernel_info k_info;
	struct hal_kernel *k, *named;
	uint32_t i;

	STEP(conf_kernel(c, "copy", &k));
	OK(hal_program_set_name(c->prog, "numbered"));
	OK(hal_program_get_info(c->prog, &info));
	CHECK(strcmp(info.name, "numbered") == 0);
	CHECK(info.kernel_count >= 5);
	for (i = 0; i < info.kernel_count; i++) {
		k_info = (struct hal_kernel_info)HAL_INIT(hal_kernel_info);
		OK(hal_kernel_get(c->prog, i, &k));
		OK(hal_kernel_get_info(k, &k_info));
		OK(hal_kernel_find(c->prog, k_info.name, &named));
		CHECK(named == k);
	}
	ERR(hal_kernel_get(c->prog, info.kernel_count, &k), -ERANGE);
	CHECK(k == named);
	OK(hal_program_set_name(c->prog, ""));
	return 0;
}

static int kernel_missing(struct conf *c)
{
	struct hal_kernel *k;

	STEP(conf_kernel(c, "copy", &k));
	ERR(hal_kernel_find(c->prog, "copy2", &k), -ENOENT);
	CHECK(strstr(hal_last_error(), "copy2"));
	ERR(hal_kernel_find(c->prog, "", &k), -ENOENT);
	return 0;
}

/* Every image that ends too early is refused, wherever it ends. */
static int truncated(struct conf *c)
{
	struct hal_program *prog;
	void *image = NULL;
	size_t size = 0, n, step;
	int r = 0, err;

	CHECK(c->pack->image(&image, &size) == 0);
	step = size / 400 + 1;
	for (n = 0; n < size && !r; n += n < 80 ? 1 : step) {
		/* In a block of its own, so that a sanitizer sees who reads past it. */
		void *cut = malloc(n ? n : 1);

		if (!cut)
			break;
		memcpy(cut, image, n);
		err = hal_program_load(c->dev, cut, n, &prog);
		free(cut);
		if (err != -EINVAL)
			r = conf_fail(c, __FILE__, __LINE__, "%zu of %zu bytes: %d (%s)",
				      n, size, err, hal_last_error());
	}
	c->pack->free(image);
	return r;
}

static int not_an_image(struct conf *c)
{
	struct hal_program *prog;
	uint8_t junk[4096];

	conf_noise(junk, sizeof(junk), 6);
	ERR(hal_program_load(c->dev, junk, sizeof(junk), &prog), -EINVAL);
	memset(junk, 0, sizeof(junk));
	ERR(hal_program_load(c->dev, junk, sizeof(junk), &prog), -EINVAL);
	return 0;
}

/* Load the image from memory that can only be read, at an address that nothing in it can
 * name, and overwrite and unmap that memory. */
static int load_foreign(struct conf *c, const void *image, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	int err;

	CHECK(at != MAP_FAILED);
	memcpy(at, image, size);
	CHECK(mprotect(at, size, PROT_READ) == 0);
	err = hal_program_load(c->dev, at, size, &c->prog);
	CHECK(mprotect(at, size, PROT_READ | PROT_WRITE) == 0);
	memset(at, 0xff, size);
	CHECK(munmap(at, size) == 0);
	OK(err);
	return 0;
}

static int image_is_copied(struct conf *c)
{
	struct hal_partition *p;
	struct hal_buffer *a, *b;
	struct hal_arg args[2];
	struct hal_point done;
	struct hal_kernel *k;
	struct hal_queue *q;
	struct hal_cmd cmd;
	void *image = NULL;
	uint8_t data[CONF_COPY_BYTES];
	size_t size = 0;
	int r;

	CHECK(c->pack->image(&image, &size) == 0);
	r = load_foreign(c, image, size);
	memset(image, 0xff, size);
	c->pack->free(image);
	STEP(r);
	STEP(conf_whole(c, &p));
	STEP(conf_queue(c, p, &q));
	STEP(conf_buffer(c, p, CONF_COPY_BYTES, &a));
	STEP(conf_buffer(c, p, CONF_COPY_BYTES, &b));
	STEP(conf_kernel(c, "copy", &k));
	conf_noise(data, sizeof(data), 7);
	OK(hal_buffer_write(a, 0, data, sizeof(data)));
	args[0] = (struct hal_arg){.buffer = b};
	args[1] = (struct hal_arg){.buffer = a};
	cmd = hal_cmd_launch(k, args, 2);
	STEP(conf_submit(c, q, &cmd, 1, &done));
	/* Submitted work keeps the program alive. */
	OK(hal_program_unload(c->prog));
	c->prog = NULL;
	STEP(conf_wait(c, done));
	return conf_same(c, b, 0, data, sizeof(data));
}

static int two_programs(struct conf *c)
{
	struct hal_program *other;
	struct hal_kernel *a, *b;
	void *image = NULL;
	size_t size = 0;
	int err;

	STEP(conf_kernel(c, "copy", &a));
	CHECK(c->pack->image(&image, &size) == 0);
	err = hal_program_load(c->dev, image, size, &other);
	c->pack->free(image);
	OK(err);
	OK(hal_kernel_find(other, "copy", &b));
	CHECK(a != b);
	OK(hal_program_unload(other));
	STEP(conf_kernel(c, "gemm", &a));
	return 0;
}

/* Of a pack the first image that is one for this device, and a failure that names what
 * there was. */
static int pack(struct conf *c)
{
	struct hal_pack_entry e[2] = {{.label = "half"}, {.label = "whole"}};
	struct hal_pack head = {HAL_PACK_MAGIC, HAL_PACK_VERSION, 0, 2, sizeof(e[0])};
	const size_t first = (sizeof(head) + sizeof(e) + 15) / 16 * 16;
	struct hal_kernel *k;
	void *image = NULL;
	uint8_t *all;
	size_t size = 0, half;
	int err, none;

	CHECK(c->pack->image(&image, &size) == 0);
	half = size / 2;
	e[0].offset = first;
	e[0].bytes = half;
	e[1].offset = (first + half + 15) / 16 * 16;
	e[1].bytes = size;
	head.bytes = e[1].offset + size;
	all = calloc(1, head.bytes);
	if (all) {
		memcpy(all, &head, sizeof(head));
		memcpy(all + sizeof(head), e, sizeof(e));
		memcpy(all + e[0].offset, image, half);
		memcpy(all + e[1].offset, image, size);
	}
	c->pack->free(image);
	CHECK(all != NULL);
	err = hal_program_load(c->dev, all, head.bytes, &c->prog);
	if (!err) {
		memset(all + e[1].offset, 0xff, size);
		none = hal_program_load(c->dev, all, head.bytes, &c->prog);
	}
	free(all);
	OK(err);
	CHECK(none == -ENOTSUP);
	CHECK(strstr(hal_last_error(), "half: ") &&
	      strstr(hal_last_error(), "; whole: "));
	return conf_kernel(c, "copy", &k);
}

static int close_busy(struct conf *c)
{
	struct hal_kernel *k;

	STEP(conf_kernel(c, "copy", &k));
	ERR(hal_close(c->dev), -EBUSY);
	return 0;
}

static int arguments(struct conf *c)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_arg args[2] = {{0}};
	struct hal_kernel *k;
	struct hal_queue *q;
	struct hal_cmd cmd;

	STEP(conf_whole(c, &p));
	STEP(conf_queue(c, p, &q));
	STEP(conf_buffer(c, p, CONF_COPY_BYTES, &b));
	STEP(conf_kernel(c, "copy", &k));
	args[0].buffer = args[1].buffer = b;
	d.cmds = &cmd;
	d.cmd_count = 1;
	cmd = hal_cmd_launch(k, args, 1);
	ERR(hal_submit(q, &d, NULL), -EINVAL); /* one too few */
	cmd = hal_cmd_launch(k, args, 2);
	args[1].offset = 1;
	ERR(hal_submit(q, &d, NULL), -EINVAL); /* a byte short to the end */
	args[1].offset = 0;
	args[1].bytes = CONF_COPY_BYTES - 1;
	ERR(hal_submit(q, &d, NULL), -EINVAL);
	args[1].bytes = CONF_COPY_BYTES + 1;
	ERR(hal_submit(q, &d, NULL), -EINVAL); /* past the end */
	args[1] = (struct hal_arg){.buffer = NULL, .offset = 5};
	ERR(hal_submit(q, &d, NULL), -EINVAL); /* a scalar for a buffer */
	return 0;
}

/* ---- launches with a group size and shared memory of their own --------------------- */

struct shaped {
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_buffer *dst, *src;
	struct hal_kernel_info info;
	struct hal_arg args[2];
	struct hal_cmd cmd;
	uint8_t noise[CONF_COPY_BYTES];
};

/* A launch of copy, to be given a shape. */
static int make_shaped(struct conf *c, struct shaped *s)
{
	struct hal_kernel *k;

	STEP(conf_whole(c, &s->p));
	STEP(conf_queue(c, s->p, &s->q));
	STEP(conf_buffer(c, s->p, CONF_COPY_BYTES, &s->dst));
	STEP(conf_buffer(c, s->p, CONF_COPY_BYTES, &s->src));
	STEP(conf_kernel(c, "copy", &k));
	s->info = (struct hal_kernel_info)HAL_INIT(hal_kernel_info);
	OK(hal_kernel_get_info(k, &s->info));
	conf_noise(s->noise, sizeof(s->noise), 8);
	OK(hal_buffer_write(s->src, 0, s->noise, sizeof(s->noise)));
	s->args[0] = (struct hal_arg){.buffer = s->dst};
	s->args[1] = (struct hal_arg){.buffer = s->src};
	s->cmd = hal_cmd_launch(k, s->args, 2);
	return 0;
}

static int run_shaped(struct conf *c, struct shaped *s)
{
	static const uint8_t zero[CONF_COPY_BYTES];
	struct hal_point done;

	OK(hal_buffer_write(s->dst, 0, zero, sizeof(zero)));
	STEP(conf_submit(c, s->q, &s->cmd, 1, &done));
	STEP(conf_wait(c, done));
	return conf_same(c, s->dst, 0, s->noise, sizeof(s->noise));
}

/* The size that the kernel has by itself may be given, also where no other may. */
static int shape_own(struct conf *c)
{
	struct shaped s;

	STEP(make_shaped(c, &s));
	if (s.info.group_size[0] == 0)
		return conf_unsupported(c, "kernels have no group size");
	memcpy(s.cmd.launch.group_size, s.info.group_size, sizeof(s.info.group_size));
	return run_shaped(c, &s);
}

/* Groups of other sizes, a size of 0 counts as 1, and the most shared memory. */
static int shape_other(struct conf *c)
{
	static const uint32_t sizes[][3] = {{32, 0, 0}, {8, 4, 2}, {1, 0, 3}};
	struct shaped s;

	STEP(make_shaped(c, &s));
	if (s.info.group_size_max == 0)
		return conf_unsupported(c, "the group size of a kernel is fixed");
	CHECK(s.info.group_size_max >= 64);
	for (uint32_t i = 0; i < 3; i++) {
		memcpy(s.cmd.launch.group_size, sizes[i], sizeof(sizes[i]));
		s.cmd.launch.shared_bytes = i != 0 ? s.info.shared_max / i : 0;
		STEP(run_shaped(c, &s));
	}
	return 0;
}

/* A device without shapes answers ENOTSUP; nothing of the submission takes effect. */
static int shape_refused(struct conf *c)
{
	static const uint8_t zero[CONF_COPY_BYTES];
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct shaped s;
	uint32_t *size = s.cmd.launch.group_size;

	STEP(make_shaped(c, &s));
	d.cmds = &s.cmd;
	d.cmd_count = 1;
	size[0] = s.info.group_size_max + 1;
	ERR(hal_submit(s.q, &d, NULL), s.info.group_size_max != 0 ? -EINVAL : -ENOTSUP);
	CHECK(strstr(hal_last_error(), "copy") && strstr(hal_last_error(), "group_size"));
	size[0] = size[1] = size[2] = UINT32_MAX;
	ERR(hal_submit(s.q, &d, NULL), s.info.group_size_max != 0 ? -EINVAL : -ENOTSUP);
	size[0] = size[1] = size[2] = 0;
	s.cmd.launch.shared_bytes = s.info.shared_max + 1;
	ERR(hal_submit(s.q, &d, NULL), s.info.shared_max != 0 ? -EINVAL : -ENOTSUP);
	CHECK(strstr(hal_last_error(), "copy") &&
	      strstr(hal_last_error(), "shared_bytes"));
	return conf_same(c, s.dst, 0, zero, sizeof(zero));
}

/* A recorded launch keeps its shape. */
static int shape_recorded(struct conf *c)
{
	struct hal_cmd cmds[3];
	struct hal_sequence *seq;
	struct hal_point done;
	struct shaped s;

	STEP(make_shaped(c, &s));
	if (s.info.group_size_max == 0)
		return conf_unsupported(c, "the group size of a kernel is fixed");
	s.cmd.launch.group_size[0] = 32;
	s.cmd.launch.shared_bytes = s.info.shared_max;
	cmds[0] = hal_cmd_fill(s.dst, 0, CONF_COPY_BYTES, 0);
	cmds[1] = s.cmd;
	cmds[2] = hal_cmd_fill(s.src, 0, 64, 0x01020304);
	STEP(conf_sequence(c, s.p, cmds, 3, &seq));
	for (int i = 0; i < 3; i++) {
		OK(hal_buffer_write(s.src, 0, s.noise, sizeof(s.noise)));
		OK(hal_sequence_submit(s.q, seq, NULL, &done));
		STEP(conf_wait(c, done));
		STEP(conf_same(c, s.dst, 0, s.noise, sizeof(s.noise)));
		STEP(conf_filled(c, s.src, 0, 64, 0x01020304));
	}
	cmds[1].launch.group_size[0] = s.info.group_size_max + 1;
	{
		struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

		d.cmds = cmds;
		d.cmd_count = 3;
		ERR(hal_sequence_create(s.p, &d, &seq), -EINVAL);
		CHECK(strstr(hal_last_error(), "group_size"));
	}
	return 0;
}

const struct conf_case conf_program_cases[] = {
	{"program.load_unload", load_unload},
	{"program.kernels", kernels},
	{"program.kernels_by_number", kernels_by_number},
	{"program.kernel_missing", kernel_missing},
	{"program.truncated", truncated},
	{"program.not_an_image", not_an_image},
	{"program.image_is_copied", image_is_copied},
	{"program.two_programs", two_programs},
	{"program.pack", pack},
	{"program.close_busy", close_busy},
	{"program.arguments", arguments},
	{"program.shape_own", shape_own},
	{"program.shape_other", shape_other},
	{"program.shape_refused", shape_refused},
	{"program.shape_recorded", shape_recorded},
	{NULL, NULL},
};
