/* SPDX-License-Identifier: Apache-2.0 */
/* labels.c - the names of an output's elements, a line each. */
#include "labels.h"

#include <errno.h>
#include <iconv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>

#include "tool.h"

#define LABELS_MAX 65536u
#define MARK       "\xef\xbb\xbf"

/* Text that a terminal and JSON take. */
static bool is_text(iconv_t utf8, char *line)
{
	char out[256], *from = line, *to;
	size_t left = strlen(line), room;

	for (const char *c = line; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	iconv(utf8, NULL, NULL, NULL, NULL);
	while (left) {
		to = out;
		room = sizeof(out);
		if (iconv(utf8, &from, &left, &to, &room) == (size_t)-1 && errno != E2BIG)
			return false;
	}
	return true;
}

static int add(const char *path, struct labels *l, iconv_t utf8, char *line)
{
	char **more;

	/* Editors put a byte order mark at the beginning of a file in UTF-8. */
	if (!l->count && strncmp(line, MARK, strlen(MARK)) == 0)
		line += strlen(MARK);
	line[strcspn(line, "\r\n")] = '\0';
	if (!is_text(utf8, line))
		return tool_fail("%s:%u: the text is not valid UTF-8", path,
				 l->count + 1);
	if (l->count == LABELS_MAX)
		return tool_fail("%s: more than %u labels", path, LABELS_MAX);
	more = realloc(l->text, ((size_t)l->count + 1) * sizeof(*more));
	if (!more)
		return tool_fail("%s: out of memory", path);
	l->text = more;
	more[l->count] = strdup(line);
	if (!more[l->count])
		return tool_fail("%s: out of memory", path);
	l->count++;
	return 0;
}

int labels_read(const char *path, struct labels *l)
{
	iconv_t utf8 = iconv_open("UCS-4LE", "UTF-8");
	FILE *f = NULL;
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	*l = (struct labels){0};
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): iconv's way */
	if (utf8 == (iconv_t)-1)
		return tool_fail("%s: %s", path, hal_strerror(errno));
	f = fopen(path, "r");
	if (!f)
		rc = tool_fail("%s: %s", path, hal_strerror(errno));
	while (!rc && getline(&line, &room, f) >= 0)
		rc = add(path, l, utf8, line);
	/* Blank lines at the end are none. */
	while (!rc && l->count && !l->text[l->count - 1][0])
		free(l->text[--l->count]);
	if (!rc && ferror(f))
		rc = tool_fail("%s: the file cannot be read", path);
	else if (!rc && !l->count)
		rc = tool_fail("%s: the file has no labels", path);
	free(line);
	if (f)
		(void)fclose(f);
	iconv_close(utf8);
	return rc;
}

void labels_free(struct labels *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		free(l->text[i]);
	free(l->text);
	*l = (struct labels){0};
}
