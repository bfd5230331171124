/* SPDX-License-Identifier: Apache-2.0 */
/* The digit classifiers' files, read with every bound checked, and their int8 reference.
 */
#include "digits.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES 48u
#define CRC_FROM     20u
#define TENSOR_BYTES 16u
#define LAYER_BYTES  96u
#define IMAGE_BYTES  67u
#define FILE_MAX     (1u << 20)
#define SIDE_MAX     64u
#define CHANNELS_MAX 256u
#define INPUT_ZERO   (-128)

/* A whole file in memory, header already checked. */
struct blob {
	const char *path;
	uint8_t *data;
	uint32_t size;
	uint32_t counts[3];
	char name[17];
};

__attribute__((format(printf, 3, 4))) static int fail(int err, char *why, const char *fmt,
						      ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, DIGITS_WHY, fmt, ap);
	va_end(ap);
	return -err;
}

static uint32_t le16(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t le32(const uint8_t *p)
{
	return le16(p) | le16(p + 2) << 16;
}

static int32_t le32s(const uint8_t *p)
{
	return (int32_t)le32(p);
}

/* ---- files ------------------------------------------------------------------------- */

/* CRC-32 as in zlib, a bit at a time: the files are small. */
static uint32_t crc32(const uint8_t *p, size_t size)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < size; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc & 1) ? UINT32_C(0xEDB88320) : 0);
	}
	return ~crc;
}

static int read_all(const char *path, struct blob *b, char *why)
{
	FILE *f = fopen(path, "rb");
	char text[128];
	int err = 0;
	size_t got;

	if (!f)
		return fail(errno, why, "%s: %s", path,
			    strerror_r(errno, text, sizeof(text)));
	b->data = malloc(FILE_MAX);
	if (!b->data) {
		err = fail(ENOMEM, why, "%s: out of memory", path);
		goto out;
	}
	got = fread(b->data, 1, FILE_MAX, f);
	b->size = (uint32_t)got;
	if (ferror(f))
		err = fail(EIO, why, "%s: the file cannot be read", path);
	else if (got == FILE_MAX)
		err = fail(EINVAL, why, "%s: %u bytes or more are too long", path,
			   FILE_MAX);
out:
	fclose(f);
	return err;
}

static int check_header(struct blob *b, const char *magic, char *why)
{
	const uint8_t *p = b->data;

	if (b->size < HEADER_BYTES)
		return fail(EINVAL, why,
			    "%s: truncated: it has %u bytes, its header alone %u",
			    b->path, b->size, HEADER_BYTES);
	if (memcmp(p, magic, 8) != 0)
		return fail(EINVAL, why, "%s: it does not begin with \"%s\"", b->path,
			    magic);
	if (le32(p + 8) != 1)
		return fail(EINVAL, why, "%s: version %u; this program reads version 1",
			    b->path, le32(p + 8));
	if (le32(p + 12) != b->size)
		return fail(EINVAL, why,
			    "%s: %s: it has %u bytes, but %u according to its header",
			    b->path, b->size < le32(p + 12) ? "truncated" : "too long",
			    b->size, le32(p + 12));
	if (le32(p + 16) != crc32(p + CRC_FROM, b->size - CRC_FROM))
		return fail(EINVAL, why, "%s: damaged: the checksum does not match",
			    b->path);
	for (uint32_t i = 0; i < 3; i++)
		b->counts[i] = le32(p + CRC_FROM + 4 * (size_t)i);
	memcpy(b->name, p + 32, 16);
	return 0;
}

static int blob_open(const char *path, const char *magic, struct blob *b, char *why)
{
	int err;

	*b = (struct blob){.path = path};
	err = read_all(path, b, why);
	if (!err)
		err = check_header(b, magic, why);
	if (err) {
		free(b->data);
		b->data = NULL;
	}
	return err;
}

int digits_images_load(const char *path, struct digits_images *images, char *why)
{
	struct blob b;
	const uint8_t *p;
	int err = blob_open(path, "HALIMAGE", &b, why);

	*images = (struct digits_images){0};
	if (err)
		return err;
	if (b.counts[0] == 0 || b.counts[1] != 8 || b.counts[2] != 8 ||
	    b.size - HEADER_BYTES != (uint64_t)b.counts[0] * IMAGE_BYTES) {
		err = fail(EINVAL, why,
			   "%s: %u images of %u x %u do not match the file's length",
			   path, b.counts[0], b.counts[1], b.counts[2]);
		goto out;
	}
	images->image = calloc(b.counts[0], sizeof(*images->image));
	if (!images->image) {
		err = fail(ENOMEM, why, "%s: out of memory", path);
		goto out;
	}
	images->count = b.counts[0];
	p = b.data + HEADER_BYTES;
	for (uint32_t i = 0; i < images->count; i++, p += IMAGE_BYTES) {
		memcpy(images->image[i].pixels, p, DIGITS_PIXELS);
		images->image[i].label = p[DIGITS_PIXELS];
		images->image[i].row = (uint16_t)le16(p + DIGITS_PIXELS + 1);
	}
	for (uint32_t i = 0; i < images->count && !err; i++) {
		uint8_t brightest = 0;

		for (uint32_t k = 0; k < DIGITS_PIXELS; k++)
			if (images->image[i].pixels[k] > brightest)
				brightest = images->image[i].pixels[k];
		if (brightest > 16 || images->image[i].label >= DIGITS_CLASSES)
			err = fail(EINVAL, why,
				   "%s: image %u: pixel %u or label %u is too large",
				   path, i, brightest, images->image[i].label);
	}
	if (err)
		digits_images_free(images);
out:
	free(b.data);
	return err;
}

void digits_images_free(struct digits_images *images)
{
	free(images->image);
	*images = (struct digits_images){0};
}

int digits_logits_load(const char *path, int8_t **logits, uint32_t *count, char *why)
{
	struct blob b;
	int err = blob_open(path, "HALLOGIT", &b, why);

	*logits = NULL;
	if (err)
		return err;
	if (b.counts[0] == 0 || b.counts[1] != DIGITS_CLASSES ||
	    b.size - HEADER_BYTES != (uint64_t)b.counts[0] * DIGITS_CLASSES) {
		err = fail(EINVAL, why,
			   "%s: %u rows of %u do not match the file's length", path,
			   b.counts[0], b.counts[1]);
		goto out;
	}
	*logits = malloc(b.size - HEADER_BYTES);
	if (!*logits) {
		err = fail(ENOMEM, why, "%s: out of memory", path);
		goto out;
	}
	memcpy(*logits, b.data + HEADER_BYTES, b.size - HEADER_BYTES);
	*count = b.counts[0];
out:
	free(b.data);
	return err;
}

/* ---- network file ---------------------------------------------------------------- */

static int parse_tensor(const struct blob *b, struct digits_net *net, uint32_t i,
			char *why)
{
	const uint8_t *p = b->data + HEADER_BYTES + (size_t)i * TENSOR_BYTES;
	struct digits_tensor *t = &net->tensors[i];
	uint32_t scale = le32(p + 8);

	t->h = le16(p);
	t->w = le16(p + 2);
	t->c = le16(p + 4);
	memcpy(&t->scale, &scale, sizeof(t->scale));
	t->zero = le32s(p + 12);
	if (t->h == 0 || t->w == 0 || t->c == 0 || t->h > SIDE_MAX || t->w > SIDE_MAX ||
	    t->c > CHANNELS_MAX)
		return fail(EINVAL, why,
			    "%s: tensor %u has the invalid shape %u x %u x %u", b->path,
			    i, t->h, t->w, t->c);
	if (t->zero < -128 || t->zero > 127 || !(t->scale > 0))
		return fail(EINVAL, why,
			    "%s: tensor %u has the invalid scale %g or zero point %d",
			    b->path, i, (double)t->scale, t->zero);
	net->values[i] = malloc((size_t)t->h * t->w * t->c);
	if (!net->values[i])
		return fail(ENOMEM, why, "%s: out of memory", b->path);
	return 0;
}

/* A layer's array of bytes bytes, copied; NULL and why when it leaves the file. */
static void *copy_array(const struct blob *b, uint32_t layer, const char *what,
			uint32_t offset, size_t bytes, char *why)
{
	void *copy;

	if (offset > b->size || bytes > b->size - offset) {
		fail(EINVAL, why,
		     "%s: layer %u: %s (%zu bytes at %u) exceed the file of %u", b->path,
		     layer, what, bytes, offset, b->size);
		return NULL;
	}
	copy = malloc(bytes);
	if (!copy) {
		fail(ENOMEM, why, "%s: out of memory", b->path);
		return NULL;
	}
	memcpy(copy, b->data + offset, bytes);
	return copy;
}

static int32_t *copy_words(const struct blob *b, uint32_t layer, const char *what,
			   uint32_t offset, size_t n, char *why)
{
	int32_t *words = copy_array(b, layer, what, offset, n * sizeof(*words), why);

	/* In place: word i only reads its own four bytes. */
	for (size_t i = 0; words && i < n; i++)
		words[i] = le32s((const uint8_t *)&words[i]);
	return words;
}

static bool rescale_ok(int32_t mult, int32_t shift)
{
	return mult >= 0 && shift >= -31 && shift <= 30;
}

/* Weights and per-channel parameters of CONV and DENSE. */
static int parse_weights(const struct blob *b, struct digits_net *net, uint32_t i,
			 const uint8_t *p, char *why)
{
	struct digits_layer *l = &net->layers[i];
	const struct digits_tensor *a = &net->tensors[l->src[0]],
				   *d = &net->tensors[i + 1];
	size_t k = l->kind == DIGITS_CONV ? (size_t)l->kernel * l->kernel * a->c
					  : (size_t)a->h * a->w * a->c;

	l->weights = copy_array(b, i, "weights", le32(p + 40), k * d->c, why);
	if (!l->weights)
		return -EINVAL;
	l->bias = copy_words(b, i, "biases", le32(p + 44), d->c, why);
	if (!l->bias)
		return -EINVAL;
	l->mult = copy_words(b, i, "multipliers", le32(p + 48), d->c, why);
	if (!l->mult)
		return -EINVAL;
	l->shift = copy_words(b, i, "shifts", le32(p + 52), d->c, why);
	if (!l->shift)
		return -EINVAL;
	for (uint32_t n = 0; n < d->c; n++)
		if (!rescale_ok(l->mult[n], l->shift[n]))
			return fail(EINVAL, why,
				    "%s: layer %u: channel %u has the invalid factor %d "
				    "* 2^%d",
				    b->path, i, n, l->mult[n], l->shift[n]);
	net->macs += (uint64_t)k * d->c * d->h * d->w;
	return 0;
}

static int parse_add(const struct blob *b, struct digits_layer *l, uint32_t i,
		     const uint8_t *p, char *why)
{
	for (uint32_t k = 0; k < 3; k++) {
		l->add_mult[k] = le32s(p + 56 + 8 * (size_t)k);
		l->add_shift[k] = le32s(p + 60 + 8 * (size_t)k);
		if (!rescale_ok(l->add_mult[k], l->add_shift[k]) || l->add_shift[k] > 0)
			return fail(EINVAL, why,
				    "%s: layer %u: operand %u has the invalid factor %d "
				    "* 2^%d",
				    b->path, i, k, l->add_mult[k], l->add_shift[k]);
	}
	l->add_left = le32s(p + 80);
	if (l->add_left < 0 || l->add_left > 22)
		return fail(EINVAL, why, "%s: layer %u: the left shift %d is invalid",
			    b->path, i, l->add_left);
	return 0;
}

static bool window_fits(uint32_t in, uint32_t out, const struct digits_layer *l)
{
	return in + 2 * l->pad >= l->kernel &&
	       (in + 2 * l->pad - l->kernel) / l->stride + 1 == out;
}

static bool shapes_fit(const struct digits_net *net, const struct digits_layer *l,
		       uint32_t i)
{
	const struct digits_tensor *a = &net->tensors[l->src[0]];
	const struct digits_tensor *b = &net->tensors[l->src[1]];
	const struct digits_tensor *d = &net->tensors[i + 1];
	bool window = l->kernel > 0 && l->kernel <= 7 && l->stride > 0 &&
		      l->stride <= 7 && l->pad < l->kernel &&
		      window_fits(a->h, d->h, l) && window_fits(a->w, d->w, l);

	switch (l->kind) {
	case DIGITS_CONV:
		return window;
	case DIGITS_POOL:
		/* No padding: a window of nothing but padding has no maximum. */
		return window && l->pad == 0 && a->c == d->c && a->zero == d->zero;
	case DIGITS_DENSE:
		return d->h == 1 && d->w == 1;
	case DIGITS_ADD:
		return a->h == b->h && a->w == b->w && a->c == b->c && a->h == d->h &&
		       a->w == d->w && a->c == d->c;
	}
	return false;
}

static int parse_layer(const struct blob *b, struct digits_net *net, uint32_t i,
		       char *why)
{
	const uint8_t *p = b->data + HEADER_BYTES +
			   (size_t)net->tensor_count * TENSOR_BYTES +
			   (size_t)i * LAYER_BYTES;
	struct digits_layer *l = &net->layers[i];
	uint32_t kind = le32(p);

	if (kind < DIGITS_CONV || kind > DIGITS_ADD)
		return fail(EINVAL, why, "%s: layer %u has the unknown kind %u", b->path,
			    i, kind);
	l->kind = (enum digits_kind)kind;
	l->src[0] = le32(p + 4);
	l->src[1] = le32(p + 8);
	l->kernel = le32(p + 16);
	l->stride = le32(p + 20);
	l->pad = le32(p + 24);
	l->min = le32s(p + 32);
	l->max = le32s(p + 36);
	if (le32(p + 12) != i + 1 || l->src[0] > i || l->src[1] > i)
		return fail(EINVAL, why,
			    "%s: layer %u: invalid operands: tensors %u, %u to %u",
			    b->path, i, l->src[0], l->src[1], le32(p + 12));
	if (l->min < -128 || l->max > 127 || l->min > l->max)
		return fail(EINVAL, why, "%s: layer %u: the clamp %d..%d is invalid",
			    b->path, i, l->min, l->max);
	if (!shapes_fit(net, l, i) || le32(p + 28) != net->tensors[i + 1].c)
		return fail(EINVAL, why,
			    "%s: layer %u: the shapes do not match its window", b->path,
			    i);
	if (l->kind == DIGITS_CONV || l->kind == DIGITS_DENSE)
		return parse_weights(b, net, i, p, why);
	return l->kind == DIGITS_ADD ? parse_add(b, l, i, p, why) : 0;
}

static int parse_net(const struct blob *b, struct digits_net *net, char *why)
{
	const struct digits_tensor *first = &net->tensors[0], *last;
	int err = 0;

	memcpy(net->name, b->name, sizeof(net->name));
	net->tensor_count = b->counts[0];
	net->layer_count = b->counts[1];
	if (net->layer_count == 0 || net->layer_count >= DIGITS_TENSORS_MAX ||
	    net->tensor_count != net->layer_count + 1)
		return fail(EINVAL, why, "%s: invalid counts: %u layers, %u tensors",
			    b->path, net->layer_count, net->tensor_count);
	if (b->size < HEADER_BYTES + net->tensor_count * TENSOR_BYTES +
			      net->layer_count * LAYER_BYTES)
		return fail(EINVAL, why, "%s: truncated within its tables", b->path);
	for (uint32_t i = 0; i < net->tensor_count && !err; i++)
		err = parse_tensor(b, net, i, why);
	for (uint32_t i = 0; i < net->layer_count && !err; i++)
		err = parse_layer(b, net, i, why);
	if (err)
		return err;
	last = &net->tensors[net->tensor_count - 1];
	if (first->h != 8 || first->w != 8 || first->c != 1 ||
	    first->zero != INPUT_ZERO || last->h != 1 || last->w != 1 ||
	    last->c != DIGITS_CLASSES)
		return fail(EINVAL, why,
			    "%s: the network is not a classifier of 8 x 8 digits",
			    b->path);
	return 0;
}

int digits_net_load(const char *path, struct digits_net **net, char *why)
{
	struct blob b;
	int err = blob_open(path, "HALDIGIT", &b, why);

	*net = NULL;
	if (err)
		return err;
	*net = calloc(1, sizeof(**net));
	err = *net ? parse_net(&b, *net, why)
		   : fail(ENOMEM, why, "%s: out of memory", path);
	if (err) {
		digits_net_free(*net);
		*net = NULL;
	}
	free(b.data);
	return err;
}

void digits_net_free(struct digits_net *net)
{
	if (!net)
		return;
	for (uint32_t i = 0; i < DIGITS_TENSORS_MAX; i++) {
		free(net->layers[i].weights);
		free(net->layers[i].bias);
		free(net->layers[i].mult);
		free(net->layers[i].shift);
		free(net->values[i]);
	}
	free(net);
}

/* ---- reference ------------------------------------------------------------------- */

/* gemmlowp's SaturatingRoundingDoublingHighMul. */
static int32_t high_mul(int32_t a, int32_t b)
{
	int64_t ab = (int64_t)a * b;
	int64_t nudge = ab >= 0 ? INT64_C(1) << 30 : 1 - (INT64_C(1) << 30);

	if (a == INT32_MIN && b == INT32_MIN)
		return INT32_MAX;
	return (int32_t)((ab + nudge) / (INT64_C(1) << 31));
}

/* gemmlowp's RoundingDivideByPOT: to nearest, halves away from zero. */
static int32_t divide_by_pot(int32_t x, int32_t exponent)
{
	int32_t mask = (int32_t)((INT64_C(1) << exponent) - 1);
	int32_t remainder = x & mask;
	int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);

	return (x >> exponent) + (remainder > threshold ? 1 : 0);
}

/* x * mult / 2^31 * 2^shift; a left shift wraps as the 32-bit registers do. */
static int32_t rescale(int32_t x, int32_t mult, int32_t shift)
{
	int32_t left = shift > 0 ? shift : 0;

	x = (int32_t)((uint32_t)x << left);
	return divide_by_pot(high_mul(x, mult), left - shift);
}

static int8_t clamp(int64_t x, const struct digits_layer *l)
{
	return (int8_t)(x < l->min ? l->min : x > l->max ? l->max : x);
}

/* One output of a convolution: the window whose corner is (y, x), channel n. */
static int32_t conv_sum(const struct digits_net *net, const struct digits_layer *l,
			int32_t y, int32_t x, uint32_t n)
{
	const struct digits_tensor *a = &net->tensors[l->src[0]];
	const int8_t *in = net->values[l->src[0]];
	const int8_t *w = l->weights + (size_t)n * l->kernel * l->kernel * a->c;
	int64_t sum = l->bias[n];

	for (int32_t ky = 0; ky < (int32_t)l->kernel; ky++) {
		for (int32_t kx = 0; kx < (int32_t)l->kernel; kx++, w += a->c) {
			int32_t iy = y + ky, ix = x + kx;

			if (iy < 0 || ix < 0 || iy >= (int32_t)a->h ||
			    ix >= (int32_t)a->w)
				continue; /* padding is the zero point: it adds nothing */
			for (uint32_t c = 0; c < a->c; c++)
				sum += (int64_t)w[c] *
				       (in[((size_t)iy * a->w + (size_t)ix) * a->c + c] -
					a->zero);
		}
	}
	return (int32_t)(uint32_t)sum;
}

static void run_conv(struct digits_net *net, uint32_t i)
{
	const struct digits_layer *l = &net->layers[i];
	const struct digits_tensor *d = &net->tensors[i + 1];
	int8_t *out = net->values[i + 1];

	for (uint32_t y = 0; y < d->h; y++) {
		for (uint32_t x = 0; x < d->w; x++) {
			for (uint32_t n = 0; n < d->c; n++) {
				int32_t sum = conv_sum(
					net, l,
					(int32_t)(y * l->stride) - (int32_t)l->pad,
					(int32_t)(x * l->stride) - (int32_t)l->pad, n);

				sum = rescale(sum, l->mult[n], l->shift[n]);
				*out++ = clamp((int64_t)sum + d->zero, l);
			}
		}
	}
}

static void run_dense(struct digits_net *net, uint32_t i)
{
	const struct digits_layer *l = &net->layers[i];
	const struct digits_tensor *a = &net->tensors[l->src[0]],
				   *d = &net->tensors[i + 1];
	const int8_t *in = net->values[l->src[0]];
	size_t k = (size_t)a->h * a->w * a->c;

	for (uint32_t n = 0; n < d->c; n++) {
		int64_t sum = l->bias[n];

		for (size_t j = 0; j < k; j++)
			sum += (int64_t)l->weights[n * k + j] * (in[j] - a->zero);
		sum = rescale((int32_t)(uint32_t)sum, l->mult[n], l->shift[n]);
		net->values[i + 1][n] = clamp(sum + d->zero, l);
	}
}

static void run_pool(struct digits_net *net, uint32_t i)
{
	const struct digits_layer *l = &net->layers[i];
	const struct digits_tensor *a = &net->tensors[l->src[0]],
				   *d = &net->tensors[i + 1];
	const int8_t *in = net->values[l->src[0]];

	for (uint32_t o = 0; o < d->h * d->w * d->c; o++) {
		uint32_t c = o % d->c, x = o / d->c % d->w, y = o / d->c / d->w;
		int8_t best = INT8_MIN;

		for (uint32_t k = 0; k < l->kernel * l->kernel; k++) {
			uint32_t iy = y * l->stride + k / l->kernel;
			uint32_t ix = x * l->stride + k % l->kernel;
			int8_t v = in[(iy * a->w + ix) * a->c + c];

			if (v > best)
				best = v;
		}
		net->values[i + 1][o] = clamp(best, l);
	}
}

static void run_add(struct digits_net *net, uint32_t i)
{
	const struct digits_layer *l = &net->layers[i];
	const struct digits_tensor *d = &net->tensors[i + 1];

	for (uint32_t o = 0; o < d->h * d->w * d->c; o++) {
		int32_t sum = 0;

		for (uint32_t k = 0; k < 2; k++) {
			int32_t v =
				net->values[l->src[k]][o] - net->tensors[l->src[k]].zero;

			v = v * (INT32_C(1) << l->add_left);
			sum += rescale(v, l->add_mult[k], l->add_shift[k]);
		}
		sum = rescale(sum, l->add_mult[2], l->add_shift[2]);
		net->values[i + 1][o] = clamp((int64_t)sum + d->zero, l);
	}
}

void digits_quantize(const uint8_t *pixels, int8_t *input)
{
	for (uint32_t i = 0; i < DIGITS_PIXELS; i++)
		input[i] = (int8_t)((pixels[i] * 255 + 8) / 16 + INPUT_ZERO);
}

void digits_infer(struct digits_net *net, const int8_t *input, int8_t *logits)
{
	static void (*const run[])(struct digits_net *, uint32_t) = {
		[DIGITS_CONV] = run_conv,
		[DIGITS_DENSE] = run_dense,
		[DIGITS_POOL] = run_pool,
		[DIGITS_ADD] = run_add,
	};

	memcpy(net->values[0], input, DIGITS_PIXELS);
	for (uint32_t i = 0; i < net->layer_count; i++)
		run[net->layers[i].kind](net, i);
	memcpy(logits, net->values[net->layer_count], DIGITS_CLASSES);
}

uint32_t digits_answer(const int8_t *logits)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < DIGITS_CLASSES; i++)
		if (logits[i] > logits[best])
			best = i;
	return best;
}

uint32_t digits_differing_bits(const int8_t *a, const int8_t *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < DIGITS_CLASSES; i++)
		n += (uint32_t)__builtin_popcount((unsigned int)((a[i] ^ b[i]) & 0xFF));
	return n;
}
