/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tflite.c - any bytes as a TensorFlow Lite model and as a .npu file: compiled, or
 * refused with a text.  Nothing is run. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npuc.h"
#include "tiny.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	return tiny_sample(index, data, max);
}

/* Offsets and sizes must fit what the caller will make. */
static void check(const struct npuc_program *p)
{
	for (uint32_t i = 0; i < p->input_count; i++)
		if (p->inputs[i].offset +
			    p->inputs[i].count *
				    npuc_type_bytes(p->inputs[i].device_type) >
		    p->input_bytes)
			abort();
	for (uint32_t i = 0; i < p->output_count; i++)
		if (p->outputs[i].offset +
			    p->outputs[i].count *
				    npuc_type_bytes(p->outputs[i].device_type) >
		    p->output_bytes)
			abort();
	for (uint32_t i = 0; i < p->tensor_count; i++)
		if (p->places[i].where == NPUC_ARENA &&
		    p->places[i].offset + p->places[i].bytes > p->arena_bytes)
			abort();
}

/* What --check says is what happens: no obstacle, or none goes through. */
static void check_report(const struct npuc_model *m)
{
	struct npuc_report report;
	struct npuc_program p;
	char why[NPUC_WHY];
	int rc = npuc_compile(m, NULL, &p, why);

	if (rc == 0)
		npuc_program_free(&p);
	if (rc == -ENOMEM || npuc_check(m, NULL, &report, why))
		return;
	if ((report.count == 0) != (rc == 0))
		abort();
	npuc_report_free(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct npuc_options options = {.keep = size & 1, .layers = size >> 1 & 1};
	char why[NPUC_WHY] = "";
	struct npuc_program p;
	struct npuc_model *m;

	if (npuc_program_parse(data, size, "fuzz", &p, why) == 0) {
		check(&p);
		npuc_program_free(&p);
	} else if (!strstr(why, "fuzz: ")) {
		abort(); /* refused without a reason */
	}
	why[0] = '\0';
	if (npuc_model_parse(data, size, "fuzz", &m, why) == 0) {
		if (npuc_compile(m, &options, &p, why) == 0) {
			check(&p);
			npuc_program_free(&p);
		} else if (!strstr(why, "fuzz: ")) {
			abort();
		}
		check_report(m);
		npuc_model_free(m);
	} else if (!strstr(why, "fuzz: ")) {
		abort();
	}
	return 0;
}
