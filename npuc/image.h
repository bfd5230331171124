/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - pictures for inputs: PNG, JPEG and binary PGM and PPM. */
#ifndef NPUC_IMAGE_H
#define NPUC_IMAGE_H

#include "npuc.h"

/* Whether a file's first bytes are those of a picture. */
bool image_is(const uint8_t *file, size_t size);
/* Decode a picture and resize it to the pixels of an input, [1][h][w][c] or [h][w][c], of
 * one channel (grey) or three (red, green, blue); *pixels is malloc'ed, a byte each. What
 * was resized is said on standard error.  0, or TOOL_FAILED once it has said what is
 * wrong.
 */
int image_load(const char *name, const uint8_t *file, size_t size,
	       const struct npuc_port *port, uint8_t **pixels);

#endif
