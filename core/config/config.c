/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - options from the API, the environment and files, in that order. */
#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "config/find.h"
#include "config/options.h"
#include "config/registry.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/fd.h"

enum layer {
	LAYER_DEFAULT,
	LAYER_FILE,
	LAYER_ENVIRONMENT,
	LAYER_API,
};

#define NAME_MAX_LENGTH   48 /* inih cuts longer names without a word */
#define ENVIRONMENT_BYTES 128

/* ---- entries --------------------------------------------------------------------- */

static void entry_free(struct config_entry *e)
{
	free(e->section);
	free(e->key);
	free(e->value);
	free(e->source);
	free(e);
}

/* Between the quotes of: partition "name".  NULL: that it is not. */
static bool partition_section(const char *section, char *name, size_t size)
{
	const char *p = section + strlen("partition");
	size_t length;

	if (strncmp(section, "partition", strlen("partition")) != 0)
		return false;
	p += strspn(p, " \t");
	length = strlen(p);
	if (length < 3 || p[0] != '"' || p[length - 1] != '"' || length - 2 >= size)
		return false;
	memcpy(name, p + 1, length - 2);
	name[length - 2] = '\0';
	return true;
}

#define SECTION_BYTES 48

/* Return section, but with one blank before the name of a partition, in text. */
static const char *section_name(const char *section, char text[SECTION_BYTES])
{
	char name[32];

	if (!partition_section(section, name, sizeof(name)))
		return section;
	format_text(text, SECTION_BYTES, "partition \"%s\"", name);
	return text;
}

static int entry_add(struct config *cfg, enum layer layer, const char *section,
		     const char *key, const char *value, const char *source)
{
	struct config_entry *e = calloc(1, sizeof(*e));
	char text[SECTION_BYTES];

	if (e == NULL)
		return fail(ENOMEM, "no memory for the configuration");
	e->section = strdup(section_name(section, text));
	e->key = strdup(key);
	e->value = strdup(value);
	e->source = strdup(source);
	e->layer = (int)layer;
	e->file = layer == LAYER_FILE ? cfg->file_count : 0;
	if (e->section == NULL || e->key == NULL || e->value == NULL ||
	    e->source == NULL) {
		entry_free(e);
		return fail(ENOMEM, "no memory for the configuration");
	}
	/* The newest first: what is said last wins within a layer. */
	e->next = cfg->entries;
	cfg->entries = e;
	return 0;
}

static const struct config_entry *entry_find(const struct config *cfg, enum layer layer,
					     const char *section, const char *key)
{
	for (const struct config_entry *e = cfg->entries; e != NULL; e = e->next)
		if (e->layer == (int)layer && strcmp(e->section, section) == 0 &&
		    strcmp(e->key, key) == 0)
			return e;
	return NULL;
}

void config_free(struct config *cfg)
{
	while (cfg->entries != NULL) {
		struct config_entry *next = cfg->entries->next;

		entry_free(cfg->entries);
		cfg->entries = next;
	}
	free(cfg->files);
	cfg->files = NULL;
}

/* ---- a file ---------------------------------------------------------------------- */

/* inih tells neither line numbers nor sections without keys nor what it cut, so the
 * reader in front of it keeps count. */
struct reader {
	struct config *cfg;
	FILE *file;
	const char *name;
	int line;
	int err;
	char section[NAME_MAX_LENGTH + 1];
};

/* What the file that is being read has said before. */
static const struct config_entry *said_before(const struct reader *r, const char *key)
{
	const struct config_entry *e = entry_find(r->cfg, LAYER_FILE, r->section, key);

	return e != NULL && e->file == r->cfg->file_count ? e : NULL;
}

static void section_begin(struct reader *r, const char *header)
{
	const char *end = strchr(header, ']'), *after;
	char said[NAME_MAX_LENGTH + 1], text[SECTION_BYTES], source[PATH_MAX];
	const struct config_entry *other;
	size_t length;

	if (end == NULL) {
		r->err = fail(EINVAL, "%s:%d: [section] without its ]", r->name, r->line);
		return;
	}
	length = (size_t)(end - header);
	if (length > NAME_MAX_LENGTH) {
		r->err = fail(EINVAL, "%s:%d: a section name of more than %d characters",
			      r->name, r->line, NAME_MAX_LENGTH);
		return;
	}
	memcpy(said, header, length);
	said[length] = '\0';
	format_text(r->section, sizeof(r->section), "%s", section_name(said, text));
	after = end + 1 + strspn(end + 1, " \t\r\n");
	if (*after != '\0' && *after != ';' && *after != '#') {
		r->err = fail(EINVAL,
			      "%s:%d: \"%.*s\" after [%s]: a key has a line of its own",
			      r->name, r->line, (int)strcspn(after, "\r\n"), after, said);
		return;
	}
	other = said_before(r, "");
	if (other != NULL) {
		r->err = fail(EINVAL, "%s:%d: section [%s] again, first at %s", r->name,
			      r->line, r->section, other->source);
		return;
	}
	/* So that config_check sees sections that are empty. */
	format_text(source, sizeof(source), "%s:%d", r->name, r->line);
	r->err = entry_add(r->cfg, LAYER_FILE, r->section, "", "", source);
}

/* -1, or the byte in line that is no text.  A line may end with CR LF. */
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

/* Read a line as fgets does, but fail where bytes of it would be lost. */
static bool get_line(struct reader *r, char *line, int size)
{
	int n = 0, c = 0;

	errno = 0;
	while (n < size - 1 && c != '\n' && (c = getc(r->file)) != EOF)
		line[n++] = (char)c;
	line[n] = '\0';
	r->line += n > 0;
	if (control_byte(line, n) >= 0)
		r->err = fail(EINVAL, "%s:%d: byte 0x%02x: a configuration is plain text",
			      r->name, r->line, (unsigned int)control_byte(line, n));
	else if (c == EOF && ferror(r->file))
		r->err = fail(errno != 0 ? errno : EIO,
			      "configuration %s: cannot read it: %s", r->name,
			      hal_strerror(errno != 0 ? errno : EIO));
	else if (n == size - 1 && c != '\n')
		r->err = fail(EINVAL, "%s:%d: a line of more than %d characters", r->name,
			      r->line, size - 2);
	return r->err == 0 && n > 0;
}

static char *read_line(char *line, int size, void *user)
{
	static const char mark[] = "\xef\xbb\xbf"; /* some editors begin UTF-8 with it */
	struct reader *r = user;
	size_t blank = 0;

	if (r->err != 0 || !get_line(r, line, size))
		return NULL;
	if (r->line == 1 && strncmp(line, mark, strlen(mark)) == 0)
		blank = strlen(mark);
	/* No continuation lines: indenting means nothing. */
	blank += strspn(line + blank, " \t");
	memmove(line, line + blank, strlen(line + blank) + 1);
	if (line[0] == '[')
		section_begin(r, line + 1);
	return r->err != 0 ? NULL : line;
}

static int take_pair(void *user, const char *section, const char *name, const char *value)
{
	struct reader *r = user;
	char source[PATH_MAX];
	const struct config_entry *other;

	(void)section; /* may be cut; ours is not */
	if (r->err != 0)
		return 0;
	if (r->section[0] == '\0') {
		r->err = fail(EINVAL, "%s:%d: %s stands in no section", r->name, r->line,
			      name);
		return 0;
	}
	if (name[0] == '\0') {
		r->err = fail(EINVAL, "%s:%d: no key before =", r->name, r->line);
		return 0;
	}
	if (strcmp(r->section, "hal") == 0 && strcmp(name, "config") == 0) {
		r->err = fail(
			EINVAL,
			"%s:%d: a file names no other file; name it with $HAL_CONFIG "
			"or the option hal.config",
			r->name, r->line);
		return 0;
	}
	other = said_before(r, name);
	if (other != NULL) {
		r->err = fail(EINVAL, "%s:%d: %s again, first at %s", r->name, r->line,
			      name, other->source);
		return 0;
	}
	format_text(source, sizeof(source), "%s:%d", r->name, r->line);
	r->err = entry_add(r->cfg, LAYER_FILE, r->section, name, value, source);
	return r->err == 0;
}

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

/* Read file, and close it. */
static int stream_load(struct config *cfg, FILE *file, const char *name)
{
	struct reader r = {.cfg = cfg, .name = name, .file = file};
	int bad_line;

	cfg->file_count++;
	bad_line = ini_parse_stream(read_line, &r, take_pair, &r);
	if (r.err == 0 && bad_line != 0)
		r.err = fail(EINVAL, "%s:%d: neither [section] nor key = value", name,
			     bad_line);
	(void)fclose(r.file);
	return r.err == 0 ? name_add(cfg, name) : r.err;
}

static int named_load(struct config *cfg, const char *name)
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

/* fd stays open. */
static int found_load(void *user, int fd, const char *name)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *file = copy >= 0 ? fdopen(copy, "r") : NULL;

	if (file != NULL)
		return stream_load(user, file, name);
	if (copy >= 0)
		fd_close(copy);
	return fail(errno, "configuration %s: %s", name, hal_strerror(errno));
}

/* ---- options of the API ---------------------------------------------------------- */

/* "section.key=value"; the section may have dots in it. */
static int option_parse(struct config *cfg, const char *text)
{
	const char *equals = strchr(text, '=');
	const char *dot = NULL;
	char *copy;
	int err;

	for (const char *p = text; equals != NULL && p < equals; p++)
		if (*p == '.')
			dot = p;
	if (dot == NULL || dot == text || dot + 1 == equals)
		return fail(EINVAL, "option \"%s\" is not section.key=value", text);
	copy = strdup(text);
	if (copy == NULL)
		return fail(ENOMEM, "no memory for the options");
	copy[dot - text] = '\0';
	copy[equals - text] = '\0';
	err = entry_add(cfg, LAYER_API, copy, copy + (dot - text) + 1, equals + 1,
			"option");
	free(copy);
	return err;
}

int config_add_target(struct config *cfg, const char *backend, const char *target,
		      const char *query)
{
	char section[48];
	char source[128];
	char *copy = strdup(query);
	char *rest = copy;
	char *pair;
	int err = 0;

	if (copy == NULL)
		return fail(ENOMEM, "no memory for the target");
	format_text(section, sizeof(section), "backend.%s", backend);
	format_text(source, sizeof(source), "target %s", target);
	while (err == 0 && (pair = strsep(&rest, "&")) != NULL) {
		const struct config_entry *again;
		const char *in, *key;
		char *equals = strchr(pair, '='), *dot;

		if (equals == NULL || equals == pair) {
			err = fail(EINVAL, "target \"%s\": \"%s\" is not key=value",
				   target, pair);
			break;
		}
		*equals = '\0';
		/* layers.validate=1: of that section, not of the backend's. */
		dot = strchr(pair, '.');
		if (dot != NULL)
			*dot = '\0';
		in = dot != NULL ? pair : section;
		key = dot != NULL ? dot + 1 : pair;
		again = entry_find(cfg, LAYER_API, in, key);
		/* An option given besides the target is overruled by it. */
		if (again != NULL && strcmp(again->source, source) == 0)
			err = fail(EINVAL, "target \"%s\": %s is there twice", target,
				   key);
		else
			err = entry_add(cfg, LAYER_API, in, key, equals + 1, source);
	}
	free(copy);
	return err;
}

int config_set(struct config *cfg, const char *section, const char *pair)
{
	const char *equals = strchr(pair, '=');
	char *key;
	int err;

	if (equals == NULL || equals == pair)
		return fail(EINVAL, "option \"%s\" is not key=value", pair);
	key = strndup(pair, (size_t)(equals - pair));
	if (key == NULL)
		return fail(ENOMEM, "no memory for the options");
	err = entry_add(cfg, LAYER_API, section, key, equals + 1, "option");
	free(key);
	return err;
}

static bool is_said(const char *name)
{
	return name != NULL && name[0] != '\0';
}

/* Instead of a file: those before it are not read, either. */
static bool is_none(const char *name)
{
	return is_said(name) && strcmp(name, "/dev/null") == 0;
}

static int files_load(struct config *cfg)
{
	const struct config_entry *e = entry_find(cfg, LAYER_API, "hal", "config");
	const char *last = e != NULL ? e->value : secure_getenv("HAL_HAL_CONFIG");
	const char *named = secure_getenv("HAL_CONFIG");
	int err = 0;

	if (is_none(last))
		return 0;
	if (!is_none(named)) {
		err = find_files(found_load, cfg);
		if (err == 0 && is_said(named))
			err = named_load(cfg, named);
	}
	if (err == 0 && is_said(last))
		err = named_load(cfg, last);
	return err;
}

static int sources_load(struct config *cfg, const char *const *options)
{
	for (size_t i = 0; options != NULL && options[i] != NULL; i++) {
		int err = option_parse(cfg, options[i]);

		if (err != 0)
			return err;
	}
	return files_load(cfg);
}

/* ---- values ---------------------------------------------------------------------- */

static int parse_number(const char *text, bool suffix, int64_t *out)
{
	char *end;
	long long n;
	int shift = 0;

	errno = 0;
	/* No octal: 010 is ten. */
	n = strtoll(text, &end, strncasecmp(text, "0x", 2) == 0 ? 16 : 10);
	if (end == text || errno != 0)
		return -EINVAL;
	if (suffix && *end != '\0') {
		const char *units = "KMGT";
		const char *u = strchr(units, toupper((unsigned char)*end));

		if (u == NULL)
			return -EINVAL;
		shift = 10 * (int)(u - units + 1);
		end++;
	}
	if (*end != '\0' || n > (INT64_MAX >> shift) || (shift != 0 && n < 0))
		return -EINVAL;
	*out = (int64_t)n * (INT64_C(1) << shift);
	return 0;
}

static int parse_bool(const char *text, int64_t *out)
{
	static const char *const words[] = {"0", "no",  "off", "false",
					    "1", "yes", "on",  "true"};

	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*out = i >= ARRAY_LENGTH(words) / 2;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_enum(const char *choices, const char *text, int64_t *out)
{
	int64_t index = 0;
	size_t length = strlen(text);

	for (const char *p = choices; p != NULL; index++) {
		const char *bar = strchr(p, '|');
		size_t n = bar != NULL ? (size_t)(bar - p) : strlen(p);

		if (n == length && n > 0 && memcmp(p, text, n) == 0) {
			*out = index;
			return 0;
		}
		p = bar != NULL ? bar + 1 : NULL;
	}
	return -EINVAL;
}

static void option_range(const struct hal_option_def *d, char *text, size_t size)
{
	switch (d->type) {
	case HAL_OPTION_INT:
	case HAL_OPTION_SIZE:
		format_text(text, size, "%lld..%lld", (long long)d->min,
			    (long long)d->max);
		break;
	case HAL_OPTION_BOOL:
		format_text(text, size, "yes|no");
		break;
	case HAL_OPTION_ENUM:
		format_text(text, size, "%s", d->choices);
		break;
	default:
		format_text(text, size, "any");
		break;
	}
}

static int value_parse(const struct hal_option_def *d, const char *text, int64_t *out)
{
	int err = 0;

	*out = 0;
	switch (d->type) {
	case HAL_OPTION_INT:
	case HAL_OPTION_SIZE:
		err = parse_number(text, d->type == HAL_OPTION_SIZE, out);
		if (err == 0 && (*out < d->min || *out > d->max))
			err = -ERANGE;
		break;
	case HAL_OPTION_BOOL:
		err = parse_bool(text, out);
		break;
	case HAL_OPTION_ENUM:
		err = parse_enum(d->choices, text, out);
		break;
	default:
		break;
	}
	return err;
}

static int value_read(const struct hal_option_def *d, const char *section,
		      const char *text, const char *source, int64_t *number)
{
	const size_t room = sizeof(((struct hal_option_info *)NULL)->value);
	char range[96];

	if (strlen(text) >= room)
		return fail(EINVAL, "%s: [%s] %s: a value of %zu characters, at most %zu",
			    source, section, d->key, strlen(text), room - 1);
	if (value_parse(d, text, number) == 0)
		return 0;
	option_range(d, range, sizeof(range));
	return fail(EINVAL, "%s: [%s] %s = \"%s\" is not in %s", source, section, d->key,
		    text, range);
}

static int value_set(struct option_value *v, const struct hal_option_def *d,
		     const char *section, const char *text, const char *source)
{
	int64_t number = 0;
	int err = value_read(d, section, text, source, &number);

	if (err != 0)
		return err;
	free(v->text);
	v->text = strdup(text);
	if (v->text == NULL)
		return fail(ENOMEM, "no memory for the options");
	v->number = number;
	format_text(v->source, sizeof(v->source), "%s", source);
	return 0;
}

static void environment_name(char *out, const char *section, const char *key)
{
	format_text(out, ENVIRONMENT_BYTES, "HAL_%s_%s", section, key);
	for (char *p = out; *p != '\0'; p++)
		*p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
}

/* Whether list, paths with colons between, has the path of length bytes. */
static bool has_path(const char *list, const char *path, size_t length)
{
	while (list != NULL) {
		if (strncmp(list, path, length) == 0 &&
		    (list[length] == ':' || list[length] == '\0'))
			return true;
		list = strchr(list, ':');
		list += list != NULL;
	}
	return false;
}

/* Put those paths of list that *text lacks before it. */
static int paths_join(char **text, const char *list)
{
	char *copy = strdup(list), *rest = copy, *path, *joined;
	size_t size = strlen(list) + strlen(*text) + 2, used = 0;

	joined = copy != NULL ? calloc(1, size) : NULL;
	while (joined != NULL && (path = strsep(&rest, ":")) != NULL)
		if (path[0] != '\0' && !has_path(*text, path, strlen(path))) {
			format_text(joined + used, size - used, "%s:", path);
			used += strlen(path) + 1;
		}
	free(copy);
	if (joined == NULL)
		return fail(ENOMEM, "no memory for the options");
	format_text(joined + used, size - used, "%s", *text);
	if (used > 0 && (*text)[0] == '\0')
		joined[used - 1] = '\0';
	free(*text);
	*text = joined;
	return 0;
}

/* Add to v, which the last file has set, the plugins of those before it: each may have
 * sections of their own, so one replaces no other's. */
static int plugins_join(const struct config *cfg, struct option_value *v)
{
	bool last = true;
	int err = 0;

	for (const struct config_entry *e = cfg->entries; err == 0 && e != NULL;
	     e = e->next) {
		if (e->layer != LAYER_FILE || strcmp(e->section, "hal") != 0 ||
		    strcmp(e->key, "plugins") != 0)
			continue;
		if (!last)
			err = paths_join(&v->text, e->value);
		last = false;
	}
	return err;
}

static int option_resolve(const struct config *cfg, const char *section,
			  const struct hal_option_def *d, struct option_value *v)
{
	const struct config_entry *e;
	char name[ENVIRONMENT_BYTES];
	char source[ENVIRONMENT_BYTES + 16];
	const char *text;
	int err;

	err = value_set(v, d, section, d->def != NULL ? d->def : "", "default");
	if (err != 0)
		return err;
	/* Lower layers are checked too: a wrong line is never silent. */
	for (e = cfg->entries; e != NULL; e = e->next)
		if (e->layer == LAYER_FILE && strcmp(e->section, section) == 0 &&
		    strcmp(e->key, d->key) == 0 &&
		    (err = value_set(v, d, section, e->value, e->source)) != 0)
			return err;
	e = entry_find(cfg, LAYER_FILE, section, d->key);
	if (e != NULL && (err = value_set(v, d, section, e->value, e->source)) != 0)
		return err;
	if (strcmp(section, "hal") == 0 && strcmp(d->key, "plugins") == 0 &&
	    (err = plugins_join(cfg, v)) != 0)
		return err;
	environment_name(name, section, d->key);
	text = secure_getenv(name);
	if (text != NULL) {
		format_text(source, sizeof(source), "environment %s", name);
		if ((err = value_set(v, d, section, text, source)) != 0)
			return err;
	}
	e = entry_find(cfg, LAYER_API, section, d->key);
	return e != NULL ? value_set(v, d, section, e->value, e->source) : 0;
}

void config_values_free(struct hal_bk_config *values)
{
	if (values == NULL)
		return;
	for (uint32_t i = 0; i < values->count; i++)
		free(values->values[i].text);
	free(values->values);
	free(values);
}

int config_resolve(const struct config *cfg, const char *section,
		   const struct hal_option_def *defs, uint32_t count,
		   struct hal_bk_config **out)
{
	struct hal_bk_config *c = calloc(1, sizeof(*c));
	int err = 0;

	*out = NULL;
	if (c == NULL)
		return fail(ENOMEM, "no memory for the options");
	c->values = calloc(count + 1, sizeof(*c->values));
	if (c->values == NULL) {
		free(c);
		return fail(ENOMEM, "no memory for the options");
	}
	c->defs = defs;
	c->count = count;
	format_text(c->section, sizeof(c->section), "%s", section);
	for (uint32_t i = 0; err == 0 && i < count; i++)
		err = option_resolve(cfg, section, &defs[i], &c->values[i]);
	if (err != 0)
		config_values_free(c);
	else
		*out = c;
	return err;
}

/* ---- what may be said ------------------------------------------------------------ */

/* NULL: there is none of that key. */
static const struct hal_option_def *def_find(const struct hal_option_def *defs,
					     uint32_t count, const char *key)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(defs[i].key, key) == 0)
			return &defs[i];
	return NULL;
}

#define KEYS_BYTES 384

/* " a b c" */
static void keys_text(char text[KEYS_BYTES], const struct hal_option_def *defs,
		      uint32_t count)
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < count && used < KEYS_BYTES; i++) {
		format_text(text + used, KEYS_BYTES - used, " %s", defs[i].key);
		used += strlen(text + used);
	}
}

/* The policy that is named, or the one without a name; NULL: there is no such. */
static const struct hal_policy *policy_named(const struct config *cfg)
{
	const struct config_entry *e = entry_find(cfg, LAYER_API, "policy", "name");
	const char *name = e != NULL ? e->value : secure_getenv("HAL_POLICY_NAME");

	if (name == NULL) {
		e = entry_find(cfg, LAYER_FILE, "policy", "name");
		name = e != NULL ? e->value : policy_options[0].def;
	}
	return policy_find(name);
}

/* Of [policy], what the policy itself has as well. */
static int unknown_key(const struct config *cfg, const char *source, const char *section,
		       const char *key, const struct hal_option_def *defs, uint32_t count)
{
	const struct hal_policy *p =
		strcmp(section, "policy") == 0 ? policy_named(cfg) : NULL;
	char known[KEYS_BYTES], own[KEYS_BYTES];

	keys_text(known, defs, count);
	if (p == NULL || p->option_count == 0)
		return fail(EINVAL, "%s: [%s] has no option %s; it has%s", source,
			    section, key, known);
	keys_text(own, p->options, p->option_count);
	return fail(EINVAL, "%s: [%s] has no option %s; it has%s, and for policy %s%s",
		    source, section, key, known, p->name, own);
}

static int key_check(const struct config *cfg, const struct config_entry *e,
		     const struct hal_option_def *defs, uint32_t count)
{
	const struct hal_option_def *d = def_find(defs, count, e->key);
	int64_t number;

	if (e->key[0] == '\0')
		return 0;
	if (d != NULL && (e->layer != LAYER_FILE || defs == partition_options))
		return 0;
	/* A file's value, too: that backend may never be opened.  A partition's values
	 * are checked when it is made. */
	if (d != NULL)
		return value_read(d, e->section, e->value, e->source, &number);
	return unknown_key(cfg, e->source, e->section, e->key, defs, count);
}

/* Any policy's: another one may come later. */
static int policy_key_check(const struct config *cfg, const struct config_entry *e)
{
	for (uint32_t i = 0; i < policy_count(); i++)
		if (def_find(policy_at(i)->options, policy_at(i)->option_count, e->key) !=
		    NULL)
			return key_check(cfg, e, policy_at(i)->options,
					 policy_at(i)->option_count);
	return key_check(cfg, e, policy_options, policy_option_count);
}

static int entry_check(const struct config *cfg, const struct config_entry *e)
{
	const struct backend *b;
	char name[32];

	for (uint32_t i = 0; i < own_section_count; i++)
		if (strcmp(e->section, own_sections[i].name) == 0)
			return key_check(cfg, e, own_sections[i].defs,
					 own_sections[i].count);
	if (strcmp(e->section, "policy") == 0)
		return policy_key_check(cfg, e);
	if (partition_section(e->section, name, sizeof(name)))
		return key_check(cfg, e, partition_options, partition_option_count);
	if (strncmp(e->section, "backend.", 8) == 0) {
		b = registry_find(e->section + 8);
		if (b != NULL && b->err != 0)
			return 0; /* what it would take is not known */
		if (b != NULL)
			return key_check(cfg, e, b->table.options, b->table.option_count);
		return fail(EINVAL, "%s: [%s]: this build has no backend %s", e->source,
			    e->section, e->section + 8);
	}
	return fail(EINVAL,
		    "%s: no section [%s]; there are [hal], [policy], [layers], "
		    "[backend.NAME] and [partition \"name\"] (a name has 1 to 31 "
		    "characters)",
		    e->source, e->section);
}

/* Table number index of options: the library's, the policies', the backends'. */
static bool table_at(uint32_t index, struct own_section *t)
{
	if (index < own_section_count) {
		*t = own_sections[index];
		return true;
	}
	index -= own_section_count;
	if (index <= policy_count()) {
		const struct hal_policy *p = index > 0 ? policy_at(index - 1) : NULL;

		t->name = "policy";
		t->defs = p != NULL ? p->options : policy_options;
		t->count = p != NULL ? p->option_count : policy_option_count;
		t->unknown = false;
		return true;
	}
	index -= 1 + policy_count();
	if (index >= registry_count())
		return false;
	t->name = registry_at(index)->section;
	t->defs = registry_at(index)->table.options;
	t->count = registry_at(index)->table.option_count;
	t->unknown = registry_at(index)->err != 0;
	return true;
}

/* A variable of the environment, and the section that is its beginning so far. */
struct variable {
	char name[ENVIRONMENT_BYTES];
	struct own_section section;
	size_t matched;
};

static bool variable_of(struct variable *v, const struct own_section *t)
{
	char name[ENVIRONMENT_BYTES];
	size_t length;

	for (uint32_t i = 0; i < t->count; i++) {
		environment_name(name, t->name, t->defs[i].key);
		if (strcmp(v->name, name) == 0)
			return true;
	}
	environment_name(name, t->name, "");
	length = strlen(name);
	if (length > v->matched && strncmp(v->name, name, length) == 0) {
		v->section = *t;
		v->matched = length;
	}
	return false;
}

static int variable_check(const struct config *cfg, struct variable *v)
{
	struct own_section t = {.defs = partition_options,
				.count = partition_option_count};
	char source[ENVIRONMENT_BYTES + 16];

	for (const struct config_entry *e = cfg->entries; e != NULL; e = e->next) {
		t.name = e->section;
		if (strncmp(e->section, "partition", strlen("partition")) == 0 &&
		    variable_of(v, &t))
			return 0;
	}
	for (uint32_t i = 0; table_at(i, &t); i++)
		if (variable_of(v, &t))
			return 0;
	if (v->section.unknown)
		return 0;
	format_text(source, sizeof(source), "environment %s", v->name);
	if (v->matched > 0)
		return unknown_key(cfg, source, v->section.name, v->name + v->matched,
				   v->section.defs, v->section.count);
	return fail(EINVAL, "%s: no backend or partition has an option of that name",
		    source);
}

/* Whether a is b but for one letter changed, left out, put in, or two changed places. */
static bool one_off(const char *a, size_t a_length, const char *b)
{
	size_t b_length = strlen(b), same = 0, ends = 0;

	while (same < a_length && same < b_length && a[same] == b[same])
		same++;
	while (ends < a_length - same && ends < b_length - same &&
	       a[a_length - 1 - ends] == b[b_length - 1 - ends])
		ends++;
	a_length -= same + ends;
	b_length -= same + ends;
	if (a_length == 2 && b_length == 2)
		return a[same] == b[same + 1] && a[same + 1] == b[same];
	return a_length <= 1 && b_length <= 1;
}

/* HAL_ and a key of [hal], without the section.  HAL_CONFIG is one of ours. */
static int check_sectionless(const char *word)
{
	size_t length = strcspn(word, "=");
	char name[ENVIRONMENT_BYTES];

	for (uint32_t i = 0; i < core_option_count; i++) {
		const char *key = name + strlen("HAL_HAL_");

		environment_name(name, "hal", core_options[i].key);
		if (strcmp(core_options[i].key, "config") != 0 && strlen(key) == length &&
		    memcmp(word, key, length) == 0)
			return fail(EINVAL,
				    "environment HAL_%s: no section; %s is meant?", key,
				    name);
	}
	return 0;
}

/* What begins as a variable of ours has to be one, and what nearly does is meant to. */
static int environment_check(const struct config *cfg)
{
	static const char *const sections[] = {"HAL", "POLICY", "LAYERS", "BACKEND",
					       "PARTITION"};

	/* Of a program with more rights than who started it, nothing of it counts. */
	if (getauxval(AT_SECURE) != 0)
		return 0;
	for (char **e = environ; e != NULL && *e != NULL; e++) {
		struct variable v = {.matched = 0};
		const char *word = *e + strlen("HAL_");
		size_t length, i = 0;
		bool exact;
		int err;

		if (strncmp(*e, "HAL_", strlen("HAL_")) != 0)
			continue;
		err = check_sectionless(word);
		if (err != 0)
			return err;
		length = strcspn(word, "_=");
		if (word[length] != '_')
			continue;
		while (i < ARRAY_LENGTH(sections) && !one_off(word, length, sections[i]))
			i++;
		if (i == ARRAY_LENGTH(sections))
			continue;
		exact = length == strlen(sections[i]) &&
			memcmp(word, sections[i], length) == 0;
		/* Three letters are near to much that is somebody else's. */
		if (i == 0 && !exact)
			continue;
		format_text(v.name, sizeof(v.name), "HAL_%.*s", (int)strcspn(word, "="),
			    word);
		if (!exact)
			return fail(EINVAL,
				    "environment %s: no section %.*s; HAL_%s_ is meant?",
				    v.name, (int)length, word, sections[i]);
		err = variable_check(cfg, &v);
		if (err != 0)
			return err;
	}
	return 0;
}

int config_check(const struct config *cfg)
{
	const struct config_entry *first = NULL;

	/* Entries are newest first; the first wrong line should be told. */
	for (const struct config_entry *e = cfg->entries; e != NULL; e = e->next)
		if (entry_check(cfg, e) != 0)
			first = e;
	return first != NULL ? entry_check(cfg, first) : environment_check(cfg);
}

/* ---- all of it ------------------------------------------------------------------- */

int config_load(struct config *cfg, const char *const *options,
		struct hal_bk_config **core)
{
	int err;

	memset(cfg, 0, sizeof(*cfg));
	*core = NULL;
	err = sources_load(cfg, options);
	if (err == 0)
		err = config_resolve(cfg, "hal", core_options, core_option_count, core);
	if (err != 0)
		config_free(cfg);
	return err;
}

int config_complete(const struct config *cfg, const struct hal_bk_config *core)
{
	int err = registry_load(option_str(core, "plugins"));

	return err != 0 ? err : config_check(cfg);
}

/* ---- partitions ------------------------------------------------------------------ */

/* "0,2-3" or "0xd". */
static int parse_colors(const char *text, uint64_t *mask)
{
	const char *p = text;

	*mask = 0;
	if (strncasecmp(p, "0x", 2) == 0) {
		char *end;

		errno = 0;
		*mask = strtoull(p, &end, 16);
		return *end == '\0' && errno == 0 && end > p + 2 ? 0 : -EINVAL;
	}
	while (*p != '\0') {
		char *end;
		unsigned long first, last;

		if (!isdigit((unsigned char)*p))
			return -EINVAL;
		first = strtoul(p, &end, 10);
		last = first;
		if (*end == '-') {
			p = end + 1;
			if (!isdigit((unsigned char)*p))
				return -EINVAL;
			last = strtoul(p, &end, 10);
		}
		if (first > last || last > 63)
			return -EINVAL;
		for (unsigned long c = first; c <= last; c++)
			*mask |= UINT64_C(1) << c;
		if (*end != '\0' && *end != ',')
			return -EINVAL;
		p = *end == ',' ? end + 1 : end;
		if (*end == ',' && *p == '\0')
			return -EINVAL;
	}
	return 0;
}

static const char *section_of(const struct config *cfg, const char *name,
			      const char **source)
{
	const struct config_entry *found = NULL;
	char other[32];

	/* The oldest entry of it is its header. */
	for (const struct config_entry *e = cfg->entries; e != NULL; e = e->next)
		if (partition_section(e->section, other, sizeof(other)) &&
		    strcmp(other, name) == 0)
			found = e;
	if (found == NULL)
		return NULL;
	*source = found->source;
	return found->section;
}

static int config_queues(const struct hal_bk_config *v, const char *name,
			 struct hal_queue_desc *out)
{
	out->service_class = (uint16_t)option_int(v, "class");
	out->priority = (int32_t)option_int(v, "priority");
	out->weight = (uint32_t)option_int(v, "weight");
	out->budget_permille = (uint16_t)option_int(v, "budget_permille");
	out->deadline_ns = (uint64_t)option_int(v, "deadline_us") * 1000;
	if (out->service_class != HAL_CLASS_BEST_EFFORT || out->deadline_ns == 0)
		return 0;
	return fail(EINVAL,
		    "%s: deadline_us = %s in [partition \"%s\"], which is best effort by "
		    "%s: that has no deadlines",
		    option_source(v, "deadline_us"), option_str(v, "deadline_us"), name,
		    option_source(v, "class"));
}

static int config_host(const struct hal_bk_config *v, struct config_partition *out)
{
	const struct option_value *host = option_find(v, "host");

	if (host == NULL)
		return 0;
	if (strlen(host->text) >= sizeof(out->host))
		return fail(EINVAL, "%s: host = \"%s\" has more than %zu characters",
			    host->source, host->text, sizeof(out->host) - 1);
	format_text(out->host, sizeof(out->host), "%s", host->text);
	return 0;
}

/* Who writes a set that is empty gets no channel, which is not what the default means. */
static int config_colors(const struct hal_bk_config *v, struct config_partition *out)
{
	const struct option_value *colors = option_find(v, "colors");

	if (colors == NULL)
		return 0;
	if (parse_colors(colors->text, &out->desc.color_mask) != 0)
		return fail(EINVAL,
			    "%s: colors = \"%s\" is neither a list as 0,2-3 nor a "
			    "mask as 0xd",
			    colors->source, colors->text);
	if (out->desc.color_mask == 0 && strcmp(colors->source, "default") != 0)
		return fail(EINVAL,
			    "%s: colors = \"%s\" names no channel; without that line "
			    "the partition has all that nobody owns",
			    colors->source, colors->text);
	return 0;
}

int config_partition(const struct config *cfg, const char *name,
		     struct config_partition *out)
{
	struct hal_bk_config *v;
	const char *section, *source = NULL;
	int err;

	memset(out, 0, sizeof(*out));
	section = section_of(cfg, name, &source);
	if (section == NULL)
		return fail(ENOENT, "no [partition \"%s\"] in %s", name,
			    cfg->files != NULL ? cfg->files
					       : "the configuration: no file was read");
	err = config_resolve(cfg, section, partition_options, partition_option_count, &v);
	if (err != 0)
		return err;
	out->desc.size = sizeof(out->desc);
	out->desc.row = (uint16_t)option_int(v, "row");
	out->desc.col = (uint16_t)option_int(v, "col");
	out->desc.rows = (uint16_t)option_int(v, "rows");
	out->desc.cols = (uint16_t)option_int(v, "cols");
	out->desc.units_floor = (uint32_t)option_int(v, "units");
	out->desc.units_ceiling = (uint32_t)option_int(v, "ceiling");
	out->desc.memory_bytes = (uint64_t)option_int(v, "memory");
	out->desc.memory_limit = (uint64_t)option_int(v, "memory_limit");
	out->desc.bandwidth = (uint64_t)option_int(v, "bandwidth");
	out->desc.flags = option_int(v, "bimodal") != 0 ? HAL_PARTITION_BIMODAL : 0;
	out->desc.min_isolation = (uint32_t)option_int(v, "isolation");
	format_text(out->desc.name, sizeof(out->desc.name), "%s", name);
	format_text(out->source, sizeof(out->source), "%s", source);
	err = config_queues(v, name, &out->queues);
	if (err == 0)
		err = config_host(v, out);
	if (err == 0)
		err = config_colors(v, out);
	config_values_free(v);
	return err;
}

/* ---- listing --------------------------------------------------------------------- */

static int option_export(const struct config *cfg, const char *section,
			 const struct hal_option_def *d, struct hal_option_info *info)
{
	static const char *const types[] = {"int", "size", "bool", "enum", "string"};
	struct hal_option_info o = HAL_INIT(hal_option_info);
	struct hal_bk_config *v;
	int err = config_resolve(cfg, section, d, 1, &v);

	if (err != 0 || v == NULL)
		return err;
	format_text(o.section, sizeof(o.section), "%s", section);
	format_text(o.key, sizeof(o.key), "%s", d->key);
	format_text(o.type, sizeof(o.type), "%s",
		    d->type < ARRAY_LENGTH(types) ? types[d->type] : "?");
	option_range(d, o.range, sizeof(o.range));
	format_text(o.def, sizeof(o.def), "%s", d->def != NULL ? d->def : "");
	format_text(o.value, sizeof(o.value), "%s", v->values[0].text);
	format_text(o.source, sizeof(o.source), "%s", v->values[0].source);
	format_text(o.help, sizeof(o.help), "%s", d->help != NULL ? d->help : "");
	config_values_free(v);
	return export_struct(info, &o, sizeof(o), sizeof(o), "hal_option_info");
}

static int option_at(const struct config *cfg, uint32_t index,
		     struct hal_option_info *info)
{
	struct own_section t;
	uint32_t total = 0;

	for (uint32_t i = 0; table_at(i, &t); i++) {
		if (index - total < t.count)
			return option_export(cfg, t.name, &t.defs[index - total], info);
		total += t.count;
	}
	return fail(ERANGE, "option number %u is past the last, of %u", index, total);
}

int hal_option_get_info(uint32_t index, const char *const *options,
			struct hal_option_info *info)
{
	struct hal_bk_config *core;
	struct config cfg;
	int cancel, err;

	if (info == NULL)
		return fail(EINVAL, "hal_option_get_info: info is NULL");
	cancel = cancel_hold();
	err = config_load(&cfg, options, &core);
	if (err == 0)
		err = config_complete(&cfg, core);
	if (err == 0)
		err = option_at(&cfg, index, info);
	config_values_free(core);
	config_free(&cfg);
	cancel_release(cancel);
	return tried(err);
}
