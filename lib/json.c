/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - parse JSON into a tree whose values know their line numbers; see json.h. */
#include "lib/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "lib/utf8.h"

#define DEPTH_MAX   64
#define MEMBERS_MAX 4096 /* bounds the search for duplicate keys */
#define FILE_MAX    (UINT64_C(256) << 20)
#define PATH_TEXT   256

struct reader {
	yajl_handle yajl;
	const char *bytes, *name;
	size_t size;    /* of .bytes */
	size_t counted; /* bytes whose newlines are included in .line */
	uint32_t line, depth;
	struct json *root;
	struct json *open; /* the innermost list or object that has not ended */
	char *key;         /* key of the next value */
	char *why;
};

/* ---- lines -------------------------------------------------------------------------- */

static uint32_t line_at(struct reader *r, size_t offset)
{
	for (; r->counted < offset; r->counted++)
		r->line += r->bytes[r->counted] == '\n';
	return r->line;
}

static uint32_t line_now(struct reader *r)
{
	return line_at(r, yajl_get_bytes_consumed(r->yajl));
}

static int refuse(struct reader *r, const char *what)
{
	snprintf(r->why, JSON_WHY, "%s:%u: %s", r->name, line_now(r), what);
	return 0;
}

/* ---- values ------------------------------------------------------------------------- */

/* Append a new value to the open list or object, or make it the root.  Return NULL after
 * writing an error text. */
static struct json *add(struct reader *r, enum json_type type)
{
	struct json *v = calloc(1, sizeof(*v)), *in = r->open;

	if (v == NULL) {
		(void)refuse(r, "out of memory");
		return NULL;
	}
	v->type = type;
	v->line = line_now(r);
	v->key = r->key;
	r->key = NULL;
	v->parent = in;
	if (in == NULL) {
		r->root = v;
		return v;
	}
	v->index = in->count++;
	if (in->last != NULL)
		in->last->next = v;
	else
		in->first = v;
	in->last = v;
	return v;
}

static char *copy(const unsigned char *text, size_t length)
{
	char *s = malloc(length + 1);

	if (s != NULL) {
		memcpy(s, text, length);
		s[length] = '\0';
	}
	return s;
}

static int on_null(void *user)
{
	return add(user, JSON_NULL) != NULL;
}

static int on_bool(void *user, int truth)
{
	struct json *v = add(user, JSON_BOOL);

	if (v != NULL)
		v->truth = truth != 0;
	return v != NULL;
}

static int on_number(void *user, const char *text, size_t length)
{
	char digits[64];
	struct json *v;

	if (length >= sizeof(digits))
		return refuse(user, "a number has more than 63 characters");
	memcpy(digits, text, length);
	digits[length] = '\0';
	v = add(user, JSON_NUMBER);
	if (v != NULL)
		v->number = strtod(digits, NULL);
	return v != NULL;
}

static int on_text(void *user, const unsigned char *text, size_t length)
{
	struct json *v = add(user, JSON_TEXT);

	if (v == NULL)
		return 0;
	if (memchr(text, '\0', length) != NULL)
		return refuse(user, "a text contains a NUL character");
	v->text = copy(text, length);
	return v->text != NULL || refuse(user, "out of memory");
}

static int on_key(void *user, const unsigned char *text, size_t length)
{
	struct reader *r = user;
	char message[PATH_TEXT];

	r->key = copy(text, length);
	if (r->key == NULL)
		return refuse(r, "out of memory");
	if (r->open->count == MEMBERS_MAX)
		return refuse(r, "an object has more than 4096 members");
	if (json_member(r->open, r->key) == NULL)
		return 1;
	snprintf(message, sizeof(message), "%.*s: appears twice in one object",
		 PATH_TEXT / 2, r->key);
	free(r->key);
	r->key = NULL;
	return refuse(r, message);
}

static int open_value(struct reader *r, enum json_type type)
{
	struct json *v;

	if (r->depth == DEPTH_MAX)
		return refuse(r, "lists and objects are nested more than 64 deep");
	v = add(r, type);
	if (v == NULL)
		return 0;
	r->open = v;
	r->depth++;
	return 1;
}

static int close_value(void *user)
{
	struct reader *r = user;

	r->open = r->open->parent;
	r->depth--;
	return 1;
}

static int on_object(void *user)
{
	return open_value(user, JSON_OBJECT);
}

static int on_list(void *user)
{
	return open_value(user, JSON_LIST);
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_bool,
	.yajl_number = on_number,
	.yajl_string = on_text,
	.yajl_map_key = on_key,
	.yajl_start_map = on_object,
	.yajl_end_map = close_value,
	.yajl_start_array = on_list,
	.yajl_end_array = close_value,
};

/* ---- files -------------------------------------------------------------------------- */

/* Write yajl's error with a line number to r->why: the first line of its text, or a
 * clearer text if the file ends too early. */
static void report_syntax_error(struct reader *r)
{
	unsigned char *text =
		yajl_get_error(r->yajl, 0, (const unsigned char *)r->bytes, 0);
	const char *what = text != NULL ? (const char *)text : "not JSON";
	uint32_t line = line_now(r);

	if (strstr(what, "premature EOF") != NULL) {
		what = "the file ends in the middle of its JSON";
		while (r->size > 0 && strchr(" \t\r\n", r->bytes[r->size - 1]) != NULL)
			r->size--;
		line = line_at(r, r->size);
	}
	snprintf(r->why, JSON_WHY, "%s:%u: %.*s", r->name, line, (int)strcspn(what, "\n"),
		 what);
	if (text != NULL)
		yajl_free_error(r->yajl, text);
}

/* Return why bytes cannot be UTF-8 text; NULL if they may be. */
static const char *why_not_utf8(const char *bytes, size_t size)
{
	if (size == 0)
		return "the file is empty";
	if (size >= 2 &&
	    (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
		return "the file is UTF-16, but JSON must be UTF-8; save it as UTF-8";
	return NULL;
}

struct json *json_parse(const char *bytes, size_t size, const char *name,
			char why[JSON_WHY])
{
	size_t bom = utf8_bom(bytes, size);
	struct reader r = {.bytes = bytes + bom,
			   .size = size - bom,
			   .name = name,
			   .line = 1,
			   .why = why};
	const char *wrong = why_not_utf8(bytes, size);
	yajl_status status;

	why[0] = '\0';
	if (wrong != NULL) {
		snprintf(why, JSON_WHY, "%s:1: %s", name, wrong);
		return NULL;
	}
	r.yajl = yajl_alloc(&callbacks, NULL, &r);
	if (r.yajl == NULL) {
		snprintf(why, JSON_WHY, "%s: out of memory", name);
		return NULL;
	}
	status = yajl_parse(r.yajl, (const unsigned char *)r.bytes, r.size);
	if (status == yajl_status_ok)
		status = yajl_complete_parse(r.yajl);
	if (status == yajl_status_error)
		report_syntax_error(&r);
	yajl_free(r.yajl);
	free(r.key);
	if (status == yajl_status_ok)
		return r.root;
	json_free(r.root);
	return NULL;
}

static char *read_all(FILE *f, size_t *size)
{
	char *bytes = NULL, *more;
	size_t room = 0;

	for (*size = 0;;) {
		if (*size == room) {
			room = room != 0 ? 2 * room : 65536;
			more = room <= FILE_MAX ? realloc(bytes, room) : NULL;
			if (more == NULL) {
				errno = room <= FILE_MAX ? ENOMEM : EFBIG;
				break;
			}
			bytes = more;
		}
		*size += fread(bytes + *size, 1, room - *size, f);
		if (ferror(f))
			break;
		if (feof(f))
			return bytes;
	}
	free(bytes);
	return NULL;
}

struct json *json_read(const char *path, char why[JSON_WHY])
{
	FILE *f = fopen(path, "re");
	struct json *root = NULL;
	char *bytes = NULL;
	size_t size = 0;

	if (f != NULL)
		bytes = read_all(f, &size);
	if (bytes == NULL)
		snprintf(why, JSON_WHY, "%s: %s", path, strerrordesc_np(errno));
	else
		root = json_parse(bytes, size, path, why);
	if (f != NULL)
		(void)fclose(f);
	free(bytes);
	return root;
}

/* Visit the values by their parent links instead of by recursion. */
void json_free(struct json *root)
{
	struct json *v = root, *next;

	while (v != NULL) {
		if (v->first != NULL) {
			next = v->first;
			v->first = NULL;
			v = next;
			continue;
		}
		next = v == root ? NULL : v->next != NULL ? v->next : v->parent;
		free(v->key);
		free(v->text);
		free(v);
		v = next;
	}
}

/* ---- access to values --------------------------------------------------------------- */

const struct json *json_member(const struct json *object, const char *key)
{
	const struct json *v = object->type == JSON_OBJECT ? object->first : NULL;

	while (v != NULL && strcmp(v->key, key) != 0)
		v = v->next;
	return v;
}

/* Write the path of v from the root, such as "tasks[3].load", truncated to room bytes. */
static void path_of(const struct json *v, char *out, size_t room)
{
	const struct json *ancestors[DEPTH_MAX + 1];
	size_t used = 0;
	uint32_t n = 0;

	for (; v->parent != NULL; v = v->parent)
		ancestors[n++] = v;
	for (out[0] = '\0'; n > 0 && used < room - 1;) {
		int k;

		v = ancestors[--n];
		k = v->key != NULL ? snprintf(out + used, room - used, "%s%s",
					      used != 0 ? "." : "", v->key)
				   : snprintf(out + used, room - used, "[%u]", v->index);
		used += k > 0 ? (size_t)k : 0;
	}
}

int json_wrong(const struct json *at, const char *file, char why[JSON_WHY],
	       const char *fmt, ...)
{
	char path[PATH_TEXT], text[PATH_TEXT];
	va_list ap;

	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start was called */
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	path_of(at, path, sizeof(path));
	snprintf(why, JSON_WHY, "%.200s:%u: %s%s%s", file, at->line, path,
		 path[0] != '\0' ? ": " : "", text);
	return -1;
}

static const char *type_name(enum json_type type)
{
	static const char *const names[] = {"null",   "a boolean", "a number",
					    "a text", "a list",    "an object"};

	return names[type];
}

static int member_of(const struct json *object, const char *key, enum json_type type,
		     const char *file, const struct json **out, char why[JSON_WHY])
{
	*out = json_member(object, key);
	if (*out == NULL)
		return json_wrong(object, file, why, "has no %s", key);
	if ((*out)->type != type)
		return json_wrong(*out, file, why, "is %s, not %s",
				  type_name((*out)->type), type_name(type));
	return 0;
}

int json_text(const struct json *object, const char *key, const char *file,
	      const char **out, char why[JSON_WHY])
{
	const struct json *v;

	if (member_of(object, key, JSON_TEXT, file, &v, why) != 0)
		return -1;
	if (v->text[0] == '\0')
		return json_wrong(v, file, why, "is empty");
	*out = v->text;
	return 0;
}

int json_is_number(const struct json *v, double least, double most, const char *file,
		   char why[JSON_WHY])
{
	if (v->type != JSON_NUMBER)
		return json_wrong(v, file, why, "is %s, not a number",
				  type_name(v->type));
	if (!(v->number >= least && v->number <= most))
		return json_wrong(v, file, why, "is %.9g, not from %.9g to %.9g",
				  v->number, least, most);
	return 0;
}

int json_number(const struct json *object, const char *key, double least, double most,
		const char *file, double *out, char why[JSON_WHY])
{
	const struct json *v;

	if (member_of(object, key, JSON_NUMBER, file, &v, why) != 0 ||
	    json_is_number(v, least, most, file, why) != 0)
		return -1;
	*out = v->number;
	return 0;
}

int json_list(const struct json *object, const char *key, const char *file,
	      const struct json **out, char why[JSON_WHY])
{
	return member_of(object, key, JSON_LIST, file, out, why);
}

int json_object(const struct json *object, const char *key, const char *file,
		const struct json **out, char why[JSON_WHY])
{
	return member_of(object, key, JSON_OBJECT, file, out, why);
}

int json_only(const struct json *object, const char *const *known, const char *file,
	      char why[JSON_WHY])
{
	for (const struct json *v = object->first; v != NULL; v = v->next) {
		uint32_t i = 0;

		while (known[i] != NULL && strcmp(known[i], v->key) != 0)
			i++;
		if (known[i] == NULL)
			return json_wrong(v, file, why, "is an unknown key");
	}
	return 0;
}
