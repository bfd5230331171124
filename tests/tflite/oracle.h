/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.h - what TensorFlow Lite's reference kernels computed, as kept in data/tflite:
 * the packed single-operator models (ops.py) and the networks' checksums (nets.py).
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* count bytes of xorshift64* from that state on: common.random_bytes. */
void oracle_random(uint64_t seed, uint8_t *out, size_t count);

uint32_t oracle_crc32(const void *data, size_t bytes);

/* The whole file, malloc'd, one byte more than *size; NULL and errno.  *.gz is
 * decompressed. */
uint8_t *oracle_read_file(const char *path, size_t *size);

/* One model of the pack; points into it.  output_bytes 0: it must be refused. */
struct oracle_model {
	char text[256];
	const uint8_t *model, *input, *output; /* input NULL: random, from seed */
	uint64_t seed;
	uint32_t model_bytes, input_bytes, output_bytes;
};

struct oracle_pack {
	uint8_t *bytes;
	size_t size, at;
	uint32_t seed, models;
};

/* 0, or -errno; -EINVAL: not such a file. */
int oracle_pack_open(const char *path, struct oracle_pack *p);
void oracle_pack_close(struct oracle_pack *p);
/* Models in turn.  -EINVAL: the pack is cut off. */
int oracle_pack_next(struct oracle_pack *p, struct oracle_model *m);

/* Outputs of models of the packs that the current TensorFlow Lite has otherwise
 * (current.py). */
struct oracle_changes {
	uint8_t *bytes;
	size_t size;
};

/* 0, or -errno; -EINVAL: not such a file, or it is cut off. */
int oracle_changes_open(const char *path, struct oracle_changes *c);
void oracle_changes_close(struct oracle_changes *c);
/* Give m, model number of the pack called name, the output of c; false: c has none. */
bool oracle_changes_apply(const struct oracle_changes *c, const char *name,
			  uint32_t number, struct oracle_model *m);

#endif
