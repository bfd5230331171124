/* SPDX-License-Identifier: Apache-2.0 */
/* Which configuration files are read without having been named, and which are refused. */
#include "mock_world.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hal/ext/options.h>

#include "config/find.h"
#include "tests/scan.h"

static char top[] = "/tmp/hal-find-XXXXXX";

/* Files and folders of these names below top. */
#define SYSTEM "etc"
#define USER   "home/.config/accelhal"

static const char *below(const char *name)
{
	static char path[4][300];
	static int last;

	last = (last + 1) % 4;
	snprintf(path[last], sizeof(path[last]), "%s/%s", top, name);
	return path[last];
}

static void make_folder(const char *name, mode_t mode)
{
	if (mkdir(below(name), mode) != 0)
		assert_int_equal(errno, EEXIST);
	assert_int_equal(chmod(below(name), mode), 0);
}

static void write_file(const char *name, const char *text)
{
	FILE *f;

	(void)unlink(below(name));
	f = fopen(below(name), "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(below(name), 0644), 0);
}

static int make(void **state)
{
	(void)state;
	if (mkdtemp(top) == NULL || chdir(top) != 0)
		return -1;
	make_folder(SYSTEM, 0755);
	make_folder(SYSTEM "/conf.d", 0755);
	make_folder("home", 0755);
	make_folder("home/.config", 0755);
	make_folder(USER, 0755);
	make_folder("xdg", 0755);
	make_folder("xdg/accelhal", 0755);
	setenv("HOME", below("home"), 1);
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("HAL_CONFIG");
	unsetenv("HAL_HAL_CONFIG");
	find_system_folder = strdup(below(SYSTEM));
	return find_system_folder == NULL;
}

static int clean(void **state)
{
	static const char *const files[] = {
		"hal.conf",
		SYSTEM "/hal.conf",
		SYSTEM "/conf.d/10-a.conf",
		USER "/hal.conf",
		SYSTEM "/conf.d/9-b.conf",
		SYSTEM "/conf.d/.c.conf",
		"secure",
		"named.conf",
		SYSTEM "/conf.d/c.conf.orig",
		"xdg/accelhal/hal.conf",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		(void)unlink(below(files[i]));
	return 0;
}

static int remove_all(void **state)
{
	static const char *const folders[] = {
		SYSTEM "/conf.d", SYSTEM,         USER, "home/.config",
		"home",           "xdg/accelhal", "xdg"};

	(void)state;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		(void)rmdir(below(folders[i]));
	free((char *)(uintptr_t)find_system_folder);
	return chdir("/") != 0 || rmdir(top) != 0;
}

/* section.key, as the next hal_open would see it. */
static struct hal_option_info lookup(const char *const *options, const char *section,
				     const char *key)
{
	struct hal_option_info o = HAL_INIT(hal_option_info);

	for (uint32_t i = 0;; i++) {
		OK(scan_option(i, options, &o));
		if (strcmp(o.section, section) == 0 && strcmp(o.key, key) == 0)
			return o;
	}
}

static void expect(const char *const *options, const char *key, const char *value,
		   const char *source)
{
	struct hal_option_info o = lookup(options, "hal", key);

	assert_string_equal(o.value, value);
	if (strstr(o.source, source) == NULL)
		fail_msg("%s is said by %s, not by %s", key, o.source, source);
}

/* It once was: anybody who can write the folder had code run in this program. */
static void the_current_folder_is_not_read(void **state)
{
	(void)state;
	write_file("hal.conf", "[hal]\nplugins = ./x.so\n");
	expect(NULL, "plugins", "", "default");
	setenv("HAL_CONFIG", "hal.conf", 1);
	FAILS(scan_option(0, NULL, &(struct hal_option_info)HAL_INIT(hal_option_info)),
	      -ENOENT, "plugin ./x.so");
	unsetenv("HAL_CONFIG");
}

static void later_files_override_key_by_key(void **state)
{
	char option[64], named[64];
	const char *const options[] = {option, NULL};
	static const char *const none[] = {"hal.config=/dev/null", NULL};

	(void)state;
	write_file(SYSTEM "/hal.conf", "[hal]\ninflight = 3\nspin_us = 1\ncompact = 1\n"
				       "queue_depth = 64\npartition_inflight = 3\n");
	expect(NULL, "inflight", "3", "/etc/hal.conf:2");
	write_file(SYSTEM "/conf.d/10-a.conf", "[hal]\nspin_us = 2\n");
	write_file(SYSTEM "/conf.d/9-b.conf", "[hal]\nspin_us = 3\ncompact = 3\n");
	write_file(SYSTEM "/conf.d/.c.conf", "[hal]\nspin_us = 9\n");
	write_file(SYSTEM "/conf.d/c.conf.orig", "[hal]\nspin_us = 9\n");
	write_file(USER "/hal.conf", "[hal]\ncompact = 4\nqueue_depth = 128\n");
	write_file("named.conf", "[hal]\nqueue_depth = 256\npartition_inflight = 5\n");
	write_file("hal.conf", "[hal]\npartition_inflight = 6\n");
	expect(NULL, "inflight", "3", "/etc/hal.conf:2");
	expect(NULL, "spin_us", "3", "/conf.d/9-b.conf:2");
	expect(NULL, "compact", "4", "/.config/accelhal/hal.conf:2");
	expect(NULL, "queue_depth", "128", "/.config/accelhal/hal.conf:3");
	snprintf(named, sizeof(named), "%s", below("named.conf"));
	setenv("HAL_CONFIG", named, 1);
	snprintf(option, sizeof(option), "hal.config=%s", below("hal.conf"));
	expect(NULL, "queue_depth", "256", "/named.conf:2");
	expect(options, "inflight", "3", "/etc/hal.conf:2");
	expect(options, "queue_depth", "256", "/named.conf:2");
	expect(options, "partition_inflight", "6", "/hal.conf:2");
	/* No file before it counts. */
	expect(none, "queue_depth", "32", "default");
	setenv("HAL_CONFIG", "/dev/null", 1);
	expect(options, "queue_depth", "32", "default");
	expect(options, "partition_inflight", "6", "/hal.conf:2");
	unsetenv("HAL_CONFIG");
	/* Elsewhere, but not below the current folder. */
	write_file("xdg/accelhal/hal.conf", "[hal]\ncompact = 7\n");
	setenv("XDG_CONFIG_HOME", below("xdg"), 1);
	expect(NULL, "compact", "7", "/xdg/accelhal/hal.conf:2");
	setenv("XDG_CONFIG_HOME", "xdg", 1);
	expect(NULL, "compact", "4", "/.config/accelhal/hal.conf:2");
	unsetenv("XDG_CONFIG_HOME");
	/* What is overridden has to be right, too. */
	write_file(SYSTEM "/hal.conf", "[hal]\ncompact = many\n");
	FAILS(hal_open("ref", NULL, &(struct hal_device *){NULL}), -EINVAL,
	      "/etc/hal.conf:2: [hal] compact", "many");
}

/* Two packages may bring one each, with a section of its own. */
static void plugins_of_all_files_are_loaded(void **state)
{
	struct hal_device *dev;

	(void)state;
	write_file(SYSTEM "/conf.d/10-a.conf",
		   "[hal]\nplugins = :" MOCK_PLUGIN ":\n[backend.mock]\nrows = 1\n");
	expect(NULL, "plugins", ":" MOCK_PLUGIN ":", "/10-a.conf:2");
	write_file(SYSTEM "/conf.d/9-b.conf",
		   "[hal]\nplugins = " MOCK_SHORT_PLUGIN ":" MOCK_PLUGIN "\n");
	expect(NULL, "plugins", MOCK_SHORT_PLUGIN ":" MOCK_PLUGIN, "/9-b.conf:2");
	write_file(USER "/hal.conf", "[hal]\nplugins =\n");
	expect(NULL, "plugins", MOCK_SHORT_PLUGIN ":" MOCK_PLUGIN,
	       "/accelhal/hal.conf:2");
	write_file(SYSTEM "/conf.d/9-b.conf", "[hal]\nplugins = " MOCK_SHORT_PLUGIN "\n");
	expect(NULL, "plugins", MOCK_PLUGIN ":" MOCK_SHORT_PLUGIN,
	       "/accelhal/hal.conf:2");
	OK(hal_open("mock", NULL, &dev));
	OK(hal_close(dev));
	OK(hal_open("mockshort", NULL, &dev));
	OK(hal_close(dev));
	/* What is said elsewhere is the whole list. */
	setenv("HAL_HAL_PLUGINS", MOCK_PLUGIN, 1);
	expect(NULL, "plugins", MOCK_PLUGIN, "environment");
	unsetenv("HAL_HAL_PLUGINS");
}

static void refused(const char *file, const char *why, const char *advice)
{
	struct hal_device *dev;

	FAILS(hal_open("ref", NULL, &dev), -EACCES, below(file), why, advice);
}

static void a_file_that_others_write_is_refused(void **state)
{
	static const char *const files[] = {SYSTEM "/hal.conf",
					    SYSTEM "/conf.d/10-a.conf", USER "/hal.conf"};
	static const mode_t modes[] = {0622, 0602, 0666, 0620};
	char advice[400];

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		write_file(files[i], "[hal]\ncompact = 4\n");
		expect(NULL, "compact", "4", files[i]);
		for (size_t k = 0; k < sizeof(modes) / sizeof(modes[0]); k++) {
			assert_int_equal(chmod(below(files[i]), modes[k]), 0);
			snprintf(advice, sizeof(advice), "chmod go-w '%s'",
				 below(files[i]));
			refused(files[i], "other users can write /", advice);
		}
		assert_int_equal(unlink(below(files[i])), 0);
	}
}

static void a_folder_that_others_write_is_refused(void **state)
{
	static const char *const folders[] = {SYSTEM, SYSTEM "/conf.d", USER};
	char file[64], link[64];

	(void)state;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(file, sizeof(file), "%s/hal.conf", folders[i]);
		make_folder(folders[i], 0777);
		/* Nothing is there: nothing is wrong. */
		expect(NULL, "compact", "0", "default");
		write_file(file, "[hal]\ncompact = 4\n");
		refused(file, "other users can write /", "chmod go-w '/");
		make_folder(folders[i], 01777);
		expect(NULL, "compact", "4", file);
		/* But a link there may be anybody's. */
		snprintf(link, sizeof(link), "%s", below("named.conf"));
		assert_int_equal(rename(below(file), link), 0);
		assert_int_equal(symlink(link, below(file)), 0);
		FAILS(hal_open("ref", NULL, &(struct hal_device *){NULL}), -ELOOP, file,
		      "is a symbolic link", "replace it with the file");
		make_folder(folders[i], 0755);
		expect(NULL, "compact", "4", file);
		assert_int_equal(unlink(below(file)), 0);
	}
}

static void what_is_no_file_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(below(USER "/hal.conf"), 0600), 0);
	FAILS(hal_open("ref", NULL, &(struct hal_device *){NULL}), -EINVAL,
	      "/accelhal/hal.conf", "not a regular file");
}

/* A configuration is never left out silently. */
static void a_folder_that_cannot_be_opened_is_an_error(void **state)
{
	struct hal_option_info o = HAL_INIT(hal_option_info);
	struct rlimit before, none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	FAILS(scan_option(0, NULL, &o), -EMFILE, "configuration folder /");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(rmdir(below(USER)), 0);
	write_file(USER, "");
	FAILS(scan_option(0, NULL, &o), -ENOTDIR, "configuration folder /",
	      USER ": Not a directory");
	assert_int_equal(unlink(below(USER)), 0);
	make_folder(USER, 0755);
	/* That is no home. */
	setenv("HOME", "/dev/null", 1);
	expect(NULL, "compact", "0", "default");
	setenv("HOME", below("home"), 1);
}

/* Root's are everybody's; others' are nobody's but their own. */
static void a_file_of_another_user_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	write_file(USER "/hal.conf", "[hal]\ncompact = 4\n");
	assert_int_equal(chown(below(USER "/hal.conf"), 12345, 12345), 0);
	refused(USER "/hal.conf", "hal.conf belongs to user 12345", "root or user 0");
	write_file(USER "/hal.conf", "[hal]\ncompact = 4\n");
	assert_int_equal(chown(below(USER), 12345, 12345), 0);
	refused(USER "/hal.conf", "/accelhal belongs to user 12345", "root or user 0");
	/* He himself has his folder, and root's file in it. */
	assert_int_equal(chmod(top, 0755), 0);
	assert_int_equal(seteuid(12345), 0);
	expect(NULL, "compact", "4", USER);
	/* A home of somebody else that he cannot look into is none. */
	assert_int_equal(seteuid(0), 0);
	make_folder("home", 0700);
	assert_int_equal(seteuid(12345), 0);
	expect(NULL, "compact", "0", "default");
	assert_int_equal(seteuid(0), 0);
	make_folder("home", 0755);
	assert_int_equal(chown(below(USER), 0, 0), 0);
}

static void write_map(const char *map)
{
	int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, map, strlen(map)) != (ssize_t)strlen(map))
		_exit(77);
	(void)close(fd);
}

/* hal.compact, for a user who is root of a user namespace in which root has no number:
 * -EACCES if a file is refused.  77: the system lets nobody make one. */
static int in_container(void)
{
	struct hal_option_info o = HAL_INIT(hal_option_info);
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (seteuid(0) != 0 || setresuid(12345, 12345, 12345) != 0 ||
		    prctl(PR_SET_DUMPABLE, 1) != 0 || unshare(CLONE_NEWUSER) != 0)
			_exit(77);
		write_map("0 12345 1");
		for (uint32_t i = 0; strcmp(o.key, "compact") != 0; i++)
			if (scan_option(i, NULL, &o) != 0)
				_exit(strstr(hal_last_error(), "HAL_CONFIG=/dev/null") !=
						      NULL
					      ? EACCES
					      : 99);
		_exit(atoi(o.value));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* There root's files are of a user without a number; the system's are read all the same.
 */
static void a_container_without_root_reads_the_systems_files(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(top, 0755), 0);
	write_file(SYSTEM "/hal.conf", "[hal]\ncompact = 4\n");
	write_file(SYSTEM "/conf.d/10-a.conf", "[hal]\ncompact = 5\n");
	if (in_container() == 77)
		skip();
	assert_int_equal(in_container(), 5);
	assert_int_equal(chmod(below(SYSTEM "/hal.conf"), 0664), 0);
	assert_int_equal(in_container(), 99);
	write_file(SYSTEM "/hal.conf", "[hal]\ncompact = 4\n");
	make_folder(SYSTEM, 01777);
	assert_int_equal(in_container(), 99);
	make_folder(SYSTEM, 0755);
	/* Not the user's, which is no matter of the system's folder. */
	write_file(USER "/hal.conf", "[hal]\ncompact = 6\n");
	assert_int_equal(in_container(), EACCES);
	/* Without a user namespace it is a user as any other. */
	assert_int_equal(unlink(below(USER "/hal.conf")), 0);
	assert_int_equal(chown(below(SYSTEM "/hal.conf"), 65534, 65534), 0);
	refused(SYSTEM "/hal.conf", "belongs to user 65534", "root or user 0");
}

/* To open a device may start it, so not even that is done for another user's link. */
static void what_another_users_link_names_is_not_opened(void **state)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char event[4096];

	(void)state;
	if (geteuid() != 0) {
		(void)close(watch);
		skip();
	}
	write_file("named.conf", "[hal]\ncompact = 4\n");
	assert_true(inotify_add_watch(watch, below("named.conf"), IN_OPEN) >= 0);
	assert_int_equal(symlink(below("named.conf"), below(USER "/hal.conf")), 0);
	expect(NULL, "compact", "4", USER);
	assert_true(read(watch, event, sizeof(event)) > 0);
	assert_int_equal(chown(below(USER), 12345, 12345), 0);
	refused(USER "/hal.conf", "/accelhal belongs to user 12345", "root or user 0");
	assert_int_equal(read(watch, event, sizeof(event)), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(chown(below(USER), 0, 0), 0);
	assert_int_equal(close(watch), 0);
}

/* Run as a program with more rights than who started it. */
static int secure_main(const char *folder)
{
	struct hal_option_info o = HAL_INIT(hal_option_info);
	char system[300];

	if (getauxval(AT_SECURE) == 0)
		return 77;
	snprintf(system, sizeof(system), "%s/" SYSTEM, folder);
	find_system_folder = system;
	for (uint32_t i = 0; scan_option(i, NULL, &o) == 0; i++)
		if (strcmp(o.source, "default") != 0 &&
		    (strcmp(o.key, "spin_us") != 0 || strcmp(o.value, "5") != 0))
			return 1;
	return strstr(hal_last_error(), "past the last") != NULL ? 0 : 2;
}

static void copy_itself(const char *to)
{
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	char bytes[65536];
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)n), n);
	assert_int_equal(n, 0);
	/* Its group is not root's: it runs with another one than who starts it. */
	assert_int_equal(fchown(out, 0, 12345), 0);
	assert_int_equal(fchmod(out, 02755), 0);
	assert_int_equal(close(in), 0);
	assert_int_equal(close(out), 0);
}

static void with_more_rights_the_environment_counts_for_nothing(void **state)
{
	char program[64];
	char *const argv[] = {program, top, NULL};
	int status;
	pid_t pid;

	(void)state;
	snprintf(program, sizeof(program), "%s", below("secure"));
	if (geteuid() != 0)
		skip();
	copy_itself(program);
	write_file(SYSTEM "/hal.conf", "[hal]\nspin_us = 5\n");
	write_file(USER "/hal.conf", "[hal]\ncompact = 4\n");
	write_file("named.conf", "[hal]\nqueue_depth = 64\n");
	setenv("HAL_CONFIG", below("named.conf"), 1);
	setenv("HAL_BACKEND_REF_UNITS", "8", 1);
	setenv("HAL_HAL_NONSENSE", "8", 1);
	pid = fork();
	if (pid == 0) {
		(void)execv(program, argv);
		_exit(3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unsetenv("HAL_CONFIG");
	unsetenv("HAL_BACKEND_REF_UNITS");
	unsetenv("HAL_HAL_NONSENSE");
	assert_int_equal(unlink(program), 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* /tmp is mounted so that no program gets rights */
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_current_folder_is_not_read, clean),
		cmocka_unit_test_teardown(later_files_override_key_by_key, clean),
		cmocka_unit_test_teardown(plugins_of_all_files_are_loaded, clean),
		cmocka_unit_test_teardown(a_file_that_others_write_is_refused, clean),
		cmocka_unit_test_teardown(a_folder_that_others_write_is_refused, clean),
		cmocka_unit_test_teardown(what_is_no_file_is_refused, clean),
		cmocka_unit_test_teardown(a_folder_that_cannot_be_opened_is_an_error,
					  clean),
		cmocka_unit_test_teardown(a_file_of_another_user_is_refused, clean),
		cmocka_unit_test_teardown(
			a_container_without_root_reads_the_systems_files, clean),
		cmocka_unit_test_teardown(what_another_users_link_names_is_not_opened,
					  clean),
		cmocka_unit_test_teardown(
			with_more_rights_the_environment_counts_for_nothing, clean),
	};

	if (argc > 1)
		return secure_main(argv[1]);
	return cmocka_run_group_tests(tests, make, remove_all);
}
