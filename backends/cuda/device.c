/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device: options, probe, open, its clock, what it says of itself. */
#define _GNU_SOURCE
#include "internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How a driver that only stands in for one says so; see tests/fakes/cuda. */
#define STAND_IN_NAME "HAL stand-in"

const struct hal_host *cu_host;

static const struct cu_options defaults = {
	.library = "libcuda.so.1",
	.inflight = 32,
	.every = 8,
	.slice_ns = 50000,
	.way = CU_WAY_AUTO,
	.helper = "",
	.trial_ms = 20000,
};

static const struct hal_option_def options[] = {
	{"library", HAL_OPTION_STRING, 0, 0, NULL, "libcuda.so.1",
	 "file of the CUDA driver library; a process can use only one"},
	{"clock", HAL_OPTION_ENUM, 0, 0, "real|virtual", "real",
	 "real: time is the host's clock; virtual: time is stepped, which only a fake "
	 "driver supports"},
	{"inflight", HAL_OPTION_INT, 1, CU_INFLIGHT_MAX, NULL, "32",
	 "commands of one queue that the device may have at a time, at most 8 with "
	 "preempt=block; hal.inflight and hal.partition_inflight may lower it"},
	{"mark_every", HAL_OPTION_INT, 0, CU_INFLIGHT_MAX, NULL, "0",
	 "launches of a queue that are reported together, by one mark; 1: each by "
	 "itself; "
	 "0: a quarter of inflight"},
	{"hang_ms", HAL_OPTION_INT, 0, 3600000, NULL, "0",
	 "time after which a launch that has not ended is given up, together with its "
	 "queue; 0: never"},
	{"memory", HAL_OPTION_ENUM, 0, 0, "device|host|vmm", "device",
	 "where buffers that need not be mappable are placed; vmm: in device memory, "
	 "each in its partition's address range"},
	{"range", HAL_OPTION_SIZE, 0, INT64_C(1) << 44, NULL, "0",
	 "with memory=vmm: bytes of a partition's address range; 0: as many bytes as the "
	 "device has memory"},
	{"bounds", HAL_OPTION_BOOL, 0, 0, NULL, "no",
	 "with memory=vmm: keep kernels to their partition's address range, and refuse "
	 "programs that cannot be rewritten for this"},
	{"partitions", HAL_OPTION_ENUM, 0, 0, "none|green|mask|stream|auto", "auto",
	 "how units are assigned; none: the device is one unit; green: green contexts; "
	 "mask, stream: masks of launches, streams; auto: best by trial"},
	{"remainder", HAL_OPTION_INT, 0, CU_UNITS_MOST, NULL, "0",
	 "units that no partition gets, so that the program's own launches have units "
	 "apart from partitions; 0: none"},
	{"preempt", HAL_OPTION_ENUM, 0, 0, "between|block|restart", "between",
	 "between: stop queues between commands; block: also between blocks of launches "
	 "whose PTX can be rewritten; restart: also in loops of blocks"},
	{"slice_us", HAL_OPTION_INT, 0, 1000000, NULL, "50",
	 "with preempt=block or restart: time of the slices of best-effort launches, two "
	 "of which the device has at a time; 0: whole launches"},
	{"graphs", HAL_OPTION_BOOL, 0, 0, NULL, "no",
	 "submit the commands of recorded sequences as CUDA graphs, each as large as "
	 "inflight allows; needs partitions=none and preempt=between"},
	{"helper", HAL_OPTION_STRING, 0, 0, NULL, "",
	 "program that tries out the ways of partitions=auto; empty: hal-cuda-trial in "
	 "the library's folder"},
	{"trial_ms", HAL_OPTION_INT, 1, 600000, NULL, "20000",
	 "time limit of helper for each way, in ms"},
};

static void read_options(const struct hal_bk_config *cfg, struct cu_options *o)
{
	*o = defaults;
	if (!cfg)
		return;
	o->library = cu_host->option_str(cfg, "library");
	o->virtual_clock = cu_host->option_int(cfg, "clock") == 1;
	o->inflight = (uint32_t)cu_host->option_int(cfg, "inflight");
	o->every = (uint32_t)cu_host->option_int(cfg, "mark_every");
	o->block = cu_host->option_int(cfg, "preempt") != 0;
	o->restart = cu_host->option_int(cfg, "preempt") == 2;
	o->slice_ns = (uint64_t)cu_host->option_int(cfg, "slice_us") * 1000;
	if (o->block && o->inflight > CU_STOPS_MAX)
		o->inflight = CU_STOPS_MAX;
	if (!o->every)
		o->every = (o->inflight + 3) / 4;
	o->hang_ns = (uint64_t)cu_host->option_int(cfg, "hang_ms") * 1000000;
	o->host_memory = cu_host->option_int(cfg, "memory") == 1;
	o->vmm = cu_host->option_int(cfg, "memory") == 2;
	o->range = (uint64_t)cu_host->option_int(cfg, "range");
	o->bounds = cu_host->option_int(cfg, "bounds") == 1;
	o->way = (enum cu_way)cu_host->option_int(cfg, "partitions");
	o->remainder = (uint32_t)cu_host->option_int(cfg, "remainder");
	o->graphs = cu_host->option_int(cfg, "graphs") == 1;
	o->helper = cu_host->option_str(cfg, "helper");
	o->trial_ms = (uint32_t)cu_host->option_int(cfg, "trial_ms");
}

/* ---- what there is ----------------------------------------------------------------- */

static int read_numbers(struct cu_shape *s)
{
	const struct {
		uint32_t attribute;
		int *to;
	} all[] = {
		{CUA_MAJOR, &s->major},
		{CUA_MINOR, &s->minor},
		{CUA_MULTIPROCESSORS, &s->multiprocessors},
		{CUA_MAX_BLOCK_X, &s->max_block[0]},
		{CUA_MAX_BLOCK_X + 1, &s->max_block[1]},
		{CUA_MAX_BLOCK_X + 2, &s->max_block[2]},
		{CUA_MAX_GRID_X, &s->max_grid[0]},
		{CUA_MAX_GRID_X + 1, &s->max_grid[1]},
		{CUA_MAX_GRID_X + 2, &s->max_grid[2]},
		{CUA_MAX_SHARED, &s->max_shared},
		{CUA_MAX_SHARED_OPTIN, &s->max_shared_optin},
		{CUA_VMM, &s->vmm},
		{CUA_EXPORT_FD, &s->export_fd},
	};
	size_t i;
	int err = 0;

	for (i = 0; !err && i < sizeof(all) / sizeof(all[0]); i++)
		err = CU(NULL, cuDeviceGetAttribute, all[i].to, all[i].attribute,
			 s->device);
	return err;
}

static int read_shape(uint32_t index, struct cu_shape *s)
{
	size_t bytes = 0;
	char *p;
	int err;

	memset(s, 0, sizeof(*s));
	err = CU(NULL, cuDeviceGet, &s->device, (int)index);
	if (!err)
		err = CU(NULL, cuDeviceGetName, s->name, (int)sizeof(s->name), s->device);
	if (!err)
		err = CU(NULL, cuDeviceTotalMem_v2, &bytes, s->device);
	if (!err)
		err = CU(NULL, cuDeviceGetPCIBusId, s->bus_id, (int)sizeof(s->bus_id),
			 s->device);
	if (!err)
		err = read_numbers(s);
	s->name[sizeof(s->name) - 1] = 0;
	s->bus_id[sizeof(s->bus_id) - 1] = 0;
	for (p = s->bus_id; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	s->memory_bytes = bytes;
	cu_mig_of(s->device, s->name, s->mig);
	s->mig_alone = s->mig[0] && cu_mig_alone(s->mig);
	s->stand_in = strncmp(s->name, STAND_IN_NAME, strlen(STAND_IN_NAME)) == 0;
	return err;
}

static int count_devices(const struct cu_options *o)
{
	int count = 0;
	int err = cu_load(o->library);

	if (!err)
		err = CU(NULL, cuDeviceGetCount, &count);
	if (err)
		return err;
	return count > 0 ? count
			 : cu_host->fail(ENODEV, "cuda: the driver reports no device");
}

/* ---- what it says of itself -------------------------------------------------------- */

/*
 * Queues of one partition share the multiprocessors as the device likes, and every kernel
 * reaches all memory that the process has on it, but by what its code is rewritten to.  A
 * fault takes the process's whole context along.  Green contexts keep to their
 * multiprocessors, but what else of the device kernels share, and whether they get on
 * side by side, nobody promises.
 */
static void describe(const struct cu_options *o, const struct cu_shape *s,
		     enum cu_way way, uint32_t units, struct hal_device_info *info)
{
	info->kind = HAL_KIND_GPU;
	snprintf(info->backend, sizeof(info->backend), "cuda");
	snprintf(info->name, sizeof(info->name), "%.63s", s->name);
	snprintf(info->bus_id, sizeof(info->bus_id), "%.31s", s->bus_id);
	info->memory_bytes = s->memory_bytes;
	info->memory_free = s->memory_bytes;
	info->unit_rows = 1;
	info->unit_cols = units;
	info->partitions_max = units;
	info->compute_isolation =
		way != CU_WAY_NONE ? HAL_ISOLATION_ADVISORY : HAL_ISOLATION_NONE;
	info->memory_isolation = o->bounds ? HAL_ISOLATION_ADVISORY : HAL_ISOLATION_NONE;
	/* The whole instance is one partition: what others have the device keeps apart.
	 */
	if (s->mig[0] && way == CU_WAY_NONE) {
		info->compute_isolation = HAL_ISOLATION_ENFORCED;
		if (s->mig_alone)
			info->memory_isolation = HAL_ISOLATION_ENFORCED;
	}
	info->preempt = o->block ? HAL_PREEMPT_INSIDE : HAL_PREEMPT_BETWEEN;
	info->suspend_modes = 1u << HAL_SUSPEND_DRAIN;
	info->suspend_modes |= o->block ? 1u << HAL_SUSPEND_FOLD : 0;
	info->clock_hz = 1000000000;
	info->caps = HAL_CAP_TIMESTAMP | HAL_CAP_MAP | HAL_CAP_HOST_COPY;
	info->caps |= cu.cuMemHostRegister_v2 && cu.cuMemHostUnregister
			      ? HAL_CAP_HOST_REGISTER
			      : 0;
	info->caps |= cu_shares(o, s) ? HAL_CAP_EXPORT | HAL_CAP_IMPORT : 0;
	info->caps |= way == CU_WAY_MASK || way == CU_WAY_STREAM
			      ? HAL_CAP_RESIZE_IDLE | HAL_CAP_RESIZE_LIVE
			      : 0;
	info->caps |= cu_evicts(o, s) ? HAL_CAP_EVICT : 0;
	info->caps |= s->stand_in ? HAL_CAP_STAND_IN : 0;
	info->caps |= o->virtual_clock ? HAL_CAP_VIRTUAL_CLOCK | HAL_CAP_SIMULATED : 0;
}

/* Nothing is tried out for a list: of auto it tells what is kept. */
static int look_up(int device, enum cu_way *way, uint32_t *units)
{
	char why[HAL_CUDA_SAID];
	struct cu_verdict *v;
	uint32_t i;

	*units = 1;
	if (*way == CU_WAY_GREEN)
		return cu_green_count(device, units);
	if (*way != CU_WAY_AUTO)
		return 0;
	*way = CU_WAY_NONE;
	v = calloc(1, sizeof(*v));
	if (!v)
		return cu_host->fail(
			ENOMEM, "cuda: no memory to read the results of partitions=auto");
	cu_verdict_of(device, v);
	cu_kept_read(v, why);
	for (i = 0; i < CU_WAYS && *way == CU_WAY_NONE; i++) {
		const struct cu_tried *t = cu_verdict_get(v, cu_way_order[i]);

		if (!t || t->err)
			continue;
		*way = cu_way_order[i];
		*units = *way == CU_WAY_GREEN ? t->units : t->mask.count;
	}
	free(v);
	return 0;
}

/* Return whether one of the first count devices is that instance. */
static bool is_shown(const struct cu_mig *m, uint32_t count)
{
	char name[64], uuid[CU_MIG_UUID];
	uint32_t i;
	int device;

	for (i = 0; i < count; i++) {
		name[0] = 0;
		if (cu.cuDeviceGet(&device, (int)i) ||
		    cu.cuDeviceGetName(name, (int)sizeof(name), device))
			continue;
		cu_mig_of(device, name, uuid);
		if (strcmp(uuid, m->uuid) == 0)
			return true;
	}
	return false;
}

/* MIG instances that CUDA does not show this process, in NVML's order. */
static uint32_t list_hidden(uint32_t count, struct cu_mig *out)
{
	const uint32_t n = cu_mig_list(out, CU_MIG_MOST);
	uint32_t i, hidden = 0;

	for (i = 0; i < n; i++)
		if (!is_shown(&out[i], count))
			out[hidden++] = out[i];
	return hidden;
}

static void describe_hidden(const struct cu_mig *m, struct hal_device_info *info)
{
	info->kind = HAL_KIND_GPU;
	snprintf(info->backend, sizeof(info->backend), "cuda");
	snprintf(info->name, sizeof(info->name), "unusable: %s %.10s", m->uuid,
		 m->profile);
	info->memory_bytes = m->memory_bytes;
	info->unit_rows = info->unit_cols = info->partitions_max = 1;
	info->compute_isolation = HAL_ISOLATION_ENFORCED;
}

/* Those that CUDA does not show come behind those that it does. */
static int list_more(int count, struct hal_device_info *out, uint32_t max)
{
	struct cu_mig *hidden = calloc(CU_MIG_MOST, sizeof(*hidden));
	const uint32_t n = hidden ? list_hidden((uint32_t)count, hidden) : 0;
	uint32_t i;

	for (i = 0; i < n && (uint32_t)count + i < max; i++)
		describe_hidden(&hidden[i], &out[(uint32_t)count + i]);
	free(hidden);
	return count + (int)n;
}

/* Fail with what to do where index is a MIG instance that CUDA does not show. */
static int refuse_index(uint32_t index, int count)
{
	struct cu_mig *hidden = calloc(CU_MIG_MOST, sizeof(*hidden));
	const uint32_t n = hidden ? list_hidden((uint32_t)count, hidden) : 0;
	const uint32_t i = index - (uint32_t)count;
	int err;

	if (i < n)
		err = cu_host->fail(
			ENOTSUP,
			"cuda:%u: CUDA does not show this process MIG instance %s (%s of "
			"GPU %u): set CUDA_VISIBLE_DEVICES=%s before the process starts, "
			"and open cuda:0",
			index, hidden[i].uuid, hidden[i].profile, hidden[i].gpu,
			hidden[i].uuid);
	else
		err = cu_host->fail(ENODEV,
				    "cuda:%u: no such device: the driver reports %d",
				    index, count);
	free(hidden);
	return err;
}

/* One that cannot be read keeps its number, so that others keep theirs. */
static int cu_probe(const struct hal_bk_config *cfg, struct hal_device_info *out,
		    uint32_t max)
{
	struct cu_options o;
	struct cu_shape s;
	enum cu_way way;
	uint32_t i, units;
	int count;

	read_options(cfg, &o);
	count = count_devices(&o);
	for (i = 0; count > 0 && i < (uint32_t)count && i < max; i++) {
		int err = read_shape(i, &s);

		way = o.way;
		if (!err)
			err = look_up(s.device, &way, &units);
		if (!err && units > o.remainder)
			units -= o.remainder;
		if (err)
			snprintf(out[i].name, sizeof(out[i].name), "unusable: %s",
				 strerrorname_np(-err));
		else
			describe(&o, &s, way, units, &out[i]);
	}
	return count > 0 ? list_more(count, out, max) : count;
}

static int cu_get_info(void *device, struct hal_device_info *info)
{
	const struct cu_device *dev = device;

	describe(&dev->opt, &dev->shape, cu_way_of(dev), cu_units(dev), info);
	info->memory_free = stream_bytes_left(&dev->memory);
	cu_colors_describe(dev, info);
	return 0;
}

/* ---- clock ------------------------------------------------------------------------- */

/* Device time is the host's: what the driver tells are durations. */
uint64_t cu_now(void *device)
{
	return stream_now(device);
}

/* Virtual clock: a call that waited has let time go by. */
void cu_catch_up(struct cu_device *dev)
{
	uint64_t now;
	uint32_t idle;

	if (!dev->opt.virtual_clock)
		return;
	cu.advance(0, &now, &idle);
	stream_raise(&dev->base, now);
}

static int start_clock(struct cu_device *dev)
{
	uint64_t now;
	uint32_t idle;

	if (!dev->opt.virtual_clock) {
		dev->base.zero_ns = cu_now(dev);
		return 0;
	}
	if (!cu.drive || !cu.advance || !cu.busy)
		return cu_host->fail(ENOTSUP,
				     "cuda:%u: clock=virtual needs a fake driver: the "
				     "time of %s cannot be stepped",
				     dev->index, dev->shape.name);
	cu.drive(1);
	cu.advance(0, &now, &idle);
	dev->base.zero_ns = now;
	return 0;
}

/* The text of a device that is lost; -EIO. */
int cu_gone(struct cu_device *dev)
{
	const uint32_t r = atomic_load(&dev->base.lost);

	return cu_host->fail(EIO,
			     "cuda:%u: the device is lost: %s (%u); no CUDA call of this "
			     "process works any more",
			     dev->index, cu_result_name(r), r);
}

/* ---- open and close ---------------------------------------------------------------- */

/* False: something hangs: the driver would wait for it, and all is the process's end's,
 * the context too. */
static bool put_away(struct cu_device *dev)
{
	uint32_t mode;
	int err = cu_push(dev, &mode);

	if (err)
		err = cu_push(dev, &mode);
	if (err)
		return true;
	cu_free_hanging(dev);
	if (dev->base.hanging) {
		cu_pop(mode);
		atomic_store(&dev->base.lost, CUR_LAUNCH_TIMEOUT);
		return false;
	}
	cu_remainder_close(dev);
	cu_lane_drop(dev);
	cu_colors_drop(dev);
	cu_give_back(dev, CU_KIND_STREAM, dev->flags, &err);
	(void)stream_later_stop(&dev->later, false);
	stream_later_finish(&dev->later);
	cu_green_close(dev); /* behind its streams */
	cu_pop(mode);
	return true;
}

static void cu_close(void *device)
{
	struct cu_device *dev = device;
	struct stream_queue *q;
	bool ours = true;

	if (!dev)
		return;
	cu_forget(dev);
	if (dev->context && !atomic_load(&dev->base.lost))
		ours = put_away(dev);
	cu_colors_drop(dev);
	if (!stream_later_stop(&dev->later, dev->base.hanging != NULL))
		return; /* its thread may need the device until the process ends */
	cu_remainder_close(dev); /* what of it is not the driver's */
	while ((q = dev->base.hanging)) {
		dev->base.hanging = q->older;
		free(((struct cu_queue *)q)->stops);
		cu_graphs_free((struct cu_queue *)q);
		free(q);
	}
	if (dev->context && ours && cu.cuDevicePrimaryCtxRelease_v2(dev->shape.device))
		(void)cu.cuDevicePrimaryCtxRelease_v2(dev->shape.device);
	if (dev->opt.virtual_clock && cu.drive && dev->context)
		cu.drive(0);
	stream_offers_fini(&dev->offers);
	stream_regions_fini(&dev->regions);
	stream_later_fini(&dev->later);
	pthread_mutex_destroy(&dev->programs_lock);
	stream_lane_fini(&dev->lane.base);
	cu_remainder_fini(dev);
	pthread_mutex_destroy(&dev->range_lock);
	pthread_mutex_destroy(&dev->base.queues_lock);
	cu_green_close(dev);
	free(dev->mask);
	cu_ranges_free(dev);
	free(dev);
}

static int fill_in(struct cu_device *dev)
{
	size_t left = 0, total = 0;
	int err = CU(dev, cuMemGetInfo_v2, &left, &total);

	if (!err)
		err = CU(dev, cuCtxGetStreamPriorityRange, &dev->least_priority,
			 &dev->greatest_priority);
	dev->memory.all = left;
	if (!err)
		err = cu_lane_make(dev);
	if (!err && dev->opt.block)
		err = CU(dev, cuStreamCreateWithPriority, &dev->flags,
			 CU_STREAM_NON_BLOCKING, dev->greatest_priority);
	if (err)
		dev->flags = NULL;
	return err;
}

static int open_way(struct cu_device *dev)
{
	if (dev->opt.way == CU_WAY_AUTO)
		return cu_ladder(dev);
	snprintf(dev->said, sizeof(dev->said), "partitions=%s%s",
		 cu_way_names[dev->opt.way],
		 dev->opt.way == CU_WAY_NONE ? "" : ", tried out at open");
	if (dev->opt.way == CU_WAY_GREEN)
		return cu_green_open(dev, NULL);
	return dev->opt.way == CU_WAY_NONE ? 0 : cu_mask_open(dev, dev->opt.way, NULL);
}

static int start(struct cu_device *dev)
{
	uint32_t mode;
	int err = start_clock(dev);

	if (err)
		return err;
	err = CU(dev, cuDevicePrimaryCtxRetain, &dev->context, dev->shape.device);
	if (err) {
		dev->context = NULL;
		if (dev->opt.virtual_clock)
			cu.drive(0);
		return err;
	}
	err = cu_push(dev, &mode);
	if (err)
		return err;
	err = fill_in(dev);
	if (!err && dev->opt.bounds)
		err = cu_fence_open(dev);
	if (!err && (dev->opt.vmm || cu_shares(&dev->opt, &dev->shape) ||
		     cu_evicts(&dev->opt, &dev->shape)))
		err = cu_range_open(dev);
	if (!err)
		err = open_way(dev);
	if (!err)
		err = cu_remainder_open(dev);
	if (!err && dev->opt.graphs)
		err = cu_graphs_check(dev);
	cu_pop(mode);
	return err;
}

static int cu_open(const struct hal_bk_config *cfg, uint32_t index, void **out)
{
	static atomic_ullong opens;
	struct cu_device *dev;
	struct cu_options o;
	struct cu_shape s;
	int err, count;

	read_options(cfg, &o);
	count = count_devices(&o);
	if (count < 0)
		return count;
	if (index >= (uint32_t)count)
		return refuse_index(index, count);
	err = read_shape(index, &s);
	if (err)
		return err;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return cu_host->fail(ENOMEM, "cuda:%u: no memory for the device", index);
	dev->index = index;
	dev->id = atomic_fetch_add(&opens, 1) + 1;
	dev->opt = o;
	dev->base.inflight_max = o.inflight;
	dev->base.hang_ns = o.hang_ns;
	dev->base.virtual_clock = o.virtual_clock;
	dev->shape = s;
	stream_offers_init(&dev->offers, cu_host, "cuda", index);
	stream_regions_init(&dev->regions, cu_host, "cuda", index);
	cu_later_init(dev);
	(void)pthread_mutex_init(&dev->programs_lock, NULL);
	(void)pthread_mutex_init(&dev->range_lock, NULL);
	(void)pthread_mutex_init(&dev->base.queues_lock, NULL);
	cu_lane_init(dev);
	cu_remainder_init(dev);
	err = start(dev);
	if (err)
		cu_close(dev);
	else
		*out = dev;
	return err;
}

/* ---- registration ------------------------------------------------------------------ */

static const struct hal_backend backend = {
	.size = sizeof(struct hal_backend),
	.abi = HAL_BACKEND_ABI,
	.name = "cuda",
	.summary = "NVIDIA GPUs through the CUDA driver",
	.score = 60,
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.beside = HAL_BK_BESIDE_PROGRAM | HAL_BK_BESIDE_COPY | HAL_BK_BESIDE_MEMORY |
		  HAL_BK_BESIDE_QUEUE,
	.hot_size = sizeof(struct hal_bk_hot),
	.flags = HAL_BK_IMAGES_FOREIGN | HAL_BK_SIDE_BY_SIDE | HAL_BK_ANY_THREAD,
	.cold_size = sizeof(struct hal_bk_cold),
	.extra_size = sizeof(struct hal_bk_extra),
	.hot = {.submit = cu_submit,
		.poll = cu_poll,
		.now = cu_now,
		.suspend = cu_suspend,
		.resume = cu_resume,
		.resize = cu_resize,
		.next = cu_next,
		.leave = cu_leave},
	.cold = {.probe = cu_probe,
		 .open = cu_open,
		 .close = cu_close,
		 .get_info = cu_get_info,
		 .partition_create = cu_partition_create,
		 .partition_destroy = cu_partition_destroy,
		 .queue_create = cu_queue_create,
		 .queue_destroy = cu_queue_destroy,
		 .mem_alloc = cu_mem_alloc,
		 .mem_free = cu_mem_free,
		 .mem_write = cu_mem_write,
		 .mem_read = cu_mem_read,
		 .mem_clear = cu_mem_clear,
		 .mem_register = cu_mem_register,
		 .mem_export = cu_mem_export,
		 .mem_import = cu_mem_import,
		 .mem_map = cu_mem_map,
		 .mem_unmap = cu_mem_unmap,
		 .program_load = cu_program_load,
		 .program_unload = cu_program_unload,
		 .kernel_get = cu_kernel_get,
		 .colors_set = cu_colors_set,
		 .extension = cu_extension},
	.extra = {.mem_out = cu_mem_out, .mem_in = cu_mem_in},
};

const struct hal_backend *hal_backend_cuda(const struct hal_host *host)
{
	cu_host = host;
	if (host->abi == HAL_BACKEND_ABI)
		return &backend;
	host->fail(
		EPROTO,
		"cuda: this backend was built for backend ABI %u, but the library has %u",
		HAL_BACKEND_ABI, host->abi);
	return NULL;
}
