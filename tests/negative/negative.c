/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the negative cases: negative [--list] [--filter GLOB] [--verbose]
 *                                   [--backend TARGET [--skip FILE]]
 * On another backend than ref, those are left out that name a device of their own, load
 * an image of ref or need its injection, and those that FILE names with the reason.
 */
#define _GNU_SOURCE
#include "negative.h"

#include <fnmatch.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../conformance/conformance.h"

static struct neg_case *first, **last = &first;

void neg_register(struct neg_case *c)
{
	*last = c;
	last = &c->next;
}

/* Why the case that runs is not for this device; NULL: it is. */
static const char *skipped;

int neg_skip(const char *what)
{
	skipped = what;
	return -ENODATA;
}

int neg_inject(struct neg *w, uint32_t op, uint64_t nth, int err)
{
	if (!w->ref)
		return neg_skip("ref's injection");
	return w->ref->inject(hal_device_get_native(w->dev), op, nth, err);
}

int neg_broken(const char *file, int line)
{
	if (skipped)
		return -ENODATA;
	fprintf(stderr, "%s:%d: a step failed: %s\n", file, line, hal_last_error());
	return -ENOTRECOVERABLE;
}

/* ---- the world -------------------------------------------------------------------- */

static int twice_fn(const struct hal_ref_call *call)
{
	uint8_t *d = call->at(call, 0, 0, 64);
	const uint8_t *s = call->at(call, 1, 0, 64);
	uint32_t i;

	if (!d || !s)
		return -EIO;
	for (i = 0; i < 64; i++)
		d[i] = (uint8_t)(2 * s[i]);
	return 0;
}

static int slow_fn(const struct hal_ref_call *call)
{
	uint8_t *d = call->at(call, 0, 0, 64);

	if (!d)
		return -EIO;
	d[0]++;
	return 0;
}

static int bad_fn(const struct hal_ref_call *call)
{
	return call->at(call, 0, 1 << 20, 4) ? 0 : -EIO;
}

static const struct hal_ref_kernel kernels[] = {

	{.name = "twice",
	 .fn = twice_fn,
	 .work = 64,
	 .arg_count = 2,
	 .arg_bytes = {64, 64}},
	{.name = "slow",
	 .fn = slow_fn,
	 .span_ns = 1000000,
	 .arg_count = 1,
	 .arg_bytes = {64}},
	{.name = "bad", .fn = bad_fn, .work = 8, .arg_count = 1, .arg_bytes = {64}}};

static const struct {
	struct hal_ref_image head;
	char names[3][HAL_REF_NAME];
} image = {{HAL_REF_MAGIC, HAL_REF_VERSION, HAL_REF_NAME, 3}, {"twice", "slow", "bad"}};

const void *neg_image(size_t *size)
{
	*size = sizeof(image);
	return &image;
}

/* Kernels of the same names and meaning for other backends; that of --backend. */
enum { PACKS_MAX = 4 };
static const struct conf_pack *packs[PACKS_MAX], *pack;
static uint32_t pack_count;

void conf_register(const struct conf_pack *p)
{
	if (pack_count < PACKS_MAX)
		packs[pack_count++] = p;
}

/* "cuda" of "cuda:1?clock=virtual". */
static const struct conf_pack *pack_of(const char *target)
{
	size_t n = strcspn(target, ":?");

	for (uint32_t i = 0; i < pack_count; i++)
		if (strlen(packs[i]->backend) == n &&
		    strncmp(packs[i]->backend, target, n) == 0)
			return packs[i];
	return NULL;
}

static int load(struct neg *w, bool on_ref)
{
	void *other;
	size_t size;
	int err;

	if (on_ref)
		return hal_ref_load(w->dev, kernels, 3, &w->prog);
	NEG_OK(pack->image(&other, &size));
	err = hal_program_load(w->dev, other, size, &w->prog);
	pack->free(other);
	return err;
}

static void fill_in(struct neg *w)
{
	w->part_desc = (struct hal_partition_desc)HAL_INIT(hal_partition_desc);
	w->part_desc.units_floor = 1;
	w->buffer_desc = (struct hal_buffer_desc)HAL_INIT(hal_buffer_desc);
	w->buffer_desc.bytes = 4096;
	w->queue_desc = (struct hal_queue_desc)HAL_INIT(hal_queue_desc);
	w->info = (struct hal_device_info)HAL_INIT(hal_device_info);
	w->stats = (struct hal_stats)HAL_INIT(hal_stats);
}

static int build(struct neg *w, const char *target)
{
	bool on_ref = !strncmp(target, "ref", 3);

	memset(w, 0, sizeof(*w));
	w->target = target;
	fill_in(w);
	NEG_OK(hal_open(target, NULL, &w->dev));
	NEG_OK(hal_partition_create(w->dev, &w->part_desc, &w->part));
	NEG_OK(hal_queue_create(w->part, &w->queue_desc, &w->queue));
	NEG_OK(hal_buffer_create(w->part, &w->buffer_desc, &w->buf));
	NEG_OK(load(w, on_ref));
	NEG_OK(hal_kernel_find(w->prog, "twice", &w->kernel));
	NEG_OK(hal_kernel_find(w->prog, "slow", &w->slow));
	NEG_OK(hal_kernel_find(w->prog, "bad", &w->bad));
	NEG_OK(hal_timeline_create(w->dev, &w->line));
	w->ref = hal_device_get_extension(w->dev, "ref");
	NEG_OK(on_ref && w->ref == NULL);
	w->buffer_desc.bytes = 64;
	w->args[0] = (struct hal_arg){w->buf, 0, 64};
	w->args[1] = (struct hal_arg){w->buf, 64, 64};
	w->cmd[0] = hal_cmd_fill(w->buf, 0, 64, 1);
	w->submit = (struct hal_submit_desc)HAL_INIT(hal_submit_desc);
	w->submit.cmds = w->cmd;
	w->submit.cmd_count = 1;
	return 0;
}

/* Whatever went wrong: this partition still computes. */
static int still_works(struct neg *w)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_queue *q = NULL;
	struct hal_buffer *b = NULL;
	struct hal_arg args[2];
	struct hal_point done;
	struct hal_cmd cmd;
	uint8_t data[64];

	if (!w->part || !w->prog)
		return 0; /* the case destroyed them, which is its business */
	bd.bytes = 128;
	NEG_OK(hal_queue_create(w->part, &qd, &q));
	NEG_OK(hal_buffer_create(w->part, &bd, &b));
	memset(data, 21, 64);
	NEG_OK(hal_buffer_write(b, 64, data, 64));
	args[0] = (struct hal_arg){b, 0, 64};
	args[1] = (struct hal_arg){b, 64, 64};
	cmd = hal_cmd_launch(w->kernel, args, 2);
	d.cmds = &cmd;
	d.cmd_count = 1;
	NEG_OK(hal_submit(q, &d, &done));
	NEG_OK(neg_wait(done));
	NEG_OK(hal_buffer_read(b, 0, data, 64));
	NEG_OK(data[0] != 42 || data[63] != 42);
	NEG_OK(hal_buffer_destroy(b));
	NEG_OK(hal_queue_destroy(q));
	return 0;
}

static int put_away(struct neg *w)
{
	if (w->path[0])
		unlink(w->path);
	NEG_OK(hal_queue_destroy(w->queue2));
	NEG_OK(hal_queue_destroy(w->queue));
	NEG_OK(hal_sequence_destroy(w->seq));
	NEG_OK(hal_completions_destroy(w->ring));
	NEG_OK(hal_buffer_destroy(w->buf2));
	NEG_OK(hal_buffer_destroy(w->buf));
	NEG_OK(hal_partition_destroy(w->part2));
	NEG_OK(hal_partition_destroy(w->part));
	NEG_OK(hal_program_unload(w->prog2));
	NEG_OK(hal_program_unload(w->prog));
	NEG_OK(hal_timeline_destroy(w->line2));
	NEG_OK(hal_timeline_destroy(w->line));
	NEG_OK(hal_close(w->dev2));
	NEG_OK(hal_close(w->dev));
	return 0;
}

/* ---- steps of cases --------------------------------------------------------------- */

int neg_wait(struct hal_point p)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return hal_wait(&p, 1, 0, ((int64_t)ts.tv_sec + 100) * 1000000000);
}

int neg_make_busy(struct neg *w)
{
	struct hal_cmd cmd = hal_cmd_launch(w->slow, w->args, 1);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = &cmd;
	d.cmd_count = 1;
	NEG_OK(hal_submit(w->queue, &d, &w->busy));
	NEG_OK(hal_device_poll(w->dev, 1000));
	return 0;
}

int neg_make_gated(struct neg *w)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point wait = {w->line, 1}, signal = {w->line, 2};

	d.waits = &wait;
	d.wait_count = 1;
	d.signals = &signal;
	d.signal_count = 1;
	NEG_OK(hal_submit(w->queue, &d, &w->busy));
	NEG_OK(hal_device_poll(w->dev, 1000));
	return 0;
}

/* Ends what those two have begun. */
static int settle(struct neg *w)
{
	if (!w->busy.timeline)
		return 0;
	if (w->line && hal_timeline_get_value(w->line, NULL) == 0)
		NEG_OK(hal_timeline_signal(w->line, 1));
	return neg_wait(w->busy);
}

int neg_lose(struct neg *w)
{
	const char *options[] = {"partition \"a\".units=1", NULL};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;
	struct hal_cmd cmd;

	NEG_OK(hal_open("ref?units=8&layers.fault=poll:1:EIO", options, &w->dev2));
	NEG_OK(hal_partition_create(w->dev2, &w->part_desc, &w->part2));
	NEG_OK(hal_queue_create(w->part2, &w->queue_desc, &w->queue2));
	NEG_OK(hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2));
	NEG_OK(hal_ref_load(w->dev2, kernels, 3, &w->prog2));
	cmd = hal_cmd_fill(w->buf2, 0, 64, 1);
	d.cmds = &cmd;
	d.cmd_count = 1;
	NEG_OK(hal_sequence_create(w->part2, &d, &w->seq));
	NEG_OK(hal_submit(w->queue2, &d, &done));
	NEG_OK(neg_wait(done) != -EIO);
	return 0;
}

/* What hal_last_error says in the child, or would have said. */
static struct {
	int err;
	char text[512];
} told;

int neg_forked(struct neg *w, int (*call)(struct neg *w))
{
	int fds[2], status;
	pid_t pid;

	NEG_OK(pipe(fds));
	(void)fflush(NULL);
	pid = fork();
	NEG_OK(pid < 0);
	if (pid == 0) {
		/* Nothing is destroyed in here: it belongs to the parent. */
		alarm(100);
		told.err = call(w);
		snprintf(told.text, sizeof(told.text), "%s", hal_last_error());
		_exit(write(fds[1], &told, sizeof(told)) != sizeof(told));
	}
	NEG_OK(close(fds[1]));
	memset(&told, 0, sizeof(told));
	if (read(fds[0], &told, sizeof(told)) != sizeof(told))
		told.err = -ENOTRECOVERABLE;
	NEG_OK(close(fds[0]));
	NEG_OK(waitpid(pid, &status, 0) != pid);
	return told.err;
}

struct waiting {
	struct hal_point p;
	atomic_bool begun;
};

static void *wait_there(void *arg)
{
	struct waiting *t = arg;

	atomic_store(&t->begun, true);
	(void)hal_wait(&t->p, 1, 0, HAL_FOREVER);
	return NULL;
}

int neg_awaited(struct neg *w, int (*make)(struct neg *w, struct hal_point *p),
		int (*destroy)(struct neg *w), int (*end)(struct neg *w))
{
	struct waiting t;
	pthread_t thread;
	int err = 0;

	/* Destroyed before the thread had begun to wait: once more. */
	for (int round = 0; err == 0 && round < 10000; round++) {
		NEG_OK(make(w, &t.p));
		atomic_init(&t.begun, false);
		NEG_OK(pthread_create(&thread, NULL, wait_there, &t));
		while (!atomic_load(&t.begun))
			sched_yield();
		for (int i = 0; i < 100; i++)
			sched_yield();
		err = destroy(w);
		if (err != 0)
			NEG_OK(end(w));
		NEG_OK(pthread_join(thread, NULL));
	}
	return err;
}

int neg_config(struct neg *w, const char *text)
{
	FILE *f;
	int fd;

	/* Short, whatever TMPDIR is: the texts that are compared have it in them. */
	snprintf(w->path, sizeof(w->path), "/tmp/hal-negative-XXXXXX");
	fd = mkstemp(w->path);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	NEG_OK(f == NULL);
	fputs(text, f);
	NEG_OK(fclose(f));
	return 0;
}

int neg_open_config(struct neg *w, const char *text)
{
	char option[300];
	const char *options[] = {option, NULL};

	NEG_OK(neg_config(w, text));
	snprintf(option, sizeof(option), "hal.config=%s", w->path);
	return hal_open(NULL, options, &w->dev2);
}

/* ---- running ---------------------------------------------------------------------- */

static bool names(const char *text, const char *want)
{
	char copy[256], *word, *rest;

	snprintf(copy, sizeof(copy), "%s", want);
	for (word = strtok_r(copy, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
		if (strcasestr(text, word))
			return true;
	return false;
}

enum outcome { PASSED, FAILED, SKIPPED };

static enum outcome run(const struct neg_case *c, const char *target, bool verbose)
{
	static struct neg w;
	enum outcome out = PASSED;
	char text[1024];
	int err;

	if (build(&w, target))
		return FAILED;
	told.text[0] = '\0';
	err = c->fn(&w);
	snprintf(text, sizeof(text), "%s",
		 told.text[0] != '\0' ? told.text : hal_last_error());
	if (skipped) {
		if (verbose)
			printf("skip %s %s %s: needs %s\n", c->function, c->error_name,
			       c->what, skipped);
		skipped = NULL;
		out = SKIPPED;
	} else if (err != -c->error) {
		printf("FAIL %s %s %s: answered %d: %s\n", c->function, c->error_name,
		       c->what, err, text);
		out = FAILED;
	} else if (!names(text, c->text)) {
		printf("FAIL %s %s %s: the text does not name '%s': '%s'\n", c->function,
		       c->error_name, c->what, c->text, text);
		out = FAILED;
	} else if (verbose) {
		printf("ok   %s %s %s: %s\n", c->function, c->error_name, c->what, text);
	}
	if (settle(&w) || still_works(&w) || put_away(&w)) {
		printf("FAIL %s %s %s: left something behind\n", c->function,
		       c->error_name, c->what);
		out = FAILED;
	}
	return out;
}

struct options {
	const char *filter, *backend, *skip;
	bool list, verbose;
};

static const char *case_name(const struct neg_case *c)
{
	static char name[256];

	snprintf(name, sizeof(name), "%s %s %s", c->function, c->error_name, c->what);
	return name;
}

/* FILE: "FUNCTION ERRNO what reason" a line.  NULL: it has no such case. */
static const char *listed(const char *path, const char *name)
{
	static char line[256];
	size_t n = strlen(name);
	FILE *f = path ? fopen(path, "r") : NULL;
	const char *reason = NULL;

	while (f && !reason && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, name, n) == 0 && line[n] == ' ' && line[n + 1])
			reason = line + n + 1;
	}
	if (f)
		fclose(f);
	return reason;
}

/* Lines of the file that name no case, or give no reason, would hide nothing for ever. */
static uint32_t stale(const char *path)
{
	char line[256], *name;
	uint32_t count = 0;
	FILE *f = fopen(path, "r");

	if (!f) {
		perror(path);
		return 1;
	}
	while (fgets(line, sizeof(line), f)) {
		const struct neg_case *c;

		if (line[0] == '#' || line[0] == '\n')
			continue;
		for (c = first; c; c = c->next) {
			name = (char *)(uintptr_t)case_name(c);
			if (!strncmp(line, name, strlen(name)) && listed(path, name))
				break;
		}
		if (!c) {
			printf("%s: no such case, or no reason: %s", path, line);
			count++;
		}
	}
	fclose(f);
	return count;
}

static enum outcome run_or_skip(const struct neg_case *c, const struct options *o)
{
	const char *target = c->target ? c->target : NEG_TARGET, *why = NULL;

	if (o->backend) {
		why = c->target ? c->target : listed(o->skip, case_name(c));
		target = o->backend;
	}
	if (!why)
		return run(c, target, o->verbose);
	if (o->verbose)
		printf("skip %s: needs %s\n", case_name(c), why);
	return SKIPPED;
}

static int parse(int argc, char **argv, struct options *o)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--list"))
			o->list = true;
		else if (!strcmp(argv[i], "--verbose"))
			o->verbose = true;
		else if (!strcmp(argv[i], "--filter") && i + 1 < argc)
			o->filter = argv[++i];
		else if (!strcmp(argv[i], "--backend") && i + 1 < argc)
			o->backend = argv[++i];
		else if (!strcmp(argv[i], "--skip") && i + 1 < argc)
			o->skip = argv[++i];
		else
			break;
	}
	if (o->backend)
		pack = pack_of(o->backend);
	if (i == argc && (!o->backend || pack))
		return 0;
	fprintf(stderr, "usage: negative [--list] [--verbose] [--filter GLOB] "
			"[--backend TARGET [--skip FILE]]\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct options o = {.filter = "*"};
	uint32_t count[3] = {0, 0, 0};
	const struct neg_case *c;

	if (parse(argc, argv, &o))
		return 2;
	/* The environment and files of whoever runs this must not decide. */
	setenv("HAL_CONFIG", "/dev/null", 1);
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
	for (c = first; c; c = c->next) {
		if (fnmatch(o.filter, case_name(c), 0))
			continue;
		if (o.list)
			printf("%s\n", case_name(c));
		else
			count[run_or_skip(c, &o)]++;
	}
	if (o.list)
		return 0;
	if (o.skip)
		count[FAILED] += stale(o.skip);
	printf("%u passed, %u failed, %u skipped\n", count[PASSED], count[FAILED],
	       count[SKIPPED]);
	return count[FAILED] || !count[PASSED];
}
