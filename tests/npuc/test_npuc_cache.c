/* SPDX-License-Identifier: Apache-2.0 */
/* test_npuc_cache.c - compiled programs in a folder: what is read, what is replaced. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <errno.h>

#include "npuc.h"
#include "tiny.h"

#define PROCESSES 4
#define ROUNDS    200

static char dir[] = "/tmp/cache.XXXXXX";
static char why[NPUC_WHY];
static struct npuc_model *models[2];
static struct npuc_program programs[2]; /* what they must become */

static struct npuc_model *make(int32_t length)
{
	struct tiny m = {.input_count = 1, .output_count = 1, .outputs = {1}};
	static uint8_t file[4096];
	struct npuc_model *model = NULL;

	for (int i = 0; i < 2; i++)
		tiny_int8(&m, i ? "y" : "x", 1, (const int32_t[]){length}, 0.5f, 0);
	tiny_op(&m, 19, 1, (const int32_t[]){0}, 1);
	if (npuc_model_parse(file, tiny_write(&m, file, sizeof(file)), "m", &model, why))
		fail_msg("%s", why);
	return model;
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	for (int i = 0; i < 2; i++) {
		models[i] = make(4 + i);
		if (npuc_compile(models[i], NULL, &programs[i], why))
			return -1;
	}
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	for (int i = 0; i < 2; i++) {
		npuc_program_free(&programs[i]);
		npuc_model_free(models[i]);
	}
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static bool same(const struct npuc_program *p, const struct npuc_program *q)
{
	return p->image_size == q->image_size &&
	       memcmp(p->image, q->image, p->image_size) == 0 &&
	       p->input_count == q->input_count && p->output_count == q->output_count &&
	       memcmp(p->inputs, q->inputs, sizeof(*p->inputs)) == 0 &&
	       memcmp(p->outputs, q->outputs, sizeof(*p->outputs)) == 0 &&
	       p->memory_bytes == q->memory_bytes && p->cycles == q->cycles;
}

/* Compile through the folder; the right program, and read as said. */
static void compile(int model, const struct npuc_options *o, bool hit)
{
	struct npuc_program p;
	bool is = !hit;

	if (npuc_compile_cached(models[model], o, dir, &p, &is, why))
		fail_msg("%s", why);
	assert_string_equal(why, "");
	assert_int_equal(is, hit);
	assert_true(o || same(&p, &programs[model]));
	npuc_program_free(&p);
}

/* The number of files, and the path of the last one. */
static unsigned int files(char *path, size_t size)
{
	DIR *d = opendir(dir);
	unsigned int count = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		if (e->d_name[0] == '.')
			continue;
		count++;
		snprintf(path, size, "%s/%s", dir, e->d_name);
	}
	closedir(d);
	return count;
}

static size_t read_file(const char *path, uint8_t *bytes, size_t max)
{
	FILE *f = fopen(path, "rb");
	size_t n;

	assert_non_null(f);
	n = fread(bytes, 1, max, f);
	(void)fclose(f);
	assert_true(n < max);
	return n;
}

static void write_file(const char *path, const uint8_t *bytes, size_t size)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static void test_hit(void **state)
{
	const struct npuc_options wide = {.cols = 32}, keep = {.keep = true},
				  layers = {.layers = true};
	struct npuc_program p;
	char path[320];

	(void)state;
	compile(0, NULL, false);
	compile(0, NULL, true);
	compile(0, &wide, false);
	compile(0, &wide, true);
	compile(1, NULL, false);
	assert_int_equal(files(path, sizeof(path)), 3);
	/* What a file does not hold is not kept. */
	compile(1, &keep, false);
	compile(1, &layers, false);
	assert_int_equal(files(path, sizeof(path)), 3);
	assert_int_equal(npuc_compile_cached(models[0], NULL, NULL, &p, NULL, why), 0);
	assert_true(same(&p, &programs[0]));
	npuc_program_free(&p);
}

/* Cut anywhere, a bit wrong anywhere, or of another model: compiled and replaced. */
static void test_damaged(void **state)
{
	static uint8_t good[65536], bad[65536];
	char path[320], other[320];
	size_t size, step;

	(void)state;
	while (files(path, sizeof(path)))
		assert_int_equal(unlink(path), 0);
	compile(1, NULL, false);
	assert_int_equal(files(other, sizeof(other)), 1);
	size = read_file(other, bad, sizeof(bad));
	assert_int_equal(unlink(other), 0);
	compile(0, NULL, false);
	assert_int_equal(files(path, sizeof(path)), 1);
	write_file(path, bad, size);
	compile(0, NULL, false);
	size = read_file(path, good, sizeof(good));
	step = size / 97;
	for (size_t i = 0; i < size; i += i < 128 ? 7 : step) {
		write_file(path, good, i);
		compile(0, NULL, false);
		memcpy(bad, good, size);
		bad[i] ^= 1;
		write_file(path, bad, size);
		compile(0, NULL, false);
		compile(0, NULL, true);
	}
	memcpy(bad, good, size);
	write_file(path, bad, size + 1);
	compile(0, NULL, false);
	assert_int_equal(read_file(path, bad, sizeof(bad)), size);
	assert_memory_equal(good, bad, size);
}

/* A folder that cannot be written, and a model that does not compile. */
static void test_refused(void **state)
{
	struct npuc_program p;
	struct npuc_model *m;
	struct tiny t = {.input_count = 1, .output_count = 1, .outputs = {1}};
	static uint8_t file[4096];
	char path[320];
	unsigned int before = files(path, sizeof(path));
	bool hit = true;

	(void)state;
	assert_int_equal(npuc_compile_cached(models[0], NULL, "/nonexistent/folder", &p,
					     &hit, why),
			 0);
	assert_false(hit);
	assert_non_null(strstr(why, "/nonexistent/folder: the compiled program cannot"));
	assert_true(same(&p, &programs[0]));
	npuc_program_free(&p);
	for (int i = 0; i < 2; i++)
		tiny_int8(&t, i ? "y" : "x", 1, (const int32_t[]){4}, 0.5f, 0);
	tiny_op(&t, 108, 1, (const int32_t[]){0}, 1);
	assert_int_equal(
		npuc_model_parse(file, tiny_write(&t, file, sizeof(file)), "m", &m, why),
		0);
	assert_int_equal(npuc_compile_cached(m, NULL, dir, &p, &hit, why), -ENOTSUP);
	assert_non_null(strstr(why, "layer 0 (COS"));
	npuc_model_free(m);
	assert_int_equal(files(path, sizeof(path)), before);
}

typedef int (*compile_cached)(const struct npuc_model *m, const struct npuc_options *o,
			      const char *folder, struct npuc_program *p, bool *hit,
			      char *text);

/* Load a copy of the library that was built otherwise: with the 20 bytes of its build ID
 * changed, or none.  The name begins with a dot: files() does not count it. */
static compile_cached load_copy(const char *name, bool with_id, void **library)
{
	static const uint8_t note[] = {4, 0, 0, 0, 20,  0,   0,   0,
				       3, 0, 0, 0, 'G', 'N', 'U', 0};
	const size_t most = 64 << 20;
	uint8_t *bytes = malloc(most), *at;
	void *function;
	char path[320];
	size_t size;
	Dl_info info;

	function = dlsym(RTLD_DEFAULT, "npuc_compile_cached");
	assert_non_null(bytes);
	assert_true(dladdr(function, &info));
	size = read_file(info.dli_fname, bytes, most);
	at = memmem(bytes, size, note, sizeof(note));
	assert_non_null(at);
	at[with_id ? sizeof(note) : 8] ^= 1;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	write_file(path, bytes, size);
	free(bytes);
	*library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!*library)
		fail_msg("%s", dlerror());
	function = dlsym(*library, "npuc_compile_cached");
	assert_non_null(function);
	return *(compile_cached *)&function;
}

/* Another build of the library reads nothing of this one's; without a build ID it keeps
 * nothing, and says so. */
static void test_other_build(void **state)
{
	struct npuc_program p;
	compile_cached copy;
	char path[320];
	void *library;
	bool hit;

	(void)state;
	while (files(path, sizeof(path)))
		assert_int_equal(unlink(path), 0);
	compile(0, NULL, false);
	copy = load_copy(".other.so", true, &library);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(copy(models[0], NULL, dir, &p, &hit, why), 0);
		assert_string_equal(why, "");
		assert_int_equal(hit, i);
		npuc_program_free(&p);
	}
	assert_int_equal(files(path, sizeof(path)), 2);
	dlclose(library);
	compile(0, NULL, true);
	copy = load_copy(".none.so", false, &library);
	assert_int_equal(copy(models[0], NULL, dir, &p, &hit, why), 0);
	assert_false(hit);
	assert_true(same(&p, &programs[0]));
	npuc_program_free(&p);
	if (!strstr(why, "nothing is kept: libnpuc has no build ID"))
		fail_msg("it says '%s'", why);
	assert_int_equal(files(path, sizeof(path)), 2);
	dlclose(library);
	while (files(path, sizeof(path)))
		assert_int_equal(unlink(path), 0);
}

/* Processes that write and read one file, which some of them remove: always right. */
static void test_processes(void **state)
{
	char path[320];
	pid_t pids[PROCESSES];
	int status;

	(void)state;
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		for (int k = 0; pids[i] == 0 && k < ROUNDS; k++) {
			struct npuc_program p;
			bool hit;

			if (npuc_compile_cached(models[0], NULL, dir, &p, &hit, why) ||
			    why[0] || !same(&p, &programs[0]))
				_exit(1);
			npuc_program_free(&p);
			if (i % 2 && hit && files(path, sizeof(path)) &&
			    !strstr(path, ".cache."))
				(void)unlink(path);
		}
		if (pids[i] == 0)
			_exit(0);
	}
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_true(files(path, sizeof(path)) <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hit),         cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_other_build), cmocka_unit_test(test_processes),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
