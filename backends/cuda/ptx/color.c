/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX_COLOR: accesses whose addresses lie in a window become those of coloured memory, by
 * an index translation.  See color.h; after Zhang et al., SGDRC, Fig. 13 and appendix
 * A.2, where a granule's place is the same in each group.
 */
#define _GNU_SOURCE
#include "color.h"

#include <errno.h>
#include <string.h>

#include "write.h"

/* ---- maps -------------------------------------------------------------------------------- */

static uint32_t parity(uint64_t v)
{
	return (uint32_t)__builtin_parityll(v);
}

/* Invert the square matrix of rows a over bits, of n rows.  False: there is no inverse.
 */
static bool invert(uint32_t n, uint32_t a[PTX_COLOR_MASKS],
		   uint32_t inverse[PTX_COLOR_MASKS])
{
	uint32_t i, j, t;

	for (i = 0; i < n; i++)
		inverse[i] = 1u << i;
	for (i = 0; i < n; i++) {
		for (j = i; j < n && !(a[j] >> i & 1); j++)
			;
		if (j == n)
			return false;
		t = a[i], a[i] = a[j], a[j] = t;
		t = inverse[i], inverse[i] = inverse[j], inverse[j] = t;
		for (j = 0; j < n; j++)
			if (j != i && a[j] >> i & 1) {
				a[j] ^= a[i];
				inverse[j] ^= inverse[i];
			}
	}
	return true;
}

/* 0: there is none. */
static uint32_t inverse_of(uint32_t v, uint32_t q)
{
	uint32_t i;

	for (i = 1; i < q; i++)
		if (v * i % q == 1)
			return i;
	return 0;
}

static int make_sum(const struct ptx_color_map *map, uint32_t sum, struct ptx_color *c,
		    struct ptx_colors *colors, char why[PTX_WHY])
{
	uint32_t inverse, i;

	c->q = 1;
	if (!map->q)
		return 0;
	inverse = map->digits ? inverse_of(map->weight[0] % map->q, map->q) : 0;
	if (!inverse)
		return ptx_fail(
			why, ENOTSUP,
			"weight %u of the first digit has no inverse modulo %u: not "
			"every group of granules has one of each channel",
			map->digits ? map->weight[0] : 0, map->q);
	if (map->shift != map->mask_count)
		return ptx_fail(
			why, ENOTSUP,
			"digits begin at bit %u, but there are %u masks: not every "
			"group of granules has one of each channel",
			map->shift, map->mask_count);
	c->q = map->q;
	c->digits = map->digits - 1;
	for (i = 0; i < c->digits; i++)
		c->weight[i] = (uint8_t)((map->q - map->weight[i + 1] % map->q) *
					 inverse % map->q);
	colors->sum = sum * inverse % map->q;
	return 0;
}

int ptx_color_make(const struct ptx_color_map *map, uint32_t first, uint32_t count,
		   struct ptx_color *color, struct ptx_colors *colors, char why[PTX_WHY])
{
	const uint32_t m = map->mask_count, low = (1u << (m & 31)) - 1;
	uint32_t a[PTX_COLOR_MASKS], inverse[PTX_COLOR_MASKS], i, j;
	struct ptx_color c = {.lows = m};
	uint64_t high;

	colors->target = colors->sum = 0;
	if (m > PTX_COLOR_MASKS || map->q == 1 || map->q > PTX_COLOR_MOST ||
	    map->digits > PTX_COLOR_DIGITS || map->granule < PTX_RANGE_ALIGN ||
	    map->granule > 1u << 30 || map->granule & (map->granule - 1))
		return ptx_fail(
			why, ENOTSUP,
			"a map of %u masks, modulo %u, of granules of %u bytes; the "
			"smallest are %u bytes",
			m, map->q, map->granule, PTX_RANGE_ALIGN);
	if (!count || count & (count - 1) || first % count || count > low + 1 ||
	    first + count > (low + 1) * (map->q ? map->q : 1))
		return ptx_fail(
			why, ENOTSUP,
			"channels %u to %u of %u: their number must be a power of two, "
			"at most %u, and the first a multiple of it",
			first, first + count - 1, (low + 1) * (map->q ? map->q : 1),
			low + 1);
	if ((uint64_t)map->granule << m > UINT32_MAX >> 1)
		return ptx_fail(why, ENOTSUP,
				"%u granules of %u bytes: a group is too large", low + 1,
				map->granule);
	c.bits = (uint32_t)__builtin_ctz(map->granule);
	c.own = (uint32_t)__builtin_ctz(count);
	for (i = 0; i < m; i++)
		a[i] = (uint32_t)map->mask[i] & low;
	if (!invert(m, a, inverse))
		return ptx_fail(
			why, ENOTSUP,
			"the low %u bits of a granule's number do not tell channels "
			"apart: not every group of granules has one of each channel",
			m);
	c.piece = !map->q;
	for (j = 0; j < m; j++) {
		for (high = i = 0; i < m; i++)
			high ^= inverse[j] >> i & 1 ? map->mask[i] >> m : 0;
		c.mask[j] = (uint32_t)(high << c.own) | (inverse[j] & (count - 1));
		c.piece &= c.mask[j] == (j < c.own ? 1u << j : 0);
		colors->target |= parity(inverse[j] & first & low) << j;
	}
	*color = c;
	return make_sum(map, first >> m, color, colors, why);
}

uint64_t ptx_color_place(const struct ptx_color *color, const struct ptx_colors *colors,
			 uint64_t x)
{
	const uint64_t k = x >> color->bits;
	uint64_t group = k >> color->own, rest = group, low = 0, which;
	uint32_t i, d = colors->sum;

	if (color->q > 1) {
		for (i = 0; i < color->digits; i++, rest /= color->q)
			d += (uint32_t)(rest % color->q) * color->weight[i];
		group = group * color->q + d % color->q;
	}
	which = group << color->own | (k & ((1u << color->own) - 1));
	for (i = 0; i < color->lows; i++)
		low |= (uint64_t)parity(which & color->mask[i]) << i;
	return (group << color->lows | (low ^ colors->target)) << color->bits |
	       (x & ((UINT64_C(1) << color->bits) - 1));
}

void ptx_color_window(const struct ptx_color *color, struct ptx_colors *colors,
		      uint64_t from, uint64_t bytes, uint64_t groups)
{
	colors->from = from;
	colors->bytes = bytes;
	colors->moved = groups - from;
	if (color->piece)
		colors->moved += (uint64_t)colors->target << color->bits;
}

uint64_t ptx_color_extent(const struct ptx_color *color, uint64_t bytes)
{
	const uint64_t own = UINT64_C(1) << (color->bits + color->own);
	const uint64_t group = ((uint64_t)color->q << color->lows) << color->bits;

	return (bytes + own - 1) / own * group;
}

/* ---- kernels ----------------------------------------------------------------------------- */

static const char color_begin[] =
	"\n\t.reg .pred %_halc_q;\n"
	"\t.reg .b32 %_halc_k, %_halc_s, %_halc_p, %_halc_u, %_halc_v;\n"
	"\t.reg .b64 %_halc_a, %_halc_o, %_halc_f, %_halc_b, %_halc_m;\n"
	"\tld.param.u64 %_halc_f, [_halc_from];\n"
	"\tld.param.u64 %_halc_b, [_halc_bytes];\n"
	"\tld.param.u64 %_halc_m, [_halc_moved];\n";

/* Of the group in _halc_u, which is to have another number: its first digit in base q is
 * by the others. */
static void put_sum(struct ptx_writer *w)
{
	const struct ptx_color *c = w->color;
	uint32_t i;

	ptx_put(w, "ld.param.u32 %_halc_s, [_halc_sum];\n\t");
	if (c->digits)
		ptx_put(w, "mov.u32 %_halc_v, %_halc_u;\n\t");
	for (i = 0; i < c->digits; i++) {
		ptx_putf(w, "div.u32 %%_halc_p, %%_halc_v, %u;\n\t", c->q);
		ptx_putf(w, "mad.lo.s32 %%_halc_v, %%_halc_p, -%u, %%_halc_v;\n\t", c->q);
		ptx_putf(w, "mad.lo.u32 %%_halc_s, %%_halc_v, %u, %%_halc_s;\n\t",
			 c->weight[i]);
		ptx_put(w, "mov.u32 %_halc_v, %_halc_p;\n\t");
	}
	ptx_putf(w, "rem.u32 %%_halc_s, %%_halc_s, %u;\n\t", c->q);
	ptx_putf(w, "mad.lo.u32 %%_halc_u, %%_halc_u, %u, %%_halc_s;\n\t", c->q);
}

/* How far the address in _halc_a is to be moved beside _halc_m, by its byte in _halc_o.
 */
static void put_place(struct ptx_writer *w)
{
	const struct ptx_color *c = w->color;
	const char *of = "k"; /* what parities are of */
	uint32_t i;

	ptx_putf(w, "shr.u64 %%_halc_o, %%_halc_o, %u;\n\t", c->bits);
	ptx_put(w, "cvt.u32.u64 %_halc_k, %_halc_o;\n\t");
	if (c->q > 1) {
		ptx_putf(w, "shr.u32 %%_halc_u, %%_halc_k, %u;\n\t", c->own);
		put_sum(w);
		of = "u";
		if (c->own) {
			ptx_putf(w,
				 "shl.b32 %%_halc_v, %%_halc_u, %u;\n\t"
				 "and.b32 %%_halc_p, %%_halc_k, %u;\n\t"
				 "or.b32 %%_halc_v, %%_halc_v, %%_halc_p;\n\t",
				 c->own, (1u << c->own) - 1);
			of = "v";
		}
	}
	ptx_put(w, c->lows ? "ld.param.u32 %_halc_s, [_halc_target];\n\t" : "");
	for (i = 0; i < c->lows; i++) {
		if (!c->mask[i])
			continue;
		ptx_putf(w, "and.b32 %%_halc_p, %%_halc_%s, 0x%x;\n\t", of, c->mask[i]);
		if (c->mask[i] & (c->mask[i] - 1))
			ptx_put(w, "popc.b32 %_halc_p, %_halc_p;\n\t"
				   "and.b32 %_halc_p, %_halc_p, 1;\n\t");
		else if (c->mask[i] >> 1)
			ptx_putf(w, "shr.u32 %%_halc_p, %%_halc_p, %u;\n\t",
				 (uint32_t)__builtin_ctz(c->mask[i]));
		if (i)
			ptx_putf(w, "shl.b32 %%_halc_p, %%_halc_p, %u;\n\t", i);
		ptx_put(w, "xor.b32 %_halc_s, %_halc_s, %_halc_p;\n\t");
	}
	/* How many granules further it is. */
	if (c->q > 1 || c->own) {
		if (c->q == 1)
			ptx_putf(w, "shr.u32 %%_halc_u, %%_halc_k, %u;\n\t", c->own);
		ptx_putf(w, "shl.b32 %%_halc_u, %%_halc_u, %u;\n\t", c->lows);
		ptx_put(w, c->lows ? "or.b32 %_halc_u, %_halc_u, %_halc_s;\n\t" : "");
		ptx_put(w, "sub.s32 %_halc_u, %_halc_u, %_halc_k;\n\t");
	} else if (c->lows) {
		ptx_putf(w, "mad.lo.u32 %%_halc_u, %%_halc_k, %u, %%_halc_s;\n\t",
			 (1u << c->lows) - 1);
	} else {
		ptx_put(w, "mov.u32 %_halc_u, 0;\n\t");
	}
	ptx_putf(w, "@%%_halc_q mad.wide.s32 %%_halc_a, %%_halc_u, %u, %%_halc_a;\n\t",
		 1u << c->bits);
}

/* hal_color_offset(): the same place in each group. */
static void put_piece(struct ptx_writer *w)
{
	const struct ptx_color *c = w->color;
	const uint32_t bits = c->bits + c->own;
	const uint32_t others = (1u << (c->lows - c->own)) - 1;

	ptx_putf(w, "shr.u64 %%_halc_o, %%_halc_o, %u;\n\t", bits);
	ptx_put(w, "cvt.u32.u64 %_halc_k, %_halc_o;\n\t");
	ptx_putf(w, "@%%_halc_q mad.wide.u32 %%_halc_a, %%_halc_k, %u, %%_halc_a;\n\t",
		 others << bits);
}

static void color_statement(struct ptx_writer *w, const struct ptx_function *f,
			    uint32_t number)
{
	const struct ptx *m = w->m;
	const struct ptx_statement *s = &m->statements[number];
	const enum ptx_class class =
		s->kind == PTX_INSTRUCTION ? ptx_class_of(m, s) : PTX_PLAIN;
	const struct ptx_operand *o;
	struct ptx_access a;

	if (class != PTX_ACCESS && class != PTX_CPASYNC)
		return;
	a.space = class == PTX_CPASYNC ? PTX_GLOBAL : ptx_space_of(m, s);
	if ((a.space != PTX_GLOBAL && a.space != PTX_GENERIC) ||
	    ptx_access_of(m, f, number, &a) || a.variable)
		return;
	ptx_copy_to(w, m->tokens[s->first].at);
	ptx_put(w, a.offset ? "add.s64 %_halc_a, " : "mov.b64 %_halc_a, ");
	ptx_put_token(w, a.base);
	if (a.offset)
		ptx_putf(w, ", %lld", (long long)a.offset);
	ptx_put(w, ";\n\tsub.s64 %_halc_o, %_halc_a, %_halc_f;\n\t"
		   "setp.lt.u64 %_halc_q, %_halc_o, %_halc_b;\n\t");
	if (w->color->piece)
		put_piece(w);
	else
		put_place(w);
	ptx_put(w, "@%_halc_q add.s64 %_halc_a, %_halc_a, %_halc_m;\n\t");
	o = &s->operand[a.operand];
	ptx_copy_to(w, m->tokens[o->first].at);
	ptx_put(w, "[%_halc_a]");
	w->at = ptx_end_of(m, o->first + o->count - 1);
}

void ptx_write_color(struct ptx_writer *w, const struct ptx_function *f)
{
	uint32_t i;

	ptx_put(w, color_begin);
	for (i = f->first; i < f->first + f->count; i++)
		color_statement(w, f, i);
	ptx_copy_to(w, w->m->tokens[f->end].at);
}
