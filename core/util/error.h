/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - error messages, and structs from callers of other versions of the library. */
#ifndef HAL_UTIL_ERROR_H
#define HAL_UTIL_ERROR_H

#include <stddef.h>
#include <stdint.h>

/* Set this thread's error message, which hal_last_error returns.  Return err as a
 * negative number, whatever its sign. */
int fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

/* The name of an object in a message of fail_lazily. */
#define LAZY_NAME 32

/* Do as fail, for frequent errors such as EAGAIN.  The message is formatted only if
 * hal_last_error is called.  fmt must be constant, with at most three %llu and, as the
 * last argument, a %s for name: an array of LAZY_NAME bytes, which is copied, or NULL. */
int fail_lazily(int err, const char *fmt, uint64_t a, uint64_t b, uint64_t c,
		const char *name);

/* Return err, the result of a public call that may have failed in one way and then
 * succeeded in another.  If err is 0, clear the message that the failed attempt has left.
 */
int tried(int err);

/* Copy this thread's error message, and set it to the copy again. */
struct error_message {
	char text[512];
	const char *lazy; /* format of fail_lazily, with .a, .b, .c, .name; NULL: .text */
	uint64_t a, b, c;
	char name[LAZY_NAME];
};
void error_keep(struct error_message *m);
void error_restore(const struct error_message *m);

/* Copy src, a caller's struct that begins with a 32-bit .size, into dst.  size is the
 * struct's size in this library, min the smallest in any version; what names it in
 * messages.  Missing fields become 0.  Return 0, -EINVAL if .size is wrong, or -E2BIG if
 * a field that this library does not know is set. */
int import_struct(void *dst, size_t size, size_t min, const void *src, const char *what);
/* Copy src, of this library's version, to the caller's struct dst, up to dst.size bytes.
 * dst.size keeps its value.  Return 0, or -EINVAL if dst.size is less than min. */
int export_struct(void *dst, const void *src, size_t size, size_t min, const char *what);

/* Check the name of an object, an array of size bytes in a caller's struct: it ends
 * within the array and has no control characters.  Return 0 or -EINVAL; what names the
 * field. */
int name_check(const char *name, size_t size, const char *what);

/* Format text into dst, cut to size bytes; snprintf without a result. */
void format_text(char *dst, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

struct counted {
	uint64_t count;
	const char *one; /* singular noun, whose plural ends in s */
};
/* List counts, e.g. "1 queue, 3 buffers", without those that are 0. */
void format_counts(char *dst, size_t size, const struct counted *c, size_t count);

#endif
