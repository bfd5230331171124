/* SPDX-License-Identifier: Apache-2.0 */
/* test_monitor.c - a device that is looked at (hal.monitor): what it answers, to whom,
 * and that it decides as it does when nobody looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

#include "profile_file.h"
#include "work.h"

enum { LOOKERS = 2, MANY = 600 };

#define OK(call)                                                                         \
	do {                                                                             \
		if ((call) < 0)                                                          \
			fail_msg("%s: %s", #call, hal_last_error());                     \
	} while (0)

static char folder[64]; /* of this test's sockets; a new one each test */
static char dir_option[96];
static char answer[2 << 20];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/hal_monitor_XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(dir_option, sizeof(dir_option), "hal.monitor_dir=%s", folder);
	return 0;
}

/* The name of the socket there; "" when there is none.  How many there are. */
static int find_socket(char *path, size_t size)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	path[0] = '\0';
	assert_non_null(d);
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] != '.') {
			snprintf(path, size, "%s/%.40s", folder, e->d_name);
			n++;
		}
	closedir(d);
	return n;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

/* With all that a failed test has left in it. */
static int remove_folder(void **state)
{
	(void)state;
	return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int reach(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Sends these bytes, reads all that comes into text; how much. */
static size_t ask_bytes(const char *path, const char *bytes, size_t size, char *text,
			size_t room)
{
	int fd = reach(path);
	size_t n = 0;
	ssize_t got;

	assert_true(fd >= 0);
	(void)!send(fd, bytes, size, MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	while ((got = recv(fd, text + n, room - 1 - n, 0)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(fd);
	return n;
}

static yajl_val ask(const char *bytes, size_t size)
{
	char path[128], why[256];
	yajl_val tree;

	assert_int_equal(find_socket(path, sizeof(path)), 1);
	ask_bytes(path, bytes, size, answer, sizeof(answer));
	tree = yajl_tree_parse(answer, why, sizeof(why));
	if (tree == NULL)
		fail_msg("%s: %s", why, answer);
	return tree;
}

#define ASK(bytes) ask(bytes, sizeof(bytes))

static yajl_val get(yajl_val v, const char *key)
{
	const char *path[] = {key, NULL};
	yajl_val found = yajl_tree_get(v, path, yajl_t_any);

	if (found == NULL)
		fail_msg("no %s in %s", key, answer);
	return found;
}

static long long number(yajl_val v, const char *key)
{
	return YAJL_GET_INTEGER(get(v, key));
}

static const char *text(yajl_val v, const char *key)
{
	return YAJL_GET_STRING(get(v, key));
}

static void refused(const char *bytes, size_t size, const char *why)
{
	yajl_val v = ask(bytes, size);

	if (strstr(text(v, "error"), why) == NULL)
		fail_msg("no \"%s\" in %s", why, answer);
	yajl_tree_free(v);
}

#define REFUSED(bytes, why) refused(bytes, sizeof(bytes), why)

static void open_watched(struct work *w, const char *target, const char *mode)
{
	const char *options[] = {mode, dir_option, NULL};

	memset(w, 0, sizeof(*w));
	OK(work_open(w, target, options));
}

/* True: one of the decisions has these words. */
static bool decided(yajl_val v, const char *words)
{
	yajl_val list = get(v, "decisions");

	for (size_t i = 0; i < YAJL_GET_ARRAY(list)->len; i++)
		if (strstr(text(YAJL_GET_ARRAY(list)->values[i], "text"), words) != NULL)
			return true;
	return false;
}

/* ---- what it answers ---------------------------------------------------------------- */

static void off_unless_asked_for(void **state)
{
	const char *options[] = {dir_option, NULL};
	char path[128];
	struct work w = {0};

	(void)state;
	OK(work_open(&w, "ref?units=16", options));
	assert_int_equal(find_socket(path, sizeof(path)), 0);
	OK(work_close(&w));
}

static void answers_what_statistics_say(void **state)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	yajl_val v, list;
	struct work w;

	(void)state;
	open_watched(&w, "ref?units=16", "hal.monitor=read");
	for (int i = 0; i < WORK_ROUNDS; i++)
		OK(work_round(&w));
	v = ASK("look");
	assert_int_equal(number(v, "hal_monitor"), 1);
	assert_int_equal(number(v, "pid"), getpid());
	assert_string_equal(text(v, "device"), "ref:0");
	assert_string_equal(text(v, "policy"), "priority");
	assert_int_equal(number(v, "cols"), 16);
	assert_int_equal(number(v, "now_ns"), hal_device_get_time(w.dev));
	OK(hal_device_get_stats(w.dev, &s));
	assert_int_equal(number(v, "busy_ns"), s.busy_ns);
	list = get(v, "partitions");
	assert_int_equal(YAJL_GET_ARRAY(list)->len, 2);
	for (size_t i = 0; i < 2; i++) {
		yajl_val p = YAJL_GET_ARRAY(list)->values[i];

		OK(hal_partition_get_info(w.part[i], &info));
		OK(hal_partition_get_stats(w.part[i], &s));
		assert_int_equal(number(p, "index"), info.index);
		assert_string_equal(text(p, "name"), info.name);
		assert_int_equal(number(p, "units"), info.units);
		assert_int_equal(number(p, "busy_ns"), s.busy_ns);
		assert_int_equal(number(p, "completed"), s.completed);
		assert_int_equal(number(p, "suspends"), s.suspends);
	}
	assert_int_equal(number(YAJL_GET_ARRAY(list)->values[1], "ceiling"), 8);
	list = get(v, "queues");
	assert_int_equal(YAJL_GET_ARRAY(list)->len, WORK_QUEUES);
	for (size_t i = 0; i < WORK_QUEUES; i++) {
		yajl_val q = YAJL_GET_ARRAY(list)->values[i];

		OK(hal_queue_get_stats(w.queue[i], &s));
		assert_int_equal(number(q, "partition"), i / 2);
		assert_int_equal(number(q, "requests"), s.requests);
		assert_int_equal(number(q, "requests"), WORK_ROUNDS);
		assert_int_equal(number(q, "p99_ns"), s.request_p99_ns);
		assert_int_equal(number(q, "deadline_misses"), s.deadline_misses);
		assert_string_equal(text(q, "state"), "idle");
	}
	assert_string_equal(text(YAJL_GET_ARRAY(list)->values[0], "name"), "decode");
	assert_string_equal(text(YAJL_GET_ARRAY(list)->values[1], "name"), "");
	assert_string_equal(text(YAJL_GET_ARRAY(list)->values[0], "class"), "latency");
	assert_int_equal(number(YAJL_GET_ARRAY(list)->values[0], "deadline_ns"), 1000000);
	assert_int_equal(number(YAJL_GET_ARRAY(list)->values[2], "deadline_misses"),
			 WORK_ROUNDS);
	yajl_tree_free(v);
	OK(work_close(&w));
}

/* Tenants without units of their own, below whose they use. */
static void shows_guests(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	struct hal_partition *guest;
	struct hal_point done;
	struct hal_queue *q;
	struct hal_cmd cmd;
	yajl_val v, list;
	struct work w;

	(void)state;
	open_watched(&w, "ref?units=16", "hal.monitor=read");
	d.host = w.part[0];
	d.memory_bytes = 65536;
	memcpy(d.name, "lodger", 7);
	OK(hal_partition_create(w.dev, &d, &guest));
	OK(hal_queue_create(guest, &qd, &q));
	cmd = hal_cmd_launch(w.kernel, NULL, 0);
	sd.cmds = &cmd;
	sd.cmd_count = 1;
	OK(hal_submit(q, &sd, &done));
	OK(work_round(&w));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(hal_partition_get_info(guest, &info));
	OK(hal_partition_get_stats(guest, &s));
	v = ASK("look");
	assert_int_equal(number(v, "partitions_all"), 2);
	assert_int_equal(number(v, "guests_all"), 1);
	assert_int_equal(number(v, "queues_all"), WORK_QUEUES + 1);
	assert_int_equal(YAJL_GET_ARRAY(get(v, "partitions"))->len, 2);
	list = get(v, "guests");
	assert_int_equal(YAJL_GET_ARRAY(list)->len, 1);
	list = YAJL_GET_ARRAY(list)->values[0];
	assert_int_equal(number(list, "index"), info.index);
	assert_int_equal(number(list, "host"), 0);
	assert_int_equal(number(list, "queues"), 1);
	assert_string_equal(text(list, "name"), "lodger");
	assert_int_equal(number(list, "memory_quota"), 65536);
	assert_int_equal(number(list, "completed"), 1);
	assert_int_equal(number(list, "busy_ns"), s.busy_ns);
	assert_true(s.busy_ns > 0);
	list = get(v, "queues");
	assert_int_equal(YAJL_GET_ARRAY(list)->len, WORK_QUEUES + 1);
	list = YAJL_GET_ARRAY(list)->values[WORK_QUEUES];
	assert_int_equal(number(list, "partition"), 0);
	assert_int_equal(number(list, "guest"), info.index);
	assert_int_equal(number(list, "completed"), 1);
	yajl_tree_free(v);
	OK(hal_queue_destroy(q));
	OK(hal_partition_destroy(guest));
	OK(work_close(&w));
}

static void tells_why(void **state)
{
	struct work w;
	yajl_val v;

	(void)state;
	open_watched(&w, "ref?units=16", "hal.monitor=control");
	for (int i = 0; i < WORK_ROUNDS; i++)
		OK(work_round(&w));
	v = ASK("look");
	assert_true(decided(v, "is next: its key"));
	assert_true(decided(v, "deadline missed by"));
	assert_true(decided(v,
			    "is preempted for queue 0 by drain: expected wait 5.000 us, "
			    "work lost 0.000 us, slack before the deadline 990.000 us"));
	assert_true(decided(v, "the policy is priority"));
	yajl_tree_free(v);
	/* One that keeps queues itself, and moves borders. */
	v = ASK("set\0tidal\0tidal_idle_us=50");
	yajl_tree_free(v);
	for (int i = 0; i < WORK_ROUNDS; i++)
		OK(work_round(&w));
	v = ASK("look");
	assert_string_equal(text(v, "policy"), "tidal");
	assert_non_null(strstr(text(v, "settings"), "tidal_idle_us=50"));
	assert_true(decided(v, "the policy is tidal"));
	assert_true(decided(v, "units; the policy requests"));
	yajl_tree_free(v);
	OK(work_close(&w));
}

/* ---- what has been learned ------------------------------------------------------------ */

/* Takes 10 us on the 8 units of "video", and 20 us wherever it is. */
static const struct profiled two[] = {
	{"step", 80000, "", "array", 0, 64000, 0, NULL}, /* measured: 8 us */
	{"flat", 0, "", "vector", 0, 0, 20000, NULL},
};

static void open_learning(struct work *w, const char *profile)
{
	const char *const options[] = {
		"hal.monitor=read",    dir_option, "hal.plugins=" PLUGIN_EXPECTS,
		"policy.name=expects", profile,    NULL};

	memset(w, 0, sizeof(*w));
	OK(work_open(w, "ref?units=16", options));
}

static struct hal_program *load(const struct work *w,
				const struct hal_ref_kernel *kernels, uint32_t count)
{
	struct hal_program *program;

	OK(hal_ref_load(w->dev, kernels, count, &program));
	return program;
}

static struct hal_point launch(struct hal_program *program, const char *name,
			       struct hal_queue *q, uint32_t count)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmds[64];
	struct hal_kernel *kernel;
	struct hal_point done;

	OK(hal_kernel_find(program, name, &kernel));
	assert_true(count <= 64);
	for (uint32_t i = 0; i < count; i++)
		cmds[i] = hal_cmd_launch(kernel, NULL, 0);
	d.cmds = cmds;
	d.cmd_count = count;
	OK(hal_submit(q, &d, &done));
	return done;
}

/* The i-th that has been learned has so many such keys, and these numbers. */
static yajl_val row(yajl_val v, size_t i, size_t keys, const char *a, long long x,
		    const char *b, long long y)
{
	yajl_val list = get(v, "learned"), r;

	assert_true(i < YAJL_GET_ARRAY(list)->len);
	r = YAJL_GET_ARRAY(list)->values[i];
	assert_int_equal(YAJL_GET_OBJECT(r)->len, keys);
	assert_int_equal(number(r, a), x);
	assert_int_equal(number(r, b), y);
	assert_in_range(number(r, "sure_permille"), 1, 1000);
	return r;
}

static bool has_learned(const char *bytes)
{
	return strstr(bytes, "learned") != NULL;
}

/* Pairs, kernels on numbers of units, and of queues what is no kernel's alone. */
static void shows_what_is_learned(void **state)
{
	static const struct hal_ref_kernel flat[] = {
		{.name = "flat", .fn = work_step, .span_ns = 20000}};
	static char text_of_it[PROFILE_BYTES];
	struct hal_program *other;
	struct hal_point last[2];
	yajl_val v, r;
	struct work w;

	(void)state;
	profile_text_pairs(text_of_it, two, 2, 4, "[]");
	open_learning(&w, profile_file(text_of_it));
	other = load(&w, flat, 1);
	yajl_tree_free(ASK("look"));
	assert_false(has_learned(answer)); /* though there is a profile */
	last[0] = launch(w.program, "step", w.queue[1], 40);
	last[1] = launch(other, "flat", w.queue[3], 3); /* one is too few */
	OK(hal_wait(last, 2, 0, HAL_FOREVER));
	v = ASK("look");
	/* 8 us alone, 10 beside the other; of that one three say nothing of a pair. */
	assert_int_equal(YAJL_GET_ARRAY(get(v, "learned"))->len, 5);
	assert_int_equal(number(v, "learned_cut"), 0);
	r = row(v, 0, 5, "program", 1, "beside", 2);
	assert_int_equal(number(r, "longer_permille"), 250);
	assert_in_range(number(r, "commands"), 5, 7);
	assert_in_range(number(r, "sure_permille"), 130, 200);
	r = row(v, 1, 6, "program", 1, "units", 8);
	assert_string_equal(text(r, "kernel"), "step");
	assert_int_equal(number(r, "commands"), 40);
	assert_in_range(number(r, "ns"), 9950, 10000);
	r = row(v, 2, 6, "program", 2, "units", 2);
	assert_string_equal(text(r, "kernel"), "flat");
	assert_int_equal(number(r, "commands"), 3);
	assert_int_equal(number(r, "ns"), 20000);
	r = row(v, 3, 6, "work", 1000000, "units", 8);
	assert_int_equal(number(r, "ns"), 125000);
	assert_int_equal(number(r, "commands"), 40);
	assert_int_equal(number(r, "queue"),
			 number(YAJL_GET_ARRAY(get(v, "queues"))->values[1], "id"));
	r = row(v, 4, 5, "ns", 20000, "units", 2);
	assert_int_equal(number(r, "queue"),
			 number(YAJL_GET_ARRAY(get(v, "queues"))->values[3], "id"));
	yajl_tree_free(v);
	OK(hal_program_unload(other));
	OK(work_close(&w));
	/* Nobody asks for it, policy or class: nothing is learned. */
	open_watched(&w, "ref?units=16", "hal.monitor=read");
	last[0] = launch(w.program, "step", w.queue[3], 40);
	OK(hal_wait(last, 1, 0, HAL_FOREVER));
	yajl_tree_free(ASK("look"));
	assert_false(has_learned(answer));
	OK(work_close(&w));
	profile_gone();
}

enum { KERNELS = 130 };

/* Kernels that differ in their work. */
static void many_kernels(char *profile, struct hal_ref_kernel *k)
{
	profile_put_head(profile, 4);
	profile_put(profile, "{\"name\": \"many\", \"kernels\": [");
	for (uint32_t i = 0; i < KERNELS; i++) {
		k[i] = (struct hal_ref_kernel){.fn = work_step, .work = 1000 + i};
		snprintf(k[i].name, sizeof(k[i].name), "k%u", i);
		profile_put(profile,
			    "%s{\"name\": \"k%u\", \"work\": %u, \"arg_bytes\": [],\n"
			    "\"class\": \"array\", \"bytes\": 0, \"units\": [{\"units\": "
			    "2, \"ns\": 500, \"spread_ns\": 0}]}",
			    i != 0 ? "," : "", i, 1000 + i);
	}
	profile_put(profile, "]}]}\n");
}

static void learned_are(size_t rows, bool cut)
{
	yajl_val v = ASK("look");

	assert_int_equal(YAJL_GET_ARRAY(get(v, "learned"))->len, rows);
	assert_int_equal(number(v, "learned_cut"), cut);
	yajl_tree_free(v);
}

/* Rows of all, and kernels. */
static void much_learned_is_cut(void **state)
{
	static struct hal_ref_kernel kernels[KERNELS];
	static char text_of_it[PROFILE_BYTES];
	static struct hal_queue *more[MANY];
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_program *many;
	struct hal_point done;
	struct work w;
	char name[8];

	(void)state;
	many_kernels(text_of_it, kernels);
	open_learning(&w, profile_file(text_of_it));
	many = load(&w, kernels, KERNELS);
	for (int twice = 0; twice < 2; twice++)
		for (int i = 0; i < KERNELS - 2; i++) {
			snprintf(name, sizeof(name), "k%d", i);
			done = launch(many, name, w.queue[3], 1);
			OK(hal_wait(&done, 1, 0, HAL_FOREVER));
		}
	learned_are(128 + 1, false);
	for (int i = 0; i < MANY; i++) {
		OK(hal_queue_create(w.part[1], &d, &more[i]));
		done = launch(many, "k0", more[i], 1);
		OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	}
	learned_are(512, true);
	for (int i = 0; i < MANY; i++)
		OK(hal_queue_destroy(more[i]));
	learned_are(128 + 1, false);
	done = launch(many, "k128", w.queue[3], 1);
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	done = launch(many, "k129", w.queue[3], 1);
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	learned_are(128 + 1, true);
	OK(hal_program_unload(many));
	OK(work_close(&w));
	profile_gone();
}

/* ---- how much ------------------------------------------------------------------------- */

/* More than are shown. */
static void many_queues_are_cut(void **state)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	static struct hal_queue *more[MANY];
	struct work w;
	yajl_val v;

	(void)state;
	open_watched(&w, "ref?units=16", "hal.monitor=read");
	for (int i = 0; i < MANY; i++)
		OK(hal_queue_create(w.part[1], &d, &more[i]));
	v = ASK("look");
	assert_int_equal(number(v, "queues_all"), MANY + WORK_QUEUES);
	assert_int_equal(YAJL_GET_ARRAY(get(v, "queues"))->len, 512);
	yajl_tree_free(v);
	for (int i = 0; i < MANY; i++)
		OK(hal_queue_destroy(more[i]));
	OK(work_close(&w));
}

/* An engine that sleeps is woken, a partition's name need not be text. */
static void real_clock(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *odd;
	struct work w;
	yajl_val v;

	(void)state;
	open_watched(&w, "ref?units=16&clock=real", "hal.monitor=read");
	d.units_floor = 1;
	memcpy(d.name, "a\"\x1b\xff<", 6);
	OK(hal_partition_create(w.dev, &d, &odd));
	for (int i = 0; i < 3; i++) {
		v = ASK("look");
		assert_string_equal(text(v, "clock"), "real");
		assert_string_equal(
			text(YAJL_GET_ARRAY(get(v, "partitions"))->values[2], "name"),
			"a\"\x1b\xef\xbf\xbd<");
		yajl_tree_free(v);
	}
	OK(hal_partition_destroy(odd));
	OK(work_close(&w));
}

/* ---- nothing else changes ----------------------------------------------------------- */

struct looker {
	pthread_t thread;
	atomic_bool stop;
	atomic_int looked;
	char path[128];
	char text[1 << 18];
};

static void *look_on(void *arg)
{
	struct looker *l = arg;

	while (!atomic_load(&l->stop))
		if (ask_bytes(l->path, "look", 5, l->text, sizeof(l->text)) > 100)
			atomic_fetch_add(&l->looked, 1);
	return NULL;
}

/* Device time after each round. */
static void run_rounds(struct work *w, uint64_t *ends, int from, int to)
{
	for (int i = from; i < to; i++) {
		OK(work_round(w));
		ends[i] = hal_device_get_time(w->dev);
	}
}

static void schedule_is_the_same(void **state)
{
	static const char *const plain[] = {"policy.name=tidal", NULL};
	const char *watched[] = {"policy.name=tidal", "hal.monitor=read", dir_option,
				 NULL};
	static struct looker lookers[LOOKERS];
	static uint64_t alone[400], seen[400];
	struct hal_stats a = HAL_INIT(hal_stats), b = HAL_INIT(hal_stats);
	struct work w = {0};
	int from = 0;

	(void)state;
	OK(work_open(&w, "ref?units=16", plain));
	run_rounds(&w, alone, 0, 400);
	OK(hal_device_get_stats(w.dev, &a));
	OK(work_close(&w));
	memset(&w, 0, sizeof(w));
	OK(work_open(&w, "ref?units=16", watched));
	for (int i = 0; i < LOOKERS; i++) {
		find_socket(lookers[i].path, sizeof(lookers[i].path));
		assert_int_equal(
			pthread_create(&lookers[i].thread, NULL, look_on, &lookers[i]),
			0);
	}
	/* Some of it while each of them is known to look. */
	for (int i = 0; i < 4; i++, from += 100) {
		int before = atomic_load(&lookers[i % LOOKERS].looked);

		run_rounds(&w, seen, from, from + 100);
		while (atomic_load(&lookers[i % LOOKERS].looked) == before)
			sched_yield();
	}
	OK(hal_device_get_stats(w.dev, &b));
	for (int i = 0; i < LOOKERS; i++) {
		atomic_store(&lookers[i].stop, true);
		pthread_join(lookers[i].thread, NULL);
	}
	assert_memory_equal(alone, seen, sizeof(alone));
	assert_int_equal(a.busy_ns, b.busy_ns);
	assert_int_equal(a.suspends, b.suspends);
	OK(work_close(&w));
}

/* Who says nothing, and who reads nothing, keep up neither the device nor its end. */
static void slow_readers(void **state)
{
	char path[128];
	int silent, deaf;
	struct work w;

	(void)state;
	open_watched(&w, "ref?units=16", "hal.monitor=read");
	find_socket(path, sizeof(path));
	deaf = reach(path);
	assert_int_equal(send(deaf, "look", 5, MSG_NOSIGNAL), 5);
	shutdown(deaf, SHUT_WR);
	silent = reach(path);
	for (int i = 0; i < WORK_ROUNDS; i++)
		OK(work_round(&w));
	OK(work_close(&w));
	assert_int_equal(find_socket(path, sizeof(path)), 0);
	close(silent);
	close(deaf);
}

/* ---- what is refused ---------------------------------------------------------------- */

static void requests_that_are_none(void **state)
{
	static char many[300], long_one[5000];
	char path[128];
	struct work w;

	(void)state;
	open_watched(&w, "ref?units=16", "hal.monitor=read");
	refused("look", 4, "malformed request"); /* without an end */
	refused("", 0, "malformed request");
	REFUSED("look\0more", "unknown request");
	REFUSED("reset", "unknown request");
	REFUSED("set\0fifo", "hal.monitor = read");
	for (size_t i = 0; i < sizeof(many); i += 2)
		memcpy(many + i, "x", 2);
	refused(many, sizeof(many), "malformed request");
	/* Longer than any: no answer. */
	memset(long_one, 'x', sizeof(long_one));
	find_socket(path, sizeof(path));
	assert_int_equal(ask_bytes(path, long_one, sizeof(long_one), answer, 100), 0);
	OK(work_close(&w));
	open_watched(&w, "ref?units=16", "hal.monitor=control");
	REFUSED("set", "policy name is missing");
	REFUSED("set\0nobody", "nobody");
	REFUSED("set\0tidal\0tidal_idle_us=-1", "tidal_idle_us");
	yajl_tree_free(ASK("set\0fifo"));
	OK(work_close(&w));
}

/* The user has named it, so that a device which cannot be looked at is not opened. */
static void not_opened(const char *dir, int err, const char *why)
{
	char option[512];
	const char *options[] = {"hal.monitor=control", option, NULL};
	struct hal_device *dev;

	snprintf(option, sizeof(option), "hal.monitor_dir=%s", dir);
	assert_int_equal(hal_open("ref?units=16", options, &dev), err);
	if (strstr(hal_last_error(), "hal.monitor: ") == NULL ||
	    strstr(hal_last_error(), why) == NULL)
		fail_msg("'%s' does not say: %s", hal_last_error(), why);
}

static void folders_that_will_not_do(void **state)
{
	char path[128], name[300];

	(void)state;
	snprintf(path, sizeof(path), "%s/no/folder", folder);
	not_opened(path, -ENOENT, "/no/folder: No such file");
	assert_int_equal(chmod(folder, 0755), 0);
	not_opened(folder, -EACCES, "its mode is 755");
	assert_int_equal(chmod(folder, 0710), 0);
	not_opened(folder, -EACCES, "its mode is 710");
	assert_int_equal(chmod(folder, 0700), 0);
	not_opened("/dev/null", -ENOTDIR, "/dev/null is not a folder");
	not_opened("/usr", -EACCES, "folder /usr");
	snprintf(path, sizeof(path), "%s/link", folder);
	assert_int_equal(symlink(folder, path), 0);
	not_opened(path, -ENOTDIR, "/link is not a folder");
	assert_int_equal(unlink(path), 0);
	memset(name, 'n', sizeof(name));
	memcpy(name, folder, strlen(folder));
	name[strlen(folder)] = '/';
	name[150] = '\0';
	assert_int_equal(mkdir(name, 0700), 0);
	not_opened(name, -ENAMETOOLONG, "too long for a socket");
	assert_int_equal(rmdir(name), 0);
	/* Nothing was left by any of them. */
	assert_int_equal(find_socket(path, sizeof(path)), 0);
}

/* Nobody has chosen it: the device is opened all the same, and works; nobody can look. */
static void a_default_folder_that_will_not_do(void **state)
{
	static const char *const options[] = {"hal.monitor=control", NULL};
	const char *before = getenv("XDG_RUNTIME_DIR");
	char path[128], *old = before != NULL ? strdup(before) : NULL;
	struct work w;

	(void)state;
	snprintf(path, sizeof(path), "%s/accelhal", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0755), 0);
	setenv("XDG_RUNTIME_DIR", folder, 1);
	OK(work_open(&w, "ref?units=16", options));
	OK(work_round(&w));
	assert_int_equal(rmdir(path), 0);
	OK(work_close(&w));
	if (old != NULL)
		setenv("XDG_RUNTIME_DIR", old, 1);
	else
		unsetenv("XDG_RUNTIME_DIR");
	free(old);
}

static void two_devices_of_one_program(void **state)
{
	struct work w, v;
	char path[128];

	(void)state;
	open_watched(&w, "ref?units=16", "hal.monitor=read");
	open_watched(&v, "ref?units=16", "hal.monitor=read");
	assert_int_equal(find_socket(path, sizeof(path)), 2);
	OK(work_close(&w));
	assert_int_equal(find_socket(path, sizeof(path)), 1);
	OK(work_round(&v));
	yajl_tree_free(ASK("look"));
	OK(work_close(&v));
	assert_int_equal(find_socket(path, sizeof(path)), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(off_unless_asked_for),
		TEST(answers_what_statistics_say),
		TEST(shows_guests),
		TEST(tells_why),
		TEST(shows_what_is_learned),
		TEST(much_learned_is_cut),
		TEST(many_queues_are_cut),
		TEST(real_clock),
		TEST(schedule_is_the_same),
		TEST(slow_readers),
		TEST(requests_that_are_none),
		TEST(folders_that_will_not_do),
		TEST(a_default_folder_that_will_not_do),
		TEST(two_devices_of_one_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
