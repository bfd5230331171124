/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nomem.h - the k-th allocation of the program fails.
 *
 * Linked with --wrap (see CMakeLists.txt), so that it works with the sanitizers, which
 * have an allocator of their own, and with valgrind: those find what is lost then.
 */
#ifndef TESTS_LAYERS_NOMEM_H
#define TESTS_LAYERS_NOMEM_H

#include <stdbool.h>

/* From now on, the k-th fails, counted from 1; 0: none. */
void nomem_arm(unsigned long k);
/* None fails any more; has one? */
bool nomem_disarm(void);
/* Since nomem_arm. */
unsigned long nomem_count(void);

#endif
