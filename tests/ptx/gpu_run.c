/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOADED_MAX   8u
#define LOG_BYTES    8192u
#define SHARED_SMALL 49152u

/* cuLaunchKernel's extra. */
#define EXTRA_END     ((void *)0)
#define EXTRA_POINTER ((void *)1)
#define EXTRA_SIZE    ((void *)2)

struct gpu gpu;

int gpu_failed(char why[PTX_WHY], const char *call, int rc)
{
	const char *name = NULL;

	if (!gpu.cuGetErrorName || gpu.cuGetErrorName(rc, &name) || !name)
		name = "?";
	snprintf(why, PTX_WHY, "%s: %d %s", call, rc, name);
	gpu.lost = true;
	return -EIO;
}

uint64_t gpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the driver ------------------------------------------------------------------------- */

static const char *find_calls(void *library)
{
#define GPU_FIND(name, params, args)                                                     \
	{                                                                                \
		void *found = dlsym(library, #name);                                     \
                                                                                         \
		if (!found)                                                              \
			return #name;                                                    \
		memcpy(&gpu.name, &found, sizeof(found));                                \
	}
	GPU_CALLS(GPU_FIND)
#undef GPU_FIND
	return NULL;
}

static int start(char why[PTX_WHY])
{
	char name[100] = "";
	int device, version, least, greatest, major, minor;
	void *context;

	GPU_TRY(cuDeviceGet, &device, 0);
	GPU_TRY(cuDeviceGetName, name, sizeof(name), device);
	GPU_TRY(cuDriverGetVersion, &version);
	GPU_TRY(cuDeviceGetAttribute, &gpu.multiprocessors, CUA_MULTIPROCESSORS, device);
	GPU_TRY(cuDeviceGetAttribute, &major, CUA_MAJOR, device);
	GPU_TRY(cuDeviceGetAttribute, &minor, CUA_MINOR, device);
	GPU_TRY(cuDevicePrimaryCtxRetain, &context, device);
	GPU_TRY(cuCtxSetCurrent, context);
	GPU_TRY(cuCtxGetStreamPriorityRange, &least, &greatest);
	GPU_TRY(cuStreamCreateWithPriority, &gpu.stream, CU_STREAM_NON_BLOCKING, least);
	GPU_TRY(cuStreamCreateWithPriority, &gpu.beside, CU_STREAM_NON_BLOCKING,
		greatest);
	printf("%s, %d.%d, %d multiprocessors, CUDA %d.%d\n", name, major, minor,
	       gpu.multiprocessors, version / 1000, version % 1000 / 10);
	return 0;
}

int gpu_open(char why[PTX_WHY])
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	const char *lacks;
	int rc, count = 0;

	if (!library) {
		snprintf(why, PTX_WHY, "no driver: %s", dlerror());
		return GPU_NONE;
	}
	lacks = find_calls(library);
	if (lacks) {
		snprintf(why, PTX_WHY, "the driver has no %s", lacks);
		return GPU_NONE;
	}
	rc = gpu.cuInit(0);
	if (!rc)
		rc = gpu.cuDeviceGetCount(&count);
	if (rc || !count) {
		(void)gpu_failed(why, "no GPU: cuInit", rc);
		return GPU_NONE;
	}
	return start(why);
}

/* ---- modules ---------------------------------------------------------------------------- */

/* Its statements' tokens: from .visible to }. */
static void span(const struct ptx *m, const struct ptx_function *f, uint32_t *from,
		 uint32_t *to)
{
	uint32_t first = f->name, last = f->brace, depth = 0;

	while (first && m->tokens[first - 1].kind == PTX_DOT)
		first--;
	for (;; last++) {
		if (ptx_is(m, last, "{"))
			depth++;
		else if (ptx_is(m, last, "}") && --depth == 0)
			break;
	}
	*from = m->tokens[first].at;
	*to = m->tokens[last].at + m->tokens[last].bytes;
}

/*
 * A product and a sum that do not say how they round may be made one fma, and which of
 * two products is, the assembler decides anew for each text: mul.f32 is mul.rn.f32, and
 * so on, so that what is the same gives the same bits.  Frees the text; NULL: no memory.
 */
static char *rounded(char *text)
{
	static const char *const names[] = {"mul", "add", "sub"}, *const types[] = {
									  ".f32", ".f64"};
	char *out = malloc(2 * strlen(text) + 1), *to = out;
	const char *at = text;

	while (out && *at) {
		const size_t n = sizeof(".f32") - 1;
		uint32_t i, k, is = 0;

		for (i = 0; i < 3 && !is && (at == text || strchr("\t ", at[-1])); i++)
			for (k = 0; k < 2; k++)
				is |= strncmp(at, names[i], 3) == 0 &&
				      strncmp(at + 3, types[k], n) == 0;
		if (is) {
			memcpy(to, at, 3);
			memcpy(to + 3, ".rn", 3);
			memcpy(to + 6, at + 3, n);
			to += 6 + n;
			at += 3 + n;
		} else {
			*to++ = *at++;
		}
	}
	if (out)
		*to = 0;
	free(text);
	return out;
}

/* The module's text with that kernel alone. */
static char *text_of(const struct ptx *m, uint32_t kernel)
{
	char *text = malloc(m->bytes + 1u);
	uint32_t i, at = 0, n = 0, from, to;

	if (!text)
		return NULL;
	for (i = 0; i < m->entry_count; i++) {
		const struct ptx_function *f = &m->functions[m->entries[i]];

		if (i == kernel || !f->has_body)
			continue;
		span(m, f, &from, &to);
		if (from < at)
			continue;
		memcpy(text + n, m->text + at, from - at);
		n += from - at;
		at = to;
	}
	memcpy(text + n, m->text + at, m->bytes - at);
	n += m->bytes - at;
	text[n] = 0;
	return rounded(text);
}

static int load(char *text, void **module, char why[PTX_WHY])
{
	static char log[LOG_BYTES];
	uint32_t options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
	void *values[] = {log, (void *)(uintptr_t)(LOG_BYTES - 1)};
	int rc;

	memset(log, 0, sizeof(log));
	rc = gpu.cuModuleLoadDataEx(module, text, 2, options, values);
	if (!rc)
		return 0;
	printf("%s\n", log);
	(void)gpu_failed(why, "cuModuleLoadDataEx", rc);
	gpu.lost = false; /* other PTX may be better */
	return -EINVAL;
}

int gpu_function(const struct ptx *m, uint32_t kernel, uint32_t shared_bytes,
		 void **function, char why[PTX_WHY])
{
	static struct {
		char *text;
		void *module;
	} loaded[LOADED_MAX];
	static uint32_t next;
	char name[200], *text = text_of(m, kernel);
	const char *full;
	uint32_t i, n;

	if (!text)
		return -ENOMEM;
	for (i = 0; i < LOADED_MAX; i++)
		if (loaded[i].text && strcmp(loaded[i].text, text) == 0)
			break;
	if (i < LOADED_MAX) {
		free(text);
	} else {
		void *module;
		const int err = load(text, &module, why);

		if (err) {
			free(text);
			return err;
		}
		i = next++ % LOADED_MAX;
		if (loaded[i].text)
			GPU_TRY(cuModuleUnload, loaded[i].module);
		free(loaded[i].text);
		loaded[i].text = text;
		loaded[i].module = module;
	}
	full = ptx_kernel_name(m, kernel, &n);
	snprintf(name, sizeof(name), "%.*s", (int)n, full);
	GPU_TRY(cuModuleGetFunction, function, loaded[i].module, name);
	if (shared_bytes > SHARED_SMALL)
		GPU_TRY(cuFuncSetAttribute, *function, CUF_MAX_DYNAMIC_SHARED,
			(int)shared_bytes);
	return 0;
}

/* ---- launches --------------------------------------------------------------------------- */

int gpu_launch(void *function, const uint32_t grid[3], const uint32_t block[3],
	       uint32_t shared_bytes, const void *params, uint32_t param_bytes,
	       char why[PTX_WHY])
{
	size_t bytes = param_bytes;
	unsigned char copy[256];
	void *extra[] = {EXTRA_POINTER, copy, EXTRA_SIZE, &bytes, EXTRA_END};

	memcpy(copy, params, bytes);
	GPU_TRY(cuLaunchKernel, function, grid[0], grid[1], grid[2], block[0], block[1],
		block[2], shared_bytes, gpu.stream, NULL, extra);
	return 0;
}

int gpu_raise(uint64_t address, char why[PTX_WHY])
{
	static bool filled; /* a driver that writes no values */

	if (!filled) {
		const int rc = gpu.cuStreamWriteValue32_v2(gpu.beside, address, 1, 0);

		if (rc && rc != CUR_NOT_SUPPORTED)
			return gpu_failed(why, "cuStreamWriteValue32_v2", rc);
		filled = rc != 0;
	}
	if (filled)
		GPU_TRY(cuMemsetD32Async, address, 1, 1, gpu.beside);
	return 0;
}

static int copy(const struct interp_launch *l, bool up, char why[PTX_WHY])
{
	uint32_t i;

	for (i = 0; i < l->region_count; i++) {
		const struct interp_region *r = &l->regions[i];
		const uint64_t here = (uint64_t)(uintptr_t)r->bytes;

		GPU_TRY(cuMemcpyAsync, up ? r->address : here, up ? here : r->address,
			r->size, gpu.stream);
	}
	GPU_TRY(cuStreamSynchronize, gpu.stream);
	return 0;
}

int gpu_run(const struct ptx *m, struct interp_launch *l, char why[PTX_WHY])
{
	static uint32_t turn;
	const bool stops = l->tick > 1, early = stops && ++turn % 2;
	const uint64_t wait = UINT64_C(1000) * (turn * 7 % 16 / 2);
	uint64_t since;
	void *function;
	int err;

	why[0] = 0;
	l->steps = 1000; /* they are not counted */
	err = gpu_function(m, l->kernel, l->shared_bytes, &function, why);
	if (!err)
		err = copy(l, true, why);
	if (!err && early)
		err = gpu_raise(l->stop, why);
	if (!err)
		err = gpu_launch(function, l->grid, l->block, l->shared_bytes, l->params,
				 l->param_bytes, why);
	if (err)
		return err;
	if (stops && !early) {
		for (since = gpu_now(); gpu_now() - since < wait;)
			;
		err = gpu_raise(l->stop, why);
		if (err)
			return err;
	}
	GPU_TRY(cuStreamSynchronize, gpu.stream);
	GPU_TRY(cuStreamSynchronize, gpu.beside);
	return copy(l, false, why);
}
