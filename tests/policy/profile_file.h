/* SPDX-License-Identifier: Apache-2.0 */
/* profile_file.h - profiles of `ref` as halctl profile writes them, for tests. */
#ifndef TESTS_POLICY_PROFILE_FILE_H
#define TESTS_POLICY_PROFILE_FILE_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A kernel of `ref` that runs max(span_ns, cost / units). */
struct profiled {
	const char *name;
	uint64_t work;    /* that it says it is */
	const char *args; /* their bytes, as in the file */
	const char *class;
	uint64_t bytes, cost, span_ns;
	const char *stops; /* as in the file; NULL: it has none */
};

enum { PROFILE_BYTES = 65536 };

#define PROFILE_DEVICE                                                                   \
	"{\"backend\": \"ref\", \"name\": \"software device, 16 units\",\n"              \
	"\t\"unit_rows\": 1, \"unit_cols\": 16, \"colors\": 0,\n"                        \
	"\t\"clock_hz\": 1000000000, \"bandwidth\": 0, \"clock\": \"virtual\"}"

__attribute__((format(printf, 2, 3))) static inline void profile_put(char *text,
								     const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it has been started */
	(void)vsnprintf(text + used, PROFILE_BYTES - used, fmt, ap);
	va_end(ap);
}

/* On 1 to 16 units, with so much spread. */
static inline void profile_put_kernel(char *text, const struct profiled *k,
				      unsigned int spread_permille)
{
	profile_put(text, "{\"name\": \"%s\", \"work\": %" PRIu64 ",\n", k->name,
		    k->work);
	profile_put(text, "\"arg_bytes\": [%s], \"class\": \"%s\",\n", k->args, k->class);
	profile_put(text, "\"bytes\": %" PRIu64 ", \"units\": [\n", k->bytes);
	for (uint64_t n = 1; n <= 16; n++) {
		uint64_t ns = (k->cost + n - 1) / n;

		ns = ns > k->span_ns ? ns : k->span_ns;
		profile_put(text,
			    "%s{\"units\": %" PRIu64 ", \"ns\": %" PRIu64
			    ", \"spread_ns\": %" PRIu64 "}",
			    n > 1 ? ",\n" : "", n, ns, ns * spread_permille / 1000);
	}
	profile_put(text, "]");
	if (k->stops != NULL)
		profile_put(text, ", \"stops\": [%s]", k->stops);
	profile_put(text, "}");
}

static inline void profile_put_head(char *text, unsigned int runs)
{
	text[0] = '\0';
	profile_put(text, "{\"accelhal_profile\": 1,\n\"device\": %s,\n", PROFILE_DEVICE);
	profile_put(text, "\"runs\": %u, \"programs\": [", runs);
}

/* One program of them, each measured so often. */
static inline void profile_text(char *text, const struct profiled *k, size_t count,
				unsigned int runs, unsigned int spread_permille)
{
	profile_put_head(text, runs);
	profile_put(text, "{\"name\": \"one\",\n\"kernels\": [\n");
	for (size_t i = 0; i < count; i++) {
		profile_put(text, "%s", i != 0 ? ",\n" : "");
		profile_put_kernel(text, &k[i], spread_permille);
	}
	profile_put(text, "]}]}\n");
}

/* A program of each, beside each other as beside says in the file; each measured so
 * often. */
static inline void profile_text_pairs(char *text, const struct profiled *k, size_t count,
				      unsigned int runs, const char *beside)
{
	profile_put_head(text, runs);
	for (size_t i = 0; i < count; i++) {
		profile_put(text, "%s{\"name\": \"p%zu\", \"kernels\": [",
			    i != 0 ? ",\n" : "", i);
		profile_put_kernel(text, &k[i], 0);
		profile_put(text, "]}");
	}
	profile_put(text, "],\n\"beside_permille\": %s}\n", beside);
}

/* Into a new file; "hal.profile=" and its name, good until the next one. */
static inline const char *profile_file(const char *text)
{
	static char option[64];
	char *path = option + strlen("hal.profile=");
	FILE *f;
	int fd;

	if (option[0] != '\0')
		(void)unlink(path);
	(void)snprintf(option, sizeof(option), "hal.profile=/tmp/hal-profile-XXXXXX");
	fd = mkstemp(path);
	f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
	return option;
}

static inline void profile_gone(void)
{
	(void)unlink(profile_file("") + strlen("hal.profile="));
}

#endif
