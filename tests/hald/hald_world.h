/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hald_world.h - what the tests of hald share: a hald, programs that use it, and clients
 * that speak to it without the library.
 */
#ifndef TESTS_HALD_WORLD_H
#define TESTS_HALD_WORLD_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <hal/hal.h>
#include <hal/ref.h>

#include "far/wire.h"

#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_ != 0)                                                            \
			fail_msg("%s is %d: %s", #call, ok_, hal_last_error());          \
	} while (0)

/* Longer than anything here takes. */
#define LONG_NS INT64_C(60000000000)

static inline int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- a hald ------------------------------------------------------------------------ */

struct hald {
	pid_t pid;
	char dir[64], option[96];
	char tenants[96];     /* file of --tenants; "": none */
	const char *lockstep; /* of --lockstep; NULL: none */
	const char *tick;     /* of --tick; NULL: none */
	const char *more;     /* another option, SECTION.KEY=VALUE; NULL: none */
	int out;
};

static inline void hald_exec(const struct hald *h, const char *target)
{
	char *arguments[20] = {(char *)(uintptr_t)HALD,
			       (char *)(uintptr_t) "--dir",
			       (char *)(uintptr_t)h->dir,
			       (char *)(uintptr_t) "--name",
			       (char *)(uintptr_t) "ref0",
			       (char *)(uintptr_t) "--option",
			       (char *)(uintptr_t) "backend.ref.kernels=" KERNELS,
			       (char *)(uintptr_t)target};
	int n = 8;

	/* A test that fails leaves none. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (h->tenants[0] != '\0') {
		arguments[n++] = (char *)(uintptr_t) "--tenants";
		arguments[n++] = (char *)(uintptr_t)h->tenants;
	}
	if (h->lockstep != NULL) {
		arguments[n++] = (char *)(uintptr_t) "--lockstep";
		arguments[n++] = (char *)(uintptr_t)h->lockstep;
	}
	if (h->tick != NULL) {
		arguments[n++] = (char *)(uintptr_t) "--tick";
		arguments[n++] = (char *)(uintptr_t)h->tick;
	}
	if (h->more != NULL) {
		arguments[n++] = (char *)(uintptr_t) "--option";
		arguments[n++] = (char *)(uintptr_t)h->more;
	}
	execv(HALD, arguments);
	_exit(127);
}

/* Start a hald, and wait until it serves. */
static inline void hald_begin(struct hald *h, const char *target)
{
	char line[256];
	int out[2];

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	h->pid = fork();
	if (h->pid == 0) {
		(void)dup2(out[1], STDOUT_FILENO);
		hald_exec(h, target);
	}
	assert_true(h->pid > 0);
	(void)close(out[1]);
	assert_true(read(out[0], line, sizeof(line)) > 0);
	h->out = out[0];
}

/* Make a folder for h, which has no options yet. */
static inline void hald_prepare(struct hald *h)
{
	memset(h, 0, sizeof(*h));
	snprintf(h->dir, sizeof(h->dir), "/tmp/test_hald.XXXXXX");
	assert_non_null(mkdtemp(h->dir));
	snprintf(h->option, sizeof(h->option), "hal.broker_dir=%s", h->dir);
}

static inline void hald_start(struct hald *h, const char *target)
{
	hald_prepare(h);
	hald_begin(h, target);
}

/* End hald, which has to end well. */
static inline void hald_stop(struct hald *h)
{
	int status;

	assert_int_equal(kill(h->pid, SIGTERM), 0);
	assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	(void)close(h->out);
	assert_int_equal(rmdir(h->dir), 0); /* the socket is gone */
}

static inline void hald_kill(struct hald *h)
{
	assert_int_equal(kill(h->pid, SIGKILL), 0);
	assert_int_equal(waitpid(h->pid, NULL, 0), h->pid);
	(void)close(h->out);
}

/* ---- a program --------------------------------------------------------------------- */

struct program {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *q;
	struct hal_buffer *buf;
	struct hal_program *prog; /* of program_spins */
};

/* Open the device and take units of it.  Return 0 or -errno. */
static inline int program_open(const struct hald *h, struct program *p, uint32_t units)
{
	const char *const options[] = {h->option, NULL};
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	int err = hal_open("hald:ref0", options, &p->dev);

	p->prog = NULL;

	pd.units_floor = units;
	bd.bytes = 4096;
	if (err == 0)
		err = hal_partition_create(p->dev, &pd, &p->part);
	if (err == 0)
		err = hal_queue_create(p->part, &qd, &p->q);
	return err != 0 ? err : hal_buffer_create(p->part, &bd, &p->buf);
}

static inline void program_close(struct program *p)
{
	OK(hal_queue_destroy(p->q));
	OK(hal_buffer_destroy(p->buf));
	OK(hal_program_unload(p->prog));
	OK(hal_partition_destroy(p->part));
	OK(hal_close(p->dev));
}

/* Fill p's buffer with value, and look at what is in it. */
static inline int program_works(struct program *p, uint32_t value)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_fill(p->buf, 0, 4096, value);
	uint32_t got[1024];
	struct hal_point done;
	int err;

	d.cmds = &cmd;
	d.cmd_count = 1;
	err = hal_submit(p->q, &d, &done);
	if (err == 0)
		err = hal_wait(&done, 1, 0, now_ns() + LONG_NS);
	if (err == 0)
		err = hal_buffer_read(p->buf, 0, got, sizeof(got));
	for (uint32_t i = 0; err == 0 && i < 1024; i++)
		if (got[i] != value)
			err = -EILSEQ;
	return err;
}

/* Submit a launch that takes some 20 s, of which nothing ends by itself here. */
static inline int program_spins(struct program *p)
{
	static const struct {
		struct hal_ref_image head;
		char name[HAL_REF_NAME];
	} image = {{HAL_REF_MAGIC, HAL_REF_VERSION, HAL_REF_NAME, 1}, "spin"};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_arg arg = {.buffer = p->buf, .bytes = 64};
	struct hal_kernel *k;
	struct hal_cmd cmd;
	int err = hal_program_load(p->dev, &image, sizeof(image), &p->prog);

	if (err == 0)
		err = hal_kernel_find(p->prog, "spin", &k);
	if (err != 0)
		return err;
	cmd = hal_cmd_launch(k, &arg, 1);
	cmd.launch.groups[0] = 16000000;
	cmd.launch.groups[1] = 300;
	d.cmds = &cmd;
	d.cmd_count = 1;
	return hal_submit(p->q, &d, NULL);
}

enum { ALL_UNITS = 16 };

/* Take all units as soon as they are free.  Return how long that took, in ns. */
static inline int64_t take_all(const struct hald *h, struct program *p)
{
	const char *const options[] = {h->option, NULL};
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	int64_t from = now_ns();
	int err;

	p->prog = NULL;
	OK(hal_open("hald:ref0", options, &p->dev));
	pd.units_floor = ALL_UNITS;
	do
		err = hal_partition_create(p->dev, &pd, &p->part);
	while (err == -ENOSPC && now_ns() < from + LONG_NS);
	OK(err);
	return now_ns() - from;
}

/* The device's whole memory is zero for who gets it next. */
static inline void nothing_is_left(struct program *p)
{
	static char zeros[65536], got[sizeof(zeros)];
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);

	bd.bytes = sizeof(got);
	OK(hal_queue_create(p->part, &qd, &p->q));
	OK(hal_buffer_create(p->part, &bd, &p->buf));
	OK(hal_buffer_read(p->buf, 0, got, sizeof(got)));
	assert_memory_equal(got, zeros, sizeof(got));
	OK(program_works(p, 7));
}

/* ---- clients without the library ------------------------------------------------------ */

/* Connect to h as no library does. */
static inline int raw_connect(const struct hald *h)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/ref0.sock", h->dir);
	assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Send m with bytes of payload; return what hald answers, -ENOTCONN if it closes the
 * connection instead. */
static inline int raw_ask(int fd, struct far_message *m, const void *data, size_t bytes)
{
	static char answer[sizeof(*m) + FAR_INLINE];
	struct iovec parts[2] = {{m, sizeof(*m)}, {(void *)(uintptr_t)data, bytes}};
	struct msghdr h = {.msg_iov = parts, .msg_iovlen = 2};

	if (sendmsg(fd, &h, MSG_NOSIGNAL) < 0 ||
	    recv(fd, answer, sizeof(answer), 0) < (ssize_t)sizeof(*m))
		return -ENOTCONN;
	memcpy(m, answer, sizeof(*m));
	return m->result;
}

static inline int raw_client(const struct hald *h)
{
	struct far_message m = {.op = FAR_HELLO, .a = {FAR_VERSION}};
	int fd = raw_connect(h);

	assert_int_equal(raw_ask(fd, &m, NULL, 0), 0);
	return fd;
}

/* ---- tenants ------------------------------------------------------------------------- */

/* Start a hald whose tenants are those of text, in lockstep of so many (NULL: none), with
 * another option (NULL: none). */
static inline void hald_with(struct hald *h, const char *target, const char *text,
			     const char *lockstep, const char *more)
{
	FILE *f;

	hald_prepare(h);
	h->lockstep = lockstep;
	h->more = more;
	snprintf(h->tenants, sizeof(h->tenants), "%s/tenants.conf", h->dir);
	f = fopen(h->tenants, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	hald_begin(h, target);
}

static inline void hald_with_tenants(struct hald *h, const char *target, const char *text)
{
	hald_with(h, target, text, NULL, NULL);
}

static inline void hald_with_tenants_stop(struct hald *h)
{
	assert_int_equal(unlink(h->tenants), 0);
	hald_stop(h);
}

static inline int open_by(const struct hald *h, const char *tenant,
			  struct hal_device **dev)
{
	char option[128];
	const char *const options[] = {option, NULL};

	snprintf(option, sizeof(option), "%s/%s", h->option, tenant);
	return hal_open("hald:ref0", options, dev);
}

static inline void opened_by(const struct hald *h, const char *tenant,
			     struct hal_device **dev, int expected)
{
	if (open_by(h, tenant, dev) != expected)
		fail_msg("hal_open: %s", hal_last_error());
}

/* Open it as soon as the tenant's limits permit that. */
static inline void opened_soon_by(const struct hald *h, const char *tenant,
				  struct hal_device **dev)
{
	const int64_t until = now_ns() + LONG_NS;
	int err;

	while ((err = open_by(h, tenant, dev)) == -EDQUOT && now_ns() < until)
		(void)sched_yield();
	if (err != 0)
		fail_msg("hal_open: %s", hal_last_error());
}

#endif
