/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - load files: the JSON of DISB, and two kinds of load of our own; see load.h. */
#include "load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_MAX   1e6
#define FREQUENCY_MAX 1e6

static const char *const type_names[] = {
	[LOAD_CONTINUOUS] = "continuous", [LOAD_PERIODIC] = "periodic",
	[LOAD_POISSON] = "poisson",       [LOAD_TRACE] = "trace",
	[LOAD_DEPENDENT] = "dependent",   [LOAD_BURSTS] = "bursts",
	[LOAD_DIURNAL] = "diurnal",
};
#define TYPES ((uint32_t)(sizeof(type_names) / sizeof(type_names[0])))

/* What each may have beside type and priority. */
static const char *const fields[][6] = {
	[LOAD_CONTINUOUS] = {"type", "priority"},
	[LOAD_PERIODIC] = {"type", "priority", "frequency"},
	[LOAD_POISSON] = {"type", "priority", "frequency"},
	[LOAD_TRACE] = {"type", "priority", "trace"},
	[LOAD_DEPENDENT] = {"type", "priority", "prev_task_ids"},
	[LOAD_BURSTS] = {"type", "priority", "frequency", "on_ms", "off_ms"},
	[LOAD_DIURNAL] = {"type", "priority", "frequency", "period_s", "swing"},
};

struct context {
	const char *file;
	char *why;
	struct load *load;
};

const char *load_type_name(enum load_type type)
{
	return type_names[type];
}

void load_free(struct load *l)
{
	for (uint32_t i = 0; l->tasks != NULL && i < l->count; i++) {
		free(l->tasks[i].id);
		free(l->tasks[i].model);
		free(l->tasks[i].trace_s);
		free(l->tasks[i].after);
	}
	free(l->tasks);
	memset(l, 0, sizeof(*l));
}

/* ---- one task ----------------------------------------------------------------------- */

static int no_memory(const struct context *c)
{
	snprintf(c->why, JSON_WHY, "%s: out of memory", c->file);
	return -1;
}

static bool is_called(const struct load_task *t, const char *id)
{
	return t->id != NULL && strcmp(t->id, id) == 0;
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int read_trace(const struct context *c, const struct json *in, struct load_task *t)
{
	const struct json *list;

	if (json_list(in, "trace", c->file, &list, c->why) != 0)
		return -1;
	if (list->count > LOAD_ARRIVALS_MAX)
		return json_wrong(list, c->file, c->why, "has more than %u times",
				  LOAD_ARRIVALS_MAX);
	t->trace_s = calloc((size_t)list->count + 1, sizeof(*t->trace_s));
	if (t->trace_s == NULL)
		return no_memory(c);
	for (const struct json *v = list->first; v != NULL; v = v->next) {
		if (json_is_number(v, 0, SECONDS_MAX * 1000, c->file, c->why) != 0)
			return -1;
		t->trace_s[t->trace_count++] = v->number / 1000;
	}
	qsort(t->trace_s, t->trace_count, sizeof(*t->trace_s), by_time);
	return 0;
}

/* By names of tasks that stand before it: so there is no circle. */
static int read_after(const struct context *c, const struct json *in, uint32_t index,
		      struct load_task *t)
{
	const struct json *list;

	if (json_list(in, "prev_task_ids", c->file, &list, c->why) != 0)
		return -1;
	if (list->count == 0)
		return json_wrong(list, c->file, c->why, "names no task");
	t->after = calloc(list->count, sizeof(*t->after));
	if (t->after == NULL)
		return no_memory(c);
	for (const struct json *v = list->first; v != NULL; v = v->next) {
		uint32_t i = 0;

		if (v->type != JSON_TEXT)
			return json_wrong(v, c->file, c->why, "is not a string");
		while (i < index && !is_called(&c->load->tasks[i], v->text))
			i++;
		if (i == index)
			return json_wrong(
				v, c->file, c->why,
				"names \"%s\", which is not a task before this one",
				v->text);
		for (uint32_t k = 0; k < t->after_count; k++)
			if (t->after[k] == i)
				return json_wrong(v, c->file, c->why,
						  "names \"%s\" twice", v->text);
		t->after[t->after_count++] = i;
	}
	return 0;
}

static int read_type(const struct context *c, const struct json *in, enum load_type *type)
{
	const char *name;

	if (json_text(in, "type", c->file, &name, c->why) != 0)
		return -1;
	for (uint32_t i = 0; i < TYPES; i++)
		if (strcmp(type_names[i], name) == 0) {
			*type = (enum load_type)i;
			return json_only(in, fields[i], c->file, c->why);
		}
	return json_wrong(json_member(in, "type"), c->file, c->why,
			  "is \"%s\"; it must be continuous, periodic, poisson, trace, "
			  "dependent, bursts or diurnal",
			  name);
}

static int read_frequency(const struct context *c, const struct json *in,
			  struct load_task *t)
{
	return json_number(in, "frequency", 1e-6, FREQUENCY_MAX, c->file, &t->frequency,
			   c->why);
}

static int read_milliseconds(const struct context *c, const struct json *in,
			     const char *key, double *out)
{
	if (json_number(in, key, 1e-3, SECONDS_MAX * 1000, c->file, out, c->why) != 0)
		return -1;
	*out /= 1000;
	return 0;
}

static int read_load(const struct context *c, const struct json *in, uint32_t index,
		     struct load_task *t)
{
	double priority = 0;

	if (read_type(c, in, &t->type) != 0)
		return -1;
	if (json_member(in, "priority") != NULL &&
	    json_number(in, "priority", -1e9, 1e9, c->file, &priority, c->why) != 0)
		return -1;
	switch (t->type) {
	case LOAD_PERIODIC:
		t->staggered = priority <= 0;
		return read_frequency(c, in, t);
	case LOAD_POISSON:
		return read_frequency(c, in, t);
	case LOAD_TRACE:
		return read_trace(c, in, t);
	case LOAD_DEPENDENT:
		return read_after(c, in, index, t);
	case LOAD_BURSTS:
		if (read_milliseconds(c, in, "on_ms", &t->on_s) != 0 ||
		    read_milliseconds(c, in, "off_ms", &t->off_s) != 0)
			return -1;
		return read_frequency(c, in, t);
	case LOAD_DIURNAL:
		if (json_number(in, "period_s", 1e-3, SECONDS_MAX, c->file, &t->period_s,
				c->why) != 0 ||
		    json_number(in, "swing", 0, 1, c->file, &t->swing, c->why) != 0)
			return -1;
		return read_frequency(c, in, t);
	case LOAD_CONTINUOUS:
	default:
		return 0;
	}
}

static bool ends_in(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* As it says itself; else by its name; else closed loops are best effort. */
static int read_class(const struct context *c, const struct json *in, struct load_task *t)
{
	const char *word;

	if (json_member(in, "class") == NULL) {
		t->critical = ends_in(t->id, "_rt") ||
			      (!ends_in(t->id, "_be") && t->type != LOAD_CONTINUOUS);
		return 0;
	}
	if (json_text(in, "class", c->file, &word, c->why) != 0)
		return -1;
	t->critical = strcmp(word, "latency") == 0;
	if (!t->critical && strcmp(word, "best-effort") != 0)
		return json_wrong(json_member(in, "class"), c->file, c->why,
				  "is \"%s\"; it must be latency or best-effort", word);
	return 0;
}

static int read_task(const struct context *c, const struct json *in, uint32_t index)
{
	static const char *const known[] = {"id", "load", "client", "class", NULL};
	struct load_task *t = &c->load->tasks[index];
	const struct json *client, *load;
	const char *id, *model;

	if (in->type != JSON_OBJECT)
		return json_wrong(in, c->file, c->why, "is not an object");
	if (json_only(in, known, c->file, c->why) != 0 ||
	    json_text(in, "id", c->file, &id, c->why) != 0)
		return -1;
	for (uint32_t i = 0; i < index; i++)
		if (is_called(&c->load->tasks[i], id))
			return json_wrong(json_member(in, "id"), c->file, c->why,
					  "is already the id of tasks[%u], \"%s\"", i,
					  id);
	/* Of the client, the network's name; the rest is how to reach a server. */
	if (json_object(in, "client", c->file, &client, c->why) != 0 ||
	    json_text(client, "model_name", c->file, &model, c->why) != 0 ||
	    json_object(in, "load", c->file, &load, c->why) != 0)
		return -1;
	t->id = strdup(id);
	t->model = strdup(model);
	t->model_line = json_member(client, "model_name")->line;
	if (t->id == NULL || t->model == NULL)
		return no_memory(c);
	return read_load(c, load, index, t) != 0 ? -1 : read_class(c, in, t);
}

/* ---- a file ------------------------------------------------------------------------- */

static int read_tasks(struct context *c, const struct json *root)
{
	static const char *const known[] = {"time", "tasks", NULL};
	const struct json *list;

	if (root->type != JSON_OBJECT)
		return json_wrong(root, c->file, c->why, "is not an object");
	if (json_member(root, "models") != NULL)
		return json_wrong(json_member(root, "models"), c->file, c->why,
				  "this is a table of networks, which --models takes; a "
				  "load is {\"time\": ..., \"tasks\": ...}");
	if (json_only(root, known, c->file, c->why) != 0 ||
	    json_number(root, "time", 1e-6, SECONDS_MAX, c->file, &c->load->seconds,
			c->why) != 0 ||
	    json_list(root, "tasks", c->file, &list, c->why) != 0)
		return -1;
	if (list->count == 0 || list->count > LOAD_TASKS_MAX)
		return json_wrong(list, c->file, c->why,
				  "has %u tasks; it must have 1 to %u", list->count,
				  LOAD_TASKS_MAX);
	c->load->tasks = calloc(list->count, sizeof(*c->load->tasks));
	if (c->load->tasks == NULL)
		return no_memory(c);
	for (const struct json *v = list->first; v != NULL; v = v->next) {
		c->load->count++;
		if (read_task(c, v, v->index) != 0)
			return -1;
	}
	return 0;
}

static int take(struct context *c, struct json *root)
{
	const char *base = strrchr(c->file, '/');
	int rc;

	memset(c->load, 0, sizeof(*c->load));
	if (root == NULL)
		return -1;
	base = base != NULL ? base + 1 : c->file;
	snprintf(c->load->name, sizeof(c->load->name), "%.*s",
		 ends_in(base, ".json") ? (int)strlen(base) - 5 : (int)strlen(base),
		 base);
	rc = read_tasks(c, root);
	json_free(root);
	if (rc != 0)
		load_free(c->load);
	return rc;
}

int load_parse(const char *bytes, size_t size, const char *name, struct load *l,
	       char why[JSON_WHY])
{
	struct context c = {.file = name, .why = why, .load = l};

	return take(&c, json_parse(bytes, size, name, why));
}

int load_read(const char *path, struct load *l, char why[JSON_WHY])
{
	struct context c = {.file = path, .why = why, .load = l};
	int err = take(&c, json_read(path, why));

	l->file = path;
	return err;
}

/* ---- arrivals ----------------------------------------------------------------------- */

struct times {
	uint64_t *ns;
	uint32_t count, room;
	uint64_t end_ns;
	double factor; /* device ns of a second of the load */
};

/* False: it comes too late, so that all that follow do; or .room says what is wrong. */
static bool add(struct times *t, uint64_t ns)
{
	uint64_t *more;

	if (ns >= t->end_ns)
		return false;
	if (t->count == t->room) {
		t->room = t->room != 0 ? 2 * t->room : 1024;
		more = t->room <= 2 * LOAD_ARRIVALS_MAX
			       ? realloc(t->ns, t->room * sizeof(*t->ns))
			       : NULL;
		if (more == NULL) {
			t->room = UINT32_MAX;
			return false;
		}
		t->ns = more;
	}
	t->ns[t->count++] = ns;
	return true;
}

static bool add_s(struct times *t, double seconds)
{
	return add(t, (uint64_t)llround(seconds * t->factor));
}

/* splitmix64 */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Above 0, up to 1. */
static double uniform(uint64_t *state)
{
	return (double)((next(state) >> 11) + 1) * 0x1p-53;
}

static double exponential(uint64_t *state, double mean)
{
	return -log(uniform(state)) * mean;
}

static void add_poisson(struct times *t, const struct load_task *task, uint64_t *state)
{
	double s = exponential(state, 1 / task->frequency);

	while (add_s(t, s))
		s += exponential(state, 1 / task->frequency);
}

static void add_bursts(struct times *t, const struct load_task *task, uint64_t *state)
{
	double on = 0;

	for (;;) {
		double off = on + exponential(state, task->on_s);
		double s = on + exponential(state, 1 / task->frequency);

		while (s < off) {
			if (!add_s(t, s))
				return;
			s += exponential(state, 1 / task->frequency);
		}
		on = off + exponential(state, task->off_s);
		if (on * t->factor >= (double)t->end_ns)
			return;
	}
}

/* Thinning: those of the highest rate, each kept as often as the rate is then. */
static void add_diurnal(struct times *t, const struct load_task *task, uint64_t *state)
{
	const double pi = 3.14159265358979323846;
	double most = task->frequency * (1 + task->swing), s = 0;

	for (;;) {
		double rate;

		s += exponential(state, 1 / most);
		if (s * t->factor >= (double)t->end_ns)
			return;
		rate = task->frequency *
		       (1 + task->swing * sin(2 * pi * s / task->period_s));
		if (uniform(state) * most <= rate && !add_s(t, s))
			return;
	}
}

uint64_t load_window_ns(const struct load_clock *c)
{
	return (uint64_t)llround(c->window_s * 1e9 * c->scale / c->rate);
}

int load_arrivals(const struct load *l, uint32_t task, const struct load_clock *c,
		  uint64_t begin_ns, uint64_t **out, uint32_t *count, char why[JSON_WHY])
{
	const struct load_task *k = &l->tasks[task];
	uint64_t state = c->seed * UINT64_C(0x2545f4914f6cdd1d) + task;
	struct times t = {.end_ns = load_window_ns(c),
			  .factor = 1e9 * c->scale / c->rate};

	switch (k->type) {
	case LOAD_PERIODIC:
		for (uint64_t i = 0;; i++)
			if (!add(&t, begin_ns + (uint64_t)llround((double)i * t.factor /
								  k->frequency)))
				break;
		break;
	case LOAD_POISSON:
		add_poisson(&t, k, &state);
		break;
	case LOAD_TRACE:
		for (uint32_t i = 0; i < k->trace_count; i++)
			if (!add_s(&t, k->trace_s[i]))
				break;
		break;
	case LOAD_BURSTS:
		add_bursts(&t, k, &state);
		break;
	case LOAD_DIURNAL:
		add_diurnal(&t, k, &state);
		break;
	case LOAD_CONTINUOUS:
	case LOAD_DEPENDENT:
	default:
		break;
	}
	if (t.room == UINT32_MAX) {
		free(t.ns);
		snprintf(why, JSON_WHY, "%s: too many requests, or no memory for them",
			 k->id);
		return -1;
	}
	*out = t.ns;
	*count = t.count;
	return 0;
}
