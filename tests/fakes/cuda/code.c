/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HAL_STAND_IN_CUDA_RUN=ptx: kernels do what their PTX says, block by block in the
 * interpreter of tests/ptx, with the parameters of their launch and the memory that the
 * device has.  How long a block takes is the C function's of that name, where there is
 * one.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/interp.h"

#define PARAM_BYTES (PARAMS_MAX * sizeof(uint64_t))

/* A function whose specification is its own. */
struct coded {
	struct function function;
	struct kernel_spec spec;
	char name[64];
};

/* What tells where it runs is not for an interpreter. */
bool code_runs(const char *ptx)
{
	const char *what = setting("RUN");

	return what && strcmp(what, "ptx") == 0 && !strstr(ptx, ".entry hal_");
}

bool code_read(struct module *m, const char *ptx, char *log, size_t bytes)
{
	struct ptx *code;
	char why[PTX_WHY];

	if (ptx_parse(ptx, strlen(ptx), &code, why)) {
		snprintf(log, bytes, "%s", why);
		return false;
	}
	m->code = code;
	return true;
}

void code_end(struct module *m)
{
	ptx_free(m->code);
	m->code = NULL;
}

static uint64_t short_ns(const struct call *c)
{
	(void)c;
	return 2000;
}

static uint32_t lay_out(const struct call *c, uint8_t *params)
{
	uint32_t i, at = 0;

	for (i = 0; i < c->arg_count; i++) {
		const uint32_t n = c->arg_bytes[i];

		at = (at + n - 1) / n * n;
		memcpy(params + at, &c->args[i], n);
		at += n;
	}
	return at;
}

static uint32_t find_regions(struct interp_region **out)
{
	const struct allocation *a;
	const struct mapping *m;
	uint32_t n = 0;

	for (a = world.allocations; a; a = a->next)
		for (n++, m = a->mappings; m; m = m->next)
			n++;
	*out = calloc(n + 1, sizeof(**out));
	n = 0;
	for (a = world.allocations; *out && a; a = a->next) {
		if (!a->reserved && !a->freed)
			(*out)[n++] =
				(struct interp_region){a->address, a->backing, a->bytes};
		for (m = a->mappings; m; m = m->next)
			if (m->access)
				(*out)[n++] = (struct interp_region){
					m->address,
					(char *)a->backing + (m->address - a->address),
					m->bytes};
	}
	return n;
}

/* False: an illegal address. */
static bool run_block(const struct call *c, uint32_t index)
{
	struct interp_region *regions = NULL;
	const uint32_t count = find_regions(&regions);
	uint8_t params[PARAM_BYTES];
	char why[PTX_WHY] = "its module is gone";
	struct interp_launch l = {.kernel = c->number,
				  .shared_bytes = c->shared,
				  .params = params,
				  .param_bytes = lay_out(c, params),
				  .region_count = count,
				  .regions = regions,
				  .only = index + UINT64_C(1)};
	int err = -EINVAL;

	memcpy(l.grid, c->grid, sizeof(l.grid));
	memcpy(l.block, c->block, sizeof(l.block));
	if (c->module->code && regions)
		err = interp_run(c->module->code, &l, why);
	free(regions);
	if (err && !strstr(why, "an address that nobody has"))
		misuse("%s: %s", c->spec->name, why);
	return !err;
}

static bool find_kernel(const struct ptx *code, const char *name, uint32_t *number)
{
	uint32_t i, n;

	for (i = 0; i < ptx_kernels(code); i++)
		if (strncmp(ptx_kernel_name(code, i, &n), name, strlen(name)) == 0 &&
		    n == strlen(name)) {
			*number = i;
			return true;
		}
	return false;
}

struct function *code_function(struct module *m, const char *name)
{
	const struct kernel_spec *c = kernel_find(name);
	struct coded *f = make(OBJECT_FUNCTION, sizeof(*f));

	if (!f)
		return NULL;
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->spec = (struct kernel_spec){
		.name = f->name, .block = run_block, .ns = c ? c->ns : short_ns};
	f->function.shape.spec = &f->spec;
	f->function.shape.module = m;
	return find_kernel(m->code, name, &f->function.shape.number) ? &f->function
								     : NULL;
}
