/* SPDX-License-Identifier: Apache-2.0 */
/* limit.c - limits on the memory bandwidth of partitions. */
#include "sched/limit.h"

#include <errno.h>

#include "util/error.h"

#define SECOND 1000000000u

uint64_t limit_window(const struct hal_device_info *i, uint64_t bandwidth,
		      uint64_t *window_ns)
{
	enum { GRAINS = 16 };
	const uint64_t second = 1000000000;
	uint64_t window = i->limit_window_ns, bytes, half;

	/* This cannot overflow for windows of up to a second. */
	bytes = bandwidth / second * window + bandwidth % second * window / second;
	while (window > 1) {
		half = bandwidth / second * (window / 2) +
		       bandwidth % second * (window / 2) / second;
		if (half < GRAINS * i->limit_bytes)
			break;
		window /= 2;
		bytes = half;
	}
	*window_ns = window;
	return i->limit_bytes != 0 ? bytes / i->limit_bytes * i->limit_bytes : 0;
}

int limit_plan(const struct hal_device *dev, uint64_t bandwidth, uint64_t *bytes,
	       uint64_t *window_ns)
{
	const struct hal_device_info *i = &dev->info;

	if ((i->caps & HAL_CAP_LIMIT) == 0)
		return fail(ENOTSUP,
			    "bandwidth %llu: %s does not support bandwidth limits",
			    U64(bandwidth), dev->name);
	if (i->bandwidth != 0 && bandwidth > i->bandwidth)
		return fail(EINVAL, "bandwidth %llu: %s has only %llu bytes per second",
			    U64(bandwidth), dev->name, U64(i->bandwidth));
	*bytes = limit_window(i, bandwidth, window_ns);
	if (*bytes == 0)
		return fail(EINVAL,
			    "bandwidth %llu: less than %llu bytes per %llu ns, the "
			    "minimum of %s",
			    U64(bandwidth), U64(i->limit_bytes), U64(i->limit_window_ns),
			    dev->name);
	return 0;
}

void limit_own(const struct hal_partition *part, uint64_t *bytes, uint64_t *window_ns)
{
	/* Compare bytes / window of both limits, cross-multiplied. */
	if (part->sched.limit_bytes == 0 ||
	    (*bytes != 0 && (double)*bytes * (double)part->sched.limit_window_ns <=
				    (double)part->sched.limit_bytes * (double)*window_ns))
		return;
	*bytes = part->sched.limit_bytes;
	*window_ns = part->sched.limit_window_ns;
}

uint64_t limit_of(const struct hal_partition *part)
{
	/* A double cannot overflow here: both numbers are far below its range. */
	return part->sched.limit_bytes == 0
		       ? 0
		       : (uint64_t)((double)part->sched.limit_bytes * SECOND /
				    (double)part->sched.limit_window_ns);
}
