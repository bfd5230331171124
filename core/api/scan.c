/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - list backends, devices and options without opening a device. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/options.h>

#include "api/target.h"
#include "config/options.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/pool.h"

struct hal_scan {
	struct object obj;
	uint32_t what; /* HAL_SCAN_* */
	uint32_t backend_count, device_count, option_count;
	struct hal_backend_info *backends;
	struct hal_device_info *devices;
	struct hal_option_info *options;
};

/* Load configuration and plugins for a listing.  A plugin that cannot be loaded does not
 * fail the listing, which shows it with its error.  The options that it would add are
 * unknown then, so the names of sections and keys are not checked.  Return 0 or -errno;
 * free cfg and *core in either case. */
static int load(struct config *cfg, const char *const *options,
		struct hal_bk_config **core)
{
	char file[1];
	int err = config_load(cfg, options, core);

	if (err != 0)
		return err;
	err = registry_load(option_str(*core, "plugins"));
	if (err == 0)
		err = config_check(cfg);
	else if (registry_fault(option_str(*core, "plugins"), 0, file, sizeof(file)) != 0)
		err = 0;
	return err;
}

/* Add n to the *count elements of size bytes at *list.  Return the first new one, zeroed;
 * NULL: no memory. */
static void *grow(void **list, uint32_t *count, uint32_t n, size_t size)
{
	char *more = realloc(*list, (*count + n) * size);

	if (more == NULL) {
		fail(ENOMEM, "no memory for a list of %u", *count + n);
		return NULL;
	}
	*list = more;
	more += *count * size;
	memset(more, 0, n * size);
	*count += n;
	return more;
}

static struct hal_backend_info *add_backend(struct hal_scan *s)
{
	void *list = s->backends;
	struct hal_backend_info *b =
		grow(&list, &s->backend_count, 1, sizeof(*s->backends));

	s->backends = list;
	if (b != NULL)
		b->size = (uint32_t)sizeof(*b);
	return b;
}

static int add_devices(struct hal_scan *s, const struct hal_device_info *devices,
		       uint32_t n)
{
	void *list = s->devices;
	struct hal_device_info *to =
		n != 0 ? grow(&list, &s->device_count, n, sizeof(*s->devices)) : NULL;

	s->devices = list;
	if (to != NULL)
		memcpy(to, devices, n * sizeof(*devices));
	return n == 0 || to != NULL ? 0 : -ENOMEM;
}

/* Probe backend and add it, and its devices, to the lists. */
static int probe(const struct config *cfg, const struct backend *backend,
		 struct hal_scan *s)
{
	struct hal_device_info devices[PROBE_MAX];
	struct hal_backend_info *b = add_backend(s);
	int n;

	if (b == NULL)
		return -ENOMEM;
	n = backend_probe(cfg, backend, devices, PROBE_MAX);
	if (n < 0)
		format_text(b->reason, sizeof(b->reason), "%s", backend_reason(backend));
	b->status = n < 0 ? n : 0;
	b->device_count = n > 0 ? (uint32_t)n : 0;
	format_text(b->name, sizeof(b->name), "%s", backend->table.name);
	format_text(b->summary, sizeof(b->summary), "%s",
		    backend->table.summary != NULL ? backend->table.summary : "");
	return add_devices(s, devices,
			   b->device_count > PROBE_MAX ? PROBE_MAX : b->device_count);
}

/* Add the plugins that could not be loaded to the list of backends. */
static int add_faults(const char *plugins, struct hal_scan *s)
{
	char name[sizeof(s->backends->name)];
	struct hal_backend_info *b;
	int status;

	for (uint32_t i = 0;
	     (status = registry_fault(plugins, i, name, sizeof(name))) != 0; i++) {
		b = add_backend(s);
		if (b == NULL)
			return -ENOMEM;
		b->status = status;
		format_text(b->name, sizeof(b->name), "%s", name);
		format_text(b->summary, sizeof(b->summary),
			    "a plugin that cannot be loaded");
		format_text(b->reason, sizeof(b->reason), "%s", hal_last_error());
	}
	return 0;
}

static int scan_devices(const char *const *options, struct hal_scan *s)
{
	struct hal_bk_config *core;
	struct config cfg;
	int err = load(&cfg, options, &core);

	for (uint32_t i = 0; err == 0 && i < registry_count(); i++)
		err = probe(&cfg, registry_at(i), s);
	if (err == 0)
		err = add_faults(option_str(core, "plugins"), s);
	config_values_free(core);
	config_free(&cfg);
	return err;
}

static int scan_options(const char *const *options, struct hal_scan *s)
{
	struct hal_bk_config *core;
	struct config cfg;
	int err = config_load(&cfg, options, &core);

	if (err == 0)
		err = config_complete(&cfg, core);
	if (err == 0)
		err = config_list(&cfg, &s->options, &s->option_count);
	config_values_free(core);
	config_free(&cfg);
	return err;
}

static void scan_free(struct hal_scan *s)
{
	object_retire(&s->obj);
	free(s->backends);
	free(s->devices);
	free(s->options);
	object_free(OBJECT_SCAN, s);
}

int hal_scan_create(const char *const *options, uint32_t what, struct hal_scan **scan)
{
	struct hal_scan *s;
	int cancel, err = 0;

	if (scan == NULL)
		return fail(EINVAL, "hal_scan_create: scan is NULL");
	if (what == 0 || (what & ~(HAL_SCAN_DEVICES | HAL_SCAN_OPTIONS)) != 0)
		return fail(EINVAL,
			    "hal_scan_create: what is 0x%x; it must be HAL_SCAN_DEVICES, "
			    "HAL_SCAN_OPTIONS or both",
			    what);
	cancel = cancel_hold();
	s = object_alloc(OBJECT_SCAN, sizeof(*s));
	if (s == NULL) {
		cancel_release(cancel);
		return -ENOMEM;
	}
	s->what = what;
	if ((what & HAL_SCAN_DEVICES) != 0)
		err = scan_devices(options, s);
	if (err == 0 && (what & HAL_SCAN_OPTIONS) != 0)
		err = scan_options(options, s);
	if (err == 0)
		*scan = s;
	else
		scan_free(s);
	cancel_release(cancel);
	return tried(err);
}

int hal_scan_destroy(struct hal_scan *scan)
{
	if (scan == NULL)
		return 0;
	if (!OBJECT_OK(scan, OBJECT_SCAN))
		return object_bad(scan, OBJECT_SCAN);
	scan_free(scan);
	return 0;
}

/* Check a request for entry index of a list of count, of what is in part of the scan. */
static int check(const struct hal_scan *scan, uint32_t part, const char *part_name,
		 uint32_t index, uint32_t count, const char *entry)
{
	if (!OBJECT_OK(scan, OBJECT_SCAN))
		return object_bad(scan, OBJECT_SCAN);
	if ((scan->what & part) == 0)
		return fail(EINVAL, "the scan was created without %s", part_name);
	if (index >= count)
		return fail(ERANGE, "%s number %u is past the last: the list has %u",
			    entry, index, count);
	return 0;
}

int hal_scan_get_backend(const struct hal_scan *scan, uint32_t index,
			 struct hal_backend_info *info)
{
	int err = check(scan, HAL_SCAN_DEVICES, "HAL_SCAN_DEVICES", index,
			scan != NULL ? scan->backend_count : 0, "backend");

	if (err != 0)
		return err;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): check refuses NULL */
	return export_struct(info, &scan->backends[index], sizeof(*info),
			     offsetof(struct hal_backend_info, name), "hal_backend_info");
}

int hal_scan_get_device(const struct hal_scan *scan, uint32_t index,
			struct hal_device_info *info)
{
	int err = check(scan, HAL_SCAN_DEVICES, "HAL_SCAN_DEVICES", index,
			scan != NULL ? scan->device_count : 0, "device");

	if (err != 0)
		return err;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): check refuses NULL */
	return export_struct(info, &scan->devices[index], sizeof(*info),
			     offsetof(struct hal_device_info, backend),
			     "hal_device_info");
}

int hal_scan_get_option(const struct hal_scan *scan, uint32_t index,
			struct hal_option_info *info)
{
	int err = check(scan, HAL_SCAN_OPTIONS, "HAL_SCAN_OPTIONS", index,
			scan != NULL ? scan->option_count : 0, "option");

	if (err != 0)
		return err;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): check refuses NULL */
	return export_struct(info, &scan->options[index], sizeof(*info), sizeof(*info),
			     "hal_option_info");
}
