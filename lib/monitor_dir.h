/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor_dir.h - the folder in which programs have the sockets of hal.monitor and halctl
 * looks for them: the same rules for both.
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

/* Write the folder of this user's programs where hal.monitor_dir does not name one. */
static inline void monitor_dir_default(char *dir, size_t size)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): read, as the configuration is */
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	struct stat st;

	/* After su or sudo it may be another user's, or gone. */
	if (runtime != NULL && runtime[0] == '/' && stat(runtime, &st) == 0 &&
	    S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	    faccessat(AT_FDCWD, runtime, W_OK | X_OK, AT_EACCESS) == 0)
		(void)snprintf(dir, size, "%s/accelhal", runtime);
	else
		(void)snprintf(dir, size, "/tmp/accelhal-%u", (unsigned int)geteuid());
}

/* 0: dir is a folder that user alone can reach, so what is in it is trusted.  Else why
 * not, and -errno. */
static inline int monitor_dir_check(const char *dir, uid_t user, char *why, size_t size)
{
	struct stat st;

	if (lstat(dir, &st) != 0) {
		(void)snprintf(why, size, "folder %s: %s", dir, strerrordesc_np(errno));
		return -errno;
	}
	if (!S_ISDIR(st.st_mode)) {
		(void)snprintf(why, size,
			       "%s is not a folder: remove it, or name another "
			       "with hal.monitor_dir",
			       dir);
		return -ENOTDIR;
	}
	if (st.st_uid == user && (st.st_mode & 077) == 0)
		return 0;
	(void)snprintf(
		why, size,
		"folder %s is not user %u's alone (it is user %u's, mode %03o): remove "
		"it, or name another with hal.monitor_dir",
		dir, (unsigned int)user, (unsigned int)st.st_uid,
		(unsigned int)st.st_mode & 0777);
	return -EACCES;
}

#endif
