/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance kernels for FPGA cards: kernels_fpga.txt as mkxclbin makes it.  The
 * stand-in of tests/fakes/fpga goes by their names.
 */
#include "conformance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int fpga_image(void **image, size_t *size)
{
	FILE *f = fopen(CONF_FPGA_XCLBIN, "rb");
	const size_t room = 1u << 20;

	if (!f)
		return -ENOENT;
	*image = malloc(room);
	*size = *image ? fread(*image, 1, room, f) : 0;
	fclose(f);
	return *image ? 0 : -ENOMEM;
}

static const struct conf_pack fpga_pack = {"fpga", fpga_image, free, 0};
CONF_PACK(fpga_pack);
