/* SPDX-License-Identifier: Apache-2.0 */
/* container.c - .npu files: a program's ports and sizes in front of its image.
 *
 * All little-endian.  Header, 88 bytes:
 *    0 magic "NPUPROG\n"        8 uint32 version
 *   12 uint32 flags: bit 0 arena_arg, bit 1 a text for the host, bit 2 state
 *   16 uint64 input_bytes      24 uint64 output_bytes   32 uint64 arena_bytes
 *   40 uint64 macs             48 uint64 cycles         56 uint32 inputs, uint32 outputs
 *   64 uint64 image bytes      72 uint64 FNV-1a of all that follows
 *   80 uint64 memory_bytes
 * then the inputs and outputs, 344 bytes each:
 *    0 name, 256 characters   256 uint32 type          260 uint32 device type
 *  264 uint32 tensor          268 uint32 rank          272 int32 dims[8]
 *  304 uint64 count           312 uint64 offset        320 float32 scale
 *  324 int32 zero point       328 zeros
 * then, with bit 1, what is left to the host: 256 characters; then the image. */
#include "container.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>

#include "model.h"
#include "quant.h"

#define MAGIC        "NPUPROG\n"
#define VERSION      2u
#define HEADER_BYTES 88u
#define HASHED       80u /* from here on */
#define PORT_BYTES   344u
#define PORTS_MAX    256u
#define FLAG_ARENA   1u
#define FLAG_HOST    2u
#define FLAG_STATE   4u
#define BUFFER_MAX   (UINT64_C(1) << 31)

static void put(uint8_t *at, uint64_t v, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get(const uint8_t *at, unsigned int bytes)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < bytes; i++)
		v |= (uint64_t)at[i] << 8 * i;
	return v;
}

/* Fowler, Noll and Vo's hash, variant 1a, 64 bits. */
static uint64_t fnv(const uint8_t *data, size_t size)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < size; i++)
		h = (h ^ data[i]) * UINT64_C(0x100000001b3);
	return h;
}

static void put_port(uint8_t *at, const struct npuc_port *p)
{
	uint32_t scale;

	memset(at, 0, PORT_BYTES);
	memcpy(at, p->name, sizeof(p->name));
	put(at + 256, (uint64_t)p->type, 4);
	put(at + 260, (uint64_t)p->device_type, 4);
	put(at + 264, p->tensor, 4);
	put(at + 268, p->rank, 4);
	for (uint32_t i = 0; i < NPUC_RANK; i++)
		put(at + 272 + (size_t)4 * i, (uint32_t)p->dims[i], 4);
	put(at + 304, p->count, 8);
	put(at + 312, p->offset, 8);
	memcpy(&scale, &p->scale, 4);
	put(at + 320, scale, 4);
	put(at + 324, (uint32_t)p->zero_point, 4);
}

bool npuc_program_bytes(const struct npuc_program *p, uint8_t **bytes, size_t *size)
{
	size_t ports = (size_t)p->input_count + p->output_count;
	size_t host = p->host[0] ? NPUC_HOST : 0;
	uint8_t *file, *at;

	*size = HEADER_BYTES + ports * PORT_BYTES + host + p->image_size;
	*bytes = file = calloc(1, *size);
	if (!file)
		return false;
	for (size_t i = 0; i < 8; i++)
		file[i] = (uint8_t)MAGIC[i];
	put(file + 8, VERSION, 4);
	put(file + 12,
	    (p->arena_arg ? FLAG_ARENA : 0) | (host ? FLAG_HOST : 0) |
		    (p->state ? FLAG_STATE : 0),
	    4);
	put(file + 16, p->input_bytes, 8);
	put(file + 24, p->output_bytes, 8);
	put(file + 32, p->arena_bytes, 8);
	put(file + 40, p->macs, 8);
	put(file + 48, p->cycles, 8);
	put(file + 56, p->input_count, 4);
	put(file + 60, p->output_count, 4);
	put(file + 64, p->image_size, 8);
	put(file + 80, p->memory_bytes, 8);
	at = file + HEADER_BYTES;
	for (uint32_t i = 0; i < p->input_count; i++, at += PORT_BYTES)
		put_port(at, &p->inputs[i]);
	for (uint32_t i = 0; i < p->output_count; i++, at += PORT_BYTES)
		put_port(at, &p->outputs[i]);
	memcpy(at, p->host, host);
	memcpy(at + host, p->image, p->image_size);
	put(file + 72, fnv(file + HASHED, *size - HASHED), 8);
	return true;
}

int npuc_program_save(const struct npuc_program *p, const char *path, char why[NPUC_WHY])
{
	uint8_t *file;
	size_t size;
	FILE *f;
	int rc = 0;

	if (!npuc_program_bytes(p, &file, &size))
		return npuc_fail(why, ENOMEM, "%s: out of memory", path);
	f = fopen(path, "wb");
	if (!f) {
		rc = npuc_fail(why, errno, "%s: %s", path, hal_strerror(errno));
	} else {
		int err = fwrite(file, 1, size, f) == size ? 0 : errno;

		if (fclose(f) && !err)
			err = errno;
		if (err)
			rc = npuc_fail(why, err, "%s: cannot be written: %s", path,
				       hal_strerror(err));
	}
	free(file);
	return rc;
}

/* Text that goes onto terminals, ended and printable. */
static void get_text(const uint8_t *at, size_t size, char *text)
{
	memcpy(text, at, size);
	text[size - 1] = '\0';
	for (char *c = text; *c; c++)
		if ((uint8_t)*c < 0x20 || (uint8_t)*c >= 0x7f)
			*c = '?';
}

/* NULL, or what is wrong. */
static const char *get_port(const uint8_t *at, uint64_t buffer, bool output,
			    struct npuc_port *p)
{
	uint32_t scale = (uint32_t)get(at + 320, 4), type, device;
	uint64_t count = 1;
	bool whole;

	get_text(at, sizeof(p->name), p->name);
	type = (uint32_t)get(at + 256, 4);
	device = (uint32_t)get(at + 260, 4);
	p->tensor = (uint32_t)get(at + 264, 4);
	p->rank = (uint32_t)get(at + 268, 4);
	p->count = get(at + 304, 8);
	p->offset = get(at + 312, 8);
	memcpy(&p->scale, &scale, 4);
	p->zero_point = (int32_t)(uint32_t)get(at + 324, 4);
	whole = output && (device == NPUC_INT32 || device == NPUC_INT64);
	if (device != NPUC_INT8 && device != NPUC_UINT8 && device != NPUC_INT16 && !whole)
		return "a port's type on the device is not int8, uint8 or int16, nor an "
		       "output's whole numbers";
	if (type != device && (whole || type != NPUC_FLOAT32))
		return "a port's type is neither the device's nor float32";
	p->type = (enum npuc_type)type;
	p->device_type = (enum npuc_type)device;
	if (p->rank > NPUC_RANK)
		return "a port has too many dimensions";
	for (uint32_t i = 0; i < p->rank; i++) {
		p->dims[i] = (int32_t)(uint32_t)get(at + 272 + (size_t)4 * i, 4);
		if (p->dims[i] < 1 || count > BUFFER_MAX)
			return "a port has an invalid dimension";
		count *= (uint64_t)p->dims[i];
	}
	if (p->count != count)
		return "a port's dimensions do not match its number of elements";
	if (p->offset > buffer ||
	    p->count * npuc_type_bytes(p->device_type) > buffer - p->offset)
		return "a port lies outside its buffer";
	if (p->scale == 0 && p->type == p->device_type && !p->zero_point)
		return NULL; /* not quantized */
	if (!whole && (!(p->scale > 0) || !isfinite(p->scale) ||
		       p->zero_point < quant_min(p->device_type) ||
		       p->zero_point > quant_max(p->device_type)))
		return "a port's quantization is invalid";
	return NULL;
}

static const char *get_header(const uint8_t *file, size_t size, struct npuc_program *p)
{
	uint64_t ports, host;

	if (size < HEADER_BYTES || memcmp(file, MAGIC, 8) != 0)
		return "not a .npu file";
	if (get(file + 8, 4) != VERSION)
		return ".npu file of another version; compile the model again";
	if (get(file + 12, 4) > (FLAG_ARENA | FLAG_HOST | FLAG_STATE))
		return "unknown flags; compile the model again";
	p->arena_arg = get(file + 12, 4) & FLAG_ARENA;
	p->state = get(file + 12, 4) & FLAG_STATE;
	host = get(file + 12, 4) & FLAG_HOST ? NPUC_HOST : 0;
	p->input_bytes = get(file + 16, 8);
	p->output_bytes = get(file + 24, 8);
	p->arena_bytes = get(file + 32, 8);
	p->macs = get(file + 40, 8);
	p->cycles = get(file + 48, 8);
	p->input_count = (uint32_t)get(file + 56, 4);
	p->output_count = (uint32_t)get(file + 60, 4);
	p->image_size = get(file + 64, 8);
	p->memory_bytes = get(file + 80, 8);
	if (p->input_bytes > BUFFER_MAX || p->output_bytes > BUFFER_MAX ||
	    p->arena_bytes > BUFFER_MAX)
		return "a buffer has more than 2^31 bytes";
	if (!p->input_count || !p->output_count || p->input_count > PORTS_MAX ||
	    p->output_count > PORTS_MAX)
		return "no ports, or too many";
	ports = ((uint64_t)p->input_count + p->output_count) * PORT_BYTES + host;
	if (size - HEADER_BYTES < ports || size - HEADER_BYTES - ports != p->image_size)
		return "its length differs from the one in its header";
	if (get(file + 72, 8) != fnv(file + HASHED, size - HASHED))
		return "it is damaged: the checksum does not match";
	return NULL;
}

int npuc_program_parse(const void *bytes, size_t size, const char *name,
		       struct npuc_program *program, char why[NPUC_WHY])
{
	const uint8_t *file = bytes, *at = file + HEADER_BYTES;
	struct npuc_program p = {0};
	const char *wrong = get_header(file, size, &p);

	memset(program, 0, sizeof(*program));
	if (wrong)
		return npuc_fail(why, EINVAL, "%s: %s", name, wrong);
	p.inputs = calloc(p.input_count, sizeof(*p.inputs));
	p.outputs = calloc(p.output_count, sizeof(*p.outputs));
	p.image = malloc(p.image_size ? p.image_size : 1);
	if (!p.inputs || !p.outputs || !p.image) {
		npuc_program_free(&p);
		return npuc_fail(why, ENOMEM, "%s: out of memory", name);
	}
	for (uint32_t i = 0; !wrong && i < p.input_count; i++, at += PORT_BYTES)
		wrong = get_port(at, p.input_bytes, false, &p.inputs[i]);
	for (uint32_t i = 0; !wrong && i < p.output_count; i++, at += PORT_BYTES)
		wrong = get_port(at, p.output_bytes, true, &p.outputs[i]);
	if (wrong) {
		npuc_program_free(&p);
		return npuc_fail(why, EINVAL, "%s: %s", name, wrong);
	}
	if (get(file + 12, 4) & FLAG_HOST) {
		get_text(at, NPUC_HOST, p.host);
		at += NPUC_HOST;
	}
	memcpy(p.image, at, p.image_size);
	*program = p;
	return 0;
}

static void name_after(struct npuc_program *p, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t n = strcspn(base, ".");

	snprintf(p->name, sizeof(p->name), "%.*s", (int)n, base);
}

int npuc_program_load(const char *path, struct npuc_program *program, char why[NPUC_WHY])
{
	void *bytes = NULL;
	size_t size = 0;
	int rc = npuc_read_file(path, NPUC_MODEL_MAX, &bytes, &size, why);

	if (rc)
		return rc;
	rc = npuc_program_parse(bytes, size, path, program, why);
	free(bytes);
	if (!rc)
		name_after(program, path);
	return rc;
}

int npuc_program_open(const char *path, const struct npuc_options *options,
		      struct npuc_program *program, char why[NPUC_WHY])
{
	struct npuc_model *model;
	void *bytes = NULL;
	size_t size = 0;
	int rc = npuc_read_file(path, NPUC_MODEL_MAX, &bytes, &size, why);

	if (rc)
		return rc;
	if (size >= 8 && memcmp(bytes, MAGIC, 8) == 0) {
		rc = npuc_program_parse(bytes, size, path, program, why);
		free(bytes);
		if (!rc)
			name_after(program, path);
		return rc;
	}
	rc = npuc_model_parse(bytes, size, path, &model, why);
	free(bytes);
	if (rc)
		return rc;
	rc = npuc_compile(model, options, program, why);
	npuc_model_free(model);
	if (!rc)
		name_after(program, path);
	return rc;
}
