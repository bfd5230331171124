/* SPDX-License-Identifier: Apache-2.0 */
/* opened.h - the configuration of an open device, and the steps of opening it. */
#ifndef HAL_API_OPENED_H
#define HAL_API_OPENED_H

#include "config/config.h"
#include "config/registry.h"
#include "layers/layers.h"
#include "loop/device.h"

struct monitor;

/* Filled by hal_open (or by a replay) before any other thread can see the device, and
 * freed by hal_close after the engine has stopped.  In between it is constant, so any
 * thread may read it; .layers has its own lock. */
struct opened {
	const struct backend *backend;
	struct config cfg;
	struct hal_bk_config *core_cfg, *bk_cfg, *policy_cfg;
	struct layers *layers;   /* NULL: the core calls the backend directly */
	struct monitor *monitor; /* NULL: no monitor socket (hal.monitor) */
};

/* Install the policy that section [policy] of the configuration names. */
int policy_start(struct hal_device *dev);

/* Load the file that hal.color_map names, if any, which says on which memory channel each
 * address lies.  Set .info.color_source.  Call before device_prepare.  Return -EINVAL or
 * -EPERM if the file is malformed, for another device or unverified; -ENOTSUP if the
 * device reports its channels itself. */
int colors_load(struct hal_device *dev);
/* Load the file of run times that hal.profile names, if any.  Return -EINVAL if the file
 * is malformed or for another device. */
int profile_start(struct hal_device *dev);

/* Allocate an unopened device; NULL on -ENOMEM. */
struct hal_device *device_make(void);
/* Free a device that has no engine, or whose engine has stopped.  Return the layers'
 * verdict: 0, or -errno if one found an error. */
int device_free(struct hal_device *dev);
/* Check .info and allocate what depends on it.  Call once .info and .table are set.
 * Return 0 or -errno. */
int device_prepare(struct hal_device *dev);

#endif
