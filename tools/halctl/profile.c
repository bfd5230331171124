/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - halctl profile: what programs' kernels run on a device.
 *
 * The device is opened once.  Programs are loaded anew on each rectangle, and each kernel
 * runs there by itself; so what one leaves behind in caches and tables changes nothing
 * for the next but in the run that does not count.
 */
#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "halctl.h"

#define OPTIONS_MAX  40u
#define PROGRAMS_MAX 64u /* named */

/* ---- on which rectangles ------------------------------------------------------------ */

/* 1, 2, 4 ... and n itself. */
static uint32_t next_size(uint32_t size, uint32_t n)
{
	return size < n && 2 * size > n ? n : 2 * size;
}

static int shape_add(struct profile *p, uint32_t rows, uint32_t cols, uint32_t *index)
{
	struct shape *more;

	for (*index = 0; *index < p->shape_count; ++*index)
		if (p->shapes[*index].rows == rows && p->shapes[*index].cols == cols)
			return 0;
	more = realloc(p->shapes, (p->shape_count + 1) * sizeof(*more));
	if (more == NULL)
		return tool_fail("out of memory");
	p->shapes = more;
	more[p->shape_count++] = (struct shape){.rows = rows, .cols = cols};
	return 0;
}

/* What the engine makes of so many units. */
static int shape_of(struct profile *p, uint32_t units)
{
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	bool grid = (p->bench.info.caps & HAL_CAP_GRID) != 0;
	struct hal_partition *part;
	uint32_t index;

	d.units_floor = units;
	if (hal_partition_create(p->bench.dev, &d, &part) != 0)
		return tool_fail_hal();
	if (hal_partition_get_info(part, &info) != 0 || hal_partition_destroy(part) != 0)
		return tool_fail_hal();
	if (shape_add(p, grid ? info.rows : 1, grid ? info.cols : units, &index) != 0)
		return TOOL_FAILED;
	p->shapes[index].counted = true;
	return 0;
}

static int by_units(const void *a, const void *b)
{
	const struct shape *x = a, *y = b;
	uint32_t m = x->rows * x->cols, n = y->rows * y->cols;

	return m != n ? (m > n) - (m < n) : (x->rows > y->rows) - (x->rows < y->rows);
}

static int choose_shapes(struct profile *p)
{
	uint32_t rows = p->bench.info.unit_rows, cols = p->bench.info.unit_cols, index;
	uint32_t first;

	for (uint32_t r = 1; r <= rows; r = next_size(r, rows))
		for (uint32_t c = 1; c <= cols; c = next_size(c, cols))
			if (shape_add(p, r, c, &index) != 0)
				return TOOL_FAILED;
	first = p->shape_count;
	for (uint32_t i = 0; i < first; i++)
		if (shape_of(p, p->shapes[i].rows * p->shapes[i].cols) != 0)
			return TOOL_FAILED;
	qsort(p->shapes, p->shape_count, sizeof(*p->shapes), by_units);
	p->full = p->shape_count - 1;
	return 0;
}

/* The first half of the device, or the other. */
static struct place half(const struct profile *p, bool other)
{
	const struct hal_device_info *i = &p->bench.info;
	uint32_t cols = i->unit_cols / 2;

	return (struct place){i->unit_rows, cols, other ? cols : 0};
}

/* ---- one program -------------------------------------------------------------------- */

/* All that the image has, or it is not known again.  Launches of one kernel follow each
 * other: they are a step's, or a layer's. */
static int list_kernels(struct program *g, const struct service *s)
{
	const struct hal_kernel *last = NULL;
	uint32_t count = s->cmd_count + s->more;

	g->kernels = calloc(count, sizeof(*g->kernels));
	if (g->kernels == NULL)
		return tool_fail("out of memory");
	for (uint32_t i = 0; i < count; i++) {
		struct kernel *k = &g->kernels[g->count];

		if (s->cmds[i].launch.kernel == last)
			continue;
		last = s->cmds[i].launch.kernel;
		k->info.size = (uint32_t)sizeof(k->info);
		if (hal_kernel_get_info(last, &k->info) != 0)
			return tool_fail_hal();
		k->at = i;
		g->count++;
	}
	return 0;
}

static int alloc_times(const struct profile *p, struct program *g)
{
	for (uint32_t k = 0; k < g->count; k++) {
		g->kernels[k].times = calloc(p->shape_count, sizeof(struct timing));
		if (g->kernels[k].times == NULL)
			return tool_fail("out of memory");
	}
	return 0;
}

/* All its kernels on one rectangle; on all of the device, also what stopping takes. */
static int on_shape(const struct profile *p, struct program *g, uint32_t shape)
{
	const struct place place = {p->shapes[shape].rows, p->shapes[shape].cols, 0};
	struct seat seat;
	int rc = seat_open(&seat, &p->bench, g->model, &place);

	if (rc == 0 && g->kernels == NULL) {
		g->layers = seat.service.more != 0;
		rc = list_kernels(g, &seat.service);
		if (rc == 0)
			rc = alloc_times(p, g);
	}
	for (uint32_t i = 0; rc == 0 && i < g->count; i++) {
		struct kernel *k = &g->kernels[i];
		const struct hal_cmd *cmd = &seat.service.cmds[k->at];

		rc = measure(&p->bench, &seat, cmd, 1, NULL, &k->times[shape]);
		for (uint32_t m = 0; rc == 0 && shape == p->full && m < STOP_MODES; m++)
			rc = measure_stop(&p->bench, &seat, cmd, m, k->times[shape].ns,
					  &k->stops[m]);
	}
	return seat_close(&seat) != 0 ? TOOL_FAILED : rc;
}

static int beside_copies(const struct profile *p, struct program *g)
{
	const struct place here = half(p, false), there = half(p, true);
	struct company copies = {.last = {NULL, 0}};
	struct seat seat = {.part = NULL};
	struct timing t = {0, 0, 0};
	int rc = seat_open(&seat, &p->bench, g->model, &here);

	for (uint32_t i = 0; rc == 0 && i < g->count; i++) {
		rc = measure(&p->bench, &seat, &seat.service.cmds[g->kernels[i].at], 1,
			     NULL, &t);
		g->kernels[i].half_ns = t.ns;
	}
	if (rc == 0)
		rc = company_open(&copies, &p->bench, NULL, &there);
	for (uint32_t i = 0; rc == 0 && i < g->count; i++) {
		rc = measure(&p->bench, &seat, &seat.service.cmds[g->kernels[i].at], 1,
			     &copies, &t);
		g->kernels[i].beside_ns = t.ns;
	}
	if (company_close(&copies) != 0 || seat_close(&seat) != 0)
		rc = TOOL_FAILED;
	return rc;
}

static uint64_t and_permille(uint64_t ns, uint32_t permille)
{
	return ns + ns * permille / 1000;
}

/* The fewest units that give the best time, and by what it is bound. */
static void judge(const struct profile *p, struct kernel *k)
{
	uint64_t best = UINT64_MAX, enough;

	for (uint32_t s = 0; s < p->shape_count; s++)
		if (k->times[s].ns < best)
			best = k->times[s].ns;
	enough = and_permille(best, p->tolerance);
	for (k->least = 0; k->times[k->least].ns > enough;)
		k->least++;
	/* Of as many units, the best. */
	for (uint32_t s = k->least; s < p->shape_count; s++)
		if (p->shapes[s].rows * p->shapes[s].cols ==
			    p->shapes[k->least].rows * p->shapes[k->least].cols &&
		    k->times[s].ns < k->times[k->least].ns)
			k->least = s;
	if (k->beside_ns > and_permille(k->half_ns, MEMORY_PERMILLE))
		k->class = "memory";
	else
		k->class = k->least > 0 ? "array" : "vector";
}

static int profile_program(const struct profile *p, struct program *g)
{
	int rc = 0;

	for (uint32_t s = 0; rc == 0 && s < p->shape_count; s++)
		rc = on_shape(p, g, s);
	if (rc == 0 && p->halves)
		rc = beside_copies(p, g);
	for (uint32_t i = 0; rc == 0 && i < g->count; i++)
		judge(p, &g->kernels[i]);
	return rc;
}

/* ---- two programs ------------------------------------------------------------------- */

static int pair(const struct profile *p, const struct program *a, const struct program *b,
		uint64_t *permille)
{
	const struct place here = half(p, false), there = half(p, true);
	struct timing alone = {0, 0, 0}, beside = {0, 0, 0};
	struct company company = {.last = {NULL, 0}};
	struct seat seat = {.part = NULL};
	int rc = seat_open(&seat, &p->bench, a->model, &here);

	if (rc == 0)
		rc = measure(&p->bench, &seat, seat.service.cmds, seat.service.cmd_count,
			     NULL, &alone);
	if (rc == 0)
		rc = company_open(&company, &p->bench, b->model, &there);
	if (rc == 0)
		rc = measure(&p->bench, &seat, seat.service.cmds, seat.service.cmd_count,
			     &company, &beside);
	if (company_close(&company) != 0 || seat_close(&seat) != 0)
		rc = TOOL_FAILED;
	*permille = beside.ns > alone.ns && alone.ns != 0
			    ? (beside.ns - alone.ns) * 1000 / alone.ns
			    : 0;
	return rc;
}

static int profile_pairs(struct profile *p)
{
	int rc = 0;

	p->beside = calloc((size_t)p->count * p->count, sizeof(*p->beside));
	if (p->beside == NULL)
		return tool_fail("out of memory");
	for (uint32_t i = 0; rc == 0 && i < p->count * p->count; i++) {
		uint32_t a = p->programs[i / p->count].pairs_of;
		uint32_t b = p->programs[i % p->count].pairs_of;
		uint32_t of = a * p->count + b;

		if (of != i)
			p->beside[i] = p->beside[of]; /* before it */
		else
			rc = pair(p, &p->programs[a], &p->programs[b], &p->beside[i]);
	}
	return rc;
}

/* ---- which programs ----------------------------------------------------------------- */

static int program_add(struct profile *p, const struct model *model)
{
	struct program *more;

	more = realloc(p->programs, (p->count + 1) * sizeof(*more));
	if (more == NULL)
		return tool_fail("out of memory");
	p->programs = more;
	memset(&more[p->count], 0, sizeof(*more));
	more[p->count].model = model;
	more[p->count].pairs_of = p->count;
	p->count++;
	return 0;
}

/* The i-th, which has a kernel a layer, as it is compiled usually, too: those are
 * different images, whose kernels have different arguments. */
static int program_add_whole(struct profile *p, uint32_t i)
{
	struct model *whole = malloc(sizeof(*whole));

	if (whole == NULL)
		return tool_fail("out of memory");
	*whole = *p->programs[i].model;
	whole->whole = true;
	if (program_add(p, whole) != 0) {
		free(whole);
		return TOOL_FAILED;
	}
	p->programs[p->count - 1].own = whole;
	p->programs[p->count - 1].pairs_of = i;
	return 0;
}

static int unknown_program(const char *name, const struct models *own)
{
	char known[512] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < own->count && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, " %s",
					 own->list[i].name);
	return tool_fail("%s: there is no such network or file; networks are%s", name,
			 known);
}

/* A name is one of the table, which halbench has, too; else it is a file's. */
static int read_program(const char *name, struct models *m, const struct models *own)
{
	const struct model *known = models_find(own, name);
	const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
	struct model *more;
	char why[JSON_WHY];

	if (dot != NULL && strcmp(dot, ".json") == 0)
		return models_read(name, m, why) != 0 ? tool_fail("%s", why) : 0;
	if (known == NULL && access(name, F_OK) != 0)
		return unknown_program(name, own);
	more = realloc(m->list, (m->count + 1) * sizeof(*more));
	if (more == NULL)
		return tool_fail("out of memory");
	m->list = more;
	more += m->count++;
	memset(more, 0, sizeof(*more));
	more->name = strdup(slash != NULL ? slash + 1 : name);
	if (known != NULL) {
		more->step_count = known->step_count;
		more->steps = malloc(known->step_count * sizeof(*more->steps));
		if (more->steps != NULL)
			memcpy(more->steps, known->steps,
			       known->step_count * sizeof(*more->steps));
	} else {
		more->network = strdup(name);
	}
	if (more->name == NULL || (more->steps == NULL && more->network == NULL))
		return tool_fail("out of memory");
	return 0;
}

static int read_programs(char *const *names, struct models *m)
{
	struct models own;
	char why[JSON_WHY];
	int rc = 0;

	if (models_own(&own, why) != 0)
		return tool_fail("%s", why);
	for (; rc == 0 && *names != NULL; names++)
		rc = read_program(*names, m, &own);
	models_free(&own);
	return rc;
}

/* ---- all of it ---------------------------------------------------------------------- */

static int open_bench(struct profile *p, const struct halctl *ctl)
{
	const char *options[OPTIONS_MAX];
	uint32_t n = 0;

	while (ctl->options[n] != NULL && n < OPTIONS_MAX - 3) {
		options[n] = ctl->options[n];
		n++;
	}
	/* What is measured is the device, not what somebody has measured before. */
	options[n++] = "policy.name=fifo";
	options[n++] = "hal.profile=";
	options[n] = NULL;
	if (hal_open(p->target, options, &p->bench.dev) != 0)
		return tool_fail_hal();
	p->bench.info.size = (uint32_t)sizeof(p->bench.info);
	if (hal_device_get_info(p->bench.dev, &p->bench.info) != 0)
		return tool_fail_hal();
	p->halves = p->bench.info.unit_cols > 1 && p->bench.info.partitions_max > 1;
	return 0;
}

static void profile_free(struct profile *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		for (uint32_t k = 0; k < p->programs[i].count; k++)
			free(p->programs[i].kernels[k].times);
		free(p->programs[i].kernels);
		free(p->programs[i].own);
	}
	free(p->programs);
	free(p->shapes);
	free(p->beside);
}

int halctl_profile(const struct halctl *ctl)
{
	struct profile p = {.target = ctl->target,
			    .tolerance = ctl->tolerance,
			    .bench = {.runs = ctl->runs}};
	struct models models = {NULL, 0};
	int rc = read_programs(ctl->words + 1, &models);

	if (rc == 0 && models.count == 0)
		rc = tool_fail("%s: the file contains no network", ctl->words[1]);
	if (rc == 0 && models.count > PROGRAMS_MAX)
		rc = tool_fail("more than %u programs: %s", PROGRAMS_MAX,
			       models.list[PROGRAMS_MAX].name);
	if (rc == 0)
		rc = open_bench(&p, ctl);
	for (uint32_t i = 0; rc == 0 && i < models.count; i++)
		rc = program_add(&p, &models.list[i]);
	if (rc == 0)
		rc = choose_shapes(&p);
	for (uint32_t i = 0; rc == 0 && i < p.count; i++) {
		rc = profile_program(&p, &p.programs[i]);
		if (rc == 0 && p.programs[i].layers)
			rc = program_add_whole(&p, i);
	}
	if (rc == 0 && p.halves && p.count > 0)
		rc = profile_pairs(&p);
	if (rc == 0)
		rc = profile_print(&p);
	if (p.bench.dev != NULL && hal_close(p.bench.dev) != 0 && rc == 0)
		rc = tool_fail_hal();
	profile_free(&p);
	models_free(&models);
	return rc;
}
