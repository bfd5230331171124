/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's loader: opened at run time, once a process; what its results mean. */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lz_symbols lz;
bool lz_build_logs;

#define HANDLE_DRIVER 0u /* ZEL_HANDLE_DRIVER */
/* zelLoaderTranslateHandle, since loader 1.8; NULL: an older one. */
static uint32_t (*translate)(uint32_t type, void *loaders, void **own);

/* Probes of different devices come at the same time. */
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static char name_of_loaded[256];
static _Atomic(const char *) loaded; /* NULL: none yet; set when all else is in place */

/* No fork waits until a driver has been started: the child may start it itself. */
static void forked(void)
{
	(void)pthread_mutex_init(&load_lock, NULL);
}

__attribute__((constructor)) static void handle_forks(void)
{
	(void)pthread_atfork(NULL, NULL, forked);
}

static const struct {
	const char *name;
	size_t offset;
	bool need;
} symbols[] = {
#define LZ_ROW(table, slot, need, name, params, args)                                    \
	{#name, offsetof(struct lz_symbols, name), need},
	LZ_CALLS(LZ_ROW)
#undef LZ_ROW
};

static int resolve(void *handle, const char *loader, struct lz_symbols *out)
{
	size_t i;

	for (i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *p = dlsym(handle, symbols[i].name);

		if (!p && symbols[i].need) {
			lz_host->fail(ENODEV, "levelzero: %s is too old: it has no %s",
				      loader, symbols[i].name);
			return -ENODEV;
		}
		memcpy((char *)out + symbols[i].offset, &p, sizeof(p));
	}
	return 0;
}

static int init(const struct lz_symbols *s, const char *loader)
{
	uint32_t r = s->zeInit(0);

	if (r == LZ_SUCCESS)
		return 0;
	if (r == LZ_ERROR_UNINITIALIZED)
		return lz_host->fail(
			ENODEV,
			"levelzero: zeInit: %s (0x%x): %s finds no driver that works",
			lz_result_name(r), r, loader);
	return lz_failed(r, "zeInit");
}

/*
 * With several drivers, or when told to, the loader wraps every handle; but as of 1.8 not
 * the log of a build that fails, and it crashes when that comes back.  So no log is asked
 * for then.  A driver file that is loaded counts even when it shows no driver.
 */
static bool wraps_handles(const struct lz_symbols *s)
{
	static const char *const files[] = {
		"libze_intel_gpu.so.1", "libze_intel_vpu.so.1", "libze_intel_npu.so.1"};
	const char *intercept = secure_getenv("ZE_ENABLE_LOADER_INTERCEPT");
	const char *alternatives = secure_getenv("ZE_ENABLE_ALT_DRIVERS");
	const char *null_driver = secure_getenv("ZE_ENABLE_NULL_DRIVER");
	uint32_t drivers = 0, loaded_files = 0, i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		void *handle = dlopen(files[i], RTLD_NOW | RTLD_NOLOAD);

		loaded_files += handle != NULL;
		if (handle)
			dlclose(handle);
	}
	return (intercept && strcmp(intercept, "1") == 0) ||
	       (null_driver && strcmp(null_driver, "1") == 0) ||
	       (alternatives && strchr(alternatives, ',')) || loaded_files > 1 ||
	       s->zeDriverGet(&drivers, NULL) || drivers > 1;
}

/* A driver does not survive being unloaded, so what has been opened stays. */
static int load_once(const char *loader)
{
	struct lz_symbols s;
	void *handle;
	int err;

	if (loaded && strcmp(loaded, loader) == 0)
		return 0;
	if (loaded)
		return lz_host->fail(EBUSY,
				     "levelzero: loader=%s cannot be loaded: this "
				     "process already uses %s",
				     loader, loaded);
	if (strlen(loader) >= sizeof(name_of_loaded))
		return lz_host->fail(EINVAL,
				     "levelzero: loader: the file name is too long");
	handle = dlopen(loader, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return lz_host->fail(ENODEV, "levelzero: no loader: %s", dlerror());
	*(void **)&translate = dlsym(handle, "zelLoaderTranslateHandle");
	err = resolve(handle, loader, &s);
	if (err) {
		dlclose(handle);
		return err;
	}
	/* From here on it stays, also when it finds nothing: it has opened drivers. */
	err = init(&s, loader);
	if (err)
		return err;
	lz = s;
	lz_build_logs = !wraps_handles(&s);
	snprintf(name_of_loaded, sizeof(name_of_loaded), "%s", loader);
	loaded = name_of_loaded;
	return 0;
}

uint32_t lz_find_function(void *driver, const char *name, void **function, void **own)
{
	uint32_t r = LZ_ERROR_UNSUPPORTED_FEATURE;

	*function = NULL;
	if (lz.zeDriverGetExtensionFunctionAddress && translate)
		r = translate(HANDLE_DRIVER, driver, own);
	if (!r)
		r = lz.zeDriverGetExtensionFunctionAddress(driver, name, function);
	if (r)
		*function = NULL;
	return r;
}

int lz_load(const char *loader)
{
	int err;

	pthread_mutex_lock(&load_lock);
	err = load_once(loader);
	pthread_mutex_unlock(&load_lock);
	return err;
}

static const struct {
	uint32_t result;
	const char *name;
} names[] = {
#define LZ_NAME(name, value) {value, "ZE_RESULT_" #name},
	LZ_RESULTS(LZ_NAME)
#undef LZ_NAME
};

const char *lz_result_name(uint32_t result)
{
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].result == result)
			return names[i].name;
	return "unknown result";
}

/* Those that are not the caller's fault. */
static const struct {
	uint32_t result;
	int err;
} errors[] = {
	{LZ_SUCCESS, 0},
	{LZ_NOT_READY, EAGAIN},
	{LZ_ERROR_OUT_OF_HOST_MEMORY, ENOMEM},
	{LZ_ERROR_OUT_OF_DEVICE_MEMORY, ENOSPC},
	{LZ_ERROR_UNSUPPORTED_SIZE, ENOSPC},
	{LZ_ERROR_INSUFFICIENT_PERMISSIONS, EPERM},
	{LZ_ERROR_NOT_AVAILABLE, EBUSY},
	{LZ_ERROR_HANDLE_OBJECT_IN_USE, EBUSY},
	{LZ_ERROR_DEPENDENCY_UNAVAILABLE, ENODEV},
	{LZ_ERROR_UNINITIALIZED, ENODEV},
	{LZ_ERROR_UNSUPPORTED_VERSION, ENOTSUP},
	{LZ_ERROR_UNSUPPORTED_FEATURE, ENOTSUP},
	{LZ_ERROR_UNSUPPORTED_ENUMERATION, ENOTSUP},
	{LZ_ERROR_UNSUPPORTED_ALIGNMENT, ENOTSUP},
	{LZ_ERROR_UNSUPPORTED_IMAGE_FORMAT, ENOTSUP},
	{LZ_ERROR_DEVICE_LOST, EIO},
	{LZ_ERROR_DEVICE_REQUIRES_RESET, EIO},
	{LZ_ERROR_DEVICE_IN_LOW_POWER_STATE, EIO},
	{LZ_ERROR_UNKNOWN, EIO},
};

int lz_errno(uint32_t result)
{
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].result == result)
			return errors[i].err;
	/* Build failures, and what the validation layer has names for. */
	return result >> 28 == 7 ? EINVAL : EIO;
}

int lz_failed(uint32_t result, const char *call)
{
	return lz_host->fail(lz_errno(result), "levelzero: %s: %s (0x%x)", call,
			     lz_result_name(result), result);
}
