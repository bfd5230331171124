/* SPDX-License-Identifier: Apache-2.0 */
/* limit.c - how much of the memory's bandwidth a partition may take. */
#include "engine/limit.h"

#include <errno.h>

#include "util/error.h"

#define SECOND 1000000000u

/* Of bandwidth in ns; windows of up to a second do not overflow. */
static uint64_t bytes_in(uint64_t bandwidth, uint64_t ns)
{
	return bandwidth / SECOND * ns + bandwidth % SECOND * ns / SECOND;
}

int limit_plan(const struct hal_device *dev, uint64_t bandwidth, uint64_t *bytes,
	       uint64_t *window_ns)
{
	/* Less would round the share, and a burst be long beside the window. */
	enum { GRAINS = 16 };
	const struct hal_device_info *i = &dev->info;
	uint64_t window = i->limit_window_ns;

	if ((i->caps & HAL_CAP_LIMIT) == 0)
		return fail(ENOTSUP, "bandwidth %llu: %s limits none", U64(bandwidth),
			    dev->name);
	if (i->bandwidth != 0 && bandwidth > i->bandwidth)
		return fail(EINVAL, "bandwidth %llu: %s has %llu bytes a second",
			    U64(bandwidth), dev->name, U64(i->bandwidth));
	if (bytes_in(bandwidth, window) < i->limit_bytes)
		return fail(EINVAL,
			    "bandwidth %llu: less than %llu bytes in each %llu ns, the "
			    "least of %s",
			    U64(bandwidth), U64(i->limit_bytes), U64(window), dev->name);
	while (window > 1 && bytes_in(bandwidth, window / 2) >= GRAINS * i->limit_bytes)
		window /= 2;
	*bytes = bytes_in(bandwidth, window) / i->limit_bytes * i->limit_bytes;
	*window_ns = window;
	return 0;
}

void limit_own(const struct hal_partition *part, uint64_t *bytes, uint64_t *window_ns)
{
	/* As shares: bytes / window, without a division. */
	if (part->limit_bytes == 0 ||
	    (*bytes != 0 && (double)*bytes * (double)part->limit_window_ns <=
				    (double)part->limit_bytes * (double)*window_ns))
		return;
	*bytes = part->limit_bytes;
	*window_ns = part->limit_window_ns;
}

uint64_t limit_of(const struct hal_partition *part)
{
	/* Both are far from the ends of what a double has. */
	return part->limit_bytes == 0 ? 0
				      : (uint64_t)((double)part->limit_bytes * SECOND /
						   (double)part->limit_window_ns);
}
