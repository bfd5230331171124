/* SPDX-License-Identifier: Apache-2.0 */
/* SPIR-V as the backend reads it, instruction by instruction, without a driver. */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/levelzero/internal.h"

enum { BOUND = 40, WORDS = 96, MAIN = 30, PARAM = 9 };

/* Numbers of the specification. */
enum {
	ENTRY = 15,
	MODE = 16,
	INT = 21,
	FLOAT = 22,
	VECTOR = 23,
	POINTER = 32,
	FUNCTION = 54,
	PARAMETER = 55,
	END = 56,
};
#define INSTRUCTION(op, words) ((uint32_t)(words) << 16 | (op))

struct module {
	uint32_t at[WORDS];
	uint32_t count;
};

static void put(struct module *m, const uint32_t *words, uint32_t count)
{
	assert_true(m->count + count <= WORDS);
	memcpy(&m->at[m->count], words, count * sizeof(*words));
	m->count += count;
}

#define PUT(m, ...)                                                                      \
	put(m, (const uint32_t[]){__VA_ARGS__},                                          \
	    sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

static void head(struct module *m, uint32_t bound)
{
	m->count = 0;
	PUT(m, 0x07230203, 0x00010200, 0, bound, 0);
}

/* Entry point "k". */
static void entry(struct module *m)
{
	PUT(m, INSTRUCTION(ENTRY, 4), 6, MAIN, 'k');
}

/* One function with a parameter of that type. */
static void body(struct module *m, uint32_t type)
{
	PUT(m, INSTRUCTION(FUNCTION, 5), 8, MAIN, 0, 8, INSTRUCTION(PARAMETER, 3), type,
	    PARAM, INSTRUCTION(END, 1));
}

/* The last one read; its memory has nothing behind it. */
static struct lz_program prog;
static uint32_t *code;

static void forget(void)
{
	free(prog.kernels);
	free(code);
	code = NULL;
}

static int parse(const struct module *m)
{
	forget();
	memset(&prog, 0, sizeof(prog));
	code = malloc(m->count * sizeof(*code));
	assert_non_null(code);
	memcpy(code, m->at, m->count * sizeof(*code));
	return lz_image_parse(code, m->count * sizeof(*code), &prog);
}

static void refused(const struct module *m, int err, const char *text)
{
	int e = parse(m);

	if (e != -err || !strstr(host_text, text))
		fail_msg("%d, not %d; \"%s\" has no \"%s\"", e, -err, host_text, text);
}

static void taken(const struct module *m)
{
	int err = parse(m);

	if (err)
		fail_msg("%d %s", err, host_text);
}

/* What a parameter of a type takes: bytes, 0 for memory, NONE for neither. */
#define NONE UINT32_MAX
static void types(void **state)
{
	static const struct {
		uint32_t words[8];
		uint32_t count, type, bytes;
	} cases[] = {
		{{INSTRUCTION(INT, 4), 1, 8, 0}, 4, 1, 1},
		{{INSTRUCTION(INT, 4), 1, 16, 0}, 4, 1, 2},
		{{INSTRUCTION(INT, 4), 1, 32, 0}, 4, 1, 4},
		{{INSTRUCTION(INT, 4), 1, 64, 0}, 4, 1, 8},
		{{INSTRUCTION(FLOAT, 3), 1, 32}, 3, 1, 4},
		{{INSTRUCTION(INT, 4), 1, 128, 0}, 4, 1, NONE},
		{{INSTRUCTION(INT, 4), 1, 24, 0}, 4, 1, NONE},
		/* As many as a pointer's mark. */
		{{INSTRUCTION(INT, 4), 1, 2040, 0}, 4, 1, NONE},
		{{INSTRUCTION(INT, 4), 1, 2048 + 32, 0}, 4, 1, NONE},
		/* The highest id there may be, and the first there may not. */
		{{INSTRUCTION(INT, 4), BOUND - 1, 32, 0}, 4, BOUND - 1, 4},
		{{INSTRUCTION(INT, 4), BOUND, 32, 0}, 4, BOUND, NONE},
		{{INSTRUCTION(INT, 4), 1, 32, 0}, 4, 2, NONE},
		/* Cut: what would be its width belongs to the next. */
		{{INSTRUCTION(INT, 2), 1, INSTRUCTION(99, 1)}, 3, 1, NONE},

		{{INSTRUCTION(INT, 4), 1, 32, 0, INSTRUCTION(VECTOR, 4), 2, 1, 2},
		 8,
		 2,
		 8},
		{{INSTRUCTION(INT, 4), 1, 8, 0, INSTRUCTION(VECTOR, 4), 2, 1, 2},
		 8,
		 2,
		 2},
		/* Three take the room of four. */
		{{INSTRUCTION(INT, 4), 1, 8, 0, INSTRUCTION(VECTOR, 4), 2, 1, 3},
		 8,
		 2,
		 4},
		{{INSTRUCTION(INT, 4), 1, 8, 0, INSTRUCTION(VECTOR, 4), 2, 1, 8},
		 8,
		 2,
		 8},
		{{INSTRUCTION(INT, 4), 1, 8, 0, INSTRUCTION(VECTOR, 4), 2, 1, 16},
		 8,
		 2,
		 NONE},
		{{INSTRUCTION(INT, 4), 1, 32, 0, INSTRUCTION(VECTOR, 4), 2, 1,
		  0x40000001},
		 8,
		 2,
		 NONE},
		{{INSTRUCTION(INT, 4), 1, 32, 0, INSTRUCTION(VECTOR, 4), 2, BOUND, 2},
		 8,
		 2,
		 NONE},
		{{INSTRUCTION(INT, 4), 1, 8, 0, INSTRUCTION(VECTOR, 3), 2, 1,
		  INSTRUCTION(99, 1)},
		 8,
		 2,
		 NONE},

		{{INSTRUCTION(POINTER, 4), 1, 0, 2}, 4, 1, 0}, /* constant */
		{{INSTRUCTION(POINTER, 4), 1, 5, 2}, 4, 1, 0}, /* global */
		{{INSTRUCTION(POINTER, 4), 1, 8, 2}, 4, 1, 0}, /* generic */
		{{INSTRUCTION(POINTER, 4), 1, 4, 2}, 4, 1, NONE},
		{{INSTRUCTION(POINTER, 4), 1, 7, 2}, 4, 1, NONE},
		{{INSTRUCTION(POINTER, 4), BOUND - 1, 5, 2}, 4, BOUND - 1, 0},
		{{INSTRUCTION(POINTER, 4), BOUND, 5, 2}, 4, BOUND, NONE},
		{{INSTRUCTION(POINTER, 3), 1, 5}, 3, 1, NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct module m;

		head(&m, BOUND);
		entry(&m);
		put(&m, cases[i].words, cases[i].count);
		body(&m, cases[i].type);
		if (cases[i].bytes == NONE) {
			refused(&m, ENOTSUP, "kernel k: argument 0 is neither memory");
			continue;
		}
		taken(&m);
		assert_int_equal(prog.count, 1);
		assert_string_equal(prog.kernels->info.name, "k");
		assert_int_equal(prog.kernels->info.arg_count, 1);
		assert_int_equal(prog.kernels->params.scalar_bytes[0], cases[i].bytes);
		assert_int_equal(prog.kernels->takes_address, cases[i].bytes == 8);
	}
}

static void names(void **state)
{
	char name[32 + 4];

	(void)state;
	for (uint32_t length = 0; length <= 32; length++) {
		struct module m;
		uint32_t words = length / 4 + 1;

		head(&m, BOUND);
		memset(name, 0, sizeof(name));
		memset(name, 'n', length);
		PUT(&m, INSTRUCTION(ENTRY, 3 + words), 6, MAIN);
		put(&m, (const void *)name, words);
		PUT(&m, INSTRUCTION(INT, 4), 1, 32, 0);
		body(&m, 1);
		if (length == 0 || length == 32) {
			refused(&m, EINVAL,
				"entry point 0 has no name of 1 to 31 characters");
			continue;
		}
		taken(&m);
		assert_string_equal(prog.kernels->info.name, name);
		/* Without its end. */
		if (length % 4 == 0) {
			m.at[5] = INSTRUCTION(ENTRY, 2 + words);
			m.at[8 + words - 1] = INSTRUCTION(99, 1);
			refused(&m, EINVAL, "has no name of 1 to 31 characters");
		}
	}
}

static void group_sizes(void **state)
{
	static const struct {
		uint32_t words[6];
		uint32_t count, size[3];
	} cases[] = {
		{{INSTRUCTION(MODE, 6), MAIN, 17, 4, 3, 2}, 6, {4, 3, 2}},
		{{INSTRUCTION(MODE, 6), MAIN, 18, 4, 3, 2}, 6, {1, 1, 1}},
		{{INSTRUCTION(MODE, 6), MAIN + 1, 17, 4, 3, 2}, 6, {1, 1, 1}},
		{{INSTRUCTION(MODE, 5), MAIN, 17, 4, 3}, 5, {1, 1, 1}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct module m;

		head(&m, BOUND);
		entry(&m);
		put(&m, cases[i].words, cases[i].count);
		PUT(&m, INSTRUCTION(INT, 4), 1, 32, 0);
		body(&m, 1);
		taken(&m);
		assert_memory_equal(prog.kernels->group_size, cases[i].size, 12);
	}
}

/* The last instruction lacks the word that matters: nothing behind it is looked at. */
static void last_is_cut(void **state)
{
	static const struct {
		uint32_t words[4];
		uint32_t count;
	} cases[] = {
		{{INSTRUCTION(INT, 2), 1}, 2},
		{{INSTRUCTION(INT, 1)}, 1},
		{{INSTRUCTION(FLOAT, 2), 1}, 2},
		{{INSTRUCTION(VECTOR, 3), 1, 1}, 3},
		{{INSTRUCTION(POINTER, 2), 1}, 2},
		{{INSTRUCTION(POINTER, 1)}, 1},
		{{INSTRUCTION(ENTRY, 1)}, 1},
		{{INSTRUCTION(MODE, 2), MAIN}, 2},
		{{INSTRUCTION(FUNCTION, 2), 8}, 2},
		{{INSTRUCTION(PARAMETER, 1)}, 1},
		{{INSTRUCTION(MODE, 3), MAIN, 17}, 3},
		{{INSTRUCTION(ENTRY, 2), 6}, 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct module m;

		head(&m, BOUND);
		entry(&m);
		PUT(&m, INSTRUCTION(INT, 4), 1, 32, 0);
		body(&m, 1);
		put(&m, cases[i].words, cases[i].count);
		taken(&m);
		assert_int_equal(prog.kernels->info.arg_count, 1);
	}
}

/* Parameters belong to the kernel whose function they are in, and to none outside of one
 * or in one that is no kernel. */
static void parameters(void **state)
{
	struct module m;

	(void)state;
	head(&m, BOUND);
	entry(&m);
	PUT(&m, INSTRUCTION(ENTRY, 4), 6, MAIN + 1, 'l');
	PUT(&m, INSTRUCTION(ENTRY, 4), 5, MAIN + 2, 'x'); /* no kernel */
	PUT(&m, INSTRUCTION(INT, 4), 1, 32, 0, INSTRUCTION(INT, 4), 2, 64, 0);
	PUT(&m, INSTRUCTION(PARAMETER, 3), 1, PARAM);
	PUT(&m, INSTRUCTION(FUNCTION, 5), 8, MAIN + 2, 0, 8, INSTRUCTION(PARAMETER, 3), 3,
	    PARAM, INSTRUCTION(END, 1));
	body(&m, 1);
	PUT(&m, INSTRUCTION(PARAMETER, 3), 1, PARAM);
	PUT(&m, INSTRUCTION(FUNCTION, 5), 8, MAIN + 1, 0, 8, INSTRUCTION(PARAMETER, 3), 2,
	    PARAM, INSTRUCTION(PARAMETER, 2), 3, INSTRUCTION(PARAMETER, 3), 1, PARAM,
	    INSTRUCTION(END, 1));
	taken(&m);
	assert_int_equal(prog.count, 2);
	assert_int_equal(prog.kernels[0].info.arg_count, 1);
	assert_int_equal(prog.kernels[0].params.scalar_bytes[0], 4);
	assert_string_equal(prog.kernels[1].info.name, "l");
	assert_int_equal(prog.kernels[1].info.arg_count, 2);
	assert_int_equal(prog.kernels[1].params.scalar_bytes[0], 8);
	assert_int_equal(prog.kernels[1].params.scalar_bytes[1], 4);
	assert_ptr_equal(prog.kernels[1].prog, &prog);

	/* A function whose id is cut off is nobody's. */
	head(&m, BOUND);
	entry(&m);
	PUT(&m, INSTRUCTION(FUNCTION, 2), 8, INSTRUCTION(END, 1));
	refused(&m, EINVAL,
		"the SPIR-V is truncated: only 0 of its 1 kernels are complete");

	for (uint32_t count = HAL_ARGS_MAX; count <= HAL_ARGS_MAX + 1; count++) {
		head(&m, BOUND);
		entry(&m);
		PUT(&m, INSTRUCTION(INT, 4), 1, 32, 0);
		PUT(&m, INSTRUCTION(FUNCTION, 5), 8, MAIN, 0, 8);
		for (uint32_t i = 0; i < count; i++)
			PUT(&m, INSTRUCTION(PARAMETER, 3), 1, PARAM);
		PUT(&m, INSTRUCTION(END, 1));
		if (count > HAL_ARGS_MAX)
			refused(&m, EINVAL, "kernel k has more than 16 arguments");
		else
			taken(&m);
	}
}

static void not_whole(void **state)
{
	struct module m;

	(void)state;
	head(&m, BOUND);
	m.count = 4;
	refused(&m, EINVAL, "invalid SPIR-V of 4 words with 40 ids");
	m.count = 3;
	refused(&m, EINVAL, "invalid SPIR-V of 3 words with 0 ids");
	head(&m, 0);
	refused(&m, EINVAL, "invalid SPIR-V of 5 words with 0 ids");
	head(&m, (1u << 22) + 1);
	refused(&m, EINVAL, "invalid SPIR-V of 5 words with 4194305 ids");
	head(&m, 1u << 22);
	refused(&m, EINVAL, "the SPIR-V has no kernel");

	head(&m, BOUND);
	PUT(&m, INSTRUCTION(99, 2), 0, INSTRUCTION(99, 2));
	refused(&m, EINVAL, "the instruction at byte 28 has 2 words, but 1 are left");
	m.at[m.count - 1] = INSTRUCTION(99, 0);
	refused(&m, EINVAL, "has 0 words");
	m.at[m.count - 1] = INSTRUCTION(99, 1);
	refused(&m, EINVAL, "the SPIR-V has no kernel");
	/* An entry point without room for a name is none. */
	PUT(&m, INSTRUCTION(ENTRY, 3), 6, MAIN);
	refused(&m, EINVAL, "the SPIR-V has no kernel");

	head(&m, BOUND);
	entry(&m);
	PUT(&m, INSTRUCTION(INT, 4), 1, 32, 0);
	body(&m, 1);
	taken(&m);
	m.count--;
	refused(&m, EINVAL,
		"the SPIR-V is truncated: only 0 of its 1 kernels are complete");
	assert_int_equal(lz_image_parse(code, m.count * 4 - 1, &prog), -EINVAL);
	assert_non_null(strstr(host_text, "must be a multiple of 4"));
}

static int setup(void **state)
{
	(void)state;
	return hal_backend_levelzero(&host) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	forget();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types),       cmocka_unit_test(names),
		cmocka_unit_test(group_sizes), cmocka_unit_test(last_is_cut),
		cmocka_unit_test(parameters),  cmocka_unit_test(not_whole),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
