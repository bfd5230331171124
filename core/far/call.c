/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - channels to hald, and a request with its answer. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "far/internal.h"
#include "far/message.h"
#include "util/caller.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/futex.h"
#include "util/log.h"

/* How often far_alive looks. */
#define ALIVE_NS UINT64_C(1000000)

/* Longest time for which a cancelled thread waits for hald: hald looks every 20 ms
 * whether the thread is there. */
#define PATIENCE_US 100000

#define GONE        "hald has ended, or has closed the connection of this program"

/* A connection.  One thread at a time uses it. */
struct channel {
	struct channel *next; /* in the pool of the device */
	int fd;
	unsigned char buffer[FAR_INLINE];
};

static void channel_close(struct channel *ch)
{
	(void)close(ch->fd);
	free(ch);
}

/* Note that hald has ended, and fail with -ENODEV. */
static int lost(struct far_device *dev)
{
	atomic_store(&dev->serving, ~FAR_OPEN);
	if (!atomic_exchange(&dev->lost, true))
		LOG(HAL_LOG_ERROR, "%s: " GONE, dev->name);
	return fail(ENODEV, "%s: " GONE, dev->name);
}

/* Fill in the message for c.  A long payload goes into *memory, a memfd. */
static int message_out(struct far_message *m, const struct far_call *c, int *memory)
{
	memset(m, 0, sizeof(*m));
	m->op = c->op;
	m->bytes = c->out_bytes;
	memcpy(m->a, c->a, sizeof(m->a));
	*memory = -1;
	if (c->out_bytes <= FAR_INLINE)
		return 0;
	if (c->out_bytes > FAR_PAYLOAD_MAX)
		return fail(E2BIG, "%llu bytes are more than hald takes at once, %u",
			    U64(c->out_bytes), FAR_PAYLOAD_MAX);
	*memory = message_memory(c->out, c->out_bytes);
	return *memory < 0 ? *memory : 0;
}

/* Take the payload of the answer m, which is inline or in the memfd `memory`. */
static int payload_in(struct far_call *c, const struct far_message *m,
		      const unsigned char *data, int memory)
{
	if (c->in == NULL && c->in_any && m->bytes > 0) {
		c->in = malloc(m->bytes);
		if (c->in == NULL)
			return fail(ENOMEM, "no memory for an answer of %llu bytes",
				    U64(m->bytes));
		c->in_max = m->bytes;
	}
	c->in_bytes = m->bytes;
	if (m->bytes > c->in_max)
		return fail(EPROTO, "hald answers with %llu bytes instead of %llu",
			    U64(m->bytes), U64(c->in_max));
	if (m->bytes == 0 || c->in == NULL)
		return 0;
	if (memory < 0) {
		memcpy(c->in, data, m->bytes);
		return 0;
	}
	return message_read(memory, c->in, m->bytes);
}

/* Handle the answer m.  Return what the function returned. */
static int answered(struct far_call *c, const struct far_message *m,
		    const unsigned char *data, const int fds[2])
{
	bool in_memory = m->bytes > FAR_INLINE;
	int memory = in_memory ? fds[0] : -1, err = 0;

	memcpy(c->a, m->a, sizeof(c->a));
	if (m->result < 0 && !in_memory)
		(void)fail(m->result, "%.*s", (int)m->bytes, (const char *)data);
	else if (in_memory && memory < 0)
		err = fail(EPROTO, "hald's answer lacks its data");
	else
		err = payload_in(c, m, data, memory);
	c->in_fd = in_memory ? fds[1] : fds[0];
	c->in_fd2 = in_memory ? -1 : fds[1];
	if (memory >= 0)
		(void)close(memory);
	if (err == 0 && m->result >= 0)
		return m->result;
	if (c->in_fd >= 0)
		(void)close(c->in_fd);
	if (c->in_fd2 >= 0)
		(void)close(c->in_fd2);
	c->in_fd = c->in_fd2 = -1;
	return err != 0 ? err : m->result;
}

/* Send c on ch and take the answer.  Set *broken if ch cannot be used any more. */
static int exchange(struct far_device *dev, struct channel *ch, struct far_call *c,
		    bool *broken)
{
	struct far_message m;
	int fds[2], count = 0, memory;
	int err = message_out(&m, c, &memory);

	*broken = false;
	if (err != 0)
		return err;
	if (memory >= 0)
		fds[count++] = memory;
	if (c->out_fd > 0)
		fds[count++] = c->out_fd - 1;
	err = message_send(ch->fd, &m, memory < 0 ? c->out : NULL, fds, count);
	if (memory >= 0)
		(void)close(memory);
	if (err == 0)
		err = message_receive(ch->fd, &m, ch->buffer, fds);
	if (err != 0) {
		*broken = true;
		return lost(dev);
	}
	return answered(c, &m, ch->buffer, fds);
}

static int channel_connect(const struct far_device *dev, int fd)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	memcpy(a.sun_path, dev->path, sizeof(a.sun_path));
	if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0)
		return 0;
	if (errno == ENOENT || errno == ECONNREFUSED)
		return fail(
			ENODEV,
			"%s: no hald serves it: connect to %s: %s; start \"hald\", or "
			"set hal.broker_dir to the folder of its socket",
			dev->name, dev->path, hal_strerror(errno));
	if (errno == EACCES)
		return fail(
			EACCES,
			"%s: connect to %s: %s; ask who runs hald for the right to, or "
			"for a socket of your own",
			dev->name, dev->path, hal_strerror(EACCES));
	return fail(errno, "%s: connect to %s: %s", dev->name, dev->path,
		    hal_strerror(errno));
}

/* Open another channel. */
static int channel_open(struct far_device *dev, struct channel **out)
{
	struct far_call c = {.op = FAR_HELLO,
			     .a = {FAR_VERSION, dev->client[0], dev->client[1]},
			     .in = &dev->info,
			     .in_max = sizeof(dev->info)};
	struct channel *ch = malloc(sizeof(*ch));
	struct hal_device_info info;
	bool broken = false;
	int err;

	if (ch == NULL)
		return fail(ENOMEM, "no memory for a channel to hald");
	ch->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (ch->fd < 0) {
		free(ch);
		return fail(errno, "socket: %s", hal_strerror(errno));
	}
	if (dev->client[0] != 0)
		c.in = &info; /* the first one's stays */
	err = channel_connect(dev, ch->fd);
	if (err == 0)
		err = exchange(dev, ch, &c, &broken);
	if (err != 0) {
		channel_close(ch);
		return err;
	}
	/* By the first one, before other threads know the device. */
	if (dev->client[0] == 0) {
		dev->client[0] = c.a[1];
		dev->client[1] = c.a[2];
		far_board_map(dev, c.in_fd, c.in_fd2);
	} else if (c.in_fd >= 0) {
		(void)close(c.in_fd);
	}
	*out = ch;
	return 0;
}

bool far_alive(struct far_device *dev)
{
	uint64_t now = monotonic_ns();
	bool gone = false;
	int cancel;

	/* As often as a request would find out, if the caller made one instead. */
	if (now - atomic_load(&dev->alive_ns) < ALIVE_NS)
		return !atomic_load(&dev->lost);
	atomic_store(&dev->alive_ns, now);
	cancel = cancel_hold();
	pthread_mutex_lock(&dev->lock);
	if (dev->idle != NULL) {
		struct pollfd p = {.fd = dev->idle->fd, .events = POLLRDHUP};

		gone = poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP)) != 0;
	}
	pthread_mutex_unlock(&dev->lock);
	cancel_release(cancel);
	return !gone || lost(dev) == 0;
}

/* Take a channel that no other thread uses. */
static int channel_take(struct far_device *dev, struct channel **out)
{
	pthread_mutex_lock(&dev->lock);
	*out = dev->idle;
	if (*out != NULL)
		dev->idle = (*out)->next;
	pthread_mutex_unlock(&dev->lock);
	return *out != NULL ? 0 : channel_open(dev, out);
}

static void channel_give(struct far_device *dev, struct channel *ch)
{
	pthread_mutex_lock(&dev->lock);
	ch->next = dev->idle;
	dev->idle = ch;
	pthread_mutex_unlock(&dev->lock);
}

/* Close a channel whose answer is still to come, because the thread that waits for it is
 * cancelled.  hald ends a client with its last channel, so there is another one first.
 * Then return once hald has let go of what the request used, or PATIENCE_US later. */
static void channel_abandon(struct far_device *dev, struct channel *ch)
{
	const struct timeval patience = {.tv_usec = PATIENCE_US};
	struct channel *next = NULL;

	if (channel_open(dev, &next) == 0 && next != NULL)
		channel_give(dev, next);
	(void)setsockopt(ch->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	(void)shutdown(ch->fd, SHUT_WR);
	while (recv(ch->fd, ch->buffer, sizeof(ch->buffer), 0) > 0)
		;
	channel_close(ch);
}

/* What a thread that waits for an answer uses. */
struct waiting {
	struct far_device *dev;
	struct channel *ch;
};

static void cancelled(void *arg)
{
	const struct waiting *w = arg;

	channel_abandon(w->dev, w->ch);
}

int far_ask_wait(struct far_device *dev, struct far_call *c)
{
	struct waiting w = {.dev = dev};
	bool broken = false;
	int err;

	c->in_fd = c->in_fd2 = -1;
	if (atomic_load(&dev->lost))
		return lost(dev);
	err = channel_take(dev, &w.ch);
	if (w.ch == NULL)
		return err;
	pthread_cleanup_push(cancelled, &w);
	err = exchange(dev, w.ch, c, &broken);
	pthread_cleanup_pop(0);
	if (broken)
		channel_close(w.ch);
	else
		channel_give(dev, w.ch);
	return err;
}

int far_ask(struct far_device *dev, struct far_call *c)
{
	int cancel = cancel_hold(), err = far_ask_wait(dev, c);

	cancel_release(cancel);
	return err;
}

int far_connect(struct far_device *dev)
{
	struct channel *ch = NULL;
	int err = channel_open(dev, &ch);

	if (ch != NULL)
		channel_give(dev, ch);
	return err;
}

void far_disconnect(struct far_device *dev)
{
	while (dev->idle != NULL) {
		struct channel *ch = dev->idle;

		dev->idle = ch->next;
		channel_close(ch);
	}
}
