/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - pass messages to the application and to the file of HAL_LOG; see log.h. */
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/error.h"
#include "util/fd.h"

#define LINE_BYTES 768

atomic_int log_level;

static const char *const level_names[] = {
	[HAL_LOG_OFF] = "off",   [HAL_LOG_ERROR] = "error", [HAL_LOG_WARNING] = "warning",
	[HAL_LOG_INFO] = "info", [HAL_LOG_DEBUG] = "debug",
};

/* What hal_log_set has set.  .users counts the threads in .fn, and 1 while it is set. */
struct receiver {
	hal_log_fn fn;
	void *user;
	int level;
	unsigned int users;
	bool awaited; /* a thread waits for .users to be 0, and frees it then */
};

/* .lock guards all of it, but not a call of a receiver's function. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t left; /* the last user of an awaited receiver has left it */
	struct receiver *receiver;
	char *variable; /* HAL_LOG as it was read; NULL: not set */
	int file_level;
	int fd; /* of the file that HAL_LOG names; -1: none */
} logs = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER, .fd = -1};

/* This thread is in a receiver's function. */
static _Thread_local bool receiving;

/* ---- fork -------------------------------------------------------------------------- */

static void before_fork(void)
{
	pthread_mutex_lock(&logs.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&logs.lock);
}

static void in_child(void)
{
	/* The other threads, which may be in the receiver, are not in the child. */
	if (logs.receiver != NULL)
		logs.receiver->users = receiving ? 2 : 1;
	(void)pthread_cond_init(&logs.left, NULL);
	pthread_mutex_unlock(&logs.lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- receivers --------------------------------------------------------------------- */

/* Set log_level.  The caller holds the lock. */
static void level_update(void)
{
	int level = logs.receiver != NULL ? logs.receiver->level : HAL_LOG_OFF;

	atomic_store(&log_level, logs.file_level > level ? logs.file_level : level);
}

/* Drop a use of r.  The caller holds the lock. */
static void receiver_leave(struct receiver *r)
{
	if (--r->users > 0)
		return;
	if (r->awaited)
		pthread_cond_broadcast(&logs.left);
	else
		free(r);
}

/* Replace the receiver by r, and return when no thread is in the old one any more.  In a
 * receiver's function do not wait: this thread would wait for itself. */
static void receiver_set(struct receiver *r)
{
	struct receiver *old;

	pthread_mutex_lock(&logs.lock);
	old = logs.receiver;
	logs.receiver = r;
	level_update();
	if (old != NULL && receiving) {
		receiver_leave(old);
	} else if (old != NULL) {
		old->awaited = true;
		receiver_leave(old);
		while (old->users > 0)
			pthread_cond_wait(&logs.left, &logs.lock);
		free(old);
	}
	pthread_mutex_unlock(&logs.lock);
}

int hal_log_set(hal_log_fn fn, void *user, int level)
{
	struct receiver *r = NULL;
	int cancel;

	if (level < HAL_LOG_OFF || level > HAL_LOG_DEBUG)
		return fail(EINVAL,
			    "hal_log_set: level %d is not one of enum hal_log_level",
			    level);
	if (fn != NULL && level != HAL_LOG_OFF) {
		r = malloc(sizeof(*r));
		if (r == NULL)
			return fail(ENOMEM, "no memory for a log function");
		*r = (struct receiver){
			.fn = fn, .user = user, .level = level, .users = 1};
	}
	cancel = cancel_hold();
	receiver_set(r);
	cancel_release(cancel);
	return 0;
}

/* ---- the file ---------------------------------------------------------------------- */

/* Return the level named by the first length bytes of name, or -1. */
static int level_named(const char *name, size_t length)
{
	for (int i = 0; i < (int)ARRAY_LENGTH(level_names); i++)
		if (strlen(level_names[i]) == length &&
		    strncmp(level_names[i], name, length) == 0)
			return i;
	return -1;
}

/* Write lines of the level and to the file that value names.  The caller holds the lock.
 */
static int file_set(const char *value)
{
	size_t length = strcspn(value, ":");
	const char *path = value[length] == ':' ? value + length + 1 : NULL;
	int level = level_named(value, length), fd = STDERR_FILENO;

	if (level < 0 || (path != NULL && path[0] == '\0'))
		return fail(
			EINVAL,
			"environment HAL_LOG: \"%s\" is not LEVEL or LEVEL:FILE, with "
			"level off, error, warning, info or debug",
			value);
	if (path != NULL && level != HAL_LOG_OFF)
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY,
			  0644);
	if (fd < 0)
		return fail(errno, "environment HAL_LOG: %s: %s", path,
			    hal_strerror(errno));
	logs.fd = fd;
	logs.file_level = level;
	return 0;
}

/* Forget what HAL_LOG has set.  The caller holds the lock. */
static void file_unset(void)
{
	if (logs.fd > STDERR_FILENO)
		fd_close(logs.fd);
	logs.fd = -1;
	logs.file_level = HAL_LOG_OFF;
	free(logs.variable);
	logs.variable = NULL;
}

/* Apply value, which HAL_LOG has now; NULL: it is not set.  The caller holds the lock. */
static int file_renew(const char *value)
{
	int err = 0;

	file_unset();
	if (value != NULL) {
		logs.variable = strdup(value);
		err = logs.variable != NULL
			      ? file_set(value)
			      : fail(ENOMEM, "no memory for the environment HAL_LOG");
	}
	if (err != 0)
		file_unset(); /* the next call reports the error again */
	level_update();
	return err;
}

int log_environment(void)
{
	/* A program with more rights than its user ignores the environment. */
	const char *value = secure_getenv("HAL_LOG");
	int err = 0;

	if (value != NULL && value[0] == '\0')
		value = NULL;
	pthread_mutex_lock(&logs.lock);
	if (value == NULL ? logs.variable != NULL
			  : logs.variable == NULL || strcmp(value, logs.variable) != 0)
		err = file_renew(value);
	pthread_mutex_unlock(&logs.lock);
	return err;
}

/* Write a line with the time, the process and the level.  The caller holds the lock. */
static void file_write(int level, const char *text)
{
	char line[LINE_BYTES + 64];
	struct timespec now;
	struct tm day;
	size_t n;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &day);
	n = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &day);
	format_text(line + n, sizeof(line) - n, ".%06ldZ %d %s %s\n", now.tv_nsec / 1000,
		    (int)getpid(), level_names[level], text);
	/* One call a line, so that processes which share the file do not mix them.  What
	 * cannot be written is left out. */
	while (write(logs.fd, line, strlen(line)) < 0 && errno == EINTR)
		;
}

/* ---- messages ---------------------------------------------------------------------- */

/* Pass text to the file, and to the receiver without the lock. */
static void deliver(int level, const char *text)
{
	struct receiver *r;

	pthread_mutex_lock(&logs.lock);
	if (level <= logs.file_level)
		file_write(level, text);
	r = logs.receiver;
	if (r == NULL || level > r->level) {
		pthread_mutex_unlock(&logs.lock);
		return;
	}
	r->users++;
	pthread_mutex_unlock(&logs.lock);
	receiving = true;
	r->fn(r->user, level, text);
	receiving = false;
	pthread_mutex_lock(&logs.lock);
	receiver_leave(r);
	pthread_mutex_unlock(&logs.lock);
}

void log_text(int level, const char *fmt, ...)
{
	struct error_message before;
	int err = errno, cancel;
	char text[LINE_BYTES];
	va_list ap;

	if (receiving)
		return; /* a receiver's own calls would call it again, without end */
	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it has been started */
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *p = text; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
	error_keep(&before);
	cancel = cancel_hold();
	deliver(level, text);
	cancel_release(cancel);
	error_restore(&before);
	errno = err;
}
