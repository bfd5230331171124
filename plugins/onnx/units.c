/* SPDX-License-Identifier: Apache-2.0 */
/* units.c - operators on integers: QLinearConv and its like, and groups of
 * DequantizeLinear, an operator in float, Relu or Clip, QuantizeLinear. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plugin.h"

/* An operator whose inputs are data, scale and zero point in turn.  A bias comes without
 * those. */
static const struct rule {
	const char *type;
	uint32_t operands, first, out, bias; /* 0: has no bias */
} rules[] = {
	{"QLinearConv", 2, 0, 6, 8},
	{"QLinearMatMul", 2, 0, 6, 0},
	{"QGemm", 2, 0, 7, 6},
	{"QLinearAdd", 2, 0, 6, 0},
	{"QLinearMul", 2, 0, 6, 0},
	{"QLinearAveragePool", 1, 0, 3, 0},
	{"QLinearGlobalAveragePool", 1, 0, 3, 0},
	{"QLinearSigmoid", 1, 0, 3, 0},
	{"QLinearLeakyRelu", 1, 0, 3, 0},
	{"QLinearSoftmax", 1, 0, 3, 0},
	{"QLinearConcat", 0, 2, 0, 0}, /* any number of operands */
};

/* Operators that move or compare integers, whatever they stand for. */
static const char *const moves[] = {"MaxPool", "Reshape",      "Flatten",
				    "Squeeze", "Unsqueeze",    "Transpose",
				    "Slice",   "DepthToSpace", "SpaceToDepth"};

static bool is(const struct node *n, const char *type)
{
	return strcmp(n->type, type) == 0;
}

__attribute__((format(printf, 3, 4))) static bool refuse(struct graph *g, uint32_t node,
							 const char *format, ...)
{
	char *why = pool_alloc(&g->pool, PLUGIN_WHY, 1);
	va_list args;

	if (!why)
		return false;
	va_start(args, format);
	vsnprintf(why, PLUGIN_WHY, format, args);
	va_end(args);
	g->nodes[node].why = why;
	return false;
}

static bool is_bytes(const struct value *v)
{
	return v->type == ORT_TYPE_INT8 || v->type == ORT_TYPE_UINT8;
}

static int32_t zero_at(const struct value *v, uint64_t i)
{
	if (v->type == ORT_TYPE_INT8)
		return ((const int8_t *)v->data)[i];
	if (v->type == ORT_TYPE_UINT8)
		return ((const uint8_t *)v->data)[i];
	return ((const int32_t *)v->data)[i];
}

/* ---- operands ---------------------------------------------------------------------- */

static bool has_shape(struct graph *g, uint32_t op, uint32_t value)
{
	if (value == PLUGIN_NONE)
		return refuse(g, op, "an operand is left out");
	if (g->values[value].rank == PLUGIN_NONE)
		return refuse(g, op, "the shape of '%.80s' is not fixed",
			      g->values[value].name);
	if (!g->values[value].count)
		return refuse(g, op, "'%.80s' is empty", g->values[value].name);
	return true;
}

static float from_half(uint16_t h)
{
	uint32_t exponent = h >> 10 & 31, fraction = h & 1023;
	float x = exponent ? ldexpf((float)(fraction | 1024), (int)exponent - 25)
			   : ldexpf((float)fraction, -24);

	if (exponent == 31)
		x = fraction ? NAN : INFINITY;
	return h & 0x8000 ? -x : x;
}

/* Return scales as float32; NULL: out of memory. */
static const float *scales_of(struct graph *g, const struct value *s)
{
	float *scales;

	if (s->type == ORT_TYPE_FLOAT)
		return s->data;
	scales = pool_alloc(&g->pool, s->count, sizeof(*scales));
	for (uint64_t i = 0; scales && i < s->count; i++)
		scales[i] = from_half(((const uint16_t *)s->data)[i]);
	return scales;
}

/* Read scale and zero point of a value of integers. */
static bool quantization(struct graph *g, uint32_t op, uint32_t value, uint32_t scale,
			 uint32_t zero, struct operand *o)
{
	const struct value *s, *z;
	const float *scales;

	if (!has_shape(g, op, value))
		return false;
	*o = (struct operand){.value = value};
	s = scale == PLUGIN_NONE ? NULL : &g->values[scale];
	z = zero == PLUGIN_NONE ? NULL : &g->values[zero];
	if (!is_bytes(&g->values[value]) && g->values[value].type != ORT_TYPE_INT32)
		return refuse(g, op, "'%.80s' has another type than int8 and uint8",
			      g->values[value].name);
	if (!s || !s->data || !s->count || s->rank > 1 ||
	    (s->type != ORT_TYPE_FLOAT && s->type != ORT_TYPE_FLOAT16))
		return refuse(g, op,
			      "the scale of '%.80s' is no constant float32 or float16",
			      g->values[value].name);
	if (z && (!z->data || z->type != g->values[value].type ||
		  (z->count != 1 && z->count != s->count)))
		return refuse(g, op,
			      "the zero point of '%.80s' is no constant of its type",
			      g->values[value].name);
	scales = scales_of(g, s);
	if (!scales)
		return false;
	for (uint64_t i = 0; i < s->count; i++)
		if (!(scales[i] > 0) || !isfinite(scales[i]))
			return refuse(g, op, "a scale of '%.80s' is not positive",
				      g->values[value].name);
	for (uint64_t i = 1; z && i < z->count; i++)
		if (zero_at(z, i) != zero_at(z, 0))
			return refuse(g, op, "'%.80s' has different zero points",
				      g->values[value].name);
	o->scale = scales;
	o->scales = (uint32_t)s->count;
	o->zero = z ? zero_at(z, 0) : 0;
	return true;
}

static bool add_node(struct graph *g, struct unit *u, uint32_t node)
{
	if (u->node_count == UNIT_NODES || g->nodes[node].unit != PLUGIN_NONE)
		return refuse(g, u->op, "another operator needs node '%s', too",
			      g->nodes[node].type);
	u->nodes[u->node_count++] = node;
	return true;
}

static uint32_t input_of(const struct node *n, uint32_t i)
{
	return i < n->in_count ? n->in[i] : PLUGIN_NONE;
}

/* Take a DequantizeLinear or QuantizeLinear as the quantization of the value of integers
 * beside it. */
static bool take_quantizer(struct graph *g, struct unit *u, uint32_t node, uint32_t value,
			   struct operand *o)
{
	const struct node *n = &g->nodes[node];
	int64_t axis = 1, block = 0;
	uint32_t scale = input_of(n, 1);

	/* The operator between would round to float16. */
	if (scale != PLUGIN_NONE && g->values[scale].type == ORT_TYPE_FLOAT16)
		return refuse(g, u->op, "the scale of '%.80s' is float16",
			      g->values[value].name);
	if (!quantization(g, u->op, value, input_of(n, 1), input_of(n, 2), o) ||
	    !add_node(g, u, node))
		return false;
	if (graph_int(g, n, "block_size", &block) && block)
		return refuse(g, u->op, "quantization in blocks");
	(void)graph_int(g, n, "axis", &axis);
	if (axis < 0)
		axis += g->values[value].rank;
	o->axis = (uint32_t)axis;
	return true;
}

/* An input of an operator in float. */
static bool float_input(struct graph *g, struct unit *u, uint32_t value)
{
	struct operand *o = &u->in[u->in_count];
	uint32_t from;

	if (u->in_count == UNIT_INPUTS)
		return refuse(g, u->op, "more than %u operands", UNIT_INPUTS);
	if (!has_shape(g, u->op, value))
		return false;
	from = g->values[value].producer;
	*o = (struct operand){.value = value};
	u->in_count++;
	if (g->values[value].data)
		return true;
	if (from == PLUGIN_NONE || !is(&g->nodes[from], "DequantizeLinear"))
		return refuse(g, u->op, "'%.80s' is not quantized",
			      g->values[value].name);
	if (g->values[value].consumers != 1 || g->values[value].output)
		return refuse(g, u->op, "'%.80s' is needed in float32, too",
			      g->values[value].name);
	return take_quantizer(g, u, from, g->nodes[from].in[0], o);
}

/* ---- groups ------------------------------------------------------------------------ */

static bool fuses(const struct node *n)
{
	static const char *const types[] = {"Conv", "Gemm", "MatMul",  "Add",
					    "Sub",  "Mul",  "MaxPool", "AveragePool"};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (is(n, types[i]))
			return true;
	return false;
}

/* Read a bound of Clip: an input since opset 11, an attribute before. */
static bool bound(struct graph *g, const struct node *n, uint32_t i, const char *name,
		  float *x)
{
	uint32_t v = input_of(n, i);

	if (v == PLUGIN_NONE) {
		(void)graph_float(g, n, name, x);
		return true;
	}
	if (!g->values[v].data || g->values[v].type != ORT_TYPE_FLOAT ||
	    g->values[v].count != 1)
		return false;
	*x = *(const float *)g->values[v].data;
	return true;
}

/* Express Relu or Clip as an activation of the schema, if there is one. */
static bool activation(struct graph *g, const struct node *n, const struct unit *u,
		       enum act *act)
{
	const struct operand *o = &u->out;
	bool byte = g->values[o->value].type == ORT_TYPE_UINT8;
	float scale = o->scale ? *o->scale : 1;
	float least = ((float)(byte ? 0 : -128) - (float)o->zero) * scale;
	float most = ((float)(byte ? 255 : 127) - (float)o->zero) * scale;
	float low = is(n, "Relu") ? 0 : -INFINITY, high = INFINITY;

	if (is(n, "Clip") &&
	    (!bound(g, n, 1, "min", &low) || !bound(g, n, 2, "max", &high)))
		return false;
	*act = ACT_NONE; /* the integers end there themselves */
	if (low <= least && high >= most)
		return true;
	if (low != 0 && low > least)
		return false;
	*act = high >= most ? ACT_RELU : ACT_RELU6;
	return high >= most || (high == 6 && low == 0);
}

/* Return the only node that makes a value which one node alone reads. */
static uint32_t only_maker(const struct graph *g, uint32_t value)
{
	const struct value *v = value == PLUGIN_NONE ? NULL : &g->values[value];

	return !v || v->consumers != 1 || v->output ? PLUGIN_NONE : v->producer;
}

/* A Relu or Clip before the last node of the group that an operator can have. */
static void take_activation(struct graph *g, struct unit *u, uint32_t last)
{
	const struct node *n = &g->nodes[u->op];
	uint32_t before;
	enum act act;

	(void)last;
	if (!is(n, "Relu") && !is(n, "Clip"))
		return;
	before = only_maker(g, n->in[0]);
	if (before == PLUGIN_NONE || !fuses(&g->nodes[before]) ||
	    !activation(g, n, u, &act))
		return;
	if (!add_node(g, u, u->op))
		return;
	u->act = act;
	u->op = before;
}

/* Find the group that a QuantizeLinear ends. */
static bool find_group(struct graph *g, uint32_t last, struct unit *u)
{
	const struct node *end = &g->nodes[last], *op;
	uint32_t from = only_maker(g, input_of(end, 0));

	if (from == PLUGIN_NONE || is(&g->nodes[from], "Split"))
		return false; /* an input of the graph, needed in float, or find_split's
			       */
	u->op = from;
	if (!take_quantizer(g, u, last, end->out[0], &u->out))
		return false;
	if (is(&g->nodes[from], "DequantizeLinear")) {
		/* Numbers of another scale. */
		u->op = last;
		u->in_count = 1;
		return take_quantizer(g, u, from, g->nodes[from].in[0], &u->in[0]);
	}
	take_activation(g, u, last);
	op = &g->nodes[u->op];
	if (!add_node(g, u, u->op))
		return false;
	if (op->out_count != 1)
		return refuse(g, u->op, "more than one result");
	for (uint32_t i = 0; i < op->in_count; i++) {
		uint32_t v = op->in[i];

		/* What is left out at the end; whole numbers say how, not what. */
		if (v == PLUGIN_NONE)
			u->in[u->in_count++] = (struct operand){.value = PLUGIN_NONE};
		else if (!float_input(g, u, v))
			return false;
		if (u->in_count == UNIT_INPUTS)
			return refuse(g, u->op, "too many operands");
	}
	return true;
}

/* ---- operators on integers --------------------------------------------------------- */

static bool find_linear(struct graph *g, uint32_t node, const struct rule *r,
			struct unit *u)
{
	const struct node *n = &g->nodes[node];
	uint32_t count = r->operands ? r->operands : (n->in_count - 2) / 3;
	uint32_t out = n->out_count ? n->out[0] : PLUGIN_NONE, bias;

	u->op = node;
	if (!add_node(g, u, node))
		return false;
	if (count > UNIT_INPUTS - 1)
		return refuse(g, node, "too many operands");
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = r->first + 3 * i;

		if (!quantization(g, node, input_of(n, at), input_of(n, at + 1),
				  input_of(n, at + 2), &u->in[u->in_count++]))
			return false;
	}
	if (count == 2)
		u->in[1].axis = PLUGIN_NONE; /* of the channels, wherever they are */
	bias = r->bias ? input_of(n, r->bias) : PLUGIN_NONE;
	if (bias != PLUGIN_NONE) {
		if (!has_shape(g, node, bias))
			return false;
		u->in[u->in_count++] = (struct operand){.value = bias};
	}
	return quantization(g, node, out, input_of(n, r->out), input_of(n, r->out + 1),
			    &u->out);
}

static bool find_move(struct graph *g, uint32_t node, struct unit *u)
{
	const struct node *n = &g->nodes[node];

	u->op = node;
	if (n->out_count != 1 || !has_shape(g, node, input_of(n, 0)) ||
	    !has_shape(g, node, n->out[0]) || !is_bytes(&g->values[n->in[0]]) ||
	    g->values[n->in[0]].type != g->values[n->out[0]].type ||
	    g->values[n->in[0]].data)
		return refuse(g, node, "float32 between other operators in float32");
	u->in[u->in_count++] = (struct operand){.value = n->in[0]};
	u->out = (struct operand){.value = n->out[0]};
	return add_node(g, u, node);
}

/* A result of a Split of integers, or of one whose results are each quantized. */
static bool split_result(struct graph *g, struct unit *u, uint32_t value, bool bytes,
			 struct operand *o)
{
	uint32_t by;

	if (!has_shape(g, u->op, value))
		return false;
	*o = (struct operand){.value = value};
	if (bytes)
		return true;
	by = g->values[value].consumer;
	if (g->values[value].consumers != 1 || g->values[value].output ||
	    !is(&g->nodes[by], "QuantizeLinear") || input_of(&g->nodes[by], 0) != value)
		return refuse(g, u->op, "'%.80s' is needed in float32",
			      g->values[value].name);
	return take_quantizer(g, u, by, g->nodes[by].out[0], o);
}

static bool find_split(struct graph *g, uint32_t node, struct unit *u)
{
	const struct node *n = &g->nodes[node];
	uint32_t x = input_of(n, 0), i;
	bool bytes;

	u->op = node;
	if (!has_shape(g, node, x))
		return false;
	if (g->values[x].data)
		return refuse(g, node, "'%.80s' is constant", g->values[x].name);
	if (n->out_count < 1 || n->out_count > UNIT_OUTPUTS)
		return refuse(g, node, "%u results; 1 to %u are supported", n->out_count,
			      UNIT_OUTPUTS);
	bytes = is_bytes(&g->values[x]);
	if (bytes)
		u->in[u->in_count++] = (struct operand){.value = x};
	else if (!float_input(g, u, x))
		return false;
	u->more_count = n->out_count - 1;
	u->more = pool_alloc(&g->pool, u->more_count, sizeof(*u->more));
	if (!u->more || !add_node(g, u, node) ||
	    !split_result(g, u, n->out[0], bytes, &u->out))
		return false;
	for (i = 0; i < u->more_count; i++)
		if (!split_result(g, u, n->out[i + 1], bytes, &u->more[i]))
			return false;
	return true;
}

static bool find_unit(struct graph *g, uint32_t node, struct unit *u)
{
	const struct node *n = &g->nodes[node];

	if (is(n, "Split"))
		return find_split(g, node, u);
	if (is(n, "QuantizeLinear"))
		return find_group(g, node, u);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (is(n, rules[i].type))
			return find_linear(g, node, &rules[i], u);
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		if (is(n, moves[i]) && input_of(n, 0) != PLUGIN_NONE &&
		    is_bytes(&g->values[n->in[0]]))
			return find_move(g, node, u);
	return false;
}

struct unit *units_find(struct graph *g, uint32_t *count)
{
	struct unit *units = pool_alloc(&g->pool, g->node_count, sizeof(*units));

	*count = 0;
	for (uint32_t i = 0; units && i < g->node_count; i++) {
		struct unit *u = &units[*count];

		*u = (struct unit){0};
		if (!find_unit(g, i, u))
			continue;
		for (uint32_t k = 0; k < u->node_count; k++)
			g->nodes[u->nodes[k]].unit = *count;
		(*count)++;
	}
	return g->pool.empty ? NULL : units;
}
