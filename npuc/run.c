/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - a program on a device: buffers, launches, and what float32 ports need. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>

#include "model.h"
#include "quant.h"

struct npuc_run {
	struct npuc_run *owner; /* of program and queue: itself, or opened beside it */
	uint32_t beside;        /* how many runs have this one as owner */
	struct hal_partition *part;
	const struct npuc_program *program;
	struct hal_program *loaded; /* loaded, queue and clock_hz: the owner's */
	struct hal_queue *queue;
	bool own_queue; /* else the caller's, who destroys it */
	uint64_t clock_hz;
	struct hal_buffer *output, *input, *arena;
	struct hal_arg args[3]; /* those */
	struct hal_point last;  /* timeline NULL: nothing was submitted yet */
};

static int said(char *why, int rc, const char *what)
{
	return npuc_fail(why, -rc, "%s: %s", what, hal_last_error());
}

static int make_buffer(struct npuc_run *r, uint64_t bytes, struct hal_buffer **buf,
		       char *why)
{
	struct hal_buffer_desc desc = HAL_INIT(hal_buffer_desc);
	int rc;

	desc.bytes = bytes;
	rc = hal_buffer_create(r->part, &desc, buf);
	return rc < 0 ? said(why, rc, "buffer") : 0;
}

static int make_buffers(struct npuc_run *r, char *why)
{
	const struct npuc_program *p = r->program;
	int rc = make_buffer(r, p->output_bytes, &r->output, why);

	if (!rc)
		rc = make_buffer(r, p->input_bytes, &r->input, why);
	if (!rc && p->arena_arg)
		rc = make_buffer(r, p->arena_bytes ? p->arena_bytes : 64, &r->arena, why);
	r->args[0].buffer = r->output;
	r->args[1].buffer = r->input;
	r->args[2].buffer = r->arena;
	return rc;
}

static int load(struct npuc_run *r, struct hal_device *dev, char *why)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	int rc = hal_device_get_info(dev, &info);

	if (rc < 0)
		return said(why, rc, "device");
	r->clock_hz = info.clock_hz;
	rc = hal_program_load(dev, r->program->image, r->program->image_size, &r->loaded);
	if (rc < 0)
		return said(why, rc, "program");
	rc = hal_program_set_name(r->loaded, r->program->name);
	if (rc < 0)
		return said(why, rc, "program");
	if (r->queue)
		return 0;
	rc = hal_queue_create(r->part, &queue, &r->queue);
	r->own_queue = rc >= 0;
	return rc < 0 ? said(why, rc, "queue") : 0;
}

/* Variables get their first values ahead of all else on the queue.  A queue of the
 * caller's may be suspended: that is not waited for. */
static int init_state(struct npuc_run *r, char *why)
{
	struct hal_submit_desc desc = HAL_INIT(hal_submit_desc);
	struct hal_point done;
	struct hal_cmd cmd;
	int rc = npuc_run_command(r, "init", &cmd, why);

	if (rc)
		return rc;
	desc.cmds = &cmd;
	desc.cmd_count = 1;
	rc = hal_submit(r->queue, &desc, &done);
	if (rc >= 0 && r->own_queue)
		rc = hal_wait(&done, 1, 0, HAL_FOREVER);
	return rc < 0 ? said(why, rc, "init") : 0;
}

/* With an owner, beside it; else on the queue, or one of its own for NULL. */
static int open_run(struct hal_device *dev, struct hal_partition *part,
		    struct hal_queue *queue, const struct npuc_program *program,
		    struct npuc_run *owner, struct npuc_run **run, char *why)
{
	struct npuc_run *r = calloc(1, sizeof(*r));
	int rc = 0;

	if (!r)
		return npuc_fail(why, ENOMEM, "out of memory");
	r->owner = owner ? owner : r;
	r->part = part;
	r->queue = queue;
	r->program = program;
	if (owner)
		owner->beside++;
	else
		rc = load(r, dev, why);
	if (!rc)
		rc = make_buffers(r, why);
	if (!rc && !owner && program->state)
		rc = init_state(r, why);
	if (rc) {
		npuc_run_close(r);
		return rc;
	}
	*run = r;
	return 0;
}

int npuc_run_open(struct hal_device *dev, struct hal_partition *part,
		  const struct npuc_program *program, struct npuc_run **run,
		  char why[NPUC_WHY])
{
	return open_run(dev, part, NULL, program, NULL, run, why);
}

int npuc_run_open_on(struct hal_device *dev, struct hal_partition *part,
		     struct hal_queue *queue, const struct npuc_program *program,
		     struct npuc_run **run, char why[NPUC_WHY])
{
	if (!queue)
		return npuc_fail(why, EINVAL, "npuc_run_open_on: no queue given");
	return open_run(dev, part, queue, program, NULL, run, why);
}

int npuc_run_open_beside(struct npuc_run *run, struct npuc_run **beside,
			 char why[NPUC_WHY])
{
	return open_run(NULL, run->part, NULL, run->program, run->owner, beside, why);
}

int npuc_run_close(struct npuc_run *r)
{
	int rc;

	if (!r)
		return 0;
	if (r->beside)
		return -EBUSY;
	rc = r->own_queue ? hal_queue_destroy(r->queue) : 0;
	if (rc < 0)
		return rc;
	/* Work in flight keeps the buffers and the program that it uses. */
	hal_buffer_destroy(r->output);
	hal_buffer_destroy(r->input);
	hal_buffer_destroy(r->arena);
	if (r->loaded)
		hal_program_unload(r->loaded);
	if (r->owner != r)
		r->owner->beside--;
	free(r);
	return 0;
}

struct hal_queue *npuc_run_queue(const struct npuc_run *run)
{
	return run->owner->queue;
}

/* An error that stuck on the queue is for the waiter and the next submission to tell. */
static int check_idle(struct npuc_run *r, char *why)
{
	int err = 0;

	if (!r->last.timeline ||
	    hal_timeline_get_value(r->last.timeline, &err) >= r->last.value || err)
		return 0;
	return npuc_fail(
		why, EBUSY,
		"an inference of this run is in flight; wait for its point first");
}

uint64_t npuc_port_bytes(const struct npuc_port *port)
{
	return port->count * npuc_type_bytes(port->type);
}

static uint64_t device_bytes(const struct npuc_port *port)
{
	return port->count * npuc_type_bytes(port->device_type);
}

static int check_bytes(const struct npuc_port *port, const char *which, uint64_t want,
		       uint64_t bytes, char *why)
{
	if (bytes == want)
		return 0;
	return npuc_fail(why, EINVAL,
			 "%s '%s' takes %llu bytes (%llu x %s), but %llu were given",
			 which, port->name, (unsigned long long)want,
			 (unsigned long long)port->count,
			 npuc_type_name(want == device_bytes(port) ? port->device_type
								   : port->type),
			 (unsigned long long)bytes);
}

static struct quant_side side(const struct npuc_port *port)
{
	return (struct quant_side){port->device_type, port->scale, port->zero_point};
}

int npuc_run_write(struct npuc_run *r, uint32_t input, const void *data, uint64_t bytes,
		   char why[NPUC_WHY])
{
	const struct npuc_port *port;
	uint8_t *converted = NULL;
	uint32_t width;
	int rc;

	rc = check_idle(r, why);
	if (rc)
		return rc;
	if (input >= r->program->input_count)
		return npuc_fail(why, EINVAL, "there is no input %u; the program has %u",
				 input, r->program->input_count);
	port = &r->program->inputs[input];
	rc = check_bytes(port, "input", npuc_port_bytes(port), bytes, why);
	if (rc)
		return rc;
	width = npuc_type_bytes(port->device_type);
	if (port->type == NPUC_FLOAT32) {
		converted = malloc(device_bytes(port));
		if (!converted)
			return npuc_fail(why, ENOMEM, "out of memory");
		for (uint64_t i = 0; i < port->count; i++) {
			int32_t q;
			float x;

			memcpy(&x, (const uint8_t *)data + i * 4, 4);
			q = quant_from_float(x, side(port));
			for (uint32_t k = 0; k < width; k++)
				converted[i * width + k] =
					(uint8_t)((uint32_t)q >> 8 * k);
		}
		data = converted;
	}
	rc = hal_buffer_write(r->input, port->offset, data, device_bytes(port));
	free(converted);
	return rc < 0 ? said(why, rc, "input") : 0;
}

int npuc_run_read(struct npuc_run *r, uint32_t output, bool raw, void *data,
		  uint64_t bytes, char why[NPUC_WHY])
{
	const struct npuc_port *port;
	uint8_t *to = data;
	uint32_t width;
	int rc;

	rc = check_idle(r, why);
	if (rc)
		return rc;
	if (output >= r->program->output_count)
		return npuc_fail(why, EINVAL, "there is no output %u; the program has %u",
				 output, r->program->output_count);
	port = &r->program->outputs[output];
	raw = raw || port->type != NPUC_FLOAT32;
	rc = check_bytes(port, "output", raw ? device_bytes(port) : npuc_port_bytes(port),
			 bytes, why);
	if (rc)
		return rc;
	rc = hal_buffer_read(r->output, port->offset, data, device_bytes(port));
	if (rc < 0)
		return said(why, rc, "output");
	width = npuc_type_bytes(port->device_type);
	/* From behind: what is converted is not yet overwritten. */
	for (uint64_t i = raw ? 0 : port->count; i--;) {
		int32_t q = quant_number(to + i * width, port->device_type);
		float x = quant_to_float(q, side(port));

		memcpy(to + i * 4, &x, 4);
	}
	return 0;
}

int npuc_run_command(const struct npuc_run *r, const char *name, struct hal_cmd *cmd,
		     char why[NPUC_WHY])
{
	struct hal_kernel *kernel;
	int rc = hal_kernel_find(r->owner->loaded, name, &kernel);

	if (rc < 0)
		return said(why, rc, name);
	*cmd = hal_cmd_launch(kernel, r->args, r->arena ? 3 : 2);
	if (!r->program->state)
		cmd->flags |= HAL_CMD_REPLAYABLE;
	return 0;
}

int npuc_run_submit(struct npuc_run *r, const char *name,
		    const struct hal_submit_desc *desc, struct hal_point *done,
		    char why[NPUC_WHY])
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd;
	int rc = check_idle(r, why);

	if (!rc && desc && (desc->size != sizeof(d) || desc->cmds || desc->cmd_count))
		rc = npuc_fail(why, EINVAL,
			       "%s: the hal_submit_desc must have the current size and "
			       "no commands",
			       name);
	if (!rc)
		rc = npuc_run_command(r, name, &cmd, why);
	if (rc)
		return rc;
	if (desc)
		d = *desc;
	d.cmds = &cmd;
	d.cmd_count = 1;
	rc = hal_submit(r->owner->queue, &d, &r->last);
	if (rc < 0)
		return said(why, rc, name);
	if (done)
		*done = r->last;
	return 0;
}

int npuc_run_kernel(struct npuc_run *r, const char *name, uint64_t *cycles,
		    char why[NPUC_WHY])
{
	struct hal_stats before = HAL_INIT(hal_stats), after = HAL_INIT(hal_stats);
	struct hal_queue *queue = r->owner->queue;
	struct hal_point done;
	int rc = hal_queue_get_stats(queue, &before);

	if (rc < 0)
		return said(why, rc, name);
	rc = npuc_run_submit(r, name, NULL, &done, why);
	if (rc)
		return rc;
	rc = hal_wait(&done, 1, 0, HAL_FOREVER);
	if (rc >= 0)
		rc = hal_queue_get_stats(queue, &after);
	if (rc < 0)
		return said(why, rc, name);
	if (cycles)
		*cycles = (uint64_t)llround((double)(after.busy_ns - before.busy_ns) *
					    (double)r->owner->clock_hz / 1e9);
	return 0;
}

int npuc_run_tensor(struct npuc_run *r, uint32_t tensor, void *data, uint64_t bytes,
		    char why[NPUC_WHY])
{
	const struct npuc_place *p;
	struct hal_buffer *buffer;
	int rc;

	rc = check_idle(r, why);
	if (rc)
		return rc;
	if (tensor >= r->program->tensor_count)
		return npuc_fail(why, EINVAL, "there is no tensor %u; the program has %u",
				 tensor, r->program->tensor_count);
	p = &r->program->places[tensor];
	buffer = p->where == NPUC_INPUT    ? r->input
		 : p->where == NPUC_OUTPUT ? r->output
		 : p->where == NPUC_ARENA  ? r->arena
					   : NULL;
	if (!buffer)
		return npuc_fail(why, EINVAL,
				 "tensor %u is not stored and cannot be read", tensor);
	if (bytes != p->bytes)
		return npuc_fail(
			why, EINVAL, "tensor %u takes %llu bytes, but %llu were given",
			tensor, (unsigned long long)p->bytes, (unsigned long long)bytes);
	rc = hal_buffer_read(buffer, p->offset, data, bytes);
	return rc < 0 ? said(why, rc, "tensor") : 0;
}
