/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace - what the traces of hald's clients show, and that their files harm nobody.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/stat.h>

#include <hal/hald.h>
#include <yajl/yajl_tree.h>

#include "hald_world.h"

#define REFUSED(call, err, text)                                                         \
	do {                                                                             \
		assert_int_equal(call, err);                                             \
		if (strstr(hal_last_error(), text) == NULL)                              \
			fail_msg("%s: %s", #call, hal_last_error());                     \
	} while (0)

static const struct hal_hald_extension *hald_of(struct hal_device *dev)
{
	const struct hal_hald_extension *hald = hal_device_get_extension(dev, "hald");

	if (hald == NULL)
		fail_msg("%s", hal_last_error());
	return hald;
}

/* ---- programs of tenants -------------------------------------------------------------- */

/* Take units of dev for a partition of that name. */
static void program_begin(struct hal_device *dev, struct program *p, const char *name,
			  uint32_t units)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);

	p->dev = dev;
	p->prog = NULL;
	pd.units_floor = units;
	bd.bytes = 4096;
	snprintf(pd.name, sizeof(pd.name), "%s", name);
	OK(hal_partition_create(p->dev, &pd, &p->part));
	OK(hal_queue_create(p->part, &qd, &p->q));
	OK(hal_buffer_create(p->part, &bd, &p->buf));
}

static void program_end(struct program *p)
{
	OK(hal_queue_destroy(p->q));
	OK(hal_buffer_destroy(p->buf));
	OK(hal_program_unload(p->prog));
	OK(hal_partition_destroy(p->part));
}

static void works(struct program *p, uint32_t times)
{
	for (uint32_t i = 0; i < times; i++)
		OK(program_works(p, i));
}

/* ---- traces ------------------------------------------------------------------------------ */

/* A file that a trace is written to. */
struct file {
	char path[128];
	char *text;
	size_t size;
	yajl_val tree;
};

static void file_path(const struct hald *h, const char *name, struct file *f)
{
	memset(f, 0, sizeof(*f));
	snprintf(f->path, sizeof(f->path), "%s/%s.json", h->dir, name);
}

/* Read the text of f. */
static void file_text(struct file *f)
{
	FILE *in = fopen(f->path, "r");
	struct stat s;

	assert_non_null(in);
	free(f->text);
	assert_int_equal(fstat(fileno(in), &s), 0);
	f->size = (size_t)s.st_size;
	f->text = calloc(1, f->size + 1);
	assert_non_null(f->text);
	assert_int_equal(fread(f->text, 1, f->size, in), f->size);
	(void)fclose(in);
}

/* Read f, which must be JSON. */
static void file_read(struct file *f)
{
	char why[256];

	file_text(f);
	f->tree = yajl_tree_parse(f->text, why, sizeof(why));
	if (f->tree == NULL)
		fail_msg("%s is no JSON: %s", f->path, why);
}

static void file_free(struct file *f)
{
	assert_int_equal(unlink(f->path), 0);
	yajl_tree_free(f->tree);
	free(f->text);
	f->text = NULL;
}

static bool has(const struct file *f, const char *text)
{
	return strstr(f->text, text) != NULL;
}

static size_t event_count(const struct file *f)
{
	const char *path[] = {"traceEvents", NULL};

	return YAJL_GET_ARRAY(yajl_tree_get(f->tree, path, yajl_t_array))->len;
}

static yajl_val event(const struct file *f, size_t i)
{
	const char *path[] = {"traceEvents", NULL};

	return YAJL_GET_ARRAY(yajl_tree_get(f->tree, path, yajl_t_array))->values[i];
}

static const char *string(yajl_val v, const char *key)
{
	const char *path[] = {key, NULL};
	yajl_val found = yajl_tree_get(v, path, yajl_t_string);

	return found != NULL ? YAJL_GET_STRING(found) : "";
}

static long long number(yajl_val v, const char *key)
{
	const char *path[] = {key, NULL};
	yajl_val found = yajl_tree_get(v, path, yajl_t_number);

	return found != NULL && YAJL_IS_INTEGER(found) ? YAJL_GET_INTEGER(found) : -1;
}

static yajl_val args(yajl_val v)
{
	const char *path[] = {"args", NULL};

	return yajl_tree_get(v, path, yajl_t_object);
}

static long long unfinished(const struct file *f)
{
	const char *path[] = {"otherData", NULL};

	return number(yajl_tree_get(f->tree, path, yajl_t_object), "commands_unfinished");
}

/* Return the number of events of that phase and name on the units. */
static uint32_t count(const struct file *f, const char *phase, const char *name)
{
	uint32_t n = 0;

	for (size_t i = 0; i < event_count(f); i++)
		n += strcmp(string(event(f, i), "ph"), phase) == 0 &&
		     strcmp(string(event(f, i), "name"), name) == 0 &&
		     number(event(f, i), "pid") == 1;
	return n;
}

/* Return the name of a track; NULL: it has none. */
static const char *track(const struct file *f, long long pid, long long tid)
{
	for (size_t i = 0; i < event_count(f); i++) {
		yajl_val e = event(f, i);

		if (strcmp(string(e, "ph"), "M") == 0 &&
		    strcmp(string(e, "name"), "thread_name") == 0 &&
		    number(e, "pid") == pid && number(e, "tid") == tid)
			return string(args(e), "name");
	}
	return NULL;
}

/* Each track with a slice has a name. */
static void tracks_are_named(const struct file *f)
{
	uint32_t slices = 0;

	for (size_t i = 0; i < event_count(f); i++) {
		yajl_val e = event(f, i);

		if (strcmp(string(e, "ph"), "X") != 0)
			continue;
		slices++;
		if (track(f, number(e, "pid"), number(e, "tid")) == NULL)
			fail_msg("track %lld of process %lld of %s has no name",
				 number(e, "tid"), number(e, "pid"), f->path);
	}
	assert_true(slices > 0);
	assert_int_equal(count(f, "M", "process_name"), 1);
}

/* Nothing in f is of a partition whose name begins with `other`.  all: a trace of the
 * whole device. */
static void shows_nothing_of(const struct file *f, const struct file *all,
			     const char *other)
{
	uint32_t queues = 0;

	assert_false(has(f, other));
	for (size_t k = 0; k < event_count(all); k++) {
		yajl_val m = event(all, k);
		long long tid = number(m, "tid");

		if (strcmp(string(m, "name"), "thread_name") != 0 ||
		    number(m, "pid") != 2 ||
		    strncmp(string(args(m), "name"), other, strlen(other)) != 0)
			continue;
		queues++;
		for (size_t i = 0; i < event_count(f); i++) {
			yajl_val e = event(f, i);

			assert_false(number(e, "pid") == 2 && number(e, "tid") == tid);
			if (args(e) != NULL)
				assert_int_not_equal(number(args(e), "queue"),
						     (tid - 1) / 2);
		}
	}
	assert_true(queues > 0);
}

/* All counters in f are of partition `own`, whose units are the only ones with work. */
static void counts_only(const struct file *f, const char *own, long long units)
{
	for (size_t i = 0; i < event_count(f); i++) {
		yajl_val e = event(f, i);
		const char *name = string(e, "name");

		if (strcmp(string(e, "ph"), "C") != 0)
			continue;
		if (strcmp(name, "units with work") == 0)
			assert_true(number(args(e), name) <= units);
		else if (strncmp(name, own, strlen(own)) != 0)
			fail_msg("%s has counter \"%s\"", f->path, name);
	}
}

/* ---- whose work is shown ------------------------------------------------------------- */

static void two_tenants(const char *tenants)
{
	struct hal_device *video, *spy, *rest;
	struct program a, b, late;
	struct hal_point stopped;
	struct file f[3];
	struct hald h;

	hald_with_tenants(&h, "ref?clock=real", tenants);
	opened_by(&h, "video", &video, 0);
	opened_by(&h, "spy", &spy, 0);
	opened_by(&h, ".", &rest, 0);
	file_path(&h, "video", &f[0]);
	file_path(&h, "spy", &f[1]);
	file_path(&h, "rest", &f[2]);
	program_begin(video, &a, "film", 5);
	OK(hal_trace_start(rest, f[2].path));
	OK(hal_trace_start(video, f[0].path));
	OK(hal_trace_start(spy, f[1].path));
	program_begin(spy, &b, "nosy", 2);
	program_begin(video, &late, "filmlate", 3);
	works(&a, 10);
	works(&b, 7);
	works(&late, 5);
	OK(program_spins(&a));
	works(&b, 4);
	/* A queue that was created while others traced. */
	program_end(&late);
	OK(hal_trace_stop(spy));
	REFUSED(hal_trace_stop(spy), -EINVAL, "writes no trace");
	OK(hal_trace_stop(video));
	/* Nobody traces these. */
	works(&b, 3);
	OK(hal_trace_stop(rest));
	for (int i = 0; i < 3; i++)
		file_read(&f[i]);
	assert_int_equal(count(&f[0], "X", "fill"), 15);
	assert_int_equal(count(&f[1], "X", "fill"), 11);
	assert_int_equal(count(&f[2], "X", "fill"), 29);
	shows_nothing_of(&f[0], &f[2], "nosy");
	shows_nothing_of(&f[1], &f[2], "film");
	counts_only(&f[0], "film", 8);
	counts_only(&f[1], "nosy", 2);
	for (int i = 0; i < 3; i++)
		tracks_are_named(&f[i]);
	assert_int_equal(unfinished(&f[0]), 1);
	assert_int_equal(unfinished(&f[1]), 0);
	assert_int_equal(unfinished(&f[2]), 1);
	for (int i = 0; i < 3; i++)
		file_free(&f[i]);
	OK(hal_queue_suspend(a.q, HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL, &stopped));
	OK(hal_wait(&stopped, 1, 0, now_ns() + LONG_NS));
	program_end(&a);
	program_end(&b);
	OK(hal_close(video));
	OK(hal_close(spy));
	OK(hal_close(rest));
	hald_with_tenants_stop(&h);
}

static void own_work_only(void **state)
{
	(void)state;
	two_tenants("[tenant \"video\"]\nsocket = yes\n[tenant \"spy\"]\nsocket = yes\n"
		    "[tenant \"rest\"]\nadmin = yes\n");
}

/* Tenants that lend urgency to each other still see nothing of each other. */
static void own_work_only_of_lenders(void **state)
{
	(void)state;
	two_tenants("[tenant \"video\"]\nsocket = yes\nlend = yes\n"
		    "[tenant \"spy\"]\nsocket = yes\nlend = yes\n"
		    "[tenant \"rest\"]\nadmin = yes\n");
}

/* A guest that the configuration places in a partition of another tenant shows nothing of
 * that, and the other way round. */
static void guest_of_another(void **state)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_device *video, *spy;
	struct program a, b = {0};
	struct file f[2];
	struct hald h;

	(void)state;
	hald_with(&h, "ref?clock=real",
		  "[tenant \"video\"]\nsocket = yes\n[tenant \"spy\"]\nsocket = yes\n",
		  NULL, "partition \"nosy\".host=film");
	opened_by(&h, "video", &video, 0);
	opened_by(&h, "spy", &spy, 0);
	file_path(&h, "video", &f[0]);
	file_path(&h, "spy", &f[1]);
	program_begin(video, &a, "film", 4);
	OK(hald_of(spy)->trace_start(spy, f[1].path, 65536));
	OK(hal_trace_start(video, f[0].path));
	OK(hal_partition_create_named(spy, "nosy", &b.part));
	OK(hal_queue_create(b.part, &qd, &b.q));
	bd.bytes = 4096;
	OK(hal_buffer_create(b.part, &bd, &b.buf));
	works(&a, 3);
	works(&b, 5);
	program_end(&b);
	OK(hal_trace_stop(video));
	OK(hal_trace_stop(spy));
	for (int i = 0; i < 2; i++) {
		file_read(&f[i]);
		tracks_are_named(&f[i]);
		assert_int_equal(count(&f[i], "X", "fill"), i == 0 ? 3 : 5);
		assert_false(has(&f[i], i == 0 ? "nosy" : "film"));
		file_free(&f[i]);
	}
	program_end(&a);
	OK(hal_close(video));
	OK(hal_close(spy));
	hald_with_tenants_stop(&h);
}

static const char tenants[] = "[tenant \"video\"]\nsocket = yes\n"
			      "[tenant \"rest\"]\nadmin = yes\n";

/* Each client writes one; two of one tenant see each other, and hald writes its own. */
static void one_for_each_client(void **state)
{
	struct hal_device *dev[2];
	struct program p[2];
	struct file f[3];
	struct hald h;
	char option[160];
	int status;

	(void)state;
	hald_with(&h, "ref", tenants, NULL, NULL);
	hald_kill(&h);
	file_path(&h, "hald", &f[2]);
	snprintf(option, sizeof(option), "hal.trace=%s", f[2].path);
	h.more = option;
	hald_begin(&h, "ref");
	for (int i = 0; i < 2; i++) {
		opened_by(&h, "video", &dev[i], 0);
		file_path(&h, i == 0 ? "first" : "second", &f[i]);
		program_begin(dev[i], &p[i], i == 0 ? "one" : "two", 2);
	}
	OK(hal_trace_start(dev[0], f[0].path));
	/* Another one at the same file is refused before it is emptied. */
	REFUSED(hal_trace_start(dev[0], f[0].path), -EBUSY, "writes a trace of hald:");
	REFUSED(hal_trace_start(dev[1], f[0].path), -EBUSY, "is writing the file");
	REFUSED(hal_trace_start(dev[1], f[2].path), -EBUSY, "is writing the file");
	OK(hal_trace_start(dev[1], f[1].path));
	for (int i = 0; i < 2; i++)
		works(&p[i], 3);
	for (int i = 0; i < 2; i++)
		OK(hal_trace_stop(dev[i]));
	/* The memory of a trace is counted, and given back: many come after each other.
	 */
	for (int i = 0; i < 20; i++) {
		OK(hal_trace_start(dev[1], f[1].path));
		works(&p[0], 1);
		OK(hal_trace_stop(dev[1]));
	}
	OK(hal_trace_start(dev[1], f[1].path));
	for (int i = 0; i < 2; i++) {
		works(&p[i], 3);
		program_end(&p[i]);
		OK(hal_close(dev[i])); /* ends the trace, too */
	}
	assert_int_equal(kill(h.pid, SIGTERM), 0);
	assert_int_equal(waitpid(h.pid, &status, 0), h.pid);
	assert_int_equal(status, 0);
	(void)close(h.out);
	for (int i = 0; i < 3; i++) {
		file_read(&f[i]);
		tracks_are_named(&f[i]);
		assert_true(has(&f[i], "commands_unfinished"));
	}
	assert_int_equal(count(&f[0], "X", "fill"), 6);
	assert_int_equal(count(&f[1], "X", "fill"), 6);
	assert_true(has(&f[0], "two queue"));
	assert_int_equal(count(&f[2], "X", "fill"), 32);
	for (int i = 0; i < 3; i++)
		file_free(&f[i]);
	assert_int_equal(unlink(h.tenants), 0);
	assert_int_equal(rmdir(h.dir), 0);
}

/* ---- files that are not as they should be ------------------------------------------------ */

static void files_of_another_kind(void **state)
{
	static const char *const devices[] = {"/dev/null", "/dev/full"};
	struct hal_device *video, *rest;
	struct program p;
	struct file f;
	struct hald h;
	int reader;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	opened_by(&h, "video", &video, 0);
	opened_by(&h, ".", &rest, 0);
	program_begin(video, &p, "film", 4);
	for (int i = 0; i < 2; i++) {
		REFUSED(hal_trace_start(video, devices[i]), -EINVAL, "regular file");
		REFUSED(hal_trace_start(rest, devices[i]), -EINVAL, "regular file");
	}
	/* A pipe that nobody reads. */
	file_path(&h, "pipe", &f);
	assert_int_equal(mkfifo(f.path, 0600), 0);
	reader = open(f.path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	REFUSED(hal_trace_start(video, f.path), -EINVAL, "regular file");
	REFUSED(hal_trace_start(rest, f.path), -EINVAL, "regular file");
	(void)close(reader);
	assert_int_equal(unlink(f.path), 0);
	REFUSED(hal_trace_start(video, "/nonexistent/t.json"), -ENOENT, "/nonexistent");
	REFUSED(hal_trace_start(video, ""), -EINVAL, "path is empty");
	/* None of them is left as a trace. */
	file_path(&h, "good", &f);
	OK(hal_trace_start(video, f.path));
	works(&p, 2);
	OK(hal_trace_stop(video));
	file_read(&f);
	assert_int_equal(count(&f, "X", "fill"), 2);
	file_free(&f);
	program_end(&p);
	OK(hal_close(video));
	OK(hal_close(rest));
	hald_with_tenants_stop(&h);
}

/* The file takes no more bytes at some time, as on a full disk; its owner appends to it,
 * truncates it and moves its position meanwhile. */
static void file_goes_wrong(void **state)
{
	struct hal_device *video, *rest;
	struct program p, other;
	struct file f;
	struct hald h;
	char path[64];
	int fd;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	opened_by(&h, "video", &video, 0);
	opened_by(&h, ".", &rest, 0);
	program_begin(video, &p, "film", 4);
	program_begin(rest, &other, "other", 4);
	fd = memfd_create("trace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	OK(hal_trace_start(video, path));
	works(&p, 5);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	for (int i = 0; i < 1000; i++) {
		works(&p, 1);
		works(&other, 1);
	}
	REFUSED(hal_trace_stop(video), -EIO, "Operation not permitted");
	assert_non_null(strstr(hal_last_error(), "events are missing"));
	(void)close(fd);
	/* It harms itself alone. */
	file_path(&h, "mine", &f);
	OK(hal_trace_start(video, f.path));
	fd = open(f.path, O_RDWR | O_APPEND | O_CLOEXEC);
	assert_true(fd >= 0);
	for (int i = 0; i < 300; i++) {
		works(&p, 1);
		assert_int_equal(ftruncate(fd, i % 2 == 0 ? 0 : 100000), 0);
		assert_int_equal(write(fd, "junk", 4), 4);
		works(&other, 1);
	}
	OK(hal_trace_stop(video));
	(void)close(fd);
	assert_int_equal(unlink(f.path), 0);
	program_end(&p);
	program_end(&other);
	OK(hal_close(video));
	OK(hal_close(rest));
	hald_with_tenants_stop(&h);
}

/* What no library sends: a descriptor that cannot be written, and none. */
static void wrong_descriptors(void **state)
{
	char space[CMSG_SPACE(sizeof(int))] = {0};
	struct far_message m = {.op = FAR_TRACE_START};
	struct iovec part = {&m, sizeof(m)};
	struct msghdr msg = {.msg_iov = &part,
			     .msg_iovlen = 1,
			     .msg_control = space,
			     .msg_controllen = sizeof(space)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	struct hald h;
	int fd, file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(file >= 0);
	hald_start(&h, "ref?clock=real");
	fd = raw_client(&h);
	assert_int_equal(raw_ask(fd, &m, NULL, 0), -EPROTO);
	(void)close(fd);
	fd = raw_client(&h);
	m = (struct far_message){.op = FAR_TRACE_START};
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &file, sizeof(int));
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), sizeof(m));
	assert_true(recv(fd, &m, sizeof(m), MSG_TRUNC) >= (ssize_t)sizeof(m));
	assert_int_equal(m.result, -EPROTO);
	(void)close(fd);
	(void)close(file);
	hald_stop(&h);
}

/* ---- ends ---------------------------------------------------------------------------------- */

/* The trace of a killed program is complete, and those of others go on. */
static void killed(void **state)
{
	const int64_t until = now_ns() + LONG_NS;
	struct hal_device *rest;
	struct program p;
	struct file f, all;
	struct hald h;
	pid_t pid;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	opened_by(&h, ".", &rest, 0);
	file_path(&h, "killed", &f);
	file_path(&h, "all", &all);
	program_begin(rest, &p, "rest", 4);
	OK(hal_trace_start(rest, all.path));
	pid = fork();
	if (pid == 0) {
		struct hal_device *dev;
		struct program own;

		opened_by(&h, "video", &dev, 0);
		if (hal_trace_start(dev, f.path) != 0)
			_exit(1);
		program_begin(dev, &own, "film", 4);
		works(&own, 9);
		(void)kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	do {
		assert_true(now_ns() < until);
		(void)sched_yield();
		file_text(&f);
	} while (!has(&f, "commands_unfinished"));
	file_read(&f);
	assert_int_equal(count(&f, "X", "fill"), 9);
	tracks_are_named(&f);
	works(&p, 3);
	OK(hal_trace_stop(rest));
	file_read(&all);
	assert_int_equal(count(&all, "X", "fill"), 12);
	file_free(&f);
	file_free(&all);
	program_end(&p);
	OK(hal_close(rest));
	hald_with_tenants_stop(&h);
}

/* ---- the recorder ---------------------------------------------------------------------------- */

/* However much happens, file and memory stay small, the newest is there, and each track
 * has its name, also of partitions that have gone. */
static void recorder(void **state)
{
	const uint64_t bytes = 65536;
	uint64_t events = 0, dropped = 0, more = 0;
	struct hal_device *video, *rest;
	struct program p, q;
	struct file f[2];
	struct hald h;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	opened_by(&h, "video", &video, 0);
	opened_by(&h, ".", &rest, 0);
	file_path(&h, "rest", &f[0]);
	file_path(&h, "video", &f[1]);
	program_begin(video, &p, "film", 4);
	OK(hald_of(rest)->trace_start(rest, f[0].path, bytes));
	OK(hald_of(video)->trace_start(video, f[1].path, bytes));
	program_begin(rest, &q, "rest", 4);
	works(&p, 10);
	for (int i = 0; i < 40; i++) {
		struct program brief;

		works(&q, 50);
		program_begin(video, &brief, "brief", 2);
		works(&brief, 5);
		program_end(&brief);
	}
	works(&p, 1);
	OK(hald_of(rest)->trace_stop(rest, &events, &dropped));
	OK(hald_of(video)->trace_stop(video, NULL, &more));
	for (int i = 0; i < 2; i++) {
		file_read(&f[i]);
		assert_true(f[i].size <= bytes);
		assert_true(f[i].size > bytes / 2);
		tracks_are_named(&f[i]);
		assert_true(has(&f[i], "\"film queue"));
		assert_true(has(&f[i], "\"brief"));
	}
	assert_int_equal(event_count(&f[0]), events);
	assert_true(dropped > 10000);
	assert_true(more > 100 && more < dropped);
	assert_true(has(&f[0], "\"rest queue"));
	assert_false(has(&f[1], "\"rest"));
	for (int i = 0; i < 2; i++)
		file_free(&f[i]);
	/* Nothing is dropped of little. */
	OK(hald_of(video)->trace_start(video, f[1].path, bytes));
	works(&p, 4);
	OK(hald_of(video)->trace_stop(video, &events, &dropped));
	file_read(&f[1]);
	assert_int_equal(dropped, 0);
	assert_int_equal(event_count(&f[1]), events);
	assert_int_equal(count(&f[1], "X", "fill"), 4);
	assert_int_equal(count(&f[1], "b", "film units 0..3"), 1);
	assert_int_equal(count(&f[1], "e", "film units 0..3"), 1);
	file_free(&f[1]);
	program_end(&p);
	program_end(&q);
	OK(hal_close(video));
	OK(hal_close(rest));
	hald_with_tenants_stop(&h);
}

/* A tenant cannot have hald use much memory. */
static void recorder_limits(void **state)
{
	struct hal_device *video[2], *rest;
	uint64_t events = 9, dropped = 9;
	struct file f;
	struct hald h;

	(void)state;
	hald_with_tenants(&h, "ref", tenants);
	for (int i = 0; i < 2; i++)
		opened_by(&h, "video", &video[i], 0);
	opened_by(&h, ".", &rest, 0);
	file_path(&h, "t", &f);
	REFUSED(hald_of(rest)->trace_start(rest, f.path, 0), -EINVAL, "bytes is 0");
	REFUSED(hald_of(rest)->trace_start(rest, f.path, 65535), -EINVAL,
		"bytes is 65535");
	REFUSED(hald_of(rest)->trace_start(rest, f.path, UINT64_MAX), -EINVAL,
		"bytes is 18446744073709551615");
	REFUSED(hald_of(rest)->trace_start(rest, NULL, 65536), -EINVAL, "path");
	REFUSED(hald_of(rest)->trace_stop(rest, &events, &dropped), -EINVAL,
		"writes no trace");
	assert_int_equal(events, 9);
	assert_int_equal(dropped, 9);
	REFUSED(hald_of(video[0])->trace_start(video[0], f.path, 17 << 20), -EDQUOT,
		"tenant \"video\"");
	OK(hald_of(video[0])->trace_start(video[0], f.path, 16 << 20));
	REFUSED(hal_trace_start(video[1], f.path), -EDQUOT, "tenant \"video\"");
	OK(hal_trace_stop(video[0]));
	OK(hal_trace_start(video[1], f.path));
	OK(hal_trace_stop(video[1]));
	/* Not even the clock has moved. */
	OK(hald_of(rest)->trace_start(rest, f.path, 1 << 30));
	OK(hald_of(rest)->trace_stop(rest, &events, &dropped));
	file_read(&f);
	assert_int_equal(event_count(&f), events);
	assert_int_equal(dropped, 0);
	file_free(&f);
	for (int i = 0; i < 2; i++)
		OK(hal_close(video[i]));
	OK(hal_close(rest));
	hald_with_tenants_stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_work_only),
		cmocka_unit_test(own_work_only_of_lenders),
		cmocka_unit_test(guest_of_another),
		cmocka_unit_test(one_for_each_client),
		cmocka_unit_test(files_of_another_kind),
		cmocka_unit_test(file_goes_wrong),
		cmocka_unit_test(wrong_descriptors),
		cmocka_unit_test(killed),
		cmocka_unit_test(recorder),
		cmocka_unit_test(recorder_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
