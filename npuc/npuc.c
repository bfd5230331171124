/* SPDX-License-Identifier: Apache-2.0 */
/* npuc.c - the command: compiles TensorFlow Lite models for the NPU and explains them. */
#define _GNU_SOURCE
#include "npuc.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "device.h"
#include "reference.h"
#include "tool.h"

static const char help[] =
	"usage: npuc [OPTION...] MODEL.tflite [-o PROGRAM.npu]\n"
	"\n"
	"The file name - means standard input or standard output.\n"
	"\n"
	"  -o, --output FILE    writes the program, which runs on every array size\n"
	"  -e, --explain        prints a line per layer: shape, multiply-accumulates, "
	"estimated\n"
	"                       cycles on 16 x 16, and measured ones if a device can be "
	"opened\n"
	"  -t, --target TARGET  the device to measure on, as in hal_open: npu:0, "
	"'npu:0?rows=8&cols=8';\n"
	"                       default: what the configuration selects\n"
	"  -n, --no-device      do not measure\n"
	"  -c, --check          lists inputs, outputs and everything that keeps the "
	"model from\n"
	"                       being compiled; writes nothing\n"
	"  -j, --json           prints the result of --check as JSON\n" REFERENCE_HELP
	"      --operators      lists the operators that are compiled\n"
	"  -h, --help, -V, --version\n"
	"\n"
	"exit status: 0, 1 when a file, the model or the device is at fault, 2 when the\n"
	"command line is wrong.\n";

enum { OPT_OPERATORS = 256, OPT_REFERENCE };

static const struct option longs[] = {
	{"output", required_argument, NULL, 'o'},
	{"explain", no_argument, NULL, 'e'},
	{"target", required_argument, NULL, 't'},
	{"no-device", no_argument, NULL, 'n'},
	{"check", no_argument, NULL, 'c'},
	{"json", no_argument, NULL, 'j'},
	{"reference", required_argument, NULL, OPT_REFERENCE},
	{"operators", no_argument, NULL, OPT_OPERATORS},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

struct args {
	const char *model, *output, *target;
	bool explain, no_device, check, json;
	enum npuc_reference reference;
};

/* Cycles of each layer alone, then of the whole; 0: none measured. */
static int measure(const struct npuc_program *p, struct device *d, uint64_t *cycles,
		   uint64_t *whole, char why[NPUC_WHY])
{
	struct npuc_run *run;
	int rc = npuc_run_open(d->dev, d->part, p, &run, why);

	if (rc)
		return rc;
	rc = npuc_run_kernel(run, "run", whole, why);
	for (uint32_t i = 0; !rc && i < p->layer_count; i++)
		if (p->layers[i].kernel[0])
			rc = npuc_run_kernel(run, p->layers[i].kernel, &cycles[i], why);
	npuc_run_close(run);
	return rc;
}

/* Of all multiply-accumulates the units could have done in that time. */
static void print_use(uint64_t macs, uint64_t cycles, uint64_t units)
{
	if (macs && cycles && units)
		printf(" %5.1f%%\n",
		       100.0 * (double)macs / ((double)cycles * (double)units));
	else
		printf(" %6s\n", "");
}

static void print_cycles(uint64_t cycles, bool measured)
{
	if (measured)
		printf(" %10" PRIu64, cycles);
	else
		printf(" %10s", "-");
}

static void print_table(const struct npuc_program *p, const uint64_t *cycles,
			uint64_t whole, uint64_t units)
{
	uint64_t sum = 0;

	printf("%5s  %-24s %-36s %10s %10s %10s %6s\n", "LAYER", "OPERATOR", "SHAPE",
	       "MACS", "ESTIMATED", "MEASURED", "USE");
	for (uint32_t i = 0; i < p->layer_count; i++) {
		const struct npuc_layer *l = &p->layers[i];

		printf("%5u  %-24s %-36s %10" PRIu64 " %10" PRIu64, i, l->operator_name,
		       l->shape, l->macs, l->cycles);
		print_cycles(cycles[i], units && l->kernel[0]);
		print_use(l->macs, cycles[i], units);
		sum += cycles[i];
	}
	printf("%5s  %-61s %10" PRIu64 " %10" PRIu64, "", "all layers one by one",
	       p->macs, p->cycles);
	print_cycles(sum, units != 0);
	print_use(p->macs, sum, units);
	printf("%5s  %-61s %10" PRIu64 " %10s", "", "the whole program", p->macs, "");
	print_cycles(whole, units != 0);
	print_use(p->macs, whole, units);
}

static void print_memory(const struct npuc_program *p, size_t image)
{
	printf("memory: %" PRIu64 " bytes of activations at most, %" PRIu64
	       " of input, %" PRIu64 " of output, %zu of program\n",
	       p->arena_bytes, p->input_bytes, p->output_bytes, image);
}

/* The program with a kernel a layer; *image is what it takes without those. */
static int compile_layers(const struct npuc_model *m, enum npuc_reference reference,
			  const struct hal_device_info *info, struct npuc_program *p,
			  size_t *image, char why[NPUC_WHY])
{
	struct npuc_options options = {.reference = reference};
	int rc = npuc_compile(m, &options, p, why);

	if (rc)
		return rc;
	*image = p->image_size;
	npuc_program_free(p);
	options.layers = true;
	options.rows = info->unit_rows;
	options.cols = info->unit_cols;
	return npuc_compile(m, &options, p, why);
}

static int explain_on(struct device *d, const struct npuc_model *m,
		      enum npuc_reference reference, const char *no_device,
		      char why[NPUC_WHY])
{
	uint64_t *cycles = NULL, whole = 0;
	uint64_t units = (uint64_t)d->info.unit_rows * d->info.unit_cols;
	struct npuc_program p;
	size_t image;
	int rc = compile_layers(m, reference, &d->info, &p, &image, why);

	if (rc)
		return rc;
	cycles = calloc((size_t)p.layer_count + 1, sizeof(*cycles));
	if (!cycles) {
		snprintf(why, NPUC_WHY, "out of memory");
		rc = -1;
	}
	if (!rc && d->dev)
		rc = measure(&p, d, cycles, &whole, why);
	if (!rc) {
		print_table(&p, cycles, whole, units);
		if (units)
			printf("measured on %s, %u x %u\n", d->info.name,
			       d->info.unit_rows, d->info.unit_cols);
		else
			printf("nothing measured: %s\n", no_device);
		print_memory(&p, image);
		if (p.host[0])
			printf("%s\n", p.host);
	}
	free(cycles);
	npuc_program_free(&p);
	return rc;
}

static int explain(const struct args *a, const struct npuc_model *m)
{
	char why[NPUC_WHY], no_device[NPUC_WHY] = "not requested";
	struct device d = {0};
	int rc = 0;

	if (!a->no_device)
		rc = device_open(a->target, 0, &d, no_device);
	if (rc && a->target)
		return tool_fail("%s", no_device);
	rc = explain_on(&d, m, a->reference, no_device, why);
	if (device_close(&d) && !rc)
		return tool_fail("%s", hal_last_error());
	return rc ? tool_fail("%s", why) : 0;
}

static int write_program(const struct args *a, const struct npuc_model *m)
{
	/* What goes to standard output is the program, or what is said of it. */
	FILE *said = a->output && strcmp(a->output, "-") == 0 ? stderr : stdout;
	struct npuc_program p;
	const struct npuc_options options = {.reference = a->reference};
	char why[NPUC_WHY];
	int rc = npuc_compile(m, &options, &p, why);

	if (!rc && a->output)
		rc = npuc_program_save(&p, device_path(a->output, "/dev/stdout"), why);
	if (rc) {
		npuc_program_free(&p);
		return tool_fail("%s", why);
	}
	if (!a->explain)
		fprintf(said,
			"%s: %u layer%s, %" PRIu64 " MACs, %zu bytes of program, %" PRIu64
			" of activations at most\n",
			a->model, p.layer_count, p.layer_count == 1 ? "" : "s", p.macs,
			p.image_size, p.arena_bytes);
	if (p.host[0])
		fprintf(said, "%s: %s\n", a->model, p.host);
	npuc_program_free(&p);
	return 0;
}

static int check(const struct args *a, const struct npuc_model *m)
{
	const struct npuc_options options = {.reference = a->reference};
	bool compiles = false;
	char why[NPUC_WHY];

	if (check_print(m, &options, a->model, a->json, &compiles, why))
		return tool_fail("%s", why);
	return compiles ? 0 : TOOL_FAILED;
}

static int run(const struct args *a)
{
	struct npuc_model *m;
	char why[NPUC_WHY];
	int rc = 0;

	if (npuc_model_load(device_path(a->model, "/dev/stdin"), &m, why))
		return tool_fail("%s", why);
	if (a->check)
		rc = check(a, m);
	else if (a->output || !a->explain)
		rc = write_program(a, m);
	if (!rc && a->explain)
		rc = explain(a, m);
	npuc_model_free(m);
	return rc;
}

static int list_operators(void)
{
	const char *name;

	for (uint32_t i = 0; (name = npuc_operator(i)); i++)
		printf("%s\n", name);
	return 0;
}

static int npuc_main(int argc, char **argv)
{
	struct args a = {0};
	int c;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	while ((c = getopt_long(argc, argv, "o:et:ncjhV", longs, NULL)) != -1) {
		switch (c) {
		case 'o':
			a.output = optarg;
			break;
		case 'e':
			a.explain = true;
			break;
		case 't':
			a.target = optarg;
			break;
		case 'n':
			a.no_device = true;
			break;
		case 'c':
			a.check = true;
			break;
		case 'j':
			a.json = true;
			break;
		case OPT_REFERENCE:
			if (reference_parse(optarg, &a.reference))
				return TOOL_USAGE;
			break;
		case OPT_OPERATORS:
			return list_operators();
		case 'h':
			fputs(help, stdout);
			return 0;
		case 'V':
			return tool_version();
		default:
			return tool_usage_said();
		}
	}
	if (optind == argc)
		return tool_usage("no model given");
	if (optind + 1 < argc)
		return tool_usage("too many arguments: %s", argv[optind + 1]);
	if (!a.explain && (a.target || a.no_device))
		return tool_usage("--target and --no-device are options of --explain");
	if (a.target && a.no_device)
		return tool_usage("--target and --no-device cannot be used together");
	if (a.check && (a.output || a.explain))
		return tool_usage("--check cannot be used with --output or --explain");
	if (a.explain && a.output && strcmp(a.output, "-") == 0)
		return tool_usage(
			"--explain and the program cannot both go to standard output");
	if (a.json && !a.check)
		return tool_usage("--json is an option of --check");
	a.model = argv[optind];
	return run(&a);
}

int main(int argc, char **argv)
{
	return tool_end(npuc_main(argc, argv));
}
