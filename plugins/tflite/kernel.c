/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c - a partition of the graph: opened on the device, compiled anew for other
 * shapes, and run.
 *
 * A kernel has a queue and a run of its own.  Its interpreter calls it from one thread at
 * a time; kernels of several interpreters run concurrently.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plug.h"

struct kernel {
	struct kernel *next; /* in plug.ready */
	struct plug *p;      /* counted */
	const struct tfl_context *ctx;
	struct item *items;
	uint32_t count;
	struct npuc_program program;
	struct hal_queue *queue;
	struct npuc_run *run;    /* NULL: not open */
	uint64_t inferences;     /* since run was opened */
	uint64_t memory;         /* counted in plug.memory_used */
	int *ins, *outs;         /* tensors of the interpreter, by port */
	struct tfl_ints *shapes; /* that are constants of the program (graph_shapes) */
	char why[NPUC_WHY];      /* init failed: prepare reports it */
	char profile[96];
};

/* ---- opening ---------------------------------------------------------------------- */

int kernel_compile(const struct plug *p, const struct npuc_model *model,
		   struct npuc_program *program, char why[NPUC_WHY])
{
	struct npuc_options options = {
		.rows = p->info.rows, .cols = p->info.cols, .reference = p->o.reference};
	int rc;

	why[0] = '\0';
	rc = npuc_compile_cached(model, &options, p->o.cache_dir, program, NULL, why);
	if (!rc && why[0])
		report_line("WARNING", "%s", why); /* it could not be kept */
	if (rc || !program->host[0])
		return rc;
	snprintf(why, NPUC_WHY, "%s", program->host);
	npuc_program_free(program);
	return -ENOTSUP;
}

static int queue_make(struct kernel *k, char why[NPUC_WHY])
{
	const struct options *o = &k->p->o;
	struct hal_queue_desc desc = HAL_INIT(hal_queue_desc);
	int rc;

	desc.priority = o->priority;
	desc.deadline_ns = o->deadline_us * 1000;
	desc.weight = o->weight;
	desc.service_class = o->service_class;
	snprintf(desc.name, sizeof(desc.name), "tflite node %d", k->items[0].index);
	rc = hal_queue_create(k->p->part, &desc, &k->queue);
	if (rc < 0)
		snprintf(why, NPUC_WHY, "%s", hal_last_error());
	return rc < 0 ? rc : 0;
}

/* Count the device memory of a program, of which the device allocates a part only with
 * the first inference.  A sixteenth is for page tables. */
static int memory_take(struct kernel *k, char why[NPUC_WHY])
{
	uint64_t need = k->program.memory_bytes + k->program.memory_bytes / 16, used;
	struct plug *p = k->p;
	bool fits, quota = p->o.memory_bytes || p->o.partition;

	pthread_mutex_lock(&p->lock);
	used = p->memory_used;
	fits = !p->memory_bytes || used + need <= p->memory_bytes;
	if (fits) {
		p->memory_used += need;
		k->memory = need;
	}
	pthread_mutex_unlock(&p->lock);
	if (fits)
		return 0;
	snprintf(why, NPUC_WHY,
		 "it takes %.1f KiB of device memory, and %.1f of %.1f KiB are in use by "
		 "this delegate; give %s",
		 (double)need / 1024, (double)used / 1024, (double)p->memory_bytes / 1024,
		 quota ? "the partition more memory_bytes"
		       : "the NPU more with target=npu:0?memory_size=N");
	return -ENOSPC;
}

static void memory_give(struct kernel *k)
{
	pthread_mutex_lock(&k->p->lock);
	k->p->memory_used -= k->memory;
	k->memory = 0;
	pthread_mutex_unlock(&k->p->lock);
}

/* Destroy the queue.  One that has failed may have work until the device has stopped it.
 */
static void queue_drop(struct kernel *k)
{
	struct hal_point quiet;

	if (k->queue && hal_queue_destroy(k->queue) == -EBUSY) {
		if (hal_queue_suspend(k->queue, HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL,
				      &quiet) == 0)
			(void)hal_wait(&quiet, 1, 0, HAL_FOREVER);
		(void)hal_queue_destroy(k->queue);
	}
	k->queue = NULL;
}

/* With log=1, write what the inferences took on the device. */
static void run_report(const struct kernel *k)
{
	struct hal_stats stats = HAL_INIT(hal_stats);
	double cycles;

	if (!k->p->o.log || !k->inferences || hal_queue_get_stats(k->queue, &stats) < 0)
		return;
	cycles = (double)stats.busy_ns * 1e-9 * (double)k->p->clock_hz /
		 (double)k->inferences;
	report_line(
		"INFO",
		"partition at node %d: %llu inference%s, %.0f cycles each, %.2f of the "
		"peak of %u units",
		k->items[0].index, (unsigned long long)k->inferences,
		k->inferences == 1 ? "" : "s", cycles,
		cycles > 0 ? (double)k->program.macs / cycles / k->p->info.units : 0.0,
		k->p->info.units);
}

static void run_close(struct kernel *k)
{
	run_report(k);
	(void)npuc_run_close(k->run);
	k->run = NULL;
	queue_drop(k);
	memory_give(k);
}

static int run_open(struct kernel *k, char why[NPUC_WHY])
{
	struct plug *p = k->p;
	int rc = memory_take(k, why);

	k->inferences = 0;
	if (!rc)
		rc = queue_make(k, why);
	if (!rc)
		rc = npuc_run_open_on(p->dev, p->part, k->queue, &k->program, &k->run,
				      why);
	if (rc) {
		k->run = NULL;
		run_close(k);
	}
	return rc;
}

/* Set tensors by port: those of a list; only: those that are inputs of the model. */
static int ports_set(const struct kernel *k, const struct tfl_context *ctx,
		     const struct tfl_ints *list, bool only, int **ports)
{
	uint32_t count = only ? k->program.input_count : k->program.output_count, n = 0;

	free(*ports);
	*ports = calloc((size_t)list->size + 1, sizeof(**ports));
	if (!*ports)
		return -ENOMEM;
	for (int i = 0; i < list->size; i++)
		if (!only || graph_input(ctx, k->items, k->count, list->data[i]))
			(*ports)[n++] = list->data[i];
	return n == count ? 0 : -EINVAL;
}

static int ports_open(struct kernel *k, const struct tfl_context *ctx,
		      const struct tfl_ints *ins, const struct tfl_ints *outs,
		      char why[NPUC_WHY])
{
	int rc = ports_set(k, ctx, ins, true, &k->ins);

	if (!rc)
		rc = ports_set(k, ctx, outs, false, &k->outs);
	free(k->shapes);
	k->shapes = rc ? NULL : graph_shapes(ctx, k->items, k->count);
	if (!rc && !k->shapes)
		rc = -ENOMEM;
	if (rc)
		snprintf(why, NPUC_WHY, "%s",
			 rc == -ENOMEM ? "no memory"
				       : "the program has other inputs and outputs than "
					 "the partition of the graph");
	return rc;
}

static void kernel_destroy(struct kernel *k)
{
	char why[NPUC_WHY];

	if (!plug_forked(k->p, why))
		run_close(k);
	npuc_program_free(&k->program);
	plug_put(k->p);
	free(k->items);
	free(k->ins);
	free(k->outs);
	free(k->shapes);
	free(k);
}

static struct kernel *kernel_make(struct plug *p, const struct tfl_context *ctx,
				  const struct item *items, uint32_t count)
{
	struct kernel *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->items = calloc(count + 1, sizeof(*items));
	if (!k->items) {
		free(k);
		return NULL;
	}
	memcpy(k->items, items, count * sizeof(*items));
	k->count = count;
	k->ctx = ctx;
	k->p = p;
	atomic_fetch_add(&p->users, 1);
	return k;
}

int kernel_open(struct plug *p, struct tfl_context *ctx, const struct item *items,
		uint32_t count, const struct tfl_ints *ins, const struct tfl_ints *outs,
		struct npuc_program *program, struct kernel **kernel, char why[NPUC_WHY])
{
	struct kernel *k = kernel_make(p, ctx, items, count);
	int rc;

	*kernel = k;
	if (!k) {
		npuc_program_free(program);
		snprintf(why, NPUC_WHY, "no memory");
		return -ENOMEM;
	}
	k->program = *program;
	memset(program, 0, sizeof(*program));
	rc = ports_open(k, ctx, ins, outs, why);
	if (!rc)
		rc = run_open(k, why);
	if (rc) {
		kernel_destroy(k);
		*kernel = NULL;
		return rc;
	}
	snprintf(k->profile, sizeof(k->profile),
		 "%u nodes, %llu MACs, %llu cycles estimated", count,
		 (unsigned long long)k->program.macs,
		 (unsigned long long)k->program.cycles);
	return 0;
}

/* ---- kernels between claims and init ---------------------------------------------- */

void kernel_keep(struct kernel *k)
{
	pthread_mutex_lock(&k->p->lock);
	k->next = k->p->ready;
	k->p->ready = k;
	pthread_mutex_unlock(&k->p->lock);
}

static bool is_of(const struct kernel *k, const struct tfl_context *ctx,
		  const struct tfl_ints *nodes)
{
	if (k->ctx != ctx || k->count != (uint32_t)nodes->size)
		return false;
	for (uint32_t i = 0; i < k->count; i++)
		if (k->items[i].index != nodes->data[i])
			return false;
	return true;
}

const struct npuc_program *kernel_ready(struct plug *p, const struct tfl_context *ctx,
					const struct tfl_ints *nodes)
{
	const struct npuc_program *program = NULL;

	pthread_mutex_lock(&p->lock);
	for (struct kernel *k = p->ready; k && !program; k = k->next)
		if (is_of(k, ctx, nodes))
			program = &k->program;
	pthread_mutex_unlock(&p->lock);
	return program;
}

static struct kernel *kernel_take(struct plug *p, const struct tfl_context *ctx,
				  const struct tfl_ints *nodes)
{
	struct kernel **at = &p->ready, *k;

	pthread_mutex_lock(&p->lock);
	while (*at && !is_of(*at, ctx, nodes))
		at = &(*at)->next;
	k = *at;
	if (k)
		*at = k->next;
	pthread_mutex_unlock(&p->lock);
	return k;
}

void kernels_drop(struct plug *p, const struct tfl_context *ctx)
{
	struct kernel **at = &p->ready, *dropped = NULL, *k;

	pthread_mutex_lock(&p->lock);
	while ((k = *at) != NULL) {
		if (k->ctx != ctx) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		k->next = dropped;
		dropped = k;
	}
	pthread_mutex_unlock(&p->lock);
	while ((k = dropped) != NULL) {
		dropped = k->next;
		kernel_destroy(k);
	}
}

/* ---- what the interpreter calls --------------------------------------------------- */

/* Compile and open nodes that claims did not partition so. */
static int open_late(struct kernel *k, struct tfl_context *ctx,
		     const struct tfl_ints *ins, const struct tfl_ints *outs,
		     char why[NPUC_WHY])
{
	struct npuc_model *model;
	uint32_t refused;
	int rc = graph_model(ctx, k->items, k->count, ins, outs, &model, &refused, why);

	if (!rc)
		rc = kernel_compile(k->p, model, &k->program, why);
	npuc_model_free(model);
	if (!rc)
		rc = ports_open(k, ctx, ins, outs, why);
	if (!rc)
		rc = run_open(k, why);
	return rc;
}

/* A failed init returns a kernel that says so, because older runtimes take NULL for an
 * operator without data. */
static void *kernel_init(struct tfl_context *ctx, const char *buffer, size_t length)
{
	const struct tfl_delegate_params *d = (const void *)buffer;
	struct plug *p = (struct plug *)d->delegate;
	struct kernel *k = kernel_take(p, ctx, d->nodes_to_replace);
	uint32_t count = (uint32_t)d->nodes_to_replace->size;
	struct item *items;

	(void)length;
	if (k)
		return k;
	items = calloc(count + 1, sizeof(*items));
	if (items && items_read(ctx, d->nodes_to_replace, items) == 0)
		k = kernel_make(p, ctx, items, count);
	free(items);
	if (k && open_late(k, ctx, d->input_tensors, d->output_tensors, k->why) == 0)
		k->why[0] = '\0';
	return k;
}

static void kernel_free(struct tfl_context *ctx, void *buffer)
{
	(void)ctx;
	if (buffer)
		kernel_destroy(buffer);
}

static bool same_shape(const struct tfl_tensor *t, const struct npuc_port *port)
{
	if (!t->dims || (uint32_t)t->dims->size != port->rank)
		return false;
	for (uint32_t i = 0; i < port->rank; i++)
		if (t->dims->data[i] != port->dims[i])
			return false;
	return true;
}

/* Is the program for these inputs, and these shapes of other tensors? */
static bool same_inputs(const struct kernel *k, const struct tfl_context *ctx)
{
	struct tfl_ints *shapes;
	bool same = true;

	for (uint32_t i = 0; same && i < k->program.input_count; i++)
		same = same_shape(&ctx->tensors[k->ins[i]], &k->program.inputs[i]);
	if (!same)
		return false;
	shapes = graph_shapes(ctx, k->items, k->count);
	same = shapes && shapes->size == k->shapes->size &&
	       memcmp(shapes->data, k->shapes->data,
		      (size_t)shapes->size * sizeof(int)) == 0;
	free(shapes);
	return same;
}

static bool same_outputs(const struct kernel *k, const struct tfl_context *ctx)
{
	for (uint32_t i = 0; i < k->program.output_count; i++)
		if (!same_shape(&ctx->tensors[k->outs[i]], &k->program.outputs[i]))
			return false;
	return true;
}

/* Give outputs the shapes of the program.  An interpreter that does not compute shapes
 * before the first inference does not know them, and calls such outputs dynamic: these
 * have no memory until they are resized. */
static int resize_outputs(const struct kernel *k, struct tfl_context *ctx)
{
	for (uint32_t i = 0; i < k->program.output_count; i++) {
		const struct npuc_port *port = &k->program.outputs[i];
		struct tfl_tensor *t = &ctx->tensors[k->outs[i]];
		struct tfl_ints *dims;

		if (same_shape(t, port) && (t->data || t->allocation_type != TFL_DYNAMIC))
			continue;
		dims = malloc(sizeof(*dims) + port->rank * sizeof(int));
		if (!dims)
			return TFL_ERROR;
		dims->size = (int)port->rank;
		for (uint32_t d = 0; d < port->rank; d++)
			dims->data[d] = port->dims[d];
		if (ctx->ResizeTensor(ctx, t, dims)) /* which frees dims */
			return TFL_ERROR;
	}
	return TFL_OK;
}

static int report(struct tfl_context *ctx, const char *why)
{
	ctx->ReportError(ctx, "accelhal: %s\n", why);
	return TFL_DELEGATE_ERROR;
}

/* Compile anew after a resize.  GetNodeAndRegistration is not allowed here. */
static int kernel_prepare(struct tfl_context *ctx, struct tfl_node *node)
{
	struct kernel *k = node->user_data;
	char why[NPUC_WHY];

	if (!k)
		return report(ctx, "no memory for a partition");
	if (plug_forked(k->p, why) || k->why[0])
		return report(ctx, k->why[0] ? k->why : why);
	if (k->run && same_inputs(k, ctx) && same_outputs(k, ctx))
		return resize_outputs(k, ctx);
	run_close(k);
	npuc_program_free(&k->program);
	if (open_late(k, ctx, node->inputs, node->outputs, why))
		return report(ctx, why);
	if (k->p->o.log)
		report_line("INFO", "partition at node %d compiled for other shapes",
			    k->items[0].index);
	return resize_outputs(k, ctx);
}

static int transfer(struct kernel *k, struct tfl_context *ctx, bool write,
		    char why[NPUC_WHY])
{
	uint32_t count = write ? k->program.input_count : k->program.output_count;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < count; i++) {
		struct tfl_tensor *t = &ctx->tensors[write ? k->ins[i] : k->outs[i]];

		if (!t->data) {
			snprintf(why, NPUC_WHY, "tensor '%.80s' has no memory",
				 t->name ? t->name : "");
			return -EINVAL;
		}
		rc = write ? npuc_run_write(k->run, i, t->data, t->bytes, why)
			   : npuc_run_read(k->run, i, false, t->data, t->bytes, why);
	}
	return rc;
}

static int run_once(struct kernel *k, struct tfl_context *ctx, char why[NPUC_WHY])
{
	struct hal_point done;
	int rc = transfer(k, ctx, true, why);

	if (!rc)
		rc = npuc_run_submit(k->run, "run", NULL, &done, why);
	if (!rc) {
		rc = hal_wait(&done, 1, 0, HAL_FOREVER);
		if (rc < 0)
			snprintf(why, NPUC_WHY, "%s", hal_last_error());
		else
			rc = 0;
	}
	return rc ? rc : transfer(k, ctx, false, why);
}

/* After a failure the queue accepts no work, so the next call begins with a new one. */
static int kernel_invoke(struct tfl_context *ctx, struct tfl_node *node)
{
	struct kernel *k = node->user_data;
	char why[NPUC_WHY] = "";
	int rc;

	if (plug_forked(k->p, why))
		return report(ctx, why);
	if (!k->run && run_open(k, why))
		return report(ctx, why);
	rc = run_once(k, ctx, why);
	k->inferences += !rc;
	if (!rc)
		return TFL_OK;
	run_close(k);
	return report(ctx, why);
}

static const char *kernel_profile(const struct tfl_context *ctx,
				  const struct tfl_node *node)
{
	const struct kernel *k = node->user_data;

	(void)ctx;
	return k ? k->profile : "";
}

const struct tfl_registration kernel_registration = {
	.init = kernel_init,
	.free = kernel_free,
	.prepare = kernel_prepare,
	.invoke = kernel_invoke,
	.profiling_string = kernel_profile,
	.builtin_code = BUILTIN_DELEGATE,
	.custom_name = KERNEL_NAME,
	.version = 1,
};
