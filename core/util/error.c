/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - error messages, and structs from callers of other versions; see error.h. */
#include "util/error.h"

#include <hal/hal.h>

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The message of this thread's last error.  After fail_lazily it is in lazy, and
 * hal_last_error formats it. */
static _Thread_local char last_error[512];
static _Thread_local struct {
	const char *fmt; /* NULL: the message is in last_error */
	uint64_t a, b, c;
	char name[LAZY_NAME];
} lazy;

static int fail_va(int err, const char *fmt, va_list ap)
{
	char text[sizeof(last_error)];

	/* Format into a copy, because an argument may be last_error itself. */
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it has been started */
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	memcpy(last_error, text, sizeof(text));
	lazy.fmt = NULL;
	return err > 0 ? -err : err;
}

int fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err = fail_va(err, fmt, ap);
	va_end(ap);
	return err;
}

int fail_lazily(int err, const char *fmt, uint64_t a, uint64_t b, uint64_t c,
		const char *name)
{
	lazy.fmt = fmt;
	lazy.a = a;
	lazy.b = b;
	lazy.c = c;
	if (name != NULL)
		memcpy(lazy.name, name, sizeof(lazy.name));
	return err > 0 ? -err : err;
}

int tried(int err)
{
	if (err == 0) {
		last_error[0] = '\0';
		lazy.fmt = NULL;
	}
	return err;
}

void error_keep(struct error_message *m)
{
	memcpy(m->text, last_error, sizeof(m->text));
	m->lazy = lazy.fmt;
	m->a = lazy.a;
	m->b = lazy.b;
	m->c = lazy.c;
	memcpy(m->name, lazy.name, sizeof(m->name));
}

void error_restore(const struct error_message *m)
{
	_Static_assert(sizeof(m->text) == sizeof(last_error), "one size");
	memcpy(last_error, m->text, sizeof(last_error));
	lazy.fmt = m->lazy;
	lazy.a = m->a;
	lazy.b = m->b;
	lazy.c = m->c;
	memcpy(lazy.name, m->name, sizeof(lazy.name));
}

void format_text(char *dst, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it has been started */
	(void)vsnprintf(dst, size, fmt, ap);
	va_end(ap);
}

void format_counts(char *dst, size_t size, const struct counted *c, size_t count)
{
	size_t used = 0;

	dst[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		if (c[i].count == 0)
			continue;
		format_text(dst + used, size - used, "%s%llu %s%s", used > 0 ? ", " : "",
			    (unsigned long long)c[i].count, c[i].one,
			    c[i].count > 1 ? "s" : "");
		used += strlen(dst + used);
	}
}

const char *hal_last_error(void)
{
	const char *fmt = lazy.fmt;

	if (fmt != NULL) {
		lazy.fmt = NULL;
		(void)snprintf(last_error, sizeof(last_error), fmt,
			       (unsigned long long)lazy.a, (unsigned long long)lazy.b,
			       (unsigned long long)lazy.c, lazy.name);
	}
	return last_error;
}

const char *hal_strerror(int err)
{
	const char *text = strerrordesc_np(err < 0 ? -err : err);

	return text != NULL ? text : "unknown error";
}

uint32_t hal_version(void)
{
	return HAL_VERSION_MAJOR << 16 | HAL_VERSION_MINOR << 8 | HAL_VERSION_PATCH;
}

int import_struct(void *dst, size_t size, size_t min, const void *src, const char *what)
{
	const unsigned char *bytes = src;
	uint32_t theirs;

	if (src == NULL)
		return fail(EINVAL, "%s is NULL", what);
	memcpy(&theirs, src, sizeof(theirs));
	if (theirs < min)
		return fail(EINVAL,
			    "%s.size is %u, at least %zu is needed: set it to sizeof",
			    what, theirs, min);
	/* No version will be so large: most likely the size was not initialized. */
	if (theirs > 65536)
		return fail(EINVAL, "%s.size is %u, not a size of that struct", what,
			    theirs);
	for (size_t i = size; i < theirs; i++)
		if (bytes[i] != 0)
			return fail(E2BIG,
				    "%s is of a newer version: byte %zu is set, this "
				    "library knows %zu",
				    what, i, size);
	memset(dst, 0, size);
	memcpy(dst, src, theirs < size ? theirs : size);
	memcpy(dst, &(uint32_t){(uint32_t)size}, sizeof(uint32_t));
	return 0;
}

int name_check(const char *name, size_t size, const char *what)
{
	size_t length = strnlen(name, size);

	if (length == size)
		return fail(EINVAL, "%s does not end within %zu bytes", what, size);
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
			return fail(EINVAL, "%s: byte %zu is 0x%02x, a control character",
				    what, i, (unsigned char)name[i]);
	return 0;
}

int export_struct(void *dst, const void *src, size_t size, size_t min, const char *what)
{
	uint32_t theirs;

	if (dst == NULL)
		return fail(EINVAL, "%s is NULL", what);
	memcpy(&theirs, dst, sizeof(theirs));
	if (theirs < min)
		return fail(EINVAL,
			    "%s.size is %u, at least %zu is needed: set it to sizeof",
			    what, theirs, min);
	if (theirs < size)
		size = theirs;
	memcpy((char *)dst + sizeof(theirs), (const char *)src + sizeof(theirs),
	       size - sizeof(theirs));
	return 0;
}
