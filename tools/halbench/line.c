/* SPDX-License-Identifier: Apache-2.0 */
/* line.c - the command line; see line.h. */
#include "line.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static const char help[] =
	"usage: halbench [OPTION...] LOAD.json\n"
	"       halbench report -H PAGE.html [OPTION...] LOAD.json|FOLDER...\n"
	"\n"
	"Runs a load under each of several policies, on the same device with the same "
	"seed,\n"
	"and prints how tasks were served: latencies, SLO attainment, throughput, "
	"fairness.\n"
	"report: compares all policies on all given loads, at half and at full rate, in "
	"one\n"
	"page and in PAGE.json; -R: rates of the attainment chart (0.25,0.5,1,1.5,2).\n"
	"\n"
	"  -p, --policy LIST    NAME[:KEY=VALUE...],...: policies, with options of "
	"section\n"
	"                       [policy], or layout=shared, halves, split, classes, "
	"tenants\n"
	"                       (fifo,priority; report: all); class=yes: queues declare\n"
	"                       their class; colors=own: partitions have their own "
	"memory\n"
	"                       channels; or all; refused policies are reported\n"
	"  -t, --target TARGET  as in hal_open, with a virtual clock (ref?units=32)\n"
	"  -o, --option SECTION.KEY=VALUE\n"
	"                       sets an option of the library; may be repeated\n"
	"  -m, --models FILE    table of networks, in addition to the built-in one\n"
	"  -r, --rate R         factor on the load's requests per second (1); 0.5 is "
	"light\n"
	"  -w, --window S       runs only the first S seconds of the load\n"
	"  -x, --scale X        seconds of device time for one second of the load (1)\n"
	"  -s, --seed N         seed of the random parts of a load (1)\n"
	"  -j, --json           JSON instead of text\n"
	"  -C, --csv            CSV instead of text, one line per policy and task\n"
	"  -F, --figures NAME   lines for figures.json instead of text\n"
	"  -H, --html FILE      also writes a page: table, latencies, units over time\n"
	"  -R, --rates LIST     adds the attainment at these rates to it: 0.5,1,2\n"
	"  -P, --png PREFIX     writes the page's charts as PREFIX-LOAD-RATE-CHART.png\n"
	"  -q, --requests FILE  writes each request's arrival and end, as CSV\n"
	"  -T, --trace PREFIX   writes PREFIX-N-POLICY.json for ui.perfetto.dev\n"
	"  -h, --help, -V, --version\n"
	"\n"
	"exit status: 0, 1 when a file, the configuration or the device is at fault, or "
	"a\n"
	"policy was refused, 2 when the command line is wrong.\n";

static const struct option longs[] = {
	{"policy", required_argument, NULL, 'p'},
	{"target", required_argument, NULL, 't'},
	{"option", required_argument, NULL, 'o'},
	{"models", required_argument, NULL, 'm'},
	{"rate", required_argument, NULL, 'r'},
	{"window", required_argument, NULL, 'w'},
	{"scale", required_argument, NULL, 'x'},
	{"seed", required_argument, NULL, 's'},
	{"json", no_argument, NULL, 'j'},
	{"csv", no_argument, NULL, 'C'},
	{"figures", required_argument, NULL, 'F'},
	{"html", required_argument, NULL, 'H'},
	{"rates", required_argument, NULL, 'R'},
	{"png", required_argument, NULL, 'P'},
	{"requests", required_argument, NULL, 'q'},
	{"trace", required_argument, NULL, 'T'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

/* ---- the command line --------------------------------------------------------------- */

static int parse_real(const char *name, const char *text, double most, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (end == text || *end != '\0' || !(*out > 0 && *out <= most))
		return tool_usage("--%s %s: it must be a number above 0 and at most %.9g",
				  name, text, most);
	return 0;
}

static int parse_seed(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	if (end == text || *end != '\0' || errno != 0 || strchr(text, '-') != NULL)
		return tool_usage("--seed %s: it must be a number from 0 to %" PRIu64,
				  text, UINT64_MAX);
	return 0;
}

static int parse_layout(const char *name, struct policy_spec *p)
{
	for (enum layout i = LAYOUT_SHARED; i < LAYOUTS; i++)
		if (strcmp(layout_name(i), name) == 0) {
			p->layout = i;
			return 0;
		}
	return tool_usage("--policy %s: layout=%s: it must be shared, halves, split, "
			  "classes or tenants",
			  p->text, name);
}

/* KEY=VALUE */
static int parse_policy_option(const char *text, struct policy_spec *p)
{
	if (strncmp(text, "layout=", 7) == 0)
		return parse_layout(text + 7, p);
	if (strcmp(text, "class=yes") == 0 || strcmp(text, "class=no") == 0) {
		p->classes = text[6] == 'y';
		return 0;
	}
	if (strcmp(text, "colors=own") == 0 || strcmp(text, "colors=any") == 0) {
		p->colors = text[7] == 'o' ? COLORS_OWN : COLORS_ANY;
		return 0;
	}
	if (strncmp(text, "colors=", 7) == 0)
		return tool_usage("--policy %s: %s: it must be own or any", p->text,
				  text);
	if (strncmp(text, "name=", 5) == 0)
		return tool_usage("--policy %s: %s: the name is already given", p->text,
				  text);
	if (strchr(text, '=') == NULL)
		return tool_usage("--policy %s: %s is not KEY=VALUE", p->text, text);
	if (p->option_count == POLICY_OPTIONS_MAX)
		return tool_usage("--policy %s: at most %u options are supported",
				  p->text, POLICY_OPTIONS_MAX);
	if (asprintf(&p->options[p->option_count], "policy.%s", text) < 0)
		return tool_fail("out of memory");
	p->option_count++;
	return 0;
}

/* text stays. */
static int parse_policy(const char *text, struct policy_spec *p)
{
	char *words = strdup(text), *rest = words, *word;
	int rc = 0;

	if (words == NULL)
		return tool_fail("out of memory");
	p->text = text;
	word = strsep(&rest, ":");
	if (word[0] == '\0' || strlen(word) >= sizeof(p->name))
		rc = tool_usage("--policy %s: the policy's name is missing or too long",
				text);
	else
		snprintf(p->name, sizeof(p->name), "%s", word);
	while (rc == 0 && (word = strsep(&rest, ":")) != NULL)
		rc = parse_policy_option(word, p);
	free(words);
	return rc;
}

static int parse_policies(struct line *l, const char *list)
{
	char *rest, *word;
	int rc = 0;

	free(l->policy_text);
	l->policy_text = rest = strdup(strcmp(list, "all") == 0 ? BENCH_POLICIES : list);
	if (rest == NULL)
		return tool_fail("out of memory");
	for (l->policy_count = 0; rc == 0 && (word = strsep(&rest, ",")) != NULL;) {
		for (uint32_t i = 0; i < l->policy_count; i++)
			if (strcmp(l->policies[i].text, word) == 0)
				return tool_usage("--policy %s is given twice", word);
		if (l->policy_count == POLICIES_MAX)
			return tool_usage("--policy: at most %u policies are supported",
					  POLICIES_MAX);
		rc = parse_policy(word, &l->policies[l->policy_count++]);
	}
	return rc;
}

/* Ascending. */
static int parse_rates(const char *list, struct line *l)
{
	char *words = strdup(list), *rest = words, *word;
	uint32_t *n = &l->rate_count;
	int rc = 0;

	if (words == NULL)
		return tool_fail("out of memory");
	for (*n = 0; rc == 0 && (word = strsep(&rest, ",")) != NULL; ++*n) {
		if (*n == CHART_RATES_MAX) {
			rc = tool_usage("--rates: at most %u rates are supported",
					CHART_RATES_MAX);
			break;
		}
		rc = parse_real("rates", word, 1000, &l->rates[*n]);
		if (rc == 0 && *n > 0 && l->rates[*n] <= l->rates[*n - 1])
			rc = tool_usage(
				"--rates %s: the rates must be in ascending order", list);
	}
	free(words);
	return rc;
}

static int parse_output(int c, struct line *l)
{
	switch (c) {
	case 'H':
		l->html = optarg;
		break;
	case 'P':
		l->png = optarg;
		break;
	case 'R':
		return parse_rates(optarg, l);
	case 'j':
		l->json = true;
		break;
	case 'C':
		l->csv = true;
		break;
	case 'F':
		l->figures = optarg;
		break;
	case 'q':
		l->requests_file = optarg;
		break;
	case 'T':
		l->trace = optarg;
		break;
	case 'h':
		fputs(help, stdout);
		l->done = true;
		break;
	case 'V':
		l->done = true;
		return tool_version();
	default:
		return tool_usage_said();
	}
	return 0;
}

static int parse_option(int c, struct line *l)
{
	struct load_clock *clock = &l->setup.clock;

	switch (c) {
	case 'p':
		if (l->policy_text != NULL)
			return tool_usage("--policy is given twice; use one list");
		return parse_policies(l, optarg);
	case 't':
		if (strstr(optarg, "policy.name=") != NULL)
			return tool_usage("--target %s: use --policy to choose policies",
					  optarg);
		l->setup.target = optarg;
		return 0;
	case 'o':
		if (strncmp(optarg, "policy.name=", 12) == 0)
			return tool_usage("--option %s: use --policy to choose policies",
					  optarg);
		if (l->option_count == OPTIONS_MAX)
			return tool_usage("more than %u options: %s", OPTIONS_MAX,
					  optarg);
		l->options[l->option_count++] = optarg;
		return 0;
	case 'm':
		l->models_file = optarg;
		return 0;
	case 'r':
		return parse_real("rate", optarg, 1000, &clock->rate);
	case 'w':
		return parse_real("window", optarg, 1e6, &clock->window_s);
	case 'x':
		return parse_real("scale", optarg, 1000, &clock->scale);
	case 's':
		return parse_seed(optarg, &clock->seed);
	default:
		return parse_output(c, l);
	}
}

/* What has been said is no help for what is asked. */
static int check_report(const struct line *l)
{
	if (l->html == NULL)
		return tool_usage("report: --html FILE is missing");
	if (l->json || l->csv || l->figures != NULL)
		return tool_usage("report writes JSON next to the page; it does not take "
				  "--json, --csv or --figures");
	if (l->requests_file != NULL || l->trace != NULL)
		return tool_usage("--requests and --trace are for one load; report does "
				  "not take them");
	if (l->setup.clock.rate != 0)
		return tool_usage(
			"report uses the rates 0.5 and 1; it does not take --rate");
	return 0;
}

static int check_one(struct line *l)
{
	if (l->load_count > 1)
		return tool_usage("only one load can be run, but there is a second: %s",
				  l->loads[1]);
	if (l->json + l->csv + (l->figures != NULL) > 1)
		return tool_usage("--json, --csv and --figures cannot be used together");
	if (l->rate_count != 0 && l->html == NULL && l->png == NULL)
		return tool_usage("--rates needs --html or --png");
	if (l->setup.clock.rate == 0)
		l->setup.clock.rate = 1;
	return 0;
}

int line_parse(struct line *l, int argc, char **argv)
{
	int c, rc = 0;

	l->setup.clock = (struct load_clock){.scale = 1, .seed = 1};
	l->setup.target = "ref?units=32";
	l->setup.options = l->options;
	if (argc > 1 && strcmp(argv[1], "report") == 0) {
		l->report = true;
		optind = 2;
	}
	while (rc == 0 && !l->done) {
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
		c = getopt_long(argc, argv, "p:t:o:m:r:w:x:s:jCF:H:P:R:q:T:hV", longs,
				NULL);
		if (c == -1)
			break;
		rc = parse_option(c, l);
	}
	if (rc != 0 || l->done)
		return rc;
	if (optind == argc)
		return tool_usage("no load given");
	l->loads = argv + optind;
	l->load_count = (uint32_t)(argc - optind);
	rc = l->report ? check_report(l) : check_one(l);
	if (rc != 0 || l->policy_text != NULL)
		return rc;
	return parse_policies(l, l->report ? "all" : "fifo,priority");
}

void line_free(struct line *l)
{
	for (uint32_t i = 0; i < l->policy_count; i++)
		while (l->policies[i].option_count > 0)
			free(l->policies[i].options[--l->policies[i].option_count]);
	free(l->policy_text);
}
