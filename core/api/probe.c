/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - what there is, without opening it. */
#include <errno.h>
#include <string.h>

#include "api/target.h"
#include "config/options.h"
#include "util/cancel.h"
#include "util/error.h"

static int default_config(struct config *cfg)
{
	struct hal_bk_config *core = NULL;
	int err = config_load(cfg, NULL);

	if (err != 0)
		return err;
	err = config_resolve(cfg, "hal", core_options, core_option_count, &core);
	if (err == 0)
		err = registry_load(option_str(core, "plugins"));
	if (err == 0)
		err = config_check(cfg);
	config_values_free(core);
	if (err != 0)
		config_free(cfg);
	return err;
}

static int backend_info(uint32_t index, struct hal_backend_info *info)
{
	struct hal_device_info devices[PROBE_MAX];
	struct hal_backend_info b = HAL_INIT(hal_backend_info);
	const struct backend *backend;
	struct config cfg;
	int n;
	int err;

	if (info == NULL)
		return fail(EINVAL, "hal_backend_get_info: info is NULL");
	err = default_config(&cfg);
	if (err != 0)
		return err;
	if (index >= registry_count()) {
		err = fail(ENOENT, "there are %u backends, index %u is past them",
			   registry_count(), index);
		goto out;
	}
	backend = registry_at(index);
	n = backend_probe(&cfg, backend, devices, PROBE_MAX);
	b.status = n < 0 ? n : 0;
	b.device_count = n > 0 ? (uint32_t)n : 0;
	format_text(b.name, sizeof(b.name), "%s", backend->table.name);
	format_text(b.summary, sizeof(b.summary), "%s",
		    backend->table.summary != NULL ? backend->table.summary : "");
	if (n < 0)
		format_text(b.reason, sizeof(b.reason), "%s", hal_last_error());
	err = export_struct(info, &b, sizeof(b), offsetof(struct hal_backend_info, name),
			    "hal_backend_info");
out:
	config_free(&cfg);
	return err;
}

int hal_backend_get_info(uint32_t index, struct hal_backend_info *info)
{
	int state = cancel_hold();
	int err = backend_info(index, info);

	cancel_release(state);
	return err;
}

static int device_probe(uint32_t index, struct hal_device_info *info)
{
	struct hal_device_info devices[PROBE_MAX];
	struct config cfg;
	uint32_t seen = 0;
	int err;

	if (info == NULL)
		return fail(EINVAL, "hal_device_probe: info is NULL");
	err = default_config(&cfg);
	if (err != 0)
		return err;
	for (uint32_t i = 0; i < registry_count(); i++) {
		int n = backend_probe(&cfg, registry_at(i), devices, PROBE_MAX);
		uint32_t have = n < 0 ? 0 : n > PROBE_MAX ? PROBE_MAX : (uint32_t)n;

		if (index - seen < have) {
			err = export_struct(info, &devices[index - seen],
					    sizeof(devices[0]),
					    offsetof(struct hal_device_info, backend),
					    "hal_device_info");
			goto out;
		}
		seen += have;
	}
	err = fail(ENOENT, "there are %u devices, index %u is past them", seen, index);
out:
	config_free(&cfg);
	return err;
}

int hal_device_probe(uint32_t index, struct hal_device_info *info)
{
	int state = cancel_hold();
	int err = device_probe(index, info);

	cancel_release(state);
	return err;
}
