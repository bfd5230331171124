/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_broker - what hald costs, beside the same in one process and in the same run.
 *
 *   bench_broker MODE [ROUNDS [MS]]
 *
 *   submit      instructions of the calling thread inside hal_submit; see below
 *   vs_local    CPU time of all threads of both processes a launch, in windows of 256
 *               hal_submit and one hal_wait, over that without hald
 *   latency     p50 of hal_submit + hal_wait, one at a time, over the p50 without hald
 *   syscalls    system calls of both processes a launch, in windows whose end the host
 *               looks for with hal_timeline_get_value, so that neither side sleeps;
 *               counted by a process that traces both.  As a note, the same with hal_wait
 *   kill        time from the SIGKILL of a client, whose kernel would run for seconds and
 *               which has all units, until another one has them
 *   daemon_kill time from the SIGKILL of hald until a thread that waits is told, and from
 *               the start of the next hald until it serves a client
 *   idle        CPU time of a launch beside 1,000 clients that have submitted once and do
 *               nothing since, over that beside none; and the bytes that each takes in
 * hald
 *
 * Each is measured ROUNDS (5) times, for MS (250) milliseconds a side; the figure is the
 * median of the rounds' ratios.  The calling thread is bound to one processor, all others
 * to another.
 *
 *   valgrind --tool=callgrind --toggle-collect=hal_submit --instr-atstart=no
 *            --callgrind-out-file=OUT bench_broker submit [N]
 *
 * counts N launches in OUT.1, as of bench_submit.  The engine never sleeps then.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef HAVE_VALGRIND
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION ((void)0)
#define CALLGRIND_STOP_INSTRUMENTATION  ((void)0)
#define CALLGRIND_DUMP_STATS_AT(name)   ((void)(name))
#endif

#include "bench.h"
#include "calls.h"

#define WINDOW      256 /* launches; with rings of the default depth IDLE_WINDOW */
#define IDLE_WINDOW 8
#define ROUNDS_MAX  101
#define SAMPLES     65536
#define DEEP        "hal.queue_depth=1024"
#define SPIN        "hal.spin_us=8"
#define LOCAL       "ref?clock=real&units=1024&kernels=" KERNELS

struct broker {
	struct bench local, far;
	bool has_local;
	char dir[64], broker_dir[96];
	pid_t hald;
	clockid_t hald_cpu;
	unsigned int rounds;
	uint64_t ns;
	uint64_t samples[SAMPLES];
};

/* ---- hald -------------------------------------------------------------------------- */

static int hald_start(struct broker *r, const char *spin_us, const char *depth)
{
	char line[256];
	int out[2];

	snprintf(r->dir, sizeof(r->dir), "/tmp/bench_broker.XXXXXX");
	if (mkdtemp(r->dir) == NULL || pipe(out) != 0)
		return tool_fail("no temporary folder: %s", hal_strerror(errno));
	snprintf(r->broker_dir, sizeof(r->broker_dir), "hal.broker_dir=%s", r->dir);
	r->hald = fork();
	if (r->hald == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(out[1], STDOUT_FILENO);
		execl(HALD, HALD, "--dir", r->dir, "--name", "ref0", "--option", spin_us,
		      "--option", depth, LOCAL, (char *)NULL);
		_exit(127);
	}
	(void)close(out[1]);
	if (r->hald < 0 || read(out[0], line, sizeof(line)) <= 0 ||
	    clock_getcpuclockid(r->hald, &r->hald_cpu) != 0)
		return tool_fail("%s has not started", HALD);
	return 0;
}

static int hald_stop(struct broker *r)
{
	int status;

	if (kill(r->hald, SIGTERM) != 0 || waitpid(r->hald, &status, 0) != r->hald ||
	    status != 0)
		return tool_fail("hald has not ended well");
	(void)rmdir(r->dir);
	return 0;
}

/* CPU time of hald, ns. */
static uint64_t hald_cpu(const struct broker *r)
{
	struct timespec t = {0};

	(void)clock_gettime(r->hald_cpu, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pin(pid_t thread, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	(void)sched_setaffinity(thread, sizeof(one), &one);
}

/* All threads of process on the second processor. */
static void pin_threads(pid_t process)
{
	char path[64];
	const struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
	dir = opendir(path);
	while (dir != NULL && (e = readdir(dir)) != NULL)
		if (e->d_name[0] != '.')
			pin((pid_t)strtol(e->d_name, NULL, 10), 1);
	if (dir != NULL)
		(void)closedir(dir);
}

static int open_far(struct broker *r, const char *spin_us, const char *depth)
{
	const char *const options[] = {r->broker_dir, NULL};

	bench_within(30);
	if (hald_start(r, spin_us, depth) != 0 ||
	    bench_open(&r->far, "hald:ref0", options, 1) != 0)
		return TOOL_FAILED;
	return bench_add_queues(&r->far, 1, 0);
}

static int open_both(struct broker *r)
{
	static const char *const deep[] = {DEEP, NULL};

	if (open_far(r, SPIN, DEEP) != 0 || bench_open(&r->local, LOCAL, deep, 1) != 0 ||
	    bench_add_queues(&r->local, 1, 0) != 0)
		return TOOL_FAILED;
	r->has_local = true;
	pin_threads(getpid());
	pin_threads(r->hald);
	pin(getpid(), 0);
	return 0;
}

static int close_all(struct broker *r)
{
	int err = bench_close(&r->far);

	if (r->has_local)
		err |= bench_close(&r->local);
	return err != 0 ? err : hald_stop(r);
}

/* ---- work -------------------------------------------------------------------------- */

static int window(struct bench *b, unsigned int count)
{
	struct hal_point done = {0};

	for (unsigned int i = 0; i < count; i++)
		if (hal_submit(b->queues[0], &b->desc, &done) != 0)
			return bench_die("hal_submit");
	return hal_wait(&done, 1, 0, HAL_FOREVER) == 0 ? 0 : bench_die("hal_wait");
}

static int window_looking(struct bench *b, unsigned int count)
{
	struct hal_point done = {0};

	for (unsigned int i = 0; i < count; i++)
		if (hal_submit(b->queues[0], &b->desc, &done) != 0)
			return bench_die("hal_submit");
	while (hal_timeline_get_value(done.timeline, NULL) < done.value)
		;
	return 0;
}

/* CPU time of both processes a launch, in ns. */
static int measure_cpu(struct broker *r, struct bench *b, unsigned int size, double *cpu,
		       double *wall)
{
	uint64_t start, before, end;
	unsigned long launches = 0;

	bench_within(30);
	for (int i = 0; i < 8; i++)
		if (window(b, size) != 0)
			return TOOL_FAILED;
	start = bench_now();
	before = bench_cpu() + hald_cpu(r);
	do {
		if (window(b, size) != 0)
			return TOOL_FAILED;
		launches += size;
		end = bench_now();
	} while (end - start < r->ns);
	*cpu = (double)(bench_cpu() + hald_cpu(r) - before) / (double)launches;
	*wall = (double)(end - start) / (double)launches;
	return 0;
}

static int compare_double(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *values, unsigned int count)
{
	qsort(values, count, sizeof(*values), compare_double);
	return count % 2 != 0 ? values[count / 2]
			      : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static int run_vs_local(struct broker *r)
{
	double ratios[ROUNDS_MAX];

	if (open_both(r) != 0)
		return TOOL_FAILED;
	for (unsigned int i = 0; i < r->rounds; i++) {
		double local, far, local_wall, far_wall;

		if (measure_cpu(r, &r->local, WINDOW, &local, &local_wall) != 0 ||
		    measure_cpu(r, &r->far, WINDOW, &far, &far_wall) != 0)
			return TOOL_FAILED;
		printf("a launch: cpu %.0f ns, wall %.0f ns; through hald: cpu %.0f ns, "
		       "wall %.0f ns\n",
		       local, local_wall, far, far_wall);
		ratios[i] = far / local;
	}
	printf("figure broker.real.vs_local %.3f\n", median(ratios, r->rounds));
	return close_all(r);
}

/* The p50 of hal_submit + hal_wait, in ns. */
static int measure_latency(struct broker *r, struct bench *b, double *p50)
{
	uint64_t start, last;
	unsigned int n = 0;

	bench_within(30);
	for (int i = 0; i < 64; i++)
		if (window(b, 1) != 0)
			return TOOL_FAILED;
	start = last = bench_now();
	do {
		uint64_t now;

		if (window(b, 1) != 0)
			return TOOL_FAILED;
		now = bench_now();
		r->samples[n++] = now - last;
		last = now;
	} while (n < SAMPLES && last - start < r->ns);
	qsort(r->samples, n, sizeof(r->samples[0]), compare_u64);
	n /= 2;
	*p50 = (double)r->samples[n];
	return 0;
}

static int run_latency(struct broker *r)
{
	double ratios[ROUNDS_MAX];

	if (open_both(r) != 0)
		return TOOL_FAILED;
	for (unsigned int i = 0; i < r->rounds; i++) {
		double local, far;

		if (measure_latency(r, &r->local, &local) != 0 ||
		    measure_latency(r, &r->far, &far) != 0)
			return TOOL_FAILED;
		printf("p50: a launch %.0f ns, through hald %.0f ns\n", local, far);
		ratios[i] = far / local;
	}
	printf("figure broker.real.latency_vs_local %.3f\n", median(ratios, r->rounds));
	return close_all(r);
}

/* ---- system calls -------------------------------------------------------------------- */

static int windows_counted(struct broker *r, int (*once)(struct bench *b, unsigned int n))
{
	uint64_t start = bench_now();
	unsigned long launches = 0;

	bench_within(60);
	for (int k = 0; k < 8; k++)
		if (once(&r->far, WINDOW) != 0)
			return TOOL_FAILED;
	calls_begin();
	do {
		if (once(&r->far, WINDOW) != 0)
			return TOOL_FAILED;
		launches += WINDOW;
	} while (bench_now() - start < r->ns);
	calls_end(launches);
	return 0;
}

/* In a process of its own, which is traced with its child. */
static int syscalls_traced(void *user)
{
	struct broker *r = user;

	if (open_far(r, SPIN, DEEP) != 0)
		return TOOL_FAILED;
	pin_threads(r->hald);
	pin(getpid(), 0);
	for (unsigned int i = 0; i < r->rounds; i++)
		if (windows_counted(r, window_looking) != 0 ||
		    windows_counted(r, window) != 0)
			return TOOL_FAILED;
	return close_all(r);
}

static int run_syscalls(struct broker *r)
{
	struct calls_part parts[2 * ROUNDS_MAX];
	double looking[ROUNDS_MAX], waiting[ROUNDS_MAX];
	int err;

	bench_within(60 * r->rounds + 60);
	err = calls_trace(syscalls_traced, r, parts, 2 * r->rounds);
	if (err != 0)
		return err;
	for (unsigned int i = 0; i < r->rounds; i++) {
		const struct calls_part *p = &parts[2 * (size_t)i];

		printf("system calls of both processes: %lu for %lu launches; %lu for "
		       "%lu "
		       "with hal_wait\n",
		       p[0].calls, p[0].divisor, p[1].calls, p[1].divisor);
		looking[i] = (double)p[0].calls / (double)p[0].divisor;
		waiting[i] = (double)p[1].calls / (double)p[1].divisor;
	}
	printf("with_hal_wait %.5f\n", median(waiting, r->rounds));
	printf("figure broker.syscalls_per_command %.5f\n", median(looking, r->rounds));
	return 0;
}

/* ---- instructions ------------------------------------------------------------------- */

#define BATCH 8

static int run_submit(struct broker *r)
{
	unsigned int count = r->rounds, done = 0;

	if (open_far(r, "hal.spin_us=1000000", DEEP) != 0)
		return TOOL_FAILED;
	/* Bind the program, and have the engine watch the ring. */
	for (int i = 0; i < 64; i++)
		if (window(&r->far, BATCH) != 0)
			return TOOL_FAILED;
	while (done < count) {
		struct hal_point p = {0};

		CALLGRIND_START_INSTRUMENTATION;
		for (int i = 0; i < BATCH; i++, done++)
			if (hal_submit(r->far.queues[0], &r->far.desc, &p) != 0)
				return bench_die("hal_submit");
		CALLGRIND_STOP_INSTRUMENTATION;
		if (hal_wait(&p, 1, 0, HAL_FOREVER) != 0)
			return bench_die("hal_wait");
	}
	CALLGRIND_DUMP_STATS_AT("far");
	printf("launches %u\nfigure_is broker.submit.instructions %u far\n", done, done);
	return close_all(r);
}

/* ---- ends --------------------------------------------------------------------------- */

enum { UNITS = 1024 };

static int take_units(struct hal_device *dev, uint32_t units, struct hal_partition **part)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);

	pd.units_floor = units;
	return hal_partition_create(dev, &pd, part);
}

/* In a child: take all units, keep them busy, say so, and stay. */
static _Noreturn void hog(const struct broker *r, int ready)
{
	const char *const options[] = {r->broker_dir, NULL};
	static struct bench b;
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_partition *part;
	struct hal_queue *q;
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	struct hal_timeline *never;
	struct hal_point p;

	(void)b;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (hal_open("hald:ref0", options, &b.dev) != 0 ||
	    take_units(b.dev, UNITS, &part) != 0 ||
	    hal_queue_create(part, &qd, &q) != 0 ||
	    hal_timeline_create(b.dev, &never) != 0)
		_exit(1);
	/* Work that never ends by itself. */
	p = (struct hal_point){never, 1};
	sd.waits = &p;
	sd.wait_count = 1;
	if (hal_submit(q, &sd, NULL) != 0 || write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

/* Kill a client, and return how long it took until its units were free; 0 with an error.
 */
static double kill_once(struct broker *r, struct hal_device *dev)
{
	struct hal_partition *part;
	uint64_t from;
	int ready[2];
	char byte;
	pid_t pid;

	bench_within(30);
	if (pipe(ready) != 0)
		return tool_fail("pipe: %s", hal_strerror(errno)), 0;
	pid = fork();
	if (pid == 0)
		hog(r, ready[1]);
	(void)close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return tool_fail("the client that is to be killed has failed"), 0;
	(void)close(ready[0]);
	from = bench_now();
	(void)kill(pid, SIGKILL);
	while (take_units(dev, UNITS, &part) != 0)
		;
	from = bench_now() - from;
	(void)waitpid(pid, NULL, 0);
	(void)hal_partition_destroy(part);
	return (double)from / 1e6;
}

static int run_kill(struct broker *r)
{
	const char *const options[] = {r->broker_dir, NULL};
	double took[ROUNDS_MAX];
	struct hal_device *dev;

	bench_within(30);
	if (hald_start(r, SPIN, DEEP) != 0)
		return TOOL_FAILED;
	/* After the first fork, since a child cannot use it. */
	for (unsigned int i = 0; i < r->rounds; i++) {
		if (hal_open("hald:ref0", options, &dev) != 0)
			return bench_die("hal_open");
		took[i] = kill_once(r, dev);
		if (hal_close(dev) != 0 || took[i] == 0)
			return bench_die("after the kill");
		printf("all units %.3f ms after the kill\n", took[i]);
	}
	printf("figure broker.kill.stop_ms %.3f\n", median(took, r->rounds));
	return hald_stop(r);
}

/* A thread that waits for what never comes. */
struct waiter {
	struct hal_point point;
	uint64_t end_ns;
	int err;
};

static void *wait_for_ever(void *arg)
{
	struct waiter *w = arg;

	w->err = hal_wait(&w->point, 1, 0, HAL_FOREVER);
	w->end_ns = bench_now();
	return NULL;
}

static int run_daemon_kill(struct broker *r)
{
	double told[ROUNDS_MAX], serving[ROUNDS_MAX];
	const char *options[2] = {r->broker_dir, NULL};

	bench_within(30);
	for (unsigned int i = 0; i < r->rounds; i++) {
		struct hal_device *dev;
		struct hal_timeline *never;
		struct waiter w;
		pthread_t thread;
		uint64_t from;

		if (hald_start(r, SPIN, DEEP) != 0)
			return TOOL_FAILED;
		if (hal_open("hald:ref0", options, &dev) != 0 ||
		    hal_timeline_create(dev, &never) != 0)
			return bench_die("hal_open");
		w = (struct waiter){.point = {never, 1}};
		if (pthread_create(&thread, NULL, wait_for_ever, &w) != 0)
			return tool_fail("no thread");
		/* It sleeps once others are answered beside it for longer than it spins.
		 */
		from = bench_now();
		while (bench_now() - from < 2000000)
			(void)hal_device_get_time(dev);
		from = bench_now();
		(void)kill(r->hald, SIGKILL);
		(void)pthread_join(thread, NULL);
		if (w.err != -ENODEV)
			return bench_die("hal_wait");
		told[i] = (double)(w.end_ns - from) / 1e6;
		(void)waitpid(r->hald, NULL, 0);
		(void)hal_timeline_destroy(never);
		(void)hal_close(dev);
		from = bench_now();
		if (hald_start(r, SPIN, DEEP) != 0)
			return TOOL_FAILED;
		if (hal_open("hald:ref0", options, &dev) != 0)
			return bench_die("hal_open");
		serving[i] = (double)(bench_now() - from) / 1e6;
		printf("-ENODEV %.3f ms after the kill, a new hald serves after %.1f "
		       "ms\n",
		       told[i], serving[i]);
		if (hal_close(dev) != 0 || hald_stop(r) != 0)
			return TOOL_FAILED;
	}
	printf("figure broker.daemon_kill.enodev_ms %.3f\n", median(told, r->rounds));
	printf("figure broker.daemon_kill.serving_ms %.1f\n", median(serving, r->rounds));
	return 0;
}

/* ---- idle clients -------------------------------------------------------------------- */

#define IDLE 1000

/* Resident bytes of hald. */
static long hald_bytes(const struct broker *r)
{
	char path[64], line[128] = "", *at;
	long resident;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)r->hald);
	f = fopen(path, "r");
	if (f == NULL)
		return 0;
	if (fgets(line, sizeof(line), f) == NULL)
		line[0] = '\0';
	(void)fclose(f);
	at = strchr(line, ' '); /* behind all pages */
	resident = at != NULL ? strtol(at, NULL, 10) : 0;
	return resident * sysconf(_SC_PAGESIZE);
}

/* A client with a unit and a queue, which has submitted once. */
struct idle {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *queue;
};

static int idle_open(struct idle *c, const struct broker *r)
{
	const char *const options[] = {r->broker_dir, NULL};
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	const struct hal_cmd nop = {.op = HAL_OP_NOP};
	struct hal_point done;

	bench_within(30);
	pd.units_floor = 1;
	sd.cmds = &nop;
	sd.cmd_count = 1;
	if (hal_open("hald:ref0", options, &c->dev) != 0 ||
	    hal_partition_create(c->dev, &pd, &c->part) != 0 ||
	    hal_queue_create(c->part, &qd, &c->queue) != 0 ||
	    hal_submit(c->queue, &sd, &done) != 0 ||
	    hal_wait(&done, 1, 0, HAL_FOREVER) != 0)
		return bench_die("an idle client");
	return 0;
}

static int idle_close(struct idle *c)
{
	bench_within(30);
	return hal_queue_destroy(c->queue) != 0 || hal_partition_destroy(c->part) != 0 ||
			       hal_close(c->dev) != 0
		       ? bench_die("an idle client ends")
		       : 0;
}

static int run_idle(struct broker *r)
{
	static struct idle idle[IDLE];
	double alone[ROUNDS_MAX], beside[ROUNDS_MAX], wall, a, b;
	const struct rlimit files = {16384, 16384};
	long before;
	int err = 0;

	if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
		printf("this process may not have %lu files open\n",
		       (unsigned long)files.rlim_cur);
		return BENCH_SKIP;
	}
	if (open_far(r, SPIN, "hal.queue_depth=32") != 0)
		return TOOL_FAILED;
	pin_threads(r->hald);
	pin(getpid(), 0);
	for (unsigned int i = 0; err == 0 && i < r->rounds; i++)
		err = measure_cpu(r, &r->far, IDLE_WINDOW, &alone[i], &wall);
	before = hald_bytes(r);
	for (int i = 0; err == 0 && i < IDLE; i++)
		err = idle_open(&idle[i], r);
	if (err == 0)
		printf("figure broker.idle_clients_1000.bytes_each %ld\n",
		       (hald_bytes(r) - before) / IDLE);
	pin_threads(r->hald);
	for (unsigned int i = 0; err == 0 && i < r->rounds; i++)
		err = measure_cpu(r, &r->far, IDLE_WINDOW, &beside[i], &wall);
	if (err == 0) {
		a = median(alone, r->rounds);
		b = median(beside, r->rounds);
		printf("a launch: cpu %.0f ns alone, %.0f ns beside %d idle clients\n", a,
		       b, IDLE);
		printf("figure broker.idle_clients_1000.cost %.3f\n", b / a);
	}
	for (int i = 0; err == 0 && i < IDLE; i++)
		err = idle_close(&idle[i]);
	return err != 0 ? err : close_all(r);
}

/* -------------------------------------------------------------------------------------
 */

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct broker *r);
	} modes[] = {
		{"submit", run_submit},
		{"vs_local", run_vs_local},
		{"latency", run_latency},
		{"syscalls", run_syscalls},
		{"idle", run_idle},
		{"kill", run_kill},
		{"daemon_kill", run_daemon_kill},
	};
	static struct broker r = {.rounds = 5, .ns = 250000000};
	const char *mode = argc > 1 ? argv[1] : "";
	unsigned long most = strcmp(mode, "submit") == 0 ? 1000000 : ROUNDS_MAX;

	if (argc > 2)
		r.rounds = (unsigned int)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		r.ns = strtoull(argv[3], NULL, 10) * 1000000;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(mode, modes[i].name) == 0 && argc <= 4 && r.rounds > 0 &&
		    r.rounds <= most && r.ns > 0)
			return tool_end(modes[i].run(&r));
	return tool_end(tool_usage("bench_broker submit|vs_local|latency|syscalls|kill|"
				   "daemon_kill|idle "
				   "[ROUNDS [MS]]"));
}
