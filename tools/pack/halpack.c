/* SPDX-License-Identifier: Apache-2.0 */
/* halpack.c - the command halpack: images of several devices in one file. */
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>
#include <hal/pack.h>

#include "file.h"
#include "label.h"
#include "lib/pack.h"
#include "tool.h"

static const char help[] =
	"usage: halpack -o PACK IMAGE...\n"
	"       halpack -l PACK\n"
	"       halpack -x N [-o IMAGE] PACK\n"
	"Puts images of several devices, and of several architectures of one, into a "
	"file\n"
	"that hal_program_load accepts on each of them.  The file name - means standard\n"
	"input.\n"
	"\n"
	"  -o, --output FILE   write to FILE; default: standard output\n"
	"  -l, --list          list the images of a pack, in the order in which they are "
	"tried\n"
	"  -x, --extract N     write image N of a pack, as numbered by --list\n"
	"  -h, --help          this text\n"
	"  -V, --version       the version\n"
	"\n"
	"Exit status: 0, 1 for a file that cannot be read or is not an image, 2 for a "
	"wrong\n"
	"command line.\n";

static const struct option options[] = {
	{"output", required_argument, NULL, 'o'},  {"list", no_argument, NULL, 'l'},
	{"extract", required_argument, NULL, 'x'}, {"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},       {NULL, 0, NULL, 0},
};

struct job {
	const char *out;
	char *const *in;
	uint32_t count;
	long extract; /* -1: not */
	bool list, help, version;
};

struct image {
	char *data;
	size_t bytes;
	struct label label;
	uint32_t kind; /* the first that was given of the same kind */
	uint32_t given;
};

static int compare(const void *a, const void *b)
{
	const struct image *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->label.rank != y->label.rank)
		return x->label.rank < y->label.rank ? -1 : 1;
	return x->given < y->given ? -1 : 1;
}

/* "cuda cubin sm_90" and "cuda ptx sm_75" are for the same devices. */
static bool same_kind(const char *a, const char *b)
{
	size_t n = strcspn(a, " ");

	return n == strcspn(b, " ") && strncmp(a, b, n) == 0;
}

static int read_image(const char *path, struct image *images, uint32_t index)
{
	struct image *m = &images[index];
	int rc = file_read(path, &m->data, &m->bytes);

	if (rc)
		return rc;
	if (!label_of(m->data, m->bytes, &m->label))
		return tool_fail(
			"%s: %s", path,
			pack_is(m->data, m->bytes)
				? "it is a pack itself: extract its images first"
				: "it is not an image that hal_program_load accepts: of "
				  "cuda, levelzero, rocm or npu, SPIR-V or an xclbin");
	m->given = m->kind = index;
	for (uint32_t i = index; i-- > 0;)
		if (same_kind(images[i].label.text, m->label.text))
			m->kind = i;
	return 0;
}

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + HAL_PACK_ALIGN - 1) / HAL_PACK_ALIGN * HAL_PACK_ALIGN;
}

static int write_pack(const struct job *job, const struct image *images)
{
	struct hal_pack head = {.magic = HAL_PACK_MAGIC,
				.version = HAL_PACK_VERSION,
				.count = job->count,
				.entry_size = sizeof(struct hal_pack_entry)};
	uint64_t table = sizeof(head) + job->count * sizeof(struct hal_pack_entry);
	uint64_t at;
	char *all;
	int rc;

	head.bytes = table;
	for (uint32_t i = 0; i < job->count; i++)
		head.bytes = aligned(head.bytes) + images[i].bytes;
	all = calloc(1, head.bytes);
	if (!all)
		return tool_fail("no memory for %" PRIu64 " bytes", head.bytes);
	memcpy(all, &head, sizeof(head));
	at = table;
	for (uint32_t i = 0; i < job->count; i++) {
		struct hal_pack_entry e = {.offset = aligned(at),
					   .bytes = images[i].bytes};

		memcpy(e.label, images[i].label.text, sizeof(e.label));
		memcpy(all + sizeof(head) + i * sizeof(e), &e, sizeof(e));
		memcpy(all + e.offset, images[i].data, e.bytes);
		at = e.offset + e.bytes;
	}
	rc = file_write(job->out, all, head.bytes);
	free(all);
	return rc;
}

static int pack(const struct job *job)
{
	struct image *images;
	int rc = 0;

	if (job->count == 0)
		return tool_usage("no image given; a pack has 1 to %u",
				  HAL_PACK_IMAGES_MAX);
	if (job->count > HAL_PACK_IMAGES_MAX)
		return tool_usage("%" PRIu32 " images; a pack has 1 to %u", job->count,
				  HAL_PACK_IMAGES_MAX);
	images = calloc((size_t)job->count + 1, sizeof(*images));
	if (!images)
		return tool_fail("no memory for %u images", job->count);
	for (uint32_t i = 0; !rc && i < job->count; i++)
		rc = read_image(job->in[i], images, i);
	if (!rc) {
		qsort(images, job->count, sizeof(*images), compare);
		rc = write_pack(job, images);
	}
	for (uint32_t i = 0; i < job->count; i++)
		free(images[i].data);
	free(images);
	return rc;
}

static int unpack(const struct job *job)
{
	char why[200], *data = NULL;
	size_t bytes = 0;
	int rc = file_read(job->in[0], &data, &bytes);

	if (!rc && !pack_is(data, bytes))
		rc = tool_fail("%s: it is not a pack", job->in[0]);
	if (!rc && !pack_check(data, bytes, why, sizeof(why)))
		rc = tool_fail("%s: %s", job->in[0], why);
	if (!rc && job->extract >= (long)pack_count(data))
		rc = tool_fail("%s: there is no image %ld; it has %" PRIu32
			       ", counted from 0",
			       job->in[0], job->extract, pack_count(data));
	if (!rc && job->extract >= 0) {
		const struct hal_pack_entry e = pack_entry(data, (uint32_t)job->extract);

		rc = file_write(job->out, data + e.offset, e.bytes);
	}
	for (uint32_t i = 0; !rc && job->list && i < pack_count(data); i++) {
		const struct hal_pack_entry e = pack_entry(data, i);

		printf("%3" PRIu32 "  %-32s %12" PRIu64 " bytes\n", i, e.label, e.bytes);
	}
	free(data);
	return rc;
}

static int number(const char *text, long *n)
{
	char *end;

	*n = strtol(text, &end, 10);
	if (end == text || *end != '\0' || *n < 0 || *n >= (long)HAL_PACK_IMAGES_MAX)
		return tool_usage("--extract %s: it must be a number from 0 to %u", text,
				  HAL_PACK_IMAGES_MAX - 1);
	return 0;
}

static int command_line(int argc, char **argv, struct job *job)
{
	int c, rc = 0;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
	while (!rc && (c = getopt_long(argc, argv, "o:lx:hV", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			job->out = optarg;
			break;
		case 'l':
			job->list = true;
			break;
		case 'x':
			rc = number(optarg, &job->extract);
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
	}
	if (rc)
		return rc;
	job->in = argv + optind;
	job->count = (uint32_t)(argc - optind);
	if (job->list && (job->extract >= 0 || job->out))
		return tool_usage("--list cannot be used with other options");
	if ((job->list || job->extract >= 0) && job->count != 1)
		return job->count == 0 ? tool_usage("no pack given")
				       : tool_usage("only one pack can be used, but "
						    "there is a second: %s",
						    job->in[1]);
	return 0;
}

int main(int argc, char **argv)
{
	struct job job = {.in = argv, .extract = -1};
	int rc = command_line(argc, argv, &job);

	if (!rc && job.help)
		fputs(help, stdout);
	else if (!rc && job.version)
		rc = tool_version();
	else if (!rc)
		rc = job.list || job.extract >= 0 ? unpack(&job) : pack(&job);
	return tool_end(rc);
}
