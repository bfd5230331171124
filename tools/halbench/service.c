/* SPDX-License-Identifier: Apache-2.0 */
/* service.c - steps of a table as kernels of the software device, networks of files on an
 * NPU; see service.h. */
#include "service.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ref.h>

#include "tool.h"

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

static uint64_t unit_ns(const struct model_step *step)
{
	return (uint64_t)llround(step->unit_us * 1e3);
}

/* A kernel a step. */
static int load_steps(struct service *s, struct hal_device *dev, const struct model *m)
{
	struct hal_ref_kernel *kernels = calloc(m->step_count, sizeof(*kernels));
	struct hal_ref_kernel *k = kernels;
	int rc = 0;

	if (kernels == NULL)
		return tool_fail("out of memory");
	for (uint32_t i = 0; i < m->step_count; i++, k++) {
		const struct model_step *step = &m->steps[i];

		snprintf(k->name, sizeof(k->name), "step%u", i);
		k->fn = nothing;
		k->work = unit_ns(step);
		k->span_ns = (k->work + step->units - 1) / step->units;
	}
	if (hal_ref_load(dev, kernels, m->step_count, &s->program) != 0)
		rc = tool_fail("%s: %s", m->name, hal_last_error());
	free(kernels);
	return rc;
}

static int record_steps(struct service *s, const struct model *m)
{
	char name[32];

	snprintf(name, sizeof(name), "%.31s", m->name);
	if (hal_program_set_name(s->program, name) != 0)
		return tool_fail_hal();
	for (uint32_t i = 0; i < m->step_count; i++)
		s->cmd_count += m->steps[i].launches;
	s->cmds = calloc(s->cmd_count, sizeof(*s->cmds));
	if (s->cmds == NULL)
		return tool_fail("out of memory");
	for (uint32_t i = 0, at = 0; i < m->step_count; i++) {
		struct hal_kernel *kernel;

		snprintf(name, sizeof(name), "step%u", i);
		if (hal_kernel_find(s->program, name, &kernel) != 0)
			return tool_fail_hal();
		for (uint32_t k = 0; k < m->steps[i].launches; k++) {
			s->cmds[at] = hal_cmd_launch(kernel, NULL, 0);
			s->cmds[at++].flags = HAL_CMD_REPLAYABLE;
		}
		s->work += m->steps[i].launches * unit_ns(&m->steps[i]);
	}
	return 0;
}

/* ---- networks of files -------------------------------------------------------------- */

static int layer_command(struct service *s, const char *kernel, uint32_t position)
{
	char why[NPUC_WHY];

	if (npuc_run_command(s->run, kernel, &s->cmds[position], why) != 0)
		return tool_fail("%s", why);
	return 0;
}

/* A launch a layer, in the order in which these run; one launch of what is compiled
 * already. */
static int record_layers(struct service *s, bool whole)
{
	const struct npuc_program *p = &s->network;

	s->cmds = calloc((size_t)p->layer_count + 1, sizeof(*s->cmds));
	if (s->cmds == NULL)
		return tool_fail("out of memory");
	if (p->layer_count == 0 || whole) {
		s->cmd_count = 1;
		return layer_command(s, "run", 0);
	}
	for (uint32_t i = 0; i < p->layer_count; i++) {
		if (p->layers[i].kernel[0] == '\0')
			continue;
		if (layer_command(s, p->layers[i].kernel, p->layers[i].position) != 0)
			return TOOL_FAILED;
		s->cmd_count++;
	}
	s->more = 1;
	return layer_command(s, "run", s->cmd_count);
}

static int open_network(struct service *s, struct hal_device *dev,
			struct hal_partition *part, const struct model *m)
{
	const struct npuc_options options = {.layers = !m->whole};
	char why[NPUC_WHY];

	if (npuc_program_open(m->network, &options, &s->network, why) != 0)
		return m->file != NULL ? tool_fail("%s:%u: models.%s.network: %s",
						   m->file, m->line, m->name, why)
				       : tool_fail("%s", why);
	s->work = s->network.macs;
	if (s->network.state)
		return tool_fail("%s: the network has variables, so its requests depend "
				 "on one another; choose another network",
				 m->network);
	if (npuc_run_open_on(dev, part, s->queue, &s->network, &s->run, why) != 0)
		return tool_fail("%s: %s", m->network, why);
	return record_layers(s, m->whole);
}

bool service_runs(struct hal_device *dev, const struct model *m)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);

	/* Steps are functions of this process; a network runs on any NPU, also on one
	 * that hald serves. */
	if (m->network == NULL)
		return hal_device_get_extension(dev, "ref") != NULL;
	return hal_device_get_info(dev, &info) == 0 && strcmp(info.backend, "npu") == 0;
}

int service_open(struct service *s, struct hal_device *dev, struct hal_partition *part,
		 const struct hal_queue_desc *queue, const struct model *m)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);

	memset(s, 0, sizeof(*s));
	if (hal_device_get_info(dev, &info) != 0)
		return tool_fail_hal();
	if (!service_runs(dev, m))
		return m->network != NULL
			       ? tool_fail("%s: a network from a file runs on an NPU, "
					   "such as npu:0, not on %s",
					   m->network, info.backend)
			       : tool_fail("%s: steps of a table run on ref, not on %s; "
					   "use a network from a file",
					   m->name, info.backend);
	if (hal_queue_create(part, queue, &s->queue) != 0)
		return tool_fail_hal();
	if (m->network != NULL)
		return open_network(s, dev, part, m);
	return load_steps(s, dev, m) != 0 || record_steps(s, m) != 0 ? TOOL_FAILED : 0;
}

int service_close(struct service *s)
{
	int err = 0;

	free(s->cmds);
	err |= npuc_run_close(s->run);
	npuc_program_free(&s->network);
	if (s->queue != NULL)
		err |= hal_queue_destroy(s->queue);
	if (s->program != NULL)
		err |= hal_program_unload(s->program);
	memset(s, 0, sizeof(*s));
	return err;
}
