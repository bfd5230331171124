/* SPDX-License-Identifier: Apache-2.0 */
/* A core of a few lines. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char host_text[512];

__attribute__((format(printf, 2, 3))) static int host_fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(host_text, sizeof(host_text), fmt, ap);
	va_end(ap);
	return -err;
}

static int64_t option_int(const struct hal_bk_config *cfg, const char *key)
{
	const struct {
		const char *key;
		int64_t value;
	} all[] = {
		{"clock", cfg->clock},
		{"units", cfg->units},
		{"lists", cfg->lists},
		{"inflight", cfg->inflight ? cfg->inflight : 2},
		{"mark_every", cfg->mark_every},
		{"memory", cfg->memory},
		{"timeout_ms", cfg->timeout_ms},
		{"scheduler", cfg->scheduler},
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i].key, key) == 0)
			return all[i].value;
	return 0;
}

static const char *option_str(const struct hal_bk_config *cfg, const char *key)
{
	if (strcmp(key, "loader") == 0 && cfg->loader)
		return cfg->loader;
	return "libze_loader.so.1";
}

const struct hal_host host = {
	.size = sizeof(host),
	.abi = HAL_BACKEND_ABI,
	.fail = host_fail,
	.option_int = option_int,
	.option_str = option_str,
};

const struct lz_stand_in *stand_in(void)
{
	static const struct lz_stand_in *found;
	const char *list = getenv("ZE_ENABLE_ALT_DRIVERS");
	char path[512];
	void *handle;

	if (found || !list)
		return found;
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(list, ","), list);
	handle = dlopen(path, RTLD_NOW);
	if (handle)
		found = dlsym(handle, LZ_STAND_IN_SYMBOL);
	return found;
}

bool build_logs(void)
{
	const char *intercept = getenv("ZE_ENABLE_LOADER_INTERCEPT");
	const char *list = getenv("ZE_ENABLE_ALT_DRIVERS");

	return !(intercept && strcmp(intercept, "1") == 0) &&
	       !(list && strchr(list, ','));
}
