/* SPDX-License-Identifier: Apache-2.0 */
/* hal_conformance: runs the cases on one device and compares with what is expected. */
#define _GNU_SOURCE
#include "conformance.h"

#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PACKS_MAX = 16, EXPECT_MAX = 512 };

struct expect {
	char name[64]; /* of a case, or a pattern: host.* */
	bool xfail;    /* else unsupported */
	bool used;
};

static const struct conf_pack *packs[PACKS_MAX];
static uint32_t pack_count;
static struct expect expects[EXPECT_MAX];
static uint32_t expect_count;

static const struct conf_case *const groups[] = {
	conf_device_cases,  conf_partition_cases, conf_buffer_cases,
	conf_program_cases, conf_queue_cases,     conf_time_cases,
	conf_clock_cases,   conf_sequence_cases,  conf_completions_cases,
	conf_fault_cases,   conf_preempt_cases,   conf_fold_cases,
	conf_guest_cases,   conf_host_cases,      conf_share_cases,
	conf_recolor_cases, conf_bimodal_cases,   conf_evict_cases,
	conf_account_cases, conf_many_cases,
};

void conf_register(const struct conf_pack *pack)
{
	if (pack_count < PACKS_MAX)
		packs[pack_count++] = pack;
}

/* "npu" of "npu:0?rows=8", and of "hald:npu0". */
static const struct conf_pack *pack_of(const char *target)
{
	const bool far = strncmp(target, "hald:", 5) == 0;
	size_t n;
	uint32_t i;

	target += far ? 5 : 0;
	n = strcspn(target, far ? "0123456789" : ":?");

	for (i = 0; i < pack_count; i++)
		if (strlen(packs[i]->backend) == n &&
		    strncmp(packs[i]->backend, target, n) == 0)
			return packs[i];
	return NULL;
}

/* --image: a backend from elsewhere brings its kernels in a file. */
static const char *image_path;

static int image_read(void **image, size_t *size)
{
	FILE *f = fopen(image_path, "rb");
	char *data = NULL;
	long end = -1;

	if (f && fseek(f, 0, SEEK_END) == 0)
		end = ftell(f);
	if (end > 0)
		data = malloc((size_t)end);
	if (data) {
		rewind(f);
		if (fread(data, 1, (size_t)end, f) != (size_t)end) {
			free(data);
			data = NULL;
		}
	}
	if (f)
		fclose(f);
	if (!data)
		return -1;
	*image = data;
	*size = (size_t)end;
	return 0;
}

static const struct conf_pack *pack_of_image(const char *target)
{
	static char name[16];
	static const struct conf_pack pack = {name, image_read, free, 0};
	void *image;
	size_t size;

	if (image_read(&image, &size)) {
		fprintf(stderr, "%s: cannot be read, or is empty\n", image_path);
		return NULL;
	}
	free(image);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(target, ":?"), target);
	return &pack;
}

static int read_expect(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[256], kind[16], name[64];
	int number = 0, err = 0;

	if (!f) {
		perror(path);
		return -1;
	}
	while (!err && fgets(line, sizeof(line), f)) {
		struct expect *e = &expects[expect_count];
		int end = 0;

		number++;
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (sscanf(line, "%15s %63s %n", kind, name, &end) != 2 || !line[end] ||
		    (strcmp(kind, "unsupported") && strcmp(kind, "xfail")) ||
		    expect_count == EXPECT_MAX) {
			fprintf(stderr, "%s:%d: not 'unsupported|xfail NAME reason'\n",
				path, number);
			err = -1;
			continue;
		}
		snprintf(e->name, sizeof(e->name), "%s", name);
		e->xfail = strcmp(kind, "xfail") == 0;
		expect_count++;
	}
	fclose(f);
	return err;
}

static struct expect *expected(const char *name)
{
	uint32_t i;

	for (i = 0; i < expect_count; i++)
		if (fnmatch(expects[i].name, name, 0) == 0) {
			expects[i].used = true;
			return &expects[i];
		}
	return NULL;
}

static int run_case(struct conf *c, const struct conf_case *k)
{
	int r, end;
	char why[sizeof(c->why)];

	r = conf_open(c);
	if (!r)
		r = k->fn(c);
	memcpy(why, c->why, sizeof(why));
	end = c->dev ? conf_close(c) : 0;
	if (r || !end)
		memcpy(c->why, why, sizeof(why)); /* the first reason counts */
	return r == CONF_FAIL || !end ? r : end;
}

enum outcome { PASSED, FAILED, SKIPPED };

static enum outcome judge(const struct conf_case *k, const struct expect *e, int r,
			  const char *why)
{
	if (r == CONF_FAIL && e && e->xfail) {
		printf("xfail (%s)\n", why);
		return SKIPPED;
	}
	if (r == CONF_FAIL) {
		printf("FAIL\n  %s: %s\n", k->name, why);
		return FAILED;
	}
	if (r == CONF_UNSUPPORTED && e && !e->xfail) {
		printf("unsupported (%s)\n", why);
		return SKIPPED;
	}
	if (r == CONF_UNSUPPORTED) {
		printf("FAIL\n  %s: unsupported but not expected so: %s\n", k->name, why);
		return FAILED;
	}
	if (e) {
		printf("FAIL\n  %s: passed, but %s is expected\n", k->name,
		       e->xfail ? "a failure" : "unsupported");
		return FAILED;
	}
	printf("pass\n");
	return PASSED;
}

static enum outcome take(const char *target, const struct conf_pack *pack,
			 const struct conf_case *k, const struct expect *e)
{
	static struct conf world;

	memset(&world, 0, sizeof(world));
	world.target = target;
	world.pack = pack;
	return judge(k, e, run_case(&world, k), world.why);
}

/* --isolate: a process a case, for a device that a fault makes useless to its process. */
static bool isolate;

static enum outcome take_apart(const char *target, const struct conf_pack *pack,
			       const struct conf_case *k, const struct expect *e)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		exit((int)take(target, pack, k, e));
	if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	    WEXITSTATUS(status) <= SKIPPED)
		return (enum outcome)WEXITSTATUS(status);
	if (e && e->xfail && WIFSIGNALED(status)) {
		printf("xfail (its process ended with signal %d)\n", WTERMSIG(status));
		return SKIPPED;
	}
	printf("FAIL\n  %s: its process ended with %s %d\n", k->name,
	       WIFSIGNALED(status) ? "signal" : "status",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return FAILED;
}

/* Of the patterns, with commas between them, the first that matches a case's name
 * decides: it is chosen, or left out where "!" stands before the pattern. */
static bool chosen(const char *filter, const char *name)
{
	char glob[64];

	for (;; filter++) {
		size_t n = strcspn(filter, ",");
		bool without = *filter == '!';

		snprintf(glob, sizeof(glob), "%.*s", (int)n - without, filter + without);
		if (!fnmatch(glob, name, 0))
			return !without;
		filter += n;
		if (!*filter)
			return false;
	}
}

static int run(const char *target, const char *filter)
{
	uint32_t count[3] = {0, 0, 0}, cases = 0, i;
	const struct conf_pack *pack =
		image_path ? pack_of_image(target) : pack_of(target);
	const struct conf_case *k;

	if (!pack) {
		fprintf(stderr, "no kernel pack for '%s'\n", target);
		return 2;
	}
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		for (k = groups[i]; k->name; k++) {
			if (!chosen(filter, k->name))
				continue;
			printf("%-40s ", k->name);
			fflush(stdout);
			count[(isolate ? take_apart : take)(target, pack, k,
							    expected(k->name))]++;
			cases++;
		}
	}
	/* A name in the file that no case has would never fail: say so. */
	for (i = 0; strcmp(filter, "*") == 0 && i < expect_count; i++) {
		if (!expects[i].used) {
			printf("%s: expected, but there is no such case\n",
			       expects[i].name);
			count[FAILED]++;
		}
	}
	printf("%u passed, %u failed, %u skipped\n", count[PASSED], count[FAILED],
	       count[SKIPPED]);
	if (!cases) {
		fprintf(stderr, "no case matches '%s'\n", filter);
		return 2;
	}
	return count[FAILED] ? 1 : 0;
}

static void list(const char *filter)
{
	const struct conf_case *k;
	size_t i;

	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		for (k = groups[i]; k->name; k++)
			if (chosen(filter, k->name))
				printf("%s\n", k->name);
}

static int usage(FILE *f)
{
	fprintf(f, "usage: hal_conformance [--backend TARGET] [--image FILE] "
		   "[--filter GLOB,...] [--expect FILE] [--isolate] [--list]\n");
	return f == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{"backend", required_argument, NULL, 'b'},
		{"image", required_argument, NULL, 'i'},
		{"filter", required_argument, NULL, 'f'},
		{"expect", required_argument, NULL, 'e'},
		{"isolate", no_argument, NULL, 'o'},
		{"list", no_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *target = "ref", *filter = "*";
	bool only_list = false;
	int o;

	while ((o = getopt_long(argc, argv, "b:i:f:e:olh", opts, NULL)) != -1) {
		switch (o) {
		case 'b':
			target = optarg;
			break;
		case 'i':
			image_path = optarg;
			break;
		case 'f':
			filter = optarg;
			break;
		case 'e':
			if (read_expect(optarg))
				return 2;
			break;
		case 'o':
			isolate = true;
			break;
		case 'l':
			only_list = true;
			break;
		case 'h':
			return usage(stdout);
		default:
			return usage(stderr);
		}
	}
	if (optind != argc)
		return usage(stderr);
	if (only_list) {
		list(filter);
		return 0;
	}
	return run(target, filter);
}
