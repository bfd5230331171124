/* SPDX-License-Identifier: Apache-2.0 */
/* test_status - what hald reports of its clients and tenants, and to whom. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <hal/hald.h>
#include <yajl/yajl_tree.h>

#include "hald_world.h"

enum { TEXT_MAX = 1 << 20 };

static char text[TEXT_MAX];

static const struct hal_hald_extension *operator_of(struct hal_device *dev)
{
	const struct hal_hald_extension *hald = hal_device_get_extension(dev, "hald");

	if (hald == NULL)
		fail_msg("%s", hal_last_error());
	return hald;
}

/* ---- reading a status ----------------------------------------------------------------- */

/* Ask for the status; the caller frees it. */
static yajl_val status_of(struct hal_device *dev)
{
	char why[256];
	yajl_val tree;

	OK(operator_of(dev)->status(dev, text, sizeof(text)));
	tree = yajl_tree_parse(text, why, sizeof(why));
	if (tree == NULL)
		fail_msg("not JSON: %s\n%s", why, text);
	return tree;
}

static yajl_val get(yajl_val v, const char *key)
{
	const char *path[] = {key, NULL};
	yajl_val found = yajl_tree_get(v, path, yajl_t_any);

	if (found == NULL)
		fail_msg("no key %s in:\n%s", key, text);
	return found;
}

static long long number(yajl_val v, const char *key)
{
	yajl_val found = get(v, key);

	if (!YAJL_IS_INTEGER(found))
		fail_msg("%s is no integer in:\n%s", key, text);
	return YAJL_GET_INTEGER(found);
}

static const char *string(yajl_val v, const char *key)
{
	return YAJL_GET_STRING(get(v, key));
}

/* Return the tenant of that name; NULL: there is none. */
static yajl_val tenant_find(yajl_val tree, const char *name)
{
	yajl_val list = get(tree, "tenants");

	for (size_t i = 0; i < YAJL_GET_ARRAY(list)->len; i++)
		if (strcmp(string(YAJL_GET_ARRAY(list)->values[i], "name"), name) == 0)
			return YAJL_GET_ARRAY(list)->values[i];
	return NULL;
}

static yajl_val tenant_in(yajl_val tree, const char *name)
{
	yajl_val t = tenant_find(tree, name);

	if (t == NULL)
		fail_msg("no tenant \"%s\" in:\n%s", name, text);
	return t;
}

/* Return the i-th client of t, newest first. */
static yajl_val client_in(yajl_val t, size_t i)
{
	yajl_val list = get(t, "clients");

	if (i >= YAJL_GET_ARRAY(list)->len)
		fail_msg("no client %zu in:\n%s", i, text);
	return YAJL_GET_ARRAY(list)->values[i];
}

static size_t client_count(yajl_val t)
{
	return YAJL_GET_ARRAY(get(t, "clients"))->len;
}

/* Return the number of submissions in t's histogram. */
static long long requests_of(yajl_val t)
{
	yajl_val list = get(t, "requests");
	long long sum = 0;

	for (size_t i = 0; i < YAJL_GET_ARRAY(list)->len; i++)
		sum += YAJL_GET_INTEGER(YAJL_GET_ARRAY(list)->values[i]);
	return sum;
}

/* Wait until count clients of that tenant have ended so. */
static void ended(struct hal_device *dev, const char *tenant, const char *how,
		  long long count)
{
	const int64_t until = now_ns() + LONG_NS;
	long long n;

	do {
		yajl_val tree = status_of(dev), t = tenant_find(tree, tenant);

		n = t != NULL ? number(get(t, "ended"), how) : 0;
		yajl_tree_free(tree);
		(void)sched_yield();
	} while (n < count && now_ns() < until);
	if (n != count)
		fail_msg("ended, %s of tenant \"%s\": %lld, not %lld", how, tenant, n,
			 count);
}

/* ---- tests ---------------------------------------------------------------------------- */

/* Each number is that of the client's own objects. */
static void one_client(void **state)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_stats stats = HAL_INIT(hal_stats);
	struct hal_queue *second;
	yajl_val tree, t, c;
	struct program p;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	OK(program_open(&h, &p, 4));
	qd.service_class = HAL_CLASS_LATENCY;
	OK(hal_queue_create(p.part, &qd, &second));
	for (uint32_t i = 0; i < 5; i++)
		OK(program_works(&p, i));
	OK(hal_partition_get_stats(p.part, &stats));
	tree = status_of(p.dev);
	assert_int_equal(number(tree, "hald_status"), 1);
	assert_string_equal(string(get(tree, "device"), "served"), "ref0");
	assert_string_equal(string(get(tree, "device"), "backend"), "ref");
	assert_int_equal(number(get(tree, "device"), "units"), ALL_UNITS);
	assert_true(llabs(number(get(tree, "device"), "start_s") - time(NULL)) < 60);
	assert_true(YAJL_IS_FALSE(get(get(tree, "device"), "lost")));
	t = tenant_in(tree, "everyone");
	assert_int_equal(client_count(t), 1);
	assert_int_equal(number(get(t, "has"), "units"), 4);
	assert_int_equal(number(t, "submitted"), 5);
	assert_int_equal(requests_of(t), 5);
	assert_true(number(t, "request_ns") >= number(t, "busy_ns"));
	c = client_in(t, 0);
	assert_int_equal(number(c, "pid"), getpid());
	assert_true(YAJL_IS_TRUE(get(c, "self")));
	assert_int_equal(number(c, "units"), 4);
	assert_int_equal(number(c, "partitions"), 1);
	assert_int_equal(number(c, "queues"), 2);
	assert_int_equal(YAJL_GET_ARRAY(get(c, "classes"))->len, 2);
	assert_int_equal(number(c, "submitted"), 5);
	assert_int_equal(number(c, "completed"), 5);
	assert_int_equal(number(c, "failed"), 0);
	assert_int_equal(number(c, "busy_ns"), stats.busy_ns);
	assert_int_equal(number(c, "p50_ns"), stats.request_p50_ns);
	assert_int_equal(number(c, "p99_ns"), stats.request_p99_ns);
	assert_true(stats.busy_ns > 0);
	assert_true(number(c, "age_ns") >= number(c, "busy_ns"));
	yajl_tree_free(tree);
	OK(hal_queue_destroy(second));
	program_close(&p);
	hald_stop(&h);
}

/* Counts of a tenant stay when its clients end, in whatever way. */
static void clients_end(void **state)
{
	struct hal_device *dev;
	struct program p;
	struct hald h;
	long long busy;
	yajl_val tree, t;
	pid_t pid;

	(void)state;
	hald_start(&h, "ref?clock=real");
	opened_by(&h, ".", &dev, 0);
	OK(program_open(&h, &p, 4));
	for (uint32_t i = 0; i < 3; i++)
		OK(program_works(&p, i));
	tree = status_of(dev);
	busy = number(tenant_in(tree, "everyone"), "busy_ns");
	assert_true(busy > 0);
	yajl_tree_free(tree);
	program_close(&p);
	pid = fork();
	if (pid == 0) {
		if (program_open(&h, &p, 4) == 0 && program_works(&p, 1) == 0)
			(void)kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	ended(dev, "everyone", "killed", 1);
	ended(dev, "everyone", "exit", 1);
	tree = status_of(dev);
	t = tenant_in(tree, "everyone");
	assert_int_equal(number(get(t, "ended"), "protocol"), 0);
	assert_int_equal(client_count(t), 1);
	assert_int_equal(number(t, "submitted"), 4);
	assert_int_equal(number(t, "completed"), 4);
	assert_int_equal(requests_of(t), 4);
	assert_true(number(t, "busy_ns") > busy);
	assert_int_equal(number(get(t, "has"), "units"), 0);
	yajl_tree_free(tree);
	OK(hal_close(dev));
	hald_stop(&h);
}

struct worker {
	const struct hald *h;
	_Atomic bool over;
	int err;
	uint32_t submitted;
};

/* Create and destroy partitions, of which each does a little; first try to destroy each
 * while its queue is there, which fails. */
static void *comes_and_goes(void *arg)
{
	struct worker *w = arg;

	for (uint32_t i = 0; w->err == 0 && i < 300; i++) {
		struct program p;

		w->err = program_open(w->h, &p, 4);
		for (uint32_t k = 0; w->err == 0 && k < 3; k++, w->submitted++)
			w->err = program_works(&p, k);
		if (w->err == 0 && hal_partition_destroy(p.part) != -EBUSY)
			w->err = -EPROTO;
		if (w->err == 0)
			program_close(&p);
	}
	atomic_store(&w->over, true);
	return NULL;
}

/* No count goes backwards, and none is counted twice, whenever the status is read. */
static void never_backwards(void **state)
{
	static const char *const keys[] = {"busy_ns", "submitted", "completed",
					   "request_ns"};
	long long last[4] = {0}, requests = 0;
	struct hal_device *dev;
	struct worker w = {.err = 0};
	uint32_t samples = 0;
	struct hald h;
	pthread_t thread;
	yajl_val tree;
	bool over;

	(void)state;
	hald_start(&h, "ref?clock=real");
	w.h = &h;
	opened_by(&h, ".", &dev, 0);
	assert_int_equal(pthread_create(&thread, NULL, comes_and_goes, &w), 0);
	do {
		yajl_val t;

		over = atomic_load(&w.over);
		tree = status_of(dev);
		t = tenant_in(tree, "everyone");
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
			long long n = number(t, keys[i]);

			if (n < last[i])
				fail_msg("sample %u: %s was %lld and is %lld", samples,
					 keys[i], last[i], n);
			last[i] = n;
		}
		assert_true(requests_of(t) >= requests);
		requests = requests_of(t);
		yajl_tree_free(tree);
		samples++;
	} while (!over);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(w.err, 0);
	print_message("%u samples\n", samples);
	assert_true(samples > 10);
	assert_int_equal(last[1], w.submitted);
	assert_int_equal(requests, w.submitted);
	OK(hal_close(dev));
	hald_stop(&h);
}

static const char tenants[] = "[tenant \"video\"]\n"
			      "socket = yes\n"
			      "units = 8\n"
			      "queues = 2\n"
			      "clients = 1\n"
			      "[tenant \"rest\"]\n"
			      "admin = yes\n";

/* Requests that are refused count for the tenant whose they are. */
static void refusals(void **state)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_device *video, *second, *rest;
	struct hal_partition *part;
	struct hal_queue *q;
	yajl_val tree, t;
	struct hald h;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	opened_by(&h, "video", &video, 0);
	opened_by(&h, ".", &rest, 0);
	opened_by(&h, "video", &second, -EDQUOT);
	pd.units_floor = 9;
	assert_int_equal(hal_partition_create(video, &pd, &part), -EDQUOT);
	pd.units_floor = 1;
	OK(hal_partition_create(video, &pd, &part));
	qd.service_class = HAL_CLASS_LATENCY;
	assert_int_equal(hal_queue_create(part, &qd, &q), -EPERM);
	tree = status_of(rest);
	t = tenant_in(tree, "video");
	assert_int_equal(number(get(t, "limits"), "units"), 8);
	assert_null(yajl_tree_get(get(t, "limits"), (const char *[]){"memory", NULL},
				  yajl_t_any));
	assert_non_null(strstr(string(t, "socket"), "/video/ref0.sock"));
	assert_int_equal(number(get(t, "refused"), "EDQUOT"), 2);
	assert_int_equal(number(get(t, "refused"), "EPERM"), 1);
	t = tenant_in(tree, "rest");
	assert_int_equal(number(get(t, "refused"), "EDQUOT"), 0);
	assert_int_equal(number(get(t, "refused"), "EPERM"), 0);
	yajl_tree_free(tree);
	OK(hal_partition_destroy(part));
	OK(hal_close(video));
	OK(hal_close(rest));
	hald_with_tenants_stop(&h);
}

/* Who breaks the protocol, and who goes with the tenant. */
static void ways_to_end(void **state)
{
	struct far_message m = {.op = FAR_OPS + 1};
	struct hal_device *dev;
	struct program p;
	char path[256], option[128];
	yajl_val tree;
	struct hald h, job;
	int fd;

	(void)state;
	hald_start(&h, "ref?clock=real");
	opened_by(&h, ".", &dev, 0);
	fd = raw_client(&h);
	assert_int_equal(raw_ask(fd, &m, NULL, 0), -EPROTO);
	ended(dev, "everyone", "protocol", 1);
	(void)close(fd);
	OK(operator_of(dev)->tenant_add(dev, "[tenant \"job\"]\nsocket=yes\n", path,
					sizeof(path)));
	job = h;
	snprintf(option, sizeof(option), "%.80s/job", h.option);
	memcpy(job.option, option, sizeof(job.option));
	OK(program_open(&job, &p, 2));
	OK(program_works(&p, 1));
	OK(operator_of(dev)->tenant_remove(dev, "job"));
	ended(dev, "", "removed", 1);
	tree = status_of(dev);
	assert_null(tenant_find(tree, "job"));
	assert_int_equal(number(tenant_in(tree, ""), "submitted"), 1);
	assert_int_equal(number(tenant_in(tree, "everyone"), "submitted"), 0);
	yajl_tree_free(tree);
	program_close(&p);
	OK(hal_close(dev));
	hald_stop(&h);
}

/* A tenant learns nothing of others, and an operator needs room for the text. */
static void permissions(void **state)
{
	const struct hal_hald_extension *hald;
	struct hal_device *video, *rest;
	char few[100];
	struct hald h;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real", tenants);
	opened_by(&h, "video", &video, 0);
	opened_by(&h, ".", &rest, 0);
	hald = operator_of(video);
	assert_true(hald->size > offsetof(struct hal_hald_extension, status));
	memset(text, 'x', sizeof(text));
	assert_int_equal(hald->status(video, text, sizeof(text)), -EPERM);
	assert_non_null(strstr(hal_last_error(), "its operator's"));
	assert_null(strstr(hal_last_error(), "rest"));
	for (size_t i = 0; i < sizeof(text); i++)
		assert_int_equal(text[i], 'x');
	assert_int_equal(hald->status(rest, few, sizeof(few)), -ENOBUFS);
	assert_non_null(strstr(hal_last_error(), "99 bytes"));
	assert_int_equal(hald->status(rest, NULL, 0), -EINVAL);
	OK(hal_close(video));
	OK(hal_close(rest));
	hald_with_tenants_stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_client),      cmocka_unit_test(clients_end),
		cmocka_unit_test(never_backwards), cmocka_unit_test(refusals),
		cmocka_unit_test(ways_to_end),     cmocka_unit_test(permissions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
