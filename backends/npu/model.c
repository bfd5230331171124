/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - finds the model of the engine and shape asked for; talks to its registers. */
#include "internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef HAL_NPU_MODEL_DIRS
#define HAL_NPU_MODEL_DIRS ""
#endif

/* What a search has come across. */
struct search {
	const struct npu_options *want;
	const char *file; /* of an engine of any shape; NULL: shapes are looked for */
	char *path;
	size_t size;
	uint32_t channels; /* of the best so far; 0: none */
	char seen[160];    /* shapes, for the error text */
	char dirs[256];    /* where, and why not */
};

static void append(char *text, size_t size, const char *sep, const char *more)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s%s", used ? sep : "", more);
}

/* libnpu_<rows>x<cols>x<slots>x<channels>.so and nothing else. */
static int parse_name(const char *name, struct npu_model_shape *s)
{
	uint32_t *const field[] = {&s->rows, &s->cols, &s->slots, &s->channels};
	static const char before[] = "libnpu_";
	char *at;

	if (strncmp(name, before, sizeof(before) - 1) != 0)
		return 0;
	name += sizeof(before) - 1;
	for (uint32_t i = 0; i < 4; i++) {
		if (*name < '1' || *name > '9')
			return 0;
		*field[i] = (uint32_t)strtoul(name, &at, 10);
		name = at + (*at == 'x');
	}
	return strcmp(at, ".so") == 0;
}

/* Of words with a blank between. */
static int has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at++)
		if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return 1;
	return 0;
}

/* The fewest channels that are enough; the first folder that has that. */
static int better(struct search *f, const struct npu_model_shape *s)
{
	char text[48];

	snprintf(text, sizeof(text), "%ux%ux%ux%u", s->rows, s->cols, s->slots,
		 s->channels);
	if (!has_word(f->seen, text))
		append(f->seen, sizeof(f->seen), " ", text);
	return s->rows == f->want->rows && s->cols == f->want->cols &&
	       s->slots == f->want->slots && s->channels >= f->want->channels &&
	       (!f->channels || s->channels < f->channels);
}

static void look_at(struct search *f, const char *dir, const char *name)
{
	struct npu_model_shape s = {.channels = 1};
	char path[PATH_MAX];
	int n;

	if (f->file ? strcmp(name, f->file) != 0
		    : !parse_name(name, &s) || !better(f, &s))
		return;
	n = snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof(path) || (size_t)n >= f->size)
		return;
	memcpy(f->path, path, (size_t)n + 1);
	f->channels = s.channels;
}

static void search_dir(struct search *f, const char *dir)
{
	struct dirent *e;
	DIR *d = opendir(dir);

	append(f->dirs, sizeof(f->dirs), ":", dir);
	if (!d) {
		append(f->dirs, sizeof(f->dirs), " (", strerrordesc_np(errno));
		append(f->dirs, sizeof(f->dirs), ")", "");
		return;
	}
	while ((e = readdir(d)))
		look_at(f, dir, e->d_name);
	closedir(d);
}

/* Where this library lies, or the program that contains it: of one that was found by
 * PATH, dladdr knows no folder. */
static int own_dir(char dir[PATH_MAX])
{
	Dl_info info;

	if (!dladdr(&npu_host, &info) || !info.dli_fname ||
	    !realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe",
		      dir))
		return 0;
	*strrchr(dir, '/') = 0;
	return 1;
}

static void search_list(struct search *f, const char *list)
{
	char dir[PATH_MAX], own[PATH_MAX];

	while (*list && !f->channels) {
		size_t n = strcspn(list, ":");

		if (n && n < sizeof(dir)) {
			memcpy(dir, list, n);
			dir[n] = 0;
			if (!strncmp(dir, "$ORIGIN", 7) && own_dir(own)) {
				append(own, sizeof(own), "", dir + 7);
				search_dir(f, own);
			} else {
				search_dir(f, dir);
			}
		}
		list += n + (list[n] == ':');
	}
}

/* Is there one, in the folders of list, that simulates any shape? */
static int has_fast(const char *list)
{
	char path[PATH_MAX];
	struct search f = {.file = "libnpu_fast.so", .path = path, .size = sizeof(path)};

	search_list(&f, list);
	return f.channels != 0;
}

int npu_model_find(const struct npu_options *o, char *path, size_t size)
{
	struct search f = {.want = o, .path = path, .size = size};
	const char *env = secure_getenv("HAL_NPU_MODELS"), *list, *by;

	list = env && env[0] ? env : "$ORIGIN/accelhal:" HAL_NPU_MODEL_DIRS;
	by = env && env[0] ? ", from HAL_NPU_MODELS" : "";

	if (o->model[0]) {
		if (strlen(o->model) >= size)
			return npu_fail(EINVAL, "npu: model=%.40s... is too long",
					o->model);
		memcpy(path, o->model, strlen(o->model) + 1);
		return 0;
	}
	if (strcmp(o->engine, "fast") == 0)
		f.file = "libnpu_fast.so";
	else if (strcmp(o->engine, "rtl") != 0)
		f.file = "libnpu_golden.so"; /* replay's, too */
	search_list(&f, list);
	if (f.channels)
		return 0;
	if (f.file)
		return npu_fail(ENODEV, "npu: engine=%s: %s not found; looked in %s%s",
				o->engine, f.file, f.dirs, by);
	return npu_fail(
		ENODEV,
		"npu: engine=rtl: no model of rows=%u cols=%u slots=%u with channels=%u "
		"or more; %s\"make model SHAPE=%ux%ux%ux%u\" in the source tree builds "
		"it; existing models (rows x cols x slots x channels): %s; looked in "
		"%s%s",
		o->rows, o->cols, o->slots, o->channels,
		has_fast(list) ? "engine=fast simulates any shape; " : "", o->rows,
		o->cols, o->slots, o->channels > 8 ? 16 : 8, f.seen[0] ? f.seen : "none",
		f.dirs, by);
}

static int check_api(const struct npu_options *o, const struct npu_model_api *a,
		     const char *path)
{
	if (!a || a->abi != NPU_MODEL_ABI ||
	    a->size < offsetof(struct npu_model_api, memory))
		return npu_fail(EPROTO,
				"npu: %s has model ABI %u, but this backend needs %u; "
				"build the model again",
				path, a ? a->abi : 0, NPU_MODEL_ABI);
	if (o->replay && !a->replay)
		return npu_fail(
			ENOTSUP,
			"npu: engine=replay: %s is engine %s, which cannot replay", path,
			a->engine);
	if (!a->any_shape && (a->rows != o->rows || a->cols != o->cols ||
			      a->slots != o->slots || a->channels < o->channels))
		return npu_fail(
			ENODEV,
			"npu: %s is a model of %ux%ux%ux%u, but the configuration "
			"requests rows=%u cols=%u slots=%u channels=%u",
			path, a->rows, a->cols, a->slots, a->channels, o->rows, o->cols,
			o->slots, o->channels);
	if (o->rows > a->rows || o->cols > a->cols || o->slots > a->slots ||
	    o->channels > a->channels)
		return npu_fail(
			ENODEV,
			"npu: engine %s (%s) supports shapes up to %ux%ux%ux%u, but the "
			"configuration requests rows=%u cols=%u slots=%u channels=%u",
			a->engine, path, a->rows, a->cols, a->slots, a->channels, o->rows,
			o->cols, o->slots, o->channels);
	return 0;
}

int npu_model_load(struct npu_options *o, void **library,
		   const struct npu_model_api **api)
{
	npu_model_entry_fn entry = NULL;
	char path[PATH_MAX];
	void *lib, *symbol;
	int rc = npu_model_find(o, path, sizeof(path));

	if (rc)
		return rc;
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return npu_fail(ENODEV, "npu: %s", dlerror());
	symbol = dlsym(lib, NPU_MODEL_SYMBOL);
	/* POSIX makes the two pointers alike; C has no cast for it. */
	memcpy(&entry, &symbol, sizeof(entry));
	*api = entry ? entry() : NULL;
	rc = entry ? check_api(o, *api, path)
		   : npu_fail(ENODEV,
			      "npu: %s is not a model: it lacks the "
			      "symbol " NPU_MODEL_SYMBOL,
			      path);
	if (rc) {
		dlclose(lib);
		return rc;
	}
	if (!o->replay)
		o->engine = (*api)->engine;
	*library = lib;
	return 0;
}

/* ---- registers -------------------------------------------------------------------- */

void npu_lock(struct npu_device *dev)
{
	pthread_mutex_lock(&dev->lock);
}

void npu_unlock(struct npu_device *dev)
{
	pthread_mutex_unlock(&dev->lock);
}

/* After the machine has moved.  One cycle is one nanosecond. */
static void tick(struct npu_device *dev)
{
	atomic_store_explicit(&dev->now_ns, dev->api->cycle(dev->model) + dev->skipped,
			      memory_order_relaxed);
}

uint32_t npu_read(struct npu_device *dev, uint32_t address)
{
	uint32_t value;

	npu_lock(dev);
	value = dev->api->reg_read(dev->model, address);
	tick(dev);
	npu_unlock(dev);
	return value;
}

void npu_write(struct npu_device *dev, uint32_t address, uint32_t value)
{
	npu_lock(dev);
	dev->api->reg_write(dev->model, address, value);
	tick(dev);
	npu_unlock(dev);
}

uint64_t npu_run(struct npu_device *dev, uint64_t cycles)
{
	uint64_t ran;

	npu_lock(dev);
	ran = dev->api->run(dev->model, cycles);
	tick(dev);
	npu_unlock(dev);
	return ran;
}

/* ---- time ------------------------------------------------------------------------- */

uint64_t npu_time(const struct npu_device *dev)
{
	return atomic_load_explicit(&dev->now_ns, memory_order_relaxed);
}

/* Turns and refresh go by the machine's clock: after so many cycles they are where they
 * were.  Who comes back after a while must not find them where the last one to work has
 * left them. */
static uint64_t clock_period(const struct npu_options *o)
{
	uint64_t round = o->turns ? npu_turn(o) * o->slots : 1, a, b;

	if (!o->extra.refresh)
		return round;
	for (a = round, b = o->extra.refresh; b;) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return round / a * o->extra.refresh;
}

void npu_skip(struct npu_device *dev, uint64_t until_ns)
{
	uint64_t now = npu_time(dev), idle;

	if (until_ns <= now)
		return;
	npu_lock(dev);
	idle = (until_ns - now) % clock_period(&dev->opt);
	idle = idle ? dev->api->run(dev->model, idle) : 0;
	dev->skipped += until_ns - now - idle;
	tick(dev);
	npu_unlock(dev);
}

uint64_t npu_host_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

void npu_rests(struct npu_device *dev)
{
	atomic_store_explicit(&dev->rest_ns, npu_time(dev) - npu_host_ns(),
			      memory_order_release);
}

void npu_works(struct npu_device *dev)
{
	uint64_t rest = atomic_load_explicit(&dev->rest_ns, memory_order_relaxed);

	npu_skip(dev, npu_host_ns() + rest);
	atomic_store_explicit(&dev->rest_ns, NPU_WORKS, memory_order_release);
}

/* Who read .rest_ns just before the machine was given work may be ahead of its cycles: it
 * catches up with what has been told. */
static uint64_t now_real(struct npu_device *dev)
{
	uint64_t rest = atomic_load_explicit(&dev->rest_ns, memory_order_acquire);
	uint64_t now = rest == NPU_WORKS ? npu_time(dev) : npu_host_ns() + rest;
	unsigned long long reported = atomic_load(&dev->reported_ns);

	while (reported < now &&
	       !atomic_compare_exchange_weak(&dev->reported_ns, &reported, now))
		;
	return reported < now ? now : reported;
}

uint64_t npu_now(void *device)
{
	struct npu_device *dev = device;

	return dev->opt.real ? now_real(dev) : npu_time(dev);
}
