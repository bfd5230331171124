/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - a core of a few lines, so that a test drives the backend's table itself. */
#ifndef TESTS_LEVELZERO_HOST_H
#define TESTS_LEVELZERO_HOST_H

#include <stdbool.h>

#include <hal/backend.h>

#include "tests/fakes/levelzero/stand_in.h"

/* The options that the backend asks for; what is not named has its default. */
struct hal_bk_config {
	const char *loader;
	int64_t clock, units, lists, inflight, memory, timeout_ms, scheduler;
};

extern const struct hal_host host;
extern char host_text[512]; /* of the last host.fail */

const struct hal_backend *hal_backend_levelzero(const struct hal_host *h);

/* The driver of ZE_ENABLE_ALT_DRIVERS (its first file). */
const struct lz_stand_in *stand_in(void);

/* The loader passes on what a compiler says: not while it wraps handles
 * (docs/levelzero.md). */
bool build_logs(void);

/* An image for the stand-in: kernels of its kernels.c, "name:arguments" where an argument
 * is m (memory) or 1, 2, 4, 8 (a scalar of that many bytes).  Freed by the caller. */
void *make_image(const char *const *kernels, uint32_t count, uint32_t group_size,
		 size_t *size);
/* The same as SPIR-V: entry points and parameter types, no code. */
void *make_spirv(const char *const *kernels, uint32_t count, uint32_t group_size,
		 size_t *size);

#endif
