/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_golden.h - what each descriptor does, in C: the reference for the RTL, bit by bit.
 *
 * Arithmetic is TensorFlow Lite's reference kernels': saturating rounding doubling high
 * multiplication, then a rounding shift (rounded twice).  With F_FLOAT it is ONNX's: one
 * binary32 multiplication, rounded half to even, then saturated to +-2^30; done with the
 * host's floats here, so that it is no copy of what the hardware does.
 *
 * Faults, checked in this order before any memory is touched; .address of the first two
 * is the index of the descriptor word that holds the field, lowest word and lowest bit
 * first:
 *   OPCODE    OPCODE is not one of OP, or OP_VEC's VOP is not one of VOP
 *   FIELD     F_GROUP on GEMM, without F_BLOCK or with F_NOPARAM; then zero in one of
 *     GEMM               DM PANEL DN CIN
 *     CONV               DM OW PANEL DN CIN, with F_GROUP GC, KH KW SY SX DY DX
 *     MAXPOOL AVGPOOL    DM OW CIN KH KW SY SX DY DX (dilation is not used)
 *     the other of VEC   DM VCOLS
 *             a pool's window without a pixel of the image: word 13 (a machine finds it
 *             when it comes to it: it may have stored the outputs before)
 *   NO_UNITS  GEMM or CONV on a slot without a rectangle
 * Software guarantees the rest: KH*KW*CIN (F_GROUP: GC) <= 33025, a panel's input fits
 * the scratchpad, P[n].at + GC <= CIN, ADDR_P a multiple of 16, fence addresses multiples
 * of 8, addresses and pitches of int32 outputs and of FILL multiples of 4, shifts
 * -31..30, AMIN <= AMAX, SOFTMAX's VCOLS <= 4095.  A machine need not detect a breach;
 * its effect then stays inside the slot's address space.
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

/* Memory as the slot sees it.  read and write return 0 or a FAULT code, with the virtual
 * address of the first byte refused in *bad; a refused access changes nothing. */
struct npu_golden_env {
	void *user;
	int (*read)(void *user, uint32_t va, void *data, uint32_t bytes, uint32_t *bad);
	int (*write)(void *user, uint32_t va, const void *data, uint32_t bytes,
		     uint32_t *bad);
	uint64_t time;  /* what TIMESTAMP stores */
	uint32_t units; /* PEs of the slot; 0: none */
};

struct npu_golden_result {
	uint32_t fault; /* FAULT code; the rest tells what was done before it */
	uint32_t address;
	uint32_t irq;     /* a SIGNAL asked for the interrupt */
	uint32_t waiting; /* a WAIT whose value has not come: execute it again later */
	uint64_t macs;
	uint64_t read_bytes, write_bytes;
};

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
/* F_FLOAT's: scale is the bits of a binary32 number. */
int32_t npu_golden_float_requant(int32_t x, uint32_t scale);

#ifdef __cplusplus
}
#endif
#endif
