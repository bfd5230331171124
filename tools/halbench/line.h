/* SPDX-License-Identifier: Apache-2.0 */
/* line.h - the command line of halbench. */
#ifndef BENCH_LINE_H
#define BENCH_LINE_H

#include "chart.h"

#define POLICIES_MAX 32u
#define OPTIONS_MAX  32u

struct line {
	struct setup setup; /* but for its load */
	const char *options[OPTIONS_MAX + 1];
	uint32_t option_count;
	bool report; /* halbench report: all loads at two rates, one page */
	char *const *loads;
	uint32_t load_count;
	const char *models_file, *requests_file, *trace, *figures, *html, *png;
	double rates[CHART_RATES_MAX]; /* ascending; of --rates */
	uint32_t rate_count;
	char *policy_text; /* cut into policies */
	struct policy_spec policies[POLICIES_MAX];
	uint32_t policy_count;
	bool json, csv, done;
};

/* 0, TOOL_FAILED or TOOL_USAGE; to be freed either way.  .done: there is nothing to do.
 */
int line_parse(struct line *l, int argc, char **argv);
void line_free(struct line *l);

#endif
