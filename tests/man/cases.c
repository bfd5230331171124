/* SPDX-License-Identifier: Apache-2.0 */
/* What the manual pages promise beyond the headers' comments, in the form of
 * ../negative/negative.h: memory that is gone, host callbacks, what failed before. */
#define _GNU_SOURCE
#include "negative.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hal/ext/options.h>
#include <hal/ext/replay.h>
#include <hal/npu.h>

#include "../unit/mock.h"
#include "nomem.h"

/* The answer of a call that gets no memory. */
#define WITHOUT_MEMORY(call)                                                             \
	__extension__({                                                                  \
		int rc_;                                                                 \
                                                                                         \
		nomem(true);                                                             \
		rc_ = (call);                                                            \
		nomem(false);                                                            \
		rc_;                                                                     \
	})
#define NO_MEMORY "memory|allocate"

/* ---- no memory -------------------------------------------------------------------- */

NEGATIVE(hal_scan_create, ENOMEM, at_all, NO_MEMORY)
{
	struct hal_scan *scan;

	(void)w;
	return WITHOUT_MEMORY(hal_scan_create(NULL, HAL_SCAN_DEVICES, &scan));
}

NEGATIVE(hal_scan_create, ENOMEM, options, NO_MEMORY)
{
	struct hal_scan *scan;

	(void)w;
	return WITHOUT_MEMORY(hal_scan_create(NULL, HAL_SCAN_OPTIONS, &scan));
}

static void log_nothing(void *user, int level, const char *text)
{
	(void)user, (void)level, (void)text;
}

NEGATIVE(hal_log_set, ENOMEM, at_all, NO_MEMORY)
{
	(void)w;
	return WITHOUT_MEMORY(hal_log_set(log_nothing, NULL, HAL_LOG_ERROR));
}

NEGATIVE(hal_open, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(hal_open("ref", NULL, &w->dev2));
}

NEGATIVE(hal_trace_start, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(hal_trace_start(w->dev, "/dev/null"));
}

NEGATIVE(hal_replay, ENOMEM, at_all, NO_MEMORY)
{
	struct hal_replay_info i = HAL_INIT(hal_replay_info);

	(void)w;
	return WITHOUT_MEMORY(hal_replay("/dev/null", &i));
}

NEGATIVE(hal_partition_create_named, ENOMEM, at_all, NO_MEMORY)
{
	const char *options[] = {"partition \"a\".units=1", NULL};

	NEG_OK(hal_open("ref", options, &w->dev2));
	return WITHOUT_MEMORY(hal_partition_create_named(w->dev2, "a", &w->part2));
}

NEGATIVE(hal_device_set_policy, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(hal_device_set_policy(w->dev, "rr", NULL));
}

NEGATIVE(hal_sequence_create, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(hal_sequence_create(w->part, &w->submit, &w->seq));
}

NEGATIVE(hal_sequence_set_args, ENOMEM, at_all, NO_MEMORY)
{
	w->cmd[0] = hal_cmd_launch(w->kernel, w->args, 2);
	NEG_OK(hal_sequence_create(w->part, &w->submit, &w->seq));
	return WITHOUT_MEMORY(hal_sequence_set_args(w->seq, 0, w->args, 2));
}

NEGATIVE(hal_completions_create, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(hal_completions_create(w->dev, 65536, &w->ring));
}

/* One that was refused has left a point behind; the next has a timeline of its own. */
NEGATIVE(hal_partition_resize, ENOMEM, after_a_refusal, NO_MEMORY)
{
	const char *options[] = {"hal.plugins=" MAN_MOCK, NULL};
	const struct mock_control *mock;
	struct hal_point refused;

	NEG_OK(hal_open("mock", options, &w->dev2));
	mock = hal_device_get_extension(w->dev2, "mock");
	NEG_OK(mock == NULL);
	NEG_OK(hal_partition_create(w->dev2, &w->part_desc, &w->part2));
	w->part_desc.units_floor = 2;
	NEG_OK(hal_partition_resize(w->part2, &w->part_desc, &refused));
	mock->fail_move(hal_device_get_native(w->dev2), -EIO, "broken");
	NEG_OK(neg_wait(refused) != -EIO);
	return WITHOUT_MEMORY(hal_partition_resize(w->part2, &w->part_desc, NULL));
}

NEGATIVE(hal_partitions_move, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(hal_partitions_move(&w->part, &w->part_desc, 1, NULL));
}

static void *host_at;

NEGATIVE(hal_buffer_create_weighted, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(
		hal_buffer_create_weighted(w->part, &w->buffer_desc, NULL, &w->buf2));
}

NEGATIVE(hal_buffer_import, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(hal_buffer_import(w->part, 0, &w->buffer_desc, &w->buf2));
}

NEGATIVE(hal_host_alloc, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(hal_host_alloc(w->part, 64, &w->buf2, &host_at));
}

NEGATIVE(hal_host_register, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(hal_host_register(w->part, &host_at, 8, &w->buf2));
}

static int mock_part(struct neg *w)
{
	const char *options[] = {"hal.plugins=" MAN_MOCK, NULL};

	NEG_OK(hal_open("mock", options, &w->dev2));
	return hal_partition_create(w->dev2, &w->part_desc, &w->part2);
}

NEGATIVE(hal_host_alloc, ENOTSUP, device_cannot, "allocated host memory")
{
	NEG_OK(mock_part(w));
	return hal_host_alloc(w->part2, 64, &w->buf2, &host_at);
}

NEGATIVE(hal_buffer_create, ENOTSUP, exportable, "cannot export buffers")
{
	NEG_OK(mock_part(w));
	w->buffer_desc.flags = HAL_BUFFER_EXPORTABLE;
	return hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2);
}

NEGATIVE(hal_buffer_import, ENOTSUP, device_cannot, "cannot import buffers")
{
	NEG_OK(mock_part(w));
	return hal_buffer_import(w->part2, 0, &w->buffer_desc, &w->buf2);
}

NEGATIVE(hal_host_register, ENOTSUP, device_cannot, "registered host memory")
{
	NEG_OK(mock_part(w));
	return hal_host_register(w->part2, &host_at, 8, &w->buf2);
}

NEGATIVE(hal_timeline_create, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(hal_timeline_create(w->dev, &w->line2));
}

NEGATIVE(hal_timeline_export, ENOMEM, at_all, NO_MEMORY)
{
	static int fd;

	return WITHOUT_MEMORY(hal_timeline_export(w->line, HAL_TIMELINE_WAIT, &fd));
}

NEGATIVE(hal_timeline_import, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(hal_timeline_import(w->dev, 0, &w->line2));
}

NEGATIVE(hal_point_open_fd, ENOMEM, at_all, NO_MEMORY)
{
	struct hal_point p = {w->line, 1};

	NEG_OK(hal_device_poll(w->dev, 0) < 0);
	return WITHOUT_MEMORY(hal_point_open_fd(&p));
}

NEGATIVE(hal_wait, ENOMEM, many_points, NO_MEMORY)
{
	NEG_OK(hal_open("ref?clock=real", NULL, &w->dev2));
	NEG_OK(hal_timeline_create(w->dev2, &w->line2));
	for (int i = 0; i < HAL_COMMANDS_MAX; i++)
		w->points[i] = (struct hal_point){w->line2, 1};
	/* A time long past: if it did wait, this would not hang. */
	return WITHOUT_MEMORY(hal_wait(w->points, HAL_COMMANDS_MAX, 0, 1));
}

/* Larger than half of the ring: it lies outside. */
NEGATIVE(hal_submit, ENOMEM, large, NO_MEMORY)
{
	const char *options[] = {"hal.queue_depth=8", NULL};

	NEG_OK(hal_open("ref", options, &w->dev2));
	NEG_OK(hal_partition_create(w->dev2, &w->part_desc, &w->part2));
	NEG_OK(hal_queue_create(w->part2, &w->queue_desc, &w->queue2));
	for (int i = 0; i < HAL_COMMANDS_MAX; i++)
		w->cmd[i] = hal_cmd_barrier();
	w->submit.cmd_count = HAL_COMMANDS_MAX;
	return WITHOUT_MEMORY(hal_submit(w->queue2, &w->submit, NULL));
}

/* ---- from inside a host callback -------------------------------------------------- */

struct inside {
	struct neg *w;
	int (*call)(struct neg *w);
	int err;
};

static void go_inside(void *user)
{
	struct inside *in = user;

	in->err = in->call(in->w);
}

static int inside(struct neg *w, int (*call)(struct neg *w))
{
	struct inside in = {w, call, 0};
	struct hal_point done;

	w->cmd[0] = hal_cmd_host(go_inside, &in);
	NEG_OK(hal_submit(w->queue, &w->submit, &done));
	NEG_OK(neg_wait(done));
	return in.err;
}

#define INSIDE(function_, call_)                                                         \
	static int inside_##function_(struct neg *w)                                     \
	{                                                                                \
		return call_;                                                            \
	}                                                                                \
	NEGATIVE(function_, EDEADLK, in_a_callback, "callback")                          \
	{                                                                                \
		return inside(w, inside_##function_);                                    \
	}

INSIDE(hal_close, hal_close(w->dev))
INSIDE(hal_device_poll, hal_device_poll(w->dev, 1))

static int inside_destroy(struct neg *w)
{
	return hal_queue_destroy(w->queue);
}

/* The callback is a command of it. */
NEGATIVE(hal_queue_destroy, EBUSY, in_a_callback, "of its 1 submissions")
{
	return inside(w, inside_destroy);
}

/* Whatever does not wait for the callback itself is done: the last call tells. */
static int inside_all(struct neg *w)
{
	struct hal_point p = {w->line, 1};
	struct hal_queue *q;

	NEG_OK(hal_open("ref", NULL, &w->dev2));
	NEG_OK(hal_device_poll(w->dev2, 1) < 0);
	NEG_OK(hal_close(w->dev2));
	w->dev2 = NULL;
	NEG_OK(hal_queue_create(w->part, &w->queue_desc, &q));
	NEG_OK(hal_submit(q, &w->submit, NULL));
	NEG_OK(hal_queue_destroy(q) != -EBUSY);
	NEG_OK(hal_queue_suspend(q, HAL_SUSPEND_DRAIN, NULL));
	w->queue2 = q;
	NEG_OK(hal_partition_create(w->dev, &w->part_desc, &w->part2));
	NEG_OK(hal_partition_destroy(w->part2));
	w->part2 = NULL;
	NEG_OK(hal_buffer_destroy(w->buf));
	w->buf = NULL;
	NEG_OK(hal_wait(&p, 1, 0, 0) != -ETIMEDOUT);
	NEG_OK(hal_timeline_signal(w->line, 1));
	NEG_OK(hal_wait(&p, 1, 0, HAL_FOREVER));
	NEG_OK(hal_timeline_destroy(w->line));
	w->line = NULL;
	return hal_timeline_signal(p.timeline, 2);
}

NEGATIVE(hal_timeline_signal, EINVAL, destroyed_in_a_callback, "destroyed")
{
	return inside(w, inside_all);
}

/* ---- what failed before ----------------------------------------------------------- */

/* .line fails with the error of a command, .line2 because its signal was dropped. */
static int fail_lines(struct neg *w)
{
	struct hal_point signals[2] = {{w->line, 1}, {NULL, 1}};
	struct hal_cmd nop = hal_cmd_barrier();

	NEG_OK(hal_timeline_create(w->dev, &w->line2));
	signals[1].timeline = w->line2;
	w->cmd[0] = hal_cmd_launch(w->bad, w->args, 1);
	w->submit.signals = &signals[0];
	w->submit.signal_count = 1;
	NEG_OK(hal_submit(w->queue, &w->submit, NULL));
	w->submit.cmds = &nop;
	w->submit.signals = &signals[1];
	NEG_OK(hal_submit(w->queue, &w->submit, NULL));
	NEG_OK(neg_wait(signals[0]) != -EIO);
	NEG_OK(neg_wait(signals[1]) != -ECANCELED);
	return 0;
}

NEGATIVE(hal_timeline_signal, EIO, of_failed_work, "kernel bad")
{
	NEG_OK(fail_lines(w));
	return hal_timeline_signal(w->line, 2);
}

NEGATIVE(hal_timeline_signal, ECANCELED, of_dropped_work, "dropped")
{
	NEG_OK(fail_lines(w));
	return hal_timeline_signal(w->line2, 2);
}

NEGATIVE(hal_timeline_get_value, EIO, of_failed_work, "kernel bad")
{
	int err = 0;

	NEG_OK(fail_lines(w));
	NEG_OK(hal_timeline_get_value(w->line, &err) != 0);
	return err;
}

NEGATIVE(hal_timeline_get_value, ECANCELED, of_dropped_work, "dropped")
{
	int err = 0;

	NEG_OK(fail_lines(w));
	NEG_OK(hal_timeline_get_value(w->line2, &err) != 0);
	return err;
}

/* A queue that waits for a point that has failed. */
static int wait_for_failed(struct neg *w)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point p = {w->line, 1}, done;

	NEG_OK(fail_lines(w));
	NEG_OK(hal_queue_create(w->part, &w->queue_desc, &w->queue2));
	d.waits = &p;
	d.wait_count = 1;
	NEG_OK(hal_submit(w->queue2, &d, &done));
	return neg_wait(done);
}

NEGATIVE(hal_wait, ECANCELED, waits_for_failed, "waits for a point that failed")
{
	return wait_for_failed(w);
}

NEGATIVE(hal_submit, ECANCELED, sticks, "waits for a point that failed")
{
	NEG_OK(wait_for_failed(w) != -ECANCELED);
	return hal_submit(w->queue2, &w->submit, NULL);
}

NEGATIVE(hal_sequence_submit, ECANCELED, sticks, "waits for a point that failed")
{
	w->cmd[1] = hal_cmd_barrier();
	w->submit.cmds = &w->cmd[1];
	NEG_OK(hal_sequence_create(w->part, &w->submit, &w->seq));
	w->submit.cmds = w->cmd;
	NEG_OK(wait_for_failed(w) != -ECANCELED);
	return hal_sequence_submit(w->queue2, w->seq, NULL, NULL);
}

/* ---- limits and configuration ----------------------------------------------------- */

NEGATIVE(hal_point_open_fd, EMFILE, no_fd, "files")
{
	struct hal_point p = {w->line, 1};
	struct rlimit old, none;
	int err;

	NEG_OK(hal_device_poll(w->dev, 0) < 0);
	NEG_OK(getrlimit(RLIMIT_NOFILE, &old));
	none = old;
	none.rlim_cur = 0;
	NEG_OK(setrlimit(RLIMIT_NOFILE, &none));
	err = hal_point_open_fd(&p);
	NEG_OK(setrlimit(RLIMIT_NOFILE, &old));
	return err;
}

/* Here, since valgrind does not lower the limit for descriptors that come by a socket. */
NEGATIVE(hal_timeline_import, EMFILE, no_fd, "open files")
{
	struct rlimit old, none;
	int fd, err;

	NEG_OK(hal_timeline_export(w->line, HAL_TIMELINE_WAIT, &fd));
	NEG_OK(getrlimit(RLIMIT_NOFILE, &old));
	none = old;
	none.rlim_cur = 0;
	NEG_OK(setrlimit(RLIMIT_NOFILE, &none));
	err = hal_timeline_import(w->dev, fd, &w->line2);
	NEG_OK(setrlimit(RLIMIT_NOFILE, &old));
	NEG_OK(close(fd));
	return err;
}

/* At 0 of a process's memory nothing is. */
static const char *const unreadable[] = {"hal.config=/proc/self/mem", NULL};
static const char *const a_folder[] = {"hal.config=/", NULL};

NEGATIVE(hal_scan_create, EIO, file_unreadable, "/proc/self/mem: cannot read it: Input")
{
	struct hal_scan *scan;

	(void)w;
	return hal_scan_create(unreadable, HAL_SCAN_OPTIONS, &scan);
}

NEGATIVE(hal_scan_create, EISDIR, file_is_a_folder, "configuration /: is a folder")
{
	struct hal_scan *scan;

	(void)w;
	return hal_scan_create(a_folder, HAL_SCAN_OPTIONS, &scan);
}

NEGATIVE(hal_open, EIO, file_unreadable, "/proc/self/mem: cannot read it: Input")
{
	return hal_open("ref", unreadable, &w->dev2);
}

NEGATIVE(hal_open, EISDIR, file_is_a_folder, "configuration /: is a folder")
{
	return hal_open("ref", a_folder, &w->dev2);
}

NEGATIVE(hal_partition_create_named, ENOTSUP, isolation, "isolation enforced")
{
	const char *options[] = {"partition \"a\".units=1",
				 "partition \"a\".isolation=enforced", NULL};

	NEG_OK(hal_open("ref?isolation=advisory", options, &w->dev2));
	return hal_partition_create_named(w->dev2, "a", &w->part2);
}

/* A plugin that cannot be loaded, named by the environment. */
static int with_plugin(int (*call)(struct neg *w), struct neg *w)
{
	int err;

	NEG_OK(setenv("HAL_HAL_PLUGINS", MAN_PLUGINS "/../negative/neg_plugin_abi.so",
		      1));
	err = call(w);
	NEG_OK(unsetenv("HAL_HAL_PLUGINS"));
	return err;
}

static int create_scan(struct neg *w)
{
	struct hal_scan *scan;

	(void)w;
	return hal_scan_create(NULL, HAL_SCAN_OPTIONS, &scan);
}

NEGATIVE(hal_scan_create, EPROTO, plugin_of_other_abi, "ABI 43")
{
	return with_plugin(create_scan, w);
}

NEGATIVE(hal_open, ENOTSUP, no_virtual_clock, "virtual clock")
{
	const char *options[] = {"hal.plugins=" MAN_PLUGINS "/man_odd.so", NULL};

	return hal_open("man_odd?clock=virtual", options, &w->dev2);
}

NEGATIVE(hal_program_load, EPROTO, too_many_arguments, "17 arguments")
{
	const char *options[] = {"hal.plugins=" MAN_PLUGINS "/man_odd.so", NULL};

	NEG_OK(hal_open("man_odd", options, &w->dev2));
	return hal_program_load(w->dev2, "x", 1, &w->prog2);
}

NEGATIVE(hal_sequence_create, ENOTSUP, no_timestamps, "timestamps")
{
	const char *options[] = {"hal.plugins=" MAN_PLUGINS "/man_odd.so", NULL};

	NEG_OK(hal_open("man_odd", options, &w->dev2));
	NEG_OK(hal_partition_create(w->dev2, &w->part_desc, &w->part2));
	w->cmd[0] = hal_cmd_timestamp(w->buf, 0);
	return hal_sequence_create(w->part2, &w->submit, &w->seq);
}

/* ---- programs for the NPU --------------------------------------------------------- */

#ifdef HAVE_NPU
struct npu {
	struct hal_npu_builder *b;
	struct hal_npu_place a, d;
	uint32_t id;
	void *image;
	size_t size;
};

static int npu_run(int (*fn)(struct npu *n))
{
	struct npu n = {NULL, {0, 0}, {0, 0}, 0, NULL, 0};
	int err;

	NEG_OK(hal_npu_builder_create(&n.b));
	NEG_OK(hal_npu_kernel(n.b, "first"));
	NEG_OK(hal_npu_arg(n.b, 4096, &n.a.id));
	NEG_OK(hal_npu_arg(n.b, 4096, &n.d.id));
	err = fn(&n);
	hal_npu_image_free(n.image);
	NEG_OK(hal_npu_builder_destroy(n.b));
	return err;
}

#define NPU(function_, error_, what_, text_)                                             \
	static int npu_##function_##_##error_(struct npu *n);                            \
	NEG_DEFINE(function_##_##error_##_##what_, NULL, #function_, error_, #error_,    \
		   #what_, text_)                                                        \
	{                                                                                \
		(void)w;                                                                 \
		return npu_run(npu_##function_##_##error_);                              \
	}                                                                                \
	static int npu_##function_##_##error_(struct npu *n)

static int do_gemm(struct npu *n)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);

	op.m = op.n = op.k = 8;
	op.a = op.b = n->a;
	op.d = n->d;
	return hal_npu_gemm(n->b, &op);
}

static int do_conv(struct npu *n)
{
	static const int8_t weights[1];
	struct hal_npu_conv op = HAL_INIT(hal_npu_conv);

	op.h = op.w = op.oh = op.ow = 8;
	op.c = op.n = op.kh = op.kw = op.groups = 1;
	op.stride_h = op.stride_w = op.dilation_h = op.dilation_w = 1;
	op.weights = weights;
	op.a = n->a;
	op.d = n->d;
	return hal_npu_conv(n->b, &op);
}

static int do_add(struct npu *n)
{
	struct hal_npu_add op = HAL_INIT(hal_npu_add);

	op.bytes = 64;
	op.a = op.b = n->a;
	op.d = n->d;
	return hal_npu_add(n->b, &op);
}

static int do_relu(struct npu *n)
{
	struct hal_npu_relu op = HAL_INIT(hal_npu_relu);

	op.bytes = 64;
	op.a = n->a;
	op.d = n->d;
	return hal_npu_relu(n->b, &op);
}

static int do_mul(struct npu *n)
{
	struct hal_npu_mul op = HAL_INIT(hal_npu_mul);

	op.bytes = 64;
	op.a = op.b = n->a;
	op.d = n->d;
	return hal_npu_mul(n->b, &op);
}

static int do_lut(struct npu *n)
{
	static const uint8_t table[256];
	struct hal_npu_lut op = HAL_INIT(hal_npu_lut);

	op.bytes = 64;
	op.a = n->a;
	op.d = n->d;
	op.table = table;
	return hal_npu_lut(n->b, &op);
}

static int do_softmax(struct npu *n)
{
	static const int32_t exp[256];
	struct hal_npu_softmax op = HAL_INIT(hal_npu_softmax);

	op.rows = 4;
	op.cols = 16;
	op.a = n->a;
	op.d = n->d;
	op.exp = exp;
	return hal_npu_softmax(n->b, &op);
}

static struct hal_npu_pool pool(const struct npu *n)
{
	struct hal_npu_pool op = HAL_INIT(hal_npu_pool);

	op.h = op.w = op.oh = op.ow = 8;
	op.c = op.kh = op.kw = op.stride_h = op.stride_w = 1;
	op.a = n->a;
	op.d = n->d;
	return op;
}

static int do_maxpool(struct npu *n)
{
	struct hal_npu_pool op = pool(n);

	return hal_npu_maxpool(n->b, &op);
}

static int do_avgpool(struct npu *n)
{
	struct hal_npu_pool op = pool(n);

	return hal_npu_avgpool(n->b, &op);
}

static int do_copy(struct npu *n)
{
	struct hal_npu_copy op = HAL_INIT(hal_npu_copy);

	op.rows = 1;
	op.bytes = 64;
	op.a = n->a;
	op.d = n->d;
	return hal_npu_copy(n->b, &op);
}

static int do_fill(struct npu *n)
{
	return hal_npu_fill(n->b, n->d, 64, 0);
}

NPU(hal_npu_gemm, ENOMEM, first_operation, NO_MEMORY)
{
	return WITHOUT_MEMORY(do_gemm(n));
}

NPU(hal_npu_conv, ENOMEM, first_operation, NO_MEMORY)
{
	return WITHOUT_MEMORY(do_conv(n));
}

NPU(hal_npu_add, ENOMEM, first_operation, NO_MEMORY)
{
	return WITHOUT_MEMORY(do_add(n));
}

NPU(hal_npu_relu, ENOMEM, first_operation, NO_MEMORY)
{
	return WITHOUT_MEMORY(do_relu(n));
}

NPU(hal_npu_maxpool, ENOMEM, first_operation, NO_MEMORY)
{
	return WITHOUT_MEMORY(do_maxpool(n));
}

NPU(hal_npu_mul, ENOMEM, first_operation, NO_MEMORY)
{
	return WITHOUT_MEMORY(do_mul(n));
}

NPU(hal_npu_lut, ENOMEM, first_operation, NO_MEMORY)
{
	return WITHOUT_MEMORY(do_lut(n));
}

NPU(hal_npu_softmax, ENOMEM, first_operation, NO_MEMORY)
{
	return WITHOUT_MEMORY(do_softmax(n));
}

NPU(hal_npu_avgpool, ENOMEM, first_operation, NO_MEMORY)
{
	return WITHOUT_MEMORY(do_avgpool(n));
}

NPU(hal_npu_copy, ENOMEM, first_operation, NO_MEMORY)
{
	return WITHOUT_MEMORY(do_copy(n));
}

NPU(hal_npu_fill, ENOMEM, first_operation, NO_MEMORY)
{
	return WITHOUT_MEMORY(do_fill(n));
}

/* The longest kernel there can be, and one more. */
static int fill_kernel(struct npu *n, int (*fn)(struct npu *n))
{
	for (uint32_t i = 0; i < 1u << 20; i++)
		NEG_OK(do_fill(n));
	return fn(n);
}

NPU(hal_npu_add, ENOTSUP, full_kernel, "descriptors")
{
	return fill_kernel(n, do_add);
}

NPU(hal_npu_relu, ENOTSUP, full_kernel, "descriptors")
{
	return fill_kernel(n, do_relu);
}

NPU(hal_npu_copy, ENOTSUP, full_kernel, "descriptors")
{
	return fill_kernel(n, do_copy);
}

NPU(hal_npu_fill, ENOTSUP, full_kernel, "descriptors")
{
	return fill_kernel(n, do_fill);
}

NPU(hal_npu_builder_create, ENOMEM, at_all, NO_MEMORY)
{
	struct hal_npu_builder *b;

	(void)n;
	return WITHOUT_MEMORY(hal_npu_builder_create(&b));
}

NPU(hal_npu_kernel, ENOTSUP, too_many, "4096")
{
	char name[32];

	for (int i = 1; i < 4096; i++) {
		snprintf(name, sizeof(name), "kernel %d", i);
		NEG_OK(hal_npu_kernel(n->b, name));
	}
	return hal_npu_kernel(n->b, "last");
}

NPU(hal_npu_const, ENOTSUP, too_large, "2^31")
{
	return hal_npu_const(n->b, n, (UINT64_C(1) << 31) + 1, &n->id);
}

NPU(hal_npu_const, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(hal_npu_const(n->b, n, 1, &n->id));
}

NPU(hal_npu_scratch, ENOTSUP, too_large, "2^31")
{
	NEG_OK(hal_npu_scratch(n->b, UINT64_C(1) << 31, &n->id));
	return hal_npu_scratch(n->b, 1, &n->id);
}

NPU(hal_npu_build, ENOMEM, at_all, NO_MEMORY)
{
	return WITHOUT_MEMORY(hal_npu_build(n->b, &n->image, &n->size));
}

/* A builder that has nothing in it yet, and fails to get its first memory. */
static int npu_fresh(int (*fn)(struct hal_npu_builder *b))
{
	struct hal_npu_builder *b;
	int err;

	NEG_OK(hal_npu_builder_create(&b));
	err = fn(b);
	NEG_OK(hal_npu_builder_destroy(b));
	return err;
}

static int fresh_kernel(struct hal_npu_builder *b)
{
	return WITHOUT_MEMORY(hal_npu_kernel(b, "k"));
}

static int fresh_arg(struct hal_npu_builder *b)
{
	uint32_t id;

	NEG_OK(hal_npu_kernel(b, "k"));
	return WITHOUT_MEMORY(hal_npu_arg(b, 1, &id));
}

static int fresh_scratch(struct hal_npu_builder *b)
{
	uint32_t id;

	return WITHOUT_MEMORY(hal_npu_scratch(b, 1, &id));
}

NEGATIVE(hal_npu_kernel, ENOMEM, at_all, NO_MEMORY)
{
	(void)w;
	return npu_fresh(fresh_kernel);
}

NEGATIVE(hal_npu_arg, ENOMEM, at_all, NO_MEMORY)
{
	(void)w;
	return npu_fresh(fresh_arg);
}

NEGATIVE(hal_npu_scratch, ENOMEM, at_all, NO_MEMORY)
{
	(void)w;
	return npu_fresh(fresh_scratch);
}

#ifdef HAVE_MODELS
/* A launch in dev2 of a program whose constants do not fit the quota of part2. */
static int constants(struct neg *w)
{
	static const uint8_t data[65536];
	struct hal_npu_copy copy = HAL_INIT(hal_npu_copy);
	struct hal_npu_builder *b;
	struct hal_kernel *kernel;
	size_t size;
	void *image;

	NEG_OK(hal_npu_builder_create(&b));
	NEG_OK(hal_npu_const(b, data, sizeof(data), &copy.a.id));
	NEG_OK(hal_npu_kernel(b, "k"));
	NEG_OK(hal_npu_arg(b, 64, &copy.d.id));
	copy.rows = 1;
	copy.bytes = 64;
	NEG_OK(hal_npu_copy(b, &copy));
	NEG_OK(hal_npu_build(b, &image, &size));
	NEG_OK(hal_npu_builder_destroy(b));
	NEG_OK(hal_open("npu:0", NULL, &w->dev2));
	w->part_desc.memory_bytes = 16384;
	NEG_OK(hal_partition_create(w->dev2, &w->part_desc, &w->part2));
	NEG_OK(hal_queue_create(w->part2, &w->queue_desc, &w->queue2));
	NEG_OK(hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2));
	NEG_OK(hal_program_load(w->dev2, image, size, &w->prog2));
	hal_npu_image_free(image);
	NEG_OK(hal_kernel_find(w->prog2, "k", &kernel));
	w->args[0] = (struct hal_arg){w->buf2, 0, 64};
	w->cmd[0] = hal_cmd_launch(kernel, w->args, 1);
	return 0;
}

NEGATIVE(hal_submit, ENOSPC, constants_of_a_program, "left|quota")
{
	NEG_OK(constants(w));
	return hal_submit(w->queue2, &w->submit, NULL);
}

NEGATIVE(hal_sequence_create, ENOSPC, constants_of_a_program, "left|quota")
{
	NEG_OK(constants(w));
	return hal_sequence_create(w->part2, &w->submit, &w->seq);
}
#endif
#endif

/* ---- last: they stay loaded ------------------------------------------------------- */

static int copy_file(const char *from, const char *to)
{
	static char data[1 << 20];
	FILE *f = fopen(from, "rb");
	size_t size;

	NEG_OK(f == NULL);
	size = fread(data, 1, sizeof(data), f);
	NEG_OK(fclose(f));
	NEG_OK(size == 0 || size == sizeof(data));
	f = fopen(to, "wb");
	NEG_OK(f == NULL);
	NEG_OK(fwrite(data, 1, size, f) != size);
	return fclose(f);
}

NEGATIVE(hal_open, ENOSPC, too_many_backends, "more than 64")
{
	static char plugins[64 * 256] = "hal.plugins=";
	const char *options[] = {plugins, NULL};
	char dir[128], path[192];
	int err;

	snprintf(dir, sizeof(dir), "%s/hal-man-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	NEG_OK(mkdtemp(dir) == NULL);
	for (int i = 0; i < 64; i++) {
		snprintf(path, sizeof(path), "%s/many%d.so", dir, i);
		NEG_OK(copy_file(MAN_PLUGINS "/man_odd.so", path));
		strncat(plugins, path, sizeof(plugins) - strlen(plugins) - 1);
		strncat(plugins, ":", sizeof(plugins) - strlen(plugins) - 1);
	}
	err = hal_open("ref", options, &w->dev2);
	for (int i = 0; i < 64; i++) {
		snprintf(path, sizeof(path), "%s/many%d.so", dir, i);
		NEG_OK(unlink(path));
	}
	NEG_OK(rmdir(dir));
	return err;
}
