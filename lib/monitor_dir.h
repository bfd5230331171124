/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor_dir.h - the folder of the monitor sockets (hal.monitor).
 *
 * The library creates the sockets there and halctl opens them; both use these rules.
 */
#ifndef HAL_LIB_MONITOR_DIR_H
#define HAL_LIB_MONITOR_DIR_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Write the default folder of the effective user to dir.  hal.monitor_dir overrides it.
 */
static inline void monitor_dir_default(char *dir, size_t size)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): read only, like the configuration */
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	struct stat st;

	/* After su or sudo the folder may belong to another user or not exist. */
	if (runtime != NULL && runtime[0] == '/' && stat(runtime, &st) == 0 &&
	    S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	    faccessat(AT_FDCWD, runtime, W_OK | X_OK, AT_EACCESS) == 0)
		(void)snprintf(dir, size, "%s/accelhal", runtime);
	else
		(void)snprintf(dir, size, "/tmp/accelhal-%u", (unsigned int)geteuid());
}

/* Check that dir is a folder that only user can access, so that its contents can be
 * trusted.  Return 0, or -errno with the reason in why[0..size). */
static inline int monitor_dir_check(const char *dir, uid_t user, char *why, size_t size)
{
	struct stat st;

	if (lstat(dir, &st) != 0) {
		(void)snprintf(why, size, "folder %s: %s", dir, strerrordesc_np(errno));
		return -errno;
	}
	if (!S_ISDIR(st.st_mode)) {
		(void)snprintf(why, size,
			       "%s is not a folder; remove it, or name another folder "
			       "with hal.monitor_dir",
			       dir);
		return -ENOTDIR;
	}
	if (st.st_uid == user && (st.st_mode & 077) == 0)
		return 0;
	(void)snprintf(
		why, size,
		"folder %s is not private to user %u (its owner is user %u, its mode is "
		"%03o); remove it, or name another folder with hal.monitor_dir",
		dir, (unsigned int)user, (unsigned int)st.st_uid,
		(unsigned int)st.st_mode & 0777);
	return -EACCES;
}

#endif
