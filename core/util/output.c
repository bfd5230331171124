/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - files that the library writes because an option names them; see output.h. */
#include "util/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hal/hal.h>

#include "util/error.h"

/* Write the replacement of % and letter to text; return false if letter is unknown. */
static bool expand(char letter, unsigned int device, char text[16])
{
	switch (letter) {
	case 'p':
		format_text(text, 16, "%d", (int)getpid());
		return true;
	case 'n':
		format_text(text, 16, "%u", device);
		return true;
	case '%':
		format_text(text, 16, "%%");
		return true;
	default:
		return false;
	}
}

int output_name(const char *option, const char *pattern, unsigned int device,
		char out[OUTPUT_BYTES])
{
	size_t used = 0;

	for (const char *c = pattern; *c != '\0'; c++) {
		char text[16] = {*c, '\0'};

		if (*c == '%' && !expand(*++c, device, text))
			return fail(
				EINVAL,
				"%s = %s: unknown sequence after %%; use %%p (process "
				"id), %%n (device number) or %%%%",
				option, pattern);
		if (used + strlen(text) >= OUTPUT_BYTES)
			return fail(ENAMETOOLONG,
				    "%s: file name is too long (%zu bytes or more)",
				    option, used + strlen(text));
		memcpy(out + used, text, strlen(text));
		used += strlen(text);
	}
	out[used] = '\0';
	return 0;
}

bool output_is_file(int fd)
{
	struct stat s;

	return fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
}

int output_open(const char *what, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666), err;

	if (fd < 0)
		return fail(errno, "%s %s: %s", what, path, hal_strerror(errno));
	if (!output_is_file(fd))
		return fd;
	/* On a file system without locks, other writers cannot be detected. */
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		err = fail(
			EBUSY,
			"%s %s: another device or program is writing this file; choose "
			"another file name (in an option, %%p stands for the process "
			"id, %%n for the device number)",
			what, path);
	} else {
		if (ftruncate(fd, 0) == 0)
			return fd;
		err = fail(errno, "%s %s: cannot be emptied: %s", what, path,
			   hal_strerror(errno));
	}
	(void)close(fd);
	return err;
}

int output_close(int fd)
{
	/* Unlock explicitly: a child of this process may still have the file open. */
	if (output_is_file(fd))
		(void)flock(fd, LOCK_UN);
	return close(fd) != 0 ? -errno : 0;
}
