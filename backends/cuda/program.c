/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of a CUDA device: a module and its kernels.  All that may compile, place code
 * or wait for the device happens at load: a kernel whose code is loaded at its first
 * launch would stop every other call of the driver until the device is idle.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_BYTES 400u

/* code: what the driver is to compile. */
static int load_module(struct cu_device *dev, struct cu_program *prog, const void *code)
{
	char text[LOG_BYTES + 1] = "";
	uint32_t options[2] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
	const uintptr_t bytes = LOG_BYTES; /* numbers are given as pointers */
	void *values[2] = {text, NULL};
	uint32_t r;
	char *p;
	int err;

	memcpy(&values[1], &bytes, sizeof(bytes));
	r = cu.cuModuleLoadDataEx(&prog->module, code, 2, options, values);
	if (!r)
		return 0;
	prog->module = NULL;
	text[LOG_BYTES] = 0;
	for (p = text; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
	err = cu_failed(dev, r, "cuModuleLoadDataEx");
	if (cu_sticky(r) || !text[0])
		return err;
	return cu_host->fail(-err, "cuda: cuModuleLoadDataEx: %s (%u): %s",
			     cu_result_name(r), r, text);
}

/* Return the bytes of parameter i, which a pass has added, or is memory. */
static uint32_t bytes_of(const struct cu_kernel *k, uint32_t i, uint32_t ranges,
			 uint32_t colors)
{
	const uint32_t first = k->info.arg_count + ranges;

	if (i < first + colors)
		return i < first + PTX_COLORS_LONG ? 8 : 4;
	return i < first + colors + PTX_LAUNCH_LONG ? 8 : 4;
}

/* The driver reads as many bytes of a parameter as the kernel has: the table must say
 * the same. */
static int check_parameters(struct cu_device *dev, const struct cu_kernel *k)
{
	size_t offset, bytes;
	const uint32_t ranges = dev->opt.bounds ? PTX_RANGE_PARAMS : 0;
	const uint32_t colors = k->colored ? PTX_COLORS_PARAMS : 0;
	const uint32_t more = ranges + colors + (k->stops ? PTX_LAUNCH_PARAMS : 0);
	const uint32_t count = k->info.arg_count + more;
	uint32_t i, r, want;

	for (i = 0; i < count; i++) {
		r = cu.cuFuncGetParamInfo(k->function, i, &offset, &bytes);
		if (r == CUR_INVALID_VALUE)
			return cu_host->fail(
				EINVAL,
				"cuda: cuFuncGetParamInfo: %s (%u): kernel %s has %u "
				"parameters, but the image declares %u",
				cu_result_name(r), r, k->info.name,
				i < more ? 0 : i - more, k->info.arg_count);
		if (r)
			return cu_failed(dev, r, "cuFuncGetParamInfo");
		want = i < k->info.arg_count && k->params.scalar_bytes[i]
			       ? k->params.scalar_bytes[i]
			       : bytes_of(k, i, ranges, colors);
		if (bytes != want)
			return cu_host->fail(EINVAL,
					     "cuda: kernel %s: parameter %u has %zu "
					     "bytes, but the image declares %u",
					     k->info.name, i, bytes, want);
	}
	r = cu.cuFuncGetParamInfo(k->function, i, &offset, &bytes);
	if (r == CUR_INVALID_VALUE)
		return 0;
	if (r)
		return cu_failed(dev, r, "cuFuncGetParamInfo");
	return cu_host->fail(
		EINVAL,
		"cuda: kernel %s has more parameters than the %u that the image declares",
		k->info.name, k->info.arg_count);
}

static int check_block(struct cu_device *dev, struct cu_kernel *k)
{
	const uint64_t threads = (uint64_t)k->block[0] * k->block[1] * k->block[2];
	int most = 0, err, i;

	err = CU(dev, cuFuncGetAttribute, &most, CUF_MAX_THREADS_PER_BLOCK, k->function);
	if (err)
		return err;
	for (i = 0; i < 3; i++)
		if (k->block[i] > (uint32_t)dev->shape.max_block[i])
			most = 0;
	if (threads > (uint64_t)most)
		return cu_host->fail(EINVAL,
				     "cuda: kernel %s: a block of %u x %u x %u threads "
				     "is too large for this kernel on this device",
				     k->info.name, k->block[0], k->block[1], k->block[2]);
	memcpy(k->info.group_size, k->block, sizeof(k->block));
	k->info.group_size_max = (uint32_t)most;
	return 0;
}

/* Blocks of a cluster need multiprocessors that lie together: under a mask they could
 * wait for some for ever. */
static int check_cluster(struct cu_device *dev, const struct cu_kernel *k)
{
	int blocks = 0, err;

	if (!dev->mask || dev->shape.major < 9)
		return 0;
	err = CU(dev, cuFuncGetAttribute, &blocks, CUF_CLUSTER_X, k->function);
	if (err || !blocks)
		return err;
	return cu_host->fail(ENOTSUP,
			     "cuda: kernel %s: launches of clusters can hang when "
			     "partitions are masks; use partitions=green",
			     k->info.name);
}

int cu_raise_shared(struct cu_device *dev, struct cu_kernel *k, uint32_t bytes)
{
	int err;

	if (bytes <= k->shared_raised)
		return 0;
	err = CU(dev, cuFuncSetAttribute, k->function, CUF_MAX_DYNAMIC_SHARED,
		 (int)bytes);
	if (!err)
		k->shared_raised = bytes;
	return err;
}

static int check_shared(struct cu_device *dev, struct cu_kernel *k)
{
	int own = 0, err;

	err = CU(dev, cuFuncGetAttribute, &own, CUF_SHARED_BYTES, k->function);
	if (err)
		return err;
	k->shared_raised =
		own < dev->shape.max_shared ? (uint32_t)(dev->shape.max_shared - own) : 0;
	k->info.shared_max = own < dev->shape.max_shared_optin
				     ? (uint32_t)(dev->shape.max_shared_optin - own)
				     : 0;
	if ((uint64_t)own + k->shared_bytes > (uint64_t)dev->shape.max_shared_optin)
		return cu_host->fail(EINVAL,
				     "cuda: kernel %s: %d bytes of static and %u of "
				     "dynamic shared memory; a block may have at most %d",
				     k->info.name, own, k->shared_bytes,
				     dev->shape.max_shared_optin);
	return cu_raise_shared(dev, k, k->shared_bytes);
}

/* How many blocks of a kernel that can be stopped run on a multiprocessor at a time. */
static int find_resident(struct cu_device *dev, struct cu_kernel *k)
{
	int n = 0, err;

	k->resident = 1;
	if (!k->stops)
		return 0;
	err = CU(dev, cuOccupancyMaxActiveBlocksPerMultiprocessor, &n, k->function,
		 (int)(k->block[0] * k->block[1] * k->block[2]), k->shared_bytes);
	k->resident = n > 0 ? (uint32_t)n : 1;
	return err;
}

/* Of all contexts of the process: what two threads read and raise must not go down. */
static pthread_mutex_t limit_lock = PTHREAD_MUTEX_INITIALIZER;

/* The driver is called under it, so a fork does not wait for it. */
static void in_child(void)
{
	(void)pthread_mutex_init(&limit_lock, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, in_child);
}

static int raise_limit(struct cu_device *dev, const struct cu_kernel *k, size_t local)
{
	size_t limit = 0;
	int err = CU(dev, cuCtxGetLimit, &limit, CU_STACK_BYTES);

	if (err || local <= limit)
		return err;
	err = CU(dev, cuCtxSetLimit, CU_STACK_BYTES, local);
	if (!err || atomic_load(&dev->base.lost))
		return err;
	return cu_host->fail(
		-err,
		"cuda: cuCtxSetLimit: %s (%u): kernel %s has %zu bytes of local memory a "
		"thread, more than the %zu that the context has room for",
		cu_result_name(cu_refused.result), cu_refused.result, k->info.name, local,
		limit);
}

/* Ensure that the context has room for the kernel's local memory, of all threads that the
 * device can run.  Its first launch would make that room otherwise: the driver then waits
 * for all work of the device, on the engine's thread. */
static int raise_local(struct cu_device *dev, const struct cu_kernel *k)
{
	size_t limit = 0;
	int local = 0, err;

	err = CU(dev, cuFuncGetAttribute, &local, CUF_LOCAL_BYTES, k->function);
	if (!err && local > 0)
		err = CU(dev, cuCtxGetLimit, &limit, CU_STACK_BYTES);
	if (err || local <= 0 || (size_t)local <= limit)
		return err; /* without the lock, under which the driver may wait */
	pthread_mutex_lock(&limit_lock);
	err = raise_limit(dev, k, (size_t)local);
	pthread_mutex_unlock(&limit_lock);
	return err;
}

static int find_kernel(struct cu_device *dev, const struct cu_program *prog,
		       struct cu_kernel *k)
{
	uint32_t r = cu.cuModuleGetFunction(&k->function, prog->module, k->info.name), i;
	int err = cu_check(dev, r, "cuModuleGetFunction");

	for (i = 0; i < 3; i++)
		k->params.groups_max[i] = (uint32_t)dev->shape.max_grid[i];
	if (r)
		return cu_sticky(r) ? err
				    : cu_host->fail(-err,
						    "cuda: cuModuleGetFunction: %s (%u): "
						    "kernel %s",
						    cu_result_name(r), r, k->info.name);
	err = CU(dev, cuFuncLoad, k->function);
	if (!err)
		err = check_parameters(dev, k);
	if (!err)
		err = check_block(dev, k);
	if (!err)
		err = check_cluster(dev, k);
	if (!err)
		err = check_shared(dev, k);
	if (!err)
		err = find_resident(dev, k);
	return err ? err : raise_local(dev, k);
}

/* Load code as the program's module and find its kernels.  On failure cu_refused names
 * the driver's call that failed; its result is CUR_SUCCESS if a check here failed. */
static int load(struct cu_device *dev, struct cu_program *prog, const void *code)
{
	uint32_t i;
	int err;

	cu_refused = (struct cu_refused){NULL, CUR_SUCCESS};
	err = load_module(dev, prog, code);
	for (i = 0; !err && i < prog->count; i++)
		err = find_kernel(dev, prog, &prog->kernels[i]);
	/* Nothing of it has run: it goes without waiting for any of its own. */
	if (err && prog->module && cu.cuModuleUnload(prog->module))
		(void)cu.cuModuleUnload(prog->module);
	return err;
}

/* Return true if a load that ended with this result of the driver failed because of what
 * the code is.  Any other result says that memory or the driver was not available, and
 * the same code may load at another time. */
static bool is_about_code(uint32_t result)
{
	switch (result) {
	case CUR_SUCCESS: /* a check of this file: a block of fewer threads, say */
	case CUR_INVALID_IMAGE:
	case CUR_NO_BINARY_FOR_GPU:
	case CUR_INVALID_PTX:
	case CUR_JIT_COMPILER_NOT_FOUND:
	case CUR_UNSUPPORTED_PTX_VERSION:
	case CUR_JIT_COMPILATION_DISABLED:
	case CUR_INVALID_SOURCE:
	case CUR_NOT_FOUND:
		return true;
	default:
		return false;
	}
}

/* Record for each rewritten kernel that it cannot be stopped, and why. */
static void give_up_stops(struct cu_program *prog, uint32_t result)
{
	uint32_t i;

	for (i = 0; i < prog->count; i++) {
		struct cu_kernel *k = &prog->kernels[i];

		if (k->stops && result)
			snprintf(k->why, PTX_WHY,
				 "the driver rejects the rewritten kernel: %s (%u)",
				 cu_result_name(result), result);
		else if (k->stops)
			snprintf(k->why, PTX_WHY,
				 "the rewritten kernel does not fit the device or the "
				 "image");
		k->stops = false;
	}
}

/* Load the rewritten text, if there is one.  If the driver rejects it, load the code as
 * it is: kept to its partition's memory all the same, if it is to be.  If the load fails
 * for another reason, fail: a program must not lose preemption because memory was short.
 */
static int load_either(struct cu_device *dev, struct cu_program *prog, const char *text,
		       const void *as_it_is)
{
	int err;

	if (!text)
		return load(dev, prog, as_it_is);
	err = load(dev, prog, text);
	if (!err || !is_about_code(cu_refused.result))
		return err;
	give_up_stops(prog, cu_refused.result);
	return load(dev, prog, as_it_is);
}

/* *fenced, *text: what is made of it, NULL: nothing. */
static int rewrite(const struct cu_device *dev, struct cu_program *prog, char **fenced,
		   char **text)
{
	size_t bytes = prog->code_bytes;
	int err = dev->opt.bounds ? cu_fence_rewrite(prog, fenced, &bytes) : 0;

	if (err || !dev->opt.block)
		return err;
	return cu_program_rewrite(prog, *fenced ? *fenced : (const char *)prog->code,
				  bytes, dev->opt.restart ? PTX_RESTART : PTX_ENTRY,
				  text);
}

static int make(struct cu_device *dev, struct cu_program *prog)
{
	char *fenced = NULL, *text = NULL;
	uint32_t mode;
	int err = rewrite(dev, prog, &fenced, &text);

	if (!err)
		err = cu_push(dev, &mode);
	if (!err) {
		err = load_either(dev, prog, text,
				  fenced ? (const void *)fenced : prog->code);
		cu_pop(mode);
		cu_catch_up(dev);
	}
	free(fenced);
	free(text);
	return err;
}

/* ---- for memory on some channels ----------------------------------------------------- */

/* Have the kernels of v, whose PTX that is, reach such memory; *text: NULL: none does. */
static int color_text(struct cu_device *dev, struct cu_program *v, const char *code,
		      size_t size, uint32_t own, char **text, size_t *bytes)
{
	char why[PTX_WHY] = "the program is not PTX";
	struct ptx_colors ignored;
	struct ptx_color color;
	struct ptx *m = NULL;
	bool *which, any = false;
	uint32_t i;
	int err = -EINVAL;

	if (v->format == HAL_CUDA_PTX)
		err = ptx_parse(code, size, &m, why);
	for (i = 0; i < v->count; i++)
		snprintf(v->kernels[i].why_not, PTX_WHY, "%s",
			 err ? why : "the PTX has no such kernel");
	if (err)
		return err == -ENOMEM ? cu_host->fail(ENOMEM, "cuda: %s", why) : 0;
	which = calloc(ptx_kernels(m) + 1u, sizeof(*which));
	if (!which) {
		ptx_free(m);
		return cu_host->fail(ENOMEM, "cuda: no memory for kernels");
	}
	for (i = 0; i < ptx_kernels(m); i++) {
		struct cu_kernel *k = cu_program_kernel(v, m, i);

		if (k)
			which[i] = k->colored = !ptx_check(m, i, PTX_COLOR, k->why_not);
		any |= which[i];
	}
	if (any)
		err = cu_colors_make(dev, 0, 1u << own, &color, &ignored, why);
	if (!err && any)
		err = ptx_rewrite_color(m, &color, which, text, bytes, why);
	if (err)
		err = cu_host->fail(-err, "cuda: cannot rewrite the PTX: %s", why);
	free(which);
	ptx_free(m);
	return err;
}

/* A launch is staged by the kernel as it is, so both can be stopped or neither. */
static void match_stops(const struct cu_program *prog, struct cu_program *v)
{
	uint32_t i;

	for (i = 0; i < v->count; i++)
		if (v->kernels[i].colored &&
		    v->kernels[i].stops != prog->kernels[i].stops) {
			v->kernels[i].colored = false;
			snprintf(v->kernels[i].why_not, PTX_WHY,
				 "rewritten like that it cannot be stopped");
		}
}

/* Make v of prog, as yet without code. */
static struct cu_program *copy_program(const struct cu_program *prog)
{
	struct cu_program *v = calloc(1, sizeof(*v));
	uint32_t i;

	if (v)
		v->kernels = calloc(prog->count + 1u, sizeof(*v->kernels));
	if (!v || !v->kernels) {
		free(v);
		return NULL;
	}
	v->format = prog->format;
	v->count = prog->count;
	for (i = 0; i < prog->count; i++) {
		const struct cu_kernel *from = &prog->kernels[i];
		struct cu_kernel *k = &v->kernels[i];

		k->info = from->info;
		k->params = from->params;
		k->shared_bytes = from->shared_bytes;
		memcpy(k->block, from->block, sizeof(k->block));
	}
	return v;
}

int cu_program_color(struct cu_device *dev, const struct cu_program *prog, uint32_t own,
		     struct cu_program **out)
{
	struct cu_program *v = copy_program(prog);
	char *text = NULL, *stopping = NULL;
	size_t bytes = 0;
	int err;

	if (!v)
		return cu_host->fail(ENOMEM, "cuda: no memory for a program");
	err = color_text(dev, v, (const char *)prog->code, prog->code_bytes, own, &text,
			 &bytes);
	if (!err && text && dev->opt.block && prog->module)
		err = cu_program_rewrite(v, text, bytes,
					 dev->opt.restart ? PTX_RESTART : PTX_ENTRY,
					 &stopping);
	if (!err && text)
		err = load_either(dev, v, stopping, text);
	free(text);
	free(stopping);
	if (err) {
		free(v->kernels);
		free(v);
		return err;
	}
	match_stops(prog, v);
	*out = v;
	return 0;
}

void cu_program_drop_color(struct cu_device *dev, struct cu_program *prog, int *err)
{
	if (!prog)
		return;
	cu_give_back(dev, CU_KIND_MODULE, prog->module, err);
	free(prog->kernels);
	free(prog);
}

static void drop_colors(struct cu_device *dev, struct cu_program *prog, int *err)
{
	uint32_t own;

	for (own = 0; own < PTX_COLOR_MASKS; own++)
		cu_program_drop_color(dev, prog->colored[own], err);
}

/* Load the variants for each number of channels that a partition can own. */
static int make_colors(struct cu_device *dev, struct cu_program *prog)
{
	uint32_t mode, own;
	int err = dev->colors ? cu_push(dev, &mode) : 0, unseen = 0;

	if (err || !dev->colors)
		return err;
	for (own = 0; !err && own < cu_colors_owns(dev); own++)
		err = cu_program_color(dev, prog, own, &prog->colored[own]);
	if (err) {
		drop_colors(dev, prog, &unseen);
		cu_give_back(dev, CU_KIND_MODULE, prog->module, &unseen);
	}
	cu_pop(mode);
	return err;
}

int cu_program_load(void *device, const void *image, size_t size, void **out)
{
	struct cu_program *prog = calloc(1, sizeof(*prog));
	struct cu_device *dev = device;
	int err;

	if (!prog)
		return cu_host->fail(ENOMEM, "cuda: no memory for a program");
	err = cu_image_parse(image, size, prog);
	if (!err)
		err = make(dev, prog);
	if (!err)
		err = make_colors(dev, prog);
	if (err) {
		free(prog->kernels);
		free(prog);
		return err;
	}
	pthread_mutex_lock(&dev->programs_lock);
	prog->older = dev->programs;
	dev->programs = prog;
	pthread_mutex_unlock(&dev->programs_lock);
	*out = prog;
	return 0;
}

static void leave(struct cu_device *dev, struct cu_program *prog)
{
	struct cu_program **at = &dev->programs;

	pthread_mutex_lock(&dev->programs_lock);
	while (*at != prog)
		at = &(*at)->older;
	*at = prog->older;
	pthread_mutex_unlock(&dev->programs_lock);
}

int cu_program_unload(void *device, void *program)
{
	struct cu_device *dev = device;
	struct cu_program *prog = program;
	int err = atomic_load(&dev->base.lost) ? 0 : cu_enter(dev);

	leave(dev, prog);
	cu_graphs_forget(dev, prog);
	drop_colors(dev, prog, &err);
	cu_give_back(dev, CU_KIND_MODULE, prog->module, &err);
	free(prog->kernels);
	free(prog);
	return err;
}

int cu_kernel_get(void *device, void *program, uint32_t index,
		  struct hal_bk_kernel_info *info, void **kernel)
{
	struct cu_program *prog = program;

	(void)device;
	if (index >= prog->count)
		return cu_host->fail(
			ENOENT, "cuda: the program has %u kernels, there is no kernel %u",
			prog->count, index);
	*kernel = &prog->kernels[index];
	prog->kernels[index].program = prog;
	*info = prog->kernels[index].info;
	return 0;
}
