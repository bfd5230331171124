/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - hald's command line, its device and its socket. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "hald.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/log.h"

#define DEFAULT_FOLDER "/run/hald"

static int usage(FILE *f)
{
	fputs("usage: hald [--tenants FILE] [--name NAME] [--dir FOLDER] [--log LEVEL] "
	      "[--option SECTION.KEY=VALUE]... [TARGET]\n"
	      "       hald --check FILE\n"
	      "Serve a device to the programs that open \"hald:NAME\".\n"
	      "  TARGET         as of hal_open, e.g. npu:0?engine=fast; default: "
	      "hal.device, else the best one\n"
	      "  --name NAME    default: backend and number, e.g. npu0\n"
	      "  --tenants FILE sections [tenant \"name\"]: who may use how much; "
	      "default: "
	      "all who may connect, all of it\n"
	      "  --lockstep N   N programs take turns under the virtual clock, so that "
	      "each run is the\n"
	      "                 same; nothing happens before all have come\n"
	      "  --tick USEC    answer only each USEC microseconds, so that no program "
	      "learns from the\n"
	      "                 time of its answers what others do\n"
	      "  --tenants-if-present FILE\n"
	      "                 the same if there is such a file\n"
	      "  --log LEVEL    report events to stderr: error, warning, info, debug\n"
	      "  --dir FOLDER   of the socket NAME.sock; default: " DEFAULT_FOLDER "\n"
	      "  --check FILE   check a file of hal.conf(5), or one for --tenants, and "
	      "end\n"
	      "  --version\n"
	      "Programs find another folder by their option hal.broker_dir.  SIGTERM "
	      "and\n"
	      "SIGINT end hald.\n",
	      f);
	return f == stdout ? 0 : 2;
}

static int version(void)
{
	uint32_t v = hal_version();

	printf("hald %u.%u.%u\n", v >> 16, v >> 8 & 0xff, v & 0xff);
	return 0;
}

static int die(const char *what)
{
	fprintf(stderr, "hald: %s: %s\n", what, hal_last_error());
	return 1;
}

/* Block the signals that end hald, and return a descriptor that tells of them. */
static int signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* What clients see of the device. */
static int describe(struct server *s)
{
	int err;

	s->info = (struct hal_device_info)HAL_INIT(hal_device_info);
	err = hal_device_get_info(s->dev, &s->info);
	s->info.caps = caps_of_clients(s, s->info.caps);
	return err;
}

/* Have as many programs as text says take turns. */
static int lockstep_begin(struct server *s, const char *text)
{
	char *end;
	unsigned long clients = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || clients < 1 || clients > LOCKSTEP_MAX)
		return fail(EINVAL, "\"%s\" is no number from 1 to %d", text,
			    LOCKSTEP_MAX);
	if ((s->info.caps & HAL_CAP_VIRTUAL_CLOCK) == 0)
		return fail(
			EINVAL,
			"%s has no virtual clock; open it with ?clock=virtual, if its "
			"backend has one",
			s->info.name);
	return lockstep_make(s, (uint32_t)clients);
}

/* Close the sockets, and remove those that hald has made. */
static void sockets_close(struct server *s)
{
	if (s->socket >= 0 && s->socket != s->service.socket)
		(void)unlink(s->path);
	if (s->socket >= 0)
		(void)close(s->socket);
	tenants_forget(s);
}

/* Make the sockets of tenants, and that of the device unless the supervisor has made it.
 * Only with sections of tenants may any user connect. */
static int sockets_open(struct server *s, bool sections)
{
	int err = 0;

	s->socket = s->service.socket;
	if (s->socket >= 0) {
		service_path(&s->service, s->path, sizeof(s->path));
	} else {
		format_text(s->path, sizeof(s->path), "%s/%s.sock", s->folder, s->name);
		s->socket = listen_at(s->path, sections ? SOCKET_FOR_ALL : 0);
		err = s->socket < 0 ? s->socket : 0;
	}
	if (err == 0)
		err = tenants_listen(s);
	if (err != 0)
		sockets_close(s);
	return err;
}

/* The arguments of hald. */
struct arguments {
	const char *target, *name, *folder, *tenants, *lockstep, *tick;
	const char **options;
	bool tenants_optional; /* the file need not exist */
	int log;               /* enum hal_log_level; HAL_LOG_OFF: none but HAL_LOG's */
};

static const char *const level_names[] = {
	[HAL_LOG_ERROR] = "error",
	[HAL_LOG_WARNING] = "warning",
	[HAL_LOG_INFO] = "info",
	[HAL_LOG_DEBUG] = "debug",
};

/* Return the level of that name; -1 if there is none. */
static int level_named(const char *name)
{
	for (int i = HAL_LOG_ERROR; i < (int)ARRAY_LENGTH(level_names); i++)
		if (strcmp(level_names[i], name) == 0)
			return i;
	return -1;
}

/* Write a message of the library or of hald. */
static void log_line(void *user, int level, const char *text)
{
	(void)user;
	fprintf(stderr, "hald: %s: %s\n", level_names[level], text);
}

/* Load the tenants.  Without a file, all programs that may connect are of one. */
static struct tenant *tenants_of(const struct arguments *a)
{
	struct tenant *tenants = NULL;

	if (a->tenants == NULL)
		return tenant_unlimited("everyone");
	(void)tenants_load(a->tenants, &tenants);
	return tenants;
}

static int run(const struct arguments *a)
{
	const char *target = a->target;
	struct server s = {.lock = PTHREAD_MUTEX_INITIALIZER,
			   .bell_lock = PTHREAD_MUTEX_INITIALIZER,
			   .folder = a->folder};
	char own_name[32];
	int err;

	/* First: it unsets variables, and no descriptor of hald may be taken for one that
	 * the supervisor has passed. */
	if (service_begin(&s.service) != 0)
		return die("supervisor");
	s.tenants = tenants_of(a);
	s.operator_tenant = tenant_unlimited("operator");
	s.removed = tenant_unlimited("");
	s.start_s = (int64_t)time(NULL);
	if (s.tenants == NULL || s.operator_tenant == NULL || s.removed == NULL)
		return die("tenants");
	s.operator_tenant->admin = true;
	/* A client may close a descriptor that it polls. */
	(void)signal(SIGPIPE, SIG_IGN);
	/* Before the device starts its threads. */
	s.stop_fd = signals();
	if (s.stop_fd < 0) {
		(void)fail(errno, "%s", hal_strerror(errno));
		return die("signals");
	}
	if (hal_open(target, a->options, &s.dev) != 0)
		return die(target != NULL ? target : "hal_open");
	inlet_serve(s.dev);
	if (describe(&s) != 0)
		return die("hal_device_get_info");
	if (a->lockstep != NULL && lockstep_begin(&s, a->lockstep) != 0) {
		(void)die("--lockstep");
		(void)hal_close(s.dev);
		return 1;
	}
	if (a->tick != NULL && (tick_make(&s, a->tick) != 0 || describe(&s) != 0)) {
		(void)die("--tick");
		(void)hal_close(s.dev);
		return 1;
	}
	format_text(own_name, sizeof(own_name), "%s%s", s.info.backend,
		    target != NULL && strchr(target, ':') != NULL
			    ? strchr(target, ':') + 1
			    : "0");
	own_name[strcspn(own_name, "?/")] = '\0';
	s.name = a->name != NULL ? a->name : own_name;
	if (s.name[0] == '\0' || strpbrk(s.name, "/?\n") != NULL) {
		(void)fail(EINVAL,
			   "\"%s\" cannot be part of the target hald:NAME; it has one or "
			   "more characters without / and ?",
			   s.name);
		(void)die("--name");
		(void)hal_close(s.dev);
		return 1;
	}
	if (sockets_open(&s, a->tenants != NULL) != 0) {
		(void)die("cannot listen");
		(void)hal_close(s.dev);
		return 1;
	}
	printf("hald: %s is served as hald:%s at %s\n", s.info.name, s.name, s.path);
	(void)fflush(stdout);
	err = serve(&s);
	sockets_close(&s);
	tenants_free(s.operator_tenant);
	lockstep_free(&s);
	tenants_free(s.removed);
	(void)close(s.stop_fd);
	if (err != 0)
		(void)die("serve");
	service_end(&s.service);
	if (hal_close(s.dev) != 0)
		return die("hal_close");
	return err != 0;
}

/* Read one option; value: its argument.  Return -1, or the status to exit with. */
static int option_read(struct arguments *a, uint32_t *option_count, int option,
		       const char *value)
{
	switch (option) {
	case 'n':
		a->name = value;
		return -1;
	case 'd':
		a->folder = value;
		return -1;
	case 'o':
		a->options[(*option_count)++] = value;
		return -1;
	case 't':
	case 'T':
		a->tenants = value;
		a->tenants_optional = option == 'T';
		return -1;
	case 'l':
		a->log = level_named(value);
		if (a->log >= 0)
			return -1;
		fprintf(stderr,
			"hald: --log %s: unknown level; the levels are error, warning, "
			"info and debug\n",
			value);
		return 2;
	case 'L':
		a->lockstep = value;
		return -1;
	case 'k':
		a->tick = value;
		return -1;
	case 'c':
		return check_file(value);
	case 'V':
		return version();
	default:
		return usage(option == 'h' ? stdout : stderr);
	}
}

/* Read the command line.  Return -1, or the status to exit with. */
static int arguments_read(struct arguments *a, int argc, char **argv)
{
	static const struct option long_options[] = {
		{"name", required_argument, NULL, 'n'},
		{"dir", required_argument, NULL, 'd'},
		{"option", required_argument, NULL, 'o'},
		{"tenants", required_argument, NULL, 't'},
		{"lockstep", required_argument, NULL, 'L'},
		{"tick", required_argument, NULL, 'k'},
		{"check", required_argument, NULL, 'c'},
		{"tenants-if-present", required_argument, NULL, 'T'},
		{"log", required_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	uint32_t count = 0;
	int o, status = -1;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is no other thread yet */
	while ((o = getopt_long(argc, argv, "n:d:o:t:T:l:hV", long_options, NULL)) !=
	       -1) {
		status = option_read(a, &count, o, optarg);
		if (status >= 0)
			return status;
	}
	if (argc - optind > 1)
		return usage(stderr);
	a->target = optind < argc ? argv[optind] : NULL;
	return -1;
}

int main(int argc, char **argv)
{
	struct arguments a = {.folder = DEFAULT_FOLDER,
			      .options = calloc((size_t)argc + 1, sizeof(char *))};
	int status;

	if (a.options == NULL)
		return 1;
	status = arguments_read(&a, argc, argv);
	if (status < 0 && hal_log_set(log_line, NULL, a.log) != 0)
		status = die("--log");
	if (a.tenants_optional && access(a.tenants, F_OK) != 0 && errno == ENOENT) {
		LOG(HAL_LOG_INFO, "%s does not exist: there are no tenants", a.tenants);
		a.tenants = NULL;
	}
	if (status < 0)
		status = run(&a);
	free((void *)a.options);
	return status;
}
