/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory on some channels, with a map that the user gives (hal.color_map): the map's
 * low 21 address bits are physical on a stock driver, in pages of 2 MiB.
 *
 * A partition that owns some channels has two ranges of addresses.  Its buffers' memory
 * is mapped in the heap, whole groups of granules (ptx/color.h), of which the buffers use
 * the granules of its channels.  In the window nothing is mapped: a buffer's address is
 * there, and byte x of the window is what the partition has as its byte x.  Kernels are
 * rewritten (PTX_COLOR) so that they go from the window to the heap; copies and fills are
 * kernels that were rewritten like that.  What has not been rewritten faults.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Address bits within a page of the driver's. */
#define PHYSICAL_BITS 21u
#define THREADS       256u

/* copy_words, copy_bytes(to, from, count); fill_words(to, pattern, count). */
enum { COPY_WORDS, COPY_BYTES, FILL_WORDS, COPIERS };
#define COPIER_HEAD ".version 7.0\n.target sm_50\n.address_size 64\n"
#define COPIER_BEGIN                                                                     \
	"{\n.reg .b64 %d, %s, %i, %n;\n.reg .b32 %x, %t, %v;\n.reg .pred %p;\n"          \
	"ld.param.u64 %d, [a];\nld.param.u64 %n, [c];\n"                                 \
	"mov.u32 %x, %ctaid.x;\nmov.u32 %t, %tid.x;\n"                                   \
	"mul.wide.u32 %i, %x, 256;\ncvt.u64.u32 %s, %t;\nadd.u64 %i, %i, %s;\n"          \
	"setp.ge.u64 %p, %i, %n;\n@%p ret;\n"
static const char copiers[] =
	COPIER_HEAD ".visible .entry copy_words(.param .u64 a, .param .u64 b, .param "
		    ".u64 c)\n" COPIER_BEGIN "ld.param.u64 %s, [b];\nshl.b64 %i, %i, 2;\n"
		    "add.u64 %d, %d, %i;\nadd.u64 %s, %s, %i;\n"
		    "ld.global.u32 %v, [%s];\nst.global.u32 [%d], %v;\nret;\n}\n"
		    ".visible .entry copy_bytes(.param .u64 a, .param .u64 b, .param "
		    ".u64 c)\n" COPIER_BEGIN "ld.param.u64 %s, [b];\n"
		    "add.u64 %d, %d, %i;\nadd.u64 %s, %s, %i;\n"
		    "ld.global.u8 %v, [%s];\nst.global.u8 [%d], %v;\nret;\n}\n"
		    ".visible .entry fill_words(.param .u64 a, .param .u32 b, .param "
		    ".u64 c)\n" COPIER_BEGIN
		    "ld.param.u32 %v, [b];\nshl.b64 %i, %i, 2;\nadd.u64 %d, %d, %i;\n"
		    "st.global.u32 [%d], %v;\nret;\n}\n";
static const char *const copier_names[COPIERS] = {"copy_words", "copy_bytes",
						  "fill_words"};

struct cu_colors {
	struct ptx_color_map map;
	uint32_t channels;
	struct cu_program *copier[PTX_COLOR_MASKS]; /* for 1 << own channels */
};

/* ---- the map ------------------------------------------------------------------------- */

static int refuse(const struct cu_device *dev, const char *why)
{
	return cu_host->fail(ENOTSUP, "cuda:%u: no memory by channel: %s", dev->index,
			     why);
}

static int check_options(const struct cu_device *dev)
{
	if (dev->opt.host_memory || dev->opt.vmm || dev->opt.bounds)
		return refuse(dev, "it needs memory=device and bounds=no");
	if (dev->opt.graphs)
		return refuse(dev, "launches in a graph do not bring their channels "
				   "along: it needs graphs=no");
	return dev->shape.vmm && cu.cuMemMap
		       ? 0
		       : refuse(dev, "the driver or the device cannot map memory at "
				     "addresses of one's own");
}

static int read_map(const struct cu_device *dev, const struct hal_bk_color_map *in,
		    struct cu_colors *c)
{
	uint64_t all = 0;
	uint32_t i;

	if (in->table || in->q)
		return refuse(dev, "only parities of address bits are taken: which page "
				   "a buffer lies in is not known");
	c->map = (struct ptx_color_map){.granule = in->granule_bytes,
					.mask_count = in->mask_count};
	c->channels = in->colors;
	for (i = 0; i < in->mask_count; i++) {
		c->map.mask[i] = in->mask[i];
		all |= in->mask[i];
	}
	if (all * in->granule_bytes >> PHYSICAL_BITS ||
	    (uint64_t)in->granule_bytes * in->colors > dev->granule)
		return refuse(dev, "the map has address bits above bit 20, which are not "
				   "physical");
	return 0;
}

static int load_copier(struct cu_device *dev, struct cu_colors *c, uint32_t own)
{
	struct cu_kernel kernels[COPIERS];
	const struct cu_program prog = {.code = (const uint8_t *)copiers,
					.format = HAL_CUDA_PTX,
					.code_bytes = sizeof(copiers),
					.count = COPIERS,
					.kernels = kernels};
	uint32_t i;

	memset(kernels, 0, sizeof(kernels));
	for (i = 0; i < COPIERS; i++) {
		snprintf(kernels[i].info.name, sizeof(kernels[i].info.name), "%s",
			 copier_names[i]);
		kernels[i].info.arg_count = 3;
		kernels[i].block[0] = THREADS;
		kernels[i].block[1] = kernels[i].block[2] = 1;
		stream_param_set(&kernels[i].params, 1, i == FILL_WORDS ? 4 : 8);
	}
	return cu_program_color(dev, &prog, own, &c->copier[own]);
}

int cu_colors_set(void *device, const struct hal_bk_color_map *map)
{
	struct cu_device *dev = device;
	struct cu_colors *c;
	uint32_t mode, own;
	int err = check_options(dev);

	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return cu_host->fail(ENOMEM, "cuda: no memory for a map of channels");
	err = cu_push(dev, &mode);
	if (err) {
		free(c);
		return err;
	}
	if (!dev->granule)
		err = cu_range_open(dev);
	if (!err)
		err = read_map(dev, map, c);
	dev->colors = c;
	for (own = 0; !err && (1u << own) < c->channels; own++)
		err = load_copier(dev, c, own);
	if (err)
		cu_colors_drop(dev);
	cu_pop(mode);
	return err;
}

void cu_colors_drop(struct cu_device *dev)
{
	struct cu_colors *c = dev->colors;
	uint32_t own;
	int ignored = 0;

	for (own = 0; c && own < PTX_COLOR_MASKS; own++)
		cu_program_drop_color(dev, c->copier[own], &ignored);
	free(c);
	dev->colors = NULL;
}

void cu_colors_describe(const struct cu_device *dev, struct hal_device_info *info)
{
	if (!dev->colors)
		return;
	info->colors = dev->colors->channels;
	info->granule_bytes = dev->colors->map.granule;
}

uint32_t cu_colors_owns(const struct cu_device *dev)
{
	return dev->colors ? (uint32_t)__builtin_ctz(dev->colors->channels) : 0;
}

int cu_colors_make(const struct cu_device *dev, uint32_t first, uint32_t count,
		   struct ptx_color *color, struct ptx_colors *colors, char why[PTX_WHY])
{
	return ptx_color_make(&dev->colors->map, first, count, color, colors, why);
}

/* ---- partitions ---------------------------------------------------------------------- */

struct cu_color {
	struct cu_color *next; /* of the device's, under its range_lock */
	struct ptx_color color;
	struct ptx_colors colors;
	struct cu_range *heap, *window;
	const struct cu_program *copier;
	uint64_t groups, from, bytes; /* the heap's first byte; the window */
};

uint32_t cu_color_own(const struct cu_partition *part)
{
	return part->color->color.own;
}

int cu_color_open(struct cu_device *dev, struct cu_partition *part)
{
	const uint64_t mask = part->base.desc.color_mask;
	const uint32_t count = (uint32_t)__builtin_popcountll(mask);
	char why[PTX_WHY] = "its channels are no row";
	struct cu_color *c;
	int unseen = 0, err;

	if (!dev->colors || count == dev->colors->channels)
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return cu_host->fail(ENOMEM, "cuda: no memory for a partition");
	err = mask >> __builtin_ctzll(mask) == (UINT64_C(1) << count) - 1
		      ? cu_colors_make(dev, (uint32_t)__builtin_ctzll(mask), count,
				       &c->color, &c->colors, why)
		      : -ENOTSUP;
	if (err)
		err = cu_host->fail(-err,
				    "cuda: partition %u cannot own channels 0x%llx: "
				    "%s",
				    part->base.desc.index, (unsigned long long)mask, why);
	if (!err)
		err = cu_range_make(dev, dev->shape.memory_bytes, &c->heap);
	if (!err)
		err = cu_range_make(dev, dev->shape.memory_bytes, &c->window);
	if (err) {
		cu_give_back(dev, CU_KIND_RANGE, c->heap, &unseen);
		free(c);
		return err;
	}
	c->copier = dev->colors->copier[c->color.own];
	c->groups = cu_range_of(c->heap).base;
	c->from = cu_range_of(c->window).base;
	c->bytes = dev->shape.memory_bytes / dev->granule * dev->granule;
	ptx_color_window(&c->color, &c->colors, c->from, c->bytes, c->groups);
	part->color = c;
	pthread_mutex_lock(&dev->range_lock);
	c->next = dev->windows;
	dev->windows = c;
	pthread_mutex_unlock(&dev->range_lock);
	return 0;
}

void cu_color_close(struct cu_device *dev, struct cu_partition *part, int *err)
{
	struct cu_color *c = part->color, **at = &dev->windows;

	if (!c)
		return;
	pthread_mutex_lock(&dev->range_lock);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	pthread_mutex_unlock(&dev->range_lock);
	cu_give_back(dev, CU_KIND_RANGE, c->heap, err);
	cu_give_back(dev, CU_KIND_RANGE, c->window, err);
	free(c);
}

int cu_color_take(struct cu_device *dev, struct cu_mem *mem)
{
	const struct cu_color *c = mem->part->color;
	const uint64_t whole = ptx_color_extent(&c->color, mem->bytes);
	/* Whole pages: within them the address is the memory's. */
	const uint64_t pages = (whole + dev->granule - 1) / dev->granule;
	uint64_t at;
	int err = cu_place_take(dev, c->heap, pages * dev->granule, 0, &mem->place, &at);

	if (!err)
		mem->address = c->from +
			       ((at - c->groups) / dev->colors->channels << c->color.own);
	return err;
}

/* ---- accesses ------------------------------------------------------------------------ */

/* Return the partition's that has a window with that address; NULL. */
static const struct cu_color *window_of(struct cu_device *dev, uint64_t address)
{
	const struct cu_color *c;

	pthread_mutex_lock(&dev->range_lock);
	for (c = dev->windows; c && address - c->from >= c->bytes; c = c->next)
		;
	pthread_mutex_unlock(&dev->range_lock);
	return c;
}

uint32_t cu_color_put(const struct cu_partition *part, uint64_t *values, void **params)
{
	const struct ptx_colors *c = &part->color->colors;

	values[0] = c->from;
	values[1] = c->bytes;
	values[2] = c->moved;
	values[3] = c->target;
	values[4] = c->sum;
	for (uint32_t i = 0; i < PTX_COLORS_PARAMS; i++)
		params[i] = &values[i];
	return PTX_COLORS_PARAMS;
}

static int run_copier(struct cu_device *dev, const struct cu_color *c, uint32_t which,
		      void *stream, uint64_t to, uint64_t from, uint64_t count)
{
	const struct cu_partition part = {.color = (struct cu_color *)c};
	uint64_t values[3 + PTX_COLORS_PARAMS + PTX_LAUNCH_PARAMS] = {to, from, count};
	void *params[3 + PTX_COLORS_PARAMS + 1] = {&values[0], &values[1], &values[2]};
	const uint64_t blocks = (count + THREADS - 1) / THREADS;

	(void)cu_color_put(&part, &values[3], &params[3]);
	return CU(dev, cuLaunchKernel, c->copier->kernels[which].function,
		  (uint32_t)blocks, 1, 1, THREADS, 1, 1, 0, stream, params, NULL);
}

bool cu_color_copy(struct cu_device *dev, void *stream, uint64_t to, uint64_t from,
		   uint64_t bytes, int *err)
{
	const struct cu_color *c = dev->colors ? window_of(dev, to) : NULL;
	const bool words = ((to | from | bytes) & 3) == 0;

	if (dev->colors && !c)
		c = window_of(dev, from);
	if (!c)
		return false;
	*err = run_copier(dev, c, words ? COPY_WORDS : COPY_BYTES, stream, to, from,
			  words ? bytes / 4 : bytes);
	return true;
}

bool cu_color_fill(struct cu_device *dev, void *stream, uint64_t address,
		   uint32_t pattern, uint64_t words, int *err)
{
	const struct cu_color *c = dev->colors ? window_of(dev, address) : NULL;

	if (!c)
		return false;
	*err = run_copier(dev, c, FILL_WORDS, stream, address, pattern, words);
	return true;
}

uint64_t cu_color_at(struct cu_device *dev, uint64_t address)
{
	const struct cu_color *c = dev->colors ? window_of(dev, address) : NULL;

	return c ? c->groups + ptx_color_place(&c->color, &c->colors, address - c->from)
		 : address;
}
