/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delegate.c - libaccelhal_tflite.so: the two functions that TensorFlow Lite looks up in
 * the library of an external delegate.
 *
 *   tflite_plugin_create_delegate --> claims.c (Prepare) --> kernel.c
 *
 * Nothing here needs a symbol of the runtime, so one binary serves all its versions.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hal/ext/memory.h>

#include "plug.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT struct tfl_delegate *
tflite_plugin_create_delegate(const char *const *keys, const char *const *values,
			      size_t count, void (*report_error)(const char *text));
EXPORT void tflite_plugin_destroy_delegate(struct tfl_delegate *delegate);

bool plug_forked(const struct plug *p, char why[NPUC_WHY])
{
	if (p->pid == getpid())
		return false;
	snprintf(why, NPUC_WHY,
		 "process %ld is a fork of process %ld, which loaded the delegate; load "
		 "it after the fork",
		 (long)getpid(), (long)p->pid);
	return true;
}

void plug_put(struct plug *p)
{
	char why[NPUC_WHY];

	if (atomic_fetch_sub(&p->users, 1) != 1)
		return;
	/* Objects of the parent process are not the child's to destroy. */
	if (!plug_forked(p, why)) {
		if (p->part)
			(void)hal_partition_destroy(p->part);
		if (p->dev)
			(void)npuc_device_unshare(p->dev);
	}
	options_free(&p->o);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static int read_options(struct plug *p, const char *const *keys,
			const char *const *values, size_t count, char why[NPUC_WHY])
{
	int rc = 0;

	/* The interpreter in Python passes an int: its upper half is undefined. */
	count = (uint32_t)count;
	for (size_t i = 0; !rc && i < count; i++)
		rc = options_set(&p->o, keys[i], values[i] ? values[i] : "", why);
	return rc ? rc : options_check(&p->o, why);
}

static int open_device(struct plug *p, char why[NPUC_WHY])
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	const char *options[2] = {NULL, NULL};
	char trace[4096];
	int rc;

	if (p->o.trace) {
		snprintf(trace, sizeof(trace), "hal.trace=%s", p->o.trace);
		options[0] = trace;
	}
	rc = npuc_device_share(p->o.target, options, &p->dev, why);
	if (rc)
		return rc;
	rc = hal_device_get_info(p->dev, &info);
	if (rc < 0) {
		snprintf(why, NPUC_WHY, "%s", hal_last_error());
		return rc;
	}
	p->clock_hz = info.clock_hz;
	p->memory_bytes = info.memory_bytes;
	snprintf(p->device, sizeof(p->device), "%s", p->o.target ? p->o.target : "npu");
	p->info.units = info.unit_rows * info.unit_cols;
	return 0;
}

/* Make the partition that the options describe; p->info.units is the device's count. */
static int open_partition(struct plug *p, char why[NPUC_WHY])
{
	struct hal_partition_limits limits = HAL_INIT(hal_partition_limits);
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	const struct options *o = &p->o;
	int rc;

	desc.row = o->row;
	desc.col = o->col;
	desc.rows = o->rows;
	desc.cols = o->cols;
	desc.memory_bytes = o->memory_bytes;
	if (!o->rows)
		desc.units_floor = o->units ? o->units : p->info.units;
	limits.bandwidth = o->bandwidth;
	if (o->bandwidth)
		desc.limits = &limits;
	snprintf(desc.name, sizeof(desc.name), "tflite");
	rc = o->partition ? hal_partition_create_named(p->dev, o->partition, &p->part)
			  : hal_partition_create(p->dev, &desc, &p->part);
	if (rc >= 0) {
		p->info = (struct hal_partition_info)HAL_INIT(hal_partition_info);
		rc = hal_partition_get_info(p->part, &p->info);
		if (p->info.memory_bytes)
			p->memory_bytes = p->info.memory_bytes;
	}
	if (rc < 0)
		snprintf(why, NPUC_WHY, "%s%s", hal_last_error(),
			 rc == -ENOSPC && !o->rows && !o->units && !o->partition &&
					 !o->memory_bytes
				 ? " (without options the delegate asks for all units of "
				   "the device; option units=N asks for N)"
				 : "");
	return rc < 0 ? rc : 0;
}

static struct plug *plug_make(void)
{
	struct plug *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pid = getpid();
	atomic_init(&p->users, 1);
	pthread_mutex_init(&p->lock, NULL);
	p->delegate.data = p;
	p->delegate.Prepare = claims_prepare;
	p->delegate.flags = TFL_ALLOW_DYNAMIC_TENSORS | TFL_REQUIRE_PROPAGATED_SHAPES;
	return p;
}

static void complain(void (*report_error)(const char *), const char *why)
{
	char text[NPUC_WHY + 16];

	if (!report_error) {
		report_line("ERROR", "%s", why);
		return;
	}
	snprintf(text, sizeof(text), "accelhal: %s", why);
	report_error(text);
}

struct tfl_delegate *tflite_plugin_create_delegate(const char *const *keys,
						   const char *const *values,
						   size_t count,
						   void (*report_error)(const char *))
{
	char why[NPUC_WHY] = "no memory";
	struct plug *p = plug_make();
	int rc = p ? read_options(p, keys, values, count, why) : -ENOMEM;

	if (!rc)
		rc = open_device(p, why);
	if (!rc)
		rc = open_partition(p, why);
	if (!rc)
		return &p->delegate;
	complain(report_error, why);
	if (p)
		plug_put(p);
	return NULL;
}

void tflite_plugin_destroy_delegate(struct tfl_delegate *delegate)
{
	if (delegate)
		plug_put((struct plug *)delegate);
}
