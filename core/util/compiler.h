/* SPDX-License-Identifier: Apache-2.0 */
/* compiler.h - macros for extensions of gcc and clang, and for arrays and structs. */
#ifndef HAL_UTIL_COMPILER_H
#define HAL_UTIL_COMPILER_H

#include <stddef.h>

#define LIKELY(x)       __builtin_expect(!!(x), 1)
#define UNLIKELY(x)     __builtin_expect(!!(x), 0)
#define ALWAYS_INLINE   inline __attribute__((always_inline))
#define NOINLINE        __attribute__((noinline))
#define COLD            __attribute__((cold, noinline))
#define CACHE_LINE      64 /* bytes */
#define ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define U64(x)          ((unsigned long long)(x)) /* an argument of printf's %llu */

/* Return the struct of that type whose member ptr points to. */
#define container_of(ptr, type, member)                                                  \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
