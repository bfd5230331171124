/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lockstep_random: the operations of tests/sim, dealt to several tenants of one device:
 * each a process that hald serves in lockstep, and each a thread of one process without
 * hald.  Whatever a tenant sees is to be the same, to the cycle.
 *
 * In one process the tenants take turns by the rule of daemon/lockstep.c, of which this
 * is another implementation: whoever has the turn keeps it until it waits for something
 * that has not happened.
 *
 * With --journal, hald keeps a journal, and halctl replays it: each decision is to be the
 * same.  With --free, hald serves them as they come: the control, in which it is not the
 * same.
 *
 * Calls of the simulation come here by the linker's --wrap.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sim/sim.h"
#include "hald_world.h"

enum { TENANTS_MAX = 6 };

/* How the calls of the simulation come to a device. */
static enum { AS_PROCESS, AS_THREAD } how;
/* AS_PROCESS: where its tenant's socket is. */
static char broker[128];
/* hald serves the processes as they come. */
static bool is_free;
/* It keeps a journal. */
static bool has_journal;

/* ---- in one process ------------------------------------------------------------------- */

/* A tenant that waits for points, or for device time. */
struct seat {
	bool there, stuck;
	const struct hal_point *points; /* NULL: none */
	uint32_t count;
	uint64_t until_ns; /* UINT64_MAX: none */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct hal_device *dev;
	struct seat seats[TENANTS_MAX];
	uint32_t tenants, came, users;
	int holder;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER,
	   .changed = PTHREAD_COND_INITIALIZER,
	   .holder = -1};

static _Thread_local int own_seat;

/* The functions that are wrapped. */
int __real_hal_open(const char *target, const char *const *options,
		    struct hal_device **out);
int __real_hal_close(struct hal_device *dev);
int __real_hal_wait(const struct hal_point *points, uint32_t count, uint32_t flags,
		    int64_t until_ns);
int __real_hal_device_poll(struct hal_device *dev, uint64_t ns);
int __real_hal_device_get_info(struct hal_device *dev, struct hal_device_info *info);
const void *__real_hal_device_get_extension(struct hal_device *dev, const char *name);
int __wrap_hal_open(const char *target, const char *const *options,
		    struct hal_device **out);
int __wrap_hal_close(struct hal_device *dev);
int __wrap_hal_wait(const struct hal_point *points, uint32_t count, uint32_t flags,
		    int64_t until_ns);
int __wrap_hal_device_poll(struct hal_device *dev, uint64_t ns);
int __wrap_hal_device_get_info(struct hal_device *dev, struct hal_device_info *info);
const void *__wrap_hal_device_get_extension(struct hal_device *dev, const char *name);

static bool can_go_on(const struct seat *s)
{
	bool all = s->points != NULL;

	if (!s->there)
		return false;
	for (uint32_t i = 0; i < s->count; i++) {
		int failed = 0;

		if (hal_timeline_get_value(s->points[i].timeline, &failed) <
		    s->points[i].value)
			all = false;
		if (failed != 0)
			return true;
	}
	return all || s->stuck ||
	       (s->points == NULL && s->until_ns == UINT64_MAX) || /* it has just come */
	       (s->until_ns != UINT64_MAX &&
		hal_device_get_time(table.dev) >= s->until_ns);
}

/* Let time pass until a point that somebody waits for is reached, or a time has come. */
static void advance(void)
{
	struct hal_point points[64];
	uint64_t until = UINT64_MAX, now = hal_device_get_time(table.dev);
	uint32_t count = 0;
	int err = 0;

	for (uint32_t i = 0; i < table.tenants; i++) {
		const struct seat *s = &table.seats[i];

		if (!s->there)
			continue;
		for (uint32_t k = 0; k < s->count; k++)
			points[count++] = s->points[k];
		if (s->until_ns < until)
			until = s->until_ns;
	}
	if (count == 0)
		(void)__real_hal_device_poll(table.dev, until - now);
	else if (until != UINT64_MAX)
		err = __real_hal_wait(points, count, HAL_WAIT_ANY | HAL_WAIT_DEVICE_TIME,
				      (int64_t)until);
	else
		err = __real_hal_wait(points, count, HAL_WAIT_ANY, HAL_FOREVER);
	for (uint32_t i = 0; err == -EDEADLK && i < table.tenants; i++)
		table.seats[i].stuck = true;
}

/* Give the turn to who can go on.  The caller has it, and holds the lock. */
static void pass_turn(void)
{
	bool any = false;

	for (uint32_t i = 0; i < table.tenants; i++)
		any |= table.seats[i].there;
	if (!any)
		return;
	if (table.holder < 0 || !can_go_on(&table.seats[table.holder])) {
		table.holder = -1;
		while (table.holder < 0) {
			for (uint32_t i = 0; table.holder < 0 && i < table.tenants; i++)
				if (can_go_on(&table.seats[i]))
					table.holder = (int)i;
			if (table.holder < 0)
				advance();
		}
	}
	(void)pthread_cond_broadcast(&table.changed);
}

/* Wait for the turn: of this tenant, which waits for points or a time. */
static void take_turn(const struct hal_point *points, uint32_t count, uint64_t until_ns)
{
	struct seat *s = &table.seats[own_seat];

	s->points = points;
	s->count = count;
	s->until_ns = until_ns;
	pass_turn();
	while (table.holder != own_seat)
		(void)pthread_cond_wait(&table.changed, &table.lock);
	s->stuck = false;
}

int __wrap_hal_wait(const struct hal_point *points, uint32_t count, uint32_t flags,
		    int64_t until_ns)
{
	if (how == AS_THREAD && until_ns != 0) {
		pthread_mutex_lock(&table.lock);
		take_turn(points, count, UINT64_MAX);
		pthread_mutex_unlock(&table.lock);
	}
	return __real_hal_wait(points, count, flags, until_ns);
}

int __wrap_hal_device_poll(struct hal_device *dev, uint64_t ns)
{
	int n;

	if (how == AS_THREAD && ns != 0) {
		pthread_mutex_lock(&table.lock);
		take_turn(NULL, 0, hal_device_get_time(dev) + ns);
		pthread_mutex_unlock(&table.lock);
		ns = 0;
	}
	n = __real_hal_device_poll(dev, ns);
	return n < 0 ? n : 0; /* how many commands of others have ended is not its own */
}

static const char *const *device_options(void)
{
	static const char *const options[] = {"backend.ref.kernels=" KERNELS, NULL};

	return options;
}

int __wrap_hal_open(const char *target, const char *const *options,
		    struct hal_device **out)
{
	const char *const far[] = {broker, NULL};
	int err = 0;

	(void)options;
	if (how == AS_PROCESS)
		return __real_hal_open("hald:ref0", far, out);
	pthread_mutex_lock(&table.lock);
	if (table.dev == NULL)
		err = __real_hal_open(target, device_options(), &table.dev);
	*out = table.dev;
	table.users++;
	table.seats[own_seat].there = true;
	/* The first to come waits for all. */
	if (err == 0 && ++table.came < table.tenants) {
		while (table.holder != own_seat)
			(void)pthread_cond_wait(&table.changed, &table.lock);
	} else if (err == 0) {
		take_turn(NULL, 0, UINT64_MAX);
	}
	pthread_mutex_unlock(&table.lock);
	return err;
}

/* This tenant takes no part any more. */
static int leave(void)
{
	int err = 0;

	pthread_mutex_lock(&table.lock);
	table.seats[own_seat].there = false;
	table.holder = -1;
	if (--table.users == 0)
		err = __real_hal_close(table.dev);
	else
		pass_turn();
	pthread_mutex_unlock(&table.lock);
	return err;
}

int __wrap_hal_close(struct hal_device *dev)
{
	return how == AS_PROCESS ? __real_hal_close(dev) : leave();
}

/* hald registers the host memory that a process allocates for its own, which takes the
 * device another time. */
int __wrap_hal_device_get_info(struct hal_device *dev, struct hal_device_info *info)
{
	int err = __real_hal_device_get_info(dev, info);

	info->caps &= ~HAL_CAP_HOST_COPY;
	return err;
}

/* What ref itself tells is told to its own process alone. */
const void *__wrap_hal_device_get_extension(struct hal_device *dev, const char *name)
{
	return strcmp(name, "ref") == 0 ? NULL
					: __real_hal_device_get_extension(dev, name);
}

/* ---- both ------------------------------------------------------------------------------ */

/* What is dealt: a target, and the operations of each tenant. */
struct deal {
	struct sim_script scripts[TENANTS_MAX];
	uint32_t tenants;
};

struct thread {
	const struct sim_script *script;
	int seat;
	struct sim_result result;
};

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	own_seat = t->seat;
	sim_run_here(t->script, false, &t->result);
	if (table.seats[own_seat].there)
		leave(); /* it has failed */
	return NULL;
}

/* In a child: run all in one process. */
static void run_threads(const struct deal *d, int fd)
{
	struct thread threads[TENANTS_MAX];
	pthread_t ids[TENANTS_MAX];

	how = AS_THREAD;
	table.tenants = d->tenants;
	for (uint32_t i = 0; i < d->tenants; i++) {
		threads[i] = (struct thread){&d->scripts[i], (int)i, {false}};
		if (pthread_create(&ids[i], NULL, thread_main, &threads[i]) != 0)
			_exit(1);
	}
	for (uint32_t i = 0; i < d->tenants; i++) {
		(void)pthread_join(ids[i], NULL);
		if (write(fd, &threads[i].result, sizeof(threads[i].result)) < 0)
			_exit(1);
	}
	_exit(0);
}

/* In a child: be tenant i of h. */
static void run_process(const struct deal *d, const struct hald *h, uint32_t i, int fd)
{
	struct sim_result result;

	how = AS_PROCESS;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(broker, sizeof(broker), "%s/t%u", h->option, i);
	sim_run_here(&d->scripts[i], false, &result);
	_exit(write(fd, &result, sizeof(result)) != sizeof(result));
}

/* Start a child that is all (tenant -1) or one of the tenants; its results come from the
 * descriptor that is returned. */
static int start(const struct deal *d, const struct hald *h, int tenant, pid_t *pid)
{
	int fds[2];

	fflush(NULL);
	if (pipe2(fds, O_CLOEXEC) != 0 || (*pid = fork()) < 0) {
		perror("lockstep_random");
		exit(1);
	}
	if (*pid == 0) {
		if (tenant < 0)
			run_threads(d, fds[1]);
		run_process(d, h, (uint32_t)tenant, fds[1]);
	}
	(void)close(fds[1]);
	return fds[0];
}

static bool take(int fd, struct sim_result *r)
{
	if (read(fd, r, sizeof(*r)) == sizeof(*r))
		return true;
	memset(r, 0, sizeof(*r));
	r->failed = true;
	snprintf(r->why, sizeof(r->why), "it ended");
	return false;
}

/* Write the sections of d's tenants, which may do what a process without hald may. */
static void tenants_write(const struct deal *d, char *text, size_t room)
{
	int used = 0;

	for (uint32_t i = 0; i < d->tenants; i++)
		used += snprintf(text + used, room - (size_t)used,
				 "[tenant \"t%u\"]\nsocket = yes\nlatency = yes\n"
				 "priority_max = 1000\nweight_max = 1000\nplace = yes\n"
				 "lend = yes\n",
				 i);
}

/* Have halctl replay the journal, and remove it.  Return 0, or 1 if anything differs. */
static uint64_t replay(const char *journal)
{
	int status, null;
	pid_t pid = fork();

	if (pid == 0) {
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		(void)dup2(null, STDOUT_FILENO);
		execl(HALCTL, HALCTL, "replay", journal, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(pid, &status, 0);
	(void)unlink(journal);
	return status != 0;
}

/* Return the number of journals that have no replay. */
static uint64_t as_processes(const struct deal *d, struct sim_result *results)
{
	char text[4096], clients[16], journal[] = "/tmp/lockstep.XXXXXX", option[64];
	pid_t pids[TENANTS_MAX];
	int fds[TENANTS_MAX];
	struct hald h;

	snprintf(clients, sizeof(clients), "%u", d->tenants);
	tenants_write(d, text, sizeof(text));
	if (has_journal)
		(void)close(mkstemp(journal));
	snprintf(option, sizeof(option), "hal.journal=%s", journal);
	hald_with(&h, d->scripts[0].target, text, is_free ? NULL : clients,
		  has_journal ? option : NULL);
	for (uint32_t i = 0; i < d->tenants; i++)
		fds[i] = start(d, &h, (int)i, &pids[i]);
	for (uint32_t i = 0; i < d->tenants; i++) {
		(void)take(fds[i], &results[i]);
		(void)close(fds[i]);
		(void)waitpid(pids[i], NULL, 0);
	}
	hald_with_tenants_stop(&h);
	return has_journal ? replay(journal) : 0;
}

static void as_threads(const struct deal *d, struct sim_result *results)
{
	pid_t pid;
	int fd = start(d, NULL, -1, &pid);

	for (uint32_t i = 0; i < d->tenants; i++)
		(void)take(fd, &results[i]);
	(void)close(fd);
	(void)waitpid(pid, NULL, 0);
}

/* ---- the command line ------------------------------------------------------------------ */

static void deal_make(struct deal *d, uint64_t seed, uint32_t steps, const char *family)
{
	d->tenants = 2 + (uint32_t)(seed % (TENANTS_MAX - 1));
	for (uint32_t i = 0; i < d->tenants; i++) {
		struct sim_script *s = &d->scripts[i];

		if (script_make(s, seed * TENANTS_MAX + i, steps, family,
				i != 0 ? d->scripts[0].target : NULL, NULL) != 0)
			exit(1);
		s->shared = true;
		/* A fault of the device would hit whom it hits. */
		*strchrnul(s->target, '\n') = '\0';
		if (strstr(s->target, "&layers.fault=") != NULL)
			*strstr(s->target, "&layers.fault=") = '\0';
		/* A journal knows nothing of memory beyond the device's. */
		if (has_journal && strstr(s->target, "&hal.oversubscribe=") != NULL)
			*strstr(s->target, "&hal.oversubscribe=") = '\0';
	}
}

/* Return the number of tenants for whom it is not the same. */
static uint64_t compare(uint64_t seed, uint32_t steps, const char *family)
{
	struct sim_result far[TENANTS_MAX], near[TENANTS_MAX];
	uint64_t differences = 0;
	struct deal d = {.tenants = 0};

	deal_make(&d, seed, steps, family);
	differences += as_processes(&d, far);
	as_threads(&d, near);
	for (uint32_t i = 0; i < d.tenants; i++) {
		bool bad = far[i].failed || near[i].failed || far[i].hash != near[i].hash;

		differences += bad;
		if (bad)
			printf("seed %" PRIu64
			       ", tenant %u of %u on %s: process %016" PRIx64
			       " step %u %s, thread %016" PRIx64 " step %u %s\n",
			       seed, i, d.tenants, d.scripts[0].target, far[i].hash,
			       far[i].step, far[i].failed ? far[i].why : "", near[i].hash,
			       near[i].step, near[i].failed ? near[i].why : "");
		script_free(&d.scripts[i]);
	}
	return differences;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {{"seed", required_argument, NULL, 's'},
					      {"seeds", required_argument, NULL, 'n'},
					      {"steps", required_argument, NULL, 't'},
					      {"on", required_argument, NULL, 'f'},
					      {"figure", no_argument, NULL, 'g'},
					      {"free", no_argument, NULL, 'e'},
					      {"journal", no_argument, NULL, 'j'},
					      {NULL, 0, NULL, 0}};
	uint64_t seed = 1, seeds = 1, differences = 0;
	const char *family = "ref";
	uint32_t steps = 60;
	bool figure = false;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 'n')
			seeds = strtoull(optarg, NULL, 0);
		else if (c == 't')
			steps = (uint32_t)strtoul(optarg, NULL, 0);
		else if (c == 'f')
			family = optarg;
		else if (c == 'g')
			figure = true;
		else if (c == 'e')
			is_free = true;
		else if (c == 'j')
			has_journal = true;
		else
			return 2;
	}
	for (uint64_t i = 0; i < seeds; i++)
		differences += compare(seed + i, steps, family);
	if (figure)
		printf("figure broker.lockstep.%s %" PRIu64 "\n",
		       is_free ? "free_differ" : "differences", differences);
	else
		printf("%" PRIu64 " differences (seeds %" PRIu64 " to %" PRIu64 ")\n",
		       differences, seed, seed + seeds - 1);
	/* The control has to differ. */
	return (differences != 0) != is_free;
}
