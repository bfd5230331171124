/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits.h - int8 classifiers of handwritten digits: files, a plain C reference, and the
 * same network as an NPU program.  data/digits/README.md has the file formats.
 *
 * Errors:  -errno, and why[] (of DIGITS_WHY bytes) says what is wrong and where.
 * Threads: a loaded network from one thread at a time (digits_infer uses memory of its
 * own).
 */
#ifndef DIGITS_H
#define DIGITS_H

#include <stddef.h>
#include <stdint.h>

#define DIGITS_WHY         256
#define DIGITS_PIXELS      64
#define DIGITS_CLASSES     10
#define DIGITS_TENSORS_MAX 32

enum digits_kind {
	DIGITS_CONV = 1, /* kernel x kernel, stride 1 */
	DIGITS_DENSE,    /* over the whole input */
	DIGITS_POOL,     /* maximum */
	DIGITS_ADD,
};

/* real = scale * (q - zero) */
struct digits_tensor {
	uint32_t h, w, c;
	float scale;
	int32_t zero;
};

/* Layer i writes tensor i + 1; tensor 0 is the image, the last one the logits. */
struct digits_layer {
	enum digits_kind kind;
	uint32_t src[2]; /* src[1] for ADD alone */
	uint32_t kernel, stride, pad;
	int32_t min, max; /* clamp of the output: relu is a min of the zero point */
	int8_t *weights;  /* [n][ky][kx][c]; DENSE: [n][k] */
	int32_t *bias, *mult, *shift;                /* [n] */
	int32_t add_mult[3], add_shift[3], add_left; /* of src[0], src[1] and the sum */
};

struct digits_net {
	char name[17];
	uint32_t tensor_count, layer_count;
	struct digits_tensor tensors[DIGITS_TENSORS_MAX];
	struct digits_layer layers[DIGITS_TENSORS_MAX];
	int8_t *values[DIGITS_TENSORS_MAX]; /* of digits_infer */
	uint64_t macs;                      /* one inference */
};

struct digits_image {
	uint8_t pixels[DIGITS_PIXELS]; /* 0..16, rows from the top */
	uint8_t label;
	uint16_t row; /* of the data set as scikit-learn carries it */
};

struct digits_images {
	uint32_t count;
	struct digits_image *image;
};

/* -ENOENT and so on: the file; -EINVAL truncated, damaged or inconsistent. */
int digits_net_load(const char *path, struct digits_net **net, char *why);
void digits_net_free(struct digits_net *net);
int digits_images_load(const char *path, struct digits_images *images, char *why);
void digits_images_free(struct digits_images *images);
/* Logits recorded by the training script's simulation: count rows of DIGITS_CLASSES. */
int digits_logits_load(const char *path, int8_t **logits, uint32_t *count, char *why);

/* Pixels 0..16 as the networks' int8 input: value / 16 at scale 1/255, zero point -128.
 */
void digits_quantize(const uint8_t *pixels, int8_t *input);
/* Inference by TensorFlow Lite's reference arithmetic, written from its definition and
 * sharing nothing with the NPU's sources. */
void digits_infer(struct digits_net *net, const int8_t *input, int8_t *logits);
/* The first of the largest logits. */
uint32_t digits_answer(const int8_t *logits);
/* Bits that differ between two rows of logits. */
uint32_t digits_differing_bits(const int8_t *a, const int8_t *b);

/* The network as an NPU program: kernel "run" (logits out, image in).  Free *image with
 * hal_npu_image_free. */
int digits_build(const struct digits_net *net, void **image, size_t *size, char *why);

#endif
