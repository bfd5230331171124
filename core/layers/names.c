/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - the operations of a backend, as options and texts name them. */
#include "layers/layers.h"

const char *const layer_op_names[LAYER_OP_COUNT] = {
#define X(name) #name,
	LAYER_OPS(X)
#undef X
};
