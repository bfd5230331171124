/* SPDX-License-Identifier: Apache-2.0 */
/* find.h - the configuration files that are read without having been named. */
#ifndef HAL_CONFIG_FIND_H
#define HAL_CONFIG_FIND_H

/* The system's folder; tests set another one. */
extern const char *find_system_folder;

/* Reads a file that is open; name is for messages. */
typedef int (*find_load_fn)(void *user, int fd, const char *name);

/*
 * Call load for each file that exists, in the order in which later ones override earlier
 * ones: hal.conf and each .conf in conf.d of the system's folder, then hal.conf of the
 * user's.
 * Whoever can write such a file can have code run in this process.  So fail with -EACCES
 * where file or folder belongs to another user than root and this one, or where others
 * can write it.
 */
int find_files(find_load_fn load, void *user);

#endif
