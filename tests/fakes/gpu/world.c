/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs, and time.  A stream runs its jobs one after the other.  A launch becomes
 * ready a while after it is its turn; its blocks then go to free units, launches of the
 * best priority first, blocks of a launch in a seeded order, and none is taken off again.
 * Whatever a job does it does at its end.
 */
#define _GNU_SOURCE
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "backends/cuda/ptx/ptx.h"

#define LAUNCH_NS  2000u
#define FRONT_NS   100u /* a record, a write */
#define COPY_NS    1000u
#define MOVE_BYTES 16384u /* of a block of a copy or a fill that is a kernel */
#define HOST_NS                                                                          \
	10000u /* the least that a function of the program's takes; at most 10 times     \
		  that */

struct world world = {.memory_left = UINT64_MAX,
		      .limits.pinned = PINNED_MOST + 1,
		      .moves_run = true,
		      .seed = 1};

void misuse(const char *fmt, ...)
{
	va_list ap;

	if (!world.misused++) {
		va_start(ap, fmt);
		vsnprintf(world.misuse, sizeof(world.misuse), fmt, ap);
		va_end(ap);
	}
}

uint64_t mono(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- memory ------------------------------------------------------------------------ */

/* All of these addresses are mapped, with access. */
static bool is_mapped(const struct allocation *a, uint64_t address, uint64_t bytes)
{
	const uint64_t end = address + (bytes ? bytes : 1);
	const struct mapping *m = a->mappings;

	while (m && address < end) {
		if (m->access && address >= m->address &&
		    address - m->address < m->bytes) {
			address = m->address + m->bytes;
			m = a->mappings;
		} else {
			m = m->next;
		}
	}
	return address >= end;
}

struct allocation *allocation_of(uint64_t address, uint64_t bytes)
{
	struct allocation *a;

	for (a = world.allocations; a; a = a->next)
		if (address >= a->address && address - a->address <= a->bytes &&
		    bytes <= a->bytes - (address - a->address) &&
		    (bytes || address - a->address < a->bytes))
			return a->reserved && !is_mapped(a, address, bytes) ? NULL : a;
	return NULL;
}

struct allocation *allocation_at(const void *p)
{
	struct allocation *a;

	for (a = world.allocations; a; a = a->next)
		if (!a->dev && !a->reserved && (uintptr_t)p >= (uintptr_t)a->backing &&
		    (uintptr_t)p - (uintptr_t)a->backing < a->bytes)
			return a;
	return NULL;
}

uint64_t device_side(uint64_t address, uint64_t bytes)
{
	const void *p = (const void *)(uintptr_t)address;
	const struct allocation *a = allocation_at(p);

	if (a)
		address = a->address + (uint64_t)((const char *)p - (char *)a->backing);
	a = allocation_of(address, bytes);
	return a && !(a->registered && a->freed) ? address : 0;
}

uint32_t device_pointer(uint64_t *address, const void *p, uint32_t flags)
{
	const struct allocation *a = allocation_at(p);

	*address = 0x6a756e6b;
	if (!a || a->freed || flags)
		return GPU_INVALID_VALUE;
	*address = device_side((uintptr_t)p, 1);
	return GPU_SUCCESS;
}

void *memory_at(uint64_t address, uint64_t bytes)
{
	struct allocation *a = allocation_of(address, bytes);

	if (a && a->freed)
		misuse("memory at 0x%llx is used after it was freed",
		       (unsigned long long)address);
	if (!a || a->freed)
		return NULL;
	return (char *)a->backing + (address - a->address);
}

static bool names(uint64_t address, uint64_t bytes, const struct allocation *a)
{
	return address < a->address + a->bytes &&
	       a->address < address + (bytes ? bytes : 1);
}

static bool given_names(const struct hal_preempt_launch *g, const struct allocation *a)
{
	return names((uintptr_t)g->flag, 1, a) || names((uintptr_t)g->stopped, 1, a) ||
	       names((uintptr_t)g->to, 1, a) ||
	       (g->resumed && names((uintptr_t)g->from, 1, a));
}

static bool job_names(const struct job *j, const struct allocation *a)
{
	uint32_t i;

	if (j->arguments && names(j->arguments, 1, a))
		return true;
	if (j->op == OP_LAUNCH) {
		for (i = 0; i < j->call.arg_count; i++)
			if (j->call.arg_bytes[i] == 8 && names(j->call.args[i], 1, a))
				return true;
		return j->call.stops == STOPS_BY_VALUE && j->call.given.flag &&
		       given_names(&j->call.given, a);
	}
	if (j->op == OP_COPY && names(j->src, j->bytes, a))
		return true;
	return (j->op == OP_COPY || j->op == OP_FILL || j->op == OP_WRITE) &&
	       names(j->dst, j->bytes, a);
}

/* Calls yes for the jobs of all streams until it says so. */
static bool any_job(bool (*yes)(const struct job *j, const void *what), const void *what)
{
	const struct object *o;
	const struct job *j;

	for (o = world.objects; o; o = o->next)
		if (o->kind == OBJECT_STREAM)
			for (j = ((const struct stream *)o)->first; j; j = j->next)
				if (yes(j, what))
					return true;
	return false;
}

static bool is_of_memory(const struct job *j, const void *a)
{
	return job_names(j, a);
}

bool memory_busy(const struct allocation *a)
{
	return any_job(is_of_memory, a);
}

static bool is_of_module(const struct job *j, const void *m)
{
	return j->op == OP_LAUNCH && j->function->module == m;
}

bool module_busy(const struct module *m)
{
	return any_job(is_of_module, m);
}

static bool is_of_device(const struct job *j, const void *dev)
{
	return j->stream->object.dev == dev;
}

static bool is_waited_for(const struct job *j, const void *dev)
{
	return !j->stream->apart && is_of_device(j, dev);
}

bool device_waited_for(const struct device *dev)
{
	return any_job(is_waited_for, dev);
}

bool device_busy(const struct device *dev)
{
	return any_job(is_of_device, dev);
}

static bool works_on_device(const struct job *j, const void *dev)
{
	return j->op != OP_RECORD && j->op != OP_WAIT && is_of_device(j, dev);
}

bool device_works(const struct device *dev)
{
	return any_job(works_on_device, dev);
}

/* ---- jobs -------------------------------------------------------------------------- */

void stream_push(struct stream *s, struct job *job)
{
	job->stream = s;
	*s->last = job;
	s->last = &job->next;
	s->jobs++;
}

static void pop(struct stream *s)
{
	struct job *j = s->first;

	s->first = j->next;
	if (!s->first)
		s->last = &s->first;
	s->jobs--;
	if (j->has_entry)
		s->object.dev->entries[s->channel]--;
	free(j);
}

static bool is_of_stream(const struct job *j, const struct stream *s)
{
	return j && j->stream == s;
}

static void forget_saved(struct device *dev, const struct stream *s)
{
	uint32_t i, n = 0;

	for (i = 0; i < dev->saved_count; i++)
		if (!is_of_stream(dev->saved[i].unit.job, s))
			dev->saved[n++] = dev->saved[i];
	dev->saved_count = n;
}

void stream_drop(struct stream *s)
{
	struct device *dev = s->object.dev;
	uint32_t i;

	forget_saved(dev, s);
	for (i = 0; i < UNITS_MAX; i++)
		if (is_of_stream(dev->unit[i].job, s))
			dev->unit[i].job = NULL;
	while (s->first)
		pop(s);
}

void stream_moved(struct stream *s)
{
	struct device *dev = s->object.dev;
	uint32_t i;

	for (i = 0; i < dev->units; i++) {
		const struct unit u = dev->unit[i];

		if (!is_of_stream(u.job, s) || s->only[i] || world.leaky)
			continue;
		dev->saved[dev->saved_count++] = (struct saved){
			.unit = u,
			.left_ns = u.end_ns == NEVER ? NEVER : u.end_ns - world.now_ns};
		dev->unit[i].job = NULL;
	}
}

void device_drop(struct device *dev)
{
	struct object *o;

	memset(dev->unit, 0, sizeof(dev->unit));
	dev->saved_count = 0;
	memset((void *)dev->copying, 0, sizeof(dev->copying));
	dev->hosting = NULL;
	for (o = world.objects; o; o = o->next)
		while (o->kind == OBJECT_STREAM && o->dev == dev &&
		       ((struct stream *)o)->first) {
			struct stream *s = (struct stream *)o;

			if (s->first->op == OP_RECORD)
				s->first->event->users--;
			if (s->first->op == OP_HOST && s->first->told)
				call_host(s->first, dev->lost);
			pop(s);
		}
}

/* The offending launch stops midway, its successors never run, nothing more is written.
 */
void device_lose(struct device *dev, uint32_t result)
{
	if (!dev->lost)
		dev->lost = result;
	device_drop(dev);
}

static uint64_t random_number(void)
{
	world.seed = world.seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return world.seed >> 33;
}

static bool has_blocks(const struct job *j)
{
	return j->op == OP_LAUNCH || j->is_kernel;
}

bool is_of_host(uint64_t address)
{
	const struct allocation *a = allocation_of(address, 1);

	return a && !a->dev && !a->reserved;
}

/* Each direction between the host and the device has an engine; what stays in the device
 * takes any. */
static bool start_copy(struct device *dev, struct job *j)
{
	const bool to_host = is_of_host(j->dst), from_host = is_of_host(j->src);
	uint32_t i;

	for (i = 0; i < COPY_ENGINES; i++) {
		if (dev->copying[i] || (to_host != from_host && i != to_host))
			continue;
		dev->copying[i] = j;
		j->engine = i + 1;
		return true;
	}
	return false;
}

static void start(struct device *dev, struct job *j)
{
	if (j->begins && !j->begins(j)) {
		j->started = true;
		j->end_ns = NEVER;
		return;
	}
	if (j->op == OP_COPY && !j->is_kernel && !start_copy(dev, j))
		return;
	if (j->op == OP_WAIT && (int32_t)(j->event->ran - j->value) < 0)
		return;
	if (j->op == OP_HOST && dev->hosting)
		return;
	if (j->op == OP_HOST)
		dev->hosting = j;
	j->started = true;
	j->start_ns = world.now_ns;
	if ((j->op == OP_COPY || j->op == OP_FILL) && !j->is_kernel)
		j->end_ns = world.now_ns + COPY_NS + j->bytes / 16;
	else if (has_blocks(j))
		j->end_ns = world.now_ns + LAUNCH_NS; /* then it is ready */
	else if (j->op == OP_HOST)
		j->end_ns = world.now_ns + HOST_NS + random_number() % (9 * HOST_NS);
	else
		j->end_ns = world.now_ns + FRONT_NS;
}

/* Launches of a device that have blocks left to give, best first. */
struct launches {
	struct job *job[LAUNCHES_MAX];
	uint32_t count;
};

static bool is_before(const struct job *a, const struct job *b)
{
	return a->stream->priority < b->stream->priority ||
	       (a->stream->priority == b->stream->priority && a->order < b->order);
}

static void find_launches(const struct device *dev, struct launches *l)
{
	struct object *o;
	uint32_t i;

	l->count = 0;
	for (o = world.objects; o; o = o->next) {
		struct job *j =
			o->kind == OBJECT_STREAM ? ((struct stream *)o)->first : NULL;

		if (!j || o->dev != dev || !has_blocks(j) || !j->order ||
		    j->given == j->blocks)
			continue;
		if (l->count == LAUNCHES_MAX)
			abort();
		for (i = l->count++; i && is_before(j, l->job[i - 1]); i--)
			l->job[i] = l->job[i - 1];
		l->job[i] = j;
	}
}

static struct job *best_launch(const struct launches *l, uint32_t unit)
{
	uint32_t i;

	for (i = 0; i < l->count; i++) {
		struct job *j = l->job[i];

		if (j->given < j->blocks && (!j->off[unit] || world.mask_leaky) &&
		    (!j->stream->only || j->stream->only[unit] || world.leaky))
			return j;
	}
	return NULL;
}

/* ---- blocks that can be stopped ---------------------------------------------------- */

/* What hal-ptx's pass entry puts in front of blocks, and hal/device/hal_preempt.h: of a
 * launch, however it was given.  Addresses are the device's. */
struct control {
	uint64_t flag, stopped, from, to;
	uint32_t grid[3]; /* of the whole kernel */
	uint32_t resumed;
	bool run; /* .from is the number of the first block */
};

static bool read_control(const struct call *c, struct control *k)
{
	const uint64_t *args;
	uint32_t i;

	if (c->stops == STOPS_BY_VALUE) {
		*k = (struct control){.flag = (uintptr_t)c->given.flag,
				      .stopped = (uintptr_t)c->given.stopped,
				      .from = (uintptr_t)c->given.from,
				      .to = (uintptr_t)c->given.to,
				      .resumed = c->given.resumed};
		memcpy(k->grid, c->given.grid, sizeof(k->grid));
		return true;
	}
	args = &c->args[c->arg_count - PTX_LAUNCH_PARAMS];
	*k = (struct control){.flag = args[0] + offsetof(struct ptx_control, stop),
			      .stopped = args[0] + offsetof(struct ptx_control, stopped),
			      .from = args[1],
			      .to = args[2],
			      .resumed = (uint32_t)args[6] & ~PTX_LAUNCH_RUN,
			      .run = ((uint32_t)args[6] & PTX_LAUNCH_RUN) != 0};
	for (i = 0; i < 3; i++)
		k->grid[i] = (uint32_t)args[PTX_LAUNCH_LONG + i];
	return memory_at(args[0], sizeof(struct ptx_control)) != NULL;
}

static bool control_of(const struct call *c, struct control *k)
{
	const uint32_t *g = c->grid;

	if (!read_control(c, k))
		return false;
	if (k->resumed ? k->resumed != g[0] || g[1] != 1 || g[2] != 1
		       : memcmp(k->grid, g, sizeof(c->grid)) != 0)
		misuse("a launch of %u x %u x %u blocks with the control of another",
		       g[0], g[1], g[2]);
	return true;
}

/* Before it begins; what is wrong is found when it ends. */
static bool sees_flag(const struct call *c)
{
	const uint32_t *flag = NULL;
	struct control k;

	if (c->stops && control_of(c, &k) && k.flag)
		flag = memory_at(k.flag, 4);
	return flag && __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static uint32_t steps_of(const struct call *c)
{
	return c->spec->steps ? c->spec->steps : 1;
}

/* Writes down that a block did not begin. */
static bool note_stopped(const struct call *c, const struct control *k, uint32_t number)
{
	uint32_t *stopped = memory_at(k->stopped, 4);
	uint32_t *to = stopped ? memory_at(k->to + UINT64_C(4) * *stopped, 4) : NULL;

	if (!to)
		return false;
	*to = c->spec->lies ? c->spec->lies(number) : number;
	++*stopped;
	return true;
}

/* False: an illegal address. */
static bool act(const struct unit *u)
{
	const struct call *c = &u->job->call;
	uint32_t number = (uint32_t)u->block, *from;
	struct call whole = *c;
	struct control k;

	if (u->job->is_kernel) /* all of it is there when the last block has ended */
		return true;
	whole.step = steps_of(c) - 1 - u->left;
	if (!c->stops)
		return c->spec->block(&whole, number);
	if (!control_of(c, &k))
		return false;
	if (c->module) /* its code looks at the flag, and finds its place, itself */
		return c->spec->block(&whole, number);
	if (k.run) {
		number += (uint32_t)k.from;
	} else if (k.resumed) {
		from = memory_at(k.from + UINT64_C(4) * number, 4);
		if (!from)
			return false;
		number = *from;
	}
	memcpy(whole.grid, k.grid, sizeof(whole.grid));
	return u->stopped ? note_stopped(c, &k, number) : c->spec->block(&whole, number);
}

/* What was taken off a unit goes on before others begin. */
static void give_saved(struct device *dev)
{
	uint32_t i, k, n = 0;

	for (k = 0; k < dev->saved_count; k++) {
		const struct saved s = dev->saved[k];
		const bool *only = s.unit.job->stream->only;

		for (i = 0; i < dev->units && (dev->unit[i].job || !only[i]); i++)
			;
		if (i == dev->units) {
			dev->saved[n++] = s;
			continue;
		}
		dev->unit[i] = s.unit;
		dev->unit[i].end_ns =
			s.left_ns == NEVER ? NEVER : world.now_ns + s.left_ns;
	}
	dev->saved_count = n;
}

static uint64_t block_ns(const struct job *j, bool stopped)
{
	if (j->is_kernel)
		return COPY_NS + j->bytes / j->blocks / 16;
	return stopped ? FRONT_NS : j->call.spec->ns(&j->call);
}

static void give_blocks(struct device *dev)
{
	struct launches l;
	struct job *j;
	uint64_t ns;
	uint32_t i;

	give_saved(dev);
	find_launches(dev, &l);
	for (i = 0; l.count && i < dev->units; i++) {
		j = dev->unit[i].job ? NULL : best_launch(&l, i);
		if (!j)
			continue;
		j->on[i / 64] |= UINT64_C(1) << i % 64;
		dev->unit[i].stopped = !j->is_kernel && sees_flag(&j->call);
		ns = block_ns(j, dev->unit[i].stopped);
		dev->unit[i].left =
			dev->unit[i].stopped || j->is_kernel ? 0 : steps_of(&j->call) - 1;
		dev->unit[i].step_ns = ns == NEVER ? NEVER : ns / (dev->unit[i].left + 1);
		dev->unit[i].job = j;
		dev->unit[i].block = (j->first + j->given++ * j->stride) % j->blocks;
		dev->unit[i].end_ns =
			ns == NEVER ? NEVER : world.now_ns + dev->unit[i].step_ns;
	}
}

static void start_all(void)
{
	struct object *o;
	uint32_t d;

	for (o = world.objects; o; o = o->next)
		if (o->kind == OBJECT_STREAM && ((struct stream *)o)->first &&
		    !((struct stream *)o)->first->started)
			start(o->dev, ((struct stream *)o)->first);
	for (d = 0; d < DEVICES_MAX; d++)
		give_blocks(&world.devices[d]);
}

uint64_t world_next(void)
{
	uint64_t next = NEVER;
	struct object *o;
	uint32_t d, i;

	for (o = world.objects; o; o = o->next) {
		struct job *j =
			o->kind == OBJECT_STREAM ? ((struct stream *)o)->first : NULL;

		if (j && j->started && j->end_ns < next)
			next = j->end_ns;
	}
	for (d = 0; d < DEVICES_MAX; d++)
		for (i = 0; i < world.devices[d].units; i++)
			if (world.devices[d].unit[i].job &&
			    world.devices[d].unit[i].end_ns < next)
				next = world.devices[d].unit[i].end_ns;
	return next;
}

static uint64_t common(uint64_t a, uint64_t b)
{
	while (b) {
		const uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static void make_ready(struct job *j)
{
	j->order = ++world.orders;
	j->end_ns = NEVER;
	j->blocks = j->is_kernel ? 1 + j->bytes / MOVE_BYTES
				 : (uint64_t)j->call.grid[0] * j->call.grid[1] *
					   j->call.grid[2];
	j->first = random_number() % j->blocks;
	do
		j->stride = random_number() % j->blocks + 1;
	while (common(j->stride, j->blocks) != 1);
}

static void note(const struct job *j)
{
	struct gpu_stand_in_job *k =
		&world.kept[(world.kept_first + world.kept_count) % JOBS_KEPT];

	if (j->op > OP_LAUNCH)
		return;
	if (world.kept_count == JOBS_KEPT)
		world.kept_first = (world.kept_first + 1) % JOBS_KEPT;
	else
		world.kept_count++;
	snprintf(k->what, sizeof(k->what), "%s",
		 j->op == OP_LAUNCH ? j->call.spec->name
		 : j->op == OP_COPY ? "copy"
				    : "fill");
	k->device = j->stream->object.dev->index;
	k->priority = j->stream->priority;
	k->start_ns = j->start_ns;
	k->end_ns = world.now_ns;
	memcpy(k->units, j->on, sizeof(k->units));
	k->stream = j->stream;
	k->engine = j->engine;
}

enum { PAGE = 4096 };

/* Sanitizers would take minutes of each word of a GPU's whole memory. */
__attribute__((no_sanitize("thread", "address", "undefined"))) static bool
is_zero(const void *from, uint64_t pages)
{
	enum { WORDS = PAGE / sizeof(uint64_t) };
	const uint64_t *word = from;
	uint64_t any = 0;

	for (; pages-- && !any; word += WORDS)
		for (uint32_t i = 0; i < WORDS; i++)
			any |= word[i];
	return !any;
}

/* Whole pages become zeros that are none of the host's: of a file, or else of memory. */
static bool drop_pages(void *p, uint64_t bytes)
{
	return madvise(p, bytes, MADV_REMOVE) == 0 ||
	       madvise(p, bytes, MADV_DONTNEED) == 0;
}

/* Of a large allocation, which is mapped, pages of zeros are none of the host's.
 * Sanitizers see the source read in its first bytes. */
static void copy_bytes(const struct job *j, void *to, const void *from)
{
	const struct allocation *a = allocation_of(j->dst, j->bytes);
	static const uint8_t zero[64];

	if (a && a->dev && a->bytes > POISON_MOST && j->bytes >= PAGE &&
	    (uintptr_t)to % PAGE == 0 && j->bytes % PAGE == 0 &&
	    (uintptr_t)from % sizeof(uint64_t) == 0 &&
	    memcmp(from, zero, sizeof(zero)) == 0 && is_zero(from, j->bytes / PAGE) &&
	    drop_pages(to, j->bytes))
		return;
	memmove(to, from, j->bytes);
}

/* Fill so many words.  Of a large allocation whole pages of zeros are none of the host's.
 */
static void fill_words(const struct job *j, uint32_t *to, uint64_t words)
{
	const struct allocation *a = allocation_of(j->dst, j->bytes);
	const uint64_t whole = words * 4 / PAGE * PAGE;
	uint64_t i = 0;

	if (a && a->dev && a->bytes > POISON_MOST && !j->value && whole &&
	    (uintptr_t)to % PAGE == 0 && drop_pages(to, whole))
		i = whole / 4;
	for (; i < words; i++)
		to[i] = j->value;
}

/* False: an address that is none. */
static bool effect(struct job *j)
{
	uint32_t *to = NULL;
	void *d, *s;

	switch (j->op) {
	case OP_COPY:
		d = memory_at(j->dst, j->bytes);
		s = memory_at(j->src, j->bytes);
		if (d && s)
			copy_bytes(j, d, s);
		return d && s;
	case OP_FILL:
		to = memory_at(j->dst, j->bytes);
		if (to)
			fill_words(j, to, j->bytes / 4);
		return to != NULL;
	case OP_RECORD:
		/* Recorded again in the meantime: that one counts. */
		j->event->done = !--j->event->users;
		j->event->ran++;
		j->event->at_ns = world.now_ns;
		return true;
	case OP_HOST:
		call_host(j, GPU_SUCCESS);
		return true;
	case OP_WRITE:
		to = memory_at(j->dst, 4);
		if (to)
			__atomic_store_n(to, j->value, __ATOMIC_RELEASE);
		return to != NULL;
	default:
		return true;
	}
}

/* True: the host can see it. */
static bool end(struct job *j)
{
	struct device *dev = j->stream->object.dev;
	const bool visible = j->op == OP_WRITE || j->op == OP_HOST || j->ends;
	uint32_t i;

	for (i = 0; i < COPY_ENGINES; i++)
		if (dev->copying[i] == j)
			dev->copying[i] = NULL;
	if (dev->hosting == j)
		dev->hosting = NULL;
	if (j->fails) {
		device_lose(dev, j->fails);
		return true;
	}
	if (!effect(j)) {
		device_fault(dev);
		return true;
	}
	note(j);
	if (j->ends)
		j->ends(j);
	pop(j->stream);
	return visible;
}

/* True: a block was at fault. */
static bool end_blocks(struct device *dev)
{
	uint32_t i;

	for (i = 0; i < dev->units; i++) {
		struct unit u = dev->unit[i];

		if (!u.job || u.end_ns > world.now_ns)
			continue;
		if (u.left) {
			dev->unit[i].left--;
			dev->unit[i].end_ns = world.now_ns + u.step_ns;
		} else {
			dev->unit[i].job = NULL;
		}
		world.unit_now = i;
		world.device_now = dev;
		world.job_now = u.job;
		if (!act(&u)) {
			device_fault(dev);
			return true;
		}
		if (!u.left && ++u.job->done == u.job->blocks)
			u.job->end_ns = world.now_ns;
	}
	return false;
}

static bool end_all(void)
{
	bool visible = false;
	struct object *o;
	uint32_t d;

	for (d = 0; d < DEVICES_MAX; d++)
		visible |= end_blocks(&world.devices[d]);
	for (o = world.objects; o; o = o->next) {
		struct job *j =
			o->kind == OBJECT_STREAM ? ((struct stream *)o)->first : NULL;

		if (!j || !j->started || j->end_ns > world.now_ns)
			continue;
		if (has_blocks(j) && !j->order)
			make_ready(j);
		else
			visible |= end(j);
	}
	return visible;
}

bool world_run(uint64_t until_ns, bool to_visible)
{
	uint64_t next;

	for (;;) {
		start_all();
		next = world_next();
		if (next > until_ns || next == NEVER)
			break;
		world.now_ns = next;
		if (end_all() && to_visible)
			return true;
	}
	if (until_ns != NEVER && until_ns > world.now_ns)
		world.now_ns = until_ns;
	return next != NEVER;
}

void world_pace(void)
{
	if (!world.drivers)
		(void)world_run(world.pace_ns + (mono() - world.pace_mono), false);
}
