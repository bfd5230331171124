/* SPDX-License-Identifier: Apache-2.0 */
/* The main job: several tenants' networks side by side on one array, every answer
 * checked, then each alone on the same rectangle; a table, a trace and a picture.  If the
 * configuration selects the model in C (engine = fast), the first jobs are repeated on
 * the RTL, side by side, and compared. */
#include "tenant.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "history.h"
#include "picture.h"
#include "processes.h"
#include "tool.h"

#define TENANTS    4u
#define ALONE_JOBS 48u
#define PATH_BYTES 4096u
#define STOPPED    1 /* by a signal; beside TOOL_FAILED */

/* Three tenants with networks, and one that fills what is left with matrix products for
 * as long as the others run.  Any three rectangles can be parted by one straight cut; it
 * takes a fourth to close the pinwheel (see demo.conf).  With --models, each has a
 * network of MLPerf Tiny: images, keywords, persons, machine sounds. */
static const struct {
	const char *partition, *network, *model;
} plan[TENANTS] = {
	{"red", "large", "resnet8"},
	{"green", "small", "kws_dscnn"},
	{"blue", "large", "vww_mobilenet"},
	{"gold", NULL, "ad01"},
};
#define MODEL_JOBS  6u
#define MODEL_ALONE 3u
/* Jobs of each tenant on the RTL: some seconds of Verilator. */
#define RTL_JOBS       12u
#define MODEL_RTL_JOBS 1u

struct options {
	const char *config, *data, *out;
	const char *models, *answers;
	uint32_t images, alone; /* 0: not given */
	bool figures;
};

struct demo {
	struct options opt;
	struct digits_images images;
	struct work works[TENANTS];
	struct tenant tenants[TENANTS];
	struct hal_device *dev;
	struct hal_device_info info;
	const struct hal_npu_extension *npu;
	uint64_t *busy; /* MACs of each PE */
	uint64_t busy_cycles;
	struct history history;            /* rows: tenants' MACs, then their bytes */
	uint64_t bytes_told[TENANTS];      /* up to ... */
	uint64_t bytes_told_at[TENANTS];   /* ... that time */
	bool watched;                      /* .history is being written */
	struct process processes[TENANTS]; /* the first jobs again, as programs */
	struct demo *rtl;   /* the first jobs again, on the RTL; NULL: they are not */
	const char *engine; /* NULL: as the configuration says */
	/* progress */
	const char *phase;
	double began, told;
	bool tty;
};

/* ---- signals ---------------------------------------------------------------------- */

static volatile sig_atomic_t stop_signal; /* 0: none has come */

static void on_signal(int number)
{
	stop_signal = number;
}

static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
#define STOPS (sizeof(stops) / sizeof(stops[0]))

/* While a trace is written, the first signal ends the run in order, so that the file is
 * whole; a second one ends the program at once. */
static void catch_signals(struct sigaction before[STOPS])
{
	struct sigaction act = {.sa_handler = on_signal,
				.sa_flags = (int)(SA_RESETHAND | SA_RESTART)};

	sigemptyset(&act.sa_mask);
	for (size_t i = 0; i < STOPS; i++)
		if (sigaction(stops[i], NULL, &before[i]) == 0 &&
		    before[i].sa_handler != SIG_IGN)
			(void)sigaction(stops[i], &act, NULL);
}

static void release_signals(const struct sigaction before[STOPS])
{
	for (size_t i = 0; i < STOPS; i++)
		(void)sigaction(stops[i], &before[i], NULL);
}

/* End as the signal would have ended the program: a shell looks at that. */
static void end_by_signal(void)
{
	(void)fflush(stdout);
	(void)signal(stop_signal, SIG_DFL);
	(void)raise(stop_signal);
}

/* ---- options ---------------------------------------------------------------------- */

static void usage(void)
{
	printf("usage: demo [options]\n"
	       "Runs the networks of several tenants at the same time on one NPU, checks "
	       "every\n"
	       "answer bit by bit, and shows how much sharing slowed them down.\n"
	       "  --config FILE  device and partitions (%s)\n"
	       "  --models DIR   MLPerf Tiny networks (resnet8_int8.tflite ...) instead "
	       "of digits\n"
	       "  --answers FILE TensorFlow Lite's answers for them (%s)\n"
	       "  --images N     test images each tenant classifies, with --models "
	       "inputs it runs\n"
	       "                 at least (all; %u)\n"
	       "  --alone N      jobs each tenant repeats alone (%u)\n"
	       "  --data DIR     networks and test images (%s)\n"
	       "  --out DIR      folder for demo-trace.json and array.png (%s)\n"
	       "  --figures      also print lines for figures.json\n"
	       "  -h, --help, -V, --version\n"
	       "exit status: 0 all answers right, 1 something failed, 2 bad arguments.\n"
	       "Ctrl-C stops it; the trace then contains everything up to that point.\n",
	       DEMO_CONFIG, DEMO_ANSWERS, MODEL_JOBS, ALONE_JOBS, DIGITS_DIR, DEMO_OUT);
}

static int parse_count(const char *name, const char *text, uint32_t *out)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || v == 0 || v > 1000000)
		return tool_usage("--%s %s: it must be a number from 1 to 1000000", name,
				  text);
	*out = (uint32_t)v;
	return 0;
}

/* 0: go on; 1: that was all; TOOL_USAGE. */
static int parse_option(int c, struct options *o)
{
	switch (c) {
	case 'c':
		o->config = optarg;
		return 0;
	case 'd':
		o->data = optarg;
		return 0;
	case 'o':
		o->out = optarg;
		return 0;
	case 'm':
		o->models = optarg;
		return 0;
	case 's':
		o->answers = optarg;
		return 0;
	case 'f':
		o->figures = true;
		return 0;
	case 'n':
		return parse_count("images", optarg, &o->images);
	case 'a':
		return parse_count("alone", optarg, &o->alone);
	case 'h':
		usage();
		return 1;
	case 'V':
		(void)tool_version();
		return 1;
	default:
		return tool_usage_said();
	}
}

static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"config", required_argument, NULL, 'c'},
		{"images", required_argument, NULL, 'n'},
		{"alone", required_argument, NULL, 'a'},
		{"data", required_argument, NULL, 'd'},
		{"models", required_argument, NULL, 'm'},
		{"answers", required_argument, NULL, 's'},
		{"out", required_argument, NULL, 'o'},
		{"figures", no_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int c, rc = 0;

	*o = (struct options){.config = DEMO_CONFIG, .data = DIGITS_DIR, .out = DEMO_OUT};
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread yet */
	while (!rc && (c = getopt_long(argc, argv, "hV", longs, NULL)) != -1)
		rc = parse_option(c, o);
	if (rc)
		return rc;
	if (optind < argc)
		return tool_usage("unknown argument %s", argv[optind]);
	if (o->answers && !o->models)
		return tool_usage("--answers needs --models");
	if (!o->answers)
		o->answers = DEMO_ANSWERS;
	return 0;
}

/* ---- over time -------------------------------------------------------------------- */

/* From inside hal_wait: the multiply-accumulates of a fold. */
static void on_fold(void *user, const struct hal_npu_fold *f)
{
	struct demo *d = user;

	for (uint32_t i = 0; i < TENANTS; i++)
		if (d->tenants[i].info.index == f->partition)
			history_add(&d->history, i, f->start, f->end,
				    (double)f->rows_used * f->cols_used * f->t);
}

/* What a tenant's queue has moved, over the time from the end of its job before. */
static void count_bytes(struct demo *d, uint32_t i)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	const struct run *r = &d->tenants[i].together;
	uint64_t bytes;

	if (r->end <= d->bytes_told_at[i] || hal_queue_get_stats(d->tenants[i].queue, &s))
		return;
	bytes = s.bytes_read + s.bytes_written;
	history_add(&d->history, TENANTS + i, d->bytes_told_at[i], r->end,
		    (double)(bytes - d->bytes_told[i]));
	d->bytes_told[i] = bytes;
	d->bytes_told_at[i] = r->end;
}

static void watch(struct demo *d)
{
	history_begin(&d->history, hal_device_get_time(d->dev));
	for (uint32_t i = 0; i < TENANTS; i++)
		d->bytes_told_at[i] = d->history.begin;
	d->npu->on_fold(hal_device_get_native(d->dev), on_fold, d);
	d->watched = true;
}

static void watch_no_more(struct demo *d)
{
	d->watched = false;
	d->npu->on_fold(hal_device_get_native(d->dev), NULL, NULL);
}

/* ---- progress --------------------------------------------------------------------- */

static double wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void show(const struct demo *d, const struct tenant *t, uint32_t count)
{
	fprintf(stderr, "%s%s:", d->tty ? "\r\033[K" : "", d->phase);
	for (uint32_t i = 0; i < count; i++) {
		fprintf(stderr, "  %s %" PRIu64, t[i].name, t[i].run->done);
		if (t[i].run->done < t[i].jobs)
			fprintf(stderr, "/%" PRIu64, t[i].jobs);
	}
	fprintf(stderr, "  | cycle %.2f M, %.0f s%s",
		(double)hal_device_get_time(d->dev) / 1e6, wall() - d->began,
		d->tty ? "" : "\n");
	fflush(stderr);
}

/* A line that changes on a terminal, a line every other second elsewhere. */
static int progress(void *user, const struct tenant *t, uint32_t count)
{
	struct demo *d = user;
	double now = wall();

	for (uint32_t i = 0; d->watched && i < TENANTS; i++)
		count_bytes(d, i);
	if (stop_signal)
		return STOPPED;
	if (now - d->told < (d->tty ? 0.1 : 2.0))
		return 0;
	d->told = now;
	show(d, t, count);
	return 0;
}

static int run(struct demo *d, const char *phase, struct tenant *t, uint32_t count)
{
	int rc;

	d->phase = phase;
	rc = tenants_run(t, count, progress, d);
	if (d->tty)
		fprintf(stderr, "\r\033[K");
	if (!rc) {
		bool tty = d->tty;

		d->tty = false; /* the phase's last line stays */
		show(d, t, count);
		d->tty = tty;
	}
	return rc;
}

/* ---- opening ---------------------------------------------------------------------- */

static int load_models(struct demo *d)
{
	for (uint32_t i = 0; i < TENANTS; i++) {
		if (work_network(&d->works[i], d->opt.models, plan[i].model,
				 d->opt.answers))
			return TOOL_FAILED;
		d->tenants[i] = (struct tenant){
			.name = plan[i].partition,
			.work = &d->works[i],
			.jobs = d->opt.images ? d->opt.images : MODEL_JOBS,
		};
	}
	return 0;
}

static int load_work(struct demo *d)
{
	char path[PATH_BYTES], why[DIGITS_WHY];

	snprintf(path, sizeof(path), "%s/test.images", d->opt.data);
	if (digits_images_load(path, &d->images, why))
		return tool_fail("%s", why);
	if (d->opt.images > d->images.count)
		return tool_fail("--images %u: %s has only %u", d->opt.images, path,
				 d->images.count);
	if (d->opt.images == 0)
		d->opt.images = d->images.count;
	for (uint32_t i = 0; i < TENANTS; i++) {
		struct work *w = &d->works[i];

		if (plan[i].network ? work_digits(w, d->opt.data, plan[i].network,
						  &d->images, d->opt.images)
				    : work_gemm(w))
			return TOOL_FAILED;
		d->tenants[i] = (struct tenant){
			.name = plan[i].partition,
			.work = w,
			.jobs = plan[i].network ? d->opt.images : 0,
		};
	}
	return 0;
}

static int open_device(struct demo *d)
{
	char config[PATH_BYTES], engine[64];
	const char *options[] = {config, d->engine ? engine : NULL, NULL};

	snprintf(config, sizeof(config), "hal.config=%s", d->opt.config);
	snprintf(engine, sizeof(engine), "backend.npu.engine=%s",
		 d->engine ? d->engine : "");
	if (hal_open(NULL, options, &d->dev))
		return tool_fail("cannot open the device: %s", hal_last_error());
	d->info.size = sizeof(d->info);
	if (hal_device_get_info(d->dev, &d->info))
		return tool_fail("cannot query the device: %s", hal_last_error());
	d->npu = hal_device_get_extension(d->dev, "npu");
	if (!d->npu)
		return tool_fail("%s selects %s (%s), which is not an NPU; write device "
				 "= npu:0 in its section [hal]",
				 d->opt.config, d->info.backend, d->info.name);
	for (uint32_t i = 0; i < TENANTS; i++)
		if (tenant_open(&d->tenants[i], d->dev))
			return TOOL_FAILED;
	return 0;
}

static int close_device(struct demo *d)
{
	for (uint32_t i = 0; i < TENANTS; i++)
		tenant_close(&d->tenants[i]);
	if (hal_close(d->dev))
		return tool_fail("cannot close the device: %s", hal_last_error());
	d->dev = NULL;
	return 0;
}

static int make_out(const char *out)
{
	struct stat s;

	if (mkdir(out, 0777) && errno != EEXIST)
		return tool_fail("--out \"%s\": cannot create the folder: %s", out,
				 hal_strerror(errno));
	if (stat(out, &s) == 0 && !S_ISDIR(s.st_mode))
		return tool_fail("--out \"%s\": not a folder", out);
	if (access(out, W_OK | X_OK))
		return tool_fail("--out \"%s\": the folder is not writable: %s", out,
				 hal_strerror(errno));
	return 0;
}

/* Is there a line from edge to edge that crosses no tenant and has some on both sides? */
static bool cut_along(const struct demo *d, bool rows)
{
	uint32_t length = rows ? d->info.unit_rows : d->info.unit_cols;

	for (uint32_t at = 1; at < length; at++) {
		uint32_t before = 0, after = 0;

		for (uint32_t i = 0; i < TENANTS; i++) {
			const struct hal_partition_info *p = &d->tenants[i].info;
			uint32_t from = rows ? p->row : p->col;
			uint32_t to = from + (rows ? p->rows : p->cols);

			before += to <= at;
			after += from >= at;
		}
		if (before && after && before + after == TENANTS)
			return true;
	}
	return false;
}

/* ---- running ---------------------------------------------------------------------- */

static int count_macs(struct demo *d, bool before)
{
	void *native = hal_device_get_native(d->dev);

	for (uint32_t i = 0; i < TENANTS; i++) {
		struct tenant *t = &d->tenants[i];
		struct hal_npu_counters c = HAL_INIT(hal_npu_counters);

		if (d->npu->counters(native, t->info.index, &c))
			return tool_fail("cannot read the counters: %s",
					 hal_last_error());
		if (before)
			t->macs_before = c.macs;
		else
			t->macs_counted = c.macs - t->macs_before;
	}
	return 0;
}

/* MACs of each PE while all ran: the difference of two readings. */
static int count_busy(struct demo *d, bool before)
{
	uint32_t count = d->info.unit_rows * d->info.unit_cols;
	uint64_t *now = calloc(count, sizeof(*now));
	int rc = now ? 0 : tool_fail("out of memory for counters");

	if (!rc && d->npu->pe_busy(hal_device_get_native(d->dev), now, count) < 0)
		rc = tool_fail("cannot read the elements' counters: %s",
			       hal_last_error());
	if (!rc && before) {
		d->busy = now;
		d->busy_cycles = hal_device_get_time(d->dev);
		return 0;
	}
	if (!rc) {
		for (uint32_t i = 0; i < count; i++)
			d->busy[i] = now[i] - d->busy[i];
		d->busy_cycles = hal_device_get_time(d->dev) - d->busy_cycles;
	}
	free(now);
	return rc;
}

static int run_together(struct demo *d, const char *trace)
{
	struct sigaction before[STOPS];
	int rc;

	if (count_macs(d, true) || count_busy(d, true))
		return TOOL_FAILED;
	watch(d);
	if (hal_trace_start(d->dev, trace))
		return tool_fail("%s", hal_last_error());
	catch_signals(before);
	rc = run(d, "side by side", d->tenants, TENANTS);
	watch_no_more(d);
	if (hal_trace_stop(d->dev))
		rc = tool_fail("%s", hal_last_error());
	release_signals(before);
	if (rc == 0 && stop_signal)
		rc = STOPPED;
	if (rc == STOPPED)
		tool_note("stopped by signal %d; %s contains everything up to that point",
			  (int)stop_signal, trace);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < TENANTS; i++)
		d->tenants[i].submitted_together = d->tenants[i].submitted;
	return count_macs(d, false) || count_busy(d, false) ? TOOL_FAILED : 0;
}

/* Each tenant's first jobs again, on a device as new and laid out as before, where nobody
 * else has work: what differs then is due to the neighbours. */
static int run_alone(struct demo *d)
{
	for (uint32_t i = 0; i < TENANTS; i++) {
		struct tenant *t = &d->tenants[i];
		uint64_t all = t->jobs;
		int rc;

		t->jobs = d->opt.alone    ? d->opt.alone
			  : d->opt.models ? MODEL_ALONE
					  : ALONE_JOBS;
		if (t->jobs > t->together.done)
			t->jobs = t->together.done;
		rc = close_device(d) || open_device(d) ? TOOL_FAILED
						       : run(d, "alone", t, 1);
		t->jobs = all;
		if (rc)
			return TOOL_FAILED;
	}
	return 0;
}

/* Each tenant's first jobs, all side by side, on the RTL in Verilator. */
static int run_on_rtl(struct demo *d)
{
	struct demo *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return tool_fail("out of memory for a second device");
	d->rtl = r;
	r->opt = d->opt;
	r->engine = "rtl";
	r->began = d->began;
	r->told = d->told;
	r->tty = d->tty;
	for (uint32_t i = 0; i < TENANTS; i++) {
		uint64_t jobs = d->opt.models ? MODEL_RTL_JOBS : RTL_JOBS;

		if (jobs > d->tenants[i].together.done)
			jobs = d->tenants[i].together.done;
		r->tenants[i] = (struct tenant){
			.name = plan[i].partition, .work = &d->works[i], .jobs = jobs};
	}
	rc = close_device(d) || open_device(r)
		     ? TOOL_FAILED
		     : run(r, "on the RTL", r->tenants, TENANTS);
	if (close_device(r))
		rc = TOOL_FAILED;
	return rc;
}

/* The first jobs again, each tenant a program of its own: blue is killed half-way, and
 * gold is hostile. */
static int run_processes(struct demo *d)
{
	static const enum process_role roles[TENANTS] = {
		PROCESS_WORKS, PROCESS_WORKS, PROCESS_IS_KILLED, PROCESS_IS_HOSTILE};

	if (close_device(d))
		return TOOL_FAILED;
	for (uint32_t i = 0; i < TENANTS; i++) {
		const struct tenant *t = &d->tenants[i];
		uint64_t jobs = d->opt.models ? MODEL_ALONE : PROCESS_JOBS;

		if (jobs > t->together.done)
			jobs = t->together.done;
		d->processes[i] = (struct process){.partition = plan[i].partition,
						   .work = t->work,
						   .role = roles[i],
						   .jobs = (uint32_t)jobs};
	}
	return processes_run(DEMO_HALD, d->opt.config, d->processes, TENANTS);
}

/* ---- report ----------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The smallest value that percent of them do not exceed. */
static uint64_t percentile(const struct run *r, uint32_t percent)
{
	uint64_t *sorted = malloc(r->done * sizeof(*sorted)), value = 0;

	if (sorted && r->done) {
		memcpy(sorted, r->cycles, r->done * sizeof(*sorted));
		qsort(sorted, r->done, sizeof(*sorted), by_size);
		value = sorted[(r->done * percent + 99) / 100 - 1];
	}
	free(sorted);
	return value;
}

/* Useful multiply-accumulates for each PE and cycle the tenant had. */
static double mac_use(const struct tenant *t)
{
	double cycles = (double)(t->together.end - t->together.begin);

	return (double)(t->together.done * t->work->macs) / (cycles * t->info.units);
}

/* Cycles of the same jobs, side by side over alone. */
static double slowdown(const struct tenant *t)
{
	uint64_t together = 0, alone = 0;

	for (uint64_t i = 0; i < t->alone.done; i++) {
		together += t->together.cycles[i];
		alone += t->alone.cycles[i];
	}
	return alone ? (double)together / (double)alone : 0;
}

static void print_rule(void)
{
	printf("-------------------------------------------------------------------------"
	       "-----"
	       "-------------------------------\n");
}

static void print_table(const struct demo *d)
{
	printf("%-8s %-14s %-18s %9s %10s %8s %8s %8s %10s %10s\n", "tenant", "runs",
	       "rows x columns", "done", "accuracy", "p50", "p99", "MAC use", "slowdown",
	       "wrong bits");
	printf("%-8s %-14s %-18s %9s %10s %8s %8s %8s %10s %10s\n", "", "",
	       "at row, column", "", "", "cycles", "cycles", "", "to alone", "");
	print_rule();
	for (uint32_t i = 0; i < TENANTS; i++) {
		const struct tenant *t = &d->tenants[i];
		char where[32], accuracy[16] = "-";

		snprintf(where, sizeof(where), "%u x %u at %u, %u", t->info.rows,
			 t->info.cols, t->info.row, t->info.col);
		if (t->classified)
			snprintf(accuracy, sizeof(accuracy), "%.2f %%",
				 100.0 * (double)t->right / (double)t->classified);
		printf("%-8s %-14s %-18s %9" PRIu64 " %10s %8" PRIu64 " %8" PRIu64
		       " %6.1f %% %10.4f %10" PRIu64 "\n",
		       t->name, t->work->title, where, t->together.done, accuracy,
		       percentile(&t->together, 50), percentile(&t->together, 99),
		       100 * mac_use(t), slowdown(t), t->mismatched_bits);
	}
	print_rule();
}

/* Jobs of a program that took another number of cycles than in one process. */
static uint64_t other_cycles(const struct demo *d, uint32_t i)
{
	const struct process_told *told = d->processes[i].told;
	const struct run *together = &d->tenants[i].together;
	uint64_t other = 0;

	/* What was still in flight at the end is done, too. */
	for (uint64_t k = 0; k < told->done && k < together->done; k++)
		other += told->cycles[k] != together->cycles[k];
	return other;
}

/* What became of a program. */
static void tell_fate(const struct process *p, char *text, size_t size)
{
	static const char *const fates[] = {"works", "killed (SIGKILL) half-way"};
	const struct process_told *told = p->told;

	if (p->role != PROCESS_IS_HOSTILE)
		snprintf(text, size, "%s", fates[p->role]);
	else
		snprintf(text, size,
			 "hostile: %" PRIu64 " broken programs (%" PRIu64
			 " refused, %" PRIu64 " failed), %" PRIu64 " messages",
			 told->programs, told->refused, told->faults, told->messages);
}

/* The programs, and whether the others have noticed what two of them did. */
static int print_processes(const struct demo *d)
{
	uint64_t changed = 0;
	int rc = 0;

	printf("\nFour programs on the same array, which hald serves:\n");
	printf("%-8s %-14s %9s %12s %10s  %s\n", "program", "runs", "done",
	       "other cycles", "wrong bits", "what it is");
	print_rule();
	for (uint32_t i = 0; i < TENANTS; i++) {
		const struct process *p = &d->processes[i];
		uint64_t other = other_cycles(d, i);
		char fate[96];

		tell_fate(p, fate, sizeof(fate));
		printf("%-8s %-14s %9" PRIu64 " %12" PRIu64 " %10" PRIu64 "  %s\n",
		       p->partition, p->work->title, p->told->done, other,
		       p->told->mismatched_bits, fate);
		if (p->role == PROCESS_IS_HOSTILE)
			continue;
		changed += other;
		if (p->told->mismatched_bits || !p->told->done)
			rc = tool_fail("%s: others have changed its answers",
				       p->partition);
	}
	print_rule();
	if (changed)
		printf("%" PRIu64 " jobs of red, green and blue took another number of "
		       "cycles than in one process.\n",
		       changed);
	else if (!rc)
		printf("The jobs of red, green and blue have the same answers, and took "
		       "the same number of cycles, as in one\nprocess.  gold's broken "
		       "programs write where they may: into its own memory.\n");
	return rc;
}

static int draw(struct demo *d, const char *path)
{
	uint32_t count = d->info.unit_rows * d->info.unit_cols;
	double *busy = calloc(count, sizeof(*busy));
	struct picture_tenant tenants[TENANTS];
	struct picture_program programs[TENANTS];
	struct picture p = {.rows = d->info.unit_rows,
			    .cols = d->info.unit_cols,
			    .busy = busy,
			    .tenants = tenants,
			    .tenant_count = TENANTS,
			    .programs = programs,
			    .begin = d->history.begin,
			    .end = d->history.begin + d->busy_cycles,
			    .width = d->history.width};
	const char *why;

	if (!busy)
		return tool_fail("%s: out of memory", path);
	for (uint32_t i = 0; i < count; i++)
		busy[i] = (double)d->busy[i] / (double)d->busy_cycles;
	/* From sums to what there was a cycle. */
	history_rates(&d->history, p.end);
	for (uint32_t i = 0; i < TENANTS; i++) {
		const struct tenant *t = &d->tenants[i];
		struct picture_tenant *q = &tenants[i];

		*q = (struct picture_tenant){.name = t->name,
					     .used = d->history.amount[i],
					     .bytes = d->history.amount[TENANTS + i],
					     .row = t->info.row,
					     .col = t->info.col,
					     .rows = t->info.rows,
					     .cols = t->info.cols};
		snprintf(q->lines[0], sizeof(q->lines[0]), "%u x %u at row %u, column %u",
			 t->info.rows, t->info.cols, t->info.row, t->info.col);
		snprintf(q->lines[1], sizeof(q->lines[1]), "%" PRIu64 " x %s",
			 t->together.done, t->work->title);
		snprintf(q->lines[2], sizeof(q->lines[2]),
			 "%" PRIu64 " cycles each (p50)", percentile(&t->together, 50));
		snprintf(q->lines[3], sizeof(q->lines[3]),
			 "MAC use %.1f %%, slowdown %.4f", 100 * mac_use(t), slowdown(t));
	}
	for (uint32_t i = 0; i < TENANTS; i++) {
		const struct process *q = &d->processes[i];

		programs[i] =
			(struct picture_program){.begin = q->told->begin,
						 .cycles = q->told->cycles,
						 .count = q->told->done,
						 .killed = q->role == PROCESS_IS_KILLED};
		tell_fate(q, programs[i].what, sizeof(programs[i].what));
	}
	snprintf(p.title, sizeof(p.title), "One array, %u tenants side by side", TENANTS);
	snprintf(p.subtitle, sizeof(p.subtitle),
		 "Colour: owner of the processing element.  Number and intensity: %% of "
		 "%.2f M cycles in which it multiplied",
		 (double)d->busy_cycles / 1e6);
	why = picture_write(&p, path);
	free(busy);
	return why ? tool_fail("%s: %s", path, why) : 0;
}

static void print_comparison(const struct demo *d)
{
	uint64_t jobs = 0, other = 0;

	for (uint32_t i = 0; i < TENANTS; i++) {
		const struct tenant *t = &d->tenants[i];

		for (uint64_t k = 0; k < t->alone.done; k++)
			other += t->alone.cycles[k] != t->together.cycles[k];
		jobs += t->alone.done;
	}
	if (other)
		printf("%" PRIu64 " of %" PRIu64
		       " jobs took another number of cycles alone than side by side.\n",
		       other, jobs);
	else
		printf("%" PRIu64 " jobs repeated alone: each took exactly the same "
		       "number of cycles as side by side.\n",
		       jobs);
}

/* Which machine this was, and whether the RTL takes the same cycles. */
static int print_engine(const struct demo *d)
{
	uint64_t jobs = 0, other = 0;

	if (!d->rtl) {
		printf("All of it ran on the RTL, in Verilator.\n");
		return 0;
	}
	for (uint32_t i = 0; i < TENANTS; i++) {
		const struct tenant *t = &d->tenants[i], *r = &d->rtl->tenants[i];

		for (uint64_t k = 0; k < r->jobs; k++)
			other += r->together.cycles[k] != t->together.cycles[k];
		jobs += r->jobs;
	}
	if (other)
		return tool_fail("%" PRIu64 " of %" PRIu64
				 " jobs took another number of cycles on the RTL",
				 other, jobs);
	printf("This ran on a model in C (engine=fast).  The RTL, in Verilator, took "
	       "exactly "
	       "the same number of cycles\nfor the first %" PRIu64
	       " jobs, side by side.\n",
	       jobs);
	return 0;
}

static uint64_t wrong_bits(const struct demo *d)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < TENANTS; i++) {
		bits += d->tenants[i].mismatched_bits;
		if (d->rtl)
			bits += d->rtl->tenants[i].mismatched_bits;
	}
	return bits;
}

/* Bits that are wrong, and MACs that the device counted otherwise than M * N * K. */
static int verdict(const struct demo *d)
{
	uint64_t bits = wrong_bits(d);
	int rc = 0;

	for (uint32_t i = 0; i < TENANTS; i++) {
		const struct tenant *t = &d->tenants[i];
		uint64_t macs = t->submitted_together * t->work->macs;

		if (t->macs_counted != macs) {
			rc = tool_fail(
				"%s: the device counted %" PRIu64
				" multiply-accumulates, but its jobs have %" PRIu64,
				t->name, t->macs_counted, macs);
		}
	}
	if (bits) {
		rc = tool_fail("%" PRIu64 " bits differ from the expected answers", bits);
	} else {
		printf("Every answer equals %s bit by bit.\n",
		       d->opt.models ? "TensorFlow Lite's" : "the C reference");
	}
	return rc;
}

static void print_figures(const struct demo *d)
{
	double accuracy = 0;

	for (uint32_t i = 0; i < TENANTS; i++) {
		const struct tenant *t = &d->tenants[i];

		if (plan[i].network && strcmp(plan[i].network, "large") == 0)
			accuracy = (double)t->right / (double)t->classified;
	}
	printf("figure digits.accuracy %.6f\n", accuracy);
	printf("figure digits.mismatched_bits %" PRIu64 "\n", wrong_bits(d));
	printf("figure demo.seconds %.1f\n", wall() - d->began);
}

/* ---- main ------------------------------------------------------------------------- */

static void close_all(struct demo *d)
{
	close_device(d);
	for (uint32_t i = 0; i < TENANTS; i++) {
		if (d->rtl)
			tenant_free(&d->rtl->tenants[i]);
		tenant_free(&d->tenants[i]);
		work_free(&d->works[i]);
	}
	processes_free(d->processes, TENANTS);
	free(d->rtl);
	digits_images_free(&d->images);
	free(d->busy);
}

static int demo(struct demo *d)
{
	char trace[PATH_BYTES], picture[PATH_BYTES];
	int rc;

	snprintf(trace, sizeof(trace), "%s/demo-trace.json", d->opt.out);
	snprintf(picture, sizeof(picture), "%s/array.png", d->opt.out);
	if (make_out(d->opt.out) || (d->opt.models ? load_models(d) : load_work(d)) ||
	    open_device(d))
		return TOOL_FAILED;
	printf("%s (%s)\n", d->info.name, d->opt.config);
	printf("%u tenants; %s\n", TENANTS,
	       cut_along(d, true) || cut_along(d, false)
		       ? "a straight cut could separate the tenants of this map"
		       : "no straight cut separates these tenants without crossing one "
			 "of them");
	fflush(stdout);
	rc = run_together(d, trace);
	if (!rc)
		rc = run_alone(d);
	if (!rc && strstr(d->info.name, "engine fast"))
		rc = run_on_rtl(d);
	if (!rc)
		rc = run_processes(d);
	if (rc)
		return rc;
	putchar('\n');
	print_table(d);
	print_comparison(d);
	rc = print_engine(d);
	if (verdict(d) || print_processes(d))
		rc = TOOL_FAILED;
	if (draw(d, picture))
		rc = TOOL_FAILED;
	printf("trace    %s  (open it at https://ui.perfetto.dev)\n", trace);
	printf("picture  %s  (any image viewer: xdg-open %s)\n", picture, picture);
	if (d->opt.figures && !d->opt.models)
		print_figures(d);
	return rc;
}

int main(int argc, char **argv)
{
	struct demo d = {0};
	int rc = parse_options(argc, argv, &d.opt);

	if (rc)
		return tool_end(rc < 0 ? rc : 0);
	d.began = wall();
	d.told = d.began;
	d.tty = isatty(STDERR_FILENO);
	rc = demo(&d);
	if (rc == STOPPED)
		end_by_signal();
	close_all(&d);
	return tool_end(rc);
}
