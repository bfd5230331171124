/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that is a C function, on the software device: y = scale * x + y.  The device
 * charges time for it: its work, divided by the units of the partition. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <hal/ref.h>

#define TRY(call)                                                                        \
	((call) < 0 ? (fprintf(stderr, "%s\n", hal_last_error()), exit(1)) : (void)0)

enum { COUNT = 1000 };

/* Arguments: y (in and out), x, scale.  at() refuses what the launch did not give us, and
 * the launch then ends with -EIO. */
static int axpy(const struct hal_ref_call *call)
{
	int32_t *y = call->at(call, 0, 0, COUNT * sizeof(*y));
	const int32_t *x = call->at(call, 1, 0, COUNT * sizeof(*x));
	int32_t scale = (int32_t)call->args[2].value;

	if (!x || !y)
		return -EIO;
	for (int i = 0; i < COUNT; i++)
		y[i] += scale * x[i];
	return 0;
}

static const struct hal_ref_kernel kernels[] = {
	{.name = "axpy",
	 .fn = axpy,
	 .work = COUNT, /* a unit-nanosecond an element */
	 .arg_count = 3,
	 .arg_bytes = {COUNT * sizeof(int32_t), COUNT * sizeof(int32_t), 0}}};

static void run(struct hal_device *dev, struct hal_kernel *kernel, uint32_t units)
{
	struct hal_partition_desc some = {.size = sizeof(some), .units_floor = units};
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct hal_buffer_desc bytes = {.size = sizeof(bytes),
					.bytes = COUNT * sizeof(int32_t)};
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *x, *y;
	struct hal_point done;
	int32_t values[COUNT];
	uint64_t begin;

	TRY(hal_partition_create(dev, &some, &part));
	TRY(hal_queue_create(part, &plain, &queue));
	TRY(hal_buffer_create(part, &bytes, &x));
	TRY(hal_buffer_create(part, &bytes, &y));
	for (int i = 0; i < COUNT; i++)
		values[i] = i;
	TRY(hal_buffer_write(x, 0, values, sizeof(values)));
	TRY(hal_buffer_write(y, 0, values, sizeof(values)));

	struct hal_arg args[] = {{.buffer = y}, {.buffer = x}, {.offset = 10}};
	struct hal_cmd cmd = hal_cmd_launch(kernel, args, 3);
	struct hal_submit_desc work = {
		.size = sizeof(work), .cmds = &cmd, .cmd_count = 1};

	begin = hal_device_get_time(dev);
	TRY(hal_submit(queue, &work, &done));
	TRY(hal_wait(&done, 1, 0, HAL_FOREVER));
	TRY(hal_buffer_read(y, 0, values, sizeof(values)));
	printf("%u units: y[999] = %d, %" PRIu64 " ns\n", units, values[999],
	       hal_device_get_time(dev) - begin);

	TRY(hal_buffer_destroy(x));
	TRY(hal_buffer_destroy(y));
	TRY(hal_queue_destroy(queue));
	TRY(hal_partition_destroy(part));
}

int main(void)
{
	struct hal_device *dev;
	struct hal_program *program;
	struct hal_kernel *kernel;

	TRY(hal_open("ref?clock=virtual", NULL, &dev));
	TRY(hal_ref_load(dev, kernels, 1, &program));
	TRY(hal_kernel_find(program, "axpy", &kernel));
	run(dev, kernel, 1);
	run(dev, kernel, 4);
	TRY(hal_program_unload(program));
	TRY(hal_close(dev));
	return 0;
}
