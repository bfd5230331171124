/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the stand-in, by those of tests/fakes/gpu; then calls.c. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static const char *const call_names[HIP_CALL_COUNT] = {
#define NAME(name, params, args) #name,
	HIP_CALLS(NAME)
#undef NAME
};

/* Memory that is not there: the runtime prints, and ends the process. */
void device_fault(struct device *dev)
{
	const char *how = setting("FAULT");

	if (!how || strcmp(how, "sticky") != 0) {
		fprintf(stderr, "stand-in: Memory access fault by GPU node-%u\n",
			dev->index + 1);
		abort();
	}
	device_lose(dev, HIPR_IllegalAddress);
}

/* HIP starts itself with whatever call comes first. */
static uint32_t state(uint32_t call)
{
	if (call == HIP_CALL_hipInit)
		return HIPR_Success;
	if (!world.ready || forked()) {
		misuse("%s: before hipInit, or after a fork", call_names[call]);
		return HIPR_NotInitialized;
	}
	if (call <= HIP_CALL_hipSetDevice)
		return HIPR_Success;
	return current_device()->lost;
}

static bool sticky(uint32_t r)
{
	return r == HIPR_ECCNotCorrectable || r == HIPR_IllegalAddress ||
	       r == HIPR_LaunchTimeOut || r == HIPR_Assert || r == HIPR_LaunchFailure ||
	       r == HIPR_Unknown;
}

const struct face face = {
	.environment = "HAL_STAND_IN_HIP_",
	.calls = call_names,
	.count = HIP_CALL_COUNT,
	.state = state,
	.sticky = sticky,
	.frees_wait = true,
};

#define ENTRY(name, params, args)                                                        \
	EXPORT uint32_t name params;                                                     \
	EXPORT uint32_t name params                                                      \
	{                                                                                \
		uint32_t r;                                                              \
                                                                                         \
		if (!enter(HIP_CALL_##name, HIP_CALL_##name == HIP_CALL_hipInit, &r))    \
			r = do_##name args;                                              \
		return leave(r);                                                         \
	}
HIP_CALLS(ENTRY)

EXPORT void halStandInHipDrive(uint32_t on);
EXPORT void halStandInHipDrive(uint32_t on)
{
	drive(on);
}

EXPORT void halStandInHipAdvance(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);
EXPORT void halStandInHipAdvance(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle)
{
	advance(until_ns, now_ns, idle);
}
