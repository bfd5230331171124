/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_service - hald under a supervisor: the protocols of sd_listen_fds(3) and
 * sd_notify(3), without systemd.
 *
 * This process is the supervisor.  It makes the listening socket, passes it to hald as
 * descriptor 3, and reads the notifications.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/stat.h>

#include "../../daemon/hald.h"

#include "hald_world.h"

enum { SOCKET_FD = 3 };

struct supervisor {
	struct hald h;
	int listener, notify;
	char path[96], address[96]; /* of the sockets; .address as in NOTIFY_SOCKET */
};

/* ---- sockets -------------------------------------------------------------------------- */

/* Make a socket of that type at path, which may be @NAME. */
static int socket_at(const char *path, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const size_t length = strlen(path);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0 && length < sizeof(a.sun_path));
	memcpy(a.sun_path, path, length);
	if (path[0] == '@')
		a.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (const struct sockaddr *)&a,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
					  length + (path[0] != '@'))),
			 0);
	return fd;
}

static void supervisor_begin(struct supervisor *v, bool abstract)
{
	const struct timeval limit = {.tv_sec = 20};

	memset(v, 0, sizeof(*v));
	snprintf(v->h.dir, sizeof(v->h.dir), "/tmp/test_hald.XXXXXX");
	assert_non_null(mkdtemp(v->h.dir));
	snprintf(v->h.option, sizeof(v->h.option), "hal.broker_dir=%s", v->h.dir);
	snprintf(v->path, sizeof(v->path), "%s/ref0.sock", v->h.dir);
	snprintf(v->address, sizeof(v->address), "%s%s/notify", abstract ? "@" : "",
		 v->h.dir);
	v->listener = socket_at(v->path, SOCK_SEQPACKET);
	assert_int_equal(listen(v->listener, 128), 0);
	v->notify = socket_at(v->address, SOCK_DGRAM);
	assert_int_equal(
		setsockopt(v->notify, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
}

static void supervisor_end(struct supervisor *v)
{
	(void)close(v->listener);
	(void)close(v->notify);
	/* The supervisor's socket is still there. */
	assert_int_equal(unlink(v->path), 0);
	if (v->address[0] != '@')
		assert_int_equal(unlink(v->address), 0);
	assert_int_equal(rmdir(v->h.dir), 0);
}

/* Receive the next notification.  Fail unless it is text. */
static void notified(const struct supervisor *v, const char *text)
{
	char got[1024];
	ssize_t bytes = recv(v->notify, got, sizeof(got) - 1, 0);

	if (bytes < 0)
		fail_msg("no notification, but %s was to come: %s", text,
			 strerror(errno));
	got[bytes] = '\0';
	if (strcmp(got, text) != 0)
		fail_msg("notification \"%s\" instead of \"%s\"", got, text);
}

/* Receive READY=1, with what hald serves where. */
static void notified_ready(const struct supervisor *v)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "READY=1\nSTATUS=software device, 16 units is served as hald:ref0 at %s",
		 v->path);
	notified(v, text);
}

/* ---- hald ----------------------------------------------------------------------------- */

/* In a child: set the variables, a list of NAME=VALUE that ends with NULL.  The value
 * SELF is the ID of this process. */
static void set_variables(char *const *variables)
{
	char text[32];

	for (; *variables != NULL; variables++) {
		char *equals = strchr(*variables, '=');
		const bool self = strcmp(equals, "=SELF") == 0;

		snprintf(text, sizeof(text), "%d", (int)getpid());
		*equals = '\0';
		(void)setenv(*variables, self ? text : equals + 1, 1);
		*equals = '=';
	}
}

/* In a child: make fd descriptor 3 of the next program; -1: close descriptor 3. */
static void pass_socket(int fd)
{
	if (fd < 0)
		(void)close(SOCKET_FD);
	else if (fd == SOCKET_FD)
		(void)fcntl(fd, F_SETFD, 0);
	else
		(void)dup2(fd, SOCKET_FD);
}

/* Start hald with socket as descriptor 3; out: its standard output and error; option: one
 * more, with its value, or NULL. */
static pid_t spawn_with(const struct hald *h, int socket, int out, char *const *variables,
			const char *option, const char *value)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid != 0)
		return pid;
	set_variables(variables);
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(out, STDERR_FILENO);
	pass_socket(socket);
	if (option == NULL)
		hald_exec(h, "ref?clock=real");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl(HALD, HALD, "--dir", h->dir, "--name", "ref0", "ref?clock=real", option,
	      value, (char *)NULL);
	_exit(127);
}

static pid_t spawn(const struct hald *h, int socket, int out, char *const *variables)
{
	return spawn_with(h, socket, out, variables, NULL, NULL);
}

/* Start hald with a watchdog of usec microseconds ("0": none), and wait until it serves.
 */
static void start(struct supervisor *v, const char *usec)
{
	char notify[128], watchdog[64], whom[] = "LISTEN_PID=SELF",
					count[] = "LISTEN_FDS=1",
					names[] = "LISTEN_FDNAMES=hald@ref0.socket",
					watched[] = "WATCHDOG_PID=SELF";
	char *variables[] = {whom, count, names, notify, watched, watchdog, NULL};
	int out = open("/dev/null", O_WRONLY | O_CLOEXEC);

	snprintf(notify, sizeof(notify), "NOTIFY_SOCKET=%s", v->address);
	snprintf(watchdog, sizeof(watchdog), "WATCHDOG_USEC=%s", usec);
	if (strcmp(usec, "0") == 0)
		variables[4] = NULL;
	v->h.pid = spawn(&v->h, v->listener, out, variables);
	(void)close(out);
	notified_ready(v);
}

/* End hald by SIGTERM, and receive the notification of that. */
static void stop(struct supervisor *v)
{
	int status;

	assert_int_equal(kill(v->h.pid, SIGTERM), 0);
	notified(v, "STOPPING=1");
	assert_int_equal(waitpid(v->h.pid, &status, 0), v->h.pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Return whether the descriptor of hald is closed by execve, as /proc says. */
static bool is_cloexec(const struct hald *h, int fd)
{
	unsigned int flags = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)h->pid, fd);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL &&
	       sscanf(line, "flags: %o", &flags) != 1)
		;
	(void)fclose(f);
	return (flags & O_CLOEXEC) != 0;
}

/* ---- tests ---------------------------------------------------------------------------- */

static void serves(bool abstract)
{
	struct supervisor v;
	struct program a, b;
	struct stat before, after;

	supervisor_begin(&v, abstract);
	assert_int_equal(stat(v.path, &before), 0);
	start(&v, "0");
	assert_true(is_cloexec(&v.h, SOCKET_FD));
	OK(program_open(&v.h, &a, 4));
	OK(program_open(&v.h, &b, 4));
	OK(program_works(&a, 1));
	OK(program_works(&b, 2));
	program_close(&a);
	program_close(&b);
	stop(&v);
	assert_int_equal(stat(v.path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	supervisor_end(&v);
}

static void passed_socket(void **state)
{
	(void)state;
	serves(false);
}

static void abstract_notify_socket(void **state)
{
	(void)state;
	serves(true);
}

static void *open_and_work(void *arg)
{
	const struct supervisor *v = arg;
	struct program p;
	int err = program_open(&v->h, &p, 4);

	if (err == 0)
		err = program_works(&p, 3);
	if (err == 0)
		program_close(&p);
	return (void *)(intptr_t)err;
}

/* hald is killed, and started again on the same socket.  A program that connects between
 * these two waits, and the new hald serves it. */
static void killed_and_started(void **state)
{
	struct supervisor v;
	struct program p;

	(void)state;
	supervisor_begin(&v, false);
	start(&v, "0");
	for (uint32_t i = 0; i < 5; i++) {
		struct pollfd waits = {.fd = v.listener, .events = POLLIN};
		pthread_t thread;
		void *result;

		OK(program_open(&v.h, &p, 4));
		OK(program_works(&p, i));
		assert_int_equal(kill(v.h.pid, SIGKILL), 0);
		assert_int_equal(waitpid(v.h.pid, NULL, 0), v.h.pid);
		assert_int_equal(program_works(&p, i), -ENODEV);
		program_close(&p);
		assert_int_equal(pthread_create(&thread, NULL, open_and_work, &v), 0);
		/* The program has connected. */
		assert_int_equal(poll(&waits, 1, 60000), 1);
		start(&v, "0");
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_int_equal((intptr_t)result, 0);
	}
	stop(&v);
	supervisor_end(&v);
}

/* ---- the watchdog --------------------------------------------------------------------- */

enum { BEAT_MS = 10 };

static void watchdog(void **state)
{
	struct supervisor v;
	int64_t from;

	(void)state;
	supervisor_begin(&v, false);
	from = now_ns();
	start(&v, "20000");
	for (uint32_t i = 0; i < 5; i++)
		notified(&v, "WATCHDOG=1");
	/* At half of the time, not more often. */
	assert_true(now_ns() - from >= INT64_C(5) * BEAT_MS * 1000000);
	/* Notifications may have been sent before hald handles the signal. */
	assert_int_equal(kill(v.h.pid, SIGTERM), 0);
	for (;;) {
		char got[16] = "";

		assert_true(recv(v.notify, got, sizeof(got) - 1, 0) > 0);
		if (strcmp(got, "STOPPING=1") == 0)
			break;
		assert_string_equal(got, "WATCHDOG=1");
	}
	assert_int_equal(waitpid(v.h.pid, NULL, 0), v.h.pid);
	supervisor_end(&v);
}

/* Return the number of the engine's thread in hald. */
static pid_t engine_of(const struct hald *h)
{
	char path[320], name[32];
	struct dirent *e;
	pid_t found = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)h->pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((e = readdir(tasks)) != NULL) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)h->pid,
			 e->d_name);
		f = fopen(path, "r");
		if (f == NULL)
			continue;
		if (fgets(name, sizeof(name), f) != NULL &&
		    strcmp(name, "hal-engine\n") == 0)
			found = (pid_t)atoi(e->d_name);
		(void)fclose(f);
	}
	(void)closedir(tasks);
	assert_true(found > 0);
	return found;
}

/* Receive notifications for ms milliseconds.  Return their count. */
static uint32_t notified_within(const struct supervisor *v, int ms)
{
	const int64_t until = now_ns() + INT64_C(1000000) * ms;
	struct pollfd p = {.fd = v->notify, .events = POLLIN};
	uint32_t count = 0;
	int left = ms;

	while (left >= 0 && poll(&p, 1, left) == 1) {
		notified(v, "WATCHDOG=1");
		count++;
		left = (int)((until - now_ns()) / 1000000);
	}
	return count;
}

/* While the engine's thread is stopped, hald does not notify the watchdog. */
static void stuck_engine(void **state)
{
	struct supervisor v;
	pid_t engine;
	int status;

	(void)state;
	supervisor_begin(&v, false);
	start(&v, "20000");
	notified(&v, "WATCHDOG=1");
	engine = engine_of(&v.h);
	if (ptrace(PTRACE_SEIZE, engine, NULL, NULL) != 0) {
		print_message("ptrace: %s\n", strerror(errno));
		(void)kill(v.h.pid, SIGKILL);
		skip(); /* tracing is not permitted here */
	}
	assert_int_equal(ptrace(PTRACE_INTERRUPT, engine, NULL, NULL), 0);
	assert_int_equal(waitpid(engine, &status, __WALL), engine);
	/* Some were sent before, and the main thread may be about to send one. */
	while (notified_within(&v, 0) > 0)
		;
	assert_true(notified_within(&v, 30 * BEAT_MS) <= 1);
	assert_int_equal(ptrace(PTRACE_DETACH, engine, NULL, NULL), 0);
	notified(&v, "WATCHDOG=1");
	assert_int_equal(kill(v.h.pid, SIGKILL), 0);
	assert_int_equal(waitpid(v.h.pid, NULL, 0), v.h.pid);
	supervisor_end(&v);
}

/* The watchdog of another process gets no notifications from hald. */
static void watchdog_of_another(void **state)
{
	char notify[128], whom[] = "LISTEN_PID=SELF", count[] = "LISTEN_FDS=1",
			  watched[] = "WATCHDOG_PID=1", usec[] = "WATCHDOG_USEC=2000";
	char *variables[] = {whom, count, notify, watched, usec, NULL};
	struct supervisor v;

	(void)state;
	supervisor_begin(&v, false);
	snprintf(notify, sizeof(notify), "NOTIFY_SOCKET=%s", v.address);
	v.h.pid = spawn(&v.h, v.listener, STDERR_FILENO, variables);
	notified_ready(&v);
	assert_int_equal(notified_within(&v, 5 * BEAT_MS), 0);
	stop(&v);
	supervisor_end(&v);
}

/* ---- the environment ------------------------------------------------------------------ */

/* hald ignores descriptors for another process: it makes and removes its own socket. */
static void socket_of_another(void **state)
{
	char whom[] = "LISTEN_PID=1", count[] = "LISTEN_FDS=1", line[256];
	char *variables[] = {whom, count, NULL};
	struct program p;
	struct hald h = {.tenants = ""};
	int out[2];

	(void)state;
	snprintf(h.dir, sizeof(h.dir), "/tmp/test_hald.XXXXXX");
	assert_non_null(mkdtemp(h.dir));
	snprintf(h.option, sizeof(h.option), "hal.broker_dir=%s", h.dir);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	h.out = out[0];
	h.pid = spawn(&h, -1, out[1], variables);
	(void)close(out[1]);
	assert_true(read(h.out, line, sizeof(line)) > 0);
	OK(program_open(&h, &p, 4));
	OK(program_works(&p, 1));
	program_close(&p);
	hald_stop(&h);
}

/* In a child: call service_begin with variables.  Return 0 if it did what it should. */
static int begin_in_child(const struct supervisor *v, char *const *variables)
{
	static const char *const names[] = {"LISTEN_PID",     "LISTEN_FDS",
					    "LISTEN_FDNAMES", "NOTIFY_SOCKET",
					    "WATCHDOG_USEC",  "WATCHDOG_PID"};
	struct service sv;

	set_variables(variables);
	pass_socket(v->listener);
	if (service_begin(&sv) != 0)
		return 1;
	if (sv.socket != SOCKET_FD || sv.notify < 0 || sv.beat_ns != 1500)
		return 2;
	if ((fcntl(SOCKET_FD, F_GETFD) & FD_CLOEXEC) == 0)
		return 3;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]) != NULL)
			return 4;
	service_end(&sv);
	return 0;
}

/* hald unsets the variables: programs that it starts must not see them. */
static void unset(void **state)
{
	char notify[128], whom[] = "LISTEN_PID=SELF", count[] = "LISTEN_FDS=1",
			  names[] = "LISTEN_FDNAMES=unknown",
			  watched[] = "WATCHDOG_PID=SELF", usec[] = "WATCHDOG_USEC=3";
	char *variables[] = {whom, count, names, notify, watched, usec, NULL};
	struct supervisor v;
	int status;
	pid_t pid;

	(void)state;
	supervisor_begin(&v, false);
	snprintf(notify, sizeof(notify), "NOTIFY_SOCKET=%s", v.address);
	pid = fork();
	if (pid == 0)
		_exit(begin_in_child(&v, variables));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	supervisor_end(&v);
}

/* Read what a hald has written to out, until it ends. */
static void output(int out, char *text, size_t size)
{
	size_t used = 0;
	ssize_t bytes;

	while ((bytes = read(out, text + used, size - 1 - used)) > 0)
		used += (size_t)bytes;
	text[used] = '\0';
}

/* Start hald with variables and socket.  Fail unless it ends with status 1 and an error
 * that contains text. */
static void refused(const struct supervisor *v, int socket, char *const *variables,
		    const char *text)
{
	int out[2], status;
	char got[1024];
	pid_t pid;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = spawn(&v->h, socket, out[1], variables);
	(void)close(out[1]);
	output(out[0], got, sizeof(got));
	(void)close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 1 || strstr(got, text) == NULL)
		fail_msg("status %d, \"%s\", which lacks \"%s\"", status, got, text);
}

static void wrong_values(void **state)
{
	static const struct {
		const char *variable, *text;
	} cases[] = {
		{"LISTEN_PID=me", "environment LISTEN_PID: \"me\""},
		{"LISTEN_FDS=", "environment LISTEN_FDS: \"\""},
		{"LISTEN_FDS=1x", "environment LISTEN_FDS: \"1x\""},
		{"LISTEN_FDS=-1", "environment LISTEN_FDS: \"-1\""},
		{"LISTEN_FDS=0", "environment LISTEN_FDS: 0 descriptors"},
		{"LISTEN_FDS=2", "environment LISTEN_FDS: 2 descriptors"},
		{"LISTEN_FDNAMES=a:b", "environment LISTEN_FDNAMES: \"a:b\""},
		{"NOTIFY_SOCKET=notify", "environment NOTIFY_SOCKET: \"notify\""},
		{"NOTIFY_SOCKET=@", "environment NOTIFY_SOCKET: \"@\""},
		{"NOTIFY_SOCKET=/nonexistent/notify",
		 "environment NOTIFY_SOCKET: /nonexistent/notify: "},
		{"NOTIFY_SOCKET=@nobody/is/there",
		 "environment NOTIFY_SOCKET: @nobody/is/there: "},
		{"WATCHDOG_PID=it", "environment WATCHDOG_PID: \"it\""},
		{"WATCHDOG_USEC=soon", "environment WATCHDOG_USEC: \"soon\""},
		{"WATCHDOG_USEC=0", "environment WATCHDOG_USEC: 0"},
		{"WATCHDOG_USEC=99999999999999999999", "environment WATCHDOG_USEC: \"9"},
		{"WATCHDOG_USEC=9999999999999999999", "environment WATCHDOG_USEC: 9"},
	};
	char notify[128], whom[] = "LISTEN_PID=SELF", count[] = "LISTEN_FDS=1",
			  usec[] = "WATCHDOG_USEC=1000000", wrong[160];
	char *variables[] = {whom, count, notify, usec, wrong, NULL};
	struct supervisor v;

	(void)state;
	supervisor_begin(&v, false);
	snprintf(notify, sizeof(notify), "NOTIFY_SOCKET=%s", v.address);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(wrong, sizeof(wrong), "%s", cases[i].variable);
		refused(&v, v.listener, variables, cases[i].text);
	}
	/* Longer than an address can be. */
	memset(wrong, 'n', sizeof(wrong) - 1);
	memcpy(wrong, "NOTIFY_SOCKET=/", strlen("NOTIFY_SOCKET=/"));
	wrong[sizeof(wrong) - 1] = '\0';
	refused(&v, v.listener, variables, "environment NOTIFY_SOCKET: \"/nnn");
	supervisor_end(&v);
}

/* Descriptors that hald cannot serve. */
static void wrong_sockets(void **state)
{
	char whom[] = "LISTEN_PID=SELF", count[] = "LISTEN_FDS=1";
	char *variables[] = {whom, count, NULL};
	struct supervisor v;
	char path[128];
	int fd;

	(void)state;
	supervisor_begin(&v, false);
	refused(&v, -1, variables,
		"environment LISTEN_FDS: descriptor 3: Bad file descriptor");
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	refused(&v, fd, variables, "environment LISTEN_FDS: descriptor 3: ");
	(void)close(fd);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	refused(&v, fd, variables, "descriptor 3 is not of AF_UNIX");
	(void)close(fd);
	snprintf(path, sizeof(path), "%s/other", v.h.dir);
	fd = socket_at(path, SOCK_STREAM);
	assert_int_equal(listen(fd, 1), 0);
	refused(&v, fd, variables, "descriptor 3 is not of SOCK_SEQPACKET");
	(void)close(fd);
	assert_int_equal(unlink(path), 0);
	fd = socket_at(path, SOCK_SEQPACKET);
	refused(&v, fd, variables, "descriptor 3 is not listening");
	(void)close(fd);
	assert_int_equal(unlink(path), 0);
	supervisor_end(&v);
}

/* ---- options -------------------------------------------------------------------------- */

/* Start hald with an option, have a program open the device if ready, and end hald.
 * Return the exit status of hald, and what it has written. */
static int with_option(const char *option, const char *value, bool ready, char *text,
		       size_t size)
{
	char notify[128], whom[] = "LISTEN_PID=SELF", count[] = "LISTEN_FDS=1";
	char *variables[] = {whom, count, notify, NULL};
	struct supervisor v;
	int out[2], status;
	struct program p;

	supervisor_begin(&v, false);
	snprintf(notify, sizeof(notify), "NOTIFY_SOCKET=%s", v.address);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	v.h.pid = spawn_with(&v.h, v.listener, out[1], variables, option, value);
	(void)close(out[1]);
	if (ready) {
		notified_ready(&v);
		OK(program_open(&v.h, &p, 4));
		program_close(&p);
		assert_int_equal(kill(v.h.pid, SIGTERM), 0);
	}
	output(out[0], text, size);
	(void)close(out[0]);
	assert_int_equal(waitpid(v.h.pid, &status, 0), v.h.pid);
	supervisor_end(&v);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void log_levels(void **state)
{
	static const char names[] = "error, warning, info and debug";
	char text[8192];

	(void)state;
	assert_int_equal(with_option("--log", "info", true, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "\nhald: info: client 1: process "));
	assert_int_equal(with_option("--log", "debug", true, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "\nhald: info: client 1: process "));
	assert_int_equal(with_option("--log", "warning", true, text, sizeof(text)), 0);
	assert_null(strstr(text, "client 1"));
	assert_int_equal(with_option("--log", "error", true, text, sizeof(text)), 0);
	assert_null(strstr(text, "client 1"));
	/* Messages are off where nobody asks for them. */
	assert_int_equal(with_option(NULL, NULL, true, text, sizeof(text)), 0);
	assert_null(strstr(text, "client 1"));
	assert_int_equal(with_option("--log", "loud", false, text, sizeof(text)), 2);
	assert_non_null(strstr(text, "--log loud: "));
	assert_non_null(strstr(text, names));
	assert_int_equal(with_option("--log", "", false, text, sizeof(text)), 2);
	assert_non_null(strstr(text, names));
}

/* A file of tenants that need not exist is read if it does. */
static void optional_tenants(void **state)
{
	char path[] = "/tmp/test_tenants.XXXXXX", text[8192];
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "nonsense\n", 9), 9);
	(void)close(fd);
	assert_int_equal(
		with_option("--tenants-if-present", path, false, text, sizeof(text)), 1);
	assert_non_null(strstr(text, path));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(
		with_option("--tenants-if-present", path, true, text, sizeof(text)), 0);
	assert_int_equal(with_option("--tenants", path, false, text, sizeof(text)), 1);
	assert_non_null(strstr(text, path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passed_socket),
		cmocka_unit_test(abstract_notify_socket),
		cmocka_unit_test(killed_and_started),
		cmocka_unit_test(watchdog),
		cmocka_unit_test(stuck_engine),
		cmocka_unit_test(watchdog_of_another),
		cmocka_unit_test(socket_of_another),
		cmocka_unit_test(unset),
		cmocka_unit_test(wrong_values),
		cmocka_unit_test(wrong_sockets),
		cmocka_unit_test(log_levels),
		cmocka_unit_test(optional_tenants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
