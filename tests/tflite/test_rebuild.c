/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rebuild.c - models of the packs of data/tflite, and .tflite files, made again with
 * npuc_builder: the same image, or the same refusal.
 *
 *   test_rebuild [--shard I/N] PACK... FILE.tflite...
 *
 * Left out, and counted: what a builder does not have, which are graphs called by an
 * operator, names of variables and quantizations of other kinds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "oracle.h"
#include "schema.h"

#define ATTRS 16u

struct count {
	uint32_t equal, refused, left_out, failed;
};

static uint64_t operators; /* that went through the builder */
static bool seen[256];     /* codes that went through it with attributes */

static bool can_build(const struct npuc_model *m)
{
	if (m->more_count)
		return false;
	for (uint32_t i = 0; i < m->tensor_count; i++) {
		const char *unusable = m->tensors[i].unusable;

		if (unusable && !strstr(unusable, "variable"))
			return false;
	}
	for (uint32_t i = 0; i < m->op_count; i++)
		if (m->ops[i].code == NPUC_VAR_HANDLE)
			return false;
	return true;
}

static int add_tensor(struct npuc_builder *b, const struct npuc_model *m, uint32_t i,
		      char *why)
{
	const struct model_tensor *t = &m->tensors[i];
	float *scale = calloc((size_t)t->t.scales + 1, sizeof(*scale));
	int32_t *zero = calloc((size_t)t->t.scales + 1, sizeof(*zero));
	struct npuc_tensor_desc d = {.name = t->t.name,
				     .type = t->t.type,
				     .rank = t->t.rank,
				     .dims = t->t.dims,
				     .scales = t->t.scales,
				     .scale = scale,
				     .zero_points = t->zero_points.count,
				     .zero_point = zero,
				     .channel_dim = t->t.channel_dim,
				     .data = t->t.data,
				     .bytes = t->t.data ? t->t.bytes : 0,
				     .variable = t->unusable != NULL,
				     .open = t->open};
	uint32_t index = 0;
	int rc = -ENOMEM;

	for (uint32_t k = 0; scale && zero && k < t->t.scales; k++) {
		scale[k] = npuc_tensor_scale(m, i, k);
		zero[k] = npuc_tensor_zero_point(m, i, k);
	}
	if (!t->t.scales)
		d.zero_points = 0;
	if (scale && zero)
		rc = npuc_builder_tensor(b, &d, &index, why);
	free(scale);
	free(zero);
	return rc ? rc : index == i ? 0 : -EBADMSG;
}

/* Read the options of the file by the schema's names. */
static uint32_t read_attrs(const struct npuc_model *m, const struct model_op *op,
			   struct npuc_attr *attrs, int32_t *ints)
{
	uint32_t number = 0, count = 0;
	const struct schema_field *field = npuc_schema_fields(op->code, &number);
	struct flat f = m->flat;
	struct flat_vector v;

	for (; field && op->options_type == number && field->kind; field++) {
		struct npuc_attr *a = &attrs[count];

		if (!flat_has(&f, op->options, field->number))
			continue;
		*a = (struct npuc_attr){.name = field->name};
		switch (field->kind) {
		case SCHEMA_F32:
			a->f = flat_f32(&f, op->options, field->number, 0);
			break;
		case SCHEMA_I32:
			a->i = flat_i32(&f, op->options, field->number, 0);
			break;
		case SCHEMA_INTS:
			v = flat_vector(&f, op->options, field->number, 4);
			for (uint32_t k = 0; k < v.count && k < ATTRS; k++)
				ints[k] = flat_vector_i32(&f, v, k);
			a->ints = ints;
			a->count = v.count < ATTRS ? v.count : ATTRS;
			break;
		default:
			a->i = flat_u8(&f, op->options, field->number, 0);
			break;
		}
		count++;
	}
	return count;
}

static int add_op(struct npuc_builder *b, const struct npuc_model *m, uint32_t i,
		  char *why)
{
	const struct model_op *op = &m->ops[i];
	struct npuc_attr attrs[ATTRS];
	int32_t ints[ATTRS];
	struct npuc_op_desc d = {.code = op->code,
				 .custom = op->custom,
				 .version = op->version,
				 .inputs = op->inputs,
				 .outputs = op->outputs,
				 .input_count = op->input_count,
				 .output_count = op->output_count,
				 .intermediates = op->between,
				 .intermediate_count = op->between_count,
				 .attrs = attrs,
				 .attr_count = read_attrs(m, op, attrs, ints)};
	uint32_t layer = 0;
	int rc = npuc_builder_op(b, &d, &layer, why);

	operators++;
	seen[op->code & 255] |= d.attr_count != 0;
	return rc ? rc : layer == i ? 0 : -EBADMSG;
}

static int rebuild(const struct npuc_model *m, const char *name, struct npuc_model **made,
		   char *why)
{
	struct npuc_builder *b;
	int rc = npuc_builder_create(name, &b, why);

	for (uint32_t i = 0; !rc && i < m->tensor_count; i++)
		rc = add_tensor(b, m, i, why);
	for (uint32_t i = 0; !rc && i < m->op_count; i++)
		rc = add_op(b, m, i, why);
	if (!rc)
		rc = npuc_builder_model(b, m->inputs, m->input_count, m->outputs,
					m->output_count, made, why);
	npuc_builder_free(b);
	return rc;
}

/* Compare what comes of both; true: nothing differs. */
static bool same_programs(const struct npuc_model *m, const struct npuc_model *made,
			  struct count *n, char *why)
{
	struct npuc_program p = {0}, q = {0};
	char other[NPUC_WHY] = "";
	int rc = npuc_compile(m, NULL, &p, why);
	int again = npuc_compile(made, NULL, &q, other);
	bool same = rc == again && strcmp(rc ? why : "", other) == 0;

	if (same && !rc)
		same = p.image_size == q.image_size &&
		       memcmp(p.image, q.image, p.image_size) == 0 &&
		       p.input_count == q.input_count &&
		       p.output_count == q.output_count &&
		       memcmp(p.inputs, q.inputs, p.input_count * sizeof(*p.inputs)) ==
			       0 &&
		       memcmp(p.outputs, q.outputs,
			      p.output_count * sizeof(*p.outputs)) == 0;
	if (!same)
		snprintf(why, NPUC_WHY, "%d, then %d %s: not the same program", rc, again,
			 other);
	else
		*(rc ? &n->refused : &n->equal) += 1;
	npuc_program_free(&p);
	npuc_program_free(&q);
	return same;
}

static void try_model(const void *bytes, size_t size, const char *name, struct count *n)
{
	struct npuc_model *m = NULL, *made = NULL;
	char why[NPUC_WHY] = "";
	bool same = true;

	if (npuc_model_parse(bytes, size, name, &m, why) != 0 || !can_build(m))
		n->left_out++;
	else
		same = rebuild(m, name, &made, why) == 0 &&
		       same_programs(m, made, n, why);
	if (!same) {
		n->failed++;
		printf("FAILED %s: %s\n", name, why);
	}
	npuc_model_free(made);
	npuc_model_free(m);
}

static int try_pack(const char *path, uint32_t shard, uint32_t shards, struct count *n)
{
	const char *base = strrchr(path, '/');
	struct oracle_model m;
	struct oracle_pack p;
	char name[128];
	int err = oracle_pack_open(path, &p);

	if (err)
		return err;
	for (uint32_t i = 0; i < p.models && !err; i++) {
		err = oracle_pack_next(&p, &m);
		snprintf(name, sizeof(name), "%.80s %u", base ? base + 1 : path, i);
		if (!err && i % shards == shard)
			try_model(m.model, m.model_bytes, name, n);
	}
	oracle_pack_close(&p);
	return err;
}

static int try_file(const char *path, struct count *n)
{
	size_t size;
	uint8_t *bytes = oracle_read_file(path, &size);

	if (!bytes)
		return -errno;
	try_model(bytes, size, path, n);
	free(bytes);
	return 0;
}

int main(int argc, char **argv)
{
	uint32_t shard = 0, shards = 1, codes = 0;
	struct count n = {0};
	int i = 1, err = 0;

	if (argc > 2 && strcmp(argv[1], "--shard") == 0 &&
	    sscanf(argv[2], "%u/%u", &shard, &shards) == 2 && shard < shards)
		i = 3;
	for (; i < argc && !err; i++) {
		err = strstr(argv[i], ".pack") ? try_pack(argv[i], shard, shards, &n)
					       : try_file(argv[i], &n);
		if (err)
			printf("%s: %s\n", argv[i], strerror(-err));
	}
	for (i = 0; i < 256; i++)
		codes += seen[i];
	printf("%u equal, %u refused alike, %u left out, %u differ; %llu operators, %u "
	       "kinds of them with attributes\n",
	       n.equal, n.refused, n.left_out, n.failed, (unsigned long long)operators,
	       codes);
	return err || n.failed || !n.equal;
}
