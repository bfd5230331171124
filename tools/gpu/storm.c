/* SPDX-License-Identifier: Apache-2.0 */
/* storm.c - hal-gpu-measure: whether a partition holds against launches that are in no
 * partition, and a witness of partitions that does not ask the device where it is. */
#include <hal/gpu.h>

#include "measure.h"

enum { STORM = 100, BLOCKS = 2048, IDS = 4096, ROUNDS = 9 };

/* A figure of the way by which the device is partitioned. */
static void figure_of(const char *what, const char *name, const char *unit, double value)
{
	const struct hal_gpu_extension *ext = hal_device_get_extension(gpu.dev, "gpu");
	struct hal_gpu_info info = {.size = sizeof(info)};
	char text[96];

	if (!ext || ext->info(hal_device_get_native(gpu.dev), &info))
		gpu_failed("the device does not say what partitions are");
	(void)snprintf(text, sizeof(text), "%s.%s.%s", what, info.way, name);
	figure(text, unit, value);
}

/* ---- a storm ------------------------------------------------------------------------- */

/* A program's own launches of the kernel where, which writes down multiprocessors. */
struct storm {
	struct gpu_library library;
	void *module, *function, *pinned;
	uint64_t at;
	int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
		      unsigned block_x, unsigned block_y, unsigned block_z,
		      unsigned shared, void *stream, void **params, void **extra);
};

static void begin_storm(struct storm *s)
{
	typedef int (*load_fn)(void **, const void *, unsigned, void *, void **);
	typedef int (*function_fn)(void **, void *, const char *);
	typedef int (*pointer_fn)(uint64_t *, void *, unsigned);
	size_t size;
	char *image = gpu_image(kernels, &size);
	const size_t n = ((struct hal_cuda_image *)(void *)image)->module_bytes;

	s->library = gpu_start(target);
	GPU_CALL(&s->library, load_fn, "cuModuleLoadDataEx", &s->module, image + size - n,
		 0, NULL, NULL);
	free(image);
	GPU_CALL(&s->library, function_fn, "cuModuleGetFunction", &s->function, s->module,
		 "where");
	GPU_CALL(&s->library, gpu_with_fn, "cuFuncLoad", s->function);
	GPU_CALL(&s->library, gpu_pin_fn, "cuMemHostAlloc", &s->pinned,
		 BLOCKS * sizeof(uint32_t), 0);
	GPU_CALL(&s->library, pointer_fn, "cuMemHostGetDevicePointer_v2", &s->at,
		 s->pinned, 0);
	GPU_FIND(&s->library, &s->launch, "cuLaunchKernel");
}

static void end_storm(const struct storm *s)
{
	GPU_CALL(&s->library, gpu_with_fn, "cuMemFreeHost", s->pinned);
	GPU_CALL(&s->library, gpu_with_fn, "cuModuleUnload", s->module);
	gpu_end(&s->library);
}

/* Launches in masses in that stream; how many blocks ran where the partition is. */
static void blow(const struct storm *s, void *stream, const bool *reserved,
		 const char *text, const char *name)
{
	const uint32_t *ids = s->pinned;
	uint64_t at = s->at, inside = 0;
	void *params[1] = {&at};
	uint32_t n, i;

	for (n = 0; n < STORM; n++) {
		if (s->launch(s->function, BLOCKS, 1, 1, 1, 1, 1, 0, stream, params,
			      NULL))
			gpu_failed("a launch by hand");
		GPU_CALL(&s->library, gpu_with_fn, "cuStreamSynchronize", stream);
		for (i = 0; i < BLOCKS; i++)
			inside += reserved[ids[i] < IDS ? ids[i] : IDS - 1];
	}
	printf("%s: blocks on the partition's multiprocessors | %llu of %u\n", text,
	       (unsigned long long)inside, (unsigned)STORM * BLOCKS);
	figure_of("storm", name, "blocks", (double)inside);
}

/* The partition itself is idle: nothing but what it is keeps blocks off it. */
void measure_storm(void)
{
	const struct hal_cuda_extension *ext = hal_device_get_extension(gpu.dev, "cuda");
	void *native = hal_device_get_native(gpu.dev), *stream;
	struct tenant t = tenant_on(&gpu, (gpu.info.unit_cols + 1) / 2);
	static bool reserved[IDS];
	struct storm s;

	if (!ext || ext->size < offsetof(struct hal_cuda_extension, remainder_stream) +
					sizeof(ext->remainder_stream))
		gpu_failed("storm: the library has no remainder_stream");
	(void)where(&t, reserved);
	begin_storm(&s);
	stream = gpu_stream(&s.library);
	blow(&s, stream, reserved, "a storm in a stream of the program's own", "plain");
	GPU_CALL(&s.library, gpu_with_fn, "cuStreamDestroy_v2", stream);
	if (ext->remainder_stream(native, 0, &stream) == 0) {
		blow(&s, stream, reserved, "a storm in a stream of the remainder",
		     "remainder");
		TRY(ext->remainder_end(native, stream));
	} else {
		printf("a stream of the remainder | refused: %s\n", hal_last_error());
	}
	end_storm(&s);
	end(&t);
}

/* ---- a second witness ---------------------------------------------------------------- */

/* A launch that fills the units of a partition several times over, by one that computes.
 */
struct load {
	const struct tenant *t;
	uint64_t rounds;
	uint32_t blocks;
};

/* What the device needs for one launch of each of the tenants, all at once. */
static uint64_t together(const struct load *l, uint32_t count)
{
	const uint64_t begin = hal_device_get_time(gpu.dev);
	struct hal_point done[2];
	uint32_t i;

	for (i = 0; i < count; i++)
		done[i] = spin(l[i].t, l[i].rounds, l[i].blocks);
	for (i = 0; i < count; i++)
		wait_for(done[i]);
	return hal_device_get_time(gpu.dev) - begin;
}

static int order(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double median(const struct load *l, uint32_t count)
{
	uint64_t took[ROUNDS];
	uint32_t i;

	for (i = 0; i < ROUNDS; i++)
		took[i] = together(l, count);
	qsort(took, ROUNDS, sizeof(took[0]), order);
	i = ROUNDS / 2;
	return (double)took[i];
}

/* Throughput of the two, of that of one alone. */
static double gain(const struct tenant *a, const struct tenant *b, uint64_t rounds,
		   uint32_t blocks)
{
	const struct load l[2] = {{a, rounds, blocks}, {b, rounds, blocks}};

	return 2 * median(l, 1) / median(l, 2);
}

/* Two partitions on multiprocessors of their own do twice the work of one, two queues of
 * one partition no more than one: wherever the device says that it is.  In between
 * nothing is said. */
void measure_witness(void)
{
	const struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct tenant a, b, beside;
	uint64_t rounds;
	uint32_t blocks;
	double apart, same;

	if (gpu.info.unit_cols < 2)
		gpu_failed("witness: the device has one unit");
	a = tenant_on(&gpu, gpu.info.unit_cols / 2);
	b = tenant_on(&gpu, gpu.info.unit_cols / 2);
	beside = second(&a, &plain);
	rounds = rounds_among(&a, 20000);
	blocks = blocks_of(&a, rounds, 3000000);
	(void)together(&(struct load){&a, rounds, blocks}, 1);
	apart = gain(&a, &b, rounds, blocks);
	same = gain(&a, &beside, rounds, blocks);
	printf("two partitions, of the throughput of one | %.2f\n", apart);
	printf("two queues of one partition, of the throughput of one | %.2f\n", same);
	printf("so the two partitions' multiprocessors are | %s\n",
	       same > 1.3    ? "not known: one partition alone is not full"
	       : apart > 1.7 ? "their own"
	       : apart < 1.3 ? "shared"
			     : "not known");
	figure_of("witness", "apart_of_one", "share", apart);
	figure_of("witness", "same_of_one", "share", same);
	end_second(&beside);
	end(&b);
	end(&a);
}
