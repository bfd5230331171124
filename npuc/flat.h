/* SPDX-License-Identifier: Apache-2.0 */
/* flat.h - reads FlatBuffers that nobody has checked: no access leaves the buffer. */
#ifndef NPUC_FLAT_H
#define NPUC_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first error sticks in .bad; from then on every read gives its default. */
struct flat {
	const uint8_t *data;
	size_t size;
	const char *bad;
	size_t bad_at; /* byte of the file */
};

/* A table whose extent and vtable lie in the buffer; .at 0: there is none. */
struct flat_table {
	size_t at, vtable;
	uint32_t size, vtable_size;
};

/* Elements one behind the other, all in the buffer; .at 0: there is none. */
struct flat_vector {
	size_t at;
	uint32_t count;
};

/* Size at most INT32_MAX; the buffer stays the caller's. */
void flat_init(struct flat *f, const void *data, size_t size);
struct flat_table flat_root(struct flat *f);

/* Fields by number, as the schema counts them. */
bool flat_has(struct flat *f, struct flat_table t, uint32_t field);
uint8_t flat_u8(struct flat *f, struct flat_table t, uint32_t field, uint8_t def);
int32_t flat_i32(struct flat *f, struct flat_table t, uint32_t field, int32_t def);
uint64_t flat_u64(struct flat *f, struct flat_table t, uint32_t field, uint64_t def);
float flat_f32(struct flat *f, struct flat_table t, uint32_t field, float def);
struct flat_table flat_sub(struct flat *f, struct flat_table t, uint32_t field);
struct flat_vector flat_vector(struct flat *f, struct flat_table t, uint32_t field,
			       uint32_t element_bytes);

/* index must be less than .count */
int32_t flat_vector_i32(const struct flat *f, struct flat_vector v, uint32_t index);
int64_t flat_vector_i64(const struct flat *f, struct flat_vector v, uint32_t index);
float flat_vector_f32(const struct flat *f, struct flat_vector v, uint32_t index);
struct flat_table flat_vector_table(struct flat *f, struct flat_vector v, uint32_t index);

#endif
