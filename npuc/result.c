/* SPDX-License-Identifier: Apache-2.0 */
/* result.c - what halrun says of a run, as text or JSON. */
#include "result.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "out.h"
#include "ports.h"
#include "tool.h"

/* ---- the largest values ----------------------------------------------------------- */

/* The larger first, of equal ones that of the smaller index. */
static int largest_first(const void *a, const void *b)
{
	const struct best *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at);
}

static const char *label_of(const struct result *r, const struct npuc_port *port,
			    uint64_t i)
{
	return r->labels.count == port->count ? r->labels.text[i] : NULL;
}

static uint64_t top_of(const struct result *r, const struct npuc_port *port)
{
	return r->top < port->count ? r->top : port->count;
}

/* All values of an output of an image, the largest first. */
static const struct best *best_of(const struct result *r, uint64_t image, uint32_t output)
{
	return r->best[image * r->program->output_count + output];
}

static void print_top(const struct result *r, uint64_t image, uint32_t output, FILE *to)
{
	const struct npuc_port *port = &r->program->outputs[output];
	const struct best *best = best_of(r, image, output);
	uint64_t count = top_of(r, port);

	if (count && r->out.images > 1)
		fprintf(to, "image %" PRIu64 ", ", image);
	if (count)
		fprintf(to, "%s: %" PRIu64 " of %" PRIu64 " outputs\n", port->name, count,
			port->count);
	for (uint64_t n = 0; n < count; n++) {
		struct best b = best[n];
		const char *label = label_of(r, port, b.at);

		fprintf(to, "%6" PRIu64 " %5" PRId64 " %12.6g%s%s\n", b.at, b.value,
			convert_real(port, b.value), label ? "  " : "",
			label ? label : "");
	}
}

static void top_json(const struct result *r, uint64_t image, uint32_t output,
		     struct out *o)
{
	const struct npuc_port *port = &r->program->outputs[output];
	const struct best *best = best_of(r, image, output);
	uint64_t count = top_of(r, port);

	out_record(o, NULL);
	if (r->out.images > 1)
		out_u64(o, "image", image);
	out_str(o, "name", port->name);
	out_list(o, "top");
	for (uint64_t n = 0; n < count; n++) {
		struct best b = best[n];
		const char *label = label_of(r, port, b.at);

		out_record(o, NULL);
		out_u64(o, "index", b.at);
		out_i64(o, "value", b.value);
		out_real(o, "real", convert_real(port, b.value));
		if (label)
			out_str(o, "label", label);
		out_record_end(o);
	}
	out_list_end(o);
	out_record_end(o);
}

/* ---- times ------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void result_sort(struct result *r)
{
	qsort(r->cycles, r->runs, sizeof(*r->cycles), by_size);
	qsort(r->wall_ns, r->runs, sizeof(*r->wall_ns), by_size);
}

uint64_t result_percentile(const uint64_t *sorted, uint64_t count, uint64_t percent)
{
	return sorted[(count * percent + 99) / 100 - 1];
}

double result_mean(const uint64_t *values, uint64_t count)
{
	double sum = 0;

	for (uint64_t i = 0; i < count; i++)
		sum += (double)values[i];
	return count ? sum / (double)count : 0;
}

static double milliseconds(uint64_t ns)
{
	return (double)ns / 1e6;
}

/* Of all that the array could have multiplied meanwhile. */
static double mac_use(const struct result *r)
{
	uint64_t units = (uint64_t)r->device->unit_rows * r->device->unit_cols;
	uint64_t cycles = result_percentile(r->cycles, r->runs, 50);

	return cycles && units
		       ? (double)r->program->macs / ((double)cycles * (double)units)
		       : 0;
}

static void print_times(const struct result *r, FILE *to)
{
	const struct hal_device_info *d = r->device;

	if (r->runs == 1) {
		fprintf(to, "%" PRIu64 " cycles on %s, %u x %u\n", r->cycles[0], d->name,
			d->unit_rows, d->unit_cols);
		return;
	}
	fprintf(to, "%" PRIu64 " runs on %s, %u x %u", r->runs, d->name, d->unit_rows,
		d->unit_cols);
	if (r->in_flight > 1)
		fprintf(to, ", %u in flight", r->in_flight);
	fputc('\n', to);
	fprintf(to,
		"cycles: p50 %" PRIu64 ", p99 %" PRIu64 ", min %" PRIu64
		", mean %.1f, max %" PRIu64 "\n",
		result_percentile(r->cycles, r->runs, 50),
		result_percentile(r->cycles, r->runs, 99), r->cycles[0],
		result_mean(r->cycles, r->runs), r->cycles[r->runs - 1]);
	fprintf(to,
		"wall time: p50 %.3f ms, p99 %.3f ms, min %.3f ms, mean %.3f ms, max "
		"%.3f "
		"ms\n",
		milliseconds(result_percentile(r->wall_ns, r->runs, 50)),
		milliseconds(result_percentile(r->wall_ns, r->runs, 99)),
		milliseconds(r->wall_ns[0]), result_mean(r->wall_ns, r->runs) / 1e6,
		milliseconds(r->wall_ns[r->runs - 1]));
	fprintf(to, "MAC use: %.1f %%, %" PRIu64 " MACs a run\n", 100 * mac_use(r),
		r->program->macs);
}

/* ---- all of it -------------------------------------------------------------------- */

int result_check(const struct result *r)
{
	const struct npuc_program *p = r->program;

	for (uint32_t i = 0; i < p->output_count; i++)
		if (r->labels.count == p->outputs[i].count)
			return 0;
	return r->labels.count
		       ? tool_fail("the file has %u labels, but output '%s' has %" PRIu64
				   " elements",
				   r->labels.count, p->outputs[0].name,
				   p->outputs[0].count)
		       : 0;
}

static int read_output(struct result *r, uint64_t image, uint32_t output,
		       struct npuc_run *run)
{
	const struct npuc_port *port = &r->program->outputs[output];
	uint64_t bytes = port->count * npuc_type_bytes(port->device_type);
	uint8_t *data = r->out.data[output] + image * bytes;
	struct best *best = calloc(port->count, sizeof(*best));
	char why[NPUC_WHY] = "out of memory";

	r->best[image * r->program->output_count + output] = best;
	if (!best || npuc_run_read(run, output, true, data, bytes, why))
		return tool_fail("%s", why);
	for (uint64_t i = 0; i < port->count; i++)
		best[i] = (struct best){i, convert_number(data, i, port->device_type)};
	qsort(best, port->count, sizeof(*best), largest_first);
	return 0;
}

int result_open(struct result *r, uint64_t images, uint64_t runs)
{
	const struct npuc_program *p = r->program;
	bool ok;

	r->out.images = images;
	r->best = calloc(images * p->output_count, sizeof(struct best *));
	r->out.data = calloc(p->output_count, sizeof(*r->out.data));
	r->cycles = calloc(runs, sizeof(*r->cycles));
	r->wall_ns = calloc(runs, sizeof(*r->wall_ns));
	ok = r->best && r->out.data && r->cycles && r->wall_ns;
	for (uint32_t i = 0; ok && i < p->output_count; i++) {
		const struct npuc_port *port = &p->outputs[i];

		r->out.data[i] =
			calloc(images * port->count, npuc_type_bytes(port->device_type));
		ok = r->out.data[i];
	}
	return ok ? 0 : tool_fail("out of memory");
}

int result_read(struct result *r, struct npuc_run *run, uint64_t image)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < r->program->output_count; i++)
		rc = read_output(r, image, i, run);
	return rc;
}

void result_text(const struct result *r, FILE *to)
{
	for (uint64_t k = 0; k < r->out.images; k++)
		for (uint32_t i = 0; i < r->program->output_count; i++)
			print_top(r, k, i, to);
	if (r->program->host[0])
		fprintf(to, "%s\n", r->program->host);
	print_times(r, to);
}

static void times_json(struct out *o, const struct result *r)
{
	out_record(o, "cycles");
	out_u64(o, "p50", result_percentile(r->cycles, r->runs, 50));
	out_u64(o, "p99", result_percentile(r->cycles, r->runs, 99));
	out_u64(o, "min", r->cycles[0]);
	out_real(o, "mean", result_mean(r->cycles, r->runs));
	out_u64(o, "max", r->cycles[r->runs - 1]);
	out_record_end(o);
	out_record(o, "wall_ms");
	out_real(o, "p50", milliseconds(result_percentile(r->wall_ns, r->runs, 50)));
	out_real(o, "p99", milliseconds(result_percentile(r->wall_ns, r->runs, 99)));
	out_real(o, "min", milliseconds(r->wall_ns[0]));
	out_real(o, "mean", result_mean(r->wall_ns, r->runs) / 1e6);
	out_real(o, "max", milliseconds(r->wall_ns[r->runs - 1]));
	out_record_end(o);
	out_u64(o, "macs", r->program->macs);
	out_real(o, "mac_use", mac_use(r));
}

int result_json(const struct result *r)
{
	struct out *o = out_create();

	if (!o)
		return tool_fail("out of memory");
	out_record(o, NULL);
	out_str(o, "model", r->model);
	if (r->program->host[0])
		out_str(o, "host", r->program->host);
	out_str(o, "device", r->device->name);
	out_u64(o, "rows", r->device->unit_rows);
	out_u64(o, "cols", r->device->unit_cols);
	ports_json(o, "inputs", r->program->inputs, r->program->input_count);
	ports_json(o, "outputs", r->program->outputs, r->program->output_count);
	out_list(o, "results");
	for (uint64_t k = 0; k < r->out.images; k++)
		for (uint32_t i = 0; i < r->program->output_count; i++)
			top_json(r, k, i, o);
	out_list_end(o);
	out_u64(o, "runs", r->runs);
	out_u64(o, "in_flight", r->in_flight);
	times_json(o, r);
	out_record_end(o);
	return out_finish(o);
}

void result_free(struct result *r)
{
	uint32_t outputs = r->program->output_count;

	for (uint64_t i = 0; r->best && i < r->out.images * outputs; i++)
		free(r->best[i]);
	for (uint32_t i = 0; r->out.data && i < outputs; i++)
		free(r->out.data[i]);
	free(r->best);
	free(r->out.data);
	free(r->cycles);
	free(r->wall_ns);
	labels_free(&r->labels);
}
