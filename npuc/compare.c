/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - outputs against files that have what is expected. */
#include "compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"
#include "ports.h"
#include "tool.h"

/* Quantized numbers are compared as such, float32 with the real numbers they stand for.
 */
static double wanted_at(const struct expectation *e, uint64_t i)
{
	float x;

	if (e->type != NPUC_FLOAT32)
		return (double)convert_number(e->data, i, e->type);
	memcpy(&x, e->data + i * sizeof(x), sizeof(x));
	return x;
}

static double got_at(const struct expectation *e, const uint8_t *got, uint64_t i)
{
	int64_t q = convert_number(got, i, e->port->device_type);

	if (e->type != NPUC_FLOAT32)
		return (double)q;
	return e->port->scale > 0 ? (double)(float)convert_real(e->port, q) : (double)q;
}

static int compare(const struct expectation *e, const uint8_t *got, double tolerance,
		   FILE *to)
{
	uint64_t different = 0, beyond = 0, worst = 0;
	double largest = 0;

	for (uint64_t i = 0; i < e->count; i++) {
		double off = fabs(got_at(e, got, i) - wanted_at(e, i));

		different += off != 0;
		beyond += !(off <= tolerance);
		if (!(off <= largest)) {
			largest = off;
			worst = i;
		}
	}
	if (beyond)
		return tool_fail(
			"%s: output '%s': %" PRIu64 " of %" PRIu64
			" elements differ by more than %g; the largest "
			"difference is %g, at element %" PRIu64 ": %.9g instead of %.9g",
			e->file, e->port->name, beyond, e->count, tolerance, largest,
			worst, got_at(e, got, worst), wanted_at(e, worst));
	if (different)
		fprintf(to,
			"%s: as expected: %" PRIu64 " of %" PRIu64
			" elements differ, by at most %g\n",
			e->port->name, different, e->count, largest);
	else
		fprintf(to, "%s: as expected: all %" PRIu64 " elements are equal\n",
			e->port->name, e->count);
	return 0;
}

/* The elements that a file has, and their type.  Bare ones are of the output's, or
 * float32 if there are four times as many bytes. */
static int find_elements(struct expectation *e, size_t size)
{
	struct npy npy = {.type = e->port->device_type};
	char why[NPUC_WHY];
	uint64_t bytes;

	if (npy_is(e->bytes, size)) {
		if (npy_parse(e->bytes, size, &npy, why))
			return tool_fail("%s: %s", e->file, why);
	} else if (size == e->count * sizeof(float)) {
		npy.type = NPUC_FLOAT32;
	}
	if (npy.type != NPUC_FLOAT32 && npy.type != e->port->device_type)
		return tool_fail("%s: its elements are %s, but output '%s' is %s",
				 e->file, npuc_type_name(npy.type), e->port->name,
				 npuc_type_name(e->port->device_type));
	if (npy.fortran && npy.rank > 1)
		return tool_fail("%s: stored in Fortran order; convert it to C order "
				 "(numpy.ascontiguousarray)",
				 e->file);
	bytes = e->count * npuc_type_bytes(npy.type);
	if (size - npy.data != bytes)
		return tool_fail("%s: it has %zu bytes of elements, but output '%s' has "
				 "%" PRIu64 " elements, %" PRIu64 " bytes of %s",
				 e->file, size - npy.data, e->port->name, e->count, bytes,
				 npuc_type_name(npy.type));
	e->type = npy.type;
	e->data = e->bytes + npy.data;
	return 0;
}

static int load(const char *word, const struct npuc_program *p, uint64_t images,
		struct expectation *e)
{
	size_t size;

	if (feed_find_output(word, p, &e->output, &e->file))
		return TOOL_FAILED;
	e->port = &p->outputs[e->output];
	e->count = images * e->port->count;
	e->bytes = feed_read_file(e->file, &size);
	return e->bytes ? find_elements(e, size) : TOOL_FAILED;
}

int compare_load(const struct feed *f, const struct npuc_program *p, uint64_t images,
		 struct expectations *e)
{
	int rc = 0;

	*e = (struct expectations){0};
	e->list = calloc((size_t)f->expected_count + 1, sizeof(*e->list));
	if (!e->list)
		return tool_fail("out of memory");
	while (!rc && e->count < f->expected_count) {
		rc = load(f->expected[e->count], p, images, &e->list[e->count]);
		e->count++;
	}
	return rc;
}

int compare_outputs(const struct expectations *e, double tolerance,
		    const struct outputs *out, FILE *to)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < e->count; i++)
		rc = compare(&e->list[i], out->data[e->list[i].output], tolerance, to);
	return rc;
}

void compare_free(struct expectations *e)
{
	for (uint32_t i = 0; i < e->count; i++)
		free(e->list[i].bytes);
	free(e->list);
	*e = (struct expectations){0};
}
