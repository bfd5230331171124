/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_world.h - programs of the builder, run through hal.h on random rectangles, against
 * plain loops: on the golden model always, on the RTL where its 16 x 16 model is built.
 */
#ifndef TESTS_UNIT_NPU_WORLD_H
#define TESTS_UNIT_NPU_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <hal/npu.h>

#define BYTES 65536u /* of each of the three arguments */

#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_)                                                                 \
			fail_msg("%s: %d: %s", #call, ok_, hal_last_error());            \
	} while (0)

struct world {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *in[2], *out;
	uint32_t seed;
	uint8_t a[BYTES], b[BYTES]; /* random; a and b of the operation */
	uint8_t want[BYTES], got[BYTES];
	/* The program being made: its places, and what an operation calls itself. */
	struct hal_npu_builder *builder;
	struct hal_npu_place pa, pb, pd;
	char what[256];
};

/* Adds an operation to the program and writes what it must give into want. */
typedef void (*world_make)(struct world *w);

uint32_t world_random(struct world *w); /* 24 bits */
uint32_t pick(struct world *w, uint32_t lo, uint32_t hi);

/* A zero point or a clamp: any byte of the type. */
int32_t pick_byte(struct world *w, uint32_t is_uint8);
int32_t pick_mult(struct world *w);
/* lo and hi of a clamp; often all of the type. */
void pick_clamp(struct world *w, uint32_t is_uint8, int32_t *lo, int32_t *hi);

int32_t value(uint8_t byte, uint32_t is_uint8);
/* TensorFlow Lite's multiplication by mult * 2^(shift - 31), written down once more. */
int32_t scaled(int32_t x, int32_t mult, int32_t shift);
int32_t clamped(int64_t x, int32_t lo, int32_t hi);

/* each programs on each of partitions, one random operation of make a program; fails with
 * the seed and what the operation was. */
void world_run(const char *target, const world_make *make, size_t count,
	       uint32_t partitions, uint32_t each);

/* The two ways that every operation is run. */
void world_golden(const world_make *make, size_t count);
void world_rtl(const world_make *make, size_t count);

#endif
