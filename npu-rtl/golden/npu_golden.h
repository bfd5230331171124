/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_golden.h - what each descriptor does, in C: the reference for the RTL, bit by bit.
 *
 * Arithmetic is TensorFlow Lite's reference kernels': saturating rounding doubling high
 * multiplication, then a rounding shift (rounded twice).
 *
 * Faults, checked in this order before any memory is touched; .address of the first two
 * is the index of the descriptor word that holds the field, lowest word and lowest bit
 * first: OPCODE    OPCODE is not one of OP, or OP_VEC's VOP is not one of VOP FIELD zero
 * in one of GEMM     DM PANEL DN CIN CONV     DM OW PANEL DN CIN KH KW SY SX DY DX COPY
 * FILL ADD RELU   DM VCOLS MAXPOOL  DM OW CIN KH KW SY SX DY DX NO_UNITS  GEMM or CONV on
 * a slot without a rectangle Software guarantees the rest: KH*KW*CIN <= 33025, a panel's
 * input fits the scratchpad, ADDR_P a multiple of 16, fence addresses multiples of 8,
 * addresses and pitches of int32 outputs and of FILL multiples of 4, shifts -31..30, AMIN
 * <= AMAX.  A machine need not detect a breach; its effect then stays inside the slot's
 * address space.
 *
 * VEC is int8 only: F_AU8, F_BU8 and F_OU8 mean nothing there.  A MAXPOOL window without
 * a pixel gives AMIN.  Input outside the image (padding) counts as the zero point.
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

#ifdef __cplusplus
}
#endif
#endif
