/* SPDX-License-Identifier: Apache-2.0 */
/* Both digit networks on the NPU, side by side on rectangles of different shapes: every
 * logit equals the C reference, and the device counts exactly the networks'
 * multiplications. */
#include "digits.h"
#include "tier.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <hal/npu.h>

#define IMAGES     24u
#define OUT_STRIDE 64u

struct side {
	const char *network;
	uint16_t row, col, rows, cols;
	struct digits_net *net;
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_program *program;
	struct hal_kernel *kernel;
	struct hal_buffer *input, *output;
	uint32_t index;
};

static struct digits_images images;

#define OK(call)                                                                         \
	do {                                                                             \
		if ((call) < 0)                                                          \
			fail_msg("%s: %s", #call, hal_last_error());                     \
	} while (0)

static void open_program(struct side *s, struct hal_device *dev)
{
	char path[512], why[DIGITS_WHY];
	struct hal_kernel_info info = HAL_INIT(hal_kernel_info);
	void *image = NULL;
	size_t size = 0;

	snprintf(path, sizeof(path), DIGITS_DIR "/%s.net", s->network);
	if (digits_net_load(path, &s->net, why) ||
	    digits_build(s->net, &image, &size, why))
		fail_msg("%s", why);
	OK(hal_program_load(dev, image, size, &s->program));
	hal_npu_image_free(image);
	OK(hal_kernel_find(s->program, "run", &s->kernel));
	OK(hal_kernel_get_info(s->kernel, &info));
	assert_int_equal(info.arg_count, 2);
	assert_int_equal(info.arg_bytes[0], DIGITS_CLASSES);
	assert_int_equal(info.arg_bytes[1], DIGITS_PIXELS);
	assert_int_equal(info.work, s->net->macs);
}

static void open_side(struct side *s, struct hal_device *dev)
{
	struct hal_partition_desc rect = HAL_INIT(hal_partition_desc);
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc buf = HAL_INIT(hal_buffer_desc);

	rect.row = s->row;
	rect.col = s->col;
	rect.rows = s->rows;
	rect.cols = s->cols;
	OK(hal_partition_create(dev, &rect, &s->part));
	OK(hal_partition_get_info(s->part, &info));
	s->index = info.index;
	OK(hal_queue_create(s->part, &queue, &s->queue));
	buf.bytes = UINT64_C(1) * IMAGES * DIGITS_PIXELS;
	OK(hal_buffer_create(s->part, &buf, &s->input));
	buf.bytes = UINT64_C(1) * IMAGES * OUT_STRIDE;
	OK(hal_buffer_create(s->part, &buf, &s->output));
	for (uint32_t i = 0; i < IMAGES; i++) {
		int8_t input[DIGITS_PIXELS];

		digits_quantize(images.image[i].pixels, input);
		OK(hal_buffer_write(s->input, UINT64_C(1) * i * DIGITS_PIXELS, input,
				    sizeof(input)));
	}
	open_program(s, dev);
}

static struct hal_point submit(struct side *s, uint32_t i)
{
	struct hal_submit_desc desc = HAL_INIT(hal_submit_desc);
	struct hal_arg args[2] = {
		{s->output, UINT64_C(1) * i * OUT_STRIDE, DIGITS_CLASSES},
		{s->input, UINT64_C(1) * i * DIGITS_PIXELS, DIGITS_PIXELS},
	};
	struct hal_cmd cmd = hal_cmd_launch(s->kernel, args, 2);
	struct hal_point done;

	desc.cmds = &cmd;
	desc.cmd_count = 1;
	OK(hal_submit(s->queue, &desc, &done));
	return done;
}

static void check(struct side *s, uint32_t i)
{
	int8_t input[DIGITS_PIXELS], expected[DIGITS_CLASSES], logits[DIGITS_CLASSES];

	digits_quantize(images.image[i].pixels, input);
	digits_infer(s->net, input, expected);
	OK(hal_buffer_read(s->output, UINT64_C(1) * i * OUT_STRIDE, logits,
			   sizeof(logits)));
	if (memcmp(logits, expected, sizeof(logits)) != 0)
		fail_msg("%s, image %u: %u bits differ", s->network, i,
			 digits_differing_bits(logits, expected));
}

static void close_side(struct side *s)
{
	OK(hal_buffer_destroy(s->input));
	OK(hal_buffer_destroy(s->output));
	OK(hal_queue_destroy(s->queue));
	OK(hal_program_unload(s->program));
	OK(hal_partition_destroy(s->part));
	digits_net_free(s->net);
}

static uint64_t macs(struct hal_device *dev, const struct side *s)
{
	const struct hal_npu_extension *npu = hal_device_get_extension(dev, "npu");
	struct hal_npu_counters c = HAL_INIT(hal_npu_counters);

	assert_non_null(npu);
	OK(npu->counters(hal_device_get_native(dev), s->index, &c));
	return c.macs;
}

static void run_sides(struct side *sides, uint32_t count)
{
	struct hal_point points[4];
	struct hal_device *dev;

	OK(hal_open("npu:0?rows=16&cols=16&slots=4&channels=4&clock=virtual", NULL,
		    &dev));
	for (uint32_t k = 0; k < count; k++)
		open_side(&sides[k], dev);
	for (uint32_t i = 0; i < IMAGES; i++) {
		for (uint32_t k = 0; k < count; k++)
			points[k] = submit(&sides[k], i);
		OK(hal_wait(points, count, 0, HAL_FOREVER));
		for (uint32_t k = 0; k < count; k++)
			check(&sides[k], i);
	}
	for (uint32_t k = 0; k < count; k++) {
		assert_int_equal(macs(dev, &sides[k]), IMAGES * sides[k].net->macs);
		close_side(&sides[k]);
	}
	OK(hal_close(dev));
}

static void whole_array(void **state)
{
	struct side sides[] = {{.network = "large", .rows = 16, .cols = 16}};

	(void)state;
	run_sides(sides, 1);
}

static void side_by_side(void **state)
{
	struct side sides[] = {
		{.network = "small", .row = 0, .col = 0, .rows = 6, .cols = 10},
		{.network = "large", .row = 3, .col = 10, .rows = 7, .cols = 5},
		{.network = "large", .row = 10, .col = 6, .rows = 6, .cols = 10},
		{.network = "small", .row = 6, .col = 0, .rows = 10, .cols = 6},
	};

	(void)state;
	IN_FULL_TIER();
	run_sides(sides, 4);
}

static void odd_rectangles(void **state)
{
	struct side sides[] = {
		{.network = "small", .row = 15, .col = 3, .rows = 1, .cols = 5},
		{.network = "small", .row = 2, .col = 15, .rows = 9, .cols = 1},
	};

	(void)state;
	run_sides(sides, 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_array),
		cmocka_unit_test(side_by_side),
		cmocka_unit_test(odd_rectangles),
	};
	char why[DIGITS_WHY];
	int rc;

	tier_choose(argc, argv);
	if (digits_images_load(DIGITS_DIR "/test.images", &images, why)) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	rc = cmocka_run_group_tests_name("digits on the NPU", tests, NULL, NULL);
	digits_images_free(&images);
	return rc;
}
