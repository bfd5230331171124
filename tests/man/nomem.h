/* SPDX-License-Identifier: Apache-2.0 */
/* nomem.h - this thread's allocations, in the library too, fail while it is on. */
#ifndef TESTS_MAN_NOMEM_H
#define TESTS_MAN_NOMEM_H

#include <stdbool.h>

void nomem(bool on);

#endif
