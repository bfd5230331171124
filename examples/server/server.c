/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.c - share a device between two tenants that send requests over Unix sockets
 *
 *   HAL_HAL_DEVICE='npu:0?clock=real' HAL_LOG=info ./server DIRECTORY
 *
 * Each tenant has a socket in DIRECTORY, a partition, and two queues in it: one for
 * requests with a deadline, one for the others.  Data goes through the queues, so that
 * the server never waits for a copy.  server.h says what a client sends and gets.
 * SIGUSR1 prints statistics.  SIGTERM ends the server when all requests are answered.
 */
#define _GNU_SOURCE
#include "server.h"

#include <hal/hal.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define BYTES   ((uint64_t)SERVER_WORDS * 4)
#define TENANTS 2
#define CLIENTS 16

/* For start-up and shutdown, where an error ends the program. */
#define TRY(call)                                                                        \
	((call) < 0 ? (fprintf(stderr, "server: %s\n", hal_last_error()), exit(1))       \
		    : (void)0)

enum { URGENT, RELAXED, QUEUES };

struct tenant {
	const char *name;
	int listener;
	struct hal_partition *part;
	struct hal_queue *queues[QUEUES];
};

/* A connection: one request at a time, in memory of its own. */
struct client {
	int fd; /* -1: this entry is free */
	enum { IDLE, WAITING, SUBMITTED } state;
	struct tenant *tenant;
	struct server_request request;
	struct hal_buffer *host, *in, *out;
	void *words; /* in .host */
};

static struct hal_device *dev;
static struct hal_completions *ring;
static struct tenant tenants[TENANTS] = {{.name = "alice"}, {.name = "bob"}};
static struct client clients[CLIENTS];

static int make_queue(struct tenant *t, int which)
{
	struct hal_queue_desc desc = HAL_INIT(hal_queue_desc);

	desc.service_class = which == URGENT ? HAL_CLASS_LATENCY : HAL_CLASS_BEST_EFFORT;
	desc.completions = ring;
	snprintf(desc.name, sizeof(desc.name), "%s-%s", t->name,
		 which == URGENT ? "urgent" : "relaxed");
	return hal_queue_create(t->part, &desc, &t->queues[which]);
}

/* Replace a queue that has failed.  Return -EBUSY while work of it is on the device. */
static int replace_queue(struct tenant *t, int which)
{
	struct hal_fault_info fault = HAL_INIT(hal_fault_info);
	int rc;

	TRY(hal_queue_get_fault(t->queues[which], &fault));
	if (fault.status == 0)
		return 0; /* it is the new queue already */
	rc = hal_queue_destroy(t->queues[which]);
	if (rc < 0)
		return rc;
	fprintf(stderr, "server: replaced: %s\n", fault.text);
	t->queues[which] = NULL;
	return make_queue(t, which);
}

static void make_tenant(struct tenant *t, const char *directory, uint32_t units)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	desc.units_floor = units;
	snprintf(desc.name, sizeof(desc.name), "%s", t->name);
	desc.memory_bytes = CLIENTS * 4 * BYTES;
	TRY(hal_partition_create(dev, &desc, &t->part));
	for (int i = 0; i < QUEUES; i++)
		TRY(make_queue(t, i));
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/%s", directory, t->name);
	unlink(at.sun_path);
	t->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	if (t->listener < 0 || bind(t->listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(t->listener, CLIENTS)) {
		perror(at.sun_path);
		exit(1);
	}
}

static void leave(struct client *c)
{
	close(c->fd);
	c->fd = -1;
	TRY(hal_buffer_destroy(c->host));
	TRY(hal_buffer_destroy(c->in));
	TRY(hal_buffer_destroy(c->out));
}

static void on_connection(struct tenant *t, struct client *c)
{
	struct hal_buffer_desc desc = HAL_INIT(hal_buffer_desc);

	*c = (struct client){.tenant = t};
	c->fd = accept4(t->listener, NULL, NULL, SOCK_NONBLOCK);
	if (c->fd < 0)
		return;
	desc.bytes = BYTES;
	snprintf(desc.name, sizeof(desc.name), "%s-%d", t->name, c->fd);
	if (hal_host_alloc(t->part, BYTES, &c->host, &c->words) < 0 ||
	    hal_buffer_create(t->part, &desc, &c->in) < 0 ||
	    hal_buffer_create(t->part, &desc, &c->out) < 0) {
		fprintf(stderr, "server: %s: %s\n", desc.name, hal_last_error());
		leave(c);
	}
}

static void answer(struct client *c, int status, uint64_t ns)
{
	struct server_answer a = {.status = status, .ns = ns};
	struct iovec parts[] = {{&a, sizeof(a)}, {c->words, c->request.words * 4}};

	c->state = IDLE;
	if (writev(c->fd, parts, status < 0 ? 1 : 2) < 0)
		leave(c); /* the client has gone, or does not read */
}

static void submit(struct client *c)
{
	struct hal_submit_desc work = HAL_INIT(hal_submit_desc);
	const struct server_request *r = &c->request;
	struct hal_queue **queue = &c->tenant->queues[r->deadline_us ? URGENT : RELAXED];
	struct hal_cmd cmds[3];
	uint32_t n = 0, bytes = r->words * 4;
	int rc;

	if (r->op == SERVER_FILL) {
		cmds[n++] = hal_cmd_fill(c->out, 0, bytes, r->value);
	} else {
		cmds[n++] = hal_cmd_write(c->in, 0, c->host, 0, bytes);
		cmds[n++] = hal_cmd_copy(c->out, 0, c->in, 0, bytes);
	}
	cmds[n++] = hal_cmd_read(c->host, 0, c->out, 0, bytes);
	work.cmds = cmds;
	work.cmd_count = n;
	work.deadline_ns = UINT64_C(1000) * r->deadline_us;
	work.tag = (uint64_t)(c - clients);
	c->state = SUBMITTED;
	rc = hal_submit(*queue, &work, NULL);
	if (rc == -EIO &&
	    replace_queue(c->tenant, r->deadline_us ? URGENT : RELAXED) == 0)
		rc = hal_submit(*queue, &work, NULL);
	if (rc == -EAGAIN || rc == -EIO) {
		c->state = WAITING; /* on_completions() submits it again */
	} else if (rc < 0) {
		fprintf(stderr, "server: %s: %s\n", c->tenant->name, hal_last_error());
		answer(c, rc, 0);
	}
}

static void on_request(struct client *c)
{
	struct iovec parts[] = {{&c->request, sizeof(c->request)}, {c->words, BYTES}};
	ssize_t got = readv(c->fd, parts, 2);
	const struct server_request *r = &c->request;

	if (got < (ssize_t)sizeof(*r) || r->words == 0 || r->words > SERVER_WORDS ||
	    r->op > SERVER_COPY)
		leave(c);
	else
		submit(c);
}

/* Answer what has ended.  Return -ENODEV after the last end of a lost device, else 0. */
static int on_completions(void)
{
	struct hal_completion ends[CLIENTS];
	int count = hal_completions_read(ring, ends, CLIENTS, 0);

	if (count == -ENODEV)
		return count;
	TRY(count);
	for (int i = 0; i < count; i++) {
		struct client *c = &clients[ends[i].tag];

		if (ends[i].status == -ECANCELED) /* an earlier request failed */
			c->state = WAITING;
		else
			answer(c, ends[i].status, ends[i].end_ns - ends[i].submit_ns);
	}
	for (int i = 0; i < CLIENTS; i++)
		if (clients[i].fd >= 0 && clients[i].state == WAITING)
			submit(&clients[i]);
	return 0;
}

static void report(void)
{
	for (struct tenant *t = tenants; t < tenants + TENANTS; t++) {
		struct hal_stats s = HAL_INIT(hal_stats);

		TRY(hal_partition_get_stats(t->part, &s));
		printf("%s: %" PRIu64 " requests, p99 %.1f us, %" PRIu64
		       " deadlines missed, %" PRIu64 " commands failed\n",
		       t->name, s.requests, (double)s.request_p99_ns / 1e3,
		       s.deadline_misses, s.failed);
	}
	fflush(stdout);
}

/* Return 0 after SIGTERM, with all requests answered; -ENODEV if the device is lost. */
static int serve(int signals)
{
	struct pollfd fds[2 + TENANTS + CLIENTS] = {{.fd = signals},
						    {.fd = hal_completions_get_fd(ring)}};
	struct pollfd *listeners = fds + 2, *connections = listeners + TENANTS;
	struct signalfd_siginfo info;
	int draining = 0, rc = 0;

	TRY(fds[1].fd);
	while (rc == 0) {
		struct client *vacant = NULL;
		int busy = 0;

		for (int i = 0; i < CLIENTS; i++) {
			struct client *c = &clients[i];

			if (c->fd < 0)
				vacant = c;
			busy += c->fd >= 0 && c->state != IDLE;
			/* poll() ignores -1 */
			connections[i].fd = c->state == IDLE && !draining ? c->fd : -1;
		}
		if (draining && !busy)
			return 0;
		for (int i = 0; i < TENANTS; i++)
			listeners[i].fd = vacant && !draining ? tenants[i].listener : -1;
		for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
			fds[i].events = POLLIN;
		if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0)
			return -errno;
		for (int i = 0; i < CLIENTS; i++)
			if (connections[i].revents)
				on_request(&clients[i]);
		for (int i = 0; i < TENANTS; i++)
			if (listeners[i].revents && vacant->fd < 0)
				on_connection(&tenants[i], vacant);
		if (fds[1].revents)
			rc = on_completions();
		if (fds[0].revents && read(signals, &info, sizeof(info)) > 0) {
			draining |= info.ssi_signo == SIGTERM;
			if (!draining)
				report();
		}
	}
	return rc;
}

static void stop(void)
{
	for (int i = 0; i < CLIENTS; i++)
		if (clients[i].fd >= 0)
			leave(&clients[i]);
	for (struct tenant *t = tenants; t < tenants + TENANTS; t++) {
		for (int i = 0; i < QUEUES; i++)
			TRY(hal_queue_destroy(t->queues[i]));
		TRY(hal_partition_destroy(t->part));
		close(t->listener);
	}
	TRY(hal_completions_destroy(ring));
	TRY(hal_close(dev));
}

int main(int argc, char **argv)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	sigset_t set;
	int rc, signals;

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, 0);
	for (int i = 0; i < CLIENTS; i++)
		clients[i].fd = -1;
	TRY(hal_open(NULL, NULL, &dev));
	TRY(hal_device_get_info(dev, &info));
	TRY(hal_completions_create(dev, CLIENTS, &ring));
	for (int i = 0; i < TENANTS; i++)
		make_tenant(&tenants[i], argv[1],
			    info.unit_rows * info.unit_cols / TENANTS);
	rc = serve(signals);
	if (rc < 0)
		fprintf(stderr, "server: %s\n", hal_strerror(rc));
	report();
	stop();
	close(signals);
	return rc < 0;
}
