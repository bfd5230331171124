/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - connections, clients, and their ends; see hald.h.
 *
 * The main thread accepts connections and watches the processes of clients.  Each channel
 * has a thread.  The last thread of a client destroys what it has left.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "far/message.h"
#include "requests.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/futex.h"
#include "util/log.h"

enum { CONNECTIONS_MAX = 8192, CHANNELS_MAX = 256 }; /* in all; of a client */
/* Connections that are of no client yet: so many, for so long.  The oldest of more go
 * first.  A thousand programs may come at once: as long as these take no more than a
 * quarter of the descriptors, they have some time to say who they are. */
enum { UNKNOWN_MAX = 64, UNKNOWN_MS = 2000, HELLO_MS = 200 };
/* Longest time in which a client has to read an answer. */
enum { ANSWER_S = 5 };

struct channel {
	struct channel *next;        /* of its client */
	struct channel *next_of_all; /* in .channels of the server */
	pthread_t thread;
	atomic_bool over;     /* its thread ends */
	atomic_bool known;    /* it is of a client */
	uint64_t accepted_ns; /* CLOCK_MONOTONIC */
	struct server *server;
	struct tenant *tenant; /* whose socket it has connected to; NULL: the device's */
	struct client *client; /* NULL before FAR_HELLO */
	int fd;
	_Alignas(16) unsigned char buffer[FAR_INLINE];
};

/* ---- clients ----------------------------------------------------------------------- */

static void client_free(struct client *c)
{
	board_free(c);
	handles_end(&c->handles);
	(void)close(c->pidfd);
	(void)pthread_cond_destroy(&c->changed);
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
}

void client_end_locked(struct client *c)
{
	c->closing = true;
	lockstep_end(c);
	for (struct ring *r = c->rings; r != NULL; r = r->next)
		inlet_refuse(&r->inlet, "the client has ended");
	for (const struct channel *ch = c->channels; ch != NULL; ch = ch->next)
		(void)shutdown(ch->fd, SHUT_RDWR);
	pthread_cond_broadcast(&c->changed);
}

void client_end(struct client *c)
{
	pthread_mutex_lock(&c->lock);
	client_end_locked(c);
	pthread_mutex_unlock(&c->lock);
}

void client_end_number(struct server *s, uint64_t number)
{
	struct client *c;

	pthread_mutex_lock(&s->lock);
	for (c = s->clients; c != NULL && c->number != number;)
		c = c->next;
	if (c != NULL) {
		(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->pidfd, NULL);
		client_end(c);
	}
	pthread_mutex_unlock(&s->lock);
}

/* Return 0 if another client of t may come.  The caller holds the lock of s. */
static int clients_check(const struct server *s, const struct tenant *t)
{
	uint64_t count = 0;

	for (const struct client *c = s->clients; c != NULL; c = c->next)
		count += c->tenant == t;
	return count < t->clients
		       ? 0
		       : fail(EDQUOT,
			      "tenant \"%s\" may have the device open %llu times "
			      "in all",
			      t->name, U64(t->clients));
}

/* Take c from the list.  The caller holds the lock. */
static void client_unlist(struct client *c)
{
	struct client **at = &c->server->clients;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	(void)epoll_ctl(c->server->epoll, EPOLL_CTL_DEL, c->pidfd, NULL);
}

/* Make a client of t, whose process is peer.  The caller holds the lock of s, and has
 * used t, which goes with the client. */
static int client_new(struct server *s, struct tenant *t, struct peer *peer,
		      struct client **out)
{
	struct epoll_event e = {.events = EPOLLIN};
	struct client *c = calloc(1, sizeof(*c));
	pthread_condattr_t monotonic;
	int err;

	if (c == NULL)
		return fail(ENOMEM, "hald has no memory for another client");
	c->server = s;
	c->tenant = t;
	c->pid = peer->pid;
	c->pidfd = peer->pidfd;
	peer->pidfd = -1;
	c->bell = c->board_fd = -1;
	handles_begin(&c->handles, t);
	(void)pthread_mutex_init(&c->lock, NULL);
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&c->changed, &monotonic);
	err = clients_check(s, t);
	if (err == 0 && getrandom(&c->secret, sizeof(c->secret), 0) != sizeof(c->secret))
		err = fail(errno, "getrandom: %s", hal_strerror(errno));
	if (err == 0)
		err = board_make(c);
	if (err != 0) {
		client_free(c);
		return err;
	}
	t->users++;
	c->number = ++s->client_count;
	c->next = s->clients;
	s->clients = c;
	e.data.u64 = c->number;
	(void)epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->pidfd, &e);
	lockstep_join(c);
	LOG(HAL_LOG_INFO, "client %llu: process %d, tenant \"%s\"", U64(c->number),
	    c->pid, t->name);
	*out = c;
	return 0;
}

/* Find the client of that number, if `secret` is its own.  The caller holds the lock. */
static struct client *client_find(const struct server *s, uint64_t number,
				  uint64_t secret)
{
	struct client *c = s->clients;

	while (c != NULL && (c->number != number || c->secret != secret))
		c = c->next;
	return c;
}

/* Make ch a channel of c.  Return -ECANCELED if c ends, -EMFILE if it has too many. */
static int client_join(struct client *c, struct channel *ch)
{
	int err = 0;

	pthread_mutex_lock(&c->lock);
	if (c->closing) {
		err = fail(ECANCELED, "the client has ended");
	} else if (c->channel_count == CHANNELS_MAX) {
		err = fail(EMFILE,
			   "more than %d threads of a client call at the same time",
			   CHANNELS_MAX);
	} else {
		ch->client = c;
		ch->next = c->channels;
		c->channels = ch;
		c->channel_count++;
	}
	pthread_mutex_unlock(&c->lock);
	return err;
}

/* Take ch from its client.  Return whether it was the last. */
static bool client_leave(struct client *c, struct channel *ch)
{
	struct channel **at = &c->channels;
	bool last;

	pthread_mutex_lock(&c->lock);
	while (*at != ch)
		at = &(*at)->next;
	*at = ch->next;
	last = --c->channel_count == 0;
	c->closing |= last;
	pthread_mutex_unlock(&c->lock);
	return last;
}

/* Destroy c, whose last channel has closed. */
static void client_gone(struct client *c)
{
	struct server *s = c->server;
	struct tenant *t;

	(void)lockstep_enter(c, true);
	client_reap(c);
	lockstep_part(c);
	lockstep_leave(c);
	/* Its file may be slow.  All else that it had is free by now. */
	client_trace_close(c);
	client_ends(c, ENDED_KILLED);
	LOG(HAL_LOG_INFO, "client %llu: gone", U64(c->number));
	pthread_mutex_lock(&s->lock);
	client_unlist(c);
	t = c->tenant;
	atomic_fetch_add(&t->ended[atomic_load(&c->ended)], 1);
	pthread_mutex_unlock(&s->lock);
	client_free(c);
	tenant_put(s, t);
}

/* ---- channels ---------------------------------------------------------------------- */

/* Join the client whose numbers r has, which is to be of the process peer. */
static int hello_again(struct channel *ch, struct request *r, const struct peer *peer,
		       struct client **out)
{
	struct server *s = ch->server;
	struct client *c;
	int err;

	/* Under the lock, c does not go before ch has joined it. */
	pthread_mutex_lock(&s->lock);
	c = client_find(s, r->m.a[1], r->m.a[2]);
	err = c != NULL && c->pid == peer->pid ? client_join(c, ch)
					       : fail(ECANCELED, "the client has ended");
	pthread_mutex_unlock(&s->lock);
	*out = c;
	return err;
}

/* Make a client of the process peer, with ch as its first channel. */
static int hello_first(struct channel *ch, struct request *r, struct peer *peer,
		       struct client **out)
{
	struct server *s = ch->server;
	struct tenant *t = ch->tenant;
	struct client *c = NULL;
	const uint64_t now = hal_device_get_time(s->dev);
	/* In a container everybody may be root: its socket is a tenant's. */
	const bool is_operator = t == NULL && (peer->uid == 0 || peer->uid == geteuid());
	int err = 0;

	pthread_mutex_lock(&s->lock);
	if (t == NULL)
		t = tenant_find(s->tenants, peer);
	if (t == NULL && is_operator)
		t = s->operator_tenant;
	if (t == NULL)
		err = -EACCES;
	else if (t->removed)
		err = fail(EACCES, "tenant \"%s\" has been removed", t->name);
	if (err == 0)
		err = client_new(s, t, peer, &c);
	if (t != NULL)
		tenant_refused(t, err);
	if (c != NULL) {
		c->came_ns = now;
		err = client_join(c, ch);
	}
	pthread_mutex_unlock(&s->lock);
	if (err != 0 || c == NULL)
		return err;
	c->is_operator = is_operator;
	r->out_fd = c->board_fd;
	r->out_fd2 = c->bell;
	c->board_fd = -1;
	*out = c;
	return 0;
}

/* Handle FAR_HELLO: make a client, or join the one whose numbers are sent. */
static int hello(struct channel *ch, struct request *r)
{
	struct hal_device_info *info;
	struct client *c = NULL;
	struct peer peer;
	int err;

	if (r->m.a[0] != FAR_VERSION)
		return fail(EPROTO,
			    "the program's library speaks version %llu to hald, which "
			    "speaks %u; use libraries of one release",
			    U64(r->m.a[0]), FAR_VERSION);
	info = answer_room(r, sizeof(*info));
	if (info == NULL)
		return -ENOMEM;
	err = peer_read(ch->fd, &peer);
	if (err != 0)
		return err;
	err = r->m.a[1] != 0 ? hello_again(ch, r, &peer, &c)
			     : hello_first(ch, r, &peer, &c);
	peer_free(&peer);
	if (err != 0 || c == NULL)
		return err;
	atomic_store(&ch->known, true);
	r->m.a[1] = c->number;
	r->m.a[2] = c->secret;
	*info = ch->server->info;
	tenant_info(c, info);
	return 0;
}

/* Bring the payload of r, whose file descriptors are fds, into memory. */
static int take_payload(struct request *r, struct channel *ch, int fds[2], void **memory)
{
	int err;

	*memory = NULL;
	r->data = (const char *)ch->buffer;
	r->fd = fds[0];
	if (r->m.bytes <= FAR_INLINE) {
		if (fds[1] >= 0)
			(void)close(fds[1]);
		return 0;
	}
	r->fd = fds[1];
	if (fds[0] < 0)
		return fail(EPROTO, "the request lacks its data");
	*memory = malloc(r->m.bytes);
	err = *memory != NULL ? message_read(fds[0], *memory, r->m.bytes)
			      : fail(ENOMEM,
				     "hald has no memory for a request of %llu "
				     "bytes",
				     U64(r->m.bytes));
	(void)close(fds[0]);
	r->data = *memory;
	return err;
}

/* Send the answer of r with its result, or the error's text. */
static int answer(struct channel *ch, struct request *r, int result)
{
	const char *text = result < 0 ? hal_last_error() : NULL;
	const void *data = r->out;
	int fds[2], count = 0, memory = -1, err;

	r->m.result = result;
	r->m.bytes = r->out_bytes;
	if (text != NULL) {
		data = text;
		r->m.bytes = strlen(text);
	}
	if (r->m.bytes > FAR_INLINE) {
		memory = message_memory(data, r->m.bytes);
		if (memory < 0)
			return memory;
		fds[count++] = memory;
		data = NULL;
	}
	if (result >= 0 && r->out_fd >= 0)
		fds[count++] = r->out_fd;
	if (result >= 0 && memory < 0 && r->out_fd2 >= 0)
		fds[count++] = r->out_fd2;
	err = message_send(ch->fd, &r->m, data, fds, count);
	if (memory >= 0)
		(void)close(memory);
	return err;
}

/* Return whether r waits for its turn in a lockstep: not what a host function of its
 * client asks for, in whose time nothing else happens. */
static bool takes_turn(const struct request *r)
{
	bool inside;

	if (r->client->server->lockstep == NULL || r->m.op == FAR_CALLBACK ||
	    r->m.op == FAR_CALLED)
		return false;
	pthread_mutex_lock(&r->client->lock);
	inside = r->client->callbacks != NULL;
	pthread_mutex_unlock(&r->client->lock);
	return !inside;
}

/* Return whether r may last because its client waits for something. */
static bool waits(const struct request *r)
{
	return r->m.op == FAR_WAIT || r->m.op == FAR_COMPLETIONS_READ ||
	       r->m.op == FAR_CALLBACK || r->m.op == FAR_DEVICE_POLL;
}

bool channel_serve(struct channel *ch)
{
	struct request r = {.client = ch->client,
			    .socket = ch->fd,
			    .fd = -1,
			    .out_fd = -1,
			    .out_fd2 = -1};
	bool gone = false;
	void *memory;
	uint64_t sent_ns, tick;
	int fds[2], result;
	int err = message_receive_stamped(ch->fd, &r.m, ch->buffer, fds, &sent_ns);

	if (err != 0)
		return false;
	tick = tick_begin(ch->server, ch->client, sent_ns);
	result = take_payload(&r, ch, fds, &memory);
	if (result == 0 && (r.m.op == FAR_HELLO) != (ch->client == NULL)) {
		r.broken = true;
		result = fail(EPROTO, "hello is the first request, and only that");
	} else if (result == 0 && ch->client == NULL) {
		result = hello(ch, &r);
	} else if (result == 0) {
		tenant_turn(ch->client);
		gone = takes_turn(&r) && !lockstep_enter(ch->client, false);
		/* A request follows what its client has submitted before. */
		rings_take(ch->client);
		result = gone ? fail(ECANCELED, "the client has ended") : request_run(&r);
	}
	tick_answer(ch->server, ch->client, tick, waits(&r));
	err = answer(ch, &r, result);
	lockstep_leave(ch->client);
	free(memory);
	free(r.out);
	if (r.fd >= 0)
		(void)close(r.fd);
	if (r.out_fd >= 0)
		(void)close(r.out_fd);
	if (r.broken && ch->client != NULL) {
		LOG(HAL_LOG_WARNING, "client %llu is ended: %s", U64(ch->client->number),
		    hal_last_error());
		client_ends(ch->client, ENDED_PROTOCOL);
		client_end(ch->client);
	}
	return err == 0 && !r.broken && ch->client != NULL;
}

struct channel *channel_new(struct server *s, struct tenant *t, int fd)
{
	struct channel *ch = aligned_alloc(16, (sizeof(*ch) + 15) / 16 * 16);

	if (ch == NULL)
		return NULL;
	ch->server = s;
	ch->tenant = t;
	if (t != NULL) {
		pthread_mutex_lock(&s->lock);
		t->users++;
		pthread_mutex_unlock(&s->lock);
	}
	ch->client = NULL;
	ch->fd = fd;
	ch->accepted_ns = monotonic_ns();
	atomic_init(&ch->known, false);
	atomic_init(&ch->over, false);
	return ch;
}

void channel_end(struct channel *ch)
{
	struct client *c = ch->client;

	if (c != NULL && client_leave(c, ch))
		client_gone(c);
	(void)shutdown(ch->fd, SHUT_RDWR);
}

void channel_free(struct channel *ch)
{
	tenant_put(ch->server, ch->tenant);
	(void)close(ch->fd);
	free(ch);
}

static void *channel_main(void *arg)
{
	struct channel *ch = arg;
	int over_fd = ch->server->over_fd;

	while (channel_serve(ch))
		;
	channel_end(ch);
	/* The main thread frees it. */
	atomic_store(&ch->over, true);
	fd_signal(over_fd);
	return NULL;
}

/* Join the threads of channels that are over, or of all: their connections must have been
 * shut.  Main thread only. */
static void channels_join(struct server *s, bool all)
{
	struct channel **at = &s->channels;

	while (*at != NULL) {
		struct channel *ch = *at;

		if (!all && !atomic_load(&ch->over)) {
			at = &ch->next_of_all;
			continue;
		}
		*at = ch->next_of_all;
		s->channel_count--;
		(void)pthread_join(ch->thread, NULL);
		channel_free(ch);
	}
}

/* Shut connections that have been of no client for too long, and the oldest of too many.
 * Return for how many ms there is none to be shut; -1: there is none.  Main thread only.
 */
static int shut_unknown(struct server *s)
{
	const uint64_t now = monotonic_ns();
	struct rlimit descriptors = {0};
	uint32_t count = 0;
	int next = -1;

	(void)getrlimit(RLIMIT_NOFILE, &descriptors);
	/* Newest first. */
	for (const struct channel *ch = s->channels; ch != NULL; ch = ch->next_of_all) {
		const int age = (int)((now - ch->accepted_ns) / 1000000);
		int limit = UNKNOWN_MS;

		if (atomic_load(&ch->known) || atomic_load(&ch->over))
			continue;
		if (++count > UNKNOWN_MAX)
			limit = count > descriptors.rlim_cur / 4 ? 0 : HELLO_MS;
		if (age >= limit)
			(void)shutdown(ch->fd, SHUT_RDWR);
		else
			next = limit - age;
	}
	return next;
}

/* Start a thread for the connection fd. */
static void channel_start(struct server *s, struct tenant *t, int fd)
{
	const struct timeval patience = {.tv_sec = ANSWER_S};
	struct channel *ch = channel_new(s, t, fd);
	int err = ENOMEM;

	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (s->tick_ns != 0)
		(void)message_stamps(fd);
	channels_join(s, false);
	if (s->channel_count >= CONNECTIONS_MAX)
		err = EMFILE;
	else if (ch != NULL)
		err = pthread_create(&ch->thread, NULL, channel_main, ch);
	if (err == 0) {
		ch->next_of_all = s->channels;
		s->channels = ch;
		s->channel_count++;
		return;
	}
	LOG(HAL_LOG_WARNING, "a connection is refused: %s", hal_strerror(err));
	if (ch != NULL)
		channel_free(ch);
	else
		(void)close(fd);
}

/* ---- the server -------------------------------------------------------------------- */

static int watch(const struct server *s, int fd, int64_t what)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = (uint64_t)what};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) == 0
		       ? 0
		       : fail(errno, "epoll_ctl: %s", hal_strerror(errno));
}

/* Accept a connection.  If hald has no descriptor left for it, give up the one that it
 * keeps for this, and refuse the connection, which would else be reported again at once.
 */
static void take_connection(struct server *s, struct tenant *t)
{
	int socket = t != NULL ? t->fd : s->socket;
	int fd = accept4(socket, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0) {
		channel_start(s, t, fd);
	} else if (errno == EMFILE || errno == ENFILE) {
		LOG(HAL_LOG_WARNING, "a connection is refused: %s", hal_strerror(errno));
		(void)close(s->spare_fd);
		fd = accept4(socket, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			(void)close(fd);
		s->spare_fd = dup(s->stop_fd);
	}
}

/* There is a connection to the socket of hald, or of the tenant at `at`. */
static void connection(struct server *s, int64_t at)
{
	struct tenant *t = NULL;

	if (at <= AT_TENANT) {
		t = tenant_use_at(s, at);
		if (t == NULL)
			return; /* it has been removed meanwhile */
	}
	take_connection(s, t);
	tenant_put(s, t);
}

/* End all clients, and wait until they are gone. */
static void end_all(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	for (struct client *c = s->clients; c != NULL; c = c->next)
		client_end(c);
	pthread_mutex_unlock(&s->lock);
	/* Those of no client yet. */
	for (const struct channel *ch = s->channels; ch != NULL; ch = ch->next_of_all)
		(void)shutdown(ch->fd, SHUT_RDWR);
	channels_join(s, true);
}

/* Return the shorter of two timeouts in ms; -1: endless. */
static int sooner(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

/* Handle events until s->stop_fd is readable. */
static void serve_events(struct server *s)
{
	struct epoll_event e;

	for (;;) {
		int beat = service_beat(s);

		if (epoll_wait(s->epoll, &e, 1, sooner(beat, shut_unknown(s))) != 1)
			continue;
		if (e.data.u64 == (uint64_t)(int64_t)AT_STOP)
			return;
		if (e.data.u64 == (uint64_t)(int64_t)AT_OVER) {
			fd_silence(s->over_fd);
			channels_join(s, false);
			continue;
		}
		if ((int64_t)e.data.u64 > 0)
			client_end_number(s, e.data.u64); /* its process has ended */
		else
			connection(s, (int64_t)e.data.u64);
	}
}

/* Ask for as many descriptors as hald can get: a client takes five to ten. */
static void raise_limit(void)
{
	struct rlimit limit = {0};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int serve(struct server *s)
{
	int err;

	raise_limit();
	s->spare_fd = dup(s->stop_fd);
	s->over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return fail(errno, "epoll_create1: %s", hal_strerror(errno));
	err = bells_start(s);
	if (err != 0) {
		(void)close(s->epoll);
		return err;
	}
	err = watch(s, s->socket, AT_SOCKET);
	if (err == 0)
		err = watch(s, s->stop_fd, AT_STOP);
	if (err == 0)
		err = watch(s, s->over_fd, AT_OVER);
	for (struct tenant *t = s->tenants; err == 0 && t != NULL; t = t->next)
		err = tenant_watch(s, t);
	if (err == 0)
		err = service_ready(s);
	if (err == 0) {
		serve_events(s);
		service_stopping(&s->service);
	}
	end_all(s);
	bells_stop(s);
	(void)close(s->over_fd);
	(void)close(s->epoll);
	return err;
}
