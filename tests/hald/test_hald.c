/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_hald - programs on one device, and their ends: a program is killed, forks, breaks
 * the protocol; hald is killed.
 *
 * Each test starts a hald of its own.  Other programs are children of this process, which
 * open the device after the fork.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#include <hal/hald.h>

#include "hald_world.h"

static void two_programs(void **state)
{
	struct program a, b;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	OK(program_open(&h, &a, 4));
	OK(program_open(&h, &b, 4));
	for (uint32_t i = 0; i < 20; i++) {
		OK(program_works(&a, i));
		OK(program_works(&b, ~i));
	}
	program_close(&a);
	OK(program_works(&b, 1));
	program_close(&b);
	hald_stop(&h);
}

/* ---- a program is killed ------------------------------------------------------------ */

/* In a child: take all units and keep them busy, write a number to `ready`, and stay.
 * With forks set, leave the socket to a child that stays, too; the number is its own. */
static void hog(const struct hald *h, int ready, bool forks)
{
	struct program p;
	pid_t child = 0;

	if (program_open(h, &p, ALL_UNITS) != 0 || program_works(&p, ~0u) != 0 ||
	    program_spins(&p) != 0)
		_exit(1);
	if (forks)
		child = fork();
	if (!forks || child > 0)
		(void)!write(ready, &child, sizeof(child));
	for (;;)
		(void)pause();
}

/* Start a hog and wait until it has all units.  *child: its own child; 0: none. */
static pid_t hog_start(const struct hald *h, bool forks, pid_t *child)
{
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		(void)close(ready[0]);
		hog(h, ready[1], forks);
	}
	assert_true(pid > 0);
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], child, sizeof(*child)), sizeof(*child));
	(void)close(ready[0]);
	return pid;
}

static void killed(const char *target, bool forks)
{
	struct program p;
	struct hald h;
	int64_t took;
	pid_t pid, child;

	hald_start(&h, target);
	pid = hog_start(&h, forks, &child);
	assert_int_equal(kill(pid, SIGKILL), 0);
	took = take_all(&h, &p);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	print_message("%s%s: all units %.2f ms after the kill\n", target,
		      forks ? ", with a child" : "", (double)took / 1e6);
	/* The launch would have gone on for seconds. */
	assert_true(took < INT64_C(2000000000));
	nothing_is_left(&p);
	program_close(&p);
	hald_stop(&h);
	if (child > 0)
		assert_int_equal(kill(child, SIGKILL), 0);
}

static void killed_in_real_time(void **state)
{
	(void)state;
	killed("ref?clock=real", false);
}

static void killed_in_virtual_time(void **state)
{
	(void)state;
	killed("ref", false);
}

/* The child of a killed program keeps its socket open, and does not keep it alive. */
static void killed_with_a_child(void **state)
{
	(void)state;
	killed("ref?clock=real", true);
}

/* A killed program harms nobody beside it. */
static void killed_beside(void **state)
{
	struct program p;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	OK(program_open(&h, &p, 4));
	for (uint32_t i = 0; i < 10; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			struct program other;

			(void)program_open(&h, &other, 4);
			(void)program_works(&other, i);
			(void)kill(getpid(), SIGKILL);
		}
		OK(program_works(&p, i));
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		OK(program_works(&p, ~i));
	}
	program_close(&p);
	hald_stop(&h);
}

/* A child cannot use what its parent has opened. */
static void forked(void **state)
{
	struct program p;
	struct hald h;
	int status;
	pid_t pid;

	(void)state;
	hald_start(&h, "ref?clock=real");
	OK(program_open(&h, &p, 4));
	pid = fork();
	if (pid == 0)
		_exit(hal_buffer_destroy(p.buf) == -EPERM &&
				      program_works(&p, 1) == -EPERM
			      ? 0
			      : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	OK(program_works(&p, 2));
	program_close(&p);
	hald_stop(&h);
}

/* ---- hald is killed ----------------------------------------------------------------- */

struct waiting {
	struct hal_point point;
	_Atomic int64_t ended_ns;
	int err;
};

static void *wait_for_ever(void *arg)
{
	struct waiting *w = arg;

	w->err = hal_wait(&w->point, 1, 0, HAL_FOREVER);
	w->ended_ns = now_ns();
	return NULL;
}

static void hald_is_killed(void **state)
{
	struct waiting w = {{NULL, 0}, 0, 0};
	struct program p;
	struct hald h;
	pthread_t thread;
	int64_t at;

	(void)state;
	hald_start(&h, "ref?clock=real");
	OK(program_open(&h, &p, 4));
	OK(program_works(&p, 1));
	w.point = (struct hal_point){hal_queue_get_timeline(p.q), 1000};
	assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, &w), 0);
	OK(program_works(&p, 2));
	at = now_ns();
	hald_kill(&h);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(w.err, -ENODEV);
	print_message("-ENODEV %.2f ms after the kill\n",
		      (double)(w.ended_ns - at) / 1e6);
	assert_int_equal(program_works(&p, 3), -ENODEV);
	assert_non_null(strstr(hal_last_error(), "hald has ended"));
	/* What is left can be put away. */
	program_close(&p);
	/* A new one serves, over the socket that the old one has left. */
	hald_begin(&h, "ref?clock=real");
	OK(program_open(&h, &p, 4));
	OK(program_works(&p, 4));
	program_close(&p);
	hald_stop(&h);
}

/* Submit a fill without waiting for it. */
static int program_submits(struct program *p, struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_fill(p->buf, 0, 4096, 5);

	d.cmds = &cmd;
	d.cmd_count = 1;
	return hal_submit(p->q, &d, done);
}

/* What is submitted before a call of the program has noticed the end of hald fails at its
 * wait, and later submissions are refused.  A program that never waits notices when its
 * ring is full. */
static void submitted_after_the_end(void **state)
{
	struct program waits, submits;
	uint32_t accepted = 0;
	struct hal_point done;
	struct hald h;
	int err;

	(void)state;
	hald_start(&h, "ref?clock=real");
	OK(program_open(&h, &waits, 4));
	OK(program_open(&h, &submits, 4));
	OK(program_works(&waits, 1));
	OK(program_works(&submits, 1));
	hald_kill(&h);
	OK(program_submits(&waits, &done));
	assert_int_equal(hal_wait(&done, 1, 0, HAL_FOREVER), -ENODEV);
	assert_non_null(strstr(hal_last_error(), "hald has ended"));
	assert_int_equal(program_submits(&waits, &done), -ENODEV);
	/* -EAGAIN: it asks at most once a millisecond whether hald is there. */
	while ((err = program_submits(&submits, NULL)) != -ENODEV) {
		assert_true(err == 0 || err == -EAGAIN);
		accepted += err == 0;
	}
	assert_in_range(accepted, 1, HAL_COMMANDS_MAX);
	program_close(&submits);
	program_close(&waits);
	hald_begin(&h, "ref?clock=real"); /* removes the socket */
	hald_stop(&h);
}

static void hald_is_ended(void **state)
{
	struct program p;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	OK(program_open(&h, &p, 4));
	OK(program_spins(&p));
	hald_stop(&h);
	assert_int_equal(program_works(&p, 3), -ENODEV);
	program_close(&p);
}

/* Descriptors tell of completions, of points, and of the end of hald. */
static void descriptors(void **state)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_completions *ring;
	struct hal_completion c[8];
	struct pollfd fds[2];
	struct hal_point p;
	struct hal_cmd cmd;
	struct program a;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	OK(program_open(&h, &a, 4));
	OK(hal_completions_create(a.dev, 8, &ring));
	OK(hal_queue_destroy(a.q));
	qd.completions = ring;
	OK(hal_queue_create(a.part, &qd, &a.q));
	fds[0] = (struct pollfd){hal_completions_get_fd(ring), POLLIN, 0};
	cmd = hal_cmd_fill(a.buf, 0, 4096, 1);
	d.cmds = &cmd;
	d.cmd_count = 1;
	for (uint32_t i = 0; i < 100; i++) {
		p = (struct hal_point){hal_queue_get_timeline(a.q), i + 1};
		fds[1] = (struct pollfd){hal_point_open_fd(&p), POLLIN, 0};
		assert_int_equal(poll(fds, 2, 0), 0);
		OK(hal_submit(a.q, &d, &p));
		for (uint32_t k = 0; k < 2; k++) {
			assert_int_equal(poll(&fds[k], 1, 60000), 1);
			/* A descriptor of a point may hang up, too. */
			assert_int_equal(fds[k].revents & ~(k == 1 ? POLLHUP : 0),
					 POLLIN);
		}
		(void)close(fds[1].fd);
		assert_int_equal(hal_completions_read(ring, c, 8, 0), 1);
	}
	/* One that is closed harms nobody. */
	p.value = 101;
	(void)close(hal_point_open_fd(&p));
	OK(hal_submit(a.q, &d, &p));
	OK(hal_wait(&p, 1, 0, now_ns() + LONG_NS));
	assert_int_equal(hal_completions_read(ring, c, 8, 0), 1);
	p.value = 1000;
	fds[1] = (struct pollfd){hal_point_open_fd(&p), POLLIN, 0};
	assert_int_equal(poll(fds, 2, 0), 0);
	hald_kill(&h);
	for (uint32_t k = 0; k < 2; k++) {
		assert_int_equal(poll(&fds[k], 1, 60000), 1);
		assert_int_equal(fds[k].revents, POLLHUP);
	}
	(void)close(fds[1].fd);
	assert_int_equal(hal_completions_read(ring, c, 8, HAL_FOREVER), -ENODEV);
	OK(hal_device_get_info(a.dev, &info));
	assert_int_equal(info.lost, -ENODEV);
	assert_int_equal(info.unit_rows * info.unit_cols, ALL_UNITS);
	OK(hal_queue_destroy(a.q));
	OK(hal_completions_destroy(ring));
	OK(hal_buffer_destroy(a.buf));
	OK(hal_partition_destroy(a.part));
	OK(hal_close(a.dev));
}

/* A thread that is cancelled in hal_wait does not end its program's connection, and what
 * it waited for can be destroyed. */
static void cancelled_waits(void **state)
{
	struct program p;
	struct hald h;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	print_message(
		"skipped: the sanitizer takes what a cancelled thread leaves on its "
		"stack for variables\n");
	skip();
#endif
	hald_start(&h, "ref?clock=real");
	OK(program_open(&h, &p, 4));
	for (uint32_t i = 0; i < 10; i++) {
		struct waiting w = {{NULL, 1}, 0, 0};
		pthread_t thread;

		OK(hal_timeline_create(p.dev, &w.point.timeline));
		assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, &w), 0);
		/* Some are cancelled before they wait, others while they do. */
		for (uint32_t k = 0; k < i * 20; k++)
			OK(program_works(&p, k));
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		OK(hal_timeline_destroy(w.point.timeline));
		OK(program_works(&p, i));
	}
	program_close(&p);
	hald_stop(&h);
}

/* ---- hostile programs ---------------------------------------------------------------- */

/* Whatever a program sends, it is answered or its connection is closed, and the program
 * beside it does not notice. */
static void nonsense(void **state)
{
	uint64_t seed = 1;
	struct program p;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	OK(program_open(&h, &p, 4));
	for (uint32_t i = 0; i < 3000; i++) {
		int fd = i % 5 == 0 ? raw_connect(&h) : raw_client(&h);
		char data[700];
		struct far_message m;

		for (uint32_t k = 0; k < 4; k++) {
			unsigned char *at = (unsigned char *)&m;

			for (size_t n = 0; n < sizeof(m); n++) {
				seed = seed * UINT64_C(6364136223846793005) + 1442695;
				at[n] = (unsigned char)(seed >> 56);
				data[n % sizeof(data)] = (char)(seed >> 48);
			}
			/* Small numbers get further. */
			m.op = (uint32_t)(seed >> 40) % (FAR_OPS + 2);
			m.bytes = (seed >> 20) % sizeof(data);
			for (uint32_t n = 0; n < FAR_NUMBERS; n++)
				if ((seed >> (20 + n) & 3) != 0)
					m.a[n] %= 70;
			/* These wait for what does not come. */
			if (m.op == FAR_CALLBACK || m.op == FAR_DEVICE_POLL)
				m.op = FAR_CLOSE;
			if (raw_ask(fd, &m, data, m.bytes) == -ENOTCONN)
				break;
		}
		(void)close(fd);
		if (i % 100 == 0)
			OK(program_works(&p, i));
	}
	OK(program_works(&p, 5));
	program_close(&p);
	hald_stop(&h);
}

/* Messages that are no messages. */
static void malformed(void **state)
{
	static char large[sizeof(struct far_message) + FAR_INLINE + 100];
	struct far_message m = {.op = FAR_HELLO, .a = {FAR_VERSION + 1}};
	struct hald h;
	int fd, fds[2];

	(void)state;
	hald_start(&h, "ref?clock=real");
	/* Another version is told so. */
	fd = raw_connect(&h);
	assert_int_equal(raw_ask(fd, &m, NULL, 0), -EPROTO);
	(void)close(fd);
	/* Too short, too long, and of another size than it says. */
	for (size_t n = 1; n < sizeof(large); n = n * 3 + 1) {
		fd = raw_client(&h);
		assert_true(send(fd, large, n == sizeof(m) ? n + 1 : n, MSG_NOSIGNAL) >
			    0);
		assert_true(recv(fd, large, sizeof(m), 0) <= 0);
		memset(large, 0, sizeof(large));
		(void)close(fd);
	}
	/* Data that is said to be in a memfd: there is none, or it is a pipe. */
	fd = raw_client(&h);
	m = (struct far_message){.op = FAR_PROGRAM, .bytes = 1 << 20};
	assert_int_equal(raw_ask(fd, &m, NULL, 0), -EPROTO);
	(void)close(fd);
	assert_int_equal(pipe(fds), 0);
	(void)close(fds[0]);
	(void)close(fds[1]);
	hald_stop(&h);
}

/* Handles of another client are of no use. */
static void handles_of_others(void **state)
{
	struct far_message m;
	struct program p;
	struct hald h;
	int fd;

	(void)state;
	hald_start(&h, "ref?clock=real");
	OK(program_open(&h, &p, 4));
	fd = raw_client(&h);
	for (uint32_t kind = 0; kind < 10; kind++)
		for (uint32_t i = 0; i < 8; i++) {
			m = (struct far_message){
				.op = FAR_BUFFER_READ,
				.a = {UINT64_C(1) << 32 | kind << 24 | i, 0, 16}};
			assert_int_equal(raw_ask(fd, &m, NULL, 0), -EINVAL);
		}
	/* Nor is its number without its secret. */
	(void)close(fd);
	fd = raw_connect(&h);
	m = (struct far_message){.op = FAR_HELLO, .a = {FAR_VERSION, 1, 12345}};
	assert_int_equal(raw_ask(fd, &m, NULL, 0), -ECANCELED);
	(void)close(fd);
	program_close(&p);
	hald_stop(&h);
}

/* ---- tenants ------------------------------------------------------------------------- */

/* The call answers err, with a text that has `part`. */
#define REFUSED(call, err, part)                                                         \
	do {                                                                             \
		int got_ = (call);                                                       \
		if (got_ != (err) || strstr(hal_last_error(), (part)) == NULL)           \
			fail_msg("%s is %d: %s", #call, got_, hal_last_error());         \
	} while (0)

static const char two_tenants[] = "[tenant \"video\"]\n"
				  "socket = yes\n"
				  "units = 8\n"
				  "memory = 1M\n"
				  "partitions = 2\n"
				  "queues = 2\n"
				  "clients = 2\n"
				  "deadlines = no\n"
				  "[tenant \"rest\"]\n"
				  "latency = yes\n"
				  "place = yes\n"
				  "priority_max = 5\n"
				  "weight_max = 4\n"
				  "admin = yes\n";

static int partition_of(struct hal_device *dev, uint32_t units, uint64_t memory,
			struct hal_partition **part)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	d.units_floor = units;
	d.memory_bytes = memory;
	return hal_partition_create(dev, &d, part);
}

/* Limits are sums over all that a tenant has open. */
static void limits(void **state)
{
	struct hal_device *a, *b, *c;
	struct hal_partition *p, *other;
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hald h;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", two_tenants);
	opened_by(&h, "video", &a, 0);
	opened_by(&h, "video", &b, 0);
	opened_by(&h, "video", &c, -EDQUOT);
	OK(partition_of(a, 6, 600000, &p));
	REFUSED(partition_of(b, 3, 1000, &other), -EDQUOT,
		"tenant \"video\" may have 8 units in all: it has 6");
	REFUSED(partition_of(b, 1, 600000, &other), -EDQUOT, "bytes of memory in all");
	REFUSED(partition_of(b, 1, 0, &other), -EDQUOT, "memory_bytes");
	OK(partition_of(b, 2, 1000, &other));
	OK(hal_partition_destroy(p));
	OK(partition_of(a, 1, 1000, &p));
	d.units_floor = 7;
	REFUSED(hal_partition_resize(p, &d, NULL), -EDQUOT, "8 units in all: it has 2");
	{
		struct hal_partition *third;

		REFUSED(partition_of(a, 1, 1000, &third), -EDQUOT, "2 partitions in all");
	}
	OK(hal_partition_destroy(p));
	OK(hal_partition_destroy(other));
	OK(hal_close(a));
	/* Another one may come, once hald has seen the end of that connection. */
	opened_soon_by(&h, "video", &c);
	OK(hal_close(b));
	OK(hal_close(c));
	hald_with_tenants_stop(&h);
}

/* Rights of queues, submissions and of the device. */
static void rights(void **state)
{
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_device *video, *rest;
	struct hal_partition *p, *r;
	struct hal_queue *q, *q2, *q3;
	struct hald h;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real&rows=4&units=16", two_tenants);
	opened_by(&h, "video", &video, 0);
	opened_by(&h, ".", &rest, 0); /* the device's own socket */
	pd.rows = pd.cols = pd.col = 1;
	pd.memory_bytes = 100000;
	REFUSED(hal_partition_create(video, &pd, &p), -EPERM, "choose the place");
	OK(hal_partition_create(rest, &pd, &r));
	OK(partition_of(video, 1, 100000, &p));
	d.service_class = HAL_CLASS_LATENCY;
	REFUSED(hal_queue_create(p, &d, &q), -EPERM, "tenants.conf:1");
	OK(hal_queue_create(r, &d, &q3));
	d.service_class = HAL_CLASS_NORMAL;
	d.priority = 1;
	REFUSED(hal_queue_create(p, &d, &q), -EPERM, "priority");
	d.priority = 0;
	d.weight = 2;
	REFUSED(hal_queue_create(p, &d, &q), -EPERM, "weight");
	d.weight = 0;
	d.deadline_ns = 1000;
	REFUSED(hal_queue_create(p, &d, &q), -EPERM, "deadlines");
	d.deadline_ns = 0;
	OK(hal_queue_create(p, &d, &q));
	OK(hal_queue_create(p, &d, &q2));
	{
		struct hal_queue *third;

		REFUSED(hal_queue_create(p, &d, &third), -EDQUOT, "2 queues in all");
	}
	s.flags = HAL_SUBMIT_PRIORITY;
	s.priority = 1;
	REFUSED(hal_submit(q, &s, NULL), -EPERM, "priority");
	OK(hal_submit(q3, &s, NULL));
	REFUSED(hal_device_set_policy(video, "fifo", NULL), -EPERM, "admin = yes");
	OK(hal_device_set_policy(rest, "wfq", NULL));
	OK(hal_wait(&(struct hal_point){hal_queue_get_timeline(q3), 1}, 1, 0,
		    now_ns() + LONG_NS));
	OK(hal_queue_destroy(q));
	OK(hal_queue_destroy(q2));
	OK(hal_queue_destroy(q3));
	OK(hal_partition_destroy(p));
	OK(hal_partition_destroy(r));
	OK(hal_close(video));
	OK(hal_close(rest));
	hald_with_tenants_stop(&h);
}

/* In a child, as another user: open the device by the socket in `folder`.  Return whether
 * that is refused by -EACCES with that text. */
static bool stranger_is_refused(const struct hald *h, const char *folder,
				const char *text)
{
	struct hal_device *dev;
	char option[128];
	const char *const options[] = {option, NULL};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		snprintf(option, sizeof(option), "%s%s", h->option, folder);
		if (setgid(54321) != 0 || setuid(54321) != 0)
			_exit(2);
		_exit(hal_open("hald:ref0", options, &dev) != -EACCES ||
		      strstr(hal_last_error(), text) == NULL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

/* Nobody else comes in. */
static void strangers(void **state)
{
	struct hald h;

	(void)state;
	if (getuid() != 0) {
		print_message("skipped: only root has another user\n");
		skip();
	}
	hald_with_tenants(&h, "ref?clock=real",
			  "[tenant \"other\"]\nuid = 12345\n"
			  "[tenant \"inside\"]\nsocket = yes\nuid = 12345\n");
	assert_int_equal(chmod(h.dir, 0755), 0);
	assert_true(stranger_is_refused(&h, "", "no section [tenant]"));
	assert_true(stranger_is_refused(&h, "/inside", "socket of your own"));
	hald_with_tenants_stop(&h);
	hald_start(&h, "ref");
	assert_int_equal(chmod(h.dir, 0755), 0);
	assert_true(stranger_is_refused(&h, "", "socket of your own"));
	hald_stop(&h);
}

/* A file that is wrong is refused, with the place. */
static void wrong_files(void **state)
{
	static const char *const texts[] = {
		"",
		"[tenant \"a\"]\nunits = many\n",
		"[tenant \"a\"]\nunit = 3\n",
		"[tenant a]\nunits = 3\n",
		"[tenant \"../a\"]\n",
		"[tenant \"a\"]\n[tenant \"a\"]\n",
		"[hal]\ndevice = ref\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char dir[] = "/tmp/test_hald.XXXXXX", file[64], text[512] = "";
		int out[2], status;
		FILE *f;
		pid_t pid;

		assert_non_null(mkdtemp(dir));
		snprintf(file, sizeof(file), "%s/tenants.conf", dir);
		f = fopen(file, "w");
		assert_non_null(f);
		assert_true(fputs(texts[i], f) >= 0);
		assert_int_equal(fclose(f), 0);
		assert_int_equal(pipe(out), 0);
		pid = fork();
		if (pid == 0) {
			(void)dup2(out[1], STDERR_FILENO);
			execl(HALD, HALD, "--dir", dir, "--tenants", file, "ref",
			      (char *)NULL);
			_exit(127);
		}
		(void)close(out[1]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(read(out[0], text, sizeof(text) - 1) > 0);
		(void)close(out[0]);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 1 ||
		    strstr(text, file) == NULL)
			fail_msg("case %zu: status %d: %s", i, status, text);
		assert_int_equal(unlink(file), 0);
		assert_int_equal(rmdir(dir), 0);
	}
}

/* ---- all the rest --------------------------------------------------------------------- */

struct caller {
	const struct hald *h;
	struct program *p;
	pthread_t thread;
	int err;
};

static void *works_often(void *arg)
{
	struct caller *c = arg;
	struct program p = *c->p;
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);

	bd.bytes = 4096;
	c->err = hal_queue_create(p.part, &qd, &p.q);
	if (c->err == 0)
		c->err = hal_buffer_create(p.part, &bd, &p.buf);
	for (uint32_t i = 0; c->err == 0 && i < 100; i++)
		c->err = program_works(&p, i);
	if (c->err == 0)
		c->err = hal_queue_destroy(p.q);
	if (c->err == 0)
		c->err = hal_buffer_destroy(p.buf);
	return NULL;
}

static void many_threads(void **state)
{
	struct caller callers[8];
	struct program p;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	OK(program_open(&h, &p, 4));
	for (int i = 0; i < 8; i++) {
		callers[i] = (struct caller){.h = &h, .p = &p};
		assert_int_equal(pthread_create(&callers[i].thread, NULL, works_often,
						&callers[i]),
				 0);
	}
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
		assert_int_equal(callers[i].err, 0);
	}
	program_close(&p);
	hald_stop(&h);
}

static struct {
	struct program *p;
	int calls, err;
} called;

/* A host function may submit, and may not wait for its own device. */
static void call(void *user)
{
	struct hal_point p = {hal_queue_get_timeline(called.p->q), 1000};

	assert_ptr_equal(user, &called);
	called.calls++;
	called.err = hal_wait(&p, 1, 0, HAL_FOREVER);
}

static void host_functions(void **state)
{
	static const char *const targets[] = {"ref", "ref?clock=real"};
	const struct hal_cmd cmd = hal_cmd_host(call, &called);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	(void)state;
	d.cmds = &cmd;
	d.cmd_count = 1;
	for (int i = 0; i < 2; i++) {
		struct hal_point done;
		struct program p;
		struct hald h;

		hald_start(&h, targets[i]);
		OK(program_open(&h, &p, 4));
		called.p = &p;
		called.calls = 0;
		for (int k = 0; k < 5; k++)
			OK(hal_submit(p.q, &d, &done));
		OK(hal_wait(&done, 1, 0, HAL_FOREVER));
		assert_int_equal(called.calls, 5);
		assert_int_equal(called.err, -EDEADLK);
		program_close(&p);
		hald_stop(&h);
	}
}

static void not_there(void **state)
{
	const char *const options[] = {"hal.broker_dir=/nonexistent", NULL};
	const char *const misspelt[] = {"hal.broker_dirr=/nonexistent", NULL};
	struct hal_device *dev;

	(void)state;
	assert_int_equal(hal_open("hald:ref0", options, &dev), -ENODEV);
	assert_non_null(strstr(hal_last_error(), "/nonexistent/ref0.sock"));
	assert_int_equal(hal_open("hald:ref0", misspelt, &dev), -EINVAL);
	assert_int_equal(hal_open("hald:", NULL, &dev), -EINVAL);
	assert_int_equal(hal_open("hald:../x", NULL, &dev), -EINVAL);
	assert_int_equal(hal_open("hald:ref0?clock=real", NULL, &dev), -EINVAL);
}

/* ---- tenants that come and go ---------------------------------------------------------- */

static const struct hal_hald_extension *operator_of(struct hal_device *dev)
{
	const struct hal_hald_extension *hald = hal_device_get_extension(dev, "hald");

	if (hald == NULL)
		fail_msg("%s", hal_last_error());
	return hald;
}

static void tenants_at_run_time(void **state)
{
	const struct hal_hald_extension *hald;
	struct hal_device *dev, *job, *gone;
	struct hal_partition *part, *own;
	char path[256], text[4096];
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	opened_by(&h, ".", &dev, 0);
	hald = operator_of(dev);
	OK(hald->tenant_add(dev, "[tenant \"job-7\"]\nsocket=yes\nunits=3\n", path,
			    sizeof(path)));
	assert_non_null(strstr(path, "/job-7/ref0.sock"));
	REFUSED(hald->tenant_add(dev, "[tenant \"job-7\"]\n", path, sizeof(path)),
		-EEXIST, "job-7");
	REFUSED(hald->tenant_add(dev, "[tenant \"x\"]\nunit=1\nnonsense=2\n", path,
				 sizeof(path)),
		-EINVAL, "nonsense");
	REFUSED(hald->tenant_add(dev, "[other]\n", path, sizeof(path)), -EINVAL, "other");
	REFUSED(hald->tenant_add(dev, "[tenant \"a\"]\n[tenant \"b\"]\n", path,
				 sizeof(path)),
		-EINVAL, "more than one");
	opened_by(&h, "job-7", &job, 0);
	REFUSED(partition_of(job, 4, 0, &part), -EDQUOT, "3 units in all");
	OK(partition_of(job, 2, 0, &own));
	OK(hald->tenant_list(dev, text, sizeof(text)));
	assert_non_null(strstr(text, "job-7\t1\t2 of 3\t"));
	REFUSED(hald->tenant_list(dev, text, 10), -ENOBUFS, "9 bytes");
	/* A tenant is no operator, though its user is: its socket may be another's. */
	REFUSED(operator_of(job)->tenant_list(job, text, sizeof(text)), -EPERM,
		"its operator's");
	REFUSED(hald->tenant_remove(dev, "nobody"), -ENOENT, "nobody");
	OK(hald->tenant_remove(dev, "job-7"));
	/* Its clients are ended, its units are free, and its socket is gone. */
	while (partition_of(dev, ALL_UNITS, 0, &part) != 0)
		(void)sched_yield();
	OK(hal_partition_destroy(part));
	assert_int_equal(hal_device_poll(job, 0), -ENODEV);
	opened_by(&h, "job-7", &gone, -ENODEV);
	OK(hal_partition_destroy(own));
	OK(hal_close(job));
	OK(hal_close(dev));
	hald_stop(&h);
}

/* Sections that are for nobody here do not lock out who runs hald; and a tenant that is
 * added comes before them. */
static void operators(void **state)
{
	const struct hal_hald_extension *hald;
	struct hal_device *dev, *own;
	struct hal_partition *part;
	char path[256], text[256];
	struct hald h;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", "[tenant \"other\"]\nuid = 54321\n");
	opened_by(&h, ".", &dev, 0);
	hald = operator_of(dev);
	OK(partition_of(dev, ALL_UNITS, 0, &part));
	OK(hal_partition_destroy(part));
	OK(hal_device_set_policy(dev, "fifo", NULL));
	REFUSED(hald->tenant_add(dev, "[tenant \"all\"]\nunits = 1\n", path,
				 sizeof(path)),
		-EINVAL, "everybody's");
	REFUSED(hald->tenant_add(dev, "[tenant \"a b\"]\nunits = 1\n", path,
				 sizeof(path)),
		-EINVAL, "section:1: [tenant \"a b\"]");
	snprintf(text, sizeof(text),
		 "[tenant \"own\"]\nuid = %u\nunits = 1\nadmin = yes\n", getuid());
	OK(hald->tenant_add(dev, text, path, sizeof(path)));
	assert_string_equal(path, "");
	opened_by(&h, ".", &own, 0);
	REFUSED(partition_of(own, 2, 0, &part), -EDQUOT, "tenant \"own\"");
	REFUSED(operator_of(own)->tenant_remove(own, "own"), -EBUSY, "this program");
	OK(hal_close(own));
	OK(hald->tenant_remove(dev, "own"));
	REFUSED(hald->tenant_remove(dev, "other"), -EBUSY, "the only");
	OK(hal_close(dev));
	hald_with_tenants_stop(&h);
}

static mode_t mode_of(const char *folder, const char *file)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

/* Who may connect: whom the sections are to decide about, all; to a tenant's socket, who
 * gets into its folder; without sections, whom umask says. */
static void permissions(void **state)
{
	const mode_t before = umask(077);
	struct hald h;

	(void)state;
	hald_with_tenants(&h, "ref", two_tenants);
	assert_int_equal(mode_of(h.dir, "ref0.sock"), 0666);
	assert_int_equal(mode_of(h.dir, "video"), 0700);
	assert_int_equal(mode_of(h.dir, "video/ref0.sock"), 0666);
	hald_with_tenants_stop(&h);
	hald_start(&h, "ref");
	assert_int_equal(mode_of(h.dir, "ref0.sock"), 0700);
	hald_stop(&h);
	(void)umask(before);
}

/* A file that is no socket stays where it is, and hald ends with status 1. */
static void no_socket(void **state)
{
	char path[128];
	struct hald h;
	int status;

	(void)state;
	hald_prepare(&h);
	snprintf(path, sizeof(path), "%s/ref0.sock", h.dir);
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	h.pid = fork();
	if (h.pid == 0)
		hald_exec(&h, "ref");
	assert_int_equal(waitpid(h.pid, &status, 0), h.pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(h.dir), 0);
}

/* Control group and user, as the kernel says. */
static void identities(void **state)
{
	char text[1024], line[512] = "", *group;
	FILE *f = fopen("/proc/self/cgroup", "r");
	struct hal_device *dev;
	struct hald h;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL && strncmp(line, "0::", 3) != 0)
		;
	(void)fclose(f);
	group = line + 3;
	group[strcspn(group, "\n")] = '\0';
	/* Sections that do not fit come first. */
	snprintf(text, sizeof(text),
		 "[tenant \"label\"]\nlabel = none_that_there_is\n"
		 "[tenant \"group\"]\ncgroup = /none/that/there/is\n"
		 "[tenant \"unit\"]\nunit = none.that.there.is\n"
		 "[tenant \"uid\"]\nuid = 12345\n"
		 "[tenant \"own\"]\nuid = %u\ncgroup = %s\npartitions = 0\n",
		 getuid(), strncmp(line, "0::", 3) == 0 ? group : "");
	hald_with_tenants(&h, "ref?clock=real", text);
	opened_by(&h, ".", &dev, 0);
	{
		struct hal_partition *part;

		REFUSED(partition_of(dev, 1, 0, &part), -EDQUOT, "tenant \"own\"");
	}
	OK(hal_close(dev));
	hald_with_tenants_stop(&h);
}

/* What a tenant is told has nothing of another in it. */
static void secrets(void **state)
{
	static const char tenants[] = "[tenant \"spy\"]\nsocket = yes\nmemory = 1M\n"
				      "[tenant \"rest\"]\nlatency = yes\n";
	struct hal_device_info info = HAL_INIT(hal_device_info), later = info;
	struct hal_stats stats = HAL_INIT(hal_stats);
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_partition *part;
	struct hal_device *spy;
	struct program p;
	struct hald h;
	int err;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	opened_by(&h, "spy", &spy, 0);
	OK(hal_device_get_info(spy, &info));
	OK(program_open(&h, &p, 12));
	OK(program_works(&p, 5));
	/* Free memory and statistics are its own. */
	OK(hal_device_get_info(spy, &later));
	assert_int_equal(info.memory_free, later.memory_free);
	assert_int_equal(info.memory_free, 1 << 20);
	OK(hal_device_get_stats(spy, &stats));
	assert_int_equal(stats.submitted, 0);
	assert_int_equal(stats.busy_ns, 0);
	/* A refusal says nothing of who has the units, nor how many. */
	pd.units_floor = 8;
	pd.memory_bytes = 4096;
	err = hal_partition_create(spy, &pd, &part);
	assert_int_equal(err, -ENOSPC);
	assert_string_equal(hal_last_error(), "the device has no room for this now");
	REFUSED(hal_trace_start(spy, "/dev/null"), -EINVAL, "regular file");
	pd.units_floor = 2;
	OK(hal_partition_create(spy, &pd, &part));
	OK(hal_device_get_info(spy, &later));
	assert_int_equal(later.memory_free, (1 << 20) - 4096);
	OK(hal_partition_destroy(part));
	OK(hal_close(spy));
	program_close(&p);
	hald_with_tenants_stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_programs),
		cmocka_unit_test(killed_in_real_time),
		cmocka_unit_test(killed_in_virtual_time),
		cmocka_unit_test(killed_with_a_child),
		cmocka_unit_test(killed_beside),
		cmocka_unit_test(forked),
		cmocka_unit_test(hald_is_killed),
		cmocka_unit_test(submitted_after_the_end),
		cmocka_unit_test(hald_is_ended),
		cmocka_unit_test(descriptors),
		cmocka_unit_test(cancelled_waits),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(malformed),
		cmocka_unit_test(handles_of_others),
		cmocka_unit_test(limits),
		cmocka_unit_test(rights),
		cmocka_unit_test(strangers),
		cmocka_unit_test(wrong_files),
		cmocka_unit_test(many_threads),
		cmocka_unit_test(host_functions),
		cmocka_unit_test(tenants_at_run_time),
		cmocka_unit_test(identities),
		cmocka_unit_test(operators),
		cmocka_unit_test(permissions),
		cmocka_unit_test(no_socket),
		cmocka_unit_test(secrets),
		cmocka_unit_test(not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
