/* SPDX-License-Identifier: Apache-2.0 */
/* flat_write.h - writes FlatBuffers front to back: a table, then what it refers to. */
#ifndef NPUC_FLAT_WRITE_H
#define NPUC_FLAT_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLAT_FIELDS 16u /* of one table */

/* The first failure of malloc sets .no_memory; later calls write nothing then. */
struct flat_writer {
	uint8_t *bytes; /* malloc'ed, the caller's to free */
	size_t size, room;
	bool no_memory;
};

/* Append zeros and return the position of the first. */
size_t flat_write_zeros(struct flat_writer *f, size_t bytes);
void flat_write_at(struct flat_writer *f, size_t at, const void *data, size_t bytes);
void flat_write_u8(struct flat_writer *f, size_t at, uint8_t x);
void flat_write_u32(struct flat_writer *f, size_t at, uint32_t x);

/* Write a table and make the reference at position field point to it.  bytes[i] is the
 * size of field i: 1, 4 or 8, or 0 where it is absent; references have 4.  at[i] gets the
 * field's position. */
void flat_write_table(struct flat_writer *f, size_t field, const uint8_t *bytes,
		      uint32_t fields, size_t *at);
/* Write a vector, make the reference at position field point to it, and return the
 * position of its first element, a multiple of align.  data NULL: zeros. */
size_t flat_write_vector(struct flat_writer *f, size_t field, const void *data,
			 size_t count, size_t element, size_t align);
void flat_write_string(struct flat_writer *f, size_t field, const char *text);

#endif
