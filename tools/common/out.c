/* SPDX-License-Identifier: Apache-2.0 */
/* out.c - records and lists of records, written as JSON with yajl. */
#include "out.h"

#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>
#include <yajl/yajl_gen.h>

#include "lib/utf8.h"

static bool no_memory; /* for a text */

/* A generator error is sticky in yajl: checking the last call is checking them all. */
struct out *out_create(void)
{
	yajl_gen gen = yajl_gen_alloc(NULL);

	if (!gen) {
		(void)tool_fail("out of memory");
		return NULL;
	}
	yajl_gen_config(gen, yajl_gen_beautify, 1);
	yajl_gen_config(gen, yajl_gen_indent_string, "  ");
	return (struct out *)gen;
}

void out_compact(struct out *o)
{
	yajl_gen_config((yajl_gen)o, yajl_gen_beautify, 0);
}

static yajl_gen gen_of(struct out *o)
{
	return (yajl_gen)o;
}

static void put(struct out *o, const char *text)
{
	size_t size;
	char *plain;

	if (!text)
		return;
	size = 3 * strlen(text) + 1; /* every byte may become U+FFFD */
	plain = malloc(size);
	if (!plain) {
		no_memory = true;
		return;
	}
	utf8_text(plain, size, text, SIZE_MAX);
	yajl_gen_string(gen_of(o), (const unsigned char *)plain, strlen(plain));
	free(plain);
}

void out_list(struct out *o, const char *key)
{
	put(o, key);
	yajl_gen_array_open(gen_of(o));
}

void out_list_end(struct out *o)
{
	yajl_gen_array_close(gen_of(o));
}

void out_record(struct out *o, const char *key)
{
	put(o, key);
	yajl_gen_map_open(gen_of(o));
}

void out_record_end(struct out *o)
{
	yajl_gen_map_close(gen_of(o));
}

void out_str(struct out *o, const char *key, const char *value)
{
	put(o, key);
	put(o, value);
}

void out_u64(struct out *o, const char *key, uint64_t value)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, value);

	/* yajl_gen_integer takes long long: half of uint64_t would come out negative. */
	put(o, key);
	yajl_gen_number(gen_of(o), digits, (size_t)n);
}

void out_i64(struct out *o, const char *key, int64_t value)
{
	put(o, key);
	yajl_gen_integer(gen_of(o), value);
}

void out_real(struct out *o, const char *key, double value)
{
	char digits[32];
	int n = snprintf(digits, sizeof(digits), "%.9g", value);

	put(o, key);
	if (isfinite(value))
		yajl_gen_number(gen_of(o), digits, (size_t)n);
	else
		yajl_gen_null(gen_of(o));
}

/* Whether it could be written is looked at once, at the end. */
static int finish(struct out *o, FILE *f)
{
	const unsigned char *text;
	size_t len;
	int rc = 0;

	if (!no_memory && yajl_gen_get_buf(gen_of(o), &text, &len) == yajl_gen_status_ok)
		(void)fwrite(text, 1, len, f);
	else
		rc = tool_fail("out of memory");
	yajl_gen_free(gen_of(o));
	return rc;
}

int out_finish(struct out *o)
{
	return finish(o, stdout);
}

int out_finish_to(struct out *o, const char *path)
{
	FILE *f = fopen(path, "we");
	int rc, bad;

	if (f == NULL) {
		yajl_gen_free(gen_of(o));
		return tool_fail("%s: %s", path, hal_strerror(errno));
	}
	rc = finish(o, f);
	bad = ferror(f);
	bad |= fclose(f);
	return rc == 0 && bad != 0 ? tool_fail("%s: cannot be written", path) : rc;
}
