/* SPDX-License-Identifier: Apache-2.0 */
/* halbench.c - the command: one load under several policies, and who was served how; or
 * all loads, as a page. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "every.h"
#include "line.h"
#include "page.h"
#include "tool.h"

static int read_load(struct line *l, struct load *load)
{
	struct load_clock *clock = &l->setup.clock;
	char why[JSON_WHY];
	struct stat st;

	if (stat(l->loads[0], &st) == 0 && S_ISDIR(st.st_mode))
		return tool_fail("%s is a folder; choose one load of it, or compare all "
				 "of them: halbench report -H PAGE.html %s",
				 l->loads[0], l->loads[0]);
	if (load_read(l->loads[0], load, why) != 0)
		return tool_fail("%s", why);
	l->setup.load = load;
	if (clock->window_s == 0)
		clock->window_s = load->seconds;
	if (clock->window_s > load->seconds)
		return tool_fail("--window %.9g: %s has only %.9g seconds",
				 clock->window_s, load->file, load->seconds);
	return compare_check(&l->setup, l->rates, l->rate_count);
}

static int open_requests(const struct line *l, FILE **out)
{
	*out = NULL;
	if (l->requests_file == NULL)
		return 0;
	*out = fopen(l->requests_file, "we");
	if (*out == NULL)
		return tool_fail("%s: %s", l->requests_file, hal_strerror(errno));
	fprintf(*out, "policy,task,request,arrive_ns,end_ns\n");
	return 0;
}

static int close_requests(const struct line *l, FILE *f)
{
	int bad = 0;

	if (f == NULL)
		return 0;
	bad = ferror(f);
	bad |= fclose(f);
	return bad != 0 ? tool_fail("%s: cannot be written", l->requests_file) : 0;
}

static int print(const struct line *l, const struct report *r)
{
	if (l->json)
		return report_json(r);
	if (l->csv)
		report_csv(r);
	else if (l->figures != NULL)
		report_figures(r, l->figures);
	else
		report_text(r);
	return 0;
}

static int run_one(const struct line *l)
{
	bool shown = l->html != NULL || l->png != NULL;
	struct written written = {.trace = l->trace};
	struct comparison c;
	int rc = open_requests(l, &written.requests);

	if (rc != 0)
		return rc;
	if (l->setup.progress != NULL)
		l->setup.progress->all = compare_weight(&l->setup, l->policy_count,
							l->rates, l->rate_count);
	rc = compare(&c, &l->setup, l->policies, l->policy_count, l->rates, l->rate_count,
		     shown, &written);
	c.report.models = l->models_file;
	if (rc == 0 && l->html != NULL)
		rc = page_write(&c, 1, l->html);
	if (rc == 0 && l->png != NULL)
		rc = pictures_write(&c, 1, l->png);
	if (rc == 0)
		rc = print(l, &c.report);
	if (rc == 0 && c.report.refused != 0)
		rc = TOOL_FAILED;
	comparison_free(&c);
	if (close_requests(l, written.requests) != 0)
		rc = TOOL_FAILED;
	return rc;
}

static int run(struct line *l)
{
	static struct models models;
	static struct load load;
	char why[JSON_WHY];
	int rc = 0;

	if (models_own(&models, why) != 0 ||
	    (l->models_file != NULL && models_read(l->models_file, &models, why) != 0))
		rc = tool_fail("%s", why);
	l->setup.models = &models;
	if (rc == 0 && l->report)
		rc = every_run(l);
	else if (rc == 0 && read_load(l, &load) == 0)
		rc = run_one(l);
	else
		rc = TOOL_FAILED;
	load_free(&load);
	models_free(&models);
	return rc;
}

int main(int argc, char **argv)
{
	static struct line line;
	struct progress progress = {0};
	int rc = line_parse(&line, argc, argv);

	if (isatty(STDERR_FILENO) != 0)
		line.setup.progress = &progress;
	if (rc == 0 && !line.done)
		rc = run(&line);
	line_free(&line);
	return tool_end(rc);
}
