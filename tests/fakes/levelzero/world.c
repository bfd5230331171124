/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual time of the stand-in: engines, who runs next, what ends when. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct world world = {.permit = true, .memory_left = UINT64_MAX};

static const struct device_spec specs[DEVICES] = {
	{.name = "HAL stand-in GPU, 4 tiles",
	 .type = LZ_DEVICE_GPU,
	 .tiles = 4,
	 .groups = 2,
	 .group = {{LZ_GROUP_COMPUTE | LZ_GROUP_COPY, 4}, {LZ_GROUP_COPY, 2}},
	 .ticks_per_second = 1000000000,
	 .valid_bits = 64,
	 .tile_memory = 64u << 20,
	 .shared = true},
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
	 .shared = true},
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

/* "0,1.0": devices, or single tiles of them. */
static void parse_mask(const char *mask, uint32_t *visible)
{
	while (*mask) {
		char *end;
		unsigned long d = strtoul(mask, &end, 10), t;

		if (end == mask)
			return;
		if (*end == '.') {
			mask = end + 1;
			t = strtoul(mask, &end, 10);
			if (d < DEVICES && t < specs[d].tiles)
				visible[d] |= 1u << t;
		} else if (d < DEVICES) {
			visible[d] |= (1u << specs[d].tiles) - 1;
		}
		mask = *end == ',' ? end + 1 : end;
		if (mask == end)
			return;
	}
}

void world_init(void)
{
	const char *mask = getenv("ZE_AFFINITY_MASK");
	uint32_t visible[DEVICES] = {0}, d, t;

	if (world.ready)
		return;
	if (mask && mask[0])
		parse_mask(mask, visible);
	else
		parse_mask("0,1,2,3,4", visible);
	world.driver.kind = OBJECT_DRIVER;
	for (d = 0; d < DEVICES; d++) {
		struct device *root = &world.roots[d];

		root->object.kind = OBJECT_DEVICE;
		root->index = d;
		root->sub = -1;
		root->spec = &specs[d];
		root->visible = visible[d];
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
		}
		if (visible[d])
			world.present[world.present_count++] = d;
	}
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

/* ---- memory ------------------------------------------------------------------------ */

void *memory_at(uint64_t address, uint64_t bytes)
{
	const struct allocation *a;

	for (a = world.allocations; a; a = a->next) {
		uint64_t base = (uintptr_t)a->p;

		if (address >= base && address - base <= a->bytes &&
		    bytes <= a->bytes - (address - base))
			return (char *)a->p + (address - base);
	}
	return NULL;
}

/* ---- streams ----------------------------------------------------------------------- */

/* dev, a tile or a root: a root works on its first tile that can be seen. */
void stream_init(struct stream *s, struct device *dev, uint32_t ordinal, uint32_t index)
{
	struct device *root = dev->root;
	uint32_t t = 0, i;

	if (dev->sub >= 0)
		t = (uint32_t)dev->sub;
	else
		while (!(root->visible >> t & 1))
			t++;
	s->last = &s->first;
	for (i = 0; i < root->tiles[t].engine_count; i++) {
		struct engine *e = &root->tiles[t].engines[i];

		if (e->ordinal == ordinal && e->index == index)
			s->engine = e;
	}
	s->next = s->engine->streams;
	s->engine->streams = s;
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
	free(job);
}

/* Its commands never end. */
void stream_lose(struct stream *s)
{
	struct job *job;

	s->lost = true;
	if (s->engine->running && s->engine->running->stream == s)
		s->engine->running = NULL;
	while ((job = s->first)) {
		s->first = job->next;
		if (job->signal)
			job->signal->lost = true;
		job_free(job);
	}
	s->last = &s->first;
	s->jobs = 0;
}

void stream_gone(struct stream *s)
{
	struct stream **at = &s->engine->streams;

	/* What never ends leaves no choice. */
	if (s->jobs && !(s->engine->running && s->engine->running->stream == s &&
			 s->engine->left == NEVER))
		misuse("a queue was destroyed with commands in it");
	stream_lose(s);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
}

void stream_push(struct stream *s, struct job *job)
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

static uint64_t duration_ns(const struct job *job)
{
	switch (job->op) {
	case OP_COPY:
	case OP_FILL:
		return 200 + job->bytes / 16;
	case OP_LAUNCH:
		return job->call.spec->ns(&job->call);
	default:
		return 10;
	}
}

static bool execute(const struct job *job)
{
	uint8_t *dst = job->dst;
	size_t i;

	switch (job->op) {
	case OP_COPY:
		memmove(job->dst, job->src, job->bytes);
		return true;
	case OP_FILL:
		for (i = 0; i < job->bytes; i++)
			dst[i] = job->pattern[i % job->pattern_bytes];
		return true;
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

/* Highest priority first; the one served longest ago among equals. */
static struct stream *pick(const struct engine *e)
{
	struct stream *s, *best = NULL;

	for (s = e->streams; s; s = s->next) {
		if (!s->first || !is_ready(s->first))
			continue;
		if (!best || rank(s->priority) > rank(best->priority) ||
		    (rank(s->priority) == rank(best->priority) &&
		     s->served < best->served))
			best = s;
	}
	return best;
}

static void start(struct engine *e)
{
	struct stream *s = e->running ? NULL : pick(e);
	uint64_t ns;

	if (!s)
		return;
	s->served = ++world.serves;
	e->running = s->first;
	e->running->start_ns = world.now_ns;
	ns = duration_ns(e->running);
	e->left = ns == NEVER ? NEVER : ns * SHARES;
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

/* True when an event was signalled. */
static bool finish(struct engine *e)
{
	struct job *job = e->running;
	struct stream *s = job->stream;
	bool signaled = false;

	e->running = NULL;
	if (!execute(job)) {
		stream_lose(s);
		return true; /* there is news for who looks */
	}
	keep(e, job);
	if (job->signal) {
		job->signal->signaled = true;
		job->signal->dev = e->tile->dev;
		job->signal->start_ns = job->start_ns;
		job->signal->end_ns = world.now_ns;
		signaled = true;
	}
	s->first = job->next;
	if (!s->first)
		s->last = &s->first;
	s->jobs--;
	job_free(job);
	return signaled;
}

/* ---- time -------------------------------------------------------------------------- */

/* Each engine of each tile, in an order that never changes. */
#define FOR_TILES(t)                                                                     \
	for (uint32_t d_ = 0; d_ < DEVICES; d_++)                                        \
		for (struct tile *t = world.roots[d_].tiles;                             \
		     t < world.roots[d_].tiles + TILES_MAX; t++)

static uint32_t sharers(const struct tile *t)
{
	uint32_t n = 0, i;

	for (i = 0; i < t->engine_count; i++)
		n += t->engines[i].running && t->engines[i].compute;
	return n ? n : 1;
}

static uint64_t rate_of(const struct tile *t, const struct engine *e)
{
	return e->compute ? SHARES / sharers(t) : SHARES;
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

			if (!e->running || e->left == NEVER)
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

			if (!e->running || e->left == NEVER)
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
			if (t->engines[i].running && !t->engines[i].left)
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
