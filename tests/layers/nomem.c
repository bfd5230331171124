/* SPDX-License-Identifier: Apache-2.0 */
/* nomem.c - see nomem.h.  Functions that allocate inside of other libraries count as an
 * allocation each. */
#include "nomem.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#include <yajl/yajl_gen.h>

static atomic_bool armed, failed;
static atomic_ulong count, target;

void nomem_arm(unsigned long k)
{
	atomic_store(&count, 0);
	atomic_store(&target, k);
	atomic_store(&failed, false);
	atomic_store(&armed, true);
}

bool nomem_disarm(void)
{
	atomic_store(&armed, false);
	return atomic_load(&failed);
}

unsigned long nomem_count(void)
{
	return atomic_load(&count);
}

static bool refuse(void)
{
	if (!atomic_load(&armed) ||
	    atomic_fetch_add(&count, 1) + 1 != atomic_load(&target))
		return false;
	atomic_store(&failed, true);
	errno = ENOMEM;
	return true;
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
void *__real_malloc(size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
char *__real_strdup(const char *text);
FILE *__real_fopen(const char *path, const char *mode);
yajl_gen __real_yajl_gen_alloc(const yajl_alloc_funcs *funcs);
void *__wrap_malloc(size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
char *__wrap_strdup(const char *text);
FILE *__wrap_fopen(const char *path, const char *mode);
yajl_gen __wrap_yajl_gen_alloc(const yajl_alloc_funcs *funcs);

void *__wrap_malloc(size_t bytes)
{
	return refuse() ? NULL : __real_malloc(bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	return refuse() ? NULL : __real_aligned_alloc(align, bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	return refuse() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	return refuse() ? NULL : __real_realloc(old, bytes);
}

char *__wrap_strdup(const char *text)
{
	return refuse() ? NULL : __real_strdup(text);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	return refuse() ? NULL : __real_fopen(path, mode);
}

yajl_gen __wrap_yajl_gen_alloc(const yajl_alloc_funcs *funcs)
{
	return refuse() ? NULL : __real_yajl_gen_alloc(funcs);
}
/* NOLINTEND(bugprone-reserved-identifier) */
