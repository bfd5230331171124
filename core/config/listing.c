/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c - list the options and their values, for hal_option_get_info. */
#include <errno.h>
#include <string.h>

#include "config/config.h"
#include "config/schema.h"
#include "config/values.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/fd.h"

/* Describe option d of section, with its value in force, in *info. */
static int option_export(const struct config *cfg, const char *section,
			 const struct hal_option_def *d, struct hal_option_info *info)
{
	static const char *const types[] = {"int", "size", "bool", "enum", "string"};
	struct hal_option_info o = HAL_INIT(hal_option_info);
	struct hal_bk_config *v;
	int err = config_resolve(cfg, section, d, 1, &v);

	if (err != 0 || v == NULL)
		return err;
	format_text(o.section, sizeof(o.section), "%s", section);
	format_text(o.key, sizeof(o.key), "%s", d->key);
	format_text(o.type, sizeof(o.type), "%s",
		    d->type < ARRAY_LENGTH(types) ? types[d->type] : "?");
	config_option_range(d, o.range, sizeof(o.range));
	format_text(o.def, sizeof(o.def), "%s", d->def != NULL ? d->def : "");
	format_text(o.value, sizeof(o.value), "%s", v->values[0].text);
	format_text(o.source, sizeof(o.source), "%s", v->values[0].source);
	format_text(o.help, sizeof(o.help), "%s", d->help != NULL ? d->help : "");
	config_values_free(v);
	return export_struct(info, &o, sizeof(o), sizeof(o), "hal_option_info");
}

/* Describe option number index of all tables, in the order of config_table_at. */
static int option_at(const struct config *cfg, uint32_t index,
		     struct hal_option_info *info)
{
	struct own_section t;
	uint32_t total = 0;

	for (uint32_t i = 0; config_table_at(i, &t); i++) {
		if (index - total < t.count)
			return option_export(cfg, t.name, &t.defs[index - total], info);
		total += t.count;
	}
	return fail(ERANGE, "option number %u is past the last; there are %u", index,
		    total);
}

int hal_option_get_info(uint32_t index, const char *const *options,
			struct hal_option_info *info)
{
	struct hal_bk_config *core;
	struct config cfg;
	int cancel, err;

	if (info == NULL)
		return fail(EINVAL, "hal_option_get_info: info is NULL");
	cancel = cancel_hold();
	err = config_load(&cfg, options, &core);
	if (err == 0)
		err = config_complete(&cfg, core);
	if (err == 0)
		err = option_at(&cfg, index, info);
	config_values_free(core);
	config_free(&cfg);
	cancel_release(cancel);
	return tried(err);
}
