/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.list. */
#include "list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void dimensions(const char *text, uint32_t to[3])
{
	unsigned int v[3] = {1, 1, 1};

	(void)sscanf(text, "%ux%ux%u", &v[0], &v[1], &v[2]);
	to[0] = v[0];
	to[1] = v[1];
	to[2] = v[2];
}

uint32_t list_read(const char *path, struct list_kernel *out, uint32_t max)
{
	FILE *f = fopen(path, "r");
	char line[200], grid[20], block[20];
	uint32_t count = 0;
	int n;

	while (f && count < max && fgets(line, sizeof(line), f)) {
		struct list_kernel *k = &out[count];

		if (line[0] == '#' || line[0] == '\n')
			continue;
		memset(k, 0, sizeof(*k));
		n = sscanf(line, "%31s %31s %19s %19s %u %d %c %31s", k->module, k->name,
			   grid, block, &k->shared_bytes, &k->n, &k->values, k->refused);
		if (n < 7) {
			fprintf(stderr, "%s: %s", path, line);
			exit(2);
		}
		dimensions(grid, k->grid);
		dimensions(block, k->block);
		count++;
	}
	if (!f || !count) {
		fprintf(stderr, "%s: no kernels\n", path);
		exit(2);
	}
	fclose(f);
	return count;
}

char *list_file(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	long n = -1;

	if (f && fseek(f, 0, SEEK_END) == 0)
		n = ftell(f);
	if (n >= 0)
		text = malloc((size_t)n + 1);
	if (!text || fseek(f, 0, SEEK_SET) != 0 ||
	    fread(text, 1, (size_t)n, f) != (size_t)n) {
		fprintf(stderr, "%s: cannot be read\n", path);
		exit(2);
	}
	fclose(f);
	text[n] = 0;
	*bytes = (size_t)n;
	return text;
}
