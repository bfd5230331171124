/* SPDX-License-Identifier: Apache-2.0 */
/* ini.h - read configuration files into entries. */
#ifndef HAL_CONFIG_INI_H
#define HAL_CONFIG_INI_H

#include "config/config.h"

/* Add the entries of file name to cfg. */
int ini_load_named(struct config *cfg, const char *name);

/* Add the entries of the open file fd to user, a struct config.  fd stays open.  A
 * find_load_fn (find.h). */
int ini_load_found(void *user, int fd, const char *name);

#endif
