/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what a fuzz target defines: libFuzzer's own entry points, and its seeds. */
#ifndef HAL_FUZZ_H
#define HAL_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Valid input number index, to start from; 0 past the last.  At most max bytes. */
size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max);

#endif
