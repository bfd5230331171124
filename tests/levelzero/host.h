/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - a core of a few lines, so that a test drives the backend's table itself. */
#ifndef TESTS_LEVELZERO_HOST_H
#define TESTS_LEVELZERO_HOST_H

#include <stdbool.h>

#include <hal/backend.h>

#include "tests/fakes/levelzero/image.h"
#include "tests/fakes/levelzero/stand_in.h"

/* The options that the backend asks for; what is not named has its default. */
struct hal_bk_config {
	const char *loader;
	int64_t clock, units, lists, inflight, mark_every, memory, timeout_ms, scheduler;
};

extern const struct hal_host host;
extern char host_text[512]; /* of the last host.fail */

const struct hal_backend *hal_backend_levelzero(const struct hal_host *h);

/* The driver of ZE_ENABLE_ALT_DRIVERS (its first file). */
const struct lz_stand_in *stand_in(void);

/* The loader passes on what a compiler says: not while it wraps handles
 * (docs/levelzero.md). */
bool build_logs(void);

#endif
