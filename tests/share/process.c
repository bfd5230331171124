/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - a buffer of two processes.
 *
 * The parent exports a buffer and passes its descriptor to a child, another run of this
 * program, which imports it on a device of its own.
 *
 *   process TARGET               the test
 *   process TARGET TASK          a child; the descriptor is number CHILD_FD, and at
 *                                CHILD_GO it waits for the parent
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hal/hal.h>

enum { BYTES = 20000, HALF = 10000, CHILD_FD = 40, CHILD_GO = 41, CHILD_SAYS = 42 };

extern char **environ;
static const char *program, *target;

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__,           \
				#condition, hal_last_error());                           \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

struct side {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *q;
	struct hal_buffer *buf;
};

static void side_open(struct side *s)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	const struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	int err = hal_open(target, NULL, &s->dev);

	if (err == -ENODEV) {
		printf("skipped: %s\n", hal_last_error());
		exit(77);
	}
	CHECK(err == 0);
	d.units_floor = 1;
	CHECK(hal_partition_create(s->dev, &d, &s->part) == 0);
	CHECK(hal_queue_create(s->part, &qd, &s->q) == 0);
}

static void side_close(struct side *s)
{
	CHECK(hal_buffer_destroy(s->buf) == 0);
	CHECK(hal_queue_destroy(s->q) == 0);
	CHECK(hal_partition_destroy(s->part) == 0);
	CHECK(hal_close(s->dev) == 0);
}

static void fill(struct side *s, uint64_t offset, uint64_t bytes, uint32_t pattern)
{
	const struct hal_cmd cmd = hal_cmd_fill(s->buf, offset, bytes, pattern);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;

	d.cmds = &cmd;
	d.cmd_count = 1;
	CHECK(hal_submit(s->q, &d, &done) == 0);
	CHECK(hal_wait(&done, 1, 0, HAL_FOREVER) == 0);
}

static void expect(struct side *s, uint64_t offset, uint64_t bytes, uint32_t pattern)
{
	static uint32_t data[BYTES / 4];

	CHECK(hal_buffer_read(s->buf, offset, data, bytes) == 0);
	for (uint64_t i = 0; i < bytes / 4; i++)
		CHECK(data[i] == pattern);
}

/* ---- child ------------------------------------------------------------------------- */

static void say(char c)
{
	CHECK(write(CHILD_SAYS, &c, 1) == 1);
}

static void await(void)
{
	char c;

	CHECK(read(CHILD_GO, &c, 1) == 1);
}

static int child(const char *task)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct side s;

	side_open(&s);
	d.bytes = BYTES;
	CHECK(hal_buffer_import(s.part, CHILD_FD, &d, &s.buf) == 0);
	CHECK(close(CHILD_FD) == 0);
	expect(&s, 0, BYTES, 0x11111111);
	fill(&s, HALF, BYTES - HALF, 0x22222222);
	say('1');
	await();
	if (strcmp(task, "killed") == 0)
		(void)kill(getpid(), SIGKILL);
	/* The parent has destroyed its buffer. */
	expect(&s, 0, HALF, 0x33333333);
	expect(&s, HALF, BYTES - HALF, 0x22222222);
	side_close(&s);
	return 0;
}

/* ---- parent ------------------------------------------------------------------------ */

struct run {
	pid_t pid;
	int go, says;
};

static void start(struct run *r, const char *task, int fd)
{
	char *const argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)target,
			      (char *)(uintptr_t)task, NULL};
	posix_spawn_file_actions_t a;
	int go[2], says[2];

	CHECK(pipe2(go, O_CLOEXEC) == 0 && pipe2(says, O_CLOEXEC) == 0);
	CHECK(posix_spawn_file_actions_init(&a) == 0);
	CHECK(posix_spawn_file_actions_adddup2(&a, fd, CHILD_FD) == 0);
	CHECK(posix_spawn_file_actions_adddup2(&a, go[0], CHILD_GO) == 0);
	CHECK(posix_spawn_file_actions_adddup2(&a, says[1], CHILD_SAYS) == 0);
	CHECK(posix_spawn(&r->pid, "/proc/self/exe", &a, NULL, argv, environ) == 0);
	(void)posix_spawn_file_actions_destroy(&a);
	(void)close(go[0]);
	(void)close(says[1]);
	r->go = go[1];
	r->says = says[0];
}

/* Wait until the child has said something; its end is an error. */
static void hear(const struct run *r)
{
	char c;

	CHECK(read(r->says, &c, 1) == 1);
}

static void go(const struct run *r)
{
	CHECK(write(r->go, "", 1) == 1);
}

static int end(struct run *r)
{
	int status;

	CHECK(waitpid(r->pid, &status, 0) == r->pid);
	(void)close(r->go);
	(void)close(r->says);
	return status;
}

static void parent_opens(struct side *s, int *fd)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_device_info info = HAL_INIT(hal_device_info);
	const uint64_t both = HAL_CAP_EXPORT | HAL_CAP_IMPORT;

	side_open(s);
	CHECK(hal_device_get_info(s->dev, &info) == 0);
	CHECK((info.caps & both) == both);
	d.bytes = BYTES;
	d.flags = HAL_BUFFER_EXPORTABLE;
	CHECK(hal_buffer_create(s->part, &d, &s->buf) == 0);
	CHECK(hal_buffer_export(s->buf, fd) == 0);
	fill(s, 0, BYTES, 0x11111111);
}

/* Both see what the other writes; the exporter goes first. */
static void exporter_goes_first(void)
{
	struct side s;
	struct run r;
	int fd;

	parent_opens(&s, &fd);
	start(&r, "stays", fd);
	(void)close(fd);
	hear(&r);
	expect(&s, 0, HALF, 0x11111111);
	expect(&s, HALF, BYTES - HALF, 0x22222222);
	fill(&s, 0, HALF, 0x33333333);
	side_close(&s);
	go(&r);
	CHECK(end(&r) == 0);
}

/* The importer is killed while it has the memory. */
static void importer_is_killed(void)
{
	struct side s;
	struct run r;
	int fd, status;

	parent_opens(&s, &fd);
	start(&r, "killed", fd);
	(void)close(fd);
	hear(&r);
	go(&r);
	status = end(&r);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	fill(&s, 0, HALF, 0x44444444);
	expect(&s, 0, HALF, 0x44444444);
	expect(&s, HALF, BYTES - HALF, 0x22222222);
	side_close(&s);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: %s TARGET\n", argv[0]);
		return 2;
	}
	program = argv[0];
	target = argv[1];
	if (argc > 2)
		return child(argv[2]);
	exporter_goes_first();
	importer_is_killed();
	puts("a buffer of two processes: passed");
	return 0;
}
