/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - send and receive the messages of wire.h; see message.h. */
#define _GNU_SOURCE
#include "far/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "util/compiler.h"
#include "util/error.h"

enum { FDS_MAX = 2 };

int message_send(int fd, const struct far_message *m, const void *data, const int *fds,
		 int count)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	/* sendmsg reads through these and writes nothing. */
	union {
		const void *in;
		void *out;
	} head = {.in = m}, body = {.in = data};
	struct iovec parts[2] = {{head.out, sizeof(*m)}, {body.out, m->bytes}};
	struct msghdr h = {.msg_iov = parts,
			   .msg_iovlen = data != NULL && m->bytes > 0 ? 2 : 1};
	ssize_t n;

	if (count > 0) {
		memset(&control, 0, sizeof(control));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, (size_t)count * sizeof(int));
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
	}
	do
		n = sendmsg(fd, &h, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* Copy the file descriptors in h to fds.  Close those that are too many, and return
 * false if there were such. */
static bool take_fds(struct msghdr *h, int fds[FDS_MAX])
{
	bool fit = (h->msg_flags & MSG_CTRUNC) == 0;
	int taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR(h, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i + sizeof(int) <= bytes; i += sizeof(int)) {
			int one;

			memcpy(&one, CMSG_DATA(c) + i, sizeof(one));
			if (taken < FDS_MAX) {
				fds[taken++] = one;
				continue;
			}
			(void)close(one);
			fit = false;
		}
	}
	return fit;
}

/* Return the kernel's stamp in h; 0: it has none. */
static uint64_t stamp_of(struct msghdr *h)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR(h, c)) {
		struct timespec t;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&t, CMSG_DATA(c), sizeof(t));
		return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
	}
	return 0;
}

int message_stamps(int fd)
{
	const int on = 1;

	return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) == 0 ? 0
										: -errno;
}

int message_receive_stamped(int fd, struct far_message *m, void *data, int fds[2],
			    uint64_t *sent_ns)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int)) +
			  CMSG_SPACE(sizeof(struct timespec))];
	} control;
	struct iovec parts[2] = {{m, sizeof(*m)}, {data, FAR_INLINE}};
	struct msghdr h = {.msg_iov = parts,
			   .msg_iovlen = 2,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	bool fit;
	ssize_t n;

	fds[0] = fds[1] = -1;
	do
		n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ENOTCONN;
	*sent_ns = stamp_of(&h);
	fit = take_fds(&h, fds);
	if (fit && (h.msg_flags & MSG_TRUNC) == 0 && n >= (ssize_t)sizeof(*m) &&
	    m->bytes <= FAR_PAYLOAD_MAX &&
	    (size_t)n == sizeof(*m) + (m->bytes <= FAR_INLINE ? m->bytes : 0))
		return 0;
	for (int i = 0; i < FDS_MAX; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	return -EPROTO;
}

int message_receive(int fd, struct far_message *m, void *data, int fds[2])
{
	uint64_t sent_ns;

	return message_receive_stamped(fd, m, data, fds, &sent_ns);
}

int message_memory(const void *data, uint64_t bytes)
{
	int fd = memfd_create("hal-message", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const char *from = data;
	uint64_t done = 0;

	if (fd < 0)
		return fail(errno, "memfd_create: %s", hal_strerror(errno));
	while (done < bytes) {
		ssize_t n = write(fd, from + done, bytes - done);

		if (n < 0 && errno != EINTR) {
			int err = fail(errno, "memory for a message of %llu bytes: %s",
				       U64(bytes), hal_strerror(errno));

			(void)close(fd);
			return err;
		}
		done += n > 0 ? (uint64_t)n : 0;
	}
	return fd;
}

int message_read(int memory, void *data, uint64_t bytes)
{
	char *to = data;
	uint64_t done = 0;

	/* Only a memfd has seals, and only a memfd never blocks a read. */
	if (fcntl(memory, F_GET_SEALS) < 0)
		return fail(EPROTO, "the data of a message is not in a memfd");
	while (done < bytes) {
		ssize_t n = pread(memory, to + done, bytes - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(EPROTO,
				    "the data of a message has %llu of %llu bytes",
				    U64(done), U64(bytes));
		done += (uint64_t)n;
	}
	return 0;
}
