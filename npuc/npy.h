/* SPDX-License-Identifier: Apache-2.0 */
/* npy.h - the header of NumPy's .npy files, versions 1 to 3. */
#ifndef NPUC_NPY_H
#define NPUC_NPY_H

#include "npuc.h"

#define NPY_HEADER_MAX 65536u /* bytes of a header that is read */

struct npy {
	enum npuc_type type;
	bool fortran; /* the first index runs fastest */
	uint32_t rank;
	int32_t dims[NPUC_RANK];
	size_t data; /* byte of the file where the elements begin */
};

bool npy_is(const void *bytes, size_t size);
/* Reads the header of a file that npy_is; 0 or -EINVAL with why, without the file's name.
 */
int npy_parse(const void *bytes, size_t size, struct npy *npy, char why[NPUC_WHY]);
/* Version 1, C order; *header is malloc'ed.  Its length, 0: no memory. */
size_t npy_header(enum npuc_type type, uint32_t rank, const int32_t *dims, char **header);

#endif
