/* SPDX-License-Identifier: Apache-2.0 */
/* opened.h - what a device was opened with. */
#ifndef HAL_API_OPENED_H
#define HAL_API_OPENED_H

#include "config/config.h"
#include "config/registry.h"
#include "layers/layers.h"
#include "loop/device.h"

/* Filled by the thread in hal_open (or the replay's) before anybody else has the device,
 * freed in hal_close after its engine; between these constant, for any thread.  Layers
 * have a lock of their own. */
struct monitor;

struct opened {
	const struct backend *backend;
	struct config cfg;
	struct hal_bk_config *core_cfg, *bk_cfg, *policy_cfg;
	struct layers *layers;   /* NULL: the backend is called itself */
	struct monitor *monitor; /* NULL: nobody may look */
};

/* That of [policy] becomes dev's. */
int policy_start(struct hal_device *dev);

/* Who says on which channel memory lies; what hal.color_map names becomes dev's, before
 * anything else does.  -EINVAL, -EPERM: it is none, another device's, not verified;
 * -ENOTSUP: the device tells by itself. */
int colors_load(struct hal_device *dev);
/* What hal.profile names becomes dev's.  -EINVAL: it is none, or another device's. */
int profile_start(struct hal_device *dev);

/* A device that is not open yet (NULL: no memory), and away with one that has no engine
 * (any more): 0, or what layers found wrong. */
struct hal_device *device_make(void);
int device_free(struct hal_device *dev);
/* Once .info and .table are there. */
int device_prepare(struct hal_device *dev);

#endif
