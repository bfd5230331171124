/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: the table of hal/rocm.h, and of what is behind it the part that is for this
 * device.  HIP is given no length and believes what code says of itself: what says where
 * something lies is checked here and in code.c.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS_MOST 4096u
#define PARTS_MOST   256u
#define PROCESSOR    "amdgcn-amd-amdhsa--"

static const char bundle_magic[24] = {'_', '_', 'C', 'L', 'A', 'N', 'G', '_',
				      'O', 'F', 'F', 'L', 'O', 'A', 'D', '_',
				      'B', 'U', 'N', 'D', 'L', 'E', '_', '_'};

static int wrong(const char *what)
{
	return rocm_host->fail(EINVAL, "rocm: image: %s", what);
}

/* ---- bundles ----------------------------------------------------------------------- */

/* A part "gfx90a:xnack-" is for "gfx90a:sramecc+:xnack-": the same processor, and no
 * setting that the device has not.  How many settings, and 1; 0: it is not. */
static uint32_t suits(const char *part, const char *arch)
{
	size_t n = strcspn(part, ":");
	uint32_t score = 1;

	if (n != strcspn(arch, ":") || strncmp(part, arch, n) != 0)
		return 0;
	for (part += n; *part; part += n, score++) {
		const char *in = arch;

		n = 1 + strcspn(part + 1, ":");
		for (in = strchr(in, ':'); in; in = strchr(in + 1, ':'))
			if (strncmp(in, part, n) == 0 && (!in[n] || in[n] == ':'))
				break;
		if (!in)
			return 0;
	}
	return score;
}

struct part {
	uint64_t offset, bytes, name_bytes;
	char name[96];
};

/* The entry at *at, which is moved behind it. */
static int read_part(const uint8_t *code, uint64_t bytes, uint64_t *at, struct part *p)
{
	uint64_t head[3];

	if (bytes - *at < sizeof(head))
		return wrong("the bundle is truncated within its table");
	memcpy(head, code + *at, sizeof(head));
	*at += sizeof(head);
	p->offset = head[0];
	p->bytes = head[1];
	p->name_bytes = head[2];
	if (p->name_bytes > bytes - *at)
		return wrong("a name in the bundle is truncated");
	if (p->offset > bytes || p->bytes > bytes - p->offset)
		return wrong("a part of the bundle lies outside the file");
	snprintf(p->name, sizeof(p->name), "%.*s",
		 (int)(p->name_bytes < sizeof(p->name) ? p->name_bytes
						       : sizeof(p->name) - 1),
		 (const char *)code + *at);
	*at += p->name_bytes;
	return 0;
}

static int nothing_fits(const char *arch, const char *there)
{
	return rocm_host->fail(
		ENOTSUP, "rocm: image: the bundle has no code for %s; it has code for%s",
		arch, there[0] ? there : " no GPU");
}

static int open_bundle(const char *arch, struct rocm_program *prog)
{
	const uint8_t *code = prog->code;
	const uint64_t bytes = prog->code_bytes;
	uint64_t count, at = sizeof(bundle_magic) + sizeof(count), i;
	char there[200] = "";
	uint32_t best = 0;

	if (bytes >= 4 && memcmp(code, "CCOB", 4) == 0)
		return rocm_host->fail(
			ENOTSUP,
			"rocm: image: the bundle is compressed, which is not supported");
	if (bytes < at || memcmp(code, bundle_magic, sizeof(bundle_magic)) != 0)
		return wrong("the code is not a bundle");
	memcpy(&count, code + sizeof(bundle_magic), sizeof(count));
	if (count > PARTS_MOST)
		return wrong("the bundle has too many parts");
	for (i = 0; i < count; i++) {
		struct part p = {0};
		const char *processor;
		uint32_t score;
		int err = read_part(code, bytes, &at, &p);

		if (err)
			return err;
		processor = strstr(p.name, PROCESSOR);
		if (!processor)
			continue; /* the host's */
		processor += sizeof(PROCESSOR) - 1;
		snprintf(there + strlen(there), sizeof(there) - strlen(there), " %s",
			 processor);
		score = suits(processor, arch);
		if (score <= best)
			continue;
		best = score;
		prog->code = code + p.offset;
		prog->code_bytes = p.bytes;
	}
	return best ? 0 : nothing_fits(arch, there);
}

/* ---- the table --------------------------------------------------------------------- */

static int read_arguments(const struct hal_rocm_kernel *from, struct rocm_kernel *k)
{
	uint32_t i;

	if (from->arg_count > HAL_ARGS_MAX)
		return rocm_host->fail(
			EINVAL, "rocm: image: kernel %s: %u arguments; the limit is %u",
			k->info.name, from->arg_count, HAL_ARGS_MAX);
	for (i = 0; i < from->arg_count; i++) {
		const uint32_t bytes = from->scalar_bytes[i];

		if (bytes > 8 || bytes & (bytes - 1))
			return rocm_host->fail(
				EINVAL,
				"rocm: image: kernel %s: a scalar of %u bytes as "
				"argument %u; it must have 1, 2, 4 or 8",
				k->info.name, bytes, i);
		if (bytes && from->arg_bytes[i])
			return rocm_host->fail(EINVAL,
					       "rocm: image: kernel %s: argument %u has "
					       "both scalar_bytes and arg_bytes",
					       k->info.name, i);
		k->info.arg_bytes[i] = from->arg_bytes[i];
		stream_param_set(&k->params, i, bytes);
	}
	k->info.arg_count = from->arg_count;
	return 0;
}

static int read_kernel(const struct hal_rocm_kernel *from, struct rocm_kernel *k)
{
	uint32_t i;

	if (!from->name[0] || from->name[sizeof(from->name) - 1])
		return wrong("the name of a kernel is empty or not terminated");
	snprintf(k->info.name, sizeof(k->info.name), "%s", from->name);
	for (i = 0; i < 3; i++)
		k->block[i] = from->block[i] ? from->block[i] : 1;
	k->shared_bytes = from->shared_bytes;
	k->info.work = from->work;
	return read_arguments(from, k);
}

static int check_head(const struct hal_rocm_image *h, size_t size)
{
	if (h->magic != HAL_ROCM_MAGIC)
		return wrong("it does not begin with the header of hal/rocm.h");
	if (h->version != HAL_ROCM_VERSION)
		return rocm_host->fail(
			EINVAL, "rocm: image: version %u; this library reads version %u",
			h->version, HAL_ROCM_VERSION);
	if (h->kernel_size != sizeof(struct hal_rocm_kernel))
		return rocm_host->fail(EINVAL,
				       "rocm: image: kernels of %u bytes in the table, "
				       "which this library does not support",
				       h->kernel_size);
	if (h->kernel_count - 1 >= KERNELS_MOST)
		return rocm_host->fail(EINVAL,
				       "rocm: image: %u kernels, which is 0 or too many",
				       h->kernel_count);
	if (h->format > HAL_ROCM_BUNDLE)
		return rocm_host->fail(EINVAL, "rocm: image: unknown code format %u",
				       h->format);
	if (h->bytes != size ||
	    size != sizeof(*h) + h->code_bytes +
			    (uint64_t)h->kernel_count * h->kernel_size)
		return wrong("its size differs from the sum of its parts");
	return 0;
}

int rocm_image_parse(const void *image, size_t size, const char *arch,
		     struct rocm_program *prog)
{
	const uint8_t *at = (const uint8_t *)image + sizeof(struct hal_rocm_image);
	struct hal_rocm_image h;
	struct hal_rocm_kernel k;
	int err;

	if (size < sizeof(h))
		return wrong("it is truncated within its header");
	memcpy(&h, image, sizeof(h));
	err = check_head(&h, size);
	if (err)
		return err;
	prog->code = (const uint8_t *)image + (size - h.code_bytes);
	prog->code_bytes = h.code_bytes;
	prog->kernels = calloc(h.kernel_count, sizeof(*prog->kernels));
	if (!prog->kernels)
		return rocm_host->fail(ENOMEM, "rocm: no memory for %u kernels",
				       h.kernel_count);
	for (; !err && prog->count < h.kernel_count; at += sizeof(k)) {
		memcpy(&k, at, sizeof(k));
		err = read_kernel(&k, &prog->kernels[prog->count++]);
	}
	if (!err && h.format == HAL_ROCM_BUNDLE)
		err = open_bundle(arch, prog);
	return err ? err : rocm_code_check(prog->code, prog->code_bytes, arch, prog);
}
