/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_nets.c - the MLPerf Tiny networks: every tensor of every layer against the
 * checksums of SUMS, the output byte by byte.
 *
 *   test_nets [--figures] [--current] [--inputs REAL RANDOM] [--rect RxC]... SUMS DIR
 * TARGET
 *
 * SUMS is data/tflite/nets.sums, of TensorFlow Lite 2.14's kernels, or with --current
 * nets_current.sums.
 * DIR holds the models and real inputs that nets.py names; without it the exit status is
 * 77.  --inputs: how many of each kind (all); it applies to the --rect that follow it.
 * An image is compiled once and runs on all of the rectangles.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <hal/hal.h>

#include "npuc.h"
#include "oracle.h"

#define RECTS_MAX   8u
#define TENSORS_MAX 256u
#define INPUT_MAX   64u

struct rect {
	uint16_t rows, cols;
	uint32_t real, random; /* inputs of each kind */
};

struct tensor {
	uint32_t index, bytes;
	char name[96];
};

/* A line "input" and those that belong to it. */
struct input {
	bool real;
	char file[96];
	uint64_t seed;   /* or of a real one the first element */
	uint32_t *sums;  /* of the input, then of each tensor */
	uint8_t *output; /* of the network */
	uint32_t output_bytes;
};

struct network {
	char name[32], file[96];
	uint32_t crc; /* of the model file */
	uint32_t bytes;
	struct tensor tensors[TENSORS_MAX];
	uint32_t tensor_count;
	struct input inputs[INPUT_MAX];
	uint32_t input_count;
};

struct bench {
	bool figures, current;
	struct rect rects[RECTS_MAX];
	uint32_t rect_count;
	const char *sums, *dir, *target;
	struct hal_device *dev;
	uint64_t compared, mismatched, runs;
	uint32_t errors; /* networks that could not be run */
};

/* ---- nets.sums -------------------------------------------------------------------- */

static int read_sums(const char *text, struct network *n, struct input *in)
{
	uint32_t count = 0;
	char *end;

	in->sums = calloc(n->tensor_count + 1, sizeof(*in->sums));
	if (!in->sums)
		return -ENOMEM;
	while (count <= n->tensor_count) {
		in->sums[count] = (uint32_t)strtoul(text, &end, 16);
		if (end == text)
			return -EINVAL;
		text = end;
		count++;
	}
	return *text ? -EINVAL : 0;
}

static int read_output(const char *text, struct input *in)
{
	size_t digits = strlen(text);

	in->output = malloc(digits / 2 + 1);
	if (!in->output)
		return -ENOMEM;
	for (; in->output_bytes < digits / 2; in->output_bytes++, text += 2) {
		unsigned byte;

		if (sscanf(text, "%2x", &byte) != 1)
			return -EINVAL;
		in->output[in->output_bytes] = (uint8_t)byte;
	}
	return digits % 2 ? -EINVAL : 0;
}

static int read_input(const char *text, struct network *n)
{
	struct input *in = &n->inputs[n->input_count];
	unsigned long long number;

	if (n->input_count == INPUT_MAX)
		return -EINVAL;
	n->input_count++;
	if (sscanf(text, "random %llx", &number) == 1)
		snprintf(in->file, sizeof(in->file), "random %llx", number);
	else if (sscanf(text, "real %95s %llu", in->file, &number) == 2)
		in->real = true;
	else
		return -EINVAL;
	in->seed = number;
	return 0;
}

static int read_line(const char *line, struct network *n)
{
	struct input *in = n->input_count ? &n->inputs[n->input_count - 1] : NULL;
	struct tensor *t = &n->tensors[n->tensor_count];

	if (strncmp(line, "tensor ", 7) == 0) {
		if (n->tensor_count++ == TENSORS_MAX)
			return -EINVAL;
		return sscanf(line, "tensor %u %u %95[^\n]", &t->index, &t->bytes,
			      t->name) >= 2
			       ? 0
			       : -EINVAL;
	}
	if (strncmp(line, "input ", 6) == 0)
		return read_input(line + 6, n);
	if (in && !in->sums && strncmp(line, "sums ", 5) == 0)
		return read_sums(line + 5, n, in);
	if (in && !in->output && strncmp(line, "output ", 7) == 0)
		return read_output(line + 7, in);
	return -EINVAL;
}

/* *line is the first after "network"; afterwards the next "network" or NULL. */
static int read_network(char **line, char **rest, struct network *n)
{
	int err = 0;

	memset(n, 0, sizeof(*n));
	if (sscanf(*line, "network %31s %95s %u %x", n->name, n->file, &n->bytes,
		   &n->crc) != 4)
		return -EINVAL;
	while (!err && (*line = strtok_r(NULL, "\n", rest)) &&
	       strncmp(*line, "network ", 8) != 0)
		err = read_line(*line, n);
	for (uint32_t i = 0; i < n->input_count && !err; i++)
		if (!n->inputs[i].sums || !n->inputs[i].output)
			err = -EINVAL;
	return err;
}

static void free_network(struct network *n)
{
	for (uint32_t i = 0; i < n->input_count; i++) {
		free(n->inputs[i].sums);
		free(n->inputs[i].output);
	}
}

/* ---- inputs ----------------------------------------------------------------------- */

static int8_t quantized(float value, const struct npuc_port *port)
{
	float q = nearbyintf(value / port->scale) + (float)port->zero_point;

	return (int8_t)(q < -128 ? -128 : q > 127 ? 127 : q);
}

static int real_input(const struct bench *b, const struct input *in,
		      const struct npuc_port *port, uint8_t *bytes)
{
	bool is_float = strstr(in->file, "_f32_") != NULL;
	size_t size, width = is_float ? 4 : 1, start = in->seed * width;
	char path[512];
	uint8_t *file;
	int err = 0;

	snprintf(path, sizeof(path), "%s/%s", b->dir, in->file);
	file = oracle_read_file(path, &size);
	if (!file || start > size || size - start < port->count * width) {
		printf("%s: %s\n", path, file ? "too short" : strerror(errno));
		err = -ENOENT;
	}
	for (size_t i = 0; i < port->count && !err; i++) {
		float value;

		if (is_float) {
			memcpy(&value, file + start + i * width, sizeof(value));
			bytes[i] = (uint8_t)quantized(value, port);
		} else {
			bytes[i] = file[start + i];
		}
	}
	free(file);
	return err;
}

static int make_input(const struct bench *b, const struct input *in,
		      const struct npuc_port *port, uint8_t *bytes)
{
	int err = 0;

	if (in->real)
		err = real_input(b, in, port, bytes);
	else
		oracle_random(in->seed, bytes, port->count);
	if (!err && oracle_crc32(bytes, port->count) != in->sums[0]) {
		printf("input %s: not the bytes the sums were made with\n", in->file);
		err = -EINVAL;
	}
	return err;
}

/* ---- one network ------------------------------------------------------------------ */

struct session {
	struct bench *b;
	const struct network *n;
	const struct rect *rect;
	const struct npuc_program *prog;
	struct npuc_run *run;
	uint8_t *bytes; /* of the longest tensor */
};

static void complain(const struct session *s, const struct input *in, const char *what)
{
	printf("FAILED %s, input %s on %ux%u: %s\n", s->n->name, in->file, s->rect->rows,
	       s->rect->cols, what);
}

/* Only the first wrong tensor is worth a line: the rest follow from it. */
static void compare_tensors(struct session *s, const struct input *in)
{
	bool told = false;
	char why[NPUC_WHY], text[NPUC_WHY + 160];

	for (uint32_t i = 0; i < s->n->tensor_count; i++) {
		const struct tensor *t = &s->n->tensors[i];
		int err = npuc_run_tensor(s->run, t->index, s->bytes, t->bytes, why);

		s->b->compared++;
		if (!err && oracle_crc32(s->bytes, t->bytes) == in->sums[i + 1])
			continue;
		s->b->mismatched++;
		snprintf(text, sizeof(text), "layer %u, tensor %u (%s): %s", i, t->index,
			 t->name, err ? why : "other bytes");
		if (!told)
			complain(s, in, text);
		told = true;
	}
}

/* Once more, as an application reads it. */
static void compare_output(struct session *s, const struct input *in)
{
	char why[NPUC_WHY], text[120];
	int err = npuc_run_read(s->run, 0, true, s->bytes, in->output_bytes, why);

	uint32_t i = 0;

	s->b->compared++;
	while (!err && i < in->output_bytes && s->bytes[i] == in->output[i])
		i++;
	if (!err && i == in->output_bytes)
		return;
	s->b->mismatched++;
	if (!err)
		snprintf(text, sizeof(text), "output element %u is %d, not %d", i,
			 (int8_t)s->bytes[i], (int8_t)in->output[i]);
	complain(s, in, err ? why : text);
}

static int run_input(struct session *s, const struct input *in)
{
	const struct npuc_port *port = &s->prog->inputs[0];
	uint8_t *bytes = malloc(port->count + 1);
	char why[NPUC_WHY] = "";
	uint64_t cycles;
	int err = bytes ? 0 : -ENOMEM;

	if (!err)
		err = make_input(s->b, in, port, bytes);
	if (!err)
		err = npuc_run_write(s->run, 0, bytes, port->count, why);
	if (!err)
		err = npuc_run_kernel(s->run, "run", &cycles, why);
	free(bytes);
	if (err) {
		complain(s, in, why[0] ? why : strerror(-err));
		return err;
	}
	s->b->runs++;
	compare_tensors(s, in);
	compare_output(s, in);
	return 0;
}

static int run_inputs(struct session *s)
{
	uint32_t left[2] = {s->rect->random, s->rect->real};
	int err = 0;

	for (uint32_t i = 0; i < s->n->input_count; i++) {
		const struct input *in = &s->n->inputs[i];
		int one;

		if (!left[in->real])
			continue;
		left[in->real]--;
		one = run_input(s, in);
		err = err ? err : one;
	}
	return err;
}

static int run_rect(struct session *s)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_partition *part = NULL;
	char why[NPUC_WHY] = "";
	uint64_t before = s->b->mismatched;
	int err;

	desc.rows = s->rect->rows;
	desc.cols = s->rect->cols;
	err = hal_partition_create(s->b->dev, &desc, &part);
	if (err)
		snprintf(why, sizeof(why), "%s", hal_last_error());
	if (!err)
		err = npuc_run_open(s->b->dev, part, s->prog, &s->run, why);
	if (err)
		printf("FAILED %s on %ux%u: %s\n", s->n->name, desc.rows, desc.cols, why);
	else
		err = run_inputs(s);
	npuc_run_close(s->run);
	s->run = NULL;
	hal_partition_destroy(part);
	printf("%s %s on %ux%u\n",
	       err || s->b->mismatched != before ? "FAILED" : "ok    ", s->n->name,
	       desc.rows, desc.cols);
	return err;
}

static int check_program(const struct network *n, const struct npuc_program *prog)
{
	if (prog->input_count != 1 || prog->output_count != 1 || !n->input_count ||
	    prog->outputs[0].count != n->inputs[0].output_bytes) {
		printf("FAILED %s: not one input and one output of %u bytes\n", n->name,
		       n->input_count ? n->inputs[0].output_bytes : 0);
		return -EINVAL;
	}
	return 0;
}

static int run_program(struct bench *b, const struct network *n,
		       const struct npuc_program *prog)
{
	struct session s = {.b = b, .n = n, .prog = prog};
	uint32_t longest = 1;
	int err = check_program(n, prog), one;

	for (uint32_t i = 0; i < n->tensor_count; i++)
		longest = n->tensors[i].bytes > longest ? n->tensors[i].bytes : longest;
	for (uint32_t i = 0; i < n->input_count; i++)
		if (n->inputs[i].output_bytes > longest)
			longest = n->inputs[i].output_bytes;
	s.bytes = malloc(longest);
	if (!s.bytes)
		return -ENOMEM;
	for (uint32_t r = 0; r < b->rect_count && !err; r++) {
		s.rect = &b->rects[r];
		one = run_rect(&s);
		err = err ? err : one;
	}
	free(s.bytes);
	return err;
}

/* Another model would only look as if something were broken. */
static int check_model(const struct network *n, const char *path, const uint8_t *model,
		       size_t size)
{
	uint32_t crc = oracle_crc32(model, size);

	if (size == n->bytes && crc == n->crc)
		return 0;
	printf("FAILED %s: %s is another model (%zu bytes, CRC-32 %08x) than the one of "
	       "nets.sums (%u bytes, %08x)\n",
	       n->name, path, size, crc, n->bytes, n->crc);
	return -EINVAL;
}

static int run_network(struct bench *b, const struct network *n)
{
	struct npuc_options options = {.keep = true,
				       .reference = b->current ? NPUC_REFERENCE_CURRENT
							       : NPUC_REFERENCE_2_14};
	char path[512], why[NPUC_WHY] = "";
	struct npuc_model *model = NULL;
	struct npuc_program prog;
	uint8_t *bytes;
	size_t size;
	int err;

	snprintf(path, sizeof(path), "%s/%s", b->dir, n->file);
	bytes = oracle_read_file(path, &size);
	if (!bytes) {
		printf("FAILED %s: %s: %s\n", n->name, path, strerror(errno));
		return -ENOENT;
	}
	err = check_model(n, path, bytes, size);
	if (err) {
		free(bytes);
		return err;
	}
	memset(&prog, 0, sizeof(prog));
	err = npuc_model_parse(bytes, size, path, &model, why);
	if (!err)
		err = npuc_compile(model, &options, &prog, why);
	if (err) {
		printf("FAILED %s: %s\n", n->name, why);
	} else {
		err = run_program(b, n, &prog);
		npuc_program_free(&prog);
	}
	npuc_model_free(model);
	free(bytes);
	return err;
}

/* ---- all of them ------------------------------------------------------------------ */

static int run_networks(struct bench *b)
{
	static struct network n; /* large */
	char *text, *rest, *line;
	size_t size;
	int err;

	text = (char *)oracle_read_file(b->sums, &size);
	if (!text) {
		printf("%s: %s\n", b->sums, strerror(errno));
		return -ENOENT;
	}
	text[size] = 0;
	line = strtok_r(text, "\n", &rest);
	while (line && *line == '#')
		line = strtok_r(NULL, "\n", &rest);
	err = line ? 0 : -EINVAL;
	while (line && !err) {
		err = read_network(&line, &rest, &n);
		if (err)
			printf("%s: network \"%s\" cannot be read: %s\n", b->sums, n.name,
			       strerror(-err));
		else if (run_network(b, &n))
			b->errors++;
		free_network(&n);
	}
	free(text);
	return err;
}

static int parse_arguments(int argc, char **argv, struct bench *b)
{
	unsigned real = UINT32_MAX, random = UINT32_MAX, rows, cols;
	int i = 1;

	while (i < argc && strncmp(argv[i], "--", 2) == 0) {
		if (strcmp(argv[i], "--figures") == 0) {
			b->figures = true;
			i++;
		} else if (strcmp(argv[i], "--current") == 0) {
			b->current = true;
			i++;
		} else if (strcmp(argv[i], "--inputs") == 0 && i + 2 < argc &&
			   sscanf(argv[i + 1], "%u", &real) == 1 &&
			   sscanf(argv[i + 2], "%u", &random) == 1) {
			i += 3;
		} else if (strcmp(argv[i], "--rect") == 0 && i + 1 < argc &&
			   b->rect_count < RECTS_MAX &&
			   sscanf(argv[i + 1], "%ux%u", &rows, &cols) == 2 &&
			   rows < 256 && cols < 256) {
			b->rects[b->rect_count++] = (struct rect){
				(uint16_t)rows, (uint16_t)cols, real, random};
			i += 2;
		} else {
			return -EINVAL;
		}
	}
	if (!b->rect_count)
		b->rects[b->rect_count++] = (struct rect){16, 16, real, random};
	if (argc - i != 3)
		return -EINVAL;
	b->sums = argv[i];
	b->dir = argv[i + 1];
	b->target = argv[i + 2];
	return 0;
}

int main(int argc, char **argv)
{
	struct bench b = {.dev = NULL};
	struct stat st;
	int err = parse_arguments(argc, argv, &b);

	if (err) {
		printf("usage: test_nets [--figures] [--current] [--inputs REAL RANDOM] "
		       "[--rect "
		       "RxC]... "
		       "SUMS DIR TARGET\n");
		return 2;
	}
	if (!*b.dir || stat(b.dir, &st)) {
		printf("no MLPerf Tiny networks in \"%s\": configure with "
		       "-DHAL_MLPERF_TINY=FOLDER\n",
		       b.dir);
		return 77;
	}
	err = hal_open(b.target, NULL, &b.dev);
	if (err) {
		printf("%s: %s\n", b.target, hal_last_error());
		return err == -ENODEV ? 77 : 1;
	}
	err = run_networks(&b);
	if (hal_close(b.dev) && !err) {
		printf("%s\n", hal_last_error());
		err = -EBUSY;
	}
	printf("%llu runs, %llu tensors compared, %llu differ, %u networks not run\n",
	       (unsigned long long)b.runs, (unsigned long long)b.compared,
	       (unsigned long long)b.mismatched, b.errors);
	if (err || b.errors || !b.compared)
		return 1;
	if (b.figures) {
		printf("figure npu.tflite.%smismatched_tensors %llu\n",
		       b.current ? "current_" : "", (unsigned long long)b.mismatched);
		return 0;
	}
	return b.mismatched != 0;
}
