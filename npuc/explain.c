/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - halrun --explain: where the cycles of each layer go.
 *
 * Each layer has a kernel of its own, which runs twice.  The columns come from the second
 * launch: from the slot's counters, which count each cycle once (npu_counters.sv), from
 * the end of its last fold, and from the end of the launch.
 */
#include "explain.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#define RUNS 2u /* the first meets an empty TLB */

static const struct column {
	const char *name, *text;
} columns[CAUSES] = {
	[CAUSE_FULL] = {"FULL", "counted: multiply-accumulates / PEs, rounded up"},
	[CAUSE_DEPTHWISE] =
		{"DEPTHWISE",
		 "counted: rows of activations with idle PEs, depthwise layers: "
		 "a column of PEs holds the window of one channel"},
	[CAUSE_PARTIAL] =
		{"PARTIAL",
		 "counted: the same in other layers, which do not fill all rows "
		 "or columns of PEs"},
	[CAUSE_VECTOR] = {"VECTOR",
			  "counted: the vector unit adds, pools, looks up, copies"},
	[CAUSE_INPUT] = {"INPUT", "counted: a fold waits for activations"},
	[CAUSE_WEIGHTS] = {"WEIGHTS", "counted: a fold waits for weights or parameters"},
	[CAUSE_ENTRY] =
		{"ENTRY",
		 "model: weights enter the array, one row of PEs a cycle, and the "
		 "fold has too few rows of activations to hide it"},
	[CAUSE_STORES] = {"STORES", "counted: a tile waits for an output buffer; cycles "
				    "after the last fold, if the layer has only folds"},
	[CAUSE_START] = {"START",
			 "the rest: start of a launch, gaps between operations, vector "
			 "operations that wait for memory"},
};

/* ---- causes ----------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

int explain_divide(const struct explain_launch *l, uint32_t rows, uint32_t cols,
		   const struct explain_cycles *parts, struct explain_cycles *out)
{
#define COUNTED(field) (l->after.field - l->before.field)
	uint64_t units = (uint64_t)rows * cols, streamed = COUNTED(rows);
	uint64_t stalls = COUNTED(stall_a) + COUNTED(stall_w) + COUNTED(stall_out);
	uint64_t working = COUNTED(active) + stalls + COUNTED(stall_seq);
	uint64_t enter = most(COUNTED(folds) * rows, streamed) - streamed, idle, rest;

	*out = (struct explain_cycles){.macs = COUNTED(macs), .cycles = l->cycles};
	if (working + COUNTED(idle) != COUNTED(cycles) || streamed > COUNTED(active) ||
	    out->macs > streamed * units || COUNTED(active) + stalls > l->cycles ||
	    l->cycles > working)
		return -1;
	out->of[CAUSE_FULL] = (out->macs + units - 1) / units;
	idle = streamed - out->of[CAUSE_FULL];
	out->of[CAUSE_DEPTHWISE] = least(parts->of[CAUSE_DEPTHWISE], idle);
	out->of[CAUSE_PARTIAL] = idle - out->of[CAUSE_DEPTHWISE];
	out->of[CAUSE_VECTOR] = COUNTED(active) - streamed;
	out->of[CAUSE_INPUT] = COUNTED(stall_a);
	out->of[CAUSE_WEIGHTS] = COUNTED(stall_w);
	/* stall_seq without the commands that take the time before and after. */
	rest = l->cycles - COUNTED(active) - stalls;
	out->of[CAUSE_STORES] = out->of[CAUSE_VECTOR] ? 0 : least(l->tail, rest);
	rest -= out->of[CAUSE_STORES];
	out->of[CAUSE_STORES] += COUNTED(stall_out);
	out->of[CAUSE_ENTRY] = least(most(enter, parts->of[CAUSE_ENTRY]), rest);
	out->of[CAUSE_START] = rest - out->of[CAUSE_ENTRY];
	return 0;
#undef COUNTED
}

/* ---- launches --------------------------------------------------------------------- */

struct explain {
	const struct npuc_program *p;
	const struct device *d;
	const struct hal_npu_extension *npu;
	void *native;
	uint32_t partition; /* its number for npu */
	struct hal_completions *ring;
	struct hal_queue *queue;
	struct npuc_run *run;
	uint64_t fold_end_ns; /* of the last fold of this launch; 0: none yet */
};

static void on_fold(void *user, const struct hal_npu_fold *fold)
{
	struct explain *e = user;

	if (fold->partition == e->partition)
		e->fold_end_ns = fold->end;
}

static uint64_t cycles_of(const struct explain *e, uint64_t ns)
{
	return (uint64_t)llround((double)ns * (double)e->d->info.clock_hz / 1e9);
}

/* Submit the kernel, wait for its end, and return the time of that in *end_ns. */
static int run_kernel(struct explain *e, const char *kernel, uint64_t *end_ns)
{
	struct hal_fault_info fault = HAL_INIT(hal_fault_info);
	struct hal_completion end;
	struct hal_point done;
	char why[NPUC_WHY];

	if (npuc_run_submit(e->run, kernel, NULL, &done, why))
		return tool_fail("%s", why);
	/* The launch that gives variables their first values may end before it. */
	do {
		if (hal_completions_read(e->ring, &end, 1, HAL_FOREVER) < 0)
			return tool_fail_hal();
		if (end.status && hal_queue_get_fault(e->queue, &fault) < 0)
			return tool_fail_hal();
		if (end.status)
			return tool_fail("%s", fault.text);
	} while (end.value != done.value);
	*end_ns = end.end_ns;
	return 0;
}

static int launch_once(struct explain *e, const char *kernel, struct explain_launch *l)
{
	struct hal_stats before = HAL_INIT(hal_stats), after = HAL_INIT(hal_stats);
	uint64_t end_ns = 0;
	int rc;

	*l = (struct explain_launch){.before = HAL_INIT(hal_npu_counters),
				     .after = HAL_INIT(hal_npu_counters)};
	e->fold_end_ns = 0;
	if (hal_queue_get_stats(e->queue, &before) < 0 ||
	    e->npu->counters(e->native, e->partition, &l->before) < 0)
		return tool_fail_hal();
	rc = run_kernel(e, kernel, &end_ns);
	if (rc)
		return rc;
	if (hal_queue_get_stats(e->queue, &after) < 0 ||
	    e->npu->counters(e->native, e->partition, &l->after) < 0)
		return tool_fail_hal();
	l->cycles = cycles_of(e, after.busy_ns - before.busy_ns);
	if (e->fold_end_ns && e->fold_end_ns < end_ns)
		l->tail = cycles_of(e, end_ns - e->fold_end_ns);
	return 0;
}

/* Divide the cycles of a kernel's second launch.  engine=golden, which has no model of
 * time, counts no lost cycle, not even at the start: it is refused. */
static int launch(struct explain *e, const char *kernel,
		  const struct explain_cycles *parts, struct explain_cycles *out)
{
	const struct hal_device_info *info = &e->d->info;
	struct explain_launch l;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < RUNS; i++)
		rc = launch_once(e, kernel, &l);
	if (!rc && l.after.stall_seq == l.before.stall_seq)
		return tool_fail("--explain: %s does not count where cycles go; select "
				 "engine=fast or engine=rtl",
				 info->name);
	if (!rc && explain_divide(&l, info->unit_rows, info->unit_cols, parts, out))
		rc = tool_fail("%s: the device's counters do not add up to the %" PRIu64
			       " cycles of the launch",
			       kernel, l.cycles);
	return rc;
}

static void add(struct explain_cycles *to, const struct explain_cycles *c)
{
	to->macs += c->macs;
	to->cycles += c->cycles;
	for (uint32_t i = 0; i < CAUSES; i++)
		to->of[i] += c->of[i];
}

/* Launch each layer alone, then the whole program, for the element after the last. */
static int launch_all(struct explain *e, struct explain_cycles *out)
{
	const struct explain_cycles other = {0},
				    depthwise = {.of[CAUSE_DEPTHWISE] = UINT64_MAX};
	const struct npuc_program *p = e->p;
	struct explain_cycles sum = {0};
	int rc = 0;

	for (uint32_t i = 0; !rc && i < p->layer_count; i++) {
		const struct npuc_layer *l = &p->layers[i];
		bool is = strcmp(l->operator_name, "DEPTHWISE_CONV_2D") == 0;

		if (l->kernel[0])
			rc = launch(e, l->kernel, is ? &depthwise : &other, &out[i]);
		add(&sum, &out[i]);
	}
	if (!rc)
		rc = launch(e, "run", &sum, &out[p->layer_count]);
	/* What is shown is the network's, not all that the device multiplies. */
	for (uint32_t i = 0; i < p->layer_count; i++)
		out[i].macs = p->layers[i].macs;
	out[p->layer_count].macs = p->macs;
	return rc;
}

/* ---- the table -------------------------------------------------------------------- */

struct widths {
	int operator_name, shape;
};

static struct widths find_widths(const struct npuc_program *p)
{
	struct widths w = {(int)strlen("OPERATOR"), (int)strlen("SHAPE")};

	for (uint32_t i = 0; i < p->layer_count; i++) {
		int name = (int)strlen(p->layers[i].operator_name);
		int shape = (int)strlen(p->layers[i].shape);

		w.operator_name = name > w.operator_name ? name : w.operator_name;
		w.shape = shape > w.shape ? shape : w.shape;
	}
	return w;
}

static void print_heading(struct widths w)
{
	printf("%5s  %-*s  %-*s %10s %9s %6s", "LAYER", w.operator_name, "OPERATOR",
	       w.shape, "SHAPE", "MACS", "CYCLES", "USE");
	for (uint32_t i = 0; i < CAUSES; i++)
		printf(" %9s", columns[i].name);
	printf("\n");
}

/* Print them as signed: overlap is negative. */
static void print_numbers(const struct explain_cycles *c, uint64_t units)
{
	if (c->macs)
		printf(" %10" PRIu64 " %9" PRId64 " %5.1f%%", c->macs, (int64_t)c->cycles,
		       100.0 * (double)c->macs / ((double)c->cycles * (double)units));
	else
		printf(" %10u %9" PRId64 " %6s", 0, (int64_t)c->cycles, "-");
	for (uint32_t i = 0; i < CAUSES; i++)
		printf(" %9" PRId64, (int64_t)c->of[i]);
	printf("\n");
}

static void print_sum(const char *name, struct widths w, const struct explain_cycles *c,
		      uint64_t units)
{
	printf("%5s  %-*s", "", w.operator_name + 2 + w.shape, name);
	print_numbers(c, units);
}

/* Subtract the layers one by one from the whole program, modulo 2^64. */
static struct explain_cycles difference(const struct explain_cycles *whole,
					const struct explain_cycles *layers)
{
	struct explain_cycles d = {.macs = whole->macs - layers->macs,
				   .cycles = whole->cycles - layers->cycles};

	for (uint32_t i = 0; i < CAUSES; i++)
		d.of[i] = whole->of[i] - layers->of[i];
	return d;
}

static void print_table(const struct explain *e, const struct explain_cycles *layers)
{
	const struct hal_device_info *info = &e->d->info;
	const struct npuc_program *p = e->p;
	const struct explain_cycles *whole = &layers[p->layer_count];
	uint64_t units = (uint64_t)info->unit_rows * info->unit_cols;
	struct explain_cycles sum = {0}, overlap;
	struct widths w = find_widths(p);

	print_heading(w);
	for (uint32_t i = 0; i < p->layer_count; i++) {
		printf("%5u  %-*s  %-*s", i, w.operator_name, p->layers[i].operator_name,
		       w.shape, p->layers[i].shape);
		print_numbers(&layers[i], units);
		add(&sum, &layers[i]);
	}
	overlap = difference(whole, &sum);
	print_sum("all layers, one by one", w, &sum, units);
	print_sum("overlap of layers", w, &overlap, units);
	print_sum("the whole program", w, whole, units);
	printf("measured on %s, %u x %u\n"
	       "CYCLES is the sum of the columns after USE:\n",
	       info->name, info->unit_rows, info->unit_cols);
	for (uint32_t i = 0; i < CAUSES; i++)
		printf("  %-9s  %s\n", columns[i].name, columns[i].text);
	if (p->host[0])
		printf("%s\n", p->host);
}

/* ---- all of it -------------------------------------------------------------------- */

static int open_run(struct explain *e, const struct feed *feed)
{
	struct hal_partition_info part = HAL_INIT(hal_partition_info);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	char why[NPUC_WHY];

	if (hal_partition_get_info(e->d->part, &part) < 0 ||
	    hal_completions_create(e->d->dev, 4, &e->ring) < 0)
		return tool_fail_hal();
	e->partition = part.index;
	queue.completions = e->ring;
	if (hal_queue_create(e->d->part, &queue, &e->queue) < 0)
		return tool_fail_hal();
	if (npuc_run_open_on(e->d->dev, e->d->part, e->queue, e->p, &e->run, why))
		return tool_fail("%s", why);
	e->npu->on_fold(e->native, on_fold, e);
	return feed_inputs(feed, e->p, e->run);
}

static void close_run(struct explain *e)
{
	e->npu->on_fold(e->native, NULL, NULL);
	npuc_run_close(e->run);
	if (e->queue)
		hal_queue_destroy(e->queue);
	if (e->ring)
		hal_completions_destroy(e->ring);
}

int explain_print(const struct npuc_program *p, const struct device *d,
		  const struct feed *feed)
{
	struct explain e = {.p = p,
			    .d = d,
			    .npu = hal_device_get_extension(d->dev, "npu"),
			    .native = hal_device_get_native(d->dev)};
	struct explain_cycles *layers;
	int rc;

	if (!p->layer_count)
		return tool_fail("--explain: a .npu program does not list its layers; "
				 "name the .tflite model that it was made of");
	if (!e.npu)
		return tool_fail("--explain: %s does not count where cycles go; select "
				 "an NPU with --target npu:0",
				 d->info.name);
	layers = calloc((size_t)p->layer_count + 1, sizeof(*layers));
	if (!layers)
		return tool_fail("out of memory");
	rc = open_run(&e, feed);
	if (!rc)
		rc = launch_all(&e, layers);
	if (!rc)
		print_table(&e, layers);
	close_run(&e);
	free(layers);
	return rc;
}
