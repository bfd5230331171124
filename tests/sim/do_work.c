/* SPDX-License-Identifier: Apache-2.0 */
/*
 * do_work.c - submissions, recorded sequences, and what queues' buffers have to hold when
 * all is done.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ext/memory.h>

#include "sim.h"

enum {
	AREA = BUFFER_BYTES - 256, /* what the model follows; behind it are timestamps */
	HALF = AREA / 2,
	COMMANDS = SIM_COMMANDS,
};

/* A submission that is being made. */
struct work {
	struct hal_cmd cmds[2 * COMMANDS]; /* a copy through host memory is two */
	struct hal_arg args[2 * COMMANDS][3];
	struct hal_point waits[WAITS], signals[1];
	uint32_t n, wait_count, signal_count;
	uint64_t steps, steps_inside, hosts;
	bool bad, taint;
	struct sim_owed owed;
	/* What it does to the buffer's bytes, in order. */
	struct {
		uint64_t to, from, bytes;
		uint32_t pattern;
		bool fill;
	} changes[COMMANDS];
	uint32_t change_count;
};

/* ---- commands ----------------------------------------------------------------------- */

static void host_fn(void *user)
{
	struct sim_item *item = user;
	struct sim *s = item->s;

	if (item->q->host_done != item->sequence)
		sim_fail(s, __FILE__, __LINE__, "callback %llu after %llu",
			 (unsigned long long)item->sequence,
			 (unsigned long long)item->q->host_done);
	item->q->host_done++;
	sim_mix(s, item->sequence);
}

static int add_host(struct sim *s, struct sim_queue *q, struct work *w)
{
	struct sim_item *item = calloc(1, sizeof(*item));

	SIM_CHECK(item);
	item->next = s->items;
	item->s = s;
	item->q = q;
	item->sequence = q->host_submitted + w->hosts++;
	s->items = item;
	w->cmds[w->n] = hal_cmd_host(host_fn, item);
	return 0;
}

/* plain: it may not be run twice. */
static void add_step(struct sim *s, struct sim_queue *q, struct work *w, bool inside,
		     bool plain, uint32_t work)
{
	inside = inside && s->inside_kernel[0];
	w->cmds[w->n] =
		kernels_step(s, q, w->args[w->n], q->steps + w->steps, inside, work);
	/* On ref the effect is at the very end: dropped in the middle, it has none. */
	if (!inside && !plain)
		w->cmds[w->n].flags |= HAL_CMD_REPLAYABLE;
	w->steps += !inside;
	w->steps_inside += inside;
}

static void add_change(struct sim_queue *q, struct work *w, bool fill, uint32_t work)
{
	uint64_t at = work % (HALF / 8) * 4, bytes = 4 + work / 5 % (HALF / 8) * 4;

	w->changes[w->change_count].fill = fill;
	w->changes[w->change_count].to = fill ? at : HALF + at;
	w->changes[w->change_count].from = at;
	w->changes[w->change_count].bytes = bytes;
	w->changes[w->change_count++].pattern = work * 2654435761u;
	if (fill)
		w->cmds[w->n] = hal_cmd_fill(q->buf, at, bytes, work * 2654435761u);
	else if (!q->host || work % 3 == 0)
		w->cmds[w->n] = hal_cmd_copy(q->buf, HALF + at, q->buf, at, bytes);
	else { /* the same, through host memory */
		w->cmds[w->n++] = hal_cmd_read(q->host, at, q->buf, at, bytes);
		w->cmds[w->n] = hal_cmd_write(q->buf, HALF + at, q->host, at, bytes);
	}
}

static int add_command(struct sim *s, struct sim_queue *q, struct work *w, char letter,
		       bool plain, uint32_t work)
{
	switch (letter) {
	case 's':
	case 'i':
		add_step(s, q, w, letter == 'i', plain, work);
		break;
	case 'f':
	case 'c':
		add_change(q, w, letter == 'f', work);
		break;
	case 'h':
		if (add_host(s, q, w))
			return -1;
		break;
	case 'b':
		w->cmds[w->n] = hal_cmd_barrier();
		break;
	case 't':
		w->cmds[w->n] = hal_cmd_timestamp(q->buf, AREA + work % 16 * 8);
		break;
	case 'x':
		w->cmds[w->n] = kernels_bad(s, q, w->args[w->n]);
		w->bad = true;
		break;
	default:
		w->cmds[w->n] = hal_cmd_of(HAL_OP_NOP, 0);
	}
	w->n++;
	return 0;
}

static char letter_of(uint32_t type, uint32_t param, uint32_t digit)
{
	return sim_types[type].params[param].letters[digit - 1];
}

/* ---- waits, and what it asks for ---------------------------------------------------- */

static void add_wait(struct work *w, struct hal_point point, bool gate, uint32_t who,
		     uint64_t value)
{
	w->waits[w->wait_count++] = point;
	w->owed.waits[w->owed.wait_count++] =
		(struct sim_wait){.gate = gate, .who = who, .value = value};
}

/* Waits for what is already submitted, or for a gate the host opens: no circles. */
static void add_waits(struct sim *s, struct work *w, uint32_t kind, uint32_t on)
{
	enum { GATE = 1, LINE, QUEUE, BOTH };
	struct sim_queue *q = sim_queue_at(s, on % QUEUES);
	uint64_t n = on / QUEUES;
	uint32_t g = on % GATES;

	if (kind == GATE || kind == BOTH) {
		s->gate_waited[g] = s->gate_value[g] + 1;
		add_wait(w, (struct hal_point){s->gates[g], s->gate_waited[g]}, true, g,
			 s->gate_waited[g]);
	}
	if (kind < LINE || kind > BOTH || !q)
		return;
	w->taint = q->tainted;
	if (kind == LINE && q->line_value) {
		n = 1 + n % (q->line_value < DEPTH ? q->line_value : DEPTH - 1);
		n += q->line_value < DEPTH ? 0 : q->line_value - (DEPTH - 1);
		add_wait(w, (struct hal_point){q->line, n}, false, q->id,
			 q->line_at[n % DEPTH]);
	} else if (kind != LINE && q->submissions) {
		n = 1 + n % q->submissions;
		add_wait(w, (struct hal_point){hal_queue_get_timeline(q->q), n}, false,
			 q->id, n);
	}
}

/* Some ask for something. */
static void add_asks(struct sim *s, const struct sim_queue *q, struct work *w,
		     struct hal_submit_desc *d, uint32_t asks, uint32_t ns)
{
	enum { DEADLINE = 8, LATER, PRIORITY, ALL };

	if ((asks == DEADLINE || asks == ALL) &&
	    q->service_class != HAL_CLASS_BEST_EFFORT)
		d->deadline_ns = 1 + ns;
	if (asks == LATER || asks == ALL)
		d->not_before_ns = hal_device_get_time(s->dev) + ns % DELAY_NS;
	if (asks == PRIORITY || asks == ALL) {
		d->flags = HAL_SUBMIT_PRIORITY;
		d->priority = (int32_t)(ns % 5) - 2;
	}
	w->owed.not_before_ns = d->not_before_ns;
	d->tag = (uint64_t)q->id << 32 | (q->submissions + 1);
	d->waits = w->waits;
	d->wait_count = w->wait_count;
	d->signals = w->signals;
	d->signal_count = w->signal_count;
}

/* ---- what it owes ------------------------------------------------------------------- */

static void change(struct sim_queue *q, const struct work *w)
{
	for (uint32_t i = 0; i < w->change_count; i++) {
		uint8_t *to = q->shadow + w->changes[i].to;

		if (!w->changes[i].fill) {
			memmove(to, q->shadow + w->changes[i].from, w->changes[i].bytes);
			continue;
		}
		for (uint64_t k = 0; k < w->changes[i].bytes; k += 4)
			memcpy(to + k, &w->changes[i].pattern, 4);
	}
}

/* The library has taken it. */
static void taken(struct sim *s, struct sim_queue *q, const struct work *w, uint32_t n)
{
	q->submissions++;
	if (q->tells)
		s->submitted[q->id]++;
	/* Nothing at all is a barrier, which counts. */
	q->commands += n + w->wait_count + w->signal_count ? n : 1;
	q->steps += w->steps;
	q->steps_inside += w->steps_inside;
	q->host_submitted += w->hosts;
	if (w->signal_count)
		q->line_at[++q->line_value % DEPTH] = q->submissions;
	q->owed[q->submissions % DEPTH] = w->owed;
	q->checked = false;
	change(q, w);
	if (w->bad || w->taint)
		sim_taint(s, q);
}

/* The answer to a submission of n commands, which is the last of q's now, or is not. */
static int answered(struct sim *s, struct sim_queue *q, const struct work *w, uint32_t n,
		    int err, struct hal_point point)
{
	sim_mix(s, (uint64_t)(int64_t)err);
	/* A program's constants may not fit into what is left of the quota. */
	if (err == -ENOSPC && !s->ref)
		return 0;
	if (err) {
		SIM_ANSWER(err == -EAGAIN ||
			   ((q->tainted || s->faulty) &&
			    (err == -EIO || err == -ECANCELED)) ||
			   /* Of what should have gone to the host. */
			   (s->faulty && err == -ENOSPC &&
			    strstr(hal_last_error(), "failed to copy out")) ||
			   sim_excused(s, err));
		return 0;
	}
	taken(s, q, w, n);
	SIM_CHECK(point.value == q->submissions);
	return 0;
}

/* ---- operations --------------------------------------------------------------------- */

static int renew(struct sim *s, struct sim_queue *q)
{
	static const uint8_t zero[BUFFER_BYTES];
	struct sim_part *p = &s->parts[q->part];
	int err;

	SIM_OK(sim_buffer_destroy(s, p, BUFFER_BYTES, &q->buf));
	q->gone_moves[q->gone++ % 4] = q->buf_move;
	q->buf_move.by = 0;
	if (sim_buffer_create(s, p, BUFFER_BYTES, &q->buf))
		return s->why[0] ? -1 : 0;
	err = hal_buffer_write(q->buf, 0, zero, BUFFER_BYTES);
	SIM_ANSWER(!err || sim_excused(s, err));
	memset(q->shadow, 0, BUFFER_BYTES);
	return 0;
}

int do_new_buffer(struct sim *s, const uint32_t *p)
{
	struct sim_queue *q = sim_queue_at(s, p[0]);

	return q && !q->buf ? renew(s, q) : 0;
}

int do_submit(struct sim *s, const uint32_t *p)
{
	enum { QUEUE, LETTERS, WORK, PLAIN, WAIT, ON, SIGNAL, ASKS, NS };
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct sim_queue *q = sim_queue_at(s, p[QUEUE]);
	struct hal_point point = {0};
	uint32_t type = s->script->ops[s->step].type;
	struct work w;
	int err;

	if (!q || !q->buf)
		return 0;
	memset(&w, 0, sizeof(w));
	add_waits(s, &w, p[WAIT], p[ON]);
	for (uint32_t v = p[LETTERS]; v; v >>= 4)
		if (add_command(s, q, &w, letter_of(type, LETTERS, v & 15),
				p[PLAIN] >> w.n & p[PLAIN] >> (w.n + 1) & 1,
				p[WORK] + w.n))
			return -1;
	if (p[SIGNAL] == 1) {
		w.signals[0] = (struct hal_point){q->line, q->line_value + 1};
		w.signal_count = 1;
	}
	d.cmds = w.cmds;
	d.cmd_count = w.n;
	add_asks(s, q, &w, &d, p[ASKS], p[NS]);
	err = hal_submit(q->q, &d, &point);
	if (answered(s, q, &w, w.n, err, point))
		return -1;
	/* The work keeps its buffer alive. */
	return !err && p[ASKS] == 12 ? renew(s, q) : 0;
}

/* Channels of its partition's, some of them, or in a ratio; a queue of that copies it. */
static int move_buffer(struct sim *s, const struct sim_queue *q, struct sim_queue *by,
		       const uint32_t *p, struct hal_point *done)
{
	enum { STATE = 2, COLORS, WEIGHTS };
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	uint64_t colors = (uint64_t)p[COLORS] << 8 | p[COLORS];
	uint8_t weights[64];

	SIM_OK(hal_partition_get_info(s->parts[q->part].p, &info));
	for (uint32_t i = 0; i < 64; i++)
		weights[i] = (uint8_t)(1 + (p[WEIGHTS] >> i % 4 & 3));
	return hal_buffer_recolor(p[STATE] ? q->state : q->buf, by->q,
				  colors & info.color_mask,
				  p[WEIGHTS] < 32 ? NULL : weights, done);
}

int do_recolor(struct sim *s, const uint32_t *p)
{
	enum { QUEUE, BY, STATE, COLORS, WEIGHTS, WAIT };
	struct sim_queue *q = sim_queue_at(s, p[QUEUE]), *by;
	struct sim_move *move;
	struct hal_stats before = HAL_INIT(hal_stats), after = HAL_INIT(hal_stats);
	struct hal_point done = {0};
	enum sim_moving is;
	int err;

	if (!q || (!p[STATE] && !q->buf))
		return 0;
	for (by = &s->queues[p[BY]]; !by->q || by->part != q->part;)
		by = by + 1 < s->queues + QUEUES ? by + 1 : s->queues;
	move = p[STATE] ? &q->state_move : &q->buf_move;
	is = model_moving(s, move);
	SIM_OK(hal_queue_get_stats(by->q, &before));
	err = move_buffer(s, q, by, p, &done);
	sim_mix(s, (uint64_t)(int64_t)err);
	if (err) {
		SIM_ANSWER(!!(s->info.caps & HAL_CAP_RECOLOR) == (err != -ENOTSUP) ||
			   sim_excused(s, err));
		SIM_ANSWER(err == -ENOTSUP || err == -EAGAIN || err == -ENOSPC ||
			   (err == -EBUSY &&
			    (is || q->suspended || q->last.suspends || s->stops)) ||
			   ((by->tainted || s->faulty) &&
			    (err == -EIO || err == -ECANCELED)) ||
			   sim_excused(s, err));
		return 0;
	}
	SIM_CHECK(is != MOVE_ON);
	SIM_OK(hal_queue_get_stats(by->q, &after));
	SIM_CHECK(after.submitted > before.submitted);
	by->commands += after.submitted - before.submitted;
	by->submissions++;
	by->owed[by->submissions % DEPTH] = (struct sim_owed){.moves = q->id};
	if (by->tells)
		s->submitted[by->id]++;
	SIM_CHECK(done.value == by->submissions);
	*move = (struct sim_move){by->id, done.value};
	q->checked = false;
	if (p[WAIT] != 3)
		return 0;
	err = sim_wait(done);
	sim_mix(s, (uint64_t)(int64_t)err);
	SIM_ANSWER(!err || by->tainted || s->faulty ||
		   (err == -EDEADLK && !model_can_end(s, by, done.value)));
	return 0;
}

/* Steps alone, so that the model needs not know what was recorded when. */
int do_record(struct sim *s, const uint32_t *p)
{
	enum { QUEUE, LETTERS, WORK, PLAIN };
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct sim_queue *q = sim_queue_at(s, p[QUEUE]);
	struct work w;
	int err;

	if (!q || !p[LETTERS])
		return 0;
	SIM_OK(hal_sequence_destroy(q->seq));
	q->seq = NULL;
	memset(&w, 0, sizeof(w));
	for (uint32_t v = p[LETTERS]; v; v >>= 4) {
		add_step(s, q, &w, false, p[PLAIN] % 4 == 0, p[WORK] + w.n);
		w.n++;
	}
	d.cmds = w.cmds;
	d.cmd_count = w.n;
	err = hal_sequence_create(s->parts[q->part].p, &d, &q->seq);
	sim_mix(s, (uint64_t)(int64_t)err);
	SIM_ANSWER(!err || (err == -ENOSPC && !s->ref) || sim_excused(s, err));
	if (err)
		q->seq = NULL;
	q->seq_launches = w.n;
	return 0;
}

int do_sequence(struct sim *s, const uint32_t *p)
{
	enum { QUEUE, WORK, WAIT, ON, ASKS, NS };
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct sim_queue *q = sim_queue_at(s, p[QUEUE]);
	struct hal_point point = {0};
	struct work w;
	int err;

	if (!q || !q->seq)
		return 0;
	memset(&w, 0, sizeof(w));
	add_waits(s, &w, p[WAIT], p[ON]);
	/* Each time it is told where to count on from. */
	for (uint32_t i = 0; i < q->seq_launches; i++) {
		struct hal_arg args[3];
		const struct hal_cmd c = kernels_step(s, q, args, q->steps + w.steps++,
						      false, p[WORK] % 12000);

		SIM_OK(hal_sequence_set_args(q->seq, i, args, c.launch.arg_count));
	}
	add_asks(s, q, &w, &d, p[ASKS], p[NS]);
	err = hal_sequence_submit(q->q, q->seq, &d, &point);
	return answered(s, q, &w, q->seq_launches, err, point);
}
