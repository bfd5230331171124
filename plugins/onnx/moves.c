/* SPDX-License-Identifier: Apache-2.0 */
/* moves.c - operators that move, choose or resize numbers. */
#include "build.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A part of a concatenation in the quantization of all. */
static int use_part(struct build *b, const struct operand *o, bool nhwc, struct quant q,
		    uint32_t *tensor)
{
	const struct value *v = value_of(b, o);
	struct quant is = quant_of(b, o);
	int32_t dims[PLUGIN_RANK];
	uint32_t from = 0;
	int rc = v->data ? model_constant(b, o, v->rank, nhwc, &from)
			 : model_use(b, o, nhwc, is, &from);

	*tensor = from;
	if (rc || same_quant(is, q))
		return rc;
	model_dims(v, nhwc, dims);
	rc = model_tensor(b, NPUC_INT8, v->rank, dims, q, NULL, 0, tensor);
	return rc ? rc : model_op(b, CODE_QUANTIZE, &from, 1, *tensor, NULL, 0);
}

int build_concat(struct build *b)
{
	const struct unit *u = b->u;
	struct quant q = quant_of(b, &u->out);
	uint32_t rank = value_of(b, &u->out)->rank, in[UNIT_INPUTS];
	int64_t axis = 1;
	bool nhwc = false;
	struct npuc_attr attr;
	struct result r;
	int rc = 0;

	(void)graph_int(b->g, op_of(b), "axis", &axis);
	if (axis < 0)
		axis += rank;
	if (axis < 0 || axis >= rank)
		return model_refuse(b, "the axis does not exist");
	for (uint32_t i = 0; i < u->in_count; i++)
		nhwc |= !value_of(b, &u->in[i])->data && model_prefers_nhwc(b, &u->in[i]);
	attr = int_attr("axis", model_axis((uint32_t)axis, rank, nhwc));
	for (uint32_t i = 0; !rc && i < u->in_count; i++)
		rc = use_part(b, &u->in[i], nhwc, q, &in[i]);
	if (!rc)
		rc = model_begin(b, nhwc, q, &r);
	if (!rc)
		rc = model_op(b, CODE_CONCATENATION, in, u->in_count, r.tensor, &attr, 1);
	return rc ? rc : model_end(b, &r);
}

/* The larger or smaller of two, in the quantization of the result. */
static int build_extreme(struct build *b, uint32_t code)
{
	const struct unit *u = b->u;
	struct quant q = quant_of(b, &u->out);
	uint32_t rank = value_of(b, &u->out)->rank, in[2];
	bool nhwc = true;
	struct result r;
	int rc = 0;

	if (u->in_count != 2)
		return model_refuse(b, "%u operands; only 2 are supported", u->in_count);
	for (uint32_t i = 0; i < 2; i++)
		nhwc &= value_of(b, &u->in[i])->rank == rank &&
			(value_of(b, &u->in[i])->data ||
			 model_prefers_nhwc(b, &u->in[i]));
	for (uint32_t i = 0; !rc && i < 2; i++)
		rc = use_part(b, &u->in[i], nhwc, q, &in[i]);
	if (!rc)
		rc = model_begin(b, nhwc, q, &r);
	return rc ? rc : model_op(b, code, in, 2, r.final, NULL, 0);
}

int build_max(struct build *b)
{
	return build_extreme(b, CODE_MAXIMUM);
}

int build_min(struct build *b)
{
	return build_extreme(b, CODE_MINIMUM);
}

/* Read an input of whole numbers; PLUGIN_NONE: it is not constant; 0: left out. */
static uint32_t read_list(struct build *b, uint32_t number, int64_t *list)
{
	const struct node *n = op_of(b);
	const struct value *v;

	if (number >= n->in_count || n->in[number] == PLUGIN_NONE)
		return 0;
	v = &b->g->values[n->in[number]];
	if (!v->data || (v->type != ORT_TYPE_INT64 && v->type != ORT_TYPE_INT32) ||
	    v->count > (uint64_t)2 * PLUGIN_RANK)
		return PLUGIN_NONE;
	for (uint32_t i = 0; i < v->count; i++)
		list[i] = v->type == ORT_TYPE_INT64 ? ((const int64_t *)v->data)[i]
						    : ((const int32_t *)v->data)[i];
	return (uint32_t)v->count;
}

/* Read bounds of Slice as the model has its dimensions. */
static int read_slice(struct build *b, bool nhwc, int32_t *begin, int32_t *end,
		      int32_t *step)
{
	const struct value *x = value_of(b, &b->u->in[0]), *y = value_of(b, &b->u->out);
	int64_t starts[2 * PLUGIN_RANK] = {0}, axes[2 * PLUGIN_RANK] = {0};
	int64_t steps[2 * PLUGIN_RANK] = {0};
	uint32_t count = read_list(b, 1, starts), given = read_list(b, 3, axes);
	uint32_t stepped = read_list(b, 4, steps);

	if (!count || count > x->rank || (given && given != count) ||
	    (stepped && stepped != count))
		return model_refuse(b, "its bounds are not constant");
	for (uint32_t i = 0; i < x->rank; i++) {
		begin[i] = 0;
		step[i] = 1;
	}
	for (uint32_t i = 0; i < count; i++) {
		int64_t axis = given ? axes[i] : i, size, at = starts[i];

		axis += axis < 0 ? x->rank : 0;
		if (axis < 0 || axis >= x->rank || (stepped && steps[i] < 1))
			return model_refuse(b,
					    "an axis does not exist, or steps go back");
		size = x->dims[axis];
		at += at < 0 ? size : 0;
		at = at < 0 ? 0 : at > size ? size : at;
		begin[model_axis((uint32_t)axis, x->rank, nhwc)] = (int32_t)at;
		step[model_axis((uint32_t)axis, x->rank, nhwc)] =
			stepped ? (int32_t)steps[i] : 1;
	}
	for (uint32_t i = 0; i < x->rank; i++) {
		uint32_t to = model_axis(i, x->rank, nhwc);

		end[to] = begin[to] + (y->dims[i] - 1) * step[to] + 1;
	}
	return 0;
}

int model_slice(struct build *b, uint32_t from, const int32_t *begin, const int32_t *end,
		const int32_t *step, uint32_t rank, uint32_t to)
{
	uint32_t in[4] = {from, 0, 0, 0};
	int rc = model_ints(b, begin, rank, 0, &in[1]);

	if (!rc)
		rc = model_ints(b, end, rank, 0, &in[2]);
	if (!rc)
		rc = model_ints(b, step, rank, 0, &in[3]);
	return rc ? rc : model_op(b, CODE_STRIDED_SLICE, in, 4, to, NULL, 0);
}

int build_slice(struct build *b)
{
	const struct unit *u = b->u;
	bool nhwc = model_prefers_nhwc(b, &u->in[0]);
	int32_t begin[PLUGIN_RANK] = {0}, end[PLUGIN_RANK] = {0}, step[PLUGIN_RANK] = {0};
	struct quant q = quant_of(b, &u->in[0]);
	struct result r;
	uint32_t in;
	int rc = read_slice(b, nhwc, begin, end, step);

	if (!rc)
		rc = model_use(b, &u->in[0], nhwc, q, &in);
	if (!rc)
		rc = model_begin(b, nhwc, q, &r);
	if (!rc)
		rc = model_slice(b, in, begin, end, step, value_of(b, &u->out)->rank,
				 r.tensor);
	return rc ? rc : model_end(b, &r);
}

/* One part of a Split, at offset along the axis, is the result of the unit in work. */
static int build_part(struct build *b, uint32_t in, bool nhwc, uint32_t axis,
		      int32_t offset)
{
	const struct value *y = value_of(b, &b->u->out);
	int32_t begin[PLUGIN_RANK] = {0}, end[PLUGIN_RANK], step[PLUGIN_RANK];
	struct result r;
	int rc;

	model_dims(y, nhwc, end);
	for (uint32_t i = 0; i < y->rank; i++)
		step[i] = 1;
	begin[axis] = offset;
	end[axis] += offset;
	rc = model_begin(b, nhwc, quant_of(b, &b->u->in[0]), &r);
	if (!rc)
		rc = model_slice(b, in, begin, end, step, y->rank, r.tensor);
	return rc ? rc : model_end(b, &r);
}

/* A slice for each part that something needs. */
int build_split(struct build *b)
{
	const struct unit *u = b->u;
	const struct value *x = value_of(b, &u->in[0]);
	bool nhwc = model_prefers_nhwc(b, &u->in[0]);
	struct unit one = *u;
	int32_t offset = 0;
	int64_t axis = 0;
	uint32_t in;
	int rc;

	(void)graph_int(b->g, op_of(b), "axis", &axis);
	axis += axis < 0 ? x->rank : 0;
	if (axis < 0 || axis >= x->rank)
		return model_refuse(b, "the axis does not exist");
	rc = model_use(b, &u->in[0], nhwc, quant_of(b, &u->in[0]), &in);
	b->u = &one;
	for (uint32_t i = 0; !rc && i <= u->more_count; i++) {
		const struct value *y;

		one.out = i ? u->more[i - 1] : u->out;
		y = value_of(b, &one.out);
		if (y->rank != x->rank || y->dims[axis] > x->dims[axis] - offset)
			rc = model_refuse(b, "the parts are larger than the whole");
		else if (y->output || y->consumers)
			rc = build_part(b, in, nhwc,
					model_axis((uint32_t)axis, x->rank, nhwc),
					offset);
		offset += y->dims[axis];
	}
	b->u = u;
	return rc;
}

/* The number that Pad writes, in the operand's quantization. */
static int pad_number(struct build *b, struct quant q, int8_t *number)
{
	const struct operand *o = b->u->in_count > 2 ? &b->u->in[2] : NULL;
	const struct value *v;
	float real = 0, at;

	if (o && o->value != PLUGIN_NONE) {
		v = value_of(b, o);
		if (!v->data || v->count != 1 || v->type != ORT_TYPE_FLOAT)
			return model_refuse(b, "the padding's number is no constant");
		real = *(const float *)v->data;
	}
	at = nearbyintf(real / q.scale) + (float)q.zero;
	*number = (int8_t)(at < -128 ? -128 : at > 127 ? 127 : at);
	return 0;
}

int build_pad(struct build *b)
{
	const struct unit *u = b->u;
	const struct value *x = value_of(b, &u->in[0]);
	bool nhwc = model_prefers_nhwc(b, &u->in[0]);
	struct quant q = quant_of(b, &u->in[0]);
	int64_t list[2 * PLUGIN_RANK] = {0};
	int32_t pairs[2 * PLUGIN_RANK];
	const int32_t one = 1;
	char mode[16] = "constant";
	uint32_t in[3];
	int8_t number;
	struct result r;
	int rc;

	(void)graph_string(b->g, op_of(b), "mode", mode, sizeof(mode));
	if (mode[0] && strcmp(mode, "constant") != 0)
		return model_refuse(b, "mode %s", mode);
	if (read_list(b, 1, list) != 2 * x->rank || op_of(b)->in_count > 3)
		return model_refuse(b, "its paddings are not constant");
	for (uint32_t i = 0; i < x->rank; i++) {
		int32_t *pair = pairs + (size_t)2 * model_axis(i, x->rank, nhwc);

		if (list[i] < 0 || list[i + x->rank] < 0 || list[i] > 65535 ||
		    list[i + x->rank] > 65535)
			return model_refuse(b, "paddings below 0 or above 65535");
		pair[0] = (int32_t)list[i];
		pair[1] = (int32_t)list[i + x->rank];
	}
	rc = pad_number(b, q, &number);
	if (!rc)
		rc = model_use(b, &u->in[0], nhwc, q, &in[0]);
	if (!rc)
		rc = model_ints(b, pairs, 2 * x->rank, 1, &in[1]);
	if (!rc)
		rc = model_tensor(b, NPUC_INT8, 1, &one, q, &number, 1, &in[2]);
	if (!rc)
		rc = model_begin(b, nhwc, q, &r);
	if (!rc)
		rc = model_op(b, CODE_PADV2, in, 3, r.tensor, NULL, 0);
	return rc ? rc : model_end(b, &r);
}

/* Choose the operator for Resize; 0: no operator picks those pixels. */
static uint32_t resize_code(struct build *b, bool *align, bool *half)
{
	const struct value *x = value_of(b, &b->u->in[0]), *y = value_of(b, &b->u->out);
	char mode[16] = "nearest", where[32] = "half_pixel", near[24] = "";
	int64_t other = 0;
	bool whole = true, near_half;

	if (!graph_string(b->g, op_of(b), "mode", mode, sizeof(mode)))
		snprintf(mode, sizeof(mode), "nearest");
	if (!graph_string(b->g, op_of(b), "coordinate_transformation_mode", where,
			  sizeof(where)))
		snprintf(where, sizeof(where), "half_pixel");
	(void)graph_string(b->g, op_of(b), "nearest_mode", near, sizeof(near));
	if (graph_int(b->g, op_of(b), "antialias", &other) && other)
		return 0;
	*align = strcmp(where, "align_corners") == 0;
	*half = strcmp(where, "half_pixel") == 0 ||
		strcmp(where, "pytorch_half_pixel") == 0;
	for (uint32_t i = 2; i < 4; i++)
		whole &= y->dims[i] % x->dims[i] == 0;
	if (!*align && !*half && strcmp(where, "asymmetric") != 0)
		return 0;
	if (strcmp(mode, "linear") == 0)
		return CODE_RESIZE_BILINEAR;
	near_half = *half && (!near[0] || strncmp(near, "round_prefer", 12) == 0);
	if (strcmp(mode, "nearest") != 0 || !whole ||
	    (!near_half && (*half || *align || strcmp(near, "floor") != 0)))
		return 0;
	*half = *align = false; /* of whole factors: pixel i is i / factor */
	return CODE_RESIZE_NEAREST;
}

int build_resize(struct build *b)
{
	const struct unit *u = b->u;
	const struct value *x = value_of(b, &u->in[0]), *y = value_of(b, &u->out);
	const int32_t size[] = {y->dims[2], y->dims[3]};
	struct quant q = quant_of(b, &u->in[0]);
	uint32_t in[2], code;
	bool align, half;
	struct result r;
	int rc;

	if (x->rank != 4 || y->rank != 4 || x->dims[0] != y->dims[0] ||
	    x->dims[1] != y->dims[1])
		return model_refuse(b, "only rows and columns of images are resized");
	code = resize_code(b, &align, &half);
	if (!code)
		return model_refuse(b, "this mode is not supported");
	rc = model_use(b, &u->in[0], true, q, &in[0]);
	if (!rc)
		rc = model_ints(b, size, 2, 0, &in[1]);
	if (!rc)
		rc = model_begin(b, true, q, &r);
	if (!rc) {
		const struct npuc_attr attrs[] = {int_attr("align_corners", align),
						  int_attr("half_pixel_centers", half)};

		rc = model_op(b, code, in, 2, r.tensor, attrs, 2);
	}
	return rc ? rc : model_end(b, &r);
}

static int build_blocks(struct build *b, uint32_t code)
{
	const struct unit *u = b->u;
	struct quant q = quant_of(b, &u->in[0]);
	char mode[8] = "";
	struct npuc_attr attr;
	int64_t block = 0;
	struct result r;
	uint32_t in;
	int rc;

	(void)graph_int(b->g, op_of(b), "blocksize", &block);
	(void)graph_string(b->g, op_of(b), "mode", mode, sizeof(mode));
	if (value_of(b, &u->in[0])->rank != 4 || (mode[0] && strcmp(mode, "DCR") != 0))
		return model_refuse(b, "mode %s", mode);
	attr = int_attr("block_size", block);
	rc = model_use(b, &u->in[0], true, q, &in);
	if (!rc)
		rc = model_begin(b, true, q, &r);
	if (!rc)
		rc = model_op(b, code, &in, 1, r.tensor, &attr, 1);
	return rc ? rc : model_end(b, &r);
}

int build_depth_to_space(struct build *b)
{
	return build_blocks(b, CODE_DEPTH_TO_SPACE);
}

int build_space_to_depth(struct build *b)
{
	return build_blocks(b, CODE_SPACE_TO_DEPTH);
}

int build_reshape(struct build *b)
{
	const struct unit *u = b->u;
	const struct value *y = value_of(b, &u->out);
	struct quant q = quant_of(b, &u->in[0]);
	struct result r;
	uint32_t in;
	int rc = model_use(b, &u->in[0], false, q, &in);

	if (!rc)
		rc = model_begin(b, false, q, &r);
	if (!rc)
		rc = model_reshape(b, in, r.tensor, y->rank, y->dims);
	return rc ? rc : model_end(b, &r);
}

int build_transpose(struct build *b)
{
	const struct unit *u = b->u;
	uint32_t rank = value_of(b, &u->in[0])->rank, in;
	struct quant q = quant_of(b, &u->in[0]);
	int32_t order[PLUGIN_RANK];
	int64_t perm[PLUGIN_RANK];
	struct result r;
	bool given = graph_ints(b->g, op_of(b), "perm", perm, PLUGIN_RANK) == rank;
	int rc;

	for (uint32_t i = 0; i < rank; i++)
		order[i] = given ? (int32_t)perm[i] : (int32_t)(rank - 1 - i);
	rc = model_use(b, &u->in[0], false, q, &in);
	if (!rc)
		rc = model_begin(b, false, q, &r);
	if (!rc)
		rc = model_transpose(b, in, r.tensor, order, rank);
	return rc ? rc : model_end(b, &r);
}

int build_quantize(struct build *b)
{
	const struct unit *u = b->u;
	bool nhwc = model_prefers_nhwc(b, &u->in[0]);
	struct quant q = quant_of(b, &u->in[0]);
	struct result r;
	uint32_t in;
	int rc = model_use(b, &u->in[0], nhwc, q, &in);

	if (!rc)
		rc = model_begin(b, nhwc, q, &r);
	if (rc)
		return rc;
	if (r.tensor == r.final)
		return model_op(b, CODE_QUANTIZE, &in, 1, r.final, NULL, 0);
	return model_op(b, CODE_QUANTIZE, &in, 1, r.final, NULL, 0);
}
