/* SPDX-License-Identifier: Apache-2.0 */
/* halrun.c - the command: runs a TensorFlow Lite model, or a program made of one. */
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "npuc.h"
#include "tool.h"

#define TOP_DEFAULT 5u

static const char help[] =
	"usage: halrun [OPTION...] MODEL.tflite|PROGRAM.npu INPUT.bin...\n"
	"\n"
	"Runs a model once and prints its largest outputs: index, quantized value, real "
	"value.\n"
	"A file for each input, in the model's order: its elements one behind the other, "
	"int8 or\n"
	"uint8, or float32 (little-endian) for one that the model has as float32.\n"
	"\n"
	"  -t, --target TARGET  as in hal_open: npu:0, 'npu:0?rows=8&cols=8'; default: "
	"what "
	"the\n"
	"                       configuration selects\n"
	"  -n, --top N          how many to print of each output (5); 0: none\n"
	"  -o, --output FILE    writes all outputs, one behind the other, as the model "
	"has "
	"them\n"
	"  -h, --help, -V, --version\n"
	"\n"
	"exit status: 0, 1 when a file, the model or the device is at fault, 2 when the\n"
	"command line is wrong.\n";

static const struct option longs[] = {
	{"target", required_argument, NULL, 't'}, {"top", required_argument, NULL, 'n'},
	{"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},      {NULL, 0, NULL, 0},
};

struct args {
	const char *target, *output, *model;
	char **inputs;
	uint32_t input_count;
	uint64_t top;
};

static uint8_t *read_whole(const char *path, uint64_t bytes, char why[NPUC_WHY])
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = f ? malloc(bytes + 1) : NULL;
	size_t got;

	if (!f || !data) {
		snprintf(why, NPUC_WHY, "%s: %s", path,
			 f ? "out of memory" : "cannot be opened");
		if (f)
			(void)fclose(f);
		return NULL;
	}
	got = fread(data, 1, bytes + 1, f);
	(void)fclose(f);
	if (got == bytes)
		return data;
	snprintf(why, NPUC_WHY, "%s: %s %" PRIu64 " bytes, which the input takes", path,
		 got < bytes ? "shorter than the" : "longer than the", bytes);
	free(data);
	return NULL;
}

static int write_inputs(const struct args *a, const struct npuc_program *p,
			struct npuc_run *run, char why[NPUC_WHY])
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < p->input_count; i++) {
		uint64_t bytes = npuc_port_bytes(&p->inputs[i]);
		uint8_t *data = read_whole(a->inputs[i], bytes, why);

		if (!data)
			return -1;
		rc = npuc_run_write(run, i, data, bytes, why);
		free(data);
	}
	return rc;
}

static int32_t value_at(const struct npuc_port *port, const uint8_t *q, uint64_t i)
{
	int32_t whole;

	switch (port->device_type) {
	case NPUC_INT32:
	case NPUC_INT64: /* an index: its lower half has it all */
		memcpy(&whole, q + i * npuc_type_bytes(port->device_type), 4);
		return whole;
	case NPUC_UINT8:
		return q[i];
	default:
		return (int8_t)q[i];
	}
}

/* The largest first; of equal ones the first.  */
static void print_top(const struct npuc_port *port, const uint8_t *q, uint64_t top)
{
	uint64_t last_at = 0;
	int32_t last = INT32_MAX;

	if (top > port->count)
		top = port->count;
	if (top)
		printf("%s: %" PRIu64 " of %" PRIu64 " outputs\n", port->name, top,
		       port->count);
	for (uint64_t n = 0; n < top; n++) {
		int32_t best = INT32_MIN;
		uint64_t at = 0;

		for (uint64_t i = 0; i < port->count; i++) {
			int32_t v = value_at(port, q, i);
			bool left = v < last || (v == last && n && i > last_at);

			if (left && v > best) {
				best = v;
				at = i;
			}
		}
		printf("%6" PRIu64 " %5d %12.6g\n", at, best,
		       port->scale > 0 ? (double)port->scale * (best - port->zero_point)
				       : best);
		last = best;
		last_at = at;
	}
}

static int read_outputs(const struct args *a, const struct npuc_program *p,
			struct npuc_run *run, FILE *file, char why[NPUC_WHY])
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < p->output_count; i++) {
		const struct npuc_port *port = &p->outputs[i];
		uint64_t bytes = npuc_port_bytes(port);
		uint8_t *data = malloc(bytes);

		if (!data) {
			snprintf(why, NPUC_WHY, "out of memory");
			return -1;
		}
		rc = npuc_run_read(run, i, true, data,
				   port->count * npuc_type_bytes(port->device_type), why);
		if (!rc)
			print_top(port, data, a->top);
		if (!rc && file)
			rc = npuc_run_read(run, i, false, data, bytes, why);
		if (!rc && file && fwrite(data, 1, bytes, file) != bytes) {
			snprintf(why, NPUC_WHY, "%s: cannot be written", a->output);
			rc = -1;
		}
		free(data);
	}
	return rc;
}

static int infer(const struct args *a, const struct npuc_program *p, struct device *d,
		 char why[NPUC_WHY])
{
	struct npuc_run *run;
	uint64_t cycles = 0;
	FILE *file = NULL;
	int rc = npuc_run_open(d->dev, d->part, p, &run, why);

	if (rc)
		return rc;
	rc = write_inputs(a, p, run, why);
	if (!rc)
		rc = npuc_run_kernel(run, "run", &cycles, why);
	if (!rc && a->output) {
		file = fopen(a->output, "wb");
		if (!file) {
			snprintf(why, NPUC_WHY, "%s: cannot be written", a->output);
			rc = -1;
		}
	}
	if (!rc)
		rc = read_outputs(a, p, run, file, why);
	if (file && fclose(file) && !rc) {
		snprintf(why, NPUC_WHY, "%s: cannot be written", a->output);
		rc = -1;
	}
	npuc_run_close(run);
	if (!rc)
		printf("%" PRIu64 " cycles on %s, %u x %u\n", cycles, d->info.name,
		       d->info.unit_rows, d->info.unit_cols);
	return rc;
}

static int run(const struct args *a)
{
	struct npuc_program p;
	struct device d = {0};
	char why[NPUC_WHY];
	int rc = npuc_program_open(a->model, NULL, &p, why);

	if (rc)
		return tool_fail("%s", why);
	if (a->input_count != p.input_count) {
		snprintf(why, sizeof(why), "%s has %u inputs, given are %u files",
			 a->model, p.input_count, a->input_count);
		rc = -1;
	}
	if (!rc)
		rc = device_open(a->target, &d, why);
	if (!rc)
		rc = infer(a, &p, &d, why);
	device_close(&d);
	npuc_program_free(&p);
	if (!rc && fflush(stdout))
		return tool_end(0);
	return rc ? tool_fail("%s", why) : 0;
}

int main(int argc, char **argv)
{
	struct args a = {.top = TOP_DEFAULT};
	char *end;
	int c;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	while ((c = getopt_long(argc, argv, "t:n:o:hV", longs, NULL)) != -1) {
		switch (c) {
		case 't':
			a.target = optarg;
			break;
		case 'n':
			a.top = strtoull(optarg, &end, 10);
			if (end == optarg || *end || optarg[0] == '-')
				return tool_usage("--top takes a number, not: %s",
						  optarg);
			break;
		case 'o':
			a.output = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		case 'V':
			return tool_end(tool_version());
		default:
			return tool_usage_said();
		}
	}
	if (argc - optind < 2)
		return tool_usage("a model and its inputs are needed");
	a.model = argv[optind];
	a.inputs = argv + optind + 1;
	a.input_count = (uint32_t)(argc - optind - 1);
	return run(&a);
}
