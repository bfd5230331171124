/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - error texts, and structs of other versions than ours. */
#ifndef HAL_UTIL_ERROR_H
#define HAL_UTIL_ERROR_H

#include <stddef.h>
#include <stdint.h>

/* Sets hal_last_error of this thread; returns -err. */
int fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

/* The same for errors that are answers like any other (EAGAIN): the text is made when
 * somebody asks for it.  fmt stays for good, and has up to three %llu. */
int fail_lazily(int err, const char *fmt, uint64_t a, uint64_t b, uint64_t c);

/* Return err, what a call answers that tries one way and then another.  If it is 0, clear
 * hal_last_error: the text is of a way that has failed, and of no call. */
int tried(int err);

/* Copies a caller's struct of any version into dst: size is this library's, min the
 * smallest there ever was.  what names it in the text. */
int import_struct(void *dst, size_t size, size_t min, const void *src, const char *what);
/* Writes at most the caller's .size bytes of src, but its .size. */
int export_struct(void *dst, const void *src, size_t size, size_t min, const char *what);

/* snprintf that cuts what does not fit. */
void format_text(char *dst, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* "1 queue, 3 buffers": what there is none of is left out; many ones end in s. */
struct counted {
	uint64_t count;
	const char *one;
};
void format_counts(char *dst, size_t size, const struct counted *c, size_t count);

#endif
