/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - all tables of options: those of the core, the policies and the backends. */
#ifndef HAL_CONFIG_SCHEMA_H
#define HAL_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "config/options.h"

/* Store table number index in *t; return false if there are fewer tables. */
bool config_table_at(uint32_t index, struct own_section *t);

#endif
