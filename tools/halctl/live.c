/* SPDX-License-Identifier: Apache-2.0 */
/* live.c - programs that can be looked at; see live.h. */
#include "live.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <hal/ext/options.h>

#include "lib/monitor_dir.h"

#define ANSWER_MAX (4u << 20)
#define ANSWER_MS  2000

/* ---- where they are ----------------------------------------------------------------- */

/* hal.monitor_dir, as the library reads it; "": it names none. */
static int folder_said(const struct halctl *ctl, char *dir, size_t size)
{
	struct hal_option_info o = HAL_INIT(hal_option_info);
	struct hal_scan *scan;
	int n;

	if (hal_scan_create(ctl->options, HAL_SCAN_OPTIONS, &scan) != 0)
		return tool_fail_hal();
	for (uint32_t i = 0; hal_scan_get_option(scan, i, &o) == 0; i++)
		if (strcmp(o.section, "hal") == 0 && strcmp(o.key, "monitor_dir") == 0)
			break;
	(void)hal_scan_destroy(scan);
	if (strcmp(o.key, "monitor_dir") != 0)
		return tool_fail_hal();
	n = snprintf(dir, size, "%s", o.value);
	return n < 0 || (size_t)n >= size
		       ? tool_fail("%s...: the folder name is too long", dir)
		       : 0;
}

/* PID.N, and of the program that is asked for: its PID, or all of it. */
static bool is_wanted(const char *name, const char *program)
{
	size_t pid = strspn(name, "0123456789"), n;

	if (pid == 0 || name[pid] != '.')
		return false;
	n = strspn(name + pid + 1, "0123456789");
	if (n == 0 || name[pid + 1 + n] != '\0')
		return false;
	return program == NULL || strcmp(program, name) == 0 ||
	       (strlen(program) == pid && strncmp(program, name, pid) == 0);
}

static int by_id(const void *a, const void *b)
{
	const struct live_device *x = a, *y = b;
	long p = strtol(x->id, NULL, 10), q = strtol(y->id, NULL, 10);

	return p != q ? (p > q) - (p < q) : strverscmp(x->id, y->id);
}

/* ---- asking ------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* -1 with errno, or the socket of a process of user. */
static int reach(const char *path, uid_t user)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct ucred who;
	socklen_t size = sizeof(who);

	if (fd < 0)
		return -1;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0) {
		/* Nor root's: it has no business in another user's folder. */
		if (who.uid == user)
			return fd;
		errno = EPERM;
	}
	size = (socklen_t)errno;
	(void)close(fd);
	errno = (int)size;
	return -1;
}

static int wrong(char why[JSON_WHY], const struct live_device *d, const char *what)
{
	snprintf(why, JSON_WHY, "program %s: %.400s", d->id, what);
	return -1;
}

/* Requests are shorter than a socket takes at once. */
static int say(int fd, const struct live_device *d, const char *const *words,
	       char why[JSON_WHY])
{
	for (; *words != NULL; words++)
		if (send(fd, *words, strlen(*words) + 1, MSG_NOSIGNAL) < 0)
			return wrong(why, d, hal_strerror(errno));
	(void)shutdown(fd, SHUT_WR);
	return 0;
}

/* Read an answer to its end: in time, no more than ANSWER_MAX, a NUL behind its size
 * bytes. */
static char *hear(int fd, const struct live_device *d, size_t *size, char why[JSON_WHY])
{
	/* Of many that do not answer, all together take little longer than one. */
	static int64_t patience_ms = ANSWER_MS;
	int64_t until = now_ms() + patience_ms;
	char *text = NULL, *more;
	size_t room = 0, n = 0;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int64_t left = until - now_ms();
		ssize_t got;

		if (n + 1 >= room) {
			room = room != 0 ? 2 * room : 65536;
			more = room <= ANSWER_MAX ? realloc(text, room) : NULL;
			if (more == NULL) {
				(void)wrong(why, d, "the answer is too long");
				break;
			}
			text = more;
		}
		if (left <= 0 || poll(&p, 1, (int)left) == 0) {
			(void)wrong(why, d, "does not answer");
			patience_ms = patience_ms / 2 > ANSWER_MS / 20 ? patience_ms / 2
								       : ANSWER_MS / 20;
			break;
		}
		got = recv(fd, text + n, room - n - 1, 0);
		if (got == 0) {
			text[n] = '\0';
			*size = n;
			return text;
		}
		if (got > 0) {
			n += (size_t)got;
		} else if (errno != EAGAIN && errno != EINTR) {
			(void)wrong(why, d, hal_strerror(errno));
			break;
		}
	}
	free(text);
	return NULL;
}

/* The error that it answers, or that it is no answer. */
static int check(const struct json *root, const struct live_device *d, bool look,
		 char why[JSON_WHY])
{
	char text[JSON_WHY / 2];

	if (root->type != JSON_OBJECT)
		return wrong(why, d, "the answer is not a JSON object");
	if (live_text(root, "error", text, sizeof(text))[0] != '\0')
		return wrong(why, d, text);
	if (look && live_number(root, "hal_monitor") != 1)
		return wrong(why, d, "the answer has another version");
	return 0;
}

struct json *live_ask(const struct live_device *d, const char *const *words, char **text,
		      char why[JSON_WHY])
{
	char *answer = NULL, parse[JSON_WHY];
	struct json *root = NULL;
	size_t size = 0;
	int fd = reach(d->path, d->user);

	if (fd < 0) {
		(void)wrong(why, d,
			    errno == ECONNREFUSED || errno == ENOENT
				    ? "has ended"
				    : hal_strerror(errno));
		return NULL;
	}
	if (say(fd, d, words, why) == 0)
		answer = hear(fd, d, &size, why);
	(void)close(fd);
	if (answer == NULL)
		return NULL;
	root = json_parse(answer, size, "answer", parse);
	if (root == NULL) {
		(void)wrong(why, d, parse);
	} else if (check(root, d, strcmp(words[0], "look") == 0, why) != 0) {
		json_free(root);
		root = NULL;
	}
	if (root == NULL || text == NULL) {
		free(answer);
		return root;
	}
	*text = answer;
	return root;
}

/* ---- finding ------------------------------------------------------------------------ */

/* Somebody listens there; else what is left of an ended program goes, if it is this
 * user's. */
static bool alive(const struct live_device *d)
{
	int fd = reach(d->path, d->user);

	if (fd < 0) {
		if (errno == ECONNREFUSED && d->user == geteuid())
			(void)unlink(d->path);
		return false;
	}
	(void)close(fd);
	return true;
}

static int nobody(const struct halctl *ctl, const char *dir, bool ended)
{
	if (ctl->program != NULL)
		return tool_fail(ended ? "program %s has ended"
				       : "no program %s runs with hal.monitor (%s); "
					 "start it with HAL_HAL_MONITOR=read",
				 ctl->program, dir[0] != '\0' ? dir : "of any user");
	if (dir[0] == '\0')
		return tool_fail(
			"no program of any user runs with hal.monitor = read or "
			"control (/run/user/*/accelhal, /tmp/accelhal-*); start one "
			"with HAL_HAL_MONITOR=read");
	return tool_fail("no program of this user runs with hal.monitor = read or "
			 "control (%s); start one with HAL_HAL_MONITOR=read",
			 dir);
}

/* Add what is in a folder that user alone can reach, and so nobody else has changed,
 * until there are max. */
static void find_in(const struct halctl *ctl, struct live *l, const char *dir, uid_t user,
		    uint32_t max, bool *ended)
{
	DIR *f = opendir(dir);
	struct dirent *e;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	while (f != NULL && l->count < max && (e = readdir(f)) != NULL) {
		struct live_device *d = &l->device[l->count];
		int n;

		if (!is_wanted(e->d_name, ctl->program))
			continue;
		d->user = user;
		snprintf(d->id, sizeof(d->id), "%.31s", e->d_name);
		n = snprintf(d->path, sizeof(d->path), "%s/%s", dir, e->d_name);
		if (n > 0 && n < (int)sizeof(d->path) && alive(d))
			l->count++;
		else
			*ended = true;
	}
	if (f != NULL)
		(void)closedir(f);
}

/* Root may look at everybody's: the server admits it. */
static void find_all(const struct halctl *ctl, struct live *l, const char *own,
		     bool *ended)
{
	glob_t found = {.gl_pathc = 0};
	char why[512];
	struct stat st;

	/* NOLINTBEGIN(concurrency-mt-unsafe): halctl has one thread */
	(void)glob("/run/user/*/accelhal", GLOB_NOSORT, NULL, &found);
	(void)glob("/tmp/accelhal-*", GLOB_NOSORT | GLOB_APPEND, NULL, &found);
	/* NOLINTEND(concurrency-mt-unsafe) */
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *dir = found.gl_pathv[i];
		/* No user can take the places of all others. */
		const uint32_t left = (uint32_t)(found.gl_pathc - i);

		if (strcmp(dir, own) != 0 && lstat(dir, &st) == 0 &&
		    monitor_dir_check(dir, st.st_uid, why, sizeof(why)) == 0)
			find_in(ctl, l, dir, st.st_uid,
				l->count + (LIVE_MAX - l->count) / left, ended);
	}
	globfree(&found);
}

int live_find(const struct halctl *ctl, struct live *l)
{
	char dir[256] = "", why[512];
	bool ended = false, said;
	uid_t user = geteuid();
	struct stat st;
	int err;

	memset(l, 0, sizeof(*l));
	if (folder_said(ctl, dir, sizeof(dir)) != 0)
		return TOOL_FAILED;
	said = dir[0] != '\0';
	if (!said)
		monitor_dir_default(dir, sizeof(dir));
	else if (user == 0 && lstat(dir, &st) == 0)
		user = st.st_uid;
	err = monitor_dir_check(dir, user, why, sizeof(why));
	if (err == 0)
		find_in(ctl, l, dir, user, LIVE_MAX, &ended);
	if (geteuid() == 0 && !said)
		find_all(ctl, l, dir, &ended);
	/* Programs have no sockets there, for the same reason. */
	if (l->count == 0 && err != 0 && err != -ENOENT)
		return tool_fail(said ? "%s; until then devices with hal.monitor do not "
					"open"
				      : "%s; until then hal.monitor is off",
				 why);
	if (l->count == 0 && err != 0 && said)
		return nobody(ctl, why, ended);
	if (l->count == 0)
		return nobody(ctl, geteuid() == 0 && !said ? "" : dir, ended);
	qsort(l->device, l->count, sizeof(l->device[0]), by_id);
	return 0;
}

int live_find_one(const struct halctl *ctl, struct live *l)
{
	char ids[256] = "";
	size_t n = 0;

	if (live_find(ctl, l) != 0)
		return TOOL_FAILED;
	if (l->count == 1)
		return 0;
	for (uint32_t i = 0; i < l->count && n < sizeof(ids); i++)
		n += (size_t)snprintf(ids + n, sizeof(ids) - n, " %s", l->device[i].id);
	return tool_fail("several programs match; choose one with --program:%s", ids);
}

/* ---- what may be anything ----------------------------------------------------------- */

double live_number(const struct json *object, const char *key)
{
	const struct json *v = json_member(object, key);

	if (v == NULL || v->type != JSON_NUMBER || !(v->number >= 0))
		return 0;
	return fmin(v->number, 1e18);
}

const char *live_text(const struct json *object, const char *key, char *text, size_t size)
{
	const struct json *v = json_member(object, key);
	const char *s = v != NULL && v->type == JSON_TEXT ? v->text : "";
	size_t n = 0;

	/* One column a character: a terminal need not know UTF-8. */
	for (; *s != '\0' && n < size - 1; s++)
		if (((unsigned char)*s & 0xc0) != 0x80)
			text[n++] = isprint((unsigned char)*s) != 0 ? *s : '?';
	text[n] = '\0';
	return text;
}

const struct json *live_list(const struct json *object, const char *key)
{
	const struct json *v = json_member(object, key);

	if (v == NULL || v->type != JSON_LIST || v->count > LIVE_VALUES)
		return NULL;
	for (const struct json *e = v->first; e != NULL; e = e->next)
		if (e->type != JSON_OBJECT)
			return NULL;
	return v->first;
}
