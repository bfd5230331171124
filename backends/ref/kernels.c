/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - the table of kernels that images may name: those that the application has
 * registered with the device, and those of shared libraries (option kernels=). */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Return the entry of name, or NULL.  The caller holds .lock. */
const struct hal_ref_kernel *ref_kernels_find(const struct ref_kernels *kernels,
					      const char *name)
{
	for (uint32_t i = 0; i < kernels->count; i++)
		if (strcmp(kernels->table[i].name, name) == 0)
			return &kernels->table[i];
	return NULL;
}

static int check_kernel(const struct hal_ref_kernel *k, uint32_t index)
{
	if (!memchr(k->name, 0, sizeof(k->name)) || !k->name[0])
		return ref_host->fail(
			EINVAL,
			"ref: registered kernel %u has no valid name (1 to 31 "
			"characters)",
			index);
	if (!k->fn)
		return ref_host->fail(EINVAL, "ref: registered kernel '%s': fn is NULL",
				      k->name);
	if (k->arg_count > HAL_ARGS_MAX)
		return ref_host->fail(EINVAL,
				      "ref: registered kernel '%s': arg_count is %u; the "
				      "limit is %u",
				      k->name, k->arg_count, HAL_ARGS_MAX);
	return 0;
}

/* Replace the entry of k's name, or add one; the table has space for it. */
static void put(struct ref_kernels *kernels, const struct hal_ref_kernel *k)
{
	for (uint32_t i = 0; i < kernels->count; i++) {
		if (strcmp(kernels->table[i].name, k->name) != 0)
			continue;
		kernels->table[i] = *k;
		return;
	}
	kernels->table[kernels->count++] = *k;
}

int ref_kernels_add(struct ref_kernels *kernels, const struct hal_ref_kernel *added,
		    uint32_t count)
{
	struct hal_ref_kernel *more;
	int err = 0;

	if (!added && count)
		return ref_host->fail(EINVAL,
				      "ref: %u kernels to register, but kernels is NULL",
				      count);
	for (uint32_t i = 0; i < count && !err; i++)
		err = check_kernel(&added[i], i);
	if (err || !count)
		return err;
	pthread_mutex_lock(&kernels->lock);
	more = reallocarray(kernels->table, (size_t)kernels->count + count,
			    sizeof(*more));
	if (more) {
		kernels->table = more;
		for (uint32_t i = 0; i < count; i++)
			put(kernels, &added[i]);
	} else {
		err = ref_host->fail(ENOMEM, "ref: no memory to register %u kernels",
				     count);
	}
	pthread_mutex_unlock(&kernels->lock);
	return err;
}

/* ---- libraries -------------------------------------------------------------------- */

/* Register the kernels of a library that has been opened. */
static int add_library(struct ref_kernels *kernels, void *library, const char *path)
{
	const struct hal_ref_library *t = dlsym(library, HAL_REF_LIBRARY_SYMBOL);

	if (!t)
		return ref_host->fail(EPROTO, "ref: kernels=: %s has no symbol %s", path,
				      HAL_REF_LIBRARY_SYMBOL);
	if (t->version != HAL_REF_VERSION ||
	    t->kernel_size != sizeof(struct hal_ref_kernel))
		return ref_host->fail(
			EPROTO,
			"ref: kernels=: %s has version %u with kernels of %u bytes; this "
			"library needs version %u with kernels of %zu bytes: build it "
			"anew",
			path, t->version, t->kernel_size, HAL_REF_VERSION,
			sizeof(struct hal_ref_kernel));
	return ref_kernels_add(kernels, t->kernels, t->kernel_count);
}

static int open_library(struct ref_kernels *kernels, const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return ref_host->fail(ENOENT, "ref: kernels=: %s", dlerror());
	kernels->libraries[kernels->library_count++] = library;
	return add_library(kernels, library, path);
}

/* Open the libraries of paths, which must stay valid until ref_kernels_close. */
int ref_kernels_open(struct ref_kernels *kernels, const char *paths)
{
	char *copy = strdup(paths), *rest = copy, *path;
	uint32_t most = 1;
	int err = 0;

	kernels->paths = paths;
	for (const char *p = paths; *p; p++)
		most += *p == ':';
	kernels->libraries = calloc(most, sizeof(kernels->libraries[0]));
	if (!copy || !kernels->libraries) {
		free(copy);
		return ref_host->fail(ENOMEM,
				      "ref: no memory for the libraries of kernels=");
	}
	while (!err && (path = strsep(&rest, ":")) != NULL)
		if (path[0])
			err = open_library(kernels, path);
	free(copy);
	return err;
}

void ref_kernels_close(struct ref_kernels *kernels)
{
	free(kernels->table);
	while (kernels->library_count > 0)
		(void)dlclose(kernels->libraries[--kernels->library_count]);
	free(kernels->libraries);
	pthread_mutex_destroy(&kernels->lock);
}
