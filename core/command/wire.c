/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - what an exported timeline and its import share; see wire.h. */
#define _GNU_SOURCE
#include "command/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hal/hal.h>

#include "util/compiler.h"
#include "util/error.h"
#include "util/fd.h"

#define HELLO_MAGIC   UINT64_C(0x454e494c454d4954)
#define HELLO_VERSION UINT64_C(1)
#define RING          UINT64_C(0x474e4952474e4952)
#define ERRNO_MAX     4095
/* Rings that wire_listen takes at once, so that a flood of them does not keep it busy. */
#define LISTEN_MAX 64

/* The message in the queue of the descriptor that the application passes on. */
struct hello {
	uint64_t magic, version;
};

/* One side's state.  .value is written before .err and .end, and read after them. */
struct half {
	_Atomic uint64_t value;
	_Atomic int64_t err;
	_Atomic uint64_t end;
	char text[WIRE_TEXT]; /* of .err, written before it */
};

struct wire_page {
	uint64_t rights; /* HAL_TIMELINE_* of the import */
	_Atomic uint64_t taken;
	struct half half[2];
};

/* ---- fork -------------------------------------------------------------------------- */

/* Guards all, and the time in which a socket is in no wire yet.  No other lock is taken
 * while it is held, and no call waits.  A fork waits for it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list all = {&all, &all};

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* Close the sockets in the child, which would keep the end of its parent from being
 * noticed. */
static void in_child(void)
{
	hal_list_for_each (it, &all)
		fd_close(container_of(it, struct wire, all)->fd);
	list_init(&all);
	pthread_mutex_unlock(&lock);
}

/* Register the handlers before any thread can hold the lock. */
__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- export ------------------------------------------------------------------------ */

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			fd_close(fds[i]);
}

/* Map the memory file fd.  Return NULL with errno. */
static struct wire_page *map_page(int fd)
{
	void *page = mmap(NULL, sizeof(struct wire_page), PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, 0);

	return page != MAP_FAILED ? page : NULL;
}

/* Make a page and the memory file *fd of it, which cannot shrink.  Return NULL with
 * errno. */
static struct wire_page *make_page(int *fd)
{
	*fd = memfd_create("hal-timeline", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0 || ftruncate(*fd, sizeof(struct wire_page)) != 0 ||
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return NULL;
	return map_page(*fd);
}

/* Control data with two descriptors. */
union control {
	char bytes[CMSG_SPACE(2 * sizeof(int))];
	struct cmsghdr align;
};

static struct msghdr message_of(struct iovec *to, union control *c)
{
	return (struct msghdr){.msg_iov = to,
			       .msg_iovlen = 1,
			       .msg_control = c,
			       .msg_controllen = sizeof(*c)};
}

/* Put the hello into the queue of the other end of fd.  Return 0, or -1 with errno. */
static int send_hello(int fd, const int fds[2])
{
	struct hello h = {HELLO_MAGIC, HELLO_VERSION};
	struct iovec from = {&h, sizeof(h)};
	union control c;
	struct msghdr m = message_of(&from, &c);

	memset(&c, 0, sizeof(c));
	c.align.cmsg_level = SOL_SOCKET;
	c.align.cmsg_type = SCM_RIGHTS;
	c.align.cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(&c.align), fds, 2 * sizeof(int));
	return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(h) ? 0 : -1;
}

static int socket_pair(int fds[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds);
}

int wire_export(struct wire *w, uint32_t rights, int *fd)
{
	/* The exporter's and the importer's socket; the application's and its other end,
	 * whose message stays when that is closed; the memory file. */
	int link[2] = {-1, -1}, app[2] = {-1, -1}, file = -1, err;
	bool made;

	pthread_mutex_lock(&lock);
	w->page = make_page(&file);
	made = w->page != NULL && socket_pair(link) == 0 && socket_pair(app) == 0;
	if (made) {
		const int fds[2] = {file, link[1]};

		w->page->rights = rights;
		made = send_hello(app[1], fds) == 0;
	}
	err = made ? 0 : errno;
	close_all((int[]){file, link[1], app[1]}, 3);
	if (made) {
		w->fd = link[0];
		w->own = 0;
		w->rights = rights;
		list_add_before(&all, &w->all);
		*fd = app[0];
	} else {
		close_all((int[]){link[0], app[0]}, 2);
		if (w->page != NULL)
			(void)munmap(w->page, sizeof(*w->page));
	}
	pthread_mutex_unlock(&lock);
	return err == 0
		       ? 0
		       : fail(err, "hal_timeline_export: memory and sockets to share: %s",
			      hal_strerror(err));
}

/* ---- import ------------------------------------------------------------------------ */

static COLD int not_exported(int fd)
{
	return fail(EINVAL,
		    "hal_timeline_import: descriptor %d is not of hal_timeline_export",
		    fd);
}

/* Write the descriptors that came with m to fds.  Return their number. */
static uint32_t take_fds(struct msghdr *m, int fds[2])
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);
	size_t bytes;

	if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	bytes = c->cmsg_len - CMSG_LEN(0);
	if (bytes > 2 * sizeof(int))
		bytes = 2 * sizeof(int);
	memcpy(fds, CMSG_DATA(c), bytes);
	return (uint32_t)(bytes / sizeof(int));
}

/* Copy the descriptors of the hello that lies in the queue of fd.  Return 0 or -errno. */
static int read_hello(int fd, int fds[2])
{
	struct hello h = {0};
	struct iovec to = {&h, sizeof(h)};
	union control c;
	struct msghdr m = message_of(&to, &c);
	ssize_t n = recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int err = 0;

	if (n < 0 && errno == EBADF)
		return fail(EBADF, "hal_timeline_import: descriptor %d is not open", fd);
	if (n < 0)
		return not_exported(fd);
	if (take_fds(&m, fds) != 2)
		err = EINVAL;
	if (n != sizeof(h) || h.magic != HELLO_MAGIC)
		return not_exported(fd);
	if (h.version != HELLO_VERSION)
		return fail(EPROTO,
			    "hal_timeline_import: descriptor %d is of another version of "
			    "the library: format %llu, this is %llu",
			    fd, U64(h.version), U64(HELLO_VERSION));
	if (err != 0 && (m.msg_flags & MSG_CTRUNC) != 0)
		return fail(EMFILE, "hal_timeline_import: too many open files");
	return err == 0 ? 0 : not_exported(fd);
}

/* Return whether fd is a socket as an exporter makes it. */
static bool is_link(int fd)
{
	int type = 0, domain = 0;
	socklen_t a = sizeof(type), b = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &a) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &b) == 0 &&
	       type == SOCK_SEQPACKET && domain == AF_UNIX;
}

/* Return whether fd is a memory file that holds a page and keeps its size. */
static bool is_page(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &st) == 0 &&
	       st.st_size >= (off_t)sizeof(struct wire_page);
}

/* Map the page of fds, and take the link.  Return 0 or -errno. */
static int take_link(struct wire *w, int fd, const int fds[2])
{
	if (!is_page(fds[0]) || !is_link(fds[1]))
		return not_exported(fd);
	w->page = map_page(fds[0]);
	if (w->page == NULL)
		return fail(errno, "hal_timeline_import: mmap: %s", hal_strerror(errno));
	w->rights = (uint32_t)w->page->rights;
	if (atomic_exchange(&w->page->taken, 1) == 0)
		return 0;
	(void)munmap(w->page, sizeof(*w->page));
	return fail(EBUSY,
		    "hal_timeline_import: descriptor %d has been imported; export the "
		    "timeline once for each import",
		    fd);
}

int wire_import(struct wire *w, int fd)
{
	int fds[2] = {-1, -1}, err;

	pthread_mutex_lock(&lock);
	err = read_hello(fd, fds);
	if (err == 0)
		err = take_link(w, fd, fds);
	if (err == 0) {
		w->fd = fds[1];
		w->own = 1;
		list_add_before(&all, &w->all);
		fds[1] = -1;
	}
	close_all(fds, 2);
	pthread_mutex_unlock(&lock);
	return err;
}

static void drop(struct wire *w)
{
	pthread_mutex_lock(&lock);
	list_take(&w->all);
	fd_close(w->fd);
	pthread_mutex_unlock(&lock);
	(void)munmap(w->page, sizeof(*w->page));
}

void wire_put_back(struct wire *w)
{
	atomic_store(&w->page->taken, 0);
	drop(w);
}

void wire_close(struct wire *w)
{
	/* Other processes may have the socket, too. */
	(void)shutdown(w->fd, SHUT_RDWR);
	drop(w);
}

/* ---- both sides -------------------------------------------------------------------- */

void wire_write(struct wire *w, const struct wire_state *s)
{
	struct half *h = &w->page->half[w->own];
	const uint64_t ring = RING;

	atomic_store(&h->value, s->value);
	if (s->err != 0) {
		memcpy(h->text, s->text, sizeof(h->text));
		atomic_store(&h->err, s->err);
	}
	atomic_store(&h->end, s->end);
	(void)send(w->fd, &ring, sizeof(ring), MSG_DONTWAIT | MSG_NOSIGNAL);
}

enum wire_heard wire_listen(const struct wire *w)
{
	enum wire_heard heard = WIRE_QUIET;

	for (int i = 0; i < LISTEN_MAX; i++) {
		uint64_t word[2] = {0};
		ssize_t n = recv(w->fd, word, sizeof(word), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return heard;
		if (n <= 0)
			return WIRE_GONE;
		if (n != sizeof(word[0]) || word[0] != RING)
			return WIRE_BROKEN;
		heard = WIRE_RUNG;
	}
	return heard;
}

void wire_read(const struct wire *w, struct wire_state *s)
{
	struct half *h = &w->page->half[1 - w->own];
	int64_t err = atomic_load(&h->err);

	s->err = 0;
	s->text[0] = '\0';
	if (err != 0) {
		s->err = err < 0 && err >= -ERRNO_MAX ? (int)err : -ECANCELED;
		memcpy(s->text, h->text, sizeof(s->text));
		s->text[sizeof(s->text) - 1] = '\0';
		for (char *c = s->text; *c != '\0'; c++)
			if ((unsigned char)*c < ' ' || *c == 127)
				*c = '?';
	}
	s->end = (uint32_t)atomic_load(&h->end);
	s->value = atomic_load(&h->value);
}
