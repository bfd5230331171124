/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - enum values of hal.h as words. */
#include "halctl.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const kinds[] = {
	[HAL_KIND_CPU] = "cpu",
	[HAL_KIND_GPU] = "gpu",
	[HAL_KIND_FPGA] = "fpga",
	[HAL_KIND_NPU] = "npu",
};

static const char *const preempts[] = {
	[HAL_PREEMPT_NONE] = "none",
	[HAL_PREEMPT_BETWEEN] = "between commands",
	[HAL_PREEMPT_PENDING] = "not yet started",
	[HAL_PREEMPT_INSIDE] = "inside a command",
};

static const char *const isolations[] = {
	[HAL_ISOLATION_NONE] = "none",
	[HAL_ISOLATION_ADVISORY] = "advisory",
	[HAL_ISOLATION_ENFORCED] = "enforced",
};

static const char *const color_sources[] = {
	[HAL_COLOR_NONE] = "none",
	[HAL_COLOR_DEVICE] = "device",
	[HAL_COLOR_FILE] = "file",
	[HAL_COLOR_PROBE] = "probe",
};

/* In the order of HAL_CAP_*. */
static const char *const caps[] = {
	"grid",           "virtual-clock",   "map",
	"timestamp",      "resize-idle",     "resize-live",
	"colored-memory", "fault-contained", "simulated",
	"stand-in",       "private",         "limit",
	"recolor",        "bimodal",         "evict",
};

static const char *const suspend_modes[] = {
	[HAL_SUSPEND_DRAIN] = "drain",
	[HAL_SUSPEND_FOLD] = "fold",
	[HAL_SUSPEND_SAVE] = "save",
	[HAL_SUSPEND_KILL] = "kill",
};

const char *kind_name(uint32_t kind)
{
	return kind < COUNT(kinds) ? kinds[kind] : "?";
}

const char *preempt_name(uint32_t level)
{
	return level < COUNT(preempts) ? preempts[level] : "?";
}

const char *color_source_name(uint32_t source)
{
	return source < COUNT(color_sources) ? color_sources[source] : "?";
}

const char *isolation_name(uint32_t level)
{
	return level < COUNT(isolations) ? isolations[level] : "?";
}

const char *cap_name(unsigned int bit)
{
	return bit < COUNT(caps) ? caps[bit] : NULL;
}

const char *suspend_mode_name(unsigned int mode)
{
	return mode < COUNT(suspend_modes) ? suspend_modes[mode] : NULL;
}
