/* SPDX-License-Identifier: Apache-2.0 */
/* hal_ptx.c - the command hal-ptx: rewrites PTX, or says what can be rewritten. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>

#include "lib/color_map.h"

#include "color.h"
#include "file.h"
#include "tool.h"

static const char help[] =
	"usage: hal-ptx [-k] [-o OUT.ptx] [-m MAP -c CHANNELS] -p PASS [-p PASS] IN.ptx\n"
	"       hal-ptx -l IN.ptx\n"
	"Rewrites CUDA kernels in PTX, so that they can be stopped between blocks, reach "
	"only\n"
	"a range of memory, or use only some of its channels.  The file name - means\n"
	"standard input.\n"
	"\n"
	"  -p, --pass PASS     entry   each block checks a flag before it has any "
	"effect\n"
	"                      loop    some blocks do all the work, checking the flag\n"
	"                      bounds  accesses outside a range of memory are skipped\n"
	"                      color   accesses in a window go to memory on some "
	"channels\n"
	"  -m, --map FILE      pass color: the map from memory to channels\n"
	"  -c, --channels N[-M]  pass color: the channels; their number is a power of "
	"two\n"
	"  -k, --keep          keep kernels that cannot be rewritten as they are, with a "
	"message\n"
	"  -l, --list          list for each kernel the passes it supports, and why not "
	"others\n"
	"  -o, --output FILE   write to FILE; default: standard output\n"
	"  -h, --help          this text\n"
	"  -V, --version       the version\n"
	"\n"
	"Exit status: 0, 1 for a kernel that cannot be rewritten or PTX that cannot be "
	"read,\n"
	"2 for a wrong command line.\n";

static const struct option options[] = {
	{"pass", required_argument, NULL, 'p'},
	{"map", required_argument, NULL, 'm'},
	{"channels", required_argument, NULL, 'c'},
	{"keep", no_argument, NULL, 'k'},
	{"list", no_argument, NULL, 'l'},
	{"output", required_argument, NULL, 'o'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

struct job {
	const char *in, *out, *map, *channels;
	struct ptx_color color;
	bool list, keep, help, version, pass[PTX_PASSES];
};

static void list(const struct ptx *m)
{
	char why[PTX_WHY];
	uint32_t i, p, n;

	for (i = 0; i < ptx_kernels(m); i++) {
		const char *name = ptx_kernel_name(m, i, &n);

		for (p = 0; p < PTX_PASSES; p++)
			if (ptx_check(m, i, (enum ptx_pass)p, why))
				printf("%.*s %s: %s\n", (int)n, name,
				       ptx_pass_name((enum ptx_pass)p), why);
			else
				printf("%.*s %s: yes\n", (int)n, name,
				       ptx_pass_name((enum ptx_pass)p));
	}
}

static int parse(const char *path, const char *text, size_t bytes, struct ptx **m)
{
	char why[PTX_WHY];

	return ptx_parse(text, bytes, m, why) ? tool_fail("%s: %s", path, why) : 0;
}

/* text becomes what the pass makes of it. */
static int apply(const struct job *job, enum ptx_pass pass, char **text, size_t *bytes)
{
	char why[PTX_WHY], *made = NULL;
	struct ptx *m = NULL;
	bool *which = NULL;
	uint32_t i, n;
	int rc = parse(job->in, *text, *bytes, &m);

	if (rc)
		return rc;
	which = calloc(ptx_kernels(m) + 1u, sizeof(*which));
	if (!which)
		rc = tool_fail("no memory for %u kernels", ptx_kernels(m));
	for (i = 0; which && i < ptx_kernels(m); i++) {
		const char *name = ptx_kernel_name(m, i, &n);

		which[i] = ptx_check(m, i, pass, why) == 0;
		if (which[i])
			continue;
		fprintf(stderr, "hal-ptx: %s: %.*s: %s: %s\n", job->in, (int)n, name,
			ptx_pass_name(pass), why);
		if (!job->keep)
			rc = TOOL_FAILED;
	}
	if (!rc && (pass == PTX_COLOR
			    ? ptx_rewrite_color(m, &job->color, which, &made, bytes, why)
			    : ptx_rewrite(m, pass, which, &made, bytes, why)))
		rc = tool_fail("%s: %s", job->in, why);
	if (!rc) {
		free(*text);
		*text = made;
	}
	free(which);
	ptx_free(m);
	return rc;
}

static int read_channels(const char *text, uint32_t *first, uint32_t *last)
{
	char *end;
	unsigned long a = strtoul(text, &end, 10), b = a;
	bool wrong = end == text;

	if (*end == '-') {
		const char *second = end + 1;

		b = strtoul(second, &end, 10);
		wrong |= end == second;
	}
	if (wrong || *end || b < a || b > UINT16_MAX)
		return tool_usage("--channels %s: it must be a channel, or two as in 2-3",
				  text);
	*first = (uint32_t)a;
	*last = (uint32_t)b;
	return 0;
}

/* Read the map, and say what a launch has to be given. */
static int read_map(struct job *job)
{
	struct ptx_color_map map = {0};
	struct color_map *read = NULL;
	struct ptx_colors colors;
	char why[COLOR_MAP_WHY];
	uint32_t first = 0, last = 0;
	int rc = read_channels(job->channels, &first, &last);

	if (rc)
		return rc;
	if (color_map_read(job->map, &read, why))
		return tool_fail("%s", why);
	if (read->kind == COLOR_MAP_TABLE)
		rc = tool_fail("%s: a table cannot be computed from addresses", job->map);
	map.granule = read->granule;
	map.mask_count = read->mask_count;
	memcpy(map.mask, read->mask, sizeof(map.mask));
	map.q = read->kind == COLOR_MAP_XORMOD ? read->q : 0;
	map.shift = read->shift;
	map.digits = read->digits;
	memcpy(map.weight, read->weight, sizeof(map.weight));
	if (!rc &&
	    ptx_color_make(&map, first, last - first + 1, &job->color, &colors, why))
		rc = tool_fail("%s: %s", job->map, why);
	if (!rc)
		fprintf(stderr,
			"hal-ptx: %s: parameters for channels %s: target %u, sum %u; "
			"%llu "
			"bytes of memory for each %u\n",
			job->map, job->channels, colors.target, colors.sum,
			(unsigned long long)ptx_color_extent(&job->color, 1),
			map.granule << job->color.own);
	color_map_free(read);
	return rc;
}

static int run(struct job *job)
{
	static const enum ptx_pass order[] = {PTX_BOUNDS, PTX_COLOR, PTX_ENTRY, PTX_LOOP};
	struct ptx *m = NULL;
	char *text = NULL;
	size_t bytes = 0, i;
	int rc = file_read(job->in, &text, &bytes);

	if (!rc && job->list) {
		rc = parse(job->in, text, bytes, &m);
		if (!rc)
			list(m);
		ptx_free(m);
		free(text);
		return rc;
	}
	if (!rc && job->pass[PTX_COLOR])
		rc = read_map(job);
	for (i = 0; !rc && i < PTX_PASSES; i++)
		if (job->pass[order[i]])
			rc = apply(job, order[i], &text, &bytes);
	if (!rc)
		rc = file_write(job->out, text, bytes);
	free(text);
	return rc;
}

static int pass_named(const char *name, struct job *job)
{
	uint32_t p;

	for (p = 0; p < PTX_PASSES; p++)
		if (strcmp(name, ptx_pass_name((enum ptx_pass)p)) == 0) {
			if (job->pass[p])
				return tool_usage("--pass %s is given twice", name);
			job->pass[p] = true;
			return 0;
		}
	return tool_usage("--pass %s: unknown pass; it must be entry, loop, bounds "
			  "or color",
			  name);
}

static int command_line(int argc, char **argv, struct job *job)
{
	int c, rc = 0;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
	while ((c = getopt_long(argc, argv, "p:m:c:klo:hV", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			rc = pass_named(optarg, job);
			break;
		case 'm':
			job->map = optarg;
			break;
		case 'c':
			job->channels = optarg;
			break;
		case 'k':
			job->keep = true;
			break;
		case 'l':
			job->list = true;
			break;
		case 'o':
			job->out = optarg;
			break;
		case 'h':
			job->help = true;
			return 0;
		case 'V':
			job->version = true;
			return 0;
		default:
			return tool_usage_said();
		}
		if (rc)
			return rc;
	}
	if (optind == argc)
		return tool_usage("no PTX file given");
	if (optind + 1 < argc)
		return tool_usage("only one file can be used, but there is a second: %s",
				  argv[optind + 1]);
	job->in = argv[optind];
	if (job->pass[PTX_ENTRY] && job->pass[PTX_LOOP])
		return tool_usage("--pass entry and --pass loop cannot be used together");
	if (job->pass[PTX_COLOR] != (job->map != NULL) ||
	    job->pass[PTX_COLOR] != (job->channels != NULL))
		return tool_usage("--pass color, --map and --channels go together");
	if (!job->list && !job->pass[PTX_ENTRY] && !job->pass[PTX_LOOP] &&
	    !job->pass[PTX_BOUNDS] && !job->pass[PTX_COLOR])
		return tool_usage(
			"neither --pass (entry, loop, bounds or color) nor --list "
			"is given");
	return 0;
}

int main(int argc, char **argv)
{
	struct job job = {.in = "-"};
	int rc = command_line(argc, argv, &job);

	if (!rc && job.help)
		fputs(help, stdout);
	else if (!rc)
		rc = job.version ? tool_version() : run(&job);
	return tool_end(rc);
}
