/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of the software device: images, what a command costs, what it does. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes of an image that names count kernels. */
static uint64_t image_bytes(uint32_t count)
{
	return sizeof(struct hal_ref_image) + (uint64_t)count * HAL_REF_NAME;
}

static int check_head(const struct hal_ref_image *head, size_t size)
{
	if (size < sizeof(*head))
		return ref_host->fail(
			EINVAL,
			"ref: the image has %zu bytes; its header alone needs %zu", size,
			sizeof(*head));
	if (head->magic != HAL_REF_MAGIC)
		return ref_host->fail(
			EINVAL, "ref: not an image: magic 0x%08x at byte 0, not 0x%08x",
			head->magic, HAL_REF_MAGIC);
	if (head->version != HAL_REF_VERSION)
		return ref_host->fail(EINVAL,
				      "ref: the image has version %u at byte 4; this "
				      "library reads version %u",
				      head->version, HAL_REF_VERSION);
	if (head->name_bytes != HAL_REF_NAME)
		return ref_host->fail(
			EINVAL,
			"ref: the image has name_bytes %u at byte 8; it must be %u",
			head->name_bytes, HAL_REF_NAME);
	if (!head->kernel_count)
		return ref_host->fail(
			EINVAL,
			"ref: the image has no kernels: kernel_count at byte 12 is 0");
	if (size != image_bytes(head->kernel_count))
		return ref_host->fail(
			EINVAL,
			"ref: the image is %s: it has %zu bytes, but its "
			"header and names of %u kernels have %" PRIu64,
			size < image_bytes(head->kernel_count) ? "truncated" : "too long",
			size, head->kernel_count, image_bytes(head->kernel_count));
	return 0;
}

/* Fail because no kernel has this name; say where it was sought. */
static int unknown(const struct ref_kernels *kernels, const char *name)
{
	return ref_host->fail(ENOENT,
			      "ref: the image names kernel '%s', which the application "
			      "has not registered with this device and no library of "
			      "kernels=\"%s\" has",
			      name, kernels->paths);
}

/* Check name index of names: it is a name, of a known kernel, and no earlier one.  All
 * earlier names passed, so there are at most as many as kernels. */
static int check_name(const struct ref_kernels *kernels,
		      const char (*names)[HAL_REF_NAME], uint32_t index)
{
	const char *name = names[index];

	if (!memchr(name, 0, HAL_REF_NAME) || !name[0])
		return ref_host->fail(
			EINVAL,
			"ref: kernel %u of the image has no valid name (1 to 31 "
			"characters)",
			index);
	if (!ref_kernels_find(kernels, name))
		return unknown(kernels, name);
	for (uint32_t i = 0; i < index; i++)
		if (strcmp(names[i], name) == 0)
			return ref_host->fail(
				EINVAL, "ref: the image has kernel '%s' twice", name);
	return 0;
}

/* Of hal_ref_call: the bytes of an argument. */
static void *call_at(const struct hal_ref_call *call, uint32_t arg, uint64_t offset,
		     uint64_t bytes)
{
	const struct hal_ref_arg *a = arg < call->arg_count ? &call->args[arg] : NULL;

	if (!a || !a->data) {
		snprintf(call->fault, call->fault_bytes,
			 "kernel %s: argument %u is not a buffer", call->kernel, arg);
		return NULL;
	}
	if (offset > a->bytes || bytes > a->bytes - offset) {
		snprintf(call->fault, call->fault_bytes,
			 "kernel %s: address 0x%" PRIx64 " is %" PRIu64
			 " into argument %u of %" PRIu64,
			 call->kernel, a->value + offset, offset, arg, a->bytes);
		return NULL;
	}
	return (uint8_t *)a->data + offset;
}

static void kernel_init(struct ref_kernel *r, const struct hal_ref_kernel *k)
{
	r->own = *k;
	r->fn = k->fn;
	r->work = k->work < REF_LONGEST ? k->work : REF_LONGEST;
	r->span_ns = k->span_ns < REF_LONGEST ? k->span_ns : REF_LONGEST;
	if (r->span_ns == 0)
		r->span_ns = 1;
	r->cost = k->cost;
	memset(&r->call, 0, sizeof(r->call));
	r->call.args = r->args;
	r->call.arg_count = k->arg_count;
	r->call.kernel = r->own.name;
	r->call.user = k->user;
	r->call.fault_bytes = REF_FAULT_BYTES;
	r->call.at = call_at;
}

/* Make a program of count kernels by their names.  The caller holds kernels->lock. */
static int make(const struct ref_kernels *kernels, const char (*names)[HAL_REF_NAME],
		uint32_t count, struct ref_program **out)
{
	struct ref_program *prog;
	int err = 0;

	for (uint32_t i = 0; i < count && !err; i++)
		err = check_name(kernels, names, i);
	if (err)
		return err;
	prog = malloc(sizeof(*prog) + count * sizeof(prog->kernels[0]));
	if (!prog)
		return ref_host->fail(ENOMEM, "ref: no memory for a program");
	prog->count = count;
	for (uint32_t i = 0; i < count; i++)
		kernel_init(&prog->kernels[i], ref_kernels_find(kernels, names[i]));
	*out = prog;
	return 0;
}

/* A driver that compiles keeps its caller, and nobody else. */
static void pass_time(uint32_t ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	while (ms > 0 && clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
		;
}

int ref_program_load(void *device, const void *image, size_t size, void **out)
{
	struct ref_device *dev = device;
	const struct hal_ref_image *head = image;
	struct ref_program *prog = NULL;
	int err;

	pass_time(dev->opt.load_ms);
	if (ref_injected(dev, HAL_REF_OP_PROGRAM_LOAD, &err))
		return ref_host->fail(err, "ref: program_load: injected error");
	err = check_head(head, size);
	if (err)
		return err;
	pthread_mutex_lock(&dev->kernels.lock);
	err = make(&dev->kernels, (const char(*)[HAL_REF_NAME])(head + 1),
		   head->kernel_count, &prog);
	pthread_mutex_unlock(&dev->kernels.lock);
	if (!err)
		*out = prog;
	return err;
}

int ref_program_unload(void *device, void *program)
{
	(void)device;
	free(program);
	return 0;
}

int ref_kernel_get(void *device, void *program, uint32_t index,
		   struct hal_bk_kernel_info *info, void **kernel)
{
	struct ref_program *prog = program;
	const struct hal_ref_kernel *k;

	(void)device;
	if (index >= prog->count)
		return ref_host->fail(ENOENT,
				      "ref: there is no kernel %u; the program has %u",
				      index, prog->count);
	k = &prog->kernels[index].own;
	memset(info, 0, sizeof(*info));
	memcpy(info->name, k->name, sizeof(info->name));
	info->arg_count = k->arg_count;
	memcpy(info->arg_bytes, k->arg_bytes, sizeof(info->arg_bytes));
	/* A unit does one thing a nanosecond; where it depends on arguments, nobody
	 * knows. */
	info->work = k->cost == NULL ? k->work : 0;
	*kernel = &prog->kernels[index];
	return 0;
}

/* ---- commands --------------------------------------------------------------------- */

static uint64_t work_of_launch(const struct ref_partition *part,
			       const struct hal_bk_cmd *cmd)
{
	const struct ref_kernel *k = cmd->launch.kernel;
	const uint32_t *g = cmd->launch.groups;
	uint64_t work = k->work, groups;

	if (k->cost) {
		char fault[REF_FAULT_BYTES];

		work = k->cost(ref_call(part, cmd, fault));
	}
	groups = (uint64_t)g[0] * g[1];
	if (__builtin_mul_overflow(groups, g[2], &groups) ||
	    __builtin_mul_overflow(groups, work, &work) || work > REF_LONGEST)
		return REF_LONGEST;
	return work;
}

/* In unit-nanoseconds. */
uint64_t ref_command_work(const struct ref_partition *part, const struct hal_bk_cmd *cmd)
{
	switch (cmd->op) {
	case HAL_OP_COPY:
		return cmd->copy.bytes / REF_BYTES_WORK + 1;
	case HAL_OP_FILL:
		return cmd->fill.bytes / REF_BYTES_WORK + 1;
	case HAL_OP_LAUNCH:
		return work_of_launch(part, cmd);
	default:
		return 1;
	}
}

int ref_kernel_failed(const struct hal_bk_cmd *cmd, int err, struct hal_bk_event *ev)
{
	const struct ref_kernel *k = cmd->launch.kernel;

	if (!ev->fault[0])
		snprintf(ev->fault, sizeof(ev->fault), "kernel %s: returned %d",
			 k->own.name, err);
	return -EIO;
}

static void execute_fill(const struct hal_bk_cmd *cmd)
{
	const struct ref_mem *mem = cmd->fill.dst;
	uint8_t *p = mem->data + cmd->fill.offset;
	uint64_t i;

	for (i = 0; i + 4 <= cmd->fill.bytes; i += 4)
		memcpy(p + i, &cmd->fill.pattern, 4);
}

static int injected_fault(const struct hal_bk_cmd *cmd, int err, struct hal_bk_event *ev)
{
	snprintf(ev->fault, sizeof(ev->fault), "injected fault (%d) in command of op %u",
		 err, cmd->op);
	return -EIO;
}

/* What the command does, all at once at its end.  0, or -EIO with ev->fault. */
int ref_execute(struct ref_device *dev, const struct ref_partition *part,
		const struct hal_bk_cmd *cmd, struct hal_bk_event *ev)
{
	const struct ref_mem *dst, *src;
	const struct ref_kernel *k;
	int err;

	if (ref_injected(dev, HAL_REF_OP_EXECUTE, &err))
		return injected_fault(cmd, err, ev);
	switch (cmd->op) {
	case HAL_OP_COPY:
		dst = cmd->copy.dst;
		src = cmd->copy.src;
		memmove(dst->data + cmd->copy.dst_offset,
			src->data + cmd->copy.src_offset, cmd->copy.bytes);
		ev->bytes_read = cmd->copy.bytes;
		ev->bytes_written = cmd->copy.bytes;
		return 0;
	case HAL_OP_FILL:
		execute_fill(cmd);
		ev->bytes_written = cmd->fill.bytes;
		return 0;
	case HAL_OP_LAUNCH:
		k = cmd->launch.kernel;
		err = k->fn(ref_call(part, cmd, ev->fault));
		return err ? ref_kernel_failed(cmd, err, ev) : 0;
	case HAL_OP_TIMESTAMP:
		dst = cmd->timestamp.dst;
		memcpy(dst->data + cmd->timestamp.offset, &ev->end_ns, sizeof(uint64_t));
		ev->bytes_written = sizeof(uint64_t);
		return 0;
	default:
		return 0;
	}
}
