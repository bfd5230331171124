/* SPDX-License-Identifier: Apache-2.0 */
/* flat.c - reads FlatBuffers that nobody has checked. */
#include "flat.h"

#include <string.h>

static void bad(struct flat *f, const char *what, size_t at)
{
	if (f->bad)
		return;
	f->bad = what;
	f->bad_at = at;
}

/* The format is little-endian whatever the host is. */
static uint64_t get(const struct flat *f, size_t at, unsigned int bytes)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < bytes; i++)
		v |= (uint64_t)f->data[at + i] << 8 * i;
	return v;
}

static bool inside(const struct flat *f, size_t at, size_t bytes)
{
	return at <= f->size && bytes <= f->size - at;
}

void flat_init(struct flat *f, const void *data, size_t size)
{
	*f = (struct flat){.data = data, .size = size};
	if (size > INT32_MAX)
		bad(f, "it is longer than 2^31 - 1 bytes", 0);
}

/* A forward reference of 32 bits at a place that lies in the buffer. */
static size_t follow(struct flat *f, size_t at)
{
	size_t to = at + (size_t)get(f, at, 4);

	if (to == at || to >= f->size) {
		bad(f, "a reference points outside the file", at);
		return 0;
	}
	return to;
}

static struct flat_table table(struct flat *f, size_t at)
{
	struct flat_table t = {0};
	int64_t vtable;

	if (f->bad)
		return t;
	if (!inside(f, at, 4)) {
		bad(f, "a table lies outside the file", at);
		return t;
	}
	vtable = (int64_t)at - (int32_t)(uint32_t)get(f, at, 4);
	if (vtable < 0 || !inside(f, (size_t)vtable, 4)) {
		bad(f, "a table's vtable lies outside the file", at);
		return t;
	}
	t.vtable = (size_t)vtable;
	t.vtable_size = (uint32_t)get(f, t.vtable, 2);
	t.size = (uint32_t)get(f, t.vtable + 2, 2);
	if (t.vtable_size < 4 || t.vtable_size % 2 || t.size < 4 ||
	    !inside(f, t.vtable, t.vtable_size) || !inside(f, at, t.size)) {
		bad(f, "a table is longer than the file, or its vtable is broken", at);
		return (struct flat_table){0};
	}
	t.at = at;
	return t;
}

struct flat_table flat_root(struct flat *f)
{
	size_t at;

	if (f->bad)
		return (struct flat_table){0};
	if (!inside(f, 0, 8)) {
		bad(f, "not a TensorFlow Lite model: shorter than the header of 8 bytes",
		    0);
		return (struct flat_table){0};
	}
	at = follow(f, 0);
	return f->bad ? (struct flat_table){0} : table(f, at);
}

/* Where a field of so many bytes lies; 0: the table does not have it. */
static size_t field_at(struct flat *f, struct flat_table t, uint32_t field,
		       uint32_t bytes)
{
	uint32_t slot = 4 + 2 * field, offset;

	if (f->bad || !t.at || slot + 2 > t.vtable_size)
		return 0;
	offset = (uint32_t)get(f, t.vtable + slot, 2);
	if (!offset)
		return 0;
	if (offset < 4 || offset + bytes > t.size) {
		bad(f, "a field lies outside its table", t.vtable + slot);
		return 0;
	}
	return t.at + offset;
}

bool flat_has(struct flat *f, struct flat_table t, uint32_t field)
{
	return field_at(f, t, field, 1) != 0;
}

uint8_t flat_u8(struct flat *f, struct flat_table t, uint32_t field, uint8_t def)
{
	size_t at = field_at(f, t, field, 1);

	return at ? f->data[at] : def;
}

int32_t flat_i32(struct flat *f, struct flat_table t, uint32_t field, int32_t def)
{
	size_t at = field_at(f, t, field, 4);

	return at ? (int32_t)(uint32_t)get(f, at, 4) : def;
}

uint64_t flat_u64(struct flat *f, struct flat_table t, uint32_t field, uint64_t def)
{
	size_t at = field_at(f, t, field, 8);

	return at ? get(f, at, 8) : def;
}

static float float_of(uint32_t bits)
{
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

float flat_f32(struct flat *f, struct flat_table t, uint32_t field, float def)
{
	size_t at = field_at(f, t, field, 4);

	return at ? float_of((uint32_t)get(f, at, 4)) : def;
}

struct flat_table flat_sub(struct flat *f, struct flat_table t, uint32_t field)
{
	size_t at = field_at(f, t, field, 4);

	if (at)
		at = follow(f, at);
	return at ? table(f, at) : (struct flat_table){0};
}

struct flat_vector flat_vector(struct flat *f, struct flat_table t, uint32_t field,
			       uint32_t element_bytes)
{
	struct flat_vector v = {0};
	size_t at = field_at(f, t, field, 4);
	uint64_t count;

	if (at)
		at = follow(f, at);
	if (!at)
		return v;
	if (!inside(f, at, 4)) {
		bad(f, "a vector lies outside the file", at);
		return v;
	}
	count = get(f, at, 4);
	if (count > (f->size - at - 4) / element_bytes) {
		bad(f, "a vector is longer than the file", at);
		return v;
	}
	v.at = at + 4;
	v.count = (uint32_t)count;
	return v;
}

int32_t flat_vector_i32(const struct flat *f, struct flat_vector v, uint32_t index)
{
	return (int32_t)(uint32_t)get(f, v.at + (size_t)index * 4, 4);
}

int64_t flat_vector_i64(const struct flat *f, struct flat_vector v, uint32_t index)
{
	return (int64_t)get(f, v.at + (size_t)index * 8, 8);
}

float flat_vector_f32(const struct flat *f, struct flat_vector v, uint32_t index)
{
	return float_of((uint32_t)get(f, v.at + (size_t)index * 4, 4));
}

struct flat_table flat_vector_table(struct flat *f, struct flat_vector v, uint32_t index)
{
	size_t at;

	if (f->bad)
		return (struct flat_table){0};
	at = follow(f, v.at + (size_t)index * 4);
	return at ? table(f, at) : (struct flat_table){0};
}
