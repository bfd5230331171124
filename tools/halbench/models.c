/* SPDX-License-Identifier: Apache-2.0 */
/* models.c - tables of networks; see models.h. */
#include "models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT_US_MAX 1e9
#define UNITS_MAX   65536

/* Made up: as many launches as the network has layers, work in the ratio of the
 * multiply-accumulates, and fewer units for networks of small layers.  On 32 units VGG-19
 * runs 6.5 ms alone. */
static const char own[] =
	"{\"models\": {"
	"\"vgg19-imagenet\": {\"steps\": [[16, 9000, 32], [3, 5300, 8]]},"
	"\"resnet152-imagenet\": {\"steps\": [[155, 600, 16]]},"
	"\"resnet50-imagenet\": {\"steps\": [[53, 600, 16]]},"
	"\"densenet201-imagenet\": {\"steps\": [[200, 160, 8]]},"
	"\"inceptionv3-imagenet\": {\"steps\": [[94, 480, 16]]},"
	"\"mobilenetv1-imagenet\": {\"steps\": [[28, 120, 8]]},"
	"\"distilbert\": {\"steps\": [[42, 1000, 24]]}"
	"}}";

struct context {
	const char *file;
	char *why;
};

static void model_free(struct model *m)
{
	free(m->name);
	free(m->steps);
	free(m->network);
}

void models_free(struct models *m)
{
	for (uint32_t i = 0; i < m->count; i++)
		model_free(&m->list[i]);
	free(m->list);
	memset(m, 0, sizeof(*m));
}

const struct model *models_find(const struct models *m, const char *name)
{
	for (uint32_t i = m->count; i-- > 0;)
		if (strcmp(m->list[i].name, name) == 0)
			return &m->list[i];
	return NULL;
}

static int no_memory(const struct context *c)
{
	snprintf(c->why, JSON_WHY, "%s: out of memory", c->file);
	return -1;
}

static bool is_whole(double x)
{
	return x == (double)(uint64_t)x;
}

/* [launches, unit_us, units] */
static int read_step(const struct context *c, const struct json *in,
		     struct model_step *step)
{
	static const double most[] = {MODEL_LAUNCHES_MAX, UNIT_US_MAX, UNITS_MAX};
	static const double least[] = {1, 1e-3, 1};
	double v[3] = {0, 0, 0};
	uint32_t i = 0;

	if (in->type != JSON_LIST || in->count != 3)
		return json_wrong(in, c->file, c->why,
				  "is not [LAUNCHES, UNIT_US, UNITS]");
	for (const struct json *n = in->first; n != NULL && i < 3; n = n->next, i++) {
		if (json_is_number(n, least[i], most[i], c->file, c->why) != 0)
			return -1;
		if (i != 1 && !is_whole(n->number))
			return json_wrong(n, c->file, c->why, "is not a whole number");
		v[i] = n->number;
	}
	*step = (struct model_step){
		.launches = (uint32_t)v[0], .unit_us = v[1], .units = (uint32_t)v[2]};
	return 0;
}

static int read_steps(const struct context *c, const struct json *in, struct model *m)
{
	const struct json *list;
	uint32_t launches = 0;

	if (json_list(in, "steps", c->file, &list, c->why) != 0)
		return -1;
	if (list->count == 0 || list->count > MODEL_STEPS_MAX)
		return json_wrong(list, c->file, c->why,
				  "has %u steps; it must have 1 to %u", list->count,
				  MODEL_STEPS_MAX);
	m->steps = calloc(list->count, sizeof(*m->steps));
	if (m->steps == NULL)
		return no_memory(c);
	for (const struct json *v = list->first; v != NULL; v = v->next) {
		if (read_step(c, v, &m->steps[m->step_count]) != 0)
			return -1;
		launches += m->steps[m->step_count++].launches;
	}
	if (launches > MODEL_LAUNCHES_MAX)
		return json_wrong(list, c->file, c->why,
				  "has %u launches; at most %u are supported", launches,
				  MODEL_LAUNCHES_MAX);
	return 0;
}

/* Files are named as seen from the table's folder. */
static int read_network(const struct context *c, const struct json *in, struct model *m)
{
	const char *name, *slash = strrchr(c->file, '/');
	size_t folder = slash != NULL ? (size_t)(slash + 1 - c->file) : 0;

	if (json_text(in, "network", c->file, &name, c->why) != 0)
		return -1;
	if (name[0] == '/')
		folder = 0;
	m->network = malloc(folder + strlen(name) + 1);
	if (m->network == NULL)
		return no_memory(c);
	memcpy(m->network, c->file, folder);
	memcpy(m->network + folder, name, strlen(name) + 1);
	return 0;
}

static int read_model(const struct context *c, const struct json *in, struct model *m)
{
	static const char *const known[] = {"steps", "network", NULL};
	bool network = json_member(in, "network") != NULL;

	if (in->type != JSON_OBJECT)
		return json_wrong(in, c->file, c->why, "is not an object");
	if (json_only(in, known, c->file, c->why) != 0)
		return -1;
	if (network && json_member(in, "steps") != NULL)
		return json_wrong(in, c->file, c->why, "has both steps and a network");
	m->file = c->file;
	m->line = in->line;
	m->name = strdup(in->key);
	if (m->name == NULL)
		return no_memory(c);
	return network ? read_network(c, in, m) : read_steps(c, in, m);
}

static int read_table(const struct context *c, const struct json *root, struct models *m)
{
	static const char *const known[] = {"models", NULL};
	const struct json *table;
	struct model *more;

	if (root->type != JSON_OBJECT)
		return json_wrong(root, c->file, c->why, "is not an object");
	if (json_member(root, "tasks") != NULL)
		return json_wrong(json_member(root, "tasks"), c->file, c->why,
				  "this is a load; --models takes a table of networks, "
				  "{\"models\": ...}");
	if (json_only(root, known, c->file, c->why) != 0 ||
	    json_object(root, "models", c->file, &table, c->why) != 0)
		return -1;
	if (table->count == 0)
		return 0;
	more = realloc(m->list, (m->count + table->count) * sizeof(*more));
	if (more == NULL)
		return no_memory(c);
	m->list = more;
	for (const struct json *v = table->first; v != NULL; v = v->next) {
		memset(&more[m->count], 0, sizeof(*more));
		m->count++;
		if (read_model(c, v, &more[m->count - 1]) != 0) {
			model_free(&more[--m->count]);
			return -1;
		}
	}
	return 0;
}

static int take(const struct context *c, struct json *root, struct models *m)
{
	int rc;

	if (root == NULL)
		return -1;
	rc = read_table(c, root, m);
	json_free(root);
	return rc;
}

int models_parse(const char *bytes, size_t size, const char *name, struct models *m,
		 char why[JSON_WHY])
{
	const struct context c = {.file = name, .why = why};

	return take(&c, json_parse(bytes, size, name, why), m);
}

int models_read(const char *path, struct models *m, char why[JSON_WHY])
{
	const struct context c = {.file = path, .why = why};

	return take(&c, json_read(path, why), m);
}

int models_own(struct models *m, char why[JSON_WHY])
{
	memset(m, 0, sizeof(*m));
	return models_parse(own, sizeof(own) - 1, "(built-in table)", m, why);
}
