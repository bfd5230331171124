/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find.c - read the configuration files at the standard places; see find.h.
 *
 * A configuration can load code into this process.  So every file and its folder are
 * checked for their owner and mode, on open descriptors, so that neither can be exchanged
 * between check and use.
 */
#include "config/find.h"

#include <hal/hal.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/fd.h"

const char *find_system_folder = "/etc/accelhal";

/* Return whether name is in the system's folder and its owner has no uid in this user
 * namespace.  In a container without root, all files of the host's users are like this.
 * Such a file is trusted, because only a user who may write /etc can have created the
 * system's folder. */
static bool is_of_unmapped_user(const struct stat *st, const char *name)
{
	const size_t length = strlen(find_system_folder);
	unsigned long long owner = 65534, mapped = 0;
	char line[96], *at;
	FILE *f;

	if (strncmp(name, find_system_folder, length) != 0 || name[length] != '/')
		return false;
	f = fopen("/proc/sys/fs/overflowuid", "re");
	if (f != NULL) {
		if (fgets(line, sizeof(line), f) != NULL)
			owner = strtoull(line, NULL, 10);
		(void)fclose(f);
	}
	f = fopen("/proc/self/uid_map", "re");
	if (f == NULL)
		return false;
	/* Each line: first uid here, first uid outside, number of uids. */
	while (fgets(line, sizeof(line), f) != NULL) {
		(void)strtoull(line, &at, 10);
		(void)strtoull(at, &at, 10);
		mapped += strtoull(at, NULL, 10);
	}
	(void)fclose(f);
	return st->st_uid == owner && mapped < UINT32_MAX;
}

/* Check that only root and this user can write what (the file name or its folder), which
 * is open as fd.  Store its status in *st.  Return -EACCES if another user can write
 * it. */
static int owner_check(int fd, const char *name, const char *what, struct stat *st)
{
	bool other;

	if (fstat(fd, st) != 0)
		return fail(errno, "configuration %s: %s", name, hal_strerror(errno));
	other = st->st_uid != 0 && st->st_uid != geteuid();
	if (other && !is_of_unmapped_user(st, name))
		return fail(
			EACCES,
			"configuration %s: refused, %s belongs to user %u; make root or "
			"user %u its owner, remove it, or set HAL_CONFIG=/dev/null",
			name, what, (unsigned int)st->st_uid, (unsigned int)geteuid());
	/* In a sticky folder, users can only replace their own files.  This is no
	 * protection if the owner of the folder is unknown. */
	if ((st->st_mode & 022) != 0 &&
	    !(!other && S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0))
		return fail(EACCES,
			    "configuration %s: refused, other users can write %s (mode "
			    "%03o); "
			    "run: chmod go-w '%s'",
			    name, what, (unsigned int)st->st_mode & 0777, what);
	return 0;
}

/* Check the open file fd, then load it. */
static int load_checked(int fd, const char *name, find_load_fn load, void *user)
{
	struct stat st;
	int err = owner_check(fd, name, name, &st);

	if (err == 0 && !S_ISREG(st.st_mode))
		err = fail(EINVAL, "configuration %s: not a regular file; remove it",
			   name);
	return err != 0 ? err : load(user, fd, name);
}

/* Check and load file in folder, which is the open folder path.  Return 0 if there is no
 * such file. */
static int load_at(int folder, const char *path, const char *file, find_load_fn load,
		   void *user)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	char name[PATH_MAX];
	struct stat st;
	int fd, err;

	if (fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
		return 0;
	format_text(name, sizeof(name), "%s/%s", path, file);
	/* Check the folder before opening the file.  A symbolic link that another user
	 * made may point to a device, and opening a device may have an effect. */
	err = owner_check(folder, name, path, &st);
	if (err != 0)
		return err;
	/* If other users can write the folder, they may have created a link in it. */
	if ((st.st_mode & 022) != 0)
		flags |= O_NOFOLLOW;
	fd = openat(folder, file, flags);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && errno == ELOOP && (flags & O_NOFOLLOW) != 0)
		return fail(ELOOP,
			    "configuration %s: is a symbolic link in a folder that "
			    "other users can write; replace it with the file",
			    name);
	if (fd < 0)
		return fail(errno, "configuration %s: %s", name, hal_strerror(errno));
	err = load_checked(fd, name, load, user);
	fd_close(fd);
	return err;
}

/* Open the folder path as *fd.  If it does not exist or this user cannot see it, set *fd
 * to -1 and return 0. */
static int folder_open(const char *path, int *fd)
{
	struct stat st;
	int err;

	*fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*fd >= 0 || errno == ENOENT || errno == EACCES)
		return 0;
	err = errno;
	/* With HOME=/dev/null a part of path is no folder, so path does not exist. */
	if (err == ENOTDIR && stat(path, &st) != 0)
		return 0;
	return fail(err, "configuration folder %s: %s", path, hal_strerror(err));
}

static int is_conf(const struct dirent *e)
{
	size_t length = strlen(e->d_name);

	return e->d_name[0] != '.' && length > 5 &&
	       strcmp(e->d_name + length - 5, ".conf") == 0;
}

/* Compare names byte by byte, so that their order is the same in every locale. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Load the files of folder path whose names end in .conf, sorted by name. */
static int load_all(const char *path, find_load_fn load, void *user)
{
	struct dirent **list = NULL;
	int folder, count, err = folder_open(path, &folder);

	if (folder < 0)
		return err;
	count = scandirat(folder, ".", &list, is_conf, by_bytes);
	if (count < 0)
		err = fail(errno, "configuration %s: %s", path, hal_strerror(errno));
	for (int i = 0; i < count; i++) {
		if (err == 0)
			err = load_at(folder, path, list[i]->d_name, load, user);
		free(list[i]);
	}
	free(list);
	fd_close(folder);
	return err;
}

/* Load hal.conf of folder path, if it exists. */
static int load_one(const char *path, find_load_fn load, void *user)
{
	int folder, err = folder_open(path, &folder);

	if (folder < 0)
		return err;
	err = load_at(folder, path, "hal.conf", load, user);
	fd_close(folder);
	return err;
}

/* Write the folder of this user's configuration to path; return false if there is none.
 */
static bool user_folder(char *path, size_t size)
{
	/* Relative paths are ignored: they would depend on the current folder.
	 * secure_getenv returns NULL in a program that has more rights than the user who
	 * started it. */
	const char *config = secure_getenv("XDG_CONFIG_HOME");
	const char *home = secure_getenv("HOME");

	if (config != NULL && config[0] == '/')
		format_text(path, size, "%s/accelhal", config);
	else if (home != NULL && home[0] == '/')
		format_text(path, size, "%s/.config/accelhal", home);
	else
		return false;
	return true;
}

int find_files(find_load_fn load, void *user)
{
	char path[PATH_MAX];
	int err = load_one(find_system_folder, load, user);

	if (err != 0)
		return err;
	format_text(path, sizeof(path), "%s/conf.d", find_system_folder);
	err = load_all(path, load, user);
	if (err == 0 && user_folder(path, sizeof(path)))
		err = load_one(path, load, user);
	return err;
}
