/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants' work from TensorFlow Lite models: the network compiled by npuc, inputs that
 * data/tflite/nets.sums names by a seed, and the answers TensorFlow Lite gave there. */
#include "tenant.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npuc.h"
#include "tool.h"

#define LINE_BYTES 4096u
#define MAX_INPUTS 32u

/* xorshift64*, the upper byte of each product: how tests/tflite/oracle makes inputs. */
static void random_bytes(uint64_t x, int8_t *out, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		x ^= x >> 12;
		x ^= x << 25;
		x ^= x >> 27;
		out[i] = (int8_t)((x * UINT64_C(2685821657736338717)) >> 56);
	}
}

/* A line of exactly so many bytes. */
static int from_hex(const char *text, int8_t *out, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, text += 2) {
		char digits[3] = "", *end;
		uint8_t value;

		memcpy(digits, text, strnlen(text, 2));
		value = (uint8_t)strtoul(digits, &end, 16);
		if (end != digits + 2)
			return -1;
		memcpy(out + i, &value, 1);
	}
	return strcmp(text, "\n") == 0 ? 0 : -1;
}

/* One line of the network's part of the file; 1: it ends here. */
static int take_line(struct work *w, const char *line, bool *ours, uint64_t *seed)
{
	static const char random_input[] = "input random ";
	char name[64];

	if (sscanf(line, "network %63s", name) == 1) {
		if (*ours)
			return 1;
		*ours = strcmp(name, w->title) == 0;
		return 0;
	}
	if (!*ours)
		return 0;
	if (strncmp(line, "input ", 6) == 0) {
		*seed = strncmp(line, random_input, sizeof(random_input) - 1) == 0
				? strtoull(line + sizeof(random_input) - 1, NULL, 16)
				: 0; /* no other input is taken */
		return 0;
	}
	if (strncmp(line, "output ", 7) != 0 || *seed == 0)
		return 0;
	if (w->count == MAX_INPUTS)
		return 1;
	random_bytes(*seed, w->inputs + (size_t)w->count * w->in_bytes, w->in_bytes);
	if (from_hex(line + 7, w->expected + (size_t)w->count * w->out_bytes,
		     w->out_bytes))
		return tool_fail("%s: an answer has the wrong length", w->title);
	w->count++;
	return 0;
}

static int read_answers(struct work *w, const char *sums)
{
	FILE *f = fopen(sums, "r");
	char line[LINE_BYTES];
	bool ours = false;
	uint64_t seed = 0;
	int rc = 0;

	if (!f)
		return tool_fail("%s: %s", sums, hal_strerror(errno));
	while (!rc && fgets(line, sizeof(line), f))
		rc = take_line(w, line, &ours, &seed);
	if (!rc && ferror(f))
		rc = tool_fail("%s: %s", sums, hal_strerror(errno));
	(void)fclose(f);
	if (rc >= 0 && w->count == 0)
		return tool_fail("%s: %s has no answers of network %s", w->title, sums,
				 w->title);
	return rc < 0 ? -1 : 0;
}

int work_network(struct work *w, const char *models, const char *network,
		 const char *sums)
{
	struct npuc_program program = {0};
	char path[LINE_BYTES], why[NPUC_WHY];
	int rc = -1;

	*w = (struct work){.kernel = "run"};
	snprintf(w->title, sizeof(w->title), "%s", network);
	snprintf(path, sizeof(path), "%s/%s_int8.tflite", models, network);
	if (access(path, R_OK))
		return tool_fail(
			"%s: %s; --models must be a folder with resnet8_int8.tflite, "
			"kws_dscnn_int8.tflite, vww_mobilenet_int8.tflite and "
			"ad01_int8.tflite of MLPerf Tiny",
			path, hal_strerror(errno));
	if (npuc_program_open(path, NULL, &program, why))
		return tool_fail("%s", why);
	w->in_bytes = (uint32_t)program.inputs[0].count;
	w->out_bytes = (uint32_t)program.outputs[0].count;
	w->in_room = (uint32_t)program.input_bytes;
	w->out_room = (uint32_t)program.output_bytes;
	w->macs = program.macs;
	w->inputs = calloc(MAX_INPUTS, w->in_bytes);
	w->expected = calloc(MAX_INPUTS, w->out_bytes);
	if (!w->inputs || !w->expected)
		tool_fail("%s: out of memory", network);
	else if (program.input_count != 1 || program.inputs[0].type != NPUC_INT8 ||
		 program.output_count != 1 || program.outputs[0].type != NPUC_INT8)
		tool_fail("%s: the network must have one int8 input and one int8 output",
			  network);
	else
		rc = read_answers(w, sums);
	/* the builder's, now this work's */
	w->image = program.image;
	w->image_size = program.image_size;
	program.image = NULL;
	npuc_program_free(&program);
	return rc;
}
