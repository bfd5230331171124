/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h - layers of networks, from tables in SCALE-Sim's format. */
#ifndef HALBENCH_LAYERS_H
#define HALBENCH_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

/* A multiplication of m x k by k x n, or a convolution that comes to one. */
struct layer {
	char name[48];
	bool gemm;
	uint32_t m, n, k;
	uint32_t h, w, kh, kw, c, stride, oh, ow; /* of a convolution */
};

enum { LAYERS_MAX = 128, LAYERS_NETWORKS = 6 };
extern const char *const layers_networks[LAYERS_NETWORKS];

/* Read directory/network.csv into out, which has LAYERS_MAX places.  Returns the number
 * of layers, 0 if there is no such file. */
uint32_t layers_read(const char *directory, const char *network, struct layer *out);

#endif
