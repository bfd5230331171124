/* SPDX-License-Identifier: Apache-2.0 */
/* A core of a few lines. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "memory/granules.h"

extern const struct hal_host core_host; /* the core's own, which has more */

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
		{"memory", cfg->memory},
		{"partitions", cfg->partitions},
		{"inflight", cfg->inflight ? cfg->inflight : 4},
		{"mark_every", cfg->mark_every},
		{"hang_ms", cfg->hang_ms},
		{"preempt", cfg->preempt},
		{"slice_us", cfg->slice_us},
		{"graphs", cfg->graphs},
		{"queues", cfg->queues},
		{"range", cfg->range},
		{"bounds", cfg->bounds},
		{"remainder", cfg->remainder},
		{"trial_ms", cfg->trial_ms ? cfg->trial_ms : 20000},
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(key, all[i].key) == 0)
			return all[i].value;
	return -1;
}

static const char *option_str(const struct hal_bk_config *cfg, const char *key)
{
	if (strcmp(key, "helper") == 0)
		return cfg->helper ? cfg->helper : "";
	if (strcmp(key, "topology") == 0)
		return cfg->topology ? cfg->topology : host_face.topology;
	return cfg->library ? cfg->library : host_face.library;
}

static int granules_open(const struct hal_bk_color_map *map, struct hal_bk_granules **out)
{
	return core_host.granules_open(map, out);
}

_Thread_local uint64_t host_acts_for;

static uint64_t host_caller(void)
{
	return host_acts_for ? host_acts_for : core_host.caller();
}

const struct hal_host host = {
	.size = sizeof(host),
	.abi = HAL_BACKEND_ABI,
	.fail = host_fail,
	.option_int = option_int,
	.option_str = option_str,
	.granules_open = granules_open,
	.granules_close = granules_free,
	.granules_take = granules_take,
	.granules_take_run = granules_take_run,
	.granules_give = granules_give,
	.granules_left = granules_left,
	.caller = host_caller,
};

const struct gpu_stand_in *stand_in(void)
{
	static const struct gpu_stand_in *found;
	void *handle = found ? NULL : dlopen(host_face.stand_in, RTLD_NOW);

	if (handle)
		found = dlsym(handle, GPU_STAND_IN_SYMBOL);
	return found;
}
