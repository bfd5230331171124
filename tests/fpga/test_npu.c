/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NPU in an FPGA's slot: random programs of every operation on every slot of
 * npu_core, as tests/rtl/bench_random makes them, through hal.h, backends/fpga and the
 * stand-in for XRT, whose kernel npu is a Verilator model: of the NPU, or of the kernel
 * around it (npu-rtl/fpga); each byte of memory against the golden model.
 *
 *   test_npu [COUNT [control]]     control: a byte of the card's memory is changed behind
 *                                  its back, which has to be found
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hal/hal.h>

#include "host.h"
#include "stepped.h"

enum { MEMORY = 1 << 24 };

static struct card {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_program *prog;
	struct hal_kernel *kernel;
	struct hal_queue *queue;
	struct hal_buffer *memory, *steps;
	uint64_t plant;
} card;

static void ok(int err)
{
	if (err >= 0)
		return;
	fprintf(stderr, "%d: %s\n", err, hal_last_error());
	exit(2);
}

/* Hands the steps to the card, and takes what came of them. */
static void carry_out(void)
{
	const size_t bytes = stepped.count * sizeof(stepped.step[0]);
	const struct hal_arg args[4] = {
		{.buffer = card.memory, .bytes = MEMORY},
		{.buffer = card.steps, .bytes = sizeof(stepped.step)},
		{.offset = MEMORY},
		{.offset = stepped.count}};
	struct hal_cmd cmd = hal_cmd_launch(card.kernel, args, 4);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = &cmd;
	d.cmd_count = 1;
	if (stepped.changed)
		ok(hal_buffer_write(card.memory, 0, stepped.memory, MEMORY));
	ok(hal_buffer_write(card.steps, 0, stepped.step, bytes));
	ok(hal_submit(card.queue, &d, NULL));
	ok(hal_device_poll(card.dev, UINT64_MAX));
	ok(hal_buffer_read(card.steps, 0, stepped.step, bytes));
	if (!stepped.ran)
		return;
	ok(hal_buffer_read(card.memory, 0, stepped.memory, MEMORY));
	if (card.plant != 0)
		stepped.memory[card.plant] ^= 1;
}

/* ---- the card ------------------------------------------------------------------------------ */

static void open_card(void)
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
	b.bytes = MEMORY;
	ok(hal_buffer_create(card.part, &b, &card.memory));
	b.bytes = sizeof(stepped.step);
	ok(hal_buffer_create(card.part, &b, &card.steps));
	free(image);
}

static void close_card(void)
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

int main(int argc, char **argv)
{
	const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 4;
	const bool control = argc > 2 && strcmp(argv[2], "control") == 0;
	const char *model = getenv("HAL_STAND_IN_NPU");
	const char *shape = model != NULL ? strstr(model, "/libnpu_") : NULL;
	static struct npu_model_api face;
	struct npu_model_shape is;
	struct rig r = {.api = &face, .bytes = MEMORY};
	uint64_t failed;

	if (shape != NULL)
		shape += strncmp(shape, "/libnpu_slot_", 13) == 0 ? 13 : 8;
	if (shape == NULL || access(model, R_OK) != 0 ||
	    sscanf(shape, "%ux%ux%ux%u", &is.rows, &is.cols, &is.slots, &is.channels) !=
		    4) {
		printf("skipped: no model of the NPU: HAL_STAND_IN_NPU is %s\n",
		       model != NULL ? model : "not set");
		return 77;
	}
	stepped_open(&face, &is, MEMORY, carry_out);
	r.memory = stepped.memory = calloc(1, MEMORY);
	open_card();
	for (uint64_t i = 0; i < count; i++) {
		failed = bench_failures;
		card.plant = control ? (1 << 20) + i * 4099 : 0;
		stepped_program(&r, 1 + i);
		if (control && failed == bench_failures) {
			printf("program %llu: the planted byte was not found\n",
			       (unsigned long long)i);
			return 1;
		}
	}
	rig_close(&r);
	close_card();
	if (control)
		return bench_failures == 0;
	printf("%llu programs, %llu runs of the kernel\n", (unsigned long long)count,
	       (unsigned long long)stepped.runs);
	printf("figure fpga.npu.programs %llu\n", (unsigned long long)count);
	printf("figure fpga.npu.mismatches %llu\n", (unsigned long long)bench_failures);
	return bench_end("test_fpga_npu");
}
