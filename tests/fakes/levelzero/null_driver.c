/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver that answers SUCCESS to everything and says nothing, as the loader's own null
 * driver does: one device, without a name, a type or an engine.
 */
#include "tables.h"

static uint32_t silent(void)
{
	return LZ_SUCCESS;
}

static uint32_t give(uint32_t *count, void **out)
{
	static int object;

	if (*count && out)
		out[0] = &object;
	*count = 1;
	return LZ_SUCCESS;
}

static uint32_t give_device(void *driver, uint32_t *count, void **devices)
{
	(void)driver;
	return give(count, devices);
}

static uint32_t version_1_4(void *driver, uint32_t *version)
{
	(void)driver;
	*version = LZ_API_VERSION(1, 4);
	return LZ_SUCCESS;
}

static const struct entry entries[] = {
#define ROW(table, slot, need, name, params, args) {#table, slot, (entry_fn)silent},
	LZ_CALLS(ROW)
#undef ROW
		{"zeGetDriver", 0, (entry_fn)give},
	{"zeGetDriver", 2, (entry_fn)silent},
	{"zeGetDriver", 1, (entry_fn)version_1_4},
	{"zeGetDevice", 0, (entry_fn)give_device},
};

LZ_TABLES(EXPORT_TABLE)
