/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - files that the library writes by name from an option. */
#ifndef HAL_UTIL_OUTPUT_H
#define HAL_UTIL_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_BYTES PATH_MAX

/* Write pattern to out, with the process's number for %p, device for %n and % for %%.
 * -EINVAL: another letter comes after a %, or the name is too long.  option names it. */
int output_name(const char *option, const char *pattern, unsigned int device,
		char out[OUTPUT_BYTES]);

/* Open the file to write it anew, and keep other devices and programs from doing so until
 * output_close.  what names it in the text.  -EBUSY: one of them writes it. */
int output_open(const char *what, const char *path);
/* Does it keep what is written?  Only such a file is anybody's; a terminal or a pipe is
 * for all. */
bool output_is_file(int fd);
/* 0 or -errno, as close. */
int output_close(int fd);

#endif
