/* SPDX-License-Identifier: Apache-2.0 */
/* peer.h - who is at the other end of a connection, as the kernel says. */
#ifndef HALD_PEER_H
#define HALD_PEER_H

#include <stdbool.h>
#include <sys/types.h>

struct peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	int pidfd;        /* watches the process; -1: closed, or given away */
	char cgroup[512]; /* path of its control group (version 2); "": unknown */
	char label[256];  /* its security label; "": it has none */
};

/* Find out who has connected fd.  Return 0 or -errno. */
int peer_read(int fd, struct peer *peer);
/* Close .pidfd, unless it has been given away. */
void peer_free(struct peer *peer);

/* Return whether path is under prefix, which ends at a border of its parts. */
bool peer_is_under(const char *path, const char *prefix);
/* Return whether one part of path is `part`. */
bool peer_has_part(const char *path, const char *part);

#endif
