/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - one script from hal_open to hal_close, in a process of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hal/ext/memory.h>

#include "sim.h"

/* Of processor time: who takes longer goes round in circles. */
uint32_t sim_seconds = 60;

/* FNV-1a of everything that is seen. */
void sim_mix(struct sim *s, uint64_t value)
{
	for (int i = 0; i < 8; i++) {
		s->hash ^= value >> 8 * i & 0xff;
		s->hash *= UINT64_C(0x100000001b3);
	}
}

int sim_fail(struct sim *s, const char *file, int line, const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	va_list ap;
	int n;

	if (s->why[0])
		return -1; /* the first one counts */
	n = snprintf(s->why, sizeof(s->why), "%s:%d: ", base ? base + 1 : file, line);
	va_start(ap, fmt);
	vsnprintf(s->why + n, sizeof(s->why) - (size_t)n, fmt, ap);
	va_end(ap);
	return -1;
}

int sim_wait(struct hal_point p)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return hal_wait(&p, 1, 0, ((int64_t)ts.tv_sec + 300) * 1000000000);
}

bool sim_excused(struct sim *s, int err)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);

	if (err != 0 && strstr(hal_last_error(), "injected") != NULL)
		return true;
	s->lost = s->faulty && hal_device_get_info(s->dev, &info) == 0 && info.lost;
	return s->lost;
}

/* ---- begin -------------------------------------------------------------------------- */

/* What the environment names, and the policy that does all wrong. */
static int open_device(struct sim *s)
{
	const char *more = getenv("HAL_HAL_PLUGINS");
	const char *options[] = {NULL, NULL};
	char *plugins;
	int err;

	if (asprintf(&plugins, "hal.plugins=%s%s%s", SIM_HOSTILE,
		     more && *more ? ":" : "", more ? more : "") < 0)
		return -1;
	options[0] = plugins;
	err = hal_open(s->script->target, options, &s->dev);
	free(plugins);
	if (err != 0)
		return sim_fail(s, __FILE__, __LINE__, "hal_open %s is %d: %s",
				s->script->target, err, hal_last_error());
	/* It looks at fds, and moves time itself. */
	SIM_CHECK(hal_device_poll(s->dev, 0) == 0);
	return 0;
}

/* Of the target's text, what the model has to know. */
static void look_at_target(struct sim *s)
{
	const char *t = s->script->target, *at = strstr(t, "timeout_ms=");
	const char *fault = strstr(t, "layers.fault=");

	s->timeout_ns = (at ? strtoull(at + 11, NULL, 10) : 10000) * 1000000;
	s->lends = strstr(t, "oversubscribe=yes") != NULL;
	s->stops = strstr(t, "preempt_for=") != NULL; /* whoever it is */
	at = strstr(t, "kills=");
	s->kills = at ? (uint32_t)strtoul(at + 6, NULL, 10) : 10;
	if (fault == NULL)
		return;
	fault += strlen("layers.fault=");
	s->faulty =
		strncmp(fault, "poll", 4) == 0 || strncmp(fault, "resize", 6) == 0 ||
		strncmp(fault, "suspend", 7) == 0 || strncmp(fault, "resume", 6) == 0 ||
		strncmp(fault, "mem_out", 7) == 0 || strncmp(fault, "mem_in", 6) == 0 ||
		/* The memory for a move, which has begun. */
		(s->lends && strncmp(fault, "mem_alloc", 9) == 0) ||
		(strncmp(fault, "submit", 6) == 0 && strstr(fault, "EAGAIN") == NULL);
}

int sim_begin(struct sim *s)
{
	look_at_target(s);
	if (open_device(s))
		return -1;
	s->info = (struct hal_device_info)HAL_INIT(hal_device_info);
	SIM_OK(hal_device_get_info(s->dev, &s->info));
	SIM_CHECK(s->info.caps & HAL_CAP_VIRTUAL_CLOCK);
	s->running = calloc(2 * s->info.partitions_max, sizeof(*s->running));
	SIM_CHECK(s->running);
	s->started = s->running + s->info.partitions_max;
	SIM_CHECK(!s->lends || (s->info.caps & HAL_CAP_EVICT) != 0);
	s->ref = hal_device_get_extension(s->dev, "ref");
	if (s->ref)
		SIM_OK(s->ref->on_event(hal_device_get_native(s->dev), sim_on_event, s));
	for (uint32_t i = 0; i < GATES; i++)
		SIM_OK(hal_timeline_create(s->dev, &s->gates[i]));
	SIM_OK(hal_completions_create(s->dev, RING, &s->ring));
	for (uint32_t c = 0; s->ref && c < (s->info.colors ? s->info.colors : 1); c++)
		SIM_OK(s->ref->color_free(hal_device_get_native(s->dev), c,
					  &s->color_free[c]));
	return sim_policy_begin(s) || kernels_load(s) ? -1 : 0;
}

/* ---- end ---------------------------------------------------------------------------- */

/* Whatever was suspended goes on, whoever waits for the host is let go, and all ends. */
static int let_end(struct sim *s)
{
	for (uint32_t i = 0; i < QUEUES; i++) {
		struct sim_queue *q = &s->queues[i];
		int err;

		if (!q->q || !q->suspended || q->final)
			continue;
		err = hal_queue_resume(q->q);
		SIM_ANSWER(!err || s->faulty || sim_excused(s, err));
		q->suspended = false;
	}
	for (uint32_t i = 0; i < GATES; i++) {
		if (s->gate_waited[i] <= s->gate_value[i])
			continue;
		SIM_OK(hal_timeline_signal(s->gates[i], s->gate_waited[i]));
		s->gate_value[i] = s->gate_waited[i];
	}
	for (uint32_t i = 0; i < QUEUES; i++) {
		const struct sim_queue *q = &s->queues[i];
		int err;

		if (!q->q || !q->submissions)
			continue;
		err = sim_wait(
			(struct hal_point){hal_queue_get_timeline(q->q), q->submissions});
		SIM_ANSWER(!err || q->tainted || s->faulty ||
			   !model_can_end(s, q, q->submissions));
	}
	/* What was dropped may be told of a moment after the error was. */
	SIM_CHECK(hal_device_poll(s->dev, 1000000000) >= 0 || s->faulty);
	return sim_check(s) || sim_check_ended(s) ? -1 : 0;
}

/* Who waits for one that does not end goes first. */
static int drop_queues(struct sim *s)
{
	for (uint32_t i = 0; i < QUEUES * QUEUES; i++) {
		struct sim_queue *q = &s->queues[i % QUEUES];

		if (q->q && sim_queue_drop(s, q))
			return -1;
	}
	for (uint32_t i = 0; i < QUEUES; i++) {
		struct sim_queue *q = &s->queues[i];

		if (q->q)
			SIM_OK(hal_queue_destroy(q->q));
		if (q->line && sim_queue_put_away(s, q))
			return -1;
	}
	return 0;
}

static int put_away(struct sim *s)
{
	if (drop_queues(s))
		return -1;
	/* Guests before their hosts. */
	for (uint32_t i = 0; i < 2 * PARTS; i++) {
		struct hal_partition_memory_info memory =
			HAL_INIT(hal_partition_memory_info);
		struct hal_partition_info info = HAL_INIT(hal_partition_info);
		struct sim_part *part = &s->parts[i % PARTS];

		if (!part->p || (i < PARTS && part->host == part))
			continue;
		SIM_OK(hal_partition_get_info(part->p, &info));
		SIM_OK(hal_partition_get_memory_info(part->p, &memory));
		SIM_CHECK(info.memory_used == 0 || !s->ref);
		SIM_CHECK(memory.memory_buffers == 0 && memory.memory_away == 0);
		SIM_OK(hal_partition_destroy(part->p));
		sim_part_gone(s, part);
	}
	if (do_read(s, (const uint32_t[SIM_PARAMS]){RING - 1}))
		return -1;
	for (uint32_t i = 1; i <= s->ids; i++)
		SIM_CHECK(s->told[i] == s->submitted[i]);
	for (uint32_t c = 0; s->ref && c < (s->info.colors ? s->info.colors : 1); c++) {
		uint64_t bytes = 0;

		SIM_OK(s->ref->color_free(hal_device_get_native(s->dev), c, &bytes));
		SIM_CHECK(bytes == s->color_free[c] || s->faulty);
	}
	SIM_OK(hal_completions_destroy(s->ring));
	for (uint32_t i = 0; i < GATES; i++)
		SIM_OK(hal_timeline_destroy(s->gates[i]));
	return kernels_unload(s);
}

/* What cannot end, for a fault's sake or one that is suspended for good, is dropped; for
 * good, since two that wait for each other's points keep each other otherwise. */
static int drop_stuck(struct sim *s)
{
	for (uint32_t i = 0; i < QUEUES; i++) {
		struct sim_queue *q = &s->queues[i];

		if (!q->q || q->seen == q->submissions)
			continue;
		sim_taint(s, q);
		if (!q->suspended)
			(void)hal_queue_suspend(
				q->q, HAL_SUSPEND_DRAIN | HAL_SUSPEND_FINAL, NULL);
	}
	SIM_CHECK(hal_device_poll(s->dev, 1000000000) >= 0 || s->faulty);
	return 0;
}

int sim_end(struct sim *s)
{
	if (sim_policy_check(s) || let_end(s) || drop_stuck(s) || put_away(s))
		return -1;
	SIM_OK(hal_close(s->dev));
	return 0;
}

/* ---- a process ---------------------------------------------------------------------- */

void sim_run_here(const struct sim_script *script, bool verbose, struct sim_result *out)
{
	struct sim *s = calloc(1, sizeof(*s));
	int err;

	memset(out, 0, sizeof(*out));
	if (s == NULL) {
		out->failed = true;
		return;
	}
	s->script = script;
	s->verbose = verbose;
	s->hash = UINT64_C(0xcbf29ce484222325);
	err = sim_begin(s);
	for (s->step = 0; !err && s->step < script->count; s->step++) {
		const struct sim_op *op = &script->ops[s->step];

		if (verbose) {
			printf("  %u at %llu: ", s->step, (unsigned long long)s->now);
			script_print_op(stdout, op);
			fflush(stdout);
		}
		sim_mix(s, op->type);
		err = sim_types[op->type].run(s, op->p);
		if (!err)
			err = sim_check(s);
	}
	if (!err)
		err = sim_end(s);
	out->failed = err != 0;
	out->step = s->step;
	out->hash = s->hash;
	out->fetches = s->fetches;
	snprintf(out->why, sizeof(out->why), "%s", s->why);
	while (s->items) {
		struct sim_item *next = s->items->next;

		free(s->items);
		s->items = next;
	}
	for (uint32_t i = 0; i < QUEUES; i++)
		free(s->queues[i].shadow);
	free(s->running);
	free(s);
}

static void in_child(const struct sim_script *script, bool twice, bool verbose, int fd)
{
	const struct itimerval limit = {.it_value.tv_sec = sim_seconds};
	struct sim_result a, b;

	setitimer(ITIMER_PROF, &limit, NULL);
	sim_run_here(script, verbose, &a);
	if (!a.failed && twice) {
		sim_run_here(script, false, &b);
		a.failed = b.failed || a.hash != b.hash;
		if (b.failed)
			memcpy(a.why, b.why, sizeof(a.why));
		else if (a.failed)
			snprintf(a.why, sizeof(a.why),
				 "again.c:1: the same script, another schedule");
	}
	fflush(NULL);
	_exit(write(fd, &a, sizeof(a)) == sizeof(a) ? 0 : 1);
}

void sim_run(const struct sim_script *script, bool twice, bool verbose,
	     struct sim_result *out)
{
	int fds[2], status = 0;
	pid_t child;
	ssize_t n;

	memset(out, 0, sizeof(*out));
	out->failed = true;
	fflush(NULL);
	if (pipe(fds) != 0 || (child = fork()) < 0) {
		snprintf(out->why, sizeof(out->why), "run.c:0: %s", strerror(errno));
		return;
	}
	if (child == 0) {
		close(fds[0]);
		in_child(script, twice, verbose, fds[1]);
	}
	close(fds[1]);
	do
		n = read(fds[0], out, sizeof(*out));
	while (n < 0 && errno == EINTR);
	close(fds[0]);
	waitpid(child, &status, 0);
	if (n == sizeof(*out) && status == 0)
		return;
	out->failed = true;
	if (WIFSIGNALED(status))
		snprintf(out->why, sizeof(out->why), "signal.c:%d: %s", WTERMSIG(status),
			 WTERMSIG(status) == SIGPROF ? "it does not end"
						     : strsignal(WTERMSIG(status)));
	else
		snprintf(out->why, sizeof(out->why), "exit.c:%d: it exits",
			 WEXITSTATUS(status));
}
