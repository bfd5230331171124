/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - who is at the other end of a connection; see peer.h. */
#define _GNU_SOURCE
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <hal/hal.h>

#include "util/error.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/* Write the path of pid's control group to `to`. */
static void read_cgroup(pid_t pid, char *to, size_t room)
{
	char path[64], text[4096];
	const char *line;
	ssize_t n;
	int fd;

	to[0] = '\0';
	format_text(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (line == NULL)
		return;
	line = strstr(line, "0::") + 3;
	if (strcspn(line, "\n") < room) {
		memcpy(to, line, strcspn(line, "\n"));
		to[strcspn(line, "\n")] = '\0';
	}
}

/* Return a descriptor of the process at the other end of fd, which is `pid`.  Where the
 * kernel does not keep one with the connection, the process may have ended since it
 * connected, and its number be another's: who cannot have that uses sockets of tenants.
 */
static int open_process(int fd, pid_t pid)
{
	socklen_t size = sizeof(int);
	int pidfd;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0)
		return pidfd;
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int peer_read(int fd, struct peer *peer)
{
	struct ucred who = {0};
	socklen_t size = sizeof(who);
	struct pollfd ended = {.events = POLLIN};

	*peer = (struct peer){.pidfd = -1};
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
		return fail(errno, "SO_PEERCRED: %s", hal_strerror(errno));
	peer->pid = who.pid;
	peer->uid = who.uid;
	peer->gid = who.gid;
	size = sizeof(peer->label) - 1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERSEC, peer->label, &size) != 0)
		peer->label[0] = '\0';
	peer->pidfd = open_process(fd, who.pid);
	if (peer->pidfd < 0)
		return fail(errno, "hald cannot watch process %d: %s", (int)who.pid,
			    hal_strerror(errno));
	read_cgroup(who.pid, peer->cgroup, sizeof(peer->cgroup));
	/* If it lives, what was read is its own. */
	ended.fd = peer->pidfd;
	if (poll(&ended, 1, 0) == 0)
		return 0;
	peer_free(peer);
	return fail(ESRCH, "process %d has ended", (int)who.pid);
}

void peer_free(struct peer *peer)
{
	if (peer->pidfd >= 0)
		(void)close(peer->pidfd);
	peer->pidfd = -1;
}

bool peer_is_under(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	while (n > 0 && prefix[n - 1] == '/')
		n--;
	return strncmp(path, prefix, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

bool peer_has_part(const char *path, const char *part)
{
	size_t n = strlen(part);

	for (const char *at = path; *at != '\0'; at += strcspn(at, "/")) {
		at += *at == '/';
		if (strncmp(at, part, n) == 0 && (at[n] == '\0' || at[n] == '/'))
			return true;
	}
	return false;
}
