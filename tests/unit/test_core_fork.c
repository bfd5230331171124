/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has opened is its own: in a child every handle answers -EPERM at once.
 */
#include "ref_world.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hal/ext/options.h>
#include <hal/ref.h>

#include "config/registry.h"
#include "tests/scan.h"

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

static const struct hal_ref_kernel kernels[] = {
	{.name = "nothing", .fn = nothing, .work = 1}};

/* Everything there is a handle of. */
struct all {
	struct ref r;
	struct hal_buffer *buf;
	struct hal_program *prog;
	struct hal_kernel *kernel;
	struct hal_timeline *t;
	struct hal_sequence *seq;
	struct hal_completions *ring;
	struct hal_point own, quiet, moved, done; /* of a queue's and a partition's own */
};

static void make_all(struct all *a, const char *target)
{
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	const struct hal_cmd nop = hal_cmd_of(HAL_OP_NOP, 0);

	memset(a, 0, sizeof(*a));
	ref_open_with(&a->r, target, NULL);
	a->buf = add_buffer(a->r.part, 64);
	OK(hal_ref_load(a->r.dev, kernels, 1, &a->prog));
	OK(hal_kernel_find(a->prog, "nothing", &a->kernel));
	OK(hal_timeline_create(a->r.dev, &a->t));
	s.cmds = &nop;
	s.cmd_count = 1;
	OK(hal_sequence_create(a->r.part, &s, &a->seq));
	OK(hal_completions_create(a->r.dev, 8, &a->ring));
	OK(hal_queue_suspend(a->r.q, HAL_SUSPEND_DRAIN, &a->quiet));
	OK(hal_queue_resume(a->r.q));
	d.units_floor = 3;
	OK(hal_partition_resize(a->r.part, &d, &a->moved));
	OK(hal_wait(&a->moved, 1, 0, in_ms(NEVER_MS)));
	OK(submit_nop(a->r.q, &a->done));
	OK(hal_wait(&a->done, 1, 0, in_ms(NEVER_MS)));
	a->own = (struct hal_point){hal_queue_get_timeline(a->r.q), 2};
	a->quiet.value++;
	a->moved.value++;
}

static void destroy_all(struct all *a)
{
	works(a->r.q);
	OK(hal_completions_destroy(a->ring));
	OK(hal_sequence_destroy(a->seq));
	OK(hal_timeline_destroy(a->t));
	OK(hal_program_unload(a->prog));
	OK(hal_buffer_destroy(a->buf));
	ref_close(&a->r);
}

#define REFUSED(call)                                                                    \
	do {                                                                             \
		int is_ = (call);                                                        \
		if (is_ != -EPERM) {                                                     \
			fprintf(stderr, "in a child: %s is %d: %s\n", #call, is_,        \
				hal_last_error());                                       \
			return 1;                                                        \
		}                                                                        \
	} while (0)

/* As REFUSED, for what says nothing itself. */
#define SILENT(call)                                                                     \
	do {                                                                             \
		if ((call) || strstr(hal_last_error(), "made before a fork") == NULL) {  \
			fprintf(stderr, "in a child: %s: %s\n", #call,                   \
				hal_last_error());                                       \
			return 1;                                                        \
		}                                                                        \
		(void)hal_strerror(0);                                                   \
		(void)hal_wait(NULL, 0, 0, 0); /* another text */                        \
	} while (0)

static int devices_refused(struct all *a)
{
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_policy_info policy = HAL_INIT(hal_policy_info);
	struct hal_partition_info part = HAL_INIT(hal_partition_info);
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_device *dev = a->r.dev;
	struct hal_partition *p;
	struct hal_timeline *t;
	struct hal_completions *c;
	struct hal_program *prog;

	d.units_floor = 1;
	REFUSED(hal_device_get_info(dev, &info));
	REFUSED(hal_device_get_stats(dev, &s));
	REFUSED(hal_device_poll(dev, 1));
	SILENT(hal_device_get_time(dev) != 0);
	REFUSED(hal_device_set_policy(dev, "rr", NULL));
	REFUSED(hal_device_get_policy(dev, &policy));
	SILENT(hal_device_get_extension(dev, "ref") != NULL);
	SILENT(hal_device_get_native(dev) != NULL);
	REFUSED(hal_trace_start(dev, "/dev/null"));
	REFUSED(hal_trace_stop(dev));
	REFUSED(hal_partition_create(dev, &d, &p));
	REFUSED(hal_partition_create_named(dev, "x", &p));
	REFUSED(hal_partition_resize(a->r.part, &d, NULL));
	REFUSED(hal_partition_get_info(a->r.part, &part));
	REFUSED(hal_partition_get_stats(a->r.part, &s));
	REFUSED(hal_partition_destroy(a->r.part));
	REFUSED(hal_program_load(dev, kernels, sizeof(kernels), &prog));
	REFUSED(hal_timeline_create(dev, &t));
	REFUSED(hal_completions_create(dev, 8, &c));
	REFUSED(hal_close(dev));
	return 0;
}

static int things_refused(struct all *a)
{
	struct hal_kernel_info info = HAL_INIT(hal_kernel_info);
	struct hal_program_info program = HAL_INIT(hal_program_info);
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	const struct hal_cmd nop = hal_cmd_of(HAL_OP_NOP, 0);
	struct hal_buffer *b;
	struct hal_kernel *k;
	struct hal_sequence *seq;
	uint32_t word = 0;
	void *address;

	s.cmds = &nop;
	s.cmd_count = 1;
	d.bytes = 64;
	REFUSED(hal_buffer_create(a->r.part, &d, &b));
	SILENT(hal_buffer_get_bytes(a->buf) != 0);
	REFUSED(hal_buffer_write(a->buf, 0, &word, sizeof(word)));
	REFUSED(hal_buffer_read(a->buf, 0, &word, sizeof(word)));
	REFUSED(hal_buffer_map(a->buf, &address));
	REFUSED(hal_buffer_unmap(a->buf));
	REFUSED(hal_buffer_destroy(a->buf));
	REFUSED(hal_kernel_find(a->prog, "nothing", &k));
	REFUSED(hal_kernel_get(a->prog, 0, &k));
	REFUSED(hal_program_get_info(a->prog, &program));
	REFUSED(hal_kernel_get_info(a->kernel, &info));
	REFUSED(hal_program_unload(a->prog));
	REFUSED(hal_sequence_create(a->r.part, &s, &seq));
	REFUSED(hal_sequence_set_args(a->seq, 0, NULL, 0));
	REFUSED(hal_sequence_destroy(a->seq));
	return 0;
}

static int queues_refused(struct all *a)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	const struct hal_point t = {a->t, 1};
	struct hal_stats st = HAL_INIT(hal_stats);
	struct hal_fault_info fault = HAL_INIT(hal_fault_info);
	struct hal_completion c;
	struct hal_queue *q;
	int err = 0;

	REFUSED(hal_queue_create(a->r.part, &d, &q));
	REFUSED(hal_queue_suspend(a->r.q, HAL_SUSPEND_DRAIN, NULL));
	REFUSED(hal_queue_resume(a->r.q));
	REFUSED(hal_queue_get_stats(a->r.q, &st));
	REFUSED(hal_queue_get_fault(a->r.q, &fault));
	SILENT(hal_queue_get_timeline(a->r.q) != NULL);
	REFUSED(submit_nop(a->r.q, NULL));
	REFUSED(hal_submit(a->r.q, &s, NULL));
	REFUSED(hal_sequence_submit(a->r.q, a->seq, NULL, NULL));
	REFUSED(hal_queue_destroy(a->r.q));
	REFUSED(hal_completions_read(a->ring, &c, 1, HAL_FOREVER));
	REFUSED(hal_completions_get_fd(a->ring));
	REFUSED(hal_completions_destroy(a->ring));
	REFUSED(hal_wait(&t, 1, 0, HAL_FOREVER));
	REFUSED(hal_wait(&a->own, 1, 0, HAL_FOREVER));
	REFUSED(hal_wait(&a->quiet, 1, 0, HAL_FOREVER));
	REFUSED(hal_wait(&a->moved, 1, 0, HAL_FOREVER));
	REFUSED(hal_wait(&a->done, 1, 0, 0));
	REFUSED(hal_point_open_fd(&t));
	REFUSED(hal_point_open_fd(&a->own));
	REFUSED(hal_timeline_signal(a->t, 1));
	REFUSED(hal_timeline_signal(a->own.timeline, 9));
	(void)hal_timeline_get_value(a->t, &err);
	REFUSED(err);
	err = 0;
	(void)hal_timeline_get_value(a->own.timeline, &err);
	REFUSED(err);
	REFUSED(hal_timeline_destroy(a->t));
	REFUSED(hal_timeline_destroy(a->own.timeline));
	return 0;
}

/* Its exit status; a call that waits is killed. */
static int in_child(int (*fn)(struct all *), struct all *a)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)alarm(NEVER_MS / 1000);
		_exit(fn(a));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void children(const char *target)
{
	struct all a;

	make_all(&a, target);
	assert_int_equal(in_child(devices_refused, &a), 0);
	assert_int_equal(in_child(things_refused, &a), 0);
	assert_int_equal(in_child(queues_refused, &a), 0);
	destroy_all(&a);
}

static void real(void **state)
{
	(void)state;
	children("ref?clock=real");
}

static void virtual(void **state)
{
	(void)state;
	children("ref?clock=virtual");
}

/* While others create and destroy, submit and wait: the child never finds a lock that
 * nobody will give back. */
struct busy {
	struct ref *r;
	atomic_bool stop;
	const char *bad;
};

static void *keep_busy(void *arg)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_stats s = HAL_INIT(hal_stats);
	struct busy *b = arg;
	struct hal_point p;
	struct hal_queue *q;

	while (!atomic_load(&b->stop) && b->bad == NULL)
		if (hal_queue_create(b->r->part, &d, &q) != 0 || submit_nop(q, &p) != 0 ||
		    wait_ms(p, NEVER_MS) != 0 ||
		    hal_device_get_stats(b->r->dev, &s) != 0 || hal_queue_destroy(q) != 0)
			b->bad = "a queue's life";
	return NULL;
}

static int refused_and_opens(struct all *a)
{
	int err = devices_refused(a);

	return err != 0 ? err : queues_refused(a);
}

static void among_threads(void **state)
{
	struct busy b = {0};
	pthread_t thread;
	struct all a;

	(void)state;
	make_all(&a, "ref?clock=real");
	b.r = &a.r;
	assert_int_equal(pthread_create(&thread, NULL, keep_busy, &b), 0);
	for (int i = 0; i < 30; i++)
		assert_int_equal(in_child(refused_and_opens, &a), 0);
	atomic_store(&b.stop, true);
	pthread_join(thread, NULL);
	assert_null(b.bad);
	destroy_all(&a);
}

/* A thread of the parent that is in a plugin's entry or loads a driver; no child has it.
 */
struct held {
	int at, go[2]; /* where its bytes come from; where it waits for one */
	pthread_t thread;
};

static void *load_held(void *arg)
{
	(void)arg;
	OK(registry_load(HELD_PLUGIN));
	return NULL;
}

/* What fn answers in a child; -1: it does not.  What the thread has allocated is lost
 * there, so the child ends without the check for leaks that valgrind makes at an exit. */
static int in_child_of_held(int (*fn)(struct all *))
{
	unsigned char status;
	int said[2], answer = -1;
	pid_t pid;

	assert_int_equal(pipe(said), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)alarm(NEVER_MS / 1000);
		status = (unsigned char)fn(NULL);
		if (write(said[1], &status, 1) == 1)
			(void)kill(getpid(), SIGKILL);
		_exit(1);
	}
	(void)close(said[1]);
	if (read(said[0], &status, 1) == 1)
		answer = status;
	(void)close(said[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return answer;
}

/* Return once the thread is there. */
static void hold(struct held *h, void *(*load)(void *), void *arg)
{
	int at[2];
	char text[32], byte;

	assert_int_equal(pipe(at), 0);
	assert_int_equal(pipe(h->go), 0);
	snprintf(text, sizeof(text), "%d,%d", h->go[0], at[1]);
	setenv("HELD", text, 1);
	assert_int_equal(pthread_create(&h->thread, NULL, load, arg), 0);
	assert_int_equal(read(at[0], &byte, 1), 1);
	unsetenv("HELD");
	(void)close(at[1]);
	h->at = at[0];
}

static void let_go(struct held *h)
{
	assert_int_equal(write(h->go[1], "", 1), 1);
	pthread_join(h->thread, NULL);
	(void)close(h->go[0]);
	(void)close(h->go[1]);
	(void)close(h->at);
}

static int open_all(struct all *a)
{
	static const char *const options[] = {"hal.plugins=" HELD_PLUGIN, NULL};
	struct hal_option_info o = HAL_INIT(hal_option_info);
	struct hal_device *dev;

	(void)a;
	if (scan_option(0, NULL, &o) != 0)
		return 1;
	if (hal_open("ref?clock=virtual", NULL, &dev) != 0 || hal_close(dev) != 0)
		return 2;
	/* What was being loaded is not there, and can be loaded. */
	if (registry_find("held") != NULL)
		return 3;
	if (hal_open("ref?clock=virtual", options, &dev) != 0 || hal_close(dev) != 0)
		return 4;
	return registry_find("held") != NULL ? 0 : 5;
}

static void while_loading(void **state)
{
	struct held h;
	int status;

	(void)state;
	hold(&h, load_held, NULL);
	status = in_child_of_held(open_all);
	let_go(&h);
	assert_int_equal(status, 0);
	assert_non_null(registry_find("held"));
}

/* Each backend has a lock of its own while it loads its vendor's library. */
static const struct driver {
	const char *name, *key, *held, *none;
} drivers[] = {
	{"cuda", "library", HELD_FOLDER "/held_cuda.so", "no driver"},
	{"rocm", "library", HELD_FOLDER "/held_rocm.so", "no HIP"},
	{"levelzero", "loader", HELD_FOLDER "/held_levelzero.so", "no loader"},
	{"fpga", "library", HELD_FOLDER "/held_fpga.so", "no XRT"},
};
static const struct driver *driver; /* whose turn it is */

static int open_driver(const char *library)
{
	struct hal_device *dev;
	char target[4200];

	snprintf(target, sizeof(target), "%s:0?%s=%s", driver->name, driver->key,
		 library);
	return hal_open(target, NULL, &dev);
}

/* It is no driver. */
static void *load_driver(void *arg)
{
	(void)arg;
	assert_int_equal(open_driver(driver->held), -ENODEV);
	return NULL;
}

static int open_none(struct all *a)
{
	(void)a;
	if (open_driver("/nowhere/lib.so") != -ENODEV)
		return 1;
	return strstr(hal_last_error(), driver->none) != NULL ? 0 : 2;
}

static void while_driver_loads(void **state)
{
	struct held h;
	int status;

	(void)state;
	OK(registry_load(""));
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		driver = &drivers[i];
		if (registry_find(driver->name) == NULL)
			continue; /* this build leaves it out */
		hold(&h, load_driver, NULL);
		status = in_child_of_held(open_none);
		let_go(&h);
		if (status != 0)
			fail_msg("%s: the child is %d", driver->name, status);
	}
}

/* A driver that forks while it is loaded waits for nothing that it holds itself. */
static int loads_what_forks(struct all *a)
{
	(void)a;
	setenv("FORKS", "", 1);
	return registry_load(HELD_PLUGIN) == 0 && registry_find("held") != NULL ? 0 : 1;
}

static void forks_in_entry(void **state)
{
	(void)state;
	assert_null(registry_find("held"));
	assert_int_equal(in_child(loads_what_forks, NULL), 0);
}

/* A child may open for itself. */
static int own_device(struct all *a)
{
	struct ref r;

	(void)a;
	if (hal_open("ref?clock=virtual", NULL, &r.dev) != 0)
		return 1;
	return hal_close(r.dev) == 0 ? 0 : 2;
}

static void opens_for_itself(void **state)
{
	struct all a;

	(void)state;
	make_all(&a, "ref?clock=real");
	assert_int_equal(in_child(own_device, &a), 0);
	destroy_all(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forks_in_entry),
		cmocka_unit_test(while_loading),
		cmocka_unit_test(while_driver_loads),
		cmocka_unit_test(real),
		cmocka_unit_test(virtual),
		cmocka_unit_test(among_threads),
		cmocka_unit_test(opens_for_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
