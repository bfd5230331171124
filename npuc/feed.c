/* SPDX-License-Identifier: Apache-2.0 */
/* feed.c - what goes into halrun's inputs, and where its outputs go. */
#include "feed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "npy.h"
#include "ports.h"
#include "tool.h"

/* ---- names ------------------------------------------------------------------------ */

/* The port that "NAME=FILE" names, by the longest of several; NPUC_NONE: there is none,
 * and it is a FILE. */
static uint32_t split(const char *word, const struct npuc_port *ports, uint32_t count,
		      const char **file)
{
	uint32_t best = NPUC_NONE;
	size_t longest = 0;

	*file = word;
	for (uint32_t i = 0; i < count; i++) {
		size_t n = strlen(ports[i].name);

		if (n >= longest && strncmp(word, ports[i].name, n) == 0 &&
		    word[n] == '=') {
			best = i;
			longest = n;
			*file = word + n + 1;
		}
	}
	return best;
}

/* The ports' names for an error text. */
static void list_names(const struct npuc_port *ports, uint32_t count, char *text,
		       size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < count && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s'%s'",
					 i ? ", " : "", ports[i].name);
}

static bool is_standard(const char *file)
{
	return strcmp(file, "-") == 0;
}

/* ---- inputs ----------------------------------------------------------------------- */

/* Up to limit bytes of a file; NULL: has been said. */
static uint8_t *read_file(const char *path, size_t limit, size_t *size)
{
	const char *name = is_standard(path) ? "standard input" : path;
	FILE *f = is_standard(path) ? stdin : fopen(path, "rb");
	uint8_t *data;

	if (!f) {
		tool_fail("%s: %s", name, hal_strerror(errno));
		return NULL;
	}
	data = malloc(limit);
	if (!data)
		tool_fail("%s: out of memory", name);
	*size = data ? fread(data, 1, limit, f) : 0;
	if (data && ferror(f)) {
		tool_fail("%s: cannot be read: %s", name, hal_strerror(errno));
		free(data);
		data = NULL;
	}
	if (f != stdin)
		(void)fclose(f);
	return data;
}

static int check_shape(const char *path, const struct npy *npy,
		       const struct npuc_port *port)
{
	char is[NPUC_RANK * 12], want[NPUC_RANK * 12];
	bool same = npy->rank == port->rank;

	for (uint32_t i = 0; same && i < port->rank; i++)
		same = npy->dims[i] == port->dims[i];
	shape_text(npy->rank, npy->dims, is, sizeof(is));
	shape_text(port->rank, port->dims, want, sizeof(want));
	if (npy->type != port->type)
		return tool_fail("%s: its elements are %s, but input '%s' takes %s, %s",
				 path, npuc_type_name(npy->type), port->name,
				 npuc_type_name(port->type), want);
	if (!same)
		return tool_fail("%s: its shape is %s, but input '%s' takes %s", path, is,
				 port->name, want);
	if (npy->fortran && npy->rank > 1)
		return tool_fail("%s: stored in Fortran order; convert it to C order "
				 "(numpy.ascontiguousarray)",
				 path);
	return 0;
}

/* The elements of a .npy file, or the bytes of another one. */
static int set_input(const char *path, const struct npuc_program *p, uint32_t input,
		     struct npuc_run *run)
{
	const struct npuc_port *port = &p->inputs[input];
	uint64_t want = npuc_port_bytes(port);
	size_t size = 0;
	uint8_t *data = read_file(path, want + NPY_HEADER_MAX + 16, &size);
	const char *name = is_standard(path) ? "standard input" : path;
	struct npy npy = {.data = 0};
	char why[NPUC_WHY];
	int rc = 0;

	if (!data)
		return TOOL_FAILED;
	if (npy_is(data, size)) {
		rc = npy_parse(data, size, &npy, why) ? tool_fail("%s: %s", name, why)
						      : check_shape(name, &npy, port);
	}
	if (!rc && size - npy.data != want)
		rc = tool_fail("%s: %s the %" PRIu64 " bytes that input '%s' takes%s",
			       name,
			       size - npy.data < want ? "shorter than" : "longer than",
			       want, port->name, npy.data ? " (after the header)" : "");
	if (!rc && npuc_run_write(run, input, data + npy.data, want, why))
		rc = tool_fail("%s: %s", name, why);
	free(data);
	return rc;
}

/* xorshift64*, the upper byte of each product: tests/tflite makes inputs like that. */
static uint8_t next_random(uint64_t *x)
{
	*x ^= *x >> 12;
	*x ^= *x << 25;
	*x ^= *x >> 27;
	return (uint8_t)((*x * UINT64_C(2685821657736338717)) >> 56);
}

/* Random bytes; float32 gets the numbers that those stand for. */
static int set_random(uint64_t *state, const struct npuc_program *p, uint32_t input,
		      struct npuc_run *run)
{
	const struct npuc_port *port = &p->inputs[input];
	uint64_t bytes = npuc_port_bytes(port);
	uint32_t width = npuc_type_bytes(port->type);
	uint8_t *data = malloc(bytes);
	char why[NPUC_WHY];
	int rc = 0;

	if (!data)
		return tool_fail("out of memory");
	for (uint64_t i = 0; i < port->count; i++) {
		uint8_t low = next_random(state);
		uint8_t high = port->device_type == NPUC_INT16 ? next_random(state) : 0;
		int32_t q = port->device_type == NPUC_INT16   ? (int16_t)(low | high << 8)
			    : port->device_type == NPUC_UINT8 ? low
							      : (int8_t)low;
		float real = port->scale * (float)(q - port->zero_point);

		if (port->type == NPUC_FLOAT32) {
			memcpy(data + i * sizeof(real), &real, sizeof(real));
			continue;
		}
		data[i * width] = low;
		if (width > 1)
			data[i * width + 1] = high;
	}
	if (npuc_run_write(run, input, data, bytes, why))
		rc = tool_fail("%s", why);
	free(data);
	return rc;
}

/* As split; a name that no port has is an error, not part of a file's. */
static int resolve(const char *word, bool input, const struct npuc_program *p,
		   uint32_t *port, const char **file)
{
	const struct npuc_port *ports = input ? p->inputs : p->outputs;
	uint32_t count = input ? p->input_count : p->output_count;
	const char *which = input ? "input" : "output";
	size_t name = strcspn(word, "=/");
	char names[256];

	*port = split(word, ports, count, file);
	if (!**file)
		return tool_fail("%s: the file name is missing", *word ? word : "\"\"");
	if (*port != NPUC_NONE || word[name] != '=')
		return 0;
	list_names(ports, count, names, sizeof(names));
	return tool_fail("%s: there is no %s '%.*s'; %ss: %s", word, which, (int)name,
			 word, which, names);
}

/* Files by name first; the others in order to the inputs that are left. */
static int assign(const struct feed *f, const struct npuc_program *p, const char **files)
{
	uint32_t next = 0, port;
	const char *file;
	char names[256];

	list_names(p->inputs, p->input_count, names, sizeof(names));
	for (uint32_t i = 0; i < f->input_count; i++) {
		if (resolve(f->inputs[i], true, p, &port, &file))
			return TOOL_FAILED;
		if (port == NPUC_NONE)
			continue;
		if (files[port])
			return tool_fail("two files are given for input '%s'",
					 p->inputs[port].name);
		files[port] = file;
	}
	for (uint32_t i = 0; i < f->input_count; i++) {
		if (split(f->inputs[i], p->inputs, p->input_count, &file) != NPUC_NONE)
			continue;
		while (next < p->input_count && files[next])
			next++;
		if (next == p->input_count)
			return tool_fail("%s: too many input files; inputs: %s", file,
					 names);
		files[next] = file;
	}
	for (uint32_t i = 0; i < p->input_count && !f->seed; i++)
		if (!files[i])
			return tool_fail("no file for input '%s'; give one, or --random; "
					 "inputs: %s",
					 p->inputs[i].name, names);
	return 0;
}

int feed_inputs(const struct feed *f, const struct npuc_program *p, struct npuc_run *run)
{
	const char **files = calloc((size_t)p->input_count + 1, sizeof(*files));
	uint64_t state = f->seed;
	bool stdin_taken = false;
	int rc;

	if (!files)
		return tool_fail("out of memory");
	rc = assign(f, p, files);
	for (uint32_t i = 0; !rc && i < p->input_count; i++) {
		bool standard = files[i] && is_standard(files[i]);

		if (standard && stdin_taken)
			rc = tool_fail("standard input can be used for one input only");
		else if (files[i])
			rc = set_input(files[i], p, i, run);
		else
			rc = set_random(&state, p, i, run);
		stdin_taken |= standard;
	}
	free(files);
	return rc;
}

/* ---- outputs ---------------------------------------------------------------------- */

static bool is_npy(const char *file)
{
	size_t n = strlen(file);

	return n >= 4 && strcmp(file + n - 4, ".npy") == 0;
}

int feed_check_outputs(const struct feed *f, const struct npuc_program *p)
{
	uint32_t standard = 0;
	char names[256];

	list_names(p->outputs, p->output_count, names, sizeof(names));
	for (uint32_t i = 0; i < f->output_count; i++) {
		const char *file;
		uint32_t port;

		if (resolve(f->outputs[i], false, p, &port, &file))
			return TOOL_FAILED;
		standard += is_standard(file);
		if (port == NPUC_NONE && is_npy(file) && p->output_count > 1)
			return tool_fail("%s: a .npy file holds one output; select it "
					 "with NAME=FILE, of %s",
					 file, names);
	}
	return standard > 1 ? tool_fail("standard output can be used for one output only")
			    : 0;
}

bool feed_takes_stdout(const struct feed *f)
{
	for (uint32_t i = 0; i < f->output_count; i++) {
		size_t n = strlen(f->outputs[i]);

		if (is_standard(f->outputs[i]) ||
		    (n > 2 && strcmp(f->outputs[i] + n - 2, "=-") == 0))
			return true;
	}
	return false;
}

static int write_port(const struct npuc_program *p, uint32_t output, struct npuc_run *run,
		      FILE *to, const char *path)
{
	const struct npuc_port *port = &p->outputs[output];
	uint64_t bytes = npuc_port_bytes(port);
	char why[NPUC_WHY], *header = NULL;
	size_t length = 0;
	uint8_t *data = malloc(bytes);
	int rc = 0;

	if (is_npy(path))
		length = npy_header(port->type, port->rank, port->dims, &header);
	if (!data || (is_npy(path) && !length))
		rc = tool_fail("out of memory");
	else if (npuc_run_read(run, output, false, data, bytes, why))
		rc = tool_fail("%s", why);
	else if (fwrite(header ? header : "", 1, length, to) != length ||
		 fwrite(data, 1, bytes, to) != bytes)
		rc = tool_fail("%s: cannot be written: %s", path, hal_strerror(errno));
	free(header);
	free(data);
	return rc;
}

static int write_file(const struct npuc_program *p, uint32_t port, const char *path,
		      struct npuc_run *run)
{
	FILE *to = is_standard(path) ? stdout : fopen(path, "wb");
	uint32_t from = port == NPUC_NONE ? 0 : port;
	uint32_t to_port = port == NPUC_NONE ? p->output_count : port + 1;
	int rc = 0;

	if (!to)
		return tool_fail("%s: %s", path, hal_strerror(errno));
	for (uint32_t i = from; !rc && i < to_port; i++)
		rc = write_port(p, i, run, to, path);
	/* Standard output is looked at when the command ends. */
	if (to != stdout && fclose(to) && !rc)
		rc = tool_fail("%s: cannot be written: %s", path, hal_strerror(errno));
	return rc;
}

int feed_outputs(const struct feed *f, const struct npuc_program *p, struct npuc_run *run)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < f->output_count; i++) {
		const char *file;
		uint32_t port = split(f->outputs[i], p->outputs, p->output_count, &file);

		rc = write_file(p, port, file, run);
	}
	return rc;
}
