/* SPDX-License-Identifier: Apache-2.0 */
/* What each entry point of the stand-in does; called under the lock, in world's time. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define OK          LZ_SUCCESS
#define BAD_HANDLE  LZ_ERROR_INVALID_NULL_HANDLE
#define BAD_POINTER LZ_ERROR_INVALID_NULL_POINTER
#define BAD_ARG     LZ_ERROR_INVALID_ARGUMENT

/* The handle as what it must be, or BAD_HANDLE is answered. */
#define OBJECT(type, var, handle, KIND)                                                  \
	struct type *var = handle;                                                       \
	if (!var || var->object.kind != OBJECT_##KIND)                                   \
	return BAD_HANDLE

#define STYPE(p, name)                                                                   \
	do {                                                                             \
		if (!(p))                                                                \
			return BAD_POINTER;                                              \
		if ((p)->stype != LZ_STYPE_##name)                                       \
			return BAD_ARG;                                                  \
	} while (0)

/* Answers how many there are, then as many as there is room for. */
static uint32_t give(uint32_t *count, uint32_t have)
{
	uint32_t n = *count && *count < have ? *count : have;

	*count = n;
	return n;
}

void *create(size_t bytes, uint32_t kind)
{
	struct object *o = calloc(1, bytes);

	if (!o)
		return NULL;
	o->kind = kind;
	world.live++;
	return o;
}

uint32_t destroy(struct object *o)
{
	o->kind = 0;
	world.live--;
	free(o);
	return OK;
}

/* ---- driver, device ---------------------------------------------------------------- */

uint32_t do_zeInit(uint32_t flags)
{
	(void)flags;
	world_init();
	return OK;
}

uint32_t do_zeDriverGet(uint32_t *count, void **drivers)
{
	uint32_t n = give(count, world.present_count ? 1 : 0);

	if (drivers && n)
		drivers[0] = &world.driver;
	return OK;
}

static uint32_t claimed_version(void)
{
	const char *claim = getenv("HAL_STAND_IN_ZE_VERSION");
	unsigned int major = 1, minor = 4;

	if (claim && sscanf(claim, "%u.%u", &major, &minor) != 2)
		return 0;
	return LZ_API_VERSION(major, minor);
}

uint32_t do_zeDriverGetApiVersion(void *driver, uint32_t *version)
{
	(void)driver;
	*version = claimed_version();
	return *version ? OK : LZ_ERROR_UNKNOWN;
}

uint32_t driver_properties(void *driver, struct ze_driver_properties *p)
{
	(void)driver;
	STYPE(p, DRIVER_PROPERTIES);
	memset(p->uuid, 0x48, sizeof(p->uuid));
	p->driver_version = 1;
	return OK;
}

uint32_t do_zeDriverGetIpcProperties(void *driver, struct ze_driver_ipc_properties *p)
{
	(void)driver;
	STYPE(p, DRIVER_IPC_PROPERTIES);
	p->flags = world.shares_nothing ? 0 : LZ_IPC_MEMORY;
	return OK;
}

/* Counter-based events are there from 1.9 on; HAL_STAND_IN_ZE_COUNTED=0: a driver
 * without. */
static bool counts(void)
{
	const char *text = getenv("HAL_STAND_IN_ZE_COUNTED");

	return claimed_version() >= LZ_API_VERSION(1, 9) &&
	       (!text || strcmp(text, "0") != 0);
}

uint32_t do_zeDriverGetExtensionProperties(void *driver, uint32_t *count,
					   struct ze_driver_extension_properties *p)
{
	static const char *const names[] = {"ZE_extension_cache_reservation",
					    "ZE_extension_pci_properties",
					    "HAL_extension_stand_in_clock",
					    "ZE_experimental_relaxed_allocation_limits",
					    "ZE_experimental_event_pool_counter_based"};
	uint32_t n = give(count, counts() ? 5 : 4), i;

	(void)driver;
	for (i = 0; p && i < n; i++) {
		snprintf(p[i].name, sizeof(p[i].name), "%s", names[i]);
		p[i].version = LZ_API_VERSION(1, 0);
	}
	return OK;
}

/* HAL_STAND_IN_ZE_IMPORT=0: a driver without. */
static bool imports(void)
{
	const char *text = getenv("HAL_STAND_IN_ZE_IMPORT");

	return !text || strcmp(text, "0") != 0;
}

uint32_t do_zeDriverGetExtensionFunctionAddress(void *driver, const char *name,
						void **address)
{
	(void)driver;
	if (strcmp(name, "halStandInClockDrive") == 0)
		*address = (void *)(uintptr_t)clock_drive;
	else if (strcmp(name, "halStandInClockAdvance") == 0)
		*address = (void *)(uintptr_t)clock_advance;
	else if (strcmp(name, "zexDriverImportExternalPointer") == 0 && imports())
		*address = (void *)(uintptr_t)driver_import;
	else if (strcmp(name, "zexDriverReleaseImportedPointer") == 0 && imports())
		*address = (void *)(uintptr_t)driver_release;
	else
		return BAD_ARG;
	return OK;
}

uint32_t do_zeDeviceGet(void *driver, uint32_t *count, void **devices)
{
	uint32_t n = give(count, world.present_count), i;

	(void)driver;
	for (i = 0; devices && i < n; i++)
		devices[i] = world.present[i];
	return OK;
}

static uint32_t tiles_of(const struct device *dev)
{
	return (uint32_t)__builtin_popcount(dev->visible);
}

uint32_t do_zeDeviceGetSubDevices(void *device, uint32_t *count, void **subs)
{
	OBJECT(device, dev, device, DEVICE);
	uint32_t have = dev->sub < 0 && tiles_of(dev) > 1 ? tiles_of(dev) : 0;
	uint32_t n = give(count, have), i = 0, t;

	for (t = 0; subs && i < n; t++)
		if (dev->visible >> t & 1)
			subs[i++] = &dev->subs[t];
	return OK;
}

/* More than that is had only by who asks for relaxed limits. */
static uint64_t max_alloc(const struct device *dev)
{
	return dev->spec->tile_memory / 2 * (dev->sub < 0 ? dev->spec->tiles : 1);
}

uint32_t do_zeDeviceGetProperties(void *device, struct ze_device_properties *p)
{
	OBJECT(device, dev, device, DEVICE);
	const struct device_spec *spec = dev->spec;

	/* A loader asks for itself, in the older form. */
	if (p->stype != LZ_STYPE_DEVICE_PROPERTIES)
		STYPE(p, DEVICE_PROPERTIES_1_2);
	p->type = spec->type;
	p->vendor_id = 0x8086;
	p->device_id = 0xfffe;
	p->flags =
		dev->sub < 0 || (world.flat && !world.combined) ? 0 : LZ_DEVICE_SUBDEVICE;
	p->subdevice_id = dev->sub < 0 ? 0 : (uint32_t)dev->sub;
	p->core_clock_rate = 1000;
	p->max_mem_alloc_size = max_alloc(dev);
	p->max_command_queue_priority = 2;
	p->threads_per_eu = 8;
	p->simd_width = 16;
	p->eus_per_subslice = 8;
	p->subslices_per_slice = 4;
	p->slices = dev->sub < 0 ? spec->tiles : 1;
	p->timer_resolution = spec->ticks_per_second;
	p->timestamp_valid_bits = spec->valid_bits;
	p->kernel_timestamp_valid_bits = spec->valid_bits;
	memset(p->uuid, 0x48, sizeof(p->uuid));
	p->uuid[15] = (uint8_t)dev->index;
	snprintf(p->name, sizeof(p->name), "%s", spec->name);
	return OK;
}

uint32_t do_zeDeviceGetComputeProperties(void *device,
					 struct ze_device_compute_properties *p)
{
	int i;

	STYPE(p, DEVICE_COMPUTE_PROPERTIES);
	(void)device;
	p->max_total_group_size = 1024;
	for (i = 0; i < 3; i++) {
		p->max_group_size[i] = 1024;
		p->max_group_count[i] = i ? 65535 : 1u << 20;
	}
	p->max_shared_local_memory = 65536;
	p->sub_group_size_count = 1;
	p->sub_group_sizes[0] = 16;
	return OK;
}

/* Of a compute group: more may be claimed than there are. */
static uint32_t engines_of(const struct group_spec *g)
{
	const char *claim = getenv("HAL_STAND_IN_ZE_ENGINES");

	return claim && (g->flags & LZ_GROUP_COMPUTE) ? (uint32_t)strtoul(claim, NULL, 10)
						      : g->engines;
}

uint32_t
do_zeDeviceGetCommandQueueGroupProperties(void *device, uint32_t *count,
					  struct ze_command_queue_group_properties *p)
{
	OBJECT(device, dev, device, DEVICE);
	uint32_t n = give(count, dev->spec->groups), i;

	for (i = 0; p && i < n; i++) {
		STYPE(&p[i], COMMAND_QUEUE_GROUP_PROPERTIES);
		p[i].flags = dev->spec->group[i].flags;
		p[i].max_memory_fill_pattern_size = 16;
		p[i].queue_count = engines_of(&dev->spec->group[i]);
	}
	return OK;
}

uint32_t do_zeDeviceGetMemoryProperties(void *device, uint32_t *count,
					struct ze_device_memory_properties *p)
{
	OBJECT(device, dev, device, DEVICE);
	uint32_t n = give(count, 1);

	if (p && n) {
		STYPE(p, DEVICE_MEMORY_PROPERTIES);
		p->total_size =
			dev->spec->tile_memory * (dev->sub < 0 ? tiles_of(dev) : 1);
		snprintf(p->name, sizeof(p->name), "stand-in memory");
	}
	return OK;
}

uint32_t
do_zeDeviceGetMemoryAccessProperties(void *device,
				     struct ze_device_memory_access_properties *p)
{
	OBJECT(device, dev, device, DEVICE);

	STYPE(p, DEVICE_MEMORY_ACCESS_PROPERTIES);
	p->host_alloc = LZ_ACCESS_RW;
	p->device_alloc = LZ_ACCESS_RW;
	p->shared_single_alloc = dev->spec->shared ? LZ_ACCESS_RW : 0;
	return OK;
}

uint32_t do_zeDeviceGetStatus(void *device)
{
	OBJECT(device, dev, device, DEVICE);

	return dev->root->lost || device_hangs(dev) ? LZ_ERROR_DEVICE_LOST : OK;
}

uint32_t do_zeDeviceGetGlobalTimestamps(void *device, uint64_t *host, uint64_t *ticks)
{
	OBJECT(device, dev, device, DEVICE);
	const struct device_spec *spec = dev->spec;
	struct timespec ts;

	if (dev->root->lost)
		return LZ_ERROR_DEVICE_LOST;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	*host = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	*ticks = world.now_ns / (1000000000 / spec->ticks_per_second);
	if (spec->valid_bits < 64)
		*ticks &= (UINT64_C(1) << spec->valid_bits) - 1;
	return OK;
}

uint32_t do_zeDeviceReserveCacheExt(void *device, size_t level, size_t bytes)
{
	(void)device;
	if (level > 3)
		return BAD_ARG;
	return bytes > 4u << 20 ? LZ_ERROR_UNSUPPORTED_SIZE : OK;
}

uint32_t do_zeDeviceSetCacheAdviceExt(void *device, void *p, size_t bytes,
				      uint32_t region)
{
	(void)device;
	if (region > 2)
		return LZ_ERROR_INVALID_ENUMERATION;
	return memory_at((uintptr_t)p, bytes) ? OK : BAD_ARG;
}

uint32_t do_zeDevicePciGetPropertiesExt(void *device, struct ze_pci_ext_properties *p)
{
	OBJECT(device, dev, device, DEVICE);

	STYPE(p, PCI_EXT_PROPERTIES);
	p->domain = 0xffff;
	p->bus = 0x40 + dev->index;
	p->device = 0;
	p->function = 0;
	return OK;
}

/* ---- context, memory --------------------------------------------------------------- */

uint32_t do_zeContextCreate(void *driver, const struct ze_context_desc *desc,
			    void **context)
{
	(void)driver;
	STYPE(desc, CONTEXT_DESC);
	*context = create(sizeof(struct context), OBJECT_CONTEXT);
	return *context ? OK : LZ_ERROR_OUT_OF_HOST_MEMORY;
}

uint32_t do_zeContextDestroy(void *context)
{
	OBJECT(context, ctx, context, CONTEXT);

	if (ctx->children)
		misuse("a context was destroyed before what was made in it");
	return destroy(&ctx->object);
}

void enter_allocation(struct allocation *a)
{
	a->serial = ++world.serials;
	a->next = world.allocations;
	world.allocations = a;
}

static bool relaxed(const struct ze_relaxed_allocation_limits_exp_desc *more)
{
	while (more && more->stype != LZ_STYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC)
		more = more->next;
	return more && (more->flags & LZ_RELAXED_MAX_SIZE);
}

static void drop_backing(struct allocation *a, size_t bytes)
{
	if (a->mapped)
		share_free(a, bytes);
	else
		free(a->backing);
}

/* What the host must not touch has an address, and its bytes elsewhere. */
static uint32_t back(struct allocation *a, const struct device *dev, size_t bytes,
		     const void *more, bool hidden)
{
	uint32_t r = OK;

	if (is_external(more))
		r = hidden ? share_back(a, dev, bytes, more)
			   : LZ_ERROR_UNSUPPORTED_FEATURE;
	else
		a->backing = aligned_alloc(4096, bytes);
	a->p = a->backing;
	if (r || !a->backing)
		return r ? r : LZ_ERROR_OUT_OF_HOST_MEMORY;
	if (hidden) {
		a->p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (a->p == MAP_FAILED) {
			drop_backing(a, bytes);
			return LZ_ERROR_OUT_OF_HOST_MEMORY;
		}
	}
	return OK;
}

static uint32_t allocate(struct context *ctx, struct device *dev, size_t bytes,
			 size_t align, const void *more, bool hidden, void **p)
{
	struct allocation *a;
	size_t rounded = (bytes + 4095) / 4096 * 4096;
	uint64_t limit;
	uint32_t r;

	if (!bytes)
		return LZ_ERROR_INVALID_SIZE;
	if (align & (align - 1))
		return LZ_ERROR_UNSUPPORTED_ALIGNMENT;
	if (dev) {
		if (dev->root->lost)
			return LZ_ERROR_DEVICE_LOST;
		limit = dev->spec->tile_memory * dev->spec->tiles;
		if (bytes > limit || (bytes > max_alloc(dev) && !relaxed(more)))
			return LZ_ERROR_UNSUPPORTED_SIZE;
		if (dev->root->used + rounded > limit || rounded > world.memory_left)
			return LZ_ERROR_OUT_OF_DEVICE_MEMORY;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	a->file = a->given = -1;
	r = back(a, dev, rounded, more, hidden);
	if (r) {
		free(a);
		return r;
	}
	/* Like memory that somebody else has used. */
	if (!a->mapped || a->file >= 0)
		memset(a->backing, 0xd5, bytes);
	a->bytes = bytes;
	if (dev) {
		a->dev = dev->root;
		dev->root->used += rounded;
		if (world.memory_left != UINT64_MAX)
			world.memory_left -= rounded;
	}
	enter_allocation(a);
	world.live++;
	ctx->children++;
	*p = a->p;
	return OK;
}

uint32_t do_zeMemAllocShared(void *context,
			     const struct ze_device_mem_alloc_desc *device_desc,
			     const struct ze_host_mem_alloc_desc *host_desc, size_t bytes,
			     size_t align, void *device, void **p)
{
	OBJECT(context, ctx, context, CONTEXT);
	OBJECT(device, dev, device, DEVICE);

	STYPE(device_desc, DEVICE_MEM_ALLOC_DESC);
	STYPE(host_desc, HOST_MEM_ALLOC_DESC);
	if (!dev->spec->shared)
		return LZ_ERROR_UNSUPPORTED_FEATURE;
	return allocate(ctx, dev, bytes, align, device_desc->next, false, p);
}

uint32_t do_zeMemAllocDevice(void *context, const struct ze_device_mem_alloc_desc *desc,
			     size_t bytes, size_t align, void *device, void **p)
{
	OBJECT(context, ctx, context, CONTEXT);
	OBJECT(device, dev, device, DEVICE);

	STYPE(desc, DEVICE_MEM_ALLOC_DESC);
	return allocate(ctx, dev, bytes, align, desc->next, true, p);
}

uint32_t do_zeMemAllocHost(void *context, const struct ze_host_mem_alloc_desc *desc,
			   size_t bytes, size_t align, void **p)
{
	OBJECT(context, ctx, context, CONTEXT);

	STYPE(desc, HOST_MEM_ALLOC_DESC);
	return allocate(ctx, NULL, bytes, align, desc->next, false, p);
}

struct allocation **find_allocation(const void *p)
{
	struct allocation **at = &world.allocations;

	while (*at && ((*at)->p != p || (*at)->imported || (*at)->physical))
		at = &(*at)->next;
	return at;
}

/* By whole pages, none twice; what is behind the last byte is not reached. */
uint32_t do_import(void *driver, void *p, size_t bytes)
{
	const uintptr_t base = (uintptr_t)p & ~(uintptr_t)4095,
			end = ((uintptr_t)p + bytes + 4095) & ~(uintptr_t)4095;
	struct allocation *a;
	unsigned char there;
	uintptr_t page;

	if (driver != &world.driver) {
		misuse("a function of the driver's was given a handle of the loader's");
		return LZ_ERROR_INVALID_NULL_HANDLE;
	}
	if (!p || !bytes)
		return BAD_ARG;
	for (a = world.allocations; a; a = a->next)
		if (!a->dev && base < (uintptr_t)a->p + a->bytes && (uintptr_t)a->p < end)
			return LZ_ERROR_OVERLAPPING_REGIONS;
	for (page = base; page < end; page += 4096)
		if (mincore((void *)page, 4096, &there))
			return BAD_ARG;
	a = calloc(1, sizeof(*a));
	if (!a)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	a->p = a->backing = p;
	a->bytes = bytes;
	a->imported = true;
	enter_allocation(a);
	world.live++;
	return OK;
}

uint32_t do_release(void *driver, void *p)
{
	struct allocation **at = &world.allocations, *a;

	while (*at && ((*at)->p != p || !(*at)->imported))
		at = &(*at)->next;
	a = *at;
	if (driver != &world.driver || !a) {
		misuse("memory was released that was not imported");
		return BAD_ARG;
	}
	if (memory_busy(a))
		misuse("memory was released while a command uses it");
	*at = a->next;
	world.live--;
	free(a);
	return OK;
}

uint32_t do_zeMemFree(void *context, void *p)
{
	OBJECT(context, ctx, context, CONTEXT);
	struct allocation **at = find_allocation(p), *a = *at;

	if (!a)
		return BAD_ARG;
	if (memory_busy(a))
		misuse("memory was freed while a command uses it");
	*at = a->next;
	if (a->dev)
		a->dev->used -= (a->bytes + 4095) / 4096 * 4096;
	if (a->dev && world.memory_left != UINT64_MAX)
		world.memory_left += (a->bytes + 4095) / 4096 * 4096;
	ctx->children--;
	world.live--;
	if (a->opened)
		misuse("memory was freed while its IPC handle is open");
	if (a->p != a->backing)
		munmap(a->p, (a->bytes + 4095) / 4096 * 4096);
	drop_backing(a, (a->bytes + 4095) / 4096 * 4096);
	free(a);
	return OK;
}

/* A handle is good in this process only: a real one carries a file descriptor. */
struct ipc {
	uint64_t magic;
	uint64_t pid;
	void *p;
};
#define IPC_MAGIC UINT64_C(0x637069206c6168)

uint32_t do_zeMemGetIpcHandle(void *context, const void *p,
			      struct ze_ipc_mem_handle *handle)
{
	struct allocation *a = *find_allocation(p);
	struct ipc ipc = {IPC_MAGIC, (uint64_t)getpid(), NULL};

	(void)context;
	if (!a || !a->dev)
		return BAD_ARG;
	ipc.p = a->p;
	memset(handle, 0, sizeof(*handle));
	memcpy(handle->data, &ipc, sizeof(ipc));
	return OK;
}

uint32_t do_zeMemOpenIpcHandle(void *context, void *device,
			       struct ze_ipc_mem_handle handle, uint32_t flags, void **p)
{
	struct allocation *a;
	struct ipc ipc;

	(void)context;
	(void)device;
	(void)flags;
	memcpy(&ipc, handle.data, sizeof(ipc));
	if (ipc.magic != IPC_MAGIC || ipc.pid != (uint64_t)getpid())
		return BAD_ARG;
	a = *find_allocation(ipc.p);
	if (!a)
		return BAD_ARG;
	a->opened++;
	*p = a->p;
	return OK;
}

uint32_t do_zeMemCloseIpcHandle(void *context, const void *p)
{
	struct allocation *a = *find_allocation(p);

	(void)context;
	if (!a || !a->opened)
		return BAD_ARG;
	a->opened--;
	return OK;
}

/* ---- queues and lists -------------------------------------------------------------- */

static uint32_t check_queue(const struct device *dev,
			    const struct ze_command_queue_desc *desc)
{
	STYPE(desc, COMMAND_QUEUE_DESC);
	if (desc->flags & ~LZ_QUEUE_IN_ORDER)
		return LZ_ERROR_INVALID_ENUMERATION;
	if ((desc->flags & LZ_QUEUE_IN_ORDER) && claimed_version() < LZ_API_VERSION(1, 9))
		return LZ_ERROR_INVALID_ENUMERATION;
	if (desc->mode > LZ_MODE_ASYNCHRONOUS || desc->priority > LZ_PRIORITY_HIGH)
		return LZ_ERROR_INVALID_ENUMERATION;
	if (desc->ordinal >= dev->spec->groups ||
	    desc->index >= dev->spec->group[desc->ordinal].engines)
		return BAD_ARG;
	return dev->root->lost ? LZ_ERROR_DEVICE_LOST : OK;
}

uint32_t do_zeCommandQueueCreate(void *context, void *device,
				 const struct ze_command_queue_desc *desc, void **queue)
{
	OBJECT(context, ctx, context, CONTEXT);
	OBJECT(device, dev, device, DEVICE);
	uint32_t r = check_queue(dev, desc);
	struct queue *q;

	if (r)
		return r;
	q = create(sizeof(*q), OBJECT_QUEUE);
	if (!q)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	q->stream.ctx = ctx;
	q->stream.priority = desc->priority;
	q->stream.in_order = true;
	stream_init(&q->stream, dev, desc->ordinal, desc->index);
	ctx->children++;
	*queue = q;
	return OK;
}

uint32_t do_zeCommandQueueDestroy(void *queue)
{
	OBJECT(queue, q, queue, QUEUE);

	if (q->fences)
		misuse("a queue was destroyed before its fences");
	stream_gone(&q->stream);
	q->stream.ctx->children--;
	return destroy(&q->object);
}

uint32_t do_zeCommandQueueExecuteCommandLists(void *queue, uint32_t count, void **lists,
					      void *fence)
{
	OBJECT(queue, q, queue, QUEUE);
	uint32_t i;

	if (fence && ((struct fence *)fence)->users)
		misuse("a fence was given to a queue before it was signalled");
	for (i = 0; i < count; i++) {
		OBJECT(list, l, lists[i], LIST);
		struct job *job, end = {.op = OP_END};

		if (!l->closed || l->immediate) {
			misuse("an open list was executed");
			return BAD_ARG;
		}
		for (job = l->first; job; job = job->next) {
			struct job *copy = malloc(sizeof(*copy));

			if (!copy)
				return LZ_ERROR_OUT_OF_HOST_MEMORY;
			*copy = *job;
			copy->list = l;
			stream_add(&q->stream, copy);
		}
		end.list = l;
		end.fence = i + 1 == count ? fence : NULL;
		job = malloc(sizeof(*job));
		if (!job)
			return LZ_ERROR_OUT_OF_HOST_MEMORY;
		*job = end;
		stream_add(&q->stream, job);
	}
	return q->stream.lost ? LZ_ERROR_DEVICE_LOST : OK;
}

/* Was the pool made for this device, or one that it is a part of? */
static bool pool_has(const struct pool *p, const struct device *dev)
{
	uint32_t i;

	for (i = 0; i < p->device_count; i++)
		if (p->devices[i] == dev || p->devices[i] == dev->root)
			return true;
	return !p->device_count;
}

/* Time goes by a wait: whoever drives it, to the next end; else by itself, and others
 * come in meanwhile. */
static void pass(uint64_t until_ns)
{
	if (world.drivers)
		world_run(until_ns, true);
	else
		breathe();
}

/* A hang is looked for only in a wait that has taken so long. */
#define HANG_CHECK_NS UINT64_C(500000000)

static uint32_t await(const bool *signaled, const bool *lost, uint64_t timeout_ns)
{
	uint64_t from = world.now_ns, end = from + timeout_ns, until;

	if (end < from)
		end = NEVER;
	while (!*signaled && world.now_ns < end) {
		until = *lost && end - from > HANG_CHECK_NS ? from + HANG_CHECK_NS : end;
		if (*lost && world.now_ns >= until)
			return LZ_ERROR_DEVICE_LOST;
		if (world.drivers && until == NEVER && world_idle())
			break; /* for ever */
		pass(until);
	}
	return *signaled ? OK : LZ_NOT_READY;
}

uint32_t do_zeFenceCreate(void *queue, const struct ze_fence_desc *desc, void **fence)
{
	OBJECT(queue, q, queue, QUEUE);
	struct fence *f;

	STYPE(desc, FENCE_DESC);
	f = create(sizeof(*f), OBJECT_FENCE);
	if (!f)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	f->queue = q;
	q->fences++;
	*fence = f;
	return OK;
}

uint32_t do_zeFenceDestroy(void *fence)
{
	OBJECT(fence, f, fence, FENCE);
	struct job *job;

	if (f->users && !stream_stuck(&f->queue->stream))
		misuse("a fence was destroyed while in use");
	for (job = f->queue->stream.first; job; job = job->next)
		if (job->fence == f)
			job->fence = NULL;
	f->queue->fences--;
	return destroy(&f->object);
}

uint32_t do_zeFenceHostSynchronize(void *fence, uint64_t timeout_ns)
{
	OBJECT(fence, f, fence, FENCE);

	return await(&f->signaled, &f->queue->stream.lost, timeout_ns);
}

uint32_t do_zeFenceQueryStatus(void *fence)
{
	OBJECT(fence, f, fence, FENCE);

	return f->signaled ? OK : LZ_NOT_READY;
}

uint32_t do_zeFenceReset(void *fence)
{
	OBJECT(fence, f, fence, FENCE);

	if (f->users)
		misuse("a fence was reset while in use");
	f->signaled = false;
	return OK;
}

static struct list *create_list(struct context *ctx, struct device *dev)
{
	struct list *l = create(sizeof(*l), OBJECT_LIST);

	if (!l)
		return NULL;
	l->ctx = ctx;
	l->dev = dev;
	l->last = &l->first;
	ctx->children++;
	return l;
}

uint32_t do_zeCommandListCreate(void *context, void *device,
				const struct ze_command_list_desc *desc, void **list)
{
	OBJECT(context, ctx, context, CONTEXT);
	OBJECT(device, dev, device, DEVICE);

	STYPE(desc, COMMAND_LIST_DESC);
	if (desc->ordinal >= dev->spec->groups)
		return BAD_ARG;
	*list = create_list(ctx, dev);
	return *list ? OK : LZ_ERROR_OUT_OF_HOST_MEMORY;
}

uint32_t do_zeCommandListCreateImmediate(void *context, void *device,
					 const struct ze_command_queue_desc *desc,
					 void **list)
{
	OBJECT(context, ctx, context, CONTEXT);
	OBJECT(device, dev, device, DEVICE);
	uint32_t r = check_queue(dev, desc);
	struct list *l;

	if (r)
		return r;
	l = create_list(ctx, dev);
	if (!l)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	l->immediate = true;
	l->stream.ctx = ctx;
	l->stream.priority = desc->priority;
	l->stream.synchronous = desc->mode == LZ_MODE_SYNCHRONOUS;
	l->stream.in_order = desc->flags & LZ_QUEUE_IN_ORDER;
	stream_init(&l->stream, dev, desc->ordinal, desc->index);
	*list = l;
	return OK;
}

static void forget_recorded(struct list *l)
{
	struct job *job;

	if (l->flying)
		misuse("a list was reset or destroyed while in flight");
	while ((job = l->first)) {
		l->first = job->next;
		free(job);
	}
	l->last = &l->first;
}

uint32_t do_zeCommandListDestroy(void *list)
{
	OBJECT(list, l, list, LIST);

	forget_recorded(l);
	if (l->immediate)
		stream_gone(&l->stream);
	l->ctx->children--;
	return destroy(&l->object);
}

uint32_t do_zeCommandListClose(void *list)
{
	OBJECT(list, l, list, LIST);

	if (l->immediate)
		return BAD_ARG;
	l->closed = true;
	return OK;
}

uint32_t do_zeCommandListReset(void *list)
{
	OBJECT(list, l, list, LIST);

	if (l->immediate)
		return BAD_ARG;
	forget_recorded(l);
	l->closed = false;
	return OK;
}

/* A counter-based event stands for the last command that it was given to: it is not
 * reset, but what waits for the command before must have gone on. */
static void renew(struct event *e, const struct list *l)
{
	if (!l->immediate || !l->stream.in_order)
		misuse("a counter-based event was given to a list without order");
	if (e->users)
		misuse("a counter-based event was used again too early");
	e->signaled = false;
	e->lost = false;
}

/* Takes a command apart from its op's own fields, which fill has set in job. */
static uint32_t append(void *list, struct job *fill, void *signal, uint32_t count,
		       void **waits)
{
	OBJECT(list, l, list, LIST);
	struct job *job;
	uint32_t i;

	if (l->closed) {
		misuse("a command was appended to a closed list");
		return BAD_ARG;
	}
	if (l->dev->root->lost || (l->immediate && l->stream.lost))
		return LZ_ERROR_DEVICE_LOST;
	if (count > WAITS_MAX || (count && !waits))
		return LZ_ERROR_INVALID_SIZE;
	if (signal) {
		OBJECT(event, e, signal, EVENT);
		if (!pool_has(e->pool, l->dev))
			return BAD_ARG;
		if (e->pool->counted)
			renew(e, l);
		else if (e->signaled || e->users)
			misuse("an event was given to a command before its reset");
		fill->signal = e;
	}
	fill->wait_count = count;
	for (i = 0; i < count; i++) {
		OBJECT(event, e, waits[i], EVENT);
		if (!pool_has(e->pool, l->dev))
			return BAD_ARG;
		if (e->pool->counted && !l->stream.in_order)
			misuse("a list without order waits for a counter-based event");
		fill->waits[i] = e;
	}
	job = malloc(sizeof(*job));
	if (!job)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	*job = *fill;
	if (!l->immediate) {
		job->next = NULL;
		*l->last = job;
		l->last = &job->next;
		return OK;
	}
	stream_add(&l->stream, job);
	while (l->stream.synchronous && l->stream.jobs && !world_idle())
		pass(NEVER);
	return OK;
}

uint32_t do_zeCommandListAppendBarrier(void *list, void *signal, uint32_t count,
				       void **waits)
{
	struct job job = {.op = OP_BARRIER};

	return append(list, &job, signal, count, waits);
}

uint32_t do_zeCommandListAppendMemoryCopy(void *list, void *dst, const void *src,
					  size_t bytes, void *signal, uint32_t count,
					  void **waits)
{
	struct job job = {.op = OP_COPY, .dst = dst, .src = src, .bytes = bytes};

	if (!dst || !src)
		return BAD_POINTER;
	/* The driver takes it through memory of its own, while the caller waits. */
	if (!memory_at((uintptr_t)dst, bytes) || !memory_at((uintptr_t)src, bytes))
		misuse("a copy of memory that the driver neither has given nor imported");
	return append(list, &job, signal, count, waits);
}

uint32_t do_zeCommandListAppendMemoryFill(void *list, void *dst, const void *pattern,
					  size_t pattern_bytes, size_t bytes,
					  void *signal, uint32_t count, void **waits)
{
	struct job job = {.op = OP_FILL, .dst = dst, .bytes = bytes};

	if (!dst || !pattern)
		return BAD_POINTER;
	if (!pattern_bytes || pattern_bytes > sizeof(job.pattern) ||
	    (pattern_bytes & (pattern_bytes - 1)))
		return LZ_ERROR_INVALID_SIZE;
	job.pattern_bytes = (uint32_t)pattern_bytes;
	memcpy(job.pattern, pattern, pattern_bytes);
	return append(list, &job, signal, count, waits);
}

/* Which memory lies there.  The driver keeps that with an argument, not only the address.
 */
static uint64_t serial_at(uint64_t address)
{
	const struct allocation *a;

	for (a = world.allocations; a; a = a->next)
		if (address - (uintptr_t)a->p < a->bytes)
			return a->serial;
	return 0;
}

uint32_t do_zeCommandListAppendLaunchKernel(void *list, void *kernel,
					    const struct ze_group_count *groups,
					    void *signal, uint32_t count, void **waits)
{
	OBJECT(kernel, k, kernel, KERNEL);
	struct job job = {.op = OP_LAUNCH};
	uint32_t i;

	if (!groups)
		return BAD_POINTER;
	if (groups->x > 1u << 20 || groups->y > 65535 || groups->z > 65535)
		return LZ_ERROR_INVALID_ARGUMENT;
	if (k->set != (1u << k->spec->args) - 1) {
		misuse("a kernel was launched before all its arguments were set");
		return BAD_ARG;
	}
	for (i = 0; i < k->spec->args; i++)
		if (k->serials[i] && serial_at(k->args[i]) != k->serials[i])
			misuse("a kernel was launched on memory that is gone since its "
			       "argument was set");
	job.call.spec = k->spec;
	memcpy(job.call.args, k->args, sizeof(k->args));
	memcpy(job.call.size, k->size, sizeof(k->size));
	job.call.indirect = k->indirect;
	job.call.groups[0] = groups->x;
	job.call.groups[1] = groups->y;
	job.call.groups[2] = groups->z;
	return append(list, &job, signal, count, waits);
}

/* ---- events ------------------------------------------------------------------------ */

uint32_t do_zeEventPoolCreate(void *context, const struct ze_event_pool_desc *desc,
			      uint32_t count, void **devices, void **pool)
{
	OBJECT(context, ctx, context, CONTEXT);
	const struct ze_counted_pool_desc *counted = desc ? desc->next : NULL;
	struct pool *p;

	STYPE(desc, EVENT_POOL_DESC);
	if (!desc->count || count > DEVICES)
		return LZ_ERROR_INVALID_SIZE;
	if (counted && (counted->stype != LZ_STYPE_COUNTED_POOL_DESC || !counts() ||
			counted->flags != LZ_COUNTED_IMMEDIATE))
		return LZ_ERROR_INVALID_ENUMERATION;
	p = create(sizeof(*p), OBJECT_POOL);
	if (!p)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	p->ctx = ctx;
	p->count = desc->count;
	p->flags = desc->flags;
	p->counted = counted != NULL;
	for (; p->device_count < count; p->device_count++)
		p->devices[p->device_count] = devices[p->device_count];
	ctx->children++;
	*pool = p;
	return OK;
}

uint32_t do_zeEventPoolDestroy(void *pool)
{
	OBJECT(pool, p, pool, POOL);

	if (p->events)
		misuse("an event pool was destroyed before its events");
	p->ctx->children--;
	return destroy(&p->object);
}

uint32_t do_zeEventCreate(void *pool, const struct ze_event_desc *desc, void **event)
{
	OBJECT(pool, p, pool, POOL);
	struct event *e;

	STYPE(desc, EVENT_DESC);
	if (desc->index >= p->count)
		return BAD_ARG;
	e = create(sizeof(*e), OBJECT_EVENT);
	if (!e)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	e->pool = p;
	e->signaled = p->counted; /* as nothing is outstanding */
	p->events++;
	*event = e;
	return OK;
}

uint32_t do_zeEventDestroy(void *event)
{
	OBJECT(event, e, event, EVENT);

	if (e->users)
		misuse("an event was destroyed while in use");
	e->pool->events--;
	return destroy(&e->object);
}

uint32_t do_zeEventHostSynchronize(void *event, uint64_t timeout_ns)
{
	OBJECT(event, e, event, EVENT);

	return await(&e->signaled, &e->lost, timeout_ns);
}

uint32_t do_zeEventQueryStatus(void *event)
{
	OBJECT(event, e, event, EVENT);

	if (!(e->pool->flags & LZ_POOL_HOST_VISIBLE))
		misuse("the host asked about an event that it cannot see");
	return e->signaled ? OK : LZ_NOT_READY;
}

uint32_t do_zeEventHostReset(void *event)
{
	OBJECT(event, e, event, EVENT);

	if (e->pool->counted) {
		misuse("a counter-based event was reset");
		return BAD_ARG;
	}
	if (e->users)
		misuse("an event was reset while in use");
	e->signaled = false;
	e->lost = false;
	return OK;
}

uint32_t do_zeEventQueryKernelTimestamp(void *event, struct ze_kernel_timestamp *t)
{
	OBJECT(event, e, event, EVENT);
	uint64_t per_tick, mask = UINT64_MAX;

	if (!(e->pool->flags & LZ_POOL_KERNEL_TIMESTAMP))
		return BAD_ARG;
	if (!e->signaled)
		return LZ_NOT_READY;
	per_tick = 1000000000 / e->dev->spec->ticks_per_second;
	if (e->dev->spec->valid_bits < 64)
		mask = (UINT64_C(1) << e->dev->spec->valid_bits) - 1;
	t->global_start = t->context_start = e->start_ns / per_tick & mask;
	t->global_end = t->context_end = e->end_ns / per_tick & mask;
	return OK;
}

/* ---- modules ----------------------------------------------------------------------- */

static uint32_t refuse(uint32_t result, void **log, const char *text, const char *name)
{
	struct log *l;

	if (!log)
		return result;
	l = create(sizeof(*l), OBJECT_LOG);
	if (l) /* long, as compilers' are */
		snprintf(l->text, sizeof(l->text), "%s%s\n%0600u\nin kernel: '%s'\n",
			 text, name, 0, name);
	*log = l;
	return result;
}

static struct module *new_module(struct context *ctx, uint32_t count)
{
	struct module *m =
		create(sizeof(*m) + count * sizeof(m->names[0]), OBJECT_MODULE);

	if (m) {
		m->ctx = ctx;
		ctx->children++;
	}
	return m;
}

static uint32_t load_native(struct context *ctx, const struct ze_module_desc *d,
			    void **module, void **log)
{
	const struct lz_stand_in_module *head = (const void *)d->input;
	struct module *m;
	uint32_t i;

	if (d->input_size < sizeof(*head) || head->magic != LZ_STAND_IN_MAGIC ||
	    head->bytes != d->input_size ||
	    (d->input_size - sizeof(*head)) / 32 != head->count)
		return refuse(LZ_ERROR_INVALID_NATIVE_BINARY, log,
			      "not a binary of the stand-in", "");
	m = new_module(ctx, head->count);
	if (!m)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	for (i = 0; i < head->count; i++)
		snprintf(m->names[m->count++], 32, "%.31s",
			 (const char *)(head + 1) + i * 32);
	*module = m;
	return OK;
}

/* Names of entry points only: the code itself comes from kernels.c. */
static uint32_t load_spirv(struct context *ctx, const struct ze_module_desc *d,
			   void **module, void **log)
{
	const uint32_t *w = (const void *)d->input;
	size_t n = d->input_size / 4, i, entries = 0;
	struct module *m;

	if (d->input_size % 4 || n < 5 || w[0] != 0x07230203)
		return refuse(LZ_ERROR_MODULE_BUILD_FAILURE, log, "not SPIR-V", "");
	for (i = 5; i < n; i += w[i] >> 16) {
		if (!(w[i] >> 16) || (w[i] >> 16) > n - i)
			return refuse(LZ_ERROR_MODULE_BUILD_FAILURE, log,
				      "SPIR-V is cut short", "");
		entries += (w[i] & 0xffff) == 15;
	}
	m = new_module(ctx, (uint32_t)entries);
	if (!m)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	for (i = 5; i < n; i += w[i] >> 16) {
		if ((w[i] & 0xffff) != 15)
			continue;
		snprintf(m->names[m->count], 32, "%.31s", (const char *)&w[i + 3]);
		if (!kernel_find(m->names[m->count])) {
			uint32_t r =
				refuse(LZ_ERROR_MODULE_BUILD_FAILURE, log,
				       "undefined reference to ", m->names[m->count]);

			ctx->children--;
			destroy(&m->object);
			return r;
		}
		m->count++;
	}
	*module = m;
	return OK;
}

uint32_t do_zeModuleCreate(void *context, void *device, const struct ze_module_desc *desc,
			   void **module, void **log)
{
	OBJECT(context, ctx, context, CONTEXT);
	OBJECT(device, dev, device, DEVICE);

	STYPE(desc, MODULE_DESC);
	if (log)
		*log = NULL;
	if (dev->root->lost)
		return LZ_ERROR_DEVICE_LOST;
	if (desc->format == LZ_FORMAT_NATIVE)
		return load_native(ctx, desc, module, log);
	if (dev->spec->type != LZ_DEVICE_GPU)
		return LZ_ERROR_UNSUPPORTED_FEATURE;
	return load_spirv(ctx, desc, module, log);
}

uint32_t do_zeModuleDestroy(void *module)
{
	OBJECT(module, m, module, MODULE);

	if (m->kernels)
		misuse("a module was destroyed before its kernels");
	m->ctx->children--;
	return destroy(&m->object);
}

uint32_t do_zeModuleGetKernelNames(void *module, uint32_t *count, const char **names)
{
	OBJECT(module, m, module, MODULE);
	uint32_t n = give(count, m->count), i;

	for (i = 0; names && i < n; i++)
		names[i] = m->names[i];
	return OK;
}

uint32_t do_zeModuleBuildLogDestroy(void *log)
{
	OBJECT(log, l, log, LOG);

	return destroy(&l->object);
}

uint32_t do_zeModuleBuildLogGetString(void *log, size_t *bytes, char *text)
{
	OBJECT(log, l, log, LOG);

	/* Intel's driver copies nothing into less; older ones write behind the end. */
	if (text && *bytes < strlen(l->text) + 1)
		return LZ_ERROR_INVALID_SIZE;
	if (text)
		memcpy(text, l->text, strlen(l->text) + 1);
	*bytes = strlen(l->text) + 1;
	return OK;
}

uint32_t do_zeKernelCreate(void *module, const struct ze_kernel_desc *desc, void **kernel)
{
	OBJECT(module, m, module, MODULE);
	const struct kernel_spec *spec = NULL;
	struct kernel *k;
	uint32_t i;

	STYPE(desc, KERNEL_DESC);
	for (i = 0; i < m->count; i++)
		if (strcmp(m->names[i], desc->name) == 0)
			spec = kernel_find(desc->name);
	if (!spec)
		return LZ_ERROR_INVALID_KERNEL_NAME;
	k = create(sizeof(*k), OBJECT_KERNEL);
	if (!k)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	k->spec = spec;
	k->module = m;
	for (i = 0; i < 3; i++)
		k->size[i] = 1;
	m->kernels++;
	*kernel = k;
	return OK;
}

uint32_t do_zeKernelDestroy(void *kernel)
{
	OBJECT(kernel, k, kernel, KERNEL);

	k->module->kernels--;
	return destroy(&k->object);
}

uint32_t do_zeKernelSetGroupSize(void *kernel, uint32_t x, uint32_t y, uint32_t z)
{
	OBJECT(kernel, k, kernel, KERNEL);

	if (!x || !y || !z || x > 1024 || y > 1024 || z > 1024 ||
	    (uint64_t)x * y * z > 1024)
		return LZ_ERROR_INVALID_GROUP_SIZE_DIMENSION;
	k->size[0] = x;
	k->size[1] = y;
	k->size[2] = z;
	return OK;
}

uint32_t do_zeKernelSetArgumentValue(void *kernel, uint32_t index, size_t bytes,
				     const void *value)
{
	OBJECT(kernel, k, kernel, KERNEL);

	if (index >= k->spec->args)
		return LZ_ERROR_INVALID_KERNEL_ARGUMENT_INDEX;
	if (bytes != k->spec->arg_bytes[index])
		return LZ_ERROR_INVALID_KERNEL_ARGUMENT_SIZE;
	k->args[index] = 0;
	if (value)
		memcpy(&k->args[index], value, bytes);
	k->set |= 1u << index;
	k->serials[index] = bytes == 8 ? serial_at(k->args[index]) : 0;
	return OK;
}

uint32_t do_zeKernelSetIndirectAccess(void *kernel, uint32_t flags)
{
	OBJECT(kernel, k, kernel, KERNEL);

	if (flags > (LZ_INDIRECT_HOST | LZ_INDIRECT_DEVICE | LZ_INDIRECT_SHARED))
		return LZ_ERROR_INVALID_ENUMERATION;
	k->indirect = flags & LZ_INDIRECT_DEVICE;
	return OK;
}

uint32_t do_zeKernelGetProperties(void *kernel, struct ze_kernel_properties *p)
{
	OBJECT(kernel, k, kernel, KERNEL);

	STYPE(p, KERNEL_PROPERTIES);
	p->arg_count = k->spec->args;
	p->max_subgroup_size = 16;
	return OK;
}

/* ---- sysman ------------------------------------------------------------------------ */

uint32_t do_zesDeviceEnumSchedulers(void *device, uint32_t *count, void **schedulers)
{
	const char *sysman = getenv("ZES_ENABLE_SYSMAN");
	OBJECT(device, dev, device, DEVICE);
	uint32_t n, i;

	if (!sysman || strcmp(sysman, "1"))
		return LZ_ERROR_UNINITIALIZED;
	n = give(count, dev->spec->type == LZ_DEVICE_GPU ? 2 : 0);
	for (i = 0; schedulers && i < n; i++)
		schedulers[i] = &dev->root->schedulers[i];
	return OK;
}

static struct device *device_of(const void *scheduler)
{
	uint32_t d;

	for (d = 0; d < DEVICES; d++)
		if (&world.roots[d].schedulers[0] == scheduler ||
		    &world.roots[d].schedulers[1] == scheduler)
			return &world.roots[d];
	return NULL;
}

uint32_t do_zesSchedulerGetProperties(void *scheduler, struct zes_sched_properties *p)
{
	const struct device *dev = device_of(scheduler);

	if (!dev)
		return BAD_HANDLE;
	if (p->stype != LZS_STYPE_SCHED_PROPERTIES)
		return BAD_ARG;
	p->on_subdevice = 0;
	p->subdevice_id = 0;
	p->can_control = world.permit;
	p->engines = scheduler == &dev->schedulers[1] ? LZS_ENGINE_COMPUTE : 1u << 4;
	p->supported_modes = 7;
	return OK;
}

uint32_t do_zesSchedulerGetCurrentMode(void *scheduler, uint32_t *mode)
{
	struct device *dev = device_of(scheduler);

	if (!dev)
		return BAD_HANDLE;
	*mode = dev->mode;
	return OK;
}

static uint32_t set_mode(void *scheduler, uint32_t mode, uint8_t *reload)
{
	struct device *dev = device_of(scheduler);

	if (!dev)
		return BAD_HANDLE;
	if (!world.permit)
		return LZ_ERROR_INSUFFICIENT_PERMISSIONS;
	if (scheduler == &dev->schedulers[1])
		dev->mode = mode;
	*reload = 0;
	return OK;
}

uint32_t do_zesSchedulerGetTimeoutModeProperties(void *scheduler, uint8_t defaults,
						 struct zes_sched_timeout_properties *p)
{
	(void)defaults;
	if (!device_of(scheduler))
		return BAD_HANDLE;
	if (p->stype != LZS_STYPE_SCHED_TIMEOUT_PROPERTIES)
		return BAD_ARG;
	p->watchdog = 640000;
	return OK;
}

uint32_t
do_zesSchedulerGetTimesliceModeProperties(void *scheduler, uint8_t defaults,
					  struct zes_sched_timeslice_properties *p)
{
	(void)defaults;
	if (!device_of(scheduler))
		return BAD_HANDLE;
	if (p->stype != LZS_STYPE_SCHED_TIMESLICE_PROPERTIES)
		return BAD_ARG;
	p->interval = 5000;
	p->yield = 640000;
	return OK;
}

uint32_t do_zesSchedulerSetTimeoutMode(void *scheduler,
				       struct zes_sched_timeout_properties *p,
				       uint8_t *reload)
{
	if (p->stype != LZS_STYPE_SCHED_TIMEOUT_PROPERTIES || !p->watchdog)
		return BAD_ARG;
	return set_mode(scheduler, LZ_SCHED_TIMEOUT, reload);
}

uint32_t do_zesSchedulerSetTimesliceMode(void *scheduler,
					 struct zes_sched_timeslice_properties *p,
					 uint8_t *reload)
{
	if (p->stype != LZS_STYPE_SCHED_TIMESLICE_PROPERTIES || !p->interval)
		return BAD_ARG;
	return set_mode(scheduler, LZ_SCHED_TIMESLICE, reload);
}

uint32_t do_zesSchedulerSetExclusiveMode(void *scheduler, uint8_t *reload)
{
	return set_mode(scheduler, LZ_SCHED_EXCLUSIVE, reload);
}
