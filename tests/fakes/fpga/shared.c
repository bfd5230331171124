/* SPDX-License-Identifier: Apache-2.0 */
/* A card of several processes: one byte of a file for each unit, locked by who has it. */
#define _GNU_SOURCE
#include "internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A process' own: locks are the open file's, and a child is another process. */
static int file(void)
{
	static char opened[256];
	static pid_t by;
	static int fd = -1;
	const char *name = getenv("HAL_STAND_IN_XRT_SHARED");

	if (fd >= 0 && (!name || by != getpid() || strcmp(name, opened) != 0)) {
		close(fd);
		fd = -1;
	}
	if (fd < 0 && name) {
		fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		by = getpid();
		snprintf(opened, sizeof(opened), "%s", name);
	}
	return fd;
}

static bool lock(int fd, int command, short type, uint32_t first, uint32_t count,
		 struct flock *l)
{
	*l = (struct flock){.l_type = type,
			    .l_whence = SEEK_SET,
			    .l_start = (off_t)first,
			    .l_len = (off_t)count};
	return fcntl(fd, command, l) == 0;
}

bool shared_take(const struct card *c, uint32_t unit)
{
	const int fd = file();
	struct flock l;

	return fd < 0 ||
	       lock(fd, F_OFD_SETLK, F_WRLCK, c->index * UNITS_MAX + unit, 1, &l);
}

void shared_give(const struct card *c, uint32_t unit)
{
	const int fd = file();
	struct flock l;

	if (fd >= 0)
		(void)lock(fd, F_OFD_SETLK, F_UNLCK, c->index * UNITS_MAX + unit, 1, &l);
}

/* Which configuration is on the card, behind the bytes of units. */
#define UUID_AT(c) ((off_t)(CARDS * UNITS_MAX + (c)->index * 16))

bool shared_uuid(const struct card *c, uint8_t *uuid)
{
	const int fd = file();

	return fd >= 0 && pread(fd, uuid, 16, UUID_AT(c)) == 16;
}

bool shared_has(const struct card *c, const uint8_t *uuid)
{
	uint8_t there[16];

	return shared_uuid(c, there) && memcmp(there, uuid, 16) == 0;
}

void shared_put(const struct card *c)
{
	if (file() >= 0 && pwrite(file(), c->x.uuid, 16, UUID_AT(c)) != 16)
		misuse("the file of the shared cards cannot be written");
}

bool shared_is_free(const struct card *c)
{
	const int fd = file();
	struct flock l;

	return fd < 0 ||
	       (lock(fd, F_OFD_GETLK, F_WRLCK, c->index * UNITS_MAX, UNITS_MAX, &l) &&
		l.l_type == F_UNLCK);
}
