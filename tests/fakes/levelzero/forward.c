/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "forward.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct lz_symbols calls;

static void resolve(void)
{
	void *loader = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_LOCAL), *p;

	if (!loader)
		abort();
#define RESOLVE(table, slot, need, name, params, args)                                   \
	p = dlsym(loader, #name);                                                        \
	memcpy(&calls.name, &p, sizeof(p));
	LZ_CALLS(RESOLVE)
#undef RESOLVE
}

const struct lz_symbols *real(void)
{
	pthread_once(&once, resolve);
	return &calls;
}

#define FORWARD(table, slot, need, name, params, args)                                   \
	__attribute__((visibility("default"), weak)) uint32_t name params;               \
	uint32_t name params                                                             \
	{                                                                                \
		if (!real()->name)                                                       \
			return LZ_ERROR_UNSUPPORTED_FEATURE;                             \
		return real()->name args;                                                \
	}
LZ_CALLS(FORWARD)
