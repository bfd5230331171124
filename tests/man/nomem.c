/* SPDX-License-Identifier: Apache-2.0 */
/* nomem.c - malloc and its like in front of glibc's own, which refuse when they are told
 * to. */
#include "nomem.h"

#include <errno.h>
#include <stddef.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

/* Seen by the libraries, which then call these. */
#define SEEN __attribute__((visibility("default")))
SEEN void *malloc(size_t bytes);
SEEN void *calloc(size_t count, size_t bytes);
SEEN void *realloc(void *old, size_t bytes);
SEEN void *aligned_alloc(size_t align, size_t bytes);

static _Thread_local bool refuses;

void nomem(bool on)
{
	refuses = on;
}

static bool refuse(void)
{
	if (refuses)
		errno = ENOMEM;
	return refuses;
}

void *malloc(size_t bytes)
{
	return refuse() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return refuse() ? NULL : __libc_calloc(count, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	return refuse() ? NULL : __libc_memalign(align, bytes);
}

void *realloc(void *old, size_t bytes)
{
	return refuse() ? NULL : __libc_realloc(old, bytes);
}
