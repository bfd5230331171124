/* SPDX-License-Identifier: Apache-2.0 */
/* npy.c - the header of NumPy's .npy files, versions 1 to 3.
 *
 * Byte 0 "\x93NUMPY", 6 version, 7 zero, 8 length of what follows, little-endian in 2
 * bytes or from version 2 on in 4; then a Python dictionary as text:
 * {'descr': '<f4', 'fortran_order': False, 'shape': (1, 8), } */
#include "npy.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC       "\x93NUMPY"
#define MAGIC_BYTES 6u
#define ALIGN       64u /* of the elements */

/* NumPy's names as it writes them.  It also reads them with another byte order, or none.
 */
static const struct {
	const char *name;
	enum npuc_type type;
} types[] = {
	{"|i1", NPUC_INT8},    {"|u1", NPUC_UINT8},   {"<f4", NPUC_FLOAT32},
	{"<i4", NPUC_INT32},   {"<i8", NPUC_INT64},   {"<i2", NPUC_INT16},
	{"<f2", NPUC_FLOAT16}, {"<f8", NPUC_FLOAT64}, {"|b1", NPUC_BOOL},
	{"<u2", NPUC_UINT16},  {"<u4", NPUC_UINT32},  {"<u8", NPUC_UINT64},
};
#define TYPES (sizeof(types) / sizeof(types[0]))

struct text {
	const char *at, *end;
	char *why;
};

__attribute__((format(printf, 2, 3))) static int wrong(const struct text *t,
						       const char *fmt, ...)
{
	size_t used = (size_t)snprintf(t->why, NPUC_WHY, "invalid .npy header: ");
	va_list ap;

	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it has been started */
	vsnprintf(t->why + used, NPUC_WHY - used, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static void skip_blanks(struct text *t)
{
	while (t->at < t->end && isspace((unsigned char)*t->at))
		t->at++;
}

/* Takes c, after blanks, if it is next. */
static bool take(struct text *t, char c)
{
	skip_blanks(t);
	if (t->at == t->end || *t->at != c)
		return false;
	t->at++;
	return true;
}

static bool take_word(struct text *t, const char *word)
{
	size_t n = strlen(word);

	skip_blanks(t);
	if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
		return false;
	t->at += n;
	return true;
}

static int take_string(struct text *t, char *out, size_t room)
{
	size_t n = 0;
	char quote;

	skip_blanks(t);
	if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
		return wrong(t, "a quoted string is missing");
	quote = *t->at;
	for (t->at++; t->at < t->end && *t->at != quote; t->at++)
		if (n + 1 < room)
			out[n++] = (char)(isprint((unsigned char)*t->at) ? *t->at : '?');
	out[n] = '\0';
	return take(t, quote) ? 0 : wrong(t, "a quoted string is not terminated");
}

/* Find a type by NumPy's name: a byte order, '|' (none), '<', '>' or '=' (this
 * machine's), or nothing, then kind and bytes.  One byte has no order. */
static bool find_type(const char *name, enum npuc_type *type)
{
	const char *kind = name + (*name && strchr("|<=>", *name));

	for (size_t i = 0; i < TYPES; i++)
		if (strcmp(types[i].name + 1, kind) == 0 &&
		    (*name != '>' || kind[1] == '1')) {
			*type = types[i].type;
			return true;
		}
	return false;
}

static int take_type(struct text *t, struct npy *npy)
{
	char name[16] = "";
	int rc;

	skip_blanks(t);
	if (t->at < t->end && *t->at == '[') {
		snprintf(t->why, NPUC_WHY, "structured arrays are not supported");
		return -EINVAL;
	}
	rc = take_string(t, name, sizeof(name));
	if (rc)
		return rc;
	if (find_type(name, &npy->type))
		return 0;
	snprintf(t->why, NPUC_WHY, "elements of type '%s' are not supported; %s", name,
		 name[0] == '>' ? "only little-endian ones ('<') are"
				: "only int8 '|i1', uint8 '|u1', int16 '<i2', float32 "
				  "'<f4' and float64 '<f8' are");
	return -EINVAL;
}

static int take_shape(struct text *t, struct npy *npy)
{
	if (!take(t, '('))
		return wrong(t, "the shape is not a tuple");
	while (!take(t, ')')) {
		int64_t n = 0;

		if (t->at == t->end || !isdigit((unsigned char)*t->at))
			return wrong(t, "a dimension is not a number");
		for (; t->at < t->end && isdigit((unsigned char)*t->at); t->at++) {
			n = n * 10 + (*t->at - '0');
			if (n > INT32_MAX)
				return wrong(t, "a dimension is above 2^31 - 1");
		}
		(void)take(t, 'L'); /* Python 2 wrote long integers so */
		if (npy->rank == NPUC_RANK)
			return wrong(t, "it has more than %d dimensions", NPUC_RANK);
		npy->dims[npy->rank++] = (int32_t)n;
		if (!take(t, ',') && (t->at == t->end || *t->at != ')'))
			return wrong(t, "the shape is not closed");
	}
	return 0;
}

static int take_order(struct text *t, struct npy *npy)
{
	npy->fortran = take_word(t, "True");
	return npy->fortran || take_word(t, "False")
		       ? 0
		       : wrong(t, "fortran_order is neither True nor False");
}

/* The three keys, in any order. */
static int take_dictionary(struct text *t, struct npy *npy)
{
	static int (*const values[])(struct text * t, struct npy * npy) = {
		take_type, take_order, take_shape};
	static const char *const keys[] = {"descr", "fortran_order", "shape"};
	bool seen[3] = {false};

	if (!take(t, '{'))
		return wrong(t, "it is not a dictionary");
	while (!take(t, '}')) {
		char key[16];
		size_t k = 0;
		int rc = take_string(t, key, sizeof(key));

		if (rc)
			return rc;
		while (k < 3 && strcmp(keys[k], key) != 0)
			k++;
		if (k == 3 || seen[k])
			return wrong(t, "unknown or repeated key '%s'", key);
		seen[k] = true;
		rc = take(t, ':') ? values[k](t, npy)
				  : wrong(t, "key '%s' has no value", key);
		if (rc)
			return rc;
		skip_blanks(t);
		if (!take(t, ',') && (t->at == t->end || *t->at != '}'))
			return wrong(t, "the dictionary is not closed");
	}
	for (size_t k = 0; k < 3; k++)
		if (!seen[k])
			return wrong(t, "key '%s' is missing", keys[k]);
	skip_blanks(t);
	return t->at == t->end ? 0 : wrong(t, "text after the dictionary");
}

bool npy_is(const void *bytes, size_t size)
{
	return size >= MAGIC_BYTES && memcmp(bytes, MAGIC, MAGIC_BYTES) == 0;
}

int npy_parse(const void *bytes, size_t size, struct npy *npy, char why[NPUC_WHY])
{
	const uint8_t *file = bytes;
	struct text t = {.why = why};
	size_t begin, length = 0;

	*npy = (struct npy){.type = NPUC_INT8};
	if (size < MAGIC_BYTES + 2)
		return wrong(&t, "it is truncated");
	if (file[6] < 1 || file[6] > 3 || file[7]) {
		snprintf(why, NPUC_WHY,
			 "version %u.%u of .npy is not supported; 1.0, 2.0 and 3.0 are",
			 file[6], file[7]);
		return -EINVAL;
	}
	begin = file[6] == 1 ? 10 : 12;
	if (size < begin)
		return wrong(&t, "it is truncated");
	for (size_t i = begin; i-- > 8;)
		length = length << 8 | file[i];
	if (length > NPY_HEADER_MAX)
		return wrong(&t, "%zu bytes; at most %u are supported", length,
			     NPY_HEADER_MAX);
	if (length > size - begin)
		return wrong(&t, "it is truncated");
	t.at = (const char *)file + begin;
	t.end = t.at + length;
	npy->data = begin + length;
	return take_dictionary(&t, npy);
}

size_t npy_header(enum npuc_type type, uint32_t rank, const int32_t *dims, char **header)
{
	char text[160 + NPUC_RANK * 12], shape[NPUC_RANK * 12] = "";
	size_t used = 0, length, whole;
	const char *name = "|V1";

	for (size_t i = 0; i < TYPES; i++)
		if (types[i].type == type)
			name = types[i].name;
	for (uint32_t i = 0; i < rank; i++)
		used += (size_t)snprintf(shape + used, sizeof(shape) - used, "%d,%s",
					 dims[i], i + 1 < rank ? " " : "");
	if (rank > 1)
		shape[used - 1] = '\0';
	length = (size_t)snprintf(
		text, sizeof(text),
		"{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", name, shape);
	whole = (10 + length + 1 + ALIGN - 1) / ALIGN * ALIGN;
	*header = malloc(whole);
	if (!*header)
		return 0;
	memset(*header, ' ', whole);
	memcpy(*header, MAGIC "\x01", MAGIC_BYTES + 1);
	(*header)[7] = 0;
	(*header)[8] = (char)((whole - 10) & 0xff);
	(*header)[9] = (char)((whole - 10) >> 8);
	memcpy(*header + 10, text, length);
	(*header)[whole - 1] = '\n';
	return whole;
}
