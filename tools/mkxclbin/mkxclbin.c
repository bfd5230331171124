/* SPDX-License-Identifier: Apache-2.0 */
/* mkxclbin TEXT XCLBIN: an xclbin for tests from a text; make.h says what is in it. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "make.h"

static char *read_text(const char *name)
{
	char *text = NULL;
	size_t room = 0;
	FILE *f = fopen(name, "r");

	if (!f || getdelim(&text, &room, 0, f) < 0) {
		free(text);
		text = NULL;
	}
	if (f)
		(void)fclose(f);
	return text;
}

static int write_file(const char *name, const void *data, size_t size)
{
	FILE *f = fopen(name, "wb");
	int bad = !f || fwrite(data, 1, size, f) != size;

	return (f && fclose(f)) || bad;
}

int main(int argc, char **argv)
{
	char why[256], *text;
	void *file = NULL;
	size_t size = 0;
	int rc = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: mkxclbin TEXT XCLBIN\n");
		return 2;
	}
	text = read_text(argv[1]);
	if (!text) {
		fprintf(stderr, "mkxclbin: cannot read %s\n", argv[1]);
		return 1;
	}
	if (mkxclbin(text, &file, &size, why, sizeof(why))) {
		fprintf(stderr, "mkxclbin: %s: %s\n", argv[1], why);
		rc = 1;
	} else if (write_file(argv[2], file, size)) {
		fprintf(stderr, "mkxclbin: cannot write %s\n", argv[2]);
		rc = 1;
	}
	free(file);
	free(text);
	return rc;
}
