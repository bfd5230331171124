/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broken.c - a small backend that works, or does one thing wrong: for layer validate.
 *
 * A plugin.  Its device ends a command in the next poll, after 100 ns; a command with a
 * pattern of 1 faults, and one of 2 stays until a queue has been killed.
 */
#define _GNU_SOURCE
#include "broken.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/backend.h>

#define COMMANDS 64
#define STAYS    2u

static const struct hal_host *host;

struct queue {
	int stopping, quiet_due;
	uint64_t cookie;
};

struct device {
	int broken;
	uint64_t now;
	uint32_t infos;
	struct {
		struct hal_bk_cmd cmd;
		struct queue *queue;
	} commands[COMMANDS];
	uint32_t count;
	struct queue *queues[COMMANDS];
	uint32_t queue_count;
	void *last_queue;
	uint64_t move_cookie;
	int told, killed, move_due;
};

static const struct hal_option_def options[] = {
	{"clock", HAL_OPTION_ENUM, 0, 0, "virtual", "virtual", "its own"},
	{"break", HAL_OPTION_ENUM, 0, 0,
#define X(name) #name "|"
	 BREAKS(X)
#undef X
		 "nothing_else",
	 "none", "what it does wrong"},
};

/* ---- cold ------------------------------------------------------------------------- */

static int dev_probe(const struct hal_bk_config *cfg, struct hal_device_info *out,
		     uint32_t max)
{
	(void)cfg;
	if (max > 0)
		out[0].unit_cols = 8;
	return 1;
}

static int dev_open(const struct hal_bk_config *cfg, uint32_t index, void **dev)
{
	struct device *d;

	(void)index;
	if (host->option_int(cfg, "break") == BREAK_open_null) {
		*dev = NULL;
		return 0;
	}
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return host->fail(ENOMEM, "no memory");
	d->broken = (int)host->option_int(cfg, "break");
	d->now = 1000;
	*dev = d;
	return 0;
}

static void dev_close(void *dev)
{
	free(dev);
}

static int dev_get_info(void *dev, struct hal_device_info *info)
{
	struct device *d = dev;

	strcpy(info->name, "does one thing wrong");
	info->kind = HAL_KIND_CPU;
	info->caps = HAL_CAP_VIRTUAL_CLOCK | HAL_CAP_STAND_IN | HAL_CAP_MAP |
		     HAL_CAP_GRID | HAL_CAP_RESIZE_IDLE | HAL_CAP_RESIZE_LIVE |
		     HAL_CAP_COLORED_MEMORY | HAL_CAP_TIMESTAMP;
	info->memory_bytes = 1 << 20;
	info->memory_free = 1 << 19;
	info->unit_rows = 2;
	info->unit_cols = 4;
	info->partitions_max = 4;
	info->colors = 4;
	info->preempt = HAL_PREEMPT_INSIDE;
	info->suspend_modes = 1u << HAL_SUSPEND_DRAIN | 1u << HAL_SUSPEND_KILL;
	d->infos++;
	switch (d->broken) {
	case BREAK_info_size:
		info->size = 8;
		break;
	case BREAK_info_text:
		memset(info->name, 'x', sizeof(info->name));
		break;
	case BREAK_info_kind:
		info->kind = 9;
		break;
	case BREAK_info_verified:
		info->verified = HAL_CAP_SIMULATED;
		break;
	case BREAK_info_lost:
		info->lost = 3;
		break;
	case BREAK_info_free:
		info->memory_free = 1 << 21;
		break;
	case BREAK_info_changes:
		info->partitions_max += d->infos - 1;
		break;
	default:
		break;
	}
	return 0;
}

static int dev_partition_create(void *dev, const struct hal_bk_partition_desc *desc,
				void **part)
{
	const struct device *d = dev;

	(void)desc;
	*part = d->broken == BREAK_part_null ? NULL : malloc(1);
	return 0;
}

static int dev_partition_destroy(void *dev, void *part)
{
	(void)dev;
	free(part);
	return 0;
}

static int dev_queue_create(void *dev, void *part, int32_t priority, void **queue)
{
	struct device *d = dev;
	struct queue *q;

	(void)part, (void)priority;
	if (d->broken == BREAK_queue_twice && d->last_queue != NULL) {
		*queue = d->last_queue;
		return 0;
	}
	q = calloc(1, sizeof(*q));
	if (q == NULL || d->queue_count == COMMANDS) {
		free(q);
		return host->fail(ENOMEM, "no memory");
	}
	d->queues[d->queue_count++] = q;
	d->last_queue = q;
	*queue = q;
	return 0;
}

static int dev_queue_destroy(void *dev, void *queue)
{
	struct device *d = dev;

	for (uint32_t i = 0; i < d->queue_count; i++)
		if (d->queues[i] == queue)
			d->queues[i--] = d->queues[--d->queue_count];
	free(queue);
	return 0;
}

static int dev_mem_alloc(void *dev, void *part, uint64_t bytes,
			 const struct hal_bk_colors *colors, uint32_t flags, void **mem)
{
	const struct device *d = dev;

	(void)part, (void)colors, (void)flags;
	*mem = d->broken == BREAK_mem_null ? NULL : calloc(1, bytes);
	return 0;
}

static int dev_mem_free(void *dev, void *mem)
{
	const struct device *d = dev;

	free(mem);
	return d->broken == BREAK_mem_leak ? host->fail(EIO, "it stays") : 0;
}

static int dev_mem_write(void *dev, void *mem, uint64_t offset, const void *data,
			 uint64_t bytes)
{
	const struct device *d = dev;

	memcpy((char *)mem + offset, data, bytes);
	return d->broken == BREAK_mem_answer ? 7 : 0;
}

static int dev_mem_read(void *dev, void *mem, uint64_t offset, void *data, uint64_t bytes)
{
	(void)dev;
	memcpy(data, (char *)mem + offset, bytes);
	return 0;
}

static int dev_mem_map(void *dev, void *mem, void **address)
{
	const struct device *d = dev;

	*address = d->broken == BREAK_map_null ? NULL : mem;
	return 0;
}

static int dev_mem_unmap(void *dev, void *mem)
{
	(void)dev, (void)mem;
	return 0;
}

static int dev_program_load(void *dev, const void *image, size_t size, void **prog)
{
	const struct device *d = dev;

	(void)image, (void)size;
	*prog = d->broken == BREAK_prog_null ? NULL : malloc(1);
	return 0;
}

static int dev_program_unload(void *dev, void *prog)
{
	(void)dev;
	free(prog);
	return 0;
}

/* One kernel, of a buffer and a scalar. */
static int dev_kernel_get(void *dev, void *prog, uint32_t index,
			  struct hal_bk_kernel_info *info, void **kernel)
{
	const struct device *d = dev;

	if (index > 0)
		return host->fail(ENOENT, "there is one");
	strcpy(info->name, "one");
	info->arg_count = 2;
	info->arg_bytes[0] = 64;
	*kernel = prog; /* alive as long as it */
	if (d->broken == BREAK_kernel_name)
		memset(info->name, 'x', sizeof(info->name));
	if (d->broken == BREAK_kernel_args)
		info->arg_count = HAL_ARGS_MAX + 1;
	if (d->broken == BREAK_kernel_engines)
		info->engines = 4;
	return 0;
}

static int dev_program_bind(void *dev, void *prog, void *part, uint64_t *bytes)
{
	(void)dev, (void)prog, (void)part;
	*bytes = 16;
	return 0;
}

static int dev_program_unbind(void *dev, void *prog, void *part)
{
	(void)dev, (void)prog, (void)part;
	return 0;
}

static uint32_t dev_isolation(void *dev, const struct hal_bk_partition_desc *desc)
{
	const struct device *d = dev;

	(void)desc;
	return d->broken == BREAK_isolation ? 12 : HAL_ISOLATION_ADVISORY;
}

static int dev_counters(void *dev, struct hal_bk_counter *out, uint32_t max,
			uint64_t *at_ns)
{
	const struct device *d = dev;

	*at_ns = d->now;
	if (d->broken == BREAK_counters_many)
		return (int)max + 1;
	*out = (struct hal_bk_counter){.kind = HAL_BK_UNIT_NS, .total = d->now};
	if (d->broken == BREAK_counters_kind)
		out->kind = 7;
	if (d->broken == BREAK_counters_index)
		out->index = UINT32_MAX;
	return 1;
}

/* ---- hot -------------------------------------------------------------------------- */

static int dev_submit(void *dev, void *queue, const struct hal_bk_cmd *cmd)
{
	struct device *d = dev;

	if (d->broken == BREAK_again || d->count == COMMANDS)
		return -EAGAIN;
	d->commands[d->count].cmd = *cmd;
	d->commands[d->count++].queue = queue;
	return 0;
}

static void drop(struct device *d, uint32_t i)
{
	d->count--;
	memmove(&d->commands[i], &d->commands[i + 1],
		(d->count - i) * sizeof(d->commands[0]));
}

static void done(struct device *d, uint32_t i, int status, struct hal_bk_event *e)
{
	const struct hal_bk_cmd *cmd = &d->commands[i].cmd;

	memset(e, 0, sizeof(*e));
	e->kind = HAL_BK_DONE;
	e->cookie = cmd->cookie;
	e->status = status;
	e->start_ns = d->now;
	d->now += 100;
	e->end_ns = d->now;
	if (status == -EIO)
		strcpy(e->fault, "told to fault");
	d->told++;
	drop(d, i);
}

static int fails(const struct device *d, uint32_t i)
{
	return d->commands[i].cmd.op == HAL_OP_FILL &&
	       d->commands[i].cmd.fill.pattern == 1;
}

static int stays(const struct device *d, uint32_t i)
{
	return !d->killed && d->commands[i].cmd.op == HAL_OP_FILL &&
	       d->commands[i].cmd.fill.pattern == STAYS;
}

/* What is wrong with the event of a command. */
static void spoil(const struct device *d, struct hal_bk_event *e)
{
	switch (d->broken) {
	case BREAK_event_stranger:
		e->cookie = 0x1234;
		break;
	case BREAK_event_status:
		e->status = -EBUSY;
		break;
	case BREAK_event_killed:
		e->status = -ECANCELED;
		break;
	case BREAK_event_times:
		e->end_ns = e->start_ns - 1;
		break;
	case BREAK_event_endless_text:
		memset(e->fault, 'x', sizeof(e->fault));
		break;
	case BREAK_event_says:
		strcpy(e->fault, "all is well");
		break;
	case BREAK_event_kind:
		e->kind = 7;
		break;
	default:
		break;
	}
}

static uint32_t quiets(struct device *d, struct hal_bk_event *ev)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->queue_count; i++) {
		struct queue *q = d->queues[i];

		if (!q->quiet_due)
			continue;
		for (uint32_t c = 0; c < d->count && d->broken != BREAK_quiet_early;) {
			if (d->commands[c].queue == q)
				done(d, c, -ECANCELED, &ev[n++]);
			else
				c++;
		}
		q->quiet_due = 0;
		d->killed = 1;
		memset(&ev[n], 0, sizeof(ev[n]));
		ev[n].kind = HAL_BK_QUIET;
		ev[n++].cookie = q->cookie;
	}
	if (d->move_due) {
		d->move_due = 0;
		memset(&ev[n], 0, sizeof(ev[n]));
		ev[n].kind = HAL_BK_QUIET;
		ev[n].status = d->broken == BREAK_move_status ? 5 : 0;
		ev[n++].cookie = d->move_cookie;
	}
	return n;
}

static int dev_poll(void *dev, uint64_t until_ns, struct hal_bk_event *ev, uint32_t max)
{
	struct device *d = dev;
	uint32_t n = quiets(d, ev);
	uint32_t i = d->broken == BREAK_event_order && d->count > 1 ? 1 : 0;

	if (d->broken == BREAK_event_many)
		return (int)max + 1;
	if (d->broken == BREAK_quiet_stranger) {
		memset(&ev[n], 0, sizeof(ev[n]));
		ev[n].kind = HAL_BK_QUIET;
		ev[n++].cookie = 0x77;
	}
	if (n == 0 && d->count == 0 && until_ns != UINT64_MAX && until_ns > d->now &&
	    d->broken != BREAK_idle_stands)
		d->now = until_ns;
	if (n > 0 || d->count == 0 || stays(d, 0))
		return (int)n;
	if (fails(d, 0)) {
		const struct queue *q = d->commands[0].queue;

		done(d, 0, -EIO, &ev[n++]);
		while (d->count > 0 && d->commands[0].queue == q)
			done(d, 0, d->broken == BREAK_event_behind_fault ? 0 : -ECANCELED,
			     &ev[n++]);
		return (int)n;
	}
	done(d, i, 0, &ev[n]);
	spoil(d, &ev[n]);
	ev[n + 1] = ev[n];
	return (int)n + 1 + (d->broken == BREAK_event_twice);
}

static uint64_t dev_now(void *dev)
{
	struct device *d = dev;

	return d->broken == BREAK_time && d->told > 0 ? d->now / 2 : d->now;
}

static int dev_suspend(void *dev, void *queue, uint32_t mode, uint64_t cookie)
{
	struct queue *q = queue;

	(void)dev, (void)mode;
	q->cookie = cookie;
	q->quiet_due = 1;
	return 0;
}

static int dev_resume(void *dev, void *queue)
{
	(void)dev, (void)queue;
	return 0;
}

static int dev_resize(void *dev, void *part, const struct hal_bk_partition_desc *desc,
		      uint64_t cookie)
{
	struct device *d = dev;

	(void)part, (void)desc;
	d->move_cookie = cookie;
	d->move_due = 1;
	return 0;
}

static const struct hal_backend backend = {
	.size = sizeof(struct hal_backend),
	.abi = HAL_BACKEND_ABI,
	.name = "broken",
	.summary = "does one thing wrong; for tests",
	.score = -100,
	.option_count = sizeof(options) / sizeof(options[0]),
	.options = options,
	.cold_size = sizeof(struct hal_bk_cold),
	.hot_size = sizeof(struct hal_bk_hot),
	.extra_size = sizeof(struct hal_bk_extra),
	.cold =
		{
			.probe = dev_probe,
			.open = dev_open,
			.close = dev_close,
			.get_info = dev_get_info,
			.partition_create = dev_partition_create,
			.partition_destroy = dev_partition_destroy,
			.queue_create = dev_queue_create,
			.queue_destroy = dev_queue_destroy,
			.mem_alloc = dev_mem_alloc,
			.mem_free = dev_mem_free,
			.mem_write = dev_mem_write,
			.mem_read = dev_mem_read,
			.mem_map = dev_mem_map,
			.mem_unmap = dev_mem_unmap,
			.program_load = dev_program_load,
			.program_unload = dev_program_unload,
			.kernel_get = dev_kernel_get,
			.program_bind = dev_program_bind,
			.program_unbind = dev_program_unbind,
			.isolation = dev_isolation,
		},
	.hot =
		{
			.submit = dev_submit,
			.poll = dev_poll,
			.now = dev_now,
			.suspend = dev_suspend,
			.resume = dev_resume,
			.resize = dev_resize,
		},
	.extra =
		{
			.counters = dev_counters,
		},
};

__attribute__((visibility("default"))) const struct hal_backend *
hal_backend_entry(const struct hal_host *h);

const struct hal_backend *hal_backend_entry(const struct hal_host *h)
{
	host = h;
	return &backend;
}
