/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu.h - what is special about the NPU: programs (operations in, relocatable image out)
 * and the "npu" extension (registers, counters, modes, who used which PE).
 *
 *   hal_npu_builder_create -> arg / const / scratch -> conv, gemm, add ... -> build
 *                                              the image -> hal_program_load
 *
 * A program says nothing about the rectangle it will run on: the hardware tiles each
 * operation onto what the partition owns.  Numbers are TensorFlow Lite's int8 scheme:
 * real = scale * (q - zero_point); a multiplier is Q31 with a power-of-two shift
 * (> 0: left), applied as its reference kernels do.
 * Threads: a builder from one thread at a time.  Errors: as in hal.h.
 */
#ifndef HAL_NPU_H
#define HAL_NPU_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An image's first word; the rest is read by the library alone. */
#define HAL_NPU_IMAGE_MAGIC 0x55504e48u /* "HNPU" */

struct hal_npu_builder;

/* A place in memory: an argument, a constant or scratch, by the id the builder gave. */
struct hal_npu_place {
	uint32_t id;
	uint32_t offset;
};

/* Operands are int8 unless a flag says uint8; zero points and clamps then go from 0 to
 * 255.  b is the weights, too. */
#define HAL_NPU_A_UINT8  (1u << 0)
#define HAL_NPU_B_UINT8  (1u << 1)
#define HAL_NPU_D_UINT8  (1u << 2)
#define HAL_NPU_A_REPEAT (1u << 3) /* a is one row, used for each row of d */
#define HAL_NPU_B_REPEAT (1u << 4)
#define HAL_NPU_B_BLOCKED                                                                \
	(1u << 5) /* b of hal_npu_gemm is in blocks, as hal_npu_gemm_pack makes them */
#define HAL_NPU_ROUND_ONCE                                                               \
	(1u << 6) /* of hal_npu_gemm and hal_npu_conv: see hal_npu_requant */

/* How int32 sums become outputs: TensorFlow Lite's way with mult and shift, which rounds
 * after the multiplication and again after the shift, or ONNX's with scale:
 * d = clamp(round half even((float)sum * scale) + zero_point).
 * HAL_NPU_ROUND_ONCE: mult and shift round once, half away from zero:
 * d = clamp(round(sum * mult / 2^(31 - shift)) + zero_point). */
struct hal_npu_requant {
	const int32_t *bias;  /* [n]; NULL: 0 */
	const int32_t *mult;  /* [n] or [1], see per_channel; NULL: output is int32 */
	const int32_t *shift; /* as mult; -31..30 */
	uint32_t per_channel; /* 0: mult and shift have one element */
	int32_t zero_point;   /* of the output */
	int32_t min, max;     /* clamp: -128..127; relu, relu6 */
	const float *scale;   /* as mult, normal and positive; then mult is NULL */
};

/* d[m][n] = requant(sum_k (a[m][k] - a_zero) * (b[k][n] - b_zero) + bias[n]).
 * b is [k][n], an argument or a constant.  Strides in bytes, 0: dense.  The machine reads
 * blocks of 16 columns fastest: a constant b becomes blocks when the program is built, an
 * argument has to be in blocks already (HAL_NPU_B_BLOCKED; b_stride is 0 then).  Rows of
 * an argument of more than 1 MiB cost several times the cycles. */
struct hal_npu_gemm {
	uint32_t size;
	uint32_t m, n, k;
	struct hal_npu_place a, b, d;
	uint32_t a_stride, b_stride, d_stride;
	int32_t a_zero, b_zero;
	struct hal_npu_requant out;
	uint32_t flags; /* HAL_NPU_x_UINT8, HAL_NPU_B_BLOCKED, HAL_NPU_ROUND_ONCE */
};

/* NHWC, one image.  weights is host memory in TensorFlow Lite's OHWI order
 * [n][kh][kw][c / groups], copied into the image.  Output pixel stride 0: dense. */
struct hal_npu_conv {
	uint32_t size;
	uint32_t h, w, c;   /* input */
	uint32_t oh, ow, n; /* output */
	uint32_t kh, kw, stride_h, stride_w, dilation_h, dilation_w;
	uint32_t pad_top, pad_left; /* the rest follows from oh and ow */
	uint32_t groups;            /* 1; c: depthwise (n / c outputs a channel) */
	struct hal_npu_place a, d;
	uint32_t d_stride;
	const int8_t *weights; /* HAL_NPU_B_UINT8: uint8_t */
	int32_t a_zero;
	struct hal_npu_requant out;
	uint32_t flags; /* HAL_NPU_x_UINT8, HAL_NPU_ROUND_ONCE */
	int32_t b_zero;
};

/* d = clamp(requant(rescale(a) + rescale(b))), TensorFlow Lite's ADD: each operand is
 * shifted left by left_shift and multiplied, the sum is multiplied again.  A negative
 * a_mult or b_mult subtracts that operand. */
struct hal_npu_add {
	uint32_t size;
	uint32_t bytes;
	struct hal_npu_place a, b, d;
	int32_t a_zero, b_zero, d_zero;
	int32_t a_mult, b_mult, d_mult;
	int32_t a_shift, b_shift, d_shift; /* <= 0 */
	int32_t left_shift;                /* 20 */
	int32_t min, max;
	uint32_t flags;
	uint32_t rows;                         /* of bytes each; 0: 1 */
	uint32_t a_stride, b_stride, d_stride; /* bytes between rows, 0: dense */
};

/* d = clamp(requant((a - a_zero) * (b - b_zero)) + d_zero) */
struct hal_npu_mul {
	uint32_t size;
	uint32_t flags;
	uint32_t rows, bytes; /* rows 0: 1 */
	uint32_t a_stride, b_stride, d_stride;
	struct hal_npu_place a, b, d;
	int32_t a_zero, b_zero, d_zero;
	int32_t mult, shift;
	int32_t min, max;
};

/* d = clamp((a - a_zero) * mult + d_zero): relu, relu6 and requantization. */
struct hal_npu_relu {
	uint32_t size;
	uint32_t bytes;
	struct hal_npu_place a, d;
	int32_t a_zero, d_zero;
	int32_t mult, shift;
	int32_t min, max;
	uint32_t flags;
};

/* Padding counts for nothing: a window's maximum or average is that of its pixels (an
 * average is rounded half away from zero).  No rescaling. */
struct hal_npu_pool {
	uint32_t size;
	uint32_t h, w, c, oh, ow;
	uint32_t kh, kw, stride_h, stride_w, pad_top, pad_left;
	struct hal_npu_place a, d;
	int32_t min, max;
	uint32_t flags;
};

/* d = table[a]: any function of one byte. */
struct hal_npu_lut {
	uint32_t size;
	uint32_t bytes;
	struct hal_npu_place a, d;
	const uint8_t *table; /* [256], by a's bits */
};

/* Softmax over each of rows, in TensorFlow Lite's fixed-point arithmetic: d has scale
 * 1/256 and its type's smallest value as zero point. */
struct hal_npu_softmax {
	uint32_t size;
	uint32_t flags;
	uint32_t rows, cols; /* cols at most 4095 */
	struct hal_npu_place a, d;
	const int32_t *exp; /* [256]: Q31 exp of (a - row's largest) = 0, -1 ... -255 */
};

/* 2-D copy (DMA): rows of bytes, strides in bytes (0: dense). */
struct hal_npu_copy {
	uint32_t size;
	uint32_t rows, bytes;
	uint32_t a_stride, d_stride;
	struct hal_npu_place a, d;
	uint32_t flags; /* HAL_NPU_A_REPEAT */
};

HAL_API int hal_npu_builder_create(struct hal_npu_builder **builder);
HAL_API int hal_npu_builder_destroy(struct hal_npu_builder *builder);
/* Begins a kernel; arguments and operations that follow are its.  -EINVAL a name twice,
 * empty or longer than 31. */
HAL_API int hal_npu_kernel(struct hal_npu_builder *b, const char *name);
/* The kernel's next launch argument, at least bytes long. */
HAL_API int hal_npu_arg(struct hal_npu_builder *b, uint64_t bytes, uint32_t *id);
/* Constant data, copied; all kernels of the image may use it. */
HAL_API int hal_npu_const(struct hal_npu_builder *b, const void *data, uint64_t bytes,
			  uint32_t *id);
/* Memory the program keeps for itself in each partition it runs in. */
HAL_API int hal_npu_scratch(struct hal_npu_builder *b, uint64_t bytes, uint32_t *id);

/* -EINVAL names the field, -ENOTSUP what the machine cannot do (input rows too wide for
 * the scratchpad, k > 33025 ...), -ERANGE a place too small for what is read or
 * written. */
HAL_API int hal_npu_gemm(struct hal_npu_builder *b, const struct hal_npu_gemm *op);
/* Copies b of a GEMM, [k][n] with rows of stride bytes (0: n), to blocks of 16 columns
 * for HAL_NPU_B_BLOCKED: element (k, n) at (n / 16) * 16 * k_count + k * 16 + n % 16,
 * zeros beyond the last column.  Host memory; size bytes of blocks, at least k times n
 * rounded up to a multiple of 16.  -EINVAL: a pointer is NULL, a count is 0, stride is
 * less than n, or size is too small. */
HAL_API int hal_npu_gemm_pack(void *blocks, uint64_t size, const void *b, uint32_t n,
			      uint32_t k, uint64_t stride);
HAL_API int hal_npu_conv(struct hal_npu_builder *b, const struct hal_npu_conv *op);
HAL_API int hal_npu_add(struct hal_npu_builder *b, const struct hal_npu_add *op);
HAL_API int hal_npu_relu(struct hal_npu_builder *b, const struct hal_npu_relu *op);
HAL_API int hal_npu_mul(struct hal_npu_builder *b, const struct hal_npu_mul *op);
HAL_API int hal_npu_maxpool(struct hal_npu_builder *b, const struct hal_npu_pool *op);
HAL_API int hal_npu_avgpool(struct hal_npu_builder *b, const struct hal_npu_pool *op);
HAL_API int hal_npu_lut(struct hal_npu_builder *b, const struct hal_npu_lut *op);
HAL_API int hal_npu_softmax(struct hal_npu_builder *b, const struct hal_npu_softmax *op);
HAL_API int hal_npu_copy(struct hal_npu_builder *b, const struct hal_npu_copy *op);
HAL_API int hal_npu_fill(struct hal_npu_builder *b, struct hal_npu_place d,
			 uint32_t bytes, uint32_t pattern);

/* *image is freed with hal_npu_image_free. */
HAL_API int hal_npu_build(struct hal_npu_builder *b, void **image, size_t *size);
HAL_API void hal_npu_image_free(void *image);

/* ---- extension "npu": hal_device_get_extension(dev, "npu") ---------------------------- */

struct hal_npu_counters {
	uint32_t size;
	uint32_t reserved;
	/* stall_a: for activations, from memory or from busy banks of the scratchpad */
	uint64_t cycles, active, stall_a, stall_w, stall_out, stall_seq, idle;
	uint64_t macs, folds, rows, descs;
	uint64_t read_beats, write_beats, tlb_misses;
	uint64_t preempt_cycles; /* of the last suspend: asked until the PEs were free */
};

/* One fold as the array ran it. */
struct hal_npu_fold {
	uint32_t partition; /* hal_partition_info.index */
	uint32_t row, col;  /* the rectangle's corner */
	uint32_t rows_used, cols_used, t;
	uint64_t start, end; /* device time */
};

struct hal_npu_extension {
	uint32_t size;
	uint32_t reserved;
	/* native: hal_device_get_native(dev); partition: hal_partition_info.index. */
	int (*counters)(void *native, uint32_t partition, struct hal_npu_counters *out);
	/* One count a PE, rows * cols of them: MACs it has done since open. */
	int (*pe_busy)(void *native, uint64_t *macs, uint32_t count);
	/* No overlap between folds: each takes exactly 2h + w + t - 2 + 6 cycles. */
	int (*serial)(void *native, uint32_t partition, int on);
	/* Told as folds end, from inside hal_wait or hal_device_poll; NULL: off. */
	int (*on_fold)(void *native, void (*fn)(void *user, const struct hal_npu_fold *f),
		       void *user);
	uint32_t (*reg_read)(void *native, uint32_t address);
	/* Where in the device's memory a byte lies that hal_buffer_map has told.  -EINVAL
	 * it lies elsewhere. */
	int (*physical)(void *native, const void *mapped, uint64_t *address);
};

#ifdef __cplusplus
}
#endif
#endif
