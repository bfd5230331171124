/* SPDX-License-Identifier: Apache-2.0 */
/* HIP's library: opened at run time, once a process; what its results mean. */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hip_symbols hip;

static struct {
	pthread_mutex_t lock;
	_Atomic(const char *) file; /* NULL: none yet; written last */
	char name[256];
} used = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Starting HIP takes its time, which no fork waits for: the child starts it if the parent
 * has not. */
static void start_over(void)
{
	(void)pthread_mutex_init(&used.lock, NULL);
}

__attribute__((constructor)) static void at_forks(void)
{
	(void)pthread_atfork(NULL, NULL, start_over);
}

/* The name without a number is a development package's. */
static const char *const known[] = {"libamdhip64.so.6", "libamdhip64.so.5"};

/* NULL, or the first that is not there. */
static const char *look_up(void *library, struct hip_symbols *s)
{
	const struct symbol {
		const char *name;
		size_t at;
		bool needed;
	} all[] = {
#define SYMBOL(name, params, args) {#name, offsetof(struct hip_symbols, name), true},
		HIP_CALLS(SYMBOL)
#undef SYMBOL
#define SYMBOL(name, params, args) {#name, offsetof(struct hip_symbols, name), false},
			HIP_MORE_CALLS(SYMBOL) HIP_SHARE_CALLS(SYMBOL)
				HIP_GREEN_CALLS(SYMBOL)
#undef SYMBOL
					{"halStandInHipDrive",
					 offsetof(struct hip_symbols, drive), false},
		{"halStandInHipAdvance", offsetof(struct hip_symbols, advance), false},
		{"halStandInHipBusy", offsetof(struct hip_symbols, busy), false},
	};
	const char *missing = NULL;
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		void *found = dlsym(library, all[i].name);

		memcpy((char *)s + all[i].at, &found, sizeof(found));
		if (!found && all[i].needed && !missing)
			missing = all[i].name;
	}
	return missing;
}

#define HW_QUEUES_DEFAULT 4u
static uint32_t hw_queues = HW_QUEUES_DEFAULT; /* written before .file */

uint32_t rocm_hw_queues(void)
{
	return hw_queues;
}

/* Read what HIP reads as it starts.  The library does not set the variable itself:
 * setenv() is not safe while other threads of the application read the environment. */
static uint32_t read_hw_queues(void)
{
	const char *text = getenv("GPU_MAX_HW_QUEUES");
	const unsigned long n = text ? strtoul(text, NULL, 10) : 0;

	return n && n < UINT16_MAX ? (uint32_t)n : HW_QUEUES_DEFAULT;
}

static int start(const struct hip_symbols *s, const char *file)
{
	uint32_t r = s->hipInit(0);

	if (!r)
		return 0;
	return rocm_host->fail(
		ENODEV, "rocm: hipInit: %s (%u): %s%s", rocm_result_name(r), r, file,
		r == HIPR_NoDevice || r == HIPR_InvalidDevice ? " finds no GPU"
							      : " cannot start");
}

/* It starts threads and keeps the device's file open: it is never unloaded. */
static int take(void *library, const char *file)
{
	struct hip_symbols s;
	const char *missing = look_up(library, &s);
	int err;

	if (missing)
		return rocm_host->fail(ENODEV, "rocm: %s has no %s", file, missing);
	hw_queues = read_hw_queues();
	err = start(&s, file);
	if (err)
		return err;
	hip = s;
	snprintf(used.name, sizeof(used.name), "%s", file);
	used.file = used.name;
	return 0;
}

static int load(const char *file)
{
	const bool any = strcmp(file, "any") == 0;
	void *library = NULL;
	size_t i;

	if (used.file && (any || strcmp(used.file, file) == 0))
		return 0;
	if (used.file)
		return rocm_host->fail(
			EBUSY,
			"rocm: library=%s cannot be loaded: this process already uses %s",
			file, used.file);
	if (strlen(file) >= sizeof(used.name))
		return rocm_host->fail(EINVAL,
				       "rocm: library: the file name is too long");
	if (!any) {
		library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
		return library ? take(library, file)
			       : rocm_host->fail(ENODEV, "rocm: no HIP: %s", dlerror());
	}
	for (i = 0; !library && i < sizeof(known) / sizeof(known[0]); i++)
		library = dlopen(file = known[i], RTLD_NOW | RTLD_LOCAL);
	return library ? take(library, file)
		       : rocm_host->fail(ENODEV, "rocm: no HIP: %s", dlerror());
}

int rocm_load(const char *library)
{
	int err;

	pthread_mutex_lock(&used.lock);
	err = load(library);
	pthread_mutex_unlock(&used.lock);
	return err;
}

const char *rocm_result_name(uint32_t result)
{
	static const struct {
		uint32_t value;
		const char *name;
	} all[] = {
#define NAME(name, value) {value, "hipError" #name},
		HIPR_RESULTS(NAME)
#undef NAME
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].value == result)
			return all[i].name;
	return result ? "unknown result" : "hipSuccess";
}

/* The device's context is gone for good.  What a release says in which a fault does not
 * end the process. */
bool rocm_sticky(uint32_t result)
{
	return result == HIPR_ECCNotCorrectable || result == HIPR_IllegalAddress ||
	       result == HIPR_LaunchTimeOut || result == HIPR_ContextIsDestroyed ||
	       result == HIPR_Assert || result == HIPR_LaunchFailure ||
	       result == HIPR_Unknown;
}

int rocm_errno(uint32_t result)
{
	static const struct {
		uint32_t result;
		int err;
	} all[] = {
		{HIPR_NotReady, EAGAIN},
		{HIPR_HostMemoryAlreadyRegistered, EBUSY},
		{HIPR_OutOfMemory, ENOSPC},
		{HIPR_LaunchOutOfResources, ENOSPC},
		{HIPR_RuntimeMemory, ENOSPC},
		{HIPR_NoBinaryForGpu, ENOTSUP},
		{HIPR_NotSupported, ENOTSUP},
		{HIPR_NotInitialized, ENODEV},
		{HIPR_Deinitialized, ENODEV},
		{HIPR_NoDevice, ENODEV},
		{HIPR_InsufficientDriver, ENODEV},
		{HIPR_OperatingSystem, EIO},
		{HIPR_InvalidContext, EIO}, /* an application passes none */
		{HIPR_RuntimeOther, EIO},
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].result == result)
			return all[i].err;
	return rocm_sticky(result) ? EIO : EINVAL;
}

int rocm_failed(struct rocm_device *dev, uint32_t result, const char *call)
{
	unsigned int none = 0;

	if (dev && rocm_sticky(result))
		(void)atomic_compare_exchange_strong(&dev->base.lost, &none, result);
	return rocm_host->fail(rocm_errno(result), "rocm: %s: %s (%u)", call,
			       rocm_result_name(result), result);
}
