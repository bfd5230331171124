/* SPDX-License-Identifier: Apache-2.0 */
/* flat_write.c - writes FlatBuffers. */
#include "flat_write.h"

#include <stdlib.h>
#include <string.h>

size_t flat_write_zeros(struct flat_writer *f, size_t bytes)
{
	size_t at = f->size;

	if (f->no_memory)
		return 0;
	if (bytes > f->room - f->size) {
		size_t room = (f->size + bytes) * 2 + 256;
		uint8_t *more = realloc(f->bytes, room);

		if (!more) {
			f->no_memory = true;
			return 0;
		}
		f->bytes = more;
		f->room = room;
	}
	memset(f->bytes + at, 0, bytes);
	f->size += bytes;
	return at;
}

void flat_write_at(struct flat_writer *f, size_t at, const void *data, size_t bytes)
{
	if (!f->no_memory && bytes)
		memcpy(f->bytes + at, data, bytes);
}

void flat_write_u8(struct flat_writer *f, size_t at, uint8_t x)
{
	flat_write_at(f, at, &x, 1);
}

void flat_write_u32(struct flat_writer *f, size_t at, uint32_t x)
{
	const uint8_t bytes[4] = {(uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16),
				  (uint8_t)(x >> 24)};

	flat_write_at(f, at, bytes, sizeof(bytes));
}

static void write_u16(struct flat_writer *f, size_t at, size_t x)
{
	const uint8_t bytes[2] = {(uint8_t)x, (uint8_t)(x >> 8)};

	flat_write_at(f, at, bytes, sizeof(bytes));
}

/* Append zeros until the position after so many more bytes is a multiple of align. */
static void pad(struct flat_writer *f, size_t after, size_t align)
{
	size_t over = (f->size + after) % align;

	if (over)
		flat_write_zeros(f, align - over);
}

void flat_write_table(struct flat_writer *f, size_t field, const uint8_t *bytes,
		      uint32_t fields, size_t *at)
{
	size_t vtable_bytes = 4 + 2 * (size_t)fields, size = 4, vtable, table;
	size_t offsets[FLAT_FIELDS];

	for (uint32_t i = 0; i < fields; i++) {
		if (bytes[i])
			size = (size + bytes[i] - 1) / bytes[i] * bytes[i];
		offsets[i] = bytes[i] ? size : 0;
		size += bytes[i];
	}
	pad(f, vtable_bytes, 8);
	vtable = flat_write_zeros(f, vtable_bytes + size);
	table = vtable + vtable_bytes;
	write_u16(f, vtable, vtable_bytes);
	write_u16(f, vtable + 2, size);
	flat_write_u32(f, table, (uint32_t)vtable_bytes);
	flat_write_u32(f, field, (uint32_t)(table - field));
	for (uint32_t i = 0; i < fields; i++) {
		write_u16(f, vtable + 4 + 2 * (size_t)i, offsets[i]);
		at[i] = bytes[i] ? table + offsets[i] : 0;
	}
}

size_t flat_write_vector(struct flat_writer *f, size_t field, const void *data,
			 size_t count, size_t element, size_t align)
{
	size_t at;

	pad(f, 4, align < 4 ? 4 : align);
	at = flat_write_zeros(f, 4 + count * element);
	flat_write_u32(f, field, (uint32_t)(at - field));
	flat_write_u32(f, at, (uint32_t)count);
	if (data)
		flat_write_at(f, at + 4, data, count * element);
	return at + 4;
}

void flat_write_string(struct flat_writer *f, size_t field, const char *text)
{
	flat_write_vector(f, field, text, strlen(text), 1, 4);
	flat_write_zeros(f, 1);
}
