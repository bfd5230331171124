/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - functions of one number: tables of 256. */
#include "build.h"

#include <math.h>
#include <string.h>

/* ---- functions of one number --------------------------------------------------------
 */

static float sigmoid(float x)
{
	return 1 / (1 + expf(-x));
}

/* Parameters of a function. */
struct numbers {
	float alpha, beta, low, high;
	bool tanh;
};

static float clamp(float x, float low, float high)
{
	return x < low ? low : x > high ? high : x;
}

static float gelu(float x, const struct numbers *n)
{
	const float root = 0.70710678118654752f, k = 0.79788456080286536f;

	return n->tanh ? 0.5f * x * (1 + tanhf(k * (x + 0.044715f * x * x * x)))
		       : 0.5f * x * (1 + erff(x * root));
}

static float apply(const char *type, float x, const struct numbers *n)
{
	static const struct {
		const char *type;
		float (*of)(float x);
	} plain[] = {{"Sigmoid", sigmoid},  {"Tanh", tanhf},   {"Erf", erff},
		     {"Exp", expf},         {"Log", logf},     {"Sqrt", sqrtf},
		     {"Abs", fabsf},        {"Floor", floorf}, {"Ceil", ceilf},
		     {"Round", nearbyintf}, {"Sin", sinf},     {"Cos", cosf},
		     {"Atan", atanf},       {"Sinh", sinhf},   {"Asinh", asinhf}};

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (strcmp(type, plain[i].type) == 0)
			return plain[i].of(x);
	if (strcmp(type, "Relu") == 0 || strcmp(type, "Clip") == 0)
		return clamp(x, n->low, n->high);
	if (strcmp(type, "LeakyRelu") == 0)
		return x < 0 ? n->alpha * x : x;
	if (strcmp(type, "Elu") == 0)
		return x < 0 ? n->alpha * expm1f(x) : x;
	if (strcmp(type, "Selu") == 0)
		return n->beta * (x < 0 ? n->alpha * expm1f(x) : x);
	if (strcmp(type, "HardSigmoid") == 0)
		return clamp(n->alpha * x + n->beta, 0, 1);
	if (strcmp(type, "HardSwish") == 0)
		return x * clamp(x / 6 + 0.5f, 0, 1);
	if (strcmp(type, "Gelu") == 0)
		return gelu(x, n);
	if (strcmp(type, "Neg") == 0)
		return -x;
	if (strcmp(type, "Reciprocal") == 0)
		return 1 / x;
	if (strcmp(type, "Softplus") == 0)
		return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x));
	return x / (1 + fabsf(x)); /* Softsign */
}

/* Read a bound of Clip that is an input; false: it is no constant. */
static bool read_bound(struct build *b, uint32_t i, const char *name, float *x)
{
	const struct node *n = op_of(b);
	const struct value *v;

	if (i >= n->in_count || n->in[i] == PLUGIN_NONE) {
		(void)graph_float(b->g, n, name, x);
		return true;
	}
	v = &b->g->values[n->in[i]];
	if (!v->data || v->type != ORT_TYPE_FLOAT || v->count != 1)
		return false;
	*x = *(const float *)v->data;
	return true;
}

static bool read_numbers(struct build *b, struct numbers *n)
{
	const struct node *op = op_of(b);
	char approximate[8] = "";
	bool relu = strcmp(op->type, "Relu") == 0;

	*n = (struct numbers){.alpha = 1, .low = relu ? 0 : -INFINITY, .high = INFINITY};
	if (strstr(op->type, "LeakyRelu"))
		n->alpha = 0.01f;
	if (strcmp(op->type, "HardSigmoid") == 0) {
		n->alpha = 0.2f;
		n->beta = 0.5f;
	}
	if (strcmp(op->type, "Selu") == 0) {
		n->alpha = 1.67326319217681884765625f;
		n->beta = 1.05070102214813232421875f;
	}
	(void)graph_float(b->g, op, "alpha", &n->alpha);
	(void)graph_float(b->g, op, strcmp(op->type, "Selu") == 0 ? "gamma" : "beta",
			  &n->beta);
	(void)graph_string(b->g, op, "approximate", approximate, sizeof(approximate));
	n->tanh = strcmp(approximate, "tanh") == 0;
	return strcmp(op->type, "Clip") != 0 ||
	       (read_bound(b, 1, "min", &n->low) && read_bound(b, 2, "max", &n->high));
}

int build_table(struct build *b)
{
	const struct unit *u = b->u;
	const char *type = op_of(b)->type;
	struct quant x = quant_of(b, &u->in[0]), y = quant_of(b, &u->out);
	bool nhwc = model_prefers_nhwc(b, &u->in[0]);
	const int32_t size = 256;
	uint32_t in[2], out;
	struct numbers n;
	int8_t table[256];
	int rc = 0;

	if (!read_numbers(b, &n))
		return model_refuse(b, "its bounds are not constant");
	if (!x.scale || !y.scale || u->in[0].scales > 1)
		return model_refuse(b, "'%.80s' is not quantized per tensor",
				    value_of(b, &u->in[0])->name);
	if (strncmp(type, "QLinear", 7) == 0)
		type += 7;
	for (int32_t i = 0; i < 256; i++) {
		float real = apply(type, (float)(i - 128 - x.zero) * x.scale, &n);
		float q = nearbyintf(real / y.scale) + (float)y.zero;

		/* No number is the least one for the runtime's QuantizeLinear. */
		table[i] = (int8_t)(isnan(q) ? -128 : (int32_t)clamp(q, -128, 127));
	}
	rc = model_use(b, &u->in[0], nhwc, x, &in[0]);
	if (!rc)
		rc = model_tensor(b, NPUC_INT8, 1, &size, y, table, 256, &in[1]);
	if (!rc)
		rc = model_made(b, u->out.value, nhwc, y, &out);
	return rc ? rc : model_op(b, NPUC_TABLE_OPERATOR, in, 2, out, NULL, 0);
}
