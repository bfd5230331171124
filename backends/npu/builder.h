/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.h - what the parts of the builder share: builder.c holds places, kernels and
 * the image, builder_matrix.c GEMM and CONV, builder_vec.c the operations of the vector
 * unit.
 *
 * An operation is built between npu_op_begin and npu_op_end; if anything in between
 * fails, npu_op_end takes all of it back.
 */
#ifndef BACKENDS_NPU_BUILDER_H
#define BACKENDS_NPU_BUILDER_H

#include <hal/npu.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "fail.h"
#include "image.h"
#include "npu_regs.h"

/* ---- the machine, as far as programs must know it --------------------------------- */

#define NPU_U16_MAX 65535u
#define NPU_DM_MAX  ((1u << 20) - 1u)

#define NPU_TYPES   (HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8 | HAL_NPU_D_UINT8)

/* ---- an operation being built ----------------------------------------------------- */

/* op names the function in error texts. */
struct npu_op {
	struct hal_npu_builder *b;
	struct npu_image_kernel *k;
	const char *op;
	uint32_t desc_count, reloc_count; /* when it began: where an error goes back to */
	size_t data;
	uint32_t places, packs;
};

int npu_op_start(struct npu_op *g, struct hal_npu_builder *b, const char *op,
		 const void *arg, uint32_t size, uint32_t want);

/* size is arg's own .size, want what this library knows.  The NULL check is here, so that
 * tools see it. */
static inline int npu_op_begin(struct npu_op *g, struct hal_npu_builder *b,
			       const char *op, const void *arg, uint32_t size,
			       uint32_t want)
{
	if (!b || !arg)
		return npu_fail(EINVAL, "%s: NULL argument", op);
	return npu_op_start(g, b, op, arg, size, want);
}

/* rc, which is 0 or what failed. */
int npu_op_end(struct npu_op *g, int rc);

/* A place in the constant block; *at is where its bytes are to be written, until the next
 * constant is added. */
int npu_add_const(struct hal_npu_builder *b, uint64_t bytes, uint32_t *id, uint8_t **at);

/* B of a GEMM: n columns of k rows that are stride bytes apart. */
struct npu_matrix {
	struct hal_npu_place at;
	uint32_t n, k;
	uint64_t stride;
};

/* Bytes of a matrix in blocks of 16 columns (F_BLOCK). */
static inline uint64_t npu_blocks_bytes(uint32_t n, uint32_t k)
{
	return ((uint64_t)n + 15) / 16 * 16 * k;
}

/* If m is a constant, make a copy of it in blocks, or find the one that is there already,
 * and set *blocks to its place; else leave *blocks as it is. */
int npu_pack_const(struct npu_op *g, const struct npu_matrix *m,
		   struct hal_npu_place *blocks);

/* The next descriptor, all 0; it stays valid until the next is added. */
int npu_add_desc(struct npu_op *g, uint32_t **d);

/* Word of the newest descriptor becomes the address of at + more. */
int npu_relocate(struct npu_op *g, uint32_t word, struct hal_npu_place at, uint64_t more);

#define NPU_RELOCATE(g, field, at, more)                                                 \
	npu_relocate(g, NPU_DESC_##field##_WORD, at, more)

/* ---- checks: 0, or a negative errno after npu_fail -------------------------------- */

/* The place must exist, belong to this kernel and hold bytes from its offset on. */
int npu_check_place(struct npu_op *g, const char *field, struct hal_npu_place at,
		    uint64_t bytes);
/* The same of an output: no constant. */
int npu_check_out(struct npu_op *g, const char *field, struct hal_npu_place at,
		  uint64_t bytes);
/* The place's address must be a multiple of align once the program runs. */
int npu_need_align(struct npu_op *g, const char *field, struct hal_npu_place at,
		   uint32_t align);
/* A row of least bytes must fit its stride. */
int npu_check_stride(struct npu_op *g, const char *field, uint64_t stride,
		     uint64_t least);
/* HAL_NPU_* flags outside of known are -EINVAL. */
int npu_check_flags(struct npu_op *g, uint32_t flags, uint32_t known);

/* -EINVAL outside of min..max. */
struct npu_range {
	const char *field;
	int64_t value, min, max;
};
int npu_check_range(struct npu_op *g, const char *field, int64_t value, int64_t min,
		    int64_t max);
int npu_check_ranges(struct npu_op *g, const struct npu_range *r, size_t count);

/* What the caller may mean but the machine's fields cannot hold: 0 is -EINVAL, more than
 * max -ENOTSUP. */
struct npu_limit {
	const char *field;
	uint64_t value, max;
};
int npu_check_limits(struct npu_op *g, const struct npu_limit *l, size_t count);

/* The values of a byte, by a flag. */
static inline int64_t npu_byte_min(uint32_t is_uint8)
{
	return is_uint8 ? 0 : -128;
}

static inline int64_t npu_byte_max(uint32_t is_uint8)
{
	return is_uint8 ? 255 : 127;
}

/* HAL_NPU_x_UINT8 as the descriptor has them. */
static inline void npu_set_types(uint32_t *d, uint32_t flags)
{
	NPU_SET(d, F_AU8, (flags & HAL_NPU_A_UINT8) != 0);
	NPU_SET(d, F_BU8, (flags & HAL_NPU_B_UINT8) != 0);
	NPU_SET(d, F_OU8, (flags & HAL_NPU_D_UINT8) != 0);
}

/* ---- windows over an image: convolution and pooling ------------------------------- */

struct npu_window {
	uint32_t h, w, c, oh, ow;
	uint32_t kh, kw, sy, sx, dy, dx, pt, pl;
};

/* A block of output pixels: whole lines, or a piece of one line. */
struct npu_block {
	uint32_t oy, oh, ox, ow; /* first and count */
	uint32_t h, w, pt, pl;   /* the input it sees */
	uint64_t a;              /* where that begins, bytes */
	uint64_t lda;
};

int npu_check_window(struct npu_op *g, const struct npu_window *v);
/* Fills the input side of blk. */
void npu_see_input(const struct npu_window *v, struct npu_block *blk);
void npu_set_window(uint32_t *d, const struct npu_window *v, const struct npu_block *blk);

#endif
