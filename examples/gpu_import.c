/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_import TARGET KERNELS: a program that uses CUDA's driver or HIP already, with
 * memory and a stream of its own, hands both over: a hal queue works on its memory,
 * between what it puts on its stream before and behind, and nobody waits in between.
 * cuda:N or rocm:N; one unit, partitions=none.
 */
#include <dlfcn.h>
#include <stdint.h>

#include "gpu_image.h"

#include <hal/gpu.h>

enum { N = 1000, BYTES = 4 * N, NON_BLOCKING = 1 };

/* ---- the program as it was --------------------------------------------------------- */

/* What it uses; addresses are numbers, as CUDA has them. */
struct library {
	bool hip;
	void *handle;
};

static void *find(const struct library *l, const char *name)
{
	void *found = dlsym(l->handle, name);

	if (!found)
		gpu_failed(name);
	return found;
}

/* The function of that name, as one of these types; nothing may go wrong. */
#define CALL(l, type, name, ...)                                                         \
	do {                                                                             \
		void *found_ = find(l, name);                                            \
		type call_;                                                              \
                                                                                         \
		memcpy(&call_, &found_, sizeof(call_));                                  \
		if (call_(__VA_ARGS__))                                                  \
			gpu_failed(name);                                                \
	} while (0)
typedef int (*init_fn)(unsigned);
typedef int (*retain_fn)(void **, int);
typedef int (*with_fn)(void *);
typedef int (*device_fn)(int);
typedef int (*allocate_fn)(uint64_t *, size_t);
typedef int (*pin_fn)(void **, size_t, unsigned);
typedef int (*address_fn)(uint64_t);
typedef int (*stream_fn)(void **, unsigned, int);
typedef int (*cuda_copy_fn)(uint64_t, uint64_t, size_t, void *);
typedef int (*hip_copy_fn)(uint64_t, uint64_t, size_t, int, void *);

static struct library start(const char *target, int device)
{
	struct library l = {.hip = strncmp(target, "rocm", 4) == 0};
	void *context;

	l.handle = dlopen(l.hip ? "libamdhip64.so.6" : "libcuda.so.1", RTLD_NOW);
	if (!l.handle && l.hip)
		l.handle = dlopen("libamdhip64.so.5", RTLD_NOW);
	if (!l.handle)
		gpu_failed("neither CUDA nor HIP");
	CALL(&l, init_fn, l.hip ? "hipInit" : "cuInit", 0);
	if (l.hip) {
		CALL(&l, device_fn, "hipSetDevice", device);
	} else {
		CALL(&l, retain_fn, "cuDevicePrimaryCtxRetain", &context, device);
		CALL(&l, with_fn, "cuCtxSetCurrent", context);
	}
	return l;
}

static void copy(const struct library *l, uint64_t to, uint64_t from, void *stream)
{
	if (l->hip)
		CALL(l, hip_copy_fn, "hipMemcpyAsync", to, from, BYTES, 4, stream);
	else
		CALL(l, cuda_copy_fn, "cuMemcpyAsync", to, from, BYTES, stream);
}

/* ---- what comes with hal ----------------------------------------------------------- */

/* The program's memory as a buffer: right behind the offer. */
static struct hal_buffer *take_memory(struct hal_device *dev, struct hal_partition *part,
				      uint64_t address)
{
	const struct hal_gpu_extension *gpu = hal_device_extension(dev, "gpu");

	TRY(gpu->offer_memory(hal_device_native(dev), address, BYTES));
	return gpu_buffer(part, BYTES);
}

/* Its stream as a queue. */
static struct hal_queue *take_stream(struct hal_device *dev, struct hal_partition *part,
				     void *stream)
{
	const struct hal_gpu_extension *gpu = hal_device_extension(dev, "gpu");
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct hal_queue *queue;

	TRY(gpu->offer_stream(hal_device_native(dev), stream));
	TRY(hal_queue_create(part, &plain, &queue));
	return queue;
}

int main(int argc, char **argv)
{
	struct hal_partition_desc all = {.size = sizeof(all), .units_floor = 1};
	struct hal_program *program;
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *vector;
	struct hal_device *dev;
	struct hal_point sum, twice;
	struct library l;
	uint64_t memory = 0;
	void *stream, *pinned;
	float *host;
	int i, device, wrong = 0;

	if (argc != 3 || !strchr(argv[1], ':'))
		return fprintf(stderr, "usage: gpu_import TARGET:N KERNELS\n"), 2;
	device = (int)strtol(strchr(argv[1], ':') + 1, NULL, 10);
	l = start(argv[1], device);
	CALL(&l, allocate_fn, l.hip ? "hipMalloc" : "cuMemAlloc_v2", &memory, BYTES);
	CALL(&l, pin_fn, l.hip ? "hipHostMalloc" : "cuMemHostAlloc", &pinned, BYTES,
	     l.hip ? 0x40000000 : 0);
	CALL(&l, stream_fn,
	     l.hip ? "hipStreamCreateWithPriority" : "cuStreamCreateWithPriority",
	     &stream, NON_BLOCKING, 0);
	host = pinned;
	for (i = 0; i < N; i++)
		host[i] = (float)i;

	TRY(hal_open(argv[1], NULL, &dev));
	TRY(hal_partition_create(dev, &all, &part));
	program = gpu_load(dev, argv[2]);
	vector = take_memory(dev, part, memory);
	queue = take_stream(dev, part, stream);

	struct hal_arg args[] = {{.buffer = vector},
				 {.buffer = vector},
				 {.buffer = vector},
				 {.offset = N}};

	/* The program's copy, and behind it the queue's launches; the copy back once they
	 * are known to be done: when hal_submit puts them on the stream nobody says. */
	copy(&l, memory, (uintptr_t)pinned, stream);
	sum = gpu_launch(queue, program, "vector_add", args, 4, (N + 255) / 256);
	twice = gpu_launch(queue, program, "vector_add", args, 4, (N + 255) / 256);
	TRY(hal_wait(&sum, 1, 0, HAL_FOREVER));
	TRY(hal_wait(&twice, 1, 0, HAL_FOREVER));
	copy(&l, (uintptr_t)pinned, memory, stream);
	CALL(&l, with_fn, l.hip ? "hipStreamSynchronize" : "cuStreamSynchronize", stream);
	for (i = 0; i < N; i++)
		wrong += host[i] != 4 * (float)i;
	printf("4 x %d numbers in the program's memory, on its stream: %d wrong\n", N,
	       wrong);

	/* What was made of them goes; they are the program's. */
	TRY(hal_queue_destroy(queue));
	TRY(hal_buffer_destroy(vector));
	TRY(hal_program_unload(program));
	TRY(hal_partition_destroy(part));
	TRY(hal_close(dev));
	CALL(&l, with_fn, l.hip ? "hipStreamDestroy" : "cuStreamDestroy_v2", stream);
	CALL(&l, with_fn, l.hip ? "hipHostFree" : "cuMemFreeHost", pinned);
	CALL(&l, address_fn, l.hip ? "hipFree" : "cuMemFree_v2", memory);
	if (!l.hip)
		CALL(&l, device_fn, "cuDevicePrimaryCtxRelease_v2", device);
	return wrong != 0;
}
