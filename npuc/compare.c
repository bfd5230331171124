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

struct expectation {
	const char *file;
	const struct npuc_port *port;
	const uint8_t *got; /* as the device has it */
	uint64_t count;
	enum npuc_type type; /* the file's */
	const uint8_t *data; /* its elements */
};

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

static double got_at(const struct expectation *e, uint64_t i)
{
	int64_t q = convert_number(e->got, i, e->port->device_type);

	if (e->type != NPUC_FLOAT32)
		return (double)q;
	return e->port->scale > 0 ? (double)(float)convert_real(e->port, q) : (double)q;
}

static int compare(const struct expectation *e, double tolerance, FILE *to)
{
	uint64_t different = 0, beyond = 0, worst = 0;
	double largest = 0;

	for (uint64_t i = 0; i < e->count; i++) {
		double off = fabs(got_at(e, i) - wanted_at(e, i));

		different += off != 0;
		beyond += !(off <= tolerance);
		if (!(off <= largest)) {
			largest = off;
			worst = i;
		}
	}
	if (beyond)
		return tool_fail("%s: output '%s': %" PRIu64 " of %" PRIu64
				 " elements differ by more than %g; the largest "
				 "difference is %g, at element %" PRIu64
				 ": %.9g instead of %.9g",
				 e->file, e->port->name, beyond, e->count, tolerance,
				 largest, worst, got_at(e, worst), wanted_at(e, worst));
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

/* The elements that a file has, and their type. */
static int open_file(struct expectation *e, const uint8_t *file, size_t size)
{
	struct npy npy = {.type = e->port->type};
	char why[NPUC_WHY];
	uint64_t bytes;

	if (npy_is(file, size) && npy_parse(file, size, &npy, why))
		return tool_fail("%s: %s", e->file, why);
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
	e->data = file + npy.data;
	return 0;
}

int compare_outputs(const struct feed *f, const struct npuc_program *p,
		    const struct outputs *out, FILE *to)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < f->expected_count; i++) {
		struct expectation e = {0};
		uint32_t port;
		uint8_t *file;
		size_t size;

		if (feed_find_output(f->expected[i], p, &port, &e.file))
			return TOOL_FAILED;
		e.port = &p->outputs[port];
		e.got = out->data[port];
		e.count = out->images * e.port->count;
		file = feed_read_file(e.file, &size);
		if (!file)
			return TOOL_FAILED;
		rc = open_file(&e, file, size);
		if (!rc)
			rc = compare(&e, f->tolerance, to);
		free(file);
	}
	return rc;
}
