/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - read a profile (hal.profile): kernel run times that halctl profile
 * measured.
 *
 * docs/profiles.md describes the JSON file.  The values go to dev->observe.profile, which
 * core/sched uses to predict run times (sched/expect.h).  The read_* functions return 0,
 * or -1 with a message in .why, or -1 with .no_memory set.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "api/opened.h"
#include "lib/json.h"
#include "sched/expect.h"
#include "util/compiler.h"
#include "util/error.h"

#define PROFILE_VERSION 1.0
#define KERNELS_MAX     65536u
#define NS_MAX          9e15 /* below 2^53: a double holds such integers exactly */

struct reading {
	const char *file;
	struct hal_device *dev;
	double runs; /* number of measurements of each kernel */
	bool no_memory;
	char why[JSON_WHY];
};

static bool is_whole(const struct json *v)
{
	return v->number == (double)(uint64_t)v->number;
}

/* Read member key of object, an integer from least to most. */
static int read_whole_number(struct reading *r, const struct json *object,
			     const char *key, double least, double most, uint64_t *out)
{
	double n = 0;

	if (json_number(object, key, least, most, r->file, &n, r->why) != 0)
		return -1;
	if (!is_whole(json_member(object, key)))
		return json_wrong(json_member(object, key), r->file, r->why,
				  "is %.9g, not a whole number", n);
	*out = (uint64_t)n;
	return 0;
}

/* ---- the device that was measured -------------------------------------------------- */

/* Describe the device of the profile for a message: npu "systolic array" (clock=real). */
static void name_device(const struct json *d, char *text, size_t size)
{
	const struct json *backend = json_member(d, "backend");
	const struct json *name = json_member(d, "name");
	const struct json *clock = json_member(d, "clock");

	format_text(text, size, "%s \"%s\" (clock=%s)", backend->text, name->text,
		    clock->text);
}

/* Clear *same if the text of member `key` in d differs from the text `is`. */
static int same_text(struct reading *r, const struct json *d, const char *key,
		     const char *is, bool *same)
{
	const char *text;

	if (json_text(d, key, r->file, &text, r->why) != 0)
		return -1;
	*same &= strcmp(text, is) == 0;
	return 0;
}

/* Clear *same if the number of member `key` in d differs from the number `is`. */
static int same_number(struct reading *r, const struct json *d, const char *key,
		       uint64_t is, bool *same)
{
	uint64_t n = 0;

	if (read_whole_number(r, d, key, 0, NS_MAX * 1000, &n) != 0)
		return -1;
	*same &= n == is;
	return 0;
}

/* Check that the profile is of a device like r->dev. */
static int read_device(struct reading *r, const struct json *root)
{
	static const char *const known[] = {"backend",   "name",   "unit_rows",
					    "unit_cols", "colors", "clock_hz",
					    "bandwidth", "clock",  NULL};
	const struct hal_device_info *i = &r->dev->info;
	const char *clock = r->dev->virtual_clock ? "virtual" : "real";
	char theirs[160];
	const struct json *d;
	bool same = true;

	if (json_object(root, "device", r->file, &d, r->why) != 0 ||
	    json_only(d, known, r->file, r->why) != 0 ||
	    same_text(r, d, "backend", i->backend, &same) != 0 ||
	    same_text(r, d, "name", i->name, &same) != 0 ||
	    same_number(r, d, "unit_rows", i->unit_rows, &same) != 0 ||
	    same_number(r, d, "unit_cols", i->unit_cols, &same) != 0 ||
	    same_number(r, d, "colors", i->colors, &same) != 0 ||
	    same_number(r, d, "clock_hz", i->clock_hz, &same) != 0 ||
	    same_number(r, d, "bandwidth", i->bandwidth, &same) != 0 ||
	    same_text(r, d, "clock", clock, &same) != 0)
		return -1;
	if (same)
		return 0;
	name_device(d, theirs, sizeof(theirs));
	return json_wrong(d, r->file, r->why,
			  "is a profile of %.110s, but this device is %s \"%.63s\" "
			  "(clock=%s)",
			  theirs, i->backend, i->name, clock);
}

/* ---- kernels ----------------------------------------------------------------------- */

static int read_args(struct reading *r, const struct json *in,
		     struct hal_bk_kernel_info *info)
{
	const struct json *list;

	if (json_list(in, "arg_bytes", r->file, &list, r->why) != 0)
		return -1;
	if (list->count > HAL_ARGS_MAX)
		return json_wrong(list, r->file, r->why,
				  "has %u arguments; at most %d are allowed", list->count,
				  HAL_ARGS_MAX);
	for (const struct json *v = list->first; v != NULL; v = v->next) {
		if (json_is_number(v, 0, NS_MAX, r->file, r->why) != 0)
			return -1;
		info->arg_bytes[info->arg_count++] = (uint64_t)v->number;
	}
	return 0;
}

static int read_kind(struct reading *r, const struct json *in, uint32_t *kind)
{
	static const struct {
		const char *name;
		uint32_t kind;
	} kinds[] = {
		{"array", HAL_POLICY_ARRAY},
		{"vector", HAL_POLICY_VECTOR},
		{"memory", HAL_POLICY_MEMORY},
	};
	const char *name;

	if (json_text(in, "class", r->file, &name, r->why) != 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0) {
			*kind = kinds[i].kind;
			return 0;
		}
	return json_wrong(json_member(in, "class"), r->file, r->why,
			  "is \"%.32s\", not array, vector or memory", name);
}

/* Read the run time of a kernel on one number of units. */
static int read_point(struct reading *r, const struct json *in, struct known *k)
{
	static const char *const known[] = {"units", "rows",      "cols",
					    "ns",    "spread_ns", NULL};
	const struct hal_device_info *i = &r->dev->info;
	double units_max = (double)i->unit_rows * i->unit_cols;
	uint64_t units = 0, ns = 0;

	if (json_only(in, known, r->file, r->why) != 0 ||
	    read_whole_number(r, in, "units", 1, units_max, &units) != 0 ||
	    read_whole_number(r, in, "ns", 1, NS_MAX, &ns) != 0)
		return -1;
	if (!profile_add(k, (uint32_t)units, ns))
		return json_wrong(json_member(in, "units"), r->file, r->why,
				  "is repeated, or is entry %u of the kernel's list, one "
				  "more than allowed",
				  KNOWN_UNITS + 1);
	return 0;
}

/* Store the largest relative spread of a kernel's run times, in thousandths. */
static int read_error(struct reading *r, const struct json *list, uint32_t *permille)
{
	for (const struct json *v = list->first; v != NULL; v = v->next) {
		uint64_t ns = 1, spread = 0, error;

		if (v->type != JSON_OBJECT)
			return json_wrong(v, r->file, r->why, "is not an object");
		if (read_whole_number(r, v, "ns", 1, NS_MAX, &ns) != 0 ||
		    read_whole_number(r, v, "spread_ns", 0, NS_MAX, &spread) != 0)
			return -1;
		error = spread < ns ? spread * 1000 / ns : 1000;
		if (error > *permille)
			*permille = (uint32_t)error;
	}
	return 0;
}

/* Read the run times of a kernel. */
static int read_times(struct reading *r, const struct json *in, struct known *k)
{
	const struct json *list;
	uint32_t error = 0;
	uint64_t bytes;

	if (read_whole_number(r, in, "bytes", 0, NS_MAX, &bytes) != 0 ||
	    json_list(in, "units", r->file, &list, r->why) != 0)
		return -1;
	if (list->count == 0)
		return json_wrong(list, r->file, r->why, "is empty");
	if (read_error(r, list, &error) != 0)
		return -1;
	profile_measured(k, (uint32_t)r->runs, error, bytes);
	for (const struct json *v = list->first; v != NULL; v = v->next)
		if (read_point(r, v, k) != 0)
			return -1;
	return 0;
}

static int read_mode(struct reading *r, const struct json *in, uint32_t *mode)
{
	static const char *const modes[STOP_MODES] = {"drain", "fold", "save", "kill"};
	const char *name;

	if (json_text(in, "mode", r->file, &name, r->why) != 0)
		return -1;
	for (*mode = 0; *mode < STOP_MODES; ++*mode)
		if (strcmp(modes[*mode], name) == 0)
			return 0;
	return json_wrong(json_member(in, "mode"), r->file, r->why,
			  "is \"%.32s\", not drain, fold, save or kill", name);
}

/* Read the cost of stopping a kernel in one mode. */
static int read_stop(struct reading *r, const struct json *in, struct known *k)
{
	static const char *const known[] = {"mode", "quiet_ns", "cost_ns", "saved_bytes",
					    NULL};
	uint64_t quiet_ns = 0, cost_ns = 0;
	uint32_t mode = 0;

	if (in->type != JSON_OBJECT)
		return json_wrong(in, r->file, r->why, "is not an object");
	if (json_only(in, known, r->file, r->why) != 0 || read_mode(r, in, &mode) != 0 ||
	    read_whole_number(r, in, "quiet_ns", 0, NS_MAX, &quiet_ns) != 0 ||
	    read_whole_number(r, in, "cost_ns", 0, NS_MAX, &cost_ns) != 0)
		return -1;
	if (!profile_add_stop(k, mode, quiet_ns, cost_ns))
		return json_wrong(json_member(in, "mode"), r->file, r->why,
				  "is repeated");
	return 0;
}

static int read_stops(struct reading *r, const struct json *in, struct known *k)
{
	const struct json *list;

	if (json_member(in, "stops") == NULL)
		return 0;
	if (json_list(in, "stops", r->file, &list, r->why) != 0)
		return -1;
	for (const struct json *v = list->first; v != NULL; v = v->next)
		if (read_stop(r, v, k) != 0)
			return -1;
	return 0;
}

static int read_kernel(struct reading *r, const struct json *in, uint32_t program)
{
	static const char *const known[] = {"name",   "work",  "arg_bytes", "class",
					    "bytes",  "least", "units",     "shapes",
					    "copies", "stops", NULL};
	struct profile *p = r->dev->observe.profile;
	struct known *k;
	const char *name;

	if (in->type != JSON_OBJECT)
		return json_wrong(in, r->file, r->why, "is not an object");
	if (p->count == KERNELS_MAX)
		return json_wrong(in, r->file, r->why, "exceeds the limit of %u kernels",
				  KERNELS_MAX);
	k = profile_more(p);
	if (k == NULL) {
		r->no_memory = true;
		return -1;
	}
	k->program = program;
	if (json_only(in, known, r->file, r->why) != 0 ||
	    json_text(in, "name", r->file, &name, r->why) != 0)
		return -1;
	if (strlen(name) >= sizeof(k->kernel.name))
		return json_wrong(json_member(in, "name"), r->file, r->why,
				  "has more than %zu characters",
				  sizeof(k->kernel.name) - 1);
	format_text(k->kernel.name, sizeof(k->kernel.name), "%s", name);
	if (read_whole_number(r, in, "work", 0, NS_MAX, &k->kernel.work) != 0 ||
	    read_args(r, in, &k->kernel) != 0 || read_kind(r, in, &k->kind) != 0)
		return -1;
	return read_times(r, in, k) != 0 ? -1 : read_stops(r, in, k);
}

/* Read the kernels of one program; number is its number in the profile, from 1. */
static int read_program(struct reading *r, const struct json *in, uint32_t number)
{
	static const char *const known[] = {"name", "kernels", NULL};
	const struct json *list;

	if (in->type != JSON_OBJECT)
		return json_wrong(in, r->file, r->why, "is not an object");
	if (json_only(in, known, r->file, r->why) != 0 ||
	    json_list(in, "kernels", r->file, &list, r->why) != 0)
		return -1;
	for (const struct json *v = list->first; v != NULL; v = v->next)
		if (read_kernel(r, v, number) != 0)
			return -1;
	return 0;
}

/* ---- pairs of programs ------------------------------------------------------------ */

/* Check that in is a list with one element per program. */
static int is_list_of(struct reading *r, const struct json *in, uint32_t programs)
{
	if (in->type != JSON_LIST)
		return json_wrong(in, r->file, r->why, "is not a list");
	if (in->count != programs)
		return json_wrong(in, r->file, r->why,
				  "has %u entries, but there are %u programs", in->count,
				  programs);
	return 0;
}

/* Read the slowdowns of one program, while each other program runs. */
static int read_row(struct reading *r, const struct json *in, uint32_t row,
		    uint32_t programs)
{
	uint32_t col = 0;

	if (is_list_of(r, in, programs) != 0)
		return -1;
	for (const struct json *v = in->first; v != NULL; v = v->next) {
		if (json_is_number(v, 0, UINT32_MAX, r->file, r->why) != 0)
			return -1;
		if (!is_whole(v))
			return json_wrong(v, r->file, r->why,
					  "is %.9g, not a whole number", v->number);
		profile_pair(r->dev->observe.profile, row, ++col)->measured =
			(uint32_t)v->number;
	}
	return 0;
}

/* Allocate the slowdowns of pairs.  runs is 0 if the profile has none; they are then only
 * learned while commands run. */
static int make_pairs(struct reading *r, uint32_t programs, uint32_t runs)
{
	if (programs == 0 || programs > KNOWN_PAIRED ||
	    profile_pairs(r->dev->observe.profile, programs, runs))
		return 0;
	r->no_memory = true;
	return -1;
}

static int read_pairs(struct reading *r, const struct json *root, uint32_t programs)
{
	const struct json *list;
	uint32_t row = 0;

	if (json_member(root, "beside_permille") == NULL)
		return make_pairs(r, programs, 0);
	if (json_list(root, "beside_permille", r->file, &list, r->why) != 0)
		return -1;
	if (list->count == 0)
		return make_pairs(r, programs, 0);
	if (is_list_of(r, list, programs) != 0)
		return -1;
	if (programs > KNOWN_PAIRED)
		return json_wrong(list, r->file, r->why,
				  "covers %u programs; at most %u are supported",
				  programs, KNOWN_PAIRED);
	if (make_pairs(r, programs, (uint32_t)r->runs) != 0)
		return -1;
	for (const struct json *v = list->first; v != NULL; v = v->next)
		if (read_row(r, v, ++row, programs) != 0)
			return -1;
	return 0;
}

static int read_profile(struct reading *r, const struct json *root)
{
	static const char *const known[] = {"accelhal_profile",
					    "device",
					    "runs",
					    "tolerance_permille",
					    "memory_permille",
					    "programs",
					    "beside_permille",
					    NULL};
	const struct json *list;
	uint32_t programs = 0;
	double version;

	if (root->type != JSON_OBJECT)
		return json_wrong(root, r->file, r->why, "is not an object");
	/* Check the version first: another version may have other keys. */
	if (json_number(root, "accelhal_profile", 0, 1e9, r->file, &version, r->why) != 0)
		return -1;
	if (version != PROFILE_VERSION)
		return json_wrong(json_member(root, "accelhal_profile"), r->file, r->why,
				  "is version %.9g; this library reads version %.9g",
				  version, PROFILE_VERSION);
	if (json_only(root, known, r->file, r->why) != 0 || read_device(r, root) != 0 ||
	    json_number(root, "runs", 1, 1e6, r->file, &r->runs, r->why) != 0 ||
	    json_list(root, "programs", r->file, &list, r->why) != 0)
		return -1;
	for (const struct json *v = list->first; v != NULL; v = v->next)
		if (read_program(r, v, ++programs) != 0)
			return -1;
	return read_pairs(r, root, programs);
}

int profile_start(struct hal_device *dev)
{
	const struct hal_bk_config *cfg = dev->opened->core_cfg;
	struct reading r = {.file = option_str(cfg, "profile"), .dev = dev};
	struct json *root;
	int rc;

	if (r.file[0] == '\0')
		return 0;
	if (access(r.file, R_OK) != 0)
		return fail(errno, "%s: hal.profile: %s: %s",
			    option_source(cfg, "profile"), r.file, hal_strerror(errno));
	errno = 0;
	root = json_read(r.file, r.why);
	if (root == NULL)
		return fail(errno == ENOMEM ? ENOMEM : EINVAL, "%s: hal.profile: %s",
			    option_source(cfg, "profile"), r.why);
	dev->observe.profile = profile_make();
	r.no_memory = dev->observe.profile == NULL;
	rc = r.no_memory ? -1 : read_profile(&r, root);
	json_free(root);
	if (r.no_memory)
		return fail(ENOMEM, "no memory for %s", r.file);
	return rc != 0 ? fail(EINVAL, "%s: hal.profile: %s",
			      option_source(cfg, "profile"), r.why)
		       : 0;
}
