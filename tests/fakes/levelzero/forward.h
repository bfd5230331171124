/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h - a library in front of the real loader: what it defines no call of its own
 * for goes straight through. */
#ifndef TESTS_FAKES_LEVELZERO_FORWARD_H
#define TESTS_FAKES_LEVELZERO_FORWARD_H

#include "backends/levelzero/internal.h"

/* The loader's own calls. */
const struct lz_symbols *real(void);

#endif
