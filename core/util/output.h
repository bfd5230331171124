/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - files that the library writes because an option names them. */
#ifndef HAL_UTIL_OUTPUT_H
#define HAL_UTIL_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_BYTES PATH_MAX

/* Copy pattern to out, with %p replaced by the process id, %n by device and %% by %.
 * option is the name of the option, for messages.  Return 0, -EINVAL if another letter
 * follows a %, or -ENAMETOOLONG if the result is too long. */
int output_name(const char *option, const char *pattern, unsigned int device,
		char out[OUTPUT_BYTES]);

/* Open file path, empty it, and lock it against other devices and programs until
 * output_close.  The text `what` names the kind of file in messages.  Return the fd or
 * -errno: -EBUSY if another device or program has locked the file. */
int output_open(const char *what, const char *path);
/* Return whether fd is a regular file.  Other files, such as a terminal or a pipe, are
 * not locked: several devices may write them. */
bool output_is_file(int fd);
/* Unlock and close fd; return 0 or -errno. */
int output_close(int fd);

#endif
