/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - what a target names: a backend, a device number, options. */
#ifndef HAL_API_TARGET_H
#define HAL_API_TARGET_H

#include "config/config.h"
#include "config/registry.h"

#define PROBE_MAX 16

struct target {
	char backend[16];
	uint32_t index;
	const char *query; /* behind the ?; NULL: none */
};

/* name[:index][?key=value&...] */
int target_parse(const char *text, struct target *t);
/* The backend with the highest score that has a device. */
int target_best(const struct config *cfg, struct target *t);
void list_backends(char *text, size_t size);
/* What hal_last_error() says, without the backend's name in front. */
const char *backend_reason(const struct backend *b);
/* 0, or why it does not load. */
int backend_check(const struct backend *b);
/* How many devices it has; -errno: why none. */
int backend_probe(const struct config *cfg, const struct backend *b,
		  struct hal_device_info *out, uint32_t max);

#endif
