/* SPDX-License-Identifier: Apache-2.0 */
/* find.h - read the configuration files at the standard places. */
#ifndef HAL_CONFIG_FIND_H
#define HAL_CONFIG_FIND_H

/* The system's folder.  Tests replace it. */
extern const char *find_system_folder;

/* Load the open file fd; name is for messages. */
typedef int (*find_load_fn)(void *user, int fd, const char *name);

/*
 * Call load for each standard configuration file that exists: hal.conf of the system's
 * folder, the .conf files of its folder conf.d, and hal.conf of the user's folder.  Later
 * files override earlier ones, so the order of calls matters.
 *
 * A user who can write such a file can run code in this process.  Return -EACCES if a
 * file or its folder belongs to a user other than root and this one, or if other users
 * can write it.
 */
int find_files(find_load_fn load, void *user);

#endif
