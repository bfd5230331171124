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
#include "util/error.h"

#define DEFAULT_FOLDER "/run/hald"

static int usage(FILE *f)
{
	fputs("usage: hald [--tenants FILE] [--name NAME] [--dir FOLDER] [--option "
	      "SECTION.KEY=VALUE]... "
	      "[TARGET]\n"
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
	s->info.caps = caps_of_clients(s->info.caps);
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

/* The arguments of hald. */
struct arguments {
	const char *target, *name, *folder, *tenants, *lockstep;
	const char **options;
};

static int run(const struct arguments *a)
{
	const char *target = a->target, *folder = a->folder;
	struct server s = {.lock = PTHREAD_MUTEX_INITIALIZER,
			   .bell_lock = PTHREAD_MUTEX_INITIALIZER};
	char own_name[32], path[256];
	int err;

	if (a->tenants == NULL)
		s.tenants = tenant_unlimited("everyone");
	else
		(void)tenants_load(a->tenants, &s.tenants);
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
	s.folder = folder;
	format_text(path, sizeof(path), "%s/%s.sock", folder, s.name);
	s.socket = listen_at(path, a->tenants != NULL ? SOCKET_FOR_ALL : 0);
	if (s.socket < 0 || tenants_listen(&s) != 0) {
		(void)die("cannot listen");
		(void)hal_close(s.dev);
		return 1;
	}
	printf("hald: %s is served as hald:%s at %s\n", s.info.name, s.name, path);
	(void)fflush(stdout);
	err = serve(&s);
	(void)unlink(path);
	tenants_forget(&s);
	tenants_free(s.operator_tenant);
	lockstep_free(&s);
	tenants_free(s.removed);
	(void)close(s.socket);
	(void)close(s.stop_fd);
	if (err != 0)
		(void)die("serve");
	if (hal_close(s.dev) != 0)
		return die("hal_close");
	return err != 0;
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"name", required_argument, NULL, 'n'},
		{"dir", required_argument, NULL, 'd'},
		{"option", required_argument, NULL, 'o'},
		{"tenants", required_argument, NULL, 't'},
		{"lockstep", required_argument, NULL, 'l'},
		{"check", required_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	struct arguments a = {.folder = DEFAULT_FOLDER,
			      .options = calloc((size_t)argc + 1, sizeof(char *))};
	int o, count = 0, status;

	if (a.options == NULL)
		return 1;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is no other thread yet */
	while ((o = getopt_long(argc, argv, "n:d:o:t:l:c:hV", long_options, NULL)) !=
	       -1) {
		if (o == 'n') {
			a.name = optarg;
		} else if (o == 'd') {
			a.folder = optarg;
		} else if (o == 'o') {
			a.options[count++] = optarg;
		} else if (o == 't') {
			a.tenants = optarg;
		} else if (o == 'l') {
			a.lockstep = optarg;
		} else if (o == 'V' || o == 'c') {
			free((void *)a.options);
			return o == 'V' ? version() : check_file(optarg);
		} else {
			free((void *)a.options);
			return usage(o == 'h' ? stdout : stderr);
		}
	}
	a.target = optind < argc ? argv[optind] : NULL;
	status = argc - optind > 1 ? usage(stderr) : run(&a);
	free((void *)a.options);
	return status;
}
