/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - what npuc and halrun share: a device with one partition. */
#ifndef NPUC_DEVICE_H
#define NPUC_DEVICE_H

#include <hal/hal.h>

#include "npuc.h"

struct device {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_device_info info; /* .unit_rows and .unit_cols: of the partition */
};

/* target as in hal_open; NULL: what the configuration selects.  An NPU has engine=fast
 * where neither says anything of engine or model.  units: of the partition; 0: all that
 * the device has.  0 or -errno with why. */
int device_open(const char *target, uint32_t units, struct device *d, char why[NPUC_WHY]);
/* -EIO: closed, but a trace could not be written; hal_last_error says so. */
int device_close(struct device *d);
/* Write what a program takes of a device's memory, and, where the device has less, how to
 * get more.  memory: the device's bytes; 0: not known. */
void device_memory_text(const struct npuc_program *p, uint64_t memory, char *text,
			size_t size);
/* Bytes of memory that npu:0 has unless a target says otherwise; 0: not known. */
uint64_t device_memory_configured(void);
/* path, or what it stands for when it is "-". */
const char *device_path(const char *path, const char *standard);

#endif
