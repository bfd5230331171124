/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - npuc --check: a model's ports, and all that keeps it from being compiled. */
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "ports.h"

/* A program that could not be made has the ports of its model. */
static int model_ports(const struct npuc_model *m, struct npuc_program *p)
{
	const uint32_t *in, *out;

	p->input_count = npuc_inputs(m, &in);
	p->output_count = npuc_outputs(m, &out);
	p->inputs = calloc((size_t)p->input_count + 1, sizeof(*p->inputs));
	p->outputs = calloc((size_t)p->output_count + 1, sizeof(*p->outputs));
	if (!p->inputs || !p->outputs)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->input_count; i++)
		if (in[i] != NPUC_NONE)
			p->inputs[i] = port_of_tensor(npuc_tensor(m, in[i]));
	for (uint32_t i = 0; i < p->output_count; i++)
		if (out[i] != NPUC_NONE)
			p->outputs[i] = port_of_tensor(npuc_tensor(m, out[i]));
	return 0;
}

static void print_text(const struct npuc_program *p, const struct npuc_report *r)
{
	char text[512];

	for (uint32_t i = 0; i < p->input_count; i++)
		port_print("input", &p->inputs[i]);
	for (uint32_t i = 0; i < p->output_count; i++)
		port_print("output", &p->outputs[i]);
	if (p->host[0])
		printf("%s\n", p->host);
	if (!r->count)
		printf("compiles: %u layer%s, %" PRIu64 " MACs\n", p->layer_count,
		       p->layer_count == 1 ? "" : "s", p->macs);
	if (!r->count) {
		device_memory_text(p, device_memory_configured(), text, sizeof(text));
		printf("takes %s\n", text);
	}
	for (uint32_t i = 0; i < r->count; i++) {
		const struct npuc_obstacle *o = &r->obstacles[i];

		if (o->layer == NPUC_NONE)
			printf("obstacle: %s\n", o->text);
		else if (o->more)
			printf("obstacle: layer %u and %u more like it (%s): %s\n",
			       o->layer, o->more, o->operator_name, o->text);
		else
			printf("obstacle: layer %u (%s): %s\n", o->layer,
			       o->operator_name, o->text);
	}
}

static int print_json(const char *path, const struct npuc_program *p,
		      const struct npuc_report *r)
{
	struct out *o = out_create();

	if (!o)
		return -ENOMEM;
	out_record(o, NULL);
	out_str(o, "model", path);
	ports_json(o, "inputs", p->inputs, p->input_count);
	ports_json(o, "outputs", p->outputs, p->output_count);
	if (p->host[0])
		out_str(o, "host", p->host);
	if (!r->count) {
		out_u64(o, "layers", p->layer_count);
		out_u64(o, "macs", p->macs);
		out_u64(o, "memory_bytes", p->memory_bytes);
	}
	out_list(o, "obstacles");
	for (uint32_t i = 0; i < r->count; i++) {
		const struct npuc_obstacle *of = &r->obstacles[i];

		out_record(o, NULL);
		if (of->layer != NPUC_NONE) {
			out_u64(o, "layer", of->layer);
			out_u64(o, "more", of->more);
			out_str(o, "operator", of->operator_name);
		}
		out_str(o, "text", of->text);
		out_record_end(o);
	}
	out_list_end(o);
	out_record_end(o);
	(void)out_finish(o); /* what could not be written shows at stdout's end */
	return 0;
}

int check_print(const struct npuc_model *m, const struct npuc_options *options,
		const char *path, bool json, bool *compiles, char why[NPUC_WHY])
{
	struct npuc_program p = {0};
	struct npuc_report r;
	int rc = npuc_check(m, options, &r, why);

	if (rc)
		return rc;
	rc = r.count ? model_ports(m, &p) : npuc_compile(m, options, &p, why);
	if (!rc && json)
		rc = print_json(path, &p, &r);
	else if (!rc)
		print_text(&p, &r);
	if (rc == -ENOMEM)
		snprintf(why, NPUC_WHY, "%s: out of memory", path);
	*compiles = r.count == 0;
	npuc_program_free(&p);
	npuc_report_free(&r);
	return rc;
}
