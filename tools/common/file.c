/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - whole files in and out. */
#include "file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>

#include "tool.h"

static int read_from(FILE *f, const char *path, char **data, size_t *bytes)
{
	size_t room = 0, got = 1;
	char *p;

	*bytes = 0;
	for (; got; *bytes += got) {
		if (*bytes == room) {
			room = room ? 2 * room : 65536;
			p = realloc(*data, room);
			if (!p)
				return tool_fail("%s: no memory for %zu bytes", path,
						 room);
			*data = p;
		}
		got = fread(*data + *bytes, 1, room - *bytes, f);
	}
	return ferror(f) ? tool_fail("%s: %s", path, hal_strerror(errno)) : 0;
}

int file_read(const char *path, char **data, size_t *bytes)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
	int rc;

	if (!f)
		return tool_fail("%s: %s", path, hal_strerror(errno));
	rc = read_from(f, path, data, bytes);
	if (f != stdin)
		(void)fclose(f);
	return rc;
}

int file_write(const char *path, const void *data, size_t bytes)
{
	FILE *f = path ? fopen(path, "wb") : stdout;
	bool bad;

	if (!f)
		return tool_fail("%s: %s", path, hal_strerror(errno));
	bad = fwrite(data, 1, bytes, f) != bytes;
	if (path)
		bad |= fclose(f) != 0;
	return bad && path ? tool_fail("%s: %s", path, hal_strerror(errno)) : 0;
}
