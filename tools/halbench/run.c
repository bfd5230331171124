/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - a load on a device under a policy; see run.h.
 *
 * The application's side: requests are submitted when they arrive, by queues with a
 * priority and a deadline (and a class, if that is asked for), and that is all.  Requests
 * of one task are served in order; one that its queue has no room for waits here, and its
 * latency counts from its arrival all the same.
 */
#include "run.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service.h"
#include "tool.h"

#define OPTIONS_MAX  96u
#define RING_ENTRIES 65536u
#define TAKE         256u
/* Alone, one request of a closed loop is as another. */
#define LOOPS_ALONE 1000u

static const char *const layout_names[LAYOUTS] = {
	[LAYOUT_DEFAULT] = "default", [LAYOUT_SHARED] = "shared",
	[LAYOUT_HALVES] = "halves",   [LAYOUT_SPLIT] = "split",
	[LAYOUT_CLASSES] = "classes", [LAYOUT_TENANTS] = "tenants",
};

const char *layout_name(enum layout layout)
{
	return layout_names[layout];
}

/* Policies that size partitions, and those that look at what runs beside. */
static enum layout layout_of(const char *policy)
{
	static const struct {
		const char *policy;
		enum layout layout;
	} suits[] = {
		{"tidal", LAYOUT_TENANTS},   {"krisp", LAYOUT_TENANTS},
		{"fission", LAYOUT_TENANTS}, {"v10", LAYOUT_TENANTS},
		{"orion", LAYOUT_HALVES},    {"weave", LAYOUT_HALVES},
		{"moca", LAYOUT_HALVES},     {"fgpu", LAYOUT_CLASSES},
	};

	for (size_t i = 0; i < sizeof(suits) / sizeof(suits[0]); i++)
		if (strcmp(suits[i].policy, policy) == 0)
			return suits[i].layout;
	return LAYOUT_SHARED;
}

struct tenant {
	const struct load_task *task;
	struct service service;
	struct hal_timeline *timeline;
	bool here;     /* in this run */
	bool loops;    /* the next request comes with the end of the last ... */
	uint32_t most; /* ... until there were so many */
	bool awaited;  /* others' requests come with its ends */
	uint64_t base; /* value on the timeline before the first request */
	uint64_t *arrivals;
	uint32_t arrival_count, arrived;
	struct request *requests;
	uint32_t count, room, submitted, done;
};

struct world {
	const struct setup *setup;
	struct run *run;
	struct hal_device *dev;
	struct hal_completions *ring;
	struct hal_partition **parts;
	uint32_t *units; /* of each partition, when looked at last */
	uint32_t part_count, border_room;
	struct tenant *tenants;
	struct hal_point *points;
	uint64_t begin_ns;    /* device time */
	bool classes, colors; /* queues say their class; channels of their own */
	const char *label;
	double weight; /* of what is told */
};

/* ---- progress ----------------------------------------------------------------------- */

static double wall(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A task alone is a load of its own share. */
double run_weight(const struct setup *s, uint32_t only)
{
	double window = (double)load_window_ns(&s->clock);

	return only == RUN_ALL ? window : window / s->load->count;
}

static void tell(const struct world *w, uint64_t now)
{
	struct progress *p = w->setup->progress;
	double seconds = wall(), share = (double)now / (double)w->run->window_ns;

	if (p->began == 0)
		p->began = seconds;
	if (seconds - p->told < 0.2)
		return;
	p->told = seconds;
	share = (p->done + fmin(share, 1) * w->weight) / p->all;
	fprintf(stderr, "\r\033[K%s at rate %g, %s: %.0f %%", p->load, p->rate, w->label,
		100 * share);
	if (share > 0) /* before that nothing is known of it */
		fprintf(stderr, ", %.0f s left",
			(seconds - p->began) * (1 - share) / share);
	(void)fflush(stderr);
}

/* ---- requests ----------------------------------------------------------------------- */

static int arrive(struct tenant *t, uint64_t at_ns)
{
	if (t->count == t->room) {
		uint32_t room = t->room != 0 ? 2 * t->room : 256;
		struct request *more = realloc(t->requests, room * sizeof(*more));

		if (more == NULL)
			return tool_fail("out of memory");
		t->requests = more;
		t->room = room;
	}
	t->requests[t->count++] = (struct request){at_ns, 0};
	return 0;
}

static int submit(struct tenant *t, uint32_t index)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;

	d.cmds = t->service.cmds;
	d.cmd_count = t->service.cmd_count;
	d.tag = index;
	while (t->submitted < t->count) {
		int err = hal_submit(t->service.queue, &d, &done);

		if (err == -EAGAIN && t->submitted > t->done)
			return 0;
		if (err != 0)
			return tool_fail("%s: %s", t->task->id, hal_last_error());
		t->base = done.value - t->submitted++ - 1;
	}
	return 0;
}

static int arrive_until(struct world *w, uint64_t now)
{
	for (uint32_t i = 0; i < w->setup->load->count; i++) {
		struct tenant *t = &w->tenants[i];

		if (!t->here)
			continue;
		while (t->arrived < t->arrival_count && t->arrivals[t->arrived] <= now)
			if (arrive(t, t->arrivals[t->arrived++]) != 0)
				return TOOL_FAILED;
		if (t->submitted < t->count && submit(t, i) != 0)
			return TOOL_FAILED;
	}
	return 0;
}

/* What comes with the ends of others; all of these have ended so often. */
static int arrive_after(struct world *w, uint64_t now)
{
	for (uint32_t i = 0; i < w->setup->load->count; i++) {
		struct tenant *t = &w->tenants[i];
		uint32_t ends = UINT32_MAX;

		if (!t->here || t->loops || t->task->type != LOAD_DEPENDENT)
			continue;
		for (uint32_t k = 0; k < t->task->after_count; k++)
			if (w->tenants[t->task->after[k]].done < ends)
				ends = w->tenants[t->task->after[k]].done;
		while (t->count < ends && now < w->run->window_ns)
			if (arrive(t, now) != 0)
				return TOOL_FAILED;
	}
	return 0;
}

static int end_of(struct world *w, const struct hal_completion *c, bool *awaited)
{
	struct tenant *t = &w->tenants[c->tag];
	struct request *r = &t->requests[t->done++];

	if (c->status != 0)
		return tool_fail("%s: request %u ended with %s", t->task->id, t->done,
				 hal_strerror(c->status));
	r->end_ns = c->end_ns - w->begin_ns;
	if (r->end_ns > w->run->end_ns)
		w->run->end_ns = r->end_ns;
	*awaited |= t->awaited;
	if (t->loops && t->count < t->most && r->end_ns < w->run->window_ns)
		return arrive(t, r->end_ns);
	return 0;
}

/* All that has ended by now. */
static int take_ends(struct world *w, uint64_t now)
{
	struct hal_completion c[TAKE];
	bool awaited = false;
	int n;

	do {
		n = hal_completions_read(w->ring, c, TAKE, 0);
		if (n < 0)
			return tool_fail_hal();
		for (int i = 0; i < n; i++)
			if (end_of(w, &c[i], &awaited) != 0)
				return TOOL_FAILED;
	} while (n == (int)TAKE);
	return awaited ? arrive_after(w, now) : 0;
}

/* ---- time --------------------------------------------------------------------------- */

/* Ends that something comes with, or that make room. */
static uint32_t points_of(struct world *w, bool *busy)
{
	uint32_t n = 0;

	*busy = false;
	for (uint32_t i = 0; i < w->setup->load->count; i++) {
		const struct tenant *t = &w->tenants[i];

		if (t->submitted == t->done)
			continue;
		*busy = true;
		if (t->loops || t->awaited || t->submitted < t->count)
			w->points[n++] =
				(struct hal_point){t->timeline, t->base + t->done + 1};
	}
	return n;
}

/* UINT64_MAX: none comes any more. */
static uint64_t next_arrival(const struct world *w)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < w->setup->load->count; i++) {
		const struct tenant *t = &w->tenants[i];

		if (t->arrived < t->arrival_count && t->arrivals[t->arrived] < next)
			next = t->arrivals[t->arrived];
	}
	return next;
}

/* Until then, or something ends that is waited for. */
static int pass(struct world *w, uint64_t now, uint64_t until, uint32_t points)
{
	int err;

	if (points == 0) {
		err = hal_device_poll(w->dev, until == UINT64_MAX ? until : until - now);
		return err < 0 ? tool_fail_hal() : 0;
	}
	if (until == UINT64_MAX)
		err = hal_wait(w->points, points, HAL_WAIT_ANY, HAL_FOREVER);
	else
		err = hal_wait(w->points, points, HAL_WAIT_ANY | HAL_WAIT_DEVICE_TIME,
			       (int64_t)(w->begin_ns + until));
	return err < 0 && err != -ETIMEDOUT ? tool_fail_hal() : 0;
}

static bool is_elastic(enum layout layout)
{
	return layout == LAYOUT_CLASSES || layout == LAYOUT_TENANTS;
}

static int add_border(struct world *w, struct border b)
{
	struct run *r = w->run;

	if (r->border_count == w->border_room) {
		uint32_t room = w->border_room != 0 ? 2 * w->border_room : 64;
		struct border *more = realloc(r->borders, room * sizeof(*more));

		if (more == NULL)
			return tool_fail("out of memory");
		r->borders = more;
		w->border_room = room;
	}
	r->borders[r->border_count++] = b;
	w->units[b.part] = b.units;
	return 0;
}

static int look_at_borders(struct world *w, uint64_t now)
{
	for (uint32_t i = 0; i < w->part_count; i++) {
		struct hal_partition_info info = HAL_INIT(hal_partition_info);

		if (hal_partition_get_info(w->parts[i], &info) != 0)
			return tool_fail_hal();
		if (info.units != w->units[i] &&
		    add_border(w, (struct border){now, i, info.units}) != 0)
			return TOOL_FAILED;
	}
	return 0;
}

static int run_requests(struct world *w)
{
	for (uint32_t turn = 0;; turn++) {
		uint64_t now = hal_device_get_time(w->dev) - w->begin_ns, next;
		uint32_t points;
		bool busy;

		if (take_ends(w, now) != 0 || arrive_until(w, now) != 0)
			return TOOL_FAILED;
		if ((turn == 0 || is_elastic(w->run->layout)) &&
		    look_at_borders(w, now) != 0)
			return TOOL_FAILED;
		points = points_of(w, &busy);
		next = next_arrival(w);
		if (!busy && next == UINT64_MAX)
			return 0;
		if (w->setup->progress != NULL && turn % 256 == 0)
			tell(w, now);
		if (pass(w, now, next, points) != 0)
			return TOOL_FAILED;
	}
}

/* ---- set up and down ---------------------------------------------------------------- */

/* Options of hal_open are not those of a device that hald serves: set its policy. */
static int set_policy(struct hal_device *dev, const struct policy_spec *p)
{
	const char *options[OPTIONS_MAX + 1] = {NULL};

	if (hal_device_get_extension(dev, "hald") == NULL)
		return 0;
	for (uint32_t i = 0; i < p->option_count; i++)
		options[i] = strchr(p->options[i], '.') + 1; /* behind "policy." */
	return hal_device_set_policy(dev, p->name, options);
}

static int open_device(struct world *w, const struct policy_spec *p)
{
	const char *options[OPTIONS_MAX + 1] = {
		"hal.queue_depth=4096",
	};
	struct hal_device_info *info = &w->run->info;
	char name[80];
	uint32_t n = 1;

	snprintf(name, sizeof(name), "policy.name=%s", p->name);
	options[n++] = name;
	for (uint32_t i = 0; i < p->option_count; i++)
		options[n++] = p->options[i];
	for (uint32_t i = 0; w->setup->options[i] != NULL && n < OPTIONS_MAX; i++)
		options[n++] = w->setup->options[i];
	if (hal_open(w->setup->target, options, &w->dev) != 0)
		return tool_fail_hal();
	info->size = sizeof(*info);
	if (hal_device_get_info(w->dev, info) != 0)
		return tool_fail_hal();
	if ((info->caps & HAL_CAP_VIRTUAL_CLOCK) == 0)
		return tool_fail(
			"%s: halbench cannot step a real clock; choose a --target with a "
			"virtual clock, such as ref?units=32 or npu:0",
			w->setup->target);
	if (set_policy(w->dev, p) != 0 ||
	    hal_completions_create(w->dev, RING_ENTRIES, &w->ring) != 0)
		return tool_fail_hal();
	return 0;
}

/* Check that the device runs what the table has of each task. */
static int check_networks(const struct world *w)
{
	const struct load *l = w->setup->load;

	for (uint32_t i = 0; i < l->count; i++) {
		const struct load_task *t = &l->tasks[i];
		const struct model *m = models_find(w->setup->models, t->model);

		if (service_runs(w->dev, m))
			continue;
		return tool_fail(
			"%s:%u: tasks[%u].client.model_name: the table has %s for "
			"\"%s\", which %s, not on %s: %s",
			l->file, t->model_line, i,
			m->network != NULL ? "a file" : "only steps", t->model,
			m->network != NULL ? "runs on an NPU" : "run on ref",
			w->setup->target,
			m->network != NULL
				? "choose an NPU with --target, such as "
				  "npu:0?engine=fast, or a table with steps with --models"
				: "choose a table with files with --models, such as "
				  "data/models/disb-digits.json, and a time scale with "
				  "--scale, such as 0.001");
	}
	return 0;
}

/* Which of the layout's partitions a task is in, and how many there are. */
static uint32_t part_of(const struct world *w, uint32_t task, enum layout layout,
			uint32_t *count)
{
	const struct load *l = w->setup->load;
	bool critical = false, effort = false;
	uint32_t before = 0, all = 0;

	for (uint32_t i = 0; i < l->count; i++) {
		if (!w->tenants[i].here)
			continue;
		critical |= l->tasks[i].critical;
		effort |= !l->tasks[i].critical;
		before += i < task;
		all++;
	}
	switch (layout) {
	case LAYOUT_HALVES:
	case LAYOUT_CLASSES:
		*count = critical && effort ? 2 : 1;
		return *count == 2 && !l->tasks[task].critical;
	case LAYOUT_SPLIT:
	case LAYOUT_TENANTS:
		*count = all;
		return before;
	default:
		*count = 1;
		return 0;
	}
}

/* The channels of partition i of count: a part of all, none left over. */
static uint64_t colors_of(const struct world *w, uint32_t i, uint32_t count)
{
	uint32_t colors = w->run->info.colors;
	uint32_t from = i * colors / count, to = (i + 1) * colors / count;

	return (to < 64 ? UINT64_C(1) << to : 0) - (UINT64_C(1) << from);
}

static uint32_t units_of(const struct world *w)
{
	return (uint32_t)w->run->info.unit_rows * w->run->info.unit_cols;
}

static uint32_t parts_in(const struct world *w, enum layout layout)
{
	uint32_t count = 1;

	for (uint32_t i = 0; i < w->setup->load->count; i++)
		if (w->tenants[i].here)
			(void)part_of(w, i, layout, &count);
	return count;
}

static bool has_room(const struct world *w, enum layout layout)
{
	uint32_t count = parts_in(w, layout);

	return count <= units_of(w) && count <= w->run->info.partitions_max;
}

__attribute__((format(printf, 2, 3))) static void note(struct world *w, const char *fmt,
						       ...)
{
	char *at = w->run->note + strlen(w->run->note);
	size_t room = sizeof(w->run->note) - strlen(w->run->note);
	va_list ap;

	if (at != w->run->note) {
		snprintf(at, room, "; ");
		at += strlen(at);
		room = sizeof(w->run->note) - strlen(w->run->note);
	}
	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it has been started */
	vsnprintf(at, room, fmt, ap);
	va_end(ap);
}

/* One of fewer partitions, where the policy's own has more than the device. */
static void fit_layout(struct world *w)
{
	static const enum layout fewer[LAYOUTS] = {
		[LAYOUT_TENANTS] = LAYOUT_CLASSES,
		[LAYOUT_CLASSES] = LAYOUT_SHARED,
		[LAYOUT_HALVES] = LAYOUT_SHARED,
	};
	enum layout own = w->run->layout, layout = own;

	while (fewer[layout] != LAYOUT_DEFAULT && !has_room(w, layout))
		layout = fewer[layout];
	if (layout == own)
		return;
	w->run->layout = layout;
	note(w,
	     "layout=%s: %s would need %u partitions, but the device has %u and %u units",
	     layout_name(layout), layout_name(own), parts_in(w, own),
	     w->run->info.partitions_max, units_of(w));
}

static bool says(const char *const *options, uint32_t count, const char *option)
{
	for (uint32_t i = 0; i < count && options[i] != NULL; i++)
		if (strcmp(options[i], option) == 0)
			return true;
	return false;
}

/* fgpu refuses partitions that share channels, unless it is told not to. */
static bool needs_colors(const struct world *w, const struct policy_spec *p)
{
	static const char any[] = "policy.fgpu_colors=any";

	return strcmp(p->name, "fgpu") == 0 &&
	       !says((const char *const *)p->options, p->option_count, any) &&
	       !says(w->setup->options, UINT32_MAX, any);
}

static void fit_colors(struct world *w, const struct policy_spec *p)
{
	uint32_t count = parts_in(w, w->run->layout);

	w->colors = p->colors == COLORS_OWN;
	if (p->colors != COLORS_DEFAULT || !needs_colors(w, p) || count < 2 ||
	    count > w->run->info.colors)
		return;
	w->colors = true;
	note(w, "colors=own: %s does not accept partitions that share memory channels",
	     p->name);
}

static int check_parts(const struct world *w, uint32_t count)
{
	const struct hal_device_info *info = &w->run->info;
	const char *layout = layout_name(w->run->layout), *target = w->setup->target;

	if (count > units_of(w))
		return tool_fail(
			"%s has %u units, too few for %u partitions (layout %s); "
			"layout=classes needs two partitions, layout=shared one",
			target, units_of(w), count, layout);
	if (count > info->partitions_max)
		return tool_fail("%s supports %u partitions, too few for %u (layout %s); "
				 "layout=classes needs two partitions, layout=shared one",
				 target, info->partitions_max, count, layout);
	if (w->colors && count > info->colors)
		return tool_fail("%s has %u memory channels, too few for %u partitions "
				 "(layout %s, colors=own); use colors=any to share them",
				 target, info->colors, count, layout);
	return 0;
}

static int open_parts(struct world *w)
{
	enum layout layout = w->run->layout;
	bool elastic = is_elastic(layout);
	uint32_t units = units_of(w), count = parts_in(w, layout);
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	if (check_parts(w, count) != 0)
		return TOOL_FAILED;
	d.units_floor = elastic && count > 1 ? 1 : units / count;
	d.units_ceiling = elastic && count > 1 ? units - (count - 1) : 0;
	for (; w->part_count < count; w->part_count++) {
		d.color_mask = w->colors ? colors_of(w, w->part_count, count) : 0;
		if (hal_partition_create(w->dev, &d, &w->parts[w->part_count]) != 0)
			return tool_fail("layout %s: %s", layout_name(layout),
					 hal_last_error());
	}
	return 0;
}

static int open_tenant(struct world *w, uint32_t i, const uint64_t *begin_ns,
		       const uint64_t *slo_ns)
{
	struct hal_queue_desc q = HAL_INIT(hal_queue_desc);
	struct tenant *t = &w->tenants[i];
	uint32_t count, part = part_of(w, i, w->run->layout, &count);
	char why[JSON_WHY];

	q.priority = t->task->critical ? 1 : 0;
	q.deadline_ns = slo_ns != NULL && t->task->critical ? slo_ns[i] : 0;
	if (w->classes)
		q.service_class =
			t->task->critical ? HAL_CLASS_LATENCY : HAL_CLASS_BEST_EFFORT;
	q.completions = w->ring;
	if (service_open(&t->service, w->dev, w->parts[part], &q,
			 models_find(w->setup->models, t->task->model)) != 0)
		return TOOL_FAILED;
	t->timeline = hal_queue_get_timeline(t->service.queue);
	w->run->parts[i] = part;
	if (load_arrivals(w->setup->load, i, &w->setup->clock,
			  begin_ns != NULL ? begin_ns[i] : 0, &t->arrivals,
			  &t->arrival_count, why) != 0)
		return tool_fail("%s", why);
	return t->loops ? arrive(t, 0) : 0;
}

static int open_tenants(struct world *w, const struct policy_spec *p, uint32_t only,
			const uint64_t *begin_ns, const uint64_t *slo_ns)
{
	const struct load *l = w->setup->load;

	for (uint32_t i = 0; i < l->count; i++) {
		struct tenant *t = &w->tenants[i];

		t->task = &l->tasks[i];
		t->here = only == RUN_ALL || only == i;
		t->most = only == i ? LOOPS_ALONE : UINT32_MAX;
		/* Alone there is nobody whose ends it could wait for. */
		t->loops = t->task->type == LOAD_CONTINUOUS ||
			   (t->task->type == LOAD_DEPENDENT && only == i);
		for (uint32_t k = 0; only == RUN_ALL && k < t->task->after_count; k++)
			w->tenants[t->task->after[k]].awaited = true;
	}
	if (p->layout == LAYOUT_DEFAULT)
		fit_layout(w);
	fit_colors(w, p);
	if (open_parts(w) != 0)
		return TOOL_FAILED;
	for (uint32_t i = 0; i < l->count; i++)
		if (w->tenants[i].here && open_tenant(w, i, begin_ns, slo_ns) != 0)
			return TOOL_FAILED;
	return 0;
}

static int take_results(struct world *w)
{
	struct run *r = w->run;

	for (uint32_t i = 0; i < w->setup->load->count; i++) {
		struct tenant *t = &w->tenants[i];

		r->tasks[i] = (struct task_run){t->requests, t->count, t->service.work};
		t->requests = NULL;
	}
	r->part_count = w->part_count;
	r->stats.size = sizeof(r->stats);
	r->policy.size = sizeof(r->policy);
	if (hal_device_get_stats(w->dev, &r->stats) != 0 ||
	    hal_device_get_policy(w->dev, &r->policy) != 0)
		return tool_fail_hal();
	return 0;
}

/* After an error queues may have work, and refuse; that error is the one to tell. */
static int close_device(struct world *w)
{
	int err = 0;

	for (uint32_t i = 0; i < w->setup->load->count; i++)
		err |= service_close(&w->tenants[i].service);
	for (uint32_t i = 0; i < w->part_count; i++)
		err |= hal_partition_destroy(w->parts[i]);
	err |= hal_completions_destroy(w->ring);
	if (w->dev != NULL)
		err |= hal_close(w->dev);
	return err;
}

static int close_world(struct world *w, int rc)
{
	if (w->tenants != NULL && close_device(w) != 0 && rc == 0)
		rc = tool_fail_hal();
	for (uint32_t i = 0; w->tenants != NULL && i < w->setup->load->count; i++) {
		free(w->tenants[i].arrivals);
		free(w->tenants[i].requests);
	}
	free(w->tenants);
	free(w->parts);
	free(w->units);
	free(w->points);
	return rc;
}

static int run_world(struct world *w, const char *trace)
{
	int rc;

	if (trace != NULL && hal_trace_start(w->dev, trace) != 0)
		return tool_fail("%s: %s", trace, hal_last_error());
	w->begin_ns = hal_device_get_time(w->dev);
	rc = run_requests(w);
	if (rc == 0 && trace != NULL && hal_trace_stop(w->dev) != 0)
		rc = tool_fail("%s: %s", trace, hal_last_error());
	return rc != 0 ? rc : take_results(w);
}

int run_load(const struct setup *s, const struct policy_spec *p, uint32_t only,
	     const uint64_t *begin_ns, const uint64_t *slo_ns, const char *trace,
	     struct run *run)
{
	struct world w = {
		.setup = s,
		.run = run,
		.classes = p->classes,
		.label = only != RUN_ALL ? s->load->tasks[only].id : p->text,
		.weight = run_weight(s, only),
	};
	int rc = TOOL_FAILED;

	memset(run, 0, sizeof(*run));
	run->window_ns = load_window_ns(&s->clock);
	run->layout = p->layout != LAYOUT_DEFAULT ? p->layout : layout_of(p->name);
	run->tasks = calloc(s->load->count, sizeof(*run->tasks));
	run->parts = calloc(s->load->count, sizeof(*run->parts));
	w.units = calloc(s->load->count, sizeof(*w.units));
	w.tenants = calloc(s->load->count, sizeof(*w.tenants));
	w.parts = calloc(s->load->count, sizeof(struct hal_partition *));
	w.points = calloc(s->load->count, sizeof(*w.points));
	if (run->tasks == NULL || run->parts == NULL || w.tenants == NULL ||
	    w.parts == NULL || w.units == NULL || w.points == NULL)
		(void)tool_fail("out of memory");
	else
		rc = open_device(&w, p);
	if (rc == 0)
		rc = check_networks(&w);
	if (rc == 0)
		rc = open_tenants(&w, p, only, begin_ns, slo_ns);
	if (rc == 0)
		rc = run_world(&w, trace);
	if (s->progress != NULL) {
		s->progress->done += w.weight;
		fprintf(stderr, "\r\033[K");
	}
	return close_world(&w, rc);
}

void run_free(const struct setup *s, struct run *run)
{
	for (uint32_t i = 0; run->tasks != NULL && i < s->load->count; i++)
		free(run->tasks[i].requests);
	free(run->tasks);
	free(run->parts);
	free(run->borders);
	run->tasks = NULL;
	run->parts = NULL;
	run->borders = NULL;
}
