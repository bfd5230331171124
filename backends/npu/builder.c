/* SPDX-License-Identifier: Apache-2.0 */
/* builder.c - operations in, relocatable program image out (hal/npu.h). */
#include <hal/npu.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "image.h"
#include "npu_regs.h"

/* ---- the machine, as far as programs must know it --------------------------------- */

#define DEPTH       512u /* rows of an accumulator tile */
#define DEPTH_OUT32 (DEPTH / 4u)
#define SPAD        (128u * 1024u) /* scratchpad */
#define SPAD_USE    (SPAD - 128u)  /* a panel's input may end on either side of a line */
#define K_MAX       33025u         /* int32 sums of 9-bit operands cannot wrap below it */
#define U16_MAX     65535u
#define DM_MAX      ((1u << 20) - 1u)
#define ROW_PIECE   32768u /* elementwise operations longer than a field are cut here */

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
	uint64_t at;     /* constant, scratch: where in the block */
	uint64_t bytes;
};

struct hal_npu_builder {
	struct vec places, kernels, args, relocs, descs, data;
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
	struct hal_backend_info info = HAL_INIT(hal_backend_info);

	/* The backends are told of the core when they are first asked for. */
	hal_backend_get_info(0, &info);
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
		return npu_fail(ENOTSUP, "hal_npu_kernel: more than %u kernels",
				NPU_IMAGE_KERNELS_MAX);
	k = (struct npu_image_kernel *)(void *)b->kernels.data;
	for (uint32_t i = 0; i < count; i++)
		if (!strcmp(k[i].name, name))
			return npu_fail(EINVAL, "hal_npu_kernel: '%s' is there already",
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
				id ? "no kernel yet" : "id is NULL");
	if (!bytes || bytes > NPU_IMAGE_DATA_MAX)
		return npu_fail(EINVAL, "hal_npu_arg: %llu bytes; 1 to 2^31",
				(unsigned long long)bytes);
	if (k->arg_count == HAL_ARGS_MAX)
		return npu_fail(EINVAL,
				"hal_npu_arg: kernel '%s' has %d arguments already",
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

/* A place in the constant block; *at is where its bytes are to be written. */
static int add_const(struct hal_npu_builder *b, uint64_t bytes, uint32_t *id,
		     uint8_t **at)
{
	size_t pad = (0u - b->data.used) & (NPU_IMAGE_CONST_ALIGN - 1u);
	struct place p = {.kind = NPU_PLACE_CONST, .bytes = bytes};

	if (!bytes || b->data.used + pad + bytes > NPU_IMAGE_DATA_MAX)
		return npu_fail(
			bytes ? ENOTSUP : EINVAL,
			"a constant of %llu bytes; 1 byte to 2^31 for all together",
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
	rc = add_const(b, bytes, id, &at);
	if (!rc)
		memcpy(at, data, bytes);
	return rc;
}

HAL_API int hal_npu_scratch(struct hal_npu_builder *b, uint64_t bytes, uint32_t *id)
{
	struct place p = {.kind = NPU_PLACE_SCRATCH, .bytes = bytes};

	if (!b || !id)
		return npu_fail(EINVAL, "hal_npu_scratch: builder or id is NULL");
	if (!bytes || bytes > NPU_IMAGE_DATA_MAX ||
	    b->scratch + bytes > NPU_IMAGE_DATA_MAX)
		return npu_fail(
			bytes ? ENOTSUP : EINVAL,
			"hal_npu_scratch: %llu bytes; 1 byte to 2^31 for all together",
			(unsigned long long)bytes);
	p.at = b->scratch;
	b->scratch = (b->scratch + bytes + NPU_IMAGE_CONST_ALIGN - 1u) &
		     ~(uint64_t)(NPU_IMAGE_CONST_ALIGN - 1u);
	return add_place(b, &p, id);
}

/* ---- one operation being built ---------------------------------------------------- */

/* op names the function in error texts. */
struct build {
	struct hal_npu_builder *b;
	struct npu_image_kernel *k;
	const char *op;
	uint32_t desc_count, reloc_count; /* when it began: where an error goes back to */
	size_t data;
	uint32_t places;
};

/* size is the caller's: a newer header's struct is longer, and what this library does not
 * know of it must be 0. */
static int check_size(const char *op, const void *arg, uint32_t size, uint32_t want)
{
	const uint8_t *tail = (const uint8_t *)arg;

	if (size < want)
		return npu_fail(EINVAL, "%s: .size is %u, not %u", op, size, want);
	for (uint32_t i = want; i < size; i++)
		if (tail[i])
			return npu_fail(E2BIG,
					"%s: .size is %u and byte %u is set; this "
					"library knows %u",
					op, size, i, want);
	return 0;
}

static int begin(struct build *g, struct hal_npu_builder *b, const char *op,
		 const void *arg, uint32_t size, uint32_t want)
{
	int rc;

	if (!b || !arg)
		return npu_fail(EINVAL, "%s: NULL argument", op);
	rc = check_size(op, arg, size, want);
	if (rc)
		return rc;
	g->b = b;
	g->op = op;
	g->k = last_kernel(b);
	if (!g->k)
		return npu_fail(EINVAL, "%s: no kernel yet; hal_npu_kernel begins one",
				op);
	g->desc_count = g->k->desc_count;
	g->reloc_count = g->k->reloc_count;
	g->data = b->data.used;
	g->places = COUNT(b->places, struct place);
	return 0;
}

/* Nothing of a failed operation stays. */
static int end(struct build *g, int rc)
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
	return rc;
}

/* A place must exist, belong to this kernel and hold bytes from its offset on. */
static int check_place(struct build *g, const char *field, struct hal_npu_place at,
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
				"%s: .%s: %llu bytes from offset %u, the place has %llu",
				g->op, field, (unsigned long long)bytes, at.offset,
				(unsigned long long)p->bytes);
	return 0;
}

/* An output: no constant. */
static int check_out(struct build *g, const char *field, struct hal_npu_place at,
		     uint64_t bytes)
{
	int rc = check_place(g, field, at, 0);

	if (!rc && place_at(g->b, at.id - 1)->kind == NPU_PLACE_CONST)
		return npu_fail(EINVAL, "%s: .%s: place %u is a constant", g->op, field,
				at.id);
	return rc ? rc : check_place(g, field, at, bytes);
}

/* The place's address must be a multiple of align once the program runs. */
static int need_align(struct build *g, const char *field, struct hal_npu_place at,
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

static int add_desc(struct build *g, uint32_t **d)
{
	if (g->k->desc_count == 1u << 20)
		return npu_fail(ENOTSUP, "%s: kernel '%s' has 2^20 descriptors", g->op,
				g->k->name);
	*d = vec_add(&g->b->descs, 64);
	if (!*d)
		return -ENOMEM;
	g->k->desc_count++;
	return 0;
}

/* Word of the newest descriptor becomes the address of at + more. */
static int relocate(struct build *g, uint32_t word, struct hal_npu_place at,
		    uint64_t more)
{
	const struct place *p = place_at(g->b, at.id - 1);
	struct npu_image_reloc *r = vec_add(&g->b->relocs, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->desc = g->k->desc_count - 1;
	r->word = (uint8_t)word;
	r->kind = (uint8_t)p->kind;
	r->arg = (uint16_t)p->arg;
	r->offset = (uint32_t)((p->kind == NPU_PLACE_ARG ? 0 : p->at) + at.offset + more);
	g->k->reloc_count++;
	return 0;
}

#define RELOCATE(g, field, at, more) relocate(g, NPU_DESC_##field##_WORD, at, more)

static int check_range(struct build *g, const char *field, int64_t value, int64_t min,
		       int64_t max)
{
	if (value >= min && value <= max)
		return 0;
	return npu_fail(EINVAL, "%s: .%s is %lld; %lld to %lld", g->op, field,
			(long long)value, (long long)min, (long long)max);
}

/* What the caller may mean but the machine's fields cannot hold. */
static int check_limit(struct build *g, const char *field, uint64_t value, uint64_t max)
{
	if (!value)
		return npu_fail(EINVAL, "%s: .%s is 0", g->op, field);
	if (value > max)
		return npu_fail(
			ENOTSUP, "%s: .%s is %llu, the machine takes at most %llu", g->op,
			field, (unsigned long long)value, (unsigned long long)max);
	return 0;
}

struct limit {
	const char *field;
	uint64_t value, max;
};

static int check_limits(struct build *g, const struct limit *l, size_t count)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++)
		rc = check_limit(g, l[i].field, l[i].value, l[i].max);
	return rc;
}

/* ---- requantization --------------------------------------------------------------- */

/* How the outputs of an operation are made: filled once, used by each of its descriptors.
 */
struct out {
	uint32_t flags;             /* bits of descriptor word 0 */
	uint32_t mult, shift;       /* with F_NOPARAM */
	struct hal_npu_place table; /* without */
	uint32_t word14;            /* ZPO, AMIN, AMAX */
	uint32_t size;              /* bytes an output */
};

static int check_requant(struct build *g, const struct hal_npu_requant *r, uint32_t n)
{
	int rc = 0;

	if (!r->mult)
		return 0;
	if (!r->shift)
		return npu_fail(EINVAL, "%s: .out.shift is NULL and .out.mult is not",
				g->op);
	if (r->per_channel > 1)
		return npu_fail(EINVAL, "%s: .out.per_channel is %u; 0 or 1", g->op,
				r->per_channel);
	rc = check_range(g, "out.zero_point", r->zero_point, -128, 127);
	if (!rc)
		rc = check_range(g, "out.min", r->min, -128, 127);
	if (!rc)
		rc = check_range(g, "out.max", r->max, r->min, 127);
	for (uint32_t i = 0; !rc && i < (r->per_channel ? n : 1); i++) {
		rc = check_range(g, "out.mult[]", r->mult[i], 0, INT32_MAX);
		if (!rc)
			rc = check_range(g, "out.shift[]", r->shift[i], -31, 30);
	}
	return rc;
}

static int fill_table(struct build *g, const struct hal_npu_requant *r, uint32_t n,
		      struct hal_npu_place *table)
{
	uint8_t *at;
	int rc = add_const(g->b, (uint64_t)n * 16, &table->id, &at);

	for (uint32_t i = 0; !rc && i < n; i++) {
		uint32_t of = r->per_channel ? i : 0;
		int32_t row[4] = {r->bias ? r->bias[i] : 0, r->mult ? r->mult[of] : 0,
				  r->mult ? r->shift[of] : 0, 0};

		memcpy(at + (size_t)i * 16, row, 16);
	}
	return rc;
}

static int make_out(struct build *g, const struct hal_npu_requant *r, uint32_t n,
		    struct out *o)
{
	uint32_t d[16] = {0};
	int rc = check_requant(g, r, n);

	if (rc)
		return rc;
	memset(o, 0, sizeof(*o));
	o->size = r->mult ? 1 : 4;
	NPU_SET(d, F_OUT32, !r->mult);
	NPU_SET(d, F_NOPARAM, !r->bias && (!r->mult || !r->per_channel));
	if (r->mult) {
		NPU_SET(d, ZPO, r->zero_point);
		NPU_SET(d, AMIN, r->min);
		NPU_SET(d, AMAX, r->max);
	}
	o->flags = d[0];
	o->word14 = d[14];
	if (!NPU_GET(d, F_NOPARAM))
		return fill_table(g, r, n, &o->table);
	o->mult = r->mult ? (uint32_t)r->mult[0] : 0;
	o->shift = r->mult ? (uint32_t)r->shift[0] : 0;
	return 0;
}

/* Output channels from first on. */
static int set_out(struct build *g, uint32_t *d, const struct out *o, uint32_t first)
{
	d[0] |= o->flags;
	d[14] = o->word14;
	if (!NPU_GET(d, F_NOPARAM))
		return RELOCATE(g, ADDR_P, o->table, (uint64_t)first * 16);
	NPU_SET(d, QMULT, o->mult);
	NPU_SET(d, QSHIFT, o->shift);
	return 0;
}

/* ---- panels and the scratchpad ---------------------------------------------------- */

/* Distance of input rows in the scratchpad: rows either keep memory's own distance (what
 * is between them is less than a line), or no two share a line and each keeps its place
 * in it. */
static uint64_t scratchpad_pitch(uint64_t row_bytes, uint64_t lda)
{
	uint64_t least = row_bytes + 64;

	if (lda >= row_bytes && lda - row_bytes < 64)
		return lda;
	return least + ((lda - least) & 63u);
}

/* The input of t output pixels, wherever they start, in lines of ow. */
static uint64_t panel_rows(uint32_t t, uint32_t ow, uint32_t oh, uint32_t sy,
			   uint32_t reach, uint32_t h)
{
	uint64_t lines = ((uint64_t)t + ow - 2) / ow + 1;
	uint64_t rows;

	if (lines > oh)
		lines = oh;
	rows = (lines - 1) * sy + reach;
	return rows < h ? rows : h;
}

/* The most output pixels at a time whose input leaves room for the next panel's, else the
 * most that fit at all; 0: not even one. */
static uint32_t choose_panel(uint32_t depth, uint32_t ow, uint32_t oh, uint32_t sy,
			     uint32_t reach, uint32_t h, uint64_t row_bytes, uint64_t sps)
{
	uint64_t all = (uint64_t)ow * oh;
	uint32_t most = all < depth ? (uint32_t)all : depth;

	for (uint32_t room = SPAD_USE / 2; room <= SPAD_USE; room += SPAD_USE / 2) {
		for (uint32_t t = most; t; t--) {
			uint64_t rows = panel_rows(t, ow, oh, sy, reach, h);

			if (!rows || (rows - 1) * sps + row_bytes <= room)
				return t;
		}
	}
	return 0;
}

/* ---- GEMM ------------------------------------------------------------------------- */

#define GEMM_ROWS (1u << 19) /* an operation with more rows becomes several */

static int gemm_part(struct build *g, const struct hal_npu_gemm *op, const struct out *o,
		     uint32_t m0, uint32_t m, uint64_t lda, uint64_t ldb, uint64_t ldd)
{
	uint64_t sps = scratchpad_pitch(op->k, lda);
	uint32_t panel = choose_panel(o->size == 4 ? DEPTH_OUT32 : DEPTH, 1, m, 1, 1, m,
				      op->k, sps);
	uint32_t *d;
	int rc = add_desc(g, &d);

	if (rc)
		return rc;
	if (!panel)
		return npu_fail(ENOTSUP,
				"%s: a row of .k = %u bytes is more than the scratchpad",
				g->op, op->k);
	NPU_SET(d, OPCODE, NPU_OP_GEMM);
	NPU_SET(d, DM, m);
	NPU_SET(d, DN, op->n);
	NPU_SET(d, CIN, op->k);
	NPU_SET(d, OW, 1);
	NPU_SET(d, PANEL, panel);
	NPU_SET(d, LDA, lda);
	NPU_SET(d, LDB, ldb);
	NPU_SET(d, LDD, ldd);
	NPU_SET(d, ZPA, op->a_zero);
	NPU_SET(d, ZPB, op->b_zero);
	NPU_SET(d, SPS, sps);
	rc = set_out(g, d, o, 0);
	if (!rc)
		rc = RELOCATE(g, ADDR_A, op->a, (uint64_t)m0 * lda);
	if (!rc)
		rc = RELOCATE(g, ADDR_B, op->b, 0);
	if (!rc)
		rc = RELOCATE(g, ADDR_D, op->d, (uint64_t)m0 * ldd);
	return rc;
}

static int check_stride(struct build *g, const char *field, uint64_t stride,
			uint64_t least)
{
	if (stride >= least)
		return 0;
	return npu_fail(EINVAL, "%s: .%s is %llu, a row has %llu bytes", g->op, field,
			(unsigned long long)stride, (unsigned long long)least);
}

static int check_gemm(struct build *g, const struct hal_npu_gemm *op, uint64_t lda,
		      uint64_t ldb, uint64_t ldd, uint32_t size)
{
	const struct limit limits[] = {
		{"m", op->m, UINT32_MAX},      {"n", op->n, U16_MAX},
		{"k", op->k, K_MAX},           {"b_stride", ldb, U16_MAX},
		{"d_stride", ldd, UINT32_MAX},
	};
	int rc = check_limits(g, limits, sizeof(limits) / sizeof(limits[0]));

	if (!rc)
		rc = check_range(g, "a_zero", op->a_zero, -128, 127);
	if (!rc)
		rc = check_range(g, "b_zero", op->b_zero, -128, 127);
	if (!rc)
		rc = check_stride(g, "a_stride", lda, op->k);
	if (!rc)
		rc = check_stride(g, "b_stride", ldb, op->n);
	if (!rc)
		rc = check_stride(g, "d_stride", ldd, (uint64_t)op->n * size);
	if (!rc)
		rc = check_place(g, "a", op->a, (op->m - 1) * lda + op->k);
	if (!rc)
		rc = check_place(g, "b", op->b, (op->k - 1) * ldb + op->n);
	if (!rc)
		rc = check_out(g, "d", op->d, (op->m - 1) * ldd + (uint64_t)op->n * size);
	if (!rc && size == 4)
		rc = ldd % 4 ? npu_fail(EINVAL,
					"%s: .d_stride %llu is not a multiple of 4",
					g->op, (unsigned long long)ldd)
			     : need_align(g, "d", op->d, 4);
	return rc;
}

HAL_API int hal_npu_gemm(struct hal_npu_builder *b, const struct hal_npu_gemm *op)
{
	uint64_t lda, ldb, ldd;
	uint32_t size;
	struct build g;
	struct out o;
	int rc = begin(&g, b, "hal_npu_gemm", op, op ? op->size : 0, sizeof(*op));

	if (rc)
		return rc;
	size = op->out.mult ? 1 : 4;
	lda = op->a_stride ? op->a_stride : op->k;
	ldb = op->b_stride ? op->b_stride : op->n;
	ldd = op->d_stride ? op->d_stride : (uint64_t)op->n * size;
	rc = check_gemm(&g, op, lda, ldb, ldd, size);
	if (!rc)
		rc = make_out(&g, &op->out, op->n, &o);
	for (uint64_t m0 = 0; !rc && m0 < op->m; m0 += GEMM_ROWS) {
		uint64_t m = op->m - m0 < GEMM_ROWS ? op->m - m0 : GEMM_ROWS;

		rc = gemm_part(&g, op, &o, (uint32_t)m0, (uint32_t)m, lda, ldb, ldd);
	}
	if (!rc)
		g.k->macs += (uint64_t)op->m * op->n * op->k;
	return end(&g, rc);
}

/* ---- windows over an image: convolution and pooling ------------------------------- */

struct window {
	uint32_t h, w, c, oh, ow;
	uint32_t kh, kw, sy, sx, dy, dx, pt, pl;
};

static int check_window(struct build *g, const struct window *v)
{
	const struct limit limits[] = {
		{"h", v->h, U16_MAX},
		{"w", v->w, U16_MAX},
		{"c", v->c, U16_MAX},
		{"oh", v->oh, UINT32_MAX},
		{"ow", v->ow, U16_MAX},
		{"kh", v->kh, 255},
		{"kw", v->kw, 255},
		{"stride_h", v->sy, 15},
		{"stride_w", v->sx, 15},
		{"dilation_h", v->dy, 15},
		{"dilation_w", v->dx, 15},
		{"pad_top + 1", (uint64_t)v->pt + 1, 256},
		{"pad_left + 1", (uint64_t)v->pl + 1, 256},
	};
	int rc = check_limits(g, limits, sizeof(limits) / sizeof(limits[0]));

	if (rc)
		return rc;
	if ((uint64_t)(v->oh - 1) * v->sy >= (uint64_t)v->h + v->pt)
		return npu_fail(EINVAL, "%s: .oh is %u, the last rows lie below .h = %u",
				g->op, v->oh, v->h);
	if ((uint64_t)(v->ow - 1) * v->sx >= (uint64_t)v->w + v->pl)
		return npu_fail(EINVAL,
				"%s: .ow is %u, the last columns lie beyond .w = %u",
				g->op, v->ow, v->w);
	return 0;
}

/* A block of output pixels: whole lines, or a piece of one line. */
struct block {
	uint32_t oy, oh, ox, ow; /* first and count */
	uint32_t h, w, pt, pl;   /* the input it sees */
	uint64_t a;              /* where that begins, bytes */
	uint64_t lda, sps;
	uint32_t panel;
};

/* Input rows or columns that outputs first..first+count-1 can reach: the first of them
 * (clipped at 0), how many, and the padding in front. */
static void reach(uint32_t first, uint32_t count, uint32_t stride, uint32_t pad,
		  uint32_t span, uint32_t all, uint32_t *from, uint32_t *len,
		  uint32_t *front)
{
	int64_t lo = (int64_t)first * stride - pad;
	int64_t hi = lo + (int64_t)(count - 1) * stride + span;

	*front = lo < 0 ? (uint32_t)-lo : 0;
	if (lo < 0)
		lo = 0;
	if (hi > all)
		hi = all;
	*from = (uint32_t)lo;
	*len = hi > lo ? (uint32_t)(hi - lo) : 0;
}

/* Fills the input side of blk and chooses its panel; 0 when it does not fit. */
static uint32_t plan_block(const struct window *v, uint32_t cin, uint32_t depth,
			   struct block *blk)
{
	uint32_t rows = (v->kh - 1) * v->dy + 1, cols = (v->kw - 1) * v->dx + 1;
	uint32_t y, x;
	uint64_t row_bytes;

	reach(blk->oy, blk->oh, v->sy, v->pt, rows, v->h, &y, &blk->h, &blk->pt);
	reach(blk->ox, blk->ow, v->sx, v->pl, cols, v->w, &x, &blk->w, &blk->pl);
	if (blk->ow == v->ow) { /* whole lines: whole rows, whose pitch needs no gap */
		x = 0;
		blk->w = v->w;
		blk->pl = v->pl;
	}
	blk->lda = (uint64_t)v->w * v->c;
	blk->a = y * blk->lda + (uint64_t)x * v->c;
	row_bytes = blk->w ? (uint64_t)(blk->w - 1) * v->c + cin : 0;
	blk->sps = blk->w == v->w ? blk->lda : scratchpad_pitch(row_bytes, blk->lda);
	blk->panel = choose_panel(depth, blk->ow, blk->oh, v->sy, rows, blk->h, row_bytes,
				  blk->sps);
	if (blk->sps >= 1u << NPU_DESC_SPS_W) {
		if (blk->h > 1)
			blk->panel = 0;
		blk->sps &= 63u; /* one row: no pitch needed but its place in a line */
	}
	return blk->panel;
}

typedef int (*block_fn)(struct build *g, const struct block *blk, void *user);

/* Pieces of one output line, each as wide as its input fits. */
static int split_line(struct build *g, const struct window *v, uint32_t cin,
		      uint32_t depth, uint32_t oy, block_fn fn, void *user)
{
	struct block blk = {.oy = oy, .oh = 1};
	int rc = 0;

	for (uint32_t width; !rc && blk.ox < v->ow; blk.ox += width) {
		for (width = v->ow - blk.ox; width; width /= 2) {
			blk.ow = width;
			if (plan_block(v, cin, depth, &blk))
				break;
		}
		if (!width)
			return npu_fail(
				ENOTSUP,
				"%s: the input of one output, %u rows of %u x %u bytes, "
				"is more than the scratchpad's %u",
				g->op, (v->kh - 1) * v->dy + 1, (v->kw - 1) * v->dx + 1,
				v->c, SPAD_USE);
		rc = fn(g, &blk, user);
	}
	return rc;
}

/* Cuts the output into blocks that one descriptor each can do. */
static int each_block(struct build *g, const struct window *v, uint32_t cin,
		      uint32_t depth, block_fn fn, void *user)
{
	uint32_t lines = DM_MAX / v->ow;
	struct block blk = {.ow = v->ow};
	int rc = 0;

	for (uint32_t oy = 0; !rc && oy < v->oh; oy += blk.oh) {
		blk.oy = oy;
		blk.oh = v->oh - oy < lines ? v->oh - oy : lines;
		if (plan_block(v, cin, depth, &blk)) {
			rc = fn(g, &blk, user);
			continue;
		}
		for (uint32_t i = 0; !rc && i < blk.oh; i++)
			rc = split_line(g, v, cin, depth, oy + i, fn, user);
	}
	return rc;
}

static void set_window(uint32_t *d, const struct window *v, const struct block *blk)
{
	NPU_SET(d, DM, blk->oh * blk->ow);
	NPU_SET(d, OW, blk->ow);
	NPU_SET(d, PANEL, blk->panel);
	NPU_SET(d, H, blk->h);
	NPU_SET(d, W, blk->w);
	NPU_SET(d, LDA, blk->lda);
	NPU_SET(d, PIX, v->c);
	NPU_SET(d, KH, v->kh);
	NPU_SET(d, KW, v->kw);
	NPU_SET(d, SY, v->sy);
	NPU_SET(d, SX, v->sx);
	NPU_SET(d, DY, v->dy);
	NPU_SET(d, DX, v->dx);
	NPU_SET(d, PT, blk->pt);
	NPU_SET(d, PL, blk->pl);
	NPU_SET(d, SPS, blk->sps);
}

/* ---- convolution ------------------------------------------------------------------ */

struct conv {
	const struct hal_npu_conv *op;
	struct window v;
	struct out o;
	struct hal_npu_place weights; /* groups one behind the other */
	uint32_t cin, n;              /* of a group */
	uint32_t k;
	uint64_t group_bytes; /* weights of a group */
	uint64_t ldd;
	uint32_t group;
};

/* OHWI [n][kh][kw][c] -> a group at a time, in blocks of 16 output channels, each block
 * [k = (ky, kx, c)][16]: a fold's weights lie together whatever the rectangle (F_BLOCK).
 */
static int pack_weights(struct build *g, struct conv *c)
{
	uint8_t *at;
	int rc = add_const(g->b, c->group_bytes * c->op->groups, &c->weights.id, &at);

	if (rc)
		return rc;
	for (uint32_t n = 0; n < c->op->n; n++) {
		uint32_t j = n % c->n;
		uint8_t *column = at + (n / c->n) * c->group_bytes +
				  (uint64_t)(j / 16) * c->k * 16 + j % 16;

		for (uint32_t k = 0; k < c->k; k++)
			column[(uint64_t)k * 16] =
				(uint8_t)c->op->weights[(uint64_t)n * c->k + k];
	}
	return 0;
}

static int conv_block(struct build *g, const struct block *blk, void *user)
{
	const struct conv *c = user;
	uint64_t m0 = (uint64_t)blk->oy * c->v.ow + blk->ox;
	uint32_t *d;
	int rc = add_desc(g, &d);

	if (rc)
		return rc;
	NPU_SET(d, OPCODE, NPU_OP_CONV);
	set_window(d, &c->v, blk);
	NPU_SET(d, DN, c->n);
	NPU_SET(d, CIN, c->cin);
	NPU_SET(d, F_BLOCK, 1);
	NPU_SET(d, LDD, c->ldd);
	NPU_SET(d, ZPA, c->op->a_zero);
	rc = set_out(g, d, &c->o, c->group * c->n);
	if (!rc)
		rc = RELOCATE(g, ADDR_A, c->op->a, blk->a + (uint64_t)c->group * c->cin);
	if (!rc)
		rc = RELOCATE(g, ADDR_B, c->weights, c->group * c->group_bytes);
	if (!rc)
		rc = RELOCATE(g, ADDR_D, c->op->d,
			      m0 * c->ldd + (uint64_t)c->group * c->n * c->o.size);
	return rc;
}

static int check_conv(struct build *g, struct conv *c)
{
	const struct hal_npu_conv *op = c->op;
	uint64_t pixels = (uint64_t)op->oh * op->ow, k;
	uint32_t size = op->out.mult ? 1 : 4;
	int rc = check_window(g, &c->v);

	if (!rc)
		rc = check_limit(g, "n", op->n, U16_MAX - 15);
	if (rc)
		return rc;
	if (!op->groups || op->c % op->groups || op->n % op->groups)
		return npu_fail(EINVAL,
				"%s: .groups is %u; it must divide .c = %u and .n = %u",
				g->op, op->groups, op->c, op->n);
	if (!op->weights)
		return npu_fail(EINVAL, "%s: .weights is NULL", g->op);
	c->cin = op->c / op->groups;
	c->n = op->n / op->groups;
	k = (uint64_t)op->kh * op->kw * c->cin;
	if (k > K_MAX)
		return npu_fail(ENOTSUP, "%s: kh * kw * c / groups is %llu, at most %u",
				g->op, (unsigned long long)k, K_MAX);
	c->k = (uint32_t)k;
	c->group_bytes = (uint64_t)((c->n + 15u) & ~15u) * c->k;
	c->ldd = op->d_stride ? op->d_stride : (uint64_t)op->n * size;
	rc = check_range(g, "a_zero", op->a_zero, -128, 127);
	if (!rc)
		rc = check_stride(g, "d_stride", c->ldd, (uint64_t)op->n * size);
	if (!rc)
		rc = check_place(g, "a", op->a, (uint64_t)op->h * op->w * op->c);
	if (!rc)
		rc = check_out(g, "d", op->d,
			       (pixels - 1) * c->ldd + (uint64_t)op->n * size);
	if (!rc && size == 4)
		rc = c->ldd % 4
			     ? npu_fail(EINVAL, "%s: .d_stride %u is not a multiple of 4",
					g->op, op->d_stride)
			     : need_align(g, "d", op->d, 4);
	return rc;
}

HAL_API int hal_npu_conv(struct hal_npu_builder *b, const struct hal_npu_conv *op)
{
	struct conv c = {.op = op};
	struct build g;
	int rc = begin(&g, b, "hal_npu_conv", op, op ? op->size : 0, sizeof(*op));

	if (rc)
		return rc;
	c.v = (struct window){.h = op->h,
			      .w = op->w,
			      .c = op->c,
			      .oh = op->oh,
			      .ow = op->ow,
			      .kh = op->kh,
			      .kw = op->kw,
			      .sy = op->stride_h,
			      .sx = op->stride_w,
			      .dy = op->dilation_h,
			      .dx = op->dilation_w,
			      .pt = op->pad_top,
			      .pl = op->pad_left};
	rc = check_conv(&g, &c);
	if (!rc)
		rc = make_out(&g, &op->out, op->n, &c.o);
	if (!rc)
		rc = pack_weights(&g, &c);
	for (; !rc && c.group < op->groups; c.group++)
		rc = each_block(&g, &c.v, c.cin, c.o.size == 4 ? DEPTH_OUT32 : DEPTH,
				conv_block, &c);
	if (!rc)
		g.k->macs += (uint64_t)op->oh * op->ow * op->n * c.k;
	return end(&g, rc);
}

/* ---- pooling ---------------------------------------------------------------------- */

struct pool {
	const struct hal_npu_pool *op;
	struct window v;
};

static int pool_block(struct build *g, const struct block *blk, void *user)
{
	const struct pool *p = user;
	const struct hal_npu_pool *op = p->op;
	uint64_t m0 = (uint64_t)blk->oy * op->ow + blk->ox;
	uint32_t *d;
	int rc = add_desc(g, &d);

	if (rc)
		return rc;
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, NPU_VOP_MAXPOOL);
	set_window(d, &p->v, blk);
	NPU_SET(d, CIN, op->c);
	NPU_SET(d, LDD, op->c);
	NPU_SET(d, AMIN, op->min);
	NPU_SET(d, AMAX, op->max);
	rc = RELOCATE(g, ADDR_A, op->a, blk->a);
	if (!rc)
		rc = RELOCATE(g, ADDR_D, op->d, m0 * op->c);
	return rc;
}

HAL_API int hal_npu_maxpool(struct hal_npu_builder *b, const struct hal_npu_pool *op)
{
	struct pool p = {.op = op};
	struct build g;
	int rc = begin(&g, b, "hal_npu_maxpool", op, op ? op->size : 0, sizeof(*op));

	if (rc)
		return rc;
	p.v = (struct window){.h = op->h,
			      .w = op->w,
			      .c = op->c,
			      .oh = op->oh,
			      .ow = op->ow,
			      .kh = op->kh,
			      .kw = op->kw,
			      .sy = op->stride_h,
			      .sx = op->stride_w,
			      .dy = 1,
			      .dx = 1,
			      .pt = op->pad_top,
			      .pl = op->pad_left};
	rc = check_window(&g, &p.v);
	/* Each window then holds at least one real pixel. */
	if (!rc)
		rc = check_range(&g, "pad_top", op->pad_top, 0, (int64_t)op->kh - 1);
	if (!rc)
		rc = check_range(&g, "pad_left", op->pad_left, 0, (int64_t)op->kw - 1);
	if (!rc)
		rc = check_range(&g, "min", op->min, -128, 127);
	if (!rc)
		rc = check_range(&g, "max", op->max, op->min, 127);
	if (!rc)
		rc = check_place(&g, "a", op->a, (uint64_t)op->h * op->w * op->c);
	if (!rc)
		rc = check_out(&g, "d", op->d, (uint64_t)op->oh * op->ow * op->c);
	if (!rc)
		rc = each_block(&g, &p.v, op->c, DEPTH, pool_block, &p);
	return end(&g, rc);
}

/* ---- element by element ----------------------------------------------------------- */

/* bytes in a row become rows of ROW_PIECE and a rest: fn is called once or twice. */
struct piece {
	uint64_t at;
	uint32_t rows, cols;
};

static uint32_t cut_pieces(uint32_t bytes, struct piece out[2])
{
	uint32_t rows = bytes / ROW_PIECE, n = 0;

	if (bytes <= U16_MAX) {
		out[0] = (struct piece){0, 1, bytes};
		return 1;
	}
	out[n++] = (struct piece){0, rows, ROW_PIECE};
	if (bytes % ROW_PIECE)
		out[n++] =
			(struct piece){(uint64_t)rows * ROW_PIECE, 1, bytes % ROW_PIECE};
	return n;
}

/* A VEC descriptor over a dense piece. */
static int vec_desc(struct build *g, uint32_t vop, const struct piece *p, uint32_t **desc)
{
	uint32_t *d;
	int rc = add_desc(g, &d);

	if (rc)
		return rc;
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, vop);
	NPU_SET(d, DM, p->rows);
	NPU_SET(d, VCOLS, p->cols);
	NPU_SET(d, LDA, p->cols);
	NPU_SET(d, LDD, p->cols);
	*desc = d;
	return 0;
}

static int add_piece(struct build *g, const struct hal_npu_add *op, const struct piece *p)
{
	uint32_t *d;
	int rc = vec_desc(g, NPU_VOP_ADD, p, &d);

	if (rc)
		return rc;
	NPU_SET(d, VLDB, p->cols);
	NPU_SET(d, VMULT1, op->a_mult);
	NPU_SET(d, VMULT2, op->b_mult);
	NPU_SET(d, VMULTO, op->d_mult);
	NPU_SET(d, VSHIFT1, op->a_shift);
	NPU_SET(d, VSHIFT2, op->b_shift);
	NPU_SET(d, VSHIFTO, op->d_shift);
	NPU_SET(d, VLSHIFT, op->left_shift);
	NPU_SET(d, VZP1, op->a_zero);
	NPU_SET(d, VZP2, op->b_zero);
	NPU_SET(d, ZPO, op->d_zero);
	NPU_SET(d, AMIN, op->min);
	NPU_SET(d, AMAX, op->max);
	rc = RELOCATE(g, ADDR_A, op->a, p->at);
	if (!rc)
		rc = RELOCATE(g, ADDR_B, op->b, p->at);
	if (!rc)
		rc = RELOCATE(g, ADDR_D, op->d, p->at);
	return rc;
}

struct range {
	const char *field;
	int64_t value, min, max;
};

static int check_ranges(struct build *g, const struct range *r, size_t count)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++)
		rc = check_range(g, r[i].field, r[i].value, r[i].min, r[i].max);
	return rc;
}

static int check_add(struct build *g, const struct hal_npu_add *op)
{
	const struct range ranges[] = {
		{"bytes", op->bytes, 1, UINT32_MAX},
		{"a_zero", op->a_zero, -128, 127},
		{"b_zero", op->b_zero, -128, 127},
		{"d_zero", op->d_zero, -128, 127},
		{"a_mult", op->a_mult, 0, INT32_MAX},
		{"b_mult", op->b_mult, 0, INT32_MAX},
		{"d_mult", op->d_mult, 0, INT32_MAX},
		{"a_shift", op->a_shift, -31, 0},
		{"b_shift", op->b_shift, -31, 0},
		{"d_shift", op->d_shift, -31, 0},
		{"left_shift", op->left_shift, 0, 22}, /* 9 bits and a sign stay 32 */
		{"min", op->min, -128, 127},
		{"max", op->max, op->min, 127},
	};
	int rc = check_ranges(g, ranges, sizeof(ranges) / sizeof(ranges[0]));

	if (!rc)
		rc = check_place(g, "a", op->a, op->bytes);
	if (!rc)
		rc = check_place(g, "b", op->b, op->bytes);
	if (!rc)
		rc = check_out(g, "d", op->d, op->bytes);
	return rc;
}

HAL_API int hal_npu_add(struct hal_npu_builder *b, const struct hal_npu_add *op)
{
	struct piece p[2];
	struct build g;
	int rc = begin(&g, b, "hal_npu_add", op, op ? op->size : 0, sizeof(*op));

	if (rc)
		return rc;
	rc = check_add(&g, op);
	if (!rc) {
		uint32_t n = cut_pieces(op->bytes, p);

		for (uint32_t i = 0; !rc && i < n; i++)
			rc = add_piece(&g, op, &p[i]);
	}
	return end(&g, rc);
}

static int relu_piece(struct build *g, const struct hal_npu_relu *op,
		      const struct piece *p)
{
	uint32_t *d;
	int rc = vec_desc(g, NPU_VOP_RELU, p, &d);

	if (rc)
		return rc;
	NPU_SET(d, VMULT1, op->mult);
	NPU_SET(d, VSHIFT1, op->shift);
	NPU_SET(d, VZP1, op->a_zero);
	NPU_SET(d, ZPO, op->d_zero);
	NPU_SET(d, AMIN, op->min);
	NPU_SET(d, AMAX, op->max);
	rc = RELOCATE(g, ADDR_A, op->a, p->at);
	if (!rc)
		rc = RELOCATE(g, ADDR_D, op->d, p->at);
	return rc;
}

static int check_relu(struct build *g, const struct hal_npu_relu *op)
{
	const struct range ranges[] = {
		{"bytes", op->bytes, 1, UINT32_MAX}, {"a_zero", op->a_zero, -128, 127},
		{"d_zero", op->d_zero, -128, 127},   {"mult", op->mult, 0, INT32_MAX},
		{"shift", op->shift, -31, 22},       {"min", op->min, -128, 127},
		{"max", op->max, op->min, 127},
	};
	int rc = check_ranges(g, ranges, sizeof(ranges) / sizeof(ranges[0]));

	if (!rc)
		rc = check_place(g, "a", op->a, op->bytes);
	if (!rc)
		rc = check_out(g, "d", op->d, op->bytes);
	return rc;
}

HAL_API int hal_npu_relu(struct hal_npu_builder *b, const struct hal_npu_relu *op)
{
	struct piece p[2];
	struct build g;
	int rc = begin(&g, b, "hal_npu_relu", op, op ? op->size : 0, sizeof(*op));

	if (rc)
		return rc;
	rc = check_relu(&g, op);
	if (!rc) {
		uint32_t n = cut_pieces(op->bytes, p);

		for (uint32_t i = 0; !rc && i < n; i++)
			rc = relu_piece(&g, op, &p[i]);
	}
	return end(&g, rc);
}

/* ---- copy and fill ---------------------------------------------------------------- */

static int copy_piece(struct build *g, const struct hal_npu_copy *op, uint32_t row,
		      uint32_t rows, uint32_t col, uint32_t cols, uint64_t lda,
		      uint64_t ldd)
{
	uint32_t *d;
	int rc = add_desc(g, &d);

	if (rc)
		return rc;
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, NPU_VOP_COPY);
	NPU_SET(d, DM, rows);
	NPU_SET(d, VCOLS, cols);
	NPU_SET(d, LDA, lda);
	NPU_SET(d, LDD, ldd);
	rc = RELOCATE(g, ADDR_A, op->a, row * lda + col);
	if (!rc)
		rc = RELOCATE(g, ADDR_D, op->d, row * ldd + col);
	return rc;
}

static int copy_all(struct build *g, const struct hal_npu_copy *op, uint64_t lda,
		    uint64_t ldd)
{
	uint32_t cols, rows;
	int rc = 0;

	for (uint32_t c = 0; !rc && c < op->bytes; c += cols) {
		cols = op->bytes - c <= U16_MAX ? op->bytes - c : ROW_PIECE;
		for (uint32_t r = 0; !rc && r < op->rows; r += rows) {
			rows = op->rows - r < DM_MAX ? op->rows - r : DM_MAX;
			rc = copy_piece(g, op, r, rows, c, cols, lda, ldd);
		}
	}
	return rc;
}

HAL_API int hal_npu_copy(struct hal_npu_builder *b, const struct hal_npu_copy *op)
{
	uint64_t lda, ldd;
	struct build g;
	int rc = begin(&g, b, "hal_npu_copy", op, op ? op->size : 0, sizeof(*op));

	if (rc)
		return rc;
	lda = op->a_stride ? op->a_stride : op->bytes;
	ldd = op->d_stride ? op->d_stride : op->bytes;
	rc = check_range(&g, "rows", op->rows, 1, UINT32_MAX);
	if (!rc)
		rc = check_range(&g, "bytes", op->bytes, 1, UINT32_MAX);
	if (!rc)
		rc = check_stride(&g, "d_stride", ldd, op->bytes);
	if (!rc)
		rc = check_place(&g, "a", op->a, (op->rows - 1) * lda + op->bytes);
	if (!rc)
		rc = check_out(&g, "d", op->d, (op->rows - 1) * ldd + op->bytes);
	if (!rc)
		rc = copy_all(&g, op, lda, ldd);
	return end(&g, rc);
}

HAL_API int hal_npu_fill(struct hal_npu_builder *b, struct hal_npu_place d,
			 uint32_t bytes, uint32_t pattern)
{
	struct piece p[2];
	struct build g;
	int rc = begin(&g, b, "hal_npu_fill", b, 0, 0);

	if (rc)
		return rc;
	if (!bytes || bytes % 4)
		rc = npu_fail(EINVAL, "%s: %u bytes; a multiple of 4, not 0", g.op,
			      bytes);
	if (!rc)
		rc = check_out(&g, "d", d, bytes);
	if (!rc)
		rc = need_align(&g, "d", d, 4);
	if (!rc) {
		uint32_t n = cut_pieces(bytes, p);

		for (uint32_t i = 0; !rc && i < n; i++) {
			uint32_t *desc;

			rc = vec_desc(&g, NPU_VOP_FILL, &p[i], &desc);
			if (rc)
				break;
			NPU_SET(desc, VPATTERN, pattern);
			rc = RELOCATE(&g, ADDR_D, d, p[i].at);
		}
	}
	return end(&g, rc);
}

/* ---- image ------------------------------------------------------------------------ */

static void put(uint8_t **at, const struct vec *v)
{
	if (v->used)
		memcpy(*at, v->data, v->used);
	*at += v->used;
}

HAL_API int hal_npu_build(struct hal_npu_builder *b, void **image, size_t *size)
{
	struct npu_image_header h = {.magic = NPU_IMAGE_MAGIC,
				     .version = NPU_IMAGE_VERSION};
	uint8_t *out, *at;
	uint64_t bytes;

	if (!b || !image || !size)
		return npu_fail(EINVAL, "hal_npu_build: builder, image or size is NULL");
	if (!b->kernels.used)
		return npu_fail(EINVAL, "hal_npu_build: the program has no kernel");
	bytes = sizeof(h) + b->kernels.used + b->args.used + b->relocs.used +
		b->descs.used + b->data.used;
	if (bytes > UINT32_MAX)
		return npu_fail(ENOTSUP,
				"hal_npu_build: an image of %llu bytes; less than 2^32",
				(unsigned long long)bytes);
	h.bytes = (uint32_t)bytes;
	h.kernels = COUNT(b->kernels, struct npu_image_kernel);
	h.args = COUNT(b->args, struct npu_image_arg);
	h.relocs = COUNT(b->relocs, struct npu_image_reloc);
	h.descs = (uint32_t)(b->descs.used / 64);
	h.const_bytes = b->data.used;
	h.scratch_bytes = b->scratch;
	out = malloc(bytes);
	if (!out)
		return npu_fail(ENOMEM, "no memory for an image of %llu bytes",
				(unsigned long long)bytes);
	memcpy(out, &h, sizeof(h));
	at = out + sizeof(h);
	put(&at, &b->kernels);
	put(&at, &b->args);
	put(&at, &b->relocs);
	put(&at, &b->descs);
	put(&at, &b->data);
	h.checksum = npu_image_crc(out, bytes);
	memcpy(out, &h, sizeof(h));
	*image = out;
	*size = bytes;
	return 0;
}

HAL_API void hal_npu_image_free(void *image)
{
	free(image);
}
