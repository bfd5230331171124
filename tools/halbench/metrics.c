/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - what a run was like, in numbers; see metrics.h. */
#include "metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t percentile(const uint64_t *sorted, uint32_t count, uint32_t p)
{
	uint64_t rank = ((uint64_t)count * p + 999) / 1000;

	if (count == 0)
		return 0;
	return sorted[rank > 0 ? rank - 1 : 0];
}

static void count_ends(const struct task_run *t, uint64_t window_ns, uint64_t slo_ns,
		       uint64_t *latencies, struct task_numbers *n)
{
	double sum = 0;

	for (uint32_t i = 0; i < t->count; i++) {
		latencies[i] = t->requests[i].end_ns - t->requests[i].arrive_ns;
		sum += (double)latencies[i];
		n->ended += t->requests[i].end_ns <= window_ns;
		n->met += slo_ns != 0 && latencies[i] <= slo_ns;
	}
	n->arrived = t->count;
	n->mean_ns = t->count != 0 ? sum / t->count : NAN;
}

int task_measure(const struct task_run *t, uint64_t window_ns, uint64_t slo_ns,
		 const struct task_numbers *alone, struct task_numbers *n)
{
	uint64_t *latencies = calloc((size_t)t->count + 1, sizeof(*latencies));
	double seconds = (double)window_ns / 1e9;

	if (latencies == NULL)
		return tool_fail("out of memory");
	memset(n, 0, sizeof(*n));
	count_ends(t, window_ns, slo_ns, latencies, n);
	qsort(latencies, t->count, sizeof(*latencies), by_size);
	n->p50_ns = percentile(latencies, t->count, 500);
	n->p99_ns = percentile(latencies, t->count, 990);
	n->p999_ns = percentile(latencies, t->count, 999);
	n->max_ns = percentile(latencies, t->count, 1000);
	free(latencies);
	n->throughput = (double)n->ended / seconds;
	n->slo = n->goodput = n->p99_ratio = n->slowdown = NAN;
	if (slo_ns != 0 && t->count != 0)
		n->slo = (double)n->met / t->count;
	n->goodput = (double)n->met / seconds;
	if (alone != NULL && t->count != 0 && alone->arrived != 0) {
		n->p99_ratio = (double)n->p99_ns / (double)alone->p99_ns;
		n->slowdown = n->mean_ns / alone->mean_ns;
	}
	return 0;
}

/* ANTT and STP of Eyerman and Eeckhout, Jain's index of the same progress. */
static void compare(const struct setup *s, struct numbers *n)
{
	double slowdowns = 0, progress = 0, squares = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->load->count; i++) {
		double slowdown = n->tasks[i].slowdown;

		if (isnan(slowdown))
			continue;
		slowdowns += slowdown;
		progress += 1 / slowdown;
		squares += 1 / (slowdown * slowdown);
		count++;
	}
	n->antt = count != 0 ? slowdowns / count : NAN;
	n->stp = progress;
	n->jain = count != 0 ? progress * progress / (count * squares) : NAN;
}

static void add_task(const struct load_task *task, struct task_numbers *t,
		     struct numbers *n, uint64_t *met, uint64_t *arrived)
{
	n->total_throughput += t->throughput;
	if (!task->critical) {
		t->goodput = NAN;
		n->be_throughput += t->throughput;
		return;
	}
	n->goodput += t->goodput;
	*met += t->met;
	*arrived += t->arrived;
	/* fmin and fmax pass over what is no number. */
	n->slo_worst = fmin(n->slo_worst, t->slo);
	n->p99_ratio = fmax(n->p99_ratio, t->p99_ratio);
}

int run_measure(const struct setup *s, const struct run *r, const uint64_t *slo_ns,
		const struct task_numbers *alone, struct numbers *n)
{
	double units = (double)r->info.unit_rows * r->info.unit_cols, work = 0;
	uint64_t met = 0, arrived = 0;

	memset(n, 0, sizeof(*n));
	n->slo_worst = n->p99_ratio = NAN;
	n->tasks = calloc(s->load->count, sizeof(*n->tasks));
	if (n->tasks == NULL)
		return tool_fail("out of memory");
	for (uint32_t i = 0; i < s->load->count; i++) {
		const struct load_task *task = &s->load->tasks[i];

		if (task_measure(&r->tasks[i], r->window_ns,
				 task->critical ? slo_ns[i] : 0, &alone[i],
				 &n->tasks[i]) != 0)
			return TOOL_FAILED;
		add_task(task, &n->tasks[i], n, &met, &arrived);
		work += (double)n->tasks[i].ended * (double)r->tasks[i].work;
	}
	n->slo = arrived != 0 ? (double)met / (double)arrived : NAN;
	n->use = work / (units * (double)r->window_ns);
	compare(s, n);
	return 0;
}

void numbers_free(struct numbers *n)
{
	free(n->tasks);
	n->tasks = NULL;
}
