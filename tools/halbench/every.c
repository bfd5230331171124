/* SPDX-License-Identifier: Apache-2.0 */
/* every.c - halbench report: all policies on all loads, light and heavy, as one page and
 * its numbers as JSON beside it; see every.h. */
#include "every.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "page.h"
#include "tool.h"

#define LOADS_MAX  64u
#define PATH_BYTES 4096u

/* Light and heavy; the last is the one that is swept and shown over time. */
static const double rates[] = {0.5, 1};
#define RATES ((uint32_t)(sizeof(rates) / sizeof(rates[0])))
static const double swept[] = {0.25, 0.5, 1, 1.5, 2};
#define SWEPT ((uint32_t)(sizeof(swept) / sizeof(swept[0])))

struct every {
	const struct line *line;
	char *files[LOADS_MAX];
	struct load loads[LOADS_MAX];
	uint32_t file_count, load_count;
	struct comparison *list; /* RATES of each load */
	uint32_t count;
};

/* ---- which loads -------------------------------------------------------------------- */

static int add_file(struct every *e, const char *folder, const char *name)
{
	char *path = NULL;

	if (e->file_count == LOADS_MAX)
		return tool_fail("%s: more than %u loads", name, LOADS_MAX);
	if (asprintf(&path, "%s%s%s", folder, folder[0] != '\0' ? "/" : "", name) < 0)
		return tool_fail("out of memory");
	e->files[e->file_count++] = path;
	return 0;
}

static int is_load(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return n > 5 && strcmp(d->d_name + n - 5, ".json") == 0;
}

/* Its .json files, by name. */
static int add_folder(struct every *e, const char *folder)
{
	struct dirent **list;
	int n = scandir(folder, &list, is_load, alphasort), rc = 0;

	if (n < 0)
		return tool_fail("%s: %s", folder, hal_strerror(errno));
	if (n == 0)
		rc = tool_fail("%s: the folder has no .json file", folder);
	for (int i = 0; i < n; i++) {
		if (rc == 0)
			rc = add_file(e, folder, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return rc;
}

static int find_loads(struct every *e)
{
	struct stat st;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < e->line->load_count; i++) {
		const char *path = e->line->loads[i];

		if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			rc = add_folder(e, path);
		else
			rc = add_file(e, "", path);
	}
	return rc;
}

static int read_load(struct every *e, const char *path)
{
	struct load *l = &e->loads[e->load_count];
	char why[JSON_WHY];

	if (load_read(path, l, why) != 0)
		return tool_fail("%s", why);
	e->load_count++;
	for (uint32_t i = 0; i + 1 < e->load_count; i++)
		if (strcmp(e->loads[i].name, l->name) == 0)
			return tool_fail("%s: the load name %s is already used by %s",
					 path, l->name, e->loads[i].file);
	return 0;
}

/* ---- running ------------------------------------------------------------------------ */

static struct setup setup_of(const struct every *e, uint32_t load, uint32_t rate)
{
	struct setup s = e->line->setup;

	s.load = &e->loads[load];
	s.clock.rate = rates[rate];
	/* Shorter loads are run whole. */
	if (s.clock.window_s == 0 || s.clock.window_s > s.load->seconds)
		s.clock.window_s = s.load->seconds;
	return s;
}

/* The rates of which attainment is shown; those of the command line, if it has any. */
static const double *sweep_of(const struct every *e, uint32_t rate, uint32_t *count)
{
	*count = 0;
	if (rate + 1 < RATES)
		return NULL;
	*count = e->line->rate_count != 0 ? e->line->rate_count : SWEPT;
	return e->line->rate_count != 0 ? e->line->rates : swept;
}

/* All is looked at before anything is run. */
static int check(struct every *e)
{
	struct progress *p = e->line->setup.progress;

	for (uint32_t i = 0; i < e->load_count; i++)
		for (uint32_t k = 0; k < RATES; k++) {
			struct setup s = setup_of(e, i, k);
			uint32_t n;
			const double *sweep = sweep_of(e, k, &n);

			if (compare_check(&s, sweep, n) != 0)
				return TOOL_FAILED;
			if (p != NULL)
				p->all += compare_weight(&s, e->line->policy_count, sweep,
							 n);
		}
	return 0;
}

static int compare_all(struct every *e)
{
	const struct written nothing = {0};

	e->list = calloc((size_t)e->load_count * RATES + 1, sizeof(*e->list));
	if (e->list == NULL)
		return tool_fail("out of memory");
	for (uint32_t i = 0; i < e->load_count; i++)
		for (uint32_t k = 0; k < RATES; k++) {
			struct comparison *c = &e->list[e->count++];
			struct setup s = setup_of(e, i, k);
			uint32_t n;
			const double *sweep = sweep_of(e, k, &n);

			if (compare(c, &s, e->line->policies, e->line->policy_count,
				    sweep, n, true, &nothing) != 0)
				return TOOL_FAILED;
			c->report.models = e->line->models_file;
		}
	return 0;
}

/* ---- writing ------------------------------------------------------------------------ */

static void sweep_record(struct out *o, const struct comparison *c)
{
	out_record(o, NULL);
	out_str(o, "load", c->setup.load->name);
	out_list(o, "rates");
	for (uint32_t k = 0; k < c->sweep.count; k++)
		out_real(o, NULL, c->sweep.rates[k]);
	out_list_end(o);
	out_record(o, "slo");
	for (uint32_t i = 0; i < c->report.count; i++) {
		out_list(o, c->report.list[i].policy->text);
		for (uint32_t k = 0; k < c->sweep.count; k++)
			out_real(o, NULL, c->sweep.slo[(size_t)i * c->sweep.count + k]);
		out_list_end(o);
	}
	out_record_end(o);
	out_record_end(o);
}

/* Each comparison as --json has it, and the attainment of each load by rate. */
static int write_json(const struct every *e, const char *path)
{
	struct out *o = out_create();

	if (o == NULL)
		return TOOL_FAILED;
	out_compact(o);
	out_record(o, NULL);
	out_list(o, "comparisons");
	for (uint32_t i = 0; i < e->count; i++)
		report_record(o, &e->list[i].report);
	out_list_end(o);
	out_list(o, "attainment");
	for (uint32_t i = 0; i < e->count; i++)
		if (e->list[i].sweep.count != 0)
			sweep_record(o, &e->list[i]);
	out_list_end(o);
	out_record_end(o);
	return out_finish_to(o, path);
}

static int write_all(const struct every *e)
{
	const char *html = e->line->html, *dot = strrchr(html, '.');
	size_t stem = strlen(html);
	char json[PATH_BYTES];

	if (dot != NULL && strcmp(dot, ".html") == 0)
		stem = (size_t)(dot - html);
	if (stem + sizeof(".json") > sizeof(json))
		return tool_fail("--html %s: the file name is too long", html);
	snprintf(json, sizeof(json), "%.*s.json", (int)stem, html);
	if (page_write(e->list, e->count, html) != 0 || write_json(e, json) != 0)
		return TOOL_FAILED;
	if (e->line->png != NULL)
		return pictures_write(e->list, e->count, e->line->png);
	return 0;
}

static void free_all(struct every *e)
{
	for (uint32_t i = 0; i < e->count; i++)
		comparison_free(&e->list[i]);
	for (uint32_t i = 0; i < e->load_count; i++)
		load_free(&e->loads[i]);
	for (uint32_t i = 0; i < e->file_count; i++)
		free(e->files[i]);
	free(e->list);
}

int every_run(const struct line *l)
{
	struct every e = {.line = l};
	int rc = find_loads(&e);

	for (uint32_t i = 0; rc == 0 && i < e.file_count; i++)
		rc = read_load(&e, e.files[i]);
	if (rc == 0)
		rc = check(&e);
	if (rc == 0)
		rc = compare_all(&e);
	if (rc == 0)
		rc = write_all(&e);
	for (uint32_t i = 0; rc == 0 && i < e.count; i++)
		rc = e.list[i].report.refused != 0 ? TOOL_FAILED : 0;
	free_all(&e);
	return rc;
}
