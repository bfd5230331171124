/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c - tables in SCALE-Sim's format: a header, then a line a layer, each field
 * followed by a comma. */
#include "layers.h"

#include <stdio.h>
#include <string.h>

const char *const layers_networks[LAYERS_NETWORKS] = {
	"Resnet18", "mobilenet", "vit_s", "alexnet", "Googlenet", "Resnet50"};

/* Read a layer's numbers.  The last windows of a convolution may reach beyond its input.
 * Returns false if the line has too few. */
static bool read_layer(const char *numbers, bool gemm, struct layer *l)
{
	uint32_t x[7];
	/* NOLINTNEXTLINE(cert-err34-c): a wrong number is too few */
	int n = sscanf(numbers, "%u ,%u ,%u ,%u ,%u ,%u ,%u", &x[0], &x[1], &x[2], &x[3],
		       &x[4], &x[5], &x[6]);

	l->gemm = gemm;
	if (gemm && n >= 3) {
		l->m = x[0];
		l->n = x[1];
		l->k = x[2];
		return true;
	}
	if (gemm || n != 7)
		return false;
	l->h = x[0];
	l->w = x[1];
	l->kh = x[2];
	l->kw = x[3];
	l->c = x[4];
	l->n = x[5];
	l->stride = x[6];
	l->oh = (l->h - l->kh + 2 * l->stride - 1) / l->stride;
	l->ow = (l->w - l->kw + 2 * l->stride - 1) / l->stride;
	l->m = l->oh * l->ow;
	l->k = l->kh * l->kw * l->c;
	return true;
}

/* Copy the first field of a line, without blanks behind it. */
static void read_name(const char *field, struct layer *l)
{
	size_t length;

	(void)snprintf(l->name, sizeof(l->name), "%.40s", field);
	length = strlen(l->name);
	while (length > 0 && l->name[length - 1] == ' ')
		l->name[--length] = '\0';
}

uint32_t layers_read(const char *directory, const char *network, struct layer *out)
{
	char path[512], line[512];
	uint32_t count = 0;
	bool gemm = false, first = true;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s.csv", directory, network);
	f = fopen(path, "r");
	if (f == NULL)
		return 0;
	while (count < LAYERS_MAX && fgets(line, sizeof(line), f) != NULL) {
		char *comma = strchr(line, ',');

		if (first)
			gemm = strstr(line, "M,N,K") != NULL ||
			       strstr(line, "M, N, K") != NULL;
		if (!first && comma != NULL) {
			struct layer *l = &out[count];

			*comma = '\0';
			memset(l, 0, sizeof(*l));
			read_name(line, l);
			count += read_layer(comma + 1, gemm, l);
		}
		first = false;
	}
	(void)fclose(f);
	return count;
}
