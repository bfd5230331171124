/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - one handle of a device for all users of a process: each handle of npu:0 is a
 * machine of its own. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <hal/ext/options.h>
#include <hal/hal.h>

#include "model.h"

struct shared {
	struct shared *next;
	struct hal_device *dev;
	pid_t pid;
	uint32_t users;
	char key[]; /* target and options, a line each */
};

static struct {
	pthread_mutex_t lock; /* held while a device opens and closes */
	struct shared *first;
} share = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void before_fork(void)
{
	pthread_mutex_lock(&share.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&share.lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork);
}

/* ---- opening ---------------------------------------------------------------------- */

/* Return whether a file or the environment says which engine or model of the NPU runs. */
static bool engine_configured(void)
{
	struct hal_option_info o = HAL_INIT(hal_option_info);
	struct hal_scan *scan;
	bool given = false;

	if (hal_scan_create(NULL, HAL_SCAN_OPTIONS, &scan) < 0)
		return true; /* hal_open says what is wrong */
	for (uint32_t i = 0; !given && hal_scan_get_option(scan, i, &o) == 0; i++)
		given = strcmp(o.section, "backend.npu") == 0 &&
			(strcmp(o.key, "engine") == 0 || strcmp(o.key, "model") == 0) &&
			strcmp(o.source, "default") != 0;
	(void)hal_scan_destroy(scan);
	return given;
}

static bool engine_chosen(const char *target, const char *const *options)
{
	bool chosen = target && (strstr(target, "engine=") || strstr(target, "model="));

	for (; !chosen && options && *options; options++)
		chosen = strncmp(*options, "backend.npu.engine=", 19) == 0 ||
			 strncmp(*options, "backend.npu.model=", 18) == 0;
	return chosen || engine_configured();
}

/* Open the NPU with the model in C, which takes the cycles of the RTL in an 80th of the
 * time.  Return an error where it is not installed. */
static int open_fast(const char *target, const char *const *options,
		     struct hal_device **dev)
{
	const char **more;
	size_t count = 0;
	int rc;

	while (options && options[count])
		count++;
	more = calloc(count + 2, sizeof(*more));
	if (!more)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		more[i] = options[i];
	more[count] = "backend.npu.engine=fast";
	rc = hal_open(target, more, dev);
	free(more);
	return rc;
}

/* Say why the device that was opened will not do, and what would. */
static int no_npu(const char *target, const struct hal_device_info *i, char *why)
{
	struct hal_device *npu = NULL;

	if (target)
		return npuc_fail(why, ENODEV,
				 "%s is not an NPU: %s; the target npu:0 selects one",
				 i->backend, i->name);
	if (hal_open("npu:0", NULL, &npu) < 0)
		return npuc_fail(why, ENODEV,
				 "the configuration selects %s (%s), which is not an "
				 "NPU, and npu:0 cannot be opened: %s",
				 i->backend, i->name, hal_last_error());
	(void)hal_close(npu);
	return npuc_fail(why, ENODEV,
			 "the configuration selects %s (%s), which is not an NPU; the "
			 "target npu:0 selects one",
			 i->backend, i->name);
}

static int open_npu(const char *target, const char *const *options,
		    struct hal_device **dev, char *why)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	int rc = -1;

	if (!engine_chosen(target, options))
		rc = open_fast(target, options, dev);
	if (rc < 0)
		rc = hal_open(target, options, dev);
	if (rc < 0)
		return npuc_fail(why, -rc, "%s", hal_last_error());
	rc = hal_device_get_info(*dev, &info);
	if (rc < 0)
		rc = npuc_fail(why, -rc, "%s", hal_last_error());
	else if (info.kind != HAL_KIND_NPU)
		rc = no_npu(target, &info, why);
	if (rc < 0)
		(void)hal_close(*dev);
	return rc;
}

/* ---- sharing ---------------------------------------------------------------------- */

/* Make an entry without a device. */
static struct shared *make(const char *target, const char *const *options)
{
	size_t size = (target ? strlen(target) : 0) + 2, at;
	struct shared *s;

	for (size_t i = 0; options && options[i]; i++)
		size += strlen(options[i]) + 1;
	s = calloc(1, sizeof(*s) + size);
	if (!s)
		return NULL;
	at = (size_t)snprintf(s->key, size, "%s\n", target ? target : "");
	for (size_t i = 0; options && options[i]; i++)
		at += (size_t)snprintf(s->key + at, size - at, "%s\n", options[i]);
	s->pid = getpid();
	return s;
}

/* Entries of the process from which this one was forked are none of its own. */
static struct shared *find(const char *key)
{
	pid_t pid = getpid();

	for (struct shared *s = share.first; s; s = s->next)
		if (s->pid == pid && strcmp(s->key, key) == 0)
			return s;
	return NULL;
}

int npuc_device_share(const char *target, const char *const *options,
		      struct hal_device **dev, char why[NPUC_WHY])
{
	struct shared *s, *open;
	int rc = 0;

	if (!dev)
		return npuc_fail(why, EINVAL, "npuc_device_share: NULL argument");
	s = make(target, options);
	if (!s)
		return npuc_fail(why, ENOMEM, "npuc_device_share: out of memory");
	pthread_mutex_lock(&share.lock);
	open = find(s->key);
	if (!open)
		rc = open_npu(target, options, &s->dev, why);
	if (!open && !rc) {
		s->next = share.first;
		share.first = open = s;
		s = NULL;
	}
	if (open) {
		open->users++;
		*dev = open->dev;
	}
	pthread_mutex_unlock(&share.lock);
	free(s);
	return rc;
}

/* Close the last user's device, and remove the entry where the handle is gone, which it
 * is after the errors of traces and layers, too. */
static int close_last(struct shared **at)
{
	struct shared *s = *at;
	int rc = hal_close(s->dev);

	if (rc < 0 && rc != -EIO && rc != -EPROTO)
		return rc;
	*at = s->next;
	free(s);
	return rc;
}

int npuc_device_unshare(struct hal_device *dev)
{
	struct shared **at = &share.first;
	int rc = 0;

	if (!dev)
		return 0;
	pthread_mutex_lock(&share.lock);
	while (*at && (*at)->dev != dev)
		at = &(*at)->next;
	if (!*at)
		rc = -EINVAL;
	else if ((*at)->pid != getpid())
		rc = -EPERM;
	else if ((*at)->users > 1)
		(*at)->users--;
	else
		rc = close_last(at);
	pthread_mutex_unlock(&share.lock);
	return rc;
}
