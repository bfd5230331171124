/* SPDX-License-Identifier: Apache-2.0 */
/* halrun.c - the command: runs a TensorFlow Lite model, or a program made of one. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"
#include "device.h"
#include "explain.h"
#include "feed.h"
#include "pipeline.h"
#include "reference.h"
#include "result.h"
#include "tool.h"

#define TOP_DEFAULT 5u
#define OUTPUTS_MAX 256u
#define REPEAT_MAX  10000000u

static const char help[] =
	"usage: halrun [OPTION...] MODEL.tflite|PROGRAM.npu [NAME=]INPUT...\n"
	"       halrun --explain [-t TARGET] [-r SEED] MODEL.tflite [[NAME=]INPUT...]\n"
	"\n"
	"Runs a model and prints its largest outputs: index, quantized value, real "
	"value.\n"
	"An INPUT is a .npy file of the input's shape, or the bare elements, one after "
	"the\n"
	"other: int8, uint8 or int16, or float32 if the model takes float32, all\n"
	"little-endian.  A .npy file may lack a batch of 1, or have N images in its "
	"place; its\n"
	"elements may be float32, float64 or uint8, which are quantized with the "
	"input's scale.\n"
	"A PNG, JPEG, PGM or PPM file is resized to the input's height and width.\n"
	"It goes to the input NAME, or without a NAME to the next input that has no "
	"file;\n"
	"npuc --check lists the inputs.  The file name - means standard input or "
	"standard\n"
	"output.\n"
	"\n"
	"  -r, --random SEED    random bytes for the inputs without a file; SEED from 1\n"
	"  -o, --output [NAME=]FILE\n"
	"                       writes the output NAME, or all outputs one after the "
	"other,\n"
	"                       in the model's types; as .npy when FILE ends so; may be\n"
	"                       repeated\n"
	"  -d, --dequantize     writes real numbers, as float32\n"
	"      --mean M[,...], --deviation D[,...]\n"
	"                       of float and uint8 elements: a real number is (x - M) / "
	"D, of\n"
	"                       each channel if there are several\n"
	"      --expected [NAME=]FILE\n"
	"                       compares the output NAME with a .npy file or bare "
	"elements, of\n"
	"                       the output's type or float32; fails if one differs; may "
	"be\n"
	"                       repeated\n"
	"      --tolerance N    how much may differ: steps, or real numbers of float32 "
	"(0)\n"
	"  -n, --top N          how many to print of each output (5); 0: none\n"
	"  -l, --labels FILE    names of an output's elements, one per line, to print "
	"with\n"
	"                       them\n"
	"  -R, --repeat N       runs N times and prints p50, p99, least, mean and "
	"largest cycles\n"
	"                       and wall times,\n"
	"                       and the MAC use: multiplications done, as a share of "
	"those that\n"
	"                       the whole array could have done\n"
	"      --warm-up N      runs N times before that\n"
	"      --in-flight N    keeps N runs in flight (1): cycles are then those from "
	"the end\n"
	"                       of one run to the end of the next\n"
	"  -e, --explain        prints a line per layer: where its cycles go, as the "
	"device "
	"counts\n"
	"                       them; inputs without a file get random "
	"bytes\n" REFERENCE_HELP "  -j, --json           JSON instead of text\n"
	"  -t, --target TARGET  as in hal_open: npu:0, 'npu:0?rows=8&cols=8'; default: "
	"what\n"
	"                       the configuration selects; engine=fast, which takes the\n"
	"                       cycles of the RTL, unless an engine is given\n"
	"  -u, --units N        runs on N units of the device, in a shape that the "
	"device\n"
	"                       chooses, and leaves the others to programs beside it; "
	"default:\n"
	"                       all of them\n"
	"  -h, --help, -V, --version\n"
	"\n"
	"exit status: 0, 1 when a file, the model or the device is at fault, 2 when the\n"
	"command line is wrong.\n";

enum {
	OPT_WARM_UP = 256,
	OPT_EXPECTED,
	OPT_TOLERANCE,
	OPT_MEAN,
	OPT_DEVIATION,
	OPT_IN_FLIGHT,
	OPT_REFERENCE,
};

static const struct option longs[] = {
	{"warm-up", required_argument, NULL, OPT_WARM_UP},
	{"in-flight", required_argument, NULL, OPT_IN_FLIGHT},
	{"dequantize", no_argument, NULL, 'd'},
	{"expected", required_argument, NULL, OPT_EXPECTED},
	{"tolerance", required_argument, NULL, OPT_TOLERANCE},
	{"mean", required_argument, NULL, OPT_MEAN},
	{"deviation", required_argument, NULL, OPT_DEVIATION},
	{"reference", required_argument, NULL, OPT_REFERENCE},
	{"target", required_argument, NULL, 't'},
	{"top", required_argument, NULL, 'n'},
	{"output", required_argument, NULL, 'o'},
	{"random", required_argument, NULL, 'r'},
	{"repeat", required_argument, NULL, 'R'},
	{"labels", required_argument, NULL, 'l'},
	{"explain", no_argument, NULL, 'e'},
	{"json", no_argument, NULL, 'j'},
	{"units", required_argument, NULL, 'u'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

struct args {
	const char *target, *model, *labels;
	struct feed feed;
	char *outputs[OUTPUTS_MAX], *expected[OUTPUTS_MAX];
	uint64_t top, repeat, units; /* repeat, units 0: not given */
	uint64_t warm_up, in_flight; /* in_flight 0: not given */
	bool json, explain, top_given, tolerance_given, reference_given;
	enum npuc_reference reference;
};

/* ---- running ---------------------------------------------------------------------- */

/* Say why a network cannot be opened: for its size, or else as why has it. */
static int memory_fail(const struct npuc_program *p, const struct device *d,
		       const char *model, const char *why)
{
	char text[512];

	if (p->memory_bytes + p->memory_bytes / 16 <= d->info.memory_bytes)
		return tool_fail("%s", why);
	device_memory_text(p, d->info.memory_bytes, text, sizeof(text));
	return tool_fail("%s: the network takes %s", model, text);
}

static int infer(const struct args *a, struct fed *in, const struct expectations *wanted,
		 struct device *d, struct result *r)
{
	bool quiet = a->json || feed_takes_stdout(&a->feed);
	FILE *text = quiet ? stderr : stdout;
	const struct pipeline_desc desc = {
		.warm_up = a->warm_up,
		.repeat = a->repeat ? a->repeat : 1,
		.in_flight = a->in_flight ? (uint32_t)a->in_flight : 1,
	};
	struct npuc_run *run;
	char why[NPUC_WHY];
	int rc;

	if (npuc_run_open(d->dev, d->part, r->program, &run, why))
		return memory_fail(r->program, d, a->model, why);
	rc = pipeline_run(&desc, in, run, r);
	if (!rc)
		rc = feed_outputs(&a->feed, r->program, &r->out);
	if (!rc && a->json)
		rc = result_json(r);
	else if (!rc)
		result_text(r, text);
	if (!rc)
		rc = compare_outputs(wanted, a->feed.tolerance, &r->out, text);
	npuc_run_close(run);
	return rc;
}

static int run(const struct args *a)
{
	const struct npuc_options options = {.layers = a->explain,
					     .reference = a->reference};
	struct npuc_program p;
	struct device d = {0};
	struct fed in = {0};
	struct expectations wanted = {0};
	struct result r = {
		.model = a->model, .program = &p, .device = &d.info, .top = a->top};
	char why[NPUC_WHY];
	int rc = 0;

	if (npuc_program_open(device_path(a->model, "/dev/stdin"), &options, &p, why))
		return tool_fail("%s", why);
	if (a->reference_given && !p.layer_count)
		rc = tool_fail("%s: it has the reference that it was compiled with; "
			       "--reference is for models",
			       a->model);
	if (!rc && a->labels)
		rc = labels_read(a->labels, &r.labels);
	if (!rc)
		rc = result_check(&r);
	if (!rc)
		rc = feed_check_outputs(&a->feed, &p);
	if (!rc && !a->explain)
		rc = feed_load(&a->feed, &p, &in);
	if (!rc && !a->explain)
		rc = compare_load(&a->feed, &p, in.images, &wanted);
	if (!rc && device_open(a->target, (uint32_t)a->units, &d, why))
		rc = tool_fail("%s", why);
	if (!rc && p.memory_bytes > d.info.memory_bytes)
		rc = memory_fail(&p, &d, a->model, "");
	if (!rc)
		rc = a->explain ? explain_print(&p, &d, &a->feed)
				: infer(a, &in, &wanted, &d, &r);
	if (device_close(&d) && !rc)
		rc = tool_fail("%s", hal_last_error());
	feed_free(&in);
	compare_free(&wanted);
	result_free(&r);
	npuc_program_free(&p);
	return rc;
}

/* ---- the command line ------------------------------------------------------------- */

static int parse_number(const char *option, const char *text, uint64_t least,
			uint64_t most, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	if (end == text || *end || strchr(text, '-') || errno || *out < least ||
	    *out > most) {
		if (most == UINT64_MAX)
			return tool_usage("--%s %s: it must be a number of at least %llu",
					  option, text, (unsigned long long)least);
		return tool_usage("--%s %s: it must be a number from %llu to %llu",
				  option, text, (unsigned long long)least,
				  (unsigned long long)most);
	}
	return 0;
}

static int parse_tolerance(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (end == text || *end || !(*out >= 0) || *out > 1e300)
		return tool_usage("--tolerance %s: it must be a number of at least 0",
				  text);
	return 0;
}

/* Options of inputs and outputs that have no letter. */
static int parse_feed_option(int c, struct args *a)
{
	struct feed *f = &a->feed;

	switch (c) {
	case OPT_WARM_UP:
		return parse_number("warm-up", optarg, 0, REPEAT_MAX, &a->warm_up);
	case OPT_IN_FLIGHT:
		return parse_number("in-flight", optarg, 1, PIPELINE_MAX, &a->in_flight);
	case OPT_EXPECTED:
		if (f->expected_count == OUTPUTS_MAX)
			return tool_usage("--expected is given more than %u times",
					  OUTPUTS_MAX);
		a->expected[f->expected_count++] = optarg;
		return 0;
	case OPT_REFERENCE:
		a->reference_given = true;
		return reference_parse(optarg, &a->reference);
	case OPT_TOLERANCE:
		a->tolerance_given = true;
		return parse_tolerance(optarg, &f->tolerance);
	case OPT_MEAN:
		return convert_parse("mean", optarg, f->convert.mean, &f->convert.means);
	case OPT_DEVIATION:
		return convert_parse("deviation", optarg, f->convert.deviation,
				     &f->convert.deviations);
	default:
		return tool_usage_said();
	}
}

/* 0 or TOOL_USAGE; in *done that there is nothing else to do. */
static int parse_option(int c, struct args *a, bool *done)
{
	switch (c) {
	case 't':
		a->target = optarg;
		return 0;
	case 'n':
		a->top_given = true;
		return parse_number("top", optarg, 0, UINT64_MAX, &a->top);
	case 'r':
		return parse_number("random", optarg, 1, UINT64_MAX, &a->feed.seed);
	case 'R':
		return parse_number("repeat", optarg, 1, REPEAT_MAX, &a->repeat);
	case 'u':
		return parse_number("units", optarg, 1, INT32_MAX, &a->units);
	case 'o':
		if (a->feed.output_count == OUTPUTS_MAX)
			return tool_usage("--output is given more than %u times",
					  OUTPUTS_MAX);
		a->outputs[a->feed.output_count++] = optarg;
		return 0;
	case 'l':
		a->labels = optarg;
		return 0;
	case 'e':
		a->explain = true;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case 'h':
		fputs(help, stdout);
		*done = true;
		return 0;
	case 'V':
		*done = true;
		return tool_version();
	case 'd':
		a->feed.dequantize = true;
		return 0;
	default:
		return parse_feed_option(c, a);
	}
}

static bool is_standard(const char *file)
{
	return strcmp(file, "-") == 0;
}

/* --explain prints a table and no results. */
static int check_explain(const struct args *a)
{
	const struct {
		bool given;
		const char *option;
	} results[] = {
		{a->json, "--json"},
		{a->repeat != 0, "--repeat"},
		{a->top_given, "--top"},
		{a->labels != NULL, "--labels"},
		{a->feed.output_count != 0, "--output"},
		{a->feed.expected_count != 0, "--expected"},
		{a->warm_up != 0, "--warm-up"},
		{a->in_flight != 0, "--in-flight"},
	};

	for (size_t i = 0; a->explain && i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i].given)
			return tool_usage("--explain prints a table of cycles and no "
					  "results; leave out %s, or --explain",
					  results[i].option);
	return 0;
}

static int check_line(const struct args *a)
{
	int rc = check_explain(a);

	if (rc)
		return rc;
	if (!a->model)
		return tool_usage("no model given");
	if (a->tolerance_given && !a->feed.expected_count)
		return tool_usage("--tolerance is an option of --expected");
	if (!a->feed.input_count && !a->feed.seed && !is_standard(a->model) &&
	    access(a->model, R_OK))
		return tool_fail("%s: %s", a->model, hal_strerror(errno));
	if (!a->feed.input_count && !a->feed.seed)
		return tool_usage("no inputs given; name a file for each input, or use "
				  "--random 1 for random bytes");
	if (a->json && feed_takes_stdout(&a->feed))
		return tool_usage(
			"--json and an output cannot both go to standard output");
	for (uint32_t i = 0; is_standard(a->model) && i < a->feed.input_count; i++)
		if (is_standard(a->feed.inputs[i]))
			return tool_usage(
				"the model and an input cannot both be standard input");
	return 0;
}

int main(int argc, char **argv)
{
	struct args a = {.top = TOP_DEFAULT};
	bool done = false;
	int c, rc = 0;

	while (!rc && !done) {
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
		c = getopt_long(argc, argv, "t:n:o:r:R:l:u:dejhV", longs, NULL);
		if (c == -1)
			break;
		rc = parse_option(c, &a, &done);
	}
	if (rc || done)
		return tool_end(rc);
	a.feed.outputs = a.outputs;
	a.feed.expected = a.expected;
	if (optind < argc) {
		a.model = argv[optind];
		a.feed.inputs = argv + optind + 1;
		a.feed.input_count = (uint32_t)(argc - optind - 1);
	}
	if (a.explain && !a.feed.seed)
		a.feed.seed = 1;
	rc = check_line(&a);
	return tool_end(rc ? rc : run(&a));
}
