/* SPDX-License-Identifier: Apache-2.0 */
/* lex.h - the text of a module becomes tokens: the first is none, the last PTX_END. */
#ifndef BACKENDS_CUDA_PTX_LEX_H
#define BACKENDS_CUDA_PTX_LEX_H

#include "module.h"

int ptx_lex(struct ptx *m, char why[PTX_WHY]);
bool ptx_same(const struct ptx *m, uint32_t a, uint32_t b);

#endif
