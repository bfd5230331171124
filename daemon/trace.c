/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - traces that clients write.
 *
 * A client opens the file and sends its descriptor.  The engine never writes to it: a
 * thread of the trace does, or the client's own thread at the end.  The file of a client
 * may be slow or full; its trace then lacks events.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "api/tracing.h"
#include "requests.h"
#include "util/error.h"
#include "util/output.h"

/* Memory of all traces of a tenant that does not see all. */
#define TENANT_TRACE_BYTES (UINT64_C(16) << 20)

/* Check the file of a trace.  A process of the client may serve a FUSE file system: a
 * write there takes as long as that process likes, and not even SIGKILL ends it. */
static int file_check(struct request *r)
{
	const int flags = fcntl(r->fd, F_GETFL);
	struct statfs fs;

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) != 0)
		return broken(r, "the file of the trace is not open for writing");
	if (fstatfs(r->fd, &fs) != 0)
		return fail(errno, "hal_trace_start: %s", hal_strerror(errno));
	if (fs.f_type == FUSE_SUPER_MAGIC)
		return fail(ENOTSUP,
			    "hal_trace_start: hald writes no trace to a file system that "
			    "a program serves (FUSE); name a file elsewhere");
	if (!output_is_file(r->fd))
		return fail(EINVAL, "hal_trace_start: hald writes a trace to a regular "
				    "file only, not to a pipe or a device");
	return 0;
}

static int bytes_check(uint64_t bytes)
{
	if (bytes == 0 || (bytes >= TRACE_BYTES_MIN && bytes <= TRACE_BYTES_MAX))
		return 0;
	return fail(EINVAL, "trace_start: bytes is %llu; it must be %llu to %llu",
		    U64(bytes), U64(TRACE_BYTES_MIN), U64(TRACE_BYTES_MAX));
}

/* Count the memory of a trace of c. */
static int memory_take(struct client *c, uint64_t bytes, bool all)
{
	const uint64_t most = all ? TRACE_BYTES_MAX : TENANT_TRACE_BYTES;
	struct tenant *t = c->tenant;
	uint64_t has;

	pthread_mutex_lock(&t->lock);
	has = t->trace_bytes;
	if (has <= most && bytes <= most - has) {
		t->trace_bytes += bytes;
		c->trace_bytes = bytes;
	}
	pthread_mutex_unlock(&t->lock);
	return c->trace_bytes != 0
		       ? 0
		       : fail(EDQUOT,
			      "hal_trace_start: traces of tenant \"%s\" may have %llu "
			      "bytes of hald's memory in all; this one needs %llu, and "
			      "others have %llu",
			      t->name, U64(most), U64(bytes), U64(has));
}

static void memory_give_back(struct client *c)
{
	pthread_mutex_lock(&c->tenant->lock);
	c->tenant->trace_bytes -= c->trace_bytes;
	c->trace_bytes = 0;
	pthread_mutex_unlock(&c->tenant->lock);
}

/* Begin a trace of c in the file fd, unless that fails. */
static int start(struct client *c, int fd, uint64_t bytes, struct trace **out)
{
	/* The recorder is for whoever may also list all clients. */
	const bool all = c->tenant->sees_all || (bytes != 0 && c->is_operator);
	const struct trace_desc d = {
		.fd = fd,
		.tenant = all ? 0 : c->tenant->number,
		.bytes = bytes,
	};
	int err = memory_take(c, bytes != 0 ? bytes : TRACE_STREAM_BYTES, all);

	if (err != 0)
		return err;
	err = tracing_begin(c->server->dev, &d, out);
	if (err != 0)
		memory_give_back(c);
	return err;
}

/* Let c write a trace, if it writes none. */
static int claim(struct client *c)
{
	bool traces;

	pthread_mutex_lock(&c->lock);
	traces = c->traces;
	c->traces = true;
	pthread_mutex_unlock(&c->lock);
	return traces ? fail(EBUSY,
			     "hal_trace_start: this program writes a trace of "
			     "hald:%s already; hal_trace_stop ends it",
			     c->server->name)
		      : 0;
}

/* c writes t from now on; NULL: no trace. */
static void set_trace(struct client *c, struct trace *t)
{
	pthread_mutex_lock(&c->lock);
	c->trace = t;
	c->traces = t != NULL;
	pthread_mutex_unlock(&c->lock);
}

int do_trace_start(struct request *r)
{
	struct client *c = r->client;
	struct trace *t = NULL;
	int err, fd;

	if (r->fd < 0)
		return broken(r, "there is no file for the trace");
	err = bytes_check(r->m.a[0]);
	/* Its times would show what ticks hide. */
	if (err == 0 && !c->is_operator)
		err = tick_refuse(r, "hal_trace_start");
	if (err == 0)
		err = claim(c);
	if (err != 0)
		return err;
	err = file_check(r);
	fd = err == 0 ? fcntl(r->fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (err == 0 && fd < 0)
		err = fail(errno, "hal_trace_start: %s", hal_strerror(errno));
	if (err == 0)
		err = start(c, fd, r->m.a[0], &t);
	if (err != 0 && fd >= 0)
		(void)close(fd);
	set_trace(c, t);
	return err;
}

/* Take its trace from c.  NULL: it writes none. */
static struct trace *take_trace(struct client *c)
{
	struct trace *t;

	pthread_mutex_lock(&c->lock);
	t = c->trace;
	c->trace = NULL;
	pthread_mutex_unlock(&c->lock);
	return t;
}

static int close_trace(struct client *c, struct trace *t, struct trace_counts *counts)
{
	int err = trace_close(t, counts);

	memory_give_back(c);
	set_trace(c, NULL);
	return err;
}

int do_trace_stop(struct request *r)
{
	struct trace_counts counts = {0};
	int err = client_trace_stop(r->client, &counts);

	r->m.a[0] = counts.events;
	r->m.a[1] = counts.dropped;
	return err;
}

int client_trace_stop(struct client *c, struct trace_counts *counts)
{
	struct trace *t = take_trace(c);

	if (t == NULL)
		return fail(EINVAL, "hal_trace_stop: this program writes no trace");
	tracing_end(c->server->dev, t);
	return close_trace(c, t, counts);
}

void client_trace_end(struct client *c)
{
	if (c->trace != NULL)
		tracing_end(c->server->dev, c->trace);
}

void client_trace_close(struct client *c)
{
	struct trace *t = take_trace(c);

	if (t != NULL)
		(void)close_trace(c, t, NULL);
}
