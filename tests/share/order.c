/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c - two processes whose work on one buffer is ordered by timelines, and of which
 * one may be killed at each step.
 *
 * The test starts two other runs of this program, A and B, and connects them by a socket.
 * Both export and import: A the buffer, each one a timeline.  Step i, of A if i is even,
 * waits for step i - 1, copies a word of the buffer away and writes its own number there.
 *
 *   order TARGET_A TARGET_B            the test
 *   order TARGET SIDE DIES OTHER_DIES MODE
 *                                      a side; it ends itself at point DIES, the other
 *                                      side at point OTHER_DIES (NEVER: not at all)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hal/hal.h>

enum { STEPS = 6, BYTES = 4096, NEVER = 99, PEER_FD = 40, LIFE_FD = 41 };

/* Points at which a side may end: these, then AT_STEP + i before its step i. */
enum { AT_OPEN, AT_EXPORTED, AT_IMPORTED, AT_STEP };

extern char **environ;
static const char *what = "";

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, what, \
				#condition, hal_last_error());                           \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

/* ---- a side ------------------------------------------------------------------------ */

struct side {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *q;
	struct hal_buffer *shared, *kept;
	struct hal_timeline *mine, *theirs;
	bool is_a;
	uint32_t dies, other_dies;
};

static int64_t soon(void)
{
	struct timespec t;

	CHECK(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
	return ((int64_t)t.tv_sec + 60) * 1000000000 + t.tv_nsec;
}

static void maybe_die(const struct side *s, uint32_t at)
{
	if (at == s->dies)
		(void)kill(getpid(), SIGKILL);
}

static void send_fd(int fd)
{
	char byte = 'f';
	struct iovec from = {&byte, 1};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} c;
	struct msghdr m = {.msg_iov = &from,
			   .msg_iovlen = 1,
			   .msg_control = &c,
			   .msg_controllen = sizeof(c)};

	memset(&c, 0, sizeof(c));
	c.align.cmsg_level = SOL_SOCKET;
	c.align.cmsg_type = SCM_RIGHTS;
	c.align.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&c.align), &fd, sizeof(fd));
	(void)sendmsg(PEER_FD, &m, MSG_NOSIGNAL); /* the other side may be dead */
	CHECK(close(fd) == 0);
}

/* Return the next descriptor of the other side; -1: that is dead. */
static int receive_fd(void)
{
	char byte;
	struct iovec to = {&byte, 1};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} c;
	struct msghdr m = {.msg_iov = &to,
			   .msg_iovlen = 1,
			   .msg_control = &c,
			   .msg_controllen = sizeof(c)};
	ssize_t n = recvmsg(PEER_FD, &m, MSG_CMSG_CLOEXEC);
	int fd;

	if (n <= 0)
		return -1;
	CHECK(CMSG_FIRSTHDR(&m) != NULL);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static struct hal_buffer *add_buffer(const struct side *s, uint32_t flags)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *b;

	d.bytes = BYTES;
	d.flags = flags;
	CHECK(hal_buffer_create(s->part, &d, &b) == 0);
	return b;
}

static void side_open(struct side *s, const char *target)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	const struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);

	CHECK(hal_open(target, NULL, &s->dev) == 0);
	d.units_floor = 1;
	CHECK(hal_partition_create(s->dev, &d, &s->part) == 0);
	CHECK(hal_queue_create(s->part, &qd, &s->q) == 0);
	CHECK(hal_timeline_create(s->dev, &s->mine) == 0);
	s->kept = add_buffer(s, 0);
}

/* Pass buffer and timelines on.  Return false if the other side is dead. */
static bool side_exchange(struct side *s, uint32_t rights)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	int fd;

	if (s->is_a) {
		s->shared = add_buffer(s, HAL_BUFFER_EXPORTABLE);
		CHECK(hal_buffer_export(s->shared, &fd) == 0);
		send_fd(fd);
	}
	CHECK(hal_timeline_export(s->mine, rights, &fd) == 0);
	send_fd(fd);
	maybe_die(s, AT_EXPORTED);
	if (!s->is_a) {
		fd = receive_fd();
		if (fd < 0)
			return false;
		d.bytes = BYTES;
		CHECK(hal_buffer_import(s->part, fd, &d, &s->shared) == 0);
		CHECK(close(fd) == 0);
	}
	fd = receive_fd();
	if (fd < 0)
		return false;
	CHECK(hal_timeline_import(s->dev, fd, &s->theirs) == 0);
	CHECK(close(fd) == 0);
	maybe_die(s, AT_IMPORTED);
	return true;
}

/* Submit step i, which waits for step i - 1 on `wait` and signals `signal`.  Return the
 * result of the wait for its end. */
static int side_step(const struct side *s, uint32_t i, struct hal_timeline *wait,
		     struct hal_timeline *signal)
{
	const struct hal_cmd cmds[] = {
		hal_cmd_copy(s->kept, UINT64_C(4) * i, s->shared, 0, 4),
		hal_cmd_fill(s->shared, 0, 4, i + 1),
	};
	const struct hal_point before = {wait, i}, after = {signal, i + 1};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;

	d.cmds = cmds;
	d.cmd_count = 2;
	d.waits = &before;
	d.wait_count = 1;
	d.signals = &after;
	d.signal_count = 1;
	CHECK(hal_submit(s->q, &d, &done) == 0);
	return hal_wait(&done, 1, 0, soon());
}

/* The next value of the other side never comes: check why. */
static void check_end(const struct side *s, uint64_t value)
{
	const struct hal_point p = {s->theirs, value};
	const bool killed = s->other_dies != NEVER;

	CHECK(hal_wait(&p, 1, 0, soon()) == -ECANCELED);
	CHECK(strstr(hal_last_error(),
		     killed ? "the process of the exported timeline has ended"
			    : "the exported timeline has been destroyed") != NULL);
}

static void side_close(struct side *s)
{
	CHECK(hal_timeline_destroy(s->theirs) == 0);
	CHECK(hal_timeline_destroy(s->mine) == 0);
	CHECK(s->shared == NULL || hal_buffer_destroy(s->shared) == 0);
	CHECK(hal_buffer_destroy(s->kept) == 0);
	CHECK(hal_queue_destroy(s->q) == 0);
	CHECK(hal_partition_destroy(s->part) == 0);
	CHECK(hal_close(s->dev) == 0);
}

/* Each step of this side has found the number of the other's. */
static void check_order(const struct side *s, uint32_t done)
{
	uint32_t words[STEPS];

	CHECK(hal_buffer_read(s->kept, 0, words, sizeof(words)) == 0);
	for (uint32_t i = s->is_a ? 0 : 1; i < done; i += 2)
		CHECK(words[i] == i);
}

/* Do the steps of this side, each with a timeline of its own that it signals. */
static void work_with_two(struct side *s)
{
	uint32_t i;

	for (i = s->is_a ? 0 : 1; i < STEPS; i += 2) {
		int err;

		maybe_die(s, AT_STEP + i);
		err = side_step(s, i, s->theirs, s->mine);
		if (err == 0)
			continue;
		CHECK(err == -ECANCELED && s->other_dies != NEVER);
		break;
	}
	check_order(s, i);
	/* A ends first. */
	if (s->is_a && s->other_dies == NEVER) {
		CHECK(hal_timeline_destroy(s->mine) == 0);
		s->mine = NULL;
	}
	check_end(s, STEPS + 2);
}

/* Do the steps of this side; A's timeline is the only one, which B signals, too. */
static void work_with_one(struct side *s)
{
	struct hal_timeline *one = s->is_a ? s->mine : s->theirs;
	const struct hal_point last = {one, STEPS};
	uint32_t i;

	for (i = s->is_a ? 0 : 1; i < STEPS; i += 2) {
		int err;

		maybe_die(s, AT_STEP + i);
		err = side_step(s, i, one, one);
		if (err == 0)
			continue;
		CHECK(err == -ECANCELED && s->other_dies != NEVER);
		break;
	}
	check_order(s, i);
	if (s->other_dies == NEVER)
		CHECK(hal_wait(&last, 1, 0, soon()) == 0);
	else
		check_end(s, STEPS + 2);
}

/* Leave a child of this process alive, which has its descriptors, until the test ends. */
static void leave_child(void)
{
	pid_t pid = fork();
	char byte;

	CHECK(pid >= 0);
	if (pid != 0)
		return;
	(void)close(PEER_FD);
	(void)!read(LIFE_FD, &byte, 1);
	_exit(0);
}

static int side(char **argv)
{
	struct side s = {.is_a = argv[2][0] == 'A',
			 .dies = (uint32_t)atoi(argv[3]),
			 .other_dies = (uint32_t)atoi(argv[4])};
	const bool one = strcmp(argv[5], "one") == 0;

	what = argv[2];
	side_open(&s, argv[1]);
	maybe_die(&s, AT_OPEN);
	if (!side_exchange(&s, HAL_TIMELINE_WAIT | (one ? HAL_TIMELINE_SIGNAL : 0))) {
		CHECK(s.other_dies < AT_IMPORTED);
	} else {
		if (strcmp(argv[5], "fork") == 0)
			leave_child();
		if (one)
			work_with_one(&s);
		else
			work_with_two(&s);
	}
	side_close(&s);
	return 0;
}

/* ---- the test ---------------------------------------------------------------------- */

static const char *targets[2];

static pid_t start(int i, int peer, int life, const uint32_t *dies, const char *mode)
{
	char mine[8], other[8];
	char *const argv[] = {(char *)(uintptr_t) "order",
			      (char *)(uintptr_t)targets[i],
			      (char *)(uintptr_t)(i == 0 ? "A" : "B"),
			      mine,
			      other,
			      (char *)(uintptr_t)mode,
			      NULL};
	posix_spawn_file_actions_t a;
	pid_t pid;

	(void)snprintf(mine, sizeof(mine), "%u", dies[i]);
	(void)snprintf(other, sizeof(other), "%u", dies[1 - i]);
	CHECK(posix_spawn_file_actions_init(&a) == 0);
	CHECK(posix_spawn_file_actions_adddup2(&a, peer, PEER_FD) == 0);
	CHECK(posix_spawn_file_actions_adddup2(&a, life, LIFE_FD) == 0);
	CHECK(posix_spawn(&pid, "/proc/self/exe", &a, NULL, argv, environ) == 0);
	(void)posix_spawn_file_actions_destroy(&a);
	(void)close(peer);
	return pid;
}

/* Run both sides; side i ends itself at dies[i]. */
static void run(uint32_t a_dies, uint32_t b_dies, const char *mode)
{
	const uint32_t dies[2] = {a_dies, b_dies};
	static char text[64];
	int pair[2], life[2];
	pid_t pids[2];

	(void)snprintf(text, sizeof(text), "%s, A dies at %u, B at %u", mode, a_dies,
		       b_dies);
	what = text;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(pipe2(life, O_CLOEXEC) == 0);
	for (int i = 0; i < 2; i++)
		pids[i] = start(i, pair[i], life[0], dies, mode);
	for (int i = 0; i < 2; i++) {
		int status;

		CHECK(waitpid(pids[i], &status, 0) == pids[i]);
		if (dies[i] == NEVER)
			CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		else
			CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	(void)close(life[0]);
	(void)close(life[1]);
}

int main(int argc, char **argv)
{
	if (argc == 6)
		return side(argv);
	if (argc != 3) {
		fprintf(stderr, "usage: %s TARGET_A TARGET_B\n", argv[0]);
		return 2;
	}
	targets[0] = argv[1];
	targets[1] = argv[2];
	run(NEVER, NEVER, "two");
	run(NEVER, NEVER, "one");
	for (uint32_t at = AT_OPEN; at < AT_STEP + STEPS; at++) {
		const bool of_b = at >= AT_STEP && (at - AT_STEP) % 2 != 0;

		if (at < AT_STEP || !of_b) {
			run(at, NEVER, "two");
			run(at, NEVER, "one");
		}
		if (at < AT_STEP || of_b)
			run(NEVER, at, "two");
	}
	/* A child of the side that is killed does not keep its timeline alive. */
	run(AT_STEP + 2, NEVER, "fork");
	run(NEVER, AT_STEP + 3, "fork");
	puts("the order of two processes: passed");
	return 0;
}
