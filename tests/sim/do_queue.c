/* SPDX-License-Identifier: Apache-2.0 */
/* do_queue.c - operations on queues: made, suspended in all modes, resumed, destroyed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct sim_queue *sim_queue_at(struct sim *s, uint32_t i)
{
	for (uint32_t n = 0; n < QUEUES; n++, i++)
		if (s->queues[i % QUEUES].q)
			return &s->queues[i % QUEUES];
	return NULL;
}

const struct sim_queue *sim_queue_of(const struct sim *s, uint32_t id)
{
	for (uint32_t i = 0; i < QUEUES; i++)
		if (s->queues[i].q && s->queues[i].id == id)
			return &s->queues[i];
	return NULL;
}

int sim_buffer_create(struct sim *s, struct sim_part *p, uint64_t bytes,
		      struct hal_buffer **buf)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	int err;

	d.bytes = bytes;
	err = hal_buffer_create(p->p, &d, buf);
	if (err) {
		*buf = NULL;
		if (err == -ENOSPC || (err == -ENOMEM && s->injected) ||
		    sim_excused(s, err))
			return -ENOSPC;
		return sim_fail(s, __FILE__, __LINE__, "buffer_create: %d: %s", err,
				hal_last_error());
	}
	p->buffer_bytes += bytes;
	return 0;
}

int sim_buffer_destroy(struct sim *s, struct sim_part *p, uint64_t bytes,
		       struct hal_buffer **buf)
{
	if (!*buf)
		return 0;
	SIM_OK(hal_buffer_destroy(*buf));
	*buf = NULL;
	p->buffer_bytes -= bytes;
	return 0;
}

/* What is left of a partition's numbers when those of its live queues are taken away. */
static int past_of(struct sim *s, uint32_t part, struct hal_stats *past)
{
	*past = (struct hal_stats)HAL_INIT(hal_stats);
	SIM_OK(hal_partition_get_stats(s->parts[part].p, past));
	for (uint32_t i = 0; i < QUEUES; i++) {
		struct hal_stats t = HAL_INIT(hal_stats);

		if (!s->queues[i].q || s->queues[i].part != part)
			continue;
		SIM_OK(hal_queue_get_stats(s->queues[i].q, &t));
		past->submitted -= t.submitted;
		past->completed -= t.completed;
		past->failed -= t.failed;
		past->dropped -= t.dropped;
	}
	return 0;
}

int sim_queue_put_away(struct sim *s, struct sim_queue *q)
{
	struct sim_part *p = &s->parts[q->part];

	SIM_OK(hal_sequence_destroy(q->seq));
	SIM_OK(sim_buffer_destroy(s, p, STATE_BYTES, &q->state));
	SIM_OK(sim_buffer_destroy(s, p, BUFFER_BYTES, &q->buf));
	SIM_OK(sim_buffer_destroy(s, p, BUFFER_BYTES, &q->host));
	SIM_OK(hal_timeline_destroy(q->line));
	p->queues--;
	free(q->shadow);
	memset(q, 0, sizeof(*q));
	return 0;
}

/* All it had has ended, and stays in its partition's numbers. */
static int gone(struct sim *s, struct sim_queue *q)
{
	struct sim_part *p = &s->parts[q->part];
	struct hal_stats past;
	uint64_t ended;

	q->q = NULL;
	if (past_of(s, q->part, &past))
		return -1;
	ended = past.completed + past.failed + past.dropped - p->past_completed -
		p->past_failed - p->past_dropped;
	SIM_CHECK(past.submitted - p->past_submitted == q->commands);
	SIM_CHECK(ended == q->commands);
	SIM_CHECK(q->tainted || past.completed - p->past_completed == q->commands);
	SIM_CHECK(q->tainted || q->host_done == q->host_submitted);
	p->past_submitted = past.submitted;
	p->past_completed = past.completed;
	p->past_failed = past.failed;
	p->past_dropped = past.dropped;
	p->past_busy_ns += q->last.busy_ns;
	return 0;
}

void sim_taint(struct sim *s, struct sim_queue *q)
{
	q->tainted = true;
	s->clean[q->id] = false;
}

int sim_queue_drop(struct sim *s, struct sim_queue *q)
{
	int err;

	SIM_OK(hal_queue_get_stats(q->q, &q->last));
	err = hal_queue_destroy(q->q);
	sim_mix(s, (uint64_t)(int64_t)err);
	SIM_ANSWER(!err || err == -EBUSY || sim_excused(s, err));
	if (err)
		return 0;
	/* What is left in a suspended one is dropped. */
	if (q->suspended || s->faulty)
		sim_taint(s, q);
	return gone(s, q);
}

/* If there is room for it.  It stays on the device, so that in a partition with more than
 * its quota it would leave too little for what comes back. */
static int make_host(struct sim *s, struct sim_queue *q, struct sim_part *part)
{
	void *address;
	int err;

	if (!(s->info.caps & HAL_CAP_HOST_COPY) || part->limit)
		return 0;
	err = hal_host_alloc(part->p, BUFFER_BYTES, &q->host, &address);
	if (!err)
		part->buffer_bytes += BUFFER_BYTES;
	else
		q->host = NULL;
	SIM_ANSWER(!err || err == -ENOSPC || (err == -ENOMEM && s->injected) ||
		   sim_excused(s, err));
	return 0;
}

static int make_buffers(struct sim *s, struct sim_queue *q, struct sim_part *part)
{
	static const uint8_t zero[BUFFER_BYTES];
	int err = sim_buffer_create(s, part, STATE_BYTES, &q->state);

	if (!err)
		err = sim_buffer_create(s, part, BUFFER_BYTES, &q->buf);
	if (!err)
		err = hal_buffer_write(q->state, 0, zero, STATE_BYTES);
	if (!err)
		err = hal_buffer_write(q->buf, 0, zero, BUFFER_BYTES);
	if (!err && make_host(s, q, part))
		return -1;
	if (!err && (q->shadow = calloc(1, BUFFER_BYTES)) == NULL)
		return sim_fail(s, __FILE__, __LINE__, "no memory");
	if (err && err != -ENOSPC)
		SIM_ANSWER(err == -1 || sim_excused(s, err));
	return err;
}

int do_queue_create(struct sim *s, const uint32_t *p)
{
	enum { PART, CLASS, PRIORITY, DEADLINE, WEIGHT, BUDGET, TELLS };
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct sim_part *part = sim_part_at(s, p[PART]);
	struct sim_queue *q = s->queues;
	int err;

	while (q < s->queues + QUEUES && q->q)
		q++;
	if (q == s->queues + QUEUES || !part || s->ids + 1 == IDS)
		return 0;
	memset(q, 0, sizeof(*q));
	q->part = (uint32_t)(part - s->parts);
	d.priority = (int32_t)p[PRIORITY] - 1;
	d.service_class = (uint16_t)(p[CLASS] > HAL_CLASS_BEST_EFFORT ? 0 : p[CLASS]);
	if (d.service_class == HAL_CLASS_BEST_EFFORT)
		s->stops = true;
	else if (p[DEADLINE] >= 5000)
		d.deadline_ns = p[DEADLINE];
	d.weight = p[WEIGHT];
	/* Where policies come and go, few: others than quota may not come meanwhile. */
	if (strstr(s->script->policy, "quota") != NULL || p[BUDGET] >= 900)
		d.budget_permille = (uint16_t)p[BUDGET];
	if (p[TELLS])
		d.completions = s->ring;
	SIM_OK(hal_timeline_create(s->dev, &q->line));
	part->queues++;
	err = make_buffers(s, q, part);
	if (err)
		return s->why[0] ? -1 : sim_queue_put_away(s, q);
	err = hal_queue_create(part->p, &d, &q->q);
	sim_mix(s, (uint64_t)(int64_t)err);
	SIM_ANSWER(err || !d.budget_permille || s->budgets);
	if (err) {
		q->q = NULL;
		SIM_ANSWER((err == -ENOTSUP && d.budget_permille && !s->budgets) ||
			   (err == -ENOSPC && s->picky) ||
			   (err == -ENOMEM && s->injected) || sim_excused(s, err));
		return sim_queue_put_away(s, q);
	}
	q->id = ++s->ids;
	q->budget = d.budget_permille != 0;
	q->tells = p[TELLS];
	q->service_class = d.service_class;
	q->moved_on_ns = hal_device_get_time(s->dev);
	s->clean[q->id] = true;
	s->handle[q->id] = q->q;
	return 0;
}

int do_queue_destroy(struct sim *s, const uint32_t *p)
{
	struct sim_queue *q = sim_queue_at(s, p[0]);
	int err;

	if (!q)
		return 0;
	/* The line first: it tells whether somebody waits for what it will reach. */
	err = hal_timeline_destroy(q->line);
	sim_mix(s, (uint64_t)(int64_t)err);
	SIM_ANSWER(!err || err == -EBUSY);
	if (err)
		return 0;
	SIM_OK(hal_timeline_create(s->dev, &q->line));
	q->line_value = q->line_seen = 0;
	if (sim_queue_drop(s, q))
		return -1;
	return q->q ? 0 : sim_queue_put_away(s, q);
}

static int suspend(struct sim *s, struct sim_queue *q, uint32_t mode, bool wait)
{
	uint32_t flags = q->final ? HAL_SUSPEND_FINAL : 0;
	bool reached = !q->quiet.timeline ||
		       hal_timeline_get_value(q->quiet.timeline, NULL) >= q->quiet.value;
	struct hal_point quiet = {0};
	int err = hal_queue_suspend(q->q, mode | flags, &quiet);

	sim_mix(s, (uint64_t)(int64_t)err);
	if (q->suspended) {
		SIM_ANSWER(err == -EBUSY || (err && s->lost));
		return 0;
	}
	/* Not replayable, or not in this device's modes; or the resume of the one before
	 * has not happened yet, or the policy has stopped it. */
	SIM_ANSWER(!err || err == -ENOTSUP ||
		   (err == -EBUSY && (!reached || s->stops || s->faulty)) ||
		   sim_excused(s, err));
	if (err) {
		q->final = false;
		return 0;
	}
	q->suspended = true;
	q->quiet = quiet;
	q->mode = mode;
	q->asked_ns = hal_device_get_time(s->dev);
	q->asked_quiet = true;
	s->asked_kills += mode == HAL_SUSPEND_KILL;
	if (!wait)
		return 0;
	err = sim_wait(quiet);
	SIM_ANSWER(!err || s->faulty);
	return 0;
}

int do_suspend(struct sim *s, const uint32_t *p)
{
	enum { QUEUE, MODE, WAIT };
	struct sim_queue *q = sim_queue_at(s, p[QUEUE]);

	return q ? suspend(s, q, p[MODE], p[WAIT]) : 0;
}

static bool waits_for(const struct sim_queue *q, uint32_t id)
{
	for (uint64_t n = q->seen + 1; n <= q->submissions; n++)
		for (uint32_t i = 0; i < q->owed[n % DEPTH].wait_count; i++) {
			const struct sim_wait *w = &q->owed[n % DEPTH].waits[i];

			if (!w->gate && w->who == id)
				return true;
		}
	return false;
}

/* q, and all that wait for it, and so on, whether something else has tainted them or not.
 */
static void taint_waiters(struct sim *s, struct sim_queue *q, bool *followed)
{
	sim_taint(s, q);
	followed[q - s->queues] = true;
	for (uint32_t i = 0; i < QUEUES; i++)
		if (s->queues[i].q && !followed[i] && waits_for(&s->queues[i], q->id))
			taint_waiters(s, &s->queues[i], followed);
}

/* Nothing of it has to end any more. */
int do_suspend_final(struct sim *s, const uint32_t *p)
{
	enum { QUEUE, MODE };
	struct sim_queue *q = sim_queue_at(s, p[QUEUE]);
	bool followed[QUEUES] = {false};

	if (!q || q->suspended)
		return 0;
	q->final = true;
	if (suspend(s, q, p[MODE], false))
		return -1;
	if (q->final)
		taint_waiters(s, q, followed);
	return 0;
}

int do_resume(struct sim *s, const uint32_t *p)
{
	struct sim_queue *q = sim_queue_at(s, p[0]);
	int err;

	if (!q)
		return 0;
	err = hal_queue_resume(q->q);
	sim_mix(s, (uint64_t)(int64_t)err);
	if (q->final) {
		SIM_ANSWER(err == -ECANCELED || (err && s->lost) ||
			   (err == -EINVAL && s->faulty));
		return 0;
	}
	SIM_ANSWER(err == (q->suspended ? 0 : -EINVAL) || (!err && s->stops) ||
		   s->faulty || sim_excused(s, err));
	if (!err)
		q->suspended = false;
	return 0;
}
