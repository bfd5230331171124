/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_attacks - programs that attack hald and each other, through rings, sockets and
 * shared memory.
 *
 *   test_attacks [full]   all of each attack; else a part
 *
 * Beside each attack a victim, a process of its own, works without end.  All its answers
 * must be right, none may take longer than BOUND_NS, and afterwards hald has no more
 * threads and descriptors than before.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "hald_world.h"

#include "far/message.h"
#include "far/ring.h"

/* Attacks are carried out so many times less often in the quick tier. */
static uint32_t less = 6;

/* docs/broker.md states it.  It is for busy machines and sanitizers, too. */
#define BOUND_NS INT64_C(1000000000)

/* ---- hald beside attacks ------------------------------------------------------------- */

static unsigned int entries_of(const struct hald *h, const char *folder)
{
	char path[64];
	unsigned int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)h->pid, folder);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	(void)closedir(dir);
	return count;
}

/* The longest of all rounds of victims. */
static int64_t worst_ns;

struct victim {
	pid_t pid;
	int stop, report;
	unsigned int fds, threads; /* of hald before the attack */
};

struct seen {
	int64_t worst_ns;
	uint64_t rounds;
};

static _Noreturn void victim_main(const struct hald *h, int stop, int report)
{
	struct seen seen = {0};
	struct pollfd p = {.fd = stop, .events = POLLIN};
	struct program own;

	if (program_open(h, &own, 4) != 0 || program_works(&own, 1) != 0 ||
	    write(report, "", 1) != 1)
		_exit(1);
	while (poll(&p, 1, 0) == 0) {
		int64_t from = now_ns(), took;

		if (program_works(&own, (uint32_t)seen.rounds) != 0) {
			fprintf(stderr, "victim: %s\n", hal_last_error());
			_exit(2);
		}
		took = now_ns() - from;
		if (took > seen.worst_ns)
			seen.worst_ns = took;
		seen.rounds++;
	}
	_exit(write(report, &seen, sizeof(seen)) == sizeof(seen) ? 0 : 3);
}

static void victim_start(const struct hald *h, struct victim *v)
{
	int stop[2], report[2];
	char ready;

	assert_int_equal(pipe2(stop, O_CLOEXEC), 0);
	assert_int_equal(pipe2(report, O_CLOEXEC), 0);
	v->pid = fork();
	if (v->pid == 0) {
		(void)close(stop[1]);
		victim_main(h, stop[0], report[1]);
	}
	(void)close(stop[0]);
	(void)close(report[1]);
	assert_int_equal(read(report[0], &ready, 1), 1);
	v->stop = stop[1];
	v->report = report[0];
	v->fds = entries_of(h, "fd");
	v->threads = entries_of(h, "task");
}

/* What a device starts with the first host function and the first import, and keeps. */
enum { KEPT_THREADS = 2, KEPT_FDS = 3 };

/* Return whether hald has more than before the attack. */
static bool more_than_before(const struct hald *h, const struct victim *v)
{
	return entries_of(h, "fd") > v->fds + KEPT_FDS ||
	       entries_of(h, "task") > v->threads + KEPT_THREADS;
}

/* The attackers are gone.  Their ends may still be under way. */
static void victim_stop(const struct hald *h, struct victim *v, const char *attack)
{
	const int64_t until = now_ns() + LONG_NS;
	struct seen seen;
	int status;

	while (more_than_before(h, v) && now_ns() < until)
		(void)sched_yield();
	if (more_than_before(h, v))
		fail_msg("hald has %u descriptors and %u threads, before %u and %u",
			 entries_of(h, "fd"), entries_of(h, "task"), v->fds, v->threads);
	(void)close(v->stop);
	assert_int_equal(read(v->report, &seen, sizeof(seen)), sizeof(seen));
	(void)close(v->report);
	assert_int_equal(waitpid(v->pid, &status, 0), v->pid);
	assert_int_equal(status, 0);
	print_message("%s: worst of %llu rounds beside it %.2f ms\n", attack,
		      (unsigned long long)seen.rounds, (double)seen.worst_ns / 1e6);
	if (seen.worst_ns > worst_ns)
		worst_ns = seen.worst_ns;
	assert_true(seen.rounds > 0);
	assert_true(seen.worst_ns < BOUND_NS);
}

/* ---- a client without the library ------------------------------------------------------ */

struct raw {
	int fd, board, bell, ring_fd;
	uint64_t part, buf, queue, line;
	struct far_ring *ring;
	uint32_t slots;
};

/* Send a request and take its answer with the descriptors.  Return the result. */
static int raw_call(int fd, struct far_message *m, const void *data, int fds[2])
{
	static _Thread_local char answer[FAR_INLINE];
	int err = message_send(fd, m, data, NULL, 0);

	if (err == 0)
		err = message_receive(fd, m, answer, fds);
	return err != 0 ? -ENOTCONN : m->result;
}

/* As raw_call, closing the descriptors. */
static int raw_do(int fd, struct far_message *m, const void *data)
{
	int fds[2] = {-1, -1}, err = raw_call(fd, m, data, fds);

	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	return err;
}

static void raw_open(const struct hald *h, struct raw *r)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct far_message m = {.op = FAR_HELLO, .a = {FAR_VERSION}};
	int fds[2];

	r->fd = raw_connect(h);
	assert_int_equal(raw_call(r->fd, &m, NULL, fds), 0);
	r->board = fds[0];
	r->bell = fds[1];
	assert_true(r->board >= 0 && r->bell >= 0);
	pd.units_floor = 1;
	m = (struct far_message){.op = FAR_PARTITION, .bytes = sizeof(pd)};
	assert_int_equal(raw_do(r->fd, &m, &pd), 0);
	r->part = m.a[0];
	bd.bytes = 4096;
	m = (struct far_message){
		.op = FAR_BUFFER, .bytes = sizeof(bd), .a = {r->part, 0, sizeof(bd)}};
	assert_int_equal(raw_do(r->fd, &m, &bd), 0);
	r->buf = m.a[0];
	m = (struct far_message){.op = FAR_QUEUE, .bytes = sizeof(qd), .a = {r->part, 1}};
	assert_int_equal(raw_call(r->fd, &m, &qd, fds), 0);
	r->queue = m.a[0];
	r->line = m.a[1];
	r->slots = (uint32_t)m.a[3];
	r->ring_fd = fds[0];
	assert_true(r->ring_fd >= 0);
	r->ring = mmap(NULL, far_ring_bytes(r->slots), PROT_READ | PROT_WRITE, MAP_SHARED,
		       r->ring_fd, 0);
	assert_true(r->ring != MAP_FAILED);
}

static void raw_close(struct raw *r)
{
	(void)munmap(r->ring, far_ring_bytes(r->slots));
	(void)close(r->ring_fd);
	(void)close(r->board);
	(void)close(r->bell);
	(void)close(r->fd);
}

static void raw_ring(const struct raw *r)
{
	uint64_t one = 1;

	(void)!write(r->bell, &one, sizeof(one));
}

/* Write a fill at the tail, and publish it. */
static void raw_fill(struct raw *r, uint32_t pattern)
{
	unsigned int tail = atomic_load(&r->ring->tail);
	struct far_slot *s = &r->ring->slots[tail & (r->slots - 1)];

	*s = (struct far_slot){.op = HAL_OP_FILL, .marks = FAR_LAST | FAR_WHOLE};
	s->fill.dst = r->buf;
	s->fill.bytes = 4096;
	s->fill.pattern = pattern;
	atomic_store(&r->ring->tail, tail + 1);
	raw_ring(r);
}

/* Return whether hald has ended the client: wait for that, or for an answer. */
static bool raw_is_ended(const struct raw *r)
{
	struct far_message m = {.op = FAR_DEVICE_TIME};

	return raw_do(r->fd, &m, NULL) == -ENOTCONN;
}

/* Wait until hald has ended the client. */
static void raw_wait_end(const struct raw *r)
{
	struct pollfd p = {.fd = r->fd, .events = POLLRDHUP};

	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_true((p.revents & (POLLRDHUP | POLLHUP)) != 0);
}

/* ---- rings --------------------------------------------------------------------------- */

/* A thread that writes nonsense into all slots and the tail. */
struct scribbler {
	struct raw *r;
	uint64_t seed;
	bool tail;
	atomic_bool stop;
};

static void *scribble(void *arg)
{
	struct scribbler *s = arg;

	while (!atomic_load(&s->stop)) {
		uint64_t *words = s->r->ring->slots[0].words;

		s->seed = s->seed * UINT64_C(6364136223846793005) + 1442695;
		__atomic_store_n(&words[(s->seed >> 40) % (s->r->slots * 8u)],
				 s->seed >> (s->seed >> 58), __ATOMIC_RELAXED);
		if (s->tail && s->seed >> 60 == 0)
			atomic_store(&s->r->ring->tail, (unsigned int)(s->seed >> 20));
	}
	return NULL;
}

/* Records are rewritten while they are taken. */
static void rewritten(void **state)
{
	struct victim v;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	for (uint32_t i = 0; i < 60 / less; i++) {
		struct raw r;
		struct scribbler s = {.r = &r, .seed = i, .tail = i % 4 == 3};
		pthread_t thread;

		raw_open(&h, &r);
		assert_int_equal(pthread_create(&thread, NULL, scribble, &s), 0);
		for (uint32_t k = 0; k < 3000; k++) {
			struct pollfd p = {.fd = r.fd, .events = POLLRDHUP};

			raw_fill(&r, k);
			if (poll(&p, 1, 0) != 0)
				break; /* it has been ended */
		}
		atomic_store(&s.stop, true);
		assert_int_equal(pthread_join(thread, NULL), 0);
		raw_close(&r);
	}
	victim_stop(&h, &v, "records rewritten while they are taken");
	hald_stop(&h);
}

static void jumping_tails(void **state)
{
	struct victim v;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	for (uint32_t bit = 0; bit < 33; bit++) {
		struct raw r;

		raw_open(&h, &r);
		raw_fill(&r, 1);
		assert_false(raw_is_ended(&r));
		/* Any jump but to where it is, or by no more than what is free: there are
		 * no records. */
		atomic_store(&r.ring->tail, bit == 32 ? 0 : 1 + (UINT32_C(1) << bit));
		raw_ring(&r);
		raw_wait_end(&r);
		raw_close(&r);
	}
	victim_stop(&h, &v, "tails that jump");
	hald_stop(&h);
}

/* What hald has given cannot be made shorter, nor the board be written. */
static void sealed_memory(void **state)
{
	char path[64];
	struct victim v;
	struct hald h;
	struct raw r;
	int again;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	raw_open(&h, &r);
	for (int i = 0; i < 2; i++) {
		int fd = i == 0 ? r.board : r.ring_fd;

		assert_int_equal(ftruncate(fd, 0), -1);
		assert_int_equal(errno, EPERM);
		assert_int_equal(ftruncate(fd, 1 << 20), -1);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
		assert_int_equal(errno, EPERM);
	}
	assert_int_equal(write(r.board, "x", 1), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(
		fallocate(r.board, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096),
		-1);
	assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r.board, 0) ==
		    MAP_FAILED);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r.board);
	again = open(path, O_RDWR | O_CLOEXEC);
	assert_true(again < 0 || mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
				      again, 0) == MAP_FAILED);
	if (again >= 0)
		(void)close(again);
	/* Holes in the ring are zeros: an operation without a submission's end. */
	raw_fill(&r, 1);
	assert_false(raw_is_ended(&r));
	assert_int_equal(fallocate(r.ring_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   0, (off_t)far_ring_bytes(r.slots)),
			 0);
	atomic_store(&r.ring->tail, 2);
	raw_ring(&r);
	raw_wait_end(&r);
	raw_close(&r);
	victim_stop(&h, &v, "memory that is cut");
	hald_stop(&h);
}

/* The bell is the client's own: it may be made to block, be drained and be rung without
 * end. */
static void bells(void **state)
{
	uint64_t most = UINT64_MAX - 1;
	struct victim v;
	struct hald h;
	struct raw r[2];

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	raw_open(&h, &r[0]);
	raw_open(&h, &r[1]);
	for (uint32_t i = 0; i < 1000000 / less; i++)
		raw_ring(&r[0]);
	assert_int_equal(fcntl(r[0].bell, F_SETFL, 0), 0); /* it blocks from now on */
	assert_int_equal(read(r[0].bell, &most, sizeof(most)), sizeof(most));
	most = UINT64_MAX - 1;
	assert_int_equal(write(r[0].bell, &most, sizeof(most)), sizeof(most));
	/* A bell that can be written no more, and its own ring all the same. */
	for (uint32_t i = 0; i < 10; i++) {
		atomic_fetch_add(&r[0].ring->tail, 0);
		raw_fill(&r[1], i);
	}
	assert_false(raw_is_ended(&r[0]));
	assert_false(raw_is_ended(&r[1]));
	raw_close(&r[0]);
	raw_close(&r[1]);
	victim_stop(&h, &v, "a million bells");
	hald_stop(&h);
}

/* ---- names --------------------------------------------------------------------------- */

/* Handles in a ring: guessed, stale, of another kind, of another client. */
static void names(void **state)
{
	struct victim v;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	for (uint64_t i = 0; i < 64; i++) {
		const uint64_t kind = i % 8 + 1, index = i / 8;
		struct raw r;
		bool own;

		raw_open(&h, &r);
		own = (UINT64_C(1) << 32 | kind << 24 | index) == r.buf;
		raw_fill(&r, 1);
		r.buf = UINT64_C(1) << 32 | kind << 24 | index;
		raw_fill(&r, 2);
		if (own)
			assert_false(raw_is_ended(&r));
		else
			raw_wait_end(&r);
		raw_close(&r);
	}
	victim_stop(&h, &v, "guessed handles");
	hald_stop(&h);
}

/* The ring names a buffer until, and after, a request has destroyed it. */
static void destroyed_beside(void **state)
{
	struct victim v;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	for (uint32_t i = 0; i < 200 / less; i++) {
		struct far_message m;
		struct raw r;
		int err;

		raw_open(&h, &r);
		for (uint32_t k = 0; k < i % 20; k++)
			raw_fill(&r, k);
		m = (struct far_message){.op = FAR_BUFFER_DESTROY, .a = {r.buf}};
		assert_int_equal(message_send(r.fd, &m, NULL, NULL, 0), 0);
		/* Beside the request. */
		for (uint32_t k = 0; k < 10; k++)
			raw_fill(&r, k);
		err = recv(r.fd, &m, sizeof(m), 0) >= (ssize_t)sizeof(m) ? m.result
									 : -ENOTCONN;
		assert_true(err == 0 || err == -ENOTCONN || err == -EBUSY);
		if (err == 0) {
			raw_fill(&r, 3);
			raw_wait_end(&r);
		}
		raw_close(&r);
	}
	victim_stop(&h, &v, "use after destroy");
	hald_stop(&h);
}

/* ---- messages ------------------------------------------------------------------------ */

/* Send m with count descriptors of /dev/null. */
static void send_fds(int fd, const struct far_message *m, int count)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(253 * sizeof(int))];
	} control = {0};
	union {
		const void *in;
		void *out;
	} data = {.in = m};
	struct iovec part = {data.out, sizeof(*m)};
	struct msghdr h = {.msg_iov = &part, .msg_iovlen = 1};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
	for (int i = 0; i < count; i++)
		memcpy(CMSG_DATA(&control.head) + (size_t)i * sizeof(int), &null,
		       sizeof(int));
	h.msg_control = &control;
	h.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
	assert_int_equal(sendmsg(fd, &h, MSG_NOSIGNAL), sizeof(*m));
	(void)close(null);
}

static void descriptors(void **state)
{
	struct victim v;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	for (int count = 1; count <= 253; count += count < 4 ? 1 : 83) {
		struct far_message m = {.op = FAR_DEVICE_TIME};
		struct raw r;

		raw_open(&h, &r);
		send_fds(r.fd, &m, count);
		if (count <= 2) { /* not asked for: closed */
			assert_true(recv(r.fd, &m, sizeof(m), 0) > 0);
			assert_int_equal(m.result, 0);
		} else {
			raw_wait_end(&r);
		}
		raw_close(&r);
	}
	/* None where one is asked for. */
	{
		static const uint32_t ops[] = {FAR_TRACE_START, FAR_BUFFER_IMPORT,
					       FAR_TIMELINE_IMPORT};

		for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
			struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
			struct far_message m = {.op = ops[i], .bytes = sizeof(bd)};
			struct raw r;

			raw_open(&h, &r);
			m.a[0] = r.part;
			assert_true(raw_do(r.fd, &m, &bd) < 0);
			raw_close(&r);
		}
	}
	victim_stop(&h, &v, "descriptors");
	hald_stop(&h);
}

static void huge_sizes(void **state)
{
	static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 4095, UINT64_C(1) << 63,
					 UINT64_C(1) << 48, UINT32_MAX};
	struct victim v;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
		struct far_message requests[] = {
			{.op = FAR_BUFFER_READ, .a = {0, 0, sizes[i]}},
			{.op = FAR_BUFFER_READ, .a = {0, sizes[i], 16}},
			{.op = FAR_BUFFER_WRITE, .bytes = 8, .a = {0, sizes[i]}},
			{.op = FAR_BUFFER, .bytes = sizeof(bd), .a = {0, 0, sizeof(bd)}},
			{.op = FAR_BUFFER, .bytes = 8, .a = {0, sizes[i], 8 - sizes[i]}},
			{.op = FAR_HOST, .a = {0, sizes[i]}},
			{.op = FAR_COMPLETIONS, .a = {sizes[i]}},
			{.op = FAR_MOVE, .bytes = 8, .a = {sizes[i], sizes[i]}},
			{.op = FAR_QUEUE_STATS, .a = {0, sizes[i]}},
			{.op = FAR_DEVICE_TIME, .bytes = sizes[i]},
		};

		bd.bytes = sizes[i];
		for (size_t k = 0; k < sizeof(requests) / sizeof(requests[0]); k++) {
			struct far_message *m = &requests[k];
			struct raw r;

			raw_open(&h, &r);
			m->a[0] = m->op == FAR_BUFFER || m->op == FAR_HOST ? r.part
				  : m->op == FAR_QUEUE_STATS               ? r.queue
				  : m->op < FAR_BUFFER                     ? m->a[0]
				  : m->op == FAR_COMPLETIONS               ? m->a[0]
									   : r.buf;
			/* Payloads above FAR_INLINE lie in memory that is not sent. */
			if (m->bytes > FAR_INLINE)
				assert_true(send(r.fd, m, sizeof(*m), MSG_NOSIGNAL) > 0);
			else
				assert_int_equal(message_send(r.fd, m, &bd, NULL, 0), 0);
			if (recv(r.fd, m, sizeof(*m), 0) >= (ssize_t)sizeof(*m))
				assert_true(m->result < 0 || m->op == FAR_QUEUE_STATS);
			raw_close(&r);
		}
	}
	victim_stop(&h, &v, "sizes near 2^64");
	hald_stop(&h);
}

/* A client that sends requests, and reads no answer. */
static void never_reads(void **state)
{
	struct victim v;
	struct hald h;
	struct raw r;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	raw_open(&h, &r);
	assert_int_equal(fcntl(r.fd, F_SETFL, O_NONBLOCK), 0);
	for (;;) {
		struct far_message m = {.op = FAR_BUFFER_READ, .a = {r.buf, 0, 4096}};
		struct pollfd p = {.fd = r.fd, .events = POLLOUT | POLLRDHUP};

		if (poll(&p, 1, 60000) != 1 || (p.revents & POLLRDHUP) != 0 ||
		    message_send(r.fd, &m, NULL, NULL, 0) == -EPIPE)
			break;
	}
	raw_wait_end(&r);
	raw_close(&r);
	victim_stop(&h, &v, "answers that nobody reads");
	hald_stop(&h);
}

/* ---- host functions ------------------------------------------------------------------- */

static void nothing(void *user)
{
	atomic_fetch_add((atomic_uint *)user, 1);
}

/* A client never says that its host function has returned: those of others are called. */
static void never_returns(void **state)
{
	const struct far_work w = {.size = sizeof(struct hal_submit_desc),
				   .cmd_count = 1};
	struct {
		struct far_work w;
		struct hal_cmd cmd;
	} work = {w, {.op = HAL_OP_HOST}};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct far_message m;
	atomic_uint called = 0;
	struct hal_cmd cmd;
	struct hal_point done;
	struct program p;
	struct victim v;
	struct hald h;
	struct raw r;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	raw_open(&h, &r);
	work.cmd.host.fn = nothing;
	m = (struct far_message){.op = FAR_SUBMIT, .bytes = sizeof(work), .a = {r.queue}};
	assert_int_equal(raw_do(r.fd, &m, &work), 0);
	m = (struct far_message){.op = FAR_CALLBACK};
	assert_int_equal(raw_do(r.fd, &m, NULL), 0);
	/* Answers for functions that it does not have. */
	for (uint64_t i = 2; i < 100; i++) {
		m = (struct far_message){.op = FAR_CALLED, .a = {i}};
		assert_int_equal(raw_do(r.fd, &m, NULL), 0);
	}
	assert_int_equal(program_open(&h, &p, 2), 0);
	cmd = hal_cmd_host(nothing, &called);
	d.cmds = &cmd;
	d.cmd_count = 1;
	for (uint32_t i = 1; i <= 20; i++) {
		OK(hal_submit(p.q, &d, &done));
		OK(hal_wait(&done, 1, 0, now_ns() + LONG_NS));
		assert_int_equal(atomic_load(&called), i);
	}
	raw_close(&r);
	program_close(&p);
	victim_stop(&h, &v, "a host function that never returns");
	hald_stop(&h);
}

/* ---- many ---------------------------------------------------------------------------- */

/* Connections until there are no descriptors left, and none of them says who it is. */
static void connections(void **state)
{
	enum { MANY = 3000 };
	const struct rlimit few = {400, 400};
	static int fds[MANY];
	struct rlimit own;
	struct program p;
	struct victim v;
	struct hald h;
	int count = 0;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &own), 0);
	own.rlim_cur = own.rlim_max < 4096 ? own.rlim_max : 4096;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &own), 0);
	hald_start(&h, "ref?clock=real");
	assert_int_equal(prlimit(h.pid, RLIMIT_NOFILE, &few, NULL), 0);
	victim_start(&h, &v);
	while (count < MANY && count < (int)own.rlim_cur - 100)
		fds[count++] = raw_connect(&h);
	/* Somebody who says so gets in all the same. */
	OK(program_open(&h, &p, 2));
	OK(program_works(&p, 3));
	program_close(&p);
	while (count > 0)
		(void)close(fds[--count]);
	victim_stop(&h, &v, "connections without end");
	hald_stop(&h);
}

/* Clients until there are no descriptors left. */
static void clients(void **state)
{
	const struct rlimit few = {120, 120};
	struct program p;
	struct victim v;
	struct hald h;
	int fds[200], count = 0;

	(void)state;
	hald_start(&h, "ref?clock=real");
	assert_int_equal(prlimit(h.pid, RLIMIT_NOFILE, &few, NULL), 0);
	victim_start(&h, &v);
	while (count < 200) {
		struct far_message m = {.op = FAR_HELLO, .a = {FAR_VERSION}};

		fds[count++] = raw_connect(&h);
		if (raw_do(fds[count - 1], &m, NULL) != 0)
			break;
	}
	assert_true(count > 10 && count < 200);
	while (count > 0)
		(void)close(fds[--count]);
	/* There is room again once they are gone. */
	while (program_open(&h, &p, 2) != 0)
		(void)sched_yield();
	OK(program_works(&p, 3));
	program_close(&p);
	victim_stop(&h, &v, "clients without end");
	hald_stop(&h);
}

/* Processes that connect, create something, and end. */
static void forks(void **state)
{
	struct victim v;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	for (uint32_t i = 0; i < 300 / less / 4 * 4; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			struct program p;

			if (program_open(&h, &p, 1) == 0)
				(void)program_works(&p, i);
			if (i % 2 == 0)
				(void)kill(getpid(), SIGKILL);
			_exit(0);
		}
		assert_true(pid > 0);
		if (i % 4 == 3)
			for (int k = 0; k < 4; k++)
				assert_true(wait(NULL) > 0);
	}
	victim_stop(&h, &v, "forks in a loop");
	hald_stop(&h);
}

/* Requests as fast as they go, from several threads. */
static void *create_and_destroy(void *arg)
{
	struct program *p = arg;
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *buf;

	bd.bytes = 64;
	for (uint32_t i = 0; i < 2000 / less; i++)
		if (hal_buffer_create(p->part, &bd, &buf) != 0 ||
		    hal_buffer_destroy(buf) != 0)
			return p;
	return NULL;
}

static void requests(void **state)
{
	pthread_t threads[8];
	struct program p;
	struct victim v;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	OK(program_open(&h, &p, 2));
	for (int i = 0; i < 8; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, create_and_destroy, &p), 0);
	for (int i = 0; i < 8; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	program_close(&p);
	victim_stop(&h, &v, "requests without end");
	hald_stop(&h);
}

/* More requests than a tenant may make have to wait. */
static void too_many_requests(void **state)
{
	struct program p;
	struct hald h;
	int64_t from;

	(void)state;
	hald_with_tenants(&h, "ref?clock=real",
			  "[tenant \"all\"]\nrequests_per_s = 50\n");
	OK(program_open(&h, &p, 2));
	from = now_ns();
	for (uint32_t i = 0; i < 75; i++)
		(void)hal_device_get_time(p.dev);
	/* 50 may come at once. */
	assert_true(now_ns() - from > INT64_C(300000000));
	assert_true(now_ns() - from < LONG_NS);
	program_close(&p);
	hald_with_tenants_stop(&h);
}

/* ---- two that collude ------------------------------------------------------------------ */

/* Each waits for the other's point, for ever. */
static void collusion(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_timeline *made, *got;
	struct program p[2];
	struct hal_point waits[2], signals[2];
	struct victim v;
	struct hald h;
	int fd;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	OK(program_open(&h, &p[0], 2));
	OK(program_open(&h, &p[1], 2));
	OK(hal_timeline_create(p[0].dev, &made));
	OK(hal_timeline_export(made, HAL_TIMELINE_WAIT | HAL_TIMELINE_SIGNAL, &fd));
	OK(hal_timeline_import(p[1].dev, fd, &got));
	(void)close(fd);
	for (int i = 0; i < 2; i++) {
		struct hal_timeline *t = i == 0 ? made : got;

		waits[i] = (struct hal_point){t, 1 + (uint64_t)i};
		signals[i] = (struct hal_point){t, 2 - (uint64_t)i};
		d.waits = &waits[i];
		d.wait_count = 1;
		d.signals = &signals[i];
		d.signal_count = 1;
		OK(hal_submit(p[i].q, &d, NULL));
	}
	/* One stops in the middle of it, one is killed: here both just leave. */
	for (int i = 0; i < 2; i++) {
		OK(hal_queue_suspend(p[i].q, HAL_SUSPEND_DRAIN | HAL_SUSPEND_FINAL,
				     NULL));
		while (hal_queue_destroy(p[i].q) == -EBUSY)
			(void)sched_yield();
		OK(hal_buffer_destroy(p[i].buf));
		OK(hal_partition_destroy(p[i].part));
	}
	OK(hal_timeline_destroy(got));
	OK(hal_timeline_destroy(made));
	OK(hal_close(p[0].dev));
	OK(hal_close(p[1].dev));
	victim_stop(&h, &v, "two that wait for each other");
	hald_stop(&h);
}

/* A client stops in the middle of everything: nobody waits for it. */
static void stopped(void **state)
{
	struct victim v;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	for (uint32_t i = 0; i < 40 / less; i++) {
		int ready[2];
		char byte;
		pid_t pid;

		assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
		pid = fork();
		if (pid == 0) {
			struct program p;

			(void)program_open(&h, &p, 1);
			(void)!write(ready[1], "", 1);
			for (uint32_t k = 0;; k++)
				(void)program_works(&p, k);
		}
		assert_int_equal(read(ready[0], &byte, 1), 1);
		for (volatile uint32_t k = 0; k < i * 5000; k++)
			;
		assert_int_equal(kill(pid, SIGSTOP), 0);
		/* The victim goes on beside it for as long as this takes. */
		for (volatile uint32_t k = 0; k < 1000000; k++)
			;
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		(void)close(ready[0]);
		(void)close(ready[1]);
	}
	victim_stop(&h, &v, "stopped programs");
	hald_stop(&h);
}

/* ---- traces ---------------------------------------------------------------------------- */

/* Trace into a file that shrinks, takes no more bytes after some time, or is another
 * trace's; then end without a word. */
static _Noreturn void tracer_main(const struct hald *h, uint32_t i)
{
	int fd = memfd_create("trace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct program p;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (program_open(h, &p, 1) != 0)
		_exit(1);
	for (uint32_t k = 0; k < 20; k++) {
		(void)hal_trace_start(p.dev, path);
		for (uint32_t n = 0; n < 20; n++)
			(void)program_works(&p, n);
		(void)!ftruncate(fd, k % 3 == 0 ? 0 : INT32_MAX);
		if (k == 10 && i % 4 == 0)
			(void)fcntl(fd, F_ADD_SEALS, F_SEAL_GROW);
		if (k % 2 == i % 2)
			(void)hal_trace_stop(p.dev);
	}
	(void)kill(getpid(), SIGKILL);
	_exit(0);
}

static void traces(void **state)
{
	struct victim v;
	struct hald h;

	(void)state;
	hald_start(&h, "ref?clock=real");
	victim_start(&h, &v);
	for (uint32_t i = 0; i < 120 / less / 4 * 4; i++) {
		pid_t pid = fork();

		if (pid == 0)
			tracer_main(&h, i);
		assert_true(pid > 0);
		if (i % 4 == 3)
			for (int k = 0; k < 4; k++)
				assert_true(wait(NULL) > 0);
	}
	victim_stop(&h, &v, "traces");
	hald_stop(&h);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rewritten),
		cmocka_unit_test(jumping_tails),
		cmocka_unit_test(sealed_memory),
		cmocka_unit_test(bells),
		cmocka_unit_test(names),
		cmocka_unit_test(destroyed_beside),
		cmocka_unit_test(descriptors),
		cmocka_unit_test(huge_sizes),
		cmocka_unit_test(never_reads),
		cmocka_unit_test(never_returns),
		cmocka_unit_test(connections),
		cmocka_unit_test(clients),
		cmocka_unit_test(forks),
		cmocka_unit_test(requests),
		cmocka_unit_test(too_many_requests),
		cmocka_unit_test(collusion),
		cmocka_unit_test(stopped),
		cmocka_unit_test(traces),
	};

	int failed;

	if (argc > 1 && strcmp(argv[1], "full") == 0)
		less = 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);

	/* A victim whose bits are changed fails its test. */
	printf("figure broker.contain.neighbour_bits_changed %d\n", failed);
	printf("figure broker.contain.neighbour_worst_ms %.1f\n", (double)worst_ns / 1e6);
	return failed;
}
