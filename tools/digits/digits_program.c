/* SPDX-License-Identifier: Apache-2.0 */
/* digits_program NET PROGRAM.npu: a network of data/digits as a file that halrun and
 * examples/serve take. */
#include <stdio.h>
#include <string.h>

#include <hal/npu.h>
#include <npuc.h>

#include "digits.h"

static struct npuc_port port(const char *name, uint32_t at, const struct digits_tensor *t)
{
	struct npuc_port p = {.type = NPUC_INT8,
			      .device_type = NPUC_INT8,
			      .tensor = at,
			      .rank = 4,
			      .dims = {1, (int32_t)t->h, (int32_t)t->w, (int32_t)t->c},
			      .count = (uint64_t)t->h * t->w * t->c,
			      .scale = t->scale,
			      .zero_point = t->zero};

	snprintf(p.name, sizeof(p.name), "%s", name);
	return p;
}

int main(int argc, char **argv)
{
	char why[NPUC_WHY > DIGITS_WHY ? NPUC_WHY : DIGITS_WHY];
	struct npuc_program program = {.input_count = 1, .output_count = 1};
	struct npuc_port in, out;
	struct digits_net *net;
	uint32_t last;
	int rc;

	if (argc != 3) {
		fprintf(stderr, "usage: digits_program NET PROGRAM.npu\n");
		return 2;
	}
	rc = digits_net_load(argv[1], &net, why);
	if (rc) {
		fprintf(stderr, "digits_program: %s\n", why);
		return 1;
	}
	last = net->tensor_count - 1;
	in = port("image", 0, &net->tensors[0]);
	out = port("logits", last, &net->tensors[last]);
	program.inputs = &in;
	program.outputs = &out;
	program.input_bytes = in.count;
	program.output_bytes = out.count;
	program.macs = net->macs;
	rc = digits_build(net, &program.image, &program.image_size, why);
	if (!rc)
		rc = npuc_program_save(&program, argv[2], why);
	if (rc)
		fprintf(stderr, "digits_program: %s\n", why);
	hal_npu_image_free(program.image);
	digits_net_free(net);
	return rc ? 1 : 0;
}
