/* SPDX-License-Identifier: Apache-2.0 */
/* Images for the stand-in driver; those of SPIR-V are whole, so a real compiler takes
 * them: kernels that do nothing. */
#include "image.h"

#include <stdlib.h>
#include <string.h>

#include <hal/levelzero.h>

#include "stand_in.h"

/* Memory of a work group; SPIR-V only. */
#define LOCAL 99u

/* "name:m4" */
static void describe(const char *text, uint32_t group_size,
		     struct hal_levelzero_kernel *k)
{
	size_t n = strcspn(text, ":");
	const char *p = text[n] ? text + n + 1 : "";

	memset(k, 0, sizeof(*k));
	memcpy(k->name, text, n);
	k->group_size[0] = group_size;
	for (; *p; p++)
		k->scalar_bytes[k->arg_count++] = *p == 'm'   ? 0
						  : *p == 'l' ? LOCAL
							      : (uint32_t)(*p - '0');
}

void *make_image(const char *const *kernels, uint32_t count, uint32_t group_size,
		 size_t *size)
{
	uint32_t module = (uint32_t)sizeof(struct lz_stand_in_module) + count * 32, i;
	uint32_t table = count * (uint32_t)sizeof(struct hal_levelzero_kernel);
	uint32_t bytes = (uint32_t)sizeof(struct hal_levelzero_image) + table + module;
	struct hal_levelzero_image *head = calloc(1, bytes);
	struct hal_levelzero_kernel *k = (void *)(head + 1);
	struct lz_stand_in_module *m = (void *)(k + count);

	if (!head)
		abort();
	*head = (struct hal_levelzero_image){HAL_LEVELZERO_MAGIC,
					     HAL_LEVELZERO_VERSION,
					     bytes,
					     1,
					     count,
					     sizeof(*k),
					     module,
					     0};
	*m = (struct lz_stand_in_module){LZ_STAND_IN_MAGIC, module, count, 0};
	for (i = 0; i < count; i++) {
		describe(kernels[i], group_size, &k[i]);
		memcpy((char *)(m + 1) + i * 32, k[i].name, 32);
	}
	*size = bytes;
	return head;
}

/* ---- SPIR-V ------------------------------------------------------------------------ */

struct words {
	uint32_t at[512];
	uint32_t count;
};

static void put(struct words *w, uint32_t op, uint32_t count, const uint32_t *operands)
{
	w->at[w->count++] = (count + 1) << 16 | op;
	if (count)
		memcpy(&w->at[w->count], operands, count * sizeof(*operands));
	w->count += count;
}

#define PUT(w, op, ...)                                                                  \
	put(w, op, sizeof((uint32_t[]){__VA_ARGS__}) / 4, (uint32_t[]){__VA_ARGS__})

/* Ids: 1 to 4 are integers of 8, 16, 32, 64 bits, 5 a pointer to memory, 6 one to a work
 * group's own, 7 void; a kernel has 16 from FIRST(its number) on: itself, its parameters,
 * then its type and its label. */
#define FIRST(kernel) (16 * ((kernel) + 1))
enum { TYPE_ID = 14, LABEL_ID = 15 };

static uint32_t type_of(uint32_t bytes)
{
	return bytes == LOCAL ? 6
	       : bytes == 0   ? 5
	       : bytes == 1   ? 1
	       : bytes == 2   ? 2
	       : bytes == 4   ? 3
			      : 4;
}

static void put_head(struct words *w, const struct hal_levelzero_kernel *k,
		     uint32_t count)
{
	static const uint32_t capabilities[] = {4, 6, 11,
						22}; /* Addresses, Kernel, ... */
	const uint32_t head[] = {0x07230203, 0x00010200, 0, FIRST(count), 0};
	uint32_t i;

	memcpy(w->at, head, sizeof(head));
	w->count = sizeof(head) / 4;
	for (i = 0; i < sizeof(capabilities) / 4; i++)
		PUT(w, 17, capabilities[i]); /* OpCapability */
	PUT(w, 14, 2, 2);                    /* OpMemoryModel Physical64 OpenCL */
	for (i = 0; i < count; i++) {
		uint32_t entry[2 + 8] = {6, FIRST(i)};

		memcpy(&entry[2], k[i].name, sizeof(k[i].name));
		put(w, 15, 2 + (uint32_t)strlen(k[i].name) / 4 + 1, entry);
	}
	for (i = 0; i < count; i++)
		if (k[i].group_size[0])
			PUT(w, 16, FIRST(i), 17, k[i].group_size[0], 1, 1);
}

/* A type is said once: the number of the first kernel with these parameters. */
static uint32_t same_type(const struct hal_levelzero_kernel *k, uint32_t i)
{
	uint32_t first = 0;

	while (k[first].arg_count != k[i].arg_count ||
	       memcmp(k[first].scalar_bytes, k[i].scalar_bytes,
		      sizeof(k[i].scalar_bytes)) != 0)
		first++;
	return first;
}

static void put_types(struct words *w, const struct hal_levelzero_kernel *k,
		      uint32_t count)
{
	uint32_t i, a;

	PUT(w, 21, 1, 8, 0);
	PUT(w, 21, 2, 16, 0);
	PUT(w, 21, 3, 32, 0);
	PUT(w, 21, 4, 64, 0);
	PUT(w, 32, 5, 5, 1);
	PUT(w, 32, 6, 4, 1);
	PUT(w, 19, 7);
	for (i = 0; i < count; i++) {
		uint32_t type[2 + HAL_ARGS_MAX] = {FIRST(i) + TYPE_ID, 7};

		if (same_type(k, i) != i)
			continue;
		for (a = 0; a < k[i].arg_count; a++)
			type[2 + a] = type_of(k[i].scalar_bytes[a]);
		put(w, 33, 2 + k[i].arg_count, type);
	}
}

void *make_spirv(const char *const *kernels, uint32_t count, uint32_t group_size,
		 size_t *size)
{
	struct words *w = calloc(1, sizeof(*w));
	struct hal_levelzero_kernel *k = calloc(count, sizeof(*k));
	uint32_t i, a;
	void *out;

	if (!w || !k)
		abort();
	for (i = 0; i < count; i++)
		describe(kernels[i], group_size, &k[i]);
	put_head(w, k, count);
	put_types(w, k, count);
	for (i = 0; i < count; i++) {
		PUT(w, 54, 7, FIRST(i), 0, FIRST(same_type(k, i)) + TYPE_ID);
		for (a = 0; a < k[i].arg_count; a++)
			PUT(w, 55, type_of(k[i].scalar_bytes[a]), FIRST(i) + 1 + a);
		PUT(w, 248, FIRST(i) + LABEL_ID);
		put(w, 253, 0, NULL);
		put(w, 56, 0, NULL);
	}
	*size = w->count * 4;
	out = malloc(*size);
	if (!out)
		abort();
	memcpy(out, w->at, *size);
	free(w);
	free(k);
	return out;
}
