/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress - eight threads do everything at once on four devices, and nothing is lost.
 *
 *   stress_core [--seconds N | --steps EACH] [--seed S]
 *
 * Three devices run in real time, one in virtual.  Every thread goes by its own random
 * numbers, from the seed: what it does is the same each time, when it does it is not.  A
 * thread's queue ends each of its submissions exactly once, well, in order, or the
 * program says what came instead.  In the end the sums of all that was submitted are
 * those that the devices have counted.  With --steps each thread does so many jobs,
 * however long that takes.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <hal/hal.h>
#include <hal/ref.h>

enum {
	THREADS = 8,
	DEVICES = 4, /* the last is virtual */
	STUCK_S = 120,
	FAR_MS = 100000,
};

#ifdef __SANITIZE_THREAD__
/* It sees nothing that a thread does after it was cancelled inside libc. */
#define MAY_CANCEL 0
#else
#define MAY_CANCEL 1
#endif

struct device {
	struct hal_device *dev;
	struct hal_partition *part;    /* all threads' */
	struct hal_partition *movable; /* resized while queues come and go in it */
	struct hal_completions *ring;
	struct hal_program *prog;
	struct hal_kernel *kernel;
	pthread_mutex_t reader; /* of .ring: one at a time */
	_Atomic uint64_t submitted, told, read;
	_Atomic uint64_t in_movable;
};

struct thread {
	unsigned int number;
	uint64_t random;
	struct hal_queue *q[DEVICES];
	struct hal_timeline *t[DEVICES]; /* signalled by callbacks of other devices */
	uint64_t value[DEVICES];         /* that they will have reached */
	_Atomic uint64_t called;         /* callbacks, all of them together */
	uint64_t to_call;
	_Atomic uint64_t steps;
	_Atomic(const char *) doing;
};

/* Of all its queues that others share a partition with. */
static uint16_t class_of(const struct thread *th)
{
	return (uint16_t)(th->number % (HAL_CLASS_BEST_EFFORT + 1));
}

/* One of a callback's many jobs: it signals another device's timeline. */
struct crossing {
	struct thread *th;
	struct hal_timeline *t;
	uint64_t value;
};

static struct device devices[DEVICES];
static struct thread threads[THREADS];
static atomic_bool stop, over;
static uint64_t seed = 1;
static uint64_t steps_each; /* 0: until `stop` */
static const char has_ended[] = "has ended";

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "stress: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (seed %llu)\n", (unsigned long long)seed);
	fflush(stderr);
	_Exit(1);
}

#define MUST(call)                                                                       \
	do {                                                                             \
		int must_ = (call);                                                      \
		if (must_ != 0)                                                          \
			die("line %d: %s is %d: %s", __LINE__, #call, must_,             \
			    hal_last_error());                                           \
	} while (0)

static int64_t in_ms(int64_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + ms * 1000000;
}

/* splitmix64 */
static uint64_t next_random(struct thread *th)
{
	uint64_t z = th->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint32_t below(struct thread *th, uint32_t n)
{
	return (uint32_t)(next_random(th) % n);
}

/* ---- devices --------------------------------------------------------------------- */

static int work(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

static const struct hal_ref_kernel kernels[] = {
	{.name = "work", .fn = work, .work = 3000}};

static struct hal_partition *partition(struct hal_device *dev, uint32_t units)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p;

	d.units_floor = units;
	MUST(hal_partition_create(dev, &d, &p));
	return p;
}

static void open_all(void)
{
	for (int i = 0; i < DEVICES; i++) {
		struct device *d = &devices[i];

		MUST(hal_open(i == DEVICES - 1 ? "ref?clock=virtual" : "ref?clock=real",
			      NULL, &d->dev));
		/* Of a virtual clock there are fds only then. */
		MUST(hal_device_poll(d->dev, 0));
		d->part = partition(d->dev, 4);
		d->movable = partition(d->dev, 2);
		MUST(hal_completions_create(d->dev, 1024, &d->ring));
		MUST(hal_ref_load(d->dev, kernels, 1, &d->prog));
		MUST(hal_kernel_find(d->prog, "work", &d->kernel));
		pthread_mutex_init(&d->reader, NULL);
	}
}

/* ---- what a thread does ---------------------------------------------------------- */

static bool is_virtual(uint32_t device)
{
	return device == DEVICES - 1;
}

/* A time-out is no error where little time was given. */
static void wait_for(struct thread *th, uint32_t device, struct hal_point p)
{
	int err;

	if (below(th, 8) == 0) {
		err = hal_wait(&p, 1, 0, is_virtual(device) ? 0 : in_ms(0));
		if (err == 0)
			return;
		if (err != -ETIMEDOUT)
			die("a short wait is %d: %s", err, hal_last_error());
	}
	err = hal_wait(&p, 1, 0, in_ms(FAR_MS));
	if (err != 0)
		die("thread %u, device %u: %d: %s", th->number, device, err,
		    hal_last_error());
}

static void read_some(uint32_t device)
{
	struct device *d = &devices[device];
	struct hal_completion c[64];
	int n;

	if (pthread_mutex_trylock(&d->reader) != 0)
		return;
	n = hal_completions_read(d->ring, c, 64, 0);
	if (n < 0)
		die("hal_completions_read is %d: %s", n, hal_last_error());
	for (int i = 0; i < n; i++)
		if (c[i].status != 0 || c[i].tag != c[i].value)
			die("completion of value %llu: status %d, tag %llu",
			    (unsigned long long)c[i].value, c[i].status,
			    (unsigned long long)c[i].tag);
	atomic_fetch_add(&d->read, (uint64_t)n);
	pthread_mutex_unlock(&d->reader);
}

/* Each submission's tag is the value it will reach. */
static struct hal_point submit(struct thread *th, uint32_t device,
			       struct hal_submit_desc *s, struct hal_sequence *seq)
{
	struct hal_point p = {hal_queue_get_timeline(th->q[device]), 0};
	static _Thread_local uint64_t made[DEVICES];
	int err;

	s->tag = made[device] + 1;
	for (;;) {
		err = seq != NULL ? hal_sequence_submit(th->q[device], seq, s, &p)
				  : hal_submit(th->q[device], s, &p);
		if (err != -EAGAIN)
			break;
		/* The queue or the ring is full: somebody has to make room. */
		read_some(device);
		if (is_virtual(device))
			(void)hal_device_poll(devices[device].dev, 1000);
		else
			sched_yield();
	}
	if (err != 0 || p.value != ++made[device])
		die("hal_submit is %d, value %llu instead of %llu: %s", err,
		    (unsigned long long)p.value, (unsigned long long)made[device],
		    hal_last_error());
	atomic_fetch_add(&devices[device].submitted, s->cmd_count);
	return p;
}

static struct hal_cmd some_command(struct thread *th, uint32_t device)
{
	if (below(th, 2) == 0)
		return hal_cmd_launch(devices[device].kernel, NULL, 0);
	return hal_cmd_of(HAL_OP_NOP, HAL_CMD_REPLAYABLE);
}

static void commands(struct thread *th, uint32_t device)
{
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmds[24];
	struct hal_point p;

	s.cmds = cmds;
	s.cmd_count = below(th, 6) == 0 ? 24 : 1 + below(th, 4);
	for (uint32_t i = 0; i < s.cmd_count; i++) {
		cmds[i] = some_command(th, device);
		cmds[i].flags = HAL_CMD_REPLAYABLE;
	}
	if (below(th, 4) == 0)
		s.not_before_ns =
			hal_device_get_time(devices[device].dev) + below(th, 200000);
	if (below(th, 4) == 0 && class_of(th) != HAL_CLASS_BEST_EFFORT)
		s.deadline_ns = (s.not_before_ns != 0 ? 200000 : 1) + below(th, 100000);
	p = submit(th, device, &s, NULL);
	if (below(th, 3) != 0)
		wait_for(th, device, p);
}

static void cross(void *user)
{
	struct crossing *c = user;
	struct hal_stats st = HAL_INIT(hal_stats);

	MUST(hal_timeline_signal(c->t, c->value));
	if (c->value % 16 == 0)
		MUST(hal_device_get_stats(devices[c->value / 16 % DEVICES].dev, &st));
	atomic_fetch_add(&c->th->called, 1);
	free(c);
}

/* A callback of one device signals a timeline of another, for which a queue there and the
 * thread itself wait. */
static void across(struct thread *th, uint32_t from)
{
	uint32_t to = (from + 1 + below(th, DEVICES - 1)) % DEVICES;
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct crossing *c = malloc(sizeof(*c));
	struct hal_point at, p[2];
	struct hal_cmd cmd[2];

	if (c == NULL)
		die("no memory");
	at = (struct hal_point){th->t[to], ++th->value[to]};
	*c = (struct crossing){th, at.timeline, at.value};
	cmd[0] = hal_cmd_host(cross, c);
	cmd[1] = hal_cmd_of(HAL_OP_BARRIER, 0);
	s.cmds = cmd;
	s.cmd_count = 1 + below(th, 2);
	th->to_call++;
	p[0] = submit(th, from, &s, NULL);
	cmd[0] = some_command(th, to);
	s.cmd_count = 1;
	s.waits = &at;
	s.wait_count = 1;
	p[1] = submit(th, to, &s, NULL);
	/* The virtual device's own turn is nobody else's: first the one that signals. */
	wait_for(th, from, p[0]);
	wait_for(th, to, p[1]);
}

/* Another thread signals what a queue waits for. */
static void from_the_host(struct thread *th, uint32_t device)
{
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_point at, fdp, p;
	struct hal_timeline *t;
	struct hal_cmd cmd = some_command(th, device);
	struct pollfd f = {.events = POLLIN};

	MUST(hal_timeline_create(devices[device].dev, &t));
	at = (struct hal_point){t, 7};
	fdp = (struct hal_point){t, 7};
	s.cmds = &cmd;
	s.cmd_count = 1;
	s.waits = &at;
	s.wait_count = 1;
	p = submit(th, device, &s, NULL);
	f.fd = hal_point_open_fd(&fdp);
	if (f.fd < 0)
		die("hal_point_open_fd is %d: %s", f.fd, hal_last_error());
	if (hal_timeline_destroy(t) != -EBUSY)
		die("a timeline for which work waits is destroyed");
	MUST(hal_timeline_signal(t, 7 + below(th, 3)));
	if (poll(&f, 1, FAR_MS) != 1)
		die("a point's fd does not become readable");
	close(f.fd);
	wait_for(th, device, p);
	MUST(hal_timeline_destroy(t));
}

static void sequence(struct thread *th, uint32_t device)
{
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc),
			       one = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmds[5];
	struct hal_sequence *seq;
	struct hal_point p = {NULL, 0};

	for (int i = 0; i < 5; i++)
		cmds[i] = some_command(th, device);
	s.cmds = cmds;
	s.cmd_count = 5;
	MUST(hal_sequence_create(devices[device].part, &s, &seq));
	for (uint32_t n = below(th, 4); n < 4; n++) {
		p = submit(th, device, &one, seq);
		atomic_fetch_add(&devices[device].submitted, 5);
	}
	MUST(hal_sequence_destroy(seq));
	wait_for(th, device, p);
}

static void suspend(struct thread *th, uint32_t device)
{
	uint32_t mode = below(th, 2) == 0 ? HAL_SUSPEND_KILL : HAL_SUSPEND_DRAIN;
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_of(HAL_OP_NOP, HAL_CMD_REPLAYABLE);
	struct hal_point quiet, p;
	int err = hal_queue_suspend(th->q[device], mode, &quiet);

	if (err == -ENOTSUP)
		return; /* a command is running that may not be killed */
	if (err == -EBUSY && class_of(th) == HAL_CLASS_BEST_EFFORT)
		return; /* it makes way */
	MUST(err);
	if (below(th, 2) == 0)
		wait_for(th, device, quiet);
	s.cmds = &cmd;
	s.cmd_count = 1;
	MUST(hal_queue_resume(th->q[device]));
	if (below(th, 2) == 0) {
		p = submit(th, device, &s, NULL);
		wait_for(th, device, p);
	}
	/* A resume is only asked for until then, and a suspend refused. */
	wait_for(th, device, quiet);
}

/* Queues, buffers, programs of its own, in a partition that others move. */
static void a_life(struct thread *th, uint32_t device)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct device *d = &devices[device];
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_program *prog;
	struct hal_kernel *k;
	struct hal_buffer *b;
	struct hal_queue *q;
	struct hal_cmd cmds[2];
	struct hal_point p;
	uint32_t word = 0;
	bool early;

	qd.priority = (int32_t)below(th, 3);
	qd.weight = 1 + below(th, 4);
	MUST(hal_queue_create(d->movable, &qd, &q));
	bd.bytes = 256;
	MUST(hal_buffer_create(d->movable, &bd, &b));
	MUST(hal_ref_load(d->dev, kernels, 1, &prog));
	MUST(hal_kernel_find(prog, "work", &k));
	cmds[0] = hal_cmd_fill(b, 0, 256, 0x1234);
	cmds[1] = hal_cmd_launch(k, NULL, 0);
	s.cmds = cmds;
	s.cmd_count = 2;
	MUST(hal_submit(q, &s, &p));
	atomic_fetch_add(&d->in_movable, 2);
	early = below(th, 2) == 0;
	if (early)
		MUST(hal_program_unload(prog));
	wait_for(th, device, p);
	MUST(hal_buffer_read(b, 128, &word, sizeof(word)));
	if (word != 0x1234)
		die("a fill has left 0x%x", word);
	MUST(hal_buffer_destroy(b));
	if (!early)
		MUST(hal_program_unload(prog));
	MUST(hal_queue_destroy(q));
}

static void move(struct thread *th, uint32_t device)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_point moved;
	int err;

	d.units_floor = below(th, 6) == 0 ? 1000 : 1 + below(th, 4);
	err = hal_partition_resize(devices[device].movable, &d, &moved);
	if (err == 0)
		wait_for(th, device, moved);
	else if (err != -EBUSY && err != -ENOSPC)
		die("hal_partition_resize is %d: %s", err, hal_last_error());
	MUST(hal_partition_get_info(devices[device].movable, &i));
	if (i.units < 1 || i.units > 4)
		die("a partition of %u units", i.units);
}

static void a_partition(struct thread *th, uint32_t device)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p;
	int err;

	d.units_floor = 1 + below(th, 2);
	d.memory_bytes = 4096;
	err = hal_partition_create(devices[device].dev, &d, &p);
	if (err == -ENOSPC)
		return;
	MUST(err);
	MUST(hal_partition_destroy(p));
}

static void look(struct thread *th, uint32_t device)
{
	struct hal_device_info i = HAL_INIT(hal_device_info);
	struct hal_policy_info p = HAL_INIT(hal_policy_info);
	struct hal_stats s = HAL_INIT(hal_stats), t = HAL_INIT(hal_stats);
	struct device *d = &devices[device];

	MUST(hal_queue_get_stats(th->q[device], &s));
	MUST(hal_device_get_stats(d->dev, &s));
	MUST(hal_partition_get_stats(d->part, &t));
	if (t.completed > t.submitted || s.completed > s.submitted)
		die("more has ended than was submitted");
	if (t.failed + s.failed + t.dropped + s.dropped != 0)
		die("something has failed");
	MUST(hal_device_get_info(d->dev, &i));
	MUST(hal_device_get_policy(d->dev, &p));
	if (p.fallback != 0)
		die("the policy was given up: %s", p.reason);
	(void)hal_device_get_time(d->dev);
	if (hal_device_poll(d->dev, below(th, 2000)) < 0)
		die("hal_device_poll: %s", hal_last_error());
}

static void policy(struct thread *th, uint32_t device)
{
	static const char *const names[] = {"fifo", "rr", "priority", "wfq", "edf"};

	MUST(hal_device_set_policy(devices[device].dev, names[below(th, 5)], NULL));
}

static void trace(struct thread *th, uint32_t device)
{
	int err = hal_trace_start(devices[device].dev, "/dev/null");

	if (err == -EBUSY)
		return;
	MUST(err);
	commands(th, device);
	MUST(hal_trace_stop(devices[device].dev));
}

static void *wait_in_vain(void *arg)
{
	const struct hal_point *p = arg;

	(void)hal_wait(p, 2, 0, HAL_FOREVER);
	return NULL;
}

/* A thread is cancelled while it waits for two devices; its points come afterwards. */
static void cancel(struct thread *th, uint32_t device)
{
	uint32_t other = (device + 1) % (DEVICES - 1);
	struct hal_timeline *t[2];
	struct hal_point p[2];
	pthread_t thread;

	if (!MAY_CANCEL || is_virtual(device))
		return;
	MUST(hal_timeline_create(devices[device].dev, &t[0]));
	MUST(hal_timeline_create(devices[other].dev, &t[1]));
	for (int i = 0; i < 2; i++)
		p[i] = (struct hal_point){t[i], 1};
	if (pthread_create(&thread, NULL, wait_in_vain, p) != 0)
		die("no thread");
	if (below(th, 2) == 0)
		MUST(hal_timeline_signal(t[0], 1));
	for (uint32_t n = below(th, 50); n > 0; n--)
		sched_yield();
	(void)pthread_cancel(thread);
	(void)pthread_join(thread, NULL);
	MUST(hal_timeline_signal(t[0], 5));
	MUST(hal_timeline_signal(t[1], 5));
	MUST(hal_timeline_destroy(t[0]));
	MUST(hal_timeline_destroy(t[1]));
}

/* ---- threads --------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*fn)(struct thread *th, uint32_t device);
	uint32_t weight;
} jobs[] = {
	{"submits", commands, 30},     {"goes across devices", across, 15},
	{"signals", from_the_host, 6}, {"submits a sequence", sequence, 6},
	{"suspends", suspend, 6},      {"creates and destroys", a_life, 8},
	{"resizes", move, 4},          {"makes a partition", a_partition, 3},
	{"reads statistics", look, 8}, {"replaces the policy", policy, 2},
	{"traces", trace, 1},          {"is cancelled", cancel, 2},
};

static void one_job(struct thread *th)
{
	uint32_t all = 0, pick;

	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		all += jobs[i].weight;
	pick = below(th, all);
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		if (pick < jobs[i].weight) {
			atomic_store(&th->doing, jobs[i].name);
			jobs[i].fn(th, below(th, DEVICES));
			break;
		}
		pick -= jobs[i].weight;
	}
	read_some(below(th, DEVICES));
	atomic_fetch_add(&th->steps, 1);
}

static void *run(void *arg)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct thread *th = arg;

	for (uint32_t i = 0; i < DEVICES; i++) {
		qd.completions = devices[i].ring;
		qd.priority = (int32_t)(th->number % 3);
		qd.service_class = class_of(th);
		MUST(hal_queue_create(devices[i].part, &qd, &th->q[i]));
		MUST(hal_timeline_create(devices[i].dev, &th->t[i]));
	}
	while (steps_each > 0 ? atomic_load(&th->steps) < steps_each
			      : !atomic_load(&stop))
		one_job(th);
	atomic_store(&th->doing, "waits for all it has done");
	for (uint32_t i = 0; i < DEVICES; i++) {
		struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
		struct hal_cmd cmd = hal_cmd_of(HAL_OP_NOP, 0);
		struct hal_point p;

		s.cmds = &cmd;
		s.cmd_count = 1;
		p = submit(th, i, &s, NULL);
		wait_for(th, i, p);
		atomic_fetch_add(&devices[i].told, p.value);
	}
	if (atomic_load(&th->called) != th->to_call)
		die("thread %u: %llu callbacks of %llu", th->number,
		    (unsigned long long)atomic_load(&th->called),
		    (unsigned long long)th->to_call);
	for (uint32_t i = 0; i < DEVICES; i++) {
		MUST(hal_queue_destroy(th->q[i]));
		MUST(hal_timeline_destroy(th->t[i]));
	}
	atomic_store(&th->doing, has_ended);
	return NULL;
}

/* Nothing moves any more: says who does what. */
static void *watch(void *arg)
{
	uint64_t last[THREADS] = {0};
	int64_t since[THREADS];

	(void)arg;
	for (int i = 0; i < THREADS; i++)
		since[i] = in_ms(0);
	while (!atomic_load(&over)) {
		struct pollfd none = {.fd = -1};

		(void)poll(&none, 1, 50);
		for (int i = 0; i < THREADS; i++) {
			uint64_t steps = atomic_load(&threads[i].steps);

			if (steps != last[i] ||
			    atomic_load(&threads[i].doing) == has_ended)
				since[i] = in_ms(0);
			last[i] = steps;
			if (in_ms(0) - since[i] <= INT64_C(1000000000) * STUCK_S)
				continue;
			for (int k = 0; k < THREADS; k++)
				fprintf(stderr, "thread %d %s, step %llu\n", k,
					atomic_load(&threads[k].doing),
					(unsigned long long)atomic_load(
						&threads[k].steps));
			die("thread %d has not moved for %d s", i, STUCK_S);
		}
	}
	return NULL;
}

static void close_all(void)
{
	for (uint32_t i = 0; i < DEVICES; i++) {
		struct hal_stats s = HAL_INIT(hal_stats);
		struct device *d = &devices[i];
		uint64_t submitted = atomic_load(&d->submitted);
		uint64_t moved = atomic_load(&d->in_movable);

		for (uint64_t before = UINT64_MAX; before != atomic_load(&d->read);) {
			before = atomic_load(&d->read);
			read_some(i);
		}
		if (atomic_load(&d->read) != atomic_load(&d->told))
			die("device %u: %llu submissions, %llu completions", i,
			    (unsigned long long)atomic_load(&d->told),
			    (unsigned long long)atomic_load(&d->read));
		MUST(hal_partition_get_stats(d->part, &s));
		if (s.submitted != submitted || s.completed != submitted)
			die("device %u: %llu commands, %llu counted, %llu completed", i,
			    (unsigned long long)submitted,
			    (unsigned long long)s.submitted,
			    (unsigned long long)s.completed);
		if (s.requests != atomic_load(&d->told))
			die("device %u: %llu submissions, %llu requests", i,
			    (unsigned long long)atomic_load(&d->told),
			    (unsigned long long)s.requests);
		MUST(hal_partition_get_stats(d->movable, &s));
		if (s.submitted != moved || s.completed != moved)
			die("device %u: %llu commands beside, %llu counted, %llu "
			    "completed",
			    i, (unsigned long long)moved, (unsigned long long)s.submitted,
			    (unsigned long long)s.completed);
		MUST(hal_device_get_stats(d->dev, &s));
		if (s.completed != submitted + moved)
			die("device %u: %llu commands in all, %llu completed", i,
			    (unsigned long long)(submitted + moved),
			    (unsigned long long)s.completed);
		MUST(hal_program_unload(d->prog));
		MUST(hal_completions_destroy(d->ring));
		MUST(hal_partition_destroy(d->part));
		MUST(hal_partition_destroy(d->movable));
		MUST(hal_close(d->dev));
	}
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS], dog;
	unsigned long seconds = 5;
	uint64_t steps = 0;
	int64_t end;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seconds") == 0)
			seconds = strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--steps") == 0)
			steps_each = strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 10);
	}
	open_all();
	for (unsigned int i = 0; i < THREADS; i++) {
		threads[i].number = i;
		threads[i].random = seed * 1000 + i;
		atomic_store(&threads[i].doing, "begins");
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, run, &threads[i]) != 0)
			die("no thread");
	if (pthread_create(&dog, NULL, watch, NULL) != 0)
		die("no thread");
	end = in_ms((int64_t)seconds * 1000);
	while (steps_each == 0 && in_ms(0) < end) {
		struct pollfd none = {.fd = -1};

		(void)poll(&none, 1, 20);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&over, true);
	pthread_join(dog, NULL);
	close_all();
	for (int i = 0; i < THREADS; i++)
		steps += atomic_load(&threads[i].steps);
	printf("seed %llu: %llu steps\n", (unsigned long long)seed,
	       (unsigned long long)steps);
	return 0;
}
