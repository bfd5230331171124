/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ini.c - read configuration files into entries.
 *
 * The library inih parses the lines.  It reports neither line numbers nor sections
 * without keys, and cuts long names silently.  So read_line, which inih calls for each
 * line, counts lines, reads section headers and rejects whatever inih would cut.
 */
#include "config/ini.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/entry.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"

#define NAME_MAX_LENGTH 48 /* inih silently cuts longer names */

/* The state of reading one file. */
struct reader {
	struct config *cfg;
	FILE *file;
	const char *name;
	int line; /* number of the current line, from 1 */
	int err;  /* first error; ends the reading */
	char section[NAME_MAX_LENGTH + 1];
};

/* Return the entry of key that this file has already made in the current section, or
 * NULL.  The empty key stands for the section's header. */
static const struct config_entry *entry_of_file(const struct reader *r, const char *key)
{
	const struct config_entry *e =
		config_entry_find(r->cfg, LAYER_FILE, r->section, key);

	return e != NULL && e->file == r->cfg->file_count ? e : NULL;
}

/* Begin the section whose header, without its [, is given. */
static void section_begin(struct reader *r, const char *header)
{
	const char *end = strchr(header, ']'), *after;
	char name[NAME_MAX_LENGTH + 1], text[SECTION_BYTES], source[PATH_MAX];
	const struct config_entry *other;
	size_t length;

	if (end == NULL) {
		r->err = fail(EINVAL, "%s:%d: [section] has no closing ]", r->name,
			      r->line);
		return;
	}
	length = (size_t)(end - header);
	if (length > NAME_MAX_LENGTH) {
		r->err = fail(EINVAL, "%s:%d: section name has more than %d characters",
			      r->name, r->line, NAME_MAX_LENGTH);
		return;
	}
	memcpy(name, header, length);
	name[length] = '\0';
	format_text(r->section, sizeof(r->section), "%s",
		    config_section_name(name, text));
	after = end + 1 + strspn(end + 1, " \t\r\n");
	if (*after != '\0' && *after != ';' && *after != '#') {
		r->err = fail(EINVAL,
			      "%s:%d: \"%.*s\" after [%s]; put each key on its own line",
			      r->name, r->line, (int)strcspn(after, "\r\n"), after, name);
		return;
	}
	other = entry_of_file(r, "");
	if (other != NULL) {
		r->err = fail(EINVAL, "%s:%d: duplicate section [%s]; the first is at %s",
			      r->name, r->line, r->section, other->source);
		return;
	}
	/* With an entry for the header, config_check also sees empty sections. */
	format_text(source, sizeof(source), "%s:%d", r->name, r->line);
	r->err = config_entry_add(r->cfg, LAYER_FILE, r->section, "", "", source);
}

/* Return the first control character in line other than tabs and the line's end (LF or CR
 * LF); -1 if there is none. */
static int control_byte(const char *line, int length)
{
	if (length > 0 && line[length - 1] == '\n')
		length--;
	if (length > 0 && line[length - 1] == '\r')
		length--;
	for (int i = 0; i < length; i++)
		if ((unsigned char)line[i] < ' ' && line[i] != '\t')
			return line[i];
	return -1;
}

/* Read a line of at most size - 2 bytes.  Return false at the end of the file or after an
 * error.  Unlike fgets, reject zero bytes, which would hide the rest of the line. */
static bool get_line(struct reader *r, char *line, int size)
{
	int n = 0, c = 0;

	errno = 0;
	while (n < size - 1 && c != '\n' && (c = getc(r->file)) != EOF)
		line[n++] = (char)c;
	line[n] = '\0';
	r->line += n > 0;
	if (control_byte(line, n) >= 0)
		r->err = fail(
			EINVAL,
			"%s:%d: control byte 0x%02x; a configuration file is plain text",
			r->name, r->line, (unsigned int)control_byte(line, n));
	else if (c == EOF && ferror(r->file))
		r->err = fail(errno != 0 ? errno : EIO,
			      "configuration %s: cannot read it: %s", r->name,
			      hal_strerror(errno != 0 ? errno : EIO));
	else if (n == size - 1 && c != '\n')
		r->err = fail(EINVAL, "%s:%d: line has more than %d characters", r->name,
			      r->line, size - 2);
	return r->err == 0 && n > 0;
}

/* Read the next line for inih, without byte order mark and leading blanks. */
static char *read_line(char *line, int size, void *user)
{
	static const char mark[] = "\xef\xbb\xbf"; /* byte order mark of UTF-8 */
	struct reader *r = user;
	size_t blank = 0;

	if (r->err != 0 || !get_line(r, line, size))
		return NULL;
	if (r->line == 1 && strncmp(line, mark, strlen(mark)) == 0)
		blank = strlen(mark);
	/* inih takes an indented line as the continuation of a value; hal.conf has no
	 * such lines. */
	blank += strspn(line + blank, " \t");
	memmove(line, line + blank, strlen(line + blank) + 1);
	if (line[0] == '[')
		section_begin(r, line + 1);
	return r->err != 0 ? NULL : line;
}

/* Add an entry for a line name = value; inih calls this. */
static int read_pair(void *user, const char *section, const char *name, const char *value)
{
	struct reader *r = user;
	char source[PATH_MAX];
	const struct config_entry *other;

	(void)section; /* inih may have cut it; r->section is complete */
	if (r->err != 0)
		return 0;
	if (r->section[0] == '\0') {
		r->err = fail(EINVAL, "%s:%d: key %s comes before the first [section]",
			      r->name, r->line, name);
		return 0;
	}
	if (name[0] == '\0') {
		r->err = fail(EINVAL, "%s:%d: no key before =", r->name, r->line);
		return 0;
	}
	if (strcmp(r->section, "hal") == 0 && strcmp(name, "config") == 0) {
		r->err = fail(EINVAL,
			      "%s:%d: a configuration file cannot name another; use "
			      "$HAL_CONFIG "
			      "or the option hal.config",
			      r->name, r->line);
		return 0;
	}
	other = entry_of_file(r, name);
	if (other != NULL) {
		r->err = fail(EINVAL, "%s:%d: duplicate key %s; the first is at %s",
			      r->name, r->line, name, other->source);
		return 0;
	}
	format_text(source, sizeof(source), "%s:%d", r->name, r->line);
	r->err = config_entry_add(r->cfg, LAYER_FILE, r->section, name, value, source);
	return r->err == 0;
}

/* Append name to the list of files in cfg. */
static int name_add(struct config *cfg, const char *name)
{
	size_t size = strlen(name) + 1 +
		      (cfg->files != NULL ? strlen(cfg->files) + strlen(", ") : 0);
	char *files = malloc(size);

	if (files == NULL)
		return fail(ENOMEM, "no memory for the configuration");
	format_text(files, size, "%s%s%s", cfg->files != NULL ? cfg->files : "",
		    cfg->files != NULL ? ", " : "", name);
	free(cfg->files);
	cfg->files = files;
	return 0;
}

/* Read file into cfg, and close it. */
static int stream_load(struct config *cfg, FILE *file, const char *name)
{
	struct reader r = {.cfg = cfg, .name = name, .file = file};
	int bad_line;

	cfg->file_count++;
	bad_line = ini_parse_stream(read_line, &r, read_pair, &r);
	if (r.err == 0 && bad_line != 0)
		r.err = fail(EINVAL,
			     "%s:%d: the line is neither [section] nor key = value", name,
			     bad_line);
	(void)fclose(r.file);
	if (r.err != 0)
		return r.err;
	LOG(HAL_LOG_DEBUG, "configuration %s has been read", name);
	return name_add(cfg, name);
}

int ini_load_named(struct config *cfg, const char *name)
{
	FILE *file = fopen(name, "re");
	struct stat st;

	if (file == NULL)
		return fail(errno, "configuration %s: %s", name, hal_strerror(errno));
	if (fstat(fileno(file), &st) == 0 && S_ISDIR(st.st_mode)) {
		(void)fclose(file);
		return fail(EISDIR, "configuration %s: is a folder; name a file", name);
	}
	return stream_load(cfg, file, name);
}

int ini_load_found(void *user, int fd, const char *name)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *file = copy >= 0 ? fdopen(copy, "r") : NULL;

	if (file != NULL)
		return stream_load(user, file, name);
	if (copy >= 0)
		fd_close(copy);
	return fail(errno, "configuration %s: %s", name, hal_strerror(errno));
}
