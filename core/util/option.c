/* SPDX-License-Identifier: Apache-2.0 */
/* option.c - look up the values of options. */
#include "util/option.h"

#include <string.h>

const struct option_value *option_find(const struct hal_bk_config *cfg, const char *key)
{
	for (uint32_t i = 0; cfg != NULL && i < cfg->count; i++)
		if (strcmp(cfg->defs[i].key, key) == 0)
			return &cfg->values[i];
	return NULL;
}

int64_t option_int(const struct hal_bk_config *cfg, const char *key)
{
	const struct option_value *v = option_find(cfg, key);

	return v != NULL ? v->number : 0;
}

const char *option_str(const struct hal_bk_config *cfg, const char *key)
{
	const struct option_value *v = option_find(cfg, key);

	return v != NULL ? v->text : NULL;
}

const char *option_source(const struct hal_bk_config *cfg, const char *key)
{
	const struct option_value *v = option_find(cfg, key);

	return v != NULL ? v->source : "";
}
