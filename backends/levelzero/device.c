/* SPDX-License-Identifier: Apache-2.0 */
/* The Level Zero device: options, probe, open, its clock, what it says of itself. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DRIVERS_MAX    16u
#define DEVICES_MAX    32u /* of a driver */
#define GROUPS_MAX     16u
#define MEMORIES_MAX   16u
#define EXTENSIONS_MAX 256u
#define API_NEEDED     LZ_API_VERSION(1, 2)
#define API_IN_ORDER   LZ_API_VERSION(1, 9) /* immediate lists that keep their order */
#define NS             UINT64_C(1000000000)
#define STUCK_NS       NS /* how long close waits for a command that has timed out */

/* How a driver that only stands in for one says so; see tests/fakes/levelzero. */
#define STAND_IN_NAME      "HAL stand-in"
#define STAND_IN_EXTENSION "HAL_extension_stand_in_clock"

const struct hal_host *lz_host;

/* Defaults of the table below, for a probe without a configuration. */
static const struct lz_options defaults = {
	.loader = "libze_loader.so.1",
	.inflight = 32,
	.every = 8,
};

static const struct hal_option_def options[] = {
	{"loader", HAL_OPTION_STRING, 0, 0, NULL, "libze_loader.so.1",
	 "file of the Level Zero loader; a process can use only one"},
	{"clock", HAL_OPTION_ENUM, 0, 0, "real|virtual", "real",
	 "real: time is the device's clock; virtual: time is stepped, which only a fake "
	 "driver supports"},
	{"units", HAL_OPTION_ENUM, 0, 0, "auto|tile|group|engine", "auto",
	 "what a unit is; auto: tile if the device has several, else engine"},
	{"lists", HAL_OPTION_ENUM, 0, 0, "immediate|regular", "immediate",
	 "kind of command lists that queues use"},
	{"inflight", HAL_OPTION_INT, 1, LZ_INFLIGHT_MAX, NULL, "32",
	 "commands of one queue that the device may have at a time; hal.inflight and "
	 "hal.partition_inflight may lower it"},
	{"mark_every", HAL_OPTION_INT, 0, LZ_INFLIGHT_MAX, NULL, "0",
	 "launches of a queue that are reported together, by one event, where the driver "
	 "keeps the order of lists; 1: each by itself; 0: a quarter of inflight"},
	{"memory", HAL_OPTION_ENUM, 0, 0, "device|shared|host", "device",
	 "where buffers that need not be mappable are placed"},
	{"timeout_ms", HAL_OPTION_INT, 0, 86400000, NULL, "0",
	 "time after which a command that has not ended fails and its queue is dropped; "
	 "0: never"},
	{"scheduler", HAL_OPTION_ENUM, 0, 0, "unchanged|timeout|timeslice|exclusive",
	 "unchanged", "scheduling mode that the device is set to at open"},
};

static void read_options(const struct hal_bk_config *cfg, struct lz_options *o)
{
	*o = defaults;
	if (!cfg)
		return;
	o->loader = lz_host->option_str(cfg, "loader");
	o->virtual_clock = lz_host->option_int(cfg, "clock") == 1;
	o->units = (uint32_t)lz_host->option_int(cfg, "units");
	o->regular = lz_host->option_int(cfg, "lists") == 1;
	o->inflight = (uint32_t)lz_host->option_int(cfg, "inflight");
	o->every = (uint32_t)lz_host->option_int(cfg, "mark_every");
	if (!o->every)
		o->every = (o->inflight + 3) / 4;
	o->placement = (uint32_t)lz_host->option_int(cfg, "memory");
	o->timeout_ns = (uint64_t)lz_host->option_int(cfg, "timeout_ms") * 1000000;
	o->scheduler = (uint32_t)lz_host->option_int(cfg, "scheduler");
}

/* ---- what there is ----------------------------------------------------------------- */

static int read_extensions(struct lz_shape *s)
{
	struct ze_driver_extension_properties *p;
	struct ze_driver_ipc_properties ipc = {.stype = LZ_STYPE_DRIVER_IPC_PROPERTIES};
	uint32_t count = 0, i;
	int err;

	if (!lz.zeDriverGetExtensionProperties)
		return 0;
	err = LZ(zeDriverGetExtensionProperties, s->driver, &count, NULL);
	if (err || !count)
		return err;
	count = count < EXTENSIONS_MAX ? count : EXTENSIONS_MAX;
	p = calloc(count, sizeof(*p));
	if (!p)
		return lz_host->fail(ENOMEM, "levelzero: no memory for %u extensions",
				     count);
	err = LZ(zeDriverGetExtensionProperties, s->driver, &count, p);
	for (i = 0; !err && i < count; i++) {
		if (strcmp(p[i].name, "ZE_extension_cache_reservation") == 0)
			s->cache = lz.zeDeviceReserveCacheExt &&
				   lz.zeDeviceSetCacheAdviceExt;
		if (strcmp(p[i].name, "ZE_extension_pci_properties") == 0)
			s->pci = lz.zeDevicePciGetPropertiesExt != NULL;
		if (strcmp(p[i].name, "ZE_experimental_relaxed_allocation_limits") == 0)
			s->relaxed = true;
		if (strcmp(p[i].name, "ZE_experimental_event_pool_counter_based") == 0)
			s->counted = true;
		if (strcmp(p[i].name, STAND_IN_EXTENSION) == 0)
			s->can_drive = lz.zeDriverGetExtensionFunctionAddress != NULL;
	}
	free(p);
	if (err || !lz.zeDriverGetIpcProperties || !lz.zeMemGetIpcHandle ||
	    !lz.zeMemOpenIpcHandle || !lz.zeMemCloseIpcHandle)
		return err;
	err = LZ(zeDriverGetIpcProperties, s->driver, &ipc);
	s->ipc = !err && (ipc.flags & LZ_IPC_MEMORY);
	return err;
}

/* Find the functions that register memory; a driver need not have them. */
static int find_import(struct lz_shape *s)
{
	void *import, *release = NULL;
	uint32_t r = lz_find_function(s->driver, "zexDriverImportExternalPointer",
				      &import, &s->import_driver);

	if (!r)
		r = lz_find_function(s->driver, "zexDriverReleaseImportedPointer",
				     &release, &s->import_driver);
	s->import_result = r;
	if (r)
		return lz_errno(r) == EINVAL || lz_errno(r) == ENOTSUP
			       ? 0
			       : lz_failed(r, "zeDriverGetExtensionFunctionAddress");
	memcpy(&s->import, &import, sizeof(import));
	memcpy(&s->release, &release, sizeof(release));
	return 0;
}

static int read_memory(struct lz_shape *s)
{
	struct ze_device_memory_properties p[MEMORIES_MAX];
	struct ze_device_memory_access_properties a = {
		.stype = LZ_STYPE_DEVICE_MEMORY_ACCESS_PROPERTIES};
	uint32_t count = 0, i;
	int err = LZ(zeDeviceGetMemoryProperties, s->root, &count, NULL);

	if (err)
		return err;
	count = count < MEMORIES_MAX ? count : MEMORIES_MAX;
	memset(p, 0, sizeof(p));
	for (i = 0; i < count; i++)
		p[i].stype = LZ_STYPE_DEVICE_MEMORY_PROPERTIES;
	if (count)
		err = LZ(zeDeviceGetMemoryProperties, s->root, &count, p);
	for (i = 0; !err && i < count; i++)
		s->memory_bytes += p[i].total_size;
	/* A device that works in the host's memory may list none of its own. */
	if (!s->memory_bytes)
		s->memory_bytes = s->props.max_mem_alloc_size;
	if (!err)
		err = LZ(zeDeviceGetMemoryAccessProperties, s->root, &a);
	s->shared = a.shared_single_alloc & LZ_ACCESS_RW;
	return err;
}

static void add_group(struct lz_shape *s, uint32_t tile, uint32_t ordinal,
		      uint32_t queue_count)
{
	uint32_t k;

	for (k = 0; k < queue_count && s->engine_count < LZ_ENGINES_MAX; k++)
		s->engines[s->engine_count++] =
			(struct lz_engine){.tile = tile, .ordinal = ordinal, .index = k};
}

/* Adds the compute engines of a tile, in the order of groups.  Two or four in the one
 * group there is: the mode in which each has its part of the compute units. */
static int read_engines(struct lz_shape *s, uint32_t tile)
{
	struct ze_command_queue_group_properties p[GROUPS_MAX];
	uint32_t count = 0, compute = 0, first = s->engine_count, engines, i;
	bool copies = false;
	int err =
		LZ(zeDeviceGetCommandQueueGroupProperties, s->tiles[tile], &count, NULL);

	if (err)
		return err;
	count = count < GROUPS_MAX ? count : GROUPS_MAX;
	memset(p, 0, sizeof(p));
	for (i = 0; i < count; i++)
		p[i].stype = LZ_STYPE_COMMAND_QUEUE_GROUP_PROPERTIES;
	if (count)
		err = LZ(zeDeviceGetCommandQueueGroupProperties, s->tiles[tile], &count,
			 p);
	for (i = 0; !err && i < count; i++) {
		if (p[i].flags & LZ_GROUP_COMPUTE) {
			add_group(s, tile, i, p[i].queue_count);
			compute++;
		} else if ((p[i].flags & LZ_GROUP_COPY) && !copies) {
			s->copy[tile] = (struct lz_engine){tile, i, 0};
			s->copies[tile] = p[i].queue_count;
			copies = true;
		}
	}
	engines = s->engine_count - first;
	if (!copies && engines)
		s->copy[tile] = s->engines[first];
	s->split = compute == 1 && (engines == 2 || engines == 4);
	return err;
}

static int read_tiles(struct lz_shape *s)
{
	uint32_t count = 0, t;
	int err = LZ(zeDeviceGetSubDevices, s->root, &count, NULL);

	if (err)
		return err;
	count = count < LZ_TILES_MAX ? count : LZ_TILES_MAX;
	if (count)
		err = LZ(zeDeviceGetSubDevices, s->root, &count, s->tiles);
	else
		s->tiles[0] = s->root;
	s->tile_count = count ? count : 1;
	for (t = 0; !err && t < s->tile_count; t++)
		err = read_engines(s, t);
	return err;
}

/* HAL_KIND_* + 1 by enum lz_device_type; 0: its programs are no modules.  Intel's NPU
 * driver takes them through a graph extension of its own. */
static const uint8_t kinds[] = {
	[LZ_DEVICE_GPU] = HAL_KIND_GPU + 1,
	[LZ_DEVICE_CPU] = HAL_KIND_CPU + 1,
	[LZ_DEVICE_FPGA] = HAL_KIND_FPGA + 1,
};

static int check_kind(const struct lz_shape *s)
{
	const uint32_t type = s->props.type;

	if (type < sizeof(kinds) && kinds[type])
		return 0;
	return lz_host->fail(
		ENODEV, "levelzero: %s is of type %u, which does not support modules",
		s->props.name, type);
}

static int read_shape(void *driver, void *root, uint32_t units, struct lz_shape *s)
{
	struct ze_device_compute_properties c = {
		.stype = LZ_STYPE_DEVICE_COMPUTE_PROPERTIES};
	int err;

	memset(s, 0, sizeof(*s));
	s->driver = driver;
	s->root = root;
	s->props.stype = LZ_STYPE_DEVICE_PROPERTIES_1_2;
	err = LZ(zeDeviceGetProperties, root, &s->props);
	s->props.name[sizeof(s->props.name) - 1] = 0;
	if (!err)
		err = check_kind(s);
	if (!err)
		err = LZ(zeDeviceGetComputeProperties, root, &c);
	memcpy(s->max_groups, c.max_group_count, sizeof(s->max_groups));
	memcpy(s->max_group_size, c.max_group_size, sizeof(s->max_group_size));
	s->max_group_items = c.max_total_group_size;
	if (!err)
		err = read_extensions(s);
	if (!err)
		err = find_import(s);
	if (!err)
		err = lz_share_read(s);
	if (!err)
		err = read_memory(s);
	if (!err)
		err = read_tiles(s);
	if (!err && !s->props.timer_resolution)
		err = lz_host->fail(ENODEV, "levelzero: %s reports no timer resolution",
				    s->props.name);
	s->stand_in = strncmp(s->props.name, STAND_IN_NAME, strlen(STAND_IN_NAME)) == 0;
	return err ? err : lz_shape_units(s, units);
}

/* -ENODEV: a driver that is too old or has no device; another one may do. */
static int driver_devices(void *driver, uint32_t *count, void **devices, bool *in_order)
{
	uint32_t version = 0;
	int err = LZ(zeDriverGetApiVersion, driver, &version);

	*in_order = version >= API_IN_ORDER;
	*count = 0;
	if (err)
		return err;
	if (version < API_NEEDED || version >> 16 != API_NEEDED >> 16)
		return lz_host->fail(
			ENODEV,
			"levelzero: the driver has API version %u.%u; %u.%u is needed",
			version >> 16, version & 0xffff, API_NEEDED >> 16,
			API_NEEDED & 0xffff);
	err = LZ(zeDeviceGet, driver, count, NULL);
	if (err || !*count)
		return err;
	*count = *count < DEVICES_MAX ? *count : DEVICES_MAX;
	return LZ(zeDeviceGet, driver, count, devices);
}

/* True: that was enough. */
typedef bool (*take_fn)(void *to, uint32_t index, const struct lz_shape *s, int err);

struct search {
	uint32_t units, found;
	take_fn take;
	void *to;
	bool enough;
	int why; /* the last thing that was none; it has its text */
};

/* What is no device for us (-ENODEV) has no number; one that cannot be used now has it
 * all the same, so that others keep theirs. */
static void found(struct search *f, const struct lz_shape *s, int err)
{
	if (err == -ENODEV)
		f->why = err;
	else
		f->enough = f->take(f->to, f->found++, s, err);
}

/* A driver that does not tell its devices is taken for one of them. */
static void search_driver(struct search *f, void *driver)
{
	void *devices[DEVICES_MAX];
	struct lz_shape s = {0};
	uint32_t count, i;
	bool in_order;
	int err = driver_devices(driver, &count, devices, &in_order);

	if (err)
		found(f, &s, err);
	for (i = 0; !err && i < count && !f->enough; i++) {
		int one = read_shape(driver, devices[i], f->units, &s);

		s.in_order = in_order;
		found(f, &s, one);
	}
}

/* Shows take the devices of all drivers, and answers how many; nothing that is wrong with
 * one hides another. */
static int find_devices(uint32_t units, take_fn take, void *to)
{
	struct search f = {.units = units, .take = take, .to = to};
	void *drivers[DRIVERS_MAX];
	uint32_t count = 0, i;
	uint32_t r = lz.zeDriverGet(&count, NULL);
	int err = lz_check(r, "zeDriverGet");

	/* So says a newer loader of a driver file that is none; an older one in zeInit.
	 */
	if (r == LZ_ERROR_UNSUPPORTED_FEATURE)
		return lz_host->fail(
			ENODEV, "levelzero: zeDriverGet: %s (0x%x): no usable driver",
			lz_result_name(r), r);
	count = count < DRIVERS_MAX ? count : DRIVERS_MAX;
	if (!err && count)
		err = LZ(zeDriverGet, &count, drivers);
	if (err)
		return err;
	for (i = 0; i < count && !f.enough; i++)
		search_driver(&f, drivers[i]);
	if (!f.found && f.why)
		return f.why;
	if (!f.found)
		return lz_host->fail(ENODEV, "levelzero: %u drivers, but no device",
				     count);
	return (int)f.found;
}

/* ---- what it says of itself -------------------------------------------------------- */

static void describe(const struct lz_options *o, const struct lz_shape *s, uint32_t index,
		     bool evicts, struct hal_device_info *info)
{
	struct ze_pci_ext_properties pci = {.stype = LZ_STYPE_PCI_EXT_PROPERTIES};

	info->kind = kinds[s->props.type] - 1u;
	snprintf(info->backend, sizeof(info->backend), "levelzero");
	snprintf(info->name, sizeof(info->name), "%.63s", s->props.name);
	snprintf(info->bus_id, sizeof(info->bus_id), "levelzero:%u", index);
	/* A device that is on no bus, or does not tell of it, is as good as any. */
	if (s->pci && lz.zeDevicePciGetPropertiesExt(s->root, &pci) == LZ_SUCCESS)
		snprintf(info->bus_id, sizeof(info->bus_id), "%04x:%02x:%02x.%x",
			 pci.domain & 0xffff, pci.bus & 0xff, pci.device & 0x1f,
			 pci.function & 7);
	info->memory_bytes = s->memory_bytes;
	info->memory_free = s->memory_bytes;
	info->caps = HAL_CAP_TIMESTAMP | HAL_CAP_MAP | HAL_CAP_HOST_COPY;
	if (s->import)
		info->caps |= HAL_CAP_HOST_REGISTER;
	info->caps |=
		(s->export_as ? HAL_CAP_EXPORT : 0) | (s->import_as ? HAL_CAP_IMPORT : 0);
	if (evicts)
		info->caps |= HAL_CAP_EVICT;
	if (s->stand_in)
		info->caps |= HAL_CAP_STAND_IN;
	if (o->virtual_clock)
		info->caps |= HAL_CAP_VIRTUAL_CLOCK | HAL_CAP_SIMULATED;
	info->unit_rows = 1;
	info->unit_cols = s->unit_count;
	info->partitions_max = s->unit_count;
	info->preempt = HAL_PREEMPT_BETWEEN;
	info->suspend_modes = 1u << HAL_SUSPEND_DRAIN;
	info->compute_isolation = s->tile_units || s->split ? HAL_ISOLATION_ENFORCED
							    : HAL_ISOLATION_ADVISORY;
	info->memory_isolation = HAL_ISOLATION_ADVISORY;
	info->clock_hz = s->props.timer_resolution;
}

struct listing {
	const struct lz_options *opt;
	struct hal_device_info *out;
	uint32_t max;
};

static bool list_device(void *to, uint32_t index, const struct lz_shape *s, int err)
{
	const struct listing *l = to;

	if (index >= l->max)
		return false;
	if (!err)
		describe(l->opt, s, index, lz_range_calls(l->opt), &l->out[index]);
	else
		snprintf(l->out[index].name, sizeof(l->out[index].name), "unusable: %s",
			 strerrorname_np(-err));
	return false;
}

static int lz_probe(const struct hal_bk_config *cfg, struct hal_device_info *out,
		    uint32_t max)
{
	struct lz_options o;
	const struct listing l = {&o, out, max};
	int err;

	read_options(cfg, &o);
	err = lz_load(o.loader);
	return err ? err : find_devices(o.units, list_device, (void *)&l);
}

/* ---- clock ------------------------------------------------------------------------- */

uint64_t lz_mono(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS + (uint64_t)ts.tv_nsec;
}

/* Several threads may have asked: it never goes back. */
void lz_raise(struct lz_device *dev, uint64_t ns)
{
	unsigned long long last = atomic_load(&dev->base.last_ns);

	while (last < ns && !atomic_compare_exchange_weak(&dev->base.last_ns, &last, ns))
		;
}

uint64_t lz_now(void *device)
{
	struct lz_device *dev = device;

	if (!dev->opt.virtual_clock)
		lz_raise(dev, lz_mono() + atomic_load(&dev->ahead_ns));
	return atomic_load(&dev->base.last_ns);
}

/* v * to / from, for counts whose product has more than 64 bits. */
static uint64_t scale(uint64_t v, uint64_t to, uint64_t from)
{
	return v / from * to + v % from * to / from;
}

/* Ticks since base_ticks of a counter that wraps, which are about this many. */
static uint64_t ticks_since(uint64_t ticks, uint64_t base, uint64_t about, uint32_t bits)
{
	uint64_t mask = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	uint64_t ahead = (ticks - (base + about)) & mask;
	uint64_t behind = (0 - ahead) & mask;

	if (ahead <= mask / 2)
		return about + ahead;
	return behind < about ? about - behind : 0;
}

uint64_t lz_ticks_to_ns(const struct lz_device *dev, uint64_t ticks)
{
	const struct ze_device_properties *p = &dev->shape.props;
	uint64_t about = scale(dev->base.last_ns - dev->base_ns, p->timer_resolution, NS);

	return dev->base_ns + scale(ticks_since(ticks, dev->base_ticks, about,
						p->kernel_timestamp_valid_bits),
				    NS, p->timer_resolution);
}

/* Reads both clocks again: they drift apart.  What last was stays when that fails. */
int lz_calibrate(struct lz_device *dev)
{
	const struct ze_device_properties *p = &dev->shape.props;
	uint64_t host, ticks, mono = lz_mono(), about;
	int err = LZ(zeDeviceGetGlobalTimestamps, dev->shape.root, &host, &ticks);

	if (err)
		return err;
	if (dev->base_mono) {
		about = scale(mono - dev->base_mono, p->timer_resolution, NS);
		dev->base_ns += scale(ticks_since(ticks, dev->base_ticks, about,
						  p->timestamp_valid_bits),
				      NS, p->timer_resolution);
	}
	dev->base_ticks = ticks;
	dev->base_mono = mono;
	atomic_store(&dev->ahead_ns, dev->base_ns - mono);
	(void)lz_now(dev); /* ticks are counted from base_ns to what was told last */
	return 0;
}

/* Takes a stand-in's clock into our hands. */
static int drive_clock(struct lz_device *dev)
{
	struct lz_shape *s = &dev->shape;
	uint32_t (*drive)(uint32_t on) = NULL;
	uint32_t idle;
	int err;

	if (!s->can_drive)
		return lz_host->fail(ENOTSUP,
				     "levelzero:%u: clock=virtual needs a fake driver: "
				     "the time of %s cannot be stepped",
				     dev->index, s->props.name);
	err = LZ(zeDriverGetExtensionFunctionAddress, s->driver, "halStandInClockDrive",
		 (void **)(void *)&drive);
	if (!err)
		err = LZ(zeDriverGetExtensionFunctionAddress, s->driver,
			 "halStandInClockAdvance", (void **)(void *)&dev->advance);
	if (err)
		return err;
	drive(1);
	dev->drive = drive;
	dev->advance(0, &dev->base.zero_ns, &idle);
	return 0;
}

/* Virtual clock: a wait has let time go by. */
void lz_catch_up(struct lz_device *dev)
{
	uint64_t now;
	uint32_t idle;

	if (!dev->opt.virtual_clock)
		return;
	dev->advance(0, &now, &idle);
	lz_raise(dev, now - dev->base.zero_ns);
}

/* ---- open and close ---------------------------------------------------------------- */

/* By enum lz_kind; memory takes more than a handle. */
static const struct {
	const char *name;
	uint32_t (**call)(void *handle);
} destroyers[] = {
	[LZ_KIND_WAIT] = {"zeEventQueryStatus", &lz.zeEventQueryStatus},
	[LZ_KIND_WAIT_FENCE] = {"zeFenceQueryStatus", &lz.zeFenceQueryStatus},
	[LZ_KIND_FENCE] = {"zeFenceDestroy", &lz.zeFenceDestroy},
	[LZ_KIND_QUEUE] = {"zeCommandQueueDestroy", &lz.zeCommandQueueDestroy},
	[LZ_KIND_LIST] = {"zeCommandListDestroy", &lz.zeCommandListDestroy},
	[LZ_KIND_EVENT] = {"zeEventDestroy", &lz.zeEventDestroy},
	[LZ_KIND_POOL] = {"zeEventPoolDestroy", &lz.zeEventPoolDestroy},
	[LZ_KIND_KERNEL] = {"zeKernelDestroy", &lz.zeKernelDestroy},
	[LZ_KIND_MODULE] = {"zeModuleDestroy", &lz.zeModuleDestroy},
	[LZ_KIND_LOG] = {"zeModuleBuildLogDestroy", &lz.zeModuleBuildLogDestroy},
	[LZ_KIND_REGION] = {"zexDriverReleaseImportedPointer", NULL},
	[LZ_KIND_MAPPING] = {"zeVirtualMemUnmap", NULL},
	[LZ_KIND_PHYSICAL] = {"zePhysicalMemDestroy", NULL},
	[LZ_KIND_RESERVATION] = {"zeVirtualMemFree", NULL},
	[LZ_KIND_MEMORY] = {"zeMemFree", NULL},
};

uint64_t lz_id(struct lz_device *dev)
{
	return atomic_fetch_add(&dev->ids, 1) + 1;
}

uint64_t lz_era(struct lz_device *dev)
{
	return atomic_fetch_add(&dev->eras, 1) + 1 + LZ_ERA_SCALAR;
}

/* With several drivers, or with layers, the loader hands out objects of its own, in a
 * table by the driver's addresses, and takes one out of it only after the driver has
 * destroyed what is behind it: what another thread makes at that address meanwhile would
 * be given the object that goes (as of 1.8).  So nothing is destroyed in this process
 * while something of its kind is made, and the other way round. */
static struct {
	pthread_mutex_t lock; /* held while something is destroyed */
	pthread_cond_t made;
	uint32_t making[LZ_KIND_MEMORY + 1];
} births = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}};

/* The driver is called under the lock, so a fork does not wait for it.  The threads that
 * were making something are not in the child. */
static void births_forked(void)
{
	(void)pthread_mutex_init(&births.lock, NULL);
	(void)pthread_cond_init(&births.made, NULL);
	memset(births.making, 0, sizeof(births.making));
}

__attribute__((constructor)) static void births_watch(void)
{
	(void)pthread_atfork(NULL, NULL, births_forked);
}

void lz_making(enum lz_kind kind)
{
	pthread_mutex_lock(&births.lock);
	births.making[kind]++;
	births.making[LZ_KIND_LOG] += kind == LZ_KIND_MODULE; /* made with it */
	pthread_mutex_unlock(&births.lock);
}

static void empty_trash(struct lz_device *dev);

int lz_made(struct lz_device *dev, enum lz_kind kind, int err)
{
	pthread_mutex_lock(&births.lock);
	births.making[kind]--;
	births.making[LZ_KIND_LOG] -= kind == LZ_KIND_MODULE;
	pthread_cond_broadcast(&births.made);
	pthread_mutex_unlock(&births.lock);
	(void)lz_empty_trash(dev);
	return err;
}

bool lz_empty_trash(struct lz_device *dev)
{
	uint32_t before;
	bool some;

	pthread_mutex_lock(&dev->trash_lock);
	before = dev->trash_count;
	if (before)
		empty_trash(dev);
	some = dev->trash_count < before;
	pthread_mutex_unlock(&dev->trash_lock);
	return some;
}

static uint32_t release_region(struct lz_device *dev, struct stream_region *region)
{
	/* NOLINTBEGIN(performance-no-int-to-ptr): as it was imported */
	const uint32_t r = dev->shape.release(dev->shape.import_driver,
					      (void *)(uintptr_t)region->base);
	/* NOLINTEND(performance-no-int-to-ptr) */

	if (!r)
		stream_region_gone(&dev->regions, region);
	return r;
}

static uint32_t call_destroyer(struct lz_device *dev, const struct lz_trash *t)
{
	switch (t->kind) {
	case LZ_KIND_REGION:
		return release_region(dev, t->handle);
	case LZ_KIND_MAPPING:
		return lz.zeVirtualMemUnmap(dev->context, t->handle, t->bytes);
	case LZ_KIND_PHYSICAL:
		return lz.zePhysicalMemDestroy(dev->context, t->handle);
	case LZ_KIND_RESERVATION:
		return lz.zeVirtualMemFree(dev->context, t->handle, t->bytes);
	case LZ_KIND_MEMORY:
		return t->fd < 0 ? lz.zeMemFree(dev->context, t->handle)
				 : lz_share_free(dev, t->handle, t->fd);
	default:
		return (*destroyers[t->kind].call)(t->handle);
	}
}

/* Return whether the handle of such a thing is its address, not an object of the
 * loader's. */
static bool is_address(enum lz_kind kind)
{
	return kind >= LZ_KIND_REGION && kind != LZ_KIND_PHYSICAL;
}

/* False: not now, or, by *r, not at all. */
static bool destroy(struct lz_device *dev, const struct lz_trash *t, uint32_t *r)
{
	bool now;

	*r = LZ_SUCCESS;
	if (is_address(t->kind)) {
		*r = call_destroyer(dev, t);
		return !*r;
	}
	pthread_mutex_lock(&births.lock);
	now = !births.making[t->kind];
	if (now)
		*r = call_destroyer(dev, t);
	pthread_mutex_unlock(&births.lock);
	return now && !*r;
}

/* One of a group waits for those before it.  A command that does not end may use all
 * memory of its partition, and any kernel. */
static bool waits_for(const struct lz_trash *t, const struct lz_trash *before)
{
	if (before->kind <= LZ_KIND_WAIT_FENCE &&
	    (t->kind == LZ_KIND_KERNEL || t->kind == LZ_KIND_MODULE ||
	     (t->kind >= LZ_KIND_REGION && t->group.part == before->group.part)))
		return true;
	return t->group.id && t->group.id == before->group.id;
}

static bool held_up(const struct lz_device *dev, const struct lz_trash *t, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (waits_for(t, &dev->trash[i]))
			return true;
	return false;
}

/* Destroys what has to wait for nothing that will not go. */
static void empty_trash(struct lz_device *dev)
{
	uint32_t i, r, kept = 0;

	for (i = 0; i < dev->trash_count; i++) {
		const struct lz_trash t = dev->trash[i];

		if (held_up(dev, &t, kept) || !destroy(dev, &t, &r))
			dev->trash[kept++] = t;
	}
	dev->trash_count = kept;
}

static int by_kind(const void *a, const void *b)
{
	const struct lz_trash *x = a, *y = b;

	return (int)x->kind - (int)y->kind;
}

/* At the end: gives what is stuck a while, then goes on without: first what executes. */
static void give_up_waits(struct lz_device *dev)
{
	uint64_t begin = lz_mono(), gone;
	uint32_t i, kept = 0;

	for (i = 0; i < dev->trash_count; i++) {
		const struct lz_trash t = dev->trash[i];

		gone = lz_mono() - begin;
		gone = gone < STUCK_NS ? gone : STUCK_NS;
		if (t.kind == LZ_KIND_WAIT)
			(void)lz.zeEventHostSynchronize(t.handle, STUCK_NS - gone);
		else if (t.kind == LZ_KIND_WAIT_FENCE)
			(void)lz.zeFenceHostSynchronize(t.handle, STUCK_NS - gone);
		else
			dev->trash[kept++] = t;
	}
	dev->trash_count = kept;
	if (kept)
		qsort(dev->trash, kept, sizeof(*dev->trash), by_kind);
}

static void keep(struct lz_device *dev, const struct lz_trash *t)
{
	uint32_t room = dev->trash_room ? 2 * dev->trash_room : 64;
	struct lz_trash *more;

	if (dev->trash_count == dev->trash_room) {
		more = realloc(dev->trash, room * sizeof(*more));
		if (!more)
			return; /* the context's end takes it */
		dev->trash = more;
		dev->trash_room = room;
	}
	dev->trash[dev->trash_count++] = *t;
}

void lz_keep(struct lz_device *dev, enum lz_kind kind, void *handle,
	     struct lz_group group)
{
	const struct lz_trash t = {kind, handle, group, -1, 0};

	pthread_mutex_lock(&dev->trash_lock);
	keep(dev, &t);
	pthread_mutex_unlock(&dev->trash_lock);
}

static uint32_t discard(struct lz_device *dev, const struct lz_trash *t)
{
	uint32_t r = LZ_SUCCESS;

	pthread_mutex_lock(&dev->trash_lock);
	if (dev->trash_count)
		empty_trash(dev);
	if (held_up(dev, t, dev->trash_count) || !destroy(dev, t, &r))
		keep(dev, t);
	pthread_mutex_unlock(&dev->trash_lock);
	return r;
}

/* Destroys it; what will not go is kept, and with it what comes after it in its group, as
 * that may be what it was made from. */
uint32_t lz_discard(struct lz_device *dev, enum lz_kind kind, void *handle,
		    struct lz_group group)
{
	const struct lz_trash t = {kind, handle, group, -1, 0};

	return discard(dev, &t);
}

/* The same for a handle that may be NULL; the first error counts and has the text. */
void lz_drop(struct lz_device *dev, enum lz_kind kind, void *handle,
	     struct lz_group group, int *err)
{
	uint32_t r = handle ? lz_discard(dev, kind, handle, group) : LZ_SUCCESS;

	if (r && !*err)
		*err = lz_failed(r, destroyers[kind].name);
}

void lz_drop_memory(struct lz_device *dev, void *p, int fd, struct lz_group group,
		    int *err)
{
	const struct lz_trash t = {LZ_KIND_MEMORY, p, group, fd, 0};
	const uint32_t r = discard(dev, &t);

	if (r && !*err)
		*err = lz_failed(r, destroyers[LZ_KIND_MEMORY].name);
}

void lz_drop_pages(struct lz_device *dev, enum lz_kind kind, const struct lz_range *r,
		   int *err)
{
	const struct lz_trash t = {kind, r->address, r->group, -1, r->bytes};
	const uint32_t result = discard(dev, &t);

	if (result && !*err)
		*err = lz_failed(result, destroyers[kind].name);
}

bool lz_held(struct lz_device *dev, struct lz_group group)
{
	const struct lz_trash t = {LZ_KIND_MEMORY, NULL, group, -1, 0};
	bool held;

	pthread_mutex_lock(&dev->trash_lock);
	if (dev->trash_count)
		empty_trash(dev);
	held = held_up(dev, &t, dev->trash_count);
	pthread_mutex_unlock(&dev->trash_lock);
	return held;
}

/* Until nothing is made any more of what is left, by other devices; not for ever. */
static void outwait_makers(struct lz_device *dev)
{
	uint64_t end_ns = lz_mono() + STUCK_NS;
	const struct timespec end = {.tv_sec = (time_t)(end_ns / NS),
				     .tv_nsec = (long)(end_ns % NS)};
	uint32_t i = 0;
	int err = 0;

	pthread_mutex_lock(&births.lock);
	while (i < dev->trash_count && !err) {
		if (births.making[dev->trash[i].kind])
			err = pthread_cond_clockwait(&births.made, &births.lock,
						     CLOCK_MONOTONIC, &end);
		else
			i++;
	}
	pthread_mutex_unlock(&births.lock);
}

static void lz_close(void *device)
{
	struct lz_device *dev = device;

	if (!dev)
		return;
	lz_lanes_drop(dev);
	empty_trash(dev);
	give_up_waits(dev);
	empty_trash(dev);
	outwait_makers(dev);
	empty_trash(dev);
	pthread_mutex_lock(&births.lock);
	if (dev->context && lz.zeContextDestroy(dev->context))
		(void)lz.zeContextDestroy(dev->context);
	pthread_mutex_unlock(&births.lock);
	if (dev->drive)
		dev->drive(0);
	stream_regions_fini(&dev->regions);
	pthread_mutex_destroy(&dev->memory_lock);
	pthread_mutex_destroy(&dev->trash_lock);
	pthread_mutex_destroy(&dev->base.queues_lock);
	free(dev->trash);
	free(dev);
}

static int start(struct lz_device *dev)
{
	const struct ze_context_desc cd = {.stype = LZ_STYPE_CONTEXT_DESC};
	int err;

	pthread_mutex_lock(&births.lock);
	err = LZ(zeContextCreate, dev->shape.driver, &cd, &dev->context);
	pthread_mutex_unlock(&births.lock);
	if (err)
		return err;
	if (dev->opt.virtual_clock)
		err = drive_clock(dev);
	if (!err)
		err = lz_calibrate(dev);
	if (!err)
		err = lz_range_open(dev);
	if (!err && dev->opt.scheduler)
		err = lz_set_scheduler(dev, dev->opt.scheduler - 1);
	return err;
}

struct choice {
	uint32_t index;
	int err; /* of that one; 1: there is none */
	struct lz_shape shape;
};

static bool choose_device(void *to, uint32_t index, const struct lz_shape *s, int err)
{
	struct choice *c = to;

	if (index != c->index)
		return false;
	c->err = err;
	c->shape = *s;
	return true;
}

static int lz_open(const struct hal_bk_config *cfg, uint32_t index, void **out)
{
	struct choice c = {.index = index, .err = 1};
	struct lz_device *dev;
	struct lz_options o;
	int err, count;

	read_options(cfg, &o);
	err = lz_load(o.loader);
	if (err)
		return err;
	count = find_devices(o.units, choose_device, &c);
	if (count < 0 || c.err < 0)
		return count < 0 ? count : c.err;
	if (c.err)
		return lz_host->fail(ENODEV, "levelzero:%u: no such device; there are %d",
				     index, count);
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return lz_host->fail(ENOMEM, "levelzero:%u: no memory for the device",
				     index);
	dev->opt = o;
	dev->base.inflight_max = o.inflight;
	dev->base.hang_ns = o.timeout_ns;
	dev->base.virtual_clock = o.virtual_clock;
	dev->shape = c.shape;
	dev->used.all = c.shape.memory_bytes;
	dev->index = index;
	(void)pthread_mutex_init(&dev->trash_lock, NULL);
	(void)pthread_mutex_init(&dev->base.queues_lock, NULL);
	(void)pthread_mutex_init(&dev->memory_lock, NULL);
	stream_regions_init(&dev->regions, lz_host, "levelzero", index);
	lz_lanes_init(dev);
	if (o.placement == LZ_MEM_SHARED && !dev->shape.shared)
		err = lz_host->fail(
			ENOTSUP, "levelzero:%u: memory=shared: %s has no shared memory",
			index, dev->shape.props.name);
	if (!err)
		err = start(dev);
	if (err) {
		lz_close(dev);
		return err;
	}
	*out = dev;
	return 0;
}

static int lz_get_info(void *device, struct hal_device_info *info)
{
	const struct lz_device *dev = device;

	describe(&dev->opt, &dev->shape, dev->index, dev->evicts, info);
	info->memory_free = stream_bytes_left(&dev->used);
	return 0;
}

/* ---- registration ------------------------------------------------------------------ */

static const struct hal_backend backend = {
	.size = sizeof(struct hal_backend),
	.abi = HAL_BACKEND_ABI,
	.name = "levelzero",
	.summary = "Intel GPUs through oneAPI Level Zero",
	.score = 50,
	.option_count = sizeof(options) / sizeof(options[0]),
	.options = options,
	.beside = HAL_BK_BESIDE_COPY | HAL_BK_BESIDE_PROGRAM | HAL_BK_BESIDE_MEMORY |
		  HAL_BK_BESIDE_QUEUE,
	.cold_size = sizeof(struct hal_bk_cold),
	.hot_size = sizeof(struct hal_bk_hot),
	.extra_size = sizeof(struct hal_bk_extra),
	.flags = HAL_BK_IMAGES_FOREIGN | HAL_BK_ANY_THREAD,
	.cold =
		{
			.probe = lz_probe,
			.open = lz_open,
			.close = lz_close,
			.get_info = lz_get_info,
			.partition_create = lz_partition_create,
			.partition_destroy = lz_partition_destroy,
			.queue_create = lz_queue_create,
			.queue_destroy = lz_queue_destroy,
			.mem_alloc = lz_mem_alloc,
			.mem_free = lz_mem_free,
			.mem_write = lz_mem_write,
			.mem_read = lz_mem_read,
			.mem_clear = lz_mem_clear,
			.mem_register = lz_mem_register,
			.mem_export = lz_mem_export,
			.mem_import = lz_mem_import,
			.mem_map = lz_mem_map,
			.mem_unmap = lz_mem_unmap,
			.program_load = lz_program_load,
			.program_unload = lz_program_unload,
			.kernel_get = lz_kernel_get,
			.program_bind = lz_program_bind,
			.program_unbind = lz_program_unbind,
			.extension = lz_extension,
			.isolation = lz_isolation,
		},
	.hot =
		{
			.submit = lz_submit,
			.poll = lz_poll,
			.now = lz_now,
			.suspend = lz_suspend,
			.resume = lz_resume,
			.next = lz_next,
		},
	.extra = {.mem_out = lz_mem_out, .mem_in = lz_mem_in},
};

const struct hal_backend *hal_backend_levelzero(const struct hal_host *host)
{
	if (host->abi != HAL_BACKEND_ABI) {
		host->fail(EPROTO,
			   "levelzero: this backend was built for backend ABI %u, but "
			   "the library has %u",
			   HAL_BACKEND_ABI, host->abi);
		return NULL;
	}
	lz_host = host;
	return &backend;
}
