/* SPDX-License-Identifier: Apache-2.0 */
/* A core of a few lines. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <stdio.h>
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
	if (strcmp(key, "clock") == 0)
		return cfg->clock;
	if (strcmp(key, "memory") == 0)
		return cfg->memory;
	if (strcmp(key, "partitions") == 0)
		return cfg->partitions;
	if (strcmp(key, "preempt") == 0)
		return cfg->preempt;
	if (strcmp(key, "graphs") == 0)
		return cfg->graphs;
	if (strcmp(key, "hang_ms") == 0)
		return cfg->hang_ms;
	if (strcmp(key, "trial_ms") == 0)
		return cfg->trial_ms ? cfg->trial_ms : 20000;
	return cfg->inflight ? cfg->inflight : 4;
}

static const char *option_str(const struct hal_bk_config *cfg, const char *key)
{
	if (strcmp(key, "helper") == 0)
		return cfg->helper ? cfg->helper : "";
	return cfg->library ? cfg->library : "libcuda.so.1";
}

const struct hal_host host = {
	.size = sizeof(host),
	.abi = HAL_BACKEND_ABI,
	.fail = host_fail,
	.option_int = option_int,
	.option_str = option_str,
};

const struct gpu_stand_in *stand_in(void)
{
	static const struct gpu_stand_in *found;
	void *handle = found ? NULL : dlopen("libcuda.so.1", RTLD_NOW);

	if (handle)
		found = dlsym(handle, GPU_STAND_IN_SYMBOL);
	return found;
}
