/* SPDX-License-Identifier: Apache-2.0 */
/* The software device: options, probe, open, what it says of itself, its extension. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct hal_host *ref_host;

/* Defaults of the table below, for a probe without a configuration. */
static const struct ref_options defaults = {
	.devices = 1,
	.units = 16,
	.rows = 1,
	.depth = 8,
	.memory = UINT64_C(64) << 20,
	.isolation = HAL_ISOLATION_ENFORCED,
	.map = true,
	.kernels = "",
};

static const struct hal_option_def options[] = {
	{"clock", HAL_OPTION_ENUM, 0, 0, "virtual|real", "virtual",
	 "virtual: hal_wait steps the device's time; real: CLOCK_MONOTONIC"},
	{"units", HAL_OPTION_INT, 1, 16384, NULL, "16", "number of compute units"},
	{"rows", HAL_OPTION_INT, 1, 16384, NULL, "1",
	 "rows of the grid of units; must divide units"},
	{"memory", HAL_OPTION_SIZE, 65536, INT64_C(1) << 40, NULL, "64M",
	 "bytes of device memory"},
	{"colors", HAL_OPTION_INT, 0, REF_COLORS_MAX, NULL, "0",
	 "number of memory channels that a partition can own, interleaved every 4096 "
	 "bytes; 0: no channels"},
	{"depth", HAL_OPTION_INT, 1, 1024, NULL, "8",
	 "commands that a queue of the device holds; hal.inflight beyond this has no "
	 "effect"},
	{"devices", HAL_OPTION_INT, 0, 64, NULL, "1", "number of devices"},
	{"preempt", HAL_OPTION_ENUM, 0, 0, "inside|between|none", "inside",
	 "where commands can be stopped; inside: within a command, between: between "
	 "commands, none: not at all"},
	{"isolation", HAL_OPTION_ENUM, 0, 0, "enforced|advisory|none", "enforced",
	 "isolation of compute units that the device reports"},
	{"resize", HAL_OPTION_ENUM, 0, 0, "live|idle|none", "live",
	 "when partitions can be resized; live: at any time, idle: only while quiet, "
	 "none: never"},
	{"load_ms", HAL_OPTION_INT, 0, 60000, NULL, "0",
	 "time that loading a program takes, in ms, as on devices that compile programs"},
	{"fold_ns", HAL_OPTION_INT, 0, 1000000000, NULL, "0",
	 "preempt=inside: a FOLD suspend stops a command at the next multiple of this "
	 "time; 0: no FOLD"},
	{"map", HAL_OPTION_BOOL, 0, 0, NULL, "yes", "buffers can be mapped"},
	{"kernels", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "shared libraries of kernels that images may name, separated by colons"},
};

static void read_options(const struct hal_bk_config *cfg, struct ref_options *o)
{
	*o = defaults;
	if (!cfg)
		return;
	o->real = ref_host->option_int(cfg, "clock") == 1;
	o->units = (uint32_t)ref_host->option_int(cfg, "units");
	o->rows = (uint32_t)ref_host->option_int(cfg, "rows");
	o->memory = (uint64_t)ref_host->option_int(cfg, "memory");
	o->colors = (uint32_t)ref_host->option_int(cfg, "colors");
	o->depth = (uint32_t)ref_host->option_int(cfg, "depth");
	o->devices = (uint32_t)ref_host->option_int(cfg, "devices");
	o->preempt = (uint32_t)ref_host->option_int(cfg, "preempt");
	/* The option lists the best first, the enum the worst. */
	o->isolation =
		HAL_ISOLATION_ENFORCED - (uint32_t)ref_host->option_int(cfg, "isolation");
	o->resize = (uint32_t)ref_host->option_int(cfg, "resize");
	o->load_ms = (uint32_t)ref_host->option_int(cfg, "load_ms");
	o->fold_ns = (uint32_t)ref_host->option_int(cfg, "fold_ns");
	o->map = ref_host->option_int(cfg, "map") != 0;
	o->kernels = ref_host->option_str(cfg, "kernels");
}

static int check_options(const struct ref_options *o, uint32_t index)
{
	if (index >= o->devices)
		return ref_host->fail(ENODEV, "ref:%u: there %s %u device%s", index,
				      o->devices == 1 ? "is" : "are", o->devices,
				      o->devices == 1 ? "" : "s");
	if (o->units % o->rows)
		return ref_host->fail(EINVAL,
				      "ref: units=%u cannot form a grid of rows=%u; "
				      "units must be a multiple of rows",
				      o->units, o->rows);
	return 0;
}

static uint64_t caps(const struct ref_options *o)
{
	uint64_t c = HAL_CAP_TIMESTAMP | HAL_CAP_FAULT_CONTAINED | HAL_CAP_SIMULATED |
		     HAL_CAP_PRIVATE | HAL_CAP_EVICT | HAL_CAP_HOST_COPY |
		     HAL_CAP_HOST_REGISTER | HAL_CAP_EXPORT | HAL_CAP_IMPORT;

	if (o->rows > 1)
		c |= HAL_CAP_GRID;
	if (!o->real)
		c |= HAL_CAP_VIRTUAL_CLOCK;
	if (o->map)
		c |= HAL_CAP_MAP;
	if (o->resize != REF_RESIZE_NONE)
		c |= HAL_CAP_RESIZE_IDLE;
	if (o->resize == REF_RESIZE_LIVE)
		c |= HAL_CAP_RESIZE_LIVE;
	if (o->colors)
		c |= HAL_CAP_COLORED_MEMORY | HAL_CAP_RECOLOR | HAL_CAP_BIMODAL;
	return c;
}

static void describe(const struct ref_options *o, struct hal_device_info *info)
{
	info->kind = HAL_KIND_CPU;
	snprintf(info->backend, sizeof(info->backend), "ref");
	if (o->rows > 1)
		snprintf(info->name, sizeof(info->name), "software device, %u x %u units",
			 o->rows, o->units / o->rows);
	else
		snprintf(info->name, sizeof(info->name), "software device, %u units",
			 o->units);
	info->memory_bytes = o->memory / REF_GRANULE * REF_GRANULE;
	info->memory_free = info->memory_bytes;
	info->caps = caps(o);
	info->verified = 0;
	info->unit_rows = o->rows;
	info->unit_cols = o->units / o->rows;
	info->partitions_max = o->units;
	info->guests_max = REF_GUESTS;
	info->colors = o->colors;
	info->granule_bytes = o->colors ? REF_GRANULE : 0;
	info->page_bytes = REF_GRANULE;
	info->compute_isolation = o->isolation;
	info->memory_isolation = HAL_ISOLATION_ADVISORY;
	info->clock_hz = UINT64_C(1000000000);
	switch (o->preempt) {
	case REF_PREEMPT_INSIDE:
		info->preempt = HAL_PREEMPT_INSIDE;
		info->suspend_modes = 1u << HAL_SUSPEND_DRAIN | 1u << HAL_SUSPEND_KILL;
		info->preempt_worst_ns = REF_KILL_NS;
		info->suspend_worst_ns[HAL_SUSPEND_KILL] = REF_KILL_NS;
		if (o->fold_ns) {
			info->suspend_modes |= 1u << HAL_SUSPEND_FOLD;
			info->suspend_worst_ns[HAL_SUSPEND_FOLD] = o->fold_ns;
		}
		break;
	case REF_PREEMPT_BETWEEN:
		info->preempt = HAL_PREEMPT_BETWEEN;
		info->suspend_modes = 1u << HAL_SUSPEND_DRAIN;
		break;
	default:
		info->preempt = HAL_PREEMPT_NONE;
	}
}

static int ref_probe(const struct hal_bk_config *cfg, struct hal_device_info *out,
		     uint32_t max)
{
	struct ref_options o;
	uint32_t i;
	int err;

	read_options(cfg, &o);
	err = check_options(&o, 0);
	if (err)
		return err;
	for (i = 0; i < o.devices && i < max; i++)
		describe(&o, &out[i]);
	return (int)o.devices;
}

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static __attribute__((noinline)) uint64_t since_open(struct ref_device *dev)
{
	uint64_t now = monotonic_ns() - dev->zero_ns;

	if (atomic_load_explicit(&dev->read_ns, memory_order_relaxed) < now)
		atomic_store_explicit(&dev->read_ns, now, memory_order_relaxed);
	return now;
}

uint64_t ref_now(void *device)
{
	struct ref_device *dev = device;

	return LIKELY(!dev->opt.real) ? dev->now_ns : since_open(dev);
}

static void ref_close(void *device)
{
	struct ref_device *dev = device;

	if (!dev)
		return;
	ref_memory_close(dev);
	ref_kernels_close(&dev->kernels);
	free(dev->heap);
	free(dev->owner);
	free(dev);
}

static int ref_open(const struct hal_bk_config *cfg, uint32_t index, void **out)
{
	struct ref_options o;
	struct ref_device *dev;
	uint32_t i;
	int err;

	read_options(cfg, &o);
	err = check_options(&o, index);
	if (err)
		return err;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return ref_host->fail(ENOMEM, "ref:%u: no memory for the device", index);
	dev->opt = o;
	dev->index = index;
	pthread_mutex_init(&dev->kernels.lock, NULL);
	dev->next_ns = REF_NEVER;
	dev->owner = malloc(o.units * sizeof(*dev->owner));
	dev->heap = calloc(o.units, sizeof(struct ref_partition *));
	if (!dev->owner || !dev->heap) {
		err = ref_host->fail(ENOMEM, "ref:%u: no memory for %u units", index,
				     o.units);
		goto out;
	}
	for (i = 0; i < o.units; i++)
		dev->owner[i] = -1;
	err = ref_memory_open(dev);
	if (!err)
		err = ref_kernels_open(&dev->kernels, o.kernels);
	if (err)
		goto out;
	if (o.real) {
		atomic_store_explicit(&dev->careful, true, memory_order_relaxed);
		dev->zero_ns = monotonic_ns();
	}
	*out = dev;
	return 0;
out:
	ref_close(dev);
	return err;
}

static int ref_get_info(void *device, struct hal_device_info *info)
{
	const struct ref_device *dev = device;

	describe(&dev->opt, info);
	info->memory_free = ref_memory_free(dev, UINT64_MAX);
	return 0;
}

/* ---- extension -------------------------------------------------------------------- */

void ref_notify_event(struct ref_device *dev, const struct ref_queue *q, uint32_t kind,
		      uint32_t op)
{
	struct hal_ref_event ev = {
		.kind = kind,
		.op = op,
		.partition = q->part->desc.index,
		.units = q->part->desc.units,
		.queue = q->id,
		.sequence = q->head,
		.now_ns = dev->now_ns,
	};
	dev->on_event(dev->on_event_user, &ev);
}

bool ref_inject_count(struct ref_device *dev, uint32_t op, int *err)
{
	struct ref_inject *in = &dev->inject[op];
	uint_fast64_t nth = atomic_load_explicit(&in->nth, memory_order_relaxed);

	if (!nth)
		return false;
	atomic_store_explicit(&in->nth, nth - 1, memory_order_relaxed);
	if (nth != 1)
		return false;
	*err = atomic_load_explicit(&in->err, memory_order_relaxed);
	return true;
}

static int ext_inject(void *native, uint32_t op, uint64_t nth, int err)
{
	struct ref_device *dev = native;

	if (op >= HAL_REF_OPS)
		return ref_host->fail(
			EINVAL,
			"ref: cannot inject a failure into the unknown operation %u", op);
	atomic_store_explicit(&dev->inject[op].err, err < 0 ? -err : err,
			      memory_order_relaxed);
	atomic_store_explicit(&dev->inject[op].nth, nth, memory_order_relaxed);
	atomic_store_explicit(&dev->watched, true, memory_order_relaxed);
	atomic_store_explicit(&dev->careful, true, memory_order_relaxed);
	return 0;
}

static int ext_unit_owners(void *native, int32_t *owners, uint32_t count)
{
	const struct ref_device *dev = native;
	uint32_t i;

	for (i = 0; i < count && i < dev->opt.units; i++)
		owners[i] = dev->owner[i];
	return (int)dev->opt.units;
}

static int ext_color_free(void *native, uint32_t color, uint64_t *bytes)
{
	const struct ref_device *dev = native;

	if (color >= ref_colors(dev))
		return ref_host->fail(EINVAL,
				      "ref: there is no colour %u; the device has %u",
				      color, ref_colors(dev));
	*bytes = ref_memory_free(dev, UINT64_C(1) << color);
	return 0;
}

static int ext_on_event(void *native,
			void (*fn)(void *user, const struct hal_ref_event *ev),
			void *user)
{
	struct ref_device *dev = native;

	dev->on_event = fn;
	dev->on_event_user = user;
	if (fn)
		atomic_store_explicit(&dev->watched, true, memory_order_relaxed);
	return 0;
}

static int ext_add_kernels(void *native, const struct hal_ref_kernel *kernels,
			   uint32_t count)
{
	struct ref_device *dev = native;

	return ref_kernels_add(&dev->kernels, kernels, count);
}

static const struct hal_ref_extension extension = {
	.size = sizeof(extension),
	.inject = ext_inject,
	.unit_owners = ext_unit_owners,
	.color_free = ext_color_free,
	.on_event = ext_on_event,
	.add_kernels = ext_add_kernels,
};

static const void *ref_extension(void *dev, const char *name)
{
	(void)dev;
	return strcmp(name, "ref") == 0 ? &extension : NULL;
}

/* ---- registration ----------------------------------------------------------------- */

static const struct hal_backend backend = {
	.size = sizeof(struct hal_backend),
	.abi = HAL_BACKEND_ABI,
	.name = "ref",
	.summary = "software device on the CPU: modelled units, kernels as C functions",
	.score = 1,
	.option_count = sizeof(options) / sizeof(options[0]),
	.options = options,
	.beside = HAL_BK_BESIDE_PROGRAM | HAL_BK_BESIDE_COPY,
	.cold_size = sizeof(struct hal_bk_cold),
	.hot_size = sizeof(struct hal_bk_hot),
	.extra_size = sizeof(struct hal_bk_extra),
	.flags = HAL_BK_IMAGES_FOREIGN | HAL_BK_ANY_THREAD,
	.cold =
		{
			.probe = ref_probe,
			.open = ref_open,
			.close = ref_close,
			.get_info = ref_get_info,
			.partition_create = ref_partition_create,
			.partition_destroy = ref_partition_destroy,
			.queue_create = ref_queue_create,
			.queue_destroy = ref_queue_destroy,
			.mem_alloc = ref_mem_alloc,
			.mem_free = ref_mem_free,
			.mem_write = ref_mem_write,
			.mem_read = ref_mem_read,
			.mem_map = ref_mem_map,
			.mem_unmap = ref_mem_unmap,
			.program_load = ref_program_load,
			.program_unload = ref_program_unload,
			.kernel_get = ref_kernel_get,
			.extension = ref_extension,
			.mem_register = ref_mem_register,
			.mem_export = ref_mem_export,
			.mem_import = ref_mem_import,
		},
	.hot =
		{
			.submit = ref_submit,
			.poll = ref_poll,
			.now = ref_now,
			.suspend = ref_suspend,
			.resume = ref_resume,
			.resize = ref_resize,
			.next = ref_next,
		},
	.extra =
		{
			.mem_swap = ref_mem_swap,
			.mem_out = ref_mem_out,
			.mem_in = ref_mem_in,
			.partition_widen = ref_partition_widen,
		},
};

const struct hal_backend *hal_backend_ref(const struct hal_host *host)
{
	if (host->abi != HAL_BACKEND_ABI) {
		host->fail(EPROTO,
			   "ref: this backend was built for backend ABI %u, but the "
			   "library has %u",
			   HAL_BACKEND_ABI, host->abi);
		return NULL;
	}
	ref_host = host;
	return &backend;
}
