/* SPDX-License-Identifier: Apache-2.0 */
/* Accounting and the trace: every command is somewhere, sums agree, the file is JSON. */
#define _GNU_SOURCE
#include "conformance.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <yajl/yajl_tree.h>

#include "plugin.h"

struct tenant {
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_buffer *b;
};

static int tenant(struct conf *c, uint32_t i, uint32_t n, struct tenant *t)
{
	STEP(conf_share(c, i, n, &t->p));
	STEP(conf_queue(c, t->p, &t->q));
	return conf_buffer(c, t->p, 4096, &t->b);
}

static int launch(struct conf *c, struct tenant *t, const char *name,
		  struct hal_point *done)
{
	struct hal_arg arg = {.buffer = t->b, .bytes = 64};
	struct hal_kernel *k;
	struct hal_cmd cmd;

	STEP(conf_kernel(c, name, &k));
	cmd = hal_cmd_launch(k, &arg, 1);
	return conf_submit(c, t->q, &cmd, 1, done);
}

static int stats(struct conf *c, struct hal_queue *q, struct hal_stats *s)
{
	*s = (struct hal_stats)HAL_INIT(hal_stats);
	OK(hal_queue_get_stats(q, s));
	return 0;
}

static int counts(struct conf *c)
{
	struct hal_stats s;
	struct hal_point done;
	struct hal_cmd cmd[4];
	struct tenant t;
	uint32_t i;

	STEP(tenant(c, 0, 1, &t));
	for (i = 0; i < 4; i++)
		cmd[i] = hal_cmd_fill(t.b, 0, 4096, i);
	for (i = 0; i < 5; i++)
		STEP(conf_submit(c, t.q, cmd, 4, &done));
	STEP(conf_wait(c, done));
	STEP(stats(c, t.q, &s));
	EQ(s.submitted, 20);
	EQ(s.completed, 20);
	EQ(s.failed + s.dropped + s.suspends + s.replayed, 0);
	CHECK(s.busy_ns > 0);
	CHECK(s.busy_ns <= s.now_ns);
	CHECK(s.latency_max_ns > 0);
	return 0;
}

static int in_flight(struct conf *c)
{
	struct hal_stats s;
	struct hal_timeline *gate;
	struct hal_point open, done;
	struct hal_cmd cmd;
	struct tenant t;

	STEP(tenant(c, 0, 1, &t));
	STEP(conf_timeline(c, &gate));
	open = (struct hal_point){gate, 1};
	cmd = hal_cmd_fill(t.b, 0, 64, 1);
	STEP(conf_submit_ws(c, t.q, &cmd, 1, &open, NULL, &done));
	CHECK(hal_device_poll(c->dev, 1000) >= 0);
	STEP(stats(c, t.q, &s));
	EQ(s.submitted, 1);
	EQ(s.completed + s.failed + s.dropped, 0);
	OK(hal_timeline_signal(gate, 1));
	STEP(conf_wait(c, done));
	STEP(stats(c, t.q, &s));
	EQ(s.completed, 1);
	return 0;
}

static int failed_and_dropped(struct conf *c)
{
	struct hal_stats s;
	struct hal_point done;
	struct hal_arg arg;
	struct hal_kernel *k;
	struct hal_cmd cmd[4];
	struct tenant t;

	STEP(tenant(c, 0, 1, &t));
	STEP(conf_kernel(c, "wild", &k));
	arg = (struct hal_arg){.buffer = t.b, .bytes = 64};
	cmd[0] = hal_cmd_fill(t.b, 0, 64, 1);
	cmd[1] = hal_cmd_launch(k, &arg, 1);
	cmd[2] = hal_cmd_fill(t.b, 0, 64, 2);
	cmd[3] = hal_cmd_fill(t.b, 0, 64, 3);
	STEP(conf_submit(c, t.q, cmd, 4, &done));
	ERR(conf_wait_raw(done), -EIO);
	/* The last may be told of a moment after the first error. */
	do {
		CHECK(hal_device_poll(c->dev, 1000) >= 0);
		STEP(stats(c, t.q, &s));
	} while (s.completed + s.failed + s.dropped < 4);
	EQ(s.submitted, 4);
	EQ(s.completed, 1);
	EQ(s.failed, 1);
	EQ(s.dropped, 2);
	return 0;
}

static int histogram(struct conf *c)
{
	struct hal_stats s;
	struct hal_point done;
	struct hal_cmd cmd;
	struct tenant t;
	uint64_t sum = 0, last = 0, i;

	STEP(tenant(c, 0, 1, &t));
	for (i = 0; i < 32; i++) {
		cmd = hal_cmd_fill(t.b, 0, 4 + 4 * i, 1);
		STEP(conf_submit(c, t.q, &cmd, 1, &done));
	}
	STEP(conf_wait(c, done));
	STEP(stats(c, t.q, &s));
	for (i = 0; i < HAL_HISTOGRAM_BUCKETS; i++) {
		sum += s.latency_histogram[i];
		if (s.latency_histogram[i])
			last = i;
	}
	EQ(sum, s.completed);
	/* The longest is in the last bucket that is not empty. */
	CHECK(s.latency_max_ns >> last >= 1 || last == 0);
	CHECK(s.latency_max_ns >> last < 2);
	return 0;
}

static int busy(struct conf *c)
{
	struct hal_stats s;
	struct hal_point done;
	struct hal_kernel *k;
	struct hal_cmd cmd[2];
	struct hal_arg arg;
	struct tenant t;

	STEP(tenant(c, 0, 1, &t));
	STEP(conf_kernel(c, "spin", &k));
	arg = (struct hal_arg){.buffer = t.b, .bytes = 64};
	cmd[0] = hal_cmd_launch(k, &arg, 1);
	cmd[1] = cmd[0];
	STEP(conf_submit(c, t.q, cmd, 2, &done));
	STEP(conf_wait(c, done));
	STEP(stats(c, t.q, &s));
	CHECK(s.busy_ns >= UINT64_C(2) * CONF_SPIN_NS);
	CHECK(s.latency_max_ns >= UINT64_C(2) * CONF_SPIN_NS);
	return 0;
}

/* Two queues of one partition become ready at once: one stands while the other runs. */
static int queueing(struct conf *c)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_timeline *gate;
	struct hal_point open, done[2];
	struct hal_kernel *k;
	struct hal_queue *second;
	struct hal_arg arg;
	struct hal_cmd cmd;
	struct tenant t;

	STEP(tenant(c, 0, 1, &t));
	STEP(conf_queue(c, t.p, &second));
	STEP(conf_timeline(c, &gate));
	STEP(conf_kernel(c, "spin", &k));
	open = (struct hal_point){gate, 1};
	arg = (struct hal_arg){.buffer = t.b, .bytes = 64};
	cmd = hal_cmd_launch(k, &arg, 1);
	STEP(conf_submit_ws(c, t.q, &cmd, 1, &open, NULL, &done[0]));
	STEP(conf_submit_ws(c, second, &cmd, 1, &open, NULL, &done[1]));
	OK(hal_timeline_signal(gate, 1));
	OK(hal_wait(done, 2, 0, conf_deadline(INT64_C(300) * 1000000000)));
	OK(hal_partition_get_stats(t.p, &s));
	CHECK(s.busy_ns >= UINT64_C(2) * CONF_SPIN_NS);
	CHECK(s.queueing_ns >= CONF_SPIN_NS / 2);
	return 0;
}

static int misses(struct conf *c)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_stats s;
	struct hal_point done;
	struct tenant t;

	STEP(conf_share(c, 0, 1, &t.p));
	d.deadline_ns = CONF_SPIN_NS / 2;
	STEP(conf_queue_desc(c, t.p, &d, &t.q));
	STEP(conf_buffer(c, t.p, 64, &t.b));
	STEP(launch(c, &t, "spin", &done));
	STEP(conf_wait(c, done));
	STEP(stats(c, t.q, &s));
	EQ(s.deadline_misses, 1);
	d.deadline_ns = UINT64_C(1000000000000);
	STEP(conf_queue_desc(c, t.p, &d, &t.q));
	STEP(launch(c, &t, "spin", &done));
	STEP(conf_wait(c, done));
	STEP(stats(c, t.q, &s));
	EQ(s.deadline_misses, 0);
	return 0;
}

static int sums(struct conf *c)
{
	struct hal_stats q[3], p = HAL_INIT(hal_stats), d = HAL_INIT(hal_stats);
	struct hal_queue *second;
	struct hal_point done[3];
	struct hal_cmd cmd;
	struct tenant t[2];
	uint32_t i;

	STEP(tenant(c, 0, 2, &t[0]));
	STEP(tenant(c, 1, 2, &t[1]));
	STEP(conf_queue(c, t[0].p, &second));
	for (i = 0; i < 6; i++) {
		struct hal_queue *q3[3] = {t[0].q, second, t[1].q};

		cmd = hal_cmd_fill(t[i % 3 == 2].b, 0, 512, i);
		STEP(conf_submit(c, q3[i % 3], &cmd, 1, &done[i % 3]));
	}
	OK(hal_wait(done, 3, 0, conf_deadline(INT64_C(300) * 1000000000)));
	STEP(stats(c, t[0].q, &q[0]));
	STEP(stats(c, second, &q[1]));
	STEP(stats(c, t[1].q, &q[2]));
	OK(hal_partition_get_stats(t[0].p, &p));
	OK(hal_device_get_stats(c->dev, &d));
	EQ(p.submitted, q[0].submitted + q[1].submitted);
	EQ(p.completed, q[0].completed + q[1].completed);
	EQ(p.queueing_ns, q[0].queueing_ns + q[1].queueing_ns);
	EQ(d.submitted, p.submitted + q[2].submitted);
	EQ(d.completed, 6);
	EQ(d.bytes_written, q[0].bytes_written + q[1].bytes_written + q[2].bytes_written);
	/* A union, not a sum: what runs side by side counts once. */
	CHECK(p.busy_ns <= q[0].busy_ns + q[1].busy_ns);
	CHECK(p.busy_ns >= q[0].busy_ns && p.busy_ns >= q[1].busy_ns);
	CHECK(d.busy_ns <= d.now_ns);
	/* A queue that goes leaves its numbers with its partition. */
	STEP(conf_queue_gone(c, second));
	OK(hal_partition_get_stats(t[0].p, &p));
	EQ(p.completed, 4);
	return 0;
}

static int short_struct(struct conf *c)
{
	union {
		struct hal_stats s;
		unsigned char bytes[sizeof(struct hal_stats)];
	} u;
	uint32_t cut = offsetof(struct hal_stats, deadline_misses), i;

	memset(&u, 0x5a, sizeof(u));
	u.s.size = cut;
	OK(hal_device_get_stats(c->dev, &u.s));
	for (i = cut; i < sizeof(u); i++)
		EQ(u.bytes[i], 0x5a);
	return 0;
}

/* ---- trace ------------------------------------------------------------------------ */

static int read_all(struct conf *c, const char *path, char **text)
{
	FILE *f = fopen(path, "r");
	long size;

	CHECK(f);
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	*text = calloc(1, (size_t)size + 1);
	if (!*text || fread(*text, 1, (size_t)size, f) != (size_t)size) {
		fclose(f);
		return conf_fail(c, __FILE__, __LINE__, "%s: cannot be read", path);
	}
	fclose(f);
	return 0;
}

static yajl_val member(yajl_val object, const char *key, yajl_type type)
{
	const char *path[] = {key, NULL};

	return yajl_tree_get(object, path, type);
}

/* Events of the file: all, complete spans ("X"), and names of tracks ("M"). */
static int look_at(struct conf *c, const char *path, uint32_t *spans, uint32_t *names)
{
	char *text = NULL, error[256] = "";
	yajl_val root, events;
	size_t i, bad = 0;

	STEP(read_all(c, path, &text));
	root = yajl_tree_parse(text, error, sizeof(error));
	free(text);
	if (!root)
		return conf_fail(c, __FILE__, __LINE__, "not JSON: %s", error);
	events = YAJL_IS_ARRAY(root) ? root : member(root, "traceEvents", yajl_t_array);
	*spans = *names = 0;
	for (i = 0; events && i < events->u.array.len; i++) {
		yajl_val e = events->u.array.values[i];
		yajl_val kind = member(e, "ph", yajl_t_string);

		if (!kind || !kind->u.string) {
			bad++;
		} else if (strcmp(kind->u.string, "X") == 0) {
			(*spans)++;
			bad += !member(e, "ts", yajl_t_number) ||
			       !member(e, "dur", yajl_t_number);
		} else if (strcmp(kind->u.string, "M") == 0) {
			(*names)++;
		}
	}
	yajl_tree_free(root);
	CHECK(events);
	EQ(bad, 0);
	return 0;
}

static void temp_path(char *path, size_t size)
{
	const char *dir = getenv("TMPDIR");
	int fd;

	snprintf(path, size, "%s/hal-conf-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	if (fd >= 0)
		close(fd);
}

static int trace_work(struct conf *c, const char *path)
{
	struct hal_point done;
	struct hal_cmd cmd;
	struct tenant t[2];
	uint32_t i;

	STEP(tenant(c, 0, 2, &t[0]));
	OK(hal_trace_start(c->dev, path));
	STEP(tenant(c, 1, 2, &t[1]));
	for (i = 0; i < 6; i++) {
		cmd = hal_cmd_fill(t[i % 2].b, 0, 4096, i);
		STEP(conf_submit(c, t[i % 2].q, &cmd, 1, &done));
		STEP(conf_wait(c, done));
	}
	STEP(launch(c, &t[0], "spin", &done));
	return conf_wait(c, done);
}

static int trace(struct conf *c)
{
	uint32_t spans = 0, names = 0;
	char path[256];
	int r;

	temp_path(path, sizeof(path));
	r = trace_work(c, path);
	if (!r && hal_trace_stop(c->dev))
		r = conf_fail(c, __FILE__, __LINE__, "stop: %s", hal_last_error());
	if (!r)
		r = look_at(c, path, &spans, &names);
	unlink(path);
	STEP(r);
	CHECK(spans >= 7);
	CHECK(names >= 4); /* two partitions, two queues */
	return 0;
}

static int trace_until_close(struct conf *c)
{
	uint32_t spans = 0, names = 0;
	char path[256];
	int r;

	temp_path(path, sizeof(path));
	r = trace_work(c, path);
	if (!r)
		r = conf_close(c);
	if (!r)
		r = look_at(c, path, &spans, &names);
	unlink(path);
	STEP(r);
	CHECK(spans >= 7);
	return 0;
}

static int trace_errors(struct conf *c)
{
	char path[256];
	int first, second, stop;

	ERR(hal_trace_start(c->dev, "/nonexistent/folder/trace.json"), -ENOENT);
	CHECK(strstr(hal_last_error(), "/nonexistent/folder/trace.json"));
	temp_path(path, sizeof(path));
	first = hal_trace_start(c->dev, path);
	second = hal_trace_start(c->dev, path);
	stop = hal_trace_stop(c->dev);
	unlink(path);
	OK(first);
	EQ(second, -EBUSY);
	OK(stop);
	return 0;
}

/* ---- limits of bandwidth: what a policy can ask for -------------------------------- */

static struct plugin_control *limiter(struct conf *c)
{
	void *lib = dlopen(CONF_POLICY, RTLD_NOW);
	struct plugin_control *p = lib ? dlsym(lib, "plugin_control") : NULL;

	if (!p)
		conf_unsupported(c, "%s", dlerror());
	else
		memset(p, 0, sizeof(*p));
	return p;
}

struct moved {
	uint64_t ns, bytes;
};

enum { LIMIT_COPIED = 65536 };

/* A queue whose partition is limited when it is made, and a copy in it. */
static int limited_copy(struct conf *c, struct plugin_control *p, struct tenant *t,
			uint64_t bytes, uint64_t window_ns, struct moved *m)
{
	struct hal_point done;
	struct hal_cmd cmd;
	struct hal_stats s;

	p->limits = 1;
	p->limit_bytes = bytes;
	p->limit_window_ns = window_ns;
	STEP(conf_queue(c, t->p, &t->q));
	if (p->limited == 0) {
		cmd = hal_cmd_copy(t->b, 0, t->b, LIMIT_COPIED, LIMIT_COPIED);
		STEP(conf_submit(c, t->q, &cmd, 1, &done));
		STEP(conf_wait(c, done));
		STEP(stats(c, t->q, &s));
		*m = (struct moved){s.busy_ns, s.bytes_read + s.bytes_written};
	}
	return conf_queue_gone(c, t->q);
}

/* Never more than the windows it lasted let through, one that was saved up, and what the
 * device moves around a command and counts with it. */
static int keeps_to(struct conf *c, const struct moved *m, uint64_t bytes,
		    uint64_t window_ns)
{
	CHECK(m->bytes <= (m->ns / window_ns + 8) * bytes);
	return 0;
}

static int limit(struct conf *c)
{
	const char *const options[] = {"hal.plugins=" CONF_POLICY, "policy.name=plugin",
				       NULL};
	struct plugin_control *p = limiter(c);
	uint64_t grain = c->info.limit_bytes, window = c->info.limit_window_ns, most;
	struct moved free, slow, again, m;
	struct tenant t;

	if (!p)
		return CONF_UNSUPPORTED;
	OK(hal_close(c->dev));
	c->dev = NULL;
	OK(hal_open(c->target, options, &c->dev));
	STEP(conf_share(c, 0, 1, &t.p));
	STEP(conf_buffer(c, t.p, (uint64_t)2 * LIMIT_COPIED, &t.b));
	if (!(c->info.caps & HAL_CAP_LIMIT)) {
		STEP(limited_copy(c, p, &t, 4096, 1000, &m));
		EQ(p->limited, -ENOTSUP);
		return 0;
	}
	/* What it cannot do it refuses: less than the grain, no time, too long a time,
	 * more than there is. */
	most = c->info.bandwidth / 1000000; /* in a microsecond */
	STEP(limited_copy(c, p, &t, grain - 1, window, &m));
	EQ(p->limited, -EINVAL);
	STEP(limited_copy(c, p, &t, grain, 0, &m));
	EQ(p->limited, -EINVAL);
	STEP(limited_copy(c, p, &t, grain, window + 1, &m));
	EQ(p->limited, -EINVAL);
	STEP(limited_copy(c, p, &t, most + grain, 1000, &m));
	EQ(p->limited, -EINVAL);
	/* A quarter of what it takes alone, and less. */
	STEP(limited_copy(c, p, &t, 0, 0, &free));
	EQ(p->limited, 0);
	CHECK(free.bytes >= 2 * LIMIT_COPIED && free.ns > 0);
	for (uint64_t part = 4; part <= 16; part *= 4) {
		window = grain * free.ns * part / free.bytes + 1;
		STEP(limited_copy(c, p, &t, grain, window, &slow));
		EQ(p->limited, 0);
		STEP(keeps_to(c, &slow, grain, window));
		CHECK(slow.ns > free.ns * (part - 1));
		CHECK(slow.ns < free.ns * (part + 2));
	}
	STEP(limited_copy(c, p, &t, 0, 0, &again));
	EQ(p->limited, 0);
	CHECK(again.ns < 2 * free.ns);
	return 0;
}

const struct conf_case conf_account_cases[] = {
	{"account.counts", counts},
	{"account.in_flight", in_flight},
	{"account.failed_and_dropped", failed_and_dropped},
	{"account.histogram", histogram},
	{"account.busy", busy},
	{"account.queueing", queueing},
	{"account.misses", misses},
	{"account.sums", sums},
	{"account.short_struct", short_struct},
	{"account.limit", limit},
	{"trace.json", trace},
	{"trace.until_close", trace_until_close},
	{"trace.errors", trace_errors},
	{NULL, NULL},
};
