/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that several partitions and devices share by file descriptor.  Those of several
 * processes: tests/share. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 3 * CONF_COPY_BYTES };

/* A buffer that can be exported, in one half of the device, and an import of it in the
 * other; of one unit both are in the same partition. */
struct scene {
	struct hal_partition *p, *other;
	struct hal_buffer *from, *to;
	int fd;
};

static int exportable(struct conf *c, struct hal_partition *p, uint32_t flags,
		      uint64_t bytes, struct hal_buffer **out)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	int made;

	d.bytes = bytes;
	d.flags = HAL_BUFFER_EXPORTABLE | flags;
	made = hal_buffer_create(p, &d, out);
	if (made == -ENOTSUP && (flags & HAL_BUFFER_MAPPABLE))
		return conf_unsupported(c, "what can be exported cannot be mapped");
	OK(made);
	c->buffers[c->buffer_count++] = *out;
	return 0;
}

/* Some devices export memory that they cannot map. */
static int can_map(struct conf *c, struct hal_partition *p)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *b;
	int made;

	d.bytes = BYTES;
	d.flags = HAL_BUFFER_EXPORTABLE | HAL_BUFFER_MAPPABLE;
	made = hal_buffer_create(p, &d, &b);
	if (made == -ENOTSUP)
		return conf_unsupported(c, "memory that is exported cannot be mapped");
	CHECK(made == 0);
	OK(hal_buffer_destroy(b));
	return 0;
}

static int import(struct conf *c, struct hal_partition *p, int fd, uint32_t flags,
		  uint64_t bytes, struct hal_buffer **out)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);

	d.bytes = bytes;
	d.flags = flags;
	OK(hal_buffer_import(p, fd, &d, out));
	c->buffers[c->buffer_count++] = *out;
	return 0;
}

static int has(struct conf *c, uint64_t caps)
{
	return (c->info.caps & caps) == caps
		       ? 0
		       : conf_unsupported(c, "buffers cannot be exported and imported");
}

static int halves(struct conf *c, struct scene *s)
{
	STEP(has(c, HAL_CAP_EXPORT | HAL_CAP_IMPORT));
	if (conf_units(c) < 2) {
		STEP(conf_whole(c, &s->p));
		s->other = s->p;
		return 0;
	}
	STEP(conf_beside(c, 0, 2, &s->p));
	return conf_beside(c, 1, 2, &s->other);
}

static int begin_with(struct conf *c, struct scene *s, uint32_t flags)
{
	int made;

	STEP(halves(c, s));
	if (flags & HAL_BUFFER_MAPPABLE)
		STEP(can_map(c, s->p));
	STEP(exportable(c, s->p, flags, BYTES, &s->from));
	STEP(conf_filled(c, s->from, 0, BYTES, 0));
	OK(hal_buffer_export(s->from, &s->fd));
	CHECK(fcntl(s->fd, F_GETFD) == FD_CLOEXEC);
	made = import(c, s->other, s->fd, flags, BYTES, &s->to);
	if (made)
		(void)close(s->fd);
	return made;
}

static int begin(struct conf *c, struct scene *s)
{
	int made;

	STEP(begin_with(c, s, 0));
	made = close(s->fd);
	CHECK(made == 0);
	return 0;
}

static int fill(struct conf *c, struct hal_queue *q, struct hal_buffer *b,
		uint64_t offset, uint64_t bytes, uint32_t pattern)
{
	const struct hal_cmd cmd = hal_cmd_fill(b, offset, bytes, pattern);
	struct hal_point done;

	STEP(conf_submit(c, q, &cmd, 1, &done));
	return conf_wait(c, done);
}

/* What one side writes, by the host, a fill or a kernel, the other one has. */
static int both_ways(struct conf *c)
{
	uint8_t data[BYTES];
	struct hal_arg args[2];
	struct hal_queue *q, *other;
	struct hal_kernel *k;
	struct hal_point done;
	struct hal_cmd cmd;
	struct scene s;

	STEP(begin(c, &s));
	EQ(hal_buffer_get_bytes(s.to), BYTES);
	STEP(conf_queue(c, s.p, &q));
	STEP(conf_queue(c, s.other, &other));
	STEP(conf_kernel(c, "copy", &k));
	conf_noise(data, BYTES, 5);
	OK(hal_buffer_write(s.from, 0, data, BYTES));
	STEP(conf_same(c, s.to, 0, data, BYTES));
	STEP(fill(c, other, s.to, CONF_COPY_BYTES, 64, 0x01020304));
	STEP(conf_filled(c, s.from, CONF_COPY_BYTES, 64, 0x01020304));
	STEP(fill(c, q, s.from, 0, CONF_COPY_BYTES, 0x55667788));
	args[0] = (struct hal_arg){
		.buffer = s.to, .offset = 2 * CONF_COPY_BYTES, .bytes = CONF_COPY_BYTES};
	args[1] = (struct hal_arg){.buffer = s.to, .bytes = CONF_COPY_BYTES};
	cmd = hal_cmd_launch(k, args, 2);
	STEP(conf_submit(c, other, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	return conf_filled(c, s.from, 2 * CONF_COPY_BYTES, CONF_COPY_BYTES, 0x55667788);
}

/* The memory stays as long as anybody has it, and its bytes with it. */
static int outlives(struct conf *c)
{
	struct hal_partition_info before, after;
	struct hal_buffer *again;
	struct hal_queue *q;
	struct scene s;
	int made;

	before = (struct hal_partition_info)HAL_INIT(hal_partition_info);
	after = before;
	STEP(begin_with(c, &s, 0));
	STEP(conf_queue(c, s.p, &q));
	STEP(fill(c, q, s.from, 0, BYTES, 0x0badcafe));
	STEP(conf_buffer_gone(c, s.from));
	made = conf_filled(c, s.to, 0, BYTES, 0x0badcafe);
	if (!made)
		made = conf_buffer_gone(c, s.to);
	/* Nobody has it but the descriptor. */
	if (!made)
		made = import(c, s.p, s.fd, 0, CONF_COPY_BYTES, &again);
	(void)close(s.fd);
	STEP(made);
	STEP(conf_filled(c, again, 0, CONF_COPY_BYTES, 0x0badcafe));
	OK(hal_partition_get_info(s.p, &before));
	STEP(conf_buffer_gone(c, again));
	OK(hal_partition_get_info(s.p, &after));
	EQ(before.memory_used - after.memory_used, CONF_COPY_BYTES);
	/* New memory shows nothing of it. */
	STEP(conf_buffer(c, s.p, BYTES, &again));
	return conf_filled(c, again, 0, BYTES, 0);
}

/* Both sides' mappings are the same memory as the device's. */
static int mapped(struct conf *c)
{
	struct hal_queue *q;
	struct scene s;
	uint32_t *a, *b;
	void *at;

	STEP(has(c, HAL_CAP_EXPORT | HAL_CAP_IMPORT));
	if (!(c->info.caps & HAL_CAP_MAP))
		return conf_unsupported(c, "buffers cannot be mapped");
	STEP(begin_with(c, &s, HAL_BUFFER_MAPPABLE));
	(void)close(s.fd);
	OK(hal_buffer_map(s.from, &at));
	a = at;
	OK(hal_buffer_map(s.to, &at));
	b = at;
	a[0] = 1234;
	CHECK(b[0] == 1234);
	STEP(conf_queue(c, s.other, &q));
	STEP(fill(c, q, s.to, 8, 8, 77));
	CHECK(a[2] == 77 && a[3] == 77 && b[2] == 77 && a[4] == 0);
	OK(hal_buffer_unmap(s.from));
	OK(hal_buffer_unmap(s.to));
	return 0;
}

/* Another opening of the same target: on a model a device of its own. */
static int other_device(struct conf *c)
{
	struct conf second = {
		.target = c->target, .options = c->options, .pack = c->pack};
	struct hal_partition *p, *there;
	struct hal_buffer *from, *to;
	struct hal_queue *q;
	int fd, made;

	STEP(has(c, HAL_CAP_EXPORT | HAL_CAP_IMPORT));
	if (strncmp(c->target, "hald:", 5) == 0)
		return conf_unsupported(c, "both openings share the units");
	STEP(conf_whole(c, &p));
	STEP(exportable(c, p, 0, BYTES, &from));
	OK(hal_buffer_export(from, &fd));
	made = conf_open(&second);
	if (!made)
		made = conf_whole(&second, &there);
	if (!made)
		made = import(&second, there, fd, 0, BYTES, &to);
	(void)close(fd);
	if (!made)
		made = conf_queue(&second, there, &q);
	if (!made)
		made = fill(&second, q, to, 4, BYTES - 4, 0x1234567);
	if (!made)
		made = conf_filled(c, from, 4, BYTES - 4, 0x1234567);
	if (conf_close(&second) != CONF_PASS || made)
		return conf_fail(c, __FILE__, __LINE__, "%s", second.why);
	return conf_filled(c, from, 0, 4, 0);
}

static int refused_of(struct conf *c, struct hal_partition *p, int fd, int err)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *b;

	d.bytes = BYTES;
	ERR(hal_buffer_import(p, fd, &d, &b), err);
	return 0;
}

/* Descriptors of something else, and more bytes than there are. */
static int refused(struct conf *c)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *b;
	struct scene s;
	int fd[2], made;

	STEP(begin_with(c, &s, 0));
	d.bytes = UINT64_C(1) << 26; /* more than any grain of memory */
	made = hal_buffer_import(s.p, s.fd, &d, &b);
	(void)close(s.fd);
	CHECK(made == -EINVAL || made == -ENOSPC);
	STEP(refused_of(c, s.p, -1, -EBADF));
	STEP(refused_of(c, s.p, s.fd, -EBADF));
	fd[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	CHECK(fd[0] >= 0);
	made = refused_of(c, s.p, fd[0], -EINVAL);
	(void)close(fd[0]);
	STEP(made);
	CHECK(pipe2(fd, O_CLOEXEC) == 0);
	made = refused_of(c, s.p, fd[0], -EINVAL);
	(void)close(fd[0]);
	(void)close(fd[1]);
	STEP(made);
	ERR(hal_buffer_export(s.to, fd), -EINVAL);
	STEP(conf_buffer(c, s.p, 64, &b));
	ERR(hal_buffer_export(b, fd), -EINVAL);
	return 0;
}

/* More than the quota: an import counts as what is allocated does. */
static int quota(struct conf *c)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc want = HAL_INIT(hal_buffer_desc);
	struct hal_partition *p, *small;
	struct hal_buffer *b, *more;
	int fd, made;

	STEP(has(c, HAL_CAP_EXPORT | HAL_CAP_IMPORT));
	if (conf_units(c) < 2)
		return conf_unsupported(c, "one partition");
	STEP(conf_beside(c, 0, 2, &p));
	d.units_floor = 1;
	d.memory_bytes = BYTES + CONF_COPY_BYTES;
	STEP(conf_part(c, &d, &small));
	STEP(exportable(c, p, 0, BYTES, &b));
	OK(hal_buffer_export(b, &fd));
	made = import(c, small, fd, 0, BYTES, &b);
	want.bytes = BYTES;
	if (!made && hal_buffer_import(small, fd, &want, &more) != -ENOSPC)
		made = conf_fail(c, __FILE__, __LINE__, "imported above the quota");
	(void)close(fd);
	return made;
}

const struct conf_case conf_share_cases[] = {
	{"share.both_ways", both_ways},
	{"share.outlives", outlives},
	{"share.mapped", mapped},
	{"share.other_device", other_device},
	{"share.refused", refused},
	{"share.quota", quota},
	{NULL, NULL},
};
