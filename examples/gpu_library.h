/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_library.h - CUDA's driver or HIP as a program uses them that knows nothing of hal,
 * opened at run time so that neither is needed to build.  Addresses are numbers, as CUDA
 * has them. */
#ifndef EXAMPLES_GPU_LIBRARY_H
#define EXAMPLES_GPU_LIBRARY_H

#include <dlfcn.h>
#include <stdint.h>

#include "gpu_image.h"

struct gpu_library {
	bool hip;
	int device;
	void *handle;
};

typedef int (*gpu_init_fn)(unsigned flags);
typedef int (*gpu_device_fn)(int device);
typedef int (*gpu_retain_fn)(void **context, int device);
typedef int (*gpu_with_fn)(void *handle);
typedef int (*gpu_allocate_fn)(uint64_t *address, size_t bytes);
typedef int (*gpu_pin_fn)(void **p, size_t bytes, unsigned flags);
typedef int (*gpu_release_fn)(uint64_t address);
typedef int (*gpu_stream_fn)(void **stream, unsigned flags, int priority);
typedef int (*gpu_cuda_copy_fn)(uint64_t to, uint64_t from, size_t bytes, void *stream);
typedef int (*gpu_hip_copy_fn)(uint64_t to, uint64_t from, size_t bytes, int kind,
			       void *stream);

static inline void *gpu_find(const struct gpu_library *l, const char *name)
{
	void *found = dlsym(l->handle, name);

	if (!found)
		gpu_failed(name);
	return found;
}

/* The function of that name, which is of that type, to *call. */
#define GPU_FIND(l, call, name)                                                          \
	do {                                                                             \
		void *found_ = gpu_find(l, name);                                        \
                                                                                         \
		memcpy(call, &found_, sizeof(*(call)));                                  \
	} while (0)

/* Calls it; nothing may go wrong. */
#define GPU_CALL(l, type, name, ...)                                                     \
	do {                                                                             \
		type call_;                                                              \
                                                                                         \
		GPU_FIND(l, &call_, name);                                               \
		if (call_(__VA_ARGS__))                                                  \
			gpu_failed(name);                                                \
	} while (0)

/* That of the target, "cuda:1" or "rocm:0?...", for this thread. */
static inline struct gpu_library gpu_start(const char *target)
{
	const char *number = strchr(target, ':');
	struct gpu_library l = {.hip = strncmp(target, "rocm", 4) == 0,
				.device = number ? (int)strtol(number + 1, NULL, 10) : 0};
	void *context;

	l.handle = dlopen(l.hip ? "libamdhip64.so.6" : "libcuda.so.1", RTLD_NOW);
	if (!l.handle && l.hip)
		l.handle = dlopen("libamdhip64.so.5", RTLD_NOW);
	if (!l.handle)
		gpu_failed("neither CUDA nor HIP");
	GPU_CALL(&l, gpu_init_fn, l.hip ? "hipInit" : "cuInit", 0);
	if (l.hip) {
		GPU_CALL(&l, gpu_device_fn, "hipSetDevice", l.device);
	} else {
		GPU_CALL(&l, gpu_retain_fn, "cuDevicePrimaryCtxRetain", &context,
			 l.device);
		GPU_CALL(&l, gpu_with_fn, "cuCtxSetCurrent", context);
	}
	return l;
}

static inline void gpu_end(const struct gpu_library *l)
{
	if (!l->hip)
		GPU_CALL(l, gpu_device_fn, "cuDevicePrimaryCtxRelease_v2", l->device);
}

/* A stream that waits for no other. */
static inline void *gpu_stream(const struct gpu_library *l)
{
	void *stream;

	GPU_CALL(l, gpu_stream_fn,
		 l->hip ? "hipStreamCreateWithPriority" : "cuStreamCreateWithPriority",
		 &stream, 1, 0);
	return stream;
}

static inline uint64_t gpu_allocate(const struct gpu_library *l, size_t bytes)
{
	uint64_t address = 0;

	GPU_CALL(l, gpu_allocate_fn, l->hip ? "hipMalloc" : "cuMemAlloc_v2", &address,
		 bytes);
	return address;
}

/* When they are idle. */
static inline void gpu_give_back(const struct gpu_library *l, void *stream,
				 uint64_t address)
{
	GPU_CALL(l, gpu_with_fn, l->hip ? "hipStreamDestroy" : "cuStreamDestroy_v2",
		 stream);
	GPU_CALL(l, gpu_release_fn, l->hip ? "hipFree" : "cuMemFree_v2", address);
}

#endif
