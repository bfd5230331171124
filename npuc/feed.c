/* SPDX-License-Identifier: Apache-2.0 */
/* feed.c - what goes into halrun's inputs, and where its outputs go. */
#include "feed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "image.h"
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

#define NAMES_MAX 1024u /* of an error text */

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

/* ---- files ------------------------------------------------------------------------ */

#define FILE_MAX (UINT64_C(1) << 31) /* bytes */

uint8_t *feed_read_file(const char *path, size_t *size)
{
	const char *name = is_standard(path) ? "standard input" : path;
	FILE *f = is_standard(path) ? stdin : fopen(path, "rb");
	size_t room = 65536, n = 0;
	uint8_t *data = NULL, *more;

	if (!f) {
		tool_fail("%s: %s", name, hal_strerror(errno));
		return NULL;
	}
	*size = 0;
	do {
		*size += n;
		if (!data || *size == room) {
			room = data ? 2 * room : room;
			more = room <= FILE_MAX ? realloc(data, room) : NULL;
			if (!more) {
				tool_fail("%s: %s", name,
					  room > FILE_MAX ? "longer than 2^31 bytes"
							  : "out of memory");
				free(data);
				data = NULL;
				break;
			}
			data = more;
		}
		n = fread(data + *size, 1, room - *size, f);
	} while (n);
	if (data && ferror(f)) {
		tool_fail("%s: cannot be read: %s", name, hal_strerror(errno));
		free(data);
		data = NULL;
	}
	if (f != stdin)
		(void)fclose(f);
	return data;
}

/* ---- inputs ----------------------------------------------------------------------- */

/* The shape is the input's, with or without a batch of 1, or has so many images there. */
static bool find_images(const struct npy *npy, const struct npuc_port *port,
			uint64_t *images)
{
	bool batch = port->rank && port->dims[0] == 1;
	uint32_t less = batch && npy->rank + 1 == port->rank;

	if (npy->rank + less != port->rank)
		return false;
	for (uint32_t i = less; i < port->rank; i++)
		if (npy->dims[i - less] != port->dims[i] && !(batch && !i))
			return false;
	*images = less || !batch ? 1 : (uint64_t)npy->dims[0];
	return *images > 0;
}

static int check_npy(const char *path, const struct npy *npy,
		     const struct npuc_port *port, uint64_t *images)
{
	char is[NPUC_RANK * 12], want[NPUC_RANK * 12];

	shape_text(npy->rank, npy->dims, is, sizeof(is));
	shape_text(port->rank, port->dims, want, sizeof(want));
	if (!find_images(npy, port, images))
		return tool_fail("%s: its shape is %s, but input '%s' takes %s", path, is,
				 port->name, want);
	if (npy->fortran && npy->rank > 1)
		return tool_fail("%s: stored in Fortran order; convert it to C order "
				 "(numpy.ascontiguousarray)",
				 path);
	return 0;
}

/* A file's elements, of so many images. */
struct elements {
	const char *name;
	enum npuc_type type;
	const uint8_t *data;
	uint64_t images;
};

static int take_elements(const struct elements *e, const struct convert *how,
			 const struct npuc_port *port, struct fed_input *in)
{
	uint64_t count = e->images * port->count;

	in->images = e->images;
	in->data = malloc(count * npuc_type_bytes(port->type));
	if (!in->data)
		return tool_fail("%s: out of memory", e->name);
	if (convert_needed(how, e->type, port))
		return convert_elements(how, e->name, e->type, e->data, count, port,
					in->data);
	memcpy(in->data, e->data, count * npuc_type_bytes(port->type));
	return 0;
}

/* Bytes of an element of a .npy file that an input may be made of. */
static uint32_t width_of(enum npuc_type type)
{
	return type == NPUC_FLOAT64 ? 8 : npuc_type_bytes(type);
}

static int load_image(const struct feed *f, const char *name,
		      const struct npuc_port *port, const uint8_t *data, size_t size,
		      struct fed_input *in)
{
	struct elements e = {.name = name, .type = NPUC_UINT8, .images = 1};
	uint8_t *pixels = NULL;
	int rc = image_load(name, data, size, port, &pixels);

	e.data = pixels;
	if (!rc)
		rc = take_elements(&e, &f->convert, port, in);
	free(pixels);
	return rc;
}

/* The elements of a .npy file, or those of the input's type in another one. */
static int load_input(const struct feed *f, const char *path,
		      const struct npuc_port *port, struct fed_input *in)
{
	const char *name = is_standard(path) ? "standard input" : path;
	struct elements e = {.name = name, .type = port->type, .images = 1};
	struct npy npy = {.data = 0};
	char why[NPUC_WHY];
	uint64_t want;
	size_t size = 0;
	uint8_t *data = feed_read_file(path, &size);
	int rc = 0;

	if (!data)
		return TOOL_FAILED;
	if (image_is(data, size)) {
		rc = load_image(f, name, port, data, size, in);
		free(data);
		return rc;
	}
	if (npy_is(data, size)) {
		rc = npy_parse(data, size, &npy, why)
			     ? tool_fail("%s: %s", name, why)
			     : check_npy(name, &npy, port, &e.images);
		e.type = npy.type;
	}
	want = e.images * port->count * width_of(e.type);
	if (!rc && want && size - npy.data != want)
		rc = tool_fail("%s: %s the %" PRIu64 " bytes that input '%s' takes%s",
			       name,
			       size - npy.data < want ? "shorter than" : "longer than",
			       want, port->name,
			       npy.data ? " (after the header)"
					: " (it is no .npy, PNG, JPEG, PGM or PPM file)");
	e.data = data + npy.data;
	if (!rc)
		rc = take_elements(&e, &f->convert, port, in);
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
	char names[NAMES_MAX];

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
	char names[NAMES_MAX];

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
	return 0;
}

static int check_all_given(const struct feed *f, const struct npuc_program *p,
			   const char *const *files)
{
	char names[NAMES_MAX];

	list_names(p->inputs, p->input_count, names, sizeof(names));
	for (uint32_t i = 0; i < p->input_count && !f->seed; i++)
		if (!files[i])
			return tool_fail("no file for input '%s'; give one, or --random; "
					 "inputs: %s",
					 p->inputs[i].name, names);
	return 0;
}

/* All have as many images, or one. */
static int count_images(const struct npuc_program *p, struct fed *in)
{
	uint32_t first = 0;

	in->images = 1;
	for (uint32_t i = 0; i < p->input_count; i++) {
		uint64_t images = in->inputs[i].data ? in->inputs[i].images : 1;

		if (images == 1 || images == in->images)
			continue;
		if (in->images > 1)
			return tool_fail("input '%s' has %" PRIu64
					 " images, but input '%s' has %" PRIu64,
					 p->inputs[i].name, images, p->inputs[first].name,
					 in->images);
		in->images = images;
		first = i;
	}
	return 0;
}

static int load_all(const struct feed *f, const struct npuc_program *p,
		    const char *const *files, struct fed *in)
{
	bool stdin_taken = false;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < p->input_count; i++) {
		if (!files[i])
			continue;
		if (is_standard(files[i]) && stdin_taken)
			return tool_fail("standard input can be used for one input only");
		stdin_taken |= is_standard(files[i]);
		rc = load_input(f, files[i], &p->inputs[i], &in->inputs[i]);
	}
	if (!rc)
		rc = check_all_given(f, p, files);
	return rc ? rc : count_images(p, in);
}

int feed_load(const struct feed *f, const struct npuc_program *p, struct fed *in)
{
	const char **files = calloc((size_t)p->input_count + 1, sizeof(*files));
	int rc = TOOL_FAILED;

	*in = (struct fed){.count = p->input_count, .images = 1, .state = f->seed};
	in->inputs = calloc((size_t)p->input_count + 1, sizeof(*in->inputs));
	if (!files || !in->inputs)
		tool_fail("out of memory");
	else
		rc = assign(f, p, files);
	if (!rc)
		rc = load_all(f, p, files, in);
	free(files);
	if (rc)
		feed_free(in);
	return rc;
}

void feed_free(struct fed *in)
{
	for (uint32_t i = 0; in->inputs && i < in->count; i++)
		free(in->inputs[i].data);
	free(in->inputs);
	*in = (struct fed){0};
}

int feed_write(struct fed *in, const struct npuc_program *p, struct npuc_run *run,
	       uint64_t image)
{
	char why[NPUC_WHY];
	int rc = 0;

	for (uint32_t i = 0; !rc && i < p->input_count; i++) {
		const struct fed_input *x = &in->inputs[i];
		uint64_t bytes = npuc_port_bytes(&p->inputs[i]);

		if (!x->data)
			rc = set_random(&in->state, p, i, run);
		else if (npuc_run_write(run, i,
					x->data + (x->images > 1 ? image * bytes : 0),
					bytes, why))
			rc = tool_fail("%s", why);
	}
	return rc;
}

int feed_inputs(const struct feed *f, const struct npuc_program *p, struct npuc_run *run)
{
	struct fed in;
	int rc = feed_load(f, p, &in);

	if (rc)
		return rc;
	rc = in.images > 1 ? tool_fail("the inputs have %" PRIu64
				       " images; give one to explain",
				       in.images)
			   : feed_write(&in, p, run, 0);
	feed_free(&in);
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
	char names[NAMES_MAX];

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

int feed_find_output(const char *word, const struct npuc_program *p, uint32_t *port,
		     const char **file)
{
	char names[NAMES_MAX];

	if (resolve(word, false, p, port, file))
		return TOOL_FAILED;
	if (*port == NPUC_NONE && p->output_count > 1) {
		list_names(p->outputs, p->output_count, names, sizeof(names));
		return tool_fail("%s: it has one output; select it with NAME=FILE, of %s",
				 *file, names);
	}
	if (*port == NPUC_NONE)
		*port = 0;
	return 0;
}

/* An output as a file has it: as it is, or real numbers; malloc'ed. */
static uint8_t *file_elements(const struct npuc_port *port, const uint8_t *data,
			      uint64_t count, bool real, uint64_t *bytes)
{
	uint8_t *to;

	*bytes = count * npuc_type_bytes(real ? NPUC_FLOAT32 : port->device_type);
	to = malloc(*bytes ? *bytes : 1);
	if (to && !real)
		memcpy(to, data, *bytes);
	for (uint64_t i = 0; to && real && i < count; i++) {
		float x = (float)convert_real(port,
					      convert_number(data, i, port->device_type));

		memcpy(to + i * sizeof(x), &x, sizeof(x));
	}
	return to;
}

static int write_port(const struct feed *f, const struct npuc_port *port,
		      const struct outputs *out, uint32_t output, FILE *to,
		      const char *path)
{
	bool real = port->type == NPUC_FLOAT32 || f->dequantize;
	int32_t dims[NPUC_RANK];
	char *header = NULL;
	size_t length = 0;
	uint64_t bytes;
	uint8_t *data = file_elements(port, out->data[output], out->images * port->count,
				      real, &bytes);
	int rc = 0;

	memcpy(dims, port->dims, sizeof(dims));
	if (out->images > 1 && port->rank)
		dims[0] *= (int32_t)out->images;
	if (is_npy(path))
		length = npy_header(real ? NPUC_FLOAT32 : port->type, port->rank, dims,
				    &header);
	if (!data || (is_npy(path) && !length))
		rc = tool_fail("out of memory");
	else if (fwrite(header ? header : "", 1, length, to) != length ||
		 fwrite(data, 1, bytes, to) != bytes)
		rc = tool_fail("%s: cannot be written: %s", path, hal_strerror(errno));
	free(header);
	free(data);
	return rc;
}

static int write_file(const struct feed *f, const struct npuc_program *p, uint32_t port,
		      const char *path, const struct outputs *out)
{
	FILE *to = is_standard(path) ? stdout : fopen(path, "wb");
	uint32_t from = port == NPUC_NONE ? 0 : port;
	uint32_t to_port = port == NPUC_NONE ? p->output_count : port + 1;
	int rc = 0;

	if (!to)
		return tool_fail("%s: %s", path, hal_strerror(errno));
	for (uint32_t i = from; !rc && i < to_port; i++)
		rc = write_port(f, &p->outputs[i], out, i, to, path);
	/* Standard output is looked at when the command ends. */
	if (to != stdout && fclose(to) && !rc)
		rc = tool_fail("%s: cannot be written: %s", path, hal_strerror(errno));
	return rc;
}

int feed_outputs(const struct feed *f, const struct npuc_program *p,
		 const struct outputs *out)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < f->output_count; i++) {
		const char *file;
		uint32_t port = split(f->outputs[i], p->outputs, p->output_count, &file);

		rc = write_file(f, p, port, file, out);
	}
	return rc;
}
