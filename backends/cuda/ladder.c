/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partitions=auto: masks at launch, else masks in streams, else green contexts, else the
 * whole device.  Each way is tried out before it is taken, in a process of its own: what
 * masks rest on is documented nowhere, and a driver that does not have it like that may
 * crash or hang.
 * The process runs a helper (backends/cuda/helper), as this one's driver does not survive
 * a fork; what that finds is kept for the next open (verdict.c).
 */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HELPER  "hal-cuda-trial"
#define REAP_MS 1000u /* for a helper to end after it was killed, or had its say */
#define STUCK   16u   /* helpers of the process that can be remembered */

const char *const cu_way_names[] = {"none", "green", "mask", "stream", "auto"};
const enum cu_way cu_way_order[CU_WAYS] = {CU_WAY_MASK, CU_WAY_STREAM, CU_WAY_GREEN};

/* ---- the helper -------------------------------------------------------------------- */

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Beside the library, or in its folder accelhal; where the option says. */
static bool find_helper(const struct cu_device *dev, char path[PATH_MAX])
{
	static const char *const places[] = {"/accelhal/" HELPER, "/" HELPER};
	char origin[PATH_MAX];
	Dl_info info;
	size_t i, n;

	if (dev->opt.helper[0]) {
		snprintf(path, PATH_MAX, "%s", dev->opt.helper);
		return is_program(path);
	}
	snprintf(path, PATH_MAX, "%s", HELPER);
	if (!dladdr((const void *)cu_way_names, &info) ||
	    /* of a program that was found by PATH, dladdr knows no folder */
	    !realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe",
		      origin))
		return false;
	n = (size_t)(strrchr(origin, '/') - origin);
	for (i = 0; i < 2; i++) {
		if (n + strlen(places[i]) >= PATH_MAX)
			continue;
		memcpy(path, origin, n);
		memcpy(path + n, places[i], strlen(places[i]) + 1);
		if (is_program(path))
			return true;
	}
	return false;
}

/* Its output is out, all else is not ours: no file of the process's, no blocked signal.
 */
static int start(const char *path, char *const argv[], int out, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	int err;

	(void)sigemptyset(&none);
	(void)posix_spawn_file_actions_init(&files);
	(void)posix_spawnattr_init(&attributes);
	err = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&files, out, 1);
	if (!err)
		err = posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY,
						       0);
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(&files, 3);
	if (!err)
		err = posix_spawnattr_setsigmask(&attributes, &none);
	if (!err)
		err = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	if (!err)
		err = posix_spawn(pid, path, &files, &attributes, argv, environ);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&files);
	return -err;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* True: it has closed its output, in time and short enough. */
static bool listen_to(int fd, uint32_t ms, char text[CU_VERDICT_BYTES])
{
	const int64_t end = now_ms() + ms;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t n = 0;
	ssize_t got = 1;

	while (got && n < CU_VERDICT_BYTES - 1) {
		const int64_t left = end - now_ms();
		const int ready = left > 0 ? poll(&p, 1, (int)left) : 0;

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			break;
		got = read(fd, text + n, CU_VERDICT_BYTES - 1 - n);
		if (got < 0)
			break;
		n += (size_t)got;
	}
	text[n] = 0;
	return got == 0;
}

/* Helpers that did not end although they were killed: a process that waits in the kernel
 * for a driver or a disk may not, for as long as that takes. */
static struct {
	pthread_mutex_t lock;
	pid_t pid[STUCK]; /* 0: free */
} stuck = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Reap those helpers that have ended since they were recorded.  Does not wait. */
static void reap_stuck(void)
{
	uint32_t i;

	pthread_mutex_lock(&stuck.lock);
	for (i = 0; i < STUCK; i++)
		if (stuck.pid[i] && waitpid(stuck.pid[i], NULL, WNOHANG))
			stuck.pid[i] = 0;
	pthread_mutex_unlock(&stuck.lock);
}

/* Record pid for reap_stuck.  If the list is full, it stays a zombie until this process
 * ends. */
static void add_stuck(pid_t pid)
{
	uint32_t i;

	pthread_mutex_lock(&stuck.lock);
	for (i = 0; i < STUCK && stuck.pid[i]; i++)
		;
	if (i < STUCK)
		stuck.pid[i] = pid;
	pthread_mutex_unlock(&stuck.lock);
}

/* The parent's helpers are no children of its child. */
static void in_child(void)
{
	(void)pthread_mutex_init(&stuck.lock, NULL);
	memset(stuck.pid, 0, sizeof(stuck.pid));
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, in_child);
}

/* Wait for at most REAP_MS until pid has ended; *status is how, or 0 if another thread or
 * an ignored SIGCHLD took that.  Return false if it has not ended. */
static bool reap(pid_t pid, int *status)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	const int64_t end = now_ms() + REAP_MS;
	pid_t got;

	for (;;) {
		*status = 0;
		got = waitpid(pid, status, WNOHANG);
		if (got == pid || (got < 0 && errno != EINTR))
			return true;
		if (now_ms() >= end)
			return false;
		(void)nanosleep(&nap, NULL);
	}
}

/* Ensure that the helper ends, within 2 * REAP_MS.  *status is how it ended.  Return
 * false if it has not ended: then reap_stuck reaps it later. */
static bool finish(pid_t pid, bool heard, int *status)
{
	if (heard && reap(pid, status))
		return true;
	(void)kill(pid, SIGKILL);
	if (reap(pid, status))
		return true;
	add_stuck(pid);
	return false;
}

static void ended(struct cu_tried *t, bool heard, uint32_t ms, pid_t left, int status)
{
	t->err = -EIO;
	if (left)
		snprintf(t->why, sizeof(t->why),
			 "%s did not end in %u ms and cannot be killed; process %d is "
			 "left behind",
			 HELPER, ms, (int)left);
	else if (!heard)
		snprintf(t->why, sizeof(t->why), "%s did not end in %u ms", HELPER, ms);
	else if (WIFSIGNALED(status))
		snprintf(t->why, sizeof(t->why), "%s was killed by SIG%s", HELPER,
			 sigabbrev_np(WTERMSIG(status)));
	else
		snprintf(t->why, sizeof(t->why),
			 "%s exited with status %d and printed no result", HELPER,
			 WEXITSTATUS(status));
}

/* Who ignores SIGCHLD is not told how it ended: then what it said has to do. */
static void run_helper(const struct cu_device *dev, const char *path, int in, int out,
		       struct cu_verdict *said, struct cu_tried *t)
{
	char index[16], name[8], file[PATH_MAX], library[PATH_MAX],
		text[CU_VERDICT_BYTES];
	char *const argv[] = {file, library, index, name, NULL};
	const struct cu_tried *found;
	const char *wrong;
	int status = 0, err;
	bool heard, gone;
	pid_t pid;

	reap_stuck();
	snprintf(index, sizeof(index), "%u", dev->index);
	snprintf(name, sizeof(name), "%s", cu_way_names[t->way]);
	snprintf(file, sizeof(file), "%s", path);
	snprintf(library, sizeof(library), "%s", dev->opt.library);
	err = start(path, argv, out, &pid);
	(void)close(out);
	if (err) {
		t->err = -EIO;
		snprintf(t->why, sizeof(t->why), "%.120s: %s", path,
			 strerrordesc_np(-err));
		return;
	}
	heard = listen_to(in, dev->opt.trial_ms, text);
	gone = finish(pid, heard, &status);
	wrong = heard ? cu_verdict_read(said, text) : "";
	found = wrong ? NULL : cu_verdict_get(said, t->way);
	if (found) {
		*t = *found;
	} else if (heard && text[0]) {
		t->err = -EIO;
		snprintf(t->why, sizeof(t->why), "the result of %s %s", HELPER,
			 wrong ? wrong : "is for another way");
	} else {
		ended(t, heard, dev->opt.trial_ms, gone ? 0 : pid, status);
	}
}

static void try_out(const struct cu_device *dev, const struct cu_verdict *v,
		    struct cu_tried *t)
{
	struct cu_verdict *said = calloc(1, sizeof(*said));
	char path[PATH_MAX];
	int fds[2];

	if (said && !find_helper(dev, path)) {
		t->err = -EIO;
		snprintf(t->why, sizeof(t->why), "the program %.150s does not exist",
			 path);
	} else if (!said || pipe2(fds, O_CLOEXEC)) {
		t->err = -EIO;
		snprintf(t->why, sizeof(t->why), "no memory or file descriptor to run %s",
			 HELPER);
	} else {
		memcpy(said->device, v->device, sizeof(said->device));
		memcpy(said->build, v->build, sizeof(said->build));
		memcpy(said->setup, v->setup, sizeof(said->setup));
		run_helper(dev, path, fds[0], fds[1], said, t);
		(void)close(fds[0]);
	}
	free(said);
}

/* ---- the choice -------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void say(struct cu_device *dev,
						      const char *fmt, ...)
{
	const size_t n = strlen(dev->said);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(dev->said + n, sizeof(dev->said) - n, fmt, ap);
	va_end(ap);
}

/* True: it was not known yet. */
static bool find_out(struct cu_device *dev, struct cu_verdict *v, enum cu_way way,
		     struct cu_tried *t)
{
	const struct cu_tried *kept = cu_verdict_get(v, way);

	if (kept) {
		*t = *kept;
		return false;
	}
	memset(t, 0, sizeof(*t));
	t->way = way;
	try_out(dev, v, t);
	v->tried[v->count++] = *t;
	return true;
}

static int take(struct cu_device *dev, const struct cu_tried *t)
{
	return t->way == CU_WAY_GREEN ? cu_green_open(dev, t)
				      : cu_mask_open(dev, t->way, &t->mask);
}

static int choose(struct cu_device *dev, struct cu_verdict *v, struct cu_tried *t)
{
	char why[HAL_CUDA_SAID];
	bool news = false;
	uint32_t i;
	int err;

	cu_verdict_of(dev->shape.device, v);
	cu_kept_read(v, why);
	if (why[0])
		say(dev, "%.300s; ", why);
	for (i = 0; i < CU_WAYS && cu_way_of(dev) == CU_WAY_NONE; i++) {
		const bool fresh = find_out(dev, v, cu_way_order[i], t);

		news |= fresh;
		if (t->err) {
			say(dev, "%s: %s; ", cu_way_names[cu_way_order[i]], t->why);
			continue;
		}
		err = cu_check_remainder(dev, t->way == CU_WAY_GREEN ? t->units
								     : t->mask.count);
		if (err)
			return err;
		/* What holds elsewhere may fail here; then the next one may do. */
		if (take(dev, t) == 0)
			say(dev, "%s: %s", cu_way_names[cu_way_order[i]],
			    fresh ? "tried out at open" : "tried out at an earlier open");
		else if (atomic_load(&dev->base.lost))
			return cu_gone(dev);
		else
			say(dev, "%s: works elsewhere but cannot be opened here; ",
			    cu_way_names[cu_way_order[i]]);
	}
	if (cu_way_of(dev) == CU_WAY_NONE)
		say(dev, "none: the device is one unit");
	if (!news)
		return 0;
	cu_kept_write(v, why);
	if (why[0])
		say(dev, "; %.300s", why);
	return 0;
}

int cu_ladder(struct cu_device *dev)
{
	struct cu_verdict *v = calloc(1, sizeof(*v));
	struct cu_tried *t = calloc(1, sizeof(*t));
	int err = v && t ? choose(dev, v, t)
			 : cu_host->fail(
				   ENOMEM,
				   "cuda: no memory for the results of partitions=auto");

	free(t);
	free(v);
	return err;
}
