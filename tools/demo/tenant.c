/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's tenants: what they compute, and running them side by side. */
#include "tenant.h"
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IN_FLIGHT   4u  /* jobs a queue holds: the device never waits for this program */
#define LINE        64u /* bytes */
#define GEMM_M      48u
#define GEMM_N      40u
#define GEMM_K      64u
#define GEMM_COUNT  8u
#define TENANTS_MAX 8u

/* ---- what is computed ------------------------------------------------------------ */

static int work_alloc(struct work *w)
{
	w->in_room = w->in_bytes;
	w->out_room = w->out_bytes;
	w->inputs = calloc(w->count, w->in_bytes);
	w->expected = calloc(w->count, w->out_bytes);
	return w->inputs && w->expected ? 0 : tool_fail("%s: out of memory", w->title);
}

void work_free(struct work *w)
{
	hal_npu_image_free(w->image);
	free(w->inputs);
	free(w->expected);
	free(w->labels);
	*w = (struct work){0};
}

int work_digits(struct work *w, const char *data, const char *network,
		const struct digits_images *images, uint32_t count)
{
	char path[4096], why[DIGITS_WHY];
	struct digits_net *net = NULL;
	int rc = TOOL_FAILED;

	*w = (struct work){.kernel = "run",
			   .count = count,
			   .in_bytes = DIGITS_PIXELS,
			   .out_bytes = DIGITS_CLASSES};
	snprintf(w->title, sizeof(w->title), "digits %s", network);
	snprintf(path, sizeof(path), "%s/%s.net", data, network);
	if (digits_net_load(path, &net, why))
		return tool_fail("%s", why);
	w->labels = calloc(count, 1);
	if (!w->labels || work_alloc(w))
		goto out;
	w->macs = net->macs;
	for (uint32_t i = 0; i < count; i++) {
		int8_t *input = w->inputs + (size_t)i * DIGITS_PIXELS;

		digits_quantize(images->image[i].pixels, input);
		digits_infer(net, input, w->expected + (size_t)i * DIGITS_CLASSES);
		w->labels[i] = images->image[i].label;
	}
	if (digits_build(net, &w->image, &w->image_size, why)) {
		(void)tool_fail("%s", why);
		goto out;
	}
	rc = 0;
out:
	digits_net_free(net);
	return rc;
}

static int gemm_build(struct work *w, const int8_t *b)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	struct hal_npu_builder *builder = NULL;
	int err = hal_npu_builder_create(&builder);

	op.m = GEMM_M;
	op.n = GEMM_N;
	op.k = GEMM_K;
	op.a_zero = 5;
	if (!err)
		err = hal_npu_kernel(builder, "infer");
	if (!err)
		err = hal_npu_arg(builder, w->out_bytes, &op.d.id);
	if (!err)
		err = hal_npu_arg(builder, w->in_bytes, &op.a.id);
	if (!err)
		err = hal_npu_const(builder, b, (uint64_t)GEMM_K * GEMM_N, &op.b.id);
	if (!err)
		err = hal_npu_gemm(builder, &op);
	if (!err)
		err = hal_npu_build(builder, &w->image, &w->image_size);
	if (err)
		tool_fail("%s: %s", w->title, hal_last_error());
	hal_npu_builder_destroy(builder);
	return err ? TOOL_FAILED : 0;
}

static void gemm_reference(const int8_t *a, const int8_t *b, int8_t *out)
{
	for (uint32_t m = 0; m < GEMM_M; m++) {
		for (uint32_t n = 0; n < GEMM_N; n++) {
			int32_t sum = 0;

			for (uint32_t k = 0; k < GEMM_K; k++)
				sum += (a[m * GEMM_K + k] - 5) * b[k * GEMM_N + n];
			memcpy(out + (m * GEMM_N + n) * sizeof(sum), &sum, sizeof(sum));
		}
	}
}

int work_gemm(struct work *w)
{
	uint32_t seed = 1;
	int8_t b[GEMM_K * GEMM_N];

	*w = (struct work){.kernel = "infer",
			   .count = GEMM_COUNT,
			   .in_bytes = GEMM_M * GEMM_K,
			   .out_bytes = GEMM_M * GEMM_N * (uint32_t)sizeof(int32_t),
			   .macs = (uint64_t)GEMM_M * GEMM_N * GEMM_K};
	snprintf(w->title, sizeof(w->title), "gemm %ux%ux%u", GEMM_M, GEMM_K, GEMM_N);
	if (work_alloc(w))
		return TOOL_FAILED;
	for (size_t i = 0; i < sizeof(b); i++) {
		seed = seed * 1664525 + 1013904223;
		b[i] = (int8_t)(seed >> 24);
	}
	for (size_t i = 0; i < (size_t)w->count * w->in_bytes; i++) {
		seed = seed * 1664525 + 1013904223;
		w->inputs[i] = (int8_t)(seed >> 24);
	}
	for (uint32_t i = 0; i < w->count; i++)
		gemm_reference(w->inputs + (size_t)i * w->in_bytes, b,
			       w->expected + (size_t)i * w->out_bytes);
	return gemm_build(w, b);
}

/* ---- the tenant's place on the device -------------------------------------------- */

/* Each job's input and output begin on a line of their own. */
static uint64_t lines(uint32_t bytes)
{
	return ((uint64_t)bytes + LINE - 1) / LINE * LINE;
}

static int make_buffer(struct tenant *t, uint64_t bytes, struct hal_buffer **buf)
{
	struct hal_buffer_desc desc = HAL_INIT(hal_buffer_desc);

	desc.bytes = bytes;
	return hal_buffer_create(t->part, &desc, buf);
}

int tenant_open(struct tenant *t, struct hal_device *dev)
{
	struct hal_queue_desc desc = HAL_INIT(hal_queue_desc);
	const struct work *w = t->work;
	int err = hal_partition_create_named(dev, t->name, &t->part);

	t->dev = dev;
	t->info.size = sizeof(t->info);
	t->answer = malloc(w->out_bytes);
	if (!t->answer)
		return tool_fail("%s: out of memory", t->name);
	if (!err)
		err = hal_partition_get_info(t->part, &t->info);
	if (!err)
		err = hal_queue_create(t->part, &desc, &t->queue);
	if (!err)
		err = hal_program_load(dev, w->image, w->image_size, &t->program);
	if (!err)
		err = hal_program_set_name(t->program, w->title);
	if (!err)
		err = hal_kernel_find(t->program, w->kernel, &t->kernel);
	if (!err)
		err = make_buffer(t, w->count * lines(w->in_room), &t->input);
	if (!err)
		err = make_buffer(t, w->count * lines(w->out_room), &t->output);
	if (!err)
		err = make_buffer(t, (uint64_t)w->count * 16, &t->stamps);
	for (uint32_t i = 0; !err && i < w->count; i++)
		err = hal_buffer_write(t->input, i * lines(w->in_room),
				       w->inputs + (size_t)i * w->in_bytes, w->in_bytes);
	return err ? tool_fail("%s: %s", t->name, hal_last_error()) : 0;
}

void tenant_close(struct tenant *t)
{
	hal_buffer_destroy(t->input);
	hal_buffer_destroy(t->output);
	hal_buffer_destroy(t->stamps);
	hal_queue_destroy(t->queue);
	hal_program_unload(t->program);
	hal_partition_destroy(t->part);
	free(t->answer);
	t->answer = NULL;
	t->input = t->output = t->stamps = NULL;
	t->queue = NULL;
	t->program = NULL;
	t->part = NULL;
}

void tenant_free(struct tenant *t)
{
	free(t->together.cycles);
	free(t->together.begins);
	free(t->alone.cycles);
	free(t->alone.begins);
}

/* ---- running --------------------------------------------------------------------- */

static uint32_t job_of(const struct tenant *t, uint64_t n)
{
	return (uint32_t)(n % t->work->count);
}

/* The next job: the device notes its time, computes, notes its time again.  1: submitted,
 * 0: the queue is full for now, -1: failed. */
static int submit(struct tenant *t)
{
	struct hal_submit_desc desc = HAL_INIT(hal_submit_desc);
	const struct work *w = t->work;
	uint64_t job = job_of(t, t->submitted);
	uint64_t at = job * lines(w->out_room);
	int err;
	struct hal_arg args[2] = {
		{.buffer = t->output, .offset = at, .bytes = w->out_room},
		{.buffer = t->input,
		 .offset = job * lines(w->in_room),
		 .bytes = w->in_room},
	};
	struct hal_cmd cmds[3] = {
		hal_cmd_timestamp(t->stamps, job * 16),
		hal_cmd_launch(t->kernel, args, 2),
		hal_cmd_timestamp(t->stamps, job * 16 + 8),
	};

	/* Every bit wrong, so that an answer of an earlier round cannot pass for this
	 * one. */
	for (uint32_t i = 0; i < w->out_bytes; i++)
		t->answer[i] = (int8_t)~w->expected[job * w->out_bytes + i];
	if (hal_buffer_write(t->output, at, t->answer, w->out_bytes))
		return tool_fail("%s: %s", t->name, hal_last_error());
	cmds[1].flags |= HAL_CMD_REPLAYABLE;
	desc.cmds = cmds;
	desc.cmd_count = 3;
	err = hal_submit(t->queue, &desc, NULL);
	if (err == -EAGAIN && t->submitted > t->run->done)
		return 0;
	if (err)
		return tool_fail("%s: %s", t->name, hal_last_error());
	t->submitted++;
	return 1;
}

/* Jobs in flight have places of their own for answers and times. */
static uint32_t in_flight(const struct tenant *t)
{
	return t->work->count < IN_FLIGHT ? t->work->count : IN_FLIGHT;
}

/* As many jobs as fit. */
static int fill(struct tenant *t)
{
	int rc = 1;

	while (rc > 0 && t->submitted < t->run->done + in_flight(t))
		rc = submit(t);
	return rc < 0 ? TOOL_FAILED : 0;
}

static int count_cycles(struct tenant *t, const uint64_t stamps[2])
{
	struct run *r = t->run;

	if (r->done == r->room) {
		uint64_t room = r->room ? r->room * 2 : 256;
		uint64_t *cycles = realloc(r->cycles, room * sizeof(*cycles));
		uint64_t *begins = realloc(r->begins, room * sizeof(*begins));

		r->cycles = cycles ? cycles : r->cycles;
		r->begins = begins ? begins : r->begins;
		if (!cycles || !begins)
			return tool_fail("%s: out of memory", t->name);
		r->room = room;
	}
	if (r->done == 0)
		r->begin = stamps[0];
	r->end = stamps[1];
	r->begins[r->done] = stamps[0];
	r->cycles[r->done++] = stamps[1] - stamps[0];
	return 0;
}

/* Reads the oldest job's answer and compares it with the reference, bit by bit. */
static int check(struct tenant *t)
{
	const struct work *w = t->work;
	uint32_t job = job_of(t, t->run->done);
	const int8_t *right = w->expected + (size_t)job * w->out_bytes;
	uint64_t stamps[2];

	if (hal_buffer_read(t->output, job * lines(w->out_room), t->answer,
			    w->out_bytes) ||
	    hal_buffer_read(t->stamps, job * UINT64_C(16), stamps, sizeof(stamps)))
		return tool_fail("%s: %s", t->name, hal_last_error());
	for (uint32_t i = 0; i < w->out_bytes; i++)
		t->mismatched_bits += (uint32_t)__builtin_popcount(
			(unsigned int)(t->answer[i] ^ right[i]) & 0xFF);
	if (w->labels && t->run == &t->together && t->classified < w->count) {
		t->classified++;
		t->right += digits_answer(t->answer) == w->labels[job];
	}
	return count_cycles(t, stamps);
}

/* Somebody has not finished the jobs of its own: nobody stops. */
static bool work_left(const struct tenant *t, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (t[i].run->done < t[i].jobs)
			return true;
	return false;
}

/* Points that the oldest job in flight of each tenant will reach. */
static uint32_t collect(struct tenant *t, uint32_t count, struct hal_point *points,
			struct tenant **owner)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (t[i].run->done == t[i].submitted)
			continue;
		points[n].timeline = hal_queue_get_timeline(t[i].queue);
		points[n].value = t[i].base + t[i].run->done + 1;
		owner[n++] = &t[i];
	}
	return n;
}

static void begin_run(struct tenant *t, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		t[i].run = count == 1 ? &t[i].alone : &t[i].together;
		t[i].run->done = 0;
		t[i].submitted = 0;
		t[i].base =
			hal_timeline_get_value(hal_queue_get_timeline(t[i].queue), NULL);
	}
}

/* A tenth of a second from now, for hal_wait. */
static int64_t soon(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + 100000000;
}

int tenants_run(struct tenant *tenants, uint32_t count, progress_fn progress, void *user)
{
	struct hal_point points[TENANTS_MAX];
	struct tenant *owner[TENANTS_MAX];
	int rc;

	if (count > TENANTS_MAX)
		return tool_fail("too many tenants");
	begin_run(tenants, count);
	for (;;) {
		bool more = work_left(tenants, count);
		uint32_t n;
		int which;

		for (uint32_t i = 0; more && i < count; i++)
			if (fill(&tenants[i]))
				return TOOL_FAILED;
		n = collect(tenants, count, points, owner);
		if (n == 0)
			return 0;
		which = hal_wait(points, n, HAL_WAIT_ANY, soon());
		if (which < 0 && which != -ETIMEDOUT)
			return tool_fail("cannot wait for a job: %s", hal_last_error());
		if (which >= 0 && check(owner[which]))
			return TOOL_FAILED;
		rc = progress(user, tenants, count);
		if (rc)
			return rc;
	}
}
