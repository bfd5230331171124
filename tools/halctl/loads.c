/* SPDX-License-Identifier: Apache-2.0 */
#include "loads.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "tool.h"

enum { TRIES_A_SECOND = 20 };

int load_open(const struct halctl *ctl, struct hal_device **dev)
{
	static const struct timespec pause = {.tv_nsec = 1000000000 / TRIES_A_SECOND};
	uint32_t left = ctl->wait_s * TRIES_A_SECOND;
	int err = hal_open(ctl->target, ctl->options, dev);

	if (err == -EBUSY && left > 0)
		tool_note("probe: other programs use the device (%s); waiting up to %u s",
			  hal_last_error(), ctl->wait_s);
	for (; err == -EBUSY && left > 0; left--) {
		(void)nanosleep(&pause, NULL);
		err = hal_open(ctl->target, ctl->options, dev);
	}
	if (err == -EBUSY)
		return tool_fail(
			"probe: other programs still use the device after %u s: %s",
			ctl->wait_s, hal_last_error());
	return err == 0 ? 0 : tool_fail_hal();
}

static const int32_t half[1] = {1 << 30}, shift[1] = {0};

int load_by_gemm(struct hal_npu_builder *b, uint32_t one, uint32_t other, uint32_t d,
		 uint32_t lines)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);

	op.m = lines;
	op.k = 2 * lines;
	op.n = 2;
	op.a_stride = LOAD_LINE;
	op.b_stride = LOAD_LINE / 2;
	op.b.offset = 15;
	op.out.mult = half;
	op.out.shift = shift;
	op.out.min = -128;
	op.out.max = 127;
	op.a.id = one;
	op.b.id = other;
	op.d.id = d;
	return hal_npu_gemm(b, &op);
}

int load_by_sum(struct hal_npu_builder *b, uint32_t one, uint32_t other, uint32_t d,
		uint32_t lines)
{
	struct hal_npu_add op = HAL_INIT(hal_npu_add);

	op.rows = lines;
	op.bytes = 1;
	op.a_stride = op.b_stride = LOAD_LINE;
	op.d_stride = 1;
	op.a_mult = op.b_mult = op.d_mult = half[0];
	op.left_shift = 20;
	op.min = -128;
	op.max = 127;
	op.a.id = one;
	op.b.id = other;
	op.d.id = d;
	return hal_npu_add(b, &op);
}

int load_memory(struct hal_device *dev, struct hal_partition *part, uint64_t most,
		struct hal_buffer **memory, uint64_t *first, uint64_t *bytes)
{
	const struct hal_npu_extension *npu = hal_device_get_extension(dev, "npu");
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);
	uint64_t step = most / 256;
	int err = -ENOSPC;
	void *at;

	b.flags = HAL_BUFFER_MAPPABLE;
	b.bytes = most;
	while (err != 0 && b.bytes > step) {
		b.bytes -= step;
		err = hal_buffer_create(part, &b, memory);
	}
	*bytes = b.bytes;
	if (err != 0 || npu == NULL || npu->size < sizeof(*npu) ||
	    hal_buffer_map(*memory, &at) != 0 ||
	    npu->physical(hal_device_get_native(dev), at, first) != 0)
		return tool_fail_hal();
	return 0;
}
