/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - the tables of options that there are. */
#ifndef HAL_CONFIG_SCHEMA_H
#define HAL_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "config/options.h"

/* Table number index of options: the library's, the policies', the backends'. */
bool config_table_at(uint32_t index, struct own_section *t);

#endif
