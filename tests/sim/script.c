/* SPDX-License-Identifier: Apache-2.0 */
/* script.c - runs as data: made from a seed, written, read. */
#define _GNU_SOURCE
#include "script.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* s and i count, f fills, c copies, h calls back, b is a barrier, t a timestamp, n
 * nothing; x goes wrong: one in 16 that a seed makes. */
#define COMMANDS "sssssiffchhbtnx"

enum { LETTERS = sizeof(COMMANDS) - 1 };

/* clang-format off */
const struct sim_type sim_types[] = {
	{"part_create", 6, do_part_create,
	 {{"units", 64, 0}, {"rectangle", 2, 0}, {"row", 16, 0}, {"col", 64, 0},
	  {"rows", 16, 0}, {"cols", 64, 0}, {"ceiling", 64, 0}, {"memory", 128, 0},
	  {"color", 24, 0}, {"guest", 20, 0}, {"limit", 24, 0}}},
	{"part_destroy", 2, do_part_destroy, {{"part", PARTS, 0}}},
	{"part_resize", 4, do_part_resize,
	 {{"units", 64, 0}, {"rectangle", 2, 0}, {"row", 16, 0}, {"col", 64, 0},
	  {"rows", 16, 0}, {"cols", 64, 0}, {"ceiling", 64, 0}, {"wait", 2, 0},
	  {"part", PARTS, 0}}},
	{"queue_create", 8, do_queue_create,
	 {{"part", PARTS, 0}, {"class", 4, 0}, {"priority", 3, 0}, {"deadline", 10000, 0},
	  {"weight", 4, 0}, {"budget", 1001, 0}, {"tells", 2, 0}}},
	{"queue_destroy", 4, do_queue_destroy, {{"queue", QUEUES, 0}}},
	{"suspend", 12, do_suspend,
	 {{"queue", QUEUES, 0}, {"mode", 4, 0}, {"wait", 2, 0}}},
	{"suspend_final", 1, do_suspend_final, {{"queue", QUEUES, 0}, {"mode", 4, 0}}},
	{"resume", 14, do_resume, {{"queue", QUEUES, 0}}},
	{"submit", 40, do_submit,
	 {{"queue", QUEUES, 0}, {"commands", 65536, COMMANDS}, {"work", 20000, 0},
	  {"plain", 64, 0}, {"wait", 8, 0}, {"on", 4096, 0}, {"signal", 3, 0},
	  {"asks", 16, 0}, {"ns", 8000, 0}}},
	{"record", 4, do_record,
	 {{"queue", QUEUES, 0}, {"commands", 65536, COMMANDS}, {"work", 20000, 0},
	  {"plain", 64, 0}}},
	{"sequence", 8, do_sequence,
	 {{"queue", QUEUES, 0}, {"work", 20000, 0}, {"wait", 8, 0}, {"on", 4096, 0},
	  {"asks", 16, 0}, {"ns", 8000, 0}}},
	{"new_buffer", 3, do_new_buffer, {{"queue", QUEUES, 0}}},
	{"recolor", 10, do_recolor,
	 {{"queue", QUEUES, 0}, {"by", QUEUES, 0}, {"state", 2, 0}, {"colors", 256, 0},
	  {"weights", 64, 0}, {"wait", 4, 0}}},
	{"poll", 25, do_poll, {{"ns", 4000, 0}, {"long", 32, 0}}},
	{"wait", 8, do_wait, {{"queue", QUEUES, 0}, {"on", 4096, 0}, {"look", 2, 0}}},
	{"open_gate", 5, do_open_gate, {{"gate", GATES, 0}}},
	{"read", 6, do_read, {{"max", RING, 0}}},
	{"inject", 3, do_inject,
	 {{"what", 8, 0}, {"nth", 2, 0}, {"part", PARTS, 0}, {"units", 64, 0}}},
	{"swap", 1, do_policy, {{"which", 64, 0}}},
	{"hostile", 1, do_hostile, {{"how", 256, 0}, {"random", 65536, 0}}},
};
/* clang-format on */

enum { TYPES = sizeof(sim_types) / sizeof(*sim_types) };

uint64_t script_random(uint64_t *state, uint64_t below)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return below != 0 ? z % below : z;
}

/* ---- from a seed -------------------------------------------------------------------- */

static const char *const ref_targets[] = {
	"ref?units=16&memory=4M",
	"ref?units=64&rows=8&colors=8&memory=4M&fold_ns=300",
	"ref?units=5&depth=1&memory=1M",
	"ref?units=12&rows=3&preempt=between&memory=2M&colors=3",
	"ref?units=30&rows=5&resize=idle&depth=2&memory=2M&fold_ns=1&colors=4",
	"ref?units=3&preempt=none&resize=none&memory=1M",
	"ref?units=24&rows=4&memory=2M&fold_ns=1000",
	"ref?units=2&memory=1M",
};

static const char *const fast_targets[] = {
	"npu:0?engine=fast",
	"npu:0?engine=fast&rows=8&cols=8",
	"npu:0?engine=fast&rows=5&cols=7&slots=3",
	"npu:0?engine=fast&rows=4&cols=12&slots=2&channels=2",
};

/* What any of them can be opened with beside; faults are rare. */
static const char *const beside[] = {
	"",
	"",
	"&hal.inflight=4&hal.partition_inflight=4",
	"&hal.partition_inflight=1&hal.inflight=1",
	"&hal.queue_depth=8",
	"&policy.kills=1",
	"&policy.preempt=drain",
	"&policy.preempt=kill",
	"&policy.preempt=fold",
	"&policy.inherit=no",
	"&policy.preempt_for=priority",
	"&policy.preempt_for=priority&policy.preempt=kill",
	"&policy.preempt_for=priority&policy.preempt=fold",
	"&policy.preempt_for=deadline",
	"&policy.preempt_for=deadline&policy.kills=1",
	"&policy.preempt=never",
	"&layers.validate=1",
	"&layers.validate=1&hal.inflight=8&hal.partition_inflight=64",
};

static const struct {
	const char *op, *err;
} faults[] = {
	{"poll", "EIO"},         {"submit", "EIO"},           {"submit", "EAGAIN"},
	{"suspend", "EIO"},      {"resize", "EIO"},           {"resume", "EIO"},
	{"mem_alloc", "ENOMEM"}, {"partition_create", "EIO"}, {"queue_create", "ENOSPC"},
	{"mem_out", "EIO"},      {"mem_in", "EIO"},           {"mem_in", "ENOSPC"},
};

static const char *one_of(uint64_t *random, const char *const *list, size_t count)
{
	return list[script_random(random, count)];
}

#define ONE_OF(random, list) one_of(random, list, sizeof(list) / sizeof(*(list)))

static void make_target(char *out, size_t size, uint64_t *random, const char *family)
{
	const char *base = strcmp(family, "fast") == 0 ? ONE_OF(random, fast_targets)
						       : ONE_OF(random, ref_targets);
	int n = snprintf(out, size, "%s%s", base, ONE_OF(random, beside));
	size_t k;

	/* Most begin with a net that holds after a millisecond: it is to be seen. */
	if (strstr(out, "timeout_ms") == NULL)
		n += snprintf(out + n, size - (size_t)n, "&policy.timeout_ms=1");
	if (script_random(random, 2) != 0)
		n += snprintf(out + n, size - (size_t)n, "&hal.oversubscribe=yes");
	if (script_random(random, 5) != 0)
		return;
	k = script_random(random, sizeof(faults) / sizeof(*faults));
	snprintf(out + n, size - (size_t)n, "&layers.fault=%s:%u:%s", faults[k].op,
		 (unsigned int)(5 + script_random(random, 400)), faults[k].err);
}

static uint32_t make_letters(uint64_t *random)
{
	uint64_t n = script_random(random, SIM_COMMANDS + 1);
	uint32_t value = 0;

	while (n-- > 0) {
		uint32_t place = (uint32_t)(1 + script_random(random, LETTERS));

		if (place == LETTERS && script_random(random, 16) != 0)
			place = 1;
		value = value << 4 | place;
	}
	return value;
}

static void make_op(struct sim_op *op, uint64_t *random)
{
	uint32_t all = 0, i;
	uint64_t pick;

	for (i = 0; i < TYPES; i++)
		all += sim_types[i].weight;
	pick = script_random(random, all);
	for (i = 0; pick >= sim_types[i].weight; i++)
		pick -= sim_types[i].weight;
	op->type = i;
	for (uint32_t k = 0; k < SIM_PARAMS && sim_types[i].params[k].name; k++)
		op->p[k] = sim_types[i].params[k].letters
				   ? make_letters(random)
				   : (uint32_t)script_random(
					     random, sim_types[i].params[k].below);
}

int script_make(struct sim_script *s, uint64_t seed, uint32_t steps, const char *family,
		const char *target, const char *policy)
{
	uint64_t random = seed;

	memset(s, 0, sizeof(*s));
	if (target != NULL)
		snprintf(s->target, sizeof(s->target), "%s", target);
	else
		make_target(s->target, sizeof(s->target), &random, family);
	if (policy != NULL)
		snprintf(s->policy, sizeof(s->policy), "%s", policy);
	s->ops = calloc(steps ? steps : 1, sizeof(*s->ops));
	if (s->ops == NULL)
		return -1;
	s->count = steps;
	for (uint32_t i = 0; i < steps; i++)
		make_op(&s->ops[i], &random);
	return 0;
}

void script_free(struct sim_script *s)
{
	free(s->ops);
	s->ops = NULL;
}

/* ---- text --------------------------------------------------------------------------- */

void script_print_op(FILE *f, const struct sim_op *op)
{
	const struct sim_type *t = &sim_types[op->type];

	fputs(t->name, f);
	for (uint32_t i = 0; i < SIM_PARAMS && t->params[i].name; i++) {
		if (op->p[i] == 0)
			continue;
		fprintf(f, " %s=", t->params[i].name);
		if (t->params[i].letters == NULL)
			fprintf(f, "%" PRIu32, op->p[i]);
		for (uint32_t v = op->p[i]; t->params[i].letters && v; v >>= 4)
			fputc(t->params[i].letters[(v & 15) - 1], f);
	}
	fputc('\n', f);
}

void script_print(FILE *f, const struct sim_script *s)
{
	fprintf(f, "target %s\n", s->target);
	if (s->policy[0])
		fprintf(f, "policy %s\n", s->policy);
	for (uint32_t i = 0; i < s->count; i++)
		script_print_op(f, &s->ops[i]);
}

static int wrong(const char *path, uint32_t line, const char *what, const char *word)
{
	fprintf(stderr, "%s:%" PRIu32 ": %s '%s'\n", path, line, what, word);
	return -1;
}

/* Only those letters whose place is the first of their kind. */
static bool read_letters(const char *text, const char *letters, uint32_t *value)
{
	size_t n = strlen(text);

	*value = 0;
	if (n > SIM_COMMANDS)
		return false;
	while (n-- > 0) {
		const char *at = strchr(letters, text[n]);

		if (at == NULL)
			return false;
		*value = *value << 4 | (uint32_t)(at - letters + 1);
	}
	return true;
}

static bool read_number(const char *text, uint32_t below, uint32_t *value)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	*value = (uint32_t)v;
	return *text >= '0' && *text <= '9' && *end == 0 && v < below;
}

static int read_param(const char *path, uint32_t line, struct sim_op *op, char *word)
{
	const struct sim_type *t = &sim_types[op->type];
	char *value = strchr(word, '=');
	uint32_t i = 0;

	if (value == NULL)
		return wrong(path, line, "not NAME=VALUE:", word);
	*value++ = 0;
	while (i < SIM_PARAMS && t->params[i].name &&
	       strcmp(t->params[i].name, word) != 0)
		i++;
	if (i == SIM_PARAMS || t->params[i].name == NULL)
		return wrong(path, line, "no number of this operation:", word);
	if (t->params[i].letters ? !read_letters(value, t->params[i].letters, &op->p[i])
				 : !read_number(value, t->params[i].below, &op->p[i]))
		return wrong(path, line, "not a value of it:", value);
	return 0;
}

static int read_op(const char *path, uint32_t line, struct sim_script *s, char *name,
		   char **rest)
{
	struct sim_op op = {0}, *more;
	char *word;

	while (op.type < TYPES && strcmp(sim_types[op.type].name, name) != 0)
		op.type++;
	if (op.type == TYPES)
		return wrong(path, line, "no such operation:", name);
	while ((word = strtok_r(NULL, " \t\n", rest)) != NULL)
		if (read_param(path, line, &op, word))
			return -1;
	more = realloc(s->ops, (s->count + 1) * sizeof(*more));
	if (more == NULL)
		return -1;
	s->ops = more;
	s->ops[s->count++] = op;
	return 0;
}

static int read_head(const char *path, uint32_t line, char *out, size_t size, char **rest)
{
	const char *word = strtok_r(NULL, " \t\n", rest);

	if (word == NULL || strlen(word) >= size)
		return wrong(path, line, "not a word:", word != NULL ? word : "");
	snprintf(out, size, "%s", word);
	return 0;
}

static int read_line(const char *path, uint32_t line, struct sim_script *s, char *text)
{
	char *rest = NULL, *name;

	text[strcspn(text, "#")] = 0;
	name = strtok_r(text, " \t\n", &rest);
	if (name == NULL)
		return 0;
	if (strcmp(name, "target") == 0)
		return read_head(path, line, s->target, sizeof(s->target), &rest);
	if (strcmp(name, "policy") == 0)
		return read_head(path, line, s->policy, sizeof(s->policy), &rest);
	return read_op(path, line, s, name, &rest);
}

int script_read(const char *path, struct sim_script *s)
{
	FILE *f = fopen(path, "r");
	char text[1024];
	uint32_t line = 0;
	int err = 0;

	memset(s, 0, sizeof(*s));
	if (f == NULL) {
		perror(path);
		return -1;
	}
	while (err == 0 && fgets(text, sizeof(text), f) != NULL)
		err = read_line(path, ++line, s, text);
	fclose(f);
	if (err == 0 && s->target[0] == 0)
		err = wrong(path, line, "no", "target");
	if (err != 0)
		script_free(s);
	return err;
}
