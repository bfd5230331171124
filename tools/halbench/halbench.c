/* SPDX-License-Identifier: Apache-2.0 */
/* halbench.c - the command: one load under several policies, and who was served how. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "page.h"
#include "tool.h"

#define POLICIES_MAX 32u
#define OPTIONS_MAX  32u
#define PATH_BYTES   4096u

static const char help[] =
	"usage: halbench [OPTION...] LOAD.json\n"
	"\n"
	"Runs a load under each of several policies, on the same device from the same "
	"seed,\n"
	"and prints who was served how: latencies, SLO attainment, throughput, "
	"fairness.\n"
	"\n"
	"  -p, --policy LIST    NAME[:KEY=VALUE...],...: policies, with options of "
	"section\n"
	"                       [policy], or layout=shared, halves, split, classes, "
	"tenants\n"
	"                       (fifo,priority); class=yes: queues say theirs; or all\n"
	"  -t, --target TARGET  as in hal_open, of a virtual clock (ref?units=32)\n"
	"  -o, --option SECTION.KEY=VALUE\n"
	"                       sets an option of the library; may be repeated\n"
	"  -m, --models FILE    what networks run, beside this program's own table\n"
	"  -r, --rate R         so many times the load's requests a second (1); 0.5 is "
	"light\n"
	"  -w, --window S       only the first S seconds of the load\n"
	"  -x, --scale X        device time of a second of the load (1)\n"
	"  -s, --seed N         of what is random in a load (1)\n"
	"  -j, --json           JSON instead of text\n"
	"  -C, --csv            CSV instead of text, a line a policy and task\n"
	"  -F, --figures NAME   lines for figures.json instead\n"
	"  -H, --html FILE      writes a page, too: table, latencies, units over time\n"
	"  -R, --rates LIST     ... and attainment at these rates: 0.5,1,2\n"
	"  -q, --requests FILE  writes each request's arrival and end, as CSV\n"
	"  -T, --trace PREFIX   writes PREFIX-N-POLICY.json for ui.perfetto.dev\n"
	"  -h, --help, -V, --version\n"
	"\n"
	"exit status: 0, 1 when a file, the configuration or the device is at fault, 2 "
	"when\n"
	"the command line is wrong.\n";

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
	{"requests", required_argument, NULL, 'q'},
	{"trace", required_argument, NULL, 'T'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

struct bench {
	struct setup setup;
	struct load load;
	struct models models;
	const char *options[OPTIONS_MAX + 1];
	uint32_t option_count;
	const char *load_file, *models_file, *requests_file, *trace, *figures, *html;
	struct shown shown[POLICIES_MAX];
	struct sweep sweep;
	char *policy_text; /* cut into policies */
	struct policy_spec policies[POLICIES_MAX];
	uint32_t policy_count;
	bool json, csv, done;
	FILE *requests;
};

/* ---- the command line --------------------------------------------------------------- */

static int parse_real(const char *name, const char *text, double most, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (end == text || *end != '\0' || !(*out > 0 && *out <= most))
		return tool_usage("--%s %s: a number above 0, up to %.9g", name, text,
				  most);
	return 0;
}

static int parse_seed(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	if (end == text || *end != '\0' || errno != 0 || strchr(text, '-') != NULL)
		return tool_usage("--seed %s: a number from 0 to %" PRIu64, text,
				  UINT64_MAX);
	return 0;
}

static int parse_layout(const char *name, struct policy_spec *p)
{
	for (enum layout l = LAYOUT_SHARED; l < LAYOUTS; l++)
		if (strcmp(layout_name(l), name) == 0) {
			p->layout = l;
			return 0;
		}
	return tool_usage("--policy %s: layout=%s: shared, halves, split, classes or "
			  "tenants",
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
	if (strchr(text, '=') == NULL)
		return tool_usage("--policy %s: %s: not KEY=VALUE", p->text, text);
	if (p->option_count == POLICY_OPTIONS_MAX)
		return tool_usage("--policy %s: more than %u options", p->text,
				  POLICY_OPTIONS_MAX);
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
		rc = tool_usage("--policy %s: no name of a policy", text);
	else
		snprintf(p->name, sizeof(p->name), "%s", word);
	while (rc == 0 && (word = strsep(&rest, ":")) != NULL)
		rc = parse_policy_option(word, p);
	free(words);
	return rc;
}

static int parse_policies(struct bench *b, const char *list)
{
	char *rest, *word;
	int rc = 0;

	free(b->policy_text);
	b->policy_text = rest = strdup(strcmp(list, "all") == 0 ? BENCH_POLICIES : list);
	if (rest == NULL)
		return tool_fail("out of memory");
	for (b->policy_count = 0; rc == 0 && (word = strsep(&rest, ",")) != NULL;) {
		for (uint32_t i = 0; i < b->policy_count; i++)
			if (strcmp(b->policies[i].text, word) == 0)
				return tool_usage("--policy %s: is there twice", word);
		if (b->policy_count == POLICIES_MAX)
			return tool_usage("--policy: more than %u of them", POLICIES_MAX);
		rc = parse_policy(word, &b->policies[b->policy_count++]);
	}
	return rc;
}

/* Ascending. */
static int parse_rates(const char *list, struct sweep *s)
{
	char *words = strdup(list), *rest = words, *word;
	int rc = 0;

	if (words == NULL)
		return tool_fail("out of memory");
	for (s->count = 0; rc == 0 && (word = strsep(&rest, ",")) != NULL; s->count++) {
		if (s->count == PAGE_RATES_MAX) {
			rc = tool_usage("--rates: more than %u of them", PAGE_RATES_MAX);
			break;
		}
		rc = parse_real("rates", word, 1000, &s->rates[s->count]);
		if (rc == 0 && s->count > 0 &&
		    s->rates[s->count] <= s->rates[s->count - 1])
			rc = tool_usage("--rates %s: not in ascending order", list);
	}
	free(words);
	return rc;
}

static int parse_output(int c, struct bench *b)
{
	switch (c) {
	case 'H':
		b->html = optarg;
		break;
	case 'R':
		return parse_rates(optarg, &b->sweep);
	case 'j':
		b->json = true;
		break;
	case 'C':
		b->csv = true;
		break;
	case 'F':
		b->figures = optarg;
		break;
	case 'q':
		b->requests_file = optarg;
		break;
	case 'T':
		b->trace = optarg;
		break;
	case 'h':
		fputs(help, stdout);
		b->done = true;
		break;
	case 'V':
		b->done = true;
		return tool_version();
	default:
		return tool_usage_said();
	}
	return 0;
}

static int parse_option(int c, struct bench *b)
{
	struct load_clock *clock = &b->setup.clock;

	switch (c) {
	case 'p':
		if (b->policy_text != NULL)
			return tool_usage("--policy is there twice: one list");
		return parse_policies(b, optarg);
	case 't':
		b->setup.target = optarg;
		return 0;
	case 'o':
		if (b->option_count == OPTIONS_MAX)
			return tool_usage("more than %u options: %s", OPTIONS_MAX,
					  optarg);
		b->options[b->option_count++] = optarg;
		return 0;
	case 'm':
		b->models_file = optarg;
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
		return parse_output(c, b);
	}
}

static int parse_line(struct bench *b, int argc, char **argv)
{
	int c, rc = 0;

	while (rc == 0 && !b->done) {
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
		c = getopt_long(argc, argv, "p:t:o:m:r:w:x:s:jCF:H:R:q:T:hV", longs,
				NULL);
		if (c == -1)
			break;
		rc = parse_option(c, b);
	}
	if (rc != 0 || b->done)
		return rc;
	if (optind == argc)
		return tool_usage("no load");
	if (optind + 1 < argc)
		return tool_usage("more than one load: %s", argv[optind + 1]);
	if (b->json + b->csv + (b->figures != NULL) > 1)
		return tool_usage("--json, --csv and --figures exclude each other");
	if (b->sweep.count != 0 && b->html == NULL)
		return tool_usage("--rates is for --html");
	b->load_file = argv[optind];
	return b->policy_text != NULL ? 0 : parse_policies(b, "fifo,priority");
}

/* ---- files -------------------------------------------------------------------------- */

static int check_clock(const struct load_clock *c)
{
	double seconds = c->window_s * c->scale / c->rate;

	if (seconds >= 1e-9 && seconds <= 1e6)
		return 0;
	return tool_fail(
		"%.9g seconds at rate %.9g, scale %.9g: not from 1 ns to 1e6 s of "
		"device time",
		c->window_s, c->rate, c->scale);
}

static int read_files(struct bench *b)
{
	struct load_clock *clock = &b->setup.clock;
	char why[JSON_WHY];

	if (load_read(b->load_file, &b->load, why) != 0 ||
	    models_own(&b->models, why) != 0 ||
	    (b->models_file != NULL && models_read(b->models_file, &b->models, why) != 0))
		return tool_fail("%s", why);
	for (uint32_t i = 0; i < b->load.count; i++)
		if (models_find(&b->models, b->load.tasks[i].model) == NULL)
			return tool_fail(
				"%s: tasks[%u].client.model_name: \"%s\" is in no "
				"table (--models)",
				b->load_file, i, b->load.tasks[i].model);
	if (clock->window_s == 0)
		clock->window_s = b->load.seconds;
	if (clock->window_s > b->load.seconds)
		return tool_fail("--window %.9g: %s has %.9g seconds", clock->window_s,
				 b->load_file, b->load.seconds);
	if (check_clock(clock) != 0)
		return TOOL_FAILED;
	for (uint32_t k = 0; k < b->sweep.count; k++) {
		struct load_clock other = *clock;

		other.rate = b->sweep.rates[k];
		if (check_clock(&other) != 0)
			return TOOL_FAILED;
	}
	return 0;
}

/* static refuses a queue for which it has no slot. */
static int fit_static(struct bench *b)
{
	for (uint32_t i = 0; i < b->policy_count; i++) {
		struct policy_spec *p = &b->policies[i];

		if (strcmp(p->name, "static") != 0 || p->option_count != 0)
			continue;
		if (asprintf(&p->options[0], "policy.static_slots=%u", b->load.count) < 0)
			return tool_fail("out of memory");
		p->option_count = 1;
	}
	return 0;
}

static int open_requests(struct bench *b)
{
	if (b->requests_file == NULL)
		return 0;
	b->requests = fopen(b->requests_file, "we");
	if (b->requests == NULL)
		return tool_fail("%s: %s", b->requests_file, hal_strerror(errno));
	fprintf(b->requests, "policy,task,request,arrive_ns,end_ns\n");
	return 0;
}

static int close_requests(struct bench *b)
{
	int bad = 0;

	if (b->requests == NULL)
		return 0;
	bad = ferror(b->requests);
	bad |= fclose(b->requests);
	return bad != 0 ? tool_fail("%s: cannot be written", b->requests_file) : 0;
}

static void write_requests(const struct bench *b, const char *policy,
			   const struct run *run)
{
	for (uint32_t i = 0; b->requests != NULL && i < b->load.count; i++)
		for (uint32_t k = 0; k < run->tasks[i].count; k++) {
			const struct request *q = &run->tasks[i].requests[k];

			report_quoted(b->requests, policy);
			(void)fputc(',', b->requests);
			report_quoted(b->requests, b->load.tasks[i].id);
			fprintf(b->requests, ",%u,%" PRIu64 ",%" PRIu64 "\n", k,
				q->arrive_ns, q->end_ns);
		}
}

/* ---- running ------------------------------------------------------------------------ */

/* Each task with the device to itself, in order of arrival: what it is compared with. */
static int run_alone(struct bench *b, struct report *r)
{
	const struct policy_spec fifo = {
		.text = "alone", .name = "fifo", .layout = LAYOUT_SHARED};
	struct run run;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < b->load.count; i++) {
		rc = run_load(&b->setup, &fifo, i, NULL, NULL, NULL, &run);
		if (rc == 0)
			rc = task_measure(&run.tasks[i], run.window_ns, 0, NULL,
					  &r->alone[i]);
		write_requests(b, fifo.text, &run);
		run_free(&b->setup, &run);
		r->alone[i].throughput = NAN; /* closed loops alone are cut short */
		r->slo_ns[i] = b->load.count * r->alone[i].p99_ns;
	}
	return rc;
}

/* Periodic tasks of one frequency begin one behind the other, each after what those
 * before it run alone. */
static void stagger(const struct bench *b, const struct report *r, uint64_t *begin_ns)
{
	const struct load *l = &b->load;

	for (uint32_t i = 0; i < l->count; i++)
		for (uint32_t k = 0; k < i; k++)
			if (l->tasks[i].type == LOAD_PERIODIC && l->tasks[i].staggered &&
			    l->tasks[k].type == LOAD_PERIODIC && l->tasks[k].staggered &&
			    l->tasks[i].frequency == l->tasks[k].frequency)
				begin_ns[i] += r->alone[k].p50_ns;
}

static int run_policy(struct bench *b, struct report *r, uint32_t i,
		      const uint64_t *begin_ns)
{
	struct compared *c = &r->list[i];
	char trace[PATH_BYTES];
	int rc;

	c->policy = &b->policies[i];
	if (b->trace != NULL)
		snprintf(trace, sizeof(trace), "%s-%u-%s.json", b->trace, i + 1,
			 c->policy->name);
	rc = run_load(&b->setup, c->policy, RUN_ALL, begin_ns, r->slo_ns,
		      b->trace != NULL ? trace : NULL, &c->run);
	if (rc == 0)
		rc = run_measure(&b->setup, &c->run, r->slo_ns, r->alone, &c->numbers);
	if (rc == 0 && b->html != NULL)
		rc = shown_take(&b->setup, &c->run, r->slo_ns, &b->shown[i]);
	write_requests(b, c->policy->text, &c->run);
	run_free(&b->setup, &c->run);
	r->count++;
	return rc;
}

/* All policies at one of the other rates, by the SLO of the first. */
static int run_rate(struct bench *b, const struct report *r, uint32_t k,
		    const uint64_t *begin_ns)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < b->policy_count; i++) {
		struct numbers n = {0};
		struct run run;

		rc = run_load(&b->setup, &b->policies[i], RUN_ALL, begin_ns, r->slo_ns,
			      NULL, &run);
		if (rc == 0)
			rc = run_measure(&b->setup, &run, r->slo_ns, r->alone, &n);
		b->sweep.slo[(size_t)i * b->sweep.count + k] = n.slo;
		numbers_free(&n);
		run_free(&b->setup, &run);
	}
	return rc;
}

static int write_page(struct bench *b, const struct report *r, const uint64_t *begin_ns)
{
	double rate = b->setup.clock.rate;
	int rc = 0;

	if (b->html == NULL)
		return 0;
	b->sweep.slo = calloc((size_t)b->policy_count * b->sweep.count + 1,
			      sizeof(*b->sweep.slo));
	if (b->sweep.slo == NULL)
		return tool_fail("out of memory");
	for (uint32_t k = 0; rc == 0 && k < b->sweep.count; k++) {
		b->setup.clock.rate = b->sweep.rates[k];
		rc = run_rate(b, r, k, begin_ns);
	}
	b->setup.clock.rate = rate;
	return rc != 0 ? rc : page_write(r, b->shown, &b->sweep, b->html);
}

static int print(const struct bench *b, const struct report *r)
{
	if (b->json)
		return report_json(r);
	if (b->csv)
		report_csv(r);
	else if (b->figures != NULL)
		report_figures(r, b->figures);
	else
		report_text(r);
	return 0;
}

static int compare(struct bench *b)
{
	uint64_t *begin_ns = calloc(b->load.count, sizeof(*begin_ns));
	struct report r = {
		.setup = &b->setup,
		.models = b->models_file,
		.alone = calloc(b->load.count, sizeof(*r.alone)),
		.slo_ns = calloc(b->load.count, sizeof(*r.slo_ns)),
		.list = calloc(b->policy_count, sizeof(*r.list)),
	};
	int rc = TOOL_FAILED;

	if (begin_ns == NULL || r.alone == NULL || r.slo_ns == NULL || r.list == NULL)
		(void)tool_fail("out of memory");
	else
		rc = run_alone(b, &r);
	if (rc == 0)
		stagger(b, &r, begin_ns);
	for (uint32_t i = 0; rc == 0 && i < b->policy_count; i++)
		rc = run_policy(b, &r, i, begin_ns);
	if (rc == 0)
		rc = write_page(b, &r, begin_ns);
	if (rc == 0)
		rc = print(b, &r);
	for (uint32_t i = 0; i < r.count; i++)
		numbers_free(&r.list[i].numbers);
	free(begin_ns);
	free(r.alone);
	free(r.slo_ns);
	free(r.list);
	return rc;
}

static void free_all(struct bench *b)
{
	for (uint32_t i = 0; i < b->policy_count; i++)
		while (b->policies[i].option_count > 0)
			free(b->policies[i].options[--b->policies[i].option_count]);
	for (uint32_t i = 0; i < POLICIES_MAX; i++)
		shown_free(&b->shown[i]);
	free(b->sweep.slo);
	free(b->policy_text);
	load_free(&b->load);
	models_free(&b->models);
}

int main(int argc, char **argv)
{
	static struct bench b;
	int rc;

	b.setup = (struct setup){
		.load = &b.load,
		.models = &b.models,
		.clock = {.rate = 1, .scale = 1, .seed = 1},
		.target = "ref?units=32",
		.options = b.options,
		.progress = isatty(STDERR_FILENO) != 0,
	};
	rc = parse_line(&b, argc, argv);
	if (rc == 0 && !b.done) {
		rc = read_files(&b);
		if (rc == 0)
			rc = fit_static(&b);
		if (rc == 0)
			rc = open_requests(&b);
		if (rc == 0)
			rc = compare(&b);
		if (close_requests(&b) != 0)
			rc = TOOL_FAILED;
	}
	free_all(&b);
	return tool_end(rc);
}
