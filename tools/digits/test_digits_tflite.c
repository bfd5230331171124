/* SPDX-License-Identifier: Apache-2.0 */
/* test_digits_tflite.c - digits.tflite through npuc on an NPU: the logits are those that
 * TensorFlow Lite gave when the file was made, image by image, several in flight.
 *
 *   test_digits_tflite TARGET IMAGES */
#include "digits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <npuc.h>

#define IN_FLIGHT 3u

static const char *target;
static uint32_t count;
static struct digits_images images;
static int8_t *expected;

#define OK(call)                                                                         \
	do {                                                                             \
		if ((call) < 0)                                                          \
			fail_msg("%s: %s", #call, hal_last_error());                     \
	} while (0)
#define WHY(call)                                                                        \
	do {                                                                             \
		if ((call) != 0)                                                         \
			fail_msg("%s: %s", #call, why);                                  \
	} while (0)

static void load(void)
{
	char why[DIGITS_WHY];
	uint32_t rows;

	WHY(digits_images_load(DIGITS_DIR "/test.images", &images, why));
	WHY(digits_logits_load(DIGITS_DIR "/large.logits", &expected, &rows, why));
	assert_true(rows == images.count && count <= rows && count >= IN_FLIGHT);
}

static void check(struct npuc_run *run, uint32_t image)
{
	int8_t got[DIGITS_CLASSES];
	char why[NPUC_WHY];

	WHY(npuc_run_read(run, 0, true, got, sizeof(got), why));
	if (memcmp(got, expected + (size_t)image * DIGITS_CLASSES, sizeof(got)) != 0)
		fail_msg("image %u: other logits", image);
}

/* Image n goes to run n % IN_FLIGHT, once that has given its answer before. */
static void classify(struct npuc_run **runs)
{
	struct hal_point done[IN_FLIGHT];
	int8_t input[DIGITS_PIXELS];
	char why[NPUC_WHY];

	for (uint32_t n = 0; n < count + IN_FLIGHT; n++) {
		struct npuc_run *run = runs[n % IN_FLIGHT];

		if (n >= IN_FLIGHT) {
			OK(hal_wait(&done[n % IN_FLIGHT], 1, 0, HAL_FOREVER));
			check(run, n - IN_FLIGHT);
		}
		if (n >= count)
			continue;
		digits_quantize(images.image[n].pixels, input);
		WHY(npuc_run_write(run, 0, input, sizeof(input), why));
		WHY(npuc_run_submit(run, "run", NULL, &done[n % IN_FLIGHT], why));
	}
}

static void test_images(void **state)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct npuc_run *runs[IN_FLIGHT];
	struct hal_partition *part;
	struct npuc_program program;
	struct hal_device *dev;
	char why[NPUC_WHY];

	(void)state;
	load();
	WHY(npuc_program_open(DIGITS_DIR "/digits.tflite", NULL, &program, why));
	assert_int_equal(program.macs, 231680);
	assert_string_equal(program.inputs[0].name, "image");
	assert_string_equal(program.outputs[0].name, "logits");
	assert_string_equal(program.host, "");
	OK(hal_open(target, NULL, &dev));
	desc.rows = 7;
	desc.cols = 9;
	OK(hal_partition_create(dev, &desc, &part));
	WHY(npuc_run_open(dev, part, &program, &runs[0], why));
	for (uint32_t i = 1; i < IN_FLIGHT; i++)
		WHY(npuc_run_open_beside(runs[0], &runs[i], why));
	classify(runs);
	for (uint32_t i = IN_FLIGHT; i--;)
		assert_int_equal(npuc_run_close(runs[i]), 0);
	npuc_program_free(&program);
	OK(hal_partition_destroy(part));
	OK(hal_close(dev));
	digits_images_free(&images);
	free(expected);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_images)};

	if (argc != 3)
		return 2;
	target = argv[1];
	count = (uint32_t)strtoul(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
