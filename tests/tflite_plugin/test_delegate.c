/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_delegate.c - libaccelhal_tflite.so in a fake interpreter: orders of calls, ABI,
 * options, partitions, resizing, tenants, threads, faults.
 *
 * $DELEGATE is the library, $DELEGATE_TARGET the device.  Small graphs have convolutions
 * by the identity matrix, so that each adds a constant: the expected bytes are known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_host.h"
#include "model.h"
#include "plugin.h"

#define CHANNELS 2
#define PIXELS   (4 * 4)
#define ELEMENTS (PIXELS * CHANNELS)

/* ---- graphs ----------------------------------------------------------------------- */

static const int8_t identity[CHANNELS * CHANNELS] = {1, 0, 0, 1};
/* Constants of a file lie at any multiple of four. */
static const int32_t biases[8][CHANNELS] = {{0, 0}, {1, 1}, {2, 2}, {3, 3},
					    {4, 4}, {5, 5}, {6, 6}, {7, 7}};

static int activation(struct host *h, const char *name)
{
	struct host_tensor t = {.name = name,
				.type = TFL_INT8,
				.rank = 4,
				.dims = {1, 4, 4, CHANNELS},
				.scale = 1};

	return host_add_tensor(h, &t);
}

static int constant(struct host *h, int type, int rank, const int *dims, const void *data)
{
	struct host_tensor t = {
		.name = "constant", .type = type, .rank = rank, .scale = 1, .data = data};

	memcpy(t.dims, dims, (size_t)rank * sizeof(*dims));
	return host_add_tensor(h, &t);
}

/* TfLiteConvParams, in malloc'ed memory that ends with it. */
static void *conv_params(void)
{
	static const int params[7] = {2 /* valid */, 1, 1, 0, 1, 1, 0};
	void *copy = malloc(sizeof(params));

	assert_non_null(copy);
	return memcpy(copy, params, sizeof(params));
}

/* y = x + bias */
static int add_conv(struct host *h, int x, int bias)
{
	int w = constant(h, TFL_INT8, 4, (int[]){CHANNELS, 1, 1, CHANNELS}, identity);
	int b = constant(h, TFL_INT32, 1, (int[]){CHANNELS}, biases[bias]);
	int y = activation(h, "conv");

	host_add_node(h, 3, 3, NULL, (int[]){x, w, b, -2}, (int[]){y, -2}, conv_params(),
		      NULL);
	return y;
}

static void mirror(struct host *h, const struct tfl_node *node)
{
	const struct tfl_tensor *x = host_tensor(h, node->inputs->data[0]);
	const struct tfl_tensor *y = host_tensor(h, node->outputs->data[0]);

	for (size_t i = 0; i < x->bytes; i++)
		((int8_t *)y->data)[i] = (int8_t) ~((const int8_t *)x->data)[i];
}

/* y = -1 - x, which the device does not have */
static int add_custom(struct host *h, int x)
{
	int y = activation(h, "mirrored");

	host_add_node(h, 32, 1, "Mirror", (int[]){x, -2}, (int[]){y, -2}, NULL, mirror);
	return y;
}

/* ---- computed shapes -------------------------------------------------------------- */

static const int32_t sizes[] = {0, 1, 4, CHANNELS};

/* Tensors that the last add_reshape has made: SHAPE's, the batch, PACK's, RESHAPE's. */
static struct {
	int shape, batch, pack, y;
} made;

/* Whole numbers without quantization: a vector, or with rank 0 a single one. */
static int whole(struct host *h, int rank, int count, const int32_t *data)
{
	struct host_tensor t = {.name = data ? "constant" : "whole",
				.type = TFL_INT32,
				.rank = rank,
				.dims = {count},
				.data = data};

	return host_add_tensor(h, &t);
}

static void *params_of(const int *params, size_t count)
{
	int *copy = malloc(count * sizeof(*copy));

	assert_non_null(copy);
	return memcpy(copy, params, count * sizeof(*copy));
}

static int32_t *numbers(struct host *h, int tensor)
{
	return host_tensor(h, tensor)->data;
}

static void cpu_shape(struct host *h, const struct tfl_node *node)
{
	const struct tfl_ints *dims = host_tensor(h, node->inputs->data[0])->dims;

	memcpy(numbers(h, node->outputs->data[0]), dims->data,
	       (size_t)dims->size * sizeof(int));
}

static void cpu_first(struct host *h, const struct tfl_node *node)
{
	*numbers(h, node->outputs->data[0]) = *numbers(h, node->inputs->data[0]);
}

static void cpu_pack(struct host *h, const struct tfl_node *node)
{
	for (int i = 0; i < node->inputs->size; i++)
		numbers(h, node->outputs->data[0])[i] =
			*numbers(h, node->inputs->data[i]);
}

static void cpu_copy(struct host *h, const struct tfl_node *node)
{
	const struct tfl_tensor *x = host_tensor(h, node->inputs->data[0]);
	struct tfl_tensor *y = host_tensor(h, node->outputs->data[0]);

	assert_int_equal(x->bytes, y->bytes);
	memcpy(y->data, x->data, y->bytes);
}

/* As a converter writes Reshape((4, 4, 2)) for an open batch: the batch is that of tensor
 * of, by SHAPE, STRIDED_SLICE and PACK. */
static int add_reshape(struct host *h, int x, int of)
{
	int zero = whole(h, 1, 1, &sizes[0]), one = whole(h, 1, 1, &sizes[1]);
	int four = whole(h, 0, 0, &sizes[2]), two = whole(h, 0, 0, &sizes[3]);

	made.shape = whole(h, 1, 4, NULL);
	made.batch = whole(h, 0, 0, NULL);
	made.pack = whole(h, 1, 4, NULL);
	made.y = activation(h, "reshaped");
	host_add_node(h, 77, 1, NULL, (int[]){of, -2}, (int[]){made.shape, -2},
		      params_of((int[]){TFL_INT32}, 1), cpu_shape);
	host_add_node(h, 45, 1, NULL, (int[]){made.shape, zero, one, one, -2},
		      (int[]){made.batch, -2}, params_of((int[]){0, 0, 0, 0, 1, 0}, 6),
		      cpu_first);
	host_add_node(h, 83, 2, NULL, (int[]){made.batch, four, four, two, -2},
		      (int[]){made.pack, -2}, params_of((int[]){4, 0}, 2), cpu_pack);
	host_add_node(h, 22, 1, NULL, (int[]){x, made.pack, -2}, (int[]){made.y, -2},
		      params_of((int[9]){0}, 9), cpu_copy);
	return made.y;
}

/* Biases, 'm' for the custom operator, and 'r' for a reshape of an open batch: "3m5" adds
 * 3, mirrors, adds 5. */
static struct host *graph(enum host_version version, const char *layers)
{
	struct host *h = host_make(version);
	int first = activation(h, "in"), x = first;

	for (; *layers; layers++)
		x = *layers == 'm'   ? add_custom(h, x)
		    : *layers == 'r' ? add_reshape(h, x, x)
				     : add_conv(h, x, *layers - '0');
	host_set_ports(h, (int[]){first, -2}, (int[]){x, -2});
	return h;
}

static int8_t expected(const char *layers, int8_t x)
{
	int y = x;

	for (; *layers; layers++) {
		y = *layers == 'm' ? ~y : *layers == 'r' ? y : y + (*layers - '0');
		y = y > 127 ? 127 : y;
	}
	return (int8_t)y;
}

static void fill(struct host *h, int8_t seed)
{
	struct tfl_tensor *t = host_tensor(h, host_inputs(h)->data[0]);

	for (size_t i = 0; i < t->bytes; i++)
		((int8_t *)t->data)[i] = (int8_t)(seed + 37 * (int)i);
}

/* Run once, and count wrong elements of the output. */
static int wrong(struct host *h, const char *layers, int8_t seed)
{
	const struct tfl_tensor *y = host_tensor(h, host_outputs(h)->data[0]);
	int bad = 0;

	fill(h, seed);
	if (host_invoke(h))
		return -1;
	for (size_t i = 0; i < y->bytes; i++)
		bad += ((const int8_t *)y->data)[i] !=
		       expected(layers, (int8_t)(seed + 37 * (int)i));
	return bad;
}

/* ---- delegates -------------------------------------------------------------------- */

static char text[4096]; /* what a call has reported or written */

static const char *target(void)
{
	static char option[512];

	snprintf(option, sizeof(option), "target=%s", getenv("DELEGATE_TARGET"));
	return option;
}

static struct tfl_delegate *create(const char *a, const char *b)
{
	const char *options[] = {target(), a, b, NULL};
	struct tfl_delegate *d = plugin_create(options, text, sizeof(text));

	if (!d)
		print_message("%s\n", text);
	assert_non_null(d);
	return d;
}

/* Apply d, with what it writes in text. */
static int apply(struct host *h, struct tfl_delegate *d)
{
	int rc;

	capture_begin();
	rc = host_apply(h, d);
	capture_end(text, sizeof(text));
	return rc;
}

static void open_graph(struct host *h, struct tfl_delegate *d)
{
	if (apply(h, d) || host_allocate(h)) {
		print_message("%s%s\n", text, host_errors(h));
		fail();
	}
}

static void assert_text(const char *have, const char *part)
{
	if (!strstr(have, part)) {
		print_message("\"%s\" is not in: %s\n", part, have);
		fail();
	}
}

static void assert_parts(const struct host *h, uint32_t taken, uint32_t left,
			 uint32_t parts)
{
	uint32_t l, p, t = host_delegated(h, &l, &p);

	assert_int_equal(t, taken);
	assert_int_equal(l, left);
	assert_int_equal(p, parts);
}

/* ---- orders and ABI --------------------------------------------------------------- */

static void registration_of_every_length(void **state)
{
	static const enum host_version versions[] = {HOST_SHORT, HOST_NOW, HOST_LONG};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct tfl_delegate *d = create(NULL, NULL);
		struct host *h = graph(versions[i], "35");

		open_graph(h, d);
		assert_parts(h, 2, 0, 1);
		assert_int_equal(wrong(h, "35", 1), 0);
		host_free(h);
		plugin_destroy(d);
	}
}

static void delegate_destroyed_before_kernels(void **state)
{
	struct tfl_delegate *d = create(NULL, NULL);
	struct host *h = graph(HOST_NOW, "3m5");

	(void)state;
	open_graph(h, d);
	assert_parts(h, 2, 1, 2);
	plugin_destroy(d);
	assert_int_equal(wrong(h, "3m5", 9), 0);
	host_free(h);
	/* All units are free again. */
	plugin_destroy(create(NULL, NULL));
}

static void destroyed_without_a_graph(void **state)
{
	(void)state;
	plugin_destroy(create(NULL, NULL));
	plugin_destroy(NULL);
}

static void every_node_a_partition(void **state)
{
	struct tfl_delegate *d = create(NULL, NULL);
	struct host *h = graph(HOST_NOW, "123");

	(void)state;
	host_preserve_all(h);
	open_graph(h, d);
	assert_parts(h, 3, 0, 3);
	assert_int_equal(wrong(h, "123", 0), 0);
	host_free(h);
	plugin_destroy(d);
}

/* ---- options ---------------------------------------------------------------------- */

static const struct bad_option {
	const char *option, *other, *wanted;
} bad_options[] = {
	{"colour=red", NULL, "unknown option colour=red; known are target, partition"},
	{"rows=abc", NULL, "option rows=abc: must be a whole number from 0 to 65535"},
	{"rows=65536", NULL, "option rows=65536: must be"},
	{"rows=-1", NULL, "option rows=-1: must be"},
	{"units=", NULL, "option units=: must not be empty"},
	{"units=4294967296", NULL, "option units=4294967296: must be"},
	{"priority=high", NULL, "option priority=high: must be a whole number from -"},
	{"class=fast", NULL, "option class=fast: must be normal, latency or best_effort"},
	{"deadline_us=soon", NULL, "option deadline_us=soon: must be a whole number"},
	{"deadline_us=18446744073709552", NULL, "must be a whole number up to 18446"},
	{"memory_bytes=4Q", NULL, "option memory_bytes=4Q: must be a number of bytes"},
	{"memory_bytes=99999999999999999999", NULL, "must be a number of bytes"},
	{"reference=2.19", NULL, "option reference=2.19: must be current or 2.14"},
	{"strict=maybe", NULL, "option strict=maybe: must be 0 or 1"},
	{"log=3", NULL, "option log=3: must be 0 (summary), 1"},
	{"exclude=CONV_9D", NULL, "option exclude=CONV_9D: 'CONV_9D' is no operator"},
	{"units=4", "rows=2", "option units=4: cannot be combined with rows=2"},
	{"rows=2", NULL, "options rows=2, cols=0, row=0, col=0: a rectangle needs"},
	{"row=3", NULL, "options rows=0, cols=0, row=3, col=0: a rectangle needs"},
	{"partition=left", "units=3", "option partition=left: its section says"},
	{"partition=left", NULL, "left"},
	{"units=100000", NULL, "100000"},
	{"target=npu:9", NULL, "npu:9"},
	{"target=ref", NULL, "NPU"},
	{"target=nonsense:0", NULL, "nonsense"},
};

static void bad_options_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_options) / sizeof(bad_options[0]); i++) {
		const struct bad_option *b = &bad_options[i];
		const char *options[] = {target(), b->option, b->other, NULL};
		struct tfl_delegate *d;

		d = plugin_create(options, text, sizeof(text));
		if (d)
			print_message("%s was accepted\n", b->option);
		assert_null(d);
		assert_text(text, "accelhal: ");
		assert_text(text, b->wanted);
	}
}

/* A queue's options are checked when a partition of the graph is opened. */
static void options_that_the_queue_refuses(void **state)
{
	struct tfl_delegate *d = create("class=best_effort", "deadline_us=5");
	struct host *h = graph(HOST_NOW, "3");

	(void)state;
	assert_int_equal(apply(h, d), TFL_OK);
	assert_text(text, "WARNING: accelhal: 0 of 1 nodes");
	assert_text(text, "deadline");
	assert_parts(h, 0, 1, 0);
	host_free(h);
	plugin_destroy(d);
}

static void report_error_may_be_null(void **state)
{
	const char *const options[] = {"colour=red", NULL};

	(void)state;
	capture_begin();
	assert_null(plugin_create(options, NULL, 0));
	capture_end(text, sizeof(text));
	assert_text(text, "ERROR: accelhal: unknown option colour=red");
}

static void good_options(void **state)
{
	static const char *const good[] = {
		"units=4",           "class=latency",
		"priority=-3",       "deadline_us=1000000",
		"weight=3",          "memory_bytes=16M",
		"min_macs=1",        "max_partitions=7",
		"exclude=TANH",      "reference=2.14",
		"reference=current", "strict=True",
		"strict=0",          "log=0",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct tfl_delegate *d = create(good[i], NULL);
		struct host *h = graph(HOST_NOW, "36");

		open_graph(h, d);
		assert_int_equal(wrong(h, "36", 5), 0);
		host_free(h);
		plugin_destroy(d);
	}
}

/* benchmark_model splits options at ':'. */
static void target_with_at(void **state)
{
	char option[512], *colon;
	const char *options[] = {option, NULL};
	struct tfl_delegate *d;

	(void)state;
	snprintf(option, sizeof(option), "%s", target());
	colon = strchr(option, ':');
	assert_non_null(colon);
	*colon = '@';
	d = plugin_create(options, text, sizeof(text));
	assert_string_equal(text, "");
	assert_non_null(d);
	plugin_destroy(d);
}

/* ---- what is taken ---------------------------------------------------------------- */

static void summary(void **state)
{
	struct tfl_delegate *d = create(NULL, NULL);
	struct host *h = graph(HOST_NOW, "3m5");

	(void)state;
	open_graph(h, d);
	assert_text(text, "INFO: accelhal: 2 of 3 nodes, 128 of 128 MACs in 2 partitions "
			  "on npu:0");
	assert_text(text, "; the CPU keeps 1 CUSTOM Mirror (custom operator)\n");
	assert_null(strstr(strchr(text, '\n') + 1, "accelhal"));
	assert_int_equal(wrong(h, "3m5", 9), 0);
	host_free(h);
	h = graph(HOST_NOW, "3");
	open_graph(h, d);
	assert_text(text, "1 of 1 nodes, 64 of 64 MACs in 1 partition on npu:0");
	assert_text(text, "nothing stays on the CPU\n");
	host_free(h);
	plugin_destroy(d);
}

/* What stays for the same reason has it once. */
static void summary_of_one_reason(void **state)
{
	struct tfl_delegate *d = create("exclude=0,1,2", NULL);
	struct host *h = graph(HOST_NOW, "3m5");

	(void)state;
	assert_int_equal(apply(h, d), TFL_OK);
	assert_text(text,
		    "; the CPU keeps 2 CONV_2D, 1 CUSTOM Mirror (option exclude)\n");
	host_free(h);
	plugin_destroy(d);
}

static void logged(void **state)
{
	struct tfl_delegate *d = create("log=2", NULL);
	struct host *h = graph(HOST_NOW, "3m5");

	(void)state;
	open_graph(h, d);
	assert_text(text, "partition 1 of 2: 1 node from node 0, 1 in, 1 out, 64 MACs");
	assert_text(text, "partition 2 of 2: 1 node from node 2, 1 in, 1 out, 64 MACs");
	assert_text(text, "node 1 (CUSTOM Mirror) stays on the CPU: custom operator");
	assert_int_equal(wrong(h, "3m5", 1), 0);
	assert_int_equal(wrong(h, "3m5", 2), 0);
	capture_begin();
	host_free(h);
	capture_end(text, sizeof(text));
	assert_text(text, "partition at node 0: 2 inferences, ");
	assert_text(text, " of the peak of 256 units\n");
	plugin_destroy(d);
}

static void strict_names_leftovers(void **state)
{
	struct tfl_delegate *d = create("strict=1", NULL);
	struct host *h = graph(HOST_NOW, "3m5");

	(void)state;
	assert_int_equal(apply(h, d), TFL_DELEGATE_ERROR);
	assert_text(host_errors(h), "accelhal: strict=1, and 1 of 3 nodes would stay on "
				    "the CPU: 1 CUSTOM Mirror (custom operator)\n");
	assert_parts(h, 0, 3, 0);
	host_free(h);
	h = graph(HOST_NOW, "35");
	open_graph(h, d);
	assert_int_equal(wrong(h, "35", 2), 0);
	host_free(h);
	plugin_destroy(d);
}

static void excluded(void **state)
{
	struct tfl_delegate *d = create("exclude=1", "units=8");
	struct host *h = graph(HOST_NOW, "355");

	(void)state;
	assert_int_equal(apply(h, d), TFL_OK);
	assert_text(text, "2 of 3 nodes");
	assert_text(text, "1 CONV_2D (option exclude)");
	assert_parts(h, 2, 1, 2);
	host_free(h);
	plugin_destroy(d);
	d = create("exclude=tanh,conv_2d", NULL);
	h = graph(HOST_NOW, "35");
	assert_int_equal(apply(h, d), TFL_OK);
	assert_parts(h, 0, 2, 0);
	host_free(h);
	plugin_destroy(d);
}

/* "33m5" has a partition of 128 MACs and one of 64. */
static void small_partitions_are_left(void **state)
{
	struct tfl_delegate *d = create("min_macs=100", NULL);
	struct host *h = graph(HOST_NOW, "33m5");

	(void)state;
	assert_int_equal(apply(h, d), TFL_OK);
	assert_parts(h, 2, 2, 1);
	assert_text(text, "its partition has 64 MACs, fewer than min_macs=100");
	host_free(h);
	plugin_destroy(d);
}

/* Return the first node of the partition that saves the most, by lines of log=1. */
static int best_by_log(int *parts)
{
	static const char *const from = " from node ";
	double most = -1e18, saved;
	int best = -1, node;

	*parts = 0;
	for (const char *at = strstr(text, from); at; at = strstr(at + 1, from)) {
		const char *end = strstr(at, " estimated, ");

		if (sscanf(at + strlen(from), "%d", &node) != 1 || !end ||
		    sscanf(end + strlen(" estimated, "), "%lf cycles saved", &saved) != 1)
			fail_msg("no partition: %s", at);
		++*parts;
		if (saved > most) {
			most = saved;
			best = node;
		}
	}
	return best;
}

static void best_partitions_are_taken(void **state)
{
	struct tfl_delegate *d = create("log=1", NULL);
	struct host *h = graph(HOST_NOW, "32m1234m5");
	int parts, best;

	(void)state;
	assert_int_equal(apply(h, d), TFL_OK);
	best = best_by_log(&parts);
	assert_int_equal(parts, 3);
	host_free(h);
	plugin_destroy(d);

	d = create("max_partitions=1", "log=1");
	h = graph(HOST_NOW, "32m1234m5");
	assert_int_equal(apply(h, d), TFL_OK);
	assert_int_equal(best_by_log(&parts), best);
	assert_int_equal(parts, 1);
	assert_text(text, "CONV_2D (max_partitions=1, and others save more cycles");
	host_free(h);
	plugin_destroy(d);
}

static void assert_left(struct host *h, const char *reason)
{
	struct tfl_delegate *d = create("log=2", NULL);

	assert_int_equal(apply(h, d), TFL_OK);
	assert_text(text, reason);
	assert_parts(h, 0, 1, 0);
	host_free(h);
	plugin_destroy(d);
}

static void tensors_that_are_not_claimed(void **state)
{
	struct host *h = graph(HOST_NOW, "3");

	(void)state;
	host_tensor(h, 0)->is_variable = true;
	assert_left(h, "node 0 (CONV_2D) stays on the CPU: input is a variable");
	h = graph(HOST_NOW, "3");
	host_tensor(h, host_outputs(h)->data[0])->allocation_type = TFL_DYNAMIC;
	assert_left(h, "output has a dynamic shape");
	h = graph(HOST_NOW, "3");
	host_tensor(h, 0)->type = TFL_FLOAT32;
	assert_left(h, "input is float32");
	h = graph(HOST_NOW, "3");
	host_tensor(h, 1)->sparsity = h;
	assert_left(h, "a constant is sparse");
	h = graph(HOST_NOW, "3");
	host_tensor(h, host_inputs(h)->data[0])->allocation_type = TFL_PERSISTENT_RO;
	host_tensor(h, host_inputs(h)->data[0])->data = (void *)(uintptr_t)identity;
	assert_left(h, "all inputs are constant");
}

static void empty_graph(void **state)
{
	struct tfl_delegate *d = create("strict=1", NULL);
	struct host *h = graph(HOST_NOW, "");

	(void)state;
	open_graph(h, d);
	assert_text(text, "INFO: accelhal: 0 of 0 nodes, 0 of 0 MACs in 0 partitions");
	host_free(h);
	plugin_destroy(d);
}

/* A layer whose input and output have 128 KiB each. */
static struct host *large_graph(void)
{
	struct host *h = graph(HOST_NOW, "3");

	host_resize_batch(h, 1, 131072 / ELEMENTS);
	return h;
}

/* A network that is larger than the memory stays on the CPU; so does one that finds the
 * memory in use, until that is freed. */
static void memory_is_short(void **state)
{
	struct tfl_delegate *d = create("memory_bytes=192K", NULL);
	struct host *h = large_graph(), *other;

	(void)state;
	assert_int_equal(apply(h, d), TFL_OK);
	assert_text(text, "WARNING: accelhal: 0 of 1 nodes");
	assert_text(text, "KiB of device memory, and 0.0 of 192.0 KiB are in use");
	assert_parts(h, 0, 1, 0);
	host_free(h);
	plugin_destroy(d);

	d = create("memory_bytes=400K", NULL);
	h = large_graph();
	other = large_graph();
	open_graph(h, d);
	assert_parts(h, 1, 0, 1);
	assert_int_equal(apply(other, d), TFL_OK);
	assert_parts(other, 0, 1, 0);
	host_free(other);
	host_free(h);
	h = large_graph();
	open_graph(h, d);
	assert_int_equal(wrong(h, "3", 1), 0);
	host_free(h);
	plugin_destroy(d);
}

/* npuc refuses one node of several: it alone is left. */
static void refused_node(void **state)
{
	struct tfl_delegate *d = create("log=2", NULL);
	struct host *h = graph(HOST_NOW, "353");
	struct tfl_affine *q = host_tensor(h, 6)->quantization.params; /* of node 1 */

	(void)state;
	assert_string_equal(host_tensor(h, 6)->name, "conv");
	q->scale->data[0] = -1;
	assert_int_equal(apply(h, d), TFL_OK);
	assert_text(text, "(CONV_2D) stays on the CPU: ");
	assert_parts(h, 1, 2, 1);
	host_free(h);
	plugin_destroy(d);
}

/* ---- shapes ----------------------------------------------------------------------- */

static void resized(void **state)
{
	struct tfl_delegate *d = create("log=1", NULL);
	struct host *h = graph(HOST_NOW, "3m5");
	static const int batches[] = {1, 3, 2, 1};

	(void)state;
	open_graph(h, d);
	for (size_t i = 1; i < 4; i++) {
		host_resize_batch(h, batches[i - 1], batches[i]);
		capture_begin();
		assert_int_equal(host_allocate(h), TFL_OK);
		capture_end(text, sizeof(text));
		assert_text(text, "partition at node 2 compiled for other shapes");
		assert_int_equal(host_tensor(h, 0)->bytes, batches[i] * ELEMENTS);
		assert_int_equal(wrong(h, "3m5", (int8_t)i), 0);
	}
	/* The same shapes again need no compiler. */
	capture_begin();
	assert_int_equal(host_allocate(h), TFL_OK);
	capture_end(text, sizeof(text));
	assert_string_equal(text, "");
	host_free(h);
	plugin_destroy(d);
}

/* The same number of bytes in another shape. */
static void reshaped(void **state)
{
	struct tfl_delegate *d = create(NULL, NULL);
	struct host *h = graph(HOST_NOW, "35");

	(void)state;
	open_graph(h, d);
	for (int t = 0; t < (int)host_context(h)->tensors_size; t++) {
		struct tfl_ints *dims = host_tensor(h, t)->dims;

		if (host_tensor(h, t)->allocation_type == TFL_ARENA_RW) {
			dims->data[1] = 2;
			dims->data[2] = 8;
		}
	}
	assert_int_equal(host_allocate(h), TFL_OK);
	assert_int_equal(wrong(h, "35", 4), 0);
	host_free(h);
	plugin_destroy(d);
}

/* ---- computed shapes -------------------------------------------------------------- */

static void assert_dims(struct host *h, int tensor, const int dims[4])
{
	const struct tfl_ints *have = host_tensor(h, tensor)->dims;

	assert_int_equal(have->size, 4);
	assert_memory_equal(have->data, dims, 4 * sizeof(*dims));
}

/* Resize from one batch to others and back, and allocate; propagate: give the tensors
 * what the interpreter computes before. */
static void resize_reshaped(const char *layers, uint32_t left, uint32_t parts,
			    void (*propagate)(struct host *h, int from, int to))
{
	static const int batches[] = {1, 3, 2, 1};
	struct tfl_delegate *d = create("log=1", NULL);
	struct host *h = graph(HOST_NOW, layers);

	assert_int_equal(apply(h, d), TFL_OK);
	assert_parts(h, (uint32_t)(strlen(layers) + 3) - left, left, parts);
	propagate(h, 1, 1);
	assert_int_equal(host_allocate(h), TFL_OK);
	assert_int_equal(wrong(h, layers, 1), 0);
	for (size_t i = 1; i < 4; i++) {
		propagate(h, batches[i - 1], batches[i]);
		capture_begin();
		assert_int_equal(host_allocate(h), TFL_OK);
		capture_end(text, sizeof(text));
		assert_text(text, "compiled for other shapes");
		assert_dims(h, host_outputs(h)->data[0],
			    (int[]){batches[i], 4, 4, CHANNELS});
		assert_int_equal(wrong(h, layers, (int8_t)i), 0);
	}
	capture_begin();
	assert_int_equal(host_allocate(h), TFL_OK);
	capture_end(text, sizeof(text));
	assert_string_equal(text, "");
	host_free(h);
	plugin_destroy(d);
}

/* Since LiteRT 1: whole numbers that follow from shapes are computed before kernels
 * prepare. */
static void propagate_now(struct host *h, int from, int to)
{
	static int32_t shape[4], batch, pack[4];
	const int tensors[] = {made.shape, made.batch, made.pack};
	int32_t *const data[] = {shape, &batch, pack};

	host_resize_batch(h, from, to);
	shape[0] = pack[0] = batch = to;
	shape[1] = shape[2] = pack[1] = pack[2] = 4;
	shape[3] = pack[3] = CHANNELS;
	for (size_t i = 0; i < 3; i++) {
		struct tfl_tensor *t = host_tensor(h, tensors[i]);

		if (t->allocation_type == TFL_ARENA_RW)
			free(t->data);
		t->allocation_type = TFL_PERSISTENT_RO;
		t->data = data[i];
	}
}

/* Until 2.14: the result of RESHAPE is dynamic, and nothing behind it is known. */
static void propagate_never(struct host *h, int from, int to)
{
	struct tfl_tensor *y = host_tensor(h, made.y);

	(void)from;
	host_resize(h, host_inputs(h)->data[0], (int[]){to, 4, 4, CHANNELS});
	y->allocation_type = TFL_DYNAMIC;
	free(y->data);
	y->data = NULL;
}

static void shapes_are_folded(void **state)
{
	(void)state;
	resize_reshaped("3r5", 0, 1, propagate_now);
	resize_reshaped("3r5", 0, 1, propagate_never);
	resize_reshaped("r", 0, 1, propagate_never);
	resize_reshaped("3mr5", 1, 2, propagate_now);
}

/* The interpreter was allocated before it got the delegate. */
static void shapes_known_before(void **state)
{
	struct tfl_delegate *d = create("strict=1", NULL);
	struct host *h = graph(HOST_NOW, "3r5");

	(void)state;
	propagate_now(h, 1, 3);
	open_graph(h, d);
	assert_parts(h, 6, 0, 1);
	assert_int_equal(wrong(h, "3r5", 1), 0);
	propagate_now(h, 3, 2);
	assert_int_equal(host_allocate(h), TFL_OK);
	assert_int_equal(wrong(h, "3r5", 2), 0);
	host_free(h);
	plugin_destroy(d);
}

/* Check that the chain and its reader stay on the CPU, with the bytes of layers. */
static void assert_chain_left(struct host *h, struct tfl_delegate *d, const char *layers,
			      uint32_t taken, const char *reason)
{
	uint32_t left, parts;

	open_graph(h, d);
	assert_text(text, reason);
	assert_int_equal(host_delegated(h, &left, &parts), taken);
	assert_int_equal(wrong(h, layers, 1), 0);
	host_free(h);
	plugin_destroy(d);
}

/* Another reader of a shape: the CPU, the caller, a partition that waits for the CPU. */
static void shapes_read_elsewhere(void **state)
{
	struct host *h = graph(HOST_NOW, "3r5");
	int first, x, y, last;

	(void)state;
	host_add_node(h, 32, 1, "Copy", (int[]){made.pack, -2},
		      (int[]){whole(h, 1, 4, NULL), -2}, NULL, cpu_copy);
	assert_chain_left(h, create("log=2", NULL), "3r5", 2,
			  "(RESHAPE) stays on the CPU: an input is computed from shapes "
			  "on the CPU");

	h = graph(HOST_NOW, "3r5");
	first = host_inputs(h)->data[0];
	last = host_outputs(h)->data[0];
	host_set_ports(h, (int[]){first, -2}, (int[]){last, made.shape, -2});
	assert_chain_left(h, create("log=2", NULL), "3r5", 2,
			  "(SHAPE) stays on the CPU: a shape that is read outside of its "
			  "partition");

	h = host_make(HOST_NOW);
	first = activation(h, "in");
	x = add_conv(h, first, 3);
	y = add_custom(h, x);
	last = add_conv(h, add_reshape(h, y, x), 5);
	host_set_ports(h, (int[]){first, -2}, (int[]){last, -2});
	assert_chain_left(h, create("log=2", NULL), "3mr5", 2,
			  "(RESHAPE) stays on the CPU: an input is computed from shapes "
			  "on the CPU");

	h = graph(HOST_NOW, "3r5");
	assert_chain_left(h, create("exclude=SHAPE", "log=2"), "3r5", 2,
			  "(STRIDED_SLICE) stays on the CPU: input is int32");
}

/* Make RESHAPE of the input to the shape of a float tensor, then an addition. */
static struct host *graph_of_float(int *real)
{
	struct host_tensor t = {.name = "float",
				.type = TFL_FLOAT32,
				.rank = 4,
				.dims = {1, 4, 4, CHANNELS}};
	struct host *h = host_make(HOST_NOW);
	int x = activation(h, "in"), shape = whole(h, 1, 4, NULL);
	int y = activation(h, "reshaped");

	*real = host_add_tensor(h, &t);
	host_add_node(h, 77, 1, NULL, (int[]){*real, -2}, (int[]){shape, -2},
		      params_of((int[]){TFL_INT32}, 1), cpu_shape);
	host_add_node(h, 22, 1, NULL, (int[]){x, shape, -2}, (int[]){y, -2},
		      params_of((int[9]){0}, 9), cpu_copy);
	y = add_conv(h, y, 3);
	host_set_ports(h, (int[]){x, *real, -2}, (int[]){y, -2});
	return h;
}

/* Of a tensor that the NPU cannot read, the shape alone counts. */
static void shapes_of_floats(void **state)
{
	struct tfl_delegate *d = create("strict=1", NULL);
	int real, out;
	struct host *h = graph_of_float(&real);

	(void)state;
	open_graph(h, d);
	assert_parts(h, 3, 0, 1);
	assert_int_equal(wrong(h, "3", 1), 0);
	host_resize(h, real, (int[]){2, 8, 1, CHANNELS});
	assert_int_equal(host_allocate(h), TFL_OK);
	out = host_outputs(h)->data[0];
	assert_dims(h, out, (int[]){2, 8, 1, CHANNELS});
	assert_int_equal(wrong(h, "3", 2), 0);
	host_resize(h, real, (int[]){1, 8, 8, CHANNELS});
	assert_int_equal(host_allocate(h), TFL_DELEGATE_ERROR);
	assert_text(host_errors(h), "RESHAPE");
	host_free(h);

	/* The refused layer is named, though SHAPE is no layer. */
	h = graph_of_float(&real);
	out = host_outputs(h)->data[0];
	((struct tfl_affine *)host_tensor(h, out)->quantization.params)->scale->data[0] =
		-1;
	plugin_destroy(d);
	d = create("log=2", NULL);
	assert_int_equal(apply(h, d), TFL_OK);
	assert_text(text, "node 2 (CONV_2D) stays on the CPU: ");
	assert_parts(h, 2, 1, 1);
	host_free(h);
	plugin_destroy(d);
}

/* Sizes that the file leaves open are computed, not compared. */
static void open_sizes(void **state)
{
	struct tfl_delegate *d = create("strict=1", NULL);
	struct host *h = graph(HOST_NOW, "35");

	(void)state;
	for (int t = 0; t < (int)host_context(h)->tensors_size; t++)
		if (host_tensor(h, t)->allocation_type == TFL_ARENA_RW)
			host_open(h, t, 1);
	host_resize(h, host_inputs(h)->data[0], (int[]){3, 4, 4, CHANNELS});
	open_graph(h, d);
	assert_dims(h, host_outputs(h)->data[0], (int[]){3, 4, 4, CHANNELS});
	assert_int_equal(wrong(h, "35", 1), 0);
	host_free(h);
	plugin_destroy(d);
}

/* ---- tenants, threads, faults ----------------------------------------------------- */

static void two_delegates_on_one_device(void **state)
{
	struct tfl_delegate *a = create("units=128", NULL),
			    *b = create("units=128", NULL);
	const char *const more[] = {target(), "units=1", NULL};
	struct host *x = graph(HOST_NOW, "3m5"), *y = graph(HOST_LONG, "7");

	(void)state;
	assert_null(plugin_create(more, text, sizeof(text)));
	assert_text(text, "0 of 256 units are free");
	open_graph(x, a);
	open_graph(y, b);
	assert_int_equal(wrong(x, "3m5", 1), 0);
	assert_int_equal(wrong(y, "7", 2), 0);
	assert_int_equal(wrong(x, "3m5", 3), 0);
	plugin_destroy(b);
	host_free(y);
	host_free(x);
	plugin_destroy(a);
}

/* What another delegate of ours has is not on the CPU, and no reason to refuse. */
static void two_delegates_in_one_graph(void **state)
{
	struct tfl_delegate *a = create("units=128", "exclude=1"),
			    *b = create("units=128", "strict=1");
	struct host *h = graph(HOST_NOW, "35");

	(void)state;
	assert_int_equal(apply(h, a), TFL_OK);
	assert_text(text, "1 of 2 nodes");
	open_graph(h, b);
	assert_text(text, "INFO: accelhal: 1 of 1 nodes, 64 of 64 MACs in 1 partition");
	assert_text(text, "; nothing stays on the CPU\n");
	assert_int_equal(wrong(h, "35", 1), 0);
	host_free(h);
	plugin_destroy(a);
	plugin_destroy(b);
}

#define THREADS 3
#define ROUNDS  10

struct worker {
	pthread_t thread;
	struct tfl_delegate *d;
	struct host *h;
	int bad;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	if (host_apply(w->h, w->d) || host_allocate(w->h))
		w->bad = 1;
	for (int i = 0; i < ROUNDS && !w->bad; i++)
		w->bad += wrong(w->h, "3m5", (int8_t)i);
	return NULL;
}

static void interpreters_in_threads(void **state)
{
	struct tfl_delegate *d = create(NULL, NULL);
	struct worker workers[THREADS] = {{0}};

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		workers[i].h = graph(HOST_NOW, "3m5");
		workers[i].d = d;
	}
	capture_begin();
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	capture_end(text, sizeof(text));
	plugin_destroy(d);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(workers[i].bad, 0);
		assert_parts(workers[i].h, 2, 1, 2);
		host_free(workers[i].h);
	}
}

/* The layer `fault` fails every third submission to the device. */
static void device_fails_in_invoke(void **state)
{
	char option[600];
	const char *const options[] = {option, NULL};
	struct tfl_delegate *d;
	struct host *h = graph(HOST_NOW, "3");
	int failed = 0;

	(void)state;
	snprintf(option, sizeof(option), "%s&layers.fault=submit:3:EIO", target());
	d = plugin_create(options, text, sizeof(text));
	assert_non_null(d);
	open_graph(h, d);
	for (int i = 0; i < 6; i++) {
		int bad = wrong(h, "3", (int8_t)i);

		failed += bad < 0;
		if (bad < 0)
			assert_text(host_errors(h), "injected: call ");
		else
			assert_int_equal(bad, 0);
	}
	assert_int_equal(failed, 2);
	host_free(h);
	plugin_destroy(d);
}

static void refused_after_fork(void **state)
{
	struct tfl_delegate *d = create(NULL, NULL);
	struct host *h = graph(HOST_NOW, "3"), *other = graph(HOST_NOW, "3");
	int status;
	pid_t child;

	(void)state;
	open_graph(h, d);
	child = fork();
	if (child == 0) {
		bool ok = wrong(h, "3", 1) < 0 &&
			  strstr(host_errors(h), "is a fork of") &&
			  host_apply(other, d) != TFL_OK &&
			  strstr(host_errors(other), "load it after the fork");

		host_free(h);
		host_free(other);
		plugin_destroy(d);
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(wrong(h, "3", 1), 0);
	host_free(h);
	host_free(other);
	plugin_destroy(d);
}

/* ---- cache, networks -------------------------------------------------------------- */

static int count_files(const char *folder)
{
	DIR *d = opendir(folder);
	int n = 0;

	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d)) != NULL;)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void cached(void **state)
{
	char folder[] = "/tmp/delegate.XXXXXX", option[64], command[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(option, sizeof(option), "cache_dir=%s", folder);
	for (int i = 0; i < 2; i++) {
		struct tfl_delegate *d = create(option, NULL);
		struct host *h = graph(HOST_NOW, "3m5");

		open_graph(h, d);
		assert_null(strstr(text, "WARNING"));
		assert_int_equal(wrong(h, "3m5", 1), 0);
		assert_int_equal(count_files(folder), 2);
		host_free(h);
		plugin_destroy(d);
	}
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

/* A folder that cannot be written costs time, and no answer. */
static void not_cached(void **state)
{
	struct tfl_delegate *d = create("cache_dir=/nonexistent/folder", NULL);
	struct host *h = graph(HOST_NOW, "3");

	(void)state;
	open_graph(h, d);
	assert_text(text, "WARNING: accelhal: ");
	assert_text(text, "/nonexistent/folder");
	assert_int_equal(wrong(h, "3", 1), 0);
	host_free(h);
	plugin_destroy(d);
}

/* Run the model with libnpuc. */
static void run_npuc(const struct npuc_model *m, const int8_t *in, size_t in_bytes,
		     int8_t *out, size_t out_bytes)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct npuc_program program = {0};
	struct hal_partition *part;
	struct hal_device *dev;
	struct npuc_run *run;
	char why[NPUC_WHY];

	desc.rows = desc.cols = 8;
	assert_int_equal(hal_open(getenv("DELEGATE_TARGET"), NULL, &dev), 0);
	assert_int_equal(hal_partition_create(dev, &desc, &part), 0);
	assert_int_equal(npuc_compile(m, NULL, &program, why), 0);
	assert_int_equal(npuc_run_open(dev, part, &program, &run, why), 0);
	assert_int_equal(npuc_run_write(run, 0, in, in_bytes, why), 0);
	assert_int_equal(npuc_run_kernel(run, "run", NULL, why), 0);
	assert_int_equal(npuc_run_read(run, 0, false, out, out_bytes, why), 0);
	npuc_run_close(run);
	npuc_program_free(&program);
	hal_partition_destroy(part);
	hal_close(dev);
}

/* data/digits whole: the bytes are those of npuc_run. */
static void network(void **state)
{
	struct tfl_delegate *d = create("strict=1", NULL);
	const struct tfl_tensor *x, *y;
	struct npuc_model *m;
	char why[NPUC_WHY];
	int8_t want[4096];
	struct host *h;

	(void)state;
	if (npuc_model_load(HAL_SOURCE_DIR "/data/digits/digits.tflite", &m, why))
		fail_msg("%s", why);
	h = host_of_model(HOST_NOW, m);
	open_graph(h, d);
	x = host_tensor(h, host_inputs(h)->data[0]);
	y = host_tensor(h, host_outputs(h)->data[0]);
	assert_in_range(y->bytes, 1, sizeof(want));
	for (int8_t seed = 1; seed < 4; seed++) {
		fill(h, seed);
		assert_int_equal(host_invoke(h), TFL_OK);
		run_npuc(m, x->data, x->bytes, want, y->bytes);
		assert_memory_equal(y->data, want, y->bytes);
	}
	host_free(h);
	npuc_model_free(m);
	plugin_destroy(d);
}

/* An argument names the only test to run. */
int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(registration_of_every_length),
		cmocka_unit_test(delegate_destroyed_before_kernels),
		cmocka_unit_test(destroyed_without_a_graph),
		cmocka_unit_test(every_node_a_partition),
		cmocka_unit_test(bad_options_are_refused),
		cmocka_unit_test(options_that_the_queue_refuses),
		cmocka_unit_test(report_error_may_be_null),
		cmocka_unit_test(good_options),
		cmocka_unit_test(target_with_at),
		cmocka_unit_test(summary),
		cmocka_unit_test(summary_of_one_reason),
		cmocka_unit_test(logged),
		cmocka_unit_test(strict_names_leftovers),
		cmocka_unit_test(excluded),
		cmocka_unit_test(small_partitions_are_left),
		cmocka_unit_test(best_partitions_are_taken),
		cmocka_unit_test(tensors_that_are_not_claimed),
		cmocka_unit_test(empty_graph),
		cmocka_unit_test(memory_is_short),
		cmocka_unit_test(refused_node),
		cmocka_unit_test(resized),
		cmocka_unit_test(reshaped),
		cmocka_unit_test(shapes_are_folded),
		cmocka_unit_test(shapes_known_before),
		cmocka_unit_test(shapes_read_elsewhere),
		cmocka_unit_test(shapes_of_floats),
		cmocka_unit_test(open_sizes),
		cmocka_unit_test(two_delegates_on_one_device),
		cmocka_unit_test(two_delegates_in_one_graph),
		cmocka_unit_test(interpreters_in_threads),
		cmocka_unit_test(device_fails_in_invoke),
		cmocka_unit_test(refused_after_fork),
		cmocka_unit_test(cached),
		cmocka_unit_test(not_cached),
		cmocka_unit_test(network),
	};

	plugin_load();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
