/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_npy.c - any bytes as the header of a .npy file: read, or refused with a text. */
#include "fuzz.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"

static const char *const seeds[] = {
	"\x93NUMPY\x01\x00\x41\x00{'descr': '|i1', 'fortran_order': False, "
	"'shape': (1, 8, 8, 1), }",
	"\x93NUMPY\x02\x00\x31\x00\x00\x00{\"shape\":(3,),\"descr\":\"<f4\","
	"\"fortran_order\":True}",
};
static const size_t sizes[] = {75, 61};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	if (index >= sizeof(sizes) / sizeof(sizes[0]) || sizes[index] > max)
		return 0;
	memcpy(data, seeds[index], sizes[index]);
	return sizes[index];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1); /* a byte too far is seen */
	char why[NPUC_WHY] = "", *header;
	struct npy npy, again;
	size_t length;

	if (!exact)
		return 0;
	memcpy(exact, data, size);
	if (!npy_is(exact, size)) {
		free(exact);
		return 0;
	}
	if (npy_parse(exact, size, &npy, why)) {
		if (!why[0])
			abort(); /* refused without a reason */
		free(exact);
		return 0;
	}
	if (npy.data > size || npy.rank > NPUC_RANK)
		abort();
	/* What is written of it is read as the same. */
	length = npy_header(npy.type, npy.rank, npy.dims, &header);
	if (!length || length % 64 || npy_parse(header, length, &again, why) ||
	    again.data != length || again.type != npy.type || again.rank != npy.rank ||
	    memcmp(again.dims, npy.dims, sizeof(npy.dims)) != 0)
		abort();
	free(header);
	free(exact);
	return 0;
}
