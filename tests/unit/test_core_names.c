/* SPDX-License-Identifier: Apache-2.0 */
/* Names of queues and buffers, in error texts and in traces. */
#include "ref_world.h"

#include <unistd.h>

static struct hal_queue *named_queue(struct world *w, const char *name)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	(void)snprintf(d.name, sizeof(d.name), "%s", name);
	OK(hal_queue_create(w->part, &d, &q));
	return q;
}

static struct hal_buffer *named_buffer(struct hal_partition *p, const char *name)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *b;

	d.bytes = 64;
	(void)snprintf(d.name, sizeof(d.name), "%s", name);
	OK(hal_buffer_create(p, &d, &b));
	return b;
}

static void in_texts_of_queues(void **state)
{
	struct hal_queue *q, *plain;
	struct hal_point p;
	struct world w;

	(void)state;
	world_open(&w, "mock?clock=virtual");
	world_fill(&w);
	q = named_queue(&w, "decode");
	plain = add_queue(w.part, 0);
	OK(submit_cmd(q, numbered(&w, 1), &p));
	FAILS(hal_wait(&p, 1, 0, 0), -ETIMEDOUT,
	      "point 1 of queue 0 \"decode\" of partition 0");
	poll_now(&w);
	FAILS(hal_queue_destroy(q), -EBUSY, "queue 0 \"decode\" of partition 0");
	FAILS(hal_queue_resume(q), -EINVAL, "queue 0 \"decode\" is not suspended");
	w.mock->fault(w.native, -EIO, "bad address");
	FAILS(hal_wait(&p, 1, 0, HAL_FOREVER), -EIO, "queue 0 \"decode\" of partition 0",
	      "bad address");
	OK(submit_cmd(plain, numbered(&w, 1), &p));
	FAILS(hal_wait(&p, 1, 0, 0), -ETIMEDOUT, "point 1 of queue 1 of partition 0");
	poll_now(&w);
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	OK(hal_queue_destroy(q));
	OK(hal_queue_destroy(plain));
	world_close(&w);
}

static void in_texts_of_buffers(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_partition *small;
	struct hal_buffer *b, *other;
	struct hal_arg args[2] = {{0}};
	struct hal_queue *q;
	uint32_t word = 0;
	void *at;
	struct world w;

	(void)state;
	world_open(&w, "mock?clock=virtual");
	world_fill(&w);
	d.units_floor = 1;
	d.memory_bytes = 4096;
	OK(hal_partition_create(w.dev, &d, &small));
	q = add_queue(w.part, 0);
	b = named_buffer(w.part, "weights");
	other = named_buffer(small, "a name of thirty-one characters");
	FAILS(hal_buffer_write(b, 64, &word, 4), -EINVAL,
	      "4 bytes at offset 64 exceed buffer \"weights\"'s 64 bytes");
	FAILS(hal_buffer_read(w.buf, 4096, &word, 4), -EINVAL,
	      "exceed the buffer's 4096 bytes");
	FAILS(hal_buffer_unmap(b), -EINVAL, "buffer \"weights\" is not mapped");
	FAILS(submit_cmd(q, hal_cmd_fill(b, 32, 64, 0), NULL), -EINVAL,
	      "fill: 64 bytes at offset 32 exceed buffer \"weights\"'s 64 bytes");
	FAILS(submit_cmd(q, hal_cmd_fill(other, 0, 4, 0), NULL), -EPERM,
	      "buffer \"a name of thirty-one characters\" belongs to partition 1");
	args[0].buffer = b;
	args[0].offset = 32;
	args[1].buffer = w.buf;
	FAILS(submit_cmd(q, hal_cmd_launch(w.k2, args, 2), NULL), -EINVAL,
	      "has 32 bytes of buffer \"weights\"; the kernel needs at least 64");
	bd.bytes = 8192;
	(void)snprintf(bd.name, sizeof(bd.name), "cache");
	FAILS(hal_buffer_create(small, &bd, &b), -ENOSPC,
	      "no space for buffer \"cache\" of 8192 bytes");
	if (hal_buffer_map(b, &at) == 0)
		OK(hal_buffer_unmap(b));
	OK(hal_buffer_destroy(b));
	OK(hal_buffer_destroy(other));
	OK(hal_queue_destroy(q));
	OK(hal_partition_destroy(small));
	world_close(&w);
}

static void in_a_trace(void **state)
{
	static char file[1u << 16];
	char path[] = "/tmp/hal-names-XXXXXX";
	int fd = mkstemp(path);
	struct hal_queue *before, *during, *plain;
	struct world w;
	ssize_t n;

	(void)state;
	assert_true(fd >= 0);
	world_open(&w, "mock?clock=virtual");
	world_fill(&w);
	before = named_queue(&w, "pre\"fill");
	OK(hal_trace_start(w.dev, path));
	during = named_queue(&w, "decode");
	plain = add_queue(w.part, 0);
	OK(hal_trace_stop(w.dev));
	n = read(fd, file, sizeof(file) - 1);
	assert_true(n > 0 && (size_t)n < sizeof(file) - 1);
	assert_non_null(
		strstr(file, "partition queue 0 \\\"pre\\\"fill\\\" submissions"));
	assert_non_null(strstr(file, "partition queue 1 \\\"decode\\\"\""));
	assert_non_null(strstr(file, "partition queue 2\""));
	OK(hal_queue_destroy(before));
	OK(hal_queue_destroy(during));
	OK(hal_queue_destroy(plain));
	world_close(&w);
	(void)close(fd);
	(void)unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_texts_of_queues),
		cmocka_unit_test(in_texts_of_buffers),
		cmocka_unit_test(in_a_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
