/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - the configuration files that are read without having been named. */
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

/* Whether a file of the system's folder has an owner that has no number in this user
 * namespace, as all of the host's have in a container without root.  Only who can write
 * the folder above, /etc, can have put it there. */
static bool is_hosts(const struct stat *st, const char *name)
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
	/* Lines of three numbers: the first here, the first outside, how many. */
	while (fgets(line, sizeof(line), f) != NULL) {
		(void)strtoull(line, &at, 10);
		(void)strtoull(at, &at, 10);
		mapped += strtoull(at, NULL, 10);
	}
	(void)fclose(f);
	return st->st_uid == owner && mapped < UINT32_MAX;
}

/* Fail unless only root and this user can have written what, which is open as fd. */
static int owner_check(int fd, const char *name, const char *what, struct stat *st)
{
	bool other;

	if (fstat(fd, st) != 0)
		return fail(errno, "configuration %s: %s", name, hal_strerror(errno));
	other = st->st_uid != 0 && st->st_uid != geteuid();
	if (other && !is_hosts(st, name))
		return fail(
			EACCES,
			"configuration %s: refused, %s belongs to user %u; make root or "
			"user %u its owner, remove it, or set HAL_CONFIG=/dev/null",
			name, what, (unsigned int)st->st_uid, (unsigned int)geteuid());
	/* In a sticky folder nobody can replace another's file, if it is known whose. */
	if ((st->st_mode & 022) != 0 &&
	    !(!other && S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0))
		return fail(EACCES,
			    "configuration %s: refused, other users can write %s (mode "
			    "%03o); "
			    "run: chmod go-w '%s'",
			    name, what, (unsigned int)st->st_mode & 0777, what);
	return 0;
}

/* The file is checked after it has been opened: nobody can exchange it in between. */
static int load_checked(int fd, const char *name, find_load_fn load, void *user)
{
	struct stat st;
	int err = owner_check(fd, name, name, &st);

	if (err == 0 && !S_ISREG(st.st_mode))
		err = fail(EINVAL, "configuration %s: not a regular file; remove it",
			   name);
	return err != 0 ? err : load(user, fd, name);
}

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
	/* Check the folder first: to open what another user's link names may have an
	 * effect, as it has for a device. */
	err = owner_check(folder, name, path, &st);
	if (err != 0)
		return err;
	/* Anybody can have made a link in a folder that everybody writes. */
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

/* Open a folder.  *fd is -1 if there is none, or none that this user can see. */
static int folder_open(const char *path, int *fd)
{
	struct stat st;
	int err;

	*fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*fd >= 0 || errno == ENOENT || errno == EACCES)
		return 0;
	err = errno;
	/* With HOME=/dev/null there can be no folder. */
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

/* The same in every locale. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Load the files of a folder that end in .conf, sorted by name. */
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

static int load_one(const char *path, find_load_fn load, void *user)
{
	int folder, err = folder_open(path, &folder);

	if (folder < 0)
		return err;
	err = load_at(folder, path, "hal.conf", load, user);
	fd_close(folder);
	return err;
}

/* False: this user has none. */
static bool user_folder(char *path, size_t size)
{
	/* A relative path would depend on the current folder.  NULL, too, where the
	 * program runs with more rights than the user who started it. */
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
