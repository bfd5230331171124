/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - names of a backend's operations, for options and messages. */
#include "layers/layers.h"

const char *const layer_op_names[LAYER_OP_COUNT] = {
#define X(name) #name,
	LAYER_OPS(X)
#undef X
};
