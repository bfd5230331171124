/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - parse target strings, such as "ref?clock=real", and probe backends. */
#ifndef HAL_API_TARGET_H
#define HAL_API_TARGET_H

#include "config/config.h"
#include "config/registry.h"

#define PROBE_MAX 16 /* devices listed for one backend */

struct target {
	char backend[16];
	uint32_t index;
	const char *query; /* the options after "?"; NULL: none */
	char far[64];      /* "hald:NAME"; "": a device of this process */
	char folder[108];  /* of the sockets of hald */
};

/* Parse text, "backend[:index][?key=value&...]".  t->query points into text.  Return 0 or
 * -EINVAL. */
int target_parse(const char *text, struct target *t);
/* Choose the backend with the highest score that has a device, and its device 0.  Return
 * -ENODEV if no backend has one, -EINVAL if an option is wrong. */
int target_best(const struct config *cfg, struct target *t);
/* Write the names of all backends to text, each after a space. */
void list_backends(char *text, size_t size);
/* Return hal_last_error(), without the prefix "NAME: " of backend b. */
const char *backend_reason(const struct backend *b);
/* Return 0, or fail with the reason why plugin b could not be loaded. */
int backend_check(const struct backend *b);
/* Describe up to max devices of b in out.  Return the number of devices, which may exceed
 * max, or -errno; -ENODEV if there is none. */
int backend_probe(const struct config *cfg, const struct backend *b,
		  struct hal_device_info *out, uint32_t max);

#endif
