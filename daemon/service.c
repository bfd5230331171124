/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.c - run under a supervisor such as systemd; see hald.h.
 *
 * The protocols are those of sd_listen_fds(3) and sd_notify(3).  hald does not link
 * libsystemd, because untrusted programs talk to this process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hald.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/futex.h"
#include "util/log.h"

enum { FIRST_FD = 3 }; /* the first descriptor that a supervisor passes */

/* ---- the environment ------------------------------------------------------------------ */

static int number_in(const char *variable, const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
		return fail(EINVAL, "environment %s: \"%s\" is not a decimal number",
			    variable, text);
	return 0;
}

/* Return whether the process ID in variable is that of this process, or -EINVAL.  Return
 * absent if the variable is not set. */
static int is_for_me(const char *variable, bool absent)
{
	const char *text = getenv(variable);
	uint64_t pid;
	int err;

	if (text == NULL)
		return absent;
	err = number_in(variable, text, &pid);
	return err != 0 ? err : pid == (uint64_t)getpid();
}

/* Remove the variables, which child processes such as compilers must not see. */
static void forget_variables(void)
{
	static const char *const names[] = {
		"LISTEN_PID",    "LISTEN_FDS",    "LISTEN_FDNAMES", "LISTEN_PIDFDID",
		"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		(void)unsetenv(names[i]); /* NOLINT(concurrency-mt-unsafe): one thread */
}

/* ---- the listening socket ------------------------------------------------------------- */

/* Check one property of the descriptor that the supervisor has passed. */
static int socket_has(int fd, int option, int expected, const char *property)
{
	socklen_t size = sizeof(int);
	int value = 0;

	if (getsockopt(fd, SOL_SOCKET, option, &value, &size) != 0)
		return fail(errno, "environment LISTEN_FDS: descriptor %d: %s", fd,
			    hal_strerror(errno));
	return value == expected
		       ? 0
		       : fail(EINVAL,
			      "environment LISTEN_FDS: descriptor %d is not %s; hald "
			      "needs a listening AF_UNIX socket of type SOCK_SEQPACKET "
			      "(ListenSequentialPacket=)",
			      fd, property);
}

/* Check the count and the names of the descriptors.  hald takes one: its socket. */
static int passed_check(const char *fds, const char *names)
{
	uint64_t count;
	int err = number_in("LISTEN_FDS", fds, &count);

	if (err != 0)
		return err;
	if (count != 1)
		return fail(EINVAL,
			    "environment LISTEN_FDS: %s descriptors; hald takes one, the "
			    "socket that it serves",
			    fds);
	if (names != NULL && strchr(names, ':') != NULL)
		return fail(EINVAL,
			    "environment LISTEN_FDNAMES: \"%s\" has more than one name, "
			    "but LISTEN_FDS is 1",
			    names);
	return 0;
}

/* Accept the listening socket of the supervisor, if one was passed to this process. */
static int take_socket(struct service *sv)
{
	const char *fds = getenv("LISTEN_FDS");
	int err = is_for_me("LISTEN_PID", false);

	if (err <= 0 || fds == NULL)
		return err < 0 ? err : 0;
	err = passed_check(fds, getenv("LISTEN_FDNAMES"));
	if (err == 0)
		err = socket_has(FIRST_FD, SO_DOMAIN, AF_UNIX, "of AF_UNIX");
	if (err == 0)
		err = socket_has(FIRST_FD, SO_TYPE, SOCK_SEQPACKET, "of SOCK_SEQPACKET");
	if (err == 0)
		err = socket_has(FIRST_FD, SO_ACCEPTCONN, 1, "listening");
	if (err == 0 && fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) != 0)
		err = fail(errno, "environment LISTEN_FDS: FD_CLOEXEC: %s",
			   hal_strerror(errno));
	if (err == 0)
		sv->socket = FIRST_FD;
	return err;
}

void service_path(const struct service *sv, char *path, size_t size)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	socklen_t length = sizeof(a);
	size_t bytes = 0;

	if (getsockname(sv->socket, (struct sockaddr *)&a, &length) == 0 &&
	    length > offsetof(struct sockaddr_un, sun_path))
		bytes = length - offsetof(struct sockaddr_un, sun_path);
	if (bytes > 0 && a.sun_path[0] == '\0')
		a.sun_path[0] = '@'; /* an abstract name */
	format_text(path, size, "%.*s", (int)bytes, a.sun_path);
}

/* ---- notifications -------------------------------------------------------------------- */

/* Open a socket for notifications to the address in text, a path or @NAME. */
static int notify_open(struct service *sv, const char *text)
{
	const size_t length = strlen(text), room = sizeof(sv->address.sun_path) - 1;

	if ((text[0] != '/' && text[0] != '@') || length < 2 || length > room)
		return fail(EINVAL,
			    "environment NOTIFY_SOCKET: \"%s\" is neither an absolute "
			    "path nor @ and the name of an abstract socket, of 2 to %zu "
			    "bytes",
			    text, room);
	sv->address.sun_family = AF_UNIX;
	memcpy(sv->address.sun_path, text, length + 1);
	sv->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	if (text[0] == '@')
		sv->address.sun_path[0] = '\0';
	else
		sv->address_bytes++; /* the NUL */
	sv->notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return sv->notify >= 0 ? 0 : fail(errno, "socket: %s", hal_strerror(errno));
}

/* Send text to the supervisor.  Do nothing if it takes no notifications. */
static int notify(const struct service *sv, const char *text, int flags)
{
	if (sv->notify < 0)
		return 0;
	while (sendto(sv->notify, text, strlen(text), flags | MSG_NOSIGNAL,
		      (const struct sockaddr *)&sv->address, sv->address_bytes) < 0)
		if (errno != EINTR)
			return fail(errno, "environment NOTIFY_SOCKET: %s%s: %s",
				    sv->address.sun_path[0] == '\0' ? "@" : "",
				    sv->address.sun_path +
					    (sv->address.sun_path[0] == '\0'),
				    hal_strerror(errno));
	return 0;
}

/* Send text without waiting, and drop it if that is impossible: the main thread must not
 * depend on a supervisor that does not read. */
static void notify_now(const struct service *sv, const char *text)
{
	if (notify(sv, text, MSG_DONTWAIT) != 0)
		LOG(HAL_LOG_WARNING, "%s is not sent: %s", text, hal_last_error());
}

/* Read the interval of the supervisor's watchdog. */
static int watchdog_read(struct service *sv)
{
	const char *text = getenv("WATCHDOG_USEC");
	int err = is_for_me("WATCHDOG_PID", true);
	uint64_t us;

	if (err <= 0 || text == NULL)
		return err < 0 ? err : 0;
	err = number_in("WATCHDOG_USEC", text, &us);
	if (err != 0)
		return err;
	if (us == 0 || us > UINT64_MAX / 1000)
		return fail(EINVAL,
			    "environment WATCHDOG_USEC: %s is not in 1 to %llu "
			    "microseconds",
			    text, U64(UINT64_MAX / 1000));
	sv->beat_ns = us * 1000 / 2;
	return 0;
}

/* ---- for main.c and client.c ---------------------------------------------------------- */

int service_begin(struct service *sv)
{
	const char *address = getenv("NOTIFY_SOCKET");
	int err;

	*sv = (struct service){.socket = -1, .notify = -1};
	err = take_socket(sv);
	if (err == 0 && address != NULL && address[0] != '\0')
		err = notify_open(sv, address);
	if (err == 0 && sv->notify >= 0)
		err = watchdog_read(sv);
	forget_variables();
	return err;
}

int service_ready(struct server *s)
{
	struct service *sv = &s->service;
	char text[640];

	format_text(text, sizeof(text), "READY=1\nSTATUS=%s is served as hald:%s at %s",
		    s->info.name, s->name, s->path);
	sv->next_ns = monotonic_ns() + sv->beat_ns;
	return notify(sv, text, 0);
}

int service_beat(struct server *s)
{
	struct service *sv = &s->service;
	uint64_t now = monotonic_ns(), ms;

	if (sv->beat_ns == 0)
		return -1;
	if (now >= sv->next_ns) {
		/* Returns only after the engine has handled a message. */
		inlet_pass(s->dev);
		notify_now(sv, "WATCHDOG=1");
		now = monotonic_ns();
		sv->next_ns = now + sv->beat_ns;
	}
	ms = (sv->next_ns - now + 999999) / 1000000;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

void service_stopping(const struct service *sv)
{
	notify_now(sv, "STOPPING=1");
}

void service_end(struct service *sv)
{
	if (sv->notify >= 0)
		(void)close(sv->notify);
	sv->notify = -1;
}
