/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c - list the options and their values, for hal_scan_get_option. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/schema.h"
#include "config/values.h"
#include "util/compiler.h"
#include "util/error.h"

/* Describe option d of section, with its value in force, in *info. */
static int option_describe(const struct config *cfg, const char *section,
			   const struct hal_option_def *d, struct hal_option_info *info)
{
	static const char *const types[] = {"int", "size", "bool", "enum", "string"};
	struct hal_bk_config *v;
	int err = config_resolve(cfg, section, d, 1, &v);

	memset(info, 0, sizeof(*info));
	info->size = (uint32_t)sizeof(*info);
	if (err != 0 || v == NULL)
		return err;
	format_text(info->section, sizeof(info->section), "%s", section);
	format_text(info->key, sizeof(info->key), "%s", d->key);
	format_text(info->type, sizeof(info->type), "%s",
		    d->type < ARRAY_LENGTH(types) ? types[d->type] : "?");
	config_option_range(d, info->range, sizeof(info->range));
	format_text(info->def, sizeof(info->def), "%s", d->def != NULL ? d->def : "");
	format_text(info->value, sizeof(info->value), "%s", v->values[0].text);
	format_text(info->source, sizeof(info->source), "%s", v->values[0].source);
	format_text(info->help, sizeof(info->help), "%s", d->help != NULL ? d->help : "");
	config_values_free(v);
	return 0;
}

int config_list(const struct config *cfg, struct hal_option_info **list, uint32_t *count)
{
	struct hal_option_info *more;
	struct own_section t;
	uint32_t n = 0;
	int err = 0;

	for (uint32_t i = 0; err == 0 && config_table_at(i, &t); i++) {
		more = t.count != 0 ? realloc(*list, (n + t.count) * sizeof(*more))
				    : *list;
		if (t.count != 0 && more == NULL)
			return fail(ENOMEM, "no memory for a list of %u options",
				    n + t.count);
		*list = more;
		for (uint32_t k = 0; err == 0 && k < t.count; k++)
			err = option_describe(cfg, t.name, &t.defs[k], &more[n++]);
	}
	*count = n;
	return err;
}
