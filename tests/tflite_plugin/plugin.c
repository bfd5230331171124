/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - the delegate's library, loaded as a runtime loads it. */
#include "plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPTIONS_MAX 32

static struct tfl_delegate *(*create)(const char *const *, const char *const *, size_t,
				      void (*)(const char *));
static void (*destroy)(struct tfl_delegate *);

static char reported[2048];

static void report(const char *text)
{
	snprintf(reported, sizeof(reported), "%s", text);
}

static void *symbol(void *library, const char *name)
{
	void *f = dlsym(library, name);

	if (!f) {
		printf("%s\n", dlerror());
		exit(1);
	}
	return f;
}

void plugin_load(void)
{
	void *f, *library = dlopen(getenv("DELEGATE"), RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		printf("$DELEGATE: %s\n", dlerror());
		exit(1);
	}
	f = symbol(library, "tflite_plugin_create_delegate");
	memcpy(&create, &f, sizeof(create));
	f = symbol(library, "tflite_plugin_destroy_delegate");
	memcpy(&destroy, &f, sizeof(destroy));
}

struct tfl_delegate *plugin_create(const char *const *options, char *text, size_t size)
{
	const char *keys[OPTIONS_MAX], *values[OPTIONS_MAX];
	char copies[OPTIONS_MAX][256];
	size_t n = 0;
	struct tfl_delegate *d;

	for (; options && options[n] && n < OPTIONS_MAX; n++) {
		char *equals;

		snprintf(copies[n], sizeof(copies[n]), "%s", options[n]);
		equals = strchr(copies[n], '=');
		*equals = '\0';
		keys[n] = copies[n];
		values[n] = equals + 1;
	}
	reported[0] = '\0';
	/* As ctypes does, leave garbage in the upper half of the count. */
	d = create(keys, values, n | (size_t)0xa5a5a5a5 << 32, text ? report : NULL);
	if (text)
		snprintf(text, size, "%s", reported);
	return d;
}

void plugin_destroy(struct tfl_delegate *d)
{
	destroy(d);
}

static FILE *captured;
static int saved = -1;

void capture_begin(void)
{
	captured = tmpfile();
	saved = dup(2);
	if (!captured || saved < 0 || dup2(fileno(captured), 2) < 0)
		abort();
}

void capture_end(char *text, size_t size)
{
	size_t n;

	fflush(stderr);
	dup2(saved, 2);
	close(saved);
	rewind(captured);
	n = fread(text, 1, size - 1, captured);
	text[n] = '\0';
	fclose(captured);
}
