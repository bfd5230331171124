/* SPDX-License-Identifier: Apache-2.0 */
/* digits_program NET PROGRAM.npu: a network of data/digits as a file that halrun and
 * examples/serve take. */
#include <stdio.h>

#include <hal/npu.h>
#include <npuc.h>

#include "digits.h"
#include "tool.h"

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

static int save(const struct digits_net *net, const char *path)
{
	char why[NPUC_WHY > DIGITS_WHY ? NPUC_WHY : DIGITS_WHY];
	struct npuc_program program = {.input_count = 1, .output_count = 1};
	uint32_t last = net->tensor_count - 1;
	struct npuc_port in = port("image", 0, &net->tensors[0]);
	struct npuc_port out = port("logits", last, &net->tensors[last]);
	int rc;

	program.inputs = &in;
	program.outputs = &out;
	program.input_bytes = in.count;
	program.output_bytes = out.count;
	program.macs = net->macs;
	rc = digits_build(net, &program.image, &program.image_size, why);
	if (!rc)
		rc = npuc_program_save(&program, path, why);
	hal_npu_image_free(program.image);
	return rc ? tool_fail("%s", why) : 0;
}

int main(int argc, char **argv)
{
	char why[DIGITS_WHY];
	struct digits_net *net;
	int rc;

	if (argc != 3) {
		(void)tool_fail("usage: digits_program NET PROGRAM.npu");
		return tool_end(TOOL_USAGE);
	}
	if (digits_net_load(argv[1], &net, why) != 0)
		return tool_end(tool_fail("%s", why));
	rc = save(net, argv[2]);
	digits_net_free(net);
	return tool_end(rc);
}
