/* SPDX-License-Identifier: Apache-2.0 */
/* sockets.c - the sockets of hald and of its tenants, and tenants that come and go while
 * it runs; see hald.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "hald.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/log.h"

/* Remove the socket at path, which a hald that was killed has left; nothing else. */
static int remove_old(const char *path)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0
				       : fail(errno, "%s: %s", path, hal_strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return fail(EEXIST, "%s: there is a file of this name; it is no socket",
			    path);
	return unlink(path) == 0 || errno == ENOENT
		       ? 0
		       : fail(errno, "%s: %s", path, hal_strerror(errno));
}

/* Bind fd to a, and let whom mode says connect; 0: whom umask says. */
static int bind_to(int fd, const struct sockaddr_un *a, mode_t mode)
{
	if (bind(fd, (const struct sockaddr *)a, sizeof(*a)) != 0)
		return fail(errno, "%s: %s%s", a->sun_path, hal_strerror(errno),
			    errno == ENOENT ? ": make the folder first" : "");
	if (mode != 0 && chmod(a->sun_path, mode) != 0)
		return fail(errno, "%s: chmod: %s", a->sun_path, hal_strerror(errno));
	return listen(fd, 128) == 0
		       ? 0
		       : fail(errno, "%s: listen: %s", a->sun_path, hal_strerror(errno));
}

int listen_at(const char *path, mode_t mode)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return fail(errno, "socket: %s", hal_strerror(errno));
	if (strlen(path) >= sizeof(a.sun_path)) {
		(void)close(fd);
		return fail(ENAMETOOLONG, "%s: longer than %zu bytes", path,
			    sizeof(a.sun_path) - 1);
	}
	memcpy(a.sun_path, path, strlen(path) + 1);
	if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0) {
		(void)close(fd);
		return fail(EADDRINUSE, "%s: another hald serves it", path);
	}
	err = remove_old(path);
	if (err == 0)
		err = bind_to(fd, &a, mode);
	if (err == 0)
		return fd;
	(void)close(fd);
	return err;
}

/* ---- sockets of tenants -------------------------------------------------------------- */

void socket_path(const struct server *s, const struct tenant *t, char path[256])
{
	format_text(path, 256, "%s/%s/%s.sock", s->folder, t->name, s->name);
}

/* Listen at the socket of t, if it is to have one: NAME.sock in a folder of the tenant's
 * name.  Return 0 or -errno. */
static int tenant_listen(struct server *s, struct tenant *t)
{
	char path[256];

	t->at = s->next_at--;
	if (!t->socket)
		return 0;
	format_text(path, sizeof(path), "%s/%s", s->folder, t->name);
	/* Whoever reaches the socket is the tenant: the folder says who does. */
	if (mkdir(path, 0750) != 0 && errno != EEXIST)
		return fail(errno, "%s: %s", path, hal_strerror(errno));
	if ((t->uid >= 0 || t->gid >= 0) &&
	    chown(path, (uid_t)t->uid, (gid_t)t->gid) != 0)
		return fail(errno, "%s: give it to user %lld and group %lld: %s", path,
			    (long long)t->uid, (long long)t->gid, hal_strerror(errno));
	socket_path(s, t, path);
	t->fd = listen_at(path, SOCKET_FOR_ALL);
	return t->fd < 0 ? t->fd : 0;
}

/* Close the socket of t, and remove it with its folder. */
static void tenant_close(const struct server *s, struct tenant *t)
{
	char path[256];

	if (t->fd < 0)
		return;
	(void)close(t->fd);
	t->fd = -1;
	socket_path(s, t, path);
	(void)unlink(path);
	format_text(path, sizeof(path), "%s/%s", s->folder, t->name);
	(void)rmdir(path); /* unless another hald serves there */
}

int tenants_listen(struct server *s)
{
	int err = 0;

	s->next_at = AT_TENANT;
	for (struct tenant *t = s->tenants; err == 0 && t != NULL; t = t->next)
		err = tenant_listen(s, t);
	return err;
}

void tenants_forget(struct server *s)
{
	for (struct tenant *t = s->tenants; t != NULL; t = t->next)
		tenant_close(s, t);
	tenants_free(s->tenants);
	s->tenants = NULL;
}

int tenant_watch(const struct server *s, const struct tenant *t)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = (uint64_t)t->at};

	return t->fd < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, t->fd, &e) == 0
		       ? 0
		       : fail(errno, "epoll_ctl: %s", hal_strerror(errno));
}

/* ---- while hald runs ------------------------------------------------------------------ */

struct tenant *tenant_use_at(struct server *s, int64_t at)
{
	struct tenant *t;

	pthread_mutex_lock(&s->lock);
	t = s->tenants;
	while (t != NULL && t->at != at)
		t = t->next;
	if (t != NULL)
		t->users++;
	pthread_mutex_unlock(&s->lock);
	return t;
}

void tenant_put(struct server *s, struct tenant *t)
{
	bool last;

	if (t == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	last = --t->users == 0 && t->removed;
	if (last && s->removed != NULL)
		tenant_add_past(s->removed, t);
	pthread_mutex_unlock(&s->lock);
	/* Else others use it, and .next changes under the lock. */
	if (last) {
		t->next = NULL;
		tenants_free(t);
	}
}

/* Return where the tenant of that name is in the list.  The caller holds the lock. */
static struct tenant **tenant_named(struct server *s, const char *name)
{
	struct tenant **at = &s->tenants;

	while (*at != NULL && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

/* Read the one section in text. */
static int section_read(const char *text, struct tenant **out)
{
	int err = tenants_load_text(text, out);

	if (err == 0 && (*out)->next != NULL) {
		tenants_free(*out);
		return fail(EINVAL, "there is more than one section");
	}
	return err;
}

/* Put t at the beginning of the list.  The caller holds the lock. */
static int tenant_enlist(struct server *s, struct tenant *t)
{
	int err;

	if (*tenant_named(s, t->name) != NULL)
		return fail(EEXIST, "there is a tenant \"%s\"", t->name);
	if (tenant_is_anybodys(t))
		return fail(
			EINVAL,
			"tenant \"%s\" would be everybody's: give it a socket, or say "
			"by uid, gid, label, cgroup or unit whose it is",
			t->name);
	err = tenant_listen(s, t);
	if (err == 0)
		err = tenant_watch(s, t);
	if (err != 0) {
		tenant_close(s, t);
		return err;
	}
	/* Before sections of the file, which may be for everybody. */
	t->next = s->tenants;
	s->tenants = t;
	LOG(HAL_LOG_INFO, "tenant \"%s\" has been added", t->name);
	return 0;
}

int tenant_add(struct server *s, const char *text, char path[256])
{
	struct tenant *t;
	int err = section_read(text, &t);

	if (err != 0)
		return err;
	format_text(t->source, sizeof(t->source), "added to hald:%s while it runs",
		    s->name);
	pthread_mutex_lock(&s->lock);
	err = tenant_enlist(s, t);
	path[0] = '\0';
	if (err == 0 && t->socket)
		socket_path(s, t, path);
	pthread_mutex_unlock(&s->lock);
	if (err != 0)
		tenants_free(t);
	return err;
}

/* Take the tenant of that name from the list, and end its clients.  The caller holds the
 * lock, and has to put *out. */
static int tenant_take(struct server *s, const struct client *asks, const char *name,
		       struct tenant **out)
{
	struct tenant **at = tenant_named(s, name), *t = *at;

	if (t == NULL)
		return fail(ENOENT, "there is no tenant \"%s\"", name);
	if (asks->tenant == t)
		return fail(EBUSY, "\"%s\" is the tenant of this program itself", name);
	if (s->tenants == t && t->next == NULL)
		return fail(EBUSY, "\"%s\" is the only tenant", name);
	*at = t->next;
	t->removed = true;
	t->users++;
	tenant_close(s, t);
	for (struct client *c = s->clients; c != NULL; c = c->next)
		if (c->tenant == t) {
			client_ends(c, ENDED_REMOVED);
			client_end(c);
		}
	*out = t;
	return 0;
}

int tenant_remove(struct server *s, const struct client *c, const char *name)
{
	struct tenant *t = NULL;
	int err;

	pthread_mutex_lock(&s->lock);
	err = tenant_take(s, c, name, &t);
	pthread_mutex_unlock(&s->lock);
	if (err != 0)
		return err;
	LOG(HAL_LOG_INFO, "tenant \"%s\" has been removed", name);
	tenant_put(s, t);
	return 0;
}

/* Write what a tenant has, and may have, to `to`. */
static void share(char to[48], uint64_t has, uint64_t limit)
{
	if (limit == TENANT_NO_LIMIT)
		format_text(to, 48, "%llu", U64(has));
	else
		format_text(to, 48, "%llu of %llu", U64(has), U64(limit));
}

int tenants_text(struct server *s, char *text, size_t room)
{
	size_t used = 0;

	text[0] = '\0';
	pthread_mutex_lock(&s->lock);
	for (const struct tenant *t = s->tenants; t != NULL && used < room; t = t->next) {
		char clients[48], units[48], memory[48], queues[48], path[256] = "";
		uint64_t count = 0;

		for (const struct client *c = s->clients; c != NULL; c = c->next)
			count += c->tenant == t;
		share(clients, count, t->clients);
		share(units, atomic_load(&t->has.units), t->units);
		share(memory, atomic_load(&t->has.memory), t->memory);
		share(queues, atomic_load(&t->has.queues), t->queues);
		if (t->socket)
			socket_path(s, t, path);
		format_text(text + used, room - used, "%s\t%s\t%s\t%s\t%s\t%s\n", t->name,
			    clients, units, memory, queues, path);
		used += strlen(text + used);
	}
	pthread_mutex_unlock(&s->lock);
	return 0;
}
