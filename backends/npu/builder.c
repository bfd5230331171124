/* SPDX-License-Identifier: Apache-2.0 */
/* builder.c - operations in, relocatable program image out (hal/npu.h): everything but
 * the operations. */
#include "builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/options.h>

/* ---- growing arrays --------------------------------------------------------------- */

struct vec {
	uint8_t *data;
	size_t used, room; /* bytes */
};

/* Room for bytes more, zeroed; NULL after npu_fail. */
static void *vec_add(struct vec *v, size_t bytes)
{
	void *at;

	if (!v->data || bytes > v->room - v->used) {
		size_t room = v->room ? v->room * 2 : 1024;
		uint8_t *data;

		while (room - v->used < bytes)
			room *= 2;
		data = realloc(v->data, room);
		if (!data) {
			npu_set_error(ENOMEM, "no memory for a program of %zu bytes",
				      room);
			return NULL;
		}
		v->data = data;
		v->room = room;
	}
	at = v->data + v->used;
	memset(at, 0, bytes);
	v->used += bytes;
	return at;
}

struct place {
	uint32_t kind;   /* enum npu_place_kind */
	uint32_t kernel; /* of an argument */
	uint32_t arg;    /* its number */
	bool packed;     /* constant: there is a copy of it in blocks */
	bool used;       /* by an operation */
	uint64_t at;     /* constant, scratch: where in the block */
	uint64_t bytes;
};

/* A constant that is there in blocks, too. */
struct pack {
	struct npu_matrix from;
	uint32_t blocks; /* id of that place */
};

struct hal_npu_builder {
	struct vec places, kernels, args, relocs, descs, data, packs;
	uint64_t scratch;
};

#define COUNT(v, type) ((uint32_t)((v).used / sizeof(type)))

/* The records lie in malloc'ed memory at multiples of their size: aligned. */
static struct place *place_at(struct hal_npu_builder *b, uint32_t index)
{
	return (struct place *)(void *)b->places.data + index;
}

static struct npu_image_kernel *last_kernel(struct hal_npu_builder *b)
{
	uint32_t n = COUNT(b->kernels, struct npu_image_kernel);

	return n ? (struct npu_image_kernel *)(void *)b->kernels.data + n - 1 : NULL;
}

static struct npu_image_arg *arg_at(struct hal_npu_builder *b, uint32_t index)
{
	return (struct npu_image_arg *)(void *)b->args.data + index;
}

HAL_API int hal_npu_builder_create(struct hal_npu_builder **builder)
{
	struct hal_scan *scan;

	/* Backends learn of the core, whose services this file uses, with the first scan
	 * or open of the process. */
	if (!hal_scan_create(NULL, HAL_SCAN_OPTIONS, &scan))
		(void)hal_scan_destroy(scan);
	if (!builder)
		return npu_fail(EINVAL, "hal_npu_builder_create: builder is NULL");
	*builder = calloc(1, sizeof(**builder));
	return *builder ? 0 : npu_fail(ENOMEM, "no memory for a program builder");
}

HAL_API int hal_npu_builder_destroy(struct hal_npu_builder *b)
{
	if (!b)
		return 0;
	free(b->places.data);
	free(b->kernels.data);
	free(b->args.data);
	free(b->relocs.data);
	free(b->descs.data);
	free(b->data.data);
	free(b->packs.data);
	free(b);
	return 0;
}

/* ---- kernels and places ----------------------------------------------------------- */

HAL_API int hal_npu_kernel(struct hal_npu_builder *b, const char *name)
{
	struct npu_image_kernel *k;
	uint32_t count;

	if (!b || !name || !name[0] || strlen(name) >= sizeof(k->name))
		return npu_fail(EINVAL, "hal_npu_kernel: a name has 1 to 31 characters");
	count = COUNT(b->kernels, *k);
	if (count == NPU_IMAGE_KERNELS_MAX)
		return npu_fail(ENOTSUP,
				"hal_npu_kernel: the program has %u kernels already, "
				"which is the limit",
				NPU_IMAGE_KERNELS_MAX);
	k = (struct npu_image_kernel *)(void *)b->kernels.data;
	for (uint32_t i = 0; i < count; i++)
		if (!strcmp(k[i].name, name))
			return npu_fail(
				EINVAL,
				"hal_npu_kernel: the program already has a kernel '%s'",
				name);
	k = vec_add(&b->kernels, sizeof(*k));
	if (!k)
		return -ENOMEM;
	memcpy(k->name, name, strlen(name));
	k->arg_first = COUNT(b->args, struct npu_image_arg);
	k->desc_first = (uint32_t)(b->descs.used / 64);
	k->reloc_first = COUNT(b->relocs, struct npu_image_reloc);
	return 0;
}

static int add_place(struct hal_npu_builder *b, const struct place *p, uint32_t *id)
{
	struct place *at = vec_add(&b->places, sizeof(*p));

	if (!at)
		return -ENOMEM;
	*at = *p;
	*id = COUNT(b->places, *p); /* 0 is no place */
	return 0;
}

HAL_API int hal_npu_arg(struct hal_npu_builder *b, uint64_t bytes, uint32_t *id)
{
	struct npu_image_kernel *k = b ? last_kernel(b) : NULL;
	struct npu_image_arg *arg;
	struct place p = {.kind = NPU_PLACE_ARG, .bytes = bytes};

	if (!k || !id)
		return npu_fail(EINVAL, "hal_npu_arg: %s",
				id ? "no kernel yet: call hal_npu_kernel first"
				   : "id is NULL");
	if (!bytes || bytes > NPU_IMAGE_DATA_MAX)
		return npu_fail(
			EINVAL,
			"hal_npu_arg: %llu bytes; an argument has 1 to 2^31 bytes",
			(unsigned long long)bytes);
	if (k->arg_count == HAL_ARGS_MAX)
		return npu_fail(EINVAL,
				"hal_npu_arg: kernel '%s' already has %d arguments, "
				"which is the limit",
				k->name, HAL_ARGS_MAX);
	arg = vec_add(&b->args, sizeof(*arg));
	if (!arg)
		return -ENOMEM;
	arg->bytes = bytes;
	arg->align = 1;
	p.kernel = COUNT(b->kernels, *k) - 1;
	p.arg = k->arg_count++;
	return add_place(b, &p, id);
}

int npu_add_const(struct hal_npu_builder *b, uint64_t bytes, uint32_t *id, uint8_t **at)
{
	size_t pad = (0u - b->data.used) & (NPU_IMAGE_CONST_ALIGN - 1u);
	struct place p = {.kind = NPU_PLACE_CONST, .bytes = bytes};

	if (!bytes || b->data.used + pad + bytes > NPU_IMAGE_DATA_MAX)
		return npu_fail(bytes ? ENOTSUP : EINVAL,
				"a constant of %llu bytes; a constant needs at least 1 "
				"byte, all constants together at most 2^31",
				(unsigned long long)bytes);
	if (!vec_add(&b->data, pad))
		return -ENOMEM;
	p.at = b->data.used;
	*at = vec_add(&b->data, bytes);
	return *at ? add_place(b, &p, id) : -ENOMEM;
}

HAL_API int hal_npu_const(struct hal_npu_builder *b, const void *data, uint64_t bytes,
			  uint32_t *id)
{
	uint8_t *at;
	int rc;

	if (!b || !data || !id)
		return npu_fail(EINVAL, "hal_npu_const: builder, data or id is NULL");
	rc = npu_add_const(b, bytes, id, &at);
	if (!rc)
		memcpy(at, data, bytes);
	return rc;
}

HAL_API int hal_npu_gemm_pack(void *blocks, uint64_t size, const void *b, uint32_t n,
			      uint32_t k, uint64_t stride)
{
	const uint8_t *from = b;
	uint8_t *to = blocks;

	if (stride == 0)
		stride = n;
	if (!blocks || !b || !n || !k || stride < n)
		return npu_fail(EINVAL,
				"hal_npu_gemm_pack: blocks or b is NULL, n or k is 0, or "
				"stride is less than n");
	if (size < npu_blocks_bytes(n, k))
		return npu_fail(EINVAL,
				"hal_npu_gemm_pack: blocks has %llu bytes; %u columns of "
				"%u rows take %llu",
				(unsigned long long)size, n, k,
				(unsigned long long)npu_blocks_bytes(n, k));
	for (uint32_t n0 = 0; n0 < n; n0 += 16) {
		uint32_t columns = n - n0 < 16 ? n - n0 : 16;

		for (uint32_t row = 0; row < k; row++, to += 16) {
			memcpy(to, from + row * stride + n0, columns);
			memset(to + columns, 0, 16 - columns);
		}
	}
	return 0;
}

int npu_pack_const(struct npu_op *g, const struct npu_matrix *m,
		   struct hal_npu_place *blocks)
{
	struct hal_npu_builder *b = g->b;
	const struct pack *known = (const struct pack *)(const void *)b->packs.data;
	uint64_t bytes = npu_blocks_bytes(m->n, m->k), from;
	struct pack *new;
	uint8_t *at;
	uint32_t id;
	int rc;

	if (place_at(b, m->at.id - 1)->kind != NPU_PLACE_CONST)
		return 0;
	for (uint32_t i = 0; i < COUNT(b->packs, *known); i++)
		if (!memcmp(&known[i].from, m, sizeof(*m))) {
			*blocks = (struct hal_npu_place){.id = known[i].blocks};
			return 0;
		}
	rc = npu_add_const(b, bytes, &id, &at);
	if (rc)
		return rc;
	new = vec_add(&b->packs, sizeof(*new));
	if (!new)
		return -ENOMEM;
	*new = (struct pack){.from = *m, .blocks = id};
	from = place_at(b, m->at.id - 1)->at + m->at.offset;
	place_at(b, m->at.id - 1)->packed = true;
	*blocks = (struct hal_npu_place){.id = id};
	return hal_npu_gemm_pack(at, bytes, b->data.data + from, m->n, m->k, m->stride);
}

HAL_API int hal_npu_scratch(struct hal_npu_builder *b, uint64_t bytes, uint32_t *id)
{
	struct place p = {.kind = NPU_PLACE_SCRATCH, .bytes = bytes};

	if (!b || !id)
		return npu_fail(EINVAL, "hal_npu_scratch: builder or id is NULL");
	if (!bytes || bytes > NPU_IMAGE_DATA_MAX ||
	    b->scratch + bytes > NPU_IMAGE_DATA_MAX)
		return npu_fail(bytes ? ENOTSUP : EINVAL,
				"hal_npu_scratch: %llu bytes; at least 1 byte is needed, "
				"all scratch places together have at most 2^31",
				(unsigned long long)bytes);
	p.at = b->scratch;
	b->scratch = (b->scratch + bytes + NPU_IMAGE_CONST_ALIGN - 1u) &
		     ~(uint64_t)(NPU_IMAGE_CONST_ALIGN - 1u);
	return add_place(b, &p, id);
}

/* ---- one operation being built ---------------------------------------------------- */

/* size is the caller's: a newer header's struct is longer, and what this library does not
 * know of it must be 0. */
static int check_size(const char *op, const void *arg, uint32_t size, uint32_t want)
{
	const uint8_t *tail = (const uint8_t *)arg;

	if (size < want)
		return npu_fail(EINVAL,
				"%s: .size is %u; at least %u is needed (use HAL_INIT)",
				op, size, want);
	for (uint32_t i = want; i < size; i++)
		if (tail[i])
			return npu_fail(
				E2BIG,
				"%s: .size is %u and byte %u is not 0, but this library "
				"knows only the first %u bytes of the structure",
				op, size, i, want);
	return 0;
}

int npu_op_start(struct npu_op *g, struct hal_npu_builder *b, const char *op,
		 const void *arg, uint32_t size, uint32_t want)
{
	int rc = check_size(op, arg, size, want);

	if (rc)
		return rc;
	g->b = b;
	g->op = op;
	g->k = last_kernel(b);
	if (!g->k)
		return npu_fail(EINVAL, "%s: no kernel yet: call hal_npu_kernel first",
				op);
	g->desc_count = g->k->desc_count;
	g->reloc_count = g->k->reloc_count;
	g->data = b->data.used;
	g->places = COUNT(b->places, struct place);
	g->packs = COUNT(b->packs, struct pack);
	return 0;
}

/* Nothing of a failed operation stays. */
int npu_op_end(struct npu_op *g, int rc)
{
	if (!rc)
		return 0;
	g->k->desc_count = g->desc_count;
	g->k->reloc_count = g->reloc_count;
	g->b->descs.used = ((size_t)g->k->desc_first + g->desc_count) * 64;
	g->b->relocs.used = ((size_t)g->k->reloc_first + g->reloc_count) *
			    sizeof(struct npu_image_reloc);
	g->b->data.used = g->data;
	g->b->places.used = g->places * sizeof(struct place);
	g->b->packs.used = g->packs * sizeof(struct pack);
	return rc;
}

int npu_check_place(struct npu_op *g, const char *field, struct hal_npu_place at,
		    uint64_t bytes)
{
	const struct place *p;

	if (!at.id || at.id > COUNT(g->b->places, struct place))
		return npu_fail(EINVAL, "%s: .%s: no place with id %u", g->op, field,
				at.id);
	p = place_at(g->b, at.id - 1);
	if (p->kind == NPU_PLACE_ARG &&
	    p->kernel != COUNT(g->b->kernels, struct npu_image_kernel) - 1)
		return npu_fail(EINVAL,
				"%s: .%s: place %u is an argument of another kernel",
				g->op, field, at.id);
	if (at.offset > p->bytes || bytes > p->bytes - at.offset)
		return npu_fail(ERANGE,
				"%s: .%s: %llu bytes at offset %u exceed the place, "
				"which has %llu",
				g->op, field, (unsigned long long)bytes, at.offset,
				(unsigned long long)p->bytes);
	return 0;
}

int npu_check_out(struct npu_op *g, const char *field, struct hal_npu_place at,
		  uint64_t bytes)
{
	int rc = npu_check_place(g, field, at, 0);

	if (!rc && place_at(g->b, at.id - 1)->kind == NPU_PLACE_CONST)
		return npu_fail(EINVAL,
				"%s: .%s: place %u is a constant and cannot be written",
				g->op, field, at.id);
	return rc ? rc : npu_check_place(g, field, at, bytes);
}

int npu_need_align(struct npu_op *g, const char *field, struct hal_npu_place at,
		   uint32_t align)
{
	const struct place *p = place_at(g->b, at.id - 1);
	struct npu_image_arg *arg;

	if (at.offset % align)
		return npu_fail(EINVAL, "%s: .%s: offset %u is not a multiple of %u",
				g->op, field, at.offset, align);
	if (p->kind != NPU_PLACE_ARG)
		return 0;
	arg = arg_at(g->b, g->k->arg_first + p->arg);
	if (arg->align < align)
		arg->align = align;
	return 0;
}

int npu_add_desc(struct npu_op *g, uint32_t **d)
{
	if (g->k->desc_count == 1u << 20)
		return npu_fail(ENOTSUP,
				"%s: kernel '%s' already has 2^20 descriptors, which is "
				"the limit",
				g->op, g->k->name);
	*d = vec_add(&g->b->descs, 64);
	if (!*d)
		return -ENOMEM;
	g->k->desc_count++;
	return 0;
}

int npu_relocate(struct npu_op *g, uint32_t word, struct hal_npu_place at, uint64_t more)
{
	struct place *p = place_at(g->b, at.id - 1);
	struct npu_image_reloc *r = vec_add(&g->b->relocs, sizeof(*r));

	if (!r)
		return -ENOMEM;
	p->used = true;
	r->desc = g->k->desc_count - 1;
	r->word = (uint8_t)word;
	r->kind = (uint8_t)p->kind;
	r->arg = (uint16_t)p->arg;
	r->offset = (uint32_t)((p->kind == NPU_PLACE_ARG ? 0 : p->at) + at.offset + more);
	g->k->reloc_count++;
	return 0;
}

int npu_check_range(struct npu_op *g, const char *field, int64_t value, int64_t min,
		    int64_t max)
{
	if (value >= min && value <= max)
		return 0;
	return npu_fail(EINVAL, "%s: .%s is %lld; it must be %lld to %lld", g->op, field,
			(long long)value, (long long)min, (long long)max);
}

static int check_limit(struct npu_op *g, const char *field, uint64_t value, uint64_t max)
{
	if (!value)
		return npu_fail(EINVAL, "%s: .%s is 0", g->op, field);
	if (value > max)
		return npu_fail(
			ENOTSUP, "%s: .%s is %llu; the machine allows at most %llu",
			g->op, field, (unsigned long long)value, (unsigned long long)max);
	return 0;
}

int npu_check_limits(struct npu_op *g, const struct npu_limit *l, size_t count)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++)
		rc = check_limit(g, l[i].field, l[i].value, l[i].max);
	return rc;
}

int npu_check_stride(struct npu_op *g, const char *field, uint64_t stride, uint64_t least)
{
	if (stride >= least)
		return 0;
	return npu_fail(EINVAL, "%s: .%s is %llu; a row needs at least %llu bytes", g->op,
			field, (unsigned long long)stride, (unsigned long long)least);
}

int npu_check_ranges(struct npu_op *g, const struct npu_range *r, size_t count)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++)
		rc = npu_check_range(g, r[i].field, r[i].value, r[i].min, r[i].max);
	return rc;
}

int npu_check_flags(struct npu_op *g, uint32_t flags, uint32_t known)
{
	if (!(flags & ~known))
		return 0;
	return npu_fail(
		EINVAL,
		"%s: .flags is 0x%x; this operation does not accept the flags 0x%x",
		g->op, flags, flags & ~known);
}

/* ---- image ------------------------------------------------------------------------ */

static void put(uint8_t **at, const struct vec *v)
{
	if (v->used)
		memcpy(*at, v->data, v->used);
	*at += v->used;
}

/* Whether the image goes without a constant: operations have it in blocks alone. */
static bool is_dropped(const struct place *p)
{
	return p->kind == NPU_PLACE_CONST && p->packed && !p->used;
}

/* Constants that the image has, and where: in the order of places. */
struct consts {
	struct kept {
		uint64_t from, to, bytes; /* in .data; in the image */
	} * kept;
	uint32_t count;
	uint64_t bytes;
};

static int choose_consts(struct hal_npu_builder *b, struct consts *c)
{
	uint32_t places = COUNT(b->places, struct place);

	c->kept = calloc(places ? places : 1, sizeof(*c->kept));
	if (!c->kept)
		return npu_fail(ENOMEM, "no memory for %u constants", places);
	for (uint32_t i = 0; i < places; i++) {
		const struct place *p = place_at(b, i);

		if (p->kind != NPU_PLACE_CONST || is_dropped(p))
			continue;
		c->bytes = (c->bytes + NPU_IMAGE_CONST_ALIGN - 1) &
			   ~(uint64_t)(NPU_IMAGE_CONST_ALIGN - 1);
		c->kept[c->count++] = (struct kept){p->at, c->bytes, p->bytes};
		c->bytes += p->bytes;
	}
	return 0;
}

/* Where byte at of .data is in the image: in the last constant that begins at or before
 * it. */
static uint32_t moved(const struct consts *c, uint32_t at)
{
	uint32_t low = 0, high = c->count;

	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (c->kept[middle].from <= at)
			low = middle;
		else
			high = middle;
	}
	return (uint32_t)(at - c->kept[low].from + c->kept[low].to);
}

static void put_relocs(uint8_t **at, const struct vec *relocs, const struct consts *c)
{
	const struct npu_image_reloc *r =
		(const struct npu_image_reloc *)(const void *)relocs->data;

	for (uint32_t i = 0; i < COUNT(*relocs, *r); i++, *at += sizeof(*r)) {
		struct npu_image_reloc to = r[i];

		if (to.kind == NPU_PLACE_CONST)
			to.offset = moved(c, to.offset);
		memcpy(*at, &to, sizeof(to));
	}
}

static void put_consts(uint8_t *at, const uint8_t *data, const struct consts *c)
{
	memset(at, 0, c->bytes);
	for (uint32_t i = 0; i < c->count; i++)
		memcpy(at + c->kept[i].to, data + c->kept[i].from, c->kept[i].bytes);
}

/* Fill in h and return the size of the image; 0 after npu_fail. */
static uint64_t plan_image(const struct hal_npu_builder *b, const struct consts *c,
			   struct npu_image_header *h)
{
	uint64_t bytes = sizeof(*h) + b->kernels.used + b->args.used + b->relocs.used +
			 b->descs.used + c->bytes;

	if (bytes > NPU_IMAGE_DATA_MAX || b->scratch > NPU_IMAGE_DATA_MAX - bytes) {
		(void)npu_fail(ENOTSUP,
			       "hal_npu_build: an image of %llu bytes and %llu bytes of "
			       "scratch; together they may have 2^31",
			       (unsigned long long)bytes, (unsigned long long)b->scratch);
		return 0;
	}
	h->bytes = (uint32_t)bytes;
	h->kernels = COUNT(b->kernels, struct npu_image_kernel);
	h->args = COUNT(b->args, struct npu_image_arg);
	h->relocs = COUNT(b->relocs, struct npu_image_reloc);
	h->descs = (uint32_t)(b->descs.used / 64);
	h->const_bytes = c->bytes;
	h->scratch_bytes = b->scratch;
	return bytes;
}

static int write_image(struct hal_npu_builder *b, const struct consts *c, void **image,
		       size_t *size)
{
	struct npu_image_header h = {.magic = NPU_IMAGE_MAGIC,
				     .version = NPU_IMAGE_VERSION};
	uint64_t bytes = plan_image(b, c, &h);
	uint8_t *out, *at;

	if (!bytes)
		return -ENOTSUP;
	out = malloc(bytes);
	if (!out)
		return npu_fail(ENOMEM, "no memory for an image of %llu bytes",
				(unsigned long long)bytes);
	memcpy(out, &h, sizeof(h));
	at = out + sizeof(h);
	put(&at, &b->kernels);
	put(&at, &b->args);
	put_relocs(&at, &b->relocs, c);
	put(&at, &b->descs);
	put_consts(at, b->data.data, c);
	h.checksum = npu_image_crc(out, bytes);
	memcpy(out, &h, sizeof(h));
	*image = out;
	*size = bytes;
	return 0;
}

HAL_API int hal_npu_build(struct hal_npu_builder *b, void **image, size_t *size)
{
	struct consts c = {0};
	int rc;

	if (!b || !image || !size)
		return npu_fail(EINVAL, "hal_npu_build: builder, image or size is NULL");
	if (!b->kernels.used)
		return npu_fail(EINVAL, "hal_npu_build: the program has no kernel");
	rc = choose_consts(b, &c);
	if (!rc)
		rc = write_image(b, &c, image, size);
	free(c.kept);
	return rc;
}

HAL_API void hal_npu_image_free(void *image)
{
	free(image);
}
