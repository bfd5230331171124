/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - a device with one partition. */
#include "device.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <hal/ext/options.h>

/* Say why the device that was opened will not do, and what would. */
static void no_npu(const char *target, const struct hal_device_info *i, char *why)
{
	struct hal_device *npu = NULL;

	if (target)
		snprintf(why, NPUC_WHY,
			 "%s is not an NPU: %s; select one with --target npu:0",
			 i->backend, i->name);
	else if (hal_open("npu:0", NULL, &npu) < 0)
		snprintf(why, NPUC_WHY,
			 "the configuration selects %s (%s), which is not an NPU, and "
			 "npu:0 cannot be opened: %s",
			 i->backend, i->name, hal_last_error());
	else
		snprintf(why, NPUC_WHY,
			 "the configuration selects %s (%s), which is not an NPU; select "
			 "one with --target npu:0",
			 i->backend, i->name);
	(void)hal_close(npu);
}

/* Does a file or the environment say which engine or model of the NPU runs? */
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

/* Where nobody has chosen an engine, take the model in C, if it is installed: it takes
 * the cycles of the RTL in an 80th of the time. */
static int open_device(const char *target, struct hal_device **dev)
{
	static const char *const fast[] = {"backend.npu.engine=fast", NULL};
	bool given = target && (strstr(target, "engine=") || strstr(target, "model="));

	if (!given && !engine_configured() && hal_open(target, fast, dev) >= 0)
		return 0;
	return hal_open(target, NULL, dev);
}

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
	rc = open_device(target, &d->dev);
	if (rc >= 0)
		rc = hal_device_get_info(d->dev, &d->info);
	if (rc >= 0 && d->info.kind != HAL_KIND_NPU) {
		no_npu(target, &d->info, why);
		device_close(d);
		return -ENODEV;
	}
	if (rc >= 0)
		rc = partition_make(d, units);
	if (rc >= 0)
		return 0;
	snprintf(why, NPUC_WHY, "%s", hal_last_error());
	device_close(d);
	return rc;
}

int device_close(struct device *d)
{
	int rc;

	hal_partition_destroy(d->part);
	rc = d->dev ? hal_close(d->dev) : 0;
	*d = (struct device){0};
	return rc;
}

const char *device_path(const char *path, const char *standard)
{
	return strcmp(path, "-") == 0 ? standard : path;
}
