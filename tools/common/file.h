/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - whole files in and out.  What is wrong is said (tool.h). */
#ifndef HAL_TOOL_FILE_H
#define HAL_TOOL_FILE_H

#include <stddef.h>

/* All of the file to *data, or of standard input, which is "-"; the caller frees *data,
 * NULL before, whatever is returned: 0 or TOOL_FAILED. */
int file_read(const char *path, char **data, size_t *bytes);
/* To the file, or to standard output, which is NULL: there tool_end says what went wrong.
 */
int file_write(const char *path, const void *data, size_t bytes);

#endif
