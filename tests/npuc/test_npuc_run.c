/* SPDX-License-Identifier: Apache-2.0 */
/* test_npuc_run.c - tiny models on the reference NPU against plain C, the .npu file, and
 * the commands npuc and halrun. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <errno.h>

#include <hal/hal.h>

#include "npuc.h"
#include "tiny.h"

#define TARGET "npu:0?clock=virtual&model=" MODEL

struct world {
	struct hal_device *dev;
	struct hal_partition *part;
	char dir[32];
};

static uint8_t file[65536];

#define OK(call)                                                                         \
	do {                                                                             \
		if ((call) < 0)                                                          \
			fail_msg("%s: %s", #call, hal_last_error());                     \
	} while (0)
#define WHY(call)                                                                        \
	do {                                                                             \
		if ((call) != 0)                                                         \
			fail_msg("%s: %s", #call, why);                                  \
	} while (0)

static int set_up(void **state)
{
	static struct world w = {.dir = "/tmp/npuc.XXXXXX"};
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);

	if (!mkdtemp(w.dir))
		return -1;
	OK(hal_open(TARGET, NULL, &w.dev));
	desc.rows = 5;
	desc.cols = 7;
	OK(hal_partition_create(w.dev, &desc, &w.part));
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	char command[64];

	OK(hal_partition_destroy(w->part));
	OK(hal_close(w->dev));
	snprintf(command, sizeof(command), "rm -rf %s", w->dir);
	return system(command);
}

static void compile_sample(unsigned int number, const struct npuc_options *o,
			   struct npuc_program *p)
{
	char why[NPUC_WHY];
	struct npuc_model *m;
	size_t size = tiny_sample(number, file, sizeof(file));

	WHY(npuc_model_parse(file, size, "sample", &m, why));
	WHY(npuc_compile(m, o, p, why));
	npuc_model_free(m);
}

/* ---- the first sample in plain C -------------------------------------------------- */

/* The sample's numbers; all its scales are powers of two. */
static const int8_t numbers[288] = {3, -5, 7, 1, -2, 9, -8, 4, 6, -1, 2, 0, -7, 5};

enum {
	IN = 0,
	PADDED = 2,
	CONV = 5,
	DEEP = 7,
	MAX = 8,
	MEAN = 9,
	FC = 12,
	FLAT = 14,
	SOFT = 15,
};

struct plain {
	int8_t in[8][8][2], padded[10][10][2], conv[4][4][4], deep[4][4][8], max[2][2][8],
		mean[8], fc[4];
	enum npuc_reference reference;
};

/* x * 2^-n as a multiplier of 2^30 does it: half up once, then half away from zero. */
static int32_t scaled(int32_t x, int n)
{
	int32_t h = (x + 1) >> 1;

	n--;
	return n ? (h + (1 << (n - 1)) - (h < 0)) >> n : h;
}

/* x * 2^-n, half away from zero: FULLY_CONNECTED of the current reference. */
static int32_t scaled_once(int32_t x, int n)
{
	return (x + (1 << (n - 1)) - (x < 0)) >> n;
}

static int8_t clamped(int32_t x, int32_t min, int32_t max)
{
	return (int8_t)(x < min ? min : x > max ? max : x);
}

static void plain_conv(struct plain *p)
{
	static const int shift[4] = {2, 3, 4, 1};
	static const int32_t bias[4] = {100, -100, 7};

	for (int y = 0; y < 4; y++)
		for (int x = 0; x < 4; x++)
			for (int n = 0; n < 4; n++) {
				int32_t sum = bias[n];

				for (int k = 0; k < 18; k++)
					sum += (p->padded[2 * y + k / 6]
							 [2 * x + k / 2 % 3][k % 2] +
						3) *
					       numbers[n * 18 + k];
				p->conv[y][x][n] =
					clamped(scaled(sum, shift[n]) - 128, -128, -122);
			}
}

static void plain_deep(struct plain *p)
{
	for (int y = 0; y < 4; y++)
		for (int x = 0; x < 4; x++)
			for (int n = 0; n < 8; n++) {
				int32_t sum = 0;

				for (int k = 0; k < 9; k++) {
					int iy = y + k / 3 - 1, ix = x + k % 3 - 1;

					if (iy >= 0 && iy < 4 && ix >= 0 && ix < 4)
						sum += (p->conv[iy][ix][n / 2] + 128) *
						       numbers[k * 8 + n];
				}
				p->deep[y][x][n] = clamped(scaled(sum, 2), -128, 127);
			}
}

static void plain_rest(struct plain *p)
{
	for (int n = 0; n < 8; n++) {
		int32_t sum = 0;

		for (int i = 0; i < 4; i++) {
			int8_t best = -128;

			for (int k = 0; k < 4; k++) {
				int8_t v =
					p->deep[i / 2 * 2 + k / 2][i % 2 * 2 + k % 2][n];

				best = v > best ? v : best;
			}
			p->max[i / 2][i % 2][n] = best;
			sum += best;
		}
		p->mean[n] = clamped(scaled(sum, 1) + 4, -128, 127);
	}
	for (int n = 0; n < 4; n++) {
		int32_t sum = 0;

		for (int k = 0; k < 8; k++)
			sum += (p->mean[k] - 4) * numbers[n * 8 + k];
		sum = p->reference == NPUC_REFERENCE_2_14 ? scaled(sum, 2)
							  : scaled_once(sum, 2);
		p->fc[n] = clamped(sum + 3, -128, 127);
	}
}

static void plain_net(struct plain *p)
{
	memset(p->padded, -3, sizeof(p->padded));
	for (int y = 0; y < 8; y++)
		for (int x = 0; x < 8; x++)
			memcpy(p->padded[y + 1][x + 1], p->in[y][x], 2);
	plain_conv(p);
	plain_deep(p);
	plain_rest(p);
}

static void check_tensor(struct npuc_run *run, uint32_t tensor, const void *want,
			 uint64_t bytes)
{
	uint8_t got[512];
	char why[NPUC_WHY];

	WHY(npuc_run_tensor(run, tensor, got, bytes, why));
	assert_memory_equal(got, want, bytes);
}

/* Within one step of 1/256: what the fixed-point exp may be off. */
static void check_softmax(struct npuc_run *run, const int8_t logits[4])
{
	char why[NPUC_WHY];
	int8_t got[4];
	double sum = 0;

	WHY(npuc_run_read(run, 0, true, got, 4, why));
	for (int i = 0; i < 4; i++)
		sum += exp(0.5 * logits[i]);
	for (int i = 0; i < 4; i++)
		assert_true(fabs(256 * exp(0.5 * logits[i]) / sum - (got[i] + 128)) <=
			    1.01);
}

static void check_net(struct world *w, enum npuc_reference reference)
{
	struct npuc_options keep = {.keep = true, .reference = reference};
	struct npuc_program p;
	struct npuc_run *run;
	struct plain want;
	char why[NPUC_WHY];

	want.reference = reference;
	compile_sample(0, &keep, &p);
	WHY(npuc_run_open(w->dev, w->part, &p, &run, why));
	for (uint32_t n = 0; n < 20; n++) {
		uint32_t x = n * 2654435761u + 1;

		for (uint32_t i = 0; i < 128; i++) {
			x = x * 1664525u + 1013904223u; /* Numerical Recipes */
			((int8_t *)want.in)[i] = (int8_t)(x >> 24);
		}
		plain_net(&want);
		WHY(npuc_run_write(run, 0, want.in, 128, why));
		WHY(npuc_run_kernel(run, "run", NULL, why));
		check_tensor(run, PADDED, want.padded, sizeof(want.padded));
		check_tensor(run, CONV, want.conv, sizeof(want.conv));
		check_tensor(run, DEEP, want.deep, sizeof(want.deep));
		check_tensor(run, MAX, want.max, sizeof(want.max));
		check_tensor(run, MEAN, want.mean, sizeof(want.mean));
		check_tensor(run, FC, want.fc, sizeof(want.fc));
		check_tensor(run, FLAT, want.fc, sizeof(want.fc));
		check_softmax(run, want.fc);
	}
	npuc_run_close(run);
	npuc_program_free(&p);
}

static void test_net(void **state)
{
	check_net(*state, NPUC_REFERENCE_CURRENT);
	check_net(*state, NPUC_REFERENCE_2_14);
}

/* Layer by layer, each a launch of its own, gives what all at once gives. */
static void test_layers(void **state)
{
	struct world *w = *state;
	struct npuc_options each = {.layers = true};
	struct npuc_program p;
	struct npuc_run *run;
	char why[NPUC_WHY];
	int8_t in[128], once[4], single[4];
	uint64_t cycles;

	for (int i = 0; i < 128; i++)
		in[i] = (int8_t)(i * 37);
	compile_sample(0, &each, &p);
	WHY(npuc_run_open(w->dev, w->part, &p, &run, why));
	WHY(npuc_run_write(run, 0, in, 128, why));
	WHY(npuc_run_kernel(run, "run", &cycles, why));
	assert_true(cycles > 0);
	WHY(npuc_run_read(run, 0, true, once, 4, why));
	memset(in, 0, sizeof(in));
	WHY(npuc_run_write(run, 0, in, 128, why));
	WHY(npuc_run_kernel(run, "run", NULL, why));
	for (int i = 0; i < 128; i++)
		in[i] = (int8_t)(i * 37);
	WHY(npuc_run_write(run, 0, in, 128, why));
	for (uint32_t i = 0; i < p.layer_count; i++)
		if (p.layers[i].kernel[0])
			WHY(npuc_run_kernel(run, p.layers[i].kernel, NULL, why));
	WHY(npuc_run_read(run, 0, true, single, 4, why));
	assert_memory_equal(once, single, 4);
	npuc_run_close(run);
	npuc_program_free(&p);
}

/* ---- variables -------------------------------------------------------------------- */

/* y = x + what y was before, from 10, 20, 30 and 40 on. */
static void sum_up(struct tiny *m)
{
	static const int8_t first[] = {10, 20, 30, 40};
	const int32_t dims[] = {1, 4};
	int32_t x, y, old, begin, handle;

	memset(m, 0, sizeof(*m));
	x = tiny_int8(m, "x", 2, dims, 1, 0);
	y = tiny_int8(m, "y", 2, dims, 1, 0);
	old = tiny_int8(m, "old", 2, dims, 1, 0);
	begin = tiny_const(m, "begin", 9, 2, dims, 1, 0, first, 4);
	handle = tiny_int8(m, "handle", 0, dims, 1, 0);
	m->tensors[handle].type = 13; /* resource */
	m->tensors[handle].scales = 0;
	m->ops[m->op_count++] = (struct tiny_op){.code = 129, .version = 1};
	tiny_option(&m->ops[0], 103, 0, 4, 1); /* CALL_ONCE of graph 1 */
	tiny_op(m, 142, 0, &x, handle);
	tiny_op(m, 143, 1, &handle, old);
	tiny_op(m, 0, 2, (const int32_t[]){old, x}, y);
	tiny_op(m, 144, 2, (const int32_t[]){handle, y}, 0)->output_count = 0;
	m->split = m->op_count;
	m->graphs = 2;
	tiny_op(m, 142, 0, &x, handle);
	tiny_op(m, 144, 2, (const int32_t[]){handle, begin}, 0)->output_count = 0;
	m->outputs[0] = y;
	m->inputs[0] = x;
	m->input_count = m->output_count = 1;
}

static void check_sum(struct npuc_run *run, int8_t x, int8_t first)
{
	const int8_t in[] = {x, x, x, x};
	char why[NPUC_WHY];
	int8_t got[4];

	WHY(npuc_run_write(run, 0, in, 4, why));
	WHY(npuc_run_kernel(run, "run", NULL, why));
	WHY(npuc_run_read(run, 0, true, got, 4, why));
	for (int i = 0; i < 4; i++)
		assert_int_equal(got[i], first + 10 * i);
}

/* Inferences add up, of both runs; "init" starts afresh; a file knows it all.  None of
 * them could be run again from its start. */
static void test_variables(void **state)
{
	struct world *w = *state;
	static struct tiny m;
	struct hal_queue_desc desc = HAL_INIT(hal_queue_desc);
	struct hal_queue *queue;
	struct npuc_run *run, *beside;
	struct npuc_program p, q;
	struct npuc_model *model;
	char why[NPUC_WHY], path[64];
	struct hal_cmd cmd;

	sum_up(&m);
	WHY(npuc_model_parse(file, tiny_write(&m, file, sizeof(file)), "sum", &model,
			     why));
	WHY(npuc_compile(model, NULL, &q, why));
	npuc_model_free(model);
	snprintf(path, sizeof(path), "%s/sum.npu", w->dir);
	WHY(npuc_program_save(&q, path, why));
	npuc_program_free(&q);
	WHY(npuc_program_load(path, &p, why));
	assert_true(p.state);
	WHY(npuc_run_open(w->dev, w->part, &p, &run, why));
	WHY(npuc_run_open_beside(run, &beside, why));
	WHY(npuc_run_command(run, "run", &cmd, why));
	assert_false(cmd.flags & HAL_CMD_REPLAYABLE);
	check_sum(run, 1, 11);
	check_sum(run, 2, 13);
	check_sum(beside, 4, 17);
	check_sum(run, 8, 25);
	WHY(npuc_run_kernel(run, "init", NULL, why));
	check_sum(run, -3, 7);
	assert_int_equal(npuc_run_close(beside), 0);
	assert_int_equal(npuc_run_close(run), 0);
	OK(hal_queue_create(w->part, &desc, &queue));
	OK(hal_queue_suspend(queue, HAL_SUSPEND_DRAIN, NULL));
	WHY(npuc_run_open_on(w->dev, w->part, queue, &p, &run, why));
	OK(hal_queue_resume(queue));
	check_sum(run, 5, 15);
	assert_int_equal(npuc_run_close(run), 0);
	OK(hal_queue_destroy(queue));
	npuc_program_free(&p);
}

/* ---- without waiting -------------------------------------------------------------- */

struct flight {
	struct npuc_program p;
	struct npuc_run *run[2];
	struct hal_point done[2];
	int8_t in[2][128], want[2][4];
};

static void take_off(struct world *w, struct flight *f)
{
	char why[NPUC_WHY];

	compile_sample(0, NULL, &f->p);
	WHY(npuc_run_open(w->dev, w->part, &f->p, &f->run[0], why));
	WHY(npuc_run_open_beside(f->run[0], &f->run[1], why));
	for (int n = 0; n < 2; n++) {
		for (int i = 0; i < 128; i++)
			f->in[n][i] = (int8_t)(i * (n ? 37 : 11));
		WHY(npuc_run_write(f->run[n], 0, f->in[n], 128, why));
		WHY(npuc_run_kernel(f->run[n], "run", NULL, why));
		WHY(npuc_run_read(f->run[n], 0, true, f->want[n], 4, why));
		WHY(npuc_run_write(f->run[n], 0, f->in[n], 128, why));
	}
	assert_memory_not_equal(f->want[0], f->want[1], 4);
}

static void land(struct flight *f)
{
	assert_int_equal(npuc_run_close(f->run[1]), 0);
	assert_int_equal(npuc_run_close(f->run[0]), 0);
	npuc_program_free(&f->p);
}

/* Two inferences in flight at once, held there by a suspended queue: whatever would touch
 * them or take their queue away is refused; then each has its own answer. */
static void test_in_flight(void **state)
{
	struct flight f;
	struct hal_point quiet;
	char why[NPUC_WHY];
	int8_t got[4];

	take_off(*state, &f);
	assert_ptr_equal(npuc_run_queue(f.run[0]), npuc_run_queue(f.run[1]));
	OK(hal_queue_suspend(npuc_run_queue(f.run[0]), HAL_SUSPEND_DRAIN, &quiet));
	OK(hal_wait(&quiet, 1, 0, HAL_FOREVER));
	for (int n = 0; n < 2; n++)
		WHY(npuc_run_submit(f.run[n], "run", NULL, &f.done[n], why));
	for (int n = 0; n < 2; n++) {
		assert_int_equal(npuc_run_write(f.run[n], 0, f.in[n], 128, why), -EBUSY);
		assert_int_equal(npuc_run_read(f.run[n], 0, true, got, 4, why), -EBUSY);
		assert_int_equal(npuc_run_tensor(f.run[n], 0, got, 4, why), -EBUSY);
		assert_int_equal(npuc_run_submit(f.run[n], "run", NULL, NULL, why),
				 -EBUSY);
		assert_non_null(strstr(why, "in flight"));
	}
	assert_int_equal(npuc_run_close(f.run[0]), -EBUSY);
	OK(hal_queue_resume(npuc_run_queue(f.run[0])));
	OK(hal_wait(f.done, 2, 0, HAL_FOREVER));
	for (int n = 0; n < 2; n++) {
		WHY(npuc_run_read(f.run[n], 0, true, got, 4, why));
		assert_memory_equal(got, f.want[n], 4);
	}
	land(&f);
}

/* What a submission waits for and how it ends are the caller's: the second waits for a
 * point that the first signals. */
static void test_submit_desc(void **state)
{
	struct hal_submit_desc first = HAL_INIT(hal_submit_desc), second = first;
	struct hal_cmd cmd = hal_cmd_barrier();
	struct hal_timeline *timeline;
	struct world *w = *state;
	struct hal_point point;
	struct flight f;
	char why[NPUC_WHY];
	int8_t got[4];

	take_off(w, &f);
	OK(hal_timeline_create(w->dev, &timeline));
	point = (struct hal_point){timeline, 7};
	second.signals = &point;
	second.signal_count = 1;
	WHY(npuc_run_submit(f.run[1], "run", &second, NULL, why));
	first.waits = &point;
	first.wait_count = 1;
	WHY(npuc_run_submit(f.run[0], "run", &first, &f.done[0], why));
	OK(hal_wait(f.done, 1, 0, HAL_FOREVER));
	assert_int_equal(hal_timeline_get_value(timeline, NULL), 7);
	WHY(npuc_run_read(f.run[0], 0, true, got, 4, why));
	assert_memory_equal(got, f.want[0], 4);
	first.cmds = &cmd;
	first.cmd_count = 1;
	assert_int_equal(npuc_run_submit(f.run[0], "run", &first, NULL, why), -EINVAL);
	assert_int_equal(npuc_run_submit(f.run[0], "none", NULL, NULL, why), -ENOENT);
	OK(hal_timeline_destroy(timeline));
	land(&f);
}

/* The launch among commands of the caller's, which ask the device what time it is. */
static void test_own_commands(void **state)
{
	struct hal_submit_desc desc = HAL_INIT(hal_submit_desc);
	struct hal_buffer_desc bytes = HAL_INIT(hal_buffer_desc);
	struct world *w = *state;
	struct hal_buffer *times;
	struct hal_cmd cmds[3];
	struct hal_point done;
	struct flight f;
	char why[NPUC_WHY];
	uint64_t stamps[2] = {0};
	int8_t got[4];

	take_off(w, &f);
	bytes.bytes = 64;
	OK(hal_buffer_create(w->part, &bytes, &times));
	cmds[0] = hal_cmd_timestamp(times, 0);
	WHY(npuc_run_command(f.run[1], "run", &cmds[1], why));
	cmds[2] = hal_cmd_timestamp(times, 8);
	desc.cmds = cmds;
	desc.cmd_count = 3;
	OK(hal_submit(npuc_run_queue(f.run[0]), &desc, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(hal_buffer_read(times, 0, stamps, sizeof(stamps)));
	assert_true(stamps[1] > stamps[0]);
	WHY(npuc_run_read(f.run[1], 0, true, got, 4, why));
	assert_memory_equal(got, f.want[1], 4);
	assert_int_equal(npuc_run_command(f.run[0], "none", &cmds[1], why), -ENOENT);
	OK(hal_buffer_destroy(times));
	land(&f);
}

/* Two programs on a queue of the caller's, which tells their ends to a ring. */
static void test_own_queue(void **state)
{
	struct hal_queue_desc desc = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc submit = HAL_INIT(hal_submit_desc);
	struct hal_completion ends[2];
	struct world *w = *state;
	struct npuc_program p[2];
	struct npuc_run *run[2];
	struct hal_completions *ring;
	struct hal_queue *queue;
	struct hal_point done;
	char why[NPUC_WHY];

	OK(hal_completions_create(w->dev, 4, &ring));
	desc.completions = ring;
	OK(hal_queue_create(w->part, &desc, &queue));
	for (unsigned int i = 0; i < 2; i++) {
		compile_sample(i, NULL, &p[i]);
		WHY(npuc_run_open_on(w->dev, w->part, queue, &p[i], &run[i], why));
		assert_ptr_equal(npuc_run_queue(run[i]), queue);
		submit.tag = 40 + i;
		WHY(npuc_run_submit(run[i], "run", &submit, &done, why));
	}
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	assert_int_equal(hal_completions_read(ring, ends, 2, HAL_FOREVER), 2);
	for (unsigned int i = 0; i < 2; i++) {
		assert_true(ends[i].tag == 40 + i && ends[i].status == 0);
		assert_int_equal(npuc_run_close(run[i]), 0);
		npuc_program_free(&p[i]);
	}
	OK(hal_queue_destroy(queue));
	OK(hal_completions_destroy(ring));
	assert_int_equal(npuc_run_open_on(w->dev, w->part, NULL, &p[0], run, why),
			 -EINVAL);
}

static void run_graph(struct world *w, const struct npuc_model *m, bool keep,
		      uint8_t out[3000])
{
	struct npuc_options o = {.keep = keep};
	struct npuc_program p;
	struct npuc_run *run;
	char why[NPUC_WHY];
	uint8_t in[3000];

	for (uint32_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 2654435761u >> 13);
	WHY(npuc_compile(m, &o, &p, why));
	WHY(npuc_run_open(w->dev, w->part, &p, &run, why));
	WHY(npuc_run_write(run, 0, in, p.inputs[0].count, why));
	WHY(npuc_run_kernel(run, "run", NULL, why));
	WHY(npuc_run_read(run, 0, true, out, p.outputs[0].count, why));
	npuc_run_close(run);
	npuc_program_free(&p);
}

/* Shared memory, another order of layers and tables for what is a function of one byte
 * change nothing. */
static void test_graphs(void **state)
{
	static struct tiny_graph g;
	struct world *w = *state;
	char why[NPUC_WHY];

	for (uint64_t seed = 1; seed <= 100; seed++) {
		uint8_t shared[3000] = {0}, kept[3000] = {0};
		struct npuc_model *m;
		size_t size;

		tiny_graph(&g, seed, false);
		size = tiny_write(&g.m, file, sizeof(file));
		WHY(npuc_model_parse(file, size, "graph", &m, why));
		run_graph(w, m, false, shared);
		run_graph(w, m, true, kept);
		npuc_model_free(m);
		if (memcmp(shared, kept, sizeof(kept)) != 0)
			fail_msg("seed %llu: other bytes", (unsigned long long)seed);
	}
}

static bool has_line(const char *path, const char *text)
{
	FILE *f = fopen(path, "r");
	char line[1024];
	bool found = false;

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, text) != NULL;
	fclose(f);
	return found;
}

/* Float32 at both ends: quantized and dequantized on the host.  A program that went
 * through a file does the same. */
static void test_float_and_file(void **state)
{
	struct world *w = *state;
	struct npuc_program p[2];
	char why[NPUC_WHY], path[64];
	float in[24], out[2][48];
	uint8_t raw[48];

	for (int i = 0; i < 24; i++)
		in[i] = (float)i * 0.77f - 8;
	in[3] = 1e30f;
	in[4] = -1e30f;
	snprintf(path, sizeof(path), "%s/sample.npu", w->dir);
	compile_sample(1, NULL, &p[0]);
	assert_int_equal(p[0].inputs[0].type, NPUC_FLOAT32);
	assert_int_equal(p[0].inputs[0].device_type, NPUC_INT8);
	snprintf(p[0].host, sizeof(p[0].host), "the rest\n");
	WHY(npuc_program_save(&p[0], path, why));
	WHY(npuc_program_open(path, NULL, &p[1], why));
	assert_string_equal(p[1].host, "the rest?");
	assert_string_equal(p[0].name, "");
	assert_string_equal(p[1].name, "sample");
	assert_int_equal(p[1].image_size, p[0].image_size);
	assert_memory_equal(p[1].image, p[0].image, p[0].image_size);
	assert_memory_equal(p[1].inputs, p[0].inputs, sizeof(*p[0].inputs));
	assert_memory_equal(p[1].outputs, p[0].outputs, sizeof(*p[0].outputs));
	snprintf(path, sizeof(path), "%s/trace.json", w->dir);
	OK(hal_trace_start(w->dev, path));
	for (int i = 0; i < 2; i++) {
		struct npuc_run *run;

		WHY(npuc_run_open(w->dev, w->part, &p[i], &run, why));
		WHY(npuc_run_write(run, 0, in, sizeof(in), why));
		WHY(npuc_run_kernel(run, "run", NULL, why));
		WHY(npuc_run_read(run, 0, false, out[i], sizeof(out[i]), why));
		WHY(npuc_run_read(run, 0, true, raw, sizeof(raw), why));
		for (int k = 0; k < 48; k++)
			assert_true(out[i][k] == 0.5f * (float)(int8_t)raw[k]);
		assert_int_equal(npuc_run_write(run, 0, in, 24, why), -EINVAL);
		assert_non_null(strstr(why, "takes 96 bytes"));
		assert_int_equal(npuc_run_write(run, 1, in, 24, why), -EINVAL);
		assert_int_equal(npuc_run_read(run, 0, true, raw, 47, why), -EINVAL);
		assert_int_equal(npuc_run_kernel(run, "none", NULL, why), -ENOENT);
		assert_int_equal(npuc_run_tensor(run, 5, raw, 24, why), -EINVAL);
		npuc_run_close(run);
		npuc_program_free(&p[i]);
	}
	assert_memory_equal(out[0], out[1], sizeof(out[0]));
	OK(hal_trace_stop(w->dev));
	assert_true(has_line(path, "\"name\":\"run\""));
	assert_true(has_line(path, "\"name\":\"sample: run\""));
}

/* A .npu file's bytes, in file; how many. */
static size_t saved(const struct world *w)
{
	struct npuc_program p;
	char why[NPUC_WHY], path[64];
	size_t size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/saved.npu", w->dir);
	compile_sample(0, NULL, &p);
	WHY(npuc_program_save(&p, path, why));
	npuc_program_free(&p);
	f = fopen(path, "rb");
	assert_non_null(f);
	size = fread(file, 1, sizeof(file), f);
	fclose(f);
	return size;
}

/* A byte changed or missing anywhere in a .npu file is noticed. */
static void test_damage(void **state)
{
	struct npuc_program p;
	char why[NPUC_WHY];
	size_t size = saved(*state);

	for (size_t i = 0; i < size; i += 7)
		assert_int_equal(npuc_program_parse(file, i, "x.npu", &p, why), -EINVAL);
	for (size_t i = 80; i < size; i++) {
		file[i] ^= 0x10;
		assert_int_equal(npuc_program_parse(file, size, "x.npu", &p, why),
				 -EINVAL);
		assert_non_null(strstr(why, "x.npu: "));
		file[i] ^= 0x10;
	}
	assert_int_equal(npuc_program_parse(file, size, "x.npu", &p, why), 0);
	npuc_program_free(&p);
}

/* Numbers that cannot be, with a checksum that is right. */
static void test_ports(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
		const char *text;
	} wrong[] = {
		{8, 9, "another version"},
		{12, 8, "unknown flags"},
		{12, 2, "its length"},
		{19, 0xff, "more than 2^31"},
		{56, 0, "no ports"},
		{57, 0xff, "too many"},
		{64, 0, "its length"},
		{88 + 256, 2, "neither"},
		{88 + 260, 2, "not int8, uint8 or int16"},
		{88 + 268, 9, "dimensions"},
		{88 + 272, 0, "invalid dimension"},
		{88 + 275, 0xff, "invalid dimension"},
		{88 + 304, 1, "do not match"},
		{88 + 313, 1, "outside its buffer"},
		{88 + 323, 0x80, "quantization is invalid"},
		{88 + 325, 9, "quantization is invalid"},
	};
	struct npuc_program p;
	char why[NPUC_WHY];
	size_t size = saved(*state);

	for (size_t n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
		uint8_t was = file[wrong[n].at];
		uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

		file[wrong[n].at] = wrong[n].value;
		for (size_t i = 80; i < size; i++)
			h = (h ^ file[i]) * UINT64_C(0x100000001b3);
		for (size_t i = 0; i < 8; i++)
			file[72 + i] = (uint8_t)(h >> 8 * i);
		assert_int_equal(npuc_program_parse(file, size, "x.npu", &p, why),
				 -EINVAL);
		if (!strstr(why, wrong[n].text))
			fail_msg("'%s' has not '%s'", why, wrong[n].text);
		file[wrong[n].at] = was;
	}
}

/* ---- the commands ----------------------------------------------------------------- */

/* Exit status; the output is in text. */
static int run_command(char *text, size_t size, const char *format, ...)
{
	char command[2048];
	va_list args;
	size_t n;
	FILE *f;
	int rc;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	rc = pclose(f);
	return WIFEXITED(rc) ? WEXITSTATUS(rc) : -1;
}

static void write_file(const char *path, const void *data, size_t size)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

#define RUN(...)       run_command(text, sizeof(text), __VA_ARGS__)
#define CONTAINS(what) assert_non_null(strstr(text, what))

static void test_commands(void **state)
{
	struct world *w = *state;
	char model[64], program[64], input[64], output[64], text[16384];
	static int8_t in[128];
	size_t size = tiny_sample(0, file, sizeof(file));

	snprintf(model, sizeof(model), "%s/m.tflite", w->dir);
	snprintf(program, sizeof(program), "%s/m.npu", w->dir);
	snprintf(input, sizeof(input), "%s/in.bin", w->dir);
	snprintf(output, sizeof(output), "%s/out.bin", w->dir);
	write_file(model, file, size);
	write_file(input, in, sizeof(in));
	assert_int_equal(RUN(NPUC " %s -o %s 2>&1", model, program), 0);
	CONTAINS("8 layers, 2368 MACs");
	assert_int_equal(RUN(NPUC " -e -t '" TARGET "' %s 2>&1", model), 0);
	CONTAINS("DEPTHWISE_CONV_2D");
	CONTAINS("the whole program");
	CONTAINS("bytes of activations at most");
	assert_int_equal(RUN(NPUC " -e -n %s 2>&1", model), 0);
	CONTAINS("nothing measured");
	assert_int_equal(RUN(HALRUN " -t '" TARGET "' -n 4 -o %s %s %s 2>&1", output,
			     model, input),
			 0);
	CONTAINS("soft: 4 of 4 outputs");
	CONTAINS("cycles on");
	assert_int_equal(RUN("wc -c < %s", output), 0);
	assert_int_equal(strtol(text, NULL, 10), 4);
	assert_int_equal(RUN(HALRUN " -t '" TARGET "' %s %s 2>&1", program, input), 0);
	CONTAINS("soft: 4 of 4 outputs");
	assert_int_equal(RUN(HALRUN " --help"), 0);
	CONTAINS("usage: halrun");
	assert_int_equal(RUN(NPUC " --version"), 0);
	CONTAINS("npuc ");
}

/* RELU, or an operator that nobody compiles; then a custom one. */
static void write_tail(const char *path, int code)
{
	struct tiny m = {0};
	const int32_t four[] = {1, 4}, in[] = {0}, mid[] = {1};
	size_t size;

	tiny_int8(&m, "pixels", 2, four, 0.5f, 3);
	tiny_int8(&m, "boxes", 2, four, 0.5f, 3);
	tiny_int8(&m, "found", 2, four, 0.5f, 3);
	tiny_op(&m, code, 1, in, 1);
	tiny_op(&m, 32, 1, mid, 2)->custom = "Detect";
	m.inputs[0] = 0;
	m.outputs[0] = 2;
	m.input_count = m.output_count = 1;
	size = tiny_write(&m, file, sizeof(file));
	assert_int_not_equal(size, 0);
	write_file(path, file, size);
}

static void test_check(void **state)
{
	struct world *w = *state;
	char model[64], program[64], text[4096];

	snprintf(model, sizeof(model), "%s/tail.tflite", w->dir);
	snprintf(program, sizeof(program), "%s/tail.npu", w->dir);
	write_tail(model, 19);
	assert_int_equal(RUN(NPUC " -c %s 2>&1", model), 0);
	assert_string_equal(text,
			    "input   pixels  int8 1x4, scale 0.5, zero point 3\n"
			    "output  boxes  int8 1x4, scale 0.5, zero point 3\n"
			    "the network ends before layer 1 (CUSTOM Detect): that only "
			    "the host can compute, from these outputs\n"
			    "compiles: 2 layers, 0 MACs\n"
			    "takes 0.6 KiB of device memory: 0.5 of program, 0.0 of "
			    "activations, 0.1 of inputs, outputs and variables\n");
	/* More than the device has, unless it is told otherwise. */
	assert_int_equal(RUN("HAL_BACKEND_NPU_MEMORY_SIZE=1M " NPUC " -c %s 2>&1", model),
			 0);
	assert_null(strstr(text, "--target"));
	assert_int_equal(RUN(NPUC " %s -o %s 2>&1", model, program), 0);
	CONTAINS("the network ends before layer 1 (CUSTOM Detect)");
	assert_int_equal(RUN(NPUC " -e -n %s 2>&1", model), 0);
	CONTAINS("  1  CUSTOM Detect ");
	CONTAINS(" left to the host ");
	CONTAINS("the network ends before layer 1 (CUSTOM Detect)");
	assert_int_equal(RUN(NPUC " -o - - < %s 2>/dev/null | cmp - %s", model, program),
			 0);
	write_tail(model, 108);
	assert_int_equal(RUN(NPUC " --check %s 2>&1", model), 1);
	CONTAINS("output  found  int8 1x4");
	CONTAINS("obstacle: layer 0 (COS): this operator is not compiled\n");
	assert_int_equal(RUN(NPUC " --check --json %s 2>&1", model), 1);
	CONTAINS("\"operator\": \"COS\"");
	CONTAINS("\"zero_point\": 3");
	assert_int_equal(RUN(NPUC " -c %s > /dev/full", model), 1);
	assert_int_equal(RUN(NPUC " -cj %s > /dev/full", model), 1);
	assert_int_equal(RUN(NPUC " --help 2>&1 > /dev/full"), 1);
	CONTAINS("cannot write the output");
	write_file(model, file, tiny_sample(5, file, sizeof(file)));
	assert_int_equal(RUN(NPUC " --check %s 2>&1", model), 0);
	CONTAINS("compiles: 1 layer, ");
	assert_int_equal(RUN(NPUC " %s 2>&1", model), 0);
	CONTAINS(": 1 layer, ");
	write_tail(model, 19);
	assert_int_equal(RUN(NPUC " -o /dev/full %s 2>&1", model), 1);
	CONTAINS("/dev/full: cannot be written: No space left on device");
	assert_int_equal(RUN(NPUC " -c -e %s 2>&1", model), 2);
	assert_int_equal(RUN(NPUC " -j %s 2>&1", model), 2);
	assert_int_equal(RUN(NPUC " -e -o - %s 2>&1", model), 2);
}

/* The network's multiply-accumulates, whatever the machine makes for them. */
static void test_macs(void **state)
{
	struct tiny m = {0};
	struct npuc_model *model;
	struct npuc_program p;
	char why[NPUC_WHY];

	(void)state;
	tiny_lstm(&m); /* 2 times, 3 inputs, 2 cells of 4 gates */
	WHY(npuc_model_parse(file, tiny_write(&m, file, sizeof(file)), "m", &model, why));
	WHY(npuc_compile(model, NULL, &p, why));
	assert_int_equal(p.macs, 2 * 2 * 4 * (3 + 2));
	assert_int_equal(p.layers[0].macs, p.macs);
	npuc_program_free(&p);
	npuc_model_free(model);
}

/* A network that takes more memory than the device has: how much, and what to do. */
static void test_memory(void **state)
{
	struct world *w = *state;
	struct tiny m = {.input_count = 1, .output_count = 1};
	char model[64], text[4096];

	tiny_int8(&m, "in", 2, (const int32_t[]){1024, 2048}, 0.5f, 0);
	tiny_int8(&m, "out", 2, (const int32_t[]){1024, 2048}, 0.5f, 0);
	tiny_op(&m, 19, 1, (const int32_t[]){0}, 1);
	m.outputs[0] = 1;
	snprintf(model, sizeof(model), "%s/large.tflite", w->dir);
	write_file(model, file, tiny_write(&m, file, sizeof(file)));
	assert_int_equal(RUN("HAL_BACKEND_NPU_MEMORY_SIZE=2M " NPUC " -c %s 2>&1", model),
			 0);
	CONTAINS("takes 4.0 MiB of device memory: ");
	CONTAINS("; the NPU has 2 MiB unless the target says more, as in --target "
		 "'npu:0?memory_size=8M'\n");
	assert_int_equal(RUN(NPUC " -c -j %s 2>&1", model), 0);
	CONTAINS("\"memory_bytes\": 4194");
	assert_int_equal(
		RUN(HALRUN " -t '" TARGET "&memory_size=2M' -r 1 %s 2>&1", model), 1);
	CONTAINS("large.tflite: the network takes 4.0 MiB of device memory: ");
	CONTAINS("the NPU has 2 MiB unless the target says more");
	assert_int_equal(
		RUN(HALRUN " -t '" TARGET "&memory_size=8M' -n 0 -r 1 %s 2>&1", model),
		0);
}

static void test_command_errors(void **state)
{
	struct world *w = *state;
	char model[64], input[64], text[4096];
	size_t size = tiny_sample(0, file, sizeof(file));

	snprintf(model, sizeof(model), "%s/e.tflite", w->dir);
	snprintf(input, sizeof(input), "%s/short.bin", w->dir);
	write_file(model, file, size);
	write_file(input, "short", 5);
	assert_int_equal(RUN(HALRUN " 2>&1"), 2);
	CONTAINS("try: halrun --help");
	assert_int_equal(RUN(HALRUN " -n x a b 2>&1"), 2);
	assert_int_equal(RUN(NPUC " 2>&1"), 2);
	CONTAINS("no model");
	assert_int_equal(RUN(NPUC " a b 2>&1"), 2);
	assert_int_equal(RUN(NPUC " -n a 2>&1"), 2);
	assert_int_equal(RUN(NPUC " /nonexistent.tflite 2>&1"), 1);
	CONTAINS("npuc: /nonexistent.tflite: No such file");
	assert_int_equal(RUN(HALRUN " -t '" TARGET "' %s %s 2>&1", model, input), 1);
	CONTAINS("shorter than the 128 bytes");
	assert_int_equal(RUN(HALRUN " -t '" TARGET "' %s %s 2>&1", model, model), 1);
	CONTAINS("longer than the 128 bytes");
	assert_int_equal(
		RUN(HALRUN " -t '" TARGET "' %s %s %s 2>&1", model, input, input), 1);
	CONTAINS("too many input files; inputs: 'in'");
	assert_int_equal(RUN(HALRUN " -t ref %s -r 1 2>&1", model), 1);
	CONTAINS("ref is not an NPU");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_net),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_in_flight),
		cmocka_unit_test(test_submit_desc),
		cmocka_unit_test(test_own_commands),
		cmocka_unit_test(test_own_queue),
		cmocka_unit_test(test_graphs),
		cmocka_unit_test(test_float_and_file),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_macs),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_command_errors),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
