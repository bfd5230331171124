/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libze_witness.so: in front of the real loader, for the backend's option loader=.  It
 * counts the errors that come out there; those that the stand-in driver did not give are
 * the loader's own or the validation layer's.  At exit it appends to the file named by
 * HAL_ZE_WITNESS a line "CALLS ERRORS FROM_THE_DRIVER LAST_CALL".
 */
#define _GNU_SOURCE
#include "backends/levelzero/ze_calls.h"
#include "stand_in.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *loader;
static atomic_ulong calls, errors;
static _Atomic(const char *) last = "-";

static void open_loader(void)
{
	loader = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_LOCAL);
}

static void *real(const char *name)
{
	pthread_once(&once, open_loader);
	return loader ? dlsym(loader, name) : NULL;
}

/* The layer of 1.8 refuses to reserve addresses where the driver likes. */
static bool is_layers_fault(const char *name, uint32_t result)
{
	return result == LZ_ERROR_INVALID_NULL_POINTER &&
	       strcmp(name, "zeVirtualMemReserve") == 0;
}

static uint32_t seen(const char *name, uint32_t result)
{
	atomic_fetch_add(&calls, 1);
	if (result != LZ_SUCCESS && result != LZ_NOT_READY &&
	    !is_layers_fault(name, result)) {
		atomic_fetch_add(&errors, 1);
		atomic_store(&last, name);
	}
	return result;
}

#define FORWARD(table, slot, need, name, params, args)                                   \
	EXPORT uint32_t name params;                                                     \
	uint32_t name params                                                             \
	{                                                                                \
		uint32_t(*fn_) params;                                                   \
		void *real_ = real(#name);                                               \
                                                                                         \
		if (!real_)                                                              \
			return LZ_ERROR_UNINITIALIZED;                                   \
		memcpy(&fn_, &real_, sizeof(real_));                                     \
		return seen(#name, fn_ args);                                            \
	}
LZ_CALLS(FORWARD)

/* None of the driver's calls: no layer sees it. */
EXPORT uint32_t zelLoaderTranslateHandle(uint32_t type, void *loaders, void **own);
uint32_t zelLoaderTranslateHandle(uint32_t type, void *loaders, void **own)
{
	uint32_t (*fn)(uint32_t, void *, void **);
	void *p = real("zelLoaderTranslateHandle");

	if (!p)
		return LZ_ERROR_UNINITIALIZED;
	memcpy(&fn, &p, sizeof(p));
	return fn(type, loaders, own);
}

static unsigned long driver_errors(void)
{
	const char *list = getenv("ZE_ENABLE_ALT_DRIVERS");
	unsigned long sum = 0;

	while (list && *list) {
		const struct lz_stand_in *s;
		char path[512];
		void *handle;
		size_t n = strcspn(list, ",");

		snprintf(path, sizeof(path), "%.*s", (int)n, list);
		handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
		s = handle ? dlsym(handle, LZ_STAND_IN_SYMBOL) : NULL;
		sum += s ? (unsigned long)s->errors() : 0;
		list += n + (list[n] == ',');
	}
	return sum;
}

__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("HAL_ZE_WITNESS");
	FILE *f = path && atomic_load(&calls) ? fopen(path, "a") : NULL;

	if (!f)
		return;
	fprintf(f, "%lu %lu %lu %s\n", atomic_load(&calls), atomic_load(&errors),
		driver_errors(), atomic_load(&last));
	fclose(f);
}
