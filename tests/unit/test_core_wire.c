/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_wire.c - shared timelines whose other side is hostile or never reads, and
 * system calls that fail.  The test is the other side itself, by core/command/wire.h. */
#include "ref_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "command/wire.h"

#define BOTH (HAL_TIMELINE_WAIT | HAL_TIMELINE_SIGNAL)

/* ---- system calls that fail -------------------------------------------------------- */

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */

/* The next calls of one function fail: after .skip that succeed. */
static struct {
	const char *name; /* NULL: none */
	int skip;
} failing;

/* Return whether this call of the function fails. */
static bool fails(const char *name)
{
	if (failing.name == NULL || strcmp(failing.name, name) != 0 || failing.skip-- > 0)
		return false;
	failing.name = NULL;
	return true;
}

#define FAILING(type, function, failure, parameters, arguments)                          \
	type __real_##function parameters;                                               \
	type __wrap_##function parameters;                                               \
	type __wrap_##function parameters                                                \
	{                                                                                \
		if (fails(#function)) {                                                  \
			errno = ENFILE;                                                  \
			return failure;                                                  \
		}                                                                        \
		return __real_##function arguments;                                      \
	}

FAILING(int, socketpair, -1, (int d, int t, int p, int fds[2]), (d, t, p, fds))
FAILING(int, memfd_create, -1, (const char *n, unsigned int f), (n, f))
FAILING(int, ftruncate, -1, (int fd, off_t n), (fd, n))
FAILING(void *, mmap, MAP_FAILED, (void *a, size_t n, int p, int f, int fd, off_t o),
	(a, n, p, f, fd, o))
FAILING(ssize_t, sendmsg, -1, (int fd, const struct msghdr *m, int f), (fd, m, f))
FAILING(int, epoll_create1, -1, (int f), (f))
FAILING(int, epoll_ctl, -1, (int fd, int op, int at, struct epoll_event *e),
	(fd, op, at, e))
FAILING(int, eventfd, -1, (unsigned int n, int f), (n, f))
FAILING(int, pthread_create, ENFILE,
	(pthread_t * t, const pthread_attr_t *a, void *(*fn)(void *), void *arg),
	(t, a, fn, arg))
FAILING(void *, calloc, NULL, (size_t n, size_t bytes), (n, bytes))
FAILING(void *, aligned_alloc, NULL, (size_t a, size_t bytes), (a, bytes))

/* What happens before the next engine_call of this thread; NULL: nothing. */
static _Thread_local void (*before_call)(void *arg);
static _Thread_local void *before_call_arg;

int __real_engine_call(struct hal_device *dev, int (*fn)(struct hal_device *, void *),
		       void *arg);
int __wrap_engine_call(struct hal_device *dev, int (*fn)(struct hal_device *, void *),
		       void *arg);
int __wrap_engine_call(struct hal_device *dev, int (*fn)(struct hal_device *, void *),
		       void *arg)
{
	void (*before)(void *) = before_call;

	before_call = NULL;
	if (before != NULL)
		before(before_call_arg);
	return __real_engine_call(dev, fn, arg);
}

/* NOLINTEND(bugprone-reserved-identifier) */

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	(void)closedir(dir);
	return n;
}

struct failure_case {
	const char *name;
	int skip;
	int err;
};

/* Export t of dev, or import fd, with each system call failing in turn. */
static void each_failure(struct hal_device *dev, struct hal_timeline *t, int fd,
			 const struct failure_case *cases, size_t count)
{
	struct hal_timeline *import = NULL;
	int out = -5;

	for (size_t i = 0; i < count; i++) {
		const int before = count_fds();
		int err;

		failing.name = cases[i].name;
		failing.skip = cases[i].skip;
		err = t != NULL ? hal_timeline_export(t, BOTH, &out)
				: hal_timeline_import(dev, fd, &import);
		if (err != cases[i].err || failing.name != NULL)
			fail_msg("%s after %d: %d, %s", cases[i].name, cases[i].skip, err,
				 hal_last_error());
		assert_true(strlen(hal_last_error()) > 0);
		assert_null(import);
		assert_int_equal(out, -5);
		assert_int_equal(count_fds(), before);
	}
}

static void system_calls(void **state)
{
	static const struct failure_case first[] = {{"calloc", 0, -ENOMEM},
						    {"epoll_create1", 0, -ENFILE},
						    {"eventfd", 0, -ENFILE},
						    {"epoll_ctl", 0, -ENFILE},
						    {"pthread_create", 0, -ENFILE}};
	static const struct failure_case exports[] = {
		{"calloc", 0, -ENOMEM},     {"memfd_create", 0, -ENFILE},
		{"ftruncate", 0, -ENFILE},  {"mmap", 0, -ENFILE},
		{"socketpair", 0, -ENFILE}, {"socketpair", 1, -ENFILE},
		{"sendmsg", 0, -ENFILE},    {"epoll_ctl", 0, -ENFILE}};
	static const struct failure_case imports[] = {{"calloc", 0, -ENOMEM},
						      {"mmap", 0, -ENFILE},
						      {"aligned_alloc", 0, -ENOMEM},
						      {"epoll_ctl", 0, -ENFILE}};
	struct hal_timeline *t, *import;
	struct ref r;
	int fd;

	(void)state;
	ref_open_with(&r, "ref", NULL);
	OK(hal_timeline_create(r.dev, &t));
	each_failure(r.dev, t, -1, first, 5);
	OK(hal_timeline_export(t, BOTH, &fd));
	each_failure(r.dev, t, -1, exports, 8);
	each_failure(r.dev, NULL, fd, imports, 4);
	/* They have changed nothing. */
	OK(hal_timeline_import(r.dev, fd, &import));
	OK(close(fd));
	OK(hal_timeline_signal(import, 1));
	OK(wait_ms((struct hal_point){t, 1}, NEVER_MS));
	OK(hal_timeline_destroy(import));
	OK(hal_timeline_destroy(t));
	ref_close(&r);
}

/* ---- the test is the other side ---------------------------------------------------- */

struct rig {
	struct ref r;
	struct hal_timeline *t; /* exported by .r, or imported */
	struct wire peer;
};

/* Have r export, and be the importer. */
static void import_from(struct rig *g, const char *target, uint32_t rights)
{
	int fd;

	memset(g, 0, sizeof(*g));
	ref_open_with(&g->r, target, NULL);
	OK(hal_timeline_create(g->r.dev, &g->t));
	OK(hal_timeline_export(g->t, rights, &fd));
	OK(wire_import(&g->peer, fd));
	OK(close(fd));
}

/* Be the exporter, and have r import. */
static void export_to(struct rig *g, const char *target, uint32_t rights)
{
	int fd;

	memset(g, 0, sizeof(*g));
	ref_open_with(&g->r, target, NULL);
	OK(wire_export(&g->peer, rights, &fd));
	OK(hal_timeline_import(g->r.dev, fd, &g->t));
	OK(close(fd));
}

static void rig_close(struct rig *g)
{
	wire_close(&g->peer);
	OK(hal_timeline_destroy(g->t));
	ref_close(&g->r);
}

static int reaches(const struct rig *g, uint64_t value)
{
	return wait_ms((struct hal_point){g->t, value}, NEVER_MS);
}

static void send_bytes(const struct rig *g, const void *bytes, size_t size)
{
	assert_int_equal(send(g->peer.fd, bytes, size, MSG_NOSIGNAL), size);
}

/* Return once the device has closed its socket: how many rings came before. */
static int is_cut(const struct rig *g)
{
	char byte[16];
	int rings = 0;

	(void)fcntl(g->peer.fd, F_SETFL, 0);
	while (recv(g->peer.fd, byte, sizeof(byte), 0) > 0)
		rings++;
	return rings;
}

/* Messages of another size or content end the link; those who import see it. */
static void malformed(void **state)
{
	static const char *const targets[] = {"ref", "ref?clock=real"};
	static const char bytes[16] = "not this version";

	(void)state;
	for (int i = 0; i < 8; i++) {
		const size_t size = (size_t[]){1, 7, 8, 16}[i / 2];
		struct wire_state s = {.value = 3};
		struct rig g;

		export_to(&g, targets[i % 2], HAL_TIMELINE_WAIT);
		wire_write(&g.peer, &s);
		OK(reaches(&g, 3));
		send_bytes(&g, bytes, size);
		FAILS(reaches(&g, 4), -ECANCELED, "malformed message");
		OK(reaches(&g, 3));
		rig_close(&g);

		import_from(&g, targets[i % 2], BOTH);
		send_bytes(&g, bytes, size);
		is_cut(&g);
		OK(hal_timeline_signal(g.t, 1));
		OK(reaches(&g, 1));
		rig_close(&g);
	}
}

/* Who has no right to signal is cut off, and its value is ignored. */
static void without_the_right(void **state)
{
	struct wire_state s = {.value = 9, .err = -EIO, .text = "mine"};
	struct rig g;
	int err;

	(void)state;
	import_from(&g, "ref", HAL_TIMELINE_WAIT);
	wire_write(&g.peer, &s);
	is_cut(&g);
	assert_int_equal(hal_timeline_get_value(g.t, &err), 0);
	assert_int_equal(err, 0);
	rig_close(&g);
}

static void values_go_up(void **state)
{
	struct wire_state s = {.value = 9};
	struct rig g;

	(void)state;
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			import_from(&g, "ref", BOTH);
		else
			export_to(&g, "ref", BOTH);
		s.value = 9;
		wire_write(&g.peer, &s);
		OK(reaches(&g, 9));
		s.value = 4;
		wire_write(&g.peer, &s);
		s.value = 10;
		wire_write(&g.peer, &s);
		OK(reaches(&g, 10));
		/* It signals, and the other one lags. */
		OK(hal_timeline_signal(g.t, 12));
		s.value = 11;
		wire_write(&g.peer, &s);
		assert_int_equal(hal_timeline_get_value(g.t, NULL), 12);
		rig_close(&g);
	}
}

/* What has come from the other side is not sent back. */
static void no_echo(void **state)
{
	struct wire_state s = {.value = 0};
	struct rig g;

	(void)state;
	export_to(&g, "ref", BOTH);
	for (s.value = 1; s.value <= 5; s.value++) {
		wire_write(&g.peer, &s);
		OK(reaches(&g, s.value));
	}
	OK(hal_timeline_destroy(g.t));
	assert_int_equal(is_cut(&g), 1); /* of its end */
	wire_close(&g.peer);
	ref_close(&g.r);
}

/* Errors that are none, texts without an end, reasons that nobody knows. */
static void nonsense(void **state)
{
	static const int errs[] = {5, INT32_MIN, -4096};
	struct wire_state s = {.value = 1, .end = 77};
	struct rig g;

	(void)state;
	memset(s.text, 'x', sizeof(s.text));
	s.text[0] = '\033';
	for (size_t i = 0; i < 3; i++) {
		s.err = errs[i];
		export_to(&g, "ref", BOTH);
		wire_write(&g.peer, &s);
		FAILS(reaches(&g, 2), -ECANCELED, "?xxx");
		OK(reaches(&g, 1));
		rig_close(&g);
	}
	s.err = 0;
	export_to(&g, "ref", BOTH);
	wire_write(&g.peer, &s);
	wire_close(&g.peer);
	FAILS(reaches(&g, 2), -ECANCELED, "process of the exported timeline has ended");
	OK(hal_timeline_destroy(g.t));
	ref_close(&g.r);
}

/* A flood of rings hinders neither the device nor the other links. */
static void flood(void **state)
{
	const uint64_t ring = UINT64_C(0x474e4952474e4952);
	struct hal_timeline *import;
	struct rig g;
	int fd;

	(void)state;
	import_from(&g, "ref?clock=real", BOTH);
	OK(hal_timeline_export(g.t, HAL_TIMELINE_WAIT, &fd));
	OK(hal_timeline_import(g.r.dev, fd, &import));
	OK(close(fd));
	for (uint64_t i = 1; i <= 200; i++) {
		while (send(g.peer.fd, &ring, sizeof(ring), MSG_DONTWAIT | MSG_NOSIGNAL) >
		       0)
			;
		OK(hal_timeline_signal(g.t, i));
		OK(wait_ms((struct hal_point){import, i}, NEVER_MS));
	}
	OK(hal_timeline_destroy(import));
	rig_close(&g);
}

/* The other side never reads: its last value is there all the same. */
static void never_reads(void **state)
{
	enum { VALUES = 10000 };
	struct wire_state s;
	struct rig g;

	(void)state;
	for (int i = 0; i < 2; i++) {
		import_from(&g, i == 0 ? "ref" : "ref?clock=real", HAL_TIMELINE_WAIT);
		for (uint64_t v = 1; v <= VALUES; v++) {
			OK(hal_timeline_signal(g.t, v));
			if (v % 100 == 0)
				works(g.r.q);
		}
		OK(hal_timeline_destroy(g.t));
		is_cut(&g);
		wire_read(&g.peer, &s);
		assert_int_equal(s.value, VALUES);
		assert_int_equal(s.err, 0);
		assert_int_equal(s.end, WIRE_DESTROYED);
		wire_close(&g.peer);
		ref_close(&g.r);
	}
}

/* ---- a thread that is about to give up ---------------------------------------------- */

/* Raise the import to 1.  Return once it is there. */
static void raise_it(void *arg)
{
	const struct wire_state s = {.value = 1};
	struct rig *g = arg;

	wire_write(&g->peer, &s);
	while (hal_timeline_get_value(g->t, NULL) != 1)
		sched_yield();
}

/* End the exporter.  Return once the import has failed. */
static void leave_it(void *arg)
{
	struct rig *g = arg;
	int err = 0;

	wire_close(&g->peer);
	while (hal_timeline_get_value(g->t, &err), err == 0)
		sched_yield();
}

/* Submit a command that waits for value 1 of the import. */
static void submit_waiting(const struct rig *g, struct hal_queue *q,
			   struct hal_point *done)
{
	const struct hal_cmd nop = hal_cmd_of(HAL_OP_NOP, HAL_CMD_REPLAYABLE);
	const struct hal_point p = {g->t, 1};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = &nop;
	d.cmd_count = 1;
	d.waits = &p;
	d.wait_count = 1;
	OK(hal_submit(q, &d, done));
}

static void about_to_happen(struct rig *g, void (*what)(void *))
{
	before_call_arg = g;
	before_call = what;
}

/* The device of a virtual clock has run out of work, and before the thread has asked what
 * it waits for, that is there.  It is no deadlock. */
static void just_in_time(void **state)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_completions *ring;
	struct hal_completion c;
	struct hal_point done;
	struct hal_queue *q;
	struct rig g;

	(void)state;
	export_to(&g, "ref", HAL_TIMELINE_WAIT);
	submit_waiting(&g, g.r.q, &done);
	about_to_happen(&g, raise_it);
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	assert_null(before_call);
	rig_close(&g);

	export_to(&g, "ref", HAL_TIMELINE_WAIT);
	OK(hal_completions_create(g.r.dev, 8, &ring));
	d.completions = ring;
	OK(hal_queue_create(g.r.part, &d, &q));
	submit_waiting(&g, q, NULL);
	about_to_happen(&g, raise_it);
	assert_int_equal(hal_completions_read(ring, &c, 1, HAL_FOREVER), 1);
	assert_null(before_call);
	OK(hal_queue_destroy(q));
	OK(hal_completions_destroy(ring));
	rig_close(&g);

	for (int i = 0; i < 2; i++) {
		export_to(&g, "ref", HAL_TIMELINE_WAIT);
		done = (struct hal_point){g.t, 1};
		if (i == 0)
			submit_waiting(&g, g.r.q, &done);
		about_to_happen(&g, leave_it);
		FAILS(hal_wait(&done, 1, 0, HAL_FOREVER), -ECANCELED, "has ended");
		assert_null(before_call);
		OK(hal_timeline_destroy(g.t));
		ref_close(&g.r);
	}
}

/* ---- descriptors that resemble an export -------------------------------------------- */

/* The hello of wire.c. */
struct hello {
	uint64_t magic, version;
};

/* Put a hello with count descriptors into a socket; return its other end. */
static int forge(struct hello h, const int *fds, size_t count)
{
	struct iovec from = {&h, sizeof(h)};
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} c;
	struct msghdr m = {.msg_iov = &from, .msg_iovlen = 1};
	int ends[2];

	memset(&c, 0, sizeof(c));
	if (count != 0) {
		c.align.cmsg_level = SOL_SOCKET;
		c.align.cmsg_type = SCM_RIGHTS;
		c.align.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&c.align), fds, count * sizeof(int));
		m.msg_control = &c;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	assert_int_equal(sendmsg(ends[1], &m, MSG_NOSIGNAL), sizeof(h));
	OK(close(ends[1]));
	return ends[0];
}

/* Importing fd fails with err, and leaves no descriptor open. */
static void forged(struct hal_device *dev, int fd, int err)
{
	const int before = count_fds();
	struct hal_timeline *t;

	FAILS(hal_timeline_import(dev, fd, &t), err, "hal_timeline_import");
	assert_int_equal(count_fds(), before);
	OK(close(fd));
}

static int memory_file(off_t size, int seals)
{
	int fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	OK(ftruncate(fd, size));
	OK(fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

static void forgeries(void **state)
{
	const struct hello right = {UINT64_C(0x454e494c454d4954), 1};
	const struct hello other = {UINT64_C(0x454e494c454d4954), 2};
	const struct hello wrong = {UINT64_C(0x123), 1};
	int good = memory_file(4096, F_SEAL_SHRINK), shrinks = memory_file(4096, 0),
	    small = memory_file(64, F_SEAL_SHRINK), pair[2], stream[2];
	struct ref r;

	(void)state;
	ref_open_with(&r, "ref", NULL);
	OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream));
	/* Start the thread, whose descriptors stay. */
	assert_int_equal(hal_timeline_import(r.dev, pair[0], &(struct hal_timeline *){0}),
			 -EINVAL);
	forged(r.dev, forge(wrong, (int[]){good, pair[0]}, 2), -EINVAL);
	forged(r.dev, forge(other, (int[]){good, pair[0]}, 2), -EPROTO);
	forged(r.dev, forge(right, NULL, 0), -EINVAL);
	forged(r.dev, forge(right, &good, 1), -EINVAL);
	forged(r.dev, forge(right, (int[]){shrinks, pair[0]}, 2), -EINVAL);
	forged(r.dev, forge(right, (int[]){small, pair[0]}, 2), -EINVAL);
	forged(r.dev, forge(right, (int[]){stream[0], pair[0]}, 2), -EINVAL);
	forged(r.dev, forge(right, (int[]){good, stream[0]}, 2), -EINVAL);
	forged(r.dev, forge(right, (int[]){good, good}, 2), -EINVAL);
	for (int i = 0; i < 2; i++)
		OK(close(pair[i]) + close(stream[i]));
	OK(close(good) + close(shrinks) + close(small));
	ref_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(system_calls),
		cmocka_unit_test(malformed),
		cmocka_unit_test(without_the_right),
		cmocka_unit_test(values_go_up),
		cmocka_unit_test(no_echo),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(flood),
		cmocka_unit_test(never_reads),
		cmocka_unit_test(just_in_time),
		cmocka_unit_test(forgeries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
