/* SPDX-License-Identifier: Apache-2.0 */
/* What each entry point of the stand-in does. */
#define _GNU_SOURCE
#include "internal.h"
#include "mig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIVER_VERSION CU_VERSION(13, 0)
#define STACK_MAX      8
#define REGISTERS      65536u /* of a multiprocessor */
#define CLUSTER_MOST   8      /* blocks */

int version(void)
{
	const char *text = setting("VERSION");

	return text ? atoi(text) : DRIVER_VERSION;
}

/* Which MIG instances the process sees: of those that CUDA_VISIBLE_DEVICES names, or all,
 * the first of each GPU instance. */
static uint32_t shown(struct mig_instance all[MIG_MOST], uint32_t which[DEVICES])
{
	const uint32_t count = mig_read(all), most = setting("MIG_OLD") ? 1 : DEVICES;
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	uint32_t i, k, n = 0;
	char uuid[48];

	for (i = 0; i < count && n < most; i++) {
		mig_uuid_text(i, uuid);
		for (k = 0; k < n; k++)
			if (all[which[k]].gpu_instance == all[i].gpu_instance)
				break;
		if (k == n && (!visible || strstr(visible, uuid)))
			which[n++] = i;
	}
	return n;
}

static int device_count(void)
{
	const char *text = setting("DEVICES");
	struct mig_instance all[MIG_MOST];
	uint32_t which[DEVICES];
	int n = text ? atoi(text) : DEVICES;

	if (mig_read(all))
		return (int)shown(all, which);
	return n < DEVICES ? n : DEVICES;
}

bool ignores(const char *variable)
{
	const char *what = getenv(variable);

	if (!what)
		return false;
	if (strcmp(what, "crash") == 0)
		raise(SIGKILL);
	while (strcmp(what, "hang") == 0)
		pause();
	return strcmp(what, "ignored") == 0;
}

/* ---- devices and contexts ---------------------------------------------------------- */

const struct tpc_gpu *gpu_of(const struct device *d)
{
	const char *card = d->index ? NULL : setting("CARD");
	uint32_t i = 2;

	while (card && i < TPC_GPUS && strcmp(tpc_gpus[i].name, card) != 0)
		i++;
	return &tpc_gpus[card && i < TPC_GPUS ? i : d->index];
}

static void set_up_device(uint32_t index)
{
	static char names[DEVICES][64];
	struct device *d = &world.devices[index];
	struct mig_instance all[MIG_MOST];
	uint32_t which[DEVICES];
	const struct tpc_gpu *g;

	d->index = index;
	g = gpu_of(d);
	*d = (struct device){.index = index,
			     .units = tpc_sms(g),
			     .major = g->major,
			     .minor = g->minor,
			     .name = names[index],
			     .memory = g->memory};
	snprintf(names[index], sizeof(names[index]),
		 "HAL stand-in GPU, %s%s%u multiprocessors", g->name,
		 g->name[0] ? ", " : "", d->units);
	if (index < shown(all, which)) {
		const struct mig_instance *m = &all[which[index]];

		d->units = m->multiprocessors;
		d->memory = (uint64_t)m->mib << 20;
		snprintf(names[index], sizeof(names[index]), "HAL stand-in GPU MIG %s",
			 m->profile);
	}
}

uint32_t set_up(void)
{
	const char *wait = setting("FREE");
	uint32_t i;

	for (i = 0; i < DEVICES; i++)
		set_up_device(i);
	world.pace_mono = mono();
	world.frees_wait = (wait && strcmp(wait, "wait") == 0) || setting("DELAYS");
	world.leaky = world.mask_leaky = world.pretends = setting("PRETENDS") != NULL;
	world.ready = true;
	return CUR_SUCCESS;
}

uint32_t do_cuInit(uint32_t flags)
{
	if (flags)
		return CUR_INVALID_VALUE;
	if (!device_count())
		return CUR_NO_DEVICE;
	return world.ready ? CUR_SUCCESS : set_up();
}

uint32_t do_cuDriverGetVersion(int *value)
{
	*value = version();
	return CUR_SUCCESS;
}

uint32_t do_cuDeviceGetCount(int *count)
{
	*count = device_count();
	return CUR_SUCCESS;
}

uint32_t do_cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal >= 0 && ordinal < device_count() ? CUR_SUCCESS
							: CUR_INVALID_DEVICE;
}

struct device *device_at(int device)
{
	return device >= 0 && device < device_count() ? &world.devices[device] : NULL;
}

uint32_t do_cuDeviceGetName(char *name, int bytes, int device)
{
	const struct device *d = device_at(device);

	if (!d)
		return CUR_INVALID_DEVICE;
	snprintf(name, (size_t)bytes, "%s", d->name);
	return CUR_SUCCESS;
}

uint32_t do_cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	const struct device *d = device_at(device);

	if (!d)
		return CUR_INVALID_DEVICE;
	*bytes = d->memory;
	return CUR_SUCCESS;
}

uint32_t do_cuDeviceGetPCIBusId(char *id, int bytes, int device)
{
	if (!device_at(device))
		return CUR_INVALID_DEVICE;
	snprintf(id, (size_t)bytes, "0000:%02X:00.0", 0x1a + device);
	return CUR_SUCCESS;
}

uint32_t do_cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
	struct mig_instance all[MIG_MOST];
	uint32_t which[DEVICES];

	memset(uuid, 0x6a, 16);
	if (!device_at(device))
		return CUR_INVALID_DEVICE;
	memcpy(uuid, "HAL stand-in   ", 16);
	uuid[15] = (unsigned char)device;
	if ((uint32_t)device < shown(all, which))
		mig_uuid(which[device], uuid);
	return CUR_SUCCESS;
}

/* What MPS shows of them to a client that may use a part only. */
static int multiprocessors(const struct device *d)
{
	const char *text = setting("SMS");
	const int n = text ? atoi(text) : (int)d->units;

	return n < (int)d->units ? n : (int)d->units;
}

uint32_t do_cuDeviceGetAttribute(int *value, uint32_t attribute, int device)
{
	static const int block[3] = {1024, 1024, 64}, grid[3] = {INT32_MAX, 65535, 65535};
	const struct device *d = device_at(device);

	if (!d)
		return CUR_INVALID_DEVICE;
	if (attribute >= CUA_MAX_BLOCK_X && attribute < CUA_MAX_BLOCK_X + 3)
		*value = block[attribute - CUA_MAX_BLOCK_X];
	else if (attribute >= CUA_MAX_GRID_X && attribute < CUA_MAX_GRID_X + 3)
		*value = grid[attribute - CUA_MAX_GRID_X];
	else if (attribute == CUA_MAX_THREADS_PER_BLOCK)
		*value = 1024;
	else if (attribute == CUA_MULTIPROCESSORS)
		*value = multiprocessors(d);
	else if (attribute == CUA_UNIFIED_ADDRESSING)
		*value = 1;
	else if (attribute == CUA_MAJOR)
		*value = (int)d->major;
	else if (attribute == CUA_MINOR)
		*value = (int)d->minor;
	else if (attribute == CUA_MAX_SHARED)
		*value = SHARED_GATE;
	else if (attribute == CUA_MAX_SHARED_OPTIN)
		*value = SHARED_MOST;
	else if (attribute == CUA_MPS)
		*value = setting("MPS") && *setting("MPS") == '1';
	else if (attribute == CUA_VMM)
		*value = !ignores("HAL_STAND_IN_CUDA_VMM");
	else if (attribute == CUA_EXPORT_FD)
		*value = !ignores("HAL_STAND_IN_CUDA_EXPORT");
	else
		return CUR_INVALID_VALUE;
	return CUR_SUCCESS;
}

uint32_t do_cuDevicePrimaryCtxRetain(void **context, int device)
{
	struct device *d = device_at(device);

	if (!d)
		return CUR_INVALID_DEVICE;
	if (d->lost)
		return d->lost;
	d->retained++;
	*context = d;
	return CUR_SUCCESS;
}

uint32_t do_cuDevicePrimaryCtxRelease_v2(int device)
{
	struct device *d = device_at(device);

	if (!d)
		return CUR_INVALID_DEVICE;
	if (!d->retained)
		return CUR_INVALID_CONTEXT;
	if (--d->retained)
		return d->lost;
	if (device_works(d))
		misuse("the context went while something ran in it");
	device_drop(d);
	d->stack_limit = 0;
	return d->lost;
}

static _Thread_local struct device *stack[STACK_MAX];
static _Thread_local uint32_t depth;

struct device *current_device(void)
{
	return depth ? stack[depth - 1] : NULL;
}

static uint32_t check_context(void *context)
{
	struct device *d = context;

	if (d != &world.devices[0] && d != &world.devices[1])
		return CUR_INVALID_CONTEXT;
	if (!d->retained)
		return CUR_CONTEXT_IS_DESTROYED;
	return d->lost;
}

uint32_t do_cuCtxSetCurrent(void *context)
{
	uint32_t r = context ? check_context(context) : CUR_SUCCESS;

	if (r)
		return r;
	depth = depth ? depth - 1 : 0;
	if (context)
		stack[depth++] = context;
	return CUR_SUCCESS;
}

uint32_t do_cuCtxPushCurrent_v2(void *context)
{
	uint32_t r = check_context(context);

	if (r || depth == STACK_MAX)
		return r ? r : CUR_OUT_OF_MEMORY;
	stack[depth++] = context;
	return CUR_SUCCESS;
}

uint32_t do_cuCtxPopCurrent_v2(void **context)
{
	if (!depth)
		return CUR_INVALID_CONTEXT;
	*context = stack[--depth];
	return CUR_SUCCESS;
}

size_t stack_limit(const struct device *d)
{
	return d->stack_limit ? d->stack_limit : STACK_FIRST;
}

uint32_t do_cuCtxGetLimit(size_t *value, uint32_t limit)
{
	if (limit != CU_STACK_BYTES)
		return CUR_UNSUPPORTED_LIMIT;
	*value = stack_limit(current_device());
	return CUR_SUCCESS;
}

/* It waits for the device where the limit rises; a launch does the same by itself. */
static uint32_t raise_stack(size_t value)
{
	struct device *d = current_device();

	if (value > stack_limit(d) && !wait_for(is_idle, d))
		return CUR_UNKNOWN;
	d->stack_limit = (value + 15) / 16 * 16;
	return d->lost;
}

uint32_t do_cuCtxSetLimit(uint32_t limit, size_t value)
{
	if (limit != CU_STACK_BYTES)
		return CUR_UNSUPPORTED_LIMIT;
	if (!value || value > STACK_MOST)
		return CUR_INVALID_VALUE;
	blocks("cuCtxSetLimit");
	return raise_stack(value);
}

uint32_t do_cuThreadExchangeStreamCaptureMode(uint32_t *mode)
{
	return exchange_mode(mode);
}

uint32_t do_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return CUR_SUCCESS;
}

/* ---- memory ------------------------------------------------------------------------ */

uint32_t do_cuMemGetInfo_v2(size_t *left, size_t *total)
{
	const struct device *d = current_device();

	*left = memory_left(d);
	*total = d->memory;
	return CUR_SUCCESS;
}

uint32_t do_cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	return allocate(address, bytes, "cuMemAlloc_v2");
}

uint32_t do_cuMemFree_v2(uint64_t address)
{
	return give_back(address, false, "cuMemFree_v2");
}

uint32_t do_cuMemHostAlloc(void **p, size_t bytes, uint32_t flags)
{
	*p = (void *)(uintptr_t)0x6a756e6b;
	if (flags & ~(CU_HOST_PORTABLE | CU_HOST_DEVICEMAP))
		return CUR_INVALID_VALUE;
	return allocate_host(p, bytes, "cuMemHostAlloc");
}

uint32_t do_cuMemFreeHost(void *p)
{
	return give_back((uintptr_t)p, true, "cuMemFreeHost");
}

uint32_t do_cuMemHostGetDevicePointer_v2(uint64_t *address, void *p, uint32_t flags)
{
	return device_pointer(address, p, flags);
}

uint32_t do_cuMemHostRegister_v2(void *p, size_t bytes, uint32_t flags)
{
	if (flags & ~(CU_HOST_PORTABLE | CU_HOST_DEVICEMAP))
		return CUR_INVALID_VALUE;
	return register_host(p, bytes, "cuMemHostRegister_v2");
}

uint32_t do_cuMemHostUnregister(void *p)
{
	return unregister_host(p, "cuMemHostUnregister");
}

/* ---- streams and events ------------------------------------------------------------ */

/* New streams are old ones, as they were left. */
static unsigned char left_in_stream[sizeof(((struct stream *)NULL)->own)];

uint32_t do_cuStreamCreateWithPriority(void **stream, uint32_t flags, int priority)
{
	struct stream *s;

	*stream = (void *)(uintptr_t)0x6a756e6b;
	if (flags & ~CU_STREAM_NON_BLOCKING)
		return CUR_INVALID_VALUE;
	if (!flags)
		misuse("a stream that waits for the NULL stream");
	s = room_for_stream() ? make(OBJECT_STREAM, sizeof(*s)) : NULL;
	if (!s)
		return CUR_OUT_OF_MEMORY;
	s->flags = flags;
	s->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
	s->last = &s->first;
	s->channel = channel_of_next_stream();
	s->object.inner = s->own;
	memcpy(s->own, left_in_stream, sizeof(s->own));
	*stream = s;
	return CUR_SUCCESS;
}

uint32_t do_cuStreamDestroy_v2(void *stream)
{
	struct stream *s = get(stream, OBJECT_STREAM);
	const struct job *j;

	if (!s)
		return CUR_INVALID_HANDLE;
	/* Nothing is cancelled.  A record that nobody can see any more does no harm. */
	for (j = s->first; j; j = j->next)
		if (j->op != OP_RECORD)
			misuse("a stream ends with %u commands", s->jobs);
	memcpy(left_in_stream, s->own, sizeof(s->own));
	if (s->own[0x51c] && version() == CU_VERSION(13, 0))
		misuse("a stream ends with a mask in it");
	s->object.gone = true;
	return CUR_SUCCESS;
}

uint32_t do_cuGetExportTable(const void **table, const void *uuid)
{
	static const unsigned char name[16] = {0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10,
					       0xab, 0x4e, 0x90, 0xdd, 0x54, 0x71,
					       0x9f, 0xe5, 0xf7, 0x4b};

	*table = NULL;
	if (memcmp(uuid, name, sizeof(name)) != 0)
		return CUR_INVALID_VALUE;
	*table = export_table();
	return CUR_SUCCESS;
}

/* ---- green contexts ---------------------------------------------------------------- */

/* What is in a resource, where a driver keeps what is its own. */
struct provenance {
	uint32_t split; /* which call made it; 0: the device's */
	uint32_t device, first, count;
};

static struct provenance provenance_of(const struct cu_resource *r)
{
	struct provenance p;

	memcpy(&p, r->internal, sizeof(p));
	return p;
}

/* From 9.0 on 8 at a time; before it 2, of 8.x at least 4. */
static struct cu_resource resource(const struct device *d, struct provenance p)
{
	struct cu_resource r = {.type = CU_RESOURCE_SM,
				.count = p.count,
				.least = d->major >= 9   ? 8
					 : d->major == 8 ? 4
							 : 2,
				.together = d->major >= 9 ? 8 : 2};

	memcpy(r.internal, &p, sizeof(p));
	return r;
}

uint32_t do_cuDeviceGetDevResource(int device, struct cu_resource *r, uint32_t type)
{
	const struct device *d = device_at(device);

	memset(r, 0x6a, sizeof(*r));
	if (!d)
		return CUR_INVALID_DEVICE;
	if (type != CU_RESOURCE_SM)
		return CUR_INVALID_RESOURCE_TYPE;
	*r = resource(d, (struct provenance){.device = d->index, .count = d->units});
	return CUR_SUCCESS;
}

uint32_t do_cuDevSmResourceSplitByCount(struct cu_resource *parts, uint32_t *count,
					const struct cu_resource *whole,
					struct cu_resource *rest, uint32_t flags,
					uint32_t least)
{
	const struct provenance from = provenance_of(whole);
	const struct device *d;
	static uint32_t splits;
	uint32_t n, i;

	if (whole->type != CU_RESOURCE_SM)
		return CUR_INVALID_RESOURCE_TYPE;
	/* What was split has to become a context before it is split again. */
	if (from.split)
		return CUR_INVALID_RESOURCE_CONFIGURATION;
	if (flags)
		return CUR_INVALID_VALUE;
	d = &world.devices[from.device];
	n = (least + whole->together - 1) / whole->together * whole->together;
	n = n < whole->least ? whole->least : n;
	if (!n || n > from.count)
		return CUR_INVALID_RESOURCE_CONFIGURATION;
	if (!parts) {
		*count = from.count / n;
		return CUR_SUCCESS;
	}
	if (*count > from.count / n)
		*count = from.count / n;
	splits++;
	for (i = 0; i < *count; i++)
		parts[i] = resource(d, (struct provenance){.split = splits,
							   .device = d->index,
							   .first = i * n,
							   .count = n});
	if (rest)
		*rest = resource(d, (struct provenance){.split = splits,
							.device = d->index,
							.first = *count * n,
							.count = d->units - *count * n});
	return CUR_SUCCESS;
}

/* All of one split, none twice; nobody gives a descriptor back, nor does the driver ask.
 */
uint32_t do_cuDevResourceGenerateDesc(void **desc, struct cu_resource *parts,
				      uint32_t count)
{
	static struct green made[64];
	static uint32_t next;
	struct green *g = &made[next++ % 64];
	uint32_t i, u;

	*desc = (void *)(uintptr_t)0x6a756e6b;
	if (!count)
		return CUR_INVALID_VALUE;
	memset(g, 0, sizeof(*g));
	for (i = 0; i < count; i++) {
		const struct provenance p = provenance_of(&parts[i]);

		if (parts[i].type != CU_RESOURCE_SM)
			return CUR_INVALID_RESOURCE_TYPE;
		if (p.split != provenance_of(&parts[0]).split)
			return CUR_INVALID_RESOURCE_CONFIGURATION;
		g->object.dev = &world.devices[p.device];
		for (u = p.first; u < p.first + p.count; u++) {
			if (g->unit[u])
				return CUR_INVALID_RESOURCE_CONFIGURATION;
			g->unit[u] = true;
		}
	}
	*desc = g;
	return CUR_SUCCESS;
}

uint32_t do_cuGreenCtxCreate(void **green, void *desc, int device, uint32_t flags)
{
	const struct green *from = desc;
	struct device *d = device_at(device);
	struct green *g;

	*green = (void *)(uintptr_t)0x6a756e6b;
	if (!d || from->object.dev != d)
		return CUR_INVALID_DEVICE;
	if (flags != CU_GREEN_DEFAULT_STREAM)
		return CUR_INVALID_VALUE;
	if (!d->retained)
		misuse("a green context starts the primary one");
	if (d->lost)
		return d->lost;
	blocks("cuGreenCtxCreate");
	if (world.hooked)
		return CUR_NOT_SUPPORTED;
	g = make(OBJECT_GREEN, sizeof(*g));
	if (!g)
		return CUR_OUT_OF_MEMORY;
	g->object.dev = d;
	memcpy(g->unit, from->unit, sizeof(g->unit));
	*green = g;
	return CUR_SUCCESS;
}

/* NULL: none, or gone. */
static struct green *green_of(void *handle)
{
	struct object *o;

	for (o = world.objects; o && o != handle; o = o->next)
		;
	if (o && o->kind == OBJECT_GREEN && !o->gone)
		return (struct green *)o;
	misuse("%p is no green context", handle);
	return NULL;
}

uint32_t do_cuGreenCtxDestroy(void *green)
{
	struct green *g = green_of(green);
	const struct object *o;

	if (!g)
		return CUR_INVALID_HANDLE;
	blocks("cuGreenCtxDestroy");
	for (o = world.objects; o; o = o->next)
		if (o->kind == OBJECT_STREAM && !o->gone &&
		    ((const struct stream *)o)->only == g->unit)
			misuse("a green context goes before a stream of it");
	g->object.gone = true;
	return g->object.dev->lost;
}

uint32_t do_cuGreenCtxStreamCreate(void **stream, void *green, uint32_t flags,
				   int priority)
{
	struct green *g = green_of(green);
	uint32_t r;

	*stream = (void *)(uintptr_t)0x6a756e6b;
	if (!g || !current_device())
		return g ? CUR_INVALID_CONTEXT : CUR_INVALID_HANDLE;
	if (g->object.dev->lost)
		return g->object.dev->lost;
	if (ignores("HAL_STAND_IN_CUDA_GREEN"))
		world.leaky = true;
	r = do_cuStreamCreateWithPriority(stream, flags, priority);
	if (!r)
		((struct stream *)*stream)->only = g->unit;
	return r;
}

uint32_t do_cuStreamQuery(void *stream)
{
	return query_stream(stream);
}

/* Of a green context's stream that context. */
uint32_t do_cuStreamGetCtx(void *stream, void **context)
{
	const struct stream *s = get_any(stream, OBJECT_STREAM);

	if (!s)
		return CUR_INVALID_HANDLE;
	*context = s->only ? (void *)(uintptr_t)s->only : s->object.dev;
	return CUR_SUCCESS;
}

uint32_t do_cuStreamGetFlags(void *stream, uint32_t *flags)
{
	return stream_flags(stream, flags);
}

uint32_t do_cuStreamIsCapturing(void *stream, uint32_t *status)
{
	return stream_capture(stream, status);
}

uint32_t do_cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t address)
{
	return address_range(base, bytes, address);
}

uint32_t do_cuStreamSynchronize(void *stream)
{
	return wait_stream(stream, "cuStreamSynchronize");
}

uint32_t do_cuLaunchHostFunc(void *stream, void (*fn)(void *user), void *user)
{
	return fn ? push_host(stream, (struct job){.host = fn, .user = user})
		  : CUR_INVALID_VALUE;
}

uint32_t do_cuStreamAddCallback(void *stream,
				void (*fn)(void *stream, uint32_t result, void *user),
				void *user, uint32_t flags)
{
	const struct stream *s = get_any(stream, OBJECT_STREAM);

	if (s && s->capture)
		return CUR_NOT_PERMITTED;
	return fn && !flags ? push_host(stream, (struct job){.told = fn, .user = user})
			    : CUR_INVALID_VALUE;
}

uint32_t do_cuStreamWriteValue32_v2(void *stream, uint64_t address, uint32_t value,
				    uint32_t flags)
{
	struct stream *s = get(stream, OBJECT_STREAM);

	if (!s)
		return CUR_INVALID_HANDLE;
	if (flags || address % 4 || !allocation_of(address, 4))
		return CUR_INVALID_VALUE;
	return push(
		s,
		(struct job){.op = OP_WRITE, .dst = address, .bytes = 4, .value = value});
}

uint32_t do_cuEventCreate(void **event, uint32_t flags)
{
	struct event *e;

	*event = (void *)(uintptr_t)0x6a756e6b;
	if (flags & ~(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING))
		return CUR_INVALID_VALUE;
	e = make(OBJECT_EVENT, sizeof(*e));
	if (!e)
		return CUR_OUT_OF_MEMORY;
	e->timing = !(flags & CU_EVENT_DISABLE_TIMING);
	*event = e;
	return CUR_SUCCESS;
}

uint32_t do_cuEventDestroy_v2(void *event)
{
	return destroy_event(event);
}

uint32_t do_cuEventRecord(void *event, void *stream)
{
	return record_event(event, stream);
}

uint32_t do_cuEventSynchronize(void *event)
{
	return wait_event(event, "cuEventSynchronize");
}

uint32_t do_cuEventElapsedTime(float *ms, void *begin, void *end)
{
	return elapsed(ms, begin, end);
}

/* ---- copies and fills -------------------------------------------------------------- */

/* A kernel of the driver's own has a descriptor as any other. */
static uint32_t push_move(struct stream *s, struct job j)
{
	j.is_kernel = runs_kernel(&j);
	if (j.is_kernel) {
		stream_show(s, version(), j.off);
		qmd_show(s->object.dev, j.off);
	}
	return push(s, j);
}

uint32_t do_cuMemcpyAsync(uint64_t dst, uint64_t src, size_t bytes, void *stream)
{
	struct stream *s = get(stream, OBJECT_STREAM);

	if (!s)
		return CUR_INVALID_HANDLE;
	/* Pageable memory of the host's is copied behind the whole stream. */
	if (!device_side(dst, bytes) || !device_side(src, bytes)) {
		misuse("a copy of 0x%llx to 0x%llx: pageable, or not all of it there",
		       (unsigned long long)src, (unsigned long long)dst);
		return CUR_INVALID_VALUE;
	}
	return push_move(s, (struct job){.op = OP_COPY,
					 .dst = device_side(dst, bytes),
					 .src = device_side(src, bytes),
					 .bytes = bytes});
}

uint32_t do_cuMemsetD32Async(uint64_t dst, uint32_t value, size_t count, void *stream)
{
	struct stream *s = get(stream, OBJECT_STREAM);

	if (!s)
		return CUR_INVALID_HANDLE;
	if (dst % 4 || !allocation_of(dst, count * 4))
		return CUR_INVALID_VALUE;
	return push_move(s, (struct job){.op = OP_FILL,
					 .dst = dst,
					 .bytes = count * 4,
					 .value = value});
}

/* ---- launches ---------------------------------------------------------------------- */

static bool fits(const uint32_t *n, uint32_t x, uint32_t y, uint32_t z)
{
	return n[0] && n[1] && n[2] && n[0] <= x && n[1] <= y && n[2] <= z;
}

uint32_t launch_job(struct job *j, void *function, const uint32_t grid[3],
		    const uint32_t block[3], uint32_t shared, void **params, void **extra)
{
	struct function *f = get(function, OBJECT_FUNCTION);

	if (!f)
		return CUR_INVALID_HANDLE;
	*j = (struct job){.op = OP_LAUNCH, .function = f, .call = f->shape};
	memcpy(j->call.grid, grid, sizeof(j->call.grid));
	memcpy(j->call.block, block, sizeof(j->call.block));
	j->call.shared = shared;
	if (!fits(grid, INT32_MAX, 65535, 65535) || !fits(block, 1024, 1024, 64) ||
	    (uint64_t)block[0] * block[1] * block[2] > 1024 || extra ||
	    (shared > SHARED_GATE && shared > (uint32_t)f->dynamic_shared))
		return CUR_INVALID_VALUE;
	if (f->registers * block[0] * block[1] * block[2] > REGISTERS)
		return CUR_LAUNCH_OUT_OF_RESOURCES;
	if (f->cluster[0] * f->cluster[1] * f->cluster[2] > CLUSTER_MOST)
		return CUR_INVALID_CLUSTER_SIZE;
	return take_parameters(&j->call, params);
}

uint32_t do_cuLaunchKernel(void *function, uint32_t grid_x, uint32_t grid_y,
			   uint32_t grid_z, uint32_t block_x, uint32_t block_y,
			   uint32_t block_z, uint32_t shared, void *stream, void **params,
			   void **extra)
{
	struct stream *s = get(stream, OBJECT_STREAM);
	struct job j;
	uint32_t r;

	if (!s)
		return CUR_INVALID_HANDLE;
	r = launch_job(&j, function, (uint32_t[3]){grid_x, grid_y, grid_z},
		       (uint32_t[3]){block_x, block_y, block_z}, shared, params, extra);
	if (r)
		return r;
	if (!j.function->loaded) {
		misuse("the code of %s is loaded by its launch", j.call.spec->name);
		if (!wait_for(is_idle, current_device()))
			return CUR_UNKNOWN;
		j.function->loaded = true;
	}
	if (j.function->local_bytes > stack_limit(current_device())) {
		misuse("local memory of %s is grown by its launch", j.call.spec->name);
		r = raise_stack(j.function->local_bytes);
		if (r)
			return r;
	}
	stream_show(s, version(), j.off);
	qmd_show(s->object.dev, j.off);
	return push(s, j);
}
