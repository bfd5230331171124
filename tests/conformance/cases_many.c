/* SPDX-License-Identifier: Apache-2.0 */
/* Many of everything, and from many threads. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static void count_up(void *user)
{
	++*(uint32_t *)user;
}

static int queues(struct conf *c)
{
	enum { N = 1000 };
	struct hal_partition *p;
	struct hal_queue *q[N];
	struct hal_point done;
	struct hal_cmd cmd;
	uint32_t ran[N] = {0}, i;

	STEP(conf_whole(c, &p));
	for (i = 0; i < N; i++)
		STEP(conf_queue(c, p, &q[i]));
	for (i = 0; i < N; i++) {
		cmd = hal_cmd_host(count_up, &ran[i]);
		STEP(conf_submit(c, q[i], &cmd, 1, NULL));
	}
	for (i = 0; i < N; i++) {
		done = (struct hal_point){hal_queue_get_timeline(q[N - 1 - i]), 1};
		STEP(conf_wait(c, done));
	}
	for (i = 0; i < N; i++)
		EQ(ran[i], 1);
	return 0;
}

/* Several queues of one partition with real work in each. */
static int queues_with_work(struct conf *c)
{
	enum { N = 24 };
	struct hal_partition *p;
	struct hal_queue *q[N];
	struct hal_buffer *b[N];
	struct hal_point done[N];
	struct hal_cmd cmd[2];
	uint32_t i, k;

	STEP(conf_whole(c, &p));
	for (i = 0; i < N; i++) {
		STEP(conf_queue(c, p, &q[i]));
		STEP(conf_buffer(c, p, 128, &b[i]));
	}
	for (k = 0; k < 3; k++) {
		for (i = 0; i < N; i++) {
			cmd[0] = hal_cmd_fill(b[i], 0, 64, 1000 * k + i);
			cmd[1] = hal_cmd_copy(b[i], 64, b[i], 0, 64);
			STEP(conf_submit(c, q[i], cmd, 2, &done[i]));
		}
	}
	OK(hal_wait(done, N, 0, conf_deadline(INT64_C(300) * 1000000000)));
	for (i = 0; i < N; i++)
		STEP(conf_filled(c, b[i], 0, 128, 2000 + i));
	return 0;
}

static int partitions(struct conf *c)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p[16];
	struct hal_queue *q[16];
	struct hal_buffer *b[16];
	struct hal_point done[16];
	struct hal_cmd cmd;
	uint32_t n = c->info.partitions_max < 16 ? c->info.partitions_max : 16, i;

	if (n > conf_units(c))
		n = conf_units(c);
	d.units_floor = 1;
	d.memory_bytes = 65536;
	for (i = 0; i < n; i++) {
		STEP(conf_part(c, &d, &p[i]));
		STEP(conf_queue(c, p[i], &q[i]));
		STEP(conf_buffer(c, p[i], 1024, &b[i]));
	}
	for (i = 0; i < n; i++) {
		cmd = hal_cmd_fill(b[i], 0, 1024, 77 * i);
		STEP(conf_submit(c, q[i], &cmd, 1, &done[i]));
	}
	OK(hal_wait(done, n, 0, conf_deadline(INT64_C(300) * 1000000000)));
	for (i = 0; i < n; i++)
		STEP(conf_filled(c, b[i], 0, 1024, 77 * i));
	return 0;
}

static int come_and_go(struct conf *c)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd cmd;
	uint32_t i;

	d.units_floor = 1;
	for (i = 0; i < 100; i++) {
		STEP(conf_part(c, &d, &p));
		STEP(conf_queue(c, p, &q));
		STEP(conf_buffer(c, p, 4096, &b));
		cmd = hal_cmd_fill(b, 0, 64, i);
		STEP(conf_submit(c, q, &cmd, 1, &done));
		STEP(conf_wait(c, done));
		STEP(conf_filled(c, b, 0, 64, i));
		STEP(conf_queue_gone(c, q));
		STEP(conf_buffer_gone(c, b));
		STEP(conf_part_gone(c, p));
	}
	return 0;
}

static int timelines(struct conf *c)
{
	enum { N = 2000 };
	struct hal_timeline *t;
	uint32_t i;

	for (i = 0; i < N; i++) {
		STEP(conf_timeline(c, &t));
		OK(hal_timeline_signal(t, i + 1));
	}
	for (i = 0; i < N; i++)
		EQ(hal_timeline_get_value(c->timelines[i], NULL), i + 1);
	return 0;
}

/* One worker a queue; each submits and waits on its own. */
enum { WORKERS = 4, ROUNDS = 25 };

struct worker {
	pthread_t thread;
	struct hal_queue *q;
	struct hal_buffer *b;
	uint32_t id;
	int err;
};

static void *work(void *user)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct worker *w = user;
	struct hal_point done;
	struct hal_cmd cmd;
	uint32_t i, got;

	d.cmds = &cmd;
	d.cmd_count = 1;
	for (i = 0; i < ROUNDS && !w->err; i++) {
		cmd = hal_cmd_fill(w->b, 0, 64, w->id << 16 | i);
		w->err = hal_submit(w->q, &d, &done);
		if (!w->err)
			w->err = conf_wait_raw(done);
		if (!w->err)
			w->err = hal_buffer_read(w->b, 60, &got, 4);
		if (!w->err && got != (w->id << 16 | i))
			w->err = -EBADMSG;
	}
	return NULL;
}

static int threads(struct conf *c)
{
	struct worker w[WORKERS] = {{0}};
	struct hal_partition *p;
	uint32_t i, started;
	int bad = 0;

	STEP(conf_whole(c, &p));
	for (i = 0; i < WORKERS; i++) {
		w[i].id = i + 1;
		STEP(conf_queue(c, p, &w[i].q));
		STEP(conf_buffer(c, p, 64, &w[i].b));
	}
	for (started = 0; started < WORKERS; started++)
		if (pthread_create(&w[started].thread, NULL, work, &w[started]))
			break;
	for (i = 0; i < started; i++) {
		pthread_join(w[i].thread, NULL);
		bad |= w[i].err;
	}
	EQ(started, WORKERS);
	EQ(bad, 0);
	return 0;
}

/* Another thread waits for what this one submits. */
static void *wait_for(void *user)
{
	struct hal_point *p = user;

	return (void *)(intptr_t)hal_wait(p, 1, 0,
					  conf_deadline(INT64_C(300) * 1000000000));
}

static int waiting_thread(struct conf *c)
{
	struct hal_partition *part;
	struct hal_timeline *gate;
	struct hal_queue *q;
	struct hal_point open, done;
	pthread_t thread;
	void *err = NULL;

	if (conf_virtual(c))
		return conf_unsupported(c, "a waiting thread runs virtual time dry");
	STEP(conf_whole(c, &part));
	STEP(conf_queue(c, part, &q));
	STEP(conf_timeline(c, &gate));
	open = (struct hal_point){gate, 1};
	STEP(conf_submit_ws(c, q, NULL, 0, &open, NULL, &done));
	CHECK(!pthread_create(&thread, NULL, wait_for, &done));
	if (hal_timeline_signal(gate, 1))
		err = &done; /* the thread ends all the same, at its deadline */
	pthread_join(thread, &err);
	EQ((intptr_t)err, 0);
	return 0;
}

const struct conf_case conf_many_cases[] = {
	{"many.queues", queues},
	{"many.queues_with_work", queues_with_work},
	{"many.partitions", partitions},
	{"many.come_and_go", come_and_go},
	{"many.timelines", timelines},
	{"many.threads", threads},
	{"many.waiting_thread", waiting_thread},
	{NULL, NULL},
};
