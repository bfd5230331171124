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

#include "card.h"
#include "stepped.h"

enum { MEMORY = 1 << 24 };

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
	stepped_open(&face, &is, MEMORY, card_carry_out);
	r.memory = stepped.memory = calloc(1, MEMORY);
	card_open(MEMORY);
	for (uint64_t i = 0; i < count; i++) {
		failed = bench_failures;
		card_plant = control ? (1 << 20) + i * 4099 : 0;
		stepped_program(&r, 1 + i);
		if (control && failed == bench_failures) {
			printf("program %llu: the planted byte was not found\n",
			       (unsigned long long)i);
			return 1;
		}
	}
	rig_close(&r);
	card_close();
	if (control)
		return bench_failures == 0;
	printf("%llu programs, %llu runs of the kernel\n", (unsigned long long)count,
	       (unsigned long long)stepped.runs);
	printf("figure fpga.npu.programs %llu\n", (unsigned long long)count);
	printf("figure fpga.npu.mismatches %llu\n", (unsigned long long)bench_failures);
	return bench_end("test_fpga_npu");
}
