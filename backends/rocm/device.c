/* SPDX-License-Identifier: Apache-2.0 */
/* The ROCm device: options, probe, open, its clock, what it says of itself. */
#define _GNU_SOURCE
#include "internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STAND_IN_NAME "HAL stand-in" /* how a library that only stands in says so */

const struct hal_host *rocm_host;

static const struct hal_option_def options[] = {
	{"library", HAL_OPTION_STRING, 0, 0, NULL, "any",
	 "file of the HIP library, of which a process can use only one; any: "
	 "libamdhip64.so.6 or .5"},
	{"clock", HAL_OPTION_ENUM, 0, 0, "real|virtual", "real",
	 "real: time is the host's clock; virtual: time is stepped, which only a fake "
	 "driver supports"},
	{"inflight", HAL_OPTION_INT, 1, ROCM_INFLIGHT_MAX, NULL, "32",
	 "commands of one queue that the device may have at a time, at most 8 with "
	 "preempt=block; hal.inflight and hal.partition_inflight may lower it"},
	{"mark_every", HAL_OPTION_INT, 0, ROCM_INFLIGHT_MAX, NULL, "0",
	 "launches of a stream that are reported together, by one mark; 1: each by "
	 "itself; 0: a quarter of inflight"},
	{"hang_ms", HAL_OPTION_INT, 0, 3600000, NULL, "0",
	 "time after which a launch that has not ended is given up, together with its "
	 "queue; 0: never"},
	{"memory", HAL_OPTION_ENUM, 0, 0, "device|host", "device",
	 "where buffers that need not be mappable are placed"},
	{"partitions", HAL_OPTION_ENUM, 0, 0, "none|engines|cu", "none",
	 "what a unit is; none: the whole device; engines: a CU of each shader engine, "
	 "or an XCC; cu: a single CU, or a pair"},
	{"queues", HAL_OPTION_ENUM, 0, 0, "auto|hsa|stream", "auto",
	 "queues of partitions; hsa: of HSA, whose masks change while kernels run; "
	 "stream: HIP streams; auto: hsa if available and if each unit was tried out"},
	{"preempt", HAL_OPTION_ENUM, 0, 0, "between|block", "between",
	 "between: stop queues between commands only; block: also between the blocks of "
	 "a launch, where the kernel uses hal/device/hal_preempt.h"},
	{"topology", HAL_OPTION_STRING, 0, 0, NULL, "/sys/class/kfd/kfd/topology/nodes",
	 "folder of the kernel driver's topology nodes, which partitions need"},
};

static void read_options(const struct hal_bk_config *cfg, struct rocm_options *o)
{
	if (!cfg) {
		*o = (struct rocm_options){.library = "any", .inflight = 32, .every = 8};
		return;
	}
	o->library = rocm_host->option_str(cfg, "library");
	o->topology = rocm_host->option_str(cfg, "topology");
	o->inflight = (uint32_t)rocm_host->option_int(cfg, "inflight");
	o->every = (uint32_t)rocm_host->option_int(cfg, "mark_every");
	o->block = rocm_host->option_int(cfg, "preempt") == 1;
	if (o->block && o->inflight > ROCM_STOPS_MAX)
		o->inflight = ROCM_STOPS_MAX;
	if (!o->every)
		o->every = (o->inflight + 3) / 4;
	o->virtual_clock = rocm_host->option_int(cfg, "clock") == 1;
	o->bound_ns = 1000000 * (uint64_t)rocm_host->option_int(cfg, "hang_ms");
	o->host_memory = rocm_host->option_int(cfg, "memory") == 1;
	o->partitions = (enum rocm_partitions)rocm_host->option_int(cfg, "partitions");
	o->queues = (enum rocm_queues)rocm_host->option_int(cfg, "queues");
}

/* ---- what there is ----------------------------------------------------------------- */

static int read_limits(struct rocm_shape *s)
{
	const struct {
		int *to;
		uint32_t attribute, count;
	} all[] = {
		{s->max_block, HIPA_MAX_BLOCK_X, 3},
		{s->max_grid, HIPA_MAX_GRID_X, 3},
		{&s->max_threads, HIPA_MAX_THREADS_PER_BLOCK, 1},
		{&s->multiprocessors, HIPA_MULTIPROCESSORS, 1},
		{&s->max_shared, HIPA_MAX_SHARED, 1},
	};
	uint32_t i, k;
	int err = 0;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (k = 0; !err && k < all[i].count; k++)
			err = HIP(NULL, hipDeviceGetAttribute, all[i].to + k,
				  all[i].attribute + k, s->device);
	return err;
}

static int read_properties(struct rocm_shape *s)
{
	struct hip_properties *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return rocm_host->fail(ENOMEM, "rocm: no memory for properties");
	err = HIP(NULL, hipGetDeviceProperties, p, s->device);
	snprintf(s->name, sizeof(s->name), "%.63s", p->name);
	snprintf(s->arch, sizeof(s->arch), "%.63s", p->arch);
	/* Some releases know no name. */
	if (!s->name[0])
		snprintf(s->name, sizeof(s->name), "AMD GPU, %.50s", s->arch);
	free(p);
	return err;
}

static int read_memory(struct rocm_shape *s)
{
	size_t left = 0, total = 0;
	int was = 0, err = HIP(NULL, hipGetDevice, &was);

	if (!err)
		err = HIP(NULL, hipSetDevice, s->device);
	if (!err)
		err = HIP(NULL, hipMemGetInfo, &left, &total);
	if (hip.hipSetDevice(was))
		(void)hip.hipSetDevice(was);
	s->memory_bytes = total;
	return err;
}

/* Releases before 6.0 know no such attribute. */
static int read_sharing(struct rocm_shape *s)
{
	int err = 0;

	if (hip.hipRuntimeGetVersion)
		err = HIP(NULL, hipRuntimeGetVersion, &s->version);
	if (!err && rocm_share_calls(s))
		err = HIP(NULL, hipDeviceGetAttribute, &s->vmm, HIPA_VMM, s->device);
	return err;
}

static int read_shape(uint32_t index, struct rocm_shape *s)
{
	size_t i;
	int err;

	memset(s, 0, sizeof(*s));
	s->device = (int)index;
	err = read_properties(s);
	if (!err)
		err = HIP(NULL, hipDeviceGetPCIBusId, s->bus_id, (int)sizeof(s->bus_id),
			  s->device);
	if (!err)
		err = read_limits(s);
	if (!err)
		err = read_memory(s);
	if (!err)
		err = read_sharing(s);
	s->bus_id[sizeof(s->bus_id) - 1] = 0;
	for (i = 0; s->bus_id[i]; i++)
		s->bus_id[i] = (char)tolower((unsigned char)s->bus_id[i]);
	s->stand_in = strncmp(s->name, STAND_IN_NAME, sizeof(STAND_IN_NAME) - 1) == 0;
	return err;
}

/* What of the environment changes what a mask does, where it cannot be read back. */
static int check_environment(const struct rocm_options *o)
{
	/* A queue of HSA's says what it has. */
	if (!secure_getenv("HSA_CU_MASK") || o->queues == ROCM_QUEUES_HSA)
		return 0;
	return rocm_host->fail(
		ENOTSUP, "rocm: partitions cannot be used while HSA_CU_MASK is set, as "
			 "masks would have fewer CUs than reported; unset it");
}

int rocm_find_units(const struct rocm_options *o, const struct rocm_shape *s,
		    struct rocm_units *u)
{
	struct rocm_topology t;
	int err;

	memset(u, 0, sizeof(*u));
	if (o->partitions == ROCM_WHOLE)
		return 0;
	err = check_environment(o);
	if (!err)
		err = rocm_topology_read(o->topology, s->bus_id, &t);
	return err ? err
		   : rocm_topology_units(&t, (uint32_t)s->multiprocessors,
					 o->partitions == ROCM_CUS, u);
}

static int count_devices(const struct rocm_options *o)
{
	int n = 0, err = rocm_load(o->library);

	if (!err)
		err = HIP(NULL, hipGetDeviceCount, &n);
	if (!err && n <= 0)
		err = rocm_host->fail(ENODEV, "rocm: HIP reports no device");
	return err ? err : n;
}

/* ---- what it says of itself -------------------------------------------------------- */

/*
 * Partitions of masks keep to their CUs, but share caches, memory and the front end; HIP
 * has no word on whether two of them get on side by side.  A fault ends the process with
 * the releases that abort, and takes the device along with the others.
 */
static void describe(const struct rocm_options *o, const struct rocm_shape *s,
		     const struct rocm_units *u, bool shares,
		     struct hal_device_info *info)
{
	const bool split = u->count > 0;

	info->kind = HAL_KIND_GPU;
	snprintf(info->backend, sizeof(info->backend), "rocm");
	memcpy(info->name, s->name, sizeof(s->name));
	memcpy(info->bus_id, s->bus_id, sizeof(s->bus_id));
	info->memory_bytes = info->memory_free = s->memory_bytes;
	info->unit_rows = 1;
	info->unit_cols = info->partitions_max = split ? u->count : 1;
	info->compute_isolation = split ? HAL_ISOLATION_ADVISORY : HAL_ISOLATION_NONE;
	info->memory_isolation = HAL_ISOLATION_NONE;
	info->preempt = HAL_PREEMPT_BETWEEN;
	info->suspend_modes = 1u << HAL_SUSPEND_DRAIN;
	if (o->block) {
		info->preempt = HAL_PREEMPT_INSIDE;
		info->suspend_modes |= 1u << HAL_SUSPEND_FOLD;
	}
	info->clock_hz = 1000000000;
	info->caps = HAL_CAP_TIMESTAMP | HAL_CAP_MAP | HAL_CAP_HOST_COPY;
	if (hip.hipHostRegister && hip.hipHostUnregister)
		info->caps |= HAL_CAP_HOST_REGISTER;
	if (shares)
		info->caps |= HAL_CAP_EXPORT | HAL_CAP_IMPORT | HAL_CAP_EVICT;
	if (split)
		info->caps |= HAL_CAP_RESIZE_IDLE | HAL_CAP_RESIZE_LIVE;
	if (s->stand_in)
		info->caps |= HAL_CAP_STAND_IN;
	if (o->virtual_clock)
		info->caps |= HAL_CAP_VIRTUAL_CLOCK | HAL_CAP_SIMULATED;
}

/* One that cannot be read keeps its place. */
static int rocm_probe(const struct hal_bk_config *cfg, struct hal_device_info *out,
		      uint32_t max)
{
	struct rocm_options o;
	struct rocm_shape s;
	struct rocm_units u;
	int i, count;

	read_options(cfg, &o);
	count = count_devices(&o);
	for (i = 0; i < count && (uint32_t)i < max; i++) {
		int err = read_shape((uint32_t)i, &s);

		if (!err)
			err = rocm_find_units(&o, &s, &u);
		if (!err)
			describe(&o, &s, &u, s.vmm && !o.host_memory, &out[i]);
		else
			snprintf(out[i].name, sizeof(out[i].name), "unusable: %s",
				 strerrorname_np(-err));
	}
	return count;
}

static int rocm_get_info(void *device, struct hal_device_info *info)
{
	const struct rocm_device *dev = device;

	describe(&dev->opt, &dev->shape, &dev->units, dev->share.granule != 0, info);
	info->memory_free = stream_bytes_left(&dev->memory);
	/* Whatever it runs, HSA ends a queue. */
	if (dev->hsa.on)
		info->suspend_modes |= 1u << HAL_SUSPEND_KILL;
	return 0;
}

/* ---- clock ------------------------------------------------------------------------- */

uint64_t rocm_now(void *device)
{
	return stream_now(device);
}

/* Virtual clock: behind a call that waited. */
void rocm_catch_up(struct rocm_device *dev)
{
	uint64_t now;
	uint32_t idle;

	if (!dev->opt.virtual_clock)
		return;
	hip.advance(0, &now, &idle);
	stream_raise(&dev->base, now);
}

static int start_clock(struct rocm_device *dev)
{
	uint32_t idle;

	if (!dev->opt.virtual_clock) {
		dev->base.zero_ns = rocm_now(dev);
	} else if (!hip.drive || !hip.advance || !hip.busy) {
		dev->opt.virtual_clock = dev->base.virtual_clock = false;
		return rocm_host->fail(ENOTSUP,
				       "rocm:%u: clock=virtual needs a fake driver: the "
				       "time of %s cannot be stepped",
				       dev->index, dev->shape.name);
	} else {
		hip.drive(1);
		hip.advance(0, &dev->base.zero_ns, &idle);
	}
	return 0;
}

int rocm_gone(struct rocm_device *dev)
{
	const uint32_t r = atomic_load(&dev->base.lost);

	return rocm_host->fail(EIO, "rocm:%u: the device is lost: %s (%u)", dev->index,
			       rocm_result_name(r), r);
}

/* ---- open and close ---------------------------------------------------------------- */

static void put_away(struct rocm_device *dev)
{
	struct rocm_caller was;
	int err = rocm_push(dev, &was);

	if (err && rocm_push(dev, &was))
		return;
	rocm_free_hanging(dev);
	rocm_code_drop(dev, &dev->hsa.loaded, &err);
	/* While something hangs the library would wait for it: the end of the process
	 * releases all. */
	if (!dev->base.hanging) {
		rocm_lane_drop(dev);
		(void)stream_later_stop(&dev->later, false);
		stream_later_finish(&dev->later);
	}
	rocm_pop(dev, was);
}

static void rocm_close(void *device)
{
	struct rocm_device *dev = device;
	struct rocm_queue *q;

	if (!dev)
		return;
	rocm_leave(dev);
	if (!atomic_load(&dev->base.lost))
		put_away(dev);
	if (!stream_later_stop(&dev->later, dev->base.hanging != NULL))
		return; /* its thread may need the device until the process ends */
	if (dev->hsa.loaded.code)
		rocm_code_keep(dev->hsa.loaded.code);
	while ((q = (struct rocm_queue *)dev->base.hanging)) {
		dev->base.hanging = q->base.older;
		if (q->aql)
			rocm_aql_keep(q->aql);
		if (q->next)
			rocm_aql_keep(q->next);
		free(q->stops);
		free(q);
	}
	rocm_green_close(dev);
	if (dev->opt.virtual_clock)
		hip.drive(0);
	stream_lane_fini(&dev->lane.base);
	rocm_remainder_fini(dev);
	pthread_mutex_destroy(&dev->programs_lock);
	pthread_mutex_destroy(&dev->base.queues_lock);
	stream_offers_fini(&dev->offers);
	stream_regions_fini(&dev->regions);
	rocm_forget_later(dev);
	rocm_share_close(dev);
	free(dev);
}

/* Masks, each tried out: of HSA's queues, or of streams. */
static int split(struct rocm_device *dev)
{
	int err = -ENOTSUP;

	if (dev->opt.queues != ROCM_QUEUES_STREAM)
		err = rocm_try_hsa(dev);
	if (!err || dev->opt.queues == ROCM_QUEUES_HSA)
		return err;
	if (atomic_load(&dev->base.lost))
		return rocm_gone(dev);
	err = rocm_try_masks(dev);
	if (!err)
		err = rocm_green_open(dev);
	return err ? err : rocm_try_out(dev);
}

static int fill_in(struct rocm_device *dev)
{
	size_t left = 0, total = 0;
	int err = HIP(dev, hipDeviceGetStreamPriorityRange, &dev->least_priority,
		      &dev->greatest_priority);

	if (!err)
		err = HIP(dev, hipMemGetInfo, &left, &total);
	dev->memory.all = left;
	if (!err)
		err = rocm_share_open(dev);
	if (!err)
		err = rocm_lane_make(dev);
	if (!err && dev->units.count)
		err = split(dev);
	return err;
}

static int start(struct rocm_device *dev)
{
	struct rocm_caller was;
	int err = start_clock(dev);

	if (!err)
		err = rocm_find_units(&dev->opt, &dev->shape, &dev->units);
	if (!err)
		err = rocm_push(dev, &was);
	if (err)
		return err;
	err = fill_in(dev);
	rocm_pop(dev, was);
	return err;
}

static int rocm_open(const struct hal_bk_config *cfg, uint32_t index, void **out)
{
	static atomic_ullong opens;
	struct rocm_device *dev = calloc(1, sizeof(*dev));
	int err, count;

	if (!dev)
		return rocm_host->fail(ENOMEM, "rocm:%u: no memory for the device",
				       index);
	read_options(cfg, &dev->opt);
	dev->base.inflight_max = dev->opt.inflight;
	dev->base.hang_ns = dev->opt.bound_ns;
	dev->base.virtual_clock = dev->opt.virtual_clock;
	count = count_devices(&dev->opt);
	err = count < 0 ? count : 0;
	if (!err && index >= (uint32_t)count)
		err = rocm_host->fail(ENODEV, "rocm:%u: no such device: HIP reports %d",
				      index, count);
	if (!err)
		err = read_shape(index, &dev->shape);
	if (err) {
		free(dev);
		return err;
	}
	dev->index = index;
	dev->id = 1 + atomic_fetch_add(&opens, 1);
	rocm_lane_init(dev);
	rocm_remainder_init(dev);
	rocm_later_init(dev);
	(void)pthread_mutex_init(&dev->programs_lock, NULL);
	(void)pthread_mutex_init(&dev->share.lock, NULL);
	(void)pthread_mutex_init(&dev->base.queues_lock, NULL);
	stream_offers_init(&dev->offers, rocm_host, "rocm", index);
	stream_regions_init(&dev->regions, rocm_host, "rocm", index);
	err = start(dev);
	if (!err)
		*out = dev;
	else
		rocm_close(dev);
	return err;
}

/* ---- registration ------------------------------------------------------------------ */

static const struct hal_backend backend = {
	.size = sizeof(struct hal_backend),
	.abi = HAL_BACKEND_ABI,
	.name = "rocm",
	.summary = "AMD GPUs through HIP",
	.score = 55,
	.option_count = sizeof(options) / sizeof(options[0]),
	.options = options,
	.beside = HAL_BK_BESIDE_PROGRAM | HAL_BK_BESIDE_COPY | HAL_BK_BESIDE_MEMORY |
		  HAL_BK_BESIDE_QUEUE,
	.cold_size = sizeof(struct hal_bk_cold),
	.hot_size = sizeof(struct hal_bk_hot),
	.extra_size = sizeof(struct hal_bk_extra),
	.flags = HAL_BK_IMAGES_FOREIGN | HAL_BK_SIDE_BY_SIDE,
	.cold = {.probe = rocm_probe,
		 .open = rocm_open,
		 .close = rocm_close,
		 .get_info = rocm_get_info,
		 .partition_create = rocm_partition_create,
		 .partition_destroy = rocm_partition_destroy,
		 .queue_create = rocm_queue_create,
		 .queue_destroy = rocm_queue_destroy,
		 .mem_alloc = rocm_mem_alloc,
		 .mem_free = rocm_mem_free,
		 .mem_write = rocm_mem_write,
		 .mem_read = rocm_mem_read,
		 .mem_clear = rocm_mem_clear,
		 .mem_register = rocm_mem_register,
		 .mem_export = rocm_mem_export,
		 .mem_import = rocm_mem_import,
		 .mem_map = rocm_mem_map,
		 .mem_unmap = rocm_mem_unmap,
		 .program_load = rocm_program_load,
		 .program_unload = rocm_program_unload,
		 .kernel_get = rocm_kernel_get,
		 .extension = rocm_extension},
	.hot = {.submit = rocm_submit,
		.poll = rocm_poll,
		.now = rocm_now,
		.suspend = rocm_suspend,
		.resume = rocm_resume,
		.resize = rocm_resize,
		.next = rocm_next},
	.extra = {.mem_out = rocm_mem_out, .mem_in = rocm_mem_in},
};

const struct hal_backend *hal_backend_rocm(const struct hal_host *host)
{
	rocm_host = host;
	if (host->abi != HAL_BACKEND_ABI) {
		host->fail(EPROTO,
			   "rocm: this backend was built for backend ABI %u, but the "
			   "library has %u",
			   HAL_BACKEND_ABI, host->abi);
		return NULL;
	}
	return &backend;
}
