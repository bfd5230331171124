/* SPDX-License-Identifier: Apache-2.0 */
/* consumer.c - a program outside this tree: a matrix product on the installed NPU. */
#define _GNU_SOURCE
#include <hal/hal.h>
#include <hal/npu.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define M 5
#define N 7
#define K 9

#define CHECK(call)                                                                      \
	do {                                                                             \
		int rc_ = (call);                                                        \
		if (rc_ < 0) {                                                           \
			fprintf(stderr, "%s: %s\n", #call, hal_last_error());            \
			return 1;                                                        \
		}                                                                        \
	} while (0)

static int build(void **image, size_t *size)
{
	struct hal_npu_gemm op = {.size = (uint32_t)sizeof(op), .m = M, .n = N, .k = K};
	struct hal_npu_builder *b;

	CHECK(hal_npu_builder_create(&b));
	CHECK(hal_npu_kernel(b, "product"));
	CHECK(hal_npu_arg(b, M * K, &op.a.id));
	CHECK(hal_npu_arg(b, K * N, &op.b.id));
	CHECK(hal_npu_arg(b, M * N * 4, &op.d.id));
	CHECK(hal_npu_gemm(b, &op)); /* no multiplier: int32 sums */
	CHECK(hal_npu_build(b, image, size));
	CHECK(hal_npu_builder_destroy(b));
	return 0;
}

/* Is the NPU model that this process has mapped one below prefix? */
static int model_is_below(const char *prefix)
{
	char line[PATH_MAX + 128];
	int found = 0;
	FILE *maps = fopen("/proc/self/maps", "r");

	if (!maps)
		return 0;
	while (fgets(line, sizeof(line), maps)) {
		char *path = strchr(line, '/');

		if (!path || !strstr(path, "/libnpu_"))
			continue;
		if (strncmp(path, prefix, strlen(prefix)) != 0) {
			fprintf(stderr, "not below %s: %s", prefix, path);
			found = -1;
			break;
		}
		found = 1;
	}
	fclose(maps);
	return found == 1;
}

static int make(struct hal_partition *part, uint64_t bytes, struct hal_buffer **buf)
{
	struct hal_buffer_desc desc = HAL_INIT(hal_buffer_desc);

	desc.bytes = bytes;
	return hal_buffer_create(part, &desc, buf);
}

static int compare(const int8_t *a, const int8_t *b, const int32_t *d)
{
	for (int m = 0; m < M; m++) {
		for (int n = 0; n < N; n++) {
			int32_t sum = 0;

			for (int k = 0; k < K; k++)
				sum += a[m * K + k] * b[k * N + n];
			if (sum != d[m * N + n]) {
				fprintf(stderr, "d[%d][%d] is %d, not %d\n", m, n,
					(int)d[m * N + n], (int)sum);
				return 1;
			}
		}
	}
	return 0;
}

static int product(struct hal_device *dev, struct hal_program *prog)
{
	struct hal_partition_desc pdesc = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qdesc = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc sdesc = HAL_INIT(hal_submit_desc);
	struct hal_buffer *a, *b, *d;
	struct hal_partition *part;
	struct hal_kernel *kernel;
	struct hal_queue *queue;
	struct hal_point done;
	struct hal_arg args[3];
	struct hal_cmd cmd;
	int8_t av[M * K], bv[K * N];
	int32_t dv[M * N];

	for (int i = 0; i < M * K; i++)
		av[i] = (int8_t)(i * 7 - 100);
	for (int i = 0; i < K * N; i++)
		bv[i] = (int8_t)(90 - i * 5);
	pdesc.rows = 4;
	pdesc.cols = 4;
	CHECK(hal_partition_create(dev, &pdesc, &part));
	CHECK(make(part, sizeof(av), &a));
	CHECK(make(part, sizeof(bv), &b));
	CHECK(make(part, sizeof(dv), &d));
	CHECK(hal_buffer_write(a, 0, av, sizeof(av)));
	CHECK(hal_buffer_write(b, 0, bv, sizeof(bv)));
	CHECK(hal_queue_create(part, &qdesc, &queue));
	CHECK(hal_kernel_find(prog, "product", &kernel));
	args[0] = (struct hal_arg){.buffer = a};
	args[1] = (struct hal_arg){.buffer = b};
	args[2] = (struct hal_arg){.buffer = d};
	cmd = hal_cmd_launch(kernel, args, 3);
	sdesc.cmds = &cmd;
	sdesc.cmd_count = 1;
	CHECK(hal_submit(queue, &sdesc, &done));
	CHECK(hal_wait(&done, 1, 0, HAL_FOREVER));
	CHECK(hal_buffer_read(d, 0, dv, sizeof(dv)));
	CHECK(hal_queue_destroy(queue));
	CHECK(hal_buffer_destroy(a));
	CHECK(hal_buffer_destroy(b));
	CHECK(hal_buffer_destroy(d));
	CHECK(hal_partition_destroy(part));
	return compare(av, bv, dv);
}

int main(int argc, char **argv)
{
	struct hal_program *prog;
	struct hal_device *dev;
	void *image;
	size_t size;

	if (argc != 2) {
		fprintf(stderr, "usage: consumer PREFIX\n");
		return 2;
	}
	if (build(&image, &size))
		return 1;
	CHECK(hal_open("npu:0?clock=virtual", NULL, &dev));
	if (!model_is_below(argv[1])) {
		fprintf(stderr, "the NPU's model is not the installed one\n");
		return 1;
	}
	CHECK(hal_program_load(dev, image, size, &prog));
	hal_npu_image_free(image);
	if (product(dev, prog))
		return 1;
	CHECK(hal_program_unload(prog));
	CHECK(hal_close(dev));
	puts("product right on the installed npu");
	return 0;
}
