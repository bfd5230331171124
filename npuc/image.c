/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - pictures for inputs: PNG by libpng, JPEG by libjpeg, binary PGM and PPM,
 * resized by bilinear interpolation. */
#include "image.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HALRUN_PNG
#include <png.h>
#endif
#ifdef HALRUN_JPEG
#include <setjmp.h>

#include <jpeglib.h>
#endif

#include "tool.h"

#define SIDE_MAX 32768u

/* What is wanted, and then what is there. */
struct picture {
	const char *name;
	uint32_t w, h, channels;
	uint8_t *pixels;
};

enum kind { OTHER, PNG, JPEG, PNM };

static enum kind kind_of(const uint8_t *file, size_t size)
{
	if (size > 8 && memcmp(file, "\x89PNG\r\n\x1a\n", 8) == 0)
		return PNG;
	if (size > 3 && memcmp(file, "\xff\xd8\xff", 3) == 0)
		return JPEG;
	if (size > 3 && file[0] == 'P' && (file[1] == '5' || file[1] == '6') &&
	    isspace(file[2]))
		return PNM;
	return OTHER;
}

bool image_is(const uint8_t *file, size_t size)
{
	return kind_of(file, size) != OTHER;
}

/* Memory for pixels of that size. */
static int make_pixels(struct picture *p, uint32_t w, uint32_t h)
{
	if (!w || !h || w > SIDE_MAX || h > SIDE_MAX) {
		tool_fail("%s: %u x %u pixels; 1 to %u are supported", p->name, w, h,
			  SIDE_MAX);
		return TOOL_FAILED;
	}
	p->w = w;
	p->h = h;
	p->pixels = malloc((size_t)w * h * p->channels);
	if (p->pixels)
		return 0;
	tool_fail("%s: out of memory", p->name);
	return TOOL_FAILED;
}

/* ---- formats ---------------------------------------------------------------------- */

#ifdef HALRUN_PNG
/* What is transparent is black. */
static int decode_png(struct picture *p, const uint8_t *file, size_t size)
{
	static const png_color black;
	png_image image = {.version = PNG_IMAGE_VERSION};
	int rc = 0;

	if (!png_image_begin_read_from_memory(&image, file, size))
		return tool_fail("%s: PNG: %s", p->name, image.message);
	image.format = p->channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
	rc = make_pixels(p, image.width, image.height);
	if (!rc && !png_image_finish_read(&image, &black, p->pixels, 0, NULL))
		rc = tool_fail("%s: PNG: %s", p->name, image.message);
	png_image_free(&image);
	return rc;
}
#else
static int decode_png(struct picture *p, const uint8_t *file, size_t size)
{
	(void)file;
	(void)size;
	return tool_fail("%s: halrun was built without libpng", p->name);
}
#endif

#ifdef HALRUN_JPEG
struct jpeg_reader {
	struct jpeg_decompress_struct d;
	struct jpeg_error_mgr errors;
	jmp_buf failed;
	char text[JMSG_LENGTH_MAX];
};

/* libjpeg ends the process otherwise. */
static void jpeg_fail(j_common_ptr d)
{
	struct jpeg_reader *r = d->client_data;

	d->err->format_message(d, r->text);
	longjmp(r->failed, 1);
}

static void jpeg_quiet(j_common_ptr d)
{
	(void)d;
}

/* No local variable changes between setjmp and longjmp. */
static int decode_jpeg_by(struct jpeg_reader *r, struct picture *p, const uint8_t *file,
			  size_t size)
{
	/* NOLINTNEXTLINE(cert-err52-cpp): libjpeg knows no other way */
	if (setjmp(r->failed))
		return tool_fail("%s: JPEG: %s", p->name, r->text);
	jpeg_create_decompress(&r->d);
	jpeg_mem_src(&r->d, file, size);
	(void)jpeg_read_header(&r->d, TRUE);
	r->d.out_color_space = p->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
	r->d.dct_method = JDCT_ISLOW;
	(void)jpeg_start_decompress(&r->d);
	if (make_pixels(p, r->d.output_width, r->d.output_height))
		return TOOL_FAILED;
	while (r->d.output_scanline < r->d.output_height) {
		JSAMPROW row =
			p->pixels + (size_t)r->d.output_scanline * p->w * p->channels;

		(void)jpeg_read_scanlines(&r->d, &row, 1);
	}
	(void)jpeg_finish_decompress(&r->d);
	/* A cut-off file is filled up with grey, which is a warning only. */
	if (r->errors.num_warnings)
		return tool_fail("%s: the JPEG data are damaged", p->name);
	return 0;
}

static int decode_jpeg(struct picture *p, const uint8_t *file, size_t size)
{
	struct jpeg_reader *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return tool_fail("%s: out of memory", p->name);
	r->d.err = jpeg_std_error(&r->errors);
	r->d.client_data = r;
	r->errors.error_exit = jpeg_fail;
	r->errors.output_message = jpeg_quiet;
	rc = decode_jpeg_by(r, p, file, size);
	jpeg_destroy_decompress(&r->d);
	free(r);
	return rc;
}
#else
static int decode_jpeg(struct picture *p, const uint8_t *file, size_t size)
{
	(void)file;
	(void)size;
	return tool_fail("%s: halrun was built without libjpeg", p->name);
}
#endif

#define PNM_MAX 1000000u

/* A number of a PNM header, after blanks and comments; 0: there is none.  Larger ones are
 * PNM_MAX. */
static uint32_t pnm_number(const uint8_t *file, size_t size, size_t *at)
{
	uint32_t n = 0;

	while (*at < size && (isspace(file[*at]) || file[*at] == '#'))
		if (file[(*at)++] == '#')
			while (*at < size && file[*at] != '\n')
				++*at;
	for (; *at < size && isdigit(file[*at]); ++*at) {
		n = n * 10 + (uint32_t)(file[*at] - '0');
		n = n < PNM_MAX ? n : PNM_MAX;
	}
	return n;
}

static int decode_pnm(struct picture *p, const uint8_t *file, size_t size)
{
	uint32_t from = file[1] == '6' ? 3 : 1;
	size_t at = 2;
	uint32_t w = pnm_number(file, size, &at), h = pnm_number(file, size, &at);
	uint32_t most = pnm_number(file, size, &at);

	at++; /* one blank */
	if (most != 255)
		return tool_fail("%s: the largest value is %u; only 255 is supported",
				 p->name, most);
	if (make_pixels(p, w, h))
		return TOOL_FAILED;
	if (at > size || size - at < (size_t)w * h * from)
		return tool_fail("%s: it is truncated", p->name);
	for (size_t i = 0; i < (size_t)w * h; i++) {
		const uint8_t *in = file + at + i * from;
		uint8_t *out = p->pixels + i * p->channels;

		if (from == p->channels)
			memcpy(out, in, from);
		else if (from == 1)
			out[0] = out[1] = out[2] = in[0];
		else /* luma of Rec. 601, as in JPEG */
			out[0] = (uint8_t)((299u * in[0] + 587u * in[1] + 114u * in[2] +
					    500) /
					   1000);
	}
	return 0;
}

static int decode(struct picture *p, const uint8_t *file, size_t size)
{
	switch (kind_of(file, size)) {
	case PNG:
		return decode_png(p, file, size);
	case JPEG:
		return decode_jpeg(p, file, size);
	default:
		return decode_pnm(p, file, size);
	}
}

/* ---- sizes ------------------------------------------------------------------------ */

/* Where output i of n lies in input pixels; the first of two and the weight of the
 * second.
 */
static uint32_t place(uint32_t i, uint32_t n, uint32_t in, float *weight)
{
	float at = ((float)i + 0.5f) * ((float)in / (float)n) - 0.5f;

	at = at < 0 ? 0 : at;
	if (at >= (float)(in - 1)) {
		*weight = 0;
		return in - 1;
	}
	*weight = at - floorf(at);
	return (uint32_t)at;
}

/* Pixels' centres are half a pixel inside. */
static int resize(struct picture *p, uint32_t w, uint32_t h)
{
	struct picture to = {.name = p->name, .channels = p->channels};
	size_t c = p->channels;

	if (p->w == w && p->h == h)
		return 0;
	if (make_pixels(&to, w, h))
		return TOOL_FAILED;
	for (uint32_t y = 0; y < h; y++)
		for (uint32_t x = 0; x < w; x++) {
			float wy, wx;
			uint32_t y0 = place(y, h, p->h, &wy), x0 = place(x, w, p->w, &wx);
			const uint8_t *a = p->pixels + ((size_t)y0 * p->w + x0) * c;
			size_t right = wx > 0 ? c : 0, down = wy > 0 ? p->w * c : 0;

			for (size_t k = 0; k < c; k++) {
				float top =
					(float)a[k] + wx * (float)(a[k + right] - a[k]);
				float low =
					(float)a[k + down] +
					wx * (float)(a[k + down + right] - a[k + down]);

				to.pixels[((size_t)y * w + x) * c + k] =
					(uint8_t)lroundf(top + wy * (low - top));
			}
		}
	fprintf(stderr, "%s: %u x %u pixels resized to %u x %u\n", p->name, p->w, p->h, w,
		h);
	free(p->pixels);
	*p = to;
	return 0;
}

int image_load(const char *name, const uint8_t *file, size_t size,
	       const struct npuc_port *port, uint8_t **pixels)
{
	const int32_t *dims = port->dims + (port->rank == 4);
	struct picture p = {.name = name};
	int rc;

	if ((port->rank != 4 && port->rank != 3) ||
	    (port->rank == 4 && port->dims[0] != 1) || (dims[2] != 1 && dims[2] != 3))
		return tool_fail("%s: it is a picture, but input '%s' has not the shape "
				 "1 x height x width x 1 or 3",
				 name, port->name);
	p.channels = (uint32_t)dims[2];
	rc = decode(&p, file, size);
	if (!rc && p.pixels)
		rc = resize(&p, (uint32_t)dims[1], (uint32_t)dims[0]);
	if (rc)
		free(p.pixels);
	else
		*pixels = p.pixels;
	return rc;
}
