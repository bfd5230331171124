/* SPDX-License-Identifier: Apache-2.0 */
/* test_explain.c - halrun --explain: the columns of its table add up, cycle by cycle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "device.h"
#include "explain.h"
#include "run.h"
#include "tiny.h"

#define DIGITS HAL_SOURCE_DIR "/data/digits/"
#define TARGET "npu:0?clock=virtual&engine=fast"
#define ON     HALRUN " -t '" TARGET "' "
#define LINES  80
#define SIDE   16u /* rows of PEs, and columns */

/* ---- the division of a launch ------------------------------------------------------ */

static const struct explain_cycles none;

/* 100 cycles of the launch, 7 of the commands around it and 5 idle; 30 rows of the array
 * in 3 folds, and 10 cycles of the vector unit. */
static struct explain_launch sound(void)
{
	struct explain_launch l = {.before = {.cycles = 1000, .active = 900, .idle = 100},
				   .cycles = 100,
				   .tail = 12};

	l.after = l.before;
	l.after.cycles += 112;
	l.after.active += 40;
	l.after.stall_a += 5;
	l.after.stall_w += 6;
	l.after.stall_out += 8;
	l.after.stall_seq += 48;
	l.after.idle += 5;
	l.after.rows += 30;
	l.after.folds += 3;
	l.after.macs += 20 * SIDE * SIDE + 1;
	return l;
}

static int divide(const struct explain_launch *l, struct explain_cycles *c)
{
	return explain_divide(l, SIDE, SIDE, &none, c);
}

static void assert_causes(const struct explain_cycles *c, const uint64_t *of)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < CAUSES; i++) {
		assert_int_equal(c->of[i], of[i]);
		sum += of[i];
	}
	assert_int_equal(c->cycles, sum);
}

static void test_divide(void **state)
{
	/* full, depthwise, partial, vector, input, weights, entry, stores, start */
	static const uint64_t mixed[] = {21, 0, 9, 10, 5, 6, 18, 8, 23};
	static const uint64_t array[] = {21, 0, 9, 0, 5, 6, 18, 20, 11};
	static const uint64_t whole[] = {21, 2, 7, 0, 5, 6, 20, 20, 9};
	static const uint64_t deep[] = {21, 9, 0, 0, 5, 6, 29, 20, 0};
	const struct explain_cycles some = {
		.of = {[CAUSE_DEPTHWISE] = 2, [CAUSE_ENTRY] = 20}};
	const struct explain_cycles all = {
		.of = {[CAUSE_DEPTHWISE] = UINT64_MAX, [CAUSE_ENTRY] = 1000}};
	struct explain_launch l = sound();
	struct explain_cycles c;

	(void)state;
	assert_int_equal(divide(&l, &c), 0);
	assert_int_equal(c.macs, 20 * SIDE * SIDE + 1);
	assert_causes(&c, mixed);
	l.after.active -= 10; /* without the vector unit: the tail is stores */
	l.after.cycles -= 10;
	l.cycles -= 10;
	assert_int_equal(divide(&l, &c), 0);
	assert_causes(&c, array);
	assert_int_equal(explain_divide(&l, SIDE, SIDE, &some, &c), 0);
	assert_causes(&c, whole);
	assert_int_equal(explain_divide(&l, SIDE, SIDE, &all, &c), 0);
	assert_causes(&c, deep);
	l.tail = 1000; /* no more than there is */
	assert_int_equal(divide(&l, &c), 0);
	assert_int_equal(c.of[CAUSE_STORES], 8 + 41);
	assert_int_equal(c.of[CAUSE_ENTRY] + c.of[CAUSE_START], 0);
}

/* Counters that contradict each other are an error, never a table. */
static void test_contradictions(void **state)
{
	struct explain_launch l;
	struct explain_cycles c;

	(void)state;
#define CONTRADICTS(change)                                                              \
	do {                                                                             \
		l = sound();                                                             \
		change;                                                                  \
		assert_int_equal(divide(&l, &c), -1);                                    \
	} while (0)
	CONTRADICTS(l.after.cycles++);   /* a cycle without a class */
	CONTRADICTS(l.after.stall_a--);  /* the same */
	CONTRADICTS(l.after.idle++);     /* a cycle counted twice */
	CONTRADICTS(l.after.rows += 11); /* more rows than active cycles */
	CONTRADICTS(l.after.macs = 30 * SIDE * SIDE + 1); /* more than rows can make */
	CONTRADICTS(l.cycles = 108); /* the launch was longer than the slot worked */
	CONTRADICTS(l.cycles = 58);  /* shorter than its folds */
#undef CONTRADICTS
	l = sound();
	l.after.macs = 30 * SIDE * SIDE;
	l.cycles = 107;
	assert_int_equal(divide(&l, &c), 0);
	l.cycles = 59;
	assert_int_equal(divide(&l, &c), 0);
}

/* ---- the table --------------------------------------------------------------------- */

struct line {
	char name[64]; /* operator; of a sum its first two words */
	int64_t macs, cycles, of[CAUSES];
};

struct table {
	uint32_t layers;
	struct line lines[LINES]; /* layers, then sum, overlap, whole */
};

/* Numbers are the last columns: split the line at spaces. */
static void read_line(char *from, struct line *l)
{
	char *words[64], *save = NULL;
	uint32_t n = 0;

	for (char *w = strtok_r(from, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		assert_true(n < 64);
		words[n++] = w;
	}
	assert_true(n > CAUSES + 4);
	snprintf(l->name, sizeof(l->name), "%s%s%s",
		 strspn(words[0], "0123456789") ? "" : words[0],
		 strspn(words[0], "0123456789") ? "" : " ", words[1]);
	for (uint32_t i = 0; i < CAUSES; i++)
		l->of[i] = strtoll(words[n - CAUSES + i], NULL, 10);
	l->cycles = strtoll(words[n - CAUSES - 2], NULL, 10);
	l->macs = strtoll(words[n - CAUSES - 3], NULL, 10);
}

/* Read the table out of text, up to the line of the whole program. */
static void read_table(struct table *t)
{
	uint32_t n = 0;
	char *save = NULL;

	memset(t, 0, sizeof(*t));
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		if (strstr(l, "LAYER"))
			continue;
		assert_true(n < LINES);
		read_line(l, &t->lines[n++]);
		if (strcmp(t->lines[n - 1].name, "the whole") == 0)
			break;
	}
	assert_true(n > 3);
	t->layers = n - 3;
	assert_string_equal(t->lines[n - 3].name, "all layers,");
	assert_string_equal(t->lines[n - 2].name, "overlap of");
	assert_string_equal(t->lines[n - 1].name, "the whole");
}

static void add_line(struct line *to, const struct line *l)
{
	to->macs += l->macs;
	to->cycles += l->cycles;
	for (uint32_t i = 0; i < CAUSES; i++)
		to->of[i] += l->of[i];
}

static void assert_line(const struct line *l, const struct line *expected)
{
	assert_int_equal(l->macs, expected->macs);
	assert_int_equal(l->cycles, expected->cycles);
	for (uint32_t i = 0; i < CAUSES; i++)
		assert_int_equal(l->of[i], expected->of[i]);
}

/* Columns add up to a line's cycles, layers and overlap to the whole. */
static void check_table(const struct table *t)
{
	const struct line *sum = &t->lines[t->layers], *overlap = sum + 1,
			  *whole = sum + 2;
	struct line all = {0};

	for (uint32_t i = 0; i < t->layers + 3; i++) {
		const struct line *l = &t->lines[i];
		int64_t cycles = 0;

		for (uint32_t k = 0; k < CAUSES; k++) {
			assert_true(l == overlap || l->of[k] >= 0);
			cycles += l->of[k];
		}
		assert_int_equal(l->cycles, cycles);
		if (i < t->layers)
			add_line(&all, l);
	}
	assert_line(sum, &all);
	add_line(&all, overlap);
	assert_line(whole, &all);
	assert_int_equal(overlap->macs, 0);
	assert_int_equal(overlap->of[CAUSE_DEPTHWISE], 0);
}

/* Layers of which the number of rows is known: M * ceil(K / 16) * ceil(N / 16). */
static void check_rows(const struct line *l, int64_t macs, int64_t rows)
{
	int64_t full = (macs + SIDE * SIDE - 1) / (SIDE * SIDE);

	assert_int_equal(l->macs, macs);
	assert_int_equal(l->of[CAUSE_FULL], full);
	assert_int_equal(l->of[CAUSE_DEPTHWISE] + l->of[CAUSE_PARTIAL], rows - full);
}

/* Run the layers and the whole through libnpuc: the cycles are those of the table. */
static void check_cycles(const struct table *t, const char *path)
{
	const struct npuc_options options = {.layers = true};
	struct npuc_program p;
	struct npuc_run *run;
	struct device d;
	char why[NPUC_WHY];
	uint64_t cycles;

	assert_int_equal(npuc_program_open(path, &options, &p, why), 0);
	assert_int_equal(device_open(TARGET, 0, &d, why), 0);
	assert_int_equal(npuc_run_open(d.dev, d.part, &p, &run, why), 0);
	assert_int_equal(t->layers, p.layer_count);
	for (uint32_t i = 0; i <= p.layer_count; i++) {
		bool whole = i == p.layer_count;
		const char *kernel = whole ? "run" : p.layers[i].kernel;
		const struct line *l = &t->lines[whole ? i + 2 : i];

		for (uint32_t k = 0; k < 2 && kernel[0]; k++)
			assert_int_equal(npuc_run_kernel(run, kernel, &cycles, why), 0);
		assert_int_equal(l->cycles, kernel[0] ? cycles : 0);
		assert_int_equal(l->macs, whole ? p.macs : p.layers[i].macs);
	}
	assert_int_equal(npuc_run_close(run), 0);
	assert_int_equal(device_close(&d), 0);
	npuc_program_free(&p);
}

static void test_digits(void **state)
{
	struct table t;

	(void)state;
	RUNS(ON "--explain " DIGITS "digits.tflite");
	read_table(&t);
	check_table(&t);
	assert_int_equal(t.layers, 8);
	check_rows(&t.lines[0], 9216, 64);
	check_rows(&t.lines[1], 147456, 64 * 9);
	check_rows(&t.lines[4], 73728, 16 * 9 * 2);
	check_rows(&t.lines[6], 1280, 8);
	/* 8 folds of one row each: the weights' other 15 rows have nothing to hide
	 * behind. */
	assert_int_equal(t.lines[6].of[CAUSE_ENTRY], 8 * 15);
	assert_int_equal(t.lines[1].of[CAUSE_ENTRY], 0);
	assert_int_equal(t.lines[1].of[CAUSE_VECTOR], 0);
	/* Its output leaves after its last fold; a pool has no fold. */
	assert_true(t.lines[1].of[CAUSE_STORES] > 0 && t.lines[1].of[CAUSE_STORES] < 100);
	assert_int_equal(t.lines[3].of[CAUSE_STORES], 0);
	assert_string_equal(t.lines[2].name, "ADD");
	assert_true(t.lines[2].of[CAUSE_VECTOR] >= 8 * 8 * 16 / 16);
	assert_int_equal(t.lines[7].cycles, 0); /* RESHAPE */
	assert_int_equal(t.lines[8].macs, 231680);
	assert_int_equal(t.lines[8].of[CAUSE_DEPTHWISE], 0);
	check_cycles(&t, DIGITS "digits.tflite");
	/* An input, and another array. */
	RUNS(ON "--explain -t 'npu:0?clock=virtual&engine=fast&rows=8&cols=8' " DIGITS
		"digits.tflite " DIGITS "seven.npy");
	read_table(&t);
	check_table(&t);
	assert_int_equal(t.lines[1].of[CAUSE_FULL], 147456 / 64);
	assert_int_equal(t.lines[6].of[CAUSE_ENTRY], (128 / 8) * (16 / 8) * 7);
}

/* Every operator between them: depthwise layers, variables, many steps to a layer. */
static void test_samples(void **state)
{
	static uint8_t file[65536];
	char path[64];
	struct table t;
	size_t size;

	(void)state;
	snprintf(path, sizeof(path), "%s/m.tflite", dir);
	for (unsigned int i = 0; (size = tiny_sample(i, file, sizeof(file))); i++) {
		FILE *f = fopen(path, "wb");

		assert_non_null(f);
		assert_int_equal(fwrite(file, 1, size, f), size);
		assert_int_equal(fclose(f), 0);
		RUNS(ON "--explain m.tflite");
		read_table(&t);
		check_table(&t);
		check_cycles(&t, path);
		if (i)
			continue;
		assert_string_equal(t.lines[2].name, "DEPTHWISE_CONV_2D");
		check_rows(&t.lines[2], 4 * 4 * 8 * 9, 4 * 4);
		assert_int_equal(t.lines[2].of[CAUSE_PARTIAL], 0);
		assert_int_equal(t.lines[t.layers + 2].of[CAUSE_DEPTHWISE],
				 t.lines[2].of[CAUSE_DEPTHWISE]);
		assert_int_equal(t.lines[1].of[CAUSE_DEPTHWISE], 0);
	}
}

static void test_refused(void **state)
{
	static const char *const options[][2] = {{"--json", "--json"},
						 {"--repeat 2", "--repeat"},
						 {"--top 5", "--top"},
						 {"--labels x", "--labels"},
						 {"--output x", "--output"}};
	char what[64];

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		snprintf(what, sizeof(what), "leave out %s, or --explain", options[i][1]);
		REFUSED(2, what, HALRUN " --explain %s x.tflite", options[i][0]);
	}
	REFUSED(2, "no model given", HALRUN " --explain");
	RUNS(NPUC " " DIGITS "digits.tflite -o digits.npu");
	REFUSED(1, "a .npu program does not list its layers", ON "-e digits.npu");
	REFUSED(1, "engine golden does not count where cycles go",
		HALRUN " -e -t 'npu:0?clock=virtual&model=" MODEL "' " DIGITS
		       "digits.tflite");
	REFUSED(1, "launch \"layer1\": injected: call 3 of submit returns EIO",
		"HAL_LAYERS_FAULT=submit:3:EIO " ON "-e " DIGITS "digits.tflite");
	REFUSED(1, "too many input files",
		ON "-e " DIGITS "digits.tflite " DIGITS "seven.npy x");
}

static int set_up(void **state)
{
	(void)state;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	return mkdtemp(dir) ? setenv("HAL_NPU_MODELS", MODELS, 1) : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return run("rm -rf %s", dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_divide),  cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_digits),  cmocka_unit_test(test_samples),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
