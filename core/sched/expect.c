/* SPDX-License-Identifier: Apache-2.0 */
/* expect.c - predict the run time and the memory traffic of commands. */
#include "sched/expect.h"

/* Longer submissions are not predicted from the profile of their kernels. */
#define JOB_RECORDS_MAX 256u
#define SEEN_MAX        INT32_MAX /* limit of by_units.seen */

static ALWAYS_INLINE struct known *known_of(const struct record *r)
{
	return r->cmd.op == HAL_OP_LAUNCH ? r->launch.kernel->known : NULL;
}

/* ---- learning ------------------------------------------------------------------- */

/* Add value to a sum that decays over about RUNS_COUNTED values. */
static void decayed_add(double *sum, double value)
{
	*sum += value - *sum / RUNS_COUNTED;
}

/* If all commands of the current submission have ended, learn the submission's run
 * time. */
static void finish_job(struct hal_queue *q, struct learned *l)
{
	if (l->job == q->timeline.seen)
		return;
	if (l->part_ns != 0)
		l->job_ns = l->job_ns != 0 ? l->job_ns - l->job_ns / 8 + l->part_ns / 8
					   : l->part_ns;
	l->job = q->timeline.seen;
	l->part_ns = 0;
}

/* Return the number of the entry of by[0..count) for exactly that number of units, or
 * count.  Entries are filled from the first one on. */
static ALWAYS_INLINE uint32_t entry_for(const struct by_units *by, uint32_t count,
					uint64_t work, uint32_t units)
{
	uint32_t i = 0;

	while (i < count && (by[i].units != units || by[i].plain != (work == 0)))
		i = by[i].units != 0 ? i + 1 : count;
	return i;
}

/* Add a run time on that number of units to entry i of by[0..count).  The time is stored
 * per multiply-accumulate if the command's work is known, else per command.  If i is
 * count, a new entry replaces *next. */
static ALWAYS_INLINE void learn_entry(struct by_units *by, uint32_t i, uint32_t count,
				      uint32_t *next, uint32_t units, uint64_t work,
				      uint64_t ran_ns)
{
	if (UNLIKELY(i == count)) {
		i = *next;
		*next = (i + 1) % count;
		by[i] = (struct by_units){.units = units, .plain = work == 0};
	}
	decayed_add(&by[i].ns, (double)ran_ns);
	decayed_add(&by[i].of, work != 0 ? (double)work : 1);
	if (by[i].seen < SEEN_MAX)
		by[i].seen++;
}

static void learn_units(struct by_units *by, uint32_t count, uint32_t *next,
			uint32_t units, uint64_t ran_ns)
{
	learn_entry(by, entry_for(by, count, 0, units), count, next, units, 0, ran_ns);
}

void expect_learn_alone(struct known *k, uint32_t units, uint64_t ran_ns)
{
	learn_units(k->alone, KNOWN_UNITS, &k->alone_next, units, ran_ns);
}

/* Learn the error of the prediction expected_ns for a command that ran ran_ns. */
static ALWAYS_INLINE void learn_error(struct sureness *s, uint64_t expected_ns,
				      uint64_t ran_ns)
{
	uint64_t off = expected_ns > ran_ns ? expected_ns - ran_ns : ran_ns - expected_ns;

	decayed_add(&s->runs, 1);
	/* The first command had no prediction, so it has no error. */
	if (expected_ns != HAL_POLICY_NEVER)
		decayed_add(&s->error, off < ran_ns ? (double)off / (double)ran_ns : 1);
}

void expect_learn_quiet(struct hal_queue *q, uint32_t mode, uint64_t quiet_ns)
{
	struct stop_learned *s = &q->sched.learned.stops[mode];

	if (!s->quiet_known || quiet_ns > s->quiet_ns)
		s->quiet_ns = quiet_ns;
	else
		s->quiet_ns -= (s->quiet_ns - quiet_ns) / RUNS_COUNTED;
	s->quiet_known = true;
}

/* Learn how much longer than expected f ran, because it was stopped inside.  Ignore f if
 * it was stopped more than once, perhaps in different modes, or if its units may have
 * changed in between. */
static void learn_stop_cost(struct hal_queue *q, const struct inflight *f,
			    uint64_t ran_ns)
{
	struct stop_learned *s = &q->sched.learned.stops[q->sched.suspend_mode];
	uint64_t expected_ns = expect_command(q, f->record), cost_ns;

	if (q->sched.stops_inside != 1 || expected_ns == HAL_POLICY_NEVER ||
	    q->part->moved_ns > f->ready_ns || q->part->moving.units != 0)
		return;
	cost_ns = ran_ns > expected_ns ? ran_ns - expected_ns : 0;
	s->cost_ns = s->cost_known ? s->cost_ns - s->cost_ns / RUNS_COUNTED +
					     cost_ns / RUNS_COUNTED
				   : cost_ns;
	s->cost_known = true;
}

/* ---- predicting ----------------------------------------------------------------- */

/* Round x to an integer between least and 2^62. */
static ALWAYS_INLINE uint64_t round_u64(double x, uint64_t least)
{
	const uint64_t most = UINT64_C(1) << 62;

	if (UNLIKELY(x < (double)least))
		return least;
	/* Converting to a signed number takes fewer instructions. */
	return LIKELY(x < (double)most) ? (uint64_t)(int64_t)(x + 0.5) : most;
}

/* Predict the run time of a command on the units of entry e. */
static ALWAYS_INLINE uint64_t time_of(const struct by_units *e, uint64_t work)
{
	double times = work != 0 ? (double)work : 1;

	return round_u64(e->ns / e->of * times, 1);
}

/* Predict the run time on a number of units that has no entry, from the nearest entries
 * for fewer and for more units.  Assume a time of a + b / units between them.  Return
 * HAL_POLICY_NEVER if the time is unknown. */
static NOINLINE uint64_t interpolate(const struct by_units *by, uint32_t count,
				     uint64_t work, uint32_t units)
{
	const struct by_units *fewer = NULL, *more = NULL;
	double a, b, at, times = work != 0 ? (double)work : 1;

	for (uint32_t i = 0; i < count; i++) {
		const struct by_units *e = &by[i];

		if (e->units == 0 || e->plain != (work == 0))
			continue;
		if (e->units < units && (fewer == NULL || e->units > fewer->units))
			fewer = e;
		if (e->units > units && (more == NULL || e->units < more->units))
			more = e;
	}
	if (fewer == NULL || more == NULL)
		return HAL_POLICY_NEVER;
	a = fewer->ns / fewer->of * times;
	b = more->ns / more->of * times;
	at = (1.0 / units - 1.0 / more->units) / (1.0 / fewer->units - 1.0 / more->units);
	return round_u64(b + (a - b) * at, 1);
}

/* Predict the run time on that number of units, or return HAL_POLICY_NEVER. */
static ALWAYS_INLINE uint64_t expect_from(const struct by_units *by, uint32_t count,
					  uint64_t work, uint32_t units)
{
	uint32_t i = entry_for(by, count, work, units);

	if (UNLIKELY(units == 0))
		return HAL_POLICY_NEVER;
	return LIKELY(i < count) ? time_of(&by[i], work)
				 : interpolate(by, count, work, units);
}

uint64_t expect_alone(const struct known *k, uint32_t units)
{
	return expect_from(k->alone, KNOWN_UNITS, 0, units);
}

/* Predict a run time on that number of units, from kernel k's statistics or else from the
 * queue's. */
static ALWAYS_INLINE uint64_t expect_units(const struct hal_queue *q,
					   const struct known *k, uint64_t work,
					   uint32_t units)
{
	uint64_t ns = HAL_POLICY_NEVER;

	if (UNLIKELY(k != NULL))
		ns = expect_from(k->by, KNOWN_UNITS, 0, units);
	return LIKELY(ns == HAL_POLICY_NEVER)
		       ? expect_from(q->sched.learned.by, LEARNED_UNITS, work, units)
		       : ns;
}

uint64_t expect_on(void *device, const struct hal_policy_queue *queue, uint32_t units)
{
	const struct hal_queue *q =
		container_of(queue, const struct hal_queue, sched.policy_view);

	(void)device;
	return expect_units(q, q->sched.learned.head, queue->head.work, units);
}

/* Predict a command of that kernel (k) and work on the units of q's partition. */
static ALWAYS_INLINE uint64_t expect_work(const struct hal_queue *q,
					  const struct known *k, uint64_t work)
{
	const struct learned *l = &q->sched.learned;
	uint64_t here = expect_units(q, k, work, q->part->desc.units);

	if (LIKELY(here != HAL_POLICY_NEVER))
		return here;
	if (work != 0 && l->work > 0)
		return round_u64(l->work_ns * ((double)work / l->work), 1);
	if (work == 0 && l->plain > 0)
		return round_u64(l->plain_ns / l->plain, 1);
	return HAL_POLICY_NEVER;
}

uint64_t expect_command(const struct hal_queue *q, const struct record *r)
{
	return expect_work(q, known_of(r), record_work(r));
}

/* Predict the whole submission that begins with q's next command, as the sum of its
 * kernels' predictions.  Return 0 if one of these is unknown. */
static uint64_t job_from_profile(const struct hal_queue *q)
{
	union cursor at = q->issue;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < JOB_RECORDS_MAX; i++) {
		const struct record *of_ring = &q->slots[at.pos & q->slot_mask];
		const struct record *r = cursor_record(q, at);
		unsigned int pos = at.pos;
		uint64_t ns;

		if (record_for_device(r)) {
			ns = known_of(r) != NULL ? expect_command(q, r)
						 : HAL_POLICY_NEVER;
			if (ns == HAL_POLICY_NEVER)
				return 0;
			sum += ns;
		}
		cursor_step(q, &at, r);
		if (at.pos != pos && (of_ring->own & REC_END) != 0)
			return sum;
	}
	return 0;
}

/* Predict the rest and the whole of the submission that q's next command belongs to. */
static void expect_job(struct hal_queue *q, struct hal_policy_command *head)
{
	struct learned *l = &q->sched.learned;

	finish_job(q, l);
	if (l->job_ns == 0 && l->head != NULL && l->part_ns == 0)
		l->job_ns = job_from_profile(q);
	if (l->job_ns == 0)
		return;
	head->whole_ns = l->job_ns;
	head->rest_ns = l->job_ns;
	if (head->submit_ns == l->submit_ns)
		head->rest_ns -= l->part_ns < l->job_ns ? l->part_ns : l->job_ns - 1;
	if (head->expected_ns != HAL_POLICY_NEVER && head->rest_ns < head->expected_ns)
		head->rest_ns = head->expected_ns;
	if (head->whole_ns < head->rest_ns)
		head->whole_ns = head->rest_ns;
}

uint16_t expect_sure(const struct sureness *s)
{
	double of = s->runs < RUNS_COUNTED ? s->runs / RUNS_COUNTED : 1;
	double sure = s->runs > 0 ? of - s->error / s->runs : 0;

	return sure > 0.001 ? (uint16_t)(sure * 1000) : 1;
}

/* Return the resource that limits r's speed, as enum hal_policy_kind. */
static ALWAYS_INLINE uint16_t kind_of(const struct known *k, const struct record *r)
{
	bool launch = r->cmd.op == HAL_OP_LAUNCH;
	uint32_t engines = launch ? r->launch.kernel->info.engines : 0;

	if (UNLIKELY(k != NULL))
		return (uint16_t)k->kind;
	if (r->cmd.op == HAL_OP_COPY || r->cmd.op == HAL_OP_FILL)
		return HAL_POLICY_MEMORY;
	if ((engines & HAL_BK_ENGINE_ARRAY) != 0)
		return HAL_POLICY_ARRAY;
	return (engines & HAL_BK_ENGINE_VECTOR) != 0 ? HAL_POLICY_VECTOR
						     : HAL_POLICY_UNKNOWN;
}

/* Predict the bytes that a command of that kernel and work moves.  Return
 * HAL_POLICY_NEVER if unknown. */
static ALWAYS_INLINE uint64_t expect_bytes(const struct learned *l, const struct known *k,
					   uint64_t work)
{
	if (UNLIKELY(k != NULL))
		return round_u64(k->bytes / k->of, 0);
	if (work != 0 && l->work > 0)
		return round_u64(l->work_bytes * ((double)work / l->work), 0);
	if (work == 0 && l->plain > 0)
		return round_u64(l->plain_bytes / l->plain, 0);
	return HAL_POLICY_NEVER;
}

void expect_head(struct hal_queue *q, const struct record *r)
{
	struct learned *l = &q->sched.learned;
	struct hal_policy_command *head = &q->sched.policy_view.head;
	const struct known *k = known_of(r);
	bool launch = r->cmd.op == HAL_OP_LAUNCH;
	uint64_t work = record_work(r);
	uint64_t expected_ns = expect_work(q, k, work);

	l->head = k;
	head->kind = kind_of(k, r);
	head->configuration = launch ? r->launch.kernel->info.configuration : 0;
	head->program = launch ? r->launch.kernel->program : 0;
	head->expected_ns = expected_ns;
	head->expected_bytes = expect_bytes(l, k, work);
	head->sure_permille = 0;
	if (LIKELY(expected_ns != HAL_POLICY_NEVER))
		head->sure_permille = expect_sure(k != NULL ? &k->sure : &l->sure);
	head->rest_ns = expected_ns;
	head->whole_ns = expected_ns;
	if ((r->own & REC_WHOLE) == 0)
		expect_job(q, head);
}

/* ---- learning from a completed command ------------------------------------------------ */

/* Learn from a command of kernel k of the profile.  here: see expect_is_here. */
static NOINLINE void learn_known(struct hal_queue *q, const struct record *r,
				 struct known *k, uint64_t bytes, uint64_t ran_ns,
				 bool here)
{
	struct profile *p = q->dev->observe.profile;

	if (here)
		learn_error(&k->sure, expect_command(q, r), ran_ns);
	decayed_add(&k->bytes, (double)bytes);
	decayed_add(&k->of, 1);
	if (!here)
		return;
	learn_units(k->by, KNOWN_UNITS, &k->by_next, q->part->desc.units, ran_ns);
	if (!k->noted)
		note(&p->taught, (size_t)(k - p->kernels));
	k->noted = true;
}

/* Learn the run time of r, a command of q, on the present units of its partition.  k is
 * the profile's kernel, which then has the error of the prediction, or NULL. */
static ALWAYS_INLINE void learn_here(struct hal_queue *q, const struct record *r,
				     const struct known *k, uint64_t work,
				     uint64_t ran_ns)
{
	struct learned *l = &q->sched.learned;
	uint32_t units = q->part->desc.units;
	uint32_t i = entry_for(l->by, LEARNED_UNITS, work, units);

	if (LIKELY(k == NULL))
		learn_error(&l->sure,
			    LIKELY(i < LEARNED_UNITS && units != 0)
				    ? time_of(&l->by[i], work)
				    : expect_command(q, r),
			    ran_ns);
	learn_entry(l->by, i, LEARNED_UNITS, &l->by_next, units, work, ran_ns);
}

void expect_learn(struct hal_queue *q, const struct inflight *f, uint64_t bytes,
		  uint64_t ran_ns)
{
	struct learned *l = &q->sched.learned;
	const struct record *r = f->record;
	struct known *k = known_of(r);
	uint64_t work = record_work(r);
	bool here = expect_is_here(q, f);

	if (UNLIKELY((q->slow & SLOW_STOPPED) != 0))
		learn_stop_cost(q, f, ran_ns);
	if (UNLIKELY(k != NULL))
		learn_known(q, r, k, bytes, ran_ns, here);
	if (LIKELY(here))
		learn_here(q, r, k, work, ran_ns);
	if (work != 0) {
		decayed_add(&l->work_ns, (double)ran_ns);
		decayed_add(&l->work_bytes, (double)bytes);
		decayed_add(&l->work, (double)work);
	} else {
		decayed_add(&l->plain_ns, (double)ran_ns);
		decayed_add(&l->plain_bytes, (double)bytes);
		decayed_add(&l->plain, 1);
	}
	if (LIKELY((r->own & REC_WHOLE) != 0))
		return;
	finish_job(q, l);
	l->part_ns += ran_ns;
	l->submit_ns = f->submit_ns;
}
