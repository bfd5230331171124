/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.c - protobuf's wire format, and the messages of onnx.proto that are needed. */
#include "onnx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- wire format ------------------------------------------------------------------ */

struct wire {
	const uint8_t *at, *end;
};

enum wire_type {
	WIRE_NUMBER = 0,
	WIRE_64 = 1,
	WIRE_BYTES = 2,
	WIRE_32 = 5,
};

struct field {
	uint32_t number;
	uint32_t type;
	uint64_t value;    /* WIRE_NUMBER, _32, _64 */
	struct wire bytes; /* WIRE_BYTES */
};

static bool get_number(struct wire *w, uint64_t *value)
{
	*value = 0;
	for (uint32_t shift = 0; shift < 70 && w->at < w->end; shift += 7) {
		uint8_t byte = *w->at++;

		if (shift < 64)
			*value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			return true;
	}
	return false;
}

static bool get_fixed(struct wire *w, uint32_t bytes, uint64_t *value)
{
	if ((size_t)(w->end - w->at) < bytes)
		return false;
	*value = 0;
	for (uint32_t i = 0; i < bytes; i++)
		*value |= (uint64_t)*w->at++ << (8 * i);
	return true;
}

static bool get_value(struct wire *w, struct field *f)
{
	switch (f->type) {
	case WIRE_NUMBER:
		return get_number(w, &f->value);
	case WIRE_64:
		return get_fixed(w, 8, &f->value);
	case WIRE_32:
		return get_fixed(w, 4, &f->value);
	case WIRE_BYTES:
		if (!get_number(w, &f->value) || f->value > (uint64_t)(w->end - w->at))
			return false;
		f->bytes.at = w->at;
		f->bytes.end = w->at += (size_t)f->value;
		return true;
	default:
		return false;
	}
}

/* 1, 0 at the end, or -EINVAL. */
static int next_field(struct wire *w, struct field *f)
{
	uint64_t tag;

	memset(f, 0, sizeof(*f));
	if (w->at == w->end)
		return 0;
	if (!get_number(w, &tag) || tag >> 3 == 0 || tag >> 32)
		return -EINVAL;
	f->number = (uint32_t)(tag >> 3);
	f->type = (uint32_t)(tag & 7);
	return get_value(w, f) ? 1 : -EINVAL;
}

/* A repeated number: one a field, or all of them packed into one.  fn is called for each
 * and returns 0 to go on. */
static int each_number(const struct field *f, int (*fn)(void *user, uint64_t value),
		       void *user)
{
	struct wire w = f->bytes;
	int err = 0;

	if (f->type == WIRE_NUMBER)
		return fn(user, f->value);
	if (f->type != WIRE_BYTES)
		return -EINVAL;
	while (!err && w.at < w.end) {
		uint64_t value;

		err = get_number(&w, &value) ? fn(user, value) : -EINVAL;
	}
	return err;
}

static int get_text(const struct field *f, char text[ONNX_NAME])
{
	size_t n = (size_t)(f->bytes.end - f->bytes.at);

	if (f->type != WIRE_BYTES || n >= ONNX_NAME)
		return -EINVAL;
	if (n)
		memcpy(text, f->bytes.at, n);
	text[n] = 0;
	return 0;
}

/* ---- TensorProto ------------------------------------------------------------------ */

struct tensor_reader {
	struct onnx_tensor *t;
	struct wire raw, floats;
	struct field numbers[64]; /* int32_data, where it is not packed */
	uint32_t number_fields;
	uint32_t filled; /* elements */
};

static int add_dim(void *user, uint64_t value)
{
	struct onnx_tensor *t = user;

	if (t->rank == ONNX_RANK || value > 1u << 20)
		return -EINVAL;
	t->dims[t->rank++] = (uint32_t)value;
	return 0;
}

static int read_tensor_field(struct tensor_reader *r, const struct field *f)
{
	switch (f->number) {
	case 1:
		return each_number(f, add_dim, r->t);
	case 2:
		r->t->type = (uint32_t)f->value;
		return 0;
	case 4:
		r->floats = f->bytes;
		return f->type == WIRE_BYTES ? 0 : -EINVAL;
	case 5:
		if (r->number_fields == sizeof(r->numbers) / sizeof(r->numbers[0]))
			return -EINVAL;
		r->numbers[r->number_fields++] = *f;
		return 0;
	case 9:
		r->raw = f->bytes;
		return f->type == WIRE_BYTES ? 0 : -EINVAL;
	default:
		return 0;
	}
}

static uint32_t element_bytes(uint32_t type)
{
	switch (type) {
	case ONNX_UINT8:
	case ONNX_INT8:
		return 1;
	case ONNX_FLOAT:
	case ONNX_INT32:
		return 4;
	default:
		return 0;
	}
}

/* int32_data: a number an element, whatever its type. */
static int add_element(void *user, uint64_t value)
{
	struct tensor_reader *r = user;
	uint32_t at = r->filled++;

	if (at >= r->t->count)
		return -EINVAL;
	if (element_bytes(r->t->type) == 1)
		((uint8_t *)r->t->data)[at] = (uint8_t)value;
	else
		((uint32_t *)r->t->data)[at] = (uint32_t)value;
	return 0;
}

static int fill_tensor(struct tensor_reader *r)
{
	struct onnx_tensor *t = r->t;
	uint32_t width = element_bytes(t->type);
	const struct wire *w =
		t->type == ONNX_FLOAT && r->floats.at ? &r->floats : &r->raw;
	uint64_t count = 1;
	int err = 0;

	if (!width)
		return -ENOTSUP;
	for (uint32_t i = 0; i < t->rank; i++) {
		count *= t->dims[i];
		if (count > 1u << 20)
			return -EINVAL;
	}
	t->count = (uint32_t)count;
	t->data = calloc(count ? count : 1, width);
	if (!t->data)
		return -ENOMEM;
	if (w->at) {
		if ((size_t)(w->end - w->at) != count * width)
			return -EINVAL;
		memcpy(t->data, w->at, count * width); /* little-endian, as the host */
		return 0;
	}
	for (uint32_t i = 0; i < r->number_fields && !err; i++)
		err = each_number(&r->numbers[i], add_element, r);
	return err ? err : r->filled == t->count ? 0 : -EINVAL;
}

int onnx_tensor_parse(const uint8_t *bytes, size_t size, struct onnx_tensor *t)
{
	struct wire w = {bytes, bytes + size};
	struct tensor_reader r = {.t = t};
	struct field f;
	int rc;

	memset(t, 0, sizeof(*t));
	while ((rc = next_field(&w, &f)) > 0) {
		rc = read_tensor_field(&r, &f);
		if (rc)
			return rc;
	}
	if (!rc)
		rc = fill_tensor(&r);
	if (rc)
		onnx_tensor_free(t);
	return rc;
}

void onnx_tensor_free(struct onnx_tensor *t)
{
	free(t->data);
	memset(t, 0, sizeof(*t));
}

/* ---- ModelProto ------------------------------------------------------------------- */

struct names {
	char name[ONNX_INPUTS][ONNX_NAME];
	uint32_t count;
};

static int add_name(struct names *n, const struct field *f)
{
	return n->count == ONNX_INPUTS ? -EINVAL : get_text(f, n->name[n->count++]);
}

static int add_int(void *user, uint64_t value)
{
	struct onnx_attribute *a = user;

	if (a->count == ONNX_INTS)
		return -EINVAL;
	a->ints[a->count++] = (int64_t)value;
	return 0;
}

static int read_attribute(struct wire w, struct onnx_attribute *a)
{
	struct field f;
	int rc;

	while ((rc = next_field(&w, &f)) > 0) {
		if (f.number == 1)
			rc = get_text(&f, a->name);
		else if (f.number == 4)
			rc = get_text(&f, a->text);
		else if (f.number == 3 || f.number == 8)
			rc = each_number(&f, add_int, a);
		if (rc < 0)
			return rc;
	}
	return rc;
}

static int read_node(struct wire w, struct onnx_node *n, struct names *inputs)
{
	struct field f;
	int rc;

	while ((rc = next_field(&w, &f)) > 0) {
		if (f.number == 1)
			rc = add_name(inputs, &f);
		else if (f.number == 4)
			rc = get_text(&f, n->op);
		else if (f.number == 5 && f.type == WIRE_BYTES)
			rc = n->attribute_count == ONNX_INTS
				     ? -EINVAL
				     : read_attribute(
					       f.bytes,
					       &n->attribute[n->attribute_count++]);
		if (rc < 0)
			return rc;
	}
	return rc;
}

/* ValueInfoProto: its name is field 1. */
static int read_input(struct wire w, struct names *inputs)
{
	struct field f;
	int rc;

	while ((rc = next_field(&w, &f)) > 0)
		if (f.number == 1)
			return add_name(inputs, &f);
	return rc ? rc : -EINVAL;
}

static int read_graph(struct wire w, struct onnx_node *n, struct names *of_node,
		      struct names *of_graph)
{
	bool found = false;
	struct field f;
	int rc;

	while ((rc = next_field(&w, &f)) > 0) {
		if (f.type != WIRE_BYTES)
			continue;
		if (f.number == 1 && !found) {
			found = true;
			rc = read_node(f.bytes, n, of_node);
		} else if (f.number == 11) {
			rc = read_input(f.bytes, of_graph);
		}
		if (rc < 0)
			return rc;
	}
	return rc ? rc : found ? 0 : -EINVAL;
}

static int match_inputs(struct onnx_node *n, const struct names *of_node,
			const struct names *of_graph)
{
	n->input_count = of_node->count;
	for (uint32_t i = 0; i < of_node->count; i++) {
		uint32_t k = 0;

		n->input[i] = -1;
		if (!of_node->name[i][0])
			continue;
		while (k < of_graph->count &&
		       strcmp(of_graph->name[k], of_node->name[i]) != 0)
			k++;
		if (k == of_graph->count)
			return -EINVAL;
		n->input[i] = (int32_t)k;
	}
	return 0;
}

int onnx_node_parse(const uint8_t *bytes, size_t size, struct onnx_node *n)
{
	struct wire w = {bytes, bytes + size};
	struct names of_node = {.count = 0}, of_graph = {.count = 0};
	struct field f;
	int rc;

	memset(n, 0, sizeof(*n));
	while ((rc = next_field(&w, &f)) > 0)
		if (f.number == 7 && f.type == WIRE_BYTES) {
			rc = read_graph(f.bytes, n, &of_node, &of_graph);
			return rc ? rc : match_inputs(n, &of_node, &of_graph);
		}
	return rc ? rc : -EINVAL;
}

int64_t onnx_int(const struct onnx_node *n, const char *name, uint32_t i, int64_t absent)
{
	for (uint32_t k = 0; k < n->attribute_count; k++) {
		const struct onnx_attribute *a = &n->attribute[k];

		if (strcmp(a->name, name) == 0 && i < a->count)
			return a->ints[i];
	}
	return absent;
}

/* ---- files ------------------------------------------------------------------------ */

uint8_t *onnx_read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = NULL;
	long end = -1;

	if (!f)
		return NULL;
	if (fseek(f, 0, SEEK_END) == 0)
		end = ftell(f);
	if (end >= 0 && fseek(f, 0, SEEK_SET) == 0)
		bytes = malloc((size_t)end + 1);
	if (bytes && fread(bytes, 1, (size_t)end, f) != (size_t)end) {
		free(bytes);
		bytes = NULL;
		errno = EIO;
	}
	*size = bytes ? (size_t)end : 0;
	fclose(f);
	return bytes;
}
