/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - a JSON file as a tree that knows its lines; of the library and of tools. */
#ifndef HAL_LIB_JSON_H
#define HAL_LIB_JSON_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_WHY 512 /* bytes of an error text */

enum json_type {
	JSON_NULL,
	JSON_BOOL,
	JSON_NUMBER,
	JSON_TEXT,
	JSON_LIST,
	JSON_OBJECT,
};

struct json {
	enum json_type type;
	uint32_t line;  /* of its first token */
	uint32_t index; /* in a list */
	bool truth;
	double number;
	char *key; /* in an object */
	char *text;
	struct json *parent, *first, *last, *next;
	uint32_t count; /* of a list or object */
};

/* NULL, with why. */
struct json *json_read(const char *path, char why[JSON_WHY]);
/* The same of bytes; name is for error texts. */
struct json *json_parse(const char *bytes, size_t size, const char *name,
			char why[JSON_WHY]);
void json_free(struct json *root);

/* Member key of an object; NULL: there is none. */
const struct json *json_member(const struct json *object, const char *key);

/* Writes "FILE:LINE: tasks[3].load.frequency: text" to why; -1. */
__attribute__((format(printf, 4, 5))) int json_wrong(const struct json *at,
						     const char *file, char why[JSON_WHY],
						     const char *fmt, ...);

/* Members of the type that is wanted: 0, or -1 with why; absent is wrong, too. */
int json_text(const struct json *object, const char *key, const char *file,
	      const char **out, char why[JSON_WHY]);
int json_number(const struct json *object, const char *key, double least, double most,
		const char *file, double *out, char why[JSON_WHY]);
int json_list(const struct json *object, const char *key, const char *file,
	      const struct json **out, char why[JSON_WHY]);
int json_object(const struct json *object, const char *key, const char *file,
		const struct json **out, char why[JSON_WHY]);
/* A value that is there: a number within these. */
int json_is_number(const struct json *value, double least, double most, const char *file,
		   char why[JSON_WHY]);
/* Any member of object that is none of known[], which ends with NULL, is wrong. */
int json_only(const struct json *object, const char *const *known, const char *file,
	      char why[JSON_WHY]);

#endif
