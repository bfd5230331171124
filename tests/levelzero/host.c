/* SPDX-License-Identifier: Apache-2.0 */
/* A core of a few lines; images for the stand-in driver. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/levelzero.h>

char host_text[512];

__attribute__((format(printf, 2, 3))) static int host_fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(host_text, sizeof(host_text), fmt, ap);
	va_end(ap);
	return -err;
}

static int64_t option_int(const struct hal_bk_config *cfg, const char *key)
{
	const struct {
		const char *key;
		int64_t value;
	} all[] = {
		{"clock", cfg->clock},
		{"units", cfg->units},
		{"lists", cfg->lists},
		{"inflight", cfg->inflight ? cfg->inflight : 2},
		{"memory", cfg->memory},
		{"timeout_ms", cfg->timeout_ms},
		{"scheduler", cfg->scheduler},
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i].key, key) == 0)
			return all[i].value;
	return 0;
}

static const char *option_str(const struct hal_bk_config *cfg, const char *key)
{
	if (strcmp(key, "loader") == 0 && cfg->loader)
		return cfg->loader;
	return "libze_loader.so.1";
}

const struct hal_host host = {
	.size = sizeof(host),
	.abi = HAL_BACKEND_ABI,
	.fail = host_fail,
	.option_int = option_int,
	.option_str = option_str,
};

const struct lz_stand_in *stand_in(void)
{
	static const struct lz_stand_in *found;
	const char *list = getenv("ZE_ENABLE_ALT_DRIVERS");
	char path[512];
	void *handle;

	if (found || !list)
		return found;
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(list, ","), list);
	handle = dlopen(path, RTLD_NOW);
	if (handle)
		found = dlsym(handle, LZ_STAND_IN_SYMBOL);
	return found;
}

bool build_logs(void)
{
	const char *intercept = getenv("ZE_ENABLE_LOADER_INTERCEPT");
	const char *list = getenv("ZE_ENABLE_ALT_DRIVERS");

	return !(intercept && strcmp(intercept, "1") == 0) &&
	       !(list && strchr(list, ','));
}

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
 * group's own; a kernel has 16 from
 * 16 * (its number + 1) on. */
static uint32_t type_of(uint32_t bytes)
{
	return bytes == LOCAL ? 6
	       : bytes == 0   ? 5
	       : bytes == 1   ? 1
	       : bytes == 2   ? 2
	       : bytes == 4   ? 3
			      : 4;
}

void *make_spirv(const char *const *kernels, uint32_t count, uint32_t group_size,
		 size_t *size)
{
	struct words *w = calloc(1, sizeof(*w));
	struct hal_levelzero_kernel k;
	uint32_t i, a;
	void *out;

	if (!w)
		abort();
	memcpy(w->at, (uint32_t[]){0x07230203, 0x00010200, 0, 16 * (count + 1), 0}, 20);
	w->count = 5;
	PUT(w, 17, 6);    /* OpCapability Kernel */
	PUT(w, 14, 2, 2); /* OpMemoryModel Physical64 OpenCL */
	for (i = 0; i < count; i++) {
		uint32_t entry[2 + 8] = {6, 16 * (i + 1)};

		describe(kernels[i], group_size, &k);
		memcpy(&entry[2], k.name, 32);
		put(w, 15, 2 + (uint32_t)strlen(k.name) / 4 + 1, entry);
	}
	for (i = 0; i < count; i++)
		PUT(w, 16, 16 * (i + 1), 17, group_size, 1, 1);
	PUT(w, 21, 1, 8, 0);
	PUT(w, 21, 2, 16, 0);
	PUT(w, 21, 3, 32, 0);
	PUT(w, 21, 4, 64, 0);
	PUT(w, 32, 5, 5, 1);
	PUT(w, 32, 6, 4, 1);
	for (i = 0; i < count; i++) {
		describe(kernels[i], group_size, &k);
		PUT(w, 54, 6, 16 * (i + 1), 0, 7);
		for (a = 0; a < k.arg_count; a++)
			PUT(w, 55, type_of(k.scalar_bytes[a]), 16 * (i + 1) + 1 + a);
		put(w, 56, 0, NULL);
	}
	*size = w->count * 4;
	out = malloc(*size);
	if (!out)
		abort();
	memcpy(out, w->at, *size);
	free(w);
	return out;
}
