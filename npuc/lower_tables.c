/* SPDX-License-Identifier: Apache-2.0 */
/* lower_tables.c - steps of bytes one by one that come to a function of one byte: x times
 * its logistic, and what is added to and multiplied by single numbers.  They become one
 * table. */
#include <errno.h>
#include <string.h>

#include "lower.h"

/* What a value is: a constant byte, or a function of another value, byte by byte. */
struct function {
	bool constant;
	uint8_t byte;
	uint32_t of;          /* root */
	const uint8_t *table; /* NULL: the same */
};

/* By root, what steps make of it; steps are counted from 1. */
struct made {
	uint32_t writes, last; /* how many steps, and the last of them */
	uint32_t of, step;     /* the table of a value, and the step that made it */
	const uint8_t *table;  /* NULL: none */
};

static bool same_bytes(const uint8_t *data, uint64_t bytes)
{
	return bytes && memcmp(data, data + 1, bytes - 1) == 0;
}

/* Find what v is when so many steps are done. */
static bool find_function(const struct lowered *l, const struct made *made, uint32_t v,
			  uint32_t step, struct function *f)
{
	const struct value *value;

	v = npuc_root(l, v);
	value = &l->values[v];
	*f = (struct function){.of = v};
	if (value->data) {
		f->constant = same_bytes(value->data, value->bytes);
		f->byte = *(const uint8_t *)value->data;
		return f->constant;
	}
	if (made[v].table) {
		step = made[v].step;
		*f = (struct function){.of = made[v].of, .table = made[v].table};
	}
	/* Nothing writes it later, as an assignment writes a variable. */
	return made[f->of].last <= step && !l->values[f->of].state;
}

static uint8_t at(const struct function *f, uint32_t i)
{
	return f->constant ? f->byte : f->table ? f->table[i] : (uint8_t)i;
}

/* ---- what the machine makes of two bytes ------------------------------------------- */

static int32_t number(uint8_t bits, uint32_t flags, uint32_t uint8)
{
	return quant_value(bits, flags & uint8 ? NPUC_UINT8 : NPUC_INT8);
}

static uint8_t clamped(int64_t x, int32_t min, int32_t max)
{
	return (uint8_t)(x < min ? min : x > max ? max : x);
}

static uint8_t multiplied(const struct hal_npu_mul *op, uint8_t a, uint8_t b)
{
	int32_t x = number(a, op->flags, HAL_NPU_A_UINT8) - op->a_zero;
	int32_t y = number(b, op->flags, HAL_NPU_B_UINT8) - op->b_zero;
	int32_t z = quant_apply(x * y, (struct quant_mult){op->mult, op->shift});

	return clamped((int64_t)z + op->d_zero, op->min, op->max);
}

/* A negative multiplier subtracts. */
static int32_t scaled(int32_t x, int32_t mult, int32_t shift)
{
	return mult < 0 ? -quant_apply(x, (struct quant_mult){-mult, shift})
			: quant_apply(x, (struct quant_mult){mult, shift});
}

static uint8_t added(const struct hal_npu_add *op, uint8_t a, uint8_t b)
{
	int32_t x = number(a, op->flags, HAL_NPU_A_UINT8) - op->a_zero;
	int32_t y = number(b, op->flags, HAL_NPU_B_UINT8) - op->b_zero;
	int32_t one = INT32_C(1) << op->left_shift, sum;

	sum = scaled(x * one, op->a_mult, op->a_shift) +
	      scaled(y * one, op->b_mult, op->b_shift);
	return clamped((int64_t)scaled(sum, op->d_mult, op->d_shift) + op->d_zero,
		       op->min, op->max);
}

/* ---- steps ------------------------------------------------------------------------- */

/* Whether a step's operand has a byte for each of the result's, or is one byte only. */
static bool covers(const struct lowered *l, uint32_t v, const struct hal_npu_place *p,
		   uint64_t bytes, bool repeated, uint32_t stride)
{
	const struct value *value = &l->values[npuc_root(l, v)];

	if (value->data && same_bytes(value->data, value->bytes))
		return true;
	return !p->offset && !repeated && !stride && value->bytes == bytes;
}

/* Does a step make all of its result, byte by byte? */
static bool is_whole(const struct lowered *l, const struct step *s)
{
	const uint64_t bytes = l->values[npuc_root(l, s->d)].bytes;
	const struct hal_npu_add *add = &s->u.add;
	const struct hal_npu_mul *mul = &s->u.mul;

	switch (s->kind) {
	case STEP_LUT:
		return s->u.lut.bytes == bytes && !s->u.lut.d.offset &&
		       covers(l, s->a, &s->u.lut.a, bytes, false, 0);
	case STEP_ADD:
		return (uint64_t)add->bytes * (add->rows ? add->rows : 1) == bytes &&
		       !add->d.offset && !add->d_stride &&
		       covers(l, s->a, &add->a, bytes, add->flags & HAL_NPU_A_REPEAT,
			      add->a_stride) &&
		       covers(l, s->b, &add->b, bytes, add->flags & HAL_NPU_B_REPEAT,
			      add->b_stride);
	case STEP_MUL:
		return (uint64_t)mul->bytes * (mul->rows ? mul->rows : 1) == bytes &&
		       !mul->d.offset && !mul->d_stride &&
		       covers(l, s->a, &mul->a, bytes, mul->flags & HAL_NPU_A_REPEAT,
			      mul->a_stride) &&
		       covers(l, s->b, &mul->b, bytes, mul->flags & HAL_NPU_B_REPEAT,
			      mul->b_stride);
	default:
		return false;
	}
}

static uint8_t result(const struct step *s, uint8_t a, uint8_t b)
{
	return s->kind == STEP_LUT   ? s->u.lut.table[a]
	       : s->kind == STEP_MUL ? multiplied(&s->u.mul, a, b)
				     : added(&s->u.add, a, b);
}

/* Find out whether a step makes its result of one value, and of which. */
static bool is_function(const struct lowered *l, const struct made *made, uint32_t i,
			struct function f[2])
{
	const struct step *s = &l->steps[i];
	uint32_t d = npuc_root(l, s->d);

	f[1] = (struct function){.constant = true};
	return is_whole(l, s) && made[d].writes == 1 && !l->values[d].state &&
	       find_function(l, made, s->a, i, &f[0]) &&
	       (s->kind == STEP_LUT || find_function(l, made, s->b, i, &f[1])) &&
	       (f[0].constant ? !f[1].constant : f[1].constant || f[0].of == f[1].of);
}

/* Make a step a table, if it can be one.  0, or -ENOMEM. */
static int make_table(struct lowered *l, struct made *made, uint32_t i)
{
	struct step *s = &l->steps[i];
	uint32_t d = npuc_root(l, s->d), of;
	struct function f[2];
	uint8_t *table;

	if (!is_function(l, made, i, f))
		return 0;
	of = f[0].constant ? f[1].of : f[0].of;
	if (l->values[of].bytes != l->values[d].bytes)
		return 0;
	table = lower_own(l, 256);
	if (!table)
		return -ENOMEM;
	for (uint32_t k = 0; k < 256; k++)
		table[k] = result(s, at(&f[0], k), at(&f[1], k));
	made[d].of = of;
	made[d].step = i;
	made[d].table = table;
	s->kind = STEP_LUT;
	s->a = of;
	s->b = NPUC_NONE;
	s->u.lut = (struct hal_npu_lut){.size = (uint32_t)sizeof(s->u.lut),
					.bytes = (uint32_t)l->values[d].bytes,
					.table = table};
	return 0;
}

/* Leave out tables that nobody reads any more. */
static void drop_unread(struct lowered *l)
{
	uint32_t used = 0;

	lower_mark_reads(l);
	for (uint32_t i = 0; i < l->step_count; i++) {
		const struct step *s = &l->steps[i];
		const struct value *d = &l->values[npuc_root(l, s->d)];

		if (s->kind != STEP_LUT || d->read || d->output || d->state)
			l->steps[used++] = *s;
	}
	l->step_count = used;
}

int npuc_fuse_tables(struct lowered *l)
{
	struct made *made = lower_own(l, (uint64_t)l->value_count * sizeof(*made));
	int rc = made ? 0 : -ENOMEM;

	for (uint32_t i = 0; !rc && i < l->step_count; i++) {
		struct made *d = &made[npuc_root(l, l->steps[i].d)];

		d->writes++;
		d->last = i + 1;
	}
	for (uint32_t i = 0; !rc && i < l->step_count; i++)
		rc = make_table(l, made, i);
	if (!rc)
		drop_unread(l);
	return rc;
}
