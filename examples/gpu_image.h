/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_image.h - an image for a GPU: what the compiler made of gpu_kernels.cu, and in
 * front of it what that does not tell: a kernel's block, and which arguments are memory.
 */
#ifndef EXAMPLES_GPU_IMAGE_H
#define EXAMPLES_GPU_IMAGE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/cuda.h>
#include <hal/rocm.h>

/* Calls answer 0 or -errno; hal_last_error() says what is wrong. */
static inline void gpu_failed(const char *why)
{
	(void)fprintf(stderr, "%s\n", why);
	exit(1); /* NOLINT(concurrency-mt-unsafe) */
}
#define TRY(call) ((call) < 0 ? gpu_failed(hal_last_error()) : (void)0)

enum { CUDA_KERNELS = 4, ROCM_KERNELS = 3, GPU_BLOCK = 256 };

#define GPU_TABLE                                                                        \
	{.name = "vector_add",                                                           \
	 .block = {GPU_BLOCK},                                                           \
	 .arg_count = 4,                                                                 \
	 .scalar_bytes = {0, 0, 0, 4}},                                                  \
		{.name = "product",                                                      \
		 .block = {GPU_BLOCK},                                                   \
		 .arg_count = 4,                                                         \
		 .scalar_bytes = {0, 0, 0, 4}},                                          \
	{                                                                                \
		.name = "long_one", .arg_count = 2, .scalar_bytes = { 0, 8 }             \
	}

/* PTX is text, which ends in a zero byte; a bundle of code objects is not. */
static inline void *gpu_image(const char *path, size_t *size)
{
	const struct hal_cuda_kernel cuda[CUDA_KERNELS] = {
		GPU_TABLE, {.name = "where", .arg_count = 1}};
	const struct hal_rocm_kernel rocm[ROCM_KERNELS] = {GPU_TABLE};
	const bool ptx = strstr(path, ".ptx") != NULL;
	const size_t table = ptx ? sizeof(struct hal_cuda_image) + sizeof(cuda)
				 : sizeof(struct hal_rocm_image) + sizeof(rocm);
	FILE *file = fopen(path, "rb");
	char *image = calloc(1, table + (1 << 20));
	size_t n;

	if (!file || !image)
		gpu_failed(path);
	n = fread(image + table, 1, (1 << 20) - 1, file);
	(void)fclose(file);
	n += ptx;
#define GPU_HEAD(image, name, format_, kernels, bytes_of_code)                           \
	((struct image){.magic = HAL_##name##_MAGIC,                                     \
			.version = HAL_##name##_VERSION,                                 \
			.bytes = (uint32_t)(table + n),                                  \
			.format = format_,                                               \
			.kernel_count = sizeof(kernels) / sizeof(kernels[0]),            \
			.kernel_size = sizeof(kernels[0]),                               \
			.bytes_of_code = (uint32_t)n})
	if (ptx) {
		memcpy(image + sizeof(struct hal_cuda_image), cuda, sizeof(cuda));
		*(struct hal_cuda_image *)image =
			GPU_HEAD(hal_cuda_image, CUDA, HAL_CUDA_PTX, cuda, module_bytes);
	} else {
		memcpy(image + sizeof(struct hal_rocm_image), rocm, sizeof(rocm));
		*(struct hal_rocm_image *)image =
			GPU_HEAD(hal_rocm_image, ROCM, HAL_ROCM_BUNDLE, rocm, code_bytes);
	}
#undef GPU_HEAD
	*size = table + n;
	return image;
}

static inline struct hal_program *gpu_load(struct hal_device *dev, const char *path)
{
	struct hal_program *program;
	size_t size;
	void *image = gpu_image(path, &size);

	TRY(hal_program_load(dev, image, size, &program));
	free(image); /* the device has its own copy */
	return program;
}

static inline struct hal_buffer *gpu_buffer(struct hal_partition *part, uint64_t bytes)
{
	struct hal_buffer_desc desc = {.size = sizeof(desc), .bytes = bytes};
	struct hal_buffer *buf;

	TRY(hal_buffer_create(part, &desc, &buf));
	return buf;
}

/* A launch of so many blocks. */
static inline struct hal_point gpu_launch(struct hal_queue *queue,
					  struct hal_program *program, const char *name,
					  struct hal_arg *args, uint32_t count,
					  uint32_t blocks)
{
	struct hal_submit_desc work = {.size = sizeof(work), .cmd_count = 1};
	struct hal_kernel *kernel;
	struct hal_point done;
	struct hal_cmd cmd;

	TRY(hal_kernel_find(program, name, &kernel));
	cmd = hal_cmd_launch(kernel, args, count);
	cmd.launch.groups[0] = blocks;
	work.cmds = &cmd;
	TRY(hal_submit(queue, &work, &done));
	return done;
}

#endif
