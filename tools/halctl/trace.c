/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - halctl trace: the newest events of a device that hald serves, as a file. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "served.h"

static const char file[] = "hal-trace.json";

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Wait for a signal of stops, for time_s (0: any time), or for the end of hald.  Return
 * 0, or TOOL_FAILED after the end of hald. */
static int wait_for_end(const struct served *s, const sigset_t *stops, uint32_t time_s)
{
	const int64_t until = now_ns() + time_s * INT64_C(1000000000);

	for (;;) {
		struct hal_device_info info = HAL_INIT(hal_device_info);
		int64_t left = time_s != 0 ? until - now_ns() : INT64_MAX;
		struct timespec most = {.tv_sec = 1};

		if (left <= 0)
			return 0;
		if (left < 1000000000)
			most = (struct timespec){.tv_nsec = (long)left};
		if (sigtimedwait(stops, NULL, &most) > 0)
			return 0;
		if (hal_device_get_info(s->dev, &info) != 0)
			return tool_fail_hal();
	}
}

/* Record with s, and say what is in the file. */
static int record(const struct halctl *ctl, const struct served *s)
{
	const char *path = ctl->map != NULL ? ctl->map : file;
	uint64_t events, dropped;
	sigset_t stops;
	int rc;

	(void)sigemptyset(&stops);
	(void)sigaddset(&stops, SIGINT);
	(void)sigaddset(&stops, SIGTERM);
	/* No other thread runs that could take them: hal_open blocks signals in its. */
	(void)pthread_sigmask(SIG_BLOCK, &stops, NULL);
	if (s->hald->trace_start(s->dev, path, ctl->size) != 0)
		return tool_fail_hal();
	rc = wait_for_end(s, &stops, ctl->time_s);
	if (rc == 0 && s->hald->trace_stop(s->dev, &events, &dropped) != 0)
		rc = tool_fail_hal();
	if (rc == 0)
		printf("%" PRIu64 " events, %" PRIu64 " dropped: %s\n", events, dropped,
		       path);
	return rc;
}

int halctl_trace(const struct halctl *ctl)
{
	struct served s;
	int rc = served_open(ctl, "trace", &s);

	if (rc != 0)
		return rc;
	if (s.hald->size > offsetof(struct hal_hald_extension, trace_stop))
		rc = record(ctl, &s);
	else
		rc = tool_fail("trace: the library does not record %s", ctl->target);
	return served_close(&s, rc);
}
