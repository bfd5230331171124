/* SPDX-License-Identifier: Apache-2.0 */
/* card.c - the NPU in a slot of a card of the stand-in for XRT. */
#include "card.h"

#include <stdlib.h>

#include <hal/hal.h>

#include "host.h"
#include "stepped.h"

static struct card {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_program *prog;
	struct hal_kernel *kernel;
	struct hal_queue *queue;
	struct hal_buffer *memory, *steps;
	uint64_t bytes;
} card;
uint64_t card_plant;

static void ok(int err)
{
	if (err >= 0)
		return;
	fprintf(stderr, "%d: %s\n", err, hal_last_error());
	exit(2);
}

void card_carry_out(void)
{
	const size_t bytes = stepped.count * sizeof(stepped.step[0]);
	const struct hal_arg args[4] = {
		{.buffer = card.memory, .bytes = card.bytes},
		{.buffer = card.steps, .bytes = sizeof(stepped.step)},
		{.offset = card.bytes},
		{.offset = stepped.count}};
	struct hal_cmd cmd = hal_cmd_launch(card.kernel, args, 4);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = &cmd;
	d.cmd_count = 1;
	if (stepped.changed)
		ok(hal_buffer_write(card.memory, 0, stepped.memory, card.bytes));
	ok(hal_buffer_write(card.steps, 0, stepped.step, bytes));
	ok(hal_submit(card.queue, &d, NULL));
	ok(hal_device_poll(card.dev, UINT64_MAX));
	ok(hal_buffer_read(card.steps, 0, stepped.step, bytes));
	if (!stepped.ran)
		return;
	ok(hal_buffer_read(card.memory, 0, stepped.memory, card.bytes));
	if (card_plant != 0)
		stepped.memory[card_plant] ^= 1;
}

/* ---- the card ------------------------------------------------------------------------------ */

void card_open(uint64_t memory_bytes)
{
	static const char text[] =
		"platform hal_stand_in_1\nbank HBM[0] hbm 0x0 32M\nkernel npu 1\n"
		"arg memory memory 4096 0\narg steps memory 16 0\narg bytes ulong\n"
		"arg count uint\n";
	struct hal_partition_desc p = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc b = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc q = HAL_INIT(hal_queue_desc);
	char target[128];
	size_t size;
	void *image = make_image(text, &size);

	snprintf(target, sizeof(target), "fpga:0?clock=virtual&xclbin=%s",
		 make_file(text));
	ok(hal_open(target, NULL, &card.dev));
	p.units_floor = 1;
	ok(hal_partition_create(card.dev, &p, &card.part));
	ok(hal_queue_create(card.part, &q, &card.queue));
	ok(hal_program_load(card.dev, image, size, &card.prog));
	ok(hal_kernel_find(card.prog, "npu", &card.kernel));
	card.bytes = b.bytes = memory_bytes;
	ok(hal_buffer_create(card.part, &b, &card.memory));
	b.bytes = sizeof(stepped.step);
	ok(hal_buffer_create(card.part, &b, &card.steps));
	free(image);
}

void card_close(void)
{
	const char *text = "";

	ok(hal_buffer_destroy(card.steps));
	ok(hal_buffer_destroy(card.memory));
	ok(hal_queue_destroy(card.queue));
	ok(hal_program_unload(card.prog));
	ok(hal_partition_destroy(card.part));
	ok(hal_close(card.dev));
	CHECK(stand_in()->misuse(&text) == 0, "%s", text);
	CHECK(stand_in()->live() == 0, "something is left");
}
