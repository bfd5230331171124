/* SPDX-License-Identifier: Apache-2.0 */
/* Modules of the stand-in: what it makes of PTX. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the options say that the log goes: cut at its size, which is set to what it is.
 */
static void write_log(uint32_t count, const uint32_t *options, void **values,
		      const char *text)
{
	char *log = NULL;
	void **size = NULL;
	uint32_t i;
	int n;

	for (i = 0; i < count; i++) {
		if (options[i] == CU_JIT_ERROR_LOG)
			log = values[i];
		else if (options[i] == CU_JIT_ERROR_LOG_BYTES)
			size = &values[i];
	}
	if (!log || !size)
		return;
	n = snprintf(log, (uintptr_t)*size, "%s", text);
	if ((uintptr_t)n < (uintptr_t)*size)
		*size = (void *)(uintptr_t)(n + 1);
}

static bool add_parameter(struct call *shape, const char *type)
{
	const uint32_t bits = (uint32_t)strtoul(type + 1, NULL, 10);

	if (shape->arg_count == PARAMS_MAX || bits % 8 || !bits || bits > 64)
		return false;
	shape->arg_bytes[shape->arg_count++] = bits / 8;
	return true;
}

/* Of parameters with "[bytes]"; a number has 8 at most, and counts as that. */
static size_t parameter_space(const char *p, const char *end)
{
	size_t bytes = 0;

	while ((p = strstr(p, ".param ")) && p < end) {
		const size_t n = strcspn(p, ",)["); /* end is a ) */

		bytes += p[n] == '[' ? strtoul(p + n + 1, NULL, 10) : 8;
		p += n;
	}
	return bytes;
}

/* Of the variables ".local .align 8 .b8 name[bytes];" in the body behind at. */
static uint32_t local_space(const char *at)
{
	const char *end = strstr(at, ".entry ");
	uint32_t bytes = 0;

	while ((at = strstr(at, ".local .align ")) && (!end || at < end)) {
		at += strcspn(at, "[;");
		bytes += *at == '[' ? (uint32_t)strtoul(at + 1, NULL, 10) : 8;
	}
	return bytes;
}

/* "name(.param .u64 a, .param .u32 b)" */
static const char *parse_entry(const char *at, struct module *m, size_t most, char *log,
			       size_t bytes)
{
	const char *end = strchr(at, ')'), *p = strchr(at, '(');
	struct function *f;
	char name[64];
	int n = 0;

	if (sscanf(at, "%63[A-Za-z0-9_$]%n", name, &n) != 1 || !end || !p || p > end) {
		snprintf(log, bytes, "ptxas: an entry without name or parameters");
		return NULL;
	}
	if (parameter_space(p, end) > most) {
		snprintf(log, bytes,
			 "ptxas error   : Formal parameter space overflowed (%zu bytes "
			 "required, max %zu bytes allowed) in function %s",
			 parameter_space(p, end), most, name);
		return NULL;
	}
	if (!m->code && !kernel_find(name)) {
		snprintf(log, bytes, "the stand-in has no kernel %s", name);
		return NULL;
	}
	f = m->code ? code_function(m, name) : make(OBJECT_FUNCTION, sizeof(*f));
	if (!f)
		return NULL;
	f->module = m;
	f->next = m->functions;
	m->functions = f;
	if (!m->code)
		f->shape.spec = kernel_find(name);
	while ((p = strstr(p, ".param ")) && p < end) {
		p = strchr(p + 1, '.');
		if (!p || !add_parameter(&f->shape, p + 1)) {
			snprintf(log, bytes, "ptxas: %s: bad parameter", name);
			return NULL;
		}
	}
	p = strstr(at, "_hals_control");
	f->shape.stops = p && p < end ? STOPS_BY_LAUNCH : STOPS_NOT;
	p = strstr(end, ".reqnctapercluster ");
	if (p && p < strchr(end, '{'))
		(void)sscanf(p, ".reqnctapercluster %d, %d, %d", &f->cluster[0],
			     &f->cluster[1], &f->cluster[2]);
	p = strstr(end, ".maxnreg ");
	if (p && p < strchr(end, '{'))
		f->registers = (uint32_t)strtoul(p + strlen(".maxnreg "), NULL, 10);
	f->local_bytes = local_space(end);
	return end;
}

static uint32_t compile(const char *ptx, struct module *m, char *log, size_t bytes)
{
	const struct device *d = current_device();
	const char *at = strstr(ptx, ".version "), *target = strstr(ptx, ".target sm_");
	int major = 0, minor = 0;
	long arch;

	if (!at || !target || sscanf(at, ".version %d.%d", &major, &minor) != 2) {
		snprintf(log, bytes, "ptxas fatal: Missing .version or .target");
		return CUR_INVALID_PTX;
	}
	/* PTX 7.0 came with CUDA 11.0, 8.0 with 12.0. */
	if ((major + 4) * 1000 + minor * 10 > version())
		return CUR_UNSUPPORTED_PTX_VERSION;
	arch = strtol(target + strlen(".target sm_"), NULL, 10);
	if (arch > (long)(d->major * 10 + d->minor))
		return CUR_NO_BINARY_FOR_GPU;
	if (code_runs(ptx) && !code_read(m, ptx, log, bytes))
		return CUR_INVALID_PTX;
	for (at = ptx; (at = strstr(at, ".entry "));) {
		at = parse_entry(at + strlen(".entry "), m,
				 major * 10 + minor < 81 ? 4352 : 32764, log, bytes);
		if (!at)
			return CUR_INVALID_PTX;
	}
	return CUR_SUCCESS;
}

uint32_t do_cuModuleLoadDataEx(void **module, const void *image, uint32_t count,
			       uint32_t *options, void **values)
{
	const char *ptx = image;
	char log[512] = "";
	struct module *m;
	uint32_t r;

	*module = (void *)(uintptr_t)0x6a756e6b;
	blocks("cuModuleLoadDataEx");
	/* It has no cubins: whatever is one is for another architecture. */
	if (strncmp(ptx, "\177ELF", 4) == 0 || strncmp(ptx, "\x50\xed\x55\xba", 4) == 0)
		return CUR_NO_BINARY_FOR_GPU;
	if (*ptx != '.' && *ptx != '/' && *ptx != '\n')
		return CUR_INVALID_IMAGE;
	m = make(OBJECT_MODULE, sizeof(*m));
	if (!m)
		return CUR_OUT_OF_MEMORY;
	r = compile(ptx, m, log, sizeof(log));
	write_log(count, options, values, log);
	if (r)
		end_module(m);
	else
		*module = m;
	return r;
}

uint32_t do_cuModuleUnload(void *module)
{
	return unload_module(module, "cuModuleUnload");
}

uint32_t do_cuModuleGetFunction(void **function, void *module, const char *name)
{
	struct module *m = get(module, OBJECT_MODULE);
	struct function *f;

	*function = (void *)(uintptr_t)0x6a756e6b;
	if (!m)
		return CUR_INVALID_HANDLE;
	f = function_of(m, name);
	if (!f)
		return CUR_NOT_FOUND;
	*function = f;
	return CUR_SUCCESS;
}

uint32_t do_cuFuncLoad(void *function)
{
	struct function *f = get(function, OBJECT_FUNCTION);

	if (!f)
		return CUR_INVALID_HANDLE;
	blocks("cuFuncLoad");
	f->loaded = true;
	return CUR_SUCCESS;
}

uint32_t do_cuFuncGetAttribute(int *value, uint32_t attribute, void *function)
{
	const struct function *f = get(function, OBJECT_FUNCTION);

	if (!f)
		return CUR_INVALID_HANDLE;
	if (attribute == CUF_MAX_THREADS_PER_BLOCK)
		*value = 1024;
	else if (attribute == CUF_SHARED_BYTES)
		*value = 0;
	else if (attribute == CUF_LOCAL_BYTES)
		*value = (int)f->local_bytes;
	else if (attribute >= CUF_CLUSTER_X && attribute < CUF_CLUSTER_X + 3)
		*value = f->cluster[attribute - CUF_CLUSTER_X];
	else
		return CUR_INVALID_VALUE;
	return CUR_SUCCESS;
}

uint32_t do_cuFuncSetAttribute(void *function, uint32_t attribute, int value)
{
	struct function *f = get(function, OBJECT_FUNCTION);

	if (!f)
		return CUR_INVALID_HANDLE;
	if (attribute != CUF_MAX_DYNAMIC_SHARED || value < 0 || value > SHARED_MOST)
		return CUR_INVALID_VALUE;
	f->dynamic_shared = value;
	return CUR_SUCCESS;
}

/* A multiprocessor runs one block at a time. */
uint32_t do_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function,
							int threads, size_t shared)
{
	const struct function *f = get(function, OBJECT_FUNCTION);

	*blocks = 0x6a756e6b;
	if (!f)
		return CUR_INVALID_HANDLE;
	if (threads <= 0 || threads > 1024)
		return CUR_INVALID_VALUE;
	*blocks = shared <= SHARED_MOST;
	return CUR_SUCCESS;
}

uint32_t do_cuFuncGetParamInfo(void *function, size_t index, size_t *offset,
			       size_t *bytes)
{
	const struct function *f = get(function, OBJECT_FUNCTION);
	size_t i, at = 0;

	if (!f)
		return CUR_INVALID_HANDLE;
	if (index >= f->shape.arg_count)
		return CUR_INVALID_VALUE;
	for (i = 0; i <= index; i++) {
		const size_t n = f->shape.arg_bytes[i];

		at = (at + n - 1) / n * n;
		*offset = at;
		*bytes = n;
		at += n;
	}
	return CUR_SUCCESS;
}
