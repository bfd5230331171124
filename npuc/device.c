/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - a device with one partition. */
#include "device.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/options.h>

/* Make the partition, and tell of its shape as of the device's. */
static int partition_make(struct device *d, uint32_t units)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	int rc;

	desc.units_floor = units ? units : d->info.unit_rows * d->info.unit_cols;
	rc = hal_partition_create(d->dev, &desc, &d->part);
	if (rc >= 0)
		rc = hal_partition_get_info(d->part, &info);
	d->info.unit_rows = info.rows;
	d->info.unit_cols = info.cols;
	return rc;
}

int device_open(const char *target, uint32_t units, struct device *d, char why[NPUC_WHY])
{
	int rc;

	*d = (struct device){.info = {.size = (uint32_t)sizeof(d->info)}};
	rc = npuc_device_share(target, NULL, &d->dev, why);
	if (rc)
		return rc;
	rc = hal_device_get_info(d->dev, &d->info);
	if (rc >= 0)
		rc = partition_make(d, units);
	if (rc >= 0)
		return 0;
	snprintf(why, NPUC_WHY, "%s", hal_last_error());
	device_close(d);
	return rc;
}

/* The least power of two that has room, and a sixteenth for pages of tables. */
static uint64_t memory_size_for(uint64_t bytes)
{
	uint64_t size = UINT64_C(1) << 20;

	while (size < bytes + bytes / 16)
		size *= 2;
	return size;
}

#define MEBIBYTE    (1u << 20)
#define MEMORY_MOST (UINT64_C(2) << 30) /* memory_size's largest */

void device_memory_text(const struct npuc_program *p, uint64_t memory, char *text,
			size_t size)
{
	uint64_t want = memory_size_for(p->memory_bytes);
	bool large = p->memory_bytes >= MEBIBYTE;
	double unit = large ? MEBIBYTE : 1024;
	int n = snprintf(text, size,
			 "%.1f %s of device memory: %.1f of program, %.1f of "
			 "activations, %.1f of inputs, outputs and variables",
			 (double)p->memory_bytes / unit, large ? "MiB" : "KiB",
			 (double)p->image_size / unit, (double)p->arena_bytes / unit,
			 (double)(p->memory_bytes - p->image_size - p->arena_bytes) /
				 unit);

	if (n < 0 || (size_t)n >= size || !memory || want <= memory ||
	    p->memory_bytes + p->memory_bytes / 16 <= memory)
		return;
	text += n;
	size -= (size_t)n;
	if (want > MEMORY_MOST)
		snprintf(text, size, "; an NPU has %.0f MiB at most",
			 (double)MEMORY_MOST / MEBIBYTE);
	else
		snprintf(text, size,
			 "; the NPU has %.0f MiB unless the target says more, as in "
			 "--target 'npu:0?memory_size=%" PRIu64 "M'",
			 (double)memory / MEBIBYTE, want / MEBIBYTE);
}

/* A size as options have it. */
static uint64_t size_of(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	return *end == 'K' ? n << 10 : *end == 'M' ? n << 20 : *end == 'G' ? n << 30 : n;
}

uint64_t device_memory_configured(void)
{
	struct hal_option_info o = HAL_INIT(hal_option_info);
	struct hal_scan *scan;
	uint64_t size = 0;

	if (hal_scan_create(NULL, HAL_SCAN_OPTIONS, &scan) < 0)
		return 0;
	for (uint32_t i = 0; !size && hal_scan_get_option(scan, i, &o) == 0; i++)
		if (strcmp(o.section, "backend.npu") == 0 &&
		    strcmp(o.key, "memory_size") == 0)
			size = size_of(o.value);
	(void)hal_scan_destroy(scan);
	return size;
}

int device_close(struct device *d)
{
	int rc;

	hal_partition_destroy(d->part);
	rc = npuc_device_unshare(d->dev);
	*d = (struct device){0};
	return rc;
}

const char *device_path(const char *path, const char *standard)
{
	return strcmp(path, "-") == 0 ? standard : path;
}
