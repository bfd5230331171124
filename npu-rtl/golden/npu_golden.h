/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_golden.h - what each descriptor does, in C: the reference for the RTL, bit by bit.
 *
 * Arithmetic is TensorFlow Lite's reference kernels': saturating rounding doubling high
 * multiplication, then a rounding shift (rounded twice).  With F_ONCE the product and the
 * shift are exact and rounded once, half away from zero.  With F_FLOAT it is ONNX's: one
 * binary32 multiplication, rounded half to even, then saturated to +-2^30; done with the
 * host's floats here, so that it is no copy of what the hardware does.
 *
 * Faults, checked in this order before any memory is touched:
 *   OPCODE, FIELD  what npu_golden_check says; .address is the word
 *   NO_UNITS       GEMM or CONV on a slot without a rectangle
 *   FIELD          a pool's window below the image: word 13; a panel's input that the
 *                  scratchpad cannot hold: word 15 (a machine finds either when it comes
 *                  to it: it may have stored the outputs before)
 * Software guarantees the rest: P[n].at + GC <= CIN, shifts in table P -31..30 (the
 * lowest 7 bits are looked at); sums stay int32 if KH*KW*CIN (F_GROUP: GC) <= 33025 and
 * SOFTMAX's VCOLS <= 4095.  A machine need not detect a breach; its effect then stays
 * inside the slot's address space.  It may read all of the image that a descriptor
 * declares, also what no window sees; and where rows of outputs of GEMM and CONV overlap,
 * or an output is also an input, which value counts is not said.
 *
 * F_AU8, F_BU8 and F_OU8 say how bytes and zero points are read, in VEC as elsewhere;
 * LUT, COPY and FILL know only bits.  Input outside the image (padding) counts as the
 * zero point in CONV, and for nothing in pools.
 *
 * SOFTMAX: where the sum of a row's exponentials is 512 times that of its largest or more
 * (2^28), each output rounds to 0.  TensorFlow Lite's kernel shifts by more than 31 bits
 * there and leaves the outcome to the compiler.
 */
#ifndef NPU_GOLDEN_H
#define NPU_GOLDEN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Outputs of a GEMM or CONV that are stored: of the rows before m all; of t rows from m
 * on those of the columns before n.  half: its panels are cut for tiles half as deep.
 * nc != 0: and of those rows there are sums, of nc columns from n on: products of the k
 * before k, of kr more in the first r rows.  Of a VEC: of the rows before m all, of row m
 * the bytes before n, a multiple of 16; SOFTMAX: 0.  All else is 0. */
struct npu_progress {
	uint32_t m, t, n, half, k, kr, nc, r;
};

/* Outputs of a row of a GEMM, CONV or VEC; a GEMM's parts of K: log2 of one, 0: it is
 * one. */
uint32_t npu_golden_cols(const uint32_t desc[16]);
uint32_t npu_golden_kcut(const uint32_t desc[16]);

/* p, which may be NULL, is not an operation's beginning. */
static inline int npu_golden_begun(const struct npu_progress *p)
{
	return p && (p->m || p->n || p->t);
}

/* What FOLD and SAVE leave in the save area, and what RESUME finds there: 0, or
 * FAULT_CONTEXT if it is none of the descriptor, or another address space's (PT_CONTEXT).
 * Without sums there are 8 words. */
#define NPU_CONTEXT_WORDS 10u
#define NPU_CONTEXT_SUMS  64u /* bytes from SAVE to the first row of sums */
void npu_golden_save(const uint32_t desc[16], uint32_t space,
		     const struct npu_progress *p, uint32_t context[NPU_CONTEXT_WORDS]);
uint32_t npu_golden_context(const uint32_t desc[16], uint32_t space,
			    const uint32_t context[NPU_CONTEXT_WORDS],
			    struct npu_progress *p);

/* Memory as the slot sees it.  read and write return 0 or a FAULT code, with the virtual
 * address of the first byte refused in *bad; a refused access changes nothing. */
struct npu_golden_env {
	void *user;
	int (*read)(void *user, uint32_t va, void *data, uint32_t bytes, uint32_t *bad);
	int (*write)(void *user, uint32_t va, const void *data, uint32_t bytes,
		     uint32_t *bad);
	uint64_t time;       /* what TIMESTAMP stores */
	uint32_t rows, cols; /* of the slot's rectangle; 0: none */
	/* GEMM, CONV, VEC: goes on from there, and only so far; NULL: all */
	const struct npu_progress *from, *to;
};

struct npu_golden_result {
	uint32_t fault; /* FAULT code; the rest tells what was done before it */
	uint32_t address;
	uint32_t irq;     /* a SIGNAL asked for the interrupt */
	uint32_t waiting; /* a WAIT whose value has not come: execute it again later */
	uint64_t macs;
	uint64_t read_bytes, write_bytes;
};

/* The sums that p has, in rows of nc; 0 or a FAULT code. */
int npu_golden_sums(const uint32_t desc[16], const struct npu_golden_env *env,
		    const struct npu_progress *p, int32_t *sums);
/* Whether sums that a context has are of use on a rectangle: one that is as wide as their
 * tile, and as high as the fold that some of its rows have, and where tiles are not
 * stored two and two.  Else the tile begins anew. */
int npu_golden_sums_used(const uint32_t desc[16], uint32_t rows, uint32_t cols,
			 const struct npu_progress *p);
/* Bytes from SAVE to those of a row. */
uint32_t npu_golden_sums_at(const struct npu_progress *p, uint32_t row);

/* What is wrong with a descriptor's fields, by themselves: FAULT_NONE, FAULT_OPCODE or
 * FAULT_FIELD, and of that *word, the index of the lowest word with a field that is
 * wrong. The same as npu_check.sv; docs/npu.md has the table. */
uint32_t npu_golden_check(const uint32_t desc[16], uint32_t *word);

/* Executes one descriptor.  Returns the FAULT code (0: none), also in result->fault. */
int npu_golden_exec(const uint32_t desc[16], const struct npu_golden_env *env,
		    struct npu_golden_result *result);

/* An address space that is simply memory: [0, bytes) or FAULT_BOUNDS. */
struct npu_golden_flat {
	uint8_t *memory;
	uint64_t bytes;
};
int npu_golden_flat_read(void *flat, uint32_t va, void *data, uint32_t bytes,
			 uint32_t *bad);
int npu_golden_flat_write(void *flat, uint32_t va, const void *data, uint32_t bytes,
			  uint32_t *bad);

/* gemmlowp's SaturatingRoundingDoublingHighMul and RoundingDivideByPOT (0 <= exponent <=
 * 31), and TensorFlow Lite's MultiplyByQuantizedMultiplier (shift > 0: left). */
int32_t npu_golden_high_mul(int32_t a, int32_t b);
int32_t npu_golden_round_shift(int32_t x, int32_t exponent);
int32_t npu_golden_requant(int32_t x, int32_t mult, int32_t shift);
/* F_ONCE's: round(sat32(x * 2^shift) * mult / 2^31), shift above 0; or
 * round(x * mult / 2^(31 - shift)). */
int32_t npu_golden_once_requant(int32_t x, int32_t mult, int32_t shift);
/* F_FLOAT's: scale is the bits of a binary32 number. */
int32_t npu_golden_float_requant(int32_t x, uint32_t scale);

#ifdef __cplusplus
}
#endif
#endif
