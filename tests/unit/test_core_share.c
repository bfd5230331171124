/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_share.c - timelines that one device exports and another one imports.  Both
 * are of this process; tests/share has two. */
#include "ref_world.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hal/ref.h>

enum { BYTES = 64 };

#define BOTH (HAL_TIMELINE_WAIT | HAL_TIMELINE_SIGNAL)

static const char *const virtual = "ref";
static const char *const real = "ref?clock=real";

/* Two devices; the first one exports its timeline, the second one imports it. */
struct pair {
	struct ref a, b;
	struct hal_timeline *line, *import;
};

static void device_close(struct ref *r)
{
	if (r->q != NULL)
		OK(hal_queue_destroy(r->q));
	OK(hal_partition_destroy(r->part));
	OK(hal_close(r->dev));
}

static struct hal_timeline *share(struct hal_timeline *line, uint32_t rights,
				  struct hal_device *dev)
{
	struct hal_timeline *import;
	int fd;

	OK(hal_timeline_export(line, rights, &fd));
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
	OK(hal_timeline_import(dev, fd, &import));
	assert_int_equal(close(fd), 0);
	return import;
}

static void pair_open(struct pair *p, const char *exporter, const char *importer,
		      uint32_t rights)
{
	static const char *const options[] = {"hal.spin_us=0", NULL};

	memset(p, 0, sizeof(*p));
	ref_open_with(&p->a, exporter, options);
	ref_open_with(&p->b, importer, options);
	OK(hal_timeline_create(p->a.dev, &p->line));
	p->import = share(p->line, rights, p->b.dev);
}

static void pair_close(struct pair *p)
{
	OK(hal_timeline_destroy(p->import));
	OK(hal_timeline_destroy(p->line));
	device_close(&p->a);
	device_close(&p->b);
}

/* Call fn for each combination of clocks. */
static void each_pair(uint32_t rights, void (*fn)(struct pair *))
{
	for (int i = 0; i < 4; i++) {
		struct pair p;

		pair_open(&p, i % 2 != 0 ? real : virtual, i / 2 != 0 ? real : virtual,
			  rights);
		fn(&p);
		pair_close(&p);
	}
}

static int wait_for(struct hal_timeline *t, uint64_t value)
{
	return wait_ms((struct hal_point){t, value}, NEVER_MS);
}

/* Submit a command to q that waits for value of wait, and signals value of signal; each
 * may be NULL. */
static int submit(struct hal_queue *q, struct hal_timeline *wait,
		  struct hal_timeline *signal, uint64_t value, struct hal_point *done)
{
	const struct hal_cmd cmd = hal_cmd_of(HAL_OP_NOP, HAL_CMD_REPLAYABLE);
	const struct hal_point w = {wait, value}, s = {signal, value};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = &cmd;
	d.cmd_count = 1;
	d.waits = &w;
	d.wait_count = wait != NULL;
	d.signals = &s;
	d.signal_count = signal != NULL;
	return hal_submit(q, &d, done);
}

/* A thread that waits for a point. */
struct waiter_thread {
	pthread_t thread;
	struct hal_point point;
	int result;
	char text[200];
};

static void *wait_in_thread(void *arg)
{
	struct waiter_thread *w = arg;

	w->result = wait_ms(w->point, NEVER_MS);
	snprintf(w->text, sizeof(w->text), "%s", hal_last_error());
	return NULL;
}

static void thread_start(struct waiter_thread *w, struct hal_point p)
{
	w->point = p;
	assert_int_equal(pthread_create(&w->thread, NULL, wait_in_thread, w), 0);
}

/* ---- values ------------------------------------------------------------------------ */

static void host_signals(struct pair *p)
{
	struct waiter_thread w;

	for (uint64_t i = 1; i <= 20; i++) {
		thread_start(&w, (struct hal_point){p->import, 3 * i});
		OK(hal_timeline_signal(p->line, 3 * i));
		pthread_join(w.thread, NULL);
		OK(w.result);
		assert_int_equal(hal_timeline_get_value(p->import, NULL), 3 * i);
	}
	FAILS(wait_ms((struct hal_point){p->import, 61}, 5), -ETIMEDOUT, "is at 60");
}

static void follows_the_host(void **state)
{
	(void)state;
	each_pair(HAL_TIMELINE_WAIT, host_signals);
}

static void work_signals(struct pair *p)
{
	struct hal_point there, here;

	for (uint64_t i = 1; i <= 20; i++) {
		OK(submit(p->b.q, p->import, NULL, i, &here));
		OK(submit(p->a.q, NULL, p->line, i, &there));
		OK(wait_ms(there, NEVER_MS));
		OK(wait_ms(here, NEVER_MS));
	}
}

static void follows_work(void **state)
{
	(void)state;
	each_pair(HAL_TIMELINE_WAIT, work_signals);
	each_pair(BOTH, work_signals);
}

/* What an import was already at is there when it is made. */
static void begins_at_the_value(struct pair *p)
{
	struct hal_timeline *late;
	int err;

	OK(hal_timeline_signal(p->line, 7));
	late = share(p->line, HAL_TIMELINE_WAIT, p->b.dev);
	assert_int_equal(hal_timeline_get_value(late, &err), 7);
	assert_int_equal(err, 0);
	OK(wait_for(p->import, 7));
	OK(hal_timeline_destroy(late));
}

static void many_imports(void **state)
{
	(void)state;
	each_pair(HAL_TIMELINE_WAIT, begins_at_the_value);
}

/* The last value ends the link without a failure of either side. */
static void last_value(struct pair *p)
{
	int err;

	OK(hal_timeline_signal(p->line, UINT64_MAX));
	OK(wait_for(p->import, UINT64_MAX));
	(void)hal_timeline_get_value(p->import, &err);
	assert_int_equal(err, 0);
	FAILS(hal_timeline_signal(p->import, UINT64_MAX), -EINVAL, "timeline");
}

static void reaches_the_end(void **state)
{
	(void)state;
	each_pair(HAL_TIMELINE_WAIT, last_value);
	each_pair(BOTH, last_value);
}

static void a_queues_own(void **state)
{
	struct hal_timeline *own, *again;
	struct hal_point done;
	struct pair p;
	int fd;

	(void)state;
	pair_open(&p, virtual, real, HAL_TIMELINE_WAIT);
	own = share(hal_queue_get_timeline(p.a.q), HAL_TIMELINE_WAIT, p.b.dev);
	again = share(own, HAL_TIMELINE_WAIT, p.a.dev); /* an import is exported */
	OK(submit(p.a.q, NULL, NULL, 0, &done));
	OK(wait_ms(done, NEVER_MS));
	OK(wait_for(own, 1));
	OK(wait_for(again, 1));
	FAILS(hal_timeline_export(hal_queue_get_timeline(p.a.q), BOTH, &fd), -EINVAL,
	      "queue or partition");
	FAILS(hal_timeline_export(own, BOTH, &fd), -EINVAL, "imported without");
	OK(hal_queue_destroy(p.a.q));
	p.a.q = NULL;
	FAILS(wait_for(own, 2), -ECANCELED, "destroyed, with its queue");
	FAILS(wait_for(again, 2), -ECANCELED, "destroyed, with its queue");
	OK(wait_for(again, 1));
	OK(hal_timeline_destroy(again));
	OK(hal_timeline_destroy(own));
	pair_close(&p);
}

/* ---- signals of the import --------------------------------------------------------- */

static void importer_signals(struct pair *p)
{
	struct hal_point here, there;
	struct waiter_thread w;

	for (uint64_t i = 1; i <= 40; i += 4) {
		thread_start(&w, (struct hal_point){p->line, i});
		OK(hal_timeline_signal(p->import, i));
		pthread_join(w.thread, NULL);
		OK(w.result);
		OK(submit(p->a.q, p->line, NULL, i + 1, &there));
		OK(submit(p->b.q, NULL, p->import, i + 1, &here));
		OK(wait_ms(here, NEVER_MS));
		OK(wait_ms(there, NEVER_MS));
		/* And back. */
		OK(hal_timeline_signal(p->line, i + 2));
		OK(wait_for(p->import, i + 2));
	}
	/* The last signal of an import that is destroyed at once. */
	OK(hal_timeline_signal(p->import, 99));
	OK(hal_timeline_destroy(p->import));
	OK(wait_for(p->line, 99));
	p->import = NULL;
}

static void raises_the_exported(void **state)
{
	(void)state;
	each_pair(BOTH, importer_signals);
}

/* ---- from a host callback ------------------------------------------------------------ */

struct inside {
	struct pair *p;
	int exported, imported, signalled, destroyed;
};

/* Export and import where the engine of the exporting device may not be waited for. */
static void share_inside(void *user)
{
	struct inside *in = user;
	struct hal_timeline *import;
	int fd;

	in->exported = hal_timeline_export(in->p->line, BOTH, &fd);
	if (in->exported != 0)
		return;
	in->imported = hal_timeline_import(in->p->b.dev, fd, &import);
	(void)close(fd);
	if (in->imported != 0)
		return;
	in->signalled = hal_timeline_signal(import, 7);
	in->destroyed = hal_timeline_destroy(import);
}

static void shares_inside(struct pair *p)
{
	struct inside in = {p, -1, -1, -1, -1};
	const struct hal_cmd cmd = hal_cmd_host(share_inside, &in);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;

	d.cmds = &cmd;
	d.cmd_count = 1;
	OK(hal_submit(p->a.q, &d, &done));
	OK(wait_ms(done, NEVER_MS));
	OK(in.exported);
	OK(in.imported);
	OK(in.signalled);
	OK(in.destroyed);
	OK(wait_for(p->line, 7));
	OK(wait_for(p->import, 7));
}

static void in_a_callback(void **state)
{
	(void)state;
	each_pair(BOTH, shares_inside);
}

static void no_right(struct pair *p)
{
	struct hal_point done;

	FAILS(hal_timeline_signal(p->import, 1), -EINVAL, "without HAL_TIMELINE_SIGNAL");
	FAILS(submit(p->b.q, NULL, p->import, 1, &done), -EINVAL, "signals[0]",
	      "without HAL_TIMELINE_SIGNAL");
	/* From a queue of another device. */
	FAILS(submit(p->a.q, NULL, p->import, 1, &done), -EINVAL, "signals[0]",
	      "without HAL_TIMELINE_SIGNAL");
	OK(hal_timeline_signal(p->line, 1));
	OK(wait_for(p->import, 1));
}

static void needs_the_right(void **state)
{
	(void)state;
	each_pair(HAL_TIMELINE_WAIT, no_right);
}

/* ---- failures and ends ------------------------------------------------------------- */

/* Have a submission fail that was to signal value 5 of t. */
static void fail_work(const struct ref *r, struct hal_timeline *t)
{
	const struct hal_ref_extension *ref = hal_device_get_extension(r->dev, "ref");
	struct hal_point done;

	OK(ref->inject(hal_device_get_native(r->dev), HAL_REF_OP_EXECUTE, 1, EIO));
	OK(submit(r->q, NULL, t, 5, &done));
	FAILS(wait_ms(done, NEVER_MS), -EIO, "injected");
}

static void exporter_fails(struct pair *p)
{
	struct hal_timeline *late;
	struct waiter_thread w;

	OK(hal_timeline_signal(p->line, 4));
	thread_start(&w, (struct hal_point){p->import, 5});
	fail_work(&p->a, p->line);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.result, -EIO);
	assert_non_null(strstr(w.text, "injected"));
	OK(wait_for(p->import, 4));
	/* One that is exported when it has failed already. */
	late = share(p->line, HAL_TIMELINE_WAIT, p->b.dev);
	FAILS(wait_for(late, 5), -EIO, "injected");
	OK(wait_for(late, 4));
	OK(hal_timeline_destroy(late));
}

static void failure_is_carried(void **state)
{
	(void)state;
	each_pair(HAL_TIMELINE_WAIT, exporter_fails);
}

/* The importer's work fails: all that follow the timeline see it. */
static void importer_fails(struct pair *p)
{
	struct hal_timeline *third = share(p->line, HAL_TIMELINE_WAIT, p->a.dev);

	fail_work(&p->b, p->import);
	FAILS(wait_for(p->line, 5), -EIO, "injected");
	FAILS(wait_for(third, 5), -EIO, "injected");
	FAILS(hal_timeline_signal(p->line, 6), -EIO, "injected");
	OK(hal_timeline_destroy(third));
}

static void failure_of_an_importer(void **state)
{
	(void)state;
	each_pair(BOTH, importer_fails);
}

static void exporter_destroys(struct pair *p)
{
	struct hal_point there;
	struct waiter_thread w;

	OK(hal_timeline_signal(p->line, 1));
	OK(submit(p->b.q, p->import, NULL, 2, &there));
	thread_start(&w, there);
	OK(hal_timeline_destroy(p->line));
	p->line = NULL;
	pthread_join(w.thread, NULL);
	assert_int_equal(w.result, -ECANCELED);
	assert_non_null(strstr(w.text, "exported timeline has been destroyed"));
	FAILS(wait_for(p->import, 2), -ECANCELED, "imported timeline", "destroyed");
	FAILS(hal_timeline_signal(p->import, 2), -ECANCELED, "destroyed");
	OK(wait_for(p->import, 1));
}

static void destroyed(void **state)
{
	(void)state;
	each_pair(BOTH, exporter_destroys);
}

/* The exporter is gone before the import begins. */
static void imported_late(void **state)
{
	struct hal_timeline *late;
	struct pair p;
	int fd;

	(void)state;
	pair_open(&p, virtual, real, HAL_TIMELINE_WAIT);
	OK(hal_timeline_signal(p.line, 3));
	OK(hal_timeline_export(p.line, HAL_TIMELINE_WAIT, &fd));
	OK(hal_timeline_destroy(p.line));
	OK(hal_timeline_create(p.a.dev, &p.line));
	OK(hal_timeline_import(p.b.dev, fd, &late));
	OK(close(fd));
	assert_int_equal(hal_timeline_get_value(late, NULL), 3);
	FAILS(wait_for(late, 4), -ECANCELED, "destroyed");
	OK(hal_timeline_destroy(late));
	pair_close(&p);
}

/* ---- a virtual clock waits for a process, or for nobody ------------------------------ */

static void never_or_later(void **state)
{
	struct hal_completion c;
	struct hal_timeline *import;
	struct hal_completions *ring;
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_point done, any[2];
	struct hal_queue *q;
	struct pair p;
	int fd;

	(void)state;
	pair_open(&p, virtual, virtual, HAL_TIMELINE_WAIT);
	/* Nobody can raise it. */
	FAILS(hal_wait(&(struct hal_point){p.line, 1}, 1, 0, HAL_FOREVER), -EDEADLK,
	      "no work is left");
	OK(hal_timeline_export(p.line, BOTH, &fd));
	FAILS(wait_ms((struct hal_point){p.line, 1}, 5), -ETIMEDOUT, "time is up");
	OK(hal_timeline_import(p.b.dev, fd, &import));
	FAILS(wait_ms((struct hal_point){p.line, 1}, 5), -ETIMEDOUT, "time is up");
	/* With both copies of the importer's socket gone, nobody can any more. */
	OK(hal_timeline_destroy(import));
	FAILS(hal_wait(&(struct hal_point){p.line, 1}, 1, 0, HAL_FOREVER), -EDEADLK,
	      "no work is left");
	OK(close(fd));
	/* A wait in device time ends at once: its clock is the program's. */
	FAILS(hal_wait(&(struct hal_point){p.import, 1}, 1, HAL_WAIT_DEVICE_TIME,
		       (int64_t)hal_device_get_time(p.b.dev) + 1000),
	      -ETIMEDOUT, "time is up");
	/* Work of a device waits for a point of another one's import. */
	OK(submit(p.a.q, p.import, NULL, 1, &done));
	FAILS(wait_ms(done, 5), -ETIMEDOUT, "time is up");
	OK(hal_completions_create(p.b.dev, 8, &ring));
	d.completions = ring;
	OK(hal_queue_create(p.b.part, &d, &q));
	FAILS(hal_completions_read(ring, &c, 1, in_ms(NEVER_MS)), -EDEADLK,
	      "no work is left");
	OK(submit(q, p.import, NULL, 1, NULL));
	FAILS(hal_completions_read(ring, &c, 1, in_ms(5)), -ETIMEDOUT, "yet");
	OK(hal_timeline_signal(p.line, 1));
	assert_int_equal(hal_completions_read(ring, &c, 1, in_ms(NEVER_MS)), 1);
	OK(c.status);
	OK(wait_ms(done, NEVER_MS));
	/* One of several. */
	any[0] = (struct hal_point){hal_queue_get_timeline(q), 2};
	any[1] = (struct hal_point){p.import, 2};
	OK(hal_timeline_signal(p.line, 2));
	assert_int_equal(hal_wait(any, 2, HAL_WAIT_ANY, in_ms(NEVER_MS)), 1);
	OK(hal_queue_destroy(q));
	OK(hal_completions_destroy(ring));
	pair_close(&p);
}

/* The exporter ends while a thread of a virtual clock sleeps, with work or without. */
static void ends_meanwhile(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		struct waiter_thread w;
		struct hal_point done;
		struct pair p;

		pair_open(&p, real, virtual, HAL_TIMELINE_WAIT);
		done = (struct hal_point){p.import, 2};
		if (i % 2 != 0)
			OK(submit(p.b.q, p.import, NULL, 2, &done));
		thread_start(&w, done);
		spin((unsigned int)i * 2000);
		if (i % 3 != 0)
			OK(hal_timeline_signal(p.line, 2));
		OK(hal_timeline_destroy(p.line));
		p.line = NULL;
		pthread_join(w.thread, NULL);
		assert_int_equal(w.result, i % 3 != 0 ? 0 : -ECANCELED);
		pair_close(&p);
	}
}

/* ---- refusals ---------------------------------------------------------------------- */

static void refused_fd(struct hal_device *dev, int fd)
{
	struct hal_timeline *t;

	assert_true(fd >= 0);
	FAILS(hal_timeline_import(dev, fd, &t), -EINVAL, "hal_timeline_export");
	OK(close(fd));
}

static void other_descriptors(void **state)
{
	int fds[2], inner[2];
	struct hal_timeline *t;
	struct pair p;
	char byte;

	(void)state;
	pair_open(&p, virtual, virtual, HAL_TIMELINE_WAIT);
	FAILS(hal_timeline_import(p.b.dev, -1, &t), -EBADF, "-1");
	refused_fd(p.b.dev, open("/dev/null", O_RDWR | O_CLOEXEC));
	refused_fd(p.b.dev, memfd_create("none", MFD_CLOEXEC));
	refused_fd(p.b.dev, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	OK(pipe2(fds, O_CLOEXEC));
	refused_fd(p.b.dev, fds[0]);
	OK(close(fds[1]));
	/* Empty; then with something else in it, which stays there. */
	OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, inner));
	FAILS(hal_timeline_import(p.b.dev, fds[0], &t), -EINVAL, "hal_timeline_export");
	assert_int_equal(write(fds[1], "x", 1), 1);
	FAILS(hal_timeline_import(p.b.dev, fds[0], &t), -EINVAL, "hal_timeline_export");
	assert_int_equal(read(fds[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	for (int i = 0; i < 2; i++)
		OK(close(fds[i]) + close(inner[i]));
	pair_close(&p);
}

static void one_import(void **state)
{
	struct hal_timeline *first, *second;
	struct pair p;
	int fd;

	(void)state;
	pair_open(&p, virtual, virtual, HAL_TIMELINE_WAIT);
	OK(hal_timeline_export(p.line, HAL_TIMELINE_WAIT, &fd));
	OK(hal_timeline_import(p.b.dev, fd, &first));
	FAILS(hal_timeline_import(p.b.dev, fd, &second), -EBUSY, "has been imported");
	OK(hal_timeline_signal(p.line, 1));
	FAILS(hal_timeline_import(p.a.dev, fd, &second), -EBUSY, "has been imported");
	OK(wait_for(first, 1));
	OK(hal_timeline_destroy(first));
	FAILS(hal_timeline_import(p.b.dev, fd, &second), -EBUSY, "has been imported");
	OK(close(fd));
	pair_close(&p);
}

static void wrong_arguments(void **state)
{
	struct hal_timeline *t;
	struct pair p;
	int fd = -5;

	(void)state;
	pair_open(&p, virtual, virtual, HAL_TIMELINE_WAIT);
	FAILS(hal_timeline_export(p.line, 0, &fd), -EINVAL, "rights 0x0");
	FAILS(hal_timeline_export(p.line, HAL_TIMELINE_SIGNAL, &fd), -EINVAL,
	      "rights 0x2");
	FAILS(hal_timeline_export(p.line, 5, &fd), -EINVAL, "rights 0x5");
	FAILS(hal_timeline_export(p.line, BOTH, NULL), -EINVAL, "fd is NULL");
	FAILS(hal_timeline_export(NULL, BOTH, &fd), -EINVAL, "timeline");
	FAILS(hal_timeline_import(NULL, 0, &t), -EINVAL, "device");
	FAILS(hal_timeline_import(p.a.dev, 0, NULL), -EINVAL, "timeline is NULL");
	assert_int_equal(fd, -5);
	pair_close(&p);
}

static void with_a_journal(void **state)
{
	static const char *const options[] = {"hal.journal=/dev/null", NULL};
	struct hal_timeline *t, *import;
	struct ref r;
	int fd;

	(void)state;
	ref_open_with(&r, virtual, options);
	OK(hal_timeline_create(r.dev, &t));
	FAILS(hal_timeline_export(t, BOTH, &fd), -ENOTSUP, "hal.journal");
	FAILS(hal_timeline_import(r.dev, 0, &import), -ENOTSUP, "hal.journal");
	OK(hal_timeline_destroy(t));
	ref_close(&r);
}

/* ---- many at once ------------------------------------------------------------------ */

enum { THREADS = 3, ROUNDS = 60 };

struct sharer {
	pthread_t thread;
	struct pair *p;
	int id;
};

/* Export and import, signal and destroy, on devices that other threads use, too. */
static void *share_and_destroy(void *arg)
{
	struct sharer *s = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct ref *from = (s->id + i) % 2 != 0 ? &s->p->a : &s->p->b;
		struct ref *to = i % 3 != 0 ? &s->p->a : &s->p->b;
		struct hal_timeline *line, *import;

		OK(hal_timeline_create(from->dev, &line));
		import = share(line, BOTH, to->dev);
		OK(hal_timeline_signal(i % 2 != 0 ? line : import, 5));
		OK(wait_for(i % 2 != 0 ? import : line, 5));
		if (i % 4 < 2) {
			OK(hal_timeline_destroy(line));
			OK(hal_timeline_destroy(import));
		} else {
			OK(hal_timeline_destroy(import));
			OK(hal_timeline_destroy(line));
		}
	}
	return NULL;
}

static void threads(void **state)
{
	struct sharer s[THREADS];
	struct pair p;

	(void)state;
	for (int t = 0; t < 2; t++) {
		pair_open(&p, t == 0 ? real : virtual, real, HAL_TIMELINE_WAIT);
		for (int i = 0; i < THREADS; i++) {
			s[i] = (struct sharer){.p = &p, .id = i};
			assert_int_equal(pthread_create(&s[i].thread, NULL,
							share_and_destroy, &s[i]),
					 0);
		}
		for (int i = 0; i < THREADS; i++)
			pthread_join(s[i].thread, NULL);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_the_host),
		cmocka_unit_test(follows_work),
		cmocka_unit_test(many_imports),
		cmocka_unit_test(reaches_the_end),
		cmocka_unit_test(a_queues_own),
		cmocka_unit_test(raises_the_exported),
		cmocka_unit_test(in_a_callback),
		cmocka_unit_test(needs_the_right),
		cmocka_unit_test(failure_is_carried),
		cmocka_unit_test(failure_of_an_importer),
		cmocka_unit_test(destroyed),
		cmocka_unit_test(imported_late),
		cmocka_unit_test(never_or_later),
		cmocka_unit_test(ends_meanwhile),
		cmocka_unit_test(other_descriptors),
		cmocka_unit_test(one_import),
		cmocka_unit_test(wrong_arguments),
		cmocka_unit_test(with_a_journal),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
