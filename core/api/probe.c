/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - list backends and devices without opening a device. */
#include <errno.h>
#include <stdbool.h>

#include "api/target.h"
#include "config/options.h"
#include "util/error.h"
#include "util/fd.h"

/* Load configuration and plugins for a listing.  A plugin that cannot be loaded does not
 * fail the listing, which shows it with its error.  The options that it would add are
 * unknown then, so the names of sections and keys are not checked.  Return 0 or -errno;
 * free cfg and *core in either case. */
static int listing_load(struct config *cfg, const char *const *options,
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

/* Probe backend and describe it in *b. */
static void describe_backend(const struct config *cfg, const struct backend *backend,
			     struct hal_backend_info *b)
{
	struct hal_device_info devices[PROBE_MAX];
	int n = backend_probe(cfg, backend, devices, PROBE_MAX);

	if (n < 0)
		format_text(b->reason, sizeof(b->reason), "%s", backend_reason(backend));
	b->status = n < 0 ? n : 0;
	b->device_count = n > 0 ? (uint32_t)n : 0;
	format_text(b->name, sizeof(b->name), "%s", backend->table.name);
	format_text(b->summary, sizeof(b->summary), "%s",
		    backend->table.summary != NULL ? backend->table.summary : "");
}

/* Describe backend number index in *b.  Failed plugins come after the loaded ones. */
static int backend_at(uint32_t index, const char *const *options,
		      struct hal_backend_info *b)
{
	struct hal_bk_config *core;
	struct config cfg;
	uint32_t count;
	int err = listing_load(&cfg, options, &core);

	count = registry_count();
	if (err == 0 && index < count) {
		describe_backend(&cfg, registry_at(index), b);
	} else if (err == 0) {
		b->status = registry_fault(option_str(core, "plugins"), index - count,
					   b->name, sizeof(b->name));
		format_text(b->summary, sizeof(b->summary),
			    "a plugin that cannot be loaded");
		format_text(b->reason, sizeof(b->reason), "%s", hal_last_error());
		if (b->status == 0)
			err = fail(ERANGE,
				   "backend number %u is past the last: the list has %u",
				   index, count);
	}
	config_values_free(core);
	config_free(&cfg);
	return err;
}

int hal_backend_get_info(uint32_t index, const char *const *options,
			 struct hal_backend_info *info)
{
	struct hal_backend_info b = HAL_INIT(hal_backend_info);
	int cancel, err;

	if (info == NULL)
		return fail(EINVAL, "hal_backend_get_info: info is NULL");
	cancel = cancel_hold();
	err = backend_at(index, options, &b);
	if (err == 0)
		err = export_struct(info, &b, sizeof(b),
				    offsetof(struct hal_backend_info, name),
				    "hal_backend_info");
	cancel_release(cancel);
	return tried(err);
}

/* Describe device number index, counted over all backends, in *info. */
static int device_at(uint32_t index, const char *const *options,
		     struct hal_device_info *info)
{
	struct hal_device_info devices[PROBE_MAX];
	struct hal_bk_config *core;
	struct config cfg;
	uint32_t seen = 0;
	bool found = false;
	int err = listing_load(&cfg, options, &core);

	for (uint32_t i = 0; err == 0 && !found && i < registry_count(); i++) {
		int n = backend_probe(&cfg, registry_at(i), devices, PROBE_MAX);
		uint32_t have = n < 0 ? 0 : n > PROBE_MAX ? PROBE_MAX : (uint32_t)n;

		found = index - seen < have;
		if (found)
			*info = devices[index - seen];
		seen += have;
	}
	if (err == 0 && !found)
		err = fail(ERANGE, "device number %u is past the last: the list has %u",
			   index, seen);
	config_values_free(core);
	config_free(&cfg);
	return err;
}

int hal_device_probe(uint32_t index, const char *const *options,
		     struct hal_device_info *info)
{
	struct hal_device_info found;
	int cancel, err;

	if (info == NULL)
		return fail(EINVAL, "hal_device_probe: info is NULL");
	cancel = cancel_hold();
	err = device_at(index, options, &found);
	if (err == 0)
		err = export_struct(info, &found, sizeof(found),
				    offsetof(struct hal_device_info, backend),
				    "hal_device_info");
	cancel_release(cancel);
	return tried(err);
}
