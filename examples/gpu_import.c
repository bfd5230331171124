/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_import TARGET KERNELS: a program that uses CUDA's driver or HIP already, with
 * memory and a stream of its own, hands both over: a hal queue works on its memory,
 * between what it puts on its stream before and behind, and nobody waits in between.
 * cuda:N or rocm:N; one unit, partitions=none.
 */
#include "gpu_library.h"

#include <hal/gpu.h>

enum { N = 1000, BYTES = 4 * N };

/* ---- the program as it was --------------------------------------------------------- */

static void copy(const struct gpu_library *l, uint64_t to, uint64_t from, void *stream)
{
	if (l->hip)
		GPU_CALL(l, gpu_hip_copy_fn, "hipMemcpyAsync", to, from, BYTES, 4,
			 stream);
	else
		GPU_CALL(l, gpu_cuda_copy_fn, "cuMemcpyAsync", to, from, BYTES, stream);
}

/* Memory of the host's that it copies from and to. */
static float *pin(const struct gpu_library *l)
{
	const unsigned flags = l->hip ? 0x40000000 : 0; /* hipHostMallocCoherent */
	void *p;

	GPU_CALL(l, gpu_pin_fn, l->hip ? "hipHostMalloc" : "cuMemHostAlloc", &p, BYTES,
		 flags);
	return p;
}

static void unpin(const struct gpu_library *l, void *p)
{
	GPU_CALL(l, gpu_with_fn, l->hip ? "hipHostFree" : "cuMemFreeHost", p);
}

static void wait_for(const struct gpu_library *l, void *stream)
{
	GPU_CALL(l, gpu_with_fn, l->hip ? "hipStreamSynchronize" : "cuStreamSynchronize",
		 stream);
}

/* ---- what comes with hal ----------------------------------------------------------- */

/* The program's memory as a buffer: right behind the offer. */
static struct hal_buffer *take_memory(struct hal_device *dev, struct hal_partition *part,
				      uint64_t address)
{
	const struct hal_gpu_extension *gpu = hal_device_get_extension(dev, "gpu");

	TRY(gpu->offer_memory(hal_device_get_native(dev), address, BYTES));
	return gpu_buffer(part, BYTES);
}

/* Its stream as a queue. */
static struct hal_queue *take_stream(struct hal_device *dev, struct hal_partition *part,
				     void *stream)
{
	const struct hal_gpu_extension *gpu = hal_device_get_extension(dev, "gpu");
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct hal_queue *queue;

	TRY(gpu->offer_stream(hal_device_get_native(dev), stream));
	TRY(hal_queue_create(part, &plain, &queue));
	return queue;
}

/* Four times what is in the program's memory, behind what it has put on its stream. */
static void four_times(const char *target, const char *kernels, uint64_t memory,
		       void *stream)
{
	struct hal_partition_desc all = {.size = sizeof(all), .units_floor = 1};
	struct hal_program *program;
	struct hal_partition *part;
	struct hal_buffer *vector;
	struct hal_queue *queue;
	struct hal_device *dev;
	struct hal_point done;

	TRY(hal_open(target, NULL, &dev));
	TRY(hal_partition_create(dev, &all, &part));
	program = gpu_load(dev, kernels);
	vector = take_memory(dev, part, memory);
	queue = take_stream(dev, part, stream);

	struct hal_arg args[] = {{.buffer = vector},
				 {.buffer = vector},
				 {.buffer = vector},
				 {.offset = N}};

	for (int i = 0; i < 2; i++)
		done = gpu_launch(queue, program, "vector_add", args, 4,
				  (N + GPU_BLOCK - 1) / GPU_BLOCK);
	/* When hal_submit puts work on the stream nobody says: what comes behind it
	 * waits. */
	TRY(hal_wait(&done, 1, 0, HAL_FOREVER));

	/* What was made of them goes; they are the program's. */
	TRY(hal_queue_destroy(queue));
	TRY(hal_buffer_destroy(vector));
	TRY(hal_program_unload(program));
	TRY(hal_partition_destroy(part));
	TRY(hal_close(dev));
}

int main(int argc, char **argv)
{
	struct gpu_library l;
	uint64_t memory;
	void *stream;
	float *host;
	int i, wrong = 0;

	if (argc != 3)
		return fprintf(stderr, "usage: gpu_import TARGET KERNELS\n"), 2;
	l = gpu_start(argv[1]);
	memory = gpu_allocate(&l, BYTES);
	stream = gpu_stream(&l);
	host = pin(&l);
	for (i = 0; i < N; i++)
		host[i] = (float)i;
	copy(&l, memory, (uintptr_t)host, stream);

	four_times(argv[1], argv[2], memory, stream);

	copy(&l, (uintptr_t)host, memory, stream);
	wait_for(&l, stream);
	for (i = 0; i < N; i++)
		wrong += host[i] != 4 * (float)i;
	printf("4 x %d numbers in the program's memory, on its stream: %d wrong\n", N,
	       wrong);
	gpu_give_back(&l, stream, memory);
	unpin(&l, host);
	gpu_end(&l);
	return wrong != 0;
}
