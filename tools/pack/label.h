/* SPDX-License-Identifier: Apache-2.0 */
/* label.h - what an image is for, by what it says of itself. */
#ifndef HALPACK_LABEL_H
#define HALPACK_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct label {
	char text[48];
	/* Of two images for one kind of device the one with the lower rank is tried
	 * first: code before what a driver has to compile, and within these the later
	 * architecture. */
	uint32_t rank;
};

/* False: it is no image of a device that is known here. */
bool label_of(const void *image, size_t size, struct label *label);

#endif
