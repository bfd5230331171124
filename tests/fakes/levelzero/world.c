/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual time of the stand-in: engines, who runs next, what ends when. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct world world = {.permit = true,
		      .memory_left = UINT64_MAX,
		      .export_types = LZ_EXTERNAL_DMA_BUF,
		      .import_types = LZ_EXTERNAL_DMA_BUF};

static const struct device_spec specs[DEVICES] = {
	{.name = "HAL stand-in GPU, 4 tiles",
	 .type = LZ_DEVICE_GPU,
	 .tiles = 4,
	 .groups = 2,
	 .group = {{LZ_GROUP_COMPUTE | LZ_GROUP_COPY, 4}, {LZ_GROUP_COPY, 2}},
	 .ticks_per_second = 1000000000,
	 .valid_bits = 64,
	 .tile_memory = 64u << 20,
	 .shared = true,
	 .split = true},
	{.name = "HAL stand-in GPU, 2 tiles",
	 .type = LZ_DEVICE_GPU,
	 .tiles = 2,
	 .groups = 3,
	 .group = {{LZ_GROUP_COMPUTE | LZ_GROUP_COPY, 2},
		   {LZ_GROUP_COPY, 2},
		   {LZ_GROUP_COMPUTE, 2}},
	 .ticks_per_second = 1000000000,
	 .valid_bits = 64,
	 .tile_memory = 64u << 20,
	 .shared = true},
	{.name = "HAL stand-in GPU, 1 tile",
	 .type = LZ_DEVICE_GPU,
	 .tiles = 1,
	 .groups = 1,
	 .group = {{LZ_GROUP_COMPUTE | LZ_GROUP_COPY, 4}},
	 .ticks_per_second = 12500000,
	 .valid_bits = 32,
	 .tile_memory = 64u << 20,
	 .shared = true,
	 .split = true},
	{.name = "HAL stand-in GPU, 1 engine",
	 .type = LZ_DEVICE_GPU,
	 .tiles = 1,
	 .groups = 1,
	 .group = {{LZ_GROUP_COMPUTE | LZ_GROUP_COPY, 1}},
	 .ticks_per_second = 1000000000,
	 .valid_bits = 64,
	 .tile_memory = 64u << 20,
	 .shared = false},
	{.name = "HAL stand-in NPU",
	 .type = LZ_DEVICE_VPU,
	 .tiles = 1,
	 .groups = 1,
	 .group = {{LZ_GROUP_COMPUTE | LZ_GROUP_COPY, 1}},
	 .ticks_per_second = 1000000000,
	 .valid_bits = 64,
	 .tile_memory = 64u << 20,
	 .shared = false},
};

/* Each engine of each tile, in an order that never changes. */
#define FOR_TILES(t)                                                                     \
	for (uint32_t d_ = 0; d_ < DEVICES; d_++)                                        \
		for (struct tile *t = world.roots[d_].tiles;                             \
		     t < world.roots[d_].tiles + TILES_MAX; t++)

void misuse(const char *what)
{
	world.misused++;
	world.misuse = what;
}

/* ---- devices ----------------------------------------------------------------------- */

static void tile_init(struct tile *t, struct device *root, uint32_t index)
{
	const struct device_spec *spec = root->spec;
	uint32_t g, i;

	t->dev = root;
	t->index = index;
	t->engine_count = 0;
	for (g = 0; g < spec->groups; g++) {
		for (i = 0; i < spec->group[g].engines; i++) {
			struct engine *e = &t->engines[t->engine_count++];

			e->tile = t;
			e->ordinal = g;
			e->index = i;
			e->compute = spec->group[g].flags & LZ_GROUP_COMPUTE;
		}
	}
}

static uint32_t all_tiles(uint32_t d)
{
	return (1u << specs[d].tiles) - 1;
}

/* The tile of that number, where each is a device. */
static void show_flat(unsigned long n, uint32_t *visible)
{
	uint32_t d = 0;

	while (d < DEVICES && n >= specs[d].tiles)
		n -= specs[d++].tiles;
	if (d < DEVICES)
		visible[d] |= 1u << n;
}

/* "0,1.0": devices, or single tiles of them. */
static void parse_mask(const char *mask, uint32_t *visible)
{
	while (*mask) {
		char *end;
		unsigned long d = strtoul(mask, &end, 10), t;

		if (end == mask)
			return;
		if (world.flat) {
			show_flat(d, visible);
		} else if (*end == '.') {
			mask = end + 1;
			t = strtoul(mask, &end, 10);
			if (d < DEVICES && t < specs[d].tiles)
				visible[d] |= 1u << t;
		} else if (d < DEVICES) {
			visible[d] |= all_tiles((uint32_t)d);
		}
		mask = *end == ',' ? end + 1 : end;
		if (mask == end)
			return;
	}
}

static void present(struct device *dev)
{
	world.present[world.present_count++] = dev;
}

static void root_init(uint32_t d, uint32_t visible)
{
	struct device *root = &world.roots[d];
	uint32_t t;

	root->object.kind = OBJECT_DEVICE;
	root->index = d;
	root->sub = -1;
	root->spec = &specs[d];
	root->visible = visible;
	root->root = root;
	root->subs = world.subs[d];
	root->schedulers[0].kind = root->schedulers[1].kind = OBJECT_SCHEDULER;
	for (t = 0; t < specs[d].tiles; t++) {
		struct device *sub = &root->subs[t];

		*sub = (struct device){.object = {OBJECT_DEVICE}, .index = d};
		sub->sub = (int32_t)t;
		sub->spec = &specs[d];
		sub->root = root;
		tile_init(&root->tiles[t], root, t);
		if (world.flat && visible >> t & 1)
			present(sub);
	}
	if (visible && !world.flat)
		present(root);
}

void world_init(void)
{
	const char *mask = getenv("ZE_AFFINITY_MASK");
	const char *hierarchy = getenv("ZE_FLAT_DEVICE_HIERARCHY");
	uint32_t visible[DEVICES] = {0}, d;

	if (world.ready)
		return;
	world.combined = hierarchy && strcmp(hierarchy, "COMBINED") == 0;
	world.flat = world.combined || (hierarchy && strcmp(hierarchy, "FLAT") == 0);
	if (mask && mask[0])
		parse_mask(mask, visible);
	world.driver.kind = OBJECT_DRIVER;
	for (d = 0; d < DEVICES; d++)
		root_init(d, mask && mask[0] ? visible[d] : all_tiles(d));
	world.ready = true;
}

void device_lose(struct device *root)
{
	uint32_t t, e;

	root->lost = true;
	for (t = 0; root->spec && t < root->spec->tiles; t++) {
		for (e = 0; e < root->tiles[t].engine_count; e++) {
			struct stream *s = root->tiles[t].engines[e].streams;

			for (; s; s = s->next)
				stream_lose(s);
		}
	}
}

static bool tile_hangs(const struct device *root, uint32_t t)
{
	uint32_t e;

	for (e = 0; e < root->tiles[t].engine_count; e++) {
		const struct stream *s = root->tiles[t].engines[e].streams;

		for (; s; s = s->next)
			if (s->lost && !s->more_count)
				return true;
	}
	return false;
}

bool device_hangs(const struct device *dev)
{
	const struct stream *s = NULL;
	uint32_t e;

	if (dev->sub >= 0)
		return tile_hangs(dev->root, (uint32_t)dev->sub);
	if (dev->spec->tiles == 1)
		return tile_hangs(dev, 0);
	/* A root's own engines: those that several tiles make up. */
	for (e = 0; e < dev->tiles[0].engine_count; e++)
		for (s = dev->tiles[0].engines[e].streams; s; s = s->next)
			if (s->lost && s->more_count)
				return true;
	return false;
}

/* ---- memory ------------------------------------------------------------------------ */

void *memory_at(uint64_t address, uint64_t bytes)
{
	const struct allocation *a;

	for (a = world.allocations; a; a = a->next) {
		uint64_t base = (uintptr_t)a->p;

		if (address >= base && address - base <= a->bytes &&
		    bytes <= a->bytes - (address - base))
			return (char *)a->backing + (address - base);
	}
	if (is_reserved(address, bytes))
		misuse("addresses were used where no memory is mapped");
	return NULL;
}

static bool names(const struct job *job, const struct allocation *a)
{
	uint64_t of[2 + ARGS_MAX] = {(uintptr_t)job->dst, (uintptr_t)job->src};
	uint32_t n = 2, i;

	for (i = 0; job->op == OP_LAUNCH && i < job->call.spec->args; i++)
		if (job->call.spec->arg_bytes[i] == 8)
			of[n++] = job->call.args[i];
	for (i = 0; i < n; i++)
		if (of[i] - (uintptr_t)a->p < a->bytes)
			return true;
	return false;
}

static bool stream_names(const struct stream *s, const struct allocation *a)
{
	const struct job *job;

	for (job = s->first; job; job = job->next)
		if (names(job, a))
			return true;
	return false;
}

bool memory_busy(const struct allocation *a)
{
	uint32_t i;

	FOR_TILES(t)
	{
		for (i = 0; i < t->engine_count; i++) {
			const struct stream *s = t->engines[i].streams;

			for (; s; s = s->next)
				if (stream_names(s, a))
					return true;
		}
	}
	return false;
}

/* ---- streams ----------------------------------------------------------------------- */

static struct engine *engine_of(struct tile *t, uint32_t ordinal, uint32_t index)
{
	uint32_t i;

	for (i = 0; i < t->engine_count; i++)
		if (t->engines[i].ordinal == ordinal && t->engines[i].index == index)
			return &t->engines[i];
	return NULL;
}

/* dev, a tile or a root: a root works on all of its tiles that can be seen, at once. What
 * has low priority goes to the first engine of its kind, whatever was asked for. */
void stream_init(struct stream *s, struct device *dev, uint32_t ordinal, uint32_t index)
{
	struct device *root = dev->root;
	uint32_t t;

	if (s->priority == LZ_PRIORITY_LOW) {
		index = 0;
		if (dev->spec->group[ordinal].flags & LZ_GROUP_COMPUTE)
			ordinal = 0;
	}
	s->last = &s->first;
	for (t = 0; t < dev->spec->tiles; t++) {
		struct engine *e = engine_of(&root->tiles[t], ordinal, index);

		if (dev->sub >= 0 ? t != (uint32_t)dev->sub : !(root->visible >> t & 1))
			continue;
		if (!s->engine)
			s->engine = e;
		else
			s->more[s->more_count++] = e;
	}
	s->next = s->engine->streams;
	s->engine->streams = s;
}

/* The engines that run its command stop. */
static void leave_engines(struct stream *s)
{
	uint32_t i;

	s->engine->running = NULL;
	for (i = 0; i < s->more_count; i++) {
		s->more[i]->running = NULL;
		s->more[i]->follows = false;
	}
}

void job_free(struct job *job)
{
	uint32_t i;

	for (i = 0; i < job->wait_count; i++)
		job->waits[i]->users--;
	if (job->signal)
		job->signal->users--;
	if (job->list)
		job->list->flying--;
	if (job->fence)
		job->fence->users--;
	free(job);
}

/* Its commands never end. */
void stream_lose(struct stream *s)
{
	struct job *job;

	s->lost = true;
	if (s->engine->running && s->engine->running->stream == s)
		leave_engines(s);
	while ((job = s->first)) {
		s->first = job->next;
		if (job->signal)
			job->signal->lost = true;
		job_free(job);
	}
	s->last = &s->first;
	s->jobs = 0;
}

/* What never ends leaves no choice. */
bool stream_stuck(const struct stream *s)
{
	const struct engine *e = s->engine;

	return e->running && e->running->stream == s && e->left == NEVER;
}

void stream_gone(struct stream *s)
{
	struct stream **at = &s->engine->streams;

	if (s->jobs && !stream_stuck(s))
		misuse("a queue was destroyed with commands in it");
	stream_lose(s);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
}

void stream_add(struct stream *s, struct job *job)
{
	uint32_t i;

	job->stream = s;
	job->next = NULL;
	for (i = 0; i < job->wait_count; i++)
		job->waits[i]->users++;
	if (job->signal)
		job->signal->users++;
	if (job->list)
		job->list->flying++;
	if (job->fence)
		job->fence->users++;
	if (s->lost) {
		if (job->signal)
			job->signal->lost = true;
		job_free(job);
		return;
	}
	*s->last = job;
	s->last = &job->next;
	s->jobs++;
}

/* ---- jobs -------------------------------------------------------------------------- */

static bool is_ready(const struct job *job)
{
	uint32_t i;

	for (i = 0; i < job->wait_count; i++)
		if (!job->waits[i]->signaled)
			return false;
	return true;
}

static bool is_device(const void *p)
{
	const struct allocation *a;

	for (a = world.allocations; a; a = a->next)
		if ((uintptr_t)p - (uintptr_t)a->p < a->bytes)
			return a->p != a->backing;
	return false;
}

static bool crosses(const struct job *job)
{
	return is_device(job->dst) != is_device(job->src);
}

/* The bytes of a buffer, or of the host's own memory; NULL: a page fault. */
static void *bytes_at(const void *p, size_t bytes)
{
	void *at = memory_at((uintptr_t)p, bytes);

	return at || is_reserved((uintptr_t)p, bytes) ? at : (void *)p;
}

static uint64_t duration_ns(const struct job *job)
{
	switch (job->op) {
	case OP_COPY:
		return 200 + job->bytes / 16 + (crosses(job) ? world.copy_ns : 0);
	case OP_FILL:
		return 200 + job->bytes / 16;
	case OP_LAUNCH:
		return job->call.spec->ns(&job->call);
	case OP_END:
		return 40;
	default:
		return 10;
	}
}

static bool execute(const struct job *job)
{
	const void *src;
	uint8_t *dst;
	size_t i;

	switch (job->op) {
	case OP_COPY:
		dst = bytes_at(job->dst, job->bytes);
		src = bytes_at(job->src, job->bytes);
		if (dst && src)
			memmove(dst, src, job->bytes);
		return dst && src;
	case OP_FILL:
		dst = bytes_at(job->dst, job->bytes);
		for (i = 0; dst && i < job->bytes; i++)
			dst[i] = job->pattern[i % job->pattern_bytes];
		return dst != NULL;
	case OP_LAUNCH:
		return job->call.spec->run(&job->call);
	default:
		return true;
	}
}

static int rank(uint32_t priority)
{
	return priority == LZ_PRIORITY_HIGH ? 2 : priority == LZ_PRIORITY_LOW ? 0 : 1;
}

/* The command of a stream that can begin.  In an immediate list that is not in order, the
 * last that waits for nothing overtakes, up to a barrier. */
static struct job *ready_job(const struct stream *s, bool regular)
{
	struct job *job = s->first, *best = NULL;

	if (s->in_order || regular)
		return job && is_ready(job) ? job : NULL;
	for (; job; job = job->next) {
		if (job->op == OP_BARRIER && !job->wait_count && job != s->first)
			break;
		if (is_ready(job))
			best = job;
		if (job->op == OP_BARRIER && !job->wait_count)
			break;
	}
	return best;
}

static bool engines_free(const struct stream *s)
{
	uint32_t i;

	for (i = 0; i < s->more_count; i++)
		if (s->more[i]->running)
			return false;
	return true;
}

/* Highest priority first; the one served longest ago among equals. */
static struct job *pick(const struct engine *e)
{
	struct job *best = NULL;
	struct stream *s;

	for (s = e->streams; s; s = s->next) {
		struct job *job = ready_job(s, s->first && s->first->list);
		const struct stream *b = best ? best->stream : NULL;

		if (!job || !engines_free(s))
			continue;
		if (!b || rank(s->priority) > rank(b->priority) ||
		    (rank(s->priority) == rank(b->priority) && s->served < b->served))
			best = job;
	}
	return best;
}

static void start(struct engine *e)
{
	struct job *job = e->running ? NULL : pick(e);
	uint32_t i;
	uint64_t ns;

	if (!job)
		return;
	job->stream->served = ++world.serves;
	e->running = job;
	job->start_ns = world.now_ns;
	ns = duration_ns(job);
	e->left = ns == NEVER ? NEVER : ns * SHARES;
	for (i = 0; i < job->stream->more_count; i++) {
		job->stream->more[i]->running = job;
		job->stream->more[i]->follows = true;
	}
}

static void keep(const struct engine *e, const struct job *job)
{
	struct lz_stand_in_job *k =
		&world.kept[(world.kept_first + world.kept_count) % JOBS_KEPT];
	static const char *const names[] = {"barrier", "copy", "fill", "launch"};

	if (world.kept_count == JOBS_KEPT)
		world.kept_first = (world.kept_first + 1) % JOBS_KEPT;
	else
		world.kept_count++;
	snprintf(k->what, sizeof(k->what), "%s",
		 job->op == OP_LAUNCH ? job->call.spec->name : names[job->op]);
	k->device = e->tile->dev->index;
	k->tile = e->tile->index;
	k->ordinal = e->ordinal;
	k->index = e->index;
	k->priority = job->stream->priority;
	k->start_ns = job->start_ns;
	k->end_ns = world.now_ns;
}

static void unlink_job(struct stream *s, const struct job *job)
{
	struct job **at = &s->first;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	if (s->last == &job->next)
		s->last = at;
	s->jobs--;
}

static void check_pool(const struct event *e, const struct device *root, uint32_t tile)
{
	const struct pool *p = e->pool;
	uint32_t i;

	for (i = 0; i < p->device_count; i++)
		if (p->devices[i]->root == root &&
		    (p->devices[i]->sub < 0 || (uint32_t)p->devices[i]->sub == tile))
			return;
	if (p->device_count)
		misuse("an event was signalled by a device that its pool was not made "
		       "for");
}

/* True when somebody may have waited for this. */
static bool finish(struct engine *e)
{
	struct job *job = e->running;
	struct stream *s = job->stream;
	bool news = false;

	leave_engines(s);
	if (!execute(job)) {
		stream_lose(s);
		return true;
	}
	if (job->op != OP_END)
		keep(e, job);
	if (job->signal) {
		check_pool(job->signal, e->tile->dev, e->tile->index);
		job->signal->signaled = true;
		job->signal->dev = e->tile->dev;
		job->signal->start_ns = job->start_ns;
		job->signal->end_ns = world.now_ns;
		news = true;
	}
	if (job->fence) {
		job->fence->signaled = true;
		news = true;
	}
	unlink_job(s, job);
	job_free(job);
	return news;
}

/* ---- time -------------------------------------------------------------------------- */

static uint32_t sharers(const struct tile *t)
{
	uint32_t n = 0, i;

	for (i = 0; i < t->engine_count; i++)
		n += t->engines[i].running && t->engines[i].compute;
	return n && !t->dev->spec->split ? n : 1;
}

/* Where several tiles run it, the slowest. */
static uint64_t rate_of(const struct tile *t, const struct engine *e)
{
	const struct stream *s = e->running->stream;
	uint32_t most = e->compute ? sharers(t) : 1, i;

	for (i = 0; e->compute && i < s->more_count; i++)
		if (sharers(s->more[i]->tile) > most)
			most = sharers(s->more[i]->tile);
	return SHARES / most;
}

static uint64_t next_end(void)
{
	uint64_t best = NEVER;
	uint32_t i;

	FOR_TILES(t)
	{
		for (i = 0; i < t->engine_count; i++) {
			struct engine *e = &t->engines[i];
			uint64_t rate, ns;

			if (!e->running || e->follows || e->left == NEVER)
				continue;
			rate = rate_of(t, e);
			ns = (e->left + rate - 1) / rate;
			if (world.now_ns + ns < best)
				best = world.now_ns + ns;
		}
	}
	return best;
}

static void move_to(uint64_t ns)
{
	uint64_t dt = ns - world.now_ns;
	uint32_t i;

	FOR_TILES(t)
	{
		for (i = 0; i < t->engine_count; i++) {
			struct engine *e = &t->engines[i];
			uint64_t done;

			if (!e->running || e->follows || e->left == NEVER)
				continue;
			done = dt * rate_of(t, e);
			e->left = done < e->left ? e->left - done : 0;
		}
	}
	world.now_ns = ns;
}

static bool finish_due(void)
{
	bool signaled = false;
	uint32_t i;

	FOR_TILES(t)
	{
		for (i = 0; i < t->engine_count; i++)
			if (t->engines[i].running && !t->engines[i].follows &&
			    !t->engines[i].left)
				signaled |= finish(&t->engines[i]);
	}
	return signaled;
}

static void start_all(void)
{
	uint32_t i;

	FOR_TILES(t)
	{
		for (i = 0; i < t->engine_count; i++)
			start(&t->engines[i]);
	}
}

void world_run(uint64_t until_ns, bool to_signal)
{
	for (;;) {
		uint64_t end;

		start_all();
		end = next_end();
		if (end > until_ns || end == NEVER) {
			if (until_ns > world.now_ns && until_ns != NEVER)
				move_to(until_ns);
			return;
		}
		move_to(end);
		if (finish_due() && to_signal) {
			start_all();
			return;
		}
	}
}

/* Nothing that runs will ever end, or nothing runs. */
bool world_idle(void)
{
	start_all();
	return next_end() == NEVER;
}

static uint64_t mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Nobody drives: time goes as the host's does. */
void world_pace(void)
{
	uint64_t mono = mono_ns(), ns;

	if (!world.ready)
		return;
	if (world.drivers || !world.pace_mono) {
		world.pace_mono = mono;
		world.pace_ns = world.now_ns;
	}
	ns = world.pace_ns + (mono - world.pace_mono);
	if (!world.drivers && ns > world.now_ns)
		world_run(ns, false);
}
