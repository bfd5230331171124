/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ops.c - every model of the packs of data/tflite: parsed, compiled and run, each
 * byte of its outputs as TensorFlow Lite's reference kernels have it.
 *
 *   test_ops [--figures] [--mutants] [--current CHANGES [--changed]] [--shard I/N]
 *            [--only NUMBER] [--rect RxC] PACK... TARGET
 *
 * The kernels are those of TensorFlow Lite 2.14; --current: the current ones, whose
 * outputs CHANGES (current.gz) has where they differ; --changed: only such models.
 * Model number n of a pack is in shard n % N.  Rectangles take turns unless one is given.
 * A model whose output has 0 bytes must be refused.  --mutants: any model may be refused.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>

#include "npuc.h"
#include "oracle.h"

struct rect {
	uint16_t rows, cols;
};

/* The whole array; shapes that are no multiple of anything; a row, a column. */
static const struct rect turns[] = {{16, 16}, {5, 7}, {1, 13}, {16, 3}, {11, 1}};
#define TURNS (sizeof(turns) / sizeof(turns[0]))

struct choice {
	bool figures, mutants, one_rect, changed;
	const char *current; /* NULL: 2.14 */
	uint32_t shard, shards;
	int64_t only;
	struct rect rect;
	char **packs;
	uint32_t pack_count;
	const char *target;
};

struct bench {
	const struct choice *choice;
	struct oracle_changes changes;
	struct hal_device *dev;
	struct hal_partition *part;
	struct rect rect;
	const char *pack; /* in work */
	uint32_t run, failed, refused;
};

static int parse_arguments(int argc, char **argv, struct choice *c)
{
	unsigned a, b;
	int i = 1;

	*c = (struct choice){.shards = 1, .only = -1};
	for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(argv[i], "--figures") == 0) {
			c->figures = true;
			continue;
		}
		if (strcmp(argv[i], "--mutants") == 0) {
			c->mutants = true;
			continue;
		}
		if (strcmp(argv[i], "--changed") == 0) {
			c->changed = true;
			continue;
		}
		if (strcmp(argv[i], "--current") == 0 && *value) {
			c->current = value;
		} else if (strcmp(argv[i], "--shard") == 0 &&
			   sscanf(value, "%u/%u", &a, &b) == 2 && a < b) {
			c->shard = a;
			c->shards = b;
		} else if (strcmp(argv[i], "--only") == 0 &&
			   sscanf(value, "%u", &a) == 1) {
			c->only = a;
		} else if (strcmp(argv[i], "--rect") == 0 &&
			   sscanf(value, "%ux%u", &a, &b) == 2 && a < 256 && b < 256) {
			c->one_rect = true;
			c->rect = (struct rect){(uint16_t)a, (uint16_t)b};
		} else {
			return -EINVAL;
		}
		i++;
	}
	if (argc - i < 2 || (c->changed && !c->current))
		return -EINVAL;
	c->packs = argv + i;
	c->pack_count = (uint32_t)(argc - i - 1);
	c->target = argv[argc - 1];
	return 0;
}

/* What is left of a model's inputs and outputs in the pack: several inferences have their
 * own one behind the other. */
struct rest {
	const uint8_t *in, *out;
	uint64_t in_bytes, out_bytes;
};

static int write_inputs(struct npuc_run *run, const struct npuc_program *prog,
			struct rest *rest, char why[NPUC_WHY])
{
	int err = 0;

	for (uint32_t i = 0; i < prog->input_count && !err; i++) {
		uint64_t n = npuc_port_bytes(&prog->inputs[i]);

		if (n > rest->in_bytes) {
			snprintf(why, NPUC_WHY, "%s: the pack's inputs end",
				 prog->inputs[i].name);
			return -EINVAL;
		}
		err = npuc_run_write(run, i, rest->in, n, why);
		rest->in += n;
		rest->in_bytes -= n;
	}
	return err;
}

static int compare(const struct npuc_port *port, const uint8_t *wanted,
		   const uint8_t *got, char why[NPUC_WHY])
{
	uint32_t width = npuc_type_bytes(port->type), different = 0, first = 0;
	uint32_t count = (uint32_t)port->count;

	for (uint32_t i = count; i-- > 0;)
		if (memcmp(got + (size_t)i * width, wanted + (size_t)i * width, width) !=
		    0) {
			different++;
			first = i;
		}
	if (!different)
		return 0;
	if (width == 1)
		snprintf(why, NPUC_WHY, "%s: element %u of %u is %d, not %d; %u differ",
			 port->name, first, count, (int8_t)got[first],
			 (int8_t)wanted[first], different);
	else
		snprintf(why, NPUC_WHY, "%s: element %u of %u differs; %u do", port->name,
			 first, count, different);
	return -EBADMSG;
}

static int read_outputs(struct npuc_run *run, const struct npuc_program *prog,
			struct rest *rest, char why[NPUC_WHY])
{
	uint8_t *got = malloc(rest->out_bytes ? rest->out_bytes : 1);
	int err = got ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < prog->output_count && !err; i++) {
		uint64_t n = npuc_port_bytes(&prog->outputs[i]);

		if (n > rest->out_bytes) {
			snprintf(why, NPUC_WHY, "%s: the pack's outputs end",
				 prog->outputs[i].name);
			err = -EINVAL;
			break;
		}
		err = npuc_run_read(run, i, false, got, n, why);
		if (!err)
			err = compare(&prog->outputs[i], rest->out, got, why);
		rest->out += n;
		rest->out_bytes -= n;
	}
	free(got);
	return err;
}

/* One inference or several in a row. */
static int run_program(struct bench *b, const struct npuc_program *prog,
		       const struct oracle_model *m, char why[NPUC_WHY])
{
	struct rest rest = {m->input, m->output, m->input_bytes, m->output_bytes};
	uint8_t *random = NULL;
	struct npuc_run *run = NULL;
	int err = npuc_run_open(b->dev, b->part, prog, &run, why);

	if (!err && !m->input) {
		random = malloc(m->input_bytes ? m->input_bytes : 1);
		err = random ? 0 : -ENOMEM;
		if (random)
			oracle_random(m->seed, random, m->input_bytes);
		rest.in = random;
	}
	while (!err && (rest.in_bytes || rest.out_bytes)) {
		err = write_inputs(run, prog, &rest, why);
		if (!err)
			err = npuc_run_kernel(run, "run", NULL, why);
		if (!err)
			err = read_outputs(run, prog, &rest, why);
	}
	npuc_run_close(run);
	free(random);
	return err;
}

static void run_model(struct bench *b, uint32_t number, const struct oracle_model *m)
{
	const struct npuc_options options = {.reference = b->choice->current
								  ? NPUC_REFERENCE_CURRENT
								  : NPUC_REFERENCE_2_14};
	char why[NPUC_WHY] = "", name[32];
	struct npuc_program prog;
	struct npuc_model *model = NULL;
	bool compiled, may_refuse = b->choice->mutants || !m->output_bytes;
	int err;

	memset(&prog, 0, sizeof(prog));
	snprintf(name, sizeof(name), "model %u", number);
	err = npuc_model_parse(m->model, m->model_bytes, name, &model, why);
	if (!err)
		err = npuc_compile(model, &options, &prog, why);
	compiled = !err;
	/* What ends before the host's part is no answer of the whole model. */
	if ((err && may_refuse && why[0]) ||
	    (compiled && b->choice->mutants && prog.host[0])) {
		b->refused++;
		err = 0;
	} else if (!err && !m->output_bytes) {
		snprintf(why, sizeof(why), "compiled; it must be refused");
		err = -EBADMSG;
	} else if (!err) {
		err = run_program(b, &prog, m, why);
	}
	b->run++;
	if (err) {
		b->failed++;
		printf("FAILED %s %u %s on %ux%u: %s\n", b->pack, number, m->text,
		       b->rect.rows, b->rect.cols, why[0] ? why : strerror(-err));
	}
	if (compiled)
		npuc_program_free(&prog);
	npuc_model_free(model);
}

/* A model's rectangle does not depend on the shards. */
static bool is_chosen(const struct choice *c, uint32_t number, uint32_t turn)
{
	bool in_turn = c->one_rect || (number * 2654435761u >> 16) % TURNS == turn;

	if (c->only >= 0)
		return number == c->only && in_turn;
	return number % c->shards == c->shard && in_turn;
}

static int run_pack(struct bench *b, uint32_t turn, const char *path)
{
	struct oracle_model m;
	struct oracle_pack p;
	int err = oracle_pack_open(path, &p);

	if (err) {
		printf("%s: %s\n", path, strerror(-err));
		return err;
	}
	b->pack = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	for (uint32_t i = 0; i < p.models && !err; i++) {
		err = oracle_pack_next(&p, &m);
		if (err)
			printf("%s: cut off at model %u\n", path, i);
		else if (is_chosen(b->choice, i, turn) &&
			 (oracle_changes_apply(&b->changes, b->pack, i, &m) ||
			  !b->choice->changed))
			run_model(b, i, &m);
	}
	oracle_pack_close(&p);
	return err;
}

/* All models whose turn it is on one rectangle. */
static int run_turn(struct bench *b, uint32_t turn)
{
	struct hal_partition_desc part = HAL_INIT(hal_partition_desc);
	int err;

	b->rect = b->choice->one_rect ? b->choice->rect : turns[turn];
	part.rows = b->rect.rows;
	part.cols = b->rect.cols;
	err = hal_partition_create(b->dev, &part, &b->part);
	if (err)
		printf("%ux%u: %s\n", part.rows, part.cols, hal_last_error());
	for (uint32_t i = 0; i < b->choice->pack_count && !err; i++)
		err = run_pack(b, turn, b->choice->packs[i]);
	if (hal_partition_destroy(b->part) && !err) {
		printf("%s\n", hal_last_error());
		err = -EBUSY;
	}
	return err;
}

int main(int argc, char **argv)
{
	struct choice c;
	struct bench b = {.choice = &c};
	int err = parse_arguments(argc, argv, &c);

	if (err) {
		printf("usage: test_ops [--figures] [--mutants] [--current CHANGES "
		       "[--changed]] [--shard I/N] [--only NUMBER] [--rect RxC] "
		       "PACK... TARGET\n");
		return 2;
	}
	err = c.current ? oracle_changes_open(c.current, &b.changes) : 0;
	if (err) {
		printf("%s: %s\n", c.current, strerror(-err));
		return 1;
	}
	err = hal_open(c.target, NULL, &b.dev);
	if (err) {
		printf("%s: %s\n", c.target, hal_last_error());
		oracle_changes_close(&b.changes);
		return err == -ENODEV ? 77 : 1;
	}
	for (uint32_t turn = 0; turn < (c.one_rect ? 1 : TURNS) && !err; turn++)
		err = run_turn(&b, turn);
	if (hal_close(b.dev) && !err) {
		printf("%s\n", hal_last_error());
		err = -EBUSY;
	}
	oracle_changes_close(&b.changes);
	printf("%u models, %u refused, %u differ\n", b.run, b.refused, b.failed);
	if (err || !b.run)
		return 1;
	if (c.figures) {
		const char *of = c.current ? "current" : "random";

		printf("figure npu.tflite.%s_models %u\n", of, b.run);
		printf("figure npu.tflite.%s_mismatches %u\n", of, b.failed);
		return 0;
	}
	return b.failed != 0;
}
