/* SPDX-License-Identifier: Apache-2.0 */
/* What each entry point of the stand-in does. */
#define _GNU_SOURCE
#include "internal.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JUNK        ((void *)(uintptr_t)0x6a756e6b)
#define SHARED_MOST (64 * 1024)
#define GRID_MOST   INT32_MAX

int hip_version(void)
{
	const char *text = setting("VERSION");

	return text ? atoi(text) : 50221153; /* 5.2.21153 */
}

int hip_device_count(void)
{
	const char *text = setting("DEVICES");
	const int n = text ? atoi(text) : KFD_GPUS;

	return n < KFD_GPUS ? n : KFD_GPUS;
}

/* ---- devices ----------------------------------------------------------------------- */

static _Thread_local int device_now;

struct device *current_device(void)
{
	return &world.devices[device_now];
}

static const struct kfd_gpu *gpu_of(const struct device *d)
{
	return &kfd_gpus[d->index];
}

/* Frees wait for all streams of the device, always. */
uint32_t set_up(void)
{
	uint32_t i;

	for (i = 0; i < KFD_GPUS; i++)
		world.devices[i] = (struct device){.index = i,
						   .units = kfd_cus(&kfd_gpus[i]),
						   .name = kfd_gpus[i].name,
						   .memory = kfd_gpus[i].memory};
	world.pace_mono = mono();
	world.frees_wait = true;
	world.ready = true;
	return HIPR_Success;
}

uint32_t do_hipInit(uint32_t flags)
{
	if (flags)
		return HIPR_InvalidValue;
	if (!hip_device_count())
		return HIPR_InvalidDevice;
	return world.ready ? HIPR_Success : set_up();
}

uint32_t do_hipGetDeviceCount(int *count)
{
	*count = hip_device_count();
	return *count ? HIPR_Success : HIPR_NoDevice;
}

static struct device *device_at(int device)
{
	return device >= 0 && device < hip_device_count() ? &world.devices[device] : NULL;
}

uint32_t do_hipGetDeviceProperties(struct hip_properties *p, int device)
{
	const struct device *d = device_at(device);

	if (!d)
		return HIPR_InvalidDevice;
	snprintf(p->name, sizeof(p->name), "HAL stand-in GPU, %s, %u CUs", d->name,
		 d->units);
	snprintf(p->arch, sizeof(p->arch), "%s", gpu_of(d)->arch);
	return HIPR_Success;
}

uint32_t do_hipDeviceGetAttribute(int *value, uint32_t attribute, int device)
{
	const struct device *d = device_at(device);

	if (!d)
		return HIPR_InvalidDevice;
	if (attribute >= HIPA_MAX_BLOCK_X && attribute < HIPA_MAX_BLOCK_X + 3)
		*value = 1024;
	else if (attribute >= HIPA_MAX_GRID_X && attribute < HIPA_MAX_GRID_X + 3)
		*value = GRID_MOST;
	else if (attribute == HIPA_MAX_THREADS_PER_BLOCK)
		*value = 1024;
	else if (attribute == HIPA_MULTIPROCESSORS)
		*value = (int)(gpu_of(d)->pairs ? d->units / 2 : d->units);
	else if (attribute == HIPA_MAX_SHARED)
		*value = SHARED_MOST;
	else if (attribute == HIPA_VMM && hip_version() >= 60000000)
		*value = hip_has_vmm();
	else if (attribute == HIPA_MAJOR)
		*value = (int)gpu_of(d)->target / 10000;
	else
		return HIPR_InvalidValue;
	return HIPR_Success;
}

uint32_t do_hipDeviceGetPCIBusId(char *id, int bytes, int device)
{
	if (!device_at(device))
		return HIPR_InvalidDevice;
	snprintf(id, (size_t)bytes, "0000:%02X:00.0",
		 ROCM_STAND_IN_BUS + (uint32_t)device);
	return HIPR_Success;
}

uint32_t do_hipGetDevice(int *device)
{
	*device = device_now;
	return HIPR_Success;
}

uint32_t do_hipSetDevice(int device)
{
	if (!device_at(device))
		return HIPR_InvalidDevice;
	device_now = device;
	return HIPR_Success;
}

uint32_t do_hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 1;
	*greatest = -1;
	return HIPR_Success;
}

/* ---- memory ------------------------------------------------------------------------ */

uint32_t do_hipMemGetInfo(size_t *left, size_t *total)
{
	*left = memory_left(current_device());
	*total = current_device()->memory;
	return HIPR_Success;
}

uint32_t do_hipMalloc(void **p, size_t bytes)
{
	uint64_t address;
	const uint32_t r = allocate(&address, bytes, "hipMalloc");

	*p = (void *)(uintptr_t)address;
	return r;
}

uint32_t do_hipFree(void *p)
{
	return give_back((uintptr_t)p, false, "hipFree");
}

uint32_t do_hipHostMalloc(void **p, size_t bytes, uint32_t flags)
{
	*p = JUNK;
	if (flags & ~(HIP_HOST_PORTABLE | HIP_HOST_MAPPED | HIP_HOST_COHERENT))
		return HIPR_InvalidValue;
	/* Else the host may see late, or never, what the device wrote. */
	if (!(flags & HIP_HOST_COHERENT))
		misuse("hipHostMalloc: memory that is not coherent");
	return allocate_host(p, bytes, "hipHostMalloc");
}

uint32_t do_hipHostFree(void *p)
{
	return give_back((uintptr_t)p, true, "hipHostFree");
}

uint32_t do_hipHostGetDevicePointer(void **device, void *host, uint32_t flags)
{
	uint64_t address;
	const uint32_t r = device_pointer(&address, host, flags);

	*device = (void *)(uintptr_t)address;
	return r;
}

uint32_t do_hipHostRegister(void *p, size_t bytes, uint32_t flags)
{
	if (flags & ~(HIP_HOST_PORTABLE | HIP_HOST_MAPPED))
		return HIPR_InvalidValue;
	return register_host(p, bytes, "hipHostRegister");
}

uint32_t do_hipHostUnregister(void *p)
{
	return unregister_host(p, "hipHostUnregister");
}

uint32_t do_hipMemcpyAsync(void *dst, const void *src, size_t bytes, uint32_t kind,
			   void *stream)
{
	struct stream *s = get(stream, OBJECT_STREAM);
	struct job j = {.op = OP_COPY,
			.dst = device_side((uintptr_t)dst, bytes),
			.src = device_side((uintptr_t)src, bytes),
			.bytes = bytes};

	if (!s)
		return HIPR_InvalidHandle;
	if (kind != HIP_COPY_DEFAULT)
		return HIPR_InvalidValue;
	j.is_kernel = runs_kernel(&j);
	if (j.dst && j.src)
		return push(s, j);
	misuse("hipMemcpyAsync of %p to %p: pageable, or not all of it there", src, dst);
	return HIPR_InvalidValue;
}

uint32_t do_hipMemsetD32Async(void *dst, int value, size_t count, void *stream)
{
	struct stream *s = get(stream, OBJECT_STREAM);
	struct job j = {.op = OP_FILL,
			.dst = (uintptr_t)dst,
			.bytes = 4 * count,
			.value = (uint32_t)value};

	if (!s)
		return HIPR_InvalidHandle;
	if ((uintptr_t)dst % 4 || !allocation_of((uintptr_t)dst, 4 * count))
		return HIPR_InvalidValue;
	j.is_kernel = runs_kernel(&j);
	return push(s, j);
}

/* ---- streams ----------------------------------------------------------------------- */

/* With as many bytes behind it as are asked for; NULL: no memory. */
static void *make_stream(int priority, size_t bytes)
{
	struct stream *s = room_for_stream() ? make(OBJECT_STREAM, bytes) : NULL;

	if (!s)
		return NULL;
	s->last = &s->first;
	s->channel = channel_of_next_stream();
	s->priority = priority < -1 ? -1 : priority > 1 ? 1 : priority;
	return s;
}

uint32_t do_hipStreamCreateWithPriority(void **stream, uint32_t flags, int priority)
{
	*stream = JUNK;
	if (flags & ~HIP_STREAM_NON_BLOCKING)
		return HIPR_InvalidValue;
	if (!flags)
		misuse("a stream that waits for the NULL stream");
	*stream = make_stream(priority, sizeof(struct stream));
	if (!*stream)
		return HIPR_OutOfMemory;
	((struct stream *)*stream)->flags = flags;
	return HIPR_Success;
}

/* What of a mask is left under the process's own; nothing: that alone counts, and no
 * word of it is said. */
static void limit(const struct device *d, struct masked *m)
{
	const uint32_t bits = gpu_of(d)->pairs ? d->units / 2 : d->units;
	const char *text = getenv("ROC_GLOBAL_CU_MASK");
	uint32_t i, any = 0, all[KFD_CUS_MAX / 32] = {0};
	uint64_t global = text ? strtoull(text, NULL, 16) : 0;

	for (i = 0; i < bits; i++)
		if (!text || (i < 64 && global >> i & 1))
			all[i / 32] |= 1u << i % 32;
	for (i = 0; i < KFD_CUS_MAX / 32; i++)
		any |= m->mask[i] & all[i];
	for (i = 0; i < KFD_CUS_MAX / 32; i++)
		m->mask[i] = any ? m->mask[i] & all[i] : all[i];
}

/* In CUs: from 6 on HIP takes a bit for a pair where there are pairs. */
static void spread(const struct device *d, struct masked *m)
{
	const bool pair = gpu_of(d)->pairs && hip_version() >= 60000000;
	uint32_t i, cus[KFD_CUS_MAX / 32] = {0};

	for (i = 0; i < d->units; i++) {
		const uint32_t bit = pair ? i / 2 : i;

		if (m->mask[bit / 32] >> bit % 32 & 1)
			cus[i / 32] |= 1u << i % 32;
	}
	(void)kfd_apply(gpu_of(d), cus, d->units, m->unit);
}

uint32_t do_hipExtStreamCreateWithCUMask(void **stream, uint32_t words,
					 const uint32_t *mask)
{
	struct masked *m;

	*stream = JUNK;
	if (!words || !mask)
		return HIPR_InvalidValue;
	m = make_stream(0, sizeof(*m));
	if (!m)
		return HIPR_OutOfMemory;
	m->words = words < KFD_CUS_MAX / 32 ? words : KFD_CUS_MAX / 32;
	memcpy(m->mask, mask, m->words * sizeof(*mask));
	limit(current_device(), m);
	spread(current_device(), m);
	m->stream.only = m->unit;
	*stream = m;
	return HIPR_Success;
}

/* Words that the stream's mask did not have are left as they are. */
uint32_t do_hipExtStreamGetCUMask(void *stream, uint32_t words, uint32_t *mask)
{
	const struct stream *s = get(stream, OBJECT_STREAM);
	const struct device *d = current_device();
	const uint32_t bits = gpu_of(d)->pairs ? d->units / 2 : d->units;
	const struct masked *m;

	if (!s)
		return HIPR_InvalidHandle;
	if (!mask || words < (bits + 31) / 32)
		return HIPR_InvalidValue;
	m = (const struct masked *)(const void *)s;
	if (s->only)
		memcpy(mask, m->mask,
		       (words < m->words ? words : m->words) * sizeof(*mask));
	return HIPR_Success;
}

/* ---- contexts of some CUs ---------------------------------------------------------- */

/* What is in a resource, where the runtime keeps what is its own: groups, and which split
 * made them (0: none). */
struct provenance {
	uint32_t split, device, first, count;
};

static struct provenance provenance_of(const struct hip_resource *r)
{
	struct provenance p;

	memcpy(&p, r->own, sizeof(p));
	return p;
}

static uint32_t groups_of(const struct device *d)
{
	return gpu_of(d)->pairs ? d->units / 2 : d->units;
}

static struct hip_resource resource(const struct device *d, struct provenance p)
{
	const uint32_t together = gpu_of(d)->pairs ? 2 : 1;
	struct hip_resource r = {.type = HIP_RESOURCE_CUS,
				 .count = p.count * together,
				 .least = together,
				 .together = together};

	memcpy(r.own, &p, sizeof(p));
	return r;
}

/* Runtimes before 7.14 have none; this one has where HAL_STAND_IN_HIP_GREEN is 1. */
uint32_t do_hipDeviceGetDevResource(int device, struct hip_resource *r, uint32_t type)
{
	const struct device *d;

	memset(r, 0x6a, sizeof(*r));
	if (!setting("GREEN"))
		return HIPR_NotSupported;
	if (device < 0 || device >= hip_device_count())
		return HIPR_InvalidDevice;
	if (type != HIP_RESOURCE_CUS)
		return HIPR_InvalidValue;
	d = &world.devices[device];
	*r = resource(d, (struct provenance){.device = d->index, .count = groups_of(d)});
	return HIPR_Success;
}

uint32_t do_hipDevSmResourceSplitByCount(struct hip_resource *parts, uint32_t *count,
					 const struct hip_resource *whole,
					 struct hip_resource *rest, uint32_t flags,
					 uint32_t least)
{
	const struct provenance from = provenance_of(whole);
	const struct device *d = &world.devices[from.device];
	static uint32_t splits;
	uint32_t each, i;

	if (whole->type != HIP_RESOURCE_CUS || from.split || flags || !least || rest)
		return HIPR_InvalidValue;
	each = (least + whole->together - 1) / whole->together;
	if (!parts) {
		*count = from.count / each;
		return HIPR_Success;
	}
	if (*count > from.count / each)
		*count = from.count / each;
	splits++;
	for (i = 0; i < *count; i++)
		parts[i] = resource(d, (struct provenance){.split = splits,
							   .device = from.device,
							   .first = i * each,
							   .count = each});
	return HIPR_Success;
}

/* A context, and a descriptor: the mask that its streams have.  Groups are counted from
 * the last bit down, as nothing says how they are. */
struct green {
	struct object object;
	uint32_t mask[KFD_CUS_MAX / 32];
};

uint32_t do_hipDevResourceGenerateDesc(void **desc, struct hip_resource *parts,
				       uint32_t count)
{
	static struct green made[64];
	static uint32_t next;
	struct green *g = &made[next++ % 64];
	uint32_t i, k;

	*desc = JUNK;
	if (!count)
		return HIPR_InvalidValue;
	memset(g, 0, sizeof(*g));
	for (i = 0; i < count; i++) {
		const struct provenance p = provenance_of(&parts[i]);

		if (parts[i].type != HIP_RESOURCE_CUS ||
		    p.split != provenance_of(&parts[0]).split)
			return HIPR_InvalidValue;
		g->object.dev = &world.devices[p.device];
		for (k = p.first; k < p.first + p.count; k++) {
			const uint32_t bit = groups_of(g->object.dev) - 1 - k;

			if (g->mask[bit / 32] >> bit % 32 & 1)
				return HIPR_InvalidValue;
			g->mask[bit / 32] |= 1u << bit % 32;
		}
	}
	*desc = g;
	return HIPR_Success;
}

uint32_t do_hipGreenCtxCreate(void **context, void *desc, int device, uint32_t flags)
{
	const struct green *from = desc;
	struct green *g;

	*context = JUNK;
	if (flags || device != (int)from->object.dev->index)
		return HIPR_InvalidValue;
	g = make(OBJECT_GREEN, sizeof(*g));
	if (!g)
		return HIPR_OutOfMemory;
	memcpy(g->mask, from->mask, sizeof(g->mask));
	*context = g;
	return HIPR_Success;
}

/* Streams of it would be orphans. */
uint32_t do_hipExecutionCtxDestroy(void *context)
{
	struct green *g = get_any(context, OBJECT_GREEN);
	const struct object *o;

	if (!g)
		return HIPR_InvalidHandle;
	for (o = world.objects; o; o = o->next)
		if (o->kind == OBJECT_STREAM && !o->gone &&
		    ((const struct stream *)o)->green == g)
			misuse("a context goes before a stream of it");
	g->object.gone = true;
	return HIPR_Success;
}

uint32_t do_hipExecutionCtxStreamCreate(void **stream, void *context, uint32_t flags,
					int priority)
{
	const struct green *g = get_any(context, OBJECT_GREEN);
	const char *wrong = setting("GREEN");
	struct masked *m;

	*stream = JUNK;
	if (!g)
		return HIPR_InvalidHandle;
	if (flags != HIP_STREAM_NON_BLOCKING)
		return HIPR_InvalidValue;
	m = make_stream(priority, sizeof(*m));
	if (!m)
		return HIPR_OutOfMemory;
	m->stream.flags = flags;
	m->words = KFD_CUS_MAX / 32;
	memcpy(m->mask, g->mask, sizeof(m->mask));
	/* One bit too many, as a test wants it. */
	if (wrong && strcmp(wrong, "wrong") == 0)
		m->mask[0] |= 1;
	limit(current_device(), m);
	spread(current_device(), m);
	m->stream.only = m->unit;
	m->stream.green = g;
	*stream = m;
	return HIPR_Success;
}

static bool is_empty(const void *stream)
{
	return !((const struct stream *)stream)->jobs;
}

/* It waits for what is in it. */
uint32_t do_hipStreamDestroy(void *stream)
{
	struct stream *s = get(stream, OBJECT_STREAM);

	if (!s)
		return HIPR_InvalidHandle;
	if (!is_empty(s)) {
		blocks("hipStreamDestroy");
		if (!wait_for(is_empty, s))
			return HIPR_Unknown;
	}
	s->object.gone = true;
	return s->object.dev->lost;
}

uint32_t do_hipStreamQuery(void *stream)
{
	return query_stream(stream);
}

uint32_t do_hipStreamGetFlags(void *stream, uint32_t *flags)
{
	return stream_flags(stream, flags);
}

uint32_t do_hipStreamIsCapturing(void *stream, uint32_t *status)
{
	return stream_capture(stream, status);
}

uint32_t do_hipMemGetAddressRange(void **base, size_t *bytes, void *p)
{
	uint64_t at = 0;
	const uint32_t r = address_range(&at, bytes, (uintptr_t)p);

	*base = (void *)(uintptr_t)at;
	return r;
}

uint32_t do_hipStreamSynchronize(void *stream)
{
	return wait_stream(stream, "hipStreamSynchronize");
}

uint32_t do_hipStreamWaitEvent(void *stream, void *event, uint32_t flags)
{
	struct stream *s = get(stream, OBJECT_STREAM);
	struct event *e = get(event, OBJECT_EVENT);

	if (!s || !e)
		return HIPR_InvalidHandle;
	if (flags)
		return HIPR_InvalidValue;
	/* For what was recorded so far. */
	return push(s, (struct job){.op = OP_WAIT, .event = e, .value = e->given});
}

uint32_t do_hipStreamAddCallback(void *stream,
				 void (*fn)(void *stream, uint32_t result, void *user),
				 void *user, uint32_t flags)
{
	return fn && !flags ? push_host(stream, (struct job){.told = fn, .user = user})
			    : HIPR_InvalidValue;
}

uint32_t do_hipThreadExchangeStreamCaptureMode(uint32_t *mode)
{
	return exchange_mode(mode);
}

uint32_t do_hipStreamWriteValue32(void *stream, void *to, uint32_t value, uint32_t flags)
{
	struct stream *s = get(stream, OBJECT_STREAM);

	if (!s)
		return HIPR_InvalidHandle;
	if (flags || (uintptr_t)to % 4 || !allocation_of((uintptr_t)to, 4))
		return HIPR_InvalidValue;
	return push(s, (struct job){.op = OP_WRITE,
				    .dst = (uintptr_t)to,
				    .bytes = 4,
				    .value = value});
}

/* ---- events ------------------------------------------------------------------------ */

uint32_t do_hipEventCreateWithFlags(void **event, uint32_t flags)
{
	struct event *e;

	*event = JUNK;
	if (flags & ~(HIP_EVENT_BLOCKING_SYNC | HIP_EVENT_DISABLE_TIMING))
		return HIPR_InvalidValue;
	e = make(OBJECT_EVENT, sizeof(*e));
	if (!e)
		return HIPR_OutOfMemory;
	e->timing = !(flags & HIP_EVENT_DISABLE_TIMING);
	*event = e;
	return HIPR_Success;
}

uint32_t do_hipEventDestroy(void *event)
{
	return destroy_event(event);
}

uint32_t do_hipEventRecord(void *event, void *stream)
{
	return record_event(event, stream);
}

uint32_t do_hipEventSynchronize(void *event)
{
	return wait_event(event, "hipEventSynchronize");
}

uint32_t do_hipEventElapsedTime(float *ms, void *begin, void *end)
{
	return elapsed(ms, begin, end);
}

/* ---- modules ----------------------------------------------------------------------- */

/* Code objects of tests/fakes/rocm/image.c: behind the header of each kernel's
 * parameters, a line of text "name:m48", with "h" where there are hidden ones. */
static bool add_kernel(struct module *m, const char *text)
{
	const size_t n = strcspn(text, ":");
	struct function *f;
	char name[64];
	const char *p;

	snprintf(name, sizeof(name), "%.*s", (int)n, text);
	if (!kernel_find(name))
		return false;
	f = make(OBJECT_FUNCTION, sizeof(*f));
	if (!f)
		return false;
	f->module = m;
	f->next = m->functions;
	m->functions = f;
	f->loaded = true;
	f->shape.spec = kernel_find(name);
	for (p = text + n + (text[n] != 0); *p && *p != '\n'; p++) {
		if (*p == 'h') {
			f->hidden = true;
			continue;
		}
		if (*p == 'p')
			f->shape.stops = STOPS_BY_VALUE;
		f->shape.arg_bytes[f->shape.arg_count++ % PARAMS_MAX] =
			*p == 'p'   ? (uint32_t)sizeof(f->shape.given)
			: *p == 'm' ? 8
				    : (uint32_t)(*p - '0');
	}
	return f->shape.arg_count <= PARAMS_MAX;
}

static bool is_for(const Elf64_Ehdr *e, const struct device *d)
{
	return (e->e_flags & 0xff) == kfd_machine(gpu_of(d));
}

static const char *name_of(const char *image, const Elf64_Shdr *sections,
			   const Elf64_Shdr *s, const Elf64_Sym *sym)
{
	return image + sections[s->sh_link].sh_offset + sym->st_name;
}

/* Whether the section has the mark of a kernel that follows hal_preempt.h. */
static bool follows(const char *image, const Elf64_Shdr *sections, const Elf64_Shdr *s,
		    const char *kernel)
{
	const Elf64_Sym *sym = (const void *)(image + s->sh_offset);
	const Elf64_Sym *last = sym + s->sh_size / sizeof(*sym);
	char mark[96];

	snprintf(mark, sizeof(mark), HAL_PREEMPT_MARK "%s", kernel);
	while (sym < last && strcmp(name_of(image, sections, s, sym), mark) != 0)
		sym++;
	return sym < last;
}

/* What a compiler made: symbols "name.kd".  What its kernels take is ours to know; those
 * that are none of ours are not there. */
static bool add_symbols(struct module *m, const char *image, const Elf64_Ehdr *e)
{
	const Elf64_Shdr *sections = (const void *)(image + e->e_shoff), *s;

	for (s = sections; s < sections + e->e_shnum; s++) {
		const Elf64_Sym *sym = (const void *)(image + s->sh_offset);
		const Elf64_Sym *last = sym + s->sh_size / sizeof(*sym);

		if (s->sh_type != SHT_DYNSYM)
			continue;
		for (; sym < last; sym++) {
			const char *name = name_of(image, sections, s, sym);
			const struct kernel_spec *spec;
			char text[64];

			if (strlen(name) < 4 || strcmp(name + strlen(name) - 3, ".kd"))
				continue;
			snprintf(text, sizeof(text), "%.*s", (int)strlen(name) - 3, name);
			spec = kernel_find(text);
			if (!spec || !spec->args)
				continue;
			snprintf(text, sizeof(text), "%s:%s%s", spec->name, spec->args,
				 follows(image, sections, s, spec->name) ? "p" : "");
			if (!add_kernel(m, text))
				return false;
		}
	}
	return true;
}

/* What of a bundle is for the device, by its processor alone; what is none is as it is;
 * NULL: nothing. */
static const void *part_of(const char *image, const struct device *d)
{
	static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
	const size_t n = strcspn(gpu_of(d)->arch, ":");
	const char *at = image + sizeof(magic) - 1;
	uint64_t count, entry[3]; /* offset, bytes, and of the name that follows */

	if (memcmp(image, magic, sizeof(magic) - 1) != 0)
		return image;
	memcpy(&count, at, sizeof(count));
	for (at += sizeof(count); count--; at += sizeof(entry) + entry[2]) {
		const char *name = at + sizeof(entry), *arch;

		memcpy(entry, at, sizeof(entry));
		arch = memmem(name, entry[2], "--", 2);
		if (!arch || (size_t)(name + entry[2] - arch) < n + 2 ||
		    memcmp(arch + 2, gpu_of(d)->arch, n) != 0)
			continue;
		if (arch + 2 + n == name + entry[2] || arch[2 + n] == ':')
			return image + entry[0];
	}
	return NULL;
}

uint32_t do_hipModuleLoadData(void **module, const void *image)
{
	const Elf64_Ehdr *e = image = part_of(image, current_device());
	struct module *m;
	Elf64_Shdr text;
	const char *at;

	*module = JUNK;
	blocks("hipModuleLoadData");
	if (!e)
		return HIPR_NoBinaryForGpu;
	if (memcmp(e->e_ident, ELFMAG, SELFMAG) != 0)
		return HIPR_InvalidImage;
	if (!is_for(e, current_device()))
		return HIPR_NoBinaryForGpu;
	if (!e->e_shnum)
		return HIPR_InvalidKernelFile;
	m = make(OBJECT_MODULE, sizeof(*m));
	if (!m)
		return HIPR_OutOfMemory;
	memcpy(&text, (const char *)image + e->e_shoff, sizeof(text));
	*module = m;
	if (text.sh_type == SHT_NULL)
		return add_symbols(m, image, e) ? HIPR_Success : HIPR_OutOfMemory;
	for (at = (const char *)image + text.sh_offset; *at; at += strcspn(at, "\n") + 1)
		if (!add_kernel(m, at)) {
			end_module(m);
			*module = JUNK;
			return HIPR_SharedObjectInitFailed;
		}
	return HIPR_Success;
}

uint32_t do_hipModuleUnload(void *module)
{
	return unload_module(module, "hipModuleUnload");
}

uint32_t do_hipModuleGetFunction(void **function, void *module, const char *name)
{
	struct module *m = get(module, OBJECT_MODULE);

	*function = m ? function_of(m, name) : NULL;
	if (m && !*function)
		return HIPR_NotFound;
	return m ? HIPR_Success : HIPR_InvalidHandle;
}

/* ---- launches ---------------------------------------------------------------------- */

/* A grid has 32 bits of work-items in each dimension. */
static bool fits(const uint32_t *grid, const uint32_t *block)
{
	uint32_t i;

	for (i = 0; i < 3; i++)
		if (!grid[i] || !block[i] || grid[i] > GRID_MOST || block[i] > 1024 ||
		    (uint64_t)grid[i] * block[i] > UINT32_MAX)
			return false;
	return (uint64_t)block[0] * block[1] * block[2] <= 1024;
}

uint32_t do_hipModuleLaunchKernel(void *function, uint32_t grid_x, uint32_t grid_y,
				  uint32_t grid_z, uint32_t block_x, uint32_t block_y,
				  uint32_t block_z, uint32_t shared, void *stream,
				  void **params, void **extra)
{
	const uint32_t grid[3] = {grid_x, grid_y, grid_z};
	const uint32_t block[3] = {block_x, block_y, block_z};
	struct stream *s = get(stream, OBJECT_STREAM);
	struct function *f = get(function, OBJECT_FUNCTION);
	struct job j = {.op = OP_LAUNCH, .function = f};
	uint32_t r;

	if (!s || !f)
		return HIPR_InvalidHandle;
	if (!fits(grid, block))
		return HIPR_InvalidConfiguration;
	if (shared > SHARED_MOST || extra)
		return HIPR_InvalidValue;
	j.call = f->shape;
	memcpy(j.call.grid, grid, sizeof(grid));
	memcpy(j.call.block, block, sizeof(block));
	r = take_parameters(&j.call, params);
	return r ? r : push(s, j);
}
