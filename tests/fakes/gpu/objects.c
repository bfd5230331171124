/* SPDX-License-Identifier: Apache-2.0 */
/* Handles, memory, streams and events of a stand-in: what CUDA and HIP have alike. */
#define _GNU_SOURCE
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- memory ------------------------------------------------------------------------ */

uint64_t memory_left(const struct device *d)
{
	const uint64_t left = d->memory - d->used;

	return left < world.memory_left ? left : world.memory_left;
}

/* By the system call: a sanitizer would keep books on a whole GPU's memory. */
void *map_bytes(size_t bytes, int protection)
{
	const long p = syscall(SYS_mmap, NULL, (bytes + 4095) & ~(size_t)4095, protection,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);

	return p == -1 ? NULL : (void *)p;
}

static void unmap(void *p, size_t bytes)
{
	(void)syscall(SYS_munmap, p, (bytes + 4095) & ~(size_t)4095);
}

static void backing_end(void *backing, size_t bytes)
{
	if (bytes <= POISON_MOST)
		free(backing);
	else if (backing)
		unmap(backing, bytes);
}

struct allocation *reserve(size_t bytes, int protection)
{
	struct allocation *a = calloc(1, sizeof(*a));
	void *p = map_bytes(bytes, protection);

	if (!a || !p) {
		free(a);
		return NULL;
	}
	a->address = (uintptr_t)p;
	a->bytes = bytes;
	a->backing = p;
	a->next = world.allocations;
	world.allocations = a;
	return a;
}

void allocation_end(struct allocation *a)
{
	struct allocation **at = &world.allocations;
	struct mapping *m;

	while ((m = a->mappings)) {
		a->mappings = m->next;
		free(m);
	}

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	if (!a->registered || (uintptr_t)a->backing != a->address)
		unmap((void *)(uintptr_t)a->address, a->bytes);
	if (a->registered) {
		free(a);
		return;
	}
	if (a->dev && !a->reserved)
		backing_end(a->backing, a->bytes);
	else if ((uintptr_t)a->backing != a->address)
		unmap(a->backing, a->bytes);
	free(a);
}

void poison(const struct allocation *a, int with)
{
	memset(a->backing, with, a->bytes < POISON_MOST ? a->bytes : POISON_MOST);
}

/* Of what there is, for so many bytes. */
static uint64_t taken(uint64_t bytes)
{
	const uint64_t granule = world.limits.granule;

	return granule ? (bytes + granule - 1) / granule * granule : bytes;
}

uint32_t allocate(uint64_t *address, size_t bytes, const char *call)
{
	struct device *d = current_device();
	struct allocation *a;
	void *backing;

	*address = 0x6a756e6b;
	if (!bytes)
		return GPU_INVALID_VALUE;
	blocks(call);
	if (taken(bytes) > memory_left(d) ||
	    (world.limits.piece && bytes > world.limits.piece))
		return GPU_OUT_OF_MEMORY;
	backing = bytes > POISON_MOST ? map_bytes(bytes, PROT_READ | PROT_WRITE)
				      : malloc(bytes);
	a = backing ? reserve(bytes, PROT_NONE) : NULL;
	if (!a) {
		backing_end(backing, bytes);
		return GPU_OUT_OF_MEMORY;
	}
	a->dev = d;
	a->backing = backing;
	poison(a, 0xa5);
	a->taken = taken(bytes);
	d->used += a->taken;
	if (world.memory_left != UINT64_MAX)
		world.memory_left -= a->taken;
	*address = a->address;
	return GPU_SUCCESS;
}

bool wait_for(bool (*done)(const void *what), const void *what)
{
	while (!done(what) && !current_device()->lost)
		if (!breathe() && !done(what)) {
			misuse("a wait for what never ends");
			return false;
		}
	return true;
}

bool is_idle(const void *dev)
{
	return !device_waited_for(dev);
}

/* What waits for the whole device, or may. */
uint32_t wait_free(const char *call)
{
	struct device *d = current_device();

	blocks(call);
	if (world.frees_wait && !wait_for(is_idle, d))
		return GPU_UNKNOWN;
	return d->lost;
}

static struct allocation *exactly(uint64_t address, bool host, const char *call)
{
	struct allocation *a = allocation_of(address, 1);

	if (!a || a->address != address || a->freed || a->reserved || a->registered ||
	    (a->dev == NULL) != host) {
		misuse("%s: 0x%llx is not allocated", call, (unsigned long long)address);
		return NULL;
	}
	if (memory_busy(a))
		misuse("%s: 0x%llx is in use", call, (unsigned long long)address);
	return a;
}

/* It stays a while, so that its use is noticed. */
static void retire(struct allocation *a)
{
	struct allocation *oldest = NULL, *i;

	a->freed = true;
	if (++world.frees <= QUARANTINE)
		return;
	for (i = world.allocations; i; i = i->next)
		if (i->freed)
			oldest = i;
	allocation_end(oldest);
	world.frees--;
}

uint32_t give_back(uint64_t address, bool host, const char *call)
{
	struct allocation *a =
		exactly(host ? device_side(address, 1) : address, host, call);
	uint32_t r = a ? wait_free(call) : GPU_INVALID_VALUE;

	if (r)
		return r;
	if (host) {
		const uint64_t bytes = (a->bytes + 4095) & ~UINT64_C(4095);

		world.limits.pinned += a->bytes;
		(void)madvise(a->backing, bytes, MADV_DONTNEED);
		(void)mprotect(a->backing, bytes, PROT_NONE);
	} else {
		a->dev->used -= a->taken;
		if (world.memory_left != UINT64_MAX)
			world.memory_left += a->taken;
		poison(a, 0xdd);
	}
	retire(a);
	return GPU_SUCCESS;
}

uint32_t address_range(uint64_t *base, size_t *bytes, uint64_t address)
{
	const struct allocation *a = allocation_of(address, 1);

	*base = 0x6a756e6b;
	if (!a || a->freed || a->dev != current_device())
		return GPU_INVALID_VALUE;
	*base = a->address;
	*bytes = a->bytes;
	return GPU_SUCCESS;
}

uint32_t allocate_host(void **p, size_t bytes, const char *call)
{
	const char *apart = setting("HOST");
	struct allocation *a;

	*p = (void *)(uintptr_t)0x6a756e6b;
	blocks(call);
	if (!bytes)
		return GPU_INVALID_VALUE;
	if (bytes >= world.limits.pinned)
		return GPU_OUT_OF_MEMORY;
	a = reserve(bytes, PROT_READ | PROT_WRITE);
	if (a && apart && strcmp(apart, "apart") == 0) {
		/* The device has an address of its own for it, and the host none of that.
		 */
		void *address = map_bytes(bytes, PROT_NONE);

		if (address)
			a->address = (uintptr_t)address;
	}
	if (!a)
		return GPU_OUT_OF_MEMORY;
	poison(a, 0xa5);
	world.limits.pinned -= bytes;
	*p = a->backing;
	return GPU_SUCCESS;
}

/* ---- memory of the program's -------------------------------------------------------- */

static bool is_pinned(uintptr_t base, size_t bytes)
{
	const struct allocation *a;

	for (a = world.allocations; a; a = a->next)
		if (!a->dev && !a->reserved && !a->freed &&
		    base < (uintptr_t)a->backing + a->bytes &&
		    (uintptr_t)a->backing < base + bytes)
			return true;
	return false;
}

/* Are all of these pages there, to be read and written?  The kernel is asked to make them
 * so; one that cannot be asked (before 5.14) says whether they are there. */
static bool is_writable(void *base, size_t bytes)
{
	enum { POPULATE_WRITE = 23 };
	static unsigned char own[2 * 4096] __attribute__((aligned(4096)));
	unsigned char there;
	size_t i;

	if (madvise(own, 4096, POPULATE_WRITE) == 0)
		return madvise(base, bytes, POPULATE_WRITE) == 0;
	for (i = 0; i < bytes; i += 4096)
		if (mincore((char *)base + i, 4096, &there))
			return false;
	return true;
}

/* Pages are pinned, and none twice; more of them than asked for are not reached. */
uint32_t register_host(void *p, size_t bytes, const char *call)
{
	const uintptr_t base = (uintptr_t)p & ~(uintptr_t)4095;
	const size_t all = ((uintptr_t)p - base + bytes + 4095) & ~(size_t)4095;
	const char *apart = setting("HOST");
	struct allocation *a;
	void *address = p;

	blocks(call);
	if (!p || !bytes)
		return GPU_INVALID_VALUE;
	if (is_pinned(base, all))
		return GPU_ALREADY_REGISTERED;
	if (!is_writable((void *)base, all))
		return GPU_INVALID_VALUE;
	if (bytes >= world.limits.pinned)
		return GPU_OUT_OF_MEMORY;
	a = calloc(1, sizeof(*a));
	if (a && apart && strcmp(apart, "apart") == 0)
		address = map_bytes(bytes, PROT_NONE);
	if (!a || !address) {
		free(a);
		return GPU_OUT_OF_MEMORY;
	}
	*a = (struct allocation){.next = world.allocations,
				 .address = (uintptr_t)address,
				 .bytes = bytes,
				 .backing = p,
				 .registered = true};
	world.allocations = a;
	world.limits.pinned -= bytes;
	return GPU_SUCCESS;
}

uint32_t unregister_host(void *p, const char *call)
{
	struct allocation *a = allocation_at(p);
	uint32_t r;

	if (!a || a->backing != p || !a->registered || a->freed) {
		misuse("%s: %p is not registered", call, p);
		return GPU_NOT_REGISTERED;
	}
	if (memory_busy(a))
		misuse("%s: %p is in use", call, p);
	r = wait_free(call);
	if (r)
		return r;
	world.limits.pinned += a->bytes;
	if (memory_busy(a))
		retire(a);
	else
		allocation_end(a);
	return GPU_SUCCESS;
}

/* ---- handles ----------------------------------------------------------------------- */

static const char *const kind_names[] = {
	"stream",           "event",         "module",
	"function",         "green context", "graph",
	"executable graph", "signal",        "reader of code",
	"executable",       "memory"};

/* What is gone, and has nothing left to run, is out of the way of all that looks for
 * work; it is kept, so that who uses it is told.  Memory that is mapped can come back. */
static void put_gone_away(void)
{
	struct object **at = &world.objects, *o;

	while ((o = *at)) {
		if (!o->gone ||
		    (o->kind == OBJECT_STREAM && ((struct stream *)o)->first) ||
		    (o->kind == OBJECT_PHYSICAL && ((struct physical *)o)->users)) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		o->next = world.gone;
		world.gone = o;
	}
}

void *make(enum object_kind kind, size_t bytes)
{
	struct object *o = calloc(1, bytes);

	if (!o)
		return NULL;
	if (++world.made % 64 == 0)
		put_gone_away();
	o->kind = kind;
	o->dev = current_device();
	o->next = world.objects;
	world.objects = o;
	return o;
}

void *get_any(void *handle, enum object_kind kind)
{
	struct object *o;

	for (o = world.objects; o && o != handle; o = o->next)
		;
	for (o = o ? o : world.gone; o && o != handle; o = o->next)
		;
	/* By name, too: 1, or 2 as a thread has it. */
	if ((uintptr_t)handle <= 2 && kind == OBJECT_STREAM)
		misuse("the NULL stream is used");
	else if (!o || o->kind != kind)
		misuse("%p is no %s", handle, kind_names[kind]);
	else if (o->gone)
		misuse("a %s is used after its end", kind_names[kind]);
	else
		return o;
	return NULL;
}

void *get(void *handle, enum object_kind kind)
{
	struct object *o = get_any(handle, kind);

	return o && o->dev == current_device() ? o : NULL;
}

/* ---- streams and events ------------------------------------------------------------ */

/* How many can still be made is one more than what .streams says: 0 is no limit. */
bool room_for_stream(void)
{
	if (world.limits.streams == 1)
		return false;
	if (world.limits.streams)
		world.limits.streams--;
	return true;
}

uint32_t channel_of_next_stream(void)
{
	const uint32_t most = face.channels();
	uint32_t n = world.limits.channels;

	n = n && n < most ? n : most;
	return world.streams++ % (n < CHANNELS_MAX ? n : CHANNELS_MAX);
}

uint32_t query_stream(void *stream)
{
	struct stream *s = get(stream, OBJECT_STREAM);

	if (!s)
		return GPU_INVALID_HANDLE;
	s->queries++;
	if (spoil_capture(s))
		return GPU_CAPTURE_UNSUPPORTED;
	if (s->answer)
		return s->answer;
	return s->jobs ? GPU_NOT_READY : GPU_SUCCESS;
}

uint32_t push_host(void *stream, struct job job)
{
	struct stream *s = get(stream, OBJECT_STREAM);

	job.op = OP_HOST;
	return s ? push(s, job) : GPU_INVALID_HANDLE;
}

/* Streams share channels, each with a fixed number of entries: one for all that a call
 * gives the device, until that has ended.  A call that finds none free waits. */
static void wait_for_entry(const struct stream *s)
{
	const uint32_t *used = &s->object.dev->entries[s->channel];

	if (*used < face.entries)
		return;
	world.blocked++;
	blocks("a full channel");
	while (*used >= face.entries && !s->object.dev->lost)
		if (!breathe())
			break;
}

bool runs_kernel(const struct job *j)
{
	const struct allocation *to = allocation_of(j->dst, j->bytes), *from = to;

	if (j->op == OP_COPY)
		from = allocation_of(j->src, j->bytes);
	return world.moves_run && to && to->dev && from && from->dev;
}

uint32_t push(struct stream *s, struct job job)
{
	struct job *j;

	if (s->capture)
		return s->capture == 1 ? GPU_SUCCESS : GPU_CAPTURE_INVALIDATED;
	wait_for_entry(s);
	if (s->object.dev->lost)
		return s->object.dev->lost;
	j = malloc(sizeof(*j));
	if (!j)
		return GPU_OUT_OF_MEMORY;
	*j = job;
	j->has_entry = true;
	s->object.dev->entries[s->channel]++;
	j->fails = world.fail_next;
	world.fail_next = 0;
	stream_push(s, j);
	return GPU_SUCCESS;
}

static bool is_empty(const void *stream)
{
	return !((const struct stream *)stream)->jobs;
}

uint32_t wait_stream(void *stream, const char *call)
{
	struct stream *s = get(stream, OBJECT_STREAM);

	if (!s)
		return GPU_INVALID_HANDLE;
	if (spoil_capture(s))
		return GPU_CAPTURE_UNSUPPORTED;
	blocks(call);
	return wait_for(is_empty, s) ? current_device()->lost : GPU_UNKNOWN;
}

uint32_t stream_flags(void *stream, uint32_t *flags)
{
	const struct stream *s = get_any(stream, OBJECT_STREAM);

	if (!s)
		return GPU_INVALID_HANDLE;
	*flags = s->flags;
	return GPU_SUCCESS;
}

uint32_t stream_capture(void *stream, uint32_t *status)
{
	const struct stream *s = get_any(stream, OBJECT_STREAM);

	if (!s)
		return GPU_INVALID_HANDLE;
	*status = s->capture;
	return GPU_SUCCESS;
}

uint32_t spoil_capture(struct stream *s)
{
	if (!s->capture)
		return GPU_SUCCESS;
	s->capture = 2;
	return GPU_CAPTURE_UNSUPPORTED;
}

static _Thread_local uint32_t
	thread_mode; /* of captures: global, of the thread, relaxed */

const void *this_thread(void)
{
	return &thread_mode;
}

uint32_t exchange_mode(uint32_t *mode)
{
	const uint32_t old = thread_mode;

	if (*mode > 2)
		return GPU_INVALID_VALUE;
	thread_mode = *mode;
	*mode = old;
	return GPU_SUCCESS;
}

/* A relaxed capture is disturbed by nobody; one of a thread by that thread; a global one
 * by all threads that are not of a mode of less. */
static bool is_disturbed(const struct stream *s)
{
	if (s->capture != 1 || s->mode == 2 || thread_mode == 2)
		return false;
	return s->capturer == this_thread() || (s->mode == 0 && thread_mode == 0);
}

uint32_t capture_spoils(void)
{
	uint32_t r = GPU_SUCCESS;
	struct object *o;

	for (o = world.objects; o; o = o->next) {
		struct stream *s = (struct stream *)o;

		if (o->kind != OBJECT_STREAM || o->gone || !is_disturbed(s))
			continue;
		s->capture = 2;
		r = GPU_CAPTURE_UNSUPPORTED;
	}
	return r;
}

uint32_t destroy_event(void *event)
{
	struct event *e = get(event, OBJECT_EVENT);

	if (!e)
		return GPU_INVALID_HANDLE;
	e->object.gone = true;
	return GPU_SUCCESS;
}

uint32_t record_event(void *event, void *stream)
{
	struct event *e = get(event, OBJECT_EVENT);
	struct stream *s = get(stream, OBJECT_STREAM);
	uint32_t r;

	if (!e || !s)
		return GPU_INVALID_HANDLE;
	r = push(s, (struct job){.op = OP_RECORD, .event = e});
	if (!r)
		e->captured = s->capture != 0;
	if (!r && !s->capture) {
		e->recorded = true;
		e->done = false;
		e->users++;
		e->given++;
	}
	return r;
}

static bool is_done(const void *event)
{
	const struct event *e = event;

	return !e->recorded || e->done;
}

uint32_t wait_event(void *event, const char *call)
{
	const struct event *e = get(event, OBJECT_EVENT);

	if (!e)
		return GPU_INVALID_HANDLE;
	if (e->captured)
		return GPU_CAPTURED_EVENT;
	blocks(call);
	return wait_for(is_done, e) ? current_device()->lost : GPU_UNKNOWN;
}

uint32_t elapsed(float *ms, void *begin, void *end)
{
	const struct event *b = get(begin, OBJECT_EVENT), *e = get(end, OBJECT_EVENT);
	int64_t halves;

	*ms = -1;
	if (!b || !e || !b->timing || !e->timing || !b->recorded || !e->recorded)
		return GPU_INVALID_HANDLE;
	if (b->captured || e->captured)
		return GPU_CAPTURED_EVENT;
	if (!b->done || !e->done)
		return GPU_NOT_READY;
	halves = ((int64_t)(e->at_ns - b->at_ns) + 250) / 500;
	*ms = (float)((double)halves / 2000);
	return GPU_SUCCESS;
}

/* ---- modules ----------------------------------------------------------------------- */

uint32_t take_parameters(struct call *c, void **params)
{
	uint32_t i;

	for (i = 0; i < c->arg_count; i++) {
		if (!params || !params[i]) {
			misuse("parameter %u of %u of %s is not there", i, c->arg_count,
			       c->spec->name);
			return GPU_INVALID_VALUE;
		}
		if (c->arg_bytes[i] <= sizeof(c->args[i]))
			memcpy(&c->args[i], params[i], c->arg_bytes[i]);
		else
			memcpy(&c->given, params[i], sizeof(c->given));
	}
	return GPU_SUCCESS;
}

void end_module(struct module *m)
{
	struct function *f;

	for (f = m->functions; f; f = f->next)
		f->object.gone = true;
	if (face.end_code)
		face.end_code(m);
	m->object.gone = true;
}

uint32_t unload_module(void *module, const char *call)
{
	struct module *m = get(module, OBJECT_MODULE);
	uint32_t r;

	if (!m)
		return GPU_INVALID_HANDLE;
	if (module_busy(m))
		misuse("a module goes while its kernel is launched");
	r = wait_free(call);
	if (!r)
		end_module(m);
	return r;
}

struct function *function_of(struct module *m, const char *name)
{
	struct function *f = m->functions;

	while (f && strcmp(f->shape.spec->name, name) != 0)
		f = f->next;
	return f;
}
