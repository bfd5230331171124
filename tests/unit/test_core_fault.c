/* SPDX-License-Identifier: Apache-2.0 */
/* Why a queue has failed (hal_queue_get_fault), and what a reader of completions learns
 * when the device is lost. */
#include "ref_world.h"

#include <poll.h>
#include <semaphore.h>

static struct hal_completions *add_ring(struct world *w)
{
	struct hal_completions *ring;

	OK(hal_completions_create(w->dev, 64, &ring));
	return ring;
}

static struct hal_queue *add_reporting(struct world *w, struct hal_completions *ring)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	d.completions = ring;
	OK(hal_queue_create(w->part, &d, &q));
	return q;
}

/* Submit n commands under a tag, after wait if that has a timeline. */
static void submit_tagged(struct world *w, struct hal_queue *q, uint32_t n, uint64_t tag,
			  struct hal_point wait)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmds[200];

	for (uint32_t i = 0; i < n; i++)
		cmds[i] = numbered(w, i);
	d.cmds = cmds;
	d.cmd_count = n;
	d.tag = tag;
	d.waits = &wait;
	d.wait_count = wait.timeline != NULL;
	OK(hal_submit(q, &d, NULL));
}

static const struct hal_point at_once;

static struct hal_fault_info fault_of(struct hal_queue *q)
{
	struct hal_fault_info f = HAL_INIT(hal_fault_info);

	OK(hal_queue_get_fault(q, &f));
	return f;
}

/* The next completion of ring is of q and has this tag and status. */
static void expect_end(struct hal_completions *ring, struct hal_queue *q, uint64_t tag,
		       int status)
{
	struct hal_completion e;

	assert_int_equal(hal_completions_read(ring, &e, 1, 0), 1);
	assert_ptr_equal(e.queue, q);
	assert_int_equal(e.tag, tag);
	assert_int_equal(e.status, status);
}

static void complete(struct world *w, uint32_t n)
{
	for (; n > 0; n--) {
		poll_now(w);
		w->mock->complete(w->native, 1, 10);
	}
	poll_now(w);
}

static void nothing(void *user)
{
	(void)user;
}

/* Let q complete submissions of all kinds. */
static void run_all_kinds(struct world *w, struct hal_queue *q)
{
	const struct hal_cmd pair[] = {numbered(w, 1), numbered(w, 2)};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_sequence *seq;

	OK(submit_cmd(q, numbered(w, 1), NULL)); /* one command */
	complete(w, 1);
	OK(submit_n(q, NULL, 0, NULL)); /* none */
	OK(submit_cmd(q, hal_cmd_host(nothing, NULL), NULL));
	OK(submit_cmd(q, hal_cmd_barrier(), NULL));
	complete(w, 1);
	submit_tagged(w, q, 3, 1, at_once); /* in the ring, with a header */
	complete(w, 3);
	d.cmds = pair;
	d.cmd_count = 2;
	OK(hal_sequence_create(w->part, &d, &seq));
	OK(hal_sequence_submit(q, seq, NULL, NULL)); /* a block that is shared */
	complete(w, 2);
	submit_tagged(w, q, 150, 2, at_once); /* a block of its own */
	complete(w, 150);
	OK(submit_cmd(q, numbered(w, 1), NULL));
	complete(w, 1);
	OK(hal_sequence_destroy(seq));
}

/* Command number bad of n fails, after what the queue did before. */
static void fails_at(uint32_t n, uint32_t bad, bool history)
{
	struct hal_fault_info f;
	struct hal_queue *q;
	struct world w;

	world_open(&w, "mock?clock=virtual");
	world_fill(&w);
	q = add_queue(w.part, 0);
	if (history)
		run_all_kinds(&w, q);
	f = fault_of(q);
	assert_int_equal(f.status, 0);
	assert_int_equal(f.value, 0);
	assert_string_equal(f.text, "");
	submit_tagged(&w, q, n, 77, at_once);
	submit_tagged(&w, q, 1, 78, at_once);
	complete(&w, bad);
	w.mock->fault(w.native, -EIO, "bad address 0x40");
	poll_now(&w);
	while (inflight(&w) > 0)
		complete(&w, 1);
	f = fault_of(q);
	assert_int_equal(f.status, -EIO);
	assert_int_equal(f.value, history ? 9 : 1);
	assert_int_equal(f.tag, 77);
	assert_int_equal(f.cmd, bad);
	assert_non_null(strstr(f.text, "bad address 0x40"));
	assert_non_null(strstr(f.text, "queue 0 of partition 0"));
	OK(hal_queue_destroy(q));
	world_close(&w);
}

static void which_command(void **state)
{
	(void)state;
	for (int history = 0; history < 2; history++) {
		fails_at(1, 0, history);
		fails_at(4, 0, history);
		fails_at(4, 2, history);
		fails_at(4, 3, history);
		fails_at(180, 101, history);
	}
}

/* A reader learns of the failed submission, and which ones were dropped for it. */
static void told_in_ring(void **state)
{
	struct hal_completions *ring, *later;
	struct hal_queue *q, *after;
	struct hal_fault_info f;
	struct world w;

	(void)state;
	world_open(&w, "mock?clock=virtual");
	world_fill(&w);
	ring = add_ring(&w);
	q = add_reporting(&w, ring);
	later = add_ring(&w);
	after = add_reporting(&w, later);
	submit_tagged(&w, q, 1, 1, at_once);
	submit_tagged(&w, q, 2, 2, at_once);
	submit_tagged(&w, q, 1, 3, at_once);
	submit_tagged(&w, after, 2, 4, (struct hal_point){hal_queue_get_timeline(q), 2});
	complete(&w, 2);
	w.mock->fault(w.native, -EIO, "bad address");
	poll_now(&w);
	while (inflight(&w) > 0)
		complete(&w, 1);
	poll_now(&w);
	expect_end(ring, q, 1, 0);
	expect_end(ring, q, 2, -EIO);
	expect_end(ring, q, 3, -ECANCELED);
	expect_end(later, after, 4, -ECANCELED);
	f = fault_of(q);
	assert_int_equal(f.value, 2);
	assert_int_equal(f.cmd, 1);
	f = fault_of(after);
	assert_int_equal(f.status, -ECANCELED);
	assert_int_equal(f.value, 1);
	assert_int_equal(f.tag, 4);
	assert_int_equal(f.cmd, UINT32_MAX); /* no command: a wait */
	assert_non_null(strstr(f.text, "bad address"));
	OK(hal_queue_destroy(q));
	OK(hal_queue_destroy(after));
	OK(hal_completions_destroy(ring));
	OK(hal_completions_destroy(later));
	world_close(&w);
}

/* Every submission that a lost device had makes a completion, wherever it was. */
static void lost_tells_all(void **state)
{
	struct hal_queue *busy, *parked, *later, *held, *idle;
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_completions *ring, *other;
	struct hal_completion e;
	struct hal_fault_info f;
	struct hal_timeline *t;
	struct hal_cmd cmd;
	struct world w, v;

	(void)state;
	world_open(&w, "mock?clock=virtual");
	world_fill(&w);
	world_open(&v, "mock?clock=virtual");
	world_fill(&v);
	ring = add_ring(&w);
	other = add_ring(&v);
	OK(hal_timeline_create(w.dev, &t));
	busy = add_reporting(&w, ring);
	parked = add_reporting(&w, ring);
	later = add_reporting(&w, ring);
	held = add_reporting(&w, ring);
	idle = add_reporting(&w, ring);
	for (uint64_t i = 1; i < 4; i++)
		submit_tagged(&w, busy, 2, i, at_once);
	submit_tagged(&w, parked, 1, 4, (struct hal_point){t, 1});
	cmd = numbered(&w, 5);
	d.cmds = &cmd;
	d.cmd_count = 1;
	d.tag = 5;
	d.not_before_ns = UINT64_C(1) << 50;
	OK(hal_submit(later, &d, NULL));
	OK(hal_queue_suspend(held, HAL_SUSPEND_DRAIN, NULL));
	submit_tagged(&w, held, 1, 6, at_once);
	poll_now(&w);
	assert_int_equal(hal_completions_read(ring, &e, 1, 0), 0);
	w.mock->lose(w.native);
	poll_now(&w);
	for (uint64_t i = 1; i < 4; i++)
		expect_end(ring, busy, i, -ENODEV);
	expect_end(ring, parked, 4, -ENODEV);
	expect_end(ring, later, 5, -ENODEV);
	expect_end(ring, held, 6, -ENODEV);
	FAILS(hal_completions_read(ring, &e, 1, 0), -ENODEV, "lost", "fell off the bus");
	FAILS(hal_completions_read(ring, &e, 1, HAL_FOREVER), -ENODEV, "lost");
	f = fault_of(busy);
	assert_int_equal(f.status, -ENODEV);
	assert_int_equal(f.tag, 1);
	assert_int_equal(f.cmd, 0);
	assert_non_null(strstr(f.text, "fell off the bus"));
	f = fault_of(later);
	assert_int_equal(f.status, -ENODEV);
	assert_int_equal(f.tag, 5);
	assert_int_equal(f.cmd, UINT32_MAX);
	f = fault_of(idle);
	assert_int_equal(f.status, -ENODEV);
	assert_int_equal(f.value, 0);
	/* Nothing happens to another device. */
	assert_int_equal(hal_completions_read(other, &e, 1, 0), 0);
	OK(hal_timeline_destroy(t));
	OK(hal_queue_destroy(busy));
	OK(hal_queue_destroy(parked));
	OK(hal_queue_destroy(later));
	OK(hal_queue_destroy(held));
	OK(hal_queue_destroy(idle));
	OK(hal_completions_destroy(ring));
	OK(hal_completions_destroy(other));
	w.mock->complete(w.native, 9, 0);
	world_close(&w);
	world_close(&v);
}

/* A thread that reads a ring, and counts, until that fails. */
struct reader {
	struct hal_completions *ring;
	uint32_t count, lost;
	int err;
};

static void *read_all(void *arg)
{
	struct reader *r = arg;
	struct hal_completion e[4];
	int n;

	while ((n = hal_completions_read(r->ring, e, 4, in_ms(NEVER_MS))) > 0)
		for (int i = 0; i < n; i++) {
			r->count++;
			r->lost += e[i].status == -ENODEV;
		}
	r->err = n;
	return NULL;
}

/* Lose the device: the engine sees it while the device has work. */
static void lose(struct world *w)
{
	struct hal_queue *q = add_queue(w->part, 0);
	struct hal_point p;

	w->mock->lose(w->native);
	OK(submit_nop(q, &p));
	assert_int_equal(wait_ms(p, NEVER_MS), -EIO);
	OK(hal_queue_destroy(q));
}

/* A reader that waits for a ring wakes up, also if no queue reports there. */
static void lost_wakes_readers(void **state)
{
	struct reader r[2] = {{.err = 1}, {.err = 1}};
	struct pollfd fd = {.events = POLLIN};
	pthread_t thread[2];
	struct hal_completion e;
	struct hal_queue *q;
	struct world w;

	(void)state;
	world_open(&w, "mock?clock=real");
	world_fill(&w);
	for (int i = 0; i < 2; i++)
		r[i].ring = add_ring(&w);
	q = add_reporting(&w, r[1].ring);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_all, &r[i]), 0);
	lose(&w);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(r[i].err, -ENODEV);
		assert_int_equal(r[i].count, 0);
		/* It stays so, for poll(2) as well. */
		fd.fd = hal_completions_get_fd(r[i].ring);
		assert_int_equal(poll(&fd, 1, NEVER_MS), 1);
		assert_int_equal(hal_completions_read(r[i].ring, &e, 1, 0), -ENODEV);
		assert_int_equal(poll(&fd, 1, NEVER_MS), 1);
	}
	OK(hal_queue_destroy(q));
	/* A ring that is made later is over at once. */
	for (int i = 0; i < 2; i++)
		OK(hal_completions_destroy(r[i].ring));
	r[0].ring = add_ring(&w);
	assert_int_equal(hal_completions_read(r[0].ring, &e, 1, HAL_FOREVER), -ENODEV);
	OK(hal_completions_destroy(r[0].ring));
	w.mock->complete(w.native, 9, 0);
	world_close(&w);
}

struct gate {
	sem_t in, out;
};

static void pass_gate(void *user)
{
	struct gate *g = user;

	sem_post(&g->in);
	while (sem_wait(&g->out) != 0)
		;
}

/* A host function that runs meanwhile: its submission is not over before it returns, so
 * that the reader waits for it. */
static void lost_during_callback(void **state)
{
	struct hal_completion e;
	struct hal_queue *q;
	struct reader r = {.err = 1};
	pthread_t thread;
	struct world w;
	struct gate g;

	(void)state;
	sem_init(&g.in, 0, 0);
	sem_init(&g.out, 0, 0);
	world_open(&w, "mock?clock=real");
	world_fill(&w);
	r.ring = add_ring(&w);
	q = add_reporting(&w, r.ring);
	OK(submit_cmd(q, hal_cmd_host(pass_gate, &g), NULL));
	submit_tagged(&w, q, 1, 0, at_once);
	while (sem_wait(&g.in) != 0)
		;
	lose(&w);
	assert_int_equal(hal_completions_read(r.ring, &e, 1, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, read_all, &r), 0);
	sem_post(&g.out);
	pthread_join(thread, NULL);
	assert_int_equal(r.err, -ENODEV);
	assert_int_equal(r.count, 2);
	assert_int_equal(r.lost, 2);
	OK(hal_queue_destroy(q));
	OK(hal_completions_destroy(r.ring));
	w.mock->complete(w.native, 9, 0);
	world_close(&w);
	sem_destroy(&g.in);
	sem_destroy(&g.out);
}

struct submitter {
	struct world *w;
	struct hal_queue *q;
	uint32_t count; /* submissions that were accepted */
	int err;
};

static void *submit_until_lost(void *arg)
{
	struct submitter *s = arg;
	const struct hal_cmd wrong = hal_cmd_fill(s->w->buf, 1, 4, 0);

	for (;;) {
		/* One that is refused takes an entry and gives it back. */
		(void)submit_cmd(s->q, wrong, NULL);
		s->err = submit_nop(s->q, NULL);
		if (s->err == 0)
			s->count++;
		else if (s->err != -EAGAIN)
			return NULL;
	}
}

/* Each submission that was accepted beside the loss has been read before -ENODEV, or can
 * be read after it. */
static void lost_beside_submits(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 40; i++) {
		struct reader r = {.err = 1};
		struct submitter s = {0};
		pthread_t reading, submitting;
		struct world w;

		world_open(&w, "mock?clock=real");
		world_fill(&w);
		r.ring = add_ring(&w);
		s.w = &w;
		s.q = add_reporting(&w, r.ring);
		assert_int_equal(pthread_create(&reading, NULL, read_all, &r), 0);
		assert_int_equal(pthread_create(&submitting, NULL, submit_until_lost, &s),
				 0);
		for (unsigned int n = 0; n < i; n++) {
			w.mock->complete(w.native, 4, 1);
			spin(2000);
		}
		w.mock->lose(w.native);
		w.mock->complete(w.native, 1, 1); /* the engine polls for this event */
		pthread_join(submitting, NULL);
		assert_int_equal(s.err, -ENODEV);
		pthread_join(reading, NULL);
		(void)read_all(&r);
		assert_int_equal(r.err, -ENODEV);
		assert_int_equal(r.count, s.count);
		OK(hal_queue_destroy(s.q));
		OK(hal_completions_destroy(r.ring));
		w.mock->complete(w.native, 512, 0);
		world_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_command),
		cmocka_unit_test(told_in_ring),
		cmocka_unit_test(lost_tells_all),
		cmocka_unit_test(lost_wakes_readers),
		cmocka_unit_test(lost_during_callback),
		cmocka_unit_test(lost_beside_submits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
