/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skeleton.c - a complete, minimal backend; see docs/adding-a-backend.md.
 *
 * The device is a simulated processor with its own memory, four units and one ring of
 * commands.  submit adds a command to the ring; each poll runs the oldest one and reports
 * its end.
 *
 * The device has no virtual clock, no preemption, no resizing and no colours.  Those
 * entries of the table are NULL, and the core refuses them with a reason.  doorbell is
 * NULL because submit has started the command when it returns.
 *
 * Threads: the engine makes one call at a time.  Any thread calls now and the operations
 *          of .beside.  No lock is needed: these touch only a buffer or program of their
 *          own, and .zero_ns, which does not change after open.
 */
#define _GNU_SOURCE
#include "skeleton.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hal/backend.h>

enum { UNITS = 4, RING = 16, KERNELS_MAX = 16 };

struct queue {
	bool faulted; /* drop its remaining commands */
};

struct job {
	struct queue *queue;
	struct hal_bk_cmd cmd;
};

struct device {
	uint64_t zero_ns; /* host time at which device time is 0 */
	uint64_t memory, memory_free;
	struct job ring[RING];
	uint32_t head, count;
};

struct mem {
	uint64_t bytes;
	uint8_t data[];
};

struct kernel {
	const struct skeleton_function *function;
	struct hal_bk_kernel_info info;
};

struct program {
	uint32_t count;
	struct kernel kernels[KERNELS_MAX];
};

static const struct hal_host *host;

static const struct hal_option_def options[] = {
	{"memory", HAL_OPTION_SIZE, 1 << 20, INT64_C(1) << 32, NULL, "16M",
	 "bytes of device memory"},
};

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* ---- cold operations: device, partitions, queues ----------------------------------- */

static void describe(uint64_t memory, uint64_t memory_free, struct hal_device_info *info)
{
	info->kind = HAL_KIND_CPU;
	snprintf(info->name, sizeof(info->name), "skeleton, a simulated device");
	snprintf(info->backend, sizeof(info->backend), "skeleton");
	info->memory_bytes = memory;
	info->memory_free = memory_free;
	info->caps = HAL_CAP_MAP | HAL_CAP_TIMESTAMP | HAL_CAP_FAULT_CONTAINED |
		     HAL_CAP_SIMULATED | HAL_CAP_PRIVATE;
	info->unit_rows = 1;
	info->unit_cols = UNITS;
	info->partitions_max = UNITS;
	/* No isolation: all units share one ring, and all memory is in this process. */
	info->preempt = HAL_PREEMPT_NONE;
	info->compute_isolation = HAL_ISOLATION_NONE;
	info->memory_isolation = HAL_ISOLATION_NONE;
	info->clock_hz = UINT64_C(1000000000);
}

static int skeleton_probe(const struct hal_bk_config *cfg, struct hal_device_info *out,
			  uint32_t max)
{
	uint64_t memory = (uint64_t)host->option_int(cfg, "memory");

	/* A real backend looks for devices here and returns -ENODEV, with the reason, if
	 * there is none. */
	if (max > 0)
		describe(memory, memory, &out[0]);
	return 1;
}

static int skeleton_open(const struct hal_bk_config *cfg, uint32_t index, void **out)
{
	struct device *dev;

	if (index > 0)
		return host->fail(ENODEV, "skeleton: no device %u, there is one", index);
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return host->fail(ENOMEM, "skeleton: no memory for a device");
	dev->memory = (uint64_t)host->option_int(cfg, "memory");
	dev->memory_free = dev->memory;
	dev->zero_ns = monotonic_ns();
	*out = dev;
	return 0;
}

static void skeleton_close(void *device)
{
	free(device);
}

static int skeleton_get_info(void *device, struct hal_device_info *info)
{
	const struct device *dev = device;

	describe(dev->memory, dev->memory_free, info);
	return 0;
}

/* The core tracks units and quotas, so this device only keeps the description.  A real
 * one sets up address spaces, queues or masks here. */
static int skeleton_partition_create(void *device,
				     const struct hal_bk_partition_desc *desc, void **out)
{
	struct hal_bk_partition_desc *part = malloc(sizeof(*part));

	(void)device;
	if (!part)
		return host->fail(ENOMEM, "skeleton: no memory for a partition");
	*part = *desc;
	*out = part;
	return 0;
}

static int skeleton_partition_destroy(void *device, void *part)
{
	(void)device;
	free(part);
	return 0;
}

/* All queues share the device's ring; the core decides which queue is next. */
static int skeleton_queue_create(void *device, void *part, int32_t priority, void **out)
{
	struct queue *q = calloc(1, sizeof(*q));

	(void)device;
	(void)part;
	(void)priority;
	if (!q)
		return host->fail(ENOMEM, "skeleton: no memory for a queue");
	*out = q;
	return 0;
}

static int skeleton_queue_destroy(void *device, void *queue)
{
	(void)device;
	free(queue);
	return 0;
}

static int skeleton_mem_alloc(void *device, void *part, uint64_t bytes,
			      const struct hal_bk_colors *colors, uint32_t flags,
			      void **out)
{
	struct device *dev = device;
	struct mem *mem;

	(void)part;
	(void)colors; /* NULL: the device has no colours */
	(void)flags;  /* HAL_BUFFER_MAPPABLE: every buffer can be mapped */
	if (bytes > dev->memory_free)
		return host->fail(ENOSPC, "skeleton: %llu bytes, %llu are free",
				  (unsigned long long)bytes,
				  (unsigned long long)dev->memory_free);
	mem = calloc(1, sizeof(*mem) + bytes);
	if (!mem)
		return host->fail(ENOMEM, "skeleton: no host memory for %llu bytes",
				  (unsigned long long)bytes);
	mem->bytes = bytes;
	dev->memory_free -= bytes;
	*out = mem;
	return 0;
}

static int skeleton_mem_free(void *device, void *memory)
{
	struct device *dev = device;
	struct mem *mem = memory;

	dev->memory_free += mem->bytes;
	free(mem);
	return 0;
}

/* Called by any thread, concurrently with the engine (HAL_BK_BESIDE_COPY): touch only the
 * buffer, which exists until the copy returns. */
static int skeleton_mem_write(void *device, void *memory, uint64_t offset,
			      const void *data, uint64_t bytes)
{
	struct mem *mem = memory;

	(void)device;
	memcpy(mem->data + offset, data, bytes);
	return 0;
}

static int skeleton_mem_read(void *device, void *memory, uint64_t offset, void *data,
			     uint64_t bytes)
{
	const struct mem *mem = memory;

	(void)device;
	memcpy(data, mem->data + offset, bytes);
	return 0;
}

static int skeleton_mem_map(void *device, void *memory, void **address)
{
	struct mem *mem = memory;

	(void)device;
	*address = mem->data;
	return 0;
}

static int skeleton_mem_unmap(void *device, void *memory)
{
	(void)device;
	(void)memory;
	return 0;
}

/* ---- programs: loaded by any thread, concurrently with the engine ------------------ */

/* Parse "NAME BYTES BYTES ...": a function of the device and the minimum size of each of
 * its arguments. */
static int parse_kernel(char *line, uint32_t number, struct kernel *k)
{
	char *rest, *word = strtok_r(line, " ", &rest), *end;

	k->function = word ? skeleton_function(word) : NULL;
	if (!k->function)
		return host->fail(EINVAL, "skeleton: image, line %u: no function '%s'",
				  number, word ? word : "");
	snprintf(k->info.name, sizeof(k->info.name), "%s", word);
	while ((word = strtok_r(NULL, " ", &rest)) != NULL) {
		if (k->info.arg_count == k->function->arg_count)
			break;
		k->info.arg_bytes[k->info.arg_count++] = strtoull(word, &end, 10);
		if (*end)
			return host->fail(EINVAL,
					  "skeleton: image, line %u: '%s' is no number",
					  number, word);
	}
	if (word || k->info.arg_count != k->function->arg_count)
		return host->fail(EINVAL, "skeleton: image, line %u: %s has %u arguments",
				  number, k->info.name, k->function->arg_count);
	return 0;
}

/* Parse an image.  Its first line has the number of lines that follow, so that a
 * truncated file is detected. */
static int parse(char *text, struct program *prog)
{
	char *line = strsep(&text, "\n"), tail;
	int err;

	if (sscanf(line, "skeleton %u%c", &prog->count, &tail) != 1 ||
	    prog->count > KERNELS_MAX)
		return host->fail(EINVAL,
				  "skeleton: image, line 1: not 'skeleton KERNELS'");
	for (uint32_t i = 0; i < prog->count; i++) {
		line = strsep(&text, "\n");
		if (!line || !text)
			return host->fail(EINVAL, "skeleton: image ends in line %u of %u",
					  i + 2, prog->count + 1);
		err = parse_kernel(line, i + 2, &prog->kernels[i]);
		if (err)
			return err;
	}
	if (!text || *text)
		return host->fail(EINVAL, "skeleton: image, line %u: too much",
				  prog->count + 2);
	return 0;
}

/* Check every part of the image: it comes from an untrusted source. */
static int skeleton_program_load(void *device, const void *image, size_t size, void **out)
{
	struct program *prog = calloc(1, sizeof(*prog));
	char *text = strndup(image, size);
	int err;

	(void)device;
	if (!prog || !text)
		err = host->fail(ENOMEM, "skeleton: no memory for a program");
	else if (strlen(text) != size)
		err = host->fail(EINVAL, "skeleton: image has a NUL at byte %zu",
				 strlen(text));
	else
		err = parse(text, prog);
	free(text);
	if (err)
		free(prog);
	else
		*out = prog;
	return err;
}

static int skeleton_program_unload(void *device, void *program)
{
	(void)device;
	free(program);
	return 0;
}

static int skeleton_kernel_get(void *device, void *program, uint32_t index,
			       struct hal_bk_kernel_info *info, void **kernel)
{
	struct program *prog = program;

	(void)device;
	if (index >= prog->count)
		return -ENOENT;
	*info = prog->kernels[index].info;
	*kernel = &prog->kernels[index];
	return 0;
}

/* ---- hot operations: called by the engine, never block ----------------------------- */

static int skeleton_submit(void *device, void *queue, const struct hal_bk_cmd *cmd)
{
	struct device *dev = device;

	if (dev->count == RING)
		return -EAGAIN; /* the engine tries again after an event */
	dev->ring[(dev->head + dev->count++) % RING] = (struct job){queue, *cmd};
	return 0;
}

static void launch(const struct hal_bk_cmd *cmd, struct hal_bk_event *ev)
{
	const struct kernel *k = cmd->launch.kernel;
	uint8_t *arg[SKELETON_ARGS];

	for (uint32_t i = 0; i < k->info.arg_count; i++) {
		const struct hal_bk_arg *a = &cmd->launch.args[i];
		struct mem *mem = a->mem;

		if (!mem) {
			snprintf(ev->fault, sizeof(ev->fault),
				 "kernel %s: argument %u is no buffer", k->info.name, i);
			ev->status = -EIO;
			return;
		}
		arg[i] = mem->data + a->value;
	}
	if (k->function->fn(arg, ev->fault))
		ev->status = -EIO;
}

static void fill(const struct hal_bk_cmd *cmd)
{
	struct mem *mem = cmd->fill.dst;

	for (uint64_t i = 0; i + 4 <= cmd->fill.bytes; i += 4)
		memcpy(mem->data + cmd->fill.offset + i, &cmd->fill.pattern, 4);
}

static void copy(const struct hal_bk_cmd *cmd)
{
	const struct mem *src = cmd->copy.src;
	struct mem *dst = cmd->copy.dst;

	memmove(dst->data + cmd->copy.dst_offset, src->data + cmd->copy.src_offset,
		cmd->copy.bytes);
}

/* Called by any thread. */
static uint64_t skeleton_now(void *device)
{
	const struct device *dev = device;

	return monotonic_ns() - dev->zero_ns;
}

static void execute(struct device *dev, const struct hal_bk_cmd *cmd,
		    struct hal_bk_event *ev)
{
	switch (cmd->op) {
	case HAL_OP_LAUNCH:
		launch(cmd, ev);
		break;
	case HAL_OP_COPY:
		copy(cmd);
		ev->bytes_read = cmd->copy.bytes;
		ev->bytes_written = cmd->copy.bytes;
		break;
	case HAL_OP_FILL:
		fill(cmd);
		ev->bytes_written = cmd->fill.bytes;
		break;
	default: /* NOP; TIMESTAMP is handled below */
		break;
	}
	ev->end_ns = skeleton_now(dev);
	if (cmd->op == HAL_OP_TIMESTAMP) {
		struct mem *mem = cmd->timestamp.dst;

		memcpy(mem->data + cmd->timestamp.offset, &ev->end_ns,
		       sizeof(ev->end_ns));
		ev->bytes_written = sizeof(ev->end_ns);
	}
}

/* Remove up to max commands of q from the ring and report them as cancelled.  Return
 * their number. */
static uint32_t drop(struct device *dev, const struct queue *q, struct hal_bk_event *ev,
		     uint32_t max)
{
	uint32_t kept = 0, n = 0;

	for (uint32_t i = 0; i < dev->count; i++) {
		const struct job *job = &dev->ring[(dev->head + i) % RING];

		if (job->queue != q || n == max) {
			dev->ring[(dev->head + kept++) % RING] = *job;
			continue;
		}
		ev[n] = (struct hal_bk_event){.kind = HAL_BK_DONE,
					      .status = -ECANCELED,
					      .cookie = job->cmd.cookie};
		ev[n].start_ns = ev[n].end_ns = skeleton_now(dev);
		n++;
	}
	dev->count = kept;
	return n;
}

static int skeleton_poll(void *device, uint64_t until_ns, struct hal_bk_event *ev,
			 uint32_t max)
{
	struct device *dev = device;
	struct job job;

	(void)until_ns; /* only for a virtual clock */
	if (!dev->count || !max)
		return 0;
	job = dev->ring[dev->head];
	if (job.queue->faulted)
		return (int)drop(dev, job.queue, ev, max);
	dev->head = (dev->head + 1) % RING;
	dev->count--;
	*ev = (struct hal_bk_event){.kind = HAL_BK_DONE, .cookie = job.cmd.cookie};
	ev->start_ns = skeleton_now(dev);
	execute(dev, &job.cmd, ev);
	if (!ev->status)
		return 1;
	/* Report dropped commands at once: until then the queue cannot be destroyed. */
	job.queue->faulted = true;
	return 1 + (int)drop(dev, job.queue, ev + 1, max - 1);
}

/* Return when poll has work: now if the ring has commands, else never.  The engine asks
 * before it sleeps, because there is no event_fd. */
static uint64_t skeleton_next(void *device)
{
	const struct device *dev = device;

	return dev->count ? 0 : UINT64_MAX;
}

/* ---- the table --------------------------------------------------------------------- */

static const struct hal_backend table = {
	.size = sizeof(struct hal_backend),
	.abi = HAL_BACKEND_ABI,
	.name = "skeleton",
	.summary = "an example of a backend outside the tree",
	.score = -1, /* below the built-in backends: opened only by name */
	.option_count = sizeof(options) / sizeof(options[0]),
	.options = options,
	.beside = HAL_BK_BESIDE_PROGRAM | HAL_BK_BESIDE_COPY,
	.cold_size = sizeof(struct hal_bk_cold),
	.hot_size = sizeof(struct hal_bk_hot),
	.cold = {.probe = skeleton_probe,
		 .open = skeleton_open,
		 .close = skeleton_close,
		 .get_info = skeleton_get_info,
		 .partition_create = skeleton_partition_create,
		 .partition_destroy = skeleton_partition_destroy,
		 .queue_create = skeleton_queue_create,
		 .queue_destroy = skeleton_queue_destroy,
		 .mem_alloc = skeleton_mem_alloc,
		 .mem_free = skeleton_mem_free,
		 .mem_write = skeleton_mem_write,
		 .mem_read = skeleton_mem_read,
		 .mem_map = skeleton_mem_map,
		 .mem_unmap = skeleton_mem_unmap,
		 .program_load = skeleton_program_load,
		 .program_unload = skeleton_program_unload,
		 .kernel_get = skeleton_kernel_get},
	.hot = {.submit = skeleton_submit,
		.poll = skeleton_poll,
		.now = skeleton_now,
		.next = skeleton_next},
};

/* Declared first for compilers that warn about missing prototypes. */
const struct hal_backend *hal_backend_entry(const struct hal_host *services);

__attribute__((visibility("default"))) const struct hal_backend *
hal_backend_entry(const struct hal_host *services)
{
	host = services;
	return &table;
}
