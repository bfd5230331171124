/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - kernels.list, and the files that it and others name. */
#ifndef TESTS_PTX_LIST_H
#define TESTS_PTX_LIST_H

#include <stddef.h>
#include <stdint.h>

struct list_kernel {
	char module[32], name[32], refused[32];
	uint32_t grid[3], block[3], shared_bytes;
	int32_t n;
	char values;
};

/* Returns how many; exits with a message when the file is not there or is wrong. */
uint32_t list_read(const char *path, struct list_kernel *out, uint32_t max);
/* The whole file and a zero byte behind it; exits when it is not there. */
char *list_file(const char *path, size_t *bytes);

#endif
