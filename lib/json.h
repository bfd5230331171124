/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - parse JSON into a tree whose values know their line numbers.
 *
 * Shared by the library and the tools.  Functions with a parameter why write an error
 * text to it when they fail; the text names file, line and the path of the value.
 */
#ifndef HAL_LIB_JSON_H
#define HAL_LIB_JSON_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_WHY 512 /* size of an error text in bytes */

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
	uint32_t line;  /* line of the first token, from 1 */
	uint32_t index; /* position among the members of the parent, from 0 */
	bool truth;
	double number;
	char *key; /* key of a member of an object, else NULL */
	char *text;
	struct json *parent, *first, *last, *next; /* first, last: members */
	uint32_t count;                            /* members of a list or object */
};

/* Parse the file path and return its tree, to be freed with json_free.  Return NULL on
 * error. */
struct json *json_read(const char *path, char why[JSON_WHY]);
/* Parse bytes[0..size) likewise; name stands for the file in error texts. */
struct json *json_parse(const char *bytes, size_t size, const char *name,
			char why[JSON_WHY]);
/* Free a tree; root may be NULL. */
void json_free(struct json *root);

/* Return member key of object; NULL if it has no such member or is no object. */
const struct json *json_member(const struct json *object, const char *key);

/* Write an error text such as "FILE:LINE: tasks[3].load.frequency: text" to why.  Return
 * -1. */
__attribute__((format(printf, 4, 5))) int json_wrong(const struct json *at,
						     const char *file, char why[JSON_WHY],
						     const char *fmt, ...);

/* Return member key of object in *out.  Return 0, or -1 if the member is missing, has
 * another type, is an empty text, or is a number below least or above most. */
int json_text(const struct json *object, const char *key, const char *file,
	      const char **out, char why[JSON_WHY]);
int json_number(const struct json *object, const char *key, double least, double most,
		const char *file, double *out, char why[JSON_WHY]);
int json_list(const struct json *object, const char *key, const char *file,
	      const struct json **out, char why[JSON_WHY]);
int json_object(const struct json *object, const char *key, const char *file,
		const struct json **out, char why[JSON_WHY]);
/* Return 0 if value is a number from least to most, else -1. */
int json_is_number(const struct json *value, double least, double most, const char *file,
		   char why[JSON_WHY]);
/* Return 0 if every member of object is in known[], which ends with NULL; else -1. */
int json_only(const struct json *object, const char *const *known, const char *file,
	      char why[JSON_WHY]);

#endif
