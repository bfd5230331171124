/* SPDX-License-Identifier: Apache-2.0 */
/* ini.h - read configuration files into entries. */
#ifndef HAL_CONFIG_INI_H
#define HAL_CONFIG_INI_H

#include "config/config.h"

/* Read the file called name. */
int ini_load_named(struct config *cfg, const char *name);

/* As find_load_fn (config/find.h), of user, a struct config.  fd stays open. */
int ini_load_found(void *user, int fd, const char *name);

#endif
