/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.c - the socket through which halctl monitors a device; see monitor.h. */
#include "observe/monitor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/opened.h"
#include "lib/monitor_dir.h"
#include "loop/engine.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/futex.h"

#define REQUEST_BYTES 4096u
#define WORDS_MAX     64u
/* Time limit for a client to send its request, and again to read the reply. */
#define PEER_NS  UINT64_C(1000000000)
#define FOR_EVER UINT64_MAX

enum { MONITOR_OFF, MONITOR_READ, MONITOR_CONTROL };

struct monitor {
	struct hal_device *dev;
	bool control; /* clients may set the policy */
	int listen_fd;
	int stop_fd; /* an eventfd that ends the thread */
	pthread_t thread;
	bool running;
	struct sockaddr_un at; /* path of the socket; "": it was not created */
	struct view view;      /* state of the device for the request being served */
};

/* ---- the socket -------------------------------------------------------------------- */

/* Create folder dir if necessary, and check that only this user can access it. */
static int folder_make(const char *dir)
{
	char why[512];
	int err;

	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return fail(errno, "hal.monitor: folder %s: %s", dir,
			    hal_strerror(errno));
	err = monitor_dir_check(dir, geteuid(), why, sizeof(why));
	return err != 0 ? fail(err, "hal.monitor: %s", why) : 0;
}

/* Choose the socket's path m->at, DIR/PID.N, and its temporary path *early, DIR/.PID.N.
 * The socket is renamed once it accepts connections.  So a socket DIR/PID.N that refuses
 * connections is a leftover of a program that was killed. */
static int name_socket(struct monitor *m, const char *dir, struct sockaddr_un *early)
{
	static atomic_uint devices;
	unsigned int n = atomic_fetch_add(&devices, 1);
	char path[sizeof(m->at.sun_path) + 64];

	format_text(path, sizeof(path), "%s/.%d.%u", dir, (int)getpid(), n);
	if (strlen(path) >= sizeof(early->sun_path))
		return fail(ENAMETOOLONG,
			    "hal.monitor: folder %s: its name is too long for a socket",
			    dir);
	early->sun_family = AF_UNIX;
	memcpy(early->sun_path, path, strlen(path) + 1);
	m->at.sun_family = AF_UNIX;
	format_text(m->at.sun_path, sizeof(m->at.sun_path), "%s/%d.%u", dir,
		    (int)getpid(), n);
	return 0;
}

/* Create the socket in dir, ready for connections. */
static int bind_socket(struct monitor *m, const char *dir)
{
	struct sockaddr_un early = {0};
	int err = name_socket(m, dir, &early);

	if (err != 0)
		return err;
	m->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	m->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)unlink(early.sun_path);
	if (m->listen_fd < 0 || m->stop_fd < 0 ||
	    bind(m->listen_fd, (struct sockaddr *)&early, sizeof(early)) != 0)
		err = fail(errno, "hal.monitor: socket %s: %s", early.sun_path,
			   hal_strerror(errno));
	else if (chmod(early.sun_path, 0600) != 0 || listen(m->listen_fd, 8) != 0 ||
		 rename(early.sun_path, m->at.sun_path) != 0) {
		err = fail(errno, "hal.monitor: socket %s: %s", m->at.sun_path,
			   hal_strerror(errno));
		(void)unlink(early.sun_path);
	}
	return err;
}

/* ---- a client ---------------------------------------------------------------------- */

/* Wait until fd is ready for events.  Return false at time until_ns, or if the device is
 * being closed. */
static bool wait_ready(const struct monitor *m, int fd, short events, uint64_t until_ns)
{
	struct pollfd fds[2] = {
		{.fd = fd, .events = events},
		{.fd = m->stop_fd, .events = POLLIN},
	};
	uint64_t now = monotonic_ns();
	int ms = now < until_ns ? (int)((until_ns - now) / 1000000) + 1 : 0;

	if (until_ns == FOR_EVER)
		ms = -1;

	return poll(fds, 2, ms) > 0 && fds[1].revents == 0;
}

static bool same_user(int fd)
{
	struct ucred who;
	socklen_t size = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
	       (who.uid == geteuid() || who.uid == 0);
}

/* Read the client's request up to its end of file; return the number of bytes.  -1: it
 * did not arrive in time, or is too long. */
static int receive(const struct monitor *m, int fd, char *bytes)
{
	uint64_t until = monotonic_ns() + PEER_NS;
	size_t n = 0;

	while (n < REQUEST_BYTES && wait_ready(m, fd, POLLIN, until)) {
		ssize_t got = recv(fd, bytes + n, REQUEST_BYTES - n, MSG_DONTWAIT);

		if (got == 0)
			return (int)n;
		if (got > 0)
			n += (size_t)got;
		else if (errno != EAGAIN && errno != EINTR)
			break;
	}
	return -1;
}

static void send_reply(const struct monitor *m, int fd, const char *text, size_t size)
{
	uint64_t until = monotonic_ns() + PEER_NS;
	size_t n = 0;

	while (text != NULL && n < size && wait_ready(m, fd, POLLOUT, until)) {
		ssize_t sent = send(fd, text + n, size - n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent > 0)
			n += (size_t)sent;
		else if (errno != EAGAIN && errno != EINTR)
			return;
	}
}

static char *view_text(struct monitor *m, size_t *size)
{
	memset(&m->view, 0, sizeof(m->view));
	if (engine_call(m->dev, view_take, &m->view) != 0)
		return monitor_json_error(hal_last_error(), size);
	return monitor_json(m->dev, &m->view, size);
}

static char *set_policy(struct monitor *m, const char *const *words, size_t *size)
{
	if (!m->control)
		return monitor_json_error("hal.monitor = read: the policy can be shown, "
					  "not set; use hal.monitor = control",
					  size);
	if (words[0] == NULL)
		return monitor_json_error("policy name is missing", size);
	if (hal_device_set_policy(m->dev, words[0], words + 1) != 0)
		return monitor_json_error(hal_last_error(), size);
	*size = 2;
	return strdup("{}");
}

/* Split bytes into words, each of which ends with a 0 byte.  Store pointers to them in
 * the array words, and NULL after the last.  Return false if there are too many words, or
 * if the last one does not end with a 0 byte. */
static bool split_words(const char *bytes, size_t size, const char **words)
{
	size_t n = 0;

	if (size == 0 || bytes[size - 1] != '\0')
		return false;
	for (const char *at = bytes; at < bytes + size; at += strlen(at) + 1) {
		if (n == WORDS_MAX)
			return false;
		words[n++] = at;
	}
	words[n] = NULL;
	return true;
}

static void serve_client(struct monitor *m, int fd)
{
	const char *words[WORDS_MAX + 1];
	char bytes[REQUEST_BYTES], *text;
	size_t size = 0;
	int n;

	if (!same_user(fd))
		return;
	n = receive(m, fd, bytes);
	if (n < 0)
		return;
	if (!split_words(bytes, (size_t)n, words))
		text = monitor_json_error("malformed request", &size);
	else if (strcmp(words[0], "look") == 0 && words[1] == NULL)
		text = view_text(m, &size);
	else if (strcmp(words[0], "set") == 0)
		text = set_policy(m, words + 1, &size);
	else
		text = monitor_json_error("unknown request", &size);
	send_reply(m, fd, text, size);
	free(text);
}

static void *monitor_main(void *arg)
{
	struct monitor *m = arg;
	struct pollfd stop = {.fd = m->stop_fd, .events = POLLIN};

	while (stop.revents == 0) {
		int fd;

		if (!wait_ready(m, m->listen_fd, POLLIN, FOR_EVER)) {
			(void)poll(&stop, 1, 0);
			continue;
		}
		fd = accept4(m->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			serve_client(m, fd);
			(void)close(fd);
		}
		/* Limit the load on the engine when requests are frequent, and on the
		 * processor when accept4 fails for lack of file descriptors. */
		(void)poll(&stop, 1, MONITOR_PAUSE_MS);
	}
	return NULL;
}

/* ---- open and close ---------------------------------------------------------------- */

int monitor_open(struct hal_device *dev)
{
	struct opened *o = dev->opened;
	int64_t mode = option_int(o->core_cfg, "monitor");
	const char *named_dir = option_str(o->core_cfg, "monitor_dir");
	char dir[256];
	struct monitor *m;
	int err;

	if (mode == MONITOR_OFF)
		return 0;
	m = calloc(1, sizeof(*m));
	dev->observe.decisions = calloc(1, sizeof(*dev->observe.decisions));
	if (m == NULL || dev->observe.decisions == NULL) {
		free(m);
		return fail(ENOMEM, "hal.monitor: no memory");
	}
	o->monitor = m;
	m->dev = dev;
	m->control = mode == MONITOR_CONTROL;
	m->listen_fd = m->stop_fd = -1;
	if (named_dir[0] != '\0')
		format_text(dir, sizeof(dir), "%s", named_dir);
	else
		monitor_dir_default(dir, sizeof(dir));
	err = folder_make(dir);
	if (err == 0)
		err = bind_socket(m, dir);
	if (err == 0)
		return 0;
	m->at.sun_path[0] = '\0'; /* do not remove a file that is not ours */
	monitor_close(dev);
	/* The user did not choose the default folder, so it must not keep the device from
	 * opening.  halctl top reports what is wrong with the folder. */
	return named_dir[0] != '\0' ? err : 0;
}

void monitor_start(struct hal_device *dev)
{
	struct monitor *m = dev->opened->monitor;
	sigset_t all, old;
	int err;

	if (m == NULL)
		return;
	/* Signals are for the application's threads. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&m->thread, NULL, monitor_main, m);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err != 0) {
		/* Without a thread, the socket would never answer. */
		(void)unlink(m->at.sun_path);
		m->at.sun_path[0] = '\0';
		return;
	}
	(void)pthread_setname_np(m->thread, "hal-monitor");
	m->running = true;
}

void monitor_stop(struct hal_device *dev)
{
	struct monitor *m = dev->opened->monitor;

	if (m == NULL || !m->running)
		return;
	fd_signal(m->stop_fd);
	(void)pthread_join(m->thread, NULL);
	m->running = false;
}

void monitor_close(struct hal_device *dev)
{
	struct monitor *m = dev->opened->monitor;

	if (m != NULL) {
		if (m->at.sun_path[0] != '\0')
			(void)unlink(m->at.sun_path);
		if (m->listen_fd >= 0)
			(void)close(m->listen_fd);
		if (m->stop_fd >= 0)
			(void)close(m->stop_fd);
	}
	free(m);
	dev->opened->monitor = NULL;
	free(dev->observe.decisions);
	dev->observe.decisions = NULL;
}
