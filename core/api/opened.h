/* SPDX-License-Identifier: Apache-2.0 */
/* opened.h - what a device was opened with. */
#ifndef HAL_API_OPENED_H
#define HAL_API_OPENED_H

#include "config/config.h"
#include "config/registry.h"
#include "engine/device.h"
#include "layers/layers.h"

struct opened {
	const struct backend *backend;
	struct config cfg;
	struct hal_bk_config *core_cfg, *bk_cfg, *policy_cfg;
	struct layers *layers; /* NULL: the backend is called itself */
};

/* The policy of [policy] in cfg, its own options, and the net's time.  -EINVAL: there is
 * none. */
int policy_resolve(const struct config *cfg, const struct hal_policy **p,
		   struct hal_bk_config **out, uint64_t *starve_ns);

#endif
